/* SPDX-License-Identifier: BSD-2-Clause */
/* Tests alone: a network namespace of the test's own, which needs no privilege where user namespaces are allowed. */
#pragma once

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { OWN_NET_SKIP = 77 };

/* Skips the test where the command fails. */
static inline void own_net_run(const char *command)
{
	if (system(command)) {
		fprintf(stderr, "cannot: %s\n", command);
		exit(OWN_NET_SKIP);
	}
}

static inline void own_net_map_write(const char *file, unsigned id)
{
	FILE *f = fopen(file, "w");

	if (!f || fprintf(f, "0 %u 1", id) < 0 || fclose(f)) {
		fprintf(stderr, "%s: %s\n", file, strerror(errno));
		exit(OWN_NET_SKIP);
	}
}

/* Who is not root becomes root of a user namespace. */
static inline void own_net_make(void)
{
	unsigned uid = getuid();

	if (!unshare(CLONE_NEWNET))
		return;
	if (unshare(CLONE_NEWUSER | CLONE_NEWNET)) {
		fprintf(stderr, "no network namespace of our own: %s\n", strerror(errno));
		exit(OWN_NET_SKIP);
	}
	own_net_map_write("/proc/self/uid_map", uid);
}
