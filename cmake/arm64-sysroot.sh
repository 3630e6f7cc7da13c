#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# arm64-sysroot.sh DIR: unpacks the arm64 libraries that Verbena needs into DIR, from the machine's own Debian mirror. Nothing of it
# is installed, and the machine's package database is not touched. A DIR that has them already is left alone.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
[ ! -e "$1/.complete" ] || exit 0
# Compilers and programs are this machine's.
include=$(awk '$1 == "build" && $2 ~ /^lib.*-dev$/ { printf "%s%s", comma, $2; comma = "," }' "$here/packages.txt")
release=$(. /etc/os-release && echo "$VERSION_CODENAME")
sources=
for s in /etc/apt/sources.list.d/debian.sources /etc/apt/sources.list; do
	[ ! -s $s ] || { sources=$s; break; }
done
rm -rf "$1"
mkdir -p "$1"
mmdebstrap --quiet --variant=extract --architectures=arm64 --include="$include" "$release" "$1" $sources
# Links are followed from outside.
find "$1" -type l -lname '/*' -printf '%p %l\n' | while read -r link to; do
	ln -snfr "$1$to" "$link"
done
touch "$1/.complete"
