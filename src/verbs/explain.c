/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "verbs/explain.h"

enum { LINE_BYTES = 1024 };

/* Read each time: programs may set the variable later, and this runs only once for each cause. */
static bool is_quiet(void)
{
	const char *quiet = getenv("VERBENA_QUIET");

	return quiet && quiet[0];
}

int explain(atomic_flag *told, int err, const char *fmt, ...)
{
	char line[LINE_BYTES];
	int saved = errno;
	va_list ap;

	if (!is_quiet() && !atomic_flag_test_and_set(told)) {
		va_start(ap, fmt);
		vsnprintf(line, sizeof(line), fmt, ap);
		va_end(ap);
		fprintf(stderr, "verbena: %s\n", line);
	}
	errno = saved;
	return err;
}
