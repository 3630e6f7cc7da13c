#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Virtual devices: a name, addresses and limits for the programs that run on one (VERBENA_DEVICE and its kin)."""
import json
import os
import re

from address import FIRST, SECOND, Between, at, exchange, finish
from pair import check, folder, main

CONFIG = """
[vf1]
address = %s      ; of programs on this host
[vf2]
address = %s
""" % (FIRST, SECOND)


def config_file(text):
    path = os.path.join(folder(), "conf")
    with open(path, "w") as f:
        f.write(text)
    os.chmod(path, 0o644)
    return path


def on(place, device, address, config):
    """The place, for the programs of a virtual device."""
    other = at(place, address)
    other.env = [{"VERBENA_CONFIG": config, "VERBENA_DEVICE": device}] * 2
    return other


def names(place):
    """Each program sees its device alone, by its name; everything else that shows devices has the names, too."""
    config = config_file(CONFIG)
    a, b = on(place, "vf1", FIRST, config), on(place, "vf2", SECOND, config)
    guids = set()
    for p, name, address in ((a, "vf1", FIRST), (b, "vf2", SECOND)):
        status, out = p.run(0, ["ibv_devinfo", "-v"])
        check(status == 0 and re.findall(r"hca_id:\s+(\S+)", out) == [name] and "::ffff:" + address in out, out)
        guids |= set(re.findall(r"node_guid:\s+(\S+)", out))
        shown = json.loads(p.run(0, [place.verbena, "devices", "--json"])[1])["devices"]
        check([d["name"] for d in shown] == [name], str(shown))
        status, out = p.run(0, [place.verbena, "run", "sh", "-c", "ls $VERBENA_SYSFS/class/infiniband"])
        check(status == 0 and out.split() == [name], out)
    check(len(guids) == 2, "GUIDs %s" % guids)
    pairs = [exchange(a), exchange(b), exchange(Between(a, b))]
    for p in pairs:
        p.server.wait_listen(p.port)
    seen = {p["pid"]: p["device"] for p in json.loads(place.tool(0, "stat", "--json"))["processes"]}
    check(seen == {pairs[0].server.pid: "vf1", pairs[1].server.pid: "vf2", pairs[2].server.pid: "vf1"}, str(seen))
    finish([p.go() for p in pairs])
    status, out = place.run(0, [place.verbena, "run", "--device", "any", "--address", FIRST, "ibv_devinfo"])
    check(status == 0 and re.search(r"hca_id:\s+any\n", out), out)


def refused(place, env, words):
    status, out = place.run(0, [place.verbena, "run", "ibv_devinfo"], env=env)
    check(status == 125 and all(w in out for w in words), "%s: %d, %s" % (env, status, out))


def wrong(place):
    """What cannot be says why."""
    config = config_file(CONFIG)
    refused(place, {"VERBENA_DEVICE": "vf3", "VERBENA_CONFIG": config}, ["VERBENA_DEVICE=vf3", config, "vf1, vf2"])
    refused(place, {"VERBENA_DEVICE": "vf/3"}, ["VERBENA_DEVICE=vf/3", "letters"])
    refused(place, {"VERBENA_DEVICE": "vf3", "VERBENA_DEVICES": "2"}, ["VERBENA_DEVICE=vf3", "VERBENA_DEVICES"])
    refused(place, {"VERBENA_DEVICE": "vf3", "VERBENA_ADDRESS": "192.0.2.1"}, ["VERBENA_ADDRESS=192.0.2.1"])
    twice = config_file("[vf1]\naddress = %s\n[vf2]\naddress = %s,%s\n" % (FIRST, SECOND, FIRST))
    refused(place, {"VERBENA_DEVICE": "vf1", "VERBENA_CONFIG": twice}, [twice + ":4", FIRST, "vf1", "vf2"])


if __name__ == "__main__":
    main({f.__name__: f for f in (names, wrong)})
