#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""
Installs Verbena as its users do and runs it from there.

  package.py prefix   `cmake --install` into a folder; program, libraries, manual, scenarios, completion, dissector
  package.py deb      builds the Debian package for the tests below, and asks lintian
  package.py bare     the package on a bare Debian 12 (as all below needs root and a package registry): install, run, purge;
                      then the commands of docs/ci as they stand, with action.yml
  package.py source   action.yml builds from the checkout, on a bare Debian 12
  package.py trixie   the same package on a bare Debian 13; or another release's name, of Debian or Ubuntu
  package.py podman   docs/ci/Dockerfile as an image, and containers in each way of docs/ci/README.md

The exit status is 0, 1 (why is printed) or 77 (cannot be had here).
"""
import functools
import os
import pathlib
import re
import shlex
import shutil
import stat
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("BUILD_DIR") or ROOT / "build")
DEB = BUILD / "packaging/verbena.deb"
SKIP = 77
TIME_S = 3000
PINGPONG = ("verbena run ibv_rc_pingpong -g 0 -c & "
            "until verbena run ibv_rc_pingpong -g 0 -c 127.0.0.1; do sleep 0.2; done; wait $!")


def sh(command, **kw):
    """Runs a command, a list or a shell's text; its output. Ends the test when it fails."""
    r = subprocess.run(command, shell=isinstance(command, str), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                       stderr=subprocess.STDOUT, text=True, timeout=TIME_S, **kw)
    if r.returncode:
        sys.exit("%s: status %d\n%s" % (command, r.returncode, r.stdout))
    return r.stdout


def check(condition, text):
    if not condition:
        sys.exit(text)


# ---- into a folder ------------------------------------------------------------------------------

def prefix(work):
    where = work / "prefix"
    sh(["cmake", "--install", BUILD, "--prefix", where])
    libdir = next(where.glob("lib/**/verbena")).parent
    for name in ("bin/verbena", "share/man/man1/verbena.1", "share/man/man1/verbena-sdr.1", "share/man/man1/verbena-sim.1", "share/man/man7/verbena.7",
                 "share/man/man1/sdr_write_bw.1", "share/man/man1/sdr_cp.1", "share/man/man1/sdr_write_lat.1", "share/man/man1/sdr_allreduce.1", "share/man/man3/verbena_sdr.3", "share/man/man7/verbena-sdr.7", "share/man/man7/verbena-fault.7",
                 "share/man/man3/verbena_sdr_recv_post.3", "include/verbena/sdr.h",
                 "share/man/man3/verbena_sim.3", "share/man/man3/verbena_sim_send.3", "include/verbena/sim.h", "share/verbena/scenarios/incast.ini", "share/bash-completion/completions/verbena",
                 "share/bash-completion/completions/sdr_cp"):
        check((where / name).is_file(), "not installed: " + name)
    check((libdir / "wireshark/plugins/veroce.lua").is_file(), "not installed: the dissector")
    library(where, libdir, work)
    simulator(where, libdir, work)
    env = {**os.environ, "PATH": "%s/bin:%s" % (where, os.environ["PATH"]), "TMPDIR": str(work)}
    version = (ROOT / "VERSION").read_text().strip()
    check(sh("verbena --version", env=env) == "verbena %s\n" % version, "verbena --version does not say " + version)
    sh("verbena run true", env=env)
    check("verbena0" in sh("verbena run ibv_devices", env=env), "no device under the installed verbena")
    check("incast" in sh("verbena sim --list", env=env), "no scenarios under the installed verbena")
    completion(env, where)
    news = (ROOT / "NEWS.md").read_text()
    check("## " + version in news, "NEWS.md has no section for " + version)
    changelog = (ROOT / "debian/changelog").read_text()
    check(changelog.startswith("verbena (%s)" % version), "debian/changelog does not begin with " + version)


def library(where, libdir, work):
    """A program is built with libverbena-sdr as pkg-config says, and runs."""
    env = {**os.environ, "PKG_CONFIG_PATH": str(libdir / "pkgconfig")}
    source = work / "open.c"
    source.write_text("""
        #include <verbena/sdr.h>
        int main(void)
        {
                struct verbena_sdr_context *ctx = verbena_sdr_context_create("verbena0", 0);

                return ctx ? verbena_sdr_context_destroy(ctx) : 1;
        }
        """)
    flags = sh(["pkg-config", "--cflags", "--libs", "verbena-sdr"], env=env).split()
    sh(["cc", "-o", work / "open", source, *flags, "-Wl,-rpath," + str(libdir)])
    sh([where / "bin/verbena", "run", work / "open"], env=env)
    check("--rate" in sh([where / "bin/sdr_cp", "--help"]), "sdr_cp does not start")
    for tool in ("sdr_write_lat", "sdr_allreduce"):
        check("--scheme" in sh([where / "bin" / tool, "--help"]), tool + " does not start")
    check("--verify" in sh([where / "bin/sdr_write_bw", "--help"]), "sdr_write_bw does not start")
    manual(where, "sdr")


def manual(where, name):
    """The page of a library says what its header says of each call."""
    path = where / ("share/man/man3/verbena_%s.3" % name)
    if shutil.which("mandoc"):
        sh(["mandoc", "-T", "lint", "-W", "warning", path])
    page = path.read_text()
    check(not re.search("^@", page, re.M), "verbena_%s(3) lacks what the header says" % name)
    for call in re.findall(r"^VERBENA_\w+_API [^;]*?\b(verbena_\w+)\(", (where / ("include/verbena/%s.h" % name)).read_text(), re.M):
        check("It Fn " + call in page, "verbena_%s(3) does not have %s" % (name, call))


RING = """
[topology]
kind = star
hosts = 8
[link]
rate = 100Gbps
delay = 500ns
[transport]
protocol = rocev2
window = none
[cc]
algorithm = none
[workload.w]
kind = graph
file = %s/tests/traces/chakra/all_reduce/8npus_1MB/all_reduce.*.et
algorithm = ring
""" % ROOT


def simulator(where, libdir, work):
    """The example is built with libverbena-sim as pkg-config says, in C and in C++. Its ring takes what the bytes of its
    messages take, and what a graph with such a collective takes, to the picosecond."""
    env = {**os.environ, "PKG_CONFIG_PATH": str(libdir / "pkgconfig")}
    flags = sh(["pkg-config", "--cflags", "--libs", "verbena-sim"], env=env).split()
    sh(["cc", "-Wall", "-Wextra", "-Werror", "-o", work / "ring", ROOT / "docs/examples/sim_allreduce.c", *flags, "-Wl,-rpath," + str(libdir)])
    if shutil.which("c++"):
        sh("echo '#include <verbena/sim.h>' | c++ -x c++ -fsyntax-only -Wall -Wextra -Werror %s -" % " ".join(flags[:1]))
    net = work / "ring.ini"
    net.write_text(RING)
    manual(where, "sim")

    def ring(*args):
        return int(re.search(r"(\d+) ps;", sh([work / "ring", *map(str, args)])).group(1))

    # A packet has BTH, RETH, immediate data and ICRC, an acknowledgement BTH, AETH and ICRC, all of them IP, UDP and Ethernet.
    byte, delay, packet, answer = 80, 500000, 4096 + 66 + 12 + 16 + 4 + 4, 66 + 12 + 4 + 4
    # The next part leaves behind the acknowledgement of the one before.
    steps = 14 * 2 * (delay + packet * byte) + 13 * answer * byte
    took = ring(net, 8 * 4096)
    check(took == steps + 2 * (delay + answer * byte), "not %d, but %d ps" % (steps + 2 * (delay + answer * byte), took))
    computed = ring(net, 8 * 4096, 1000)
    # It ends when the last acknowledgement has come, which takes longer than to compute.
    steps = 14 * 2 * (delay + packet * byte) + 13 * 1000000
    check(computed == steps + 2 * (delay + answer * byte), "with compute %d ps" % computed)
    sh([where / "bin/verbena", "sim", "-q", net, "--report", work / "graph"])
    graph = max(int(line.split(",")[6]) for line in (work / "graph/steps.csv").read_text().splitlines()[1:])
    took = ring(net, 1 << 20, 0, work / "program")
    check(took == graph, "a graph takes %d ps, the front end %d" % (graph, took))
    flows = [(work / d / "flows.csv").read_text().replace(",%s,0," % name, ",,0,") for d, name in (("graph", "w"), ("program", "program"))]
    check(flows[0] == flows[1], "the messages of a graph are not those of the front end")
    check((work / "program/report.html").is_file(), "the library writes no page")
    check(ring("incast", 1 << 17, 0, "--", "topology.k=4") > 0, "scenarios are not found beside the library")


def completion(env, where):
    """What bash offers for a command line, asked of the installed file."""
    for line, wanted in (("verbena s", {"stat", "sim"}), ("verbena sim inc", {"incast"}),
                         ("verbena run --set por", {"port="}), ("verbena run --p", {"--pcap", "--preload"}), ("verbena qps --r", {"--rates"}), ("verbena export --te", {"--textfile"}),
                         ("verbena sim --set switch.kmi", {"switch.kmin="}), ("verbena sdr model --id", {"--idle-fill"}), ("verbena run ibv_rc_pingp", {"ibv_rc_pingpong"}),
                         ("sdr_cp --scheme na", {"nack"}), ("sdr_cp --sch", {"--scheme"}), ("sdr_cp /etc/hos", {"/etc/hosts"})):
        words = line.split()
        script = """
            . /usr/share/bash-completion/bash_completion
            . %s/share/bash-completion/completions/%s
            compopt() { :; }
            COMP_LINE=%s; COMP_POINT=${#COMP_LINE}; COMP_WORDS=(%s); COMP_CWORD=%d
            _%s %s; printf '%%s\\n' "${COMPREPLY[@]}"
            """ % (where, words[0], shlex.quote(line), " ".join(words), len(words) - 1, words[0], words[0])
        offered = set(sh(["bash", "-c", script], env=env).split())
        check(wanted <= offered, "bash offers %s for '%s', not %s" % (sorted(offered), line, sorted(wanted)))


# ---- on a bare system ---------------------------------------------------------------------------

def node(path, minor):
    """A device for memory, as /dev/null is one."""
    os.mknod(path, stat.S_IFCHR, os.makedev(1, minor))
    os.chmod(path, 0o666)


class System:
    """A throw-away copy of a bare Debian: what is written to it is gone at the end."""

    def __init__(self, bare, work, name):
        self.upper, self.root = work / (name + "-upper"), work / (name + "-root")
        for d in (self.upper, self.root, work / (name + "-work")):
            d.mkdir()
        sh(["mount", "-t", "overlay", "overlay", "-o", "lowerdir=%s,upperdir=%s,workdir=%s"
            % (bare, self.upper, work / (name + "-work")), self.root])
        for kind in ("proc", "sysfs"):
            sh(["mount", "-t", kind, kind, self.root / {"proc": "proc", "sysfs": "sys"}[kind]])
        sh(["mount", "-t", "tmpfs", "tmpfs", self.root / "dev"])
        # Nodes of its own: what root does there to a device's owner, mode or times is not done to the machine's.
        for device, minor in (("null", 3), ("zero", 5), ("random", 8), ("urandom", 9)):
            node(self.root / "dev" / device, minor)
        (self.root / "dev/shm").mkdir(mode=0o1777)
        shutil.copy("/etc/resolv.conf", self.root / "etc/resolv.conf")
        (self.root / "etc/hosts").write_text("127.0.0.1 localhost\n")
        shutil.copytree("/etc/apt/apt.conf.d", self.root / "etc/apt/apt.conf.d", dirs_exist_ok=True)

    def run(self, text, network=False, user=None, cwd="/root", env=None):
        """A shell's text in there; without the host's network it has a loopback interface of its own."""
        command = ["chroot"] + (["--userspec=%s" % user] if user else []) + [
            str(self.root), "env", "-i", "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/tmp", "DEBIAN_FRONTEND=noninteractive",
            *["%s=%s" % kv for kv in (env or {}).items()], "sh", "-ec", "cd %s\n%s" % (cwd, text)]
        if not network:
            command = ["unshare", "-n", "sh", "-c", "ip link set lo up; exec \"$@\"", "sh"] + command
        return sh(command)

    def files(self):
        """What was written over the bare system, but for the places where package managers keep notes."""
        kept = re.compile(r"var/(lib/(dpkg|apt)|cache|log)|(dev|proc|sys|tmp|run)(/|$)|etc/(ld.so.cache|hosts|resolv.conf|apt/apt.conf.d)")
        names = (p.relative_to(self.upper).as_posix() for p in self.upper.rglob("*") if not p.is_dir())
        return {n for n in names if not kept.match(n)}


def deb(work):
    for tool in ("lintian", "dpkg-buildpackage"):
        if not shutil.which(tool):
            skip("needs " + tool)
    sh([ROOT / "cmake/deb.sh", DEB.parent])
    faults = sh(["lintian", "--allow-root", "--fail-on", "error", DEB])
    print("lintian:", faults.strip() or "nothing")


def needs(case, *tools):
    """For what makes a bare system, in a namespace of mounts that ends with this process."""
    if os.geteuid():
        skip("needs root")
    for tool in ("mmdebstrap", "unshare", *tools):
        if not shutil.which(tool):
            skip("needs " + tool)
    if not DEB.is_file() and case != "source":
        skip("there is no %s, which the test packaging/deb makes" % DEB)
    if os.environ.get("PACKAGING_MOUNTS") != "own":
        os.execvpe("unshare", ["unshare", "-m", sys.executable, "-B", __file__, case], {**os.environ, "PACKAGING_MOUNTS": "own"})


def bare_system(release, to):
    """A release's smallest system with apt, a folder or a .tar. Debian's come from where this machine has its own from."""
    sources = []
    if release in ("bookworm", "trixie"):
        here = next((p for p in ("/etc/apt/sources.list.d/debian.sources", "/etc/apt/sources.list")
                     if os.path.exists(p) and os.path.getsize(p)), None)
        if not here:
            skip("no Debian in /etc/apt/sources.list*")
        own = re.search(r"VERSION_CODENAME=(\w+)", pathlib.Path("/etc/os-release").read_text()).group(1)
        copy = to.parent / (release + pathlib.Path(here).suffix)
        copy.write_text(re.sub(r"\b%s\b" % own, release, pathlib.Path(here).read_text()))
        sources = [copy]
    elif not os.path.exists("/usr/share/keyrings/ubuntu-archive-keyring.gpg"):
        skip("this machine has no keys of Ubuntu's archive (ubuntu-keyring)")
    r = subprocess.run(["mmdebstrap", "--quiet", "--variant=apt", release, to, *sources], stderr=subprocess.PIPE, text=True)
    if r.returncode:
        skip("mmdebstrap could not make a bare %s: no package registry?\n%s" % (release, r.stderr[-1000:]))
    return to


def bare(work):
    needs("bare")
    system = bare_system("bookworm", work / "bare")
    by_hand(System(system, work, "hand"))
    for name, recipe, jobs in (("github", github, yaml_load("github-actions.yml")["jobs"]),
                               ("gitlab", gitlab, yaml_load("gitlab-ci.yml")), ("docker", docker, {"image": None})):
        for job in jobs:
            recipe(System(system, work, name + "-" + job), jobs[job])
            print(name, job, "recipe: ok")


def release(work, name):
    needs(name)
    by_hand(System(bare_system(name, work / "bare"), work, "hand"))


def source(work):
    needs("source")
    system = System(bare_system("bookworm", work / "bare"), work, "source")
    tree = system.root / "root/verbena"
    shutil.copytree(ROOT, tree, ignore=shutil.ignore_patterns("build*", ".git", "__pycache__"))
    outputs, said = act(system, {"command": "verbena devices"}, "/root/verbena")
    check(outputs["verbena"] == "/tmp/temp/verbena/bin/verbena" and "verbena0" in said, said)


def by_hand(system):
    shutil.copy(DEB, system.root / "root/verbena.deb")
    depends = sh(["dpkg-deb", "-f", DEB, "Depends"]).strip()
    system.run("apt-get update && apt-get install -y --no-install-recommends ibverbs-utils && "
               "apt-get satisfy -y --no-install-recommends " + shlex.quote(depends), network=True)
    before = system.files()
    system.run("dpkg -i verbena.deb")
    check(len(system.files() - before) > 10, "dpkg -i has installed nothing")
    system.run(PINGPONG)
    check("incast" in system.run("verbena sim --list"), "no scenarios")
    check("--rate" in system.run("sdr_cp --help"), "sdr_cp does not start")
    system.run("dpkg --purge verbena")
    left = system.files() - before
    check(not left, "left behind after purge: " + " ".join(sorted(left)))
    print("dpkg -i, verbena run ibv_rc_pingpong, dpkg --purge: ok")


def yaml_load(name):
    import yaml
    return yaml.safe_load((ROOT / "docs/ci" / name).read_text())


def checkout(system):
    (system.root / "root/ci").mkdir()
    shutil.copy(DEB, system.root / "root/ci/verbena.deb")
    shutil.copy(ROOT / "tests/programs/list.c", system.root / "root/ci/program.c")
    shutil.copy(ROOT / "docs/ci/both-ends.sh", system.root / "root/ci")


def needs_registry(text):
    return "apt-get" in text


def github(system, job):
    from runner import each_of, expand
    checkout(system)
    steps = [s for s in job["steps"] if "run" in s or s.get("uses") == "./ci/verbena"]
    check(len(steps) >= 2, "the GitHub recipe has lost its steps")
    for known in each_of(job):
        for s in steps:
            if "uses" in s:
                act(system, {k: expand(v, known) for k, v in s["with"].items()})
            else:
                system.run(s["run"], network=needs_registry(s["run"]), env=s.get("env"))


def act(system, inputs, where="/root/ci/verbena"):
    """action.yml's steps in the system, each with the network that it needs."""
    from runner import Action
    temp = system.root / "tmp/temp"
    temp.mkdir(exist_ok=True)

    def inside(path):
        return "/" + path.relative_to(system.root).as_posix()

    def files(name):
        (temp / name).write_text("")
        return inside(temp / name), (temp / name).read_text

    def execute(shell, lines, env):
        (temp / "step").write_text(lines)
        return 0, system.run(shlex.join([*shell, inside(temp / "step")]), network=needs_registry(lines), env=env)

    return Action(ROOT / "action.yml", where).run(inputs, execute, files, "/usr/sbin:/usr/bin:/sbin:/bin", inside(temp))


def gitlab(system, job):
    checkout(system)
    system.run("\n".join(job["before_script"]), network=True)
    system.run("\n".join(job["script"]))


def docker(system, _):
    shutil.copy(DEB, system.root / "root/verbena.deb")
    user, entry, command = None, None, None
    for line in (ROOT / "docs/ci/Dockerfile").read_text().splitlines():
        word, _, rest = line.partition(" ")
        if word == "COPY":
            system.run("cp " + rest)
        elif word == "RUN":
            system.run(rest, network=needs_registry(rest))
        elif word == "USER":
            user = rest
        elif word == "ENTRYPOINT":
            entry = re.findall(r'"([^"]*)"', rest)
        elif word == "CMD":
            command = re.findall(r'"([^"]*)"', rest)
    check(user and entry and command, "the Dockerfile has lost USER, ENTRYPOINT or CMD")
    out = system.run(shlex.join(entry + command), user=user, cwd="/")
    check("verbena0" in out, "no device in the container:\n" + out)
    system.run(PINGPONG, user=user, cwd="/")


# ---- in containers ------------------------------------------------------------------------------

class Podman:
    """Podman with a store of its own, in a network of its own that nothing else on this machine has."""

    # A sandbox may not raise limits nor write to cgroups; containers need neither.
    RUN = ["--cgroups=disabled", "--ulimit", "nofile=1024:1024", "--ulimit", "nproc=1000:1000"]

    def __init__(self, work):
        self.base = ["podman", "--root", work / "store", "--runroot", work / "run", "--storage-driver", "vfs",
                     "--cgroup-manager", "cgroupfs", "--events-backend", "file"]
        subprocess.run("umount -R /sys/fs/cgroup; mount -t cgroup2 none /sys/fs/cgroup", shell=True, stderr=subprocess.DEVNULL)

    def __call__(self, *args):
        return sh([*self.base, *args])

    def run(self, options, *command):
        return self(*self.words(options, *command))

    def words(self, options, *command):
        return ["run", "--rm", *self.RUN, *options, "verbena", *command]

    def both(self, server, client):
        """ibv_rc_pingpong in two containers of one network, in which there is nothing else."""
        text = "ip link set lo up; %s & until %s; do sleep 0.5; done; wait $!" % tuple(
            shlex.join(map(str, [*self.base, *self.words(options, "ibv_rc_pingpong", "-g", "0", "-c", *to)]))
            for options, to in ((server, []), (client, ["127.0.0.1"])))
        sh(["unshare", "-n", "sh", "-c", text])


def own_null(work):
    """crun gives the user of a container the file that is its standard input, for good, so it is not the machine's."""
    null = work / "null"
    node(null, 3)
    sh(["mount", "--bind", null, "/dev/null"])


def podman(work):
    needs("podman", "podman")
    if "OWN_MOUNTS" not in os.environ:
        skip("needs root")
    own_null(work)
    p = Podman(work)
    if subprocess.run([*p.base, "info"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE).returncode:
        skip("podman does not start here")
    system = bare_system("bookworm", work / "bare.tar")
    p("import", system, "docker.io/library/debian:12")
    system.unlink()
    shutil.copytree(ROOT / "docs/ci", work / "ci")
    shutil.copy(DEB, work / "ci")
    p("build", "--isolation", "chroot", "--network", "host", "-v", "/etc/apt/apt.conf.d:/etc/apt/apt.conf.d:ro", "-t", "verbena", work / "ci")
    ends = ["sh", "-c", PINGPONG.replace("verbena run ", "")]
    least = ["--cap-drop", "all", "--security-opt", "no-new-privileges", "--read-only", "--tmpfs", "/tmp"]
    for name, options in (("its own network", ["--network", "none"]), ("nothing that can be left out", ["--network", "none", *least]),
                          ("a user namespace", ["--network", "none", "--uidmap", "0:100000:65536"])):
        check("verbena0" in p.run(options), "no device with %s" % name)
        p.run(options, *ends)
        print(name + ": ok")
    host = ["--network", "host", *least]
    p.both([*host, "--user", "1001", "-e", "VERBENA_ADDRESS=127.0.0.2"], [*host, "--user", "1002", "-e", "VERBENA_ADDRESS=127.0.0.3"])
    print("the host's network, two users, an address each: ok")
    p.both(host, host)
    print("the host's network, one user: ok")


def skip(why):
    print("skipped: " + why)
    sys.exit(SKIP)


def main():
    cases = {"prefix": prefix, "deb": deb, "bare": bare, "source": source, "podman": podman,
             **{r: functools.partial(release, name=r) for r in ("trixie", "noble", "jammy")}}
    if len(sys.argv) != 2 or sys.argv[1] not in cases:
        sys.exit(__doc__)
    if sys.argv[1] == "podman" and not os.geteuid() and "OWN_MOUNTS" not in os.environ:
        os.execvpe("unshare", ["unshare", "--mount", sys.executable, "-B", *sys.argv], {**os.environ, "OWN_MOUNTS": "yes"})
    with tempfile.TemporaryDirectory(prefix="verbena-packaging-", ignore_cleanup_errors=True) as work:
        os.chmod(work, 0o755)
        try:
            cases[sys.argv[1]](pathlib.Path(work))
        finally:
            subprocess.run("awk '$2 ~ \"^%s\" { print $2 }' /proc/self/mounts | sort -r | xargs -r umount -l" % work, shell=True)


main()
