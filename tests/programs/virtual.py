#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Virtual devices: a name, addresses and limits for the programs that run on one (VERBENA_DEVICE and its kin)."""
import json
import os
import re
import sys
import time

from address import FIRST, SECOND, Between, at, exchange, finish
from pair import BUILD, Pair, check, folder, main, pingpong_check
from rdmacm import talk

KEYS = os.path.join(BUILD, "tests/programs/keys")
CONFIG = """
[vf1]
address = %s      ; of programs on this host
[vf2]
address = %s
""" % (FIRST, SECOND)


def config_file(text):
    path = os.path.join(folder(), "conf")
    with open(path, "w") as f:
        f.write(text)
    os.chmod(path, 0o644)
    return path


def on(place, device, address, config):
    """The place, for the programs of a virtual device."""
    other = at(place, address)
    other.env = [{"VERBENA_CONFIG": config, "VERBENA_DEVICE": device}] * 2
    return other


def names(place):
    """Each program sees its device alone, by its name; everything else that shows devices has the names, too."""
    config = config_file(CONFIG)
    a, b = on(place, "vf1", FIRST, config), on(place, "vf2", SECOND, config)
    guids = set()
    for p, name, address in ((a, "vf1", FIRST), (b, "vf2", SECOND)):
        status, out = p.run(0, ["ibv_devinfo", "-v"])
        check(status == 0 and re.findall(r"hca_id:\s+(\S+)", out) == [name] and "::ffff:" + address in out, out)
        guids |= set(re.findall(r"node_guid:\s+(\S+)", out))
        shown = json.loads(p.run(0, [place.verbena, "devices", "--json"])[1])["devices"]
        check([d["name"] for d in shown] == [name], str(shown))
        status, out = p.run(0, [place.verbena, "run", "sh", "-c", "ls $VERBENA_SYSFS/class/infiniband"])
        check(status == 0 and out.split() == [name], out)
    check(len(guids) == 2, "GUIDs %s" % guids)
    pairs = [exchange(a), exchange(b), exchange(Between(a, b))]
    for p in pairs:
        p.server.wait_listen(p.port)
    seen = {p["pid"]: p["device"] for p in json.loads(place.tool(0, "stat", "--json"))["processes"]}
    check(seen == {pairs[0].server.pid: "vf1", pairs[1].server.pid: "vf2", pairs[2].server.pid: "vf1"}, str(seen))
    finish([p.go() for p in pairs])
    status, out = place.run(0, [place.verbena, "run", "--device", "any", "--address", FIRST, "ibv_devinfo"])
    check(status == 0 and re.search(r"hca_id:\s+any\n", out), out)


# ---- limits ---------------------------------------------------------------------------------------------

RATE_BPS, MESSAGES, BYTES = 100e6, 100, 65536


GREEDY = """
import ctypes, time
verbs, pointer = ctypes.CDLL("libibverbs.so.1"), ctypes.c_void_p
verbs.ibv_get_device_list.restype = ctypes.POINTER(pointer)
verbs.ibv_open_device.restype = verbs.ibv_alloc_pd.restype = pointer
context = pointer(verbs.ibv_open_device(pointer(verbs.ibv_get_device_list(None)[0])))
print([bool(verbs.ibv_alloc_pd(context)) for _ in range(3)], flush=True)
time.sleep(600)
"""


def shown(place):
    """What each program's counters say of its device."""
    return [p["limits"] for p in json.loads(place.tool(0, "stat", "--json"))["processes"] if "limits" in p]


def rate(place):
    """All programs of a device together send no faster than its rate, through memory and by UDP."""
    for shm in "on", "off":
        env = {"VERBENA_DEVICE": "slow", "VERBENA_RATE": "100Mbps", "VERBENA_SHM": shm}
        begun = time.monotonic()
        pairs = [Pair(place, "ib_write_bw", ["-n", MESSAGES, "-s", BYTES, "-F"], gid_flag="-x", env=env).go() for _ in range(2)]
        waits = {}
        while len(waits) < 2 or not all(waits.values()):
            check(all(p.client.running() for p in pairs), "no client has waited: %s" % waits)
            seen = json.loads(place.tool(0, "stat", "--json"))["processes"]
            check(all(p["limits"]["rate_bps"] == p["limits"]["rate_bps_now"] == RATE_BPS for p in seen), str(seen))
            waits = {p["pid"]: p["counters"]["rate_waits"] for p in seen if p["pid"] in [q.client.pid for q in pairs]}
        for p in pairs:
            p.finish()
        took, least = time.monotonic() - begun, 2 * MESSAGES * BYTES * 8 / RATE_BPS
        check(took > 0.9 * least, "%.3f s, at least %.3f" % (took, least))


def weights(place):
    """Devices with weights, which have the line between them, and a third that has nothing to do with it."""
    pairs = []
    for device, address, weight in (("three", FIRST, "3"), ("one", SECOND, "1")):
        env = {"VERBENA_DEVICE": device, "VERBENA_WEIGHT": weight, "VERBENA_LINE_RATE": "1Gbps"}
        pairs.append(Pair(at(place, address), "ib_write_bw", ["-n", 100000, "-s", BYTES, "-F"], gid_flag="-x", env=env).go())
    for p in pairs:
        p.underway()
    limits = {d["weight"]: d["rate_bps_now"] for d in shown(place)}
    check(set(limits) == {1, 3} and all(250e6 <= v <= 1000e6 for v in limits.values()), str(limits))
    for p in pairs:
        p.kill()


def quotas(place):
    """Of all programs of a device; what a killed one had is the others' again."""
    env = {"VERBENA_DEVICE": "few", "VERBENA_QUOTA": "qps=2"}

    def server():
        return Pair(place, "ibv_rc_pingpong", ["-n", 30], env=env)

    kept = server()
    kept.server.wait_listen(kept.port)
    for _ in range(8):
        other = server()
        other.server.wait_listen(other.port)
        check([d["quotas"]["qps"]["allowed"] for d in shown(place)] == [2, 2], str(shown(place)))
        told = json.loads(place.run(0, [place.verbena, "devices", "--json"], env=env)[1])["devices"][0]["limits"]
        check(told["quotas"]["qps"] == {"allowed": 2, "used": 2} and told["programs"] == 2, str(told))
        status, out = place.run(0, ["ibv_rc_pingpong"], env=env)
        check(status == 1 and "Couldn't create QP" in out and "VERBENA_QUOTA" in out, out)
        other.server.kill()
    # The client is the second one.
    pingpong_check(kept, kept.go().finish(), 30, 4096)
    # Refusals are counted; those in a row are one line of the log.
    greedy = place.start(0, [sys.executable, "-c", GREEDY],
                         {"VERBENA_DEVICE": "none", "VERBENA_QUOTA": "hca_object=1", "VERBENA_QUIET": "1"})
    greedy.wait_text("[True, False, False]")
    counters = json.loads(place.tool(0, "stat", "--json", str(greedy.pid)))["processes"][0]["counters"]
    check(counters["quota_refusals"] == 2, str(counters))
    events = place.tool(0, "stat", "--events", str(greedy.pid))
    check(len(re.findall(r"hca_object +device +quota: ENOMEM", events)) == 1, events)
    greedy.kill()


# ---- partitions -----------------------------------------------------------------------------------------

def in_partition(place, address, pkeys):
    other = at(place, address)
    # A process of this host that says nothing is given time by its peer.
    other.env = [{"VERBENA_ADDRESS": address, "VERBENA_PKEYS": pkeys, "VERBENA_PATIENCE_MS": "0"}] * 2
    return other


def stays_alone(pair, server):
    """The server gets nothing, and counts what it did not take; the client fails by its retries."""
    status = pair.go().client.wait(60)
    check(status not in (0, None) and "retry counter exceeded" in pair.client.output(), "%s\n%s" % (status, pair.client.output()))
    counters = json.loads(server.tool(0, "stat", "--json", str(pair.server.pid)))["processes"][0]["counters"]
    check(pair.server.running() and counters["rx_wrong_pkey"] > 0 and not counters["completions"], str(counters))
    pair.server.kill()


def partitions(place):
    """Queue pairs reach those of their partition, unless neither is a full member of it, by UDP and through memory."""
    for ours, theirs, meet in (("0x8003", "0x8003", True), ("0x0003", "0x8003,0xffff", True), ("0x8003", "0x8004", False),
                               ("0x0003", "0x0003", False)):
        for address in FIRST, SECOND:
            a, b = in_partition(place, FIRST, ours), in_partition(place, address, theirs)
            pair = exchange(Between(a, b))
            if meet:
                finish([pair.go()])
            else:
                stays_alone(pair, a)
    a = in_partition(place, FIRST, "0x8003, 0x0007")
    status, out = a.run(0, ["ibv_devinfo", "-v"])
    check(status == 0 and re.search(r"max_pkeys:\s+2\n", out), out)
    files = "cd $VERBENA_SYSFS/class/infiniband/verbena0/ports/1/pkeys && cat 0 1"
    status, out = a.run(0, [place.verbena, "run", "sh", "-c", files])
    check(status == 0 and out.split() == ["0x8003", "0x0007"], out)
    outs = talk(a, ["rping", "-s", "-C", "3", "-v"], ["rping", "-c", "-a", FIRST, "-C", "3", "-v"])
    check(all(out.count("ping data") == 3 for out in outs), "\n".join(outs))


def counted(place, pid):
    return json.loads(place.tool(0, "stat", "--json", str(pid)))["processes"][0]["counters"]


def keys(place):
    """A key of one device, of a region that is alive, opens nothing on another, wherever it points; its own one does."""
    config = config_file(CONFIG)
    first, second = on(place, "vf1", FIRST, config), on(place, "vf2", SECOND, config)
    for shm in "on", "off":
        def server(p):
            pair = Pair(p, KEYS, env={"VERBENA_SHM": shm})
            pair.server.wait_listen(pair.port)
            return pair, *re.search(r"key (\S+) address (\S+)", pair.server.output()).groups()

        victim, key, at = server(first)
        for options in ([], ["-k", key, "-a", at], ["-k", key, "-a", None]):
            other, _, there = server(Between(second, first))
            words, more = other._client
            other._client = words[:-1] + [o or there for o in options] + words[-1:], more
            status = other.go().client.wait(60)
            out = other.client.output()
            other.server.wait_text("bytes changed")
            changed = int(re.search(r"(\d+) bytes changed", other.server.output()).group(1))
            not_let_in = counted(second, other.server.pid)["rx_access_refused"]
            expected = ("remote access error", 0, 1) if options else ("success", 4096, 0)
            check(status == 0 and (out.strip(), changed, not_let_in) == expected,
                  "%s: %s, %d bytes changed, %d refused" % (options, out, changed, not_let_in))
            other.kill()
        check(counted(first, victim.server.pid)["rx_write_requests"] == 0, "it was written to")
        victim.kill()


def refused(place, env, words):
    status, out = place.run(0, [place.verbena, "run", "ibv_devinfo"], env=env)
    check(status == 125 and all(w in out for w in words), "%s: %d, %s" % (env, status, out))


def wrong(place):
    """What cannot be says why."""
    config = config_file(CONFIG)
    refused(place, {"VERBENA_DEVICE": "vf3", "VERBENA_CONFIG": config}, ["VERBENA_DEVICE=vf3", config, "vf1, vf2"])
    refused(place, {"VERBENA_DEVICE": "vf/3"}, ["VERBENA_DEVICE=vf/3", "letters"])
    refused(place, {"VERBENA_DEVICE": "vf3", "VERBENA_DEVICES": "2"}, ["VERBENA_DEVICE=vf3", "VERBENA_DEVICES"])
    refused(place, {"VERBENA_DEVICE": "vf3", "VERBENA_ADDRESS": "192.0.2.1"}, ["VERBENA_ADDRESS=192.0.2.1"])
    twice = config_file("[vf1]\naddress = %s\n[vf2]\naddress = %s,%s\n" % (FIRST, SECOND, FIRST))
    refused(place, {"VERBENA_DEVICE": "vf1", "VERBENA_CONFIG": twice}, [twice + ":4", FIRST, "vf1", "vf2"])
    for key, value, allowed in (("RATE", "0", "1Mbps"), ("RATE", "2", "unit"), ("BURST", "0", "4096"), ("WEIGHT", "1001", "1000"),
                                ("QUOTA", "qps=0", "from 1"), ("QUOTA", "qp=1", "hca_object=N"), ("QUOTA", "qps=1,qps=1", "twice")):
        refused(place, {"VERBENA_" + key: value}, ["VERBENA_%s=%s" % (key, value), allowed])
    for value in ("0x8000", "0", "0x10000", "0x8003,0x0003", "0x1,", "8003"):
        refused(place, {"VERBENA_PKEYS": value}, ["VERBENA_PKEYS=" + value, "low 15 bits"])
    refused(place, {"VERBENA_RATE": "1Gbps", "VERBENA_PROTOCOL": "iwarp"}, ["VERBENA_RATE", "tc-tbf"])


if __name__ == "__main__":
    main({f.__name__: f for f in (names, rate, weights, quotas, partitions, keys, wrong)})
