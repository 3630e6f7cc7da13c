/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What sdr_cp copies: a file, or a folder and all below it, as a list in which a folder comes before what is in it.
 *
 * On the wire, integers big-endian:
 *
 *     kind 8 | parent 32 | mode 16 | seconds 64 | nanoseconds 32 | bytes 64 | name length 16 | link length 16 | name | link
 *
 * Private to tools/sdr.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <xxhash.h>

enum {
	CP_BLOCK = 1 << 22,       /* bytes that are compared and sent together */
	CP_ENTRIES_MAX = 1 << 22, /* of a list */
	CP_DEPTH_MAX = 1024,      /* folders in folders */
	CP_NAME_MAX = 255,        /* bytes */
	CP_LINK_MAX = 4095,
	CP_MODES = 01777,
};
#define CP_FILE_MAX  (UINT64_C(1) << 50) /* bytes */
#define CP_TOTAL_MAX (UINT64_C(1) << 60) /* bytes of all files of a list */

/* The name of a file that is not whole yet begins so. */
#define CP_PART_PREFIX ".sdr_cp-"

enum cp_kind { CP_FILE, CP_FOLDER, CP_LINK };

struct cp_entry {
	enum cp_kind kind;
	uint32_t parent; /* a folder before it; 0 of entry 0, which has none */
	uint16_t mode;   /* permissions; setuid and setgid are never among them */
	uint16_t depth;
	int64_t seconds; /* when it was modified */
	uint32_t nanoseconds;
	uint64_t bytes; /* of a file */
	char *name;     /* without a slash; entry 0: of a file, or "" */
	char *link;     /* of a link: where it points; else NULL */
	/* Of a file: of its blocks the hashes, as far as they are known, and those that need not be sent, a bit each.
	 */
	XXH128_hash_t *hash;
	uint8_t *kept;       /* NULL: none */
	uint64_t kept_bytes; /* of these */
	uint32_t here;       /* at the receiver: the first so many blocks were there before */
};

struct cp_list {
	struct cp_entry *entry;
	uint32_t count, room;
	uint64_t bytes; /* of all files */
};

/* A file, or a folder and all below it. Returns how many things were left out, as they are neither files, folders nor
 * links; a sentence about each is printed. What cannot be read ends the program. */
uint32_t cp_list_walk(struct cp_list *, const char *path);
void cp_list_free(struct cp_list *);

/* One more entry, all zero; a copy of a text. Without memory the program ends. */
struct cp_entry *cp_entry_new(struct cp_list *);
char *cp_text(const void *, size_t len);

/* Writes entry i; its length, or 0 if it is longer than room. */
size_t cp_entry_encode(const struct cp_list *, uint32_t i, uint8_t *, size_t room);
/* Adds an entry that a peer has sent. Returns the bytes that it took; 0: it is none, or no list has it at
 * this place. Its name stays in its folder. */
size_t cp_entry_decode(struct cp_list *, const uint8_t *, size_t len);

/* The path of an entry below `root`; false: it is longer than size. */
bool cp_list_path(const struct cp_list *, uint32_t i, const char *root, char *path, size_t size);

uint32_t cp_blocks(const struct cp_entry *);
uint64_t cp_block_bytes(const struct cp_entry *, uint32_t block);
static inline bool cp_kept(const struct cp_entry *e, uint32_t block)
{
	return e->kept && e->kept[block / 8] >> block % 8 & 1;
}
/* Memory for the hashes of a file's blocks, and which of them are kept; ends the program if there is none. */
void cp_entry_hashes(struct cp_entry *);
void cp_keep(struct cp_entry *, uint32_t block);
/* Of a file whose blocks' hashes are all known. */
XXH128_hash_t cp_digest(const struct cp_entry *);

/* A place among the blocks that are sent. */
struct cp_cursor {
	uint32_t entry, block;
};

/* Goes on to a block that is sent, if it is not at one; false: there is none. */
bool cp_cursor_settle(const struct cp_list *, struct cp_cursor *);
/* Blocks of several files make a message of at most CP_BLOCK bytes. Its bytes, and the cursor behind it; 0: nothing is
 * left. Call it with a cursor that has been settled or comes from here. */
uint64_t cp_message(const struct cp_list *, struct cp_cursor *);
/* Bytes of all blocks that are sent. */
uint64_t cp_bytes_left(const struct cp_list *);
