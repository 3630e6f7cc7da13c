/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The table of keys and the regions in it. Owns every struct mr and struct mw.
 *
 * Open addressing over pointers: a key's upper 24 bits are uniformly random, so they are the hash. At most
 * half of the slots are taken, and a deletion shifts its successors back instead of leaving a
 * tombstone, so a probe ends after two slots on average, for keys that do not exist too: a peer that
 * guesses keys costs no more than one that knows them.
 *
 * A region counts as a user of its PD from mr_create() to mr_destroy().
 */
#include <assert.h>
#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "base/siphash.h"
#include "base/pkt.h"
#include "mem/mr_table.h"
#include "mem/mw.h"

enum { SLOTS_MIN = 64 };

/* The last byte's address must not be beyond the end of the address space. */
static bool wraps(uint64_t start, uint64_t length)
{
	return length && start > UINT64_MAX - (length - 1);
}

int mr_table_init(struct mr_table *t, const struct alloc *alloc, const uint8_t secret[16])
{
	struct mr **slot = alloc_get(alloc, SLOTS_MIN * sizeof(struct mr *));

	if (!slot)
		return -ENOMEM;
	*t = (struct mr_table){.alloc = alloc, .slot = slot, .mask = SLOTS_MIN - 1};
	memcpy(t->secret, secret, sizeof(t->secret));
	return 0;
}

static void free_slots(const struct mr_table *t)
{
	alloc_put(t->alloc, t->slot, ((size_t)t->mask + 1) * sizeof(struct mr *));
}

void mr_table_fini(struct mr_table *t)
{
	mw_free_all(t);
	for (size_t i = 0; i <= t->mask; i++)
		alloc_put(t->alloc, t->slot[i], sizeof(struct mr));
	free_slots(t);
	*t = (struct mr_table){0};
}

static uint32_t home(uint32_t key, uint32_t mask)
{
	return key >> MR_FAMILY_BITS & mask;
}

/* The slot that holds key, or the empty one where the search for it ends. */
static uint32_t probe(struct mr *const *slot, uint32_t mask, uint32_t key)
{
	uint32_t i = home(key, mask);

	while (slot[i] && slot[i]->key != key)
		i = (i + 1) & mask;
	return i;
}

struct mr *mr_find(const struct mr_table *t, uint32_t key)
{
	return t->slot[probe(t->slot, t->mask, key)];
}

/* Where a region has those bytes that is not of a range. */
static __attribute__((noinline)) uint8_t *check_unbounded(const struct mr_table *t, const struct mr *mr, uint64_t va,
							  uint64_t len, uint32_t access)
{
	if (access & ~mr->access)
		return NULL;
	if (mr->extent == MR_NOTHING)
		return MR_NOTHING_AT;
	if (wraps(va, len) || (t->own && own_has(t->own, va, len)))
		return NULL;
	return (uint8_t *)(uintptr_t)va;
}

static inline uint8_t *check(const struct mr_table *t, const struct mr *mr, uint64_t va, uint64_t len, uint32_t access)
{
	/* Below iova the difference wraps to more than any length that mr_validate() lets in. */
	uint64_t off = va - mr->iova;

	/* Those without bounds have no length, so that others are not asked. */
	if ((access & ~mr->access) || off > mr->length || len > mr->length - off)
		return mr->extent != MR_RANGE ? check_unbounded(t, mr, va, len, access) : NULL;
	return mr->addr + off;
}

uint8_t *mr_reach(const struct mr_table *t, const struct mr *mr, uint64_t va, uint64_t len)
{
	return check(t, mr, va, len, 0);
}

uint8_t *mr_check(const struct mr_table *t, uint32_t key, const struct pd *pd, uint64_t va, uint64_t len,
		  uint32_t access)
{
	const struct mr *mr = mr_find(t, key);

	return mr && mr->pd == pd ? check(t, mr, va, len, access) : NULL;
}

static inline bool opens_for(const struct mr *mr, const struct mr_user *user)
{
	return mr->pd == user->pd || mr->opener == user || mr->opener == user->pd;
}

uint8_t *mr_check_remote(const struct mr_table *t, uint32_t key, const struct mr_user *user, uint64_t va, uint64_t len,
			 uint32_t access)
{
	const struct mr *mr = mr_find(t, key);

	if (!mr)
		return NULL;
	/* No call in here: of a region nothing has to be kept across one. */
	if (!opens_for(mr, user))
		return NULL;
	return check(t, mr, va, len, access);
}

bool mr_check_remote_all(const struct mr_table *t, uint32_t key, const struct mr_user *user, uint32_t access)
{
	const struct mr *mr = mr_find(t, key);

	return mr && opens_for(mr, user) && !(access & ~mr->access);
}

/* Whether another key with the same upper bits is there, of a window or of anything. */
static bool has_relative(const struct mr_table *t, uint32_t key, bool of_window)
{
	for (uint32_t i = home(key, t->mask); t->slot[i]; i = (i + 1) & t->mask) {
		if (!((t->slot[i]->key ^ key) >> MR_FAMILY_BITS) &&
		    (!of_window || t->slot[i]->kind == MR_WINDOW_FAMILY))
			return true;
	}
	return false;
}

bool mr_is_taken(const struct mr_table *t, uint32_t key)
{
	return mr_find(t, key) || has_relative(t, key, true);
}

/*
 * Programs use 0 and ~0 for "no key", and uninitialised WRs hold 0, so nothing gets one of these keys, or one from
 * which adding to the low byte leads there.
 */
bool mr_may_draw(uint32_t key)
{
	return key >> MR_FAMILY_BITS != 0 && key >> MR_FAMILY_BITS != UINT32_MAX >> MR_FAMILY_BITS;
}

static uint32_t draw(struct mr_table *t)
{
	uint32_t key;

	do
		key = (uint32_t)siphash_u64(t->secret, t->serial++);
	while (!mr_may_draw(key));
	return key;
}

uint32_t mr_draw_key(struct mr_table *t)
{
	uint32_t key;

	do
		key = draw(t);
	while (mr_is_taken(t, key));
	return key;
}

uint32_t mr_draw_family(struct mr_table *t)
{
	uint32_t key;

	do
		key = draw(t);
	while (!mr_family_is_free(t, key));
	return key;
}

bool mr_family_is_free(const struct mr_table *t, uint32_t key)
{
	return !has_relative(t, key, false);
}

uint32_t mr_slot_of(const struct mr_table *t, uint32_t key)
{
	return probe(t->slot, t->mask, key);
}

int mr_table_resize(struct mr_table *t, size_t slots)
{
	if (slots > (size_t)UINT32_MAX + 1)
		return -ENOMEM;

	struct mr **slot = alloc_get(t->alloc, slots * sizeof(struct mr *));

	if (!slot)
		return -ENOMEM;
	for (size_t i = 0; i <= t->mask; i++) {
		if (t->slot[i])
			slot[probe(slot, (uint32_t)(slots - 1), t->slot[i]->key)] = t->slot[i];
	}
	free_slots(t);
	t->slot = slot;
	t->mask = (uint32_t)(slots - 1);
	return 0;
}

int mr_table_fit(struct mr_table *t, uint32_t more)
{
	if (((uint64_t)t->count + more) * 2 > (uint64_t)t->mask + 1)
		return mr_table_resize(t, ((size_t)t->mask + 1) * 2);
	return 0;
}

void mr_insert(struct mr_table *t, struct mr *mr)
{
	t->slot[probe(t->slot, t->mask, mr->key)] = mr;
	t->count++;
}

/* Backward shift (Knuth 6.4 R): a later entry moves into the hole unless its home lies behind it. */
void mr_take_out(struct mr_table *t, const struct mr *mr)
{
	uint32_t hole = probe(t->slot, t->mask, mr->key);

	assert(t->slot[hole] == mr);
	mr_take_back(t, mr);
	for (uint32_t i = (hole + 1) & t->mask; t->slot[i]; i = (i + 1) & t->mask) {
		uint32_t from_home = (i - home(t->slot[i]->key, t->mask)) & t->mask;

		if (from_home < ((i - hole) & t->mask))
			continue;
		t->slot[hole] = t->slot[i];
		hole = i;
	}
	t->slot[hole] = NULL;
	t->count--;
}

int mr_validate(const void *addr, uint64_t length, uint64_t iova, uint32_t access)
{
	if (access & ~(uint32_t)MR_ACCESS_KNOWN)
		return -EINVAL;
	if ((access & (MR_REMOTE_WRITE | MR_REMOTE_ATOMIC)) && !(access & MR_LOCAL_WRITE))
		return -EINVAL;
	if (wraps((uintptr_t)addr, length))
		return -EINVAL;
	if (!(access & MR_ZERO_BASED) && wraps(iova, length))
		return -EINVAL;
	if (mr_is_whole(addr, length, access) && iova)
		return -EINVAL;
	return 0;
}

int mr_create(struct mr_table *t, struct pd *pd, struct mr_range range, uint32_t access, struct mr **out)
{
	int err = mr_validate(range.addr, range.length, range.iova, access);

	if (!err && t->no_payload && access & MR_REMOTE_ATOMIC)
		err = -EINVAL;
	if (err)
		return err;
	err = mr_table_fit(t, 1);
	if (err)
		return err;

	struct mr *mr = alloc_get(t->alloc, sizeof(*mr));

	if (!mr)
		return -ENOMEM;
	*mr = (struct mr){
		.addr = range.addr,
		.iova = access & MR_ZERO_BASED ? 0 : range.iova,
		.length = range.length,
		.pd = pd,
		.key = mr_draw_key(t),
		.access = access,
	};
	if (mr_is_whole(range.addr, range.length, access)) {
		mr->extent = MR_WHOLE_SPACE;
		mr->length = 0;
	}
	mr_insert(t, mr);
	pd->users++;
	*out = mr;
	return 0;
}

void mr_note_nothing(struct mr_table *t)
{
	t->nothings++;
	t->copies_oddly = true;
}

int mr_create_nothing(struct mr_table *t, struct pd *pd, struct mr **out)
{
	int err = mr_create(t, pd, (struct mr_range){0}, MR_LOCAL_WRITE, out);

	if (err)
		return err;
	(*out)->extent = MR_NOTHING;
	mr_note_nothing(t);
	return 0;
}

bool mr_read_oddly(const struct mr_table *t, void *to, const void *from, size_t len)
{
	if (from != MR_NOTHING_AT)
		return mem_copy(to, from, len) || mr_fault(t);
	memset(to, 0, len);
	return true;
}

bool mr_lend_response(const struct mr_table *t, uint32_t key, void *to, const void *from, size_t len)
{
	if (!lender_lend_response(t->lender, to, from, len))
		return false;
	mr_find(t, key)->lot = t->lender->lot;
	return true;
}

bool mr_write_placed(const struct mr_table *t, void *to, const uint8_t *from, size_t len)
{
	const uint8_t *at = t->placed.at + (from - t->placed.payload);

	return to == at || to == MR_NOTHING_AT || mem_place(to, at, len) || mr_fault(t);
}

bool mr_fault(const struct mr_table *t)
{
	if (t->faults)
		++*t->faults;
	return false;
}

void mr_destroy(struct mr_table *t, struct mr *mr)
{
	assert(!mr->windows);
	mr_take_out(t, mr);
	if (mr->extent == MR_NOTHING && !--t->nothings)
		t->copies_oddly = t->no_payload;
	mr->pd->users--;
	alloc_put(t->alloc, mr, sizeof(*mr));
}

void mr_rekey(struct mr_table *t, struct mr *mr)
{
	uint32_t key = mr_draw_key(t); /* the old key is still taken here */

	mr_take_out(t, mr);
	mr->key = key;
	mr_insert(t, mr);
}
