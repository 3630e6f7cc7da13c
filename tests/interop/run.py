#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""
Verbena on the host against Linux's own rdma_rxe and siw in a guest: both directions of client and server,
IPv4 and IPv6; by addresses that they tell each other over TCP, and by rdma_cm. Needs root and kernel-peer.sh, a script that boots the guest; VERBENA_PEERS names its
folder (../shared/peers beside this repository unless told).

usage: tests/interop/run.py [--keep] [WORD...]    only runs whose title has every WORD; --keep leaves
the guest up, which is done anyway where it was up before.

The guest is emulated and the runs are small: this shows that the two understand each other, not how
fast. When a run fails it is repeated with a capture, whose path is printed.
"""
import glob
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(ROOT, "tests", "programs"))
from rdmacm import ended_well

BUILD = os.environ.get("BUILD_DIR") or os.path.join(ROOT, "build")
VERBENA = os.path.join(BUILD, "verbena")
# Ours alone: the NIC refuses a VERBENA_ variable that is none of its settings.
PEERS = os.environ.pop("VERBENA_PEERS", None) or os.path.join(os.path.dirname(ROOT), "shared", "peers")
SCRIPT = os.path.join(PEERS, "kernel-peer.sh")
ADDRESS = {4: {"host": "10.99.0.1", "guest": "10.99.0.2"}, 6: {"host": "fd99::1", "guest": "fd99::2"}}
GUEST_GID = {4: 1, 6: 2}
RUN_S = 90
ANSWERS_S = 400  # some of Linux's commands wait for others
SDR_LIBRARY = "libverbena-sdr.so.0"
OWN = os.path.join(BUILD, "tests", "programs")  # programs of ours, which are no clients of Verbena in the guest
BAD = re.compile(r"couldn't|failed|failure|invalid data|unexpected|unable|abort|segmentation", re.I)

# (program, its options)
PINGPONG = [
    ("ibv_rc_pingpong", ["-n", 200, "-c"]),
    ("ibv_rc_pingpong", ["-n", 50, "-s", 100000, "-c", "-m", 1024]),
    ("ibv_rc_pingpong", ["-n", 50, "-s", 3001, "-c", "-m", 256]),
    ("ibv_rc_pingpong", ["-n", 50, "-e"]),
    ("ibv_ud_pingpong", ["-n", 200, "-s", 1024, "-c"]),
    ("ibv_uc_pingpong", ["-n", 100, "-s", 1000, "-c"]),
    ("ibv_srq_pingpong", ["-n", 10, "-q", 4, "-c"]),
]
PERFTEST = [
    ("ib_write_bw", ["-n", 100, "-s", 65536]),
    # An emulated guest with so much to do may not run for the half of a second that is usual: 8.6 s.
    ("ib_write_bw", ["-n", 50, "-b", "-q", 4, "-s", 16384, "-t", 8, "-u", 18]),
    ("ib_send_bw", ["-n", 100, "-s", 65536, "-t", 16]),
    ("ib_send_bw", ["-n", 100, "-s", 1024, "-c", "UD", "-t", 8]),
    ("ib_read_bw", ["-n", 100, "-s", 65536]),
    ("ib_read_bw", ["-n", 50, "-s", 1000, "-o", 16]),
    ("ib_read_bw", ["-n", 100, "-s", 16000, "-o", 16]),
    ("ib_atomic_bw", ["-n", 200]),
    ("ib_atomic_bw", ["-n", 200, "-A", "CMP_AND_SWAP"]),
    ("ib_write_lat", ["-n", 200]),
    ("ib_send_lat", ["-n", 200]),
    ("ib_read_lat", ["-n", 100]),
    ("ib_atomic_lat", ["-n", 100]),
]
# The kernel's other GID: the first run of a few programs is enough to show that the addresses work.
IPV6 = ("ibv_rc_pingpong", "ibv_ud_pingpong", "ib_write_bw", "ib_send_bw", "ib_read_bw", "ib_atomic_bw")

# rdma_cm: (server, client, what the client must print); A is the server's address. Both meet by it alone.
CM = [
    ("rping -s -a A -C 5 -v -V", "rping -c -a A -C 5 -v -V", "(?s)(ping data.*){5}"),
    ("rping -s -q -a A -C 5", "rping -c -q -a A -C 5", ""),
    ("ucmatose -b A -c 5 -C 10 -S 1000", "ucmatose -s A -c 5 -C 10 -S 1000", "return status 0"),
    ("udaddy -b A -c 3 -C 5", "udaddy -s A -c 3 -C 5", "return status 0"),
    ("ib_send_bw -R -F -n 50", "ib_send_bw -R -F -n 50 A", r"\n *65536 +50 "),
    ("ib_write_lat -R -F -n 50", "ib_write_lat -R -F -n 50 A", r"\n *2 +50 "),
    ("ib_read_bw -R -F -n 50", "ib_read_bw -R -F -n 50 A", r"\n *65536 +50 "),
    # The sender sends again until the receiver has all: rxe drops what it has not sent when mckey ends.
    ("mckey -m 239.1.2.3 -b A -C 5", "mckey -m 239.1.2.3 -b B -s -C 5", "return status 0"),
    # Memory windows: the server binds them.
    ("windows A 9100", "windows -c A 9100", "all as it must be"),
    # ATOMIC WRITE. FLUSH is not understood: of its ICRC Linux has an opinion of its own (docs/rocev2.md).
    ("placement A 9100", "placement -c A 9100 words", "all as it must be"),
]
# siw, over iWARP. perftest asks its first device what kind it is, so in the guest it is named: D.
SIW = [
    ("rping -s -a A -C 5 -v -V", "rping -c -a A -C 5 -v -V", "(?s)(ping data.*){5}"),
    ("ucmatose -b A -c 5 -C 10 -S 1000", "ucmatose -s A -c 5 -C 10 -S 1000", "return status 0"),
    ("ib_write_bw -R -F -n 50 D", "ib_write_bw -R -F -n 50 D A", r"\n *65536 +50 "),
    ("ib_read_bw -R -F -n 50 D", "ib_read_bw -R -F -n 50 D A", r"\n *65536 +50 "),
    ("ib_send_bw -R -F -n 50 D", "ib_send_bw -R -F -n 50 D A", r"\n *65536 +50 "),
    ("ib_write_lat -R -F -n 20 D", "ib_write_lat -R -F -n 20 D A", r"\n *2 +20 "),
    ("ib_send_lat -R -F -n 20 D", "ib_send_lat -R -F -n 20 D A", r"\n *2 +20 "),
    ("ib_read_lat -R -F -n 20 D", "ib_read_lat -R -F -n 20 D A", r"\n *2 +20 "),
    ("rstream -b A -S 4096 -C 20", "rstream -s A -S 4096 -C 20", r"custom +4k +20 "),
    ("rstream -b A -S 65536 -C 20", "rstream -s A -S 65536 -C 20", r"custom +64k +20 "),
]
# perftest's server answers the last word and hangs up at once. A client on siw may then complete its own last SEND with an error, though
# captures show that it left and was answered.
SIW_RACE = ("Bad wc status 2", "Unable to write to socket/rdma_cm")
# The server is the last to send, and ends then. siw resets the connection of a process that ends, with what has not left yet.
SIW_CUTS_OFF = ("rstream -b A -S 65536 -C 20",)
# libverbena-sdr over rxe's verbs: packets are UC WRITEs with immediate, which are lost and repaired; each chunk is compared.
SDR = [
    "sdr_write_bw -V -S nack -r 40 -s 262144 -n 20 -w 2 -t 4 -c 2",
    "sdr_write_bw -V -S tail -r 40 -s 262144 -n 10 -w 2 -t 4 -c 2",
    "sdr_write_bw -V -R -s 65536 -n 20 -w 2 -t 4 -c 2",
]
# Faults on our side (verbena-fault(7)), which both ends must repair: (what, script). rxe counts what it finds missing or twice.
FAULTS = [
    ("lost", "packet 9 of each qp out drop\npacket 14 of each qp in drop\n"),
    ("corrupt", "packet 9 of each qp out corrupt\npacket 14 of each qp in corrupt\n"),
    ("swapped and doubled", "seed 3\nchance 3% out swap\nchance 15% out double\n"),
    ("link down for 1s", "after 30 packets link down for 1s\n"),
]
FAULTED = ("duplicate_request", "out_of_seq_request", "rcvd_seq_err", "completer_retry_err")
SIW_NO_CRC = ("rping", "ib_write_bw", "ib_send_bw")  # once more, without CRCs
SIW_ADDRESS = {"host": "10.99.1.1", "guest": "10.99.1.2"}
CM_IPV6 = ("rping", "ucmatose", "udaddy", "windows")  # perftest's -R takes the other address from its TCP connection
TOO_EARLY = re.compile(r"error:? 8|REJECTED|ECONNREFUSED|Connection refused|UNREACHABLE, error: 1|[Uu]nexpected CM event")

started = []
brought = set()


class Failure(Exception):
    pass


def peer(*words, seconds=120):
    return subprocess.run([SCRIPT] + list(words), capture_output=True, text=True, timeout=seconds)


def guest(command, seconds=30):
    return peer("exec", "-t", str(seconds), command, seconds=seconds + 30)


def start(where, command, env=None):
    """A program in its own group, on the host's side of the network or in the guest."""
    if where == "host":
        words = [SCRIPT, "ns", "env"] + ["%s=%s" % kv for kv in (env or {}).items()]
        words += [VERBENA, "run"] + command
    else:
        words = [SCRIPT, "exec", "-t", str(RUN_S), " ".join(shlex.quote(w) for w in command)]
    log = tempfile.TemporaryFile()
    p = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT,
                         start_new_session=True)
    p.log = log
    started.append(p)
    return p


def output(p):
    return os.pread(p.log.fileno(), os.fstat(p.log.fileno()).st_size, 0).decode(errors="replace")


def stop(p):
    # SIGTERM first: exec then ends its command in the guest.
    for sig in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(p.pid, sig)
            p.wait(3)
            break
        except ProcessLookupError:
            break
        except subprocess.TimeoutExpired:
            pass
    p.wait()
    if p in started:
        started.remove(p)


def wait_listen(where, port, p):
    pattern = ":%04X [0:]*0000 0A" % port
    test = "grep -Eqi '%s' /proc/net/tcp /proc/net/tcp6" % pattern
    if where == "guest":
        r = guest("i=0; until %s; do i=$((i+1)); test $i -lt 100 || exit 1; sleep 0.1; done" % test)
        ready = r.returncode == 0
    else:
        end = time.monotonic() + 10
        ready = False
        while not ready and time.monotonic() < end and p.poll() is None:
            ready = peer("ns", "sh", "-c", test).returncode == 0
    if not ready:
        raise Failure("the server on the %s does not listen:\n%s" % (where, output(p)))


def host_gid(family):
    """The index of our address in Verbena's table."""
    r = peer("ns", VERBENA, "run", "ibv_devinfo", "-v")
    want = {4: "::ffff:10.99.0.1", 6: "fd99::1"}[family]
    for index, gid in re.findall(r"GID\[ *(\d+)\]:\s+(\S+?),? ", r.stdout):
        if gid.lower().replace("fd99:0:0:0:0:0:0:1", "fd99::1") == want:
            return int(index)
    raise Failure("no GID %s among ours:\n%s%s" % (want, r.stdout, r.stderr))


port = 21000 + os.getpid() % 8000


def run(server, client, program, options, family, gids, env=None):
    """One run; raises Failure. server and client: host or guest."""
    global port
    port += 1
    flag = "-g" if program.startswith("ibv_") else "-x"
    words = {}
    for where in ("host", "guest"):
        words[where] = [program, "-p", str(port)] + [str(o) for o in options]
        words[where] += [flag, str(gids[where])] + ([] if flag == "-g" else ["-F"])
    # They connect over IPv4 with any GID: the servers listen on 0.0.0.0.
    meet = ADDRESS[4][server]
    s = c = None
    try:
        s = start(server, words[server], env)
        wait_listen(server, port, s)
        c = start(client, words[client] + [meet], env)
        end = time.monotonic() + RUN_S
        status = {}
        for name, p in (("client", c), ("server", s)):
            try:
                status[name] = p.wait(max(end - time.monotonic(), 5))
            except subprocess.TimeoutExpired:
                status[name] = None
        both = "-- server (%s, status %s)\n%s-- client (%s, status %s)\n%s" % (
            server, status["server"], output(s), client, status["client"], output(c))
        if status["client"] != 0 or status["server"] != 0:
            raise Failure(both)
        complaint = [line for line in both.splitlines() if BAD.search(line)]
        if complaint:
            raise Failure(complaint[0] + "\n" + both)
        check_result(program, options, output(c), output(s), both)
    finally:
        for p in (c, s):
            if p:
                stop(p)


def check_result(program, options, client, server, both):
    count = int(options[options.index("-n") + 1])
    if program.startswith("ibv_"):
        size = int(options[options.index("-s") + 1]) if "-s" in options else 4096
        for out in (client, server):
            if not re.search(r"^%d bytes in" % (2 * count * size), out, re.M) or \
                    not re.search(r"^%d iters in" % count, out, re.M):
                raise Failure("not %d exchanges of %d bytes\n%s" % (count, size, both))
    else:
        rows = re.findall(r"^ *\d+ +(\d+)((?:[ \t]+[\d.]+)+)[ \t]*$", client.rsplit("#bytes", 1)[-1], re.M)
        if len(rows) != 1 or int(rows[0][0]) < count or max(map(float, rows[0][1].split())) <= 0:
            raise Failure("no sensible result row\n" + both)


def command_at(where, line, at, own):
    """The words of a command that runs there: A is the server's address, B the client's, D the guest's device of iWARP."""
    words = []
    for word in line.split():
        if word in ("windows", "placement"):
            word = os.path.join(OWN, word) if where == "host" else to_guest(word)
        words += [at] if word == "A" else [own] if word == "B" else (["-d", "siw0"] if where == "guest" else []) if word == "D" else [word]
    return words


def is_mckey(words):
    return words[0].startswith("mckey")


def ends_within(p, seconds):
    try:
        p.wait(seconds)
        return True
    except subprocess.TimeoutExpired:
        return False


def run_cm(server, client, words, address, env=None):
    """
    One run over rdma_cm, whose listeners no tool shows: a client that is refused because it is early comes again, to a new
    server if its own has ended by that. perftest's opens its second listener when the client is on its way to it, and an
    emulated guest may be late.
    """
    commands = [command_at(where, line, address[server], address[client])
                for where, line in ((server, words[0]), (client, words[1]))]
    s = c = None
    try:
        s = start(server, commands[0], env)
        end = time.monotonic() + RUN_S
        while True:
            time.sleep(4 if server == "guest" else 1)  # some servers end when a client came too early for a part of them
            c = start(client, commands[1], env)
            try:
                status = c.wait(max(end - time.monotonic(), 5))
            except subprocess.TimeoutExpired:
                status = None
            if status == 0 and is_mckey(words) and not ends_within(s, 2) and time.monotonic() < end:
                stop(c)
                continue
            if ended_well(commands[1], status, output(c)) or not TOO_EARLY.search(output(c)) or time.monotonic() > end:
                break
            stop(c)
            if s.poll() is not None:  # its client came before its second listener
                stop(s)
                s = start(server, commands[0], env)
        well = ended_well(commands[1], status, output(c))
        theirs = s.poll() if well and ends_within(s, 20) else None
        both = "-- server (%s, status %s)\n%s-- client (%s, status %s)\n%s" % (
            server, theirs, output(s), client, status, output(c))
        if not well or not ended_well(commands[0], theirs, output(s)) or not re.search(words[2], output(c)):
            raise Failure(both)
    finally:
        for p in (c, s):
            if p:
                stop(p)


def check_mads(path):
    """tshark dissects each message of the capture, and has nothing to say against it."""
    names = [f for f in glob.glob(path.replace("%p", "*")) if os.path.getsize(f) > 100]
    if not shutil.which("tshark") or not names:
        return
    seen = 0
    for name in names:
        r = subprocess.run(["tshark", "-r", name, "-Y", "infiniband.bth.destqp == 1", "-T", "fields", "-e", "_ws.col.Info",
                            "-e", "_ws.expert.message", "-e", "_ws.malformed"], capture_output=True, text=True)
        for line in r.stdout.splitlines():
            info, *bad = line.split("\t")
            seen += 1
            if not info.startswith("CM: ") or any(bad):
                raise Failure("tshark says: %s" % line)
    if not seen:
        raise Failure("no message of the connection manager in the capture")


class Capture:
    """tshark on the network of iWARP, while a run takes place."""

    def __init__(self, path):
        self.path = path
        self.p = subprocess.Popen([SCRIPT, "ns", "tshark", "-i", "iwarp0", "-w", path, "tcp"], stdin=subprocess.DEVNULL,
                                  stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, start_new_session=True)
        self.p.log = tempfile.TemporaryFile()
        started.append(self.p)
        while "Capturing on" not in self.p.stderr.readline() and self.p.poll() is None:
            pass
        time.sleep(0.5)

    def check(self, crc):
        """Each FPDU has a good CRC, or, without, what is there is not looked at; nothing is malformed."""
        time.sleep(0.5)
        stop(self.p)
        r = subprocess.run(["tshark", "-r", self.path, "--disable-protocol", "rpcordma", "-Y", "iwarp_mpa.fpdu", "-O", "iwarp_mpa"],
                           capture_output=True, text=True)
        fpdus, checked = r.stdout.count("ULPDU length"), r.stdout.count("CRC check:")
        good = r.stdout.count("Good CRC32")
        # Where none was agreed on tshark checks none.
        if not fpdus or good != checked or bool(good) != crc or "Malformed" in r.stdout:
            raise Failure("of %d FPDUs tshark checked %d and calls %d good" % (fpdus, checked, good))
        return good


def run_siw(server, client, words, folder, number, crc=True):
    """Verbena's iWARP against siw. A line of what happened; raises Failure."""
    path = os.path.join(folder, "siw-%d.pcap" % number)
    capture = Capture(path) if shutil.which("tshark") else None
    env = {"VERBENA_PROTOCOL": "iwarp"}
    if not crc:
        env["VERBENA_IWARP_CRC"] = "off"
    run_cm(server, client, words, SIW_ADDRESS, env)
    return capture.check(crc) if capture else 0


def run_siw_again(server, client, words, folder, number, crc):
    """Likewise, up to four times if siw's own race ends it."""
    for left in (3, 2, 1, 0):
        try:
            return run_siw(server, client, words, folder, number, crc)
        except Failure as e:
            if not left or client != "guest" or not all(said in str(e) for said in SIW_RACE):
                raise
            print("      siw's own race: %s once more" % words[1], flush=True)
    return 0


def run_sdr(server, client, line):
    """One run of a program of libverbena-sdr, whose client must have lost and mistaken nothing."""
    global port
    port += 1
    words = {}
    for where in ("host", "guest"):
        name, *options = line.split()
        words[where] = [os.path.join(BUILD, name)] if where == "host" else [
            "env", "LD_LIBRARY_PATH=" + os.path.dirname(to_guest(SDR_LIBRARY, os.path.join(BUILD, "lib"))), to_guest(name, BUILD)]
        words[where] += options if where == client else []
        words[where] += ["-p", str(port), "-x", str(host_gid(4) if where == "host" else GUEST_GID[4])]
    s = c = None
    try:
        s = start(server, words[server])
        wait_listen(server, port, s)
        c = start(client, words[client] + [ADDRESS[4][server]])
        ended = ends_within(c, RUN_S) and ends_within(s, 10)
        both = "-- server (%s)\n%s-- client (%s)\n%s" % (server, output(s), client, output(c))
        row = re.search(r"^ *\d+ +\d+((?: +[\d.]+)+)$", output(c).rsplit("#bytes", 1)[-1], re.M)
        if not ended or c.returncode or s.returncode or not row or float(row[1].split()[-1]):
            raise Failure(both)
    finally:
        for p in (c, s):
            if p:
                stop(p)


def to_guest(name, folder=OWN):
    """A program or library of ours, and where it is in the guest."""
    there = "/tmp/" + name
    if name not in brought:
        with open(os.path.join(folder, name), "rb") as f:
            r = subprocess.run([SCRIPT, "exec", "-i", "-t", "60", "cat >%s && chmod +x %s" % (there, there)], stdin=f)
        if r.returncode:
            raise Failure("%s does not come into the guest: status %d" % (name, r.returncode))
        brought.add(name)
    return there


def check_answers():
    """What Linux's device of rdma_cm answers to each command is what tests/programs/answers.txt says of it."""
    import answers

    r = guest(to_guest("answers") + " " + ADDRESS[4]["guest"], ANSWERS_S)
    found = answers.differences(r.stdout.splitlines(), True)
    if r.returncode or found:
        raise Failure("status %d\n%s%s" % (r.returncode, r.stderr, "\n".join(found)))


def check_wakes():
    """What tests/programs/wakes.c asks of a channel's descriptor is so of Linux's device."""
    r = guest(to_guest("wakes") + " " + ADDRESS[4]["guest"], ANSWERS_S)
    if r.returncode:
        raise Failure("status %d\n%s%s" % (r.returncode, r.stdout, r.stderr))


def check_profile():
    """The profile `rxe` promises a program no more than rxe has."""
    limits = []
    for r in (guest("ibv_devinfo -v -d rxe0"), peer("ns", "env", "VERBENA_PROFILE=rxe", VERBENA, "run", "ibv_devinfo", "-v")):
        limits.append({k: int(v, 0) for k, v in re.findall(r"(max_\w+):\s+(\w+)$", r.stdout, re.M)})
    theirs, ours = limits
    if len(theirs) < 20 or len(ours) < 20:
        raise Failure("no limits: %s" % limits)
    more = ["%s: %d, and rxe has %d" % (k, ours[k], theirs[k]) for k in ours if k in theirs and ours[k] > theirs[k]]
    if more:
        raise Failure("\n".join(more))


def run_faults(server, client, program, script, folder):
    """One run with a script on our side, which rxe must have noticed."""
    name = os.path.join(folder, "script")
    with open(name, "w") as f:
        f.write(script)
    env = {"VERBENA_FAULTS": name, "VERBENA_PROTOCOL": "rocev2"}
    before, begun = guest_counters(), time.monotonic()
    if program == "rping":
        run_cm(server, client, ("rping -s -a A -C 20 -v -V", "rping -c -a A -C 20 -v -V", "(?s)(ping data.*){20}"), ADDRESS[4], env)
    else:
        run(server, client, program, ["-n", 60, "-s", 16384, "-t", 8, "-u", 18], 4, {"host": host_gid(4), "guest": GUEST_GID[4]}, env)
    after = guest_counters()
    if "link" in script and time.monotonic() - begun < 1:
        raise Failure("the link was not down")
    # Who only answers swaps and doubles acknowledgements, of which rxe says nothing.
    only_answers = program == "ib_write_bw" and server == "host" and "swap" in script
    if all(after[k] == before[k] for k in FAULTED) and not only_answers:
        raise Failure("rxe has noticed nothing: %s" % after)


def guest_counters():
    """rxe's counters; only they show a wrong ICRC."""
    r = guest("rdma statistic show link rxe0")
    return dict(re.findall(r"(\w+) (\d+)", r.stdout))


def main():
    args = [a for a in sys.argv[1:] if a != "--keep"]
    keep = "--keep" in sys.argv
    if any(a.startswith("-") for a in args):
        sys.exit(__doc__)
    if not os.access(SCRIPT, os.X_OK):
        print("interop: skipped: no kernel-peer.sh in %s; VERBENA_PEERS may name its folder"
              % os.path.relpath(PEERS))
        return 0
    if os.geteuid() != 0:
        print("interop: skipped: the guest needs root")
        return 0
    if not os.access(VERBENA, os.X_OK):
        sys.exit("interop: %s is not there: make build" % os.path.relpath(VERBENA))
    if peer("status").returncode == 0 and guest("true").returncode == 0:
        keep = True
    else:
        print("interop: starting the guest (a minute when fresh)", flush=True)
        r = subprocess.run([SCRIPT, "start"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        if r.returncode:
            sys.exit("interop: the guest does not start:\n" + r.stderr)

    passed = failed = 0
    folder = tempfile.mkdtemp(prefix="verbena-interop-")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # by way of finally
    try:
        for family in (4, 6):
            done = set()
            for program, options in PINGPONG + PERFTEST:
                if family == 6 and (program not in IPV6 or program in done):
                    continue
                done.add(program)
                for server, client in (("guest", "host"), ("host", "guest")):
                    title = " ".join([program] + [str(o) for o in options]) + \
                            ", IPv%d, %s is client" % (family, {"host": "Verbena", "guest": "rxe"}[client])
                    if not all(a in title for a in args):
                        continue
                    begun = time.monotonic()
                    try:
                        gids = {"host": host_gid(family), "guest": GUEST_GID[family]}
                        run(server, client, program, options, family, gids)
                        passed += 1
                        print("PASS  %-62s %4.1f s" % (title, time.monotonic() - begun), flush=True)
                    except Failure as e:
                        failed += 1
                        print("FAIL  %-62s %4.1f s" % (title, time.monotonic() - begun))
                        print("      " + str(e).replace("\n", "\n      "))
                        again(server, client, program, options, family)
            for words in CM:
                if family == 6 and words[1].split()[0] not in CM_IPV6:
                    continue
                for server, client in (("guest", "host"), ("host", "guest")):
                    title = "rdma_cm: %s, IPv%d, %s is client" % (
                        words[1], family, {"host": "Verbena", "guest": "rxe"}[client])
                    if not all(a in title for a in args):
                        continue
                    begun = time.monotonic()
                    path = os.path.join(folder, "%d-%%p.pcap" % (passed + failed))
                    try:
                        run_cm(server, client, words, ADDRESS[family], {"VERBENA_PCAP": path})
                        if not is_mckey(words):
                            check_mads(path)
                        passed += 1
                        print("PASS  %-62s %4.1f s" % (title, time.monotonic() - begun), flush=True)
                    except Failure as e:
                        failed += 1
                        print("FAIL  %-62s %4.1f s" % (title, time.monotonic() - begun))
                        print("      " + str(e).replace("\n", "\n      ") + "\n      capture: " + path, flush=True)
        plain = [("sdr: %s, %s is client" % (line, {"host": "Verbena", "guest": "rxe"}[client]),
                  lambda server=server, client=client, line=line: run_sdr(server, client, line))
                 for line in SDR for server, client in (("guest", "host"), ("host", "guest"))]
        plain += [("faults: %s, %s, %s is client" % (program, what, {"host": "Verbena", "guest": "rxe"}[client]),
                   lambda server=server, client=client, program=program, script=script: run_faults(server, client, program, script, folder))
                  for what, script in FAULTS for program in ("rping", "ib_write_bw") for server, client in (("guest", "host"), ("host", "guest"))]
        for title, judge in plain + [("profile: rxe", check_profile), ("rdma_cm: answers, rxe alone", check_answers),
                                     ("rdma_cm: wakes, rxe alone", check_wakes)]:
            if not all(a in title for a in args):
                continue
            begun = time.monotonic()
            try:
                judge()
                passed += 1
                print("PASS  %-62s %4.1f s" % (title, time.monotonic() - begun), flush=True)
            except Failure as e:
                failed += 1
                print("FAIL  %-62s %4.1f s" % (title, time.monotonic() - begun))
                print("      " + str(e).replace("\n", "\n      "), flush=True)
        for words, crc in [(w, True) for w in SIW] + [(w, False) for w in SIW if w[0].split()[0] in SIW_NO_CRC]:
            for server, client in (("guest", "host"), ("host", "guest")):
                title = "siw: %s%s, %s is client" % (words[1], "" if crc else " without CRC",
                                                     {"host": "Verbena", "guest": "siw"}[client])
                if not all(a in title for a in args) or (server == "guest" and words[0] in SIW_CUTS_OFF):
                    continue
                begun = time.monotonic()
                try:
                    good = run_siw_again(server, client, words, folder, passed + failed, crc)
                    passed += 1
                    print("PASS  %-62s %4.1f s  %d good CRCs" % (title, time.monotonic() - begun, good), flush=True)
                except Failure as e:
                    failed += 1
                    print("FAIL  %-62s %4.1f s" % (title, time.monotonic() - begun))
                    print("      " + str(e).replace("\n", "\n      ") + "\n      capture: " + folder, flush=True)
    finally:
        for p in list(started):
            stop(p)
        if not failed:
            shutil.rmtree(folder, ignore_errors=True)
        print("rxe counted: %s" % ", ".join("%s %s" % kv for kv in guest_counters().items() if kv[1] != "0"))
        if not keep:
            peer("stop")
    print("%d passed, %d failed" % (passed, failed))
    return 1 if failed else 0


def again(server, client, program, options, family):
    path = os.path.join(tempfile.gettempdir(), "verbena-interop-%d-%%p.pcap" % port)
    try:
        run(server, client, program, options, family,
            {"host": host_gid(family), "guest": GUEST_GID[family]}, {"VERBENA_PCAP": path})
        print("      the same run with a capture passed: %s" % path)
    except Failure:
        print("      capture of another failure: %s" % path)


if __name__ == "__main__":
    sys.exit(main())
