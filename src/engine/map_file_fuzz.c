/* SPDX-License-Identifier: BSD-2-Clause */
/* Any text is a map in which each address is found from both sides, or refused with a sentence that begins with the file. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "engine/map_file.h"
#include "support/fuzz_input.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	size_t room = size / MAP_LINE_MIN + 1;
	struct gid_row *rows = calloc(room, sizeof(*rows)), *past = calloc(room, sizeof(*past));
	char *text = malloc(size ? size : 1), why[512] = ""; /* so that a read beyond the text is seen */
	int n;

	assert(rows && past && text);
	memcpy(text, data, size);
	n = map_parse("file", text, size, rows, why, sizeof(why));
	assert(n < 0 ? !strncmp(why, "file:", 5) : n > 0 && (size_t)n <= room);
	if (n > 0) {
		memcpy(past, rows, (size_t)n * sizeof(*rows));
		qsort(past, (size_t)n, sizeof(*past), gid_row_by_underlay);
	}
	for (int i = 0; i < n; i++) {
		struct gid_map map = {.now = rows, .now_count = (uint32_t)n, .past = past, .past_count = (uint32_t)n};

		assert(!memcmp(gid_map_underlay(&map, rows[i].vgid), rows[i].underlay, 16));
		assert(!memcmp(gid_map_vgid(&map, rows[i].underlay), rows[i].vgid, 16));
	}
	free(text);
	free(past);
	free(rows);
	return 0;
}
