#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""
The programs of known.py, each run as a user would. A case that passes leaves a file in BUILD/programs, from which
matrix.py writes docs/programs.md.
"""
import glob
import json
import os
import re
import shutil
import subprocess
import time

from known import KNOWN
from pair import BUILD, HERE, Failure, Process, Skip, check, clean_env, folder, main
from rdmacm import ended_well

# A listener of rdma_cm is seen by no tool, and some servers tell the client their port before they listen.
TOO_EARLY = re.compile(r"error:? 8|REJECTED|Connection (rejected|refused|reset)|UNREACHABLE, error: 1|Event rejected|"
                       r"failed to connect|Unexpected CM event|unexpected event|RDMA_CM_EVENT_REJECTED|No route|"
                       r"Unable to|Couldn't connect")


def version(package):
    r = subprocess.run(["dpkg-query", "-W", "-f", "${Version}", package], capture_output=True, text=True)
    return r.stdout if r.returncode == 0 else ""


def filled(text, place, where):
    for token, value in (("{A}", place.addresses[0]), ("{B}", place.addresses[1]), ("{D}", where), ("{EXAMPLES}", HERE)):
        text = text.replace(token, value)
    return text


def start(place, end, command, where, proof):
    """The command under `verbena run`; settings that stand before it are the environment of both."""
    words = filled(command, place, where).split()
    settings = []
    while re.match(r"[A-Z_]+=", words[0]):
        settings.append(words.pop(0))
    if proof:
        settings.append("VERBENA_PCAP=%s/%%p.pcap" % where)
    return Process(place.wrap(end, ["env", *settings, place.verbena, "run", *words]), place.env[end])


def need(known):
    for what in known.needs:
        if not os.path.exists(what):
            raise Skip("needs %s" % what)
    words = [w for w in (known.client + " " + known.server).split() if not re.match(r"[A-Z_]+=|-|\{", w)]
    if words and not known.client.startswith("{D}") and not shutil.which(words[0]):
        raise Skip("needs %s of %s" % (words[0], known.package))


def prepare(known, place, where):
    with open(os.path.join(where, "file"), "wb") as f:
        f.write(os.urandom(300000))
    if known.make:
        r = subprocess.run(["sh", "-c", filled(known.make, place, where)], capture_output=True, text=True, env=clean_env())
        if r.returncode:
            raise Skip("cannot be built here: %s" % r.stderr.strip()[-300:])


def meet(known, place, where, end):
    """A server and the client that came to its end with it: the server, the client's status and output."""
    server = start(place, 0, known.server, where, known.proof) if known.server else None
    while True:
        client = start(place, 1, known.client, where, known.proof)
        status = client.wait(max(end - time.monotonic(), 1), server)
        out = client.output()
        client.kill()
        if status == 0 and known.again and server.running() and time.monotonic() < end:
            continue
        if status == 0 or not server or not server.running() or not TOO_EARLY.search(out) or time.monotonic() > end:
            return server, status, out
        time.sleep(0.1)


def talk(known, place, where):
    """Both ends to their end; their outputs."""
    end = time.monotonic() + known.seconds
    server, status, out = meet(known, place, where, end)
    client = known.client.split()
    while not ended_well(client, status, out) and known.race and re.search(known.race, out) and time.monotonic() < end:
        server.kill()
        server, status, out = meet(known, place, where, end)
    theirs = server.output() if server else ""
    check(ended_well(client, status, out), "%s: status %s\n%s\nserver:\n%s" % (known.client, status, out, theirs))
    if server and not known.stays:
        status = server.wait(10)
        check(ended_well(known.server.split(), status, server.output()),
              "%s: status %s\n%s" % (known.server, status, server.output()))
    if server:
        theirs = server.output()
        server.kill()
    return theirs, out


def run(known, place):
    need(known)
    where = folder()
    prepare(known, place, where)
    theirs, out = talk(known, place, where)
    check(re.search(known.want, out), "%s: no /%s/ in:\n%s" % (known.client, known.want, out))
    check(re.search(known.server_want, theirs), "%s: no /%s/ in:\n%s" % (known.server, known.server_want, theirs))
    if "{D}/copy" in known.client:
        with open(where + "/file", "rb") as a, open(where + "/copy", "rb") as b:
            check(a.read() == b.read(), "the copy is another file")
    if known.proof:
        packets = sum(os.path.getsize(f) for f in glob.glob(where + "/*.pcap"))
        check(packets > 1000, "%s: it ran, but not over Verbena" % known.client)
    note = os.path.join(BUILD, "programs")
    os.makedirs(note, exist_ok=True)
    with open(os.path.join(note, "%s.%s.json" % (known.name, place.name)), "w") as f:
        json.dump({"name": known.name, "place": place.name, "version": version(known.package)}, f)


def case(known):
    return lambda place: run(known, place)


if __name__ == "__main__":
    main({known.name: case(known) for known in KNOWN})
