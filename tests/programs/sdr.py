#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""
SDR between two processes, on a clean network and on bad ones: sdr_write_bw, where every chunk that the bitmap says is
there is compared with what was sent, and sdr_cp, which repeats what is lost.
"""
import os
import random
import re

from pair import BUILD, Pair, check, folder, main

WRITE_BW = os.path.join(BUILD, "sdr_write_bw")
CP = os.path.join(BUILD, "sdr_cp")


def write_bw(place, client, server=(), env=None):
    """Chunks sent and chunks dropped; the client's status is 1 if any was wrong."""
    pair = Pair(place, WRITE_BW, server, ["-V", *client], gid_flag="-x", env=env).go()
    _, out = pair.finish()
    found = re.search(r"^ \d.*\s(\d+)\s+(\d+)$", out, re.M)
    check(found, "%s: no result\n%s" % (pair.title, out))
    return int(found.group(1)), int(found.group(2))


def clean(place):
    """Losses of the machine's own aside, which nobody repairs here."""
    for client in (["-n", 40, "-s", 1 << 20, "-t", 4], ["-n", 200, "-s", 5000, "-w", 0, "-k", 4096],
                   ["-n", 30, "-s", 300001, "-t", 2, "-c", 1, "-g", 1], ["-n", 300, "-s", 1, "-c", 3, "-g", 16]):
        chunks, dropped = write_bw(place, client)
        check(dropped < chunks, "%s: nothing arrived" % client)


def mtu(place):
    for size in (64, 256, 1024):
        write_bw(place, ["-n", 20, "-s", 20000, "-m", size, "-k", 4 * size])


def threads(place):
    write_bw(place, ["-n", 60, "-s", 1 << 18, "-T", 2], ["-T", 3])


def rc(place):
    chunks, dropped = write_bw(place, ["-n", 60, "-s", 1 << 20, "-R"])
    check(dropped == 0, "%d of %d chunks lost on reliable connections" % (dropped, chunks))


def spoiled(spec, lossy):
    def run(place):
        chunks, dropped = write_bw(place, ["-n", 100, "-s", 100000, "-t", 8, "-k", 8192], env={"VERBENA_IMPAIR": spec})
        check(dropped < chunks, "nothing arrived")
        check(dropped or not lossy, "no chunk was lost with " + spec)
    return run


def wrong_options(place):
    """The server does what the client says, if it makes sense; else both say what is wrong."""
    for options, words in ((["-s", "0"], "--size 0"), (["-k", "3000"], "--chunk 3000: a power of two of 64"),
                           (["-m", "8192"], "--mtu 8192"), (["-b", "x"], "--batch x"), (["a", "b"], "one host")):
        p = place.start(0, [WRITE_BW, *options])
        check(p.wait(20) == 1 and words in p.output(), "%s: %s" % (options, p.output()))
    pair = Pair(place, WRITE_BW, (), ["-s", 1 << 20, "-k", 64, "-m", 4096], gid_flag="-x").go()
    check(pair.client.wait(20) == 1 and "chunks of 64" in pair.client.output(), pair.client.output())
    pair.kill()


def copied(place, bytes_, client=(), env=None):
    """sdr_cp of a file of so many bytes; it is the same at the other end."""
    work = folder()
    there, here = os.path.join(work, "there"), os.path.join(work, "here")
    with open(here, "wb") as f:
        f.write(random.Random(bytes_).randbytes(bytes_))
    os.chmod(here, 0o644)
    Pair(place, CP, [there], [*client, here], gid_flag="-x", env=env).go().finish()
    with open(here, "rb") as a, open(there, "rb") as b:
        check(a.read() == b.read(), "the copy of %d bytes differs" % bytes_)
    check(not os.path.exists(there + ".part"), "a part is left")


def cp(place):
    for bytes_ in (0, 1, 4 << 20, (4 << 20) + 1, 20000003):
        copied(place, bytes_, ["-r", 3000])


def cp_spoiled(place):
    env = {"VERBENA_IMPAIR": "drop=5%,dup=2%,reorder=5%,corrupt=1%,seed=4"}
    copied(place, 3000001, ["-k", 16384], env)
    copied(place, 1000001, ["-k", 4096, "-a", "-m", 1024], env)


def cp_killed(place):
    """A receiver without its sender says so and leaves nothing; neither does a sender without its receiver hang."""
    for victim in (0, 1):
        work = folder()
        there, here = os.path.join(work, "there"), os.path.join(work, "here")
        with open(here, "wb") as f:
            f.truncate(1 << 30)
        os.chmod(here, 0o644)
        pair = Pair(place, CP, [there], ["-r", 100, here], gid_flag="-x").go().underway()
        (pair.server, pair.client)[victim].kill()
        left = (pair.client, pair.server)[victim]
        check(left.wait(30) == 1 and "the peer is gone" in left.output(), "%s\n%s" % (pair.title, left.output()))
        if victim == 1:
            check(os.listdir(work) == ["here"], "left behind: %s" % os.listdir(work))
        pair.kill()


if __name__ == "__main__":
    main({"clean": clean, "mtu": mtu, "threads": threads, "rc": rc, "cp": cp,
          "cp_spoiled": cp_spoiled, "cp_killed": cp_killed, "wrong_options": wrong_options,
          "drop": spoiled("drop=2%,seed=1", True), "everything": spoiled("drop=1%,dup=3%,reorder=5%,corrupt=1%,seed=2", True),
          "reorder": spoiled("dup=5%,reorder=10%,seed=3", False)})
