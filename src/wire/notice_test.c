/* SPDX-License-Identifier: BSD-2-Clause */
/* Notices: offsets as opensm reads them (ib_mad_notice_attr_t and its ntc_128, ntc_129_131,
 * ntc_257_258, ntc_259). */

#include "support/test.h"
#include "wire/notice.h"
#include "wire/smi.h"

TEST(a_link_state_change_has_the_lid_of_its_switch)
{
	static const uint8_t golden[NOTICE_LEN] = {0x81, 0, 0, 2, 0, 128, 0x12, 0x34, 0, 0, 0x12, 0x34};
	uint8_t p[NOTICE_LEN];

	memset(p, 0xff, sizeof(p));
	notice_encode(p, &(struct notice){.trap = NOTICE_LINK_STATE, .producer = NODE_SWITCH, .issuer_lid = 0x1234});
	assert_memory_equal(p, golden, sizeof(p));
}

TEST(an_error_of_a_link_has_its_port)
{
	static const uint8_t golden[NOTICE_LEN] = {0x81, 0, 0, 2, 0, 129, 0x12, 0x34, 0, 0, 0, 0, 0x12, 0x34, 7};
	uint8_t p[NOTICE_LEN];

	for (uint8_t trap = NOTICE_LINK_INTEGRITY; trap <= NOTICE_OVERRUN; trap++) {
		uint8_t want[NOTICE_LEN];

		memcpy(want, golden, sizeof(want));
		want[5] = trap;
		memset(p, 0xff, sizeof(p));
		notice_encode(p, &(struct notice){.trap = (enum notice_trap)trap,
						  .producer = NODE_SWITCH,
						  .issuer_lid = 0x1234,
						  .port = 7});
		assert_memory_equal(p, want, sizeof(p));
	}
}

TEST(a_partition_violation_has_its_packet)
{
	static const uint8_t at_end[NOTICE_LEN] = {0x82, 0,    0,    1,    1,    1,    0x12, 0x34, 0,    0,
						   0,    0,    0xaa, 0xbb, 0x12, 0x34, 0,    0,    0x80, 0x01,
						   0,    0xcc, 0xdd, 0xee, 0,    0,    0,    1};
	static const uint8_t at_switch[NOTICE_LEN] = {0x82, 0,    0,    2,    1,    3,    0x12,        0x34, 0, 0,
						      0,    0x3f, 0xaa, 0xbb, 0x56, 0x78, 0x80,        0x01, 0, 0xcc,
						      0xdd, 0xee, 0,    0,    0,    1,    [58] = 0x12, 0x34, 7};
	struct notice n = {.trap = NOTICE_BAD_PKEY,
			   .producer = NODE_CA,
			   .issuer_lid = 0x1234,
			   .slid = 0xaabb,
			   .dlid = 0x1234,
			   .pkey = 0x8001,
			   .sqp = 0xccddee,
			   .dqp = 1,
			   .port = 7};
	uint8_t p[NOTICE_LEN];

	notice_encode(p, &n);
	assert_memory_equal(p, at_end, sizeof(p));
	n.trap = NOTICE_SWITCH_PKEY;
	n.producer = NODE_SWITCH;
	n.dlid = 0x5678;
	notice_encode(p, &n);
	assert_memory_equal(p, at_switch, sizeof(p));
}
