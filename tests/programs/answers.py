#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""
What the device of rdma_cm answers to each command, in each order: answers.c asks, answers.txt says what Verbena answers and,
where that differs, what Linux does. tests/interop asks Linux.
"""
import os
import subprocess

from pair import BUILD, HERE, check, clear, main

PROGRAM = os.path.join(BUILD, "tests/programs/answers")
TABLE = os.path.join(HERE, "answers.txt")
LINUX = "    Linux: "
SOON_S = 60


def expected(of_linux):
    with open(TABLE) as f:
        rows = [line.rstrip("\n").split(LINUX) for line in f if not line.startswith("#")]
    return [row[0].split(" ", 1)[0] + " " + row[1] if of_linux and len(row) == 2 else row[0] for row in rows]


def differences(said, of_linux):
    """Lines of the table and of what was said, where they differ."""
    want = expected(of_linux)
    found = ["%s, and not: %s" % (a, b) for a, b in zip(said, want) if a != b]
    if len(said) != len(want):
        found.append("%d answers, and not %d" % (len(said), len(want)))
    return found


def address(place):
    """One of an interface where there is one: the device has no loopback address then."""
    out = subprocess.run(["ip", "-4", "-o", "addr", "show", "up", "scope", "global"], capture_output=True, text=True).stdout
    return out.split()[3].split("/")[0] if out and not place.spaces[0] else place.addresses[0]


def verbena(place):
    status, out = place.run(0, [PROGRAM, address(place)], SOON_S, {"VERBENA_QUIET": "1"})
    found = differences(out.splitlines(), False)
    check(status == 0 and not found, "status %s\n%s" % (status, "\n".join(found)))
    clear()


if __name__ == "__main__":
    main({"verbena": verbena})
