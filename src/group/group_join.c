/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Joining a group. The process that has the lock (group_lock.c)
 *
 *	tries every name to find the live members, requests the list of what each holds, takes the sockets that they
 *	    give (group_call.c), and the memory that they share (group_shared.c);
 *	takes the lowest slot whose name is free, with the socket that its last owner left, or else with a new one, and
 *	    proves by datagrams to itself that the index is the slot (group_place.c);
 *	publishes its name, and gives every member that answered the sockets that it lacks.
 *
 * The process may be stopped or killed after any step. Until it has published its name no other process
 * relies on it, and the sockets that it has made by then disturb nobody.
 */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "group/group_address.h"
#include "group/group_join.h"
#include "io/net.h"
#include "io/udp/udp.h"
#include "space/space.h"

enum {
	JOIN_MS_DEFAULT = 10000,
	RETRY_MS = 10,
	CLOSING_MS = 300 /* time for the kernel to close the sockets of the dead */
};

int join_explain(struct join *j, int err, const char *doing)
{
	struct rlimit limit = {0};

	if (err == -EMFILE || err == -ETOOMANYREFS) {
		getrlimit(RLIMIT_NOFILE, &limit);
		snprintf(j->why, j->why_bytes,
			 "too many open files: the limit is %llu (ulimit -n), and to share UDP "
			 "port %u with "
			 "the programs that run now takes more",
			 (unsigned long long)limit.rlim_cur, j->cfg->ports[0]);
		return -EMFILE;
	}
	snprintf(j->why, j->why_bytes, "cannot %s: %s", doing, strerror(-err));
	return err;
}

/* ---- lanes ---- */

static bool has_lane(const struct group *g, enum udp_family family, uint16_t port)
{
	for (unsigned i = 0; i < g->lane_count; i++)
		if (g->lanes[i].family == family && g->lanes[i].port == port)
			return true;
	return false;
}

static bool host_has_ipv6(void)
{
	int fd = net_socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return false;
	close(fd);
	return true;
}

/* The members have our addresses, but perhaps other ports. */
static int settle_addresses(struct join *j)
{
	struct group_lane ours[GROUP_LANES_MAX];
	struct group *g = j->g;
	bool same = lanes_of(j->cfg, false, ours) == g->lane_count;

	for (unsigned i = 0; same && i < g->lane_count; i++)
		same = ours[i].family == g->lanes[i].family && ours[i].port == g->lanes[i].port;
	if (same) {
		memcpy(g->lanes, ours, sizeof(g->lanes[0]) * g->lane_count);
		return 0;
	}
	snprintf(j->why, j->why_bytes,
		 "processes of this user share UDP port %u at these addresses; they run with other settings",
		 j->cfg->ports[0]);
	return -EPROTO;
}

/* The first member chooses; the others follow. */
static int settle_lanes(struct join *j)
{
	const struct group_config *cfg = j->cfg;
	struct group *g = j->g;
	size_t ports = 0;

	for (unsigned s = 0; s < GROUP_SLOTS; s++) {
		if (j->members[s].state != OTHER)
			continue;
		snprintf(j->why, j->why_bytes,
			 "process %ld shares UDP port %u and is of another version; processes that "
			 "run at the same time must be of one version",
			 (long)j->members[s].peer.pid, cfg->ports[0]);
		return -EPROTO;
	}
	if (!g->lane_count) {
		g->lane_count = lanes_of(cfg, !cfg->no_ipv6 && host_has_ipv6(), g->lanes);
		return 0;
	}
	if (cfg->address_count)
		return settle_addresses(j);
	for (size_t i = 0; i < g->lane_count; i++)
		ports += g->lanes[i].family == UDP_V4;
	if (ports > cfg->port_count) {
		snprintf(j->why, j->why_bytes,
			 "processes of this user share UDP port %u and one more; they run with "
			 "other "
			 "settings",
			 cfg->ports[0]);
		return -EPROTO;
	}
	for (size_t i = 0; i < cfg->port_count; i++) {
		if (has_lane(g, UDP_V4, cfg->ports[i]))
			continue;
		snprintf(j->why, j->why_bytes,
			 "processes of this user share UDP port %u without port %u; they run with "
			 "other settings",
			 cfg->ports[0], cfg->ports[i]);
		return -EPROTO;
	}
	return 0;
}

/* ---- an attempt ---- */

/* The slot that it must be is nobody's. */
static int check_slot(struct join *j)
{
	unsigned as = j->cfg->as;

	if (!as || j->members[as - 1].state == NOBODY)
		return 0;
	snprintf(j->why, j->why_bytes,
		 "slot %u on UDP port %u, which its queue pairs' numbers name, is process %ld's here", as - 1,
		 j->cfg->ports[0], (long)j->members[as - 1].peer.pid);
	return -EEXIST;
}

static int publish(struct join *j)
{
	int err = group_publish(j->g);

	return err < 0 ? join_explain(j, err, "publish our slot") : 0;
}

static int attempt(struct join *j)
{
	int err = join_call(j);

	if (err == 0)
		err = settle_lanes(j);
	if (err == 0)
		err = join_check_addresses(j);
	if (err == 0)
		join_share(j);
	if (err == 0)
		err = join_fetch(j);
	if (err == 0)
		err = check_slot(j);
	if (err == 0)
		err = join_place(j);
	if (err == 0 && join_lock_is_passed(j)) {
		snprintf(j->why, j->why_bytes, "other processes join while this one is stopped");
		err = -EAGAIN;
	}
	if (err == 0)
		err = publish(j);
	if (err == 0)
		join_give(j);
	join_hang_up(j);
	return err;
}

/* -EAGAIN: worth another attempt, with the reason set for when there is none. */
static int attempt_locked(struct join *j)
{
	int lock = join_lock(j);
	int err;

	if (lock < 0)
		return lock;
	if (!j->cfg->join_ms_max)
		j->deadline_ms = clock_now_ms() + JOIN_MS_DEFAULT;
	do {
		group_reset(j->g);
		memset(j->members, 0, sizeof(j->members));
		for (unsigned s = 0; s < GROUP_SLOTS; s++)
			j->members[s].link = -1;
		err = attempt(j);
		if (err == -EAGAIN)
			clock_sleep_ns(RETRY_MS * UINT64_C(1000000));
	} while (err == -EAGAIN && !join_lock_is_passed(j) && clock_now_ms() < j->deadline_ms);
	close(lock);
	return err;
}

/*
 * A uid that may belong to several users proves nothing, so then there is no group: one process has the
 * ports, and answers no other.
 */
static int attempt_alone(struct join *j)
{
	int err = settle_lanes(j);

	if (err == 0)
		join_share(j);
	if (err == 0)
		err = join_place_alone(j);
	if (err == 0)
		err = publish(j);
	return err;
}

int group_open(struct group **group, const struct group_config *cfg, char *why, size_t why_bytes)
{
	struct join *j = space_get(sizeof(*j));
	struct group *g = group_new();
	uint64_t now = clock_now_ms();
	int err;

	assert(cfg->port_count >= 1 && cfg->port_count <= GROUP_PORTS_MAX);
	if (!j || !g) {
		snprintf(why, why_bytes, "out of memory");
		err = -ENOMEM;
		goto free;
	}
	j->g = g;
	j->cfg = cfg;
	j->uid = geteuid();
	j->deadline_ms = now + (cfg->join_ms_max ? cfg->join_ms_max : JOIN_MS_DEFAULT);
	j->lock_until_ms = cfg->join_ms_max ? j->deadline_ms : UINT64_MAX;
	j->closing_until_ms = now + CLOSING_MS;
	j->why = why;
	j->why_bytes = why_bytes;
	g->id = group_id_of(cfg, j->uid);
	g->stat_fd = cfg->stat_fd;
	g->takes_rings = cfg->rings;
	g->counters = cfg->counters ? cfg->counters : &g->own_counters;

	if (!link_uid_is_certain(j->uid)) {
		err = attempt_alone(j);
	} else {
		do {
			err = attempt_locked(j);
		} while (err == -EAGAIN && clock_now_ms() < j->deadline_ms);
	}
	if (err == -EAGAIN)
		err = -ETIMEDOUT;
	if (err < 0)
		goto free;
	space_put(j, sizeof(*j));
	*group = g;
	return 0;

free:
	if (g)
		group_close(g);
	space_put(j, sizeof(*j));
	return err;
}
