/* SPDX-License-Identifier: BSD-2-Clause */
/* Faults of links and their counters, and queueing as theory has it. */
#include <math.h>

#include "base/prng.h"
#include "net/network.h"
#include "support/sim_checks.h"
#include "support/test.h"

static struct network *pair(struct flow_host **hosts)
{
	struct network_config config;
	struct topology t;

	network_config_init(&config);
	config.port_queue_bytes = 1 << 24;
	tree_star(&t, 2, G100, US);
	struct network *net = must_create(&t, &config);

	*hosts = flow_hosts(net, 2);
	return net;
}

TEST(each_packet_is_lost_by_chance)
{
	struct flow_host *hosts;
	struct network *net = pair(&hosts);
	const struct network_loss loss = {.loss_ppb = 50000000};

	assert_int_equal(network_set_loss(net, 0, 0, &loss), 0);
	flow_start(&hosts[0], 1, 100000, 1000);
	must_end(net);
	/* Standard deviation 69. */
	assert_in_range(drops_of(net, NETWORK_DROP_LINK_LOSS), 4793, 5207);
	/* A packet that is lost takes its time even so. */
	assert_int_equal(hosts[1].got + drops_of_all(net), 100000);
	assert_true(hosts[1].last_ps > 99900 * UINT64_C(80000));
	must_be_empty(net);
	finish(net, hosts);
}

TEST(the_topology_tells_a_links_loss)
{
	struct network_config config;
	struct topology t;

	network_config_init(&config);
	tree_star(&t, 2, G100, US);
	t.links[1].loss_ppb = 1000000000;
	struct network *net = must_create(&t, &config);
	struct flow_host *hosts = flow_hosts(net, 2);
	struct network_drops drops;

	flow_start(&hosts[0], 1, 10, 1000);
	flow_start(&hosts[1], 0, 10, 1000);
	must_end(net);
	assert_int_equal(hosts[0].got + hosts[1].got, 0);
	assert_true(network_count_port_drops(net, 1, 1, &drops));
	assert_int_equal(drops.packets[1][NETWORK_DROP_LINK_LOSS], 10);
	assert_int_equal(drops.bytes[1][NETWORK_DROP_LINK_LOSS], 10000);
	finish(net, hosts);
}

static unsigned burst, bursts, in_bursts;
static uint64_t last_number;

static void note_gap(struct flow_host *h, const struct packet *p, uint64_t now_ps)
{
	uint64_t number = (now_ps - 2 * US - 160000) / 80000;

	burst = (unsigned)(number - last_number) - 1;
	bursts += burst > 0;
	in_bursts += burst;
	last_number = number;
}

/* Bad periods of 20 packets, a hundredth of all packets; in them every packet is lost. */
TEST(gilbert_elliott_loses_in_bursts)
{
	struct flow_host *hosts;
	struct network *net = pair(&hosts);
	const struct network_loss loss = {
		.good_to_bad_ppb = 505050, .bad_to_good_ppb = 50000000, .bad_loss_ppb = 1000000000};

	assert_int_equal(network_set_loss(net, 1, 1, &loss), 0);
	hosts[1].on_get = note_gap;
	last_number = UINT64_MAX;
	bursts = in_bursts = 0;
	flow_start(&hosts[0], 1, 400000, 1000);
	must_end(net);
	assert_in_range(in_bursts, 3000, 5000);
	assert_in_range(in_bursts / bursts, 17, 23);
	finish(net, hosts);
}

static uint64_t missing[8];
static unsigned missing_count;

static void note_missing(struct flow_host *h, const struct packet *p, uint64_t now_ps)
{
	uint64_t number = (now_ps - 2 * US - 160000) / 80000;

	for (uint64_t n = last_number + 1; n < number && missing_count < 8; n++)
		missing[missing_count++] = n;
	last_number = number;
}

TEST(exactly_the_packets_of_the_list_are_lost)
{
	struct flow_host *hosts;
	struct network *net = pair(&hosts);

	last_number = UINT64_MAX;
	missing_count = 0;
	hosts[1].on_get = note_missing;
	assert_int_equal(network_lose_packet(net, 0, 0, 0, 5), 0);
	assert_int_equal(network_lose_packet(net, 0, 0, 0, 6), 0);
	assert_int_equal(network_lose_packet(net, 0, 0, 0, 90), 0);
	assert_int_equal(network_lose_packet(net, 0, 0, 1, 7), 0); /* another flow's */
	flow_start(&hosts[0], 1, 100, 1000);
	must_end(net);
	assert_int_equal(missing_count, 3);
	assert_int_equal(missing[0], 5);
	assert_int_equal(missing[1], 6);
	assert_int_equal(missing[2], 90);
	finish(net, hosts);
}

TEST(corrupt_packets_are_counted_where_they_arrive)
{
	struct flow_host *hosts;
	struct network *net = pair(&hosts);
	const struct network_loss loss = {.corrupt_ppb = 1000000000};
	struct network_counts counts;

	assert_int_equal(network_set_loss(net, 0, 0, &loss), 0);
	flow_start(&hosts[0], 1, 1, 1000);
	network_run(net, 80000 + US - 1, UINT64_MAX);
	network_count(net, &counts);
	assert_int_equal(counts.inside, 1);
	must_end(net);
	assert_int_equal(drops_of(net, NETWORK_DROP_CORRUPT), 1);
	finish(net, hosts);
}

/* Neither takes the place of the other, nor of bad periods. */
TEST(loss_and_corruption_add_up)
{
	struct flow_host *hosts;
	struct network *net = pair(&hosts);
	const struct network_loss loss = {.loss_ppb = 100000000, .corrupt_ppb = 200000000};

	assert_int_equal(network_set_loss(net, 0, 0, &loss), 0);
	flow_start(&hosts[0], 1, 10000, 1000);
	must_end(net);
	assert_in_range(drops_of(net, NETWORK_DROP_LINK_LOSS), 900, 1100);
	assert_in_range(drops_of(net, NETWORK_DROP_CORRUPT), 1650, 1950);
	assert_int_equal(drops_of_all(net) + hosts[1].got, 10000);
	finish(net, hosts);
}

static uint64_t came_ps;

static void note_jitter(struct flow_host *h, const struct packet *p, uint64_t now_ps)
{
	assert_true(now_ps >= came_ps);
	came_ps = now_ps;
}

TEST(jitter_reorders_and_loses_nothing)
{
	struct flow_host *hosts;
	struct network *net = pair(&hosts);

	came_ps = 0;
	assert_int_equal(network_set_jitter(net, 0, 0, 10 * US), 0);
	hosts[1].on_get = note_jitter;
	flow_start(&hosts[0], 1, 5000, 1000);
	must_end(net);
	assert_int_equal(hosts[1].got, 5000);
	assert_true(hosts[1].last_ps > 5000 * 80000 + 2 * US + 80000 + 5 * US);
	must_be_empty(net);
	finish(net, hosts);
}

TEST(what_does_not_exist_is_refused)
{
	struct flow_host *hosts;
	struct network *net = pair(&hosts);
	const struct network_loss none = {0}, much = {.loss_ppb = 1000000001};
	struct network_port_counts counts;

	assert_int_not_equal(network_set_loss(net, 2, 0, &none), 0);
	assert_int_not_equal(network_set_loss(net, 0, 2, &none), 0);
	assert_int_not_equal(network_set_loss(net, 0, 0, &much), 0);
	assert_int_not_equal(network_lose_packet(net, 7, 0, 0, 0), 0);
	assert_int_not_equal(network_set_jitter(net, 7, 0, 0), 0);
	assert_int_not_equal(network_link_down(net, 7, 0), 0);
	assert_int_not_equal(network_link_rate(net, 0, 0, 0), 0);
	assert_int_not_equal(network_watch_queue(net, 0, 0, 0), 0);
	assert_false(network_count_port(net, 7, 0, &counts));
	finish(net, hosts);
}

struct seen {
	uint64_t packets, bytes, first_ps, samples, longest;
};

static void see(void *context, const struct packet *p, uint64_t now_ps)
{
	struct seen *seen = context;

	if (!seen->packets++)
		seen->first_ps = now_ps;
	seen->bytes += p->wire_bytes;
}

static void sample(void *context, struct network *net, uint64_t now_ps)
{
	struct seen *seen = context;
	uint32_t bytes = network_queue_bytes(net, 0, 1);

	assert_int_equal(now_ps % 100000, 0);
	seen->samples++;
	if (bytes > seen->longest)
		seen->longest = bytes;
}

/*
 * Two senders of n: the queue grows by a packet each 80 ns and then shrinks, so each length lasts
 * as long.
 */
STAR_TEST(queues_can_be_watched, 3)
{
	enum { N = 64, BYTES = 1024 };
	struct network_port_counts counts;
	struct seen seen = {0};
	const uint64_t *time_ps, round_ps = BYTES * 80;
	uint64_t sum = 0;
	uint32_t bins;

	assert_null(network_queue_histogram(net, 0, 1, &bins));
	assert_int_equal(network_watch_queue(net, 0, 1, 32), 0);
	assert_int_equal(network_tap_port(net, 0, 1, see, &seen), 0);
	network_sample(net, 100000, sample, &seen);
	flow_start(&hosts[1], 0, N, BYTES);
	flow_start(&hosts[2], 0, N, BYTES);
	network_run(net, 20 * US, UINT64_MAX);
	time_ps = network_queue_histogram(net, 0, 1, &bins);
	assert_int_equal(bins, 32);
	for (uint32_t i = 0; i < bins; i++)
		sum += time_ps[i];
	assert_int_equal(sum, network_now_ps(net));
	for (uint32_t i = 1; i < 31; i++)
		assert_int_equal(time_ps[i], 2 * round_ps);
	network_count_port(net, 0, 1, &counts);
	assert_int_equal(counts.queue_bytes_max, (N + 1) * BYTES);
	assert_int_equal(seen.packets, 2 * N);
	assert_int_equal(seen.bytes, 2 * N * BYTES);
	assert_int_equal(seen.first_ps, round_ps + US);
	assert_in_range(seen.longest, (N - 2) * BYTES, (N + 1) * BYTES);
	must_end(net);
	assert_true(seen.samples > 50);
}

struct poisson {
	struct network *net;
	struct prng prng;
	uint64_t waiting, sent, to_send, got, wait_ps;
};

static void poisson_timer(void *host, uint64_t now_ps)
{
	struct poisson *h = host;
	double u = (double)(prng_next(&h->prng) >> 11) * 0x1p-53;

	h->waiting++;
	if (++h->sent < h->to_send)
		network_set_timer(h->net, 0, now_ps + (uint64_t)(-log(1 - u) * 100000)); /* load 0.8 of 80 ns */
	network_kick(h->net, 0);
}

static struct packet *poisson_pull(void *host, uint32_t allowed, uint64_t now_ps)
{
	struct poisson *h = host;
	struct packet *p;

	if (!h->waiting)
		return NULL;
	h->waiting--;
	p = packet_get(network_packets(h->net));
	assert_non_null(p);
	p->dst = 1;
	p->wire_bytes = 1000;
	p->class = 1;
	p->transport_bytes = (uint32_t)now_ps;
	return p;
}

static void poisson_arrive(void *host, struct packet *p, uint64_t now_ps)
{
	struct poisson *h = host;

	h->got++;
	h->wait_ps += (uint32_t)now_ps - p->transport_bytes - (80 + 2 * US + 80000);
	packet_put(network_packets(h->net), p);
}

/* Mean wait of M/D/1 at load r, in packet times: r / (2 (1 - r)). */
TEST_MANY(single_packets_wait_as_in_m_d_1)
{
	const struct endpoint_ops ops = {poisson_pull, poisson_arrive, poisson_timer};
	struct network_config config;
	struct poisson h = {.to_send = 2000000};
	struct topology t;

	network_config_init(&config);
	tree_new(&t, 2, 3, 2);
	tree_link(&t, 0, 2, 1000 * G100, US); /* no queue to speak of at the source */
	tree_link(&t, 1, 2, G100, US);
	h.net = must_create(&t, &config);
	prng_init(&h.prng, 1);
	network_attach(h.net, 0, &ops, &h);
	network_attach(h.net, 1, &ops, &h);
	network_set_timer(h.net, 0, 0);
	must_end(h.net);
	assert_int_equal(h.got, h.to_send);
	/* 2.0 packet times of 80 ns, within 2 %. */
	assert_in_range(h.wait_ps / h.got, 156800, 163200);
	network_destroy(h.net);
}
