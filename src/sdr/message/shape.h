/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What both ends of an SDR connection agree on, and the arithmetic that follows from it: how a
 * message is cut into packets and chunks, and which slot and generation a message number has.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "sdr/message/imm.h"

enum {
	SHAPE_MTU_MIN = 64,
	SHAPE_MTU_MAX = 4096,
	SHAPE_CHUNK_PACKETS_MAX = 64, /* a 64-bit mask describes a chunk */
	SHAPE_CHANNELS_MAX = 128,
	SHAPE_GENERATIONS_MAX = 16,
};

struct shape {
	struct imm_split split;
	uint32_t mtu;           /* payload bytes of a packet; a power of two */
	uint32_t chunk_bytes;   /* 1 to 64 packets; a power of two */
	uint32_t slots;         /* messages outstanding; a power of two, at most 2^id_bits */
	uint32_t generations;   /* sets of transport QPs */
	uint32_t channels;      /* transport QPs of a set */
	uint64_t message_bytes; /* of the longest message; a power of two of at least a chunk */
};

/* Whether every member is within its limits, and all of them go together. */
bool shape_valid(const struct shape *);

static inline uint32_t shape_packets(const struct shape *s, uint64_t bytes)
{
	return (uint32_t)((bytes + s->mtu - 1) / s->mtu);
}

static inline uint32_t shape_chunks(const struct shape *s, uint64_t bytes)
{
	return (uint32_t)((bytes + s->chunk_bytes - 1) / s->chunk_bytes);
}

static inline uint32_t shape_chunk_packets(const struct shape *s)
{
	return s->chunk_bytes / s->mtu;
}

/* Where message number n is kept, at either end. */
static inline uint32_t shape_slot(const struct shape *s, uint64_t n)
{
	return (uint32_t)n & (s->slots - 1);
}

/* Whose transport QPs carry message number n. */
static inline uint32_t shape_generation(const struct shape *s, uint64_t n)
{
	return (uint32_t)(n / s->slots % s->generations);
}
