#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""
What a program of rdma_cm says on standard error when a call or a connection fails: one line, once for each cause, with
what Verbena knows of it.
"""
import os
import re
import subprocess
import time

from pair import BUILD, Process, Skip, check, clear, main

PARTY = os.path.join(BUILD, "tests/programs/party")
SOON_S = 20


def told(out, *patterns):
    lines = [line for line in out.splitlines() if line.startswith("verbena:")]
    check(len(lines) == 1, "%d lines of Verbena's:\n%s" % (len(lines), out))
    for pattern in patterns:
        check(re.search(pattern, lines[0]), "no /%s/ in: %s" % (pattern, lines[0]))


def party(place, *words, end=0, env=None, seconds=SOON_S):
    status, out = place.run(end, [PARTY, *words], seconds, env)
    check(status is not None, "still running: %s\n%s" % (" ".join(str(w) for w in words), out))
    return out


def listen(place, port, *options):
    p = place.start(0, [PARTY, "-l", *options, place.addresses[0], port])
    p.wait_text("listening")
    return p


def no_device(place):
    """A process that has our library, but not the one that `verbena run` preloads."""
    p = Process([PARTY, "-l", "127.0.0.1", "9000"], {"LD_LIBRARY_PATH": os.path.join(BUILD, "lib/verbena")})
    check(p.wait(SOON_S) == 2, p.output())
    told(p.output(), "there is no device", "verbena run")


def no_address(place):
    out = party(place, "-l", "192.0.2.1", 9000)
    check("EADDRNOTAVAIL" in out, out)
    told(out, r"address 192\.0\.2\.1", "verbena devices")


def nobody_listens(place):
    at = place.addresses[0]
    out = party(place, "-e", "-n", 5, at, 9000, end=1)
    check("REJECTED: status 8" in out and "failed 5" in out, out)
    told(out, "nobody listens at %s on port 9000 of RDMA_PS_TCP" % re.escape(at), r"\(REJ 8\)")


def no_way(place):
    out = party(place, "-e", "2001:db8::1", 9000)
    check("Verbena" not in out, out)
    told(out, "no way to 2001:db8::1", "unreachable")


def backlog(place):
    server = listen(place, 9000, "-b", 2, "-s", 1)
    out = party(place, "-e", "-n", 3, place.addresses[0], 9000, end=1)
    check("established 3 failed 0" in out, out)
    told(server.output(), "backlog", "come again")


def limits(place):
    """Those that a program reaches by itself, and those that requests reach. docs/rdmacm.md 5, 7.3."""
    out = party(place, "-l", "-p", 2100, place.addresses[0], 9000)
    check("bind: ENOMEM" in out, out)
    told(out, "2048 ports already")
    out = party(place, "-l", "-i", 65600, place.addresses[0], 9000)
    check("create: ENOMEM" in out, out)
    told(out, "65536 ids already")
    server = listen(place, 9000, "-s", 2)
    out = party(place, "-e", "-n", 850, "-w", 850, place.addresses[0], 9000, end=1, seconds=60)
    check("established 850 failed 0" in out, out)
    told(server.output(), "768 requests from one address", "come again")


def ports_of_the_range(place):
    """All that may be drawn are in use. The range is that of the namespace."""
    if not place.spaces[0]:
        raise Skip("needs a network namespace of its own")
    subprocess.run(["ip", "netns", "exec", place.spaces[0], "sysctl", "-q", "-w", "net.ipv4.ip_local_port_range=50000 50007"], check=True)
    listen(place, 9000)
    out = party(place, "-e", "-n", 20, "-w", 20, place.addresses[0], 9000, end=1)
    check("resolve: EADDRNOTAVAIL" in out, out)
    told(out, "all ports of the range are in use", "ip_local_port_range")


def quiet(place):
    out = party(place, "-l", "192.0.2.1", 9000, env={"VERBENA_QUIET": "1"})
    check("EADDRNOTAVAIL" in out and "verbena:" not in out, out)


def privileged(place):
    out = party(place, "-l", place.addresses[0], 80)
    check("EACCES" in out, out)
    told(out, "below 1024", "ip_unprivileged_port_start")


def descriptors(place):
    """Ours are out of the way of programs that count on low numbers."""
    p = listen(place, 9000)
    low = [n for n in os.listdir("/proc/%d/fd" % p.pid) if int(n) < 200]
    check(len(low) <= 9, "%d descriptors have low numbers: %s" % (len(low), low))


def storm(place):
    """Commands that no library writes, from several threads and after fork: errors, and nothing worse."""
    program = os.path.join(BUILD, "tests/programs/storm")
    for seed in (1,):
        status, out = place.run(0, [program, seed, 3000], SOON_S, {"VERBENA_QUIET": "1"})
        check(status == 0 and "survived" in out, "storm %d: status %s\n%s" % (seed, status, out))


def silent(place):
    """Nothing answers there: after 52 seconds."""
    at = place.addresses[0]
    out = party(place, "-e", at, 9000, end=1, seconds=90)
    check("UNREACHABLE: status -110" in out, out)
    told(out, "%s does not answer" % re.escape(at), "UDP port 4791 16 times in 5[0-9] s", "firewall")


def speaks_rocev2_only(place):
    """One end must speak veRoCE and the other cannot: the one that must is told, whoever connects."""
    at, must, cannot = place.addresses[0], {"VERBENA_PROTOCOL": "veroce"}, {"VERBENA_PROTOCOL": "rocev2"}
    for server_env, client_env in ((cannot, must), (must, cannot)):
        server = place.start(0, ["rping", "-s", "-a", at, "-C", 3], server_env)
        end = time.monotonic() + SOON_S
        while True:
            status, out = place.run(1, ["rping", "-c", "-a", at, "-C", 3], 60, client_env)
            if "nobody listens" not in out or time.monotonic() > end:
                break
        check(status not in (0, None), "status %s\n%s" % (status, out))
        check(server.wait(SOON_S) is not None, "the server does not end\n" + server.output())
        told(out if client_env is must else server.output(), "VERBENA_PROTOCOL=veroce", "does not answer in veRoCE",
             "without VERBENA_PROTOCOL")
        check("verbena:" not in (server.output() if client_env is must else out), "the other end is told something, too")
        clear()


def alone(case):
    def run(place):
        case(place)
        clear()
    return run


if __name__ == "__main__":
    main({case.__name__: alone(case) for case in
          (no_device, descriptors, no_address, nobody_listens, no_way, backlog, limits, ports_of_the_range, quiet, storm, privileged, silent,
           speaks_rocev2_only)})
