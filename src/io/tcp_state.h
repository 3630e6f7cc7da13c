/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A TCP back end and its streams: what tcp.c, tcp_tx.c and tcp_rx.c share.
 *
 *   stream          epoll asks for
 *   connecting      OUT
 *   bound           nothing, as it is not watched yet: a listener that does not listen
 *   listening       IN, but not while it is deaf
 *   open            IN, and OUT while there is a backlog
 *   FIN came        OUT while there is a backlog
 *   leaving         nothing, and each notice of the kernel once
 *
 * The backlog is what the socket did not take yet: bytes in `kept`, and among them pieces that are lent (tcp_lent.c). A
 * stream that is over is leaving as long as the kernel may read what it was lent; it is found by its number still.
 *
 * `due` holds streams that something must be said of (room, or that they failed) at the next receive.
 *
 * Private to src/io.
 */
#ifndef IO_TCP_STATE_H
#define IO_TCP_STATE_H

#include <stdbool.h>

#include "base/list.h"
#include "io/tcp.h"
#include "io/tcp_calls.h"

struct stream {
	struct stream *next; /* in its bucket */
	struct list due;
	uint32_t number;
	int fd;
	bool listener, connecting;
	bool deaf;                     /* a listener, until tcp.again_ns */
	bool fin_in, fin_out, fin_due; /* fin_due: behind the backlog */
	bool leaving;
	bool lent_in_vain; /* a piece that could not be taken: it is back when the stream is gone */
	bool aborted;      /* leaving, and its socket was reset; is waited for until leave_by_ns */
	int failed;        /* errno; 0: it did not */
	int lost;          /* likewise, but what came before is still to be read */
	uint32_t owed;     /* room to grant again */
	uint32_t events;   /* that epoll asks for */
	uint8_t *kept;     /* TCP_KEPT_BYTES; what the socket did not take: bytes [kept_at, kept_end) */
	size_t kept_at, kept_end;
	struct lending *lending; /* NULL: nothing was lent yet */
	uint64_t leave_by_ns;
	struct flow flow;
};

/* A piece of memory that the stream was lent. */
struct lent_piece {
	const uint8_t *from;
	uint32_t len, sent;   /* `sent` bytes of it were given to the socket */
	uint32_t kept_before; /* it comes when so many bytes in all have left `kept` */
	uint32_t call;        /* all is sent: it is needed until the kernel has done with the calls before this one */
};

/*
 * Pieces in the order in which they were lent. The indices, and numbers of calls, run freely:
 *
 *     head .. next    in the socket, and perhaps read by the kernel
 *     next .. tail    in the backlog
 */
struct lending {
	uint32_t head, next, tail;
	uint32_t back;     /* the last so many before `head`: it is still to be said that they are back */
	uint32_t kept_out; /* bytes that ever left `kept`, since there is this struct */
	struct tcp_calls calls;
	bool zerocopy; /* the socket can, and it is worth while */
	bool copied;   /* the kernel copied all the same */
	struct lent_piece pieces[TCP_LENT_MAX];
};

struct tcp {
	struct io io;
	struct io_counters *counters;
	struct tcp_placer placer; /* .place NULL: there is none */
	int epoll_fd;
	uint32_t serial;   /* of accepted streams */
	uint64_t again_ns; /* when deaf listeners hear again; UINT64_MAX: none is deaf */
	uint64_t leave_ns; /* the least of the aborted streams' leave_by_ns; UINT64_MAX: there are none */
	bool zerocopy_always;
	struct stream **buckets;
	size_t mask, count;
	struct list due;
	struct list dead; /* said to be gone; freed at the next receive, as flows were lent */
	uint8_t *spare;   /* for the next stream that must keep something; NULL: none */
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

/* Of a stream that is over: away with it, as soon as nothing of it is lent any more. */
void tcp_stream_end(struct tcp *, struct stream *);
/*
 * Resets the socket of a stream that failed, so that the kernel lets go of what it was lent. True: it has. Else that is
 * said when it has, or when it did not in time.
 */
bool tcp_stream_abort(struct tcp *, struct stream *, uint64_t now_ns);

/* ---- tcp_tx.c ------------------------------------------------------------------------------------ */

/* See struct io_ops. */
size_t tcp_send(struct io *, const struct pkt *pkts, size_t n, uint64_t now_ns);
/* The socket has room again. */
void tcp_stream_flush(struct tcp *, struct stream *);

/*
 * What the socket takes of these bytes, with these flags of send(); 0 where it has no room or failed. The kernel copies
 * them, whatever MSG_ZEROCOPY says, where it cannot take note of more.
 */
size_t tcp_give(struct tcp *, struct stream *, const uint8_t *data, size_t len, int flags);

/* ---- tcp_lent.c ---------------------------------------------------------------------------------- */

/* Some pieces wait for the socket to have room. */
static inline bool tcp_lent_waits(const struct stream *s)
{
	return s->lending && s->lending->next != s->lending->tail && !s->lost;
}

/* The kernel may read some of the program's memory. */
static inline bool tcp_lent_in_kernel(const struct stream *s)
{
	return s->lending && s->lending->calls.done != s->lending->calls.made;
}

/* It was not said of every piece that it is back. */
static inline bool tcp_lends(const struct stream *s)
{
	return (s->lending && (s->lending->head != s->lending->tail || s->lending->back)) || s->lent_in_vain;
}

static inline bool tcp_has_backlog(const struct stream *s)
{
	return s->kept_at != s->kept_end || tcp_lent_waits(s);
}

/* Takes a piece into the backlog. False: there are too many, or no memory for it. */
bool tcp_lent_add(struct stream *, const uint8_t *from, uint32_t len);
/* Bytes of `kept` that go before the first piece that waits. */
static inline size_t tcp_lent_kept_before(const struct stream *s)
{
	return s->lending->pieces[s->lending->next % TCP_LENT_MAX].kept_before - s->lending->kept_out;
}

/* Gives the socket the rest of the first piece that waits. False: it did not take all. */
bool tcp_lent_give(struct tcp *, struct stream *);
/* Reads what the kernel says about calls. False: it said nothing. */
bool tcp_lent_hear(struct tcp *, struct stream *);
/* Bytes in the backlog that are lent. */
size_t tcp_lent_bytes(const struct stream *);

/* ---- tcp_rx.c ------------------------------------------------------------------------------------ */

/* See struct io_ops. */
size_t tcp_recv(struct io *, struct pkt *pkts, size_t max, uint64_t now_ns);

#endif
