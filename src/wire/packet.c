/* SPDX-License-Identifier: BSD-2-Clause */
/* The length judge. It is the only place that compares a packet's length with its opcode. */
#include "wire/packet.h"

#include "wire/icrc.h"

bool opcode_judge_length(const uint8_t *data, uint32_t len, const struct opcode_info **info, struct bth *bth,
			 uint32_t *header_len, uint32_t *payload_len)
{
	if (len < BTH_LEN + ICRC_LEN)
		return false;

	struct bth b;
	bth_decode(&b, data);

	const struct opcode_info *i = opcode_info(b.opcode);
	if (!i || len < i->header_len + (uint32_t)ICRC_LEN)
		return false;

	uint32_t body = len - i->header_len - ICRC_LEN;
	if (body % 4 || b.pad > body)
		return false;
	if (body && !(i->flags & F_PAYLOAD))
		return false;

	*info = i;
	*bth = b;
	*header_len = i->header_len;
	*payload_len = body - b.pad;
	return true;
}
