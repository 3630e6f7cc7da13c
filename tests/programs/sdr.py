#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""
SDR between two processes: sdr_write_bw, where every chunk that the bitmap says is there is compared with what was sent,
on a clean network and on bad ones.
"""
import os
import re

from pair import BUILD, Pair, check, main

WRITE_BW = os.path.join(BUILD, "sdr_write_bw")


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


if __name__ == "__main__":
    main({"clean": clean, "mtu": mtu, "threads": threads, "rc": rc, "wrong_options": wrong_options,
          "drop": spoiled("drop=2%,seed=1", True), "everything": spoiled("drop=1%,dup=3%,reorder=5%,corrupt=1%,seed=2", True),
          "reorder": spoiled("dup=5%,reorder=10%,seed=3", False)})
