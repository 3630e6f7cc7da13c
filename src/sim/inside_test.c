/* SPDX-License-Identifier: BSD-2-Clause */
/* Links inside nodes, against closed forms: 8 ranks of 1 Tbit/s (8 ps a byte) in nodes of 4, and a delay of 500 ns. */
#include "sim/inside.h"

#include "support/test.h"

#define NS    UINT64_C(1000)
#define DELAY (500 * NS)

struct log {
	struct inside *inside;
	uint64_t arrived_ps[16], sent_ps[16];
	struct inside_message m[16];
};

static void begin(struct log *l)
{
	*l = (struct log){.inside = inside_create(8, 4, 1000000000000, DELAY)};
	assert_non_null(l->inside);
}

static void post(struct log *l, int i, uint32_t src, uint32_t dst, uint64_t bytes, uint64_t now_ps)
{
	l->m[i] = (struct inside_message){.bytes = bytes, .src = src, .dst = dst};
	assert_true(inside_post(l->inside, &l->m[i], now_ps));
}

/* All reports until then. */
static void run(struct log *l, uint64_t until_ps)
{
	struct inside_message *m;
	uint64_t now_ps;
	bool sent;

	while ((now_ps = inside_deadline(l->inside)) <= until_ps && now_ps != INSIDE_NEVER_PS) {
		while ((m = inside_report(l->inside, now_ps, &sent)))
			*(sent ? &l->sent_ps[m - l->m] : &l->arrived_ps[m - l->m]) = now_ps;
	}
}

TEST(a_message_alone_takes_its_bytes_and_the_delay)
{
	struct log l;

	begin(&l);
	post(&l, 0, 1, 3, 100000, 7);
	post(&l, 1, 5, 4, 1, 7);
	run(&l, UINT64_MAX);
	assert_int_equal(l.arrived_ps[0], 7 + 800000 + DELAY);
	assert_int_equal(l.sent_ps[0], 7 + 800000 + 2 * DELAY);
	assert_int_equal(l.arrived_ps[1], 7 + 8 + DELAY);
	assert_int_equal(inside_alone_ps(l.inside, 100000), 800000 + DELAY);
	assert_true(inside_joins(l.inside, 0, 3));
	assert_false(inside_joins(l.inside, 3, 4));
	assert_false(inside_joins(NULL, 0, 0));
	assert_int_equal(inside_relay(l.inside, 2, 7), 3);
	assert_int_equal(inside_relay(l.inside, 6, 1), 5);
	inside_free(l.inside);
}

TEST(a_sender_and_a_receiver_are_shared_in_order)
{
	struct log l;

	begin(&l);
	for (int i = 0; i < 3; i++)
		post(&l, i, 0, (uint32_t)i + 1, 1000, 0);
	run(&l, UINT64_MAX);
	for (uint64_t i = 0; i < 3; i++)
		assert_int_equal(l.arrived_ps[i], DELAY + (i + 1) * 8000);
	for (int i = 0; i < 3; i++)
		post(&l, i, (uint32_t)i + 1, 0, 1000, 10000 * NS);
	run(&l, UINT64_MAX);
	for (uint64_t i = 0; i < 3; i++)
		assert_int_equal(l.arrived_ps[i], 10000 * NS + DELAY + (i + 1) * 8000);
	inside_free(l.inside);
}

/* Each rank sends to each other one, shifted, and all links are busy all the time. */
TEST(an_exchange_takes_what_its_links_need)
{
	struct log l;
	int i = 0;

	begin(&l);
	for (uint32_t k = 1; k < 4; k++)
		for (uint32_t r = 0; r < 4; r++)
			post(&l, i++, r, (r + k) % 4, 50000, 0);
	run(&l, UINT64_MAX);
	for (i = 0; i < 12; i++)
		assert_int_equal(l.arrived_ps[i], DELAY + (uint64_t)(i / 4 + 1) * 400000);
	inside_free(l.inside);
}

/* What waits behind a long message at its sender takes its turn at the receiver when it gets there. */
TEST(who_gets_there_first_is_served_first)
{
	struct log l;

	begin(&l);
	post(&l, 0, 0, 1, 1000000, 0);
	post(&l, 1, 0, 2, 1000, 0);
	run(&l, 100);
	post(&l, 2, 3, 2, 1000, 100);
	run(&l, UINT64_MAX);
	assert_int_equal(l.arrived_ps[0], 8000000 + DELAY);
	assert_int_equal(l.arrived_ps[2], 100 + 8000 + DELAY);
	assert_int_equal(l.arrived_ps[1], 8000000 + 8000 + DELAY);
	inside_free(l.inside);
}

TEST(a_quiet_message_has_one_report)
{
	struct inside_message m = {.bytes = 1000, .src = 0, .dst = 1, .quiet = true};
	struct log l;
	bool sent;

	begin(&l);
	assert_true(inside_post(l.inside, &m, 0));
	assert_null(inside_report(l.inside, DELAY, &sent));
	assert_ptr_equal(inside_report(l.inside, DELAY + 8000, &sent), &m);
	assert_false(sent);
	assert_int_equal(inside_deadline(l.inside), INSIDE_NEVER_PS);
	inside_free(l.inside);
}
