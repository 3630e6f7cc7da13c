/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Faults of a link: random and listed losses, jitter, failure and repair at given times. PFC frames
 * are lost only with the link, so that a lossless class stays one on a link that loses packets.
 */
#include <errno.h>
#include <stdlib.h>

#include "net/network_build.h"
#include "net/network_state.h"

enum { PPB = 1000000000, LOST_PACKETS_MAX = 1 << 20 };

struct lost_packet {
	uint32_t flow;
	uint64_t left; /* packets of the flow to come before it */
};

struct impairment {
	struct network_loss loss;
	bool bad; /* Gilbert-Elliott's state */
	struct prng prng;
	uint64_t jitter_ps;
	struct lost_packet *list;
	uint32_t list_count, list_size;
	network_tap tap;
	void *tap_context;
};

enum fault_kind { FAULT_DOWN, FAULT_UP, FAULT_RATE };

struct fault {
	struct fault *next;
	enum fault_kind kind;
	uint32_t link;
	uint32_t number; /* in the order in which they were asked for */
	uint64_t rate_bps;
	bool routed; /* happened; routes follow next */
};

static struct impairment *impair(struct network *net, struct port *port)
{
	if (!port->impairment) {
		port->impairment = calloc(1, sizeof(*port->impairment));
		if (!port->impairment)
			return NULL;
		prng_init(&port->impairment->prng,
			  network_object_seed(net->config.seed, OBJECT_PORT_IMPAIRMENT, (uint32_t)(port - net->ports)));
	}
	return port->impairment;
}

static void set_special(struct port *port, enum port_special bit, bool on)
{
	port->special = (uint8_t)((port->special & ~bit) | (on ? bit : 0));
}

int network_set_loss(struct network *net, uint32_t link, unsigned end, const struct network_loss *loss)
{
	struct port *port = network_port(net, link, end);
	struct impairment *im;

	if (!port || loss->loss_ppb > PPB || loss->good_to_bad_ppb > PPB || loss->bad_to_good_ppb > PPB ||
	    loss->bad_loss_ppb > PPB || loss->corrupt_ppb > PPB)
		return -EINVAL;
	im = impair(net, port);
	if (!im)
		return -ENOMEM;
	im->loss = *loss;
	set_special(port, SPECIAL_LOSS, loss->loss_ppb || loss->good_to_bad_ppb || loss->corrupt_ppb || im->list_count);
	return 0;
}

int network_lose_packet(struct network *net, uint32_t link, unsigned end, uint32_t flow, uint64_t n)
{
	struct port *port = network_port(net, link, end);
	struct impairment *im;

	if (!port)
		return -EINVAL;
	im = impair(net, port);
	if (!im || im->list_count == LOST_PACKETS_MAX)
		return -ENOMEM;
	if (im->list_count == im->list_size) {
		uint32_t size = im->list_size ? 2 * im->list_size : 16;
		struct lost_packet *list = realloc(im->list, size * sizeof(*list));

		if (!list)
			return -ENOMEM;
		im->list = list;
		im->list_size = size;
	}
	im->list[im->list_count++] = (struct lost_packet){flow, n};
	set_special(port, SPECIAL_LOSS, true);
	return 0;
}

int network_set_jitter(struct network *net, uint32_t link, unsigned end, uint64_t jitter_ps)
{
	struct port *port = network_port(net, link, end);
	struct impairment *im;

	/* Credits count on a link that keeps the order. */
	if (!port || jitter_ps > NETWORK_TIME_PS_MAX >> 8 || (port->credit && jitter_ps))
		return -EINVAL;
	im = impair(net, port);
	if (!im)
		return -ENOMEM;
	im->jitter_ps = jitter_ps;
	set_special(port, SPECIAL_JITTER, jitter_ps > 0);
	return 0;
}

int network_tap_port(struct network *net, uint32_t link, unsigned end, network_tap tap, void *context)
{
	struct port *port = network_port(net, link, end);
	struct impairment *im;

	if (!port)
		return -EINVAL;
	im = impair(net, port);
	if (!im)
		return -ENOMEM;
	im->tap = tap;
	im->tap_context = context;
	set_special(port, SPECIAL_TAP, tap != NULL);
	return 0;
}

void link_tap(struct network *net, struct port *port, const struct packet *p)
{
	port->impairment->tap(port->impairment->tap_context, p, net->now_ps);
}

static bool chance(struct impairment *im, uint32_t ppb)
{
	return ppb && prng_below(&im->prng, PPB) < ppb;
}

/* Entries whose packet has come are dropped, so that a list that is used up costs nothing. */
static bool is_listed(struct impairment *im, const struct packet *p)
{
	bool hit = false;

	if (!(p->flags & PACKET_DATA))
		return false;
	for (uint32_t i = 0; i < im->list_count;) {
		struct lost_packet *lost = &im->list[i];

		if (lost->flow == p->flow && lost->left-- == 0) {
			hit = true;
			*lost = im->list[--im->list_count];
			continue;
		}
		i++;
	}
	return hit;
}

static bool is_lost(struct impairment *im, const struct packet *p)
{
	const struct network_loss *loss = &im->loss;
	bool listed = is_listed(im, p);

	if (loss->good_to_bad_ppb && chance(im, im->bad ? loss->bad_to_good_ppb : loss->good_to_bad_ppb))
		im->bad = !im->bad;
	return chance(im, im->bad ? loss->bad_loss_ppb : loss->loss_ppb) || listed;
}

bool link_loses(struct network *net, struct port *port, struct packet *p)
{
	struct impairment *im = port->impairment;

	if (port->special & SPECIAL_DOWN) {
		port_drop(net, port, p, NETWORK_DROP_LINK_DOWN);
		return true;
	}
	if (!(port->special & SPECIAL_LOSS))
		return false;
	if (!is_lost(im, p)) {
		if (im->loss.corrupt_ppb && chance(im, im->loss.corrupt_ppb))
			p->flags |= PACKET_CORRUPT;
		return false;
	}
	port_drop(net, port, p, NETWORK_DROP_LINK_LOSS);
	return true;
}

uint64_t link_jitter_ps(struct network *net, struct port *port)
{
	if (!(port->special & SPECIAL_JITTER))
		return 0;
	return prng_below(&port->impairment->prng, port->impairment->jitter_ps + 1);
}

static int fault_at(struct network *net, uint32_t link, uint64_t at_ps, enum fault_kind kind, uint64_t rate_bps)
{
	struct fault *fault;

	if (link >= net->link_count || at_ps > NETWORK_TIME_PS_MAX)
		return -EINVAL;
	fault = malloc(sizeof(*fault));
	if (!fault)
		return -ENOMEM;
	*fault = (struct fault){.next = net->faults, .kind = kind, .link = link, .rate_bps = rate_bps};
	fault->number = net->faults ? net->faults->number + 1 : 0;
	net->faults = fault;
	event_push(&net->events, at_ps > net->now_ps ? at_ps : net->now_ps, EVENT_CLASS_FAULT, EVENT_FAULT,
		   fault->number, fault);
	return net->events.out_of_memory ? -ENOMEM : 0;
}

int network_link_down(struct network *net, uint32_t link, uint64_t at_ps)
{
	return fault_at(net, link, at_ps, FAULT_DOWN, 0);
}

int network_link_up(struct network *net, uint32_t link, uint64_t at_ps)
{
	return fault_at(net, link, at_ps, FAULT_UP, 0);
}

int network_link_rate(struct network *net, uint32_t link, uint64_t at_ps, uint64_t rate_bps)
{
	if (rate_bps < NETWORK_RATE_BPS_MIN || rate_bps > NETWORK_RATE_BPS_MAX)
		return -EINVAL;
	return fault_at(net, link, at_ps, FAULT_RATE, rate_bps);
}

/* Packets on the wire belong to the part of the far end, whose events and store have them. */
static void go_down(struct network *net, struct port *port)
{
	struct network *far = cores_of_port(net, port->back);
	struct packet *p = port->flight;

	set_special(port, SPECIAL_DOWN, true);
	port->flight = NULL;
	while (p) {
		struct packet *next = p->next;

		if (p->flags & PACKET_PAUSE)
			packet_put(&far->packets, p);
		else
			port_drop(far, port, p, NETWORK_DROP_LINK_DOWN);
		p = next;
	}
	/*
	 * No port is left that could end the pause: the waiting packets are lost, as behind a
	 * failed port.
	 */
	if (port->credit)
		credit_link_down(net, port);
	else
		pfc_release_all(cores_of_port(net, port), port);
}

static void happen(struct network *net, struct port *port, const struct fault *fault)
{
	switch (fault->kind) {
	case FAULT_DOWN: go_down(net, port); break;
	case FAULT_UP: set_special(port, SPECIAL_DOWN, false); break;
	case FAULT_RATE: port_set_rate(net, port, fault->rate_bps); break;
	}
}

static const enum network_event told_as[] = {
	[FAULT_DOWN] = NETWORK_LINK_DOWN,
	[FAULT_UP] = NETWORK_LINK_UP,
	[FAULT_RATE] = NETWORK_LINK_RATE,
};

/* Called twice for each fault: when it happens, and when routes follow. */
void link_fault(struct network *net, struct fault *fault)
{
	struct port *port = &net->ports[net->link_ports[fault->link]];

	if (!fault->routed) {
		fault->routed = true;
		if (net->witness)
			tell_of_port(
				net, port,
				(struct network_record){.event = told_as[fault->kind], .rate_bps = fault->rate_bps});
		bool was_down = port->special & SPECIAL_DOWN;

		happen(net, port, fault);
		happen(net, port->back, fault);
		if (fault->kind == FAULT_UP && was_down && port->credit)
			credit_link_up(net, port);
		if (net->config.converge_ps <= NETWORK_TIME_PS_MAX &&
		    (fault->kind != FAULT_RATE || net->config.weighted))
			event_push(&net->events, net->now_ps + net->config.converge_ps, EVENT_CLASS_FAULT, EVENT_FAULT,
				   fault->number, fault);
		return;
	}
	if (fault->kind != FAULT_RATE)
		port->avoided = port->back->avoided = fault->kind == FAULT_DOWN;
	if (net->routes_stale)
		return;
	net->routes_stale = true;
	network_event(net, net->now_ps, EVENT_CLASS_ROUTES, EVENT_ROUTES);
}

void link_fini(struct network *net)
{
	for (uint32_t i = 0; net->ports && i < net->port_count; i++) {
		if (net->ports[i].impairment)
			free(net->ports[i].impairment->list);
		free(net->ports[i].impairment);
	}
	while (net->faults) {
		struct fault *next = net->faults->next;

		free(net->faults);
		net->faults = next;
	}
}
