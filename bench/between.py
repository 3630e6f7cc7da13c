# SPDX-License-Identifier: BSD-2-Clause
"""
Three groups of bench/run.py. `between`: two network namespaces that a veth pair joins, which is what a network
is on one machine: both protocols, 1 and 16 paths, 1 and 8 queue pairs, one way and both ways, beside TCP.
`sizes`: messages from 512 bytes to 64 KiB, over loopback and between namespaces. `busy`: long messages between
namespaces while two loops beside each end take what processor time they can get.
"""
import contextlib
import statistics
import subprocess
import sys

from ends import Between, Loopback, in_turns, iperf3, median, perftest, ratios, scaled, ucx

MTUS = 1500, 9000, 65535
MIB, KIB = 1 << 20, 1 << 10
SIZES = 512, 1 * KIB, 2 * KIB, 4 * KIB, 8 * KIB, 16 * KIB, 32 * KIB, 64 * KIB
PROTOCOLS = {"RoCEv2": {"VERBENA_PROTOCOL": "rocev2"}, "veRoCE": {"VERBENA_PROTOCOL": "veroce"},
             "veRoCE 1 path": {"VERBENA_PROTOCOL": "veroce", "VERBENA_VEROCE_PATHS": "1"}}
MB_S, US, PER_S = (3, 1.048576), (4, 1.0), (4, 1e6)  # column of perftest's row, and what brings it to the unit


def ours(place, env, unit, program, *words):
    column, factor = unit
    return lambda name: perftest(place, name, program, *words, env=env)[column] * factor


def measures(place):
    """Rows of (label, {column: measure}); bandwidth in MB/s, latency in us, rates in messages a second."""
    def row(label, unit, program, *words, **peers):
        cells = {c: ours(place, env, unit, program, *words) for c, env in PROTOCOLS.items()}
        return label, {**cells, **peers}

    def ucx_column(test, size, count, column, factor):
        return lambda name: ucx(place, name, test, size, scaled(count))[column] * factor

    tcp = lambda name: iperf3(place, name) * 1.048576
    n = scaled(4000)
    return [
        row("write 1 MiB, MB/s", MB_S, "ib_write_bw", "-s", MIB, "-n", n, iperf3=tcp,
            UCX=ucx_column("tag_bw", MIB, 2000, 5, 1.048576)),
        row("... both ways", MB_S, "ib_write_bw", "-b", "-s", MIB, "-n", n),
        row("... 8 queue pairs", MB_S, "ib_write_bw", "-q", 8, "-s", MIB, "-n", n // 8),
        row("... 8, both ways", MB_S, "ib_write_bw", "-b", "-q", 8, "-s", MIB, "-n", n // 8),
        row("read 1 MiB", MB_S, "ib_read_bw", "-s", MIB, "-n", n),
        row("send 1 MiB", MB_S, "ib_send_bw", "-s", MIB, "-n", n),
        row("write 64 KiB", MB_S, "ib_write_bw", "-s", 64 * KIB, "-n", scaled(50000),
            UCX=ucx_column("tag_bw", 64 * KIB, 20000, 5, 1.048576)),
        row("write 64 B, a second", PER_S, "ib_write_bw", "-s", 64, "-n", scaled(1000000),
            UCX=ucx_column("tag_bw", 64, 300000, 7, 1.0)),
        row("send 8 B, us", US, "ib_send_lat", "-s", 8, "-n", scaled(50000),
            UCX=ucx_column("tag_lat", 8, 50000, 1, 1.0)),
    ]


def size_rows(place, program):
    rows = []
    for size in SIZES:
        n = min(200000, (1 << 29) // size)
        cells = {c: ours(place, PROTOCOLS[c], MB_S, program, "-s", size, "-n", scaled(n)) for c in ("RoCEv2", "veRoCE")}
        cells["UCX"] = lambda name, size=size, n=n: ucx(place, name, "tag_bw", size, scaled(n))[5] * 1.048576
        rows.append((str(size) if size < KIB else "%d KiB" % (size // KIB), cells))
    return rows


def table(title, rows, count):
    """Measures every cell `count` times, in turns, every other round backwards; prints medians and ratios."""
    print("\n%s, %d rounds" % (title, count))
    samples = in_turns(rows, count, lambda label, c: "%s: %s: %s" % (title, label, c))
    columns = list(dict.fromkeys(c for _, cells in rows for c in cells))
    print("  %-22s" % "" + "".join("%15s" % c for c in columns) + "   ratio to RoCEv2: veRoCE, 1 path")
    for label, cells in rows:
        medians = [median(samples.get((label, c), [])) for c in columns]
        to = [ratios(samples.get((label, c), []), samples[label, "RoCEv2"]) for c in list(PROTOCOLS)[1:]]
        print("  %-22s" % label + "".join("%15s" % ("%.4g" % m if m < 1e4 else "%.0f" % m if m else "") for m in medians)
              + "   " + ", ".join("%.2f" % statistics.median(each) for each in to if each), flush=True)
    return [{"table": title, "row": label, "column": c, "samples": values} for (label, c), values in samples.items()]


def between(count):
    found = []
    for mtu in MTUS:
        with Between(mtu) as place:
            found += table("between namespaces, IP MTU %d" % mtu, measures(place), count)
    return found


def sizes(count):
    found = []
    for program in ("ib_write_bw", "ib_read_bw", "ib_send_bw"):
        found += table("%s over loopback, MB/s" % program, size_rows(Loopback(), program), count)
        with Between(MTUS[0]) as place:
            found += table("%s between namespaces, IP MTU %d, MB/s" % (program, MTUS[0]), size_rows(place, program), count)
    return found


@contextlib.contextmanager
def loops(count):
    """Processes that compute for ever."""
    running = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield
    finally:
        for p in running:
            p.kill()
            p.wait()


def busy(count):
    found = []
    for mtu in MTUS:
        with Between(mtu) as place, loops(4):
            rows = [r for r in measures(place) if r[0] in ("write 1 MiB, MB/s", "read 1 MiB", "send 1 MiB", "write 64 KiB")]
            rows = [(label, {c: m for c, m in cells.items() if c in ("RoCEv2", "veRoCE")}) for label, cells in rows]
            found += table("between namespaces, IP MTU %d, beside four busy loops" % mtu, rows, count)
    return found


GROUPS = {"between": between, "sizes": sizes, "busy": busy}
