/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/gid_map.h"

#include <stddef.h>
#include <string.h>

#include "base/ipudp.h"

int gid_row_by_vgid(const void *a, const void *b)
{
	return memcmp(((const struct gid_row *)a)->vgid, ((const struct gid_row *)b)->vgid, 16);
}

int gid_row_by_underlay(const void *a, const void *b)
{
	return memcmp(((const struct gid_row *)a)->underlay, ((const struct gid_row *)b)->underlay, 16);
}

static const struct gid_row *find(const struct gid_row *rows, uint32_t count, const struct gid_row *like,
				  int (*order)(const void *, const void *))
{
	while (count) {
		const struct gid_row *middle = rows + count / 2;
		int way = order(like, middle);

		if (!way)
			return middle;
		if (way > 0) {
			rows = middle + 1;
			count--;
		}
		count /= 2;
	}
	return NULL;
}

const uint8_t *gid_map_underlay(const struct gid_map *map, const uint8_t vgid[16])
{
	const struct gid_row *row;
	struct gid_row like = {0};

	memcpy(like.vgid, vgid, sizeof(like.vgid));
	row = find(map->now, map->now_count, &like, gid_row_by_vgid);
	return row ? row->underlay : NULL;
}

const uint8_t *gid_map_last_vgid(const struct gid_map *map, const uint8_t underlay[16])
{
	const struct gid_row *row;
	struct gid_row like = {0};

	memcpy(like.underlay, underlay, sizeof(like.underlay));
	row = find(map->past, map->past_count, &like, gid_row_by_underlay);
	return row ? row->vgid : NULL;
}

const uint8_t *gid_map_vgid(const struct gid_map *map, const uint8_t underlay[16])
{
	const uint8_t *vgid = gid_map_last_vgid(map, underlay), *back = vgid ? gid_map_underlay(map, vgid) : NULL;

	return back && !memcmp(back, underlay, 16) ? vgid : NULL;
}

static bool rename_ends(struct flow *f, const uint8_t *src, const uint8_t *dst)
{
	bool to_group = gid_is_multicast(f->dst);

	if (!src || (!dst && !to_group))
		return false;
	memcpy(f->src, src, sizeof(f->src));
	if (!to_group)
		memcpy(f->dst, dst, sizeof(f->dst));
	return true;
}

bool gid_map_show(const struct gid_map *map, struct flow *f)
{
	return rename_ends(f, gid_map_vgid(map, f->src), gid_map_vgid(map, f->dst));
}

bool gid_map_hide(const struct gid_map *map, struct flow *f)
{
	return rename_ends(f, gid_map_underlay(map, f->src), gid_map_underlay(map, f->dst));
}
