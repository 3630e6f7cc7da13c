/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A peer process of this host that does not get a processor. Between processes of one host hardly anything is lost; an
 * unacknowledged packet usually waits because its receiver waits for a processor. A clock cannot tell that from
 * loss, so no probe and no timeout of such a pair acts before the receiver has shown that it ran: it has read a
 * packet that was sent later, and ran on for long enough to acknowledge everything.
 *
 * Acknowledgements of any QP of the pair show that. If none come, one QP sends an RTT request, which a running
 * peer answers at once (veRoCE 10) and which is no retransmission; the others wait for the same answer. The wait
 * for a peer that does not answer is bounded, since it may not know RTT requests, or lose them: after a while one
 * QP of the pair acts without proof, and after a much longer time each does.
 *
 * This applies only if the nic's owner has patience with such peers (transport/peer.h), and not to peers
 * known to be dead.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct qp;
struct transport;

/* Whether the pair is between processes of this host: the nic's owner knows whether they live. */
bool stall_matters(const struct transport *, const struct qp *);
/*
 * Whether the peer is known to have run since `since_ns`, so that packets it has not acknowledged
 * are lost.
 */
bool stall_is_over(const struct transport *, const struct qp *, uint64_t since_ns);
/*
 * Whether a timer that is due at due_ns, because nothing came since `since_ns`, must wait. Call again at
 * stall_deadline(). May make the QP send an RTT request.
 */
bool stall_holds(struct transport *, struct qp *, uint64_t since_ns, uint64_t due_ns, uint64_t now_ns);
uint64_t stall_deadline(const struct transport *, const struct qp *, uint64_t since_ns, uint64_t due_ns);
