/* SPDX-License-Identifier: BSD-2-Clause */
#include "sdr/rate/auto_rate.h"

#include "support/test.h"

#define MS    UINT64_C(1000000)
#define RTT   (40 * MS)
#define SLACK (4 * MS)

enum { MTU = 1000 };

static struct auto_rate r;
static uint64_t now_ns;

static void set_up(bool on)
{
	now_ns = 1000 * MS;
	auto_rate_init(&r, on, MTU, SLACK, now_ns);
}

static uint32_t send_all(void)
{
	uint32_t n = 0;

	for (; auto_rate_may_send(&r, MTU, now_ns) && n < 10000; n++)
		auto_rate_sent(&r, MTU);
	return n;
}

TEST(a_fixed_rate_has_no_window_and_sends_no_pings)
{
	set_up(false);
	assert_int_equal(send_all(), 10000);
	assert_true(auto_rate_due(&r) == UINT64_MAX);
}

TEST(nothing_is_pinged_before_something_is_sent_nor_after_all_was_counted)
{
	uint64_t stamp;

	set_up(true);
	assert_true(auto_rate_due(&r) == UINT64_MAX);
	auto_rate_sent(&r, MTU);
	assert_true(auto_rate_due(&r) <= now_ns);
	stamp = auto_rate_ping(&r, now_ns);
	assert_true(auto_rate_due(&r) > now_ns);
	assert_true(auto_rate_count(&r, stamp, MTU, 7, now_ns + RTT));
	assert_true(auto_rate_due(&r) == UINT64_MAX);
}

/* What was sent before a PING that was answered is not in flight, whether it has arrived or not. */
TEST(the_window_counts_from_the_newest_answer)
{
	uint64_t stamp;

	set_up(true);
	assert_int_equal(send_all(), 32);
	stamp = auto_rate_ping(&r, now_ns);
	now_ns += RTT;
	assert_true(auto_rate_count(&r, stamp, 31 * MTU, 7, now_ns));
	assert_int_equal(r.sent - r.acked, 0);
	assert_true(send_all() >= 16);
}

TEST(an_answer_is_taken_once_and_of_a_ping_that_is_out_alone)
{
	uint64_t stamp;

	set_up(true);
	auto_rate_sent(&r, MTU);
	stamp = auto_rate_ping(&r, now_ns);
	assert_false(auto_rate_count(&r, stamp + 1, MTU, 7, now_ns + RTT));
	assert_false(auto_rate_count(&r, UINT64_MAX, MTU, 7, now_ns + RTT));
	assert_false(auto_rate_count(&r, stamp, MTU, 7, now_ns));
	assert_true(auto_rate_count(&r, stamp, MTU, 7, now_ns + RTT));
	assert_false(auto_rate_count(&r, stamp, MTU, 7, now_ns + 2 * RTT));
	assert_int_equal(r.rtt_ns_least, RTT);
}

/* One that was overtaken measures its round trip, and says nothing that is not known. */
TEST(an_answer_that_was_overtaken_takes_nothing_back)
{
	uint64_t first, second;

	set_up(true);
	auto_rate_sent(&r, MTU);
	first = auto_rate_ping(&r, now_ns);
	auto_rate_sent(&r, MTU);
	second = auto_rate_ping(&r, now_ns + MS);
	assert_true(auto_rate_count(&r, second, 2 * MTU, 9, now_ns + RTT));
	assert_true(auto_rate_count(&r, first, MTU, 8, now_ns + RTT + MS));
	assert_int_equal(r.acked, 2 * MTU);
	assert_int_equal(r.got, 2 * MTU);
}

/* Where a host waits for a processor, answers come in groups, and between these the window is not all that may be sent. */
TEST(what_is_sent_between_groups_of_answers_counts_as_arrived)
{
	uint64_t full, late_ns = 3 * RTT / 4;

	for (int late = 0; late < 2; late++) {
		set_up(true);
		for (int i = 0; i < 8; i++) {
			auto_rate_sent(&r, MTU);
			now_ns += late ? late_ns : RTT / 32;
			assert_true(auto_rate_count(&r, auto_rate_ping(&r, now_ns - RTT), r.sent, now_ns, now_ns));
		}
		r.cc.cwnd_bytes = 32 * MTU;
		r.cc.rate_bps = r.cc.cwnd_bytes * 8000 / (RTT / MS);
		send_all();
		full = r.sent;
		now_ns += late_ns;
		send_all();
		if (late)
			assert_true(r.sent - full > r.cc.cwnd_bytes / 3);
		else
			assert_true(r.sent - full <= r.cc.cwnd_bytes / 8);
	}
}

TEST(a_peer_that_counts_more_than_was_sent_counts_as_one_that_has_all)
{
	set_up(true);
	auto_rate_sent(&r, MTU);
	assert_true(auto_rate_count(&r, auto_rate_ping(&r, now_ns), UINT64_MAX, 7, now_ns + RTT));
	assert_int_equal(r.got, MTU);
}

/* Of a path that is dead a PING is sent a few times a round trip, for as long as it takes. */
TEST(pings_go_on_seldom_while_no_answer_comes)
{
	uint32_t n = 0;

	set_up(true);
	auto_rate_sent(&r, MTU);
	assert_true(auto_rate_count(&r, auto_rate_ping(&r, now_ns), 0, 7, now_ns + RTT));
	now_ns += RTT;
	send_all();
	for (uint64_t end_ns = now_ns + 2000 * MS; now_ns < end_ns; n++) {
		now_ns = auto_rate_due(&r) > now_ns ? auto_rate_due(&r) : now_ns;
		auto_rate_ping(&r, now_ns);
	}
	assert_in_range(n, 50, 300);
	assert_true(auto_rate_count(&r, r.pings - 1, r.sent, 8, now_ns + RTT));
	assert_int_equal(r.sent, r.acked);
}

TEST(a_round_trip_that_is_shorter_than_hosts_wait_sets_no_limit)
{
	set_up(true);
	assert_true(auto_rate_bps(&r) > 0);
	assert_int_equal(send_all(), 32);
	assert_true(auto_rate_count(&r, auto_rate_ping(&r, now_ns), 0, 7, now_ns + SLACK));
	assert_true(auto_rate_bps(&r) > 0);
	assert_true(auto_rate_count(&r, auto_rate_ping(&r, now_ns), 0, 7, now_ns + SLACK - 1));
	assert_true(auto_rate_bps(&r) == 0);
	assert_int_equal(send_all(), 10000);
	assert_true(auto_rate_due(&r) == UINT64_MAX);
}

/* The library of the version before answers each PING by its stamp alone. */
TEST(a_peer_that_cannot_count_sets_no_limit)
{
	uint64_t stamp;

	set_up(true);
	assert_int_equal(send_all(), 32);
	stamp = auto_rate_ping(&r, now_ns);
	assert_false(auto_rate_pong(&r, stamp + 1, now_ns + RTT));
	assert_int_equal(send_all(), 0);
	assert_true(auto_rate_pong(&r, stamp, now_ns + RTT));
	assert_false(r.on);
	assert_int_equal(r.rtt_ns_least, RTT);
	assert_int_equal(send_all(), 10000);
	assert_true(auto_rate_due(&r) == UINT64_MAX);
}
