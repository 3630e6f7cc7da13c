#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""
iWARP: Debian's programs find each other through rdma_cm over MPA, and move data over TCP.
"""
import glob
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time

import programs
from capture import joined
from known import KNOWN
from pair import BUILD, Process, Skip, TIME_S, check, folder, main
from rdmacm import talk
from rdmacm_told import told

ENV = {"VERBENA_PROTOCOL": "iwarp"}


def devinfo(place):
    status, out = place.run(0, ["ibv_devinfo"], env=ENV)
    check(status == 0 and "verbena_iw0" in out and "iWARP (1)" in out, "ibv_devinfo: %s\n%s" % (status, out))


def rping(place):
    at = place.addresses[0]
    outs = talk(place, ["rping", "-s", "-a", at, "-C", "10", "-v", "-V"],
                ["rping", "-c", "-a", at, "-C", "10", "-v", "-V"], ENV)
    for out in outs:
        check(out.count("ping data") == 10, "not ten pings:\n%s" % out)


def ucmatose(place):
    at = place.addresses[0]
    options = ["-c", "20", "-C", "50", "-S", "4096"]
    talk(place, ["ucmatose", "-b", at] + options, ["ucmatose", "-s", at] + options, ENV)


def rstream(place):
    """librdmacm's sockets, which need inline data and a READ depth of 1 of an iWARP device."""
    at = place.addresses[0]
    for options in (["-S", "4096", "-C", "50"], ["-S", "65536", "-C", "20"]):
        outs = talk(place, ["rstream", "-b", at] + options, ["rstream", "-s", at] + options, ENV)
        check(any("bytes" in out for out in outs), "rstream:\n%s" % "\n".join(outs))


def perftest(place):
    at = place.addresses[0]
    # Of ib_send_lat see markers(); READs one by one are rping's.
    for words in (["ib_write_bw", "-s", "1048576", "-n", "20", "-b", "-q", "4"], ["ib_read_bw", "-s", "65536", "-n", "100"],
                  ["ib_send_bw", "-s", "65536", "-n", "100"], ["ib_send_bw", "-s", "4096", "-n", "100", "--use-srq"],
                  ["ib_write_lat", "-n", "20"]):
        words = words[:1] + ["-R", "-F"] + words[1:]
        talk(place, words, words + [at], ENV)


def perftest_each(place):
    at = place.addresses[0]
    for words in (["ib_write_bw", "-s", "65536", "-n", "100"], ["ib_write_bw", "-s", "1048576", "-n", "20", "-b"],
                  ["ib_write_bw", "-s", "65536", "-n", "100", "-q", "4"], ["ib_send_lat", "-n", "20"], ["ib_read_lat", "-n", "20"]):
        words = words[:1] + ["-R", "-F"] + words[1:]
        talk(place, words, words + [at], ENV)


def unconnected(place):
    """A program that knows no rdma_cm cannot have a connection, and is told so at once."""
    s = place.start(0, ["ibv_rc_pingpong", "-g", "0", "-p", "18600"], ENV)
    s.wait_listen(18600)
    status, out = place.run(1, ["ibv_rc_pingpong", "-g", "0", "-p", "18600", place.meet], env=ENV)
    check(s.wait(TIME_S) == 1 and status == 1, "they end with %s and %s" % (s.wait(0), status))
    # The server is the first to try.
    check("Failed to modify QP to RTR" in s.output(), "the server is told:\n" + s.output())
    s.kill()


def no_crc(place):
    at = place.addresses[0]
    words = ["ib_write_bw", "-R", "-F", "-s", "65536", "-n", "100"]
    talk(place, words, words + [at], {**ENV, "VERBENA_IWARP_CRC": "off"})


def atomics(place):
    """RFC 7306, where both ends have it: perftest's atomics, which tshark knows; a device without it has none."""
    for setting, cap in (("off", "ATOMIC_NONE"), ("on", "ATOMIC_HCA")):
        status, out = place.run(0, ["ibv_devinfo", "-v"], env={**ENV, "VERBENA_IWARP_RFC7306": setting})
        check(status == 0 and cap in out, "%s: %s\n%s" % (setting, status, out))
    with Captured(place) as c:
        for words in (["ib_atomic_bw"], ["ib_atomic_bw", "-A", "CMP_AND_SWAP"]):
            words = words[:1] + ["-R", "-F", "-n", "20"] + words[1:]
            talk(place, words, words + [place.addresses[0]], {**ENV, "VERBENA_IWARP_RFC7306": "on"})
    if not shutil.which("tshark"):
        return
    for path in c.ends():
        text, *_ = dissect(path)
        asked, answered = (len(re.findall(r"OpCode: Atomic %s" % word, text)) for word in ("Request", "Response"))
        check(asked == answered >= 40, "%s: %d atomics, %d answers\n%s" % (path, asked, answered, text[:3000]))


class Captured:
    """
    While it lasts both ends write captures. tshark takes longer to start than to read, so there is one for all servers
    and one for all clients; together it would take what both ends of a connection see for repeats.
    """

    def __init__(self, place):
        self.place, self.where = place, folder()

    def __enter__(self):
        for end, env in enumerate(self.place.env):
            env["VERBENA_PCAP"] = "%s/%d.%%p.pcap" % (self.where, end)
        return self

    def __exit__(self, *_):
        for env in self.place.env:
            del env["VERBENA_PCAP"]

    def files(self, end):
        return [p for p in sorted(glob.glob("%s/%d.*" % (self.where, end)), key=os.path.getmtime) if os.path.getsize(p) > 24]

    def ends(self):
        return [joined(self.files(end), "%s/all.%d" % (self.where, end)) for end in (0, 1)]


def dissect(path):
    """tshark finds each FPDU whole, with a good CRC, in a TCP connection without a gap. What it says, and of how many connections it saw the beginning and
    of how many halves the end."""
    r = subprocess.run(["tshark", "-n", "-r", path, "--disable-protocol", "rpcordma", "-o", "tcp.check_checksum:TRUE",
                        "-o", "tcp.try_heuristic_first:TRUE", "-O", "tcp,iwarp_mpa,iwarp_ddp_rdmap"], capture_output=True, text=True,
                       timeout=300)
    check(r.returncode == 0, "tshark: " + r.stderr)
    fpdus, good = r.stdout.count("ULPDU length"), r.stdout.count("Good CRC32")
    check(fpdus and good == fpdus, "%s: of %d FPDUs %d have good CRCs, %d bad ones"
          % (path, fpdus, good, r.stdout.count("Bad CRC32")))
    bad = [line for line in r.stdout.splitlines()
           if re.search("Malformed|Checksum Status: Bad|not captured|out-of-order|retransmission", line, re.I)]
    check(not bad, "%s: tshark says: %s" % (path, bad[:3]))
    return r.stdout, r.stdout.count("Flags: 0x002 (SYN)"), r.stdout.count("(FIN, ACK)")


def capture(place):
    if not shutil.which("tshark"):
        raise Skip("needs tshark")
    at = place.addresses[0]
    write = ["ib_write_bw", "-R", "-F", "-s", "200000", "-n", "10"]
    with Captured(place) as c:
        for server, client in ((["rping", "-s", "-a", at, "-C", "3"], ["rping", "-c", "-a", at, "-C", "3"]),
                               (write, write + [at])):
            talk(place, server, client, ENV)
    for end, path in enumerate(c.ends()):
        check(len(c.files(end)) >= 2, "captures: %s" % c.files(end))
        _, syns, fins = dissect(path)
        check(syns >= 2 and fins == 2 * syns, "%s: %d connections begin, %d ends" % (path, syns, fins))


def markers(place):
    """With markers both ways: what arrives is whole, and tshark finds them where they belong."""
    at = place.addresses[0]
    env = {**ENV, "VERBENA_IWARP_MARKERS": "on"}
    talk(place, ["rping", "-s", "-a", at, "-C", "3", "-V", "-S", "60000"], ["rping", "-c", "-a", at, "-C", "3", "-V", "-S", "60000"], env)
    # tshark 4.0 follows markers only as long as a piece is one FPDU, which an end that is late to read may end.
    words = ["ib_write_bw", "-R", "-F", "-s", "200000", "-n", "10"]
    talk(place, words, words + [at], env)
    with Captured(place) as c:
        words = ["ib_send_lat", "-R", "-F", "-s", "1000", "-n", "20"]
        talk(place, words, words + [at], env)
    if not shutil.which("tshark"):
        return
    pointers = []
    for path in c.ends():
        dissect(path)
        r = subprocess.run(["tshark", "-n", "-r", path, "--disable-protocol", "rpcordma", "-o", "tcp.try_heuristic_first:TRUE",
                            "-T", "fields", "-e", "iwarp_mpa.marker_flag", "-e", "iwarp_mpa.marker_fpduptr"], capture_output=True, text=True, timeout=300)
        fields = [line.split("\t") for line in r.stdout.splitlines()]
        asked = sum(f[0] in ("1", "True") for f in fields)
        pointers += [int(n, 0) for f in fields for n in f[1].split(",") if n]
        check(asked >= 2, "%s: %d of two ends ask for markers" % (path, asked))
    check(len(set(pointers)) > 10 and not any(n & 3 for n in pointers), "markers %s" % pointers)


def errors(place):
    """What a program is told of a request that its peer does not allow, at both ends, and the Terminate that said so."""
    flushed, over = "Work Request Flushed Error", "RDMA_CM_EVENT_DISCONNECTED"
    amiss, port, servers = os.path.join(BUILD, "tests/programs/amiss"), 9010, os.path.join(folder(), "%p.pcap")
    captures, terminates = [], []
    # what; the completion at the client; event and first receive at the server; layer, type and code
    for what, sent, event, received, said in (
            ("key", "success", "local access violation work queue error", flushed, (1, 1, 0)),
            ("bounds", "success", "local access violation work queue error", flushed, (1, 1, 1)),
            ("read", "remote access error", "local access violation work queue error", flushed, (0, 1, 0)),
            ("send", "success", "local work queue catastrophic error", None, (1, 2, 2)),
            ("long", "success", "local work queue catastrophic error", "local length error", (1, 2, 5))):
        s = place.start(0, [amiss, place.addresses[0], port], {**ENV, "VERBENA_PCAP": servers})
        s.wait_text("listening")
        status, out = place.run(1, [amiss, what, place.addresses[0], port], TIME_S, ENV)
        check(status == 0 and s.wait(TIME_S) == 0, "%s: status %s\n%s\nserver:\n%s" % (what, status, out, s.output()))
        wanted = [over, "send 1: " + sent, "receive 7: " + flushed, "send 2: " + flushed]
        check([line.lower() for line in out.splitlines()] == [w.lower() for w in wanted], "%s: the client is told:\n%s" % (what, out))
        wanted = ["listening", event, over] + (["receive 1: " + received, "receive 2: " + flushed] if received else []) + ["0 bytes changed"]
        check([line.lower() for line in s.output().splitlines()] == [w.lower() for w in wanted], "%s: the server is told:\n%s" % (what, s.output()))
        captures.append(servers.replace("%p", str(s.pid)))
        terminates.append(said)
        s.kill()
        port += 1
    if not shutil.which("tshark"):
        return
    # tshark finds one Terminate in each connection, of that layer, type and code.
    text, syns, _ = dissect(joined(captures, servers.replace("%p", "all")))
    found = re.findall(r"Layer: .*\(0x(\w+)\)\n.*Error Type.*\(0x(\w+)\)\n.*Error Code.*\(0x(\w+)\)", text)
    check(syns == len(terminates), "%d connections" % syns)
    check([tuple(int(n, 16) for n in f) for f in found] == terminates, "Terminates %s:\n%s" % (found, text[-3000:]))


def departs(place):
    """The bytes of complete WRITEs leave before their process does, though the server reads nothing meanwhile."""
    depart = os.path.join(BUILD, "tests/programs/depart")
    # Without CRCs most of what waited is read right into the region.
    for crc, port in (("on", "9003"), ("off", "9004")):
        env = {**ENV, "VERBENA_IWARP_CRC": crc}
        s = place.start(0, [depart, place.addresses[0], port], env)
        s.wait_text("listening")
        c = place.start(1, [depart, "-c", place.addresses[0], port], env)
        c.wait_text("complete", TIME_S)
        s.signal(signal.SIGCONT)
        check(c.wait(TIME_S, s) == 0 and s.wait(TIME_S) == 0, "they do not end well:\n%s\n%s" % (c.output(), s.output()))
        complete, whole = (int(re.search(r"(\d+) (?:complete|whole)", p.output())[1]) for p in (c, s))
        # The one after the last may have got there.
        check(whole >= complete > 1, "%d complete, %d whole" % (complete, whole))


OTHERS = "rdma_client cmtime rstream_bare riostream rcopy rspreload write_R_T qperf fio_write fio_read librpma".split()


def run_known(place, names):
    """Those of known.py's programs."""
    for env in place.env:
        env.update(ENV)
    ran = 0
    for known in KNOWN:
        if known.name not in names:
            continue
        try:
            programs.need(known)
        except Skip:
            continue
        where = folder()
        programs.prepare(known, place, where)
        theirs, out = programs.talk(known, place, where)
        check(re.search(known.want, out) and re.search(known.server_want, theirs), "%s:\n%s\nserver:\n%s" % (known.client, out, theirs))
        if known.proof:
            check(any(os.path.getsize(f) > 1000 for f in glob.glob(where + "/*.pcap")), "%s ran, but not over Verbena" % known.client)
        ran += 1
    if not ran:
        raise Skip("needs one of: %s" % " ".join(names))


def others(place):
    """More programs that know rdma_cm and nothing of iWARP."""
    run_known(place, OTHERS)


def libfabric(place):
    run_known(place, ["fi_msg"])


def stat(place):
    """`verbena stat` shows the connection of a live pair, what went over it, and no process that has ended."""
    at = place.addresses[0]
    ends = [place.start(0, ["rping", "-s", "-a", at], ENV), None]
    until = time.monotonic() + TIME_S
    try:
        while True:
            if not ends[1] or not ends[1].running():
                ends[1] = place.start(1, ["rping", "-c", "-a", at], ENV)
            shown = [[p for p in json.loads(place.tool(i, "stat", "--json"))["processes"] if p["pid"] == ends[i].pid] for i in (0, 1)]
            if all(s and s[0]["counters"]["rx_packets"] > 4 for s in shown):
                break
            check(time.monotonic() < until, "stat shows %s" % shown)
            time.sleep(0.05)
        for (found,), end in zip(shown, (0, 1)):
            qp, = found["queue_pairs"]
            check(found["device"] == "verbena_iw0" and (qp["type"], qp["state"], qp["path"]) == ("RC", "RTS", "tcp")
                  and qp["peer"] == place.addresses[1 - end], "%s" % found)
            for key in ("tx_packets", "tx_bytes", "rx_bytes", "io_tx_bytes", "io_rx_bytes"):
                check(found["counters"][key] > 0, "%s: %s" % (key, found))
            for key in ("fpdu_crc_errors", "fpdu_marker_errors", "terminates_sent", "terminates_received"):
                check(found["counters"][key] == 0, "%s: %s" % (key, found))
        text = place.tool(0, "stat", str(ends[0].pid))
        check("verbena_iw0" in text and "RC RTS tcp to " in text, text)
    finally:
        for p in ends:
            if p:
                p.kill()
    check(str(ends[0].pid) not in [str(p["pid"]) for p in json.loads(place.tool(0, "stat", "--json"))["processes"]], "a dead process is shown")


FLOOD = """
import resource, signal, socket, sys
hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 4096), hard))
held = [socket.create_connection((sys.argv[1], 7174)) for _ in range(150)]
print("held", flush=True)
signal.pause()
"""


def flood(place):
    """Clients that say nothing take a part of the server's descriptors, and keep out nobody who says something."""
    at = place.addresses[0]
    s = place.start(0, ["sh", "-c", "ulimit -n 200; exec rping -s -P -a %s" % at], ENV)
    s.wait_listen(7174)
    f = Process(place.wrap(1, [sys.executable, "-c", FLOOD, at]))
    f.wait_text("held", TIME_S)
    most = 0
    for _ in range(3):
        for _ in range(10):
            most = max(most, len(os.listdir("/proc/%d/fd" % s.pid)))
            time.sleep(0.02)
        status, out = place.run(1, ["rping", "-c", "-a", at, "-C", "3", "-v"], env=ENV)
        check(out.count("ping data") == 3, "status %s\n%s\nserver:\n%s" % (status, out, s.output()))
    check(most < 100, "the server has %d descriptors" % most)
    check(f.running(), "the flood ended:\n%s" % f.output())
    for p in (s, f):
        p.kill()


def nobody(place):
    """Where nobody listens the client is told at once."""
    status, out = place.run(1, ["rping", "-c", "-a", place.addresses[0], "-p", "9002", "-C", "3"], env=ENV)
    check(status != 0 and "REJECTED" in out, "refused otherwise: %s\n%s" % (status, out))
    told(out, "nobody listens at %s on TCP port 9002" % re.escape(place.addresses[0]))


def ports(place):
    """A port that rdma_cm drew is no other program's until it is listened on, nor afterwards."""
    status, out = place.run(0, [os.path.join(BUILD, "tests/programs/ports"), place.addresses[0], 50], TIME_S, ENV)
    check(status == 0 and out == "0 ports were taken, 0 listeners refused\n", "status %s\n%s" % (status, out))


if __name__ == "__main__":
    main({"devinfo": devinfo, "rping": rping, "ucmatose": ucmatose, "rstream": rstream, "perftest": perftest, "perftest_each": perftest_each, "unconnected": unconnected, "no_crc": no_crc, "atomics": atomics, "capture": capture, "markers": markers,
          "departs": departs, "errors": errors, "others": others, "libfabric": libfabric, "stat": stat, "flood": flood, "nobody": nobody, "ports": ports})
