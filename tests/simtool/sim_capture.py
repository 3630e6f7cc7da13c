#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Captures of simulated ports: tshark takes them for those of real ones, ICRC included."""
import collections
import os
import shutil
import struct
import subprocess
import sys
import tempfile
import zlib

VERBENA = os.path.join(os.environ["BUILD_DIR"], "verbena")
LUA = os.path.join(os.environ["SOURCE_DIR"], "share", "wireshark", "veroce.lua")
SCENARIO = """[topology]
kind = star
hosts = 4
[switch]
buffer = 1MB
kmin = 5KB
kmax = 20KB
[transport]
payload = 1024B
[cc]
algorithm = none
[workload.a]
kind = incast
fan_in = 3
size = 200KB
[output]
pcap = x.pcap
"""


TIME_S = 300  # a limit for what hangs, not for what is slow


def check(condition, text):
    if not condition:
        sys.exit("FAILED: " + text)


def simulate(folder, *words, status=0):
    with open(os.path.join(folder, "s.ini"), "w") as f:
        f.write(SCENARIO)
    p = subprocess.run([VERBENA, "sim", os.path.join(folder, "s.ini"), "-q"] + list(words),
                       capture_output=True, text=True, timeout=TIME_S,
                       env=dict(os.environ, PATH="/nonexistent"))  # without gnuplot: nobody looks at its drawings
    check(p.returncode == status, "%s: status %d\n%s" % (words, p.returncode, p.stderr))
    return p.stderr


def capture(folder, *keys):
    """Runs it; the path of the capture."""
    report = os.path.join(folder, "one", "report")
    simulate(folder, "--report", report, *[w for k in keys for w in ("--set", k)])
    return os.path.join(report, "x.pcap")


def tshark(path, *words):
    p = subprocess.run(["tshark", "-X", "lua_script:" + LUA, "-n", "-r", path] + list(words),
                       capture_output=True, text=True, timeout=TIME_S)
    check(p.returncode == 0, p.stderr)
    return p.stdout


def fields(path, *names):
    words = [w for n in names for w in ("-e", n)]
    return [line.split("\t") for line in tshark(path, "-T", "fields", *words).splitlines()]


def clean(path):
    check(not tshark(path, "-Y", "_ws.malformed or _ws.expert.severity >= 6291456"), "tshark complains")


def rocev2(folder):
    path = capture(folder, "transport.protocol=rocev2", "switch.pfc=on", "output.pcap_hosts=0,1")
    rows = fields(path, "frame.protocols", "infiniband.bth.opcode", "ip.src", "ip.dst", "frame.time_relative")
    kinds = {r[0].replace(":data", "") for r in rows}
    check(kinds == {"eth:ethertype:ip:udp:infiniband", "eth:ethertype:macc"}, str(kinds))
    opcodes = collections.Counter(int(r[1]) for r in rows if r[1])
    # First, middle, last of each message; those of host 1 are seen on both links.
    check(opcodes[6] == 4 and opcodes[7] == 4 * 194 and opcodes[8] + opcodes[9] == 4 and opcodes[17],
          str(opcodes))
    check({(r[2], r[3]) for r in rows if r[1] == "7"} ==
          {("10.0.0.%d" % i, "10.0.0.0") for i in (1, 2, 3)}, "addresses")
    times = [float(r[4]) for r in rows]
    check(times == sorted(times) and times[-1] < 1e-3, "times")
    clean(path)


def marks(folder):
    path = capture(folder, "transport.protocol=rocev2", "cc.algorithm=dctcp", "output.pcap_hosts=0")
    rows = fields(path, "infiniband.bth.opcode", "ip.dsfield.ecn")
    check({ecn for opcode, ecn in rows if opcode == "7"} == {"2", "3"}, "ECN")
    clean(path)


def veroce(folder):
    path = capture(folder, "transport.protocol=veroce", "output.pcap_links=0-4")
    rows = fields(path, "frame.protocols", "veroce.bth.opcode", "ip.src")
    check({r[0] for r in rows} == {"eth:ethertype:ip:udp:veroce"}, str({r[0] for r in rows}))
    check({r[2] for r in rows} == {"10.0.0.%d" % i for i in range(4)}, "both directions")
    clean(path)


def crc16(data):
    """The VCRC, bit by bit from IBTA 7.8.2: 0x100b, least significant bit first."""
    crc = 0xffff
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0xd008 if crc & 1 else 0)
    return struct.pack("<H", crc ^ 0xffff)


def records(path):
    with open(path, "rb") as f:
        data = f.read()
    magic, link = struct.unpack_from("<I16xI", data)
    check((magic, link) == (0xa1b23c4d, 197), "not ERF: %x %d" % (magic, link))
    at = 24
    while at < len(data):
        got, = struct.unpack_from("<I", data, at + 8)
        yield data[at + 16:at + 16 + got]
        at += 16 + got


def infiniband(folder):
    """Links with credits: LRH, and both CRCs right; counters of flow control packets never promise more than 2048 blocks."""
    path = capture(folder, "transport.protocol=rocev2", "switch.flow_control=credits", "switch.ecn=off", "transport.ack_class=data")
    kinds = collections.Counter()
    for r in records(path):
        kind, record, wire = r[8], *struct.unpack_from(">H2xH", r, 10)
        packet = r[16:]
        kinds[kind] += 1
        check(record == len(r), "length %d of %d" % (record, len(r)))
        if kind == 25:
            check(wire == 48 and packet[4:6] == crc16(packet[:4]) and not any(packet[6:]), "LPCRC of " + packet.hex())
            continue
        check(kind == 21 and wire == len(packet), "type %d, %d of %d bytes" % (kind, wire, len(packet)))
        check(packet[-2:] == crc16(packet[:-2]), "VCRC of " + packet.hex())
        check(struct.unpack_from(">H", packet, 4)[0] * 4 == len(packet) - 2, "PktLen of " + packet.hex())
        masked = bytes([packet[0] | 0xf0]) + packet[1:12] + b"\xff" + packet[13:-6]
        check(packet[-6:-2] == struct.pack("<I", zlib.crc32(masked)), "ICRC of " + packet.hex())
    check(kinds[21] > 1000 and kinds[25] > 100, str(kinds))
    rows = fields(path, "frame.protocols", "infiniband.lrh.slid", "infiniband.lrh.dlid", "infiniband.lrh.sl", "infiniband.bth.opcode",
                  "infiniband.lrh.vl")
    packets = [r for r in rows if r[4]]
    check({r[0].replace(":data", "") for r in packets} == {"erf:infiniband"}, str({r[0] for r in packets}))
    check({(int(r[1], 0), int(r[2], 0)) for r in packets if r[4] == "7"} == {(i, 1) for i in (2, 3, 4)}, "LIDs")
    check({(int(r[3], 0), int(r[5], 0)) for r in packets} == {(3, 3)}, "SL and VL: %s" % {(r[3], r[5]) for r in packets})
    links = fields(path, "infiniband_link.op", "infiniband_link.vl", "infiniband_link.fctbs", "infiniband_link.fccl")
    links = [[int(x, 0) for x in r] for r in links if r[0]]
    check(len(links) == kinds[25] and {(r[0], r[1]) for r in links} == {(0, 3)}, "flow control packets")
    clean(path)


def cut(folder):
    path = capture(folder, "transport.protocol=rocev2", "output.pcap_payload=off", "output.pcap_hosts=2")
    with open(path, "rb") as f:
        data = f.read()
    check(struct.unpack_from("<I", data)[0] == 0xa1b23c4d, "magic")
    at, lengths = 24, set()
    while at < len(data):
        got, length = struct.unpack_from("<II", data, at + 8)
        lengths.add((got, length))
        at += 16 + got
    # Ethernet, IPv4, UDP and BTH are there; 1024 bytes and an ICRC are not.
    check((42 + 12, 42 + 12 + 1024 + 4) in lengths, str(lengths))
    check(at == len(data), "the end")


def wrong(folder):
    check("--report" in simulate(folder, status=125), "no folder")
    for key, word in ("pcap_hosts=4", "only 0 to 3"), ("pcap_links=0-1", "no link joins"):
        err = simulate(folder, "--report", os.path.join(folder, "r"), "--set", "output." + key, status=125)
        check(word in err, err)
    err = simulate(folder, "--report", os.path.join(folder, "r"), "--set", "output.pcap=no/x", status=125)
    check("no/x" in err, err)


def same(folder):
    a = open(capture(folder, "run.seed=7"), "rb").read()
    check(a == open(capture(folder, "run.seed=7"), "rb").read(), "another run, other bytes")


def main():
    case = globals()[sys.argv[1]]
    if case in (rocev2, marks, veroce, infiniband) and not shutil.which("tshark"):
        sys.exit(77)
    with tempfile.TemporaryDirectory(prefix="verbena-capture-") as folder:
        case(folder)


main()
