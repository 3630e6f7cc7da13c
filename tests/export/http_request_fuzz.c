/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Any bytes: the verdict on a whole request does not depend on what follows, none comes before its end, and what is served
 * begins with a method that is.
 */
#include "http_request.h"

#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "support/fuzz_input.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	/* A copy of its own, so that a read beyond is seen. */
	char *bytes = malloc(size ? size : 1);
	struct http_request r, longer;

	assert(bytes);
	memcpy(bytes, data, size);
	r = http_judge(bytes, size);
	assert(r.status == 0 || r.status == 200 || r.status == 400 || r.status == 404 || r.status == 405 ||
	       r.status == 431 || r.status == 505);
	if (r.status == 200)
		assert(r.page != HTTP_NONE && !memcmp(bytes, r.head ? "HEAD " : "GET ", r.head ? 5 : 4));
	for (size_t part = 0; part < size && r.status != 431; part++) {
		longer = http_judge(bytes, part);
		assert(!longer.status || longer.status == r.status);
	}
	free(bytes);
	return 0;
}
