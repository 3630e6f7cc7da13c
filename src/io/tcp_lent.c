/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory that a stream sends from where it is (MSG_ZEROCOPY): pieces in a queue, and what the kernel says of them.
 *
 * A call that takes bytes has a number, counted from 0 for each socket, and the error queue of the socket says from
 * which call to which the kernel has done with all bytes: they are acknowledged, or the connection is gone. It may say
 * so out of turn. A piece is back when that was said of all calls up to the last one that took some of it. Where the
 * kernel copies at once, for want of memory for its notes (ENOBUFS) or since the socket cannot do otherwise, a piece is
 * back when it has left the backlog.
 */
#include "io/tcp_state.h"

#include <errno.h>
#include <sys/socket.h>

#include <linux/errqueue.h>

#include "space/space.h"

/* What has come is all read: epoll says of a stream that is leaving only once that more came. */
enum { HEARD_MAX = TCP_CALLS_MAX + 1 };

static struct lending *lending_new(const struct stream *s)
{
	struct lending *l = space_get(sizeof(*l));
	int on = 1;

	if (l)
		l->zerocopy = !setsockopt(s->fd, SOL_SOCKET, SO_ZEROCOPY, &on, sizeof(on));
	return l;
}

bool tcp_lent_add(struct stream *s, const uint8_t *from, uint32_t len)
{
	struct lending *l = s->lending;

	if (!l)
		l = s->lending = lending_new(s);
	if (!l || l->tail - l->head == TCP_LENT_MAX)
		return false;
	l->pieces[l->tail++ % TCP_LENT_MAX] = (struct lent_piece){
		.from = from, .len = len, .kept_before = l->kept_out + (uint32_t)(s->kept_end - s->kept_at)};
	return true;
}

/* Pieces that nobody needs any more. */
static void take_back(struct tcp *t, struct stream *s)
{
	struct lending *l = s->lending;
	uint32_t head = l->head;

	while (l->head != l->next && (int32_t)(l->calls.done - l->pieces[l->head % TCP_LENT_MAX].call) >= 0)
		l->head++;
	l->back += l->head - head;
	if (l->head != head)
		tcp_say(t, s);
}

bool tcp_lent_give(struct tcp *t, struct stream *s)
{
	struct lending *l = s->lending;
	struct lent_piece *p = &l->pieces[l->next % TCP_LENT_MAX];
	bool lend = l->zerocopy && l->calls.made - l->calls.done < TCP_CALLS_MAX;

	/* The end of the FPDU follows, which need not be a segment of its own. */
	p->sent += (uint32_t)tcp_give(t, s, p->from + p->sent, p->len - p->sent, MSG_MORE | (lend ? MSG_ZEROCOPY : 0));
	if (p->sent != p->len)
		return false;
	p->call = l->calls.made;
	l->next++;
	take_back(t, s);
	return true;
}

static void read_note(struct tcp *t, struct lending *l, struct msghdr *m)
{
	for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c)) {
		const struct sock_extended_err *e = (const struct sock_extended_err *)CMSG_DATA(c);

		if (c->cmsg_len < CMSG_LEN(sizeof(*e)) || e->ee_origin != SO_EE_ORIGIN_ZEROCOPY || e->ee_errno)
			continue;
		if (e->ee_code & SO_EE_CODE_ZEROCOPY_COPIED) {
			t->counters->tx_zerocopy_copied += e->ee_data - e->ee_info + 1;
			l->copied = !t->zerocopy_always;
			l->zerocopy = t->zerocopy_always;
		}
		tcp_calls_note(&l->calls, e->ee_info, e->ee_data);
	}
}

bool tcp_lent_hear(struct tcp *t, struct stream *s)
{
	uint8_t control[CMSG_SPACE(sizeof(struct sock_extended_err) + 64)];
	bool heard = false;

	for (int i = 0; i < HEARD_MAX && tcp_lent_in_kernel(s); i++) {
		struct msghdr m = {.msg_control = control, .msg_controllen = sizeof(control)};

		if (recvmsg(s->fd, &m, MSG_ERRQUEUE | MSG_DONTWAIT) < 0)
			break;
		heard = true;
		read_note(t, s->lending, &m);
	}
	if (heard)
		take_back(t, s);
	return heard;
}

size_t tcp_lent_bytes(const struct stream *s)
{
	const struct lending *l = s->lending;
	size_t bytes = 0;

	for (uint32_t i = l ? l->next : 0; tcp_lent_waits(s) && i != l->tail; i++)
		bytes += l->pieces[i % TCP_LENT_MAX].len - l->pieces[i % TCP_LENT_MAX].sent;
	return bytes;
}
