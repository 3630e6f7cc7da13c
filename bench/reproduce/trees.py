# SPDX-License-Identifier: BSD-2-Clause
"""veRoCE on the tree and with the sizes of published htsim runs, beside UEC's NSCC, NDP and RoCE."""
from reproduce.run import Run, done
from reproduce.small import fct_us

TITLE = "veRoCE beside UEC, NDP and RoCE"

TRIM = ["switch.trim=on"]
ROCE = ["transport.protocol=rocev2", "cc.algorithm=none", "transport.window=32MB", "transport.rto=100ms", "switch.pfc=on"]
ROWS = [
    ("Permutation, 128 x 10 MB, ideal 864 us", [
        (None, "UEC NSCC, spray, trimming (htsim)", (863, 898, 1046)),
        (None, "NDP, spray (htsim)", (914, 1015, 1130)),
        (None, "RoCE, PFC, ECMP, no congestion control (htsim)", (893, 2090, 4383)),
        ("tree-roce", "the same here", ("tree-permutation", ROCE)),
        ("tree-plain", "veRoCE, 16 paths, Swift; switches only hash and drop", ("tree-permutation", [])),
        ("tree-trim", "the same with trimming at 200 KB", ("tree-permutation", TRIM)),
        ("tree-spray", "... and the switches spray", ("tree-permutation", [*TRIM, "switch.routing=spray-round-robin"])),
    ]),
    ("128 x 4 MB into one, ideal 43590 us", [
        (None, "UEC NSCC (htsim)", (27748, 42173, 43724)),
        ("tree-incast-plain", "veRoCE, 16 paths, Swift", ("tree-incast", [])),
        ("tree-incast-trim", "the same with trimming at 200 KB", ("tree-incast", TRIM)),
        ("tree-incast-trim-1", "... and one path", ("tree-incast", [*TRIM, "transport.paths=1"])),
    ]),
]


def runs(quick):
    return [Run(name, *how[:1], *how[1]) for _, lines in ROWS for name, _, how in lines if name]


def page(runs, out):
    named = done(runs)
    out.append("k = 8 fat-tree, 128 hosts, 100 Gbit/s, 1 us, 1000 + 64 bytes a packet.")
    for title, lines in ROWS:
        if not any(name in named for name, _, _ in lines):
            continue
        out += [f"\n{title}\n", "| | first / median / last flow, us | retransmitted | timeouts | command |", "|---|---|---|---|---|"]
        for name, label, how in lines:
            r = named.get(name)
            if r and r.flows():
                out.append(f"| {label} | " + " / ".join(f"{v:.0f}" for v in fct_us(r)) + f" | {r.figure('retransmitted_packets')} | "
                           f"{r.figure('rtos')} | `{r.command()}` |")
            elif not name:
                out.append(f"| {label} | " + " / ".join(str(v) for v in how) + " | | | |")
