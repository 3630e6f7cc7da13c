#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""`verbena qps` and `verbena top`: what queue pairs and paths do, as numbers, as lines and on a terminal."""
import fcntl
import json
import os
import pty
import re
import select
import shutil
import signal
import socket
import struct
import subprocess
import sys
import termios
import threading
import time

from pair import Pair, Process, Skip, check, clean_env, folder, is_root, main
from sysfs import wait_for

FOR_EVER = 100000000
# Of rdma(8), in its order, and ours.
COLUMNS = ["lqpn", "rqpn", "type", "state", "rq-psn", "sq-psn", "pid", "comm", "protocol", "way", "peer", "paths", "posted",
           "in-flight"]


def qps(place, *words):
    return json.loads(place.tool(0, "qps", "--json", *words))


def busy(place, queue_pairs=3, **kw):
    return Pair(place, "ib_write_bw", ["-F", "-n", FOR_EVER, "-s", 4096, "-q", queue_pairs], gid_flag="-x", **kw).go().underway()


def shown(place):
    """Both ends agree about each other, and numbers move."""
    pair = busy(place)
    rows = qps(place, "--rates")
    mine = {end: [q for q in rows if q["pid"] == p.pid] for end, p in enumerate((pair.server, pair.client))}
    check(len(mine[0]) == 3 and len(mine[1]) == 3, str(rows))
    check({(q["lqpn"], q["rqpn"]) for q in mine[0]} == {(q["rqpn"], q["lqpn"]) for q in mine[1]}, str(rows))
    for q in rows:
        check(list(q)[2:2 + len(COLUMNS)] == COLUMNS and q["ifname"] == "verbena0", str(q))
        state = "RTS" if q["pid"] == pair.client.pid else "RTR"  # this server sends nothing
        check((q["type"], q["state"], q["comm"], q["protocol"], q["way"], q["peer"])
              == ("RC", state, "ib_write_bw", "veRoCE", "shm", "127.0.0.1"), str(q))
    check(sum(q["tx-bytes-per-second"] for q in mine[1]) > 1000 and sum(q["rx-bytes-per-second"] for q in mine[0]) > 1000, str(rows))
    again = {q["lqpn"]: q["sq-psn"] for q in qps(place, str(pair.client.pid))}
    check(len(again) == 3 and any(again[q["lqpn"]] != q["sq-psn"] for q in mine[1]), "%s\n%s" % (rows, again))
    lines = place.tool(0, "qps").splitlines()
    check(len(lines) == 6 and all(re.match(r"link verbena0/1 lqpn \d+ rqpn \d+ type RC state RT[RS] rq-psn \d+ sq-psn \d+ pid \d+ "
                                           r"comm ib_write_bw protocol veRoCE way shm peer 127.0.0.1 ", x) for x in lines), str(lines))
    both = [Process(place.wrap(0, [place.verbena, "qps"])) for _ in range(2)]
    for p in both:
        check(p.wait(30) == 0 and len(p.output().splitlines()) == 6, p.output())
    pair.kill()
    check(qps(place) == [], "they are there still")


def names(place):
    """A program's name may be anything; a terminal gets nothing of it but letters."""
    evil = os.path.join(folder(), "e\033[2Jv\"")
    os.symlink(shutil.which("ibv_rc_pingpong"), evil)
    p = place.start(0, [evil, "-g", place.gid_index(0)])
    wait_for("no queue pair", lambda: qps(place))
    for words in (["qps"], ["qps", "--json"], ["stat"], ["stat", "--json"], ["top", "--once"]):
        out = place.tool(0, *words)
        check("\033" not in out and "e?[2Jv" in out, "%s: %r" % (words, out))
    p.kill()


MANY = """
from pyverbs.device import Context
from pyverbs.pd import PD
from pyverbs.cq import CQ
from pyverbs.qp import QP, QPCap, QPInitAttr
import sys, time
ctx = Context(name="verbena0"); pd = PD(ctx); cq = CQ(ctx, 10)
all = [QP(pd, QPInitAttr(qp_type=2, scq=cq, rcq=cq, cap=QPCap(1, 1, 1, 1))) for _ in range(%d)]
print("made", flush=True)
time.sleep(1000)
"""


def many(place):
    """More than fit into a page: each is there, once."""
    if subprocess.run([sys.executable, "-c", "import pyverbs.device"], capture_output=True).returncode:
        raise Skip("needs pyverbs")
    count = 5000
    p = place.start(0, [sys.executable, "-c", MANY % count])
    p.wait_text("made")
    rows = qps(place)
    check(len(rows) == count and len({q["lqpn"] for q in rows}) == count, "%d of %d" % (len(rows), count))
    check(all(q["state"] == "RESET" and "rqpn" not in q and q["protocol"] == "none" for q in rows), str(rows[0]))
    check("and %d more queue pairs" % (count - 100) in place.tool(0, "top", "--once"), "top shows all")
    p.kill()


def users(place):
    """Root sees everybody's, and nobody sees root's."""
    if not is_root():
        raise Skip("needs a second user, whom only root's processes can become")
    other = place.other_user()
    p = other.start(0, ["ibv_rc_pingpong", "-g", other.gid_index(0)])
    wait_for("root does not see it", lambda: [q["comm"] for q in qps(place)] == ["ibv_rc_pingpong"])
    p.kill()
    p = place.start(0, ["ibv_rc_pingpong", "-g", place.gid_index(0)])
    wait_for("not there", lambda: qps(place))
    check(qps(other) == [], "another user's are shown")
    status, out = 0, Process(other.wrap(0, [place.verbena, "qps", str(p.pid)]))
    status = out.wait(30)
    check(status == 125 and "another user's" in out.output(), out.output())
    p.kill()


STAT, STAT_FD, QPS, QPS_FD = 7, 8, 16, 17  # group_msg.h
SEALS = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_WRITE


def message(kind):
    return (b"Vb" + struct.pack(">HBB", 6, kind, 0)).ljust(56, b"\0")


def ask(slot, kind):
    """The descriptor that the member of a slot gives."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as s:
        s.settimeout(30)
        s.connect("\0verbena.%d.4791.%d" % (os.geteuid(), slot))
        s.sendall(message(kind))
        return socket.recv_fds(s, 4096, 1)[1][0]


def pose(listener, stat_fd, page):
    """As a member that lends another's counters, and says that of its queue pairs; *page* is set by the test."""
    while True:
        try:
            c, _ = listener.accept()
        except OSError:
            return
        with c:
            kind = c.recv(4096)[4:5]
            if kind == bytes([STAT]):
                socket.send_fds(c, [message(STAT_FD)], [stat_fd])
            elif kind == bytes([QPS]):
                page["asked"] = page.get("asked", 0) + 1
                fd = os.memfd_create("page", os.MFD_ALLOW_SEALING)
                os.write(fd, page["bytes"])
                fcntl.fcntl(fd, fcntl.F_ADD_SEALS, page["seals"])
                socket.send_fds(c, [message(QPS_FD)], [fd])
                os.close(fd)


def liar(place):
    """What a process says of itself is judged: it harms neither the tool nor what that says of others."""
    p = place.start(0, ["ibv_rc_pingpong", "-g", place.gid_index(0)])
    wait_for("no queue pair", lambda: qps(place))
    slot = [one["slot"] for one in json.loads(place.tool(0, "stat", "--json"))["processes"]][0]
    time.sleep(1)  # it answers once a second
    fd = ask(slot, QPS)
    true = os.pread(fd, 1 << 20, 0)
    seals = fcntl.fcntl(fd, fcntl.F_GET_SEALS)
    check(seals & SEALS == SEALS and struct.unpack("I", true[12:16])[0] == 1, "seals %x, %r" % (seals, true[:48]))
    try:
        os.pwrite(fd, b"x", 0)
        check(False, "a page can be written to")
    except PermissionError:
        pass
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        listener.bind("\0verbena.%d.4791.126" % os.geteuid())
        listener.listen(64)
        page = {}
        threading.Thread(target=pose, args=(listener, ask(slot, STAT), page), daemon=True).start()

        def with_u32(at, value):
            return true[:at] + struct.pack("I", value) + true[at + 4:]

        row = len(true) - 72  # of the one queue pair
        for what, said, sealed, rows in (
                ("the truth", true, SEALS, 2), ("unsealed", true, 0, 1), ("may shrink", true, fcntl.F_SEAL_WRITE, 1),
                ("cut", true[:-1], SEALS, 1), ("long", true + b"x", SEALS, 1), ("short", true[:40], SEALS, 1), ("empty", b"", SEALS, 1),
                ("magic", with_u32(0, 1), SEALS, 1), ("queue pairs", with_u32(12, 0xffffffff), SEALS, 1),
                ("paths", with_u32(16, 0xffffffff), SEALS, 1), ("without end", with_u32(20, 1), SEALS, 2),
                ("type", true[:row + 24] + b"\xff" + true[row + 25:], SEALS, 1),
                ("state", true[:row + 25] + b"\xff" + true[row + 26:], SEALS, 1),
                ("way", true[:row + 26] + b"\xff" + true[row + 27:], SEALS, 1)):
            page.update(bytes=said, seals=sealed, asked=0)
            # Beside another one, which answers once a second, only the first times.
            alone = [] if what in ("the truth", "unsealed") else [str(os.getpid())]
            rows -= len(alone)
            r = subprocess.run([place.verbena, "qps", "--json", *alone], capture_output=True, text=True, timeout=60, env=clean_env())
            check(r.returncode == 0 and len(json.loads(r.stdout)) == rows, "%s: %s\n%s%s" % (what, r.returncode, r.stdout, r.stderr))
            check(0 < page["asked"] <= 2, "%s: asked %d times" % (what, page["asked"]))
            check((what in ("the truth", "without end", "type", "state", "way")) == (not r.stderr), "%s: %s" % (what, r.stderr))
    p.kill()


def wrong(place):
    for words, said in ((["qps", "1"], "process 1 does not run on Verbena"), (["qps", "x"], "'x': allowed are process ids"),
                        (["qps", "0"], "'0': allowed are process ids"), (["qps", "--what"], "verbena qps --help"),
                        (["qps", *["1"] * 65], "at most 64 process ids"),
                        (["top", "--delay", "0.5"], "allowed are seconds from 1 to 3600"),
                        (["top", "--delay", "x"], "allowed are seconds from 1 to 3600"), (["top", "1"], "no argument is allowed"),
                        (["top", "--what"], "verbena top --help")):
        p = Process(place.wrap(0, [place.verbena, *words]))
        check(p.wait(30) == 125 and said in p.output(), "%s: %s\n%s" % (words, p.proc.returncode, p.output()))
    check(qps(place) == [] and place.tool(0, "qps") == "", "queue pairs of nobody")


def once(place):
    """Where there is no terminal: lines, once; or again and again."""
    pair = busy(place, 1)
    for words in (["top"], ["top", "--once"]):
        out = place.tool(0, *words)
        check("\033" not in out and len(re.findall(r"^ *\d+ ib_write_bw +verbena0 ", out, re.M)) == 2, out)
        check(re.search(r"^127.0.0.1 +0 +%d +\S+ +[\d.]+[num]?s +[\d.]+[num]?s " % pair.client.pid, out, re.M), "no path: " + out)
        check(re.search(r"^ *\d+ +%d RC   RTS   veRoCE shm  127.0.0.1 " % pair.client.pid, out, re.M), "no queue pair: " + out)
    p = Process(place.wrap(0, [place.verbena, "top", "--batch"]))
    p.wait_text("(?s)verbena top.*verbena top")
    check("\033" not in p.output(), p.output())
    p.kill()
    pair.kill()


class Terminal:
    """A program on a terminal of its own."""

    def __init__(self, command, rows=24, columns=80):
        self.text = ""
        self.master, self.slave = pty.openpty()
        self.modes = termios.tcgetattr(self.slave)
        self.resize(rows, columns)
        self.pid = os.fork()
        if not self.pid:
            os.login_tty(self.slave)
            os.execvpe(command[0], command, {**clean_env(), "TERM": "xterm"})

    def resize(self, rows, columns):
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("4H", rows, columns, 0, 0))

    def read(self, pattern, seconds=60):
        """Until that is there, in what came since the last call."""
        end, text = time.monotonic() + seconds, ""
        while not re.search(pattern, text, re.S):
            check(time.monotonic() < end, "no %r: %r" % (pattern, text[-3000:]))
            if select.select([self.master], [], [], 0.2)[0]:
                text += os.read(self.master, 65536).decode()
        return text

    def end(self):
        """Its status, once all of its output is read."""
        end = time.monotonic() + 60
        while True:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                return os.waitstatus_to_exitcode(status)
            check(time.monotonic() < end, "it does not end")
            if select.select([self.master], [], [], 0.1)[0]:
                self.text += os.read(self.master, 65536).decode()

    def rest(self):
        while select.select([self.master], [], [], 0.2)[0]:
            self.text += os.read(self.master, 65536).decode()
        return self.text

    def is_restored(self):
        return termios.tcgetattr(self.slave) == self.modes

    def close(self):
        os.close(self.master)
        os.close(self.slave)


def pictures(text):
    """Each whole picture: a list of lines."""
    return [re.split(r"\r+\n", p.replace("\033[K", "")) for p in re.findall(r"\033\[H(.*?)\033\[J", text, re.S)]


LEAVE = "\033[?7h\033[?25h\033[?1049l"


def terminal(place):
    """It fits, follows the terminal's size, and leaves the terminal as it was."""
    pair = busy(place, 40)
    t = Terminal(place.wrap(0, [place.verbena, "top"]))
    out = t.read(r"(\033\[J.*){3}")
    check(out.startswith("\033[?1049h\033[?25l"), repr(out[:100]))
    for picture in pictures(out):
        check(len(picture) <= 24 and all(len(x) <= 80 for x in picture), "\n".join(picture))
    check(len(pictures(out)[-1]) == 24 and "ib_write_bw" in "".join(pictures(out)[-1]), "\n".join(pictures(out)[-1]))
    check(re.search(r"veRoCE shm  127.0.0.1 +\S+ +\S+", "\n".join(pictures(out)[-1])), "\n".join(pictures(out)[-1]))
    check(not termios.tcgetattr(t.slave)[3] & termios.ECHO, "keys are seen")
    for rows, columns in ((40, 132), (5, 20), (1, 1), (24, 80)):
        t.resize(rows, columns)
        wait_for("no picture of %d rows" % rows, lambda r=rows, c=columns: any(
            len(p) == r and max(map(len, p)) <= c and (c < 100 or max(map(len, p)) > 80) for p in pictures(t.read(r"\033\[J"))))
    os.kill(t.pid, signal.SIGTSTP)
    check(os.WIFSTOPPED(os.waitpid(t.pid, os.WUNTRACED)[1]), "it does not stop")
    check(LEAVE in t.rest() and t.is_restored(), "it stops with the terminal changed")
    os.kill(t.pid, signal.SIGCONT)
    t.read(r"\033\[\?1049h.*\033\[J")
    os.write(t.master, b"xq")
    check(t.end() == 0 and t.rest().endswith(LEAVE) and t.is_restored(), repr(t.text[-100:]))
    t.close()
    pair.kill()


def ended(place):
    """By each signal, and where the terminal takes nothing more."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
        t = Terminal(place.wrap(0, [place.verbena, "top"]))
        t.read(r"\033\[J")
        os.kill(t.pid, number)
        check(t.end() == 0 and t.rest().endswith(LEAVE) and t.is_restored(), "%s: %r" % (number, t.text[-100:]))
        t.close()
    t = Terminal(place.wrap(0, [place.verbena, "top"]))
    t.read(r"\033\[J")
    termios.tcflow(t.slave, termios.TCOOFF)
    time.sleep(2.5)  # it writes, and waits
    os.kill(t.pid, signal.SIGTERM)
    check(t.end() == 0 and t.is_restored(), "it waits for the terminal")
    t.close()


if __name__ == "__main__":
    main({"shown": shown, "names": names, "many": many, "users": users, "liar": liar, "wrong": wrong, "once": once, "terminal": terminal,
          "ended": ended})
