/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sockets are looked at through an epoll of this back end's own, whose descriptor is the one that others wait for. All
 * streams share one buffer to read into; a stream that has more to say is looked at again after the others.
 *
 *   stream          epoll asks for
 *   connecting      OUT
 *   listening       IN, but not while it is deaf
 *   open            IN, and OUT while `kept` has bytes
 *   FIN came        OUT while `kept` has bytes
 *
 * `due` holds streams that something must be said of (room, or that they failed) at the next receive.
 */
#include "io/tcp.h"

#include <errno.h>
#include <linux/sockios.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/list.h"
#include "io/fd_away.h"
#include "io/tcp_address.h"

enum {
	BUCKETS_MIN = 64,
	EVENTS = 32,
	ACCEPTS = 8, /* of a listener, a receive */
	DEAD_PEER_MS = 30000,
	KEEPALIVE_S = 10,
	KEEPALIVE_INTERVAL_S = 5,
	KEEPALIVE_PROBES = 4,
	BEHIND_PLACED_BYTES = 64 << 10, /* by measurement: shorter reads cost more than their copies */
	SEGMENT_BYTES = 1448 /* if the kernel does not say */
};

/* A listener that found no descriptor for its client is looked at again after so long, and the engine sleeps until then. */
#define ACCEPT_AGAIN_NS UINT64_C(50000000)

struct stream {
	struct stream *next; /* in its bucket */
	struct list due;
	uint32_t number;
	int fd;
	bool listener, connecting;
	bool deaf;           /* a listener, until tcp.again_ns */
	bool fin_in, fin_out, fin_due; /* fin_due: behind `kept` */
	int failed;          /* errno; 0: it did not */
	int lost;            /* likewise, but what came before is still to be read */
	uint32_t owed;       /* room to grant again */
	uint32_t events;     /* that epoll asks for */
	uint8_t *kept;       /* what the socket did not take: bytes [kept_at, kept_end) of TCP_ROOM_BYTES */
	size_t kept_at, kept_end;
	struct flow flow;
};

struct tcp {
	struct io io;
	struct io_counters *counters;
	struct tcp_placer placer; /* .place NULL: there is none */
	int epoll_fd;
	uint32_t serial; /* of accepted streams */
	uint64_t again_ns; /* when deaf listeners hear again; UINT64_MAX: none is deaf */
	struct stream **buckets;
	size_t mask, count;
	struct list due;
	struct list dead; /* said to be gone; freed at the next receive, as flows were lent */
	uint8_t read[TCP_READ_BYTES];
};

static void flow_read(struct stream *s)
{
	union tcp_address a = {0};
	socklen_t len = sizeof(a);

	if (!getsockname(s->fd, &a.any, &len))
		tcp_address_read(&a, s->flow.src, &s->flow.sport);
	if (a.any.sa_family == AF_INET6)
		s->flow.ifindex = a.v6.sin6_scope_id;
	len = sizeof(a);
	if (!getpeername(s->fd, &a.any, &len))
		tcp_address_read(&a, s->flow.dst, &s->flow.dport);
	s->flow.flow_label = s->number;
}

/* ---- streams by number --------------------------------------------------------------------------- */

static struct stream **bucket(const struct tcp *t, uint32_t number)
{
	return &t->buckets[(number * 0x9e3779b1u >> 7) & t->mask];
}

static struct stream *find(const struct tcp *t, uint32_t number)
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
	struct stream **old = t->buckets, **more = calloc(2 * old_count, sizeof(*more));

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
	free(old);
}

/* Takes fd, which is closed where memory runs out. */
static struct stream *stream_new(struct tcp *t, uint32_t number, int fd)
{
	struct stream *s = calloc(1, sizeof(*s));

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

static void stream_free(struct tcp *t, struct stream *s)
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
	free(s->kept);
	free(s);
}

/* Its flow may be lent until the next receive. Nobody finds it any more. */
static void stream_bury(struct tcp *t, struct stream *s)
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

static void say(struct tcp *t, struct stream *s)
{
	if (list_empty(&s->due))
		list_append(&t->due, &s->due);
}

static void stream_fail(struct tcp *t, struct stream *s, int err)
{
	if (!s->failed)
		s->failed = err ? err : ECONNRESET;
	say(t, s);
}

static void ask(struct tcp *t, struct stream *s)
{
	uint32_t events = s->connecting ? EPOLLOUT
					: (s->fin_in || s->deaf ? 0 : EPOLLIN) | (s->kept_at != s->kept_end ? EPOLLOUT : 0);
	struct epoll_event ev = {.events = events, .data.ptr = s};

	if (events == s->events)
		return;
	s->events = events;
	epoll_ctl(t->epoll_fd, EPOLL_CTL_MOD, s->fd, &ev);
}

static int watch(struct tcp *t, struct stream *s, uint32_t events)
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
static void set_options(int fd)
{
	set(fd, IPPROTO_TCP, TCP_NODELAY, 1);
	set(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, DEAD_PEER_MS);
	set(fd, IPPROTO_TCP, TCP_KEEPIDLE, KEEPALIVE_S);
	set(fd, IPPROTO_TCP, TCP_KEEPINTVL, KEEPALIVE_INTERVAL_S);
	set(fd, IPPROTO_TCP, TCP_KEEPCNT, KEEPALIVE_PROBES);
	set(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
}

static uint16_t segment_bytes(int fd)
{
	struct tcp_info info = {0};
	socklen_t len = sizeof(info);

	if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len) || !info.tcpi_snd_mss)
		return SEGMENT_BYTES;
	return info.tcpi_snd_mss < UINT16_MAX ? (uint16_t)info.tcpi_snd_mss : UINT16_MAX;
}

int tcp_listen(struct io *io, uint32_t number, const struct flow *at, int backlog)
{
	static const uint8_t any[16];
	struct tcp *t = (struct tcp *)io;
	union tcp_address a;
	socklen_t len = tcp_address_write(&a, at->src, at->sport, at->ifindex);
	int fd = fd_away(socket(a.any.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)), err;
	struct stream *s;

	if (fd < 0)
		return -errno;
	set(fd, SOL_SOCKET, SO_REUSEADDR, 1);
	if (a.any.sa_family == AF_INET6)
		set(fd, IPPROTO_IPV6, IPV6_V6ONLY, memcmp(at->src, any, sizeof(any)) != 0);
	if (bind(fd, &a.any, len) < 0 || listen(fd, backlog) < 0) {
		err = -errno;
		close(fd);
		return err;
	}
	s = stream_new(t, number, fd);
	if (!s)
		return -ENOMEM;
	s->listener = true;
	err = watch(t, s, EPOLLIN);
	if (err)
		stream_free(t, s);
	return err;
}

void tcp_unlisten(struct io *io, uint32_t number)
{
	struct tcp *t = (struct tcp *)io;
	struct stream *s;

	while ((s = find(t, number)) && s->listener)
		stream_free(t, s);
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

static void stream_open(struct tcp *t, const struct flow *flow)
{
	int fd = fd_away(socket(tcp_address_is_ipv4(flow->dst) ? AF_INET : AF_INET6, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)), err;
	struct stream *s = stream_new(t, flow->flow_label, fd);

	if (!s)
		return; /* whoever waits for it gives up in time */
	s->flow = *flow;
	s->connecting = true;
	err = fd < 0 ? -EMFILE : 0;
	if (!err) {
		set_options(fd);
		err = start_connect(fd, flow);
	}
	if (!err)
		err = watch(t, s, EPOLLOUT);
	if (err)
		stream_fail(t, s, -err);
}

/* ---- out ----------------------------------------------------------------------------------------- */

/* The peer is gone. What it said before may wait in the socket, which says behind that, too, that it is over. */
static void lose(struct tcp *t, struct stream *s, int err)
{
	s->lost = err;
	s->kept_at = s->kept_end = 0;
	ask(t, s);
}

/* What the socket takes of these bytes; 0 where it has no room or failed. */
static size_t give(struct tcp *t, struct stream *s, const uint8_t *data, size_t len)
{
	ssize_t n = send(s->fd, data, len, MSG_DONTWAIT | MSG_NOSIGNAL);

	t->counters->tx_syscalls++;
	if (n >= 0) {
		t->counters->tx_bytes += (uint64_t)n;
		s->owed += (uint32_t)n;
		say(t, s);
		return (size_t)n;
	}
	if ((errno == ECONNRESET || errno == EPIPE) && !s->fin_in)
		lose(t, s, errno);
	else if (errno != EAGAIN && errno != EINTR && errno != ENOBUFS)
		stream_fail(t, s, errno);
	else
		t->counters->tx_again++;
	return 0;
}

static void end_output(struct stream *s)
{
	shutdown(s->fd, SHUT_WR);
	s->fin_out = true;
}

/* The promise to take what was granted: nobody sends more, but for a last short message. */
static void keep(struct tcp *t, struct stream *s, const uint8_t *data, size_t len)
{
	enum { LAST_BYTES = 256 };

	if (!s->kept)
		s->kept = malloc(TCP_ROOM_BYTES + LAST_BYTES);
	if (s->kept_at && s->kept_end + len > TCP_ROOM_BYTES) {
		memmove(s->kept, s->kept + s->kept_at, s->kept_end - s->kept_at);
		s->kept_end -= s->kept_at;
		s->kept_at = 0;
	}
	if (!s->kept || s->kept_end + len > TCP_ROOM_BYTES + LAST_BYTES) {
		stream_fail(t, s, ENOBUFS);
		return;
	}
	memcpy(s->kept + s->kept_end, data, len);
	s->kept_end += len;
	ask(t, s);
}

static void stream_send(struct tcp *t, struct stream *s, const uint8_t *data, size_t len)
{
	size_t n = 0;

	t->counters->tx_packets++;
	if (s->failed || s->lost || s->connecting || s->fin_out || s->fin_due)
		return;
	if (s->kept_at == s->kept_end)
		n = give(t, s, data, len);
	if (n < len && !s->failed && !s->lost)
		keep(t, s, data + n, len - n);
}

/* The socket has room again. */
static void flush(struct tcp *t, struct stream *s)
{
	s->kept_at += give(t, s, s->kept + s->kept_at, s->kept_end - s->kept_at);
	if (s->kept_at != s->kept_end || s->lost)
		return;
	free(s->kept);
	s->kept = NULL;
	s->kept_at = s->kept_end = 0;
	if (s->fin_due)
		end_output(s);
	s->fin_due = false;
	ask(t, s);
}

static bool is_over(const struct stream *s)
{
	return s->fin_in && s->fin_out;
}

static void stream_finish(struct tcp *t, struct stream *s)
{
	if (s->connecting || s->lost || s->fin_out)
		return;
	if (s->kept_at != s->kept_end)
		s->fin_due = true;
	else
		end_output(s);
	if (is_over(s))
		stream_bury(t, s);
}

/* A stream that has ended in our direction is left to the kernel, which may still have bytes of it. */
static void stream_reset(struct tcp *t, struct stream *s)
{
	struct linger hard = {.l_onoff = 1};

	if (s->fd >= 0 && !s->fin_out)
		(void)!setsockopt(s->fd, SOL_SOCKET, SO_LINGER, &hard, sizeof(hard));
	stream_bury(t, s);
}

static size_t tcp_send(struct io *io, const struct pkt *pkts, size_t n, uint64_t now_ns)
{
	struct tcp *t = (struct tcp *)io;

	for (size_t i = 0; i < n; i++) {
		const struct pkt *p = &pkts[i];
		struct stream *s = p->kind == PKT_OPEN ? NULL : find(t, p->flow->flow_label);

		if (p->kind == PKT_OPEN)
			stream_open(t, p->flow);
		else if (!s)
			continue;
		else if (s->listener)
			tcp_unlisten(io, s->number);
		else if (p->kind == PKT_BYTES)
			stream_send(t, s, p->data, p->len);
		else if (p->kind == PKT_FIN)
			stream_finish(t, s);
		else if (p->kind == PKT_RESET)
			stream_reset(t, s);
	}
	return n;
}

/* ---- in ------------------------------------------------------------------------------------------ */

/* A receive in progress: what the caller has room for, and what is left to read into. */
struct harvest {
	struct tcp *t;
	struct pkt *pkts;
	size_t count, max;
	size_t used; /* of t->read */
	uint64_t now_ns;
};

static struct pkt *tell(struct harvest *h, struct stream *s, enum pkt_kind kind, uint32_t len)
{
	struct pkt *p = &h->pkts[h->count++];

	*p = (struct pkt){.flow = &s->flow, .kind = kind, .len = len};
	return p;
}

static bool is_full(const struct harvest *h)
{
	return h->count == h->max;
}

static void tell_due(struct harvest *h)
{
	while (!list_empty(&h->t->due) && !is_full(h)) {
		struct stream *s = container_of(h->t->due.next, struct stream, due);

		list_remove(&s->due);
		if (s->failed) {
			tell(h, s, PKT_RESET, (uint32_t)s->failed);
			stream_bury(h->t, s);
		} else if (s->owed) {
			tell(h, s, PKT_ROOM, s->owed);
			s->owed = 0;
		}
	}
}

static void tell_open(struct harvest *h, struct stream *s)
{
	flow_read(s);
	tell(h, s, PKT_OPEN, TCP_ROOM_BYTES)->segment_bytes = segment_bytes(s->fd);
}

/* There is no descriptor, or no memory, for a client, who waits in the kernel: epoll would say so without an end. */
static void hear_later(struct harvest *h, struct stream *listener)
{
	listener->deaf = true;
	ask(h->t, listener);
	if (h->t->again_ns == UINT64_MAX)
		h->t->again_ns = h->now_ns + ACCEPT_AGAIN_NS;
}

static void hear_again(struct tcp *t)
{
	t->again_ns = UINT64_MAX;
	for (size_t i = 0; i <= t->mask; i++) {
		for (struct stream *s = t->buckets[i]; s; s = s->next) {
			if (!s->deaf)
				continue;
			s->deaf = false;
			ask(t, s);
		}
	}
}

static void accept_some(struct harvest *h, struct stream *listener)
{
	struct tcp *t = h->t;

	for (int i = 0; i < ACCEPTS && !is_full(h); i++) {
		int fd = fd_away(accept4(listener->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC));
		struct stream *s;

		if (fd < 0) {
			if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)
				hear_later(h, listener);
			return;
		}
		while (find(t, TCP_ACCEPTED | ++t->serial))
			;
		s = stream_new(t, TCP_ACCEPTED | t->serial, fd);
		if (!s)
			return;
		set_options(fd);
		if (watch(t, s, EPOLLIN))
			stream_free(t, s);
		else
			tell_open(h, s);
	}
}

static void connected(struct harvest *h, struct stream *s)
{
	int err = 0;
	socklen_t len = sizeof(err);

	getsockopt(s->fd, SOL_SOCKET, SO_ERROR, &err, &len);
	if (err) {
		stream_fail(h->t, s, err);
		return;
	}
	s->connecting = false;
	ask(h->t, s);
	tell_open(h, s);
}

/* Where the next bytes of a stream belong, as far as somebody knows; the rest goes where all would. */
static ssize_t read_placed(struct tcp *t, struct stream *s, uint8_t *rest, size_t room, size_t *placed)
{
	struct iovec v[2] = {{.iov_len = 0}, {.iov_base = rest, .iov_len = room}};
	struct msghdr m = {.msg_iov = v, .msg_iovlen = 2};
	uint8_t *to = NULL;
	ssize_t n;

	*placed = 0;
	if (t->placer.place)
		v[0].iov_len = t->placer.place(t->placer.ctx, s->number, &to);
	if (v[0].iov_len) {
		v[0].iov_base = to;
		/* A part of what follows has a place, too, which is asked for when it is known. */
		if (v[1].iov_len > BEHIND_PLACED_BYTES)
			v[1].iov_len = BEHIND_PLACED_BYTES;
		n = recvmsg(s->fd, &m, MSG_DONTWAIT);
		t->counters->rx_syscalls++;
		if (n >= 0 || errno != EFAULT) {
			*placed = n > (ssize_t)v[0].iov_len ? v[0].iov_len : n > 0 ? (size_t)n : 0;
			return n;
		}
	}
	t->counters->rx_syscalls++;
	return recv(s->fd, rest, room, MSG_DONTWAIT);
}

static void read_some(struct harvest *h, struct stream *s)
{
	struct tcp *t = h->t;
	size_t room = sizeof(t->read) - h->used, placed;
	ssize_t n;

	if (!room)
		return;
	n = read_placed(t, s, t->read + h->used, room, &placed);
	if (n > 0) {
		struct pkt *p = tell(h, s, PKT_BYTES, (uint32_t)((size_t)n - placed));

		p->data = t->read + h->used;
		p->far_bytes = (uint16_t)placed;
		h->used += (size_t)n - placed;
		t->counters->rx_bytes += (uint64_t)n;
		t->counters->rx_packets++;
	} else if (s->lost && (n == 0 || (errno != EAGAIN && errno != EINTR))) {
		stream_fail(t, s, s->lost);
	} else if (n == 0) {
		s->fin_in = true;
		ask(t, s);
		tell(h, s, PKT_FIN, 0);
		if (is_over(s))
			stream_bury(t, s);
	} else if (errno != EAGAIN && errno != EINTR) {
		stream_fail(t, s, errno);
	}
}

static void look(struct harvest *h, struct stream *s, uint32_t events)
{
	struct tcp *t = h->t;

	if (s->failed)
		return;
	if (s->listener) {
		accept_some(h, s);
	} else if (s->connecting) {
		connected(h, s);
	} else {
		if (events & EPOLLOUT && s->kept_at != s->kept_end)
			flush(t, s);
		if (!s->fin_in && !s->failed && events & (EPOLLIN | EPOLLHUP | EPOLLERR))
			read_some(h, s);
		else if (events & EPOLLERR && !s->failed)
			stream_fail(t, s, ECONNRESET);
		if (is_over(s) && s->fd >= 0)
			stream_bury(t, s);
	}
}

static size_t tcp_recv(struct io *io, struct pkt *pkts, size_t max, uint64_t now_ns)
{
	struct tcp *t = (struct tcp *)io;
	struct harvest h = {.t = t, .pkts = pkts, .max = max, .now_ns = now_ns};
	struct epoll_event ev[EVENTS];
	int n;

	while (!list_empty(&t->dead))
		stream_free(t, container_of(t->dead.next, struct stream, due));
	if (now_ns >= t->again_ns)
		hear_again(t);
	tell_due(&h);
	n = is_full(&h) ? 0 : epoll_wait(t->epoll_fd, ev, EVENTS, 0);
	for (int i = 0; i < n && !is_full(&h); i++)
		look(&h, ev[i].data.ptr, ev[i].events);
	return h.count;
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
			stream_free(t, t->buckets[i]);
	}
	while (!list_empty(&t->dead))
		stream_free(t, container_of(t->dead.next, struct stream, due));
	free(t->buckets);
	close(t->epoll_fd);
	free(t);
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
	struct tcp *t = malloc(sizeof(*t));

	if (!t)
		goto fail;
	memset(t, 0, offsetof(struct tcp, read));
	t->io.ops = &tcp_ops;
	t->counters = counters;
	t->again_ns = UINT64_MAX;
	list_init(&t->due);
	list_init(&t->dead);
	t->mask = BUCKETS_MIN - 1;
	t->buckets = calloc(BUCKETS_MIN, sizeof(*t->buckets));
	t->epoll_fd = fd_away(epoll_create1(EPOLL_CLOEXEC));
	if (!t->buckets || t->epoll_fd < 0)
		goto free_t;
	*out = &t->io;
	return 0;

free_t:
	if (t->epoll_fd >= 0)
		close(t->epoll_fd);
	free(t->buckets);
	free(t);
fail:
	snprintf(why, why_bytes, "cannot prepare TCP connections: %s", strerror(errno));
	return -errno;
}
