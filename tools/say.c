/* SPDX-License-Identifier: BSD-2-Clause */
/* Error messages and JSON of all subcommands. */
#include "tool.h"

#include <stdarg.h>

int complain(const char *fmt, ...)
{
	va_list ap;

	fputs("verbena: ", stderr);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
	return EXIT_OURS;
}

int usage_error(const char *command)
{
	fprintf(stderr, "verbena: see 'verbena %s --help'\n", command);
	return EXIT_OURS;
}

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
