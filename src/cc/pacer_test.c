/* SPDX-License-Identifier: BSD-2-Clause */
#include "cc/pacer.h"
#include "support/test.h"

#define G UINT64_C(1000000000)

/* As a sender does it: each packet when it is due, by a clock of whole nanoseconds. */
static uint64_t send(struct pacer *p, uint64_t rate_bps, uint32_t bytes, unsigned count)
{
	uint64_t now_ns = 1000;

	for (unsigned i = 0; i < count; i++) {
		uint64_t due_ns = pacer_due_ns(p, rate_bps, 0);

		if (due_ns > now_ns)
			now_ns = due_ns;
		pacer_sent(p, rate_bps, bytes, 0, now_ns);
	}
	return now_ns - 1000;
}

TEST(the_first_packet_and_unpaced_ones_are_due_at_once)
{
	struct pacer p = {0};

	assert_int_equal(pacer_due_ns(&p, G, 0), 0);
	pacer_sent(&p, G, 1500, 0, 1000);
	assert_int_equal(pacer_due_ns(&p, CC_UNPACED, 0), 0);
	assert_int_equal(pacer_due_ns(&p, G, 0), 1000 + 12000);
}

TEST(fractions_of_a_nanosecond_are_not_lost)
{
	const struct {
		uint64_t rate_bps, ns;
		uint32_t bytes;
		unsigned gaps;
	} cases[] = {
		{3 * G, UINT64_C(4000000), 1500, 1000},           /* 4000 ns each */
		{7 * G, UINT64_C(12000000), 1500, 7000},          /* 1714.28... */
		{91 * G, UINT64_C(8000000), 91, 1000000},         /* 8 */
		{300 * G + 1, UINT64_C(27999999), 1050, 1000000}, /* 27.9999999 */
		{1000000, UINT64_C(120000000), 1500, 10},         /* 12 ms */
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct pacer p = {0};
		uint64_t ns = send(&p, cases[i].rate_bps, cases[i].bytes, cases[i].gaps + 1);

		assert_in_range(ns, cases[i].ns, cases[i].ns + 1);
	}
}

TEST(a_new_rate_moves_the_packet_that_waits)
{
	struct pacer p = {0};

	pacer_sent(&p, G, 1250, 0, 1000);
	assert_int_equal(pacer_due_ns(&p, G, 0), 1000 + 10000);
	assert_int_equal(pacer_due_ns(&p, 10 * G, 0), 1000 + 1000);
	assert_int_equal(pacer_due_ns(&p, G / 10, 0), 1000 + 100000);
}

/* Otherwise a sender that was idle would send a burst. */
TEST(silence_gives_no_credit)
{
	struct pacer p = {0};

	pacer_sent(&p, G, 1250, 0, 1000);
	pacer_sent(&p, G, 1250, 0, 500000);
	assert_int_equal(pacer_due_ns(&p, G, 0), 510000);
}

/* Gaps are longer than the slack here: each packet uses it up, and half of it is back for the next. */
TEST(slack_does_not_add_up)
{
	struct pacer p = {0};
	uint64_t now_ns = 1000;

	pacer_sent(&p, G, 1250, 3000, now_ns);
	for (unsigned i = 1; i <= 100; i++) {
		now_ns = pacer_due_ns(&p, G, 3000);
		assert_int_equal(now_ns, 1000 + i * 10000 - 1500);
		pacer_sent(&p, G, 1250, 3000, now_ns);
	}
	assert_int_equal(pacer_due_ns(&p, G, UINT64_MAX), 0);
}
