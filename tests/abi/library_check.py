#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""library_check.py LIBRARY HEADER MAP SONAME: the library exports what its header declares and nothing else, each in the node
that MAP says, so that a program keeps working with a library that has more; and it needs none of our other libraries.
"""

import re
import sys

import elf


def nodes_of(path):
    """{symbol: node}"""
    with open(path) as f:
        text = re.sub(r"#.*", "", f.read())
    return {s: node for node, body in re.findall(r"(\w+)\s*\{(.*?)\}", text, re.S)
            for s in re.findall(r"(\w+);", body.split("local:")[0])}


def main(library, header, mapping, soname):
    lib = elf.Elf(library)
    with open(header) as f:
        declared = set(re.findall(r"^VERBENA_\w+_API [^;]*?\b(verbena_\w+)\(", f.read(), re.M))
    wanted = nodes_of(mapping)
    have = {s.name: s for s in lib.symbols(defined=True)}
    found = [f"{s} is declared, but not in the map" for s in sorted(declared - wanted.keys())]
    found += [f"{s} is in the map, but not declared" for s in sorted(wanted.keys() - declared)]
    found += [f"{s} is not exported" for s in sorted(wanted.keys() - have.keys())]
    found += [f"{s} is exported" for s in sorted(have.keys() - wanted.keys())]
    found += [f"{s} is {have[s].kind} @{have[s].version}, not a function @@{node}" for s, node in sorted(wanted.items())
              if s in have and (have[s].version, have[s].default, have[s].kind) != (node, True, "function")]
    found += [f"{s.name} is another library's" for s in lib.symbols(defined=False)
              if s.name.startswith(("ibv_", "verbena_", "rdma_"))]
    if lib.soname() != soname:
        found.append(f"SONAME is {lib.soname()}, not {soname}")
    for f in found:
        print("FAULT", f)
    print(f"{library}: {len(have)} symbols, {len(found)} faults")
    return 1 if found or not declared else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
