#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""`verbena sim --run`: unmodified programs on hosts of a simulated network, in simulated time."""
import glob
import os
import re
import shutil

from pair import BUILD, NOBODY, Process, check, folder, main

VERBENA = os.path.join(BUILD, "verbena")
CLOCKED = os.path.join(BUILD, "tests/programs/clocked")
LIMITS = os.path.join(BUILD, "tests/programs/limits")
# What limits.c prints: a limit ends a wait to the nanosecond, unless what it waits for has come.
LIMITED = """usleep: 0 after 1234000 ns
poll: 0 after 5000000 ns
ppoll: 0 after 2500000 ns
select: 0 after 1500000 ns
pselect: 0 after 30000000 ns
epoll_wait: 0 after 4000000 ns
epoll_pwait: 0 after 40000000 ns
poll for a byte: 1 after 2000000 ns
select for a byte: 1 after 0 ns
epoll_wait for a byte: 1 after 0 ns
pthread_cond_timedwait: -1 after 3000000 ns
pthread_cond_clockwait: -1 after 50000000 ns
pthread_cond_timedwait for a signal: 0 after 700000 ns
sem_timedwait: -1 after 6000000 ns
sem_clockwait: -1 after 0 ns
sem_timedwait for a post: 0 after 800000 ns
thread 3 was woken
thread 2 was woken
thread 1 was woken
timerfd: 1 after 2000000 ns
timerfd again: 1 after 3000000 ns
timerfd, late: 3 after 0 ns
2500000 ns are left of 3000000
timerfd, off: 0 after 100000000 ns
nanosleep until an alarm: -1 after 2500000 ns
1 alarms, 7500000 ns are left
alarm: 0 after 0 ns
sleep until an alarm: 3 after 2000000000 ns
2 alarms
"""
GBPS, DELAY_PS = 100, 1000000
SCENARIO = """[topology]
kind = star
hosts = 4
[link]
rate = %dGbps
delay = 1us
[workload.unused]
kind = permutation
size = 1MB
""" % GBPS


def scenario(more=""):
    path = os.path.join(folder(), "star.ini")
    with open(path, "w") as f:
        f.write(SCENARIO + more)
    return path


def sim_file(path, *options, env=None, status=0, wait=110):
    """Runs a scenario; the output."""
    p = Process([VERBENA, "sim", path, *options], env)
    got = p.wait(wait)
    text = p.output()
    p.kill()
    check(got == status, "status %s instead of %s:\n%s" % (got, status, text))
    return text


def sim(runs, *options, env=None, status=0, wait=110):
    """Runs programs by host; the output."""
    words = [w for host, command in runs for w in ("--run", "host %s: %s" % (host, command))]
    return sim_file(scenario(), *options, *words, env=env, status=status, wait=wait)


def pings(count=3, options="-v"):
    return [(0, "rping -s %s -C %d -a 127.0.0.1" % (options, count)),
            (1, "rping -c %s -C %d -a 127.0.0.1" % (options, count))]


def rping(place):
    text = sim(pings())
    for line in ("server ping data: rdma-ping-2: CDEF", "\nping data: rdma-ping-2: CDEF"):
        check(line in text, text)
    check(len(re.findall(r"exit status 0 after 0\.000\d+ s", text)) == 2, text)


def ucmatose(place):
    text = sim([(2, "ucmatose -C 5 -c 2"), (0, "ucmatose -s 127.0.0.3 -C 5 -c 2")])
    check(text.count("test complete") == 2 and "return status 0" in text, text)


def rounds_ns(count, how, size=64):
    text = sim([(0, "%s serve 127.0.0.1 7471 %d %d %s" % (CLOCKED, size, count, how)),
                (1, "%s ask 127.0.0.1 7471 %d %d %s" % (CLOCKED, size, count, how))],
               env={"VERBENA_PROTOCOL": "rocev2"})
    return int(re.search(r"^(\d+) ns$", text, re.M).group(1))


def closed_form(place):
    """
    A message of one packet takes its time on two links and their delays; an acknowledgement leaves each end before the
    next message. Around the payload are the BTH and the ICRC, with an AETH in an acknowledgement, and 66 bytes of UDP,
    IPv4 and Ethernet with preamble and gap.
    """
    for how, size in (("poll", 64), ("sleep", 4096)):
        data, ack = size + 12 + 4 + 66, 12 + 4 + 4 + 66
        round_ps = 2 * ((ack + 2 * data) * 8000 // GBPS + 2 * DELAY_PS)
        took_ns = rounds_ns(60, how, size) - rounds_ns(10, how, size)
        check(abs(took_ns * 1000 - 50 * round_ps) <= 1000, "%s, %d bytes: 50 rounds took %d ns instead of %g"
              % (how, size, took_ns, 50 * round_ps / 1000))


def same(place):
    """The same bytes in each run, with other programs on the processors too."""
    busy = [Process(["sh", "-c", "while :; do :; done"]) for _ in range(4)]
    outputs = {sim(pings(10)) for _ in range(5)}
    for p in busy:
        p.kill()
    outputs |= {sim(pings(10)) for _ in range(3)}
    check(len(outputs) == 1, "\n\n".join(outputs))


def limits(place):
    """Waits with a limit, timers and alarms, on a busy machine too."""
    busy = [Process(["sh", "-c", "while :; do :; done"]) for _ in range(4)]
    for _ in range(3):
        text = sim([(1, LIMITS)])
        check(LIMITED in text, text)
    for p in busy:
        p.kill()


def pingpong(place):
    """Programs that meet over TCP, by names of hosts, and the same bytes in each run."""
    for program in ("rc_pingpong", "rc_pingpong -e -p 5", "uc_pingpong", "ud_pingpong -s 1000", "srq_pingpong -q 4"):
        command = "ibv_%s -n 50 -g 0" % program
        texts = [sim([(0, command), (3, command + " host0")]) for _ in range(2)]
        check(texts[0] == texts[1], "\n\n".join(texts))
        check(texts[0].count("50 iters in 0.00 seconds") == 2, texts[0])
    for port, host in ((5, "host2"), (18515, "host3"), (18515, "10.1.2.3")):
        text = sim([(0, "ibv_rc_pingpong -g 0 -p %d %s" % (port, host)), (2, "ibv_rc_pingpong -g 0")], status=3)
        check("Couldn't connect to %s:%d" % (host, port) in text, text)
        check(("cannot connect to a host outside" in text) == (host == "10.1.2.3"), text)


def sections(place):
    """[program.NAME] runs as --run does, from its start on, and its output has its name."""
    server, client = ("[program.%s]\nhosts = %d\ncommand = %s\nstart = %dms\n" % (name, host, command, start)
                      for name, (host, command), start in zip(("server", "client"), pings(), (5, 20)))
    path, report = scenario(server + client), os.path.join(folder(), "report")
    texts = []
    for _ in range(2):
        texts.append(sim_file(path, "--run", "host 3: date +%s.%N", "--report", report))
    check(texts[0] == texts[1], "\n\n".join(texts))
    check(len(re.findall(r"exit status 0 after 0\.020\d+ s  rping", texts[0])) == 2, texts[0])
    with open(os.path.join(report, "client.1.out")) as f:
        check("ping data: rdma-ping-2" in f.read(), "client.1.out")
    check(sorted(os.listdir(report)) == ["client.1.out", "date.3.out", "server.0.out"], str(os.listdir(report)))
    # Nobody hears a client that asks before its server has begun; it asks again after a quarter of a second.
    text = sim_file(scenario(server + client.replace("20ms", "1ms")))
    check(re.search(r"exit status 0 after 0\.251\d+ s  rping -c", text), text)
    for key, value, said in (("client.hosts", "0", "[program.client]: host 0 has a program already"),
                             ("client.hosts", "9", "program.client.hosts: there is no host 9, only 0 to 3"),
                             ("client.command", "no-such", "[program.client]: there is no program 'no-such'"),
                             ("client.command", "a | b", "[program.client]: the command cannot be read")):
        text = sim_file(path, "--set", "program.%s=%s" % (key, value), status=125)
        check(said in text, text)
    check("programs run without --sweep" in sim_file(path, "--seeds", "1..2", status=125), "--seeds")
    check("4 of 4 done" in sim_file(path, "--set", "run.only=unused"), "run.only")


def perftest(command, *options):
    """The figures in the last line of each end, and the whole output."""
    words = "%s -F -x 0 %s" % (command, " ".join(options))
    text = sim([(0, words), (1, words + " host0")], env={"VERBENA_PROTOCOL": "rocev2"})
    check(text.count("exit status 0") == 2, text)
    return [[float(n) for n in line.split()] for line in re.findall(r"#bytes.*\n *(\d[\d. \t]*)\n", text)], text


def bandwidth(place):
    """What the link has room for: packets of 4096 bytes, each of which has a RETH in a WRITE of 64 KiB (docs/rocev2.md)."""
    for command, reth in (("ib_write_bw", 16), ("ib_send_bw", 0), ("ib_write_bw -R", 16)):
        figures, text = perftest(command, "-n 1000 -m 4096")
        share = 4096 / (4096 + reth + 12 + 4 + 66)
        check(len(figures) == 2, text)
        got = figures[1][3] * 2**20 * 8 / (GBPS * 1e9)
        check(abs(got / share - 1) < 0.001, "%s: %g of the link instead of %g\n%s" % (command, got, share, text))


def latency(place):
    """Half of a round, as of closed_form(), to the nanosecond, by the processor's counter."""
    for command, reth in (("ib_send_lat", 0), ("ib_write_lat", 16), ("ib_write_lat -R", 16)):
        data, ack = 4096 + reth + 12 + 4 + 66, 12 + 4 + 4 + 66
        half_ns = (ack + 2 * data) * 8 / GBPS + 2 * DELAY_PS / 1000
        figures, text = perftest(command, "-n 60 -s 4096 -m 4096 -C")
        check(len(figures) == 2, text)
        for line in figures:
            check(abs(line[5] - half_ns) <= 1, "%s: %s ns instead of %g\n%s" % (command, line[5], half_ns, text))
    read, text = perftest("ib_read_lat", "-n 60 -s 4096 -m 4096 -C")
    round_ns = 2 * (12 + 16 + 4 + 66 + 4096 + 12 + 4 + 4 + 66) * 8 / GBPS + 4 * DELAY_PS / 1000
    check(abs(read[0][5] - round_ns) <= 1, "%s ns instead of %g\n%s" % (read[0][5], round_ns, text))


def counter(place):
    """A program that measures by the processor's counter, and one that reads memory: the same in each run."""
    busy = [Process(["sh", "-c", "while :; do :; done"]) for _ in range(4)]
    for command in ("ib_write_lat -n 20", "ib_atomic_bw -n 100", "ib_send_lat -c UD -n 20"):
        outputs = {perftest(command)[1] for _ in range(3)}
        check(len(outputs) == 1, "\n\n".join(outputs))
    for p in busy:
        p.kill()


def gone(text):
    """No process of a run outlives it."""
    for pid in re.findall(r"\(pid (\d+)\)", text):
        check(not os.path.exists("/proc/" + pid), "process %s is still there:\n%s" % (pid, text))
    for path in glob.glob("/proc/[0-9]*/cmdline"):
        try:
            with open(path, "rb") as f:
                words = f.read().split(b"\0")
        except OSError:
            continue
        check(words[0] not in (b"rping", b"sleep"), "%s is still there: %s" % (path, words))


def ends(place):
    """A program that fails in some way ends the run with its name."""
    server = pings()[0]
    text = sim([server], status=3)
    check("every program waits" in text and "host 0: 'rping -s" in text and "waits in futex" in text, text)
    gone(text)
    text = sim([server, (1, "sh -c 'sleep 100 & kill -SEGV $$'")], status=125)
    check(re.search(r"host 1: 'sh -c .*' \(pid \d+\) was ended by signal 11 \(Segmentation fault\)", text), text)
    gone(text)
    text = sim([server, (1, "sh -c 'while :; do :; done'")], "--patience", "2", status=125)
    check(re.search(r"host 1: 'sh -c .*' \(pid \d+\) has not opened the RDMA device for 2 s", text), text)
    gone(text)
    text = sim([(0, "sh -c 'exit 7'")], status=1)
    check("exit status 7" in text, text)


def wrong(place):
    """Each wrong value is named, with what is allowed."""
    static, setuid = os.path.join(BUILD, "tests/programs/nothing_static"), os.path.join(folder(), "ping")
    shutil.copy("/usr/bin/rping", setuid)
    cases = [(["host 4: true"], "there is no host 4, only 0 to 3"), (["true"], "does not say which host"),
             (["host x: true"], "the number of a host is missing"), (["hosts 2-1: true"], "the lower one first"),
             (["host 0 true: false"], "behind hosts comes"), (["host 0:"], "there is no command"),
             (["host 0: true | true"], "run sh -c"), (["host 0: no-such-program"], "there is no program"),
             (["host 0: true", "hosts 0-1: true"], "host 0 has a program already")]
    try:
        os.chown(setuid, NOBODY, -1)
        os.chmod(setuid, 0o4755)
        cases.append((["host 0: " + setuid], "changes its user or group"))
    except OSError:
        pass  # an ordinary user has no other one here
    if os.path.exists(static):
        cases.append((["host 0: " + static], "is linked statically"))
    for runs, said in cases:
        p = Process([VERBENA, "sim", scenario(), *[w for r in runs for w in ("--run", r)]])
        check(p.wait(30) == 125 and said in p.output(), "%s: %s\n%s" % (runs, p.proc.returncode, p.output()))
    for options, said in ((["--set", "host.ack_delay=1us"], "host.ack_delay: not possible where programs run"),
                          (["--patience", "0"], "from 1 to"), (["--seeds", "1..2"], "without --sweep")):
        p = Process([VERBENA, "sim", scenario(), "--run", "host 0: true", *options])
        check(p.wait(30) == 125 and said in p.output(), "%s: %s\n%s" % (options, p.proc.returncode, p.output()))


if __name__ == "__main__":
    main({"rping": rping, "ucmatose": ucmatose, "closed_form": closed_form, "same": same, "limits": limits, "pingpong": pingpong,
          "bandwidth": bandwidth, "latency": latency, "counter": counter, "sections": sections, "ends": ends, "wrong": wrong})
