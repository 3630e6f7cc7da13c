#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""
What processes of this host try on a running program: those of another user from a user namespace that has no
number for anybody, those of its own user that are no member of its group. Each attack is one that worked once.
"""
import json
import mmap
import os
import re
import socket
import struct
import subprocess
import sys

from pair import Process, Skip, check, clean_env, folder, main, pingpong

VICTIM, ATTACKER = 12001, 12002
HELLO, INFO, FETCH, FDS, ADOPT, ACK, STAT, STAT_FD, FORWARD = range(1, 10)
PORT = 4791


# ---- the attacker's tools: the messages of a group's members -----------------------------------------

def message(version, kind, slot=0, first=0, count=0, held=0, lanes=()):
    """As group_msg.h says, of any version: the first had no digest behind the lanes, and those before 6 half as many lanes."""
    m = b"Vb" + struct.pack(">HBBHHHHH", version, kind, len(lanes), slot, first, count, held, 0)
    for family, port in lanes:
        m += struct.pack(">BBH", family, 0, port)
    return m.ljust(32 if version == 1 else 40 if version < 6 else 56, b"\0")


class Link:
    """A connection to any member; says hello to learn its version."""

    def __init__(self, uid, slot=0):
        self.s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.s.settimeout(3)
        self.s.connect("\0verbena.%d.%d.%s" % (uid, PORT, slot))
        self.version = 3
        self.say(HELLO)
        got = self.hear()
        if not got or self.version != struct.unpack(">H", got[0][2:4])[0]:
            # It has closed the connection, but sent its version unless that is 1.
            self.version = struct.unpack(">H", got[0][2:4])[0] if got else 1
            self.s.close()
            self.s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            self.s.settimeout(3)
            self.s.connect("\0verbena.%d.%d.%s" % (uid, PORT, slot))

    def say(self, kind, fds=(), **fields):
        try:
            socket.send_fds(self.s, [message(self.version, kind, **fields)], list(fds))
        except OSError:
            pass

    def hear(self):
        """(bytes, descriptors), or None when the member hung up or says nothing."""
        try:
            data, fds, _, _ = socket.recv_fds(self.s, 16384, 253)
        except OSError:
            return None
        return (data, fds) if data else None

    def fetch(self):
        """The UDP sockets that the member hands out."""
        self.say(FETCH)
        fds = []
        self.s.settimeout(0.5)
        while True:
            got = self.hear()
            if not got or got[0][4] != FDS or not got[1]:
                return fds
            fds += got[1]

    def stat_fd(self):
        self.say(STAT)
        got = self.hear()
        return got[1][0] if got and got[1] else None


# ---- attacks: each prints SUCCEEDED or refused -----------------------------------------------------

def attack_fetch(uid):
    """Takes every socket of the victim."""
    return bool(Link(int(uid)).fetch())


def attack_join(uid):
    """Takes its counters, which show what it does."""
    return Link(int(uid)).stat_fd() is not None


def attack_counters(uid):
    """Writes them."""
    fd = Link(int(uid)).stat_fd()
    try:
        page = mmap.mmap(fd, os.fstat(fd).st_size)
        page[64:72] = b"\xff" * 8
        return True
    except (OSError, PermissionError):
        pass
    try:
        os.pwrite(fd, b"\xff" * 8, 64)
        return True
    except OSError:
        return False


def attack_adopt(uid):
    """Makes a member adopt sockets that are no joiner's."""
    link = Link(int(uid))
    lanes = [(f, p) for p in (PORT, PORT + 3) for f in (0, 1)]
    sockets = []
    for family, port in lanes:
        s = socket.socket(socket.AF_INET6 if family else socket.AF_INET, socket.SOCK_DGRAM)
        if family:
            s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        s.bind(("::" if family else "0.0.0.0", port))
        sockets.append(s)
    if link.version == 1:
        link.say(ADOPT, fds=[s.fileno() for s in sockets], slot=9, first=1, count=1, held=2, lanes=lanes)
        got = link.hear()
        return bool(got and got[0][4] == ACK)
    link.say(ADOPT, fds=[sockets[0].fileno()], slot=9, first=1, count=1, held=2, lanes=lanes)
    link.say(ADOPT, slot=9, lanes=lanes)
    got = link.hear()
    return bool(got and got[0][4] == ACK)


ATTACKS = {f.__name__: f for f in (attack_fetch, attack_join, attack_counters, attack_adopt)}


def lend(uid, page):
    """Poses as a member, and lends a page of counters that it can truncate while it is being read."""
    s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    s.bind("\0verbena.%s.%d.126" % (uid, PORT))
    s.listen(8)
    fd = os.memfd_create("page", os.MFD_ALLOW_SEALING)
    with open(page, "rb") as f:
        os.write(fd, f.read())
    print("ready", flush=True)
    while True:
        c, _ = s.accept()
        version = struct.unpack(">H", c.recv(16384)[2:4])[0]
        socket.send_fds(c, [message(version, STAT_FD, slot=126)], [fd])
        c.close()


# ---- the victim's side -----------------------------------------------------------------------------

def as_uid(uid, command, unmapped=False):
    """Under another user; unmapped: in a user namespace without numbers for other users."""
    return (["setpriv", "--reuid=%d" % uid, "--regid=%d" % uid, "--clear-groups"] +
            (["unshare", "--user"] if unmapped else []) + command)


def spaced(place, command):
    return ["ip", "netns", "exec", place.spaces[0]] + command


def need(place):
    if place.user is None:
        raise Skip("needs users and a namespace of its own: a nobody place")
    r = subprocess.run(as_uid(ATTACKER, ["true"], True), capture_output=True)
    if r.returncode:
        raise Skip("no user namespaces: " + r.stderr.decode().strip())


class Victim:
    """A server that waits for its client, as that user."""

    def __init__(self, place, uid, unmapped=False):
        self.place = place
        self.p = Process(spaced(place, as_uid(uid, [place.verbena, "run", "ibv_rc_pingpong", "-g", "0",
                                                     "-p", "18600"], unmapped)))
        self.p.wait_listen(18600)

    def attacked(self, attack, uid, by, unmapped=False):
        """The result of an attack on the victim, whose uid is `uid`."""
        p = Process(spaced(self.place, as_uid(by, ["/usr/bin/python3", "-B", self.script(), attack, str(uid)],
                                              unmapped)))
        status = p.wait(20)
        out = p.output()
        p.kill()
        check(status == 0 and re.search("SUCCEEDED|refused", out), "%s: status %s\n%s" % (attack, status, out))
        check(self.p.running(), "the victim died of %s:\n%s" % (attack, self.p.output()))
        return "SUCCEEDED" in out

    def script(self):
        return readable(self.place)

    def kill(self):
        self.p.kill()


def readable(place):
    """This file and pair.py, where every user can read them."""
    if not hasattr(place, "copy"):
        where = folder()
        here = os.path.dirname(os.path.abspath(__file__))
        for name in ("hostile.py", "pair.py"):
            with open(os.path.join(here, name)) as f, open(os.path.join(where, name), "w") as g:
                g.write(f.read())
        place.copy = os.path.join(where, "hostile.py")
    return place.copy


def unmapped(place):
    """Neither of them has a number in its user namespace, so they look alike to each other."""
    need(place)
    v = Victim(place, VICTIM, True)
    won = [a for a in ("attack_fetch", "attack_join") if v.attacked(a, 65534, ATTACKER, True)]
    check(not won, "another user succeeded: %s" % won)
    v.kill()


def nobody(place):
    """The victim has a number, its own; the attacker looks like it in the attacker's eyes alone."""
    need(place)
    v = Victim(place, 65534)
    won = [a for a in ("attack_fetch", "attack_join") if v.attacked(a, 65534, ATTACKER, True)]
    check(not won, "another user succeeded: %s" % won)
    v.kill()
    # And nobody's programs still meet.
    pingpong(place, "ibv_rc_pingpong", iters=100)


def another_user(place):
    need(place)
    v = Victim(place, VICTIM)
    won = [a for a in ("attack_fetch", "attack_join") if v.attacked(a, VICTIM, ATTACKER)]
    check(not won, "another user succeeded: %s" % won)
    v.kill()


def counters(place):
    """A process of the same user that is not a joiner."""
    need(place)
    v = Victim(place, VICTIM)
    check(not v.attacked("attack_counters", VICTIM, VICTIM), "counters were forged")
    v.kill()


def adopt(place):
    need(place)
    v = Victim(place, VICTIM)
    check(not v.attacked("attack_adopt", VICTIM, VICTIM), "a stranger's socket was adopted")
    v.kill()


def stat(place):
    """A page that could be truncated under its reader, which would be killed, is not read."""
    need(place)
    v = Victim(place, VICTIM)
    page = os.path.join(os.path.dirname(readable(place)), "page")
    p = Process(spaced(place, as_uid(VICTIM, ["/usr/bin/python3", "-B", readable(place), "save", str(VICTIM), page])))
    check(p.wait(20) == 0, p.output())
    p.kill()
    lender = Process(spaced(place, as_uid(VICTIM, ["/usr/bin/python3", "-B", readable(place), "lend", str(VICTIM),
                                                   page])))
    lender.wait_text("ready")
    r = subprocess.run(spaced(place, as_uid(VICTIM, [place.verbena, "stat", "--json"])), capture_output=True,
                       text=True, env=clean_env())
    check(r.returncode == 0, "status %d\n%s" % (r.returncode, r.stderr))
    shown = [one["pid"] for one in json.loads(r.stdout)["processes"]]
    check(v.p.pid in shown, "the others are not shown:\n%s%s" % (r.stdout, r.stderr))
    check(len(shown) == 1, "a page was read that its lender can cut off: %s" % shown)
    lender.kill()
    v.kill()


if __name__ == "__main__":
    if sys.argv[1] in ATTACKS:
        try:
            won = ATTACKS[sys.argv[1]](sys.argv[2])
        except OSError as e:
            print(e)
            won = False
        print("SUCCEEDED" if won else "refused")
    elif sys.argv[1] == "save":
        with open(sys.argv[3], "wb") as f:
            f.write(os.pread(Link(int(sys.argv[2])).stat_fd(), 1 << 20, 0))
    elif sys.argv[1] == "lend":
        lend(sys.argv[2], sys.argv[3])
    else:
        main({"unmapped": unmapped, "nobody": nobody, "another_user": another_user, "counters": counters,
              "adopt": adopt, "stat": stat})
