/* SPDX-License-Identifier: BSD-2-Clause */
#include "experiment.h"

#include <stdlib.h>

enum { HOSTS_MAX = 256, BINS = 4096 };

#define MS_PS UINT64_C(1000000000)

static void completed(void *ctx, struct channel *c, uint64_t wr_id, uint64_t bytes, bool good)
{
	struct experiment *e = ctx;
	uint64_t of;
	bool whole;

	channel_completed(c, wr_id, &of, &whole);
	if (!whole || !good)
		return;
	e->done++;
	e->last_ps = network_now_ps(e->net);
	if (e->done == e->sent)
		network_stop(e->net);
}

static void received(void *ctx, uint32_t imm)
{
}

void experiment_init(struct experiment *e)
{
	*e = (struct experiment){.kind = "star", .topology = topology_params_default(), .bytes = 1000000};
	e->topology.hosts = 100;
	network_config_init(&e->network);
	e->network.seed = 1;
	e->network.port_queue_bytes = 64 << 20;
	e->host = (struct host_config){
		.seed = 1,
		.mtu_bytes = 1024,
		.data_class = 3,
		.ecn = true,
		.credits = 1,
		.timeout = 14, /* 67 ms */
		.completed = completed,
		.received = received,
		.nic =
			{
				.transport.protocol = PROTOCOL_ROCEV2,
				.transport.veroce.cc = VEROCE_CC_NONE,
				.transport.window_bytes = 1 << 20,
				.transport.rocev2.ackreq_packets = 1,
				.qpn_bits = 8,
			},
	};
}

static void count(struct experiment *e, struct host *const *hosts, uint32_t n)
{
	struct network_port_counts port;
	uint32_t bins;
	const uint64_t *time_ps = network_queue_histogram(e->net, e->watched_link, 1, &bins);

	for (uint32_t i = 0; time_ps && i < bins; i++) {
		e->time_ps += time_ps[i];
		if (i < 4096 / NETWORK_HISTOGRAM_BIN_BYTES)
			e->short_ps += time_ps[i];
	}
	if (network_count_port(e->net, e->watched_link, 1, &port)) {
		e->marked_packets = port.marked_packets;
		e->queue_bytes_max = port.queue_bytes_max;
	}
	for (uint32_t i = 0; i < n; i++)
		e->retransmits += nic_counters(host_nic(hosts[i]))->retransmits;
}

bool experiment_run(struct experiment *e)
{
	char why[NETWORK_ERROR_BYTES];
	struct host *hosts[HOSTS_MAX] = {0};
	struct channel *channels[HOSTS_MAX] = {0};
	struct message_post posts[HOSTS_MAX] = {0};
	struct text_error err;
	struct topology t;
	uint32_t n;

	e->host.ctx = e;
	if (topology_build(&t, e->kind, &e->topology, &err))
		return false;
	n = t.host_count < HOSTS_MAX ? t.host_count : HOSTS_MAX;
	e->net = network_create(&t, &e->network, why);
	if (!e->net)
		goto free_topology;
	network_watch_queue(e->net, e->watched_link, 1, BINS);
	for (uint32_t i = 0; i < n; i++) {
		hosts[i] = host_create(e->net, i, &e->host);
		if (!hosts[i])
			abort();
	}
	for (uint32_t i = 0; i < n; i++) {
		uint32_t to = e->to(i, n);

		if (to == i)
			continue;
		channels[i] = channel_open(hosts[i], hosts[to], CHANNEL_PIECE_BYTES_MAX);
		if (!channels[i])
			abort();
		posts[i].bytes = e->bytes;
		channel_post(channels[i], &posts[i]);
		e->sent++;
	}
	network_run(e->net, 1000 * MS_PS, UINT64_MAX);
	count(e, hosts, n);
	for (uint32_t i = 0; i < n; i++) {
		if (channels[i])
			channel_close(channels[i]);
	}
	for (uint32_t i = 0; i < n; i++)
		host_destroy(hosts[i]);
	network_destroy(e->net);
	e->net = NULL;
free_topology:
	topology_free(&t);
	return e->sent && e->done == e->sent;
}
