#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""No processor time when idle; and a target that never calls verbs serves all the same."""
import signal
import time

from pair import Pair, check, main

FOR_EVER = 100000000
WATCH_S = 2.0
IDLE_CPU_S = 0.020


def watch_idle(process, what):
    time.sleep(0.5)
    before = process.cpu_s()
    time.sleep(WATCH_S)
    used = process.cpu_s() - before
    check(process.running(), "%s ended\n%s" % (what, process.output()))
    check(used < IDLE_CPU_S, "%s used %.1f ms of CPU in %g s" % (what, used * 1e3, WATCH_S))


def listening(place):
    """The device is open, a QP made and receives are posted before ibv_rc_pingpong listens."""
    pair = Pair(place, "ibv_rc_pingpong", [])
    pair.server.wait_listen(pair.port)
    watch_idle(pair.server, pair.title)
    pair.kill()


def perftest_listening(place):
    pair = Pair(place, "ib_write_bw", ["-F"], gid_flag="-x")
    pair.server.wait_listen(pair.port)
    watch_idle(pair.server, pair.title)
    pair.kill()


def after_traffic(place):
    """Connected, warm, and then silence: the initiator is stopped, its target has nothing to do."""
    for program in ("ib_read_lat", "ib_write_bw"):
        pair = Pair(place, program, ["-F", "-n", FOR_EVER] + (["-N"] if program == "ib_write_bw" else []),
                    gid_flag="-x").go().underway()
        pair.client.signal(signal.SIGSTOP)
        watch_idle(pair.server, program + "'s target")
        pair.kill()


def main_thread_s(process):
    with open("/proc/%d/schedstat" % process.pid) as f:
        return int(f.read().split()[0]) / 1e9


def sleeps(place, program):
    pair = Pair(place, program, ["-F", "-n", FOR_EVER] + (["-N"] if program.endswith("_bw") else []), gid_flag="-x").go().underway()
    before, sent = main_thread_s(pair.server), pair.sent()
    time.sleep(0.15)
    pair.underway(0, sent + 100)
    used = main_thread_s(pair.server) - before
    pair.kill()
    check(used < 0.005, "%s: the target's thread ran for %.1f ms" % (pair.title, used * 1e3))


def sleeping_target(place):
    """The target's own thread sleeps in a TCP read throughout; reads, writes and atomics are served."""
    for program in ("ib_read_lat", "ib_atomic_lat", "ib_write_bw"):
        sleeps(place, program)


if __name__ == "__main__":
    main({"listening": listening, "perftest_listening": perftest_listening, "after_traffic": after_traffic,
          "sleeping_target": sleeping_target})
