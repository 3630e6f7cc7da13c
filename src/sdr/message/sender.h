/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The sending end of a connection: which messages the peer has granted, what was handed over for
 * each, and the packets that come of it, one after the other. A packet is one Write Only with
 * Immediate of its own, so that no loss and no order touches another.
 *
 * A message is started, given blocks and ended; a one-shot send does all three at once. A message is
 * done when it has ended and the transport has given each of its packets back. One thread at a time.
 */
#pragma once

#include "base/alloc.h"
#include "sdr/message/control.h"
#include "sdr/message/shape.h"

enum { SENDER_BLOCKS = 4096 };

/* A piece of a message: it lies at `addr` here and from `offset` on in the receive buffer. */
struct send_block {
	uint64_t addr;
	uint64_t bytes;
	uint64_t offset;
	uint32_t lkey;
	bool fill; /* its packets go by the channel behind the last, which gives way to the others */
};

/* A packet, as it is posted to a transport QP. */
struct send_packet {
	uint32_t slot;
	uint32_t generation, channel; /* the QP; channel shape.channels: that of idle fill */
	uint32_t imm;
	uint32_t bytes; /* 0: only the immediate counts */
	uint32_t lkey, rkey;
	uint64_t addr;
	uint64_t offset; /* from the start of the receive buffer */
};

struct sending {
	uint64_t number;
	struct grant grant;
	uint32_t imm;
	bool has_imm;
	bool taken, ended;
	uint32_t frags;       /* those that were queued, by their place */
	uint32_t blocks;      /* queued */
	uint64_t bytes;       /* of them, that are still to be handed to the transport */
	uint32_t outstanding; /* packets handed to the transport */
};

struct queued {
	struct send_block block;
	uint32_t slot;
	uint32_t packet, packets; /* the next one, and how many */
	uint32_t pads;            /* places of fragments that go without payload */
};

/* Blocks in the order in which they go; SENDER_BLOCKS at most. */
struct sender_queue {
	uint32_t head, tail; /* free-running */
	struct queued *blocks;
};

/* All of the first go before any of the second. */
enum { SENDER_REPEATS, SENDER_NEW, SENDER_QUEUES };

struct sender {
	struct shape shape;
	uint64_t granted; /* messages below may be started */
	uint64_t started; /* the number of the next message */
	struct grant *grants;
	struct sending *slots;
	struct sender_queue queues[SENDER_QUEUES];
	const struct alloc *alloc;
};

/* Borrows alloc until sender_free(). The shape is valid. -ENOMEM. */
int sender_init(struct sender *, const struct shape *, const struct alloc *);
void sender_free(struct sender *);

/* Takes a CTS. Grants that are old or come too early are ignored. */
void sender_cts(struct sender *, const struct cts *, const uint8_t *payload);

/* The length of the receive that the next message goes to; false while none is granted. */
bool sender_granted(const struct sender *, uint64_t *bytes);
/* The same of the message that comes `ahead` after the next one; ahead < slots. */
bool sender_granted_ahead(const struct sender *, uint32_t ahead, uint64_t *bytes);
/* Starts the next message: -EAGAIN when it is not granted or the slot is not free. imm: NULL for
 * none. */
int sender_start(struct sender *, const uint32_t *imm, uint64_t *number);
/* Queues a block: -EINVAL when the message has ended or is unknown, the block is empty, starts
 * within a chunk, ends within one before the buffer's end, or leaves what was granted; -EAGAIN when
 * the queue is full. */
int sender_add(struct sender *, uint64_t number, const struct send_block *);
/* The same, but the block goes before all that was not handed over by this call. */
int sender_repeat(struct sender *, uint64_t number, const struct send_block *);
/* As sender_add() for the layers above, which may send whole packets of a chunk: -EINVAL when it starts or
 * ends within a packet instead. */
int sender_add_packets(struct sender *, uint64_t number, const struct send_block *);
/* Ends the message: no more blocks. -EINVAL: it has ended or is unknown; -EAGAIN: the queue is full. */
int sender_end(struct sender *, uint64_t number);
/* Ends the message, and what of it is queued never goes, fragments of its immediate included. -EINVAL: it is unknown. */
int sender_cancel(struct sender *, uint64_t number);
/* Starts a message of one block and ends it; on any error no number is used. -EINVAL also for a block
 * of no bytes without an immediate. */
int sender_post(struct sender *, const uint32_t *imm, const struct send_block *, uint64_t *number);

/* Whether the message has ended and the transport has given everything back; then the slot is free
 * again, and the number unknown. -EINVAL: unknown. */
int sender_done(struct sender *, uint64_t number);
/* Whether all that was handed over for the message has left. True for one that is unknown. */
bool sender_left(const struct sender *, uint64_t number);
/* The bytes that were handed over for it and not to the transport yet. -EINVAL: unknown. */
int sender_waiting(struct sender *, uint64_t number, uint64_t *bytes);
/* Whether nothing is queued. */
bool sender_idle(const struct sender *);
/* Blocks of all messages that are queued. */
static inline uint32_t sender_queued(const struct sender *s)
{
	return s->queues[SENDER_REPEATS].tail - s->queues[SENDER_REPEATS].head + s->queues[SENDER_NEW].tail -
	       s->queues[SENDER_NEW].head;
}

/* The packet to hand over next; false if there is none. Call sender_sent() once it is handed over. */
bool sender_peek(const struct sender *, struct send_packet *);
void sender_sent(struct sender *);
/* The transport has given `count` packets of a slot back. */
void sender_returned(struct sender *, uint32_t slot, uint32_t count);
