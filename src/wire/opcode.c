/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * RoCEv2's opcode table (IBTA 9.2 names the opcodes, 9.4 the headers of each operation). A row
 * holds what the spec says and nothing else; the rest follows from it in opcode_row.h.
 */
#include "wire/opcode.h"

#include "wire/opcode_row.h"

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
