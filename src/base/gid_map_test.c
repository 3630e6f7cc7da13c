/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/gid_map.h"
#include "support/test.h"

#include <stdlib.h>
#include <string.h>

enum { ROWS = 37, PAST = ROWS + 3 };

static struct gid_row row(uint8_t v, uint8_t u)
{
	return (struct gid_row){.vgid = {[10] = 0xff, 0xff, 10, 200, 0, v},
				.underlay = {[10] = 0xff, 0xff, 192, 0, 2, u}};
}

/* vGIDs 1 to ROWS have the underlays ROWS to 1; three more have names of before, one of which is used anew. */
struct both {
	struct gid_row now[ROWS], past[PAST];
	struct gid_map map;
};

static void make(struct both *b)
{
	for (uint8_t i = 0; i < ROWS; i++)
		b->now[i] = b->past[i] = row((uint8_t)(i + 1), (uint8_t)(ROWS - i));
	b->past[ROWS] = row(1, 100);
	b->past[ROWS + 1] = row(201, 101);
	b->past[ROWS + 2] = row(202, 102);
	qsort(b->now, ROWS, sizeof(b->now[0]), gid_row_by_vgid);
	qsort(b->past, PAST, sizeof(b->past[0]), gid_row_by_underlay);
	b->map = (struct gid_map){.now = b->now, .now_count = ROWS, .past = b->past, .past_count = PAST};
}

static void assert_is(const uint8_t *gid, const uint8_t *expected)
{
	if (!expected) {
		assert_null(gid);
		return;
	}
	assert_non_null(gid);
	assert_memory_equal(gid, expected, 16);
}

TEST(each_address_is_found_from_both_sides)
{
	struct both b;

	make(&b);
	for (uint8_t i = 0;; i++) {
		struct gid_row r = row(i, (uint8_t)(ROWS + 1 - i));
		bool there = i >= 1 && i <= ROWS;

		assert_is(gid_map_underlay(&b.map, r.vgid), there ? r.underlay : NULL);
		if (i <= ROWS + 1) {
			assert_is(gid_map_vgid(&b.map, r.underlay), there ? r.vgid : NULL);
			assert_is(gid_map_last_vgid(&b.map, r.underlay), there ? r.vgid : NULL);
		}
		if (i == UINT8_MAX)
			break;
	}
}

TEST(an_address_that_has_no_name_any_more_had_one)
{
	struct gid_row again = row(1, 100), gone = row(201, 101);
	struct both b;

	make(&b);
	assert_is(gid_map_vgid(&b.map, again.underlay), NULL);
	assert_is(gid_map_last_vgid(&b.map, again.underlay), again.vgid);
	assert_is(gid_map_vgid(&b.map, gone.underlay), NULL);
	assert_is(gid_map_last_vgid(&b.map, gone.underlay), gone.vgid);
	assert_is(gid_map_underlay(&b.map, gone.vgid), NULL);
}

TEST(both_ends_of_a_flow_have_names_or_it_stays)
{
	struct gid_row here = row(1, ROWS), there = row(2, ROWS - 1), gone = row(201, 101);
	struct flow f = {0}, before;
	struct both b;

	make(&b);
	memcpy(f.src, there.underlay, 16);
	memcpy(f.dst, here.underlay, 16);
	before = f;
	assert_true(gid_map_show(&b.map, &f));
	assert_is(f.src, there.vgid);
	assert_is(f.dst, here.vgid);
	assert_true(gid_map_hide(&b.map, &f));
	assert_memory_equal(&f, &before, sizeof(f));

	memcpy(f.src, gone.underlay, 16);
	before = f;
	assert_false(gid_map_show(&b.map, &f));
	assert_memory_equal(&f, &before, sizeof(f));
	memcpy(f.src, there.underlay, 16);
	memcpy(f.dst, gone.underlay, 16);
	assert_false(gid_map_show(&b.map, &f));
}

TEST(a_group_has_no_name_and_stays)
{
	struct gid_row there = row(2, ROWS - 1);
	const uint8_t group[16] = {[10] = 0xff, 0xff, 224, 1, 2, 3};
	struct flow f = {0};
	struct both b;

	make(&b);
	memcpy(f.src, there.underlay, 16);
	memcpy(f.dst, group, 16);
	assert_true(gid_map_show(&b.map, &f));
	assert_is(f.src, there.vgid);
	assert_is(f.dst, group);
	assert_true(gid_map_hide(&b.map, &f));
	assert_is(f.src, there.underlay);
	assert_is(f.dst, group);
}
