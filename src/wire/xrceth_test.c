/* SPDX-License-Identifier: BSD-2-Clause */
/* The XRCETH codec. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <string.h>
#include <cmocka.h>

#include "base/prng.h"
#include "wire/xrceth.h"

/* By hand from the figure in IBTA A14.3.3. */
static const uint8_t golden[XRCETH_LEN] = {0x00, 0xf2, 0x03, 0x04};
static const struct xrceth golden_fields = {.srqn = 0xf20304};

static void xrceth_decodes_golden_bytes(void **state)
{
	struct xrceth h;

	xrceth_decode(&h, golden);
	assert_true(h.srqn == golden_fields.srqn);
}

static void xrceth_encodes_golden_bytes(void **state)
{
	uint8_t buf[XRCETH_LEN];

	memset(buf, 0xa5, sizeof(buf));
	xrceth_encode(buf, &golden_fields);
	assert_memory_equal(buf, golden, sizeof(golden));
}

/* Any bytes survive decode and encode, but the reserved ones: they are sent as 0 and ignored. */
static void xrceth_round_trips(void **state)
{
	struct prng rng;

	prng_init(&rng, 1);
	for (int i = 0; i < 1000; i++) {
		uint8_t in[XRCETH_LEN], out[XRCETH_LEN];
		struct xrceth h;

		for (size_t k = 0; k < sizeof(in); k++)
			in[k] = (uint8_t)prng_next(&rng);
		xrceth_decode(&h, in);
		memset(out, 0xa5, sizeof(out));
		xrceth_encode(out, &h);
		in[0] = 0;
		assert_memory_equal(out, in, sizeof(in));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(xrceth_decodes_golden_bytes),
		cmocka_unit_test(xrceth_encodes_golden_bytes),
		cmocka_unit_test(xrceth_round_trips),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
