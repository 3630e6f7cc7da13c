/* SPDX-License-Identifier: BSD-2-Clause */
/* The MTU codes. */

#include "support/test.h"
#include "wire/rocev2.h"

TEST(mtu_codes_stand_for_256_to_4096_bytes)
{
	assert_int_equal(mtu_bytes(MTU_256), 256);
	assert_int_equal(mtu_bytes(MTU_512), 512);
	assert_int_equal(mtu_bytes(MTU_1024), 1024);
	assert_int_equal(mtu_bytes(MTU_2048), 2048);
	assert_int_equal(mtu_bytes(MTU_4096), 4096);
}
