#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""
RoCEv1: Debian's programs over Ethernet frames, between two network namespaces and over loopback. tshark dissects what they send,
and the lines below compute its ICRC.
"""
import os
import re
import shutil
import struct
import subprocess
import zlib

from capture import joined, tshark
from data import TRANSFER, transfer
from pair import NOBODY, Pair, Process, Skip, check, folder, main, perftest, pingpong
from rdmacm import ended_well, talk

ENV = {"VERBENA_PROTOCOL": "rocev1"}
LINKTYPE_ETHERNET = 1


def over_rocev1(case):
    def run(place):
        for env in place.env:
            env.update(ENV)
        return case(place)
    return run


def types(place):
    """What sysfs and the verbs say of the GIDs."""
    status, out = place.run(0, ["cat", "/sys/class/infiniband/verbena0/ports/1/gid_attrs/types/0"])
    check(status == 0 and out.strip() == "IB/RoCE v1", "the type in sysfs: %s %s" % (status, out))
    status, out = place.run(0, ["ibv_devinfo", "-v"])
    check(status == 0 and "RoCE v1" in out and "RoCE v2" not in out, "ibv_devinfo: %s\n%s" % (status, out))


def pingpongs(place):
    pingpong(place, "ibv_rc_pingpong", ["-c"], iters=30)
    pingpong(place, "ibv_rc_pingpong", ["-c", "-e"], iters=10, size=100000)
    pingpong(place, "ibv_uc_pingpong", ["-c"], iters=30)
    pingpong(place, "ibv_ud_pingpong", ["-c"], iters=30, size=1000)
    pingpong(place, "ibv_srq_pingpong", ["-c", "-q", 4], iters=10)


def perftests(place):
    perftest(place, "ib_write_bw", ["-s", 65536], iters=50)
    perftest(place, "ib_read_bw", ["-s", 65536], iters=50)
    perftest(place, "ib_send_bw", ["-c", "UC", "-s", 4096], iters=50)
    perftest(place, "ib_send_lat", ["-c", "UD", "-s", 500], iters=20)
    perftest(place, "ib_atomic_bw", iters=50)
    perftest(place, "ib_send_bw", ["-c", "XRC", "-s", 4096], iters=50)


def every_byte(place):
    """All operations at random, on a clean network and on a bad one."""
    transfer(place, ["-n", 40, "-s", 11])
    transfer(place, ["-n", 30, "-s", 13, "-c", "UD", "-b", 1000])
    transfer(place, ["-n", 20, "-s", 14, "-b", 30000],
             env={"VERBENA_IMPAIR": "drop=2%,reorder=2%,dup=1%,corrupt=1%,seed=7"})


def rping(place):
    at = place.addresses[0]
    outs = talk(place, ["rping", "-s", "-a", at, "-C", "3", "-v"], ["rping", "-c", "-a", at, "-C", "3", "-v"])
    for out in outs:
        check(out.count("ping data") == 3, "not three pings:\n%s" % out)


def frames(path):
    with open(path, "rb") as f:
        data = f.read()
    check(struct.unpack_from("<I", data, 20)[0] == LINKTYPE_ETHERNET, "not LINKTYPE_ETHERNET")
    at = 24
    while at < len(data):
        got, = struct.unpack_from("<I", data, at + 8)
        yield data[at + 16:at + 16 + got]
        at += 16 + got


def icrc(frame):
    """Annex A16: that of a packet whose LRH counts as ones."""
    p = bytearray(frame[14:-4])
    p[0] |= 0x0f  # TClass, flow label
    p[1:4] = b"\xff\xff\xff"
    p[7] = 0xff  # hop limit
    p[40 + 4] = 0xff  # FECN, BECN
    return struct.pack("<I", zlib.crc32(b"\xff" * 8 + bytes(p)))


def macs_of(place):
    found = []
    for space, device in zip(place.spaces, place.links[0]):
        out = subprocess.run(["ip", "-n", space, "link", "show", "dev", device], capture_output=True, text=True).stdout
        found.append(bytes.fromhex(re.search(r"link/ether (\S+)", out).group(1).replace(":", "")))
    return found


def capture(place):
    """Of both ends, for each type of queue pair."""
    macs = macs_of(place) if place.links else [bytes(6)] * 2
    paths, counts = [], []
    for transport, options in (("RC", []), ("UD", ["-b", 1000])):
        where = folder()
        pair = Pair(place, TRANSFER, ["-n", 30, "-s", 3, "-c", transport] + options,
                    env={"VERBENA_PCAP": where + "/%p.pcap"}).go()
        ends = pair.server.pid, pair.client.pid
        pair.finish(60)
        for end, pid in enumerate(ends):
            path = "%s/%d.pcap" % (where, pid)
            count, unknown = 0, True
            for frame in frames(path):
                check(frame[12:14] == b"\x89\x15" and frame[14 + 6] == 0x1b, "no RoCEv1: %s" % frame[:60].hex())
                # What waits for the neighbour's MAC is captured without (src/io/raw/raw.h): the first ones alone.
                unknown = unknown and frame[:12] == bytes(12)
                check(unknown or {frame[:6], frame[6:12]} == set(macs), "MACs %s" % frame[:12].hex())
                check(struct.unpack_from("!H", frame, 14 + 4)[0] == len(frame) - 54, "PayLen of %s" % frame[:60].hex())
                check(icrc(frame) == frame[-4:], "ICRC %s of %s" % (frame[-4:].hex(), frame[:70].hex()))
                count += 1
            check(count > 30, "only %d frames" % count)
            check(not unknown or not place.links, "no frame has MACs")
            paths.append(path)
            counts.append(count)
    lines = tshark(joined(paths, paths[0] + ".all"), "-T", "fields", "-E", "separator=|", "-e", "frame.protocols",
                   "-e", "infiniband.bth.opcode", "-e", "infiniband.invariant.crc", "-e", "_ws.malformed",
                   "-e", "_ws.expert.message").splitlines()
    check(len(lines) == sum(counts), "tshark sees %d frames, there are %s" % (len(lines), counts))
    for n, line in enumerate(lines):
        protocols, code, crc, malformed, expert = line.split("|", 4)
        check(protocols.startswith("eth:ethertype:infiniband") and code and crc and not malformed and not expert,
              "frame %d of captures with %s: %s" % (n + 1, counts, line))


def processes(place):
    """Those of one host hear all frames and take their own; the connection manager's go to the right one."""
    at = place.addresses[0]
    listeners = [place.start(0, ["rping", "-s", "-P", "-a", at, "-p", port]) for port in (7301, 7302)]
    pairs = [Pair(place, TRANSFER, ["-n", 20, "-s", seed]).go() for seed in (21, 22)]
    for pair in pairs:
        pair.finish(60)
    for port in (7301, 7302):
        client = ["rping", "-c", "-a", at, "-p", port, "-C", "2", "-v"]
        for attempt in range(20):
            status, out = place.run(1, client)
            if ended_well(client, status, out):
                break
        check(ended_well(client, status, out) and out.count("ping data") == 2, "rping to port %d: %s\n%s" % (port, status, out))
    for p in listeners:
        p.kill()


def refused(place):
    """Without the capability the program is told which one is missing."""
    if os.geteuid() or not shutil.which("setpriv"):
        raise Skip("needs root and setpriv")
    p = Process(["ip", "netns", "exec", place.spaces[0], "setpriv", "--bounding-set", "-net_raw", "--inh-caps", "-net_raw",
                 place.verbena, "run", "ibv_devinfo"], ENV)
    p.wait(60)
    check("CAP_NET_RAW" in p.output(), "no word of the capability:\n" + p.output())
    p.kill()


def user_namespace(place):
    """A user without any privilege, in a user and network namespace of his own."""
    script = ("ip link set lo up && (%s run ibv_rc_pingpong -g 0 -n 20 -p 7311 & "
              "while ! grep -q ':1C8F .* 0A ' /proc/net/tcp /proc/net/tcp6; do sleep 0.02; done; "
              "%s run ibv_rc_pingpong -g 0 -n 20 -p 7311 127.0.0.1; wait)" % (place.verbena, place.verbena))
    if place.user != NOBODY:
        raise Skip("needs the place nobody4")
    p = Process(["setpriv", "--reuid=%d" % NOBODY, "--regid=%d" % NOBODY, "--clear-groups", "unshare", "-Urn", "sh", "-c",
                 script], ENV)
    status = p.wait(60)
    if "unshare failed" in p.output():
        raise Skip("no user namespaces here")
    check(status == 0 and p.output().count("20 iters in") == 2, "status %s\n%s" % (status, p.output()))
    p.kill()


if __name__ == "__main__":
    main({name: over_rocev1(case) for name, case in (
        ("types", types), ("pingpongs", pingpongs), ("perftests", perftests), ("every_byte", every_byte), ("rping", rping),
        ("capture", capture), ("processes", processes), ("refused", refused), ("user_namespace", user_namespace))})
