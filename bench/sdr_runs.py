# SPDX-License-Identifier: BSD-2-Clause
"""Commands whose answers are kept, so that a page of many of them can be made in slices.

An answer is kept under a hash of all that it depends on: the program's bytes, its arguments, and the files that those name. So
what was run once is not run again, unless one of these has changed.
"""
import concurrent.futures
import functools
import hashlib
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import threading
import time

FLOWS, COLLECTIVES, TOTALS = "flows.csv", "collectives.csv", "totals.csv"


class NotRun(Exception):
    """There was no time for this one."""


@functools.cache
def digest(path):
    return hashlib.sha256(pathlib.Path(path).read_bytes()).hexdigest()


class Runs:
    """keep: the folder of answers. seconds: no command begins later than that; None: there is time for all."""

    def __init__(self, keep, seconds=None, jobs=os.cpu_count() or 1, says=sys.stderr):
        self.keep, self.jobs, self.says = pathlib.Path(keep), jobs, says
        self.began = time.monotonic()
        self.seconds = seconds
        self.lock = threading.Lock()
        self.left_out = 0
        self.keep.mkdir(parents=True, exist_ok=True)

    def file(self, argv, files, report):
        inputs = [digest(argv[0]), argv[1:], sorted(digest(f) for f in files), report]
        # A path is no input: the same file elsewhere gives the same answer.
        inputs[1] = [digest(w) if w in map(str, files) else w for w in argv[1:]]
        return self.keep / (hashlib.sha256(json.dumps(inputs).encode()).hexdigest()[:32] + ".json")

    def answer(self, argv, files=(), report=()):
        """What it printed, under "out", and the named files of its report, by name. NotRun: there is no time for it."""
        kept = self.file(argv, files, report)
        if kept.exists():
            return json.loads(kept.read_text())
        if self.seconds is not None and time.monotonic() - self.began > self.seconds:
            raise NotRun
        with tempfile.TemporaryDirectory() as d:
            began = time.monotonic()
            done = subprocess.run([*argv, *(["--report", d + "/r"] if report else [])], capture_output=True, text=True)
            if done.returncode:
                sys.exit("%s: %s" % (" ".join(argv), (done.stderr or done.stdout).strip()))
            got = {"command": argv, "out": done.stdout, "seconds": time.monotonic() - began, "load": os.getloadavg()[0]}
            for name in report:
                got[name] = pathlib.Path(d, "r", name).read_text()
        # Whoever is ended while writing leaves no half of an answer behind.
        part = kept.with_suffix(".%d-%d" % (os.getpid(), threading.get_ident()))
        part.write_text(json.dumps(got))
        part.replace(kept)
        return got

    def all(self, jobs):
        """Runs jobs, each a function and its arguments, beside each other, and says how far it is."""
        jobs = list(dict.fromkeys(jobs))
        done = 0

        def one(job):
            nonlocal done
            began = time.monotonic()
            try:
                job[0](*job[1:])
            except NotRun:
                with self.lock:
                    self.left_out += 1
                return
            with self.lock:
                done += 1
                print("%d of %d, %d s: %s %s, %.1f s" % (done, len(jobs), time.monotonic() - self.began, job[0].__name__,
                      " ".join(map(str, job[1:])), time.monotonic() - began), file=self.says, flush=True)

        with concurrent.futures.ThreadPoolExecutor(self.jobs) as pool:
            list(pool.map(one, jobs))
