/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Message numbers near their wrap. No option sets them and it takes 2^24 messages to come there
 * (veRoCE 4.3, 4.4), so this reaches into the engine.
 */
#pragma once

#include "duo/duo.h"
#include "transport/veroce/connection.h"

/* What each end of a pair has sent, modulo 2^24: where its MSN, RQMSN and response MSN are. */
struct veroce_sent {
	uint32_t messages;
	uint32_t recvs; /* of them, those that took a receive WQE */
	uint32_t reads; /* and READs and atomics */
};

/*
 * Makes `from` one that sent, and its peer one that received, so much, all of it complete. Neither
 * has sent anything yet. operations_test.c compares with the state after as many messages.
 */
static inline void veroce_set_sent(struct duo_qp *from, const struct veroce_sent *n)
{
	struct veroce *a = from->qp->veroce, *b = from->peer->qp->veroce;

	DUO_CHECK(from->host->duo, !a->w && !b->w);
	a->msn = a->acked_msn = b->quiet.q_amsn = n->messages;
	a->rqmsn = b->rq_done = n->recvs;
	a->reads = a->quiet.r_amsn = n->reads;
	b->executed = n->reads;
}
