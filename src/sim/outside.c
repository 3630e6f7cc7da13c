/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Ports without nics. A packet's body is not headers, as a modelled host's, but the whole packet with its flow: its
 * receiver checks an ICRC that covers the source port, which is the network's entropy elsewhere.
 */
#include "sim/outside.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "net/network.h"
#include "sim/host_state.h"
#include "sim/simulation_parts.h"
#include "wire/bth.h"
#include "wire/rocev2.h"

struct carried {
	struct flow flow;
	uint16_t ip_id;
	uint8_t bytes[];
};

struct queue {
	struct packet *first, **last;
	uint64_t bytes;
};

struct port {
	struct outside *outside;
	uint32_t host;
	struct queue control, data;
};

struct outside {
	const struct outside_sink *sink;
	struct topology topology;
	struct network *network;
	struct packet_store *packets;
	struct port *ports;
	uint8_t data_class;
	bool ack_in_data_class, ecn;
	bool told;
	uint64_t refused;
};

/* ---- out ---- */

static void put(struct queue *q, struct packet *p)
{
	p->next = NULL;
	*q->last = p;
	q->last = &p->next;
	q->bytes += p->wire_bytes;
}

/* The first that may leave. */
static struct packet *take(struct queue *q, uint32_t allowed_classes)
{
	for (struct packet **at = &q->first, *p; (p = *at); at = &p->next) {
		if (!(allowed_classes >> p->class & 1))
			continue;
		*at = p->next;
		if (!p->next)
			q->last = at;
		q->bytes -= p->wire_bytes;
		p->next = NULL;
		return p;
	}
	return NULL;
}

static struct packet *pull(void *port, uint32_t allowed_classes, uint64_t now_ps)
{
	struct port *at = port;
	struct packet *p = take(&at->control, allowed_classes);

	return p ? p : take(&at->data, allowed_classes);
}

/* NULL: it is none of ours, and counts as data. */
static const struct opcode_info *info_of(const struct pkt *pkt)
{
	if (pkt->len < BTH_LEN || (pkt->flow->dport != ROCEV2_UDP_PORT && pkt->flow->dport != VEROCE_UDP_PORT))
		return NULL;
	return host_opcode_info(pkt);
}

static void describe(const struct outside *o, struct packet *p, uint32_t host, const struct pkt *pkt)
{
	const struct opcode_info *info = info_of(pkt);
	bool data = !info || host_is_data(info, pkt->data[0]);
	uint8_t sl = pkt->flow->sl;

	p->src = host;
	p->flow = PACKET_NO_FLOW;
	p->sport = info ? host_entropy(host, pkt) : pkt->flow->sport;
	p->dport = pkt->flow->dport;
	p->transport_bytes = pkt->len;
	p->wire_bytes = pkt->len + HOST_FRAME_BYTES;
	p->class = PACKET_CONTROL_CLASS;
	if (data || o->ack_in_data_class)
		p->class = sl > 0 && sl < PACKET_CLASSES ? sl : o->data_class;
	if (data)
		p->flags |= PACKET_DATA;
	if (data && o->ecn && pkt->flow->tos & 3)
		p->flags |= PACKET_ECT;
}

static struct packet *carry(struct outside *o, uint32_t host, uint32_t to, const struct pkt *pkt)
{
	struct packet *p = packet_get(o->packets);
	struct carried *c = p ? packet_body(o->packets, p, sizeof(*c) + pkt->len) : NULL;

	if (!c) {
		if (p)
			packet_put(o->packets, p);
		return NULL;
	}
	c->flow = *pkt->flow;
	c->ip_id = pkt->ip_id;
	memcpy(c->bytes, pkt->data, pkt->len);
	p->dst = to;
	describe(o, p, host, pkt);
	return p;
}

bool outside_send(struct outside *o, uint32_t host, const struct pkt *pkt)
{
	struct port *at = &o->ports[host];
	struct packet *p;
	uint32_t to;

	if (!o->sink->host_of(o->sink->ctx, pkt->flow->dst, &to) || to >= o->topology.host_count ||
	    at->control.bytes + at->data.bytes + pkt->len > OUTSIDE_QUEUE_BYTES || !(p = carry(o, host, to, pkt))) {
		o->refused++;
		return false;
	}
	put(p->class == PACKET_CONTROL_CLASS ? &at->control : &at->data, p);
	network_kick(o->network, host);
	return true;
}

/* ---- in ---- */

static void told(struct outside *o)
{
	o->told = true;
	network_stop(o->network);
}

static void arrive(void *port, struct packet *p, uint64_t now_ps)
{
	struct port *at = port;
	struct outside *o = at->outside;
	struct carried *c = p->body;
	struct pkt pkt = {.data = c->bytes, .flow = &c->flow, .len = p->transport_bytes, .ip_id = c->ip_id, .train = 1};

	if (p->flags & PACKET_CE)
		c->flow.tos |= 3;
	o->sink->arrived(o->sink->ctx, at->host, &pkt);
	packet_put(o->packets, p);
	told(o);
}

static void timer(void *port, uint64_t now_ps)
{
	struct port *at = port;

	at->outside->sink->woken(at->outside->sink->ctx, at->host);
	told(at->outside);
}

static const struct endpoint_ops port_ops = {.pull = pull, .arrive = arrive, .timer = timer};

/* ---- life ---- */

/* What a modelled host does, and a program's nic, which has settings of its own, does not. */
static bool is_possible(const struct scenario *s, const struct network_config *c, struct why why)
{
	const struct {
		const char *key;
		bool given;
	} refused[] = {
		{"topology.kind = subnet", s->topology.kind == SCENARIO_TOPOLOGY_SUBNET},
		{"switch.flow_control = credits", c->credits.buffer_bytes},
		{"switch.trim", c->trim_wire_bytes},
		{"host.post_delay", s->host.post_delay_ps},
		{"host.completion_delay", s->host.completion_delay_ps},
		{"host.ack_delay", s->host.ack_delay_ps},
		{"host.read_rate", s->host.read_rate_bps != SCENARIO_NONE},
		{"host.qp_cache", s->host.qp_cache != SCENARIO_NONE},
	};

	for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++)
		if (refused[i].given)
			return refuse(why, "%s: not possible where programs run", refused[i].key);
	return true;
}

static bool make_network(struct outside *o, const struct scenario *s, struct why why)
{
	struct network_config c = {0};
	char error[NETWORK_ERROR_BYTES];
	uint64_t *buffers;
	bool possible;

	if (!is_possible(s, &c, why) || !parts_topology(s, &o->topology, why) ||
	    !parts_network(s, &o->topology, &c, &buffers, why))
		return false;
	possible = is_possible(s, &c, why);
	if (possible)
		o->network = network_create(&o->topology, &c, error);
	free(buffers);
	if (!possible)
		return false;
	if (!o->network)
		return refuse(why, "topology: %s", error);
	return parts_links(s, &o->topology, o->network, why) &&
	       parts_receivers(s, o->network, o->topology.host_count, why);
}

static bool make_ports(struct outside *o, struct why why)
{
	o->ports = calloc(o->topology.host_count, sizeof(*o->ports));
	if (!o->ports)
		return refuse(why, "out of memory");
	o->packets = network_packets(o->network);
	for (uint32_t i = 0; i < o->topology.host_count; i++) {
		struct port *p = &o->ports[i];

		p->outside = o;
		p->host = i;
		p->control.last = &p->control.first;
		p->data.last = &p->data.first;
		network_attach(o->network, i, &port_ops, p);
	}
	return true;
}

struct outside *outside_create(const struct scenario *s, const struct outside_sink *sink, char *text, size_t bytes)
{
	struct why why = {text, bytes};
	struct outside *o = calloc(1, sizeof(*o));

	if (!o) {
		refuse(why, "out of memory");
		return NULL;
	}
	o->sink = sink;
	o->data_class = (uint8_t)s->transport.data_class;
	o->ack_in_data_class = s->transport.ack_class == SCENARIO_ACK_DATA;
	o->ecn = s->transport.ecn;
	if (make_network(o, s, why) && make_ports(o, why))
		return o;
	outside_destroy(o);
	return NULL;
}

void outside_destroy(struct outside *o)
{
	if (!o)
		return;
	network_destroy(o->network);
	topology_free(&o->topology);
	free(o->ports);
	free(o);
}

uint32_t outside_hosts(const struct outside *o)
{
	return o->topology.host_count;
}

uint64_t outside_now_ps(const struct outside *o)
{
	return network_now_ps(o->network);
}

void outside_set_timer(struct outside *o, uint32_t host, uint64_t at_ps)
{
	network_set_timer(o->network, host, at_ps);
}

/* ---- time ---- */

static enum outside_end failed(char *why, size_t why_bytes, const char *text)
{
	snprintf(why, why_bytes, "%s", text);
	return OUTSIDE_FAILED;
}

enum outside_end outside_run(struct outside *o, char *why, size_t why_bytes)
{
	o->told = false;
	for (;;) {
		enum network_stop stop = network_run(o->network, NETWORK_TIME_PS_MAX, UINT64_MAX);

		if (stop == NETWORK_OUT_OF_MEMORY)
			return failed(why, why_bytes, "out of memory");
		if (stop == NETWORK_BROKEN)
			return failed(why, why_bytes, network_fault(o->network));
		if (stop == NETWORK_DEADLOCK) {
			parts_deadlock_text(network_deadlock(o->network), &o->topology, why, why_bytes);
			return OUTSIDE_FAILED;
		}
		if (o->told)
			return OUTSIDE_TOLD;
		if (stop == NETWORK_UNTIL)
			return failed(why, why_bytes, "106 days have passed, which is as long as a run may be");
		if (stop == NETWORK_IDLE)
			return OUTSIDE_IDLE;
	}
}

void outside_count(const struct outside *o, struct outside_counts *out)
{
	struct network_counts n;

	network_count(o->network, &n);
	*out = (struct outside_counts){n.packets, n.delivered, n.dropped, o->refused};
}
