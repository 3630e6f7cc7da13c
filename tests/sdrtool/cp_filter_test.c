/* SPDX-License-Identifier: BSD-2-Clause */
/* Which files sdr_cp leaves out. */
#include "sdr/cp_filter.h"
#include "sdr/meet.h"
#include "support/test.h"

static struct cp_filter filter;

void die(const char *fmt, ...)
{
	fail_msg("%s", fmt);
	abort();
}

static void only(bool include, const char *pattern)
{
	cp_filter_clear(&filter);
	assert_true(cp_filter_add(&filter, include, pattern, strlen(pattern)));
}

static void drops(const char *pattern, const char *path, bool folder, bool expected)
{
	only(false, pattern);
	if (cp_filter_drops(&filter, path, folder) != expected)
		fail_msg("%s of '%s' and '%s'", expected ? "nothing comes" : "something comes", pattern, path);
	cp_filter_clear(&filter);
}

TEST(pattern_without_a_slash_is_of_a_name)
{
	drops("*.o", "main.o", false, true);
	drops("*.o", "a/b/main.o", false, true);
	drops("*.o", "main.o.c", false, false);
	drops("a?", "x/ab", false, true);
	drops("a?", "ab/x", false, false);
	drops("[ab]", "x/b", false, true);
	drops(".git", "x/.git", true, true);
}

TEST(pattern_with_a_slash_in_front_is_of_a_path)
{
	drops("/a", "a", false, true);
	drops("/a", "b/a", false, false);
	drops("/a/*", "a/b", false, true);
	drops("/a/*", "a/b/c", false, false);
	drops("/a/**", "a/b/c", false, true);
}

TEST(pattern_with_a_slash_is_of_the_end_of_a_path)
{
	drops("a/b", "a/b", false, true);
	drops("a/b", "x/a/b", false, true);
	drops("a/b", "xa/b", false, false);
	drops("a/b", "a/b/c", false, false);
	drops("a/**/c", "x/a/1/2/c", false, true);
}

TEST(pattern_with_a_slash_behind_is_of_folders)
{
	drops("build/", "x/build", true, true);
	drops("build/", "x/build", false, false);
	drops("/build/", "build", true, true);
}

TEST(first_that_fits_counts)
{
	only(true, "*.c");
	assert_true(cp_filter_add(&filter, false, "*", 1));
	assert_false(cp_filter_drops(&filter, "x/main.c", false));
	assert_true(cp_filter_drops(&filter, "x/main.o", false));
	only(false, "*");
	assert_true(cp_filter_add(&filter, true, "*.c", 3));
	assert_true(cp_filter_drops(&filter, "x/main.c", false));
	cp_filter_clear(&filter);
	assert_false(cp_filter_drops(&filter, "x", false));
}

TEST(pattern_has_a_length_and_there_are_so_many)
{
	static char text[CP_PATTERN_MAX + 1];

	memset(text, 'x', sizeof(text));
	cp_filter_clear(&filter);
	assert_false(cp_filter_add(&filter, false, text, 0));
	assert_false(cp_filter_add(&filter, false, text, sizeof(text)));
	assert_false(cp_filter_add(&filter, false, "a\0b", 3));
	assert_true(cp_filter_add(&filter, false, text, CP_PATTERN_MAX));
	while (filter.count < CP_PATTERNS_MAX)
		assert_true(cp_filter_add(&filter, false, "x", 1));
	assert_false(cp_filter_add(&filter, false, "x", 1));
	cp_filter_clear(&filter);
}
