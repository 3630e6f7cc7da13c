/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * VERBENA_MAP: a file with a line `vGID underlay` for each address that programs know by another name. It is read again
 * when it has changed, by whoever needs a name: a queue pair that connects, an address handle, rdma_cm, a datagram of
 * QPN 1. A file that is wrong then changes nothing, and it is said once.
 *
 * Private to src/engine.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/gid_map.h"

struct config;
struct engine;
struct gid_table;
struct map_file;

enum { MAP_BYTES_MAX = 1 << 20, MAP_LINE_MIN = 8 /* "::1 ::2" and an end of line, which the last may lack */ };

/*
 * Reads len bytes of text as rows, of which there is room for one for each MAP_LINE_MIN bytes; by vGID. How many: 1 at
 * least; or -EINVAL with a sentence in err that names the file and the line.
 */
int map_parse(const char *file, const char *text, size_t len, struct gid_row *rows, char *err, size_t err_bytes);

/* Reads the file that the settings name, if they do, into e->loop.map. The GID table is there. 0 or a negative errno with a
 * sentence in why. */
int map_open(struct engine *, char *why, size_t why_bytes);
void map_close(struct map_file *);
/* As for nic_set_gid_map(). */
const struct gid_map *map_of(const struct map_file *);
/* Lock held: reads the file again if it has changed. Harmless on NULL. */
void map_follow(struct map_file *);
/* Lock held: the connection manager has the GIDs that programs have. */
void map_tell_cm(const struct engine *);

/* For tools: the addresses of each device's table as programs know them. Likewise. */
int map_show_tables(const struct config *, struct gid_table *tables, char *why, size_t why_bytes);
