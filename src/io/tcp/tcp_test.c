/* SPDX-License-Identifier: BSD-2-Clause */
/* Streams between two back ends over loopback: opening, bytes in any amounts, room, and every end. */
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/stream_event.h"
#include "io/tcp/tcp.h"
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
};

static struct end a, b;
static uint16_t port;

/* A port that nobody has. */
static uint16_t free_port(void)
{
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	socklen_t len = sizeof(in);

	assert_int_equal(bind(fd, (struct sockaddr *)&in, sizeof(in)), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&in, &len), 0);
	close(fd);
	return ntohs(in.sin_port);
}

static struct flow loopback(void)
{
	struct flow f = {.src = {[10] = 0xff, [11] = 0xff, 127, 0, 0, 1},
			 .dst = {[10] = 0xff, [11] = 0xff, 127, 0, 0, 1}};

	return f;
}

/* Adds bytes to those at *to, whose memory grows by halves: the sanitizers mark a block that grows byte by byte anew
 * each time. */
static void append(uint8_t **to, size_t *to_len, size_t *room, const uint8_t *bytes, size_t len)
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

static void take(struct end *e, const struct pkt *p)
{
	switch (pkt_stream_kind(p)) {
	case STREAM_OPEN:
		e->open = true;
		e->stream = p->flow->flow_label;
		e->room = p->event->room;
		assert_true(p->event->segment_bytes >= 500);
		break;
	case STREAM_ROOM: e->room += p->event->room; break;
	case STREAM_BYTES:
		assert_true(p->far_bytes <= e->place_end - e->place_at);
		e->place_at += p->far_bytes;
		e->placed += p->far_bytes;
		append(&e->got, &e->got_len, &e->got_room, p->data, p->len);
		break;
	case STREAM_FIN: e->fin = true; break;
	default: e->reset = (unsigned)p->event->error + 1;
	}
}

/* Takes the packets that this end gets within `ms`. */
static void receive(struct end *e, int ms)
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

static void send_kind(struct end *e, enum stream_event_kind kind, const void *data, size_t len)
{
	struct flow f = loopback();
	struct stream_event event = {.kind = kind};
	struct pkt p = {.data = (uint8_t *)(uintptr_t)data,
			.len = (uint32_t)len,
			.event = kind == STREAM_BYTES ? NULL : &event,
			.flow = &f};

	f.flow_label = e->stream;
	f.dport = port;
	assert_int_equal(io_send(e->io, &p, 1, 0), 1);
	if (kind == STREAM_BYTES)
		e->room -= (uint32_t)len;
}

static int set_up(void **state)
{
	char why[256];

	memset(&a, 0, sizeof(a));
	memset(&b, 0, sizeof(b));
	assert_int_equal(tcp_open(&a.io, &a.counters, why, sizeof(why)), 0);
	assert_int_equal(tcp_open(&b.io, &b.counters, why, sizeof(why)), 0);
	port = free_port();
	return 0;
}

static int tear_down(void **state)
{
	io_close(a.io);
	io_close(b.io);
	free(a.got);
	free(b.got);
	return 0;
}

static void connect_them(void)
{
	struct flow at = loopback();

	at.sport = port;
	assert_int_equal(tcp_bind(b.io, LISTENER, &at, false), 0);
	assert_int_equal(tcp_listen(b.io, LISTENER, 10), 0);
	a.stream = STREAM;
	send_kind(&a, STREAM_OPEN, NULL, 0);
	UNTIL(a.open && b.open);
	assert_int_equal(a.stream, STREAM);
	assert_true(b.stream & TCP_ACCEPTED);
	assert_int_equal(a.room, TCP_ROOM_BYTES);
}

#define CASE(name) TEST_WITH(name, set_up, tear_down)

CASE(bytes_arrive_in_order_and_room_comes_back)
{
	size_t total = 0, sent = 8 << 20, at = 0;
	uint8_t *data = malloc(sent);

	for (size_t i = 0; i < sent; i++)
		data[i] = (uint8_t)(i * 2654435761u >> 13);
	connect_them();
	while (at < sent) {
		size_t n = sent - at < a.room ? sent - at : a.room;

		if (n)
			send_kind(&a, STREAM_BYTES, data + at, n);
		at += n;
		receive(&a, 0);
		receive(&b, 0);
		assert_true(++total < 1000000);
	}
	UNTIL(b.got_len == sent && a.room == TCP_ROOM_BYTES);
	assert_memory_equal(b.got, data, sent);
	free(data);
}

/* A peer that does not read: what was granted is kept, no more is granted, and nothing is lost. */
CASE(a_peer_that_does_not_read_holds_up_its_stream_alone)
{
	static uint8_t data[64 << 10];
	size_t sent = 0;

	connect_them();
	for (int i = 0; i < 1000 && a.room >= sizeof(data); i++) {
		memset(data, i, sizeof(data));
		send_kind(&a, STREAM_BYTES, data, sizeof(data));
		sent += sizeof(data);
		receive(&a, 0);
	}
	assert_true(a.room < sizeof(data)); /* a socket's buffer is smaller than that */
	send_kind(&a, STREAM_FIN, NULL, 0);
	assert_true(tcp_leaving(a.io).bytes >= TCP_ROOM_BYTES - a.room);
	UNTIL(b.fin && !tcp_leaving(a.io).bytes);
	assert_int_equal(tcp_leaving(a.io).half_closed, 1);
	assert_int_equal(b.got_len, sent);
	for (size_t i = 0; i < sent; i += sizeof(data))
		assert_int_equal(b.got[i], (uint8_t)(i / sizeof(data)));
}

CASE(a_fin_each_way_ends_the_stream)
{
	connect_them();
	send_kind(&a, STREAM_BYTES, "last words", 10);
	send_kind(&a, STREAM_FIN, NULL, 0);
	UNTIL(b.fin);
	assert_int_equal(b.got_len, 10);
	send_kind(&b, STREAM_BYTES, "and mine", 8); /* half-closed: the other direction goes on */
	send_kind(&b, STREAM_FIN, NULL, 0);
	UNTIL(a.fin);
	assert_int_equal(a.got_len, 8);
	UNTIL(tcp_streams(a.io) == 0 && tcp_streams(b.io) == 1); /* the listener */
	assert_true(!a.reset && !b.reset);
}

CASE(a_reset_is_told_to_the_peer)
{
	connect_them();
	send_kind(&a, STREAM_RESET, NULL, 0);
	UNTIL(b.reset);
	assert_int_equal(b.reset - 1, ECONNRESET);
	assert_int_equal(tcp_streams(a.io), 0);
	assert_int_equal(tcp_streams(b.io), 1);
	send_kind(&a, STREAM_BYTES, "x", 1); /* to a stream that is gone */
}

/* The end of a process, as its peer sees it that was about to answer. */
CASE(what_came_before_a_reset_is_read)
{
	connect_them();
	send_kind(&b, STREAM_BYTES, "last words", 10);
	send_kind(&b, STREAM_RESET, NULL, 0);
	send_kind(&a, STREAM_BYTES, "too late", 8);
	send_kind(&a, STREAM_BYTES, "again", 5);
	UNTIL(a.reset);
	assert_int_equal(a.got_len, 10);
	assert_false(a.fin);
	assert_int_equal(tcp_streams(a.io), 0);
}

/* A peer that is slow to end gets all the same what the kernel had before the FIN. */
CASE(a_reset_behind_a_fin_takes_nothing_back)
{
	static const uint8_t data[64 << 10];
	size_t sent = 0;

	connect_them();
	for (; a.room >= sizeof(data); sent += sizeof(data)) {
		send_kind(&a, STREAM_BYTES, data, sizeof(data));
		receive(&a, 0);
	}
	UNTIL(a.room == TCP_ROOM_BYTES); /* the socket has all the rest */
	send_kind(&a, STREAM_FIN, NULL, 0);
	send_kind(&a, STREAM_RESET, NULL, 0);
	UNTIL(b.fin || b.reset);
	assert_int_equal(b.got_len, sent);
	assert_true(b.fin);
}

CASE(nobody_listens)
{
	a.stream = STREAM;
	send_kind(&a, STREAM_OPEN, NULL, 0);
	UNTIL(a.reset);
	assert_int_equal(a.reset - 1, ECONNREFUSED);
	assert_int_equal(tcp_streams(a.io), 0);
}

CASE(a_port_has_one_listener)
{
	struct flow at = loopback();

	at.sport = port;
	assert_int_equal(tcp_listen(a.io, LISTENER, 1), -ENOENT);
	assert_int_equal(tcp_bind(a.io, LISTENER, &at, false), 0);
	assert_int_equal(tcp_bind(b.io, LISTENER, &at, false), 0); /* nobody listens yet */
	assert_int_equal(tcp_listen(a.io, LISTENER, 1), 0);
	assert_int_equal(tcp_listen(b.io, LISTENER, 1), -EADDRINUSE);
	assert_int_equal(tcp_listen(b.io, LISTENER, 1), -ENOENT);
	assert_int_equal(tcp_bind(b.io, LISTENER, &at, false), -EADDRINUSE);
	tcp_unlisten(a.io, LISTENER);
	assert_int_equal(tcp_bind(b.io, LISTENER, &at, false), 0);
	assert_int_equal(tcp_listen(b.io, LISTENER, 1), 0);
	at.src[12] = 10; /* no address of this host */
	at.src[13] = 254;
	assert_int_equal(tcp_bind(a.io, LISTENER, &at, false), -EADDRNOTAVAIL);
}

/* What any other program gets, which asks for the port as such programs do. */
static int plain_bind(uint16_t to)
{
	struct sockaddr_in in = {
		.sin_family = AF_INET, .sin_port = htons(to), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int fd = socket(AF_INET, SOCK_STREAM, 0), err = bind(fd, (struct sockaddr *)&in, sizeof(in)) ? errno : 0;

	close(fd);
	return err;
}

/* One that is bound alone is nobody's, before and after others can share it, and nobody connects to it before it
 * listens. */
CASE(a_port_that_is_bound_is_kept)
{
	struct flow at = loopback();

	at.sport = port;
	assert_int_equal(tcp_bind(a.io, LISTENER, &at, false), 0);
	assert_int_equal(tcp_bind(b.io, LISTENER, &at, true), -EADDRINUSE);
	tcp_unlisten(a.io, LISTENER);
	assert_int_equal(plain_bind(port), 0);
	assert_int_equal(tcp_bind(b.io, LISTENER, &at, true), 0);
	assert_int_equal(plain_bind(port), EADDRINUSE);
	assert_int_equal(tcp_bind(a.io, LISTENER, &at, true), -EADDRINUSE);
	a.stream = STREAM;
	send_kind(&a, STREAM_OPEN, NULL, 0);
	UNTIL(a.reset);
	assert_int_equal(a.reset - 1, ECONNREFUSED);
	a.reset = 0;
	assert_int_equal(tcp_listen(b.io, LISTENER, 1), 0);
	send_kind(&a, STREAM_OPEN, NULL, 0);
	UNTIL(a.open && b.open);
}

static int plain_client(void)
{
	struct sockaddr_in in = {
		.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	assert_int_equal(connect(fd, (struct sockaddr *)&in, sizeof(in)), 0);
	return fd;
}

/* A listener for whose client there is no descriptor sleeps, and accepts the client when there is one again. */
CASE(a_client_waits_for_a_descriptor)
{
	struct pollfd p = {.events = POLLIN};
	struct rlimit limit, none;
	struct pkt pkts[PKTS];
	int client, lowest;

	connect_them();
	assert_int_equal(io_fds(b.io, &p.fd, 1), 1);
	client = plain_client();
	assert_int_equal(poll(&p, 1, PATIENCE_MS), 1);
	lowest = dup(client);
	close(lowest);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	none = (struct rlimit){(rlim_t)lowest, limit.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	assert_int_equal(io_recv(b.io, pkts, PKTS, 1000), 0);
	assert_int_equal(poll(&p, 1, 0), 0);
	assert_true(io_deadline_ns(b.io) > 1000 && io_deadline_ns(b.io) < UINT64_MAX);
	assert_int_equal(io_recv(b.io, pkts, PKTS, io_deadline_ns(b.io)), 0); /* still none */
	assert_int_equal(poll(&p, 1, 0), 0);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	assert_int_equal(io_recv(b.io, pkts, PKTS, io_deadline_ns(b.io)), 1);
	assert_int_equal(pkt_stream_kind(&pkts[0]), STREAM_OPEN);
	assert_true(io_deadline_ns(b.io) == UINT64_MAX);
	close(client);
}

CASE(many_streams_come_and_go)
{
	connect_them();
	for (uint32_t i = 0; i < 300; i++) {
		a.open = b.open = a.fin = b.fin = false;
		a.stream = 100 + i;
		send_kind(&a, STREAM_OPEN, NULL, 0);
		UNTIL(a.open && b.open);
		if (i % 3 == 0)
			continue;
		send_kind(&a, STREAM_FIN, NULL, 0);
		UNTIL(b.fin);
		send_kind(&b, STREAM_FIN, NULL, 0);
		UNTIL(a.fin);
	}
	receive(&a, 0);
	receive(&b, 0);
	assert_int_equal(tcp_streams(a.io), 101);
	assert_int_equal(tcp_streams(b.io), 102);
}

static size_t place(void *ctx, uint32_t number, uint8_t **to)
{
	struct end *e = ctx;

	assert_int_equal(number, e->stream);
	*to = e->place + e->place_at;
	return e->place_end - e->place_at;
}

/* What has a place is put there to the last byte; what follows comes as ever. */
CASE(bytes_are_read_into_their_place)
{
	enum { PLACE = 50000, LEN = 60000 };
	static uint8_t data[LEN], region[PLACE + 64];

	for (size_t i = 0; i < LEN; i++)
		data[i] = (uint8_t)(i * 2654435761u >> 11 | 1);
	connect_them();
	tcp_set_placer(b.io, (struct tcp_placer){.place = place, .ctx = &b});
	send_kind(&a, STREAM_BYTES, "head", 4);
	UNTIL(b.got_len == 4);
	b.place = region;
	b.place_end = PLACE;
	send_kind(&a, STREAM_BYTES, data, 20000);
	UNTIL(b.placed == 20000);
	send_kind(&a, STREAM_BYTES, data + 20000, LEN - 20000);
	UNTIL(b.got_len + b.placed == 4 + LEN);
	assert_int_equal(b.placed, PLACE);
	assert_memory_equal(region, data, PLACE);
	assert_int_equal(region[PLACE], 0);
	assert_memory_equal(b.got + 4, data + PLACE, LEN - PLACE);
	assert_int_equal(b.counters.rx_bytes, 4 + LEN);
	send_kind(&a, STREAM_FIN, NULL, 0);
	UNTIL(b.fin);
}

/* The program has unmapped it, or a part of it: no byte is lost, and what could not be put there comes in packets. */
CASE(bytes_whose_place_is_gone_come_in_packets)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), len = 3 * page;
	uint8_t *data = malloc(len);

	for (size_t i = 0; i < len; i++)
		data[i] = (uint8_t)(i * 2654435761u >> 11);
	for (size_t there = 0; there < 2; there++) {
		if (there)
			assert_int_equal(tear_down(state) | set_up(state), 0);
		connect_them();
		tcp_set_placer(b.io, (struct tcp_placer){.place = place, .ctx = &b});
		b.place = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		b.place_end = len;
		assert_true(b.place != MAP_FAILED);
		assert_int_equal(munmap(b.place + there * page, len - there * page), 0);
		send_kind(&a, STREAM_BYTES, data, len);
		/* As the nic does, which cannot place the rest once some came otherwise. */
		for (int i = 0; b.got_len + b.placed < len && i < PATIENCE_MS; i++) {
			receive(&b, 1);
			if (b.got_len)
				b.place_end = b.place_at;
		}
		assert_int_equal(b.got_len + b.placed, len);
		assert_true(b.placed <= there * page);
		if (there)
			assert_memory_equal(b.place, data, b.placed);
		assert_memory_equal(b.got, data + b.placed, b.got_len);
		assert_false(b.reset);
		if (there)
			munmap(b.place, page);
	}
	free(data);
}
