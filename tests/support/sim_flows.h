/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Hosts without a transport, for tests and benchmarks of the simulated network: each sends a number
 * of packets to one other host, as fast as its port and a window allow, and, if configured, answers
 * each packet with an ACK.
 */
#pragma once

#include <assert.h>
#include <stdlib.h>

#include "net/network.h"

enum { FLOW_ACK_BYTES = 64 + 20 };

struct flow_host {
	struct network *net;
	uint32_t index;
	/* What it sends; set by the test. */
	uint32_t dst;
	uint64_t to_send; /* packets */
	uint32_t wire_bytes;
	uint64_t window; /* packets not acknowledged; 0: no limit */
	uint16_t flags, sport;
	uint8_t class;
	bool new_sport; /* each packet has one of its own */
	bool acks;      /* answers packets with ACKs */
	/* The results. */
	uint64_t sent, got, got_ce, got_trimmed, acked, last_ps, hash;
	uint64_t got_class[PACKET_CLASSES], got_bytes[PACKET_CLASSES];
	struct packet *ack_head, **ack_end;
	void (*on_get)(struct flow_host *, const struct packet *, uint64_t now_ps);
};

static inline struct packet *flow_pull(void *host, uint32_t allowed, uint64_t now_ps)
{
	struct flow_host *h = host;
	struct packet *p = h->ack_head;

	if (p && allowed & 1u << p->class) {
		h->ack_head = p->next;
		if (!h->ack_head)
			h->ack_end = &h->ack_head;
		return p;
	}
	if (h->sent == h->to_send || !(allowed & 1u << h->class))
		return NULL;
	if (h->window && h->sent - h->acked >= h->window)
		return NULL;
	p = packet_get(network_packets(h->net));
	if (!p)
		abort();
	p->src = p->flow = h->index;
	p->dst = h->dst;
	p->wire_bytes = h->wire_bytes;
	p->class = h->class;
	p->flags = h->flags;
	p->sport = (uint16_t)(h->new_sport ? h->sport + h->sent : h->sport);
	p->dport = 4791;
	h->sent++;
	return p;
}

static inline void flow_answer(struct flow_host *h, const struct packet *data)
{
	struct packet *p = packet_get(network_packets(h->net));

	if (!p)
		abort();
	p->src = h->index;
	p->dst = data->src;
	p->flow = data->flow;
	p->sport = data->sport;
	p->dport = 4791;
	p->wire_bytes = FLOW_ACK_BYTES;
	p->class = PACKET_CONTROL_CLASS;
	p->next = NULL;
	*h->ack_end = p;
	h->ack_end = &p->next;
	network_kick(h->net, h->index);
}

static inline void flow_arrive(void *host, struct packet *p, uint64_t now_ps)
{
	struct flow_host *h = host;

	assert(p->dst == h->index);
	h->hash = (h->hash ^ now_ps ^ (uint64_t)p->src << 48 ^ (uint64_t)p->wire_bytes << 32 ^ p->flags) *
		  0x9e3779b97f4a7c15u;
	h->hash ^= h->hash >> 29;
	h->last_ps = now_ps;
	if (p->flow == h->index && p->wire_bytes == FLOW_ACK_BYTES) {
		h->acked++;
		if (h->window)
			network_kick(h->net, h->index);
	} else {
		h->got++;
		h->got_ce += !!(p->flags & PACKET_CE);
		h->got_trimmed += !!(p->flags & PACKET_TRIMMED);
		h->got_class[p->class]++;
		h->got_bytes[p->class] += p->wire_bytes;
		if (h->on_get)
			h->on_get(h, p, now_ps);
		if (h->acks)
			flow_answer(h, p);
	}
	packet_put(network_packets(h->net), p);
}

static const struct endpoint_ops flow_ops = {.pull = flow_pull, .arrive = flow_arrive};

/* One for each host, attached, sending nothing yet. */
static inline struct flow_host *flow_hosts(struct network *net, uint32_t count)
{
	struct flow_host *hosts = calloc(count, sizeof(*hosts));

	if (!hosts)
		abort();
	for (uint32_t i = 0; i < count; i++) {
		hosts[i].net = network_of_host(net, i);
		hosts[i].index = i;
		hosts[i].class = 1;
		hosts[i].flags = PACKET_DATA | PACKET_ECT;
		hosts[i].sport = (uint16_t)(49152 + i);
		hosts[i].ack_end = &hosts[i].ack_head;
		network_attach(net, i, &flow_ops, &hosts[i]);
	}
	return hosts;
}

static inline void flow_start(struct flow_host *h, uint32_t dst, uint64_t packets, uint32_t wire_bytes)
{
	h->dst = dst;
	h->to_send += packets;
	h->wire_bytes = wire_bytes;
	network_kick(h->net, h->index);
}

static inline uint64_t flow_hash_of_all(const struct flow_host *hosts, uint32_t count)
{
	uint64_t hash = 0;

	for (uint32_t i = 0; i < count; i++)
		hash = (hash ^ hosts[i].hash) * 0xd6e8feb86659fd93u + i;
	return hash;
}
