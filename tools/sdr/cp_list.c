/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Lists of files. A list that comes from a peer is judged entry by entry: a name is one component and not "..", and its
 * parent is a folder of the list, so that no path that is made of names leaves the folder of entry 0.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/byteorder.h"
#include "sdr/cp_list.h"
#include "sdr/meet.h"

enum { FIXED_LEN = 45 };
static_assert((int)CP_ENTRY_MAX == (int)FIXED_LEN + CP_NAME_MAX + CP_LINK_MAX + CP_ATTRIBUTES_MAX, "the longest entry");

struct cp_entry *cp_entry_new(struct cp_list *l)
{
	if (l->count == l->room) {
		l->room = l->room ? 2 * l->room : 64;
		l->entry = reallocarray(l->entry, l->room, sizeof(*l->entry));
		if (!l->entry)
			die("no memory for a list of %u files", l->room);
	}
	l->entry[l->count] = (struct cp_entry){0};
	return &l->entry[l->count++];
}

void cp_list_free(struct cp_list *l)
{
	for (uint32_t i = 0; i < l->count; i++) {
		free(l->entry[i].name);
		free(l->entry[i].link);
		free(l->entry[i].attributes);
		free(l->entry[i].hash);
		free(l->entry[i].kept);
	}
	free(l->entry);
	for (uint32_t i = 0; i < l->source_count; i++)
		free(l->source[i].path);
	free(l->source);
	*l = (struct cp_list){0};
}

void cp_source_add(struct cp_list *l, uint32_t entry, const char *path)
{
	l->source = reallocarray(l->source, l->source_count + 1, sizeof(*l->source));
	if (!l->source)
		die("no memory");
	l->source[l->source_count++] = (struct cp_source){entry, cp_text(path, strlen(path))};
}

char *cp_text(const void *text, size_t len)
{
	char *copy = strndup(text, len);

	if (!copy)
		die("no memory");
	return copy;
}

/* ---- entries */

/* Writes root and the names from below entry `top` on down to i; false: that is longer than size. */
static bool path_write(const struct cp_list *l, uint32_t i, uint32_t top, const char *root, char *path, size_t size)
{
	size_t at = size - 1, len;

	path[at] = 0;
	for (; i != top; i = l->entry[i].parent) {
		len = strlen(l->entry[i].name);
		if (at < len + 1)
			return false;
		at -= len;
		memcpy(path + at, l->entry[i].name, len);
		path[--at] = '/';
	}
	len = strlen(root);
	if (at < len)
		return false;
	memmove(path + len, path + at, size - at);
	memcpy(path, root, len);
	return true;
}

bool cp_list_path(const struct cp_list *l, uint32_t i, char *path, size_t size)
{
	uint32_t low = 0, high = l->source_count;

	while (high - low > 1) {
		uint32_t middle = low + (high - low) / 2;

		if (l->source[middle].entry <= i)
			low = middle;
		else
			high = middle;
	}
	return path_write(l, i, l->source[low].entry, l->source[low].path, path, size);
}

bool cp_list_name(const struct cp_list *l, uint32_t i, char *path, size_t size)
{
	const char *own = l->entry[0].name[0] ? l->entry[0].name : ".";

	if (!path_write(l, i, 0, i ? "" : own, path, size))
		return false;
	if (i)
		memmove(path, path + 1, strlen(path));
	return true;
}

/* ---- on the wire */

size_t cp_entry_length(const struct cp_entry *e)
{
	return FIXED_LEN + strlen(e->name) + (e->link ? strlen(e->link) : 0) + e->attributes_len;
}

size_t cp_entry_encode(const struct cp_list *l, uint32_t i, uint8_t *p)
{
	const struct cp_entry *e = &l->entry[i];
	size_t name = strlen(e->name), link = e->link ? strlen(e->link) : 0;

	p[0] = (uint8_t)e->kind;
	put_be32(p + 1, e->parent);
	put_be16(p + 5, e->mode);
	put_be32(p + 7, e->owner);
	put_be32(p + 11, e->group);
	put_be64(p + 15, (uint64_t)e->seconds);
	put_be32(p + 23, e->nanoseconds);
	put_be64(p + 27, e->bytes);
	put_be16(p + 35, (uint16_t)name);
	put_be16(p + 37, (uint16_t)link);
	put_be32(p + 39, e->attributes_len);
	put_be16(p + 43, 0);
	memcpy(p + FIXED_LEN, e->name, name);
	memcpy(p + FIXED_LEN + name, e->link ? e->link : "", link);
	if (e->attributes_len)
		memcpy(p + FIXED_LEN + name + link, e->attributes, e->attributes_len);
	return FIXED_LEN + name + link + e->attributes_len;
}

static bool name_valid(const uint8_t *name, size_t len)
{
	if (!len || len > CP_NAME_MAX || memchr(name, '/', len) || memchr(name, 0, len))
		return false;
	if (name[0] == '.' && (len == 1 || (len == 2 && name[1] == '.')))
		return false;
	return len < strlen(CP_PART_PREFIX) || memcmp(name, CP_PART_PREFIX, strlen(CP_PART_PREFIX)) != 0;
}

/* Whether an entry's numbers are those of one of its kind. */
static bool numbers_valid(const struct cp_list *l, const uint8_t *p)
{
	uint64_t bytes = get_be64(p + 27);

	if (p[0] > CP_NAME || get_be32(p + 23) > 999999999 || get_be16(p + 5) & ~CP_MODES || get_be16(p + 43))
		return false;
	if (p[0] == CP_FILE)
		return bytes <= CP_FILE_MAX && bytes <= CP_TOTAL_MAX - l->bytes;
	if (p[0] == CP_NAME)
		return bytes < l->count && l->entry[bytes].kind == CP_FILE;
	return !bytes;
}

/* Whether an entry of that kind may be the list's next one. */
static bool place_valid(const struct cp_list *l, const uint8_t *p, size_t name, size_t link)
{
	uint32_t parent = get_be32(p + 1);
	bool named = name_valid(p + FIXED_LEN, name), folder = p[0] == CP_FOLDER || p[0] == CP_PLACE;

	if (!numbers_valid(l, p))
		return false;
	if ((p[0] == CP_LINK) != (link > 0) || memchr(p + FIXED_LEN + name, 0, link))
		return false;
	if (!l->count)
		return !parent && (p[0] == CP_FILE ? named : folder && !name);
	return named && p[0] != CP_PLACE && parent < l->count && cp_is_folder(&l->entry[parent]) &&
	       l->entry[parent].depth < CP_DEPTH_MAX && l->count < CP_ENTRIES_MAX;
}

static void entry_take(struct cp_list *l, const uint8_t *p, size_t name, size_t link, uint32_t attributes)
{
	struct cp_entry *e = cp_entry_new(l);

	e->kind = (enum cp_kind)p[0];
	e->parent = get_be32(p + 1);
	e->depth = l->count > 1 ? (uint16_t)(l->entry[e->parent].depth + 1) : 0;
	e->mode = get_be16(p + 5);
	e->owner = get_be32(p + 7);
	e->group = get_be32(p + 11);
	e->seconds = (int64_t)get_be64(p + 15);
	e->nanoseconds = get_be32(p + 23);
	e->bytes = get_be64(p + 27);
	l->bytes += e->kind == CP_FILE ? e->bytes : 0;
	e->name = cp_text(p + FIXED_LEN, name);
	e->link = link ? cp_text(p + FIXED_LEN + name, link) : NULL;
	e->attributes_len = attributes;
	e->attributes = attributes ? malloc(attributes) : NULL;
	if (attributes && !e->attributes)
		die("no memory");
	if (attributes)
		memcpy(e->attributes, p + FIXED_LEN + name + link, attributes);
}

int64_t cp_entry_decode(struct cp_list *l, const uint8_t *p, size_t len)
{
	uint32_t attributes;
	size_t name, link;

	if (len < FIXED_LEN)
		return CP_ENTRY_MORE;
	name = get_be16(p + 35);
	link = get_be16(p + 37);
	attributes = get_be32(p + 39);
	if (name > CP_NAME_MAX || link > CP_LINK_MAX || attributes > CP_ATTRIBUTES_MAX)
		return CP_ENTRY_WRONG;
	if (len < FIXED_LEN + name + link + attributes)
		return CP_ENTRY_MORE;
	if (!place_valid(l, p, name, link))
		return CP_ENTRY_WRONG;
	entry_take(l, p, name, link, attributes);
	return (int64_t)(FIXED_LEN + name + link + attributes);
}

/* ---- blocks */

uint32_t cp_blocks(const struct cp_entry *e)
{
	return (uint32_t)((e->bytes + CP_BLOCK - 1) / CP_BLOCK);
}

uint64_t cp_block_bytes(const struct cp_entry *e, uint32_t block)
{
	uint64_t left = e->bytes - (uint64_t)block * CP_BLOCK;

	return left < CP_BLOCK ? left : CP_BLOCK;
}

void cp_entry_hashes(struct cp_entry *e)
{
	if (!e->hash && e->bytes)
		e->hash = calloc(cp_blocks(e), sizeof(*e->hash));
	if (!e->hash && e->bytes)
		die("no memory for the hashes of %u blocks", cp_blocks(e));
}

void cp_keep(struct cp_entry *e, uint32_t block)
{
	if (e->same)
		return;
	if (!e->kept)
		e->kept = calloc(cp_blocks(e) / 8 + 1, 1);
	if (!e->kept)
		die("no memory");
	if (!cp_kept(e, block))
		e->kept_bytes += cp_block_bytes(e, block);
	e->kept[block / 8] |= (uint8_t)(1u << block % 8);
}

void cp_keep_all(struct cp_entry *e)
{
	e->same = true;
	e->kept_bytes = e->bytes;
}

bool cp_cursor_settle(const struct cp_list *l, struct cp_cursor *c)
{
	for (; c->entry < l->count; c->entry++, c->block = 0) {
		const struct cp_entry *e = &l->entry[c->entry];

		if (e->kind != CP_FILE || e->same)
			continue;
		while (c->block < cp_blocks(e) && cp_kept(e, c->block))
			c->block++;
		if (c->block < cp_blocks(e))
			return true;
	}
	return false;
}

uint64_t cp_message(const struct cp_list *l, struct cp_cursor *c)
{
	uint64_t bytes = 0;

	while (cp_cursor_settle(l, c)) {
		uint64_t more = cp_block_bytes(&l->entry[c->entry], c->block);

		if (bytes + more > CP_BLOCK)
			break;
		bytes += more;
		c->block++;
	}
	return bytes;
}

uint64_t cp_bytes_left(const struct cp_list *l)
{
	uint64_t bytes = l->bytes;

	for (uint32_t i = 0; i < l->count; i++)
		bytes -= l->entry[i].kept_bytes;
	return bytes;
}
