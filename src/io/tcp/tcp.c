/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sockets are looked at through an epoll of this back end's own, whose descriptor is the one that others wait for. All
 * streams share one buffer to read into. If a stream has more to read than a turn takes, the others have theirs first.
 * tcp_tx.c sends, tcp_rx.c receives.
 */
#include "io/tcp/tcp_state.h"

#include <errno.h>
#include <linux/sockios.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "io/fd_away.h"
#include "io/tcp/tcp_address.h"
#include "space/space.h"

enum { BUCKETS_MIN = 64, DEAD_PEER_MS = 30000, KEEPALIVE_S = 10, KEEPALIVE_INTERVAL_S = 5, KEEPALIVE_PROBES = 4 };
enum { LOOPBACK = 1 /* the kernel's LOOPBACK_IFINDEX, in every network namespace */ };

/* ---- streams by number --------------------------------------------------------------------------- */

static struct stream **bucket(const struct tcp *t, uint32_t number)
{
	return &t->buckets[(number * 0x9e3779b1u >> 7) & t->mask];
}

struct stream *tcp_find(const struct tcp *t, uint32_t number)
{
	struct stream *s = *bucket(t, number);

	while (s && s->number != number)
		s = s->next;
	return s;
}

static void enter(struct tcp *t, struct stream *s)
{
	struct stream **b = bucket(t, s->number);

	s->next = *b;
	*b = s;
}

/* Twice as many buckets; without memory each gets longer. */
static void grow(struct tcp *t)
{
	size_t old_count = t->mask + 1;
	struct stream **old = t->buckets, **more = space_get(2 * old_count * sizeof(*more));

	if (!more)
		return;
	t->buckets = more;
	t->mask = 2 * old_count - 1;
	for (size_t i = 0; i < old_count; i++) {
		while (old[i]) {
			struct stream *s = old[i];

			old[i] = s->next;
			enter(t, s);
		}
	}
	space_put(old, old_count * sizeof(*old));
}

struct stream *tcp_stream_new(struct tcp *t, uint32_t number, int fd)
{
	struct stream *s = space_get(sizeof(*s));

	if (!s) {
		if (fd >= 0)
			close(fd);
		return NULL;
	}
	s->number = number;
	s->fd = fd;
	list_init(&s->due);
	if (t->count++ > t->mask)
		grow(t);
	enter(t, s);
	return s;
}

void tcp_stream_free(struct tcp *t, struct stream *s)
{
	struct stream **at = bucket(t, s->number);

	while (*at && *at != s)
		at = &(*at)->next;
	if (*at) {
		*at = s->next;
		t->count--;
	}
	list_remove(&s->due);
	if (s->fd >= 0)
		close(s->fd);
	space_put(s->kept, TCP_KEPT_BYTES);
	space_put(s, sizeof(*s));
}

void tcp_stream_bury(struct tcp *t, struct stream *s)
{
	struct stream **at = bucket(t, s->number);

	while (*at && *at != s)
		at = &(*at)->next;
	if (*at) {
		*at = s->next;
		t->count--;
	}
	if (s->fd >= 0)
		close(s->fd);
	s->fd = -1;
	list_remove(&s->due);
	list_append(&t->dead, &s->due);
}

void tcp_say(struct tcp *t, struct stream *s)
{
	if (list_empty(&s->due))
		list_append(&t->due, &s->due);
}

void tcp_stream_fail(struct tcp *t, struct stream *s, int err)
{
	if (!s->failed)
		s->failed = err ? err : ECONNRESET;
	tcp_say(t, s);
}

void tcp_ask(struct tcp *t, struct stream *s)
{
	uint32_t events = s->connecting
				  ? EPOLLOUT
				  : (s->fin_in || s->deaf ? 0 : EPOLLIN) | (s->kept_at != s->kept_end ? EPOLLOUT : 0);
	struct epoll_event ev = {.events = events, .data.ptr = s};

	if (events == s->events)
		return;
	s->events = events;
	epoll_ctl(t->epoll_fd, EPOLL_CTL_MOD, s->fd, &ev);
}

int tcp_watch(struct tcp *t, struct stream *s, uint32_t events)
{
	struct epoll_event ev = {.events = events, .data.ptr = s};

	s->events = events;
	return epoll_ctl(t->epoll_fd, EPOLL_CTL_ADD, s->fd, &ev) < 0 ? -errno : 0;
}

/* ---- sockets ------------------------------------------------------------------------------------- */

static void set(int fd, int level, int option, int value)
{
	(void)!setsockopt(fd, level, option, &value, sizeof(value));
}

/* What leaves is whole messages, so nothing is gained by waiting; a peer that is dead is noticed. */
void tcp_set_options(int fd)
{
	set(fd, IPPROTO_TCP, TCP_NODELAY, 1);
	set(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, DEAD_PEER_MS);
	set(fd, IPPROTO_TCP, TCP_KEEPIDLE, KEEPALIVE_S);
	set(fd, IPPROTO_TCP, TCP_KEEPINTVL, KEEPALIVE_INTERVAL_S);
	set(fd, IPPROTO_TCP, TCP_KEEPCNT, KEEPALIVE_PROBES);
	set(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
}

/* ---- interfaces ---------------------------------------------------------------------------------- */

void tcp_set_gids(struct io *io, const struct io_gid *gids, size_t count)
{
	struct tcp *t = (struct tcp *)io;

	t->gid_count = count < IO_GIDS_MAX ? count : IO_GIDS_MAX;
	memcpy(t->gids, gids, t->gid_count * sizeof(*gids));
}

/* 0: the routing table chooses, as it may where the interface is loopback. */
static uint32_t interface_of(const struct tcp *t, const uint8_t src[16])
{
	for (size_t i = 0; i < t->gid_count; i++) {
		if (!memcmp(t->gids[i].gid, src, sizeof(t->gids[i].gid)))
			return t->gids[i].ifindex == LOOPBACK ? 0 : t->gids[i].ifindex;
	}
	return 0;
}

static bool bind_interface(int fd, uint32_t ifindex)
{
	return !setsockopt(fd, SOL_SOCKET, SO_BINDTOIFINDEX, &(int){(int)ifindex}, sizeof(int));
}

/* Between addresses of this host everything passes loopback, and a socket that is bound elsewhere hears nothing of it. */
static bool is_here(const struct flow *flow)
{
	union tcp_address a;
	socklen_t len = tcp_address_write(&a, flow->dst, 0, flow->ifindex);
	int fd = socket(a.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	bool here = fd >= 0 && !bind(fd, &a.any, len);

	if (fd >= 0)
		close(fd);
	return here;
}

/* ---- listeners ----------------------------------------------------------------------------------- */

/* A bound socket, by that interface if ifindex is not 0, or a negative errno. */
static int bound_socket(const struct flow *at, bool alone, uint32_t ifindex)
{
	static const uint8_t any[16];
	union tcp_address a;
	socklen_t len = tcp_address_write(&a, at->src, at->sport, at->ifindex);
	int fd = fd_away(socket(a.any.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)), err;

	if (fd < 0)
		return -errno;
	if (a.any.sa_family == AF_INET6)
		set(fd, IPPROTO_IPV6, IPV6_V6ONLY, memcmp(at->src, any, sizeof(any)) != 0);
	set(fd, SOL_SOCKET, SO_REUSEADDR, !alone);
	set(fd, SOL_SOCKET, SO_REUSEPORT, ifindex != 0);
	if ((!ifindex || bind_interface(fd, ifindex)) && !bind(fd, &a.any, len)) {
		/* Connections that it accepts have it, too, and are then in nobody's way when they are over. */
		set(fd, SOL_SOCKET, SO_REUSEADDR, 1);
		return fd;
	}
	err = -errno;
	close(fd);
	return err;
}

static int listener_add(struct tcp *t, uint32_t number, int fd)
{
	struct stream *s = tcp_stream_new(t, number, fd);

	if (!s)
		return -ENOMEM;
	s->listener = true;
	return 0;
}

/*
 * One more at the same port, which the kernel prefers for what arrives by that interface: its connections are bound to it
 * from their first packet on. Two may share a port if both say so (SO_REUSEPORT), until they listen. The first one has not
 * said so when it took the port, so nobody else can be there.
 */
static int bind_by_interface(struct tcp *t, uint32_t number, const struct flow *at, int first, uint32_t ifindex)
{
	int fd;

	set(first, SOL_SOCKET, SO_REUSEPORT, 1);
	fd = bound_socket(at, false, ifindex);
	return fd < 0 ? 0 : listener_add(t, number, fd);
}

int tcp_bind(struct io *io, uint32_t number, const struct flow *at, bool alone)
{
	struct tcp *t = (struct tcp *)io;
	uint32_t ifindex = interface_of(t, at->src);
	int fd = bound_socket(at, alone, 0), err = fd < 0 ? fd : listener_add(t, number, fd);

	return err || !ifindex ? err : bind_by_interface(t, number, at, fd, ifindex);
}

int tcp_listen(struct io *io, uint32_t number, int backlog)
{
	struct tcp *t = (struct tcp *)io;
	int err = -ENOENT;

	for (struct stream *s = tcp_find(t, number); s; s = s->next) {
		if (s->number != number || !s->listener)
			continue;
		err = listen(s->fd, backlog) < 0 ? -errno : tcp_watch(t, s, EPOLLIN);
		if (err)
			break;
	}
	for (struct stream *s = tcp_find(t, number); s && !err; s = s->next) {
		if (s->number == number && s->listener)
			set(s->fd, SOL_SOCKET, SO_REUSEPORT, 0);
	}
	if (err)
		tcp_unlisten(io, number);
	return err;
}

void tcp_unlisten(struct io *io, uint32_t number)
{
	struct tcp *t = (struct tcp *)io;
	struct stream *s;

	while ((s = tcp_find(t, number)) && s->listener)
		tcp_stream_free(t, s);
}

void tcp_set_placer(struct io *io, struct tcp_placer placer)
{
	((struct tcp *)io)->placer = placer;
}

size_t tcp_streams(const struct io *io)
{
	return ((const struct tcp *)io)->count;
}

/* Not acknowledged by the peer's TCP, a FIN included. */
static size_t unacknowledged(const struct stream *s)
{
	int queued = 0;

	if (s->listener || s->connecting || s->failed || ioctl(s->fd, SIOCOUTQ, &queued) < 0)
		return 0;
	return s->kept_end - s->kept_at + (size_t)queued;
}

struct tcp_leaving tcp_leaving(const struct io *io)
{
	const struct tcp *t = (const struct tcp *)io;
	struct tcp_leaving l = {0};

	for (size_t i = 0; i <= t->mask; i++) {
		for (const struct stream *s = t->buckets[i]; s; s = s->next) {
			l.bytes += unacknowledged(s);
			l.half_closed += s->fin_out && !s->fin_in && !s->failed;
		}
	}
	return l;
}

/* The port is a wish: another connection may have it. */
static int bind_source(int fd, const struct flow *flow)
{
	union tcp_address a;
	socklen_t len = tcp_address_write(&a, flow->src, flow->sport, flow->ifindex);

	if (!bind(fd, &a.any, len))
		return 0;
	if (errno != EADDRINUSE && errno != EACCES)
		return -errno;
	len = tcp_address_write(&a, flow->src, 0, flow->ifindex);
	return bind(fd, &a.any, len) < 0 ? -errno : 0;
}

static int start_connect(int fd, const struct flow *flow)
{
	union tcp_address a;
	socklen_t len = tcp_address_write(&a, flow->dst, flow->dport, flow->ifindex);
	int err = bind_source(fd, flow);

	if (err)
		return err;
	return connect(fd, &a.any, len) < 0 && errno != EINPROGRESS ? -errno : 0;
}

void tcp_stream_open(struct tcp *t, const struct flow *flow)
{
	int fd = fd_away(socket(tcp_address_is_ipv4(flow->dst) ? AF_INET : AF_INET6,
				SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)),
	    err;
	struct stream *s = tcp_stream_new(t, flow->flow_label, fd);
	uint32_t ifindex;

	if (!s)
		return; /* whoever waits for it gives up in time */
	s->flow = *flow;
	s->connecting = true;
	err = fd < 0 ? -EMFILE : 0;
	if (!err) {
		tcp_set_options(fd);
		ifindex = interface_of(t, flow->src);
		if (ifindex && !is_here(flow))
			bind_interface(fd, ifindex);
		err = start_connect(fd, flow);
	}
	if (!err)
		err = tcp_watch(t, s, EPOLLOUT);
	if (err)
		tcp_stream_fail(t, s, -err);
}

/* ---- the io contract ----------------------------------------------------------------------------- */

static size_t tcp_fds(const struct io *io, int *fds, size_t max)
{
	if (!max)
		return 0;
	fds[0] = ((const struct tcp *)io)->epoll_fd;
	return 1;
}

static uint64_t tcp_deadline_ns(const struct io *io)
{
	const struct tcp *t = (const struct tcp *)io;

	return list_empty(&t->due) ? t->again_ns : 0;
}

static size_t tcp_train_max(const struct io *io)
{
	return PKT_TRAIN_MAX;
}

static void tcp_flush(struct io *io)
{
}

static void tcp_close(struct io *io)
{
	struct tcp *t = (struct tcp *)io;

	for (size_t i = 0; i <= t->mask; i++) {
		while (t->buckets[i])
			tcp_stream_free(t, t->buckets[i]);
	}
	while (!list_empty(&t->dead))
		tcp_stream_free(t, container_of(t->dead.next, struct stream, due));
	space_put(t->buckets, (t->mask + 1) * sizeof(*t->buckets));
	space_put(t->spare, TCP_KEPT_BYTES);
	close(t->epoll_fd);
	space_put(t, sizeof(*t));
}

static const struct io_ops tcp_ops = {
	.recv = tcp_recv,
	.send = tcp_send,
	.fds = tcp_fds,
	.deadline_ns = tcp_deadline_ns,
	.train_max = tcp_train_max,
	.flush = tcp_flush,
	.close = tcp_close,
};

int tcp_open(struct io **out, struct io_counters *counters, char *why, size_t why_bytes)
{
	struct tcp *t = space_get(sizeof(*t));

	if (!t)
		goto fail;
	t->io.ops = &tcp_ops;
	t->counters = counters;
	t->again_ns = UINT64_MAX;
	list_init(&t->due);
	list_init(&t->dead);
	t->mask = BUCKETS_MIN - 1;
	t->buckets = space_get(BUCKETS_MIN * sizeof(*t->buckets));
	t->epoll_fd = fd_away(epoll_create1(EPOLL_CLOEXEC));
	if (!t->buckets || t->epoll_fd < 0)
		goto free_t;
	*out = &t->io;
	return 0;

free_t:
	if (t->epoll_fd >= 0)
		close(t->epoll_fd);
	space_put(t->buckets, BUCKETS_MIN * sizeof(*t->buckets));
	space_put(t, sizeof(*t));
fail:
	snprintf(why, why_bytes, "cannot prepare TCP connections: %s", strerror(errno));
	return -errno;
}
