/* SPDX-License-Identifier: BSD-2-Clause */
#include "wire/path_record.h"

#include <string.h>

enum { MASK_AT = 48, RECORD_AT = 56, DLID_AT = RECORD_AT + 40, SLID_AT = RECORD_AT + 42, SL_AT = RECORD_AT + 52 };

#define MASK_DLID (UINT64_C(1) << 4)
#define MASK_SLID (UINT64_C(1) << 5)

void path_query_encode(uint8_t p[MAD_LEN], uint64_t tid, uint16_t slid, uint16_t dlid)
{
	const struct mad h = {.base_version = MAD_BASE_VERSION,
			      .mgmt_class = SA_CLASS,
			      .class_version = SA_CLASS_VERSION,
			      .method = SA_METHOD_GET,
			      .tid = tid,
			      .attribute = SA_PATH_RECORD};

	memset(p, 0, MAD_LEN);
	mad_encode(p, &h);
	put_be64(p + MASK_AT, MASK_DLID | MASK_SLID);
	put_be16(p + DLID_AT, dlid);
	put_be16(p + SLID_AT, slid);
}

bool path_record_decode(struct path_record *r, const uint8_t p[MAD_LEN])
{
	struct mad h;

	mad_decode(&h, p);
	if (h.mgmt_class != SA_CLASS || h.method != SA_METHOD_GET_RESP || h.attribute != SA_PATH_RECORD || h.status)
		return false;
	*r = (struct path_record){.slid = get_be16(p + SLID_AT),
				  .dlid = get_be16(p + DLID_AT),
				  .sl = (uint8_t)(get_be16(p + SL_AT) & 15)};
	return true;
}
