/* SPDX-License-Identifier: BSD-2-Clause */
/* Dragonflies: how long ways are, and a pattern for which minimal ones are the worst. */

#include <stdio.h>

#include "support/sim_run.h"
#include "support/test.h"

#define NS UINT64_C(1000)

/* 9 groups of 4 routers with 2 hosts and 2 global links each: 72 hosts, one link between each two groups. */
#define DRAGONFLY                                                                                                    \
	"[topology]\nkind = dragonfly\nhosts = 2\nrouters = 4\nglobals = 2\n[link]\nrate = 100Gbps\ndelay = 500ns\n" \
	"[transport]\nprotocol = rocev2\nwindow = none\n[cc]\nalgorithm = none\n[workload.w]\nkind = flow\n"

enum { GROUPS = 9, ROUTERS = 4, HOSTS = 2, GROUP_HOSTS = ROUTERS * HOSTS };

/* The router of group g that has the link to group `to`. */
static uint32_t gateway(uint32_t g, uint32_t to)
{
	return (to > g ? to - 1 : to) / 2;
}

/* Links from host to host: two, and those between routers, of which one at most is global. */
static uint32_t minimal_links(uint32_t src, uint32_t dst)
{
	uint32_t g = src / GROUP_HOSTS, to = dst / GROUP_HOSTS;
	uint32_t from = src / HOSTS % ROUTERS, goal = dst / HOSTS % ROUTERS;

	if (g == to)
		return 2 + (from != goal);
	return 3 + (from != gateway(g, to)) + (goal != gateway(to, g));
}

/* A packet's hops from one host to another one, and how long a message of one packet takes. */
static uint64_t hops(uint32_t src, uint32_t dst, const char *const *more, struct sim_run *run)
{
	const char *sets[8] = {"workload.w.size=4096B"};
	char senders[64], receivers[64];
	size_t n = 1;

	snprintf(senders, sizeof(senders), "workload.w.senders=%u", src);
	snprintf(receivers, sizeof(receivers), "workload.w.receivers=%u", dst);
	sets[n++] = senders;
	sets[n++] = receivers;
	for (; more && *more; more++)
		sets[n++] = *more;
	sim_run_do(run, DRAGONFLY, sets);
	assert_false(run->results.partial);
	assert_int_equal(run->results.packets, 2);
	return run->results.packet_hops;
}

TEST(minimal_ways_cross_between_groups_once)
{
	uint32_t longest = 0;

	for (uint32_t dst = 1; dst < GROUPS * GROUP_HOSTS; dst++) {
		uint32_t links = minimal_links(0, dst);
		struct sim_run run;

		/* The packet and its acknowledgement. */
		assert_int_equal(hops(0, dst, NULL, &run), 2 * links);
		assert_int_equal(run.results.flows[0].fct_ps, run.results.flows[0].ideal_ps);
		longest = links > longest ? links : longest;
		if (dst == 1) {
			assert_int_equal(run.results.hosts, GROUPS * GROUP_HOSTS);
			assert_int_equal(run.results.switches, GROUPS * ROUTERS);
			assert_int_equal(run.results.links, 72 + GROUPS * 6 + GROUPS * (GROUPS - 1) / 2);
		}
		sim_run_free(&run);
	}
	assert_int_equal(longest, 5);
}

TEST(valiant_goes_by_a_third_group)
{
	static const char *const valiant[] = {"switch.routing=valiant", NULL};

	for (uint32_t dst = 2; dst < GROUPS * GROUP_HOSTS; dst += 7) {
		struct sim_run run;
		uint64_t n = hops(0, dst, valiant, &run);
		uint32_t links = minimal_links(0, dst);

		if (dst < GROUP_HOSTS)
			assert_int_equal(n, 2 * links);
		/* Two global links, a local one in each of three groups at most, and both hosts'. */
		else
			assert_in_range(n, 2 * 4, 2 * 7);
		assert_true(dst < GROUP_HOSTS || n > links + 4);
		sim_run_free(&run);
	}
}

TEST(ugal_alone_is_minimal)
{
	static const char *const ugal[] = {"switch.routing=ugal", NULL};

	for (uint32_t dst = 2; dst < GROUPS * GROUP_HOSTS; dst += 7) {
		struct sim_run run;

		assert_int_equal(hops(0, dst, ugal, &run), 2 * minimal_links(0, dst));
		sim_run_free(&run);
	}
}

/* The mean completion. Hosts of each group send to those of the next one, all over one link; or a permutation. */
static uint64_t mean_ps(const char *routing, bool adversarial)
{
	char text[1024], set[64];
	const char *sets[] = {set,
			      "transport.protocol=veroce",
			      "cc.algorithm=swift",
			      "transport.window=auto",
			      adversarial ? NULL : "workload.w.kind=permutation",
			      NULL};
	uint32_t hosts = GROUPS * GROUP_HOSTS;
	struct sim_run run;
	uint64_t ps = 0;

	snprintf(set, sizeof(set), "switch.routing=%s", routing);
	snprintf(text, sizeof(text), "%ssize = 400KB\n", DRAGONFLY);
	if (adversarial)
		snprintf(text + strlen(text), sizeof(text) - strlen(text), "senders = 0-%u\nreceivers = %u-%u,0-%u\n",
			 hosts - 1, GROUP_HOSTS, hosts - 1, GROUP_HOSTS - 1);
	sim_run_do(&run, text, sets);
	assert_false(run.results.partial);
	assert_int_equal(run.results.flows_done, hosts);
	for (uint32_t i = 0; i < hosts; i++)
		ps += run.results.flows[i].fct_ps / hosts;
	sim_run_free(&run);
	return ps;
}

TEST(ugal_follows_the_better_of_minimal_and_valiant)
{
	uint64_t minimal_ps = mean_ps("ecmp", true), valiant_ps = mean_ps("valiant", true),
		 ugal_ps = mean_ps("ugal", true);

	print_message("adversarial: minimal %lu us, Valiant %lu, UGAL %lu\n", minimal_ps / 1000000,
		      valiant_ps / 1000000, ugal_ps / 1000000);
	/* Eight hosts share one link: alone a flow takes an eighth. */
	assert_true(minimal_ps > 4 * 32000 * NS);
	assert_true(valiant_ps < minimal_ps * 6 / 10);
	assert_true(ugal_ps < minimal_ps * 8 / 10);
	minimal_ps = mean_ps("ecmp", false);
	valiant_ps = mean_ps("valiant", false);
	ugal_ps = mean_ps("ugal", false);
	print_message("permutation: minimal %lu us, Valiant %lu, UGAL %lu\n", minimal_ps / 1000000,
		      valiant_ps / 1000000, ugal_ps / 1000000);
	assert_true(valiant_ps > minimal_ps);
	assert_true(ugal_ps < minimal_ps * 11 / 10);
}

TEST(a_group_whose_link_is_down_is_reached_by_a_third_one)
{
	struct sim_run run;

	/* The first routers of both groups have the link between them. */
	sim_run_do(&run,
		   DRAGONFLY
		   "senders = 0\nreceivers = 8\nsize = 4096B\n[failure.x]\nlink = 72-76\n[switch]\nt_conv = 0\n",
		   NULL);
	assert_false(run.results.partial);
	assert_in_range(run.results.packet_hops, 2 * 4, 2 * 7);
	sim_run_free(&run);
}
