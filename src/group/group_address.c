/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Owns no state. Who has bound a port is read in /proc, where it can be; what cannot be seen there the kernel refuses,
 * or it is left to the datagrams of group_place.c.
 */
#include "group/group_address.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/siphash.h"
#include "group/group_link.h"

enum { GROUPS_MAX = 64, TEXT_BYTES = INET6_ADDRSTRLEN, FREE_TRIES = 32 };

static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
static const uint8_t everywhere[16];

static bool is_ipv4(const uint8_t gid[16])
{
	return !memcmp(gid, mapped, sizeof(mapped));
}

/* Whether the lane is for every address of its family. */
static bool is_wildcard(const struct group_lane *lane)
{
	return !memcmp(lane->at.gid, everywhere, sizeof(everywhere));
}

static const char *text_of(const uint8_t gid[16], char text[TEXT_BYTES])
{
	bool v4 = is_ipv4(gid);

	return inet_ntop(v4 ? AF_INET : AF_INET6, gid + (v4 ? 12 : 0), text, TEXT_BYTES);
}

/* ---- lanes ---- */

static int compare(const void *pa, const void *pb)
{
	const struct group_address *a = pa, *b = pb;
	int order = memcmp(a->gid, b->gid, sizeof(a->gid));

	return order ? order : (a->ifindex > b->ifindex) - (a->ifindex < b->ifindex);
}

/* In an order that does not depend on the setting's. */
static size_t addresses_of(const struct group_config *cfg, struct group_address *out)
{
	assert(cfg->address_count <= GROUP_ADDRESSES_MAX);
	memcpy(out, cfg->addresses, cfg->address_count * sizeof(*out));
	qsort(out, cfg->address_count, sizeof(*out), compare);
	return cfg->address_count;
}

struct group_id group_id_of(const struct group_config *cfg, uid_t uid)
{
	/* No secret: all processes need the same number. */
	static const uint8_t key[16] = "a group's places";
	struct group_id id = {.uid = uid, .port = cfg->ports[0]};
	struct group_address at[GROUP_ADDRESSES_MAX];
	size_t n = addresses_of(cfg, at);

	for (size_t i = 0; i < n; i++) {
		uint64_t words[2];

		memcpy(words, at[i].gid, sizeof(words));
		id.addresses = siphash_u64(key, id.addresses ^ words[0]);
		id.addresses = siphash_u64(key, id.addresses ^ words[1]);
		id.addresses = siphash_u64(key, id.addresses ^ at[i].ifindex);
	}
	if (n && !id.addresses)
		id.addresses = 1;
	return id;
}

socklen_t lane_address(const struct group_lane *lane, union udp_address *a)
{
	memset(a, 0, sizeof(*a));
	if (lane->family == UDP_V4) {
		a->v4.sin_family = AF_INET;
		a->v4.sin_port = htons(lane->port);
		memcpy(&a->v4.sin_addr, lane->at.gid + 12, 4);
		return sizeof(a->v4);
	}
	a->v6.sin6_family = AF_INET6;
	a->v6.sin6_port = htons(lane->port);
	memcpy(&a->v6.sin6_addr, lane->at.gid, 16);
	a->v6.sin6_scope_id = lane->at.ifindex;
	return sizeof(a->v6);
}

socklen_t lane_destination(const struct group_lane *lane, union udp_address *a)
{
	socklen_t len = lane_address(lane, a);

	if (is_wildcard(lane) && lane->family == UDP_V4)
		a->v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	else if (is_wildcard(lane))
		a->v6.sin6_addr = in6addr_loopback;
	return len;
}

uint8_t lanes_of(const struct group_config *cfg, bool ipv6, struct group_lane lanes[GROUP_LANES_MAX])
{
	struct group_address at[GROUP_ADDRESSES_MAX];
	size_t addresses = addresses_of(cfg, at);
	uint8_t n = 0;

	for (size_t i = 0; i < cfg->port_count; i++) {
		for (size_t k = 0; k < addresses; k++)
			lanes[n++] = (struct group_lane){is_ipv4(at[k].gid) ? UDP_V4 : UDP_V6, cfg->ports[i], at[k]};
		if (addresses)
			continue;
		lanes[n++] = (struct group_lane){.family = UDP_V4, .port = cfg->ports[i]};
		if (ipv6)
			lanes[n++] = (struct group_lane){.family = UDP_V6, .port = cfg->ports[i]};
	}
	return n;
}

/* ---- who has a port ---- */

struct holder {
	uint8_t gid[16]; /* zero: it is at every address */
	uid_t uid;
};

typedef bool holder_fn(const struct join *, const struct group_lane *, const struct holder *);

/* /proc has the words of an address as numbers of this machine. */
static bool holder_read(struct holder *h, const char *line, bool v4, uint16_t port)
{
	unsigned w[4], at, uid;

	memset(h, 0, sizeof(*h));
	if (v4) {
		if (sscanf(line, " %*u: %8x:%x %*s %*s %*s %*s %*s %u", w, &at, &uid) != 3)
			return false;
		if (w[0]) {
			memcpy(h->gid, mapped, sizeof(mapped));
			memcpy(h->gid + 12, w, 4);
		}
	} else {
		if (sscanf(line, " %*u: %8x%8x%8x%8x:%x %*s %*s %*s %*s %*s %u", w, w + 1, w + 2, w + 3, &at, &uid) !=
		    6)
			return false;
		memcpy(h->gid, w, 16);
	}
	h->uid = uid;
	return at == port;
}

/* The first socket on the lane's port that `wanted` takes. */
static bool holder_find(const struct join *j, const struct group_lane *lane, holder_fn *wanted, struct holder *found)
{
	bool has = false;

	for (int v6 = 0; v6 < 2 && !has; v6++) {
		FILE *f = fopen(v6 ? "/proc/thread-self/net/udp6" : "/proc/thread-self/net/udp", "re");
		char line[512];

		while (f && !has && fgets(line, sizeof(line), f))
			has = holder_read(found, line, !v6, lane->port) && wanted(j, lane, found);
		if (f)
			fclose(f);
	}
	return has;
}

static bool is_at(const struct group_lane *lane, const struct holder *h)
{
	return !memcmp(lane->at.gid, h->gid, sizeof(h->gid));
}

static bool is_everywhere(const struct holder *h)
{
	return !memcmp(h->gid, everywhere, sizeof(everywhere));
}

static bool is_stranger(const struct join *j, const struct group_lane *lane, const struct holder *h)
{
	return h->uid != j->uid && (is_wildcard(lane) || is_everywhere(h) || is_at(lane, h));
}

/* Whether devices that have every address have this one. */
static bool is_of_host(const struct group_config *cfg, const uint8_t gid[16])
{
	for (size_t i = 0; i < cfg->host_count; i++)
		if (!memcmp(cfg->host[i].gid, gid, 16))
			return true;
	return false;
}

/* Whether it is a socket of ours at the lane's only address. */
static bool is_beside(const struct join *j, const struct group_lane *lane, const struct holder *h)
{
	return h->uid == j->uid && is_at(lane, h);
}

/* A socket of ours, so of another group, that would get packets of this lane, or lose its own to it. */
static bool is_in_the_way(const struct join *j, const struct group_lane *lane, const struct holder *h)
{
	if (is_wildcard(lane) == is_everywhere(h) || h->uid != j->uid)
		return false;
	return is_of_host(j->cfg, is_wildcard(lane) ? h->gid : lane->at.gid);
}

/* ---- free addresses ---- */

/* 0 if no socket has any part of the lane's address and port; else a negative errno. */
static int lane_try(const struct group_lane *lane)
{
	union udp_address a;
	socklen_t len = lane_address(lane, &a);
	int fd = udp_make_socket(lane->family), err;

	if (fd < 0)
		return fd;
	err = bind(fd, (struct sockaddr *)&a, len) < 0 ? -errno : 0;
	close(fd);
	return err;
}

static bool is_free(const struct group_config *cfg, const struct group_address *at)
{
	for (size_t i = 0; i < cfg->port_count; i++) {
		struct group_lane lane = {is_ipv4(at->gid) ? UDP_V4 : UDP_V6, cfg->ports[i], *at};

		if (lane_try(&lane) < 0)
			return false;
	}
	return true;
}

/* One of the host's that is free, with which peers elsewhere can be reached, or one for peers on this host alone. */
static bool free_address(const struct group_config *cfg, struct group_address *at)
{
	for (size_t i = 0; i < cfg->host_count; i++) {
		*at = cfg->host[i];
		if (is_ipv4(at->gid) && at->gid[12] != 127 && is_free(cfg, at))
			return true;
	}
	*at = (struct group_address){.gid = {[10] = 0xff, [11] = 0xff, [12] = 127}};
	for (unsigned i = 0; i < FREE_TRIES; i++) {
		at->gid[15] = (uint8_t)(2 + i);
		if (is_free(cfg, at))
			return true;
	}
	return false;
}

/* Ends the sentence in why with what to do. */
static int advise(struct join *j, const char *instead)
{
	size_t n = strlen(j->why);
	struct group_address at;
	char text[TEXT_BYTES];

	if (free_address(j->cfg, &at))
		snprintf(j->why + n, j->why_bytes - n, ": set VERBENA_ADDRESS to an address that is free, as %s is%s",
			 text_of(at.gid, text), at.gid[12] == 127 ? " for peers on this host" : "");
	else
		snprintf(j->why + n, j->why_bytes - n, ": %s", instead);
	return -EADDRINUSE;
}

/* ---- reasons ---- */

int join_explain_bind(struct join *j, int err, const struct group_lane *lane)
{
	char text[TEXT_BYTES];
	struct holder h;

	if (err == -EADDRNOTAVAIL) {
		snprintf(j->why, j->why_bytes, "%s is no address of this host any more", text_of(lane->at.gid, text));
		return err;
	}
	if (err != -EADDRINUSE && err != -EACCES)
		return join_explain(j, err, "bind a UDP socket");
	if (!link_uid_is_certain(j->uid)) {
		snprintf(j->why, j->why_bytes,
			 "UDP port %u is in use, and only processes of one user can share it; this one has no user in "
			 "its user namespace (uid %u is whoever is not mapped): map its user, or use an address "
			 "(VERBENA_ADDRESS) or a network namespace for each process",
			 lane->port, (unsigned)j->uid);
		return -EADDRINUSE;
	}
	if (holder_find(j, lane, is_stranger, &h)) {
		snprintf(
			j->why, j->why_bytes,
			"UDP port %u is in use by another user (uid %u) at %s, and only processes of one user can share it",
			lane->port, (unsigned)h.uid, is_everywhere(&h) ? "every address" : text_of(h.gid, text));
		return advise(
			j,
			"let that user set VERBENA_ADDRESS too, or set VERBENA_PORT to a port of your own, at both ends, "
			"or run in a network namespace of your own");
	}
	snprintf(
		j->why, j->why_bytes,
		"UDP port %u is in use by something else (%s): another program, or the kernel's own RoCE driver (rdma_rxe)",
		lane->port, strerror(-err));
	return -EADDRINUSE;
}

/* Whether another group of ours, with addresses, has members. */
static bool has_sisters(const struct join *j)
{
	struct group_id ids[GROUPS_MAX];
	size_t n = group_list(j->uid, j->cfg->ports[0], ids, GROUPS_MAX);

	for (size_t i = 1; i < n; i++)
		if (ids[i].uid == j->uid && ids[i].addresses && ids[i].addresses != j->g->id.addresses)
			return true;
	return false;
}

static int explain_overlap(struct join *j, const struct group_lane *lane, const struct holder *h)
{
	char text[TEXT_BYTES];

	if (is_everywhere(h))
		snprintf(j->why, j->why_bytes,
			 "UDP port %u is in use at every address by programs of this user without VERBENA_ADDRESS",
			 lane->port);
	else
		snprintf(j->why, j->why_bytes,
			 "UDP port %u is in use at %s by other programs of this user with VERBENA_ADDRESS", lane->port,
			 text_of(h->gid, text));
	if (clock_now_ms() < j->closing_until_ms)
		return -EAGAIN;
	return advise(j, "let those have an address of their own (VERBENA_ADDRESS) too");
}

static int check_lane(struct join *j, const struct group_lane *lane)
{
	struct holder h;

	/*
	 * bind_lane() finds every other obstacle. The kernel lets a user have every address beside another user's, if
	 * he has one of his own too, or where many sockets are on the port. Those would keep each other's next members
	 * out.
	 */
	if (!is_wildcard(lane) && lane_try(lane) != -EADDRINUSE)
		return 0;
	if (holder_find(j, lane, is_stranger, &h))
		return join_explain_bind(j, -EADDRINUSE, lane);
	if (holder_find(j, lane, is_in_the_way, &h))
		return explain_overlap(j, lane, &h);
	/* Where there is no other group, the dead of ours have left it. */
	if (!is_wildcard(lane) && has_sisters(j) && holder_find(j, lane, is_beside, &h))
		return explain_overlap(j, lane, &h);
	return 0;
}

int join_check_addresses(struct join *j)
{
	int err = 0;

	for (unsigned s = 0; s < GROUP_SLOTS; s++)
		if (j->members[s].state != NOBODY && j->members[s].state != FOREIGN)
			return 0;
	for (unsigned lane = 0; lane < j->g->lane_count && !err; lane++)
		err = check_lane(j, &j->g->lanes[lane]);
	return err;
}
