/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Plans, an algorithm a function. Ring, halving and doubling, and tree send what the generators of
 * workload_allreduce.c send, in the same steps and sizes.
 */
#include "workload/collective.h"

#include <errno.h>
#include <stdlib.h>

struct planner {
	const struct collective *c;
	struct collective_plan *plan;
	uint32_t n, me;
	int rc;
};

/* Part `i` of `bytes` divided into `n` parts that differ by one byte at most. */
static uint64_t share(uint64_t bytes, uint64_t n, uint64_t i)
{
	return bytes / n + (i < bytes % n);
}

/* Appends an op, and returns its number; COLLECTIVE_NO_OP once there was no room. */
static uint32_t add(struct planner *p, const struct collective_op *op)
{
	struct collective_plan *plan = p->plan;

	if (p->rc)
		return COLLECTIVE_NO_OP;
	if (plan->count == plan->room) {
		uint32_t room = plan->room ? 2 * plan->room : 16;
		struct collective_op *more;

		if (plan->count >= COLLECTIVE_OPS_MAX) {
			p->rc = -E2BIG;
			return COLLECTIVE_NO_OP;
		}
		more = realloc(plan->ops, room * sizeof(*more));
		if (!more) {
			p->rc = -ENOMEM;
			return COLLECTIVE_NO_OP;
		}
		plan->ops = more;
		plan->room = room;
	}
	plan->ops[plan->count] = *op;
	return plan->count++;
}

static uint32_t add_send(struct planner *p, uint32_t to, uint32_t step, uint64_t bytes, uint32_t needs, uint32_t begun)
{
	return add(p, &(struct collective_op){bytes, to, step, {needs, COLLECTIVE_NO_OP}, begun, true});
}

static uint32_t add_recv(struct planner *p, uint32_t from, uint32_t step, uint64_t bytes)
{
	return add(p, &(struct collective_op){
			      bytes, from, step, {COLLECTIVE_NO_OP, COLLECTIVE_NO_OP}, COLLECTIVE_NO_OP, false});
}

/*
 * Ring: in step s the position p sends the share p - s to p + 1. Steps 0 .. n-2 reduce and scatter, n-1 .. 2n-3 gather.
 * An all-gather alone begins with the own share, that of step n-1 being p + 1: so member p has share p + 1 before it.
 */
static void plan_ring(struct planner *p, uint32_t first, uint32_t end)
{
	uint32_t n = p->n, chunks = p->c->chunks;

	for (uint32_t k = 0; k < chunks; k++) {
		uint64_t bytes = share(p->c->bytes, chunks, k);
		uint32_t before = COLLECTIVE_NO_OP;

		for (uint32_t s = first; s < end && !p->rc; s++) {
			uint32_t step = k * (end - first) + s - first;

			add_send(p, (p->me + 1) % n, step, share(bytes, n, (p->me + 2 * n - s) % n), before,
				 COLLECTIVE_NO_OP);
			before = add_recv(p, (p->me + n - 1) % n, step, share(bytes, n, (p->me + 2 * n - 1 - s) % n));
		}
	}
}

/*
 * Halving and doubling: in step s < q a member exchanges half of what it has with the one whose position differs in bit
 * q-1-s; the steps q .. 2q-1 go back the same way.
 */
static void plan_halving(struct planner *p, uint32_t first, uint32_t end)
{
	uint32_t q = (uint32_t)__builtin_ctz(p->n), sent = COLLECTIVE_NO_OP, before = COLLECTIVE_NO_OP;

	for (uint32_t s = first; s < end; s++) {
		uint32_t bit = s < q ? q - 1 - s : s - q, peer = p->me ^ 1u << bit;
		uint64_t bytes = p->c->bytes >> (q - bit);

		sent = add_send(p, peer, s - first, bytes, before, sent);
		before = add_recv(p, peer, s - first, bytes);
	}
}

/* Each member sends its share to each other one, or the other one's share: at once. */
static void plan_direct(struct planner *p, bool gathers)
{
	for (uint32_t k = 1; k < p->n; k++) {
		uint32_t to = (p->me + k) % p->n, from = (p->me + p->n - k) % p->n;

		add_send(p, to, 0, share(p->c->bytes, p->n, gathers ? p->me : to), COLLECTIVE_NO_OP, COLLECTIVE_NO_OP);
		add_recv(p, from, 0, share(p->c->bytes, p->n, gathers ? from : p->me));
	}
}

/* Tree: the parent of member i is (i - 1) / 2, counted from the root. */
static uint32_t in_tree(const struct planner *p, uint32_t position)
{
	return (position + p->n - p->c->root) % p->n;
}

static uint32_t from_tree(const struct planner *p, uint64_t i)
{
	return (uint32_t)((i + p->c->root) % p->n);
}

static void plan_tree(struct planner *p, bool up, bool down)
{
	uint32_t i = in_tree(p, p->me);

	for (uint32_t k = 0; k < p->c->chunks; k++) {
		uint64_t bytes = share(p->c->bytes, p->c->chunks, k);
		uint32_t have[2] = {COLLECTIVE_NO_OP, COLLECTIVE_NO_OP}, got = 0;

		for (uint64_t child = 2ull * i + 1; up && child <= 2ull * i + 2 && child < p->n; child++)
			have[got++] = add_recv(p, from_tree(p, child), 2 * k, bytes);
		if (i && up)
			add(p, &(struct collective_op){bytes,
						       from_tree(p, (i - 1) / 2),
						       2 * k,
						       {have[0], have[1]},
						       COLLECTIVE_NO_OP,
						       true});
		if (i && down) {
			have[0] = add_recv(p, from_tree(p, (i - 1) / 2), 2 * k + 1, bytes);
			have[1] = COLLECTIVE_NO_OP;
		}
		for (uint64_t child = 2ull * i + 1; down && child <= 2ull * i + 2 && child < p->n; child++)
			add(p,
			    &(struct collective_op){
				    bytes, from_tree(p, child), 2 * k + 1, {have[0], have[1]}, COLLECTIVE_NO_OP, true});
	}
}

/* Along the chain from the root on, or towards it. */
static void plan_chain(struct planner *p, bool from_root)
{
	uint32_t i = in_tree(p, p->me), last = p->n - 1;
	uint32_t before = from_root ? i - 1 : i + 1, behind = from_root ? i + 1 : i - 1;
	bool receives = from_root ? i > 0 : i < last, sends = from_root ? i < last : i > 0;

	for (uint32_t k = 0; k < p->c->chunks; k++) {
		uint64_t bytes = share(p->c->bytes, p->c->chunks, k);
		uint32_t got = COLLECTIVE_NO_OP;

		if (receives)
			got = add_recv(p, from_tree(p, before), k, bytes);
		if (sends)
			add_send(p, from_tree(p, behind), k, bytes, got, COLLECTIVE_NO_OP);
	}
}

static void plan_rooted(struct planner *p, bool gathers)
{
	uint32_t root = p->c->root;

	if (p->me != root && gathers)
		add_send(p, root, 0, share(p->c->bytes, p->n, p->me), COLLECTIVE_NO_OP, COLLECTIVE_NO_OP);
	else if (p->me != root)
		add_recv(p, root, 0, share(p->c->bytes, p->n, p->me));
	for (uint32_t k = 1; k < p->n && p->me == root; k++) {
		uint32_t peer = (root + k) % p->n;
		uint64_t bytes = share(p->c->bytes, p->n, peer);

		if (gathers)
			add_recv(p, peer, 0, bytes);
		else
			add_send(p, peer, 0, bytes, COLLECTIVE_NO_OP, COLLECTIVE_NO_OP);
	}
}

static void plan_barrier(struct planner *p)
{
	uint32_t sent = COLLECTIVE_NO_OP, before = COLLECTIVE_NO_OP, step = 0;

	for (uint32_t far = 1; far < p->n; far *= 2, step++) {
		sent = add_send(p, (p->me + far) % p->n, step, 0, before, sent);
		before = add_recv(p, (p->me + p->n - far) % p->n, step, 0);
	}
}

static bool is_power_of_two(uint32_t n)
{
	return !(n & (n - 1));
}

static enum collective_algorithm algorithm_of(const struct collective *c)
{
	enum collective_algorithm a = c->algorithm;
	bool rooted = c->kind == COLLECTIVE_REDUCE || c->kind == COLLECTIVE_BROADCAST;

	if (a == COLLECTIVE_AUTO)
		a = c->bytes > COLLECTIVE_SMALL_BYTES ? COLLECTIVE_RING
		    : rooted                          ? COLLECTIVE_TREE
						      : COLLECTIVE_HALVING_DOUBLING;
	if (rooted)
		return a == COLLECTIVE_TREE ? a : COLLECTIVE_RING;
	if (a == COLLECTIVE_HALVING_DOUBLING && !is_power_of_two(c->n))
		return COLLECTIVE_RING;
	if ((a == COLLECTIVE_TREE && c->kind != COLLECTIVE_ALL_REDUCE) ||
	    (a == COLLECTIVE_DIRECT && c->kind == COLLECTIVE_ALL_REDUCE))
		return COLLECTIVE_RING;
	return a;
}

/* The steps of halving-doubling that a kind has are those of the ring, with q in place of n - 1. */
static void plan_steps(struct planner *p, uint32_t phase, void (*plan)(struct planner *, uint32_t first, uint32_t end))
{
	bool first = p->c->kind != COLLECTIVE_ALL_GATHER, second = p->c->kind != COLLECTIVE_REDUCE_SCATTER;

	plan(p, first ? 0 : phase, second ? 2 * phase : phase);
}

static void plan_symmetric(struct planner *p)
{
	bool all_reduce = p->c->kind == COLLECTIVE_ALL_REDUCE;

	switch (algorithm_of(p->c)) {
	case COLLECTIVE_HALVING_DOUBLING: plan_steps(p, (uint32_t)__builtin_ctz(p->n), plan_halving); break;
	case COLLECTIVE_TREE: plan_tree(p, all_reduce, all_reduce); break;
	case COLLECTIVE_DIRECT: plan_direct(p, p->c->kind == COLLECTIVE_ALL_GATHER); break;
	default: plan_steps(p, p->n - 1, plan_ring); break;
	}
}

static void plan_reduce_or_broadcast(struct planner *p)
{
	bool reduces = p->c->kind == COLLECTIVE_REDUCE;

	if (algorithm_of(p->c) == COLLECTIVE_TREE)
		plan_tree(p, reduces, !reduces);
	else
		plan_chain(p, !reduces);
}

int collective_plan(const struct collective *c, uint32_t me, struct collective_plan *plan)
{
	struct planner p = {.c = c, .plan = plan, .n = c->n, .me = me};

	plan->count = 0;
	if (c->n < 2)
		return 0;
	switch (c->kind) {
	case COLLECTIVE_REDUCE:
	case COLLECTIVE_BROADCAST: plan_reduce_or_broadcast(&p); break;
	case COLLECTIVE_GATHER:
	case COLLECTIVE_SCATTER: plan_rooted(&p, c->kind == COLLECTIVE_GATHER); break;
	case COLLECTIVE_ALL_TO_ALL: plan_direct(&p, false); break;
	case COLLECTIVE_BARRIER: plan_barrier(&p); break;
	default: plan_symmetric(&p); break;
	}
	return p.rc;
}

void collective_plan_free(struct collective_plan *plan)
{
	free(plan->ops);
	*plan = (struct collective_plan){0};
}

uint32_t collective_steps(const struct collective *c)
{
	uint64_t steps = 1;
	bool half = c->kind == COLLECTIVE_ALL_GATHER || c->kind == COLLECTIVE_REDUCE_SCATTER;

	switch (c->kind) {
	case COLLECTIVE_GATHER:
	case COLLECTIVE_SCATTER:
	case COLLECTIVE_ALL_TO_ALL: break;
	case COLLECTIVE_BARRIER: steps = 32; break;
	case COLLECTIVE_REDUCE:
	case COLLECTIVE_BROADCAST: steps = 2ull * c->chunks; break;
	default:
		if (algorithm_of(c) == COLLECTIVE_RING)
			steps = (half ? 1ull : 2ull) * (c->n - 1) * c->chunks;
		else
			steps = algorithm_of(c) == COLLECTIVE_TREE ? 2ull * c->chunks : 64;
	}
	return steps > UINT32_MAX ? UINT32_MAX : (uint32_t)steps;
}

void collective_bus(const struct collective *c, uint32_t *num, uint32_t *den)
{
	*num = c->n - 1;
	*den = c->n;
	switch (c->kind) {
	case COLLECTIVE_ALL_REDUCE: *num *= 2; break;
	case COLLECTIVE_REDUCE:
	case COLLECTIVE_BROADCAST: *num = *den = 1; break;
	case COLLECTIVE_BARRIER: *num = 0; break;
	default: break;
	}
}

const char *collective_kind_name(enum collective_kind k)
{
	static const char *const names[COLLECTIVE_KINDS] = {"all-reduce", "reduce",         "all-gather",
							    "gather",     "scatter",        "broadcast",
							    "all-to-all", "reduce-scatter", "barrier"};

	return k < COLLECTIVE_KINDS ? names[k] : "?";
}

const char *collective_algorithm_name(enum collective_algorithm a)
{
	static const char *const names[COLLECTIVE_ALGORITHMS] = {"auto", "ring", "halving-doubling", "tree", "direct"};

	return a < COLLECTIVE_ALGORITHMS ? names[a] : "?";
}
