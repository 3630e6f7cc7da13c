/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A message of the kernel's says little more than that something has changed: then the table is made from a dump, so
 * that messages that are lost, because they were too many, do no harm. But a link may go down and come up between two
 * dumps, and programs are told of both: its state is taken from each message.
 */
#include "engine/port.h"

#include "engine/faulting.h"

#include <errno.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "engine/map_file.h"
#include "io/fd_away.h"
#include "io/net.h"
#include "io/shm/shm.h"
#include "space/space.h"

enum { HEARD_BYTES = 32768, NEWS_MAX = 16 };

/* What programs are told of, in order; of more they learn the result. */
struct news {
	enum event_type transitions[NEWS_MAX];
	size_t transition_count;
	struct {
		uint32_t ifindex;
		enum cm_event_type type;
	} interfaces[NEWS_MAX];
	size_t interface_count;
};

static struct gid_choice choice_of(const struct engine *e)
{
	return gids_choice(&e->config, e->device);
}

/* No device of a program is opened while another one has a rail that is wrong. */
static int judge_rails(const struct engine *e, char *why, size_t why_bytes)
{
	size_t bytes = ENGINE_DEVICES_MAX * sizeof(struct gid_table);
	struct gid_table *all = e->config.devices.has_rails ? space_get(bytes) : NULL;
	int rc = 0;

	if (e->config.devices.has_rails && !all) {
		snprintf(why, why_bytes, "out of memory");
		return -ENOMEM;
	}
	if (all)
		rc = gids_load_all(all, &e->config, why, why_bytes);
	space_put(all, bytes);
	return rc;
}

int port_fd(const struct engine *e)
{
	return e->port_fd;
}

void port_close(struct engine *e)
{
	if (e->port_fd >= 0)
		close(e->port_fd);
}

static void begin_to_hear(struct engine *e)
{
	struct sockaddr_nl groups = {.nl_family = AF_NETLINK,
				     .nl_groups = RTMGRP_LINK | RTMGRP_IPV4_IFADDR | RTMGRP_IPV6_IFADDR};

	e->port_fd = fd_away(net_socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE));
	if (e->port_fd >= 0 && bind(e->port_fd, (struct sockaddr *)&groups, sizeof(groups)) < 0) {
		close(e->port_fd);
		e->port_fd = -1;
	}
}

int port_open(struct engine *e, char *why, size_t why_bytes)
{
	struct gid_choice choice = choice_of(e);
	int rc;

	/* Before the first dump, so that nothing is missed. */
	begin_to_hear(e);
	rc = judge_rails(e, why, why_bytes);
	return rc ? rc : gids_load(&e->gids, &choice, why, why_bytes);
}

struct engine_port engine_port(const struct engine *e)
{
	struct engine_port p = e->gids.port;

	p.active &= !e->port_deeds.link_down;
	return p;
}

int engine_gid_interface(const struct engine *e, uint32_t gid_index, struct engine_interface *out)
{
	if (gid_index >= e->gids.count || !e->gids.gids[gid_index].ifindex)
		return -ENOENT;
	*out = e->gids.interfaces[gid_index];
	return 0;
}

bool engine_is_bound(const struct engine *e)
{
	return e->config.address[0] || e->config.devices.has_rails;
}

bool engine_chosen_address(const struct engine *e, uint32_t index, uint8_t gid[16], uint32_t *ifindex)
{
	const struct gid_map *map = map_of(e->loop.map);

	if (!engine_is_bound(e) && !map)
		return false;
	for (uint32_t i = 0; i < e->gids.count; i++) {
		const struct nic_gid *g = &e->gids.gids[i];

		if (!g->ifindex || (map && !gid_map_vgid(map, g->raw)) || index--)
			continue;
		memcpy(gid, g->raw, sizeof(g->raw));
		*ifindex = g->raw[0] == 0xfe && (g->raw[1] & 0xc0) == 0x80 ? g->ifindex : 0;
		return true;
	}
	return false;
}

size_t port_addresses(const struct engine *e, uint8_t (*own)[16])
{
	size_t n = 0;

	for (uint32_t i = 0; i < e->gids.count; i++)
		if (e->gids.gids[i].ifindex)
			memcpy(own[n++], e->gids.gids[i].raw, sizeof(own[0]));
	return n;
}

/* NULL: the host's. */
static int gids_of(const struct gid_choice *choice, struct io_gid gids[IO_GIDS_MAX], char *why, size_t why_bytes)
{
	struct gid_table *all = space_get(sizeof(*all));
	int rc = all ? gids_load(all, choice, why, why_bytes) : -ENOMEM;

	for (uint32_t i = 0; !rc && i < all->count; i++) {
		memcpy(gids[i].gid, all->gids[i].raw, sizeof(gids[i].gid));
		gids[i].ifindex = all->gids[i].ifindex;
	}
	if (!rc)
		rc = (int)all->count;
	space_put(all, sizeof(*all));
	return rc;
}

int port_host_gids(struct io_gid gids[IO_GIDS_MAX], char *why, size_t why_bytes)
{
	return gids_of(NULL, gids, why, why_bytes);
}

int port_chosen_gids(const struct engine *e, struct io_gid gids[IO_GIDS_MAX], char *why, size_t why_bytes)
{
	struct gid_choice choice = choice_of(e);

	choice.rail = NULL;
	return gids_of(&choice, gids, why, why_bytes);
}

/* ---- multicast groups ---- */

static bool has_interface(const struct engine *e, uint32_t ifindex)
{
	for (uint32_t i = 0; i < e->gids.count; i++)
		if (e->gids.gids[i].ifindex == ifindex)
			return true;
	return false;
}

/* The interfaces that have a GID; how many. */
static size_t interfaces(const struct engine *e, uint32_t *ifindex)
{
	size_t count = 0;

	for (uint32_t i = 0; i < e->gids.count; i++) {
		bool known = !e->gids.gids[i].ifindex;

		for (size_t k = 0; k < count; k++)
			known |= ifindex[k] == e->gids.gids[i].ifindex;
		if (!known)
			ifindex[count++] = e->gids.gids[i].ifindex;
	}
	return count;
}

static int join_on(struct engine *e, const uint8_t gid[16], const uint32_t *ifindex, size_t count)
{
	return e->raw ? raw_join(e->raw, gid, ifindex, count) : mcast_join(e->mcast, gid, ifindex, count);
}

int engine_join(struct engine *e, const uint8_t gid[16], uint32_t ifindex)
{
	uint32_t all[NIC_GIDS_MAX];

	if (!e->mcast && !e->raw)
		return -EOPNOTSUPP;
	if (ifindex)
		return join_on(e, gid, &ifindex, 1);
	if (cm_hears(e->loop.cm, gid, 0))
		return 0;
	return join_on(e, gid, all, interfaces(e, all));
}

static bool is_needed(const void *engine, const uint8_t gid[16], uint32_t ifindex)
{
	const struct engine *e = engine;

	return cm_hears(e->loop.cm, gid, ifindex) || (nic_mcast_has(e->loop.nic, gid) && has_interface(e, ifindex));
}

void engine_leave_unused(struct engine *e)
{
	if (e->mcast)
		mcast_keep(e->mcast, is_needed, e);
	if (e->raw)
		raw_keep(e->raw, is_needed, e);
}

/* Groups that were joined on every interface are so on those that have come, too. */
static void hear_groups(struct engine *e)
{
	uint8_t gid[16];

	if (!e->mcast && !e->raw)
		return;
	engine_leave_unused(e);
	for (uint32_t n = 0; nic_mcast_group(e->loop.nic, n, gid); n++)
		engine_join(e, gid, 0);
}

/* ---- what the kernel tells ---- */

static void tell_state(struct gid_table *t, struct news *n)
{
	struct engine_port now = gids_port(t);

	if (now.active != t->port.active && n->transition_count < NEWS_MAX)
		n->transitions[n->transition_count++] = now.active ? EVENT_PORT_ACTIVE : EVENT_PORT_ERR;
	t->port = now;
}

static void tell_interface(struct news *n, uint32_t ifindex, enum cm_event_type type)
{
	if (n->interface_count == NEWS_MAX)
		return;
	n->interfaces[n->interface_count].ifindex = ifindex;
	n->interfaces[n->interface_count++].type = type;
}

static struct gid_link *link_of(struct gid_table *t, int ifindex)
{
	for (uint32_t i = 0; i < t->link_count; i++)
		if (t->links[i].interface.ifindex == (uint32_t)ifindex)
			return &t->links[i];
	return NULL;
}

static bool has_new_mac(struct gid_link *l, const struct ifinfomsg *info, unsigned int left)
{
	uint8_t mac[GID_MAC_BYTES] = {0};

	for (const struct rtattr *a = IFLA_RTA(info); RTA_OK(a, left); a = RTA_NEXT(a, left))
		if (a->rta_type == IFLA_ADDRESS && RTA_PAYLOAD(a) <= sizeof(mac))
			memcpy(mac, RTA_DATA(a), RTA_PAYLOAD(a));
	if (!memcmp(mac, l->mac, sizeof(mac)))
		return false;
	memcpy(l->mac, mac, sizeof(mac));
	return true;
}

static void hear(struct gid_table *t, const struct nlmsghdr *h, struct news *n)
{
	const struct ifinfomsg *info = NLMSG_DATA(h);
	bool gone = h->nlmsg_type == RTM_DELLINK;
	struct gid_link *l;

	/* A bridge's words about its ports are of its own family. */
	if ((!gone && h->nlmsg_type != RTM_NEWLINK) || info->ifi_family != AF_UNSPEC)
		return;
	/* It may be gone from the table since the message of its going down. */
	if (gone)
		tell_interface(n, (uint32_t)info->ifi_index, CM_DEVICE_REMOVAL);
	l = link_of(t, info->ifi_index);
	if (!l)
		return;
	l->up = !gone && info->ifi_flags & IFF_UP;
	l->running = !gone && info->ifi_flags & IFF_RUNNING;
	tell_state(t, n);
	if (!gone && has_new_mac(l, info, (unsigned int)IFLA_PAYLOAD(h)))
		tell_interface(n, l->interface.ifindex, CM_ADDR_CHANGE);
}

/* False: the kernel has told nothing. */
static bool hear_all(int fd, struct gid_table *t, struct news *n)
{
	_Alignas(struct nlmsghdr) char buf[HEARD_BYTES];
	bool heard = false;

	for (;;) {
		ssize_t got = recv(fd, buf, sizeof(buf), 0);
		unsigned int left = (unsigned int)got;

		if (got < 0 && errno != EINTR && errno != ENOBUFS)
			return heard;
		heard = true;
		if (got < 0)
			continue;
		for (const struct nlmsghdr *h = (void *)buf; NLMSG_OK(h, left); h = NLMSG_NEXT(h, left))
			hear(t, h, n);
	}
}

/* ---- who follows ---- */

static bool differ(const struct gid_table *a, const struct gid_table *b)
{
	for (uint32_t i = 0; i < NIC_GIDS_MAX; i++)
		if (memcmp(a->gids[i].raw, b->gids[i].raw, sizeof(a->gids[i].raw)) != 0)
			return true;
	return false;
}

static void follow(struct engine *e)
{
	uint8_t own[SHM_ADDRESSES_MAX][16];
	struct io_gid host[IO_GIDS_MAX];
	char why[256];
	int count = e->raw ? port_host_gids(host, why, sizeof(why)) : 0;

	nic_set_gids(e->loop.nic, e->gids.gids, e->gids.count);
	engine_note_gids(e);
	map_tell_cm(e);
	if (e->loop.shm)
		shm_set_addresses(e->loop.shm, own, port_addresses(e, own));
	if (e->raw && count >= 0)
		raw_set_gids(e->raw, host, (size_t)count);
	hear_groups(e);
}

/* Lock held. */
static void take_over(struct engine *e, const struct gid_table *t, const struct news *n)
{
	const struct engine_sink *sink = e->loop.sink;
	bool listed = differ(&e->gids, t);

	for (size_t i = 0; i < n->interface_count; i++)
		cm_tell_interface(e->loop.cm, n->interfaces[i].ifindex, n->interfaces[i].type);
	e->gids = *t;
	follow(e);
	/* A port whose cable is pulled is down whatever its interfaces are. */
	for (size_t i = 0; i < n->transition_count && !e->port_deeds.link_down; i++)
		sink->port_event(e, n->transitions[i]);
	if (listed)
		sink->port_event(e, EVENT_GID_CHANGE);
	engine_turn(e, LOOP_OUTPUT, env_now_ns(e->env)); /* rdma_cm's events */
}

/* ---- elsewhere ---- */

void port_stop(struct engine *e)
{
	if (e->port_fd >= 0)
		e->env->unwatch(e->env, e->port_fd);
	port_close(e);
	e->port_fd = -1;
}

int port_survey(const struct engine *e, bool here, struct gid_table *t)
{
	struct gid_choice choice = choice_of(e);

	*t = e->gids;
	if (!here)
		gids_leave_interfaces(t);
	return gids_follow(t, &choice);
}

/* The table is looked at once more: it may have changed before anything was heard. */
void port_resume(struct engine *e, const struct gid_table *t)
{
	const struct news none = {0};

	port_stop(e);
	begin_to_hear(e);
	if (e->port_fd >= 0)
		e->env->watch(e->env, e->port_fd, true);
	e->port_stale = true;
	take_over(e, t, &none);
}

/* ---- faults on command ---- */

bool port_unplug(struct engine *e, bool down)
{
	if (e->port_deeds.link_down == down)
		return false;
	e->port_deeds.link_down = down;
	if (e->gids.port.active)
		e->loop.sink->port_event(e, down ? EVENT_PORT_ERR : EVENT_PORT_ACTIVE);
	return true;
}

static bool changed(struct engine *e, bool done)
{
	if (!done)
		return false;
	follow(e);
	e->loop.sink->port_event(e, EVENT_GID_CHANGE);
	return true;
}

bool port_hide_gid(struct engine *e, const uint8_t gid[16], bool hide)
{
	struct gid_choice choice = choice_of(e);

	return changed(e, hide ? gids_hide(&e->gids, gid) : gids_show(&e->gids, gid, &choice));
}

bool port_move_gid(struct engine *e, const uint8_t gid[16])
{
	return changed(e, gids_move(&e->gids, gid));
}

void port_look(struct engine *e)
{
	struct gid_choice choice = choice_of(e);
	bool shown = !faulting_serve_port(e), closed;
	struct gid_table t = e->gids;
	struct news n = {0};

	shown &= !atomic_exchange(&e->renamed, false);
	if (!shown)
		e->loop.sink->port_changed(e);
	if (e->port_fd < 0 || (!hear_all(e->port_fd, &t, &n) && !e->port_stale))
		return;
	/* Without a descriptor or memory for it the next look tries again. */
	e->port_stale = gids_follow(&t, &choice) < 0;
	tell_state(&t, &n);
	if (!memcmp(&t, &e->gids, sizeof(t)) && !n.transition_count && !n.interface_count)
		return;
	lock_wait(&e->lock);
	closed = e->closed;
	if (!closed)
		take_over(e, &t, &n);
	engine_leave(e);
	if (!closed)
		e->loop.sink->port_changed(e);
}
