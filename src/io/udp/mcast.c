/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Owns the sockets of groups and the epoll descriptor that stands for all of them. While there is no group it makes no
 * system call; else one a turn for all groups, and more only if packets have arrived.
 */
#include "io/udp/mcast.h"

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "io/fd_away.h"
#include "io/udp/udp_rx.h"
#include "io/udp/udp_socket.h"
#include "io/uncancelled.h"
#include "space/space.h"

enum {
	QPN_AT = 5, /* in a BTH */
	BTH_BYTES = 12,
	READY_MAX = 16,     /* joined sockets served in one call */
	IDLE_TURNS_MAX = 8, /* calls between two looks while no group has packets */
	PAUSE_NS = 20000    /* after a pause of this length a look is taken at once */
};

struct joined {
	int fd; /* -1: none */
	uint32_t ifindex;
	bool ready; /* it may have packets */
	bool away;  /* mcast_leave() */
	uint8_t gid[16];
	struct udp_rx rx;
};

struct mcast {
	struct io io;
	struct io *lower;
	struct io_counters *counters;
	int epoll_fd;
	uint16_t port;
	uint32_t count;
	bool unread;   /* some are ready still */
	uint32_t idle; /* calls since the last look */
	uint64_t looked_ns;
	struct joined groups[MCAST_JOINS_MAX];
};

static const struct io_ops mcast_ops;

static bool is_ipv4(const uint8_t gid[16])
{
	return gid[0] != 0xff;
}

int mcast_open(struct io **io, struct io *lower, uint16_t port, struct io_counters *counters)
{
	struct mcast *m = space_get(sizeof(*m));

	if (!m)
		return -ENOMEM;
	m->io.ops = &mcast_ops;
	m->lower = lower;
	m->counters = counters;
	m->port = port;
	m->epoll_fd = fd_away(epoll_create1(EPOLL_CLOEXEC));
	if (m->epoll_fd < 0) {
		int err = -errno;

		space_put(m, sizeof(*m));
		return err;
	}
	for (size_t i = 0; i < MCAST_JOINS_MAX; i++)
		m->groups[i].fd = -1;
	*io = &m->io;
	return 0;
}

/* ---- groups ---- */

static void leave(struct mcast *m, struct joined *g)
{
	udp_rx_close(&g->rx);
	close(g->fd);
	g->fd = -1;
	m->count--;
}

/* Interface-local and link-local groups (RFC 4291 2.7) have an interface in their address. */
static bool has_scope(const uint8_t gid[16])
{
	return gid[0] == 0xff && (gid[1] & 15) <= 2;
}

static bool bind_to(int fd, const uint8_t gid[16], uint32_t ifindex, uint16_t port)
{
	union udp_address a;
	int one = 1;

	/* Other processes of the host have sockets of the same address. */
	if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) < 0 ||
	    setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &one, sizeof(one)) < 0)
		return false;
	memset(&a, 0, sizeof(a));
	if (is_ipv4(gid)) {
		a.v4.sin_family = AF_INET;
		a.v4.sin_port = htons(port);
		memcpy(&a.v4.sin_addr, gid + 12, 4);
		return bind(fd, (struct sockaddr *)&a, sizeof(a.v4)) == 0;
	}
	a.v6.sin6_family = AF_INET6;
	a.v6.sin6_port = htons(port);
	a.v6.sin6_scope_id = has_scope(gid) ? ifindex : 0;
	memcpy(&a.v6.sin6_addr, gid, 16);
	return bind(fd, (struct sockaddr *)&a, sizeof(a.v6)) == 0;
}

static bool join_on(int fd, const uint8_t gid[16], uint32_t ifindex)
{
	if (is_ipv4(gid)) {
		struct ip_mreqn r = {.imr_ifindex = (int)ifindex};

		memcpy(&r.imr_multiaddr, gid + 12, 4);
		return setsockopt(fd, IPPROTO_IP, IP_ADD_MEMBERSHIP, &r, sizeof(r)) == 0;
	}
	struct ipv6_mreq r = {.ipv6mr_interface = ifindex};

	memcpy(&r.ipv6mr_multiaddr, gid, 16);
	return setsockopt(fd, IPPROTO_IPV6, IPV6_JOIN_GROUP, &r, sizeof(r)) == 0;
}

/* A bound socket that has joined, or a negative errno. */
static int open_joined(const struct mcast *m, const uint8_t gid[16], uint32_t ifindex)
{
	int fd = udp_rx_socket(is_ipv4(gid) ? UDP_V4 : UDP_V6), err;

	if (fd < 0)
		return fd;
	if (bind_to(fd, gid, ifindex, m->port) && join_on(fd, gid, ifindex))
		return fd;
	err = -errno;
	close(fd);
	return err == -ENOBUFS ? -ENOMEM : err; /* net.ipv4.igmp_max_memberships */
}

/* The place of the group on the interface, or a free one, or NULL. */
static struct joined *place_of(struct mcast *m, const uint8_t gid[16], uint32_t ifindex)
{
	struct joined *room = NULL;

	for (size_t i = 0; i < MCAST_JOINS_MAX; i++) {
		struct joined *g = &m->groups[i];

		if (g->fd >= 0 && g->ifindex == ifindex && !memcmp(g->gid, gid, sizeof(g->gid)))
			return g;
		if (g->fd < 0 && !room)
			room = g;
	}
	return room;
}

static int join_one(struct mcast *m, const uint8_t gid[16], uint32_t ifindex)
{
	struct joined *g = place_of(m, gid, ifindex);
	struct udp_config cfg = {.rx_count = 1, .counters = m->counters};
	struct epoll_event e = {.events = EPOLLIN, .data.ptr = g};
	int fd, err;

	if (!g)
		return -ENOMEM;
	if (g->fd >= 0)
		return 0;
	fd = open_joined(m, gid, ifindex);
	if (fd < 0)
		return fd;
	cfg.rx_fds[0] = fd;
	memset(&g->rx, 0, sizeof(g->rx));
	err = udp_rx_open(&g->rx, &cfg);
	if (!err && epoll_ctl(m->epoll_fd, EPOLL_CTL_ADD, fd, &e)) {
		err = -errno;
		udp_rx_close(&g->rx);
	}
	if (err) {
		close(fd);
		return err;
	}
	g->fd = fd;
	g->ifindex = ifindex;
	g->ready = false;
	memcpy(g->gid, gid, sizeof(g->gid));
	m->count++;
	return 0;
}

int mcast_join(struct io *io, const uint8_t gid[16], const uint32_t *ifindex, size_t count)
{
	int err = -ENODEV;

	for (size_t i = 0; i < count; i++) {
		int its = join_one((struct mcast *)io, gid, ifindex[i]);

		if (err)
			err = its;
	}
	return err;
}

/* The places stay, with their groups and interfaces, which place_of() does not look at. */
void mcast_leave(struct io *io)
{
	struct mcast *m = (struct mcast *)io;

	for (size_t i = 0; i < MCAST_JOINS_MAX; i++) {
		m->groups[i].away = m->groups[i].fd >= 0;
		if (m->groups[i].away)
			leave(m, &m->groups[i]);
	}
}

/* One that cannot be joined is left. */
void mcast_return(struct io *io, uint32_t (*there)(const void *, uint32_t), const void *ctx)
{
	struct mcast *m = (struct mcast *)io;

	for (size_t i = 0; i < MCAST_JOINS_MAX; i++) {
		struct joined *g = &m->groups[i];
		uint32_t ifindex = g->away ? there(ctx, g->ifindex) : 0;
		uint8_t gid[16];

		g->away = false;
		memcpy(gid, g->gid, sizeof(gid));
		if (ifindex)
			join_one(m, gid, ifindex);
	}
}

void mcast_keep(struct io *io, bool (*keep)(const void *, const uint8_t[16], uint32_t), const void *ctx)
{
	struct mcast *m = (struct mcast *)io;

	for (size_t i = 0; i < MCAST_JOINS_MAX; i++) {
		if (m->groups[i].fd >= 0 && !keep(ctx, m->groups[i].gid, m->groups[i].ifindex))
			leave(m, &m->groups[i]);
	}
}

/* ---- the io contract ---- */

/*
 * An IPv6 socket gets what arrives on any interface where somebody has joined the group (Linux's inet6_mc_check()), an
 * IPv4 one what arrives on its own alone.
 */
static bool is_for_group(const struct joined *g, const struct pkt *p)
{
	return p->len >= BTH_BYTES && p->data[QPN_AT] == 0xff && p->data[QPN_AT + 1] == 0xff &&
	       p->data[QPN_AT + 2] == 0xff && (is_ipv4(g->gid) || p->flow->ifindex == g->ifindex);
}

/* Whether to ask the kernel now, as in udp_rx.c: an idle group costs a poller little. */
static bool looks(struct mcast *m, uint64_t now_ns)
{
	struct epoll_event e[READY_MAX];
	bool paused = now_ns - m->looked_ns > PAUSE_NS;
	int n, state;

	if (++m->idle < IDLE_TURNS_MAX && !paused)
		return false;
	m->looked_ns = now_ns;
	m->counters->rx_syscalls++;
	state = cancel_off();
	n = epoll_wait(m->epoll_fd, e, READY_MAX, 0);
	cancel_restore(state);
	for (int i = 0; i < n; i++)
		((struct joined *)e[i].data.ptr)->ready = true;
	m->idle = n > 0 ? IDLE_TURNS_MAX : 0; /* and again in the next call */
	return n > 0;
}

static size_t recv_groups(struct mcast *m, struct pkt *pkts, size_t max, uint64_t now_ns)
{
	size_t n = 0;

	m->unread = false;
	for (size_t i = 0; i < MCAST_JOINS_MAX && n < max; i++) {
		struct joined *g = &m->groups[i];
		size_t from = n, got;

		if (g->fd < 0 || !g->ready)
			continue;
		got = udp_rx_recv(&g->rx, pkts + n, max - n, now_ns);
		g->ready = got > 0;
		m->unread |= g->ready;
		for (size_t k = from; k < from + got; k++) {
			if (is_for_group(g, &pkts[k]))
				pkts[n++] = pkts[k];
			else
				m->counters->rx_drops++;
		}
	}
	return n;
}

static size_t mcast_recv(struct io *io, struct pkt *pkts, size_t max, uint64_t now_ns)
{
	struct mcast *m = (struct mcast *)io;
	size_t n = io_recv(m->lower, pkts, max, now_ns);

	if (!m->count || n == max || (!looks(m, now_ns) && !m->unread))
		return n;
	return n + recv_groups(m, pkts + n, max - n, now_ns);
}

static size_t mcast_send(struct io *io, const struct pkt *pkts, size_t n, uint64_t now_ns)
{
	return io_send(((struct mcast *)io)->lower, pkts, n, now_ns);
}

static size_t mcast_fds(const struct io *io, int *fds, size_t max)
{
	const struct mcast *m = (const struct mcast *)io;
	size_t n = io_fds(m->lower, fds, max);

	if (n < max)
		fds[n++] = m->epoll_fd;
	return n;
}

static uint64_t mcast_deadline_ns(const struct io *io)
{
	return io_deadline_ns(((const struct mcast *)io)->lower);
}

static size_t mcast_train_max(const struct io *io)
{
	return io_train_max(((const struct mcast *)io)->lower);
}

static void mcast_flush(struct io *io)
{
	io_flush(((struct mcast *)io)->lower);
}

static void mcast_close(struct io *io)
{
	struct mcast *m = (struct mcast *)io;

	for (size_t i = 0; i < MCAST_JOINS_MAX; i++) {
		if (m->groups[i].fd >= 0)
			leave(m, &m->groups[i]);
	}
	close(m->epoll_fd);
	io_close(m->lower);
	space_put(m, sizeof(*m));
}

static const struct io_ops mcast_ops = {
	.recv = mcast_recv,
	.send = mcast_send,
	.fds = mcast_fds,
	.deadline_ns = mcast_deadline_ns,
	.train_max = mcast_train_max,
	.flush = mcast_flush,
	.close = mcast_close,
};
