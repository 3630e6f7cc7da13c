#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""What a rate that finds itself finds: SDR with `rate = auto` over grids of links, in the simulator.

Usage: sdr_rate.py BUILD [alone] [share] [change] [--rates 50,200,1000] [--rtts 1,20,50,200] [--losses 0,0.001,0.01,0.05]

alone: one flow; the share of the payload rate from 5 s (and 25 round trips) on, and the longest queue, in round trips, whole run and
       from then on
share: 2, 4 and 8 flows that begin 30 round trips apart; Jain's index of the round trips 0 to 30 and 30 to 60 behind the last start
change: the rate halves, then doubles, and the link is dead for 2 s; the share of the 10 round trips that begin 10 behind each

Each line is one run; the same seed gives the same figures.
"""
import argparse
import csv
import os
import pathlib
import subprocess
import sys
import tempfile
import concurrent.futures

PAYLOAD, WIRE = 1024, 1024 + 102
NETWORK = """[topology]
kind = dumbbell
hosts = %(hosts)d
[link]
rate = %(fast)dMbps
fabric_rate = %(mbps)gMbps
delay = 0
fabric_delay = %(delay_us)dus
loss_place = fabric
loss = %(loss)g
[switch]
buffer = 1GB
port_limit = %(buffer)dB
ecn = off
[transport]
protocol = sdr
payload = 1024B
[sdr]
chunk = 64KiB
scheme = tail
rate = auto
[cc]
algorithm = none
[output]
goodput_window = %(window_us)dus
[run]
until = %(until_ms)dms
seed = %(seed)d
"""
FLOW = "[workload.f%d]\nkind = flow\nsenders = %d\nreceivers = %d\nsize = %dB\nstart = %dms\n"


def run(o, mbps, rtt_ms, loss, starts_ms, until_ms, events="", buffer_rtts=4):
    """The payload of each flow, and the longest queue in bytes, by window of a round trip (5 ms at least)."""
    n = len(starts_ms)
    window = max(rtt_ms, 5)
    text = NETWORK % {"hosts": n, "fast": max(10000, 10 * mbps), "mbps": mbps, "delay_us": rtt_ms * 500, "loss": loss,
                      "buffer": max(65536, buffer_rtts * mbps * 125 * rtt_ms), "window_us": window * 1000,
                      "until_ms": until_ms, "seed": o.seed}
    for i, start in enumerate(starts_ms):
        text += FLOW % (i, i, n + i, mbps * 125 * until_ms * 2, start)
    with tempfile.TemporaryDirectory() as d:
        pathlib.Path(d, "s.ini").write_text(text + events)
        done = subprocess.run([o.build + "/verbena", "sim", d + "/s.ini", "--report", d + "/r"], capture_output=True, text=True)
        if done.returncode not in (0, 2, 3) or not os.path.exists(d + "/r/goodput_flows.csv"):
            sys.exit(done.stdout + done.stderr)
        flows = [{} for _ in range(n)]
        for r in csv.DictReader(open(d + "/r/goodput_flows.csv")):
            flows[int(r["flow"])][int(r["time_ps"]) / 1e9] = float(r["bps"]) * int(r["window_ps"]) / 8e12
        queue = {}
        for r in csv.DictReader(open(d + "/r/queue_over_time.csv")):
            if int(r["node"]) == 2 * n:
                at = int(r["time_ps"]) / 1e9
                queue[at] = max(queue.get(at, 0), int(r["bytes_max"]))
        return flows, queue


def between(flow, from_ms, to_ms):
    return sum(b for at, b in flow.items() if from_ms <= at < to_ms)


def share_of(flow, mbps, loss, from_ms, to_ms):
    got = [at for at in flow if from_ms <= at < to_ms]
    return between(flow, from_ms, to_ms) * 8 / (mbps * 1e3 * PAYLOAD / WIRE * (1 - loss) * (to_ms - from_ms)) if got else 0


def jain(values):
    return sum(values) ** 2 / len(values) / sum(v * v for v in values) if any(values) else 0


def alone(o, mbps, rtt, loss):
    begin = max(5000, 25 * rtt)
    end = begin + max(5000, 25 * rtt)
    flows, queue = run(o, mbps, rtt, loss, [0], end)
    bdp = mbps * 125 * rtt
    return "alone  %5d Mbit/s %4d ms %5.1f %%: %.3f of the rate, queue %.2f, then %.2f" % (
        mbps, rtt, loss * 100, share_of(flows[0], mbps, loss, begin, end),
        max(queue.values(), default=0) / bdp, max((q for at, q in queue.items() if at >= begin), default=0) / bdp)


def share(o, mbps, rtt, loss, n):
    gap = 30 * max(rtt, 5)
    starts = [i * gap for i in range(n)]
    end = starts[-1] + 2 * gap
    flows, queue = run(o, mbps, rtt, loss, starts, end)
    each = lambda a, b: [between(f, a, b) for f in flows]
    soon, later = each(end - 2 * gap, end - gap), each(end - gap, end)
    at = each(end - gap - 5 * max(rtt, 5), end - gap)
    return "share  %5d Mbit/s %4d ms %5.1f %% %d flows: Jain %.3f at 30 round trips, %.3f over 30 to 60, sum %.3f, queue %.2f" % (
        mbps, rtt, loss * 100, n, jain(at), jain(later), sum(later) * 8 / (mbps * 1e3 * PAYLOAD / WIRE * (1 - loss) * gap),
        max(queue.values(), default=0) / (mbps * 125 * rtt))


EVENT = "[failure.%s]\nlink = 2-3\ntime = %dms\n%s\n"


def change(o, mbps, rtt, loss):
    step = 10 * max(rtt, 5)
    a, b, c = 5000, 5000 + 3 * step, 5000 + 6 * step
    events = (EVENT % ("half", a, "action = rate\nrate = %gMbps" % (mbps / 2)) + EVENT % ("twice", b, "action = rate\nrate = %gMbps" % mbps) +
              EVENT % ("dead", c, "action = down\nup_after = 2s"))
    flows, _ = run(o, mbps, rtt, loss, [0], c + 2000 + 3 * step, events)
    f = flows[0]
    return "change %5d Mbit/s %4d ms %5.1f %%: half %.3f, twice %.3f, dead for 2 s and then %.3f" % (
        mbps, rtt, loss * 100, share_of(f, mbps / 2, loss, a + step, a + 2 * step), share_of(f, mbps, loss, b + step, b + 2 * step),
        share_of(f, mbps, loss, c + 2000 + step, c + 2000 + 2 * step))


def main():
    p = argparse.ArgumentParser()
    p.add_argument("build")
    p.add_argument("what", nargs="*", default=["alone", "share", "change"])
    p.add_argument("--rates", default="50,200,1000")
    p.add_argument("--rtts", default="1,20,50,200")
    p.add_argument("--losses", default="0,0.001,0.01,0.05")
    p.add_argument("--flows", default="2,4,8")
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--jobs", type=int, default=1)
    o = p.parse_args()
    numbers = lambda text, kind: [kind(w) for w in text.split(",")]
    cells = [(m, r, l) for m in numbers(o.rates, int) for r in numbers(o.rtts, int) for l in numbers(o.losses, float)]
    jobs = []
    if "alone" in o.what:
        jobs += [(alone, *c) for c in cells]
    if "share" in o.what:
        jobs += [(share, *c, n) for c in cells for n in numbers(o.flows, int)]
    if "change" in o.what:
        jobs += [(change, *c) for c in cells]
    print("seed %d, packets of %d bytes, a buffer of 4 round trips" % (o.seed, PAYLOAD))
    with concurrent.futures.ThreadPoolExecutor(o.jobs) as pool:
        for line in pool.map(lambda j: j[0](o, *j[1:]), jobs):
            print(line, flush=True)


main()
