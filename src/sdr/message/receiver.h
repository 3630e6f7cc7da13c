/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The receiving end of a connection: a slot for each message outstanding, taken in the order in
 * which receives are posted. The n-th receive posted gets the n-th message sent.
 *
 * Posting and completing belong to one thread at a time; workers, each with a struct worker of its
 * own, may note packets beside it.
 */
#pragma once

#include "base/alloc.h"
#include "sdr/message/slot.h"

struct receiver {
	struct shape shape;
	uint64_t posted; /* the number of the next receive */
	struct slot *slots;
	_Atomic uint64_t *words; /* every slot's bitmaps */
	const struct alloc *alloc;
};

/* A worker's counts, and the slot that it is inside of. All zero: a new one. */
struct worker {
	uint64_t verdicts[SDR_VERDICTS];
	uint64_t bytes; /* of all packets, whatever the verdict; others may read it meanwhile */
	struct slot *inside;
	const struct receiver *of;
	uint32_t id, generation;
};

/* Borrows alloc until receiver_free(). The shape is valid. -ENOMEM. */
int receiver_init(struct receiver *, const struct shape *, const struct alloc *);
/* No worker is inside any slot. */
void receiver_free(struct receiver *);

/* Whether the slots of the next `count` receives are free. */
bool receiver_can_post(const struct receiver *, uint32_t count);
/* Posts a receive. -EINVAL: the length is 0 or beyond message_bytes; -EAGAIN: its slot is taken. */
int receiver_post(struct receiver *, uint64_t bytes, uint64_t *number);
/* The slot of a message that is posted and not completed; NULL for any other number. */
struct slot *receiver_slot(const struct receiver *, uint64_t number);
/* Ends a receive, whole or not. Returns its slot, which slot_reset() frees once it is no longer
 * slot_busy(). NULL for a number that is not posted. */
struct slot *receiver_complete(struct receiver *, uint64_t number);

/* One more than the number of the newest open message of which a packet has come; 0: there is none. */
uint64_t receiver_newest_touched(const struct receiver *);

/* Notes a packet that came by a QP of this generation: its immediate as the wire has it, and the
 * bytes it placed. The worker may stay inside the slot until worker_rest(), which it calls at the
 * end of each batch. */
enum sdr_verdict worker_note(struct worker *, struct receiver *, uint32_t generation, uint32_t imm, uint32_t bytes);
/* The worker has left its slot. */
void worker_rest(struct worker *);
