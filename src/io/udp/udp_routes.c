/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which interface, by the kernel's own word: rtnetlink's RTM_GETROUTE. A kept route is in one of the four places that
 * its addresses have.
 *
 * A kept route may be out of date. Where the routing table chooses, that harms nothing. Where an interface is named,
 * IPv4 takes every destination to be on its link when its route is gone, and nobody learns of the loss. So such a route
 * is looked up again before a queue pair with usual timers has used up its retries.
 *
 * If IPv6 routes have different metrics the kernel takes the best one, whatever interface is named; so do Linux's own
 * RoCE devices.
 */
#include "io/udp/udp_routes.h"

#include <errno.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "io/fd_away.h"
#include "io/net.h"
#include "io/uncancelled.h"
#include "space/space.h"

enum {
	SETS = 1024, /* a power of 2; pages that no route needs are never touched */
	WAYS = 4,
	CHOSEN_NS = 1000000000,
	NAMED_NS = 100000000,
	REPLY_BYTES = 8192,
	LOOPBACK = 1 /* the kernel's LOOPBACK_IFINDEX, in every network namespace */
};

static const uint8_t v4_mapped[12] = {[10] = 0xff, [11] = 0xff};

/* ---- what the kernel says ------------------------------------------------------------------------ */

/* A route: which interfaces its next hops are on. */
struct way {
	unsigned char type; /* RTN_UNSPEC: there is none */
	uint32_t first;
	bool some_own, all_own; /* of them are on the interface that was asked about */
};

static void add(char *request, int type, const void *data, size_t bytes)
{
	struct nlmsghdr *h = (void *)request;
	struct rtattr *a = (void *)(request + NLMSG_ALIGN(h->nlmsg_len));

	a->rta_type = (unsigned short)type;
	a->rta_len = (unsigned short)RTA_LENGTH(bytes);
	memcpy(RTA_DATA(a), data, bytes);
	h->nlmsg_len = NLMSG_ALIGN(h->nlmsg_len) + RTA_ALIGN(a->rta_len);
}

/*
 * Requests the entry itself, with all its next hops. Without that flag the kernel makes up an IPv4 route by an
 * interface if there is none.
 */
static bool ask(int fd, const struct udp_route *r, uint32_t ifindex)
{
	_Alignas(struct nlmsghdr) char request[128] = {0};
	struct nlmsghdr *h = (void *)request;
	struct rtmsg *m = NLMSG_DATA(h);
	bool ipv4 = !memcmp(r->dst, v4_mapped, sizeof(v4_mapped));
	size_t bytes = ipv4 ? 4 : 16;

	*h = (struct nlmsghdr){
		.nlmsg_len = NLMSG_LENGTH(sizeof(*m)), .nlmsg_type = RTM_GETROUTE, .nlmsg_flags = NLM_F_REQUEST};
	m->rtm_family = ipv4 ? AF_INET : AF_INET6;
	m->rtm_dst_len = m->rtm_src_len = (unsigned char)(bytes * 8);
	m->rtm_flags = RTM_F_FIB_MATCH;
	add(request, RTA_DST, r->dst + 16 - bytes, bytes);
	add(request, RTA_SRC, r->src + 16 - bytes, bytes);
	if (ifindex)
		add(request, RTA_OIF, &ifindex, sizeof(ifindex));
	return send(fd, request, h->nlmsg_len, MSG_DONTWAIT) == (ssize_t)h->nlmsg_len;
}

static void way_add(struct way *w, uint32_t hop, uint32_t own)
{
	w->all_own = hop == own && (w->all_own || !w->first);
	w->some_own |= hop == own;
	if (!w->first)
		w->first = hop;
}

static void read_hops(struct way *w, const struct rtattr *a, uint32_t own)
{
	const struct rtnexthop *hop = RTA_DATA(a);
	int left = (int)RTA_PAYLOAD(a);

	for (; left >= (int)sizeof(*hop) && RTNH_OK(hop, left); hop = RTNH_NEXT(hop)) {
		way_add(w, (uint32_t)hop->rtnh_ifindex, own);
		left -= (int)RTNH_ALIGN(hop->rtnh_len);
	}
}

static struct way read_way(const struct nlmsghdr *h, uint32_t own)
{
	const struct rtmsg *m = NLMSG_DATA(h);
	unsigned left = (unsigned)RTM_PAYLOAD(h);
	struct way w = {.type = m->rtm_type};
	uint32_t hop;

	for (const struct rtattr *a = RTM_RTA(m); RTA_OK(a, left); a = RTA_NEXT(a, left)) {
		if (a->rta_type == RTA_MULTIPATH)
			read_hops(&w, a, own);
		if (a->rta_type != RTA_OIF)
			continue;
		memcpy(&hop, RTA_DATA(a), sizeof(hop));
		way_add(&w, hop, own);
	}
	return w;
}

/*
 * Asks the kernel for the route between those addresses, by an interface if ifindex is not 0, and notes whether some
 * and whether all of its hops leave by the interface `own`.
 */
static struct way way_look(int fd, const struct udp_route *r, uint32_t ifindex, uint32_t own)
{
	_Alignas(struct nlmsghdr) char reply[REPLY_BYTES];
	const struct nlmsghdr *h = (const void *)reply;
	struct way none = {.type = RTN_UNSPEC};
	ssize_t got;

	if (fd < 0 || !ask(fd, r, ifindex))
		return none;
	/* Netlink answers within send(). */
	got = recv(fd, reply, sizeof(reply), MSG_DONTWAIT);
	if (got < 0 || !NLMSG_OK(h, (size_t)got) || h->nlmsg_type != RTM_NEWROUTE ||
	    h->nlmsg_len < NLMSG_LENGTH(sizeof(struct rtmsg)))
		return none;
	return read_way(h, own);
}

/* ---- the decision -------------------------------------------------------------------------------- */

static uint32_t interface_of(const struct udp_routes *t, const uint8_t src[16])
{
	for (size_t i = 0; i < t->gid_count; i++)
		if (!memcmp(t->gids[i].gid, src, sizeof(t->gids[i].gid)))
			return t->gids[i].ifindex;
	return 0;
}

/*
 * Nothing is named to the kernel that it would do anyway, so a host with one interface sends as any program does; and a
 * route with several next hops on the same interface keeps them all.
 */
static void judge(struct udp_routes *t, struct udp_route *r, uint64_t now_ns)
{
	uint32_t own = r->asked_ifindex ? 0 : interface_of(t, r->src), leaves = r->asked_ifindex;
	struct io_interface *row = NULL;

	r->ifindex = r->asked_ifindex;
	if (!r->asked_ifindex) {
		struct way table = way_look(t->fd, r, 0, own);
		bool local = table.type == RTN_LOCAL;

		if (own && !local && !table.all_own) {
			struct way its = way_look(t->fd, r, own, own);

			r->ifindex = t->bound || (its.type == RTN_UNICAST && its.some_own) ? own : 0;
		}
		leaves = r->ifindex ? r->ifindex : local ? LOOPBACK : table.first;
	}
	if (t->interfaces && leaves)
		row = io_interface_find(t->interfaces, leaves);
	r->counts = row ? row : &t->uncounted;
	r->until_ns = now_ns + (r->ifindex ? NAMED_NS : CHOSEN_NS);
}

static struct udp_route *set_of(const struct udp_routes *t, const struct flow *f)
{
	uint64_t src[2], dst[2], h;

	memcpy(src, f->src, sizeof(src));
	memcpy(dst, f->dst, sizeof(dst));
	h = src[0] + 3 * src[1] + 5 * dst[0] + 7 * dst[1];
	h = (h ^ h >> 32) * 0x9e3779b97f4a7c15;
	return &t->kept[(h >> 32) % SETS * WAYS];
}

static bool is_of(const struct udp_routes *t, const struct udp_route *r, const struct flow *f)
{
	return r->turn == t->turn && r->asked_ifindex == f->ifindex && !memcmp(r->dst, f->dst, sizeof(r->dst)) &&
	       !memcmp(r->src, f->src, sizeof(r->src));
}

static __attribute__((cold)) const struct udp_route *route_judge(struct udp_routes *t, struct udp_route *r,
								 const struct flow *f, uint64_t now_ns)
{
	int state = cancel_off();

	r->turn = t->turn;
	r->asked_ifindex = f->ifindex;
	memcpy(r->src, f->src, sizeof(r->src));
	memcpy(r->dst, f->dst, sizeof(r->dst));
	judge(t, r, now_ns);
	cancel_restore(state);
	return r;
}

const struct udp_route *udp_route(struct udp_routes *t, const struct flow *f, uint64_t now_ns)
{
	struct udp_route *set = set_of(t, f), *oldest = set;

	for (struct udp_route *r = set; r < set + WAYS; r++) {
		if (is_of(t, r, f))
			return now_ns < r->until_ns ? r : route_judge(t, r, f, now_ns);
		if (r->until_ns < oldest->until_ns)
			oldest = r;
	}
	return route_judge(t, oldest, f, now_ns);
}

/* ---- open and close ------------------------------------------------------------------------------ */

int udp_routes_open(struct udp_routes *t, struct io_interfaces *interfaces, bool bound)
{
	t->bound = bound;
	t->interfaces = interfaces;
	t->turn = 1;
	t->kept = space_get(SETS * WAYS * sizeof(*t->kept));
	t->fd = -1;
	udp_routes_return(t);
	return t->kept ? 0 : -ENOMEM;
}

void udp_routes_leave(struct udp_routes *t)
{
	if (t->fd >= 0)
		close(t->fd);
	t->fd = -1;
}

void udp_routes_return(struct udp_routes *t)
{
	udp_routes_leave(t);
	t->fd = fd_away(net_socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE));
	t->turn++;
}

void udp_routes_close(struct udp_routes *t)
{
	udp_routes_leave(t);
	space_put(t->kept, SETS * WAYS * sizeof(*t->kept));
}

/*
 * Not the loopback interface, and none that has neither neighbours nor a peer: a dummy's packets go nowhere, whatever
 * the routing table says about it.
 */
static bool leads_out(int fd, uint32_t ifindex)
{
	struct ifreq r = {.ifr_ifindex = (int)ifindex};

	if (ioctl(fd, SIOCGIFNAME, &r) < 0 || ioctl(fd, SIOCGIFFLAGS, &r) < 0)
		return false;
	return !(r.ifr_flags & IFF_LOOPBACK) && (!(r.ifr_flags & IFF_NOARP) || r.ifr_flags & IFF_POINTOPOINT);
}

void udp_routes_set_gids(struct udp_routes *t, int fd, const struct io_gid *gids, size_t count)
{
	t->gid_count = 0;
	for (size_t i = 0; i < count && t->gid_count < IO_GIDS_MAX; i++)
		if (leads_out(fd, gids[i].ifindex))
			t->gids[t->gid_count++] = gids[i];
	t->turn++;
}
