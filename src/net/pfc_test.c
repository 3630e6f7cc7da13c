/* SPDX-License-Identifier: BSD-2-Clause */
/* A lossless class loses nothing, wastes nothing, and needs exactly the computed headroom. */

#include "net/network.h"
#include "support/sim_checks.h"
#include "support/test.h"

enum { SENDERS = 8, PACKETS = 400 };

static const enum network_pfc models[] = {NETWORK_PFC, NETWORK_PFC_HPCC};

static struct network_config lossless(enum network_pfc model)
{
	struct network_config c;

	network_config_init(&c);
	c.pfc = model;
	c.lossless_classes = 1 << 1;
	c.buffer_bytes = 3 << 20;
	c.mtu_bytes = 1000;
	c.pause_response_ps = 0;
	c.resume_offset_bytes = 3072;
	c.alpha_log2[1] = -3;
	c.check = true;
	return c;
}

/*
 * Time: the first packet's way to the switch, then all of them through the one port, without a gap.
 */
TEST(incast_takes_as_long_as_its_bytes_and_loses_nothing)
{
	for (size_t m = 0; m < 2; m++) {
		struct network_config config = lossless(models[m]);
		struct network_port_counts first;
		struct topology t;

		config.buffer_bytes = 1500 << 10;
		tree_star(&t, SENDERS + 1, G100, US);
		struct network *net = must_create(&t, &config);
		struct flow_host *hosts = flow_hosts(net, SENDERS + 1);

		for (uint32_t i = 1; i <= SENDERS; i++)
			flow_start(&hosts[i], 0, PACKETS, 1000);
		must_end(net);
		assert_int_equal(hosts[0].got, SENDERS * PACKETS);
		assert_int_equal(hosts[0].last_ps, 80000 + US + SENDERS * PACKETS * 80000 + US);
		assert_int_equal(drops_of_all(net), 0);
		assert_true(network_count_port(net, 1, 0, &first));
		assert_true(first.pauses_received > 0);
		assert_true(first.pauses_received >= first.resumes_received && first.resumes_received > 0);
		if (models[m] == NETWORK_PFC_HPCC)
			assert_int_equal(first.pauses_received, first.resumes_received);
		assert_true(first.paused_ps[1] > 0 && first.longest_pause_ps <= first.paused_ps[1]);
		assert_int_equal(first.paused_ps[2], 0);
		must_be_empty(net);
		finish(net, hosts);
	}
}

/* A class goes on when that much more than what paused it has left, so the larger it is the fewer pauses there are. */
TEST(a_resume_offset_spares_pauses)
{
	uint64_t resumes[2];

	for (size_t m = 0; m < 2; m++) {
		struct network_config config = lossless(NETWORK_PFC);
		struct network_port_counts first;
		struct topology t;

		config.buffer_bytes = 1500 << 10;
		config.resume_offset_bytes = m ? 40000 : 0;
		tree_star(&t, SENDERS + 1, G100, US);
		struct network *net = must_create(&t, &config);
		struct flow_host *hosts = flow_hosts(net, SENDERS + 1);

		for (uint32_t i = 1; i <= SENDERS; i++)
			flow_start(&hosts[i], 0, PACKETS, 1000);
		must_end(net);
		assert_int_equal(drops_of_all(net), 0);
		assert_true(network_count_port(net, 1, 0, &first));
		resumes[m] = first.resumes_received;
		finish(net, hosts);
	}
	assert_true(resumes[1] && resumes[1] < resumes[0]);
}

/* 256 quanta are 1.3 us: each pause lasts that long after its last frame, independent of the queue. */
STAR_TEST(without_resume_frames_pauses_run_out_by_themselves, SENDERS + 1, config = lossless(NETWORK_PFC),
	  config.buffer_bytes = 1500 << 10, config.no_resume_frames = true, config.pause_quanta = 256)
{
	const uint64_t quanta_ps = 256 * 512 * 10;
	struct network_port_counts first, at_switch;

	for (uint32_t i = 1; i <= SENDERS; i++)
		flow_start(&hosts[i], 0, PACKETS, 1000);
	must_end(net);
	assert_int_equal(hosts[0].got, SENDERS * PACKETS);
	assert_int_equal(drops_of_all(net), 0);
	assert_true(network_count_port(net, 1, 0, &first));
	assert_true(network_count_port(net, 1, 1, &at_switch));
	assert_true(first.pauses_received > 0);
	assert_int_equal(first.pauses_received, at_switch.pauses_sent);
	assert_int_equal(first.resumes_received + at_switch.resumes_sent, 0);
	assert_true(first.longest_pause_ps >= quanta_ps);
	must_be_empty(net);
}

/*
 * Host 0 sends at full rate towards the slow host 1 over a long wire, while host 2 keeps the other
 * direction of that wire busy. Returns the most that was in headroom.
 */
static uint32_t headroom_used(uint32_t headroom_bytes, uint32_t reverse_bytes, uint64_t *dropped)
{
	struct network_config config = lossless(NETWORK_PFC);
	struct network_port_counts counts;
	struct topology t;

	config.headroom_bytes = headroom_bytes;
	config.check = false;
	tree_new(&t, 3, 4, 3);
	tree_link(&t, 0, 3, G100, 10 * US);
	tree_link(&t, 1, 3, G100 / 1000, US);
	tree_link(&t, 2, 3, G100, US);
	struct network *net = must_create(&t, &config);
	struct flow_host *hosts = flow_hosts(net, 3);

	flow_start(&hosts[0], 1, 3000, 1000);
	flow_start(&hosts[2], 0, 3000, reverse_bytes);
	network_run(net, 300 * US, UINT64_MAX);
	assert_true(network_count_port(net, 0, 1, &counts));
	*dropped = drops_of(net, NETWORK_DROP_HEADROOM);
	finish(net, hosts);
	return counts.headroom_bytes_max;
}

TEST(headroom_is_used_up_to_the_formula_and_not_a_byte_is_spare)
{
	const uint32_t formula = 2 * 10 * 12500 + 2 * 1000 + 84; /* 12500 bytes a us */
	uint32_t most = 0;
	uint64_t dropped;

	/*
	 * The frame's wait depends on the moment, within a packet of the other direction, at which
	 * it becomes due.
	 */
	for (uint32_t reverse = 900; reverse <= 1000; reverse += 10) {
		uint32_t used = headroom_used(0, reverse, &dropped);

		assert_int_equal(dropped, 0);
		assert_true(used <= formula);
		if (used > most)
			most = used;
		headroom_used(used, reverse, &dropped);
		assert_int_equal(dropped, 0);
		headroom_used(used - 1, reverse, &dropped);
		assert_true(dropped > 0);
	}
	/* Headroom is taken in whole packets. */
	assert_true(most > formula - 1000);
}

/* The slow host 1 makes its switch pause the other one, which then pauses host 0. */
TEST(pauses_spread_as_a_tree_whose_depth_is_told)
{
	for (size_t m = 0; m < 2; m++) {
		struct network_config config = lossless(models[m]);
		struct network_port_counts host, trunk;
		struct topology t;

		tree_new(&t, 2, 4, 3);
		tree_link(&t, 0, 2, G100, US);
		tree_link(&t, 1, 3, G100 / 100, US);
		tree_link(&t, 2, 3, G100, US);
		config.buffer_bytes = 400000;
		struct network *net = must_create(&t, &config);
		struct flow_host *hosts = flow_hosts(net, 2);

		flow_start(&hosts[0], 1, 2000, 1000);
		must_end(net);
		assert_int_equal(hosts[1].got, 2000);
		network_count_port(net, 2, 0, &trunk);
		network_count_port(net, 0, 0, &host);
		assert_int_equal(trunk.pause_depth_max, 1);
		assert_int_equal(host.pause_depth_max, 2);
		must_be_empty(net);
		finish(net, hosts);
	}
}

/* Pauses of a microsecond: only refreshing them keeps the sender quiet. */
TEST(a_pause_is_refreshed_before_it_runs_out)
{
	struct network_config config = lossless(NETWORK_PFC);
	struct network_port_counts counts;
	struct topology t;

	config.pause_quanta = 200;
	tree_new(&t, 2, 3, 2);
	tree_link(&t, 0, 2, G100, US);
	tree_link(&t, 1, 2, G100 / 100, US);
	struct network *net = must_create(&t, &config);
	struct flow_host *hosts = flow_hosts(net, 2);

	flow_start(&hosts[0], 1, 1000, 1000);
	must_end(net);
	assert_int_equal(drops_of_all(net), 0);
	network_count_port(net, 0, 0, &counts);
	assert_true(counts.pauses_received > 10 * counts.resumes_received);
	must_be_empty(net);
	finish(net, hosts);
}

/* Class 2 goes on while class 1 is paused, in the hosts as in the switches. */
TEST(a_pause_is_for_its_class_only)
{
	struct network_config config = lossless(NETWORK_PFC);
	struct topology t;

	tree_new(&t, 3, 5, 4);
	tree_link(&t, 0, 3, G100, US);
	tree_link(&t, 1, 4, G100 / 100, US);
	tree_link(&t, 2, 3, G100, US);
	tree_link(&t, 3, 4, G100, US);
	struct network *net = must_create(&t, &config);
	struct flow_host *hosts = flow_hosts(net, 3);

	hosts[2].class = 2;
	flow_start(&hosts[0], 1, 2000, 1000);
	network_run(net, 100 * US, UINT64_MAX);
	assert_true(hosts[1].got < 200);
	flow_start(&hosts[2], 1, 10, 100);
	network_run(net, 300 * US, UINT64_MAX);
	assert_int_equal(hosts[1].got_class[2], 10);
	finish(net, hosts);
}

/* The host drains a tenth of what is sent, so the switch, and through it the sender, have to wait. */
TEST(a_slow_receiver_pauses_its_switch)
{
	for (int lossy = 0; lossy < 2; lossy++) {
		struct network_config config = lossless(NETWORK_PFC);
		struct network_port_counts counts;
		struct topology t;

		tree_star(&t, 2, G100, US);
		struct network *net = must_create(&t, &config);
		struct flow_host *hosts = flow_hosts(net, 2);

		assert_int_not_equal(network_set_receiver(net, 1, network_receiver_headroom_bytes(net, 1), G100 / 10),
				     0);
		assert_int_equal(network_set_receiver(net, 1, 50000, G100 / 10), 0);
		hosts[0].class = lossy ? 2 : 1;
		flow_start(&hosts[0], 1, 1000, 1000);
		must_end(net);
		network_count_port(net, 1, 1, &counts);
		if (lossy) {
			/* A tenth is drained meanwhile, and the buffer less its headroom is filled. */
			assert_in_range(hosts[1].got, 120, 126);
			assert_int_equal(drops_of(net, NETWORK_DROP_RECEIVER), 1000 - hosts[1].got);
			assert_int_equal(counts.pauses_received, 0);
		} else {
			assert_int_equal(hosts[1].got, 1000);
			assert_int_equal(hosts[1].last_ps, 160000 + 2 * US + 1000 * 800000);
			assert_true(counts.pauses_received > 0 && counts.pause_depth_max == 1);
		}
		must_be_empty(net);
		finish(net, hosts);
	}
}

TEST(a_buffer_without_room_for_headroom_is_refused)
{
	struct network_config config = lossless(NETWORK_PFC);
	char error[NETWORK_ERROR_BYTES];
	struct topology t;

	config.buffer_bytes = 50000;
	tree_star(&t, 4, G100, US);
	assert_null(network_create(&t, &config, error));
	assert_non_null(strstr(error, "switch 4 has a buffer without room"));
	config.buffer_bytes = 0;
	assert_null(network_create(&t, &config, error));
	assert_non_null(strstr(error, "lossless classes need a shared buffer"));
	tree_free(&t);
}
