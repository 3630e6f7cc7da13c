/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Fence indicator (out-of-order R22): a work request whose bytes overlap those of an older, incomplete one
 * is held back until that one is complete, where weak order (veRoCE 7.6) could otherwise be visible. For
 * programs that do not fence because strict order made it unnecessary.
 *
 * Two places count: the local memory that a WQE's elements name, and the remote memory that a WRITE, READ or
 * atomic names. Addresses alone decide whether two overlap: several keys may open the same bytes,
 * and a needless wait costs less than a missing one. Where bytes overlap, these pairs count:
 *
 *     older            newer                    because
 *     READ, atomic     sends from the result    the result has not arrived yet
 *     READ, atomic     READ, atomic, to the     responses of the older may arrive, or arrive again, after
 *                      same local bytes         those of the newer
 *     WRITE            WRITE                    packets of the older may be placed after those of the newer
 *     READ, atomic     WRITE to what it reads   the WRITE is placed when it arrives, the READ takes its turn
 *     ATOMIC WRITE     WRITE to what it writes  likewise
 *     READ             atomic, ATOMIC WRITE on  its responses may leave, or leave again, after that ran
 *                      what it reads
 *
 * These do not:
 *
 *     SEND, WRITE      READ, atomic, into what  it is executed when all of the older has arrived; later
 *                      the older sends from     copies of that are not placed (R3)
 *     WRITE            READ, atomic of it       executed when the older is placed (R8)
 *     atomic           READ, atomic             executed in order, and the older keeps its result (R9)
 *     ATOMIC WRITE     READ, atomic, another    executed in order
 *     any              FLUSH                    it names no bytes, and waits for all before it (R23)
 *     any              SEND                     the peer chooses its place, which is unknown here
 *     SEND             any                      likewise
 *
 * (The last two for remote bytes only.) Overlaps that are not detected: local bytes that are remote ones too, where the
 * peer is this process or shares its memory; the same remote bytes under different addresses; other queue pairs.
 *
 * Private to src/transport/veroce.
 */
#pragma once

#include <stdbool.h>

#include "queue/wqe.h"

/* Whether `newer` may not be sent before `older` is complete. Both are as posted; the opcodes are veRoCE's. */
bool fence_indicated(const struct send_wqe *older, const struct send_wqe *newer);
