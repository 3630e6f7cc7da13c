/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How the loader will treat the program that `verbena run` is about to become. The loader finds our
 * libraries by the environment. For some programs it ignores the environment, and some have no
 * loader.
 */
#pragma once

#include <limits.h>
#include <stdbool.h>

enum program_obstacle {
	PROGRAM_OPEN,         /* no obstacle that the file shows */
	PROGRAM_STATIC,       /* linked without libraries */
	PROGRAM_FOREIGN,      /* for another kind of machine than this tool: 32 bits for example */
	PROGRAM_SET_ID,       /* becomes another user or group */
	PROGRAM_CAPABILITIES, /* finds a libibverbs of its own first */
};

struct program {
	char file[PATH_MAX]; /* the file that is executed; of a script its interpreter */
	enum program_obstacle obstacle;
	/* It has a run path that goes before the environment (DT_RPATH), with a libibverbs.so.1. */
	bool has_own_verbs;
};

/*
 * Looks at the file that execvp() would take for `command`. False, with *out untouched: no such
 * file can be read, and execvp() will give the reason.
 */
bool program_look(const char *command, struct program *out);
