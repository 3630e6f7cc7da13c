/* SPDX-License-Identifier: BSD-2-Clause */
/* The sockets of all members that this one holds, and how others get them. */
#include <assert.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "group/group_address.h"
#include "group/group_link.h"
#include "group/group_state.h"
#include "io/udp/udp.h"
#include "io/udp/udp_socket.h"

void group_socks_init(struct group *g)
{
	for (unsigned lane = 0; lane < GROUP_LANES_MAX; lane++)
		for (unsigned i = 0; i < GROUP_SOCKETS_MAX; i++)
			g->socks[lane][i] = (struct group_socket){.fd = -1};
}

void group_socks_close(struct group *g)
{
	for (unsigned lane = 0; lane < GROUP_LANES_MAX; lane++) {
		for (unsigned i = GROUP_SOCKETS_MAX; i-- > 0;) {
			if (g->socks[lane][i].fd >= 0)
				close(g->socks[lane][i].fd);
			g->socks[lane][i] = (struct group_socket){.fd = -1};
		}
	}
}

unsigned group_held(const struct group *g)
{
	unsigned least = GROUP_SOCKETS_MAX;

	for (unsigned lane = 0; lane < g->lane_count; lane++) {
		unsigned n = 0;

		for (unsigned i = 0; i < GROUP_SOCKETS_MAX; i++)
			n += g->socks[lane][i].fd >= 0;
		if (n < least)
			least = n;
	}
	return g->lane_count ? least : 0;
}

uint64_t group_digest(const struct group *g)
{
	uint64_t sum = 0;

	/* A sum, because it is the same in every order; cookies are counted up, so they are mixed first. */
	for (unsigned lane = 0; lane < g->lane_count; lane++) {
		for (unsigned i = 0; i < GROUP_SOCKETS_MAX; i++) {
			uint64_t x = g->socks[lane][i].cookie;

			if (g->socks[lane][i].fd < 0)
				continue;
			x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
			x = (x ^ x >> 27) * 0x94d049bb133111ebu;
			sum += x ^ x >> 31;
		}
	}
	return sum;
}

static uint64_t cookie_of(int fd)
{
	uint64_t cookie = 0;
	socklen_t len = sizeof(cookie);

	getsockopt(fd, SOL_SOCKET, SO_COOKIE, &cookie, &len);
	return cookie;
}

/* A socket that shares the port with ours certainly has a place in the kernel's group. */
static bool is_socket_of_lane(int fd, const struct group_lane *lane)
{
	int type = 0, shares = 0;
	socklen_t len = sizeof(type), shares_len = sizeof(shares);
	union udp_address a = {0}, wanted;
	socklen_t a_len = sizeof(a);

	if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &len) < 0 || type != SOCK_DGRAM ||
	    getsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &shares, &shares_len) < 0 || !shares ||
	    getsockname(fd, (struct sockaddr *)&a, &a_len) < 0)
		return false;
	lane_address(lane, &wanted);
	if (a.v4.sin_family != wanted.v4.sin_family || a.v4.sin_port != wanted.v4.sin_port)
		return false;
	return lane->family == UDP_V4 ? a.v4.sin_addr.s_addr == wanted.v4.sin_addr.s_addr
				      : !memcmp(&a.v6.sin6_addr, &wanted.v6.sin6_addr, 16) &&
						a.v6.sin6_scope_id == wanted.v6.sin6_scope_id;
}

/*
 * The label is the TTL of multicasts: it is a number of the socket itself, which every process with a descriptor
 * of it may set; it has no other effect, as these sockets send nothing.
 */
static const struct {
	int level, option;
} label[UDP_FAMILIES] = {
	[UDP_V4] = {IPPROTO_IP, IP_MULTICAST_TTL},
	[UDP_V6] = {IPPROTO_IPV6, IPV6_MULTICAST_HOPS},
};

enum { LABEL_NONE = 1 /* what a new socket has */, LABEL_FIRST = 128 };

static_assert((int)LABEL_FIRST + (int)GROUP_SLOTS <= 255, "every slot is a TTL");

int group_owner(const struct group *g, unsigned lane, unsigned at)
{
	unsigned family = g->lanes[lane].family;
	int value = LABEL_NONE;
	socklen_t len = sizeof(value);

	if (g->socks[lane][at].fd >= 0)
		getsockopt(g->socks[lane][at].fd, label[family].level, label[family].option, &value, &len);
	return value >= LABEL_FIRST && value < LABEL_FIRST + (int)GROUP_SLOTS ? value - LABEL_FIRST : (int)GROUP_NOBODY;
}

void group_claim(const struct group *g, unsigned lane, unsigned at, int slot)
{
	unsigned family = g->lanes[lane].family;

	udp_set_option(g->socks[lane][at].fd, label[family].level, label[family].option,
		       slot == GROUP_NOBODY ? (int)LABEL_NONE : LABEL_FIRST + slot);
}

void group_swap(struct group *g, unsigned lane, unsigned a, unsigned b)
{
	struct group_socket s = g->socks[lane][a];

	g->socks[lane][a] = g->socks[lane][b];
	g->socks[lane][b] = s;
}

/* GROUP_SOCKETS_MAX: there is none. */
static unsigned find(const struct group_socket *socks, bool (*is)(const struct group_socket *, uint64_t),
		     uint64_t cookie)
{
	unsigned i = 0;

	while (i < GROUP_SOCKETS_MAX && !is(&socks[i], cookie))
		i++;
	return i;
}

static bool has_cookie(const struct group_socket *s, uint64_t cookie)
{
	return s->fd >= 0 && s->cookie == cookie;
}

static bool is_free(const struct group_socket *s, uint64_t cookie)
{
	return s->fd < 0;
}

static void hold_one(struct group *g, unsigned lane, unsigned at, int fd)
{
	struct group_socket *socks = g->socks[lane];
	uint64_t cookie = cookie_of(fd);
	unsigned known = find(socks, has_cookie, cookie);
	unsigned room = find(socks, is_free, 0);

	if (known < GROUP_SOCKETS_MAX) {
		close(fd);
		group_swap(g, lane, known, at);
	} else if (room < GROUP_SOCKETS_MAX) {
		if (socks[at].fd >= 0)
			group_swap(g, lane, room, at);
		socks[at] = (struct group_socket){.fd = fd, .cookie = cookie};
	} else {
		close(fd);
	}
}

int group_lane_of(const struct group *g, int fd)
{
	for (unsigned lane = 0; lane < g->lane_count; lane++)
		if (is_socket_of_lane(fd, &g->lanes[lane]))
			return (int)lane;
	return -1;
}

unsigned group_add(struct group *g, unsigned lane, unsigned at, int fd)
{
	struct group_socket *socks = g->socks[lane];
	uint64_t cookie = cookie_of(fd);
	unsigned known = find(socks, has_cookie, cookie);

	while (at < GROUP_SOCKETS_MAX && socks[at].fd >= 0)
		at++;
	if (known < GROUP_SOCKETS_MAX || at >= GROUP_SOCKETS_MAX) {
		close(fd);
		return known;
	}
	socks[at] = (struct group_socket){.fd = fd, .cookie = cookie};
	return at;
}

bool group_hold(struct group *g, unsigned lane, unsigned first, unsigned count, const int *fds)
{
	if (lane >= g->lane_count || first + count > GROUP_SOCKETS_MAX) {
		link_close_all(fds, count);
		return false;
	}
	for (unsigned i = 0; i < count; i++) {
		if (is_socket_of_lane(fds[i], &g->lanes[lane]))
			continue;
		link_close_all(fds, count);
		return false;
	}
	for (unsigned i = 0; i < count; i++)
		hold_one(g, lane, first + i, fds[i]);
	return true;
}

static int give_some(const struct group *g, int link, enum group_msg_type type, unsigned lane, unsigned first,
		     unsigned count, const int *fds)
{
	struct group_msg m = {.type = type,
			      .slot = (uint16_t)g->slot,
			      .lane = (uint8_t)lane,
			      .first = (uint16_t)first,
			      .count = (uint16_t)count,
			      .held = (uint16_t)group_held(g),
			      .lane_count = g->lane_count};
	uint8_t buf[GROUP_MSG_HEADER_LEN];

	memcpy(m.lanes, g->lanes, sizeof(m.lanes));
	return link_send(link, buf, group_msg_encode(buf, &m), NULL, 0, fds, count);
}

int group_give(const struct group *g, int link, enum group_msg_type type, group_chosen *chosen, const void *ctx)
{
	for (unsigned lane = 0; lane < g->lane_count; lane++) {
		unsigned n = 0;
		int fds[GROUP_MSG_FDS_MAX];

		/* A run of neighbours at a time. */
		for (unsigned i = 0; i <= GROUP_SOCKETS_MAX; i++) {
			bool goes =
				i < GROUP_SOCKETS_MAX && g->socks[lane][i].fd >= 0 && (!chosen || chosen(ctx, lane, i));

			if (n && (!goes || n == GROUP_MSG_FDS_MAX)) {
				int err = give_some(g, link, type, lane, i - n, n, fds);

				if (err < 0)
					return err;
				n = 0;
			}
			if (goes)
				fds[n++] = g->socks[lane][i].fd;
		}
	}
	return give_some(g, link, type, 0, 0, 0, NULL);
}
