/* SPDX-License-Identifier: BSD-2-Clause */
/* Any text is read as devices, each with a rail or none of them, or refused with a reason. */
#include <assert.h>
#include <string.h>

#include "engine/devices.h"
#include "support/fuzz_input.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct devices d = {0};
	char text[600], why[512] = "";

	if (size >= sizeof(text))
		size = sizeof(text) - 1;
	memcpy(text, data, size);
	text[size] = '\0';
	if (!devices_parse(&d, text, why, sizeof(why))) {
		assert(why[0] && !d.count);
		return 0;
	}
	assert(d.count >= 1 && d.count <= ENGINE_DEVICES_MAX && !(d.iwarp >> d.count));
	for (uint32_t i = 0; i < ENGINE_DEVICES_MAX; i++) {
		assert((d.rails[i][0] != 0) == (d.has_rails && i < d.count));
		assert(memchr(d.rails[i], 0, RAIL_BYTES));
	}
	return 0;
}
