/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Any bytes as sdr_cp's list of files: what is taken comes out again as it went in, and its paths stay below the root.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "sdr/cp_list.h"
#include "sdr/meet.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(int claim)
{
	if (!claim)
		abort();
}

void die(const char *fmt, ...)
{
	abort();
}

/* No component goes up, and each goes down. */
static void path_stays(const char *path)
{
	must(!strncmp(path, "root", 4) && (!path[4] || path[4] == '/'));
	must(!strstr(path, "//") && !strstr(path, "/../") && !strstr(path, "/./"));
	if (strlen(path) >= 3)
		must(strcmp(path + strlen(path) - 3, "/.."));
	must(path[strlen(path) - 1] != '/');
}

static void again(const struct cp_list *l, uint32_t i, const uint8_t *in, size_t len)
{
	static uint8_t out[CP_ENTRY_MAX];

	must(cp_entry_length(&l->entry[i]) == len);
	must(cp_entry_encode(l, i, out) == len);
	must(!memcmp(out, in, len));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct cp_list l = {0};
	static char path[1 << 20];

	int64_t n;

	cp_source_add(&l, 0, "root");
	for (size_t at = 0; at < size; at += (size_t)n) {
		n = cp_entry_decode(&l, data + at, size - at);
		if (n <= 0)
			break;
		again(&l, l.count - 1, data + at, (size_t)n);
		if (cp_list_path(&l, l.count - 1, path, sizeof(path)))
			path_stays(path);
	}
	cp_list_free(&l);
	return 0;
}
