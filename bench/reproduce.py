#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Simulates published results and this project's goals, and writes a page of tables; docs/results.md has the verdicts.

Each run is `verbena sim` with a scenario of bench/scenarios and settings; the page names them, so that
any line of it can be had again. --quick takes minutes off by simulating less time; --only picks parts or
runs. bench/reproduce has the runs and how they are judged, a file for each part of the page.
"""
import argparse
import concurrent.futures
import os
import pathlib
import shutil
import sys
import tempfile

from reproduce import dcqcn, goals, hpcc, hpcc_more, others, robust, scopes, small, trees
from reproduce.run import ROOT, options

PARTS = {"hpcc": hpcc, "hpcc-more": hpcc_more, "small": small, "trees": trees, "dcqcn": dcqcn, "others": others,
         "goals": goals, "robust": robust, "scopes": scopes}


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--quick", action="store_true", help="a small subset, minutes")
    p.add_argument("--only", help="parts or runs, separated by commas: " + ", ".join(PARTS))
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--span", metavar="TIME", help="in which flows of the HPCC evaluation begin (20 to 50 ms by load)")
    p.add_argument("-j", type=int, default=os.cpu_count(), help="runs at a time")
    p.add_argument("--tool", default=str(ROOT / "build" / "verbena"))
    p.add_argument("--keep", metavar="DIR", help="keep the reports there")
    p.add_argument("--check", action="store_true", help="fail where the small runs are not the reference's")
    p.add_argument("--reuse", action="store_true", help="with --keep: runs that are there are not run again")
    p.add_argument("--kept", action="store_true", help="with --keep: nothing is run; the page tells of what is there")
    p.add_argument("--page", metavar="FILE", help="write the page here; default: print it")
    a = p.parse_args(namespace=options)
    if a.page:
        pathlib.Path(a.page).parent.mkdir(parents=True, exist_ok=True)
    base = pathlib.Path(a.keep or tempfile.mkdtemp(prefix="verbena-reproduce-"))
    only = a.only.split(",") if a.only else None
    parts = []
    for name, part in PARTS.items():
        rs = [r for r in part.runs(a.quick) if not only or name in only or r.name in only]
        if rs:
            parts.append((part, rs))
    runs = [r for _, rs in parts for r in rs]
    if not runs:
        p.error(f"--only {a.only}: there is no such part or run")
    with concurrent.futures.ThreadPoolExecutor(a.j) as pool:
        list(pool.map(lambda r: r.do(a.tool, base, a.seed), runs))
    out = ["# Results in full", "", f"By `verbena sim`, seed {a.seed}{', quick subset' if a.quick else ''}. "
           "docs/results.md has the verdicts, and says why some rows miss what was published."]
    for part, rs in parts:
        out.append(f"\n## {part.TITLE}\n")
        part.page(rs, out)
    out.append("\n## What it took\n\n| run | packet-hops | million a second | peak MB |\n|---|---|---|---|")
    for r in runs:
        if r.summary and r.simulator:
            cpu = r.simulator["cpu_s"]
            hops = r.figure("packet_hops")
            out.append(f"| {r.name} | {hops / 1e6:.0f} M | {hops / 1e6 / cpu if cpu else 0:.2f} | "
                       f"{r.simulator['memory_bytes_peak'] / 1e6:.0f} |")
    failed = [r for r in runs if (r.error or not r.summary) and not a.kept]
    if a.kept and any(not r.summary for r in runs):
        out.append("\nNot run for this page: " + ", ".join(r.name for r in runs if not r.summary) + ".")
    taken, left_out = {r.name for r in runs}, []
    for name, part in PARTS.items():
        missing = [r.name for r in part.runs(a.quick) if r.name not in taken]
        left_out += [f"all of {name}"] if len(missing) == len(part.runs(a.quick)) else missing
    if left_out:
        out.append("\nLeft out by --only: " + ", ".join(left_out) + ".")
    for r in failed:
        out.append(f"\nNot done: {r.name}: {r.error}")
    text = "\n".join(out) + "\n"
    if a.page:
        pathlib.Path(a.page).write_text(text)
    else:
        print(text)
    wrong = next((small.check(rs) for part, rs in parts if part is small), None) if a.check else None
    if wrong:
        print(wrong, file=sys.stderr)
        failed.append(wrong)
    if not a.keep:
        shutil.rmtree(base, ignore_errors=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
