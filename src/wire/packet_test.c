/* SPDX-License-Identifier: BSD-2-Clause */
/* The length judge accepts exactly the lengths that an opcode allows. */

#include "support/test.h"
#include "wire/icrc.h"
#include "wire/packet.h"

struct verdict {
	bool ok;
	const struct opcode_info *info;
	struct bth bth;
	uint32_t header_len, payload_len;
};

/* Judges len bytes in a block of exactly that size, so that a sanitizer sees any overread. */
static struct verdict judge(uint8_t opcode, uint8_t pad, uint32_t len)
{
	struct verdict v = {.header_len = 777, .payload_len = 777};
	uint8_t full[BTH_LEN];
	uint8_t *data = calloc(1, len ? len : 1);

	bth_encode(full, &(struct bth){.opcode = opcode, .pad = pad, .psn = 0x123456});
	memcpy(data, full, len < BTH_LEN ? len : BTH_LEN);
	v.ok = opcode_judge_length(data, len, &v.info, &v.bth, &v.header_len, &v.payload_len);
	free(data);
	return v;
}

TEST(judge_accepts_exactly_the_lengths_of_every_opcode)
{
	for (unsigned op = 0; op < 256; op++) {
		const struct opcode_info *info = opcode_info((uint8_t)op);

		for (uint32_t len = 0; len < 80; len++) {
			struct verdict v = judge((uint8_t)op, 0, len);
			uint32_t least = opcode_header_len((uint8_t)op) + ICRC_LEN;
			bool expect =
				info && (len == least || (len > least && len % 4 == 0 && (info->flags & F_PAYLOAD)));

			assert_int_equal(v.ok, expect);
			if (!expect)
				continue;
			assert_ptr_equal(v.info, info);
			assert_int_equal(v.header_len, least - ICRC_LEN);
			assert_int_equal(v.payload_len, len - least);
			assert_int_equal(v.bth.opcode, op);
			assert_int_equal(v.bth.psn, 0x123456);
		}
	}
}

TEST(judge_takes_the_pad_from_the_payload)
{
	for (uint8_t pad = 0; pad < 4; pad++) {
		struct verdict v = judge(OP_RC_SEND_ONLY, pad, BTH_LEN + 8 + ICRC_LEN);

		assert_true(v.ok);
		assert_int_equal(v.payload_len, 8 - pad);
	}
}

TEST(judge_rejects_a_pad_larger_than_the_body)
{
	assert_true(judge(OP_RC_SEND_ONLY, 0, BTH_LEN + ICRC_LEN).ok);
	assert_false(judge(OP_RC_SEND_ONLY, 1, BTH_LEN + ICRC_LEN).ok);
	assert_false(judge(OP_RC_ACK, 3, BTH_LEN + 4 + ICRC_LEN).ok);
}

TEST(judge_accepts_a_cnp_with_and_without_its_reserved_bytes)
{
	assert_true(judge(OP_CNP, 0, BTH_LEN + ICRC_LEN).ok);
	assert_true(judge(OP_CNP, 0, BTH_LEN + CNP_RESV_LEN + ICRC_LEN).ok);
}

TEST(judge_leaves_outputs_alone_on_false)
{
	struct verdict v = judge(OP_RC_SEND_ONLY, 3, BTH_LEN + ICRC_LEN);

	assert_false(v.ok);
	assert_null(v.info);
	assert_int_equal(v.bth.pad, 0);
	assert_int_equal(v.header_len, 777);
	assert_int_equal(v.payload_len, 777);
}
