/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The passive side (IBTA 12.9.7.2). A REQ passes a list of checks, one for each error; the first that fails decides
 * the answer. The program may then take its time: when the peer repeats its REQ, an MRA makes it wait.
 */
#include <errno.h>
#include <string.h>

#include "base/list.h"
#include "cm/state.h"
#include "wire/cm_rej.h"
#include "wire/cm_rep.h"
#include "wire/cm_req.h"

struct request {
	const struct flow *in;
	uint64_t tid;
	uint32_t ece_options;
	uint64_t now_ns;
	struct cm_req req;
	struct cm_addr local, remote; /* by its IP header */
	struct cm_id *listener;
	int gid_index;
};

enum { NOT_REFUSED = 0 };

/* A REQ that fails here is not from a conforming peer, and is not answered. */
static bool req_makes_sense(const struct cm_req *req)
{
	return req->local_comm_id && req->qpn > GSI_QPN && req->qpn != 0xffffff && req->mtu >= 1 && req->mtu <= 5;
}

/* The type of queue pair that the request names, which a listener for it has. False: there is none. */
static bool type_of(const struct cm_req *req, enum qp_type *type)
{
	switch (req->transport) {
	case CM_TRANSPORT_RC: *type = QPT_RC; return true;
	case CM_TRANSPORT_UC: *type = QPT_UC; return true;
	case CM_TRANSPORT_EXTENDED: *type = QPT_XRC_RECV; return req->extended_transport == CM_EXTENDED_XRC;
	default: return false;
	}
}

static bool gids_are_the_packets(const struct request *r)
{
	return !memcmp(r->req.primary.local_gid, r->in->src, 16) && !memcmp(r->req.primary.remote_gid, r->in->dst, 16);
}

/* The reason to refuse, by the order of docs/rdmacm.md 3.2. */
static uint16_t judge(struct cm *cm, struct request *r)
{
	enum qp_type type;
	bool addressed = ip_decode(r->req.private_data, r->in, r->req.service_id, &r->local, &r->remote);

	if (!type_of(&r->req, &type))
		return CM_REJ_TRANSPORT;
	r->listener = port_listener_for(cm, addressed ? r->local.ip : r->in->dst, r->req.service_id);
	if (!r->listener || r->listener->qp_type == QPT_UD)
		return CM_REJ_SERVICE_ID;
	if (!gids_are_the_packets(r))
		return CM_REJ_GID;
	if (r->req.mtu > path_mtu_code(cm, r->gid_index, r->in->src))
		return CM_REJ_MTU;
	return addressed && r->listener->qp_type == type ? NOT_REFUSED : CM_REJ_CONSUMER;
}

static void refuse(struct cm *cm, const struct request *r, uint16_t reason)
{
	struct flow back = message_flow_back(r->in);
	uint8_t mtu = (uint8_t)(path_mtu_code(cm, r->gid_index, r->in->src) << 4);

	if (!limit_refusal(cm, r->in->src, r->now_ns))
		return;
	message_rej(cm, &back, r->tid,
		    &(struct refusal){.remote_comm_id = r->req.local_comm_id,
				      .answered = CM_ANSWERED_REQ,
				      .reason = reason,
				      .info = &mtu,
				      .info_len = reason == CM_REJ_MTU ? 1 : 0});
}

/* The same REQ again, or one with a communication id that is still in use (IBTA 12.9.8.3.2, 12.10.4). */
static void answer_again(struct conn *c, const struct request *r)
{
	if (c->state == CONN_REQ_RCVD)
		message_mra(c, CM_ANSWERED_REQ);
	else if (c->state == CONN_TIMEWAIT)
		refuse(c->cm, r, CM_REJ_STALE);
	/* In other states our REP or DREQ has a timer of its own. */
}

/* IBTA 12.9.8.3.1: the peer has forgotten a connection of this queue pair of its own, so it ends here too. */
static void end_stale(struct conn *stale, const struct request *r, uint64_t now_ns)
{
	refuse(stale->cm, r, CM_REJ_STALE);
	if (stale->state == CONN_ESTABLISHED)
		hangup_start(stale, now_ns);
}

static void take_req(struct conn *c, const struct request *r)
{
	const struct cm_req *req = &r->req;

	c->tid = r->tid;
	c->sq_psn = req->psn;
	c->rq_psn = random_psn(c->cm);
	/* A depth that one side requests is the one that the other grants. */
	c->responder_resources = req->initiator_depth;
	c->initiator_depth = req->responder_resources;
	c->retry_count = req->retry_count;
	c->rnr_retry_count = req->rnr_retry_count;
	c->mtu = req->mtu;
	c->ack_timeout = req->primary.ack_timeout;
	c->traffic_class = req->primary.traffic_class;
	c->flow_label = req->primary.flow_label;
	c->service_id = req->service_id;
	conn_know_remote(c, req->ca_guid, req->local_comm_id, req->qpn);
}

static struct cm_param param_of(const struct request *r)
{
	const struct cm_req *req = &r->req;
	struct cm_param p = {.qpn = req->qpn,
			     .responder_resources = req->initiator_depth,
			     .initiator_depth = req->responder_resources,
			     .flow_control = req->flow_control,
			     .retry_count = req->retry_count,
			     .rnr_retry_count = req->rnr_retry_count,
			     .srq = req->srq,
			     .ece_vendor = req->vendor_id,
			     .ece_options = r->ece_options,
			     .data_len = CM_REQ_PRIVATE};

	memcpy(p.data, req->private_data + CM_IP_LEN, CM_REQ_PRIVATE);
	return p;
}

/*
 * Creates an id and a conn for the request, and reports it to the listener. Without room the REQ is not answered: the
 * peer repeats it, and there may be room then.
 */
static void admit(struct cm *cm, const struct request *r)
{
	struct flow back = message_flow_back(r->in);
	struct cm_param param = param_of(r);
	struct cm_id *id = id_for_request(r->listener, &r->local, &r->remote, r->in->dst);
	struct conn *c = id ? conn_create(cm, id, &back) : NULL;

	if (!c)
		goto drop_id;
	take_req(c, r);
	id->ack_timeout = c->ack_timeout;
	id->tos = c->traffic_class;
	if (event_tell_request(r->listener, id, &param))
		goto close_conn;
	conn_move(c, CONN_REQ_RCVD);
	registry_note(&cm->registry, request_note(r->in, r->req.ca_guid, r->req.local_comm_id));
	return;

close_conn:
	conn_close(c);
drop_id:
	cm->counters.requests_dropped++;
	if (id)
		id_drop(id);
}

struct route_key passive_route(const struct cm *cm, const struct flow *in, const uint8_t *msg)
{
	struct route_key key = {0};
	struct cm_req req;

	cm_req_decode(&req, msg);
	key.known = conn_find_remote(cm, in, req.ca_guid, req.local_comm_id) ||
		    conn_find_remote_qpn(cm, in, req.ca_guid, req.qpn);
	key.service_id = req.service_id;
	key.note = request_note(in, req.ca_guid, req.local_comm_id);
	ip_asked(key.to, req.private_data, in);
	return key;
}

void passive_req(struct cm *cm, const struct flow *in, const struct mad *mad, const uint8_t *msg, uint64_t now_ns)
{
	struct request r = {.in = in,
			    .tid = mad->tid,
			    .ece_options = mad->modifier,
			    .now_ns = now_ns,
			    .gid_index = gid_index_of(cm, in->dst, in->ifindex)};
	struct conn *known;
	uint16_t reason;

	cm_req_decode(&r.req, msg);
	if (r.gid_index < 0 || !req_makes_sense(&r.req))
		return;
	cm->counters.requests_received++;
	if (mad->class_version != CM_CLASS_VERSION) {
		refuse(cm, &r, CM_REJ_CLASS_VERSION);
		return;
	}
	known = conn_find_remote(cm, in, r.req.ca_guid, r.req.local_comm_id);
	if (known) {
		answer_again(known, &r);
		return;
	}
	known = conn_find_remote_qpn(cm, in, r.req.ca_guid, r.req.qpn);
	if (known) {
		end_stale(known, &r, now_ns);
		return;
	}
	reason = judge(cm, &r);
	if (reason)
		refuse(cm, &r, reason);
	else if (limit_puts_off(cm, in->src, request_note(in, r.req.ca_guid, r.req.local_comm_id), now_ns) ||
		 limit_is_mute(cm, in->src))
		cm->counters.requests_dropped++;
	else
		admit(cm, &r);
}

/* ---- the program's answer --------------------------------------------------------------------- */

int passive_accept(struct conn *c, const struct cm_param *param, uint64_t now_ns)
{
	struct cm_rep rep = {.local_comm_id = c->local_comm_id,
			     .remote_comm_id = c->remote_comm_id,
			     .psn = c->rq_psn,
			     .responder_resources = param->responder_resources,
			     .rnr_retry_count = param->rnr_retry_count < 7 ? param->rnr_retry_count : 7,
			     .vendor_id = param->ece_vendor & 0xffffff,
			     .ca_guid = c->cm->ca_guid};

	if (c->state != CONN_REQ_RCVD || param->data_len > CM_REP_DATA_LEN)
		return -EINVAL;
	/* An XRC target has an SRQ, no requester, and its number in the place of an EE context (as Linux). */
	if (c->qp_type == QPT_XRC_RECV) {
		rep.eecn = param->qpn;
		rep.srq = true;
	} else {
		rep.qpn = param->qpn;
		rep.initiator_depth = param->initiator_depth;
		rep.flow_control = param->flow_control;
		rep.srq = param->srq;
	}
	memcpy(rep.private_data, param->data, param->data_len);
	c->local_qpn = param->qpn;
	c->responder_resources = param->responder_resources;
	c->initiator_depth = param->initiator_depth;
	message_start(c->mad, CM_REP, c->tid);
	message_set_modifier(c->mad, param->ece_options);
	cm_rep_encode(c->mad + MAD_HEADER_LEN, &rep);
	conn_move(c, CONN_REP_SENT);
	conn_ask(c, now_ns);
	return 0;
}

void passive_established(struct conn *c)
{
	static const struct cm_param nothing = {.data_len = CM_RTU_DATA_LEN};

	conn_move(c, CONN_ESTABLISHED);
	event_tell(c->id, CM_ESTABLISHED, 0, &nothing);
}

void passive_rtu(struct cm *cm, const struct flow *in, const struct mad *mad, const uint8_t *msg, uint64_t now_ns)
{
	struct cm_rtu rtu;
	struct conn *c;

	cm_rtu_decode(&rtu, msg);
	c = conn_find(cm, rtu.remote_comm_id);
	if (c && c->state == CONN_REP_SENT && rtu.local_comm_id == c->remote_comm_id && conn_is_peer(c, in)) {
		passive_established(c);
		known_add(cm, in->src, now_ns);
	}
}
