# SPDX-License-Identifier: BSD-2-Clause
"""
Both ends of a measure: a server and a client, on loopback or in two network namespaces that a veth pair
joins. perftest runs over Verbena; iperf3 and UCX run over the kernel's TCP, and UCX over other transports if told.
"""
import argparse
import json
import os
import random
import re
import signal
import socket
import statistics
import subprocess
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BUILD = os.environ.get("BUILD_DIR") or os.path.join(ROOT, "build")
VERBENA = os.path.join(BUILD, "verbena")
LIMIT_S = 60  # for one run

options = argparse.Namespace(quick=False, pin=None, realtime=False)
commands = {}  # of each measure, as they ran last
gids = {}  # of each place: the index of its address


class Broken(Exception):
    pass


class Loopback:
    """Both ends in this network namespace, over 127.0.0.1."""
    address, device = "127.0.0.1", "lo"

    def prefix(self, _end):
        return []


class Between:
    """The server in a namespace, the client in another, and a veth pair of that IP MTU between them. Root only."""
    SPACES = ("verbena-bench-a", "verbena-bench-b")
    address, device = "10.98.0.1", "bench0"

    def __init__(self, mtu):
        self.mtu = mtu

    def prefix(self, end):
        return ["ip", "netns", "exec", self.SPACES[end]]

    def __enter__(self):
        self.__exit__()
        try:
            for space in self.SPACES:
                ip("netns", "add", space)
            ip("link", "add", self.device, "mtu", self.mtu, "netns", self.SPACES[0], "type", "veth",
               "peer", "name", self.device, "mtu", self.mtu, "netns", self.SPACES[1])
            for end, space in enumerate(self.SPACES):
                ip("-n", space, "link", "set", self.device, "addrgenmode", "none")  # a late IPv6 address would shift GIDs
                ip("-n", space, "link", "set", "lo", "up")
                ip("-n", space, "link", "set", self.device, "up")
                ip("-n", space, "address", "add", "10.98.0.%d/24" % (end + 1), "dev", self.device)
        except Broken:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for space in self.SPACES:
            if os.path.exists("/run/netns/" + space):
                ip("netns", "del", space)


def ip(*words):
    r = subprocess.run(["ip"] + [str(w) for w in words], capture_output=True, text=True)
    if r.returncode:
        raise Broken("ip %s: %s" % (" ".join(str(w) for w in words), r.stderr.strip()))


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
    if options.realtime:
        command = ["chrt", "-r", "1"] + command
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


def pair(place, name, server, client, port, env=None, meanwhile=None):
    """Runs both ends; returns the client's output. Records the commands under name. Without a port the server listens where no
    tool shows it: a client that comes too early comes again."""
    env = env or {}
    words = [c and place.prefix(end) + [str(w) for w in c] for end, c in enumerate((server, client))]
    commands[name] = [" ".join(["%s=%s" % kv for kv in env.items()] + [os.path.relpath(w, ROOT)
                      if w.startswith(BUILD) else w for w in c]) for c in words if c]
    s = c = None
    try:
        end = time.monotonic() + 10
        if server:
            s = start(words[0], env)
            while port and not listens(s.pid, port):
                if s.poll() is not None or time.monotonic() > end:
                    stop(s)
                    raise Broken("%s: the server does not listen:\n%s" % (name, s.stdout.read()))
                time.sleep(0.005)
        while True:
            c = start(words[1], env)
            if meanwhile:
                meanwhile(s, c)
            try:
                out, _ = c.communicate(timeout=LIMIT_S)
            except subprocess.TimeoutExpired:
                raise Broken("%s: not done after %d s" % (name, LIMIT_S))
            if not c.returncode or not s or port or s.poll() is not None or time.monotonic() > end:
                break
            time.sleep(0.1)
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


def gid_index(place):
    """The index of the server's address among the GIDs that its end sees."""
    out = subprocess.run(place.prefix(0) + [VERBENA, "devices", "--json"], capture_output=True, text=True,
                         env=environment({}))
    for gid in json.loads(out.stdout)["devices"][0]["ports"][0]["gids"]:
        if gid["address"] == place.address:
            return gid["index"]
    raise Broken("verbena devices shows no GID for " + place.address)


def perftest(place, name, program, *words, env=None, meanwhile=None):
    """The last row of perftest's result table, a list of numbers; through sockets, unless env says otherwise."""
    port = tcp_port()
    if place not in gids:
        gids[place] = gid_index(place)
    common = [VERBENA, "run", program, "-F", "-x", gids[place], "-p", port, *words]
    env = {"VERBENA_SHM": "off", **(env or {})}
    return last_row(name, pair(place, name, common, common + [place.address], port, env, meanwhile))


def last_row(name, out):
    rows = re.findall(r"^ *\d+ +\d+(?:[ \t]+[\d.]+)+[ \t]*$", out.rsplit("#bytes", 1)[-1], re.M)
    if not rows:
        raise Broken("%s: no result\n%s" % (name, out))
    return [float(x) for x in rows[-1].split()]


def perftest_iwarp(place, name, program, *words, env=None):
    """As perftest(), over iWARP: the ends meet by rdma_cm."""
    port = tcp_port()
    common = [VERBENA, "run", program, "-R", "-F", "-p", port, *words]
    out = pair(place, name, common, common + [place.address], port, {"VERBENA_PROTOCOL": "iwarp", **(env or {})})
    return last_row(name, out)


def iperf3(place, name):
    """MiB/s of one TCP stream."""
    port = tcp_port()
    out = pair(place, name, ["iperf3", "-s", "-1", "-p", port],
               ["iperf3", "-c", place.address, "-p", port, "-J", "-t", "1" if options.quick else "3"], port)
    return json.loads(out)["end"]["sum_received"]["bits_per_second"] / 8 / (1 << 20)


def ucx(place, name, test, size, iters, tls="tcp,self"):
    """ucx_perftest's last line: iterations; 50 %, mean, overall; MiB/s twice; messages/s twice."""
    port = tcp_port()
    env = {"UCX_TLS": tls, "UCX_WARN_UNUSED_ENV_VARS": "n"}
    if "tcp" in tls:
        env["UCX_NET_DEVICES"] = place.device
    out = pair(place, name, ["ucx_perftest", "-p", port],
               ["ucx_perftest", place.address, "-p", port, "-t", test, "-s", size,
                "-n", iters, "-w", max(iters // 20, 10), "-f"], port, env)
    last = [line for line in out.splitlines() if re.match(r"[ \d.]+$", line)]
    if not last:
        raise Broken("%s: no result\n%s" % (name, out))
    return [float(x) for x in last[-1].split()]


def scaled(n):
    return max(n // 4, 100) if options.quick else n


# ---- rounds -----------------------------------------------------------------------------------------

def in_turns(rows, count, name, after=lambda r, samples: None):
    """Measures each cell of rows of (label, {column: measure}) `count` times, every other round backwards: {(label, column):
    [a number or None]}. name(label, column) is what a measure is called."""
    samples = {(label, c): [] for label, cells in rows for c in cells}
    for r in range(count):
        for label, cells in rows:
            for c, measure in list(cells.items())[::-1 if r % 2 else 1]:
                try:
                    samples[label, c].append(measure(name(label, c)))
                except Broken as e:
                    print("  " + str(e).replace("\n", "\n  "))
                    samples[label, c].append(None)
        after(r, samples)
    return samples


def median(samples):
    """Of the rounds that had a figure; 0: of none."""
    return statistics.median([x for x in samples if x is not None] or [0])


def ratios(ours, peers):
    """Within each round, in order of size."""
    return sorted(a / b for a, b in zip(ours, peers) if a is not None and b)


def judged(what, peer, each, factor, sense):
    """The median of ratios, beside what is wanted."""
    ratio = statistics.median(each)
    low, _, high = statistics.quantiles(each, n=4, method="inclusive") if len(each) > 1 else 3 * each
    met = ratio <= factor if sense == "<=" else ratio >= factor
    print("  %-27s %-18s %7.2f %7.2f %7.2f  %-7s %s" % (what, peer, ratio, low, high, sense + " %g" % factor, "yes" if met else "no"))
    return {"what": what, "peer": peer, "ratio": round(ratio, 3), "quartiles": [round(low, 3), round(high, 3)],
            "wanted": sense + " %g" % factor, "met": met}
