/* SPDX-License-Identifier: BSD-2-Clause */
/* Receiving by streams: who has connected, what sockets have, and what is due to be said of streams. */
#include "io/tcp/tcp_state.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "io/fd_away.h"
#include "io/tcp/tcp_address.h"

enum {
	EVENTS = 32,
	ACCEPTS = 8,                    /* of a listener, a receive */
	BEHIND_PLACED_BYTES = 64 << 10, /* by measurement: shorter reads cost more than their copies */
	SEGMENT_BYTES = 1448            /* if the kernel does not say */
};

/* A listener that found no descriptor for its client is looked at again after so long, and the engine sleeps until
 * then. */
#define ACCEPT_AGAIN_NS UINT64_C(50000000)

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

static uint16_t segment_bytes(int fd)
{
	struct tcp_info info = {0};
	socklen_t len = sizeof(info);

	if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len) || !info.tcpi_snd_mss)
		return SEGMENT_BYTES;
	return info.tcpi_snd_mss < UINT16_MAX ? (uint16_t)info.tcpi_snd_mss : UINT16_MAX;
}

/* A receive in progress: what the caller has room for, and what is left to read into. */
struct harvest {
	struct tcp *t;
	struct pkt *pkts;
	size_t count, max;
	size_t used; /* of t->read */
	uint64_t now_ns;
};

static void tell(struct harvest *h, struct stream *s, struct stream_event event)
{
	struct stream_event *e = &h->t->events[h->count];

	*e = event;
	h->pkts[h->count++] = (struct pkt){.flow = &s->flow, .event = e};
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
			tell(h, s, (struct stream_event){.kind = STREAM_RESET, .error = s->failed});
			tcp_stream_bury(h->t, s);
		} else if (s->owed) {
			tell(h, s, (struct stream_event){.kind = STREAM_ROOM, .room = s->owed});
			s->owed = 0;
		}
	}
}

static void tell_open(struct harvest *h, struct stream *s)
{
	flow_read(s);
	tell(h, s,
	     (struct stream_event){.kind = STREAM_OPEN, .room = TCP_ROOM_BYTES, .segment_bytes = segment_bytes(s->fd)});
}

/* There is no descriptor, or no memory, for a client, who waits in the kernel: epoll would say so without an end. */
static void hear_later(struct harvest *h, struct stream *listener)
{
	listener->deaf = true;
	tcp_ask(h->t, listener);
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
			tcp_ask(t, s);
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
		while (tcp_find(t, TCP_ACCEPTED | ++t->serial))
			;
		s = tcp_stream_new(t, TCP_ACCEPTED | t->serial, fd);
		if (!s)
			return;
		tcp_set_options(fd);
		if (tcp_watch(t, s, EPOLLIN))
			tcp_stream_free(t, s);
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
		tcp_stream_fail(h->t, s, err);
		return;
	}
	s->connecting = false;
	tcp_ask(h->t, s);
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
		h->pkts[h->count++] = (struct pkt){.data = t->read + h->used,
						   .flow = &s->flow,
						   .len = (uint32_t)((size_t)n - placed),
						   .far_bytes = (uint16_t)placed};
		h->used += (size_t)n - placed;
		t->counters->rx_bytes += (uint64_t)n;
		t->counters->rx_packets++;
	} else if (s->lost && (n == 0 || (errno != EAGAIN && errno != EINTR))) {
		tcp_stream_fail(t, s, s->lost);
	} else if (n == 0) {
		s->fin_in = true;
		tcp_ask(t, s);
		tell(h, s, (struct stream_event){.kind = STREAM_FIN});
		if (tcp_is_over(s))
			tcp_stream_bury(t, s);
	} else if (errno != EAGAIN && errno != EINTR) {
		tcp_stream_fail(t, s, errno);
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
			tcp_stream_flush(t, s);
		if (!s->fin_in && !s->failed && events & (EPOLLIN | EPOLLHUP | EPOLLERR))
			read_some(h, s);
		else if (events & EPOLLERR && !s->failed)
			tcp_stream_fail(t, s, ECONNRESET);
		if (tcp_is_over(s) && s->fd >= 0)
			tcp_stream_bury(t, s);
	}
}

size_t tcp_recv(struct io *io, struct pkt *pkts, size_t max, uint64_t now_ns)
{
	struct tcp *t = (struct tcp *)io;
	struct harvest h = {.t = t, .pkts = pkts, .max = max < TCP_BURST ? max : TCP_BURST, .now_ns = now_ns};
	struct epoll_event ev[EVENTS];
	int n;

	while (!list_empty(&t->dead))
		tcp_stream_free(t, container_of(t->dead.next, struct stream, due));
	if (now_ns >= t->again_ns)
		hear_again(t);
	tell_due(&h);
	n = is_full(&h) ? 0 : epoll_wait(t->epoll_fd, ev, EVENTS, 0);
	for (int i = 0; i < n && !is_full(&h); i++)
		look(&h, ev[i].data.ptr, ev[i].events);
	return h.count;
}
