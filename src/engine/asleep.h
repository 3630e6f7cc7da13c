/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Whether all other threads of the process are asleep, so that nothing will happen in it but by an event from outside.
 *
 * Private to src/engine.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { ASLEEP_THREADS_MAX = 512 };

/* What was seen at one time. Zeroed: nothing. */
struct asleep_look {
	size_t count;
	struct {
		pid_t tid;
		uint64_t switches; /* how often it has given its processor away, or lost it */
	} threads[ASLEEP_THREADS_MAX];
};

struct asleep {
	int tasks_fd; /* of the folder with the process's threads */
	pid_t runner; /* a thread that was not asleep when asleep_all() found that; 0: none was seen */
	struct asleep_look now, before;
};

/* Zeroed. 0 or a negative errno. */
int asleep_open(struct asleep *);
void asleep_close(struct asleep *);

/*
 * Looks twice. True: there was a moment in this call at which every thread but the calling one was asleep. A thread
 * that waits for the disk, or is stopped, is not. False also if there are more than ASLEEP_THREADS_MAX.
 */
bool asleep_all(struct asleep *);
