#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Wrong settings, wrong words, a port in other hands: a clear sentence and a status, never a hang."""
import json
import os
import re
import shutil
import signal
import struct
import time

from pair import BUILD, NOBODY, Pair, Process, Skip, check, complaints, folder, main, need_users, pingpong_check, sh
from together import FOR_EVER, go_on

PATIENCE_S = 8


def refused(place, env, words, command=("ibv_devinfo",)):
    """The program fails, soon, not by a signal, and its output has all the words."""
    status, out = place.run(0, list(command), seconds=PATIENCE_S, env=env)
    check(status is not None, "%s: still running after %d s\n%s" % (env, PATIENCE_S, out))
    check(status > 0, "%s: status %s\n%s" % (env, status, out))
    for word in words:
        check(word in out, "%s: no word of %r in\n%s" % (env, word, out))
    check(len(out.splitlines()) < 12, "%s: too many words\n%s" % (env, out))


def unknown_key(place):
    every = ["VERBENA_PCAP", "VERBENA_IMPAIR", "VERBENA_PORT"]
    refused(place, {"VERBENA_FOO": "1"}, ["VERBENA_FOO"] + every)
    refused(place, {"VERBENA_FOO": ""}, ["VERBENA_FOO"] + every)
    refused(place, {"VERBENA_pcap": "x"}, ["VERBENA_pcap"] + every)
    refused(place, {"VERBENA_FOO": "1"}, ["VERBENA_FOO"] + every, ["ibv_rc_pingpong", "-g", "0"])
    refused(place, {"VERBENA_FOO": "1"}, ["VERBENA_FOO"] + every, ["ib_write_bw"])


def bad_value(place):
    for key, values, allowed in (("PORT", ("0", "abc", "70000", "4791x", ""), "65535"),
                                 ("WINDOW_BYTES", ("1", "9G", "-5", "64KB"), "4096"),
                                 ("SPIN_US", ("x", "-1", "1.5"), "0"),
                                 ("PROTOCOL", ("infiniband", "AUTO", ""), "veroce"),
                                 ("VEROCE_PORT", ("0", "70000", "4791"), "allowed"),
                                 ("VEROCE_PATHS", ("0", "17"), "16"),
                                 ("CC", ("cubic", "", "hpcc"), "dctcp"),
                                 ("CC", ("dcqcn:connectx",), "authors-sim"),
                                 ("CC", ("dcqcn,base=1us",), "rate_hai"),
                                 ("CC", ("swift,base=30", "swift,base=1us,base=2us"), "base"),
                                 ("LINE_RATE", ("0", "10", "2000Gbps"), "1000Gbps"),
                                 ("LOSS", ("none",), "irn"),
                                 ("RX_WINDOW", ("100", "131072"), "power of two"),
                                 ("IMPAIR", ("drop=2", "drop=x", "drop"), "drop"),
                                 ("IMPAIR", ("foo=1",), "foo"),
                                 ("IMPAIR", ("delay=5", "delay=5 ms"), "delay"),
                                 ("INTERFACES", ("nosuch9",), "nosuch9"),
                                 ("PCAP", ("/nosuch/x.pcap",), "/nosuch/x.pcap"),
                                 ("PCAP", ("/tmp/%q.pcap",), "%q")):
        for value in values:
            refused(place, {"VERBENA_" + key: value}, [key, value, allowed])


def config_file(place):
    where = folder()
    path = os.path.join(where, "conf")
    refused(place, {"VERBENA_CONFIG": path}, ["VERBENA_CONFIG", path])
    for text, words in (("nosuch = 1\n", [path + ":1", "nosuch", "pcap"]),
                        ("# fine\nport = 0\n", [path + ":2", "port", "0", "65535"]),
                        ("port = 4791\nport = 4791\n", [path + ":2", "port"]),
                        ("[a part]\nport = 4791\n", [path, "section"]),
                        ("port\n", [path + ":1"])):
        with open(path, "w") as f:
            f.write(text)
        os.chmod(path, 0o644)
        refused(place, {"VERBENA_CONFIG": path}, words)
    with open(path, "w") as f:
        f.write("port = 14791 ; another one\nspin_us = 10\n")
    pair = Pair(place, "ibv_rc_pingpong", ["-n", 100], env={"VERBENA_CONFIG": path}).go()
    pingpong_check(pair, pair.finish(20), 100, 4096)
    shutil.rmtree(where)


def tool_words(place):
    """The tool's own arguments."""
    def tool(*words, env=None):
        p = Process(place.wrap(0, [place.verbena] + list(words)), env)
        status = p.wait(PATIENCE_S)
        out = p.output()
        p.kill()
        return status, out

    for words in ((), ("nosuch",), ("run",), ("stat", "x"), ("stat", "999999"), ("devices", "--nosuch"),
                  ("stat", "--nosuch")):
        status, out = tool(*words)
        check(status not in (0, None) and status > 0 and out.strip(), "verbena %s: status %s\n%s"
              % (" ".join(words), status, out))
        for word in words[1:]:
            check(word in out, "verbena %s does not name what is wrong:\n%s" % (" ".join(words), out))
    status, out = tool("run", "nosuch-program")
    check(status == 127 and "nosuch-program" in out, "status %s\n%s" % (status, out))
    status, out = tool("run", "/")
    check(status == 126 and "/" in out, "status %s\n%s" % (status, out))
    status, out = tool("run", "sh", "-c", "exit 7")
    check(status == 7, "the program's status 7 became %s" % status)
    status, out = tool("run", "sh", "-c", "kill -TERM $$")
    check(status in (-signal.SIGTERM, 128 + signal.SIGTERM), "the signal became %s" % status)
    for words in (("--help",), ("--version",)):
        status, out = tool(*words)
        check(status == 0 and "verbena" in out.lower(), "%s: status %s\n%s" % (words, status, out))
    status, out = tool("stat", "--json")
    check(status == 0 and json.loads(out) is not None, out)
    # What --impair takes is what the parser says it takes.
    _, out = tool("run", "true", env={"VERBENA_IMPAIR": "nonsense=1"})
    keys = re.search(r"the keys are ([a-z, ]+)", out).group(1).split(", ")
    status, out = tool("run", "--help")
    missing = [k for k in keys if not re.search(r"\b%s\b" % k, out.split("keys:")[1].split("--set")[0])]
    check(status == 0 and len(keys) > 5 and not missing, "run --help leaves out %s" % missing)


# ---- programs to which the loader does not give our libraries -------------------------------------

def built(name):
    path = os.path.join(BUILD, "tests", "programs", name)
    if not os.path.exists(path):
        raise Skip("%s was not built" % name)
    return path


def obstructed(status, out, path, words):
    check(status is not None and status >= 0, "status %s\n%s" % (status, out))
    said = [line for line in out.splitlines() if line.startswith("verbena:")]
    check(len(said) == 1, "not one line:\n" + out)
    for word in words + [path]:
        check(word in said[0], "no word of %r in\n%s" % (word, out))


def linked_otherwise(place):
    """A static program is reported; one with a run path of the old kind has our device all the same."""
    path = built("list_rpath")
    status, out = place.run(0, [path])
    check(status == 0 and out == "verbena0\n1 devices\n", "status %s\n%s" % (status, out))
    path = built("nothing_static")
    status, out = place.run(0, [path])
    obstructed(status, out, path, ["static"])
    check(status == 0 and "ran" in out, out)
    status, out = place.run(0, [path], env={"VERBENA_QUIET": "1"})
    check((status, out) == (0, "ran\n"), out)
    script = os.path.join(folder(), "script")
    with open(script, "w") as f:
        f.write("#! %s\n" % path)
    os.chmod(script, 0o755)
    status, out = place.run(0, [script])
    obstructed(status, out, path, ["static"])


def sanitized(place):
    """AddressSanitizer's runtime wants to be the first library, and is not; also in a program that is started by another."""
    program, with_options = built("list_asan"), built("list_asan_options")
    for command in ([program], ["sh", "-c", "ASAN_OPTIONS=detect_leaks=1 %s; exit $?" % program], [with_options]):
        status, out = place.run(0, command)
        check((status, out) == (0, "verbena0\n1 devices\n"), "%s: status %s\n%s" % (command, status, out))


def copy_of(program):
    path = os.path.join(folder(), "copy")
    shutil.copy(shutil.which(program), path)
    os.chmod(path, 0o755)
    return path


def other_user(place):
    need_users()
    path = copy_of("ibv_devices")
    status, out = place.run(0, [path])
    check(status == 0 and "verbena0" in out and "verbena:" not in out, out)
    os.chown(path, NOBODY, NOBODY)
    os.chmod(path, 0o4755)
    status, out = place.run(0, [path])
    obstructed(status, out, path, ["set-user-ID"])
    check("verbena0" not in out, "no obstacle at all:\n" + out)


def capabilities(place):
    path = copy_of("ibv_devices")
    # Version 2, effective; CAP_NET_RAW permitted (linux/capability.h).
    try:
        os.setxattr(path, "security.capability", struct.pack("<5I", 0x02000001, 1 << 13, 0, 0, 0))
    except OSError as e:
        raise Skip("no file capabilities here: %s" % e)
    user = ["setpriv", "--reuid=%d" % NOBODY, "--regid=%d" % NOBODY, "--clear-groups"]
    p = Process(as_root(place, user + [place.verbena, "run", path]))
    status = p.wait(PATIENCE_S)
    out = p.output()
    p.kill()
    obstructed(status, out, path, ["file capabilities"])
    check("verbena0" not in out, "no obstacle at all:\n" + out)


# ---- little is there -------------------------------------------------------------------------------

def mounted(place, script, env=None):
    """The status and output of a shell in a mount namespace of its own."""
    if os.getuid():
        raise Skip("needs root")
    p = Process(["unshare", "-m", "--propagation", "private", "sh", "-ec", script], env)
    status = p.wait(PATIENCE_S)
    out = p.output()
    p.kill()
    return status, out


def no_dev_null(place):
    status, out = mounted(place, "mount -t tmpfs none /dev; mkdir /dev/shm; exec %s run ibv_devinfo"
                          % place.verbena)
    check(status == 0 and "verbena0" in out, "status %s\n%s" % (status, out))


def read_only_root(place):
    # Our own tree may be below /tmp, so that is not covered.
    script = ("mount --rbind /tmp /tmp; mount -t tmpfs none /dev/shm; mkdir -m 700 /dev/shm/mine; "
              "mount -t tmpfs none /dev/shm/mine; chmod 700 /dev/shm/mine; "
              "mount -o remount,bind,ro /dev/shm; mount -o remount,bind,ro /tmp; exec %s run ibv_devices"
              % place.verbena)
    status, out = mounted(place, script)
    check(status == 125 and "XDG_RUNTIME_DIR" in out and "Read-only" in out, "status %s\n%s" % (status, out))
    status, out = mounted(place, script, {"XDG_RUNTIME_DIR": "/dev/shm/mine"})
    check(status == 0 and "verbena0" in out, "status %s\n%s" % (status, out))


def no_gid_index(place):
    """A program that reports no more than an errno: what it means is said, once."""
    pair = Pair(place, "ibv_rc_pingpong", gid_flag=None).go()
    status = pair.server.wait(PATIENCE_S)
    out = pair.server.output()
    pair.kill()
    said = [line for line in out.splitlines() if line.startswith("verbena:")]
    check(status not in (0, None), "status %s\n%s" % (status, out))
    check(len(said) == 1 and "GRH" in said[0] and "-g" in said[0], out)


# ---- a port in other hands: in a namespace of our own, as two users -------------------------------

HOLD = """
import socket, time
s = []
for family, address in ((socket.AF_INET, "0.0.0.0"), (socket.AF_INET6, "::")):
    f = socket.socket(family, socket.SOCK_DGRAM)
    if family == socket.AF_INET6:
        f.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
    if %s:
        f.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    f.bind((address, 4791))
    s.append(f)
print("ready", flush=True)
time.sleep(100)
"""


def as_root(place, command):
    """In the place's namespace, but not as its user."""
    return ["ip", "netns", "exec", place.spaces[0]] + command


def port_taken(place, command, user_of_holder):
    if place.user is None:
        raise Skip("needs two users: a nobody place")
    for reuse in ("False", "True"):
        holder = ["/usr/bin/python3", "-c", HOLD % reuse]
        h = Process(as_root(place, holder) if user_of_holder == 0 else place.wrap(0, holder))
        h.wait_text("ready")
        for program in command:
            p = (Process(as_root(place, [place.verbena, "run"] + program)) if user_of_holder else
                 place.start(0, program))
            begun = time.monotonic()
            status = p.wait(15)
            out = p.output()
            took = time.monotonic() - begun
            p.kill()
            check(status is not None, "hangs:\n" + out)
            check(status > 0 and "4791" in out, "%s: status %s\n%s" % (program, status, out))
            check(took < 12, "took %.1f s to say so" % took)
        h.kill()


PROGRAMS = [["ibv_rc_pingpong", "-g", "0"], ["ib_write_bw", "-F"]]


def port_of_another_user(place):
    port_taken(place, PROGRAMS, NOBODY)


def port_of_root(place):
    port_taken(place, PROGRAMS, 0)


def no_address(place):
    """No interface is up: no GID, no device to open, and a sentence that says so."""
    if place.user is None:
        raise Skip("needs a namespace of its own: a nobody place")
    sh("ip", "-n", place.spaces[0], "link", "set", "lo", "down")
    for command in (("ibv_devinfo",), ("ibv_rc_pingpong", "-g", "0"), ("ib_write_bw", "-F")):
        refused(place, {}, ["no interface is up"], command)
    sh("ip", "-n", place.spaces[0], "link", "set", "lo", "up")


def two_users(place):
    """While nobody's pair runs, root's program gets an error, and the pair is not disturbed."""
    if place.user is None:
        raise Skip("needs two users: a nobody place")
    pair = Pair(place, "ibv_rc_pingpong", ["-e", "-c", "-n", FOR_EVER]).go().underway(0.1)
    p = Process(as_root(place, [place.verbena, "run", "ibv_rc_pingpong", "-g", "0"]))
    status = p.wait(15)
    out = p.output()
    p.kill()
    go_on(place, [pair])
    pair.kill()
    check(status not in (0, None) and "4791" in out, "status %s\n%s" % (status, out))
    check(complaints(out) or "4791" in out, out)
    # ... who can be helped: another port.
    p = Process(as_root(place, [place.verbena, "run", "ibv_devinfo"]), {"VERBENA_PORT": "14791"})
    check(p.wait(10) == 0, p.output())
    p.kill()


if __name__ == "__main__":
    main({"unknown_key": unknown_key, "bad_value": bad_value, "config_file": config_file,
          "tool_words": tool_words, "port_of_another_user": port_of_another_user,
          "port_of_root": port_of_root, "no_address": no_address, "two_users": two_users,
          "linked_otherwise": linked_otherwise, "sanitized": sanitized, "other_user": other_user, "capabilities": capabilities,
          "no_dev_null": no_dev_null, "read_only_root": read_only_root, "no_gid_index": no_gid_index})
