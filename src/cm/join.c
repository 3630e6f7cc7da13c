/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memberships of ids in multicast groups, as rdma_cm has them on RoCE (docs/rdmacm.md 8): a number and a context of
 * their own, and one event that says how the queue pair sends to the group. The caller makes the host receive the
 * group's packets.
 */
#include <errno.h>
#include <string.h>

#include "base/ipudp.h"
#include "cm/state.h"

static uint32_t new_number(struct cm *cm)
{
	while (cm_join_find(cm, cm->next_join))
		cm->next_join = (cm->next_join + cm->number_step) & INT32_MAX;
	return cm->next_join;
}

/* An address vector has both ends in one family. */
static bool is_in_family_of(const uint8_t gid[16], const struct cm_id *id)
{
	return ip_is_ipv4(gid) == ip_is_ipv4(id->cm->gids[id->gid_index].raw);
}

int cm_id_join(struct cm_id *id, const uint8_t gid[16], bool send_only, uint64_t uid, struct cm_join **out)
{
	struct cm *cm = id->cm;
	struct cm_join *j;

	if (id->gid_index < 0 || (id->state != ID_BOUND && id->state != ID_ADDR_RESOLVED) || id->qp_type != QPT_UD ||
	    !gid_is_multicast(gid) || !is_in_family_of(gid, id))
		return -EINVAL;
	j = cm->join_count < CM_JOINS_MAX ? pool_get(&cm->pool, sizeof(*j)) : NULL;
	if (!j)
		return -ENOMEM;
	*j = (struct cm_join){.id = id, .number = new_number(cm), .uid = uid, .send_only = send_only};
	cm->next_join = (j->number + cm->number_step) & INT32_MAX;
	memcpy(j->gid, gid, sizeof(j->gid));
	map_add(&cm->by_join, &j->by_number, j->number);
	list_append(&id->joins, &j->link);
	cm->join_count++;
	*out = j;
	return 0;
}

void cm_join_done(struct cm_join *j, int status)
{
	const struct cm_id *id = j->id;
	struct cm_event e = {.type = status ? CM_MULTICAST_ERROR : CM_MULTICAST_JOIN, .status = status};

	if (!status) {
		e.ah = (struct ah_attr){.sgid_index = (uint8_t)id->gid_index,
					.hop_limit = CM_HOP_LIMIT,
					.traffic_class = id->tos,
					.is_global = true,
					.port = 1};
		memcpy(e.ah.dgid, j->gid, sizeof(e.ah.dgid));
		e.param.qpn = NIC_MCAST_QPN;
		e.param.qkey = CM_QKEY;
	}
	event_tell_join(j, &e);
}

uint32_t cm_join_number(const struct cm_join *j)
{
	return j->number;
}

struct cm_join *cm_join_find(const struct cm *cm, uint32_t number)
{
	struct map_node *n = map_first(&cm->by_join, number);

	return n ? container_of(n, struct cm_join, by_number) : NULL;
}

struct cm_id *cm_join_id(const struct cm_join *j)
{
	return j->id;
}

static uint32_t interface_of(const struct cm_id *id)
{
	return id->cm->gids[id->gid_index].ifindex;
}

uint32_t cm_join_interface(const struct cm_join *j)
{
	return interface_of(j->id);
}

uint32_t cm_join_leave(struct cm_join *j)
{
	struct cm *cm = j->id->cm;
	uint32_t taken = j->events_taken;

	event_forget_join(j);
	map_remove(&cm->by_join, &j->by_number);
	list_remove(&j->link);
	cm->join_count--;
	pool_put(&cm->pool, j, sizeof(*j));
	return taken;
}

void join_leave_all(struct cm_id *id)
{
	while (!list_empty(&id->joins))
		cm_join_leave(container_of(id->joins.next, struct cm_join, link));
}

/* Ids that joined are few, and so are the calls. */
static bool id_hears(const struct cm_id *id, const uint8_t gid[16], uint32_t ifindex)
{
	for (const struct list *l = id->joins.next; l != &id->joins; l = l->next) {
		const struct cm_join *j = container_of(l, struct cm_join, link);

		if (!j->send_only && !memcmp(j->gid, gid, sizeof(j->gid)) && (!ifindex || interface_of(id) == ifindex))
			return true;
	}
	return false;
}

bool cm_hears(const struct cm *cm, const uint8_t gid[16], uint32_t ifindex)
{
	if (!cm->join_count)
		return false;
	for (const struct list *c = cm->channels.next; c != &cm->channels; c = c->next) {
		const struct cm_channel *ch = container_of(c, struct cm_channel, link);

		for (const struct list *l = ch->ids.next; l != &ch->ids; l = l->next) {
			if (id_hears(container_of(l, struct cm_id, link), gid, ifindex))
				return true;
		}
	}
	return false;
}
