/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A slow host: data waits in a receive buffer and is delivered in order at the buffer's drain rate;
 * control is delivered at once. Classes that are lossless in the network are paused while the
 * buffer has no more room than headroom; other data is dropped before it uses the headroom.
 */
#include <errno.h>
#include <stdlib.h>

#include "net/network_state.h"

struct receiver {
	struct queue queue;
	uint64_t byte_ps; /* << BYTE_PS_SHIFT */
	uint64_t buffer_bytes;
	uint64_t pause_bytes;  /* above this all lossless classes are paused, */
	uint64_t resume_bytes; /* and up to this they are resumed */
};

static uint64_t drain_ps(const struct receiver *r, const struct packet *p)
{
	return (uint64_t)((unsigned __int128)p->wire_bytes * r->byte_ps >> BYTE_PS_SHIFT);
}

uint64_t network_receiver_headroom_bytes(const struct network *net, uint32_t host)
{
	assert(host < net->host_count);
	return net->config.lossless_classes ? mmu_headroom_bytes(net, net->hosts[host].port) : 0;
}

int network_set_receiver(struct network *net, uint32_t host, uint64_t buffer_bytes, uint64_t drain_bps)
{
	uint64_t headroom_bytes;
	struct host *h;
	struct receiver *r;

	if (host >= net->host_count || drain_bps < NETWORK_RATE_BPS_MIN || drain_bps > NETWORK_RATE_BPS_MAX ||
	    buffer_bytes > INT32_MAX)
		return -EINVAL;
	h = &net->hosts[host];
	headroom_bytes = network_receiver_headroom_bytes(net, host);
	if (net->credit_ports || h->receiver || buffer_bytes <= headroom_bytes)
		return -EINVAL;
	r = calloc(1, sizeof(*r));
	if (!r)
		return -ENOMEM;
	r->byte_ps = rate_byte_ps(drain_bps);
	r->buffer_bytes = buffer_bytes;
	r->pause_bytes = buffer_bytes - headroom_bytes;
	if (r->pause_bytes > net->config.resume_offset_bytes)
		r->resume_bytes = r->pause_bytes - net->config.resume_offset_bytes;
	h->receiver = r;
	return 0;
}

static void tell(struct network *net, struct host *h, bool pause)
{
	const uint8_t lossless = net->config.lossless_classes;
	uint8_t told = lossless ? h->port->pfc->pausing : 0;

	for (unsigned class = 0; class < PACKET_CLASSES; class ++) {
		if (pause && lossless & ~told & 1u << class)
			pfc_pause(net, h->port, class);
		else if (!pause && told & 1u << class)
			pfc_resume(net, h->port, class);
	}
}

void receiver_take(struct network *net, struct host *h, struct packet *p)
{
	struct receiver *r = h->receiver;
	bool lossless = net->config.lossless_classes & 1u << p->class;

	if (r->queue.bytes + (uint64_t)p->wire_bytes > (lossless ? r->buffer_bytes : r->pause_bytes)) {
		port_drop(net, h->port->back, p, lossless ? NETWORK_DROP_HEADROOM : NETWORK_DROP_RECEIVER);
		return;
	}
	if (!r->queue.head)
		host_event(net, net->now_ps + drain_ps(r, p), EVENT_CLASS_ARRIVE, EVENT_DRAIN, h);
	queue_push(&r->queue, p);
	if (r->queue.bytes > r->pause_bytes)
		tell(net, h, true);
}

void receiver_drain(struct network *net, struct host *h)
{
	struct receiver *r = h->receiver;
	struct packet *p = queue_pop(&r->queue);

	if (r->queue.head)
		host_event(net, net->now_ps + drain_ps(r, r->queue.head), EVENT_CLASS_ARRIVE, EVENT_DRAIN, h);
	if (r->queue.bytes <= r->resume_bytes)
		tell(net, h, false);
	host_deliver(net, h, p);
}

uint32_t receiver_packets(const struct receiver *r)
{
	return r->queue.packets;
}
