/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Coding, the sending end of one message: pieces in order, those that the receiver names again before new ones, and
 * parities behind each block of those that are coded. Which these are the owner says, or it is planned when the tail
 * begins: then loss is estimated upwards from what the receiver has seen, in this message and in those before it.
 *
 * A named piece goes once while its repetition can still be named in time. Later it goes several times, apart: as
 * often as makes another round unlikely. With `fresh` a parity of its group that was not sent yet goes in its place, while
 * there are any: each helps, whatever was lost. With `repeats` Selective Repeat sends again what is named (sr_sender.h).
 *
 * Idle fill: once all was sent, fresh parities may go on until the receiver has everything, so that too low an estimate
 * costs no second round. They are for when the owner has nothing else to send, and no more than a round trip's worth.
 *
 * The owner asks for pieces when it can send, hands over what the receiver says, and calls coded_sender_expire() when
 * coded_sender_deadline() has come. One thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/alloc.h"
#include "sdr/coded/coded_words.h"
#include "sdr/coded/loss_estimate.h"
#include "sdr/repeat/sr_sender.h"

struct coded_config {
	uint64_t rtt_ns;
	uint64_t piece_ns;      /* what a piece takes to leave, at least 1 */
	uint64_t timeout_ns;    /* of the whole message, from its start; less than an hour */
	double loss;            /* assumed, whatever is seen; 0: estimated */
	uint64_t behind_ns;     /* what comes behind the message keeps the link busy for so long: losses can be repaired
				then */
	uint32_t parity_pieces; /* the receiver has room for; 0: for all that a plan may want */
	bool fill;              /* plans leave parities for idle fill */
	/* What is told of a code that the owner has chosen, with a settled layout; layout.groups 0: none, and the rest
	 * counts for nothing. */
	struct coded_plan plan;
	bool fresh;         /* not with plan.repeats */
	bool silent;        /* the receiver is not told that all was sent */
	uint64_t rto_ns;    /* plan.repeats: of the repeat */
	uint32_t tries_max; /* of a group's answers, or of a piece's repeat: 1 .. 255 */
};

struct coded_again {
	uint64_t at_ns;
	uint32_t piece;
	uint32_t copies; /* left */
};

struct coded_ring {
	struct coded_again *entry;
	uint32_t mask, head, tail; /* free-running */
};

/* With `fresh`. */
struct coded_answered {
	uint32_t tick;    /* of the last naming that counted */
	uint8_t parities; /* that were sent: the next one is fresh */
	uint8_t tries;
};

struct coded_sender {
	struct coded_config config;
	struct loss_estimate estimate;
	struct coded_state told; /* the receiver's last STATE */
	uint64_t start_ns, word_ns, say_ns;
	uint32_t pieces;
	uint32_t unsent; /* the first piece that was never sent */
	bool planned;
	uint32_t block;   /* whose pieces are being sent */
	uint32_t parity;  /* of this block, in the order of sending; once its data was sent */
	uint32_t sayings; /* of the plan, before the next reason to say it */
	enum sr_end end;
	struct coded_plan plan;          /* with all parities that may be sent */
	uint32_t fills, fills_max;       /* pieces of idle fill: that went, and that may go */
	uint64_t fill_ns;                /* when the next may */
	struct coded_ring due, later;    /* named pieces that go now, and their further copies */
	uint32_t *sent_tick;             /* of each piece: when it was last sent */
	struct coded_answered *answered; /* of each group, with `fresh` */
	struct sr_sender sr;             /* with plan.repeats */
	uint64_t resent, parities;       /* pieces */
	const struct alloc *alloc;
};

struct coded_send {
	bool parity;
	bool resent;
	bool fill;      /* gives way to everything else */
	bool made;      /* a parity that did not grow while its block was sent */
	uint32_t piece; /* of the message, or of the parity message */
};

/*
 * pieces > 0; config's times are not 0. The estimate is that of earlier messages to this peer; the newest is in
 * `estimate`. Borrows alloc until coded_sender_free(). -ENOMEM.
 */
int coded_sender_init(struct coded_sender *, const struct coded_config *, uint32_t pieces, const struct loss_estimate *,
		      uint64_t now_ns, const struct alloc *);
void coded_sender_free(struct coded_sender *);

/* Pieces of the longest parity message that a plan for `pieces` may need. */
uint32_t coded_parity_pieces(const struct coded_config *, uint32_t pieces);

/* Whether every piece and parity has gone once. */
bool coded_sender_all_sent(const struct coded_sender *);
/* The next piece, which the caller sends now; false: none. */
bool coded_sender_next(struct coded_sender *, struct coded_send *, uint64_t now_ns);

/* A parity of idle fill, which the caller sends now, as it has nothing else to send; false: none now. A piece's time
 * lies between two. */
bool coded_sender_fill(struct coded_sender *, struct coded_send *, uint64_t now_ns);
/* When the next may go; UINT64_MAX: none will. */
uint64_t coded_sender_fill_deadline(const struct coded_sender *);

/* Takes a message of the receiver: SR_NACK, CODED_STATE, or SR_ACK of the repeat. False, and nothing changes, if it
 * cannot be of this message. */
bool coded_sender_take(struct coded_sender *, enum control_type, const uint8_t *payload, uint64_t now_ns);
void coded_sender_finish(struct coded_sender *, enum sr_end);

/* One that has passed asks for coded_sender_next(). */
uint64_t coded_sender_deadline(const struct coded_sender *);
void coded_sender_expire(struct coded_sender *, uint64_t now_ns);
/* Writes the payload of the message that is due, CODED_PLAN or PROBE, and returns its length; -1: none is. It belongs
 * behind what was sent before. */
int coded_sender_tell(struct coded_sender *, uint8_t[CODED_PLAN_LEN_MAX], enum control_type *, uint64_t now_ns);
