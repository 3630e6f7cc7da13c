#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""
A program of the peer's host that is not the peer, and knows addresses and QPNs, throws packets at both ends of a
connection: every byte stays right, and nothing fails. sim/veroce_blind_injection_test throws a million of them.
"""
import os
import random
import shutil
import socket
import struct
import sys
import time

from data import TRANSFER
from pair import ROOT, Failure, Pair, check, folder, main

sys.path.insert(0, os.path.join(ROOT, "tests", "dissector"))
from dissector_check import OPS, Body, Frame  # noqa: E402

VEROCE, CAPS_ANSWER = 4794, 0xf1
FORGERIES = 500  # at each end
KINDS = [0x0c] * 6 + [0x04] * 3 + [0x0a, 0x11, 0x14, 0x19, 0x81, 0x10, 0xf0, 0xf1]  # READs and SENDs above all


def answers(path):
    """The CAPS answers of a capture that is being written: (source, destination, source QPN, destination QPN)."""
    with open(path, "rb") as f:
        data = f.read()
    at = 24
    while at + 16 <= len(data):
        got, = struct.unpack_from("<I", data, at + 8)
        p = data[at + 16:at + 16 + got]
        at += 16 + got
        if len(p) < got or p[0] >> 4 != 4:
            continue
        bth = p[28:]
        if struct.unpack_from(">H", p, 22)[0] == VEROCE and bth[0] == CAPS_ANSWER:
            yield (socket.inet_ntoa(p[12:16]), socket.inet_ntoa(p[16:20]),
                   int.from_bytes(bth[12 + 17:12 + 20], "big"), int.from_bytes(bth[5:8], "big"))


def wait_answers(path, seconds=20):
    """One in each direction."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if os.path.exists(path):
            found = {a[3]: a for a in answers(path)}
            if len(found) == 2:
                return list(found.values())
        time.sleep(0.02)
    raise Failure("no CAPS answers in " + path)


def forge(rng, s, src, dst, qpn, source_qpn):
    """A packet with a good ICRC for its PSN, whatever that is; sometimes one that guesses a secret."""
    op = OPS[rng.choice(KINDS)]
    said = {"bth__dqpn": qpn, "bth__pkey": 0xffff, "bth__migreq": 1, "msn": rng.randrange(64),
            "rqmsn": rng.randrange(64), "reth__len": 8}
    if "CAPSETH" in op.stack:
        said = {"bth__dqpn": qpn, "bth__pkey": 0xffff, "caps__qpn": source_qpn}
    body = Body(op, rng, payload=bytes([0xee] * 8) if op.payload == "any" else None, **said)
    flip = rng.getrandbits(32) if rng.random() < 0.2 else 0
    return Frame(body, sport=s.getsockname()[1], src=src, dst=dst, flip=flip).bytes[28:]


def blind(place):
    where = folder()
    pair = Pair(place, TRANSFER, ["-n", 250, "-s", 9, "-b", 30000], server_env={"VERBENA_PCAP": where + "/x.pcap"}).go()
    ends = wait_answers(where + "/x.pcap")
    rng = random.Random(1)
    sockets = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in ends]
    for s, (src, *_) in zip(sockets, ends):
        s.setsockopt(socket.IPPROTO_IP, 10, 3)  # IP_MTU_DISCOVER: DF, as the ICRC has it
        s.bind((src, 0))
    packets = [(s, dst, forge(rng, s, src, dst, qpn, source_qpn)) for _ in range(FORGERIES)
               for s, (src, dst, source_qpn, qpn) in zip(sockets, ends)]
    sent = 0
    for s, dst, packet in packets:
        s.sendto(packet, (dst, VEROCE))
        sent += pair.client.running()
        if sent % 40 == 0:
            time.sleep(0.005)
    check(sent > FORGERIES / 4, "it was over after %d packets" % sent)
    for out in pair.finish(60):
        check("every one right" in out, "no result\n" + out)
    shutil.rmtree(where)


if __name__ == "__main__":
    main({"blind": blind})
