#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""
docs/programs.md, from the table in known.py and from seen.json, which says what has passed: with which version of the
package, in which places.

usage: matrix.py --update BUILD   takes over what BUILD/programs says, and writes the page
       matrix.py --check          fails if the page or the list of cases in CMakeLists.txt is not the table's
"""
import glob
import json
import os
import re
import sys

sys.dont_write_bytecode = True
from known import KNOWN, LACKING  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))
PAGE = os.path.join(os.path.dirname(os.path.dirname(HERE)), "docs", "programs.md")
SEEN = os.path.join(HERE, "seen.json")
PLACES = {"lo4": "one host, loopback", "veth1500-4": "two hosts (namespaces), IPv4",
          "veth1500-6": "two hosts (namespaces), IPv6"}

HEAD = """# Programs

Programs of Debian 12 that were seen working over Verbena, unmodified, with the commands that were run. `tests/programs`
runs them (`ctest --test-dir build -R program/programs`, some of them in `make test`, all in `make test-all`), and this
page is written by `tests/programs/matrix.py` from what passed. A is the server's address, B the client's. Put `verbena run`
before each command; a setting that stands before a command stands before `verbena run`.

Both ends of these are Verbena. `make interop` has Linux's rxe as the peer.
"""


def version_of(known, seen):
    return seen.get(known.name, {}).get("version", "")


def shown(command):
    command = re.sub(r"\{EXAMPLES\}", "tests/programs", command).replace("{A}", "A").replace("{B}", "B").replace("{D}/", "./")
    settings = re.match(r"((?:[A-Z_]+=\S+ )*)(.*)", command)
    words = settings.group(2).replace("verbs;ofi_rxm", "'verbs;ofi_rxm'")
    return settings.group(1) + "verbena run " + words


def rows_of(known, seen):
    lines = []
    if known.make:
        lines.append("    " + re.sub(r"\{EXAMPLES\}", "tests/programs", known.make).replace("{D}/", "./").replace("{D}", "."))
    lines += ["    " + shown(c) for c in (known.server, known.client) if c]
    where = "; ".join(PLACES[p] for p in seen[known.name]["places"])
    lines.append("")
    lines.append("Seen: %s.%s" % (where, " " + known.note[0].upper() + known.note[1:] + "." if known.note else ""))
    return lines


def page(seen):
    out = [HEAD]
    package = None
    for known in KNOWN:
        if known.name not in seen:
            continue
        if known.package != package:
            package = known.package
            out.append("## %s %s\n" % (package, version_of(known, seen)))
        out += rows_of(known, seen) + [""]
    out.append("## What does not work\n")
    out += ["- **%s**: %s" % row for row in LACKING]
    missing = [k for k in KNOWN if k.name not in seen]
    if missing:
        out.append("\n## Not seen yet\n")
        out.append("The table has these, and they have not passed:\n")
        out += ["    " + shown(k.client) for k in missing]
    return "\n".join(out) + "\n"


def load():
    with open(SEEN) as f:
        return json.load(f)


def update(build):
    seen = load() if os.path.exists(SEEN) else {}
    names = {k.name for k in KNOWN}
    for path in sorted(glob.glob(os.path.join(build, "programs", "*.json"))):
        with open(path) as f:
            one = json.load(f)
        if one["name"] not in names:
            continue
        entry = seen.setdefault(one["name"], {"places": []})
        entry["version"] = one["version"]
        entry["places"] = sorted(set(entry["places"]) | {one["place"]})
    seen = {name: seen[name] for name in sorted(seen) if name in names}
    with open(SEEN, "w") as f:
        rows = (f"{json.dumps(name)}: {json.dumps(seen[name], sort_keys=True)}" for name in seen)
        f.write("{\n" + ",\n".join(rows) + "\n}\n")
    with open(PAGE, "w") as f:
        f.write(page(seen))


def registered():
    """(case, place, whether it is for test-all) of program_test(programs ...) in CMakeLists.txt."""
    with open(os.path.join(HERE, "CMakeLists.txt")) as f:
        text = f.read()
    found = set()
    for places, cases in re.findall(r"program_test\(programs\s+PLACES ([^)]*?)\s+CASES ([^)]*)\)", text):
        words = cases.split()
        found |= {(case, place, "ALL" in words) for case in words if case != "ALL" for place in places.split()}
    return found


def check():
    wrong = []
    want = {(k.name, place, k.all) for k in KNOWN for place in k.places}
    for name, place, _ in sorted(want ^ registered()):
        wrong.append("CMakeLists.txt and known.py differ: %s in %s" % (name, place))
    with open(PAGE) as f:
        if f.read() != page(load()):
            wrong.append("docs/programs.md is not what matrix.py writes: run tests/programs/matrix.py --update build")
    print("\n".join(wrong) or "docs/programs.md: current")
    return 1 if wrong else 0


if __name__ == "__main__":
    if sys.argv[1:2] == ["--update"] and len(sys.argv) == 3:
        update(sys.argv[2])
    elif sys.argv[1:] == ["--check"]:
        sys.exit(check())
    else:
        sys.exit(__doc__)
