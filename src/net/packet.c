/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The store of packets. A slab is 1024 packets behind a header of one cache line; packets go back
 * to one free list, last in first out, so that the next one lent is still in the cache. Short bodies
 * are kept likewise, two to a line; otherwise most of a packet's memory would be the empty part of
 * its body.
 */
#include "net/packet.h"

#include <stdlib.h>
#include <string.h>

#include "base/int_stack.h"

enum { LINE_BYTES = 64, SLAB_PACKETS = 1024, SLAB_BYTES = (SLAB_PACKETS + 1) * LINE_BYTES };

struct packet_slab {
	struct packet_slab *next;
};

union short_body_piece {
	struct short_body {
		struct short_body *next;
	} free;
	uint8_t bytes[PACKET_SHORT_BODY_BYTES];
};

enum { SHORTS_A_LINE = LINE_BYTES / PACKET_SHORT_BODY_BYTES };

static_assert(sizeof(union short_body_piece) == PACKET_SHORT_BODY_BYTES, "a free one holds its link");

static void *heap_get(void *ctx, size_t bytes)
{
	size_t whole = (bytes + LINE_BYTES - 1) & ~(size_t)(LINE_BYTES - 1);
	void *mem = aligned_alloc(LINE_BYTES, whole);

	if (mem)
		memset(mem, 0, whole);
	return mem;
}

static void heap_put(void *ctx, void *mem, size_t bytes)
{
	free(mem);
}

static const struct alloc heap = {.get = heap_get, .put = heap_put};

void packet_store_init(struct packet_store *s)
{
	memset(s, 0, sizeof(*s));
	pool_init(&s->pool, &heap);
}

void packet_store_fini(struct packet_store *s)
{
	struct packet_slab *slab = s->slabs;

	while (slab) {
		struct packet_slab *next = slab->next;

		free(slab);
		slab = next;
	}
	pool_fini(&s->pool);
	packet_store_init(s);
}

static struct packet_slab *add_slab(struct packet_store *s)
{
	struct packet_slab *slab = aligned_alloc(LINE_BYTES, SLAB_BYTES);

	if (!slab)
		return NULL;
	slab->next = s->slabs;
	s->slabs = slab;
	return slab;
}

struct packet *packet_get_slow(struct packet_store *s)
{
	if (!s->fresh_count) {
		struct packet_slab *slab = add_slab(s);

		if (!slab)
			return NULL;
		s->fresh = (struct packet *)((char *)slab + LINE_BYTES);
		s->fresh_count = SLAB_PACKETS;
	}
	s->fresh_count--;
	return s->fresh++;
}

static void put_short(struct packet_store *s, void *body)
{
	struct short_body *b = body;

	b->next = s->free_shorts;
	s->free_shorts = b;
}

static __attribute__((noinline)) bool add_shorts(struct packet_store *s)
{
	struct packet_slab *slab = add_slab(s);
	union short_body_piece *piece;

	if (!slab)
		return false;
	piece = (union short_body_piece *)((char *)slab + LINE_BYTES);
	for (int i = SLAB_PACKETS * SHORTS_A_LINE; i-- > 0;)
		put_short(s, &piece[i]);
	return true;
}

static void *get_short(struct packet_store *s)
{
	struct short_body *b = s->free_shorts;

	if (!b) {
		if (!add_shorts(s))
			return NULL;
		b = s->free_shorts;
	}
	s->free_shorts = b->next;
	return b;
}

void *packet_body(struct packet_store *s, struct packet *p, size_t bytes)
{
	assert(!p->body && bytes > 0 && bytes <= UINT16_MAX);
	p->body = bytes <= PACKET_SHORT_BODY_BYTES ? get_short(s) : pool_get(&s->pool, bytes);
	if (p->body)
		p->body_bytes = (uint16_t)bytes;
	return p->body;
}

struct int_stack *packet_int(struct packet_store *s, struct packet *p)
{
	assert(!p->int_stack);
	p->int_stack = pool_get(&s->pool, sizeof(*p->int_stack));
	if (p->int_stack) {
		int_stack_init(p->int_stack);
		p->flags |= PACKET_INT;
	}
	return p->int_stack;
}

void packet_put_parts(struct packet_store *s, struct packet *p)
{
	if (p->body && p->body_bytes <= PACKET_SHORT_BODY_BYTES)
		put_short(s, p->body);
	else if (p->body)
		pool_put(&s->pool, p->body, p->body_bytes);
	if (p->int_stack)
		pool_put(&s->pool, p->int_stack, sizeof(*p->int_stack));
	p->body = NULL;
	p->int_stack = NULL;
}
