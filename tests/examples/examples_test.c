/* SPDX-License-Identifier: BSD-2-Clause */
/* The examples have the effects that docs/simulator.md describes. */
#include <stdio.h>

#include "experiment.h"
#include "policies.h"
#include "support/test.h"

static void print(const char *what, const struct experiment *e)
{
	printf("%-24s last %.1f us, queue %u bytes at most, short %.1f %% of the time, %llu marks, %llu again\n", what,
	       (double)e->last_ps / 1e6, e->queue_bytes_max, 100.0 * (double)e->short_ps / (double)e->time_ps,
	       (unsigned long long)e->marked_packets, (unsigned long long)e->retransmits);
}

static uint32_t to_host_0(uint32_t from, uint32_t hosts)
{
	return 0;
}

/* Two long flows into host 0, whose window would fill any queue. */
static void two_to_one(struct experiment *e)
{
	experiment_init(e);
	e->topology.hosts = 3;
	e->to = to_host_0;
	e->bytes = 20000000;
	e->watched_link = 0;
}

TEST(phantom_queues_keep_the_real_one_short)
{
	const struct phantom phantom = {.drain_ppb = 950000000, .threshold_bytes = 20000};
	const struct marking_policy policy = phantom_policy(&phantom);
	struct experiment without, with;
	struct nudge nudge;
	/* 40 MB in packets of 1024 bytes and 82 around them. */
	uint64_t ideal_ps = UINT64_C(40000000) * (1024 + 82) / 1024 * 80;

	nudge_params(&nudge);
	two_to_one(&without);
	without.host.nic.transport.cc.params = &nudge.params;
	assert_true(experiment_run(&without));
	print("no marks", &without);

	two_to_one(&with);
	with.host.nic.transport.cc.params = &nudge.params;
	with.network.marking_policy = &policy;
	assert_true(experiment_run(&with));
	print("phantom queue, nudge", &with);

	assert_int_equal(without.marked_packets, 0);
	assert_true(without.queue_bytes_max > 300000);
	assert_true(without.short_ps < without.time_ps / 10);
	assert_true(with.marked_packets > 100);
	assert_true(with.queue_bytes_max < 20000);
	/* It costs the share that the phantom queue withholds, and a little more. */
	assert_true(with.short_ps > with.time_ps / 2);
	assert_true(with.last_ps > ideal_ps * 100 / 95);
	assert_true(with.last_ps < ideal_ps * 100 / 85);
	assert_int_equal(with.retransmits, 0);
}

/* The same block serves a path of veRoCE, which counts marks by itself. */
TEST(nudge_serves_veroce_too)
{
	const struct phantom phantom = {.drain_ppb = 950000000, .threshold_bytes = 20000};
	const struct marking_policy policy = phantom_policy(&phantom);
	struct experiment without, with;
	struct nudge nudge;

	nudge_params(&nudge);
	two_to_one(&without);
	without.host.nic.transport.protocol = PROTOCOL_VEROCE;
	without.host.nic.transport.cc.params = &nudge.params;
	assert_true(experiment_run(&without));
	print("veRoCE, no marks", &without);
	two_to_one(&with);
	with.host.nic.transport.protocol = PROTOCOL_VEROCE;
	with.host.nic.transport.cc.params = &nudge.params;
	with.network.marking_policy = &policy;
	assert_true(experiment_run(&with));
	print("veRoCE, phantom, nudge", &with);
	assert_true(with.marked_packets > 100);
	/* The first windows stand in the queue once; then it is short. */
	assert_true(without.short_ps < without.time_ps / 10);
	assert_true(with.short_ps > with.time_ps / 2);
}

/* Host i of leaf l to host i of the next leaf. */
static uint32_t to_next_leaf(uint32_t from, uint32_t hosts)
{
	return (from + 8) % hosts;
}

static void leaves(struct experiment *e)
{
	experiment_init(e);
	e->kind = "leaf-spine";
	e->topology.leaves = 4;
	e->topology.hosts_per_leaf = 8;
	e->topology.spines = 8;
	e->to = to_next_leaf;
	e->bytes = 2000000;
	/* Packets may overtake each other when a flow moves, which is harmless for veRoCE. */
	e->host.nic.transport.protocol = PROTOCOL_VEROCE;
	e->host.nic.transport.paths = 1;
}

TEST(sticky_flows_part_where_hashes_collide)
{
	const struct sticky sticky = {.margin_bytes = 20000};
	const struct routing_policy policy = sticky_policy(&sticky);
	struct experiment ecmp, moved;

	leaves(&ecmp);
	assert_true(experiment_run(&ecmp));
	print("ECMP", &ecmp);
	leaves(&moved);
	moved.network.routing_policy = &policy;
	assert_true(experiment_run(&moved));
	print("sticky", &moved);
	assert_true(moved.last_ps < ecmp.last_ps * 2 / 3);
}

TEST(equal_runs_are_equal)
{
	const struct sticky sticky = {.margin_bytes = 20000};
	const struct routing_policy policy = sticky_policy(&sticky);
	struct experiment a, b;

	leaves(&a);
	a.network.routing_policy = &policy;
	b = a;
	assert_true(experiment_run(&a));
	assert_true(experiment_run(&b));
	assert_int_equal(a.last_ps, b.last_ps);
	assert_int_equal(a.queue_bytes_max, b.queue_bytes_max);
}

static uint32_t never_below(const void *parameters, void *state, const struct routing_question *q,
			    const struct packet *p)
{
	return UINT32_MAX;
}

TEST(a_policy_that_answers_nonsense_does_no_harm)
{
	const struct routing_policy policy = {.choose = never_below};
	struct experiment e;

	leaves(&e);
	e.bytes = 10000;
	e.network.check = true;
	e.network.routing_policy = &policy;
	assert_true(experiment_run(&e));
}
