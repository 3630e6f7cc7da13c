/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Congestion control of one RoCEv2 QP, where the nic is told to have it: as requester a window and a
 * pace; as responder what the other requester needs to hear: CNPs (IBTA A17.9.3), the marks of the
 * packets that an ACK acknowledges, and their telemetry.
 *
 * Bytes of window are counted in whole path MTUs, as PSNs are. What an ACK says of marks is in its
 * BECN bit, which IBTA gives a meaning in CNPs alone: our choice, for networks in which both ends are
 * ours (struct transport, ce_echo).
 */
#ifndef TRANSPORT_CONGESTION_H
#define TRANSPORT_CONGESTION_H

#include <stdbool.h>
#include <stdint.h>

#include "base/int_stack.h"
#include "cc/cc.h"
#include "cc/pacer.h"
#include "cc/params.h"

struct qp;
struct pkt;
struct bth;
struct transport;

struct congestion {
	struct cc cc;

	/* requester */
	uint64_t acked_bytes;  /* free-running */
	struct pacer pacer;
	uint64_t timed_ns;     /* when timed_psn left; 0: no packet is being timed */
	uint32_t timed_psn;
	const struct int_stack *heard_int; /* with the ACK being looked at */
	bool heard_ce;         /* likewise */
	bool paced;            /* data waits for congestion_due_ns */

	/* responder */
	bool ce;               /* a packet that no ACK has acknowledged was marked */
	bool telemetry;        /* int_stack is the newest request's */
	bool cnp_due;          /* to be sent with the next output */
	bool cnp_later;        /* marked since the last CNP: one more when its interval ends */
	uint64_t cnp_ns;       /* when the last CNP left */
	struct int_stack int_stack;
};

/* The block of a QP, made if need be; NULL: no memory. */
struct congestion *congestion_of(struct transport *, struct qp *, uint64_t now_ns);
void congestion_free(struct transport *, struct qp *);

/* Payload bytes that may be unacknowledged. */
uint64_t congestion_window(const struct congestion *);
/* When the next packet may leave, if packets may leave slack_ns before their time. */
uint64_t congestion_due_ns(const struct congestion *, uint64_t slack_ns);
/* A packet of so many transport bytes leaves. `again`: not for the first time. */
void congestion_sent(struct transport *, struct qp *, uint32_t psn, uint32_t bytes, bool again,
		     uint64_t now_ns);
/* What an acknowledgement says beside its PSN, before and until it is looked at: its BECN, its telemetry. */
void congestion_heard(struct qp *, bool ce, const struct int_stack *);
/* So many PSNs were acknowledged, the last of them the one before req->una. */
void congestion_acked(const struct transport *, struct qp *, uint32_t packets, uint64_t now_ns);
void congestion_lost(struct qp *, enum cc_loss, uint64_t now_ns);

/* A request arrived and was executed. */
void congestion_arrival(struct transport *, struct qp *, const struct pkt *, uint64_t now_ns);
/* Sends the CNP that is due, if any. False: no room in this turn. */
bool congestion_output(struct transport *, struct qp *, uint64_t now_ns);

/* When congestion_expire() wants to be called. */
uint64_t congestion_deadline(const struct transport *, const struct qp *);
void congestion_expire(struct transport *, struct qp *, uint64_t now_ns);

#endif
