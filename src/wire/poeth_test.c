/* SPDX-License-Identifier: BSD-2-Clause */
/* The POETH codec. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <string.h>
#include <cmocka.h>

#include "base/prng.h"
#include "wire/poeth.h"

/* By hand from the figure in veRoCE 2. */
static const uint8_t golden[POETH_LEN] = {0x00, 0xab, 0xcd, 0xef};
static const struct poeth golden_fields = {.po = 0xabcdef};

static void poeth_decodes_golden_bytes(void **state)
{
	struct poeth h;

	poeth_decode(&h, golden);
	assert_true(h.po == golden_fields.po);
}

static void poeth_encodes_golden_bytes(void **state)
{
	uint8_t buf[POETH_LEN];

	memset(buf, 0xa5, sizeof(buf));
	poeth_encode(buf, &golden_fields);
	assert_memory_equal(buf, golden, sizeof(golden));
}

/* Any bytes, reserved ones cleared, survive decode and encode. */
static void poeth_round_trips(void **state)
{
	struct prng rng;

	prng_init(&rng, 1);
	for (int i = 0; i < 1000; i++) {
		uint8_t in[POETH_LEN], out[POETH_LEN];
		struct poeth h;

		for (size_t k = 0; k < sizeof(in); k++)
			in[k] = (uint8_t)prng_next(&rng);
		in[0] = 0;
		poeth_decode(&h, in);
		memset(out, 0xa5, sizeof(out));
		poeth_encode(out, &h);
		assert_memory_equal(out, in, sizeof(in));
	}
}

static void poeth_ignores_the_reserved_byte(void **state)
{
	static const uint8_t in[POETH_LEN] = {0xff, 0x00, 0x00, 0x01};
	struct poeth h;

	poeth_decode(&h, in);
	assert_true(h.po == 1);
}

static void poeth_encode_confines_the_number_to_24_bits(void **state)
{
	static const uint8_t expect[POETH_LEN] = {0x00, 0x00, 0x00, 0x02};
	uint8_t out[POETH_LEN];

	poeth_encode(out, &(struct poeth){.po = 0xff000002});
	assert_memory_equal(out, expect, sizeof(expect));
}

static void poeth_no_info_is_all_ones(void **state)
{
	static const uint8_t expect[POETH_LEN] = {0x00, 0xff, 0xff, 0xff};
	uint8_t out[POETH_LEN];

	poeth_encode(out, &(struct poeth){.po = POETH_NO_INFO});
	assert_memory_equal(out, expect, sizeof(expect));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(poeth_decodes_golden_bytes),
		cmocka_unit_test(poeth_encodes_golden_bytes),
		cmocka_unit_test(poeth_round_trips),
		cmocka_unit_test(poeth_ignores_the_reserved_byte),
		cmocka_unit_test(poeth_encode_confines_the_number_to_24_bits),
		cmocka_unit_test(poeth_no_info_is_all_ones),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
