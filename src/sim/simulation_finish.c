/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The end of a run: what the network, the hosts and the flows counted goes into the results, and the results are
 * judged.
 */
#include <stdlib.h>
#include <string.h>

#include "net/credit.h"
#include "net/network.h"
#include "sim/simulation_possible.h"
#include "sim/simulation_state.h"

static const struct {
	enum results_place place;
	enum results_reason reason;
} drop_as[NETWORK_DROPS] = {
	[NETWORK_DROP_QUEUE] = {RESULTS_AT_SWITCH, RESULTS_DROP_BUFFER},
	[NETWORK_DROP_CONTROL] = {RESULTS_AT_SWITCH, RESULTS_DROP_CONTROL_FULL},
	[NETWORK_DROP_HEADROOM] = {RESULTS_AT_SWITCH, RESULTS_DROP_HEADROOM},
	[NETWORK_DROP_LINK_LOSS] = {RESULTS_AT_LINK, RESULTS_DROP_LOSS},
	[NETWORK_DROP_CORRUPT] = {RESULTS_AT_LINK, RESULTS_DROP_CORRUPT},
	[NETWORK_DROP_LINK_DOWN] = {RESULTS_AT_LINK, RESULTS_DROP_DOWN},
	[NETWORK_DROP_NO_ROUTE] = {RESULTS_AT_SWITCH, RESULTS_DROP_NO_ROUTE},
	[NETWORK_DROP_HOPS] = {RESULTS_AT_SWITCH, RESULTS_DROP_NO_ROUTE},
	[NETWORK_DROP_RECEIVER] = {RESULTS_AT_HOST, RESULTS_DROP_RX_BUFFER},
	[NETWORK_DROP_NO_HOST] = {RESULTS_AT_HOST, RESULTS_DROP_STALE},
	[NETWORK_DROP_CREDITS] = {RESULTS_AT_SWITCH, RESULTS_DROP_HEADROOM},
	[NETWORK_DROP_LIFETIME] = {RESULTS_AT_SWITCH, RESULTS_DROP_LIFETIME},
};

/* Without memory the rest is missing. */
static bool finish_port_drops(struct simulation *s, const struct network_drops *drops, const struct results_drop *at)
{
	for (int class = 0; class < PACKET_CLASSES; class ++) {
		struct results_drop d = *at;

		d.class = (uint8_t) class;
		for (int why = 0; why < NETWORK_DROPS; why++) {
			d.place = drop_as[why].place;
			d.reason = drop_as[why].reason;
			d.packets = drops->packets[class][why];
			d.bytes = drops->bytes[class][why];
			/* A host's drops count at its own end of the link. */
			d.node = d.place == RESULTS_AT_HOST ? at->to : at->node;
			d.to = d.place == RESULTS_AT_HOST ? at->node : at->to;
			if (d.packets && results_drop_add(s->results, &d))
				return false;
		}
		d = *at;
		d.class = (uint8_t) class;
		d.place = RESULTS_AT_SWITCH;
		d.reason = RESULTS_TRIMMED;
		d.packets = drops->trimmed_packets[class];
		d.bytes = drops->trimmed_bytes[class];
		if (d.packets && results_drop_add(s->results, &d))
			return false;
	}
	return true;
}

static void finish_drops(struct simulation *s)
{
	const struct topology *t = &s->topology;

	for (uint32_t i = 0; i < 2 * t->link_count; i++) {
		const struct topology_link *l = &t->links[i / 2];
		const struct results_drop at = {
			.node = i % 2 ? l->b : l->a,
			.to = i % 2 ? l->a : l->b,
			.port = s->port_number[i],
		};
		struct network_drops drops;

		if (network_count_port_drops(s->network, i / 2, i % 2, &drops) && !finish_port_drops(s, &drops, &at))
			return;
	}
}

/* The results' bin that the middle of the network's bin i lies in; its first counts as empty. */
static uint32_t bin_of(uint32_t i)
{
	uint64_t middle = (uint64_t)i * NETWORK_HISTOGRAM_BIN_BYTES + NETWORK_HISTOGRAM_BIN_BYTES / 2;

	return i ? (uint32_t)((middle + RESULTS_QUEUE_BIN_BYTES - 1) / RESULTS_QUEUE_BIN_BYTES) : 0;
}

static void finish_queue(struct simulation *s, struct results_port *p, uint32_t link, unsigned end)
{
	uint32_t bins, last = 0;
	const uint64_t *time_ps = network_queue_histogram(s->network, link, end, &bins);
	unsigned __int128 sum = 0;

	p->queue_since_ps = network_now_ps(s->network);
	for (uint32_t i = 0; time_ps && i < bins; i++) {
		if (time_ps[i])
			last = i + 1;
		sum += (unsigned __int128)time_ps[i] * i * NETWORK_HISTOGRAM_BIN_BYTES;
	}
	if (!last)
		return;
	p->queue_bins = bin_of(last - 1) + 1;
	p->queue_time_ps = calloc(p->queue_bins, sizeof(*p->queue_time_ps));
	if (!p->queue_time_ps) {
		p->queue_bins = 0;
		return;
	}
	for (uint32_t i = 0; i < last; i++)
		p->queue_time_ps[bin_of(i)] += time_ps[i];
	p->queue_byte_ps_hi = (uint64_t)(sum >> 64);
	p->queue_byte_ps_lo = (uint64_t)sum;
}

static void finish_credits(struct results_credits *c, const struct network_port_counts *n, bool host)
{
	uint64_t bytes = (uint64_t)n->buffer_blocks_max * CREDIT_BLOCK_BYTES;

	c->used = true;
	c->frames += n->credit_frames_sent;
	c->waits += n->credit_waits;
	for (int vl = 0; vl < PACKET_CLASSES; vl++)
		c->waited_ps += n->paused_ps[vl];
	if (n->longest_pause_ps > c->longest_ps)
		c->longest_ps = n->longest_pause_ps;
	if (bytes > c->buffer_bytes_max)
		c->buffer_bytes_max = bytes;
	c->hosts_waited += host && n->credit_waits;
}

static void finish_port(struct simulation *s, struct results_port *p, uint32_t link, unsigned end)
{
	bool credits = s->scenario->sw.flow_control == SCENARIO_FLOW_CONTROL_CREDITS, paused = false;
	struct results_pfc *pfc = &s->results->pfc;
	struct network_port_counts n;

	if (!network_count_port(s->network, link, end, &n))
		return;
	p->rate_bps = n.rate_bps;
	p->tx_packets = n.sent_packets;
	p->tx_bytes = n.sent_bytes;
	p->ce_packets = n.marked_packets;
	p->trimmed_packets = n.trimmed_packets;
	if (n.queue_bytes_max > p->queue_bytes_max)
		p->queue_bytes_max = n.queue_bytes_max;
	p->pause_tx = n.pauses_sent;
	p->resume_tx = n.resumes_sent;
	p->pause_rx = n.pauses_received;
	p->resume_rx = n.resumes_received;
	p->longest_pause_ps = n.longest_pause_ps;
	p->headroom_bytes_max = n.headroom_bytes_max;
	for (int c = 0; c < PACKET_CLASSES; c++) {
		p->paused_ps[c] = n.paused_ps[c];
		pfc->paused_ps += credits ? 0 : n.paused_ps[c];
		paused |= n.paused_ps[c] != 0;
	}
	pfc->pause_frames += n.pauses_sent;
	pfc->resume_frames += n.resumes_sent;
	pfc->ports_paused += paused && !credits;
	if (credits)
		finish_credits(&s->results->credits, &n, p->tier == 0);
	if (!credits && n.longest_pause_ps > pfc->longest_ps)
		pfc->longest_ps = n.longest_pause_ps;
	if (n.pause_depth_max > pfc->depth_max)
		pfc->depth_max = n.pause_depth_max;
	finish_queue(s, p, link, end);
}

/* How many were paused. */
static void finish_hosts(struct simulation *s)
{
	const struct topology *t = &s->topology;

	for (uint32_t i = 0; i < 2 * t->link_count; i++) {
		const struct topology_link *l = &t->links[i / 2];
		struct network_port_counts n;

		if ((i % 2 ? l->b : l->a) >= t->host_count || !network_count_port(s->network, i / 2, i % 2, &n))
			continue;
		s->results->pfc.hosts_paused += n.pauses_received != 0;
	}
}

static void finish_lines(const struct host *h, struct results_recovery *r)
{
	struct sdr_counts n = sdr_counts_of(h);

	r->retransmitted_packets += n.resent_packets;
	r->spurious_packets += n.spurious_packets;
	r->line_packets += n.packets;
	r->parity_packets += n.parity_packets;
	r->fill_packets += n.fill_packets;
	r->words += n.words;
}

static void finish_recovery(struct simulation *s)
{
	struct results_recovery *r = &s->results->recovery;

	for (uint32_t i = 0; i < s->topology.host_count; i++) {
		const struct nic_counters *n = nic_counters(host_nic(s->hosts[i]));

		r->retransmitted_packets += n->retransmits;
		r->spurious_packets += n->spurious;
		r->timeouts += n->timeouts;
		r->naks += n->naks_received;
		r->cnps += n->cnps_received;
		r->trimmed_packets += n->rx_trimmed;
		finish_lines(s->hosts[i], r);
	}
}

/* Without memory the rest is missing. */
static void finish_steps(struct simulation *s)
{
	for (uint32_t i = 0; i < workload_parts(s->workload); i++) {
		const struct graph_span *spans = workload_spans(s->workload, i);
		struct workload_facts facts;
		struct results_step step = {
			.workload = s->origins[i].workload,
			.round = s->origins[i].round,
			.start_ps = UINT64_MAX,
		};
		size_t bytes;

		workload_facts(s->workload, i, &facts);
		if (!spans)
			continue;
		bytes = (facts.graph->node_count + (size_t)1) * sizeof(*spans);
		step.spans = malloc(bytes);
		if (!step.spans)
			return;
		memcpy(step.spans, spans, bytes);
		for (uint32_t k = 0; k < facts.graph->node_count; k++) {
			if (spans[k].begin_ps < step.start_ps)
				step.start_ps = spans[k].begin_ps;
		}
		step.graph = graph_hold(facts.graph);
		step.infinite_ps = workload_end_alone_ps(s->workload, i, step.start_ps);
		step.infinite_ps -= step.infinite_ps > step.start_ps ? step.start_ps : step.infinite_ps;
		if (results_step_add(s->results, &step)) {
			graph_free(step.graph);
			free(step.spans);
			return;
		}
	}
}

bool simulation_finish(struct simulation *s)
{
	struct results *r = s->results;
	struct network_counts n;

	network_count(s->network, &n);
	r->time_ps = network_now_ps(s->network);
	r->events = n.events;
	r->packet_hops = n.hops;
	r->packets = n.packets;
	for (uint32_t i = 0; i < r->port_count; i++)
		finish_port(s, &r->ports[i], s->port_link[i] / 2, s->port_link[i] % 2);
	if (r->goodput.total.window_ps && r->time_ps)
		simulation_end_window(s, r->time_ps);
	else
		flows_sample(s->flows);
	finish_hosts(s);
	finish_drops(s);
	finish_recovery(s);
	finish_steps(s);
	rates_collectives(&s->rates, s->workload, s->origins, r);
	possible_find(s);
	r->receivers_bps = rates_of_receivers(&s->rates, r);
	return rates_judge(&s->rates, s->scenario, &s->topology, s->network, r);
}
