#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Faults on command under programs as they are: by a script, and given while they run."""
import dataclasses
import json
import os
import re
import subprocess
import threading
import time

import programs
from idle import watch_idle
from known import KNOWN
from pair import check, clean_env, folder, main, perftest, pingpong
from rdmacm import talk
from ucx import run as ucx_perftest


def script(text):
    name = os.path.join(folder(), "script")
    with open(name, "w") as f:
        f.write(text)
    return name


def asyncwatch(place):
    """ibv_asyncwatch: a link that flaps by a script, and by a command."""
    p = place.start(0, ["stdbuf", "-oL", "ibv_asyncwatch"],
                    {"VERBENA_FAULTS": script("at 500ms link down for 500ms   # a flap\n")})
    p.wait_text("PORT_ERR[^$]*PORT_ACTIVE")
    place.tool(0, "fault", "all", "link", "down", "for", "300ms")
    p.wait_text("PORT_ACTIVE[^$]*PORT_ERR[^$]*PORT_ACTIVE")
    place.tool(0, "fault", "all", "device", "fatal")
    p.wait_text("DEVICE_FATAL")
    told = re.findall(r"event_type IBV_EVENT_(\w+)", p.output())
    check(told == ["PORT_ERR", "PORT_ACTIVE"] * 2 + ["DEVICE_FATAL"], told)
    rules = place.tool(0, "fault", "all", "list")
    check("1 times  script:1" in rules and "link down for 300ms" in rules, rules)
    events = [json.loads(line) for line in place.tool(0, "stat", "--events", "--json").splitlines()]
    check([(e["rule"], e["action"], e["ends"], e["shown"]) for e in events] == [
        ("script:1", "link down", False, "IBV_EVENT_PORT_ERR"), ("script:1", "link down", True, "IBV_EVENT_PORT_ACTIVE"),
        ("command", "link down", False, "IBV_EVENT_PORT_ERR"), ("command", "link down", True, "IBV_EVENT_PORT_ACTIVE"),
        ("command", "device fatal", False, "IBV_EVENT_DEVICE_FATAL")], events)
    p.kill()


def flaps(place):
    """ib_write_bw goes on over links that flap, with a timeout that lasts longer."""
    env = {"VERBENA_FAULTS": script("after 50 wr link down for 300ms\nafter 400 wr link down for 300ms\n")}
    perftest(place, "ib_write_bw", ["-u", "18", "-s", "65536"], iters=1000, sizes=[65536], client_env=env)


def repeated(place):
    """The same script twice gives the same log, but for the times. Thirty rules that act at once have a line each."""
    logs = []
    for _ in range(2):
        p = place.start(0, ["stdbuf", "-oL", "ibv_asyncwatch"],
                        {"VERBENA_FAULTS": script("at 200ms link down\nat 300ms qp 1 error\nat 400ms link up\nat 500ms gid 10.99.99.99 move\n"
                                            + "at 600ms gid 10.99.99.99 move\n" * 30)})
        p.wait_text("PORT_ERR[^$]*PORT_ACTIVE")
        events, end = [], time.monotonic() + 20
        while len(events) < 34 and time.monotonic() < end:
            events = [json.loads(line) for line in place.tool(0, "stat", "--events", "--json").splitlines()]
        logs.append([{k: v for k, v in e.items() if k not in ("seconds", "pid")} for e in events])
        p.kill()
    check(logs[0] == logs[1], logs)
    check([e["shown"] for e in logs[0]] == ["IBV_EVENT_PORT_ERR", "nothing: no such queue pair", "IBV_EVENT_PORT_ACTIVE"]
          + ["nothing: no such GID"] * 31, logs)


def refused(place):
    """What is wrong with a script is said with its line, and the program is not started; likewise a command."""
    p = place.start(0, ["ibv_devinfo"], {"VERBENA_FAULTS": script("# one\nat 2s lnk down\n")})
    check(p.wait(20) == 125, "it was started")
    check(re.search(r"script:2: 'lnk': no such word; allowed are at, every, after", p.output()), p.output())
    p = place.start(0, ["stdbuf", "-oL", "ibv_asyncwatch"])
    p.wait_text("async event FD")
    t = subprocess.run(place.wrap(0, [place.verbena, "fault", "all", "qp", "0", "hang"]), capture_output=True, text=True,
                       timeout=20, env=clean_env(place.env[0]), cwd="/")
    check(t.returncode == 125 and "'0': allowed are any, each" in t.stderr, t.stderr)
    p.kill()


def pingpongs(place):
    """A lost packet, a doubled one and a swapped one of each queue pair are nothing to ibv_rc_pingpong."""
    env = {"VERBENA_FAULTS": script("packet 5 of each qp out drop\npacket 9 of each qp in drop\npacket 7 of each qp out double\n"
                                    "packet 11 of each qp out swap\n")}
    pingpong(place, "ibv_rc_pingpong", iters=50, client_env=env)


def rping(place, env=None):
    """rping: the first request is lost, each tenth packet, and the link flaps; over iWARP the link alone."""
    at = place.addresses[0]
    text = "after 20 wr link down for 200ms\n"
    if not env:
        text += "when cm REQ out drop\nevery 10 packets in drop\n"
    talk(place, ["rping", "-s", "-a", at, "-C", "30"], ["rping", "-c", "-a", at, "-C", "30"],
         {"VERBENA_FAULTS": script(text), **(env or {})})


def iwarp(place):
    """What iWARP has of it: the link, requests and calls. Packets are the kernel's."""
    env = {"VERBENA_PROTOCOL": "iwarp"}
    rping(place, env)
    p = place.start(0, ["ibv_devinfo"], {**env, "VERBENA_FAULTS": script("packet 3 out drop\n")})
    check(p.wait(20) == 125 and "packets of iWARP are the kernel's" in p.output(), p.output())


def iwarp_rests(place):
    """Bytes that wait in the sockets of iWARP while its link is down cost no processor time, and are taken when it is up."""
    env, at = {"VERBENA_PROTOCOL": "iwarp"}, place.addresses[0]
    s = place.start(0, ["rping", "-s", "-a", at, "-C", "10000000"], env)
    time.sleep(1)
    c = place.start(1, ["stdbuf", "-oL", "rping", "-c", "-v", "-a", at, "-C", "10000000"], env)
    c.wait_text("ping data")
    place.tool(0, "fault", str(s.pid), "link", "down")
    watch_idle(s, "rping's server without a link")
    had = len(c.output())
    place.tool(0, "fault", str(s.pid), "link", "up")
    end = time.monotonic() + 20
    while len(c.output()) == had and time.monotonic() < end:
        time.sleep(0.1)
    check(len(c.output()) > had and c.running(), c.output()[-2000:])
    c.kill()
    s.kill()


def rping_ends(place):
    """A request that completes in error ends rping at both ends, and within a bound."""
    at = place.addresses[0]
    s = place.start(0, ["rping", "-s", "-a", at, "-C", "1000000"])
    time.sleep(1)
    status, out = place.run(1, ["rping", "-c", "-a", at, "-C", "1000000"], 60,
                            {"VERBENA_FAULTS": script("after 100 wr qp any complete IBV_WC_RETRY_EXC_ERR\n")}, s)
    check(status not in (0, None) and "cq completion failed" in out, "status %s\n%s" % (status, out))
    check(s.wait(60) is not None, s.output())


def ucx(place):
    """UCX goes on over a link that flaps, and over lost packets of datagrams and connections."""
    ucx_perftest(place, "rc_verbs,ud_verbs", "-t", "tag_bw", "-s", 1048576, "-n", 40,
                 VERBENA_FAULTS=script("after 60 wr link down for 100ms\nevery 100 packets out drop\n"))
    ucx_perftest(place, "ud_verbs", "-t", "tag_lat", "-s", 8, "-n", 300, VERBENA_FAULTS=script("chance 2% in drop\n"))


# Slow enough for a few flaps, and long enough for each of them to cost packets of its own.
FLAPS = "rate 30Mbps\nevery 1s link down for 300ms\n"


class Events(threading.Thread):
    """Looks at the log of events while programs run, which is gone with them."""

    def __init__(self, place):
        super().__init__(daemon=True)
        self.place, self.ended, self.flaps = place, threading.Event(), 0

    def run(self):
        while not self.ended.wait(0.2):
            r = subprocess.run(self.place.wrap(1, [self.place.verbena, "stat", "--events"]), capture_output=True, text=True,
                               env=clean_env(self.place.env[1]), cwd="/")
            self.flaps = max(self.flaps, r.stdout.count("link down ends"))


def flapping(place, name, more="", flaps=FLAPS, make=""):
    """A program of known.py, longer, on links that go down every second."""
    known = next(k for k in KNOWN if k.name == name)
    programs.need(known)
    faults = "VERBENA_FAULTS=%s " % script(flaps)
    known = dataclasses.replace(known, server=known.server and faults + known.server + more, client=faults + known.client + more,
                                make=known.make and known.make + make)
    where = folder()
    programs.prepare(known, place, where)
    events = Events(place)
    events.start()
    theirs, out = programs.talk(known, place, where)
    events.ended.set()
    events.join()
    check(re.search(known.want, out) and re.search(known.server_want, theirs), out + theirs)
    check(events.flaps, "no link was down")


def flapping_fio(place):
    """fio writes a file, and its server verifies the checksum of each block."""
    flapping(place, "fio_write", " --size=12m")


def flapping_openmpi(place):
    """
    Each rank by its own packets: at a low rate UCX's datagrams, which know no congestion, would repeat themselves for ever. Without
    windows, because Open MPI's crash when they find the port down while they are made.
    """
    flapping(place, "openmpi_ucx_4", flaps="every 300 packets link down for 300ms\n", make=" -DNO_WINDOWS")


def flapping_ucx(place):
    """UCX's io_demo compares what it reads and writes."""
    flapping(place, "io_demo", " -q -d 65536 -i 150")


main({"flapping_fio": flapping_fio, "flapping_openmpi": flapping_openmpi, "flapping_ucx": flapping_ucx, "ucx": ucx, "rping": rping, "rping_ends": rping_ends, "iwarp": iwarp, "iwarp_rests": iwarp_rests, "asyncwatch": asyncwatch, "flaps": flaps, "repeated": repeated, "refused": refused, "pingpongs": pingpongs})
