#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""
Every byte right: tests/programs/transfer.c, a plain verbs program, draws operations from a seed and
checks all memory; here on a clean network and on a bad one. And every message: tests/programs/asleep.c.
"""
import os
import re
import time

from pair import BUILD, TIME_S, Failure, Pair, Skip, check, main, perftest, pingpong

ASLEEP = os.path.join(BUILD, "tests", "programs", "asleep")
TRANSFER = os.path.join(BUILD, "tests", "programs", "transfer")


def transfer(place, options, seconds=TIME_S, env=None, program=TRANSFER):
    pair = Pair(place, program, options, env=env).go()
    for out in pair.finish(seconds):
        check("every one right" in out, "%s: no result\n%s" % (pair.title, out))
    return pair


def clean(place, times=1):
    transfer(place, ["-n", 20 * times, "-s", 11])
    transfer(place, ["-n", 8 * times, "-s", 12, "-e"])
    transfer(place, ["-n", 17 * times, "-s", 13, "-c", "UD", "-b", 1000])
    transfer(place, ["-n", 2 * times, "-s", 15, "-b", 3000000])


def clean_long(place):
    clean(place, 3)


def clean_uc(place):
    transfer(place, ["-n", 60, "-s", 14, "-c", "UC", "-b", 8000])


def sanitized(place):
    """Programs that were built with sanitizers, which see nothing wrong in what the library does."""
    for name in ("transfer_asan", "transfer_tsan"):
        program = os.path.join(BUILD, "tests", "programs", name)
        if not os.path.exists(program):
            raise Skip("%s was not built" % name)
        transfer(place, ["-n", 6, "-s", 16], program=program)


def asleep(messages, seconds):
    """Ends that sleep whenever their CQ is empty."""
    def run(place):
        pair = Pair(place, ASLEEP, ["-n", messages]).go()
        for out in pair.finish(seconds):
            naps = re.search(r"%d messages each way, (\d+) naps" % messages, out)
            check(naps and int(naps[1]) > messages / 100, "%s: no result\n%s" % (pair.title, out))
    return run


def spoiled(spec, batches=80, most=60000):
    """Faults at both ends."""
    def run(place):
        env = {"VERBENA_IMPAIR": spec}
        transfer(place, ["-n", batches, "-s", 21, "-b", most], env=env)
    return run


def unless_deserted(run, tries=4):
    """
    Who ends first acknowledges nothing any more. Where its last ACKs were lost, and there is one a QP, the
    server's last requests are never acknowledged, as they would not be by any other adapter.
    """
    for left in reversed(range(tries)):
        try:
            return run()
        except Failure as wrong:
            if not left or "status of server 1, of client 0" not in str(wrong) or \
               "transport retry counter exceeded" not in str(wrong):
                raise


def spoiled_pingpong(place):
    env = {"VERBENA_IMPAIR": "drop=0.5%,seed=7"}
    pingpong(place, "ibv_rc_pingpong", ["-c"], iters=400, size=20000, env=env)
    pingpong(place, "ibv_rc_pingpong", ["-c", "-e"], iters=100, size=4096, env=env)
    unless_deserted(lambda: pingpong(place, "ibv_srq_pingpong", ["-c"], iters=20, size=4096, env=env))


def spoiled_perftest(place):
    env = {"VERBENA_IMPAIR": "drop=0.2%,reorder=0.2%,seed=3"}
    for program in ("ib_write_bw", "ib_send_bw", "ib_read_bw"):
        perftest(place, program, iters=100, sizes=[65536], env=env)
    perftest(place, "ib_atomic_bw", iters=300, sizes=[8], env=env)


def spoiled_counts(place):
    """The configured faults did happen, as the counters show."""
    pair = Pair(place, TRANSFER, ["-n", 150, "-s", 5, "-b", 60000],
                env={"VERBENA_IMPAIR": "drop=2%,seed=9"}).go()
    pair.client.wait_text("seed")
    best = {}
    while pair.client.running():
        out = place.tool(0, "stat", "--json")
        for name, value in re.findall(r'"(io_impair_dropped|retransmits)": *(\d+)', out):
            best[name] = max(best.get(name, 0), int(value))
        time.sleep(0.05)
    pair.finish()
    check(best.get("retransmits", 0) > 0 and best.get("io_impair_dropped", 0) > 0,
          "no fault was counted: %s" % best)


if __name__ == "__main__":
    main({"clean": clean, "clean_long": clean_long, "clean_uc": clean_uc, "asleep": asleep(20000, TIME_S), "asleep_long": asleep(1000000, 1000),
          "sanitized": sanitized, "pingpong": spoiled_pingpong, "perftest": spoiled_perftest, "counts": spoiled_counts,
          "drop": spoiled("drop=1%,seed=7"),
          "dup": spoiled("dup=5%,seed=8"),
          "reorder": spoiled("reorder=2%,seed=9"),
          "corrupt": spoiled("corrupt=1%,seed=10"),
          "delay": spoiled("delay=300us,jitter=200us,seed=11", 15, 30000),
          "rate": spoiled("rate=200M,seed=12", 15, 60000),
          "everything": spoiled("drop=0.5%,dup=1%,reorder=1%,corrupt=0.5%,jitter=50us,seed=13", 30)})
