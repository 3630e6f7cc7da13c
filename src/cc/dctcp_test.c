/* SPDX-License-Identifier: BSD-2-Clause */
#include "cc/cc.h"

#include "base/prng.h"
#include "cc/link_model.h"
#include "cc/params.h"
#include "cc/path_model.h"
#include "support/cc_checks.h"

enum { MTU = 4096 };

static const struct cc_config config = {
	.mtu_bytes = MTU,
	.cwnd_bytes_start = 100 * MTU,
	.cwnd_bytes_min = 1,
	.cwnd_bytes_max = UINT64_C(1) << 40,
};

static struct dctcp_params avoidance(void)
{
	struct dctcp_params p = dctcp_params_default;

	p.doubling = false;
	return p;
}

/* One ACK for all of the window, with this share of it marked. */
static void round_trip(struct cc *c, uint64_t *seq, double marked)
{
	uint64_t bytes = c->cwnd_bytes;

	*seq += bytes;
	cc_on_ack(c, 0,
		  &(struct cc_ack){.acked_bytes = bytes,
				   .acked_packets = (uint32_t)(bytes / MTU) + 1,
				   .ack_seq = *seq,
				   .snd_nxt = *seq,
				   .ecn_packets = marked > 0,
				   .ecn_bytes = (uint64_t)(marked * (double)bytes)});
}

/* alpha, then the cut, else a packet more: eight rounds worked out by hand from RFC 8257 s3.3. */
TEST(alpha_and_window_follow_the_worked_rounds)
{
	static const struct {
		double marked, alpha, packets;
	} rounds[] = {
		{0, .93750000, 101},       {0, .87890625, 102},        {.5, .85522461, 58.383545},
		{1, .86427307, 33.153882}, {0, .81025600, 34.153882},  {0, .75961500, 35.153882},
		{0, .71213907, 36.153882}, {.1, .67388037, 23.972186},
	};
	struct dctcp_params p = avoidance();
	uint64_t seq = 0;
	struct cc c;

	dctcp_init(&c, &config, &p, 0);
	for (size_t i = 0; i < sizeof(rounds) / sizeof(rounds[0]); i++) {
		round_trip(&c, &seq, rounds[i].marked);
		assert_close((double)c.dctcp.alpha_q32 / Q32, rounds[i].alpha);
		assert_close((double)c.dctcp.cwnd_q16 / 65536 / MTU, rounds[i].packets);
	}
}

/* The same rules in double precision, an ACK a packet, marks at random. */
TEST(follows_a_model_of_real_numbers)
{
	struct dctcp_params p = avoidance();
	double cwnd = 100 * MTU, alpha = 1, acked = 0, marked = 0;
	uint64_t seq = 0, nxt = 0, end = 0, cwr_end = 0;
	bool cwr = false;
	struct prng prng;
	struct cc c;

	prng_init(&prng, 3);
	dctcp_init(&c, &config, &p, 0);
	for (int i = 0; i < 200000; i++) {
		bool ce = prng_below(&prng, 1000) < 4;

		if (seq + (uint64_t)cwnd > nxt)
			nxt = seq + (uint64_t)cwnd / MTU * MTU;
		if (nxt <= seq)
			nxt = seq + MTU;
		seq += MTU;
		cc_on_ack(&c, 0,
			  &(struct cc_ack){.acked_bytes = MTU,
					   .acked_packets = 1,
					   .ack_seq = seq,
					   .snd_nxt = nxt,
					   .ecn_packets = ce});
		acked += MTU;
		marked += ce ? MTU : 0;
		if (seq > end) {
			alpha += (marked / acked - alpha) / 16;
			acked = marked = 0;
			end = nxt;
		}
		bool outside = !cwr || seq > cwr_end;
		if (ce && outside) {
			cwnd *= 1 - alpha / 2;
			cwnd = cwnd < MTU ? MTU : cwnd;
			cwr = true;
			cwr_end = nxt;
		} else if (outside) {
			cwnd += MTU * MTU / cwnd;
		}
		/* Growth for unused rounds is held back for part of the first. */
		if (i == 200)
			cwnd = (double)c.dctcp.cwnd_q16 / 65536;
		if (i > 200) {
			assert_close((double)c.dctcp.alpha_q32 / Q32, alpha);
			assert_close((double)c.dctcp.cwnd_q16 / 65536, cwnd);
		}
	}
}

TEST(cuts_once_for_what_was_in_flight)
{
	struct dctcp_params p = avoidance();
	struct cc_ack ack = {.acked_bytes = MTU, .acked_packets = 1, .snd_nxt = 100 * MTU};
	struct cc c;

	dctcp_init(&c, &config, &p, 0);
	ack.ecn_packets = 1;
	for (ack.ack_seq = MTU; ack.ack_seq <= 100 * MTU; ack.ack_seq += MTU)
		cc_on_ack(&c, 0, &ack);
	assert_int_equal(c.cwnd_bytes, 50 * MTU); /* alpha is still 1 */
	cc_on_loss(&c, 0, CC_LOSS_NAK);
	cc_on_cnp(&c, 0);
	assert_int_equal(c.cwnd_bytes, 50 * MTU);
	ack.snd_nxt = 150 * MTU;
	cc_on_ack(&c, 0, &ack); /* the first byte sent after the cut */
	assert_int_equal(c.cwnd_bytes, 25 * MTU);
}

TEST(a_loss_halves_whatever_alpha_is)
{
	struct dctcp_params p = avoidance();
	uint64_t seq = 0;
	struct cc c;

	p.alpha_start_q32 = 0;
	for (int loss = CC_LOSS_TRIM; loss < CC_LOSS_RTO; loss++) {
		dctcp_init(&c, &config, &p, 0);
		cc_on_sent(&c, 0, 0, 100 * MTU);
		cc_on_loss(&c, 0, (enum cc_loss)loss);
		assert_int_equal(c.cwnd_bytes, 50 * MTU);
		cc_on_loss(&c, 0, (enum cc_loss)loss);
		assert_int_equal(c.cwnd_bytes, 50 * MTU);
		seq = 101 * MTU;
		round_trip(&c, &seq, 0);
		cc_on_loss(&c, 0, (enum cc_loss)loss);
		assert_in_range(c.cwnd_bytes, 25 * MTU, 26 * MTU);
	}
}

TEST(a_timeout_leaves_one_packet_and_half_to_come_back_to)
{
	uint64_t seq = 0;
	struct cc c;

	cc_init(&c, CC_DCTCP, &config, 0);
	cc_on_loss(&c, 0, CC_LOSS_RTO);
	assert_int_equal(c.cwnd_bytes, MTU);
	cc_on_loss(&c, 0, CC_LOSS_RTO); /* the second timeout in a row says nothing new */
	assert_int_equal(c.cwnd_bytes, MTU);
	for (int i = 0; i < 6; i++)
		round_trip(&c, &seq, 0);
	assert_int_equal(c.cwnd_bytes, 50 * MTU);
	round_trip(&c, &seq, 0);
	assert_int_equal(c.cwnd_bytes, 51 * MTU);
}

TEST(an_ack_between_timeouts_makes_the_second_news)
{
	uint64_t seq = 0;
	struct cc c;

	cc_init(&c, CC_DCTCP, &config, 0);
	cc_on_loss(&c, 0, CC_LOSS_RTO);
	for (int i = 0; i < 4; i++)
		round_trip(&c, &seq, 0);
	assert_int_equal(c.cwnd_bytes, 16 * MTU);
	cc_on_loss(&c, 0, CC_LOSS_RTO);
	for (int i = 0; i < 4; i++)
		round_trip(&c, &seq, 0);
	assert_int_equal(c.cwnd_bytes, 9 * MTU); /* half of 16, and one more */
}

TEST(marks_leave_one_packet)
{
	uint64_t seq = 0;
	struct cc c;

	cc_init(&c, CC_DCTCP, &config, 0);
	for (int i = 0; i < 50; i++)
		round_trip(&c, &seq, 1);
	assert_int_equal(c.cwnd_bytes, MTU);
}

TEST(doubling_ends_with_the_first_mark_or_loss)
{
	for (int what = 0; what < 3; what++) {
		uint64_t seq = 0, before;
		struct cc c;

		cc_init(&c, CC_DCTCP, &config, 0);
		round_trip(&c, &seq, 0);
		round_trip(&c, &seq, 0);
		assert_int_equal(c.cwnd_bytes, 400 * MTU);
		if (what == 0)
			round_trip(&c, &seq, .01);
		else if (what == 1)
			cc_on_cnp(&c, 0);
		else
			cc_on_loss(&c, 0, CC_LOSS_TRIM);
		before = c.cwnd_bytes;
		assert_true(before < 300 * MTU);
		seq += MTU;
		round_trip(&c, &seq, 0);
		assert_in_range(c.cwnd_bytes, before, before + MTU);
	}
}

TEST(a_cnp_counts_as_a_round_of_marks)
{
	struct dctcp_params p = avoidance();
	uint64_t seq = 0;
	struct cc c;

	p.alpha_start_q32 = 1 << 30; /* 1/4 */
	dctcp_init(&c, &config, &p, 0);
	cc_on_cnp(&c, 0);
	assert_int_equal(c.cwnd_bytes, 100 * MTU * 7 / 8);
	round_trip(&c, &seq, 0);
	assert_close((double)c.dctcp.alpha_q32 / Q32, .25 * 15 / 16 + 1. / 16);
}

TEST(window_never_leaves_its_bounds)
{
	struct cc_config k = config;
	uint64_t seq = 0;
	struct cc c;

	k.cwnd_bytes_min = 3 * MTU;
	k.cwnd_bytes_max = 120 * MTU;
	cc_init(&c, CC_DCTCP, &k, 0);
	for (int i = 0; i < 10; i++)
		round_trip(&c, &seq, 0);
	assert_int_equal(c.cwnd_bytes, 120 * MTU);
	for (int i = 0; i < 50; i++)
		round_trip(&c, &seq, 1);
	assert_int_equal(c.cwnd_bytes, 3 * MTU);
	cc_on_loss(&c, 0, CC_LOSS_RTO);
	assert_int_equal(c.cwnd_bytes, 3 * MTU);
}

/* Four flows, 1 Gbit/s, 1 ms, marks above 200 us (K > C x RTT / 7): all of the link, in even
 * shares. */
TEST(shares_a_link_in_full_and_evenly)
{
	static struct path p;
	uint64_t sum = 0, least = UINT64_MAX, most = 0, before[4];

	memset(&p, 0, sizeof(p));
	p.rate_bps = 1000000000;
	p.base_rtt_ns = 1000000;
	p.mark_ns = 200000;
	p.mtu_bytes = 1500;
	for (unsigned int i = 0; i < 4; i++) {
		path_start(&p, i, CC_DCTCP, &(struct cc_config){.mtu_bytes = 1500});
		path_run(&p, (i + 1) * UINT64_C(100000000));
	}
	path_run(&p, UINT64_C(1000000000));
	for (int i = 0; i < 4; i++)
		before[i] = p.flows[i].acked;
	p.queue_ns_max = 0;
	path_run(&p, UINT64_C(3000000000));
	for (int i = 0; i < 4; i++) {
		uint64_t got = p.flows[i].acked - before[i];

		sum += got;
		least = got < least ? got : least;
		most = got > most ? got : most;
	}
	print_message("%.2f %% of the link, least share %.2f of the most, queue %.0f us\n", (double)sum * 8 / 2e9 * 100,
		      (double)least / (double)most, (double)p.queue_ns_max / 1e3);
	assert_true(sum * 8 > 1980000000);
	assert_true(least * 10 > most * 8);
	assert_true(p.queue_ns_max < 500000);
}

TEST(increase_is_a_rate_if_told_so)
{
	struct dctcp_params p = avoidance();
	struct cc_config k = config;
	struct cc c;

	k.base_rtt_ns = 13000;
	k.mtu_bytes = 1000;
	k.cwnd_bytes_start = 100000;
	p.rate_ai = 615000000; /* 999.375 bytes a round trip */
	for (int known = 0; known < 2; known++) {
		uint64_t seq = 0;

		k.base_rtt_ns = known ? 13000 : 0;
		dctcp_init(&c, &k, &p, 0);
		round_trip(&c, &seq, 0);
		assert_close((double)c.dctcp.cwnd_q16 / 65536, known ? 100999.375 : 101000);
		assert_true(c.rate_bps == CC_UNPACED);
	}
}

TEST(a_window_is_paced_and_bounded_if_told_so)
{
	struct cc_config k = {.mtu_bytes = 1000, .line_rate_bps = 100000000000, .base_rtt_ns = 13000};
	struct cc_params p;
	uint64_t seq = 0;
	struct cc c;

	cc_params_default(&p, CC_DCTCP);
	assert_int_equal(cc_params_preset(&p, "hpcc-eval"), 0);
	k.params = &p;
	cc_init(&c, CC_DCTCP, &k, 0);
	assert_int_equal(c.cwnd_bytes, 162500);
	assert_close((double)c.rate_bps, 100e9);
	for (int i = 0; i < 10; i++)
		round_trip(&c, &seq, 0);
	assert_int_equal(c.cwnd_bytes, 162500);
	round_trip(&c, &seq, 1);
	assert_close((double)c.rate_bps, (double)c.cwnd_bytes * 8e9 / 13000);
	assert_true(c.cwnd_bytes < 150000);
}

static struct link l;

/* 100 Gbit/s, marks above 300 KB as the HPCC evaluation has it, and above a tenth of that. */
TEST(two_flows_share_within_five_milliseconds)
{
	for (uint64_t k = 300000; k >= 30000; k /= 10) {
		struct cc_params p;
		uint64_t a, b;

		cc_params_default(&p, CC_DCTCP);
		assert_int_equal(cc_params_preset(&p, "hpcc-eval"), 0);
		link_init(&l, 100000000000, 12000, 1000, 1);
		l.kmin_bytes = l.kmax_bytes = k;
		link_start(&l, CC_DCTCP, &p);
		link_run(&l, 1000000);
		assert_true(l.flows[0].acked * 8 >= 98000000);
		assert_true(l.queue_bytes_max <= 1000);
		link_start(&l, CC_DCTCP, &p);
		a = l.flows[0].acked;
		link_run(&l, 6000000);
		assert_true((l.flows[0].acked - a + l.flows[1].acked) * 8 >= 450000000);
		a = l.flows[0].acked;
		b = l.flows[1].acked;
		link_run(&l, 7000000);
		a = l.flows[0].acked - a;
		b = l.flows[1].acked - b;
		print_message("%.2f Gbit/s, shares %.4f\n", (double)(a + b) * 8 / 1e6,
			      (double)(a < b ? a : b) / (double)(a + b));
		assert_true((double)(a < b ? a : b) / (double)(a + b) >= .475);
		assert_true((a + b) * 8 >= 95000000);
	}
}

TEST(many_flows_fill_the_port)
{
	for (unsigned int n = 2; n <= 128; n *= 4) {
		uint64_t before = 0, sum = 0;
		struct cc_params p;

		cc_params_default(&p, CC_DCTCP);
		assert_int_equal(cc_params_preset(&p, "hpcc-eval"), 0);
		link_init(&l, 100000000000, 12000, 1000, 1);
		l.kmin_bytes = l.kmax_bytes = 300000;
		for (unsigned int i = 0; i < n; i++)
			link_start(&l, CC_DCTCP, &p);
		link_run(&l, 4000000); /* 128 first windows take 1.6 ms */
		for (unsigned int i = 0; i < n; i++)
			before += l.flows[i].acked;
		l.queue_bytes_max = 0;
		link_run(&l, 6000000);
		for (unsigned int i = 0; i < n; i++)
			sum += l.flows[i].acked;
		print_message("%u flows: %.2f Gbit/s, queue %llu bytes\n", n, (double)(sum - before) * 8 / 2e6,
			      (unsigned long long)l.queue_bytes_max);
		assert_true((sum - before) * 8 >= 190000000);
		assert_true(l.queue_bytes_max < 500000);
	}
}
