#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""`verbena export`: counters for Prometheus and for programs that read sysfs, judged by promtool and the node exporter."""
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import time

from pair import Pair, Process, check, folder, main, tcp_port
from sysfs import wait_for

NAME = "mlx5_verbena0"
# Metrics of the node exporter, and what of `verbena stat` they are.
NODE = {
    "port_data_received_bytes_total": "rx_bytes", "port_data_transmitted_bytes_total": "tx_bytes",
    "port_packets_received_total": "rx_packets", "port_packets_transmitted_total": "tx_packets",
    "unicast_packets_received_total": "rx_packets", "unicast_packets_transmitted_total": "tx_packets",
    "multicast_packets_received_total": "rx_multicast", "multicast_packets_transmitted_total": "tx_multicast",
    "port_errors_received_total": "rx_malformed", "port_discards_transmitted_total": "io_tx_drops",
    "rx_write_requests_total": "rx_write_requests", "rx_read_requests_total": "rx_read_requests",
    "rx_atomic_requests_total": "rx_atomic_requests", "out_of_buffer_drops_total": "rnrs_sent",
    "rnr_nak_retry_packets_received_total": "rnrs_received", "out_of_sequence_packets_received_total": "rx_out_of_sequence",
    "duplicate_requests_packets_total": "rx_duplicates", "packet_sequence_errors_total": "sequence_naks_received",
    "implied_nak_seq_errors_total": "responses_missed", "local_ack_timeout_errors_total": "timeouts",
    "np_cnp_packets_sent_total": "cnps_sent", "np_ecn_marked_roce_packets_received_total": "rx_marked",
    "rp_cnp_packets_handled_total": "cnps_received", "rp_cnp_ignored_packets_received_total": "cnps_ignored",
    "rx_icrc_encapsulated_errors_total": "rx_icrc_errors", "resp_local_length_errors_total": "recv_local_length",
    "resp_remote_access_errors_total": "rx_access_refused", "req_remote_access_errors_total": "send_remote_access",
    "req_remote_invalid_request_errors_total": "send_remote_invalid_request",
    "req_cqes_flush_errors_total": "send_flushed", "resp_cqes_flush_errors_total": "recv_flushed",
    "req_cqes_errors_total": None, "resp_cqes_errors_total": None, "lifespan_seconds": None,
    "state_id": None, "physical_state_id": None, "rate_bytes_per_second": None,
}


def ask(port, request, whole=True):
    """The answer to those bytes: (status, header, page)."""
    with socket.create_connection(("127.0.0.1", port), 30) as s:
        if whole:
            s.sendall(request)
        else:
            for byte in request:
                s.sendall(bytes([byte]))
        answer = b""
        while True:
            more = s.recv(65536)
            if not more:
                break
            answer += more
    head, _, page = answer.decode().partition("\r\n\r\n")
    return int(head.split()[1]), head, page


def get(port, path="/metrics"):
    return ask(port, b"GET %s HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n" % path.encode())


def values(text, prefix="verbena_", **labels):
    """{metric: value} of those with that device and port, and no other label, or with these."""
    found = {}
    for name, said, value in re.findall(r"^%s(\w+)\{([^}]*)\} (\S+)$" % prefix, text, re.M):
        has = dict(re.findall(r'(\w+)="((?:[^"\\]|\\.)*)"', said))
        if {k: v for k, v in has.items() if k not in ("device", "port")} == labels:
            found[name] = int(float(value))
    return found


def exporter(place, *words):
    return Process(place.wrap(0, [place.verbena, "export", *words]))


def stat(place, pid):
    return [p for p in json.loads(place.tool(0, "stat", "--json"))["processes"] if p["pid"] == pid][0]["counters"]


def promtool(text):
    if not shutil.which("promtool"):
        return
    r = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True, text=True)
    check(r.returncode == 0 and not r.stdout and not r.stderr, "promtool: %s%s" % (r.stdout, r.stderr))


def node_exporter(at):
    if not shutil.which("prometheus-node-exporter"):
        return None
    port = tcp_port()
    p = Process(["prometheus-node-exporter", "--path.sysfs=" + at, "--web.listen-address=127.0.0.1:%d" % port,
                 "--collector.disable-defaults", "--collector.infiniband"])
    p.wait_listen(port)
    _, _, page = ask(port, b"GET /metrics HTTP/1.0\r\n\r\n")
    p.kill()
    return page


def equal(place):
    """A program that has done its work and stays: each counter is what `verbena stat` says, in every form."""
    rdma = tcp_port()
    server = place.start(0, ["rping", "-s", "-P", "-p", rdma])
    server.wait_text("")
    wait_for("no listener", lambda: "port %d" % rdma in place.tool(0, "stat", "--all"))
    status, out = place.run(0, ["rping", "-c", "-a", "127.0.0.1", "-p", rdma, "-C", 20])
    check(status == 0, out)
    wait_for("the client is there still", lambda: len(json.loads(place.tool(0, "stat", "--json"))["processes"]) == 1)
    port, at = tcp_port(), os.path.join(folder(), "sys")
    textfile = os.path.join(folder(), "verbena.prom")
    e = exporter(place, "--prometheus", "127.0.0.1:%d" % port, "--textfile", textfile, "--sysfs", at, "--name", NAME)
    e.wait_listen(port)
    wait_for("no file", lambda: os.path.exists(textfile))
    # The last packets of the connection that ended have come, and were looked at.
    wait_for("the connection does not end", lambda: not any(stat(place, server.pid)[c] for c in ("cm_disconnecting", "cm_timewait")))
    time.sleep(1.1)
    before = stat(place, server.pid)
    status, head, page = get(port)
    check(status == 200 and "text/plain; version=0.0.4" in head, head)
    promtool(page)
    found = values(page)
    for metric, field in NODE.items():
        check(metric == "lifespan_seconds" or metric in found, "there is no %s:\n%s" % (metric, page))
        check(not field or found[metric] == before[field], "%s: %s, and %s: %s" % (metric, found.get(metric), field, before.get(field)))
    check(found["port_packets_received_total"] > 40 and found["resp_cqes_flush_errors_total"] == before["recv_flushed"], page)
    check(found["state_id"] == 4, page)
    its = values(page, pid=str(server.pid), comm="rping")
    check(its["process_data_received_bytes_total"] == before["rx_bytes"] and its["process_queue_pairs"] == before["qps"], page)
    with open(textfile) as f:
        check(values(f.read()) == found, "the file differs")
    with open(os.path.join(at, "class/infiniband", NAME, "ports/1/counters/port_rcv_data")) as f:
        check(int(f.read()) == before["rx_bytes"] // 4, "the tree differs")
    told = node_exporter(at)
    if told:
        named = values(told, "node_infiniband_")
        for metric, field in NODE.items():
            if metric not in named:
                # Debian 12's does not read hw_counters yet.
                check(not re.match("(port|unicast|multicast)_|.*state_id|rate", metric), "the node exporter has no %s:\n%s" % (metric, told))
                continue
            check(not field or named[metric] == before[field] // 4 * 4 if "data" in metric else
                  not field or named[metric] == before[field], "%s: %s" % (metric, told))
        check('node_infiniband_info{board_id="verbena",device="%s"' % NAME in told, told)
        check(named["rate_bytes_per_second"] == found["rate_bytes_per_second"], told)
    e.signal(signal.SIGTERM)
    check(e.wait(30) == 0 and not os.listdir(at) and not os.path.exists(textfile), "left behind: %s" % e.output())


def growing(place):
    """While programs come and go, counters only grow, and never run ahead."""
    port = tcp_port()
    e = exporter(place, "--prometheus", "127.0.0.1:%d" % port)
    e.wait_listen(port)
    pair = Pair(place, "ib_write_bw", ["-F", "-n", 100000000, "-s", 4096], gid_flag="-x").go().underway()
    first = stat(place, pair.server.pid)
    sums = {}

    def seen():
        nonlocal sums
        old, sums = sums, values(get(port)[2])
        check(all(sums[m] >= v for m, v in old.items() if m.endswith("_total")), "back: %s, %s" % (old, sums))
        return sums["port_data_received_bytes_total"] >= first["rx_bytes"] and sums["rx_write_requests_total"]

    wait_for("the server's bytes are not there", seen)
    last, client = stat(place, pair.server.pid), stat(place, pair.client.pid)
    check(sums["rx_write_requests_total"] <= last["rx_write_requests"] + client["rx_write_requests"], "ahead: %s" % sums)
    pair.kill()
    for _ in range(3):
        seen()
        time.sleep(0.5)
    check('comm="ib_write_bw"' not in get(port)[2], "a program that ended is there still")
    e.kill()


def strangers(place):
    """Clients that are slow, or say nonsense, hold up nobody."""
    port = tcp_port()
    e = exporter(place, "--prometheus", "127.0.0.1:%d" % port)
    e.wait_listen(port)
    idle = []
    for i in range(150):
        idle.append(socket.create_connection(("127.0.0.1", port), 30))
        if i % 2:
            idle[-1].sendall(b"GET /metrics HTTP/1.1\r\nHost: h")
        check(i % 50 or get(port)[0] == 200, "not while others are slow")
    check(get(port)[0] == 200, "not while others are slow")
    host = b"Host: here\r\n"
    for status, request in ((200, b"GET /metrics HTTP/1.0\r\n\r\n"), (200, b"GET / HTTP/1.1\r\n%s\r\n" % host),
                            (200, b"GET http://here/metrics HTTP/1.1\r\n%s\r\n" % host), (404, b"GET /x HTTP/1.1\r\n%s\r\n" % host),
                            (405, b"POST /metrics HTTP/1.1\r\n%sContent-Length: 0\r\n\r\n" % host),
                            (400, b"GET /metrics HTTP/1.1\r\n\r\n"), (400, b"\0\1\2\r\n\r\n"), (400, b"GET /metrics\n HTTP/1.1\r\n\r\n"),
                            (505, b"GET /metrics HTTP/2.0\r\n%s\r\n" % host),
                            (431, b"GET /metrics HTTP/1.1\r\n%s" % host + b"A: %s\r\n" % (b"b" * 4100))):
        got, head, page = ask(port, request)
        check(got == status and "Connection: close" in head, "%r: %s" % (request, head))
        check(got != 405 or "Allow: GET, HEAD" in head, head)
    status, head, page = ask(port, b"HEAD /metrics HTTP/1.1\r\n%s\r\n" % host)
    check(status == 200 and not page and int(re.search(r"Content-Length: (\d+)", head).group(1)) > 1000, head)
    status, head, page = ask(port, b"GET /metrics?x=1 HTTP/1.1\r\n%s\r\n" % host, whole=False)
    check(status == 200 and "verbena_info" in page, head)
    for s in idle:
        s.close()
    check(e.running(), e.output())
    # Elsewhere nobody listens.
    with socket.socket() as s:
        s.settimeout(5)
        check(s.connect_ex(("127.0.0.2", port)) != 0, "it listens elsewhere")
    e.kill()


def wrong(place):
    """Each wrong value is named, with what is allowed."""
    taken = socket.create_server(("127.0.0.1", 0))
    full, file = folder(), os.path.join(folder(), "file")
    for where in (os.path.join(full, "something"), file):
        with open(where, "w"):
            pass
    for words, said in ((["--prometheus", "127.0.0.1:%d" % taken.getsockname()[1]], "another program has that port"),
                        (["--prometheus", "192.0.2.99:9399"], "no interface of this host has that address"),
                        (["--prometheus", "127.0.0.1"], "allowed are addresses and ports"),
                        (["--prometheus", "127.0.0.1:0"], "allowed are addresses and ports"),
                        (["--prometheus", "127.0.0.1:65536"], "allowed are addresses and ports"),
                        (["--prometheus", "127.0.0.1:9399x"], "allowed are addresses and ports"),
                        (["--prometheus", "::1:9399"], "allowed are addresses and ports"),
                        (["--prometheus", "localhost:9399"], "allowed are addresses and ports"),
                        (["--sysfs", full], "not empty"), (["--sysfs", file], "Not a directory"),
                        (["--sysfs", os.path.join(full, "no/way")], "No such file"),
                        (["--textfile", full], "Is a directory"), (["--textfile", os.path.join(full, "no/way")], "No such file"),
                        (["--name", "x", "--textfile", file], "it is for --sysfs"),
                        (["--sysfs", folder(), "--name", "a/b"], "allowed are at most"),
                        (["--sysfs", folder(), "--name", ""], "allowed are at most"),
                        ([], "one of --prometheus"), (["x"], "no argument"), (["--what"], "--help")):
        e = exporter(place, *words)
        check(e.wait(30) == 125 and said in e.output(), "%s: %s\n%s" % (words, e.proc.returncode, e.output()))
    check(os.listdir(full) == ["something"], "it wrote into another's directory: %s" % os.listdir(full))
    taken.close()


if __name__ == "__main__":
    main({"equal": equal, "growing": growing, "strangers": strangers, "wrong": wrong})
