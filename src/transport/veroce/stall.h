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
#ifndef TRANSPORT_VEROCE_STALL_H
#define TRANSPORT_VEROCE_STALL_H

#include <stdbool.h>
#include <stdint.h>

struct pair;
struct qp;
struct transport;

/*
 * The state of a pair. Times of sending are by our clock; times of different clocks are never
 * compared.
 */
struct stall {
	uint64_t ran_ns;  /* the peer has read all packets sent until then, and ran on for a while */
	uint64_t read_ns; /* ... has read all packets sent until then: known since told_ns */
	uint64_t told_ns;
	uint64_t asked_ns;  /* TX1 of the last question; 0: none */
	uint64_t ask_ns;    /* no question leaves earlier */
	uint64_t silent_ns; /* when the first of `asks` was asked */
	uint64_t forced_ns; /* when a QP last acted without proof */
	uint8_t asks;       /* in a row without an answer */
};

/* Whether the pair is between processes of this host: the nic's owner knows whether they live. */
bool stall_matters(const struct transport *, const struct qp *);
/* The peer has read the packet that was sent at tx_ns. */
void stall_read(const struct transport *, struct pair *, uint64_t tx_ns, uint64_t now_ns);
/*
 * The same for the answer to an RTT request of this pair, the last one or an earlier one. False: it
 * is none.
 */
bool stall_answered(const struct transport *, struct pair *, uint32_t tx1, uint64_t now_ns);
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

#endif
