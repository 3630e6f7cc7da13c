/* SPDX-License-Identifier: BSD-2-Clause */
/* The MTU codes. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include "wire/rocev2.h"

static void mtu_codes_stand_for_256_to_4096_bytes(void **state)
{
	assert_int_equal(mtu_bytes(MTU_256), 256);
	assert_int_equal(mtu_bytes(MTU_512), 512);
	assert_int_equal(mtu_bytes(MTU_1024), 1024);
	assert_int_equal(mtu_bytes(MTU_2048), 2048);
	assert_int_equal(mtu_bytes(MTU_4096), 4096);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(mtu_codes_stand_for_256_to_4096_bytes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
