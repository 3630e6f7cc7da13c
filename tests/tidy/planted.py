#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Plants wrong arrows in a small tree; tidy.py must see each of them, and nothing in the tree without."""
import json
import pathlib
import subprocess
import sys
import tempfile

TIDY = pathlib.Path(__file__).with_name("tidy.py")

GOOD = {
    "wire/bth.h": "int bth_decode(int);\n",
    "wire/bth.c": '#include "wire/bth.h"\nint bth_decode(int x) { return x; }\n',
    "nic/nic.h": '#include "wire/bth.h"\nint nic_input(int);\n',
    "nic/state.h": "/* SPDX */\n/*\n * Inside.\n * Private to src/nic.\n */\nstruct nic { int x; };\n",
    "nic/nic.c": '#include "nic/nic.h"\n#include "nic/state.h"\nint nic_input(int x) { return bth_decode(x); }\n',
    "engine/engine.c": '#include "nic/nic.h"\nint engine_turn(int x) { return nic_input(x); }\n',
    "transport/paths/pair.h": "int pair_get(int);\n",
    "transport/veroce/veroce.h": '#include "transport/paths/pair.h"\nint veroce_connect(int);\n',
    "verbs/post.c": "int ibv_post(int x) { return x; }\n",
    "sdr/slot.h": "int slot_open(int);\n",
    "sdr/slot.c": '#include "sdr/slot.h"\nint slot_open(int x) { return x; }\n',
    "sdr/verbs/recv.h": "int recv_post(int);\n",
    # A folder with a row of its own; the public verbs are anybody's.
    "sdr/verbs/recv.c": '#include "sdr/slot.h"\nint ibv_post(int);\nint recv_post(int x) { return ibv_post(slot_open(x)); }\n',
}
# (check, file, its text, what must be said)
PLANTED = [
    ("includes", "wire/bth.c", '#include "nic/nic.h"\nint bth_decode(int x) { return x; }\n', "may not include nic/nic.h"),
    # The header is one that engine may include; what it brings along is not engine's to call.
    ("links", "engine/engine.c", '#include "nic/nic.h"\nint engine_turn(int x) { return bth_decode(x); }\n',
     "engine may not use bth_decode of wire"),
    # No header at all.
    ("links", "wire/bth.c", "int nic_input(int);\nint bth_decode(int x) { return nic_input(x); }\n",
     "wire may not use nic_input of nic"),
    ("links", "engine/engine.c", "int engine_turn(void) { return 0; }\nint nic_input(int x) { return x; }\n",
     "nic_input is a name of"),
    ("includes", "engine/engine.c", '#include "nic/state.h"\nint engine_turn(int x) { return x; }\n',
     "nic/state.h is private to src/nic"),
    ("includes", "nic/state.h", "/* SPDX */\n/* Inside. Private to src/nic/qp and src/engine. */\nstruct nic { int x; };\n",
     "nic/state.h is private to src/nic/qp and src/engine"),
    ("includes", "sdr/slot.c", '#include "sdr/verbs/recv.h"\nint slot_open(int x) { return x; }\n',
     "sdr may not include sdr/verbs/recv.h"),
    ("includes", "transport/paths/pair.h", '#include "transport/veroce/veroce.h"\n',
     "transport/paths may not include transport/veroce/veroce.h"),
    ("links", "sdr/verbs/recv.c", "int nic_input(int);\nint recv_post(int x) { return nic_input(x); }\n",
     "sdr/verbs may not use nic_input of nic"),
    ("links", "sdr/slot.c", "int ibv_post(int);\nint slot_open(int x) { return ibv_post(x); }\n",
     "sdr may not use ibv_post of verbs"),
    ("engines", "nic/nic.c", '#include "transport/veroce/veroce.h"\n', "nic may not name"),
    ("engines", "nic/nic.c", "void gbn_reset(void);\nint nic_input(int x) { gbn_reset(); return x; }\n",
     "nic may not name gbn_reset("),
    ("engines", "nic/nic.c", "struct qp { void *gbn; };\nint has(struct qp *qp) { return !!qp->gbn; }\n",
     "nic may not name ->gbn"),
    ("engines", "nic/nic.c", "enum { QPT_RC };\nint is_rc(int type) { return type == QPT_RC; }\n",
     "nic may not name QPT_RC"),
    ("memory", "verbs/post.c", "#include <stdlib.h>\nvoid *ibv_post(int x) { return calloc(1, x); }\n",
     "calloc() is for programs"),
    ("time", "verbs/post.c", "#include <time.h>\nint ibv_post(int x) { struct timespec t; return clock_gettime(x, &t); }\n",
     "clock_gettime() is the host's"),
    ("sizes", "wire/bth.c", "int bth_decode(int a, int b, int c, int (*d)(int, int), int e, int f)\n{\n\treturn a;\n}\n"
     "int wide(int a, int b, int c, int d, int e, int f,\n\t int g)\n{\n\treturn a;\n}\n", "wide() has 7 parameters"),
    ("sizes", "engine/engine.c", "static int engine_turn(int x)\n{\n" + 88 * "\tx++;\n" + "\treturn x;\n}\n",
     "engine_turn() has 91 lines"),
    ("sizes", "verbs/post.c", 801 * "\n", "801 lines"),
]


def make(work, files, objects):
    for name, text in files.items():
        source = work / "src" / name
        source.parent.mkdir(parents=True, exist_ok=True)
        source.write_text(text)
    commands = []
    for name in files:
        if objects and name.endswith(".c"):
            source = work / "src" / name
            obj = work / "build/src" / pathlib.Path(name).parent / "CMakeFiles/mod.dir" / (source.name + ".o")
            obj.parent.mkdir(parents=True, exist_ok=True)
            command = ["gcc", "-c", "-I", str(work / "src"), str(source), "-o", str(obj)]
            subprocess.run(command, check=True)
            commands.append({"directory": str(work / "build"), "command": " ".join(command)})
    if objects:
        (work / "build/compile_commands.json").write_text(json.dumps(commands))


def said(work, check):
    command = [sys.executable, TIDY, check, work] + ([work / "build"] if check == "links" else [])
    return subprocess.run(command, capture_output=True, text=True).stdout


def main():
    with tempfile.TemporaryDirectory() as work:
        make(pathlib.Path(work), GOOD, True)
        for check in ("includes", "engines", "memory", "time", "links"):
            if said(pathlib.Path(work), check) != "nothing found\n":
                sys.exit("%s finds fault with what is right: %s" % (check, said(pathlib.Path(work), check)))
    for check, name, text, words in PLANTED:
        with tempfile.TemporaryDirectory() as work:
            make(pathlib.Path(work), {**GOOD, name: text}, check == "links")
            out = said(pathlib.Path(work), check)
            if words not in out:
                sys.exit("%s does not see what was planted in %s: %s" % (check, name, out))
            print(out.strip())


main()
