#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""What all tests of programs rely on: that they are apart, as whoever runs them, and end soon when a program of theirs has died."""
import os
import shutil
import subprocess
import time

import fabric
from pair import BUILD, HERE, NOBODY, ROOT, Process, check, folder, is_root, main, need_network

TOOL = os.path.join(BUILD, "tests/apart")
SOON_S = 60  # less than what a pair may take


def ended(command, env=None):
    """Its status and output."""
    p = Process(command, env)
    status = p.wait(SOON_S)
    out = p.output()
    p.kill()
    return status, out


def ordinary_user(place):
    """What needs two hosts runs for a user without privileges, and what needs two users is skipped."""
    need_network()
    for words, status, said in ((["veth1500-4", "rc_common"], 0, " ok"), (["nobody4", "rc_common"], 77, "needs a second user")):
        test = [TOOL, "/usr/bin/python3", "-B", os.path.join(HERE, "pingpong.py")] + words
        got, out = ended(test, {"APART_AS": str(NOBODY)} if is_root() else {})
        check(got == status and said in out, "%s: status %s\n%s" % (words, got, out))


def alone(place):
    """Nothing is to be seen of other tests: processes, files, interfaces."""
    need_network()
    with open("/dev/shm/ours", "w"):
        status, out = ended([TOOL, "sh", "-c", "echo /proc/[0-9]* /dev/shm/* /run/*; ip -br link | cut -d' ' -f1"])
    check(out == "/proc/1 /proc/2 /dev/shm/* /run/netns\nlo\n", "status %s\n%s" % (status, out))


def killed(place):
    """Nothing outlives a test that is killed."""
    need_network()
    mark = "100.%d" % time.monotonic_ns()
    p = Process([TOOL, "sh", "-c", "setsid sleep %s & echo begun; wait" % mark])
    p.wait_text("begun")
    os.kill(p.pid, 9)
    end = time.monotonic() + SOON_S
    while mark in subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True).stdout:
        check(time.monotonic() < end, "it is still there")
        time.sleep(0.05)


def no_namespaces(place):
    """Where the kernel has none to give tests run all the same, and one after another."""
    need_network()
    script = ("echo 0 >/proc/sys/user/max_net_namespaces; for i in 1 2; do "
              "%s sh -c 'echo [ $APART; sleep 0.3; echo ]' & done; wait" % TOOL)
    status, out = ended(["unshare", "--user", "--map-root-user", "sh", "-c", script])
    said = [line for line in out.splitlines() if not line.startswith("apart: no namespaces")]
    check(said == ["[ no", "]"] * 2, "status %s\n%s" % (status, out))


def peer_failed(place):
    """Who waits for a program whose peer has failed does not wait long."""
    begun = time.monotonic()
    check(Process(["sleep", "1000"]).wait(1000, Process(["false"])) is None, "sleep ended")
    check(time.monotonic() - begun < SOON_S, "it was waited for")


def manager_failed(place):
    begun = time.monotonic()
    status, out = fabric.fabric(fabric.PAIR, fabric.manager(4, "sminfo", "--nonsense"))
    check(status == 1 and "opensm has ended" in out, "status %s\n%s" % (status, out))
    check(time.monotonic() - begun < SOON_S, "it was waited for")


def unusable_folder(place):
    """`make` says what is wrong with it."""
    for name in ("a b", "a:b"):
        where = os.path.join(folder(), name)
        os.mkdir(where)
        shutil.copy(os.path.join(ROOT, "Makefile"), where)
        status, out = ended(["make", "-C", where])
        check(status == 2 and name in out and "needs a folder without" in out, "status %s\n%s" % (status, out))


if __name__ == "__main__":
    main({case.__name__: case for case in (ordinary_user, alone, killed, no_namespaces, peer_failed, manager_failed, unusable_folder)})
