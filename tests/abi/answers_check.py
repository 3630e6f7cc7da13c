#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""answers_check.py OURS SYSTEM: the functions that only translate answer what the system's library
answers, over their whole range and a little beyond it. Without that library: skipped (77).
"""

import ctypes
import os
import sys

STRINGS = {"ibv_wc_status_str": range(0, 26), "ibv_event_type_str": range(0, 22),
           "ibv_node_type_str": range(-1, 9), "ibv_port_state_str": range(-1, 8)}
NUMBERS = {"ibv_rate_to_mult": range(-1, 25), "ibv_rate_to_mbps": range(-1, 25),
           "mult_to_ibv_rate": range(-1, 500),
           "mbps_to_ibv_rate": [-1, 0, 1, *range(2500, 130000, 2500), 14062, 56250, 112500, 168750,
                                25781, 103125, 206250, 309375, 28125, 53125, 425000, 637500,
                                850000, 1275000]}


def main(ours_path, system_path):
    if not os.path.exists(system_path):
        print("no system library to compare with")
        return 77
    ours, system = ctypes.CDLL(ours_path), ctypes.CDLL(system_path)
    asked = faults = 0
    for table, restype in ((STRINGS, ctypes.c_char_p), (NUMBERS, ctypes.c_int)):
        for name, arguments in table.items():
            a, b = getattr(ours, name), getattr(system, name)
            a.restype = b.restype = restype
            for argument in arguments:
                asked += 1
                if a(argument) != b(argument):
                    faults += 1
                    print(f"{name}({argument}): {a(argument)!r}, the system says {b(argument)!r}")
    print(f"{asked} questions, {faults} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
