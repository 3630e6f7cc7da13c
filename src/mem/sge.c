/* SPDX-License-Identifier: BSD-2-Clause */
/* Walks scatter/gather lists. Elements without bytes need no key and are passed over. */
#include "mem/sge.h"

bool sge_check(const struct mr_table *t, const struct pd *pd, struct sge_list list, uint32_t access)
{
	for (uint32_t i = 0; i < list.count; i++) {
		const struct sge *sge = &list.sge[i];

		if (sge->len && !mr_check(t, sge->lkey, pd, sge->addr, sge->len, access))
			return false;
	}
	return true;
}

/* A place in a list: byte `off` of *sge. */
struct cursor {
	const struct sge *sge;
	const struct sge *end;
	uint64_t off;
};

static struct cursor seek(struct sge_list list, uint64_t off)
{
	const struct sge *sge = list.sge, *end = sge + list.count;

	while (sge < end && off >= sge->len)
		off -= (sge++)->len;
	return (struct cursor){sge, end, off};
}

/*
 * Moves over the next piece that lies in one element, at most `len` bytes, and returns its host
 * address; NULL when its key does not open it or the list ends.
 */
static uint8_t *advance(struct cursor *c, const struct mr_table *t, const struct pd *pd, uint64_t len, uint32_t access,
			uint64_t *piece)
{
	while (c->sge < c->end && c->off == c->sge->len) {
		c->sge++;
		c->off = 0;
	}
	if (c->sge == c->end)
		return NULL;

	uint64_t left = c->sge->len - c->off;
	uint64_t va = c->sge->addr + c->off;

	*piece = len < left ? len : left;
	c->off += *piece;
	return mr_check(t, c->sge->lkey, pd, va, *piece, access);
}

/* Most lists have one element, and of others most packets lie in the first. */
static inline bool is_in_first(struct sge_list list, uint64_t off, uint64_t len)
{
	return list.count && len && off < list.sge->len && len <= list.sge->len - off;
}

bool sge_gather(const struct mr_table *t, const struct pd *pd, struct sge_list list, uint64_t off, uint8_t *to,
		uint64_t len)
{
	if (is_in_first(list, off, len)) {
		const uint8_t *p = mr_check(t, list.sge->lkey, pd, list.sge->addr + off, len, 0);

		return p && mr_read_request(t, to, p, len);
	}

	struct cursor c = seek(list, off);
	uint64_t piece;

	for (; len; len -= piece, to += piece) {
		const uint8_t *p = advance(&c, t, pd, len, 0, &piece);

		if (!p || !mr_read_request(t, to, p, piece))
			return false;
	}
	return true;
}

uint8_t *sge_place(const struct mr_table *t, const struct pd *pd, struct sge_list list, uint64_t off, uint64_t len,
		   uint32_t access)
{
	struct cursor c = seek(list, off);
	uint64_t piece;
	uint8_t *p = advance(&c, t, pd, len, access, &piece);

	return p && piece == len && p != MR_NOTHING_AT ? p : NULL;
}

bool sge_scatter(const struct mr_table *t, const struct pd *pd, struct sge_list list, uint64_t off, const uint8_t *from,
		 uint64_t len)
{
	if (is_in_first(list, off, len)) {
		uint8_t *p = mr_check(t, list.sge->lkey, pd, list.sge->addr + off, len, MR_LOCAL_WRITE);

		return p && mr_write(t, p, from, len);
	}

	struct cursor c = seek(list, off);
	uint64_t piece;

	for (; len; len -= piece, from += piece) {
		uint8_t *p = advance(&c, t, pd, len, MR_LOCAL_WRITE, &piece);

		if (!p || !mr_write(t, p, from, piece))
			return false;
	}
	return true;
}
