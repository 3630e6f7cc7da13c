/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Any 256 bytes go through the codec that their attribute names, and back. The output differs from the input
 * by reserved bits alone; a second pass changes nothing. So every field has a place of its own: one that overlapped
 * another would spoil it.
 */
#include <string.h>

#include "support/fuzz_input.h"
#include "wire/cm_dreq.h"
#include "wire/cm_msg.h"
#include "wire/cm_rej.h"
#include "wire/cm_rep.h"
#include "wire/cm_req.h"
#include "wire/cm_sidr.h"
#include "wire/mad.h"

/* The bytes of each message that have reserved bits, and which bits these are. */
struct reserved {
	uint16_t attribute;
	struct {
		uint8_t at, bits;
	} bytes[32];
	size_t count;
};

static const struct reserved reserved[] = {
	{CM_REQ,
	 {{4, 0xff},
	  {24, 0xff},
	  {25, 0xff},
	  {26, 0xff},
	  {27, 0xff},
	  {90, 0x0f},
	  {91, 0xc0},
	  {94, 0x07},
	  {95, 0x07},
	  {134, 0x0f},
	  {135, 0xc0},
	  {138, 0x07},
	  {139, 0x07}},
	 13},
	{CM_MRA, {{8, 0x3f}, {9, 0x07}}, 2},
	{CM_REJ, {{8, 0x3f}, {9, 0x01}}, 2},
	{CM_REP, {{27, 0x0f}}, 1},
	{CM_DREQ, {{11, 0xff}}, 1},
	{CM_SIDR_REQ, {{6, 0xff}, {7, 0xff}}, 2},
};

static void clear_reserved(uint8_t *p, uint16_t attribute)
{
	for (size_t i = 0; i < sizeof(reserved) / sizeof(reserved[0]); i++) {
		if (reserved[i].attribute != attribute)
			continue;
		for (size_t k = 0; k < reserved[i].count; k++)
			p[reserved[i].bytes[k].at] &= (uint8_t)~reserved[i].bytes[k].bits;
	}
}

static bool back_and_forth(uint8_t *out, const uint8_t *in, uint16_t attribute)
{
	switch (attribute) {
#define CASE(value, type)               \
	case value: {                   \
		struct type h;          \
		type##_decode(&h, in);  \
		type##_encode(out, &h); \
		return true;            \
	}
		CASE(CM_REQ, cm_req)
		CASE(CM_MRA, cm_mra)
		CASE(CM_REJ, cm_rej)
		CASE(CM_REP, cm_rep)
		CASE(CM_RTU, cm_rtu)
		CASE(CM_DREQ, cm_dreq)
		CASE(CM_DREP, cm_drep)
		CASE(CM_SIDR_REQ, cm_sidr_req)
		CASE(CM_SIDR_REP, cm_sidr_rep)
	default: return false;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t in[MAD_LEN], out[MAD_LEN];
	struct mad h;

	if (size < MAD_LEN)
		return 0;
	memcpy(in, data, MAD_LEN);
	in[18] = in[19] = 0;
	memset(out, 0xa5, sizeof(out));
	mad_decode(&h, in);
	mad_encode(out, &h);
	if (!back_and_forth(out + MAD_HEADER_LEN, in + MAD_HEADER_LEN, h.attribute))
		return 0;
	clear_reserved(in + MAD_HEADER_LEN, h.attribute);
	must(!memcmp(in, out, MAD_LEN));
	return 0;
}
