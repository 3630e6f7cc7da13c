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
import subprocess
import sys
import tempfile
import time

BUILD = os.environ["BUILD_DIR"]
SOURCE = os.environ["SOURCE_DIR"]
FAKE = os.path.join(BUILD, "sim_tool_fake")
MACHINE = "simulator.json"  # the one file that may differ between equal runs
FILES = """cc_trace.csv collectives.csv drops.csv fairness.csv flows.csv goodput.csv goodput_flows.csv
    pfc_over_time.csv pfc_ports.csv ports.csv queue_histogram.csv queue_longest.csv queue_over_time.csv
    queue_samples.csv report.html scenario.ini simulator.json slowdown_equal.csv slowdown_fixed.csv
    summary.json totals.csv""".split()
SMALL = "[run]\ntitle = small\n[workload.a]\nkind = incast\nfan_in = 128\n"
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


def run(*words, status=0, env=None, tool=FAKE):
    """Its standard output and error."""
    p = subprocess.run([tool] + list(words), capture_output=True, text=True, timeout=60,
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
    for option in ("--set", "--seed", "--sweep", "--report", "--jobs", "--quiet", "--keys", "--list"):
        check(option in out, "no %s in\n%s" % (option, out))
    a = place.file("a.ini", SMALL)
    refused([], ["which scenario"], 30)
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
    check(max(len(line) for line in out.splitlines()) <= 160, "too wide")


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
    # What only the simulation can tell is laid at the line as well.
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
    with open(place.at("new", "r", "report.html")) as f:
        page = f.read()
    check("http://" not in page.replace("http://www.w3.org/", "") and "https://" not in page, "links outside")
    check(page.count("<svg") >= 7, "%d drawings" % page.count("<svg"))
    check("src=" not in page and "<script" not in page, "not self-contained")


def headlines(place):
    """Jain's index is of all flows, not of those that are left at the end."""
    a = place.file("a.ini", SMALL)
    run(a, "-q", "--report", place.at("r"))
    totals = {t["figure"]: t["value"] for t in read_csv(place.at("r", "totals.csv"))}
    rates = [int(f["received_bytes"]) / int(f["fct_ps"]) for f in read_csv(place.at("r", "flows.csv"))]
    check(len(rates) == 128 == int(totals["jain_flows"]), str(totals))
    check(abs(float(totals["jain"]) - sum(rates) ** 2 / (128 * sum(x * x for x in rates))) < 1e-5, totals["jain"])
    # The same sizes are not the same rates: where flows differ there is no such index, only that of windows.
    run(place.file("b.ini", MIXED), "-q", "--report", place.at("m"))
    totals = {t["figure"]: t["value"] for t in read_csv(place.at("m", "totals.csv"))}
    check("jain" not in totals and int(totals["jain_windows"]) > 1 and int(totals["jain_window_flows"]) >= 2, str(totals))


def event_log(place):
    a = place.file("a.ini", SMALL + "[output]\nevent_log = on\n")
    refused([a], ["a.ini:7: output.event_log: ", "--report"])
    run(a, "-q", "--report", place.at("r"))
    check(sorted(os.listdir(place.at("r"))) == sorted(FILES + ["events.txt"]), str(os.listdir(place.at("r"))))
    with open(place.at("r", "events.txt")) as f:
        check(f.read() == "0 nothing\n", "events.txt")
    os.mkdir(place.at("r", "taken"))
    os.remove(place.at("r", "events.txt"))
    os.rename(place.at("r", "taken"), place.at("r", "events.txt"))
    refused([a, "--report", place.at("r")], ["output.event_log: cannot write ", "Is a directory"])


def same_seed_same_bytes(place):
    a = place.file("a.ini", MIXED)
    for name, seed in (("r1", "5"), ("r2", "5"), ("r3", "6")):
        run(a, "-q", "--seed", seed, "--report", place.at(name))
    names = [n for n in FILES if n != MACHINE]
    same, different, _ = filecmp.cmpfiles(place.at("r1"), place.at("r2"), names, shallow=False)
    check(not different, "differ: %s" % different)
    _, different, _ = filecmp.cmpfiles(place.at("r1"), place.at("r3"), names, shallow=False)
    check("flows.csv" in different, "another seed, the same flows")


def gnuplot_missing(place):
    a = place.file("a.ini", SMALL)
    run(a, "-q", "--report", place.at("r"), env={"PATH": "/nonexistent"})
    check(sorted(os.listdir(place.at("r"))) == sorted(FILES), str(os.listdir(place.at("r"))))
    with open(place.at("r", "report.html")) as f:
        page = f.read()
    check("gnuplot is missing" in page and "<svg" not in page and "<table" in page, "page")


def interrupted(place):
    a = place.file("a.ini", SMALL + "[cc]\nalgorithm = slow\n")
    for number in (signal.SIGINT, signal.SIGTERM):
        r = place.at("r%d" % number)
        p = subprocess.Popen([FAKE, a, "--report", r], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        time.sleep(1)
        p.send_signal(number)
        out, err = p.communicate(timeout=30)
        check(p.returncode == 130, "status %d\n%s%s" % (p.returncode, out, err))
        check("PARTIAL" in out and "interrupted" in out, out)
        with open(os.path.join(r, "summary.json")) as f:
            check(json.load(f)["partial"], "not marked")
        with open(os.path.join(r, "report.html")) as f:
            check("Partial." in f.read(), "not marked")
        check("INCOMPLETE" not in os.listdir(r), "the report is whole, the run is not")


def failed(place):
    a = place.file("a.ini", SMALL + "[cc]\nalgorithm = broken\n")
    _, err = run(a, "--report", place.at("r"), status=125)
    check("an invariant does not hold" in err, err)
    with open(place.at("r", "summary.json")) as f:
        check(json.load(f)["partial"], "not marked")


def full_disk(place):
    a = place.file("a.ini", SMALL)
    place.file("plain", "")
    _, err = run(a, "-q", "--report", place.at("plain", "r"), status=125)
    check("not complete" in err and ("Not a directory" in err or "File exists" in err), err)
    _, err = run(a, "-q", "--report", "/proc/nosuch", status=125)
    check("not complete" in err, err)
    if os.geteuid():
        raise Skip("a file system of our own needs root")
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
                   "--report", place.at("s"), "-j", "3")
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
    run(a, "-q", "--sweep", "cc.algorithm=swift,dctcp", "--seed", "9", "--report", place.at("p"))
    for r in read_csv(place.at("p", "sweep.csv")):
        with open(place.at("p", r["folder"], "summary.json")) as f:
            check(json.load(f)["seed"] == 9, "pinned")
    out, _ = run(a, "--sweep", "run.seed=3,4,5")
    check(len(out.splitlines()) == 4, out)


def sweep_wrong(place):
    a = place.file("a.ini", MIXED)
    refused([a, "--sweep", "cc.algorithm"], ["--sweep cc.algorithm", "section.key=value"])
    refused([a, "--sweep", "cc.algorithm=a,,b"], ["value 2 is empty"])
    refused([a, "--sweep", "link.rate=1Gbps,2"], ["--set: link.rate: ", "'2'"])
    refused([a, "--sweep", "run.seed=" + ",".join(["1"] * 100), "--sweep", "run.until=" + ",".join(["1s"] * 100)],
            ["more than"])
    _, err = run(a, "--sweep", "cc.algorithm=swift,broken", "--report", place.at("s"), status=125)
    check("algorithm=broken" in err, err)
    check([r["state"] for r in read_csv(place.at("s", "sweep.csv"))] == ["done", "failed"], "state")


def sweep_interrupted(place):
    a = place.file("a.ini", MIXED + "[cc]\nalgorithm = slow\n")
    p = subprocess.Popen([FAKE, a, "--sweep", "run.seed=1,2,3,4", "-j", "2", "--report", place.at("s")],
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    time.sleep(1)
    p.send_signal(signal.SIGTERM)
    out, err = p.communicate(timeout=30)
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


def manual(place):
    """The manual has the keys as the table has them."""
    out, _ = run("--keys=mdoc")
    with open(os.path.join(SOURCE, "man", "verbena-sim.1")) as f:
        page = f.read()
    begin, end = '.\\" keys begin: verbena sim --keys=mdoc\n', '.\\" keys end\n'
    check(begin in page and end in page, "no marks")
    check(page.split(begin)[1].split(end)[0] == out,
          "man/verbena-sim.1 has other keys: put `verbena sim --keys=mdoc` between its marks")
    if shutil.which("mandoc"):
        p = subprocess.run(["mandoc", "-T", "lint", "-W", "warning", os.path.join(SOURCE, "man", "verbena-sim.1")],
                           capture_output=True, text=True)
        check(not p.returncode, p.stdout + p.stderr)


CASES = [words, keys, wrong_scenario, overrides, files, summary, report, headlines, event_log, same_seed_same_bytes,
         gnuplot_missing, interrupted, failed, full_disk, sweep, sweep_wrong, sweep_interrupted, examples, manual]


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
