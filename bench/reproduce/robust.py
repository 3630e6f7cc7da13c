# SPDX-License-Identifier: BSD-2-Clause
"""This project's goals for lossy networks, switches without features, and links between data centres."""
import statistics

from reproduce.goals import share
from reproduce.run import Run, Table, done, percentile

TITLE = "Loss, plain switches, two data centres"

# The same with what switches may offer. veRoCE packets carry no INT, so that PFC, RED and trimming are all there is.
FEATURES = [("plain", "nothing: drop at the tail", ["switch.ecn=off"]), ("red", "RED", []),
            ("trim", "RED and trimming", ["switch.trim=on"]), ("pfc", "RED and PFC", ["switch.pfc=on"])]
LOSSES = ((0, "0", "0"), (2, "2%", "1.005%"), (5, "5%", "2.532%"))


def runs(quick):
    out = [Run(f"loss-one-{p}", "goal-loss", f"link.loss={one}") for p, one, _ in LOSSES]
    out += [Run(f"loss-permutation-{p}", "goal-lossy-permutation", f"link.loss={link}") for p, _, link in LOSSES]
    for name, _, sets in FEATURES:
        out.append(Run(f"a2a-{name}", "goal-all-to-all", "workload.a2a.size=32MB", *sets))
        out.append(Run(f"incast-{name}", "tree-incast", *sets))
        out.append(Run(f"permutation-{name}", "tree-permutation", *sets))
    out += [Run("two-dc", "goal-two-dc"), Run("two-dc-local", "goal-two-dc", "workload.bulk.start=50ms")]
    return out


def flow_gbps(run, begin_ps, end_ps=float("inf"), sources=None):
    """Each flow's payload rate in that time; sources: of these hosts."""
    rates = {}
    for r in run.rows("goodput_flows.csv"):
        if begin_ps < int(r["time_ps"]) <= end_ps and (not sources or int(r["src"]) in sources):
            rates.setdefault(r["flow"], []).append(int(r["bps"]) / 1e9)
    return [statistics.mean(v) for v in rates.values()]


def last_us(run):
    return max(int(f["start_ps"]) + int(f["fct_ps"]) for f in run.flows()) / 1e6


def of_loss(named, table):
    for p, wanted in ((2, 97), (5, 90)):
        r, clean = named.get(f"loss-one-{p}"), named.get("loss-one-0")
        if r and clean and r.flows() and clean.flows():
            s = 100 * r.figure("goodput_share")
            table.row(f"one flow at 400 Gbit/s, {p} % loss each way: of the header-limited rate", f">= {wanted} %",
                      f"{s:.1f} % ({100 * last_us(clean) / last_us(r):.1f} % of the loss-free run)", s >= wanted, r, clean)
        r, clean = named.get(f"loss-permutation-{p}"), named.get("loss-permutation-0")
        if r and clean:
            whole, most = 400 * 128 * r.summary["header_limited_share"], 400 * r.summary["header_limited_share"]
            got, rates = r.gbps(begin=1 / 3), flow_gbps(r, r.figure("time") // 3)
            table.row(f"permutation of 128 at 400 Gbit/s, {p} % loss each way: all flows from 0.3 to 0.9 ms, of the header-limited rate",
                      f">= {wanted} %", f"{100 * got / whole:.1f} % (least flow {100 * min(rates) / most:.1f} %); "
                      f"{100 * got / clean.gbps(begin=1 / 3):.1f} % of the loss-free run", got >= wanted / 100 * whole, r, clean)


def of_features(named, table):
    for name, label, _ in FEATURES:
        a, i, p = (named.get(f"{kind}-{name}") for kind in ("a2a", "incast", "permutation"))
        if a and i and p and share(a) and i.flows() and p.flows():
            table.row(f"switches with {label}: all-to-all of 128 at 400 Gbit/s; permutation of 128 x 10 MB and 128 x 4 MB into one "
                      "at 100 Gbit/s, of ideal", "values, side by side",
                      f"{share(a):.1f} %; {86400 / last_us(p):.1f} %; {4359000 / last_us(i):.1f} %; {a.figure('pause_frames') + i.figure('pause_frames') + p.figure('pause_frames')} pauses",
                      None, a, p, i)


def local_us(run):
    fcts = [int(f["fct_ps"]) / 1e6 for f in run.flows() if f["workload"] == "local"]
    return percentile(fcts, 50), percentile(fcts, 99)


def of_two_dc(named, table):
    r = named.get("two-dc")
    if r:
        most = 400 * r.summary["header_limited_share"]
        rates = flow_gbps(r, 20 * 10**9, 50 * 10**9, (0, 1))
        table.row("two data centres, 100 km, 2 x 400 Gbit/s, one 10 km longer: two bulk QPs from 20 to 50 ms, beside local traffic, "
                  "of the header-limited rate", ">= 90 %",
                  ", ".join(f"{100 * v / most:.1f} %" for v in rates), bool(rates) and min(rates) >= 0.9 * most, r)
    r, local = named.get("two-dc"), named.get("two-dc-local")
    if r and local:
        (m, t), (m0, t0) = local_us(r), local_us(local)
        table.row("completion of 10 MB of the local traffic, median and 99th percentile: beside the bulk flows; without",
                  "no head-of-line blocking", f"{m:.0f}, {t:.0f} us; {m0:.0f}, {t0:.0f} us", t <= 1.1 * t0, r, local)


def page(runs, out):
    named, table = done(runs), Table()
    of_loss(named, table)
    of_features(named, table)
    of_two_dc(named, table)
    table.write(out)
