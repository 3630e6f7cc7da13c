/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The files in which the kernel describes RDMA devices, for programs that read them themselves:
 * rendered into a private directory that stands for /sys and /dev, see paths.c.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "engine/engine.h"

struct tree_gid {
	uint8_t raw[16];
	char interface[16];
};

struct tree_facts {
	uint64_t guid;                       /* hostid_guid() */
	unsigned device_first, device_count; /* of the devices below the count those from the first on; all alike but
						for name, GUID and kind */
	uint32_t iwarp;                      /* a bit for each that speaks iWARP */
	const uint16_t *pkeys;               /* the P_Key table, pkey_count of them; NULL: 0xffff alone */
	unsigned pkey_count;
	const char *given; /* the name of the only one; NULL or empty: its kind's */
	bool rocev1;       /* GIDs are of that type */
	struct engine_port port;
	const struct tree_gid *gids; /* an address of zeros: none */
	size_t gid_count;
};

/*
 * Writes class/infiniband, class/infiniband_verbs and dev/infiniband, and what these have links to, below dir, which
 * must exist. What is there of an earlier rendering is changed where it differs; a reader finds each file as it was or
 * as it will be. 0 or a negative errno.
 */
int tree_render(const char *dir, const struct tree_facts *);

/* One file of it without its newline, as path says it below dir: its length, or -ENOENT. */
ssize_t tree_read(const struct tree_facts *, const char *path, char *buf, size_t size);
