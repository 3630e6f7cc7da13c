/* SPDX-License-Identifier: BSD-2-Clause */
/* The active side: sends REQ, handles REP (IBTA 12.9.7.1). */
#include <errno.h>
#include <string.h>

#include "cm/state.h"
#include "wire/cm_rej.h"
#include "wire/cm_rep.h"
#include "wire/cm_req.h"

static uint8_t at_most(uint8_t value, uint8_t limit)
{
	return value < limit ? value : limit;
}

/* Both directions of one path, without LIDs, as RoCE has none (IBTA A17.4.4; Linux: both 0xffff, hop limit 64). */
static struct cm_path path_of(const struct conn *c)
{
	struct cm_path p = {.local_lid = 0xffff,
			    .remote_lid = 0xffff,
			    .flow_label = c->flow_label,
			    .traffic_class = c->traffic_class,
			    .hop_limit = CM_HOP_LIMIT,
			    .ack_timeout = c->ack_timeout};

	memcpy(p.local_gid, c->flow.src, sizeof(p.local_gid));
	memcpy(p.remote_gid, c->flow.dst, sizeof(p.remote_gid));
	return p;
}

static enum cm_transport transport_of(const struct conn *c)
{
	switch (c->qp_type) {
	case QPT_UC: return CM_TRANSPORT_UC;
	case QPT_XRC_SEND: return CM_TRANSPORT_EXTENDED;
	default: return CM_TRANSPORT_RC;
	}
}

static void write_req(struct conn *c, const struct cm_param *param)
{
	bool xrc = c->qp_type == QPT_XRC_SEND;
	struct cm_req req = {.local_comm_id = c->local_comm_id,
			     .service_id = c->service_id,
			     .ca_guid = c->cm->ca_guid,
			     .qpn = c->local_qpn,
			     .initiator_depth = c->initiator_depth,
			     .remote_cm_timeout = CM_REMOTE_CM_TIMEOUT,
			     .transport = transport_of(c),
			     .extended_transport = xrc ? CM_EXTENDED_XRC : 0,
			     .flow_control = param->flow_control,
			     .psn = c->rq_psn,
			     .local_cm_timeout = CM_LOCAL_CM_TIMEOUT,
			     .pkey = c->cm->pkey,
			     .mtu = c->mtu,
			     .max_cm_retries = CM_SENDS_MAX - 1,
			     .vendor_id = param->ece_vendor & 0xffffff,
			     .primary = path_of(c)};

	/* An XRC target sends no requests that these would be for (as Linux). */
	if (!xrc) {
		req.responder_resources = c->responder_resources;
		req.retry_count = c->retry_count;
		req.rnr_retry_count = c->rnr_retry_count;
		req.srq = param->srq;
	}

	ip_encode(req.private_data, c->id);
	memcpy(req.private_data + CM_IP_LEN, param->data, param->data_len);
	message_start(c->mad, CM_REQ, c->tid);
	message_set_modifier(c->mad, param->ece_options);
	cm_req_encode(c->mad + MAD_HEADER_LEN, &req);
}

int active_connect(struct cm_id *id, const struct cm_param *param, uint64_t now_ns)
{
	struct cm *cm = id->cm;
	struct flow flow = {.ttl = CM_HOP_LIMIT, .tos = id->tos};
	struct conn *c;

	if (param->data_len > CM_REQ_PRIVATE)
		return -EINVAL;
	id_address(id, &flow);
	c = conn_create(cm, id, &flow);
	if (!c)
		return -ENOMEM;
	c->active = true;
	c->tid = random_tid(cm, c->local_comm_id);
	c->rq_psn = random_psn(cm);
	c->local_qpn = param->qpn;
	c->responder_resources = param->responder_resources;
	c->initiator_depth = param->initiator_depth;
	c->retry_count = at_most(param->retry_count, 7);
	c->rnr_retry_count = at_most(param->rnr_retry_count, 7);
	c->mtu = path_mtu_code(cm, id->gid_index, flow.dst);
	c->ack_timeout = id->ack_timeout;
	c->traffic_class = id->tos;
	c->flow_label = flow_label_of(id->local.port, id->remote.port);
	c->service_id = service_id_of(id->space, id->remote.port);
	write_req(c, param);
	cm->counters.requests_sent++;
	conn_move(c, CONN_REQ_SENT);
	conn_ask(c, now_ns);
	return 0;
}

/*
 * REP grants what REQ asked for or less. The RNR retry count is the peer's: each side sets it for the other's
 * sender. An ACK takes as long as both ends and the path: if the two codes differ by at most one, twice the longer.
 */
static void take_rep(struct conn *c, const struct cm_rep *rep)
{
	uint8_t delay = rep->target_ack_delay, own = c->ack_timeout;

	conn_know_remote(c, rep->ca_guid, rep->local_comm_id, rep->qpn);
	c->sq_psn = rep->psn;
	c->initiator_depth = at_most(c->initiator_depth, rep->responder_resources);
	c->responder_resources = at_most(c->responder_resources, rep->initiator_depth);
	c->rnr_retry_count = rep->rnr_retry_count;
	if (delay > own)
		c->ack_timeout = at_most((uint8_t)(delay + (delay == own + 1)), 31);
	else if (delay && delay + 1 >= own)
		c->ack_timeout = at_most((uint8_t)(own + 1), 31);
}

static void tell_response(struct conn *c, const struct mad *mad, const struct cm_rep *rep)
{
	struct cm_param p = {.qpn = rep->qpn,
			     .responder_resources = rep->initiator_depth,
			     .initiator_depth = rep->responder_resources,
			     .flow_control = rep->flow_control,
			     .rnr_retry_count = rep->rnr_retry_count,
			     .srq = rep->srq,
			     .ece_vendor = rep->vendor_id,
			     .ece_options = mad->modifier,
			     .data_len = CM_REP_DATA_LEN};

	memcpy(p.data, rep->private_data, CM_REP_DATA_LEN);
	event_tell(c->id, CM_CONNECT_RESPONSE, 0, &p);
}

/* IBTA 12.9.8.3.1: by our state, that queue pair of the peer is already in a connection with us. */
static void refuse_stale(struct conn *c, const struct cm_rep *rep, uint64_t now_ns)
{
	struct cm_id *id = c->id;

	message_rej(c->cm, &c->flow, c->tid,
		    &(struct refusal){.local_comm_id = c->local_comm_id,
				      .remote_comm_id = rep->local_comm_id,
				      .answered = CM_ANSWERED_REP,
				      .reason = CM_REJ_STALE});
	conn_close(c);
	event_tell(id, CM_UNREACHABLE, -EINVAL, NULL);
}

static bool rep_makes_sense(const struct cm_rep *rep)
{
	return rep->local_comm_id && rep->qpn > GSI_QPN && rep->qpn != 0xffffff;
}

void active_rep(struct cm *cm, const struct flow *in, const struct mad *mad, const uint8_t *msg, uint64_t now_ns)
{
	struct cm_rep rep;
	struct conn *c;

	cm_rep_decode(&rep, msg);
	c = conn_find(cm, rep.remote_comm_id);
	if (!c || !c->active || !conn_is_peer(c, in))
		return;
	if (c->qp_type == QPT_XRC_SEND)
		rep.qpn = rep.eecn; /* an XRC target has its number there, as Linux has it */
	if (!rep_makes_sense(&rep))
		return;
	if (c->state != CONN_REQ_SENT) {
		if (rep.local_comm_id != c->remote_comm_id || rep.qpn != c->remote_qpn)
			return; /* the first one counts */
		if (c->state == CONN_REP_RCVD)
			message_mra(c, CM_ANSWERED_REP); /* the program has not confirmed yet */
		else if (c->state == CONN_ESTABLISHED)
			message_rtu(c); /* ours was lost */
		return;
	}
	if (conn_find_remote_qpn(cm, in, rep.ca_guid, rep.qpn)) {
		refuse_stale(c, &rep, now_ns);
		return;
	}
	take_rep(c, &rep);
	conn_move(c, CONN_REP_RCVD);
	known_add(cm, in->src, now_ns);
	tell_response(c, mad, &rep);
}

void active_confirm(struct conn *c)
{
	message_rtu(c);
	conn_move(c, CONN_ESTABLISHED);
}
