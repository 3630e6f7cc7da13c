#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# arm64.sh [CTEST_ARGUMENT...]: cross-compiles this tree for arm64 into build-arm64, with libraries from the machine's Debian mirror,
# and runs its units, corpora and simulations under qemu-user. Status 77: it cannot be done here, and says why.
#
# emulated.txt lists tests that are left out, and why: what qemu-user does not emulate.
set -u
here=$(cd "$(dirname "$0")" && pwd)
cd "$here/../.." || exit 1
for tool in aarch64-linux-gnu-gcc qemu-aarch64 mmdebstrap; do
	command -v $tool >/dev/null || { echo "skipped: needs $tool"; exit 77; }
done
if ! cmake/arm64-sysroot.sh build-arm64/sysroot; then
	echo "skipped: no libraries for arm64 from this machine's package registry"
	exit 77
fi
cmake --preset arm64 >build-arm64/log 2>&1 && cmake --build --preset arm64 >>build-arm64/log 2>&1 || {
	tail -n 40 build-arm64/log
	exit 1
}
left_out=$(awk '!/^#/ && NF { printf "%s%s", bar, $1; bar = "|" }' "$here/emulated.txt")
nice -n 10 ctest --test-dir build-arm64 --output-on-failure --no-tests=error -j "$(nproc)" -L '^(unit|corpus|sim)$' -LE '^all$' \
	-E "^($left_out)\$" "$@"
