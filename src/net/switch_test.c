/* SPDX-License-Identifier: BSD-2-Clause */
/* Which packet goes first, and which is cut or marked. */

#include "base/int_stack.h"
#include "net/network.h"
#include "net/network_state.h"
#include "support/sim_checks.h"
#include "support/test.h"

/* Classes 1, 2, 3 with quanta 1 : 2 : 4 and packets of other sizes; shares are of bytes. */
TEST(dwrr_gives_shares_of_bytes_whatever_the_packets)
{
	static const uint32_t sizes[] = {1500, 300, 1000};
	struct network_config config;
	struct topology t;

	network_config_init(&config);
	for (unsigned i = 0; i < 3; i++)
		config.dwrr_quantum_bytes[i + 1] = 1500u << i;
	config.port_queue_bytes = 1 << 24;
	config.check = true;
	tree_star(&t, 4, G100, US);
	struct network *net = must_create(&t, &config);
	struct flow_host *hosts = flow_hosts(net, 4);

	for (uint32_t i = 0; i < 3; i++) {
		hosts[i + 1].class = (uint8_t)(i + 1);
		flow_start(&hosts[i + 1], 0, UINT64_MAX, sizes[i]);
	}
	network_run(net, 200 * US, UINT64_MAX);
	/*
	 * Each lies within a quantum and a packet of its share of the arrivals, without the start
	 * and the end.
	 */
	uint64_t sum = hosts[0].got_bytes[1] + hosts[0].got_bytes[2] + hosts[0].got_bytes[3];

	for (unsigned i = 0; i < 3; i++) {
		int64_t off = (int64_t)hosts[0].got_bytes[i + 1] - (int64_t)(sum * (1u << i) / 7);

		assert_true(llabs(off) <= 2 * (1500 << i) + 1500);
	}
	finish(net, hosts);
}

/* A class that leaves its turn unused because its queue is empty gets no credit for later. */
STAR_TEST(an_empty_class_saves_nothing, 3)
{
	for (uint8_t i = 1; i < 3; i++) {
		hosts[i].class = i;
		flow_start(&hosts[i], 0, 19, 300); /* no multiple of a quantum */
	}
	must_end(net);
	assert_int_equal(hosts[0].got, 38);
	for (uint32_t p = 0; p < net->port_count; p++)
		for (unsigned class = 0; class < PACKET_CLASSES; class ++)
			assert_int_equal(net->ports[p].deficit_bytes[class], 0);
}

/* Classes 1 and 2 share a port, and class 3 gets what they leave: a packet that was under way when they began, and all
 * when they have ended. */
STAR_TEST(the_low_class_gets_what_others_leave, 4, config.low_class = 3, config.port_queue_bytes = 1 << 24,
	  config.check = true)
{
	for (uint8_t i = 1; i < 4; i++) {
		hosts[i].class = i;
		flow_start(&hosts[i], 0, 100, 1000);
	}
	network_run(net, 2 * US + 180 * 80000, UINT64_MAX);
	assert_in_range(hosts[0].got_class[3], 0, 2);
	assert_true(hosts[0].got_class[1] >= 85 && hosts[0].got_class[2] >= 85);
	must_end(net);
	assert_int_equal(hosts[0].got_class[3], 100);
}

STAR_TEST(control_overtakes_data, 4)
{
	flow_start(&hosts[1], 0, 100, 1000);
	flow_start(&hosts[2], 0, 100, 1000);
	hosts[3].class = PACKET_CONTROL_CLASS;
	flow_start(&hosts[3], 0, 50, 1000);
	network_run(net, 80000 + US + 51 * 80000 + US, UINT64_MAX);
	/* One packet of data may have been first. */
	assert_true(hosts[0].got_class[PACKET_CONTROL_CLASS] >= 49);
}

STAR_TEST(a_control_burst_lets_data_through, 4, config.control_burst = 10, config.control_queue_bytes = 1 << 22)
{
	flow_start(&hosts[1], 0, 1000, 1000);
	hosts[2].class = hosts[3].class = PACKET_CONTROL_CLASS;
	flow_start(&hosts[2], 0, 1000, 1000);
	flow_start(&hosts[3], 0, 1000, 1000);
	network_run(net, 2 * US + 1100 * 80000, UINT64_MAX);
	assert_in_range(hosts[0].got_class[1], 97, 103);
}

static struct network_config trimming(void)
{
	struct network_config config;

	network_config_init(&config);
	config.port_queue_bytes = 8000;
	config.control_queue_bytes = 16000;
	config.trim_wire_bytes = 84;
	config.check = true;
	return config;
}

static uint64_t marked_and_cut;

static void note_marked_and_cut(struct flow_host *h, const struct packet *p, uint64_t now_ps)
{
	marked_and_cut += p->flags & PACKET_TRIMMED && p->flags & PACKET_CE;
}

TEST(trimmed_packets_arrive_instead_of_getting_lost)
{
	for (int coin = 0; coin < 2; coin++) {
		struct network_config config = trimming();
		struct network_port_counts counts;
		struct topology t;

		config.trim_coin = coin;
		tree_star(&t, 5, G100, US);
		struct network *net = must_create(&t, &config);
		struct flow_host *hosts = flow_hosts(net, 5);

		for (uint32_t i = 1; i < 5; i++) {
			hosts[i].flags |= PACKET_TRIMMABLE;
			flow_start(&hosts[i], 0, 40, 1000);
		}
		/* By then a queue of eight, full, would keep anything behind it for longer. */
		network_run(net, 80000 + US + 3 * 80000 + 6720 + 8 * 80000 + US, UINT64_MAX);
		assert_true(hosts[0].got_trimmed > 0);
		must_end(net);
		network_count_port(net, 0, 1, &counts);
		assert_int_equal(drops_of_all(net), 0);
		assert_int_equal(hosts[0].got, 160);
		assert_true(hosts[0].got_trimmed > 60);
		assert_int_equal(hosts[0].got_trimmed, counts.trimmed_packets);
		assert_int_equal(hosts[0].got_bytes[0], 84 * hosts[0].got_trimmed);
		must_be_empty(net);
		finish(net, hosts);
	}
}

/* Beyond kmax a mark is certain, so every trimmed packet has one, or none has. */
TEST(what_is_left_of_a_packet_is_marked_only_if_asked_for)
{
	for (int mark = 0; mark < 2; mark++) {
		struct network_config config = trimming();
		struct network_port_counts counts;
		struct network_drops drops;
		struct topology t;

		config.trim_mark = mark;
		config.red = (struct network_red){.classes = 1 << 1, .kmin_bytes = 3000, .kmax_bytes = 4000};
		tree_star(&t, 5, G100, US);
		struct network *net = must_create(&t, &config);
		struct flow_host *hosts = flow_hosts(net, 5);

		for (uint32_t i = 1; i < 5; i++) {
			hosts[i].flags |= PACKET_TRIMMABLE | PACKET_ECT;
			flow_start(&hosts[i], 0, 40, 1000);
		}
		marked_and_cut = 0;
		hosts[0].on_get = note_marked_and_cut;
		must_end(net);
		network_count_port(net, 0, 1, &counts);
		assert_true(hosts[0].got_trimmed > 60);
		assert_int_equal(marked_and_cut, mark ? hosts[0].got_trimmed : 0);
		assert_true(network_count_port_drops(net, 0, 1, &drops));
		assert_int_equal(drops.trimmed_packets[1], counts.trimmed_packets);
		assert_int_equal(drops.trimmed_bytes[1], (1000 - 84) * counts.trimmed_packets);
		must_be_empty(net);
		finish(net, hosts);
	}
}

TEST(what_may_not_be_cut_is_dropped_and_so_are_headers_without_room)
{
	struct network_config config = trimming();
	struct topology t;

	tree_star(&t, 5, G100, US);
	struct network *net = must_create(&t, &config);
	struct flow_host *hosts = flow_hosts(net, 5);

	for (uint32_t i = 1; i < 5; i++)
		flow_start(&hosts[i], 0, 40, 1000);
	must_end(net);
	assert_int_equal(hosts[0].got_trimmed, 0);
	assert_true(drops_of(net, NETWORK_DROP_QUEUE) > 60);
	finish(net, hosts);

	config.control_queue_bytes = 200;
	tree_star(&t, 5, G100, US);
	net = must_create(&t, &config);
	hosts = flow_hosts(net, 5);
	for (uint32_t i = 1; i < 5; i++) {
		hosts[i].flags |= PACKET_TRIMMABLE;
		flow_start(&hosts[i], 0, 40, 1000);
	}
	must_end(net);
	assert_int_equal(drops_of(net, NETWORK_DROP_QUEUE), 0);
	assert_true(drops_of(net, NETWORK_DROP_CONTROL) > 0);
	finish(net, hosts);
}

/* The draws themselves, a million at each length. */
TEST(red_marks_with_the_probability_of_the_line)
{
	static const struct {
		uint32_t queue_bytes;
		uint64_t marks;
	} cases[] = {{0, 0},
		     {400000, 0},
		     {400001, 0},
		     {700000, 50000},
		     {1000000, 100000},
		     {1600000, 200000},
		     {1600001, 1000000},
		     {UINT32_MAX, 1000000}};
	struct network *net = calloc(1, sizeof(*net));
	struct port *port = aligned_alloc(64, sizeof(*port));

	assert_true(net && port);
	memset(port, 0, sizeof(*port));
	net->config.red = (struct network_red){.classes = 1 << 1, .pmax_ppb = 200000000};
	port->red_min_bytes = 400000;
	port->red_max_bytes = 1600000;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		prng_init(&port->prng, i);
		port->marked_packets = 0;
		port->queues[1].bytes = port->queues[2].bytes = cases[i].queue_bytes;
		for (int n = 0; n < 1000000; n++) {
			struct packet p = {.class = 1, .flags = PACKET_ECT};

			red_mark(net, port, &p);
		}
		/* Three times the standard deviation of a binomial. */
		int64_t off = (int64_t)port->marked_packets - (int64_t)cases[i].marks;

		assert_true(llabs(off) <= (cases[i].marks % 1000000 ? 1200 : 5));
	}
	struct packet other_class = {.class = 2, .flags = PACKET_ECT}, not_capable = {.class = 1};

	red_mark(net, port, &other_class);
	red_mark(net, port, &not_capable);
	assert_false(other_class.flags & PACKET_CE);
	assert_false(not_capable.flags & PACKET_CE);
	free(net);
	free(port);
}

/*
 * Two senders of n packets: the queue grows by one in each of n rounds (80 ns) and shrinks by one
 * in each of the n after them. A packet is marked by the queue it leaves behind: of the ones to
 * leave in round r, r wait before and r + 1 once that round's two have arrived, of which one
 * leaves.
 */
STAR_TEST(a_step_marks_by_the_queue_that_is_left_behind, 3,
	  config.red = (struct network_red){.classes = 1 << 1,
					    .kmin_bytes = 3000,
					    .kmax_bytes = 3000,
					    .pmax_ppb = 1000000000,
					    .rate_bps = G100 / 10})
{
	enum { N = 100, K = 30 };

	flow_start(&hosts[1], 0, N, 1000);
	flow_start(&hosts[2], 0, N, 1000);
	must_end(net);
	/*
	 * Left behind: 1 .. N after each of the first N departures, then N - 1 .. 0. More than K:
	 * marked.
	 */
	assert_int_equal(hosts[0].got_ce, (N - K) + (N - 1 - K));
}

static void read_stack(struct flow_host *h, const struct packet *p, uint64_t now_ps)
{
	struct int_hop first, second;

	assert_non_null(p->int_stack);
	assert_int_equal(p->int_stack->hops, 2);
	first = int_hop_unpack(p->int_stack->hop[0]);
	second = int_hop_unpack(p->int_stack->hop[1]);
	assert_int_equal(first.rate_bps, G100);
	assert_int_equal(second.rate_bps, G100 / 4);
	/*
	 * The second port is slower: what is behind the packet is what has arrived less what has
	 * left.
	 */
	assert_in_range(second.qlen_bytes, 0, 1000 * 30);
	if (h->got == 20)
		assert_true(second.qlen_bytes > 1000 * 50 / 4);
	/* Before this packet, in the units of the wire: all earlier ones. */
	assert_int_equal(second.tx_bytes, (h->got - 1) * 1000 / 128 * 128);
	assert_int_equal(second.ts_ns, (now_ps - US - 320000) / 1000);
}

static struct packet *pull_with_int(void *host, uint32_t allowed, uint64_t now_ps)
{
	struct packet *p = flow_pull(host, allowed, now_ps);
	struct flow_host *h = host;

	if (p)
		assert_non_null(packet_int(network_packets(h->net), p));
	return p;
}

TEST(int_tells_of_each_switch)
{
	const struct endpoint_ops ops = {.pull = pull_with_int, .arrive = flow_arrive};
	struct network_config config;
	struct topology t;

	network_config_init(&config);
	config.int_stamp = true;
	tree_new(&t, 2, 4, 3);
	tree_link(&t, 0, 2, G100, US);
	tree_link(&t, 2, 3, G100, US);
	tree_link(&t, 3, 1, G100 / 4, US);
	struct network *net = must_create(&t, &config);
	struct flow_host *hosts = flow_hosts(net, 2);

	network_attach(net, 0, &ops, &hosts[0]);
	hosts[1].on_get = read_stack;
	flow_start(&hosts[0], 1, 40, 1000);
	must_end(net);
	assert_int_equal(hosts[1].got, 40);
	must_be_empty(net);
	finish(net, hosts);
}

/* Two lossy ports share: each has alpha times what both leave free. */
TEST(a_lossy_queue_gets_alpha_of_what_is_free)
{
	static const struct {
		int8_t alpha_log2;
		uint32_t queue_bytes;
	} cases[] = {{0, 300000 / 3}, {-1, 300000 / 4}, {1, 300000 * 2 / 5}};

	for (size_t n = 0; n < sizeof(cases) / sizeof(*cases); n++) {
		struct network_config config;
		struct network_port_counts counts;
		struct topology t;

		network_config_init(&config);
		config.buffer_bytes = 300000;
		config.alpha_log2[1] = cases[n].alpha_log2;
		config.check = true;
		tree_star(&t, 6, G100, US);
		struct network *net = must_create(&t, &config);
		struct flow_host *hosts = flow_hosts(net, 6);

		for (uint32_t i = 2; i < 6; i++)
			flow_start(&hosts[i], i % 2, 500, 1000);
		network_run(net, 30 * US, UINT64_MAX);
		for (uint32_t i = 0; i < 2; i++) {
			network_count_port(net, i, 1, &counts);
			assert_in_range(counts.queue_bytes, cases[n].queue_bytes - 3000, cases[n].queue_bytes + 3000);
		}
		must_end(net);
		assert_int_equal(drops_of(net, NETWORK_DROP_QUEUE), drops_of_all(net));
		must_be_empty(net);
		finish(net, hosts);
	}
}

TEST(a_queue_has_a_limit_of_its_own_beside_a_shared_buffer)
{
	static const struct {
		uint32_t limit_bytes, trim_wire_bytes;
	} cases[] = {{20000, 0}, {20000, 84}, {0, 0}};

	for (size_t n = 0; n < sizeof(cases) / sizeof(*cases); n++) {
		struct network_config config;
		struct network_port_counts counts;
		struct topology t;

		network_config_init(&config);
		config.buffer_bytes = 300000;
		config.class_queue_bytes = cases[n].limit_bytes;
		config.trim_wire_bytes = cases[n].trim_wire_bytes;
		config.check = true;
		tree_star(&t, 4, G100, US);
		struct network *net = must_create(&t, &config);
		struct flow_host *hosts = flow_hosts(net, 4);

		for (uint32_t i = 1; i < 4; i++) {
			hosts[i].flags |= PACKET_TRIMMABLE;
			flow_start(&hosts[i], 0, 100, 1000);
		}
		must_end(net);
		network_count_port(net, 0, 1, &counts);
		if (!cases[n].limit_bytes) {
			assert_true(counts.queue_bytes_max > 100000);
		} else if (cases[n].trim_wire_bytes) {
			assert_int_equal(drops_of_all(net), 0);
			assert_true(counts.trimmed_packets > 100);
			/* Bytes of data; at most 300 trimmed packets wait beside it. */
			assert_true(counts.queue_bytes_max <= 20000 + 300 * 84);
		} else {
			assert_int_equal(counts.queue_bytes_max, 20000);
			assert_true(drops_of(net, NETWORK_DROP_QUEUE) > 100);
		}
		finish(net, hosts);
	}
}
