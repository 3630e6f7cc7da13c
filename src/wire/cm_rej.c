/* SPDX-License-Identifier: BSD-2-Clause */
/* MRA and REJ as bytes. */
#include "wire/cm_rej.h"

#include <string.h>

#include "base/byteorder.h"

enum { MRA_DATA_AT = 10, REJ_INFO_AT = 12, REJ_DATA_AT = 84 };

void cm_mra_decode(struct cm_mra *h, const uint8_t *p)
{
	h->local_comm_id = get_be32(p);
	h->remote_comm_id = get_be32(p + 4);
	h->answered = p[8] >> 6;
	h->service_timeout = p[9] >> 3;
	memcpy(h->private_data, p + MRA_DATA_AT, CM_MRA_DATA_LEN);
}

void cm_mra_encode(uint8_t *p, const struct cm_mra *h)
{
	put_be32(p, h->local_comm_id);
	put_be32(p + 4, h->remote_comm_id);
	p[8] = (uint8_t)(h->answered << 6);
	p[9] = (uint8_t)((h->service_timeout & 0x1f) << 3);
	memcpy(p + MRA_DATA_AT, h->private_data, CM_MRA_DATA_LEN);
}

void cm_rej_decode(struct cm_rej *h, const uint8_t *p)
{
	h->local_comm_id = get_be32(p);
	h->remote_comm_id = get_be32(p + 4);
	h->answered = p[8] >> 6;
	h->info_len = p[9] >> 1;
	h->reason = get_be16(p + 10);
	memcpy(h->info, p + REJ_INFO_AT, CM_REJ_INFO_LEN);
	memcpy(h->private_data, p + REJ_DATA_AT, CM_REJ_DATA_LEN);
}

void cm_rej_encode(uint8_t *p, const struct cm_rej *h)
{
	put_be32(p, h->local_comm_id);
	put_be32(p + 4, h->remote_comm_id);
	p[8] = (uint8_t)(h->answered << 6);
	p[9] = (uint8_t)(h->info_len << 1);
	put_be16(p + 10, h->reason);
	memcpy(p + REJ_INFO_AT, h->info, CM_REJ_INFO_LEN);
	memcpy(p + REJ_DATA_AT, h->private_data, CM_REJ_DATA_LEN);
}
