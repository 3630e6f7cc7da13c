/* SPDX-License-Identifier: BSD-2-Clause */
/* Networks whose links have credits: nothing is lost, rates are those of closed forms, and circles of waiting are
 * found. */
#include <errno.h>

#include "net/credit.h"
#include "net/network.h"
#include "support/sim_checks.h"
#include "support/test.h"

enum {
	BYTES = 1024 + CREDIT_DELIMITER_BYTES, /* of a packet on the wire */
	BLOCKS = 16,                           /* of it */
	PACKETS = 200,
	SENDERS = 8
};
#define PACKET_PS ((uint64_t)BYTES * 80)
#define FRAME_PS  ((uint64_t)CREDIT_FRAME_BYTES * 80)

static struct network_config credits(uint32_t packets)
{
	struct network_config c;

	network_config_init(&c);
	c.credits.buffer_bytes = packets * BLOCKS * CREDIT_BLOCK_BYTES;
	c.mtu_bytes = BYTES;
	c.check = true;
	return c;
}

/*
 * A buffer of k packets on one link. A packet's room is known to the sender again a packet, a delay, a flow control
 * packet and a delay after its first bit left: the rate is that of k packets in so long, or the link's.
 */
TEST(a_links_rate_is_its_buffer_a_round_trip)
{
	const uint64_t delay_ps = 4 * PACKET_PS / 2, loop_ps = PACKET_PS + 2 * delay_ps + FRAME_PS;

	for (uint32_t k = 1; k <= 8; k++) {
		struct network_config config = credits(k);
		struct network_port_counts port;
		struct topology t;
		uint64_t round_ps = k * PACKET_PS > loop_ps ? k * PACKET_PS : loop_ps;
		uint64_t last = PACKETS - 1, last_ps;

		tree_new(&t, 2, 2, 1);
		tree_link(&t, 0, 1, G100, delay_ps);
		struct network *net = must_create(&t, &config);
		struct flow_host *hosts = flow_hosts(net, 2);

		flow_start(&hosts[0], 1, PACKETS, BYTES);
		must_end(net);
		assert_int_equal(hosts[1].got, PACKETS);
		assert_true(network_count_port(net, 0, 0, &port));
		if (k * PACKET_PS < loop_ps)
			last_ps = last / k * round_ps + (last % k + 1) * PACKET_PS + delay_ps;
		else
			last_ps = PACKETS * PACKET_PS + delay_ps;
		/* The sender's own flow control packets, one when a period ends, may be in the way. */
		assert_in_range(hosts[1].last_ps, last_ps, last_ps + 2 * FRAME_PS);
		assert_true((port.credit_waits > 0) == (k * PACKET_PS < loop_ps));
		must_be_empty(net);
		finish(net, hosts);
	}
}

/* What a switch holds frees its room only when it has left: the loop is longer by that. */
STAR_TEST(room_in_a_switch_is_free_when_the_packet_has_left, 2, config = credits(1))
{
	const uint64_t loop_ps = 2 * PACKET_PS + 2 * US + FRAME_PS;

	flow_start(&hosts[0], 1, PACKETS, BYTES);
	must_end(net);
	assert_int_equal(hosts[1].last_ps, (PACKETS - 1) * loop_ps + 2 * PACKET_PS + 2 * US);
	must_be_empty(net);
}

TEST(incast_takes_as_long_as_its_bytes_and_loses_nothing)
{
	for (int per_output = 0; per_output < 2; per_output++) {
		struct network_config config = credits(32);
		struct network_port_counts in, out;
		struct topology t;
		uint64_t least_ps = (1 + SENDERS * PACKETS) * PACKET_PS + 2 * US;

		config.credits.queue_per_output = per_output;
		tree_star(&t, SENDERS + 1, G100, US);
		struct network *net = must_create(&t, &config);
		struct flow_host *hosts = flow_hosts(net, SENDERS + 1);

		for (uint32_t i = 1; i <= SENDERS; i++)
			flow_start(&hosts[i], 0, PACKETS, BYTES);
		must_end(net);
		assert_int_equal(hosts[0].got, SENDERS * PACKETS);
		assert_int_equal(drops_of_all(net), 0);
		assert_true(network_count_port(net, 1, 0, &out) && network_count_port(net, 1, 1, &in));
		assert_true(out.credit_waits > 0 && out.paused_ps[1] > 0 && out.longest_pause_ps <= out.paused_ps[1]);
		assert_in_range(in.buffer_blocks_max, 28 * BLOCKS, 32 * BLOCKS);
		/* Flow control packets take a little of the wire. */
		assert_true(hosts[0].last_ps >= least_ps && hosts[0].last_ps < least_ps + least_ps / 1000);
		must_be_empty(net);
		finish(net, hosts);
	}
}

STAR_TEST(senders_of_an_incast_share_alike, SENDERS + 1, config = credits(8))
{
	for (uint32_t i = 1; i <= SENDERS; i++)
		flow_start(&hosts[i], 0, 10000, BYTES);
	assert_int_equal(network_run(net, 200 * US, UINT64_MAX), NETWORK_UNTIL);
	for (uint32_t i = 2; i <= SENDERS; i++)
		assert_in_range(hosts[i].sent, hosts[1].sent - 1, hosts[1].sent + 1);
}

/* The victim's host sends to the full port and to an idle one, a packet each in turn, or each on its lane. */
struct two_ways {
	struct flow_host *host;
	uint32_t to[2];
	bool own_lane;
	uint64_t turn;
};

static struct packet *pull_two_ways(void *object, uint32_t allowed, uint64_t now_ps)
{
	struct two_ways *w = object;

	for (int i = 0; i < (w->own_lane ? 2 : 1); i++) {
		unsigned way = w->turn++ % 2;
		struct packet *p;

		w->host->class = w->own_lane ? (uint8_t)(1 + way) : 1;
		p = flow_pull(w->host, allowed, now_ps);
		if (p) {
			p->dst = w->to[way];
			return p;
		}
		if (!w->own_lane)
			w->turn--;
	}
	return NULL;
}

static void arrive_two_ways(void *object, struct packet *p, uint64_t now_ps)
{
	struct two_ways *w = object;

	flow_arrive(w->host, p, now_ps);
}

/* What the victim's receiver got, as a share of the link's rate in percent, beside an incast of `senders`. */
static uint64_t victims_percent(uint32_t senders, bool own_lane)
{
	static const struct endpoint_ops ops = {.pull = pull_two_ways, .arrive = arrive_two_ways};
	struct network_config config = credits(8);
	const uint64_t until_ps = 400 * US;
	struct two_ways w = {.to = {0, 1}, .own_lane = own_lane};
	struct topology t;
	uint64_t got;

	config.check = false;
	tree_star(&t, senders + 2, G100, US / 10);
	struct network *net = must_create(&t, &config);
	struct flow_host *hosts = flow_hosts(net, senders + 2);

	w.host = &hosts[2];
	network_attach(net, 2, &ops, &w);
	for (uint32_t i = 2; i < senders + 2; i++)
		flow_start(&hosts[i], 0, UINT32_MAX, BYTES);
	network_run(net, until_ps, UINT64_MAX);
	assert_int_equal(drops_of_all(net), 0);
	got = hosts[1].got;
	finish(net, hosts);
	return got * PACKET_PS * 100 / until_ps;
}

/*
 * One of k senders alternates between the full port and an idle one. On one lane it gets 1/k of the link for each: a
 * packet waits behind one that goes elsewhere. On a lane of its own the victim gets what its link has left.
 */
TEST(a_packet_behind_one_that_waits_waits_too_unless_it_has_a_lane_of_its_own)
{
	for (uint32_t k = 2; k <= 8; k *= 2) {
		assert_in_range(victims_percent(k, false), 100 / k - 2, 100 / k + 1);
		assert_in_range(victims_percent(k, true), 100 - 100 / k - 3, 100 - 100 / k + 1);
	}
}

STAR_TEST(lanes_share_a_port_by_their_weights, 3, config = credits(32),
	  config.credits.arbitration = (struct vl_tables){.low = {{1, 16}, {2, 48}}, .low_count = 2})
{
	hosts[2].class = 2;
	flow_start(&hosts[1], 0, 100000, BYTES);
	flow_start(&hosts[2], 0, 100000, BYTES);
	network_run(net, 500 * US, UINT64_MAX);
	assert_true(hosts[0].got > 5000);
	assert_in_range(hosts[0].got_class[2], 3 * hosts[0].got_class[1] - 20, 3 * hosts[0].got_class[1] + 40);
}

STAR_TEST(credits_do_not_leak_on_a_link_that_loses, 2, config = credits(2))
{
	const struct network_loss loss = {.loss_ppb = 20000000, .corrupt_ppb = 20000000};
	uint64_t lost;

	assert_int_equal(network_set_loss(net, 0, 0, &loss), 0);
	assert_int_equal(network_set_loss(net, 1, 1, &loss), 0);
	flow_start(&hosts[0], 1, 3000, BYTES);
	must_end(net);
	lost = drops_of(net, NETWORK_DROP_LINK_LOSS) + drops_of(net, NETWORK_DROP_CORRUPT);
	assert_true(lost > 100);
	assert_int_equal(hosts[1].got + lost, 3000);
	assert_int_equal(drops_of_all(net), lost);
	must_be_empty(net);
}

STAR_TEST(a_link_that_was_down_begins_with_all_its_credits, 2, config = credits(4))
{
	for (uint64_t i = 1; i <= 5; i++) {
		assert_int_equal(network_link_down(net, 1, 40 * i * US), 0);
		assert_int_equal(network_link_up(net, 1, (40 * i + 10) * US), 0);
		assert_int_equal(network_link_up(net, 0, (40 * i + 20) * US), 0); /* it never was down */
	}
	flow_start(&hosts[0], 1, 4000, BYTES);
	must_end(net);
	assert_true(drops_of(net, NETWORK_DROP_LINK_DOWN) + drops_of(net, NETWORK_DROP_NO_ROUTE) > 0);
	assert_int_equal(hosts[1].got + drops_of_all(net), 4000);
	assert_true(hosts[1].got > 3000);
	must_be_empty(net);
}

/* Each of n switches in a ring has a host, which sends to the one `hops` on. */
static struct network *ring(uint32_t n, uint32_t hops, const struct network_config *config, struct flow_host **hosts)
{
	struct topology t;

	tree_new(&t, n, 2 * n, 2 * n);
	for (uint32_t i = 0; i < n; i++) {
		tree_link(&t, i, n + i, G100, US);
		tree_link(&t, n + i, n + (i + 1) % n, G100, US);
	}
	struct network *net = must_create(&t, config);

	*hosts = flow_hosts(net, n);
	for (uint32_t i = 0; i < n; i++)
		flow_start(&(*hosts)[i], (i + hops) % n, 2000, BYTES);
	return net;
}

/* Two hops on, each ring link is asked for by packets from the one before: a circle, which closes when buffers are
 * full. */
TEST(a_ring_on_one_lane_stands_still_and_the_circle_is_named)
{
	for (int per_output = 0; per_output < 2; per_output++) {
		struct network_config config = credits(8);
		const struct network_deadlock *d;
		struct flow_host *hosts;
		uint32_t links = 0;

		config.credits.queue_per_output = per_output;
		struct network *net = ring(5, 2, &config, &hosts);

		assert_int_equal(network_run(net, NETWORK_NEVER_PS, UINT64_MAX), NETWORK_DEADLOCK);
		d = network_deadlock(net);
		assert_non_null(d);
		assert_int_equal(d->count, 5);
		for (uint32_t i = 0; i < d->count; i++) {
			assert_int_equal(d->lanes[i].vl, 1);
			assert_int_equal(d->lanes[i].link % 2, 1); /* of the ring, not of a host */
			links |= 1u << d->lanes[i].link;
		}
		assert_int_equal(__builtin_popcount(links), 5);
		assert_null(network_check(net));
		finish(net, hosts);
	}
}

TEST_MANY(a_ring_whose_packets_end_at_the_next_switch_has_no_circle)
{
	struct network_config config = credits(8);
	struct flow_host *hosts;
	struct network *net = ring(5, 1, &config, &hosts);

	must_end(net);
	assert_null(network_deadlock(net));
	for (uint32_t i = 0; i < 5; i++)
		assert_int_equal(hosts[i].got, 2000);
	finish(net, hosts);
}

/* With room for one packet, buffers are full or waited for nearly always; a look at them at any time finds a way out.
 */
TEST(what_only_waits_long_is_no_deadlock)
{
	for (uint64_t delay_ps = US; delay_ps < 2 * US; delay_ps += US / 10) {
		struct network_config config = credits(1);
		struct topology t;

		config.check = false;
		tree_leaf_spine(&t, 4, 4, 1, G100, 4 * G100, delay_ps);
		struct network *net = must_create(&t, &config);
		struct flow_host *hosts = flow_hosts(net, 16);

		for (uint32_t i = 0; i < 8; i++)
			flow_start(&hosts[i], 12, 100, BYTES);
		flow_start(&hosts[8], 4, 100, BYTES);
		must_end(net);
		assert_int_equal(hosts[12].got, 800);
		finish(net, hosts);
	}
}

/* A flow control packet tells what was sent before it: it must not overtake packets that a switch's pipeline holds. */
STAR_TEST(credits_hold_behind_a_switchs_pipeline, 3, config = credits(2), config.switch_latency_ps = 3 * US)
{
	for (uint32_t i = 0; i < 3; i++)
		flow_start(&hosts[i], (i + 1) % 3, 300, BYTES);
	must_end(net);
	assert_int_equal(hosts[0].got + hosts[1].got + hosts[2].got, 900);
	must_be_empty(net);
}

/* The life of a head of queue (HOQLife) ends a circle, at the price of what is dropped. */
TEST_MANY(a_packets_life_ends_a_circle)
{
	struct network_config config = credits(8);
	struct flow_host *hosts;
	uint64_t got = 0, dropped;

	config.credits.lifetime_ps = 20 * US;
	struct network *net = ring(5, 2, &config, &hosts);

	must_end(net);
	dropped = drops_of(net, NETWORK_DROP_LIFETIME);
	for (uint32_t i = 0; i < 5; i++)
		got += hosts[i].got;
	assert_true(dropped > 0);
	assert_int_equal(got + dropped, 5 * 2000);
	assert_int_equal(drops_of_all(net), dropped);
	must_be_empty(net);
	finish(net, hosts);
}

TEST(what_does_not_go_with_credits_is_refused)
{
	char error[NETWORK_ERROR_BYTES];
	struct network_config config;
	struct topology t;

	tree_star(&t, 2, G100, US);
	for (int i = 0; i < 6; i++) {
		struct network *net;

		config = credits(8);
		if (i == 0)
			config.buffer_bytes = 1 << 20;
		else if (i == 1)
			config.red = (struct network_red){.classes = 2, .kmax_bytes = 1};
		else if (i == 2)
			config.trim_wire_bytes = 64;
		else if (i == 3)
			config.credits.buffer_bytes = BYTES / 2;
		else if (i == 4)
			config.int_stamp = true;
		net = network_create(&t, &config, error);
		assert_true(!net == (i < 5));
		if (net)
			assert_int_equal(network_set_receiver(net, 0, 1 << 20, G100), -EINVAL);
		network_destroy(net);
	}
	tree_free(&t);
}
