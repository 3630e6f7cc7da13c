/* SPDX-License-Identifier: BSD-2-Clause */
/* Error messages of all subcommands. */
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
