#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# install-packages.sh KIND...: installs the packages of packages.txt that are missing. Without root it
# names them and the one command that installs them, and fails.
set -eu
here=$(dirname "$0")
missing=
for kind in "$@"; do
	for p in $(awk -v k="$kind" '$1 == k { print $2 }' "$here/packages.txt"); do
		dpkg-query -W -f '${db:Status-Abbrev}' "$p" 2>/dev/null | grep -q '^ii' || missing="$missing $p"
	done
done
[ -n "$missing" ] || exit 0
if [ "$(id -u)" -ne 0 ]; then
	echo "missing packages:$missing" >&2
	echo "install them with: sudo apt-get install -y$missing" >&2
	exit 1
fi
echo "installing:$missing"
export DEBIAN_FRONTEND=noninteractive
log=$(mktemp)
trap 'rm -f "$log"' EXIT
# shellcheck disable=SC2086
if ! { apt-get update && apt-get install -y --no-install-recommends $missing; } >"$log" 2>&1; then
	tail -n 20 "$log" >&2
	exit 1
fi
