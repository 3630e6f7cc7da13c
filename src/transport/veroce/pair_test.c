/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "transport/veroce/pair.h"

enum { MTU = 1024, PACKET = 1000, WINDOW = 64 * 1024 };

static const uint64_t start_ns = 1000000, rto_min_ns = 500000;
static const uint8_t here[16] = {1}, there[16] = {2};

static int64_t blocks;
static size_t taken_bytes;
static bool dry;

static void *get(void *ctx, size_t bytes)
{
	void *p = dry ? NULL : aligned_alloc(64, (bytes + 63) / 64 * 64);

	if (!p)
		return NULL;
	blocks++;
	taken_bytes += bytes;
	return memset(p, 0, bytes);
}

static void put(void *ctx, void *p, size_t bytes)
{
	if (!p)
		return;
	blocks--;
	taken_bytes -= bytes;
	free(p);
}

struct fixture {
	struct pair_table table;
	struct pair *pair;
	struct flowlet flowlet;
};

static uint16_t flowlet_packets = 8; /* of the next start() */
static uint64_t base_rtt_ns;         /* likewise; 0: not told */

/* In place, as the table's lists must not move. */
static void start(struct fixture *f, uint32_t paths, enum cc_algorithm cc)
{
	static const struct alloc alloc = {get, put, NULL};
	static const uint8_t secret[16] = "pair_test";

	f->flowlet = (struct flowlet){0};
	pair_table_init(&f->table,
			&(struct pair_config){.alloc = &alloc,
					      .cc = cc,
					      .paths = paths,
					      .window_bytes = WINDOW,
					      .rto_min_ns = rto_min_ns,
					      .line_rate_bps = base_rtt_ns ? 10000000000 : 0,
					      .base_rtt_ns = base_rtt_ns,
					      .flowlet_packets = flowlet_packets},
			secret);
	f->pair = pair_get(&f->table, here, there, false, MTU, start_ns);
	assert_non_null(f->pair);
	assert_true(pair_begin(&f->table, f->pair));
}

static void end(struct fixture *f)
{
	pair_put(&f->table, f->pair);
	pair_table_fini(&f->table);
	assert_int_equal(blocks, 0);
}

static int pick(struct fixture *f, uint32_t bytes)
{
	return pair_pick(f->pair, &f->table.config, &f->flowlet, bytes, false, TX_PATHS_MAX,
			 start_ns);
}

static int pick_again(struct fixture *f, uint8_t avoid)
{
	return pair_pick(f->pair, &f->table.config, &f->flowlet, PACKET, true, avoid, start_ns);
}

/* Sends one packet on whichever path is picked; false: none has room. */
static bool send(struct fixture *f, uint32_t bytes)
{
	int path = pick(f, bytes);

	if (path >= 0)
		path_sent(&f->table.config, f->pair, (uint32_t)path, bytes, start_ns);
	return path >= 0;
}

static void ack(struct fixture *f, uint32_t path, uint32_t packets, uint64_t tx_ns, uint64_t now_ns)
{
	struct tx_path_news n = {
		.bytes = packets * PACKET,
		.packets = packets,
		.newest_tx_ns = tx_ns,
		.sure = tx_ns ? packets : 0};
	struct path_echo nothing = {.path = TX_PATHS_MAX};

	path_acked(&f->table, f->pair, path, &n, &nothing, false, now_ns);
}

/* A round trip of that length on each path. */
static void measure(struct fixture *f, const uint64_t *rtt_ns)
{
	for (uint32_t i = 0; i < f->pair->path_count; i++) {
		path_sent(&f->table.config, f->pair, i, PACKET, start_ns);
		ack(f, i, 1, start_ns, start_ns + rtt_ns[i]);
	}
}

/* ---- the table -------------------------------------------------------------------------------------- */

static void two_addresses_are_one_pair_a_direction(void **state)
{
	struct fixture f;
	struct pair *again, *back;

	start(&f, 4, CC_NONE);
	again = pair_get(&f.table, here, there, false, MTU, start_ns);
	back = pair_get(&f.table, there, here, false, MTU, start_ns);
	assert_ptr_equal(again, f.pair);
	assert_ptr_not_equal(back, f.pair);
	assert_int_equal(f.pair->users, 2);
	assert_int_equal(f.pair->path_count, 4);
	pair_put(&f.table, back);
	pair_put(&f.table, again);
	end(&f);
}

static void a_pair_of_one_user_is_nobody_elses(void **state)
{
	struct fixture f;
	struct pair *other;

	start(&f, 4, CC_NONE);
	f.table.config.one_user = true;
	other = pair_get(&f.table, here, there, false, MTU, start_ns);
	assert_non_null(other);
	assert_ptr_not_equal(other, f.pair);
	pair_put(&f.table, other);
	assert_int_equal(f.table.unused, 0);
	end(&f);
}

static void our_own_host_needs_one_path(void **state)
{
	struct fixture f;

	start(&f, 16, CC_SWIFT);
	pair_put(&f.table, f.pair);
	f.pair = pair_get(&f.table, here, here, true, MTU, start_ns);
	assert_int_equal(f.pair->path_count, 1);
	end(&f);
}

static void what_is_known_outlives_the_last_user(void **state)
{
	struct fixture f;

	start(&f, 2, CC_NONE);
	pair_learn(f.pair, PAIR_VEROCE, start_ns);
	pair_put(&f.table, f.pair);
	assert_ptr_equal(pair_get(&f.table, here, there, false, MTU, start_ns), f.pair);
	assert_int_equal(pair_speaks(f.pair, start_ns + 1), PAIR_VEROCE);
	end(&f);
}

static void strangers_without_users_are_forgotten_before_they_are_too_many(void **state)
{
	struct fixture f;

	start(&f, 1, CC_NONE);
	for (uint32_t i = 0; i < 3 * PAIR_UNUSED_MAX; i++) {
		uint8_t stranger[16] = {3, (uint8_t)i, (uint8_t)(i >> 8)};

		pair_put(&f.table, pair_get(&f.table, here, stranger, false, MTU, start_ns));
		assert_true(f.table.unused <= PAIR_UNUSED_MAX);
		assert_true(blocks <= PAIR_UNUSED_MAX + 3); /* the buckets are one, and so are the other's paths */
	}
	/* The one in use is still there. */
	assert_ptr_equal(pair_get(&f.table, here, there, false, MTU, start_ns), f.pair);
	pair_put(&f.table, f.pair);
	end(&f);
}

static void pairs_are_found_however_many_there_are(void **state)
{
	enum { PEERS = 500 };
	struct pair *pairs[PEERS];
	struct fixture f;

	start(&f, 1, CC_NONE);
	for (uint32_t round = 0; round < 2; round++) {
		for (uint32_t i = 0; i < PEERS; i++) {
			uint8_t peer[16] = {3, (uint8_t)i, (uint8_t)(i >> 8)};
			struct pair *p = pair_get(&f.table, here, peer, false, MTU, start_ns);

			assert_non_null(p);
			assert_true(!round || p == pairs[i]);
			pairs[i] = p;
		}
	}
	for (uint32_t i = 0; i < 2 * PEERS; i++)
		pair_put(&f.table, pairs[i / 2]);
	end(&f);
}

/* docs/veroce.md has these: who only receives knows of no path, and of one path there is no more than that. */
static void a_pair_takes_memory_for_the_paths_that_it_sends_on(void **state)
{
	static const struct {
		uint32_t paths;
		bool local;
		size_t received_bytes_max, sent_bytes_max;
	} rows[] = {{1, false, 576, 1024}, {16, false, 576, 7680}, {16, true, 576, 1024}};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		static const uint8_t other[16] = {4};
		struct fixture f;
		struct pair *p;
		size_t before;

		start(&f, rows[i].paths, CC_SWIFT);
		before = taken_bytes;
		p = pair_get(&f.table, here, other, rows[i].local, MTU, start_ns);
		assert_true(taken_bytes - before <= rows[i].received_bytes_max);
		assert_true(pair_begin(&f.table, p));
		assert_true(taken_bytes - before <= rows[i].sent_bytes_max);
		before = taken_bytes;
		assert_true(pair_begin(&f.table, p));
		assert_int_equal(taken_bytes, before);
		pair_put(&f.table, p);
		end(&f);
		assert_int_equal(taken_bytes, 0);
	}
}

/* A peer may say what it likes: nothing was sent that it could be about. */
static void what_comes_before_anything_was_sent_changes_no_path(void **state)
{
	static const uint8_t other[16] = {4};
	struct fixture f;
	struct pair *p;
	struct cc fresh;

	start(&f, 16, CC_DCQCN);
	p = pair_get(&f.table, here, other, false, MTU, start_ns);
	pair_cnp(p, 3, start_ns);
	pair_cnp(p, TX_PATHS_MAX, start_ns);
	pair_expire(p, start_ns);
	path_probe_answered(&f.table, p, 3, start_ns);
	assert_int_equal(p->cc_due_ns, CC_NO_DEADLINE);
	for (uint32_t i = 0; i < 16; i++) {
		assert_int_equal(pair_cc(&f.table, p, i, &fresh)->rate_bps, f.pair->path[i].cc.rate_bps);
		assert_true(pair_pick_any(p, (uint8_t)i) != (int)i);
	}
	assert_true(pair_begin(&f.table, p));
	for (uint32_t i = 0; i < 16; i++) {
		assert_ptr_equal(pair_cc(&f.table, p, i, &fresh), &p->path[i].cc);
		assert_int_equal(p->path[i].cc.rate_bps, f.pair->path[i].cc.rate_bps);
		assert_int_equal(p->path[i].cc.cwnd_bytes, f.pair->path[i].cc.cwnd_bytes);
	}
	pair_put(&f.table, p);
	end(&f);
}

static void without_memory_a_pair_begins_later(void **state)
{
	static const uint8_t other[16] = {4};
	struct fixture f;
	struct pair *p;

	start(&f, 16, CC_SWIFT);
	p = pair_get(&f.table, here, other, false, MTU, start_ns);
	dry = true;
	assert_false(pair_begin(&f.table, p));
	dry = false;
	pair_cnp(p, 0, start_ns);
	assert_true(pair_begin(&f.table, p));
	pair_put(&f.table, p);
	end(&f);
}

static void what_a_peer_speaks_is_believed_for_a_while(void **state)
{
	static const uint64_t minute_ns = 60000000000ull;
	struct fixture f;

	start(&f, 1, CC_NONE);
	assert_int_equal(pair_speaks(f.pair, start_ns), PAIR_UNKNOWN);
	pair_learn(f.pair, PAIR_ROCEV2, start_ns);
	assert_int_equal(pair_speaks(f.pair, start_ns + minute_ns - 1), PAIR_ROCEV2);
	assert_int_equal(pair_speaks(f.pair, start_ns + minute_ns), PAIR_UNKNOWN);
	end(&f);
}

/* ---- windows ------------------------------------------------------------------------------------------ */

static void what_is_in_flight_never_exceeds_the_pairs_window(void **state)
{
	struct fixture f;
	uint32_t sent = 0;

	start(&f, 4, CC_NONE);
	while (send(&f, PACKET))
		sent += PACKET;
	assert_int_equal(f.pair->sent_bytes, sent);
	assert_true(sent <= WINDOW && sent + PACKET > WINDOW);
	end(&f);
}

/* One alone has its window at once: there is no other to compare it with. */
static void a_path_gets_a_flowlet_until_it_is_heard_of(void **state)
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

static void a_packet_larger_than_the_window_goes_alone(void **state)
{
	struct fixture f;

	start(&f, 2, CC_NONE);
	assert_true(pick(&f, 4 * WINDOW) >= 0);
	assert_true(send(&f, 4 * WINDOW));
	assert_false(send(&f, 1));
	end(&f);
}

static void what_is_acknowledged_lost_or_forgotten_makes_room(void **state)
{
	struct fixture f;

	start(&f, 1, CC_NONE);
	while (send(&f, PACKET))
		;
	assert_int_equal(pick(&f, PACKET), PAIR_NO_PATH);
	ack(&f, 0, 1, start_ns, start_ns + 1000);
	assert_true(send(&f, PACKET));
	assert_int_equal(pick(&f, PACKET), PAIR_NO_PATH);
	path_lost(f.pair, 0, PACKET, start_ns);
	assert_true(send(&f, PACKET));
	assert_int_equal(pick(&f, PACKET), PAIR_NO_PATH);
	path_forget(f.pair, 0, PACKET);
	assert_true(send(&f, PACKET));
	assert_int_equal(pick(&f, PACKET), PAIR_NO_PATH);
	end(&f);
}

static void random_loss_shrinks_no_window_but_heavy_loss_does(void **state)
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
			path_sent(&f.table.config, f.pair, 0, PACKET, start_ns + k * 1000);
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

/* ---- the choice ---------------------------------------------------------------------------------------- */

static void a_run_of_packets_stays_on_one_path(void **state)
{
	struct fixture f;

	start(&f, 16, CC_NONE);
	for (int run = 0; run < 20; run++) {
		int path = pick(&f, PACKET);

		for (int i = 1; i < 8; i++)
			assert_int_equal(pick(&f, PACKET), path);
		f.flowlet.left = 0;
	}
	end(&f);
}

static void with_a_gap_a_flowlet_ends_with_a_silence(void **state)
{
	const uint64_t gap_ns = 50000;
	struct fixture f;
	uint64_t now_ns = start_ns;
	int path, changes = 0;

	start(&f, 16, CC_NONE);
	f.table.config.flowlet_gap_ns = gap_ns;
	path = pair_pick(f.pair, &f.table.config, &f.flowlet, PACKET, false, TX_PATHS_MAX, now_ns);
	for (int i = 0; i < 1000; i++) {
		now_ns += gap_ns - 1;
		assert_int_equal(pair_pick(f.pair, &f.table.config, &f.flowlet, PACKET, false, TX_PATHS_MAX,
					   now_ns), path);
	}
	for (int i = 0; i < 100; i++) {
		int next;

		now_ns += gap_ns;
		next = pair_pick(f.pair, &f.table.config, &f.flowlet, PACKET, false, TX_PATHS_MAX, now_ns);
		changes += next != path;
		path = next;
	}
	assert_in_range(changes, 80, 100);
	/* It waits for its path's window, whatever room others have, and leaves one that is down. */
	f.pair->path[path].cc.cwnd_bytes = PACKET;
	path_sent(&f.table.config, f.pair, (uint32_t)path, PACKET, now_ns);
	assert_int_equal(pair_pick(f.pair, &f.table.config, &f.flowlet, PACKET, false, TX_PATHS_MAX, now_ns),
			 PAIR_NO_PATH);
	f.pair->path[path].down = true;
	f.pair->down_count = 1;
	assert_int_not_equal(pair_pick(f.pair, &f.table.config, &f.flowlet, PACKET, false, TX_PATHS_MAX, now_ns),
			     path);
	end(&f);
}

static void every_path_is_used(void **state)
{
	struct fixture f;
	uint32_t used = 0;

	start(&f, 16, CC_NONE);
	for (int i = 0; i < 2000; i++) {
		int path = pick(&f, PACKET);

		assert_in_range(path, 0, 15);
		used |= 1u << path;
	}
	assert_int_equal(used, 0xffff);
	end(&f);
}

static void the_path_with_less_before_it_is_preferred(void **state)
{
	static const uint64_t rtt_ns[] = {10000, 200000};
	struct fixture f;
	int fast = 0;

	start(&f, 2, CC_NONE);
	measure(&f, rtt_ns);
	for (int i = 0; i < 1000; i++) {
		f.flowlet.left = 0;
		fast += pick(&f, PACKET) == 0;
	}
	assert_in_range(fast, 700, 800); /* but for the draws of twice the slow one */
	end(&f);
}

static void a_copy_takes_the_fastest_other_path(void **state)
{
	static const uint64_t rtt_ns[] = {50000, 20000, 30000, 90000};
	struct fixture f;

	start(&f, 4, CC_NONE);
	measure(&f, rtt_ns);
	assert_int_equal(pick_again(&f, 0), 1);
	assert_int_equal(pick_again(&f, 1), 2);
	assert_int_equal(pick_again(&f, TX_PATHS_MAX), 1);
	end(&f);
}

static void a_copy_takes_its_own_path_where_there_is_no_other(void **state)
{
	struct fixture f;

	start(&f, 1, CC_NONE);
	assert_int_equal(pick_again(&f, 0), 0);
	assert_int_equal(pair_pick_any(f.pair, 0), 0);
	end(&f);
}

/* ---- round trips ----------------------------------------------------------------------------- */

static void round_trips_are_smoothed_and_bound_the_timeout_from_below(void **state)
{
	static const uint64_t rtt_ns[] = {1000000, 8000};
	struct fixture f;

	start(&f, 2, CC_NONE);
	assert_int_equal(f.pair->rto_ns, 8 * rto_min_ns); /* before anything is known */
	measure(&f, rtt_ns);
	assert_int_equal(f.pair->path[0].srtt_ns, 1000000);
	assert_int_equal(f.pair->path[0].rttvar_ns, 500000);
	assert_int_equal(path_rto_ns(&f.table.config, &f.pair->path[0]), 3000000);
	assert_int_equal(path_rto_ns(&f.table.config, &f.pair->path[1]), rto_min_ns);
	assert_int_equal(f.pair->rto_ns, 3000000); /* of the slowest that is up */
	assert_int_equal(f.pair->min_rtt_ns[0], 1000000);
	path_sent(&f.table.config, f.pair, 0, PACKET, start_ns);
	ack(&f, 0, 1, start_ns, start_ns + 200000);
	assert_int_equal(f.pair->path[0].srtt_ns, 900000);
	assert_int_equal(f.pair->min_rtt_ns[0], 200000);
	end(&f);
}

static void copies_teach_nothing_of_the_path(void **state)
{
	struct fixture f;

	start(&f, 1, CC_NONE);
	path_sent(&f.table.config, f.pair, 0, PACKET, start_ns);
	ack(&f, 0, 1, 0, start_ns + 5);
	assert_int_equal(f.pair->path[0].srtt_ns, 0);
	assert_true(f.pair->min_rtt_ns[0] == UINT64_MAX);
	assert_int_equal(f.pair->path[0].heard_ns, 0); /* the answer may be to the copy before */
	end(&f);
}

static void a_path_that_reorders_is_given_more_time_for_a_while(void **state)
{
	static const uint64_t rtt_ns[] = {80000};
	struct fixture f;
	struct path *p;

	start(&f, 1, CC_NONE);
	measure(&f, rtt_ns);
	p = &f.pair->path[0];
	assert_int_equal(p->reo_ns, 10000);
	path_was_late(f.pair, 0, 1, start_ns);
	assert_int_equal(p->reo_ns, 20000);
	path_was_late(f.pair, 0, 50000, start_ns);
	assert_int_equal(p->reo_ns, 50000);
	path_was_late(f.pair, 0, 50000, start_ns);
	assert_int_equal(p->reo_ns, 80000); /* no more than a round trip */
	path_sent(&f.table.config, f.pair, 0, PACKET, start_ns + 2000000000);
	ack(&f, 0, 1, 0, start_ns + 2000000000);
	assert_int_equal(p->reo_ns, 10000);
	assert_int_equal(p->reo_until_ns, 0);
	end(&f);
}

/* ---- paths that die -------------------------------------------------------------------------- */

static void a_path_goes_down_after_eight_packets_lost_in_a_row(void **state)
{
	struct fixture f;

	start(&f, 4, CC_NONE);
	path_silent(f.pair, 2, 4, start_ns);
	assert_false(f.pair->path[2].down);
	path_silent(f.pair, 2, 4, start_ns);
	assert_true(f.pair->path[2].down);
	assert_int_equal(f.pair->down_count, 1);
	for (int i = 0; i < 500; i++) {
		assert_int_not_equal(pick(&f, PACKET), 2);
		assert_int_not_equal(pick_again(&f, 1), 2);
		assert_int_not_equal(pair_pick_any(f.pair, 1), 2);
		f.flowlet.left = 0;
	}
	end(&f);
}

static void an_acknowledgement_between_timeouts_keeps_a_path_up(void **state)
{
	struct fixture f;

	start(&f, 4, CC_NONE);
	for (int i = 0; i < 10; i++) {
		path_silent(f.pair, 2, 4, start_ns);
		path_sent(&f.table.config, f.pair, 2, PACKET, start_ns);
		ack(&f, 2, 1, start_ns, start_ns + 10);
	}
	assert_false(f.pair->path[2].down);
	end(&f);
}

static void the_last_path_never_goes_down(void **state)
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

static void a_path_comes_up_with_the_next_acknowledgement(void **state)
{
	struct fixture f;

	start(&f, 2, CC_NONE);
	path_sent(&f.table.config, f.pair, 1, PACKET, start_ns);
	path_silent(f.pair, 1, 4, start_ns);
	path_silent(f.pair, 1, 4, start_ns);
	assert_true(f.pair->path[1].down);
	ack(&f, 1, 1, start_ns, start_ns + 10);
	assert_false(f.pair->path[1].down);
	assert_int_equal(f.pair->down_count, 0);
	end(&f);
}

static void a_path_comes_up_after_three_answered_probes_in_a_row(void **state)
{
	struct fixture f;
	struct path *p;

	start(&f, 2, CC_NONE);
	p = &f.pair->path[1];
	path_silent(f.pair, 1, 4, start_ns);
	path_silent(f.pair, 1, 4, start_ns);
	path_probe_answered(&f.table, f.pair, 1, start_ns); /* none was sent */
	assert_int_equal(p->good, 0);
	for (int i = 0; i < 3; i++) {
		assert_true(p->down);
		p->probe_sent_ns = start_ns;
		path_probe_answered(&f.table, f.pair, 1, start_ns);
		assert_int_equal(p->probe_sent_ns, 0);
		assert_true(p->probe_ns > start_ns);
	}
	assert_false(p->down);
	assert_int_equal(f.pair->down_count, 0);
	end(&f);
}

static void several_slow_signals_move_new_packets_away_for_a_while(void **state)
{
	static const uint64_t rtt_ns[] = {10000, 10000};
	struct fixture f;
	struct path *p;

	start(&f, 2, CC_NONE);
	measure(&f, rtt_ns);
	p = &f.pair->path[0];
	for (uint64_t i = 0; i < 6; i++) /* too seldom */
		path_slow(f.pair, 0, start_ns + i * 110000);
	assert_int_equal(p->slow_until_ns, 0);
	for (uint64_t i = 0; i < 3; i++)
		path_slow(f.pair, 0, start_ns + 1000000 + i * 30000);
	assert_true(p->slow_until_ns > start_ns + 1000000);
	end(&f);
}

static void a_long_path_is_not_a_slow_one(void **state)
{
	static const uint64_t rtt_ns[] = {10000, 300000};
	struct fixture f;

	start(&f, 2, CC_NONE);
	measure(&f, rtt_ns);
	for (int i = 0; i < 10; i++)
		path_slow(f.pair, 1, start_ns + 1000000);
	assert_int_equal(f.pair->path[1].slow_until_ns, 0);
	end(&f);
}

/* ---- trimming ---------------------------------------------------------------------------------------- */

/* So many packets leave on each path and every one is trimmed. */
static void trim_all(struct fixture *f, uint32_t packets)
{
	for (uint32_t i = 0; i < f->pair->path_count; i++) {
		for (uint32_t k = 0; k < packets; k++)
			path_sent(&f->table.config, f->pair, i, PACKET, start_ns);
	}
	for (uint32_t i = 0; i < f->pair->path_count; i++) {
		for (uint32_t k = 0; k < packets; k++) {
			path_trimmed(f->pair, i, PACKET, start_ns);
			path_lost(f->pair, i, PACKET, start_ns);
		}
	}
}

static void a_trim_cuts_its_path_and_no_other(void **state)
{
	struct fixture f;
	uint64_t before, window;

	start(&f, 2, CC_SWIFT);
	before = f.pair->path[1].cc.cwnd_bytes;
	window = f.pair->window_bytes;
	for (uint32_t i = 0; i < 2; i++)
		path_sent(&f.table.config, f.pair, i, PACKET, start_ns);
	path_trimmed(f.pair, 1, PACKET, start_ns);
	assert_true(f.pair->path[1].cc.cwnd_bytes < before);
	assert_int_equal(f.pair->path[0].cc.cwnd_bytes, before);
	assert_int_equal(f.pair->window_bytes, window);
	end(&f);
}

/* The least windows of all paths may be more than there is room for. */
static void trims_that_no_path_can_answer_shrink_the_window_of_all(void **state)
{
	uint64_t now_ns = start_ns + 1000000, window;
	uint32_t held = 0;
	struct fixture f;

	start(&f, 16, CC_SWIFT);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(f.pair->window_bytes, f.pair->buffer_bytes);
		trim_all(&f, 8);
	}
	while (held < 1000 && send(&f, PACKET))
		held++;
	assert_int_equal(held, 1);
	/* ... which opens again while nothing more is trimmed. */
	window = f.pair->window_bytes;
	for (int i = 0; i < 200; i++) {
		path_sent(&f.table.config, f.pair, 0, PACKET, now_ns);
		ack(&f, 0, 1, now_ns, now_ns + 1000);
		now_ns += 1000;
	}
	assert_true(window < PACKET && f.pair->window_bytes == f.pair->buffer_bytes);
	end(&f);
}

static void a_path_whose_packets_are_trimmed_is_not_dead(void **state)
{
	struct fixture f;

	start(&f, 2, CC_SWIFT);
	path_silent(f.pair, 0, 7, start_ns);
	path_trimmed(f.pair, 0, PACKET, start_ns);
	path_silent(f.pair, 0, 7, start_ns);
	assert_false(f.pair->path[0].down);
	end(&f);
}

/* ---- paths of different length --------------------------------------------------------------------- */

/* So many round trips of that length, each of them a window. Returns what becomes of the window, per cent. */
static uint64_t round_trips(struct fixture *f, uint32_t path, uint64_t rtt_ns, int count, uint64_t *now_ns)
{
	uint64_t before = f->pair->path[path].cc.cwnd_bytes;

	for (int i = 0; i < count; i++) {
		uint32_t packets = (uint32_t)(f->pair->path[path].cc.cwnd_bytes / PACKET);
		uint64_t tx_ns = *now_ns;

		for (uint32_t k = 0; k < packets; k++)
			path_sent(&f->table.config, f->pair, path, PACKET, tx_ns);
		*now_ns += 2 * rtt_ns; /* the smoothed one lags behind */
		ack(f, path, packets, *now_ns - rtt_ns, *now_ns);
	}
	return f->pair->path[path].cc.cwnd_bytes * 100 / before;
}

static void start_told(struct fixture *f)
{
	base_rtt_ns = 100000;
	start(f, 2, CC_SWIFT);
	base_rtt_ns = 0;
}

static void what_a_path_is_longer_than_the_shortest_is_no_queue(void **state)
{
	uint64_t now_ns = start_ns;
	struct fixture f;

	start_told(&f);
	round_trips(&f, 0, 100000, 4, &now_ns);
	assert_true(round_trips(&f, 1, 120000, 20, &now_ns) >= 100);
	/* ... and a queue on it is one. */
	assert_true(round_trips(&f, 1, 160000, 4, &now_ns) < 80);
	end(&f);
}

static void what_a_path_is_longer_by_more_than_a_fourth_is_a_queue(void **state)
{
	uint64_t now_ns = start_ns;
	struct fixture f;

	start_told(&f);
	round_trips(&f, 0, 100000, 4, &now_ns);
	assert_true(round_trips(&f, 1, 160000, 20, &now_ns) < 50);
	end(&f);
}

static void a_queue_in_which_all_paths_stand_is_one(void **state)
{
	uint64_t now_ns = start_ns;
	struct fixture f;

	start_told(&f);
	for (int i = 0; i < 20; i++) {
		round_trips(&f, 0, 120000, 1, &now_ns);
		round_trips(&f, 1, 120000, 1, &now_ns);
	}
	assert_true(f.pair->path[0].cc.cwnd_bytes < 30000 && f.pair->path[1].cc.cwnd_bytes < 30000);
	end(&f);
}

static void a_route_that_became_longer_is_believed_after_a_while(void **state)
{
	uint64_t now_ns = start_ns;
	struct fixture f;

	start_told(&f);
	round_trips(&f, 0, 100000, 4, &now_ns);
	round_trips(&f, 1, 100000, 4, &now_ns);
	assert_true(round_trips(&f, 1, 120000, 10, &now_ns) < 100);
	for (int i = 0; i < 3; i++) {
		now_ns += 5000000000;
		round_trips(&f, 0, 100000, 2, &now_ns);
		round_trips(&f, 1, 120000, 2, &now_ns);
	}
	assert_true(round_trips(&f, 1, 120000, 10, &now_ns) >= 100);
	end(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(two_addresses_are_one_pair_a_direction),
		cmocka_unit_test(a_pair_of_one_user_is_nobody_elses),
		cmocka_unit_test(our_own_host_needs_one_path),
		cmocka_unit_test(what_is_known_outlives_the_last_user),
		cmocka_unit_test(strangers_without_users_are_forgotten_before_they_are_too_many),
		cmocka_unit_test(pairs_are_found_however_many_there_are),
		cmocka_unit_test(a_pair_takes_memory_for_the_paths_that_it_sends_on),
		cmocka_unit_test(what_comes_before_anything_was_sent_changes_no_path),
		cmocka_unit_test(without_memory_a_pair_begins_later),
		cmocka_unit_test(what_a_peer_speaks_is_believed_for_a_while),
		cmocka_unit_test(what_is_in_flight_never_exceeds_the_pairs_window),
		cmocka_unit_test(a_path_gets_a_flowlet_until_it_is_heard_of),
		cmocka_unit_test(a_packet_larger_than_the_window_goes_alone),
		cmocka_unit_test(what_is_acknowledged_lost_or_forgotten_makes_room),
		cmocka_unit_test(random_loss_shrinks_no_window_but_heavy_loss_does),
		cmocka_unit_test(a_run_of_packets_stays_on_one_path),
		cmocka_unit_test(with_a_gap_a_flowlet_ends_with_a_silence),
		cmocka_unit_test(every_path_is_used),
		cmocka_unit_test(the_path_with_less_before_it_is_preferred),
		cmocka_unit_test(a_copy_takes_the_fastest_other_path),
		cmocka_unit_test(a_copy_takes_its_own_path_where_there_is_no_other),
		cmocka_unit_test(round_trips_are_smoothed_and_bound_the_timeout_from_below),
		cmocka_unit_test(copies_teach_nothing_of_the_path),
		cmocka_unit_test(a_path_that_reorders_is_given_more_time_for_a_while),
		cmocka_unit_test(a_path_goes_down_after_eight_packets_lost_in_a_row),
		cmocka_unit_test(an_acknowledgement_between_timeouts_keeps_a_path_up),
		cmocka_unit_test(the_last_path_never_goes_down),
		cmocka_unit_test(a_path_comes_up_with_the_next_acknowledgement),
		cmocka_unit_test(a_path_comes_up_after_three_answered_probes_in_a_row),
		cmocka_unit_test(several_slow_signals_move_new_packets_away_for_a_while),
		cmocka_unit_test(a_long_path_is_not_a_slow_one),
		cmocka_unit_test(a_trim_cuts_its_path_and_no_other),
		cmocka_unit_test(trims_that_no_path_can_answer_shrink_the_window_of_all),
		cmocka_unit_test(a_path_whose_packets_are_trimmed_is_not_dead),
		cmocka_unit_test(what_a_path_is_longer_than_the_shortest_is_no_queue),
		cmocka_unit_test(what_a_path_is_longer_by_more_than_a_fourth_is_a_queue),
		cmocka_unit_test(a_queue_in_which_all_paths_stand_is_one),
		cmocka_unit_test(a_route_that_became_longer_is_believed_after_a_while),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
