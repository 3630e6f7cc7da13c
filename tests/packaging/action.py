#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""
Runs the steps of action.yml as a runner does. This build stands for what apt-get would install and cmake would build;
package.py has the real ones do it on a bare system.

  action.py deb      from a package: what apt-get was given, the outputs, a command with faults
  action.py source   from a checkout: what cmake was given, PATH for the next step
  action.py matrix   the job with a matrix of faults in docs/ci
  action.py wrong    inputs that cannot be: an annotation that names the input, and nothing was run
"""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import yaml

from runner import Action, Failed, each_of, expand

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ["BUILD_DIR"])
VERSION = (ROOT / "VERSION").read_text().strip()

# A runner's user has sudo without a password.
SUDO = 'while [ "${1#-}" != "$1" ]; do shift; done\nexec "$@"\n'
APT_GET = 'echo "$@" >>"$LOG"\n[ "$1" != install ] || ln -sf "%s/verbena" "$(dirname "$0")/verbena"\n' % BUILD
# Configuring and building have been done.
CMAKE = 'echo "$@" >>"$LOG"\n[ "$1" != --install ] || exec /usr/bin/cmake --install "%s" --prefix "$RUNNER_TEMP/verbena"\n' % BUILD


class Runner:
    """A runner with a workspace, an own folder of programs before PATH, and action.yml's checkout."""

    def __init__(self, work):
        self.work, self.workspace, self.temp, self.bin, self.log = (work, work / "a workspace", work / "temp", work / "bin",
                                                                    work / "log")
        for d in (self.workspace, self.temp, self.bin):
            d.mkdir()
        for name, text in (("sudo", SUDO), ("apt-get", APT_GET), ("cmake", CMAKE)):
            (self.bin / name).write_text("#!/bin/sh\n" + text)
            (self.bin / name).chmod(0o755)
        (self.workspace / "the verbena.deb").write_text("a package")

    def files(self, name):
        place = self.work / name
        place.write_text("")
        return str(place), place.read_text

    def execute(self, shell, lines, env):
        script = self.work / "step.sh"
        script.write_text(lines)
        r = subprocess.run([*shell, script], cwd=self.workspace, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                           stderr=subprocess.STDOUT, text=True, timeout=120)
        return r.returncode, r.stdout

    def run(self, **inputs):
        env = {"LOG": str(self.log), "VERBENA_QUIET": "1", "LC_ALL": "C.UTF-8"}
        return Action(ROOT / "action.yml", str(ROOT)).run({k.replace("_", "-"): v for k, v in inputs.items()}, self.execute,
                                                         self.files, "%s:/usr/bin:/bin" % self.bin, str(self.temp), env)

    def refused(self, wanted, status=1, **inputs):
        """The action fails with that status, and `wanted` is what the runner shows."""
        try:
            _, said = self.run(**inputs)
        except Failed as f:
            check(f.status == status and wanted in f.output, "not '%s', but %s" % (wanted, f))
        else:
            sys.exit("accepted: %s\n%s" % (inputs, said))


def check(condition, text):
    if not condition:
        sys.exit(text)


def deb(r):
    outputs, said = r.run(deb="the verbena.deb")
    check("install -y --no-install-recommends %s/the verbena.deb" % r.workspace in r.log.read_text(), r.log.read_text())
    check(outputs == {"verbena": str(r.bin / "verbena"), "version": VERSION}, outputs)
    check("verbena %s: " % VERSION in said, said)
    # The device is there for each program of the command, and the command's status is the step's.
    _, said = r.run(deb="the verbena.deb", command="ibv_devices | grep verbena0\nibv_devinfo -l")
    check(said.count("verbena0") == 2, said)
    r.refused("", 3, deb="the verbena.deb", command="exit 3")
    r.refused("", 1, deb="the verbena.deb", command="false | true\necho not reached")
    # A script of faults, as text and as a file beside the command's working directory.
    pingpong = "ibv_rc_pingpong -g 0"
    rule = "call ibv_create_qp 1 fail ENOMEM"
    (r.workspace / "sub dir").mkdir()
    (r.workspace / "sub dir/rules").write_text("# the first\n%s\n" % rule)
    r.refused("Couldn't create QP", 1, deb="the verbena.deb", command=pingpong, faults="# one\n%s\n" % rule)
    r.refused("Couldn't create QP", 1, deb="the verbena.deb", command=pingpong, faults_file="rules", working_directory="sub dir")


def source(r):
    outputs, said = r.run(command="verbena --version; ibv_devices")
    check(outputs == {"verbena": str(r.temp / "verbena/bin/verbena"), "version": VERSION}, outputs)
    check("verbena0" in said and said.count("verbena %s" % VERSION) == 2, said)
    asked = r.log.read_text()
    check("-S %s " % ROOT in asked and "--target product" in asked, asked)
    (r.bin / "cmake").write_text("#!/bin/sh\necho this compiler is too old; exit 1\n")
    r.refused("this compiler is too old\n::error title=Verbena::Verbena cannot be built from")


def matrix(r):
    (r.workspace / "ci").mkdir()
    shutil.copy(r.workspace / "the verbena.deb", r.workspace / "ci/verbena.deb")
    shutil.copy(ROOT / "docs/ci/both-ends.sh", r.workspace / "ci")
    job = yaml.safe_load((ROOT / "docs/ci/github-actions.yml").read_text())["jobs"]["faults"]
    step = next(s for s in job["steps"] if s.get("uses") == "./ci/verbena")
    for known in each_of(job):
        inputs = {k: expand(v, known) for k, v in step["with"].items()}
        print("::group::" + known["matrix.fault"])
        print(r.run(**inputs)[1])
        # What ends as it should without a fault shows that the fault was there.
        if inputs["command"].startswith("!"):
            r.refused("", **{**inputs, "faults": "at 1h link down", "command": "! ./ci/both-ends.sh"})


def wrong(r):
    error = "::error title=Verbena::"
    given = {"deb": "the verbena.deb"}
    r.refused(error + "deb: there is no file 'no.deb' in %s" % r.workspace, deb="no.deb")
    r.refused(error + "deb: there is no file 'x\"; touch pwned; echo \"' in", deb='x"; touch pwned; echo "', command="touch pwned")
    r.refused(error + "deb: there is no file '$(touch pwned)%25' in", deb="$(touch pwned)%")
    r.refused(error + "faults and faults-file: give one", faults="at 1s link down", faults_file="x", command="touch pwned", **given)
    r.refused(error + "faults: they need a command", faults="at 1s link down", **given)
    r.refused(error + "faults-file: there is no file 'none' in", faults_file="none", command="touch pwned", **given)
    r.refused(error + "working-directory: there is no folder 'none' in", working_directory="none", command="touch pwned", **given)
    r.refused("faults:2: 'lnk': no such word; allowed are at,", faults="# one\nat 2s lnk down", command="touch pwned", **given)
    check(not list(r.workspace.rglob("pwned")), "a command was run")
    (r.bin / "apt-get").write_text("#!/bin/sh\necho Unable to locate package; exit 100\n")
    r.refused(error + "apt-get update failed", **given)


def main():
    cases = {"deb": deb, "source": source, "matrix": matrix, "wrong": wrong}
    if len(sys.argv) != 2 or sys.argv[1] not in cases:
        sys.exit(__doc__)
    with tempfile.TemporaryDirectory(prefix="verbena-action-") as work:
        cases[sys.argv[1]](Runner(pathlib.Path(work).resolve()))


main()
