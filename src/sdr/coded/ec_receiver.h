/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Erasure coding, the receiving end: looks at the bitmaps of one message's data pieces and of its
 * parities, acknowledges the message as soon as every group has enough pieces to be recovered, and
 * says which groups have not.
 *
 * With EC_FALLBACK_PARITY a group is short when pieces of a later block have come, `reorder` places
 * behind its last; when the end marker is there and guard_ns have passed; or when nothing has come
 * for a quarter of an RTT. It is not said again before the next end marker, or 5/4 RTT. With
 * EC_FALLBACK_SR all groups are judged together, fallback_ns after the first piece or after the end
 * marker, and from then on the repeat is acknowledged. The acknowledgement of the whole is sent
 * three times, and again whenever the sender asks.
 *
 * The owner calls ec_receiver_look() as often as it likes and at ec_receiver_deadline(), then
 * ec_receiver_tell() until that returns 0. What it then recovers, and where, is its own affair. One
 * thread.
 */
#pragma once

#include "sdr/coded/ec_config.h"
#include "sdr/repeat/sr_receiver.h"

struct ec_came_group {
	uint64_t named_ns;
	uint32_t data, parity; /* pieces that have come */
	uint32_t named_marker;
	bool named, enough;
};

struct ec_receiver {
	struct ec_config config;
	const uint64_t *data_bits, *parity_bits; /* read with acquire */
	uint64_t *data_seen, *parity_seen;       /* those that count already */
	uint32_t data_open, parity_open;         /* words before are full */
	struct ec_came_group *group;
	uint32_t recovered;      /* groups with enough pieces */
	uint32_t first_short;    /* groups before have enough */
	uint32_t came;           /* data pieces */
	uint64_t front;          /* one more than the last turn of which a piece has come */
	uint32_t overtaken;      /* blocks before were overtaken */
	uint32_t marker, judged; /* the last end marker; the last whose guard time has passed */
	bool ended, silent;      /* everything was sent; nothing has come for a while */
	uint64_t judge_ns, silent_ns, short_ns, fallback_ns, ack_ns; /* UINT64_MAX: not due */
	uint32_t finals;
	uint64_t *good; /* with EC_FALLBACK_SR: the data pieces that are there or can be had */
	struct sr_receiver sr;
	const struct alloc *alloc;
};

/* The config is valid. Borrows the bitmaps, which have as many bits as their message has pieces,
 * and alloc until ec_receiver_free(). parity_bits may be NULL without parity_max. -ENOMEM. */
int ec_receiver_init(struct ec_receiver *, const struct ec_config *, const uint64_t *data_bits,
		     const uint64_t *parity_bits, uint64_t now_ns, const struct alloc *);
void ec_receiver_free(struct ec_receiver *);

/* Looks at the bitmaps; returns whether pieces have come since the last look. */
bool ec_receiver_look(struct ec_receiver *, uint64_t now_ns);
/* Whether all of the message is there or can be recovered. No bit is looked at from then on. */
static inline bool ec_receiver_whole(const struct ec_receiver *r)
{
	return r->recovered == r->config.layout.groups;
}
/* Whether a piece had come at the last look. */
bool ec_receiver_has(const struct ec_receiver *, const struct ec_piece *);

/* Takes a message of the sender: EC_END or PROBE. False if it cannot be of this message. */
bool ec_receiver_take(struct ec_receiver *, enum control_type, const uint8_t *payload, uint64_t now_ns);

uint64_t ec_receiver_deadline(const struct ec_receiver *);
/* Writes the payload of the message that is due: EC_ACK, EC_SHORT, EC_NACK, SR_ACK or SR_NACK.
 * Returns its length, at most max, or 0 when none is due. max >= 64. */
uint16_t ec_receiver_tell(struct ec_receiver *, uint8_t *, size_t max, enum control_type *, uint64_t now_ns);
