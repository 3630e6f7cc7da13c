/* SPDX-License-Identifier: BSD-2-Clause */
/* Messages to send: a queue of MADs, and the answers that need no state of their own. */
#include <string.h>

#include "cm/state.h"
#include "wire/cm_dreq.h"
#include "wire/cm_rej.h"
#include "wire/cm_rep.h"

void message_start(uint8_t *mad, enum cm_attribute attribute, uint64_t tid)
{
	memset(mad, 0, MAD_LEN);
	mad_encode(mad, &(struct mad){.base_version = MAD_BASE_VERSION,
				      .mgmt_class = CM_CLASS,
				      .class_version = CM_CLASS_VERSION,
				      .method = MAD_METHOD_SEND,
				      .tid = tid,
				      .attribute = (uint16_t)attribute});
}

void message_set_modifier(uint8_t *mad, uint32_t modifier)
{
	struct mad h;

	mad_decode(&h, mad);
	h.modifier = modifier;
	mad_encode(mad, &h);
}

void message_send(struct cm *cm, const struct flow *flow, const uint8_t *mad)
{
	struct out *o = cm->out_count < CM_OUT_MAX ? pool_get(&cm->pool, sizeof(*o)) : NULL;

	if (!o)
		return;
	o->flow = *flow;
	memcpy(o->mad, mad, MAD_LEN);
	list_append(&cm->out, &o->link);
	cm->out_count++;
}

struct flow message_flow_back(const struct flow *in)
{
	struct flow out = {.ifindex = in->ifindex, .ttl = CM_HOP_LIMIT, .tos = in->tos & 0xfc};

	memcpy(out.src, in->dst, sizeof(out.src));
	memcpy(out.dst, in->src, sizeof(out.dst));
	return out;
}

void message_rej(struct cm *cm, const struct flow *to, uint64_t tid, const struct refusal *r)
{
	struct cm_rej rej = {.local_comm_id = r->local_comm_id,
			     .remote_comm_id = r->remote_comm_id,
			     .answered = r->answered,
			     .info_len = (uint8_t)r->info_len,
			     .reason = r->reason};
	uint8_t mad[MAD_LEN];

	count_reject(&cm->counters.rejects_sent, r->reason);
	if (r->info_len)
		memcpy(rej.info, r->info, r->info_len < CM_REJ_INFO_LEN ? r->info_len : CM_REJ_INFO_LEN);
	if (r->data_len)
		memcpy(rej.private_data, r->data, r->data_len < CM_REJ_DATA_LEN ? r->data_len : CM_REJ_DATA_LEN);
	message_start(mad, CM_REJ, tid);
	cm_rej_encode(mad + MAD_HEADER_LEN, &rej);
	message_send(cm, to, mad);
}

void message_mra(const struct conn *c, uint8_t answered)
{
	uint8_t mad[MAD_LEN];

	message_start(mad, CM_MRA, c->tid);
	cm_mra_encode(mad + MAD_HEADER_LEN, &(struct cm_mra){.local_comm_id = c->local_comm_id,
							     .remote_comm_id = c->remote_comm_id,
							     .answered = answered,
							     .service_timeout = CM_SERVICE_TIMEOUT});
	message_send(c->cm, &c->flow, mad);
}

void message_rtu(const struct conn *c)
{
	uint8_t mad[MAD_LEN];

	message_start(mad, CM_RTU, c->tid);
	cm_rtu_encode(mad + MAD_HEADER_LEN,
		      &(struct cm_rtu){.local_comm_id = c->local_comm_id, .remote_comm_id = c->remote_comm_id});
	message_send(c->cm, &c->flow, mad);
}

void message_drep(struct cm *cm, const struct flow *to, uint64_t tid, uint32_t local_comm_id, uint32_t remote_comm_id)
{
	uint8_t mad[MAD_LEN];

	message_start(mad, CM_DREP, tid);
	cm_drep_encode(mad + MAD_HEADER_LEN,
		       &(struct cm_drep){.local_comm_id = local_comm_id, .remote_comm_id = remote_comm_id});
	message_send(cm, to, mad);
}
