/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The ids that have each port of a port space. Two ids may share a port where no request could be for both: on different
 * addresses, or where both allow it (reuse) and neither listens.
 */
#include <errno.h>
#include <string.h>

#include "cm/state.h"

/* Processes draw from classes of their own, so that they need not ask each other (7 bits of slot: 127 of them). */
enum { PORT_CLASSES = 127 };

static uint64_t port_key(enum cm_space space, uint16_t port)
{
	return (uint64_t)space << 16 | port;
}

bool addr_is_wildcard(const struct cm_addr *a)
{
	static const uint8_t ipv4[16] = {[10] = 0xff, [11] = 0xff}, ipv6[16];

	return !memcmp(a->ip, ipv4, sizeof(ipv4)) || !memcmp(a->ip, ipv6, sizeof(ipv6));
}

static struct cm_id *first_on(const struct cm *cm, enum cm_space space, uint16_t port)
{
	struct map_node *n = map_first(&cm->by_port, port_key(space, port));

	return n ? container_of(n, struct cm_id, by_port) : NULL;
}

static struct cm_id *next_on(const struct cm_id *id)
{
	struct map_node *n = map_next(&id->by_port);

	return n ? container_of(n, struct cm_id, by_port) : NULL;
}

/* 0, or the errno why the two cannot both have the port; `shares`: the new one may share it. */
static int clash(const struct cm_id *there, const struct cm_addr *addr, bool shares, bool afonly)
{
	if (shares && there->reuse && there->state != ID_LISTENING)
		return 0;
	if (afonly && there->afonly && there->local.family != addr->family)
		return 0;
	if (!memcmp(there->local.ip, addr->ip, sizeof(addr->ip)))
		return -EADDRINUSE;
	return addr_is_wildcard(addr) || addr_is_wildcard(&there->local) ? -EADDRNOTAVAIL : 0;
}

static int judge(const struct cm_id *id, const struct cm_addr *addr, bool shares)
{
	for (struct cm_id *i = first_on(id->cm, id->space, addr->port); i; i = next_on(i)) {
		int err = i == id ? 0 : clash(i, addr, shares, id->afonly);

		if (err)
			return err;
	}
	return 0;
}

/* A free port of our class; 0: there is none. */
static uint16_t draw(struct cm_id *id)
{
	struct cm *cm = id->cm;
	uint32_t range = cm->port_last - cm->port_first + 1u;
	uint32_t groups = (range + PORT_CLASSES - 1) / PORT_CLASSES;
	uint32_t start = (uint32_t)prng_below(&cm->prng, groups);

	for (uint32_t i = 0; i < groups; i++) {
		uint32_t port = cm->port_first + (start + i) % groups * PORT_CLASSES + cm->slot;

		if (port <= cm->port_last && !first_on(cm, id->space, (uint16_t)port))
			return (uint16_t)port;
	}
	return 0;
}

int port_bind(struct cm_id *id, const struct cm_addr *addr)
{
	struct cm_addr bound = *addr;
	int err;

	if (!bound.port)
		bound.port = draw(id);
	if (!bound.port)
		return -EADDRNOTAVAIL;
	err = judge(id, &bound, id->reuse);
	if (err)
		return err;
	id->local = bound;
	map_add(&id->cm->by_port, &id->by_port, port_key(id->space, bound.port));
	return 0;
}

void port_leave(struct cm_id *id)
{
	map_remove(&id->cm->by_port, &id->by_port);
}

bool port_is_alone(const struct cm_id *id)
{
	return !judge(id, &id->local, false);
}

/* How well a listener fits: the address itself before a wildcard of its family before the other's. */
static int fit(const struct cm_id *id, const struct cm_addr *to)
{
	if (id->state != ID_LISTENING)
		return 0;
	if (!memcmp(id->local.ip, to->ip, sizeof(to->ip)))
		return 3;
	if (!addr_is_wildcard(&id->local))
		return 0;
	if ((id->local.family == CM_IPV4) == ip_is_ipv4(to->ip))
		return 2;
	return id->local.family == CM_IPV6 && !id->afonly ? 1 : 0;
}

struct cm_id *port_listener_for(const struct cm *cm, const struct flow *in, uint64_t service_id)
{
	struct cm_addr to = {.port = (uint16_t)service_id};
	enum cm_space space;

	memcpy(to.ip, in->dst, sizeof(to.ip));
	return service_space(service_id, &space) ? port_listener(cm, space, &to) : NULL;
}

struct cm_id *port_listener(const struct cm *cm, enum cm_space space, const struct cm_addr *to)
{
	struct cm_id *best = NULL;
	int best_fit = 0;

	for (struct cm_id *i = first_on(cm, space, to->port); i; i = next_on(i)) {
		int f = fit(i, to);

		if (f > best_fit) {
			best_fit = f;
			best = i;
		}
	}
	return best;
}
