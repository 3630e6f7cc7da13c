#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""clients_check.py LIBRARY: every installed program that we know of finds in LIBRARY all that it
imports from the library of that SONAME. Programs that are not installed are passed over; with none
installed the check is skipped (exit status 77).
"""

import glob
import os
import subprocess
import sys

import elf

CLIENTS = [
    # ibverbs-utils, rdmacm-utils, librdmacm, providers
    "/usr/bin/ibv_*", "/usr/bin/rping", "/usr/bin/ucmatose", "/usr/bin/udaddy", "/usr/bin/mckey",
    "/usr/bin/cmtime", "/usr/bin/rdma_*", "/usr/bin/rstream", "/usr/bin/riostream",
    "/usr/bin/rcopy", "/usr/bin/udpong", "/usr/bin/ib_acme",
    "/usr/lib/*/librdmacm.so.1", "/usr/lib/*/libmlx?.so.1", "/usr/lib/*/libefa.so.1",
    "/usr/lib/*/libmana.so.1", "/usr/lib/*/libibverbs/*.so", "/usr/lib/*/rsocket/librspreload.so",
    # perftest, qperf, fio
    "/usr/bin/ib_*", "/usr/bin/raw_ethernet_*", "/usr/bin/qperf", "/usr/bin/fio",
    "/usr/lib/*/fio/*rdma*.so",
    # UCX, libfabric, Open MPI, MPICH
    "/usr/lib/*/libuct.so.0", "/usr/lib/*/ucx/*.so.0", "/usr/lib/*/libfabric.so.1",
    "/usr/lib/*/openmpi/lib/openmpi3/*.so", "/usr/lib/*/openmpi/lib/libmca_common_verbs.so.*",
    # others
    "/usr/lib/python3/dist-packages/pyverbs/*.so", "/usr/lib/python3/dist-packages/pyverbs/*/*.so",
    "/usr/lib/*/librpma.so.*", "/usr/lib/*/libiscsi.so.*", "/usr/sbin/tgtd",
    "/usr/lib/*/libgloo.so.*", "/usr/lib/*/libdapl*.so.2", "/usr/lib/*/libpcap.so.0.8",
]


def objects():
    seen = set()
    for pattern in CLIENTS:
        for path in sorted(glob.glob(pattern)):
            real = os.path.realpath(path)
            if real in seen:
                continue
            seen.add(real)
            try:
                yield path, elf.Elf(real)
            except ValueError:
                continue  # a script


def unresolved(path, library):
    """Names that the loader misses with all relocations done, without the faults of other libraries."""
    env = dict(os.environ, LD_LIBRARY_PATH=os.path.dirname(os.path.abspath(library)))
    out = subprocess.run(["ldd", "-r", path], env=env, stdout=subprocess.PIPE,
                         stderr=subprocess.STDOUT, text=True, check=False).stdout
    return [line.strip() for line in out.splitlines()
            if ("undefined symbol" in line or "not found" in line) and
            ("ibv" in line.lower() or "verbs" in line)]


def main(library):
    lib = elf.Elf(library)
    soname = lib.soname()
    have = {(s.name, s.version) for s in lib.symbols(defined=True)}
    clients = imports = faults = 0
    for path, client in objects():
        wants = [s for s in client.symbols(defined=False) if s.library == soname]
        if not wants:
            continue
        clients += 1
        imports += len(wants)
        missing = [f"{s.name}@{s.version}" for s in wants
                   if (s.name, s.version) not in have and not s.weak]
        missing += [f"node {n}" for n in client.needed_nodes(soname) if n not in lib.nodes]
        missing += unresolved(path, library)
        faults += len(missing)
        print(f"{'FAULT' if missing else 'ok':5} {path}: {len(wants)} imports")
        for m in missing:
            print(f"      missing {m}")
    print(f"{clients} clients, {imports} imports, {faults} faults")
    if not clients:
        return 77
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
