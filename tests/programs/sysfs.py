#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""`verbena devices --sysfs`: the devices' files for programs that make their own system calls."""
import os
import re
import shutil
import signal
import subprocess
import sys
import time

from pair import Pair, Process, check, folder, main, sh, tcp_port


def counter(at, name):
    with open(os.path.join(at, "class/infiniband/verbena0/ports/1/counters", name)) as f:
        return int(f.read())


def wait_for(what, condition):
    end = time.monotonic() + 60
    while not condition():
        check(time.monotonic() < end, what)
        time.sleep(0.1)


def exported(place, at):
    """
    What Debian's node exporter, a program in Go, tells of the device. It is a package of `make test-all` alone, as its installation
    starts a service.
    """
    port = tcp_port()
    p = Process(place.wrap(0, ["prometheus-node-exporter", "--path.sysfs=" + at, "--web.listen-address=127.0.0.1:%d" % port,
                               "--collector.disable-defaults", "--collector.infiniband"]))
    p.wait_listen(port)
    out = subprocess.run(place.wrap(0, [sys.executable, "-c", "import sys, urllib.request as u; print(u.urlopen(sys.argv[1])"
                                        ".read().decode())", "http://127.0.0.1:%d/metrics" % port]),
                         capture_output=True, text=True).stdout
    p.kill()
    return out


def files(place):
    """The tree as files: counters that only grow, addresses that come and go, and nothing of it is left."""
    at = os.path.join(folder(), "sys")
    gids = os.path.join(at, "class/infiniband/verbena0/ports/1/gids")
    keeper = Process(place.wrap(0, [place.verbena, "devices", "--sysfs", at]))
    wait_for("no files", lambda: os.path.exists(gids))
    check(counter(at, "port_xmit_packets") == 0, "packets before there was a program")
    pair = Pair(place, "ibv_rc_pingpong", ["-e", "-n", 100000000, "-s", 4096]).go().underway()
    wait_for("no packets", lambda: counter(at, "port_xmit_packets") > 100 and counter(at, "port_rcv_packets") > 100)
    pair.kill()
    counted = counter(at, "port_xmit_packets")
    time.sleep(1.5)
    check(counter(at, "port_xmit_packets") >= counted, "what a program counted went with it")
    check(counter(at, "port_xmit_data") * 4 > counter(at, "port_xmit_packets") * 20, "packets without bytes")
    if shutil.which("prometheus-node-exporter"):
        out = exported(place, at)
        sent = re.search(r'^node_infiniband_port_packets_transmitted_total{device="verbena0",port="1"} (\S+)$', out, re.M)
        check(sent and float(sent.group(1)) >= counted and 'device="verbena0",firmware_version' in out, out)
    if place.spaces[0]:
        for word, there in (("add", True), ("del", False)):
            sh("ip", "-n", place.spaces[0], "addr", word, "192.0.2.77/32", "dev", "lo")
            wait_for("addr %s: no change" % word, lambda t=there: t == any(
                open(os.path.join(gids, n)).read().endswith("c000:024d\n") for n in sorted(os.listdir(gids))))
    status, out = place.run(0, [place.verbena, "devices", "--sysfs", at])
    check(status == 125 and "another process keeps it" in out, out)
    keeper.signal(signal.SIGTERM)
    check(keeper.wait(30) == 0 and not os.listdir(at), "left behind: %s\n%s" % (os.listdir(at), keeper.output()))
    status, out = place.run(0, [place.verbena, "devices", "--sysfs", os.path.dirname(at)])
    check(status == 125 and "not empty" in out, out)


if __name__ == "__main__":
    main({"files": files})
