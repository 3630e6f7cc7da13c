/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The table of keys as bytes. Regions keep their addresses in this process. A window keeps which part of its region it
 * opens, and everything else of it follows.
 */
#include <errno.h>
#include <stddef.h>

#include "base/archive.h"
#include "mem/mr_table.h"
#include "mem/mw.h"

enum { SLOTS_MIN = 64 };

void mr_table_archive(struct archive *a, struct mr_table *t)
{
	uint64_t slots = (uint64_t)t->mask + 1;

	archive_bytes(a, &slots, sizeof(slots));
	ARCHIVE(a, t, serial);
	ARCHIVE_ARRAYS(a, t, secret);
	if (archive_judge(a, slots >= SLOTS_MIN && !(slots & (slots - 1))) && a->loads &&
	    slots != (uint64_t)t->mask + 1) {
		int err = mr_table_resize(t, slots);

		if (err)
			archive_fail(a, err);
	}
}

/* The slot of a key. Loading, whether it may be there: *slot is free, and a search for the key ends there. */
static bool slot_archive(struct archive *a, const struct mr_table *t, struct mr *mr, uint32_t *slot)
{
	*slot = a->loads ? 0 : mr_slot_of(t, mr->key);
	ARCHIVE(a, mr, key);
	archive_bytes(a, slot, sizeof(*slot));
	return archive_judge(a, mr_may_draw(mr->key) && *slot <= t->mask && !t->slot[*slot] &&
					!mr_is_taken(t, mr->key) && (t->count + 1ull) * 2 <= t->mask + 1ull);
}

static void enter(struct mr_table *t, struct mr *mr, uint32_t slot)
{
	t->slot[slot] = mr;
	t->count++;
}

/* The number of things of that kind. */
static uint32_t count_of(const struct mr_table *t, enum mr_kind kind)
{
	uint32_t n = 0;

	for (size_t i = 0; i <= t->mask; i++)
		n += t->slot[i] && t->slot[i]->kind == kind;
	return n;
}

/* The next one from slot *i on, behind which *i is left. */
static struct mr *next_of(const struct mr_table *t, enum mr_kind kind, size_t *i)
{
	while (!t->slot[*i] || t->slot[*i]->kind != kind)
		++*i;
	return t->slot[(*i)++];
}

/* ---- regions -------------------------------------------------------------------------------------- */

static void region_archive(struct archive *a, struct mr_table *t, const struct mr *from, uint32_t pd_kind)
{
	struct mr mr = a->loads ? (struct mr){0} : *from, *made;
	uint64_t addr = (uintptr_t)mr.addr;
	uint32_t slot;

	if (!slot_archive(a, t, &mr, &slot))
		return;
	archive_bytes(a, &addr, sizeof(addr));
	ARCHIVE(a, &mr, iova, length, access, extent);
	ARCHIVE_REF(a, mr.pd, pd_kind);
	mr.addr = (uint8_t *)(uintptr_t)addr;
	if (!archive_judge(a, mr.pd && !mr_validate(mr.addr, mr.length, mr.iova, mr.access) &&
				      (mr.extent == MR_RANGE || (mr.extent <= MR_NOTHING && !mr.addr && !mr.length)) &&
				      !(t->no_payload && mr.access & MR_REMOTE_ATOMIC)) ||
	    !a->loads)
		return;
	made = alloc_get(t->alloc, sizeof(*made));
	if (!made) {
		archive_fail(a, -ENOMEM);
		return;
	}
	*made = mr;
	made->pd->users++;
	enter(t, made, slot);
	if (made->extent == MR_NOTHING)
		mr_note_nothing(t);
}

uint32_t mr_archive_regions(struct archive *a, struct mr_table *t, uint16_t type, uint32_t pd_kind)
{
	uint32_t count = archive_count(a, a->loads ? 0 : count_of(t, MR_REGION), UINT32_MAX);
	size_t at = 0;

	for (uint32_t i = 0; i < count && !a->err; i++) {
		archive_begin(a, type, 1);
		region_archive(a, t, a->loads ? NULL : next_of(t, MR_REGION, &at), pd_kind);
		archive_end(a);
	}
	return count;
}

/* ---- windows -------------------------------------------------------------------------------------- */

/* What it opens of its region. Loading, opens that. */
static void binding_archive(struct archive *a, struct mr_table *t, struct mw *mw, uint32_t user_kind)
{
	struct mr *mr = mw->region, *o = &mw->opened;
	uint32_t key = mr ? mr->key : 0;
	uint64_t off = mr ? (uint64_t)(o->addr - mr->addr) : 0;

	archive_bytes(a, &key, sizeof(key));
	archive_bytes(a, &off, sizeof(off));
	ARCHIVE(a, o, length, access);
	struct mr_user *binder = archive_refer(a, mw->binder, user_kind);

	if (!a->loads || a->err)
		return;
	if (!key) {
		archive_judge(a, !binder && !o->length && !o->access);
		o->length = o->access = 0;
		return;
	}
	mr = mr_find(t, key);
	if (!archive_judge(a, mr && mr->kind == MR_REGION && mr->pd == mw->pd && off <= mr->length &&
				      o->length <= mr->length - off && !(o->access & ~(uint32_t)MW_ACCESS_KNOWN) &&
				      (mw->type == MW_TYPE_2) == (binder != NULL))) {
		o->length = o->access = 0;
		return;
	}
	mw_open(mw, mr, off, binder);
}

static void window_archive(struct archive *a, struct mr_table *t, struct mw *from, uint32_t pd_kind, uint32_t user_kind)
{
	struct mw mw = a->loads ? (struct mw){0} : *from, *made = from;
	uint8_t type = (uint8_t)mw.type;
	uint32_t anchor, opened;

	archive_bytes(a, &type, sizeof(type));
	ARCHIVE_REF(a, mw.pd, pd_kind);
	if (!archive_judge(a, mw.pd && (type == MW_TYPE_1 || type == MW_TYPE_2)) ||
	    !slot_archive(a, t, &mw.anchor, &anchor) || !slot_archive(a, t, &mw.opened, &opened) ||
	    !archive_judge(a, anchor != opened && (t->count + 2ull) * 2 <= t->mask + 1ull &&
				      (type == MW_TYPE_1 || (mr_family_is_free(t, mw.opened.key) &&
							     (mw.opened.key ^ mw.anchor.key) > MW_TAG_MASK))))
		return;
	if (a->loads) {
		made = alloc_get(t->alloc, sizeof(*made));
		if (!made) {
			archive_fail(a, -ENOMEM);
			return;
		}
		made->pd = mw.pd;
		made->type = (enum mw_type)type;
		made->anchor = (struct mr){.kind = MR_ANCHOR, .key = mw.anchor.key};
		made->opened =
			(struct mr){.kind = type == MW_TYPE_1 ? MR_WINDOW : MR_WINDOW_FAMILY, .key = mw.opened.key};
		enter(t, &made->anchor, anchor);
		enter(t, &made->opened, opened);
		made->pd->users++;
	}
	binding_archive(a, t, made, user_kind);
}

/* Whether a search for each key ends where it is. */
static bool is_searchable(const struct mr_table *t)
{
	for (uint32_t i = 0; i < t->mask; i++) {
		if (t->slot[i] && mr_slot_of(t, t->slot[i]->key) != i)
			return false;
	}
	return !t->slot[t->mask] || mr_slot_of(t, t->slot[t->mask]->key) == t->mask;
}

uint32_t mr_archive_windows(struct archive *a, struct mr_table *t, uint16_t type, uint32_t pd_kind, uint32_t user_kind)
{
	uint32_t count = archive_count(a, a->loads ? 0 : count_of(t, MR_ANCHOR), UINT32_MAX);
	size_t at = 0;

	for (uint32_t i = 0; i < count && !a->err; i++) {
		struct mr *anchor = a->loads ? NULL : next_of(t, MR_ANCHOR, &at);

		archive_begin(a, type, 1);
		window_archive(a, t, anchor ? container_of(anchor, struct mw, anchor) : NULL, pd_kind, user_kind);
		archive_end(a);
	}
	archive_judge(a, !a->loads || is_searchable(t));
	return count;
}

size_t mr_objects(const struct mr_table *t, bool windows, void **out, size_t max)
{
	size_t n = 0;

	for (size_t i = 0; i <= t->mask && n < max; i++) {
		struct mr *mr = t->slot[i];

		if (mr && mr->kind == (windows ? MR_ANCHOR : MR_REGION))
			out[n++] = windows ? (void *)container_of(mr, struct mw, anchor) : mr;
	}
	return n;
}
