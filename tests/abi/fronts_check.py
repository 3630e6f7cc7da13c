#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""fronts_check.py IBVERBS LIBRARY ...: our other libraries ask of libibverbs the public verbs alone, so they run on any
device and no ABI is needed between them: no private node, no symbol without a version, no name that is not ibv_*.
"""

import sys

import elf


def faults(ibverbs, path):
    library = elf.Elf(path)
    soname = ibverbs.soname()
    have = {(s.name, s.version) for s in ibverbs.symbols(defined=True)}
    wants = [s for s in library.symbols(defined=False) if s.library == soname]
    found = [f"{s.name}@{s.version} is not public" for s in wants
             if not s.name.startswith("ibv_") or "PRIVATE" in s.version or (s.name, s.version) not in have]
    # A name of ours that nobody gave a version would be bound to whatever has it.
    found += [f"{s.name} has no version" for s in library.symbols(defined=False)
              if s.version is None and s.name.startswith(("ibv_", "verbena_", "nic_", "engine_"))]
    print(f"{path}: {len(wants)} verbs, {len(found)} faults")
    return found


def main(ibverbs, *libraries):
    found = [f for path in libraries for f in faults(elf.Elf(ibverbs), path)]
    for f in found:
        print("FAULT", f)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
