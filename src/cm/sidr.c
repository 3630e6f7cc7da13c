/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Datagrams: SIDR_REQ asks for the queue pair of a service, and SIDR_REP answers (IBTA 12.11). The peer sends no GUID
 * here; its address and request id identify it.
 */
#include <errno.h>
#include <string.h>

#include "base/siphash.h"
#include "cm/state.h"
#include "wire/cm_sidr.h"

/* Takes a GUID's place in the tables. */
static uint64_t address_key(const struct cm *cm, const uint8_t *ip)
{
	return siphash_u64(cm->table_secret, siphash_u64(cm->table_secret, get_be64(ip)) ^ get_be64(ip + 8));
}

/* ---- the active side ---------------------------------------------------------------------------- */

int sidr_connect(struct cm_id *id, const struct cm_param *param, uint64_t now_ns)
{
	struct cm *cm = id->cm;
	struct flow flow = {.ttl = CM_HOP_LIMIT, .tos = id->tos};
	struct cm_sidr_req req = {.pkey = cm->pkey};
	struct conn *c;

	if (param->data_len > CM_SIDR_REQ_PRIVATE)
		return -EINVAL;
	id_address(id, &flow);
	c = conn_create(cm, id, &flow);
	if (!c)
		return -ENOMEM;
	c->active = true;
	c->tid = random_tid(cm, c->local_comm_id);
	c->traffic_class = id->tos;
	c->flow_label = flow_label_of(id->local.port, id->remote.port);
	c->service_id = service_id_of(id->space, id->remote.port);
	req.request_id = c->local_comm_id;
	req.service_id = c->service_id;
	ip_encode(req.private_data, id);
	memcpy(req.private_data + CM_IP_LEN, param->data, param->data_len);
	message_start(c->mad, CM_SIDR_REQ, c->tid);
	cm_sidr_req_encode(c->mad + MAD_HEADER_LEN, &req);
	cm->counters.requests_sent++;
	conn_move(c, CONN_SIDR_REQ_SENT);
	conn_ask(c, now_ns);
	return 0;
}

static struct ah_attr address_vector(const struct cm_id *id, const struct conn *c)
{
	struct ah_attr ah = {.flow_label = c->flow_label,
			     .sgid_index = (uint8_t)id->gid_index,
			     .hop_limit = CM_HOP_LIMIT,
			     .traffic_class = c->traffic_class,
			     .port = 1,
			     .is_global = 1};

	memcpy(ah.dgid, c->flow.dst, sizeof(ah.dgid));
	return ah;
}

void sidr_rep(struct cm *cm, const struct flow *in, const struct mad *mad, const uint8_t *msg, uint64_t now_ns)
{
	struct cm_param p = {.data_len = CM_SIDR_REP_DATA_LEN};
	struct cm_sidr_rep rep;
	struct ah_attr ah;
	struct cm_id *id;
	struct conn *c;

	cm_sidr_rep_decode(&rep, msg);
	c = conn_find(cm, rep.request_id);
	if (!c || c->state != CONN_SIDR_REQ_SENT || !conn_is_peer(c, in))
		return;
	id = c->id;
	if (!id) {
		conn_close(c);
		return;
	}
	if (rep.status == CM_SIDR_UNSUPPORTED && conn_ask_again(c, now_ns))
		return;
	ah = address_vector(id, c);
	conn_close(c);
	p.qpn = rep.qpn;
	p.qkey = rep.qkey;
	memcpy(p.data, rep.private_data, CM_SIDR_REP_DATA_LEN);
	if (rep.status != CM_SIDR_SUCCESS)
		event_tell(id, CM_UNREACHABLE, rep.status, &p);
	else if (rep.qkey != CM_QKEY) /* the queue pair has the port space's Q_Key */
		event_tell(id, CM_ADDR_ERROR, -EINVAL, NULL);
	else
		event_tell_datagram(id, &ah, &p);
}

/* ---- the passive side ---------------------------------------------------------------------- */

static void reply(struct cm *cm, const struct flow *to, uint64_t tid, const struct cm_sidr_rep *rep)
{
	uint8_t mad[MAD_LEN];

	message_start(mad, CM_SIDR_REP, tid);
	cm_sidr_rep_encode(mad + MAD_HEADER_LEN, rep);
	message_send(cm, to, mad);
}

static void admit(struct cm *cm, const struct flow *in, uint64_t tid, const struct cm_sidr_req *req,
		  struct cm_id *listener, const struct cm_addr *local, const struct cm_addr *remote)
{
	struct flow back = message_flow_back(in);
	struct cm_param p = {.data_len = CM_SIDR_REQ_PRIVATE};
	struct cm_id *id = id_for_request(listener, local, remote, in->dst);
	struct conn *c = id ? conn_create(cm, id, &back) : NULL;

	if (!c)
		goto drop_id;
	c->tid = tid;
	c->service_id = req->service_id;
	c->traffic_class = back.tos;
	c->flow_label = flow_label_of(local->port, remote->port);
	conn_know_remote(c, address_key(cm, in->src), req->request_id, 0);
	memcpy(p.data, req->private_data + CM_IP_LEN, CM_SIDR_REQ_PRIVATE);
	if (event_tell_request(listener, id, &p))
		goto close_conn;
	conn_move(c, CONN_SIDR_REQ_RCVD);
	registry_note(&cm->registry, request_note(in, 0, req->request_id));
	return;

close_conn:
	conn_close(c);
drop_id:
	cm->counters.requests_dropped++;
	if (id)
		id_drop(id);
}

struct route_key sidr_route(const struct cm *cm, const struct flow *in, const uint8_t *msg)
{
	struct route_key key = {0};
	struct cm_sidr_req req;

	cm_sidr_req_decode(&req, msg);
	key.known = conn_find_remote(cm, in, address_key(cm, in->src), req.request_id);
	key.service_id = req.service_id;
	key.note = request_note(in, 0, req.request_id);
	ip_asked(key.to, req.private_data, in);
	return key;
}

void sidr_req(struct cm *cm, const struct flow *in, const struct mad *mad, const uint8_t *msg, uint64_t now_ns)
{
	struct cm_addr local, remote;
	struct cm_id *listener = NULL;
	struct cm_sidr_req req;

	cm_sidr_req_decode(&req, msg);
	if (gid_index_of(cm, in->dst, in->ifindex) < 0 || !req.request_id ||
	    conn_find_remote(cm, in, address_key(cm, in->src), req.request_id))
		return;
	cm->counters.requests_received++;
	if (ip_decode(req.private_data, in, req.service_id, &local, &remote))
		listener = port_listener_for(cm, local.ip, req.service_id);
	if (listener && listener->qp_type == QPT_UD) {
		admit(cm, in, mad->tid, &req, listener, &local, &remote);
	} else if (limit_refusal(cm, in->src, now_ns)) {
		struct flow back = message_flow_back(in);

		reply(cm, &back, mad->tid,
		      &(struct cm_sidr_rep){.request_id = req.request_id,
					    .status = CM_SIDR_UNSUPPORTED,
					    .service_id = req.service_id});
	}
}

static void answer(struct conn *c, enum cm_sidr_status status, const struct cm_param *param)
{
	struct cm_sidr_rep rep = {
		.request_id = c->remote_comm_id, .status = (uint8_t)status, .service_id = c->service_id};

	if (status == CM_SIDR_SUCCESS) {
		rep.qpn = param->qpn;
		rep.qkey = CM_QKEY;
	}
	memcpy(rep.private_data, param->data, param->data_len);
	reply(c->cm, &c->flow, c->tid, &rep);
	conn_close(c);
}

int sidr_accept(struct conn *c, const struct cm_param *param)
{
	if (c->state != CONN_SIDR_REQ_RCVD || param->data_len > CM_SIDR_REP_DATA_LEN)
		return -EINVAL;
	answer(c, CM_SIDR_SUCCESS, param);
	return 0;
}

void sidr_refuse(struct conn *c, const uint8_t *data, size_t len)
{
	struct cm_param p = {.data_len = (uint16_t)(len < CM_SIDR_REP_DATA_LEN ? len : CM_SIDR_REP_DATA_LEN)};

	if (p.data_len)
		memcpy(p.data, data, p.data_len);
	answer(c, CM_SIDR_REJECTED, &p);
}
