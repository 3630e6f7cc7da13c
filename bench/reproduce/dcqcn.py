# SPDX-License-Identifier: BSD-2-Clause
"""The paper of DCQCN and what followed: convergence, queues, PFC's harm with and without it, and where it ends.

Settings that the papers leave open are ours: flows have no window but their rate, and no timer ends early
(a lossless network needs none). The papers' measurements on a testbed ran for minutes; here they are 0.06 to 0.8 s.
"""
import statistics

from reproduce.run import Run, Table, done, percentile

TITLE = "DCQCN: the paper and what followed"

PFC_ONLY = ["cc.algorithm=none", "cc.preset="]
QCN = ["cc.preset=authors-sim", "switch.kmin=40KB", "switch.kmax=40KB", "switch.pmax=100%"]
DCTCP = ["cc.algorithm=dctcp", "cc.preset=rfc", "switch.kmin=160KB", "switch.kmax=160KB", "switch.pmax=100%"]
SEEDS = range(1, 6)
SPINES = (28, 29)

AUTHORS = ["cc.preset=authors-sample"]
# The least time between two CNPs that the paper of DCQCN gives for a NIC's port.
ONE_CNP_A_US = [*AUTHORS, "transport.cnp_gap_port=1us"]
FIRMWARE = ["cc.algorithm=dcqcn_fw", "cc.preset=connectx", "transport.cnp_interval=4us"]
TIMELY = ["cc.algorithm=timely", "cc.preset=hpcc-eval", "cc.rate_min=10Mbps", "transport.ack_every=1"]
# name, settings, numbers of flows, what is said to be about the last that converges, whether that is judged
SCALE = [
    ("cnps-40g", "DCQCN as its authors simulate it, a CNP of a port each us, 40 Gbit/s", ONE_CNP_A_US, (120, 160, 200), (160, 160), True),
    ("cnps-10g", "the same, 10 Gbit/s", [*ONE_CNP_A_US, "link.rate=10Gbps"], (60, 80, 100), (80, 80), True),
    ("authors-40g", "the same without a limit on a port's CNPs, 40 Gbit/s", AUTHORS, (160, 320, 400), (160, 160), False),
    ("paper-40g", "the paper's constants, least rate 4 Mbit/s, 40 Gbit/s", [], (160, 320, 480), (160, 160), False),
    ("paper-10g", "the same, 1 Mbit/s, 10 Gbit/s", ["link.rate=10Gbps"], (40, 80), (80, 80), False),
    ("firmware-40g", "DCQCN, firmware's form, 40 Gbit/s", FIRMWARE, (320, 480, 640, 1200), (480, 560), True),
    ("timely-low-40g", "TIMELY, least rate 10 Mbit/s, 40 Gbit/s", TIMELY, (320, 1200, 1600), (1200, 1200), True),
]
PFC_BOUND_KB = 6000    # eight ports at their thresholds of an eighth of what is left of 12 MB


def runs(quick):
    ways = (("pfc", PFC_ONLY), ("dcqcn", []))
    seeds = SEEDS[:1] if quick else SEEDS
    out = [Run("two-paper", "dcqcn-two-flows"), Run("two-qcn", "dcqcn-two-flows", *QCN)]
    out += [Run(f"into-one-{k}", "dcqcn-incast", f"workload.incast.fan_in={k}") for k in ((2, 10) if quick else range(2, 11))]
    out += [Run("queue-dcqcn", "dcqcn-incast"), Run("queue-dcqcn-steep", "dcqcn-incast", "switch.pmax=10%"), Run("queue-dctcp", "dcqcn-incast", *DCTCP)]
    out += [Run(f"lot-{way}-{seed}", "dcqcn-parking-lot", *sets, seed=seed) for way, sets in ways for seed in seeds]
    for more in (0, 1, 2):
        hosts = "0-3" + ("", ",10", ",10-11")[more]
        receivers = ",".join(["15"] * (4 + more))
        out += [Run(f"victim-{way}-{more}-{seed}", "dcqcn-victim", *sets, f"workload.incast.senders={hosts}",
                    f"workload.incast.receivers={receivers}", seed=seed) for way, sets in ways for seed in seeds]
    out += [Run("rebuild-pfc", "dcqcn-rebuild", *PFC_ONLY), Run("rebuild-dcqcn", "dcqcn-rebuild"),
            Run("rebuild-pfc-fewer", "dcqcn-rebuild", *PFC_ONLY, "workload.users.load=1.25%"),
            Run("rebuild-pfc-few", "dcqcn-rebuild", *PFC_ONLY, "workload.users.load=2.5%"),
            Run("rebuild-dcqcn-16x", "dcqcn-rebuild", "workload.users.load=40%")]
    if not quick:
        out += [Run(f"scale-{name}-{n}", "dcqcn-scale", *sets, f"workload.incast.fan_in={n}")
                for name, _, sets, counts, _, _ in SCALE for n in counts]
    return out


def thresholds(buffer_bytes, ports, classes, flight_bytes, beta):
    """The bounds of the paper's section 4: (t_PFC, t_ECN), bytes.

    What every port and class needs while its pause is on the way is set aside; a static t_PFC shares the rest
    evenly. With a dynamic threshold, beta times what is free, ECN marks before PFC stops anyone if t_ECN is below
    the share that one egress queue fed by all ports leaves to each.
    """
    rest = buffer_bytes - classes * ports * flight_bytes
    return rest / (classes * ports), beta * rest / (classes * ports * (beta + 1))


def shares(run):
    """Payload rate of each flow over the whole run, Gbit/s."""
    return [int(f["received_bytes"]) * 8e3 / run.figure("time") for f in run.rows("flows.csv")]


def convergence(named, table):
    for name, what, wanted, even in (
            ("two-paper", "two flows, the second 20 ms later: shares from 200 to 400 ms", "20 and 20 Gbit/s", True),
            ("two-qcn", "the same with QCN's and DCTCP's constants", "does not converge", False)):
        r = named.get(name)
        if r:
            a, b = r.gbps("first", 0.5), r.gbps("second", 0.5)
            table.row(what, wanted, f"{a:.1f} and {b:.1f} Gbit/s of payload", (abs(a - b) <= 0.1 * (a + b)) == even, r)


def into_one(named, table):
    mine = [(k, named[f"into-one-{k}"]) for k in range(2, 11) if f"into-one-{k}" in named]
    if mine:
        # The paper's figure counts what the link carries.
        rates = {k: r.gbps(begin=0.25) / r.summary["header_limited_share"] for k, r in mine}
        low = min(rates, key=rates.get)
        table.row("K:1, K = 2 to 10: total, headers counted, after 50 ms", "above 39 Gbit/s",
                  f"{rates[low]:.1f} (K = {low}) to {max(rates.values()):.1f} Gbit/s", rates[low] > 39,
                  mine[0][1].command().replace("fan_in=2", "fan_in=K"))
    for name, label, published in (("queue-dcqcn", "DCQCN", 76.6), ("queue-dcqcn-steep", "DCQCN, Pmax 10 %", 76.6),
                                   ("queue-dctcp", "DCTCP, step at 160 KB", 162.9)):
        r = named.get(name)
        if r:
            q = r.queue_kb(90, 21)
            table.row(f"20:1, queue, 90th percentile: {label}", f"{published} KB",
                      f"{q:.0f} KB (50th: {r.queue_kb(50, 21):.0f}), {r.figure('pause_frames')} pauses",
                      abs(q - published) <= 0.15 * published, r)


def spread(values):
    return f"{min(values):.1f} / {statistics.median(values):.1f} / {max(values):.1f}"


def unfair(named, table):
    for way, label, wanted in (("pfc", "PFC only", "the one with a port of its own gets the most"),
                               ("dcqcn", "DCQCN", "all four equal")):
        rs = [named[f"lot-{way}-{s}"] for s in SEEDS if f"lot-{way}-{s}" in named]
        if not rs:
            continue
        others = [v for r in rs for v in shares(r)[:3]]
        own = [shares(r)[3] for r in rs]
        ratio = min(others) / max(own)
        table.row(f"parking lot, {label}: least / median / most of the three that share ports; of the one with its own",
                  wanted, f"{spread(others)}; {spread(own)} Gbit/s",
                  ratio < 0.6 if way == "pfc" else ratio > 0.75 and min(own) > 0.75 * max(others),
                  rs[0].command().replace("--seed 1", "--seed 1..5"))
    for way, label, wanted in (("pfc", "PFC only", "20 Gbit/s at best; falls as others join elsewhere"),
                               ("dcqcn", "DCQCN", "does not depend on the others")):
        medians, used = [], None
        for more in (0, 1, 2):
            rs = [named[f"victim-{way}-{more}-{s}"] for s in SEEDS if f"victim-{way}-{more}-{s}" in named]
            if rs:
                medians.append(statistics.median(r.gbps("victim", 0.1) for r in rs))
                used = used or rs[0].command().replace("--seed 1", "--seed 1..5")
        if len(medians) == 3:
            table.row(f"victim flow, {label}: median with 0, 1, 2 more senders on another ToR", wanted,
                      " / ".join(f"{m:.1f}" for m in medians) + " Gbit/s",
                      medians[2] < 0.7 * medians[0] if way == "pfc" else medians[2] > 0.8 * medians[0], used)


def tail_gbps(run):
    """The rate that nine tenths of the user flows of 100 KB and more exceed."""
    rates = [int(f["bytes"]) * 8e3 / int(f["fct_ps"]) for f in run.flows()
             if f["workload"] == "users" and int(f["bytes"]) >= 100000]
    return percentile(rates, 10)


def rebuild(named, table):
    a, b = named.get("rebuild-pfc"), named.get("rebuild-dcqcn")
    if a and b:
        table.row("user traffic and disk rebuild, pauses at the spines: PFC only, DCQCN (60 ms here, minutes there)",
                  "millions, a few thousand", f"{a.pauses_at(SPINES)}, {b.pauses_at(SPINES)}",
                  b.pauses_at(SPINES) < a.pauses_at(SPINES) / 100, a, b)
    for few, many, loads in (("rebuild-pfc-fewer", "rebuild-dcqcn", "1.25 and 20 %"),
                             ("rebuild-pfc-few", "rebuild-dcqcn-16x", "2.5 and 40 %")):
        a, b = named.get(few), named.get(many)
        if a and b:
            table.row("the same, 10th percentile of the rate of user flows from 100 KB: PFC only; DCQCN with 16 times the "
                      f"user traffic, loads {loads}", "the same", f"{tail_gbps(a):.2f}; {tail_gbps(b):.2f} Gbit/s",
                      tail_gbps(b) >= 0.9 * tail_gbps(a), a, b)


def longest_kb(run):
    """The longest queue in each window of the run's last eighth, in order of length."""
    return sorted(int(r["bytes_max"]) / 1e3 for r in run.rows("queue_longest.csv")
                  if int(r["time_ps"]) >= 0.875 * run.figure("time"))


def scale(named, table):
    for name, label, _, counts, (first, last), judged in SCALE:
        mine = [(n, named[f"scale-{name}-{n}"]) for n in counts if f"scale-{name}-{n}" in named]
        if not mine:
            continue
        ends = {n: longest_kb(r) for n, r in mine}
        good = {n: q[len(q) // 2] < PFC_BOUND_KB / 2 for n, q in ends.items()}
        holds = None
        if judged and len(mine) == len(counts):
            holds = all(good[n] for n in counts if n <= first) and not any(good[n] for n in counts if n > last)
        text = f"converges to {first} flows" if first == last else f"converges to {first} to {last} flows"
        table.row(f"{label}: longest queue in 1 ms of the last 100 of 800 ms, median and most, by the number of flows", text,
                  ", ".join(f"{n}: {q[len(q) // 2]:.0f}, {q[-1]:.0f} KB" for n, q in ends.items()), holds,
                  mine[0][1].command().replace(f"fan_in={mine[0][0]}", "fan_in=N"))


def marks_wanted(flows, line_bps=40e9, payload=1024, packet=1086, rate_ai=40e6, alpha_s=55e-6, timer_s=55e-6, counter=10e6):
    """The share of packets marked at which cuts and increases of so many flows balance.

    The approximation of DCQCN's one fixed point that Zhu et al. give (CoNEXT 2016): rates in packets a second.
    """
    line, step = line_bps / 8 / packet, rate_ai / 8 / packet
    return (step * flows ** 2 / (alpha_s * line ** 2) * (payload / counter + flows / (timer_s * line)) ** 2) ** (1 / 3)


def page(runs, out):
    named = done(runs)
    most = max(n for n in range(1, 100) if marks_wanted(n) <= 0.01)
    out.append(f"The fixed point of 20 flows (Zhu et al., CoNEXT 2016) is at {100 * marks_wanted(20):.1f} % of marks; a Pmax of "
               f"1 % bears {most} flows; with 10 % the fixed point is at {5 + 195 * marks_wanted(20) / 0.1:.0f} KB.")
    table = Table()
    convergence(named, table)
    into_one(named, table)
    unfair(named, table)
    rebuild(named, table)
    pfc, ecn = thresholds(12e6, 32, 8, 22.4e3, 8)
    table.row("thresholds of a switch of 12 MB with 32 ports of 40 Gbit/s, t_flight 22.4 KB, beta 8 (closed form)",
              "t_PFC 24.47 KB, t_ECN 21.75 KB", f"t_PFC {pfc / 1e3:.2f} KB, t_ECN {ecn / 1e3:.2f} KB",
              round(pfc / 1e3, 2) in (24.47, 24.48) and abs(ecn / 1e3 - 21.75) < 0.01)
    scale(named, table)
    table.write(out)
