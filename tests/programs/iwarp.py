#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""
iWARP: Debian's programs find each other through rdma_cm over MPA, and move data over TCP.
"""
import os
import re
import signal

from pair import BUILD, TIME_S, check, main
from rdmacm import talk

ENV = {"VERBENA_PROTOCOL": "iwarp"}


def devinfo(place):
    status, out = place.run(0, ["ibv_devinfo"], env=ENV)
    check(status == 0 and "verbena_iw0" in out and "iWARP (1)" in out, "ibv_devinfo: %s\n%s" % (status, out))


def rping(place):
    at = place.addresses[0]
    outs = talk(place, ["rping", "-s", "-a", at, "-C", "10", "-v", "-V"],
                ["rping", "-c", "-a", at, "-C", "10", "-v", "-V"], ENV)
    for out in outs:
        check(out.count("ping data") == 10, "not ten pings:\n%s" % out)


def ucmatose(place):
    at = place.addresses[0]
    options = ["-c", "20", "-C", "50", "-S", "4096"]
    talk(place, ["ucmatose", "-b", at] + options, ["ucmatose", "-s", at] + options, ENV)


def perftest(place):
    at = place.addresses[0]
    for words in (["ib_write_bw", "-s", "65536", "-n", "100"], ["ib_write_bw", "-s", "1048576", "-n", "20", "-b"],
                  ["ib_read_bw", "-s", "65536", "-n", "100"], ["ib_send_bw", "-s", "65536", "-n", "100"],
                  ["ib_write_lat", "-n", "20"]):
        words = words[:1] + ["-R", "-F"] + words[1:]
        talk(place, words, words + [at], ENV)


def no_crc(place):
    at = place.addresses[0]
    words = ["ib_write_bw", "-R", "-F", "-s", "65536", "-n", "100"]
    talk(place, words, words + [at], {**ENV, "VERBENA_IWARP_CRC": "off"})


def departs(place):
    """The bytes of complete WRITEs leave before their process does, though the server reads nothing meanwhile."""
    depart, port = os.path.join(BUILD, "tests/programs/depart"), "9003"
    s = place.start(0, [depart, place.addresses[0], port], ENV)
    s.wait_text("listening")
    c = place.start(1, [depart, "-c", place.addresses[0], port], ENV)
    c.wait_text("complete", TIME_S)
    s.signal(signal.SIGCONT)
    check(c.wait(TIME_S) == 0 and s.wait(TIME_S) == 0, "they do not end well:\n%s\n%s" % (c.output(), s.output()))
    complete, whole = (int(re.search(r"(\d+) (?:complete|whole)", p.output())[1]) for p in (c, s))
    # The one after the last may have got there.
    check(whole >= complete > 1, "%d complete, %d whole" % (complete, whole))


def nobody(place):
    """Where nobody listens the client is told at once."""
    status, out = place.run(1, ["rping", "-c", "-a", place.addresses[0], "-p", "9002", "-C", "3"], env=ENV)
    check(status != 0 and "REJECTED" in out, "refused otherwise: %s\n%s" % (status, out))


if __name__ == "__main__":
    main({"devinfo": devinfo, "rping": rping, "ucmatose": ucmatose, "perftest": perftest, "no_crc": no_crc,
          "departs": departs, "nobody": nobody})
