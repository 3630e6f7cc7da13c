/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A QP's end of a stream: what the files of the engine share. Private to src/iwarp.
 *
 * The requester lays FPDUs out of send WQEs. Sends and Writes are done when they are laid out: the bytes are the back
 * end's then, and TCP says nothing of their arrival to us (RFC 5040 5.5). READs are done when the response is placed.
 * WQEs complete in order.
 *
 *     sq.una <= read_wqe <= wqe <= sq.next        wqe: being laid out, or sq.next
 *
 * Messages are not interleaved: while `sending` names one, nothing else is laid out but the stream's end.
 *
 * The end: `deaf` from the first error on, so nothing after it is placed. In ERR the Terminate in `last`, if there is
 * one, and FIN are what is still sent.
 */
#pragma once

#include "iwarp/fpdu.h"
#include "iwarp/rdmap.h"
#include "transport/qp.h"

enum {
	IWARP_READS_IN_ROW = 4,    /* responses, while there are WQEs to send */
	IWARP_PLACE_MIN = 4 << 10, /* fewer bytes are not worth a read of their own */
	/*
	 * The last bytes of a segment are never put where it belongs by others: those who wait for the last one must
	 * see all, and mr_write() sees to that.
	 */
	IWARP_PLACE_NOT = 64,
	IWARP_ULPDU_MAX = 32 << 10 /* longer FPDUs save nothing, and fewer come whole in what is read at once */
};

enum iwarp_sending { SENDING_NOTHING, SENDING_REQUEST, SENDING_RESPONSE };

/* A READ that the peer asked for, or an atomic, which is executed and not answered yet (RFC 7306 5.2). */
struct iwarp_read {
	struct read_request request; /* of an atomic its size is 0 */
	uint32_t done;               /* bytes of the response laid out */
	bool is_atomic;
	struct atomic_response found;
};

struct iwarp {
	struct fpdu_reader in;
	struct fpdu_framing out;
	uint16_t mulpdu;
	uint8_t sending; /* enum iwarp_sending */
	uint8_t in_row;  /* responses since the last request */
	uint32_t room;   /* bytes that the back end takes */

	/* requester */
	uint32_t wqe;
	uint32_t done;               /* bytes of it that are laid out */
	uint32_t send_msn, read_msn; /* of the next message; each queue counts from 1 */
	uint32_t atomic_msn_in;      /* of the next Atomic Response */
	uint32_t read_wqe;           /* the oldest READ that is not answered; wqe: there is none */
	uint32_t read_done;          /* bytes of its response that were placed */
	uint32_t finish_at;          /* with `finishing`: the first WQE that is not sent any more */
	uint8_t reads_out;

	/* responder */
	uint8_t read_head, read_tail;      /* free-running */
	uint8_t opcode;                    /* of the Send in progress */
	uint32_t send_msn_in, read_msn_in; /* expected */
	uint32_t atomic_msn;               /* of the next Atomic Response */
	uint32_t written;  /* bytes of the latest Write, whose completion has them if it has immediate data */
	uint32_t received; /* bytes of the Send in progress */

	uint8_t last_len; /* of `last`; 0: there is none */
	bool sends_first : 1, hears_first : 1, heard : 1;
	bool imm_due : 1;     /* the Write is laid out, and its immediate data are not */
	bool write_ended : 1; /* the latest Write that came */
	bool finishing : 1, deaf : 1, fin_due : 1, fin_sent : 1;

	/* responder */
	struct recv_wqe *rwqe;    /* of the Send in progress; NULL: there is none */
	struct iwarp_read *reads; /* ring of iwarp_read_entries(); NULL: none is being answered */

	union {
		const uint8_t *gap_to; /* until it is deaf: where the first byte of the gap in `in` was put */
		uint8_t *last;         /* with last_len, so it is deaf: TERM_MAX bytes of the pool */
	};
};

static_assert(sizeof(struct qp) + sizeof(struct iwarp) <= 512 - 16, "an idle QP is small");

/* ---- requester.c --------------------------------------------------------------------------------- */

/* Lays out what there is room for. True: stopped for lack of room in the arena only. */
bool iwarp_send(struct transport *, struct qp *, uint64_t now_ns);
/* Completes what is done, in order. */
void iwarp_advance(struct transport *, struct qp *, uint64_t now_ns);
/* Lays out the ULPDU of that length whose bytes stand at iwarp_ulpdu(). There is room. */
void iwarp_commit(struct transport *, struct qp *, uint32_t ulpdu_len);
static inline uint8_t *iwarp_ulpdu(const struct transport *tp)
{
	return tp->tx.arena + tp->tx.used + FPDU_LENGTH_LEN;
}

/* ---- responder.c --------------------------------------------------------------------------------- */

/* See struct stream_ops. */
size_t iwarp_place(struct transport *, struct qp *, uint8_t **to);
void iwarp_receive(struct transport *, struct qp *, const uint8_t *ulpdu, uint32_t len, uint64_t now_ns);
static inline bool iwarp_has_reads(const struct iwarp *iw)
{
	return iw->read_head != iw->read_tail;
}

/* A power of two, so that the indices may run freely. */
static inline uint32_t iwarp_read_entries(const struct qp *qp)
{
	uint32_t n = 1;

	while (n < qp->max_dest_rd_atomic)
		n *= 2;
	return n;
}

static inline struct iwarp_read *iwarp_read_at(const struct qp *qp, uint8_t index)
{
	return &qp->iwarp->reads[index & (iwarp_read_entries(qp) - 1)];
}

/* Forgets the READs that the peer asked for. */
void iwarp_drop_reads(struct transport *, struct qp *);

/* The oldest READ that the peer asked for is answered. */
void iwarp_read_answered(struct transport *, struct qp *);

/* ---- ending.c ------------------------------------------------------------------------------------ */

/* The peer, or its stream, did something wrong: Terminate, and ERR. The segment may be NULL. */
void iwarp_fail(struct transport *, struct qp *, enum term_cause, const struct rdmap_segment *, uint64_t now_ns);
/* The peer's Terminate. */
void iwarp_terminated(struct transport *, struct qp *, const struct rdmap_segment *, uint64_t now_ns);
/* In ERR: Terminate, then FIN. True: stopped for lack of room in the arena only. */
bool iwarp_end(struct transport *, struct qp *);
/* See struct qp_ops. */
void iwarp_silence(struct transport *, struct qp *, uint64_t now_ns);
