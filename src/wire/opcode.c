/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The opcode table (IBTA 9.2 names the opcodes, 9.4 the headers of each operation). A row holds
 * what the spec says and nothing else; lengths and the F_IMM, F_INV and F_FULL flags follow from
 * it.
 */
#include "wire/opcode.h"

#include "wire/aeth.h"
#include "wire/atomicacketh.h"
#include "wire/atomiceth.h"
#include "wire/bth.h"
#include "wire/deth.h"
#include "wire/ieth.h"
#include "wire/immdt.h"
#include "wire/reth.h"

/* Total length of the headers in the set h. */
#define HEADERS_LEN(h)                                                                             \
	(((h)&H_BTH ? BTH_LEN : 0) + ((h)&H_DETH ? DETH_LEN : 0) + ((h)&H_RETH ? RETH_LEN : 0) +   \
	 ((h)&H_ATOMICETH ? ATOMICETH_LEN : 0) + ((h)&H_AETH ? AETH_LEN : 0) +                     \
	 ((h)&H_ATOMICACKETH ? ATOMICACKETH_LEN : 0) + ((h)&H_IMMDT ? IMMDT_LEN : 0) +             \
	 ((h)&H_IETH ? IETH_LEN : 0))

#define DERIVED_FLAGS(h, f)                                                                        \
	(((h)&H_IMMDT ? F_IMM : 0) | ((h)&H_IETH ? F_INV : 0) |                                    \
	 ((f) & (F_FIRST | F_MIDDLE) ? F_FULL : 0))

#define ROW(op, h, f)                                                                              \
	[OP_##op] = {.headers = (h),                                                               \
		     .flags = (f) | DERIVED_FLAGS((h), (f)),                                       \
		     .header_len = HEADERS_LEN(h),                                                 \
		     .name = #op}

/* clang-format off */
const struct opcode_info opcode_table[256] = {
	ROW(RC_SEND_FIRST,           H_BTH,           F_REQUEST | F_SEND | F_FIRST | F_PAYLOAD),
	ROW(RC_SEND_MIDDLE,          H_BTH,           F_REQUEST | F_SEND | F_MIDDLE | F_PAYLOAD),
	ROW(RC_SEND_LAST,            H_BTH,           F_REQUEST | F_SEND | F_LAST | F_PAYLOAD),
	ROW(RC_SEND_LAST_IMM,        H_BTH | H_IMMDT, F_REQUEST | F_SEND | F_LAST | F_PAYLOAD),
	ROW(RC_SEND_ONLY,            H_BTH,           F_REQUEST | F_SEND | F_ONLY | F_PAYLOAD),
	ROW(RC_SEND_ONLY_IMM,        H_BTH | H_IMMDT, F_REQUEST | F_SEND | F_ONLY | F_PAYLOAD),
	ROW(RC_WRITE_FIRST,          H_BTH | H_RETH,  F_REQUEST | F_WRITE | F_FIRST | F_PAYLOAD),
	ROW(RC_WRITE_MIDDLE,         H_BTH,           F_REQUEST | F_WRITE | F_MIDDLE | F_PAYLOAD),
	ROW(RC_WRITE_LAST,           H_BTH,           F_REQUEST | F_WRITE | F_LAST | F_PAYLOAD),
	ROW(RC_WRITE_LAST_IMM,       H_BTH | H_IMMDT, F_REQUEST | F_WRITE | F_LAST | F_PAYLOAD),
	ROW(RC_WRITE_ONLY,           H_BTH | H_RETH,  F_REQUEST | F_WRITE | F_ONLY | F_PAYLOAD),
	ROW(RC_WRITE_ONLY_IMM,       H_BTH | H_RETH | H_IMMDT,
						      F_REQUEST | F_WRITE | F_ONLY | F_PAYLOAD),
	ROW(RC_READ_REQUEST,         H_BTH | H_RETH,  F_REQUEST | F_READ | F_ONLY),
	ROW(RC_READ_RESPONSE_FIRST,  H_BTH | H_AETH,  F_RESPONSE | F_READ | F_FIRST | F_PAYLOAD),
	ROW(RC_READ_RESPONSE_MIDDLE, H_BTH,           F_RESPONSE | F_READ | F_MIDDLE | F_PAYLOAD),
	ROW(RC_READ_RESPONSE_LAST,   H_BTH | H_AETH,  F_RESPONSE | F_READ | F_LAST | F_PAYLOAD),
	ROW(RC_READ_RESPONSE_ONLY,   H_BTH | H_AETH,  F_RESPONSE | F_READ | F_ONLY | F_PAYLOAD),
	ROW(RC_ACK,                  H_BTH | H_AETH,  F_RESPONSE | F_ACK | F_ONLY),
	ROW(RC_ATOMIC_ACK,           H_BTH | H_AETH | H_ATOMICACKETH,
						      F_RESPONSE | F_ATOMIC | F_ONLY),
	ROW(RC_CMP_SWAP,             H_BTH | H_ATOMICETH,
						      F_REQUEST | F_ATOMIC | F_ONLY),
	ROW(RC_FETCH_ADD,            H_BTH | H_ATOMICETH,
						      F_REQUEST | F_ATOMIC | F_ONLY),
	ROW(RC_SEND_LAST_INV,        H_BTH | H_IETH,  F_REQUEST | F_SEND | F_LAST | F_PAYLOAD),
	ROW(RC_SEND_ONLY_INV,        H_BTH | H_IETH,  F_REQUEST | F_SEND | F_ONLY | F_PAYLOAD),

	ROW(UC_SEND_FIRST,           H_BTH,           F_REQUEST | F_SEND | F_FIRST | F_PAYLOAD),
	ROW(UC_SEND_MIDDLE,          H_BTH,           F_REQUEST | F_SEND | F_MIDDLE | F_PAYLOAD),
	ROW(UC_SEND_LAST,            H_BTH,           F_REQUEST | F_SEND | F_LAST | F_PAYLOAD),
	ROW(UC_SEND_LAST_IMM,        H_BTH | H_IMMDT, F_REQUEST | F_SEND | F_LAST | F_PAYLOAD),
	ROW(UC_SEND_ONLY,            H_BTH,           F_REQUEST | F_SEND | F_ONLY | F_PAYLOAD),
	ROW(UC_SEND_ONLY_IMM,        H_BTH | H_IMMDT, F_REQUEST | F_SEND | F_ONLY | F_PAYLOAD),
	ROW(UC_WRITE_FIRST,          H_BTH | H_RETH,  F_REQUEST | F_WRITE | F_FIRST | F_PAYLOAD),
	ROW(UC_WRITE_MIDDLE,         H_BTH,           F_REQUEST | F_WRITE | F_MIDDLE | F_PAYLOAD),
	ROW(UC_WRITE_LAST,           H_BTH,           F_REQUEST | F_WRITE | F_LAST | F_PAYLOAD),
	ROW(UC_WRITE_LAST_IMM,       H_BTH | H_IMMDT, F_REQUEST | F_WRITE | F_LAST | F_PAYLOAD),
	ROW(UC_WRITE_ONLY,           H_BTH | H_RETH,  F_REQUEST | F_WRITE | F_ONLY | F_PAYLOAD),
	ROW(UC_WRITE_ONLY_IMM,       H_BTH | H_RETH | H_IMMDT,
						      F_REQUEST | F_WRITE | F_ONLY | F_PAYLOAD),

	ROW(UD_SEND_ONLY,            H_BTH | H_DETH,  F_REQUEST | F_SEND | F_ONLY | F_PAYLOAD),
	ROW(UD_SEND_ONLY_IMM,        H_BTH | H_DETH | H_IMMDT,
						      F_REQUEST | F_SEND | F_ONLY | F_PAYLOAD),

	ROW(CNP,                     H_BTH,           F_PAYLOAD),
};
/* clang-format on */

uint32_t opcode_header_offset(const struct opcode_info *info, uint16_t h)
{
	uint32_t before = info->headers & (h - 1u);

	return HEADERS_LEN(before);
}
