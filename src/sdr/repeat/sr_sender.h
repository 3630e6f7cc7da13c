/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Selective Repeat, the sending end: one message, its chunks sent in order and each one again until
 * the receiver has it. A chunk is sent again when it was not acknowledged for as long as an RTO, or
 * at once when the receiver names it missing. The network may lose, delay and reorder; a stale
 * acknowledgement takes nothing back.
 *
 *      UNSENT ---> SENT <---> DUE ---> (SENT)          DUE: waits to be sent again
 *                    \________/________> ACKED
 *
 * The owner asks for chunks when it can send, hands over what the receiver says, and calls
 * sr_sender_expire() when sr_sender_deadline() has come. One thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/alloc.h"
#include "sdr/message/control.h"

struct sr_config {
	uint64_t rtt_ns;
	uint64_t rto_ns;     /* from a chunk's sending to its repetition without an answer */
	uint64_t timeout_ns; /* of the whole message, from its start */
	uint32_t tries_max;  /* of a chunk */
};

enum sr_state { SR_UNSENT, SR_SENT, SR_DUE, SR_ACKED };

/* How the sending of a message has ended. */
enum sr_end { SR_RUNNING, SR_DONE, SR_TIMED_OUT, SR_TRIED_TOO_OFTEN, SR_ABORTED };

struct sr_chunk {
	uint64_t sent_ns;
	uint32_t next, prev; /* in the list of its state */
	uint8_t state;
	uint8_t tries;
};

/* Indices of chunks; SR_NONE where there is none. */
struct sr_list {
	uint32_t first, last;
};

struct sr_sender {
	struct sr_config config;
	uint32_t chunks, unsent, acked; /* unsent: the first that was never sent */
	uint32_t cum;                   /* chunks before were acknowledged together */
	struct sr_list sent, due;       /* by time */
	uint64_t end_ns;                /* the message's timeout */
	uint64_t rto_ns;                /* now: config's, or more where acknowledgements take longer */
	uint64_t word_ns;               /* the last word of the receiver, or the last PROBE */
	bool probe;                     /* one is to be sent */
	enum sr_end end;
	uint64_t resent, suppressed; /* chunks */
	struct sr_chunk *chunk;
	uint64_t *known; /* a bit for each chunk: acknowledged */
	const struct alloc *alloc;
};

/* chunks > 0; times in the config > 0, 0 < tries_max < 256. Borrows alloc until sr_sender_free().
 * -ENOMEM. */
int sr_sender_init(struct sr_sender *, const struct sr_config *, uint32_t chunks, uint64_t now_ns,
		   const struct alloc *);
void sr_sender_free(struct sr_sender *);

/* Before anything is sent: nothing is to be sent but what sr_sender_want() names. Such a sender is
 * SR_DONE whenever it has nothing left to do, and runs on when something is wanted again. */
void sr_sender_hold(struct sr_sender *);
/* The chunk is wanted, if it counts as acknowledged. */
void sr_sender_want(struct sr_sender *, uint32_t chunk);

/* The chunk to send next: one that is due again before a new one. False if there is none now. */
bool sr_sender_next(const struct sr_sender *, uint32_t *chunk);
/* The chunk was handed to the network. */
void sr_sender_sent(struct sr_sender *, uint32_t chunk, uint64_t now_ns);

/* Takes the payload of an SR_ACK. False, and nothing changes, if it cannot be of this message. */
bool sr_sender_ack(struct sr_sender *, const uint8_t *payload, uint64_t now_ns);
/* Takes that of an SR_NACK. Chunks that were never sent, or were sent again less than an RTT ago, do not become
 * due. */
bool sr_sender_nack(struct sr_sender *, const uint8_t *payload, uint64_t now_ns);
/* Ends the sending: the receiver has all it needs, or one of the two has given up. */
void sr_sender_finish(struct sr_sender *, enum sr_end);

/* When to call sr_sender_expire(); UINT64_MAX: never. */
uint64_t sr_sender_deadline(const struct sr_sender *);
void sr_sender_expire(struct sr_sender *, uint64_t now_ns);
/* Whether to send a PROBE now; the next call returns false. */
bool sr_sender_take_probe(struct sr_sender *);
