#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""The output of ibv_devices, ibv_devinfo, `verbena devices` and `verbena stat`, and that it agrees."""
import json
import re
import time

from pair import TIME_S, Pair, check, devices_json, main


def ibv_devices(place):
    status, out = place.run(0, ["ibv_devices"])
    rows = re.findall(r"^\s+(\S+)\s+([0-9a-f]{16})$", out, re.M)
    check(status == 0 and len(rows) == 1, "status %s\n%s" % (status, out))
    check(rows[0][0] == "verbena0" and int(rows[0][1], 16), out)


TWO = {"VERBENA_DEVICES": "2"}


def two(place):
    """Two devices of a program: all who list them agree, and programs meet from one to the other."""
    status, out = place.run(0, ["ibv_devices"], env=TWO)
    rows = re.findall(r"^\s+(\S+)\s+([0-9a-f]{16})$", out, re.M)
    check(status == 0 and [name for name, _ in rows] == ["verbena0", "verbena1"] and rows[0][1] != rows[1][1], out)
    status, out = place.run(0, ["ibv_devinfo", "-d", "verbena1"], env=TWO)
    check(status == 0 and field(out, "hca_id") == "verbena1", out)
    check(field(out, "node_guid").replace(":", "") == rows[1][1], out)
    check(field(out, "sys_image_guid").replace(":", "") == rows[0][1], out)
    status, out = place.run(0, [place.verbena, "devices", "--json"], env=TWO)
    told = [(d["name"], d["node_guid"]) for d in json.loads(out)["devices"]]
    check(status == 0 and told == rows, out)
    status, out = place.run(0, ["cat", "/sys/class/infiniband/verbena1/node_desc", "/sys/class/infiniband_verbs/uverbs1/ibdev"],
                            env=TWO)
    check(status == 0 and out.split() == ["verbena1", "verbena1"], out)
    status, out = place.run(0, ["ls", "/dev/infiniband/uverbs2"], env=TWO)
    check(status != 0, "a third device: " + out)
    for a, b in ((0, 1), (1, 1), (1, 0)):
        outs = Pair(place, "ibv_rc_pingpong", ["-d", "verbena%d" % a, "-n", 200, "-c"],
                    ["-d", "verbena%d" % b, "-n", 200, "-c"], env=TWO).go().finish()
        check(all("200 iters" in o for o in outs), "\n".join(outs))
    # A server with two devices, a client that knows one.
    Pair(place, "ibv_rc_pingpong", ["-d", "verbena1", "-n", 200], ["-n", 200], server_env=TWO).go().finish()


KINDS = {"VERBENA_DEVICES": "iwarp,roce"}


def kinds(place):
    """A device of each kind: rdma_cm uses the first one, and the other is met without it."""
    status, out = place.run(0, ["ibv_devices"], env=KINDS)
    rows = re.findall(r"^\s+(\S+)\s+([0-9a-f]{16})$", out, re.M)
    check(status == 0 and [name for name, _ in rows] == ["verbena_iw0", "verbena0"], out)
    status, out = place.run(0, [place.verbena, "devices", "--json"], env=KINDS)
    told = json.loads(out)["devices"]
    check(status == 0 and [(d["name"], d["node_guid"]) for d in told] == rows, out)
    check([d["transport"] for d in told] == ["iWARP", "InfiniBand"], out)
    status, out = place.run(0, [place.verbena, "devices"], env=KINDS)
    check(re.search("^verbena_iw0: .*iWARP", out) and re.search("^verbena0: .*RoCEv2", out, re.M), out)
    status, out = place.run(0, ["cat", "/sys/class/infiniband/verbena_iw0/node_type", "/sys/class/infiniband/verbena0/node_type"], env=KINDS)
    check(status == 0 and out.splitlines() == ["4: RNIC", "1: CA"], out)
    for env in (KINDS, {"VERBENA_DEVICES": "roce,iwarp"}):
        Pair(place, "ibv_rc_pingpong", ["-d", "verbena0", "-n", 200, "-c"], env=env).go().finish()
        listener = place.start(0, ["rping", "-s", "-P", "-a", place.addresses[0], "-p", "7390"], env)
        client = None
        until = time.monotonic() + TIME_S
        try:
            shown = []
            while not shown:
                if not client or not client.running():
                    client = place.start(1, ["rping", "-c", "-a", place.addresses[0], "-p", "7390"], env)
                check(time.monotonic() < until, "no connection:\n%s%s" % (listener.output(), client.output()))
                time.sleep(0.05)
                shown = [p["device"] for p in json.loads(place.tool(0, "stat", "--json"))["processes"]
                         if p["pid"] == listener.pid and any(q["state"] == "RTS" for q in p["queue_pairs"])]
            check(shown == ["verbena_iw0" if env is KINDS else "verbena0"], "rdma_cm uses %s" % shown)
        finally:
            for p in (listener, client):
                if p:
                    p.kill()


def field(out, name):
    m = re.search(r"^\s*%s:\s+(.*?)\s*$" % re.escape(name), out, re.M)
    check(m, "no %s in\n%s" % (name, out))
    return m.group(1)


def ibv_devinfo(place):
    status, out = place.run(0, ["ibv_devinfo"])
    check(status == 0 and field(out, "hca_id") == "verbena0", "status %s\n%s" % (status, out))
    status, out = place.run(0, ["ibv_devinfo", "-l"])
    check(status == 0 and "1 HCA found" in out and "verbena0" in out, out)
    status, out = place.run(0, ["ibv_devinfo", "-d", "nosuch0"])
    check(status != 0, "a device that does not exist: status 0\n" + out)

    status, out = place.run(0, ["ibv_devinfo", "-v"])
    check(status == 0, "status %s\n%s" % (status, out))
    for name, want in (("hca_id", "verbena0"), ("transport", r"InfiniBand \(0\)"),
                       ("phys_port_cnt", "1"), ("state", r"PORT_ACTIVE \(4\)"),
                       ("max_mtu", r"4096 \(5\)"), ("link_layer", "Ethernet"),
                       ("active_mtu", r"(256|512|1024|2048|4096) \(\d\)"),
                       ("node_guid", r"(?!0000:0000:0000:0000)([0-9a-f]{4}:){3}[0-9a-f]{4}"),
                       ("sys_image_guid", r"(?!0000:0000:0000:0000)([0-9a-f]{4}:){3}[0-9a-f]{4}"),
                       ("atomic_cap", r"ATOMIC_(HCA|GLOB) \(\d\)"),
                       ("fw_ver", r"\S+"), ("max_msg_sz", r"0x[0-9a-f]+"),
                       ("phys_state", r"LINK_UP \(5\)")):
        got = field(out, name)
        check(re.fullmatch(want, got), "%s is %r\n%s" % (name, got, out))
    for name in ("max_qp", "max_qp_wr", "max_sge", "max_sge_rd", "max_cq", "max_cqe", "max_mr", "max_pd",
                 "max_qp_rd_atom", "max_qp_init_rd_atom", "max_res_rd_atom", "max_ah", "max_srq",
                 "max_srq_wr", "max_srq_sge", "max_pkeys", "max_mw", "max_mcast_grp", "max_mcast_qp_attach"):
        check(int(field(out, name)) > 0, "%s is %s" % (name, field(out, name)))
    check(int(field(out, "max_mr_size"), 16) >= 1 << 31, "max_mr_size " + field(out, "max_mr_size"))
    # Features that we lack must not be reported.
    for name in ("max_raw_ethy_qp",):
        check(int(field(out, name)) == 0, "%s is %s" % (name, field(out, name)))

    gids = re.findall(r"GID\[ *\d+\]:\s+(\S+), (.*)$", out, re.M)
    check(gids and all(kind == "RoCE v2" for _, kind in gids), "GIDs: %s" % gids)
    check(place.gid_index(0) >= 0 and place.gid_index(1) >= 0, "no GID of our address")


def verbena_devices(place):
    """--json names the same GIDs, in the same order, as the verbs do; the text names them too."""
    _, info = place.run(0, ["ibv_devinfo", "-v"])
    gids = re.findall(r"GID\[ *(\d+)\]:\s+(\S+?),", info)
    told = json.dumps(devices_json(place))
    text = place.tool(0, "devices")
    for setting, word in (("on", "memory"), ("off", "sockets")):
        status, out = place.run(0, [place.verbena, "devices"], env={"VERBENA_SHM": setting})
        check(status == 0 and "on this host go through " + word in out, out)
    check("verbena0" in told and "verbena0" in text, told + "\n" + text)
    for _, gid in gids:
        check(gid in told or gid.removeprefix("::ffff:") in told, "%s is not in %s" % (gid, told))
        check(gid in text or gid.removeprefix("::ffff:") in text, "%s is not in\n%s" % (gid, text))


def numbers(value, into=None, name=""):
    """Every number in a JSON value, by its last key."""
    into = {} if into is None else into
    if isinstance(value, dict):
        for k, v in value.items():
            numbers(v, into, k)
    elif isinstance(value, list):
        for v in value:
            numbers(v, into, name)
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        into[name] = value
    return into


def queue_pairs(place, end, process):
    """Those that `verbena stat` shows of a process."""
    shown, = json.loads(place.tool(end, "stat", "--json", str(process.pid)))["processes"]
    return shown["queue_pairs"]


def stat(place):
    """Counters of a live pair: present for both, growing, and gone with the processes."""
    pair = Pair(place, "ibv_rc_pingpong", ["-e", "-n", 100000000, "-s", 4096])
    pair.server.wait_listen(pair.port)
    waiting, = queue_pairs(place, 0, pair.server)
    check(waiting["state"] == "INIT" and waiting["path"] == "none" and "peer" not in waiting, "before its peer: %s" % waiting)
    pair.go().underway()
    try:
        (there,), (here,) = queue_pairs(place, 0, pair.server), queue_pairs(place, 1, pair.client)
        for one, other, end in ((there, here, 1), (here, there, 0)):
            check(one["type"] == "RC" and one["state"] == "RTS" and one["peer_qpn"] == other["qpn"] and
                  one["peer"] == place.addresses[end], "queue pair %s, its peer %s" % (one, other))
            apart = place.name == "udp4" or place.spaces[0] != place.spaces[1]
            check(one["path"] == ("udp" if apart else "shm"), "its path: %s" % one)
        text = place.tool(0, "stat", str(pair.server.pid))
        check("queue pair 0x%06x: RC RTS %s to " % (there["qpn"], there["path"]) in text, text)
        seen = []
        for _ in range(2):
            for p, end in ((pair.server, 0), (pair.client, 1)):
                pid = str(p.pid)
                one = json.loads(place.tool(end, "stat", "--json", pid))
                # Interfaces have counters of the same names.
                seen.append((pid, numbers({k: v for k, v in one["processes"][0].items() if k != "interfaces"})))
                check(pid in json.dumps(one), "stat %s --json does not name it: %s" % (pid, one))
            time.sleep(0.3)
        for (pid, a), (_, b) in zip(seen[:2], seen[2:]):
            # What goes through memory goes through no socket.
            way = "io_shm_" if "io_shm_peers" in a and a["io_shm_peers"] else "io_"
            for key in ("rx_packets", "tx_packets", "tx_bytes", "rx_bytes", "completions", way + "tx_packets",
                        way + "rx_packets", "io_rx_syscalls"):
                check(key in a, "no %s: %s" % (key, a))
                check(b[key] > a[key] > 0, "%s of %s does not grow: %s, %s" % (key, pid, a[key], b[key]))
            check(a["qps"] == 1 and a["mrs"] == 1 and a["cqs"] == 1, "objects: %s" % a)
            check(b["rx_icrc_errors"] == 0 and b["rx_malformed"] == 0 and b["completion_errors"] == 0,
                  "errors without a cause: %s" % b)
        whole = place.tool(0, "stat", "--json")
        check(str(pair.server.pid) in whole, whole)
        text = place.tool(0, "stat")
        check(str(pair.server.pid) in text and "rx_packets" in text or "pingpong" in text, text)
    finally:
        pair.kill()
    time.sleep(0.2)
    whole = json.dumps(json.loads(place.tool(0, "stat", "--json")))
    check('"pid": %d' % pair.server.pid not in whole, "a dead process is still listed: " + whole)


if __name__ == "__main__":
    main({"ibv_devices": ibv_devices, "ibv_devinfo": ibv_devinfo,
          "verbena_devices": verbena_devices, "two": two, "kinds": kinds, "stat": stat})
