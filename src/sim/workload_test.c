/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/prng.h"
#include "sim/workload.h"

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

static bool sooner(const struct event *a, const struct event *b)
{
	return a->at_ps < b->at_ps || (a->at_ps == b->at_ps && a->order < b->order);
}

static void push(struct run *r, uint64_t at_ps, int what, const struct message *m)
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

static struct event pop(struct run *r)
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

static void take_next(struct run *r, struct workload *w)
{
	struct message m;

	if (workload_next(w, &m)) {
		assert_true(m.start_ps >= r->end_ps);
		push(r, m.start_ps, START, &m);
	}
}

static void take_released(struct run *r, struct workload *w, uint64_t now_ps)
{
	struct message m;

	while (workload_released(w, &m)) {
		assert_true(m.start_ps >= now_ps);
		m.tag |= 0x8000; /* so that its start asks for no next one */
		push(r, m.start_ps, START, &m);
	}
}

static void start_message(struct run *r, struct workload *w, struct event *e, struct prng *random)
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
static struct run run_workload(struct workload *w, uint64_t network_seed, size_t limit)
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

static void run_free(struct run *r)
{
	free(r->heap);
	free(r->messages);
}

static struct workload *made(const char *kind, struct workload_params p)
{
	struct workload *w = workload_create();
	struct text_error err = {0};

	assert_non_null(w);
	if (workload_add(w, kind, &p, &err))
		fail_msg("%s: line %u: %s", kind, err.line, err.message);
	return w;
}

static struct run ran(const char *kind, struct workload_params p)
{
	struct workload *w = made(kind, p);
	struct workload_facts facts;
	struct run r = run_workload(w, 1, SIZE_MAX);
	uint64_t bytes = 0, messages = 0;

	/* What it promised of itself is what it did. */
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
static uint64_t hash_of(const struct run *r)
{
	uint64_t h = 0xcbf29ce484222325u;

	for (size_t i = 0; i < r->message_count; i++) {
		const struct message *m = &r->messages[i];
		const uint64_t fields[] = {m->start_ps, m->bytes, m->number, m->connection,
					   m->src,      m->dst,   m->tag,    m->part,
					   m->class,    m->last};

		for (size_t f = 0; f < sizeof(fields) / sizeof(fields[0]); f++)
			for (int b = 0; b < 64; b += 8)
				h = (h ^ (uint8_t)(fields[f] >> b)) * 0x100000001b3u;
	}
	return h;
}

static void an_incast_has_its_senders_in_turn(void **state)
{
	static const struct {
		uint32_t hosts, senders, target, messages;
	} rows[] = {{8, 0, 0, 7}, {8, 7, 3, 7}, {8, 3, 7, 3}, {128, 128, 0, 128}, {9, 128, 8, 128}};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		uint32_t sent[128] = {0};
		struct run r = ran("incast", (struct workload_params){.host_count = rows[i].hosts,
								      .senders = rows[i].senders,
								      .target = rows[i].target,
								      .bytes = 1000,
								      .start_ps = 5 * US});

		assert_int_equal(r.message_count, rows[i].messages);
		for (size_t m = 0; m < r.message_count; m++) {
			assert_int_equal(r.messages[m].dst, rows[i].target);
			assert_int_equal(r.messages[m].start_ps, 5 * US);
			assert_int_equal(r.messages[m].connection, m);
			sent[r.messages[m].src]++;
		}
		for (uint32_t h = 0; h < rows[i].hosts; h++) {
			uint32_t share = rows[i].messages / (rows[i].hosts - 1);

			if (h == rows[i].target)
				assert_int_equal(sent[h], 0);
			else
				assert_in_range(sent[h], share, share + 1);
		}
		run_free(&r);
	}
}

static void jitter_stays_within_its_bound_and_messages_in_order(void **state)
{
	struct run r =
		ran("incast",
		    (struct workload_params){
			    .host_count = 1000, .bytes = 1, .jitter_ps = 100, .start_ps = 50});
	uint64_t last = 0, distinct = 0;

	for (size_t m = 0; m < r.message_count; m++) {
		assert_in_range(r.messages[m].start_ps, 50, 150);
		assert_true(r.messages[m].start_ps >= last);
		distinct += r.messages[m].start_ps != last;
		last = r.messages[m].start_ps;
	}
	assert_true(distinct > 90);
	run_free(&r);
}

static void a_permutation_has_no_fixed_point_and_each_receiver_once(void **state)
{
	for (uint64_t seed = 0; seed < 50; seed++)
		for (uint32_t n = 2; n < 40; n += 3) {
			bool seen[40] = {0};
			struct run r = ran("permutation", (struct workload_params){.host_count = n,
										   .seed = seed,
										   .bytes = 7});

			assert_int_equal(r.message_count, n);
			for (size_t m = 0; m < n; m++) {
				assert_int_not_equal(r.messages[m].src, r.messages[m].dst);
				assert_false(seen[r.messages[m].dst]);
				seen[r.messages[m].dst] = true;
			}
			run_free(&r);
		}
}

/* Of 4 hosts there are 9 derangements; each should be as likely as the others. */
static void pairs_are_messages_in_the_order_given(void **state)
{
	static const struct workload_pair pairs[] = {{2, 0}, {0, 1}, {2, 0}};
	struct workload *w = made("pairs", (struct workload_params){.host_count = 3,
								    .pairs = pairs,
								    .pair_count = 3,
								    .start_ps = 7,
								    .bytes = 1000});
	struct message m;

	for (uint64_t i = 0; i < 3; i++) {
		assert_true(workload_next(w, &m));
		assert_int_equal(m.src, pairs[i].src);
		assert_int_equal(m.dst, pairs[i].dst);
		assert_int_equal(m.bytes, 1000);
		assert_int_equal(m.start_ps, 7);
		assert_int_equal(m.connection & 0xff, i); /* each its own */
	}
	assert_false(workload_next(w, &m));
	workload_free(w);
}

static void every_derangement_is_as_likely(void **state)
{
	uint32_t counts[256] = {0}, kinds = 0;

	for (uint64_t seed = 0; seed < 9000; seed++) {
		uint32_t code = 0;
		struct workload *w =
			made("permutation",
			     (struct workload_params){.host_count = 4, .seed = seed, .bytes = 1});
		struct message m;

		while (workload_next(w, &m))
			code = code << 2 | m.dst;
		counts[code]++;
		workload_free(w);
	}
	for (int i = 0; i < 256; i++) {
		kinds += counts[i] > 0;
		if (counts[i])
			assert_in_range(counts[i], 850, 1150);
	}
	assert_int_equal(kinds, 9);
}

static void all_to_all_covers_each_ordered_pair_once(void **state)
{
	static const struct {
		uint32_t hosts, active;
		enum workload_order order;
	} rows[] = {
		{2, 0, WORKLOAD_SHIFTED}, {7, 0, WORKLOAD_SHIFTED},  {7, 1, WORKLOAD_SHIFTED},
		{33, 4, WORKLOAD_RANDOM}, {2, 1, WORKLOAD_RANDOM},   {64, 1, WORKLOAD_RANDOM},
		{64, 0, WORKLOAD_RANDOM}, {64, 99, WORKLOAD_RANDOM},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		uint32_t n = rows[i].hosts;
		uint8_t seen[64][64] = {0};
		struct run r =
			ran("all-to-all", (struct workload_params){.host_count = n,
								   .bytes = 1000 * n + 1,
								   .active_max = rows[i].active,
								   .order = rows[i].order});

		assert_int_equal(r.message_count, n * (n - 1));
		for (size_t m = 0; m < r.message_count; m++) {
			assert_int_equal(r.messages[m].bytes, 1000 + (r.messages[m].dst == 0));
			assert_int_equal(seen[r.messages[m].src][r.messages[m].dst]++, 0);
		}
		if (rows[i].active && rows[i].active < n)
			assert_int_equal(r.underway_max, rows[i].active);
		else
			assert_int_equal(r.underway_max, n - 1);
		run_free(&r);
	}
}

static void shifted_order_gives_every_receiver_one_sender_a_step(void **state)
{
	struct workload *w =
		made("all-to-all", (struct workload_params){.host_count = 8, .bytes = 8});
	struct message m;

	for (uint32_t step = 0; step < 7; step++)
		for (uint32_t host = 0; host < 8; host++) {
			assert_true(workload_next(w, &m));
			assert_int_equal(m.src, host);
			assert_int_equal(m.dst, (host + step + 1) % 8);
		}
	assert_false(workload_next(w, &m));
	workload_free(w);
}

static void a_thousand_hosts_all_to_all_is_a_million_messages(void **state)
{
	struct workload *w =
		made("all-to-all", (struct workload_params){.host_count = 1024, .bytes = 1 << 30});
	struct workload_facts facts;
	struct message m;
	uint64_t count = 0;

	workload_facts(w, 0, &facts);
	assert_int_equal(facts.message_count, 1047552);
	assert_int_equal(facts.bytes, 1047552ull << 20);
	while (workload_next(w, &m))
		count++;
	assert_int_equal(count, 1047552);
	workload_free(w);
}

static void a_ring_allreduce_moves_2_n_minus_1_over_n_of_s_per_host(void **state)
{
	static const struct {
		uint32_t hosts, rings;
	} rows[] = {{2, 1}, {3, 1}, {8, 1}, {8, 4}, {9, 3}, {16, 0}, {5, 9}};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		uint32_t n = rows[i].hosts, rings = rows[i].rings ? rows[i].rings : 1;
		uint64_t s = 1000ull * n * rings, sent[16] = {0}, got[16] = {0};
		struct run r = ran("ring", (struct workload_params){.host_count = n,
								    .bytes = s,
								    .rings = rows[i].rings,
								    .step_gap_ps = 3});

		assert_int_equal(r.message_count, 2 * (n - 1) * n * rings);
		for (size_t m = 0; m < r.message_count; m++) {
			sent[r.messages[m].src] += r.messages[m].bytes;
			got[r.messages[m].dst] += r.messages[m].bytes;
		}
		for (uint32_t h = 0; h < n; h++) {
			assert_int_equal(sent[h], 2 * (n - 1) * s / n);
			assert_int_equal(got[h], 2 * (n - 1) * s / n);
		}
		run_free(&r);
	}
}

/*
 * An allreduce told by sets: what a host holds of each chunk is the set of hosts whose contribution
 * is in it. A ring step carries one chunk, and at the end every host must hold everyone's of every
 * chunk.
 */
static void after_a_ring_allreduce_everyone_has_everything(void **state)
{
	enum { N = 7, STEPS = 2 * (N - 1) };
	static uint32_t holds[N][N]; /* by host and chunk */
	struct workload *w = made("ring", (struct workload_params){.host_count = N, .bytes = 703});
	struct run r = run_workload(w, 5, SIZE_MAX);

	for (uint32_t h = 0; h < N; h++)
		for (uint32_t c = 0; c < N; c++)
			holds[h][c] = 1u << h;
	/* Starts are in order of time, and a message is built of what its sender held then. */
	for (size_t i = 0; i < r.message_count; i++) {
		const struct message *m = &r.messages[i];
		uint32_t step = (uint32_t)(m->number / N), pos = (uint32_t)(m->number % N);
		uint32_t chunk = (pos + 2 * N - step) % N;

		/* The remainder's bytes are in the first chunks. */
		assert_int_equal(m->bytes, 100 + (chunk < 3));
		if (step < N - 1)
			holds[m->dst][chunk] |= holds[m->src][chunk];
		else
			holds[m->dst][chunk] = holds[m->src][chunk];
	}
	for (uint32_t h = 0; h < N; h++)
		for (uint32_t c = 0; c < N; c++)
			assert_int_equal(holds[h][c], (1u << N) - 1);
	run_free(&r);
	workload_free(w);
}

static void a_step_starts_when_the_one_before_has_arrived(void **state)
{
	struct workload *w = made(
		"ring", (struct workload_params){.host_count = 4, .bytes = 400, .step_gap_ps = 11});
	struct message m, first[4], next;

	for (int i = 0; i < 4; i++)
		assert_true(workload_next(w, &first[i]));
	assert_false(workload_next(w, &m));
	workload_sent(w, &first[1], 50);
	assert_false(workload_released(w, &next));
	workload_received(w, &first[1], 100);
	assert_true(workload_released(w, &next));
	assert_int_equal(next.src, first[1].dst);
	assert_int_equal(next.dst, (first[1].dst + 1) % 4);
	assert_int_equal(next.start_ps, 111);
	assert_int_equal(next.connection, first[2].connection);
	assert_false(next.last);
	assert_false(workload_released(w, &next));
	workload_free(w);
}

static void halving_doubling_takes_2_log2_n_steps_and_the_rings_volume(void **state)
{
	for (uint32_t n = 2; n <= 64; n *= 2) {
		uint64_t sent[64] = {0}, log2 = (uint64_t)__builtin_ctz(n);
		struct run r = ran("halving-doubling",
				   (struct workload_params){.host_count = n, .bytes = 64000});

		assert_int_equal(r.message_count, 2 * log2 * n);
		for (size_t m = 0; m < r.message_count; m++)
			sent[r.messages[m].src] += r.messages[m].bytes;
		for (uint32_t h = 0; h < n; h++)
			assert_int_equal(sent[h], 2 * (n - 1) * 64000ull / n);
		run_free(&r);
	}
}

/* However late a message is, no host sends a step before all earlier ones have reached it. */
static void halving_doubling_never_overtakes(void **state)
{
	enum { N = 16, BITS = 4 };

	for (uint64_t seed = 0; seed < 20; seed++) {
		struct workload *w = made("halving-doubling",
					  (struct workload_params){.host_count = N, .bytes = N});
		struct run r = run_workload(w, seed, SIZE_MAX);
		uint32_t next[N] = {0};

		assert_int_equal(r.message_count, 2 * BITS * N);
		for (size_t i = 0; i < r.message_count; i++) {
			const struct message *m = &r.messages[i];

			assert_int_equal(m->number / N, next[m->src]);
			/* Its partner of the step before had started that step by then. */
			if (next[m->src])
				assert_true(m->start_ps >= US);
			next[m->src]++;
		}
		run_free(&r);
		workload_free(w);
	}
}

/* A step that comes early is not answered before the late one of the step before has come. */
static void halving_doubling_waits_for_every_earlier_step(void **state)
{
	struct workload *w =
		made("halving-doubling", (struct workload_params){.host_count = 4, .bytes = 400});
	struct message first[4], early, m;

	for (int i = 0; i < 4; i++)
		assert_true(workload_next(w, &first[i]));
	assert_int_equal(first[3].dst, 1);
	workload_received(w, &first[3], 10);
	assert_true(workload_released(w, &early));
	assert_int_equal(early.src, 1);
	assert_int_equal(early.dst, 0);
	assert_int_equal(early.bytes, 100);
	assert_false(workload_released(w, &m));
	workload_received(w, &early, 20);
	assert_false(workload_released(w, &m));
	assert_int_equal(first[2].dst, 0);
	workload_received(w, &first[2], 30);
	assert_true(workload_released(w, &m));
	assert_int_equal(m.dst, 1);
	assert_int_equal(m.bytes, 100);
	assert_true(workload_released(w, &m));
	assert_int_equal(m.dst, 1);
	assert_int_equal(m.number, 2 * 4);
	assert_int_equal(m.start_ps, 30);
	assert_false(workload_released(w, &m));
	workload_free(w);
}

static void a_tree_node_waits_for_both_children(void **state)
{
	struct workload *w = made("tree", (struct workload_params){.host_count = 5, .bytes = 9});
	struct message leaf[3], up, m;

	for (int i = 0; i < 3; i++)
		assert_true(workload_next(w, &leaf[i]));
	assert_false(workload_next(w, &m));
	/* Host 2 is a leaf; 3 and 4 are the children of 1. */
	assert_int_equal(leaf[0].src, 2);
	workload_received(w, &leaf[1], 5);
	assert_false(workload_released(w, &m));
	workload_received(w, &leaf[2], 6);
	assert_true(workload_released(w, &up));
	assert_int_equal(up.src, 1);
	assert_int_equal(up.dst, 0);
	workload_received(w, &up, 7);
	assert_false(workload_released(w, &m));
	workload_received(w, &leaf[0], 8);
	assert_true(workload_released(w, &m));
	assert_int_equal(m.dst, 1);
	assert_true(workload_released(w, &m));
	assert_int_equal(m.dst, 2);
	assert_false(workload_released(w, &m));
	workload_free(w);
}

static void a_tree_sends_every_edge_up_and_down_once_a_chunk(void **state)
{
	for (uint32_t n = 2; n <= 20; n++)
		for (uint32_t chunks = 1; chunks <= 3; chunks++) {
			uint64_t up[20] = {0}, down[20] = {0};
			struct run r = ran("tree", (struct workload_params){.host_count = n,
									    .bytes = 1000,
									    .chunks = chunks});

			assert_int_equal(r.message_count, 2 * (n - 1) * chunks);
			for (size_t i = 0; i < r.message_count; i++) {
				const struct message *m = &r.messages[i];

				if (m->src > m->dst) {
					assert_int_equal(m->dst, (m->src - 1) / 2);
					up[m->src] += m->bytes;
				} else {
					assert_int_equal(m->src, (m->dst - 1) / 2);
					down[m->dst] += m->bytes;
				}
			}
			for (uint32_t h = 1; h < n; h++) {
				assert_int_equal(up[h], 1000);
				assert_int_equal(down[h], 1000);
			}
			run_free(&r);
		}
}

static void moe_bytes_follow_zipf_and_come_back(void **state)
{
	enum { N = 16 };
	uint64_t to[N] = {0}, back[N] = {0}, sorted[N];
	struct run r = ran("moe", (struct workload_params){.host_count = N,
							   .bytes = 10000000,
							   .zipf_milli = 1000,
							   .active_max = 3,
							   .order = WORKLOAD_RANDOM,
							   .combine = true});

	assert_int_equal(r.message_count, 2 * N * (N - 1));
	for (size_t i = 0; i < r.message_count; i++) {
		const struct message *m = &r.messages[i];

		if (m->number < N * (N - 1))
			to[m->dst] = m->bytes;
		else
			back[m->src] = m->bytes;
	}
	for (int i = 0; i < N; i++) {
		assert_int_equal(to[i], back[i]);
		sorted[i] = to[i];
	}
	for (int i = 0; i < N; i++)
		for (int j = i + 1; j < N; j++)
			if (sorted[j] > sorted[i]) {
				uint64_t t = sorted[i];

				sorted[i] = sorted[j];
				sorted[j] = t;
			}
	/* Shares 1, 1/2, 1/3 .. of their sum, the 16th harmonic number 3.380728993... */
	for (uint64_t i = 0; i < N; i++)
		assert_in_range(sorted[i], 2957942 / (i + 1) - 1, 2957944 / (i + 1) + 1);
	run_free(&r);
}

static void zipf_0_is_uniform(void **state)
{
	struct run r = ran("moe", (struct workload_params){.host_count = 8, .bytes = 8000});

	assert_int_equal(r.message_count, 56);
	for (size_t i = 0; i < r.message_count; i++)
		assert_int_equal(r.messages[i].bytes, 1000);
	run_free(&r);
}

static void a_poisson_load_is_what_was_asked_for(void **state)
{
	static const struct {
		const char *cdf;
		uint32_t load_ppm;
		uint64_t ms, percent;
	} rows[] = {
		{"WebSearch", 300000, 200, 2},
		{"WebSearch", 500000, 200, 2},
		{"FB_Hadoop", 300000, 20, 3},
		{"AliStorage2019", 800000, 4, 3},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct text_error err;
		struct cdf cdf;
		struct message m;
		uint64_t bytes = 0, last = 0, want;

		assert_int_equal(cdf_builtin(&cdf, rows[i].cdf, &err), 0);

		struct workload *w =
			made("poisson", (struct workload_params){.host_count = 320,
								 .seed = 42,
								 .cdf = &cdf,
								 .rate_bps = 100 * GBPS,
								 .load_ppm = rows[i].load_ppm,
								 .end_ps = rows[i].ms * MS});

		cdf_free(&cdf);
		while (workload_next(w, &m)) {
			assert_true(m.src < 320 && m.dst < 320 && m.src != m.dst);
			assert_true(m.start_ps >= last && m.start_ps < rows[i].ms * MS);
			assert_true(m.bytes > 0);
			last = m.start_ps;
			bytes += m.bytes;
		}
		want = 320ull * 100 * GBPS / 8 * rows[i].ms / 1000 / 1000000 * rows[i].load_ppm;
		assert_in_range(bytes, want - want * rows[i].percent / 100,
				want + want * rows[i].percent / 100);
		workload_free(w);
	}
}

static void poisson_gaps_are_exponential_and_destinations_uniform(void **state)
{
	enum { N = 8, COUNT = 80000, MEAN = 80000 /* ps: 1000 B at 100 Gbit/s */ };
	struct cdf cdf;
	uint64_t last[N] = {0}, to[N] = {0}, longer[4] = {0}, gaps = 0;
	struct text_error err;
	struct message m;

	assert_int_equal(cdf_read(&cdf, "1000 100\n", 9, &err), 0);

	struct workload *w = made("poisson", (struct workload_params){.host_count = N,
								      .seed = 7,
								      .cdf = &cdf,
								      .rate_bps = 100 * GBPS,
								      .load_ppm = 1000000,
								      .count_max = COUNT});

	while (workload_next(w, &m)) {
		uint64_t gap = m.start_ps - last[m.src];

		for (uint64_t k = 0; k < 4; k++)
			longer[k] += gap > k * MEAN;
		gaps++;
		last[m.src] = m.start_ps;
		to[(m.dst - m.src + N) % N]++;
		assert_int_equal(m.bytes, 1000);
	}
	assert_int_equal(gaps, COUNT);
	/* e^-1, e^-2, e^-3 of them. */
	assert_in_range(longer[1], 29430 - 500, 29430 + 500);
	assert_in_range(longer[2], 10827 - 400, 10827 + 400);
	assert_in_range(longer[3], 3983 - 250, 3983 + 250);
	assert_int_equal(to[0], 0);
	for (int i = 1; i < N; i++)
		assert_in_range(to[i], COUNT / 7 - 400, COUNT / 7 + 400);
	cdf_free(&cdf);
	workload_free(w);
}

static void another_host_changes_no_ones_gaps_and_sizes(void **state)
{
	enum { COUNT = 5000, HOSTS = 10 };
	static struct message a[COUNT], b[COUNT];
	uint32_t common = 0;
	struct text_error err;
	struct cdf cdf;

	assert_int_equal(cdf_builtin(&cdf, "FB_Hadoop", &err), 0);
	for (int i = 0; i < 2; i++) {
		struct workload *w =
			made("poisson", (struct workload_params){.host_count = HOSTS + i,
								 .seed = 3,
								 .cdf = &cdf,
								 .rate_bps = GBPS,
								 .load_ppm = 500000,
								 .count_max = COUNT});

		for (int k = 0; k < COUNT; k++)
			assert_true(workload_next(w, i ? &b[k] : &a[k]));
		workload_free(w);
	}
	/* The k-th message of a host is the same in both but for its destination and its number. */
	for (uint32_t h = 0; h < HOSTS; h++)
		for (uint32_t i = 0, j = 0; i < COUNT && j < COUNT; i++, j++) {
			while (i < COUNT && a[i].src != h)
				i++;
			while (j < COUNT && b[j].src != h)
				j++;
			if (i == COUNT || j == COUNT)
				break;
			assert_int_equal(a[i].start_ps, b[j].start_ps);
			assert_int_equal(a[i].bytes, b[j].bytes);
			common++;
		}
	assert_true(common > 4000);
	cdf_free(&cdf);
}

static void repeated_incasts_add_the_load_asked_for(void **state)
{
	/* 60 x 500 KB at 2 % of 320 hosts' 100 Gbit/s: one each 375 us. */
	struct workload *w = made("poisson-incast", (struct workload_params){.host_count = 320,
									     .senders = 60,
									     .bytes = 500000,
									     .seed = 9,
									     .rate_bps = 100 * GBPS,
									     .load_ppm = 20000,
									     .end_ps = 1000 * MS});
	struct message m;
	uint64_t bytes = 0, want = 320ull * 100 * GBPS / 8 / 50, incast = UINT64_MAX, at = 0;
	bool senders[320];
	uint32_t target = 0;

	while (workload_next(w, &m)) {
		if (m.number / 60 != incast) {
			incast = m.number / 60;
			target = m.dst;
			at = m.start_ps;
			memset(senders, 0, sizeof(senders));
		}
		assert_int_equal(m.dst, target);
		assert_int_equal(m.start_ps, at);
		assert_false(senders[m.src]);
		senders[m.src] = true;
		bytes += m.bytes;
	}
	assert_in_range(bytes, want * 95 / 100, want * 105 / 100);
	workload_free(w);
}

static void a_victim_has_a_tag_and_a_receiver_of_its_own(void **state)
{
	struct run r = ran("victim", (struct workload_params){.host_count = 16,
							      .target = 8,
							      .victim_src = 1,
							      .victim_dst = 9,
							      .bytes = 100,
							      .victim_bytes = 5000,
							      .senders = 4,
							      .tag = 6});
	uint32_t victims = 0;

	assert_int_equal(r.message_count, 5);
	for (size_t i = 0; i < r.message_count; i++) {
		const struct message *m = &r.messages[i];

		if (m->tag == 7) {
			assert_int_equal(m->src, 1);
			assert_int_equal(m->dst, 9);
			assert_int_equal(m->bytes, 5000);
			victims++;
		} else {
			assert_int_equal(m->tag, 6);
			assert_int_equal(m->dst, 8);
			assert_int_not_equal(m->src, 1);
		}
	}
	assert_int_equal(victims, 1);
	run_free(&r);
}

static void staircase_flows_join_and_leave_at_their_times(void **state)
{
	enum { FLOWS = 4, DEPTH = 3 };
	struct run r = ran("staircase", (struct workload_params){.host_count = 5,
								 .target = 2,
								 .senders = FLOWS,
								 .bytes = 1000,
								 .active_max = DEPTH,
								 .interval_ps = 100 * US,
								 .start_ps = 10 * US,
								 .end_ps = 900 * US});
	uint64_t first[FLOWS], last[FLOWS] = {0};

	memset(first, 0xff, sizeof(first));
	for (size_t i = 0; i < r.message_count; i++) {
		const struct message *m = &r.messages[i];
		uint64_t flow = m->connection;

		assert_true(flow < FLOWS);
		assert_int_equal(m->dst, 2);
		assert_int_equal(m->src, flow + (flow >= 2));
		if (m->start_ps < first[flow])
			first[flow] = m->start_ps;
		last[flow] = m->start_ps;
	}
	for (uint64_t f = 0; f < FLOWS; f++) {
		assert_int_equal(first[f], 10 * US + f * 100 * US);
		assert_in_range(last[f], 895 * US - f * 100 * US, 900 * US - f * 100 * US);
	}
	assert_int_equal(r.underway_max, DEPTH);
	run_free(&r);
}

static void idle_qps_exist_and_send_nothing(void **state)
{
	struct run r = ran("many-qps", (struct workload_params){.host_count = 5,
								.connections = 131072,
								.idle = 130000,
								.bytes = 64,
								.senders = 2,
								.victim_bytes = 1000000,
								.end_ps = 10 * MS});
	uint32_t idle = 0, slow = 0, fast = 0;

	assert_int_equal(r.message_count, 131074);
	for (size_t i = 0; i < r.message_count; i++) {
		assert_int_equal(r.messages[i].src, 0);
		idle += r.messages[i].bytes == 0;
		slow += r.messages[i].bytes == 64;
		fast += r.messages[i].tag == 1;
	}
	assert_int_equal(idle, 130000);
	assert_int_equal(slow, 1072);
	assert_int_equal(fast, 2);
	run_free(&r);
}

static void ranks_become_the_hosts_that_were_named(void **state)
{
	static const uint32_t hosts[] = {70, 10, 40};
	struct run r = ran("ring",
			   (struct workload_params){.hosts = hosts, .host_count = 3, .bytes = 300});

	assert_int_equal(r.message_count, 12);
	for (size_t i = 0; i < r.message_count; i++) {
		const struct message *m = &r.messages[i];

		assert_int_equal(m->dst, m->src == 70 ? 10 : m->src == 10 ? 40 : 70);
	}
	run_free(&r);
}

static void parts_merge_in_time_and_keep_their_connections_apart(void **state)
{
	struct workload_params p = {.host_count = 8, .bytes = 10, .start_ps = 100, .tag = 1};
	struct workload *w = workload_create();
	struct text_error err;
	struct message m;
	uint64_t last = 0, connections[23];
	uint32_t of_part[3] = {0}, count = 0;

	assert_int_equal(workload_add(w, "incast", &p, &err), 0);
	p.start_ps = 50;
	p.jitter_ps = 100;
	assert_int_equal(workload_add(w, "permutation", &p, &err), 0);
	assert_int_equal(workload_add(w, "permutation", &p, &err), 0);
	assert_int_equal(workload_parts(w), 3);
	while (workload_next(w, &m)) {
		assert_true(m.start_ps >= last);
		for (uint32_t i = 0; i < count; i++)
			assert_int_not_equal(m.connection, connections[i]);
		connections[count++] = m.connection;
		last = m.start_ps;
		of_part[m.part]++;
	}
	assert_int_equal(of_part[0], 7);
	assert_int_equal(of_part[1], 8);
	assert_int_equal(of_part[2], 8);
	assert_int_equal(workload_add(w, "incast", &p, &err), -EINVAL);
	workload_free(w);
}

/* A part's draws do not depend on which other kinds are beside it; two of a kind differ. */
static void parts_draw_for_themselves(void **state)
{
	struct workload_params p = {.host_count = 64, .bytes = 10, .seed = 5};
	uint32_t alone[64], first[64], second[64];
	struct text_error err;
	struct message m;
	struct workload *w = made("permutation", p);

	while (workload_next(w, &m))
		alone[m.src] = m.dst;
	workload_free(w);
	w = workload_create();
	assert_int_equal(workload_add(w, "incast", &p, &err), 0);
	assert_int_equal(workload_add(w, "permutation", &p, &err), 0);
	assert_int_equal(workload_add(w, "permutation", &p, &err), 0);
	while (workload_next(w, &m))
		if (m.part)
			(m.part == 1 ? first : second)[m.src] = m.dst;
	workload_free(w);
	assert_memory_equal(alone, first, sizeof(alone));
	assert_memory_not_equal(first, second, sizeof(first));
}

static void the_same_seed_gives_the_same_messages_on_every_machine(void **state)
{
	struct text_error err;
	struct cdf cdf;

	assert_int_equal(cdf_builtin(&cdf, "WebSearch", &err), 0);

	const struct {
		const char *kind;
		struct workload_params p;
		uint64_t hash;
	} rows[] = {
		{"incast", {.host_count = 9, .bytes = 5, .jitter_ps = US}, 0x9eabc769c65a74c0},
		{"permutation", {.host_count = 100, .bytes = 5}, 0xec5ccae82c0c8a25},
		{"all-to-all",
		 {.host_count = 20, .bytes = 500, .order = WORKLOAD_RANDOM, .active_max = 2},
		 0xe6bfe846a3e545c4},
		{"moe",
		 {.host_count = 20, .bytes = 12345678, .zipf_milli = 1234, .combine = true},
		 0x28cd61293c865b8d},
		{"poisson",
		 {.host_count = 50,
		  .cdf = &cdf,
		  .rate_bps = 100 * GBPS,
		  .load_ppm = 300000,
		  .count_max = 10000},
		 0x12db6ce5fb523c4c},
		{"poisson-incast",
		 {.host_count = 50,
		  .senders = 9,
		  .bytes = 9999,
		  .rate_bps = GBPS,
		  .load_ppm = 1000,
		  .count_max = 1000},
		 0x5377d988910bc3df},
	};
	bool wrong = false;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct workload_params p = rows[i].p;
		uint64_t hashes[3];

		for (int k = 0; k < 3; k++) {
			p.seed = k < 2 ? 2026 : 2027;

			struct run r = ran(rows[i].kind, p);

			hashes[k] = hash_of(&r);
			run_free(&r);
		}
		assert_int_equal(hashes[0], hashes[1]);
		assert_int_not_equal(hashes[0], hashes[2]);
		if (hashes[0] != rows[i].hash) {
			print_message("%s: 0x%016llx\n", rows[i].kind,
				      (unsigned long long)hashes[0]);
			wrong = true;
		}
	}
	cdf_free(&cdf);
	assert_false(wrong);
}

static void impossible_parameters_are_refused_with_the_reason(void **state)
{
	static const struct workload_pair beyond[] = {{0, 1}, {3, 4}}, to_itself[] = {{3, 3}};
	static const uint32_t twice[] = {1, 2, 1};
	static struct cdf none;
	static const struct {
		const char *kind;
		struct workload_params p;
		const char *says;
	} rows[] = {
		{"storm", {0}, "allowed are incast"},
		{"incast", {.bytes = 1}, "hosts is 0; allowed are 2 to"},
		{"incast", {.host_count = 1, .bytes = 1}, "hosts is 1"},
		{"incast", {.host_count = UINT32_MAX, .bytes = 1}, "hosts is 4294967295"},
		{"incast", {.host_count = 4}, "bytes is 0"},
		{"incast", {.host_count = 4, .bytes = UINT64_MAX}, "bytes is 18446744073709551615"},
		{"incast",
		 {.host_count = 4, .bytes = 1, .target = 4},
		 "target is 4; allowed are 0 to 3"},
		{"incast", {.host_count = 4, .bytes = 1, .senders = UINT32_MAX}, "senders is"},
		{"incast",
		 {.host_count = 4, .bytes = 1, .jitter_ps = UINT64_MAX},
		 "jitter, ps, is"},
		{"incast", {.host_count = 4, .bytes = 1, .start_ps = UINT64_MAX}, "start, ps, is"},
		{"incast", {.host_count = 3, .hosts = twice, .bytes = 1}, "host 1 is named twice"},
		{"permutation", {.host_count = 4}, "bytes is 0"},
		{"victim", {.host_count = 4, .bytes = 1, .victim_bytes = 1}, "are both 0"},
		{"victim",
		 {.host_count = 4, .bytes = 1, .victim_bytes = 1, .victim_src = 1},
		 "is the incast's target"},
		{"victim",
		 {.host_count = 4,
		  .bytes = 1,
		  .victim_bytes = 1,
		  .victim_dst = 1,
		  .victim_src = 2,
		  .senders = 2},
		 "2 senders; 1 hosts are left"},
		{"all-to-all", {.host_count = 4, .bytes = 3}, "bytes is 3; allowed are 4 to"},
		{"all-to-all", {.host_count = 4, .bytes = 4, .order = 7}, "order is 7"},
		{"moe", {.host_count = 4, .bytes = 4, .zipf_milli = 8001}, "zipf exponent"},
		{"ring", {.host_count = 4, .bytes = 7, .rings = 2}, "bytes is 7; allowed are 8 to"},
		{"ring", {.host_count = 4, .bytes = 7000, .rings = 1025}, "rings is 1025"},
		{"halving-doubling",
		 {.host_count = 6, .bytes = 100},
		 "6 hosts; halving-doubling needs"},
		{"tree", {.host_count = 4, .bytes = 2, .chunks = 3}, "bytes is 2"},
		{"tree", {.host_count = 4, .bytes = 2, .chunks = UINT32_MAX}, "chunks is"},
		{"poisson", {.host_count = 4}, "no distribution"},
		{"poisson", {.host_count = 4, .cdf = &none}, "no distribution"},
		{"poisson-incast", {.host_count = 4, .bytes = 1, .senders = 4}, "senders is 4"},
		{"poisson-incast",
		 {.host_count = 4, .bytes = 1, .senders = 1},
		 "rate, bit/s, is 0"},
		{"poisson-incast",
		 {.host_count = 4, .bytes = 1, .senders = 1, .rate_bps = GBPS},
		 "load, millionths, is 0"},
		{"poisson-incast",
		 {.host_count = 4,
		  .bytes = 1ull << 44,
		  .senders = 1,
		  .rate_bps = GBPS / 1000,
		  .load_ppm = 1},
		 "mean gap"},
		{"poisson-incast",
		 {.host_count = 4,
		  .bytes = 1ull << 44,
		  .senders = 2,
		  .rate_bps = GBPS,
		  .load_ppm = 1},
		 "together they may have"},
		{"staircase", {.host_count = 4, .bytes = 1}, "senders is 0"},
		{"staircase",
		 {.host_count = 4, .bytes = 1, .senders = 3, .interval_ps = 10, .end_ps = 39},
		 "end, ps, is 39; allowed are 40 to"},
		{"many-qps", {.host_count = 4}, "connections and senders is 0"},
		{"many-qps", {.host_count = 4, .connections = 3, .idle = 4}, "idle is 4"},
		{"pairs", {.host_count = 4, .bytes = 1}, "pairs is 0"},
		{"pairs", {.host_count = 4, .bytes = 1, .pairs = beyond, .pair_count = 2}, "a receiver is 4"},
		{"pairs", {.host_count = 5, .bytes = 1, .pairs = to_itself, .pair_count = 1}, "host 3 is to send to"},
		{"hpcc-flows", {0}, "the text ends"},
		{"htsim-matrix", {0}, "Nodes and Connections"},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct workload *w = workload_create();
		struct text_error err = {0};
		struct message m;

		assert_int_equal(workload_add(w, rows[i].kind, &rows[i].p, &err), -EINVAL);
		if (!strstr(err.message, rows[i].says))
			fail_msg("row %zu: '%s' does not say '%s'", i, err.message, rows[i].says);
		assert_false(workload_next(w, &m));
		workload_free(w);
	}
}

static void every_kind_that_is_listed_is_known(void **state)
{
	for (int i = 0; workload_kinds[i]; i++) {
		struct workload *w = workload_create();
		struct workload_params p = {0};
		struct text_error err = {0};

		assert_int_equal(workload_add(w, workload_kinds[i], &p, &err), -EINVAL);
		assert_null(strstr(err.message, "no workload is called"));
		workload_free(w);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_incast_has_its_senders_in_turn),
		cmocka_unit_test(jitter_stays_within_its_bound_and_messages_in_order),
		cmocka_unit_test(a_permutation_has_no_fixed_point_and_each_receiver_once),
		cmocka_unit_test(pairs_are_messages_in_the_order_given),
		cmocka_unit_test(every_derangement_is_as_likely),
		cmocka_unit_test(all_to_all_covers_each_ordered_pair_once),
		cmocka_unit_test(shifted_order_gives_every_receiver_one_sender_a_step),
		cmocka_unit_test(a_thousand_hosts_all_to_all_is_a_million_messages),
		cmocka_unit_test(a_ring_allreduce_moves_2_n_minus_1_over_n_of_s_per_host),
		cmocka_unit_test(after_a_ring_allreduce_everyone_has_everything),
		cmocka_unit_test(a_step_starts_when_the_one_before_has_arrived),
		cmocka_unit_test(halving_doubling_takes_2_log2_n_steps_and_the_rings_volume),
		cmocka_unit_test(halving_doubling_never_overtakes),
		cmocka_unit_test(halving_doubling_waits_for_every_earlier_step),
		cmocka_unit_test(a_tree_node_waits_for_both_children),
		cmocka_unit_test(a_tree_sends_every_edge_up_and_down_once_a_chunk),
		cmocka_unit_test(moe_bytes_follow_zipf_and_come_back),
		cmocka_unit_test(zipf_0_is_uniform),
		cmocka_unit_test(a_poisson_load_is_what_was_asked_for),
		cmocka_unit_test(poisson_gaps_are_exponential_and_destinations_uniform),
		cmocka_unit_test(another_host_changes_no_ones_gaps_and_sizes),
		cmocka_unit_test(repeated_incasts_add_the_load_asked_for),
		cmocka_unit_test(a_victim_has_a_tag_and_a_receiver_of_its_own),
		cmocka_unit_test(staircase_flows_join_and_leave_at_their_times),
		cmocka_unit_test(idle_qps_exist_and_send_nothing),
		cmocka_unit_test(ranks_become_the_hosts_that_were_named),
		cmocka_unit_test(parts_merge_in_time_and_keep_their_connections_apart),
		cmocka_unit_test(parts_draw_for_themselves),
		cmocka_unit_test(the_same_seed_gives_the_same_messages_on_every_machine),
		cmocka_unit_test(impossible_parameters_are_refused_with_the_reason),
		cmocka_unit_test(every_kind_that_is_listed_is_known),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
