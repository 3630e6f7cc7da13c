/* SPDX-License-Identifier: BSD-2-Clause */
/* Part of the library to preload, which is loaded before the program runs: where the process was allowed to run then.
 */
#include "engine/processors.h"

#include "verbs/next.h"

static struct processors at_start;

__attribute__((constructor)) static void note(void)
{
	int saved = errno;

	processors_note(&at_start, 0);
	errno = saved;
}

EXPORT const struct processors *verbena_processors_at_start(void);
const struct processors *verbena_processors_at_start(void)
{
	return &at_start;
}
