#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""
The modelled InfiniBand fabric: Debian's opensm brings it up, and the tools of infiniband-diags agree on what is there.
"""
import os
import re
import shutil
import subprocess

from pair import BUILD, ROOT, Skip, check, clean_env, folder, main

FAT_TREE = os.path.join(ROOT, "share", "fabrics", "fat-tree-4.net")
PAIR = os.path.join(ROOT, "share", "fabrics", "pair.net")
VERBENA = os.path.join(BUILD, "verbena")


def fabric(topology, script, seconds=600):
    for tool in ("opensm", "ibnetdiscover"):
        if not shutil.which(tool):
            raise Skip("needs %s" % tool)
    r = subprocess.run([VERBENA, "fabric", topology, "--", "sh", "-c", script], capture_output=True, text=True,
                       timeout=seconds, env=clean_env({"OSM_TMP_DIR": folder()}), cwd="/")
    if "install libumad2sim0" in r.stderr:
        raise Skip("needs libumad2sim0")
    return r


def manager(ends, work):
    """The script with opensm running beside it, once that many ends of links are active. (It buffers its log.)"""
    return ("opensm -f /dev/null >/dev/null 2>&1 & P=$!; "
            "until [ $(iblinkinfo 2>/dev/null | grep -c Active/) = %d ] && sminfo >/dev/null 2>&1; do sleep 0.1; done; "
            "%s; kill $P; wait" % (ends, work))


def discover(place):
    """Without a manager, by directed routes alone."""
    r = fabric(PAIR, "ibnetdiscover")
    check(r.returncode == 0, "status %s\n%s" % (r.returncode, r.stderr))
    check(len(re.findall(r"^Switch", r.stdout, re.M)) == 1 and len(re.findall(r"^Ca", r.stdout, re.M)) == 2,
          "ibnetdiscover:\n" + r.stdout)
    # What it prints is a topology, too.
    again = folder() + "/again.net"
    with open(again, "w") as f:
        f.write(r.stdout)
    check(fabric(again, "ibnetdiscover").stdout.count("\nCa") == 2, "its own output is not read back")


def opensm(topology, ends, nodes):
    def run(place):
        r = fabric(topology, manager(ends, "sminfo; iblinkinfo; echo ==; ibnetdiscover; echo ==; ibstat; smpquery NI 2; perfquery"))
        out = r.stdout
        check(r.returncode == 0 and "SMINFO_MASTER" in out, "status %s\n%s%s" % (r.returncode, out, r.stderr))
        check(out.count("==\n") == 2, out)
        links, found, rest = out.split("==\n")
        check(links.count("Active/") == ends, "not %d active ends of links:\n%s" % (ends, links))
        check(len(re.findall(r"^(Switch|Ca)\t", found, re.M)) == nodes, "not %d nodes:\n%s" % (nodes, found))
        check("State: Active" in rest and "NodeType" in rest and "PortXmitPkts" in rest, rest)
    return run


def routes(topology, ends, last, switches):
    """The tables that opensm wrote carry packets from one end to the other."""
    def run(place):
        r = fabric(topology, manager(
            ends, "L=$(SIM_HOST=%s ibstat | sed -n 's/.*Base lid: //p'); ME=$(ibstat | sed -n 's/.*Base lid: //p'); ibtracert $ME $L; "
            "SIM_HOST=%s SIM_SET_ISSM=1 ibping -S & Q=$!; sleep 0.3; ibping -c 2 -f $L; kill $Q" % (last, last)))
        check(r.stdout.count("-> switch") == switches, "not %d switches:\n%s%s" % (switches, r.stdout, r.stderr))
        check("2 received, 0% packet loss" in r.stdout, r.stdout + r.stderr)
    return run


def wrong(place):
    for topology, words in (("/nowhere", "No such file"), ("/dev/null", "no nodes")):
        r = subprocess.run([VERBENA, "fabric", topology, "--", "true"], capture_output=True, text=True, timeout=60,
                           env=clean_env(), cwd="/")
        check(r.returncode == 125 and words in r.stderr, "%s: %s %s" % (topology, r.returncode, r.stderr))
    r = subprocess.run([VERBENA, "fabric", "-n", "leaf", PAIR, "--", "true"], capture_output=True, text=True, timeout=60,
                       env=clean_env(), cwd="/")
    check(r.returncode == 125 and "no adapter" in r.stderr, r.stderr)


if __name__ == "__main__":
    main({"discover": discover, "opensm": opensm(PAIR, 4, 3), "routes": routes(PAIR, 4, "host2", 1), "wrong": wrong,
          "opensm_tree": opensm(FAT_TREE, 96, 36), "routes_tree": routes(FAT_TREE, 96, "host16", 5)})
