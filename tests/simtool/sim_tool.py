#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""The command line of `verbena sim`: words, messages, files, signals, sweeps. CASE...: all without."""
import csv
import filecmp
import json
import os
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

BUILD = os.environ["BUILD_DIR"]
SOURCE = os.environ["SOURCE_DIR"]
FAKE = os.path.join(BUILD, "sim_tool_fake")
TIME_S = 300  # a limit for what hangs, not for what is slow
MACHINE = "simulator.json"  # the one file that may differ between equal runs
FILES = """cc_trace.csv collectives.csv drops.csv fairness.csv flows.csv goodput.csv goodput_flows.csv
    pfc_over_time.csv pfc_ports.csv ports.csv queue_histogram.csv queue_longest.csv queue_over_time.csv
    queue_samples.csv ranks.csv jobs.csv report.html scenario.ini simulator.json slowdown_equal.csv slowdown_fixed.csv
    step_collectives.csv steps.csv summary.json totals.csv""".split()
SMALL = "[run]\ntitle = small\n[workload.a]\nkind = incast\nfan_in = 128\n"
# gnuplot takes nine tenths of a short run's time: cases that look at no drawing run where it is not found.
PLAIN = {"PATH": "/nonexistent"}
# Where a drawing is only counted, or compared with another, a digest of gnuplot's commands stands for it. Of a file's path
# they keep the last folder and the name.
DIGEST = r"""#!/bin/sh
echo "<svg $(sed -E "s,'[^']*/([^/']*/[^/']*)','\1',g" | cksum)></svg>"
"""
MIXED = "[workload.web]\nkind = cdf\nstop = 10ms\n[workload.ring]\nkind = permutation\n"


class Failure(Exception):
    pass


class Skip(Exception):
    pass


def check(condition, text):
    if not condition:
        raise Failure(text)


class Place:
    """A folder that goes when the case ends."""

    def __init__(self):
        self.path = tempfile.mkdtemp(prefix="verbena-sim-")

    def file(self, name, text):
        path = os.path.join(self.path, name)
        with open(path, "w") as f:
            f.write(text)
        return path

    def at(self, *names):
        return os.path.join(self.path, *names)

    def digests(self):
        """The environment in which DIGEST is the gnuplot that is found."""
        os.makedirs(self.at("digest"), exist_ok=True)
        with open(self.file("digest/gnuplot", DIGEST)) as f:
            os.fchmod(f.fileno(), 0o755)
        return {"PATH": self.at("digest") + ":" + os.environ["PATH"]}


def run(*words, status=0, env=None, tool=FAKE):
    """Its standard output and error."""
    p = subprocess.run([tool] + list(words), capture_output=True, text=True, timeout=TIME_S,
                       stdin=subprocess.DEVNULL, env=dict(os.environ, **(env or {})))
    check(p.returncode == status, "%s: status %d\n%s%s" % (" ".join(words), p.returncode, p.stdout, p.stderr))
    return p.stdout, p.stderr


def refused(words, expected, most_lines=3):
    """Fails with a sentence that has all the expected words."""
    out, err = run(*words, status=125)
    check(not out, "%s: on standard output: %s" % (words, out))
    check(err.startswith("verbena"), err)
    for e in expected:
        check(e in err, "%s: no word of %r in\n%s" % (words, e, err))
    check(len(err.splitlines()) <= most_lines, err)


def read_csv(path):
    with open(path) as f:
        return list(csv.DictReader(f))


def words(place):
    out, _ = run("--help")
    for option in ("--set", "--seed", "--seeds", "--sweep", "--report", "--print-commands", "--compare", "--jobs", "--cores",
                   "--quiet", "--keys", "--list"):
        check(option in out, "no %s in\n%s" % (option, out))
    a = place.file("a.ini", SMALL)
    refused([], ["a scenario is needed"], 30)
    refused([a, a], ["one too many"])
    refused([a, "--seed", "x"], ["--seed x", "2^64"])
    refused([a, "--seed", "-1"], ["--seed -1"])
    refused([a, "-j", "0"], ["--jobs 0", "1 to"])
    refused([a, "--report", ""], ["--report"])
    refused([a, "--keys=html"], ["mdoc"])
    refused([a, "--nosuch"], ["nosuch"])


def keys(place):
    out, _ = run("--keys")
    for word in ("[topology]", "[workload.NAME]", "kmin", "bytes; default 100KB", "off|on|hpcc", "NAME"):
        check(word in out, "no %r in\n%s" % (word, out))
    check(max(len(line) for line in out.splitlines()) <= 180, "too wide")


def wrong_scenario(place):
    refused([place.at("nosuch.ini")], ["nosuch.ini", "No such file"])
    refused(["nosuch"], ["nosuch", "there are", "incast"], 40)
    refused([place.path], ["directory"])
    for text, expected in (
            ("[switch]\nkmni = 1KB\n", ["a.ini:2: switch.kmni: ", "no such key", "did you mean kmin?"]),
            ("[link]\nrate = 100\n", ["a.ini:2: link.rate: ", "'100'", "unit", "Gbps"]),
            ("[lnik]\n", ["a.ini:1: ", "[lnik]", "[link]"]),
            ("nonsense\n", ["a.ini:1: "]),
            ("[link]\nrate = 1Gbps\n", ["a.ini: ", "[workload.NAME]"]),
            ("", ["a.ini: ", "[workload.NAME]"])):
        refused([place.file("a.ini", text)], expected)
    with open(place.at("b.ini"), "wb") as f:
        f.write(b"[run]\0\n")
    refused([place.at("b.ini")], ["b.ini", "zero byte"])
    # Errors that only the simulation finds name the line as well.
    refused([place.file("a.ini", "[cc]\nalgorithm = refused\n" + SMALL)],
            ["a.ini:2: cc.algorithm: 'refused': there are"])
    refused([place.file("a.ini", SMALL), "--set", "cc.algorithm=refused"], ["--set: cc.algorithm: "])


def overrides(place):
    a = place.file("a.ini", SMALL)
    run(a, "-q", "--report", place.at("r"), "--set", "workload.a.size=2MB", "--seed", "7",
        "--set", "run.title=it's \"<b>\"")
    with open(place.at("r", "summary.json")) as f:
        s = json.load(f)
    check(s["seed"] == 7 and s["title"] == "it's \"<b>\"", str(s))
    with open(place.at("r", "report.html")) as f:
        page = f.read()
    check("&lt;b&gt;" in page and "<b>\"" not in page, "not escaped")
    check("verbena sim a.ini --set workload.a.size=2MB" in page and "--seed 7" in page, "no command")
    refused([a, "--set", "switch.kmin"], ["--set", "section.key=value"])
    refused([a, "--set", "workload.b.size=1MB"], ["--set", "workload.a"])
    refused([a, "--set", "switch.kmin=1XB"], ["--set: switch.kmin: ", "no such unit"])


def files(place):
    os.mkdir(place.at("sub"))
    text = "[workload.a]\nkind = file\nfile = flows.txt\n"
    a = place.file("sub/a.ini", text)
    refused([a], ["a.ini:3: ", "flows.txt", "No such file"])
    place.file("sub/flows.txt", "0\n")
    run(a, "-q")
    refused([place.file("sub/b.ini", text.replace("flows.txt", "."))], ["b.ini:3: ", "directory"])


def summary(place):
    out, err = run(place.file("a.ini", SMALL))
    check(not err, err)
    for word in ("small", "seed 1", "flows      128 of 128 done", "slowdown", "Jain", "PFC", "drops",
                 "events", "CPU"):
        check(word in out, "no %r in\n%s" % (word, out))
    check("nan" not in out and "inf" not in out.replace("info", ""), out)
    # Of what it is an index stands beside it.
    check(re.search(r"fairness   Jain 0\.\d+ of the mean rates of 128 flows, each over its own time: ", out), out)
    check(re.search(r"Jain 0\.\d+ in the median of \d+ windows of \S+ \S+, of the flows open throughout each, \d+ in", out), out)
    out, _ = run(place.file("b.ini", SMALL + "[output]\nfairness_start = 8ms\nfairness_window = 2ms\n"))
    said = re.search(r"Jain 0\.\d+ of the rates over \S+ ms of (\d+) of (\d+) flows, those open throughout: ", out)
    check(said and 2 <= int(said[1]) < int(said[2]) <= 128, out)
    out, _ = run(place.file("c.ini", "[workload.ring]\nkind = ring-allreduce\nsize = 128MB\n"))
    check("98.00 % of what is possible, 10.78 ms: 4 hosts, 24 among them, have 1.400 Tbit/s to all others" in out, out)
    out, _ = run(place.file("a.ini", SMALL), "-q")
    check(not out, out)


def report(place):
    a = place.file("a.ini", MIXED + "[output]\ncc_trace = all\n")
    out, _ = run(a, "--report", place.at("new", "r"))
    check("report.html" in out, out)
    check(sorted(os.listdir(place.at("new", "r"))) == sorted(FILES), str(os.listdir(place.at("new", "r"))))
    for name in FILES:
        if name.endswith(".csv"):
            rows = read_csv(place.at("new", "r", name))
            for row in rows:
                check(None not in row and None not in row.values(), "%s: %s" % (name, row))
    flows = read_csv(place.at("new", "r", "flows.csv"))
    check(len(flows) == 300 and {f["workload"] for f in flows} == {"web", "ring"}, "flows.csv")
    done = [f for f in flows if f["fct_ps"]]
    for f in done:
        want = int(f["fct_ps"]) / int(f["ideal_ps"])
        check(abs(float(f["slowdown"]) - want) < 1e-5, str(f))
    totals = {t["figure"]: t["value"] for t in read_csv(place.at("new", "r", "totals.csv"))}
    check(int(totals["flows_done"]) == len(done) == int(totals["slowdown_flows"]), str(totals))
    slow = sorted(float(f["slowdown"]) for f in done)
    check(abs(float(totals["slowdown_p99"]) - slow[int(len(slow) * 0.99)]) < 1e-5, "p99")
    bins = [b for b in read_csv(place.at("new", "r", "slowdown_equal.csv")) if b["workload"] == "all"]
    check(len(bins) == 20 and sum(int(b["flows"]) for b in bins) == len(done), "slowdown_equal.csv")
    with open(place.at("new", "r", "summary.json")) as f:
        s = json.load(f)
    check(str(s["figures"]["flows_done"]) == totals["flows_done"] and not s["partial"], str(s))
    with open(place.at("new", "r", "simulator.json")) as f:
        check(json.load(f)["wall_s"] > 0, "simulator.json")
    # Windows without anything are there, too, to the end; and the ports of hosts.
    for name, key in (("goodput.csv", None), ("queue_longest.csv", None), ("pfc_over_time.csv", None),
                      ("queue_over_time.csv", "port")):
        ends = {}
        for row in read_csv(place.at("new", "r", name)):
            of = row[key] if key else 0
            check(int(row["time_ps"]) == ends.get(of, 0), "%s: a gap before %s" % (name, row))
            ends[of] = int(row["time_ps"]) + int(row["window_ps"])
        check(ends and min(ends.values()) >= int(totals["time"]), "%s: ends early" % name)
    curves = {}
    for row in read_csv(place.at("new", "r", "goodput_flows.csv")):
        check(curves.get(row["flow"], row["time_ps"]) == row["time_ps"], "goodput_flows.csv: a gap before %s" % row)
        curves[row["flow"]] = str(int(row["time_ps"]) + int(row["window_ps"]))
    check({"0", "1"} < {p["tier"] for p in read_csv(place.at("new", "r", "ports.csv"))} | {"2"}, "ports.csv")
    with open(place.at("new", "r", "report.html")) as f:
        page = f.read()
    check(page.count("<details>") == page.count('class="drawn"') >= 7, "numbers behind each drawing")
    check(4 <= page.count('class="drawn-log"') == page.count("<svg") - page.count('class="drawn"'), "logarithmic ones")
    check("http://" not in page.replace("http://www.w3.org/", "") and "https://" not in page, "links outside")
    check(page.count("<svg") >= 7, "%d drawings" % page.count("<svg"))
    check("src=" not in page and "<script" not in page, "not self-contained")


def headlines(place):
    """Jain's index is of all flows, not of those that are left at the end."""
    a = place.file("a.ini", SMALL)
    run(a, "-q", "--report", place.at("r"), env=PLAIN)
    totals = {t["figure"]: t["value"] for t in read_csv(place.at("r", "totals.csv"))}
    rates = [int(f["received_bytes"]) / int(f["fct_ps"]) for f in read_csv(place.at("r", "flows.csv"))]
    check(len(rates) == 128 == int(totals["jain_flows"]), str(totals))
    check(abs(float(totals["jain"]) - sum(rates) ** 2 / (128 * sum(x * x for x in rates))) < 1e-5, totals["jain"])
    # The same sizes are not the same rates: where flows differ there is no such index, only that of windows.
    run(place.file("b.ini", MIXED), "-q", "--report", place.at("m"), env=PLAIN)
    totals = {t["figure"]: t["value"] for t in read_csv(place.at("m", "totals.csv"))}
    check("jain" not in totals and int(totals["jain_windows"]) > 1 and int(totals["jain_window_flows"]) >= 2, str(totals))


def event_log(place):
    a = place.file("a.ini", SMALL + "[output]\nevent_log = on\n")
    refused([a], ["a.ini:7: output.event_log: ", "--report"])
    run(a, "-q", "--report", place.at("r"), env=PLAIN)
    check(sorted(os.listdir(place.at("r"))) == sorted(FILES + ["events.txt"]), str(os.listdir(place.at("r"))))
    with open(place.at("r", "events.txt")) as f:
        check(f.read() == "0 nothing\n", "events.txt")
    os.mkdir(place.at("r", "taken"))
    os.remove(place.at("r", "events.txt"))
    os.rename(place.at("r", "taken"), place.at("r", "events.txt"))
    refused([a, "--report", place.at("r")], ["output.event_log: cannot write ", "Is a directory"])


def same_seed_same_bytes(place):
    a = place.file("a.ini", MIXED)
    for name, seed, env in (("r1", "5", None), ("r2", "5", None), ("r3", "6", PLAIN)):
        run(a, "-q", "--seed", seed, "--report", place.at(name), env=env)
    names = [n for n in FILES if n != MACHINE]
    same, different, _ = filecmp.cmpfiles(place.at("r1"), place.at("r2"), names, shallow=False)
    check(not different, "differ: %s" % different)
    _, different, _ = filecmp.cmpfiles(place.at("r1"), place.at("r3"), names, shallow=False)
    check("flows.csv" in different, "another seed, the same flows")


def cores(place):
    """Scenarios that came with verbena, smaller: each number of cores gives the same bytes."""
    real = place.file("real", "#!/bin/sh\nexec %s sim \"$@\"\n" % os.path.join(BUILD, "verbena"))
    os.chmod(real, 0o755)
    tree = ["--set", "topology.k=4"]
    for words in (
            ["incast", *tree, "--set", "workload.incast.fan_in=40", "--set", "workload.incast.size=100KB"],
            ["permutation", *tree, "--set", "workload.permutation.size=500KB"],
            ["permutation", *tree, "--set", "transport.protocol=rocev2", "--set", "switch.pfc=on", "--set", "link.loss=0.1%"],
            ["hpcc-websearch-50", "--set", "workload.websearch.stop=20us"],
            ["hpcc-hadoop-incast", "--set", "workload.hadoop.stop=20us", "--set", "workload.incast.stop=20us",
             "--set", "workload.incast.load=30%"]):
        told = {}
        for n in ("1", "2", "4"):
            folder = place.at("%s-%s" % (words[0], n))
            out, _ = run(*words, "--cores", n, "--report", folder, env=PLAIN, tool=real)
            told[n] = [l for l in out.splitlines() if not l.startswith("report")]
            told[n][-1] = told[n][-1].split(";")[0]
            if n == "1":
                continue
            names = [f for f in FILES if f != MACHINE]
            same, *other = filecmp.cmpfiles(place.at(words[0] + "-1"), folder, names, shallow=False)
            check(same == names, "%s on %s cores: these differ: %s" % (words[0], n, other))
            check(told[n] == told["1"], "%s on %s cores: %s" % (words[0], n, told[n]))
        for n in told:
            shutil.rmtree(place.at("%s-%s" % (words[0], n)))
    for words in (["permutation", "--cores", "0"], ["permutation", "--cores", "65"]):
        _, err = run(*words, status=125, tool=real)
        check("allowed is a whole number from 1 to 64" in err, err)
    _, err = run("all-to-all", "--cores", "2", status=125, tool=real)
    check("workload.exchange: has messages that wait for others" in err, err)
    _, err = run("permutation", "--cores", "2", "--run", "host 0: true", status=125, tool=real)
    check("--cores: programs" in err, err)


def gnuplot_missing(place):
    a = place.file("a.ini", SMALL)
    run(a, "-q", "--report", place.at("r"), env=PLAIN)
    check(sorted(os.listdir(place.at("r"))) == sorted(FILES), str(os.listdir(place.at("r"))))
    with open(place.at("r", "report.html")) as f:
        page = f.read()
    check("gnuplot is missing" in page and "<svg" not in page and "<table" in page, "page")


def interrupted(place):
    a = place.file("a.ini", SMALL + "[cc]\nalgorithm = slow\n")
    for number in (signal.SIGINT, signal.SIGTERM):
        r = place.at("r%d" % number)
        p = subprocess.Popen([FAKE, a, "--report", r], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=dict(os.environ, **PLAIN))
        time.sleep(1)
        p.send_signal(number)
        out, err = p.communicate(timeout=TIME_S)
        check(p.returncode == 130, "status %d\n%s%s" % (p.returncode, out, err))
        check("PARTIAL" in out and "interrupted" in out, out)
        with open(os.path.join(r, "summary.json")) as f:
            check(json.load(f)["partial"], "not marked")
        with open(os.path.join(r, "report.html")) as f:
            check("Partial." in f.read(), "not marked")
        check("INCOMPLETE" not in os.listdir(r), "the report is whole, the run is not")


def failed(place):
    a = place.file("a.ini", SMALL + "[cc]\nalgorithm = broken\n")
    _, err = run(a, "--report", place.at("r"), status=125, env=PLAIN)
    check("an invariant does not hold" in err, err)
    with open(place.at("r", "summary.json")) as f:
        check(json.load(f)["partial"], "not marked")


def stuck(place):
    """A run that cannot go on is reported, marked, and has a status of its own; so has a sweep with such a run."""
    a = place.file("a.ini", SMALL + "[cc]\nalgorithm = stuck\n")
    out, err = run(a, "--report", place.at("r"), status=3)
    check("PARTIAL    it cannot go on" in out and not err, out + err)
    with open(place.at("r", "summary.json")) as f:
        check(json.load(f)["partial"], "not marked")
    out, err = run(a, "--sweep", "cc.algorithm=stuck,fake", status=3)
    check(out.count(" partial") == 1 and not err, out + err)


def full_disk(place):
    a = place.file("a.ini", SMALL)
    place.file("plain", "")
    _, err = run(a, "-q", "--report", place.at("plain", "r"), status=125)
    check("not complete" in err and ("Not a directory" in err or "File exists" in err), err)
    _, err = run(a, "-q", "--report", "/proc/nosuch", status=125, env=PLAIN)
    check("not complete" in err, err)
    os.mkdir(place.at("small"))
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "none", place.at("small")],
                      stderr=subprocess.DEVNULL).returncode:
        raise Skip("cannot mount")
    try:
        _, err = run(a, "-q", "--report", place.at("small", "r"), status=125)
        check("not complete" in err and "No space left" in err, err)
        check("INCOMPLETE" in os.listdir(place.at("small", "r")), "not marked")
    finally:
        subprocess.run(["umount", place.at("small")], check=True)


def sweep(place):
    a = place.file("a.ini", MIXED)
    out, err = run(a, "--sweep", "cc.algorithm=swift,dctcp", "--sweep", "workload.web.load=30%,50%",
                   "--report", place.at("s"), "-j", "3", env=place.digests())
    check(not err, err)
    rows = read_csv(place.at("s", "sweep.csv"))
    check([r["settings"] for r in rows] == ["algorithm=swift load=30%", "algorithm=swift load=50%",
                                            "algorithm=dctcp load=30%", "algorithm=dctcp load=50%"], str(rows))
    seeds = []
    for r in rows:
        check(r["settings"] in out and r["state"] == "done" and int(r["flows"]) == 300, str(r))
        with open(place.at("s", r["folder"], "summary.json")) as f:
            seeds.append(json.load(f)["seed"])
    check(seeds == [1, 2, 3, 4], str(seeds))
    with open(place.at("s", "report.html")) as f:
        page = f.read()
    check(page.count("<svg") >= 4 and "load=30%25/report.html" in page, "page")
    run(a, "-q", "--sweep", "cc.algorithm=swift,dctcp", "--seed", "9", "--report", place.at("p"), env=PLAIN)
    for r in read_csv(place.at("p", "sweep.csv")):
        with open(place.at("p", r["folder"], "summary.json")) as f:
            check(json.load(f)["seed"] == 9, "pinned")
    out, _ = run(a, "--sweep", "run.seed=3,4,5")
    check(len(out.split("\n\n")[0].splitlines()) == 4, out)


def seeds(place):
    """Runs that differ in their seed alone: the mean of each figure, and how sure it is."""
    a = place.file("a.ini", SMALL)
    out, err = run(a, "--seeds", "1..3,9", "--sweep", "cc.algorithm=swift,dctcp", "--report", place.at("s"), "-j", "2",
                   env=place.digests())
    check(not err, err)
    rows = read_csv(place.at("s", "sweep.csv"))
    check([(r["settings"], r["seed"]) for r in rows] == [("algorithm=%s seed=%d" % (c, n), str(n))
                                                       for c in ("swift", "dctcp") for n in (1, 2, 3, 9)], str(rows))
    means = read_csv(place.at("s", "means.csv"))
    check({m["settings"] for m in means} == {"algorithm=swift", "algorithm=dctcp"}, "means.csv")
    for m in means:
        values = [float(r[m["figure"]]) for r in rows if r["settings"].startswith(m["settings"] + " ")]
        sd = statistics.stdev(values)
        check(m["runs"] == "4" == str(len(values)), str(m))
        for name, want in (("mean", statistics.mean(values)), ("deviation", sd), ("ci95_half", 3.182 * sd / 2),
                           ("min", min(values)), ("max", max(values))):
            check(abs(float(m[name]) - want) <= 1e-5 + 1e-9 * abs(want), "%s: %s, not %r" % (m, name, want))
    said = re.search(r"algorithm=swift: mean of 4 runs, 95 % confidence\n(?:.*\n)*?  FCT slowdown, p99 +(\S+) \u00b1 (\S+)\n", out)
    p99 = [m for m in means if m["figure"] == "slowdown_p99"][0]
    check(said and abs(float(said[1]) - float(p99["mean"])) < 0.1 and
          abs(float(said[2]) - float(p99["ci95_half"])) < 0.1 * float(p99["ci95_half"]), out)
    with open(place.at("s", "report.html")) as f:
        page = f.read()
    check(">Means</h2>" in page and "<small>\u00b1 " in page and "first seed of each" in page, "page")
    # One setting: all curves are of it. Without repetition there is nothing to take a mean of.
    run(a, "-q", "--seeds", "4,5", "--report", place.at("t"), env=PLAIN)
    check([m["settings"] for m in read_csv(place.at("t", "means.csv"))][0] == "", "means.csv")
    out, _ = run(a, "--sweep", "cc.algorithm=swift,dctcp")
    check("mean of" not in out, out)
    for wrong in ("", "x", "3..1", "1..", "1..5000", "1,,2", "-1..2"):
        refused([a, "--seeds", wrong], ["--seeds %s: " % wrong, "1..10"])
    refused([a, "--seeds", "1..2", "--seed", "1"], ["only one of the two"])


def commands(place):
    """A run's command stands alone, and finished folders make the same comparison."""
    a = place.file("it's a.ini", SMALL)
    words = ["--seeds", "1..2", "--sweep", "cc.algorithm=swift,dctcp", "--set", "run.title=it's"]
    run(a, "-q", *words, "--report", place.at("here"), env=place.digests())
    out, _ = run(a, *words, "--report", place.at("there"), "--print-commands")
    lines = out.splitlines()
    check(len(lines) == 4 and not os.path.exists(place.at("there")), out)
    for line in reversed(lines):
        p = subprocess.run(["/bin/sh", "-c", line], capture_output=True, text=True, timeout=TIME_S, env=dict(os.environ, **PLAIN))
        check(not p.returncode and not p.stdout and not p.stderr, "%s: %s%s" % (line, p.stdout, p.stderr))
    out, _ = run("--compare", place.at("there"), "--report", place.at("there"), env=place.digests())
    check("algorithm=dctcp seed=2" in out and "mean of 2 runs" in out, out)
    names = ["sweep.csv", "means.csv", "report.html"]
    _, different, missing = filecmp.cmpfiles(place.at("here"), place.at("there"), names, shallow=False)
    check(not different and not missing, "differ: %s" % (different + missing))
    names = [n for n in FILES if n.endswith(".csv")]
    for r in read_csv(place.at("there", "sweep.csv")):
        same, *other = filecmp.cmpfiles(place.at("here", r["folder"]), place.at("there", r["folder"]), names, shallow=False)
        check(same == names, "of %s differ: %s" % (r["folder"], other))
    # From another folder: the runs themselves, and a path to them; incomplete runs are reported.
    runs = [place.at("there", r["folder"]) for r in read_csv(place.at("there", "sweep.csv"))]
    open(os.path.join(runs[3], "INCOMPLETE"), "w").close()
    run("--compare", *runs, "-q", "--report", place.at("else", "where"))
    rows = read_csv(place.at("else", "where", "sweep.csv"))
    check([r["state"] for r in rows] == ["done", "done", "done", "failed"], str(rows))
    check(all(os.path.samefile(place.at("else", "where", r["folder"]), p) for r, p in zip(rows, runs)), str(rows))
    with open(place.at("else", "where", "report.html")) as f:
        check(f.read().count("<svg") >= 4, "drawings")
    check("algorithm=swift: mean of 2 runs" in run("--compare", place.at("there"))[0], "means")
    # One run alone has the report's folder for itself.
    out, _ = run(a, "--print-commands", "--report", place.at("one"))
    check(len(out.splitlines()) == 1 and out.rstrip().endswith(place.at("one")), out)
    refused([a, "--print-commands"], ["--report DIR"])
    refused(["--compare"], ["folders of finished runs are needed"])
    refused(["--compare", place.at("nosuch")], ["nosuch", "No such file"])
    os.mkdir(place.at("empty"))
    refused(["--compare", place.at("empty")], ["summary.json"])
    refused(["--compare", place.at("there"), "--seed", "1"], ["only folders of finished runs"])


def commands_as_documented(place):
    """The first example of docs/simulator.md that hands commands to something else."""
    with open(os.path.join(SOURCE, "docs", "simulator.md")) as f:
        example = re.search(r"((?:    .*\n)*    .*--print-commands(?:.*\n)(?:    .*\n)*)", f.read())
    check(example and "parallel" in example[1], "no example")
    path = BUILD
    if not shutil.which("parallel"):
        with open(place.file("parallel", "#!/bin/sh\nxargs -d '\\n' -P 2 -n 1 sh -c\n")) as f:
            os.fchmod(f.fileno(), 0o755)
        path += ":" + place.path
    path += ":" + place.digests()["PATH"]
    p = subprocess.run(["sh", "-ec", "\n".join(line[4:] for line in example[1].splitlines())], capture_output=True,
                       text=True, timeout=TIME_S, cwd=place.path, env=dict(os.environ, PATH=path))
    check(not p.returncode and "mean of" in p.stdout, "%s%s" % (p.stdout, p.stderr))
    rows = read_csv(place.at("compared", "sweep.csv"))
    check(len(rows) > 2 and {r["state"] for r in rows} == {"done"}, str(rows))


def figures_as_documented(place):
    """Each figure of the SDR paper in docs/simulator.md is a sweep whose words are understood."""
    with open(os.path.join(SOURCE, "docs", "simulator.md")) as f:
        text = f.read()
    short = dict(re.findall(r"`([A-Z]+)` is\s+`(--[^`]+)`", text))
    rows = re.findall(r"^\| (\d[^|]*) \| `([^`]+)` \|$", text, re.M)
    check(set(short) == {"SCHEMES", "LOSSES"} and len(rows) == 7, "%s %s" % (short, rows))
    for figure, command in rows:
        for name, words in short.items():
            command = command.replace(name, words)
        out, _ = run(*command.split(), "--report", place.at("x"), "--print-commands")
        check(len(out.splitlines()) >= 8, "%s: %s" % (figure, out))


def sweep_wrong(place):
    a = place.file("a.ini", MIXED)
    refused([a, "--sweep", "cc.algorithm"], ["--sweep cc.algorithm", "section.key=value"])
    refused([a, "--sweep", "cc.algorithm=a,,b"], ["value 2 is empty"])
    refused([a, "--sweep", "link.rate=1Gbps,2"], ["--set: link.rate: ", "'2'"])
    refused([a, "--sweep", "run.seed=" + ",".join(["1"] * 100), "--sweep", "run.until=" + ",".join(["1s"] * 100)],
            ["at most", "runs are allowed"])
    _, err = run(a, "--sweep", "cc.algorithm=swift,broken", "--report", place.at("s"), status=125, env=PLAIN)
    check("algorithm=broken" in err, err)
    check([r["state"] for r in read_csv(place.at("s", "sweep.csv"))] == ["done", "failed"], "state")


def sweep_interrupted(place):
    a = place.file("a.ini", MIXED + "[cc]\nalgorithm = slow\n")
    p = subprocess.Popen([FAKE, a, "--sweep", "run.seed=1,2,3,4", "-j", "2", "--report", place.at("s")],
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=dict(os.environ, **PLAIN))
    time.sleep(1)
    p.send_signal(signal.SIGTERM)
    out, err = p.communicate(timeout=TIME_S)
    check(p.returncode == 130, "status %d\n%s%s" % (p.returncode, out, err))
    states = [r["state"] for r in read_csv(place.at("s", "sweep.csv"))]
    check(states == ["partial", "partial", "not begun", "not begun"], str(states))


def examples(place):
    """Every scenario that comes with verbena is read, and says in two lines what it is."""
    folder = os.path.join(SOURCE, "share", "scenarios")
    names = sorted(n[:-4] for n in os.listdir(folder) if n.endswith(".ini"))
    out, _ = run("--list")
    listed = [line.split()[0] for line in out.splitlines()]
    check(listed == names, "%s, listed %s" % (names, listed))
    for name in names:
        with open(os.path.join(folder, name + ".ini")) as f:
            lines = f.read().splitlines()
        check(lines[0].startswith("# ") and lines[1].startswith("# "), name)
        run(name, "-q")


def graphs(place):
    """Graphs in files: what they are, and as GOAL text."""
    traces = os.path.join(SOURCE, "tests", "traces")
    chakra = os.path.join(traces, "chakra", "all_reduce", "4npus_1MB", "all_reduce.*.et")
    out, _ = run("--describe", chakra)
    check("ranks      4\n" in out and "1 all-reduce of 4 ranks, 1.049 MB" in out, out)
    run("--convert", chakra, place.at("as.goal"))
    out, _ = run("--describe", place.at("as.goal"))
    check("sends      24, 6.291 MB" in out and "receives   24, 6.291 MB" in out, out)
    out, _ = run("--convert", os.path.join(traces, "aicb", "microAllReduce.txt"), "-")
    check(out.startswith("num_ranks 8\n") and out.count("\nrank ") == 8, out[:1000])
    out, _ = run("--describe", place.file("stuck.goal", "num_ranks 2\nrank 0 {\nrecv 5b from 1\n}\n"), status=3)
    check("STUCK      1 nodes never end: rank 0 node 0 (recv 5 from 1 tag 0, line 3) waits for a message" in out, out)
    for name in ("all_reduce.0.et", "all_reduce.2.et"):
        shutil.copy(chakra.replace("all_reduce.*.et", name), place.at(name))
    refused(["--describe", place.at("all_reduce.*.et")], "all_reduce.1.et: rank 1 has no file")
    refused(["--describe", place.at("none.*.et")], "there is no file with a number")
    refused(["--describe", place.file("bad.goal", "num_ranks 1\nrank 0 {\nfoo\n}\n")], "bad.goal:3: ")
    refused(["--convert", place.at("as.goal"), "/dev/full"], "cannot write it: No space left")
    refused(["--convert", place.at("as.goal")], "two files are needed")


PAIR = """num_ranks 2
rank 0 {
send 1000000b to 1
}
rank 1 {
recv 1000000b from 0
}
"""
JOBS = """[topology]
kind = star
hosts = 3
[link]
rate = 100Gbps
[workload.pair]
kind = graph
file = pair.goal
[job.left]
workload = pair
hosts = 0,2
[job.right]
workload = pair
hosts = 1,2
[output]
event_log = on
"""


def alone(place):
    """--alone compares each job with the same job alone, which is a run of its own: two that share a link take twice as long."""
    tool = os.path.join(BUILD, "verbena")
    place.file("pair.goal", PAIR)
    scenario = place.file("jobs.ini", JOBS)

    def jobs(*words):
        folder = place.at("-".join(w.strip("-") for w in words) or "plain")
        out, _ = run("sim", scenario, "--report", folder, *words, env=PLAIN, tool=tool)
        return {j["job"]: j for j in read_csv(folder + "/jobs.csv")}, out

    both, out = jobs("--alone")
    check(out.count("times as long as alone") == 2, out)
    for name in ("left", "right"):
        one, _ = jobs("--set", "run.only=" + name)
        check(both[name]["alone_ps"] == one[name]["time_ps"], "%s: %s, alone %s" % (name, both[name], one[name]))
        check(1.5 < float(both[name]["slowdown_alone"]) < 2.2, str(both[name]))
    plain, out = jobs()
    check("as long as alone" not in out and not plain["left"]["slowdown_alone"], out)
    one, _ = jobs("--alone", "--set", "run.only=left")
    check(float(one["left"]["slowdown_alone"]) == 1, str(one))


def generated(place):
    """The training steps that come with verbena are what their script makes, and have a model's parameters."""
    script = os.path.join(SOURCE, "bench", "aicb.py")
    subprocess.run([sys.executable, "-B", script, "--shipped", place.path], check=True)
    made = [os.path.relpath(os.path.join(folder, n), place.path) for folder, _, names in os.walk(place.path) for n in names]
    there = ["%s/scenarios/%s" % (d, n) for d in ("share", "bench")
             for n in os.listdir(os.path.join(SOURCE, d, "scenarios")) if n.startswith("train") and n.endswith(".txt")]
    check(sorted(made) == sorted(there), "%s, in the tree %s" % (made, there))
    for name in made:
        with open(place.at(name)) as a, open(os.path.join(SOURCE, name)) as b:
            check(a.read() == b.read(), name + " is not what bench/aicb.py makes")
    with open(place.at("bench", "scenarios", "train-7b-64.txt")) as f:
        rows = [line.split("\t") for line in f.read().splitlines()[2:]]
    # Gradients in two bytes, of an eighth of the model at each rank; 6.74e9 are published, with what becomes logits.
    params = sum(int(row[10]) for row in rows) // 2 * 8
    check(len(rows) == 65 and 6.738e9 - 32000 * 4096 - 1e6 < params < 6.738e9 - 32000 * 4096 + 1e6, str(params))
    # A forward pass takes two operations a token and parameter, and some for the attention.
    ns = sum(int(row[2]) for row in rows) * 8
    check(1.0 < ns * 989 * 0.5 * 1e3 / (2 * 2048 * params) < 1.1, str(ns))
    p = subprocess.run([sys.executable, "-B", script, "--ranks", "63"], capture_output=True, text=True)
    check(p.returncode == 2 and "--ranks 63: allowed are multiples of tp x pp, 8" in p.stderr, p.stderr)


def manual(place):
    """The manual has the keys as the table has them."""
    out, _ = run("--keys=mdoc")
    page = os.path.join(BUILD, "man", "verbena-sim.1")
    with open(page) as f:
        check(out in f.read(), page + " has other keys than the table")
    if shutil.which("mandoc"):
        p = subprocess.run(["mandoc", "-T", "lint", "-W", "warning", page], capture_output=True, text=True)
        check(not p.returncode, p.stdout + p.stderr)


CASES = [words, keys, wrong_scenario, overrides, files, summary, report, headlines, event_log, same_seed_same_bytes,
         cores, gnuplot_missing, interrupted, failed, stuck, full_disk, sweep, seeds, commands,
         commands_as_documented, figures_as_documented, sweep_wrong, sweep_interrupted, examples, graphs, alone, generated,
         manual]


def main():
    known = {c.__name__: c for c in CASES}
    worst = 0
    for name in sys.argv[1:] or known:
        place = Place()
        try:
            known[name](place)
            print("%s: passed" % name)
        except Skip as e:
            print("%s: skipped: %s" % (name, e))
            worst = max(worst, 77)
        except (Failure, subprocess.TimeoutExpired) as e:
            print("%s: FAILED: %s" % (name, e))
            worst = 1
        finally:
            shutil.rmtree(place.path, ignore_errors=True)
        if worst == 1:
            break
    sys.exit(worst)


main()
