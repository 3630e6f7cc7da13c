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
    out.append("TIMELY's critics prove for a fluid between t_low and t_high that any shares can last, and show it with flows "
               "that begin at rates of their own, 7 and 3 Gbit/s. Here each flow begins at the line rate, and the second one's "
               "first burst makes them even. With the authors' constants the queue grows to 0.9 MB within 2 ms, a round trip of "
               "0.75 ms, beyond t_high, where both lose the same share again and again. With the critics' "
               "(`cc.preset=hpcc-eval`) the first difference of round trips is more than 1/0.8 of the least one, and both fall "
               "to the least rate at once. From there both add the same, and even shares are among those that last: 0.50 for all "
               "four starts, with the critics' constants as well.")
    out.append("\nNDP's 95 % hold for switches that spray packets over all 36 paths, and for receivers that pull packets. The row "
               "with such switches reaches it without pulling. In the three rows above it switches only hash: a sender then has "
               "16 of the 36 paths, drawn by hashes, so some links get more than others, and a queue of eight packets (here of 4 "
               "KB, not 9) is too short to even that out. Swift's targets for 100 Gbit/s cost a tenth (the first row beside the "
               "third): a packet of 4 KB takes 3.4 us at each hop at 10 Gbit/s, more than the 1.5 us that they allow.")
    out.append("\nNot simulated: TIMELY's tail against PFC and DCTCP (the paper's rack and traffic are not public), and Swift's "
               "50 us at full load (likewise).")
    table.write(out)
