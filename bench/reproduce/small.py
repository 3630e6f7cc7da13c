# SPDX-License-Identifier: BSD-2-Clause
"""Small runs with exact inputs, beside the reference simulators' results."""
from reproduce.run import Run

TITLE = "Small runs with exact inputs"

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


def runs(quick):
    return [Run(name, scenario, *sets) for name, _, scenario, sets, _ in SMALL]


def fct_us(run):
    fcts = sorted((int(f["start_ps"]) + int(f["fct_ps"])) / 1e6 for f in run.flows())
    return fcts[0], fcts[len(fcts) // 2], fcts[-1]


def jain(run):
    rates = [int(f["bytes"]) / int(f["fct_ps"]) for f in run.flows()]
    return sum(rates) ** 2 / (len(rates) * sum(r * r for r in rates))


def page(runs, out):
    out.append("\nk = 8 fat-tree, 128 hosts, 100 Gbit/s, 1 us, payload 1000 B. Reference: the ns-3 simulator of "
               "HPCC on the same inputs; hashes of ECMP differ.\n")
    out.append("| run | first / median / last flow, us | reference | Jain | pauses |")
    out.append("|---|---|---|---|---|")
    named = {r.name: r for r in runs if r.summary}
    for name, label, _, _, reference in SMALL:
        r = named.get(name)
        if not r:
            continue
        out.append(f"| {label} | " + " / ".join(f"{v:.0f}" for v in fct_us(r)) + " | " +
                   " / ".join(str(v) for v in reference) + f" | {jain(r):.4f} | {r.figure('pause_frames')} |")


def check(runs):
    """HPCC's incast has no randomness but the order of the starts, so it must equal the reference."""
    references = {name: reference for name, _, _, _, reference in SMALL}
    for r in runs:
        name, reference = r.name, references[r.name]
        if name != "incast-hpcc" or not r.summary:
            continue
        got = fct_us(r)
        for mine, theirs in zip(got[1:], reference[1:]):
            if abs(mine - theirs) > 0.05 * theirs:
                return f"{name}: {mine:.0f} us, not {theirs} us"
        if jain(r) < 0.998:
            return f"{name}: Jain {jain(r):.4f}, not 0.9995"
    return None
