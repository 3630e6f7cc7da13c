/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The first bytes choose a ring and where its positions start, then each five bytes are one call
 * with its arguments. A model with a byte for each bit does the same and must agree. The words are
 * an exact-size heap block, so that the sanitizer sees a step outside.
 */
#include <stdlib.h>
#include <string.h>

#include "base/bitring.h"
#include "support/fuzz_input.h"

enum { BITS_MAX = 1024, OPS_MAX = 400 };

static uint32_t model_next(const uint8_t *bit, uint32_t mask, uint32_t from, uint32_t max, int want)
{
	for (uint32_t d = 0; d < max; d++) {
		if (bit[(from + d) & mask] == want)
			return d;
	}
	return max;
}

static void must_get128(const struct bitring *r, const uint8_t *bit, uint32_t from, uint32_t max)
{
	uint64_t out[2];

	bitring_get128(r, from, out, max);
	for (uint32_t i = 0; i < 128; i++)
		must((out[i / 64] >> i % 64 & 1) == (i < max && bit[(from + i) & r->mask]));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t bit[BITS_MAX] = {0};
	struct bitring r;
	uint32_t bits, base;

	if (size < 5)
		return 0;
	bits = 64u << data[0] % 5;
	memcpy(&base, data + 1, sizeof(base));
	r = (struct bitring){malloc(bits / 8), bits - 1};
	must(r.words != NULL);
	memset(r.words, 0xa5, bits / 8);
	bitring_reset(&r);

	data += 5;
	size -= 5;
	for (int op = 0; op < OPS_MAX && size >= 5; op++, data += 5, size -= 5) {
		uint32_t pos = base + (data[1] | (uint32_t)data[2] << 8);
		uint32_t n = (data[3] | (uint32_t)data[4] << 8) % (2 * BITS_MAX);

		switch (data[0] % 8) {
		case 0:
			bitring_set(&r, pos);
			bit[pos & r.mask] = 1;
			break;
		case 1:
			bitring_clear(&r, pos);
			bit[pos & r.mask] = 0;
			break;
		case 2:
			for (uint32_t i = 0; i < n; i++) {
				bitring_set(&r, pos + i);
				bit[(pos + i) & r.mask] = 1;
			}
			break;
		case 3:
			bitring_clear_range(&r, pos, n);
			for (uint32_t i = 0; i < n; i++)
				bit[(pos + i) & r.mask] = 0;
			break;
		case 4:
		case 5: must(bitring_next_set(&r, pos, n) == model_next(bit, r.mask, pos, n, 1)); break;
		case 6: must_get128(&r, bit, pos, n); break;
		default: base = pos;
		}
	}
	for (uint32_t i = 0; i < bits; i++)
		must(bitring_test(&r, base + i) == bit[(base + i) & r.mask]);
	free(r.words);
	return 0;
}
