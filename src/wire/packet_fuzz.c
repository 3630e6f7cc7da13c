/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Any bytes go to the length judge; what passes goes through every decoder its opcode names, each
 * at the place the table says, and back: the bytes must come out as they went in, reserved bits
 * aside.
 */
#include <stdlib.h>
#include <string.h>

#include "support/fuzz_input.h"
#include "wire/aeth.h"
#include "wire/atomicacketh.h"
#include "wire/atomiceth.h"
#include "wire/deth.h"
#include "wire/feth.h"
#include "wire/grh.h"
#include "wire/icrc.h"
#include "wire/ieth.h"
#include "wire/immdt.h"
#include "wire/packet.h"
#include "wire/reth.h"
#include "wire/xrceth.h"

static void fuzz_grh(const uint8_t *data, size_t size)
{
	uint8_t in[GRH_LEN], out[GRH_LEN];
	struct grh h;

	if (size < GRH_LEN)
		return;
	memcpy(in, data, GRH_LEN);
	in[0] = (uint8_t)(GRH_IPVER << 4 | (in[0] & 0x0f));
	grh_decode(&h, in);
	grh_encode(out, &h);
	must(!memcmp(in, out, GRH_LEN));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct opcode_info *info;
	struct bth bth;
	uint32_t header_len, payload_len, done = BTH_LEN;
	uint8_t headers[128], out[128];

	fuzz_grh(data, size);
	if (!opcode_judge_length(data, (uint32_t)size, &info, &bth, &header_len, &payload_len))
		return 0;
	must(info == opcode_info(data[0]));
	must(size == (size_t)header_len + payload_len + bth.pad + ICRC_LEN);
	must(payload_len == 0 || info->flags & F_PAYLOAD);
	must(header_len <= sizeof(headers));

	memcpy(headers, data, header_len);
	headers[4] &= 0xc0;
	headers[8] &= 0xe0;
	if (info->headers & H_DETH)
		headers[opcode_header_offset(info, H_DETH) + 4] = 0;

	if (info->headers & H_XRCETH)
		headers[opcode_header_offset(info, H_XRCETH)] = 0;

	if (info->headers & H_FETH) {
		memset(headers + opcode_header_offset(info, H_FETH), 0, 3);
		headers[opcode_header_offset(info, H_FETH) + 3] &= 0x3f;
	}

	memset(out, 0xa5, sizeof(out));
	bth_encode(out, &bth);
#define BACK_AND_FORTH(type, bit, bytes)                       \
	if (info->headers & (bit)) {                           \
		struct type h;                                 \
		uint32_t at = opcode_header_offset(info, bit); \
                                                               \
		must(at == done);                              \
		type##_decode(&h, data + at);                  \
		type##_encode(out + at, &h);                   \
		done += bytes;                                 \
	}
	BACK_AND_FORTH(xrceth, H_XRCETH, XRCETH_LEN)
	BACK_AND_FORTH(deth, H_DETH, DETH_LEN)
	BACK_AND_FORTH(feth, H_FETH, FETH_LEN)
	BACK_AND_FORTH(reth, H_RETH, RETH_LEN)
	BACK_AND_FORTH(atomiceth, H_ATOMICETH, ATOMICETH_LEN)
	BACK_AND_FORTH(aeth, H_AETH, AETH_LEN)
	BACK_AND_FORTH(atomicacketh, H_ATOMICACKETH, ATOMICACKETH_LEN)
	BACK_AND_FORTH(immdt, H_IMMDT, IMMDT_LEN)
	BACK_AND_FORTH(ieth, H_IETH, IETH_LEN)
	must(done == header_len);
	must(!memcmp(headers, out, header_len));
	return 0;
}
