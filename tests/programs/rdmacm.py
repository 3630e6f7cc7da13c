#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""
Debian's librdmacm and its programs, unmodified: two processes find each other through the connection manager.

No tool shows a listener of rdma_cm, so both ends begin anew where the client was refused because it came too early.
"""
import os
import re
import signal
import subprocess
import time

from pair import BUILD, TIME_S, check, main

TOO_EARLY = ("error 8", "event bl blka 8", "error: 8", "REJECTED", "Connection refused", "UNREACHABLE, error: 1", "ECONNREFUSED")
# rping's main thread closes the channel at its end, in the server and in the client, when another thread may be about to ask
# it for an event. That one then ends the process with this message, wherever the call comes a moment after the close.
OWN_RACE = "rdma_get_cm_event: Bad file descriptor"


def ended_well(command, status, out):
    return status == 0 or (command[0] == "rping" and status == 255 and OWN_RACE in out)


def talk(place, server, client, env=None, seconds=TIME_S):
    """Both programs to their end; what they printed."""
    end, patience = time.monotonic() + seconds, 0.05
    while True:
        s = place.start(0, server, env)
        time.sleep(patience)
        status, out = place.run(1, client, seconds, env, s)
        if ended_well(client, status, out) or not any(words in out for words in TOO_EARLY):
            break
        check(time.monotonic() < end, "always too early: %s\n%s" % (" ".join(client), out))
        # The server may have accepted some of the client's connections, and waits in vain for the others.
        s.kill()
        patience *= 2
    check(ended_well(client, status, out), "%s: status %s\n%s\nserver:\n%s" % (" ".join(client), status, out, s.output()))
    status = s.wait(end - time.monotonic())
    check(ended_well(server, status, s.output()), "%s: status %s\n%s" % (" ".join(server), status, s.output()))
    outs = s.output(), out
    s.kill()
    return outs


def rping(place):
    at = place.addresses[0]
    outs = talk(place, ["rping", "-s", "-a", at, "-C", "10", "-v", "-V"],
                ["rping", "-c", "-a", at, "-C", "10", "-v", "-V"])
    for out in outs:
        check(out.count("ping data") == 10, "not ten pings:\n%s" % out)
    # The program moves the queue pair itself.
    talk(place, ["rping", "-s", "-q", "-a", at, "-C", "3"], ["rping", "-c", "-q", "-a", at, "-C", "3"])


def ucmatose(place):
    at = place.addresses[0]
    for options in (["-c", "20", "-C", "50", "-S", "4096"], ["-m", "-c", "3", "-C", "5"], ["-P", "ib", "-c", "3", "-C", "5"]):
        talk(place, ["ucmatose", "-b", at] + options, ["ucmatose", "-s", at] + options)


def udaddy(place):
    at = place.addresses[0]
    talk(place, ["udaddy", "-b", at, "-c", "5", "-C", "10"], ["udaddy", "-s", at, "-c", "5", "-C", "10"])


def client_server(place):
    talk(place, ["rdma_server"], ["rdma_client", "-s", place.addresses[0]])


def windows(place):
    """Memory that is lent through windows, of both types. tests/interop has Linux's rxe at either end."""
    program, at = os.path.join(BUILD, "tests/programs/windows"), place.addresses[0]
    for out in talk(place, [program, at, "9100"], [program, "-c", at, "9100"]):
        check("all as it must be" in out, out)


def placement(place):
    """Data are in memory before the flag that is set behind them, over either protocol. tests/interop has Linux's rxe at either end."""
    program, at = os.path.join(BUILD, "tests/programs/placement"), place.addresses[0]
    for protocol in ("veroce", "rocev2"):
        for out in talk(place, [program, at, "9100"], [program, "-c", at, "9100"], {"VERBENA_PROTOCOL": protocol}):
            check("all as it must be" in out and "no FLUSH" not in out, out)


def wakes(place):
    """A program is woken for each event, however it waits. tests/interop runs it on Linux's device."""
    status, out = place.run(1, [os.path.join(BUILD, "tests/programs/wakes"), place.addresses[1]])
    check(status == 0 and "all as it must be" in out, "status %s\n%s" % (status, out))


def calls(place):
    """A command looks whether its descriptor is still the device, and asks the kernel nothing else."""
    status, out = place.run(1, [os.path.join(BUILD, "tests/programs/calls"), place.addresses[1]])
    counted = re.search(r"commands (\d+) fstat (\d+) others (\d+)", out)
    check(status == 0 and counted, "status %s\n%s" % (status, out))
    commands, looks, others = map(int, counted.groups())
    # The stop at the end, and now and then the engine's thread is woken.
    check(looks == commands and others < commands / 10, out)


def lossy(place):
    """A tenth of all packets is lost, both ways: connections take longer, and all are made."""
    at = place.addresses[0]
    options = ["-c", "30", "-C", "5", "-S", "100"]
    talk(place, ["ucmatose", "-b", at] + options, ["ucmatose", "-s", at] + options,
         {"VERBENA_IMPAIR": "drop=10%,seed=3"})


def third(place):
    """The listener is not the first process of its host: what asks for it arrives elsewhere."""
    at = place.addresses[0]
    first = place.start(0, ["rping", "-s", "-a", at, "-p", "9000"])
    time.sleep(1)
    talk(place, ["rping", "-s", "-a", at, "-p", "9001", "-C", "3"], ["rping", "-c", "-a", at, "-p", "9001", "-C", "3"])
    check(first.running(), "the first server ended:\n%s" % first.output())
    status, out = place.run(1, ["rping", "-c", "-a", at, "-p", "9002", "-C", "3"])
    check(status != 0 and "error 8" in out, "somebody answered where nobody listens: %s\n%s" % (status, out))
    first.kill()


def await_members(place, group, count):
    """Until the host of end 0 has joined the group on so many interfaces."""
    end = time.monotonic() + TIME_S
    while True:
        r = subprocess.run(place.wrap(0, ["ip", "maddr"]), capture_output=True, text=True)
        if len(re.findall(r"inet6? +%s\s" % re.escape(group), r.stdout)) == count:
            return
        check(time.monotonic() < end, "not joined on %d interfaces:\n%s" % (count, r.stdout))
        time.sleep(0.05)


def member_killed(place):
    """The host is a member of a group as long as a process has joined, on the interface of its id alone."""
    members = [place.start(0, ["mckey", "-m", "239.1.2.44", "-b", place.addresses[0]]) for _ in range(2)]
    for member in members:
        await_members(place, "239.1.2.44", 1)
        member.signal(signal.SIGKILL)
        member.wait(TIME_S)
    await_members(place, "239.1.2.44", 0)
    for member in members:
        member.kill()


if __name__ == "__main__":
    main({"rping": rping, "ucmatose": ucmatose, "udaddy": udaddy, "client_server": client_server, "lossy": lossy,
          "third": third, "member_killed": member_killed, "windows": windows, "placement": placement, "wakes": wakes, "calls": calls})
