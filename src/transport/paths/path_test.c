/* SPDX-License-Identifier: BSD-2-Clause */
/* Loss, silence and probes: what becomes of a path. */
#include "support/pair_fixture.h"
#include "support/test.h"

TEST(random_loss_shrinks_no_window_but_heavy_loss_does)
{
	static const struct {
		uint32_t one_in;
		bool shrinks;
	} rows[] = {{20, false}, {2, true}};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct fixture f;
		uint64_t before, least;

		start(&f, 1, CC_SWIFT);
		before = least = f.pair->path[0].cc.cwnd_bytes;
		for (uint32_t k = 1; k < 400; k++) {
			path_sent(&f.config, f.pair, 0, PACKET, start_ns + k * 1000);
			if (k % rows[i].one_in)
				ack(&f, 0, 1, start_ns + k * 1000, start_ns + k * 1000 + 500);
			else
				path_lost(f.pair, 0, PACKET, start_ns + k * 1000 + 500);
			if (f.pair->path[0].cc.cwnd_bytes < least)
				least = f.pair->path[0].cc.cwnd_bytes;
		}
		assert_int_equal(least < before, rows[i].shrinks);
		end(&f);
	}
}

FIXTURE_TEST(a_path_goes_down_after_eight_packets_lost_in_a_row, 4, CC_NONE)
{
	path_silent(f->pair, 2, 4, start_ns);
	assert_false(f->pair->path[2].down);
	path_silent(f->pair, 2, 4, start_ns);
	assert_true(f->pair->path[2].down);
	assert_int_equal(f->pair->down_count, 1);
	for (int i = 0; i < 500; i++) {
		assert_int_not_equal(pick(f, PACKET), 2);
		assert_int_not_equal(pick_again(f, 1), 2);
		assert_int_not_equal(pair_pick_any(f->pair, 1), 2);
		f->flowlet.left = 0;
	}
}

/* The time until an acknowledgement may be a wait on its way back. */
FIXTURE_TEST(where_the_way_back_does_not_count_stamps_alone_measure, 2, CC_SWIFT)
{
	struct tx_path_news n = {.bytes = PACKET, .packets = 1, .newest_tx_ns = start_ns, .sure = 1};
	struct path_echo echo = {.path = 1, .rtt_ns = 1000, .there_ns = 500};

	f->pair->one_way.wanted = true;
	for (uint32_t i = 0; i < 2; i++) {
		path_sent(&f->config, f->pair, i, PACKET, start_ns);
		path_acked(&f->table, f->pair, i, &n, &echo, start_ns + 1000);
		assert_int_equal(f->pair->path[i].cc.swift.rtt_ns, i ? 1000 : 0);
	}
}

FIXTURE_TEST(an_acknowledgement_between_timeouts_keeps_a_path_up, 4, CC_NONE)
{
	for (int i = 0; i < 10; i++) {
		path_silent(f->pair, 2, 4, start_ns);
		path_sent(&f->config, f->pair, 2, PACKET, start_ns);
		ack(f, 2, 1, start_ns, start_ns + 10);
	}
	assert_false(f->pair->path[2].down);
}

/* A dead path is heard for a round trip more, and what it loses meanwhile left after all that is heard. */
FIXTURE_TEST(a_path_is_heard_as_of_when_the_packet_left, 4, CC_NONE)
{
	struct path_echo none = {.path = PATHS_MAX};
	struct tx_path_news copy = {.bytes = PACKET, .packets = 1, .sure = 1}, unsure = {.bytes = PACKET, .packets = 1};
	const struct path *p = &f->pair->path[2];

	path_sent(&f->config, f->pair, 2, 4 * PACKET, start_ns);
	ack(f, 2, 1, start_ns + 100, start_ns + 900);
	assert_int_equal(p->heard_ns, start_ns + 100);
	/* One that left before it. */
	ack(f, 2, 1, start_ns + 50, start_ns + 950);
	assert_int_equal(p->heard_ns, start_ns + 100);
	/* Which copy came, and over which path, or not: then the acknowledgement counts. */
	path_acked(&f->table, f->pair, 2, &unsure, &none, start_ns + 960);
	assert_int_equal(p->heard_ns, start_ns + 100);
	path_acked(&f->table, f->pair, 2, &copy, &none, start_ns + 970);
	assert_int_equal(p->heard_ns, start_ns + 970);
	path_trimmed(f->pair, 2, PACKET, start_ns + 980);
	assert_int_equal(p->heard_ns, start_ns + 980);
}

TEST(stamps_tell_when_the_packet_left)
{
	struct path_echo echo = {.path = 1, .rtt_ns = 300, .hosts_ns = 50};
	struct tx_path_news copy = {.bytes = PACKET, .packets = 1};
	struct fixture f;

	for (int controlled = 0; controlled < 2; controlled++) {
		start(&f, 4, controlled ? CC_SWIFT : CC_NONE);
		path_sent(&f.config, f.pair, 1, PACKET, start_ns);
		path_acked(&f.table, f.pair, 1, &copy, &echo, start_ns + 900);
		assert_int_equal(f.pair->path[1].heard_ns, start_ns + 900 - 350);
		end(&f);
	}
}

TEST(the_last_path_never_goes_down)
{
	for (uint32_t paths = 1; paths <= 16; paths *= 2) {
		struct fixture f;

		start(&f, paths, CC_NONE);
		for (int i = 0; i < 300; i++) {
			for (uint32_t k = 0; k < paths; k++)
				path_silent(f.pair, k, 4, start_ns);
		}
		assert_int_equal(f.pair->down_count, paths - 1);
		assert_true(pick(&f, PACKET) >= 0);
		end(&f);
	}
}

FIXTURE_TEST(a_path_comes_up_with_the_next_acknowledgement, 2, CC_NONE)
{
	path_sent(&f->config, f->pair, 1, PACKET, start_ns);
	path_silent(f->pair, 1, 4, start_ns);
	path_silent(f->pair, 1, 4, start_ns);
	assert_true(f->pair->path[1].down);
	ack(f, 1, 1, start_ns, start_ns + 10);
	assert_false(f->pair->path[1].down);
	assert_int_equal(f->pair->down_count, 0);
}

FIXTURE_TEST(a_path_comes_up_after_three_answered_probes_in_a_row, 2, CC_NONE)
{
	struct path *p = &f->pair->own[1];

	path_silent(f->pair, 1, 4, start_ns);
	path_silent(f->pair, 1, 4, start_ns);
	path_probe_answered(&f->table, f->pair, 1, start_ns); /* none was sent */
	assert_int_equal(p->good, 0);
	for (int i = 0; i < 3; i++) {
		assert_true(p->down);
		p->probe_sent_ns = start_ns;
		path_probe_answered(&f->table, f->pair, 1, start_ns);
		assert_int_equal(p->probe_sent_ns, 0);
		assert_true(p->probe_ns > start_ns);
	}
	assert_false(p->down);
	assert_int_equal(f->pair->down_count, 0);
}

/* A path that is much longer than the others was taken for dead when nothing was known of it. */
FIXTURE_TEST(an_answered_probe_is_a_round_trip, 2, CC_SWIFT)
{
	path_silent(f->pair, 1, 8, start_ns);
	path_probe_sent(&f->config, f->pair, 1, start_ns);
	path_probe_answered(&f->table, f->pair, 1, start_ns + 5000000);
	assert_int_equal(f->pair->path[1].srtt_ns, 5000000);
	assert_int_equal(f->pair->min_rtt_ns[1], 5000000);
	/* One that is up has better samples. */
	ack(f, 1, 0, 0, start_ns + 5000000);
	path_probe_sent(&f->config, f->pair, 0, start_ns);
	path_probe_answered(&f->table, f->pair, 0, start_ns + 5000000);
	assert_int_equal(f->pair->path[0].srtt_ns, 0);
}

/* Only the newest probe's answer counts, so none may leave before the last one's answer can be there. */
TEST(a_probe_waits_as_long_as_an_answer_may_take)
{
	enum { MS = 1000000 };
	static const uint64_t rtt_ns[] = {50 * MS, 1000};
	uint64_t now_ns = start_ns;
	struct fixture f;
	struct path *p;

	start(&f, 2, CC_NONE);
	p = &f.pair->own[1];
	path_silent(f.pair, 1, 8, start_ns);
	f.pair->rto_ns = 0;
	for (uint64_t i = 0; i < 48; i++) {
		path_probe_sent(&f.config, f.pair, 1, now_ns);
		assert_int_equal(p->probe_ns - now_ns, (20ull * MS) << (i < 32 ? i / 8 : 4));
		now_ns = p->probe_ns;
	}
	end(&f);

	start(&f, 2, CC_NONE);
	p = &f.pair->own[1];
	measure(&f, rtt_ns);
	path_silent(f.pair, 1, 8, start_ns);
	path_probe_sent(&f.config, f.pair, 1, start_ns);
	assert_int_equal(p->probe_ns - start_ns, f.pair->rto_ns);
	assert_true(f.pair->rto_ns > rtt_ns[0]);
	end(&f);
}

FIXTURE_TEST(several_slow_signals_move_new_packets_away_for_a_while, 2, CC_NONE)
{
	static const uint64_t rtt_ns[] = {10000, 10000};
	struct path *p;

	measure(f, rtt_ns);
	p = &f->pair->own[0];
	for (uint64_t i = 0; i < 6; i++) /* too seldom */
		path_slow(f->pair, 0, start_ns + i * 110000);
	assert_int_equal(p->slow_until_ns, 0);
	for (uint64_t i = 0; i < 3; i++)
		path_slow(f->pair, 0, start_ns + 1000000 + i * 30000);
	assert_true(p->slow_until_ns > start_ns + 1000000);
}

FIXTURE_TEST(a_long_path_is_not_a_slow_one, 2, CC_NONE)
{
	static const uint64_t rtt_ns[] = {10000, 300000};

	measure(f, rtt_ns);
	for (int i = 0; i < 10; i++)
		path_slow(f->pair, 1, start_ns + 1000000);
	assert_int_equal(f->pair->path[1].slow_until_ns, 0);
}
