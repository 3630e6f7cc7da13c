/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/prng.h"
#include "base/timer.h"
#include "support/test.h"

enum { TIMERS = 300 };

static uint64_t model_deadline(const struct timer *t)
{
	uint64_t min = TIMER_NEVER;

	for (int i = 0; i < TIMERS; i++) {
		if (t[i].deadline_ns < min)
			min = t[i].deadline_ns;
	}
	return min;
}

/* The model is the array of wanted deadlines; the heap's own copy in each timer must agree. */
TEST(heap_agrees_with_a_naive_model)
{
	struct timer t[TIMERS];
	uint64_t want[TIMERS], now = 0;
	struct timers h = {NULL};
	struct prng r;

	prng_init(&r, 5);
	for (int i = 0; i < TIMERS; i++) {
		timer_init(&t[i]);
		want[i] = TIMER_NEVER;
	}
	for (int step = 0; step < 200000; step++) {
		uint64_t k = prng_below(&r, TIMERS);

		switch (prng_below(&r, 4)) {
		case 0:
		case 1:
			/* Few distinct values, so that equal deadlines are common. */
			want[k] = now + prng_below(&r, 50);
			timer_set(&h, &t[k], want[k]);
			break;
		case 2:
			want[k] = TIMER_NEVER;
			timer_cancel(&h, &t[k]);
			break;
		default: {
			uint64_t before = now;
			struct timer *due;

			now += prng_below(&r, 20);
			while ((due = timers_take_due(&h, now))) {
				assert_false(timer_is_set(due));
				assert_true(want[due - t] <= now && want[due - t] >= before);
				before = want[due - t]; /* the earliest first */
				want[due - t] = TIMER_NEVER;
			}
		}
		}
		assert_int_equal(timer_is_set(&t[k]), want[k] != TIMER_NEVER);
		assert_true(timers_deadline(&h) == model_deadline(t));
		if (step % 100 == 0) {
			for (int i = 0; i < TIMERS; i++)
				assert_true(t[i].deadline_ns == want[i]);
		}
	}
}

TEST(take_due_is_inclusive_and_one_at_a_time)
{
	struct timers h = {NULL};
	struct timer a, b;

	timer_init(&a);
	timer_init(&b);
	assert_true(timers_deadline(&h) == TIMER_NEVER);
	assert_null(timers_take_due(&h, TIMER_NEVER - 1));
	timer_set(&h, &a, 10);
	timer_set(&h, &b, 0);
	assert_ptr_equal(timers_take_due(&h, 0), &b);
	assert_null(timers_take_due(&h, 9));
	assert_ptr_equal(timers_take_due(&h, 10), &a);
	assert_null(timers_take_due(&h, 10));
}

TEST(cancel_is_harmless_when_not_set)
{
	struct timers h = {NULL};
	struct timer a;

	timer_init(&a);
	timer_cancel(&h, &a);
	timer_set(&h, &a, 7);
	timer_cancel(&h, &a);
	timer_cancel(&h, &a);
	assert_true(timers_deadline(&h) == TIMER_NEVER);
}
