/* SPDX-License-Identifier: BSD-2-Clause */
/* SIDR_REQ and SIDR_REP as bytes. */
#include "wire/cm_sidr.h"

#include <string.h>

#include "base/byteorder.h"

enum { REQ_DATA_AT = 16, REP_INFO_AT = 24, REP_DATA_AT = 96 };

void cm_sidr_req_decode(struct cm_sidr_req *h, const uint8_t *p)
{
	h->request_id = get_be32(p);
	h->pkey = get_be16(p + 4);
	h->service_id = get_be64(p + 8);
	memcpy(h->private_data, p + REQ_DATA_AT, CM_SIDR_REQ_DATA_LEN);
}

void cm_sidr_req_encode(uint8_t *p, const struct cm_sidr_req *h)
{
	put_be32(p, h->request_id);
	put_be16(p + 4, h->pkey);
	put_be16(p + 6, 0);
	put_be64(p + 8, h->service_id);
	memcpy(p + REQ_DATA_AT, h->private_data, CM_SIDR_REQ_DATA_LEN);
}

void cm_sidr_rep_decode(struct cm_sidr_rep *h, const uint8_t *p)
{
	h->request_id = get_be32(p);
	h->status = p[4];
	h->info_len = p[5];
	h->vendor_id = (uint32_t)get_be16(p + 6) << 8 | p[11];
	h->qpn = get_be24(p + 8);
	h->service_id = get_be64(p + 12);
	h->qkey = get_be32(p + 20);
	memcpy(h->info, p + REP_INFO_AT, CM_SIDR_INFO_LEN);
	memcpy(h->private_data, p + REP_DATA_AT, CM_SIDR_REP_DATA_LEN);
}

void cm_sidr_rep_encode(uint8_t *p, const struct cm_sidr_rep *h)
{
	put_be32(p, h->request_id);
	p[4] = h->status;
	p[5] = h->info_len;
	put_be16(p + 6, (uint16_t)(h->vendor_id >> 8));
	put_be24(p + 8, h->qpn);
	p[11] = (uint8_t)h->vendor_id;
	put_be64(p + 12, h->service_id);
	put_be32(p + 20, h->qkey);
	memcpy(p + REP_INFO_AT, h->info, CM_SIDR_INFO_LEN);
	memcpy(p + REP_DATA_AT, h->private_data, CM_SIDR_REP_DATA_LEN);
}
