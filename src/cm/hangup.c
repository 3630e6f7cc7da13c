/* SPDX-License-Identifier: BSD-2-Clause */
/* Refusing, hanging up, and delaying: REJ, DREQ, DREP, MRA (IBTA 12.9.7, 12.10). */
#include <string.h>

#include "cm/state.h"
#include "wire/cm_dreq.h"
#include "wire/cm_rej.h"

/* ---- DREQ and DREP ------------------------------------------------------------------------------ */

void hangup_start(struct conn *c, uint64_t now_ns)
{
	c->tid = random_tid(c->cm, c->local_comm_id);
	message_start(c->mad, CM_DREQ, c->tid);
	cm_dreq_encode(c->mad + MAD_HEADER_LEN, &(struct cm_dreq){.local_comm_id = c->local_comm_id,
								  .remote_comm_id = c->remote_comm_id,
								  .remote_qpn = c->remote_qpn});
	conn_move(c, CONN_DREQ_SENT);
	conn_send_repeatedly(c, now_ns);
}

void hangup_answer(struct conn *c, uint64_t now_ns)
{
	message_drep(c->cm, &c->flow, c->tid, c->local_comm_id, c->remote_comm_id);
	conn_to_timewait(c, now_ns);
}

/* There is no such connection here; with an answer the peer need not wait for its timeout (IBTA 12.10.3). */
static void answer_unknown(struct cm *cm, const struct flow *in, const struct mad *mad, const struct cm_dreq *dreq)
{
	struct flow back = message_flow_back(in);

	message_drep(cm, &back, mad->tid, dreq->remote_comm_id, dreq->local_comm_id);
}

/* Both hung up at once: the answer need not wait for the program. */
static void crossed(struct conn *c, uint64_t now_ns)
{
	struct cm_id *id = c->id;

	conn_move(c, CONN_DREQ_RCVD);
	hangup_answer(c, now_ns);
	event_tell(id, CM_DISCONNECTED, 0, NULL);
}

void hangup_dreq(struct cm *cm, const struct flow *in, const struct mad *mad, const uint8_t *msg, uint64_t now_ns)
{
	struct cm_dreq dreq;
	struct conn *c;

	cm_dreq_decode(&dreq, msg);
	c = conn_find(cm, dreq.remote_comm_id);
	if (!c) {
		answer_unknown(cm, in, mad, &dreq);
		return;
	}
	if (dreq.local_comm_id != c->remote_comm_id || dreq.remote_qpn != c->local_qpn || !conn_is_peer(c, in))
		return;
	switch (c->state) {
	case CONN_REP_SENT: /* its RTU was lost */
	case CONN_ESTABLISHED:
		c->tid = mad->tid;
		conn_move(c, CONN_DREQ_RCVD); /* DREP leaves when the program hangs up, too */
		event_tell(c->id, CM_DISCONNECTED, 0, NULL);
		break;
	case CONN_DREQ_SENT:
		c->tid = mad->tid;
		crossed(c, now_ns);
		break;
	case CONN_TIMEWAIT: message_drep(cm, &c->flow, mad->tid, c->local_comm_id, c->remote_comm_id); break;
	default: /* the program has not answered yet, or nothing is connected */ break;
	}
}

void hangup_drep(struct cm *cm, const struct flow *in, const struct mad *mad, const uint8_t *msg, uint64_t now_ns)
{
	struct cm_drep drep;
	struct conn *c;

	cm_drep_decode(&drep, msg);
	c = conn_find(cm, drep.remote_comm_id);
	if (!c || c->state != CONN_DREQ_SENT || drep.local_comm_id != c->remote_comm_id || !conn_is_peer(c, in))
		return;
	conn_to_timewait(c, now_ns);
	event_tell(c->id, CM_DISCONNECTED, 0, NULL);
}

/* ---- REJ ------------------------------------------------------------------------------------------ */

void hangup_refuse(struct conn *c, uint16_t reason, const uint8_t *data, size_t len)
{
	static const uint8_t answered[CONN_STATES] = {[CONN_REQ_RCVD] = CM_ANSWERED_REQ,
						      [CONN_REP_RCVD] = CM_ANSWERED_REP,
						      [CONN_REQ_SENT] = CM_ANSWERED_OTHER,
						      [CONN_REP_SENT] = CM_ANSWERED_OTHER};

	message_rej(c->cm, &c->flow, c->tid,
		    &(struct refusal){.local_comm_id = c->local_comm_id,
				      .remote_comm_id = c->remote_comm_id,
				      .answered = answered[c->state],
				      .reason = reason,
				      .data = data,
				      .data_len = len});
	conn_close(c);
}

/* The connection that a REJ names. A peer that gave up before it knew our id names itself by GUID (IBTA 12.6.7.2). */
static struct conn *rejected(const struct cm *cm, const struct flow *in, const struct cm_rej *rej)
{
	struct conn *c;

	if (rej->reason == CM_REJ_TIMEOUT && rej->info_len >= 8 && !rej->remote_comm_id)
		return conn_find_remote(cm, in, get_be64(rej->info), rej->local_comm_id);
	c = conn_find(cm, rej->remote_comm_id);
	if (!c || !conn_is_peer(c, in))
		return NULL;
	/* A peer that refuses a REQ may have no id yet, and we know none. */
	if (c->state != CONN_REQ_SENT && rej->local_comm_id != c->remote_comm_id)
		return NULL;
	return c;
}

struct route_key hangup_route(const struct cm *cm, const struct flow *in, const uint8_t *msg)
{
	struct cm_rej rej;

	cm_rej_decode(&rej, msg);
	return (struct route_key){.known = rejected(cm, in, &rej),
				  .note = request_note(in, get_be64(rej.info), rej.local_comm_id)};
}

static void tell_rejected(struct cm_id *id, const struct cm_rej *rej)
{
	struct cm_param p = {.data_len = CM_REJ_DATA_LEN};

	memcpy(p.data, rej->private_data, CM_REJ_DATA_LEN);
	event_tell(id, CM_REJECTED, rej->reason, &p);
}

/* The numbers of a queue pair that may have exchanged packets are not reused for a while. */
static bool ends_in_timewait(const struct conn *c, uint16_t reason)
{
	switch (c->state) {
	case CONN_REQ_SENT:
	case CONN_REQ_RCVD:
	case CONN_REP_SENT: return reason == CM_REJ_STALE;
	default: return true;
	}
}

void hangup_rej(struct cm *cm, const struct flow *in, const struct mad *mad, const uint8_t *msg, uint64_t now_ns)
{
	struct cm_rej rej;
	struct conn *c;
	struct cm_id *id;

	cm_rej_decode(&rej, msg);
	c = rejected(cm, in, &rej);
	if (!c)
		return;
	switch (c->state) {
	case CONN_REQ_SENT:
	case CONN_REP_RCVD:
	case CONN_REQ_RCVD:
	case CONN_REP_SENT:
	case CONN_ESTABLISHED:
	case CONN_DREQ_SENT: break;
	default: return;
	}
	id = c->id;
	count_reject(&cm->counters.rejects_received, rej.reason);
	if (c->state == CONN_REQ_SENT && rej.reason == CM_REJ_SERVICE_ID && conn_ask_again(c, now_ns))
		return;
	if (ends_in_timewait(c, rej.reason))
		conn_to_timewait(c, now_ns);
	else
		conn_close(c);
	tell_rejected(id, &rej);
}

/* ---- MRA ------------------------------------------------------------------------------------------ */

void hangup_mra(struct cm *cm, const struct flow *in, const struct mad *mad, const uint8_t *msg, uint64_t now_ns)
{
	struct cm_mra mra;
	struct conn *c;

	cm_mra_decode(&mra, msg);
	c = conn_find(cm, mra.remote_comm_id);
	if (!c || !conn_is_peer(c, in))
		return;
	if ((c->state == CONN_REQ_SENT && mra.answered == CM_ANSWERED_REQ) ||
	    (c->state == CONN_REP_SENT && mra.answered == CM_ANSWERED_REP && mra.local_comm_id == c->remote_comm_id))
		conn_be_patient(c, mra.service_timeout, now_ns);
}
