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


PROSE = """\
A collective's share compares its time, up to the end of its slowest host, with the time of its bytes and headers at \
the hosts' rate. Acknowledgements share the ports: 0.6 % of all bytes with 2 MB for each peer, 0.9 % with 125 KB.

A link at half rate between an edge switch and one of its four aggregation switches takes an eighth off what the \
four hosts below can exchange with the rest, and all others wait for them. With 1 % of the links degraded the \
all-to-all of 128 hosts can reach 89.6 % at most, because 124 parts of 127 leave those four (88.7 % with \
acknowledgements), and the 16 rings 93.3 %, where 60 parts of 64 leave. In the all-to-all of 128 hosts the four \
links into such an edge switch are 97.8 % busy from the first packet to the last. The rest is lost at the end: each \
path of each of 32 pairs keeps at least a packet in flight, so 3 MB and more wait at the slow link, 130 us, when the \
other hosts have nothing left to send. Narrower least windows, a quarter of a packet, cost more than they gain (82.9 \
%), and so do wider ones, three packets (86.1 %). With 1024 hosts an edge switch has eight such links, and 94.4 % is \
possible, 93.6 % with acknowledgements. For nine tenths of the time the hosts below receive at that rate (0.94), in \
the last tenth at 0.39 of the line: the queue at a slow link, up to 3.5 MB, takes longer to drain than the 80 us of \
a flow of 125 KB, and with 31 packets over 16 paths a flow has no time to learn which paths are slow.

A step of the ring of 1024 hosts is 16 KB in each of 16 rings, 5 us of a host's rate, while the network's longest \
round trip is 6.5 us: latency limits it, not rate. 128 hosts with steps of the same size (32 MB) reach 88 %, with \
steps eight times as large 98.7 %; simulating 1024 hosts with those would take five hours.

The all-to-all of 1024 hosts has no drop and no timeout. It loses because hosts drift apart. A host turns to its \
next peer when one is done, and its NIC gives each of 32 queue pairs a turn; so a receiver with 20 senders at the \
moment gets 20 parts in 32 of its line, and one with 45 senders builds a queue. Flows are over before windows settle \
(125 KB are 31 packets, 16 of them the first on their paths), and nothing brings hosts together again: the longer it \
lasts, the further apart they are. With 128 MB a receiver has 24 to 41 senders throughout, and 97.8 to 98.8 % of the \
rate is used. With twice as much (256 MB, 94.8 %) the first half is the same, 98.6 %. In the second half a receiver \
has 9 to 53 senders, those with fewer than 25 are idle for a fifth to two fifths of the time, and 96.7 % of the rate \
is used; when the average host is done the slowest one needs 2.8 % of the time more. 250 hosts with 1 MB for each \
peer stay in step and reach 98.3 %. With 250 KB (128 hosts, 32 MB: 96.0 %, 84.0 % degraded) 16 peers at a time \
instead of 32 are worse (92.4 %), and 64 are little better (96.6 %; 250 hosts reach 96.9 % with either) but worse \
with slow links (76.2 %). Shares of the receiver's port (`cc.rxshare=on`) do not help, because their rounds last \
longer than such a flow (91.2 %).

The incast's receiver gives out shares (`cc.rxshare`); one packet of 4 KB in a second is 33 kbit/s."""


def ends_ps(run):
    """When each host has sent all of its data."""
    ends = {}
    for f in run.rows("flows.csv"):
        ends[f["src"]] = max(ends.get(f["src"], 0), int(f["start_ps"]) + int(f["fct_ps"]))
    return list(ends.values())


def drift(named):
    """The sentence about how far hosts are apart at the end of the all-to-alls on the page."""
    parts = []
    for name, label in (("a2a-128", "128 hosts"), ("a2a-1024", "1024 hosts")):
        ends = ends_ps(named[name]) if name in named and share(named[name]) else None
        if ends:
            last = max(ends)
            parts.append(f"{100 * (last - sum(ends) / len(ends)) / last:.1f} % ({label})")
    return ("\n\nOf the time of an all-to-all below, the slowest host still needs, when the average one has sent all: " +
            ", ".join(parts) + ".") if parts else ""


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
        out.append(PROSE + drift(named))
        out += ["\n| what | goal | here | command |", "|---|---|---|---|"] + rows
