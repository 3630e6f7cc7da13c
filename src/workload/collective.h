/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Collectives as sends and receives: what one member of a group does, step by step. Members are positions 0 .. n - 1.
 *
 *   all-reduce, reduce, broadcast   S bytes at each member, or at the root
 *   all-gather, reduce-scatter      S bytes in all, of which each member has one n-th before, or after
 *   gather, scatter                 S bytes in all, at the root after, or before; each member has one n-th
 *   all-to-all                      S bytes at each member, one n-th for each member, itself included
 *   barrier                         nothing but messages
 *
 * These are the sizes by which bus bandwidths are defined: S / time, times what collective_bus() says.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum collective_kind {
	COLLECTIVE_ALL_REDUCE,
	COLLECTIVE_REDUCE,
	COLLECTIVE_ALL_GATHER,
	COLLECTIVE_GATHER,
	COLLECTIVE_SCATTER,
	COLLECTIVE_BROADCAST,
	COLLECTIVE_ALL_TO_ALL,
	COLLECTIVE_REDUCE_SCATTER,
	COLLECTIVE_BARRIER,
	COLLECTIVE_KINDS
};

/*
 * auto: halving-doubling for up to COLLECTIVE_SMALL_BYTES, else ring. Where a kind has no such algorithm, or the group
 * is no power of two for halving-doubling, the next best one is taken:
 *
 *   ring              all-reduce, all-gather, reduce-scatter; reduce and broadcast along the chain of members
 *   halving-doubling  all-reduce, all-gather, reduce-scatter of a power of two members, else ring
 *   tree              all-reduce, reduce, broadcast by a binary tree; others: ring
 *   direct            all-gather, reduce-scatter: each member with each other one at once; others: ring
 *
 * Gather and scatter are direct, all-to-all sends to the next member first, then to the one behind it, and a barrier is
 * a dissemination.
 */
enum collective_algorithm {
	COLLECTIVE_AUTO,
	COLLECTIVE_RING,
	COLLECTIVE_HALVING_DOUBLING,
	COLLECTIVE_TREE,
	COLLECTIVE_DIRECT,
	COLLECTIVE_ALGORITHMS
};

enum { COLLECTIVE_CHUNKS_MAX = 1024, COLLECTIVE_OPS_MAX = 1 << 26, COLLECTIVE_SMALL_BYTES = 64 << 10 };

struct collective {
	enum collective_kind kind;
	enum collective_algorithm algorithm;
	uint64_t bytes; /* S */
	uint32_t n;     /* members, 1 or more */
	uint32_t root;  /* position */
	uint32_t
		chunks; /* 1 .. COLLECTIVE_CHUNKS_MAX: of ring, tree: parts of S that follow each other in a pipeline */
};

#define COLLECTIVE_NO_OP UINT32_MAX

/*
 * A send or a receive. It begins when both ops of `needs` have ended and `begun` has begun; each is earlier in the
 * plan, or COLLECTIVE_NO_OP. Between two members each step occurs once, so a step is a tag.
 */
struct collective_op {
	uint64_t bytes;
	uint32_t peer; /* position */
	uint32_t step; /* below collective_steps() */
	uint32_t needs[2];
	uint32_t begun;
	bool send;
};

struct collective_plan {
	struct collective_op *ops; /* *owned* */
	uint32_t count, room;
};

/* Fills in what member `me` does; a plan is zeroes or was filled in before. 0, -ENOMEM, or -E2BIG. */
int collective_plan(const struct collective *, uint32_t me, struct collective_plan *);
void collective_plan_free(struct collective_plan *);

/* One more than the highest step of any member's plan; 2^32 - 1 at most. */
uint32_t collective_steps(const struct collective *);

/* Bus bandwidth is S / time x *num / *den; 0 / 1 of a barrier. */
void collective_bus(const struct collective *, uint32_t *num, uint32_t *den);

/* "all-reduce"; "ring" */
const char *collective_kind_name(enum collective_kind);
const char *collective_algorithm_name(enum collective_algorithm);
