# SPDX-License-Identifier: BSD-2-Clause
"""
Programs that have a way over TCP and one over verbs, for bench/run.py: rsockets (rstream) beside iperf3, and fio's engine
rdma beside its engine net, over loopback.
"""
import json
import os
import re
import tempfile

from ends import VERBENA, Broken, Loopback, iperf3, pair, scaled, tcp_port

LOOPBACK = Loopback()
MIB = 1 << 20
FIO_DEPTH_MAX = 512  # with 2048 its process died


def rstream(name, run, *words):
    """What the client prints of the one size: Gb/s, and us a transfer."""
    common = run + ["rstream", "-p", tcp_port(), *words]
    out = pair(LOOPBACK, name, common, common + ["-s", LOOPBACK.address], None)
    row = re.search(r"^custom\s.*s\s+([\d.]+)\s+([\d.]+)\s*$", out, re.M)
    if not row:
        raise Broken("%s: no result\n%s" % (name, out))
    return float(row.group(1)), float(row.group(2))


def rstream_bw(run, *words):
    """MiB/s, of both directions one after the other."""
    return lambda name: rstream(name, run, *words, "-S", MIB, "-C", scaled(1000), "-I", 1)[0] * 1e9 / 8 / MIB


def rstream_lat(run, *words):
    return lambda name: rstream(name, run, *words, "-S", 64, "-C", 1, "-I", scaled(20000))[1]


def fio(name, server, client, tcp=None):
    """MiB/s that the client writes; the server listens on a TCP port, or by rdma_cm."""
    with tempfile.TemporaryDirectory() as folder:
        log = os.path.join(folder, "fio.json")
        client = client + ["--output-format=json", "--output=" + log]
        pair(LOOPBACK, name, server, client, tcp)
        with open(log) as f:
            text = f.read()
    return json.loads(text[text.index("{"):])["jobs"][0]["write"]["bw_bytes"] / MIB


def fio_words(*words):
    return ["fio", "--bs=64k", "--size=%dm" % scaled(2048), "--name=bench", *words]


def fio_rdma(verb):
    """fio's SENDs ask for no RNR retry, so the server has as many receives as fio's engine has room for."""
    depth = FIO_DEPTH_MAX if verb == "send" else 16

    def measure(name):
        port = tcp_port()
        run = [VERBENA, "run"]
        words = ["--ioengine=rdma", "--port=%d" % port]
        return fio(name, run + fio_words(*words, "--rw=read", "--iodepth=%d" % depth),
                   run + fio_words(*words, "--rw=write", "--iodepth=16", "--hostname=" + LOOPBACK.address, "--verb=" + verb))
    return measure


def fio_net(name):
    port = tcp_port()
    words = ["--ioengine=net", "--protocol=tcp", "--port=%d" % port]
    return fio(name, fio_words(*words, "--rw=read", "--listen"),
               fio_words(*words, "--rw=write", "--hostname=" + LOOPBACK.address), port)


OURS = [VERBENA, "run"]
GROUPS = {
    "programs": ("MiB/s; the last two us for 64 bytes; -T s is rstream over TCP", [
        ("rstream", rstream_bw(OURS)), ("rstream -T s", rstream_bw([], "-T", "s")), ("TCP, iperf3", lambda name: iperf3(LOOPBACK, name)),
        ("fio rdma write", fio_rdma("write")), ("fio rdma read", fio_rdma("read")),
        ("fio rdma send", fio_rdma("send")), ("fio net", fio_net),
        ("rstream 64", rstream_lat(OURS)), ("rstream -T s 64", rstream_lat([], "-T", "s"))]),
}
WANTED = [
    ("rstream", ["rstream -T s"], 1.0, ">="),
    ("rstream", ["TCP, iperf3"], 1.0, ">="),
    ("fio rdma write", ["fio net"], 1.0, ">="),
    ("fio rdma read", ["fio net"], 1.0, ">="),
    ("fio rdma send", ["fio net"], 1.0, ">="),
    ("rstream 64", ["rstream -T s 64"], 1.0, "<="),
]
