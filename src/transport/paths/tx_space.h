/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sequencing at the sender: one PSN space, its unacknowledged packets, and the queue of
 * those to be sent again (veRoCE 4.1, 6). A QP end has two: requests (Q) and responses (R). The owner knows
 * the content of a packet; a record only names its item (WQE or response).
 *
 *     una <= PSN < nxt       has a record, which is FLYING, LOST (in the retransmit queue) or ACKED
 *
 * FLYING records of one path form a list in the order in which they were sent, since only later packets of
 * the same path show the loss of an earlier one (6.2).
 *
 * Records lie in chunks from a pool, in the order of their PSNs. When una leaves a chunk, the chunk moves to the
 * other end, or goes back to the pool if there is room enough, so memory follows the number of packets outstanding.
 * One chunk is kept, with the ring that names it, until the space is dropped.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/pool.h"
#include "transport/config.h"
#include "wire/psn.h"

enum {
	TX_CHUNK = 32,      /* records; a chunk and the smallest ring are pool pieces of the same size */
	TX_AHEAD = 128,     /* a chunk that una leaves is kept while there is room for fewer packets than these */
	TX_RING_MIN = 2048, /* PSNs that the smallest ring has places for */
	TX_RING_GROWTH = 4,
	TX_WINDOW_MAX = 65536 /* the most records in use, and so PSNs outstanding */
};

#define TX_NIL UINT32_MAX

enum tx_state { TX_FLYING, TX_LOST, TX_ACKED };

struct tx_record {
	uint64_t tx_ns; /* of the last copy */
	uint32_t item;
	uint32_t order;      /* among the packets of this space on its path, when it was sent */
	uint32_t prev, next; /* PSNs, in the path's list or the retransmit queue; TX_NIL: none */
	uint16_t bytes;      /* on the wire, BTH to ICRC */
	uint8_t path;
	uint8_t path_before; /* of the copy before, if there was one */
	uint8_t copies;
	uint8_t state;  /* enum tx_state */
	bool probe;     /* a probe: it asks to be answered at once, and needs no window */
	bool timed_out; /* taken for lost by the clock alone, so a late arrival is no reordering */
};

struct tx_path {
	uint64_t newest_tx_ns; /* the latest sending time of an acknowledged packet of this path */
	uint32_t newest_order; /* one more than that packet's order; 0: none yet */
	uint32_t head, tail;   /* flying; TX_NIL: none */
	uint32_t sent;
	uint32_t flying;
};

struct tx_ring {
	struct tx_path paths[PATHS_MAX];
	struct tx_record *chunks[]; /* by PSN; from that of una to that of end - 1 */
};

struct tx_space {
	struct tx_ring *ring; /* NULL: nothing is outstanding, or was lately */
	uint32_t size;        /* of the ring, a power of two; 0: none */
	uint32_t una;
	uint32_t nxt;
	uint32_t end;  /* end of the PSNs that have places for records */
	uint32_t used; /* bit i: a packet was sent on path i since the space was last empty */
	uint32_t flying;
	uint32_t lost;       /* in the retransmit queue */
	uint32_t again_head; /* of the retransmit queue */
	uint32_t again_tail;
};

/*
 * What an acknowledgement reported, by path. Set `paths` to 0 before use; the other members depend
 * on it.
 */
struct tx_news {
	uint32_t paths;      /* bit i: a packet that flew on path i was acknowledged */
	uint32_t packets;    /* newly acknowledged, on all paths */
	uint32_t spurious;   /* acknowledged sooner after the retransmission than its copy could have been */
	uint32_t late_paths; /* bit i: the earlier copy of one of them was overtaken on path i */
	struct tx_path_news {
		uint32_t bytes;
		uint32_t packets;
		uint32_t sure;         /* of them, those that certainly arrived over this path */
		uint64_t newest_tx_ns; /* of those sent once only; 0: none */
	} path[PATHS_MAX];
};

/* Empty; the first packet will have that PSN. */
void tx_space_init(struct tx_space *, uint32_t psn);
/* Gives all memory back; the space is empty at nxt. */
void tx_space_drop(struct tx_space *, struct pool *);

static inline uint32_t tx_outstanding(const struct tx_space *s)
{
	return (s->nxt - s->una) & PSN_MASK;
}

static inline bool tx_is_outstanding(const struct tx_space *s, uint32_t psn)
{
	return ((psn - s->una) & PSN_MASK) < tx_outstanding(s);
}

/* The record of an outstanding PSN. */
static inline struct tx_record *tx_record(const struct tx_space *s, uint32_t psn)
{
	return &s->ring->chunks[(psn & (s->size - 1)) / TX_CHUNK][psn % TX_CHUNK];
}

/* tx_space_reserve() where the ring is full. */
bool tx_space_grow(struct tx_space *, struct pool *);
/* Makes room for one more, at most TX_WINDOW_MAX. False: no memory, or the window is full. */
static inline bool tx_space_reserve(struct tx_space *s, struct pool *pool)
{
	return s->nxt != s->end || tx_space_grow(s, pool);
}
/* How many more packets there is room for without new memory. */
static inline uint32_t tx_space_room(const struct tx_space *s)
{
	return (s->end - s->nxt) & PSN_MASK;
}
/* New packets that left together, all of the same length and on the same path, of items item, item + step, ... */
struct tx_run {
	uint32_t item, step;
	uint32_t count;
	uint16_t bytes;
	uint8_t path;
};
/* Records them as sent, from nxt on. tx_space_reserve() returned true, and there is room for all of them. */
void tx_space_sent(struct tx_space *, const struct tx_run *, uint64_t now_ns);
/* A LOST record leaves the retransmit queue and flies again. */
void tx_space_resent(struct tx_space *, uint32_t psn, uint8_t path, uint64_t now_ns);

/*
 * PSNs una .. psn are acknowledged, or one PSN is. min_rtt_ns of the paths, by index, reveals spurious
 * retransmissions; NULL: they are not detected. Adds to news. When nothing is left, tx_space_ack_to() empties
 * the space: it forgets the state of paths and gives a ring that grew back to the pool.
 */
void tx_space_ack_to(struct tx_space *, struct pool *, uint32_t psn, const uint64_t *min_rtt_ns, uint64_t now_ns,
		     struct tx_news *);
void tx_space_ack_one(struct tx_space *, uint32_t psn, const uint64_t *min_rtt_ns, uint64_t now_ns, struct tx_news *);
/* A FLYING or ACKED record joins the end of the retransmit queue. Harmless if it is LOST. */
void tx_space_lose(struct tx_space *, uint32_t psn);
/* A LOST record becomes the first to be sent again. */
void tx_space_hurry(struct tx_space *, uint32_t psn);

struct archive;
/*
 * A space of packets that leave on paths below path_count (base/archive.h). Loading, it is one as tx_space_init() makes
 * it; after an error it may have any records, and can be dropped.
 */
void tx_space_archive(struct archive *, struct tx_space *, struct pool *, uint32_t path_count);
