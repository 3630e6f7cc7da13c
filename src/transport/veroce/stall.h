/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A peer process of this host that is not run. Between processes of one host hardly anything is lost, and what is
 * not acknowledged waits for a processor, as its receiver does, for as long as others keep it. A clock cannot
 * tell that from loss, so no probe and no timeout of such a pair acts before it is known that the receiver had
 * its turn: it has read something that was sent later, and ran on for long enough to acknowledge all it had.
 *
 * Acknowledgements of any QP of the pair show that. Where none come, one QP asks with an RTT request, which is
 * answered at once by whoever runs (veRoCE 10) and is no retransmission; the others wait for the same answer.
 * A pair that does not answer is not left alone for ever, as it may know no RTT requests, or lose them: after a
 * while one of its QPs acts without proof, and when all of them have waited for much longer, each does.
 *
 * Only where the nic's owner has patience with such peers (transport/patience.h), and not with the dead.
 */
#ifndef TRANSPORT_VEROCE_STALL_H
#define TRANSPORT_VEROCE_STALL_H

#include <stdbool.h>
#include <stdint.h>

struct pair;
struct qp;
struct transport;

/* Of a pair. Times of sending are ours: nothing is compared between clocks. */
struct stall {
	uint64_t ran_ns;    /* the peer has read all that was sent until then, and ran on for a while */
	uint64_t read_ns;   /* ... has read all that was sent until then: known since told_ns */
	uint64_t told_ns;
	uint64_t asked_ns;  /* TX1 of the last question; 0: none */
	uint64_t ask_ns;    /* no question before */
	uint64_t silent_ns; /* when the first of `asks` was asked */
	uint64_t forced_ns; /* when somebody last acted without proof */
	uint8_t asks;       /* in a row without an answer */
};

/* Between processes: the nic's owner knows whether they live. */
bool stall_matters(const struct transport *, const struct qp *);
/* The peer has read what was sent at tx_ns. */
void stall_read(const struct transport *, struct pair *, uint64_t tx_ns, uint64_t now_ns);
/* Likewise, if it is the answer to a question, the last one or one before. False: it is not. */
bool stall_answered(const struct transport *, struct pair *, uint32_t tx1, uint64_t now_ns);
/* Whether the peer is known to have had its turn since `since_ns`: what it has not acknowledged is lost. */
bool stall_is_over(const struct transport *, const struct qp *, uint64_t since_ns);
/*
 * Whether what is due at due_ns, as nothing came since `since_ns`, has to wait. It is to be asked again at
 * stall_deadline(). May have the QP ask.
 */
bool stall_holds(struct transport *, struct qp *, uint64_t since_ns, uint64_t due_ns, uint64_t now_ns);
uint64_t stall_deadline(const struct transport *, const struct qp *, uint64_t since_ns, uint64_t due_ns);

#endif
