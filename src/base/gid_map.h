/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Addresses that programs know by other names: a virtual GID (vGID) for each, one to one. The core's flows have the
 * addresses of the wire, those of the underlay; what programs give and get is renamed where it crosses that line.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/pkt.h"

struct gid_row {
	uint8_t vgid[16];
	uint8_t underlay[16];
};

/*
 * Rows of both orders, by value of the bytes; no vGID and no underlay twice in either. `past` has the rows of `now` and,
 * of addresses that are in none of those, the last that there was.
 */
struct gid_map {
	const struct gid_row *now; /* by vGID */
	uint32_t now_count;
	const struct gid_row *past; /* by underlay */
	uint32_t past_count;
};

/* The address of a vGID; NULL: it has none. Lends it as long as the map lives. */
const uint8_t *gid_map_underlay(const struct gid_map *, const uint8_t vgid[16]);
/* The vGID of an address, likewise. */
const uint8_t *gid_map_vgid(const struct gid_map *, const uint8_t underlay[16]);
/* The one that it has or, if it has none any more, had last. */
const uint8_t *gid_map_last_vgid(const struct gid_map *, const uint8_t underlay[16]);

/*
 * A flow of the wire as programs know it, and back; groups have no vGIDs. False, with the flow as it was: an end is not
 * in the map.
 */
bool gid_map_show(const struct gid_map *, struct flow *);
bool gid_map_hide(const struct gid_map *, struct flow *);

/* qsort()'s orders of rows. */
int gid_row_by_vgid(const void *, const void *);
int gid_row_by_underlay(const void *, const void *);
