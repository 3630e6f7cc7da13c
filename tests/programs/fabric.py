#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""
The modelled InfiniBand fabric: Debian's opensm brings it up, and the tools of infiniband-diags agree on what is there.
"""
import os
import re
import shutil

from pair import BUILD, ROOT, Process, Skip, check, folder, main

FAT_TREE = os.path.join(ROOT, "share", "fabrics", "fat-tree-4.net")
PAIR = os.path.join(ROOT, "share", "fabrics", "pair.net")
VERBENA = os.path.join(BUILD, "verbena")


def run(*words, seconds=600):
    """Status and output of `verbena fabric`; nothing that it started outlives it."""
    theirs = folder()  # libumad2sim writes where it is started, opensm where it is told
    p = Process(["env", "-C", theirs, VERBENA, "fabric"] + list(words), {"OSM_TMP_DIR": theirs, "OSM_CACHE_DIR": theirs})
    status, out = p.wait(seconds), p.output()
    p.kill()
    return status, out


def fabric(topology, script):
    for tool in ("opensm", "ibnetdiscover"):
        if not shutil.which(tool):
            raise Skip("needs %s" % tool)
    status, out = run(topology, "--", "sh", "-c", script)
    if "install libumad2sim0" in out:
        raise Skip("needs libumad2sim0")
    return status, out


def until(condition):
    """Waits for it as long as opensm lives."""
    return "until %s; do kill -0 $P || { echo opensm has ended; cat $OSM_TMP_DIR/said; exit 1; }; sleep 0.1; done; " % condition


def active(ends):
    """Waits until that many ends of links are."""
    return until("[ $(iblinkinfo 2>/dev/null | grep -c Active/) = %d ]" % ends)


def manager(ends, work, options="-f /dev/null"):
    """The script with opensm running beside it, once that many ends of links are active. (It buffers its log.)"""
    return ("opensm %s >$OSM_TMP_DIR/said 2>&1 & P=$!; %s %s %s; kill $P; wait"
            % (options, active(ends), until("sminfo >/dev/null 2>&1"), work))


def lid(host):
    return "$(SIM_HOST=%s ibstat | sed -n 's/.*Base lid: //p')" % host


def discover(place):
    """Without a manager, by directed routes alone."""
    status, out = fabric(PAIR, "ibnetdiscover 2>/dev/null")
    check(status == 0, "status %s\n%s" % (status, out))
    check(len(re.findall(r"^Switch", out, re.M)) == 1 and len(re.findall(r"^Ca", out, re.M)) == 2, "ibnetdiscover:\n" + out)
    # What it prints is a topology, too.
    again = folder() + "/again.net"
    with open(again, "w") as f:
        f.write(out)
    status, out = fabric(again, "ibnetdiscover")
    check(out.count("\nCa") == 2, "its own output is not read back:\n" + out)


def opensm(topology, ends, nodes):
    def case(place):
        status, out = fabric(topology, manager(
            ends, "sminfo; iblinkinfo; echo ==; ibnetdiscover; echo ==; ibstat; smpquery NI 2; perfquery"))
        check(status == 0 and "SMINFO_MASTER" in out, "status %s\n%s" % (status, out))
        check(out.count("==\n") == 2, out)
        links, found, rest = out.split("==\n")
        check(links.count("Active/") == ends, "not %d active ends of links:\n%s" % (ends, links))
        check(len(re.findall(r"^(Switch|Ca)\t", found, re.M)) == nodes, "not %d nodes:\n%s" % (nodes, found))
        check("State: Active" in rest and "NodeType" in rest and "PortXmitPkts" in rest, rest)
    return case


def routes(topology, ends, last, switches):
    """The tables that opensm wrote carry packets from one end to the other."""
    def case(place):
        status, out = fabric(topology, manager(
            ends, "L=%s; ME=%s; ibtracert $ME $L; S=$(ibtracert $ME $L | sed -n '2s/.* lid \\([0-9]*\\)-.*/\\1/p'); ibroute $S; "
            "SIM_HOST=%s SIM_SET_ISSM=1 ibping -S & Q=$!; sleep 0.3; ibping -c 2 -f $L; kill $Q" % (lid(last), lid("host1"), last)))
        check(out.count("-> switch") == switches, "status %s, not %d switches:\n%s" % (status, switches, out))
        check("2 received, 0% packet loss" in out, out)
        check(re.search(r"Channel Adapter portguid 0x\w+: '%s'" % last, out), "ibroute:\n" + out)
    return case


def disabled(place):
    """A port is disabled: opensm, told by the switches, routes round it; then it is enabled, and the link comes back."""
    if not shutil.which("ibportstate"):
        raise Skip("needs ibportstate")
    status, out = fabric(FAT_TREE, manager(
        96, "L=%s; ME=%s; ibtracert $ME $L > $OSM_TMP_DIR/way; S=$(sed -n '2s/.* lid \\([0-9]*\\)-.*/\\1/p' $OSM_TMP_DIR/way); "
        "O=$(sed -n '3s/^.\\([0-9]*\\).*/\\1/p' $OSM_TMP_DIR/way); cat $OSM_TMP_DIR/way; echo ==; ibportstate $S $O disable; "
        "%s cat $OSM_TMP_DIR/way; %s echo ==; ibportstate $S $O query; perfquery $S $O; ibportstate $S $O enable; %s ibportstate $S $O query"
        % (lid("host16"), lid("host1"), until("ibtracert $ME $L > $OSM_TMP_DIR/way 2>/dev/null"), active(94), active(96))))
    check(status == 0 and out.count("==\n") == 2, "status %s\n%s" % (status, out))
    before, after, rest = out.split("==\n")
    ways = [re.findall(r"^\[(\d+)\] -> switch", part, re.M) for part in (before, after)]
    check(len(ways[0]) == 5 and len(ways[1]) == 5 and ways[0][1] != ways[1][1], "the way stays:\n" + out)
    check("Disabled" in rest and re.search(r"LinkDowned\w*:\.*1\n", rest), "the port:\n" + rest)
    check(rest.rindex("LinkUp") > rest.rindex("Disabled"), "the port afterwards:\n" + rest)


def partitions(place):
    """Two limited members of a partition do not meet: a switch that opensm has told to look drops the packet, else its destination does.
    Both count it, and tell opensm."""
    if not shutil.which("perfquery"):
        raise Skip("needs perfquery")
    net, conf, log = (os.path.join(folder(), name) for name in ("three.net", "partitions.conf", "log"))
    with open(net, "w") as f:
        f.write('Switch 3 "leaf"\n' + "".join('[%d] "host%d"[1]\n' % (i, i) for i in (1, 2, 3)) +
                "".join('Hca 1 "host%d"\n' % i for i in (1, 2, 3)))
    with open(conf, "w") as f:
        f.write("Default=0x7fff : ALL=limited, SELF=full ;\n")
    for enforce, counter, trap in (("both", r"PortRcvConstraintErrors:\.*[1-9]", "259"), ("off", r"PkeyViolations:\.*[1-9]", "257")):
        status, out = fabric(net, manager(6, "B=%s; SIM_HOST=host3 perfquery $B 1; perfquery $B 1 | grep -q PortXmitPkts && echo full; S=$(ibswitches | "
                                          "sed -n 's/.* lid \\([0-9]*\\) .*/\\1/p'); perfquery $S 3; smpquery portinfo $B" % lid("host2"),
                                          "-Z %s -P %s -f %s" % (enforce, conf, log)))
        check("full" in out and re.search(counter, out), "%s: status %s\n%s" % (enforce, status, out))
        with open(log) as f:
            text = f.read()
        check("num:%s (Bad P_Key" % trap in text, "%s: opensm's log has no trap:\n%s" % (enforce, text[-4000:]))


def shown(out, title):
    """The counters of one answer of perfquery that are not 0."""
    found = re.search(r"# %s[^\n]*\n(.*?)(?=\n#|\Z)" % title, out, re.S)
    check(found, "no %s:\n%s" % (title, out))
    return {name: int(n) for name, n in re.findall(r"^(\w+):\.*(\d+)$", found.group(1), re.M) if int(n)}


def errors(place):
    """What a port refuses of packets with faults is in its counters, as perfquery shows them; opensm, which has set the
    thresholds, hears of what is beyond them."""
    if not shutil.which("perfquery"):
        raise Skip("needs perfquery")
    conf, log = (os.path.join(folder(), name) for name in ("errors.conf", "errors.log"))
    with open(conf, "w") as f:
        f.write("local_phy_errors_threshold 0x00\noverrun_errors_threshold 0x01\n")
    # Of ten packets to the SA's QP1 and back.
    work = ("S=$(ibswitches | sed -n 's/.* lid \\([0-9]*\\) .*/\\1/p'); B=%s; for i in 1 2 3 4 5 6 7 8 9 10; do SIM_HOST=host2 perfquery $S 1 >/dev/null; done; "
            "perfquery $S 2; perfquery -E $S 2; perfquery $B 1; perfquery -E $B 1" % lid("host2"))
    # fault at the port of the switch, at that of the adapter: the details of each, what counts beside PortRcvErrors, opensm's trap
    rows = (("bit", "PortLocalPhysicalErrors", "LocalLinkIntegrityErrors", "num:129"), ("length", "PortMalformedPktErrors", None, None),
            ("version", "PortMalformedPktErrors", None, None), ("lane", "PortMalformedPktErrors", None, None),
            ("room", "PortBufferOverrunErrors", "ExcessiveBufferOverrunErrors", "num:130"))
    for kind, detail, beside, trap in rows:
        status, out = run("--fault", "leaf[2]=%s/3" % kind, PAIR, "--", "sh", "-c", manager(4, work, "-F %s -f %s" % (conf, log)))
        if "install libumad2sim0" in out:
            raise Skip("needs libumad2sim0")
        check(status == 0 and out.count("# Port") == 4, "%s: status %s\n%s" % (kind, status, out))
        switch, adapter = out.split("# Port counters")[1:]
        counters, details = shown("# Port counters" + switch, "Port counters"), shown(switch, "PortRcvErrorDetails")
        check(counters.get("PortRcvErrors") and details.get(detail), "%s is not counted:\n%s" % (kind, out))
        check(set(details) == {"PortSelect", detail}, "%s counts otherwise:\n%s" % (kind, out))
        check(not beside or counters.get(beside), "%s beyond the threshold is not counted:\n%s" % (kind, out))
        check("PortRcvErrors" not in shown("# Port counters" + adapter, "Port counters"), "%s at the other end:\n%s" % (kind, out))
        with open(log) as f:
            text = f.read()
        check(not trap or trap in text, "%s: opensm's log has no trap:\n%s" % (kind, text[-4000:]))


def classes(place):
    """What a manager does not take does not reach it: opensm would not survive that. A server at its adapter gets it."""
    for tool in ("ibsysstat", "ibping"):
        if not shutil.which(tool):
            raise Skip("needs %s" % tool)
    status, out = fabric(PAIR, manager(4, "M=%s; ibsysstat -t 100 $M; ibccquery -t 100 ClassPortInfo $M; SIM_SET_ISSM=1 ibping -S & Q=$!; "
                                       "sleep 0.3; SIM_HOST=host2 ibping -c 2 -f $M; kill $Q; sminfo" % lid("host1")))
    check("2 received, 0% packet loss" in out and "SMINFO_MASTER" in out, "status %s\n%s" % (status, out))


def saved(place):
    """What opensm's engines set is written, and a simulation runs over it: a torus stands still only on the shortest ways."""
    torus, conf = (os.path.join(ROOT, "share", "fabrics", "torus-5x5" + end) for end in (".net", ".conf"))
    if not shutil.which("opensm"):
        raise Skip("needs opensm")
    for engine, words in (("minhop", []), ("lash", []), ("torus-2QoS", ["-Q", "--torus_config", conf])):
        routes = os.path.join(folder(), engine + ".routes")
        status, out = run("--save", routes, torus, "--", "opensm", "-R", engine, "-f", "/dev/null", *words)
        if "install libumad2sim0" in out:
            raise Skip("needs libumad2sim0")
        check(status == 0, "%s: status %s\n%s" % (engine, status, out))
        with open(routes) as f:
            ports = f.read().count("\narbitrate ")
        check(ports == (150 if "-Q" in words else 0), "%s: VL arbitration of %d ports" % (engine, ports))
        p = Process([VERBENA, "sim", os.path.join(ROOT, "share", "scenarios", "torus.ini"), "--set", "topology.file=" + routes], {})
        status, out = p.wait(300), p.output()
        check(("deadlock" in out and "5 lanes" in out) == (engine == "minhop"), "%s:\n%s" % (engine, out))
        check(engine == "minhop" or "25 of 25 done" in out and "drops      none" in out, "%s:\n%s" % (engine, out))
    status, out = run("--save", routes, PAIR, "--", "true")
    check(status == 125 and "nothing is saved" in out, "status %s\n%s" % (status, out))


def administrator(place):
    """saquery asks opensm for a path."""
    if not shutil.which("saquery"):
        raise Skip("needs saquery")
    status, out = fabric(PAIR, manager(4, "A=%s; B=%s; echo lids $A $B; saquery -p --src-to-dst $A:$B" % (lid("host1"), lid("host2"))))
    lids = re.search(r"lids (\d+) (\d+)", out)
    check(lids and re.search(r"dlid\.+%s\n\s+slid\.+%s\n" % (lids.group(2), lids.group(1)), out), "status %s\n%s" % (status, out))


def wrong(place):
    for words, complaint in ((("/nowhere",), "No such file"), (("/dev/null",), "no nodes"), (("-n", "leaf", PAIR), "no adapter"),
                             (("-f", "leaf[1]=bit", PAIR), "NODE[PORT]=KIND/N"), (("-f", "leaf[3]=bit/2", PAIR), "no such port")):
        status, out = run(*words, "--", "true", seconds=60)
        check(status == 125 and complaint in out, "%s: status %s\n%s" % (words, status, out))


if __name__ == "__main__":
    main({"discover": discover, "opensm": opensm(PAIR, 4, 3), "routes": routes(PAIR, 4, "host2", 1), "wrong": wrong,
          "saved": saved, "disabled": disabled, "partitions": partitions, "classes": classes, "errors": errors, "administrator": administrator,
          "opensm_tree": opensm(FAT_TREE, 96, 36), "routes_tree": routes(FAT_TREE, 96, "host16", 5)})
