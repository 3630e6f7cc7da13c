/* SPDX-License-Identifier: BSD-2-Clause */
/* Memberships in multicast groups: who may join, what is told, and what goes with what. */
#include "support/cm_pair.h"
#include "support/test.h"

enum { UID = 7 };

static struct world w;
static const uint8_t group[16] = {[10] = 0xff, [11] = 0xff, [12] = 239, [13] = 1, [14] = 2, [15] = 3};
static const uint8_t other_group[16] = {[10] = 0xff, [11] = 0xff, [12] = 239, [13] = 1, [14] = 2, [15] = 4};
static const uint8_t ipv6_group[16] = {0xff, 0x0e, [15] = 3};
static const uint8_t host[16] = {[10] = 0xff, [11] = 0xff, [12] = 10, [15] = 2};

static int setup(void **state)
{
	world_init(&w, wire_perfect, 1);
	return 0;
}

static int teardown(void **state)
{
	world_fini(&w);
	return 0;
}

static struct cm_channel *channel(void)
{
	return w.ends[SERVER].channel;
}

static struct cm_id *new_id(enum cm_space space, enum qp_type type)
{
	struct cm_id *id;

	assert_int_equal(cm_id_create(channel(), space, type, SERVER_UID, &id), 0);
	return id;
}

static struct cm_id *bound_id(void)
{
	struct cm_id *id = new_id(CM_SPACE_UDP, QPT_UD);
	struct cm_addr here = w.ends[SERVER].addr;

	assert_int_equal(cm_id_bind(id, &here), 0);
	return id;
}

static struct cm_join *joined(struct cm_id *id, const uint8_t *gid, bool send_only, uint64_t uid)
{
	struct cm_join *j;

	assert_int_equal(cm_id_join(id, gid, send_only, uid, &j), 0);
	return j;
}

static bool hears(const uint8_t *gid)
{
	return cm_hears(w.ends[SERVER].cm, gid, 0);
}

#define CASE(name) TEST_WITH(name, setup, teardown)

CASE(the_event_says_how_to_send_to_the_group)
{
	struct cm_id *id = bound_id();
	struct cm_join *j = joined(id, group, false, UID);
	struct cm_event e;

	cm_id_set_tos(id, 0x20);
	assert_false(cm_channel_take_event(channel(), &e));
	cm_join_done(j, 0);
	assert_true(cm_channel_take_event(channel(), &e));
	assert_int_equal(e.type, CM_MULTICAST_JOIN);
	assert_int_equal(e.status, 0);
	assert_int_equal(e.uid, UID);
	assert_int_equal(e.number, cm_join_number(j));
	assert_true(e.datagram);
	assert_int_equal(e.param.qpn, 0xffffff);
	assert_int_equal(e.param.qkey, 0x01234567);
	assert_int_equal(e.param.data_len, 0);
	assert_memory_equal(e.ah.dgid, group, sizeof(group));
	assert_true(e.ah.is_global);
	assert_int_equal(e.ah.hop_limit, 64);
	assert_int_equal(e.ah.traffic_class, 0x20);
	assert_int_equal(e.ah.port, 1);
	/* It counts for the membership and for the id. */
	assert_int_equal(cm_join_leave(j), 1);
	assert_int_equal(cm_id_destroy(id, 0), 1);
}

CASE(a_host_that_cannot_join_is_an_event)
{
	struct cm_join *j = joined(bound_id(), group, false, UID);
	struct cm_event e;

	cm_join_done(j, -ENOMEM);
	assert_true(cm_channel_take_event(channel(), &e));
	assert_int_equal(e.type, CM_MULTICAST_ERROR);
	assert_int_equal(e.status, -ENOMEM);
	assert_int_equal(e.uid, UID);
}

CASE(only_a_datagram_id_with_a_device_joins_a_group)
{
	struct cm_addr here = w.ends[SERVER].addr, anywhere = {.ip = {[10] = 0xff, [11] = 0xff}, .family = CM_IPV4};
	struct cm_id *id = new_id(CM_SPACE_UDP, QPT_UD);
	struct cm_join *j;

	assert_int_equal(cm_id_join(id, group, false, UID, &j), -EINVAL); /* not bound */
	assert_int_equal(cm_id_bind(id, &anywhere), 0);
	assert_int_equal(cm_id_join(id, group, false, UID, &j), -EINVAL); /* no device */
	id = new_id(CM_SPACE_TCP, QPT_RC);
	assert_int_equal(cm_id_bind(id, &here), 0);
	assert_int_equal(cm_id_join(id, group, false, UID, &j), -EINVAL);
	id = bound_id();
	assert_int_equal(cm_id_join(id, host, false, UID, &j), -EINVAL);
	assert_int_equal(cm_id_join(id, ipv6_group, false, UID, &j), -EINVAL);
	assert_int_equal(cm_id_join(id, other_group, false, UID, &j), 0);
	assert_int_equal(cm_id_resolve_addr(id, &here, &here), 0);
	assert_int_equal(cm_id_join(id, group, false, UID, &j), 0);
	assert_int_equal(cm_id_resolve_route(id), 0);
	assert_int_equal(cm_id_join(id, group, false, UID, &j), -EINVAL); /* as Linux */
}

/* Who sends only needs no packets of the group; all others need them until the last has left. */
CASE(the_host_hears_while_somebody_listens)
{
	struct cm_id *a = bound_id(), *b = bound_id();
	struct cm_join *first, *second;

	joined(a, group, true, UID);
	assert_false(hears(group));
	first = joined(a, group, false, UID);
	second = joined(b, group, false, UID + 1);
	assert_int_not_equal(cm_join_number(first), cm_join_number(second));
	assert_true(hears(group));
	assert_false(hears(other_group));
	assert_true(cm_hears(w.ends[SERVER].cm, group, cm_join_interface(first)));
	assert_false(cm_hears(w.ends[SERVER].cm, group, cm_join_interface(first) + 1));
	cm_join_leave(first);
	assert_true(hears(group));
	cm_id_destroy(b, 0);
	assert_false(hears(group));
}

CASE(events_of_a_membership_that_was_left_are_forgotten)
{
	struct cm_id *id = bound_id();
	struct cm_join *gone = joined(id, group, false, UID), *stays = joined(id, other_group, false, UID + 1);
	uint32_t number = cm_join_number(gone);
	struct cm_event e;

	cm_join_done(gone, 0);
	cm_join_done(stays, 0);
	assert_int_equal(cm_join_leave(gone), 0);
	assert_null(cm_join_find(w.ends[SERVER].cm, number));
	assert_true(cm_channel_take_event(channel(), &e));
	assert_int_equal(e.uid, UID + 1);
	assert_false(cm_channel_take_event(channel(), &e));
	number = cm_join_number(stays);
	cm_join_done(stays, 0);
	cm_id_destroy(id, 0);
	assert_null(cm_join_find(w.ends[SERVER].cm, number));
	assert_int_equal(cm_channel_events(channel()), 0);
}

CASE(memberships_are_bounded)
{
	struct cm_id *id = bound_id();
	struct cm_join *j;

	for (int i = 0; i < CM_JOINS_MAX; i++)
		joined(id, group, true, UID);
	assert_int_equal(cm_id_join(id, group, true, UID, &j), -ENOMEM);
	cm_id_destroy(id, 0);
	joined(bound_id(), group, true, UID);
}
