#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""
Devices that are bound to an interface or an address each (VERBENA_DEVICES=verbena0@eth0,verbena1@eth1): each shows its own,
one fails without the other, and rdma_cm uses the one that an address belongs to. Over loopback they are bound to addresses.
"""
import copy
import dataclasses
import json
import os
import re
import time

import programs
from known import KNOWN
from pair import BUILD, TIME_S, check, folder, main, sh, tcp_port
from rdmacm import talk
from ucx import run as ucx_perftest

FIRST, SECOND = "127.0.0.2", "127.0.0.3"
PROGRAM = os.path.join(BUILD, "tests/programs/rails")


def addresses(place, end):
    """Of both rails."""
    return ["10.77.0.%d" % (end + 1), "10.77.0.%d" % (end + 11)] if place.links else [FIRST, SECOND]


def rails(place, end, **more):
    bound = [pair[end] for pair in place.links] or [FIRST, SECOND]
    # A process of this host that says nothing is given time by its peer.
    return {"VERBENA_DEVICES": "verbena0@%s,verbena1@%s" % tuple(bound), "VERBENA_PATIENCE_MS": "500", **more}


def processes(place, end):
    return json.loads(place.tool(end, "stat", "--json"))["processes"]


def railed(place):
    """The place, whose programs have rails."""
    other = copy.copy(place)
    other.env = [rails(place, 0), rails(place, 1)]
    return other


# ---- a transfer that loses a rail -------------------------------------------------------------------------

def transfer(place, lose):
    """lose(server) takes the second rail away while both carry data; the first one carries the rest."""
    port = tcp_port()
    server = place.start(0, [PROGRAM, "-p", port], rails(place, 0))
    server.wait_listen(port)
    client = place.start(1, [PROGRAM, "-p", port, place.meet], rails(place, 1))
    client.wait_text("client writes")
    until, sent = time.monotonic() + TIME_S, {}
    while len(sent) < 2 or min(sent.values()) < 100:
        sent = {p["device"]: p["counters"]["tx_packets"] for p in processes(place, 1) if p["pid"] == client.pid}
        check(client.running() and time.monotonic() < until, "no traffic on both rails: %s\n%s" % (sent, client.output()))
        time.sleep(0.05)
    lose(server)
    statuses = client.wait(TIME_S, server), server.wait(TIME_S, client)
    said = server.output() + client.output()
    check(statuses == (0, 0), "statuses %s\n%s" % (statuses, said))
    check("verbena1 is lost: " in client.output() and said.count("hashes are equal") == 2, said)
    check("verbena0" not in said, "the first rail was touched:\n" + said)
    check("verbena1: port error" in server.output(), said)


def link_down(place):
    """The second rail's cable is pulled. Its packets leave by no other interface, though the routing table has a way."""
    transfer(place, lambda server: sh("ip", "-n", place.spaces[0], "link", "set", place.links[1][0], "down"))


def fault(place):
    """The second rail fails on command."""
    transfer(place, lambda server: place.tool(0, "fault", str(server.pid), "verbena1", "link", "down"))


# ---- what devices show -------------------------------------------------------------------------------------

def field(out, name):
    return re.search(r"^\s*%s:\s+(.*?)\s*$" % re.escape(name), out, re.M).group(1)


def shown(place):
    """Addresses, MTU and events are a device's own, whoever shows them."""
    for i, space in enumerate(place.spaces):
        sh("ip", "-n", space, "link", "set", place.links[1][i], "mtu", "9000")
    env, own = rails(place, 0), addresses(place, 0)
    status, out = place.run(0, [place.verbena, "devices", "--json"], env=env)
    told = json.loads(out)["devices"]
    for d, (device, mtu) in enumerate(zip(told, (1024, 4096))):
        gids = device["ports"][0]["gids"]
        check({g["interface"] for g in gids} == {place.links[d][0]} and own[d] in [g["address"] for g in gids], out)
        check({g["path_mtu"] for g in gids} == {mtu}, out)
        name = "verbena%d" % d
        status, info = place.run(0, ["ibv_devinfo", "-v", "-d", name], env=env)
        check(status == 0 and field(info, "active_mtu").startswith(str(mtu)), info)
        check("::ffff:%s," % own[d] in info and "::ffff:%s," % own[1 - d] not in info, info)
        at = "/sys/class/infiniband/%s/" % name
        status, files = place.run(0, ["cat", at + "ports/1/gid_attrs/ndevs/0", at + "ports/1/state"], env=env)
        check(status == 0 and files.split("\n")[:2] == [place.links[d][0], "4: ACTIVE"], files)
        status, files = place.run(0, ["ls", at + "device/net"], env=env)
        check(status == 0 and files.split() == [place.links[d][0]], files)
    text = place.run(0, [place.verbena, "devices"], env=env)[1]
    check(all("bound to " + pair[0] in text for pair in place.links), text)
    watches = [place.start(0, ["stdbuf", "-oL", "ibv_asyncwatch", "-d", "verbena%d" % d], env) for d in (0, 1)]
    for w in watches:
        w.wait_text("async event FD")
    sh("ip", "-n", place.spaces[0], "link", "set", place.links[1][0], "down")
    watches[1].wait_text("PORT_ERR")
    place.tool(0, "fault", "all", "verbena0", "link", "down")
    watches[0].wait_text("PORT_ERR")
    place.tool(0, "fault", "all", "verbena0", "link", "up")
    watches[0].wait_text("PORT_ACTIVE")
    sh("ip", "-n", place.spaces[0], "link", "set", place.links[1][0], "up")
    watches[1].wait_text("PORT_ACTIVE")
    for w in watches:
        check(re.findall(r"event_type IBV_EVENT_(PORT\w+)", w.output()) == ["PORT_ERR", "PORT_ACTIVE"], w.output())
        w.kill()


# ---- rdma_cm -----------------------------------------------------------------------------------------------

def devices_of(place, end, pid):
    """The devices on which a process has queue pairs that are connected."""
    return [p["device"] for p in processes(place, end)
            if p["pid"] == pid and any(q["state"] == "RTS" for q in p["queue_pairs"])]


def connect(place, server, at, on, client_env=None):
    """A ping between rails: `on` are the devices that server and client use."""
    until, client = time.monotonic() + TIME_S, None
    try:
        while True:
            if not client or not client.running():
                client = place.start(1, ["rping", "-c", "-a", at, "-p", "7390"] +
                                     (["-I", addresses(place, 1)[on[1]]]), client_env or rails(place, 1))
            found = devices_of(place, 0, server.pid), devices_of(place, 1, client.pid)
            if all(found):
                break
            check(time.monotonic() < until, "no connection:\n%s%s" % (server.output(), client.output()))
            time.sleep(0.05)
        check(found == tuple(["verbena%d" % d] for d in on), "server and client use %s, not %s" % (found, on))
    finally:
        if client:
            client.kill()


def pings(place):
    """A listener at every address hears each rail; one at an address hears that rail alone."""
    for d, at in enumerate(addresses(place, 0)):
        everywhere = place.start(0, ["rping", "-s", "-P", "-p", "7390"], rails(place, 0))
        connect(place, everywhere, at, (d, d))
        everywhere.kill()
        here = place.start(0, ["rping", "-s", "-P", "-a", at, "-p", "7390"], rails(place, 0))
        connect(place, here, at, (d, d))
        status, out = place.run(1, ["rping", "-c", "-a", addresses(place, 0)[1 - d], "-p", "7390", "-C", "1"], env=rails(place, 1))
        check(status != 0 and "error 8" in out, "the other rail answers: %s\n%s" % (status, out))
        here.kill()


def others(place):
    """Programs that know nothing of rails, at the second one."""
    at, ends = addresses(place, 0)[1], railed(place)
    talk(ends, ["ucmatose", "-c", "5", "-C", "5"], ["ucmatose", "-s", at, "-c", "5", "-C", "5"])
    talk(ends, ["udaddy", "-c", "3", "-C", "5"], ["udaddy", "-s", at, "-c", "3", "-C", "5"])
    talk(ends, ["rdma_server"], ["rdma_client", "-s", at])
    server, until = ends.start(0, ["cmtime", "-c", "20"]), time.monotonic() + TIME_S
    while True:
        status, out = ends.run(1, ["cmtime", "-s", at, "-c", "20"])
        if status == 0:
            break
        check(time.monotonic() < until, "status %s\n%s%s" % (status, out, server.output()))
    check("connect" in out, out)
    server.kill()


def beside(place):
    """Programs with rails and without on one host, as RoCE and as iWARP; a port that one has is taken for the other."""
    at, env = addresses(place, 0), rails(place, 0)
    first = place.start(0, ["rping", "-s", "-P", "-p", "7390"], env)
    connect(place, first, at[1], (1, 1))
    for taken in (env, {}):
        status, out = place.run(0, ["rping", "-s", "-p", "7390"], env=taken)
        check(status != 0 and "the port is taken by process %d" % first.pid in out, "status %s\n%s" % (status, out))
    plain = place.start(0, ["rping", "-s", "-P", "-p", "7391"], {"VERBENA_INTERFACES": "lo"} if not place.links else {})
    for client in (env, {}):
        status, out = place.run(0, ["rping", "-c", "-a", at[1], "-p", "7390", "-C", "2"], env=client)
        check(status == 0 or "Bad file descriptor" in out, "status %s\n%s" % (status, out))
    check(first.running() and plain.running(), first.output() + plain.output())
    plain.kill()
    first.kill()


def killed(place):
    """The peers of a program that is killed are told on each rail."""
    server = place.start(0, ["rping", "-s", "-P", "-p", "7390"], rails(place, 0))
    clients, until = [], time.monotonic() + TIME_S
    # One after the other: of two that come at once rping's server takes one twice.
    for d, at in enumerate(addresses(place, 0)):
        clients.append(place.start(1, ["rping", "-c", "-a", at, "-I", addresses(place, 1)[d], "-p", "7390", "-C", "1000000", "-v"],
                                   rails(place, 1)))
        while len(devices_of(place, 0, server.pid)) <= d:
            check(time.monotonic() < until, "no connections\n" + server.output() + "".join(c.output()[-500:] for c in clients))
            if not clients[d].running():
                clients[d] = place.start(1, clients[d].command[2:] if clients[d].command[1] == "run" else clients[d].command,
                                         rails(place, 1))
            time.sleep(0.05)
    server.signal(9)
    for c in clients:
        check(c.wait(TIME_S) is not None, "it was not told: " + c.output())


def carried(place, end):
    """Packets that each rail's interface has sent."""
    return [int(place.run(end, ["cat", "/sys/class/net/%s/statistics/tx_packets" % pair[end]])[1]) for pair in place.links]


def iwarp(place):
    """TCP leaves by the rail that its address belongs to, though the routing table has the first one for all of them."""
    def bound(end):
        return {"VERBENA_DEVICES": "verbena_iw0@%s,verbena_iw1@%s" % tuple(pair[end] for pair in place.links)}

    def ping(d, env, *source):
        before, until = [carried(place, end) for end in (0, 1)], time.monotonic() + TIME_S
        while True:
            status, out = place.run(1, ["rping", "-c", "-a", addresses(place, 0)[d], *source, "-p", "7390", "-v", "-C", "100"], env=env)
            if status == 0 and out.count("ping data") == 100:
                return [[n - b for n, b in zip(carried(place, end), before[end])] for end in (0, 1)]
            check(time.monotonic() < until, "status %s\n%s%s" % (status, out, server.output()))
            time.sleep(0.1)

    server = place.start(0, ["rping", "-s", "-P", "-p", "7390"], bound(0))
    for d in (0, 1):
        sent = ping(d, bound(1), "-I", addresses(place, 1)[d])
        check(all(n[d] >= 100 > n[1 - d] for n in sent), "rail %d: its interface and the other one have sent %s" % (d, sent))
    sent = ping(1, {"VERBENA_PROTOCOL": "iwarp"})
    check(all(n[0] >= 100 for n in sent), "who has no rails goes by the routing table, and is answered so: %s" % sent)
    here = place.run(0, ["rping", "-c", "-a", addresses(place, 0)[1], "-I", addresses(place, 0)[1], "-p", "7390", "-C", "2"], env=bound(0))
    check(here[0] == 0, "within the host: status %s\n%s" % here)
    sh("ip", "-n", place.spaces[0], "link", "set", place.links[0][0], "down")
    sent = ping(1, bound(1), "-I", addresses(place, 1)[1])
    check(all(n[1] >= 100 for n in sent), "with the first cable pulled: %s" % sent)
    server.kill()


KINDS = "verbena_iw0@%s,verbena0@%s" % (FIRST, SECOND)


def kinds(place):
    """A rail of each kind: one listener hears TCP connections at one address, and datagrams at the other."""
    env = {"VERBENA_DEVICES": KINDS}
    server = place.start(0, ["rping", "-s", "-P", "-p", "7390"], env)
    for at, device in ((FIRST, "verbena_iw0"), (SECOND, "verbena0")):
        until, client = time.monotonic() + TIME_S, None
        while True:
            if not client or not client.running():
                client = place.start(1, ["rping", "-c", "-a", at, "-p", "7390"], env)
            if device in devices_of(place, 0, server.pid) and [device] == devices_of(place, 1, client.pid):
                break
            check(time.monotonic() < until, "no connection\n%s%s" % (server.output(), client.output()))
            time.sleep(0.05)
        client.kill()
    server.kill()


def ucx(place):
    """UCX takes the rail that it is told to take."""
    ucx_perftest(railed(place), "rc_verbs,ud_verbs", "-t", "tag_bw", "-s", 65536, "-n", 50, UCX_NET_DEVICES="verbena1:1")


def openmpi(place):
    """Each of four ranks has both rails, and what it sends and gets goes by both."""
    known = next(k for k in KNOWN if k.name == "openmpi_ucx_4")
    programs.need(known)
    settings = " ".join("%s=%s" % kv for kv in rails(place, 1).items())
    known = dataclasses.replace(known, client=settings + " " + known.client.replace("verbena0:1", "verbena0:1,verbena1:1"))
    where = folder()
    programs.prepare(known, place, where)
    _, out = programs.talk(known, place, where)
    check(known.want in out, out)
    for device, name in enumerate((r"\d+\.pcap$", r"\d+\.pcap\.1$")):
        sizes = [os.path.getsize(os.path.join(where, f)) for f in os.listdir(where) if re.match(name, f)]
        check(len([s for s in sizes if s > 100000]) == 4, "captures of verbena%d: %s bytes" % (device, sizes))


# ---- what is refused -----------------------------------------------------------------------------------------

def refused(place):
    """A program does not start with half of what was asked for."""
    for value, told in (("verbena0@lo,verbena1@nosuch0", "'@nosuch0' is no interface"),
                        ("verbena0@lo,verbena1@192.0.2.1", "'@192.0.2.1' is no interface, and no address of one that is up: allowed are "),
                        ("verbena0@lo,verbena0@127.0.0.2", "'verbena0' is there twice"),
                        ("verbena0@lo,verbena1@lo", "'@lo' is there twice"),
                        ("verbena0@lo,verbena1@127.0.0.1", "'@lo' and '@127.0.0.1' are one address"),
                        ("mlx5_0@lo", "'mlx5_0' is no device"),
                        ("verbena0@lo,", "device 2 of the list is missing"),
                        ("verbena0@lo,verbena1@", "allowed behind the @"),
                        (",".join("verbena%d@127.0.0.%d" % (d % 8, d + 2) for d in range(9)), "one too many")):
        status, out = place.run(0, ["true"], env={"VERBENA_DEVICES": value})
        check(status == 125 and told in out and "allowed" in out and "VERBENA_DEVICES" in out, "status %s\n%s" % (status, out))


if __name__ == "__main__":
    main({"link_down": link_down, "fault": fault, "shown": shown, "pings": pings, "others": others, "beside": beside, "killed": killed,
          "iwarp": iwarp, "kinds": kinds, "openmpi": openmpi, "ucx": ucx, "refused": refused})
