/* SPDX-License-Identifier: BSD-2-Clause */
/* DREQ and DREP as bytes. */
#include "wire/cm_dreq.h"

#include <string.h>

#include "base/byteorder.h"

enum { DREQ_DATA_AT = 12, DREP_DATA_AT = 8 };

void cm_dreq_decode(struct cm_dreq *h, const uint8_t *p)
{
	h->local_comm_id = get_be32(p);
	h->remote_comm_id = get_be32(p + 4);
	h->remote_qpn = get_be24(p + 8);
	memcpy(h->private_data, p + DREQ_DATA_AT, CM_DREQ_DATA_LEN);
}

void cm_dreq_encode(uint8_t *p, const struct cm_dreq *h)
{
	put_be32(p, h->local_comm_id);
	put_be32(p + 4, h->remote_comm_id);
	put_be24(p + 8, h->remote_qpn);
	p[11] = 0;
	memcpy(p + DREQ_DATA_AT, h->private_data, CM_DREQ_DATA_LEN);
}

void cm_drep_decode(struct cm_drep *h, const uint8_t *p)
{
	h->local_comm_id = get_be32(p);
	h->remote_comm_id = get_be32(p + 4);
	memcpy(h->private_data, p + DREP_DATA_AT, CM_DREP_DATA_LEN);
}

void cm_drep_encode(uint8_t *p, const struct cm_drep *h)
{
	put_be32(p, h->local_comm_id);
	put_be32(p + 4, h->remote_comm_id);
	memcpy(p + DREP_DATA_AT, h->private_data, CM_DREP_DATA_LEN);
}
