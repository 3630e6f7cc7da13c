/* SPDX-License-Identifier: BSD-2-Clause */
/* The control messages and the description of an end, against bytes written by hand from the
 * diagrams. */
#include <sys/mman.h>
#include <unistd.h>

#include "sdr/message/control.h"
#include "sdr/message/info.h"
#include "support/test.h"

enum { TAG = 0x01020304, SHORT_MAX = 64 };

static const uint8_t golden_cts[] = {
	0x53, 0x44, 1, 1, 1, 2, 3, 4, 0,    0,    0,    0,    0, 34, 0, 1, /* header: 34 bytes, wants an answer */
	0,    0,    1, 2, 0, 0, 1, 0, 0,    2,                             /* posted 258, first 256, count 2 */
	0,    0,    0, 0, 0, 1, 0, 0, 0xaa, 0xbb, 0xcc, 0xdd,              /* 65536 bytes, key */
	0,    0,    0, 2, 0, 0, 0, 0, 0,    0,    0,    7,
};
static const uint8_t golden_sr_ack[] = {
	0x53, 0x44, 1, 2, 1, 2, 3, 4, 0, 0, 0, 9, 0, 18, 0, 0, /* message 9, 18 bytes */
	0,    0,    0, 5, 0, 0, 1, 0, 0, 2,                    /* 5, from 256 on, two runs */
	0,    3,    0, 1, 2, 0, 0, 0,                          /* 3 there, 1 missing, 512 there */
};
static const uint8_t golden_sr_nack[] = {
	0x53, 0x44, 1, 3, 1, 2, 3, 4, 0, 0, 0, 9, 0, 10, 0, 0, 0, 1, 0, 0, 0, 3, 0, 0, 0, 2,
};
static const uint8_t golden_count[] = {
	0x53, 0x44, 1, 17, 1, 2, 3, 4, 0, 0, 0, 0, 0, 24, 0, 0, /* of no message, 24 bytes */
	0,    0,    0, 0,  0, 0, 1, 2,                          /* the stamp 258 */
	0,    0,    0, 1,  0, 0, 0, 5,                          /* 2^32 + 5 bytes have come */
	1,    2,    3, 4,  5, 6, 7, 8,                          /* at this time */
};

static size_t with_header(uint8_t *buf, enum control_type type, uint32_t number, uint16_t len, uint16_t flags)
{
	struct control c = {.type = type, .tag = TAG, .number = number, .length = len, .flags = flags};

	control_encode(buf, &c);
	return (size_t)CONTROL_HEADER_LEN + len;
}

TEST(control_encodes_golden_bytes)
{
	const struct grant grants[] = {{65536, 0xaabbccdd}, {UINT64_C(0x200000000), 7}};
	const struct ack_run runs[] = {{3, 1}, {512, 0}};
	uint8_t buf[64];
	uint16_t len;

	len = cts_encode(buf + CONTROL_HEADER_LEN, &(struct cts){258, 256, 2}, grants);
	assert_int_equal(with_header(buf, CONTROL_CTS, 0, len, CONTROL_ANSWER), sizeof(golden_cts));
	assert_memory_equal(buf, golden_cts, sizeof(golden_cts));

	len = sr_ack_encode(buf + CONTROL_HEADER_LEN, &(struct sr_ack){5, 256, 2}, runs);
	assert_int_equal(with_header(buf, CONTROL_SR_ACK, 9, len, 0), sizeof(golden_sr_ack));
	assert_memory_equal(buf, golden_sr_ack, sizeof(golden_sr_ack));

	len = sr_nack_encode(buf + CONTROL_HEADER_LEN, &(struct chunk_run){3, 2}, 1);
	assert_int_equal(with_header(buf, CONTROL_SR_NACK, 9, len, 0), sizeof(golden_sr_nack));
	assert_memory_equal(buf, golden_sr_nack, sizeof(golden_sr_nack));
}

TEST(a_count_has_the_stamp_of_its_ping_and_its_time)
{
	const struct count count = {258, UINT64_C(0x100000005), UINT64_C(0x0102030405060708)};
	uint8_t buf[64];
	struct control c;
	struct count got;

	count_encode(buf + CONTROL_HEADER_LEN, &count);
	assert_int_equal(with_header(buf, CONTROL_COUNT, 0, COUNT_LEN, 0), sizeof(golden_count));
	assert_memory_equal(buf, golden_count, sizeof(golden_count));
	assert_true(control_decode(&c, golden_count, sizeof(golden_count), TAG));
	count_decode(&got, golden_count + CONTROL_HEADER_LEN);
	assert_memory_equal(&got, &count, sizeof(count));
	buf[13] = PING_LEN;
	assert_false(control_decode(&c, buf, CONTROL_HEADER_LEN + PING_LEN, TAG));
}

TEST(control_decodes_golden_bytes)
{
	struct control c;
	struct cts cts;
	struct sr_ack ack;

	assert_true(control_decode(&c, golden_cts, sizeof(golden_cts), TAG));
	assert_int_equal(c.type, CONTROL_CTS);
	assert_int_equal(c.flags, CONTROL_ANSWER);
	cts_decode(&cts, golden_cts + CONTROL_HEADER_LEN);
	assert_int_equal(cts.posted, 258);
	assert_int_equal(cts.first, 256);
	assert_int_equal(cts.count, 2);
	assert_int_equal(cts_grant(golden_cts + CONTROL_HEADER_LEN, 0).key, 0xaabbccdd);
	assert_true(cts_grant(golden_cts + CONTROL_HEADER_LEN, 1).bytes == UINT64_C(0x200000000));

	assert_true(control_decode(&c, golden_sr_ack, sizeof(golden_sr_ack), TAG));
	assert_int_equal(c.number, 9);
	sr_ack_decode(&ack, golden_sr_ack + CONTROL_HEADER_LEN);
	assert_int_equal(ack.cum, 5);
	assert_int_equal(ack.from, 256);
	assert_int_equal(ack.count, 2);
	assert_int_equal(sr_ack_run(golden_sr_ack + CONTROL_HEADER_LEN, 0).missing, 1);
	assert_int_equal(sr_ack_run(golden_sr_ack + CONTROL_HEADER_LEN, 1).there, 512);

	assert_true(control_decode(&c, golden_sr_nack, sizeof(golden_sr_nack), TAG));
	assert_int_equal(sr_nack_count(golden_sr_nack + CONTROL_HEADER_LEN), 1);
	assert_int_equal(sr_nack_run(golden_sr_nack + CONTROL_HEADER_LEN, 0).first, 3);
	assert_int_equal(sr_nack_run(golden_sr_nack + CONTROL_HEADER_LEN, 0).count, 2);
}

/* A plan has times or not, and its flags say which; types of older versions are none. */
TEST(plans_have_the_length_that_they_say)
{
	uint8_t buf[CONTROL_HEADER_LEN + CODED_PLAN_LEN_MAX] = {0};
	uint8_t *flags = buf + CONTROL_HEADER_LEN + 15;
	struct control c;

	for (int times = 0; times < 2; times++) {
		uint16_t len = times ? CODED_PLAN_LEN_MAX : CODED_PLAN_LEN;

		*flags = times ? CODED_PLAN_TIMES : 0;
		for (uint16_t n = 0; n <= CODED_PLAN_LEN_MAX; n++) {
			size_t all = with_header(buf, CONTROL_CODED_PLAN, 0, n, 0);

			assert_int_equal(control_decode(&c, buf, all, TAG), n == len);
		}
	}
	for (uint16_t n = 0; n <= CODED_PLAN_LEN_MAX; n++) {
		size_t all = with_header(buf, CONTROL_PROBE, 0, n, 0);

		assert_int_equal(control_decode(&c, buf, all, TAG), n == 0);
		for (uint8_t type = 4; type <= 12; type++) {
			buf[3] = type;
			if (type < CONTROL_PROBE || type > CONTROL_CTS_KNOWN)
				assert_false(control_decode(&c, buf, all, TAG));
		}
	}
}

/* Each row spoils one byte of the CTS. */
TEST(control_ignores_what_is_not_its_own)
{
	static const struct {
		uint8_t at, value;
	} row[] = {
		{0, 0x54},
		{1, 0},
		{2, 0},
		{2, 2},
		{3, 0},
		{3, CONTROL_TYPE_END},
		{3, 255},
		{7, 5},
		{13, 33},
		{13, 35},
		{24, 1},
		{25, 1},
		{25, 3},
		{24, 255},
		{3, CONTROL_PROBE},
		{3, CONTROL_DONE},
	};
	struct control c;

	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		uint8_t buf[sizeof(golden_cts)];

		memcpy(buf, golden_cts, sizeof(buf));
		buf[row[i].at] = row[i].value;
		assert_false(control_decode(&c, buf, sizeof(buf), TAG));
	}
	for (size_t len = 0; len < sizeof(golden_cts); len++)
		assert_false(control_decode(&c, golden_cts, len, TAG));
}

/* Behind the last byte there is no memory: a payload of variable length says its length in bytes that must be there. */
TEST(a_short_payload_is_not_read_beyond_its_end)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	uint8_t *memory = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct control c;

	assert_ptr_not_equal(memory, MAP_FAILED);
	assert_int_equal(mprotect(memory + page, page, PROT_NONE), 0);
	for (int type = CONTROL_CTS; type < CONTROL_TYPE_END; type++) {
		for (uint16_t len = 0; len < SHORT_MAX; len++) {
			uint8_t *end = memory + page - CONTROL_HEADER_LEN - len;

			memset(memory, 0xff, page);
			with_header(end, (enum control_type)type, 0, len, 0);
			(void)control_decode(&c, end, (size_t)CONTROL_HEADER_LEN + len, TAG);
		}
	}
	munmap(memory, 2 * page);
}

TEST(numbers_are_found_near_to_what_is_known)
{
	assert_true(number_near(5, 7) == 7);
	assert_true(number_near(5, 3) == 3);
	assert_true(number_near(UINT64_C(0x1fffffff0), 5) == UINT64_C(0x200000005));
	assert_true(number_near(UINT64_C(0x200000005), 0xfffffff0) == UINT64_C(0x1fffffff0));
	assert_true(number_near(0, 0xffffffff) == 0xffffffff);
}

static const uint8_t golden_info[] = {
	'S', 'D',  'R',  'I',  0,  3,  0, 72, 2, 0, 0,    9,    1,   2, 3, 4,
	0,   0,    0,    0x11,                                                /* receives, UC, LID 9, tag, QPN */
	0,   0,    0,    0,    0,  0,  0, 0,  0, 0, 0xff, 0xff, 127, 0, 0, 1, /* GID */
	0,   0,    0x10, 0,    0,  1,  0, 0,  0, 0, 4,    0,    0,   0, 0, 0,
	0,   0x80, 0,    0, /* 4 KiB, 64 KiB, 1024, 8 MiB */
	0,   1,    0,    2,    10, 18, 4, 0,  0, 0, 0,    0x21, 0,   0, 0, 0x22,
};
static const struct info golden_fields = {
	.shape = {.split = {10, 18, 4},
		  .mtu = 4096,
		  .chunk_bytes = 65536,
		  .slots = 1024,
		  .generations = 1,
		  .channels = 2,
		  .message_bytes = 8 << 20},
	.roles = INFO_RECEIVES,
	.lid = 9,
	.tag = TAG,
	.control_qpn = 0x11,
	.gid = {[10] = 0xff, 0xff, 127, 0, 0, 1},
};

TEST(info_encodes_golden_bytes)
{
	uint8_t buf[sizeof(golden_info)];

	memset(buf, 0xa5, sizeof(buf));
	assert_int_equal(info_len(&golden_fields), sizeof(buf));
	info_encode(buf, &golden_fields);
	info_put_qpn(buf, 0, 0x21);
	info_put_qpn(buf, 1, 0x22);
	assert_memory_equal(buf, golden_info, sizeof(buf));
}

TEST(info_decodes_golden_bytes)
{
	struct info i;

	assert_true(info_decode(&i, golden_info, sizeof(golden_info)));
	assert_int_equal(i.tag, TAG);
	assert_int_equal(i.shape.message_bytes, 8 << 20);
	assert_int_equal(i.shape.split.offset_bits, 18);
	assert_memory_equal(i.gid, golden_fields.gid, 16);
	assert_int_equal(info_qpn(&i, info_qp(&i, 0, 1)), 0x22);
}

/* The queue pairs for idle fill stand behind the others. */
TEST(info_has_a_channel_for_idle_fill)
{
	struct info i = golden_fields;
	uint8_t buf[INFO_LEN_MAX];

	i.fills = true;
	i.shape.generations = 2;
	assert_int_equal(info_len(&i), INFO_FIXED_LEN + 4 * 6);
	assert_int_equal(info_qp(&i, 1, 0), 2);
	assert_int_equal(info_qp(&i, 0, 2), 4);
	assert_int_equal(info_qp(&i, 1, 2), 5);
	info_encode(buf, &i);
	for (uint32_t place = 0; place < 6; place++)
		info_put_qpn(buf, place, 0x21 + place);
	assert_int_equal(buf[63], 1);
	assert_true(info_decode(&i, buf, info_len(&i)));
	assert_true(i.fills);
	assert_int_equal(info_qpn(&i, 5), 0x26);
	assert_false(info_decode(&i, buf, info_len(&i) - 8));
	buf[63] = 2;
	assert_false(info_decode(&i, buf, sizeof(buf)));
}

TEST(info_refuses_what_it_would_not_write)
{
	static const struct {
		uint8_t at, value;
	} row[] = {{0, 's'}, {5, 1},  {5, 2},  {7, 71}, {8, 0},   {8, 4},  {9, 2},
		   {16, 1},  {39, 1}, {57, 2}, {59, 3}, {60, 11}, {63, 1}, {64, 1}};
	struct info i;

	for (size_t k = 0; k < sizeof(row) / sizeof(row[0]); k++) {
		uint8_t buf[sizeof(golden_info)];

		memcpy(buf, golden_info, sizeof(buf));
		buf[row[k].at] = row[k].value;
		assert_false(info_decode(&i, buf, sizeof(buf)));
	}
	for (size_t len = 0; len < sizeof(golden_info); len++)
		assert_false(info_decode(&i, golden_info, len));
}

TEST(info_matches_the_same_shape_in_another_role)
{
	struct info a = golden_fields, b = golden_fields;

	assert_false(info_match(&a, &b));
	b.roles = INFO_SENDS;
	assert_true(info_match(&a, &b));
	b.roles = INFO_SENDS | INFO_RECEIVES;
	assert_true(info_match(&a, &b));
	b.shape.slots = 512;
	assert_false(info_match(&a, &b));
	b = a;
	b.roles = INFO_SENDS;
	b.transport = 1;
	assert_false(info_match(&a, &b));
	b.transport = 0;
	assert_true(info_match(&a, &b));
	b.fills = true;
	assert_false(info_match(&a, &b));
}
