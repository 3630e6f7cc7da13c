#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Several users of a host, and several devices of a user, beside each other: VERBENA_ADDRESS."""
import copy
import json
import re

from pair import Pair, check, main, pingpong_check
from rdmacm import ended_well, talk

FIRST, SECOND = "127.0.0.2", "127.0.0.3"
ITERS, SIZE = 30, 4096


def at(place, address):
    """The place, for the programs of a device at an address."""
    other = copy.copy(place)
    other._gids = {}
    other.addresses = [address] * 2
    other.env = [{"VERBENA_ADDRESS": address}] * 2
    return other


class Between:
    """A server in one place, a client in another."""

    def __init__(self, server, client):
        self.ends = server, client
        self.meet = server.meet

    def start(self, end, command, env=None):
        return self.ends[end].start(end, command, env)

    def run(self, end, *words, **kw):
        return self.ends[end].run(end, *words, **kw)

    def gid_index(self, end):
        return self.ends[end].gid_index(end)


def exchange(place, program="ibv_rc_pingpong"):
    return Pair(place, program, ["-n", ITERS, "-s", SIZE if program != "ibv_ud_pingpong" else 1024])


def finish(pairs):
    for p in pairs:
        size = SIZE if "ibv_ud" not in p.title else 1024
        pingpong_check(p, p.finish(), ITERS, size)


def pids_seen(place):
    return {p["pid"] for p in json.loads(place.tool(0, "stat", "--json"))["processes"]}


def users(place):
    """Programs of two users at the same time, each among themselves and with the other."""
    a, b = at(place, FIRST), at(place.other_user(), SECOND)
    pairs = [exchange(p) for p in (a, b, Between(a, b), Between(b, a))]
    for p in pairs:
        p.server.wait_listen(p.port)
    check(pids_seen(a) == {pairs[0].server.pid, pairs[2].server.pid}, "stat of one user shows %s" % pids_seen(a))
    check(pids_seen(b) == {pairs[1].server.pid, pairs[3].server.pid}, "stat of the other shows %s" % pids_seen(b))
    finish([p.go() for p in pairs])


def devices(place):
    """Two devices of a user, each with one GID, and a third without an address of its own."""
    a, b = at(place, FIRST), at(place, SECOND)
    for p, address in ((a, FIRST), (b, SECOND)):
        status, out = p.run(0, ["ibv_devinfo", "-v"])
        gids = re.findall(r"GID\[ *\d+\]:\s+(\S+?),", out)
        check(status == 0 and gids == ["::ffff:" + address], out)
        status, out = p.run(0, [place.verbena, "devices", "--json"])
        told = [g["address"] for g in json.loads(out)["devices"][0]["ports"][0]["gids"]]
        check(told == [address], out)
    pairs = [exchange(p) for p in (a, b, place, Between(a, b))]
    pairs += [exchange(Between(b, a), "ibv_uc_pingpong"), exchange(Between(a, place), "ibv_ud_pingpong")]
    for p in pairs:
        p.server.wait_listen(p.port)
    # Whatever their addresses are: they are the user's.
    check(pids_seen(place) == {p.server.pid for p in pairs}, "stat shows %s" % pids_seen(place))
    finish([p.go() for p in pairs])
    status, out = place.run(0, [place.verbena, "run", "--address", SECOND, "ibv_devinfo", "-v"])
    check(status == 0 and "::ffff:" + SECOND in out, out)
    # Several addresses are one device.
    both = at(place, FIRST)
    both.env = [{"VERBENA_ADDRESS": SECOND + "," + FIRST}] * 2
    finish([exchange(both).go()])


def connections(place):
    """rdma_cm: listeners of two users on one port, of RoCEv2 and of iWARP; a client's source is its own address."""
    a, b = at(place, FIRST), at(place.other_user(), SECOND)
    for env in ({}, {"VERBENA_PROTOCOL": "iwarp"}):
        there = b.start(0, ["rping", "-s", "-C", "3", "-v"], env)  # at the wildcard, so at its address
        outs = talk(a, ["rping", "-s", "-C", "3", "-v"], ["rping", "-c", "-a", FIRST, "-C", "3", "-v"], env)
        check(all(out.count("ping data") == 3 for out in outs), "\n".join(outs))
        outs = talk(Between(a, b), ["rping", "-s", "-C", "3", "-v"], ["rping", "-c", "-a", FIRST, "-C", "3", "-v"], env)
        check(all(out.count("ping data") == 3 for out in outs), "\n".join(outs))
        check(there.running() and "ping data" not in there.output(), "it has another's connection: " + there.output())
        client = ["rping", "-c", "-a", SECOND, "-C", "3", "-v"]
        status, out = a.run(1, client, env=env)
        check(ended_well(client, status, out) and out.count("ping data") == 3, "status %s\n%s" % (status, out))
        there.wait(30)
        check(there.output().count("ping data") == 3, there.output())
        there.kill()
        status, out = a.run(0, ["rping", "-s", "-a", SECOND, "-C", "3"], env=env)
        check(status != 0 and SECOND in out, "it listens at another's address: %s\n%s" % (status, out))


def holding(place):
    """A process that has the device open."""
    pair = exchange(place)
    pair.server.wait_listen(pair.port)
    return pair.server


def refused(place):
    """Who finds the port in use is told by whom and where, and of an address that works."""
    other = place.other_user()
    holder = holding(at(place, FIRST))
    for env in ({}, {"VERBENA_ADDRESS": FIRST}):
        status, out = other.run(0, ["ibv_devinfo"], env=env)
        m = re.search(r"UDP port 4791 is in use by another user \(uid 0\) at 127.0.0.2.*VERBENA_ADDRESS .* as (\S+) is", out)
        check(status != 0 and m, "status %s\n%s" % (status, out))
        check(other.run(0, ["ibv_devinfo"], env={"VERBENA_ADDRESS": m.group(1)})[0] == 0, "%s does not work" % m.group(1))
    holder.kill()
    holder = holding(place)
    status, out = other.run(0, ["ibv_devinfo"], env={"VERBENA_ADDRESS": FIRST})
    check(status != 0 and "another user (uid 0) at every address" in out and "set VERBENA_ADDRESS too" in out, out)
    status, out = at(place, "127.0.0.1").run(0, ["ibv_devinfo"])
    check(status != 0 and "at every address by programs of this user without VERBENA_ADDRESS" in out, out)
    holder.kill()
    for value, told in (("here", "'here': allowed are IPv4 and IPv6 addresses"), ("192.0.2.1", "192.0.2.1 is no address"),
                        ("127.0.0.2,127.0.0.2", "each once"), ("0.0.0.0", "'0.0.0.0'")):
        status, out = place.run(0, ["true"], env={"VERBENA_ADDRESS": value})
        check(status == 125 and told in out and "VERBENA_ADDRESS=" + value in out, "status %s\n%s" % (status, out))


if __name__ == "__main__":
    main({"users": users, "devices": devices, "connections": connections, "refused": refused})
