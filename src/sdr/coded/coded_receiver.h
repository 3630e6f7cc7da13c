/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Coding, the receiving end of one message: names the pieces that are lost and that no code can give back.
 *
 * A piece is missed when a later one has come. One that is not coded is named at once; another only when its group is
 * short, which shows when pieces of the next block, or the word that all was sent, are there, or when nothing has come for
 * a quarter of an RTT: as many pieces of the group are named as it lacks, and a few more. A naming is said three times
 * within RTT / 32, as words may be lost, and again after 17/16 RTT if the piece did not come and the group is still short.
 *
 * Where the plan says that Selective Repeat delivers what the code does not, nothing is named before the plan's time is
 * over or all was sent, and then sr_receiver.h acknowledges and names: for it all pieces are there that the code gives back.
 *
 * The owner reports each piece once, hands over what the sender says, calls coded_receiver_expire() when
 * coded_receiver_deadline() has come, and then coded_receiver_tell() until that returns 0. Recovering pieces is its own
 * affair. One thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/alloc.h"
#include "sdr/coded/coded_words.h"
#include "sdr/repeat/sr_receiver.h"

enum { CODED_STAGES = 4 };

/* Pieces in the order in which they will be named; each stage has one delay for all. */
struct coded_stage {
	uint32_t first, last;
};

struct coded_missing {
	uint32_t next;
	uint32_t tick; /* when to name it */
};

/* A group of the code. */
struct coded_group {
	uint16_t data, parity; /* pieces that are there */
	bool done;             /* it is whole, or can be computed */
};

struct coded_receiver {
	uint64_t rtt_ns, start_ns;
	uint32_t pieces, have;
	uint32_t next;          /* one more than the last piece that came */
	uint32_t parity_pieces; /* room for parities */
	bool planned, ended;
	bool waits, repeating; /* with plan.repeats: for its time; it has come */
	uint32_t groups_done;
	uint32_t head_have;                   /* pieces that are not coded */
	uint32_t judged_blocks;               /* blocks before were looked at for short groups */
	uint32_t look_blocks;                 /* blocks before have been sent */
	uint32_t finals;                      /* STATEs of the whole that are left */
	uint64_t came_ns, state_ns, judge_ns; /* UINT64_MAX: never */
	struct coded_state state;
	struct coded_plan plan;
	struct coded_stage stage[CODED_STAGES];
	struct coded_missing *missing; /* by piece; tick 0 and next 0: in no stage */
	uint64_t *bits, *named;        /* pieces that are there; that were named */
	uint64_t *parity_bits;         /* parities that are there */
	struct coded_group *group;     /* once planned */
	uint64_t *good;                /* with plan.repeats: pieces that are there or can be had */
	struct sr_receiver sr;
	const struct alloc *alloc;
};

/* pieces > 0, rtt_ns > 0; parity_pieces: of the receive for parities. Borrows alloc until coded_receiver_free().
 * -ENOMEM. */
int coded_receiver_init(struct coded_receiver *, uint64_t rtt_ns, uint32_t pieces, uint32_t parity_pieces,
			uint64_t now_ns, const struct alloc *);
void coded_receiver_free(struct coded_receiver *);

/* A piece of the message, or of the parity message, came; one that is there or has no place is ignored. */
void coded_receiver_came(struct coded_receiver *, bool parity, uint32_t piece, uint64_t now_ns);
/* Takes a message of the sender: CODED_PLAN, or PROBE. False, and nothing changes, if it cannot be of this message. */
bool coded_receiver_take(struct coded_receiver *, enum control_type, const uint8_t *payload, uint64_t now_ns);
/* Whether a piece of the plan's has come. */
bool coded_receiver_has(const struct coded_receiver *, const struct ec_piece *);

static inline bool coded_receiver_whole(const struct coded_receiver *r)
{
	return r->state.whole;
}
/* Whether it has said so as often as it does unasked. */
static inline bool coded_receiver_quiet(const struct coded_receiver *r)
{
	return r->state.whole && !r->finals;
}

/* When coded_receiver_expire() must be called, in nanoseconds; UINT64_MAX: never. */
uint64_t coded_receiver_deadline(const struct coded_receiver *);
void coded_receiver_expire(struct coded_receiver *, uint64_t now_ns);
/* Writes the payload of the message that is due; returns its length, at most max, or 0 when none is due. max >= 64. */
uint16_t coded_receiver_tell(struct coded_receiver *, uint8_t *, size_t max, enum control_type *, uint64_t now_ns);
