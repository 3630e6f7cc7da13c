#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Two links in one subnet: what is between the GIDs of the second goes over the second, whatever becomes of the first."""
import json
import time

from pair import Pair, check, long_enough, main, sh
from veroce_net import received

WIRES = ["rocev2", "veroce"]


def counted(place, end, pid):
    """{interface: packets sent}, as the program itself counts them."""
    found = json.loads(place.tool(end, "stat", "--json", str(pid)))["processes"]
    return {f["name"]: f["tx_packets"] for f in found[0]["interfaces"]}


def by_source(place):
    for wire in WIRES:
        long_enough(lambda s: by_source_while(place, wire, s), 1, 5, 30)


def by_source_while(place, wire, seconds):
    before = [received(place, end) for end in (0, 1)]
    pair = Pair(place, "ib_write_bw", ["-F", "-D", seconds], gid_flag="-x", env={"VERBENA_PROTOCOL": wire}).go()
    pair.underway(0.1, 1000)
    for end, p in enumerate((pair.server, pair.client)):
        by = counted(place, end, p.pid)
        check(list(by) == [place.links[1][end]] and by[place.links[1][end]] > 0, "packets of %s by interface: %s" % (pair.title, by))
    first, second = (received(place, 0)[n] - before[0][n] for n in (0, 1))
    check(second > 500 and first < second / 10, "the first link brought %d packets, the second %d" % (first, second))
    pair.finish()


def pulled(place):
    """The first link goes down in mid-transfer, at the server's end, and the second does not notice."""
    for wire in WIRES:
        long_enough(lambda s: pulled_while(place, wire, s), 5, 20, 60)


def pulled_while(place, wire, seconds):
    pair = Pair(place, "ib_write_bw", ["-F", "-D", seconds, "-u", 16], gid_flag="-x", env={"VERBENA_PROTOCOL": wire}).go()
    pair.underway(0.1, 1000)
    sh("ip", "-n", place.spaces[0], "link", "set", place.links[0][0], "down")
    try:
        time.sleep(0.5)
        was = received(place, 0)[1]
        time.sleep(0.5)
        pair.still_runs()
        check(received(place, 0)[1] > was, "the second link brings nothing")
    finally:
        # The programs' own connection goes over it.
        sh("ip", "-n", place.spaces[0], "link", "set", place.links[0][0], "up")
    pair.finish()


if __name__ == "__main__":
    main({"by_source": by_source, "pulled": pulled})
