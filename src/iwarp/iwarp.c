/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The engine: how a QP gets a stream and loses it, what comes by the stream, and its turns.
 *
 * A QP in RESET or INIT has no stream, and no state of one.
 */
#include "iwarp/iwarp.h"

#include <errno.h>

#include "base/stream_event.h"
#include "iwarp/state.h"

static int start(struct transport *tp, struct qp *qp, const struct stream_start *s, uint64_t now_ns)
{
	struct iwarp *iw = alloc_get(&tp->alloc, sizeof(*iw));
	uint32_t mulpdu = fpdu_mulpdu(s->segment_bytes, s->send_markers);

	if (!iw)
		return -ENOMEM;
	*iw = (struct iwarp){
		.in.framing = {.crc = s->crc, .markers = s->receive_markers},
		.out = {.crc = s->crc, .markers = s->send_markers},
		.mulpdu = (uint16_t)(mulpdu < IWARP_ULPDU_MAX ? mulpdu : IWARP_ULPDU_MAX),
		.room = s->room_bytes,
		.send_msn = 1,
		.read_msn = 1,
		.send_msn_in = 1,
		.read_msn_in = 1,
		.atomic_msn = 1,
		.atomic_msn_in = 1,
		.write_ended = true,
		.wqe = qp->sq.next,
		.read_wqe = qp->sq.next,
		.sends_first = s->sends_first,
		.hears_first = s->hears_first,
	};
	qp->iwarp = iw;
	qp->flow = s->flow;
	qp->max_rd_atomic = s->max_rd_atomic;
	qp->max_dest_rd_atomic = s->max_dest_rd_atomic;
	qp_move(qp, QPS_RTR);
	qp_move(qp, QPS_RTS);
	qp_activate(tp, qp);
	return 0;
}

static void reset(struct transport *tp, struct qp *qp)
{
	struct iwarp *iw = qp->iwarp;

	if (!iw)
		return;
	fpdu_reader_fini(&iw->in, &tp->pool);
	iwarp_drop_reads(tp, qp);
	if (iw->last_len)
		pool_put(&tp->pool, iw->last, TERM_MAX);
	if (iw->rwqe)
		rq_release(qp->rq, iw->rwqe);
	alloc_put(&tp->alloc, iw, sizeof(*iw));
	qp->iwarp = NULL;
	tp->streams_ended++;
}

static enum term_cause framing_cause(struct transport *tp, enum fpdu_result result)
{
	switch (result) {
	case FPDU_BAD_CRC: tp->counters.fpdu_crc_errors++; return TERM_MPA_CRC;
	case FPDU_BAD_MARKER: tp->counters.fpdu_marker_errors++; return TERM_MPA_MARKER;
	default: return TERM_MPA_CATASTROPHIC;
	}
}

/* RFC 5044 7.1.2: who may not speak first speaks now. */
static void hear(struct transport *tp, struct qp *qp)
{
	if (!qp->iwarp->heard)
		qp_activate(tp, qp);
	qp->iwarp->heard = true;
}

static void take_bytes(struct transport *tp, struct qp *qp, const struct pkt *pkt, uint64_t now_ns)
{
	struct iwarp *iw = qp->iwarp;
	const uint8_t *data = pkt->data, *ulpdu;
	size_t left = pkt->len;
	uint32_t len;

	tp->counters.rx_bytes += (uint64_t)pkt->far_bytes + pkt->len;
	qp->rx_words += (pkt->far_bytes + pkt->len) / 4;
	if (pkt->far_bytes && !iw->deaf) {
		tp->counters.rx_placed_bytes += pkt->far_bytes;
		fpdu_skip(&iw->in, pkt->far_bytes);
	}
	while (!iw->deaf) {
		enum fpdu_result result = fpdu_read(&iw->in, &tp->pool, &data, &left, &ulpdu, &len);

		if (result == FPDU_NONE)
			return;
		if (result != FPDU_ULPDU) {
			iwarp_fail(tp, qp, framing_cause(tp, result), NULL, now_ns);
			return;
		}
		tp->counters.rx_packets++;
		hear(tp, qp);
		iwarp_receive(tp, qp, ulpdu, len, now_ns);
	}
}

/* RFC 5040 5.2.3, RFC 5044 7.2: between FPDUs it is an orderly end; inside one the stream is lost. */
static void peer_ended(struct transport *tp, struct qp *qp, bool lost, uint64_t now_ns)
{
	struct iwarp *iw = qp->iwarp;

	if (lost)
		iw->fin_sent = true; /* nobody is there to hear it */
	if (!iw->deaf && (lost || !fpdu_is_between(&iw->in)))
		qp_raise(tp, qp, EVENT_QP_FATAL);
	iw->deaf = true;
	qp_to_error(tp, qp, now_ns);
}

static void input(struct transport *tp, struct qp *qp, const struct pkt *pkt, uint64_t now_ns)
{
	if (!qp->iwarp)
		return;
	switch (pkt_stream_kind(pkt)) {
	case STREAM_BYTES: take_bytes(tp, qp, pkt, now_ns); break;
	case STREAM_ROOM:
		qp->iwarp->room += pkt->event->room;
		qp_activate(tp, qp);
		break;
	case STREAM_FIN: peer_ended(tp, qp, false, now_ns); break;
	case STREAM_RESET: peer_ended(tp, qp, true, now_ns); break;
	default: break;
	}
}

static void finish(struct transport *tp, struct qp *qp, uint64_t now_ns)
{
	struct iwarp *iw = qp->iwarp;

	if (!iw || iw->finishing)
		return;
	iw->finishing = true;
	iw->finish_at = sq_head(&qp->sq);
	qp_activate(tp, qp);
}

static bool is_heard(const struct qp *qp)
{
	return qp->iwarp && qp->iwarp->heard;
}

static void urge(struct transport *tp, struct qp *qp)
{
	struct iwarp *iw = qp->iwarp;

	if (!iw || iw->heard)
		return;
	if (iw->hears_first)
		iw->hears_first = false;
	else
		iw->sends_first = true;
	qp_activate(tp, qp);
}

static bool output(struct transport *tp, struct qp *qp, uint64_t now_ns)
{
	if (qp_get_state(qp) == QPS_ERR)
		qp_flush(tp, qp, now_ns);
	if (!qp->iwarp)
		return false;
	if (qp_get_state(qp) != QPS_ERR && iwarp_send(tp, qp, now_ns))
		return true;
	return iwarp_end(tp, qp);
}

static void query(const struct qp *qp, struct qp_psns *psns)
{
	*psns = (struct qp_psns){0};
}

/* ---- what a stream has no use for ---------------------------------------------------------------- */

static int connect(struct transport *tp, struct qp *qp, uint64_t now_ns)
{
	return -EINVAL;
}

static void nothing(struct transport *tp, struct qp *qp, uint64_t now_ns)
{
}

static void drop(struct transport *tp, struct qp *qp, const struct rx *rx)
{
	tp->counters.rx_wrong_source++;
}

static const struct stream_ops stream_ops = {
	.start = start, .input = input, .place = iwarp_place, .finish = finish, .is_heard = is_heard, .urge = urge};

static const struct qp_ops iwarp_ops = {
	.service = SVC_RC,
	.connect = connect,
	.start = nothing,
	.reset = reset,
	.seal = &seal_icrc,
	.input = drop,
	.output = output,
	.expire = nothing,
	.silence = iwarp_silence,
	.query = query,
	.stream = &stream_ops,
};

const struct qp_ops *iwarp_engine(enum qp_type type)
{
	return type == QPT_RC ? &iwarp_ops : NULL;
}
