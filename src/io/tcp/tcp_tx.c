/* SPDX-License-Identifier: BSD-2-Clause */
/* Sending by streams: what a socket does not take at once is kept, and leaves when it has room again. */
#include "io/tcp/tcp_state.h"

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

/* What the socket takes of these bytes; 0 where it has no room or failed. */
static size_t give(struct tcp *t, struct stream *s, const uint8_t *data, size_t len)
{
	ssize_t n = send(s->fd, data, len, MSG_DONTWAIT | MSG_NOSIGNAL);

	t->counters->tx_syscalls++;
	if (n >= 0) {
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

void tcp_stream_flush(struct tcp *t, struct stream *s)
{
	s->kept_at += give(t, s, s->kept + s->kept_at, s->kept_end - s->kept_at);
	if (s->kept_at != s->kept_end || s->lost)
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
	if (s->kept_at != s->kept_end)
		s->fin_due = true;
	else
		end_output(s);
	if (tcp_is_over(s))
		tcp_stream_bury(t, s);
}

/* A stream that has ended in our direction is left to the kernel, which may still have bytes of it. */
static void stream_reset(struct tcp *t, struct stream *s)
{
	struct linger hard = {.l_onoff = 1};

	if (s->fd >= 0 && !s->fin_out)
		(void)!setsockopt(s->fd, SOL_SOCKET, SO_LINGER, &hard, sizeof(hard));
	tcp_stream_bury(t, s);
}

size_t tcp_send(struct io *io, const struct pkt *pkts, size_t n, uint64_t now_ns)
{
	struct tcp *t = (struct tcp *)io;

	for (size_t i = 0; i < n; i++) {
		const struct pkt *p = &pkts[i];
		enum stream_event_kind kind = pkt_stream_kind(p);
		struct stream *s = kind == STREAM_OPEN ? NULL : tcp_find(t, p->flow->flow_label);

		if (kind == STREAM_OPEN)
			tcp_stream_open(t, p->flow);
		else if (!s)
			continue;
		else if (s->listener)
			tcp_unlisten(io, s->number);
		else if (kind == STREAM_BYTES)
			stream_send(t, s, p->data, p->len);
		else if (kind == STREAM_FIN)
			stream_finish(t, s);
		else if (kind == STREAM_RESET)
			stream_reset(t, s);
	}
	return n;
}
