#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Several pairs on one address: none disturbs another, not even by dying."""
import json
import signal
import time

from pair import TIME_S, Pair, check, main, perftest_check, pingpong_check

FOR_EVER = 100000000


def start_all(place, iters, srq_iters, sends):
    """Three pairs that sleep between messages, so that two processors carry them."""
    pairs = [Pair(place, "ibv_rc_pingpong", ["-e", "-c", "-n", iters, "-s", 8192]),
             Pair(place, "ibv_srq_pingpong", ["-e", "-c", "-n", srq_iters, "-q", 8]),
             Pair(place, "ib_send_bw", ["-F", "-e", "-n", sends, "-N", "-s", 4096], gid_flag="-x")]
    return [p.go() for p in pairs]


def undisturbed(place):
    pairs = start_all(place, 1000, 2000, 5000)
    pingpong_check(pairs[0], pairs[0].finish(), 1000, 8192)
    pairs[1].finish()
    perftest_check(pairs[2], pairs[2].finish(), 5000, [4096])


def go_on(place, pairs, packets=500):
    """Each end sends so many packets more, and has not seen an error."""
    ends = {p.pid: pair.title for pair in pairs for p in (pair.server, pair.client)}
    first, end = {}, time.monotonic() + TIME_S
    while ends:
        for p in json.loads(place.tool(0, "stat", "--json"))["processes"]:
            count = p["counters"]
            check(p["pid"] not in ends or count["completion_errors"] == 0, "%s: %s" % (ends.get(p["pid"]), count))
            if count["tx_packets"] >= first.setdefault(p["pid"], count["tx_packets"]) + packets:
                ends.pop(p["pid"], None)
        for pair in pairs:
            pair.still_runs()
        check(time.monotonic() < end, "no progress: %s" % list(ends.values()))
        time.sleep(0.05)


PINGPONG = ("ibv_rc_pingpong", ["-e", "-n", FOR_EVER], "-g")
WRITES = ("ib_write_bw", ["-F", "-N", "-n", FOR_EVER, "-t", 4], "-x")


def victims(place, *ends):
    """Pairs in mid-run, each with the end of it (0: the server) that is killed while three others work."""
    doomed = [(Pair(place, program, options, gid_flag=gid_flag), end) for end, (program, options, gid_flag) in ends]
    pairs = start_all(place, FOR_EVER, FOR_EVER, FOR_EVER)
    for p, _ in doomed:
        p.go()
    for p in [*pairs, *(p for p, _ in doomed)]:
        p.underway(0)
    for p, end in doomed:
        (p.server if end == 0 else p.client).signal(signal.SIGKILL)
    go_on(place, pairs)
    # One that starts now may be given the number of the dead.
    late = Pair(place, "ibv_rc_pingpong", ["-c", "-n", 200]).go()
    pingpong_check(late, late.finish(), 200, 4096)
    go_on(place, pairs)
    for p in [*pairs, *(p for p, _ in doomed)]:
        p.kill()


def client_and_target_killed(place):
    victims(place, (1, PINGPONG), (0, WRITES))


def client_killed(place):
    victims(place, (1, PINGPONG))


def server_killed(place):
    victims(place, (0, PINGPONG))


def writer_killed(place):
    victims(place, (1, WRITES))


def target_killed(place):
    victims(place, (0, WRITES))


def stopped(place):
    """A program that is stopped keeps no other from starting, and goes on where it was."""
    first = Pair(place, "ibv_rc_pingpong", ["-n", 200])
    first.server.wait_listen(first.port)
    first.server.signal(signal.SIGSTOP)
    late = Pair(place, "ibv_rc_pingpong", ["-n", 200]).go()
    pingpong_check(late, late.finish(30), 200, 4096)
    first.server.signal(signal.SIGCONT)
    first.go()
    pingpong_check(first, first.finish(30), 200, 4096)


def paused(place):
    """A target that is stopped in mid-run holds up its own peer alone, and nothing is lost when it goes on."""
    first = Pair(place, *WRITES[:2], gid_flag="-x").go().underway()
    first.server.signal(signal.SIGSTOP)
    late = Pair(place, "ibv_rc_pingpong", ["-c", "-n", 200]).go()
    pingpong_check(late, late.finish(30), 200, 4096)
    time.sleep(0.5)
    first.server.signal(signal.SIGCONT)
    go_on(place, [first])
    first.kill()


def stopped_for_long(place):
    """
    A process that is stopped for longer than its peer's retries and patience last is neither dead nor behind a lossy network,
    whether it is stopped when it has just been connected, with its ring full, or in the middle of READs.
    """
    pairs = [Pair(place, program, ["-F", "-N", "-n", FOR_EVER, "-u", 8] + options, gid_flag="-x",
                  env={"VERBENA_PATIENCE_MS": "1000", "VERBENA_PROTOCOL": protocol}).go()
             for protocol in ("rocev2", "veroce")
             for program, options in (("ib_read_bw", ["-s", 65536]), ("ib_send_bw", ["-e", "-s", 64]))]
    for packets in (1, 500):
        for p in pairs:
            p.underway(0, packets)
            p.server.signal(signal.SIGSTOP)
        time.sleep(2)
        for p in pairs:
            p.server.signal(signal.SIGCONT)
        go_on(place, pairs)
    for p in pairs:
        p.kill()


def many(place):
    """Processes come and go by the dozen; slots and sockets are found again."""
    for _ in range(3):
        pairs = [Pair(place, "ibv_rc_pingpong", ["-e", "-n", 20]).go() for _ in range(8)]
        pairs[3].client.signal(signal.SIGKILL)
        for i, p in enumerate(pairs):
            if i != 3:
                pingpong_check(p, p.finish(), 20, 4096)
            else:
                p.kill()


if __name__ == "__main__":
    main({"undisturbed": undisturbed, "client_and_target_killed": client_and_target_killed,
          "client_killed": client_killed, "server_killed": server_killed,
          "writer_killed": writer_killed, "target_killed": target_killed, "stopped": stopped, "paused": paused,
          "stopped_for_long": stopped_for_long, "many": many})
