/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the loader will make of a program that `verbena run` is about to become. It finds our
 * libraries by the environment, and there are programs for which it does not look there, or does
 * not come at all.
 */
#ifndef TOOLS_PROGRAM_H
#define TOOLS_PROGRAM_H

#include <limits.h>
#include <stdbool.h>

enum program_obstacle {
	PROGRAM_OPEN,         /* none that the file shows */
	PROGRAM_STATIC,       /* linked without libraries */
	PROGRAM_FOREIGN,      /* for another kind of machine than this tool: 32 bits for example */
	PROGRAM_SET_ID,       /* becomes another user or group */
	PROGRAM_CAPABILITIES, /* has some of its own */
};

struct program {
	char file[PATH_MAX]; /* what is executed: where it is a script, its interpreter */
	enum program_obstacle obstacle;
	/* It has a run path that goes before the environment (DT_RPATH), and a libibverbs.so.1 is
	 * there. */
	bool has_own_verbs;
};

/*
 * Looks at the file that execvp() would take for `command`. False, with *out untouched: there is
 * none that can be read, and execvp() will say more.
 */
bool program_look(const char *command, struct program *out);

#endif
