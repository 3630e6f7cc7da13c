/* SPDX-License-Identifier: BSD-2-Clause */
/* For tests of two threads that wait for each other. */
#pragma once

#include <time.h>

/*
 * Called at each look that was in vain. The other thread may need this processor, so now and then we sleep: with
 * sched_yield() every other process of a busy machine would come first, each time.
 */
static inline void let_the_other_run(unsigned *looks)
{
	struct timespec moment = {.tv_nsec = 1000};

	if (++*looks % 1000 == 0)
		nanosleep(&moment, NULL);
}
