/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The directory that stands for /sys and /dev to programs under `verbena run`. Runs on an unchanged host share
 * one. The last program that uses it removes it; if that one is killed, the next `verbena run` does: see
 * verbs/tree_use.h.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "engine/gids.h"

struct sysfs_devices {
	unsigned count;
	uint32_t iwarp; /* a bit for each that speaks iWARP */
	bool rocev1;    /* the others speak RoCEv1 */
};

/* Writes the files into dir (verbs/tree.h). 0 or a negative errno. */
int sysfs_render(const char *dir, const struct gid_table *, const struct sysfs_devices *);

/*
 * The path of the directory, which is complete and private to the user, and a descriptor that all its users
 * inherit; or a negative errno and a sentence.
 */
int sysfs_dir_get(const struct gid_table *, const struct sysfs_devices *, char *path, size_t path_bytes, char *why,
		  size_t why_bytes);
