#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""What goes through memory and what does not, where the host refuses what that takes, or there is not enough of it."""
import copy
import json
import os
import signal
import time

from pair import BUILD, TIME_S, Failure, Pair, check, main, perftest, pingpong, pingpong_check, sh

FOR_EVER = 100000000
WRITES = ["-F", "-N", "-n", FOR_EVER, "-t", 4, "-s", 65536]
UDP = "go by UDP"
REFUSE = os.path.join(BUILD, "tests/programs/refuse")


def under(place, *words):
    """The place, whose programs are started by that command."""
    other = copy.copy(place)
    other.wrap = lambda end, command: place.wrap(end, [*words] + command)
    return other


def counters(place, process):
    """Once the process answers, which one that waits for a processor does late."""
    end = time.monotonic() + TIME_S
    while not (found := json.loads(place.tool(0, "stat", "--json", str(process.pid)))["processes"]):
        check(process.running() and time.monotonic() < end, "it does not answer: %s" % process.output())
    one, = found
    return {**{"io_shm_tx_packets": 0, "io_shm_tx_far": 0, "io_shm_peers": 0}, **one["counters"]}


def writing(place, pauses=0):
    """
    What a client's counters say in the middle of WRITEs of 64 KiB. In a pause of a second both ends stand still, and a
    processor is free.
    """
    pair = Pair(place, "ib_write_bw", WRITES, gid_flag="-x").go().underway()
    for _ in range(pauses):
        for p in (pair.client, pair.server):
            p.signal(signal.SIGSTOP)
        time.sleep(1.1)
        for p in (pair.server, pair.client):
            p.signal(signal.SIGCONT)
        pair.underway(0.1, pair.sent() + 100)
    seen = counters(place, pair.client)
    told = pair.client.output()
    pair.still_runs()
    pair.kill()
    return seen, told


def read_in_place(place):
    seen, told = writing(place)
    check(seen["io_shm_tx_packets"] and seen["io_shm_tx_far"], "not through memory: %s" % seen)
    check(UDP not in told, told)


def no_readv(place):
    """Where one process may not read the other, payload goes through the ring."""
    other = under(place, REFUSE, "process_vm_readv")
    seen, told = writing(other)
    check(seen["io_shm_tx_packets"] and not seen["io_shm_tx_far"], "payload by reference: %s" % seen)
    check(UDP not in told, told)
    pingpong(other, "ibv_rc_pingpong", ["-c"], size=200000)
    pingpong(other, "ibv_uc_pingpong", ["-c"], size=4000)
    perftest(other, "ib_read_bw", ["-s", 65536], iters=300, sizes=[65536])


def no_file(place):
    """Where no memory file can be as large as a ring packets go by UDP, and the user is told once."""
    other = under(place, "prlimit", "--fsize=100000")
    seen, told = writing(other, 2)  # it tries again each second
    check(not seen["io_shm_tx_packets"] and not seen["io_shm_peers"], "through memory: %s" % seen)
    check(told.count(UDP) == 1 and "File too large" in told, told)
    pingpong(other, "ibv_rc_pingpong", ["-c"])


def no_memfd(place):
    """Where no memory file can be made at all, packets go by UDP."""
    other = under(place, REFUSE, "memfd_create")
    pingpong(other, "ibv_rc_pingpong", ["-c"])
    perftest(other, "ib_write_bw", iters=200, sizes=[65536])


def small_loopback(place):
    """Where the loopback interface does not carry a large packet, messages are cut by the path MTU."""
    place._need_root("ip")
    sh("ip", "-n", place.spaces[0], "link", "set", "lo", "mtu", "1500")
    other = under(place, "prlimit", "--fsize=100000")
    perftest(other, "ib_write_bw", ["-m", 1024], iters=200, sizes=[65536])
    perftest(place, "ib_write_bw", ["-m", 1024], iters=200, sizes=[65536])


def ping_for_ever(place):
    """A client of the server at hand, when it has pinged."""
    for _ in range(100):
        p = place.start(1, ["rping", "-c", "-v", "-a", place.addresses[0], "-S", 60])
        while p.running() and "ping data" not in p.output():
            time.sleep(0.02)
        if p.running():
            return p
        p.kill()
        time.sleep(0.1)
    raise Failure("rping is refused: " + p.output())


def limit(place):
    """A process that may have one ring sends to its second peer by UDP, and says so once."""
    server = place.start(0, ["rping", "-s", "-P", "-a", place.addresses[0]], {"VERBENA_SHM_BYTES": "128K"})
    one = ping_for_ever(place)
    check(UDP not in server.output(), server.output())
    clients = one, ping_for_ever(place), ping_for_ever(place)
    server.wait_text(UDP)
    time.sleep(0.5)
    seen = counters(place, server)
    check(seen["io_shm_peers"] == 1 and seen["io_shm_tx_packets"], "rings: %s" % seen)
    check(all(p.running() for p in clients), "\n".join(p.output()[-500:] for p in clients))
    check(server.output().count(UDP) == 1, server.output())
    for p in (*clients, server):
        p.kill()


def killed_in_mid_reference(place):
    """kill -9 of who writes and of who is written to; those who come next find all in order."""
    for end in (0, 1):
        pair = Pair(place, "ib_write_bw", [*WRITES[:-1], 1 << 20], gid_flag="-x").go().underway()
        (pair.server, pair.client)[end].signal(signal.SIGKILL)
        pair.kill()
        pingpong(place, "ibv_rc_pingpong", ["-c"], size=100000)


def hundred(place):
    """A hundred processes at a time."""
    pairs = [Pair(place, "ibv_rc_pingpong", ["-e", "-c", "-n", 50]) for _ in range(50)]
    for p in pairs:
        p.go()
    for p in pairs:
        pingpong_check(p, p.finish(), 50, 4096)


if __name__ == "__main__":
    main({"read_in_place": read_in_place, "no_readv": no_readv, "no_file": no_file, "no_memfd": no_memfd, "small_loopback": small_loopback,
          "limit": limit, "killed_in_mid_reference": killed_in_mid_reference, "hundred": hundred})
