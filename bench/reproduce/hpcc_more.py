# SPDX-License-Identifier: BSD-2-Clause
"""Statements of the HPCC paper and its site besides the curves of slowdown by size."""
from reproduce.hpcc import ALGORITHMS, by_size, twentieths
from reproduce.run import Run, Table, done, percentile

TITLE = "HPCC: other statements"

SPAN = "5ms"    # of flows, where the evaluation's tree of 320 hosts is simulated
# As the testbed's DCQCN: marks as in the evaluation, and a CNP for each marked packet.
DCQCN = ["cc.algorithm=dcqcn_fw", "cc.preset=hpcc-eval", "switch.int=off"]
# No window but what the rate sets; else a QP has two bandwidth-delay products.
UNBOUND = ["transport.window=32MB", "transport.rto=100ms"]
INCAST = [("HPCC", [])] + [(name, [*sets, "cc.preset=hpcc-eval"]) for name, sets in ALGORITHMS[1:]] + [
    ("DCQCN", [*DCQCN, *UNBOUND]), ("TIMELY", ["cc.algorithm=timely", "switch.int=off", "transport.ack_class=control", *UNBOUND])]
LOAD_70 = [("HPCC eta 0.99", ["cc.eta=0.99"]), ("HPCC eta 1.5", ["cc.eta=1.5"])] + ALGORITHMS[1:]


def runs(quick):
    web = ["workload.web.load=30%", f"workload.web.stop={'1ms' if quick else SPAN}"]
    out = []
    for name in ("mice", "seven-to-one"):
        out += [Run(f"{name}-HPCC", f"hpcc-{name}"), Run(f"{name}-DCQCN", f"hpcc-{name}", *DCQCN)]
    out += [Run(f"testbed-{load}-{name}", "hpcc-testbed", *sets, f"workload.web.load={load}%")
            for load in ((50,) if quick else (30, 50)) for name, sets in (("HPCC", []), ("DCQCN", DCQCN))]
    out += [Run("int-42B", "hpcc-eval", "cc.eta=0.99", *web),
            Run("int-1B", "hpcc-eval", "cc.eta=0.99", "transport.int_bytes=1B", *web)]
    if not quick:
        out += [Run(f"hadoop-incast-{name}", "hpcc-incast", *sets) for name, sets in INCAST]
        out += [Run(f"load-70-{name}".replace(" ", "-"), "hpcc-eval", *sets, "workload.web.load=70%", f"workload.web.stop={SPAN}")
                for name, sets in LOAD_70]
    return out


def mice_us(run):
    fcts = [int(f["fct_ps"]) / 1e6 for f in run.flows() if f["workload"] == "mice"]
    return percentile(fcts, 50), percentile(fcts, 99)


def drained_us(run, begin_us):
    """From the incast's start until all queues have stayed below 50 KB for 50 us."""
    long = [int(r["time_ps"]) / 1e6 for r in run.rows("queue_longest.csv")
            if int(r["bytes_max"]) > 50000 and int(r["time_ps"]) / 1e6 >= begin_us]
    end = begin_us
    for t in long:
        if t > end + 50:
            break
        end = t
    return end - begin_us


def of_testbed(named, table):
    a, b = named.get("mice-HPCC"), named.get("mice-DCQCN")
    if a and b:
        (am, at), (bm, bt) = mice_us(a), mice_us(b)
        table.row("1 KB beside two long flows at 25 Gbit/s: median and 99th percentile, HPCC; DCQCN",
                  "99th: about 5.4 us, the base RTT; above 35 us", f"{am:.1f}, {at:.1f}; {bm:.1f}, {bt:.1f} us",
                  at < 2 * 5.4 and bt > 35, a, b)
    a, b = named.get("seven-to-one-HPCC"), named.get("seven-to-one-DCQCN")
    if a and b:
        peak = a.queue_max_kb(0), b.queue_max_kb(0)
        drain = drained_us(a, 2000), drained_us(b, 2000)
        # A window of each flow arrives before any feedback; 25 Gbit/s take this long to send it.
        least = peak[0] * 8 / 25
        table.row("7:1 beside a long flow: longest queue, and until it is drained, HPCC (that queue at 25 Gbit/s: "
                  f"{least:.0f} us); DCQCN", "HPCC drained in about one RTT; DCQCN 550 KB",
                  f"{peak[0]:.0f} KB, {drain[0]:.0f} us; {peak[1]:.0f} KB, {drain[1]:.0f} us",
                  drain[0] <= 1.2 * least and 0.8 * 550 <= peak[1] <= 1.2 * 550, a, b)
    for load in (30, 50):
        a, b = named.get(f"testbed-{load}-HPCC"), named.get(f"testbed-{load}-DCQCN")
        if a and b:
            q = [[r.figure(f"queue_all_p{p}") / 1e3 if r.figure(f"queue_all_p{p}") is not None else 0 for p in (50, 99)]
                 for r in (a, b)]
            busiest = [max(int(p["queue_bytes_p99"]) for p in r.rows("ports.csv")) / 1e3 for r in (a, b)]
            table.row(f"WebSearch at {load} % on a testbed: 99th percentile of all queues over time, of the worst queue, "
                      "HPCC; DCQCN", "all queues: 22.9 KB; 2.1 MB" if load == 50 else "",
                      f"{q[0][1]:.0f}, {busiest[0]:.0f} KB; {q[1][1]:.0f}, {busiest[1]:.0f} KB", None, a, b)


def of_tree(named, table):
    a, b = named.get("int-42B"), named.get("int-1B")
    if a and b:
        def long(run):
            values = twentieths(by_size(run))[19]
            return sum(values) / len(values)
        cost = 100 * (long(a) / long(b) - 1)
        table.row("INT of 42 bytes on 1000, against 1 byte: mean slowdown of the longest twentieth, WebSearch at 30 %",
                  "3 to 8 % slower", f"{cost:.1f} % slower", 2 <= cost <= 10, a, b)
    wanted = {"HPCC": "none", "DCQCN": "often", "TIMELY": "often", "DCTCP": ""}
    for name, _ in INCAST:
        r = named.get(f"hadoop-incast-{name}")
        if r:
            n, w = r.figure("pause_frames"), wanted.get(name, "almost none")
            table.row(f"PFC with 60:1 incasts on FB_Hadoop at 30 %: {name}", w,
                      f"{n} pauses, longest queue {r.figure('queue_max') / 1e3:.0f} KB",
                      {"none": n == 0, "almost none": n < 200, "often": n > 200}.get(w), r)
    mine = [(name, named.get(f"load-70-{name}".replace(" ", "-"))) for name, _ in LOAD_70]
    if all(r for _, r in mine):
        at = {name: [percentile([s for i in bins for s in twentieths(by_size(r))[i]], 95) for bins in ((0, 1), (11,), (19,))]
              for name, r in mine}
        ours = at["HPCC eta 1.5"]
        table.row("WebSearch at 70 %: slowdown, 95th percentile, of <= 6.7 KB, 200 KB, 30 MB",
                  "eta 0.99 hurts long flows; eta 1.5 is better than or equal to all at all sizes",
                  "; ".join(f"{name}: " + ", ".join(f"{v:.2f}" for v in vs) for name, vs in at.items()),
                  all(o <= 1.03 * v for vs in at.values() for o, v in zip(ours, vs)),
                  mine[0][1].command().replace("cc.eta=0.99", "cc.eta=1.5"))


def page(runs, out):
    table = Table()
    named = done(runs)
    of_testbed(named, table)
    of_tree(named, table)
    table.write(out)
