/* SPDX-License-Identifier: BSD-2-Clause */
/* Tests alone: two TCP back ends of one process that have a stream to each other over loopback. */
#ifndef TESTS_SUPPORT_TCP_ENDS_H
#define TESTS_SUPPORT_TCP_ENDS_H

#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "io/tcp.h"
#include "support/test.h"

enum { PKTS = 16, LISTENER = 7, STREAM = 9, PATIENCE_MS = 10000 };

struct end {
	struct io *io;
	struct io_counters counters;
	uint32_t stream;
	uint32_t room;
	uint8_t *got;
	size_t got_len, got_room;
	bool open, fin;
	/* where the bytes of its stream belong: [place_at, place_end) of `place`; and how many were put there */
	uint8_t *place;
	size_t place_at, place_end, placed;
	uint32_t reset; /* errno + 1; 0: none came */
	/* pieces that it lent and has back; and whether they were copied all the same */
	uint32_t back;
	bool copied;
};

static struct end a, b;
static uint16_t port;
static bool zerocopy_always;

/* A port that nobody has. */
static inline uint16_t free_port(void)
{
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	socklen_t len = sizeof(in);

	assert_int_equal(bind(fd, (struct sockaddr *)&in, sizeof(in)), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&in, &len), 0);
	close(fd);
	return ntohs(in.sin_port);
}

static inline struct flow loopback(void)
{
	struct flow f = {.src = {[10] = 0xff, [11] = 0xff, 127, 0, 0, 1},
			 .dst = {[10] = 0xff, [11] = 0xff, 127, 0, 0, 1}};

	return f;
}

/* Adds bytes to those at *to, whose memory grows by halves: the sanitizers mark a block that grows byte by byte anew
 * each time. */
static inline void append(uint8_t **to, size_t *to_len, size_t *room, const uint8_t *bytes, size_t len)
{
	if (*to_len + len > *room) {
		*room = (*to_len + len) * 3 / 2;
		*to = realloc(*to, *room);
		assert_non_null(*to);
	}
	if (len)
		memcpy(*to + *to_len, bytes, len);
	*to_len += len;
}

static inline void take(struct end *e, const struct pkt *p)
{
	switch (p->kind) {
	case PKT_OPEN:
		e->open = true;
		e->stream = p->flow->flow_label;
		e->room = p->len;
		assert_true(p->segment_bytes >= 500);
		break;
	case PKT_ROOM: e->room += p->len; break;
	case PKT_BYTES:
		assert_true(p->far_bytes <= e->place_end - e->place_at);
		e->place_at += p->far_bytes;
		e->placed += p->far_bytes;
		append(&e->got, &e->got_len, &e->got_room, p->data, p->len);
		break;
	case PKT_BACK:
		e->back += p->len;
		e->copied |= p->copied;
		break;
	case PKT_FIN: e->fin = true; break;
	default: e->reset = p->len + 1;
	}
}

/* Takes the packets that this end gets within `ms`. */
static inline void receive(struct end *e, int ms)
{
	struct pkt pkts[PKTS];
	struct pollfd p = {.events = POLLIN};
	size_t n;

	assert_int_equal(io_fds(e->io, &p.fd, 1), 1);
	if (io_deadline_ns(e->io) == UINT64_MAX)
		poll(&p, 1, ms);
	n = io_recv(e->io, pkts, PKTS, 0);
	for (size_t i = 0; i < n; i++)
		take(e, &pkts[i]);
}

#define UNTIL(condition)                                                      \
	do {                                                                  \
		for (int ms_ = 0; !(condition) && ms_ < PATIENCE_MS; ms_++) { \
			receive(&a, 0);                                       \
			receive(&b, 1);                                       \
		}                                                             \
		assert_true(condition);                                       \
	} while (0)

static inline void send_kind(struct end *e, enum pkt_kind kind, const void *data, size_t len)
{
	struct flow f = loopback();
	struct pkt p = {.data = (uint8_t *)(uintptr_t)data, .len = (uint32_t)len, .kind = kind, .flow = &f};

	f.flow_label = e->stream;
	f.dport = port;
	assert_int_equal(io_send(e->io, &p, 1, 0), 1);
	if (kind == PKT_BYTES)
		e->room -= (uint32_t)len;
}

static inline int set_up(void **state)
{
	char why[256];

	memset(&a, 0, sizeof(a));
	memset(&b, 0, sizeof(b));
	assert_int_equal(tcp_open(&a.io, &a.counters, zerocopy_always, why, sizeof(why)), 0);
	assert_int_equal(tcp_open(&b.io, &b.counters, zerocopy_always, why, sizeof(why)), 0);
	port = free_port();
	return 0;
}

static inline int tear_down(void **state)
{
	io_close(a.io);
	io_close(b.io);
	free(a.got);
	free(b.got);
	return 0;
}

static inline void connect_them(void)
{
	struct flow at = loopback();

	at.sport = port;
	assert_int_equal(tcp_bind(b.io, LISTENER, &at, false), 0);
	assert_int_equal(tcp_listen(b.io, LISTENER, 10), 0);
	a.stream = STREAM;
	send_kind(&a, PKT_OPEN, NULL, 0);
	UNTIL(a.open && b.open);
	assert_int_equal(a.stream, STREAM);
	assert_true(b.stream & TCP_ACCEPTED);
	assert_int_equal(a.room, TCP_ROOM_BYTES);
}

#endif
