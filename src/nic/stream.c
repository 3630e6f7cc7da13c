/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * QPs with streams: what their owner asks of them, and their life cycle as verbs see it. Only who sets up the stream
 * makes one ready to send, so a program cannot (RFC 5044 7.1.3; iWARP verbs 6.2: a modify to RTS takes the stream).
 */
#include <errno.h>

#include "nic/state.h"

struct qp *nic_qp_find(const struct nic *nic, uint32_t qpn)
{
	return qp_table_find(nic, qpn);
}

int nic_stream_start(struct nic *nic, struct qp *qp, const struct stream_start *s, uint64_t now_ns)
{
	int err;

	if (!qp->ops->stream || qp_get_state(qp) != QPS_INIT || s->max_rd_atomic > NIC_MAX_RD_ATOM ||
	    s->max_dest_rd_atomic > NIC_MAX_RD_ATOM)
		return -EINVAL;
	err = qp->ops->stream->start(&nic->tp, qp, s, now_ns);
	if (err)
		return err;
	nic->tp.qp_changes++;
	qp_checked(&nic->tp, qp);
	return 0;
}

uint32_t nic_qp_stream(const struct qp *qp)
{
	return qp->ops->stream && qp->iwarp ? qp->flow.flow_label : 0;
}

void nic_stream_input(struct nic *nic, struct qp *qp, const struct pkt *pkt, uint64_t now_ns)
{
	qp->ops->stream->input(&nic->tp, qp, pkt, now_ns);
	qp_checked(&nic->tp, qp);
}

size_t nic_stream_place(struct nic *nic, struct qp *qp, uint8_t **to)
{
	return qp->ops->stream ? qp->ops->stream->place(&nic->tp, qp, to) : 0;
}

void nic_stream_finish(struct nic *nic, struct qp *qp, uint64_t now_ns)
{
	qp->ops->stream->finish(&nic->tp, qp, now_ns);
	qp_checked(&nic->tp, qp);
}

bool nic_stream_is_heard(const struct qp *qp)
{
	return qp->ops->stream && qp->ops->stream->is_heard(qp);
}

void nic_stream_urge(struct nic *nic, struct qp *qp)
{
	qp->ops->stream->urge(&nic->tp, qp);
	qp_checked(&nic->tp, qp);
}

uint64_t nic_streams_ended(const struct nic *nic)
{
	return nic->tp.streams_ended;
}

static bool is_legal(enum qp_state from, enum qp_state to)
{
	switch (to) {
	case QPS_RESET:
	case QPS_ERR: return true;
	case QPS_INIT: return from == QPS_RESET || from == QPS_INIT;
	case QPS_RTS: return from == QPS_RTS;
	case QPS_SQD: return from == QPS_RTS || from == QPS_SQD;
	default: return false;
	}
}

/* Attributes of packets (paths, PSNs, timeouts) mean nothing here; connection managers set some all the same. */
int stream_modify(struct nic *nic, struct qp *qp, const struct qp_attr *a, uint32_t mask, uint64_t now_ns)
{
	enum qp_state from = qp_get_state(qp), to = mask & QPA_STATE ? a->state : from;

	/* A connection that the peer has ended is hung up by its program all the same (rdma_disconnect). */
	if (mask & QPA_STATE && from == QPS_ERR && to == QPS_SQD)
		return 0;
	if ((mask & QPA_STATE && !is_legal(from, to)) || (mask & QPA_CUR_STATE && a->cur_state != from) ||
	    (mask & QPA_PORT && a->port != 1))
		return -EINVAL;
	if (mask & QPA_ACCESS_FLAGS)
		qp->access = (uint16_t)a->access;
	if (mask & QPA_PORT)
		qp->port = a->port;
	if (to == QPS_INIT)
		qp->pkey = NIC_PKEY_DEFAULT;
	/* SQD is what iWARP's verbs call closing. */
	if (mask & QPA_STATE && to == QPS_SQD)
		qp->ops->stream->finish(&nic->tp, qp, now_ns);
	if (mask & QPA_STATE && (to != from || to == QPS_RESET))
		qp_enter(nic, qp, from, to, now_ns);
	qp_checked(&nic->tp, qp);
	return 0;
}
