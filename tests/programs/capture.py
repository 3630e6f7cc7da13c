#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""
Captures, judged by others: tshark dissects every packet, scapy computes the same ICRC, and so do the
few lines below, for IPv6 too. All of it is RoCEv2: tshark knows veRoCE only by our own dissector, with
which veroce_net.py judges. `wire` looks at what really crosses a veth pair, IP identification and
all, with a packet socket instead of VERBENA_PCAP.
"""
import functools
import logging
import os
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import time
import zlib

from data import TRANSFER
from pair import BUILD, ROOT, Pair, Process, Skip, check, folder, is_root, main, perftest

sys.path.insert(0, os.path.join(ROOT, "tests", "dissector"))
from dissector_check import joined  # noqa: E402

LINKTYPE_RAW = 101
SCAPY_PACKETS = 8  # of each opcode of a file; scapy takes its time

SEND_IMM = {0x03, 0x05}
WRITE_IMM = {0x09, 0x0b}
WANTED = {  # groups of BTH opcodes of which one at least must be there
    "RC": [{0x00}, {0x01}, {0x02}, {0x04}, SEND_IMM, {0x06}, {0x07}, {0x08}, {0x0a}, WRITE_IMM,
           {0x0c}, {0x0d}, {0x0e}, {0x0f}, {0x10}, {0x11}, {0x12}, {0x13}, {0x14}],
    "UC": [{0x20}, {0x22, 0x23}, {0x24}, {0x23, 0x25}, {0x26}, {0x28}, {0x2a}, {0x29, 0x2b}],
    "UD": [{0x64}, {0x65}],
}


def packets(path):
    """The IP packets of a capture file."""
    with open(path, "rb") as f:
        data = f.read()
    check(len(data) > 24, "%s is empty" % path)
    magic, = struct.unpack_from("<I", data)
    check(magic in (0xa1b23c4d, 0xa1b2c3d4), "magic %08x" % magic)
    check(struct.unpack_from("<I", data, 20)[0] == LINKTYPE_RAW, "not LINKTYPE_RAW")
    at, last = 24, 0
    while at < len(data):
        sec, frac, got, length = struct.unpack_from("<IIII", data, at)
        check(got == length and at + 16 + got <= len(data), "packet cut short at byte %d" % at)
        last = (sec, frac)
        yield data[at + 16:at + 16 + got]
        at += 16 + got
    check(abs(last[0] - time.time()) < 600, "a time stamp of another day")


def icrc(packet):
    """InfiniBand's invariant CRC of an IPv4 or IPv6 packet, as IBTA annex A17 masks it."""
    p = bytearray(packet[:-4])
    if p[0] >> 4 == 4:
        udp = (p[0] & 15) * 4
        p[1] = p[8] = 0xff  # TOS, TTL
        p[10:12] = b"\xff\xff"
    else:
        udp = 40
        p[0] |= 0x0f  # traffic class, flow label
        p[1:4] = b"\xff\xff\xff"
        p[7] = 0xff  # hop limit
    p[udp + 6:udp + 8] = b"\xff\xff"  # UDP checksum
    p[udp + 8 + 4] = 0xff  # FECN, BECN and reserved bits of the BTH
    return struct.pack("<I", zlib.crc32(b"\xff" * 8 + bytes(p)))


def opcode(packet):
    return packet[((packet[0] & 15) * 4 if packet[0] >> 4 == 4 else 40) + 8]


def icrc_check(path, ipv6):
    count, seen = 0, set()
    for p in packets(path):
        check(p[0] >> 4 == (6 if ipv6 else 4), "packet %d: IP version %d" % (count, p[0] >> 4))
        check(icrc(p) == p[-4:], "packet %d: ICRC %s, not %s: %s"
              % (count, p[-4:].hex(), icrc(p).hex(), p[:64].hex()))
        seen.add(opcode(p))
        count += 1
    return count, seen


def scapy_check(path):
    logging.getLogger("scapy").setLevel(logging.ERROR)
    try:
        from scapy.layers.inet import IP
        from scapy.contrib.roce import BTH
    except ImportError:
        raise Skip("needs scapy")
    seen = {}
    for n, p in enumerate(packets(path)):
        seen[opcode(p)] = seen.get(opcode(p), 0) + 1
        if seen[opcode(p)] > SCAPY_PACKETS:
            continue
        q = IP(p)
        check(BTH in q, "scapy finds no BTH in packet %d: %s" % (n, p.hex()))
        q[BTH].icrc = None
        check(bytes(q)[-4:] == p[-4:], "packet %d: scapy's ICRC is %s, ours %s"
              % (n, bytes(q)[-4:].hex(), p[-4:].hex()))


@functools.cache
def no_guesses():
    """tshark guesses what a payload may be, and of random bytes some look like another protocol's."""
    known = os.path.join(BUILD, "tshark-guesses")  # by the first test that asked, as each start of tshark takes long
    if not os.path.exists(known) or os.path.getmtime(known) < os.path.getmtime(shutil.which("tshark")):
        out = subprocess.run(["tshark", "-G", "heuristic-decodes"], capture_output=True, text=True, timeout=300).stdout
        with open("%s.%s" % (known, os.urandom(8).hex()), "w") as f:
            f.writelines(line.split("\t")[1] + "\n" for line in out.splitlines() if line.startswith("infiniband.payload\t"))
        os.rename(f.name, known)
    with open(known) as f:
        names = f.read().split()
    check("rpcordma" in names, "tshark lists no heuristics: %s" % names)
    return [word for name in names for word in ("--disable-protocol", name)]


def tshark(path, *words):
    if not shutil.which("tshark"):
        raise Skip("needs tshark")
    r = subprocess.run(["tshark", "-n", "-r", path, "-o", "ip.check_checksum:TRUE",
                        "-o", "udp.check_checksum:TRUE"] + no_guesses() + list(words),
                       capture_output=True, text=True, timeout=300)
    check(r.returncode == 0, "tshark: " + r.stderr)
    return r.stdout


TSHARK_COMPLAINS = re.compile(r"malformed|\[bad|incorrect|truncated|expert info", re.I)


def tshark_check(path, counts):
    """
    In a file that is joined of so many packets each no packet is malformed, and of the first ones of each no line of the
    full text says that anything is wrong.
    """
    out = tshark(path, "-T", "fields", "-E", "separator=|", "-e", "frame.protocols", "-e", "udp.dstport",
                 "-e", "infiniband.bth.opcode", "-e", "infiniband.invariant.crc", "-e", "_ws.malformed",
                 "-e", "_ws.expert.message")
    lines = out.splitlines()
    check(len(lines) == sum(counts), "tshark sees %d packets, there are %s" % (len(lines), counts))
    for n, line in enumerate(lines):
        protocols, port, code, crc, malformed, expert = line.split("|", 5)
        check("infiniband" in protocols and port == "4791" and code and crc and not malformed
              and not expert, "packet %d: %s" % (n + 1, line))
    begins = [sum(counts[:n]) for n in range(len(counts))]
    first = ",".join("%d..%d" % (at + 1, at + min(count, 100)) for at, count in zip(begins, counts))
    lines = tshark(path, "-V", "-Y", "frame.number in {%s}" % first).splitlines()
    check(sum(line.startswith("Frame ") for line in lines) == sum(min(count, 100) for count in counts), "frames %s" % first)
    bad = [line for line in lines if TSHARK_COMPLAINS.search(line)]
    check(not bad, "tshark says: %s" % bad[:3])


def judge(paths, ipv6):
    """Of each capture the opcodes that are in it."""
    counts, seen = zip(*[icrc_check(path, ipv6) for path in paths])
    check(min(counts) > 0, "packets in %s: %s" % (paths, counts))
    path = joined(paths, paths[0] + ".all")
    tshark_check(path, counts)
    if not ipv6:
        scapy_check(path)
    return seen


def transfer(transport, options):
    def run(place):
        where = folder()
        pair = Pair(place, TRANSFER, options + ["-c", transport],
                    env={"VERBENA_PCAP": where + "/%p.pcap", "VERBENA_ONLY_BYTES": "0"}).go()
        pids = [pair.server.pid, pair.client.pid]
        pair.finish(60)
        paths = ["%s/%d.pcap" % (where, pid) for pid in pids]
        check(all(os.path.exists(path) for path in paths), "captures: %s" % os.listdir(where))
        for seen in judge(paths, place.ipv6):
            for group in WANTED[transport]:
                check(seen & group, "none of opcodes %s among %s"
                      % (sorted(map(hex, group)), sorted(map(hex, seen))))
        shutil.rmtree(where)
    return run


def perftest_runs(place):
    where = folder()
    env = {"VERBENA_PCAP": where + "/%p.pcap"}
    perftest(place, "ib_write_bw", ["-s", 10000], iters=10, env=env)
    perftest(place, "ib_read_lat", ["-s", 5000], iters=10, env=env)
    perftest(place, "ib_send_lat", ["-c", "UD", "-s", 100], iters=10, env=env)
    perftest(place, "ib_atomic_lat", iters=10, env=env)
    files = os.listdir(where)
    check(len(files) >= 8, "captures: %s" % files)
    judge([os.path.join(where, name) for name in files], place.ipv6)
    shutil.rmtree(where)


def spoiled(place):
    """NAKs, duplicates and retransmissions are packets like others."""
    where = folder()
    pair = Pair(place, TRANSFER, ["-n", 10, "-s", 2, "-b", 30000],
                env={"VERBENA_PCAP": where + "/%p.pcap", "VERBENA_IMPAIR": "drop=3%,seed=5"}).go()
    pair.finish(60)
    judge([os.path.join(where, name) for name in os.listdir(where)], place.ipv6)
    shutil.rmtree(where)


# ---- the wire itself -----------------------------------------------------------------------------

def sniff(device, path):
    """Runs in the namespace: IP packets to or from UDP port 4791 go to a file, until SIGTERM."""
    s = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(3))
    # SO_RCVBUFFORCE; who may not gets what fits a test of so few packets.
    s.setsockopt(socket.SOL_SOCKET, 33 if is_root() else socket.SO_RCVBUF, 64 << 20)
    s.bind((device, 3))
    s.settimeout(0.1)
    ended = []
    signal.signal(signal.SIGTERM, lambda *_: ended.append(1))
    with open(path, "wb") as f:
        f.write(struct.pack("<IHHiIII", 0xa1b2c3d4, 2, 4, 0, 0, 1 << 17, LINKTYPE_RAW))
        print("ready", flush=True)
        while True:
            try:
                p, address = s.recvfrom(1 << 17)
            except TimeoutError:
                if ended:
                    return
                continue
            udp = (p[0] & 15) * 4 if p[0] >> 4 == 4 else 40
            proto = p[9] if p[0] >> 4 == 4 else p[6]
            if proto == 17 and struct.unpack_from("!H", p, udp + 2)[0] == 4791:
                now = time.time()
                f.write(struct.pack("<IIII", int(now), int(now % 1 * 1e6), len(p), len(p)) + p)


def wire(place):
    """With segmentation offload off, a packet socket sees the segments one by one, as a cable would."""
    if not place.name.startswith("veth"):
        raise Skip("needs a veth place")
    if not shutil.which("ethtool"):
        raise Skip("needs ethtool")
    devices = place.links[0]
    for space, device in zip(place.spaces, devices):
        subprocess.run(["ip", "netns", "exec", space, "ethtool", "-K", device, "tx-udp-segmentation", "off",
                        "gso", "off", "tx", "off"], capture_output=True)
    where = folder()
    paths = []
    for transport, options in (("RC", ["-n", 10, "-s", 3, "-b", 20000]), ("UD", ["-n", 10, "-b", 1000])):
        path = "%s/%s.pcap" % (where, transport)
        sniffer = Process(["ip", "netns", "exec", place.spaces[0], sys.executable,
                           os.path.abspath(__file__), "--sniff", devices[0], path])
        sniffer.wait_text("ready")
        pair = Pair(place, TRANSFER, options + ["-c", transport]).go()
        pair.finish(60)
        time.sleep(0.3)
        sniffer.signal(signal.SIGTERM)
        check(sniffer.wait(5) == 0, "the sniffer: " + sniffer.output())
        sniffer.kill()
        longest = max(len(p) for p in packets(path))
        check(longest <= place.mtu, "a packet of %d bytes on a wire of %d" % (longest, place.mtu))
        count = sum(1 for _ in packets(path))
        check(count > 50, "only %d packets" % count)
        paths.append(path)
    judge(paths, place.ipv6)
    shutil.rmtree(where)


def over_rocev2(case):
    def run(place):
        for env in place.env:
            env["VERBENA_PROTOCOL"] = "rocev2"
        return case(place)
    return run


if __name__ == "__main__":
    if sys.argv[1:2] == ["--sniff"]:
        sniff(*sys.argv[2:])
        sys.exit(0)
    cases = {"rc": transfer("RC", ["-n", 12, "-s", 1, "-b", 20000]),
             "uc": transfer("UC", ["-n", 12, "-s", 1, "-b", 6000]),
             "ud": transfer("UD", ["-n", 10, "-s", 1, "-b", 1000]),
             "perftest": perftest_runs, "spoiled": spoiled, "wire": wire}
    main({name: over_rocev2(case) for name, case in cases.items()})
