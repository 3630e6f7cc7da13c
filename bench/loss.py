#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""
What loss costs: ib_write_bw over a link of limited rate between two network namespaces, where nftables
drops packets at random, each way. Goodput with loss over goodput of the same run without, for veRoCE
(fast loss detection), veRoCE as IRN does it, and RoCEv2, which goes back. Rounds are interleaved, so
that whatever else the machine does befalls all of them; a ratio is one of medians.

usage: bench/loss.py [--quick] [--rounds N] [--seconds S] [--rates 1,4] [--delays 0,10] [--losses 1,2,5]
                     [--protocols fast,irn,rocev2] [--mtu 1500] [--realtime] [--json FILE]

Rates are Gbit/s of a tbf queue at each end, delays are ms a round trip, half of it added by
VERBENA_IMPAIR at each end, losses are percent. nftables has no seed: its random numbers are the kernel's.
RoCEv2, which has no congestion control, gets twice what the link holds for its window, so that it fills
it; all else is as by default.
"""
import argparse
import json
import os
import platform
import statistics
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(ROOT, "tests", "programs"))
import pair as pairs  # noqa: E402

PROTOCOLS = {
    "fast": ("veRoCE", {"VERBENA_PROTOCOL": "veroce", "VERBENA_LOSS": "fast"}),
    "base": ("veRoCE, base", {"VERBENA_PROTOCOL": "veroce", "VERBENA_LOSS": "base"}),
    "irn": ("IRN", {"VERBENA_PROTOCOL": "veroce", "VERBENA_LOSS": "irn"}),
    "rocev2": ("RoCEv2", {"VERBENA_PROTOCOL": "rocev2"}),
}
WANTED = {1: 0.98, 2: 0.97, 5: 0.93}  # of veRoCE with fast loss detection
SIZE = 1 << 20
QUEUE_BYTES = 16 << 20  # more than anybody has in flight: the losses are nftables' alone

options = argparse.Namespace()


class Link:
    """Two namespaces and a veth pair, whose rate and loss can be set."""

    def __init__(self):
        self.place = pairs.Place("veth%d-4" % options.mtu)
        self.rate = None
        for end in (0, 1):
            # A train would be one packet to tbf and nftables.
            self.inside(end, "ethtool", "-K", self.place.links[0][end], "tx-udp-segmentation", "off")

    def inside(self, end, *words, text=None):
        r = subprocess.run(["ip", "netns", "exec", self.place.spaces[end]] + list(words), input=text,
                           capture_output=True, text=True)
        pairs.check(r.returncode == 0, "%s: %s" % (" ".join(words), r.stderr.strip()))
        return r.stdout

    def set_rate(self, gbits):
        if gbits == self.rate:
            return
        self.rate = gbits
        for end in (0, 1):
            # The bucket holds 0.2 ms.
            self.inside(end, "tc", "qdisc", "replace", "dev", self.place.links[0][end], "root", "tbf",
                        "rate", "%gmbit" % (gbits * 1000), "burst", "%d" % max(gbits * 1e9 / 8 * 2e-4, 20000),
                        "limit", "%d" % QUEUE_BYTES)

    def set_loss(self, percent):
        rule = "udp dport { 4791, 4794 } numgen random mod 1000000 < %d counter drop" % (percent * 10000)
        for end in (0, 1):
            self.inside(end, "nft", "-f", "-", text="""table inet loss
delete table inet loss
table inet loss {
chain arrival {
type filter hook prerouting priority -300;
%s
}
}
""" % (rule if percent else ""))

    def queue_drops(self):
        return sum(json.loads(self.inside(end, "tc", "-j", "-s", "qdisc", "show", "dev",
                                          self.place.links[0][end]))[0]["drops"] for end in (0, 1))


def goodput(link, protocol, delay_ms):
    """Gbit/s of ib_write_bw; None when it failed, with the reason printed."""
    env = dict(PROTOCOLS[protocol][1])
    if protocol == "rocev2":
        env["VERBENA_WINDOW_BYTES"] = "%d" % max(1 << 20, 2 * link.rate * 1e9 / 8 * delay_ms / 1e3)
    if delay_ms:
        env["VERBENA_IMPAIR"] = "delay=%gms,limit=65536" % (delay_ms / 2)
    try:
        rows = pairs.perftest(link.place, "ib_write_bw", ["-s", SIZE, "-D", options.seconds], env=env,
                              seconds=options.seconds + 30)
        return rows[0][2][1] * (1 << 20) * 8 / 1e9  # perftest says MiB/s
    except pairs.Failure as e:
        print("  " + str(e).replace("\n", "\n  "))
        return None


def floats(text):
    return [float(word) for word in text.split(",")]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="1 Gbit/s, 1 and 5 %%, 3 short rounds")
    parser.add_argument("--rounds", type=int, help="5 unless told")
    parser.add_argument("--seconds", type=int, help="of one run; 3 unless told")
    parser.add_argument("--rates", type=floats, metavar="GBITS", help="1,4 unless told")
    parser.add_argument("--delays", type=floats, metavar="MS", default=[0, 10], help="0,10 unless told")
    parser.add_argument("--losses", type=floats, metavar="PERCENT", help="1,2,5 unless told")
    parser.add_argument("--protocols", default="fast,irn,rocev2", help="of " + " ".join(PROTOCOLS))
    parser.add_argument("--mtu", type=int, default=1500, help="of the link; 1500 unless told")
    parser.add_argument("--realtime", action="store_true",
                        help="run everything at real-time priority, where other work would disturb it (root)")
    parser.add_argument("--json", metavar="FILE", help="everything, for machines")
    parser.parse_args(namespace=options)
    rounds = options.rounds or (3 if options.quick else 5)
    options.seconds = options.seconds or (2 if options.quick else 3)
    rates = options.rates or ([1.0] if options.quick else [1.0, 4.0])
    losses = options.losses or ([1.0, 5.0] if options.quick else [1.0, 2.0, 5.0])
    protocols = options.protocols.split(",")
    if set(protocols) - set(PROTOCOLS):
        parser.error("protocols are " + " ".join(PROTOCOLS))
    pairs.apart()

    with open("/proc/loadavg") as f:
        load = f.read().split()[0]
    print("Linux %s, %d processors, load %s at the start%s; veth MTU %d, ib_write_bw -s %d -D %d, %d rounds;"
          " dropped each way by nftables, numgen random"
          % (platform.release(), os.cpu_count(), load, ", at real-time priority" if options.realtime else "",
             options.mtu, SIZE, options.seconds, rounds))
    try:
        if options.realtime:
            os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))
        link = Link()
    except (pairs.Skip, pairs.Failure, PermissionError) as e:
        sys.exit("bench: " + str(e))

    samples, drops = {}, {}
    try:
        for n in range(rounds):
            for rate in rates:
                for delay in options.delays:
                    for protocol in protocols:
                        words = []
                        for loss in [0.0] + losses:
                            key = rate, delay, protocol, loss
                            link.set_rate(rate)
                            link.set_loss(loss)
                            before = link.queue_drops()
                            value = goodput(link, protocol, delay)
                            drops[key] = drops.get(key, 0) + link.queue_drops() - before
                            if value is not None:
                                samples.setdefault(key, []).append(value)
                            words.append("%g %%: %s" % (loss, "-" if value is None else "%.3f" % value))
                        print("  round %d, %g Gbit/s, %g ms, %-8s %s"
                              % (n + 1, rate, delay, protocol, ", ".join(words)), flush=True)
    except pairs.Failure as e:
        print("bench: " + str(e))

    print("\n%-9s %-6s %-14s %-7s %9s %7s %8s"
          % ("rate", "delay", "protocol", "loss", "Gbit/s", "ratio", "wanted"))
    rows = []
    for rate in rates:
        for delay in options.delays:
            for protocol in protocols:
                clean = samples.get((rate, delay, protocol, 0.0))
                for loss in [0.0] + losses:
                    key = rate, delay, protocol, loss
                    if key not in samples:
                        continue
                    median = statistics.median(samples[key])
                    ratio = median / statistics.median(clean) if clean else None
                    wanted = WANTED.get(loss) if protocol == "fast" else None
                    met = ratio >= wanted if wanted and ratio is not None else None
                    rows.append({"gbits": rate, "delay_ms": delay, "protocol": protocol, "loss_percent": loss,
                                 "median_gbits": median, "ratio": ratio, "wanted": wanted, "met": met,
                                 "queue_drops": drops[key], "samples": samples[key]})
                    print("%-9s %-6s %-14s %-7s %9.3f %7s %8s  %s%s"
                          % ("%g Gbit/s" % rate, "%g ms" % delay, PROTOCOLS[protocol][0], "%g %%" % loss, median,
                             "" if not loss or ratio is None else "%.3f" % ratio,
                             "%.2f" % wanted if wanted else "", {True: "yes", False: "no", None: ""}[met],
                             "  the queue dropped %d" % drops[key] if drops[key] else ""))
    if options.json:
        with open(options.json, "w") as f:
            json.dump({"kernel": platform.release(), "processors": os.cpu_count(), "load": float(load),
                       "rounds": rounds, "seconds": options.seconds, "mtu": options.mtu,
                       "realtime": options.realtime, "queue_bytes": QUEUE_BYTES, "rows": rows}, f, indent=1)
            f.write("\n")
    expected = len(rates) * len(options.delays) * len(protocols) * (len(losses) + 1)
    if len(rows) < expected:
        sys.exit("bench: no figure for %d of %d" % (expected - len(rows), expected))


if __name__ == "__main__":
    main()
