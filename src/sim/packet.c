/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The store of packets. A slab is 1024 packets behind a header of one cache line; packets go back
 * to one free list, last in first out, so that the next one lent is still in the cache.
 */
#include "sim/packet.h"

#include <stdlib.h>
#include <string.h>

#include "base/int_stack.h"

enum { LINE_BYTES = 64, SLAB_PACKETS = 1024, SLAB_BYTES = (SLAB_PACKETS + 1) * LINE_BYTES };

struct packet_slab {
	struct packet_slab *next;
};

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

struct packet *packet_get_slow(struct packet_store *s)
{
	if (!s->fresh_count) {
		struct packet_slab *slab = aligned_alloc(LINE_BYTES, SLAB_BYTES);

		if (!slab)
			return NULL;
		slab->next = s->slabs;
		s->slabs = slab;
		s->fresh = (struct packet *)((char *)slab + LINE_BYTES);
		s->fresh_count = SLAB_PACKETS;
	}
	s->fresh_count--;
	return s->fresh++;
}

void *packet_body(struct packet_store *s, struct packet *p, size_t bytes)
{
	assert(!p->body && bytes > 0 && bytes <= UINT16_MAX);
	p->body = pool_get(&s->pool, bytes);
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
	if (p->body)
		pool_put(&s->pool, p->body, p->body_bytes);
	if (p->int_stack)
		pool_put(&s->pool, p->int_stack, sizeof(*p->int_stack));
	p->body = NULL;
	p->int_stack = NULL;
}
