/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Finds buffers that wait for each other for ever. A buffer is alive if a packet of it is leaving, may leave, or waits
 * for room in a buffer that is alive; the others will never get rid of anything. This is exact as long as no packet's
 * life ends: room that the sender does not know of yet counts as room.
 */
#include <stdlib.h>

#include "net/network_state.h"

static size_t buffer_of(const struct network *net, const struct port *in, unsigned vl)
{
	return (size_t)(in - net->ports) * VL_LANES + vl;
}

static size_t buffer_of_packet(const struct network *net, const struct port *out, const struct packet *p)
{
	return buffer_of(net, &out->sw->ports[p->in_port], p->flags >> PACKET_LANE_SHIFT & (VL_LANES - 1));
}

/* Sent, and not received yet. */
static uint32_t on_wire_blocks(const struct port *out, unsigned vl)
{
	return (out->credit->lanes[vl].tx.fctbs - out->back->credit->lanes[vl].rx.abr) & CREDIT_MASK;
}

/* Whether the first packet of the lane finds room at the far end, now or once it has heard of it. */
static bool has_room(const struct port *out, unsigned vl)
{
	const struct credit_receiver *far = &out->back->credit->lanes[vl].rx;
	uint32_t room = far->buffer_blocks - far->used_blocks;

	if (room > CREDIT_BLOCKS_MAX)
		room = CREDIT_BLOCKS_MAX;
	return on_wire_blocks(out, vl) + credit_blocks(out->queues[vl].head->wire_bytes) <= room;
}

static bool may_leave(const struct network *net, const struct port *out, unsigned vl, const bool *alive)
{
	return !out->to_switch || out->special & SPECIAL_DOWN || has_room(out, vl) ||
	       alive[buffer_of(net, out->back, vl)];
}

/* The buffers that have a packet in that queue live. True: one is new. */
static bool spread(const struct network *net, const struct port *out, unsigned vl, bool *alive)
{
	bool news = false;

	for (const struct packet *p = out->queues[vl].head; p; p = p->next) {
		bool *a = &alive[buffer_of_packet(net, out, p)];

		news |= !*a;
		*a = true;
	}
	return news;
}

/* Buffers that a packet leaves now; and those that one is on its way to, as nobody knows yet where it will ask to go.
 */
static void find_moving(const struct network *net, bool *alive)
{
	for (uint32_t i = 0; i < net->port_count; i++) {
		const struct port *out = &net->ports[i];
		const struct leaving *l = &out->credit->leaving;

		if (out->sw && l->any)
			alive[buffer_of(net, &out->sw->ports[l->in_port], l->vl)] = true;
		for (unsigned vl = 0; vl < VL_LANES; vl++) {
			if (on_wire_blocks(out, vl))
				alive[buffer_of(net, out->back, vl)] = true;
		}
	}
}

static void find_alive(const struct network *net, bool *alive)
{
	bool news = true;

	find_moving(net, alive);
	while (news) {
		news = false;
		for (uint32_t i = 0; i < net->port_count; i++) {
			const struct port *out = &net->ports[i];

			for (unsigned vl = 0; out->sw && vl < VL_LANES; vl++) {
				if (out->queues[vl].head && may_leave(net, out, vl, alive))
					news |= spread(net, out, vl, alive);
			}
		}
	}
}

/* A queue in which a packet of that buffer waits. NULL: there is none, because none is in the buffer. */
static const struct port *asks_for(const struct network *net, size_t buffer, unsigned *lane)
{
	const struct sim_switch *sw = net->ports[buffer / VL_LANES].sw;

	for (uint32_t i = 0; sw && i < sw->port_count; i++) {
		for (unsigned vl = 0; vl < VL_LANES; vl++) {
			for (const struct packet *p = sw->ports[i].queues[vl].head; p; p = p->next) {
				if (buffer_of_packet(net, &sw->ports[i], p) != buffer)
					continue;
				*lane = vl;
				return &sw->ports[i];
			}
		}
	}
	return NULL;
}

/* Follows the waiting from a dead buffer until it comes to one that it has seen; what was before that is no part of it.
 */
static void walk(const struct network *net, size_t from, uint32_t *seen, struct network_deadlock *d)
{
	size_t at = from;
	const struct port *out;
	uint32_t step = 0, first;
	unsigned vl;

	for (; !seen[at]; at = buffer_of(net, out->back, vl)) {
		seen[at] = ++step;
		out = asks_for(net, at, &vl);
		if (!out)
			return;
	}
	first = seen[at];
	d->count = step - first + 1;
	for (uint32_t i = 0; i < d->count && i < NETWORK_DEADLOCK_LANES; i++) {
		out = asks_for(net, at, &vl);
		d->lanes[i] = (struct network_lane){
			.link = out->link, .end = out != &net->ports[net->link_ports[out->link]], .vl = (uint8_t)vl};
		at = buffer_of(net, out->back, vl);
	}
}

void deadlock_look(struct network *net)
{
	size_t buffers = (size_t)net->port_count * VL_LANES;
	bool *alive = calloc(buffers + 1, sizeof(*alive));
	uint32_t *seen = calloc(buffers + 1, sizeof(*seen));
	bool waits = false;

	net->watch_pending = false;
	if (!alive || !seen)
		net->events.out_of_memory = true;
	else
		find_alive(net, alive);
	for (size_t i = 0; i < buffers && !net->events.out_of_memory && !net->deadlock; i++) {
		const struct port *in = &net->ports[i / VL_LANES];

		waits |= in->paused != 0;
		if (!in->sw || !in->credit->lanes[i % VL_LANES].rx.used_blocks || alive[i])
			continue;
		net->deadlock = calloc(1, sizeof(*net->deadlock));
		if (!net->deadlock) {
			net->events.out_of_memory = true;
			break;
		}
		net->deadlock->found_ps = net->now_ps;
		walk(net, i, seen, net->deadlock);
	}
	free(alive);
	free(seen);
	if (waits && !net->deadlock)
		credit_watch(net);
}
