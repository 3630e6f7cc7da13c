#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Computes what the SDR paper states of its schemes with `verbena sdr`, in both readings of its timer and chunk, and what ours
reaches beside the bound (sdr_beyond.py), and writes a page of tables; docs/sdr-results.md has the verdicts. Every number on the
page comes from a command that the page names.

The answers of commands are kept (sdr_runs.py), so the page can be made in slices: with --seconds N no command begins after N
seconds, what there was no time for is said to be not run, and the next time goes on from there."""
import argparse
import csv
import io
import math
import os
import pathlib
import re
import sys

import sdr_beyond
from sdr_runs import NotRun, Runs

ROOT = pathlib.Path(__file__).resolve().parent.parent

# The paper fixes neither: losses are of chunks in all its figures, so a packet stands for a chunk here.
READINGS = {"A": ["-p", "4KiB", "-c", "4KiB", "-o", "3"], "B": ["-p", "64KiB", "-c", "64KiB", "-o", "4"]}
# T17 draws what the formulas give; the page names the tests that do it.
TOOL = str(ROOT / "build" / "verbena")
EC = str(ROOT / "build" / "bench" / "ec")
runs = None  # sdr_runs.Runs


def table(command):
    return list(csv.DictReader(io.StringIO(runs.answer([TOOL, "sdr", *command.split(), "--csv"])["out"])))


def times(reading, scheme, size="128MiB", loss="1e-5", tail=False, *more):
    """Mean or 99.9th percentile, by the ideal time."""
    command = " ".join(["model", *READINGS[reading], "-s", size, "-l", loss, *more])
    row = next(r for r in table(command) if r["scheme"] == scheme)
    return float(row["p999_s" if tail else "mean_s"]) / float(row["ideal_s"])


def second(reading, scheme, loss, code="32,8"):
    command = " ".join(["model", *READINGS[reading], "-s", "128MiB", "-l", loss, "-k", code])
    return float(next(r for r in table(command) if r["scheme"] == scheme)["second_round"])


def ring(reading, loss, nodes, size="128MiB"):
    rows = table(" ".join(["ring", *READINGS[reading], "-s", size, "-l", loss, "-n", str(nodes)]))
    of = {r["scheme"]: float(r["p999_s"]) for r in rows}
    return of["SR"] / of["EC"]


def numbers(values, form="%.2f"):
    return ", ".join(form % v for v in values)


SIZES = ["128KiB", "1MiB", "8MiB", "64MiB", "512MiB", "4GiB", "32GiB", "256GiB"]
GRID_SIZES = ["128KiB", "1MiB", "8MiB", "64MiB", "128MiB", "512MiB", "1GiB", "8GiB"]
GRID_LOSSES = ["1e-6", "1e-5", "1e-4", "1e-3", "1e-2"]


def most(reading, tail, scheme="SR", by=None):
    """The largest slowdown over the grid, or how many times as long as `by` at most."""
    best = 0
    for size in GRID_SIZES:
        for loss in GRID_LOSSES:
            t = times(reading, scheme, size, loss, tail) / (times(reading, by, size, loss, tail) if by else 1)
            best = max(best, t)
    return best


def least_of_coding(reading):
    return min(times(reading, "SR", s, l) / times(reading, "EC", s, l) for s in GRID_SIZES[:-1] for l in GRID_LOSSES)


def rows():
    """(target, claim, what is listed, value in a reading)."""
    yield ("T1", "SR slowest, near 2.5 times, where one loss becomes likely; coding stays near 1",
           "SR, mean, 1e-5: " + ", ".join(SIZES), lambda r: numbers(times(r, "SR", s) for s in SIZES))
    yield ("T2", "above 32 GiB injection rules and coding pays its parity", "32 GiB, 1e-5: SR, EC",
           lambda r: numbers(times(r, s, "32GiB") for s in ("SR", "EC")))
    yield ("T3", "8 GiB turns from large to small with distance", "SR at 75, 1500, 3750, 6000 km; EC at 75, 6000 km",
           lambda r: numbers([times(r, "SR", "8GiB", "1e-5", False, "-d", d) for d in ("75km", "1500km", "3750km", "6000km")] +
                             [times(r, "EC", "8GiB", "1e-5", False, "-d", d) for d in ("75km", "6000km")]))
    yield ("T4", "3 to 10 times above 1e-4, in steps of the timer", "SR, 128 MiB: 1e-4, 1e-3, 1e-2, 1e-1",
           lambda r: numbers(times(r, "SR", "128MiB", l) for l in ("1e-4", "1e-3", "1e-2", "1e-1")))
    yield ("T5", "SR's mean up to 6.5 times", "most over the grid", lambda r: numbers([most(r, False)]))
    yield ("T6", "SR's 99.9 % up to 12.2 times", "most over the grid", lambda r: numbers([most(r, True)]))
    yield ("T7", "reliability that fits is up to 5 times (mean) and 12 times (99.9 %) faster", "SR by EC, most over the grid",
           lambda r: numbers([most(r, False, "SR", "EC"), most(r, True, "SR", "EC")]))
    yield ("T8", "NACK up to 4 times faster than SR", "SR by NACK, most over the grid: mean, 99.9 %",
           lambda r: numbers([most(r, False, "SR", "NACK"), most(r, True, "SR", "NACK")]))
    yield ("T9", "coding wins from 128 KiB to 1 GiB and 1e-6 to 1e-2", "SR by EC, least over that part of the grid",
           lambda r: numbers([least_of_coding(r)]))
    yield ("T10", "SR is best below 1e-6 and above 1 GiB", "8 GiB at 1e-6: SR, EC; 1 GiB at 1e-7: SR, EC",
           lambda r: numbers([times(r, "SR", "8GiB", "1e-6"), times(r, "EC", "8GiB", "1e-6"),
                              times(r, "SR", "1GiB", "1e-7"), times(r, "EC", "1GiB", "1e-7")]))
    yield ("T11", "small messages: SR and coding are equal", "128 KiB at 1e-4: SR, EC",
           lambda r: numbers([times(r, "SR", "128KiB", "1e-4"), times(r, "EC", "128KiB", "1e-4")], "%.3f"))
    yield ("T12", "(32,8) bears more than 1e-2", "falls back: (32,8) at 1e-2, 3e-2; (32,4), (16,4), (8,2) at 1e-2",
           lambda r: numbers([second(r, "EC", "1e-2"), second(r, "EC", "3e-2"), second(r, "EC", "1e-2", "32,4"),
                              second(r, "EC", "1e-2", "16,4"), second(r, "EC", "1e-2", "8,2")], "%.2g"))
    yield ("T13", "XOR (32,8) falls back at about 1e-3", "falls back at 1e-3", lambda r: numbers([second(r, "XOR", "1e-3")], "%.2g"))
    yield ("T15", "distance or rate turn 128 MiB from bound by injection to bound by round trips",
           "SR, 1e-5: 100 Gbit/s 75 km; 400 Gbit/s, 3.2 Tbit/s 3750 km; EC: first, last",
           lambda r: numbers([times(r, "SR", "128MiB", "1e-5", False, "-r", "100Gbps", "-d", "75km"),
                              times(r, "SR", "128MiB", "1e-5"), times(r, "SR", "128MiB", "1e-5", False, "-r", "3200Gbps"),
                              times(r, "EC", "128MiB", "1e-5", False, "-r", "100Gbps", "-d", "75km"),
                              times(r, "EC", "128MiB", "1e-5", False, "-r", "3200Gbps")]))
    yield ("T16", "ring all-reduce, 99.9 %: coding 3 to more than 6 times faster than SR, more with more loss",
           "SR by EC, 4 nodes, 128 MiB: 1e-5, 1e-4, 1e-3, 1e-2; 8 nodes, 1 GiB: 1e-3",
           lambda r: numbers([ring(r, l, 4) for l in ("1e-5", "1e-4", "1e-3", "1e-2")] + [ring(r, "1e-3", 8, "1GiB")]))


HEAD = """# Reliability over long links in full

docs/sdr-results.md says what the targets and the readings A and B are. Times are multiples of injection and one round trip. The grid
is 128 KiB to 8 GiB and 1e-6 to 1e-2, loss of chunks.

| target | the paper | here | reading A | reading B |
|---|---|---|---|---|
"""


def coding():
    """T14: how many processors hide the encoding of 400 Gbit/s, with the quickest kernel that this one has."""
    got = runs.answer([EC, "65536", "16"])
    quickest = {}
    for code, kernel, rate in re.findall(r"^(\w+ +\( *\d+, *\d+\)) +(\w+) +([\d.]+)", got["out"], re.M):
        quickest[code.replace(" ", "")] = max(quickest.get(code.replace(" ", ""), (0, "")), (float(rate), kernel))
    xor, mds = quickest["xor(32,8)"], quickest["cauchy(32,8)"]
    return ("XOR %.0f Gbit/s a processor (%s), so %d; MDS %.0f (%s), so %d; ratio %.1f. By the clock, with a load of %.0f (`build/bench/ec "
            "65536 16`)" % (*xor, math.ceil(400 / xor[0]), *mds, math.ceil(400 / mds[0]), xor[0] / mds[0], got["load"]))


def value(of, reading):
    try:
        return of(reading)
    except NotRun:
        return "not run"


def paper():
    text = HEAD + "".join("| %s | %s | %s | %s | %s |\n" % (t, claim, what, value(of, "A"), value(of, "B"))
                          for t, claim, what, of in rows())
    text += "\nThe rows come from these commands, with `--csv`:\n\n    verbena sdr model %s\n    verbena sdr model %s\n\n" % (
        " ".join(READINGS["A"]), " ".join(READINGS["B"]))
    text += ("and `-s SIZE -l LOSS`, `-d` and `-r` where a row names distance or rate, `-k` where it names a code; T16 from "
             "`verbena sdr ring` with `-n`.\n\n")
    try:
        return text + "T14, how many processors hide the encoding of 400 Gbit/s, the paper 4 and 8: " + coding() + ".\n"
    except NotRun:
        return text + "T14: not run.\n"


def main():
    global TOOL, EC, runs
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--page", metavar="FILE", help="write the page here; default: print it")
    p.add_argument("--tool", default=TOOL)
    p.add_argument("--tail-tool", default=sdr_beyond.TAIL, help="build/bench/sdr_tail")
    p.add_argument("--ec-tool", default=EC, help="build/bench/ec")
    p.add_argument("--share", type=float, default=1, help="of the messages of each cell beyond the paper; default: 1")
    p.add_argument("--keep", metavar="DIR", default=str(ROOT / "build" / "reproduce-sdr"), help="of the answers; default: %(default)s")
    p.add_argument("--seconds", type=float, help="no command begins later")
    p.add_argument("-j", type=int, default=os.cpu_count(), help="commands at a time")
    a = p.parse_args()
    TOOL = sdr_beyond.tool = a.tool
    EC = a.ec_tool
    sdr_beyond.ec_tool = EC
    sdr_beyond.tail_tool = a.tail_tool
    sdr_beyond.share = a.share
    runs = sdr_beyond.runs = Runs(a.keep, a.seconds, a.j)
    # The rows of the paper take seconds, so they ask as they go.
    first = paper()
    runs.all(sdr_beyond.jobs())
    text = first + sdr_beyond.text()
    if a.page:
        pathlib.Path(a.page).parent.mkdir(parents=True, exist_ok=True)
        pathlib.Path(a.page).write_text(text)
    else:
        print(text)
    if runs.left_out:
        print("there was no time for %d; the same command goes on" % runs.left_out, file=sys.stderr)
    return 1 if runs.left_out else 0


if __name__ == "__main__":
    sys.exit(main())
