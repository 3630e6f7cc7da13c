/* SPDX-License-Identifier: BSD-2-Clause */
/* See shm_far.h. */
#include "io/shm/shm_far.h"

#include <assert.h>
#include <string.h>

#include "wire/capseth.h"

struct entry {
	uint64_t from;
	uint16_t at, bytes, tail, zero;
};

static_assert(sizeof(struct entry) + 128 + CAPS_LARGE_BYTES - PKT_FAR_BYTES_MIN <= SHM_FAR_BYTES_MAX,
	      "any packet can be described");

static uint32_t rounded(uint32_t bytes)
{
	return (bytes + 7) & ~7u;
}

size_t shm_far_describe(uint8_t *to, const struct pkt *pkts, size_t n, uint32_t *bytes, uint64_t *lot)
{
	uint32_t used = 0;
	size_t i = 0;

	for (; i < n; i++) {
		const struct pkt *p = &pkts[i];
		struct pkt_far far;
		struct entry e = {
			.at = p->far_at, .bytes = p->far_bytes, .tail = (uint16_t)(p->len - p->far_at - p->far_bytes)};

		memcpy(&far, p->data + p->far_at, sizeof(far));
		if (!i)
			*lot = far.lot;
		if (used + sizeof(e) + rounded(e.at + e.tail) > SHM_FAR_BYTES_MAX || far.lot != *lot)
			break;
		e.from = (uintptr_t)far.from;
		memcpy(to + used, &e, sizeof(e));
		used += sizeof(e);
		memcpy(to + used, p->data, e.at);
		memcpy(to + used + e.at, p->data + p->far_at + p->far_bytes, e.tail);
		used += rounded(e.at + e.tail);
	}
	assert(i);
	*bytes = used;
	return i;
}

/* `first`: of the pieces there, the train's first. */
static void add_piece(struct shm_far *f, size_t first, uint8_t *here, const struct entry *e)
{
	struct iovec *last = f->there_count > first ? &f->there[f->there_count - 1] : NULL;

	f->here[f->here_count++] = (struct iovec){here, e->bytes};
	/* The packets of a message lie behind each other there. */
	if (last && (uintptr_t)last->iov_base + last->iov_len == e->from)
		last->iov_len += e->bytes;
	else
		f->there[f->there_count++] = (struct iovec){(void *)(uintptr_t)e->from, e->bytes};
}

static uint32_t lay_out(const uint8_t *from, uint32_t bytes, uint32_t segment, uint8_t *to, uint32_t room,
			struct shm_far *f)
{
	size_t here = f->here_count, there = f->there_count;
	bool ended = false;
	uint32_t used = 0;

	while (bytes) {
		struct entry e;
		uint32_t len;

		if (bytes < sizeof(e) || ended || f->here_count - here == PKT_TRAIN_MAX)
			return 0;
		memcpy(&e, from, sizeof(e));
		from += sizeof(e);
		bytes -= (uint32_t)sizeof(e);
		len = (uint32_t)e.at + e.bytes + e.tail;
		if (!e.bytes || len > segment || len > room - used || rounded((uint32_t)e.at + e.tail) > bytes)
			return 0;
		ended = len < segment;
		memcpy(to + used, from, e.at);
		memcpy(to + used + e.at + e.bytes, from + e.at, e.tail);
		add_piece(f, there, to + used + e.at, &e);
		used += len;
		from += rounded((uint32_t)e.at + e.tail);
		bytes -= rounded((uint32_t)e.at + e.tail);
	}
	return used;
}

uint32_t shm_far_lay_out(const uint8_t *from, uint32_t bytes, uint32_t segment, uint8_t *to, uint32_t room,
			 struct shm_far *f)
{
	size_t here = f->here_count, there = f->there_count;
	uint32_t len;

	assert(here + PKT_TRAIN_MAX <= SHM_FAR_PIECES_MAX);
	len = lay_out(from, bytes, segment, to, room, f);
	if (!len) {
		f->here_count = here;
		f->there_count = there;
	}
	return len;
}
