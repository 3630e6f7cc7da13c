/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "verbs/explain.h"

enum { LINE_BYTES = 1024 };

/* Read each time: programs may set the variable later, and this runs only once for each cause. */
bool explain_is_quiet(void)
{
	const char *quiet = getenv("VERBENA_QUIET");

	return quiet && quiet[0];
}

static void tell(atomic_flag *told, const char *fmt, va_list ap)
{
	char line[LINE_BYTES];
	int cancel;

	if (atomic_flag_test_and_set(told))
		return;
	vsnprintf(line, sizeof(line), fmt, ap);
	/* Callers hold locks, with which a thread that is cancelled would end. */
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	fprintf(stderr, "verbena: %s\n", line);
	pthread_setcancelstate(cancel, NULL);
}

int explain(atomic_flag *told, int err, const char *fmt, ...)
{
	int saved = errno;
	va_list ap;

	va_start(ap, fmt);
	if (!explain_is_quiet())
		tell(told, fmt, ap);
	va_end(ap);
	errno = saved;
	return err;
}

void explain_unasked(atomic_flag *told, const char *fmt, ...)
{
	int saved = errno;
	va_list ap;

	va_start(ap, fmt);
	tell(told, fmt, ap);
	va_end(ap);
	errno = saved;
}
