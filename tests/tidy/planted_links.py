#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Plants broken links in a small tree of pages; tidy.py must see each of them, and nothing in what is right."""
import pathlib
import subprocess
import sys
import tempfile

TIDY = pathlib.Path(__file__).with_name("tidy.py")

PAGE = """# One page
## What `code` is, and why
### Twice
### Twice
"""
GOOD = """# Here
[page](docs/page.md), [page](docs/page.md#what-code-is-and-why), [second](docs/page.md#twice-1), [here](#here),
[folder](docs), ![picture](docs/a.svg), [away](https://example.org/nowhere.md#x), `[code](nowhere.md)`

    [an example](nowhere.md)

```
[another](nowhere.md)
```
"""
# text of README.md, the line that must be named, what must be said
WRONG = [
    ("[x](docs/gone.md)", 1, "docs/gone.md does not exist"),
    ("\n![x](gone.svg)", 2, "gone.svg does not exist"),
    ("[x](docs/page.md#what-code-was)", 1, "docs/page.md has no heading #what-code-was"),
    ("[x](docs/page.md#twice-2)", 1, "docs/page.md has no heading #twice-2"),
    ("# Here\n[x](#there)", 2, "README.md has no heading #there"),
    ("| a | [x](docs/gone.md) |", 1, "docs/gone.md does not exist"),
]


def said(text):
    with tempfile.TemporaryDirectory() as work:
        root = pathlib.Path(work)
        (root / "docs").mkdir()
        (root / "docs/page.md").write_text(PAGE)
        (root / "docs/a.svg").write_text("<svg/>")
        (root / "README.md").write_text(text)
        return subprocess.run([sys.executable, TIDY, "pages", root], capture_output=True, text=True).stdout


def main():
    if said(GOOD) != "nothing found\n":
        sys.exit("finds fault with what is right: " + said(GOOD))
    for text, line, words in WRONG:
        lines = said(text).splitlines()
        if len(lines) != 1 or f"README.md:{line}: " not in lines[0] or not lines[0].endswith(words):
            sys.exit(f"does not see what is planted in {text}: {lines}")
        print(lines[0])


main()
