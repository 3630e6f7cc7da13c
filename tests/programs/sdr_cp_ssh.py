#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""
sdr_cp that starts its other end on another host, as scp and rsync do: through sshd, and through a command that stands for
ssh where sshd cannot run. The other end runs in the second place's namespace.
"""
import os
import random
import re
import subprocess
import time

from pair import Process, Skip, check, folder, is_root, main, sh, tcp_port
from sdr_cp import CP, LOSSY, noise, parts, plant, same, write

SSHD = "/usr/sbin/sshd"


class Host:
    """The host where the other end is started, and how: a shell, and a folder that paths begin in."""

    def __init__(self, place, env=None):
        self.place = place
        self.home = folder()
        self.env = {**place.env[0], **(env or {})}
        words = " ".join("%s='%s'" % e for e in self.env.items())
        self.path = "cd %s; exec env %s %s run %s" % (self.home, words, place.verbena, CP)
        # What ssh does with its words: the second and those behind it are a command line for a shell there.
        self.shell = os.path.join(folder(), "shell")
        enter = place.wrap(0, [])
        write(self.shell, ("#!/bin/sh\nshift\nexec %s sh -c \"$*\"\n" % " ".join(enter)).encode(), 0o755)
        self.name = "host"

    def start(self, *words, env=None):
        return self.place.start(1, [CP, "-e", self.shell, "--remote-path", self.path, *words], {**self.env, **(env or {})})

    def copy(self, *words, status=0):
        p = self.start(*words)
        got = p.wait(120)
        check(got == status, "status %s: %s\n%s" % (got, words, p.output()))
        return p.output()

    def at(self, path):
        return os.path.join(self.home, path)


class SshHost(Host):
    """With Debian's sshd, which knows one key and one user: this one."""

    def __init__(self, place, env=None):
        if not os.path.exists(SSHD):
            raise Skip("needs sshd")
        if not is_root():
            raise Skip("needs root, for sshd")
        super().__init__(place, env)
        work = folder()
        os.chmod(work, 0o700)
        os.makedirs("/run/sshd", exist_ok=True)
        for key in ("host", "user"):
            sh("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", os.path.join(work, key))
        port = tcp_port()
        conf = os.path.join(work, "conf")
        write(conf, ("HostKey %s/host\nAuthorizedKeysFile %s/user.pub\nStrictModes no\nUsePAM no\nPidFile none\n"
                     "PermitRootLogin yes\nUseDNS no\nPort %d\n" % (work, work, port)).encode())
        self.sshd = Process(place.wrap(0, [SSHD, "-D", "-e", "-f", conf]))
        self.sshd.wait_listen(port)
        self.shell = "ssh -F none -i %s/user -o BatchMode=yes -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o LogLevel=ERROR -p %d" % (work, port)
        self.name = "root@" + place.addresses[0] if place.spaces[0] else "root@127.0.0.1"


def both_ways(host):
    """A tree goes there and comes back, and what is there is not sent again."""
    here, back = os.path.join(folder(), "here"), os.path.join(folder(), "back")
    plant(here)
    host.copy("-r", 3000, here, host.name + ":a copy; of 'it'")
    same(here, host.at("a copy; of 'it'"))
    host.copy("-r", 3000, host.name + ":a copy; of 'it'", back)
    same(here, back)
    out = host.copy(host.name + ":" + host.at("a copy; of 'it'"), back)
    check(re.search("^0 bytes, ", out, re.M), out)


def names(host):
    """A file goes into a folder that is there, and into the one that logins begin in by each of its names."""
    here = folder()
    write(os.path.join(here, "one"), noise(1, 5000))
    for there, name in ((":", "one"), (":~/", "one"), (":~/two", "two"), (":./three", "three")):
        host.copy(os.path.join(here, "one"), host.name + there)
        with open(host.at(name), "rb") as f:
            check(f.read() == noise(1, 5000), "%s is another file" % there)


def shell(place):
    host = Host(place, LOSSY)
    both_ways(host)
    names(host)


def sshd(place):
    both_ways(SshHost(place, LOSSY))


def refused(place):
    """What is wrong at either end, or between them, is said at the end that the user sees, once."""
    host = Host(place)
    here = os.path.join(folder(), "here")
    write(here, b"x")
    for words, said in (((here, "host:no/such/folder"), "the peer says: no/such/folder: No such file or directory"),
                        (("host:nothing", here), "the peer says: nothing: No such file or directory"),
                        ((here + "x", "host:x"), "herex: No such file or directory"),
                        (("host:a", "host:b"), "only one of the two"),
                        (("host:a",), "where it is copied to is wanted"),
                        (("--", "-ohost:a", here), "does not begin with '-'"),
                        (("--remote-path", "/nothing", here, "host:x"), "ended with status 127, and no sdr_cp has answered"),
                        (("--remote-path", "echo Welcome to this fine machine;", here, "host:x"), "not sdr_cp has answered, but something else"),
                        (("-e", "false", here, "host:x"), "'false' ended with status 1"),
                        (("-e", " ", here, "host:x"), "--rsh: a command is wanted"),
                        (("-e", "/no/such", here, "host:x"), "/no/such: No such file"),
                        (("--server", here), "a file, and where to send it or fetch it, are wanted"),
                        (("--server",), "for the end that another sdr_cp starts"),
                        ((here, "host:" + "x" * 5000), "File name too long")):
        out = host.copy(*words, status=1)
        check(out.count(said) == 1, "'%s' is not said, but: %s" % (said, out))
    out = host.copy("--remote-path", host.path + " -x 200", here, "host:x", status=1)
    check("the peer says: device : Invalid argument" in out, out)
    check(not os.listdir(host.home), "something was written: %s" % os.listdir(host.home))


def running(host):
    """The processes of the other end."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open("/proc/%s/cmdline" % pid, "rb") as f:
                words = f.read().split(b"\0")
            if b"--server" in words and words[0].endswith(b"sdr_cp") and os.readlink("/proc/%s/cwd" % pid) == host.home:
                found.append(int(pid))
        except OSError:
            continue
    return found


def ends(place):
    """Either end, or the shell between them, is killed at any moment: what is left says so and ends, no file has a name that
    it has not earned, and the same command goes on."""
    host = Host(place)
    here = os.path.join(folder(), "here")
    os.mkdir(here)
    for i in range(4):
        write(os.path.join(here, "f%d" % i), noise(i, 6 << 20))
    for n in range(9):
        p = host.start("-r", 300, here, "host:copy")
        time.sleep(random.uniform(0, 1))
        victim = n % 3
        if victim == 0:
            p.kill()
        elif victim == 1:
            for pid in running(host)[n // 3 % 2:][:1]:  # itself, and the one that copies for it
                os.kill(pid, 9)
        else:
            subprocess.run(["pkill", "-9", "-P", str(p.pid), "sh"], check=False)
        check(p.wait(60) is not None, "the end that is left stays\n" + p.output())
        stop = time.monotonic() + 60
        while running(host) and time.monotonic() < stop:
            time.sleep(0.05)
        check(not running(host), "the other end stays")
        for name in os.listdir(host.at("copy")) if os.path.isdir(host.at("copy")) else ():
            check(name.startswith(".sdr_cp-") or os.path.getsize(host.at("copy/" + name)) == 6 << 20, "%s is not whole" % name)
    host.copy("-r", 3000, here, "host:copy")
    same(here, host.at("copy"))
    check(not parts(host.home), "a part is left")


if __name__ == "__main__":
    main({"shell": shell, "sshd": sshd, "refused": refused, "ends": ends})
