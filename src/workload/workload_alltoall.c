/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * All-to-all: host i's k-th message goes to another host than any before, so a message's number
 * determines it, and the only state is the progress of each host. MoE's dispatch is the same with
 * other sizes; its combine has the same pairs in the opposite direction.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "base/siphash.h"
#include "workload/workload_draw.h"
#include "workload/workload_part.h"

typedef unsigned __int128 u128;

struct all_to_all {
	struct workload_part part;
	uint32_t peers; /* n - 1 */
	uint32_t active_max;
	enum workload_order order;
	uint32_t order_bits;

	/* Bytes to the host j: all-to-all's chunks differ by a byte, MoE's by popularity. */
	uint64_t chunk, longer_chunks;
	uint64_t *bytes_to; /* NULL: all-to-all */
	bool combine;
	uint64_t step_gap_ps;

	uint32_t *next;               /* of every host: the next message to be released */
	uint32_t timed_k, timed_host; /* of the messages that start at once */
};

static struct all_to_all *of(struct workload_part *p)
{
	return (struct all_to_all *)p;
}

/* The peer of a host's k-th message, as a distance: 1 .. n-1. */
static uint32_t kth_distance(const struct all_to_all *a, uint32_t host, uint32_t k)
{
	uint8_t key[16] = {0};
	uint64_t seed;

	if (a->order == WORKLOAD_SHIFTED)
		return k + 1;
	seed = draw_seed(a->part.seed, host);
	for (int i = 0; i < 8; i++)
		key[i] = (uint8_t)(seed >> 8 * i);
	/* A permutation of a power of two, walked on until it falls below n - 1, is one of n - 1.
	 */
	do
		k = permute(key, a->order_bits, k);
	while (k >= a->peers);
	return k + 1;
}

static uint64_t bytes_to(const struct all_to_all *a, uint32_t dst)
{
	return a->bytes_to ? a->bytes_to[dst] : a->chunk + (dst < a->longer_chunks);
}

static struct message kth_message(const struct all_to_all *a, uint32_t host, uint32_t k)
{
	uint32_t distance = kth_distance(a, host, k);
	struct message m = part_message(&a->part);

	m.src = host;
	m.dst = (uint32_t)(((uint64_t)host + distance) % a->part.host_count);
	m.bytes = bytes_to(a, m.dst);
	m.number = (uint64_t)host * a->peers + k;
	/* Not the number: another round has another order of peers. */
	m.connection = (uint64_t)host * a->part.host_count + m.dst;
	return m;
}

static bool all_to_all_next(struct workload_part *p, struct message *out)
{
	struct all_to_all *a = of(p);

	if (a->timed_k == a->active_max)
		return false;
	*out = kth_message(a, a->timed_host, a->timed_k);
	if (++a->timed_host == p->host_count) {
		a->timed_host = 0;
		a->timed_k++;
	}
	return true;
}

static uint64_t dispatch_count(const struct all_to_all *a)
{
	return (uint64_t)a->part.host_count * a->peers;
}

static void all_to_all_sent(struct workload_part *p, const struct message *m, uint64_t now_ps)
{
	struct all_to_all *a = of(p);
	uint32_t host = (uint32_t)(m->number / a->peers);
	struct message next;

	if (m->number >= dispatch_count(a) || a->next[host] == a->peers)
		return;
	next = kth_message(a, host, a->next[host]++);
	next.start_ps = now_ps;
	part_release(p, &next);
}

static void moe_received(struct workload_part *p, const struct message *m, uint64_t now_ps)
{
	struct all_to_all *a = of(p);
	uint64_t number = m->number;
	struct message back;
	uint32_t src;

	if (!a->combine || number >= dispatch_count(a))
		return;
	back = kth_message(a, (uint32_t)(number / a->peers), (uint32_t)(number % a->peers));
	src = back.src;
	back.src = back.dst;
	back.dst = src;
	back.number = number + dispatch_count(a);
	back.connection += (uint64_t)p->host_count * p->host_count;
	back.start_ps = now_ps + a->step_gap_ps;
	part_release(p, &back);
}

static void all_to_all_free(struct workload_part *p)
{
	free(of(p)->bytes_to);
	free(of(p)->next);
	free(p);
}

static const struct workload_part_ops all_to_all_ops = {
	.next = all_to_all_next, .sent = all_to_all_sent, .free = all_to_all_free};
static const struct workload_part_ops moe_ops = {
	.next = all_to_all_next, .sent = all_to_all_sent, .received = moe_received, .free = all_to_all_free};

/* The caller fills in sizes and facts. */
static int create(struct all_to_all **out, const struct workload_part *c, const struct workload_params *p,
		  struct text_error *err)
{
	struct all_to_all *a;
	int rc = part_need("bytes", p->bytes, c->host_count, WORKLOAD_BYTES_MAX, err);

	if (!rc)
		rc = part_need("step gap, ps,", p->step_gap_ps, 0, WORKLOAD_STEP_GAP_PS_MAX, err);
	if (!rc && p->order != WORKLOAD_SHIFTED && p->order != WORKLOAD_RANDOM)
		rc = text_fail(err, 0, "order is %u; allowed are %u (shifted) and %u (random)", (uint64_t)p->order,
			       (uint64_t)WORKLOAD_SHIFTED, (uint64_t)WORKLOAD_RANDOM);
	if (rc)
		return rc;
	a = part_alloc(c, sizeof(*a));
	if (!a)
		return -ENOMEM;
	a->next = malloc(c->host_count * sizeof(*a->next));
	if (!a->next) {
		free(a);
		return -ENOMEM;
	}
	a->part.ops = &all_to_all_ops;
	a->peers = c->host_count - 1;
	a->active_max = p->active_max && p->active_max < a->peers ? p->active_max : a->peers;
	a->part.release_max = a->active_max < a->peers || p->combine;
	a->order = p->order;
	a->order_bits = 2;
	while (1ull << a->order_bits < a->peers)
		a->order_bits++;
	a->step_gap_ps = p->step_gap_ps;
	for (uint32_t h = 0; h < c->host_count; h++)
		a->next[h] = a->active_max;
	a->part.facts.message_count = (uint64_t)c->host_count * a->peers;
	a->part.facts.collective_bytes = p->bytes;
	a->part.facts.bus_num = a->peers;
	a->part.facts.bus_den = c->host_count;
	a->part.facts.exchange = true;
	*out = a;
	return 0;
}

static void count_bytes(struct all_to_all *a)
{
	uint64_t to_all = 0;

	for (uint32_t h = 0; h < a->part.host_count; h++)
		to_all += bytes_to(a, h);
	/* Every host sends to all but itself. */
	a->part.facts.bytes = to_all * a->peers;
}

int all_to_all_create(struct workload_part **out, const struct workload_part *c, const struct workload_params *p,
		      struct text_error *err)
{
	struct all_to_all *a;
	int rc = create(&a, c, p, err);

	if (rc)
		return rc;
	a->chunk = p->bytes / c->host_count;
	a->longer_chunks = p->bytes % c->host_count;
	count_bytes(a);
	*out = &a->part;
	return 0;
}

int moe_create(struct workload_part **out, const struct workload_part *c, const struct workload_params *p,
	       struct text_error *err)
{
	uint32_t n = c->host_count, *rank;
	struct all_to_all *a;
	struct prng r;
	u128 sum = 0;
	int rc = part_need("zipf exponent, thousandths,", p->zipf_milli, 0, 8000, err);

	if (!rc)
		rc = create(&a, c, p, err);
	if (rc)
		return rc;
	rank = malloc(n * sizeof(*rank));
	a->bytes_to = malloc(n * sizeof(*a->bytes_to));
	if (!rank || !a->bytes_to) {
		free(rank);
		all_to_all_free(&a->part);
		return -ENOMEM;
	}
	draw_init(&r, c->seed, UINT64_MAX);
	draw_shuffle(&r, rank, n);
	for (uint32_t h = 0; h < n; h++) {
		a->bytes_to[h] = draw_zipf_weight_q60(rank[h] + 1, p->zipf_milli);
		sum += a->bytes_to[h];
	}
	free(rank);
	for (uint32_t h = 0; h < n; h++) {
		uint64_t share = (uint64_t)((u128)p->bytes * a->bytes_to[h] / sum);

		a->bytes_to[h] = share ? share : 1;
	}
	a->part.ops = &moe_ops;
	a->combine = p->combine;
	count_bytes(a);
	if (a->combine) {
		a->part.facts.message_count *= 2;
		a->part.facts.bytes *= 2;
	}
	*out = &a->part;
	return 0;
}
