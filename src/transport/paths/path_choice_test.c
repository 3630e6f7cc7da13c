/* SPDX-License-Identifier: BSD-2-Clause */
/* Which path a packet takes, and when none has room. */
#include "base/pkt.h"
#include "support/pair_fixture.h"
#include "support/test.h"
#include "transport/paths/path_rtt.h"

/* ---- windows -------------------------------------------------------------------------- */

FIXTURE_TEST(what_is_in_flight_never_exceeds_the_pairs_window, 4, CC_NONE)
{
	uint32_t sent = 0;

	while (send(f, PACKET))
		sent += PACKET;
	assert_int_equal(f->pair->sent_bytes, sent);
	assert_true(sent <= WINDOW && sent + PACKET > WINDOW);
}

/* One alone has its window at once: there is no other to compare it with. */
TEST(a_path_gets_a_flowlet_until_it_is_heard_of)
{
	static const struct {
		uint32_t paths, packets;
	} cases[] = {{4, 4 * 2}, {2, 2 * 2}, {1, WINDOW / 4 / PACKET}};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct fixture f;
		uint32_t n = 0;

		flowlet_packets = 2;
		start(&f, cases[i].paths, CC_SWIFT);
		flowlet_packets = 8;
		while (send(&f, PACKET))
			n++;
		assert_int_equal(n, cases[i].packets);
		ack(&f, 0, 1, start_ns, start_ns + 1000);
		n = 0;
		while (send(&f, PACKET))
			n++;
		assert_true(n);
		for (uint32_t k = 1; k < f.pair->path_count; k++)
			assert_int_equal(f.pair->path[k].sent_bytes, 2 * PACKET);
		end(&f);
	}
}

/* Where its first acknowledgement is far away: as configured, or as the answer to CAPS showed. */
TEST(a_path_of_a_long_pair_gets_its_window_at_once)
{
	static const struct {
		uint64_t configured_ns, answer_ns;
		bool is_long;
	} cases[] = {{25000, 0, false}, {25001, 0, true}, {0, 0, false}, {0, 225000, false}, {0, 225001, true}};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct fixture f;
		uint32_t sent = 0;

		flowlet_packets = 2;
		base_rtt_ns = cases[i].configured_ns;
		start(&f, 4, CC_SWIFT);
		flowlet_packets = 8;
		base_rtt_ns = 0;
		if (cases[i].answer_ns)
			path_rtt_expect(&f.config, f.pair, cases[i].answer_ns);
		while (send(&f, PACKET))
			sent++;
		if (cases[i].is_long)
			assert_in_range(sent, 9, WINDOW / PACKET);
		else
			assert_int_equal(sent, 8);
		end(&f);
	}
}

FIXTURE_TEST(a_packet_larger_than_the_window_goes_alone, 2, CC_NONE)
{
	assert_true(pick(f, 4 * WINDOW) >= 0);
	assert_true(send(f, 4 * WINDOW));
	assert_false(send(f, 1));
}

FIXTURE_TEST(what_is_acknowledged_lost_or_forgotten_makes_room, 1, CC_NONE)
{
	while (send(f, PACKET))
		;
	assert_int_equal(pick(f, PACKET), PAIR_NO_PATH);
	ack(f, 0, 1, start_ns, start_ns + 1000);
	assert_true(send(f, PACKET));
	assert_int_equal(pick(f, PACKET), PAIR_NO_PATH);
	path_lost(f->pair, 0, PACKET, start_ns);
	assert_true(send(f, PACKET));
	assert_int_equal(pick(f, PACKET), PAIR_NO_PATH);
	path_forget(f->pair, 0, PACKET);
	assert_true(send(f, PACKET));
	assert_int_equal(pick(f, PACKET), PAIR_NO_PATH);
}

/* ---- the choice ----------------------------------------------------------------------- */

FIXTURE_TEST(a_run_of_packets_stays_on_one_path, 16, CC_NONE)
{
	for (int run = 0; run < 20; run++) {
		int path = pick(f, PACKET);

		for (int i = 1; i < 8; i++)
			assert_int_equal(pick(f, PACKET), path);
		f->flowlet.left = 0;
	}
}

/* Packets that are left over would be a train of their own. */
TEST(a_flowlet_ends_where_a_train_does)
{
	for (int trains = 0; trains < 2; trains++) {
		for (uint32_t bytes = 256; bytes <= 4096; bytes *= 4) {
			uint32_t train = PKT_TRAIN_BYTES_MAX / bytes;
			struct fixture f;

			start(&f, 16, CC_NONE);
			f.config.train_max = trains ? PKT_TRAIN_MAX : 1;
			for (int i = 0; i < 16; i++)
				f.pair->own[i].cc.cwnd_bytes = 2 * PKT_TRAIN_MAX * 4096 * 4;
			if (train > PKT_TRAIN_MAX)
				train = PKT_TRAIN_MAX;
			pick(&f, bytes);
			if (trains)
				assert_int_equal(f.flowlet.left + 1, 2 * PKT_TRAIN_MAX / train * train);
			else
				assert_int_equal(f.flowlet.left + 1, 64);
			end(&f);
		}
	}
}

/* Where there are trains, and on a path that was heard of, the window alone ends a train early. */
TEST(what_leaves_together_is_not_parted)
{
	for (int trains = 0; trains < 2; trains++) {
		for (int heard = 0; heard < 2; heard++) {
			uint32_t long_run = trains && heard ? 32 : 8, rest;
			struct fixture f;
			int path;

			start(&f, 16, CC_NONE);
			f.config.train_max = trains ? PKT_TRAIN_MAX : 1;
			for (int i = 0; i < 16; i++) {
				f.pair->own[i].cc.cwnd_bytes = 32 * PACKET;
				f.pair->own[i].srtt_ns = heard ? 10000 : 0;
			}
			path = pick(&f, PACKET);
			assert_int_equal(pair_run(f.pair, &f.flowlet, (uint32_t)path, PACKET, PACKET, 64), long_run);
			pair_took(f.pair, &f.flowlet, 5);
			assert_int_equal(pick(&f, PACKET), path);
			assert_int_equal(f.flowlet.left, 2);
			rest = !trains ? 3 : long_run;
			assert_int_equal(pair_run(f.pair, &f.flowlet, (uint32_t)path, PACKET, PACKET, 64), rest);
			assert_int_equal(pair_run(f.pair, &f.flowlet, (uint32_t)path, PACKET, PACKET, 4),
					 trains ? 4 : 3);
			pair_took(f.pair, &f.flowlet, 4);
			assert_int_equal(f.flowlet.left, 0);
			end(&f);
		}
	}
}

/* By the length that packets have, not by the room that was looked for. */
FIXTURE_TEST(a_train_has_as_many_packets_as_fit, 16, CC_NONE)
{
	int path;

	f->config.train_max = PKT_TRAIN_MAX;
	for (int i = 0; i < 16; i++) {
		f->pair->own[i].cc.cwnd_bytes = 200 * PACKET;
		f->pair->own[i].srtt_ns = 10000;
	}
	f->pair->window_bytes = 200 * PACKET;
	path = pick(f, 2000);
	f->flowlet.left = 0;
	assert_int_equal(pair_run(f->pair, &f->flowlet, (uint32_t)path, 2000, 1800, 64), PKT_TRAIN_BYTES_MAX / 1800);
}

FIXTURE_TEST(a_flowlet_goes_on_to_the_end_of_its_train, 16, CC_NONE)
{
	int path;

	f->config.train_max = PKT_TRAIN_MAX;
	for (int i = 0; i < 16; i++) {
		f->pair->own[i].cc.cwnd_bytes = 200 * PACKET;
		f->pair->own[i].srtt_ns = 10000;
	}
	path = pick(f, 100);
	for (int i = 0; i < 20; i++) {
		f->flowlet.left = 0;
		f->flowlet.open = 60;
		assert_int_equal(pick(f, 100), path);
		assert_int_equal(pair_run(f->pair, &f->flowlet, (uint32_t)path, 100, 100, 64), 4);
	}
	/* Another path has no such train. */
	f->pair->own[path].cc.cwnd_bytes = 0;
	f->pair->own[path].sent_bytes = 1;
	assert_int_not_equal(pick(f, 100), path);
	assert_int_equal(f->flowlet.open, 0);
}

/* Unless another one is twice as good. */
FIXTURE_TEST(a_flowlet_goes_along_with_what_has_left, 16, CC_NONE)
{
	for (int i = 0; i < 16; i++)
		f->pair->own[i].srtt_ns = 10000;
	for (int along = 0; along < 16; along++) {
		f->pair->own[along].srtt_ns = 19000;
		f->flowlet.left = 0;
		assert_int_equal(pair_pick(f->pair, &f->config, &f->flowlet, PACKET, along, start_ns), along);
		f->pair->own[along].srtt_ns = 21000;
		f->flowlet.left = 0;
		/* It may be the random one, too. */
		for (int tries = 0; pair_pick(f->pair, &f->config, &f->flowlet, PACKET, along, start_ns) == along;
		     tries++) {
			assert_in_range(tries, 0, 10);
			f->flowlet.left = 0;
		}
		f->pair->own[along].srtt_ns = 10000;
	}
}

FIXTURE_TEST(a_flowlet_ends_where_others_leave_on_another_path, 16, CC_NONE)
{
	for (int i = 0; i < 16; i++)
		f->pair->own[i].srtt_ns = 10000;
	f->flowlet.path = 3;
	f->flowlet.left = 5;
	f->flowlet.open = 2;
	assert_int_equal(pair_pick(f->pair, &f->config, &f->flowlet, PACKET, 7, start_ns), 3);
	f->flowlet.open = 0;
	assert_int_equal(pick(f, PACKET), 3);
	assert_int_equal(pair_pick(f->pair, &f->config, &f->flowlet, PACKET, 3, start_ns), 3);
	assert_int_equal(f->flowlet.left, 2);
	assert_int_equal(pair_pick(f->pair, &f->config, &f->flowlet, PACKET, 7, start_ns), 7);
}

/* What begins behind data that leave on another path is no flowlet: the next turn chooses again. */
FIXTURE_TEST(what_goes_along_is_no_flowlet, 16, CC_NONE)
{
	for (int i = 0; i < 16; i++)
		f->pair->own[i].srtt_ns = 10000;
	f->flowlet.path = 7;
	f->flowlet.left = 5;
	assert_int_equal(pair_pick(f->pair, &f->config, &f->flowlet, PACKET, 9, start_ns), 9);
	assert_int_equal(f->flowlet.left, 0);
	/* Its own goes on. */
	f->flowlet.left = 5;
	assert_int_equal(pair_pick(f->pair, &f->config, &f->flowlet, PACKET, 9, start_ns), 9);
	assert_int_equal(f->flowlet.left, 4);
}

FIXTURE_TEST(with_a_gap_a_flowlet_ends_with_a_silence, 16, CC_NONE)
{
	const uint64_t gap_ns = 50000;
	uint64_t now_ns = start_ns;
	int path, changes = 0;

	f->config.veroce.flowlet_gap_ns = gap_ns;
	path = pair_pick(f->pair, &f->config, &f->flowlet, PACKET, PAIR_NO_PATH, now_ns);
	for (int i = 0; i < 1000; i++) {
		now_ns += gap_ns - 1;
		assert_int_equal(pair_pick(f->pair, &f->config, &f->flowlet, PACKET, PAIR_NO_PATH, now_ns), path);
		pair_took(f->pair, &f->flowlet, pair_run(f->pair, &f->flowlet, (uint32_t)path, PACKET, PACKET, 50));
	}
	for (int i = 0; i < 100; i++) {
		int next;

		now_ns += gap_ns;
		next = pair_pick(f->pair, &f->config, &f->flowlet, PACKET, PAIR_NO_PATH, now_ns);
		changes += next != path;
		path = next;
	}
	assert_in_range(changes, 80, 100);
	/* It waits for its path's window, whatever room others have, and leaves one that is down. */
	f->pair->own[path].cc.cwnd_bytes = PACKET;
	path_sent(&f->config, f->pair, (uint32_t)path, PACKET, now_ns);
	assert_int_equal(pair_pick(f->pair, &f->config, &f->flowlet, PACKET, PAIR_NO_PATH, now_ns), PAIR_NO_PATH);
	f->pair->own[path].down = true;
	f->pair->down_count = 1;
	assert_int_not_equal(pair_pick(f->pair, &f->config, &f->flowlet, PACKET, PAIR_NO_PATH, now_ns), path);
}

FIXTURE_TEST(every_path_is_used, 16, CC_NONE)
{
	uint32_t used = 0;

	for (int i = 0; i < 2000; i++) {
		int path = pick(f, PACKET);

		assert_in_range(path, 0, 15);
		used |= 1u << path;
	}
	assert_int_equal(used, 0xffff);
}

FIXTURE_TEST(the_path_with_less_before_it_is_preferred, 2, CC_NONE)
{
	static const uint64_t rtt_ns[] = {10000, 200000};
	int fast = 0;

	measure(f, rtt_ns);
	for (int i = 0; i < 1000; i++) {
		f->flowlet.left = 0;
		fast += pick(f, PACKET) == 0;
	}
	assert_in_range(fast, 700, 800); /* but for the draws of twice the slow one */
}

FIXTURE_TEST(a_copy_takes_the_fastest_other_path, 4, CC_NONE)
{
	static const uint64_t rtt_ns[] = {50000, 20000, 30000, 90000};

	measure(f, rtt_ns);
	assert_int_equal(pick_again(f, 0), 1);
	assert_int_equal(pick_again(f, 1), 2);
	assert_int_equal(pick_again(f, PATHS_MAX), 1);
}

/* Even if the only path that is known to work is loaded. */
TEST(a_copy_takes_a_path_that_was_heard_of)
{
	static const uint64_t rtt_ns[] = {50000, 20000, 30000, 90000};
	struct fixture f;

	start(&f, 4, CC_NONE);
	path_sent(&f.config, f.pair, 2, PACKET, start_ns);
	ack(&f, 2, 1, start_ns, start_ns + 90000);
	assert_int_equal(pick_again(&f, PATHS_MAX), 2);
	end(&f);

	start(&f, 4, CC_NONE);
	measure(&f, rtt_ns);
	f.pair->own[0].silent = 1;
	f.pair->own[1].silent = 1;
	assert_int_equal(pick_again(&f, PATHS_MAX), 2);
	assert_int_equal(pick_again(&f, 2), 3);
	end(&f);
}

FIXTURE_TEST(a_copy_takes_its_own_path_where_there_is_no_other, 1, CC_NONE)
{
	assert_int_equal(pick_again(f, 0), 0);
	assert_int_equal(pair_pick_any(f->pair, 0), 0);
}

/*
 * The last path that is up is not taken down, however many packets are lost on it. So a copy of one that was lost there
 * tries another; the next one, which was lost on that, comes back.
 */
FIXTURE_TEST(a_copy_leaves_the_last_path_that_is_up_if_it_is_silent, 4, CC_NONE)
{
	uint32_t tried = 0;

	for (uint32_t i = 0; i < 4; i++)
		f->pair->own[i].srtt_ns = 10000;
	for (uint32_t i = 0; i < 4; i++)
		path_silent(f->pair, i, 8, start_ns);
	assert_int_equal(f->pair->down_count, 3);
	assert_false(f->pair->path[3].down);
	for (int i = 0; i < 200; i++) {
		int k = pair_pick_any(f->pair, 3);

		assert_in_range(k, 0, 2);
		tried |= 1u << k;
		assert_int_equal(pair_pick_any(f->pair, (uint8_t)k), 3);
	}
	assert_int_equal(tried, 7);
	/* One that is heard of is no reason to try what is down. */
	f->pair->own[3].silent = 0;
	for (int i = 0; i < 200; i++)
		assert_int_equal(pair_pick_any(f->pair, 3), 3);
}
