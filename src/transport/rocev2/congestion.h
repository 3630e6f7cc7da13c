/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Congestion control of one RoCEv2 QP, where the nic is configured to have it. The requester has a window and a
 * pace. The responder reports to the other requester: with CNPs (IBTA A17.9.3), and in ACKs the marks and the
 * telemetry of the packets that they acknowledge.
 *
 * Bytes of window are counted in whole path MTUs, as PSNs are. An ACK reports marks in its
 * BECN bit, which IBTA gives a meaning in CNPs alone: our choice, for networks in which both ends are
 * ours (rocev2.ce_echo in transport/config.h).
 *
 * Private to src/transport.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/int_stack.h"
#include "cc/cc.h"
#include "cc/pacer.h"
#include "cc/params.h"
#include "transport/qp.h"

struct congestion {
	struct cc cc;

	/* requester */
	uint64_t acked_bytes; /* free-running */
	struct pacer pacer;
	uint64_t timed_ns; /* when timed_psn left with AckReq; 0: no packet is being timed */
	uint32_t timed_psn;
	const struct int_stack *heard_int; /* of the ACK being handled */
	bool heard_ce;                     /* likewise */
	bool governs;                      /* the window and the pace hold; false: the QP keeps its struct aimd */
	bool paced;                        /* data waits for congestion_due_ns */
	uint64_t marked_ns;                /* when a marked READ response last counted as a CNP; 0: never */

	/* responder */
	bool ce;         /* a packet that no ACK has acknowledged yet was marked */
	bool telemetry;  /* int_stack is that of the newest request */
	bool cnp_due;    /* sent with the next output */
	bool cnp_later;  /* marked since the last CNP: one more when its interval ends */
	uint64_t cnp_ns; /* when the last CNP left */
	struct int_stack int_stack;
};

/* The requester's algorithm; NULL: only its struct aimd. The QP has a gbn. */
static inline struct congestion *congestion_governing(const struct qp *qp)
{
	struct congestion *g = qp->gbn->congestion;

	return g && g->governs ? g : NULL;
}

/* The state of a QP, allocated if there is none; NULL: no memory. */
struct congestion *congestion_of(struct transport *, struct qp *, uint64_t now_ns);
void congestion_free(struct transport *, struct qp *);
/*
 * From now on the requester uses the nic's algorithm, unless there is no memory or the peer is on
 * this host.
 */
void congestion_start(struct transport *, struct qp *, uint64_t now_ns);
/* Packets to qp->flow become ECT(0) if an algorithm reacts to marks. */
void congestion_set_ect(struct transport *, struct qp *);

/* Payload bytes that may be unacknowledged. */
uint64_t congestion_window(const struct congestion *);
/* When the next packet may leave, if packets may leave slack_ns before their time. */
uint64_t congestion_due_ns(const struct congestion *, uint64_t slack_ns);
/*
 * A packet leaves. `bytes` are the transport bytes that it puts on the path: its own, or those of the READ
 * responses that it requests. `again`: it is a retransmission.
 */
void congestion_sent(struct transport *, struct qp *, uint32_t psn, uint32_t bytes, bool again, uint64_t now_ns);
/* The ECN echo (BECN bit) and the telemetry of an acknowledgement, set before it is handled. */
void congestion_echo(struct qp *, bool ce, const struct int_stack *);
/*
 * A READ response was marked: the requester asked for too much. Called before the response is
 * handled.
 */
void congestion_response_marked(struct transport *, struct qp *, uint64_t now_ns);
/* `packets` PSNs were acknowledged; the last of them is the one before req->una. */
void congestion_acked(const struct transport *, struct qp *, uint32_t packets, uint64_t now_ns);
void congestion_lost(struct qp *, enum cc_loss, uint64_t now_ns);

/* A request arrived and was executed. */
void congestion_arrival(struct transport *, struct qp *, const struct rx *);
/* Sends the CNP that is due, if any. False: no room in this turn. */
bool congestion_output(struct transport *, struct qp *, uint64_t now_ns);

/* When to call congestion_expire(). */
uint64_t congestion_deadline(const struct transport *, const struct qp *);
void congestion_expire(struct transport *, struct qp *, uint64_t now_ns);

/* See struct qp_ops. */
const struct cc *congestion_look(const struct transport *, const struct qp *, uint32_t path, struct cc *scratch,
				 const struct cc_kind **);
