/* SPDX-License-Identifier: BSD-2-Clause */
/* Slowest cuts whose bytes and rates are known in closed form. */
#include "net/topology/topology_cut.h"

#include "net/topology/topology_build.h"
#include "support/test.h"

#define GBPS UINT64_C(1000000000)

enum { BYTES = 1000, LINKS_MAX = 512 };

struct net {
	struct topology t;
	uint64_t bps[LINKS_MAX];
};

static struct net net_of(const char *kind, struct topology_params p)
{
	struct text_error err = {0};
	struct net n;

	p.rate_bps = 100 * GBPS;
	p.delay_ps = p.fabric_delay_ps = TOPOLOGY_DELAY_DEFAULT;
	if (topology_build(&n.t, kind, &p, &err))
		fail_msg("%s: %s", kind, err.message);
	assert_true(n.t.link_count <= LINKS_MAX);
	for (uint32_t i = 0; i < n.t.link_count; i++)
		n.bps[i] = n.t.links[i].rate_bps;
	return n;
}

/* Sets the rates of the first `count` links of that node to nodes of that tier. */
static void slow(struct net *n, uint32_t node, uint8_t tier, uint32_t count, uint64_t bps)
{
	for (uint32_t i = 0; i < n->t.link_count && count; i++) {
		const struct topology_link *l = &n->t.links[i];
		uint32_t other = l->a == node ? l->b : l->a;

		if ((l->a != node && l->b != node) || n->t.nodes[other].tier != tier)
			continue;
		n->bps[i] = bps;
		count--;
	}
	assert_int_equal(count, 0);
}

/* The only switch of that host. */
static uint32_t switch_of(const struct net *n, uint32_t host)
{
	for (uint32_t i = 0; i < n->t.link_count; i++) {
		if (n->t.links[i].a == host || n->t.links[i].b == host)
			return n->t.links[i].a == host ? n->t.links[i].b : n->t.links[i].a;
	}
	fail();
	return 0;
}

/* Each host of the first `sources` sends BYTES to each other one; the network is done with. */
static struct topology_cut slowest(struct net *n, uint32_t sources)
{
	struct topology_cuts *c = topology_cuts_create(&n->t, n->bps);
	struct topology_cut cut;

	assert_non_null(c);
	for (uint32_t i = 0; i < sources; i++)
		for (uint32_t k = 0; k < n->t.host_count; k++)
			if (i != k)
				topology_cuts_add(c, i, k, BYTES);
	assert_int_equal(topology_cuts_slowest(c, &cut), 0);
	topology_cuts_free(c);
	topology_free(&n->t);
	return cut;
}

static void assert_cut(struct topology_cut c, uint32_t node, uint32_t hosts, uint64_t bytes, uint64_t bps)
{
	assert_int_equal(c.node, node);
	assert_int_equal(c.hosts, hosts);
	assert_int_equal(c.bytes, bytes);
	assert_int_equal(c.bps, bps);
}

TEST(nothing_crosses_no_cut)
{
	struct net n = net_of("star", (struct topology_params){.hosts = 4});

	assert_int_equal(slowest(&n, 0).bps, 0);
}

TEST(the_slowest_host_decides_where_switches_are_wide)
{
	struct net n = net_of("star", (struct topology_params){.hosts = 4});

	assert_cut(slowest(&n, 4), 0, 1, 3 * BYTES, 100 * GBPS);
	n = net_of("star", (struct topology_params){.hosts = 4});
	slow(&n, switch_of(&n, 2), 0, 3, 50 * GBPS);
	slow(&n, switch_of(&n, 2), 0, 2, 100 * GBPS);
	assert_cut(slowest(&n, 4), 2, 1, 3 * BYTES, 50 * GBPS);
	/* What it receives counts as well: of three. */
	n = net_of("star", (struct topology_params){.hosts = 4});
	assert_cut(slowest(&n, 3), 0, 1, 3 * BYTES, 100 * GBPS);
	n = net_of("fat-tree", (struct topology_params){.k = 4});
	assert_cut(slowest(&n, 16), 0, 1, 15 * BYTES, 100 * GBPS);
}

/* 2 hosts below each edge switch, which has 2 links up; 4 hosts and 4 links up in a pod. */
TEST(links_at_half_rate_or_down_limit_what_is_below_them)
{
	struct net n = net_of("fat-tree", (struct topology_params){.k = 4});

	slow(&n, switch_of(&n, 2), 2, 1, 50 * GBPS);
	assert_cut(slowest(&n, 16), 2, 2, 2 * 14 * BYTES, 150 * GBPS);
	n = net_of("fat-tree", (struct topology_params){.k = 4});
	slow(&n, switch_of(&n, 2), 2, 1, 0);
	assert_cut(slowest(&n, 16), 2, 2, 2 * 14 * BYTES, 100 * GBPS);
	/* Both aggregation switches of the second pod have a link up that is down: the pod has 2 of 4. */
	n = net_of("fat-tree", (struct topology_params){.k = 4});
	for (uint32_t i = n.t.host_count, pod = 0; i < n.t.node_count; i++)
		if (n.t.nodes[i].tier == 2 && pod++ / 2 == 1)
			slow(&n, i, 3, 1, 0);
	assert_cut(slowest(&n, 16), 4, 4, 4 * 12 * BYTES, 200 * GBPS);
}

TEST(an_oversubscribed_site_is_a_cut)
{
	struct net n = net_of("dumbbell", (struct topology_params){.hosts = 4});

	assert_cut(slowest(&n, 8), 0, 4, 4 * 4 * BYTES, 100 * GBPS);
}

/* Hosts at three switches in a row: the hosts of the first one or the last one, never of the middle one alone. */
TEST(cuts_in_a_row_of_switches_are_found)
{
	struct net n = net_of("parking-lot", (struct topology_params){.bottlenecks = 3});
	uint32_t hosts = n.t.host_count;
	struct topology_cut c = slowest(&n, hosts);

	/* Half of the switches, and so half of the hosts, are on either side of the link in the middle. */
	assert_true(c.hosts == hosts / 2);
	assert_int_equal(c.bytes, (uint64_t)(hosts / 2) * (hosts - hosts / 2) * BYTES);
	assert_int_equal(c.bps, 100 * GBPS);
}
