# SPDX-License-Identifier: BSD-2-Clause
"""
A group of bench/run.py: both ends are processes of one user on one host. Ours through memory and through UDP, beside UCX
through shared memory, without and with cross-memory attach, and one TCP stream.
"""
import atexit
import functools
import json
import os
import re
import shutil
import statistics
import subprocess
import tempfile
import time

from ends import ROOT, VERBENA, Broken, Loopback, environment, in_turns, iperf3, judged, median, pair, perftest, ratios, scaled, ucx

MIB, KIB = 1 << 20, 1 << 10
SIZES = 64, 512, 4 * KIB, 64 * KIB, MIB
PLACE = Loopback()
OURS = {"memory": {"VERBENA_SHM": "on"}, "UDP": {"VERBENA_SHM": "off"}}
UCX = {"UCX posix": "posix,self", "posix+cma": "posix,cma,self"}
COLUMNS = list(OURS) + list(UCX) + ["iperf3"]
RATIO_TO = "UDP", "UCX posix", "posix+cma"
MB_S, US = (3, 1.048576), (4, 1.0)  # column of perftest's row, and what brings it to the unit
# (the row begins with, column, factor, whether ours through memory should be at least or at most so much)
WANTED = [
    ("latency", "UDP", 0.2, "<="),
    ("latency", "UCX posix", 3.0, "<="),
    ("write 1 MiB, 1", "posix+cma", 0.9, ">="),
    ("read 1 MiB, 1", "posix+cma", 0.9, ">="),
    ("send 1 MiB, 1", "posix+cma", 0.9, ">="),
    ("write 64 B, 1", "UDP", 3.0, ">="),
    ("all-to-all", "UDP", 0.5, "<="),
]


def latency_row(program, test):
    n = scaled(100000)
    cells = {c: lambda name, env=env: perftest(PLACE, name, program, "-s", 8, "-n", n, env=env)[US[0]]
             for c, env in OURS.items()}
    cells.update({c: lambda name, tls=tls: ucx(PLACE, name, test, 8, n, tls)[1] for c, tls in UCX.items()})
    return "latency, %s 8 B, us" % program.split("_")[1], cells


def bytes_text(size):
    return "%d B" % size if size < KIB else "%d KiB" % (size // KIB) if size < MIB else "1 MiB"


def bandwidth_row(program, test, size, qps):
    n = min(400000, (1 << 31) // size)
    # perftest counts completions by the hundred: another number is too many in the end, and several QPs may never be done.
    each = max(scaled(n) // qps // 100, 2) * 100
    words = ["-s", size, "-n", each] + (["-q", qps] if qps > 1 else [])
    cells = {c: lambda name, env=env: perftest(PLACE, name, program, *words, env=env)[MB_S[0]] * MB_S[1]
             for c, env in OURS.items()}
    if qps == 1:
        cells.update({c: lambda name, tls=tls: ucx(PLACE, name, test, size, scaled(n), tls)[5] * 1.048576
                      for c, tls in UCX.items()})
        if size == MIB:
            cells["iperf3"] = lambda name: iperf3(PLACE, name) * 1.048576
    return "%s %s, %d QP%s, MB/s" % (program.split("_")[1], bytes_text(size), qps, "s" if qps > 1 else ""), cells


@functools.cache
def collective():
    """The program of Open MPI's rows, built here."""
    where = tempfile.mkdtemp(prefix="verbena-bench-")
    atexit.register(shutil.rmtree, where, True)
    program = os.path.join(where, "allreduce")
    r = subprocess.run(["mpicc.openmpi", "-O1", "-o", program, os.path.join(ROOT, "tests", "programs", "allreduce.c")],
                       capture_output=True, text=True)
    if r.returncode:
        raise Broken("allreduce.c: " + r.stderr)
    return program


def mpi(name, ranks, words, wrap, env):
    """Microseconds of one collective operation, Open MPI over UCX with that environment."""
    out = pair(PLACE, name, None, [*wrap, "mpirun.openmpi", "--allow-run-as-root", "--oversubscribe", "-np", ranks, "--mca", "pml", "ucx",
                                   "--mca", "osc", "ucx", "--mca", "pml_ucx_devices", "any", "--mca", "pml_ucx_tls", "any",
                                   collective(), *words], None, {"UCX_WARN_UNUSED_ENV_VARS": "n", **env})
    took = re.search(r"^took ([\d.]+) us$", out, re.M)
    if not took:
        raise Broken("%s: no result\n%s" % (name, out))
    return float(took[1])


def mpi_row(what, ranks, size, times):
    """Our columns have UCX's verbs transports, and memory or UDP below them."""
    words = what, size, scaled(times)
    verbs = {"UCX_NET_DEVICES": "verbena0:1", "UCX_TLS": "rc_verbs,ud_verbs,self"}
    cells = {c: lambda name, env=env: mpi(name, ranks, words, [VERBENA, "run"], {**verbs, **env}) for c, env in OURS.items()}
    cells.update({c: lambda name, tls=tls: mpi(name, ranks, words, [], {"UCX_TLS": tls}) for c, tls in UCX.items()})
    return "%s, %d ranks, %s, us" % (what, ranks, bytes_text(size)), cells


def rows():
    yield latency_row("ib_write_lat", "ucp_put_lat")
    yield latency_row("ib_send_lat", "tag_lat")
    # UCX reads by what it does best: a long tagged message is read by its receiver.
    for program, test in (("ib_write_bw", "ucp_put_bw"), ("ib_read_bw", "tag_bw"), ("ib_send_bw", "tag_bw")):
        for size in SIZES:
            for qps in (1, 8):
                yield bandwidth_row(program, test, size, qps)
    for ranks in 2, 4:
        yield mpi_row("all-reduce", ranks, 8, 2000)
        yield mpi_row("all-reduce", ranks, MIB, 100)
    yield mpi_row("all-to-all", 16, 4 * KIB, 100)


def check_paths():
    """The settings have the effect that the columns are named for: what `verbena stat` says of running programs."""
    for column, env in OURS.items():
        seen = set()

        def look(server, client):
            while client.poll() is None and not seen:
                time.sleep(0.05)
                out = subprocess.run([VERBENA, "stat", "--json", str(client.pid)], capture_output=True, text=True,
                                     env=environment({}))
                found = json.loads(out.stdout)["processes"] if out.returncode == 0 else []
                if found and found[0]["counters"]["rx_packets"] > 100:
                    seen.update(q["path"] for q in found[0]["queue_pairs"])

        perftest(PLACE, "path of " + column, "ib_write_lat", "-s", 8, "-D", 2, env=env, meanwhile=look)
        wanted = {"memory": "shm", "UDP": "udp"}[column]
        if seen != {wanted}:
            raise Broken("the path of %s is %s, not %s" % (column, ", ".join(sorted(seen)) or "not seen", wanted))


def to_column(samples, label, column):
    """Memory to that column, within each round."""
    return ratios(samples.get((label, "memory"), []), samples.get((label, column), []))


def judge(samples):
    print("\n  memory                      to                  median       quartiles  wanted")
    rows = [(label, column, to_column(samples, label, column), factor, sense)
            for label in dict.fromkeys(label for label, _ in samples) for start, column, factor, sense in WANTED if label.startswith(start)]
    return [judged(*row) for row in rows if row[2]]


def local(count):
    """Every cell `count` times, in turns, every other round backwards; medians, and ratios within a round."""
    table = list(rows())
    print("\nlocal: processes of one user on one host, %d rounds" % count)
    check_paths()
    begun = time.monotonic()
    samples = in_turns(table, count, lambda label, c: "local: %s: %s" % (label, c),
                       lambda r, _: print("  round %d: %.0f s so far" % (r + 1, time.monotonic() - begun), flush=True))
    print("  %-28s" % "medians" + "".join("%12s" % c for c in COLUMNS) + "   memory to " + ", ".join(RATIO_TO))
    for label, _ in table:
        medians = [median(samples.get((label, c), [])) for c in COLUMNS]
        to = ["%.2f" % statistics.median(each) if each else "-" for each in (to_column(samples, label, c) for c in RATIO_TO)]
        print("  %-28s" % label + "".join("%12s" % ("" if not m else "%.4g" % m if m < 1e4 else "%.0f" % m) for m in medians)
              + "   " + ", ".join(to))
    judged = judge(samples)
    return [{"table": "local", "row": label, "column": c, "samples": values} for (label, c), values in samples.items()] \
        + [{"table": "local", "ratios": judged}]


GROUPS = {"local": local}
