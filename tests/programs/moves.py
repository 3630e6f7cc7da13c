#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""
Devices that are frozen, thaw and move to other network namespaces under programs that do not know it:
tests/programs/move.c, which counts and hashes all that it sends, and unmodified ones.
"""
import ctypes
import json
import os
import shutil
import signal
import socket
import subprocess
import time

from pair import BUILD, Failure, Pair, Process, Skip, check, clean_env, long_enough, main, perftest_check, pingpong_check
from rdmacm import ended_well

MOVE = os.path.join(BUILD, "tests", "programs", "move")
LOSS = {"VERBENA_IMPAIR": "drop=1%,seed=5"}


def said(place, *words, end=1):
    """What `verbena WORDS` says of what it refuses."""
    r = subprocess.run(place.wrap(end, [place.verbena] + [str(w) for w in words]), capture_output=True, text=True, timeout=60,
                       env=clean_env(place.env[end]), cwd="/")
    check(r.returncode == 125, "verbena %s: status %s\n%s%s" % (" ".join(map(str, words)), r.returncode, r.stdout, r.stderr))
    return r.stderr


def counters(place, pid, end=1):
    found = json.loads(place.tool(end, "stat", "--json", str(pid)))["processes"]
    check(len(found) == 1, "process %d is not shown" % pid)
    return found[0]["counters"]


def wait_for(what, text, seconds=30):
    end = time.monotonic() + seconds
    while not what():
        check(time.monotonic() < end, text)
        time.sleep(0.02)


def goes_on(pair, seconds=30):
    """Both ends run, and packets move."""
    before = received(pair)
    wait_for(lambda: received(pair) > before + 200, "nothing moves any more", seconds)


def received(pair):
    """By the server so far."""
    pair.still_runs()
    try:
        c = counters(pair.place, pair.server.pid, 0)
    except Failure:
        pair.still_runs()
        raise
    return c["rx_packets"] + c.get("io_shm_rx_packets", 0)


def end_of(pair):
    os.kill(pair.client.pid, signal.SIGINT)
    for out in pair.finish():
        check("messages" in out and ", 0 messages" not in out, out)


def hold(place, pid):
    """Frozen as long as that command runs, which is returned."""
    p = Process(place.wrap(1, ["stdbuf", "-oL", place.verbena, "freeze", str(pid)]), place.env[1])
    p.wait_text("(?m)^frozen")
    return p


def freeze(place):
    """In place, with what each message is looked at: thawed by command, after its time, and when the freezer dies."""
    for options, env in ((["-b", "32768"], None), (["-e", "-b", "1024"], {"VERBENA_PROTOCOL": "rocev2"})):
        pair = Pair(place, MOVE, options, env=env).go().underway()
        pid = pair.client.pid
        for _ in range(3):
            check(place.tool(1, "freeze", str(pid), "--hold", "50s", "--force").endswith("frozen\n"), "it does not say that it is frozen")
            before = counters(place, pid)
            check("it is frozen already" in said(place, "freeze", pid, "--hold", "1s", "--force"), "frozen twice")
            check("it is frozen" in said(place, "fault", pid, "link", "down"), "a fault while it is frozen")
            check(counters(place, pid) == before, "packets move while it is frozen")
            place.tool(1, "thaw", str(pid))
            goes_on(pair)
        place.tool(1, "freeze", str(pid), "--hold", "30ms")
        goes_on(pair)
        hold(place, pid).kill()
        goes_on(pair)
        check("it is not frozen" in said(place, "thaw", pid), "thaw of what runs")
        end_of(pair)


def frozen_calls(place):
    """A program that ends, or is killed, while its device is frozen: both are over at once. The slot is free then."""
    for number, status in ((signal.SIGINT, None), (signal.SIGKILL, -signal.SIGKILL)):
        p = place.start(1, ["ibv_asyncwatch"])
        wait_for(lambda: str(p.pid) in place.tool(1, "stat"), "it does not run")
        place.tool(1, "freeze", str(p.pid), "--hold", "50s", "--force")
        check(str(p.pid) in place.tool(1, "stat"), "a frozen program is not shown")
        os.kill(p.pid, number)
        got = p.wait(20)
        check(got is not None and (status is None or got == status), "status %s" % got)
        p.kill()
    place.run(1, ["ibv_devinfo"])


def joined_meanwhile(place):
    """Whoever starts while a process is frozen does not wait for it, and it has its slot afterwards."""
    pair = Pair(place, MOVE).go().underway()
    place.tool(1, "freeze", str(pair.client.pid), "--hold", "50s", "--force")
    others = [place.start(1, ["ibv_asyncwatch"]) for _ in range(2)]
    for p in others:
        wait_for(lambda: str(p.pid) in place.tool(1, "stat"), "it does not start")
    place.tool(1, "thaw", str(pair.client.pid))
    goes_on(pair)
    for p in others:
        p.kill()
    goes_on(pair)
    end_of(pair)


def patient(place):
    """
    A freeze for longer than the peer's retries take, which are half a second: over veRoCE the peer waits, over RoCEv2 it is
    made to wait. It is said how long peers wait, and one that may not is not frozen unless that is wanted.
    """
    for protocol, name, hold, force in (("veroce", "veRoCE", "1500ms", []), ("rocev2", "RoCEv2", "600ms", ["--force"])):
        at_home(place)
        for _ in range(50):
            pair = Pair(place, "ibv_rc_pingpong", ["-n", "1000000000"], env={"VERBENA_PROTOCOL": protocol}).go().underway()
            pid = str(pair.client.pid)
            if force:
                check("less than twice" in said(place, "freeze", pid, "--hold", hold), "it is frozen although the peer may not wait")
            before = counters(place, int(pid))["rnrs_sent"]
            out = place.tool(1, "freeze", pid, "--hold", hold, *force)
            check("over " + name in out and out.endswith("frozen\n"), out)
            # A peer that had no processor sent nothing that could be refused: its retries have begun, and it may fail.
            if not force or counters(place, int(pid))["rnrs_sent"] > before:
                break
            pair.kill()
        else:
            raise Failure("nothing is ever refused")
        time.sleep(float(hold.rstrip("ms")) / 1000)
        goes_on(pair)
        pair.client.kill()
        pair.server.kill()


def rx(place, p, end=0):
    """Packets so far; 0 before it has a device."""
    try:
        return counters(place, p.pid, end)["rx_packets"]
    except Failure:
        check(p.running(), "it has ended:\n" + p.output())
        return 0


def pings_on(place, p):
    check(p.running(), "rping has ended:\n" + p.output())
    before = rx(place, p)
    wait_for(lambda: rx(place, p) > before + 100, "no ping any more")


def connections(place):
    """rping while either side moves. A listener listens where its device is, and its address goes there too."""
    at = place.addresses
    for moves in (0, 1):
        at_home(place)
        ends = [1, 0] if moves == 0 else [0, 1]  # of the server and of the client
        server = place.start(ends[0], ["rping", "-s", "-P", "-a", at[ends[0]]])
        once = ["rping", "-c", "-a", at[ends[0]], "-C", "3"]
        wait_for(lambda: place.run(ends[1], once)[0] == 0, "nobody listens")
        client = place.start(ends[1], ["rping", "-c", "-V", "-a", at[ends[0]], "-C", "1000000000"])
        mover, other = (server, client) if moves == 0 else (client, server)
        wait_for(lambda: rx(place, other) > 100, "no pings")
        for to in "cb":
            place.tool(0, "move", str(mover.pid), "--to", to, "--with-addresses")
            pings_on(place, other)
            if moves == 0:
                status, out = place.run(0, once)
                check(ended_well(once, status, out), "a connection to a listener that has moved to %s: %s\n%s" % (to, status, out))
        client.kill()
        server.kill()


def idle_listener(place):
    """A listener without connections takes its address along, or it is said that it cannot go without."""
    at_home(place)
    server = place.start(1, ["rping", "-s", "-P", "-a", place.addresses[1]])
    once = ["rping", "-c", "-a", place.addresses[1], "-C", "3"]
    wait_for(lambda: place.run(0, once)[0] == 0, "nobody listens")
    check("which is no address" in said(place, "move", server.pid, "--to", "c"), "it goes without its address")
    place.tool(0, "move", str(server.pid), "--to", "c", "--with-addresses")
    wait_for(lambda: place.run(0, once)[0] == 0, "nobody listens there")
    server.kill()
    at_home(place)


def is_member(space, group):
    r = subprocess.run(["ip", "-n", space, "maddr"], capture_output=True, text=True)
    return group in r.stdout.split()


def multicast(place):
    """Who receives from a group goes on receiving where it has moved to, and is no member any more where it was."""
    at_home(place)
    group = "ff0e::77" if place.ipv6 else "239.1.2.3"
    receiver = place.start(1, ["mckey", "-m", group, "-b", place.addresses[1], "-C", "40"])
    send = ["mckey", "-m", group, "-b", place.addresses[0], "-s", "-C", "10"]
    wait_for(lambda: is_member("b", group), "not joined")
    status, out = place.run(0, send)
    check(status == 0, out)
    wait_for(lambda: counters(place, receiver.pid)["rx_multicast"] >= 10, "nothing arrives")
    place.tool(0, "move", str(receiver.pid), "--to", "c", "--with-addresses")
    wait_for(lambda: is_member("c", group), "not joined there")
    check(not is_member("b", group), "still a member where it was")
    for _ in range(20):
        status, out = place.run(0, send)
        check(status == 0, out)
        if receiver.wait(1) is not None:
            break
    check(receiver.wait(1) == 0 and "data transfers complete" in receiver.output(), receiver.output())
    at_home(place)


def elsewhere(place):
    """Places that lack something, and ends that die meanwhile."""
    pair = Pair(place, MOVE, ["-e"]).go().underway()
    pid, address = str(pair.client.pid), place.addresses[1]
    prefix = "/64" if place.ipv6 else "/24"
    place.tool(1, "freeze", pid, "--hold", "50s", "--force")
    check("it is frozen" in said(place, "move", pid, "--to", "c"), "a frozen device moves")
    subprocess.run(["ip", "-n", "b", "addr", "del", address + prefix, "dev", "vrbb"], check=True)
    check("which is no address" in said(place, "thaw", pid), "it thaws without its address")
    at_home(place)
    wait_for(lambda: subprocess.run(place.wrap(1, [place.verbena, "thaw", pid]), env=clean_env()).returncode == 0, "it does not thaw")
    goes_on(pair)
    # After its time it goes on all the same, and the connection as soon as the address is there.
    place.tool(1, "freeze", pid, "--hold", "300ms", "--force")
    subprocess.run(["ip", "-n", "b", "addr", "del", address + prefix, "dev", "vrbb"], check=True)
    wait_for(lambda: "not frozen" in said_or_not(place, "thaw", pid), "it stays frozen")
    at_home(place)
    goes_on(pair)
    end_of(pair)

    if not place.ipv6:
        subprocess.run(["ip", "netns", "exec", "c", "sysctl", "-q", "-w", "net.ipv6.conf.all.disable_ipv6=1"], check=True)
        pair = Pair(place, MOVE, ["-e"]).go().underway()
        there_and_back(place, pair, 2)
        end_of(pair)
        subprocess.run(["ip", "netns", "exec", "c", "sysctl", "-q", "-w", "net.ipv6.conf.all.disable_ipv6=0"], check=True)

    pair = Pair(place, MOVE, ["-e"]).go().underway()
    place.tool(1, "freeze", str(pair.client.pid), "--hold", "50s", "--force")
    pair.server.kill()
    place.tool(1, "thaw", str(pair.client.pid))
    check(pair.client.wait(60) not in (None, 0), "its peer has died, and it does not notice: " + pair.client.output())


PIDFD_GETFD = 438
UDP_GRO, IP_MTU_DISCOVER, IP_RECVTOS, PMTUDISC_WANT, PMTUDISC_PROBE = 104, 10, 13, 1, 3


def udp_sockets(pid):
    """Those over IPv4 of another process, which this one then has too."""
    libc, process, found = ctypes.CDLL(None, use_errno=True), os.pidfd_open(pid), []
    for name in os.listdir("/proc/%d/fd" % pid):
        fd = libc.syscall(PIDFD_GETFD, process, int(name), 0)
        try:
            s = socket.socket(fileno=fd) if fd >= 0 else None
        except OSError:
            os.close(fd)
            continue
        if s and (s.family, s.type, s.proto) == (socket.AF_INET, socket.SOCK_DGRAM, socket.IPPROTO_UDP):
            found.append(s)
    os.close(process)
    return found


def options(s):
    return (s.getsockopt(socket.IPPROTO_UDP, UDP_GRO), s.getsockopt(socket.IPPROTO_IP, IP_MTU_DISCOVER),
            s.getsockopt(socket.IPPROTO_IP, IP_RECVTOS))


def restored(place):
    """A process whose sockets were made anew, as those of one that was restored are: its engine gives them their options again."""
    pair = Pair(place, MOVE, ["-b", "32768"]).go().underway()
    sockets = udp_sockets(pair.client.pid)
    if not sockets:
        raise Skip("needs pidfd_getfd")
    before = [options(s) for s in sockets]
    check(any(gro for gro, _, _ in before) and any(mtu == PMTUDISC_PROBE for _, mtu, _ in before), before)
    for _ in range(2):
        os.kill(pair.client.pid, signal.SIGSTOP)
        for s in sockets:
            s.setsockopt(socket.IPPROTO_UDP, UDP_GRO, 0)
            s.setsockopt(socket.IPPROTO_IP, IP_MTU_DISCOVER, PMTUDISC_WANT)
            s.setsockopt(socket.IPPROTO_IP, IP_RECVTOS, 0)
        time.sleep(0.1)
        os.kill(pair.client.pid, signal.SIGCONT)
        wait_for(lambda: [options(s) for s in sockets] == before, "the options do not come back")
        goes_on(pair)
    end_of(pair)


def said_or_not(place, *words):
    return subprocess.run(place.wrap(1, [place.verbena] + list(words)), capture_output=True, text=True, timeout=60,
                          env=clean_env(place.env[1]), cwd="/").stderr


def refused(place):
    """What cannot be done is said in a sentence, and the program goes on where it was."""
    check("does not run on Verbena" in said(place, "freeze", 999999), "no such process")
    check("does not run on Verbena" in said(place, "thaw", os.getpid()), "a process without a device")
    check("allowed is a process id" in said(place, "freeze", "all"), "all")
    check("allowed is a time" in said(place, "freeze", 1, "--hold", "0"), "--hold 0")
    check("allowed is a time" in said(place, "freeze", 1, "--hold", "2h"), "--hold 2h")
    check("--to is missing" in said(place, "move", 1), "no --to")
    iwarp = place.start(1, ["ibv_asyncwatch"], {"VERBENA_PROTOCOL": "iwarp"})
    v1 = place.start(1, ["ibv_asyncwatch"], {"VERBENA_DEVICES": "2"})
    for p in (iwarp, v1):
        wait_for(lambda: str(p.pid) in place.tool(1, "stat"), "it does not run")
    check("iWARP" in said(place, "freeze", iwarp.pid), "iWARP is frozen")
    check("iWARP" in said(place, "move", iwarp.pid, "--to", "c"), "iWARP moves")
    check("2 devices" in said(place, "move", v1.pid, "--to", "c"), "two devices move")
    place.tool(1, "freeze", str(v1.pid), "--hold", "50s", "--force")
    place.tool(1, "thaw", str(v1.pid))
    for p in (iwarp, v1):
        p.kill()

    pair = Pair(place, MOVE).go().underway()
    pid = pair.client.pid
    check("nowhere" in said(place, "move", pid, "--to", "nowhere"), "nowhere")
    check("no network namespace" in said(place, "move", pid, "--to", "/etc/passwd"), "a file")
    check("already" in said(place, "move", pid, "--to", "b"), "where it is")
    check("which is no address" in said(place, "move", pid, "--to", "c"), "an address that is not there")
    other = Process(["ip", "netns", "exec", "c", place.verbena, "run", "ibv_asyncwatch"])
    wait_for(lambda: "asyncwatch" in subprocess.run(["ip", "netns", "exec", "c", place.verbena, "stat"], capture_output=True,
                                                    text=True).stdout, "it does not run")
    check("slot 0" in said(place, "move", pid, "--to", "c", "--with-addresses"), "a slot that is taken")
    shown = subprocess.run(["ip", "-n", "c", "addr"], capture_output=True, text=True).stdout
    check(place.addresses[1] + "/" not in shown, "the address stays there: " + shown)
    other.kill()
    goes_on(pair)
    end_of(pair)


def there_and_back(place, pair, times, looks=True):
    for i in range(times):
        try:
            place.tool(0, "move", str(pair.client.pid), "--to", "bc"[(i + 1) % 2], "--with-addresses")
        except Failure:
            pair.still_runs()
            raise
        if looks:
            goes_on(pair)


def at_home(place):
    """What a program has left elsewhere that ended between its moves."""
    for address in ("10.77.0.9/24", "fd77::9/64"):
        subprocess.run(["ip", "-n", "c", "addr", "del", address, "dev", "vrbc"], capture_output=True)
        subprocess.run(["ip", "-n", "b", "addr", "replace", address, "dev", "vrbb"], check=True)


def counted(place):
    """Every message once, in order, with its bytes, over several moves, and with 1 % of the packets lost besides."""
    for env in ({}, {"VERBENA_PROTOCOL": "rocev2"}, LOSS, {"VERBENA_PROTOCOL": "rocev2", **LOSS}):
        pair = Pair(place, MOVE, ["-e"] if env else [], env=env).go().underway()
        there_and_back(place, pair, 4)
        end_of(pair)


def kernel_loses(rules):
    """Rules of nftables for what reaches each of the three; none: no rules any more."""
    if not shutil.which("nft") or not shutil.which("ethtool"):
        raise Skip("needs nft and ethtool")
    text = "table inet verbena\ndelete table inet verbena\n"
    if rules:
        text += "table inet verbena {\nchain arrival {\ntype filter hook prerouting priority -300;\n%s\n}\n}\n" % rules
    for space in "abc":
        # What is sent as a train is one packet to nftables, unless the device cannot do that.
        subprocess.run(["ip", "netns", "exec", space, "ethtool", "-K", "vrb" + space, "tx-udp-segmentation", "off" if rules else "on"],
                       check=True, capture_output=True)
        r = subprocess.run(["ip", "netns", "exec", space, "nft", "-f", "-"], input=text, capture_output=True, text=True)
        if r.returncode:
            raise Skip("nft: " + r.stderr.strip())


def counted_loss(place, times=6):
    """Every message once, in order, with its bytes, over many moves, while the kernel drops 1 % of the packets."""
    kernel_loses("udp dport { 4791, 4794 } numgen random mod 1000 < 10 counter drop")
    try:
        for protocol in ("veroce", "rocev2"):
            at_home(place)
            pair = Pair(place, MOVE, ["-e"], env={"VERBENA_PROTOCOL": protocol}).go().underway()
            there_and_back(place, pair, times)
            check(counters(place, pair.server.pid, 0)["retransmits"] > 0, "nothing is lost")
            end_of(pair)
    finally:
        kernel_loses("")


def counted_loss_all(place):
    counted_loss(place, 50)


ROAM = {"VERBENA_ROAM": "unsafe"}


def elsewhere_at(place, pair, times=2):
    """Under the addresses that the other places have."""
    for i in range(times):
        place.tool(0, "move", str(pair.client.pid), "--to", "cb"[i % 2])
        goes_on(pair)


def roams(place):
    """Peers that have agreed go on under other addresses, with every message once; others are not left."""
    for env in (ROAM, {**ROAM, **LOSS}):
        pair = Pair(place, MOVE, ["-e"] if len(env) > 1 else [], env=env).go().underway()
        elsewhere_at(place, pair, 4)
        check(counters(place, pair.server.pid, 0)["peers_moved"] >= 4, "the peer has not followed")
        end_of(pair)

    pair = Pair(place, MOVE, env=ROAM, server_env={"VERBENA_ROAM": "off"}).go().underway()
    check("would not follow" in said(place, "move", pair.client.pid, "--to", "c"), "its peer has not agreed")
    goes_on(pair)
    end_of(pair)

    pair = Pair(place, MOVE, env=ROAM).go().underway()
    check("would not follow" in said(place, "move", pair.client.pid, "--to", "a"), "its peer is there")
    goes_on(pair)
    end_of(pair)

    pair = Pair(place, "ibv_rc_pingpong", ["-c", "-n", "1000000000"], env=ROAM).go().underway()
    elsewhere_at(place, pair)
    pair.client.kill()
    pair.server.kill()
    pair = Pair(place, "ib_write_bw", ["-F", "-s", "65536", "-D", "3", "-u", "18"], gid_flag="-x", env=ROAM).go().underway()
    place.tool(0, "move", str(pair.client.pid), "--to", "c")
    pair.still_runs()
    perftest_check(pair, pair.finish())


def neighbours(place):
    """Two of one host, which exchange packets through memory, go on by UDP when one moves, and through memory when it is back."""
    place.spaces = ["b", "b"]
    place.addresses[0] = place.addresses[0].replace("::1", "::2") if place.ipv6 else "10.77.0.2"
    place.meet = "10.78.0.2"
    for protocol in ("auto", "rocev2"):
        pair = Pair(place, MOVE, env={"VERBENA_PROTOCOL": protocol}, server_options=["-g", by_address(place, 0)], 
                    client_options=["-g", by_address(place, 1)],
                    gid_flag=None).go().underway(packets=0)
        wait_for(lambda: pair.still_runs() or counters(place, pair.server.pid)["io_shm_rx_packets"] > 100, "not through memory")
        place.tool(0, "move", str(pair.client.pid), "--to", "c", "--with-addresses")
        goes_on(pair)
        before = counters(place, pair.server.pid)
        wait_for(lambda: counters(place, pair.server.pid)["rx_packets"] > before["rx_packets"] + 100, "not by UDP")
        place.tool(0, "move", str(pair.client.pid), "--to", "b", "--with-addresses")
        before = counters(place, pair.server.pid)
        wait_for(lambda: pair.still_runs() or counters(place, pair.server.pid)["io_shm_rx_packets"] > before["io_shm_rx_packets"] + 100,
                 "not through memory again")
        end_of(pair)


def by_address(place, end):
    for g in json.loads(place.tool(end, "devices", "--json"))["devices"][0]["ports"][0]["gids"]:
        if g.get("address") == place.addresses[end]:
            return g["index"]
    raise Failure("no GID of %s" % place.addresses[end])


def freezes(place, times=20):
    """A bandwidth test whose device is frozen many times in place: all is written, and its sockets are afterwards what they were."""
    def run(protocol, seconds):
        pair = Pair(place, "ib_write_bw", ["-F", "-s", "65536", "-D", str(seconds)], gid_flag="-x", env={"VERBENA_PROTOCOL": protocol})
        pair.go().underway()
        pid = pair.client.pid
        before = sorted(map(options, udp_sockets(pid)))
        for _ in range(times):
            try:
                place.tool(1, "freeze", str(pid), "--hold", "5ms", "--force")
                wait_for(lambda: "not frozen" in said_or_not(place, "thaw", str(pid)) or pair.still_runs(), "it stays frozen")
                goes_on(pair)
            except Failure:
                pair.still_runs()
                raise
        after = sorted(map(options, udp_sockets(pid)))
        pair.still_runs()
        check(before == after, "its sockets were %s and are %s" % (before, after))
        perftest_check(pair, pair.finish())

    for protocol in ("veroce", "rocev2"):
        long_enough(lambda seconds: run(protocol, seconds), times, 4 * times, 16 * times)


def freezes_all(place):
    freezes(place, 100)


def unmodified(place):
    """Programs as they are, moved while they run."""
    def bandwidth(seconds):
        at_home(place)
        pair = Pair(place, "ib_write_bw", ["-F", "-s", "65536", "-D", str(seconds), "-u", "18"], gid_flag="-x").go().underway()
        there_and_back(place, pair, 2, looks=False)
        pair.still_runs()
        perftest_check(pair, pair.finish())

    def latency(seconds):
        at_home(place)
        pair = Pair(place, "ib_send_lat", ["-F", "-D", str(seconds), "-u", "18"], gid_flag="-x").go().underway()
        there_and_back(place, pair, 2, looks=False)
        pair.still_runs()
        perftest_check(pair, pair.finish())

    def pingpong(iters):
        at_home(place)
        pair = Pair(place, "ibv_rc_pingpong", ["-c", "-n", iters]).go().underway()
        there_and_back(place, pair, 2, looks=False)
        pair.still_runs()
        pingpong_check(pair, pair.finish(), iters, 4096)

    long_enough(bandwidth, 3, 10, 30)
    long_enough(latency, 3, 10, 30)
    long_enough(pingpong, 20000, 200000, 2000000)


if __name__ == "__main__":
    main({"freeze": freeze, "frozen_calls": frozen_calls, "joined_meanwhile": joined_meanwhile, "refused": refused,
          "patient": patient,
          "connections": connections, "idle_listener": idle_listener, "multicast": multicast,
          "restored": restored,
          "elsewhere": elsewhere,
          "freezes": freezes, "freezes_all": freezes_all, "counted_loss": counted_loss, "counted_loss_all": counted_loss_all,
          "counted": counted, "roams": roams, "neighbours": neighbours, "unmodified": unmodified})
