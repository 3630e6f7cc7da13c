/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/prng.h"
#include "net/event.h"
#include "support/test.h"

static struct event_queue q;
static int objects[8];

TEST(equal_times_come_by_class_then_by_number_then_by_kind)
{
	static const struct {
		unsigned class, kind;
		uint64_t number;
		int comes;
	} pushed[] = {{2, 7, 5, 3}, {0, 7, 1, 0}, {2, 7, UINT64_C(1) << 55, 5},
		      {1, 7, 0, 2}, {0, 7, 9, 1}, {2, 8, 5, 4}};
	const struct event *e;

	assert_int_equal(event_queue_init(&q, 4), 0);
	for (size_t i = 0; i < sizeof(pushed) / sizeof(*pushed); i++)
		event_push(&q, 1000, pushed[i].class, pushed[i].kind, pushed[i].number, &objects[pushed[i].comes]);
	for (int i = 0; i < 6; i++) {
		assert_non_null((e = event_pop(&q, 1000)));
		assert_ptr_equal(e->object, &objects[i]);
		assert_int_equal(event_kind(e), i == 4 ? 8 : 7);
	}
	assert_null((e = event_pop(&q, UINT64_MAX)));
	event_queue_fini(&q);
}

TEST(a_lower_class_pushed_at_the_present_time_comes_first)
{
	const struct event *e;

	assert_int_equal(event_queue_init(&q, 0), 0);
	event_push(&q, 50, 1, 0, 0, &objects[0]);
	event_push(&q, 50, 2, 0, 0, &objects[2]);
	assert_non_null((e = event_pop(&q, 50)));
	event_push(&q, 50, 0, 0, 0, &objects[1]);
	assert_non_null((e = event_pop(&q, 50)));
	assert_ptr_equal(e->object, &objects[1]);
	assert_non_null((e = event_pop(&q, 50)));
	assert_ptr_equal(e->object, &objects[2]);
	event_queue_fini(&q);
}

TEST(nothing_comes_before_its_time)
{
	const struct event *e;

	assert_int_equal(event_queue_init(&q, 8), 0);
	event_push(&q, UINT64_MAX, 0, 0, 0, NULL);
	event_push(&q, 1 << 20, 0, 0, 0, NULL);
	assert_null((e = event_pop(&q, (1 << 20) - 1)));
	assert_int_equal(event_next_ps(&q), 1 << 20);
	event_push(&q, 77, 0, 0, 0, NULL); /* behind what the queue has already looked at */
	assert_int_equal(event_next_ps(&q), 77);
	assert_non_null((e = event_pop(&q, (1 << 20) - 1)));
	assert_int_equal(e->time_ps, 77);
	assert_non_null((e = event_pop(&q, 1 << 20)));
	assert_null((e = event_pop(&q, UINT64_MAX - 1)));
	assert_non_null((e = event_pop(&q, UINT64_MAX)));
	assert_true(event_next_ps(&q) == UINT64_MAX);
	event_queue_fini(&q);
}

/* A million events, each of which pushes the next: with any width of a tick they come in order. */
TEST(order_does_not_depend_on_the_tick)
{
	static const unsigned ticks[] = {0, 3, 8, 13, 20, 40, 99};
	uint64_t hashes[sizeof(ticks) / sizeof(*ticks)];

	for (size_t t = 0; t < sizeof(ticks) / sizeof(*ticks); t++) {
		struct prng prng;
		const struct event *e;
		uint64_t last_ps = 0, hash = 0;

		prng_init(&prng, 1);
		assert_int_equal(event_queue_init(&q, ticks[t]), 0);
		for (unsigned i = 0; i < 3000; i++)
			event_push(&q, prng_below(&prng, 100000), i % 3, 0, i, NULL);
		for (unsigned i = 0; i < 100000; i++) {
			uint64_t next_ps = i % 2 ? event_next_ps(&q) : 0;

			assert_non_null((e = event_pop(&q, UINT64_MAX)));
			assert_true(e->time_ps >= last_ps);
			assert_true(e->time_ps == next_ps || !(i % 2));
			last_ps = e->time_ps;
			hash = (hash ^ e->time_ps ^ e->order) * 0x9e3779b97f4a7c15u;
			event_push(&q, last_ps + prng_below(&prng, i % 64 ? 1 << 20 : UINT64_C(1) << 40), i % 3, 0,
				   i % 3000, NULL);
		}
		assert_int_equal(q.pending, 3000);
		hashes[t] = hash;
		assert_int_equal(hashes[t], hashes[0]);
		event_queue_fini(&q);
	}
}
