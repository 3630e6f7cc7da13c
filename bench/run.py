#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""
Benchmarks over loopback: perftest on Verbena beside its peers, in turns, every other one backwards
(A B C C B A ...), so that whatever else the machine does befalls all of them and none is always the one
that comes after another. Prints every command, the medians, and the ratios with those that are wanted: of
what ran in the same round, and of these the median and quartiles, since a machine that has slow phases of
seconds has them for both. An even number of rounds is fair to the order. Nothing is pinned unless --pin says so, and then everything is, alike.

usage: bench/run.py [--quick] [--rounds N] [--json FILE] [--pin CPUS] [GROUP...]
groups: bandwidth latency rate protocols syscalls
"""
import argparse
import json
import os
import platform
import random
import re
import signal
import socket
import statistics
import subprocess
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BUILD = os.environ.get("BUILD_DIR") or os.path.join(ROOT, "build")
VERBENA = os.path.join(BUILD, "verbena")
MIB = 1 << 20
UCX_ENV = {"UCX_TLS": "tcp,self", "UCX_NET_DEVICES": "lo", "UCX_WARN_UNUSED_ENV_VARS": "n"}
LIMIT_S = 60  # for one run

options = argparse.Namespace(quick=False, pin=None, gid=None, protocol=None)
commands = {}  # of each measure, as they ran last


class Broken(Exception):
    pass


def tcp_port():
    while True:
        port = random.randrange(20000, 32000)
        with socket.socket() as s:
            try:
                s.bind(("", port))
                return port
            except OSError:
                continue


def environment(extra):
    env = {k: v for k, v in os.environ.items() if not k.startswith(("VERBENA_", "UCX_", "LD_"))}
    env.update(extra, LC_ALL="C")
    return env


def start(command, env):
    if options.pin:
        command = ["taskset", "-c", options.pin] + command
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                            stdin=subprocess.DEVNULL, env=environment(env), start_new_session=True)


def stop(*processes):
    for p in processes:
        if p:
            try:
                os.killpg(p.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            p.wait()


def listens(pid, port):
    for table in ("tcp", "tcp6"):
        with open("/proc/%d/net/%s" % (pid, table)) as f:
            for line in f.readlines()[1:]:
                word = line.split()
                if word[3] == "0A" and int(word[1].rsplit(":", 1)[1], 16) == port:
                    return True
    return False


def pair(name, server, client, port, env=None, meanwhile=None):
    """Runs both ends; returns the client's output. Records the commands under name."""
    env = env or {}
    commands[name] = [" ".join(["%s=%s" % kv for kv in env.items()] + [os.path.relpath(w, ROOT)
                      if w.startswith(BUILD) else w for w in c]) for c in (server, client) if c]
    s = c = None
    try:
        if server:
            s = start(server, env)
            end = time.monotonic() + 10
            while not listens(s.pid, port):
                if s.poll() is not None or time.monotonic() > end:
                    stop(s)
                    raise Broken("%s: the server does not listen:\n%s" % (name, s.stdout.read()))
                time.sleep(0.005)
        c = start(client, env)
        if meanwhile:
            meanwhile(s, c)
        try:
            out, _ = c.communicate(timeout=LIMIT_S)
        except subprocess.TimeoutExpired:
            raise Broken("%s: not done after %d s" % (name, LIMIT_S))
        if c.returncode:
            raise Broken("%s: status %d\n%s" % (name, c.returncode, out))
        if s:
            try:
                s.wait(5)
            except subprocess.TimeoutExpired:
                pass
        return out
    finally:
        stop(c, s)


# ---- the measures: each returns one number --------------------------------------------------------

def loopback_gid():
    """The index of 127.0.0.1, which is where the peers run too."""
    out = subprocess.run([VERBENA, "devices", "--json"], capture_output=True, text=True, env=environment({}))
    for gid in json.loads(out.stdout)["devices"][0]["ports"][0]["gids"]:
        if gid["address"] == "127.0.0.1":
            return gid["index"]
    sys.exit("bench: verbena devices shows no GID for 127.0.0.1")


def perftest(name, program, *words, meanwhile=None):
    """The last row of the result table: a list of numbers."""
    port = tcp_port()
    common = [VERBENA, "run", program, "-F", "-x", str(options.gid), "-p", str(port)] + [str(w) for w in words]
    env = {"VERBENA_PROTOCOL": options.protocol} if options.protocol else None
    out = pair(name, common, common + ["127.0.0.1"], port, env=env, meanwhile=meanwhile)
    rows = re.findall(r"^ *\d+ +\d+(?:[ \t]+[\d.]+)+[ \t]*$", out.rsplit("#bytes", 1)[-1], re.M)
    if not rows:
        raise Broken("%s: no result\n%s" % (name, out))
    return [float(x) for x in rows[-1].split()]


def scaled(n):
    return max(n // 4, 100) if options.quick else n


def write_bw(name):
    return perftest(name, "ib_write_bw", "-s", MIB, "-n", scaled(4000))[3]


def read_bw(name):
    return perftest(name, "ib_read_bw", "-s", MIB, "-n", scaled(4000))[3]


def send_bw(name):
    return perftest(name, "ib_send_bw", "-s", MIB, "-n", scaled(4000))[3]


def write_lat(name):
    return perftest(name, "ib_write_lat", "-s", 8, "-n", scaled(100000))[4]


def send_lat(name):
    return perftest(name, "ib_send_lat", "-s", 8, "-n", scaled(100000))[4]


def write_rate(name):
    return perftest(name, "ib_write_bw", "-s", 64, "-n", scaled(2000000))[4] * 1e6


def over(protocol, measure):
    """The same measure with that protocol at both ends."""
    def run(name):
        options.protocol = protocol
        try:
            return measure(name)
        finally:
            options.protocol = None
    return run


def iperf3(name):
    port = tcp_port()
    out = pair(name, ["iperf3", "-s", "-1", "-p", str(port)],
               ["iperf3", "-c", "127.0.0.1", "-p", str(port), "-J", "-t", "1" if options.quick else "3"], port)
    return json.loads(out)["end"]["sum_received"]["bits_per_second"] / 8 / MIB


def ucx(name, test, size, iters):
    """ucx_perftest's last line: iterations; 50 %, mean, overall; MiB/s twice; messages/s twice."""
    port = tcp_port()
    out = pair(name, ["ucx_perftest", "-p", str(port)],
               ["ucx_perftest", "127.0.0.1", "-p", str(port), "-t", test, "-s", str(size),
                "-n", str(iters), "-w", str(max(iters // 20, 10)), "-f"], port, UCX_ENV)
    last = [line for line in out.splitlines() if re.match(r"[ \d.]+$", line)]
    if not last:
        raise Broken("%s: no result\n%s" % (name, out))
    return [float(x) for x in last[-1].split()]


def ucx_tag_bw(name):
    return ucx(name, "tag_bw", MIB, scaled(4000))[5]


def ucx_put_bw(name):
    return ucx(name, "ucp_put_bw", MIB, scaled(800))[5]


def ucx_tag_lat(name):
    return ucx(name, "tag_lat", 8, scaled(100000))[1]


def ucx_tag_rate(name):
    return ucx(name, "tag_bw", 64, scaled(500000))[7]


def ucx_put_rate(name):
    return ucx(name, "ucp_put_bw", 64, scaled(500000))[7]


def udp_pingpong(name):
    out = pair(name, None, [os.path.join(BUILD, "bench", "udp_pingpong"), "-n", str(scaled(100000))], 0)
    return float(re.search(r"median ([\d.]+) us", out).group(1))


def udp_rate(name):
    out = pair(name, None, [os.path.join(BUILD, "bench", "udp_rate"), "-t", "0.5" if options.quick else "2"], 0)
    return float(re.search(r"arrived (\d+) a second", out).group(1))


GROUPS = {
    "bandwidth": ("MiB/s, 1 MiB messages", [
        ("ib_write_bw", write_bw), ("iperf3", iperf3), ("ib_read_bw", read_bw),
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
}
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
]


def measured(samples, name):
    """The rounds' figures, without those that failed."""
    return [s for s in samples.get(name, []) if s is not None]


def rounds(group, count, samples):
    unit, measures = GROUPS[group]
    print("\n%s: %s, %d rounds" % (group, unit, count))
    for r in range(count):
        values = {}
        for name, measure in measures[::-1] if r % 2 else measures:
            try:
                values[name] = measure(name)
            except Broken as e:
                print("  " + str(e).replace("\n", "\n  "))
                values[name] = None
        for name, _ in measures:
            samples.setdefault(name, []).append(values[name])
        print("  round %d: %s" % (r + 1, ", ".join(
            "%s %s" % (name, "-" if values[name] is None else "%.5g" % values[name]) for name, _ in measures)),
              flush=True)
    print("\n  %-20s %12s %12s %12s   %s" % ("", "median", "least", "most", "command (client)"))
    for name, _ in measures:
        s = measured(samples, name)
        if s:
            print("  %-20s %12.5g %12.5g %12.5g   %s"
                  % (name, statistics.median(s), min(s), max(s), commands[name][-1]))


def ratios(samples):
    rows = []
    for ours, peers, factor, sense in WANTED:
        there = {p: statistics.median(measured(samples, p)) for p in peers if measured(samples, p)}
        if not there:
            continue
        best = (min if sense == "<=" else max)(there, key=there.get)
        each = sorted(a / b for a, b in zip(samples.get(ours, []), samples[best]) if a is not None and b)
        if not each:
            continue
        ratio = statistics.median(each)
        low, _, high = statistics.quantiles(each, n=4, method="inclusive") if len(each) > 1 else 3 * each
        met = ratio <= factor if sense == "<=" else ratio >= factor
        rows.append({"what": ours, "peer": best, "ratio": round(ratio, 3), "quartiles": [round(low, 3), round(high, 3)],
                     "wanted": sense + " %g" % factor, "met": met})
    if rows:
        print("\nratios within a round\n  %-20s %-20s %8s %15s  %s" % ("", "to", "median", "quartiles", "wanted"))
        for r in rows:
            print("  %-20s %-20s %8.2f %7.2f %7.2f  %-7s %s"
                  % (r["what"], r["peer"], r["ratio"], *r["quartiles"], r["wanted"], "yes" if r["met"] else "no"))
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
            perftest(name + " (counted)", program, *words, "-D", 3, meanwhile=look)
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
    parser.add_argument("group", nargs="*", help=" ".join(list(GROUPS) + ["syscalls"]))
    parser.parse_args(namespace=options)
    unknown = set(options.group) - set(GROUPS) - {"syscalls"}
    if unknown:
        parser.error("no such group: " + " ".join(sorted(unknown)))
    if not os.access(VERBENA, os.X_OK):
        sys.exit("bench: %s is not there: make build" % os.path.relpath(VERBENA))
    options.gid = loopback_gid()
    count = options.rounds or (3 if options.quick else 5)
    chosen = options.group or list(GROUPS) + ["syscalls"]

    with open("/proc/loadavg") as f:
        load = f.read().split()[0]
    print("Linux %s, %d processors, load %s at the start; %s; loopback, default settings"
          % (platform.release(), os.cpu_count(), load, "pinned to " + options.pin if options.pin else "nothing pinned"))
    samples, calls = {}, []
    for group in chosen:
        if group in GROUPS:
            rounds(group, count, samples)
    rows = ratios(samples)
    if "syscalls" in chosen:
        calls = syscalls()
    if options.json:
        with open(options.json, "w") as f:
            json.dump({"kernel": platform.release(), "processors": os.cpu_count(), "load": float(load),
                       "rounds": count, "quick": options.quick, "pin": options.pin, "commands": commands,
                       "samples": samples, "ratios": rows, "syscalls": calls,
                       "medians": {k: statistics.median(measured(samples, k))
                                   for k in samples if measured(samples, k)}}, f, indent=1)
            f.write("\n")
    missing = [name for g in chosen if g in GROUPS for name, _ in GROUPS[g][1]
               if not measured(samples, name)]
    if missing:
        sys.exit("bench: no figure for " + ", ".join(missing))


if __name__ == "__main__":
    main()
