# SPDX-License-Identifier: BSD-2-Clause
"""This project's goals for its transport."""
from reproduce.run import Run

TITLE = "Goals of this project"


def runs(quick):
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
        Run("many-qps", "goal-many-qps"),
        Run("many-qps-alone", "goal-many-qps", "host.idle_qps=0"),
    ] + big


def share(run):
    c = run.rows("collectives.csv")
    return 100 * int(c[0]["ideal_ps"]) / int(c[0]["time_ps"]) if c and c[0]["time_ps"] else None


def spread_kbps(run):
    """Over the fairness window of the summary; the series has shorter ones."""
    return run.figure("rate_spread") / 1e3 if run.figure("fairness_window") == 10**12 else None


def ends_ps(run):
    """When each host has sent all of its data."""
    ends = {}
    for f in run.rows("flows.csv"):
        ends[f["src"]] = max(ends.get(f["src"], 0), int(f["start_ps"]) + int(f["fct_ps"]))
    return list(ends.values())


def drift(named):
    """A sentence: how far hosts are apart at the end of the all-to-alls on the page."""
    parts = []
    for name, label in (("a2a-128", "128 hosts"), ("a2a-1024", "1024 hosts")):
        ends = ends_ps(named[name]) if name in named and share(named[name]) else None
        if ends:
            last = max(ends)
            parts.append(f"{100 * (last - sum(ends) / len(ends)) / last:.1f} % ({label})")
    return ["When the average host has sent all, the slowest one still needs, of the time of an all-to-all: " +
            ", ".join(parts) + "."] if parts else []


def page(runs, out):
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
    a, b = named.get("many-qps"), named.get("many-qps-alone")
    if a and b:
        idle = 4 * 64000    # at two hosts, both ends
        each = (a.simulator["memory_bytes_peak"] - b.simulator["memory_bytes_peak"]) / idle
        row("1280 queue pairs at work among 128,000 of a host, at 400 Gbit/s, of the line's payload share", "no loss of rate",
            f"{100 * a.figure('goodput_share'):.1f} % (alone {100 * b.figure('goodput_share'):.1f} %); "
            f"an idle one takes {each:.0f} B, the simulator's records of it included", a, b)
    if rows:
        out += drift(named) + ["\n| what | goal | here | command |", "|---|---|---|---|"] + rows
