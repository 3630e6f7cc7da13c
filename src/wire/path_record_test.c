/* SPDX-License-Identifier: BSD-2-Clause */
/* Queries and answers by the offsets of IBTA 15.2.5.16. */

#include "support/test.h"
#include "wire/path_record.h"

TEST(a_query_names_both_lids_and_nothing_else)
{
	uint8_t mad[MAD_LEN], expected[MAD_LEN] = {1, 3, 2, 1, 0, 0, 0, 0, 0x12, 0x34, 0, 0, 0, 0, 0, 7, 0, 0x35};

	expected[55] = 0x30; /* DLID and SLID */
	expected[96] = 0x01;
	expected[97] = 0x02;
	expected[98] = 0x03;
	expected[99] = 0x04;
	path_query_encode(mad, UINT64_C(0x1234000000000007), 0x0304, 0x0102);
	assert_memory_equal(mad, expected, MAD_LEN);
}

TEST(an_answer_has_the_service_level)
{
	uint8_t mad[MAD_LEN];
	struct path_record r;

	path_query_encode(mad, 1, 3, 17);
	assert_false(path_record_decode(&r, mad)); /* a query */
	mad[3] = SA_METHOD_GET_RESP;
	mad[108] = 0xab;
	mad[109] = 0xc5; /* QoS class, SL 5 */
	assert_true(path_record_decode(&r, mad));
	assert_int_equal(r.slid, 3);
	assert_int_equal(r.dlid, 17);
	assert_int_equal(r.sl, 5);
	mad[4] = 0x03; /* no records */
	assert_false(path_record_decode(&r, mad));
}
