/* SPDX-License-Identifier: BSD-2-Clause */
/* sdr_cp's list of files: its bytes, what of a peer's list is taken, and how blocks become messages. */
#include <stdio.h>

#include "base/byteorder.h"
#include "sdr/cp_list.h"
#include "sdr/meet.h"
#include "support/test.h"

void die(const char *fmt, ...)
{
	fail_msg("%s", fmt);
	abort();
}

/* Adds what the bytes say; the length that was taken, or 0 if it is none. */
static size_t add(struct cp_list *l, uint8_t kind, uint32_t parent, uint64_t bytes, const char *name, size_t name_len,
		  const char *link)
{
	size_t link_len = link ? strlen(link) : 0, len = 45 + name_len + link_len;
	uint8_t p[8192] = {kind};
	int64_t taken;

	put_be32(p + 1, parent);
	put_be16(p + 5, 06755);
	put_be64(p + 15, 1234567890);
	put_be32(p + 23, 5);
	put_be64(p + 27, bytes);
	put_be16(p + 35, (uint16_t)name_len);
	put_be16(p + 37, (uint16_t)link_len);
	memcpy(p + 45, name, name_len);
	memcpy(p + 45 + name_len, link ? link : "", link_len);
	if (name_len <= CP_NAME_MAX)
		assert_int_equal(cp_entry_decode(l, p, len - 1), CP_ENTRY_MORE);
	taken = cp_entry_decode(l, p, len);
	return taken == CP_ENTRY_WRONG ? 0 : (size_t)taken;
}

static size_t add_named(struct cp_list *l, uint8_t kind, uint32_t parent, const char *name)
{
	return add(l, kind, parent, 0, name, strlen(name), kind == CP_LINK ? "x" : NULL);
}

static void folder_make(struct cp_list *l)
{
	*l = (struct cp_list){0};
	assert_int_not_equal(add_named(l, CP_FOLDER, 0, ""), 0);
}

TEST(entry_has_these_bytes)
{
	static const uint8_t golden[] = {2,   0,   0,   0,   0,    7,    0355, 0,    0, 3, 0xe8, 0, 0, 0, 5,
					 0,   0,   0,   0,   0x49, 0x96, 2,    0xd2, 0, 0, 0,    5, 0, 0, 0,
					 0,   0,   0,   0,   0,    0,    4,    0,    2, 0, 0,    0, 7, 0, 0,
					 'n', 'a', 'm', 'e', '.',  '/',  0,    0,    0, 0, 0,    0, 1};
	struct cp_list l;
	uint8_t out[128];

	folder_make(&l);
	assert_int_equal(cp_entry_decode(&l, golden, sizeof(golden)), sizeof(golden));
	assert_int_equal(l.entry[1].kind, CP_LINK);
	assert_string_equal(l.entry[1].name, "name");
	assert_string_equal(l.entry[1].link, "./");
	assert_int_equal(l.entry[1].mode, 03755);
	assert_int_equal(l.entry[1].owner, 1000);
	assert_int_equal(l.entry[1].group, 5);
	assert_int_equal(l.entry[1].seconds, 1234567890);
	assert_int_equal(l.entry[1].attributes_len, 7);
	assert_int_equal(cp_entry_length(&l.entry[1]), sizeof(golden));
	assert_int_equal(cp_entry_encode(&l, 1, out), sizeof(golden));
	assert_memory_equal(out, golden, sizeof(golden));
	cp_list_free(&l);
}

TEST(no_name_leaves_its_folder)
{
	static const char *const names[] = {"", ".", "..", "/", "/etc", "a/b", "../a", "a/..", ".sdr_cp-", ".sdr_cp-x"};
	char name[257];
	struct cp_list l;

	for (int kind = CP_FILE; kind <= CP_LINK; kind++) {
		folder_make(&l);
		for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
			assert_int_equal(add_named(&l, (uint8_t)kind, 0, names[i]), 0);
		memset(name, 'n', sizeof(name));
		assert_int_equal(add(&l, (uint8_t)kind, 0, 0, name, 256, kind == CP_LINK ? "x" : NULL), 0);
		assert_int_equal(add(&l, (uint8_t)kind, 0, 0, "a\0b", 3, kind == CP_LINK ? "x" : NULL), 0);
		assert_int_not_equal(add(&l, (uint8_t)kind, 0, 0, name, 255, kind == CP_LINK ? "x" : NULL), 0);
		assert_int_not_equal(add_named(&l, (uint8_t)kind, 0, "..."), 0);
		cp_list_free(&l);
	}
}

TEST(parent_is_a_folder_before)
{
	struct cp_list l;

	folder_make(&l);
	assert_int_equal(add_named(&l, CP_FILE, 1, "itself"), 0);
	assert_int_equal(add_named(&l, CP_FILE, UINT32_MAX, "far"), 0);
	assert_int_not_equal(add_named(&l, CP_LINK, 0, "link"), 0);
	assert_int_equal(add_named(&l, CP_FILE, 1, "behind a link"), 0);
	assert_int_not_equal(add_named(&l, CP_FILE, 0, "file"), 0);
	assert_int_equal(add_named(&l, CP_FOLDER, 2, "in a file"), 0);
	cp_list_free(&l);
}

TEST(depth_has_an_end)
{
	struct cp_list l;
	uint32_t depth = 0;

	folder_make(&l);
	while (depth < 2 * CP_DEPTH_MAX && add_named(&l, CP_FOLDER, depth, "d"))
		depth++;
	assert_int_equal(depth, CP_DEPTH_MAX);
	cp_list_free(&l);
}

TEST(first_entry_is_a_file_or_a_folder)
{
	struct cp_list l = {0};

	assert_int_equal(add_named(&l, CP_LINK, 0, "link"), 0);
	assert_int_equal(add_named(&l, CP_FOLDER, 0, "named"), 0);
	assert_int_equal(add_named(&l, CP_FILE, 0, ""), 0);
	assert_int_equal(add_named(&l, CP_FILE, 0, "../x"), 0);
	assert_int_equal(add_named(&l, CP_NAME, 0, "x"), 0);
	assert_int_equal(add_named(&l, CP_NAME + 1, 0, "x"), 0);
	assert_int_equal(add(&l, CP_FILE, 0, 0, "x", 1, "y"), 0);
	assert_int_equal(add(&l, CP_FILE, 0, CP_FILE_MAX + 1, "x", 1, NULL), 0);
	assert_int_not_equal(add_named(&l, CP_FILE, 0, "x"), 0);
	assert_int_equal(add_named(&l, CP_FILE, 0, "second"), 0);
	cp_list_free(&l);
}

TEST(bytes_have_a_limit)
{
	struct cp_list l;
	char name[16];
	int n = 0;

	folder_make(&l);
	assert_int_equal(add(&l, CP_FOLDER, 0, 1, "folder", 6, NULL), 0);
	while (snprintf(name, sizeof(name), "%d", n),
	       n < 2000 && add(&l, CP_FILE, 0, CP_FILE_MAX, name, strlen(name), NULL))
		n++;
	assert_int_equal(n, 1024);
	assert_true(cp_bytes_left(&l) == CP_TOTAL_MAX);
	cp_list_free(&l);
}

TEST(path_is_made_of_names)
{
	struct cp_list l;
	char path[16];

	folder_make(&l);
	add_named(&l, CP_FOLDER, 0, "aa");
	add_named(&l, CP_FILE, 1, "bbb");
	cp_source_add(&l, 0, "/root");
	assert_true(cp_list_path(&l, 2, path, sizeof(path)));
	assert_string_equal(path, "/root/aa/bbb");
	assert_true(cp_list_name(&l, 2, path, sizeof(path)));
	assert_string_equal(path, "aa/bbb");
	assert_true(cp_list_path(&l, 0, path, sizeof(path)));
	assert_string_equal(path, "/root");
	assert_true(cp_list_name(&l, 0, path, sizeof(path)));
	assert_string_equal(path, ".");
	assert_false(cp_list_path(&l, 2, path, 12));
	assert_true(cp_list_path(&l, 2, path, 13));
	cp_list_free(&l);
}

/* Several folders that a user names are below one, each from its own place. */
TEST(each_source_has_its_own_path)
{
	static const char *const paths[] = {"x", "x/f", "/y/z", "/y/z/f"};
	struct cp_list l = {0};
	char path[16];

	add_named(&l, CP_PLACE, 0, "");
	add_named(&l, CP_FOLDER, 0, "x");
	add_named(&l, CP_FILE, 1, "f");
	add_named(&l, CP_FOLDER, 0, "z");
	add_named(&l, CP_FILE, 3, "f");
	cp_source_add(&l, 1, "x");
	cp_source_add(&l, 3, "/y/z");
	for (uint32_t i = 1; i <= 4; i++) {
		assert_true(cp_list_path(&l, i, path, sizeof(path)));
		assert_string_equal(path, paths[i - 1]);
	}
	assert_int_equal(add_named(&l, CP_PLACE, 0, "inside"), 0);
	cp_list_free(&l);
}

TEST(another_name_is_of_a_file_before)
{
	struct cp_list l;

	folder_make(&l);
	add_named(&l, CP_FILE, 0, "f");
	assert_int_equal(add(&l, CP_NAME, 0, 0, "of a folder", 11, NULL), 0);
	assert_int_equal(add(&l, CP_NAME, 0, 2, "of itself", 9, NULL), 0);
	assert_int_equal(add(&l, CP_NAME, 0, UINT64_C(1) << 32 | 1, "far", 3, NULL), 0);
	assert_int_not_equal(add(&l, CP_NAME, 0, 1, "g", 1, NULL), 0);
	assert_int_equal(add(&l, CP_NAME, 0, 2, "of a name", 9, NULL), 0);
	assert_true(cp_bytes_left(&l) == 0);
	cp_list_free(&l);
}

TEST(small_files_share_a_message)
{
	struct cp_cursor c = {0, 0};
	struct cp_list l;

	folder_make(&l);
	add(&l, CP_FILE, 0, 100, "a", 1, NULL);
	add(&l, CP_FILE, 0, 0, "b", 1, NULL);
	add(&l, CP_FILE, 0, 2 * (uint64_t)CP_BLOCK + 50, "c", 1, NULL);
	add(&l, CP_FILE, 0, 200, "d", 1, NULL);
	assert_int_equal(cp_message(&l, &c), 100);
	assert_int_equal(cp_message(&l, &c), CP_BLOCK);
	assert_int_equal(cp_message(&l, &c), CP_BLOCK);
	assert_int_equal(cp_message(&l, &c), 250);
	assert_int_equal(cp_message(&l, &c), 0);
	cp_keep(&l.entry[3], 1);
	cp_keep(&l.entry[3], 1);
	assert_int_equal(cp_bytes_left(&l), CP_BLOCK + 350);
	c = (struct cp_cursor){0, 0};
	assert_int_equal(cp_message(&l, &c), 100);
	assert_int_equal(cp_message(&l, &c), CP_BLOCK);
	assert_int_equal(cp_message(&l, &c), 250);
	cp_list_free(&l);
}
