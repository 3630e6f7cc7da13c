/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The packets of a turn of output, one behind the other in one arena, so that those of a
 * train are one piece of memory. Decides which packets form a train and seals each with its ICRC.
 *
 * Private to src/transport and src/iwarp.
 */
#pragma once

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/pkt.h"
#include "transport/seal.h"

enum {
	/* Packets of a turn, and bytes for them and their flows, that data leave to acknowledgements. */
	TX_ANSWERS = 4,
	TX_ANSWERS_BYTES = 2048,
	TX_DATA_BYTES = 2 * PKT_TRAIN_BYTES_MAX + 2048, /* two full trains, and kept flows */
	TX_ARENA_BYTES = TX_DATA_BYTES + TX_ANSWERS_BYTES,
	TX_HEADROOM_MAX = 96 /* headers, pad and ICRC around a payload of one path MTU */
};

struct icrc_ctx;
struct mr_far;

struct tx {
	uint8_t *arena; /* TX_ARENA_BYTES */
	size_t used;
	struct pkt *burst; /* the caller's array */
	size_t count;
	size_t max;              /* of data; 0: the turn was full of them when an acknowledgement was let in */
	size_t most;             /* of all */
	struct mr_far *far;      /* what the next packet leaves out; NULL: nothing */
	const struct seal *seal; /* of the packets of the QP whose turn it is */
	struct icrc_ctx *icrc;   /* borrowed; for seals */
	uint32_t secret;         /* likewise; not 0 only in the turn of a QP that has one */
	uint16_t train_max;      /* packets a train may have: PKT_TRAIN_MAX, or 1 where the back end has none */
	uint64_t bytes;
	uint32_t turn; /* counts them */
	/* the train being built */
	const struct flow *flow;
	uint32_t dqpn;
	uint32_t train_len;
	uint32_t train_bytes;
	uint16_t train_count;
	bool train_open;                   /* the last packet was as long as the first */
	const struct int_stack *int_stack; /* of the next packet */
	const struct flow *kept;           /* by tx_keep_flow in this turn */
	const void *kept_for;              /* its owner, and which of the owner's flows it is, as tx_name_flow() */
	uint32_t kept_which;               /* was told; NULL: it was not */
};

/* Starts a turn that fills `burst`, at most max packets. A turn of few packets leaves none to acknowledgements. */
void tx_start(struct tx *, struct pkt *burst, size_t max);

/*
 * Room for a packet of up to `len` bytes, or NULL: the turn is full. Commits nothing. A turn ends with
 * its last full train: a packet that would begin another train then waits for the next turn.
 */
static inline uint8_t *tx_room(const struct tx *tx, uint32_t len)
{
	bool full = tx->train_count && (!tx->train_open || tx->train_count == tx->train_max ||
					tx->train_bytes + len > PKT_TRAIN_BYTES_MAX);

	if (tx->count >= tx->max || tx->used + (full ? PKT_TRAIN_BYTES_MAX : len) > TX_DATA_BYTES)
		return NULL;
	return tx->arena + tx->used;
}

/* tx_room_for_answer() in a turn that is full of data. */
uint8_t *tx_room_behind_data(struct tx *, uint32_t len);

/*
 * Likewise for a packet that acknowledges, which leaves behind data that fill the turn, too: they may fill the next one
 * as well, and the peer may have nothing else to wait for. There is no room for data behind it then.
 */
static inline uint8_t *tx_room_for_answer(struct tx *tx, uint32_t len)
{
	uint8_t *out = tx_room(tx, len);

	return out ? out : tx_room_behind_data(tx, len);
}

/* The bytes of the packet that was committed last in this turn; there is one. */
static inline const uint8_t *tx_last(const struct tx *tx)
{
	return tx->burst[tx->count - 1].data;
}

/* Its length, sealed. */
static inline uint32_t tx_last_len(const struct tx *tx)
{
	return tx->burst[tx->count - 1].len;
}

/*
 * A copy of a flow that may change or vanish before the turn's packets are sent (an address handle's,
 * in a WQE that is completed at once). Returns the same pointer for a flow equal to the one copied last, so
 * that trains form. NULL: the turn is full.
 */
const struct flow *tx_keep_flow(struct tx *, const struct flow *);

/*
 * The flow that was kept last, if it has this owner and index; NULL: the caller makes it and keeps
 * it. So callers with a flow for each of several paths do not make one for each packet.
 */
static inline const struct flow *tx_kept_flow(const struct tx *tx, const void *whose, uint32_t which)
{
	return tx->kept_for == whose && tx->kept_which == which ? tx->kept : NULL;
}

/* Names owner and index of the flow that was kept last. */
static inline void tx_name_flow(struct tx *tx, const void *whose, uint32_t which)
{
	tx->kept_for = whose;
	tx->kept_which = which;
}

/*
 * Takes the packet that was written at tx_room(), `len` bytes, and seals it behind them. Packets of
 * one flow (the same pointer) to one QP that follow each other make trains. A train never mixes QPs: a receiving host
 * that shares the port among processes steers a coalesced datagram by its first QPN.
 */
void tx_commit(struct tx *, const struct flow *flow, uint32_t dqpn, uint32_t len);

/* Takes a packet that was written at tx_room_for_answer(). It is whole, whatever a packet before it left out. */
static inline void tx_commit_answer(struct tx *tx, const struct flow *flow, uint32_t dqpn, uint32_t len)
{
	/* So what a packet that was given up would have left out does not lie in it. */
	assert(len < PKT_FAR_BYTES_MIN);
	assert(len + tx->seal->overhead + sizeof(*flow) + _Alignof(struct flow) <= TX_ANSWERS_BYTES / TX_ANSWERS);
	tx_commit(tx, flow, dqpn, len);
}

/* Bytes of the arena that are left. */
static inline size_t tx_left(const struct tx *tx)
{
	return tx->count == tx->most ? 0 : TX_ARENA_BYTES - tx->used;
}

/* Takes `len` bytes of a stream that were written at tx_left(). Those of one flow (the same pointer) that follow each
 * other become one packet. */
void tx_commit_bytes(struct tx *, const struct flow *, uint32_t len);
/* Says what happens to the stream behind them. The event is borrowed until the next turn. */
struct pkt *tx_commit_event(struct tx *, const struct flow *, const struct stream_event *);

/* The next packet carries this telemetry, which is borrowed until the next turn; NULL: none. */
static inline void tx_telemetry(struct tx *tx, const struct int_stack *int_stack)
{
	tx->int_stack = int_stack;
}

/* Ends the turn: counts the trains. Returns the packets laid out. */
size_t tx_finish(struct tx *);
