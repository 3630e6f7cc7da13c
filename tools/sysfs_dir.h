/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The directory that stands for /sys and /dev to programs under `verbena run`. It cannot be removed
 * by whoever made it, for that process becomes the program; so there is one directory for each
 * different content, found again by its name, and runs on a host that does not change share one.
 */
#ifndef TOOLS_SYSFS_DIR_H
#define TOOLS_SYSFS_DIR_H

#include <stddef.h>

#include "engine/gids.h"

/* The directory's path, private to the user and complete. 0, or a negative errno and a sentence. */
int sysfs_dir_get(const struct gid_table *, char *path, size_t path_bytes, char *why,
		  size_t why_bytes);

#endif
