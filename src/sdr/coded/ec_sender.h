/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Erasure coding, the sending end: one message, its data pieces and the parities of its groups in
 * their order, and the answers to what the receiver lacks. Which bytes a parity has is the owner's;
 * here pieces are numbers.
 *
 * The owner asks for pieces when it can send, hands over what the receiver says, calls
 * ec_sender_expire() when ec_sender_deadline() has come, and ec_sender_tell() until that returns 0,
 * but only while all pieces it was given have left: the end marker says so. One thread.
 *
 * A peer that lies costs no memory, and at most parity_max + tries_max * data pieces a group.
 */
#pragma once

#include "sdr/coded/ec_config.h"
#include "sdr/repeat/sr_sender.h"

struct ec_sent_group {
	uint64_t answered_ns;
	uint32_t next;     /* in the list of those that are owed pieces */
	uint32_t parities; /* that were sent: the next one is fresh */
	uint32_t owed;     /* pieces */
	uint32_t again;    /* when no parity is fresh: the data piece that is sent next */
	uint32_t marker;   /* the end marker that will follow the last answer */
	uint8_t tries;
};

struct ec_sender {
	struct ec_config config;
	struct ec_sent_group *group;
	struct sr_list due;     /* groups that are owed pieces */
	uint32_t block, turn;   /* of the piece that is next unasked; block: all were sent */
	uint32_t block_turns;   /* of this block */
	struct sr_sender sr;    /* with EC_FALLBACK_SR; its chunks are the data pieces */
	uint64_t end_ns;        /* the message's timeout */
	uint64_t tell_ns;       /* the next end marker or PROBE; UINT64_MAX: pieces are to be sent */
	uint32_t marker, tells; /* the last end marker, and how often it will be sent soon */
	enum sr_end end;
	uint32_t lost;                   /* data pieces that had not come, once end is SR_DONE */
	uint64_t sent_data, sent_parity; /* unasked */
	uint64_t answered, suppressed;   /* pieces sent as an answer; answers that were not given */
	const struct alloc *alloc;
};

/* The config is valid. Borrows alloc until ec_sender_free(). -ENOMEM. */
int ec_sender_init(struct ec_sender *, const struct ec_config *, uint64_t now_ns, const struct alloc *);
void ec_sender_free(struct ec_sender *);

/* The piece to send next: an answer before a piece that was not asked for. False if there is none
 * now. */
bool ec_sender_next(const struct ec_sender *, struct ec_piece *);
/* The piece of ec_sender_next() was handed to the network. */
void ec_sender_sent(struct ec_sender *, uint64_t now_ns);
/* Whether all that is not asked for was sent. */
bool ec_sender_all_sent(const struct ec_sender *);

/* Takes a message of the receiver: EC_ACK, EC_NACK, EC_SHORT, SR_ACK or SR_NACK. False, and nothing
 * changes, if it cannot be of this message. */
bool ec_sender_take(struct ec_sender *, enum control_type, const uint8_t *payload, uint64_t now_ns);
/* Ends the sending: one of the two has given up. */
void ec_sender_finish(struct ec_sender *, enum sr_end);

/* When to call ec_sender_expire() and ec_sender_tell(); UINT64_MAX: never. */
uint64_t ec_sender_deadline(const struct ec_sender *);
void ec_sender_expire(struct ec_sender *, uint64_t now_ns);
/* Writes the payload of the message that is due, EC_END or PROBE: 1, and its length. 0: none. */
bool ec_sender_tell(struct ec_sender *, uint8_t payload[EC_END_LEN], uint16_t *length, enum control_type *,
		    uint64_t now_ns);
