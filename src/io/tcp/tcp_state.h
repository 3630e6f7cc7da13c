/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A TCP back end and its streams: what tcp.c, tcp_tx.c and tcp_rx.c share.
 *
 *   stream          epoll asks for
 *   connecting      OUT
 *   bound           nothing, as it is not watched yet: a listener that does not listen
 *   listening       IN, but not while it is deaf
 *   open            IN, and OUT while `kept` has bytes
 *   FIN came        OUT while `kept` has bytes
 *
 * `due` holds streams that something must be said of (room, or that they failed) at the next receive.
 *
 * Private to src/io.
 */
#pragma once

#include <stdbool.h>

#include "base/list.h"
#include "base/stream_event.h"
#include "io/tcp/tcp.h"

enum { TCP_BURST = 64 }; /* packets that a receive yields, at most */

struct stream {
	struct stream *next; /* in its bucket */
	struct list due;
	uint32_t number;
	int fd;
	bool listener, connecting;
	bool deaf;                     /* a listener, until tcp.again_ns */
	bool fin_in, fin_out, fin_due; /* fin_due: behind `kept` */
	int failed;                    /* errno; 0: it did not */
	int lost;                      /* likewise, but what came before is still to be read */
	uint32_t owed;                 /* room to grant again */
	uint32_t events;               /* that epoll asks for */
	uint8_t *kept;                 /* TCP_KEPT_BYTES; what the socket did not take: bytes [kept_at, kept_end) */
	size_t kept_at, kept_end;
	struct flow flow;
};

struct tcp {
	struct io io;
	struct io_counters *counters;
	struct tcp_placer placer; /* .place NULL: there is none */
	int epoll_fd;
	struct io_gid gids[IO_GIDS_MAX]; /* what interface an address is bound to; 0: the routing table chooses */
	size_t gid_count;
	uint32_t serial;   /* of accepted streams */
	uint64_t again_ns; /* when deaf listeners hear again; UINT64_MAX: none is deaf */
	struct stream **buckets;
	size_t mask, count;
	struct list due;
	struct list dead;                      /* said to be gone; freed at the next receive, as flows were lent */
	uint8_t *spare;                        /* for the next stream that must keep something; NULL: none */
	struct stream_event events[TCP_BURST]; /* of the packets that were lent */
	uint8_t read[TCP_READ_BYTES];
};

/* ---- tcp.c --------------------------------------------------------------------------------------- */

/* NULL: there is none with that number. */
struct stream *tcp_find(const struct tcp *, uint32_t number);
/* Takes fd, which is closed where memory runs out. */
struct stream *tcp_stream_new(struct tcp *, uint32_t number, int fd);
void tcp_stream_free(struct tcp *, struct stream *);
/* Its flow may be lent until the next receive. Nobody finds it any more. */
void tcp_stream_bury(struct tcp *, struct stream *);
/* Begins to connect. That it did not work is said at the next receive. */
void tcp_stream_open(struct tcp *, const struct flow *);
/* Something must be said of it at the next receive. */
void tcp_say(struct tcp *, struct stream *);
/* It is gone, which is said at the next receive; err: errno, or 0. */
void tcp_stream_fail(struct tcp *, struct stream *, int err);
/* Asks epoll for what the stream's state calls for. */
void tcp_ask(struct tcp *, struct stream *);
/* Has epoll look at a new stream's socket. 0 or a negative errno. */
int tcp_watch(struct tcp *, struct stream *, uint32_t events);
void tcp_set_options(int fd);
static inline bool tcp_is_over(const struct stream *s)
{
	return s->fin_in && s->fin_out;
}

/* ---- tcp_tx.c ------------------------------------------------------------------------------------ */

/* See struct io_ops. */
size_t tcp_send(struct io *, const struct pkt *pkts, size_t n, uint64_t now_ns);
/* The socket has room again. */
void tcp_stream_flush(struct tcp *, struct stream *);

/* ---- tcp_rx.c ------------------------------------------------------------------------------------ */

/* See struct io_ops. */
size_t tcp_recv(struct io *, struct pkt *pkts, size_t max, uint64_t now_ns);
