/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdio.h>

#include "net/topology/topology_build.h"
#include "net/topology/topology_hpcc.h"
#include "net/topology/topology_path.h"
#include "support/test.h"

enum { US = 1000000 };
#define GBPS 1000000000ull

static struct topology built(const char *kind, struct topology_params p)
{
	struct text_error err = {0};
	struct topology t;

	if (!p.delay_ps)
		p.delay_ps = TOPOLOGY_DELAY_DEFAULT;
	if (!p.fabric_delay_ps)
		p.fabric_delay_ps = TOPOLOGY_DELAY_DEFAULT;
	if (topology_build(&t, kind, &p, &err))
		fail_msg("%s: %s", kind, err.message);
	return t;
}

static uint32_t degree(const struct topology *t, uint32_t node)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < t->link_count; i++)
		n += t->links[i].a == node || t->links[i].b == node;
	return n;
}

static uint32_t nodes_of_tier(const struct topology *t, uint8_t tier)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < t->node_count; i++)
		n += t->nodes[i].tier == tier;
	return n;
}

static uint64_t longest_rtt_ps(const struct topology *t, uint64_t switch_latency_ps)
{
	struct topology_paths *p = topology_paths_create(t, 1000);
	uint64_t rtt;

	assert_non_null(p);
	assert_int_equal(topology_paths_longest_rtt_ps(p, switch_latency_ps, &rtt), 0);
	topology_paths_free(p);
	return rtt;
}

static struct topology_path path(const struct topology *t, uint32_t src, uint32_t dst)
{
	struct topology_paths *p = topology_paths_create(t, 1000);
	struct topology_path out;

	assert_non_null(p);
	assert_int_equal(topology_paths_get(p, src, dst, &out), 0);
	topology_paths_free(p);
	return out;
}

TEST(a_kind_has_the_nodes_and_links_its_name_promises)
{
	static const struct topology_long_link far[] = {{.delay_ps = 500 * US}, {.delay_ps = 501 * US}};
	static const struct {
		const char *kind;
		struct topology_params p;
		uint32_t hosts, switches, links, tiers;
	} rows[] = {
		{"star", {.hosts = 8}, 8, 1, 8, 1},
		{"star", {.hosts = 2}, 2, 1, 2, 1},
		{"dumbbell", {.hosts = 3}, 6, 2, 7, 1},
		{"parking-lot", {.bottlenecks = 3}, 8, 4, 11, 1},
		{"leaf-spine", {.leaves = 4, .hosts_per_leaf = 8, .spines = 2}, 32, 6, 40, 2},
		{"leaf-spine", {.leaves = 4, .hosts_per_leaf = 8, .spines = 2, .uplinks = 6}, 32, 6, 56, 2},
		{"fat-tree", {.k = 2}, 2, 5, 6, 3},
		{"fat-tree", {.k = 4}, 16, 20, 48, 3},
		{"fat-tree", {.k = 8}, 128, 80, 384, 3},
		{"fat-tree", {.k = 16}, 1024, 320, 3072, 3},
		{"hpcc", {0}, 320, 56, 480, 3},
		{"rail", {.hosts = 16, .nics = 8, .spines = 4}, 128, 12, 160, 2},
		{"rail", {.hosts = 16, .nics = 8, .spines = 4, .hosts_per_leaf = 4}, 128, 36, 256, 2},
		{"dragonfly", {.leaves = 4, .hosts_per_leaf = 2, .uplinks = 2}, 72, 36, 72 + 9 * 6 + 36, 1},
		{"dragonfly",
		 {.leaves = 4, .hosts_per_leaf = 2, .uplinks = 2, .groups = 3},
		 24,
		 12,
		 24 + 3 * 6 + 3 * 4,
		 1},
		{"dragonfly", {.leaves = 1, .hosts_per_leaf = 1, .uplinks = 1}, 2, 2, 3, 1},
		{"two-dc",
		 {.leaves = 2, .hosts_per_leaf = 4, .spines = 2, .long_links = far, .long_link_count = 2},
		 16,
		 10,
		 2 * (8 + 4 + 2) + 2,
		 3},
		{"two-dc",
		 {.site_kind = "fat-tree", .k = 4, .borders = 2, .long_links = far, .long_link_count = 2},
		 32,
		 44,
		 2 * (48 + 8) + 2,
		 4},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct topology t = built(rows[i].kind, rows[i].p);

		assert_int_equal(t.host_count, rows[i].hosts);
		assert_int_equal(t.node_count - t.host_count, rows[i].switches);
		assert_int_equal(t.link_count, rows[i].links);
		assert_int_equal(nodes_of_tier(&t, 0), rows[i].hosts);
		assert_true(nodes_of_tier(&t, (uint8_t)rows[i].tiers) > 0);
		assert_int_equal(nodes_of_tier(&t, (uint8_t)(rows[i].tiers + 1)), 0);
		for (uint32_t h = 0; h < t.host_count; h++)
			assert_int_equal(degree(&t, h), 1);

		/* The builder's tiers equal those computed from distances to hosts. */
		struct topology again = t;

		again.nodes = malloc(t.node_count * sizeof(*t.nodes));
		memcpy(again.nodes, t.nodes, t.node_count * sizeof(*t.nodes));
		assert_int_equal(topology_set_tiers(&again), 0);
		for (uint32_t n = 0; n < t.node_count; n++)
			assert_int_equal(again.nodes[n].tier, t.nodes[n].tier);
		free(again.nodes);
		topology_free(&t);
	}
}

TEST(every_switch_of_a_fat_tree_has_k_links)
{
	for (uint32_t k = 2; k <= 8; k += 2) {
		struct topology t = built("fat-tree", (struct topology_params){.k = k});

		for (uint32_t n = t.host_count; n < t.node_count; n++)
			assert_int_equal(degree(&t, n), k);
		topology_free(&t);
	}
}

TEST(a_fat_tree_core_reaches_every_pod_once)
{
	enum { K = 8, HOSTS = K * K * K / 4, EDGES = K * K / 2 };
	struct topology t = built("fat-tree", (struct topology_params){.k = K});

	for (uint32_t core = HOSTS + 2 * EDGES; core < t.node_count; core++) {
		uint32_t seen[K] = {0};

		for (uint32_t i = 0; i < t.link_count; i++)
			if (t.links[i].b == core)
				seen[(t.links[i].a - HOSTS - EDGES) / (K / 2)]++;
		for (int pod = 0; pod < K; pod++)
			assert_int_equal(seen[pod], 1);
	}
	topology_free(&t);
}

TEST(leaves_deal_their_uplinks_evenly)
{
	struct topology t = built(
		"leaf-spine", (struct topology_params){.leaves = 8, .hosts_per_leaf = 1, .spines = 4, .uplinks = 2});

	for (uint32_t spine = 16; spine < 20; spine++)
		assert_int_equal(degree(&t, spine), 4);
	topology_free(&t);
}

TEST(the_hpcc_tree_is_the_published_one)
{
	struct topology t = built("hpcc", (struct topology_params){0});
	uint64_t rtt = longest_rtt_ps(&t, 0);

	for (uint32_t i = 0; i < t.link_count; i++) {
		assert_int_equal(t.links[i].rate_bps, i < 320 ? 100 * GBPS : 400 * GBPS);
		assert_int_equal(t.links[i].delay_ps, US);
	}
	/* Host, 4 aggregation switches; 4 ToR, 4 core; 20 / 4 = 5 aggregation switches. */
	assert_int_equal(degree(&t, 320), 20);
	assert_int_equal(degree(&t, 340), 8);
	assert_int_equal(degree(&t, 360), 5);
	assert_int_equal(rtt, 12240000);
	assert_int_equal(topology_bdp_bytes(100 * GBPS, rtt), 153000);
	topology_free(&t);
}

TEST(base_rtt_counts_wire_twice_and_serialisation_once)
{
	static const struct {
		uint32_t src, dst, hops;
		uint64_t delay_us, serialise_ps, rate;
	} rows[] = {
		/* Same ToR, same pod, other pod of the HPCC tree. */
		{0, 1, 2, 2, 160000, 100 * GBPS},
		{0, 16, 4, 4, 160000 + 40000, 100 * GBPS},
		{0, 319, 6, 6, 160000 + 80000, 100 * GBPS},
		{319, 0, 6, 6, 160000 + 80000, 100 * GBPS},
	};
	struct topology t = built("hpcc", (struct topology_params){0});

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct topology_path p = path(&t, rows[i].src, rows[i].dst);

		assert_int_equal(p.hops, rows[i].hops);
		assert_int_equal(p.delay_ps, rows[i].delay_us * US);
		assert_int_equal(p.serialise_ps, rows[i].serialise_ps);
		assert_int_equal(p.rate_bps, rows[i].rate);
		assert_int_equal(topology_path_base_rtt_ps(&p, 0), 2 * rows[i].delay_us * US + rows[i].serialise_ps);
		assert_int_equal(topology_path_base_rtt_ps(&p, 7),
				 2 * rows[i].delay_us * US + rows[i].serialise_ps + 2 * (rows[i].hops - 1) * 7);
	}
	topology_free(&t);
}

TEST(the_longest_rtt_is_that_of_the_worst_pair)
{
	static const struct topology_long_link far[] = {{.delay_ps = 50 * US, .rate_bps = 10 * GBPS},
							{.delay_ps = 60 * US}};
	static const struct {
		const char *kind;
		struct topology_params p;
	} rows[] = {
		{"star", {.hosts = 3, .delay_ps = 7}},
		{"dumbbell", {.hosts = 2, .fabric_rate_bps = 10 * GBPS, .fabric_delay_ps = 5 * US}},
		{"parking-lot", {.bottlenecks = 4}},
		{"fat-tree", {.k = 4, .fabric_rate_bps = 400 * GBPS}},
		{"two-dc", {.leaves = 2, .hosts_per_leaf = 2, .spines = 2, .long_links = far, .long_link_count = 2}},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct topology t = built(rows[i].kind, rows[i].p);
		struct topology_paths *paths = topology_paths_create(&t, 1000);
		uint64_t worst = 0, worst_slow = 0;

		/* One host farther away than others, so that hosts of one switch differ. */
		t.links[0].delay_ps += 12345;
		for (uint32_t a = 0; a < t.host_count; a++)
			for (uint32_t b = 0; b < t.host_count; b++) {
				struct topology_path p;

				if (a == b)
					continue;
				assert_int_equal(topology_paths_get(paths, a, b, &p), 0);
				if (topology_path_base_rtt_ps(&p, 0) > worst)
					worst = topology_path_base_rtt_ps(&p, 0);
				/* Switches that take longer than all wires: now the hops decide. */
				if (topology_path_base_rtt_ps(&p, 100 * US) > worst_slow)
					worst_slow = topology_path_base_rtt_ps(&p, 100 * US);
			}
		assert_int_equal(longest_rtt_ps(&t, 0), worst);
		assert_int_equal(longest_rtt_ps(&t, 100 * US), worst_slow);
		topology_paths_free(paths);
		topology_free(&t);
	}
}

/* A path's links join end to end, hosts are only at its ends, and the sums are the path's. */
TEST(the_links_of_a_path_are_the_path)
{
	static const struct topology_long_link far[] = {{.delay_ps = 50 * US, .rate_bps = 10 * GBPS},
							{.delay_ps = 60 * US}};
	static const struct {
		const char *kind;
		struct topology_params p;
	} rows[] = {
		{"star", {.hosts = 3}},
		{"parking-lot", {.bottlenecks = 4}},
		{"fat-tree", {.k = 4}},
		{"two-dc", {.leaves = 2, .hosts_per_leaf = 2, .spines = 2, .long_links = far, .long_link_count = 2}},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct topology t = built(rows[i].kind, rows[i].p);
		struct topology_paths *paths = topology_paths_create(&t, 1000);

		for (uint32_t a = 0; a < t.host_count; a++)
			for (uint32_t b = 0; b < t.host_count; b++) {
				uint32_t links[16], at = a;
				uint64_t delay = 0, rate = UINT64_MAX;
				struct topology_path p;
				int64_t n = topology_paths_links(paths, a, b, links, 16);

				if (a == b) {
					assert_int_equal(n, -EINVAL);
					continue;
				}
				assert_int_equal(topology_paths_get(paths, a, b, &p), 0);
				assert_int_equal(n, p.hops);
				for (int64_t k = 0; k < n; k++) {
					const struct topology_link *l = &t.links[links[k]];

					assert_true(l->a == at || l->b == at);
					at = l->a == at ? l->b : l->a;
					assert_int_equal(at < t.host_count, k + 1 == n);
					delay += l->delay_ps;
					rate = l->rate_bps < rate ? l->rate_bps : rate;
				}
				assert_int_equal(at, b);
				assert_int_equal(delay, p.delay_ps);
				assert_int_equal(rate, p.rate_bps);
				links[1] = 4242;
				assert_int_equal(topology_paths_links(paths, a, b, links, 1), n);
				assert_int_equal(links[1], 4242);
			}
		topology_paths_free(paths);
		topology_free(&t);
	}
}

TEST(of_unequal_long_links_the_shorter_is_the_base_path)
{
	static const struct topology_long_link far[] = {{.delay_ps = 600ull * US}, {.delay_ps = 500ull * US}};
	struct topology t =
		built("two-dc",
		      (struct topology_params){
			      .leaves = 1, .hosts_per_leaf = 2, .spines = 1, .long_links = far, .long_link_count = 2});
	struct topology_path p = path(&t, 0, 2);

	/* Host, leaf, spine, border, border, spine, leaf, host. */
	assert_int_equal(p.hops, 7);
	assert_int_equal(p.delay_ps, 506ull * US);
	assert_int_equal(t.nodes[0].site, 0);
	assert_int_equal(t.nodes[2].site, 1);
	topology_free(&t);
}

TEST(long_links_are_dealt_to_the_borders)
{
	static const struct topology_long_link far[5] = {{.delay_ps = US}};
	struct topology t =
		built("two-dc",
		      (struct topology_params){
			      .site_kind = "star", .hosts = 2, .borders = 2, .long_links = far, .long_link_count = 5});
	/* Switches: star, two borders, and the same again. */
	static const uint32_t degrees[] = {4, 4, 3, 4, 4, 3};

	for (uint32_t i = 0; i < 6; i++)
		assert_int_equal(degree(&t, 4 + i), degrees[i]);
	topology_free(&t);
}

TEST(hosts_with_several_links_have_paths_but_do_not_forward)
{
	/* Host 1 has a link to both switches of the others, which are three links apart. */
	static const char text[] = "7 4 7\n3 4 5 6\n"
				   "0 3 100Gbps 1us 0\n1 3 100Gbps 1us 0\n1 4 25Gbps 2us 0\n"
				   "2 4 100Gbps 1us 0\n3 5 100Gbps 1us 0\n5 6 100Gbps 1us 0\n"
				   "6 4 100Gbps 1us 0\n";
	struct text_error err;
	struct topology t;

	assert_int_equal(topology_read_hpcc(&t, text, sizeof(text) - 1, &err), 0);

	struct topology_path p = path(&t, 0, 2);

	assert_int_equal(p.hops, 5);
	p = path(&t, 0, 1);
	assert_int_equal(p.hops, 2);
	p = path(&t, 1, 2);
	assert_int_equal(p.hops, 2);
	assert_int_equal(p.rate_bps, 25 * GBPS);
	assert_int_equal(p.delay_ps, 3 * US);
	topology_free(&t);
}

TEST(two_hosts_and_a_wire_are_a_network)
{
	static const char text[] = "2 0 1\n0 1 10Gbps 1us 0.5\n";
	struct text_error err;
	struct topology t;

	assert_int_equal(topology_read_hpcc(&t, text, sizeof(text) - 1, &err), 0);
	assert_int_equal(t.links[0].loss_ppb, 500000000);
	assert_int_equal(longest_rtt_ps(&t, 0), 2 * US + 800000);
	topology_free(&t);
}

TEST(impossible_parameters_are_refused_with_the_reason)
{
	static const struct topology_long_link slow = {.rate_bps = 1}, slower = {.delay_ps = 2000000000000};
	static const struct {
		const char *kind;
		struct topology_params p;
		const char *says;
	} rows[] = {
		{"ring", {0}, "allowed are star"},
		{"star", {.hosts = 1}, "hosts is 1; allowed are 2 to"},
		{"star", {.hosts = UINT32_MAX}, "hosts is 4294967295"},
		{"star", {.hosts = 2, .rate_bps = 1}, "rate 1 bit/s; allowed are"},
		{"star", {.hosts = 2, .rate_bps = UINT64_MAX}, "allowed are"},
		{"star", {.hosts = 2, .delay_ps = 2000000000000}, "delay 2000000000000 ps"},
		{"star", {.hosts = 2, .loss_ppb = UINT32_MAX}, "loss 4294967295"},
		{"dumbbell", {0}, "hosts (of each side) is 0"},
		{"dumbbell", {.hosts = UINT32_MAX}, "allowed are 1 to"},
		{"parking-lot", {0}, "bottlenecks is 0"},
		{"leaf-spine", {.leaves = 1 << 20, .hosts_per_leaf = 1 << 20, .spines = 1}, "nodes and"},
		{"leaf-spine", {.leaves = 1, .hosts_per_leaf = 2}, "spines is 0"},
		{"leaf-spine", {.leaves = 1, .hosts_per_leaf = 1, .spines = 1}, "1 hosts among"},
		/* Uplinks that reach only one of the spines leave the other without a link. */
		{"leaf-spine", {.leaves = 1, .hosts_per_leaf = 2, .spines = 2, .uplinks = 1}, "has no link"},
		{"fat-tree", {.k = 5}, "even"},
		{"fat-tree", {.k = 130}, "allowed are 2 to 128"},
		{"rail", {.hosts = 4, .spines = 1}, "nics (of each node) is 0"},
		{"two-dc", {.leaves = 1, .hosts_per_leaf = 1, .spines = 1}, "long links is 0"},
		{"dragonfly", {.leaves = 4, .hosts_per_leaf = 2}, "global links (of each router) is 0"},
		{"dragonfly",
		 {.leaves = 4, .hosts_per_leaf = 2, .uplinks = 2, .groups = 10},
		 "groups is 10; allowed are 2 to 9"},
		{"two-dc", {.site_kind = "dragonfly"}, "cannot be the kind of a site"},
		{"two-dc", {.site_kind = "two-dc"}, "cannot be the kind of a site"},
		{"two-dc", {.site_kind = "file"}, "cannot be the kind of a site"},
		{"two-dc", {.site_kind = "x"}, "allowed are star"},
		{"two-dc",
		 {.site_kind = "star", .hosts = 2, .long_links = &slow, .long_link_count = 1},
		 "rate 1 bit/s"},
		{"two-dc",
		 {.site_kind = "star", .hosts = 2, .long_links = &slower, .long_link_count = 1},
		 "delay 2000000000000"},
		{"two-dc",
		 {.site_kind = "star", .hosts = 2, .long_links = &slow, .long_link_count = 1, .borders = 2},
		 "borders is 2; allowed are 1 to 1"},
		{"file", {0}, "the text ends where the number of nodes"},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct text_error err = {0};
		struct topology t = {.host_count = 77};

		assert_int_equal(topology_build(&t, rows[i].kind, &rows[i].p, &err), -EINVAL);
		if (!strstr(err.message, rows[i].says))
			fail_msg("row %zu: '%s' does not say '%s'", i, err.message, rows[i].says);
		assert_int_equal(t.host_count, 77);
	}
}

TEST(every_kind_that_is_listed_is_known)
{
	for (int i = 0; topology_kinds[i]; i++) {
		struct topology_params p = topology_params_default();
		struct text_error err = {0};
		struct topology t;

		if (topology_build(&t, topology_kinds[i], &p, &err) == 0)
			topology_free(&t);
		else
			assert_null(strstr(err.message, "no topology is called"));
	}
}

TEST(a_host_is_found_by_its_number)
{
	static const char text[] = "5 2 4\n0 3\n1 0 1G 0 0\n2 0 1G 0 0\n4 3 1G 0 0\n0 3 1G 0 0\n";
	static const struct {
		uint32_t number;
		int host;
	} rows[] = {{0, -1}, {1, 0}, {2, 1}, {3, -1}, {4, 2}, {5, -1}};
	struct text_error err;
	struct topology t;

	assert_int_equal(topology_read_hpcc(&t, text, sizeof(text) - 1, &err), 0);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		uint32_t host = 99;

		assert_int_equal(topology_host(&t, rows[i].number, &host), rows[i].host >= 0);
		if (rows[i].host >= 0)
			assert_int_equal(host, rows[i].host);
	}
	assert_int_equal(t.nodes[3].number, 0);
	assert_int_equal(t.nodes[4].number, 3);
	assert_int_equal(t.nodes[3].tier, 1);
	topology_free(&t);
}

/* The tree in the HPCC simulator's own file equals the one that the builder builds. */
TEST(the_hpcc_text_and_the_builder_agree)
{
	struct topology want = built("hpcc", (struct topology_params){0}), got;
	char *text = malloc(65536);
	struct text_error err = {0};
	size_t n = (size_t)sprintf(text, "%u %u %u\n", want.node_count, want.node_count - want.host_count,
				   want.link_count);

	for (uint32_t s = want.host_count; s < want.node_count; s++)
		n += (size_t)sprintf(text + n, "%u ", s);
	for (uint32_t i = 0; i < want.link_count; i++)
		n += (size_t)sprintf(text + n, "\n%u %u %lluGbps 1000ns 0.000000", want.links[i].a, want.links[i].b,
				     (unsigned long long)(want.links[i].rate_bps / GBPS));
	if (topology_read_hpcc(&got, text, n, &err))
		fail_msg("line %u: %s", err.line, err.message);
	assert_int_equal(got.host_count, want.host_count);
	assert_int_equal(got.node_count, want.node_count);
	assert_memory_equal(got.nodes, want.nodes, want.node_count * sizeof(*want.nodes));
	for (uint32_t i = 0; i < want.link_count; i++) {
		assert_int_equal(got.links[i].a, want.links[i].a);
		assert_int_equal(got.links[i].b, want.links[i].b);
		assert_int_equal(got.links[i].rate_bps, want.links[i].rate_bps);
		assert_int_equal(got.links[i].delay_ps, want.links[i].delay_ps);
	}
	free(text);
	topology_free(&want);
	topology_free(&got);
}

TEST(a_wrong_hpcc_text_names_line_and_reason)
{
	static const struct {
		const char *text;
		uint32_t line;
		const char *says;
	} rows[] = {
		{"", 1, "the text ends where the number of nodes should be"},
		{"3", 1, "the number of switches"},
		{"3 1 x", 1, "'x' for the number of links; allowed are 0 to"},
		{"3 4 2 0 1 2 3 4 5 6", 1, "'4' for the number of switches; allowed are 0 to 3"},
		{"1048577 1 1", 1, "allowed are 0 to 1048576"},
		{"-3 1 2", 1, "'-3'"},
		{"1000 1 2\n", 1, "cannot be"},
		{"3 1 4000000\n2", 1, "cannot be"},
		{"3 1 2\n3\n0 2 1G 0 0 1 2 1G 0 0", 2, "'3' for a switch's number; allowed are 0 to 2"},
		{"3 2 2\n2 2\n0 2 1G 0 0 1 2 1G 0 0", 2, "switch 2 is named twice"},
		{"3 1 2\n2\n0 2 1G 0 0\n1 1 1G 0 0", 4, "a link from node 1 to itself"},
		{"3 1 2\n2\n0 2 1G 0 0\n1 3 1G 0 0", 4, "'3' for a link's end"},
		{"3 1 2\n2\n0 2 1G 0 0\n1 2 0Gbps 0 0", 4, "'0Gbps' for a rate"},
		{"3 1 2\n2\n0 2 1G 0 0\n1 2 9Tbps 0 0", 4, "allowed are 1Mbps to 8Tbps"},
		{"3 1 2\n2\n0 2 1G 0 0\n1 2 1Gx 0 0", 4, "'1Gx' for a rate"},
		{"3 1 2\n2\n0 2 1G 0 0\n1 2 1G 2s 0", 4, "'2s' for a delay"},
		{"3 1 2\n2\n0 2 1G 0 0\n1 2 1G -1ns 0", 4, "'-1ns' for a delay"},
		{"3 1 2\n2\n0 2 1G 0 0\n1 2 1G 0 1.5", 4, "'1.5' for an error rate"},
		{"3 1 2\n2\n0 2 1G 0 0\n1 2 1G 0", 4, "the text ends within a link"},
		{"4 2 3\n2 3\n0 2 1G 0 0\n1 3 1G 0 0\n1 3 1G 0 0", 0, "not connected"},
		{"3 0 2\n0 1 1G 0 0\n1 2 1G 0 0 ", 0, "not connected"},
		{"4 2 3\n2 3\n0 2 1G 0 0\n1 2 1G 0 0\n1 2 1G 0 0", 0, "switch 3 has no link"},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct text_error err = {0};
		struct topology t;

		assert_int_equal(topology_read_hpcc(&t, rows[i].text, strlen(rows[i].text), &err), -EINVAL);
		if (!strstr(err.message, rows[i].says) || err.line != rows[i].line)
			fail_msg("row %zu: line %u: %s", i, err.line, err.message);
	}
}

TEST(check_refuses_what_no_builder_makes)
{
	struct topology_node nodes[3] = {{.number = 4}, {.number = 5}, {.number = 6, .tier = 1}};
	struct topology_link links[2] = {{.a = 0, .b = 2, .rate_bps = GBPS}, {.a = 1, .b = 2, .rate_bps = GBPS}};
	struct topology t = {nodes, links, 2, 3, 2, 0};
	struct text_error err;

	assert_int_equal(topology_check(&t, &err), 0);
	nodes[1].number = 4;
	assert_int_equal(topology_check(&t, &err), -EINVAL);
	nodes[1].number = 6;
	assert_int_equal(topology_check(&t, &err), -EINVAL);
	assert_non_null(strstr(err.message, "two nodes have the number 6"));
	nodes[1].number = 5;
	links[1].b = 3;
	assert_int_equal(topology_check(&t, &err), -EINVAL);
	links[1].b = 2;
	t.link_count = 0;
	assert_int_equal(topology_check(&t, &err), -EINVAL);
	t.link_count = 2;
	assert_int_equal(topology_check(&t, NULL), 0);
}
