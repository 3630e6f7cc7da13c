#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""
Installs Verbena as its users do and runs it from there.

  package.py prefix   `cmake --install` into a folder; program, libraries, manual, scenarios, completion, dissector
  package.py bare     the Debian package on a bare Debian 12 (needs root and a package registry): lintian, install, run,
                      purge; then the commands of docs/ci, as they stand

The exit status is 0, 1 (why is printed) or 77 (cannot be had here).
"""
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("BUILD_DIR") or ROOT / "build")
SKIP = 77
TIME_S = 300
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
                 "share/man/man3/verbena_sdr_recv_post.3", "include/verbena/sdr.h", "share/verbena/scenarios/incast.ini", "share/bash-completion/completions/verbena",
                 "share/bash-completion/completions/sdr_cp"):
        check((where / name).is_file(), "not installed: " + name)
    check((libdir / "wireshark/plugins/veroce.lua").is_file(), "not installed: the dissector")
    library(where, libdir, work)
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
    if shutil.which("mandoc"):
        sh(["mandoc", "-T", "lint", "-W", "warning", where / "share/man/man3/verbena_sdr.3"])
    page = (where / "share/man/man3/verbena_sdr.3").read_text()
    check(not re.search("^@", page, re.M), "verbena_sdr(3) lacks what the header says")
    for call in re.findall(r"\b(verbena_sdr_\w+)\(", (where / "include/verbena/sdr.h").read_text()):
        check("It Fn " + call in page, "verbena_sdr(3) does not tell of " + call)


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
        for device in ("null", "zero", "random", "urandom"):
            (self.root / "dev" / device).touch()
            sh(["mount", "--bind", "/dev/" + device, self.root / "dev" / device])
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


def bare(work):
    if os.geteuid():
        skip("needs root")
    for tool in ("mmdebstrap", "lintian", "dpkg-buildpackage", "unshare"):
        if not shutil.which(tool):
            skip("needs " + tool)
    # All mounts are in a namespace that ends with this process.
    if os.environ.get("PACKAGING_MOUNTS") != "own":
        os.execvpe("unshare", ["unshare", "-m", sys.executable, "-B", __file__, "bare"],
                   {**os.environ, "PACKAGING_MOUNTS": "own"})
    sh([ROOT / "cmake/deb.sh", work / "deb"])
    deb = work / "deb/verbena.deb"
    faults = sh(["lintian", "--allow-root", "--fail-on", "error", deb])
    print("lintian:", faults.strip() or "nothing")
    sources = [p for p in ("/etc/apt/sources.list.d/debian.sources", "/etc/apt/sources.list") if os.path.exists(p)]
    if subprocess.run(["mmdebstrap", "--quiet", "--variant=apt", "bookworm", work / "bare", *sources[:1]]).returncode:
        skip("mmdebstrap could not make a bare system: no package registry?")
    by_hand(System(work / "bare", work, "hand"), deb)
    for name, recipe, jobs in (("github", github, yaml_load("github-actions.yml")["jobs"]),
                               ("gitlab", gitlab, yaml_load("gitlab-ci.yml")), ("docker", docker, {"image": None})):
        for job in jobs:
            recipe(System(work / "bare", work, name + "-" + job), deb, jobs[job])
            print(name, job, "recipe: ok")


def by_hand(system, deb):
    shutil.copy(deb, system.root / "root/verbena.deb")
    system.run("apt-get update && apt-get install -y --no-install-recommends ibverbs-utils libisal2 libinih1 libpcap0.8",
               network=True)
    before = system.files()
    system.run("dpkg -i verbena.deb")
    check(len(system.files() - before) > 10, "dpkg -i has installed nothing")
    system.run(PINGPONG)
    system.run("dpkg --purge verbena")
    left = system.files() - before
    check(not left, "left behind after purge: " + " ".join(sorted(left)))
    print("dpkg -i, verbena run ibv_rc_pingpong, dpkg --purge: ok")


def yaml_load(name):
    import yaml
    return yaml.safe_load((ROOT / "docs/ci" / name).read_text())


def checkout(system, deb):
    (system.root / "root/ci").mkdir()
    shutil.copy(deb, system.root / "root/ci/verbena.deb")
    shutil.copy(ROOT / "tests/programs/list.c", system.root / "root/ci/program.c")
    shutil.copy(ROOT / "docs/ci/both-ends.sh", system.root / "root/ci")


def needs_registry(text):
    return "apt-get" in text


def github(system, deb, job):
    from runner import each_of, expand
    checkout(system, deb)
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
    temp = pathlib.Path(tempfile.mkdtemp(dir=system.root / "tmp"))

    def inside(path):
        return "/" + path.relative_to(system.root).as_posix()

    def files(name):
        (temp / name).write_text("")
        return inside(temp / name), (temp / name).read_text

    def execute(shell, lines, env):
        (temp / "step").write_text(lines)
        return 0, system.run(shlex.join([*shell, inside(temp / "step")]), network=needs_registry(lines), env=env)

    return Action(ROOT / "action.yml", where).run(inputs, execute, files, "/usr/sbin:/usr/bin:/sbin:/bin", inside(temp))


def gitlab(system, deb, job):
    checkout(system, deb)
    system.run("\n".join(job["before_script"]), network=True)
    system.run("\n".join(job["script"]))


def docker(system, deb, _):
    shutil.copy(deb, system.root / "root/verbena.deb")
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


def skip(why):
    print("skipped: " + why)
    sys.exit(SKIP)


def main():
    cases = {"prefix": prefix, "bare": bare}
    if len(sys.argv) != 2 or sys.argv[1] not in cases:
        sys.exit(__doc__)
    with tempfile.TemporaryDirectory(prefix="verbena-packaging-", ignore_cleanup_errors=True) as work:
        os.chmod(work, 0o755)
        try:
            cases[sys.argv[1]](pathlib.Path(work))
        finally:
            subprocess.run("awk '$2 ~ \"^%s\" { print $2 }' /proc/self/mounts | sort -r | xargs -r umount -l" % work, shell=True)


main()
