#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""
Whole programs that go to another network namespace: `verbena move --restore`. What it refuses, and what it does when a step
fails, is tested with a criu of our own, which fails at will; the rest with the real one, where 'criu check' says that it
works: that of PATH, or the one that the variable CRIU names.
"""
import os
import re
import shutil
import signal
import subprocess

from moves import MOVE, at_home, by_address, counters, goes_on, received, wait_for
from pair import Failure, Pair, Process, Skip, check, clean_env, folder, main

CRIU = os.environ.get("CRIU") or shutil.which("criu")


class Named(Process):
    """Its output goes to a file with a name, and so is the copy's."""

    def __init__(self, command, env):
        self.path = os.path.join(folder(), "output")
        super().__init__(["sh", "-c", 'exec "$@" >' + self.path + " 2>&1", "sh"] + command, env)

    def output(self):
        with open(self.path, errors="replace") as f:
            return f.read()


class Ends(Pair):
    """The client is in the mount namespace of the tool: `ip netns exec` would make it another one, with files from outside."""

    def go(self):
        self.server.wait_listen(self.port)
        words, env = self._client
        self.client = Named(["nsenter", "--net=/run/netns/b", self.place.verbena, "run"] + [str(w) for w in words], env)
        return self


class Copy:
    """A program that was restored: nobody's child here, and of another id."""

    def __init__(self, pid, log):
        self.pid, self.log = pid, log

    def running(self):
        return os.path.exists("/proc/%d" % self.pid)

    def output(self):
        return self.log()


def pingpongs(place, **kw):
    at_home(place)
    return Ends(place, "ibv_rc_pingpong", ["-c", "-n", "1000000000"], **kw).go().underway()


def move(place, pid, to="c", criu=None, options=("--with-addresses",), path=None, env=None):
    """(status, standard output, standard error) of the command."""
    words = [place.verbena, "move", str(pid), "--to", to, "--restore"] + list(options)
    where = path if path is not None else (os.path.dirname(criu) + ":" if criu else "") + os.environ["PATH"]
    r = subprocess.run(words, capture_output=True, text=True, timeout=120, cwd="/",
                       env=clean_env({**place.env[1], "PATH": where, **(env or {})}))
    return r.returncode, r.stdout, r.stderr


# ---- a criu that fails ---------------------------------------------------------------------------

FAKE = """#!/bin/sh
echo "$1" >> %(calls)s
case "$1" in %(fails)s) echo "Error (made.up:1): no $1 today" >&2; exit 1;; esac
[ "$1" = dump ] && kill -STOP $3
exit 0
"""


class Fake:
    def __init__(self, fails):
        where = folder()
        self.path, self.calls = os.path.join(where, "criu"), os.path.join(where, "calls")
        with open(self.path, "w") as f:
            f.write(FAKE % {"calls": self.calls, "fails": fails})
        os.chmod(self.path, 0o755)

    def called(self):
        if not os.path.exists(self.calls):
            return []
        with open(self.calls) as f:
            return f.read().split()


def has_address(place, space):
    shown = subprocess.run(["ip", "-n", space, "addr"], capture_output=True, text=True).stdout
    return place.addresses[1] + "/" in shown


def is_at_home(place, pair):
    goes_on(pair)
    check(has_address(place, "b") and not has_address(place, "c"), "the address is not where it was")


def state(pid):
    with open("/proc/%d/stat" % pid) as f:
        return f.read().rsplit(")", 1)[1].split()[0]


def fails(place):
    """At each step: the program goes on where it was, its address stays, and it is said which step failed and where that is written."""
    pair = pingpongs(place)
    pid = pair.client.pid
    for step, calls in (("check", ["check"]), ("dump", ["check", "dump"]), ("restore", ["check", "dump", "restore"]),
                        ("never", ["check", "dump", "restore"])):
        fake, kept = Fake(step), folder()
        status, out, err = move(place, pid, criu=fake.path, env={"TMPDIR": kept})
        check(status == 125 and not out, "status %s\n%s%s" % (status, out, err))
        check(fake.called() == calls, "%s: criu was called for %s" % (step, fake.called()))
        if step == "never":
            check("has left no process" in err, err)
        else:
            check("no %s today" % step in err, err)
        check(("goes on where it was" in err) == (step != "check"), err)
        if step == "check":
            check(not os.listdir(kept), "something is left: %s" % os.listdir(kept))
        elif step != "never":
            log = re.search(r"\(all of it is in (\S+)\)", err)
            check(log, err)
            with open(log.group(1)) as f:
                check("no %s today" % step in f.read(), "it is not in the log")
        is_at_home(place, pair)
    status, out, err = move(place, pid, path="/nonexistent")
    check(status == 125 and "there is none in PATH" in err, err)
    is_at_home(place, pair)


def refused(place):
    """What can be known is said before anything is frozen, and before criu dumps anything."""
    fake = Fake("none")
    pair = pingpongs(place)
    pid = pair.client.pid
    for words, expected in (
            ((pid, "b"), "in that network namespace already"),
            ((pid, "nowhere"), "nowhere"),
            ((pid, "/etc/passwd"), "no network namespace"),
            ((999999, "c"), "does not run on Verbena"),
            ((os.getpid(), "c"), "does not run on Verbena")):
        status, _, err = move(place, *words, criu=fake.path)
        check(status == 125 and expected in err, "%s: %s %s" % (words, status, err))
    status, _, err = move(place, pid, criu=fake.path, options=())
    check(status == 125 and "--with-addresses takes it along" in err, err)
    subprocess.run(["ip", "netns", "add", "d"], check=True)
    status, _, err = move(place, pid, "d", criu=fake.path)
    check(status == 125 and "no interface there" in err, err)
    status, _, err = move(place, pid, criu=fake.path, env={"TMPDIR": "/nonexistent"})
    check(status == 125 and "no folder" in err, err)

    place.tool(0, "move", str(pid), "--to", "c", "--with-addresses")
    status, _, err = move(place, pid, "a", criu=fake.path)
    check(status == 125 and "in another network namespace than the program" in err, err)
    place.tool(0, "move", str(pid), "--to", "b", "--with-addresses")
    check("dump" not in fake.called(), fake.called())
    is_at_home(place, pair)

    parent = place.start(1, ["sh", "-c", "ibv_asyncwatch & exec ibv_asyncwatch"])
    wait_for(lambda: str(parent.pid) in place.tool(1, "stat"), "it does not run")
    status, _, err = move(place, parent.pid, criu=fake.path)
    check(status == 125 and "has children" in err, err)
    parent.kill()


# ---- the real one --------------------------------------------------------------------------------

def need_criu():
    if not CRIU:
        raise Skip("criu is not installed")
    for words in (["check"], ["check", "--unprivileged"]):
        r = subprocess.run([CRIU] + words, capture_output=True, text=True, cwd="/")
        if r.returncode == 0:
            return
    raise Skip("criu check fails: %s" % (r.stdout + r.stderr).strip())


def restore_at(place, pair, to):
    """The client is the copy then."""
    before, pid = pair.client, pair.client.pid
    status, out, err = move(place, pid, to, criu=CRIU)
    check(status == 0, "status %s\n%s%s" % (status, out, err))
    said = re.fullmatch(r"process %d is process (\d+) now\n" % pid, out)
    check(said, out + err)
    check(not os.path.exists("/proc/%d" % pid) or state(pid) == "Z", "the program is still there")
    pair.client = Copy(int(said.group(1)), before.output)
    check(has_address(place, to) and not has_address(place, "bc"["cb".index(to)]), "the address is not there alone")
    goes_on(pair)


def there_and_back(place):
    """A program of which nothing is left where it was, four times."""
    need_criu()
    pair = pingpongs(place)
    for to in "cbcb":
        restore_at(place, pair, to)


def judged(place):
    """Each message once, in order, with its bytes, under a program whose TCP connection goes along."""
    need_criu()
    place.meet = "10.77.0.1"
    for options, env in (([], {}), (["-e"], {})):
        at_home(place)
        pair = Ends(place, MOVE, options, env=env).go().underway()
        log = pair.client.output
        other = Process(["ip", "netns", "exec", "c", place.verbena, "run", "ibv_asyncwatch"])
        wait_for(lambda: "asyncwatch" in subprocess.run(["ip", "netns", "exec", "c", place.verbena, "stat"], capture_output=True,
                                                        text=True).stdout, "it does not run")
        status, _, err = move(place, pair.client.pid, criu=CRIU)
        check(status == 125 and "criu restore of process" in err, err)
        is_at_home(place, pair)
        other.kill()
        for to in "cb":
            restore_at(place, pair, to)
        os.kill(pair.client.pid, signal.SIGINT)
        check(pair.server.wait(60) == 0, pair.server.output() + log())
        wait_for(lambda: "messages" in log(), "the copy says nothing")
        check(", 0 messages" not in log() and "failed" not in log(), log())


def piped(place):
    """A program that writes to another one goes on writing to it."""
    need_criu()
    at_home(place)
    server = place.start(0, ["ibv_rc_pingpong", "-n", "20000", "-p", "18515", "-g", place.gid_index(0)])
    server.wait_listen(18515)
    words = ["nsenter", "--net=/run/netns/b", place.verbena, "run", "ibv_rc_pingpong", "-n", "20000", "-p", "18515", "-g", str(place.gid_index(1)),
             place.meet]
    with subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=clean_env(), cwd="/", text=True,
                          start_new_session=True) as client:
        wait_for(lambda: str(client.pid) in place.tool(1, "stat"), "it does not run")
        status, out, err = move(place, client.pid, criu=CRIU)
        if "over" in err or "does not run" in err:
            raise Skip("it was over too soon")
        check(status == 0, "status %s\n%s%s" % (status, out, err))
        told = client.stdout.read()
    check("20000 iters" in told, told)
    check(server.wait(60) == 0, server.output())


if __name__ == "__main__":
    main({"fails": fails, "refused": refused, "there_and_back": there_and_back, "judged": judged, "piped": piped})
