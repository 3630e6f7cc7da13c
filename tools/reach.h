/* SPDX-License-Identifier: BSD-2-Clause */
/* The devices of one process, and commands to them: for `verbena freeze`, `thaw` and `move`. */
#pragma once

#include <getopt.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "group/group.h"

enum { REACH_DEVICES_MAX = 8, REACH_WAIT_MS = 60000 };

/* A member of a group for each device. */
struct reached {
	pid_t pid;
	size_t count;
	struct {
		struct group_id id;
		struct group_member member;
	} devices[REACH_DEVICES_MAX];
};

bool reach_pid_parse(const char *text, pid_t *);
/*
 * Looks in the network namespace of the caller, and then where one of the threads of the process is: the caller is there
 * afterwards. EXIT_SUCCESS, or EXIT_OURS and it has been said, about `command`, why not.
 */
int reach_find(struct reached *, const char *command, const char *pid);
/* As reach_find(), of a process that is known, in the network namespace of the caller. False: it has no device there. */
bool reach_here(struct reached *, pid_t);
/* Gives it to one device. EXIT_SUCCESS; *link is the connection that stays, if it shall. */
int reach_give(const struct reached *, size_t device, const struct group_command *, int *link);
/* As reach_give(), and *said gets what the device answers. A negative errno: it does not answer. */
int reach_ask(const struct reached *, size_t device, const char *command, char *said, size_t said_bytes);

/*
 * argv without options is "PID". Of an option 'v', *value gets the argument. False, with the exit status in *rc: help was
 * asked for, or something is wrong.
 */
bool reach_options(int argc, char **argv, const char *command, const struct option *, const char *usage,
		   const char **value, int *rc);
