#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# fuzz.sh SECONDS [TARGET...]: builds the libFuzzer targets and gives each so many seconds, all of them
# unless some are named. New inputs are kept in build-fuzz/found/TARGET; one that broke something is
# left there too and its path printed. Inputs worth keeping go to the corpus/TARGET beside the source.
set -u
cd "$(dirname "$0")/.." || exit 1
seconds=${1:-60}
case $seconds in
'' | *[!0-9]* | 0) echo "fuzz: \"$seconds\" is no number of seconds: 1 or more" >&2; exit 2 ;;
esac
[ $# -eq 0 ] || shift
if ! { cmake --preset fuzz && cmake --build --preset fuzz --target fuzz_targets; } >build-fuzz.log 2>&1; then
	tail -n 40 build-fuzz.log
	echo "fuzz: the build failed" >&2
	exit 1
fi
rm -f build-fuzz.log
passed=0
failed=0
for target in "${@:-}"; do
	for program in build-fuzz/fuzz/${target:-*}; do
		name=$(basename "$program")
		if [ ! -x "$program" ]; then
			echo "fuzz: no target \"$name\"; there are: $(ls build-fuzz/fuzz | tr '\n' ' ')" >&2
			exit 2
		fi
		found=build-fuzz/found/$name
		mkdir -p "$found"
		corpus=$(find src tests -type d -path "*/corpus/$name")
		echo "== $name, $seconds s"
		# shellcheck disable=SC2086
		if "$program" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=4096 -print_final_stats=1 \
			-artifact_prefix="$found/broke-" "$found" $corpus >"$found.log" 2>&1; then
			sed -n 's/^stat::number_of_executed_units: */  inputs tried: /p' "$found.log"
			sed -n 's/^#[0-9]*[[:space:]]*DONE *\(cov: [0-9]*\).*/  \1/p' "$found.log"
			passed=$((passed + 1))
		else
			tail -n 40 "$found.log"
			failed=$((failed + 1))
		fi
	done
done
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
