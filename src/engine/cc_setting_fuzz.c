/* SPDX-License-Identifier: BSD-2-Clause */
/* Any text is read as an algorithm for real networks with parameters, or refused with a reason. */
#include <assert.h>
#include <string.h>

#include "engine/cc_setting.h"
#include "support/fuzz_input.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct cc_setting s;
	char text[600], why[128] = "";

	if (size >= sizeof(text))
		size = sizeof(text) - 1;
	memcpy(text, data, size);
	text[size] = '\0';
	if (cc_setting_parse(text, &s, why, sizeof(why)) < 0) {
		assert(why[0] && strlen(why) < sizeof(why));
		return 0;
	}
	if (!s.given) {
		assert(!strcmp(text, "auto"));
		return 0;
	}
	assert(s.params.algorithm < CC_ALGORITHMS && !cc_needs_int(s.params.algorithm));
	assert(!strncmp(text, cc_name(s.params.algorithm), strlen(cc_name(s.params.algorithm))));
	cc_setting_has_target(&s);
	return 0;
}
