/* SPDX-License-Identifier: BSD-2-Clause */
/* The opcode table: which opcodes exist, and that each row makes sense. */

#include "support/test.h"
#include "wire/opcode.h"

TEST(opcode_known_set_is_rc_uc_ud_xrc_and_cnp)
{
	for (unsigned op = 0; op < 256; op++) {
		int known = op <= 0x14 || op == 0x16 || op == 0x17 || op == 0x1c || op == 0x1d ||
			    (op >= 0x20 && op <= 0x2b) || op == 0x64 || op == 0x65 || op == 0x81 ||
			    (op >= 0xa0 && op <= 0xb4) || op == 0xb6 || op == 0xb7;

		assert_int_equal(opcode_info((uint8_t)op) != NULL, known);
		if (!known)
			assert_int_equal(opcode_header_len((uint8_t)op), 0);
	}
}

/* By hand: 12 for BTH plus the headers that IBTA 9.4 gives for the operation. */
TEST(opcode_header_lengths_are_the_specs)
{
	static const struct {
		uint8_t opcode;
		uint8_t len;
	} row[] = {
		{OP_RC_SEND_FIRST, 12},
		{OP_RC_SEND_MIDDLE, 12},
		{OP_RC_SEND_LAST, 12},
		{OP_RC_SEND_LAST_IMM, 16},
		{OP_RC_SEND_ONLY, 12},
		{OP_RC_SEND_ONLY_IMM, 16},
		{OP_RC_WRITE_FIRST, 28},
		{OP_RC_WRITE_MIDDLE, 12},
		{OP_RC_WRITE_LAST, 12},
		{OP_RC_WRITE_LAST_IMM, 16},
		{OP_RC_WRITE_ONLY, 28},
		{OP_RC_WRITE_ONLY_IMM, 32},
		{OP_RC_READ_REQUEST, 28},
		{OP_RC_READ_RESPONSE_FIRST, 16},
		{OP_RC_READ_RESPONSE_MIDDLE, 12},
		{OP_RC_READ_RESPONSE_LAST, 16},
		{OP_RC_READ_RESPONSE_ONLY, 16},
		{OP_RC_ACK, 16},
		{OP_RC_ATOMIC_ACK, 24},
		{OP_RC_CMP_SWAP, 40},
		{OP_RC_FETCH_ADD, 40},
		{OP_RC_FLUSH, 32},
		{OP_RC_ATOMIC_WRITE, 28},
		{OP_RC_SEND_LAST_INV, 16},
		{OP_RC_SEND_ONLY_INV, 16},
		{OP_UC_SEND_FIRST, 12},
		{OP_UC_WRITE_FIRST, 28},
		{OP_UC_WRITE_ONLY_IMM, 32},
		{OP_UD_SEND_ONLY, 20},
		{OP_UD_SEND_ONLY_IMM, 24},
		{OP_XRC_SEND_FIRST, 16},
		{OP_XRC_SEND_MIDDLE, 16},
		{OP_XRC_SEND_LAST_IMM, 20},
		{OP_XRC_WRITE_MIDDLE, 16},
		{OP_XRC_WRITE_ONLY_IMM, 36},
		{OP_XRC_READ_REQUEST, 32},
		{OP_XRC_READ_RESPONSE_FIRST, 16},
		{OP_XRC_READ_RESPONSE_MIDDLE, 12},
		{OP_XRC_ACK, 16},
		{OP_XRC_ATOMIC_ACK, 24},
		{OP_XRC_CMP_SWAP, 44},
		{OP_XRC_SEND_ONLY_INV, 20},
		{OP_CNP, 12},
	};

	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++)
		assert_int_equal(opcode_header_len(row[i].opcode), row[i].len);
}

/* The name says the role in words; the flags and headers must say the same. */
TEST(opcode_flags_agree_with_the_name)
{
	static const struct {
		const char *word;
		uint16_t flags;
	} word[] = {
		{"_SEND_", F_SEND},  {"_WRITE_", F_WRITE},  {"_READ_", F_READ},
		{"_FIRST", F_FIRST}, {"_MIDDLE", F_MIDDLE}, {"_LAST", F_LAST},
		{"_IMM", F_IMM},     {"_INV", F_INV},       {"_RESPONSE_", F_RESPONSE | F_READ},
		{"RC_ACK", F_ACK},
	};

	for (unsigned op = 0; op < 256; op++) {
		const struct opcode_info *i = opcode_info((uint8_t)op);

		if (!i)
			continue;
		for (size_t w = 0; w < sizeof(word) / sizeof(word[0]); w++) {
			int said = strstr(i->name, word[w].word) != NULL;

			assert_int_equal((i->flags & word[w].flags) == word[w].flags, said);
		}
	}
}

TEST(opcode_rows_are_consistent)
{
	static const uint16_t roles[] = {F_FIRST, F_MIDDLE, F_LAST, F_ONLY};
	static const uint16_t kinds[] = {F_SEND, F_WRITE, F_READ, F_ATOMIC, F_ACK, F_MPE};

	for (unsigned op = 0; op < 256; op++) {
		const struct opcode_info *i = opcode_info((uint8_t)op);
		int n_roles = 0, n_kinds = 0;

		if (!i || op == OP_CNP)
			continue;
		for (size_t k = 0; k < 4; k++)
			n_roles += (i->flags & roles[k]) != 0;
		for (size_t k = 0; k < 6; k++)
			n_kinds += (i->flags & kinds[k]) != 0;
		assert_int_equal(n_roles, 1);
		assert_int_equal(n_kinds, 1);
		assert_int_not_equal(!(i->flags & F_REQUEST), !(i->flags & F_RESPONSE));
		assert_true(i->headers & H_BTH);
		assert_int_equal(!(i->headers & H_DETH), opcode_service((uint8_t)op) != SVC_UD);
		assert_int_equal((i->flags & F_FULL) != 0, (i->flags & (F_FIRST | F_MIDDLE)) != 0);
		if (i->flags & F_FULL)
			assert_true(i->flags & F_PAYLOAD);
		/* A response other than a middle one acknowledges. */
		if (i->flags & F_RESPONSE)
			assert_int_equal(!(i->headers & H_AETH), (i->flags & F_MIDDLE) != 0);
		/* A write names its place once, where it starts. */
		if (i->flags & F_WRITE)
			assert_int_equal((i->headers & H_RETH) != 0, (i->flags & F_START) != 0);
	}
}

TEST(opcode_uc_rows_are_those_of_rc)
{
	for (unsigned op = OP_UC_SEND_FIRST; op <= OP_UC_WRITE_ONLY_IMM; op++) {
		const struct opcode_info *uc = opcode_info((uint8_t)op);
		const struct opcode_info *rc = opcode_info((uint8_t)(op & 0x1f));

		assert_int_equal(uc->headers, rc->headers);
		assert_int_equal(uc->flags, rc->flags);
		assert_string_equal(uc->name + 2, rc->name + 2);
	}
}

/* A14.3.2: RC's operations in RC's order; requests alone have an XRCETH. */
TEST(opcode_xrc_rows_are_those_of_rc)
{
	for (unsigned op = OP_XRC_SEND_FIRST; op <= OP_XRC_SEND_ONLY_INV; op++) {
		const struct opcode_info *xrc = opcode_info((uint8_t)op);
		const struct opcode_info *rc = opcode_info((uint8_t)(op & 0x1f));

		assert_int_equal(xrc != NULL, rc != NULL);
		if (!xrc)
			continue;
		assert_int_equal(xrc->headers, rc->headers | (rc->flags & F_REQUEST ? H_XRCETH : 0));
		assert_int_equal(xrc->flags, rc->flags);
		assert_string_equal(xrc->name + 3, rc->name + 2);
	}
}

TEST(opcode_service_is_the_high_bits)
{
	assert_int_equal(opcode_service(OP_RC_SEND_ONLY_INV), SVC_RC);
	assert_int_equal(opcode_service(OP_UC_SEND_FIRST), SVC_UC);
	assert_int_equal(opcode_service(0x44), SVC_RD);
	assert_int_equal(opcode_service(OP_UD_SEND_ONLY_IMM), SVC_UD);
	assert_int_equal(opcode_service(OP_CNP), SVC_CNP);
	assert_int_equal(opcode_service(OP_XRC_SEND_FIRST), SVC_XRC);
}

TEST(opcode_header_offsets_follow_wire_order)
{
	static const struct {
		uint8_t opcode;
		uint32_t header;
		uint32_t offset;
	} row[] = {
		{OP_RC_SEND_ONLY, H_BTH, 0},
		{OP_RC_WRITE_ONLY_IMM, H_RETH, 12},
		{OP_RC_WRITE_ONLY_IMM, H_IMMDT, 28},
		{OP_RC_ATOMIC_ACK, H_AETH, 12},
		{OP_RC_ATOMIC_ACK, H_ATOMICACKETH, 16},
		{OP_RC_CMP_SWAP, H_ATOMICETH, 12},
		{OP_RC_FLUSH, H_FETH, 12},
		{OP_RC_FLUSH, H_RETH, 16},
		{OP_RC_ATOMIC_WRITE, H_RETH, 12},
		{OP_RC_SEND_LAST_INV, H_IETH, 12},
		{OP_UD_SEND_ONLY_IMM, H_DETH, 12},
		{OP_UD_SEND_ONLY_IMM, H_IMMDT, 20},
		{OP_XRC_WRITE_ONLY_IMM, H_XRCETH, 12},
		{OP_XRC_WRITE_ONLY_IMM, H_RETH, 16},
		{OP_XRC_WRITE_ONLY_IMM, H_IMMDT, 32},
		{OP_XRC_CMP_SWAP, H_ATOMICETH, 16},
	};

	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++)
		assert_int_equal(opcode_header_offset(opcode_info(row[i].opcode), row[i].header), row[i].offset);
}
