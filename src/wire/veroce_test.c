/* SPDX-License-Identifier: BSD-2-Clause */
/* veRoCE packets: the stack of every opcode, the lengths that are accepted, the published bytes. */

#include "support/test.h"
#include "wire/icrc.h"
#include "wire/psn.h"
#include "wire/rocev2.h"
#include "wire/veroce.h"

enum { PACKET_MAX = 512 };

/* The table of veRoCE 3, its stacks spelt in wire order; see header_bytes. */
static const struct row {
	uint8_t opcode;
	const char *stack;
	uint32_t len;
	bool payload;
} rows[] = {
	{OP_RC_SEND_FIRST, "mq", 20, true},
	{OP_RC_SEND_MIDDLE, "mqp", 24, true},
	{OP_RC_SEND_LAST, "mqp", 24, true},
	{OP_RC_SEND_LAST_IMM, "mqpi", 28, true},
	{OP_RC_SEND_ONLY, "mq", 20, true},
	{OP_RC_SEND_ONLY_IMM, "mqi", 24, true},
	{OP_RC_WRITE_FIRST, "mr", 32, true},
	{OP_RC_WRITE_MIDDLE, "mrp", 36, true},
	{OP_RC_WRITE_LAST, "mrp", 36, true},
	{OP_RC_WRITE_LAST_IMM, "mrqpi", 44, true},
	{OP_RC_WRITE_ONLY, "mr", 32, true},
	{OP_RC_WRITE_ONLY_IMM, "mrqi", 40, true},
	{OP_RC_READ_REQUEST, "mr", 32, false},
	{OP_RC_READ_RESPONSE_FIRST, "ma", 20, true},
	{OP_RC_READ_RESPONSE_MIDDLE, "map", 24, true},
	{OP_RC_READ_RESPONSE_LAST, "map", 24, true},
	{OP_RC_READ_RESPONSE_ONLY, "ma", 20, true},
	{OP_RC_ACK, "ap", 20, false},
	{OP_RC_ATOMIC_ACK, "mao", 28, false},
	{OP_RC_CMP_SWAP, "mx", 44, false},
	{OP_RC_FETCH_ADD, "mx", 44, false},
	{OP_RC_FLUSH, "mfr", 36, false},
	{OP_RC_ATOMIC_WRITE, "mr", 32, true},
	{OP_RC_SEND_LAST_INV, "mqpi", 28, true},
	{OP_RC_SEND_ONLY_INV, "mqi", 24, true},
	{OP_RC_SACK, "aps", 40, false},
	{OP_RC_ACK_RSP, "ap", 20, false},
	{OP_RC_SACK_RSP, "aps", 40, false},
	{OP_CNP, "", 12, true},
	{OP_RTT_REQUEST, "t", 32, false},
	{OP_RTT_RESPONSE, "t", 32, false},
	{OP_SLOW_PACKET, "", 12, false},
	{OP_CAPS_REQUEST, "c", 44, false},
	{OP_CAPS_RESPONSE, "c", 44, false},
	{OP_HOLD, "h", 24, false},
	{OP_HELD, "h", 24, false},
	{OP_ROAM, "w", 36, false},
};

enum { ROWS = sizeof(rows) / sizeof(rows[0]) };

/* What each header of a stack looks like, by hand, and below the same as fields. */
static const struct {
	char letter;
	uint8_t len;
	uint8_t bytes[32];
} header_bytes[] = {
	{'m', 4, {0, 0x81, 0x02, 0x03}},                                                /* MSNETH */
	{'q', 4, {0, 0x84, 0x05, 0x06}},                                                /* RQETH */
	{'p', 4, {0, 0x87, 0x08, 0x09}},                                                /* POETH */
	{'i', 4, {0x8a, 0x0b, 0x0c, 0x0d}},                                             /* ImmDt or IETH */
	{'a', 4, {0x1f, 0x8e, 0x0f, 0x10}},                                             /* AETH */
	{'o', 8, {0xc1, 2, 3, 4, 5, 6, 7, 8}},                                          /* AtomicAckETH */
	{'T', 8, {0x91, 1, 2, 3, 0x92, 4, 5, 6}},                                       /* TSETH */
	{'f', 4, {0, 0, 0, 0x12}},                                                      /* FETH */
	{'r', 16, {0xa1, [7] = 1, 0xa2, [11] = 2, 0xa3, [15] = 3}},                     /* RETH */
	{'x', 28, {0xb1, [8] = 0xb2, [12] = 0xb3, [20] = 0xb4, [27] = 1}},              /* AtomicETH */
	{'t', 20, {0xd1, [4] = 0xd2, [8] = 0xd3, [12] = 0xd4, [16] = 0xd5}},            /* RTTETH */
	{'s', 20, {80, 0, 1, 2, [10] = 0x80, 0, 0xe1, [19] = 1}},                       /* SACKETH */
	{'E', 20, {0xf1, [4] = 0xf2, [8] = 0xf3, [12] = 9, 0xf4, 0, 0, 7, 0xf5, 0, 1}}, /* TSEETH */
	{'h', 12, {0x27, 0x10, 0xf6, 1, [5] = 0xf7, 0, 2, 0xf8, [11] = 3}},             /* HOLDETH */
	{'w', 24, {4, 0xf9, 0, 5, 0xfa, [7] = 6, 0xfb, [15] = 7, 0xfc, [23] = 8}},      /* ROAMETH */
	{'c', 32, {0x56, 0x52, 0x58, 0x31, 1, 2, [7] = 2, 5, 0, 16, 0, 8, 0, 2, 0, [31] = 0}},
};

static const struct veroce_packet fields = {
	.msn = 0x810203,
	.rqmsn = 0x840506,
	.po = 0x870809,
	.imm_or_key = 0x8a0b0c0d,
	.aeth = {.syndrome = 0x1f, .msn = 0x8e0f10},
	.orig = 0xc102030405060708,
	.ts = {.tx1 = 0x91010203, .path_id = 0x92, .path_seq = 0x040506},
	.feth = {.placement = FETH_PERSISTENT, .selectivity = FETH_REGION},
	.reth = {.va = 0xa100000000000001, .rkey = 0xa2000002, .len = 0xa3000003},
	.atomic = {.va = 0xb1ull << 56, .rkey = 0xb2000000, .swap_add = 0xb3ull << 56, .compare = 0xb400000000000001},
	.rtt = {.context = 0xd1000000, .tx1 = 0xd2000000, .rx1 = 0xd3000000, .tx2 = 0xd4000000, .rx2 = 0xd5000000},
	.tse = {.tx1 = 0xf1000000,
		.rx1 = 0xf2000000,
		.tx2 = 0xf3000000,
		.path_id = 9,
		.path_rcv = 0xf40000,
		.dups = 7,
		.path_ce = 0xf50001},
	.caps = {.magic = CAPS_MAGIC,
		 .version = 1,
		 .profile = 2,
		 .flags = CAPS_TS,
		 .mtu_code = 5,
		 .rx_window_q = 0x001000,
		 .paths = 8,
		 .rx_window_r = 0x000200},
};

static const struct holdeth hold = {.ms = HOLD_MS_MAX, .number = 0xf601, .source_qpn = 0xf70002, .nonce = 0xf8000003};
static const struct roameth roam = {.step = ROAM_DONE,
				    .source_qpn = 0xf90005,
				    .number = 0xfa000006,
				    .challenge = 0xfbull << 56 | 7,
				    .mac = 0xfcull << 56 | 8};

/* All fields that a packet of that opcode may have: it has one of CAPSETH, HOLDETH and ROAMETH. */
static struct veroce_packet fields_of(uint8_t opcode)
{
	struct veroce_packet p = fields;

	if (opcode == OP_HOLD || opcode == OP_HELD)
		p.hold = hold;
	if (opcode == OP_ROAM)
		p.roam = roam;
	return p;
}

static bool is_ack(uint8_t op)
{
	return op == OP_RC_ACK || op == OP_RC_ACK_RSP || op == OP_RC_SACK || op == OP_RC_SACK_RSP;
}

static bool is_sack(uint8_t op)
{
	return op == OP_RC_SACK || op == OP_RC_SACK_RSP;
}

static bool has(const char *stack, char letter)
{
	return strchr(stack, letter) != NULL;
}

static uint32_t put(uint8_t *out, char letter)
{
	for (size_t i = 0; i < sizeof(header_bytes) / sizeof(header_bytes[0]); i++) {
		if (header_bytes[i].letter == letter) {
			memcpy(out, header_bytes[i].bytes, header_bytes[i].len);
			return header_bytes[i].len;
		}
	}
	fail();
	return 0;
}

/* The BTH, the time stamps and the stack of the row, each SACKETH `sacks` times. */
static uint32_t lay_out(uint8_t *out, const struct row *r, bool ts, uint8_t pad, uint32_t sacks)
{
	uint8_t bth[BTH_LEN] = {
		r->opcode, (uint8_t)(pad << 4), 0xff, 0xff, 0, 0, 0, 0x12, (uint8_t)(0xc0 | (ts ? 0x20 : 0)), 0, 0,
		0x64};
	uint32_t n = BTH_LEN;

	memcpy(out, bth, BTH_LEN);
	if (ts && r->opcode < 0x20)
		n += put(out + n, is_ack(r->opcode) ? 'E' : 'T');
	for (const char *s = r->stack; *s; s++)
		for (uint32_t i = 0; i < (*s == 's' ? sacks : 1); i++)
			n += put(out + n, *s);
	return n;
}

TEST(veroce_known_set_is_that_of_the_spec)
{
	for (unsigned op = 0; op < 256; op++) {
		bool known = false;

		for (size_t i = 0; i < ROWS; i++)
			known |= rows[i].opcode == op;
		assert_int_equal(veroce_opcode_info((uint8_t)op) != NULL, known);
		if (!known)
			assert_int_equal(veroce_header_len((uint8_t)op), 0);
	}
}

TEST(veroce_header_lengths_are_the_specs)
{
	for (size_t i = 0; i < ROWS; i++) {
		uint8_t buf[PACKET_MAX];

		assert_int_equal(veroce_header_len(rows[i].opcode), rows[i].len);
		assert_int_equal(lay_out(buf, &rows[i], false, 0, 1), rows[i].len);
	}
}

/* The role of an opcode is the same in both protocols; only what it carries differs. */
TEST(veroce_roles_are_those_of_rocev2)
{
	for (size_t i = 0; i < ROWS; i++) {
		const struct opcode_info *v = veroce_opcode_info(rows[i].opcode);
		const struct opcode_info *r = opcode_info(rows[i].opcode);

		assert_int_equal(!(v->flags & F_PAYLOAD), !rows[i].payload);
		if (r) {
			assert_int_equal(v->flags, r->flags);
			assert_string_equal(v->name, r->name);
		}
	}
}

TEST(veroce_acknowledgements_are_acks_and_responses)
{
	for (size_t i = 0; i < ROWS; i++) {
		const struct opcode_info *v = veroce_opcode_info(rows[i].opcode);

		assert_int_equal((v->flags & F_ACK) != 0, is_ack(rows[i].opcode));
		if (is_ack(rows[i].opcode))
			assert_int_equal(v->flags, F_RESPONSE | F_ACK | F_ONLY);
	}
}

TEST(veroce_packets_outside_the_psn_spaces_have_no_role)
{
	for (size_t i = 0; i < ROWS; i++) {
		const struct opcode_info *v = veroce_opcode_info(rows[i].opcode);

		assert_int_equal((v->flags & (F_REQUEST | F_RESPONSE)) != 0, opcode_service(rows[i].opcode) == SVC_RC);
	}
}

TEST(veroce_opcodes_of_its_own_are_unknown_to_rocev2)
{
	static const uint8_t own[] = {OP_RC_SACK,      OP_RC_ACK_RSP,  OP_RC_SACK_RSP,  OP_RTT_REQUEST,
				      OP_RTT_RESPONSE, OP_SLOW_PACKET, OP_CAPS_REQUEST, OP_CAPS_RESPONSE,
				      OP_HOLD,         OP_HELD,        OP_ROAM};

	for (size_t i = 0; i < sizeof(own); i++)
		assert_null(opcode_info(own[i]));
}

TEST(veroce_header_offsets_follow_wire_order)
{
	static const struct {
		uint8_t opcode;
		uint32_t header;
		uint32_t offset;
	} row[] = {
		{OP_RC_WRITE_LAST_IMM, H_MSNETH, 12},
		{OP_RC_WRITE_LAST_IMM, H_RETH, 16},
		{OP_RC_WRITE_LAST_IMM, H_RQETH, 32},
		{OP_RC_WRITE_LAST_IMM, H_POETH, 36},
		{OP_RC_WRITE_LAST_IMM, H_IMMDT, 40},
		{OP_RC_SEND_LAST_INV, H_IETH, 24},
		{OP_RC_ATOMIC_ACK, H_AETH, 16},
		{OP_RC_ATOMIC_ACK, H_ATOMICACKETH, 20},
		{OP_RC_SACK, H_SACKETH, 20},
		{OP_CAPS_REQUEST, H_CAPSETH, 12},
		{OP_HOLD, H_HOLDETH, 12},
		{OP_ROAM, H_ROAMETH, 12},
	};

	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++)
		assert_int_equal(opcode_header_offset(veroce_opcode_info(row[i].opcode), row[i].header), row[i].offset);
}

/* With and without time stamps; 1 and 8 blocks in a SACK. */
TEST(veroce_encodes_the_stack_of_every_opcode)
{
	for (size_t i = 0; i < ROWS * 4; i++) {
		const struct row *r = &rows[i / 4];
		uint8_t expect[PACKET_MAX], out[PACKET_MAX], sacks[8 * SACKETH_LEN];
		struct veroce_packet p = fields_of(r->opcode);
		uint32_t n_sacks = i & 2 ? 8 : 1, sacks_len = 0;

		p.bth = (struct bth){.opcode = r->opcode,
				     .pkey = 0xffff,
				     .dqpn = 0x12,
				     .ackreq = true,
				     .retrans = true,
				     .ts = i & 1 && r->opcode < 0x20,
				     .psn = 100};
		while (sacks_len < n_sacks * SACKETH_LEN)
			sacks_len += put(sacks + sacks_len, 's');
		p.sacks = sacks;
		p.sack_count = n_sacks;

		uint32_t len = lay_out(expect, r, p.bth.ts, 0, n_sacks);

		memset(out, 0xa5, sizeof(out));
		assert_int_equal(veroce_encode_headers(out, &p), len);
		assert_memory_equal(out, expect, len);
		assert_int_equal(out[len], 0xa5);
		assert_true(len <= VEROCE_HEADERS_MAX);
	}
}

/* Headers written from the packet before equal headers written anew; the numbers wrap. */
TEST(veroce_next_middle_is_the_one_before_with_numbers_one_further)
{
	static const uint8_t opcodes[] = {OP_RC_SEND_MIDDLE, OP_RC_WRITE_MIDDLE, OP_RC_READ_RESPONSE_MIDDLE};

	for (uint32_t i = 0; i < sizeof(opcodes) * 16; i++) {
		uint8_t before[PACKET_MAX] = {0}, expect[PACKET_MAX] = {0}, out[PACKET_MAX];
		bool wraps = i & 8;
		struct veroce_packet p = fields;
		uint32_t len;

		p.bth = (struct bth){.opcode = opcodes[i / 16],
				     .migreq = true,
				     .pkey = 0xffff,
				     .dqpn = 0x12,
				     .ackreq = i & 1,
				     .ts = i & 4,
				     .psn = wraps ? PSN_MASK : 100};
		p.po = wraps ? PSN_MASK : 7;
		p.ts.path_seq = wraps ? PSN_MASK : 9;
		len = veroce_encode_headers(before, &p);
		p.bth.ackreq = i & 2;
		p.bth.psn = psn_add(p.bth.psn, 1);
		p.po = psn_add(p.po, 1);
		p.ts.path_seq = psn_add(p.ts.path_seq, 1);
		p.reth.va += 1024;
		assert_int_equal(veroce_encode_headers(expect, &p), len);
		assert_int_equal(veroce_encode_next(out, before, 1024, i & 2), len);
		assert_memory_equal(out, expect, len);
		p.reth.va -= 1024;
		assert_int_equal(veroce_encode_headers(expect, &p), len);
		assert_int_equal(veroce_encode_next(out, before, 0, i & 2), len);
		assert_memory_equal(out, expect, len);
	}
}

/* The same of messages of one packet, of which only the numbers differ; short packets overlap with what is copied. */
TEST(veroce_alike_is_the_one_before_with_numbers_of_its_own)
{
	static const uint8_t opcodes[] = {OP_RC_SEND_ONLY, OP_RC_WRITE_ONLY};

	for (uint32_t i = 0; i < sizeof(opcodes) * 4; i++) {
		uint8_t bytes[2 * PACKET_MAX] = {0}, expect[PACKET_MAX] = {0}, *out;
		struct veroce_packet p = fields, next = {.msn = 0x2030f1, .rqmsn = 0x40f506};
		uint32_t len;

		p.bth = (struct bth){.opcode = opcodes[i / 4],
				     .se = i & 2,
				     .migreq = true,
				     .pkey = 0xffff,
				     .dqpn = 0x12,
				     .ackreq = true,
				     .ts = i & 1,
				     .psn = PSN_MASK};
		next.bth.psn = 0;
		next.ts.path_seq = 0xf40506;
		next.reth = (struct reth){.va = 0x1f2f3f4f5f6f7f8f, .rkey = 0xf2345678};
		len = veroce_encode_headers(bytes, &p);
		p.bth.psn = next.bth.psn;
		p.ts.path_seq = next.ts.path_seq;
		p.msn = next.msn;
		p.rqmsn = next.rqmsn;
		p.reth.va = next.reth.va;
		p.reth.rkey = next.reth.rkey;
		assert_int_equal(veroce_encode_headers(expect, &p), len);
		out = bytes + len + ICRC_LEN;
		assert_int_equal(veroce_encode_alike(out, bytes, &next), len);
		assert_memory_equal(out, expect, len);
	}
}

/* The integers; the headers are checked where they are written again. */
static void check_integers(const struct veroce_packet *p, const struct row *r, bool ts)
{
	const struct veroce_packet *f = &fields;
	const char *s = r->stack;

	assert_ptr_equal(p->info, veroce_opcode_info(r->opcode));
	assert_int_equal(p->bth.opcode, r->opcode);
	assert_int_equal(p->bth.psn, 100);
	assert_true(p->bth.retrans);
	assert_int_equal(p->bth.ts, ts);
	assert_int_equal(p->msn, has(s, 'm') ? f->msn : 0);
	assert_int_equal(p->rqmsn, has(s, 'q') ? f->rqmsn : 0);
	assert_int_equal(p->po, has(s, 'p') ? f->po : 0);
	assert_int_equal(p->imm_or_key, has(s, 'i') ? f->imm_or_key : 0);
}

/* What decode reads is what was laid out, payload behind it, and encode writes it again. */
TEST(veroce_round_trips_every_opcode)
{
	for (size_t i = 0; i < ROWS * 2; i++) {
		const struct row *r = &rows[i / 2];
		bool ts = i & 1, in_space = r->opcode < 0x20;
		uint8_t pad = r->payload && r->opcode != OP_CNP ? 3 : 0;
		uint32_t body = r->opcode == OP_CNP ? 16 : r->payload ? 64 : 0;
		uint8_t in[PACKET_MAX], out[PACKET_MAX];
		uint32_t headers = lay_out(in, r, ts, pad, 3), len = headers + body + ICRC_LEN;
		struct veroce_packet p;

		memset(&p, 0, sizeof(p));
		memset(in + headers, 0x77, body + ICRC_LEN);
		assert_true(veroce_decode(&p, in, len));
		check_integers(&p, r, ts && in_space);
		assert_ptr_equal(p.payload, in + headers);
		assert_int_equal(p.payload_len, body - pad);
		assert_int_equal(p.sack_count, is_sack(r->opcode) ? 3 : 0);
		assert_ptr_equal(p.sacks, is_sack(r->opcode) ? in + headers - 3 * SACKETH_LEN : NULL);

		if (!in_space)
			in[8] &= 0xdf;
		assert_int_equal(veroce_encode_headers(out, &p), headers);
		assert_memory_equal(out, in, headers);
	}
}

static void check_same(const struct veroce_packet *a, const struct veroce_packet *b, uint32_t headers)
{
	uint8_t out[2][PACKET_MAX];

	assert_ptr_equal(a->info, b->info);
	assert_ptr_equal(a->payload, b->payload);
	assert_int_equal(a->payload_len, b->payload_len);
	assert_int_equal(a->msn, b->msn);
	assert_int_equal(a->rqmsn, b->rqmsn);
	assert_int_equal(a->po, b->po);
	assert_int_equal(a->imm_or_key, b->imm_or_key);
	assert_int_equal(a->sack_count, b->sack_count);
	assert_ptr_equal(a->sacks, b->sacks);
	assert_int_equal(veroce_encode_headers(out[0], a), headers);
	assert_int_equal(veroce_encode_headers(out[1], b), headers);
	assert_memory_equal(out[0], out[1], headers);
}

/*
 * A decoder that has seen other packets gives the same result as one that has seen none: for a
 * packet that continues the one before, for one with a bit changed anywhere in its headers, and for
 * each other length.
 */
TEST(veroce_decode_next_says_what_decode_says)
{
	static struct veroce_decoder d;

	for (size_t i = 0; i < ROWS * 2; i++) {
		const struct row *r = &rows[i / 2];
		uint8_t pad = r->payload && r->opcode != OP_CNP ? 3 : 0;
		uint32_t body = r->opcode == OP_CNP ? 16 : r->payload ? 64 : 0;
		uint8_t in[PACKET_MAX];
		uint32_t headers = lay_out(in, r, i & 1, pad, 1), len = headers + body + ICRC_LEN;
		struct veroce_packet p;

		memset(in + headers, 0x77, body + ICRC_LEN);
		for (uint32_t bit = 0; bit < headers * 8; bit++) {
			const struct veroce_packet *q = veroce_decode_next(&d, in, len);

			assert_non_null(q);
			in[bit / 8] ^= (uint8_t)(1u << bit % 8);
			q = veroce_decode_next(&d, in, len);
			assert_int_equal(q != NULL, veroce_decode(&p, in, len));
			if (q)
				check_same(q, &p, (uint32_t)(p.payload - in));
			in[bit / 8] ^= (uint8_t)(1u << bit % 8);
		}
		for (uint32_t n = 0; n <= len + 4; n++) {
			const struct veroce_packet *q;

			assert_non_null(veroce_decode_next(&d, in, len));
			q = veroce_decode_next(&d, in, n);
			assert_int_equal(q != NULL, veroce_decode(&p, in, n));
			if (q)
				check_same(q, &p, (uint32_t)(p.payload - in));
		}
	}
}

/* Decodes the first len bytes in a block of that size, so that a sanitizer sees any overread. */
static bool accepts(const uint8_t *packet, uint32_t len)
{
	uint8_t *data = malloc(len ? len : 1);
	struct veroce_packet p;

	memcpy(data, packet, len);

	bool ok = veroce_decode(&p, data, len);

	free(data);
	return ok;
}

/* By hand from veRoCE 13.2: T set, five words and the share behind the BTH; then AETH, POETH, blocks. */
TEST(veroce_echo_tells_a_share_where_the_length_says_so)
{
	for (uint32_t i = 0; i < ROWS * 9; i++) {
		const struct row *r = &rows[i / 9];
		uint32_t sacks = is_sack(r->opcode) ? i % 9 : 0, at = BTH_LEN + TSEETH_LEN;
		uint8_t in[PACKET_MAX], out[PACKET_MAX];
		struct veroce_packet p = {.tse = {.has_share = true}};

		if (!is_ack(r->opcode) || (is_sack(r->opcode) && !sacks))
			continue;

		uint32_t plain = lay_out(in, r, true, 0, sacks), len = plain + 4 + ICRC_LEN;

		assert_true(veroce_decode(&p, in, plain + ICRC_LEN));
		assert_false(p.tse.has_share);
		assert_int_equal(p.tse.share_kbps, 0);
		memmove(in + at + 4, in + at, plain - at);
		memcpy(in + at, (const uint8_t[]){0xe1, 2, 3, 4}, 4);
		assert_true(veroce_decode(&p, in, len));
		assert_true(p.tse.has_share);
		assert_true(p.tse.share_kbps == 0xe1020304);
		assert_int_equal(p.aeth.msn, fields.aeth.msn);
		assert_int_equal(p.po, fields.po);
		assert_int_equal(p.sack_count, sacks);
		assert_ptr_equal(p.payload, in + plain + 4);
		assert_int_equal(p.payload_len, 0);
		memset(out, 0xa5, sizeof(out));
		assert_int_equal(veroce_encode_headers(out, &p), plain + 4);
		assert_memory_equal(out, in, plain + 4);
		assert_true(plain + 4 <= VEROCE_HEADERS_MAX);
		/* There is no pad, and no echo without T. */
		in[1] |= 1 << 4;
		assert_false(accepts(in, len));
		in[1] = 0;
		in[8] &= 0xdf;
		assert_false(accepts(in, len));
	}
}

/* Nothing is left over from the packet before. */
TEST(veroce_decode_sets_the_numbers_a_packet_lacks_to_0)
{
	uint8_t in[PACKET_MAX];
	struct veroce_packet p;
	uint32_t len;

	memset(&p, 0xa5, sizeof(p));
	len = lay_out(in, &(struct row){.opcode = OP_SLOW_PACKET, .stack = ""}, false, 0, 0);
	assert_true(veroce_decode(&p, in, len + ICRC_LEN));
	assert_int_equal(p.msn, 0);
	assert_int_equal(p.rqmsn, 0);
	assert_int_equal(p.po, 0);
	assert_int_equal(p.imm_or_key, 0);
	assert_int_equal(p.sack_count, 0);
	assert_null(p.sacks);
	assert_int_equal(p.payload_len, 0);
	assert_ptr_equal(p.payload, in + len);
}

/* The rule of veRoCE 1 to 3, written a second time: what may lie between the headers and the ICRC. */
static bool body_expected(const struct row *r, bool ts, uint32_t body, uint8_t pad)
{
	if (is_ack(r->opcode) && ts && body % 20 == 4) /* RXSHARE's word, 13.2 */
		body -= 4;
	if (r->opcode == OP_CNP)
		return pad == 0 && (body == 0 || body == 16);
	if (is_sack(r->opcode))
		return pad == 0 && body % 20 == 0 && body <= 7 * 20;
	if (!r->payload)
		return pad == 0 && body == 0;
	return body % 4 == 0 && pad <= body;
}

TEST(veroce_decode_accepts_exactly_the_lengths_of_every_opcode)
{
	for (size_t i = 0; i < ROWS * 8; i++) {
		const struct row *r = &rows[i / 8];
		bool ts = i & 1;
		uint8_t pad = i >> 1 & 3;
		uint8_t packet[PACKET_MAX] = {0};
		uint32_t least = lay_out(packet, r, ts, pad, 1) + ICRC_LEN;

		for (uint32_t len = 0; len < 280; len++)
			assert_int_equal(accepts(packet, len), len >= least && body_expected(r, ts, len - least, pad));
	}
}

TEST(veroce_decode_counts_1_to_8_sacks)
{
	for (uint32_t n = 0; n <= 9; n++) {
		uint8_t in[PACKET_MAX] = {0};
		const struct row r = {.opcode = OP_RC_SACK, .stack = "aps"};
		uint32_t len = lay_out(in, &r, true, 0, n) + ICRC_LEN;
		struct veroce_packet p;
		struct sacketh last;

		assert_int_equal(veroce_decode(&p, in, len), n >= 1 && n <= VEROCE_SACKS_MAX);
		if (n < 1 || n > VEROCE_SACKS_MAX)
			continue;
		assert_int_equal(p.sack_count, n);
		sacketh_decode(&last, p.sacks + (n - 1) * SACKETH_LEN);
		assert_int_equal(last.valid_len, 80);
		assert_int_equal(last.start_psn, 0x000102);
		assert_true(last.bits[0] == 0xe100000000000001);
		assert_true(last.bits[1] == 0x8000);
	}
}

TEST(veroce_decode_refuses_unknown_opcodes)
{
	for (unsigned op = 0; op < 256; op++) {
		uint8_t in[PACKET_MAX] = {(uint8_t)op};

		if (veroce_opcode_info((uint8_t)op))
			continue;
		for (uint32_t len = 0; len < 280; len++)
			assert_false(accepts(in, len));
	}
}

TEST(veroce_decode_refuses_other_transport_versions)
{
	for (size_t i = 0; i < ROWS; i++) {
		uint8_t in[PACKET_MAX] = {0};
		uint32_t len = lay_out(in, &rows[i], false, 0, 1) + ICRC_LEN;

		assert_true(accepts(in, len));
		for (uint8_t tver = 1; tver < 16; tver++) {
			in[1] = (uint8_t)((in[1] & 0xf0) | tver);
			assert_false(accepts(in, len));
		}
	}
}

/* The vectors of veRoCE 1.1: a datagram alone, whose IPv4 identification is 0. */
static const uint8_t write_only[] = {0x0a, 0x00, 0xff, 0xff, 0x00, 0x00, 0x00, 0x12, 0x80, 0x00, 0x00, 0x64, 0x00, 0x00,
				     0x00, 0x01, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x10, 0x00, 0x00, 0x00, 0x12, 0x34,
				     0x00, 0x00, 0x00, 0x04, 0xde, 0xad, 0xbe, 0xef, 0xb7, 0xfa, 0x21, 0x88};
static const uint8_t sack[] = {0x18, 0x00, 0xff, 0xff, 0x00, 0x00, 0x00, 0x11, 0x00, 0x00, 0x00, 0x04, 0x1f, 0x00, 0x00,
			       0x00, 0x00, 0x00, 0x00, 0x05, 0x05, 0x00, 0x00, 0x05, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
			       0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x14, 0x86, 0x8e, 0x0f, 0xd9};

/* Between 10.0.0.a and 10.0.0.b. */
static void check_seal(uint8_t *packet, const uint8_t *expect, uint32_t len, uint8_t a, uint8_t b)
{
	static struct icrc_ctx ctx;
	const struct flow flow = {.src = {[10] = 0xff, [11] = 0xff, 10, 0, 0, a},
				  .dst = {[10] = 0xff, [11] = 0xff, 10, 0, 0, b},
				  .sport = 49152,
				  .dport = VEROCE_UDP_PORT,
				  .ttl = 64};
	struct pkt pkt = {.data = packet, .flow = &flow, .len = len, .train = 1};
	uint16_t id = 0x5a5a;

	memset(packet + len - ICRC_LEN, 0, ICRC_LEN);
	icrc_seal(NULL, &pkt, 0);
	assert_memory_equal(packet, expect, len);
	assert_true(icrc_check(&ctx, &pkt, 0, &id));
	assert_int_equal(id, 0);
}

TEST(veroce_write_only_is_the_published_packet)
{
	static const uint8_t payload[] = {0xde, 0xad, 0xbe, 0xef};
	struct veroce_packet p = {
		.bth = {.opcode = OP_RC_WRITE_ONLY, .pkey = 0xffff, .dqpn = 0x12, .psn = 100, .ackreq = true},
		.msn = 1,
		.reth = {.va = 0x1000, .rkey = 0x1234, .len = 4},
	};
	uint8_t out[sizeof(write_only)];
	uint32_t len = veroce_encode_headers(out, &p);

	assert_int_equal(len, 32);
	memcpy(out + len, payload, sizeof(payload));
	check_seal(out, write_only, sizeof(write_only), 1, 2);

	memset(&p, 0xa5, sizeof(p));
	assert_true(veroce_decode(&p, write_only, sizeof(write_only)));
	assert_true(p.bth.ackreq);
	assert_false(p.bth.retrans);
	assert_int_equal(p.bth.dqpn, 0x12);
	assert_int_equal(p.bth.psn, 100);
	assert_int_equal(p.msn, 1);
	assert_int_equal(p.po, 0);
	assert_int_equal(p.reth.va, 0x1000);
	assert_int_equal(p.reth.rkey, 0x1234);
	assert_int_equal(p.reth.len, 4);
	assert_int_equal(p.payload_len, 4);
	assert_memory_equal(p.payload, payload, 4);
}

TEST(veroce_sack_is_the_published_packet)
{
	uint8_t block[SACKETH_LEN], out[sizeof(sack)];
	struct sacketh s = {.valid_len = 5, .start_psn = 5, .bits = {1 << 2 | 1 << 4}};
	struct veroce_packet p = {
		.bth = {.opcode = OP_RC_SACK, .pkey = 0xffff, .dqpn = 0x11, .psn = 4},
		.aeth = {.syndrome = AETH_ACK | AETH_CREDIT_INVALID},
		.po = 5,
		.sacks = block,
		.sack_count = 1,
	};

	sacketh_encode(block, &s);
	assert_int_equal(veroce_encode_headers(out, &p), 40);
	check_seal(out, sack, sizeof(sack), 2, 1);

	memset(&p, 0xa5, sizeof(p));
	memset(&s, 0xa5, sizeof(s));
	assert_true(veroce_decode(&p, sack, sizeof(sack)));
	assert_int_equal(p.bth.psn, 4);
	assert_int_equal(p.aeth.syndrome, 0x1f);
	assert_int_equal(p.aeth.msn, 0);
	assert_int_equal(p.po, 5);
	assert_int_equal(p.sack_count, 1);
	assert_int_equal(p.payload_len, 0);
	sacketh_decode(&s, p.sacks);
	assert_int_equal(s.valid_len, 5);
	assert_int_equal(s.start_psn, 5);
	assert_true(s.bits[0] == 0x14);
	assert_true(s.bits[1] == 0);
}
