/* SPDX-License-Identifier: BSD-2-Clause */
/* What the library's files say instead of the program's: nothing is printed, and scenarios are found beside the library. */
#include "simlib/voice.h"

#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "sim.h"
#include "tool.h"

/* Of a thread, because complaints come up through files that know no simulation. */
static _Thread_local char said[VOICE_BYTES];

int complain(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(said, sizeof(said), fmt, ap);
	va_end(ap);
	return EXIT_OURS;
}

const char *voice_said(void)
{
	return said;
}

/* An address in the library. */
static const char places_here[] = "";

bool sim_own_path(char *path, size_t bytes)
{
	Dl_info info;
	char *real;
	bool good;

	if (!dladdr(places_here, &info))
		return false;
	real = realpath(info.dli_fname, NULL);
	good = real && (size_t)snprintf(path, bytes, "%s", real) < bytes;
	free(real);
	return good;
}
