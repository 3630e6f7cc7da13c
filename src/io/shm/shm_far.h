/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Packets whose payload stays in their sender's memory until their receiver reads it there: how they are described in a ring. Pure.
 *
 *	description  for each packet: where the bytes that are left out are (8 bytes), their place in the packet (2), their number (2),
 *	             how many follow them in the packet (2), 0 (2); then the packet's bytes before and behind them, and zeros up to
 *	             a multiple of 8
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "base/pkt.h"

enum {
	SHM_FAR_BYTES_MAX = 62 << 10, /* of a description: a large packet that leaves out little is one */
	SHM_FAR_PIECES_MAX = 4 * PKT_TRAIN_MAX
};

/*
 * Describes packets that leave bytes out, from the first on as many as there is room for in SHM_FAR_BYTES_MAX, at least
 * one; their number. *bytes is set to the description's length, *lot to theirs.
 */
size_t shm_far_describe(uint8_t *to, const struct pkt *pkts, size_t n, uint32_t *bytes, uint64_t *lot);

/* Pieces of several trains to read, and where they belong. Those of a train are its own. */
struct shm_far {
	struct iovec here[SHM_FAR_PIECES_MAX], there[SHM_FAR_PIECES_MAX];
	size_t here_count, there_count;
};

/*
 * Lays the packets of a train out at `to`, back to back, without what must be read, and adds its
 * pieces, for which there is room, one for each of PKT_TRAIN_MAX packets. The bytes of the packets;
 * 0, with no piece added: it is no description of packets of `segment` bytes, the last of which may
 * be shorter, or they need more than `room`.
 */
uint32_t shm_far_lay_out(const uint8_t *from, uint32_t bytes, uint32_t segment, uint8_t *to, uint32_t room,
			 struct shm_far *);
