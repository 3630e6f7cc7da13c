#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""
Connection management between the processes of one host: who has a port, who gets a request, and what others notice of one
that is killed. party.c is the program at both ends; place 0 has the listeners, place 1 the clients.
"""
import json
import os
import re
import signal
import subprocess
import time

from pair import BUILD, Process, check, clear, main

PARTY = os.path.join(BUILD, "tests/programs/party")
SOON_S = 20  # for what takes a moment on a quiet machine


def listen(place, port, *options, address=None):
    p = place.start(0, [PARTY, "-l", *options, address or place.addresses[0], port])
    p.wait_text("listening")
    return p


def connect(place, port, *options, end=1):
    return place.start(end, [PARTY, *options, place.addresses[0], port])


def connected(place, port, count):
    p = connect(place, port, "-n", count)
    p.wait_text("established %d failed 0" % count)
    return p


def all_connect(place, port, count=20, end=1):
    status, out = place.run(end, [PARTY, "-e", "-n", count, place.addresses[0], port], SOON_S)
    check(status == 0 and "established %d failed 0" % count in out, "port %d: status %s\n%s" % (port, status, out))


def refused(place, error, port, *options, address=None):
    status, out = place.run(0, [PARTY, "-l", *options, address or place.addresses[0], port], 5)
    check(status == 2 and error in out, "port %d: status %s\n%s" % (port, status, out))


def shown(place, end, p, **wanted):
    """What `verbena stat` shows of a process's connection manager, which it brings up to date every so often."""
    soon = time.monotonic() + SOON_S
    while True:
        one = json.loads(place.tool(end, "stat", "--json", str(p.pid)))["processes"][0]
        have = {name: one["counters"]["cm_" + name] for name in wanted}
        if have == wanted:
            return one
        check(time.monotonic() < soon, "%s, and not %s" % (have, wanted))
        time.sleep(0.1)


def disconnected(p, count):
    p.wait_text(r"disconnected %d\b" % count, SOON_S)


def ports(place):
    """A port of another process is refused at bind, but where both share it, or with addresses that differ."""
    wildcard = "::" if place.ipv6 else "0.0.0.0"
    first = listen(place, 9000)
    refused(place, "bind: EADDRINUSE", 9000)
    refused(place, r"the port is taken by process %d of this user, party" % first.pid, 9000)
    refused(place, "bind: EADDRNOTAVAIL", 9000, address=wildcard)
    refused(place, "bind: EADDRINUSE", 9000, "-r")
    every = listen(place, 9001, address=wildcard)
    refused(place, "bind: EADDRNOTAVAIL", 9001)
    all_connect(place, 9000)
    all_connect(place, 9001)
    first.kill()
    listen(place, 9000).kill()
    every.kill()
    drawn = [listen(place, 0) for _ in range(4)]
    check(len({re.search(r"listening (\d+)", p.output()).group(1) for p in drawn}) == 4, "a port was drawn twice")


def killed(place):
    """Each of several listeners is killed, the registrar first: its port is free, and the others go on."""
    servers = [listen(place, 9000 + i) for i in range(5)]
    for i, server in enumerate(servers):
        server.signal(signal.SIGKILL)
        for k in range(i + 1, 5):
            all_connect(place, 9000 + k)
        again = listen(place, 9000 + i)
        all_connect(place, 9000 + i)
        again.kill()


def peers_are_told(place):
    """Connections of a process that is killed end at the other end, if it was the registrar or not."""
    first, second = listen(place, 9000), listen(place, 9001)
    a, b = connected(place, 9000, 30), connected(place, 9001, 300)
    b.signal(signal.SIGKILL)
    if place.spaces[0] == place.spaces[1]:
        disconnected(second, 300)
    first.signal(signal.SIGKILL)
    disconnected(a, 30)
    check(second.running(), "the second server ended:\n%s" % second.output())


def heirs(place):
    """Processes that `verbena run` has left behind in the place's namespaces."""
    pids = [subprocess.run(["ip", "netns", "pids", s], capture_output=True, text=True).stdout for s in set(place.spaces)]
    return [read("/proc/%s/comm" % pid) for pid in " ".join(pids).split()].count("verbena-heir\n")


def read(path):
    try:
        with open(path) as f:
            return f.read()
    except FileNotFoundError:
        return ""


def only_one_killed(place):
    """Connections end at the other end, too, when the one that is killed was the only process of its host."""
    first = listen(place, 9000)
    a = connected(place, 9000, 30)
    first.signal(signal.SIGKILL)
    disconnected(a, 30)
    a.kill()
    second = listen(place, 9000)
    b = connected(place, 9000, 30)
    b.signal(signal.SIGKILL)
    disconnected(second, 30)
    check(heirs(place) > 0, "who has told it?")
    second.kill()
    soon = time.monotonic() + SOON_S
    while heirs(place):
        check(time.monotonic() < soon, "left behind for ever")
        time.sleep(0.1)


WAIT = ["/usr/bin/python3", "-c", "import os, time\ntime.sleep(0.1)\ntry:\n  os.wait()\nexcept ChildProcessError:\n  print('no child')"]


def nothing_to_wait_for(place):
    """No program finds a child that it has not made, not even the first one of a container, which adopts orphans."""
    for command in ([], ["unshare", "-pf"]):
        if command and os.getuid():
            continue
        p = Process(place.wrap(0, command + [place.verbena, "run"] + WAIT))
        status = p.wait(SOON_S)
        check(status == 0 and p.output() == "no child\n", "%s: status %s\n%s" % (command, status, p.output()))
        p.kill()


def registrar_killed_meanwhile(place):
    """While clients connect and hang up without end the registrar is killed, several times: no connection fails."""
    idle = [listen(place, 9100 + i) for i in range(3)]
    listen(place, 9000)
    client = connect(place, 9000, "-e", "-n", 20, "-t", 2)
    for p in idle:
        time.sleep(0.4)
        p.signal(signal.SIGKILL)
    check(client.wait(60) == 0, "the client: %s" % client.output())
    check(re.search(r"established \d+ failed 0 ", client.output()), client.output())


def registrar_stopped(place):
    """A registrar that is stopped keeps nobody from connecting for long."""
    idle = listen(place, 9100)
    listen(place, 9000)
    idle.signal(signal.SIGSTOP)
    try:
        all_connect(place, 9000)
    finally:
        idle.signal(signal.SIGCONT)
    all_connect(place, 9000)
    all_connect(place, 9100)


def nobody_listens(place):
    """Who asks for what nobody listens on is told so, whoever else is there."""
    other = listen(place, 9100)
    status, out = place.run(1, [PARTY, "-e", "-n", "1", place.addresses[0], "9000"], SOON_S)
    check("REJECTED: status 8" in out, "nobody listens, and: %s\n%s" % (status, out))
    check(other.running(), other.output())


def stat(place):
    """Listeners, connections by state, and refusals by reason."""
    server = listen(place, 9000, "-s", 3)
    waiting = connect(place, 9000, "-n", 2)
    one = shown(place, 0, server, listeners=1, req_rcvd=2, connecting=2, established=0)
    check(one["listeners"] == [{"space": "tcp", "address": place.addresses[0], "port": 9000}], str(one["listeners"]))
    waiting.wait_text("established 2 failed 0", SOON_S)
    shown(place, 0, server, established=2, connecting=0, disconnecting=0)
    shown(place, 1, waiting, requests_sent=2, established=2, listeners=0, req_sent=0)
    refused_one = connect(place, 9001, "-n", 1)
    refused_one.wait_text("failed 1", SOON_S)
    one = shown(place, 1, refused_one, requests_sent=1, established=0, connecting=0)
    check(one["counters"]["cm_rejects_received_8_no_listener"] and one["counters"]["cm_repeats"], str(one["counters"]))
    waiting.kill()
    shown(place, 0, server, established=0)
    text = place.tool(0, "stat", "--all", str(server.pid))
    check("listens: tcp %s port 9000" % place.addresses[0] in text, text)


def alone(case):
    """The case, and nothing of it left for the next."""
    def run(place):
        case(place)
        clear()
    return run


if __name__ == "__main__":
    main({case.__name__: alone(case) for case in
          (ports, killed, peers_are_told, only_one_killed, nothing_to_wait_for, registrar_killed_meanwhile, registrar_stopped, nobody_listens, stat)})
