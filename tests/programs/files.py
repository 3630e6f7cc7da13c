#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""The directory that stands for /sys under `verbena run`: it exists as long as a program uses it."""
import os
import re
import signal
import time

from pair import Process, Skip, check, folder, main

NODE_TYPE = "/sys/class/infiniband/verbena0/node_type"


class Runtime:
    """A runtime directory of our own, in which no other runs leave files."""

    def __init__(self, place):
        self.place = place
        self.dir = os.path.join(folder(), "runtime")
        os.mkdir(self.dir, 0o700)
        self.env = {"XDG_RUNTIME_DIR": self.dir}

    def start(self, *command):
        return self.place.start(0, command, self.env)

    def run(self, *command):
        status, out = self.place.run(0, command, env=self.env)
        check(status == 0, "%s: status %s\n%s" % (" ".join(command), status, out))
        return out

    def sleeper(self):
        p = self.start("sh", "-c", "echo ready; sleep 60; true")
        p.wait_text("ready")
        return p

    def expect(self, count, when):
        names = os.listdir(self.dir)
        check(len(names) == count, "%s: %s" % (when, names))


def gone_with_the_last(place):
    r = Runtime(place)
    check("CA" in r.run("cat", NODE_TYPE), "not our file")
    r.expect(0, "after one program")
    r.run("ibv_devices")
    r.expect(0, "after another")
    r.run("sh", "-c", "cat %s; true" % NODE_TYPE)
    r.expect(0, "after a shell, which ends by _exit()")
    r.run("/usr/bin/python3", "-c", "import subprocess, os; subprocess.run(['true']); os._exit(0)")
    r.expect(0, "after a program with a child")
    first, second = r.sleeper(), r.sleeper()
    r.expect(1, "two share one")
    first.kill()
    check("CA" in r.run("cat", NODE_TYPE), "not our file")
    r.expect(1, "one is left")
    second.signal(signal.SIGKILL)
    second.kill()
    r.run("true")
    r.expect(0, "killed, but another has run since")


def left_by_the_dead(place):
    """Directories with other content, half made, of another user, and unrelated ones."""
    r = Runtime(place)
    names = ["verbena-%d%s" % (os.getuid(), rest) for rest in ("-0123456789abcdef", ".abcdef", ".old.abcdef")]
    others = ["verbena-%d-0123456789abcdef" % (os.getuid() + 1), "verbena-%d0-1" % os.getuid(), "mine"]
    for name in names + others:
        os.makedirs(os.path.join(r.dir, name, "class", "infiniband"), 0o700)
        with open(os.path.join(r.dir, name, "class", "file"), "w") as f:
            f.write("text")
        os.chmod(os.path.join(r.dir, name), 0o700)
    p = r.sleeper()
    left = set(os.listdir(r.dir))
    check(not left & set(names), "not cleaned: %s" % left)
    check(left >= set(others), "not ours to clean: %s" % left)
    check(len(left) == len(others) + 1, str(left))
    p.kill()


def children_keep_it(place):
    r = Runtime(place)
    out = os.path.join(r.dir, "..", "out")
    p = r.start("sh", "-c", "(sleep 0.5; cat %s >%s.new; mv %s.new %s) >/dev/null 2>&1 & exit 0"
                % (NODE_TYPE, out, out, out))
    check(p.wait(15) == 0, p.output())
    r.expect(1, "a child is left")
    end = time.monotonic() + 20
    while not os.path.exists(out) and time.monotonic() < end:
        time.sleep(0.02)
    with open(out) as f:
        check("CA" in f.read(), "not our file")
    while os.listdir(r.dir) and time.monotonic() < end:
        time.sleep(0.02)
    r.expect(0, "the child has ended")
    p.kill()


def closed_descriptors(place):
    """A program that passes no descriptors to its children: they mark the directory as used themselves."""
    r = Runtime(place)
    out = r.run("/usr/bin/python3", "-c",
                "import subprocess as s; s.run(['true'], close_fds=True); "
                "print(s.run(['cat', '%s'], close_fds=True, capture_output=True, text=True).stdout)" % NODE_TYPE)
    check("CA" in out, out)
    r.expect(0, "after it")


def no_room(place):
    """/dev/shm is full: /tmp will do."""
    if os.getuid():
        raise Skip("needs root")
    p = Process(["unshare", "-m", "--propagation", "private", "sh", "-ec",
                 "mount -t tmpfs -o size=64k,nr_inodes=20 none /dev/shm; "
                 "%s run sh -c 'echo at $VERBENA_SYSFS; ibv_devices'; ls -a /dev/shm" % place.verbena])
    status = p.wait(15)
    out = p.output()
    p.kill()
    at = re.search(r"^at (/tmp/verbena-\S+)$", out, re.M)
    check(status == 0 and at and "verbena0" in out, "status %s\n%s" % (status, out))
    check(out.count("verbena-") == 1 and not os.path.exists(at.group(1)), "something is left:\n" + out)


def few_descriptors(place):
    """A program that may open 40 files runs; one that may open too few gets a message about the limit."""
    def limited(count):
        p = Process(["prlimit", "--nofile=%d" % count, place.verbena, "run", "ibv_devinfo"])
        status = p.wait(15)
        out = p.output()
        p.kill()
        return status, out

    status, out = limited(40)
    check(status == 0 and "PORT_ACTIVE" in out, "status %s\n%s" % (status, out))
    status, out = limited(12)
    check(status not in (0, None) and "ulimit -n" in out and "12" in out, "status %s\n%s" % (status, out))


if __name__ == "__main__":
    main({"gone_with_the_last": gone_with_the_last, "left_by_the_dead": left_by_the_dead,
          "children_keep_it": children_keep_it,
          "closed_descriptors": closed_descriptors, "no_room": no_room, "few_descriptors": few_descriptors})
