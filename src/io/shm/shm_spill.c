/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * See shm_spill.h. The bytes of packets lie behind each other, as those of a train must; kept packets are moved to the
 * start when there is no room behind them.
 */
#include "io/shm/shm_spill.h"

#include <assert.h>
#include <string.h>

#include "space/space.h"

struct entry {
	struct flow flow;
	uint32_t at, len;
	uint16_t ip_id, train, far_at, far_bytes;
};

struct shm_spill {
	size_t first, end; /* entries */
	uint32_t used;     /* bytes, up to the last packet's end */
	struct entry entries[SHM_SPILL_PACKETS];
	uint8_t bytes[SHM_SPILL_BYTES];
};

struct shm_spill *shm_spill_new(void)
{
	return space_get(sizeof(struct shm_spill));
}

void shm_spill_free(struct shm_spill *s)
{
	space_put(s, sizeof(*s));
}

bool shm_spill_is_empty(const struct shm_spill *s)
{
	return s->first == s->end;
}

size_t shm_spill_packets(const struct shm_spill *s)
{
	return s->end - s->first;
}

static uint32_t start(const struct shm_spill *s)
{
	return shm_spill_is_empty(s) ? s->used : s->entries[s->first].at;
}

static void move_to_the_start(struct shm_spill *s)
{
	uint32_t from = start(s);

	memmove(s->bytes, s->bytes + from, s->used - from);
	memmove(s->entries, &s->entries[s->first], (s->end - s->first) * sizeof(s->entries[0]));
	s->end -= s->first;
	s->first = 0;
	s->used -= from;
	for (size_t i = 0; i < s->end; i++)
		s->entries[i].at -= from;
}

static bool has_room(struct shm_spill *s, size_t packets, uint32_t bytes, bool datagrams)
{
	size_t share = datagrams ? 2 : 1;

	if (s->end - s->first + packets > SHM_SPILL_PACKETS / share ||
	    s->used - start(s) + bytes > SHM_SPILL_BYTES / share)
		return false;
	if (s->end + packets > SHM_SPILL_PACKETS || s->used + bytes > SHM_SPILL_BYTES)
		move_to_the_start(s);
	return true;
}

bool shm_spill_add(struct shm_spill *s, const struct pkt *p, size_t n, bool datagrams)
{
	uint32_t bytes = 0;

	for (size_t i = 0; i < n; i++)
		bytes += p[i].len;
	if (!has_room(s, n, bytes, datagrams))
		return false;
	for (size_t i = 0; i < n; i++) {
		s->entries[s->end++] = (struct entry){.flow = *p[i].flow,
						      .at = s->used,
						      .len = p[i].len,
						      .ip_id = p[i].ip_id,
						      .train = (uint16_t)(n - i),
						      .far_at = p[i].far_at,
						      .far_bytes = p[i].far_bytes};
		memcpy(s->bytes + s->used, p[i].data, p[i].len);
		s->used += p[i].len;
	}
	return true;
}

size_t shm_spill_look(struct shm_spill *s, struct pkt *p)
{
	size_t n = shm_spill_is_empty(s) ? 0 : s->entries[s->first].train;

	assert(n <= PKT_TRAIN_MAX && n <= s->end - s->first);
	for (size_t i = 0; i < n; i++) {
		const struct entry *e = &s->entries[s->first + i];

		p[i] = (struct pkt){.data = s->bytes + e->at,
				    .flow = &e->flow,
				    .len = e->len,
				    .ip_id = e->ip_id,
				    .train = e->train,
				    .far_at = e->far_at,
				    .far_bytes = e->far_bytes};
	}
	return n;
}

void shm_spill_drop(struct shm_spill *s, size_t n)
{
	assert(n <= s->end - s->first);
	s->first += n;
	if (s->first < s->end)
		return;
	s->first = s->end = 0;
	s->used = 0;
}
