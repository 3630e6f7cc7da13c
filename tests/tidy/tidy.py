#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""What must hold of the tree itself: who may know whom, a core without I/O, clocks or threads, and functions of a size.

Usage: tidy.py CHECK ROOT [BUILD], CHECK one of: includes links core engines memory time headers spdx citations pages sizes layout
       tidy.py format ROOT

`includes` reads the #include lines; a header whose opening comment says "Private to src/x." is for that folder alone. `links` looks at what was compiled into BUILD: a function or variable of another
module is an arrow by whatever header it came in.
`engines` holds src/nic to call an engine through its row, struct qp_ops, and by nothing else.
`memory` holds what runs in a program's process to the memory of src/space.
`time` holds an engine, and what calls it, to the time and the waits of its environment.
`citations` looks whether docs/veroce-wire.md has the sections and rules that comments name.
`sizes` looks how long functions and files of src and tools are, and how many parameters functions on a packet's path have.
`layout` compares the C files with what clang-format makes of them; `format` lays them out so.
`pages` follows the relative links in README.md, NEWS.md and docs/, headings included.
"""
import json
import pathlib
import re
import shutil
import subprocess
import sys

# The whole include graph; a module may always include itself. A folder with a row of its own is not part of the one above.
GRAPH = {
    "base": "",
    "wire": "base",
    "mem": "base",
    "queue": "base",
    "cc": "base",
    # Its own files are what the three folders stand on (qp.h and others) and what joins them (engine.c, rc.c, transport.c).
    "transport": "transport/paths transport/rocev2 transport/veroce wire mem queue cc base",
    "transport/paths": "transport wire cc base",
    "transport/rocev2": "transport wire mem queue cc base",
    "transport/veroce": "transport transport/paths transport/rocev2 wire mem queue cc base",
    "iwarp": "transport wire mem queue cc base",
    "nic": "transport iwarp wire mem queue cc base",
    "cm": "nic iwarp mem queue wire base",
    "sdr": "cc base",
    "sdr/verbs": "sdr cc base",
    "space": "base",
    "faults": "wire base",
    # io.h and what wraps any back end; a capture knows the stream's events of TCP.
    "io": "io/tcp faults space wire base",
    "io/udp": "io space base",
    "io/tcp": "io space base",
    "io/raw": "io io/udp space wire base",
    "io/shm": "io space wire base",
    "group": "io io/udp space base",
    "limits": "io space base",
    "lockstep": "base",
    "engine": "cm nic cc group limits lockstep io io/udp io/tcp io/raw io/shm faults space base",
    "net": "wire base",
    "fabric": "wire base",
    "workload": "net base",
    "sim": "workload net sdr cm nic cc mem queue wire base",
    "verbs": "engine nic mem queue faults limits space base",
    "rdmacm": "verbs engine cm space base",
}
# A header that another module's contract is made of comes with that contract: nic.h speaks in terms
# of these, so whoever may include nic may see them.
CONTRACT_OF_NIC = {"transport/attr.h", "transport/config.h", "transport/counters.h", "transport/srq.h", "transport/stream.h"}
CORE = ["base", "wire", "mem", "queue", "cc", "transport", "transport/paths", "transport/rocev2", "transport/veroce",
        "iwarp", "nic", "cm", "sdr"]
FORBIDDEN_HEADERS = re.compile(
    r"<(sys/(?!types\.h|cdefs\.h).*|pthread|threads|time|unistd|fcntl|signal|stdio|poll|dlfcn|netinet/.*|"
    r"net/.*|arpa/.*|linux/.*|malloc|stdlib)(\.h)?>")
FORBIDDEN_CALLS = re.compile(
    r"\b(clock_gettime|gettimeofday|time|socket|sendmsg|recvmsg|pthread_\w+|getenv|s?rand|random|"
    r"s?n?printf|fprintf|malloc|calloc|free|usleep|nanosleep)\s*\(")


def module_of(name):
    """The module of a path below src: the longest row of the graph that it begins with, or None."""
    return max((m for m in GRAPH if name.startswith(m + "/")), key=len, default=None)


def product_files(root, modules=GRAPH):
    for module in modules:
        for path in sorted((root / "src" / module).glob("**/*.[ch]")):
            own = module_of(path.relative_to(root / "src").as_posix()) == module
            if own and not path.name.endswith(("_test.c", "_fuzz.c")):
                yield module, path


def strip_comments(text):
    return re.sub(r"/\*.*?\*/|//[^\n]*", lambda m: "\n" * m.group().count("\n"), text, flags=re.S)


PRIVATE = re.compile(r"Private to (src/[\w/]+(?: and src/[\w/]+)*)\.")


def folders_of(header):
    """Whom a header of ours is for, if its opening comment says "Private to src/x." or "... src/x and src/y."."""
    m = PRIVATE.search(" ".join(header.read_text().split("*/")[:2])) if header.exists() else None
    return m.group(1).split(" and ") if m else None


def includers(root):
    """Product files and whoever else is not a test, which may look inside."""
    for _, path in product_files(root):
        yield path
    for folder in ("tools", "bench"):
        yield from sorted((root / folder).glob("**/*.[ch]"))


def check_private(root):
    of = {}
    for path in includers(root):
        place = path.relative_to(root).as_posix()
        for n, line in enumerate(path.read_text().splitlines(), 1):
            m = re.match(r'\s*#\s*include\s+"([^"]+)"', line)
            if not m:
                continue
            target = m.group(1)
            if target not in of:
                of[target] = folders_of(root / "src" / target)
            folders = of[target]
            if folders and not any(place.startswith(f + "/") for f in folders):
                yield f"{path}:{n}: {target} is private to {' and '.join(folders)}"


def check_includes(root):
    yield from check_private(root)
    for module, path in product_files(root):
        allowed = set(GRAPH[module].split()) | {module}
        for n, line in enumerate(path.read_text().splitlines(), 1):
            m = re.match(r'\s*#\s*include\s+"([^"]+)"', line)
            if not m:
                continue
            target = m.group(1)
            if target in CONTRACT_OF_NIC and "nic" in allowed:
                continue
            if "/" not in target:
                yield f'{path}:{n}: "{target}": write the path from src/'
            elif (module_of(target) or target.split("/")[0]) not in allowed:
                yield f"{path}:{n}: {module} may not include {target}"


def symbols(objects):
    """{object: (defined, wanted)}: the names that an object file gives to others, and those it takes from them."""
    found = {str(obj): (set(), set()) for obj in objects}
    out = subprocess.run(["nm", "-P", "-A", *found], capture_output=True, text=True, check=True).stdout if found else ""
    for line in out.splitlines():
        obj, rest = line.split(": ", 1)
        name, kind = rest.split()[:2]
        if kind == "U":
            found[obj][1].add(name)
        elif kind.isupper():
            found[obj][0].add(name)
    return found


# Loaded into programs beside the core and not linked with it: they export libc's names.
OTHER_LIBRARIES = re.compile(r"/verbena-(paths|lockstep)\.dir/")


def module_objects(build):
    """What is compiled into the modules; an object left over from a file that is gone is not among it."""
    build = build.resolve()
    for entry in json.loads((build / "compile_commands.json").read_text()):
        obj = pathlib.Path(entry["directory"]).resolve() / re.search(r" -o (\S+)", entry["command"]).group(1)
        name = "/" + str(obj.relative_to(build))
        module = module_of(name[len("/src/"):]) if name.startswith("/src/") else None
        if module and obj.exists() and not re.search(r"_(test|fuzz)\.", name) and not OTHER_LIBRARIES.search(name):
            yield module, obj


# Symbols of the library that the loader finds, as for any program.
PUBLIC = {"sdr/verbs": re.compile(r"ibv_\w+$")}


def check_links(root, build):
    of, wants = {}, []
    objects = list(module_objects(build))
    names = symbols(obj for _, obj in objects)
    for module, obj in objects:
        defined, wanted = names[str(obj)]
        for name in sorted(defined):
            if of.setdefault(name, module) != module:
                yield f"{obj.name[:-2]}: {name} is a name of {of[name]} too"
        wants.append((module, obj, wanted))
    if not wants:
        yield f"{build}: nothing was built there"
    for module, obj, wanted in wants:
        allowed = set(GRAPH[module].split()) | {module}
        for name in sorted(wanted):
            if of.get(name, module) not in allowed and not (module in PUBLIC and PUBLIC[module].match(name)):
                yield f"{obj.name[:-2]}: {module} may not use {name} of {of[name]}"


def check_core(root):
    for _, path in product_files(root, CORE):
        for n, line in enumerate(strip_comments(path.read_text()).splitlines(), 1):
            m = FORBIDDEN_HEADERS.search(line) if "#include" in line else None
            m = m or FORBIDDEN_CALLS.search(line)
            # A member or declaration of that name is no call of libc's.
            if m and not re.search(r"(->|\.)" + re.escape(m.group().split("(")[0].strip()), line):
                yield f"{path}:{n}: {m.group().strip()} has no place in the core"


# A program may unmap or free a region that is registered, and its addresses must never become the device's. What a program itself
# may free(), and what a tool maps, is no memory of the device; the place of a mark is drawn, and nobody else's.
HEAP_CALLS = re.compile(r"\b(malloc|calloc|realloc|aligned_alloc|posix_memalign|strn?dup|v?asprintf|free|mmap|munmap)\s*\(")
HEAP_USERS = {"verbs/device.c", "engine/stats.c", "io/shm/shm_mark.c"}


def check_memory(root):
    for _, path in product_files(root, ["io", "group", "engine", "verbs", "rdmacm"]):
        for n, line in enumerate(strip_comments(path.read_text()).splitlines(), 1):
            m = HEAP_CALLS.search(line)
            if m and path.suffix == ".c" and path.relative_to(root / "src").as_posix() not in HEAP_USERS:
                yield f"{path}:{n}: {m.group()}) is for programs: memory of the device comes from src/space"


# An engine may run on a time that is not the host's. A wait without a limit needs no time. A tool looks at the counters of
# others, and a group is the host's own.
TIME_CALLS = re.compile(r"\b(clock_(gettime|nanosleep|now_ns|now_ms|wall_ns|sleep_ns)|gettimeofday|time|u?sleep|nanosleep|"
                        r"epoll_(wait|pwait2?)|timerfd_\w+)\s*\(|\bppoll\s*\((?!.*, NULL, NULL\))")
TIME_USERS = {"engine/env_host.c", "engine/stats.c"}


def check_time(root):
    for _, path in product_files(root, ["engine", "verbs", "rdmacm"]):
        for n, line in enumerate(strip_comments(path.read_text()).splitlines(), 1):
            m = TIME_CALLS.search(line)
            if m and path.relative_to(root / "src").as_posix() not in TIME_USERS:
                yield f"{path}:{n}: {m.group()}) is the host's: time and waits come from the engine's environment"


# What nobody but an engine may know of an engine. QP types are the verbs' contract, of which qp_state.c is the table.
ENGINES = re.compile(
    r'(#\s*include\s+"transport/(rocev2|veroce|paths)/[^"]*"'
    r"|\b(veroce|rocev2|gbn|rc|uc|ud|caps|pair|rxshare|congestion|requester|completer|responder)_\w+\s*\("
    r"|\b(rc|uc|ud|veroce|veroce_asking)_ops\b"
    r"|->\s*(gbn|veroce)\b)")
TYPES = re.compile(r"\bQPT_\w+")


def check_engines(root):
    for _, path in product_files(root, ["nic"]):
        for n, line in enumerate(strip_comments(path.read_text()).splitlines(), 1):
            m = ENGINES.search(line) or (path.name != "qp_state.c" and TYPES.search(line))
            if m:
                yield f"{path}:{n}: nic may not name {m.group().strip()}: struct qp_ops has what engines do"


def first_included(root, build):
    """The headers of src/ that some file of the build begins with: each build shows that they compile alone."""
    for entry in json.loads((build / "compile_commands.json").read_text()):
        path = pathlib.Path(entry["file"])
        if not path.is_relative_to(root.resolve() / "src") or not path.exists():
            continue
        # strip_comments() leaves lines where they were
        line = next((line for line in strip_comments(path.read_text()).splitlines() if line.strip()), "")
        m = re.fullmatch(r'\s*#\s*include\s+"([^"]+)"\s*', line)
        if m:
            yield root / "src" / m[1]


def check_headers(root, build=None):
    cc = ["gcc", "-std=gnu17", "-D_GNU_SOURCE", "-fsyntax-only", "-x", "c", "-I", str(root / "src"),
          "-I", str(root / "include")]
    cxx = ["g++", "-std=c++11", "-fsyntax-only", "-x", "c++"]
    shown = set(first_included(root, build)) if build else ()
    paths = [path for _, path in product_files(root) if path.suffix == ".h" and path not in shown]
    installed = sorted((root / "include").glob("**/*.h"))
    for command, path in [(cc, p) for p in paths + installed] + [(cxx, p) for p in installed if shutil.which("g++")]:
        r = subprocess.run(command + [str(path)], capture_output=True, text=True)
        if r.returncode:
            yield f"{path}: does not compile alone: {r.stderr.splitlines()[0]}"


def check_spdx(root):
    listed = subprocess.run(["git", "-C", str(root), "ls-files", "*.c", "*.h", "*.py", "*.sh"],
                            capture_output=True, text=True, check=True).stdout.split()
    for name in listed:
        head = (root / name).read_text().splitlines()[:3]
        if not any("SPDX-License-Identifier: BSD-2-Clause" in line for line in head):
            yield f"{name}: no SPDX line among the first three"


# docs/veroce-wire.md numbers what is cited: `veRoCE 6.2`, `veRoCE 2 and 3`, `out-of-order R7`, `out-of-order O5 to O8; R9`.
# A citation may go on over the end of a line of comment.
CITING = ["src", "tests", "bench", "tools", "share"]
CITING_FILES = {".c", ".h", ".py", ".sh", ".lua", ".txt", ".cmake", ".ini"}
BREAK = r"(?:[ ]|[ ]?\n[ \t]*(?:\*|--|#|//)?[ ]*)"
AND = rf"(?:[,;]{BREAK}?|{BREAK}(?:and|to|or){BREAK})"
SECTION = r"\d+(?:\.\d+)*(?![\w%]|\.\d|-\w)"
RULE = r"(?:[RO]\d+|problem [A-Z])\b"
CITATION = re.compile(
    rf"(?:veRoCE{BREAK}(?P<sections>{SECTION}(?:{AND}{SECTION})*)"
    rf"|[Oo]ut-of-order{BREAK}(?P<rules>(?:{RULE}|{SECTION})(?:{AND}(?:{RULE}|{SECTION}))*))")
# In the engine's own folders a number in brackets is a section, and R with a number a rule.
BARE_IN = re.compile(r"src/transport/(veroce|paths)/|src/wire/(veroce|capseth|tseth|tseeth)")
BARE = re.compile(r"(?<![\w.)])\((?P<sections>\d+\.\d+(?:, \d+(?:\.\d+)?)*)(?=[,)])|\((?P<rules>R\d+)\)")


def numbered(page):
    """What can be cited: sections of the first part, and "out-of-order" ones, rules, cases and problems of the second."""
    return (set(re.findall(r"^#+ (\d+(?:\.\d+)?)\.? ", page, flags=re.M)),
            set(re.findall(r"^## Out-of-order (\d+)\. ", page, flags=re.M)) |
            set(re.findall(r"^- \*\*(R\d+)\.\*\* ", page, flags=re.M)) |
            set(re.findall(r"^\| (O\d+) \| ", page, flags=re.M)) |
            {"problem " + p for p in re.findall(r"^\| ([A-Z]) \| ", page, flags=re.M)})


def check_citations(root):
    sections, rules = numbered((root / "docs/veroce-wire.md").read_text())
    for path in sorted(p for folder in CITING for p in (root / folder).glob("**/*")):
        if path.suffix not in CITING_FILES or not path.is_file():
            continue
        text = path.read_text(errors="replace")
        bare = BARE.finditer(text) if BARE_IN.match(path.relative_to(root).as_posix()) else []
        for m in [*CITATION.finditer(text), *bare]:
            line = text.count("\n", 0, m.start()) + 1
            for cited in re.findall(SECTION, m["sections"] or ""):
                if cited not in sections:
                    yield f"{path}:{line}: docs/veroce-wire.md has no section {cited}"
            for cited in re.findall(rf"{RULE}|(?<![RO\d.]){SECTION}", m["rules"] or ""):
                if cited not in rules:
                    yield f"{path}:{line}: docs/veroce-wire.md has no {cited}"


# [text](target) and ![text](target). Code shows links, it does not make them.
LINK = re.compile(r"\]\(([^()\s]+)\)")
CODE = re.compile(r"^```.*?^```|(?<=\n\n)(?:(?:    |\t)[^\n]*\n)+|`[^`\n]+`", flags=re.M | re.S)


def blanked(text, pattern):
    return pattern.sub(lambda m: re.sub(r"[^\n]", " ", m.group()), text)


def anchors(page):
    """What `#...` can name in a page: its headings, in the form that GitHub and GitLab give them."""
    seen = {}
    for heading in re.findall(r"^#+ (.*)$", blanked(page, re.compile(r"^```.*?^```", flags=re.M | re.S)), flags=re.M):
        name = re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")
        seen[name] = seen.get(name, -1) + 1
        yield f"{name}-{seen[name]}" if seen[name] else name


def check_pages(root):
    for page in sorted([*root.glob("*.md"), *root.glob("docs/**/*.md")]):
        text = blanked(page.read_text(), CODE)
        for m in LINK.finditer(text):
            target, _, anchor = m.group(1).partition("#")
            if re.match(r"\w+:", target):
                continue
            to = (page.parent / target) if target else page
            line = text.count("\n", 0, m.start()) + 1
            if not to.exists():
                yield f"{page}:{line}: {target} does not exist"
            elif anchor and anchor not in anchors(to.read_text()):
                yield f"{page}:{line}: {target or page.name} has no heading #{anchor}"


# Lines of a function from its opening to its closing brace. Tests and fuzz targets are not looked at.
MEDIAN_MAX, P90_MAX, LINES_MAX, FILE_MAX, PARAMETERS_MAX = 12, 30, 90, 800, 6
PACKET_PATH = {"transport", "nic", "wire", "mem", "io"}
FUNCTION = re.compile(r"^(?P<head>(?![ \t\n#/*}])[^;{}=]*?\b(?P<name>\w+)\((?P<parameters>[^;{}]*)\))\n\{\n(?P<body>.*?)^\}\n",
                      re.M | re.S)


def parameters_of(text):
    """How many there are; a comma within brackets separates none."""
    depth, count = 0, 1
    for c in text:
        depth += (c in "([") - (c in ")]")
        count += c == "," and not depth
    return 0 if text.strip() in ("", "void") else count


def check_sizes(root):
    lengths = []
    tools = [("tools", p) for p in sorted((root / "tools").glob("*.[ch]"))]
    for module, path in [*product_files(root), *tools]:
        text = path.read_text()
        if path.suffix == ".c" and text.count("\n") > FILE_MAX:
            yield f"{path.relative_to(root)}: {text.count(chr(10))} lines: what is its second subject?"
        for m in FUNCTION.finditer(strip_comments(text)):
            lines, parameters = m["body"].count("\n") + 2, parameters_of(m["parameters"])
            lengths.append(lines)
            if lines > LINES_MAX:
                yield f"{path.relative_to(root)}: {m['name']}() has {lines} lines"
            if parameters > PARAMETERS_MAX and module.split("/")[0] in PACKET_PATH:
                yield f"{path.relative_to(root)}: {m['name']}() has {parameters} parameters"
    lengths.sort()
    for what, share, most in (("half", 50, MEDIAN_MAX), ("nine tenths", 90, P90_MAX)):
        longest = lengths[len(lengths) * share // 100] if lengths else 0
        if longest > most:
            yield f"{what} of the functions are to have {most} lines at most, and have {longest}"


def c_files(root):
    return [p for folder in ("src", "tools", "tests", "bench", "include") for p in sorted((root / folder).rglob("*.[ch]"))]


def clang_format(files, *options):
    """Runs the one release that the tree is laid out by, because releases differ."""
    try:
        return subprocess.run(["clang-format-14", *options, *files], stderr=subprocess.PIPE, text=True).stderr
    except FileNotFoundError:
        sys.exit("clang-format-14 is missing: it is a package of Debian 12")


def check_layout(root):
    said = clang_format(c_files(root), "--dry-run")
    yield from sorted({f"{f}: make format lays it out otherwise" for f in re.findall(r"^(\S+?):\d+:\d+: warning", said, re.M)})


def format_tree(root):
    clang_format(c_files(root), "-i")
    return ()


def main():
    checks = {"includes": check_includes, "links": check_links, "core": check_core, "engines": check_engines, "memory": check_memory, "time": check_time,
              "headers": check_headers, "spdx": check_spdx, "citations": check_citations, "pages": check_pages,
              "sizes": check_sizes, "layout": check_layout, "format": format_tree}
    builds = {"links": (4,), "headers": (3, 4)}
    if len(sys.argv) < 3 or sys.argv[1] not in checks or len(sys.argv) not in builds.get(sys.argv[1], (3,)):
        sys.exit(__doc__)
    problems = list(checks[sys.argv[1]](*map(pathlib.Path, sys.argv[2:])))
    print("\n".join(problems) or "nothing found")
    sys.exit(bool(problems))


if __name__ == "__main__":
    main()
