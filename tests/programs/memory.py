#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""What goes through memory and what does not, where the host refuses what that takes, or there is not enough of it."""
import copy
import json
import mmap
import os
import re
import shutil
import signal
import struct
import time

from data import TRANSFER
from pair import BUILD, ROOT, SKIP, TIME_S, Failure, Pair, Skip, check, folder, main, need_network, perftest, pingpong, pingpong_check, sh
from together import go_on

FOR_EVER = 100000000
RING = "/memfd:verbena-ring "
TAIL, HEAD = 64, 128  # bytes of a ring: src/io/shm/shm_ring.h
WRITES = ["-F", "-N", "-n", FOR_EVER, "-t", 4, "-s", 65536]
UDP = "go by UDP"
REFUSE = os.path.join(BUILD, "tests/programs/refuse")
IMAGE = os.path.join(BUILD, "tests/programs/image")


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
    """Where no memory file can be made at all, packets go by UDP; nobody is told, as there are no counters then either."""
    other = under(place, REFUSE, "memfd_create")
    pingpong(other, "ibv_rc_pingpong", ["-c"])
    perftest(other, "ib_write_bw", iters=200, sizes=[65536])


def small_loopback(place):
    """Where the loopback interface does not carry a large packet, messages are cut by the path MTU."""
    need_network()
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


# Who reads what the other end leaves out: the target of WRITEs and SENDs, and the requester of READs.
READERS = {"ib_write_bw": 0, "ib_send_bw": 0, "ib_read_bw": 1}


def killed_in_mid_reference(place):
    """kill -9 of who reads what packets leave out, and of whom it is read from; those who come next find all in order."""
    for program, reader in READERS.items():
        options = ["-F", "-N", "-n", FOR_EVER, "-s", 1 << 20] + (["-t", 4] if program == "ib_write_bw" else [])
        for end in (0, 1):
            pair = Pair(place, program, options, gid_flag="-x").go().underway()
            ends = pair.server, pair.client
            if end == reader:
                stop_reading(ends[reader], ends[1 - reader])
            ends[end].signal(signal.SIGKILL)
            pair.kill()
            pingpong(place, "ibv_rc_pingpong", ["-c"], size=100000)


class Rings:
    """The memory of the rings that a process has made."""

    def __init__(self, process):
        self.maps = []
        where = "/proc/%d/fd" % process.pid
        for fd in os.listdir(where):
            try:
                if os.readlink(os.path.join(where, fd)).startswith(RING):
                    with open(os.path.join(where, fd), "rb") as f:
                        self.maps.append(mmap.mmap(f.fileno(), 4096, prot=mmap.PROT_READ))
            except FileNotFoundError:
                pass  # it has closed it
        check(self.maps, "no ring: %s" % process.output())

    def hold_some(self):
        """Whether something in them is still to be taken, or to be read where it is."""
        return any(struct.unpack_from("=I", m, TAIL) != struct.unpack_from("=I", m, HEAD) for m in self.maps)


def is_stopped(process):
    tasks = "/proc/%d/task" % process.pid
    for tid in os.listdir(tasks):
        with open(os.path.join(tasks, tid, "stat")) as f:
            if f.read().rsplit(")", 1)[1].split()[0] != "T":
                return False
    return True


def stop_reading(reader, other):
    """Stops a process while it reads the other's memory, or is about to."""
    rings = Rings(other)
    end = time.monotonic() + TIME_S
    while time.monotonic() < end:
        check(reader.running() and other.running(), "over too soon\n%s\n%s" % (reader.output(), other.output()))
        reader.signal(signal.SIGSTOP)
        while not is_stopped(reader):
            check(reader.running() and time.monotonic() < end, "it does not stop: %s" % reader.output())
        if rings.hold_some():
            return rings
        reader.signal(signal.SIGCONT)
        time.sleep(0.001)
    raise Failure("it never reads the other's memory")


def stopped_in_mid_reference(place):
    """
    A process that is stopped while it reads another's memory holds it up, and nothing else: the other one sleeps
    meanwhile, and every byte is right when it goes on.
    """
    pair = Pair(place, TRANSFER, ["-e", "-n", FOR_EVER, "-s", 31, "-b", 3000000]).go().underway(0)
    for reader, other in (pair.server, pair.client), (pair.client, pair.server):
        rings = stop_reading(reader, other)
        time.sleep(0.3)  # what the other end can do without it, it does
        before = other.cpu_s()
        time.sleep(0.5)
        used = other.cpu_s() - before
        check(rings.hold_some() and used < 0.1, "it used %.0f ms of CPU in 0.5 s" % (used * 1e3))
        reader.signal(signal.SIGCONT)
        go_on(place, [pair], 3000)  # more than a batch, after which each end looks at all bytes
    pair.kill()


def another_image(place, kind="exec"):
    """A sender that has become another program by the time that its message is taken: the bytes of that one are not delivered."""
    for size in 60000, 1 << 20:  # in one packet, and in several, which are read to their place
        pair = Pair(place, IMAGE, ["-k", kind, "-b", size]).go()
        if pair.client.wait(TIME_S) == SKIP:
            raise Skip(pair.client.output())
        out = pair.finish()[0]
        check("3 messages, 0 bytes of another process" in out, "%s\n%s" % (pair.title, out))


def another_process(place):
    """The same, where the sender has been killed and a new process has its id."""
    another_image(place, "again")


def restarted(place):
    """A process that is started again, and given the slot of the one that was killed, has rings of its own."""
    place.env = [{**env, "VERBENA_HEIR": "none"} for env in place.env]  # an heir would have the slot for a while
    server = place.start(0, ["rping", "-s", "-P", "-a", place.addresses[0]])
    slots = set()  # of two programs that start at a time, either may have the first
    for _ in range(3):
        client = ping_for_ever(place)
        before, end = counters(place, server), time.monotonic() + TIME_S
        while counters(place, server)["io_shm_tx_packets"] < before["io_shm_tx_packets"] + 100:
            check(client.running() and time.monotonic() < end, "not through memory: %s" % counters(place, server))
        check(before["io_shm_peers"] <= 1, "rings to the dead: %s" % before)
        slots.add(json.loads(place.tool(0, "stat", "--json", str(client.pid)))["processes"][0]["slot"])
        client.signal(signal.SIGKILL)
        client.kill()
        check(len(slots) == 1, "another slot: %s" % slots)
    server.kill()


def older(place):
    """The place, whose programs have rings of another version."""
    where = folder()
    theirs = os.path.join(where, "build")
    os.mkdir(theirs)
    shutil.copy(place.verbena, theirs)
    shutil.copytree(os.path.join(BUILD, "lib"), os.path.join(theirs, "lib"), symlinks=True)
    with open(os.path.join(ROOT, "src", "io", "shm", "shm_ring.c")) as f:
        version = int(re.search(r"MAGIC UINT64_C\((\w+)\)", f.read()).group(1), 16)
    ours, other, changed = struct.pack("<Q", version), struct.pack("<Q", version - 1), 0
    for folder_name, _, files in os.walk(theirs):
        for name in files:
            path = os.path.join(folder_name, name)
            if os.path.islink(path):
                continue
            with open(path, "rb") as f:
                code = f.read()
            if ours in code:
                with open(path, "wb") as f:
                    f.write(code.replace(ours, other))
                changed += 1
    check(changed, "no library has rings of this version")
    copied = copy.copy(place)
    copied.verbena = os.path.join(theirs, "verbena")
    return copied


class Mixed:
    """Two places: one end in each."""

    def __init__(self, *places):
        self.places = places

    def __getattr__(self, name):
        return getattr(self.places[0], name)

    def start(self, end, *words, **named):
        return self.places[end].start(end, *words, **named)


def other_version(place):
    """A process whose rings are of another version is spoken to by UDP, and among themselves such processes use theirs."""
    other = older(place)
    for mixed in Mixed(place, other), Mixed(other, place):
        seen, told = writing(mixed, 2)  # it tries again after a second
        check(not seen["io_shm_tx_packets"], "through memory: %s" % seen)
        pingpong(mixed, "ibv_rc_pingpong", ["-c"], size=100000)
    seen, told = writing(other)
    check(seen["io_shm_tx_packets"], "not through memory: %s" % seen)


def hundred(place):
    """A hundred processes at a time."""
    pairs = [Pair(place, "ibv_rc_pingpong", ["-e", "-c", "-n", 50]) for _ in range(50)]
    for p in pairs:
        p.go()
    for p in pairs:
        pingpong_check(p, p.finish(), 50, 4096)


if __name__ == "__main__":
    main({"read_in_place": read_in_place, "no_readv": no_readv, "no_file": no_file, "no_memfd": no_memfd, "small_loopback": small_loopback,
          "limit": limit, "killed_in_mid_reference": killed_in_mid_reference,
          "stopped_in_mid_reference": stopped_in_mid_reference, "another_image": another_image, "another_process": another_process,
          "restarted": restarted, "other_version": other_version, "hundred": hundred})
