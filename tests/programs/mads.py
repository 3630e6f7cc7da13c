#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""
Every message of the connection manager, as tshark dissects it: which there must be, and nothing that it finds wrong.
"""
import glob
import os
import shutil
import subprocess

from pair import Skip, check, folder, main
from rdmacm import talk

FIELDS = ("_ws.col.Info", "_ws.expert.message", "_ws.malformed", "infiniband.mad.baseversion", "infiniband.mad.mgmtclass")
CONNECTED = {"CM: ConnectRequest", "CM: ConnectReply", "CM: ReadyToUse", "CM: DisconnectRequest", "CM: DisconnectReply"}


def messages(where):
    """The names of all messages in the captures; anything that is wrong with one is a failure."""
    if not shutil.which("tshark"):
        raise Skip("needs tshark")
    names = set()
    for path in glob.glob(os.path.join(where, "*.pcap")):
        command = ["tshark", "-r", path, "-Y", "infiniband.bth.destqp == 1", "-T", "fields"]
        for field in FIELDS:
            command += ["-e", field]
        r = subprocess.run(command, capture_output=True, text=True)
        check(r.returncode == 0, "tshark: %s" % r.stderr)
        for line in r.stdout.splitlines():
            info, expert, malformed, version, kind = line.split("\t")
            check(info.startswith("CM: ") and not expert and not malformed and int(version, 0) == 1 and int(kind, 0) == 7,
                  "tshark says: %s" % line)
            names.add(info)
    return names


def captured(place, server, client):
    where = folder()
    talk(place, server, client, {"VERBENA_PCAP": where + "/%p.pcap"})
    return messages(where)


def connection(place):
    at = place.addresses[0]
    options = ["-c", "3", "-C", "3"]
    names = captured(place, ["ucmatose", "-b", at] + options, ["ucmatose", "-s", at] + options)
    check(CONNECTED <= names, "not all messages: %s" % sorted(names))


def datagrams(place):
    at = place.addresses[0]
    names = captured(place, ["udaddy", "-b", at, "-C", "3"], ["udaddy", "-s", at, "-C", "3"])
    check(len(names) >= 2, "not both messages: %s" % sorted(names))


def refusal(place):
    """Nobody listens."""
    where = folder()
    place.run(1, ["rping", "-c", "-a", place.addresses[0], "-C", "1"], env={"VERBENA_PCAP": where + "/%p.pcap"})
    check("CM: ConnectReject" in messages(where), "no REJ")


if __name__ == "__main__":
    main({"connection": connection, "datagrams": datagrams, "refusal": refusal})
