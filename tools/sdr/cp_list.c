/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Lists of files. A list that comes from a peer is judged entry by entry: a name is one component and not "..", and its
 * parent is a folder of the list, so that no path that is made of names leaves the folder of entry 0.
 */
#include <stdlib.h>
#include <string.h>

#include "base/byteorder.h"
#include "sdr/cp_list.h"
#include "sdr/meet.h"

enum { FIXED_LEN = 31 };

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
		free(l->entry[i].hash);
		free(l->entry[i].kept);
	}
	free(l->entry);
	*l = (struct cp_list){0};
}

char *cp_text(const void *text, size_t len)
{
	char *copy = strndup(text, len);

	if (!copy)
		die("no memory");
	return copy;
}

/* ---- entries */

bool cp_list_path(const struct cp_list *l, uint32_t i, const char *root, char *path, size_t size)
{
	size_t at = size - 1, len;

	path[at] = 0;
	for (; i; i = l->entry[i].parent) {
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

/* ---- on the wire */

size_t cp_entry_encode(const struct cp_list *l, uint32_t i, uint8_t *p, size_t room)
{
	const struct cp_entry *e = &l->entry[i];
	size_t name = strlen(e->name), link = e->link ? strlen(e->link) : 0;

	if (FIXED_LEN + name + link > room)
		return 0;
	p[0] = (uint8_t)e->kind;
	put_be32(p + 1, e->parent);
	put_be16(p + 5, e->mode);
	put_be64(p + 7, (uint64_t)e->seconds);
	put_be32(p + 15, e->nanoseconds);
	put_be64(p + 19, e->bytes);
	put_be16(p + 27, (uint16_t)name);
	put_be16(p + 29, (uint16_t)link);
	memcpy(p + FIXED_LEN, e->name, name);
	memcpy(p + FIXED_LEN + name, e->link ? e->link : "", link);
	return FIXED_LEN + name + link;
}

static bool name_valid(const uint8_t *name, size_t len)
{
	if (!len || len > CP_NAME_MAX || memchr(name, '/', len) || memchr(name, 0, len))
		return false;
	if (name[0] == '.' && (len == 1 || (len == 2 && name[1] == '.')))
		return false;
	return len < strlen(CP_PART_PREFIX) || memcmp(name, CP_PART_PREFIX, strlen(CP_PART_PREFIX)) != 0;
}

/* Whether an entry of that kind may be the list's next one. */
static bool place_valid(const struct cp_list *l, const uint8_t *p, size_t name, size_t link)
{
	uint32_t parent = get_be32(p + 1);
	bool named = name_valid(p + FIXED_LEN, name);

	if (p[0] > CP_LINK || get_be32(p + 15) > 999999999 || get_be64(p + 19) > CP_FILE_MAX ||
	    get_be64(p + 19) > CP_TOTAL_MAX - l->bytes || (p[0] != CP_FILE && get_be64(p + 19)))
		return false;
	if ((p[0] == CP_LINK) != (link > 0) || link > CP_LINK_MAX || memchr(p + FIXED_LEN + name, 0, link))
		return false;
	if (!l->count)
		return !parent && (p[0] == CP_FILE ? named : p[0] == CP_FOLDER && !name);
	return named && parent < l->count && l->entry[parent].kind == CP_FOLDER &&
	       l->entry[parent].depth < CP_DEPTH_MAX && l->count < CP_ENTRIES_MAX;
}

size_t cp_entry_decode(struct cp_list *l, const uint8_t *p, size_t len)
{
	size_t name, link;
	struct cp_entry *e;

	if (len < FIXED_LEN)
		return 0;
	name = get_be16(p + 27);
	link = get_be16(p + 29);
	if (len < FIXED_LEN + name + link || !place_valid(l, p, name, link))
		return 0;
	e = cp_entry_new(l);
	e->kind = (enum cp_kind)p[0];
	e->parent = get_be32(p + 1);
	e->depth = l->count > 1 ? (uint16_t)(l->entry[e->parent].depth + 1) : 0;
	e->mode = get_be16(p + 5) & CP_MODES;
	e->seconds = (int64_t)get_be64(p + 7);
	e->nanoseconds = get_be32(p + 15);
	e->bytes = get_be64(p + 19);
	l->bytes += e->bytes;
	e->name = cp_text(p + FIXED_LEN, name);
	e->link = link ? cp_text(p + FIXED_LEN + name, link) : NULL;
	return FIXED_LEN + name + link;
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
	if (!e->kept)
		e->kept = calloc(cp_blocks(e) / 8 + 1, 1);
	if (!e->kept)
		die("no memory");
	if (!cp_kept(e, block))
		e->kept_bytes += cp_block_bytes(e, block);
	e->kept[block / 8] |= (uint8_t)(1u << block % 8);
}

XXH128_hash_t cp_digest(const struct cp_entry *e)
{
	XXH128_canonical_t last = {0}, text;

	for (uint32_t i = 0; i < cp_blocks(e); i++) {
		XXH128_hash_t all;
		uint8_t both[2 * sizeof(text)];

		XXH128_canonicalFromHash(&text, e->hash[i]);
		memcpy(both, &last, sizeof(last));
		memcpy(both + sizeof(last), &text, sizeof(text));
		all = XXH3_128bits(both, sizeof(both));
		XXH128_canonicalFromHash(&last, all);
	}
	return XXH128_hashFromCanonical(&last);
}

bool cp_cursor_settle(const struct cp_list *l, struct cp_cursor *c)
{
	for (; c->entry < l->count; c->entry++, c->block = 0) {
		const struct cp_entry *e = &l->entry[c->entry];

		if (e->kind != CP_FILE)
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
