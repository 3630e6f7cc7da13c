/* SPDX-License-Identifier: BSD-2-Clause */
/* The devices' files, as the kernel has them below /sys, in a directory of the user's, for programs that make their own
 * system calls. */
#pragma once

#include "engine/config.h"
#include "tally.h"

enum { SYSFS_NAME_BYTES = 64, SYSFS_NUMBER_MAX = 1000000 }; /* as long as the kernel's may be */

struct sysfs_files;

/*
 * Takes the directory, which is empty or not there, and writes the files. The first device has that name, if it is not NULL,
 * and the number at its end counts up for others. All but the result is borrowed until sysfs_files_close(). NULL, after a
 * sentence on standard error.
 */
struct sysfs_files *sysfs_files_open(const char *dir, const char *name, const struct config *, const struct tally *);
/* Makes them true again. 0 or a negative errno. */
int sysfs_files_update(struct sysfs_files *, const struct tally *);
/* Removes them. NULL is harmless. */
void sysfs_files_close(struct sysfs_files *);
