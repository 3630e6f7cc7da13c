/* SPDX-License-Identifier: BSD-2-Clause */
/* Which way packets go: shares of equal paths, spraying, links that fail or slow down. */

#include "net/network.h"
#include "support/sim_checks.h"
#include "support/test.h"

enum { LEAVES = 2, SPINES = 8, LEAF_HOSTS = 8, HOSTS = LEAVES * LEAF_HOSTS };

/* The link from a leaf to a spine, as tree_leaf_spine() numbers them. */
static uint32_t up_link(uint32_t hosts, uint32_t spines, uint32_t leaf, uint32_t spine)
{
	return hosts + leaf * spines + spine;
}

static uint64_t sent_up(const struct network *net, uint32_t spine)
{
	struct network_port_counts counts;

	assert_true(network_count_port(net, up_link(HOSTS, SPINES, 0, spine), 0, &counts));
	return counts.sent_packets;
}

static struct network *leaf_spine(const struct network_config *config)
{
	struct topology t;

	tree_leaf_spine(&t, LEAVES, LEAF_HOSTS, SPINES, G100, G100, US);
	return must_create(&t, config);
}

/*
 * 8000 flows of one packet are 8000 balls into 8 bins: each bin's count is binomial, mean 1000 and
 * standard deviation 29.6; the sum of squares over the mean is chi-squared with 7 degrees of
 * freedom, above 24.3 once in a thousand times.
 */
TEST(ecmp_throws_flows_like_balls_into_bins)
{
	for (uint64_t seed = 0; seed < 3; seed++) {
		struct network_config config;

		network_config_init(&config);
		config.seed = seed;
		struct network *net = leaf_spine(&config);
		struct flow_host *hosts = flow_hosts(net, HOSTS);
		uint64_t chi = 0;

		for (uint32_t i = 0; i < LEAF_HOSTS; i++) {
			hosts[i].new_sport = true;
			flow_start(&hosts[i], LEAF_HOSTS + i, 1000, 1000);
		}
		must_end(net);
		for (uint32_t s = 0; s < SPINES; s++) {
			int64_t off = (int64_t)sent_up(net, s) - 1000;

			chi += (uint64_t)(off * off);
		}
		assert_true(chi < 24300);
		/*
		 * It must not be too even for chance either: chi-squared is below 0.6 once in a
		 * thousand times.
		 */
		assert_true(chi > 600);
		finish(net, hosts);
	}
}

TEST(ecmp_keeps_a_flow_on_one_path)
{
	struct network_config config;

	network_config_init(&config);
	struct network *net = leaf_spine(&config);
	struct flow_host *hosts = flow_hosts(net, HOSTS);
	unsigned used = 0;

	flow_start(&hosts[0], LEAF_HOSTS, 1000, 1000);
	must_end(net);
	for (uint32_t s = 0; s < SPINES; s++)
		used += sent_up(net, s) > 0;
	assert_int_equal(used, 1);
	finish(net, hosts);
}

/* All hosts send at full rate to a host of the other leaf, over just enough links. */
TEST(sprayed_permutations_keep_queues_short)
{
	static const struct {
		enum network_routing routing;
		uint32_t queue_bytes;
	} cases[] = {
		{NETWORK_SPRAY_LEAST, 5000},
		{NETWORK_SPRAY_ROUND_ROBIN, 9000},
		{NETWORK_SPRAY_LEAST_OF_2, 20000},
		{NETWORK_SPRAY_RANDOM, 250000},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct network_config config;

		network_config_init(&config);
		config.routing = cases[i].routing;
		struct network *net = leaf_spine(&config);
		struct flow_host *hosts = flow_hosts(net, HOSTS);
		uint32_t longest = 0;
		uint64_t last_ps = 0;

		for (uint32_t h = 0; h < HOSTS; h++)
			flow_start(&hosts[h], (h + LEAF_HOSTS) % HOSTS, 10000, 1000);
		must_end(net);
		for (uint32_t h = 0; h < HOSTS; h++) {
			assert_int_equal(hosts[h].got, 10000);
			if (hosts[h].last_ps > last_ps)
				last_ps = hosts[h].last_ps;
		}
		for (uint32_t link = 0; link < HOSTS + LEAVES * SPINES; link++) {
			struct network_port_counts counts;

			for (unsigned end = 0; end < 2; end++) {
				network_count_port(net, link, end, &counts);
				if (counts.queue_bytes_max > longest)
					longest = counts.queue_bytes_max;
			}
		}
		assert_true(longest <= cases[i].queue_bytes);
		/* 10000 packets, four hops of a microsecond, and less than a hundredth beyond. */
		if (cases[i].routing != NETWORK_SPRAY_RANDOM)
			assert_true(last_ps < 10000 * UINT64_C(80000) * 101 / 100 + 4 * US);
		must_be_empty(net);
		finish(net, hosts);
	}
}

/* Packets carry a number as their flow, which the hash does not use. */
static struct packet *pull_numbered(void *host, uint32_t allowed, uint64_t now_ps)
{
	struct flow_host *h = host;
	struct packet *p = flow_pull(host, allowed, now_ps);

	if (p)
		p->flow = 1000 + (uint32_t)h->sent;
	return p;
}

static uint32_t newest, overtaken;

static void note_number(struct flow_host *h, const struct packet *p, uint64_t now_ps)
{
	overtaken += p->flow < newest;
	newest = p->flow;
}

TEST(flowlets_move_only_after_a_gap)
{
	const struct endpoint_ops ops = {.pull = pull_numbered, .arrive = flow_arrive};

	for (int gap = 0; gap < 2; gap++) {
		struct network_config config;

		network_config_init(&config);
		config.routing = NETWORK_FLOWLET;
		config.flowlet_gap_ps = gap ? 79999 : 80001;
		struct network *net = leaf_spine(&config);
		struct flow_host *hosts = flow_hosts(net, HOSTS);
		unsigned used = 0;

		network_attach(net, 0, &ops, &hosts[0]);
		hosts[LEAF_HOSTS].on_get = note_number;
		newest = overtaken = 0;
		flow_start(&hosts[0], LEAF_HOSTS, 1000, 1000);
		must_end(net);
		for (uint32_t s = 0; s < SPINES; s++)
			used += sent_up(net, s) > 0;
		assert_int_equal(used, gap ? 8 : 1);
		assert_int_equal(hosts[LEAF_HOSTS].got, 1000);
		assert_int_equal(overtaken, 0);
		finish(net, hosts);
	}
}

TEST(weights_follow_rates)
{
	struct network_config config;

	network_config_init(&config);
	config.weighted = true;
	struct network *net = leaf_spine(&config);
	struct flow_host *hosts = flow_hosts(net, HOSTS);

	for (uint32_t s = 4; s < SPINES; s++)
		assert_int_equal(network_link_rate(net, up_link(HOSTS, SPINES, 0, s), 0, G100 / 4), 0);
	for (uint32_t i = 0; i < LEAF_HOSTS; i++) {
		hosts[i].new_sport = true;
		flow_start(&hosts[i], LEAF_HOSTS + i, 1000, 1000);
	}
	must_end(net);
	for (uint32_t s = 0; s < SPINES; s++) {
		if (s < 4)
			assert_in_range(sent_up(net, s), 1500, 1700);
		else
			assert_in_range(sent_up(net, s), 340, 460);
	}
	finish(net, hosts);
}

/*
 * A spine's link fails at 100 us and is back at 300 us; all hosts of leaf 0 spray to leaf 1
 * meanwhile.
 */
static struct network *failing(uint64_t converge_ps, struct flow_host **hosts)
{
	struct network_config config;

	network_config_init(&config);
	config.routing = NETWORK_SPRAY_RANDOM;
	config.converge_ps = converge_ps;
	config.port_queue_bytes = 1 << 24;
	struct network *net = leaf_spine(&config);

	*hosts = flow_hosts(net, HOSTS);
	for (uint32_t i = 0; i < LEAF_HOSTS; i++)
		flow_start(&(*hosts)[i], LEAF_HOSTS + i, 5000, 1000);
	assert_int_equal(network_link_down(net, up_link(HOSTS, SPINES, 0, 3), 100 * US), 0);
	assert_int_equal(network_link_up(net, up_link(HOSTS, SPINES, 0, 3), 300 * US), 0);
	return net;
}

TEST(a_failed_link_is_a_hole_until_routes_follow)
{
	/* 12.5 packets a us are lost: until routes follow, or all the time. */
	static const struct {
		uint64_t converge_ps, lost_min, lost_max;
	} cases[] = {
		{0, 1, 30},
		{50 * US, 550, 750},
		{NETWORK_NEVER_PS, 2300, 2700},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct flow_host *hosts;
		struct network *net = failing(cases[i].converge_ps, &hosts);
		uint64_t before, during, after;

		network_run(net, 160 * US, UINT64_MAX);
		before = sent_up(net, 3);
		network_run(net, 290 * US, UINT64_MAX);
		during = sent_up(net, 3) - before;
		network_run(net, 360 * US, UINT64_MAX);
		before = sent_up(net, 3);
		must_end(net);
		after = sent_up(net, 3) - before;
		/*
		 * If routes never follow, packets go into the failed link all the time; otherwise
		 * none do until the link is back.
		 */
		assert_true(cases[i].converge_ps == NETWORK_NEVER_PS ? during > 1000 : during == 0);
		assert_true(after > 100);
		assert_in_range(drops_of(net, NETWORK_DROP_LINK_DOWN), cases[i].lost_min, cases[i].lost_max);
		assert_int_equal(drops_of_all(net), drops_of(net, NETWORK_DROP_LINK_DOWN));
		must_be_empty(net);
		finish(net, hosts);
	}
}

/* Routes go round a spine that has lost the way down, at the leaves, too. */
TEST(routes_avoid_what_fails_further_on)
{
	struct network_config config;

	network_config_init(&config);
	config.routing = NETWORK_SPRAY_RANDOM;
	struct network *net = leaf_spine(&config);
	struct flow_host *hosts = flow_hosts(net, HOSTS);

	for (uint32_t s = 1; s < SPINES; s++)
		assert_int_equal(network_link_down(net, up_link(HOSTS, SPINES, 1, s), 0), 0);
	assert_int_equal(network_link_down(net, LEAF_HOSTS + 1, 0), 0);
	flow_start(&hosts[0], LEAF_HOSTS, 500, 1000);
	flow_start(&hosts[1], LEAF_HOSTS + 1, 10, 1000);
	must_end(net);
	assert_int_equal(sent_up(net, 0), 510);
	assert_int_equal(hosts[LEAF_HOSTS].got, 500);
	assert_int_equal(drops_of(net, NETWORK_DROP_LINK_DOWN), 10);
	assert_int_equal(network_link_down(net, up_link(HOSTS, SPINES, 1, 0), 0), 0);
	flow_start(&hosts[0], LEAF_HOSTS, 10, 1000);
	must_end(net);
	assert_int_equal(drops_of(net, NETWORK_DROP_NO_ROUTE), 10);
	must_be_empty(net);
	finish(net, hosts);
}

TEST(a_degraded_link_stays_in_its_group)
{
	struct network_config config;

	network_config_init(&config);
	config.routing = NETWORK_SPRAY_ROUND_ROBIN;
	config.port_queue_bytes = 1 << 24;
	struct network *net = leaf_spine(&config);
	struct flow_host *hosts = flow_hosts(net, HOSTS);

	network_link_rate(net, up_link(HOSTS, SPINES, 0, 2), 50 * US, G100 / 10);
	flow_start(&hosts[0], LEAF_HOSTS, 8000, 1000);
	must_end(net);
	assert_int_equal(sent_up(net, 2), 1000);
	assert_int_equal(hosts[LEAF_HOSTS].got, 8000);
	finish(net, hosts);
}

/* Every pair of a fat tree, by the shortest way: 1, 3 or 5 switches. */
static void note_hops(struct flow_host *h, const struct packet *p, uint64_t now_ps)
{
	uint32_t pod = h->index / 4 == p->src / 4, edge = h->index / 2 == p->src / 2;

	assert_int_equal(p->hops, edge ? 1 : pod ? 3 : 5);
}

TEST(all_pairs_of_a_fat_tree_reach_each_other_by_shortest_paths)
{
	struct network_config config;
	struct topology t;

	network_config_init(&config);
	tree_fat(&t, 4, G100, US);
	struct network *net = must_create(&t, &config);
	struct flow_host *hosts = flow_hosts(net, 16);

	for (uint32_t shift = 1; shift < 16; shift++) {
		for (uint32_t h = 0; h < 16; h++) {
			hosts[h].on_get = note_hops;
			flow_start(&hosts[h], (h + shift) % 16, 1, 1000);
		}
		must_end(net);
	}
	for (uint32_t h = 0; h < 16; h++)
		assert_int_equal(hosts[h].got, 15);
	finish(net, hosts);
}
