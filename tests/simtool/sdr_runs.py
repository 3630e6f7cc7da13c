#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""The answers that bench/reproduce_sdr.py keeps: what was run once is not run again, unless what it depends on has changed."""
import io
import os
import pathlib
import sys
import tempfile

sys.path.insert(0, os.path.join(os.environ["SOURCE_DIR"], "bench"))
import sdr_runs

TOOL = """#!/bin/sh
echo run >> %s/ran
echo "answer to $1"
"""


def main():
    with tempfile.TemporaryDirectory() as d:
        tool, scenario = pathlib.Path(d, "tool"), pathlib.Path(d, "scenario")
        said = io.StringIO()

        def ran():
            return len(pathlib.Path(d, "ran").read_text().split())

        def runs(seconds=None):
            sdr_runs.digest.cache_clear()
            return sdr_runs.Runs(d + "/keep", seconds, 2, said)

        tool.write_text(TOOL % d)
        tool.chmod(0o755)
        scenario.write_text("one")
        ask = [str(tool), str(scenario)]
        assert runs().answer(ask, [str(scenario)])["out"] == "answer to %s\n" % scenario and ran() == 1
        assert runs(-1).answer(ask, [str(scenario)])["out"] and ran() == 1
        scenario.write_text("two")
        runs().answer(ask, [str(scenario)])
        assert ran() == 2
        tool.write_text(TOOL % d + "# another\n")
        runs().answer(ask, [str(scenario)])
        assert ran() == 3
        runs().answer([str(tool), "x"])
        assert ran() == 4

        # A slice without time leaves out what was not run before, and the next one runs that alone.
        r = runs(-1)

        def job(word):
            r.answer([str(tool), word])

        r.all([(job, "x"), (job, "y"), (job, "z"), (job, "x")])
        assert r.left_out == 2 and ran() == 4 and said.getvalue().count("\n") == 1, said.getvalue()
        r = runs()
        r.all([(job, "x"), (job, "y"), (job, "z")])
        assert r.left_out == 0 and ran() == 6


main()
