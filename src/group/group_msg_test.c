/* SPDX-License-Identifier: BSD-2-Clause */
#include "group/group_msg.h"
#include "support/test.h"

static struct group_msg sample(enum group_msg_type type)
{
	struct group_msg m = {.type = type,
			      .slot = 5,
			      .first = 3,
			      .count = 7,
			      .held = 11,
			      .lane = 1,
			      .digest = 0x0102030405060708,
			      .lane_count = 2,
			      .lanes = {{0, 4791}, {1, 4791}}};

	if (type == GROUP_FORWARD)
		m.flow = (struct flow){.src = {1, 2},
				       .dst = {3, 4},
				       .flow_label = 0xfffff,
				       .ifindex = 9,
				       .sport = 10,
				       .dport = 11,
				       .tos = 12,
				       .ttl = 13};
	return m;
}

TEST(every_type_survives_the_round_trip)
{
	for (int type = GROUP_HELLO; type < GROUP_MSG_TYPES_END; type++) {
		struct group_msg m = sample(type), d;
		uint8_t buf[GROUP_MSG_BYTES_MAX] = {0};
		size_t len = group_msg_encode(buf, &m);

		if (type == GROUP_FORWARD)
			len += 100;
		assert_int_equal(group_msg_decode(&d, buf, len), GROUP_MSG_OK);
		assert_int_equal(d.data_len, type == GROUP_FORWARD ? 100 : 0);
		d.data = NULL;
		d.data_len = 0;
		assert_int_equal(d.type, m.type);
		assert_int_equal(d.slot, m.slot);
		assert_int_equal(d.first, m.first);
		assert_int_equal(d.count, m.count);
		assert_int_equal(d.held, m.held);
		assert_int_equal(d.lane, m.lane);
		assert_true(d.digest == m.digest);
		assert_int_equal(d.lane_count, m.lane_count);
		for (unsigned i = 0; i < GROUP_LANES_MAX; i++) {
			assert_int_equal(d.lanes[i].family, m.lanes[i].family);
			assert_int_equal(d.lanes[i].port, m.lanes[i].port);
		}
		assert_memory_equal(&d.flow, &m.flow, sizeof(m.flow));
	}
}

TEST(the_first_bytes_are_fixed)
{
	static const uint8_t golden[GROUP_MSG_HEADER_LEN] = {
		'V', 'b', 0,    6,    5, 2, 0,    5,    0,        3, 0, 7, 0, 11, 1, 0,
		0,   0,   0x12, 0xb7, 1, 0, 0x12, 0xb7, [48] = 1, 2, 3, 4, 5, 6,  7, 8,
	};
	struct group_msg m = sample(GROUP_ADOPT);
	uint8_t buf[GROUP_MSG_HEADER_LEN];

	assert_int_equal(group_msg_encode(buf, &m), sizeof(golden));
	assert_memory_equal(buf, golden, sizeof(golden));
	assert_int_equal(group_msg_fds(&m), 7);
}

TEST(what_is_out_of_bounds_is_refused)
{
	static const struct {
		size_t at;
		uint8_t value;
		enum group_msg_verdict verdict;
	} rows[] = {
		{0, 'v', GROUP_MSG_BAD}, {3, 1, GROUP_MSG_OTHER_VERSION},
		{4, 0, GROUP_MSG_BAD},   {4, GROUP_MSG_TYPES_END, GROUP_MSG_BAD},
		{5, 0, GROUP_MSG_BAD},   {5, 5, GROUP_MSG_BAD},
		{5, 3, GROUP_MSG_BAD},   {7, 127, GROUP_MSG_BAD},
		{6, 1, GROUP_MSG_BAD},   {8, 1, GROUP_MSG_BAD},
		{9, 250, GROUP_MSG_BAD}, {11, 253, GROUP_MSG_BAD},
		{12, 2, GROUP_MSG_BAD},  {14, 2, GROUP_MSG_BAD},
		{16, 2, GROUP_MSG_BAD},  {9, 249, GROUP_MSG_OK},
		{7, 126, GROUP_MSG_OK},  {14, 0, GROUP_MSG_OK},
	};
	struct group_msg m = sample(GROUP_ADOPT), d;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		uint8_t buf[GROUP_MSG_HEADER_LEN];

		group_msg_encode(buf, &m);
		buf[rows[i].at] = rows[i].value;
		assert_int_equal(group_msg_decode(&d, buf, sizeof(buf)), rows[i].verdict);
	}
}

TEST(short_messages_are_refused)
{
	struct group_msg m = sample(GROUP_FORWARD), d;
	uint8_t buf[GROUP_MSG_BYTES_MAX + 1] = {0};
	size_t len = group_msg_encode(buf, &m);

	for (size_t n = 0; n < len; n++)
		assert_int_equal(group_msg_decode(&d, buf, n), GROUP_MSG_BAD);
	assert_int_equal(group_msg_decode(&d, buf, len), GROUP_MSG_OK);
	assert_int_equal(group_msg_decode(&d, buf, sizeof(buf)), GROUP_MSG_BAD);
}

TEST(the_text_of_a_command_has_a_bound)
{
	struct group_msg m = sample(GROUP_FAULT), d;
	uint8_t buf[GROUP_MSG_HEADER_LEN + GROUP_MSG_TEXT_MAX + 1] = {0};
	size_t len = group_msg_encode(buf, &m);

	assert_int_equal(group_msg_decode(&d, buf, len + 9), GROUP_MSG_OK);
	assert_int_equal(d.data_len, 9);
	assert_ptr_equal(d.data, buf + len);
	assert_int_equal(group_msg_decode(&d, buf, len + GROUP_MSG_TEXT_MAX), GROUP_MSG_OK);
	assert_int_equal(group_msg_decode(&d, buf, len + GROUP_MSG_TEXT_MAX + 1), GROUP_MSG_BAD);
}

/* A joiner of an older build is told which version is spoken here. */
TEST(another_version_may_be_shorter)
{
	struct group_msg m = sample(GROUP_HELLO), d;
	uint8_t buf[GROUP_MSG_HEADER_LEN];

	group_msg_encode(buf, &m);
	buf[3]--;
	assert_int_equal(group_msg_decode(&d, buf, 40), GROUP_MSG_OTHER_VERSION);
	assert_int_equal(group_msg_decode(&d, buf, 4), GROUP_MSG_OTHER_VERSION);
	assert_int_equal(group_msg_decode(&d, buf, 3), GROUP_MSG_BAD);
}
