#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""
The Wireshark dissector of veRoCE, share/wireshark/veroce.lua, checked with packets that are encoded
here, from the layouts of the specification and with nothing of the implementation.

    dissector_check.py [WORD ...]      every check, or those with a WORD in their name
    dissector_check.py --most          those that need many packets and few starts of tshark
    dissector_check.py --rest          the others

Other tests import dissect() and judge() for captures of their own. Exit status: 0, 1 (a check failed)
or 77 (no tshark here).
"""
import os
import random
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree
import zlib

HERE = os.path.dirname(os.path.abspath(__file__))
LUA = os.path.join(os.path.dirname(os.path.dirname(HERE)), "share", "wireshark", "veroce.lua")
PORT = 4794
SKIP = 77
TIME_S = 300
LUA_ERROR = "_ws.lua.error"
SEVERITY_WARN, SEVERITY_NOTE = 0x600000, 0x400000  # as _ws.expert.severity has them


class Missing(Exception):
    """There is no tshark."""


class Failure(Exception):
    pass


def check(condition, text):
    if not condition:
        raise Failure(text)


# ---------------------------------------------------------------------------------------------------
# What other tests use


def tshark(words, script=LUA):
    """The standard output of tshark with the dissector and nobody's own settings."""
    if not shutil.which("tshark"):
        raise Missing("needs tshark")
    with tempfile.TemporaryDirectory(prefix="tshark.") as home:
        r = subprocess.run(["tshark"] + words[:2] + ["-X", "lua_script:" + script, "-n"] + words[2:],
                           capture_output=True, text=True, errors="replace", timeout=TIME_S,
                           env=dict(os.environ, HOME=home, WIRESHARK_CONFIG_DIR=home, LC_ALL="C.UTF-8"))
    check(r.returncode == 0, "tshark: status %d: %s" % (r.returncode, r.stderr))
    check("Lua" not in r.stderr, "tshark: " + r.stderr)
    return r.stdout


def dissect(pcap_path, fields, filter=None, options=(), script=LUA):
    """
    One row per packet (of those that the display filter lets through): a dictionary from field to the
    list of its values, as tshark prints them; fields that a packet has not are not in its row.
    `options` are tshark's own, such as ["-o", "veroce.port:5000"].
    """
    fields = list(fields) + [LUA_ERROR]
    words = ["-r", pcap_path, "-T", "fields", "-E", "occurrence=a", "-E", "aggregator=|"] + list(options)
    for name in fields:
        words += ["-e", name]
    if filter:
        words += ["-Y", filter]
    rows = []
    for line in tshark(words, script).splitlines():
        row = {name: text.split("|") for name, text in zip(fields, line.split("\t")) if text != ""}
        check(LUA_ERROR not in row, "Lua Error in packet %d: %s" % (len(rows) + 1, row.get(LUA_ERROR)))
        rows.append(row)
    return rows


def judge(pcap_path, notes=False, port=PORT, script=LUA):
    """
    What is wrong in a capture: a list of (frame number, complaint) with every expert warning and error
    of the dissector, every ICRC that is not proved good, and what goes to the port and is not dissected.
    With notes, also what is allowed but not as senders should. What an ICMP error quotes is not judged.
    """
    wanted = ("(veroce || udp.dstport == %d) && !icmp && !icmpv6"
              " && (!(veroce.icrc.status == 1) || _ws.expert || %s)" % (port, LUA_ERROR))
    out = tshark(["-r", pcap_path, "-o", "veroce.port:%d" % port, "-T", "pdml", "-Y", wanted], script)
    complaints = []
    for packet in ElementTree.fromstring(out).iter("packet"):
        number = int(packet.find("proto[@name='frame']/field[@name='frame.number']").get("show"))
        veroce = packet.find("proto[@name='veroce']")
        if any(x.get("name") == LUA_ERROR for x in packet.iter("field")):
            complaints.append((number, "Lua Error in the dissector"))
        if veroce is None:
            complaints.append((number, "not dissected as veRoCE"))
            continue
        least = SEVERITY_NOTE if notes else SEVERITY_WARN
        bad_icrc = False
        for x in veroce.iter("field"):
            if x.get("name") != "_ws.expert":
                continue
            inside = {y.get("name"): y for y in x.iter("field")}
            names = [name for name in inside if name.startswith("veroce.expert.")]
            bad_icrc = bad_icrc or "veroce.expert.icrc" in names
            if names and int(inside["_ws.expert.severity"].get("show")) >= least:
                complaints.append((number, "%s: %s" % (names[0].rpartition(".")[2],
                                                       inside["_ws.expert.message"].get("show"))))
        status = veroce.find(".//field[@name='veroce.icrc.status']")
        if not bad_icrc and (status is None or status.get("show") != "1"):
            complaints.append((number, "icrc: not verified"))
    return complaints


def joined(paths, to):
    """One capture file of several of the same kind, one after the other; its path."""
    with open(to, "wb") as f:
        for n, path in enumerate(paths):
            with open(path, "rb") as part:
                data = part.read()
            f.write(data if n == 0 else data[24:])
    return to


def judge_all(pcap_path):
    """(what judge() says, the opcodes of veRoCE in the capture)"""
    rows = dissect(pcap_path, ["veroce.bth.opcode", "veroce.icrc.status", "_ws.expert", "udp.dstport", "icmp", "icmpv6"])
    rows = [row for row in rows if "icmp" not in row and "icmpv6" not in row]
    mine = [row for row in rows if "veroce.bth.opcode" in row]
    fine = all(row["veroce.icrc.status"] == ["1"] and "_ws.expert" not in row for row in mine)
    fine = fine and not any(row["udp.dstport"] == [str(PORT)] for row in rows if "veroce.bth.opcode" not in row)
    return [] if fine else judge(pcap_path), {int(row["veroce.bth.opcode"][0], 16) for row in mine}


# ---------------------------------------------------------------------------------------------------
# Layouts: (field, bits), most significant first; veRoCE 2, 13.1, 13.2, 13.4

LAYOUTS = {
    "BTH": [("bth.opcode", 8), ("bth.se", 1), ("bth.migreq", 1), ("bth.padcnt", 2), ("bth.tver", 4),
            ("bth.pkey", 16), ("bth.fecn", 1), ("bth.becn", 1), ("bth.resv6", 6), ("bth.dqpn", 24),
            ("bth.ackreq", 1), ("bth.retrans", 1), ("bth.ts", 1), ("bth.resv5", 5), ("bth.psn", 24)],
    "MSNETH": [("msn.resv", 8), ("msn", 24)],
    "POETH": [("po.resv", 8), ("po", 24)],
    "RQETH": [("rqmsn.resv", 8), ("rqmsn", 24)],
    "AETH": [("aeth.syndrome", 8), ("aeth.msn", 24)],
    "RETH": [("reth.va", 64), ("reth.rkey", 32), ("reth.len", 32)],
    "FETH": [("feth.resv", 26), ("feth.sel", 2), ("feth.plt", 4)],
    "AtomicETH": [("atomiceth.va", 64), ("atomiceth.rkey", 32), ("atomiceth.swap", 64),
                  ("atomiceth.compare", 64)],
    "AtomicAckETH": [("atomicacketh.orig", 64)],
    "ImmDt": [("immdt", 32)],
    "IETH": [("ieth.rkey", 32)],
    "SACKETH": [("sack.valid_len", 8), ("sack.start_psn", 24), ("sack.bitmap", 128)],
    "RTTReqETH": [("rtt.context", 32), ("rtt.tx1", 32), ("rtt.rx1", 32), ("rtt.tx2", 32), ("rtt.rx2", 32)],
    "RTTRspETH": [("rtt.context", 32), ("rtt.tx1", 32), ("rtt.rx1", 32), ("rtt.tx2", 32), ("rtt.rx2", 32)],
    "zeros": [("cnp.resv", 128)],
    "CAPSETH": [("caps.magic", 32), ("caps.version", 8), ("caps.profile", 8), ("caps.flags", 16),
                ("caps.pmtu", 8), ("caps.rxwinq", 24), ("caps.numpaths", 8), ("caps.rxwinr", 24),
                ("caps.state", 8), ("caps.qpn", 24), ("caps.nonce", 32), ("caps.t_hint", 16),
                ("caps.ack_timer", 16), ("caps.own_nonce", 32)],
    "HOLDETH": [("hold.ms", 16), ("hold.number", 16), ("hold.resv", 8), ("hold.qpn", 24), ("hold.nonce", 32)],
    "ROAMETH": [("roam.step", 8), ("roam.qpn", 24), ("roam.number", 32), ("roam.challenge", 64), ("roam.mac", 64)],
    "TSETH": [("ts.tx1", 32), ("ts.path_id", 8), ("ts.path_seq", 24)],
    "TSEETH": [("tse.tx1", 32), ("tse.rx1", 32), ("tse.tx2", 32), ("tse.path_id", 8), ("tse.path_rcv", 24),
               ("tse.dups", 8), ("tse.path_ce", 24)],
    "share": [("tse.share", 32)],
}
CAPS_FLAGS = {"multi_sack": 1, "ts": 2, "pmtu8192": 4, "trim": 8, "rxshare": 16, "sack_any": 32,
              "seal": 128, "alike": 256, "large": 512, "hold": 1024, "roam": 2048}
BYTES = {"sack.bitmap", "cnp.resv", "payload", "pad", "extra"}
STRINGS = {"space", "sack.received", "sack.missing"}
ZERO = {"bth.tver", "bth.resv6", "bth.resv5", "msn.resv", "po.resv", "rqmsn.resv", "cnp.resv", "caps.state",
        "rtt.rx2", "feth.resv", "hold.resv"}

# veRoCE 3: opcode: name, stack, bytes without payload, space. Payload: "full" in all packets of a message
# but the last, "some" in the last of several, "any" in an only one.
TABLE = """
00 | SEND First | MSNETH RQETH | 20 | Q | full
01 | SEND Middle | MSNETH RQETH POETH | 24 | Q | full
02 | SEND Last | MSNETH RQETH POETH | 24 | Q | some
03 | SEND Last Imm | MSNETH RQETH POETH ImmDt | 28 | Q | some
04 | SEND Only | MSNETH RQETH | 20 | Q | any
05 | SEND Only Imm | MSNETH RQETH ImmDt | 24 | Q | any
06 | WRITE First | MSNETH RETH | 32 | Q | full
07 | WRITE Middle | MSNETH RETH POETH | 36 | Q | full
08 | WRITE Last | MSNETH RETH POETH | 36 | Q | some
09 | WRITE Last Imm | MSNETH RETH RQETH POETH ImmDt | 44 | Q | some
0A | WRITE Only | MSNETH RETH | 32 | Q | any
0B | WRITE Only Imm | MSNETH RETH RQETH ImmDt | 40 | Q | any
0C | READ Request | MSNETH RETH | 32 | Q | none
0D | READ Rsp First | MSNETH AETH | 20 | R | full
0E | READ Rsp Middle | MSNETH AETH POETH | 24 | R | full
0F | READ Rsp Last | MSNETH AETH POETH | 24 | R | some
10 | READ Rsp Only | MSNETH AETH | 20 | R | any
11 | ACK | AETH POETH | 20 | q | none
12 | Atomic ACK | MSNETH AETH AtomicAckETH | 28 | R | none
13 | CmpSwap | MSNETH AtomicETH | 44 | Q | none
14 | FetchAdd | MSNETH AtomicETH | 44 | Q | none
16 | SEND Last Inv | MSNETH RQETH POETH IETH | 28 | Q | some
17 | SEND Only Inv | MSNETH RQETH IETH | 24 | Q | any
18 | SACK | AETH POETH SACKETH | 40 | q | none
19 | ACK_Rsp | AETH POETH | 20 | r | none
1C | FLUSH | MSNETH FETH RETH | 36 | Q | none
1D | ATOMIC WRITE | MSNETH RETH | 32 | Q | any
1E | SACK_Rsp | AETH POETH SACKETH | 40 | r | none
81 | CNP | zeros | 28 | - | none
82 | RTT Request | RTTReqETH | 32 | - | none
83 | RTT Response | RTTRspETH | 32 | - | none
84 | Slow-Packet Signal | | 12 | - | none
F0 | CAPS Request | CAPSETH | 44 | - | none
F1 | CAPS Response | CAPSETH | 44 | - | none
F2 | HOLD | HOLDETH | 24 | - | none
F3 | HELD | HOLDETH | 24 | - | none
F4 | ROAM | ROAMETH | 36 | - | none
"""
SPACES = {"Q": "request space", "R": "response space", "q": "acknowledges the request space",
          "r": "acknowledges the response space"}
CAPS_CODE = 0xf0
PMTUS = [256, 512, 1024, 2048, 4096, 8192]


class Op:
    def __init__(self, line):
        code, self.name, stack, size, self.space, self.payload = [x.strip() for x in line.split("|")]
        self.code, self.stack, self.size = int(code, 16), stack.split(), int(size)
        self.data, self.ack = self.space in "QR", self.space in "qr"
        self.sack = "SACKETH" in self.stack


OPS = {op.code: op for op in map(Op, TABLE.strip().splitlines())}
SEND_ONLY, WRITE_ONLY, ACK, SACK, FLUSH, CNP, CAPS, CAPS_ANSWER, HOLD, ROAM = (
    OPS[x] for x in (0x04, 0x0a, 0x11, 0x18, 0x1c, 0x81, 0xf0, 0xf1, 0xf2, 0xf4))


def bits(name, values):
    """A header's bytes."""
    number = size = 0
    for field, width in LAYOUTS[name]:
        check(0 <= values[field] < 1 << width, "%s does not fit" % field)
        number, size = number << width | values[field], size + width
    return number.to_bytes(size // 8, "big")


def ranges(psns):
    """[5, 6, 8] as "5-6, 8"; the list is in order, though perhaps not in numerical order."""
    out = []
    for psn in psns:
        if out and psn == (out[-1][1] + 1) % (1 << 24):
            out[-1][1] = psn
        else:
            out.append([psn, psn])
    return ", ".join("%d" % a if a == b else "%d-%d" % (a, b) for a, b in out) or "none"


class Body:
    """
    From the BTH to the pad. All bytes that a test leaves open are random, but such that a dissector has nothing to
    complain of. `fields` is what it should show.
    """

    def __init__(self, op, rng, payload=None, t=False, blocks=1, share=False, trailer=True, **said):
        said = {name.replace("__", "."): value for name, value in said.items()}
        self.op, self.fields = op, {}
        if payload is None:
            payload = rng.randbytes({"full": rng.choice(PMTUS[:3]), "some": rng.randint(1, 256),
                                     "any": rng.randint(0, 256), "none": 0}[op.payload])
        pad = -len(payload) % 4
        bth = {"bth.opcode": op.code, "bth.padcnt": pad, "bth.ts": int(t)}
        if op.ack:
            bth.update({"bth.ackreq": 0, "bth.retrans": 0})
        psn = said.get("bth.psn", rng.randrange(1 << 24))
        bth["bth.psn"] = psn
        self.bytes = self._header("BTH", rng, {**bth, **said})
        if op.space != "-":
            self._show("space", SPACES[op.space])
        if t:
            self.bytes += self._header("TSETH" if op.data else "TSEETH", rng, said)
        if share:
            self.bytes += self._header("share", rng, said)
        for name in op.stack:
            if name == "zeros" and not trailer:
                continue
            for block in range(blocks if name == "SACKETH" else 1):
                self.bytes += self._header(name, rng, {**self._defaults(name, rng, payload, psn, block), **said})
        self.bytes += payload + bytes(pad)
        if payload:
            self._show("payload", payload.hex())
        if op.payload != "none":
            self._show("payload_len", len(payload))
        if pad:
            self._show("pad", bytes(pad).hex())

    def _show(self, field, value):
        self.fields.setdefault("veroce." + field, []).append(value)

    def _defaults(self, name, rng, payload, psn, block):
        values = {}
        if name == "AETH":
            values["aeth.syndrome"] = 0x1f
        elif name == "POETH":
            values["po"] = rng.randrange(1, 0xffffff)
        elif name == "RETH" and self.op.payload != "none":
            values["reth.len"] = len(payload)
        elif name == "SACKETH":
            length = rng.randint(2, 128)
            # The first block starts at aPSN+1, which is missing; the others lie anywhere behind.
            values = {"sack.valid_len": length, "sack.start_psn": (psn + 1 + 300 * block) % (1 << 24),
                      "sack.bitmap": rng.randrange(1 << length) & ~1 | 1 << length - 1}
        elif name == "FETH":
            values = {"feth.sel": rng.randint(0, 1), "feth.plt": rng.randint(1, 3)}
        elif name == "RTTReqETH":
            values = {"rtt.rx1": 0, "rtt.tx2": 0}
        elif name == "CAPSETH":
            values = {"caps.magic": 0x56525831, "caps.version": 1, "caps.profile": rng.randint(0, 3),
                      "caps.flags": rng.randrange(4096) & ~64, "caps.pmtu": rng.randint(1, 6)}
            if self.op.code == CAPS_CODE:
                values["caps.own_nonce"] = 0
        elif name == "HOLDETH":
            values = {"hold.ms": rng.randint(0, 10000), "hold.number": rng.randint(1, 0xffff)}
        elif name == "ROAMETH":
            step = rng.randint(1, 4)
            values = {"roam.step": step, "roam.number": rng.randint(1, 0xffffffff),
                      "roam.challenge": 0 if step == 1 else rng.randint(1, 1 << 63)}
        return values

    def _header(self, name, rng, said):
        values = {}
        for field, width in LAYOUTS[name]:
            value = said[field] if field in said else 0 if field in ZERO else rng.randrange(1 << width)
            values[field] = value
            self._show(field, "%0*x" % (width // 4, value) if field in BYTES else value)
        if name == "SACKETH":
            length, start, bitmap = (values[field] for field, _ in LAYOUTS[name])
            for field, one in (("sack.received", 1), ("sack.missing", 0)):
                self._show(field, ranges([(start + i) % (1 << 24) for i in range(min(length, 128))
                                          if bitmap >> i & 1 == one]))
        elif name == "CAPSETH":
            for flag, bit in CAPS_FLAGS.items():
                self._show("caps.flags." + flag, int(values["caps.flags"] & bit != 0))
            self._show("caps.flags.resv", values["caps.flags"] >> 12)
        return bits(name, values)


# ---------------------------------------------------------------------------------------------------
# Around it: ICRC, UDP, IP, Ethernet, capture files


def crc32_bit_by_bit(data, register=0xffffffff):
    for x in data:
        register ^= x
        for _ in range(8):
            register = register >> 1 ^ (0xedb88320 if register & 1 else 0)
    return register


def icrc(ip, udp, body):
    """veRoCE 1.1, over the IP header as it is."""
    ip, udp, body = bytearray(ip), bytearray(udp), bytearray(body)
    if ip[0] >> 4 == 4:
        for i in (1, 8, 10, 11):
            ip[i] = 0xff
    else:
        ip[0] |= 0x0f
        for i in (1, 2, 3, 7):
            ip[i] = 0xff
    udp[6] = udp[7] = 0xff
    if len(body) > 4:
        body[4] = 0xff
    return zlib.crc32(b"\xff" * 8 + bytes(ip + udp + body))


def ones_sum(data):
    total = sum(struct.unpack(">%dH" % (len(data) // 2), data))
    while total >> 16:
        total = (total & 0xffff) + (total >> 16)
    return total ^ 0xffff


def ip4_header(length, src="10.0.0.1", dst="10.0.0.2", tos=2, ttl=64, ident=0, frag=0x4000, proto=17,
               options=b""):
    head = struct.pack(">BBHHHBBH4s4s", 0x45 + len(options) // 4, tos, 20 + len(options) + length, ident, frag,
                       ttl, proto, 0, socket.inet_aton(src), socket.inet_aton(dst)) + options
    return head[:10] + struct.pack(">H", ones_sum(head)) + head[12:]


def ip6_header(length, src="fd00::1", dst="fd00::2", tc=2, flow=0x12345, hops=64, proto=17):
    return struct.pack(">IHBB", 6 << 28 | tc << 20 | flow, length, proto, hops) + \
        socket.inet_pton(socket.AF_INET6, src) + socket.inet_pton(socket.AF_INET6, dst)


class Frame:
    """An IP packet with UDP and the ICRC, and what the dissector should say of it."""

    def __init__(self, body, version=4, sport=49152, dport=PORT, udp_sum=0, complaints=(), flip=0, status=None,
                 crc=None, **ip):
      
        fields = body.fields if isinstance(body, Body) else None
        body = body.bytes if isinstance(body, Body) else body
        length = 8 + len(body) + 4
        udp = struct.pack(">HHHH", sport, dport, length, udp_sum)
        head = ip4_header(length, **ip) if version == 4 else ip6_header(length, **ip)
        right = icrc(head, udp, body)
        sent = (right if crc is None else crc) ^ flip
        self.crc, self.complaints = right, set(complaints)
        self.bytes = head + udp + body + struct.pack("<I", sent)
        self.fields = None
        if sent != right:
            self.complaints.add("icrc")
        if fields is not None:
            self.fields = {name: list(values) for name, values in fields.items()}
            self.fields.update({"veroce.icrc": [sent], "veroce.icrc.computed": [right],
                                "veroce.icrc.status": [int(sent == right) if status is None else status]})


RAW, ETHERNET = 101, 1


def write_pcap(path, packets, linktype=RAW, snaplen=None):
    """snaplen: how much of each packet is kept."""
    with open(path, "wb") as f:
        f.write(struct.pack("<IHHIIII", 0xa1b2c3d4, 2, 4, 0, 0, 1 << 18, linktype))
        for n, p in enumerate(packets):
            kept = p[:snaplen[n]] if snaplen else p
            f.write(struct.pack("<IIII", 1000000000 + n // 1000000, n % 1000000, len(kept), len(p)) + kept)


class Bench:
    """The checks: each is a method that begins with check_, one line of output each or more."""

    def __init__(self, folder):
        self.folder, self.failed, self.done = folder, 0, 0
        self.waiting = []
        self.rng = random.Random(4794)
        names = {field for layout in LAYOUTS.values() for field, _ in layout}
        names |= set("payload payload_len pad extra icrc icrc.computed icrc.secret icrc.status sack.received sack.missing space "
                     "caps.flags.resv".split())
        names |= {"caps.flags." + x for x in CAPS_FLAGS}
        names |= {"expert." + x for x in
                  "length reserved opcode tver valid_len padcnt pad ts syndrome value unusual trimmed cut icrc".split()}
        self.names = ["veroce." + x for x in sorted(names)]  # tshark refuses to print what is no field

    def report(self, name, problem=None):
        self.done += 1
        if problem:
            self.failed += 1
        print("%-6s %s%s" % ("FAILED" if problem else "ok", name, ": " + problem if problem else ""), flush=True)

    def pcap(self, packets, linktype=RAW, snaplen=None):
        path = os.path.join(self.folder, "x.pcap")
        write_pcap(path, packets, linktype, snaplen)
        return path

    @staticmethod
    def value(field, text):
        name = field[len("veroce."):]
        if name in BYTES:
            return text.replace(":", "")
        if name in STRINGS:
            return text
        return int({"True": "1", "False": "0"}.get(text, text), 0)

    def rows(self, packets, fields=None, **more):
        pcap_words = {k: more.pop(k) for k in ("linktype", "snaplen") if k in more}
        rows = dissect(self.pcap(packets, **pcap_words), fields or self.names, **more)
        if "filter" not in more:
            check(len(rows) == len(packets), "%d rows of %d packets" % (len(rows), len(packets)))
        return rows

    @staticmethod
    def complaints(row):
        return {name.rpartition(".")[2] for name in row if name.startswith("veroce.expert.")}

    def differences(self, row, frame):
        """The parts of a row that differ from the frame."""
        problems = []
        if self.complaints(row) != frame.complaints:
            problems.append("complaints %s, not %s" % (sorted(self.complaints(row)), sorted(frame.complaints)))
        if frame.fields is None:
            return problems
        got = {name: values for name, values in row.items() if name != "veroce" and not name.startswith("veroce.expert")}
        for name in sorted(set(got) | set(frame.fields)):
            want = frame.fields.get(name)
            have = [self.value(name, x) for x in got[name]] if name in got else None
            if want != have:
                problems.append("%s is %s, not %s" % (name, str(have)[:200], str(want)[:200]))
        return problems

    def rows_later(self, packets, judge):
        """
        judge(rows), where all that wait have one run of tshark, as its start takes longer than what it reads. None shows the
        dissector a secret of another.
        """
        self.waiting.append((packets, judge))

    # Two secrets, as a user may set them, which no other check spoils an ICRC with.
    SECRETS = [0xabcdef01, 0x70000001]

    def rows_now(self):
        words = "veroce.secrets:" + " ".join("%X" % x for x in self.SECRETS)
        rows = iter(self.rows([p for packets, _ in self.waiting for p in packets], self.names + ["veroce"], options=["-o", words]))
        for packets, judge in self.waiting:
            judge([next(rows) for _ in packets])

    def judge_frames(self, cases, rows):
        """Each (name, frame) is a check."""
        for (name, frame), row in zip(cases, rows):
            self.report(name, "; ".join(self.differences(row, frame)) or None)

    def frames_later(self, cases):
        self.rows_later([frame.bytes for _, frame in cases], lambda rows: self.judge_frames(cases, rows))

    def frames(self, cases, **more):
        wrap = more.pop("wrap", lambda p: p)
        self.judge_frames(cases, self.rows([wrap(frame.bytes) for _, frame in cases], **more))

    # -----------------------------------------------------------------------------------------------

    def check_field_names(self):
        """There are no others, whose values nobody would look at."""
        found = {line.split("\t")[2] for line in tshark(["-G", "fields"]).splitlines() if "\tveroce." in line and line[:2] == "F\t"}
        self.report("field names", None if found == set(self.names) else "different: %s" % sorted(found ^ set(self.names)))

    def check_stack_sizes(self):
        """The layouts here against the column "bytes" of the table."""
        for op in OPS.values():
            size = len(Body(op, self.rng, payload=b"").bytes)
            check(size == op.size, "%s has %d bytes, not %d" % (op.name, size, op.size))
        self.report("sizes of the stacks")

    def check_crc(self):
        check(crc32_bit_by_bit(b"\xff" * 8) == 0xdebb20e3, "register after 64 one-bits")
        data = self.rng.randbytes(1000)
        check(crc32_bit_by_bit(data) ^ 0xffffffff == zlib.crc32(data), "two CRCs")
        self.report("CRC bit by bit")

    def check_vectors(self):
        """veRoCE 1.1, byte for byte."""
        said = {"bth__se": 0, "bth__migreq": 0, "bth__pkey": 0xffff, "bth__fecn": 0, "bth__becn": 0}
        write = Body(WRITE_ONLY, self.rng, payload=bytes.fromhex("deadbeef"), bth__dqpn=0x12, bth__psn=100,
                     bth__ackreq=1, bth__retrans=0, msn=1, reth__va=0x1000, reth__rkey=0x1234, **said)
        sack = Body(SACK, self.rng, bth__dqpn=0x11, bth__psn=4, aeth__msn=0, po=5, sack__start_psn=5,
                    sack__valid_len=5, sack__bitmap=1 << 2 | 1 << 4, **said)
        vectors = [
            ("vector Write Only", write, {}, 0x8821fab7, "b7fa2188",
             "0a00ffff00000012800000640000000100000000000010000000123400000004deadbeef"),
            ("vector SACK", sack, {"src": "10.0.0.2", "dst": "10.0.0.1"}, 0xd90f8e86, "868e0fd9",
             "1800ffff00000011000000041f000000000000050500000500000000000000000000000000000014")]
        cases = []
        for name, body, ip, crc, wire, text in vectors:
            frame = Frame(body, **ip)
            check(body.bytes.hex() == text, "%s: encoded as %s" % (name, body.bytes.hex()))
            check(frame.crc == crc and frame.bytes[-4:].hex() == wire, "%s: ICRC %08x" % (name, frame.crc))
            # and without the helpers: the header as the specification spells it, CRC bit by bit
            src, dst = socket.inet_aton(ip.get("src", "10.0.0.1")), socket.inet_aton(ip.get("dst", "10.0.0.2"))
            length = len(frame.bytes)
            canonical = bytes.fromhex("45ff%04x00004000ff11ffff" % length) + src + dst
            udp = struct.pack(">HHHH", 49152, PORT, length - 20, 0xffff)
            masked = bytearray.fromhex(text)
            masked[4] = 0xff
            check(crc32_bit_by_bit(b"\xff" * 8 + canonical + udp + masked) ^ 0xffffffff == crc, name + ": CRC")
            cases.append((name, frame))
        check(cases[1][1].fields["veroce.sack.received"] == ["7, 9"], "SACK vector")
        check(cases[1][1].fields["veroce.sack.missing"] == ["5-6, 8"], "SACK vector")
        self.frames_later(cases)

    def check_opcodes(self):
        """Every field of every opcode, with and without time stamps, IPv4 and IPv6."""
        cases = []
        for op in OPS.values():
            for version in (4, 6):
                for t in (False, True) if op.space != "-" else (False,):
                    for n in range(4):
                        body = Body(op, self.rng, t=t)
                        cases.append(("%s IPv%d%s %d" % (op.name, version, " T" if t else "", n),
                                      Frame(body, version, sport=self.rng.randint(49152, 65535))))
        self.frames_later(cases)

    def check_payloads(self):
        cases = []
        for op in OPS.values():
            sizes = {"full": PMTUS, "some": [1, 2, 3, 4, 5, 255, 4095, 8192], "none": [],
                     "any": [0, 1, 2, 3, 4, 5, 1023, 1024, 8191, 8192]}[op.payload]
            for n in sizes:
                cases.append(("%s with %d bytes" % (op.name, n), Frame(Body(op, self.rng, self.rng.randbytes(n)))))
        self.frames_later(cases)

    def check_control(self):
        rng = self.rng
        cases = [
            ("CNP of 12 bytes", Frame(Body(CNP, rng, trailer=False))),
            ("CNP with bytes that are not zero", Frame(Body(CNP, rng, cnp__resv=1 << 70), complaints=["reserved"])),
            ("CAPS all flags", Frame(Body(CAPS, rng, caps__flags=0x7bf))),
            ("CAPS 256 paths", Frame(Body(CAPS, rng, caps__numpaths=0))),
            ("CAPS magic", Frame(Body(CAPS, rng, caps__magic=0x56525832), complaints=["value"])),
            ("CAPS version", Frame(Body(CAPS, rng, caps__version=2), complaints=["value"])),
            ("CAPS profile", Frame(Body(CAPS, rng, caps__profile=4), complaints=["value"])),
            ("CAPS PMTU 0", Frame(Body(CAPS, rng, caps__pmtu=0), complaints=["value"])),
            ("CAPS PMTU 7", Frame(Body(CAPS, rng, caps__pmtu=7), complaints=["value"])),
            ("FETH bits that are reserved", Frame(Body(FLUSH, rng, feth__resv=1), complaints=["reserved"])),
            ("FETH level 2", Frame(Body(FLUSH, rng, feth__sel=2), complaints=["value"])),
            ("FETH without a type", Frame(Body(FLUSH, rng, feth__plt=0), complaints=["value"])),
            ("FETH type 4", Frame(Body(FLUSH, rng, feth__plt=5), complaints=["value"])),
            ("CAPS flag 64", Frame(Body(CAPS, rng, caps__flags=0x40), complaints=["reserved"])),
            ("CAPS flag 4096", Frame(Body(CAPS, rng, caps__flags=0x1000), complaints=["reserved"])),
            ("CAPS flag 0x8000", Frame(Body(CAPS, rng, caps__flags=0x8001), complaints=["reserved"])),
            ("CAPS state 1", Frame(Body(CAPS, rng, caps__state=1))),
            ("CAPS state 2", Frame(Body(CAPS, rng, caps__state=2), complaints=["value"])),
            ("HOLD for too long", Frame(Body(HOLD, rng, hold__ms=10001), complaints=["value"])),
            ("HOLD without a number", Frame(Body(HOLD, rng, hold__number=0), complaints=["value"])),
            ("HOLD with reserved bits", Frame(Body(HOLD, rng, hold__resv=1), complaints=["reserved"])),
            ("ROAM step 5", Frame(Body(ROAM, rng, roam__step=5, roam__challenge=1), complaints=["value"])),
            ("ROAM without a number", Frame(Body(ROAM, rng, roam__number=0), complaints=["value"])),
            ("ROAM MOVED with a challenge", Frame(Body(ROAM, rng, roam__step=1, roam__challenge=1), complaints=["value"])),
            ("ROAM ECHO without one", Frame(Body(ROAM, rng, roam__step=3, roam__challenge=0), complaints=["value"])),
            ("CAPS answer", Frame(Body(CAPS_ANSWER, rng, caps__own_nonce=0xabc))),
            ("CAPS question that answers", Frame(Body(CAPS, rng, caps__own_nonce=1), complaints=["value"])),
        ]
        for code, names in ((0x82, ("rx1", "tx2", "rx2")), (0x83, ("rx2",))):
            for name in names:
                cases.append(("%s with %s" % (OPS[code].name, name),
                              Frame(Body(OPS[code], rng, **{"rtt__" + name: 1}), complaints=["value"])))
        self.frames_later(cases)

    def check_syndromes(self):
        rng, cases = self.rng, []
        for s in range(256):
            kind = "ack" if s < 0x20 else "rnr" if 0x20 <= s < 0x40 else "nak" if 0x60 <= s <= 0x63 else None
            for op in OPS.values():
                if "AETH" not in op.stack:
                    continue
                said = {"aeth__syndrome": s}
                if op.ack and kind in ("rnr", "nak"):
                    said.update(po=0xffffff, bth__becn=0)
                wrong = kind is None or kind != "ack" and op.code not in (0x11, 0x19)
                cases.append((op, Frame(Body(op, rng, **said), complaints=["syndrome"] if wrong else [])))

        def judge(rows):
            problems = []
            for (op, frame), row in zip(cases, rows):
                problems += ["%s %s: %s" % (op.name, row.get("veroce.aeth.syndrome"), x)
                             for x in self.differences(row, frame)
                             # A NAK in a SACK or with another PO is one more complaint; see below.
                             if not (op.sack and x.startswith("complaints"))]
            self.report("every syndrome in every packet", "; ".join(problems[:3]) or None)
        self.rows_later([frame.bytes for _, frame in cases], judge)
        self.frames_later([
            ("NAK with a PO", Frame(Body(ACK, rng, aeth__syndrome=0x61, bth__becn=0, po=1), complaints=["value"])),
            ("NAK with BECN", Frame(Body(ACK, rng, aeth__syndrome=0x60, bth__becn=1, po=0xffffff),
                                    complaints=["value"])),
            ("ACK without PO", Frame(Body(ACK, rng, po=0xffffff))),
            ("ACK with PO 0", Frame(Body(ACK, rng, po=0))),
            ("ACK with BECN", Frame(Body(ACK, rng, bth__becn=1))),
            ("ACK with AckReq", Frame(Body(ACK, rng, bth__ackreq=1), complaints=["value"])),
            ("ACK retransmitted", Frame(Body(ACK, rng, bth__retrans=1), complaints=["value"])),
            ("SACK with a NAK syndrome", Frame(Body(SACK, rng, aeth__syndrome=0x61, po=0xffffff, bth__becn=0),
                                               complaints=["syndrome"])),
            ("data with PO 0xffffff", Frame(Body(OPS[0x01], rng, po=0xffffff), complaints=["value"])),
            ("Last with PO 0", Frame(Body(OPS[0x08], rng, po=0), complaints=["value"])),
            ("Middle with PO 0", Frame(Body(OPS[0x07], rng, po=0))),
        ])

    def check_sack(self):
        rng, cases = self.rng, []
        for op in (OPS[0x18], OPS[0x1e]):
            for version in (4, 6):
                for t, share in ((False, False), (True, False), (True, True)):
                    for blocks in range(1, 9):
                        name = "%s IPv%d of %d blocks%s%s" % (op.name, version, blocks, " T" * t, " share" * share)
                        cases.append((name, Frame(Body(op, rng, t=t, share=share, blocks=blocks), version)))
            cases.append((op.name + " of 9 blocks", Frame(Body(op, rng, blocks=9), complaints=["length"])))
        for op in (OPS[0x11], OPS[0x19]):
            for version in (4, 6):
                cases.append(("%s IPv%d with a window share" % (op.name, version),
                              Frame(Body(op, rng, t=True, share=True), version)))

        def sack(name, length, start, bitmap, *complaints):
            # aPSN is 99
            cases.append(("SACK " + name, Frame(Body(SACK, rng, bth__psn=99, sack__valid_len=length,
                                                     sack__start_psn=start, sack__bitmap=bitmap),
                                                complaints=complaints)))
        everything = (1 << 128) - 1
        sack("from aPSN", 3, 99, 0b101)
        sack("128 valid", 128, 100, everything ^ 1)
        sack("bit 127 alone", 128, 100, 1 << 127)
        sack("one bit, further on", 1, 1000, 1)
        sack("a whole group", 128, 1000, everything)
        sack("128 valid, the highest of them missing", 128, 100, everything >> 1 ^ 1)
        sack("ValidLen 0", 0, 100, 0, "valid_len")
        sack("ValidLen 129", 129, 100, 1 << 127, "valid_len")
        sack("ValidLen 255", 255, 100, everything ^ 1, "valid_len")
        sack("highest bit clear", 3, 100, 0b010, "unusual")
        sack("bits above ValidLen", 2, 100, 0b1010, "unusual")
        sack("aPSN missing", 3, 99, 0b100, "unusual")
        sack("aPSN+1 received", 3, 100, 0b101, "unusual")
        sack("aPSN+1 received, from aPSN", 3, 99, 0b111, "unusual")
        sack("before aPSN", 3, 98, 0b100, "unusual")
        cases.append(("SACK across 2^24", Frame(Body(SACK, rng, bth__psn=0xfffffd, sack__valid_len=6,
                                                     sack__start_psn=0xfffffe, sack__bitmap=0b100110))))
        check(cases[-1][1].fields["veroce.sack.received"] == ["16777215-0, 3"], "ranges() across 2^24")
        self.frames_later(cases)

    def check_header_bits(self):
        rng, cases = self.rng, []
        for name, said, complaint in (("resv6", {"bth__resv6": 0x20}, "reserved"),
                                      ("resv5", {"bth__resv5": 1}, "reserved"),
                                      ("TVer", {"bth__tver": 6}, "tver")):
            for op in OPS.values():
                cases.append(("%s in %s" % (name, op.name), Frame(Body(op, rng, **said), complaints=[complaint])))
        for op in OPS.values():
            for name, field in (("MSNETH", "msn.resv"), ("POETH", "po.resv"), ("RQETH", "rqmsn.resv")):
                if name in op.stack:
                    said = {field.replace(".", "__"): 0x80}
                    cases.append(("reserved bits in %s of %s" % (name, op.name),
                                  Frame(Body(op, rng, **said), complaints=["reserved"])))
            if op.space == "-":
                body = Body(op, rng, bth__ts=1)
                cases.append(("T in " + op.name, Frame(body, complaints=["ts"])))
            if op.payload == "none" or op.payload == "any":
                body = Body(op, rng, payload=b"", bth__padcnt=2)
                cases.append(("PadCnt in empty " + op.name, Frame(body, complaints=["padcnt"])))
        body = Body(SEND_ONLY, rng, payload=b"abc")
        body.bytes, body.fields["veroce.pad"] = body.bytes[:-1] + b"\1", ["01"]
        cases.append(("pad not zero", Frame(body, complaints=["pad"])))
        for code in (0x06, 0x07, 0x08, 0x09, 0x0a, 0x0b):
            cases.append(("DMA length in " + OPS[code].name,
                          Frame(Body(OPS[code], rng, reth__len=3000), complaints=["unusual"])))
        self.frames_later(cases)

        unknown = [code for code in range(256) if code not in OPS]

        def judge(rows):
            wrong = [hex(code) for code, row in zip(unknown, rows) if self.complaints(row) != {"opcode"}
                     or int(row["veroce.bth.opcode"][0], 0) != code or row["veroce.icrc.status"] != ["1"]]
            self.report("%d unknown opcodes" % len(unknown), ", ".join(wrong) or None)
        self.rows_later([Frame(bytes([code]) + bytes(11 + rng.randint(0, 40))).bytes for code in unknown], judge)

    @staticmethod
    def fits(op, t, n):
        """Whether n bytes from the BTH to the pad can be such a packet with PadCnt 0."""
        if op is CNP:
            return n in (12, 28)
        if op.ack and t:
            return any(Bench.fits(op, False, n - extra) for extra in (20, 24))
        if op.sack:
            return n - 20 in range(20, 161, 20)
        rest = n - op.size - (8 if op.data and t else 0)
        if op.payload == "none":
            return rest == 0
        if op.payload == "full":
            return rest in PMTUS
        return rest % 4 == 0 and (4 if op.payload == "some" else 0) <= rest <= 8192

    def check_lengths(self):
        """
        Every opcode in every length that its headers end in, SACKs to 260, and around the PMTUs, of those without payload
        around two of them: "length" if and only if it does not fit. The ICRC is not looked at, which is a setting, and
        takes tshark longest.
        """
        cases = []
        for op in OPS.values():
            for t in (False, True):
                lengths = list(range(12, 261 if "SACKETH" in op.stack else op.size + 8 * t + 32))
                for pmtu in PMTUS if op.payload != "none" else PMTUS[:2]:
                    at = op.size + 8 * t + pmtu
                    lengths += (at - 1, at, at + 1, at + 4)
                head = bits("BTH", {**dict.fromkeys([field for field, _ in LAYOUTS["BTH"]], 0), "bth.opcode": op.code,
                                    "bth.ts": t})
                cases += [(op, t, n, Frame(head + bytes(n - 12)).bytes) for n in lengths]
        problems = {op.name: [] for op in OPS.values()}
        fields = ["veroce.expert.length", "veroce.expert.icrc", "veroce.icrc.status", "veroce.bth.opcode"]
        bad = Frame(Body(WRITE_ONLY, self.rng, payload=b"x" * 1001), flip=1).bytes
        *rows, last = self.rows([x for *_, x in cases] + [bad], fields, options=["-o", "veroce.icrc:FALSE"])
        for (op, t, n, _), row in zip(cases, rows):
            fits = self.fits(op, t, n)
            if ("veroce.expert.length" in row) == fits:
                problems[op.name].append("%d bytes%s: %s" % (n, " T" * t, "flagged" if fits else "not flagged"))
            if row.get("veroce.icrc.status") != ["2"] or "veroce.bth.opcode" not in row:
                problems[op.name].append("%d bytes%s: no opcode, or an ICRC" % (n, " T" * t))
        for name, texts in problems.items():
            self.report("lengths of " + name, ", ".join(texts[:5]) or None)
        self.report("ICRC not checked", None if last == {"veroce.icrc.status": ["2"], "veroce.bth.opcode": ["0x0a"]} else str(last))

    def truncated(self):
        """Real packets cut at every byte: the rest of them has another ICRC."""
        packets = []
        for op in OPS.values():
            for t in (False, True) if op.space != "-" else (False,):
                whole = Body(op, self.rng, payload=b"abcde" if op.payload != "none" else b"", t=t).bytes + b"icrc"
                for n in range(len(whole)):
                    head = ip4_header(8 + n) if (n + t) % 2 else ip6_header(8 + n)
                    packets.append(head + struct.pack(">HHHH", 50000, PORT, 8 + n, 0) + whole[:n])
        return packets

    def check_truncated(self):
        self.flagged("truncated packets", self.truncated())

    def flagged(self, name, packets):
        """Every one of the packets has a complaint."""
        def judge(rows):
            # Wireshark hands an empty datagram to nobody.
            empty = [len(p) == (28 if p[0] >> 4 == 4 else 48) for p in packets]
            wrong = [packets[n].hex() for n, row in enumerate(rows) if not empty[n]
                     and ("veroce" not in row or not self.complaints(row) & {"length", "icrc"})]
            self.report("%d %s" % (len(packets), name), "; ".join(wrong[:2]) or None)
        self.rows_later(packets, judge)

    def check_garbage(self):
        packets, codes = [], list(OPS)
        for n in range(121):
            for turn in range(8):
                data = self.rng.randbytes(n)
                if turn % 4 and n:
                    data = bytes([self.rng.choice(codes)]) + data[1:]
                head = ip4_header(8 + n) if turn % 2 else ip6_header(8 + n)
                packets.append(head + struct.pack(">HHHH", 50000, PORT, 8 + n, 0) + data)
        self.flagged("packets of garbage", packets)
        some = packets[::4]  # as what is read here takes longest
        judged = {number for number, _ in judge(self.pcap(some))}
        self.report("garbage is judged", None if judged == set(range(1, len(some) + 1)) else "%d of %d" % (len(judged), len(some)))

    def check_flipped_bits(self):
        """The ICRC covers every bit but those that may change on the way."""
        for version in (4, 6):
            good = Frame(Body(OPS[0x0b], self.rng, t=True, payload=b"payload", bth__ackreq=1), version,
                         **({"ident": 0x1234} if version == 4 else {})).bytes
            udp = 20 if version == 4 else 40
            if version == 4:
                free = [8 * 1 + i for i in range(8)] + [8 * 8 + i for i in range(8)] + list(range(80, 96))
                # Not those that make it another protocol or a fragment, or that move what follows.
                flips = free + list(range(32, 48)) + [49] + list(range(96, 160))
            else:
                free = list(range(4, 32)) + list(range(56, 64))
                flips = free + list(range(64, 320))
            free += range(8 * (udp + 6), 8 * (udp + 8))
            free += range(8 * (udp + 12), 8 * (udp + 13))  # FECN, BECN, resv6
            flips += list(range(8 * udp, 8 * udp + 16)) + list(range(8 * (udp + 6), 8 * len(good)))
            flips = sorted(set(flips))
            packets = []
            for bit in flips:
                p = bytearray(good)
                p[bit // 8] ^= 0x80 >> bit % 8
                packets.append(bytes(p))

            def judge(rows, flips=flips, free=free, version=version):
                wrong = [str(bit) for bit, row in zip(flips, rows)
                         if row.get("veroce.icrc.status") != ["1" if bit in free else "0"]
                         or ("veroce.expert.icrc" in row) == (bit in free)]
                self.report("%d flipped bits of IPv%d" % (len(flips), version), ", ".join(wrong) or None)
            self.rows_later(packets, judge)

    def check_icrc(self):
        rng = self.rng
        body = Body(WRITE_ONLY, rng, payload=b"x" * 1001)
        canonical = Frame(body).crc
        self.frames_later([
            ("IPv4 identification counts", Frame(body, ident=0xabcd)),
            ("canonical header is not the wire's", Frame(body, ident=0xabcd, crc=canonical)),
            ("bad ICRC", Frame(body, flip=1)),
            ("bad ICRC IPv6", Frame(body, 6, flip=1 << 31)),
            ("ICRC of all ones", Frame(body, crc=0xffffffff)),
            ("ICRC most significant byte first",
             Frame(body, crc=struct.unpack("<I", struct.pack(">I", canonical))[0])),
            ("ToS, TTL, UDP checksum", Frame(body, tos=0xff, ttl=1, udp_sum=0xbeef)),
            ("traffic class, flow label, hop limit", Frame(body, 6, tc=0xff, flow=0xfffff, hops=1, udp_sum=1)),
            ("FECN and BECN", Frame(Body(SEND_ONLY, rng, bth__fecn=1, bth__becn=1))),
            ("IPv4 options", Frame(body, options=b"\x94\x04\0\0\1\1\1\0")),
            ("no DF", Frame(body, frag=0, complaints=["unusual"])),
            ("source port", Frame(body, sport=1024, complaints=["unusual"])),
        ])

    def check_links(self):
        rng = self.rng
        mac = bytes(range(12))
        self.frames([("Ethernet, padded", Frame(Body(OPS[0x84], rng)))], linktype=ETHERNET,
                    wrap=lambda p: mac + b"\x08\0" + p + b"\x55" * 8)
        self.frames([("Ethernet, VLAN", Frame(Body(SEND_ONLY, rng), 6))], linktype=ETHERNET,
                    wrap=lambda p: mac + b"\x81\0\0\x05\x86\xdd" + p)
        self.frames([("IPv4 in IPv6", Frame(Body(SEND_ONLY, rng), 4, ident=7))],
                    wrap=lambda p: ip6_header(len(p), proto=4) + p)
        self.frames([("IPv6 in IPv4", Frame(Body(SEND_ONLY, rng), 6))],
                    wrap=lambda p: ip4_header(len(p), proto=41) + p)

    def check_trimmed(self):
        """veRoCE 8: no payload, DSCP 9, the rest of the headers as they were."""
        rng, cases = self.rng, []
        for op in OPS.values():
            if op.payload == "none":
                continue
            said = {"reth__len": 1001} if "RETH" in op.stack else {}
            for version in (4, 6):
                body = Body(op, rng, b"", bth__padcnt=3, **said)
                tos = {"tos" if version == 4 else "tc": 9 << 2 | 3}
                cases.append(("trimmed %s IPv%d" % (op.name, version),
                              Frame(body, version, complaints=["trimmed"], **tos)))
        cases.append(("DSCP 9 with its payload", Frame(Body(OPS[0x02], rng, b"abc"), tos=9 << 2)))
        cases.append(("ACK with DSCP 9", Frame(Body(ACK, rng), tos=9 << 2)))
        cases.append(("DSCP 8 without payload", Frame(Body(OPS[0x02], rng, b""), tos=8 << 2, complaints=["length"])))
        self.frames_later(cases)

    def check_port(self):
        rng = self.rng
        body = Body(SEND_ONLY, rng)
        fields = ["veroce", "veroce.bth.psn"]
        to, back, other = Frame(body).bytes, Frame(body, sport=PORT, dport=50000).bytes, Frame(body, dport=5000).bytes
        both = Frame(body, sport=PORT).bytes

        def seen(*options):
            return ["veroce" in row for row in self.rows([to, back, other, both], fields, options=options)]
        self.report("destination port only", None if seen() == [True, False, False, True] else str(seen()))
        moved = seen("-o", "veroce.port:5000")
        self.report("port of choice", None if moved == [False, False, True, False] else str(moved))
        as_other = seen("-d", "udp.port==5000,veroce")
        self.report("Decode As", None if as_other == [True, False, True, True] else str(as_other))
        roce = self.rows([Frame(body, dport=4791).bytes], fields)
        self.report("not RoCEv2's port", None if "veroce" not in roce[0] else str(roce))

    def check_quoted(self):
        quoted = Frame(Body(SEND_ONLY, self.rng, payload=b"x" * 100)).bytes[:28 + 30]
        icmp = b"\3\3" + struct.pack(">HI", 0, 0) + quoted
        packet = ip4_header(len(icmp), proto=1) + icmp
        row, = self.rows([packet], ["icmp.type", "veroce"])
        self.report("quoted in an ICMP error", None if row == {"icmp.type": ["3"]} else str(row))
        path = self.pcap([packet])
        self.report("no judgement of an ICMP error", str(judge(path)) if judge(path) else None)

    def check_cut(self):
        """Cut by the capture, not by the sender."""
        frame = Frame(Body(OPS[0x0b], self.rng, t=True, payload=b"x" * 101))
        sizes = range(29, len(frame.bytes))
        rows = self.rows([frame.bytes] * len(sizes), snaplen=sizes)
        wrong = ["%d bytes: %s" % (n, row) for n, row in zip(sizes, rows)
                 if self.complaints(row) != {"cut"} or "veroce.icrc.status" in row]
        self.report("captures cut short", "; ".join(wrong[:2]) or None)
        path = self.pcap([frame.bytes], snaplen=[70])
        got = judge(path)
        self.report("judgement of a capture cut short", None if got == [(1, "icrc: not verified")] else str(got))

    def check_fragments(self):
        whole = Frame(Body(SEND_ONLY, self.rng, payload=b"x" * 1024)).bytes[20:]
        packets = [ip4_header(512, ident=9, frag=0x2000) + whole[:512],
                   ip4_header(len(whole) - 512, ident=9, frag=64) + whole[512:]]
        rows = self.rows(packets, ["veroce.bth.opcode", "veroce.icrc.status", "veroce.payload_len"])
        want = {"veroce.bth.opcode": ["0x04"], "veroce.icrc.status": ["2"], "veroce.payload_len": ["1024"]}
        self.report("IP fragments", None if rows[1] == want else str(rows))

    def check_info(self):
        """The Info column."""
        rng = self.rng
        said = {"bth__dqpn": 0x12, "bth__psn": 100}
        wanted = [
            (Body(WRITE_ONLY, rng, b"abcd", msn=3, bth__ackreq=1, bth__retrans=1, reth__va=0x1000, t=True,
                  ts__path_id=2, ts__path_seq=77, **said),
             "WRITE Only dqpn=0x000012 PSN=100 [ART] path=2/77 MSN=3 VA=0x0000000000001000 len=4 4 bytes"),
            (Body(SACK, rng, aeth__msn=7, po=5, sack__start_psn=101, sack__valid_len=5, sack__bitmap=0b10100, **said),
             "SACK dqpn=0x000012 PSN=100 MSN=7 PO=5 SACK[101+5 got 103, 105; missing 101-102, 104]"),
            (Body(ACK, rng, aeth__msn=7, po=5, **said), "ACK dqpn=0x000012 PSN=100 MSN=7 PO=5"),
            (Body(ACK, rng, t=True, share=True, tse__path_id=3, tse__path_rcv=9, aeth__msn=7, po=5, **said),
             "ACK dqpn=0x000012 PSN=100 path=3/9 MSN=7 PO=5"),
            (Body(ACK, rng, t=True, share=True, tse__path_id=255, tse__share=781250, aeth__msn=7, po=5, **said),
             "ACK dqpn=0x000012 PSN=100 share=781250 MSN=7 PO=5"),
            (Body(ACK, rng, aeth__syndrome=0x60, aeth__msn=7, po=0xffffff, bth__becn=0, **said),
             "NAK dqpn=0x000012 PSN=100 MSN=7 (NAK: packet drop) PO=16777215"),
            (Body(OPS[0x19], rng, aeth__syndrome=0x61, aeth__msn=7, po=0xffffff, bth__becn=0, **said),
             "NAK_Rsp dqpn=0x000012 PSN=100 MSN=7 (NAK: invalid request) PO=16777215"),
            (Body(ACK, rng, aeth__syndrome=0x21, aeth__msn=7, po=0xffffff, bth__becn=0, **said),
             "RNR NAK dqpn=0x000012 PSN=100 MSN=7 (RNR NAK, 0.01 ms) PO=16777215"),
            (Body(OPS[0x84], rng, bth__ackreq=0, bth__retrans=0, **said),
             "Slow-Packet Signal dqpn=0x000012 PSN=100 slow PSN=100"),
            (Body(OPS[0x13], rng, msn=1, bth__ackreq=1, bth__retrans=0, atomiceth__va=0x2008, **said),
             "CmpSwap dqpn=0x000012 PSN=100 [A] MSN=1 VA=0x0000000000002008"),
            (Body(OPS[0x0e], rng, bytes(1024), msn=2, aeth__msn=9, po=1, bth__ackreq=0, bth__retrans=1, **said),
             "READ Rsp Middle dqpn=0x000012 PSN=100 [R] MSN=2 AETH.MSN=9 PO=1 1024 bytes"),
            (Body(CAPS, rng, caps__qpn=0x11, caps__flags=3, caps__pmtu=6, caps__nonce=0xabc, bth__ackreq=0,
                  bth__retrans=0, **said),
             "CAPS Request dqpn=0x000012 PSN=100 sqpn=0x000011 flags=MULTI_SACK|TS PMTU=8192 nonce=0x00000abc"),
            (Body(HOLD, rng, hold__ms=500, hold__number=7, hold__qpn=0x11, bth__ackreq=0, bth__retrans=0, **said),
             "HOLD dqpn=0x000012 PSN=100 for 500 ms number=7 sqpn=0x000011"),
            (Body(HOLD, rng, hold__ms=0, hold__number=8, hold__qpn=0x11, bth__ackreq=0, bth__retrans=0, **said),
             "HOLD dqpn=0x000012 PSN=100 resumes number=8 sqpn=0x000011"),
            (Body(ROAM, rng, roam__step=3, roam__number=7, roam__qpn=0x11, roam__challenge=5, bth__ackreq=0, bth__retrans=0, **said),
             "ROAM dqpn=0x000012 PSN=100 ECHO number=7 sqpn=0x000011"),
        ]
        path = self.pcap([Frame(body).bytes for body, _ in wanted])
        for line, (_, text) in zip(tshark(["-r", path]).splitlines(), wanted):
            self.report("Info of " + text.split(" dqpn")[0], None if line.endswith(" " + text) and " veRoCE " in line
                        else line)

    def check_rnr_timers(self):
        """veRoCE 5.1: the table of codes."""
        times = "655.36 .01 .02 .03 .04 .06 .08 .12 .16 .24 .32 .48 .64 .96 1.28 1.92 2.56 3.84 5.12 7.68 10.24 " \
                "15.36 20.48 30.72 40.96 61.44 81.92 122.88 163.84 245.76 327.68 491.52".split()
        bodies = [Body(ACK, self.rng, aeth__syndrome=0x20 + n, po=0xffffff, bth__becn=0) for n in range(32)]
        lines = tshark(["-r", self.pcap([Frame(body).bytes for body in bodies])]).splitlines()
        wrong = [line for line, ms in zip(lines, times)
                 if "(RNR NAK, %s ms)" % (ms if ms[0] != "." else "0" + ms) not in line]
        self.report("RNR timers", "; ".join(wrong[:2]) or None if len(lines) == 32 else "%d lines" % len(lines))

    def spoilt(self):
        """Packets of which the second, the third and, as a note, the fourth are wrong."""
        rng = self.rng
        good = Frame(Body(SEND_ONLY, rng)).bytes
        return [good, Frame(Body(SEND_ONLY, rng), flip=1).bytes, Frame(Body(ACK, rng, bth__tver=1)).bytes,
                Frame(Body(WRITE_ONLY, rng, b"abcd", reth__len=5)).bytes, good]

    def check_judge(self):
        """What is judged are two captures that were joined, of which the second begins at the seventh packet."""
        cut = self.truncated()[::16]  # what tshark says of them takes long to read here
        paths = [os.path.join(self.folder, name) for name in ("one.pcap", "two.pcap", "joined.pcap")]
        for path, packets in zip(paths, (self.spoilt() + [Frame(Body(CNP, self.rng)).bytes], self.spoilt() + cut)):
            write_pcap(path, packets)
        wrong, opcodes = judge_all(joined(paths[:2], paths[2]))
        got = [(n, text.split(":")[0]) for n, text in wrong if n <= 11]
        self.report("judge_all", None if got == [(2, "icrc"), (3, "tver"), (8, "icrc"), (9, "tver")]
                    and {0x04, 0x0a, 0x11, 0x81} <= opcodes <= set(OPS) else "%s %s" % (wrong, opcodes))
        judged = {n for n, _ in wrong if n > 11}
        self.report("truncated packets are judged", None if judged == set(range(12, 12 + len(cut)))
                    else "%d of %d" % (len(judged), len(cut)))
        wrong, opcodes = judge_all(self.pcap(self.spoilt()[::4]))
        self.report("judge_all of good packets", None if not wrong and opcodes == {0x04} else "%s %s" % (wrong, opcodes))

    def check_other_judgements(self):
        path = self.pcap(self.spoilt())
        got = [(n, text.split(":")[0]) for n, text in judge(path, notes=True)]
        self.report("judge with notes", None if got == [(2, "icrc"), (3, "tver"), (4, "unusual")] else str(got))
        rows = dissect(path, ["frame.number", "veroce.bth.opcode"], "veroce.bth.opcode == 0x0a")
        self.report("dissect with a filter", None if rows == [{"frame.number": ["4"], "veroce.bth.opcode": ["0x0a"]}]
                    else str(rows))
        moved = self.pcap([Frame(Body(SEND_ONLY, self.rng), dport=5000, flip=1).bytes])
        self.report("judge at another port", None if not judge(moved) and len(judge(moved, port=5000)) == 1
                    else str(judge(moved)))

    def check_secrets(self):
        """Packets to an end are sealed with the nonce that it sent, in a request or in a response."""
        rng, there, here = self.rng, {"src": "10.0.0.1", "dst": "10.0.0.2"}, {"src": "10.0.0.2", "dst": "10.0.0.1"}

        def data(qpn, secret, ip, op=SEND_ONLY):
            frame = Frame(Body(op, rng, bth__dqpn=qpn), flip=secret, status=1, **ip)
            frame.complaints = set()
            frame.fields["veroce.icrc.secret"] = [secret]
            return frame

        def bad(qpn, secret, ip, op=SEND_ONLY):
            return Frame(Body(op, rng, bth__dqpn=qpn), flip=secret, **ip)

        asks = Frame(Body(CAPS, rng, bth__dqpn=0x22, caps__qpn=0x11, caps__nonce=0x12345678), **there)
        answers = Frame(Body(CAPS_ANSWER, rng, bth__dqpn=0x11, caps__qpn=0x22, caps__nonce=0x12345678,
                             caps__own_nonce=0xfedcba98), **here)
        self.frames_later([
            ("sealed before it is told", bad(0x11, 0x12345678, here)),
            ("a question", asks),
            ("sealed as a question told", data(0x11, 0x12345678, here)),
            ("an acknowledgement too", data(0x11, 0x12345678, here, ACK)),
            ("not to another QP", bad(0x12, 0x12345678, here)),
            ("not to another host", bad(0x11, 0x12345678, there)),
            ("the other way not before the answer", bad(0x22, 0xfedcba98, there)),
            ("an answer", answers),
            ("sealed as an answer told", data(0x22, 0xfedcba98, there)),
            ("with the wrong one", bad(0x22, 0x12345678, there)),
            ("not sealed is good too", Frame(Body(SEND_ONLY, rng, bth__dqpn=0x22), **there)),
            ("CAPS never", Frame(Body(CAPS_ANSWER, rng, bth__dqpn=0x11), flip=0x12345678, **here)),
        ])
        self.frames_later([("a secret that was set", data(0x33, self.SECRETS[0], there)),
                           ("another that was set", data(0x33, self.SECRETS[1], there)),
                           ("one that was not", bad(0x33, 2, there))])

    def check_two_passes(self):
        packets = [Frame(Body(op, self.rng)).bytes for op in OPS.values()]
        once, twice = self.rows(packets), self.rows(packets, options=["-2"])
        self.report("two passes", None if once == twice else "not the same")

    LUA_ERRORS = {"while loading": ("local H = {}", "local H = nothing.at.all"),
                  "out of bounds": ("f.aeth_msn, range:range(1, 3)", "f.aeth_msn, range:range(1, 9)"),
                  "nil": ("p.syndrome, p.kind = s, kind", "p.syndrome = s + nothing")}

    def check_lua_errors(self):
        """That an error in the script would not go unnoticed here."""
        self.lua_errors(["out of bounds"], ["dissect"])

    def check_other_lua_errors(self):
        self.lua_errors(["out of bounds"], ["judge"])
        self.lua_errors(["while loading", "nil"], ["dissect", "judge"])

    def lua_errors(self, names, means):
        with open(LUA, encoding="utf-8") as f:
            text = f.read()
        packet = Frame(Body(ACK, self.rng)).bytes
        for name in names:
            old, new = self.LUA_ERRORS[name]
            check(text.count(old) == 1, "no %r to replace" % old)
            script = os.path.join(self.folder, "wrong.lua")
            with open(script, "w", encoding="utf-8") as f:
                f.write(text.replace(old, new))
            path = self.pcap([packet])
            caught = []
            for mean in means:
                try:
                    if mean == "dissect":
                        dissect(path, ["frame.number"], script=script)
                    elif judge(path, script=script):
                        caught.append(mean)
                except Failure:
                    caught.append(mean)
            self.report("Lua Error %s is noticed" % name, None if caught == means else "by %s" % caught)


# Preferences, links, passes, what the capture cut: a start of tshark or two for a few packets each.
REST = {"check_field_names", "check_port", "check_links", "check_quoted", "check_cut", "check_fragments", "check_info", "check_rnr_timers",
        "check_two_passes", "check_garbage", "check_other_judgements", "check_other_lua_errors"}


def chosen(name, words):
    if words in (["--most"], ["--rest"]):
        return (name in REST) == (words == ["--rest"])
    return not words or any(word in name for word in words)


def main():
    words = sys.argv[1:]
    try:
        with tempfile.TemporaryDirectory(prefix="dissector.") as folder:
            bench = Bench(folder)
            for name in [x for x in dir(bench) if x.startswith("check_")]:
                if not chosen(name, words):
                    continue
                try:
                    getattr(bench, name)()
                except Failure as e:
                    bench.report(name, str(e))
            bench.rows_now()
    except Missing as e:
        print("skipped: %s" % e)
        return SKIP
    print("%d checks, %d failed" % (bench.done, bench.failed))
    return 1 if bench.failed or not bench.done else 0


if __name__ == "__main__":
    sys.exit(main())
