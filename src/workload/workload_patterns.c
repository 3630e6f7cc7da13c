/* SPDX-License-Identifier: BSD-2-Clause */
/* Small patterns, written out as lists: incast, pairs, permutation, victim, many QPs. */
#include <errno.h>
#include <stdlib.h>

#include "workload/workload_draw.h"
#include "workload/workload_list.h"

static int need_bytes(const char *name, uint64_t bytes, struct text_error *err)
{
	return part_need(name, bytes, 1, WORKLOAD_BYTES_MAX, err);
}

static struct listed *add_message(struct list *l, uint64_t start_ps, uint32_t src, uint32_t dst, uint64_t bytes)
{
	struct listed *item = list_add(l);

	item->start_ps = start_ps;
	item->src = src;
	item->dst = dst;
	item->bytes = bytes;
	return item;
}

static int need_senders_and_jitter(const struct workload_params *p, struct text_error *err)
{
	int rc = part_need("senders", p->senders, 0, WORKLOAD_LIST_MAX, err);

	return rc ? rc : part_need("jitter, ps,", p->jitter_ps, 0, WORKLOAD_TIME_PS_MAX, err);
}

static uint64_t jittered(const struct workload_part *c, const struct workload_params *p, uint32_t sender)
{
	struct prng r;

	draw_init(&r, c->seed, sender);
	return c->start_ps + prng_below(&r, p->jitter_ps + 1);
}

int incast_create(struct workload_part **out, const struct workload_part *c, const struct workload_params *p,
		  struct text_error *err)
{
	uint32_t n = c->host_count, senders = p->senders ? p->senders : n - 1;
	struct list *l;
	int rc = need_bytes("bytes", p->bytes, err);

	if (!rc)
		rc = need_senders_and_jitter(p, err);
	if (!rc)
		rc = part_need("target", p->target, 0, n - 1, err);
	if (rc)
		return rc;
	l = list_create(c, senders, 0, 0);
	if (!l)
		return -ENOMEM;
	for (uint32_t i = 0; i < senders; i++)
		add_message(l, jittered(c, p, i), (uint32_t)(((uint64_t)p->target + 1 + i % (n - 1)) % n), p->target,
			    p->bytes);
	return list_finish(l, out);
}

int pairs_create(struct workload_part **out, const struct workload_part *c, const struct workload_params *p,
		 struct text_error *err)
{
	struct list *l;
	int rc = need_bytes("bytes", p->bytes, err);

	if (!rc)
		rc = part_need("pairs", p->pair_count, 1, WORKLOAD_LIST_MAX, err);
	for (uint32_t i = 0; i < p->pair_count && !rc; i++) {
		rc = part_need("a sender", p->pairs[i].src, 0, c->host_count - 1, err);
		if (!rc)
			rc = part_need("a receiver", p->pairs[i].dst, 0, c->host_count - 1, err);
		if (!rc && p->pairs[i].src == p->pairs[i].dst)
			rc = text_fail(err, 0, "host %u is to send to itself", (uint64_t)p->pairs[i].src);
	}
	if (rc)
		return rc;
	l = list_create(c, p->pair_count, 0, 0);
	if (!l)
		return -ENOMEM;
	for (uint32_t i = 0; i < p->pair_count; i++)
		add_message(l, c->start_ps, p->pairs[i].src, p->pairs[i].dst, p->bytes);
	return list_finish(l, out);
}

/* Shuffles until no host is its own: e tries on average, and all derangements equally likely. */
static void derange(struct prng *r, uint32_t *to, uint32_t n)
{
	for (;;) {
		uint32_t i = 0;

		draw_shuffle(r, to, n);
		while (i < n && to[i] != i)
			i++;
		if (i == n)
			return;
	}
}

int permutation_create(struct workload_part **out, const struct workload_part *c, const struct workload_params *p,
		       struct text_error *err)
{
	uint32_t n = c->host_count, *to;
	struct list *l;
	struct prng r;
	int rc = need_bytes("bytes", p->bytes, err);

	if (!rc)
		rc = need_senders_and_jitter(p, err);
	if (rc)
		return rc;
	to = malloc(n * sizeof(*to));
	l = list_create(c, n, 0, 0);
	if (!to || !l) {
		free(to);
		list_free(l);
		return -ENOMEM;
	}
	draw_init(&r, c->seed, UINT64_MAX);
	derange(&r, to, n);
	/* Another round of it has other pairs; a connection is the pair's. */
	for (uint32_t i = 0; i < n; i++)
		add_message(l, jittered(c, p, i), i, to[i], p->bytes)->connection = (uint64_t)i * n + to[i];
	free(to);
	return list_finish(l, out);
}

int victim_create(struct workload_part **out, const struct workload_part *c, const struct workload_params *p,
		  struct text_error *err)
{
	uint32_t n = c->host_count, senders = 0;
	struct list *l;
	int rc = need_bytes("bytes", p->bytes, err);

	if (!rc)
		rc = need_bytes("victim bytes", p->victim_bytes, err);
	if (!rc)
		rc = part_need("target", p->target, 0, n - 1, err);
	if (!rc)
		rc = part_need("victim source", p->victim_src, 0, n - 1, err);
	if (!rc)
		rc = part_need("victim destination", p->victim_dst, 0, n - 1, err);
	if (!rc)
		rc = part_need("jitter, ps,", p->jitter_ps, 0, WORKLOAD_TIME_PS_MAX, err);
	if (!rc && p->victim_src == p->victim_dst)
		rc = text_fail(err, 0, "the victim's source and destination are both %u", (uint64_t)p->victim_src);
	if (!rc && p->victim_dst == p->target)
		rc = text_fail(err, 0,
			       "the victim's destination is the incast's target, %u: it "
			       "would share more than an upstream link",
			       (uint64_t)p->target);
	if (!rc && p->senders)
		rc = part_need("senders", p->senders, 1, n - 1, err);
	if (rc)
		return rc;
	l = list_create(c, n + 1, 0, 0);
	if (!l)
		return -ENOMEM;
	for (uint32_t i = 0; i < n && (!p->senders || senders < p->senders); i++) {
		if (i == p->target || i == p->victim_src || i == p->victim_dst)
			continue;
		add_message(l, jittered(c, p, i), i, p->target, p->bytes);
		senders++;
	}
	if (p->senders && senders < p->senders) {
		list_free(l);
		return text_fail(err, 0, "%u senders; %u hosts are left beside target and victim", (uint64_t)p->senders,
				 (uint64_t)senders);
	}
	add_message(l, c->start_ps, p->victim_src, p->victim_dst, p->victim_bytes)->tag = (uint16_t)(c->tag + 1);
	return list_finish(l, out);
}

int many_qps_create(struct workload_part **out, const struct workload_part *c, const struct workload_params *p,
		    struct text_error *err)
{
	uint32_t others = c->host_count - 1;
	uint64_t total = (uint64_t)p->connections + p->senders;
	struct list *l;
	int rc = part_need("connections and senders", total, 1, WORKLOAD_LIST_MAX, err);

	if (!rc)
		rc = part_need("idle", p->idle, 0, p->connections, err);
	if (!rc && p->idle < p->connections)
		rc = need_bytes("bytes", p->bytes, err);
	if (!rc && p->senders)
		rc = need_bytes("victim bytes (of a fast sender)", p->victim_bytes, err);
	if (!rc && p->end_ps)
		rc = part_need("end, ps,", p->end_ps, c->start_ps, WORKLOAD_TIME_PS_MAX, err);
	if (rc)
		return rc;
	l = list_create(c, (uint32_t)total, 0, 0);
	if (!l)
		return -ENOMEM;
	for (uint32_t i = 0; i < p->connections; i++) {
		bool idle = i < p->idle;
		uint64_t start_ps = c->start_ps;
		struct prng r;

		draw_init(&r, c->seed, i);
		if (!idle && p->end_ps)
			start_ps += prng_below(&r, p->end_ps - c->start_ps + 1);
		add_message(l, start_ps, 0, 1 + i % others, idle ? 0 : p->bytes);
	}
	for (uint32_t i = 0; i < p->senders; i++)
		add_message(l, c->start_ps, 0, 1 + i % others, p->victim_bytes)->tag = (uint16_t)(c->tag + 1);
	return list_finish(l, out);
}
