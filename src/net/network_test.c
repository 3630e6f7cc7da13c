/* SPDX-License-Identifier: BSD-2-Clause */
/* The plain network: times that can be worked out by hand, refusals, and the same run twice. */

#include "net/network.h"
#include "support/sim_checks.h"
#include "support/test.h"

/*
 * 1000 bytes at 100 Gbit/s take 80 ns; two hops of 1 us; the last packet is sent behind n - 1
 * others.
 */
STAR_TEST(a_flow_takes_as_long_as_its_bytes, 2, config = (struct network_config){.switch_latency_ps = 600000})
{
	flow_start(&hosts[0], 1, 50, 1000);
	must_end(net);
	assert_int_equal(hosts[1].got, 50);
	assert_int_equal(hosts[1].last_ps, 50 * 80000 + US + 600000 + 80000 + US);
	must_be_empty(net);
}

TEST(hosts_back_to_back_need_no_switch)
{
	struct network_config config = {0};
	struct topology t;

	tree_new(&t, 2, 2, 1);
	tree_link(&t, 0, 1, 3 * G100, 7);
	struct network *net = must_create(&t, &config);
	struct flow_host *hosts = flow_hosts(net, 2);

	flow_start(&hosts[1], 0, 1, 3000);
	must_end(net);
	assert_int_equal(hosts[0].last_ps, 80000 + 7);
	finish(net, hosts);
}

/* Three senders, room for ten packets beside the one being sent. */
STAR_TEST(what_does_not_fit_is_dropped, 4, config = (struct network_config){.port_queue_bytes = 10500})
{
	struct network_counts counts;

	for (uint32_t i = 1; i < 4; i++)
		flow_start(&hosts[i], 0, 10, 1000);
	must_end(net);
	network_count(net, &counts);
	assert_int_equal(counts.packets, 30);
	/*
	 * Each 80 ns three arrive, then one leaves. The first leaves at once; 2, 4, 6 and 8 wait
	 * after the first rounds; the fifth finds room for two of its three, and each of the five
	 * others for one.
	 */
	assert_int_equal(counts.dropped, 1 + 5 * 2);
	assert_int_equal(hosts[0].got, 19);
	must_be_empty(net);
}

STAR_TEST(control_overtakes_data, 4, config = (struct network_config){0})
{
	for (uint32_t i = 1; i < 3; i++)
		flow_start(&hosts[i], 0, 100, 1000);
	hosts[3].class = PACKET_CONTROL_CLASS;
	flow_start(&hosts[3], 0, 1, 1000);
	network_run(net, 3 * US, UINT64_MAX);
	assert_int_equal(hosts[0].got_class[PACKET_CONTROL_CLASS], 1);
}

struct timed {
	struct network *net;
	uint64_t fired_ps[8];
	unsigned fired;
};

static void timed_timer(void *host, uint64_t now_ps)
{
	struct timed *t = host;

	t->fired_ps[t->fired++] = now_ps;
}

TEST(timers_come_when_they_were_last_set_to)
{
	const struct endpoint_ops ops = {.timer = timed_timer};
	struct network_config config = {0};
	struct topology t;
	struct timed timed = {0};
	struct network_counts counts;

	tree_star(&t, 2, G100, US);
	struct network *net = must_create(&t, &config);

	network_attach(net, 0, &ops, &timed);
	network_set_timer(net, 0, 5000);
	network_set_timer(net, 0, 9000);
	network_set_timer(net, 0, 7000);
	assert_int_equal(network_run(net, 6999, UINT64_MAX), NETWORK_UNTIL);
	assert_int_equal(timed.fired, 0);
	assert_int_equal(network_run(net, 7000, UINT64_MAX), NETWORK_IDLE);
	assert_int_equal(timed.fired, 1);
	/* A timer moved back and forth: a far time adds no event each time. */
	for (uint64_t i = 0; i < 1000; i++) {
		network_set_timer(net, 0, 100000000);
		network_set_timer(net, 0, 8000 + i);
		network_run(net, 8000 + i, UINT64_MAX);
		timed.fired = 0;
	}
	network_count(net, &counts);
	assert_true(counts.pending <= 4);
	network_set_timer(net, 0, NETWORK_NEVER_PS);
	must_end(net);
	assert_int_equal(timed.fired, 0);
	network_destroy(net);
}

enum scenario { PLAIN, LOSSLESS, TRIMMED, SCENARIOS };

static struct network_config config_of(enum scenario scenario, uint64_t seed)
{
	struct network_config c;

	network_config_init(&c);
	c.seed = seed;
	c.port_queue_bytes = 30000;
	if (scenario == LOSSLESS) {
		c.routing = NETWORK_SPRAY_LEAST_OF_2;
		c.buffer_bytes = 1 << 19;
		c.lossless_classes = 1 << 1;
		c.alpha_log2[1] = -2;
		c.red = (struct network_red){
			.classes = 1 << 1, .kmin_bytes = 5000, .kmax_bytes = 50000, .pmax_ppb = 500000000};
	}
	if (scenario == TRIMMED) {
		c.routing = NETWORK_FLOWLET;
		c.trim_wire_bytes = 84;
		c.trim_coin = true;
		c.control_burst = 10;
	}
	return c;
}

static void disturb(struct network *net)
{
	const struct network_loss loss = {.loss_ppb = 10000000,
					  .good_to_bad_ppb = 1000000,
					  .bad_to_good_ppb = 100000000,
					  .bad_loss_ppb = 500000000};

	assert_int_equal(network_set_loss(net, 3, 0, &loss), 0);
	assert_int_equal(network_set_jitter(net, 4, 1, US), 0);
	assert_int_equal(network_link_down(net, 20, 20 * US), 0);
	assert_int_equal(network_link_up(net, 20, 40 * US), 0);
}

static bool parts_may_run_apart(void *ctx, uint64_t end_ps)
{
	return true;
}

static void divide(struct network *net, uint32_t parts)
{
	char error[NETWORK_ERROR_BYTES];

	assert_int_equal(
		network_divide(net, &(struct network_cores){.count = parts, .apart = parts_may_run_apart}, error), 0);
}

/* In so many parts; 1: undivided. */
static uint64_t trace(enum scenario scenario, uint64_t seed, uint32_t parts, struct network_counts *counts)
{
	struct network_config config = config_of(scenario, seed);
	struct topology t;

	tree_fat(&t, 4, G100, US);
	struct network *net = must_create(&t, &config);
	struct flow_host *hosts;

	if (parts > 1)
		divide(net, parts);
	hosts = flow_hosts(net, 16);
	if (scenario == TRIMMED)
		disturb(net);
	for (uint32_t i = 0; i < 16; i++) {
		hosts[i].acks = true;
		hosts[i].new_sport = true;
		hosts[i].flags |= PACKET_TRIMMABLE;
		flow_start(&hosts[i], i % 4 == 0 ? 5 : (i * 5 + 3) % 16, 500, 1000 + i);
	}
	must_end(net);
	uint64_t hash = flow_hash_of_all(hosts, 16);

	network_count(net, counts);
	if (parts == 1)
		must_be_empty(net);
	finish(net, hosts);
	return hash;
}

/*
 * The hashes are the same on every machine and with every compiler; a change of the model changes
 * them.
 */
TEST(the_same_seed_gives_the_same_trace)
{
	static const uint64_t hashes[SCENARIOS] = {
		[PLAIN] = UINT64_C(0xeedfb2066e76a8bc),
		[LOSSLESS] = UINT64_C(0x868e849f33a83ee6),
		[TRIMMED] = UINT64_C(0x3cf1f748b79efc1c),
	};

	for (int scenario = 0; scenario < SCENARIOS; scenario++) {
		struct network_counts n;

		assert_int_equal(trace(scenario, 1, 1, &n), trace(scenario, 1, 1, &n));
		assert_int_not_equal(trace(scenario, 1, 1, &n), trace(scenario, 2, 1, &n));
		assert_int_equal(trace(scenario, 1, 1, &n), hashes[scenario]);
	}
}

/* In lossless networks and those with losses, jitter and links that fail, to the last event. */
TEST(a_network_in_parts_does_the_same)
{
	for (int scenario = 0; scenario < SCENARIOS; scenario++) {
		struct network_counts whole;
		uint64_t hash = trace(scenario, 3, 1, &whole);

		for (uint32_t parts = 2; parts <= 8; parts++) {
			struct network_counts n;

			assert_int_equal(trace(scenario, 3, parts, &n), hash);
			assert_memory_equal(&n, &whole, sizeof(n));
		}
	}
}

/* While it is on its way, nothing else is to come in any part. */
TEST(a_packet_alone_goes_from_part_to_part)
{
	uint64_t last_ps[2];

	for (uint32_t parts = 1; parts <= 2; parts++) {
		struct network_config config = {0};
		struct topology t;

		tree_fat(&t, 4, G100, US);
		struct network *net = must_create(&t, &config);

		if (parts > 1)
			divide(net, parts);
		struct flow_host *hosts = flow_hosts(net, 16);

		hosts[15].acks = true;
		flow_start(&hosts[0], 15, 1, 1000);
		must_end(net);
		assert_int_equal(hosts[15].got, 1);
		assert_int_equal(hosts[0].acked, 1);
		last_ps[parts - 1] = hosts[0].last_ps;
		assert_int_equal(network_now_ps(net), last_ps[0]);
		finish(net, hosts);
	}
	assert_int_equal(last_ps[0], last_ps[1]);
}

TEST(what_cannot_be_is_refused_with_the_reason)
{
	static const struct {
		uint64_t rate_bps, delay_ps;
		uint32_t b;
		const char *reason;
	} cases[] = {
		{0, 0, 2, "link 1: the rate must be 1 kbit/s to 100 Tbit/s"},
		{UINT64_MAX, 0, 2, "link 1: the rate must be 1 kbit/s to 100 Tbit/s"},
		{1000, UINT64_MAX, 2, "link 1: the delay must be at most 10 s"},
		{1000, 0, 9, "link 1 ends at a node that does not exist"},
		{1000, 0, 1, "link 1 leads from a node to itself"},
		{1000, 0, 0, "host 0 must have exactly one link"},
		{1000, 0, 3, "host 1 has no path to host 0"},
	};
	struct network_config config = {0};
	char error[NETWORK_ERROR_BYTES];

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct topology t;

		tree_new(&t, 2, 4, 2);
		tree_link(&t, 0, 2, G100, US);
		tree_link(&t, 1, cases[i].b, cases[i].rate_bps, cases[i].delay_ps);
		assert_null(network_create(&t, &config, error));
		assert_string_equal(error, cases[i].reason);
		tree_free(&t);
	}
}
