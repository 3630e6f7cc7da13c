/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Binding and unbinding. Invariants: a region counts the windows bound to it; a window of type 2 keeps the upper 24
 * bits of its key, and no other key has these; a window is in the list of its binder as long as that lives and it is
 * bound.
 */
#include <assert.h>
#include <errno.h>
#include <stddef.h>

#include "mem/mr_table.h"
#include "mem/mw.h"

static_assert(MW_TAG_MASK == (1 << MR_FAMILY_BITS) - 1, "a window of type 2 has all keys of a family");

static struct mw *window_of(struct mr *opened)
{
	return (struct mw *)((uint8_t *)opened - offsetof(struct mw, opened));
}

int mw_create(struct mr_table *t, struct pd *pd, enum mw_type type, struct mw **out)
{
	struct mw *mw;

	if (type != MW_TYPE_1 && type != MW_TYPE_2)
		return -EINVAL;
	if (mr_table_fit(t, 2))
		return -ENOMEM;
	mw = alloc_get(t->alloc, sizeof(*mw));
	if (!mw)
		return -ENOMEM;
	*mw = (struct mw){.pd = pd, .type = type};
	mw->anchor.kind = MR_ANCHOR;
	mw->anchor.key = mr_draw_key(t);
	mr_insert(t, &mw->anchor);
	mw->opened.kind = type == MW_TYPE_1 ? MR_WINDOW : MR_WINDOW_FAMILY;
	mw->opened.key = type == MW_TYPE_1 ? mr_draw_key(t) : mr_draw_family(t);
	mr_insert(t, &mw->opened);
	pd->users++;
	*out = mw;
	return 0;
}

/* Out of its binder's list. */
static void unlink(struct mw *mw)
{
	if (!mw->binder)
		return;
	*mw->link = mw->next;
	if (mw->next)
		mw->next->link = mw->link;
	mw->binder = NULL;
}

/* It opens nothing; the key stays. */
static void close(const struct mr_table *t, struct mw *mw)
{
	mr_take_back(t, &mw->opened);
	mw->opened.lot = 0;
	if (mw->region)
		mw->region->windows--;
	mw->region = NULL;
	mw->opened.access = 0;
	mw->opened.length = 0;
	mw->opened.opener = NULL;
	unlink(mw);
}

void mw_destroy(struct mr_table *t, struct mw *mw)
{
	close(t, mw);
	mr_take_out(t, &mw->opened);
	mr_take_out(t, &mw->anchor);
	mw->pd->users--;
	alloc_put(t->alloc, mw, sizeof(*mw));
}

void mw_free_all(struct mr_table *t)
{
	for (size_t i = 0; i <= t->mask; i++) {
		if (t->slot[i] && t->slot[i]->kind == MR_ANCHOR)
			t->slot[i] = NULL;
	}
	for (size_t i = 0; i <= t->mask; i++) {
		if (!t->slot[i] || t->slot[i]->kind == MR_REGION)
			continue;
		alloc_put(t->alloc, window_of(t->slot[i]), sizeof(struct mw));
		t->slot[i] = NULL;
	}
}

uint32_t mw_draw_key(struct mr_table *t)
{
	return mr_draw_key(t);
}

/* The window that a request names, or NULL. */
static struct mw *named(const struct mr_table *t, uint32_t handle)
{
	struct mr *anchor = mr_find(t, handle);

	if (!anchor || anchor->kind != MR_ANCHOR)
		return NULL;
	return (struct mw *)((uint8_t *)anchor - offsetof(struct mw, anchor));
}

/* Whether the window may have that R_Key now. */
static bool key_is_free(const struct mr_table *t, const struct mw *mw, uint32_t rkey)
{
	if (mw->type == MW_TYPE_2)
		return !((rkey ^ mw->opened.key) >> MR_FAMILY_BITS);
	return !mr_is_taken(t, rkey);
}

/* IBTA C10-73 to C10-75: what the region must allow. */
static bool region_allows(const struct mr *mr, const struct mw_binding *b, const struct mr_user *user)
{
	if (mr->kind != MR_REGION || mr->pd != user->pd || !(mr->access & MR_MW_BIND) || mr->access & MR_ZERO_BASED)
		return false;
	if (b->access & (MR_REMOTE_WRITE | MR_REMOTE_ATOMIC) && !(mr->access & MR_LOCAL_WRITE))
		return false;
	return true;
}

static void link_to(struct mw *mw, struct mr_user *user)
{
	mw->binder = user;
	mw->opened.opener = user;
	mw->link = &user->windows;
	mw->next = user->windows;
	if (mw->next)
		mw->next->link = &mw->next;
	user->windows = mw;
}

void mw_open(struct mw *mw, struct mr *mr, uint64_t off, struct mr_user *user)
{
	mw->opened.addr = (uint8_t *)((uintptr_t)mr->addr + off); /* of the whole address space from NULL on */
	mw->opened.iova = mw->opened.access & MR_ZERO_BASED ? 0 : mr->iova + off;
	mw->region = mr;
	mr->windows++;
	mw->opened.opener = mw->pd;
	if (user)
		link_to(mw, user);
}

bool mw_bind(struct mr_table *t, const struct mw_binding *b, struct mr_user *user)
{
	struct mw *mw = named(t, b->handle);
	struct mr *mr = b->length ? mr_find(t, b->lkey) : NULL;

	if (!mw || mw->pd != user->pd || b->access & ~(uint32_t)MW_ACCESS_KNOWN || !key_is_free(t, mw, b->rkey))
		return false;
	/* o10-37.2.30, o10-37.2.40: type 2 is bound when it is free, and to something. o10-36.2.2: type 1 has
	 * addresses. */
	if (mw->type == MW_TYPE_2 ? mw->region || !mr : b->access & MR_ZERO_BASED)
		return false;
	if (b->length && !(mr && region_allows(mr, b, user) && mr_reach(t, mr, b->addr, b->length)))
		return false;
	close(t, mw);
	mr_take_out(t, &mw->opened);
	mw->opened.key = b->rkey;
	mr_insert(t, &mw->opened);
	if (!mr)
		return true;
	mw->opened.length = b->length;
	mw->opened.access = b->access;
	mw_open(mw, mr, b->addr - mr->iova, mw->type == MW_TYPE_2 ? user : NULL);
	return true;
}

bool mw_may_invalidate(const struct mr_table *t, uint32_t key, const struct mr_user *user)
{
	const struct mr *mr = mr_find(t, key);

	if (!mr)
		return false;
	if (mr->kind == MR_REGION)
		return mr->pd == user->pd;
	return mr->kind == MR_WINDOW_FAMILY && mr->opener == user;
}

void mw_invalidate(struct mr_table *t, uint32_t key, const struct mr_user *user)
{
	struct mr *mr = mr_find(t, key);

	if (!mw_may_invalidate(t, key, user))
		return;
	if (mr->kind != MR_REGION) {
		close(t, window_of(mr));
		return;
	}
	mr_take_back(t, mr);
	mr->access &= ~(uint32_t)MR_REMOTE_ACCESS;
}

void mw_forget_user(const struct mr_table *t, struct mr_user *user)
{
	while (user->windows)
		close(t, user->windows);
}

void mw_unbind_all(struct mr_table *t, struct mr *region)
{
	for (size_t i = 0; region->windows && i <= t->mask; i++) {
		struct mr *mr = t->slot[i];

		if (mr && (mr->kind == MR_WINDOW || mr->kind == MR_WINDOW_FAMILY) && window_of(mr)->region == region)
			close(t, window_of(mr));
	}
}
