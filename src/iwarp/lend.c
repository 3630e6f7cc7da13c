/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Payload that is sent from where it is: long pieces of Sends, Writes and READ responses are not copied into the arena,
 * but lent to the back end, which says when they are back. Until then the WQE is not complete, whatever becomes of the
 * QP, and who destroys the QP or closes the region waits (nic_streams_lend()).
 *
 * A CRC is computed when the FPDU is laid out. A program must not touch the bytes of a Send or Write before it is
 * complete (IBTA 10.8.3.3), so they still fit it when they leave; those of a READ's response it may change, so with
 * CRCs these are copied.
 *
 * An FPDU with such a piece has up to IWARP_ULPDU_MAX, though it does not fit a TCP segment then: of one that does,
 * less is gained than lost. A receiver takes any.
 */
#include "iwarp/crc32c.h"
#include "iwarp/state.h"

enum {
	BURST_PACKETS = 3,    /* what goes before a piece, the piece, and its end */
	SCRATCH_BYTES = 2048, /* stays in the processor's first cache */
	PAGE_BYTES = 4096
};

static struct iwarp_lent *lent_of(struct transport *tp, struct qp *qp)
{
	struct iwarp *iw = qp->iwarp;

	if (iw->lent)
		return iw->lent;
	iw->lent = pool_get(&tp->pool, sizeof(*iw->lent));
	if (!iw->lent)
		return NULL;
	*iw->lent = (struct iwarp_lent){.lender.qp = qp, .named = -1};
	list_append(&tp->lenders, &iw->lent->lender.link);
	return iw->lent;
}

static void put_lent(struct transport *tp, struct qp *qp)
{
	struct iwarp *iw = qp->iwarp;

	list_remove(&iw->lent->lender.link);
	pool_put(&tp->pool, iw->lent, sizeof(*iw->lent));
	iw->lent = NULL;
}

static uint8_t pieces_out(const struct iwarp_lent *l)
{
	return (uint8_t)(l->tail - l->head);
}

/* Bytes that are not there are the sender's error, which is found where they are copied. */
static bool is_there(const uint8_t *from, uint32_t len)
{
	uint8_t byte;

	for (uint32_t i = 0; i < len; i += PAGE_BYTES) {
		if (!mem_copy(&byte, from + i, 1))
			return false;
	}
	return mem_copy(&byte, from + len - 1, 1);
}

static bool may_lend(const struct transport *tp, const struct iwarp *iw, const struct iwarp_loan *loan)
{
	return loan->len >= IWARP_LEND_MIN && tp->tx.count + BURST_PACKETS <= tp->tx.most &&
	       (!iw->lent || pieces_out(iw->lent) < STREAM_LENT_MAX);
}

bool iwarp_may_lend_request(struct transport *tp, struct qp *qp, const struct send_wqe *w, uint32_t headers,
			    struct iwarp_loan *loan)
{
	struct iwarp *iw = qp->iwarp;
	uint32_t left = w->length - iw->done, off = iw->done;
	const struct wqe_sge *sge = w->sge;

	loan->len = left < IWARP_ULPDU_MAX - headers ? left : IWARP_ULPDU_MAX - headers;
	if (w->flags & WR_INLINE || !may_lend(tp, iw, loan))
		return false;
	while (off >= sge->len)
		off -= sge++->len;
	if (sge->len - off < loan->len)
		loan->len = sge->len - off;
	if (loan->len < IWARP_LEND_MIN)
		return false;
	loan->from = mr_check(&tp->mrs, sge->lkey, qp->user.pd, sge->addr + off, loan->len, 0);
	loan->piece = (struct iwarp_piece){.key = sge->lkey, .wqe = iw->wqe};
	return loan->from && is_there(loan->from, loan->len) && lent_of(tp, qp);
}

/* A window may close on the peer's word, and what it opened must not leave any more then: its bytes are copied. */
bool iwarp_may_lend_response(struct transport *tp, struct qp *qp, const struct iwarp_read *r, struct iwarp_loan *loan)
{
	const struct read_request *q = &r->request;
	uint32_t left = q->size - r->done;
	const struct mr *mr;

	loan->len = left < IWARP_ULPDU_MAX - DDP_TAGGED_LEN ? left : IWARP_ULPDU_MAX - DDP_TAGGED_LEN;
	if (!may_lend(tp, qp->iwarp, loan))
		return false;
	mr = mr_find(&tp->mrs, q->source_stag);
	if (!mr || mr->kind != MR_REGION)
		return false;
	loan->from =
		mr_check_remote(&tp->mrs, q->source_stag, &qp->user, q->source_to + r->done, loan->len, MR_REMOTE_READ);
	loan->piece = (struct iwarp_piece){.key = q->source_stag, .of_response = true};
	return loan->from && is_there(loan->from, loan->len) && lent_of(tp, qp);
}

/* Adds the bytes to a CRC. They are read as all others of the program are: their memory may go at any time. */
static bool add_to_crc(const struct transport *tp, const struct iwarp_loan *loan, uint32_t *crc)
{
	uint8_t *scratch = tp->tx.arena + tp->tx.used + FPDU_LENGTH_LEN + DDP_UNTAGGED_LEN;
	uint32_t n;

	for (uint32_t i = 0; i < loan->len; i += n) {
		n = loan->len - i < SCRATCH_BYTES ? loan->len - i : SCRATCH_BYTES;
		if (!mr_read(&tp->mrs, scratch, loan->from + i, n))
			return false;
		*crc = crc32c_add(*crc, scratch, n);
	}
	return true;
}

bool iwarp_lend(struct transport *tp, struct qp *qp, const struct ddp *ddp, const struct iwarp_loan *loan)
{
	uint32_t headers = ddp_len(ddp->tagged), ulpdu_len = headers + loan->len, end, len, crc;
	struct iwarp *iw = qp->iwarp;
	struct iwarp_lent *l = iw->lent;
	struct iwarp_piece *piece;

	ddp_encode(iwarp_ulpdu(tp), ddp);
	crc = fpdu_open(tp->tx.arena + tp->tx.used, headers, ulpdu_len);
	if (iw->out.crc && !add_to_crc(tp, loan, &crc))
		return false;
	tx_commit_stream(&tp->tx, &qp->flow, PKT_BYTES, FPDU_LENGTH_LEN + headers);
	tx_commit_lent(&tp->tx, &qp->flow, loan->from, loan->len);
	end = fpdu_close(&iw->out, tp->tx.arena + tp->tx.used, ulpdu_len, crc);
	tx_commit_stream(&tp->tx, &qp->flow, PKT_BYTES, end);
	len = FPDU_LENGTH_LEN + ulpdu_len + end;
	iw->room = iw->room > len ? iw->room - len : 0;
	tp->counters.tx_packets++;
	tp->counters.tx_lent_bytes += loan->len;

	piece = &l->pieces[l->tail++ % STREAM_LENT_MAX];
	*piece = loan->piece;
	piece->serial = tp->lent++;
	l->requests += !piece->of_response;
	return true;
}

/* ---- what is back --------------------------------------------------------------------------------- */

static void request_back(struct qp *qp, uint32_t index)
{
	struct iwarp *iw = qp->iwarp;
	struct send_wqe *w = sq_at(&qp->sq, index);
	bool is_laid = (int32_t)(iw->wqe - index) > 0;

	iw->lent->requests--;
	if (!--w->number && is_laid)
		w->done = 1;
}

/* In ERR, what was held back. */
static void flush(struct transport *tp, struct qp *qp, uint64_t now_ns)
{
	struct iwarp_lent *l = qp->iwarp->lent;
	int named = l->named;

	l->named = -1;
	if (named >= 0)
		iwarp_fail_read(tp, qp, named, (enum wc_status)l->named_status, now_ns);
	qp_flush(tp, qp, now_ns);
}

void iwarp_back(struct transport *tp, struct qp *qp, uint32_t count, uint64_t now_ns)
{
	struct iwarp *iw = qp->iwarp;
	struct iwarp_lent *l = iw->lent;
	bool held = iwarp_holds(qp);

	for (; l && count && l->head != l->tail; count--) {
		const struct iwarp_piece *piece = &l->pieces[l->head++ % STREAM_LENT_MAX];

		if (!piece->of_response)
			request_back(qp, piece->wqe);
	}
	if (held && !l->requests && qp_get_state(qp) == QPS_ERR)
		flush(tp, qp, now_ns);
	if (l && l->head == l->tail)
		put_lent(tp, qp);
	if (qp_get_state(qp) != QPS_ERR)
		iwarp_advance(tp, qp, now_ns);
	if (iw->finishing)
		qp_activate(tp, qp); /* the end waits for the last piece */
}

void iwarp_all_back(struct transport *tp, struct qp *qp)
{
	if (qp->iwarp->lent)
		put_lent(tp, qp);
}

bool iwarp_lends(const struct qp *qp, const struct stream_lent *which)
{
	const struct iwarp_lent *l = qp->iwarp ? qp->iwarp->lent : NULL;

	if (!l || (which->qp && which->qp != qp))
		return false;
	for (uint8_t i = l->head; i != l->tail; i++) {
		const struct iwarp_piece *piece = &l->pieces[i % STREAM_LENT_MAX];

		if ((int32_t)(which->before - piece->serial) > 0 && (!which->key || which->key == piece->key))
			return true;
	}
	return false;
}

bool iwarp_holds(const struct qp *qp)
{
	return qp->iwarp && qp->iwarp->lent && qp->iwarp->lent->requests;
}
