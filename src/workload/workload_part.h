/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A kind of workload as the others see it: a generator behind four calls. A part names hosts by
 * rank and numbers its connections from 0; workload.c translates both for the simulation.
 *
 * Private to src/workload.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "workload/workload.h"

struct workload_part;

struct workload_part_ops {
	bool (*next)(struct workload_part *, struct message *);
	/* May be NULL: no message waits for a report. */
	void (*sent)(struct workload_part *, const struct message *, uint64_t now_ps);
	void (*received)(struct workload_part *, const struct message *, uint64_t now_ps);
	/* May be NULL: no more messages than it has passed to part_release() were released by the last report. */
	bool (*released)(struct workload_part *, struct message *);
	/* May be NULL, both of them: it has no timers. */
	uint64_t (*deadline)(const struct workload_part *);
	void (*expire)(struct workload_part *, uint64_t now_ps);
	/* May be NULL: it is done when as many messages as announced were sent and received. */
	bool (*is_done)(const struct workload_part *);
	/* May be NULL: it needs no memory. There was none, and the run cannot go on. */
	bool (*failed)(const struct workload_part *);
	/* May be NULL. The first message that was not handed out, if there is one. */
	bool (*held_back)(const struct workload_part *, struct message *);
	void (*free)(struct workload_part *);
};

struct workload_part {
	const struct workload_part_ops *ops;
	uint64_t seed; /* already of this kind and this part */
	uint64_t start_ps;
	uint32_t host_count; /* ranks */
	uint16_t tag;
	uint8_t class;
	uint32_t release_max; /* messages that one report can release */
	struct workload_facts facts;

	/* workload.c's. */
	uint32_t *hosts; /* by rank; NULL: rank is host */
	struct workload *workload;
	uint16_t number;
	uint16_t connections_of; /* the part whose connections these are */
	bool connections_go_on;
	bool held; /* `next` is in `ahead` */
	bool over; /* `next` returned false */
	bool done; /* and all of it is */
	struct message ahead;
	uint64_t begun_ps;               /* added to the times of `next` */
	uint64_t handed, sent, received; /* messages with bytes: handed out, and reported */
	uint32_t after, after_count;     /* the parts that it waits for */
	uint32_t waits;                  /* how many of them are not done */
	struct workload_part *begins_next;
};

/*
 * A kind: checks its parameters, allocates a struct that begins with a workload_part, and fills in
 * ops, release_max and facts; the rest is a copy of *common. 0, -EINVAL, -ENOMEM.
 */
typedef int workload_create_part(struct workload_part **out, const struct workload_part *common,
				 const struct workload_params *, struct text_error *);

workload_create_part incast_create, permutation_create, victim_create, many_qps_create, pairs_create;
workload_create_part staircase_create;
workload_create_part all_to_all_create, moe_create;
workload_create_part ring_create, halving_doubling_create, tree_create;
workload_create_part poisson_create, poisson_incast_create;
workload_create_part hpcc_flows_create, htsim_matrix_create;
workload_create_part graph_part_create, program_part_create;

/* A message of this part, with the members filled in that all its messages share. */
struct message part_message(const struct workload_part *);

/* Of a part that is a graph; see workload.h. */
uint32_t graph_part_unfinished(const struct workload_part *, char *why, size_t why_bytes);
const struct graph_span *graph_part_spans(const struct workload_part *);
uint64_t graph_part_end_alone_ps(const struct workload_part *, uint64_t start_ps);

/* Passes a message to workload_released. */
void part_release(struct workload_part *, const struct message *);

/* Zeroed memory of `bytes` whose first member is a workload_part, a copy of *common. */
void *part_alloc(const struct workload_part *common, size_t bytes);

/* -EINVAL and the reason, unless min <= value <= max. */
int part_need(const char *name, uint64_t value, uint64_t min, uint64_t max, struct text_error *);
