/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * SEND and RDMA WRITE at the responder, in any protocol: the checks on one packet, then its
 * effect. RC answers a verdict with a NAK, UC drops the message.
 *
 * Private to src/transport.
 */
#pragma once

#include "transport/qp.h"

enum rx_verdict {
	RX_EXECUTE,
	RX_INVALID,     /* an opcode or a length that does not fit the message */
	RX_TOO_LONG,    /* longer than the receive WQE */
	RX_NOT_READY,   /* no receive WQE */
	RX_ACCESS,      /* the R_Key does not open the range, or its memory is gone */
	RX_NO_SRQ,      /* XRC: the SRQ that it names is not of the domain, or not the message's */
	RX_KEY_STAYS,   /* of a SEND with invalidate that is complete: the key may not be invalidated */
	RX_LOCAL_FAULT, /* an L_Key of our receive WQE does not open its range, or the memory is gone */
	RX_VERDICTS
};

/* The consequence of a verdict at an RC responder (IBTA 9.9.3, table of responder errors). */
struct rx_consequence {
	uint8_t syndrome; /* of the last answer. An acknowledgement is of this packet, too; a NAK, of those before it */
	/*
	 * Of the refused packet's receive WQE, if it has one: a SEND, or the packet with the immediate of a
	 * WRITE (class C: an error that can be related to a WQE completes it). WC_WR_FLUSH_ERR: it is flushed
	 * with the others.
	 */
	enum wc_status recv_status;
	enum event_type event;
};
extern const struct rx_consequence rx_consequences[RX_VERDICTS];

/* Counts an answer with that syndrome, which was sent. */
void message_answered(struct transport *, uint8_t syndrome);

/*
 * Judges one SEND or WRITE packet by the message so far. Takes a receive WQE at the beginning of a SEND and
 * for an immediate (it stays in rsp->rwqe with any verdict); changes nothing else.
 */
enum rx_verdict message_judge(struct transport *, struct qp *, const struct rx *);
/*
 * Places the packet that was judged RX_EXECUTE; at the message's end completes its receive WQE.
 * RX_KEY_STAYS, or RX_LOCAL_FAULT or RX_ACCESS if a region or the memory behind it is gone, or a key of the receive WQE
 * is invalid; then nothing is completed.
 */
enum rx_verdict message_execute(struct transport *, struct qp *, const struct rx *);
/* Completes the held receive WQE, if any, with an error. */
void message_fail(struct transport *, struct qp *, enum wc_status, uint64_t now_ns);
