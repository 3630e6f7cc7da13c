/* SPDX-License-Identifier: BSD-2-Clause */
/* An accepted distribution has its mean and its draws between its smallest and largest size. */
#include <assert.h>
#include <string.h>

#include "base/prng.h"
#include "support/fuzz_input.h"
#include "workload/cdf.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct text_error err = {0};
	struct cdf c;
	struct prng r;

	if (cdf_read(&c, (const char *)data, size, &err)) {
		assert(err.message[0] && strlen(err.message) < sizeof(err.message));
		return 0;
	}

	uint64_t least = c.points[0].bytes, most = c.points[c.count - 1].bytes;
	uint64_t mean = cdf_mean_millibytes(&c), last = 0;

	assert(c.count <= CDF_POINTS_MAX && most >= least && most <= CDF_BYTES_MAX);
	assert(mean >= least * 1000 && mean <= most * 1000);
	prng_init(&r, mean);
	for (int i = 0; i < 100; i++) {
		uint64_t bytes = cdf_bytes(&c, prng_next(&r));

		assert(bytes >= (least ? least : 1) && bytes <= most);
	}
	for (uint64_t u = 0; u < 256; u++) {
		uint64_t bytes = cdf_bytes(&c, u << 56);

		assert(bytes >= last);
		last = bytes;
	}
	cdf_free(&c);
	return 0;
}
