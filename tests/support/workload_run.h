/* SPDX-License-Identifier: BSD-2-Clause */
/* Makes workloads and runs them without a network, for tests. */
#pragma once

#include "base/prng.h"
#include "support/test.h"
#include "workload/workload.h"

#define US   1000000ull
#define MS   1000000000ull
#define GBPS 1000000000ull

/*
 * A network without a network: a message takes 1 us and some random time to arrive, its
 * acknowledgement as long again. Collects all messages in the order of their start.
 */
struct event {
	uint64_t at_ps, order;
	struct message m;
	enum { START, RECEIVED, SENT } what;
};

struct run {
	struct event *heap;
	size_t count, room;
	uint64_t order;
	struct message *messages;
	size_t message_count, message_room;
	uint64_t end_ps;
	uint64_t underway_max; /* messages of one host started and not yet sent */
	uint32_t underway[4096];
};

static inline bool sooner(const struct event *a, const struct event *b)
{
	return a->at_ps < b->at_ps || (a->at_ps == b->at_ps && a->order < b->order);
}

static inline void push(struct run *r, uint64_t at_ps, int what, const struct message *m)
{
	if (r->count == r->room) {
		r->room = r->room ? 2 * r->room : 64;
		r->heap = realloc(r->heap, r->room * sizeof(*r->heap));
	}

	size_t i = r->count++;

	r->heap[i] = (struct event){at_ps, r->order++, *m, what};
	while (i && sooner(&r->heap[i], &r->heap[(i - 1) / 2])) {
		struct event t = r->heap[i];

		r->heap[i] = r->heap[(i - 1) / 2];
		r->heap[(i - 1) / 2] = t;
		i = (i - 1) / 2;
	}
}

static inline struct event pop(struct run *r)
{
	struct event first = r->heap[0];
	size_t i = 0;

	r->heap[0] = r->heap[--r->count];
	for (;;) {
		size_t least = i;

		for (size_t c = 2 * i + 1; c <= 2 * i + 2 && c < r->count; c++)
			if (sooner(&r->heap[c], &r->heap[least]))
				least = c;
		if (least == i)
			return first;

		struct event t = r->heap[i];

		r->heap[i] = r->heap[least];
		r->heap[least] = t;
		i = least;
	}
}

static inline void take_next(struct run *r, struct workload *w)
{
	struct message m;

	if (workload_next(w, &m)) {
		assert_true(m.start_ps >= r->end_ps);
		push(r, m.start_ps, START, &m);
	}
}

static inline void take_released(struct run *r, struct workload *w, uint64_t now_ps)
{
	struct message m;

	while (workload_released(w, &m)) {
		assert_true(m.start_ps >= now_ps);
		m.tag |= 0x8000; /* so that its start asks for no next one */
		push(r, m.start_ps, START, &m);
	}
}

static inline void start_message(struct run *r, struct workload *w, struct event *e, struct prng *random)
{
	bool released = e->m.tag & 0x8000;

	e->m.tag &= 0x7fff;
	if (r->message_count == r->message_room) {
		r->message_room = r->message_room ? 2 * r->message_room : 64;
		r->messages = realloc(r->messages, r->message_room * sizeof(*r->messages));
	}
	r->messages[r->message_count++] = e->m;
	if (!released)
		take_next(r, w);
	if (!e->m.bytes)
		return;
	if (++r->underway[e->m.src % 4096] > r->underway_max)
		r->underway_max = r->underway[e->m.src % 4096];

	uint64_t arrives = e->at_ps + US + prng_below(random, US);

	push(r, arrives, RECEIVED, &e->m);
	push(r, arrives + US, SENT, &e->m);
}

/* Until nothing happens any more or `limit` messages have started. */
static inline struct run run_workload(struct workload *w, uint64_t network_seed, size_t limit)
{
	struct run r = {0};
	struct prng random;

	prng_init(&random, network_seed);
	take_next(&r, w);
	while (r.count && r.message_count < limit) {
		struct event e = pop(&r);

		r.end_ps = e.at_ps;
		if (e.what == START) {
			start_message(&r, w, &e, &random);
		} else if (e.what == RECEIVED) {
			workload_received(w, &e.m, e.at_ps);
			take_released(&r, w, e.at_ps);
		} else {
			r.underway[e.m.src % 4096]--;
			workload_sent(w, &e.m, e.at_ps);
			take_released(&r, w, e.at_ps);
		}
	}
	return r;
}

static inline void run_free(struct run *r)
{
	free(r->heap);
	free(r->messages);
}

static inline struct workload *made(const char *kind, struct workload_params p)
{
	struct workload *w = workload_create();
	struct text_error err = {0};

	assert_non_null(w);
	if (workload_add(w, kind, &p, &err))
		fail_msg("%s: line %u: %s", kind, err.line, err.message);
	return w;
}

static inline struct run ran(const char *kind, struct workload_params p)
{
	struct workload *w = made(kind, p);
	struct workload_facts facts;
	struct run r = run_workload(w, 1, SIZE_MAX);
	uint64_t bytes = 0, messages = 0;

	/* The workload's facts agree with what it did. */
	workload_facts(w, 0, &facts);
	for (size_t i = 0; i < r.message_count; i++) {
		bytes += r.messages[i].bytes;
		messages += r.messages[i].bytes > 0;
	}
	if (facts.message_count) {
		assert_int_equal(messages, facts.message_count);
		assert_int_equal(bytes, facts.bytes);
	}
	workload_free(w);
	return r;
}

/* FNV-1a over what a run started, field by field. */
static inline uint64_t hash_of(const struct run *r)
{
	uint64_t h = 0xcbf29ce484222325u;

	for (size_t i = 0; i < r->message_count; i++) {
		const struct message *m = &r->messages[i];
		const uint64_t fields[] = {m->start_ps, m->bytes, m->number, m->connection, m->src,
					   m->dst,      m->tag,   m->part,   m->class,      m->last};

		for (size_t f = 0; f < sizeof(fields) / sizeof(fields[0]); f++)
			for (int b = 0; b < 64; b += 8)
				h = (h ^ (uint8_t)(fields[f] >> b)) * 0x100000001b3u;
	}
	return h;
}
