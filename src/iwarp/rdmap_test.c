/* SPDX-License-Identifier: BSD-2-Clause */
/* RDMAP's opcodes, headers and the judge of a ULPDU's form. */

#include "iwarp/golden.h"
#include "iwarp/rdmap.h"
#include "support/test.h"

static uint8_t raw[128];

/* The ULPDU of a golden FPDU. */
static struct rdmap_segment judged(const char *hex)
{
	struct rdmap_segment s;

	golden_bytes(raw, hex);
	assert_int_equal(rdmap_judge(&s, raw + 2, get_be16(raw)), TERM_NONE);
	return s;
}

/* RFC 5040 figure 4, RFC 7306 figure 5: typed anew. */
TEST(opcodes_are_those_of_the_standards)
{
	static const struct {
		uint8_t opcode;
		bool tagged;
		uint8_t qn, header_len;
	} rows[] = {{0, true, 0, 0},  {1, false, 1, 28}, {2, true, 0, 0},    {3, false, 0, 0},
		    {4, false, 0, 0}, {5, false, 0, 0},  {6, false, 0, 0},   {7, false, 2, 0},
		    {8, false, 0, 8}, {9, false, 0, 8},  {10, false, 1, 52}, {11, false, 3, 12}};

	for (size_t i = 0; i < RDMAP_OPCODES; i++) {
		if (i >= sizeof(rows) / sizeof(*rows)) {
			assert_null(rdmap_table[i].name);
			continue;
		}
		assert_int_equal(rows[i].opcode, i);
		assert_non_null(rdmap_table[i].name);
		assert_int_equal(rdmap_table[i].tagged, rows[i].tagged);
		assert_int_equal(rdmap_table[i].qn, rows[i].qn);
		assert_int_equal(rdmap_table[i].header_len, rows[i].header_len);
	}
}

TEST(tagged_golden_fields)
{
	struct rdmap_segment s = judged(GOLDEN_WRITE);
	uint8_t out[DDP_UNTAGGED_LEN];

	assert_true(s.ddp.tagged && s.ddp.last);
	assert_int_equal(s.ddp.opcode, RDMAP_WRITE);
	assert_int_equal(s.ddp.stag, 0x11223344);
	assert_true(s.ddp.to == 0x560012345000);
	assert_int_equal(s.payload_len, 16);
	assert_int_equal(s.payload[15], 15);
	ddp_encode(out, &s.ddp);
	assert_memory_equal(out, raw + 2, ddp_len(s.ddp.tagged));

	s = judged(GOLDEN_READ_RESPONSE);
	assert_int_equal(s.ddp.opcode, RDMAP_READ_RESPONSE);
	assert_memory_equal(s.payload, "0123", 4);
}

TEST(untagged_golden_fields)
{
	struct rdmap_segment s = judged(GOLDEN_SEND_SE_INV);
	uint8_t out[DDP_UNTAGGED_LEN];

	assert_false(s.ddp.tagged);
	assert_int_equal(s.ddp.opcode, RDMAP_SEND_SE_INV);
	assert_int_equal(s.ddp.stag, 0x11223344);
	assert_int_equal(s.ddp.qn, QN_SEND);
	assert_int_equal(s.ddp.msn, 2);
	assert_int_equal(s.ddp.mo, 0);
	assert_memory_equal(s.payload, "done", 4);
	ddp_encode(out, &s.ddp);
	assert_memory_equal(out, raw + 2, ddp_len(s.ddp.tagged));
}

TEST(read_request_golden_fields)
{
	struct rdmap_segment s = judged(GOLDEN_READ_REQUEST);
	uint8_t out[READ_REQUEST_LEN];
	struct read_request r;

	read_request_decode(&r, s.header);
	assert_int_equal(r.sink_stag, 0x55667788);
	assert_true(r.sink_to == 0x1000);
	assert_int_equal(r.size, 4096);
	assert_int_equal(r.source_stag, 0x11223344);
	assert_true(r.source_to == 0x560012345000);
	read_request_encode(out, &r);
	assert_memory_equal(out, s.header, sizeof(out));
}

TEST(atomic_golden_fields)
{
	struct rdmap_segment s = judged(GOLDEN_ATOMIC_REQUEST);
	uint8_t out[ATOMIC_REQUEST_LEN];
	struct atomic_response p;
	struct atomic_request r;

	atomic_request_decode(&r, s.header);
	assert_int_equal(r.operation, ATOMIC_FETCH_ADD);
	assert_int_equal(r.id, 7);
	assert_int_equal(r.stag, 0x11223344);
	assert_true(r.to == 0x560012345008 && r.add_swap == 1 && !r.add_swap_mask && !r.compare);
	assert_true(r.compare_mask == UINT64_MAX);
	atomic_request_encode(out, &r);
	assert_memory_equal(out, s.header, sizeof(out));

	s = judged(GOLDEN_ATOMIC_RESPONSE);
	atomic_response_decode(&p, s.header);
	assert_int_equal(p.id, 7);
	assert_true(p.found == 41);
	atomic_response_encode(out, &p);
	assert_memory_equal(out, s.header, ATOMIC_RESPONSE_LEN);
}

/* Each error in a form, and its code (RFC 5040 7, RFC 5041 7). */
TEST(a_wrong_form_has_its_code)
{
	static const struct {
		const char *golden;
		uint8_t at, value; /* of the ULPDU; 255: no byte is changed */
		int len_change;
		enum term_cause expect;
	} cases[] = {
		{GOLDEN_WRITE, 0, 0xc0, 0, TERM_TAGGED_VERSION},
		{GOLDEN_WRITE, 0, 0xc2, 0, TERM_TAGGED_VERSION},
		{GOLDEN_SEND, 0, 0x40, 0, TERM_UNTAGGED_VERSION},
		{GOLDEN_WRITE, 1, 0x00, 0, TERM_OPERATION_VERSION},
		{GOLDEN_WRITE, 1, 0x80, 0, TERM_OPERATION_VERSION},
		{GOLDEN_WRITE, 1, 0x43, 0, TERM_OPERATION_OPCODE}, /* a tagged Send */
		{GOLDEN_WRITE, 1, 0x4f, 0, TERM_OPERATION_OPCODE},
		{GOLDEN_SEND, 1, 0x40, 0, TERM_OPERATION_OPCODE}, /* an untagged Write */
		{GOLDEN_SEND, 1, 0x4c, 0, TERM_OPERATION_OPCODE},
		{GOLDEN_SEND, 9, 1, 0, TERM_OPERATION_OPCODE}, /* a Send on the queue of READs */
		{GOLDEN_SEND, 9, 4, 0, TERM_UNTAGGED_QN},
		{GOLDEN_SEND, 6, 1, 0, TERM_UNTAGGED_QN},
		{GOLDEN_WRITE, 255, 0, -17, TERM_DDP_CATASTROPHIC},
		{GOLDEN_SEND, 255, 0, -10, TERM_DDP_CATASTROPHIC},
		{GOLDEN_READ_REQUEST, 255, 0, -1, TERM_OPERATION_OTHER},
		{GOLDEN_READ_REQUEST, 255, 0, 1, TERM_OPERATION_OTHER},
		{GOLDEN_READ_REQUEST, 0, 0x01, 0, TERM_OPERATION_OTHER}, /* not its last segment */
		{GOLDEN_READ_REQUEST, 17, 4, 0, TERM_OPERATION_OTHER},   /* not its first */
		{GOLDEN_ATOMIC_REQUEST, 255, 0, -4, TERM_OPERATION_OTHER},
		{GOLDEN_WRITE, 255, 0, -16, TERM_NONE},
		{GOLDEN_SEND, 255, 0, -9, TERM_NONE},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct rdmap_segment s;

		golden_bytes(raw, cases[i].golden);
		if (cases[i].at != 255)
			raw[2 + cases[i].at] = cases[i].value;
		assert_int_equal(rdmap_judge(&s, raw + 2, (uint32_t)(get_be16(raw) + cases[i].len_change)),
				 cases[i].expect);
	}
}

TEST(reserved_bits_are_not_looked_at)
{
	struct rdmap_segment s;

	golden_bytes(raw, GOLDEN_WRITE);
	raw[2] |= 0x3c;
	raw[3] |= 0x30;
	assert_int_equal(rdmap_judge(&s, raw + 2, get_be16(raw)), TERM_NONE);
}
