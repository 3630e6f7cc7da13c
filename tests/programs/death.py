#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""
A peer that dies: status 12, transport retry counter exceeded, within the time that timeout and retry
count say. A timer of T may take T to 4 T (IBTA C9-141, 11.6), and retry_cnt retries follow the first. On a busy
machine a program gets a processor late; sim/nic_patience_test has the times exactly.
"""
import json
import re
import signal
import time

from data import TRANSFER
from pair import Pair, check, main

SLACK_S = 5.0


def timeout_s(code):
    return 4.096e-6 * 2 ** code


def in_time(what, took, code, retries):
    least, most = timeout_s(code) * (retries + 1) * 0.9, 4 * timeout_s(code) * (retries + 1) + SLACK_S
    check(least <= took <= most, "%s took %.3f s, not %.3f to %.3f" % (what, took, least, most))


def timeouts(place, process):
    """How often requests of the process timed out; None: it has ended."""
    found = [p for p in json.loads(place.tool(1, "stat", "--json"))["processes"] if p["pid"] == process.pid]
    return found[0]["counters"]["timeouts"] if found else None


def killed(place, program, options, gid_flag, text, code, retries):
    for _ in range(30):
        pair = Pair(place, program, options, gid_flag=gid_flag).go().underway()
        pair.server.signal(signal.SIGKILL)
        begun = time.monotonic()
        before = timeouts(place, pair.client)
        # The next time-out comes within 4 T; but a ping-pong whose peer died between its ACK and its answer has no
        # request that could time out.
        status = pair.client.wait(4 * timeout_s(code) + 0.5)
        again = status is None and "pingpong" in program and timeouts(place, pair.client) == before
        if status is None and not again:
            status = pair.client.wait(4 * timeout_s(code) * retries + SLACK_S + 1)
        took = time.monotonic() - begun
        out = pair.client.output()
        pair.kill()
        if not again:
            break
    check(status not in (None, 0), "%s: status %s after its peer died\n%s" % (pair.title, status, out))
    check(re.search(text, out), "%s: no word of status 12\n%s" % (pair.title, out))
    in_time(pair.title, took, code, retries)


def pingpong_poll(place):
    killed(place, "ibv_rc_pingpong", ["-n", 100000000], "-g",
           r"transport retry counter exceeded \(12\)", 14, 7)


def pingpong_events(place):
    killed(place, "ibv_rc_pingpong", ["-e", "-n", 100000000], "-g",
           r"transport retry counter exceeded \(12\)", 14, 7)


def perftest_poll(place):
    killed(place, "ib_write_bw", ["-F", "-N", "-n", 100000000, "-t", 8, "-u", 14], "-x",
           r"(Failed status|status) 12", 14, 7)


def perftest_read(place):
    killed(place, "ib_read_bw", ["-F", "-N", "-n", 100000000, "-u", 13], "-x",
           r"(Failed status|status) 12", 13, 7)


def flushed(place):
    """The first request gets 12, all others and the receives 5, in order; the QP is in error (6)."""
    for code, retries, options in ((14, 3, []), (16, 0, ["-e"]), (13, 7, [])):
        pair = Pair(place, TRANSFER, ["-k", "-t", code, "-r", retries] + options).go()
        status = pair.client.wait(4 * timeout_s(code) * (retries + 1) + 10)
        out = pair.client.output()
        pair.kill()
        check(status == 0, "%s: status %s\n%s" % (pair.title, status, out))
        got = re.findall(r"^(send|receive) (\d+): status (\d+)", out, re.M)
        sends = [int(s) for kind, _, s in got if kind == "send"]
        receives = [int(s) for kind, _, s in got if kind == "receive"]
        check(sends == [12] + [5] * 7 and receives == [5] * 4, "%s: %s" % (pair.title, got))
        check(got[0] == ("send", "0", "12"), "%s: %s is first" % (pair.title, got[0]))
        m = re.search(r"first error after ([\d.]+) s, QP state (\d+)", out)
        check(m and m.group(2) == "6", out)
        in_time(pair.title, float(m.group(1)), code, retries)


if __name__ == "__main__":
    main({"pingpong_poll": pingpong_poll, "pingpong_events": pingpong_events,
          "perftest_poll": perftest_poll, "perftest_read": perftest_read, "flushed": flushed})
