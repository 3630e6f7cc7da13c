/* SPDX-License-Identifier: BSD-2-Clause */
/* What round trips teach of paths. */
#include "base/prng.h"
#include "support/pair_fixture.h"
#include "support/test.h"
#include "transport/paths/path_rtt.h"

/* ---- round trips ---------------------------------------------------------------------- */

FIXTURE_TEST(round_trips_are_smoothed_and_bound_the_timeout_from_below, 2, CC_NONE)
{
	static const uint64_t rtt_ns[] = {1000000, 8000};

	assert_int_equal(f->pair->rto_ns, 8 * rto_ns_min); /* before anything is known */
	measure(f, rtt_ns);
	assert_int_equal(f->pair->path[0].srtt_ns, 1000000);
	assert_int_equal(f->pair->path[0].rttvar_ns, 500000);
	assert_int_equal(path_rto_ns(&f->config, &f->pair->path[0]), 3000000);
	assert_int_equal(path_rto_ns(&f->config, &f->pair->path[1]), rto_ns_min);
	assert_int_equal(f->pair->rto_ns, 3000000); /* of the slowest that is up */
	assert_int_equal(f->pair->min_rtt_ns[0], 1000000);
	path_sent(&f->config, f->pair, 0, PACKET, start_ns);
	ack(f, 0, 1, start_ns, start_ns + 200000);
	assert_int_equal(f->pair->path[0].srtt_ns, 900000);
	assert_int_equal(f->pair->min_rtt_ns[0], 200000);
}

/* It is no sample: packets with data may take longer. */
FIXTURE_TEST(an_answer_without_data_shortens_the_first_timeout_alone, 1, CC_NONE)
{
	static const uint64_t rtt_ns[] = {1000000};

	path_rtt_expect(&f->config, f->pair, 8 * rto_ns_min);
	assert_int_equal(f->pair->rto_ns, 8 * rto_ns_min); /* a longer one is no news */
	path_rtt_expect(&f->config, f->pair, rto_ns_min);
	assert_int_equal(f->pair->rto_ns, 3 * rto_ns_min);
	path_rtt_expect(&f->config, f->pair, 1);
	assert_int_equal(f->pair->rto_ns, rto_ns_min);
	assert_int_equal(f->pair->srtt_ns, 0);
	assert_int_equal(f->pair->path[0].srtt_ns, 0);
	measure(f, rtt_ns);
	assert_int_equal(f->pair->rto_ns, 3000000);
	path_rtt_expect(&f->config, f->pair, 1);
	assert_int_equal(f->pair->rto_ns, 3000000); /* measured since */
}

/* Round trips grow and shrink at random, and paths go down and come back. */
FIXTURE_TEST(the_pairs_timeout_is_the_longest_of_those_that_are_up, 4, CC_NONE)
{
	enum { COUNT = 4, SAMPLES = 20000 };
	struct prng prng;

	prng_init(&prng, 5);
	for (int i = 0; i < SAMPLES; i++) {
		uint32_t k = (uint32_t)prng_below(&prng, COUNT);
		uint64_t rtt_ns = 1 + prng_below(&prng, prng_below(&prng, 4) ? 2000 : 20000000), longest = 0;

		if (f->pair->path[k].down) {
			path_probe_sent(&f->config, f->pair, k, start_ns);
			path_probe_answered(&f->table, f->pair, k, start_ns);
			continue;
		}
		if (!prng_below(&prng, 60))
			path_silent(f->pair, k, UINT8_MAX, start_ns);
		path_rtt_sample(&f->config, f->pair, k, rtt_ns, rtt_ns);
		for (uint32_t p = 0; p < COUNT; p++) {
			uint64_t rto_ns = path_rto_ns(&f->config, &f->pair->path[p]);

			if (!f->pair->path[p].down && rto_ns > longest)
				longest = rto_ns;
		}
		assert_int_equal(f->pair->rto_ns, longest);
	}
}

/* By the algorithm that the pair has, whatever veroce.cc says: cc.params goes before it. */
TEST(a_controlled_pair_has_room_for_what_the_network_holds)
{
	static const struct {
		enum cc_algorithm cc;
		enum veroce_cc unused;
		bool fixed;
		uint64_t factor;
	} rows[] = {
		{CC_SWIFT, VEROCE_CC_NONE, false, 6},
		{CC_DCTCP, VEROCE_CC_NONE, false, 6},
		{CC_SWIFT, VEROCE_CC_NONE, true, 1},
		{CC_NONE, VEROCE_CC_SWIFT, false, 1},
	};
	static const uint64_t rtt_ns[] = {1000000};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct fixture f;

		start(&f, 1, rows[i].cc);
		f.config.veroce.cc = rows[i].unused;
		f.config.window_fixed = rows[i].fixed;
		measure(&f, rtt_ns);
		assert_int_equal(f.pair->buffer_bytes, rows[i].factor * WINDOW);
		assert_int_equal(f.pair->window_bytes, f.pair->buffer_bytes);
		end(&f);
	}
}

/* What packets wait at hosts is in the timeout, and neither in what the network holds nor in its queues. */
TEST(hosts_are_no_part_of_the_network)
{
	struct path_echo echo = {.rtt_ns = 100000, .hosts_ns = 900000};
	struct tx_path_news news = {.bytes = PACKET, .packets = 1};
	struct fixture f;
	uint32_t cwnd;

	base_rtt_ns = 100000;
	start(&f, 1, CC_SWIFT);
	base_rtt_ns = 0;
	cwnd = (uint32_t)f.pair->path[0].cc.cwnd_bytes;
	for (uint64_t i = 0; i < 10; i++) {
		path_sent(&f.config, f.pair, 0, PACKET, start_ns + i * 10000000);
		path_acked(&f.table, f.pair, 0, &news, &echo, start_ns + i * 10000000 + 1000000);
	}
	assert_int_equal(f.pair->min_rtt_ns[0], 100000);
	assert_int_equal(f.pair->path[0].srtt_ns, 1000000);
	assert_int_equal(f.pair->buffer_bytes, WINDOW);
	/* Of that configuration the hosts' target is 100 us. */
	assert_true(f.pair->path[0].cc.cwnd_bytes < cwnd);
	end(&f);
}

/* The time at the hosts is that of the sample which was the shortest in the network. */
TEST(a_round_trip_is_of_one_packet)
{
	static const struct {
		uint64_t network_ns, hosts_ns;
	} samples[] = {{500000, 1000}, {200000, 40000}, {300000, 2000}};
	uint64_t network_ns, hosts_ns;
	struct path p = {.cc_round_ns = start_ns + 3};

	for (uint64_t i = 0; i < 3; i++) {
		network_ns = samples[i].network_ns;
		hosts_ns = samples[i].hosts_ns;
		assert_false(path_rtt_round(&p, false, &network_ns, &hosts_ns, start_ns + i));
	}
	network_ns = 400000;
	hosts_ns = 1;
	assert_true(path_rtt_round(&p, false, &network_ns, &hosts_ns, start_ns + 3));
	assert_int_equal(network_ns, 200000);
	assert_int_equal(hosts_ns, 40000);
	/* A process that was away for a second. */
	network_ns = 7000;
	hosts_ns = 1000000000;
	assert_true(path_rtt_round(&p, false, &network_ns, &hosts_ns, start_ns + 4));
	assert_int_equal(network_ns, 7000);
	assert_int_equal(hosts_ns, UINT16_MAX * 1000ull);
}

/*
 * A round trip, of one packet; 0: no stamps came. The pair has no configured base RTT, and the target is the queue that
 * the product allows, 4 ms.
 */
static void round_trip(struct fixture *f, uint64_t *now_ns, uint64_t network_ns, uint64_t hosts_ns)
{
	struct path_echo echo = {.path = hosts_ns ? 0 : PATHS_MAX, .rtt_ns = network_ns, .hosts_ns = hosts_ns};
	struct tx_path_news news = {.packets = 1, .newest_tx_ns = *now_ns};

	news.bytes = (uint32_t)f->pair->path[0].cc.cwnd_bytes;
	path_sent(&f->config, f->pair, 0, news.bytes, *now_ns);
	*now_ns += network_ns + hosts_ns;
	path_acked(&f->table, f->pair, 0, &news, &echo, *now_ns);
}

static void start_with_target(struct fixture *f)
{
	start(f, 1, CC_SWIFT);
	f->config.cc.target_ns = 4000000;
	pair_put(&f->table, f->pair);
	pair_table_fini(&f->table);
	pair_table_init(&f->table, &f->config, f->table.alloc, here);
	f->pair = pair_get(&f->table, here, there, false, MTU, start_ns);
	assert_true(pair_begin(&f->table, f->pair));
}

/*
 * Both hosts are busy. A packet waits 5 to 45 ms in sockets; in one round trip of three a thread loses its processor
 * between a stamp and the call that sends, so that the wait looks like the network's, and in one of five no stamps
 * come.
 */
TEST(a_wait_for_a_processor_is_no_queue)
{
	struct fixture f;
	struct prng prng;
	uint64_t now_ns = start_ns, cwnd;

	start_with_target(&f);
	prng_init(&prng, 9);
	round_trip(&f, &now_ns, 100000, 20000000);
	cwnd = f.pair->path[0].cc.cwnd_bytes;
	for (int i = 0; i < 2000; i++) {
		uint64_t waits_ns = 5000000 + prng_below(&prng, 40000000);

		if (!prng_below(&prng, 5))
			round_trip(&f, &now_ns, 100000 + waits_ns, 0);
		else
			round_trip(&f, &now_ns, 100000 + (prng_below(&prng, 3) ? 0 : waits_ns), waits_ns);
		assert_true(f.pair->path[0].cc.cwnd_bytes >= cwnd / 2);
	}
	assert_true(f.pair->path[0].cc.cwnd_bytes > 4 * cwnd);
	end(&f);
}

/* A queue delays every packet, also where hosts wait: it is answered after two stretches, and what began to grow does
 * not meanwhile. */
TEST(a_queue_is_found_behind_waits_for_processors)
{
	struct fixture f;
	uint64_t now_ns = start_ns, cwnd;

	start_with_target(&f);
	for (int i = 0; i < 40; i++)
		round_trip(&f, &now_ns, 100000, 20000000);
	cwnd = f.pair->path[0].cc.cwnd_bytes;
	for (int i = 0; i < 31; i++) {
		round_trip(&f, &now_ns, 40000000, 20000000);
		assert_true(f.pair->path[0].cc.cwnd_bytes == cwnd);
	}
	for (int i = 0; i < 80; i++)
		round_trip(&f, &now_ns, 40000000, 20000000);
	assert_true(f.pair->path[0].cc.cwnd_bytes < cwnd / 8);
	/* A second after the last wait a single round trip counts again. */
	now_ns += 1000000001;
	cwnd = f.pair->path[0].cc.cwnd_bytes;
	round_trip(&f, &now_ns, 100000, 1000);
	assert_true(f.pair->path[0].cc.cwnd_bytes > cwnd);
	end(&f);
}

FIXTURE_TEST(copies_teach_nothing_of_the_path, 1, CC_NONE)
{
	path_sent(&f->config, f->pair, 0, PACKET, start_ns);
	ack(f, 0, 1, 0, start_ns + 5);
	assert_int_equal(f->pair->path[0].srtt_ns, 0);
	assert_true(f->pair->min_rtt_ns[0] == UINT64_MAX);
	assert_int_equal(f->pair->path[0].heard_ns, 0); /* the answer may be to the copy before */
}

FIXTURE_TEST(a_path_that_reorders_is_given_more_time_for_a_while, 1, CC_NONE)
{
	static const uint64_t rtt_ns[] = {80000};
	struct path *p;

	measure(f, rtt_ns);
	p = &f->pair->own[0];
	assert_int_equal(p->reo_ns, 10000);
	path_was_late(f->pair, 0, 1, start_ns);
	assert_int_equal(p->reo_ns, 20000);
	path_was_late(f->pair, 0, 50000, start_ns);
	assert_int_equal(p->reo_ns, 50000);
	path_was_late(f->pair, 0, 50000, start_ns);
	assert_int_equal(p->reo_ns, 80000); /* no more than a round trip */
	path_sent(&f->config, f->pair, 0, PACKET, start_ns + 2000000000);
	ack(f, 0, 1, 0, start_ns + 2000000000);
	assert_int_equal(p->reo_ns, 10000);
	assert_int_equal(p->reo_until_ns, 0);
}

/* ---- paths of different length -------------------------------------------------------- */

/* `count` round trips of that length, each of them a window. Returns the window after them, per cent. */
static uint64_t round_trips(struct fixture *f, uint32_t path, uint64_t rtt_ns, int count, uint64_t *now_ns)
{
	uint64_t before = f->pair->path[path].cc.cwnd_bytes;

	for (int i = 0; i < count; i++) {
		uint32_t packets = (uint32_t)(f->pair->path[path].cc.cwnd_bytes / PACKET);
		uint64_t tx_ns = *now_ns;

		for (uint32_t k = 0; k < packets; k++)
			path_sent(&f->config, f->pair, path, PACKET, tx_ns);
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

TEST(what_a_path_is_longer_than_the_shortest_is_no_queue)
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

TEST(what_a_path_is_longer_by_more_than_a_fourth_is_a_queue)
{
	uint64_t now_ns = start_ns;
	struct fixture f;

	start_told(&f);
	round_trips(&f, 0, 100000, 4, &now_ns);
	assert_true(round_trips(&f, 1, 160000, 20, &now_ns) < 50);
	end(&f);
}

TEST(a_queue_in_which_all_paths_stand_is_one)
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

TEST(a_route_that_became_longer_is_believed_after_a_while)
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
