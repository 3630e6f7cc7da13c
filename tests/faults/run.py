#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""
Plants each fault of faults.py in a copy of the tree, and expects the test that is named with it to fail.

    run.py BUILD_DIR [WORD ...]            every fault, or those with a WORD in their name
    run.py BUILD_DIR --find NAME [REGEX]   which of all unit, corpus and simulation tests notice that one
    run.py --fit                           only whether each can still be planted

The copy, and a build of it, are in BUILD_DIR/faults and are kept, so that a second run compiles little. First all
tests named must pass without a fault. Exit status: 0, or 1 when a fault was not noticed, cannot be planted any
more, or a test fails without it.
"""
import argparse
import functools
import os
import re
import shutil
import subprocess
import sys

from faults import FAULTS

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
TIME_S = 120  # a test that a fault makes hang has noticed it
# Tests whose program has another name.
PROGRAMS = {"sim/swarm_veroce": "swarm", "sim/swarm": "swarm", "sim/fault_swarm_rocev2": "fault_swarm",
            "verbs/verbs_odp_test_rocev2": "verbs_odp_test"}


class Stale(Exception):
    """The fault does not fit the tree."""


def body(text, function):
    """(start, end) of each definition of a function of that name, its braces included."""
    head = re.compile(r"^(?![ \t#/*}])[^;{}=]*?\b%s\([^;{}]*\)\n\{\n" % re.escape(function), re.M)
    for m in head.finditer(text):
        yield m.end() - 2, text.index("\n}\n", m.end() - 2) + 3


def loose(code):
    """A pattern for the code with any white space between its words."""
    return re.compile(r"\s+".join(re.escape(word) for word in code.split()))


@functools.cache
def sources(root):
    """{path: text} of what faults are planted in."""
    texts = {}
    for top in ("src", "tools"):
        for folder, _, names in os.walk(os.path.join(root, top)):
            for name in names:
                if name.endswith((".c", ".h")):
                    path = os.path.join(folder, name)
                    with open(path, encoding="utf-8") as f:
                        texts[path] = f.read()
    return texts


def place(root, fault):
    """(path, start, end) of the code that a fault replaces: the one place in functions of that name."""
    found, functions = [], 0
    for path, text in sources(root).items():
        if fault.function not in text:
            continue
        for start, end in body(text, fault.function):
            functions += 1
            found += [(path, start + m.start(), start + m.end()) for m in loose(fault.old).finditer(text[start:end])]
    if not functions:
        raise Stale("there is no function %s()" % fault.function)
    if len(found) != 1:
        raise Stale("\"%s\" occurs %d times in %s()" % (fault.old, len(found), fault.function))
    return found[0]


def copy_tree(to):
    """What git knows of and what it does not ignore; only what differs is written."""
    names = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=ROOT,
                           capture_output=True, text=True, check=True).stdout.split("\0")
    wanted = {name for name in names if name and os.path.isfile(os.path.join(ROOT, name))}
    for folder, _, files in os.walk(to):
        for name in files:
            path = os.path.join(folder, name)
            if os.path.relpath(path, to) not in wanted:
                os.unlink(path)
    for name in wanted:
        source, target = os.path.join(ROOT, name), os.path.join(to, name)
        with open(source, "rb") as f:
            data = f.read()
        if os.path.exists(target):
            with open(target, "rb") as f:
                if f.read() == data:
                    continue
        os.makedirs(os.path.dirname(target), exist_ok=True)
        with open(target, "wb") as f:
            f.write(data)
        shutil.copymode(source, target)


class Bench:
    def __init__(self, folder):
        self.tree, self.build = os.path.join(folder, "tree"), os.path.join(folder, "build")
        copy_tree(self.tree)
        self._run(["cmake", "-S", self.tree, "-B", self.build, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release"])

    def _run(self, words):
        r = subprocess.run(words, capture_output=True, text=True)
        if r.returncode:
            sys.exit("%s\n%s%s" % (" ".join(words), r.stdout[-4000:], r.stderr[-4000:]))

    def make(self, tests):
        """Builds the programs of those tests, or with None all."""
        programs = {PROGRAMS.get(t, t.rsplit("/", 1)[1]) for t in tests} if tests else {"all"}
        self._run(["cmake", "--build", self.build, "--target"] + sorted(programs))

    def failing(self, select):
        """The tests that do not pass, of those that the words for ctest select."""
        r = subprocess.run(["ctest", "--test-dir", self.build, "-j", "2", "--timeout", str(TIME_S)] + select,
                           capture_output=True, text=True)
        lines = re.findall(r"^ *\d+/\d+ Test +#\d+: (\S+) \.*(.*)$", r.stdout, re.M)
        if not lines:
            sys.exit("no such test: %s\n%s" % (" ".join(select), r.stdout))
        return [name for name, rest in lines if " Passed " not in rest], {name for name, _ in lines}

    def planted(self, fault, tests, select):
        """What fails with the fault in the tree, which is as before afterwards."""
        path, start, end = place(self.tree, fault)
        with open(path, encoding="utf-8") as f:
            text = f.read()
        try:
            with open(path, "w", encoding="utf-8") as f:
                f.write(text[:start] + fault.new + text[end:])
            self.make(tests)
            return self.failing(select)[0]
        finally:
            with open(path, "w", encoding="utf-8") as f:
                f.write(text)


def exactly(tests):
    return ["-R", "^(%s)$" % "|".join(sorted(tests))]


def fit():
    """Whether each fault has its place in the tree as it is."""
    wrong = 0
    for fault in FAULTS:
        try:
            place(ROOT, fault)
        except Stale as e:
            wrong += 1
            print("%s cannot be planted any more: %s" % (fault.name, e))
    return 1 if wrong else 0


def find(bench, name, regex):
    fault = next(f for f in FAULTS if f.name == name)
    select = ["-L", "^(unit|corpus|sim)$", "-LE", "^all$"] + (["-R", regex] if regex else [])
    failing = bench.planted(fault, None, select)
    print("%s: %s" % (name, " ".join(failing) or "nothing notices it"))
    return 0 if failing else 1


def judge(bench, chosen):
    tests = {f.test for f in chosen}
    bench.make(tests)
    bad, ran = bench.failing(exactly(tests))
    for name in sorted(bad + list(tests - ran)):
        print("%s does not pass without a fault" % name)
    wrong = len(bad) + len(tests - ran)
    for fault in chosen:
        try:
            noticed = bench.planted(fault, {fault.test}, exactly({fault.test}))
            word = "noticed by" if noticed else "NOT NOTICED by"
        except Stale as e:
            noticed, word = False, "CANNOT BE PLANTED (%s);" % e
        wrong += not noticed
        print("%-28s %s %s" % (fault.name, word, fault.test), flush=True)
    print("%d faults, %d wrong" % (len(chosen), wrong))
    return 1 if wrong else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build_dir", nargs="?")
    parser.add_argument("words", nargs="*")
    parser.add_argument("--find", metavar="NAME")
    parser.add_argument("--fit", action="store_true")
    args = parser.parse_args()
    if args.fit:
        return fit()
    if not args.build_dir:
        parser.error("no BUILD_DIR")
    bench = Bench(os.path.join(os.path.abspath(args.build_dir), "faults"))
    if args.find:
        return find(bench, args.find, args.words[0] if args.words else None)
    chosen = [f for f in FAULTS if not args.words or any(word in f.name for word in args.words)]
    return judge(bench, chosen)


if __name__ == "__main__":
    sys.exit(main())
