#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""ucx_perftest, both ends over UCX's own verbs transports: how far UCX, and what stands on it, gets with us."""
import re
import shutil

from pair import Pair, Skip, check, devices_json, main


def run(place, transports, *words, **env):
    if not shutil.which("ucx_perftest"):
        raise Skip("needs ucx_perftest")
    env = {"UCX_NET_DEVICES": "verbena0:1", **env, "UCX_TLS": transports + ",self"}
    pair = Pair(place, "ucx_perftest", [], ["-f", "-w", 20, *words], gid_flag=None, env=env).go()
    _, out = pair.finish()
    # The third number is of the time since the last report: inf where that was just before.
    rows = [line for line in out.splitlines() if re.match(r"(?:[ \d.]|inf)+$", line) and len(line.split()) >= 7]
    check(rows, "%s over %s: no result\n%s" % (pair.title, transports, out))
    check(float(rows[-1].split()[3]) > 0, "%s over %s: absurd: %s" % (pair.title, transports, rows[-1]))


def ud(place):
    run(place, "ud_verbs", "-t", "tag_lat", "-s", 8, "-n", 300)
    run(place, "ud_verbs", "-t", "tag_bw", "-s", 20000, "-n", 200)


def ud_ipv6(place):
    gids = devices_json(place)["devices"][0]["ports"][0]["gids"]
    index = next(g["index"] for g in gids if ":" in g["address"] and not g["address"].startswith("fe80"))
    run(place, "ud_verbs", "-t", "tag_lat", "-s", 8, "-n", 300, UCX_IB_GID_INDEX=str(index))


def rc(place):
    run(place, "rc_verbs,ud_verbs", "-t", "tag_lat", "-s", 8, "-n", 300)
    run(place, "rc_verbs,ud_verbs", "-t", "tag_bw", "-s", 1048576, "-n", 40)
    run(place, "rc_verbs,ud_verbs", "-t", "stream_bw", "-s", 100, "-n", 1000)


def one_sided(place):
    run(place, "ib", "-t", "ucp_put_bw", "-s", 65536, "-n", 200)
    run(place, "ib", "-t", "ucp_get", "-s", 65536, "-n", 200)
    run(place, "ib", "-t", "ucp_cswap", "-n", 300)


def one_sided_more(place):
    run(place, "ib", "-t", "ucp_put_lat", "-s", 8, "-n", 300)
    run(place, "ib", "-t", "ucp_fadd", "-n", 300)


def asleep(place):
    """UCX arms its CQs after it has found them empty, and sleeps in poll()."""
    for transports in "rc_verbs,ud_verbs", "ud_verbs":
        for test, size, iters in ("tag_lat", 8, 1000), ("tag_bw", 20000, 1000), ("ucp_am_bw", 1000, 1000):
            run(place, transports, "-t", test, "-s", size, "-n", iters, "-E", "sleep")


if __name__ == "__main__":
    main({"ud": ud, "ud_ipv6": ud_ipv6, "rc": rc, "one_sided": one_sided, "one_sided_more": one_sided_more, "asleep": asleep})
