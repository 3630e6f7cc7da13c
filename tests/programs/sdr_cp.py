#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""
sdr_cp between two processes: files and trees over networks that lose packets, ends that are killed in the middle, peers
that name files outside the target, and what cannot be written.
"""
import os
import pty
import random
import re
import signal
import stat
import struct
import subprocess
import sys
import time

from pair import BUILD, Pair, Process, Skip, check, folder, main, sh

CP = os.path.join(BUILD, "sdr_cp")
SCHEMES = ("auto", "nack", "rto", "mds", "xor", "ec", "tail")
LOSSY = {"VERBENA_IMPAIR": "drop=10%,seed=4"}
PART = ".sdr_cp-"


def write(path, content, mode=0o644):
    with open(path, "wb") as f:
        f.write(content)
    os.chmod(path, mode)


def read(path):
    with open(path, "rb") as f:
        return f.read()


def noise(seed, bytes_):
    return random.Random(seed).randbytes(bytes_)


def copy(place, here, there, client=(), env=None):
    """The outputs of both ends."""
    return Pair(place, CP, [there], [*client, here], gid_flag="-x", env=env).go().finish()


def look(top):
    """Everything below a folder: kind, mode, time, and content or where it points."""
    found = {}
    for base, folders, files in os.walk(top):
        for name in [".", *folders, *files]:
            path = os.path.join(base, name)
            st = os.lstat(path)
            content = os.readlink(path) if stat.S_ISLNK(st.st_mode) else read(path) if stat.S_ISREG(st.st_mode) else None
            found[os.path.relpath(path, top)] = (stat.S_IFMT(st.st_mode), st.st_mode & 0o1777, st.st_mtime_ns, content)
    return found


def same(here, there):
    a, b = look(here), look(there)
    check(a == b, "the copy differs: %s" % [name for name in a.keys() | b.keys() if a.get(name) != b.get(name)])


def parts(top):
    return [os.path.join(base, f) for base, _, files in os.walk(top) for f in files if f.startswith(PART)]


def copied(place, bytes_, client=(), env=None):
    work = folder()
    here, there = os.path.join(work, "here"), os.path.join(work, "there")
    write(here, noise(bytes_, bytes_), 0o640)
    os.utime(here, ns=(1, 981173106789000001))
    _, out = copy(place, here, there, client, env)
    check(read(here) == read(there), "the copy of %d bytes differs" % bytes_)
    check(os.stat(there).st_mtime_ns == 981173106789000001 and os.stat(there).st_mode & 0o777 == 0o640, "mode or time differs")
    check(not parts(work), "a part is left")
    return out


def sizes(place):
    for bytes_ in (0, 1, 4 << 20, (4 << 20) + 1, 20000003):
        copied(place, bytes_, ["-r", 3000])


def link(place):
    """The sender says what it reckoned with: a rate that it was told, has found or has seen, and the losses."""
    said = r"reckoned with a loss of ([\d.e-]+) % and (\d+) Mbit/s, as (\w+)"
    # It takes a while to measure.
    for rate, word, bytes_ in ((("-r", 0), "measured", 90000001), (("-r", "auto"), "found", 20000001), (("-r", 1000), "told", 20000001)):
        out = copied(place, bytes_, ["-S", "tail", *rate], {"VERBENA_IMPAIR": "drop=1%,delay=3ms,seed=4"})
        found = re.search(said, out)
        check(found and found.group(3) == word, out)
        check(int(found.group(2)) > 0 and (word != "told" or found.group(2) == "1000"), out)
        # One in a hundred is lost on the way, and more where a receiver gets no processor.
        check(0.5 < float(found.group(1)) <= 50, out)


def slow_link(place):
    """
    The rate that is found is that of the link, whatever is lost beside it: one of 40 Mbit/s, whose queue holds 100 ms. Without a
    limit most of what is sent finds that full. How fast it is on a busy machine is not judged.
    """
    device, space = place.links[0][1], place.spaces[1]
    sent = {}
    for rate in (("-r", "auto"), ()):
        shape = ["tc", "-n", space, "qdisc", "replace", "dev", device, "root", "tbf", "rate", "40mbit", "burst", "20k", "latency", "100ms"]
        r = subprocess.run(shape, capture_output=True, text=True)
        if r.returncode:
            raise Skip("needs tc's tbf: " + r.stderr.strip())
        out = copied(place, 12000001, ["-S", "tail", *rate], {"VERBENA_IMPAIR": "drop=1%,delay=20ms,seed=4"})
        said = subprocess.run(["tc", "-n", space, "-s", "qdisc", "show", "dev", device], capture_output=True, text=True).stdout
        packets, dropped = map(int, re.search(r"Sent \d+ bytes (\d+) pkt \(dropped (\d+)", said).groups())
        sent[not rate] = dropped / (packets + dropped)
        sh("tc", "-n", space, "qdisc", "del", "dev", device, "root")
        if rate:
            found = re.search(r"and (\d+) Mbit/s, as found", out)
            check(found and 0 < int(found.group(1)) < 80, out)
    check(sent[False] < 0.1 < 0.3 < sent[True], "dropped by the link: %.2f, %.2f without a limit" % (sent[False], sent[True]))


def idle_fill(place):
    """Parities go on over a bad network, and the copy is right."""
    copied(place, 3000001, ["-r", 300, "-S", "tail", "-F"], {"VERBENA_IMPAIR": "drop=10%,dup=2%,reorder=5%,delay=2ms,seed=4"})


def spoiled(place):
    env = {"VERBENA_IMPAIR": "drop=10%,dup=2%,reorder=5%,corrupt=1%,seed=4"}
    copied(place, 3000001, ["-k", 16384], env)
    for scheme in SCHEMES:
        copied(place, 300001, ["-k", 4096, "-m", 1024, "-S", scheme], env)


def plant(top):
    """A tree with all that is copied."""
    os.makedirs(os.path.join(top, "a/b/c"))
    os.mkdir(os.path.join(top, "empty"))
    write(os.path.join(top, "zero"), b"", 0o600)
    write(os.path.join(top, "a/big"), noise(1, 9000001))
    write(os.path.join(top, "a/b/ name\n\\\xff"), b"x" * 5000, 0o400)
    for i in range(200):
        write(os.path.join(top, "a/b/c/%d" % i), noise(i, 17 * i), 0o755)
    os.symlink("../zero", os.path.join(top, "a/link"))
    os.symlink("/nowhere/at all", os.path.join(top, "dangling"))
    os.utime(os.path.join(top, "a/link"), ns=(5, 7000000008), follow_symlinks=False)
    for name, when in (("a/big", 1), ("a/b", 2000000002), ("empty", 3)):
        os.utime(os.path.join(top, name), ns=(when, when))
    os.chmod(os.path.join(top, "empty"), 0o511)


def tree(place):
    """Names, modes, times and links; a fifo is left out, and said to be."""
    work = folder()
    here, there = os.path.join(work, "here"), os.path.join(work, "there")
    plant(here)
    copy(place, here, there, ["-r", 3000], LOSSY)
    same(here, there)
    os.mkfifo(os.path.join(here, "fifo"))
    pair = Pair(place, CP, [there], [here], gid_flag="-x").go()
    check(pair.client.wait(60) == 23 and "fifo: neither a file nor" in pair.client.output(), pair.client.output())
    pair.kill()
    os.unlink(os.path.join(here, "fifo"))


def again(place):
    """What is there already is not sent; what differs is, block by block, also where only bytes differ."""
    work = folder()
    here, there = os.path.join(work, "here"), os.path.join(work, "there")
    plant(here)
    copy(place, here, there)
    _, out = copy(place, here, there)
    check(re.search(r"^0 bytes in", out, re.M), out)
    with open(os.path.join(there, "a/big"), "r+b") as f:
        f.seek(5000000)
        f.write(b"wrong")
    before = os.stat(os.path.join(there, "a/big")).st_ino
    write(os.path.join(there, "zero"), b"no longer")
    os.unlink(os.path.join(there, "a/link"))
    _, out = copy(place, here, there)
    check(re.search(r"^4194304 bytes in", out, re.M), out)
    check(os.stat(os.path.join(there, "a/big")).st_ino != before, "a file was changed in its place")
    for top in (here, there):
        os.utime(top, ns=(1, 1))
        os.utime(os.path.join(top, "a"), ns=(1, 1))
    same(here, there)
    # A file goes into a folder that is there.
    copy(place, os.path.join(here, "a/big"), there)
    check(read(os.path.join(there, "big")) == read(os.path.join(here, "a/big")), "a file into a folder")


def wait_for_part(work, bytes_):
    end = time.monotonic() + 60
    while time.monotonic() < end:
        found = [p for p in parts(work) if os.path.getsize(p) >= bytes_]
        if found:
            return
        time.sleep(0.02)
    check(False, "nothing was written in a minute")


def resumed(place):
    """Either end is killed in the middle, what was written is spoiled in one place, and the copy is whole all the same."""
    for victim in (0, 1):
        work = folder()
        here, there = os.path.join(work, "here"), os.path.join(work, "there")
        os.mkdir(here)
        write(os.path.join(here, "first"), noise(1, 1000))
        write(os.path.join(here, "large"), noise(2, 24 << 20))
        pair = Pair(place, CP, [there], ["-r", 100, here], gid_flag="-x", env=LOSSY).go()
        wait_for_part(work, 13 << 20)
        pair.still_runs()
        (pair.server, pair.client)[victim].kill()
        left = (pair.client, pair.server)[victim]
        check(left.wait(60) == 1 and "the peer is gone" in left.output(), left.output())
        pair.kill()
        check(not os.path.exists(os.path.join(there, "large")), "a file that is not whole has its name")
        part = max(parts(there), key=os.path.getsize)
        with open(part, "r+b") as f:
            f.seek(1 << 20)
            f.write(b"spoiled")
        _, out = copy(place, here, there, ["-r", 3000], LOSSY)
        sent = int(re.search(r"^(\d+) bytes in", out, re.M).group(1))
        check(sent <= (24 << 20) - (8 << 20), "%d bytes were sent again" % sent)
        same(here, there)


def gone(place):
    """An end without its peer says so and ends."""
    for victim in (0, 1):
        work = folder()
        here, there = os.path.join(work, "here"), os.path.join(work, "there")
        write(here, os.urandom(64 << 20))
        pair = Pair(place, CP, [there], ["-r", 100, here], gid_flag="-x").go().underway()
        (pair.server, pair.client)[victim].kill()
        left = (pair.client, pair.server)[victim]
        check(left.wait(60) == 1 and "the peer is gone" in left.output(), "%s\n%s" % (pair.title, left.output()))
        check(not os.path.exists(there), "a part of a file has its name")
        pair.kill()


def asleep(place):
    """A receiver whose sender stands still sleeps: it does not look each millisecond. A busy machine only makes it wake less often."""
    work = folder()
    here = os.path.join(work, "here")
    write(here, noise(3, 64 << 20))
    pair = Pair(place, CP, [os.path.join(work, "there")], ["-r", 100, here], gid_flag="-x").go().underway()

    def switches():
        with open("/proc/%d/status" % pair.server.pid) as f:
            return int(re.search(r"\nvoluntary_ctxt_switches:\s*(\d+)", f.read()).group(1))

    pair.client.signal(signal.SIGSTOP)
    time.sleep(1)
    before = switches()
    time.sleep(3)
    woken = switches() - before
    pair.client.signal(signal.SIGCONT)
    pair.kill()
    check(woken < 1500, "woke up %d times in 3 s" % woken)


# ---- a sender that lies --------------------------------------------------------------------------------

FILE, FOLDER, LINK, SEVERAL, NAME = range(5)
CP_FAIL = 0x6661696c
CP_FILTER, CP_PATH, CP_MET, CP_LIST = range(4)
LIAR = os.path.join(BUILD, "tests/programs/cp_liar")


def frame(kind, payload=b""):
    return struct.pack(">II", kind, len(payload)) + payload


GREETING = b"verbena-sdr 1\n"
PLAN = struct.pack(">15Q", 0x7364725f63703036, 0, 65536, *[0] * 12)
ROOT = (FOLDER, 0, 0, "-", "-")
NOT_ALLOWED = "an entry that is not allowed"
LIES = [((ROOT, (FILE, 0, 0, name, "-")), NOT_ALLOWED) for name in ("..", ".", "-", "/tmp/x", "../x", "a/../../x", PART + "x")]
LIES += [((ROOT, (LINK, 0, 0, "l", "/tmp"), (FILE, 1, 0, "x", "-")), NOT_ALLOWED),
         ((ROOT, (FILE, 7, 0, "x", "-")), NOT_ALLOWED),
         ((ROOT, (NAME, 0, 0, "x", "-")), NOT_ALLOWED),
         ((ROOT, (SEVERAL, 0, 0, "x", "-")), NOT_ALLOWED),
         (((LINK, 0, 0, "l", "/tmp"),), NOT_ALLOWED),
         ((ROOT, (FOLDER, 0, 0, "held", "-"), (FILE, 1, 0, "x", "-")), "is in the way"),
         ((ROOT, (FOLDER, 0, 0, "d", "-"), (LINK, 0, 0, "d", "/tmp"), (FILE, 1, 0, "x", "-")), "Is a directory")]


def hostile(place):
    """No name and no link leads out of the target, whoever planted it; and words that make no sense end the run."""
    for lie, said in LIES:
        work = folder()
        there, outside, lies = (os.path.join(work, name) for name in ("there", "outside", "lies"))
        os.mkdir(there)
        os.mkdir(outside)
        os.symlink("../outside", os.path.join(there, "held"))
        write(lies, "".join("%d %d %d %s %s\n" % e for e in lie).encode())
        pair = Pair(place, CP, [there], None, gid_flag="-x")
        pair._client = ([LIAR, "-p", pair.port, "-x", place.gid_index(1), lies, place.meet], {})
        pair.go()
        check(pair.server.wait(60) == 1 and said in pair.server.output(), "'%s' is not said, but: %s" % (said, pair.server.output()))
        pair.kill()
        check(not os.listdir(outside) and sorted(os.listdir(work)) == ["lies", "outside", "there"], "%s: something was written outside" % (lie,))
    for words in (frame(CP_LIST), frame(99), frame(CP_FILTER, b"x" * 10)[:4] + b"\xff" * 4, frame(CP_MET),
                  struct.pack(">II", CP_FILTER, 16385), frame(CP_FILTER, b"\1"), frame(CP_FILTER, b"\1a\0b")):
        received(place, os.path.join(folder(), "x"), PLAN + words, "no sdr_cp of this version says")
    received(place, os.path.join(folder(), "x"), PLAN + frame(CP_FILTER) + b"\xff" * 8, "the peer is no program of this kind")
    received(place, os.path.join(folder(), "x"), PLAN + frame(CP_FILTER) + struct.pack(">Q", 64) + b"x" * 64, "cannot connect to the peer's queue pair")
    received(place, os.path.join(folder(), "x"), b"x" * 120, "not the sdr_cp of this version")
    received(place, os.path.join(folder(), "x"), PLAN + frame(CP_FAIL, b"no \x1b[31mred"), "the peer says: no ?[31mred")
    # What changes more than files that are named is for this end's user to allow.
    for n, option in ((11, "--owners"), (12, "--delete"), (10, "--xattrs")):
        plan = bytearray(PLAN)
        plan[8 * n + 7] = 1
        received(place, os.path.join(folder(), "x"), bytes(plan), "the sender wants %s, which this end was not given" % option)


def talker(place, port, words):
    """Somebody who says these words to a receiver, and stays."""
    talk = ("import socket; s = socket.create_connection(('127.0.0.1', %d)); s.sendall(bytes.fromhex('%s')); s.settimeout(60)\n"
            "print('said', flush=True)\nwhile s.recv(4096): pass" % (port, words.hex()))
    return Process(place.wrap(0, [sys.executable, "-c", talk]))


def strangers(place):
    """Who connects to a receiver and is no sender neither ends it nor keeps the sender out."""
    work = folder()
    here, there = os.path.join(work, "here"), os.path.join(work, "there")
    write(here, noise(7, 100000))
    pair = Pair(place, CP, [there], [here], gid_flag="-x")
    pair.server.wait_listen(pair.port)
    others = [talker(place, pair.port, words) for words in (b"", GREETING[:5], b"GET / HTTP/1.0\r\n\r\n")]
    for other in others:
        other.wait_text("said")
    pair.go().finish()
    check(read(here) == read(there), "the copy beside strangers differs")
    for other in others:
        other.kill()


def received(place, there, words, said):
    """A receiver that gets these words from somebody says that, and ends."""
    port = random.randrange(20000, 32000)
    server = place.start(0, [CP, "-p", port, there])
    server.wait_listen(port)
    client = talker(place, port, GREETING + words)
    check(server.wait(60) == 1 and said in server.output(), "'%s' is not said, but: %s" % (said, server.output()))
    client.kill()


# ---- what cannot be ------------------------------------------------------------------------------------

def refused(place):
    """Both ends say what is wrong, before anything is sent where it can be known."""
    work = folder()
    here, there = os.path.join(work, "here"), os.path.join(work, "there")
    write(here, b"x")
    p = place.start(1, [CP, os.path.join(work, "nothing"), "127.0.0.1"])
    check(p.wait(20) == 1 and "nothing: No such file" in p.output(), p.output())
    p = place.start(1, [CP, "/dev/null", "127.0.0.1"])
    check(p.wait(20) == 1 and "neither a file nor a folder" in p.output(), p.output())
    for target, said in ((os.path.join(work, "no/such"), "No such file or directory"), (os.path.join(here, "x"), "Not a directory")):
        pair = Pair(place, CP, [target], [here], gid_flag="-x").go()
        check(pair.client.wait(60) == 1 and "the peer says: " in pair.client.output() and said in pair.client.output(), pair.client.output())
        check(pair.server.wait(60) == 1 and said in pair.server.output(), pair.server.output())
        pair.kill()
    os.mkdir(os.path.join(work, "d"))
    # A folder where there is a file, and the other way round.
    os.mkdir(os.path.join(work, "d", "x"))
    os.makedirs(there)
    write(os.path.join(there, "x"), b"")
    pair = Pair(place, CP, [there], [os.path.join(work, "d")], gid_flag="-x").go()
    check(pair.client.wait(60) == 1 and "in the way" in pair.client.output(), pair.client.output())
    pair.kill()


def full(place):
    """The limit on a file's length stands for a disk that is full: the same call fails."""
    work = folder()
    here, there = os.path.join(work, "here"), os.path.join(work, "there")
    write(here, noise(1, 12 << 20))
    pair = Pair(place, CP, [there], [here], gid_flag="-x")
    pair.server.kill()
    words = ["-p", str(pair.port), "-x", str(place.gid_index(0)), there]
    pair.server = Process(place.wrap(0, ["bash", "-c", "trap '' XFSZ; ulimit -f 6000; exec \"$@\"", "bash", place.verbena, "run", CP, *words]), place.env[0])
    pair.go()
    check(pair.server.wait(60) == 1 and "there: File too large" in pair.server.output(), pair.server.output())
    check(pair.client.wait(60) == 1 and "the peer says: " in pair.client.output() and "File too large" in pair.client.output(), pair.client.output())
    pair.kill()
    copy(place, here, there)
    check(read(here) == read(there), "the copy after a full disk differs")


def progress(place):
    """A terminal sees one line that changes, another output whole lines, and --quiet none."""
    work = folder()
    here = os.path.join(work, "here")
    write(here, noise(3, 8 << 20))
    for quiet in (False, True):
        pair = Pair(place, CP, [os.path.join(work, "there%d" % quiet)], [*(["-q"] if quiet else []), "-r", 100, here], gid_flag="-x", env=LOSSY)
        pair.server.wait_listen(pair.port)
        master, slave = pty.openpty()
        command, env = pair._client
        words = place.wrap(1, [place.verbena, "run", *[str(c) for c in command]])
        pair.client = Process(["bash", "-c", "exec \"$@\" 2>%s" % os.ttyname(slave), "bash", *words], {**place.env[1], **env})
        pair.finish()
        os.set_blocking(master, False)
        try:
            seen = os.read(master, 1 << 20).decode()
        except BlockingIOError:
            seen = ""
        check(bool(re.search(r"\r\[#*\.*\] +\d+ %  .* of 8\.39 MB, [\d.]+ Mbit/s, \d+:\d\d left", seen)) != quiet, repr(seen))
        os.close(master)
        os.close(slave)
    pair = Pair(place, CP, [os.path.join(work, "lines")], ["-r", 10, here], gid_flag="-x").go()
    pair.client.wait_text(r"(?m)^ *\d+ %  .* of 8\.39 MB, [\d.]+ Mbit/s, \d+:\d\d left")
    pair.kill()


if __name__ == "__main__":
    main({"sizes": sizes, "spoiled": spoiled, "link": link, "slow_link": slow_link, "idle_fill": idle_fill, "tree": tree, "again": again, "resumed": resumed, "gone": gone,
          "hostile": hostile, "strangers": strangers, "refused": refused, "full": full, "progress": progress, "asleep": asleep})
