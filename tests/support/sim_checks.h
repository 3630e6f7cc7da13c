/* SPDX-License-Identifier: BSD-2-Clause */
/* Functions for tests of the simulated network. */
#pragma once

#include "support/sim_flows.h"
#include "support/sim_trees.h"
#include "support/test.h"

#define G100 UINT64_C(100000000000)
#define US   UINT64_C(1000000)

/* Takes the topology. */
static inline struct network *must_create(struct topology *t, const struct network_config *config)
{
	char error[NETWORK_ERROR_BYTES];
	struct network *net = network_create(t, config, error);

	if (!net)
		print_message("%s\n", error);
	assert_non_null(net);
	tree_free(t);
	return net;
}

/*
 * A test on `net`, a switch with so many links of 100 Gbit/s, whose `hosts` send nothing yet. What follows are changes
 * to `config`, the default configuration.
 */
#define STAR_TEST(name, count, ...)                                          \
	static void name##_on(struct network *net, struct flow_host *hosts); \
	TEST(name)                                                           \
	{                                                                    \
		struct network_config config;                                \
		struct topology t;                                           \
                                                                             \
		network_config_init(&config);                                \
		__VA_ARGS__;                                                 \
		tree_star(&t, count, G100, US);                              \
		struct network *net = must_create(&t, &config);              \
		struct flow_host *hosts = flow_hosts(net, count);            \
                                                                             \
		name##_on(net, hosts);                                       \
		network_destroy(net);                                        \
		free(hosts);                                                 \
	}                                                                    \
	static void name##_on(struct network *net, struct flow_host *hosts)

static inline void must_end(struct network *net)
{
	enum network_stop stop = network_run(net, NETWORK_NEVER_PS, UINT64_MAX);

	if (stop == NETWORK_BROKEN)
		print_message("%s\n", network_fault(net));
	assert_int_equal(stop, NETWORK_IDLE);
}

static inline void must_be_empty(struct network *net)
{
	struct network_counts counts;

	network_count(net, &counts);
	assert_int_equal(counts.inside, 0);
	assert_int_equal(counts.pending, 0);
	assert_int_equal(network_packets(net)->lent, 0);
	assert_null(network_check(net));
}

static inline uint64_t drops_of(const struct network *net, enum network_drop reason)
{
	struct network_drops drops;
	uint64_t sum = 0;

	network_count_drops(net, &drops);
	for (unsigned class = 0; class < PACKET_CLASSES; class ++)
		sum += drops.packets[class][reason];
	return sum;
}

static inline uint64_t drops_of_all(const struct network *net)
{
	struct network_counts counts;

	network_count(net, &counts);
	return counts.dropped;
}

static inline void finish(struct network *net, struct flow_host *hosts)
{
	network_destroy(net);
	free(hosts);
}
