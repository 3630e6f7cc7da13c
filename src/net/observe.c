/* SPDX-License-Identifier: BSD-2-Clause */
/* A network as seen from outside: counts, drops, queues over time. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "net/network_state.h"

enum { BINS_MAX = 1 << 20, BINS_FIRST = 14 }; /* with their header, a piece of 128 bytes */

/* Most queues are never long: there are only as many bins as the longest queue so far needed. */
struct histogram {
	uint32_t bins;     /* allocated */
	uint32_t bins_max; /* configured */
	uint64_t time_ps[];
};

struct port *network_port(const struct network *net, uint32_t link, unsigned end)
{
	if (link >= net->link_count || end > 1)
		return NULL;
	struct port *port = &net->ports[net->link_ports[link]];

	return end ? port->back : port;
}

static uint64_t pending(const struct network *net)
{
	return net->cores ? cores_pending(net) : net->events.pending;
}

void network_count(const struct network *net, struct network_counts *counts)
{
	*counts = net->counts;
	if (net->cores)
		cores_count(net, counts);
	counts->inside = counts->packets - counts->delivered - counts->dropped;
	counts->pending = pending(net);
}

static void count_pfc(const struct network *net, const struct port *port, struct network_port_counts *c)
{
	const struct pfc_port *pfc = port->pfc;

	c->pauses_received = pfc->pauses_received;
	c->resumes_received = pfc->resumes_received;
	c->pauses_sent = pfc->pauses_sent;
	c->resumes_sent = pfc->resumes_sent;
	c->longest_pause_ps = pfc->longest_pause_ps;
	c->headroom_bytes_max = pfc->headroom_bytes_max;
	c->pause_depth_max = pfc->depth_max;
	for (unsigned class = 0; class < PACKET_CLASSES; class ++) {
		c->paused_ps[class] = pfc->paused_ps[class];
		if (!(port->paused & 1u << class))
			continue;
		uint64_t ps = net->now_ps - pfc->since_ps[class];

		c->paused_ps[class] += ps;
		if (ps > c->longest_pause_ps)
			c->longest_pause_ps = ps;
	}
}

bool network_count_port(const struct network *net, uint32_t link, unsigned end, struct network_port_counts *c)
{
	const struct port *port = network_port(net, link, end);

	if (!port)
		return false;
	*c = (struct network_port_counts){
		.rate_bps = port->rate_bps,
		.sent_packets = port->sent_packets,
		.sent_bytes = port->sent_bytes,
		.marked_packets = port->marked_packets,
		.trimmed_packets = port->trimmed_packets,
		.queue_bytes = port->queued_bytes,
		.queue_bytes_max = port->queued_bytes_max > port->queued_bytes_ever ? port->queued_bytes_max
										    : port->queued_bytes_ever,
	};
	if (port->pfc)
		count_pfc(net, port, c);
	if (port->credit)
		credit_count(net, port, c);
	return true;
}

const struct network_deadlock *network_deadlock(const struct network *net)
{
	return net->deadlock;
}

void network_count_drops(const struct network *net, struct network_drops *drops)
{
	*drops = net->drops;
	if (net->cores)
		cores_count_drops(net, drops);
}

bool network_count_port_drops(const struct network *net, uint32_t link, unsigned end, struct network_drops *drops)
{
	const struct port *port = network_port(net, link, end);

	if (!port)
		return false;
	*drops = port->drops ? *port->drops : (struct network_drops){0};
	return true;
}

uint32_t network_queue_bytes(const struct network *net, uint32_t link, unsigned end)
{
	const struct port *port = network_port(net, link, end);

	return port ? port->queued_bytes : 0;
}

uint32_t network_queue_longest_bytes(struct network *net, uint32_t link, unsigned end)
{
	struct port *port = network_port(net, link, end);
	uint32_t longest;

	if (!port)
		return 0;
	longest = port->queued_bytes_max;
	if (longest > port->queued_bytes_ever)
		port->queued_bytes_ever = longest;
	port->queued_bytes_max = port->queued_bytes;
	return longest;
}

static size_t histogram_bytes(uint32_t bins)
{
	return sizeof(struct histogram) + bins * sizeof(uint64_t);
}

/*
 * Makes room for the bin, if it is within the configured number. Without memory the last bin counts
 * for it.
 */
static __attribute__((noinline, cold)) struct histogram *reach(struct port *port, uint32_t bin)
{
	struct histogram *h = port->histogram;
	uint32_t bins = h->bins;

	while (bins <= bin && bins < h->bins_max)
		bins = bins < h->bins_max / 2 ? 2 * bins : h->bins_max;
	if (bins == h->bins)
		return h;
	h = realloc(h, histogram_bytes(bins));
	if (!h)
		return port->histogram;
	memset(&h->time_ps[h->bins], 0, (bins - h->bins) * sizeof(*h->time_ps));
	h->bins = bins;
	port->histogram = h;
	return h;
}

void histogram_add(struct network *net, struct port *port, uint32_t bin)
{
	struct histogram *h = port->histogram;

	if (__builtin_expect(bin >= h->bins, 0)) {
		h = reach(port, bin);
		if (bin >= h->bins)
			bin = h->bins - 1;
	}
	h->time_ps[bin] += net->now_ps - port->bin_since_ps;
	port->bin_since_ps = net->now_ps;
}

int network_watch_queue(struct network *net, uint32_t link, unsigned end, uint32_t bins)
{
	struct port *port = network_port(net, link, end);
	uint32_t first = bins < BINS_FIRST ? bins : BINS_FIRST;
	struct histogram *h;

	if (!port || bins == 0 || bins > BINS_MAX)
		return -EINVAL;
	h = calloc(1, histogram_bytes(first));
	if (!h)
		return -ENOMEM;
	h->bins = first;
	h->bins_max = bins;
	port->bin_since_ps = net->now_ps;
	free(port->histogram);
	port->histogram = h;
	return 0;
}

const uint64_t *network_queue_histogram(struct network *net, uint32_t link, unsigned end, uint32_t *bins)
{
	struct port *port = network_port(net, link, end);

	if (!port || !port->histogram)
		return NULL;
	histogram_add(net, port, port->queued_bytes / NETWORK_HISTOGRAM_BIN_BYTES);
	*bins = port->histogram->bins;
	return port->histogram->time_ps;
}

void network_sample(struct network *net, uint64_t period_ps, network_sampler sampler, void *context)
{
	net->sampler = sampler;
	net->sampler_context = context;
	net->sample_period_ps = period_ps ? period_ps : 1;
	if (!sampler || net->sample_pending)
		return;
	net->sample_pending = true;
	network_event(net, net->now_ps + net->sample_period_ps, EVENT_CLASS_SAMPLE, EVENT_SAMPLE);
}

void network_take_sample(struct network *net)
{
	if (net->sampler)
		net->sampler(net->sampler_context, net, net->now_ps);
	net->sample_pending = net->sampler && pending(net);
	if (!net->sample_pending)
		return;
	network_event(net, net->now_ps + net->sample_period_ps, EVENT_CLASS_SAMPLE, EVENT_SAMPLE);
}

void network_tell(struct network *net, network_witness witness, void *context)
{
	net->witness = witness;
	net->witness_context = context;
	net->slow = witness || net->config.check;
	for (uint32_t i = 0; i < net->port_count; i++) {
		uint8_t others = net->ports[i].special & (uint8_t)~SPECIAL_TOLD;

		net->ports[i].special = others | (witness ? SPECIAL_TOLD : 0);
	}
}

void tell_of_port(struct network *net, const struct port *port, struct network_record r)
{
	r.link = port->link;
	r.end = port != &net->ports[net->link_ports[port->link]];
	r.queue_bytes = port->queued_bytes;
	net->witness(net->witness_context, &r, net->now_ps);
}

void tell_of_event(struct network *net, const struct event *e)
{
	const struct port *port = e->object;
	const struct host *host = e->object;

	if (event_kind(e) == EVENT_ARRIVE && port->flight && port->flight->time_ps <= net->now_ps)
		tell_of_port(net, port, (struct network_record){.event = NETWORK_ARRIVED, .packet = port->flight});
	else if (event_kind(e) == EVENT_TIMER && host->timer_ps <= net->now_ps)
		net->witness(net->witness_context,
			     &(struct network_record){.event = NETWORK_WOKEN, .host = (uint32_t)(host - net->hosts)},
			     net->now_ps);
}

void observe_fini(struct network *net)
{
	for (uint32_t i = 0; net->ports && i < net->port_count; i++) {
		free(net->ports[i].histogram);
		free(net->ports[i].drops);
	}
}
