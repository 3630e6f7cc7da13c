#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""
What a tenant loses to another one on the same host, by the kinds of attack of Husky (NSDI 2023): a victim's bandwidth alone,
and while an attacker on another virtual device registers and deregisters memory, sends small messages or atomics, or has
thousands of queue pairs. The victim's two processes have some processors, the attacker's two the others, so that what is
measured is not the processors. Rates are the victim's, alternately alone and attacked, medians of the rounds.

Usage: husky.py [--build DIR] [--seconds N] [--rounds N] [--victim-cpus LIST] [--attacker-cpus LIST] [--limits "KEY=VALUE ..."]
"""
import argparse
import os
import re
import signal
import statistics
import subprocess
import sys
import time

VICTIM, ATTACKER = "127.0.0.2", "127.0.0.3"
PORT = 18800

STORM = """
import ctypes, mmap, os
verbs, pointer = ctypes.CDLL("libibverbs.so.1"), ctypes.c_void_p
verbs.ibv_get_device_list.restype = ctypes.POINTER(pointer)
verbs.ibv_open_device.restype = verbs.ibv_alloc_pd.restype = verbs.ibv_reg_mr.restype = pointer
verbs.ibv_reg_mr.argtypes = [pointer, pointer, ctypes.c_size_t, ctypes.c_int]
verbs.ibv_dereg_mr.argtypes = [pointer]
pd = pointer(verbs.ibv_alloc_pd(pointer(verbs.ibv_open_device(pointer(verbs.ibv_get_device_list(None)[0])))))
memory = ctypes.create_string_buffer(4 << 20)
print("begun", flush=True)
while True:
    verbs.ibv_dereg_mr(verbs.ibv_reg_mr(pd, ctypes.addressof(memory), len(memory), 1))
"""

# What the attacker's client runs, and the program of its server; None: it needs no server.
ATTACKS = {
    "register": ([sys.executable, "-c", STORM], None),
    "small": (["ib_write_bw", "-s", "64", "-n", "100000000"], "ib_write_bw"),
    "messages": (["ib_send_bw", "-s", "256", "-n", "100000000"], "ib_send_bw"),
    "atomics": (["ib_atomic_bw", "-A", "CMP_AND_SWAP", "-n", "100000000"], "ib_atomic_bw"),
    "qps": (["ib_write_bw", "-s", "256", "-q", "1024", "-t", "8", "-n", "10000000"], "ib_write_bw"),
}


def start(args, cpus, device, address, command, limits=()):
    env = {k: v for k, v in os.environ.items() if not k.startswith("VERBENA_")}
    env.update(VERBENA_DEVICE=device, VERBENA_ADDRESS=address, **dict(l.split("=", 1) for l in limits))
    return subprocess.Popen(["taskset", "-c", cpus, os.path.join(args.build, "verbena"), "run"] + command, env=env,
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True)


def stop(processes):
    for p in processes:
        if p.poll() is None:
            os.killpg(p.pid, signal.SIGKILL)
        p.communicate()


def victim(args, port):
    """Gbit/s over the measured seconds."""
    command = ["ib_write_bw", "-F", "-x", "0", "-s", "65536", "-D", str(args.seconds), "-p", str(port)]
    server = start(args, args.victim_cpus, "victim", VICTIM, command)
    time.sleep(1)
    client = start(args, args.victim_cpus, "victim", VICTIM, command + [VICTIM])
    out = client.communicate(timeout=args.seconds + 120)[0]
    stop([server])
    m = re.search(r"^ *65536 +\d+ +\S+ +(\S+)", out, re.M)
    if not m:
        sys.exit("the victim failed:\n" + out)
    return float(m.group(1)) * 2**20 * 8 / 1e9


def attack(args, name, port):
    client, server = ATTACKS[name]
    limits = args.limits.split()
    if not server:
        return [start(args, args.attacker_cpus, "attacker", ATTACKER, client, limits)]
    common = ["-F", "-x", "0", "-p", str(port)]
    ends = [start(args, args.attacker_cpus, "attacker", ATTACKER, client + common, limits)]
    time.sleep(1)
    return ends + [start(args, args.attacker_cpus, "attacker", ATTACKER, client + common + [ATTACKER], limits)]


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n\n")[0], formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--build", default="build")
    p.add_argument("--seconds", type=int, default=5)
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--victim-cpus", default="0")
    p.add_argument("--attacker-cpus", default="1")
    p.add_argument("--limits", default="", help='of the attacker, as "VERBENA_RATE=1Gbps VERBENA_QUOTA=qps=64"')
    p.add_argument("attacks", nargs="*", help="of " + " ".join(ATTACKS))
    args = p.parse_args()
    port = PORT
    print("%-10s %12s %12s %8s" % ("attack", "alone", "attacked", "kept"))
    for name in args.attacks or ATTACKS:
        alone, attacked = [], []
        for _ in range(args.rounds):
            alone.append(victim(args, port))
            attackers = attack(args, name, port + 1)
            time.sleep(2)
            attacked.append(victim(args, port + 2))
            gone = [a for a in attackers if a.poll() is not None]
            outs = [a.communicate()[0] for a in gone]
            stop([a for a in attackers if a not in gone])
            if gone:
                sys.exit("the attacker of '%s' ended by itself:\n%s" % (name, "\n".join(outs)))
            port += 3
        a, b = statistics.median(alone), statistics.median(attacked)
        print("%-10s %7.2f Gb/s %7.2f Gb/s %7.0f%%" % (name, a, b, 100 * b / a), flush=True)


if __name__ == "__main__":
    main()
