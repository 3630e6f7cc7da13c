/* SPDX-License-Identifier: BSD-2-Clause */
/* Sending by streams: what a socket does not take at once is kept, and leaves when it has room again. */
#include "io/tcp_state.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "space/space.h"

/* The peer is gone. What it said before may wait in the socket, which says behind that, too, that it is over. */
static void lose(struct tcp *t, struct stream *s, int err)
{
	s->lost = err;
	s->kept_at = s->kept_end = 0;
	tcp_ask(t, s);
}

size_t tcp_give(struct tcp *t, struct stream *s, const uint8_t *data, size_t len, int flags)
{
	ssize_t n = send(s->fd, data, len, MSG_DONTWAIT | MSG_NOSIGNAL | flags);

	t->counters->tx_syscalls++;
	if (n < 0 && errno == ENOBUFS && flags & MSG_ZEROCOPY) {
		flags &= ~MSG_ZEROCOPY;
		n = send(s->fd, data, len, MSG_DONTWAIT | MSG_NOSIGNAL | flags);
		t->counters->tx_syscalls++;
	}
	if (n >= 0) {
		if (n && flags & MSG_ZEROCOPY) {
			s->lending->calls.made++;
			t->counters->tx_zerocopy++;
		}
		t->counters->tx_bytes += (uint64_t)n;
		s->owed += (uint32_t)n;
		tcp_say(t, s);
		return (size_t)n;
	}
	if ((errno == ECONNRESET || errno == EPIPE) && !s->fin_in)
		lose(t, s, errno);
	else if (errno != EAGAIN && errno != EINTR && errno != ENOBUFS)
		tcp_stream_fail(t, s, errno);
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
	if (!s->kept) {
		s->kept = t->spare ? t->spare : space_get(TCP_KEPT_BYTES);
		t->spare = NULL;
	}
	if (s->kept_at && s->kept_end + len > TCP_ROOM_BYTES) {
		memmove(s->kept, s->kept + s->kept_at, s->kept_end - s->kept_at);
		s->kept_end -= s->kept_at;
		s->kept_at = 0;
	}
	if (!s->kept || s->kept_end + len > TCP_KEPT_BYTES) {
		tcp_stream_fail(t, s, ENOBUFS);
		return;
	}
	memcpy(s->kept + s->kept_end, data, len);
	s->kept_end += len;
	tcp_ask(t, s);
}

static bool takes(const struct stream *s)
{
	return !s->failed && !s->lost && !s->connecting && !s->fin_out && !s->fin_due;
}

/* `more`: what follows leaves in the same turn. */
static void send_bytes(struct tcp *t, struct stream *s, const struct pkt *p, bool more)
{
	size_t n = 0;

	t->counters->tx_packets++;
	if (!takes(s))
		return;
	if (!tcp_has_backlog(s))
		n = tcp_give(t, s, p->data, p->len, more ? MSG_MORE : 0);
	if (n < p->len && !s->failed && !s->lost)
		keep(t, s, p->data + n, p->len - n);
}

static void send_lent(struct tcp *t, struct stream *s, const struct pkt *p)
{
	bool waits = tcp_has_backlog(s);

	t->counters->tx_packets++;
	if (!takes(s) || !tcp_lent_add(s, p->data, p->len)) {
		s->lent_in_vain = true;
		if (takes(s))
			tcp_stream_fail(t, s, ENOBUFS);
		return;
	}
	if (!waits && !tcp_lent_give(t, s))
		tcp_ask(t, s);
}

/* Gives the socket what comes next in the backlog. False: it did not take all. */
static bool flush_next(struct tcp *t, struct stream *s)
{
	size_t len = s->kept_end - s->kept_at, n;
	bool waits = tcp_lent_waits(s);

	if (waits && tcp_lent_kept_before(s) < len)
		len = tcp_lent_kept_before(s);
	if (!len)
		return tcp_lent_give(t, s);
	n = tcp_give(t, s, s->kept + s->kept_at, len, waits ? MSG_MORE : 0);
	s->kept_at += n;
	if (s->lending)
		s->lending->kept_out += (uint32_t)n;
	return n == len;
}

void tcp_stream_flush(struct tcp *t, struct stream *s)
{
	while (tcp_has_backlog(s)) {
		if (!flush_next(t, s))
			return;
	}
	if (s->lost)
		return;
	if (t->spare)
		space_put(s->kept, TCP_KEPT_BYTES);
	else
		t->spare = s->kept;
	s->kept = NULL;
	s->kept_at = s->kept_end = 0;
	if (s->fin_due)
		end_output(s);
	s->fin_due = false;
	tcp_ask(t, s);
}

static void stream_finish(struct tcp *t, struct stream *s)
{
	if (s->connecting || s->lost || s->fin_out)
		return;
	if (tcp_has_backlog(s))
		s->fin_due = true;
	else
		end_output(s);
	if (tcp_is_over(s))
		tcp_stream_end(t, s);
}

/* A stream that has ended in our direction is left to the kernel, which may still have bytes of it. */
static void stream_reset(struct tcp *t, struct stream *s, uint64_t now_ns)
{
	struct linger hard = {.l_onoff = 1};

	if (tcp_lends(s)) {
		tcp_stream_fail(t, s, ECONNRESET);
		tcp_stream_abort(t, s, now_ns);
		return;
	}
	if (s->fd >= 0 && !s->fin_out)
		(void)!setsockopt(s->fd, SOL_SOCKET, SO_LINGER, &hard, sizeof(hard));
	tcp_stream_bury(t, s);
}

/* The next packet is a piece of the same stream that is lent. */
static bool is_before_lent(const struct pkt *p, const struct pkt *end)
{
	return p + 1 < end && p[1].kind == PKT_LENT && p[1].flow == p->flow;
}

size_t tcp_send(struct io *io, const struct pkt *pkts, size_t n, uint64_t now_ns)
{
	struct tcp *t = (struct tcp *)io;

	for (const struct pkt *p = pkts; p < pkts + n; p++) {
		struct stream *s = p->kind == PKT_OPEN ? NULL : tcp_find(t, p->flow->flow_label);

		if (p->kind == PKT_OPEN)
			tcp_stream_open(t, p->flow);
		else if (!s)
			continue;
		else if (s->listener)
			tcp_unlisten(io, s->number);
		else if (p->kind == PKT_BYTES)
			send_bytes(t, s, p, is_before_lent(p, pkts + n));
		else if (p->kind == PKT_LENT)
			send_lent(t, s, p);
		else if (p->kind == PKT_FIN)
			stream_finish(t, s);
		else if (p->kind == PKT_RESET)
			stream_reset(t, s, now_ns);
	}
	return n;
}
