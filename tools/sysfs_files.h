/* SPDX-License-Identifier: BSD-2-Clause */
/* `verbena devices --sysfs`: the devices' files for programs that make their own system calls, until a signal ends it.
 */
#pragma once

#include "engine/config.h"

/* Keeps the files in dir true. Returns the exit status, after SIGINT, SIGTERM or SIGHUP; then the files are gone. */
int sysfs_files_keep(const char *dir, const struct config *);
