/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The first byte chooses how much memory there is, then each four bytes are one get or put of a slot.
 * The model checks what is lent: pieces are aligned, keep what was written to their ends until they
 * are put, and are refused only when the memory is really used up. Memory that is held but not lent
 * stays within bounds, and none is left once the pool ends.
 */
#include <stdlib.h>
#include <string.h>

#include "base/pool.h"
#include "support/fuzz_input.h"

enum {
	SLOTS = 64,
	OPS_MAX = 400,
	EDGE_BYTES = 16,
	SLAB_TOTAL_BYTES = POOL_SLAB_BYTES + 64,
	BLOCKS = (32 << 18) / POOL_SLAB_BYTES,
	LOOK_EVERY = 8 /* operations */
};

/* A block that the pool has from its alloc. */
struct block {
	uint8_t *mem; /* NULL: none */
	size_t bytes;
	int class;   /* slabs: of its pieces; -1: none was lent yet */
	size_t lent; /* slabs: pieces */
};

struct slot {
	struct block *slab; /* NULL: a large one */
	uint8_t *mem;
	size_t bytes;
	uint8_t fill;
};

struct budget {
	size_t held_bytes, limit_bytes;
	struct block blocks[BLOCKS];
};

struct model {
	struct slot slots[SLOTS];
	size_t lent_bytes;
	size_t count[POOL_CLASSES]; /* of each class, lent now */
};

static struct block *block_at(struct budget *b, const uint8_t *mem)
{
	for (int i = 0; i < BLOCKS; i++) {
		if (b->blocks[i].mem == mem)
			return &b->blocks[i];
	}
	abort();
}

static void *budget_get(void *ctx, size_t bytes)
{
	struct budget *b = ctx;
	struct block *block;

	must(bytes % 64 == 0);
	if (bytes > b->limit_bytes - b->held_bytes)
		return NULL;
	block = block_at(b, NULL);
	/* The pool may not rely on zeroes, and zeroing 4 MiB a time would make this slow. */
	*block = (struct block){.mem = aligned_alloc(64, bytes), .bytes = bytes, .class = -1};
	must(block->mem != NULL);
	b->held_bytes += bytes;
	return block->mem;
}

static void budget_put(void *ctx, void *mem, size_t bytes)
{
	struct budget *b = ctx;
	struct block *block = block_at(b, mem);

	must(bytes == block->bytes);
	must(!block->lent);
	block->mem = NULL;
	b->held_bytes -= bytes;
	free(mem);
}

static size_t class_bytes(int c)
{
	return (size_t)POOL_MIN_BYTES << c;
}

static int class_of(size_t bytes)
{
	int c = 0;

	while (class_bytes(c) < bytes)
		c++;
	return c;
}

static size_t edge(const struct slot *s)
{
	return s->bytes < EDGE_BYTES ? s->bytes : EDGE_BYTES;
}

static void put(struct pool *p, struct model *m, struct slot *s)
{
	int c = class_of(s->bytes);

	for (size_t i = 0; i < edge(s); i++) {
		must(s->mem[i] == s->fill);
		must(s->mem[s->bytes - 1 - i] == s->fill);
	}
	if (s->slab)
		s->slab->lent--;
	pool_put(p, s->mem, s->bytes);
	s->mem = NULL;
	m->count[c]--;
	m->lent_bytes -= class_bytes(c);
}

static struct slabs {
	size_t used, empty;
} slabs_of(const struct budget *b, int c)
{
	struct slabs n = {0};

	for (int i = 0; i < BLOCKS; i++) {
		const struct block *block = &b->blocks[i];

		n.used += block->mem && block->class == c && block->lent;
		n.empty += block->mem && block->class == c && !block->lent;
	}
	return n;
}

/* The spares went first, so that what is in use is all there is, and that is too much. */
static void must_be_used_up(const struct model *m, const struct budget *b, int c)
{
	size_t need = class_bytes(c);

	if (need < POOL_SLAB_BYTES) {
		must(m->count[c] == slabs_of(b, c).used * (POOL_SLAB_BYTES / need));
		need = SLAB_TOTAL_BYTES;
	}
	must(b->held_bytes + need > b->limit_bytes);
	for (int i = 0; class_bytes(i) < POOL_SLAB_BYTES; i++)
		must(!slabs_of(b, i).empty);
}

/* The slab that a small piece lies in has no pieces of another class. */
static struct block *slab_of(struct budget *b, const uint8_t *mem, int c)
{
	for (int i = 0; i < BLOCKS; i++) {
		struct block *block = &b->blocks[i];

		if (!block->mem || (uintptr_t)mem - (uintptr_t)block->mem >= block->bytes)
			continue;
		must(block->bytes == SLAB_TOTAL_BYTES);
		must((size_t)(mem - block->mem) + class_bytes(c) <= block->bytes);
		must(block->class == -1 || block->class == c);
		block->class = c;
		block->lent++;
		return block;
	}
	abort();
}

static void get(struct pool *p, struct model *m, struct budget *b, struct slot *s)
{
	int c;

	s->mem = pool_get(p, s->bytes);
	if (!s->bytes || s->bytes > POOL_MAX_BYTES) {
		must(!s->mem);
		return;
	}
	c = class_of(s->bytes);
	if (!s->mem) {
		must_be_used_up(m, b, c);
		return;
	}
	must((uintptr_t)s->mem % 64 == 0);
	memset(s->mem, s->fill, edge(s));
	memset(s->mem + s->bytes - edge(s), s->fill, edge(s));
	s->slab = class_bytes(c) < POOL_SLAB_BYTES ? slab_of(b, s->mem, c) : NULL;
	m->count[c]++;
	m->lent_bytes += class_bytes(c);
}

/* From 0 to beyond the largest; half of them a power of two or one off it. */
static size_t size_from(const uint8_t *data)
{
	size_t more = data[1] & 128 ? data[2] | (size_t)data[3] << 8 : data[2] % 3;

	return ((size_t)1 << data[1] % 24) + more - 1;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct model m = {0};
	static struct budget b;
	const struct alloc alloc = {budget_get, budget_put, &b};
	struct pool p;

	if (size < 1)
		return 0;
	b = (struct budget){0};
	b.limit_bytes = (size_t)(data[0] % 32 + 1) << (data[0] < 224 ? 16 : 18);
	pool_init(&p, &alloc);
	data++;
	size--;
	for (int op = 0; op < OPS_MAX && size >= 4; op++, data += 4, size -= 4) {
		struct slot *s = &m.slots[data[0] % SLOTS];

		if (s->mem) {
			put(&p, &m, s);
		} else {
			s->bytes = size_from(data);
			s->fill = data[3];
			get(&p, &m, &b, s);
		}
		must(pool_bytes(&p) == b.held_bytes);
		must(pool_lent_bytes(&p) == m.lent_bytes);
		must(m.lent_bytes <= b.held_bytes);
		for (int c = 0; op % LOOK_EVERY == 0 && class_bytes(c) < POOL_SLAB_BYTES; c++)
			must(slabs_of(&b, c).empty <= 1 + slabs_of(&b, c).used / 4);
	}
	for (int i = 0; i < SLOTS; i++) {
		if (m.slots[i].mem)
			put(&p, &m, &m.slots[i]);
	}
	must(pool_lent_bytes(&p) == 0);
	pool_fini(&p);
	must(b.held_bytes == 0);
	must(pool_bytes(&p) == 0);
	return 0;
}
