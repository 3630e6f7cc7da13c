/* SPDX-License-Identifier: BSD-2-Clause */
/* The codec of flow control packets. */
#include "wire/flow_control.h"

#include "base/byteorder.h"
#include "wire/vcrc.h"

bool flow_control_decode(struct flow_control *h, const uint8_t *p)
{
	uint16_t first = get_be16(p), second = get_be16(p + 2);

	if (!vcrc_check(p, FLOW_CONTROL_LEN))
		return false;
	*h = (struct flow_control){
		.op = (uint8_t)(first >> 12),
		.fctbs = first & 0xfff,
		.vl = (uint8_t)(second >> 12),
		.fccl = second & 0xfff,
	};
	return true;
}

void flow_control_encode(uint8_t *p, const struct flow_control *h)
{
	put_be16(p, (uint16_t)(h->op << 12 | (h->fctbs & 0xfff)));
	put_be16(p + 2, (uint16_t)(h->vl << 12 | (h->fccl & 0xfff)));
	vcrc_seal(p, FLOW_CONTROL_LEN - VCRC_LEN);
}
