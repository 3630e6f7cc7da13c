# SPDX-License-Identifier: BSD-2-Clause
"""
Runs two ends of an unmodified verbs program on Verbena, in a place: a pair of addresses, perhaps in
two network namespaces and as another user. Everything has a time limit. Nothing that was started or made
outlives this process, not even when it is killed: tests/apart.c sees to that.

A test program calls main() with its cases. The exit status is 0, 1 (a case failed; why is printed)
or 77 (the place cannot be had here).
"""
import atexit
import copy
import json
import os
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

APART = os.environ.get("APART") == "yes"  # in namespaces of our own, as apart.c says
OWN = "own"  # what `ip netns` calls our network then
HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
BUILD = os.environ.get("BUILD_DIR") or os.path.join(ROOT, "build")
NOBODY = 65534
TIME_S = 120  # for one run of one pair, unless it says otherwise: it is for what hangs, and not for what is slow
NOTICES_S = 10  # within that a program that is well notices that its peer is gone
SKIP = 77

# Words that no program prints when all is well.
COMPLAINT = re.compile(
    r"couldn't|could not|failed|failure|invalid|unexpected|unable|error|abort|segmentation|"
    r"parse|sanitizer|assert|not supported|unsupported|mismatch|timed? ?out", re.I)
# ... but these are no complaints.
HARMLESS = re.compile(r"Device not recognized to implement inline|Conflicting CPU frequency|"
                      r"BW peak won't be measured|TIMEOUT +:|timeout +:", re.I)

PERFTEST = re.compile(r"ib_(send|write|read|atomic)_(bw|lat)$")


class Failure(Exception):
    pass


class TooSoon(Failure):
    """A program that runs for a given time ended before it was looked at."""


class Skip(Exception):
    pass


def check(condition, text):
    if not condition:
        raise Failure(text)


# ---- processes ------------------------------------------------------------------------------

started, folders = [], []


def clear():
    for p in list(started):
        p.kill()


@atexit.register
def leave():
    clear()
    for path in folders:
        shutil.rmtree(path, ignore_errors=True)


def kill_group(group):
    try:
        os.killpg(group, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        pass


def folder():
    """A directory that anybody may write to, gone when we are."""
    path = tempfile.mkdtemp(prefix="verbena-test-")
    os.chmod(path, 0o1777)
    folders.append(path)
    return path


def clean_env(extra=None):
    env = {k: v for k, v in os.environ.items()
           if not k.startswith(("VERBENA_", "LD_", "XDG_", "PYENV"))}
    env["LC_ALL"] = "C"
    env.update(extra or {})
    return env


class Process:
    """One program in its own process group; stdout and stderr together go to a file."""

    def __init__(self, command, env=None):
        self.command = [str(c) for c in command]
        self.log = tempfile.TemporaryFile()
        self.begun = time.monotonic()
        self.proc = subprocess.Popen(self.command, stdin=subprocess.DEVNULL, stdout=self.log,
                                     stderr=subprocess.STDOUT, env=clean_env(env),
                                     cwd="/", start_new_session=True)
        self.pid = self.proc.pid
        started.append(self)

    def output(self):
        size = os.fstat(self.log.fileno()).st_size
        return os.pread(self.log.fileno(), size, 0).decode(errors="replace")

    def wait(self, seconds, peer=None):
        """The exit status; None when it still runs after that many seconds, or somewhat longer than a peer that has failed."""
        end = time.monotonic() + seconds
        while True:
            left = max(end - time.monotonic(), 0.01)
            try:
                return self.proc.wait(min(left, 1) if peer else left)
            except subprocess.TimeoutExpired:
                if time.monotonic() >= end:
                    return None
            if peer and peer.proc.poll():
                peer, end = None, min(end, time.monotonic() + NOTICES_S)

    def running(self):
        return self.proc.poll() is None

    def kill(self):
        kill_group(self.pid)
        self.proc.wait()
        if self in started:
            started.remove(self)

    def signal(self, number):
        os.killpg(self.pid, number)

    def cpu_s(self):
        """Seconds on a CPU, all threads."""
        total = 0
        for tid in os.listdir("/proc/%d/task" % self.pid):
            with open("/proc/%d/task/%s/schedstat" % (self.pid, tid)) as f:
                total += int(f.read().split()[0])
        return total / 1e9

    def threads(self):
        """What each thread does, as far as the kernel tells: for what hangs."""
        lines = []
        for tid in sorted(os.listdir("/proc/%d/task" % self.pid), key=int):
            at = "/proc/%d/task/%s/" % (self.pid, tid)
            said = [tid]
            for name in ("comm", "stat", "wchan", "syscall", "schedstat", "stack"):
                try:
                    with open(at + name) as f:
                        text = f.read().strip()
                except OSError:
                    continue
                said.append("%s %s" % (name, text.rsplit(")", 1)[1].split()[0] if name == "stat" else text.replace("\n", ", ")))
            lines.append("; ".join(said))
        return lines

    def listens(self, port):
        """Whether a TCP socket listens on that port in the network namespace of the process."""
        for table in ("tcp", "tcp6"):
            try:
                with open("/proc/%d/net/%s" % (self.pid, table)) as f:
                    lines = f.readlines()[1:]
            except OSError:
                continue
            for line in lines:
                word = line.split()
                if word[3] == "0A" and int(word[1].rsplit(":", 1)[1], 16) == port:
                    return True
        return False

    def wait_listen(self, port, seconds=60):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if self.listens(port):
                return
            check(self.running(), "the server ended before it listened (status %s): %s\n%s"
                  % (self.proc.returncode, " ".join(self.command), self.output()))
            time.sleep(0.01)
        raise Failure("the server does not listen after %d s: %s\n%s"
                      % (seconds, " ".join(self.command), self.output()))

    def wait_text(self, pattern, seconds=60):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if re.search(pattern, self.output()):
                return
            check(self.running(), "it ended too early (status %s): %s\n%s"
                  % (self.proc.returncode, " ".join(self.command), self.output()))
            time.sleep(0.01)
        raise Failure("no /%s/ after %d s from %s\n%s"
                      % (pattern, seconds, " ".join(self.command), self.output()))


def tcp_port():
    """A free one below the ephemeral range, so that no connection takes it meanwhile."""
    for _ in range(200):
        port = random.randrange(20000, 32000)
        with socket.socket(socket.AF_INET6) as s:
            try:
                s.bind(("::", port))
                return port
            except OSError:
                continue
    raise Failure("no free TCP port")


# ---- places ---------------------------------------------------------------------------------

def apart():
    """Starts this program again, apart from all others, unless it is."""
    if "APART" not in os.environ:
        os.execv(os.path.join(BUILD, "tests/apart"), ["apart"] + sys.orig_argv)


def need_network():
    if not APART:
        raise Skip("needs namespaces, which apart.c could not get")
    if not shutil.which("ip"):
        raise Skip("needs ip")


def is_root():
    """Not that of a user namespace, whose one user it is."""
    with open("/proc/self/uid_map") as f:
        return os.geteuid() == 0 and any(int(first) <= NOBODY < int(first) + int(n) for first, _, n in map(str.split, f))


def need_users():
    if not is_root():
        raise Skip("needs a second user, whom only root's processes can become")
    need_network()  # that of nobody else, since a UDP port belongs to one user at a time
    if not shutil.which("setpriv"):
        raise Skip("needs setpriv")


def sh(*words):
    r = subprocess.run(words, capture_output=True, text=True)
    check(r.returncode == 0, "%s: %s" % (" ".join(words), r.stderr.strip()))


class Place:
    """
    Where a pair runs. Names: lo4 lo6 nobody4 nobody6 veth1500-4 veth1500-6 veth9000-4 veth9000-6, and
    ecmp1500-4 ecmp1500-6: the same over four veth pairs, among which the kernels choose by UDP port; twin1500-4 twin1500-6: with
    a second veth pair in the same subnet, whose addresses are those of the GIDs; hosts4 hosts6: three on a bridge, and the
    programs, which begin at the first two, meet over a link beside it; udp4: as lo4, but
    not through memory; shm4: as lo4, with memory asked for.
    """

    def __init__(self, name):
        self.name = name
        self.ipv6 = name.endswith("6")
        self.user = None
        self.spaces = [OWN if APART else None] * 2
        self.links = []  # pairs of device names
        self.env = [{}, {}]  # of every program at that end
        self.addresses = ["::1" if self.ipv6 else "127.0.0.1"] * 2
        # The address that the client connects to. Debian's servers listen on the first address that getaddrinfo
        # gives them, 0.0.0.0, so over IPv6 too the two ends meet by IPv4; the GIDs say what carries.
        self.meet = "127.0.0.1"
        self.mtu = 65536
        self.quick_clock = False
        self._gids = {}
        self.verbena = os.path.join(BUILD, "verbena")
        if not os.access(self.verbena, os.X_OK):
            raise Failure("%s: not built" % self.verbena)
        if name.startswith("nobody"):
            self.become_nobody()
        elif name.startswith("veth"):
            self._veth(int(name[4:].split("-")[0]))
        elif name.startswith("ecmp"):
            self._ecmp(int(name[4:].split("-")[0]))
        elif name.startswith("twin"):
            self._twin(int(name[4:].split("-")[0]))
        elif name.startswith("hosts"):
            self._hosts()
        elif name in ("udp4", "shm4"):
            self.env = [{"VERBENA_SHM": "off" if name == "udp4" else "on"}] * 2

    def other_user(self):
        """The same place, for programs of another user."""
        other = copy.copy(self)
        other._gids = {}
        other.become_nobody()
        return other

    def become_nobody(self):
        need_users()
        self.user = NOBODY
        if subprocess.run(self._as_user(["test", "-x", self.verbena])).returncode:
            ours = os.path.join(folder(), "build")
            os.mkdir(ours)
            shutil.copy(self.verbena, ours)
            shutil.copytree(os.path.join(BUILD, "lib"), os.path.join(ours, "lib"), symlinks=True)
            sh("chmod", "-R", "a+rX", ours)
            self.verbena = os.path.join(ours, "verbena")

    def _veth(self, mtu):
        need_network()
        self.mtu = mtu
        self.spaces = a, b = "a", "b"
        for space in self.spaces:
            sh("ip", "netns", "add", space)
            sh("ip", "-n", space, "link", "set", "lo", "up")
            # Else the link-local addresses are duplicates, perhaps, for two seconds, in which the indices of GIDs change.
            sh("ip", "netns", "exec", space, "sysctl", "-q", "-w", "net.ipv6.conf.all.accept_dad=0", "net.ipv6.conf.default.accept_dad=0")
        ends = ["vrba", "vrbb"]
        sh("ip", "link", "add", ends[0], "mtu", str(mtu), "netns", a, "type", "veth",
           "peer", "name", ends[1], "mtu", str(mtu), "netns", b)
        for i, space in enumerate((a, b)):
            self._address(space, ends[i], "10.77.0.%d/24" % (i + 1), "fd77::%d/64" % (i + 1))
        self.links = [ends]
        self.addresses = ["fd77::1", "fd77::2"] if self.ipv6 else ["10.77.0.1", "10.77.0.2"]
        self.meet = "10.77.0.1"
        self._wait_up(a, ends[0])
        self._wait_up(b, ends[1])

    @staticmethod
    def _address(space, device, *addresses):
        for address in addresses:
            sh("ip", "-n", space, "addr", "add", address, "dev", device, *(["nodad"] if ":" in address else []))
        sh("ip", "-n", space, "link", "set", device, "up")

    def _ecmp(self, mtu):
        """
        The addresses of the GIDs are on devices of their own, as those of routers are, and four links
        lead from one to the other. The programs meet over a link that none of this touches.
        """
        self._veth(mtu)
        self.links = []
        hops = [([], []), ([], [])]  # of each end, for IPv4 and IPv6
        for n in range(4):
            ends = ["vrb%d%s" % (n, letter) for letter in "ab"]
            sh("ip", "link", "add", ends[0], "mtu", str(mtu), "netns", self.spaces[0], "type", "veth",
               "peer", "name", ends[1], "mtu", str(mtu), "netns", self.spaces[1])
            for i, space in enumerate(self.spaces):
                self._address(space, ends[i], "10.78.%d.%d/24" % (n, i + 1), "fd78:%d::%d/64" % (n, i + 1))
                hops[i][0].append(["nexthop", "via", "10.78.%d.%d" % (n, 2 - i), "dev", ends[i]])
                hops[i][1].append(["nexthop", "via", "fd78:%d::%d" % (n, 2 - i), "dev", ends[i]])
            self.links.append(ends)
        homes = [("10.79.0.%d" % (i + 1), "fd79::%d" % (i + 1)) for i in (0, 1)]
        for i, space in enumerate(self.spaces):
            home = ["vrbh%d" % k for k in (0, 1)]
            sh("ip", "-n", space, "link", "add", home[0], "mtu", str(mtu), "type", "veth",
               "peer", "name", home[1], "mtu", str(mtu))
            sh("ip", "-n", space, "link", "set", home[1], "up")
            self._address(space, home[0], homes[i][0] + "/32", homes[i][1] + "/128")
            for device in [ends[i] for ends in self.links] + home:
                self._wait_up(space, device)
            # So that the indices of the GIDs stay as they are while links come and go.
            self.env[i] = {"VERBENA_INTERFACES": home[0]}
            for v6 in (0, 1):
                sh("ip", "-n", space, "route", "add", homes[1 - i][v6], "src", homes[i][v6], *sum(hops[i][v6], []))
            sh("ip", "netns", "exec", space, "sysctl", "-q", "-w", "net.ipv4.fib_multipath_hash_policy=1",
               "net.ipv6.fib_multipath_hash_policy=1")
        self.addresses = [home[self.ipv6] for home in homes]

    def _twin(self, mtu):
        """The programs meet over the first link, which is the one that the kernels' routing tables choose."""
        self._veth(mtu)
        ends = ["vrb2a", "vrb2b"]
        sh("ip", "link", "add", ends[0], "mtu", str(mtu), "netns", self.spaces[0], "type", "veth",
           "peer", "name", ends[1], "mtu", str(mtu), "netns", self.spaces[1])
        for i, space in enumerate(self.spaces):
            # So that the indices of the GIDs stay as they are while links come and go.
            sh("ip", "netns", "exec", space, "sysctl", "-q", "-w", "net.ipv6.conf.all.keep_addr_on_down=1")
            self._address(space, ends[i], "10.77.0.%d/24" % (i + 11), "fd77::%d/64" % (i + 11))
        for i, space in enumerate(self.spaces):
            self._wait_up(space, ends[i])
        self.links.append(ends)
        self.addresses = ["fd77::11", "fd77::12"] if self.ipv6 else ["10.77.0.11", "10.77.0.12"]

    def _hosts(self):
        """The second one's GIDs are those of an address that may go to the third, and each has another in that network."""
        need_network()
        self.mtu = 1500
        self.spaces = ["a", "b"]
        r = subprocess.run(["ip", "link", "add", "vrbr", "type", "bridge", "forward_delay", "0"], capture_output=True, text=True)
        if r.returncode:
            raise Skip("needs a bridge: " + r.stderr.strip())
        sh("ip", "link", "set", "vrbr", "up")
        for i, space in enumerate("abc"):
            sh("ip", "netns", "add", space)
            sh("ip", "-n", space, "link", "set", "lo", "up")
            sh("ip", "netns", "exec", space, "sysctl", "-q", "-w", "net.ipv6.conf.all.accept_dad=0", "net.ipv6.conf.default.accept_dad=0")
            sh("ip", "link", "add", "vrbs" + space, "type", "veth", "peer", "name", "vrb" + space, "netns", space)
            sh("ip", "link", "set", "vrbs" + space, "master", "vrbr", "up")
            self._address(space, "vrb" + space, "10.77.0.%d/16" % (i + 1), "fd77::%d/64" % (i + 1))
            self._wait_up(space, "vrb" + space)
        # Another network, so that it is nobody's secondary address, and goes alone.
        self._address("b", "vrbb", "10.77.0.9/24", "fd77::9/64")
        sh("ip", "link", "add", "vrbm", "netns", "a", "type", "veth", "peer", "name", "vrbn", "netns", "b")
        for i, (space, device) in enumerate((("a", "vrbm"), ("b", "vrbn"))):
            self._address(space, device, "10.78.0.%d/24" % (i + 1))
        self._wait_up("a", "vrbm")
        self.addresses = ["fd77::1", "fd77::9"] if self.ipv6 else ["10.77.0.1", "10.77.0.9"]
        self.meet = "10.78.0.1"

    @staticmethod
    def _wait_up(space, device):
        end = time.monotonic() + 5
        while time.monotonic() < end:
            r = subprocess.run(["ip", "-n", space, "-j", "addr", "show", "dev", device],
                               capture_output=True, text=True)
            if "LOWER_UP" in r.stdout and "tentative" not in r.stdout:
                return
            time.sleep(0.02)
        raise Failure("%s does not come up" % device)

    def _as_user(self, command):
        if self.user is None:
            return command
        return ["setpriv", "--reuid=%d" % self.user, "--regid=%d" % self.user, "--clear-groups",
                "--no-new-privs"] + command

    def wrap(self, end, command):
        """The command line that runs command at end 0 (server) or 1 (client) of this place."""
        command = self._as_user(command)
        if self.spaces[end] not in (None, OWN):
            command = ["ip", "netns", "exec", self.spaces[end]] + command
        return command

    def start(self, end, command, env=None):
        """command, a list, under `verbena run`."""
        return Process(self.wrap(end, [self.verbena, "run"] + [str(c) for c in command]),
                       {**self.env[end], **self.clock_of(command[0]), **(env or {})})

    def clock_of(self, program):
        """
        perftest spins for a fifth of a second at each end to measure the processor's frequency, the latency programs twice:
        in a test with a clock that runs sixteen times as fast. Then its rates are so many times too low.
        """
        if not self.quick_clock or self.user is not None or not PERFTEST.match(str(program)):
            return {}
        return {"LD_PRELOAD": os.path.join(BUILD, "tests/programs/libquick_clock.so")}

    def tool(self, end, *words, seconds=60):
        """`verbena WORDS`: its standard output; it must end with status 0."""
        r = subprocess.run(self.wrap(end, [self.verbena] + list(words)), capture_output=True, text=True,
                           timeout=seconds, env=clean_env(self.env[end]), cwd="/")
        check(r.returncode == 0, "verbena %s: status %s\n%s%s"
              % (" ".join(words), r.returncode, r.stdout, r.stderr))
        return r.stdout

    def run(self, end, command, seconds=60, env=None, peer=None):
        """(status, output) of one program; status None when it did not end in time."""
        p = self.start(end, command, env)
        status = p.wait(seconds, peer)
        out = p.output()
        p.kill()
        return status, out

    def gid_index(self, end):
        """The index of this end's address, as ibv_devinfo prints it."""
        if self.spaces[0] == self.spaces[1]:
            end = 0  # both see the same addresses
        if end not in self._gids:
            status, out = self.run(end, ["ibv_devinfo", "-v"])
            check(status == 0, "ibv_devinfo -v: status %s\n%s" % (status, out))
            want = self.addresses[end] if self.ipv6 else "::ffff:" + self.addresses[end]
            for index, gid in re.findall(r"GID\[ *(\d+)\]:\s+(\S+?),? ", out):
                if same_address(gid, want):
                    self._gids[end] = int(index)
                    break
            else:
                raise Failure("ibv_devinfo -v shows no GID %s:\n%s" % (want, out))
        return self._gids[end]

    def path_mtu(self):
        """The largest IB MTU that fits: IP, UDP, BTH, RETH or AtomicETH and ImmDt, ICRC."""
        room = self.mtu - (40 if self.ipv6 else 20) - 8 - 12 - 28 - 4 - 4
        return max(m for m in (256, 512, 1024, 2048, 4096) if m <= room)

    def port_mtu(self):
        """What ibv_devinfo calls the active MTU, of the end where it is less."""
        outs = [self.run(end, ["ibv_devinfo"])[1] for end in (0, 1)]
        return min(int(re.search(r"active_mtu:\s+(\d+)", out).group(1)) for out in outs)


def same_address(a, b):
    try:
        return socket.inet_pton(socket.AF_INET6, a) == socket.inet_pton(socket.AF_INET6, b)
    except OSError:
        return False


# ---- pairs ----------------------------------------------------------------------------------

class Pair:
    """Both ends of one program."""

    def __init__(self, place, program, server_options=(), client_options=None, gid_flag="-g",
                 server_env=None, client_env=None, env=None):
        if client_options is None:
            client_options = server_options
        self.place = place
        self.port = tcp_port()
        self.title = " ".join([program] + [str(o) for o in client_options])
        ends = []
        for end, options in ((0, server_options), (1, client_options)):
            ends.append([program, "-p", self.port] + [str(o) for o in options])
            if gid_flag:
                ends[end] += [gid_flag, place.gid_index(end)]
        ends[1].append(place.meet)
        self.server = place.start(0, ends[0], {**(env or {}), **(server_env or {})})
        self.client = None
        self._client = (ends[1], {**(env or {}), **(client_env or {})})

    def go(self):
        """Starts the client once the server listens."""
        self.server.wait_listen(self.port)
        self.client = self.place.start(1, *self._client)
        return self

    def sent(self):
        """How many packets the client has sent."""
        found = json.loads(self.place.tool(1, "stat", "--json"))["processes"]
        return sum(p["counters"]["tx_packets"] for p in found if p["pid"] == self.client.pid)

    def underway(self, seconds=0.1, packets=100):
        """Waits until the client has sent so many, and that long; both must still run. (Their output is buffered.)"""
        end = time.monotonic() + 60
        while self.client.running() and self.sent() < packets:
            check(time.monotonic() < end, "%s: no traffic\n%s%s"
                  % (self.title, self.server.output(), self.client.output()))
            time.sleep(0.05)
        time.sleep(seconds)
        self.still_runs()
        return self

    def still_runs(self):
        for p in (self.server, self.client):
            if not p.running():
                raise TooSoon("%s: over too soon, status %s\n%s" % (self.title, p.proc.returncode, p.output()))

    def state(self):
        """Counters and threads of both ends, twice, so that what moves is seen; then it was not a wake that was lost."""
        lines = []
        for again in (False, True):
            for end, p in enumerate((self.server, self.client)):
                if not p.running():
                    continue
                lines.append("-- %s%s" % ("client" if end else "server", ", a second later" if again else ""))
                try:
                    lines += p.threads()
                    lines.append(self.place.tool(end, "stat", "--all", str(p.pid), seconds=10))
                except (OSError, Failure, subprocess.TimeoutExpired) as e:
                    lines.append("it tells no more: %s" % e)
            if not again:
                time.sleep(1)
        return "\n".join(lines)

    def finish(self, seconds=TIME_S):
        """Waits for both; checks that they ended well and have not complained. Their outputs."""
        end = time.monotonic() + seconds
        c = self.client.wait(seconds, self.server)
        s = self.server.wait(max(end - time.monotonic(), 3) if c == 0 else 3)
        outs = self.server.output(), self.client.output()
        hangs = c is None or (c == 0 and s is None)
        state = self.state() if hangs else ""
        self.kill()
        whole = "\n-- server (status %s)\n%s\n-- client (status %s)\n%s" % (s, outs[0], c, outs[1])
        if hangs:
            raise Failure("%s: not done after %d s%s\n%s" % (self.title, seconds, whole, state))
        check(c == 0 and s == 0, "%s: status of server %s, of client %s%s"
              % (self.title, s, c, whole))
        for out in outs:
            bad = complaints(out)
            check(not bad, "%s complains: %s%s" % (self.title, bad, whole))
        return outs

    def kill(self):
        self.server.kill()
        if self.client:
            self.client.kill()


def long_enough(run, *seconds):
    """run(seconds), which looks at a pair that runs for so long; again with more of them when that was over too soon."""
    for s in seconds[:-1]:
        try:
            return run(s)
        except TooSoon:
            clear()
    return run(seconds[-1])


def complaints(out):
    return [line for line in out.splitlines()
            if COMPLAINT.search(line) and not HARMLESS.search(line)]


# ---- what the programs print ------------------------------------------------------------------

def pingpong(place, program, options=(), iters=100, size=4096, seconds=TIME_S, qps=1, **kw):
    """Runs ibv_*_pingpong; checks the amounts that both ends report. Returns microseconds an exchange."""
    options = list(options) + ["-n", iters, "-s", size]
    pair = Pair(place, program, options, **kw).go()
    return pingpong_check(pair, pair.finish(seconds), iters, size, qps)


def pingpong_check(pair, outs, iters, size, qps=1):
    each = None
    for out in outs:
        b = re.search(r"^(\d+) bytes in ([\d.]+) seconds", out, re.M)
        n = re.search(r"^(\d+) iters in ([\d.]+) seconds = ([\d.]+) usec/iter", out, re.M)
        check(b and n, "%s: no result\n%s" % (pair.title, out))
        check("remote address:" in out, "%s: no peer\n%s" % (pair.title, out))
        each = float(n.group(3))
        check(int(n.group(1)) == iters and int(b.group(1)) == iters * size * 2,
              "%s: not %d exchanges of %d bytes\n%s" % (pair.title, iters, size, out))
    return each


ROW = re.compile(r"^ *(\d+) +(\d+)((?:[ \t]+-?(?:[\d.]+|inf|nan))+)[ \t]*$", re.M)
COMPLAINT = re.compile(r"Correlation coefficient r\^2: [-+\w.]+ < [\d.]+\n")


def perftest_rows(out):
    """[(bytes, iterations, [numbers])] of the result table."""
    table = out.rsplit("#bytes", 1)
    if len(table) < 2:
        return []
    # What perftest complains of goes to stderr, and may come in the middle of a row.
    rows = COMPLAINT.sub("", table[1])
    return [(int(m[0]), int(m[1]), [float(x) for x in m[2].split()])
            for m in ROW.findall(rows)]


def perftest(place, program, options=(), iters=None, sizes=None, seconds=TIME_S, server=None, **kw):
    """
    Runs a perftest program; the client's rows must be those of sizes, iters each, none of their
    numbers absurd. Returns the rows.
    """
    options = ["-F"] + list(options) + (["-n", iters] if iters else [])
    theirs = options if server is None else ["-F"] + list(server) + (["-n", iters] if iters else [])
    kw.setdefault("gid_flag", "-x")
    pair = Pair(place, program, theirs, options, **kw).go()
    outs = pair.finish(seconds)
    return perftest_check(pair, outs, iters, sizes)


def perftest_check(pair, outs, iters=None, sizes=None):
    got = perftest_rows(outs[1])
    check(got, "%s: no result rows\n%s" % (pair.title, outs[1]))
    if sizes:
        check([r[0] for r in got] == list(sizes), "%s: rows for %s, not for %s\n%s"
              % (pair.title, [r[0] for r in got], list(sizes), outs[1]))
    latency = pair.title.split()[0].endswith("_lat")
    # perftest measures the processor's frequency; where others take the processor meanwhile, it says so and takes 0.
    disturbed = "Correlation coefficient" in outs[1]
    for size, count, numbers in got:
        if iters:
            check(count >= iters, "%s: %d iterations, not %d\n%s"
                  % (pair.title, count, iters, outs[1]))
        # Of the bandwidth row average and message rate count: the peak may be left out, and two decimals of
        # MB/s round 20 messages of 2 bytes to 0.00 when they took more than 8 ms.
        # Of the latency row not the fifth, the standard deviation: it is nan when times differ as much as they do on
        # a busy machine.
        judged = numbers[:4] + numbers[5:] if latency else numbers[1:3]
        check(disturbed or judged and all(0 <= x < 1e9 for x in judged) and max(judged) > 0,
              "%s: absurd numbers at %d bytes: %s" % (pair.title, size, numbers))
    return got


ALL_SIZES = [1 << i for i in range(1, 24)]


def devices_json(place, end=0):
    return json.loads(place.tool(end, "devices", "--json"))


# ---- the frame of a test program ----------------------------------------------------------------

def main(cases):
    """PROGRAM PLACE [CASE...]: runs the cases, functions of a place, and says how long each took."""
    if len(sys.argv) < 2:
        sys.exit("usage: %s PLACE [CASE...]\ncases: %s"
                 % (os.path.basename(sys.argv[0]), " ".join(cases)))
    apart()
    chosen = sys.argv[2:] or list(cases)
    failed = 0
    try:
        place = Place(sys.argv[1])
        place.quick_clock = True
        for name in chosen:
            begun = time.monotonic()
            try:
                cases[name](place)
                word = "ok"
            except Skip as e:
                if len(chosen) == 1:
                    raise
                word = "skipped: %s" % e
            except Failure as e:
                failed += 1
                word = "FAILED: %s" % e
                clear()
            print("%-24s %5.1f s  %s" % (name, time.monotonic() - begun, word), flush=True)
    except Skip as e:
        print("skipped: %s" % e)
        sys.exit(SKIP)
    except Failure as e:
        print("FAILED: %s" % e)
        failed += 1
    sys.exit(1 if failed else 0)
