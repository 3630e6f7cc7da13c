/* SPDX-License-Identifier: BSD-2-Clause */
#include <pthread.h>
#include <sched.h>

#include "base/prng.h"
#include "io/shm/shm_ring.h"
#include "support/test.h"

enum { SEGMENT = 100, MANY = 20000 };

struct rig {
	struct shm_memory *memory;
	struct shm_putter in;
	struct shm_taker out;
	struct flow flows[3];
	uint8_t data[PKT_TRAIN_BYTES_MAX], got[PKT_TRAIN_BYTES_MAX];
};

static struct rig *rig_new(void)
{
	struct rig *r = calloc(1, sizeof(*r));

	r->memory = aligned_alloc(4096, SHM_MEMORY_BYTES);
	memset(r->memory, 0, SHM_MEMORY_BYTES);
	shm_memory_init(r->memory);
	shm_putter_init(&r->in, r->memory);
	shm_taker_init(&r->out, r->memory);
	for (size_t i = 0; i < 3; i++)
		r->flows[i].sport = (uint16_t)(49152 + i);
	for (size_t i = 0; i < sizeof(r->data); i++)
		r->data[i] = (uint8_t)(i * 7 + i / 251);
	return r;
}

static void rig_free(struct rig *r)
{
	free(r->memory);
	free(r);
}

#define RIG_TEST(name) TEST_OF(name, struct rig *, r, rig_new(), rig_free(r))

static enum shm_verdict put(struct rig *r, size_t flow, uint32_t len)
{
	const struct shm_train t = {
		.len = len, .segment = len < 1024 ? len : 1024, .first = (uint8_t)(len % PKT_TRAIN_MAX)};

	return shm_put(&r->in, &r->flows[flow], r->data + len % 7, &t);
}

static void take(struct rig *r, size_t flow, uint32_t len)
{
	struct shm_train t;

	assert_int_equal(shm_take(&r->out, r->got, sizeof(r->got), &t), SHM_DONE);
	assert_int_equal(t.len, len);
	assert_int_equal(t.segment, len < 1024 ? len : 1024);
	assert_int_equal(t.first, len % PKT_TRAIN_MAX);
	assert_memory_equal(r->got, r->data + len % 7, len);
	assert_memory_equal(&r->out.flow, &r->flows[flow], sizeof(struct flow));
}

RIG_TEST(trains_come_out_as_they_went_in)
{
	struct shm_train t;

	assert_true(shm_memory_is_known(r->memory));
	assert_int_equal(shm_take(&r->out, r->got, sizeof(r->got), &t), SHM_NONE);
	assert_int_equal(put(r, 0, 60), SHM_DONE);
	assert_int_equal(put(r, 0, 1), SHM_DONE);
	assert_int_equal(put(r, 1, 65000), SHM_DONE);
	assert_false(shm_has_some(&r->out)); /* nothing is shown yet */
	shm_publish(&r->in);
	assert_true(shm_has_some(&r->out));
	take(r, 0, 60);
	take(r, 0, 1);
	take(r, 1, 65000);
	assert_false(shm_has_some(&r->out));
}

RIG_TEST(a_flow_is_written_when_it_changes)
{
	struct shm_train t;

	put(r, 0, 8);
	put(r, 0, 8);
	put(r, 1, 8);
	shm_publish(&r->in);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(shm_take(&r->out, r->got, sizeof(r->got), &t), SHM_DONE);
		assert_int_equal(t.new_flow, i != 1);
	}
}

RIG_TEST(a_full_ring_takes_no_more_until_room_is_given_back)
{
	unsigned n = 0;

	while (put(r, 0, 4000) == SHM_DONE)
		n++;
	assert_true(n >= 29);
	shm_publish(&r->in);
	take(r, 0, 4000);
	assert_int_equal(put(r, 0, 4000), SHM_NO_ROOM); /* not yet given back */
	shm_release(&r->out);
	assert_int_equal(put(r, 0, 3900), SHM_DONE);
}

/* Against a list: any lengths, any interleaving, many times around. */
RIG_TEST(random_trains_keep_order_and_bytes)
{
	uint32_t lens[4096];
	uint8_t flows[4096];
	size_t first = 0, last = 0;
	struct prng p;

	prng_init(&p, 18);
	for (int i = 0; i < MANY; i++) {
		uint32_t len = 1 + (uint32_t)(prng_next(&p) % (prng_next(&p) % 8 ? 300 : PKT_TRAIN_BYTES_MAX - 8));
		size_t flow = prng_next(&p) % 3;

		if (prng_next(&p) % 2 && last - first < 4096) {
			if (put(r, flow, len) == SHM_DONE) {
				lens[last % 4096] = len;
				flows[last++ % 4096] = (uint8_t)flow;
			}
			shm_publish(&r->in);
		} else if (first < last) {
			take(r, flows[first % 4096], lens[first % 4096]);
			first++;
			if (prng_next(&p) % 2)
				shm_release(&r->out);
		} else {
			/* What lies there of an earlier time around is none. */
			assert_false(shm_has_some(&r->out));
		}
	}
	assert_true(first > MANY / 4);
}

RIG_TEST(who_puts_wakes_a_sleeper_once)
{
	put(r, 0, 8);
	assert_false(shm_publish(&r->in)); /* it does not sleep */
	take(r, 0, 8);
	shm_sleep(&r->out);
	assert_false(shm_publish(&r->in)); /* nothing is new */
	put(r, 0, 8);
	assert_true(shm_publish(&r->in));
	assert_true(shm_wakes(&r->in));
	assert_false(shm_wakes(&r->in));
	put(r, 0, 8);
	assert_false(shm_publish(&r->in));
}

RIG_TEST(a_sleeper_that_took_all_is_not_woken)
{
	put(r, 0, 8);
	shm_sleep(&r->out);
	assert_true(shm_publish(&r->in));
	take(r, 0, 8);
	shm_release(&r->out);
	assert_false(shm_wakes(&r->in));
	put(r, 0, 8);
	assert_true(shm_publish(&r->in));
	assert_true(shm_wakes(&r->in));
}

RIG_TEST(nobody_takes_before_it_is_accepted)
{
	assert_false(shm_is_accepted(&r->in));
	shm_accept(&r->out, false);
	assert_true(shm_is_accepted(&r->in));
	assert_false(shm_is_read(&r->in));
	shm_accept(&r->out, true);
	assert_true(shm_is_read(&r->in));
}

static struct nonsense {
	const char *what;
	uint32_t at; /* byte of the memory */
	uint64_t word;
	size_t bytes;
} nonsense[] = {
	{"a length of 0", SHM_HEADER_BYTES, 0, 4},
	{"a length that no train has", SHM_HEADER_BYTES, UINT32_MAX, 4},
	{"packets of no length", SHM_HEADER_BYTES + 4, 0, 2},
	{"packets longer than the train", SHM_HEADER_BYTES + 4, 101, 2},
	{"more packets than a train has", SHM_HEADER_BYTES + 4, 1, 2},
	{"an unknown kind", SHM_HEADER_BYTES + 6, 9, 1},
	{"no flow", SHM_HEADER_BYTES + 6, 2, 1},
	{"a wrap where there is none", SHM_HEADER_BYTES + 6, 1, 1},
	{"a place that no train has", SHM_HEADER_BYTES + 7, PKT_TRAIN_MAX, 1},
};

TEST(nonsense_is_noticed)
{
	for (size_t i = 0; i < sizeof(nonsense) / sizeof(nonsense[0]); i++) {
		const struct nonsense *n = &nonsense[i];
		struct rig *r = rig_new();
		struct shm_train t;

		put(r, 0, SEGMENT);
		shm_publish(&r->in);
		memcpy((uint8_t *)r->memory + n->at, &n->word, n->bytes);
		if (shm_take(&r->out, r->got, sizeof(r->got), &t) != SHM_BAD)
			fail_msg("%s", n->what);
		rig_free(r);
	}
}

/* Records lie in one piece. */
RIG_TEST(a_length_beyond_the_end_is_noticed)
{
	uint32_t at = SHM_ROOM_BYTES - 4 * SHM_UNIT_BYTES, len = 4 * SHM_UNIT_BYTES;
	struct shm_train t;

	while (r->in.tail < at) {
		assert_int_equal(put(r, 0, r->in.tail ? SHM_UNIT_BYTES - 8 : 1), SHM_DONE);
		shm_publish(&r->in);
		assert_int_equal(shm_take(&r->out, r->got, sizeof(r->got), &t), SHM_DONE);
	}
	assert_int_equal(r->in.tail, at);
	put(r, 0, 8);
	shm_publish(&r->in);
	memcpy((uint8_t *)r->memory + SHM_HEADER_BYTES + at, &len, sizeof(len));
	assert_int_equal(shm_take(&r->out, r->got, sizeof(r->got), &t), SHM_BAD);
}

/* The other end would take the line back after each. */
RIG_TEST(a_record_is_not_there_before_it_is_published)
{
	const uint8_t *first = (const uint8_t *)r->memory + SHM_HEADER_BYTES;
	static const uint8_t nothing[SHM_UNIT_BYTES];

	put(r, 0, 40);
	put(r, 0, 40);
	assert_memory_equal(first, nothing, SHM_UNIT_BYTES);
	shm_publish(&r->in);
	take(r, 0, 40);
	take(r, 0, 40);
}

TEST(a_bad_head_is_noticed)
{
	static const uint32_t heads[] = {SHM_ROOM_BYTES, 1, UINT32_MAX};

	for (size_t i = 0; i < 3; i++) {
		struct rig *r = rig_new();

		while (put(r, 0, 4000) == SHM_DONE)
			;
		atomic_store(&r->memory->head, heads[i]);
		assert_int_equal(put(r, 0, 4000), SHM_BAD);
		rig_free(r);
	}
}

RIG_TEST(a_train_stays_where_the_buffer_has_no_room)
{
	struct shm_train t;

	put(r, 0, 500);
	shm_publish(&r->in);
	assert_int_equal(shm_take(&r->out, r->got, 499, &t), SHM_NO_ROOM);
	take(r, 0, 500);
}

static void *put_many(void *arg)
{
	struct rig *r = arg;

	for (uint32_t i = 0; i < MANY; i++) {
		while (put(r, i % 3, 1 + i % 5000) != SHM_DONE)
			sched_yield();
		shm_publish(&r->in);
	}
	return NULL;
}

/* Two threads stand for the two processes, so that the thread sanitizer sees both. */
RIG_TEST(two_threads_lose_nothing)
{
	pthread_t other;

	assert_int_equal(pthread_create(&other, NULL, put_many, r), 0);
	for (uint32_t i = 0; i < MANY; i++) {
		while (!shm_has_some(&r->out))
			sched_yield();
		take(r, i % 3, 1 + i % 5000);
		shm_release(&r->out);
	}
	pthread_join(other, NULL);
}
