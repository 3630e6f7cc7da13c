#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Programs that know addresses by other names, their virtual GIDs, while packets have those of the network: VERBENA_MAP."""
import copy
import json
import os
import re
import signal
import sys

from pair import BUILD, Pair, check, folder, main, perftest_check, pingpong_check
from moves import MOVE, end_of, goes_on, wait_for
from rdmacm import talk

WATCHES = os.path.join(BUILD, "tests/programs/watch")

VGIDS = {False: ["10.200.0.1", "10.200.0.2"], True: ["fd99::1", "fd99::2"]}

# Prints the addresses of all packets to the ports, and whether some had a payload, when it is told to end.
WATCH = """
import signal, socket, sys
seen = set()
def end(*_):
    print("seen", " ".join(sorted(seen)), flush=True)
    sys.exit()
signal.signal(signal.SIGTERM, end)
s = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(3))
print("ready", flush=True)
while True:
    p = s.recv(65536)
    if p[0] >> 4 == 4 and p[9] == 17:
        at, family, src, dst = 4 * (p[0] & 15), socket.AF_INET, p[12:16], p[16:20]
    elif p[0] >> 4 == 6 and p[6] == 17:
        at, family, src, dst = 40, socket.AF_INET6, p[8:24], p[24:40]
    else:
        continue
    if int.from_bytes(p[at + 2:at + 4], "big") in (4791, 4794):
        seen |= {socket.inet_ntop(family, src), socket.inet_ntop(family, dst)}
"""


def map_file(text, path=None):
    """Replaced as a whole, as an administrator should."""
    path = path or os.path.join(folder(), "map")
    with open(path + ".new", "w") as f:
        f.write(text)
    os.chmod(path + ".new", 0o644)
    os.rename(path + ".new", path)
    return path


def lines(place):
    return ["%s %s" % pair for pair in zip(VGIDS[place.ipv6], place.addresses)]


def mapped(place, path):
    other = copy.copy(place)
    other._gids = {}
    other.addresses = VGIDS[place.ipv6]
    other.env = [{**e, "VERBENA_MAP": path} for e in place.env]
    return other


def watched(place, do):
    """The addresses on the server's side of the network meanwhile."""
    watch = place.start(0, [sys.executable, "-u", "-c", WATCH])
    watch.wait_text("ready")
    do()
    watch.signal(signal.SIGTERM)
    watch.wait(30)
    seen = set(re.search("seen(.*)", watch.output()).group(1).split())
    return seen - {"127.0.0.1", "::1"}  # by which a device finds out what the kernel does to its packets


def devinfo_gids(place, end):
    status, out = place.run(end, ["ibv_devinfo", "-v"])
    check(status == 0, out)
    return re.findall(r"GID\[ *\d+\]:\s+(\S+?),? ", out)


def names(place):
    """Programs and tools show the virtual GID of the device, and no address of the network."""
    p = mapped(place, map_file("\n".join(lines(place)) + "\n"))
    for end in (0, 1):
        check(devinfo_gids(p, end) == ["::ffff:" + VGIDS[False][end]], str(devinfo_gids(p, end)))
        gids = json.loads(p.tool(end, "devices", "--json"))["devices"][0]["ports"][0]["gids"]
        check([g["address"] for g in gids] == [VGIDS[False][end]], str(gids))
        shown = p.tool(end, "devices")
        check(VGIDS[False][end] in shown and place.addresses[end] not in shown, shown)
        files = "cat $VERBENA_SYSFS/class/infiniband/verbena0/ports/1/gids/*"
        status, out = p.run(end, [place.verbena, "run", "sh", "-c", files])
        found = [g for g in out.split() if g.strip("0:")]
        check(status == 0 and found == ["0000:0000:0000:0000:0000:ffff:0ac8:000%d" % (end + 1)], out)
    status, out = place.run(0, [place.verbena, "run", "--map", p.env[0]["VERBENA_MAP"], "ibv_devinfo", "-v"])
    check(status == 0 and VGIDS[False][0] in out and place.addresses[0] not in out, out)


def exchange(place):
    """Queue pairs of every service meet by virtual GIDs, over either protocol, with addresses of the network on the wire alone."""
    p = mapped(place, map_file("\n".join(lines(place)) + "\n"))

    def run():
        for program, size in (("ibv_rc_pingpong", 4096), ("ibv_uc_pingpong", 4096), ("ibv_ud_pingpong", 1024)):
            pair = Pair(p, program, ["-n", 50, "-s", size])
            pingpong_check(pair, pair.go().finish(), 50, size)
            check(any(same in pair.client.output() for same in
                      ("::ffff:" + VGIDS[False][0], VGIDS[True][0])), pair.client.output())
        for protocol in "veroce", "rocev2":
            pair = Pair(p, "ib_write_bw", ["-n", 200, "-s", 65536, "-F"], gid_flag="-x", env={"VERBENA_PROTOCOL": protocol})
            perftest_check(pair, pair.go().finish())

    seen = watched(place, run)
    check(seen == set(place.addresses), "on the wire: %s" % seen)


def losses(place):
    """Faults on command find the packets of a queue pair, whose peer the program knows by another address."""
    p = mapped(place, map_file("\n".join(lines(place)) + "\n"))
    script = os.path.join(folder(), "faults")
    with open(script, "w") as f:
        f.write("packet 5 of qp 1 out drop\npacket 9 of qp 1 in drop\n")
    os.chmod(script, 0o644)
    pair = Pair(p, MOVE, server_env={"VERBENA_FAULTS": script}).go().underway()
    goes_on(pair)
    events = p.tool(0, "stat", "--events", str(pair.server.pid))
    check(len(re.findall(" drop", events)) == 2, events)
    end_of(pair)


def connections(place):
    """rdma_cm: listeners and clients are named by virtual GIDs."""
    p = mapped(place, map_file("\n".join(lines(place)) + "\n"))
    at = p.addresses[0]

    def run():
        for options in ([], ["-a", at]):
            outs = talk(p, ["rping", "-s", "-C", "5", "-v"] + options, ["rping", "-c", "-a", at, "-C", "5", "-v"])
            check(all(out.count("ping data") == 5 for out in outs), "\n".join(outs))
        talk(p, ["ib_write_bw", "-R", "-F", "-n", "200"], ["ib_write_bw", "-R", "-F", "-n", "200", at])
        talk(p, ["udaddy", "-b", at, "-c", "5", "-C", "10"], ["udaddy", "-s", at, "-c", "5", "-C", "10"])
        # By a loopback address, and by its own name.
        for own in "127.0.0.1", at:
            status, out = p.run(0, ["sh", "-c", "rping -s -C 3 & sleep 0.5; rping -c -a %s -C 3 -v; wait" % own])
            check(out.count("ping data") == 3, out)

    seen = watched(place, run)
    check(seen == set(place.addresses), "on the wire: %s" % seen)
    status, out = p.run(1, ["rping", "-c", "-a", place.addresses[0], "-C", "1"])
    check(status != 0 and "no line for the virtual GID " + place.addresses[0] in out, out)
    status, out = p.run(0, ["rping", "-s", "-a", place.addresses[0], "-C", "1"])
    check(status != 0 and place.addresses[0] in out, "it listens at an address that it does not know: " + out)


def changes(place):
    """The file is read again: what is added is found, by both sides, and what is taken away is not."""
    own, peers = lines(place)
    path = map_file(own + "\n")
    server, client = mapped(place, path), mapped(place, map_file(own + "\n" + peers + "\n"))
    p = mapped(place, path)
    p.env = [server.env[0], client.env[1]]
    # The server begins before its peer has a line.
    for program in "ibv_rc_pingpong", "ibv_ud_pingpong":
        map_file(own + "\n", path)
        size = 4096 if "rc" in program else 1024
        pair = Pair(p, program, ["-n", 50, "-s", size])
        pair.server.wait_listen(pair.port)
        map_file(own + "\n" + peers + "\n", path)
        pingpong_check(pair, pair.go().finish(), 50, size)
    map_file(own + "\n", path)
    listener = p.start(0, ["rping", "-s", "-a", p.addresses[0], "-C", "3", "-v"])
    pair = Pair(p, "ibv_rc_pingpong", ["-n", 50])
    status = pair.go().client.wait(60)
    out = pair.server.output()
    check(pair.server.wait(60) not in (0, None) and "no line for the peer's GID " + p.addresses[1] in out, out)
    pair.kill()
    map_file(own + "\n" + peers + "\n", path)
    status, out = p.run(1, ["rping", "-c", "-a", p.addresses[0], "-C", "3", "-v"])
    check(out.count("ping data") == 3, out)
    listener.wait(60)
    check(listener.output().count("ping data") == 3, listener.output())
    # A file that is wrong changes nothing.
    pair = Pair(p, "ibv_rc_pingpong", ["-n", 50])
    pair.server.wait_listen(pair.port)
    map_file(own + "\n" + own + "\n", path)
    pingpong_check(pair, pair.go().finish(), 50, 4096)
    check(path + ":2: " in pair.server.output() and "stays" in pair.server.output(), pair.server.output())


def renamed(place):
    """The device's own address has another name: programs are told, and their files say so."""
    own, peers = lines(place)
    path = map_file(own + "\n" + peers + "\n")
    p = mapped(place, path)
    files = "(stdbuf -oL %s & while :; do cat $VERBENA_SYSFS/class/infiniband/verbena0/ports/1/gids/* | sort -u; sleep 0.2; done)" % WATCHES
    watch = p.start(0, ["sh", "-c", files])
    watch.wait_text("start .*:10[.]200[.]0[.]1@")
    map_file("10.200.0.7 %s\n%s\n" % (place.addresses[0], peers), path)
    # A connection request comes, and looks for its names.
    status, out = p.run(1, ["rping", "-c", "-a", "10.200.0.7", "-C", "1"])
    check(status != 0, out)
    watch.wait_text("GID.*:10[.]200[.]0[.]7@")
    watch.wait_text("ffff:0ac8:0007")
    watch.kill()


def peers_of(place, pid):
    return [q["peer"] for q in json.loads(place.tool(0, "qps", "--json")) if q["pid"] == pid]


def moves(place):
    """A program goes on where the map says that its name is; the others follow it, and go on knowing it by that name."""
    place._address("c", "vrbc", "10.77.0.30/16")
    text = "10.200.0.1 10.77.0.1\n10.200.0.2 %s\n"
    path = map_file(text % "10.77.0.9")
    p = mapped(place, path)
    pair = Pair(p, MOVE, env={"VERBENA_ROAM": "unsafe"}).go().underway()
    for space, address in (("c", "10.77.0.30"), ("b", "10.77.0.9")):
        map_file(text % address, path)
        p.tool(0, "move", str(pair.client.pid), "--to", space)
        goes_on(pair)
        # A process that has no processor for long is not shown.
        wait_for(lambda: address in peers_of(p, pair.server.pid), "its peer does not know it at " + address)
    end_of(pair)


def refused(place, env, words):
    status, out = place.run(0, [place.verbena, "run", "ibv_devinfo"], env=env)
    check(status == 125 and all(w in out for w in words), "%s: %d, %s" % (env, status, out))


def wrong(place):
    """What cannot be says why, with its line."""
    own, peers = lines(place)
    for text, words in (("", ["there is no line"]),
                        (own + "\n" + peers + "\n" + own.split()[0] + " 10.1.1.1\n", [":3: ", "line 1", "one underlay"]),
                        (own + "\n10.1.1.1 " + own.split()[1] + "\n", [":2: ", "line 1", "one vGID"]),
                        ("10.200.0.1 fd00::1\n", [":1: ", "two of one kind"]),
                        (own + "\nhost 10.1.1.1\n", [":2: ", "'host'", "IPv4 and IPv6"]),
                        (peers + "\n", ["no line has an address of the device", place.addresses[0]])):
        path = map_file(text)
        refused(place, {"VERBENA_MAP": path}, words + [path])
    refused(place, {"VERBENA_MAP": "/nowhere/map"}, ["VERBENA_MAP=/nowhere/map", "No such file"])
    refused(place, {"VERBENA_MAP": map_file(own + "\n"), "VERBENA_PROTOCOL": "iwarp"}, ["VERBENA_MAP", "iWARP"])
    conf = os.path.join(folder(), "conf")
    with open(conf, "w") as f:
        f.write("[vf1]\nmap = %s\n" % map_file(own + "\n"))
    os.chmod(conf, 0o644)
    status, out = place.run(0, ["ibv_devinfo", "-v"], env={"VERBENA_CONFIG": conf, "VERBENA_DEVICE": "vf1"})
    check(status == 0 and VGIDS[False][0] in out, out)


if __name__ == "__main__":
    main({"names": names, "exchange": exchange, "losses": losses, "connections": connections, "changes": changes, "renamed": renamed,
          "moves": moves, "wrong": wrong})
