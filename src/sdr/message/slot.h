/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One posted receive: which of its packets have come, which chunks are whole, and the user's immediate as far as it is
 * known. Many workers may note packets of one slot at a time; its owner opens and closes it.
 *
 *            slot_open               slot_close              slot_reset, once not slot_busy
 *     FREE -------------> ACTIVE ---------------> CLOSED ------------------------------------> FREE
 *
 * FREE: no bit is set, no worker enters. ACTIVE: workers enter with slot_enter() and leave with slot_leave(); bits go
 * from 0 to 1 and never back. CLOSED: no worker enters any more; those inside leave soon, and until then the slot is
 * busy.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sdr/message/shape.h"

/* What became of a packet; the first three set something, the others are only counted. */
enum sdr_verdict {
	SDR_TAKEN,       /* a new packet */
	SDR_CHUNK,       /* a new packet, and with it its chunk is whole */
	SDR_IMM_ONLY,    /* a packet without payload that brings a fragment */
	SDR_DUP,         /* the packet was there; its fragment is taken all the same */
	SDR_DROP_ID,     /* no such slot */
	SDR_DROP_LATE,   /* nothing is posted there, or of another generation */
	SDR_DROP_OFFSET, /* beyond the buffer */
	SDR_DROP_LEN,    /* not as long as the packet at that offset is */
	SDR_VERDICTS
};

struct slot {
	_Atomic uint64_t state; /* the message's number, whether active, and the workers inside */
	_Atomic uint64_t imm;   /* the user's immediate, and above it which fragments have come */
	uint32_t packets, chunks;
	uint32_t last_bytes;  /* of the last packet */
	uint64_t last_mask;   /* the packets of the last chunk */
	_Atomic bool touched; /* any packet came */
	bool open;            /* between slot_open() and slot_reset(); the owner's */
	_Atomic uint64_t *packet_bits;
	_Atomic uint64_t *chunk_bits; /* read by the user: chunk i is bit i % 8 of byte i / 8 */
};

/* The words that a slot's two bitmaps take, for the longest message; the second starts on a cache line. */
size_t slot_packet_words(const struct shape *);
size_t slot_chunk_words(const struct shape *);

/* The slot is FREE. 0 < bytes <= message_bytes. */
void slot_open(struct slot *, const struct shape *, uint64_t number, uint64_t bytes);
/* The slot is ACTIVE. */
void slot_close(struct slot *);
bool slot_busy(const struct slot *);
/* The slot is CLOSED and not busy. */
void slot_reset(struct slot *);
/* Whether it is ACTIVE with this message. */
bool slot_holds(const struct slot *, uint64_t number);

/* Whether the slot is ACTIVE with a message of that generation; if so the worker is inside. */
bool slot_enter(struct slot *, const struct shape *, uint32_t generation);
void slot_leave(struct slot *);
/* Notes a packet of which `bytes` were placed; the worker is inside. When the chunk's bit can be seen, so can every
 * byte of the chunk. */
enum sdr_verdict slot_note(struct slot *, const struct shape *, struct imm, uint32_t bytes);

/* Writes the user's immediate; false until every fragment of it has come. */
bool slot_imm(const struct slot *, struct imm_split, uint32_t *user);
/* The packets of a chunk that have come, bit j for packet j. chunk < chunks. */
uint64_t slot_chunk_mask(const struct slot *, const struct shape *, uint32_t chunk);
