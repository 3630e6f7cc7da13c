/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The directory that stands for /sys and /dev to programs under `verbena run`. Runs on an unchanged host share
 * one. The last program that uses it removes it; if that one is killed, the next `verbena run` does: see
 * verbs/tree_use.h.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "engine/config.h"
#include "engine/gids.h"

struct sysfs_devices {
	const struct gid_table *tables; /* one for each; *borrowed* */
	unsigned count;
	uint32_t iwarp;        /* a bit for each that speaks iWARP */
	const uint16_t *pkeys; /* NIC_PKEYS_MAX, zeros behind the last. *Borrowed* */
	const char *given;     /* the name of the only one; empty: its kind's. *Borrowed* */
	bool rocev1;           /* the others speak RoCEv1 */
};

struct sysfs_devices sysfs_devices_of(const struct config *, const struct gid_table *tables);

/* Writes the files into dir (verbs/tree.h). 0 or a negative errno. */
int sysfs_render(const char *dir, const struct sysfs_devices *);

/*
 * The path of the directory, which is complete and private to the user, and a descriptor that all its users
 * inherit; or a negative errno and a sentence.
 */
int sysfs_dir_get(const struct sysfs_devices *, char *path, size_t path_bytes, char *why, size_t why_bytes);
