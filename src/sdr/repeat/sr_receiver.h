/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Selective Repeat, the receiving end: looks at the bitmap of one message and acknowledges the
 * chunks that are there. With `nack` it also names those that seem to be lost.
 *
 * An acknowledgement is due soon after chunks have come, at most every ack_ns; once more when nothing
 * has come for that long; and whenever the sender probes. When all is there it is sent three times. A
 * chunk is named missing when one at least `reorder` places behind it is there, or when nothing has
 * come for a quarter of an RTT, but not twice within an RTT.
 *
 * The owner calls sr_receiver_look() as often as it likes and at sr_receiver_deadline(), then
 * sr_receiver_tell() until that returns 0. One thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/alloc.h"
#include "sdr/message/control.h"

struct sr_receiver_config {
	uint64_t rtt_ns;
	uint64_t ack_ns;
	uint32_t reorder; /* chunks */
	bool nack;
};

struct sr_receiver {
	struct sr_receiver_config config;
	uint32_t chunks;
	uint32_t cum;     /* chunks before are there */
	uint32_t highest; /* one more than the last that is there */
	uint32_t have;
	uint32_t told;    /* `have` when the last round of acknowledgements began, which shows all there is */
	uint32_t shown;   /* that round has shown the chunks before; 0: it has ended */
	bool news;        /* chunks had come since the round before */
	bool ended;       /* all was sent */
	uint32_t finals;  /* acknowledgements of the whole that are left */
	uint64_t came_ns; /* the last arrival, or the start */
	uint64_t ack_ns;  /* when the next acknowledgement is due; UINT64_MAX: none */
	uint64_t last_ack_ns;
	uint64_t nack_ns;     /* when to look for holes again; UINT64_MAX: not before something comes */
	uint64_t *named_ns;   /* of each chunk: when it was named missing; with `nack` alone */
	const uint64_t *bits; /* as slot.h has them; read with acquire */
	const struct alloc *alloc;
};

/* chunks > 0, times > 0. Borrows bits and alloc until sr_receiver_free(). -ENOMEM. */
int sr_receiver_init(struct sr_receiver *, const struct sr_receiver_config *, const uint64_t *bits, uint32_t chunks,
		     uint64_t now_ns, const struct alloc *);
void sr_receiver_free(struct sr_receiver *);

/* Looks at the bitmap; returns whether chunks have come since the last look. */
bool sr_receiver_look(struct sr_receiver *, uint64_t now_ns);
static inline bool sr_receiver_whole(const struct sr_receiver *r)
{
	return r->cum == r->chunks;
}
/* Whether the next sr_receiver_tell() would name what is missing because no chunk has come for a while. Where chunks
 * are slow to come, packets of one may have: then sr_receiver_alive() says so first. */
bool sr_receiver_silent(const struct sr_receiver *, uint64_t now_ns);
void sr_receiver_alive(struct sr_receiver *, uint64_t now_ns);
/* All was sent: what is not there is named at the next sr_receiver_tell(), with `nack`. */
void sr_receiver_ended(struct sr_receiver *, uint64_t now_ns);
/* The sender has probed, or has sent a chunk that was there. */
void sr_receiver_probed(struct sr_receiver *, uint64_t now_ns);

/* When it must be called next, in nanoseconds; UINT64_MAX: never. */
uint64_t sr_receiver_deadline(const struct sr_receiver *);
/* Writes the payload of the message that is due, CONTROL_SR_ACK or CONTROL_SR_NACK. Returns its
 * length, at most max, or 0 when none is due. max >= 64. */
uint16_t sr_receiver_tell(struct sr_receiver *, uint8_t *, size_t max, enum control_type *, uint64_t now_ns);
