#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Programs on a device that is like another one: they run, or end with the errno that such a device gives."""
import os
import tempfile

from pair import check, main, perftest, pingpong


def profile(name):
    return {"VERBENA_PROFILE": name}


def refused(place, name, command, *words):
    """One end alone: what the device lacks is refused before a peer is looked for."""
    status, out = place.run(0, command, seconds=20, env=profile(name))
    check(status not in (0, None) and status > 0, "%s under %s: status %s\n%s" % (command, name, status, out))
    for word in words:
        check(word in out, "%s under %s: no \"%s\" in\n%s" % (command, name, word, out))


def limits(place, name, *words):
    status, out = place.run(0, ["ibv_devinfo", "-v"], seconds=20, env=profile(name))
    check(status == 0, out)
    told = out.replace("\t", "").replace(" ", "")
    for word in words:
        check(word in told, "%s: no \"%s\" in\n%s" % (name, word, out))


def rxe(place):
    limits(place, "rxe", "max_cqe:32767", "xrc_odp_caps:\nNOSUPPORT")
    pingpong(place, "ibv_rc_pingpong", ["-c"], env=profile("rxe"))
    pingpong(place, "ibv_srq_pingpong", ["-c"], env=profile("rxe"))
    perftest(place, "ib_write_bw", ["-s", 4096], iters=200, sizes=[4096], env=profile("rxe"))
    refused(place, "rxe", ["ibv_rc_pingpong", "-g", 0, "-o"], "ODP")
    refused(place, "rxe", ["ibv_rc_pingpong", "-g", 0, "-j"], "dm")


def write_only(place):
    limits(place, "write-only", "max_srq:0")
    perftest(place, "ib_write_bw", iters=200, sizes=[65536], env=profile("write-only"))
    perftest(place, "ib_write_lat", ["-s", 64], iters=200, sizes=[64], env=profile("write-only"))
    refused(place, "write-only", ["ibv_srq_pingpong", "-g", 0], "SRQ")
    refused(place, "write-only", ["ibv_ud_pingpong", "-g", 0], "QP")


def unordered(place):
    pingpong(place, "ibv_rc_pingpong", ["-c"], env=profile("unordered"))
    perftest(place, "ib_write_bw", iters=200, sizes=[65536], env=profile("unordered"))
    perftest(place, "ib_send_bw", iters=200, sizes=[65536], env=profile("unordered"))


def uc_only(place):
    limits(place, "uc-only", "max_qp:10", "max_mr:100", "atomic_cap:ATOMIC_NONE", "GID[0]:fe80:")
    pingpong(place, "ibv_uc_pingpong", ["-c", "-g", 0], gid_flag=None, env=profile("uc-only"))
    perftest(place, "ib_write_bw", ["-c", "UC", "-s", 4096, "-x", 0], iters=200, sizes=[4096], gid_flag=None,
             env=profile("uc-only"))
    refused(place, "uc-only", ["ibv_rc_pingpong", "-g", 0], "QP")


def wrong(place):
    """The program is not started, and the line is named."""
    with tempfile.NamedTemporaryFile("w", suffix=".profile") as f:
        f.write("max_qp = 10\nmax_mr = lots\n")
        f.flush()
        os.chmod(f.name, 0o644)
        status, out = place.run(0, ["echo", "started"], seconds=20, env=profile(f.name))
    check(status not in (0, None) and "started" not in out, out)
    check(":2: max_mr = lots: allowed is a whole number from 1" in out, out)
    status, out = place.run(0, ["echo", "started"], seconds=20, env=profile("cx9"))
    check(status not in (0, None) and "uc-only" in out, out)


if __name__ == "__main__":
    main({"rxe": rxe, "write_only": write_only, "unordered": unordered, "uc_only": uc_only, "wrong": wrong})
