/* SPDX-License-Identifier: BSD-2-Clause */
#include "cc/cc.h"

#include "base/prng.h"
#include "cc/path_model.h"
#include "support/cc_checks.h"

enum { MTU = 4096 };

#define SEC UINT64_C(1000000000)

static const struct cc_config config = {
	.mtu_bytes = MTU,
	.base_rtt_ns = 20 * US,
	.cwnd_bytes_start = 100 * MTU,
	.cwnd_bytes_min = 4,
	.cwnd_bytes_max = 1000 * MTU,
};

/* The paper's algorithm alone: base 25 us, up to 125 us for scaling, nothing of ours. */
static struct swift_params paper(void)
{
	struct swift_params p = swift_params_default;

	p.base_ns = 25 * US;
	p.fs_range_ns = 125 * US;
	p.doubling = false;
	p.hyper_rounds = 0;
	return p;
}

static double scaling(double range, double packets)
{
	double a = range / (1 / root(.1) - 1 / root(100)), t = a / root(packets) - a / root(100);

	return t < 0 ? 0 : t > range ? range : t;
}

/* All of a window is acknowledged, packet by packet, with this RTT; marks on the first `marked`. */
struct flow {
	struct cc c;
	uint64_t now_ns, seq, nxt;
};

static void round_trip(struct flow *f, uint64_t rtt_ns, unsigned int marked)
{
	uint64_t end;

	if (f->seq + f->c.cwnd_bytes > f->nxt)
		f->nxt = f->seq + f->c.cwnd_bytes / MTU * MTU;
	if (f->nxt <= f->seq)
		f->nxt = f->seq + MTU;
	f->now_ns += rtt_ns;
	for (end = f->nxt; f->seq < end;) {
		f->seq += MTU;
		cc_on_ack(&f->c, f->now_ns,
			  &(struct cc_ack){.acked_bytes = MTU,
					   .acked_packets = 1,
					   .ack_seq = f->seq,
					   .snd_nxt = f->nxt,
					   .ecn_packets = marked && marked--,
					   .rtt_ns = rtt_ns});
		if (f->seq + f->c.cwnd_bytes / MTU * MTU > f->nxt)
			f->nxt = f->seq + f->c.cwnd_bytes / MTU * MTU;
	}
}

static void start(struct flow *f, const struct cc_config *k, const struct swift_params *p)
{
	memset(f, 0, sizeof(*f));
	swift_init(&f->c, k, p, 0);
}

TEST(flow_scaling_is_the_papers)
{
	static const struct {
		double packets, us;
	} points[] = {{.1, 125},      {.5, 53.645265}, {1, 36.737361}, {4, 16.327716}, {16, 6.122894},
		      {64, 1.020482}, {100, 0},        {.01, 125},     {1000, 0}};
	struct swift_params p = paper();

	for (size_t i = 0; i < sizeof(points) / sizeof(points[0]); i++) {
		/* in picoseconds here, for the digits */
		double got = (double)swift_flow_scaling(&p, 125000000, (uint64_t)(points[i].packets * Q32));

		assert_close(got / 1e6, points[i].us);
		assert_close(scaling(125, points[i].packets), points[i].us);
	}
	for (double packets = .02; packets < 120; packets *= 1.01)
		assert_close((double)swift_flow_scaling(&p, 125000000000, (uint64_t)(packets * Q32)) + 1e5,
			     scaling(125000000000, packets) + 1e5);
}

/* Algorithm 1 in double precision, one packet at a time, delays at random around the target. */
TEST(follows_a_model_of_real_numbers)
{
	struct swift_params p = paper();
	struct cc_config k = config;
	double cwnd = 100, last_cut = -1e18;
	uint64_t now_ns = 0, seq = 0;
	struct prng prng;
	struct cc c;

	k.cwnd_bytes_min = 41;
	prng_init(&prng, 11);
	swift_init(&c, &k, &p, 0);
	for (int i = 0; i < 200000; i++) {
		/* epochs of calm and of trouble, so that all of the range is seen */
		uint64_t spread_ns = (i / 5000) % 2 ? 400 * US : 130 * US;
		uint64_t rtt_ns = 20 * US + prng_below(&prng, spread_ns);
		unsigned int hops = (unsigned int)prng_below(&prng, 5);
		double target = 25e3 + hops * 1.5e3 + scaling(125e3, cwnd);
		uint64_t fabric_ns = rtt_ns - 2000;

		if ((double)fabric_ns > target - 2 && (double)fabric_ns < target + 2) {
			rtt_ns += 10; /* the two may differ on which side of the edge this is */
			fabric_ns += 10;
		}
		now_ns += 3000;
		seq += MTU;
		cc_on_ack(&c, now_ns,
			  &(struct cc_ack){.acked_bytes = c.cwnd_bytes > MTU ? c.cwnd_bytes : MTU,
					   .acked_packets = 1,
					   .ack_seq = seq,
					   .snd_nxt = seq,
					   .rtt_ns = rtt_ns,
					   .remote_ns = 1500,
					   .local_ns = 500,
					   .hops = (uint8_t)hops});
		double before = cwnd;
		if ((double)fabric_ns < target) {
			double packets = cwnd > 1 ? (double)((uint64_t)(cwnd * MTU)) / MTU : 1;

			cwnd += cwnd >= 1 ? packets / cwnd : packets;
		} else if ((double)now_ns - last_cut >= (double)rtt_ns) {
			double f = 1 - .8 * ((double)fabric_ns - target) / (double)fabric_ns;

			cwnd *= f > .5 ? f : .5;
		}
		if (cwnd < 41. / MTU)
			cwnd = 41. / MTU;
		if (cwnd > 1000)
			cwnd = 1000;
		if (cwnd < before)
			last_cut = (double)now_ns;
		assert_close((double)c.swift.fabric.cwnd_q16 / 65536 / MTU, cwnd);
	}
}

TEST(below_target_adds_a_packet_a_round_trip)
{
	struct swift_params p = paper();
	struct flow f;

	start(&f, &config, &p);
	for (int i = 1; i <= 20; i++) {
		round_trip(&f, 24 * US, 0);
		assert_in_range(f.c.cwnd_bytes, (99 + i) * MTU, (100 + i) * MTU);
	}
}

TEST(above_target_takes_a_share_once_a_round_trip)
{
	struct swift_params p = paper();
	struct flow f;

	start(&f, &config, &p);
	f.now_ns = SEC;
	round_trip(&f, 50 * US, 0); /* 100 packets, all over target */
	assert_close((double)f.c.cwnd_bytes, 100 * MTU * (1 - .8 * 25 / 50));
	start(&f, &config, &p);
	f.now_ns = SEC;
	round_trip(&f, 10 * MS, 0);
	assert_int_equal(f.c.cwnd_bytes, 50 * MTU); /* at most max_mdf */
	for (int i = 1; i <= 3; i++) {
		cc_on_loss(&f.c, f.now_ns + 10 * MS - 1, CC_LOSS_NAK);
		assert_int_equal(f.c.cwnd_bytes, 100 * MTU >> i);
		f.now_ns += 10 * MS;
		cc_on_loss(&f.c, f.now_ns, CC_LOSS_NAK);
		assert_int_equal(f.c.cwnd_bytes, 100 * MTU >> (i + 1));
	}
}

TEST(below_one_packet_the_window_is_a_rate)
{
	struct swift_params p = paper();
	struct flow f;

	start(&f, &config, &p);
	for (int i = 0; i < 12; i++)
		round_trip(&f, 10 * MS, 0);
	assert_true(f.c.cwnd_bytes < MTU / 10);
	/* one packet in rtt/cwnd: cwnd bytes an RTT */
	assert_close((double)f.c.rate_bps, (double)f.c.swift.fabric.cwnd_q16 / 65536 * 8 / 10e-3);
	round_trip(&f, 24 * US, 0); /* ai x acked: a whole packet */
	assert_true(f.c.cwnd_bytes >= MTU);
	assert_true(f.c.rate_bps == CC_UNPACED);
}

TEST(host_delay_has_a_window_of_its_own)
{
	struct swift_params p = paper();
	struct cc_ack ack = {.acked_bytes = MTU, .acked_packets = 1, .hops = 3};
	struct flow f;

	start(&f, &config, &p);
	ack.rtt_ns = 5 * MS;
	ack.remote_ns = 4 * MS;
	ack.local_ns = 1 * MS - 20 * US;
	cc_on_ack(&f.c, SEC, &ack); /* 20 us in the fabric: no cut there */
	assert_int_equal(f.c.swift.fabric.last_cut_ns, UINT64_MAX);
	assert_int_equal(f.c.cwnd_bytes, 50 * MTU);
	ack.remote_ns = UINT64_MAX; /* more than there was: impossible, ignored */
	ack.rtt_ns = 20 * US;
	cc_on_ack(&f.c, 2 * SEC, &ack);
	assert_true(f.c.cwnd_bytes >= 50 * MTU);
	ack.rtt_ns = 10 * MS;
	ack.remote_ns = ack.local_ns = 0;
	cc_on_ack(&f.c, 3 * SEC, &ack); /* a cut begins at the window in use, not at the wider one */
	assert_in_range(f.c.cwnd_bytes, 25 * MTU, 25 * MTU + MTU);
}

/* But a round trip, in which one cut is enough, is as long as it is. */
TEST(a_queue_on_the_way_back_is_no_delay)
{
	struct swift_params p = paper();
	struct cc_ack ack = {.acked_bytes = MTU, .acked_packets = 1, .hops = 3};
	uint64_t once;
	struct flow f;

	start(&f, &config, &p);
	ack.rtt_ns = 5 * MS;
	ack.back_ns = 5 * MS - 20 * US;
	cc_on_ack(&f.c, SEC, &ack);
	assert_true(f.c.cwnd_bytes >= 100 * MTU);
	ack.back_ns = 4 * MS;
	cc_on_ack(&f.c, 2 * SEC, &ack);
	once = f.c.cwnd_bytes;
	assert_in_range(once, 50 * MTU, 50 * MTU + MTU);
	cc_on_ack(&f.c, 2 * SEC + 4 * MS, &ack);
	assert_int_equal(f.c.cwnd_bytes, once);
	ack.back_ns = 5 * MS; /* there is nothing left: impossible, ignored */
	cc_on_ack(&f.c, 3 * SEC, &ack);
	assert_true(f.c.cwnd_bytes < once);
}

TEST(what_may_queue_in_the_network_may_queue_at_a_host)
{
	struct swift_params p = paper();
	struct cc_ack ack = {.acked_bytes = MTU, .acked_packets = 1, .hops = 3};

	for (int late = 0; late < 2; late++) {
		struct cc_config k = config;
		struct flow f;

		k.target_ns = 4 * MS;
		start(&f, &k, &p);
		ack.remote_ns = late ? 5 * MS : 3900 * US;
		ack.rtt_ns = ack.remote_ns + 20 * US;
		cc_on_ack(&f.c, SEC, &ack);
		if (late)
			assert_true(f.c.cwnd_bytes < 100 * MTU);
		else
			assert_true(f.c.cwnd_bytes >= 100 * MTU);
	}
}

TEST(timeouts_halve_and_then_reset)
{
	struct swift_params p = paper();
	struct flow f;

	start(&f, &config, &p);
	round_trip(&f, 24 * US, 0);
	for (int i = 1; i < 5; i++) {
		f.now_ns += MS;
		cc_on_loss(&f.c, f.now_ns, CC_LOSS_RTO);
		assert_in_range(f.c.cwnd_bytes, 100 * MTU >> i, 101 * MTU >> i);
	}
	cc_on_loss(&f.c, f.now_ns, CC_LOSS_RTO);
	assert_int_equal(f.c.cwnd_bytes, 4);

	start(&f, &config, &p);
	for (int i = 0; i < 20; i++) { /* ACKs between them: each is the first */
		cc_on_loss(&f.c, f.now_ns, CC_LOSS_RTO);
		assert_true(f.c.cwnd_bytes > MTU / 2);
		round_trip(&f, 24 * US, 0);
	}
}

TEST(first_losses_before_any_rtt_are_one)
{
	struct cc c;

	cc_init(&c, CC_SWIFT, &config, 0);
	for (int i = 0; i < 100; i++)
		cc_on_loss(&c, (uint64_t)i * US, CC_LOSS_SACK_HOLE);
	assert_int_equal(c.cwnd_bytes, 50 * MTU);
}

TEST(doubles_until_half_of_the_target_a_mark_or_a_loss)
{
	for (int what = 0; what < 5; what++) {
		struct cc_config k = config;
		uint64_t before;
		struct flow f;

		k.target_ns = 100 * US; /* base 20 us: half is 70 us */
		k.cwnd_bytes_start = 4 * MTU;
		k.cwnd_bytes_max = 100000 * MTU;
		k.loss_ignored = what == 4;
		start(&f, &k, &swift_params_default);
		for (int i = 0; i < 8; i++)
			round_trip(&f, 69 * US, 0);
		assert_in_range(f.c.cwnd_bytes, 4 * MTU * 200, 4 * MTU * 256);
		f.now_ns += MS;
		if (what == 0)
			round_trip(&f, 72 * US, 0);
		else if (what == 1)
			round_trip(&f, 20 * US, 1);
		else if (what == 2)
			cc_on_cnp(&f.c, f.now_ns);
		else
			cc_on_loss(&f.c, f.now_ns, CC_LOSS_SACK_HOLE);
		before = f.c.cwnd_bytes;
		round_trip(&f, 20 * US, 0);
		if (what < 4)
			assert_in_range(f.c.cwnd_bytes, before / 2, before + 2 * MTU);
		else
			assert_true(f.c.cwnd_bytes > before * 3 / 2);
	}
}

TEST(five_calm_rounds_make_the_increase_a_share)
{
	struct cc_config k = config;
	uint64_t before;
	struct flow f;

	k.target_ns = 100 * US;
	k.cwnd_bytes_start = 200 * MTU;
	k.cwnd_bytes_max = 100000 * MTU;
	start(&f, &k, &swift_params_default);
	cc_on_loss(&f.c, 0, CC_LOSS_TRIM);
	for (int i = 0; i < 5; i++)
		round_trip(&f, 20 * US, 0);
	assert_in_range(f.c.cwnd_bytes, 104 * MTU, 107 * MTU);
	for (int i = 0; i < 8; i++) {
		before = f.c.cwnd_bytes;
		round_trip(&f, 20 * US, 0);
		if (i)
			assert_in_range(f.c.cwnd_bytes, before * 110 / 100, before * 114 / 100);
	}
	round_trip(&f, 80 * US, 0); /* over half of the target */
	before = f.c.cwnd_bytes;
	for (int i = 0; i < 4; i++)
		round_trip(&f, 20 * US, 0);
	assert_in_range(f.c.cwnd_bytes, before + 3 * MTU, before + 5 * MTU);
}

TEST(marks_take_their_share_once_a_round_trip)
{
	struct swift_params p = paper();
	uint64_t before;
	struct flow f;

	start(&f, &config, &p);
	f.now_ns = SEC;
	round_trip(&f, 20 * US, 50);
	round_trip(&f, 20 * US, 0); /* its first ACK ends the round of the marks */
	/* 50 in 101 marked, max_mdf a half, and up to two rounds of increase */
	assert_in_range(f.c.cwnd_bytes, 74 * MTU, 78 * MTU);
	for (int i = 0; i < 10; i++) {
		before = f.c.cwnd_bytes;
		round_trip(&f, 20 * US, 1000000);
		assert_in_range(f.c.cwnd_bytes, before * 45 / 100, before);
	}
	assert_true(f.c.cwnd_bytes < 5 * MTU);
}

TEST(ignored_holes_change_nothing_but_timeouts_do)
{
	struct cc_config k = config;
	struct cc before;
	struct flow f;

	k.loss_ignored = true;
	start(&f, &k, &swift_params_default);
	round_trip(&f, 20 * US, 0);
	before = f.c;
	cc_on_loss(&f.c, SEC, CC_LOSS_SACK_HOLE);
	assert_memory_equal(&f.c, &before, sizeof(before));
	cc_on_loss(&f.c, SEC, CC_LOSS_RTO);
	assert_int_equal(f.c.cwnd_bytes, before.cwnd_bytes / 2);
}

TEST(acks_without_a_delay_wait_for_one)
{
	struct cc_ack ack = {.acked_bytes = 10 * MTU, .acked_packets = 10, .snd_nxt = 100 * MTU};
	struct cc c;

	cc_init(&c, CC_SWIFT, &config, 0);
	for (int i = 1; i <= 6; i++) {
		ack.ack_seq = 10 * MTU * (uint64_t)i;
		cc_on_ack(&c, 0, &ack);
	}
	assert_int_equal(c.cwnd_bytes, 100 * MTU);
	cc_on_rtt(&c, 0, 20 * US);
	assert_int_equal(c.cwnd_bytes, 160 * MTU);
	cc_on_rtt(&c, 0, 20 * US);
	assert_int_equal(c.cwnd_bytes, 160 * MTU);
}

TEST(window_never_leaves_its_bounds)
{
	struct cc_config k = config;
	struct flow f;

	k.cwnd_bytes_min = 3 * MTU;
	k.cwnd_bytes_max = 120 * MTU;
	start(&f, &k, &swift_params_default);
	for (int i = 0; i < 50; i++)
		round_trip(&f, 20 * US, 0);
	assert_int_equal(f.c.cwnd_bytes, 120 * MTU);
	for (int i = 0; i < 50; i++)
		round_trip(&f, SEC, 0);
	assert_int_equal(f.c.cwnd_bytes, 3 * MTU);
	for (int i = 0; i < 10; i++)
		cc_on_loss(&f.c, f.now_ns, CC_LOSS_RTO);
	assert_int_equal(f.c.cwnd_bytes, 3 * MTU);
}

TEST(measured_base_follows_a_longer_path)
{
	struct cc_config k = config;
	struct flow f;

	k.base_rtt_ns = 0;
	k.target_ns = MS;
	start(&f, &k, &swift_params_default);
	for (int i = 0; i < 10; i++)
		round_trip(&f, 10 * MS, 0);
	assert_int_equal(f.c.swift.base_rtt_ns, 10 * MS);
	round_trip(&f, 9 * MS, 0);
	assert_int_equal(f.c.swift.base_rtt_ns, 9 * MS);
	for (int i = 0; i < 300; i++) /* 6 s: still in the bucket of the last one */
		round_trip(&f, 20 * MS, 0);
	assert_int_equal(f.c.swift.base_rtt_ns, 9 * MS);
	for (int i = 0; i < 300; i++)
		round_trip(&f, 20 * MS, 0);
	assert_int_equal(f.c.swift.base_rtt_ns, 20 * MS);
	f.now_ns += 3600 * SEC; /* silence changes nothing; the queue after it is no base */
	round_trip(&f, 25 * MS, 0);
	assert_int_equal(f.c.swift.base_rtt_ns, 20 * MS);
}

/* base + 3 us + 4 x 1.5 us, and 100 packets have no scaling; a measured base has its hops in it. */
TEST(hops_count_where_the_base_is_configured)
{
	struct cc_ack ack = {.acked_bytes = MTU, .acked_packets = 1, .hops = 4};
	struct swift_params p = swift_params_default;
	struct cc_config k = config;
	struct cc c;

	p.doubling = false;
	for (int measured = 0; measured < 2; measured++) {
		uint64_t target_ns = measured ? 23 * US : 29 * US;

		k.base_rtt_ns = measured ? 0 : 20 * US;
		swift_init(&c, &k, &p, 0);
		cc_on_rtt(&c, 0, 20 * US);
		ack.rtt_ns = target_ns;
		cc_on_ack(&c, 0, &ack);
		assert_int_equal(c.swift.fabric.last_cut_ns, UINT64_MAX);
		ack.rtt_ns = target_ns + 100;
		cc_on_ack(&c, 7, &ack);
		assert_int_equal(c.swift.fabric.last_cut_ns, 7);
	}
}

static struct path path;

static void path_begin(uint64_t rate_bps, uint64_t base_rtt_ns, uint32_t mtu_bytes)
{
	memset(&path, 0, sizeof(path));
	path.rate_bps = rate_bps;
	path.base_rtt_ns = base_rtt_ns;
	path.mtu_bytes = mtu_bytes;
}

/* What n flows get from now to then: the sum in bit/s, and the least as a share of the most. */
static double measure(int n, uint64_t until_ns, double *evenness)
{
	uint64_t before[PATH_FLOWS_MAX], sum = 0, least = UINT64_MAX, most = 1, from_ns = path.now_ns;

	for (int i = 0; i < n; i++)
		before[i] = path.flows[i].acked;
	path.queue_ns_max = 0;
	path_run(&path, until_ns);
	for (int i = 0; i < n; i++) {
		uint64_t got = path.flows[i].acked - before[i];

		sum += got;
		least = got < least ? got : least;
		most = got > most ? got : most;
	}
	*evenness = (double)least / (double)most;
	print_message("%d flows: %.2f Mbit/s, least share %.2f of the most, queue %.0f us\n", n,
		      (double)sum * 8e3 / (double)(until_ns - from_ns), *evenness, (double)path.queue_ns_max / 1e3);
	return (double)sum * 8e9 / (double)(until_ns - from_ns);
}

/* A path of which nothing is known: 10 ms, 4 Gbit/s, from 64 KiB, and once more after a loss. */
TEST(fills_a_long_fat_path_within_a_second)
{
	struct cc_config k = {.mtu_bytes = MTU, .cwnd_bytes_start = 64 << 10, .target_ns = MS};
	double evenness;

	path_begin(4000000000, 10 * MS, MTU);
	path_start(&path, 0, CC_SWIFT, &k);
	path_run(&path, SEC / 2);
	assert_true(measure(1, SEC, &evenness) > .95 * 4e9);
	for (int i = 0; i < 4; i++) {
		cc_on_loss(&path.flows[0].cc, path.now_ns, CC_LOSS_RTO);
		path_run(&path, path.now_ns + 20 * MS);
	}
	path_run(&path, 2 * SEC);
	assert_true(measure(1, 3 * SEC, &evenness) > .95 * 4e9);
	assert_true(path.queue_ns_max < 2 * MS);
}

/*
 * One flow whose host runs in turns, as it waits for a processor up to `wait_ns_max` at a time: it reads all that has
 * come, hears of the shortest delay among it once a round trip, and fills its window at once. What it gets in bit/s.
 */
static double run_in_turns(const struct cc_config *k, uint64_t wait_ns_max, uint64_t seed)
{
	struct path_flow *f = &path.flows[0];
	uint64_t rtt_ns = UINT64_MAX, heard_ns = 0, from = 0;
	struct prng rng;

	prng_init(&rng, seed);
	path_begin(50000000, 50 * MS, 1500);
	path_start(&path, 0, CC_SWIFT, k);
	while (path.now_ns < 20 * SEC) {
		struct cc_ack ack = {0};

		path.now_ns += 1 + prng_below(&rng, wait_ns_max);
		for (; path.head < path.tail && path.ring[path.head % PATH_RING].acked_ns <= path.now_ns; path.head++) {
			uint64_t took_ns = path.now_ns - path.ring[path.head % PATH_RING].sent_ns;

			rtt_ns = took_ns < rtt_ns ? took_ns : rtt_ns;
			ack.acked_bytes += path.mtu_bytes;
			ack.acked_packets++;
		}
		if (!ack.acked_packets)
			continue;
		f->acked += ack.acked_bytes;
		ack.ack_seq = f->acked;
		ack.snd_nxt = f->snd_nxt;
		if (path.now_ns - heard_ns > path.base_rtt_ns) {
			heard_ns = path.now_ns;
			ack.rtt_ns = rtt_ns;
			rtt_ns = UINT64_MAX;
		}
		cc_on_ack(&f->cc, path.now_ns, &ack);
		path_send(&path, 0);
		if (!from && path.now_ns > 2 * SEC)
			from = f->acked;
	}
	return (double)(f->acked - from) * 8 / 18;
}

/*
 * A wait looks like a queue and cuts the window, which grows by a packet in 50 ms: with 4 ms alone half of the rate
 * is lost.
 */
TEST(waits_for_a_processor_leave_a_long_slow_path_full)
{
	struct cc_config k = {
		.mtu_bytes = 1500, .cwnd_bytes_start = 64 << 10, .cwnd_bytes_min = 3000, .target_ns = 4 * MS};

	for (uint64_t seed = 1; seed <= 8; seed++) {
		double without, with;

		k.target_rtt_part = 0;
		without = run_in_turns(&k, 20 * MS, seed);
		k.target_rtt_part = 4;
		with = run_in_turns(&k, 20 * MS, seed);
		print_message("seed %d: %.1f Mbit/s, with 4 ms alone %.1f\n", (int)seed, with / 1e6, without / 1e6);
		assert_true(with > .95 * 50e6);
	}
}

/* The queue that flows keep standing must not become their base RTT. */
TEST(measured_base_does_not_creep)
{
	struct cc_config k = {.mtu_bytes = 1500, .target_ns = 5 * MS};
	double evenness;

	path_begin(100000000, 10 * MS, 1500);
	for (unsigned int i = 0; i < 4; i++)
		path_start(&path, i, CC_SWIFT, &k);
	path_run(&path, 10 * SEC);
	assert_true(measure(4, 60 * SEC, &evenness) > .97 * 100e6);
	assert_true(evenness > .8);
	assert_true(path.queue_ns_max < 15 * MS);
	for (int i = 0; i < 4; i++)
		assert_in_range(path.flows[i].cc.swift.base_rtt_ns, 10 * MS, 12 * MS);
}

/* A data centre, and the base known. */
TEST(flows_share_evenly_within_the_target)
{
	struct cc_config k = {
		.mtu_bytes = MTU, .line_rate_bps = 100000000000, .base_rtt_ns = 12 * US, .cwnd_bytes_min = 4};
	double evenness;

	path_begin(100000000000, 12 * US, MTU);
	path_start(&path, 0, CC_SWIFT, &k);
	path_run(&path, 5 * MS);
	assert_true(measure(1, 10 * MS, &evenness) > .99 * 100e9);
	path_start(&path, 1, CC_SWIFT, &k);
	path_run(&path, 12 * MS);
	assert_true(measure(2, 14 * MS, &evenness) > .99 * 100e9);
	assert_true(evenness > .9);
	for (unsigned int i = 2; i < 16; i++)
		path_start(&path, i, CC_SWIFT, &k);
	path_run(&path, 20 * MS);
	assert_true(measure(16, 40 * MS, &evenness) > .99 * 100e9);
	assert_true(evenness > .9);
}
