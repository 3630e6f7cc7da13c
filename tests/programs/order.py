#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""
tests/programs/order.c, a plain verbs program that relies on memory being written in order, on a network that loses,
repeats and reorders, with the settings that a user has who sets none.
"""
import os

from pair import BUILD, Pair, check, main

ORDER = os.path.join(BUILD, "tests", "programs", "order")
SPEC = "drop=1%,reorder=2%,dup=1%,seed="


def order(place, kind, rounds, size, protocol, seed, env=None):
    env = {"VERBENA_IMPAIR": SPEC + str(seed), "VERBENA_PROTOCOL": protocol, **(env or {})}
    pair = Pair(place, ORDER, ["-k", kind, "-n", rounds, "-b", size, "-s", seed], env=env).go()
    for out in pair.finish(60):
        check(", 0 wrong" in out, "%s, %s: order was not kept\n%s" % (pair.title, protocol, out))


def rewritten(place):
    order(place, "rewritten", 40, 8192, "auto", 1)
    order(place, "rewritten", 40, 64, "auto", 2)
    order(place, "rewritten", 10, 8192, "rocev2", 3)


def last(place):
    order(place, "last", 60, 65536, "auto", 4)
    order(place, "last", 10, 65536, "rocev2", 5)


def flag(place):
    order(place, "flag", 60, 65536, "auto", 6)
    order(place, "flag", 10, 65536, "rocev2", 7)


def at_random(place):
    order(place, "random", 2, 4 << 20, "auto", 8)
    order(place, "random", 20, 20000, "auto", 11)
    order(place, "random", 6, 200000, "auto", 9, {"VERBENA_ORDER": "strong"})
    order(place, "random", 1, 200000, "rocev2", 10)


def paths(place):
    for n in (1, 5, 16):
        order(place, "random", 3, 400000, "auto", 10 + n, {"VERBENA_VEROCE_PATHS": str(n)})


if __name__ == "__main__":
    main({"rewritten": rewritten, "last": last, "flag": flag, "random": at_random, "paths": paths})
