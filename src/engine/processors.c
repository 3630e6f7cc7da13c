/* SPDX-License-Identifier: BSD-2-Clause */
/* See processors.h. */
#include "engine/processors.h"

#include <dlfcn.h>
#include <string.h>

static struct processors when_loaded;

/* The thread that loads a library late is any; the program's first one is less likely to be pinned already. */
__attribute__((constructor)) static void note(void)
{
	processors_note(&when_loaded, getpid());
}

void processors_take(void)
{
	processors_at_start_fn *at_start = (processors_at_start_fn *)dlsym(RTLD_DEFAULT, PROCESSORS_AT_START);
	const struct processors *given = at_start ? at_start() : &when_loaded;
	struct processors inherited = {0};

	processors_note(&inherited, 0);
	/* A thread whose processors nobody chose follows its cpuset, also when that grows. */
	if (given->known && memcmp(inherited.bits, given->bits, PROCESSORS_BYTES))
		syscall(SYS_sched_setaffinity, 0, PROCESSORS_BYTES, given->bits);
}
