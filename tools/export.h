/* SPDX-License-Identifier: BSD-2-Clause */
/* Counters for other programs, until a signal ends it: `verbena export`, and `verbena devices --sysfs`. */
#pragma once

#include "engine/config.h"

/* What is NULL is not wanted. */
struct export_wanted {
	const char *prometheus; /* ADDRESS:PORT */
	const char *textfile;
	const char *sysfs, *name; /* a directory, and the first device's name in it */
};

/* Returns the exit status, after SIGINT, SIGTERM or SIGHUP; then the files are gone. */
int export_run(const struct export_wanted *, const struct config *);
