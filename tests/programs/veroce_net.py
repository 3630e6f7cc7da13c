#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""
veRoCE over networks that lose, reorder and split: packets dropped by nftables, four links to choose
from of which one dies, our own impairments. Nothing here measures time: bench/loss.py does.
"""
import json
import os
import shutil
import subprocess
import sys
import time

from capture import packets
from data import TRANSFER, transfer
from pair import ROOT, Failure, Pair, Skip, check, folder, long_enough, main, perftest, sh

sys.path.insert(0, os.path.join(ROOT, "tests", "dissector"))
from dissector_check import Missing, joined, judge_all  # noqa: E402

ROCEV2, VEROCE = 4791, 4794


# ---- the network -----------------------------------------------------------------------------------

def need(*tools):
    for tool in tools:
        if not shutil.which(tool):
            raise Skip("needs " + tool)


def inside(place, end, *words):
    sh("ip", "netns", "exec", place.spaces[end], *words)


def single_packets(place):
    """What is sent as a train is one packet to nftables, unless the device cannot do that."""
    need("ethtool")
    for ends in place.links:
        for end in (0, 1):
            inside(place, end, "ethtool", "-K", ends[end], "tx-udp-segmentation", "off")


def nft_rules(place, end, rules):
    """Rules for what reaches that end; none: no rules any more."""
    need("nft")
    text = "table inet verbena\ndelete table inet verbena\n"
    if rules:
        text += ("table inet verbena {\nchain arrival {\ntype filter hook prerouting priority -300;\n%s\n}\n}\n"
                 % "\n".join(rules))
    r = subprocess.run(["ip", "netns", "exec", place.spaces[end], "nft", "-f", "-"], input=text,
                       capture_output=True, text=True)
    if r.returncode:
        raise Skip("nft: " + r.stderr.strip())


def nft_dropped(place, end):
    """How many packets the first rule with a counter has counted."""
    out = subprocess.run(["ip", "netns", "exec", place.spaces[end], "nft", "-j", "list", "table", "inet",
                          "verbena"], capture_output=True, text=True).stdout
    for entry in json.loads(out)["nftables"]:
        for word in entry.get("rule", {}).get("expr", []):
            if "counter" in word:
                return word["counter"]["packets"]
    raise Failure("no counter in " + out)


def received(place, end):
    """Packets that each link has brought to that end."""
    counts = []
    for ends in place.links:
        out = subprocess.run(["ip", "-n", place.spaces[end], "-j", "-s", "link", "show", "dev", ends[end]],
                             capture_output=True, text=True).stdout
        counts.append(json.loads(out)[0]["stats64"]["rx"]["packets"])
    return counts


# ---- loss that is not ours ----------------------------------------------------------------------------

def lossy(place, program, options, **kw):
    """
    With a local ACK timeout of a quarter of a second: by the default of 67 ms a peer that gets no processor for half a
    second is given up, as it should be, and what is tested here is loss.
    """
    return perftest(place, program, options + ["-u", 16], **kw)


def nft_loss(place, times=1):
    """One packet in fifty is dropped each way, by the kernel."""
    if not place.links:
        raise Skip("needs a veth place")
    single_packets(place)
    for end in (0, 1):
        nft_rules(place, end, ["udp dport { %d, %d } numgen random mod 1000 < 20 counter drop" % (ROCEV2, VEROCE)])
    try:
        lossy(place, "ib_write_bw", ["-s", 1 << 20], iters=8 * times, sizes=[1 << 20])
        lossy(place, "ib_write_bw", ["-q", 8], iters=10 * times, sizes=[65536])
        lossy(place, "ib_read_bw", ["-s", 1 << 20], iters=8 * times, sizes=[1 << 20])
        lossy(place, "ib_send_bw", ["-s", 1 << 20], iters=8 * times, sizes=[1 << 20])
        lossy(place, "ib_send_bw", ["-b"], iters=30 * times, sizes=[65536])
        if times > 1:
            lossy(place, "ib_write_lat", [], iters=100, sizes=[2])
            # Not with -e: then it posts its next send without looking whether the one before, all that its
            # queue has room for, was acknowledged; a pong need not mean that.
            lossy(place, "ib_send_lat", [], iters=100, sizes=[2])
        lossy(place, "ib_atomic_bw", [], iters=200, sizes=[8])
        transfer(place, ["-n", 10 * times, "-s", 31, "-b", 200000])
        transfer(place, ["-n", 10 * times, "-s", 32, "-e"])
        dropped = [nft_dropped(place, end) for end in (0, 1)]
        check(min(dropped) > 100, "nftables dropped %s packets" % dropped)
    finally:
        for end in (0, 1):
            nft_rules(place, end, [])


def nft_loss_long(place):
    nft_loss(place, 4)


# ---- many links -----------------------------------------------------------------------------------------

def ecmp(place, times=2):
    """
    The kernels hash ports to links, so no single run need use all of them: with 16 ports on 4 links one
    in 25 leaves one out. Of several runs together every link must have a share, both ways.
    """
    if len(place.links) < 2:
        raise Skip("needs an ecmp place")
    before = [received(place, end) for end in (0, 1)]
    for seed in range(times):
        transfer(place, ["-n", 15, "-s", seed, "-b", 300000])
        perftest(place, "ib_write_bw", ["-b"], iters=100, sizes=[65536])
    perftest(place, "ib_read_bw", ["-q", 4], iters=100, sizes=[65536])
    perftest(place, "ib_send_bw", ["-b", "-q", 4], iters=100, sizes=[65536])
    for end in (0, 1):
        counts = [after - was for after, was in zip(received(place, end), before[end])]
        check(min(counts) > sum(counts) * 0.02, "packets by link to end %d: %s" % (end, counts))


def ecmp_long(place):
    ecmp(place, 4)


DYING = (["ib_write_bw"], ["ib_send_bw", "-b", "-q", 2], ["ib_read_bw"])


def over_dying_link(place, kill, revive, runs, seconds):
    """While a transfer of so many seconds runs, a link dies and comes back; `kill` and `revive` take a link's number."""
    if len(place.links) < 2:
        raise Skip("needs an ecmp place")
    for options in runs:
        long_enough(lambda s, o=options: over_dying_link_while(place, kill, revive, o, s), seconds, 2, 5, 30)


def over_dying_link_while(place, kill, revive, options, seconds):
    data_end = 1 if options[0] == "ib_read_bw" else 0  # who gets the data
    pair = Pair(place, options[0], ["-F", "-D", seconds] + options[1:], gid_flag="-x").go()
    pair.underway(0.05)
    was = received(place, data_end)
    time.sleep(0.1)
    counts = [b - a for a, b in zip(was, received(place, data_end))]
    victim = max(range(len(counts)), key=counts.__getitem__)
    what = "%s, link %d of %s" % (pair.title, victim, counts)
    kill(victim)
    try:
        time.sleep(0.1)
        was, end, rest = received(place, data_end), time.monotonic() + 20, [0]
        while sum(rest) <= 200:
            pair.still_runs()
            check(time.monotonic() < end, "%s: dead, and the others carry %s" % (what, rest))
            time.sleep(0.05)
            rest = [b - a for a, b in zip(was, received(place, data_end))]
            del rest[victim]
    finally:
        revive(victim)
    back, end = received(place, data_end)[victim], time.monotonic() + 20
    while received(place, data_end)[victim] <= back + 200:
        pair.still_runs()
        check(time.monotonic() < end, "%s: alive again, but brought %d packets only since"
              % (what, received(place, data_end)[victim] - back))
        time.sleep(0.05)
    pair.finish()


def path_dies(place, runs=DYING[:1]):
    """Set down at the end of the server: the client's kernel goes on sending into it."""
    if place.ipv6:
        raise Skip("IPv6 addresses and routes of a link that is set down are gone for good")

    def set_link(word):
        return lambda n: sh("ip", "-n", place.spaces[0], "link", "set", place.links[n][0], word)
    over_dying_link(place, set_link("down"), set_link("up"), runs, 2)


def path_dies_all(place):
    path_dies(place, DYING)


def path_blackhole(place, runs=DYING[2:]):
    """Neither kernel notices: the link is up and everything on it is lost."""
    def kill(n):
        for end in (0, 1):
            nft_rules(place, end, ['iifname "%s" udp dport { %d, %d } counter drop'
                                   % (place.links[n][end], ROCEV2, VEROCE)])

    def revive(n):
        for end in (0, 1):
            nft_rules(place, end, [])
    over_dying_link(place, kill, revive, runs, 1)


def path_blackhole_all(place):
    path_blackhole(place, DYING)


# ---- paths that are not alike --------------------------------------------------------------------------

LOSSY, DYING_PATH = 3, 12


def on_path(n, rest):
    """A rule for the packets of one path: the source port says which (veRoCE 1)."""
    return "udp dport { %d, %d } @th,12,4 == %d %s" % (ROCEV2, VEROCE, n, rest)


def unlike_paths(place, runs=DYING[:1]):
    """One path loses three packets in ten all the time. Another loses all, and carries data again when it does not."""
    if not place.links:
        raise Skip("needs a veth place")
    single_packets(place)
    lossy_rule = on_path(LOSSY, "numgen random mod 100 < 30 counter drop")
    try:
        for options in runs:
            long_enough(lambda s, o=options: while_a_path_dies(place, lossy_rule, o, s), 2, 6, 30)
    finally:
        for end in (0, 1):
            nft_rules(place, end, [])


def unlike_paths_all(place):
    unlike_paths(place, DYING)


def while_a_path_dies(place, lossy_rule, options, seconds):
    def rules(*first):
        for end in (0, 1):
            nft_rules(place, end, [*first, lossy_rule])

    def until(enough, what):
        end = time.monotonic() + 60
        while not enough():
            pair.still_runs()
            check(time.monotonic() < end, "%s: %s" % (pair.title, what))
            time.sleep(0.05)

    data_end = 1 if options[0] == "ib_read_bw" else 0
    rules()
    pair = Pair(place, options[0], ["-F", "-u", 16, "-D", seconds] + options[1:], gid_flag="-x").go()
    pair.underway(0.05)
    until(lambda: nft_dropped(place, data_end) > 10, "the lossy path has no packets")
    rules(on_path(DYING_PATH, "counter drop"))
    until(lambda: nft_dropped(place, data_end) > 8, "nothing was sent on the path that dies")
    was = received(place, data_end)[0]
    until(lambda: received(place, data_end)[0] > was + 500, "the others carry nothing")
    rules(on_path(DYING_PATH, "counter"))
    until(lambda: nft_dropped(place, data_end) > 100, "the path is alive again, and carries nothing")
    pair.finish()


# ---- loss that is ours ----------------------------------------------------------------------

def impair(spec, times=3):
    def run(place):
        env = {"VERBENA_IMPAIR": spec}
        for program in ("ib_write_bw", "ib_send_bw", "ib_read_bw"):
            lossy(place, program, ["-q", 2], iters=20 * times, sizes=[65536], env=env)
            if times > 1:
                lossy(place, program, ["-s", 1 << 20], iters=10, sizes=[1 << 20], env=env)
        lossy(place, "ib_send_bw", ["--use-srq", "-q", 4, "-s", 5000], iters=34 * times, sizes=[5000], env=env)
        lossy(place, "ib_write_bw", ["-b", "-s", 64], iters=340 * times, sizes=[64], env=env)
        lossy(place, "ib_atomic_bw", ["-q", 2], iters=34 * times, sizes=[8], env=env)
        for program in ("ib_write_lat", "ib_send_lat", "ib_read_lat"):
            lossy(place, program, ["-s", 3000], iters=34 * times, sizes=[3000], env=env)
        transfer(place, ["-n", 14 * times, "-s", 41, "-b", 100000], env=env)
        transfer(place, ["-n", 14 * times, "-s", 42, "-b", 3000, "-e"], env=env)
    return run


# ---- what travels ---------------------------------------------------------------------------

# opcodes of veRoCE, of each row one at least
DATA = {"SEND": {0x00, 0x01, 0x02, 0x04}, "SEND with immediate": {0x03, 0x05},
        "WRITE": {0x06, 0x07, 0x08, 0x0a}, "WRITE with immediate": {0x09, 0x0b}, "READ request": {0x0c},
        "READ response": {0x0d, 0x0e, 0x0f, 0x10}, "ACK": {0x11}, "ACK of responses": {0x19},
        "atomic ACK": {0x12}, "CmpSwap": {0x13}, "FetchAdd": {0x14},
        "CAPS request": {0xf0}, "CAPS response": {0xf1}}
LOSS = {"SACK": {0x18}, "SACK of responses": {0x1e}}


class Captured:
    """The captures of both ends of every process that ran with its environment."""

    def __init__(self):
        self.where = folder()
        self.env = {"VERBENA_PCAP": self.where + "/%p.pcap"}

    def paths(self):
        found = [os.path.join(self.where, name) for name in sorted(os.listdir(self.where))]
        return [path for path in found if os.path.getsize(path) > 24]

    def all(self):
        """Those one after the other in one file, as tshark takes longer to start than to read."""
        return joined(self.paths(), os.path.join(self.where, "all.pcap"))

    def judge(self):
        """The veRoCE opcodes seen, after every packet was found good."""
        wrong, seen = judge_all(self.all())
        # Over IPv4 a socket hides the identification, which the ICRC covers, and a packet for a queue pair that is gone
        # does not tell it. The same packet in its sender's capture has the true one.
        if wrong:
            sent = [p[20:] if p[0] >> 4 == 4 else p for p in packets(self.all())]
            good = {b for n, b in enumerate(sent, 1) if n not in dict(wrong)}
            wrong = [(n, text) for n, text in wrong if not text.startswith("icrc") or sent[n - 1] not in good]
        check(not wrong, "%d complaints: %s" % (len(wrong), wrong[:5]))
        return seen

    def ports(self):
        """{(protocol's port, opcode)} of all packets"""
        found = set()
        for path in self.paths():
            for p in packets(path):
                udp = 40 if p[0] >> 4 == 6 else (p[0] & 15) * 4
                found.add((int.from_bytes(p[udp + 2:udp + 4], "big"), p[udp + 8]))
        return found

    def close(self):
        shutil.rmtree(self.where)


def with_captures(case):
    def run(place):
        need("tshark")
        try:
            case(place)
        except Missing as e:
            raise Skip(str(e))
    return run


def wants(seen, rows):
    missing = [name for name, codes in rows.items() if not seen & codes]
    check(not missing, "not seen: %s; seen: %s" % (missing, " ".join("%02x" % c for c in sorted(seen))))


@with_captures
def capture(place):
    """Each kind of operation, and then all of them over a bad network."""
    for spec, rows in ((None, DATA), ("drop=3%,reorder=20%,dup=5%,seed=6", {**DATA, **LOSS})):
        c = Captured()
        env = dict(c.env, **({"VERBENA_IMPAIR": spec} if spec else {}))
        transfer(place, ["-n", 12, "-s", 51, "-b", 20000], env=env)
        if not spec:
            perftest(place, "ib_write_bw", ["-s", 30000], iters=10, env=env)
            perftest(place, "ib_read_bw", ["-s", 30000], iters=10, env=env)
            perftest(place, "ib_send_lat", ["-s", 5000], iters=10, env=env)
            perftest(place, "ib_atomic_lat", iters=10, env=env)
        else:
            # 640 responses of 1024 bytes: that none of them is among the 3 % happens once in 3e8 runs.
            lossy(place, "ib_read_bw", ["-s", 65536], iters=10, env=env)
        wants(c.judge(), rows)
        c.close()


def falls_back(place):
    """Who speaks what: RoCEv2 if one end knows no other, veRoCE if both do."""
    program = ["-n", 10, "-s", 61, "-b", 20000]
    for server, client, expected in ((None, None, VEROCE), ("auto", "rocev2", ROCEV2), ("rocev2", "auto", ROCEV2),
                                     ("rocev2", "rocev2", ROCEV2), ("veroce", "auto", VEROCE),
                                     ("auto", "veroce", VEROCE)):
        c = Captured()
        envs = [dict(c.env, **({"VERBENA_PROTOCOL": word} if word else {})) for word in (server, client)]
        what = "server %s, client %s" % (server, client)
        pair = Pair(place, TRANSFER, program, server_env=envs[0], client_env=envs[1]).go()
        pair.finish(60)
        # An end without an answer has sent CAPS requests, and nothing else, to that port.
        ports = {port for port, code in c.ports() if code not in (0xf0, 0xf1)}
        check(ports == {expected}, "%s: spoken on ports %s" % (what, ports))
        c.close()


if __name__ == "__main__":
    main({"nft_loss": nft_loss, "nft_loss_long": nft_loss_long, "ecmp": ecmp, "ecmp_long": ecmp_long, "path_dies": path_dies, "path_dies_all": path_dies_all,
          "unlike_paths": unlike_paths, "unlike_paths_all": unlike_paths_all, "path_blackhole": path_blackhole, "path_blackhole_all": path_blackhole_all,
          "impair_1": impair("drop=1%,seed=1"), "impair_2": impair("drop=2%,seed=2"),
          "impair_5": impair("drop=5%,seed=3"), "impair_reorder": impair("reorder=30%,jitter=300us,seed=4"),
          "impair_duplicate": impair("dup=20%,seed=5"), "impair_corrupt": impair("corrupt=2%,seed=6"),
          "impair_all": impair("drop=1%,reorder=10%,dup=5%,corrupt=1%,jitter=100us,seed=7", 1),
          "impair_all_long": impair("drop=1%,reorder=10%,dup=5%,corrupt=1%,jitter=100us,seed=7"),
          "capture": capture, "falls_back": falls_back})
