#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""
What connections of rdma_cm cost over loopback: how many are made and ended in a second (tests/programs/party, 64 at once,
and Debian's cmtime), what 10,000 of them take of memory at both ends, beside the queue pairs, of which there are none, and
what a listener does under a flood of forged requests (bench/req_flood): its rate beside that without the flood, in turns, and
its memory. Medians and quartiles of the rounds. Needs the build in BUILD_DIR or build/.

usage: bench/connections.py [--rounds N] [--flood RATE] [--addresses N] [--chrt] [rate cmtime memory flood]
"""
import argparse
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time

from ends import BUILD, VERBENA

RUN = [VERBENA, "run"]
PARTY = os.path.join(BUILD, "tests/programs/party")
FLOOD = os.path.join(BUILD, "bench/req_flood")
AT, PORT, FORGER = "127.0.0.1", "9000", "127.0.0.2"
SECONDS = 4
chrt = []  # before each command


def start(*words):
    return subprocess.Popen([*chrt, *words], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)


def listener():
    """It says much, so into a file."""
    with tempfile.NamedTemporaryFile("r+") as log:
        p = subprocess.Popen([*chrt, *RUN, PARTY, "-l", AT, PORT], stdout=log, stderr=log)
        end = time.monotonic() + 20
        while "listening" not in open(log.name).read():
            if time.monotonic() > end or p.poll() is not None:
                sys.exit("no listener")
            time.sleep(0.05)
    return p


def stop(p):
    p.kill()
    p.wait()


def rss_kib(p):
    with open("/proc/%d/status" % p.pid) as f:
        return int(re.search(r"VmRSS:\s+(\d+)", f.read()).group(1))


def connections(seconds=SECONDS):
    """Made and ended in a second, by one client."""
    p = start(*RUN, PARTY, "-e", "-n", "64", "-w", "64", "-t", str(seconds), AT, PORT)
    out = p.communicate()[0]
    n, failed, took = re.search(r"established (\d+) failed (\d+) in ([\d.]+) s", out).groups()
    if failed != "0":
        print("%s failed" % failed)
    return int(n) / float(took)


def rate():
    server = listener()
    value = connections()
    stop(server)
    return value


def cmtime():
    """A second, by cmtime's own clock, which runs from each step's begin to its end, for all connections; that with the programs' start
    and end; and the steps, in us for each connection. A step begins when the one before it has ended for all connections, so
    the times of all steps add up."""
    server = start(*RUN, "cmtime", "-c", "1000")
    time.sleep(1)
    begun = time.monotonic()
    out = start(*RUN, "cmtime", "-s", AT, "-c", "1000").communicate()[0]
    took = time.monotonic() - begun
    stop(server)
    steps = {name: float(us) for name, us in re.findall(r"^(\w[\w ]*?) *: +[\d.]+ +[\d.]+ +[\d.]+ +([\d.]+)$", out, re.M)}
    if len(steps) != 7:
        sys.exit("cmtime did not come to its end:\n" + out)
    return 1e6 / sum(steps.values()), 1000 / took, steps


def memory(count=10000):
    server = listener()
    client = start(*RUN, PARTY, "-n", "1", AT, PORT)
    client.stdout.readline()
    before = rss_kib(server), rss_kib(client)
    stop(client)
    time.sleep(0.5)
    client = start(*RUN, PARTY, "-n", str(count), "-w", "256", AT, PORT)
    print("memory: " + client.stdout.readline().strip())
    after = rss_kib(server), rss_kib(client)
    for name, b, a in zip(("listener", "client"), before, after):
        print("memory: %d connections at the %s: %.1f MiB beyond its %.1f" % (count, name, (a - b) / 1024, b / 1024))
    stop(client)
    stop(server)


def flood(rounds, per_s, addresses):
    quiet, noisy = [], []
    server = listener()
    first = rss_kib(server)
    for i in range(rounds):
        for flooded in ((False, True) if i % 2 else (True, False)):
            f = start(FLOOD, str(per_s), str(SECONDS + 1), FORGER, AT, PORT, str(addresses)) if flooded else None
            time.sleep(0.5 if flooded else 0)
            value = connections(SECONDS - 1)
            (noisy if flooded else quiet).append(value)
            if f:
                print("flood: " + f.communicate()[0].strip(), "listener %.1f MiB" % (rss_kib(server) / 1024), flush=True)
    ratios = [n / q for n, q in zip(noisy, quiet)]
    print("flood of %d a second from %d addresses: %s without, %s with it; ratio %s; memory %.1f -> %.1f MiB"
          % (per_s, addresses, spread(quiet, "%.0f"), spread(noisy, "%.0f"), spread(ratios, "%.2f"), first / 1024, rss_kib(server) / 1024))
    stop(server)


def spread(values, form):
    q = statistics.quantiles(values, n=4) if len(values) > 1 else [values[0]] * 3
    return "%s (%s .. %s)" % (form % statistics.median(values), form % q[0], form % q[2])


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--flood", type=int, default=10000)
    parser.add_argument("--addresses", type=int, default=1, help="from which the flood comes")
    parser.add_argument("--chrt", action="store_true", help="all under `chrt -r 1`, on a busy machine")
    parser.add_argument("what", nargs="*", default=["rate", "cmtime", "memory", "flood"])
    args = parser.parse_args()
    chrt.extend(["chrt", "-r", "1"] if args.chrt else [])
    if "rate" in args.what:
        print("connections made and ended in a second: " + spread([rate() for _ in range(args.rounds)], "%.0f"), flush=True)
    if "cmtime" in args.what:
        runs = [cmtime() for _ in range(args.rounds)]
        print("cmtime, 1,000 connections with their queue pairs, all steps, a second: " + spread([r[0] for r in runs], "%.0f"))
        print("cmtime, programs' start and end included, a second: " + spread([r[1] for r in runs], "%.0f"))
        print("cmtime, us for each connection: " + ", ".join(
            "%s %s" % (step, spread([r[2][step] for r in runs], "%.0f")) for step in runs[0][2]), flush=True)
    if "memory" in args.what:
        memory()
    if "flood" in args.what:
        flood(args.rounds, args.flood, args.addresses)


if __name__ == "__main__":
    main()
