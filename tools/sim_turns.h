/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Programs in simulated time: processes, the network between them, and who runs when (lockstep/lockstep.h). Time passes
 * only while no program runs. What programs send at one time enters the network in the order of their hosts, so it does
 * not matter which of them was quicker.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "sim/scenario.h"

enum { TURNS_WHY_BYTES = 4096 };

/* A program of a run. */
struct turns_program {
	/* Before the run. */
	uint32_t host;
	char *const *words; /* command and arguments, *borrowed* */
	const char *text;   /* as the user wrote it, *borrowed* */
	const char *name;   /* of its section, *borrowed*; NULL: none */
	uint64_t start_ps;
	int out_fd; /* its standard output and standard error, *borrowed* */
	/* After it. */
	pid_t pid;
	bool ended;        /* by itself */
	int status;        /* as waitpid(2) has it, if it ended */
	uint64_t ended_ps; /* simulated time */
};

enum turns_end {
	TURNS_ENDED,       /* all programs have */
	TURNS_STUCK,       /* all wait, and nothing will happen any more */
	TURNS_FAILED,      /* a program was ended by a signal, never waits, or has broken the rules */
	TURNS_INTERRUPTED, /* sim_interrupted() */
	TURNS_REFUSED      /* nothing was run */
};

struct turns_result {
	uint64_t ended_ps;
	uint64_t packets, dropped, refused; /* struct outside_counts */
	uint64_t turns;                     /* that programs had, together */
};

/*
 * Runs the programs, which are of different hosts and in the order of those, until all have ended. No process of theirs
 * is left behind. patience_s: real seconds that a program may run without waiting. Unless it returns
 * TURNS_ENDED, why is a sentence.
 */
enum turns_end turns_run(const struct scenario *, struct turns_program *, size_t count, uint64_t patience_s,
			 struct turns_result *, char why[TURNS_WHY_BYTES]);
