/* SPDX-License-Identifier: BSD-2-Clause */
/* The attributes that make a queue pair part of the connection (IBTA 12.9.8.1 to 12.9.8.2, table 113). */
#include <errno.h>
#include <string.h>

#include "cm/state.h"

static void to_init(const struct cm_id *id, struct qp_attr *a, uint32_t *mask)
{
	a->port = 1;
	*mask = QPA_STATE | QPA_PKEY_INDEX | QPA_PORT;
	if (id->qp_type == QPT_UD) {
		a->qkey = CM_QKEY;
		*mask |= QPA_QKEY;
		return;
	}
	*mask |= QPA_ACCESS_FLAGS;
	if (!id->conn)
		return;
	a->access = MR_REMOTE_WRITE;
	if (id->conn->responder_resources)
		a->access |= MR_REMOTE_READ | MR_REMOTE_ATOMIC | MR_FLUSH_GLOBAL | MR_FLUSH_PERSISTENT;
}

static void to_rtr(const struct cm_id *id, struct qp_attr *a, uint32_t *mask)
{
	const struct conn *c = id->conn;

	memcpy(a->av.dgid, c->flow.dst, sizeof(a->av.dgid));
	a->av.flow_label = c->flow_label;
	a->av.sgid_index = (uint8_t)id->gid_index;
	a->av.hop_limit = CM_HOP_LIMIT;
	a->av.traffic_class = c->traffic_class;
	a->av.is_global = 1;
	a->av.port = 1;
	a->path_mtu_bytes = 128u << c->mtu;
	a->dest_qpn = c->remote_qpn;
	a->rq_psn = c->rq_psn;
	*mask = QPA_STATE | QPA_AV | QPA_PATH_MTU | QPA_DEST_QPN | QPA_RQ_PSN;
	if (id->qp_type != QPT_RC && id->qp_type != QPT_XRC_RECV)
		return;
	a->max_dest_rd_atomic = c->responder_resources;
	a->min_rnr_timer = 0;
	*mask |= QPA_MAX_DEST_RD_ATOMIC | QPA_MIN_RNR_TIMER;
}

static void to_rts(const struct cm_id *id, struct qp_attr *a, uint32_t *mask)
{
	const struct conn *c = id->conn;

	a->sq_psn = c->sq_psn;
	*mask = QPA_STATE | QPA_SQ_PSN;
	if (id->qp_type == QPT_UC)
		return;
	a->timeout = id->ack_timeout_set ? id->ack_timeout : c->ack_timeout;
	*mask |= QPA_TIMEOUT;
	if (id->qp_type == QPT_XRC_RECV)
		return;
	a->retry_cnt = c->retry_count;
	a->rnr_retry = c->rnr_retry_count;
	a->max_rd_atomic = c->initiator_depth;
	*mask |= QPA_RETRY_CNT | QPA_RNR_RETRY | QPA_MAX_RD_ATOMIC;
}

/* The peer's queue pair is known, and the connection has not ended. */
static bool peer_is_known(const struct conn *c)
{
	return c && (c->state == CONN_REQ_RCVD || c->state == CONN_REP_RCVD || c->state == CONN_REP_SENT ||
		     c->state == CONN_ESTABLISHED);
}

int cm_id_qp_attr(const struct cm_id *id, struct qp_attr *attr, uint32_t *mask)
{
	enum qp_state state = attr->state;

	if (cm_has_streams(&id->cm->streams))
		return mpa_qp_attr(id, attr, mask);
	if (id->gid_index < 0 || id->state == ID_LISTENING)
		return -EINVAL;
	/* Before anything was sent Linux answers every state with what INIT needs. */
	if (id->state < ID_LISTENING)
		state = QPS_INIT;
	if (state != QPS_INIT && (state > QPS_RTS || state == QPS_RESET))
		return -EINVAL;
	/* A queue pair for datagrams has no peer, and so no further attributes. */
	if (state != QPS_INIT && id->qp_type != QPT_UD && !peer_is_known(id->conn))
		return -EINVAL;
	*attr = (struct qp_attr){.state = attr->state};
	if (state == QPS_INIT || id->qp_type == QPT_UD)
		to_init(id, attr, mask);
	else if (state == QPS_RTR)
		to_rtr(id, attr, mask);
	else
		to_rts(id, attr, mask);
	return 0;
}
