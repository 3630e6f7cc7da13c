# SPDX-License-Identifier: BSD-2-Clause
"""Statements of the papers on TIMELY, of its critics and on NDP, as far as they can be simulated here."""
import statistics

from reproduce.run import Run, Table, done

TITLE = "TIMELY and NDP"

WAYS = ("timely", "timely_patched")
STARTS = ("0", "1ms", "5ms", "20ms")
COUNTS = (2, 8, 32)
# Swift's targets are of 100 Gbit/s and more: at 10 Gbit/s a packet of 4 KB alone takes 3.4 us at each hop.
SLOW = ["cc.base_slack=20us", "cc.hop=10us"]
NDP = [
    ("ndp-permutation", "veRoCE, 16 paths, Swift", []),
    ("ndp-permutation-none", "no congestion control", ["cc.algorithm=none"]),
    ("ndp-permutation-slow", "Swift with targets for 10 Gbit/s", SLOW),
    ("ndp-permutation-spray", "... and switches that spray, as NDP's do", [*SLOW, "switch.routing=spray-round-robin"]),
]


def runs(quick):
    out = [Run(f"{way}-{start}", "timely-two-flows", f"cc.algorithm={way}", f"workload.second.start={start}")
           for way in WAYS for start in (STARTS[:2] if quick else STARTS)]
    out += [Run(f"patched-{n}", "timely-incast", f"workload.incast.fan_in={n}") for n in COUNTS]
    if not quick:
        out += [Run(name, "ndp-permutation", *sets) for name, _, sets in NDP]
    return out


def page(runs, out):
    named, table = done(runs), Table()
    for way, label, wanted in (("timely", "TIMELY", "no unique fixed point: shares depend on the start"),
                               ("timely_patched", "patched TIMELY", "fair")):
        mine = [(start, named[f"{way}-{start}"]) for start in STARTS if f"{way}-{start}" in named]
        if not mine:
            continue
        shares = {s: r.gbps("first", 0.5) / (r.gbps("first", 0.5) + r.gbps("second", 0.5)) for s, r in mine}
        off = max(abs(v - 0.5) for v in shares.values())
        table.row(f"two flows at 10 Gbit/s, {label}: share of the first from 200 to 400 ms, by the second's start", wanted,
                  ", ".join(f"{s}: {v:.2f}" for s, v in shares.items()), off > 0.05 if way == "timely" else off < 0.05,
                  mine[0][1].command().replace("start=0", "start=T"))
    mine = [(n, named[f"patched-{n}"]) for n in COUNTS if f"patched-{n}" in named]
    if mine:
        q = [r.queue_kb(50, 33) for _, r in mine]
        table.row("patched TIMELY, n flows at 10 Gbit/s: median queue", "grows with n",
                  ", ".join(f"{n}: {v:.0f} KB" for (n, _), v in zip(mine, q)), q == sorted(q) and q[-1] > 2 * q[0],
                  mine[0][1].command().replace("fan_in=2", "fan_in=N"))
    for name, label, _ in NDP:
        r = named.get(name)
        if r and r.flows():
            shares = [int(f["ideal_ps"]) / int(f["fct_ps"]) for f in r.flows()]
            mean = statistics.mean(shares)
            table.row(f"permutation of 432 hosts, queues of 8 packets, trimming: {label}: mean and least share of the ideal",
                      "NDP: above 95 %", f"{100 * mean:.1f} and {100 * min(shares):.1f} %, "
                      f"{r.figure('retransmitted_packets')} packets sent again", mean > 0.95, r)
    table.write(out)
