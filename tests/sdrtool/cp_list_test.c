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

/* Adds what the bytes say; the length that was taken. */
static size_t add(struct cp_list *l, uint8_t kind, uint32_t parent, uint64_t bytes, const char *name, size_t name_len,
		  const char *link)
{
	size_t link_len = link ? strlen(link) : 0, len = 31 + name_len + link_len;
	uint8_t p[8192] = {kind};

	put_be32(p + 1, parent);
	put_be16(p + 5, 06755);
	put_be64(p + 7, 1234567890);
	put_be32(p + 15, 5);
	put_be64(p + 19, bytes);
	put_be16(p + 27, (uint16_t)name_len);
	put_be16(p + 29, (uint16_t)link_len);
	memcpy(p + 31, name, name_len);
	memcpy(p + 31 + name_len, link ? link : "", link_len);
	assert_int_equal(cp_entry_decode(l, p, len - 1), 0);
	return cp_entry_decode(l, p, len);
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
	static const uint8_t golden[] = {2, 0, 0, 0, 0, 1, 0355, 0, 0, 0, 0, 0x49, 0x96, 2,   0xd2, 0,   0,   0,  5,
					 0, 0, 0, 0, 0, 0, 0,    0, 0, 4, 0, 2,    'n',  'a', 'm',  'e', '.', '/'};
	struct cp_list l;
	uint8_t out[64];

	folder_make(&l);
	assert_int_equal(cp_entry_decode(&l, golden, sizeof(golden)), sizeof(golden));
	assert_int_equal(l.entry[1].kind, CP_LINK);
	assert_string_equal(l.entry[1].name, "name");
	assert_string_equal(l.entry[1].link, "./");
	assert_int_equal(l.entry[1].mode, 0755);
	assert_int_equal(l.entry[1].seconds, 1234567890);
	assert_int_equal(cp_entry_encode(&l, 1, out, sizeof(out)), sizeof(golden));
	assert_memory_equal(out, golden, sizeof(golden));
	assert_int_equal(cp_entry_encode(&l, 1, out, sizeof(golden) - 1), 0);
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
	assert_int_equal(add_named(&l, 3, 0, "x"), 0);
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
	assert_true(cp_list_path(&l, 2, "/root", path, sizeof(path)));
	assert_string_equal(path, "/root/aa/bbb");
	assert_true(cp_list_path(&l, 0, "root", path, sizeof(path)));
	assert_string_equal(path, "root");
	assert_true(cp_list_path(&l, 2, "12345678", path, sizeof(path)));
	assert_false(cp_list_path(&l, 2, "123456789", path, sizeof(path)));
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

TEST(digest_is_of_all_blocks_in_order)
{
	struct cp_list l;
	XXH128_hash_t a, b;

	folder_make(&l);
	add(&l, CP_FILE, 0, 2 * (uint64_t)CP_BLOCK, "a", 1, NULL);
	cp_entry_hashes(&l.entry[1]);
	l.entry[1].hash[0] = (XXH128_hash_t){1, 2};
	l.entry[1].hash[1] = (XXH128_hash_t){3, 4};
	a = cp_digest(&l.entry[1]);
	l.entry[1].hash[0] = (XXH128_hash_t){3, 4};
	l.entry[1].hash[1] = (XXH128_hash_t){1, 2};
	b = cp_digest(&l.entry[1]);
	assert_false(XXH128_isEqual(a, b));
	cp_list_free(&l);
}
