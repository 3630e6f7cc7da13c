#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""
UC and UD repeat nothing, so what others take away by coming and going is lost: tests/programs/trains.c, two processes
that send each other trains and count, while programs of the same user start, end, and are stopped and killed.
"""
import json
import os
import random
import re
import signal
import time

from pair import BUILD, check, main

TRAINS = os.path.join(BUILD, "tests", "programs", "trains")
SECONDS = 2
OTHERS_MAX = 8
SEED = int(os.environ.get("VERBENA_SEED") or random.randrange(1 << 32))


def watcher(place):
    """A program that has joined, and stays."""
    p = place.start(0, ["ibv_asyncwatch"])
    end = time.monotonic() + 20
    while p.pid not in [m["pid"] for m in json.loads(place.tool(0, "stat", "--json"))["processes"]]:
        check(p.running() and time.monotonic() < end, "ibv_asyncwatch does not join: " + p.output())
    return p


def start_pair(place, service):
    pair = place.start(0, [TRAINS, "-c", service, "-g", place.gid_index(0), "-t", SECONDS])
    pair.wait_text(r"(?s)ready.*ready")
    return pair


def start_pair_behind_a_sleeper(place, service):
    """
    The pair, and others that have joined: one of these slept while a dead one's place was taken, and reports
    its old place to those that join next.
    """
    others = []
    for _ in range(2):
        others.append(watcher(place))
        others[-1].signal(signal.SIGSTOP)
    sleeper = watcher(place)
    others += [sleeper, watcher(place)]
    others.pop(1).kill()
    sleeper.signal(signal.SIGSTOP)
    pair = start_pair(place, service)
    others.append(watcher(place))
    sleeper.signal(signal.SIGCONT)
    return pair, others


def come(place, draw, others):
    """One that opens the device and stays, or looks at it and ends; sometimes a few at once."""
    for _ in range(draw.choice([1, 1, 1, 4])):
        others.append(place.start(0, [draw.choice(["ibv_asyncwatch", "ibv_asyncwatch", "ibv_devinfo"])]))


def come_and_go(place, draw, others, seconds):
    started = 0
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        for p in others[:]:
            if not p.running():
                p.kill()
                others.remove(p)
        if len(others) < OTHERS_MAX and draw.random() < 0.5:
            before = len(others)
            come(place, draw, others)
            started += len(others) - before
        elif others:
            draw.choice(others).signal(draw.choice([signal.SIGKILL, signal.SIGKILL, signal.SIGTERM,
                                                    signal.SIGSTOP, signal.SIGCONT]))
        time.sleep(draw.random() * 0.05)
    for p in others:
        p.kill()
    return started


def trains(service):
    def run(place):
        draw = random.Random(SEED)
        place.gid_index(0)  # by a program that comes and goes, before places matter
        pair, others = start_pair_behind_a_sleeper(place, service)
        started = come_and_go(place, draw, others, SECONDS - 1)
        status = pair.wait(SECONDS + 60)
        out = "seed %d, %d others started\n%s" % (SEED, started, pair.output())
        pair.kill()
        check(status == 0, "status %s, %s" % (status, out))
        ends = re.findall(r"(\d+) sent, (\d+) received, (\d+) lost", out)
        check(len(ends) == 2 and started, out)
        for sent, received, lost in ends:
            check(int(sent) > 0 and lost == "0", out)
    return run


if __name__ == "__main__":
    main({"uc": trains("UC"), "ud": trains("UD")})
