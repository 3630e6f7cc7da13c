#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Several pairs on one address: none disturbs another, not even by dying."""
import signal

from pair import Pair, main, perftest_check, pingpong_check

# A second on an idle machine; beside others that want its processors each wait for an event takes milliseconds.
ITERS = 12000
SRQ_ITERS = 24000
SENDS = 60000


def start_all(place):
    """Three pairs that sleep between messages, so that two processors carry them."""
    pairs = [Pair(place, "ibv_rc_pingpong", ["-e", "-c", "-n", ITERS, "-s", 8192]),
             Pair(place, "ibv_srq_pingpong", ["-e", "-c", "-n", SRQ_ITERS, "-q", 8]),
             Pair(place, "ib_send_bw", ["-F", "-e", "-n", SENDS, "-N", "-s", 4096], gid_flag="-x")]
    return [p.go() for p in pairs]


def finish_all(pairs):
    pingpong_check(pairs[0], pairs[0].finish(), ITERS, 8192)
    pairs[1].finish()
    perftest_check(pairs[2], pairs[2].finish(), SENDS, [4096])


def undisturbed(place):
    finish_all(start_all(place))


PINGPONG = ("ibv_rc_pingpong", ["-e", "-n", 100000000], "-g")
WRITES = ("ib_write_bw", ["-F", "-N", "-n", 100000000, "-t", 4], "-x")


def victims(place, *ends):
    """Pairs in mid-run, each with the end of it (0: the server) that is killed while three others work."""
    doomed = [(Pair(place, program, options, gid_flag=gid_flag).go().underway(), end)
              for end, (program, options, gid_flag) in ends]
    pairs = start_all(place)
    for p in pairs:
        p.underway(0)
    for p, end in doomed:
        (p.server if end == 0 else p.client).signal(signal.SIGKILL)
    finish_all(pairs)
    # One that starts now may be given the number of the dead.
    late = Pair(place, "ibv_rc_pingpong", ["-c", "-n", 200]).go()
    pingpong_check(late, late.finish(), 200, 4096)
    for p, _ in doomed:
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
          "writer_killed": writer_killed, "target_killed": target_killed, "stopped": stopped, "many": many})
