#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# run.sh [check|test|all]: builds and runs the tests of a tier; the last line is "N passed, N failed".
#
#   check   the release build: units, corpora, simulations, the ABI, and one pair of processes a program
#   test    besides: units, corpora and simulations under ASan and UBSan, and the programs over loopback in full,
#           between network namespaces and as another user what depends on that. When root runs it, the programs of
#           `check` run a second time for an ordinary user.
#   all     everything in every place, 10,000 seeds of the swarms, each fuzzer for FUZZ_SECONDS (60)
#
# A test's label says what it is, and two labels in which tier it runs: "check" also in `check`, "all" in `all`
# alone. "waits" says that it needs next to no processor. apart.c gives programs the namespaces that they need.
set -u
cd "$(dirname "$0")/.." || exit 1
tier=${1:-test}
case $tier in
check | test | all) ;;
*) echo "run.sh: there is no tier \"$tier\"; there are: check, test, all" >&2; exit 2 ;;
esac
logs=$(mktemp -d)
trap 'rm -rf "$logs"' EXIT
trap 'exit 1' INT TERM
processors=$(nproc)

# build PRESET
build() {
	echo "== $1: build"
	if ! { cmake --preset "$1" && cmake --build --preset "$1"; } >"$logs/$1.build" 2>&1; then
		tail -n 40 "$logs/$1.build"
		echo "the $1 build failed"
		echo "0 passed, 1 failed"
		exit 1
	fi
}

# leg NAME NICE BUILD_DIR CTEST_ARGS...: prints a line as each test ends, and what those that failed printed.
leg() {
	name=$1
	nice=$2
	dir=$3
	shift 3
	nice -n "$nice" ctest --test-dir "$dir" --output-on-failure --no-tests=error "$@" 2>&1 | tee "$logs/$name.leg" |
		grep --line-buffered -vE '^ +Start |^Internal ctest|^Test project|^$'
}

ordinary() {
	if [ -n "$(find build/verbena -perm -o=rx)" ]; then
		echo "== programs once more, as an ordinary user"
		(export APART_AS=65534; leg ordinary 0 build/tests -j "$((processors + 1))" -L '^check$')
	else
		echo "== nobody else may read this tree, so no programs run as an ordinary user"
	fi
}

if [ "$tier" = check ]; then
	build release
	leg release 0 build -j "$processors" -L '^(unit|corpus|sim|abi|tidy|check)$' -LE '^all$'
else
	build release
	build debug
	except=''
	quiet='^(sim|abi|tidy)$'
	if [ "$tier" = test ]; then
		except='^all$'
		# Simulations say the same in both builds; of the swarms this one has eight times the seeds.
		quiet='^(swarm|many|abi|tidy)$'
		# So much of what a process has freed is watched for a later use; `make test-all` watches 256 MiB, which takes
		# fresh pages all the time, a tenth of these tests' processor time. Of who has allocated it six functions are told.
		export ASAN_OPTIONS="quarantine_size_mb=32:malloc_context_size=6${ASAN_OPTIONS:+:$ASAN_OPTIONS}"
	fi
	# Programs poll while they wait for each other, and wait for timers and for each other's start: one pair more than
	# there are processors fills these. What only computes has what programs leave, and a tenth beside those that leave
	# nothing: some of its tests have processes that wait for each other.
	{
		leg debug 10 build-debug -j "$processors" -L '^(unit|corpus|sim)$' ${except:+-LE "$except"}
		leg quiet 10 build -j "$processors" -L "$quiet" ${except:+-LE "$except"}
	} &
	# Those that wait for timers take next to no processor, so they run beside. Each leg has a folder of its own,
	# since ctest keeps its log there.
	leg waits 0 build/tests/programs -j "$processors" -L '^waits$' ${except:+-LE "$except"} &
	leg release 0 build/tests -j "$((processors + 1))" -L '^(verbs|program)$' -LE "^waits\$${except:+|$except}"
	[ "$(id -u)" -ne 0 ] || ordinary
	wait
fi

# count TEXT: how many tests ended so.
count() {
	cat "$logs"/*.leg | grep -cE "^ *[0-9]+/[0-9]+ Test .*$1"
}
passed=$(count ' Passed +[0-9.]+ sec')
skipped=$(count '\*\*\*Skipped')
total=$(count 'sec *$')
failed=$((total - passed - skipped))
for l in "$logs"/*.leg; do
	# A leg that ended without its summary has not run to its end.
	grep -q 'tests passed, ' "$l" || failed=$((failed + 1))
done
if [ "$tier" = all ]; then
	echo "== fuzzers"
	tests/fuzz.sh "${FUZZ_SECONDS:-60}" | tee "$logs/fuzz"
	passed=$((passed + $(sed -n 's/^\([0-9]*\) passed, .*/\1/p' "$logs/fuzz")))
	failed=$((failed + $(sed -n 's/.* \([0-9]*\) failed$/\1/p' "$logs/fuzz")))
fi
echo "== the ten slowest"
cat "$logs"/*.leg |
	sed -nE 's/^ *[0-9]+\/[0-9]+ Test +#[0-9]+: ([^ ]+) .* ([0-9.]+) sec *$/\2 s  \1/p' | sort -rn | head -n 10
times >"$logs/times"
echo "== processor time, user and system: $(tail -n 1 "$logs/times")"
[ "$skipped" -eq 0 ] || echo "$skipped skipped: they say why when run alone, as ctest --test-dir build -V -R NAME"
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
