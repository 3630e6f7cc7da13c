#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Builds and runs every test, in two builds: "debug" (ASan, UBSan) runs what tests the code from the
# inside, "release" runs what loads the shared library into other programs, and the simulations again.
# The last line is "N passed, N failed". Root also gets the tests that need network namespaces.
set -u
cd "$(dirname "$0")/.." || exit 1
passed=0
failed=0

run() { # PRESET BUILD_DIR CTEST_ARGS...
	preset=$1
	dir=$2
	shift 2
	echo "== $preset: build"
	if ! { cmake --preset "$preset" && cmake --build --preset "$preset"; } >"$dir.log" 2>&1; then
		tail -n 40 "$dir.log"
		echo "the $preset build failed"
		failed=$((failed + 1))
		return
	fi
	echo "== $preset: test"
	ctest --test-dir "$dir" --output-on-failure --no-tests=error "$@" 2>&1 | tee "$dir.ctest"
	p=$(grep -cE ' +Passed +[0-9.]+ sec' "$dir.ctest")
	total=$(sed -n 's/.*tests failed out of \([0-9]*\)$/\1/p' "$dir.ctest" | tail -n 1)
	skipped=$(grep -cE '\*\*\*Skipped' "$dir.ctest")
	passed=$((passed + p))
	failed=$((failed + ${total:-1} - p - skipped))
}

run debug build-debug -L 'unit|corpus|sim|tidy'
run release build -L 'sim|abi|verbs|program'
rm -f build.log build-debug.log build.ctest build-debug.ctest
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
