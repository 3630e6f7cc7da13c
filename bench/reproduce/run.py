# SPDX-License-Identifier: BSD-2-Clause
"""One simulation: the command that repeats it, the files in its folder, and figures that several parts read from them."""
import argparse
import csv
import json
import os
import pathlib
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
SCENARIOS = ROOT / "bench" / "scenarios"

options = argparse.Namespace()    # of the command line; bench/reproduce.py fills it


class Run:
    """One simulation: its name, its scenario, its settings."""

    def __init__(self, name, scenario, *sets, seed=None):
        self.name, self.scenario, self.sets, self.seed = name, scenario, list(sets), seed
        self.summary = self.simulator = self.error = None
        self.dir = None

    def command(self):
        return ("verbena sim bench/scenarios/" + self.scenario + ".ini" + "".join(f" --set {s}" for s in self.sets) +
                (f" --seed {self.seed}" if self.seed else ""))

    def do(self, tool, base, seed):
        self.dir = base / self.name
        if (options.reuse or options.kept) and (self.dir / "simulator.json").exists() and not (self.dir / "INCOMPLETE").exists():
            self.load()
            return
        if options.kept:
            return
        argv = [tool, "sim", str(SCENARIOS / (self.scenario + ".ini")), "--seed", str(self.seed or seed),
                "--report", str(self.dir), "--quiet"]
        for s in self.sets:
            argv += ["--set", s]
        began = time.monotonic()
        # A report that nobody keeps has no drawings: gnuplot is not found.
        env = None if options.keep else dict(os.environ, PATH="/nonexistent")
        done = subprocess.run(argv, capture_output=True, text=True, env=env)
        self.wall = time.monotonic() - began
        if done.returncode:
            self.error = (done.stderr or done.stdout).strip().splitlines()[-1:] or ["failed"]
            self.error = self.error[0]
        if (self.dir / "simulator.json").exists():
            self.load()
        print(f"{self.name}: {self.wall:.0f} s{' FAILED: ' + self.error if self.error else ''}",
              file=sys.stderr, flush=True)

    def load(self):
        self.summary = json.loads((self.dir / "summary.json").read_text())
        self.simulator = json.loads((self.dir / "simulator.json").read_text())

    def rows(self, name):
        with open(self.dir / name, newline="") as f:
            return list(csv.DictReader(f))

    def figure(self, name):
        return self.summary["figures"].get(name)

    def gbps(self, column="total", begin=0.0):
        """Mean payload rate from a share of the run's time on."""
        rows = [r for r in self.rows("goodput.csv") if int(r["time_ps"]) >= begin * self.figure("time")]
        span = sum(int(r["window_ps"]) for r in rows)
        return sum(int(r[column + "_bps"]) * int(r["window_ps"]) for r in rows) / span / 1e9 if span else 0.0

    def queue_kb(self, p, node, port=0):
        """The length that a port's queue is below for p per cent of the time, to 1 KB."""
        bins = [(int(r["bytes_up_to"]), int(r["time_ps"])) for r in self.rows("queue_histogram.csv")
                if r["node"] == str(node) and r["port"] == str(port)]
        left = sum(t for _, t in bins) * p / 100
        for top, t in sorted(bins):
            left -= t
            if left <= 0:
                return top / 1e3
        return 0.0

    def queue_max_kb(self, begin):
        """The longest of all queues, from a share of the run's time on."""
        return max((int(r["bytes_max"]) for r in self.rows("queue_longest.csv")
                    if int(r["time_ps"]) >= begin * self.figure("time")), default=0) / 1e3

    def pauses_at(self, nodes):
        """Pause frames that these switches sent or received."""
        return sum(int(r["pause_tx"]) + int(r["pause_rx"]) for r in self.rows("ports.csv") if int(r["node"]) in nodes)

    def flows(self):
        return [f for f in self.rows("flows.csv") if f["fct_ps"]]


def percentile(values, p):
    """A percentile as in the plots of the HPCC simulator."""
    values = sorted(values)
    return values[min(len(values) * p // 100, len(values) - 1)] if values else None


def done(runs):
    """The runs that have results, by name."""
    return {r.name: r for r in runs if r.summary}


class Table:
    """Published statements beside the simulated ones: a row each, with the commands that repeat it."""

    def __init__(self):
        self.lines, self.held, self.missed = [], 0, 0

    def row(self, what, published, here, holds, *used):
        """holds: None where there is nothing to judge. used: the runs that here was read from, or a text for many."""
        self.held += holds is True
        self.missed += holds is False
        commands = "; ".join(f"`{u if isinstance(u, str) else u.command()}`" for u in used)
        self.lines.append(f"| {what} | {published} | {here} | {'' if holds is None else 'yes' if holds else 'no'} | {commands} |")

    def write(self, out):
        if self.lines:
            out += ["\n| statement | published | here | holds | command |", "|---|---|---|---|---|"] + self.lines
        if self.held or self.missed:
            out.append(f"\n{self.held} of {self.held + self.missed} hold.")
