#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""A file over a long link that loses packets: sdr_cp's schemes, rsync's daemon, TCP, and reliable connections, in turn, over one link.

Usage (root, in a network namespace of its own): sdr_wan.py BUILD [--rate MBPS] [--delay MS] [--loss PPM] [--bytes N] [--rounds N]
                                                 [--files N] [--only WORD,...]

--files: N files of 4 KiB in place of one, by sdr_cp and rsync; then, and with rsync, all of the program's time counts
--only: the ways whose names begin with one of these words

All go through build/bench/wan_link, so all meet the same losses in distribution, delay and rate. Each round runs each way
once; the table has the median and the range of goodput, in Mbit/s, and what that is of the link's rate. The figures depend
on the machine where the link's rate nears what its processors carry; the load is printed.
"""
import argparse
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

A, B = "wana", "wanb"


def sh(*words):
    subprocess.run(words, check=True, capture_output=True)


class Link:
    def __init__(self, build, o):
        for space in (A, B):
            subprocess.run(["ip", "netns", "del", space], capture_output=True)
            sh("ip", "netns", "add", space)
            sh("ip", "-n", space, "link", "set", "lo", "up")
        # A queue of a bandwidth-delay product, as a router on such a path has.
        words = [build + "/bench/wan_link", A, B, o.rate, o.delay, o.loss, 2 * o.delay, o.seed]
        self.process = subprocess.Popen([str(w) for w in words], stdout=subprocess.PIPE, text=True)
        if self.process.stdout.readline() != "ready\n":
            sys.exit("no link")
        for i, space in enumerate((A, B)):
            sh("ip", "-n", space, "addr", "add", "10.78.0.%d" % (i + 1), "peer", "10.78.0.%d" % (2 - i), "dev", "wan0")
            sh("ip", "-n", space, "link", "set", "wan0", "mtu", "1500", "txqueuelen", "2000", "up")

    def close(self):
        self.process.kill()
        self.process.wait()
        for space in (A, B):
            subprocess.run(["ip", "netns", "del", space], capture_output=True)


def pair(server, client, env=None, limit=120):
    """Runs both ends; the client's output, or None when it did not end well in time."""
    env = {**os.environ, "VERBENA_QUIET": "1", **(env or {})}
    s = subprocess.Popen(["ip", "netns", "exec", A, *server], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=env)
    time.sleep(1)
    began = time.monotonic()
    try:
        c = subprocess.run(["ip", "netns", "exec", B, *client], capture_output=True, text=True, env=env, timeout=limit)
        pair.took = time.monotonic() - began
        return c.stdout if c.returncode == 0 else None
    except subprocess.TimeoutExpired:
        return None
    finally:
        try:
            s.wait(3)
        except subprocess.TimeoutExpired:
            s.kill()
            s.wait()


def copy(o, work, server, client):
    """What the client says, and for how long it ran, if the copy is right."""
    there = os.path.join(work, "there")
    shutil.rmtree(there, ignore_errors=True)
    if os.path.exists(there):
        os.unlink(there)
    out = pair(server, client)
    took = pair.took
    right = out is not None and not subprocess.run(["diff", "-rq", o.file, there], capture_output=True).returncode
    return (out, took) if right else (None, None)


def cp(build, o, work, scheme, rate=None):
    run = [build + "/verbena", "run", build + "/sdr_cp"]
    out, took = copy(o, work, [*run, os.path.join(work, "there")],
                     [*run, "-S", scheme, "-r", rate or str(int(o.rate * 0.9)), o.file, "10.78.0.1"])
    if out is None:
        return None
    return o.bytes * 8 / (took if o.files else float(re.search(r"bytes in ([\d.]+) s", out).group(1))) / 1e6


def cp_auto(build, o, work, scheme):
    return cp(build, o, work, scheme, "auto")


def rsync(build, o, work, _):
    conf = os.path.join(work, "rsyncd.conf")
    with open(conf, "w") as f:
        f.write("use chroot = no\nuid = 0\ngid = 0\n[m]\npath = %s\nread only = no\n" % work)
    out, took = copy(o, work, ["rsync", "--daemon", "--no-detach", "--config", conf],
                     ["rsync", "-a", o.file + "/" * bool(o.files), "rsync://10.78.0.1/m/there"])
    return out is not None and o.bytes * 8 / took / 1e6 or None


def tcp(build, o, work, control):
    out = pair(["iperf3", "-s", "-1"], ["iperf3", "-c", "10.78.0.1", "-n", str(o.bytes), "-C", control, "-J"])
    found = out and re.search(r'"sum_received":\s*\{[^}]*"bits_per_second":\s*([\d.e+]+)', out)
    return float(found.group(1)) / 1e6 if found else None


def rc(build, o, work, protocol):
    words = ["ib_write_bw", "-s", "65536", "-n", str(max(5, o.bytes // 65536)), "-t", "64", "-u", "18", "-F", "--report_gbits"]
    run = [build + "/verbena", "run", *words]
    out = pair(run, [*run, "10.78.0.1"], {"VERBENA_PROTOCOL": protocol})
    found = out and re.search(r"^ 65536\s+\d+\s+\S+\s+(\S+)", out, re.M)
    return float(found.group(1)) * 1e3 if found else None


def ways(o):
    yield from (("sdr_cp auto", cp_auto, "auto"), ("rsync", rsync, None))
    if o.files:
        return
    found = open("/proc/sys/net/ipv4/tcp_available_congestion_control").read().split()
    yield from (("sdr_cp " + s, cp, s) for s in ("tail", "ec", "nack", "rto", "mds"))
    yield from (("TCP " + c, tcp, c) for c in ("cubic", "bbr") if c in found)
    yield from (("RC " + p, rc, p) for p in ("rocev2", "veroce"))


def main():
    p = argparse.ArgumentParser()
    p.add_argument("build")
    for name, value in (("rate", 50), ("delay", 25), ("loss", 10000), ("bytes", 16 << 20), ("rounds", 3), ("seed", 1),
                        ("files", 0)):
        p.add_argument("--" + name, type=int, default=value)
    p.add_argument("--only", default="")
    o = p.parse_args()
    o.build = os.path.abspath(o.build)
    figures = {}
    with tempfile.TemporaryDirectory() as work:
        o.file = os.path.join(work, "here")
        if o.files:
            o.bytes = 4096 * o.files
            os.mkdir(o.file)
        for i in range(max(1, o.files)):
            with open(os.path.join(o.file, str(i)) if o.files else o.file, "wb") as f:
                f.write(os.urandom(o.bytes // max(1, o.files)))
        link = Link(o.build, o)
        try:
            for _ in range(o.rounds):
                for name, run, what in ways(o):
                    if not name.startswith(tuple(o.only.split(","))):
                        continue
                    figures.setdefault(name, []).append(run(o.build, o, work, what))
        finally:
            link.close()
    print("%d bytes in %d files, %d Mbit/s, %d ms each way, %g %% lost, seed %d, load %s" %
          (o.bytes, max(1, o.files), o.rate, o.delay, o.loss / 1e4, o.seed, open("/proc/loadavg").read().split()[0]))
    print("%-14s %8s %15s %8s" % ("", "Mbit/s", "range", "of rate"))
    for name, got in figures.items():
        good = [g for g in got if g is not None]
        if not good:
            print("%-14s did not end within 120 s" % name)
            continue
        print("%-14s %8.2f %7.2f-%7.2f %7.0f %%%s" % (name, statistics.median(good), min(good), max(good),
              statistics.median(good) / o.rate * 100, "" if len(good) == len(got) else " (%d of %d)" % (len(good), len(got))))


main()
