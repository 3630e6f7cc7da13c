/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The directory that stands for /sys and /dev to programs under `verbena run`. Runs on a host that does not
 * change share one. The last program that uses it removes it, or else the next `verbena run`, when that one was
 * killed: see verbs/tree_use.h.
 */
#ifndef TOOLS_SYSFS_DIR_H
#define TOOLS_SYSFS_DIR_H

#include <stddef.h>

#include "engine/gids.h"

/*
 * The directory's path, private to the user and complete, and a descriptor to be inherited by all who use it;
 * or a negative errno and a sentence.
 */
int sysfs_dir_get(const struct gid_table *, char *path, size_t path_bytes, char *why,
		  size_t why_bytes);

#endif
