#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""
A program whose peers know one address and speak RoCEv2 moves to a network that does not have this address: the old host, which
its neighbours still take for it, passes their packets on by a tunnel of the kernel's, and back (docs/moves.md).
"""
import json
import subprocess

from moves import MOVE, end_of, goes_on
from pair import Pair, Skip, check, main, sh
from rdmacm import talk

OLD, NEW, ADDRESS = "b", "c", "10.77.0.9"


def inside(space, *words):
    sh("ip", "netns", "exec", space, *words)


def tunnel(ends):
    """A point-to-point link between two hosts, with 169.254.9.1 and .2; WireGuard's would be used alike, and prove who sends."""
    for i, (space, own, other) in enumerate(ends):
        r = subprocess.run(["ip", "-n", space, "link", "add", "vrbt", "type", "vxlan", "id", "9", "local", own, "remote", other,
                            "dstport", "4789"], capture_output=True, text=True)
        if r.returncode:
            raise Skip("needs VXLAN: " + r.stderr.strip())
        sh("ip", "-n", space, "addr", "add", "169.254.9.%d/30" % (i + 1), "dev", "vrbt")
        sh("ip", "-n", space, "link", "set", "vrbt", "up")
        inside(space, "sysctl", "-q", "-w", "net.ipv4.conf.all.rp_filter=0", "net.ipv4.conf.vrbt.rp_filter=0")


def prepare_new():
    """The address is the tunnel's end, and nobody beside it is told; answers go back by the tunnel."""
    inside(NEW, "sysctl", "-q", "-w", "net.ipv4.conf.all.arp_ignore=1")
    sh("ip", "-n", NEW, "addr", "add", ADDRESS + "/32", "dev", "vrbt")
    sh("ip", "-n", NEW, "route", "add", "default", "via", "169.254.9.1", "dev", "vrbt", "table", "9")
    sh("ip", "-n", NEW, "rule", "add", "from", ADDRESS, "table", "9")


def pass_on():
    """The old host still answers to those who look for the address, and it forwards."""
    inside(OLD, "sysctl", "-q", "-w", "net.ipv4.ip_forward=1", "net.ipv4.conf.vrbb.proxy_arp=1", "net.ipv4.conf.vrbb.rp_filter=0")
    sh("ip", "-n", OLD, "addr", "del", ADDRESS + "/24", "dev", "vrbb")
    sh("ip", "-n", OLD, "route", "add", ADDRESS + "/32", "via", "169.254.9.2", "dev", "vrbt")


def through_tunnel():
    """Packets that came out of it at the new host."""
    out = subprocess.run(["ip", "-n", NEW, "-s", "-j", "link", "show", "vrbt"], capture_output=True, text=True, check=True).stdout
    return json.loads(out)[0]["stats64"]["rx"]["packets"]


def passed_on(place):
    """Queue pairs go on, and new ones of the same address are made, with every packet by the old host."""
    tunnel(((OLD, "10.77.0.2", "10.77.0.3"), (NEW, "10.77.0.3", "10.77.0.2")))
    env = {"VERBENA_PROTOCOL": "rocev2"}
    pair = Pair(place, MOVE, env=env).go().underway()
    prepare_new()
    place.tool(0, "move", str(pair.client.pid), "--to", NEW)
    pass_on()
    goes_on(pair)
    before = through_tunnel()
    goes_on(pair)
    check(through_tunnel() > before + 100, "its packets take another way")
    end_of(pair)
    place.spaces = [NEW, "a"]
    outs = talk(place, ["rping", "-s", "-a", ADDRESS, "-C", "5", "-v"], ["rping", "-c", "-a", ADDRESS, "-C", "5", "-v"], env)
    check(all(out.count("ping data") == 5 for out in outs), "\n".join(outs))


if __name__ == "__main__":
    main({"passed_on": passed_on})
