#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""
The world changes while programs run: links go down and come back, addresses come and go. What verbs, rdma_cm and the files
of sysfs say follows, and what was connected lives on.
"""
import os
import re
import time

from pair import BUILD, TIME_S, Pair, Process, check, main, sh
from rdmacm import talk

WATCH = os.path.join(BUILD, "tests/programs/watch")
EVENT = re.compile(r"^(\d) (\S+) state=(\d)/(\d) mtu=(\d) rate=(\d+)x(\d+) GIDs:(.*)$", re.M)
NEW = "10.77.9.9"


def ip(place, *words, end=0):
    sh("ip", "-n", place.spaces[end], *words)


def mapped(address):
    return "::ffff:" + address


class Line:
    def __init__(self, m):
        self.context, self.event = int(m.group(1)), m.group(2)
        self.state, self.phys, self.mtu = int(m.group(3)), int(m.group(4)), int(m.group(5))
        self.rate = int(m.group(6)), int(m.group(7))
        self.gids = {}
        for entry in m.group(8).split():
            index, _, rest = entry.partition("=")
            check(rest, "two verbs disagree: " + m.group(0))
            self.gids[int(index)] = rest


class Watch:
    """tests/programs/watch, its lines as they come."""

    def __init__(self, place, *options, env=None):
        self.p = place.start(0, [WATCH, *options], env)
        self.seen = 0
        self.first = self.next("start")

    def lines(self, context=None):
        found = [Line(m) for m in EVENT.finditer(self.p.output())]
        return [f for f in found if context in (None, f.context)]

    def next(self, event, context=0, told=lambda line: True):
        """The next line of the context with that event of which `told` is true."""
        end = time.monotonic() + TIME_S
        while time.monotonic() < end:
            for i, line in enumerate(self.lines(context)):
                if i >= self.seen and line.event == event and told(line):
                    self.seen = i + 1
                    return line
            check(self.p.running(), "it ended: " + self.p.output())
            time.sleep(0.02)
        check(False, "no %s:\n%s" % (event, self.p.output()))

    def kill(self):
        self.p.kill()


def has(address):
    return lambda line: any(g.startswith(mapped(address) + "@") for g in line.gids.values())


def lacks(address):
    return lambda line: not has(address)(line)


def index_of(line, address):
    return [i for i, g in line.gids.items() if g.startswith(mapped(address) + "@")][0]


def events(place):
    """ibv_asyncwatch, a link that goes down and comes back, and an address: as an adapter's driver tells of them."""
    link = place.links[0][0]
    p = place.start(0, ["stdbuf", "-oL", "ibv_asyncwatch"])
    told = lambda: re.findall(r"event_type IBV_EVENT_(\w+)", p.output())
    p.wait_text("async event FD")
    ip(place, "link", "set", link, "down")
    p.wait_text("PORT_ERR")
    ip(place, "link", "set", link, "up")
    p.wait_text("PORT_ACTIVE")
    time.sleep(0.5)
    ip(place, "addr", "add", NEW + "/24", "dev", link)
    p.wait_text("PORT_ACTIVE[^$]*GID_CHANGE")
    check([e for e in told() if e != "GID_CHANGE"] == ["PORT_ERR", "PORT_ACTIVE"] and told()[-1] == "GID_CHANGE", told())
    # A link that is pulled at its other end has no carrier.
    ip(place, "link", "set", place.links[0][1], "down", end=1)
    p.wait_text("PORT_ACTIVE[^$]*PORT_ERR")
    p.kill()


def flaps(place):
    """A link that is down for a moment was down, though nobody looked meanwhile: one event for each transition."""
    link = place.links[0][0]
    w = Watch(place)
    for _ in range(3):
        ip(place, "link", "set", link, "down")
        ip(place, "link", "set", link, "up")
    for _ in range(3):
        w.next("port_active")
    time.sleep(0.5)
    order = [line.event for line in w.lines(1) if line.event.startswith("port")]
    check(order == ["port_error", "port_active"] * 3, order)
    w.kill()


def follow(place, *options, env=None):
    link = place.links[0][0]
    w = Watch(place, *options, env=env)
    start = w.first
    check(start.state == 4 and start.phys == 5 and has(place.addresses[0])(start), start.gids)
    check(all(g.endswith("@" + link) for g in start.gids.values()), "others' interfaces: %s" % start.gids)
    used = len(start.gids)
    ip(place, "addr", "add", NEW + "/24", "dev", link)
    line = w.next("GID_table_change", told=has(NEW))
    check(index_of(line, NEW) == used and all(line.gids[i] == g for i, g in start.gids.items()), line.gids)
    ip(place, "addr", "del", place.addresses[0] + "/24", "dev", link)
    line = w.next("GID_table_change", told=lacks(place.addresses[0]))
    check(index_of(line, NEW) == used, line.gids)
    ip(place, "addr", "add", "10.77.9.10/24", "dev", link)
    line = w.next("GID_table_change", told=has("10.77.9.10"))
    check(index_of(line, "10.77.9.10") == used + 1, "the index of one that has gone is kept for it: %s" % line.gids)
    ip(place, "addr", "add", place.addresses[0] + "/24", "dev", link)
    line = w.next("GID_table_change", told=has(place.addresses[0]))
    check(index_of(line, place.addresses[0]) == index_of(start, place.addresses[0]), line.gids)
    ip(place, "link", "set", link, "mtu", "4400")
    ip(place, "addr", "add", "10.77.9.11/24", "dev", link)
    check(w.next("GID_table_change", told=has("10.77.9.11")).mtu > start.mtu, "the MTU stays")
    ip(place, "link", "set", link, "down")
    line = w.next("port_error")
    check(line.state == 1 and line.phys == 3 and has(place.addresses[0])(line), "%s %s %s" % (line.state, line.phys, line.gids))
    w.seen = 0  # the other context's lines are counted from their first
    w.next("port_error", context=1)
    other = [i for i in w.lines(1) if i.event == "port_error"]
    check(len(other) == 1, "the other context: %d" % len(other))
    w.kill()


def table(place):
    """The table follows, and indices stay; a context that only waits."""
    follow(place)


def table_polled(place):
    """Likewise, while a thread polls, which does the work of the engine's."""
    follow(place, "-p")


def reopened(place):
    """Who closes all contexts and opens the device again sees what is."""
    link = place.links[0][0]
    w = Watch(place, "-r")
    ip(place, "addr", "add", NEW + "/24", "dev", link)
    w.next("reopened", told=has(NEW))
    ip(place, "addr", "del", NEW + "/24", "dev", link)
    w.next("reopened", told=lacks(NEW))
    w.kill()


def loopback(place):
    """Loopback's addresses are listed where there are no others, or where a setting names the interface."""
    link, lo = place.links[0][0], "127.0.0.1"
    for env, shown in (({}, False), ({"VERBENA_INTERFACES": "lo"}, True), ({"VERBENA_INTERFACES": "lo," + link}, True),
                       ({"VERBENA_INTERFACES": link}, False), ({"VERBENA_ADDRESS": lo}, True)):
        w = Watch(place, env=env)
        check(has(lo)(w.first) == shown, "%s: %s" % (env, w.first.gids))
        w.kill()
    # An address of the interface lo that others reach, as routers have one, is an address as any.
    ip(place, "addr", "add", NEW + "/32", "dev", "lo")
    w = Watch(place)
    check(has(NEW)(w.first) and lacks(lo)(w.first), w.first.gids)
    ip(place, "addr", "del", NEW + "/32", "dev", "lo")
    w.next("GID_table_change", told=lacks(NEW))
    w.kill()
    # Alone, loopback is the port; when another interface comes, the table grows, and the port is that one's.
    ip(place, "link", "set", link, "down")
    ip(place, "addr", "flush", "dev", link)
    w = Watch(place)
    check(w.first.state == 4 and has(lo)(w.first), w.first.gids)
    ip(place, "link", "set", link, "up")
    ip(place, "addr", "add", place.addresses[0] + "/24", "dev", link)
    line = w.next("GID_table_change", told=has(place.addresses[0]))
    check(all(line.gids[i] == g for i, g in w.first.gids.items()), line.gids)
    ip(place, "link", "set", link, "down")
    check(w.next("port_error").state == 1, "the port is loopback's still")
    check(not [1 for line in w.lines() if line.event == "port_active"], "it was active all the time before")
    w.kill()
    # Without any address the device can be opened, and lives when one comes.
    ip(place, "addr", "flush", "dev", link)
    w = Watch(place, env={"VERBENA_INTERFACES": link})
    check(w.first.state == 1 and not w.first.gids, w.first.gids)
    ip(place, "link", "set", link, "up")
    ip(place, "addr", "add", place.addresses[0] + "/24", "dev", link)
    check(w.next("port_active").state == 4, "down still")
    w.kill()


def files(place):
    """The files of sysfs say the same as verbs, to whoever reads them while a program has the device open."""
    link, port = place.links[0][0], "/sys/class/infiniband/verbena0/ports/1/"
    script = ("stdbuf -oL ibv_asyncwatch & while :; do echo \"$(cat %sstate) $(cat %sphys_state) $(cat %sgids/* | sort -u | tail -n +2 | tr '\\n' ' ')"
              " types $(ls %sgid_attrs/types | wc -l) net $(ls /sys/class/infiniband/verbena0/device/net)\"; sleep 0.2; done" % ((port,) * 4))
    p = Process(place.wrap(0, [place.verbena, "run", "sh", "-c", script]))
    p.wait_text(r"4: ACTIVE 5: LinkUp .*ffff:0a4d:0001.* net %s" % link)
    p.wait_text("async event FD")
    ip(place, "addr", "add", NEW + "/24", "dev", link)
    p.wait_text(r"4: ACTIVE 5: LinkUp .*ffff:0a4d:0909")
    ip(place, "link", "set", link, "down")
    p.wait_text(r"1: DOWN 3: Disabled .*ffff:0a4d:0909")
    ip(place, "addr", "flush", "dev", link)
    p.wait_text(r"1: DOWN 3: Disabled +types 0 net *\n")
    ip(place, "link", "set", link, "up")
    ip(place, "addr", "add", NEW + "/24", "dev", link)
    p.wait_text(r"types 0[^$]*4: ACTIVE 5: LinkUp .*ffff:0a4d:0909.* net %s" % link)
    p.kill()


def late(place):
    """A server that was started before its host had an address serves when it has one."""
    link, at = place.links[0][0], place.addresses[0]
    for protocol in ("veroce", "iwarp"):
        ip(place, "link", "set", link, "down")
        ip(place, "addr", "flush", "dev", link)
        s = place.start(0, ["rping", "-s", "-C", "5", "-v"], {"VERBENA_PROTOCOL": protocol})
        time.sleep(1)
        check(s.running(), "it does not wait for an address: " + s.output())
        ip(place, "link", "set", link, "up")
        ip(place, "addr", "add", at + "/24", "dev", link)
        end = time.monotonic() + TIME_S
        while True:
            status, out = place.run(1, ["rping", "-c", "-a", at, "-C", "5", "-v"], env={"VERBENA_PROTOCOL": protocol})
            if status == 0 or time.monotonic() > end:
                break
            time.sleep(0.2)
        check(status == 0 and out.count("ping data") == 5, out)
        s.kill()


def survives(place):
    """A queue pair lives through two seconds without a link, or without its address."""
    link, at = place.links[0][0], place.addresses[0]
    place.quick_clock = False
    length = "24" if "." in at else "64"
    for away, back in ((("link", "set", link, "down"), ("link", "set", link, "up")),
                       (("addr", "del", "%s/%s" % (at, length), "dev", link),
                        ("addr", "add", "%s/%s" % (at, length), "dev", link) + (("nodad",) if ":" in at else ()))):
        pair = Pair(place, "ib_send_bw", ["-F", "-u", 18, "-D", 8, "-s", 4096], gid_flag="-x").go()
        time.sleep(3)
        ip(place, *away)
        time.sleep(2)
        ip(place, *back)
        if ":" in at and away[0] == "link":
            ip(place, "addr", "add", "%s/%s" % (at, length), "dev", link, "nodad")
        pair.finish()


def loops(place):
    """What connects to a loopback address by rdma_cm goes by the device's own address, as Linux's cma_bind_loopback() has it."""
    lo, anywhere = ("::1", "::") if place.ipv6 else ("127.0.0.1", "0.0.0.0")
    here = [place.spaces[0]] * 2
    place.spaces, other = here, place.spaces
    try:
        for at in (anywhere, lo):
            outs = talk(place, ["rping", "-s", "-a", at, "-C", "5", "-v"], ["rping", "-c", "-a", lo, "-C", "5", "-v"])
            check(outs[1].count("ping data") == 5, outs[1])
            for program in ("udaddy", "ucmatose"):
                talk(place, [program, "-b", at, "-c", "2", "-C", "5"], [program, "-s", lo, "-c", "2", "-C", "5"])
    finally:
        place.spaces = other


def removed(place):
    """rdma_cm tells of an interface that is no more, and of one with another link-layer address."""
    link, at = place.links[0][0], place.addresses[0]
    s = place.start(0, ["stdbuf", "-oL", "rping", "-s", "-a", at, "-d", "-v"])
    s.wait_text("rdma_listen")
    ip(place, "link", "set", link, "address", "02:00:00:00:77:01")
    s.wait_text("ADDR_CHANGE")
    ip(place, "link", "del", link)
    s.wait_text("device removal")
    s.kill()


def unreachable(place):
    """Who connects to a loopback address that another host's program has told is warned once."""
    pair = Pair(place, "ibv_rc_pingpong", ["-g", 0, "-n", 10], ["-g", place.gid_index(1), "-n", 10],
                gid_flag=None, server_env={"VERBENA_INTERFACES": "lo"})
    pair.go()
    pair.client.wait_text("the peer's GID is of 127.0.0.0/8, a loopback address")
    for p in (pair.server, pair.client):
        p.kill()


if __name__ == "__main__":
    main({c.__name__: c for c in (events, flaps, table, table_polled, reopened, loopback, files, late, survives, loops, removed,
                                  unreachable)})
