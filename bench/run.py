#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""
Benchmarks: perftest on Verbena beside its peers, over loopback, in turns, every other one backwards
(A B C C B A ...), so that whatever else the machine does befalls all of them and none is always the one
that comes after another. Prints every command, the medians, and the ratios with those that are wanted: of
what ran in the same round, and of these the median and quartiles, since a machine that has slow phases of
seconds has them for both. An even number of rounds is fair to the order. Nothing is pinned unless --pin says so, and then everything is, alike.

usage: bench/run.py [--quick] [--rounds N] [--json FILE] [--pin CPUS] [--realtime] [GROUP...]
groups: bandwidth latency rate protocols iwarp syscalls; only if named: programs (rstream and fio over verbs and over TCP),
connections (a second, by rdma_cm) and local (through memory, beside UCX's shared memory); only if named, and root only:
between (two network namespaces, a veth pair), busy (the same beside busy loops) and sizes (512 bytes to 64 KiB, over
loopback and between namespaces)
"""
import argparse
import json
import os
import platform
import re
import statistics
import subprocess
import sys
import time

import between
import connections
import local
import programs
from ends import BUILD, VERBENA, Broken, Loopback, commands, environment, in_turns, iperf3, judged, options, pair, perftest, \
    perftest_iwarp, ratios, scaled, ucx

MIB = 1 << 20
LOOPBACK = Loopback()


# ---- the measures: each returns one number --------------------------------------------------------

def write_bw(name, env=None):
    return perftest(LOOPBACK, name, "ib_write_bw", "-s", MIB, "-n", scaled(4000), env=env)[3]


def read_bw(name, env=None):
    return perftest(LOOPBACK, name, "ib_read_bw", "-s", MIB, "-n", scaled(4000), env=env)[3]


def send_bw(name, env=None):
    return perftest(LOOPBACK, name, "ib_send_bw", "-s", MIB, "-n", scaled(4000), env=env)[3]


def write_lat(name, env=None):
    return perftest(LOOPBACK, name, "ib_write_lat", "-s", 8, "-n", scaled(100000), env=env)[4]


def send_lat(name, env=None):
    return perftest(LOOPBACK, name, "ib_send_lat", "-s", 8, "-n", scaled(100000), env=env)[4]


def write_rate(name, env=None):
    return perftest(LOOPBACK, name, "ib_write_bw", "-s", 64, "-n", scaled(2000000), env=env)[4] * 1e6


def over(protocol, measure):
    """The same measure with that protocol at both ends."""
    return lambda name: measure(name, {"VERBENA_PROTOCOL": protocol})


def iwarp_write_bw(name, env=None):
    return perftest_iwarp(LOOPBACK, name, "ib_write_bw", "-s", MIB, "-n", scaled(3000), env=env)[3]


def iwarp_write_bw_no_crc(name):
    return iwarp_write_bw(name, {"VERBENA_IWARP_CRC": "off"})


def tcp_bw(name):
    return iperf3(LOOPBACK, name)


def ucx_tag_bw(name):
    return ucx(LOOPBACK, name, "tag_bw", MIB, scaled(4000))[5]


def ucx_put_bw(name):
    return ucx(LOOPBACK, name, "ucp_put_bw", MIB, scaled(800))[5]


def ucx_tag_lat(name):
    return ucx(LOOPBACK, name, "tag_lat", 8, scaled(100000))[1]


def ucx_tag_rate(name):
    return ucx(LOOPBACK, name, "tag_bw", 64, scaled(500000))[7]


def ucx_put_rate(name):
    return ucx(LOOPBACK, name, "ucp_put_bw", 64, scaled(500000))[7]


def udp_pingpong(name):
    out = pair(LOOPBACK, name, None, [os.path.join(BUILD, "bench", "udp_pingpong"), "-n", scaled(100000)], 0)
    return float(re.search(r"median ([\d.]+) us", out).group(1))


def udp_rate(name):
    out = pair(LOOPBACK, name, None, [os.path.join(BUILD, "bench", "udp_rate"), "-t", "0.5" if options.quick else "2"], 0)
    return float(re.search(r"arrived (\d+) a second", out).group(1))


def connections_of(measure):
    def run(name):
        commands[name] = ["bench/connections.py " + {"connections": "rate"}.get(name, name)]
        return measure()
    return run


GROUPS = {
    "bandwidth": ("MiB/s, 1 MiB messages", [
        ("ib_write_bw", write_bw), ("iperf3", tcp_bw), ("ib_read_bw", read_bw),
        ("UCX tag_bw", ucx_tag_bw), ("ib_send_bw", send_bw), ("UCX put_bw", ucx_put_bw)]),
    "latency": ("us, half a round trip, median, 8 bytes (UDP: 64)", [
        ("ib_write_lat", write_lat), ("UCX tag_lat", ucx_tag_lat), ("ib_send_lat", send_lat),
        ("UDP ping-pong", udp_pingpong)]),
    "rate": ("messages/s, 64 bytes", [
        ("ib_write_bw -s 64", write_rate), ("UCX tag_bw 64", ucx_tag_rate),
        ("UCX put_bw 64", ucx_put_rate), ("UDP datagrams", udp_rate)]),
    "protocols": ("veRoCE beside RoCEv2: MiB/s, us, messages/s", [
        ("%s %s" % (label, what), over(protocol, measure))
        for what, measure in (("write_bw", write_bw), ("read_bw", read_bw), ("send_bw", send_bw),
                              ("send_lat", send_lat), ("write rate 64", write_rate))
        for label, protocol in (("veRoCE", "veroce"), ("RoCEv2", "rocev2"))]),
    "iwarp": ("iWARP: MiB/s, 1 MiB messages", [
        ("iWARP write_bw", iwarp_write_bw), ("one TCP stream", tcp_bw), ("iWARP without CRC", iwarp_write_bw_no_crc)]),
}
GROUPS.update(programs.GROUPS)
GROUPS["connections"] = ("connections a second: made and ended, 64 at once; cmtime with queue pairs, all its steps", [
    ("connections", connections_of(connections.rate)), ("cmtime", connections_of(lambda: connections.cmtime()[0]))])
TABLES = {**between.GROUPS, **local.GROUPS}
ALL = list(GROUPS) + list(TABLES) + ["syscalls"]
IF_NAMED = set(TABLES) | {"programs", "connections"}
# (ours, peers of which the best counts, factor, whether ours should be at least or at most so much)
WANTED = [
    ("ib_write_bw", ["UCX tag_bw", "iperf3"], 1.0, ">="),
    ("ib_read_bw", ["UCX tag_bw", "iperf3"], 1.0, ">="),
    ("ib_send_bw", ["UCX tag_bw", "iperf3"], 1.0, ">="),
    ("ib_write_bw", ["UCX put_bw"], 3.0, ">="),
    ("ib_read_bw", ["UCX put_bw"], 3.0, ">="),
    ("ib_send_bw", ["UCX put_bw"], 3.0, ">="),
    ("ib_write_lat", ["UCX tag_lat"], 1.0, "<="),
    ("ib_send_lat", ["UCX tag_lat"], 1.0, "<="),
    ("ib_write_lat", ["UDP ping-pong"], 1.5, "<="),
    ("ib_send_lat", ["UDP ping-pong"], 1.5, "<="),
    ("ib_write_bw -s 64", ["UCX tag_bw 64", "UCX put_bw 64"], 1.0, ">="),
    ("ib_write_bw -s 64", ["UDP datagrams"], 3.0, ">="),
    ("veRoCE write_bw", ["RoCEv2 write_bw"], 1.0, ">="),
    ("veRoCE read_bw", ["RoCEv2 read_bw"], 1.0, ">="),
    ("veRoCE send_bw", ["RoCEv2 send_bw"], 1.0, ">="),
    ("veRoCE send_lat", ["RoCEv2 send_lat"], 1.0, "<="),
    ("veRoCE write rate 64", ["RoCEv2 write rate 64"], 1.0, ">="),
    ("iWARP write_bw", ["one TCP stream"], 1.0, ">="),
    ("iWARP without CRC", ["one TCP stream"], 1.0, ">="),
] + programs.WANTED


def measured(samples, name):
    """The rounds' figures, without those that failed."""
    return [s for s in samples.get(name, []) if s is not None]


def rounds(group, count, samples):
    unit, measures = GROUPS[group]

    def after(r, found):
        print("  round %d: %s" % (r + 1, ", ".join(
            "%s %s" % (name, "-" if values[r] is None else "%.5g" % values[r]) for (_, name), values in found.items())), flush=True)

    print("\n%s: %s, %d rounds" % (group, unit, count))
    found = in_turns([(group, dict(measures))], count, lambda _, name: name, after)
    print("\n  %-20s %12s %12s %12s   %s" % ("", "median", "least", "most", "command (client)"))
    for (_, name), values in found.items():
        samples[name] = values
        s = measured(samples, name)
        if s:
            print("  %-20s %12.5g %12.5g %12.5g   %s"
                  % (name, statistics.median(s), min(s), max(s), commands[name][-1]))


def judge(samples):
    rows = []
    for ours, peers, factor, sense in WANTED:
        there = {p: statistics.median(measured(samples, p)) for p in peers if measured(samples, p)}
        best = (min if sense == "<=" else max)(there, key=there.get) if there else None
        each = ratios(samples.get(ours, []), samples[best]) if best else []
        if each and not rows:
            print("\nratios within a round\n  %-27s %-18s %7s %15s  %s" % ("", "to", "median", "quartiles", "wanted"))
        if each:
            rows.append(judged(ours, best, each, factor, sense))
    return rows


# ---- packets a system call --------------------------------------------------------------------------

def counters(pid):
    out = subprocess.run([VERBENA, "stat", "--json", str(pid)], capture_output=True, text=True, env=environment({}))
    found = json.loads(out.stdout)["processes"] if out.returncode == 0 else []
    return found[0]["counters"] if found else {}


def syscalls():
    """Sampled twice from outside while the program runs."""
    print("\nsyscalls: packets a system call and a train (datagram of the kernel's), between two looks\n"
          "  %-28s %-7s %10s %10s %10s %10s %12s" % ("", "end", "sent/call", "sent/train", "rcvd/call",
                                                     "rcvd/train", "packets/s"))
    rows = []
    for name, program, words in (("ib_write_bw 1 MiB", "ib_write_bw", ["-s", MIB]),
                                 ("ib_read_bw 1 MiB", "ib_read_bw", ["-s", MIB]),
                                 ("ib_send_bw 1 MiB", "ib_send_bw", ["-s", MIB]),
                                 ("ib_write_bw 64", "ib_write_bw", ["-s", 64]),
                                 ("ib_write_lat 8", "ib_write_lat", ["-s", 8])):
        looks = []

        def look(server, client):
            time.sleep(0.8)
            looks.append([counters(p.pid) for p in (server, client)])
            time.sleep(0.5)
            looks.append([counters(p.pid) for p in (server, client)])

        try:
            perftest(LOOPBACK, name + " (counted)", program, *words, "-D", 3, meanwhile=look)
        except Broken as e:
            print("  " + str(e))
            continue
        for i, end in enumerate(("server", "client")):
            a, b = looks[0][i], looks[1][i]
            if not a or not b:
                continue
            d = {k: b[k] - a[k] for k in b if k.startswith("io_")}

            def per(packets, calls):
                return d[packets] / d[calls] if d[calls] else 0

            row = {"what": name, "end": end, "tx_per_syscall": per("io_tx_packets", "io_tx_syscalls"),
                   "tx_per_train": per("io_tx_packets", "io_tx_trains"),
                   "rx_per_syscall": per("io_rx_packets", "io_rx_syscalls"),
                   "rx_per_train": per("io_rx_packets", "io_rx_trains"),
                   "packets_per_s": (d["io_tx_packets"] + d["io_rx_packets"]) / 0.5,
                   "retransmits": b["retransmits"]}
            rows.append(row)
            print("  %-28s %-7s %10.1f %10.1f %10.1f %10.1f %12.0f%s"
                  % (name, end, row["tx_per_syscall"], row["tx_per_train"], row["rx_per_syscall"],
                     row["rx_per_train"], row["packets_per_s"],
                     "  %d retransmitted" % row["retransmits"] if row["retransmits"] else ""))
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="3 short rounds")
    parser.add_argument("--rounds", type=int, help="5 unless told")
    parser.add_argument("--json", metavar="FILE", help="everything, for machines")
    parser.add_argument("--pin", metavar="CPUS", help="run every program under taskset -c CPUS")
    parser.add_argument("--realtime", action="store_true",
                        help="run every program under chrt -r 1, before all other work of this machine (root); two ends that "
                             "spin may keep the kernel's own threads from delivering packets: look at the retransmits")
    parser.add_argument("group", nargs="*", help=" ".join(ALL))
    parser.parse_args(namespace=options)
    unknown = set(options.group) - set(ALL)
    if unknown:
        parser.error("no such group: %s; there are %s" % (" ".join(sorted(unknown)), " ".join(ALL)))
    if not os.access(VERBENA, os.X_OK):
        sys.exit("bench: %s is not there: make build" % os.path.relpath(VERBENA))
    count = options.rounds or (3 if options.quick else 5)
    chosen = options.group or [g for g in ALL if g not in IF_NAMED]
    if os.geteuid() and set(chosen) & set(between.GROUPS):
        sys.exit("bench: %s make network namespaces: root only" % " and ".join(between.GROUPS))

    with open("/proc/loadavg") as f:
        load = f.read().split()[0]
    print("Linux %s, %d processors, load %s at the start; %s%s; default settings"
          % (platform.release(), os.cpu_count(), load, "pinned to " + options.pin if options.pin else "nothing pinned",
             ", real-time priority" if options.realtime else ""))
    samples, calls, tables = {}, [], []
    for group in chosen:
        if group in GROUPS:
            rounds(group, count, samples)
        elif group in TABLES:
            tables += TABLES[group](count)
    rows = judge(samples)
    if "syscalls" in chosen:
        calls = syscalls()
    if options.json:
        with open(options.json, "w") as f:
            json.dump({"kernel": platform.release(), "processors": os.cpu_count(), "load": float(load),
                       "rounds": count, "quick": options.quick, "pin": options.pin, "realtime": options.realtime, "commands": commands,
                       "samples": samples, "ratios": rows, "syscalls": calls, "tables": tables,
                       "medians": {k: statistics.median(measured(samples, k))
                                   for k in samples if measured(samples, k)}}, f, indent=1)
            f.write("\n")
    missing = [name for g in chosen if g in GROUPS for name, _ in GROUPS[g][1]
               if not measured(samples, name)]
    if missing:
        sys.exit("bench: no figure for " + ", ".join(missing))


if __name__ == "__main__":
    main()
