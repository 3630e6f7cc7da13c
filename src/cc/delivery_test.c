/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the algorithm promises, on a model of a long path: paced senders, one queue, random loss behind it, and an
 * acknowledgement for each PING that got through, which has the receiver's count. Virtual time, packet by packet.
 */
#include "cc/cc.h"

#include "base/prng.h"
#include "support/test.h"

enum { MTU = 4096, FLOWS_MAX = 8, PINGS = 256, START_PACKETS = 32, PINGS_A_RTT = 32 };

#define MS  UINT64_C(1000000)
#define SEC (1000 * MS)

struct ping {
	uint64_t sent_ns, back_ns, sent, got;
};

struct flow {
	struct cc cc;
	bool on;
	uint64_t sent, got, reported; /* bytes */
	uint64_t acked, acked_ns;     /* of what was sent, by the newest answer */
	uint64_t next_ns, ping_ns;
	struct ping ping[PINGS]; /* answers under way, in order */
	uint32_t first, count;
	uint64_t counted; /* when the test last looked */
};

static struct path {
	uint64_t now_ns, free_ns, rate_bps, rtt_ns, buffer_ns, dead_from_ns, dead_to_ns;
	double loss;
	uint64_t share_bps; /* what the program sends at most; 0: all it may */
	uint64_t queue_ns_max, lost, sent;
	struct prng prng;
	struct flow flow[FLOWS_MAX];
} p;

static void path_open(uint64_t mbps, uint64_t rtt_ms, double loss)
{
	p = (struct path){.rate_bps = mbps * 1000000,
			  .rtt_ns = rtt_ms * MS,
			  .buffer_ns = 4 * rtt_ms * MS,
			  .loss = loss,
			  .now_ns = SEC,
			  .dead_from_ns = UINT64_MAX};
	prng_init(&p.prng, 1);
}

static void start(int i)
{
	const struct cc_config k = {.mtu_bytes = MTU, .cwnd_bytes_start = START_PACKETS * MTU};

	p.flow[i] = (struct flow){.on = true, .next_ns = p.now_ns, .ping_ns = p.now_ns};
	cc_init(&p.flow[i].cc, CC_DELIVERY, &k, p.now_ns);
}

static uint64_t queued_ns(void)
{
	return p.free_ns > p.now_ns ? p.free_ns - p.now_ns : 0;
}

static bool lost(void)
{
	return (double)(prng_next(&p.prng) >> 11) < p.loss * 9007199254740992.0 ||
	       (p.now_ns >= p.dead_from_ns && p.now_ns < p.dead_to_ns);
}

/* While no answer comes, a part of a window more is taken to have arrived, at the rate of sending. */
static bool may_send(const struct flow *f)
{
	uint64_t more = f->cc.rate_bps / 8 * (p.now_ns - f->acked_ns) / SEC;

	if (!f->acked_ns || more > f->cc.cwnd_bytes / 8)
		more = f->acked_ns ? f->cc.cwnd_bytes / 8 : 0;
	return f->sent == f->acked || f->sent - f->acked + MTU <= f->cc.cwnd_bytes + more;
}

static void send_one(struct flow *f)
{
	uint64_t bps = p.share_bps && p.share_bps < f->cc.rate_bps ? p.share_bps : f->cc.rate_bps;
	uint64_t wait_ns = queued_ns();

	f->next_ns = p.now_ns + MTU * 8 * SEC / bps;
	if (!may_send(f))
		return;
	f->sent += MTU;
	p.sent += MTU;
	if (wait_ns > p.queue_ns_max)
		p.queue_ns_max = wait_ns;
	if (wait_ns > p.buffer_ns) {
		p.lost += MTU;
		return;
	}
	p.free_ns = p.now_ns + wait_ns + MTU * 8 * SEC / p.rate_bps;
	if (lost())
		p.lost += MTU;
	else
		f->got += MTU;
}

static void ping(struct flow *f)
{
	f->ping_ns = p.now_ns + (p.rtt_ns / PINGS_A_RTT > MS ? p.rtt_ns / PINGS_A_RTT : MS);
	if (lost() || lost() || f->count == PINGS)
		return;
	f->ping[(f->first + f->count++) % PINGS] =
		(struct ping){p.now_ns, p.now_ns + queued_ns() + p.rtt_ns, f->sent, f->got};
}

static void answer(struct flow *f)
{
	const struct ping *a = &f->ping[f->first++ % PINGS];
	const struct cc_ack ack = {.acked_bytes = a->got - f->reported,
				   .acked_packets = (uint32_t)((a->got - f->reported) / MTU),
				   .ack_seq = a->sent,
				   .snd_nxt = f->sent,
				   .rtt_ns = p.now_ns - a->sent_ns,
				   .peer_ns = p.now_ns + 77};

	f->count--;
	f->reported = a->got;
	f->acked = a->sent;
	f->acked_ns = p.now_ns;
	cc_on_ack(&f->cc, p.now_ns, &ack);
}

/* The next event of a flow. */
static uint64_t due(const struct flow *f)
{
	uint64_t at = f->next_ns < f->ping_ns ? f->next_ns : f->ping_ns;

	return f->count && f->ping[f->first % PINGS].back_ns < at ? f->ping[f->first % PINGS].back_ns : at;
}

static void run(uint64_t ns)
{
	for (uint64_t end_ns = p.now_ns + ns;;) {
		struct flow *f = NULL;

		for (int i = 0; i < FLOWS_MAX; i++) {
			if (p.flow[i].on && (!f || due(&p.flow[i]) < due(f)))
				f = &p.flow[i];
		}
		if (due(f) >= end_ns) {
			p.now_ns = end_ns;
			return;
		}
		p.now_ns = due(f);
		if (f->count && f->ping[f->first % PINGS].back_ns == p.now_ns)
			answer(f);
		else if (f->ping_ns == p.now_ns)
			ping(f);
		else
			send_one(f);
	}
}

static double got(int i)
{
	uint64_t bytes = p.flow[i].got - p.flow[i].counted;

	p.flow[i].counted = p.flow[i].got;
	return (double)bytes;
}

/* The share of what the path carries in so long that flow 0 gets. */
static double used(uint64_t ns)
{
	got(0);
	run(ns);
	return got(0) * 8 / ((double)p.rate_bps * (1 - p.loss) * (double)ns / 1e9);
}

static double jain(int n)
{
	double sum = 0, squares = 0;

	for (int i = 0; i < n; i++) {
		double x = got(i);

		sum += x;
		squares += x * x;
	}
	return sum * sum / n / squares;
}

TEST(a_long_path_is_filled_whatever_it_loses_at_random)
{
	static const struct {
		uint64_t mbps, rtt_ms;
	} paths[] = {{50, 200}, {1000, 20}, {200, 50}};
	static const double losses[] = {0, 0.001, 0.01, 0.05, 0.1};

	for (size_t i = 0; i < 3; i++) {
		for (size_t k = 0; k < 5; k++) {
			double share;

			path_open(paths[i].mbps, paths[i].rtt_ms, losses[k]);
			start(0);
			run(25 * p.rtt_ns);
			share = used(50 * p.rtt_ns);
			print_message("%llu Mbit/s, %llu ms, %g lost: %.3f, queue of %.2f round trips\n",
				      (unsigned long long)paths[i].mbps, (unsigned long long)paths[i].rtt_ms, losses[k],
				      share, (double)p.queue_ns_max / (double)p.rtt_ns);
			assert_true(share >= 0.93);
			assert_true(p.queue_ns_max <= p.rtt_ns * 7 / 5);
		}
	}
}

TEST(flows_that_begin_in_turn_share_evenly)
{
	for (int n = 2; n <= 8; n *= 2) {
		double even;

		path_open(500, 20, 0);
		for (int i = 0; i < n; i++) {
			start(i);
			run(30 * p.rtt_ns);
		}
		jain(n);
		run(30 * p.rtt_ns);
		even = jain(n);
		print_message("%d flows: Jain %.3f, queue of %.2f round trips\n", n, even,
			      (double)p.queue_ns_max / (double)p.rtt_ns);
		assert_true(even >= 0.95);
	}
}

TEST(a_rate_that_halves_or_doubles_is_found_in_ten_round_trips)
{
	for (int twice = 0; twice < 2; twice++) {
		path_open(400, 40, 0.001);
		start(0);
		run(60 * p.rtt_ns);
		p.rate_bps = twice ? p.rate_bps * 2 : p.rate_bps / 2;
		run(10 * p.rtt_ns);
		p.queue_ns_max = 0;
		assert_true(used(10 * p.rtt_ns) >= 0.9);
		assert_true(p.queue_ns_max <= p.rtt_ns * 3 / 2);
	}
}

TEST(a_path_that_dies_for_two_seconds_goes_on_at_its_rate)
{
	path_open(200, 50, 0.01);
	start(0);
	run(2 * SEC);
	p.dead_from_ns = p.now_ns;
	p.dead_to_ns = p.now_ns + 2 * SEC;
	run(2 * SEC + 3 * p.rtt_ns);
	assert_true(used(20 * p.rtt_ns) >= 0.9);
}

TEST(a_buffer_that_is_short_is_not_overrun_for_long)
{
	path_open(200, 50, 0);
	p.buffer_ns = p.rtt_ns / 5;
	start(0);
	run(40 * p.rtt_ns);
	p.sent = p.lost = 0;
	assert_true(used(100 * p.rtt_ns) >= 0.9);
	assert_true(p.lost * 20 < p.sent);
}

/* Single PINGs before anything is sent, as a program has them that measures the round trip. */
TEST(a_flow_that_sends_nothing_yet_keeps_the_rate_that_it_begins_with)
{
	struct flow *f = &p.flow[0];
	uint64_t bps;

	path_open(200, 50, 0);
	start(0);
	bps = f->cc.rate_bps;
	for (int i = 0; i < 20; i++) {
		const struct cc_ack ack = {.rtt_ns = p.rtt_ns, .peer_ns = p.now_ns};

		p.now_ns += p.rtt_ns;
		cc_on_ack(&f->cc, p.now_ns, &ack);
	}
	assert_true(f->cc.rate_bps >= bps);
}

/* A program that sends a tenth for a while has the whole path at once when it wants it. */
TEST(what_a_program_does_not_send_is_no_low_rate_of_the_path)
{
	path_open(200, 50, 0);
	start(0);
	run(2 * SEC);
	p.share_bps = p.rate_bps / 10;
	run(2 * SEC);
	p.share_bps = 0;
	run(2 * p.rtt_ns);
	assert_true(used(10 * p.rtt_ns) >= 0.85);
}
