/* SPDX-License-Identifier: BSD-2-Clause */
/* REQ as bytes. */
#include "wire/cm_req.h"

#include <string.h>

#include "base/byteorder.h"

enum { PRIMARY_AT = 52, ALTERNATE_AT = 96, DATA_AT = 140 };

static void path_decode(struct cm_path *h, const uint8_t *p)
{
	uint32_t label = get_be32(p + 36);

	h->local_lid = get_be16(p);
	h->remote_lid = get_be16(p + 2);
	memcpy(h->local_gid, p + 4, sizeof(h->local_gid));
	memcpy(h->remote_gid, p + 20, sizeof(h->remote_gid));
	h->flow_label = label >> 12;
	h->rate = label & 0x3f;
	h->traffic_class = p[40];
	h->hop_limit = p[41];
	h->sl = p[42] >> 4;
	h->subnet_local = p[42] >> 3 & 1;
	h->ack_timeout = p[43] >> 3;
}

static void path_encode(uint8_t *p, const struct cm_path *h)
{
	put_be16(p, h->local_lid);
	put_be16(p + 2, h->remote_lid);
	memcpy(p + 4, h->local_gid, sizeof(h->local_gid));
	memcpy(p + 20, h->remote_gid, sizeof(h->remote_gid));
	put_be32(p + 36, (h->flow_label & 0xfffff) << 12 | (h->rate & 0x3f));
	p[40] = h->traffic_class;
	p[41] = h->hop_limit;
	p[42] = (uint8_t)((h->sl & 0xf) << 4 | h->subnet_local << 3);
	p[43] = (uint8_t)((h->ack_timeout & 0x1f) << 3);
}

void cm_req_decode(struct cm_req *h, const uint8_t *p)
{
	h->local_comm_id = get_be32(p);
	h->vendor_id = get_low24(p + 4);
	h->service_id = get_be64(p + 8);
	h->ca_guid = get_be64(p + 16);
	h->qkey = get_be32(p + 28);
	h->qpn = get_be24(p + 32);
	h->responder_resources = p[35];
	h->local_eecn = get_be24(p + 36);
	h->initiator_depth = p[39];
	h->remote_eecn = get_be24(p + 40);
	h->remote_cm_timeout = p[43] >> 3;
	h->transport = p[43] >> 1 & 3;
	h->flow_control = p[43] & 1;
	h->psn = get_be24(p + 44);
	h->local_cm_timeout = p[47] >> 3;
	h->retry_count = p[47] & 7;
	h->pkey = get_be16(p + 48);
	h->mtu = p[50] >> 4;
	h->rdc_exists = p[50] >> 3 & 1;
	h->rnr_retry_count = p[50] & 7;
	h->max_cm_retries = p[51] >> 4;
	h->srq = p[51] >> 3 & 1;
	h->extended_transport = p[51] & 7;
	path_decode(&h->primary, p + PRIMARY_AT);
	path_decode(&h->alternate, p + ALTERNATE_AT);
	memcpy(h->private_data, p + DATA_AT, CM_REQ_DATA_LEN);
}

void cm_req_encode(uint8_t *p, const struct cm_req *h)
{
	put_be32(p, h->local_comm_id);
	put_with24(p + 4, 0, h->vendor_id);
	put_be64(p + 8, h->service_id);
	put_be64(p + 16, h->ca_guid);
	put_be32(p + 24, 0);
	put_be32(p + 28, h->qkey);
	put_be24(p + 32, h->qpn);
	p[35] = h->responder_resources;
	put_be24(p + 36, h->local_eecn);
	p[39] = h->initiator_depth;
	put_be24(p + 40, h->remote_eecn);
	p[43] = (uint8_t)((h->remote_cm_timeout & 0x1f) << 3 | (h->transport & 3) << 1 | h->flow_control);
	put_be24(p + 44, h->psn);
	p[47] = (uint8_t)((h->local_cm_timeout & 0x1f) << 3 | (h->retry_count & 7));
	put_be16(p + 48, h->pkey);
	p[50] = (uint8_t)((h->mtu & 0xf) << 4 | h->rdc_exists << 3 | (h->rnr_retry_count & 7));
	p[51] = (uint8_t)((h->max_cm_retries & 0xf) << 4 | h->srq << 3 | (h->extended_transport & 7));
	path_encode(p + PRIMARY_AT, &h->primary);
	path_encode(p + ALTERNATE_AT, &h->alternate);
	memcpy(p + DATA_AT, h->private_data, CM_REQ_DATA_LEN);
}
