/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Links with credits: a port has a buffer for each virtual lane of what comes in, and sends only what the far end has
 * room for, so nothing is ever dropped for want of room. A packet stays in the buffer of the port that it came in by
 * until it has left by another one. Of a buffer only the first packet asks for its way out, and those behind it wait,
 * whatever their ways are; with network_credits.queue_per_output each packet queues at its way out.
 *
 * The lane of a packet is its class. The queue of a lane at a port is blocked (port.paused) while its first packet
 * has no credits.
 */
#include <errno.h>
#include <stdlib.h>

#include "net/network_state.h"

enum {
	HELD_MAX = 8,           /* packets of a host that wait in its port */
	PERIOD_SYMBOLS = 65536, /* IBTA 7.9.4.2: a flow control packet at the latest after so many symbol times */
	LINK_LANES = 4,         /* of a 4x link, which share its rate */
	UPDATE_SHARE = 8
};

static void forward(struct network *, struct sim_switch *, struct packet *);

static uint8_t bit(unsigned vl)
{
	return (uint8_t)(1u << vl);
}

static uint16_t diff(uint16_t a, uint16_t b)
{
	return (a - b) & CREDIT_MASK;
}

/* ---- what the far end is told --------------------------------------------------------------------- */

static void tell_later(struct network *net, struct port *port)
{
	uint64_t period_ps = wire_ps(port, PERIOD_SYMBOLS * LINK_LANES);

	if (port->credit->timer_pending)
		return;
	port->credit->timer_pending = true;
	port_event(net, net->now_ps + period_ps, EVENT_CLASS_PAUSE, EVENT_CREDIT, port);
}

static void tell(struct network *net, struct port *port, uint8_t lanes)
{
	port->credit->due |= lanes;
	port->pause_due = true;
	port_wake(net, port);
}

/*
 * The limit of the lane's buffer has risen. It is sent to the far end once an eighth of the buffer is
 * free that the far end does not know of, or as soon as it may have less than a packet's room left; else when the
 * period ends.
 */
static void limit_rose(struct network *net, struct port *port, unsigned vl)
{
	struct credit_lane *l = &port->credit->lanes[vl];
	uint16_t untold = diff(credit_limit(&l->rx), l->fccl_told), left = diff(l->fccl_told, l->rx.abr);

	if (!untold || port->credit->due & bit(vl))
		return;
	if (untold * UPDATE_SHARE >= l->rx.buffer_blocks || untold * UPDATE_SHARE >= CREDIT_BLOCKS_MAX ||
	    left < net->credit_mtu_blocks)
		tell(net, port, bit(vl));
	else
		tell_later(net, port);
}

struct packet *credit_frame(struct network *net, struct port *port)
{
	struct credit_port *c = port->credit;
	unsigned vl = (unsigned)__builtin_ctz(c->due);
	struct credit_lane *l = &c->lanes[vl];
	struct packet *p = packet_get(&net->packets);

	if (!p) {
		net->events.out_of_memory = true;
		return NULL;
	}
	c->due &= (uint8_t)~bit(vl);
	l->fctbs_told = l->tx.fctbs;
	l->fccl_told = credit_limit(&l->rx);
	p->flags = PACKET_PAUSE | PACKET_CREDITS;
	p->wire_bytes = CREDIT_FRAME_BYTES;
	p->credits = (struct credit_counters){.vl = (uint8_t)vl, .fctbs = l->fctbs_told, .fccl = l->fccl_told};
	c->frames_sent++;
	return p;
}

/* The period has ended: lanes whose counters the far end does not know are due. */
void credit_period(struct network *net, struct port *port)
{
	uint8_t lanes = 0;

	port->credit->timer_pending = false;
	for (unsigned vl = 0; vl < VL_LANES; vl++) {
		const struct credit_lane *l = &port->credit->lanes[vl];

		if (l->tx.fctbs != l->fctbs_told || credit_limit(&l->rx) != l->fccl_told)
			lanes |= bit(vl);
	}
	if (lanes)
		tell(net, port, lanes);
}

/* ---- lanes that wait for credits ------------------------------------------------------------------ */

void credit_watch(struct network *net)
{
	if (net->watch_pending || net->deadlock || net->config.credits.lifetime_ps)
		return;
	net->watch_pending = true;
	network_event(net, net->now_ps + NETWORK_DEADLOCK_PERIOD_PS, EVENT_CLASS_TIMER, EVENT_WATCH);
}

static void life_begins(struct network *net, struct port *port, uint64_t end_ps)
{
	port_event(net, end_ps > net->now_ps ? end_ps : net->now_ps, EVENT_CLASS_PAUSE, EVENT_LIFETIME, port);
}

/* Whether the first packet of the lane may be sent has to be looked at again. */
static void gate(struct network *net, struct port *port, unsigned vl)
{
	struct credit_lane *l = &port->credit->lanes[vl];
	const struct packet *head = port->queues[vl].head;
	bool blocked =
		head && !(port->special & SPECIAL_DOWN) && !credit_may_send(&l->tx, credit_blocks(head->wire_bytes));

	if (blocked == (bool)(port->paused & bit(vl)))
		return;
	port->paused ^= bit(vl);
	if (blocked) {
		l->since_ps = net->now_ps;
		l->waits++;
		if (net->config.credits.lifetime_ps)
			life_begins(net, port, l->head_ps + net->config.credits.lifetime_ps);
		credit_watch(net);
		return;
	}
	uint64_t ps = net->now_ps - l->since_ps;

	l->waited_ps += ps;
	if (ps > l->waited_ps_max)
		l->waited_ps_max = ps;
	if (head)
		port_wake(net, port);
}

/* How many input ports have their turn at that output before the packet's. */
static uint32_t turns_before(const struct port *port, const struct packet *p)
{
	uint32_t n = port->sw->port_count;

	return (p->in_port + n - port->credit->lanes[p->class].turn) % n;
}

/* First packets of buffers leave in turns of the ports that they came in by. Serving the first one keeps the order. */
static void queue_by_turn(struct port *port, struct packet *p)
{
	struct queue *q = &port->queues[p->class];
	struct packet **at = &q->head;

	while (*at && turns_before(port, *at) <= turns_before(port, p))
		at = &(*at)->next;
	if (!*at) {
		queue_push(q, p);
		return;
	}
	p->next = *at;
	*at = p;
	q->bytes += p->wire_bytes;
	q->packets++;
}

static void queue_up(struct network *net, struct port *port, struct packet *p)
{
	unsigned vl = p->class;
	bool first;

	if (port->sw && !net->config.credits.queue_per_output)
		queue_by_turn(port, p);
	else
		queue_push(&port->queues[vl], p);
	first = port->queues[vl].head == p;
	queue_changes(net, port, port->queued_bytes + p->wire_bytes);
	if (port->queued_bytes > port->queued_bytes_max)
		port->queued_bytes_max = port->queued_bytes;
	port->ready |= bit(vl);
	if (first) {
		port->credit->lanes[vl].head_ps = net->now_ps;
		gate(net, port, vl);
	}
}

static struct packet *take_first(struct network *net, struct port *port, unsigned vl)
{
	struct packet *p = queue_pop(&port->queues[vl]);

	queue_changes(net, port, port->queued_bytes - p->wire_bytes);
	if (!port->queues[vl].head)
		port->ready &= (uint8_t)~bit(vl);
	port->credit->lanes[vl].head_ps = net->now_ps;
	return p;
}

void credit_receive(struct network *net, struct port *from, struct packet *p)
{
	struct port *port = from->back;
	const struct credit_counters h = p->credits;
	struct credit_lane *l = &port->credit->lanes[h.vl];

	packet_put(&net->packets, p);
	credit_heard(&l->tx, &l->rx, h.fctbs, h.fccl);
	gate(net, port, h.vl);
	limit_rose(net, port, h.vl);
}

/* ---- buffers --------------------------------------------------------------------------------------- */

static unsigned lane_in(const struct packet *p)
{
	return p->flags >> PACKET_LANE_SHIFT & (VL_LANES - 1);
}

/* The packet has left its buffer, and so the next one may ask for its way out. */
static void leave_buffer(struct network *net, struct sim_switch *sw, uint16_t in_port, unsigned vl, uint16_t blocks)
{
	struct port *in = &sw->ports[in_port];
	struct credit_lane *l = &in->credit->lanes[vl];
	struct packet *next;

	credit_freed(&l->rx, blocks);
	limit_rose(net, in, vl);
	if (net->config.credits.queue_per_output)
		return;
	l->asks = false;
	if (!l->behind.head)
		return;
	next = queue_pop(&l->behind);
	l->asks = true;
	forward(net, sw, next);
}

static void lose(struct network *net, struct sim_switch *sw, struct port *at, struct packet *p, enum network_drop why)
{
	uint16_t in = p->in_port, blocks = credit_blocks(p->wire_bytes);
	unsigned vl = lane_in(p);

	port_drop(net, at, p, why);
	leave_buffer(net, sw, in, vl, blocks);
}

static void forward(struct network *net, struct sim_switch *sw, struct packet *p)
{
	struct port *in = &sw->ports[p->in_port], *out;

	if (p->hops > HOPS_MAX) {
		lose(net, sw, in, p, NETWORK_DROP_HOPS);
		return;
	}
	out = route_choose(net, sw, p);
	if (!out) {
		lose(net, sw, in, p, NETWORK_DROP_NO_ROUTE);
		return;
	}
	if (sw->lane_maps)
		p->class = subnet_lane(sw, out, p);
	if (p->class == SUBNET_LANE_DROPS) {
		p->class = (uint8_t)lane_in(p);
		lose(net, sw, in, p, NETWORK_DROP_NO_ROUTE);
		return;
	}
	queue_up(net, out, p);
	if (port_is_ready(out))
		port_wake(net, out);
}

void credit_arrive_switch(struct network *net, struct sim_switch *sw, uint16_t in_port, struct packet *p)
{
	struct port *in = &sw->ports[in_port];
	struct credit_lane *l = &in->credit->lanes[p->class];

	if (!credit_received(&l->rx, credit_blocks(p->wire_bytes))) {
		port_drop(net, in, p, NETWORK_DROP_CREDITS);
		return;
	}
	p->in_port = in_port;
	p->hops++;
	p->flags = (uint16_t)((p->flags & ~PACKET_LANE_MASK) | p->class << PACKET_LANE_SHIFT);
	if (l->asks) {
		queue_push(&l->behind, p);
		return;
	}
	l->asks = !net->config.credits.queue_per_output;
	forward(net, sw, p);
}

/* A host takes a packet as soon as it is there. */
void credit_arrive_host(struct network *net, struct port *port, struct packet *p)
{
	struct credit_lane *l = &port->credit->lanes[p->class];
	uint16_t blocks = credit_blocks(p->wire_bytes);

	if (!credit_received(&l->rx, blocks)) {
		port_drop(net, port->back, p, NETWORK_DROP_CREDITS);
		return;
	}
	credit_freed(&l->rx, blocks);
	limit_rose(net, port, p->class);
	host_deliver(net, port->host, p);
}

/* ---- sending --------------------------------------------------------------------------------------- */

/* The service level is the class, and so is the lane, unless a subnet's tables say otherwise. False: the lane drops. */
static bool set_lane(const struct network *net, struct packet *p)
{
	unsigned level = p->class;

	if (net->levels && p->dst < net->host_count)
		level = subnet_level(net, p);
	p->flags = (uint16_t)((p->flags & ~PACKET_SL_MASK) | level << PACKET_SL_SHIFT);
	if (net->levels && subnet_host_lane(net, p) == SUBNET_LANE_DROPS)
		return false;
	if (net->levels)
		p->class = subnet_host_lane(net, p);
	return true;
}

/* Asks the host for packets until one of them may be sent. */
static void pull(struct network *net, struct port *port)
{
	struct host *host = port->host;
	/* Of a subnet nobody knows the lane before the packet. */
	uint32_t allowed = net->levels ? UINT8_MAX : (uint8_t)~port->paused;
	unsigned held = 0;

	for (unsigned vl = 0; vl < VL_LANES; vl++)
		held += port->queues[vl].packets;
	while (!port_is_ready(port) && held < HELD_MAX) {
		struct packet *p = host->ops.pull ? host->ops.pull(host->object, allowed, net->now_ps) : NULL;

		if (!p)
			return;
		assert(p->class < PACKET_CLASSES && p->wire_bytes > 0);
		net->counts.packets++;
		if (!set_lane(net, p)) {
			port_drop(net, port, p, NETWORK_DROP_NO_ROUTE);
			continue;
		}
		queue_up(net, port, p);
		held++;
		if (!net->levels)
			allowed = (uint8_t)~port->paused;
	}
}

static void send_lane(struct network *net, struct port *port, unsigned vl)
{
	struct packet *p = take_first(net, port, vl);
	struct credit_lane *l = &port->credit->lanes[vl];
	uint16_t blocks = credit_blocks(p->wire_bytes);

	if (port->sw)
		l->turn = (uint16_t)((p->in_port + 1) % port->sw->port_count);
	credit_sent(&l->tx, blocks);
	port->credit->leaving =
		(struct leaving){.any = port->sw, .in_port = p->in_port, .vl = (uint8_t)lane_in(p), .blocks = blocks};
	port_transmit(net, port, p);
	if (port->sw)
		port_event(net, port->free_ps, EVENT_CLASS_PAUSE, EVENT_LEFT, port);
	gate(net, port, vl);
	tell_later(net, port);
}

void credit_send(struct network *net, struct port *port)
{
	struct credit_port *c = port->credit;
	uint32_t bytes[VL_LANES] = {0};
	uint8_t ready;

	port->send_pending = true; /* a lane that pull() fills is seen below */
	if (port->host && !c->due)
		pull(net, port);
	port->send_pending = false;
	if (c->due) {
		port_transmit_frame(net, port);
		port->pause_due = c->due != 0;
		port_wake(net, port);
		return;
	}
	ready = port->ready & (uint8_t)~port->paused;
	if (!ready)
		return;
	for (unsigned vl = 0; vl < VL_LANES; vl++) {
		if (ready >> vl & 1)
			bytes[vl] = port->queues[vl].head->wire_bytes;
	}
	send_lane(net, port, (unsigned)vl_choose(&c->arbiter, c->tables, ready, bytes));
	if (port->host || port_is_ready(port))
		port_wake(net, port);
}

/* Before anything is sent at that time, so that ports choose among all that is there. */
void credit_left(struct network *net, struct port *port)
{
	struct leaving l = port->credit->leaving;

	port->credit->leaving.any = false;
	leave_buffer(net, port->sw, l.in_port, l.vl, l.blocks);
}

/* Heads of lanes that have been blocked for too long are dropped (IBTA 18.2.5.4, HOQLife). */
void credit_lifetime(struct network *net, struct port *port)
{
	uint64_t life_ps = net->config.credits.lifetime_ps;

	for (unsigned vl = 0; vl < VL_LANES; vl++) {
		if (!port->sw || !(port->paused >> vl & 1) || net->now_ps - port->credit->lanes[vl].head_ps < life_ps)
			continue;
		struct packet *p = take_first(net, port, vl);

		lose(net, port->sw, port, p, NETWORK_DROP_LIFETIME);
		gate(net, port, vl);
		if (port->paused >> vl & 1)
			life_begins(net, port, net->now_ps + life_ps);
	}
}

/* ---- the life of a link ----------------------------------------------------------------------------- */

static void port_begin(struct port *port, const struct port *back)
{
	for (unsigned vl = 0; vl < VL_LANES; vl++) {
		struct credit_lane *l = &port->credit->lanes[vl];

		l->tx.fctbs = l->fctbs_told = 0;
		l->rx.abr = 0;
		l->fccl_told = credit_limit(&l->rx);
		l->tx.fccl =
			(uint16_t)(back->credit->lanes[vl].rx.buffer_blocks - back->credit->lanes[vl].rx.used_blocks);
		if (l->tx.fccl > CREDIT_BLOCKS_MAX)
			l->tx.fccl = CREDIT_BLOCKS_MAX;
	}
}

void credit_link_up(struct network *net, struct port *port)
{
	port_begin(port, port->back);
	port_begin(port->back, port);
	for (unsigned vl = 0; vl < VL_LANES; vl++) {
		gate(net, port, vl);
		gate(net, port->back, vl);
	}
}

/* What waits is sent, and lost with the link. */
void credit_link_down(struct network *net, struct port *port)
{
	for (unsigned vl = 0; vl < VL_LANES; vl++)
		gate(net, port, vl);
}

int credit_init(struct network *net)
{
	const struct network_credits *c = &net->config.credits;

	if (!c->buffer_bytes)
		return 0;
	net->credit_ports = calloc(net->port_count + 1, sizeof(*net->credit_ports));
	if (!net->credit_ports)
		return -1;
	net->credit_mtu_blocks = credit_blocks(net->config.mtu_bytes);
	for (uint32_t i = 0; i < net->port_count; i++) {
		net->ports[i].credit = &net->credit_ports[i];
		net->credit_ports[i].tables = &net->config.credits.arbitration;
		for (unsigned vl = 0; vl < VL_LANES; vl++)
			net->credit_ports[i].lanes[vl].rx.buffer_blocks = c->buffer_bytes / CREDIT_BLOCK_BYTES;
	}
	for (uint32_t i = 0; i < net->port_count; i++)
		port_begin(&net->ports[i], net->ports[i].back);
	for (uint32_t i = 0; i < net->switch_count; i++)
		net->switches[i].features |= FEATURE_CREDITS;
	return 0;
}

void credit_count(const struct network *net, const struct port *port, struct network_port_counts *n)
{
	const struct credit_port *c = port->credit;

	n->credit_frames_sent = c->frames_sent;
	for (unsigned vl = 0; vl < VL_LANES; vl++) {
		const struct credit_lane *l = &c->lanes[vl];
		uint64_t ps = port->paused >> vl & 1 ? net->now_ps - l->since_ps : 0;

		n->credit_waits += l->waits;
		n->paused_ps[vl] = l->waited_ps + ps;
		if (l->waited_ps_max > n->longest_pause_ps)
			n->longest_pause_ps = l->waited_ps_max;
		if (ps > n->longest_pause_ps)
			n->longest_pause_ps = ps;
		if (l->rx.used_max > n->buffer_blocks_max)
			n->buffer_blocks_max = l->rx.used_max;
	}
}

int credit_arbitrate(struct network *net, struct port *port, const struct vl_tables *tables)
{
	struct vl_tables *own = malloc(sizeof(*own));

	if (!own)
		return -ENOMEM;
	*own = *tables;
	if (port->credit->tables != &net->config.credits.arbitration)
		free((void *)port->credit->tables);
	port->credit->tables = own;
	return 0;
}

void credit_fini(struct network *net)
{
	for (uint32_t i = 0; net->credit_ports && i < net->port_count; i++) {
		if (net->credit_ports[i].tables != &net->config.credits.arbitration)
			free((void *)net->credit_ports[i].tables);
	}
	free(net->credit_ports);
}
