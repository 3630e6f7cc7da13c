#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Plants citations in a small tree; tidy.py must see each wrong one, at its line, and none in what is right."""
import pathlib
import subprocess
import sys
import tempfile

TIDY = pathlib.Path(__file__).with_name("tidy.py")

PAGE = """# Part 1
## 2. Headers
### 2.1 One
# Part 2
## Out-of-order 1. Problems
| A | early |
## Out-of-order 3. Rules
- **R7.** A rule.
## Out-of-order 4. Cases
| O5 | what happens |
"""
# Nothing here may look like a citation where this file itself is read.
V, O = "veRo" + "CE ", "out-of-" + "order "
GOOD = [
    f"/* {V}2 and 2.1; {O}R7, O5, problem A */",
    f"/*\n * {V.strip()}\n * 2.1, our choice; {O}4, O5\n */",
    f"-- {V}16-bit fields, ConnectX, {V}2: a colon, {O}window",
    f"/* ByteDance's {V.strip()}, 13.7 % of it; RFC 5041 5.1; IBTA 9.9.3 (9.7.5) */",
    "/* as it is (2.1, our choice), and (R7) */",
]
# text, the line that must be named, what must be said
WRONG = [
    (f"/* {V}2.2 */", 1, "no section 2.2"),
    (f"/* {V}2, 9 */", 1, "no section 9"),
    (f"/* {V}2 to 7 */", 1, "no section 7"),
    (f"\n/*\n * {V.strip()}\n * 3.1\n */", 3, "no section 3.1"),
    (f"/* {O}R8 */", 1, "no R8"),
    (f"/* {O}O5; R7, R70 */", 1, "no R70"),
    (f"/* {O}O5 to O6 */", 1, "no O6"),
    (f"/* {O}R7, problem K */", 1, "no problem K"),
    (f"/* {O}2 */", 1, "no 2"),
    (f"/* {V}2.1; {O}R9 */", 1, "no R9"),
    ("x;\n/* (2.4) */", 2, "no section 2.4"),
    ("/* (2.1, 3) */", 1, "no section 3"),
    ("/* (R1) */", 1, "no R1"),
]


def said(text):
    with tempfile.TemporaryDirectory() as work:
        root = pathlib.Path(work)
        source = root / "src/transport/veroce/a.c"
        source.parent.mkdir(parents=True)
        source.write_text(text)
        (root / "docs").mkdir()
        (root / "docs/veroce-wire.md").write_text(PAGE)
        return subprocess.run([sys.executable, TIDY, "citations", root], capture_output=True, text=True).stdout


def main():
    for text in GOOD:
        if said(text) != "nothing found\n":
            sys.exit(f"finds fault with what is right: {text}: {said(text)}")
    for text, line, words in WRONG:
        lines = said(text).splitlines()
        if len(lines) != 1 or f"a.c:{line}: " not in lines[0] or not lines[0].endswith(words):
            sys.exit(f"does not see what is planted in {text}: {lines}")
        print(lines[0])


main()
