# SPDX-License-Identifier: BSD-2-Clause
"""
Runs a composite action, and a job's matrix, as a runner does: inputs with their defaults, expressions put in, each step's lines in a file
for its shell, and PATH and outputs taken from the files that a step writes. What a runner would refuse ends the test.
"""
import re
import sys

import yaml

EXPRESSION = re.compile(r"\$\{\{\s*(.*?)\s*\}\}")
SHELLS = {"bash": ["bash", "--noprofile", "--norc", "-eo", "pipefail"], "sh": ["sh", "-e"]}


class Failed(Exception):
    """A step has failed: its name, status and output."""

    def __init__(self, step, status, output):
        super().__init__("step '%s': status %d\n%s" % (step, status, output))
        self.status, self.output = status, output


def expand(text, known):
    """The text with the values of its expressions; only names are known, which is all that our files need."""
    def value(m):
        if m.group(1) not in known:
            sys.exit("an expression without a value: %s" % m.group(0))
        return known[m.group(1)]
    return EXPRESSION.sub(value, str(text))


def each_of(job):
    """The values of `matrix` for each run of a job; one run without where it has no matrix."""
    for row in job.get("strategy", {}).get("matrix", {}).get("include", [{}]):
        yield {"matrix." + k: str(v) for k, v in row.items()}


class Action:
    """A composite action in the file `path`, which steps see as lying in the folder `where`."""

    def __init__(self, path, where):
        self.where = where
        with open(path) as f:
            self.yaml = yaml.safe_load(f)
        for key in ("name", "description", "runs"):
            if key not in self.yaml:
                sys.exit("action.yml: no '%s'" % key)
        if self.yaml["runs"]["using"] != "composite":
            sys.exit("action.yml: not a composite action")
        for step in self.yaml["runs"]["steps"]:
            if set(step) - {"id", "name", "shell", "env", "run"} or step.get("shell") not in SHELLS:
                sys.exit("action.yml: step '%s' has no shell, or a key that is not tested" % step.get("name"))
            # What a caller gives must be a value, and never a part of what a shell reads.
            if EXPRESSION.search(step["run"]):
                sys.exit("action.yml: step '%s' has an expression in its shell's lines" % step.get("name"))
        for kind in ("inputs", "outputs"):
            for name, entry in self.yaml[kind].items():
                if "description" not in entry:
                    sys.exit("action.yml: '%s' has no description" % name)

    def run(self, inputs, execute, files, path, temp, env=None):
        """
        Runs all steps; returns outputs, and what the steps printed. `execute(shell, lines, env)` runs a shell with the lines
        as a file and returns status and output. `files(name)` makes a file that a step may write and returns its path there,
        and a function that reads it. PATH is `path` at first, and `temp` the runner's folder for what need not be kept.
        """
        unknown = set(inputs) - set(self.yaml["inputs"])
        if unknown:
            sys.exit("the action has no inputs %s" % ", ".join(unknown))
        known = {"inputs." + n: str(inputs.get(n, i.get("default", ""))) for n, i in self.yaml["inputs"].items()}
        known["github.action_path"] = self.where
        said = ""
        for n, step in enumerate(self.yaml["runs"]["steps"]):
            places = {k: files("%s-%d" % (k, n)) for k in ("GITHUB_PATH", "GITHUB_OUTPUT")}
            values = {"PATH": path, "RUNNER_TEMP": temp, **(env or {}), **{k: v[0] for k, v in places.items()},
                      **{k: expand(v, known) for k, v in step.get("env", {}).items()}}
            status, output = execute(SHELLS[step["shell"]], step["run"], values)
            said += output
            if status:
                raise Failed(step["name"], status, said)
            path = ":".join(places["GITHUB_PATH"][1]().split()[::-1] + [path])
            for line in places["GITHUB_OUTPUT"][1]().splitlines():
                name, _, v = line.partition("=")
                known["steps.%s.outputs.%s" % (step["id"], name)] = v
        return {n: expand(o["value"], known) for n, o in self.yaml["outputs"].items()}, said
