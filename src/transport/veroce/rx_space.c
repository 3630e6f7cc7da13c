/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The window doubles until it covers the distance. Invariants: a bit is set only for PSNs in
 * [epsn, hpsn]; the bit of hpsn is set, that of epsn only while its owner cannot go on (RNR).
 */
#include <assert.h>
#include <string.h>

#include "transport/veroce/rx_space.h"

enum { META_BLOCK = 64 };

void rx_space_init(struct rx_space *s, uint32_t epsn)
{
	*s = (struct rx_space){.epsn = epsn, .hpsn = (epsn - 1) & PSN_MASK};
}

static size_t words_bytes(uint32_t size)
{
	return size / 8;
}

static size_t window_bytes(uint32_t size)
{
	return sizeof(struct rx_window) + size / META_BLOCK * sizeof(struct rx_meta *) + 2 * words_bytes(size);
}

static size_t block_bytes(void)
{
	return META_BLOCK * sizeof(struct rx_meta);
}

static struct rx_window *window_get(struct pool *pool, uint32_t size)
{
	struct rx_window *w = pool_get(pool, window_bytes(size));
	uint8_t *p;

	if (!w)
		return NULL;
	memset(w, 0, window_bytes(size));
	p = (uint8_t *)(w + 1);
	w->size = size;
	w->meta = (struct rx_meta **)p;
	p += size / META_BLOCK * sizeof(struct rx_meta *);
	w->arrived = (struct bitring){.words = (uint64_t *)p, .mask = size - 1};
	w->last = (struct bitring){.words = (uint64_t *)(p + words_bytes(size)), .mask = size - 1};
	return w;
}

static void window_put(struct pool *pool, struct rx_window *w)
{
	for (uint32_t i = 0; i < w->size / META_BLOCK; i++)
		pool_put(pool, w->meta[i], block_bytes());
	pool_put(pool, w, window_bytes(w->size));
}

void rx_space_drop(struct rx_space *s, struct pool *pool)
{
	if (s->window)
		window_put(pool, s->window);
	rx_space_init(s, s->epsn);
}

static struct rx_meta **block_of(const struct rx_window *w, uint32_t psn)
{
	return &w->meta[(psn & (w->size - 1)) / META_BLOCK];
}

/* Moves every bit and meta into a larger window. */
static bool grow(struct rx_space *s, struct pool *pool, uint32_t distance)
{
	uint32_t size = s->window ? s->window->size : RX_WINDOW_MIN;
	struct rx_window *w, *old = s->window;

	/* With room to spare, so that a block of metas is freed before its places serve other PSNs. */
	while (size < distance + META_BLOCK)
		size *= 2;
	if (old && old->size >= size)
		return true;
	w = window_get(pool, size);
	if (!w)
		return false;
	for (uint32_t psn = s->epsn; old && psn != psn_add(s->hpsn, 1); psn = psn_add(psn, 1)) {
		if (!bitring_test(&old->arrived, psn))
			continue;
		bitring_set(&w->arrived, psn);
		if (!bitring_test(&old->last, psn))
			continue;
		bitring_set(&w->last, psn);
		if (!*block_of(w, psn)) {
			*block_of(w, psn) = pool_get(pool, block_bytes());
			if (!*block_of(w, psn)) {
				window_put(pool, w);
				return false;
			}
		}
		(*block_of(w, psn))[psn % META_BLOCK] = (*block_of(old, psn))[psn % META_BLOCK];
	}
	if (old) {
		memcpy(w->fresh, old->fresh, sizeof(w->fresh));
		window_put(pool, old);
	}
	s->window = w;
	return true;
}

bool rx_record(struct rx_space *s, struct pool *pool, uint32_t psn, const struct rx_meta *meta)
{
	bool fresh = !s->window;
	struct rx_window *w;

	if (!grow(s, pool, ((psn - s->epsn) & PSN_MASK) + 1))
		return false;
	w = s->window;
	if (meta) {
		struct rx_meta **block = block_of(w, psn);

		if (!*block)
			*block = pool_get(pool, block_bytes());
		if (!*block) {
			if (fresh)
				rx_space_drop(s, pool);
			return false;
		}
		(*block)[psn % META_BLOCK] = *meta;
		bitring_set(&w->last, psn);
	}
	bitring_set(&w->arrived, psn);
	w->fresh[psn / RX_GROUP % RX_GROUPS / 64] |= 1ull << psn / RX_GROUP % 64;
	if (psn_diff(psn, s->hpsn) > 0)
		s->hpsn = psn;
	return true;
}

void rx_step_window(struct rx_space *s, struct pool *pool)
{
	struct rx_window *w = s->window;

	bitring_clear(&w->arrived, s->epsn);
	bitring_clear(&w->last, s->epsn);
	/* The PSNs of this block have all been passed; its places will serve those a window later. */
	if (s->epsn % META_BLOCK == META_BLOCK - 1) {
		pool_put(pool, *block_of(w, s->epsn), block_bytes());
		*block_of(w, s->epsn) = NULL;
	}
	if (s->hpsn == ((s->epsn - 1) & PSN_MASK))
		s->hpsn = s->epsn;
	s->epsn = psn_add(s->epsn, 1);
	if (s->hpsn == ((s->epsn - 1) & PSN_MASK)) {
		window_put(pool, w);
		s->window = NULL;
	}
}

void rx_forget(struct rx_space *s, struct pool *pool)
{
	bitring_clear(&s->window->arrived, s->epsn);
	bitring_clear(&s->window->last, s->epsn);
	if (s->hpsn == s->epsn)
		rx_space_drop(s, pool);
}

struct rx_meta *rx_meta_at(const struct rx_space *s, uint32_t psn)
{
	const struct rx_window *w = s->window;

	return w && bitring_test(&w->last, psn) ? &(*block_of(w, psn))[psn % META_BLOCK] : NULL;
}

bool rx_epsn_arrived(const struct rx_space *s, const struct rx_meta **meta)
{
	if (!s->window || !bitring_test(&s->window->arrived, s->epsn))
		return false;
	*meta = rx_meta_at(s, s->epsn);
	return true;
}

uint32_t rx_early(const struct rx_space *s)
{
	uint32_t n = 0;

	for (uint32_t i = 0; s->window && i < s->window->size / 64; i++)
		n += (uint32_t)__builtin_popcountll(s->window->arrived.words[i]);
	return n;
}

void rx_arrived128(const struct rx_space *s, uint32_t from, uint64_t bits[2])
{
	bits[0] = 0;
	bits[1] = 0;
	if (s->window)
		bitring_get128(&s->window->arrived, from, bits, (s->hpsn + 1 - from) & PSN_MASK);
}

bool rx_take_fresh(struct rx_space *s, uint32_t from, uint32_t *psn)
{
	struct bitring groups = {.words = s->window ? s->window->fresh : NULL, .mask = RX_GROUPS - 1};
	uint32_t first = from / RX_GROUP, count = ((s->hpsn / RX_GROUP - first) & (PSN_MASK / RX_GROUP)) + 1;
	uint32_t at;

	if (!s->window || psn_diff(from, s->hpsn) > 0)
		return false;
	at = bitring_next_set(&groups, first, count);
	if (at == count)
		return false;
	bitring_clear(&groups, first + at);
	*psn = (first + at) * RX_GROUP & PSN_MASK;
	return true;
}
