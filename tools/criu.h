/* SPDX-License-Identifier: BSD-2-Clause */
/* CRIU, a tool of its own that writes a running program to files and makes it run from them: found, tried and called. */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <sys/types.h>

#include "ends.h"

struct criu {
	char folder[PATH_MAX]; /* has the images, and what CRIU says, for each call in a file; "": none was made */
	int fd;                /* the folder; -1 */
	int pidfd;             /* the program, in whose namespaces CRIU runs; *borrowed* */
	int namespaces;        /* those of them that are not ours, as flags of setns(2) */
	struct ends_pipe pipes[ENDS_PIPES_MAX]; /* which the restored one has, too; ours */
	size_t pipe_count;
	bool tcp;          /* it has TCP connections, which nothing reaches meanwhile: ends_deafen() */
	bool unprivileged; /* we are root in a user namespace alone */
};

enum criu_call { CRIU_CHECK, CRIU_DUMP, CRIU_RESTORE };

/*
 * Finds it in PATH, makes the folder, and lets CRIU look whether this kernel and this user can do it. EXIT_SUCCESS, or
 * EXIT_OURS and it has been said what was found; criu_close() in either case.
 */
int criu_find(struct criu *, pid_t, int pidfd);
/* Writes the process, as its PID namespace numbers it, to the folder, and leaves it stopped. False: criu_explain(). */
bool criu_dump(const struct criu *, pid_t);
/* The process runs again, in the namespaces of the caller, who is the first process of a PID namespace and its parent. False: it does not. */
bool criu_restore(const struct criu *);
/* Says that a call has failed for a process, with what CRIU says and where there is more of it. Returns EXIT_OURS. */
int criu_explain(const struct criu *, enum criu_call, pid_t);
/* The folder goes, but for CRIU's words if they are kept. */
void criu_close(struct criu *, bool keep_words);
