/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A program's messages and timers, for program.c, which has the calls, and workload_program.c, which is the workload.
 *
 * Private to src/workload.
 */
#pragma once

#include "workload/agenda.h"
#include "workload/graph_match.h"
#include "workload/program.h"
#include "workload/workload.h"

#define PROGRAM_NONE UINT32_MAX

/* A send, from the call to its last report and its callback; a receive or a timer, from the call to its callback. */
struct program_op {
	program_callback done;
	void *context;
	uint64_t bytes, tag;
	uint64_t order; /* of the receives, in that of the calls */
	uint32_t src, dst;
	uint32_t next;   /* in `out`, `due` or the free ones */
	uint8_t reports; /* that are still to come */
	bool due;        /* in `due` */
	bool waits;      /* a receive without a message */
};

struct program_list {
	uint32_t first, last; /* PROGRAM_NONE: it is empty */
};

struct program {
	uint32_t ranks;
	uint64_t bytes_max;
	bool stopped, failed;
	struct match match;
	struct program_op *ops;
	uint32_t op_count, op_room, op_free;
	struct program_list out, due; /* sends to be handed out; callbacks to be called */
	struct agenda timers;         /* what: their ops */
	uint64_t order;
	uint64_t waiting;
};

void program_append(struct program *, struct program_list *, uint32_t op);
/* PROGRAM_NONE: it is empty. */
uint32_t program_take(struct program *, struct program_list *);
/* Frees the op unless something is still to come. */
void program_let_go(struct program *, uint32_t op);
/* A message of the op has arrived. */
void program_arrive(struct program *, uint32_t op);
