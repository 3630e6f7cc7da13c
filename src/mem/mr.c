/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The table of memory regions. Owns every struct mr.
 *
 * Open addressing over pointers: a key is uniformly random, so its low bits are the hash. At most
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
#include "mem/mr.h"

enum { SLOTS_MIN = 64 };

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
	for (size_t i = 0; i <= t->mask; i++)
		alloc_put(t->alloc, t->slot[i], sizeof(struct mr));
	free_slots(t);
	*t = (struct mr_table){0};
}

/* The slot that holds key, or the empty one where the search for it ends. */
static uint32_t probe(struct mr *const *slot, uint32_t mask, uint32_t key)
{
	uint32_t i = key & mask;

	while (slot[i] && slot[i]->key != key)
		i = (i + 1) & mask;
	return i;
}

struct mr *mr_find(const struct mr_table *t, uint32_t key)
{
	return t->slot[probe(t->slot, t->mask, key)];
}

uint8_t *mr_check(const struct mr_table *t, uint32_t key, const struct pd *pd, uint64_t va,
		  uint64_t len, uint32_t access)
{
	const struct mr *mr = mr_find(t, key);

	if (!mr)
		return NULL;

	/* Below iova the difference wraps to more than any length that mr_validate() lets in. */
	uint64_t off = va - mr->iova;

	if (mr->pd != pd || (access & ~mr->access) || off > mr->length || len > mr->length - off)
		return NULL;
	return mr->addr + off;
}

/*
 * Programs use 0 and ~0 for "no key", and uninitialised WRs hold 0, so no region gets one of these
 * keys.
 */
static uint32_t draw_key(struct mr_table *t)
{
	uint32_t key;

	do
		key = (uint32_t)siphash_u64(t->secret, t->serial++);
	while (key == 0 || key == UINT32_MAX || mr_find(t, key));
	return key;
}

static int grow(struct mr_table *t)
{
	size_t slots = ((size_t)t->mask + 1) * 2;

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

static void insert(struct mr_table *t, struct mr *mr)
{
	t->slot[probe(t->slot, t->mask, mr->key)] = mr;
	t->count++;
}

/* Backward shift (Knuth 6.4 R): a later entry moves into the hole unless its home lies behind it. */
static void take_out(struct mr_table *t, const struct mr *mr)
{
	uint32_t hole = probe(t->slot, t->mask, mr->key);

	assert(t->slot[hole] == mr);
	for (uint32_t i = (hole + 1) & t->mask; t->slot[i]; i = (i + 1) & t->mask) {
		uint32_t from_home = (i - t->slot[i]->key) & t->mask;

		if (from_home < ((i - hole) & t->mask))
			continue;
		t->slot[hole] = t->slot[i];
		hole = i;
	}
	t->slot[hole] = NULL;
	t->count--;
}

/* The last byte's address must not be beyond the end of the address space. */
static bool wraps(uint64_t start, uint64_t length)
{
	return length && start > UINT64_MAX - (length - 1);
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
	return 0;
}

int mr_create(struct mr_table *t, struct pd *pd, struct mr_range range, uint32_t access,
	      struct mr **out)
{
	int err = mr_validate(range.addr, range.length, range.iova, access);

	if (!err && t->no_payload && access & MR_REMOTE_ATOMIC)
		err = -EINVAL;
	if (err)
		return err;
	if (((uint64_t)t->count + 1) * 2 > (uint64_t)t->mask + 1) {
		err = grow(t);
		if (err)
			return err;
	}

	struct mr *mr = alloc_get(t->alloc, sizeof(*mr));

	if (!mr)
		return -ENOMEM;
	*mr = (struct mr){
		.addr = range.addr,
		.iova = access & MR_ZERO_BASED ? 0 : range.iova,
		.length = range.length,
		.pd = pd,
		.key = draw_key(t),
		.access = access,
	};
	insert(t, mr);
	pd->users++;
	*out = mr;
	return 0;
}

bool mr_fault(const struct mr_table *t)
{
	if (t->faults)
		++*t->faults;
	return false;
}

void mr_destroy(struct mr_table *t, struct mr *mr)
{
	take_out(t, mr);
	mr->pd->users--;
	alloc_put(t->alloc, mr, sizeof(*mr));
}

void mr_rekey(struct mr_table *t, struct mr *mr)
{
	uint32_t key = draw_key(t); /* the old key is still taken here */

	take_out(t, mr);
	mr->key = key;
	insert(t, mr);
}
