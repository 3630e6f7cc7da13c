/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The ids that have each port of a port space. Two ids may share a port where no request could be for both: on
 * different addresses, or where both allow it (reuse) and neither listens. Ids of other processes are in the registry.
 */
#include <errno.h>
#include <string.h>

#include "cm/state.h"

/* Where processes draw from first, each from a class of its own, they are not in each other's way (7 bits of slot). */
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

static struct registry_claim claim_of(const struct cm_id *id)
{
	return (struct registry_claim){.space = id->space,
				       .addr = id->local,
				       .reuse = id->reuse,
				       .afonly = id->afonly,
				       .listening = id->state == ID_LISTENING};
}

/* Whether any other id of ours keeps it from the port. */
static int judge(const struct cm_id *id, const struct registry_claim *wanted)
{
	for (struct cm_id *i = first_on(id->cm, id->space, wanted->addr.port); i; i = next_on(i)) {
		struct registry_claim there = claim_of(i);
		int err = i == id ? 0 : registry_clash(&there, wanted);

		if (err)
			return err;
	}
	return 0;
}

/* A port that is not for a listener needs no row: others need to know nothing but that it is taken. */
static int take(struct cm_id *id, const struct registry_claim *wanted, bool asked)
{
	struct registry *r = &id->cm->registry;

	if (asked)
		return registry_bind(r, wanted, &id->row);
	id->drawn = registry_draw(r, id->space, wanted->addr.port);
	return id->drawn ? 0 : -EADDRINUSE;
}

/* Takes the port if nobody at all has it. */
static bool take_drawn(struct cm_id *id, struct registry_claim *wanted, uint32_t port, bool asked)
{
	wanted->addr.port = (uint16_t)port;
	return !first_on(id->cm, id->space, wanted->addr.port) && !take(id, wanted, asked);
}

/* A free port of our class, in which nobody else draws before its own is used up, else any. -EADDRNOTAVAIL: there is
 * none. */
static int draw(struct cm_id *id, struct registry_claim *wanted, bool asked)
{
	struct cm *cm = id->cm;
	uint32_t range = cm->port_last - cm->port_first + 1u;
	uint32_t groups = (range + PORT_CLASSES - 1) / PORT_CLASSES;
	uint32_t start = (uint32_t)prng_below(&cm->prng, groups);

	for (uint32_t i = 0; i < groups; i++) {
		uint32_t port = cm->port_first + (start + i) % groups * PORT_CLASSES + cm->slot;

		if (port <= cm->port_last && take_drawn(id, wanted, port, asked))
			return 0;
	}
	start = (uint32_t)prng_below(&cm->prng, range);
	for (uint32_t i = 0; i < range; i++) {
		if (take_drawn(id, wanted, cm->port_first + (start + i) % range, asked))
			return 0;
	}
	return -EADDRNOTAVAIL;
}

struct cm_obstacle cm_take_obstacle(struct cm *cm)
{
	struct cm_obstacle last = cm->obstacle;

	cm->obstacle = (struct cm_obstacle){.kind = CM_NO_OBSTACLE};
	return last;
}

static void note_obstacle(struct cm *cm, const struct registry *r, const struct registry_claim *wanted, int err)
{
	int slot = r->in_the_way;

	cm->obstacle = (struct cm_obstacle){.slot = slot, .space = wanted->space, .addr = wanted->addr};
	if (err == -ENOMEM)
		cm->obstacle.kind = CM_NO_ROW_LEFT;
	else if (!wanted->addr.port)
		cm->obstacle.kind = CM_NO_PORT_LEFT;
	else
		cm->obstacle.kind = slot == REGISTRY_NOBODY ? CM_PORT_TAKEN_HERE : CM_PORT_TAKEN_THERE;
}

int port_bind(struct cm_id *id, const struct cm_addr *addr, bool asked)
{
	struct registry_claim wanted = claim_of(id);
	int err;

	id->cm->registry.in_the_way = REGISTRY_NOBODY;
	wanted.addr = *addr;
	if (!addr->port) {
		err = draw(id, &wanted, asked);
	} else {
		err = judge(id, &wanted);
		if (!err)
			err = take(id, &wanted, true);
	}
	if (err) {
		wanted.addr = *addr;
		note_obstacle(id->cm, &id->cm->registry, &wanted, err);
		return err;
	}
	id->local = wanted.addr;
	map_add(&id->cm->by_port, &id->by_port, port_key(id->space, id->local.port));
	return 0;
}

void port_leave(struct cm_id *id)
{
	struct cm *cm = id->cm;

	if (!id->by_port.in)
		return;
	map_remove(&cm->by_port, &id->by_port);
	if (id->drawn)
		registry_undraw(&cm->registry, id->space, id->local.port);
	registry_release(&cm->registry, id->row, first_on(cm, id->space, id->local.port));
	id->row = REGISTRY_NO_ROW;
	id->drawn = false;
}

int port_take_there(struct cm_id *id, struct registry *there)
{
	struct registry_claim wanted = claim_of(id);
	int err = 0;

	id->row_there = REGISTRY_NO_ROW;
	if (id->by_port.in && id->row != REGISTRY_NO_ROW)
		err = registry_bind(there, &wanted, &id->row_there);
	else if (id->drawn)
		/* Where somebody has it, both have: nobody listens there. */
		registry_draw(there, id->space, id->local.port);
	if (err)
		note_obstacle(id->cm, there, &wanted, err);
	return err;
}

int port_listen(struct cm_id *id)
{
	struct registry_claim wanted = claim_of(id);
	int err;

	wanted.listening = true;
	id->cm->registry.in_the_way = REGISTRY_NOBODY;
	err = judge(id, &wanted);
	if (!err)
		err = registry_change(&id->cm->registry, &id->row, &wanted);
	if (err)
		note_obstacle(id->cm, &id->cm->registry, &wanted, err);
	return err;
}

void port_amend(struct cm_id *id)
{
	struct registry_claim changed = claim_of(id);

	/* What it shared before it may share still: only who comes next is judged by it. */
	registry_amend(&id->cm->registry, id->row, &changed);
}

struct cm_id *port_listener_for(const struct cm *cm, const uint8_t *ip, uint64_t service_id)
{
	struct cm_addr to = {.port = (uint16_t)service_id};
	enum cm_space space;
	int fit;

	memcpy(to.ip, ip, sizeof(to.ip));
	return service_space(service_id, &space) ? port_listener(cm, space, &to, &fit) : NULL;
}

struct cm_id *port_listener(const struct cm *cm, enum cm_space space, const struct cm_addr *to, int *fit)
{
	struct cm_id *best = NULL;

	*fit = 0;
	for (struct cm_id *i = first_on(cm, space, to->port); i; i = next_on(i)) {
		struct registry_claim there = claim_of(i);
		int f = registry_fit(&there, to->ip);

		if (f > *fit) {
			*fit = f;
			best = i;
		}
	}
	return best;
}
