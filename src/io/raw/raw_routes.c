/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Routes of RoCEv1, which is never routed: the interface is that of the source GID, and the destination is on its link.
 * Invariant: a kept route is in the one place that its addresses have.
 */
#include "io/raw/raw_routes.h"

#include <errno.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "io/raw/neighbour.h"

enum {
	KNOWN_NS = 1000000000, /* the kernel's own word for how long a neighbour stays is ten times that */
	ASKED_NS = 1000000,    /* between two looks while the kernel resolves */
	ASK_AGAIN_NS = 1000000000
};

bool raw_gid_is_group(const uint8_t gid[16])
{
	static const uint8_t v4_mapped[12] = {[10] = 0xff, [11] = 0xff};

	return gid[0] == 0xff || (!memcmp(gid, v4_mapped, sizeof(v4_mapped)) && gid[12] >> 4 == 14);
}

static void interface_read(struct raw_interface *i, int fd, uint32_t ifindex)
{
	struct ifreq r = {.ifr_ifindex = (int)ifindex};

	*i = (struct raw_interface){.ifindex = ifindex};
	if (ioctl(fd, SIOCGIFNAME, &r) < 0 || ioctl(fd, SIOCGIFHWADDR, &r) < 0)
		return;
	i->is_ethernet = r.ifr_hwaddr.sa_family == ARPHRD_ETHER;
	i->is_loopback = r.ifr_hwaddr.sa_family == ARPHRD_LOOPBACK;
	if (i->is_ethernet)
		memcpy(i->mac, r.ifr_hwaddr.sa_data, sizeof(i->mac));
}

int raw_routes_open(struct raw_routes *t, int fd, const struct io_gid *gids, size_t count)
{
	t->neighbour_fd = neighbour_open();
	if (t->neighbour_fd < 0)
		return t->neighbour_fd;
	raw_routes_set(t, fd, gids, count);
	return 0;
}

void raw_routes_set(struct raw_routes *t, int fd, const struct io_gid *gids, size_t count)
{
	memset(t->kept, 0, sizeof(t->kept));
	t->loopback = if_nametoindex("lo");
	for (t->gid_count = 0; t->gid_count < count && t->gid_count < IO_GIDS_MAX; t->gid_count++) {
		struct raw_interface *i = &t->interfaces[t->gid_count];

		t->gids[t->gid_count] = gids[t->gid_count];
		interface_read(i, fd, gids[t->gid_count].ifindex);
		if (i->is_loopback)
			t->loopback = i->ifindex;
	}
}

void raw_routes_close(struct raw_routes *t)
{
	if (t->neighbour_fd >= 0)
		close(t->neighbour_fd);
}

int raw_gid_find(const struct raw_routes *t, const uint8_t gid[16], uint32_t ifindex)
{
	for (size_t i = 0; i < t->gid_count; i++) {
		if (!memcmp(t->gids[i].gid, gid, sizeof(t->gids[i].gid)) && (!ifindex || t->gids[i].ifindex == ifindex))
			return (int)i;
	}
	return -1;
}

static struct raw_route *place_of(const struct raw_routes *t, const uint8_t src[16], const uint8_t dst[16])
{
	uint32_t at = 2u * dst[15] + 64u * dst[14] + 16u * dst[13] + src[15];

	return (struct raw_route *)&t->kept[at % RAW_ROUTES];
}

static void ask(struct raw_route *r, uint64_t now_ns)
{
	if (r->asked_ns && now_ns - r->asked_ns < ASK_AGAIN_NS)
		return;
	r->asked_ns = now_ns;
	neighbour_ask(r->ifindex, r->dst);
}

static void resolve_neighbour(struct raw_routes *t, struct raw_route *r, uint64_t now_ns)
{
	enum neighbour_state state = neighbour_look(t->neighbour_fd, r->ifindex, r->dst, r->link.dst);

	if (state != NEIGHBOUR_KNOWN)
		ask(r, now_ns);
	r->way = state == NEIGHBOUR_UNKNOWN ? RAW_ASKED : RAW_KNOWN;
}

static void resolve(struct raw_routes *t, struct raw_route *r, uint64_t now_ns)
{
	int own = raw_gid_find(t, r->src, r->asked_ifindex);
	const struct raw_interface *i;

	r->way = RAW_NOWHERE;
	r->everywhere = false;
	if (own < 0)
		return;
	i = &t->interfaces[own];
	r->ifindex = i->ifindex;
	memcpy(r->link.src, i->mac, sizeof(r->link.src));
	if (raw_gid_is_group(r->dst)) {
		rocev1_mac_of_group(r->link.dst, r->dst);
		r->everywhere = i->is_ethernet;
		r->way = i->is_ethernet || i->is_loopback ? RAW_KNOWN : RAW_NOWHERE;
	} else if (raw_gid_find(t, r->dst, 0) >= 0) {
		memset(&r->link, 0, sizeof(r->link));
		r->ifindex = t->loopback;
		r->way = t->loopback ? RAW_KNOWN : RAW_NOWHERE;
	} else if (i->is_ethernet && rocev1_mac_of_gid(r->link.dst, r->dst)) {
		r->way = RAW_KNOWN;
	} else if (i->is_ethernet) {
		resolve_neighbour(t, r, now_ns);
	}
}

const struct raw_route *raw_route(struct raw_routes *t, const struct flow *f, uint64_t now_ns)
{
	struct raw_route *r = place_of(t, f->src, f->dst);
	bool same = r->until_ns && r->asked_ifindex == f->ifindex && !memcmp(r->src, f->src, sizeof(r->src)) &&
		    !memcmp(r->dst, f->dst, sizeof(r->dst));

	if (same && now_ns < r->until_ns)
		return r;
	if (!same) {
		*r = (struct raw_route){.asked_ifindex = f->ifindex};
		memcpy(r->src, f->src, sizeof(r->src));
		memcpy(r->dst, f->dst, sizeof(r->dst));
	}
	resolve(t, r, now_ns);
	r->until_ns = now_ns + (r->way == RAW_ASKED ? ASKED_NS : KNOWN_NS);
	return r;
}

const struct raw_route *raw_route_kept(const struct raw_routes *t, const uint8_t src[16], const uint8_t dst[16])
{
	const struct raw_route *r = place_of(t, src, dst);

	return r->until_ns && r->way == RAW_KNOWN && !memcmp(r->src, src, sizeof(r->src)) &&
			       !memcmp(r->dst, dst, sizeof(r->dst))
		       ? r
		       : NULL;
}
