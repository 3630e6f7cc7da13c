/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What may fail comes first, and in memory of its own: the table of addresses, the group, the ports of connection
 * management, the sockets to send from. Then everything is replaced at once.
 */
#include "engine/leaving.h"

#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "engine/map_file.h"
#include "engine/port.h"
#include "engine/registrar.h"
#include "io/shm/shm.h"
#include "space/space.h"

enum { SETTLE_TURNS = 8 };

void leaving_settle(struct engine *e)
{
	nic_hold_acks(e->loop.nic, false);
	for (int i = 0; i < SETTLE_TURNS && engine_turn(e, LOOP_ALL, env_now_ns(e->env)); i++) {
	}
	loop_rest(&e->loop);
}

/* ---- what is watched ---- */

static void watch_group(struct engine *e, bool watch)
{
	int fds[UDP_RX_SOCKETS_MAX];
	size_t n = group_rx_fds(e->group, fds, UDP_RX_SOCKETS_MAX);

	for (size_t i = 0; i < n; i++) {
		if (watch)
			e->env->watch(e->env, fds[i], true);
		else
			e->env->unwatch(e->env, fds[i]);
	}
}

void leaving_leave(struct engine *e)
{
	watch_group(e, false);
	if (e->loop.shm)
		shm_leave(e->loop.shm);
	mcast_leave(e->mcast);
	udp_leave(e->udp);
	port_stop(e);
	group_leave(e->group);
}

/* ---- addresses ---- */

static bool has_gid(const struct gid_table *t, const uint8_t gid[16])
{
	for (uint32_t i = 0; i < t->count; i++)
		if (!memcmp(t->gids[i].raw, gid, sizeof(t->gids[i].raw)))
			return true;
	return false;
}

const char *leaving_address_text(const uint8_t gid[16], char *text, size_t bytes)
{
	static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
	bool v4 = !memcmp(gid, mapped, sizeof(mapped));

	return inet_ntop(v4 ? AF_INET : AF_INET6, gid + (v4 ? 12 : 0), text, (socklen_t)bytes);
}

bool leaving_cm_uses(const struct engine *e, const uint8_t gid[16])
{
	const uint8_t *name = e->loop.map ? gid_map_last_vgid(map_of(e->loop.map), gid) : gid;

	return name && cm_uses_address(e->loop.cm, name);
}

/* What was an address of the device once counts, too. */
bool leaving_address(const struct engine *e, uint32_t index, uint8_t gid[16])
{
	for (uint32_t i = 0; i < e->gids.count; i++) {
		const uint8_t *its = e->gids.last[i];
		bool again = false;

		for (uint32_t k = 0; k < i; k++)
			again |= !memcmp(its, e->gids.last[k], sizeof(e->gids.last[k]));
		if (again || !(nic_uses_gid(e->loop.nic, its) || leaving_cm_uses(e, its)) || index--)
			continue;
		memcpy(gid, its, sizeof(e->gids.last[i]));
		return true;
	}
	return false;
}

/* Addresses that are not there, and others that queue pairs go on under. */
struct changes {
	size_t count;
	struct change {
		uint8_t from[16], to[16];
	} of[NIC_GIDS_MAX];
};

static bool is_ipv4(const uint8_t gid[16])
{
	static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};

	return !memcmp(gid, mapped, sizeof(mapped));
}

/* Whether others can reach it as they reached one of that kind: link-local addresses and those of the loopback are none. */
static bool may_replace(const uint8_t gid[16], const struct nic_gid *by)
{
	static const uint8_t none[16], loopback[16] = {[15] = 1};

	return is_ipv4(gid) == is_ipv4(by->raw) && memcmp(by->raw, none, sizeof(none)) != 0 &&
	       memcmp(by->raw, loopback, sizeof(loopback)) != 0 && (!is_ipv4(by->raw) || by->raw[12] != 127) &&
	       !(by->raw[0] == 0xfe && (by->raw[1] & 0xc0) == 0x80);
}

/* Where there is a map, the address that its name has now, if that is there. */
static const uint8_t *replacement(const struct engine *e, const struct gid_table *t, const uint8_t gid[16])
{
	const struct gid_map *map = map_of(e->loop.map);
	const uint8_t *name = map ? gid_map_last_vgid(map, gid) : NULL,
		      *now = name ? gid_map_underlay(map, name) : NULL;

	if (now && has_gid(t, now))
		return now;
	for (uint32_t i = 0; i < t->count; i++)
		if (may_replace(gid, &t->gids[i]))
			return t->gids[i].raw;
	return NULL;
}

/* False: what uses that address cannot go on under another one, or there is none, and it is said why. */
static bool change_address(const struct engine *e, const struct gid_table *t, const uint8_t gid[16], struct changes *c,
			   char *why, size_t why_bytes)
{
	const uint8_t *to = replacement(e, t, gid);
	char text[INET6_ADDRSTRLEN];
	uint32_t qpn = 0;
	int n = snprintf(why, why_bytes, "the program uses %s, which is no address of an interface that is up there",
			 leaving_address_text(gid, text, sizeof(text)));

	if (leaving_cm_uses(e, gid)) {
		snprintf(why + n, why_bytes - (size_t)n, ", and an id of rdma_cm is bound to it");
		return false;
	}
	if (!nic_may_roam(e->loop.nic, gid, t->gids, t->count, &qpn)) {
		snprintf(
			why + n, why_bytes - (size_t)n,
			", and the peer of queue pair 0x%06" PRIx32
			" would not follow it to another one: both ends need veRoCE and VERBENA_ROAM=unsafe, and have to be on two hosts",
			qpn);
		return false;
	}
	if (!to)
		return false;
	memcpy(c->of[c->count].from, gid, sizeof(c->of[0].from));
	memcpy(c->of[c->count++].to, to, sizeof(c->of[0].to));
	return true;
}

/* strict: each address is there, or what uses it can go on under another one. */
static int check_addresses(const struct engine *e, const struct gid_table *t, bool strict, struct changes *c, char *why,
			   size_t why_bytes)
{
	uint8_t gid[16];

	for (uint32_t i = 0; leaving_address(e, i, gid) && c->count < NIC_GIDS_MAX; i++)
		if (!has_gid(t, gid) && !change_address(e, t, gid, c, why, why_bytes) && strict)
			return -EADDRNOTAVAIL;
	return 0;
}

/* ---- return ---- */

/* The interface that has the GIDs now that those of another one were. */
struct moved {
	const struct gid_table *before, *now;
};

static uint32_t interface_there(const void *ctx, uint32_t ifindex)
{
	const struct moved *m = ctx;

	for (uint32_t i = 0; i < m->before->count; i++)
		if (m->before->interfaces[i].ifindex == ifindex && m->now->gids[i].ifindex)
			return m->now->gids[i].ifindex;
	return 0;
}

static int take_ports(struct engine *e, const struct group *again, char *why, size_t why_bytes)
{
	struct cm_obstacle o;
	int rc = cm_rejoin(e->loop.cm, group_shared(again));

	if (!rc)
		return 0;
	o = cm_take_obstacle(e->loop.cm);
	snprintf(why, why_bytes, "port %u of rdma_cm, which the program has bound, is another process's there",
		 o.addr.port);
	return rc;
}

static int take_sockets(struct engine *e, const struct group *again, char *why, size_t why_bytes)
{
	int fds[UDP_RX_SOCKETS_MAX];
	size_t n = group_rx_fds(again, fds, UDP_RX_SOCKETS_MAX);

	return udp_return(e->udp, fds, n, why, why_bytes);
}

/* Nothing of it fails. */
static void take_place(struct engine *e, struct group *again, bool here, const struct gid_table *t)
{
	const struct gid_table before = e->gids;
	const struct moved moved = {&before, t};

	if (!here && e->loop.shm)
		shm_leave(e->loop.shm);
	e->env->unwatch(e->env, group_fd(e->group));
	group_replace(e->group, again, here);
	e->env->watch(e->env, group_fd(e->group), true);
	watch_group(e, true);
	if (!here)
		mcast_leave(e->mcast);
	port_resume(e, t);
	mcast_return(e->mcast, interface_there, &moved);
	registrar_return(&e->loop, env_now_ns(e->env));
}

static int join(struct engine *e, bool here, const struct gid_table *t, char *why, size_t why_bytes)
{
	struct group_address host[NIC_GIDS_MAX];
	struct group_config settings;
	struct group *again;
	int rc = engine_group_settings(e, t, &settings, host, why, why_bytes);

	if (!rc)
		rc = group_return(e->group, &settings, here, &again, why, why_bytes);
	if (rc)
		return rc;
	/* The group's own sockets that are read now must not be looked at by this thread's wait() when others read them. */
	if (!here)
		watch_group(e, false);
	rc = take_ports(e, again, why, why_bytes);
	if (!rc)
		rc = take_sockets(e, again, why, why_bytes);
	if (!rc) {
		take_place(e, again, here, t);
		return 0;
	}
	cm_rejoin(e->loop.cm, group_shared(e->group));
	if (!here)
		watch_group(e, true);
	group_close(again);
	return rc;
}

int leaving_return(struct engine *e, bool here, bool strict, char *why, size_t why_bytes)
{
	struct gid_table *t = space_get(sizeof(*t));
	struct changes changes = {.count = 0};
	int rc;

	map_follow(e->loop.map);
	rc = t ? port_survey(e, here, t) : -ENOMEM;
	if (rc)
		snprintf(why, why_bytes, "cannot ask the kernel for the addresses there: %s", strerror(-rc));
	if (!rc)
		rc = check_addresses(e, t, strict, &changes, why, why_bytes);
	if (!rc)
		rc = join(e, here, t, why, why_bytes);
	for (size_t i = 0; !rc && i < changes.count; i++)
		nic_roam(e->loop.nic, changes.of[i].from, changes.of[i].to, env_now_ns(e->env));
	space_put(t, sizeof(*t));
	return rc;
}
