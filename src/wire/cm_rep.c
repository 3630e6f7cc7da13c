/* SPDX-License-Identifier: BSD-2-Clause */
/* REP and RTU as bytes. */
#include "wire/cm_rep.h"

#include <string.h>

#include "base/byteorder.h"

enum { REP_DATA_AT = 36, RTU_DATA_AT = 8 };

void cm_rep_decode(struct cm_rep *h, const uint8_t *p)
{
	h->local_comm_id = get_be32(p);
	h->remote_comm_id = get_be32(p + 4);
	h->qkey = get_be32(p + 8);
	h->qpn = get_be24(p + 12);
	h->vendor_id = (uint32_t)p[15] << 16 | (uint32_t)p[19] << 8 | p[23];
	h->eecn = get_be24(p + 16);
	h->psn = get_be24(p + 20);
	h->responder_resources = p[24];
	h->initiator_depth = p[25];
	h->target_ack_delay = p[26] >> 3;
	h->failover = p[26] >> 1 & 3;
	h->flow_control = p[26] & 1;
	h->rnr_retry_count = p[27] >> 5;
	h->srq = p[27] >> 4 & 1;
	h->ca_guid = get_be64(p + 28);
	memcpy(h->private_data, p + REP_DATA_AT, CM_REP_DATA_LEN);
}

void cm_rep_encode(uint8_t *p, const struct cm_rep *h)
{
	put_be32(p, h->local_comm_id);
	put_be32(p + 4, h->remote_comm_id);
	put_be32(p + 8, h->qkey);
	put_be24(p + 12, h->qpn);
	p[15] = (uint8_t)(h->vendor_id >> 16);
	put_be24(p + 16, h->eecn);
	p[19] = (uint8_t)(h->vendor_id >> 8);
	put_be24(p + 20, h->psn);
	p[23] = (uint8_t)h->vendor_id;
	p[24] = h->responder_resources;
	p[25] = h->initiator_depth;
	p[26] = (uint8_t)((h->target_ack_delay & 0x1f) << 3 | (h->failover & 3) << 1 | h->flow_control);
	p[27] = (uint8_t)((h->rnr_retry_count & 7) << 5 | h->srq << 4);
	put_be64(p + 28, h->ca_guid);
	memcpy(p + REP_DATA_AT, h->private_data, CM_REP_DATA_LEN);
}

void cm_rtu_decode(struct cm_rtu *h, const uint8_t *p)
{
	h->local_comm_id = get_be32(p);
	h->remote_comm_id = get_be32(p + 4);
	memcpy(h->private_data, p + RTU_DATA_AT, CM_RTU_DATA_LEN);
}

void cm_rtu_encode(uint8_t *p, const struct cm_rtu *h)
{
	put_be32(p, h->local_comm_id);
	put_be32(p + 4, h->remote_comm_id);
	memcpy(p + RTU_DATA_AT, h->private_data, CM_RTU_DATA_LEN);
}
