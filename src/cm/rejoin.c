/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A process whose registry is another one from now on, as in another network namespace, or the same one at another
 * address. All that it has there it takes again: the ports of its ids first, which may fail, and then the last wills of
 * its connections.
 */
#include <errno.h>
#include <string.h>

#include "cm/state.h"

/* Takes the ports of one channel's ids there; rows are kept in id->row_there until all have one. */
static int take_ports(struct cm_channel *channel, struct registry *there)
{
	for (struct list *l = channel->ids.next; l != &channel->ids; l = l->next) {
		int err = port_take_there(container_of(l, struct cm_id, link), there);

		if (err)
			return err;
	}
	return 0;
}

static void settle_ports(struct cm_channel *channel)
{
	for (struct list *l = channel->ids.next; l != &channel->ids; l = l->next) {
		struct cm_id *id = container_of(l, struct cm_id, link);

		id->row = id->row_there;
	}
}

static struct cm_channel *channel_of(struct list *l)
{
	return container_of(l, struct cm_channel, link);
}

/* Nobody carries out what a process wants that lives elsewhere. */
static void drop_wills(struct cm *cm)
{
	for (struct list *l = cm->conns.next; l != &cm->conns; l = l->next) {
		struct conn *c = container_of(l, struct conn, link);

		registry_drop_will(&cm->registry, c->will);
		c->will = REGISTRY_NO_ROW;
	}
}

static void make_wills(struct cm *cm)
{
	for (struct list *l = cm->conns.next; l != &cm->conns; l = l->next)
		will_update(container_of(l, struct conn, link));
}

bool cm_uses_address(const struct cm *cm, const uint8_t ip[16])
{
	for (const struct list *c = cm->channels.next; c != &cm->channels; c = c->next) {
		const struct list *ids = &container_of(c, struct cm_channel, link)->ids;

		for (const struct list *l = ids->next; l != ids; l = l->next)
			if (!memcmp(container_of(l, struct cm_id, link)->local.ip, ip, sizeof(uint8_t[16])))
				return true;
	}
	return false;
}

int cm_rejoin(struct cm *cm, void *page)
{
	struct registry there = {.page = page,
				 .slot = cm->slot,
				 .lives = cm->registry.lives,
				 .ctx = cm->registry.ctx,
				 .in_the_way = REGISTRY_NOBODY};
	int err = 0;

	drop_wills(cm);
	registry_join(&there, (uint32_t)prng_next(&cm->prng) | 1);
	for (struct list *l = cm->channels.next; l != &cm->channels && !err; l = l->next)
		err = take_ports(channel_of(l), &there);
	if (err) {
		registry_leave(&there);
		make_wills(cm);
		return err;
	}
	for (struct list *l = cm->channels.next; l != &cm->channels; l = l->next)
		settle_ports(channel_of(l));
	registry_leave(&cm->registry);
	cm->registry = there;
	make_wills(cm);
	cm->sweep = (struct registry_sweep){.slot = cm->slot, .end = cm->slot + 1, .looked = true};
	cm->sweeping = page;
	return 0;
}
