/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Credits of one virtual lane of a link, at both ends (IBTA 7.9.4), as arithmetic without time. The receiver owns a
 * buffer, counted in blocks of 64 bytes, and tells the sender up to which block it may send; counters are modulo 4096.
 *
 *     sender            FCTBS: blocks sent   FCCL: the limit that it was told
 *     receiver          ABR: blocks received; limit = ABR + min(free blocks, 2048)
 *
 * A flow control packet carries the FCTBS of one direction and the limit of the other one. It makes ABR equal to
 * FCTBS, so packets that were lost on the wire cost no credits, and a lost flow control packet is made up for by the
 * next.
 */
#pragma once

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

#include "wire/flow_control.h"

enum {
	CREDIT_MASK = 0xfff,
	CREDIT_DELIMITER_BYTES = 2, /* symbols around a packet: they take time, and no credits */
	CREDIT_FRAME_BYTES = FLOW_CONTROL_LEN + CREDIT_DELIMITER_BYTES /* a flow control packet on the wire */
};

struct credit_sender {
	uint16_t fctbs, fccl;
};

struct credit_receiver {
	uint16_t abr;
	uint32_t buffer_blocks, used_blocks, used_max;
};

/* Blocks of a packet (IBTA 7.9.4.1), from LRH to VCRC, by the bytes that it takes on the wire. */
static inline uint16_t credit_blocks(uint32_t wire_bytes)
{
	uint32_t bytes = wire_bytes > CREDIT_DELIMITER_BYTES ? wire_bytes - CREDIT_DELIMITER_BYTES : 1;

	return (uint16_t)((bytes + CREDIT_BLOCK_BYTES - 1) / CREDIT_BLOCK_BYTES);
}

static inline bool credit_may_send(const struct credit_sender *s, uint16_t blocks)
{
	return credit_allows(s->fccl, s->fctbs, blocks);
}

static inline void credit_sent(struct credit_sender *s, uint16_t blocks)
{
	s->fctbs = (s->fctbs + blocks) & CREDIT_MASK;
}

/* FCCL: up to where the sender may go, at most 2048 blocks ahead however large the buffer is. */
static inline uint16_t credit_limit(const struct credit_receiver *r)
{
	uint32_t room = r->buffer_blocks - r->used_blocks;

	return (uint16_t)((r->abr + (room < CREDIT_BLOCKS_MAX ? room : CREDIT_BLOCKS_MAX)) & CREDIT_MASK);
}

/* False: there is no room, which no sender that keeps to its credits can cause; nothing is done. */
static inline bool credit_received(struct credit_receiver *r, uint16_t blocks)
{
	if (r->used_blocks + blocks > r->buffer_blocks)
		return false;
	r->abr = (r->abr + blocks) & CREDIT_MASK;
	r->used_blocks += blocks;
	if (r->used_blocks > r->used_max)
		r->used_max = r->used_blocks;
	return true;
}

static inline void credit_freed(struct credit_receiver *r, uint16_t blocks)
{
	assert(blocks <= r->used_blocks);
	r->used_blocks -= blocks;
}

/* A flow control packet has come, with the counters of the far end. */
static inline void credit_heard(struct credit_sender *s, struct credit_receiver *r, uint16_t fctbs, uint16_t fccl)
{
	s->fccl = fccl;
	r->abr = fctbs;
}
