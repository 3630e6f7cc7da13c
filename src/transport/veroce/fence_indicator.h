/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Fence indicator (out-of-order R22): a work request whose bytes meet those of an older one that is not
 * complete is held back until that one is, where weak order (veRoCE 7.6) could otherwise be seen. For
 * programs that do not fence because strict order spared them to.
 *
 * Two places count: the local memory that a WQE's elements name, and the remote memory that a WRITE, READ or
 * atomic names. Whether two of a place meet is told by addresses alone: several keys may open the same bytes,
 * and to wait in vain costs less than not to wait. Where bytes meet, these pairs count:
 *
 *     older            newer                    because
 *     READ, atomic     sends from the result    the result is not here yet
 *     READ, atomic     READ, atomic, to the     responses of the older may come, or come again, after
 *                      same local bytes         those of the newer
 *     WRITE            WRITE                    packets of the older may be placed after those of the newer
 *     READ, atomic     WRITE to what it reads   the WRITE is placed when it comes, the READ takes its turn
 *     READ             atomic on what it reads  its responses leave, and leave again, after the atomic ran
 *
 * These do not:
 *
 *     SEND, WRITE      READ, atomic, into what  it is executed when all of the older has arrived; copies of
 *                      the older sends from     that are not placed any more (R3)
 *     WRITE            READ, atomic of it       executed when the older is placed (R8)
 *     atomic           READ, atomic             executed in order, and the older keeps its result (R9)
 *     any              SEND                     where it lands is the peer's to say, and here unknown
 *     SEND             any                      likewise
 *
 * (The last two of remote bytes only.) What is not seen: local bytes that are remote ones too, the peer being
 * this process or sharing its memory; the same remote bytes under different addresses; other queue pairs.
 *
 * Private to src/transport/veroce.
 */
#ifndef TRANSPORT_VEROCE_FENCE_INDICATOR_H
#define TRANSPORT_VEROCE_FENCE_INDICATOR_H

#include <stdbool.h>

#include "queue/wqe.h"

/* Whether `newer` may not be sent before `older` is complete. Both are as posted; the opcodes are veRoCE's. */
bool fence_indicated(const struct send_wqe *older, const struct send_wqe *newer);

#endif
