/* SPDX-License-Identifier: BSD-2-Clause */
/* A network from creation to destruction, the loop that advances time, and the requests of hosts. */
#include "net/network.h"

#include <errno.h>
#include <stdlib.h>

#include "net/network_state.h"

void *network_scratch(struct network *net, size_t bytes)
{
	if (!net->scratch)
		net->scratch = aligned_alloc(64, (bytes + 63) & ~(size_t)63);
	return net->scratch;
}

struct packet_store *network_packets(struct network *net)
{
	return &net->packets;
}

void network_attach(struct network *net, uint32_t host, const struct endpoint_ops *ops, void *object)
{
	assert(host < net->host_count);
	net->hosts[host].ops = *ops;
	net->hosts[host].object = object;
}

struct endpoint_ops network_endpoint(const struct network *net, uint32_t host, void **object)
{
	assert(host < net->host_count);
	*object = net->hosts[host].object;
	return net->hosts[host].ops;
}

void network_kick(struct network *net, uint32_t host)
{
	struct host *h = &net->hosts[host];

	assert(host < net->host_count);
	if (h->kicked)
		return;
	h->kicked = true;
	h->next_kicked = NULL;
	*net->kicked_end = h;
	net->kicked_end = &h->next_kicked;
}

/* Does what hosts requested in the call that has just returned. */
void network_answer(struct network *net)
{
	while (net->kicked) {
		struct host *h = net->kicked;

		net->kicked = h->next_kicked;
		if (!net->kicked)
			net->kicked_end = &net->kicked;
		h->kicked = false;
		if (h->port->free_ps <= net->now_ps && !h->port->send_pending && !h->port->pause_due && h->ops.pull)
			port_pull(net, h->port);
	}
}

/*
 * An event that is pending and comes no later is enough: when it comes, the host's timer is checked
 * again. Only a few pending events are remembered; a forgotten one does no harm when it comes.
 */
void network_set_timer(struct network *net, uint32_t host, uint64_t at_ps)
{
	struct host *h = &net->hosts[host];
	unsigned latest = 0;

	assert(host < net->host_count);
	if (at_ps < net->now_ps)
		at_ps = net->now_ps;
	h->timer_ps = at_ps;
	if (at_ps > NETWORK_TIME_PS_MAX)
		return;
	for (unsigned i = 0; i < TIMER_EVENTS; i++) {
		if (h->timer_events[i] <= at_ps)
			return;
		if (h->timer_events[i] > h->timer_events[latest])
			latest = i;
	}
	h->timer_events[latest] = at_ps;
	host_event(net, at_ps, EVENT_CLASS_TIMER, EVENT_TIMER, h);
}

static void timer_expire(struct network *net, struct host *h)
{
	for (unsigned i = 0; i < TIMER_EVENTS; i++) {
		if (h->timer_events[i] == net->now_ps)
			h->timer_events[i] = NETWORK_NEVER_PS;
	}
	if (h->timer_ps > net->now_ps) {
		network_set_timer(net, (uint32_t)(h - net->hosts), h->timer_ps);
		return;
	}
	h->timer_ps = NETWORK_NEVER_PS;
	if (h->ops.timer)
		h->ops.timer(h->object, net->now_ps);
}

uint64_t network_now_ps(const struct network *net)
{
	return net->now_ps;
}

uint64_t network_host_rate_bps(const struct network *net, uint32_t host)
{
	assert(host < net->host_count);
	return net->hosts[host].port->rate_bps;
}

void network_stop(struct network *net)
{
	net->stop = true;
}

/* Packets to hosts that cannot be reached meanwhile are dropped. */
static void new_routes(struct network *net)
{
	uint32_t unreachable[2];

	net->routes_stale = false;
	if (route_build(net, unreachable) == -ENOMEM)
		net->events.out_of_memory = true;
	cores_new_routes(net);
}

/* Part of the loop that advances time, which is its only hot caller. */
static inline __attribute__((always_inline)) void happen(struct network *net, enum event_what what, void *object)
{
	switch (what) {
	case EVENT_ARRIVE: port_arrive(net, object); break;
	case EVENT_SEND: port_send(net, object); break;
	case EVENT_TIMER: timer_expire(net, object); break;
	case EVENT_DRAIN: receiver_drain(net, object); break;
	case EVENT_FAULT: link_fault(net, object); break;
	case EVENT_ROUTES: new_routes(net); break;
	case EVENT_PAUSE_END: pfc_expire(net, object); break;
	case EVENT_REFRESH: pfc_refresh(net, object); break;
	case EVENT_SAMPLE: network_take_sample(net); break;
	case EVENT_CREDIT: credit_period(net, object); break;
	case EVENT_LEFT: credit_left(net, object); break;
	case EVENT_LIFETIME: credit_lifetime(net, object); break;
	case EVENT_WATCH: deadlock_look(net); break;
	}
}

static enum network_stop why_stopped(struct network *net, uint64_t until_ps)
{
	if (net->events.out_of_memory)
		return NETWORK_OUT_OF_MEMORY;
	if (net->broken)
		return NETWORK_BROKEN;
	if (net->deadlock)
		return NETWORK_DEADLOCK;
	if (net->stop) {
		net->stop = false;
		return NETWORK_STOPPED;
	}
	net->last_ps = net->now_ps;
	if ((net->events.pending || until_ps < NETWORK_TIME_PS_MAX) && net->now_ps < until_ps)
		net->now_ps = until_ps;
	return net->events.pending ? NETWORK_UNTIL : NETWORK_IDLE;
}

/* An event with a witness, or with checks: the same as without. */
static __attribute__((noinline)) void happen_slowly(struct network *net, const struct event *lent)
{
	const struct event e = *lent;

	if (net->witness)
		tell_of_event(net, &e);
	happen(net, event_kind(&e), e.object);
	if (net->kicked)
		network_answer(net);
	if (net->config.check)
		net->broken = network_check(net);
}

enum network_stop network_advance(struct network *net, uint64_t until_ps, uint64_t max_events)
{
	uint64_t last = max_events < UINT64_MAX - net->counts.events ? net->counts.events + max_events : UINT64_MAX;

	network_answer(net);
	while (!net->stop && !net->broken && !net->deadlock && !net->events.out_of_memory) {
		const struct event *e;

		if (net->counts.events == last)
			return NETWORK_EVENTS;
		e = event_pop(&net->events, until_ps);
		if (!e)
			break;
		net->now_ps = e->time_ps;
		net->counts.events++;
		if (__builtin_expect(net->slow, 0)) {
			happen_slowly(net, e);
			continue;
		}
		happen(net, event_kind(e), e->object);
		if (net->kicked)
			network_answer(net);
	}
	return why_stopped(net, until_ps);
}

enum network_stop network_run(struct network *net, uint64_t until_ps, uint64_t max_events)
{
	if (until_ps > NETWORK_TIME_PS_MAX)
		until_ps = NETWORK_TIME_PS_MAX;
	return net->cores ? cores_run(net, until_ps, max_events) : network_advance(net, until_ps, max_events);
}
