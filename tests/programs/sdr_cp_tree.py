#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""
What sdr_cp does with trees, as users of rsync expect it. Where rsync can tell, it does: of a tree and its copy it must find
nothing to change, in either direction.
"""
import json
import os
import re
import shutil
import subprocess
import time

from pair import Skip, check, folder, is_root, main, tcp_port
from sdr_cp import CP, LOSSY, PART, look, noise, parts, plant, same, talker, write
from sdr_cp_ssh import Host


def rsync(here, there, flags="-nciaHAX"):
    """What rsync would change to make `there` what `here` is."""
    if not shutil.which("rsync"):
        raise Skip("needs rsync")
    r = subprocess.run(["rsync", flags, "--delete", here + "/", there + "/"], capture_output=True, text=True, errors="replace")
    check(r.returncode == 0, r.stderr)
    return r.stdout


def equal(here, there, flags="-nciaHAX"):
    for a, b in ((here, there), (there, here)):
        out = rsync(a, b, flags)
        check(not out, "rsync finds what differs:\n" + out)


def mark(path, value=b"value", name="user.verbena"):
    try:
        os.setxattr(path, name, value)
    except OSError as e:
        raise Skip("no extended attributes: %s" % e)


def trees(place, env=None):
    host = Host(place, env)
    here = os.path.join(folder(), "here")
    plant(here)
    return host, here


def same_as_rsync(place):
    """Names, kinds, modes, times, holes, several names, extended attributes, and owners where they can be given."""
    host, here = trees(place, LOSSY)
    os.link(os.path.join(here, "a/big"), os.path.join(here, "a/b/the same"))
    with open(os.path.join(here, "sparse"), "wb") as f:
        f.truncate(40 << 20)
        f.seek(17 << 20)
        f.write(noise(5, 100000))
    mark(os.path.join(here, "zero"))
    mark(os.path.join(here, "a"), b"x" * 1000)
    if is_root():
        os.chown(os.path.join(here, "a/b/c/7"), 1234, 5678)
        os.chmod(os.path.join(here, "a/b/c/7"), 0o6755)
        os.lchown(os.path.join(here, "a/link"), 1, 2)
    host.copy("-r", 3000, "-HXo", here, "host:copy")
    equal(here, host.at("copy"))
    host.copy("-r", 3000, "-HXo", "host:copy", os.path.join(os.path.dirname(here), "back"))
    equal(here, os.path.join(os.path.dirname(here), "back"))


def items(place):
    """What would change is said as rsync says it, and a dry run changes nothing."""
    host, here = trees(place)
    os.link(os.path.join(here, "a/big"), os.path.join(here, "z"))

    def compare(*more):
        theirs = subprocess.run(["rsync", "-niaH", *more, here + "/", host.at("copy") + "/"], capture_output=True, text=True).stdout
        ours = host.copy("-niH", *more, here, "host:copy")
        # rsync between two folders of one host says that it receives; it names the folder that is copied "./", and says
        # where links point.
        want = {re.sub("^>", "<", line.split(" -> ")[0].split(" => ")[0]).rstrip("/") for line in theirs.splitlines() if not line.startswith("created")}
        got = {line for line in ours.splitlines() if len(line) > 12 and line[11] == " " and line[0] in "<>ch.*"}
        check(got == want, "\nours alone: %s\nrsync's alone: %s" % (sorted(got - want), sorted(want - got)))

    before = os.listdir(host.home)
    compare()
    check(os.listdir(host.home) == before, "a dry run has written something")
    host.copy("-H", "-r", 3000, here, "host:copy")
    check(not [line for line in host.copy("-niH", here, "host:copy").splitlines() if line[11:12] == " "], "something is left to do")
    copy = host.at("copy")
    write(os.path.join(copy, "zero"), b"longer")
    os.chmod(os.path.join(copy, "a/b/c/9"), 0o600)
    os.utime(os.path.join(copy, "a/b/c/10"), ns=(1, 1))
    os.unlink(os.path.join(copy, "dangling"))
    os.symlink("elsewhere", os.path.join(copy, "dangling"))
    write(os.path.join(copy, "more"), b"x")
    os.makedirs(os.path.join(copy, "a/more/still"))
    for at in ("", "a"):
        st = os.stat(os.path.join(here, at))
        os.utime(os.path.join(copy, at), ns=(st.st_atime_ns, st.st_mtime_ns))
    st = os.lstat(os.path.join(here, "dangling"))
    os.utime(os.path.join(copy, "dangling"), ns=(st.st_atime_ns, st.st_mtime_ns), follow_symlinks=False)
    seen = look(copy)
    got = host.copy("-niH", "--delete", here, "host:copy")
    for line in ("<f.stp..... zero", ".f..t...... a/b/c/10", ".f...p..... a/b/c/9", "cLc........ dangling", "*deleting   more", "*deleting   a/more", "*deleting   a/more/still"):
        check(line in got, "'%s' is not among\n%s" % (line, got))
    check(look(copy) == seen, "a dry run has changed something")
    host.copy("-iH", "-r", 3000, "--delete", here, "host:copy")
    same(here, copy)


def delete(place):
    """What is not in the list goes, but what a pattern leaves out, and nothing if the sender could not read all."""
    host, here = trees(place)
    for flags, left in (([], ["more", "more.o"]), (["--delete", "--exclude", "*.o"], ["more.o"])):
        host.copy("-r", 3000, here, "host:copy")
        for name in ("more", "more.o"):
            write(host.at("copy/a/" + name), b"x")
        os.makedirs(host.at("copy/a/b/more/still"), exist_ok=True)
        os.symlink("/etc", host.at("copy/a/b/more/etc%d" % len(flags)))
        out = host.copy("-r", 3000, *flags, here, "host:copy")
        check(sorted(n for n in os.listdir(host.at("copy/a")) if "more" in n) == left, out)
        check(os.path.exists(host.at("copy/a/b/more")) == (not flags), out)
    check(os.path.exists("/etc/passwd"), "a link was followed")
    write(host.at("copy/more"), b"x")
    os.mkfifo(os.path.join(here, "fifo"))
    out = host.copy("--delete", here, "host:copy", status=23)
    check("nothing is deleted" in out and os.path.exists(host.at("copy/more")), out)


def filters(place):
    host, here = trees(place)
    for name in ("a/main.c", "a/main.o", "a/b/x.o", "a/b/keep.o"):
        write(os.path.join(here, name), b"x")
    host.copy("--include", "keep.o", "--exclude", "*.o", "--exclude", "/a/b/c/", here, "host:one")
    got = set(look(host.at("one")))
    want = {name for name in look(here) if not name.startswith("a/b/c") and name not in ("a/main.o", "a/b/x.o")}
    check(got == want, "copied: %s" % (got ^ want))
    # The other end leaves out too.
    host.copy("--exclude", "[0-9]*", "--exclude", "big", "host:one", os.path.join(os.path.dirname(here), "two"))
    check(set(look(os.path.join(os.path.dirname(here), "two"))) == {name for name in want if name != "a/big"}, "fetched")
    for pattern in ("", "x" * 5000):
        check("has %d bytes: 1 to 4096 are allowed" % len(pattern) in host.copy("--exclude", pattern, here, "host:x", status=1), pattern[:10])


def several(place):
    """Several things go into a folder, each by its own name; there and back."""
    host, here = trees(place)
    write(os.path.join(here, "x"), noise(1, 5000000))
    host.copy("-r", 3000, os.path.join(here, "a") + "/", os.path.join(here, "x"), os.path.join(here, "dangling"), "host:new")
    check(sorted(os.listdir(host.at("new"))) == ["a", "dangling", "x"], str(os.listdir(host.at("new"))))
    same(os.path.join(here, "a"), host.at("new/a"))
    back = os.path.join(folder(), "back")
    os.mkdir(back, 0o751)
    host.copy("-r", 3000, "host:new/a/b", "host:new/x", back)
    same(os.path.join(here, "a/b"), os.path.join(back, "b"))
    check(os.stat(back).st_mode & 0o777 == 0o751, "the folder that they go into has another mode")
    check("all that is fetched must be on one host" in host.copy("host:a", "other:b", back, status=1), "")
    check("either all that is fetched" in host.copy("host:a", "b", back, status=1), "")
    check("without a name of its own" in host.copy(here + "/..", os.path.join(here, "x"), "host:odd", status=23), "")


def names(place):
    """A file of several names arrives once, and an end of it that was there already too."""
    host, here = trees(place)
    for name in ("a/one", "two", "a/b/three"):
        os.link(os.path.join(here, "a/big"), os.path.join(here, name))
    out = host.copy("-H", "-r", 3000, here, "host:copy")
    inodes = {os.stat(host.at("copy/" + name)).st_ino for name in ("a/big", "a/one", "two", "a/b/three")}
    check(len(inodes) == 1, out)
    same(here, host.at("copy"))
    os.unlink(host.at("copy/a/big"))
    shutil.copy2(host.at("copy/two"), host.at("copy/a/big"))
    os.unlink(host.at("copy/a/one"))
    host.copy("-H", "-r", 3000, here, "host:copy")
    inodes = {os.stat(host.at("copy/" + name)).st_ino for name in ("a/big", "a/one", "two", "a/b/three")}
    check(len(inodes) == 1 and not parts(host.home), "names of a file have become files")
    host.copy("-r", 3000, here, "host:apart")
    check(os.stat(host.at("apart/two")).st_nlink == 1, "without -H they are files")


def attributes(place):
    """Extended attributes are those of the sender, no more and no fewer; set-ID bits are for the owner alone."""
    host, here = trees(place)
    mark(os.path.join(here, "zero"), b"1")
    mark(os.path.join(here, "a"), b"2", "user.other")
    host.copy("-X", "-r", 3000, here, "host:copy")
    os.setxattr(host.at("copy/zero"), "user.too", b"many")
    os.removexattr(host.at("copy/a"), "user.other")
    out = host.copy("-Xi", "-r", 3000, here, "host:copy")
    check(".f........x zero" in out and ".d........x a" in out, out)
    equal(here, host.at("copy"), "-nciaHAX" if is_root() else "-ncirltHAX")
    os.chmod(os.path.join(here, "a/b/c/1"), 0o4711)
    host.copy(here, "host:copy")
    check(os.stat(host.at("copy/a/b/c/1")).st_mode & 0o7777 == 0o711, "a set-user-ID bit was copied without its owner")
    if is_root():
        os.chown(os.path.join(here, "a/b/c/1"), 77, 77)
        os.chmod(os.path.join(here, "a/b/c/1"), 0o4711)
        host.copy("-o", here, "host:copy")
        st = os.stat(host.at("copy/a/b/c/1"))
        check((st.st_uid, st.st_gid, st.st_mode & 0o7777) == (77, 77, 0o4711), "owner or set-user-ID bit")


def holes(place):
    """Blocks without data are not sent, and zeroes are not written, also where there was something else before."""
    host = Host(place)
    here = os.path.join(folder(), "here")
    with open(here, "wb") as f:
        f.truncate(100 << 30)
        f.seek(50 << 30)
        f.write(noise(1, 1 << 20))
        f.write(bytes(6 << 20))
    out = host.copy("-r", 3000, here, "host:there")
    sent = int(out.split(" bytes in")[0].split("\n")[-1])
    check(sent <= 16 << 20, "%d bytes were sent" % sent)
    check(os.stat(host.at("there")).st_size == 100 << 30 and os.stat(host.at("there")).st_blocks * 512 <= 4 << 20, "zeroes were written")
    with open(here, "rb") as a, open(host.at("there"), "rb") as b:
        for at in ((50 << 30) - 4096, 0, 99 << 30):
            a.seek(at)
            b.seek(at)
            check(a.read(9 << 20) == b.read(9 << 20), "the copy differs at %d" % at)
    small = os.path.join(os.path.dirname(here), "small")
    with open(small, "wb") as f:
        f.truncate(12 << 20)
        f.seek(5 << 20)
        f.write(b"data")
    write(host.at("small"), noise(2, 12 << 20))
    shutil.copy(host.at("small"), host.at(PART + "0"))
    host.copy("-r", 3000, small, "host:small")
    with open(small, "rb") as a, open(host.at("small"), "rb") as b:
        check(a.read() == b.read(), "what was there before shines through")


def left_out(place):
    """What cannot be read is said, and the rest is copied; status 23."""
    host, here = trees(place)
    os.mkfifo(os.path.join(here, "fifo"))
    write(os.path.join(here, PART + "x"), b"")
    out = host.copy("-r", 3000, here, "host:copy", status=23)
    check("fifo: neither a file nor a folder nor a link: left out" in out and "is for what has not arrived yet: left out" in out, out)
    os.unlink(os.path.join(here, "fifo"))
    os.unlink(os.path.join(here, PART + "x"))
    os.utime(here, ns=(1, os.stat(host.at("copy")).st_mtime_ns))
    same(here, host.at("copy"))
    # The end that fetches learns it too.
    shutil.copytree(host.at("copy"), host.at("odd"), symlinks=True)
    os.mkfifo(host.at("odd/fifo"))
    out = host.copy("-r", 3000, "host:odd", os.path.join(folder(), "back"), status=23)
    check(out.count("fifo: neither a file") == 1, out)
    # One that grows while it is copied, and one that goes: behind more than is read at once.
    busy = os.path.join(folder(), "busy")
    os.mkdir(busy)
    for name, bytes_ in (("a", 96 << 20), ("grows", 6 << 20), ("goes", 6 << 20), ("z", 1 << 20)):
        write(os.path.join(busy, name), os.urandom(bytes_))
    p = host.start("-r", 300, busy, "host:busy")
    end = time.monotonic() + 60
    while not parts(host.home) and time.monotonic() < end:
        time.sleep(0.01)
    with open(os.path.join(busy, "grows"), "ab") as f:
        f.write(b"more")
    os.unlink(os.path.join(busy, "goes"))
    check(p.wait(60) == 23, p.output())
    check("goes: No such file" in p.output() and "grows: it has changed" in p.output(), p.output())
    check(sorted(os.listdir(host.at("busy"))) == ["a", "z"], str(os.listdir(host.at("busy"))))


def serve(place):
    """Many senders at once, none of them out of the folder, and nobody who may not."""
    root, outside, port = folder(), folder(), tcp_port()
    os.symlink(outside, os.path.join(root, "out"))
    server = place.start(0, [CP, "-p", port, "--serve", "--allow", "192.0.2.0/24,%s,::1" % place.meet, "-r", 1000, root])
    server.wait_listen(port)

    def send(here, there, *words):
        return place.start(1, [CP, "-p", port, "-r", 1000, *words, here, "%s::%s" % (place.meet, there)])

    def stays(p, status=0):
        check(p.wait(60) == status, p.output())
        check(not os.listdir(outside), "something was written outside")
        return p.output()

    here = os.path.join(folder(), "here")
    plant(here)
    strangers = [talker(place, port, words) for words in (b"", b"GET /")]
    first = send(here, "killed", "-r", 10)
    senders = [send(here, "copy%d" % i) for i in range(4)]
    for i, p in enumerate(senders):
        stays(p)
        same(here, os.path.join(root, "copy%d" % i))
    first.kill()
    for stranger in strangers:
        stranger.kill()
    one = os.path.join(here, "a/big")
    for there, name in (("/abs", "abs"), ("../../up", "up"), ("copy0/../in", "in")):
        stays(send(one, there))
        check(os.path.getsize(os.path.join(root, name)) == 9000001, "%s is not below the folder" % there)
    for there in ("out/x", "copy0/none/x"):
        check("the peer says: " in stays(send(one, there), 1), there)
    check("the sender wants --delete, which this end was not given" in stays(send(here, "copy0", "--delete"), 1), "--delete")
    check(server.running(), "the server has ended: " + server.output())
    server.kill()
    for words, said in ((["--serve", root], "--allow must say who may"), (["--serve", "--allow", "any"], "a folder is wanted"),
                        (["--serve", "--allow", "10.0.0.0/33", root], "'10.0.0.0/33' is neither an address"),
                        (["--serve", "--allow", "host", root], "'host' is neither an address"),
                        (["--serve", "--allow", "::1/x", root], "'::1/x' is neither an address"),
                        (["--serve", "--allow", "any", root + "/no"], "No such file"),
                        (["%s::x" % place.meet, root], "nothing can be fetched from")):
        p = place.start(0, [CP, "-p", port, *words])
        check(p.wait(20) == 1 and said in p.output(), "'%s' is not said, but: %s" % (said, p.output()))
    server = place.start(0, [CP, "-p", port, "--serve", "--allow", "192.0.2.0/24", root])
    server.wait_listen(port)
    check("no program of this kind answers" in stays(send(one, "x"), 1) and "is not allowed" in server.output(), server.output())
    server.kill()


def told(place):
    """Figures for people and for programs, and the words of rsync for a rate."""
    host, here = trees(place)
    got = json.loads(host.copy("-q", "-j", "-r", 3000, here, "host:copy"))
    check(got["files"] == 203 and got["folders"] == 5 and got["links"] == 2 and got["left_out"] == 0 and got["copied_bytes"] == got["bytes"], str(got))
    got = json.loads(host.copy("-qj", "host:copy", os.path.join(folder(), "back")))
    check(got["files"] == 203 and got["packets"] > 0, str(got))
    out = host.copy("--stats", here, "host:copy")
    check("files\n" in out and " 0  bytes that were copied" in out, out)
    out = host.copy("--bwlimit", "2.5M", "-S", "tail", here, "host:other")
    check("and 21 Mbit/s, as told" in out, out)
    for rate in ("0", "x", "1T", "-5", "5MB", "1e20"):
        check("--bwlimit %s: a number of KiB/s" % rate in host.copy("--bwlimit", rate, here, "host:x", status=1), rate)


if __name__ == "__main__":
    main({"same_as_rsync": same_as_rsync, "items": items, "delete": delete, "filters": filters, "several": several, "names": names,
          "attributes": attributes, "holes": holes, "serve": serve, "left_out": left_out, "told": told})
