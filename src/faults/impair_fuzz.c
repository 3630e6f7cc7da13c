/* SPDX-License-Identifier: BSD-2-Clause */
/* Any text is read as a good configuration within bounds, or refused with a reason. */
#include <assert.h>
#include <string.h>

#include "faults/script.h"
#include "support/fuzz_input.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct impair_config c;
	char text[600];
	char why[128] = "";

	if (size >= sizeof(text))
		size = sizeof(text) - 1;
	memcpy(text, data, size);
	text[size] = '\0';
	if (impair_parse(text, &c, why, sizeof(why)) < 0) {
		assert(why[0] && strlen(why) < sizeof(why));
		return 0;
	}
	assert(c.drop >= 0 && c.drop <= 1 && c.dup >= 0 && c.dup <= 1);
	assert(c.reorder >= 0 && c.reorder <= 1 && c.corrupt >= 0 && c.corrupt <= 1);
	assert(c.delay_ns <= 60000000000u && c.jitter_ns <= 60000000000u);
	assert(c.rate_bps == 0 || (c.rate_bps >= 1000 && c.rate_bps <= 10000000000000u));
	assert(c.limit >= 1 && c.limit <= 65536);
	return 0;
}
