/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which processors an engine's thread may run on: those that the process was started with. A program pins the threads
 * that poll all the time, and one of them opens the device. A thread that inherited its processors would wait for the
 * one that never sleeps.
 */
#pragma once

#include <stdbool.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { PROCESSORS_BYTES = 1024 }; /* a bit for each of the 8192 that a kernel can be built for */

struct processors {
	unsigned long bits[PROCESSORS_BYTES / sizeof(unsigned long)];
	bool known;
};

/*
 * How libibverbs.so.1, which a program may load when it has pinned its threads, finds what the library noted that
 * `verbena run` preloads.
 */
typedef const struct processors *processors_at_start_fn(void);
#define PROCESSORS_AT_START "verbena_processors_at_start"

/* Those that a thread may run on; 0: the calling one. */
static inline void processors_note(struct processors *p, pid_t tid)
{
	p->known = syscall(SYS_sched_getaffinity, tid, PROCESSORS_BYTES, p->bits) > 0;
}

/* Gives the calling thread those that the process was started with. */
void processors_take(void);
