#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Simulates what others have published, and what this project wants, and writes docs/results.md.

Each run is `verbena sim` with a scenario of bench/scenarios and settings; the page names them, so that
any line of it can be had again. --quick takes minutes off by simulating less time; --only picks runs.
"""
import argparse
import concurrent.futures
import csv
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
SCENARIOS = ROOT / "bench" / "scenarios"


options = argparse.Namespace()


class Run:
    """One simulation: its name, its scenario, its settings."""

    def __init__(self, name, scenario, *sets):
        self.name, self.scenario, self.sets = name, scenario, list(sets)
        self.summary = self.simulator = self.error = None
        self.dir = None

    def command(self):
        return "verbena sim bench/scenarios/" + self.scenario + ".ini" + "".join(f" --set {s}" for s in self.sets)

    def do(self, tool, base, seed):
        self.dir = base / self.name
        if options.reuse and (self.dir / "simulator.json").exists() and not (self.dir / "INCOMPLETE").exists():
            self.load()
            return
        argv = [tool, "sim", str(SCENARIOS / (self.scenario + ".ini")), "--seed", str(seed),
                "--report", str(self.dir), "--quiet"]
        for s in self.sets:
            argv += ["--set", s]
        began = time.monotonic()
        done = subprocess.run(argv, capture_output=True, text=True)
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

    def flows(self):
        return [f for f in self.rows("flows.csv") if f["fct_ps"]]


# ---- the HPCC evaluation ------------------------------------------------------------------------------

# Read off the plots of the project's site, eta 0.99, within 3 %. size: the twentieths of the flows, in
# order of size, that the point stands for; percentile; HPCC, DCQCN+w, TIMELY+w, DCTCP.
PUBLISHED = {
    ("websearch", 30): [
        ("<= 6.7 KB", (0, 1), 95, (1.22, 3.05, 3.05, 2.65)), ("30 KB", (5,), 95, (1.68, 2.90, 2.92, 2.58)),
        ("200 KB", (11,), 95, (2.75, 3.20, 3.25, 3.20)), ("1 MB", (13,), 95, (3.7, 3.7, 3.7, 4.2)),
        ("5 MB", (17,), 95, (4.35, 3.75, 4.0, 4.05)), ("30 MB", (19,), 95, (4.05, 3.3, 3.5, 3.1)),
        ("<= 6.7 KB", (0, 1), 99, (1.70, 4.3, 4.35, 3.75)), ("30 KB", (5,), 99, (2.05, 3.95, 4.0, 3.5)),
        ("200 KB", (11,), 99, (3.65, 4.05, 4.1, 3.95)), ("1 MB", (13,), 99, (5.1, 6.1, 5.0, 6.8)),
        ("5 MB", (17,), 99, (6.3, 5.0, 6.0, 6.0)), ("30 MB", (19,), 99, (5.1, 4.15, 4.5, 3.95))],
    ("websearch", 50): [
        ("<= 6.7 KB", (0, 1), 95, (1.50, 4.65, 4.25, 3.75)), ("30 KB", (5,), 95, (2.35, 4.5, 4.15, 3.8)),
        ("200 KB", (11,), 95, (4.7, 5.2, 4.95, 4.9)), ("1 MB", (13,), 95, (6.8, 7.95, 6.8, 8.35)),
        ("5 MB", (17,), 95, (9.7, 7.2, 8.35, 7.9)), ("30 MB", (19,), 95, (8.7, 6.05, 7.35, 5.7)),
        ("<= 6.7 KB", (0, 1), 99, (2.03, 6.9, 6.3, 5.5)), ("30 KB", (5,), 99, (3.05, 6.25, 5.7, 5.0)),
        ("200 KB", (11,), 99, (6.5, 7.5, 6.45, 6.3)), ("1 MB", (13,), 99, (10, 11.4, 11.6, 13)),
        ("5 MB", (17,), 99, (14.6, 9.8, 14, 11)), ("30 MB", (19,), 99, (11.7, 8.0, 9.9, 7.6))],
    ("fb_hadoop", 30): [
        ("<= 7 KB", range(14), 95, (1.50, 2.74, 2.78, 2.43)), ("46 KB", (15,), 95, (1.99, 2.68, 2.71, 2.45)),
        ("120 KB", (17,), 95, (2.40, 2.72, 2.76, 2.60)), ("10 MB", (19,), 95, (4.3, 3.3, 3.8, 3.3)),
        ("<= 7 KB", range(14), 99, (2.12, 4.15, 4.32, 3.55)), ("46 KB", (15,), 99, (2.51, 3.63, 3.77, 3.23)),
        ("120 KB", (17,), 99, (3.12, 3.53, 3.63, 3.35)), ("10 MB", (19,), 99, (5.9, 4.25, 5.1, 4.25))],
    ("fb_hadoop", 50): [
        ("<= 7 KB", range(14), 95, (1.90, 4.4, 4.2, 3.55)), ("46 KB", (15,), 95, (2.93, 4.22, 4.10, 3.67)),
        ("120 KB", (17,), 95, (3.97, 4.38, 4.35, 4.1)), ("10 MB", (19,), 95, (10.6, 6.0, 8.5, 6.0)),
        ("<= 7 KB", range(14), 99, (2.63, 6.7, 6.4, 5.28)), ("46 KB", (15,), 99, (3.9, 5.7, 5.6, 4.85)),
        ("120 KB", (17,), 99, (5.5, 5.8, 5.7, 5.45)), ("10 MB", (19,), 99, (15, 7.8, 11.6, 7.8))],
}
ALGORITHMS = [
    ("HPCC", ["cc.algorithm=hpcc", "cc.eta=0.99"]),
    ("DCQCN+w", ["cc.algorithm=dcqcn_fw", "cc.window=on", "switch.int=off"]),
    ("TIMELY+w", ["cc.algorithm=timely", "cc.window=on", "switch.int=off", "transport.ack_class=control"]),
    ("DCTCP", ["cc.algorithm=dctcp", "switch.int=off", "switch.kmin=30KB", "switch.kmax=30KB",
               "switch.pmax=100%", "switch.ecn_rate=10Gbps"]),
]


def hpcc_runs(quick):
    span = "2ms" if quick else options.span
    loads = [("websearch", 30)] if quick else list(PUBLISHED)
    return [Run(f"{cdf}-{load}-{name}", "hpcc-eval", *sets, f"workload.web.cdf={cdf}",
                f"workload.web.load={load}%", f"workload.web.stop={span}",
                f"run.title={name}: {cdf} at {load} %")
            for cdf, load in loads for name, sets in ALGORITHMS]


def percentile(values, p):
    """As the plots of the HPCC simulator have it."""
    values = sorted(values)
    return values[min(len(values) * p // 100, len(values) - 1)] if values else None


def twentieths(run):
    flows = sorted((int(f["bytes"]), float(f["slowdown"])) for f in run.flows())
    n = len(flows)
    return [[s for _, s in flows[n * i // 20:n * (i + 1) // 20]] for i in range(20)]


def hpcc_page(runs, out):
    named = {r.name: r for r in runs}
    held = total = 0
    for (cdf, load), points in PUBLISHED.items():
        mine = [named.get(f"{cdf}-{load}-{name}") for name, _ in ALGORITHMS]
        if not any(mine):
            continue
        bins = [twentieths(r) if r and r.summary else None for r in mine]
        out.append(f"\n### {cdf}, {load} % load\n")
        out.append("| size | percentile | " + " | ".join(f"{n} (published)" for n, _ in ALGORITHMS) + " |")
        out.append("|---|---|" + "---|" * len(ALGORITHMS))
        for label, which, pct, published in points:
            band = 0.10 if label.startswith("<=") else 0.15
            cells = []
            for b, want in zip(bins, published):
                if b is None:
                    cells.append("-")
                    continue
                got = percentile([s for i in which for s in b[i]], pct)
                good = abs(got - want) <= band * want
                held += good
                total += 1
                cells.append(f"{got:.2f} ({want:g}){'' if good else ' *'}")
            out.append(f"| {label} | {pct} | " + " | ".join(cells) + " |")
        for r in mine:
            if r and r.summary:
                out.append(f"\n`{r.command()}`: {r.figure('flows_done')} of {r.figure('flows')} flows, "
                           f"{r.figure('pause_frames')} pauses, longest queue {r.figure('queue_max') / 1e3:.0f} KB")
    out.append(f"\nFlows begin within {'2ms' if options.quick else options.span}, and the network begins empty: the longest "
               "flows and the highest load have then seen less of a standing queue than in the published runs, which "
               "went on for longer.")
    if total:
        out.append(f"\n{held} of {total} points are within 10 % (short flows) or 15 % (others) of what was "
                   "published; a star marks the others.")


# ---- small runs with exact inputs ------------------------------------------------------------------------

SMALL = [
    ("incast-hpcc", "128 x 1 MB into one, HPCC", "small-incast", ["cc.algorithm=hpcc", "switch.int=on"],
     (10508, 11297, 11434)),
    ("incast-dcqcn", "the same, DCQCN (firmware)", "small-incast", ["cc.algorithm=dcqcn_fw", "switch.int=off"],
     (1678, 8940, 10927)),
    ("permutation-hpcc", "permutation, 128 x 2 MB, HPCC", "small-permutation",
     ["cc.algorithm=hpcc", "switch.int=on"], (193, 429, 1015)),
    ("permutation-dcqcn", "the same, DCQCN (firmware)", "small-permutation",
     ["cc.algorithm=dcqcn_fw", "switch.int=off"], (173, 698, 1437)),
]


def small_runs(quick):
    return [Run(name, scenario, *sets) for name, _, scenario, sets, _ in SMALL]


def fct_us(run):
    fcts = sorted((int(f["start_ps"]) + int(f["fct_ps"])) / 1e6 for f in run.flows())
    return fcts[0], fcts[len(fcts) // 2], fcts[-1]


def jain(run):
    rates = [int(f["bytes"]) / int(f["fct_ps"]) for f in run.flows()]
    return sum(rates) ** 2 / (len(rates) * sum(r * r for r in rates))


def small_page(runs, out):
    out.append("\nk = 8 fat-tree, 128 hosts, 100 Gbit/s, 1 us, payload 1000 B. Reference: the ns-3 simulator of "
               "HPCC on the same inputs; hashes of ECMP differ.\n")
    out.append("| run | first / median / last flow, us | reference | Jain | pauses |")
    out.append("|---|---|---|---|---|")
    for r, (_, label, _, _, reference) in zip(runs, SMALL):
        if not r.summary:
            continue
        out.append(f"| {label} | " + " / ".join(f"{v:.0f}" for v in fct_us(r)) + " | " +
                   " / ".join(str(v) for v in reference) + f" | {jain(r):.4f} | {r.figure('pause_frames')} |")


def small_check(runs):
    """HPCC's incast has no chance in it but the order of the starts: it must be the reference's."""
    for r, (name, _, _, _, reference) in zip(runs, SMALL):
        if name != "incast-hpcc" or not r.summary:
            continue
        got = fct_us(r)
        for mine, theirs in zip(got[1:], reference[1:]):
            if abs(mine - theirs) > 0.05 * theirs:
                return f"{name}: {mine:.0f} us, not {theirs} us"
        if jain(r) < 0.998:
            return f"{name}: Jain {jain(r):.4f}, not 0.9995"
    return None


# ---- what the project wants --------------------------------------------------------------------------------

def goal_runs(quick):
    big = [] if quick else [
        Run("a2a-1024", "goal-all-to-all", "topology.k=16", "workload.a2a.size=128MB"),
        Run("a2a-1024-degraded", "goal-all-to-all", "topology.k=16", "workload.a2a.size=128MB",
            "failures.degraded=1%"),
        Run("ring-1024", "goal-ring", "topology.k=16", "workload.ring.size=256MB"),
        Run("ring-1024-degraded", "goal-ring", "topology.k=16", "workload.ring.size=256MB",
            "failures.degraded=1%"),
    ]
    size = "32MB" if quick else "256MB"
    return [
        Run("a2a-128", "goal-all-to-all", f"workload.a2a.size={size}"),
        Run("a2a-128-degraded", "goal-all-to-all", f"workload.a2a.size={size}", "failures.degraded=1%"),
        Run("ring-128", "goal-ring", f"workload.ring.size={size}"),
        Run("ring-128-degraded", "goal-ring", f"workload.ring.size={size}", "failures.degraded=1%"),
        *[Run(f"a2a-64-{name}-{active}", "goal-against-rocev2", f"workload.a2a.active={active}", *sets)
          for active in (2, 1, 16)
          for name, sets in (("veroce", []), ("rocev2", ["transport.protocol=rocev2", "cc.algorithm=dcqcn",
                                                        "switch.pfc=on", "transport.cnp_interval=50us"]))],
        Run("long-clean", "goal-long-haul", "link.loss=0"),
        Run("long-lossy", "goal-long-haul"),
        Run("incast-100g", "goal-incast"),
        Run("incast-400g", "goal-incast", "link.rate=400Gbps"),
    ] + big


def share(run):
    c = run.rows("collectives.csv")
    return 100 * int(c[0]["ideal_ps"]) / int(c[0]["time_ps"]) if c and c[0]["time_ps"] else None


def spread_kbps(run):
    f = run.rows("fairness.csv")
    return (int(f[-1]["max_bps"]) - int(f[-1]["min_bps"])) / 1e3 if f else None


def goal_page(runs, out):
    named = {r.name: r for r in runs if r.summary}
    rows = []

    def row(goal, wanted, value, *used):
        rows.append(f"| {goal} | {wanted} | {value} | " + "; ".join(f"`{u.command()}`" for u in used) + " |")

    for hosts in (128, 1024):
        for kind, label in (("a2a", "all-to-all"), ("ring", "ring allreduce")):
            for tail, wanted in (("", ">= 97 %"), ("-degraded", ">= 95 %")):
                r = named.get(f"{kind}-{hosts}{tail}")
                s = r and share(r)
                if r:
                    row(f"{label}, {hosts} hosts, 400 Gbit/s{', 1 % of the links at half rate' if tail else ''}",
                        wanted, f"{s:.1f} %" if s else "not done", r)
    for active in (2, 1, 16):
        a, b = named.get(f"a2a-64-veroce-{active}"), named.get(f"a2a-64-rocev2-{active}")
        if a and b and share(a) and share(b):
            row(f"all-to-all, 64 hosts, {active} peers at a time, against RoCEv2 + DCQCN + ECMP",
                ">= 1.48 x" if active == 2 else "", f"{share(a) / share(b):.2f} x ({share(a):.0f} and "
                f"{share(b):.0f} % of ideal)", a, b)
    a, b = named.get("long-lossy"), named.get("long-clean")
    if a and b and a.flows() and b.flows():
        row("one flow, 100 km, 5 % loss, of loss-free", ">= 0.93",
            f"{int(b.flows()[0]['fct_ps']) / int(a.flows()[0]['fct_ps']):.3f}", a, b)
    for rate in ("100g", "400g"):
        r = named.get(f"incast-{rate}")
        if r and spread_kbps(r) is not None:
            row(f"128:1 incast at {rate.upper()}bit/s, most less least over 1 s", "<= 100 kbit/s",
                f"{spread_kbps(r):.0f} kbit/s", r)
    if rows:
        out.append("A collective's share is of what its bytes with headers take at the hosts' rate, until its slowest host is "
                   "done. A link at half rate between an edge switch and one of its four aggregation switches takes an "
                   "eighth off what the four hosts below can exchange with the rest, and all others wait for them: with 1 % "
                   "of the links degraded no more than 89.6 % is possible for the all-to-all, of which 124 parts of 127 "
                   "leave those four, and 93.3 % for the 16 rings, of which 60 parts of 64 do. The incast's receiver gives "
                   "out shares (`cc.rxshare`); a packet of 4 KB in a second is 33 kbit/s.")
        out += ["\n| goal | wanted | here | command |", "|---|---|---|---|"] + rows


PARTS = [
    ("hpcc", "The evaluation of HPCC", hpcc_runs, hpcc_page),
    ("small", "Small runs with exact inputs", small_runs, small_page),
    ("goals", "What this project wants", goal_runs, goal_page),
]


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--quick", action="store_true", help="a small subset, minutes")
    p.add_argument("--only", help="parts or runs, separated by commas: " + ", ".join(n for n, *_ in PARTS))
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--span", default="20ms", help="time in which flows of the HPCC evaluation begin (20ms)")
    p.add_argument("-j", type=int, default=os.cpu_count(), help="runs at a time")
    p.add_argument("--tool", default=str(ROOT / "build" / "verbena"))
    p.add_argument("--keep", metavar="DIR", help="keep the reports there")
    p.add_argument("--check", action="store_true", help="fail where the small runs are not the reference's")
    p.add_argument("--reuse", action="store_true", help="with --keep: runs that are there are not run again")
    p.add_argument("--page", metavar="FILE", help="write the page here; default: print it")
    a = p.parse_args(namespace=options)
    base = pathlib.Path(a.keep or tempfile.mkdtemp(prefix="verbena-reproduce-"))
    only = a.only.split(",") if a.only else None
    parts = []
    for name, title, runs, page in PARTS:
        rs = [r for r in runs(a.quick) if not only or name in only or r.name in only]
        if rs:
            parts.append((title, rs, page))
    runs = [r for _, rs, _ in parts for r in rs]
    if not runs:
        p.error(f"--only {a.only}: there is no such part or run")
    with concurrent.futures.ThreadPoolExecutor(a.j) as pool:
        list(pool.map(lambda r: r.do(a.tool, base, a.seed), runs))
    out = ["# Results", "", "Written by `make reproduce`. These are simulations: the code that ran is this tree's "
           f"transport core in `verbena sim`, seed {a.seed}{', quick subset' if a.quick else ''}. "
           "[simulator.md](simulator.md) says what is modelled."]
    for title, rs, page in parts:
        out.append(f"\n## {title}\n")
        page(rs, out)
    out.append("\n## What it took\n\n| run | packet-hops | million a second | peak MB |\n|---|---|---|---|")
    for r in runs:
        if r.summary and r.simulator:
            cpu = r.simulator["cpu_s"]
            hops = r.figure("packet_hops")
            out.append(f"| {r.name} | {hops / 1e6:.0f} M | {hops / 1e6 / cpu if cpu else 0:.2f} | "
                       f"{r.simulator['memory_bytes_peak'] / 1e6:.0f} |")
    failed = [r for r in runs if r.error or not r.summary]
    left_out = [r.name for _, _, rs, _ in PARTS for r in rs(a.quick) if r.name not in {x.name for x in runs}]
    if left_out:
        out.append("\nLeft out by --only: " + ", ".join(left_out) + ".")
    for r in failed:
        out.append(f"\nNot done: {r.name}: {r.error}")
    text = "\n".join(out) + "\n"
    if a.page:
        pathlib.Path(a.page).write_text(text)
    else:
        print(text)
    wrong = small_check(parts[0][1]) if a.check and parts[0][2] is small_page else None
    if wrong:
        print(wrong, file=sys.stderr)
        failed.append(wrong)
    if not a.keep:
        shutil.rmtree(base, ignore_errors=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
