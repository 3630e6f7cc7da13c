# SPDX-License-Identifier: BSD-2-Clause
# A thin front for the CMake presets. `make help` lists the targets.
.PHONY: all build install deb packages check test test-all demo bench bench-loss bench-sim reproduce interop fuzz format clean help

# The loader's lists, by which programs find Verbena, cannot name such a folder; nor can some of the tests'.
ifneq (,$(strip $(foreach c,: ; $$,$(findstring $c,$(CURDIR))) $(filter-out 1,$(words $(CURDIR)))))
$(error "$(CURDIR)" has a space or one of : ; $$ in its name: Verbena needs a folder without)
endif

all: build

help:
	@echo "make          install what building needs, build into build/"
	@echo "make install  into PREFIX (/usr/local), under DESTDIR if that is set"
	@echo "make deb      the Debian package, build/deb/verbena.deb"
	@echo "make demo     install what is missing, build, run ibv_rc_pingpong and ib_write_bw over Verbena"
	@echo "make check    units, simulations and a pair of processes a program: a minute and a half"
	@echo "make test     what a change must pass: sanitizers, and programs in several places: five minutes"
	@echo "make test-all every test in every place, 10,000 seeds, all fuzzers: as long as it takes"
	@echo "make bench    perftest over Verbena beside its peers: medians and ratios"
	@echo "make bench-loss  what loss costs veRoCE, IRN and RoCEv2: simulated, then over nftables"
	@echo "make bench-sim   what simulating costs: packet-hops a second, set-up, memory"
	@echo "make reproduce   simulate published results and this project's goals into build/reproduce/ (hours)"
	@echo "make interop  against Linux's own rxe and siw in a guest (root, minutes)"
	@echo "make fuzz     libFuzzer targets, FUZZ_SECONDS each (60)"
	@echo "make format   lay out the C files by .clang-format (clang-format-14)"
	@echo "make clean    remove what was built"

build:
	@cmake/install-packages.sh build
	@cmake --preset release >/dev/null
	@cmake --build --preset release

PREFIX ?= /usr/local

install: build
	@cmake --install build --prefix "$(PREFIX)"

deb:
	@cmake/install-packages.sh build deb
	@cmake/deb.sh build/deb

demo:
	@cmake/install-packages.sh build test
	@$(MAKE) --no-print-directory build
	@tools/demo.sh build/verbena

check test:
	@cmake/install-packages.sh build test
	@tests/run.sh $@

test-all:
	@cmake/install-packages.sh build test all deb
	@tests/run.sh all

bench:
	@cmake/install-packages.sh build test
	@$(MAKE) --no-print-directory build
	@bench/run.py $(BENCH_ARGS)

bench-loss:
	@cmake/install-packages.sh build test
	@$(MAKE) --no-print-directory build
	@if [ -x build/bench/loss_sim ]; then build/bench/loss_sim $(LOSS_SIM_ARGS); fi
	@bench/loss.py $(BENCH_ARGS)

bench-sim:
	@cmake/install-packages.sh build
	@$(MAKE) --no-print-directory build
	@build/bench/sim_speed $(BENCH_ARGS)

reproduce:
	@cmake/install-packages.sh build
	@$(MAKE) --no-print-directory build
	@bench/reproduce_sdr.py --page build/reproduce/sdr-results.md
	@bench/reproduce.py --page build/reproduce/results.md $(REPRODUCE_ARGS)

interop:
	@cmake/install-packages.sh build test
	@$(MAKE) --no-print-directory build
	@tests/interop/run.py

fuzz:
	@cmake/install-packages.sh build test
	@tests/fuzz.sh $${FUZZ_SECONDS:-60}

format:
	@python3 -B tests/tidy/tidy.py format .

clean:
	rm -rf build build-debug build-fuzz build-coverage
