/* SPDX-License-Identifier: BSD-2-Clause */
/* JSON, and texts of others, for all subcommands. */
#include "tool.h"

void json_string(FILE *f, const char *s)
{
	fputc('"', f);
	for (; *s; s++) {
		unsigned char c = (unsigned char)*s;

		if (c == '"' || c == '\\')
			fprintf(f, "\\%c", c);
		else if (c < 0x20)
			fprintf(f, "\\u%04x", c);
		else
			fputc(c, f);
	}
	fputc('"', f);
}

void printable(char *to, size_t size, const char *from, size_t len)
{
	size_t n = 0;

	for (; n + 1 < size && n < len && from[n]; n++)
		to[n] = from[n] >= ' ' && from[n] <= '~' ? from[n] : '?';
	to[n] = 0;
}
