/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What sdr_cp copies: a file, a folder and all below it, or several of these in a folder, as a list in which a folder
 * comes before what is in it.
 *
 * On the wire, integers big-endian:
 *
 *     kind 8 | parent 32 | mode 16 | owner 32 | group 32 | seconds 64 | nanoseconds 32 | bytes 64 | name length 16 |
 *     link length 16 | attributes length 32 | name | link | attributes
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
	CP_ATTRIBUTES_MAX = 1 << 17, /* bytes of an entry's extended attributes */
	CP_MODES = 07777,
	CP_SET_ID = 06000,
	CP_ENTRY_MAX = 45 + CP_NAME_MAX + CP_LINK_MAX + CP_ATTRIBUTES_MAX, /* bytes on the wire */
};
#define CP_FILE_MAX  (UINT64_C(1) << 50) /* bytes */
#define CP_TOTAL_MAX (UINT64_C(1) << 60) /* bytes of all files of a list */

/* The name of a file that is not whole yet begins so. */
#define CP_PART_PREFIX ".sdr_cp-"

enum cp_kind {
	CP_FILE,
	CP_FOLDER,
	CP_LINK,
	CP_PLACE, /* entry 0 alone: a folder that several things are copied into, and whose attributes stay */
	CP_NAME   /* one more name of a file before it, whose entry `bytes` is */
};

struct cp_entry {
	enum cp_kind kind;
	uint32_t parent; /* a folder before it; 0 of entry 0, which has none */
	uint16_t mode;   /* permissions, and those of CP_SET_ID */
	uint16_t depth;
	uint32_t owner, group;
	int64_t seconds; /* when it was modified */
	uint32_t nanoseconds;
	uint32_t attributes_len;
	uint64_t bytes;      /* of a file */
	char *name;          /* without a slash; entry 0: of a file, or "" */
	char *link;          /* of a link: where it points; else NULL */
	uint8_t *attributes; /* extended ones (cp_attributes.h); NULL: none */
	/* Of a file. Hashes of its blocks are known where the two ends compare them. */
	XXH128_hash_t *hash;
	uint8_t *kept;       /* blocks that need not be sent, a bit each; NULL: none */
	uint64_t kept_bytes; /* of these */
	uint32_t here;       /* at the receiver: the first so many blocks were there before */
	bool same;           /* all of it is there, by its length and time */
	bool bad;            /* what arrives is not the file, and gets no name */
	uint8_t item;        /* at the receiver: what differs (cp_items.h) */
};

/* Where entries are in the file system: those from `entry` on are below `path`, which entry itself is. */
struct cp_source {
	uint32_t entry;
	char *path;
};

struct cp_list {
	struct cp_entry *entry;
	uint32_t count, room;
	uint64_t bytes;           /* of all files */
	struct cp_source *source; /* in the order of their entries */
	uint32_t source_count;
};

/* What of the list's files a user wants to have seen. */
struct cp_filter;
struct cp_walk {
	const struct cp_filter *filter;
	bool names, attributes; /* several names of a file stay one file; extended attributes are read */
};

/* Files, or folders and all below them, in the order in which the user named them. Returns how many things were left
 * out, as they are neither files, folders nor links, or cannot be read; a sentence about each is printed. What the user
 * named must be there, or the program ends. */
uint32_t cp_list_walk(struct cp_list *, const struct cp_walk *, char *const *paths, size_t count);
void cp_list_free(struct cp_list *);

/* One more entry, all zero; a copy of a text. Without memory the program ends. */
struct cp_entry *cp_entry_new(struct cp_list *);
char *cp_text(const void *, size_t len);
/* Entries from `entry` on are below path, which is copied. */
void cp_source_add(struct cp_list *, uint32_t entry, const char *path);

/* Bytes of an entry on the wire, at most CP_ENTRY_MAX, and these. */
size_t cp_entry_length(const struct cp_entry *);
size_t cp_entry_encode(const struct cp_list *, uint32_t i, uint8_t *);
enum { CP_ENTRY_MORE = 0, CP_ENTRY_WRONG = -1 };
/* Adds an entry that a peer has sent. Returns the bytes that it took; MORE: it is longer; WRONG: it is none, or no list
 * has it at this place. Its name stays in its folder. */
int64_t cp_entry_decode(struct cp_list *, const uint8_t *, size_t len);

static inline bool cp_is_folder(const struct cp_entry *e)
{
	return e->kind == CP_FOLDER || e->kind == CP_PLACE;
}
/* The path of an entry below its source; false: it is longer than size. */
bool cp_list_path(const struct cp_list *, uint32_t i, char *path, size_t size);
/* The same below entry 0, whose own is its name, or "." of a folder. */
bool cp_list_name(const struct cp_list *, uint32_t i, char *path, size_t size);

uint32_t cp_blocks(const struct cp_entry *);
uint64_t cp_block_bytes(const struct cp_entry *, uint32_t block);
static inline bool cp_kept(const struct cp_entry *e, uint32_t block)
{
	return e->same || (e->kept && e->kept[block / 8] >> block % 8 & 1);
}
/* Memory for the hashes of a file's blocks, and which of them are kept; ends the program if there is none. */
void cp_entry_hashes(struct cp_entry *);
void cp_keep(struct cp_entry *, uint32_t block);
/* All blocks are. */
void cp_keep_all(struct cp_entry *);

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
