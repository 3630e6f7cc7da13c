#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""exports_check.py LIBRARY LIST: the library exports what LIST says and nothing else.

A line of LIST is `node NAME` or `KIND NAME VERSION [default]`.
"""

import sys

import elf

DF_1_NOW, DF_1_NODELETE = 1, 8


def wanted(path):
    nodes, symbols = [], set()
    with open(path) as f:
        for line in f:
            words = line.split("#")[0].split()
            if words and words[0] == "node":
                nodes.append(words[1])
            elif words:
                symbols.add((words[1], words[2], words[0], "default" in words[3:]))
    return nodes, symbols


def main(library, listing):
    lib = elf.Elf(library)
    nodes, symbols = wanted(listing)
    have = {(s.name, s.version, s.kind, s.default) for s in lib.symbols(defined=True)}
    faults = [f"missing: {s}" for s in sorted(symbols - have, key=str)]
    faults += [f"not in the list: {s}" for s in sorted(have - symbols, key=str)]
    faults += [f"missing node: {n}" for n in nodes if n not in lib.nodes]
    faults += [f"node not in the list: {n}" for n in lib.nodes if n not in nodes]
    flags = lib.dynamic(elf.DT_FLAGS_1) or [0]
    if not flags[0] & DF_1_NODELETE:
        faults.append("not linked with -z nodelete: engine threads would lose their code")
    if not flags[0] & DF_1_NOW:
        faults.append("not linked with -z now")
    if lib.soname() != f"lib{nodes[0].split('_')[0].lower()}.so.1":
        faults.append(f"SONAME is {lib.soname()}")
    for fault in faults:
        print(fault)
    print(f"{len(have)} symbols, {len(lib.nodes)} nodes, {len(faults)} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
