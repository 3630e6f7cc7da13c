/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What running programs count, summed by device. The sums never go back: what a program counted stays in them when it
 * ends, as it does in an adapter's. A program that begins and ends between two looks is not seen.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "engine/config.h"
#include "engine/engine.h"
#include "engine/stats.h"

enum { TALLY_COMM_BYTES = STATS_COMM_BYTES };

/* A device of a running program. */
struct tally_program {
	pid_t pid;                   /* here; 0: it is in a PID namespace that cannot be seen from here */
	pid_t own_pid;               /* in its own namespace */
	char comm[TALLY_COMM_BYTES]; /* printable */
	uint64_t started_ns;
	unsigned device;
	bool seen;         /* at the last look */
	uint64_t *counted; /* by field */
};

struct tally {
	const struct config *config; /* borrowed */
	const struct stats_field *fields;
	size_t field_count;
	struct tally_program *programs; /* those that live, and those that did not answer the last time */
	size_t program_count;
	uint64_t *sums[ENGINE_DEVICES_MAX]; /* by field */
};

/* Borrows the settings. NULL: out of memory. */
struct tally *tally_new(const struct config *);
void tally_free(struct tally *); /* NULL is harmless */

/*
 * Looks at the counters of all programs of this user, or for root of every user. One that does not answer costs some
 * tenths of a second. 0 or a negative errno.
 */
int tally_look(struct tally *);

/* The place of a counter of `verbena stat`, which must be one. */
size_t tally_field(const struct tally *, const char *name);

/*
 * Calls visit for the page of each such program's device, which it borrows, with the process as the group knows it. 0 or
 * a negative errno.
 */
struct group_member;
struct group_id;
typedef void tally_visit(void *ctx, const struct group_id *, const struct group_member *, const struct stats_page *);
int tally_each(const struct config *, tally_visit *, void *ctx);
