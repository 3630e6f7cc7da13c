#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""ibv_rc_pingpong, ibv_uc_pingpong, ibv_ud_pingpong and ibv_srq_pingpong with each of their options."""
from pair import check, main, pingpong


def mtus(place):
    """Those that fit the path, least, default and most of them."""
    fit = [m for m in (256, 512, 1024, 2048, 4096) if m <= place.path_mtu()]
    return fit if place.name.startswith(("lo", "shm")) else sorted({fit[0], fit[-1]})


def common(program):
    def run(place):
        pingpong(place, program, ["-c"])
        pingpong(place, program, ["-e"])
        pingpong(place, program, ["-c", "-e", "-r", 1])
        pingpong(place, program, ["-c", "-r", 16])
    return run


def sizes(program):
    def run(place):
        pingpong(place, program, ["-c"], size=1)
        pingpong(place, program, ["-c"], size=65536)
        pingpong(place, program, ["-c"], size=1000000, iters=15)
        pingpong(place, program, ["-c", "-e"], size=1000000, iters=10)
    return run


def mtu(program):
    def run(place):
        for m in mtus(place):
            pingpong(place, program, ["-c", "-m", m], size=20001, iters=40)
    return run


def rc_more(place):
    pingpong(place, "ibv_rc_pingpong", ["-N"])
    pingpong(place, "ibv_rc_pingpong", ["-N", "-e", "-c"], size=70000, iters=50)
    pingpong(place, "ibv_rc_pingpong", ["-l", 3, "-c"])
    pingpong(place, "ibv_rc_pingpong", ["-d", "verbena0", "-i", 1])


def rc_memory(place):
    """On demand, of the whole address space, prefetched; device memory."""
    for options in (["-o"], ["-o", "-P", "-e"], ["-O"], ["-O", "-P", "-N"], ["-j"], ["-j", "-e", "-N"]):
        pingpong(place, "ibv_rc_pingpong", ["-c"] + options, size=20004)


def rc_timestamps(place):
    """-t where the device has time stamps; where it has none the program must get an error."""
    status, out = place.run(0, ["ibv_devinfo", "-v"])
    if "completion_timestamp_mask not supported" in out or "completion timestamp_mask" not in out:
        _, out = place.run(0, ["ibv_rc_pingpong", "-t", "-g", place.gid_index(0)], seconds=5)
        check("timestamp" in out, "no word on time stamps: " + out)
        return
    pingpong(place, "ibv_rc_pingpong", ["-t", "-c"])


def rc_bad_options(place):
    """A port, a GID or a device that does not exist ends the program at once, with a word of why."""
    for options in (["-i", 2], ["-g", 63], ["-d", "nosuch0"], ["-j", "-o"]):
        status, out = place.run(0, ["ibv_rc_pingpong"] + options, seconds=5)
        if options == ["-g", 63] and status is None:
            continue  # the index is looked at when the peer is known
        check(status not in (0, None) and status > 0, "%s: status %s\n%s" % (options, status, out))
        check(out.strip(), "%s: not a word" % options)


def ud_all(place):
    pingpong(place, "ibv_ud_pingpong", ["-c"], size=1024)
    pingpong(place, "ibv_ud_pingpong", ["-e"], size=512)
    pingpong(place, "ibv_ud_pingpong", ["-c", "-e", "-r", 2], size=1000)
    pingpong(place, "ibv_ud_pingpong", ["-c"], size=1)
    pingpong(place, "ibv_ud_pingpong", ["-c", "-l", 1], size=min(place.path_mtu(), place.port_mtu()))


def srq_all(place):
    pingpong(place, "ibv_srq_pingpong", ["-c"])
    pingpong(place, "ibv_srq_pingpong", ["-e", "-q", 1])
    pingpong(place, "ibv_srq_pingpong", ["-e", "-c", "-q", 64], iters=20)
    pingpong(place, "ibv_srq_pingpong", ["-c", "-q", 4, "-r", 20], size=100000, iters=40)



if __name__ == "__main__":
    main({"rc_common": common("ibv_rc_pingpong"), "rc_sizes": sizes("ibv_rc_pingpong"),
          "rc_mtu": mtu("ibv_rc_pingpong"), "rc_more": rc_more, "rc_timestamps": rc_timestamps,
          "rc_bad_options": rc_bad_options, "rc_memory": rc_memory,
          "uc_common": common("ibv_uc_pingpong"), "uc_sizes": sizes("ibv_uc_pingpong"),
          "uc_mtu": mtu("ibv_uc_pingpong"), "ud_all": ud_all, "srq_all": srq_all})
