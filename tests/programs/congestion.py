#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""
VERBENA_CC over a veth pair on which nftables, a switch of sorts, marks packets as having met congestion:
every algorithm gets everything across in both protocols, CNPs are counted and well-formed, and neither
loopback nor ends that disagree are any worse off. Nothing here measures time.
"""
import json
import os
import shutil
import subprocess
import time

from capture import joined, packets
from data import transfer
from pair import Pair, Skip, check, folder, main, perftest

ROCEV2, VEROCE = 4791, 4794
ALGORITHMS = ["none", "swift", "dctcp", "dcqcn", "dcqcn_fw", "timely", "timely_patched", "rttcc"]
CNP = 0x81
FOR_EVER = 100000000


# ---- the network -----------------------------------------------------------------------------------

def nft(place, end, text):
    r = subprocess.run(["ip", "netns", "exec", place.spaces[end], "nft", "-f", "-"], input=text,
                       capture_output=True, text=True)
    return r.stderr.strip() if r.returncode else ""


class Marking:
    """While it lasts, every `one_in`-th datagram with ECT is marked on its way to either end."""

    def __init__(self, place, one_in=20):
        self.place = place
        self.one_in = one_in

    def __enter__(self):
        if not self.place.links:
            raise Skip("needs a veth place")
        if not shutil.which("nft"):
            raise Skip("needs nft")
        ip = "ip6" if self.place.ipv6 else "ip"
        for end in (0, 1):
            wrong = nft(self.place, end, "table inet congested\ndelete table inet congested\n"
                        "table inet congested {\nchain arrival {\ntype filter hook prerouting priority -300;\n"
                        "udp dport { %d, %d } %s ecn ect0 numgen inc mod %d 0 counter %s ecn set ce\n}\n}\n"
                        % (ROCEV2, VEROCE, ip, self.one_in, ip))
            if wrong:
                raise Skip("nft: " + wrong)
        return self

    def __exit__(self, *_):
        for end in (0, 1):
            nft(self.place, end, "delete table inet congested\n")

    def marked(self, end):
        out = subprocess.run(["ip", "netns", "exec", self.place.spaces[end], "nft", "-j", "list", "table", "inet",
                              "congested"], capture_output=True, text=True).stdout
        return sum(word["counter"]["packets"] for entry in json.loads(out)["nftables"]
                   for word in entry.get("rule", {}).get("expr", []) if "counter" in word)


def counters(place, process, end):
    """The counters that `verbena stat` shows."""
    found = json.loads(place.tool(end, "stat", "--json"))["processes"]
    mine = [p["counters"] for p in found if p["pid"] == process.pid]
    check(len(mine) == 1, "verbena stat does not know process %d" % process.pid)
    return mine[0]


# ---- cases -------------------------------------------------------------------------------------------

def cnps(place, server_cc="dcqcn", client_cc="dcqcn"):
    """(CNPs sent and received by the server, and by the client) while data with ECT is marked."""
    envs = [{"VERBENA_PROTOCOL": "rocev2", **({"VERBENA_CC": cc} if cc else {})} for cc in (server_cc, client_cc)]
    with Marking(place) as marking:
        pair = Pair(place, "ib_write_bw", ["-F", "-N", "-n", FOR_EVER], gid_flag="-x",
                    server_env=envs[0], client_env=envs[1]).go().underway()
        # A CNP that was sent late has arrived when many packets more were sent; where there is none, there was time for some.
        end, enough = time.monotonic() + 60, 0
        while True:
            server, client = counters(place, pair.server, 0), counters(place, pair.client, 1)
            enough = enough or client["tx_packets"] + 2000
            if client["tx_packets"] >= enough and (not server["cnps_sent"] or client["cnps_received"]):
                break
            check(time.monotonic() < end, "of the server %s, of the client %s" % (server, client))
            pair.still_runs()
            time.sleep(0.02)
        pair.kill()
        marked = marking.marked(0) + marking.marked(1)
    for c in (server, client):
        check(c["completion_errors"] == 0 and c["rx_icrc_errors"] == 0 and c["rx_malformed"] == 0,
              "errors: %s" % c)
    return [(c["cnps_sent"], c["cnps_received"]) for c in (server, client)], marked


def rocev2_cnps(place):
    """An end that gets marked data sends CNPs to the sender; the other end sends none."""
    (server, client), marked = cnps(place)
    check(marked > 0, "nothing was marked")
    check(server[0] > 0 and client[1] > 0, "of the server %s, of the client %s" % (server, client))
    check(server[1] == 0 and client[0] == 0, "of the server %s, of the client %s" % (server, client))
    # A responder without an algorithm sends CNPs; a requester without one is not ECT.
    (server, client), marked = cnps(place, server_cc=None)
    check(server[0] > 0 and client[1] > 0 and marked > 0, "no setting: %s, %s" % (server, client))
    (server, client), marked = cnps(place, client_cc=None)
    check(server == (0, 0) and client == (0, 0), "ECT without an algorithm: %s, %s" % (server, client))
    (server, client), _ = cnps(place, "none", "none")
    check(server == (0, 0) and client == (0, 0), "ECT with none: %s, %s" % (server, client))


def every_algorithm(protocol, streams=False):
    def run(place):
        with Marking(place) as marking:
            for name in ALGORITHMS + ["dcqcn_fw:connectx,window=on"]:
                env = {"VERBENA_CC": name, "VERBENA_PROTOCOL": protocol}
                if streams:
                    perftest(place, "ib_write_bw", ["-s", 65536, "-q", 2, "-b"], iters=60, sizes=[65536], env=env)
                else:
                    transfer(place, ["-n", 20, "-s", 71, "-b", 30000], env=env)
            check(marking.marked(0) > 0 and marking.marked(1) > 0, "nothing was marked")
    return run


def and_loss(protocol, streams=False):
    """Marks, loss and reordering together, the rate low."""
    def run(place):
        for name in ("dcqcn", "swift", "timely"):
            env = {"VERBENA_CC": name, "VERBENA_PROTOCOL": protocol, "VERBENA_LINE_RATE": "500Mbps",
                   "VERBENA_IMPAIR": "drop=0.5%,reorder=1%,ce=5%,seed=8"}
            if streams:
                perftest(place, "ib_write_bw", ["-s", 65536, "-q", 2], iters=20, sizes=[65536], env=env)
                perftest(place, "ib_send_bw", ["-s", 30000], iters=40, sizes=[30000], env=env)
            else:
                transfer(place, ["-n", 10, "-s", 72, "-b", 50000], env=env)
    return run


def scopes(place):
    """Whoever has the congestion control, everything gets across while data is marked and lost."""
    with Marking(place) as marking:
        for scope in ("path", "qp"):
            for name in ("swift", "dctcp", "dcqcn"):
                env = {"VERBENA_CC": name, "VERBENA_CC_SCOPE": scope, "VERBENA_PROTOCOL": "veroce",
                       "VERBENA_IMPAIR": "drop=0.5%,seed=9"}
                transfer(place, ["-n", 10, "-s", 73, "-b", 50000], env=env)
        check(marking.marked(0) > 0 and marking.marked(1) > 0, "nothing was marked")


def loopback(place):
    """Nothing leaves the host, so neither an algorithm nor a tiny line rate changes anything."""
    for protocol in ("rocev2", "veroce"):
        env = {"VERBENA_CC": "dcqcn", "VERBENA_LINE_RATE": "1Mbps", "VERBENA_PROTOCOL": protocol}
        # 64 MB would take nine minutes at that rate.
        perftest(place, "ib_write_bw", ["-s", 65536], iters=1000, sizes=[65536], env=env)
        perftest(place, "ib_read_bw", ["-s", 65536], iters=1000, sizes=[65536], env=env)


def cnp_bytes(place):
    """A CNP as IBTA A17.9.3 draws it, and as tshark sees it."""
    where = folder()
    env = {"VERBENA_CC": "dcqcn", "VERBENA_PROTOCOL": "rocev2", "VERBENA_PCAP": where + "/%p.pcap"}
    with Marking(place, 5):
        perftest(place, "ib_write_bw", ["-s", 65536], iters=100, sizes=[65536], env=env)
    files = [os.path.join(where, name) for name in sorted(os.listdir(where))]
    seen = 0
    for path in files:
        for p in packets(path):
            head = 40 if p[0] >> 4 == 6 else 20
            bth = p[head + 8:]
            if bth[0] != CNP:
                continue
            seen += 1
            tos = (p[0] & 15) << 4 | p[1] >> 4 if head == 40 else p[1]
            check(tos == 48 << 2, "TOS %02x" % tos)
            check(bth[4] & 0x40, "BECN is not set")
            check(len(bth) == 12 + 16 + 4 and not any(bth[8:28]), "a CNP of %s" % bth.hex())
    check(seen > 0, "no CNP was captured")
    if not shutil.which("tshark"):
        return
    r = subprocess.run(["tshark", "-r", joined(files, where + "/all"), "-Y", "infiniband.bth.opcode == 0x81", "-T", "fields",
                        "-e", "infiniband.bth.opcode", "-e", "_ws.malformed"], capture_output=True, text=True)
    lines = r.stdout.splitlines()
    check(r.returncode == 0 and len(lines) == seen and not any(line.split("\t")[1] for line in lines), "tshark: %s%s" % (r.stdout, r.stderr))


if __name__ == "__main__":
    main({"rocev2_cnps": rocev2_cnps, "rocev2_all": every_algorithm("rocev2"),
          "veroce_all": every_algorithm("veroce"), "rocev2_streams": every_algorithm("rocev2", True),
          "veroce_streams": every_algorithm("veroce", True), "rocev2_loss": and_loss("rocev2"),
          "veroce_loss": and_loss("veroce"), "rocev2_loss_streams": and_loss("rocev2", True),
          "veroce_loss_streams": and_loss("veroce", True), "loopback": loopback, "scopes": scopes, "cnp_bytes": cnp_bytes})
