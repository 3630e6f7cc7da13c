#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""
perftest's eight programs for SEND, WRITE, READ and atomics, with the options that change what we do.

The eight runs without options have the true clock, the others one that lets perftest start sooner (pair.py). Options that do
not concern each other go together; the cases that end in _each have them one by one.
"""
from pair import ALL_SIZES, main, perftest


def defaults(program, size):
    """As it is without options, with the true clock; of latencies less often, as both ends compute while they wait."""
    def run(place):
        place.quick_clock = False
        perftest(place, program, iters=200 if program.endswith("_lat") else None, sizes=[size])
    return run


def all_sizes(program, sizes=None, iters=5, options=()):
    """-a: every size from 2 bytes to 8 MiB, or to what one packet holds for UD."""
    def run(place):
        perftest(place, program, ["-a"] + list(options), iters=iters, sizes=sizes or ALL_SIZES)
    return run


def send_bw(place):
    perftest(place, "ib_send_bw", ["-b", "-q", 16], iters=50, sizes=[65536])
    perftest(place, "ib_send_bw", ["-e", "-N", "-s", 1000001], iters=20, sizes=[1000001])
    perftest(place, "ib_send_bw", ["-t", 1, "-r", 2], iters=100, sizes=[65536])
    perftest(place, "ib_send_bw", ["-t", 512, "-r", 1024, "-Q", 1, "-s", 1], iters=2000, sizes=[1])
    perftest(place, "ib_send_bw", ["-l", 16, "--recv_post_list=16", "-I", 64, "-s", 64], iters=1600, sizes=[64])


def send_bw_each(place):
    perftest(place, "ib_send_bw", ["-b"], iters=200, sizes=[65536])
    perftest(place, "ib_send_bw", ["-q", 16], iters=50, sizes=[65536])
    perftest(place, "ib_send_bw", ["-e"], iters=300, sizes=[65536])
    perftest(place, "ib_send_bw", ["-e", "-b", "-q", 4, "-s", 3000], iters=100, sizes=[3000])
    perftest(place, "ib_send_bw", ["-t", 1, "-r", 2], iters=100, sizes=[65536])
    perftest(place, "ib_send_bw", ["-t", 512, "-r", 1024, "-s", 100], iters=2000, sizes=[100])
    perftest(place, "ib_send_bw", ["-l", 16, "--recv_post_list=16", "-s", 64], iters=1600, sizes=[64])
    perftest(place, "ib_send_bw", ["-Q", 1, "-s", 1], iters=1000, sizes=[1])
    perftest(place, "ib_send_bw", ["-N", "-s", 1000001], iters=10, sizes=[1000001])


def send_srq(place):
    perftest(place, "ib_send_bw", ["--use-srq", "-q", 8, "-s", 1024], iters=100, sizes=[1024])
    perftest(place, "ib_send_bw", ["--use-srq", "-e", "-s", 5000], iters=100, sizes=[5000])


def send_srq_each(place):
    perftest(place, "ib_send_bw", ["--use-srq"], iters=300, sizes=[65536])
    perftest(place, "ib_send_bw", ["--use-srq", "-q", 8, "-s", 1024], iters=100, sizes=[1024])
    perftest(place, "ib_send_lat", ["--use-srq"], iters=100, sizes=[2])
    perftest(place, "ib_send_lat", ["--use-srq", "-e", "-s", 5000], iters=100, sizes=[5000])


def send_uc_ud(place):
    """And with inline data."""
    perftest(place, "ib_send_bw", ["-c", "UC", "-s", 3000, "-t", 16], iters=200, sizes=[3000])
    perftest(place, "ib_send_bw", ["-c", "UD", "-s", 256, "-t", 16, "-q", 4], iters=50, sizes=[256])
    perftest(place, "ib_send_bw", ["-c", "UD", "-s", 1000, "-t", 16, "-e"], iters=100, sizes=[1000])
    perftest(place, "ib_send_lat", ["-c", "UC", "-e", "-I", 64, "-s", 64], iters=100, sizes=[64])
    perftest(place, "ib_send_lat", ["-c", "UD", "-I", 64, "-s", 64], iters=100, sizes=[64])


def send_uc_ud_each(place):
    perftest(place, "ib_send_bw", ["-c", "UC", "-s", 1024, "-t", 16], iters=200, sizes=[1024])
    perftest(place, "ib_send_bw", ["-c", "UD", "-s", 1024, "-t", 16], iters=200, sizes=[1024])
    perftest(place, "ib_send_bw", ["-c", "UD", "-s", 256, "-t", 16, "-q", 4], iters=50, sizes=[256])
    perftest(place, "ib_send_lat", ["-c", "UC", "-s", 3000], iters=100, sizes=[3000])
    perftest(place, "ib_send_lat", ["-c", "UD", "-s", 1000], iters=100, sizes=[1000])
    perftest(place, "ib_send_lat", ["-c", "UD", "-e"], iters=100, sizes=[2])
    perftest(place, "ib_send_lat", ["-c", "UC", "-e"], iters=100, sizes=[2])


def send_inline(place):
    for transport in ("RC", "UC", "UD"):
        perftest(place, "ib_send_lat", ["-I", 64, "-s", 64, "-c", transport], iters=100, sizes=[64])
    perftest(place, "ib_send_bw", ["-I", 64, "-s", 64, "-c", "UD", "-t", 16], iters=200, sizes=[64])


def send_lat(place):
    perftest(place, "ib_send_lat", ["-e", "-s", 100000, "-r", 4], iters=100, sizes=[100000])


def send_lat_each(place):
    perftest(place, "ib_send_lat", ["-e"], iters=100, sizes=[2])
    perftest(place, "ib_send_lat", ["-s", 100000, "-r", 4], iters=100, sizes=[100000])


def write_bw(place):
    perftest(place, "ib_write_bw", ["-b", "-q", 16], iters=50, sizes=[65536])
    perftest(place, "ib_write_bw", ["-t", 1, "--use_old_post_send"], iters=100, sizes=[65536])
    perftest(place, "ib_write_bw", ["-l", 32, "-I", 64, "-s", 64], iters=3200, sizes=[64])
    perftest(place, "ib_write_bw", ["--perform_warm_up", "-s", 10000], iters=100, sizes=[10000])
    perftest(place, "ib_write_bw", ["--mr_per_qp", "-q", 3], iters=100, sizes=[65536])


def write_bw_each(place):
    perftest(place, "ib_write_bw", ["-b"], iters=200, sizes=[65536])
    perftest(place, "ib_write_bw", ["-q", 16], iters=50, sizes=[65536])
    perftest(place, "ib_write_bw", ["-b", "-q", 16, "-s", 2000], iters=50, sizes=[2000])
    perftest(place, "ib_write_bw", ["-t", 1], iters=100, sizes=[65536])
    perftest(place, "ib_write_bw", ["-l", 32, "-s", 64], iters=3200, sizes=[64])
    perftest(place, "ib_write_bw", ["--perform_warm_up", "-s", 10000], iters=100, sizes=[10000])
    perftest(place, "ib_write_bw", ["--mr_per_qp", "-q", 3], iters=100, sizes=[65536])
    perftest(place, "ib_write_bw", ["--use_old_post_send"], iters=100, sizes=[65536])


def write_uc(place):
    perftest(place, "ib_write_bw", ["-c", "UC", "-t", 4, "-s", 8192], iters=100, sizes=[8192])
    perftest(place, "ib_write_lat", ["-c", "UC", "-I", 32, "-s", 32], iters=100, sizes=[32])


def write_uc_each(place):
    perftest(place, "ib_write_bw", ["-c", "UC", "-t", 4, "-s", 8192], iters=100, sizes=[8192])
    perftest(place, "ib_write_lat", ["-c", "UC", "-s", 1500], iters=100, sizes=[1500])


def write_inline(place):
    perftest(place, "ib_write_bw", ["-I", 128, "-s", 128], iters=1000, sizes=[128])
    perftest(place, "ib_write_lat", ["-I", 64, "-s", 64], iters=100, sizes=[64])
    perftest(place, "ib_write_lat", ["-c", "UC", "-I", 32, "-s", 32], iters=100, sizes=[32])


def read_more(place):
    perftest(place, "ib_read_bw", ["-b", "-q", 16], iters=50, sizes=[65536])
    perftest(place, "ib_read_bw", ["-e", "-o", 1], iters=100, sizes=[65536])
    perftest(place, "ib_read_bw", ["-o", 16, "-t", 256, "-s", 100], iters=1000, sizes=[100])
    perftest(place, "ib_read_lat", ["-e", "-s", 1000001], iters=20, sizes=[1000001])


def read_each(place):
    perftest(place, "ib_read_bw", ["-b"], iters=200, sizes=[65536])
    perftest(place, "ib_read_bw", ["-q", 16], iters=50, sizes=[65536])
    perftest(place, "ib_read_bw", ["-e"], iters=200, sizes=[65536])
    perftest(place, "ib_read_bw", ["-o", 1], iters=100, sizes=[65536])
    perftest(place, "ib_read_bw", ["-o", 16, "-t", 256, "-s", 100], iters=1000, sizes=[100])
    perftest(place, "ib_read_lat", ["-e"], iters=100, sizes=[2])
    perftest(place, "ib_read_lat", ["-s", 1000001], iters=20, sizes=[1000001])


def atomic_more(place):
    perftest(place, "ib_atomic_bw", ["-A", "FETCH_AND_ADD", "-b", "-q", 16], iters=50, sizes=[8])
    perftest(place, "ib_atomic_bw", ["-A", "CMP_AND_SWAP", "-e", "-o", 1], iters=200, sizes=[8])


def on_demand(place):
    perftest(place, "ib_write_bw", ["--odp"], iters=200, sizes=[65536])
    perftest(place, "ib_read_bw", ["--odp"], iters=100, sizes=[65536])
    perftest(place, "ib_send_bw", ["--odp", "-c", "UD", "-s", 1024], iters=200, sizes=[1024])


def atomic_each(place):
    for kind in ("FETCH_AND_ADD", "CMP_AND_SWAP"):
        perftest(place, "ib_atomic_bw", ["-A", kind], iters=500, sizes=[8])
        perftest(place, "ib_atomic_lat", ["-A", kind], iters=100, sizes=[8])
    perftest(place, "ib_atomic_bw", ["-b"], iters=300, sizes=[8])
    perftest(place, "ib_atomic_bw", ["-q", 16], iters=50, sizes=[8])
    perftest(place, "ib_atomic_bw", ["-e", "-o", 1], iters=200, sizes=[8])
    perftest(place, "ib_atomic_lat", ["-e"], iters=100, sizes=[8])


def mtu(place):
    """The least and the largest; what is between, ibv_rc_pingpong has."""
    fit = [m for m in (256, 512, 1024, 2048, 4096) if m <= place.path_mtu()]
    mtus(place, [fit[0], fit[-1]])


def mtu_each(place):
    mtus(place, [m for m in (256, 512, 1024, 2048, 4096) if m <= place.path_mtu()])


def mtus(place, fit):
    for i, m in enumerate(fit):
        perftest(place, "ib_write_bw", ["-m", m, "-s", 50000], iters=50, sizes=[50000])
        if i in (0, len(fit) - 1):
            perftest(place, "ib_read_bw", ["-m", m, "-s", 50000], iters=50, sizes=[50000])
        if i == len(fit) - 1:
            perftest(place, "ib_send_bw", ["-m", m, "-s", 50000], iters=50, sizes=[50000])


def duration(*programs):
    def run(place):
        for program in programs:
            perftest(place, program, ["-D", 1])
    return run


def no_gid(place):
    """Without -x perftest picks a GID by itself, an IPv4 one."""
    perftest(place, "ib_write_bw", iters=100, sizes=[65536], gid_flag=None)
    perftest(place, "ib_send_bw", iters=100, sizes=[65536], gid_flag=None)


def brief(place):
    """Each operation and each service once, for a place where the rest would show nothing new."""
    perftest(place, "ib_send_bw", iters=100, sizes=[65536])
    perftest(place, "ib_send_bw", ["-c", "UD", "-s", 1000, "-t", 16, "-e"], iters=100, sizes=[1000])
    perftest(place, "ib_write_bw", ["-q", 4], iters=50, sizes=[65536])
    perftest(place, "ib_write_bw", ["-c", "UC", "-t", 4, "-s", 4096], iters=100, sizes=[4096])
    perftest(place, "ib_read_bw", ["-e"], iters=50, sizes=[65536])
    perftest(place, "ib_atomic_bw", ["-e"], iters=100, sizes=[8])


def brief_lat(place):
    perftest(place, "ib_send_lat", ["-c", "UD", "-s", 1000, "-e"], iters=100, sizes=[1000])
    perftest(place, "ib_write_lat", iters=100, sizes=[2])
    perftest(place, "ib_atomic_lat", ["-e"], iters=100, sizes=[8])


CASES = {
    "send_bw": send_bw, "send_lat": send_lat, "send_srq": send_srq, "send_uc_ud": send_uc_ud,
    "send_inline": send_inline, "write_bw": write_bw, "write_uc": write_uc,
    "write_inline": write_inline, "read": read_more, "atomic": atomic_more, "on_demand": on_demand, "mtu": mtu,
    "send_bw_each": send_bw_each, "send_srq_each": send_srq_each, "send_uc_ud_each": send_uc_ud_each, "write_bw_each": write_bw_each,
    "send_lat_each": send_lat_each, "write_uc_each": write_uc_each, "read_each": read_each, "atomic_each": atomic_each, "mtu_each": mtu_each,
    "duration": duration("ib_write_bw"), "duration_lat": duration("ib_send_lat", "ib_read_lat"), "no_gid": no_gid, "brief": brief,
    "brief_lat": brief_lat,
    "send_bw_all": all_sizes("ib_send_bw"), "send_lat_all": all_sizes("ib_send_lat"),
    "write_bw_all": all_sizes("ib_write_bw"), "write_lat_all": all_sizes("ib_write_lat"),
    "read_bw_all": all_sizes("ib_read_bw"), "read_lat_all": all_sizes("ib_read_lat"),
    "ud_lat_all": all_sizes("ib_send_lat", [1 << i for i in range(1, 11)], options=["-c", "UD", "-m", 1024]),
}
for name, first in (("send_bw", 65536), ("write_bw", 65536), ("read_bw", 65536), ("atomic_bw", 8),
                    ("send_lat", 2), ("write_lat", 2), ("read_lat", 2), ("atomic_lat", 8)):
    CASES[name + "_defaults"] = defaults("ib_" + name, first)

if __name__ == "__main__":
    main(CASES)
