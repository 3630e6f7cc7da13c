#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""
SDR between two processes, on a clean network and on bad ones: sdr_write_bw, where every chunk that the bitmap says is
there is compared with what was sent.
"""
import os
import random
import re
import shutil
import signal
import time

from capture import packets
from pair import BUILD, TIME_S, Pair, check, folder, main

WRITE_BW = os.path.join(BUILD, "sdr_write_bw")
WRITE_LAT = os.path.join(BUILD, "sdr_write_lat")
ALLREDUCE = os.path.join(BUILD, "sdr_allreduce")
CP = os.path.join(BUILD, "sdr_cp")
QUICK = os.path.join(BUILD, "tests/programs/libquick_monotonic.so")
ROUNDED = 6e-7  # of the millions a second that sdr_write_bw prints
SCHEMES = ("auto", "nack", "rto", "mds", "xor", "ec", "tail")


def write_bw(place, client, server=(), env=None, told=None):
    """Chunks sent and chunks dropped; the client's status is 1 if any was wrong. The server's output goes into told."""
    pair = Pair(place, WRITE_BW, server, ["-V", *client], gid_flag="-x", env=env).go()
    said, out = pair.finish()
    if told is not None:
        told.append(said)
    found = re.search(r"^ \d.*\s(\d+)\s+(\d+)$", out, re.M)
    check(found, "%s: no result\n%s" % (pair.title, out))
    messages, packets = (float(n) for n in found.group(0).split()[4:6])
    size = int(found.group(0).split()[0])
    check(packets + ROUNDED > 0.9 * (messages - ROUNDED) * size / 4096, "%s: fewer packets than bytes are\n%s" % (pair.title, out))
    return int(found.group(1)), int(found.group(2))


def clean(place):
    """Losses of the machine's own aside, which nobody repairs here."""
    for client in (["-n", 40, "-s", 1 << 20, "-t", 4], ["-n", 200, "-s", 5000, "-w", 0, "-k", 4096],
                   ["-n", 30, "-s", 300001, "-t", 2, "-c", 1, "-g", 1], ["-n", 300, "-s", 1, "-c", 3, "-g", 16]):
        chunks, dropped = write_bw(place, client)
        check(dropped < chunks, "%s: nothing arrived" % client)


def stopped(place):
    """A client that gets no processor for longer than the server waits for a message goes on behind it."""
    pair = Pair(place, WRITE_BW, [], ["-V", "-n", 250, "-w", 0, "-s", 1 << 20, "-t", 1], gid_flag="-x").go().underway(0)
    pair.client.signal(signal.SIGSTOP)
    time.sleep(1)  # five times as long as the server waits
    pair.client.signal(signal.SIGCONT)
    _, out = pair.finish()
    chunks, dropped = (int(n) for n in re.search(r"^ \d.*\s(\d+)\s+(\d+)$", out, re.M).groups())
    check(16 <= dropped < chunks, "%d of %d chunks dropped, a message has 16\n%s" % (dropped, chunks, out))


def deaf(place):
    """A client whose server hears nothing, and says so all the time, gives up. Both poll for half a minute, of their clock."""
    pair = Pair(place, WRITE_BW, [], ["-n", 40, "-t", 4], gid_flag="-x", env={"LD_PRELOAD": QUICK}, server_env={"VERBENA_IMPAIR": "drop=100%"}).go()
    status = pair.client.wait(TIME_S)
    out = pair.client.output()
    pair.kill()
    check(status == 1 and "nothing has happened for 30 s: 4 of 50 messages are sent, and 0 reported" in out, "status %s\n%s" % (status, out))


def schemes(place):
    """Losses are repaired, and every chunk is right."""
    for scheme in SCHEMES:
        _, dropped = write_bw(place, ["-n", 20, "-s", 200001, "-t", 4, "-k", 4096, "-S", scheme], env={"VERBENA_IMPAIR": "drop=2%,dup=1%,reorder=3%,seed=5"})
        check(dropped == 0, "%s: %d chunks dropped" % (scheme, dropped))


def idle_fill(place):
    """Parities that go on over a bad network leave every byte right, and the network sees that they give way: they, and
    nothing else, are of the class for Lower Effort."""
    where = folder()
    for scheme in ("tail", "auto"):
        env = {"VERBENA_IMPAIR": "drop=1%,dup=3%,reorder=5%,delay=10ms,seed=11"}
        if scheme == "tail":
            env.update(VERBENA_PCAP=where + "/%p.pcap", VERBENA_SHM="off")
        _, dropped = write_bw(place, ["-n", 20, "-s", 200001, "-t", 1, "-k", 4096, "-r", 2000, "-S", scheme, "-F"], ["-r", 2000], env)
        check(dropped == 0, "%s: %d chunks dropped" % (scheme, dropped))
    classes = {}
    for name in os.listdir(where):
        for p in packets(os.path.join(where, name)):
            of_low, qp = low(p)
            classes.setdefault(qp, set()).add(of_low)
    check(any(True in c for c in classes.values()), "no packet is of the class for Lower Effort")
    check(all(len(c) == 1 for c in classes.values()), "a queue pair sends in two classes: %s" % classes)
    shutil.rmtree(where)


def low(p):
    """Whether a captured packet is of the class for Lower Effort, and its queue pair."""
    v6 = p[0] >> 4 == 6
    bth = p[48 if v6 else (p[0] & 15) * 4 + 8:]
    return ((p[0] & 15) << 4 | p[1] >> 4 if v6 else p[1]) >> 2 == 1, int.from_bytes(bth[5:8], "big")


def idle_fill_everywhere(place):
    """The other programs have it too: what they send while they wait is seen, and right."""
    for name in ("lat", "allreduce"):
        where = folder()
        env = {"VERBENA_IMPAIR": "drop=1%,delay=10ms,seed=11", "VERBENA_PCAP": where + "/%p.pcap", "VERBENA_SHM": "off"}
        if name == "lat":
            Pair(place, WRITE_LAT, (), ["-n", 5, "-s", 150001, "-k", 4096, "-r", 2000, "-S", "tail", "-F"], gid_flag="-x", env=env).go().finish()
        else:
            ring(place, 2, ["-n", 2, "-s", 200001, "-k", 4096, "-r", 2000, "-S", "tail", "-F"], env)
        found = any(low(p)[0] for file in os.listdir(where) for p in packets(os.path.join(where, file)))
        check(found, name + ": no packet is of the class for Lower Effort")
        shutil.rmtree(where)


def soak(place):
    """Many messages by each scheme over a network that is bad in every way: every byte of each is compared."""
    for burst in (1, 16):
        env = {"VERBENA_IMPAIR": "drop=10%%,burst=%d,dup=5%%,reorder=10%%,corrupt=1%%,delay=3ms,jitter=5ms,seed=9" % burst}
        told = []
        for scheme in SCHEMES:
            _, dropped = write_bw(place, ["-n", 150, "-s", 300001, "-t", 8, "-k", 8192, "-S", scheme], env=env, told=told)
            check(dropped == 0, "%s: %d chunks dropped" % (scheme, dropped))
        # Buffers are posted again at once, and packets of their messages before come late.
        late = [int(re.search(r", late (\d+),", said).group(1)) for said in told]
        check(sum(late) > 0, "no packet came late: %s" % late)


def mtu(place):
    """As many packets as the MTU makes of a message are counted."""
    for size in (64, 256, 1024):
        pair = Pair(place, WRITE_BW, (), ["-V", "-n", 20, "-s", 20000, "-m", size, "-k", 4 * size], gid_flag="-x").go()
        _, out = pair.finish()
        messages, packets = (float(n) for n in re.search(r"^ \d.*$", out, re.M).group(0).split()[4:6])
        a_message = -(-20000 // size)
        check(0.98 * a_message * (messages - ROUNDED) < packets + ROUNDED, out)
        check(packets - ROUNDED < 1.02 * a_message * (messages + ROUNDED), out)


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
                           (["-m", "8192"], "--mtu 8192"), (["-b", "x"], "--batch x"), (["a", "b"], "one host"), (["-F"], "--idle-fill goes with"), (["-F", "-S", "ec"], "--idle-fill goes with")):
        p = place.start(0, [WRITE_BW, *options])
        check(p.wait(20) == 1 and words in p.output(), "%s: %s" % (options, p.output()))
    for tool, more in ((WRITE_LAT, ()), (ALLREDUCE, (0, "a", "b")), (CP, ("x",))):
        p = place.start(0, [tool, "-F", "-S", "nack", *more])
        check(p.wait(20) == 1 and "--idle-fill goes with --scheme tail or auto, not with nack" in p.output(), p.output())
    pair = Pair(place, WRITE_BW, (), ["-s", 1 << 20, "-k", 64, "-m", 4096], gid_flag="-x").go()
    check(pair.client.wait(20) == 1 and "chunks of 64" in pair.client.output(), pair.client.output())
    pair.kill()


def lat(place):
    """Every message arrives, as it was sent, and takes some time."""
    for scheme in SCHEMES:
        pair = Pair(place, WRITE_LAT, (), ["-n", 6, "-s", 150001, "-k", 4096, "-S", scheme], gid_flag="-x",
                    env={"VERBENA_IMPAIR": "drop=3%,dup=2%,reorder=5%,seed=6"}).go()
        _, out = pair.finish()
        times = [float(t) for t in re.findall(r"(\d+\.\d)(?=,|\n)", out.split("acknowledged:")[1])]
        check(len(times) == 6 and sorted(times[1:]) == times[1:] and times[1] > 0, "%s: %s" % (pair.title, out))


def ring(place, ranks, options, env=None):
    """The outputs of sdr_allreduce's ranks; the even ones are at one end of the place, the odd ones at the other."""
    port = 20000 + random.randrange(20000)
    hosts = [place.addresses[r % 2] for r in range(ranks)]
    run = [place.start(r % 2, [ALLREDUCE, "-p", port, "-x", place.gid_index(r % 2), *options, r, *hosts], env) for r in range(ranks)]
    for p in run:
        check(p.wait(TIME_S) == 0, "sdr_allreduce %s\n%s" % (options, "".join(p.output() for p in run)))
    return [p.output() for p in run]


def allreduce(place):
    env = {"VERBENA_IMPAIR": "drop=2%,reorder=3%,seed=8"}
    for ranks, options in ((2, []), (4, []), (3, ["-g"]), (3, ["-S", "nack"])):
        for out in ring(place, ranks, ["-n", 3, "-s", 50001, "-k", 4096, *options], env):
            check("us for a sum" in out, out)


def allreduce_wrong(place):
    """Ranks that were given different options say so, and nobody waits for the other."""
    port = 20000 + random.randrange(20000)
    a = place.start(0, [ALLREDUCE, "-p", port, "-s", 1000, 0, "127.0.0.1", "127.0.0.1"])
    b = place.start(0, [ALLREDUCE, "-p", port, "-s", 2000, 1, "127.0.0.1", "127.0.0.1"])
    check(b.wait(30) == 1 and "rank 0 has other options" in b.output(), b.output())
    check(a.wait(30) == 1 and "the peer is gone" in a.output(), a.output())
    for words, said in (([2, "a", "b"], "--rank 2"), ([0, "a"], "a rank and 2 to"), (["-S", "x", 0, "a", "b"], "--scheme x: one of")):
        p = place.start(0, [ALLREDUCE, *words])
        check(p.wait(20) == 1 and said in p.output(), "%s: %s" % (words, p.output()))


def examples(place):
    """The programs of verbena_sdr(3), on a network that loses, doubles and reorders; the receiver's end is told at once."""
    where, bin = folder(), os.path.join(BUILD, "tests/programs")
    data, copy = os.path.join(where, "data"), os.path.join(where, "copy")
    receive = [os.path.join(bin, "sdr_receive"), place.addresses[0], copy]
    with open(data, "wb") as f:
        f.write(random.Random(7).randbytes(3 * (1 << 23) + 12345))
    p = place.start(0, [os.path.join(bin, "sdr_send"), place.addresses[0], data, *receive], env={"VERBENA_IMPAIR": "drop=2%,dup=1%,reorder=3%,seed=9"})
    check(p.wait(TIME_S) == 0, p.output())
    with open(data, "rb") as a, open(copy, "rb") as b:
        check(a.read() == b.read(), "the copy differs")
    p = place.start(0, [os.path.join(bin, "sdr_send"), place.addresses[0], data, "false"])
    check(p.wait(TIME_S) == 1 and "the receiver has gone" in p.output(), p.output())


if __name__ == "__main__":
    main({"clean": clean, "stopped": stopped, "deaf": deaf, "mtu": mtu, "threads": threads, "rc": rc,
          "schemes": schemes, "idle_fill": idle_fill, "idle_fill_everywhere": idle_fill_everywhere, "soak": soak, "examples": examples, "lat": lat, "allreduce": allreduce, "allreduce_wrong": allreduce_wrong, "wrong_options": wrong_options,
          "drop": spoiled("drop=2%,seed=1", True), "everything": spoiled("drop=1%,dup=3%,reorder=5%,corrupt=1%,seed=2", True),
          "reorder": spoiled("dup=5%,reorder=10%,seed=3", False)})
