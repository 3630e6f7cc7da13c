/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An incast with default settings: the receiver gives its senders shares before they fill the switch's buffer. Without
 * shares they do fill it.
 */
#include <stdio.h>

#include "support/sim_run.h"
#include "support/test.h"

enum { SEEDS = 5 };

/* Their first flights, a packet on each of 16 paths, take a fifth of what the buffer has for one port. */
static const char text[] = "[topology]\nkind = star\nhosts = 81\n[link]\nrate = 100Gbps\ndelay = 2us\n"
			   "[switch]\nbuffer = 16MB\n[transport]\npayload = 1000B\n"
			   "[workload.incast]\nkind = incast\nfan_in = 80\nsize = 200KB\n"
			   "[output]\ngoodput_window = none\n";

static uint64_t longest_queue(const struct results *r)
{
	uint64_t most = 0;

	for (uint32_t i = 0; i < r->port_count; i++)
		most = r->ports[i].queue_bytes_max > most ? r->ports[i].queue_bytes_max : most;
	return most;
}

static void run(struct sim_run *run, const char *shares, unsigned seed)
{
	char setting[40], number[40];
	const char *sets[] = {setting, number, NULL};

	snprintf(setting, sizeof(setting), "cc.rxshare=%s", shares);
	snprintf(number, sizeof(number), "run.seed=%u", seed);
	sim_run_do(run, text, sets);
}

TEST(incast_gets_shares_before_its_queue_is_long)
{
	struct sim_run without;

	run(&without, "off", 1);
	assert_true(sim_dropped(&without) > 0);
	for (unsigned seed = 1; seed <= SEEDS; seed++) {
		struct sim_run with;

		run(&with, "crowd", seed);
		assert_int_equal(sim_dropped(&with), 0);
		assert_true(longest_queue(&with.results) < longest_queue(&without.results) / 2);
		sim_run_free(&with);
	}
	sim_run_free(&without);
}
