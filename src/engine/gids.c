/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * GIDs from rtnetlink: one dump of links, one of addresses. getifaddrs() would hide which IPv6
 * addresses are tentative, and those cannot be sent from.
 */
#include "engine/gids.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_addr.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/byteorder.h"
#include "engine/config.h"
#include "engine/link_speed.h"
#include "engine/map_file.h"
#include "group/group.h"
#include "io/net.h"
#include "space/space.h"

enum { LINKS_MAX = 1024, CANDIDATES_MAX = 1024, DUMP_BYTES = 32768 };

struct scan {
	struct gid_link links[LINKS_MAX];
	size_t link_count;
	struct gid_candidate found[CANDIDATES_MAX];
	size_t found_count;
	const char *only;
	const char *rail;    /* the only interface; NULL: any of those */
	bool shows_loopback; /* the choice names it, or has every address */
	uint32_t kinds;      /* a bit for each class of addresses that are taken */
	uint32_t loopback_mtu;
};

typedef void message_fn(struct scan *, const struct nlmsghdr *);

/* Whether a comma list names it; an empty list names everything. */
static bool list_has(const char *list, const char *name)
{
	size_t len = strlen(name);

	if (!list || !list[0])
		return true;
	for (const char *p = list; *p;) {
		size_t n = strcspn(p, ",");

		if (n == len && !strncmp(p, name, n))
			return true;
		p += n + (p[n] == ',');
	}
	return false;
}

static void on_link(struct scan *s, const struct nlmsghdr *h)
{
	const struct ifinfomsg *info = NLMSG_DATA(h);
	unsigned int left = (unsigned int)IFLA_PAYLOAD(h);
	struct gid_link *l = &s->links[s->link_count];

	if (h->nlmsg_type != RTM_NEWLINK || s->link_count == LINKS_MAX)
		return;
	*l = (struct gid_link){.loopback = info->ifi_flags & IFF_LOOPBACK,
			       .up = info->ifi_flags & IFF_UP,
			       .running = info->ifi_flags & IFF_RUNNING};
	l->interface.ifindex = (uint32_t)info->ifi_index;
	for (const struct rtattr *a = IFLA_RTA(info); RTA_OK(a, left); a = RTA_NEXT(a, left)) {
		if (a->rta_type == IFLA_IFNAME)
			snprintf(l->interface.name, sizeof(l->interface.name), "%s", (const char *)RTA_DATA(a));
		else if (a->rta_type == IFLA_MTU)
			memcpy(&l->interface.mtu, RTA_DATA(a), sizeof(l->interface.mtu));
		else if (a->rta_type == IFLA_ADDRESS && RTA_PAYLOAD(a) <= sizeof(l->mac))
			memcpy(l->mac, RTA_DATA(a), RTA_PAYLOAD(a));
	}
	if (l->loopback && l->up)
		s->loopback_mtu = l->interface.mtu;
	if (list_has(s->only, l->interface.name) && (!s->rail || !strcmp(s->rail, l->interface.name)))
		s->link_count++;
}

static const struct gid_link *link_find(const struct scan *s, uint32_t ifindex)
{
	for (size_t i = 0; i < s->link_count; i++) {
		if (s->links[i].interface.ifindex == ifindex)
			return &s->links[i];
	}
	return NULL;
}

/* RFC 4429: an optimistic address may be used before its uniqueness is known. */
static bool usable(uint32_t flags)
{
	if (flags & IFA_F_DADFAILED)
		return false;
	return !(flags & IFA_F_TENTATIVE) || flags & IFA_F_OPTIMISTIC;
}

static void on_address(struct scan *s, const struct nlmsghdr *h)
{
	const struct ifaddrmsg *info = NLMSG_DATA(h);
	const struct gid_link *l = link_find(s, info->ifa_index);
	unsigned int left = (unsigned int)IFA_PAYLOAD(h);
	uint32_t flags = info->ifa_flags;
	const void *local = NULL, *address = NULL;
	struct gid_candidate *c = &s->found[s->found_count];

	if (h->nlmsg_type != RTM_NEWADDR || !l || s->found_count == CANDIDATES_MAX)
		return;
	for (const struct rtattr *a = IFA_RTA(info); RTA_OK(a, left); a = RTA_NEXT(a, left)) {
		if (a->rta_type == IFA_LOCAL)
			local = RTA_DATA(a);
		else if (a->rta_type == IFA_ADDRESS)
			address = RTA_DATA(a);
		else if (a->rta_type == IFA_FLAGS)
			memcpy(&flags, RTA_DATA(a), sizeof(flags));
	}
	/* On a point-to-point link IFA_ADDRESS is the peer and IFA_LOCAL ours. */
	if (!local)
		local = address;
	if (!local || !usable(flags))
		return;

	*c = (struct gid_candidate){
		.interface = l->interface,
		.loopback = l->loopback,
		.up = l->up,
		.running = l->running,
		.of_host = l->loopback && info->ifa_scope == RT_SCOPE_HOST,
		.prefix_len = info->ifa_prefixlen,
		.sequence = (uint32_t)s->found_count,
	};
	if (info->ifa_family == AF_INET) {
		c->raw[10] = 0xff;
		c->raw[11] = 0xff;
		memcpy(c->raw + 12, local, 4);
	} else if (info->ifa_family == AF_INET6) {
		memcpy(c->raw, local, 16);
	} else {
		return;
	}
	s->found_count++;
}

/* One dump request, its answer handed to fn message by message. */
static int dump(int fd, uint16_t type, struct scan *s, message_fn *fn)
{
	struct {
		struct nlmsghdr h;
		struct rtgenmsg g;
	} request = {
		.h = {.nlmsg_len = NLMSG_LENGTH(sizeof(struct rtgenmsg)),
		      .nlmsg_type = type,
		      .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP,
		      .nlmsg_seq = type},
		.g = {.rtgen_family = AF_UNSPEC},
	};
	_Alignas(struct nlmsghdr) char buf[DUMP_BYTES];

	if (send(fd, &request, request.h.nlmsg_len, 0) < 0)
		return -errno;
	for (;;) {
		ssize_t got = recv(fd, buf, sizeof(buf), 0);
		unsigned int left = (unsigned int)got;

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -errno;
		for (const struct nlmsghdr *h = (void *)buf; NLMSG_OK(h, left); h = NLMSG_NEXT(h, left)) {
			if (h->nlmsg_type == NLMSG_DONE)
				return 0;
			if (h->nlmsg_type == NLMSG_ERROR)
				return ((const struct nlmsgerr *)NLMSG_DATA(h))->error;
			fn(s, h);
		}
	}
}

enum { CLASS_LINK_LOCAL = PROFILE_LINK_LOCAL, CLASS_IPV4 = PROFILE_IPV4, CLASS_IPV6 = PROFILE_IPV6 };

static int class_of(const uint8_t raw[16])
{
	static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};

	if (!memcmp(raw, mapped, sizeof(mapped)))
		return CLASS_IPV4;
	return raw[0] == 0xfe && (raw[1] & 0xc0) == 0x80 ? CLASS_LINK_LOCAL : CLASS_IPV6;
}

static int compare(const void *pa, const void *pb)
{
	const struct gid_candidate *a = pa, *b = pb;

	if (a->loopback != b->loopback)
		return a->loopback - b->loopback;
	if (a->interface.ifindex != b->interface.ifindex)
		return a->interface.ifindex < b->interface.ifindex ? -1 : 1;
	if (class_of(a->raw) != class_of(b->raw))
		return class_of(a->raw) - class_of(b->raw);
	return a->sequence < b->sequence ? -1 : a->sequence > b->sequence;
}

void gids_sort(struct gid_candidate *c, size_t n)
{
	qsort(c, n, sizeof(*c), compare);
}

/* Whether the list names an interface that does not exist, and which. */
static bool unknown_name(const char *list, char name[IF_NAMESIZE])
{
	for (const char *p = list; *p;) {
		size_t n = strcspn(p, ",");

		snprintf(name, IF_NAMESIZE, "%.*s", (int)n, p);
		if (n >= IF_NAMESIZE || !if_nametoindex(name))
			return true;
		p += n + (p[n] == ',');
	}
	return false;
}

/* ---- chosen addresses ---- */

struct wanted {
	const char *text; /* in the list */
	int len;
	uint8_t raw[16];
	char interface[IF_NAMESIZE]; /* empty: any */
	bool found;
};

static bool wanted_read(struct wanted *w)
{
	char text[INET6_ADDRSTRLEN + 1 + IF_NAMESIZE], *scope;
	static const uint8_t none[16];

	memset(w->raw, 0, sizeof(w->raw));
	w->interface[0] = 0;
	w->found = false;
	if (w->len >= (int)sizeof(text))
		return false;
	snprintf(text, sizeof(text), "%.*s", w->len, w->text);
	scope = strchr(text, '%');
	if (scope) {
		*scope++ = 0;
		if (!*scope || strlen(scope) >= IF_NAMESIZE)
			return false;
		strcpy(w->interface, scope);
	}
	if (inet_pton(AF_INET, text, w->raw + 12) == 1) {
		w->raw[10] = w->raw[11] = 0xff;
		/* 0.0.0.0/8 names nobody; from 224 on are groups and the broadcast address. */
		return !scope && w->raw[12] && w->raw[12] < 224;
	}
	return inet_pton(AF_INET6, text, w->raw) == 1 && memcmp(w->raw, none, sizeof(none)) != 0 && w->raw[0] != 0xff;
}

/* How many; or -EINVAL with a sentence in err. */
static int list_read(struct wanted *w, const char *list, char *err, size_t err_bytes)
{
	int n = 0;

	for (const char *p = list; *p; n++) {
		struct wanted next = {.text = p, .len = (int)strcspn(p, ",")};
		bool twice = false;

		if (!wanted_read(&next)) {
			snprintf(err, err_bytes,
				 "VERBENA_ADDRESS=%s: '%.*s': allowed are IPv4 and IPv6 addresses of this host", list,
				 next.len, p);
			return -EINVAL;
		}
		for (int i = 0; i < n && !twice; i++)
			twice = !memcmp(w[i].raw, next.raw, 16) && !strcmp(w[i].interface, next.interface);
		if (twice || n == GROUP_ADDRESSES_MAX) {
			snprintf(err, err_bytes, "VERBENA_ADDRESS=%s: allowed are at most %d addresses, each once",
				 list, GROUP_ADDRESSES_MAX);
			return -EINVAL;
		}
		w[n] = next;
		p += next.len;
		if (*p == ',' && !*++p) {
			snprintf(err, err_bytes, "VERBENA_ADDRESS=%s: an address is missing behind the last comma",
				 list);
			return -EINVAL;
		}
	}
	return n;
}

static bool is_wanted(struct wanted *w, int n, const struct gid_candidate *c)
{
	for (int i = 0; i < n; i++) {
		if (memcmp(w[i].raw, c->raw, 16) || (w[i].interface[0] && strcmp(w[i].interface, c->interface.name)))
			continue;
		w[i].found = true;
		return true;
	}
	return false;
}

/* To Linux every address of an IPv4 prefix of a loopback interface is this host's, except the first and the last. */
static bool covers(const struct gid_candidate *c, const uint8_t raw[16])
{
	uint32_t have, want, rest;

	if (!c->loopback || class_of(c->raw) != CLASS_IPV4 || class_of(raw) != CLASS_IPV4 || c->prefix_len > 30)
		return false;
	have = get_be32(c->raw + 12);
	want = get_be32(raw + 12);
	rest = UINT32_MAX >> c->prefix_len;
	return c->prefix_len && !((have ^ want) & ~rest) && (want & rest) && (want & rest) != rest;
}

static bool add_covered(struct scan *s, const struct wanted *w, size_t count)
{
	for (size_t i = 0; i < count && s->found_count < CANDIDATES_MAX; i++) {
		struct gid_candidate c = s->found[i];

		if (!covers(&c, w->raw) || w->interface[0])
			continue;
		memcpy(c.raw, w->raw, sizeof(c.raw));
		c.sequence = (uint32_t)s->found_count;
		s->found[s->found_count++] = c;
		return true;
	}
	return false;
}

/* Leaves of what was found those that are wanted. */
static void keep_wanted(struct scan *s, struct wanted *w, int n)
{
	size_t kept = 0;

	for (size_t i = 0; i < s->found_count; i++)
		if (is_wanted(w, n, &s->found[i]))
			s->found[kept++] = s->found[i];
	s->found_count = kept;
}

/* Leaves of what was found the addresses of the list. `err`: each must be there; NULL: those that are not may come. */
static int choose(struct scan *s, const char *list, char *err, size_t err_bytes)
{
	struct wanted w[GROUP_ADDRESSES_MAX];
	int n = list_read(w, list, err, err_bytes);
	size_t count = s->found_count;

	if (n < 0)
		return n;
	for (size_t i = 0; i < count; i++)
		is_wanted(w, n, &s->found[i]);
	for (int i = 0; i < n; i++) {
		if (w[i].found || add_covered(s, &w[i], count) || !err)
			continue;
		snprintf(
			err, err_bytes,
			"VERBENA_ADDRESS=%s: %.*s is no address of an interface that is up%s: allowed are those that `verbena "
			"devices` shows without it and, for peers on this host, 127.0.0.2 to 127.255.255.254",
			list, w[i].len, w[i].text, s->only && s->only[0] ? " and is in VERBENA_INTERFACES" : "");
		return -EADDRNOTAVAIL;
	}
	keep_wanted(s, w, n);
	return 0;
}

/* ---- rails ---- */

static const char *rail_of(const struct gid_choice *choice)
{
	return choice && choice->rail && choice->rail[0] ? choice->rail : NULL;
}

static bool is_given(const char *list)
{
	return list && list[0];
}

/* False: it is no address, but may be an interface. */
static bool rail_read(struct wanted *w, const char *rail)
{
	*w = (struct wanted){.text = rail, .len = (int)strlen(rail)};
	return wanted_read(w);
}

/* Leaves the address that the device is bound to, if it is bound to one; that it is there is judged later. */
static void choose_rail(struct scan *s, const struct gid_choice *choice)
{
	const char *rail = rail_of(choice);
	struct wanted w;
	bool found = false;

	if (!rail || !rail_read(&w, rail))
		return;
	for (size_t i = 0; i < s->found_count; i++)
		found |= is_wanted(&w, 1, &s->found[i]);
	if (!found && !is_given(choice->addresses))
		add_covered(s, &w, s->found_count);
	keep_wanted(s, &w, 1);
}

/* What the choice leaves of all that the kernel has. `err` as choose(). */
static int narrow(struct scan *s, const struct gid_choice *choice, char *err, size_t err_bytes)
{
	int rc = choice && is_given(choice->addresses) ? choose(s, choice->addresses, err, err_bytes) : 0;

	if (!rc)
		choose_rail(s, choice);
	return rc;
}

/* ---- the table ---- */

static int ask_kernel(struct scan *s)
{
	int fd = net_socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
	int rc = fd < 0 ? -errno : dump(fd, RTM_GETLINK, s, on_link);

	if (!rc)
		rc = dump(fd, RTM_GETADDR, s, on_address);
	if (fd >= 0)
		close(fd);
	return rc;
}

static bool is_zero(const uint8_t gid[16])
{
	static const uint8_t zero[16];

	return !memcmp(gid, zero, sizeof(zero));
}

/* Whether it may be added. */
static bool is_shown(const struct gid_table *t, const struct scan *s, const struct gid_candidate *c)
{
	return c->up && (!c->of_host || !t->networked || s->shows_loopback) && s->kinds >> class_of(c->raw) & 1;
}

static uint8_t *hidden(struct gid_table *t, const uint8_t gid[16])
{
	for (unsigned i = 0; i < GIDS_HIDDEN_MAX; i++)
		if (!memcmp(t->hidden[i], gid, sizeof(t->hidden[i])))
			return t->hidden[i];
	return NULL;
}

static void drop_hidden(struct gid_table *t, struct scan *s)
{
	size_t kept = 0;

	for (size_t i = 0; i < s->found_count; i++)
		if (!hidden(t, s->found[i].raw))
			s->found[kept++] = s->found[i];
	s->found_count = kept;
}

static void place(struct gid_table *t, uint32_t i, struct gid_candidate *c)
{
	t->gids[i] = (struct nic_gid){.ifindex = c->interface.ifindex, .ip_mtu = c->interface.mtu};
	memcpy(t->gids[i].raw, c->raw, sizeof(c->raw));
	memcpy(t->last[i], c->raw, sizeof(c->raw));
	t->interfaces[i] = c->interface;
	c->placed = true;
}

/* The address that an index has or had, on the same interface, which may have been made anew. */
static struct gid_candidate *returned(const struct gid_table *t, uint32_t i, struct scan *s)
{
	for (size_t k = 0; k < s->found_count; k++) {
		struct gid_candidate *c = &s->found[k];

		if (!c->placed && !memcmp(c->raw, t->last[i], sizeof(c->raw)) &&
		    (c->interface.ifindex == t->interfaces[i].ifindex || !t->interfaces[i].name[0] ||
		     !strcmp(c->interface.name, t->interfaces[i].name)))
			return c;
	}
	return NULL;
}

/* The first index that none has had, or else one whose address has gone; NIC_GIDS_MAX: there is none. */
static uint32_t free_index(struct gid_table *t)
{
	uint32_t i = 0;

	if (t->count < NIC_GIDS_MAX)
		return t->count++;
	while (i < NIC_GIDS_MAX && !is_zero(t->gids[i].raw))
		i++;
	return i;
}

static void merge(struct gid_table *t, struct scan *s)
{
	for (uint32_t i = 0; i < t->count; i++) {
		struct gid_candidate *c = returned(t, i, s);

		if (c && (!is_zero(t->gids[i].raw) || is_shown(t, s, c)))
			place(t, i, c);
		else
			t->gids[i] = (struct nic_gid){0};
	}
	for (size_t k = 0; k < s->found_count; k++) {
		struct gid_candidate *c = &s->found[k];
		uint32_t i = c->placed || !is_shown(t, s, c) ? NIC_GIDS_MAX : free_index(t);

		if (i < NIC_GIDS_MAX)
			place(t, i, c);
	}
}

static bool has_had(const struct gid_table *t, uint32_t ifindex)
{
	for (uint32_t i = 0; i < t->count; i++)
		if (t->interfaces[i].ifindex == ifindex)
			return true;
	return false;
}

struct engine_port gids_port(const struct gid_table *t)
{
	struct engine_port p = {0};

	for (uint32_t i = 0; i < t->link_count; i++) {
		const struct gid_link *l = &t->links[i];

		if (l->loopback && t->networked)
			continue;
		p.enabled |= l->up;
		p.active |= l->up && l->running;
	}
	p.speed_bps = t->port.speed_bps;
	p.made_up = t->port.made_up;
	return p;
}

static void settle(struct gid_table *t, struct scan *s)
{
	bool named = s->rail || (s->only && s->only[0]);

	gids_sort(s->found, s->found_count);
	for (size_t i = 0; i < s->found_count; i++)
		t->networked |= !s->found[i].loopback && s->found[i].up && s->found[i].running;
	merge(t, s);
	t->loopback_mtu = s->loopback_mtu;
	t->link_count = 0;
	t->port.speed_bps = 0;
	for (size_t i = 0; i < s->link_count && t->link_count < NIC_GIDS_MAX; i++) {
		const struct gid_link *l = &s->links[i];
		uint64_t bps;

		if (!named && !has_had(t, l->interface.ifindex))
			continue;
		t->links[t->link_count++] = *l;
		bps = l->running ? link_speed_bps(l->interface.name) : 0;
		if (bps <= t->port.speed_bps)
			continue;
		t->port.speed_bps = bps;
		t->port.made_up = link_speed_is_made_up(l->interface.name);
	}
}

static struct scan *scan_new(const struct gid_choice *choice)
{
	struct scan *s = space_get(sizeof(*s));
	const char *rail = rail_of(choice);
	struct wanted w;

	if (s) {
		s->only = choice ? choice->interfaces : NULL;
		s->rail = rail && !rail_read(&w, rail) ? rail : NULL;
		s->shows_loopback = !choice || is_given(choice->interfaces) || is_given(choice->addresses) || rail;
		s->kinds = choice && choice->kinds ? choice->kinds : UINT32_MAX;
	}
	return s;
}

static void drop_down(struct scan *s)
{
	size_t kept = 0;

	for (size_t i = 0; i < s->found_count; i++)
		if (s->found[i].up)
			s->found[kept++] = s->found[i];
	s->found_count = kept;
}

/* The interfaces that a device might be bound to, as a sentence has them. */
static void name_links(const struct gid_choice *choice, char *text, size_t bytes)
{
	struct scan *s = scan_new(&(struct gid_choice){.interfaces = choice->interfaces});
	size_t n = 0;

	text[0] = 0;
	if (s && !ask_kernel(s)) {
		for (size_t i = 0; i < s->link_count && n < bytes; i++)
			n += (size_t)snprintf(text + n, bytes - n, "%s%s", i ? ", " : "", s->links[i].interface.name);
	}
	space_put(s, sizeof(*s));
}

/* An interface may have no address yet, unless addresses are chosen; an address is there, or it is wrong. */
static int judge_rail(const struct scan *s, const struct gid_choice *choice, char *err, size_t err_bytes)
{
	const char *rail = rail_of(choice);
	char links[256];

	if (!rail || s->found_count || (s->rail && s->link_count && !is_given(choice->addresses)))
		return 0;
	name_links(choice, links, sizeof(links));
	snprintf(
		err, err_bytes,
		"VERBENA_DEVICES: '@%s' is no interface, and no address of one that is up%s: allowed are %s, an address of "
		"theirs or, for peers on this host, 127.0.0.2 to 127.255.255.254",
		rail,
		is_given(choice->addresses)    ? " and is in VERBENA_ADDRESS"
		: is_given(choice->interfaces) ? " and is in VERBENA_INTERFACES"
					       : "",
		links);
	return -ENODEV;
}

int gids_load(struct gid_table *t, const struct gid_choice *choice, char *err, size_t err_bytes)
{
	const char *only = choice ? choice->interfaces : NULL;
	char name[IF_NAMESIZE];
	struct scan *s;
	int rc;

	if (only && unknown_name(only, name)) {
		snprintf(err, err_bytes, "VERBENA_INTERFACES=%s: there is no interface '%s'", only, name);
		return -ENODEV;
	}
	s = scan_new(choice);
	if (!s) {
		snprintf(err, err_bytes, "out of memory");
		return -ENOMEM;
	}
	rc = ask_kernel(s);
	if (rc)
		snprintf(err, err_bytes, "cannot ask the kernel for this host's addresses: %s", strerror(-rc));
	drop_down(s);
	if (!rc)
		rc = narrow(s, choice, err, err_bytes);
	if (!rc)
		rc = judge_rail(s, choice, err, err_bytes);
	if (!rc) {
		memset(t, 0, sizeof(*t));
		settle(t, s);
		t->port = gids_port(t);
	}
	space_put(s, sizeof(*s));
	return rc;
}

struct gid_choice gids_choice(const struct config *c, unsigned device)
{
	return (struct gid_choice){.interfaces = c->interfaces,
				   .addresses = c->address,
				   .kinds = c->profile.set[PROFILE_GIDS],
				   .rail = c->devices.rails[device]};
}

static bool has_gid(const struct gid_table *t, const struct nic_gid *g)
{
	for (uint32_t i = 0; i < t->count; i++)
		if (!memcmp(t->gids[i].raw, g->raw, sizeof(g->raw)) && t->gids[i].ifindex == g->ifindex)
			return true;
	return false;
}

/* Whether a rail before that one has an address of its. */
static bool overlaps(const struct gid_table *t, const struct config *c, unsigned device, char *err, size_t err_bytes)
{
	for (unsigned d = 0; d < device && c->devices.has_rails; d++) {
		for (uint32_t i = 0; i < t[device].count; i++) {
			if (!has_gid(&t[d], &t[device].gids[i]))
				continue;
			snprintf(err, err_bytes,
				 "VERBENA_DEVICES: '@%s' and '@%s' are one address: allowed is each for one device",
				 c->devices.rails[d], c->devices.rails[device]);
			return true;
		}
	}
	return false;
}

int gids_load_all(struct gid_table *t, const struct config *c, char *err, size_t err_bytes)
{
	int rc = 0;

	for (unsigned d = 0; d < c->devices.count && !rc; d++) {
		struct gid_choice choice = gids_choice(c, d);

		if (d && !c->devices.has_rails)
			t[d] = t[0];
		else
			rc = gids_load(&t[d], &choice, err, err_bytes);
		if (!rc && overlaps(t, c, d, err, err_bytes))
			rc = -EINVAL;
	}
	return rc || !c->map[0] ? rc : map_show_tables(c, t, err, err_bytes);
}

int gids_follow(struct gid_table *t, const struct gid_choice *choice)
{
	struct scan *s = scan_new(choice);
	int rc = s ? ask_kernel(s) : -ENOMEM;

	if (!rc)
		rc = narrow(s, choice, NULL, 0);
	if (!rc) {
		drop_hidden(t, s);
		settle(t, s);
	}
	space_put(s, sizeof(*s));
	return rc;
}

void gids_leave_interfaces(struct gid_table *t)
{
	memset(t->interfaces, 0, sizeof(t->interfaces));
}

static uint32_t index_of(const struct gid_table *t, const uint8_t gid[16])
{
	uint32_t i = 0;

	while (i < t->count && memcmp(t->gids[i].raw, gid, sizeof(t->gids[i].raw)) != 0)
		i++;
	return is_zero(gid) ? t->count : i;
}

bool gids_hide(struct gid_table *t, const uint8_t gid[16])
{
	static const uint8_t none[16];
	uint8_t *room = hidden(t, none);
	uint32_t i = index_of(t, gid);

	if (i == t->count || !room)
		return false;
	memcpy(room, gid, sizeof(t->hidden[0]));
	for (; i < t->count; i = index_of(t, gid))
		t->gids[i] = (struct nic_gid){0};
	return true;
}

bool gids_show(struct gid_table *t, const uint8_t gid[16], const struct gid_choice *choice)
{
	uint8_t *its = is_zero(gid) ? NULL : hidden(t, gid);

	if (!its)
		return false;
	memset(its, 0, sizeof(t->hidden[0]));
	return !gids_follow(t, choice);
}

bool gids_move(struct gid_table *t, const uint8_t gid[16])
{
	uint32_t from = index_of(t, gid), to;

	if (from == t->count)
		return false;
	to = free_index(t);
	if (to == NIC_GIDS_MAX)
		return false;
	t->gids[to] = t->gids[from];
	t->interfaces[to] = t->interfaces[from];
	memcpy(t->last[to], t->last[from], sizeof(t->last[to]));
	/* It does not come back to where it was. */
	t->gids[from] = (struct nic_gid){0};
	memset(t->last[from], 0, sizeof(t->last[from]));
	return true;
}
