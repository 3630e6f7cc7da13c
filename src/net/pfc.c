/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Priority-based flow control, PFC (IEEE 802.1Qbb): PFC pause frames, which pause and resume classes. One frame
 * carries all classes that are due at a port, in their state when it leaves (struct pause_frame).
 */
#include "net/network_state.h"

enum { QUANTUM_BITS = 512 };

static uint64_t quanta_ps(const struct port *port, uint32_t quanta)
{
	return (uint64_t)((unsigned __int128)quanta * (QUANTUM_BITS / 8) * port->byte_ps >> BYTE_PS_SHIFT);
}

static bool has_timer(const struct network *net)
{
	return net->config.pfc != NETWORK_PFC_HPCC;
}

static void due(struct network *net, struct port *port, uint8_t classes)
{
	port->pfc->due |= classes;
	port->pause_due = true;
	port_wake(net, port);
}

static void refresh_later(struct network *net, struct port *port)
{
	if (!has_timer(net) || port->pfc->refresh_pending)
		return;
	port->pfc->refresh_pending = true;
	port_event(net, net->now_ps + quanta_ps(port, net->config.pause_quanta) / 2, EVENT_CLASS_PAUSE, EVENT_REFRESH,
		   port);
}

/*
 * How deep the switch's own ports are paused in that class; these pauses are the reason to pause
 * others.
 */
static uint8_t depth_above(const struct sim_switch *sw, unsigned class)
{
	uint8_t depth = 0;

	for (uint32_t i = 0; i < sw->port_count; i++) {
		const struct port *port = &sw->ports[i];

		if (port->paused & 1u << class && port->pfc->depth[class] > depth)
			depth = port->pfc->depth[class];
	}
	return depth;
}

void pfc_pause(struct network *net, struct port *port, unsigned class)
{
	uint8_t depth = port->sw ? depth_above(port->sw, class) : 0;

	port->pfc->pausing |= (uint8_t)(1u << class);
	port->pfc->depth_sent = depth < UINT8_MAX ? (uint8_t)(depth + 1) : depth;
	due(net, port, (uint8_t)(1u << class));
	refresh_later(net, port);
}

void pfc_resume(struct network *net, struct port *port, unsigned class)
{
	port->pfc->pausing &= (uint8_t) ~(1u << class);
	if (net->config.no_resume_frames && has_timer(net)) {
		/*
		 * A pause that was not sent yet is dropped too; other classes that are due stay
		 * due.
		 */
		port->pfc->due &= (uint8_t) ~(1u << class);
		port->pause_due = port->pfc->due != 0;
		return;
	}
	due(net, port, (uint8_t)(1u << class));
}

void pfc_refresh(struct network *net, struct port *port)
{
	port->pfc->refresh_pending = false;
	if (!port->pfc->pausing)
		return;
	due(net, port, port->pfc->pausing);
	refresh_later(net, port);
}

struct packet *pfc_frame(struct network *net, struct port *port)
{
	struct pfc_port *pfc = port->pfc;
	struct packet *p = packet_get(&net->packets);

	if (!p) {
		net->events.out_of_memory = true;
		return NULL;
	}
	p->flags = PACKET_PAUSE;
	p->wire_bytes = net->config.pause_wire_bytes;
	p->pfc = (struct pause_frame){.classes = pfc->due,
				      .pause = pfc->due & pfc->pausing,
				      .depth = pfc->depth_sent,
				      .quanta = has_timer(net) ? net->config.pause_quanta : 0};
	pfc->pauses_sent += p->pfc.pause != 0;
	net->counts.pauses += p->pfc.pause != 0;
	pfc->resumes_sent += (p->pfc.classes & ~p->pfc.pause) != 0;
	pfc->due = 0;
	return p;
}

static void release(struct network *net, struct port *port, unsigned class)
{
	struct pfc_port *pfc = port->pfc;
	uint64_t ps = net->now_ps - pfc->since_ps[class];

	port->paused &= (uint8_t) ~(1u << class);
	pfc->paused_ps[class] += ps;
	if (ps > pfc->longest_pause_ps)
		pfc->longest_pause_ps = ps;
	pfc->depth[class] = 0;
	if (port->host || port->ready & 1u << class)
		port_wake(net, port);
}

static void stop(struct network *net, struct port *port, unsigned class, const struct pause_frame *frame)
{
	struct pfc_port *pfc = port->pfc;

	if (!(port->paused & 1u << class))
		pfc->since_ps[class] = net->now_ps;
	port->paused |= (uint8_t)(1u << class);
	if (frame->depth > pfc->depth[class])
		pfc->depth[class] = frame->depth;
	if (frame->depth > pfc->depth_max)
		pfc->depth_max = frame->depth;
	pfc->until_ps[class] = NETWORK_NEVER_PS;
	if (frame->quanta) {
		pfc->until_ps[class] = net->now_ps + quanta_ps(port, frame->quanta);
		port_event(net, pfc->until_ps[class], EVENT_CLASS_PAUSE, EVENT_PAUSE_END, port);
	}
}

void pfc_receive(struct network *net, struct port *from, struct packet *p)
{
	const struct pause_frame *frame = &p->pfc;
	struct port *port = from->back;

	port->pfc->pauses_received += frame->pause != 0;
	port->pfc->resumes_received += (frame->classes & ~frame->pause) != 0;
	for (unsigned class = 0; class < PACKET_CLASSES; class ++) {
		if (frame->pause & 1u << class)
			stop(net, port, class, frame);
		else if (frame->classes & port->paused & 1u << class)
			release(net, port, class);
	}
	packet_put(&net->packets, p);
}

void pfc_release_all(struct network *net, struct port *port)
{
	for (unsigned class = 0; class < PACKET_CLASSES; class ++) {
		if (port->paused & 1u << class)
			release(net, port, class);
	}
}

void pfc_expire(struct network *net, struct port *port)
{
	for (unsigned class = 0; class < PACKET_CLASSES; class ++) {
		if (port->paused & 1u << class && port->pfc->until_ps[class] <= net->now_ps)
			release(net, port, class);
	}
}
