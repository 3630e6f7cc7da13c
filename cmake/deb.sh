#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# deb.sh DIR: builds the Debian package from a copy of this tree, and leaves it in DIR as verbena.deb.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
mkdir -p "$1"
out=$(cd "$1" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/verbena"
# In a checkout what git knows, with the changes not yet committed; elsewhere all but what was built.
cd "$root"
if git rev-parse --git-dir >/dev/null 2>&1; then
	git ls-files -co --exclude-standard -z | tar --null -T - -cf - --ignore-failed-read 2>/dev/null
else
	tar --exclude='./build*' -cf - .
fi | tar -xf - -C "$work/verbena"
cd "$work/verbena"
if ! DEB_BUILD_OPTIONS="nocheck noautodbgsym parallel=$(nproc)" dpkg-buildpackage -b -us -uc >"$work/log" 2>&1; then
	tail -n 40 "$work/log" >&2
	exit 1
fi
cp "$work"/verbena_*.deb "$out/"
cp "$work"/verbena_*.deb "$out/verbena.deb"
echo "built $(cd "$work" && ls verbena_*.deb) in $out"
