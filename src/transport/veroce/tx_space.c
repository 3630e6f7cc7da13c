/* SPDX-License-Identifier: BSD-2-Clause */
/* Keeps the records, the paths' lists and the retransmit queue consistent; decides nothing. */
#include <assert.h>
#include <string.h>

#include "transport/veroce/tx_space.h"

void tx_space_init(struct tx_space *s, uint32_t psn)
{
	*s = (struct tx_space){
		.una = psn, .nxt = psn, .again_head = TX_NIL, .again_tail = TX_NIL};
}

static size_t ring_bytes(uint32_t size)
{
	return sizeof(struct tx_ring) + size * sizeof(struct tx_record);
}

void tx_space_drop(struct tx_space *s, struct pool *pool)
{
	if (s->ring)
		pool_put(pool, s->ring, ring_bytes(s->size));
	tx_space_init(s, s->nxt);
}

static struct tx_ring *ring_get(struct pool *pool, uint32_t size)
{
	struct tx_ring *ring = pool_get(pool, ring_bytes(size));

	if (!ring)
		return NULL;
	for (int i = 0; i < TX_PATHS_MAX; i++)
		ring->paths[i] = (struct tx_path){.head = TX_NIL, .tail = TX_NIL};
	return ring;
}

bool tx_space_reserve(struct tx_space *s, struct pool *pool)
{
	struct tx_ring *ring;
	uint32_t size = s->ring ? s->size * 2 : TX_RING_MIN;

	if (s->ring && tx_outstanding(s) < s->size)
		return true;
	if (size > TX_WINDOW_MAX)
		return false;
	ring = ring_get(pool, size);
	if (!ring)
		return false;
	if (s->ring) {
		memcpy(ring->paths, s->ring->paths, sizeof(ring->paths));
		for (uint32_t psn = s->una; psn != s->nxt; psn = psn_add(psn, 1))
			ring->records[psn & (size - 1)] = *tx_record(s, psn);
		pool_put(pool, s->ring, ring_bytes(s->size));
	}
	s->ring = ring;
	s->size = size;
	return true;
}

static void append(struct tx_space *s, uint32_t *head, uint32_t *tail, uint32_t psn)
{
	struct tx_record *r = tx_record(s, psn);

	r->prev = *tail;
	r->next = TX_NIL;
	if (*tail == TX_NIL)
		*head = psn;
	else
		tx_record(s, *tail)->next = psn;
	*tail = psn;
}

static void unlink_record(struct tx_space *s, uint32_t *head, uint32_t *tail,
			  const struct tx_record *r)
{
	if (r->prev == TX_NIL)
		*head = r->next;
	else
		tx_record(s, r->prev)->next = r->next;
	if (r->next == TX_NIL)
		*tail = r->prev;
	else
		tx_record(s, r->next)->prev = r->prev;
}

static void fly(struct tx_space *s, uint32_t psn, uint8_t path, uint64_t now_ns)
{
	struct tx_record *r = tx_record(s, psn);
	struct tx_path *p = &s->ring->paths[path];

	r->tx_ns = now_ns;
	r->path = path;
	r->order = p->sent++;
	r->state = TX_FLYING;
	p->flying++;
	s->flying++;
	append(s, &p->head, &p->tail, psn);
}

void tx_space_sent(struct tx_space *s, uint32_t item, uint8_t path, uint16_t bytes, uint64_t now_ns)
{
	struct tx_record *r = tx_record(s, s->nxt);

	assert(tx_outstanding(s) < s->size);
	r->item = item;
	r->bytes = bytes;
	r->copies = 1;
	r->probe = false;
	r->timed_out = false;
	fly(s, s->nxt, path, now_ns);
	s->nxt = psn_add(s->nxt, 1);
}

/* Out of the list that its state puts it in. */
static void leave(struct tx_space *s, struct tx_record *r)
{
	if (r->state == TX_FLYING) {
		struct tx_path *p = &s->ring->paths[r->path];

		unlink_record(s, &p->head, &p->tail, r);
		p->flying--;
		s->flying--;
	} else if (r->state == TX_LOST) {
		unlink_record(s, &s->again_head, &s->again_tail, r);
		s->lost--;
	}
}

void tx_space_resent(struct tx_space *s, uint32_t psn, uint8_t path, uint64_t now_ns)
{
	struct tx_record *r = tx_record(s, psn);

	assert(r->state == TX_LOST);
	leave(s, r);
	r->probe = false;
	r->path_before = r->path;
	if (r->copies < UINT8_MAX)
		r->copies++;
	fly(s, psn, path, now_ns);
}

void tx_space_lose(struct tx_space *s, uint32_t psn)
{
	struct tx_record *r = tx_record(s, psn);

	if (r->state == TX_LOST)
		return;
	leave(s, r);
	r->state = TX_LOST;
	r->timed_out = false;
	s->lost++;
	append(s, &s->again_head, &s->again_tail, psn);
}

void tx_space_hurry(struct tx_space *s, uint32_t psn)
{
	struct tx_record *r = tx_record(s, psn);

	assert(r->state == TX_LOST);
	if (s->again_head == psn)
		return;
	unlink_record(s, &s->again_head, &s->again_tail, r);
	r->prev = TX_NIL;
	r->next = s->again_head;
	tx_record(s, s->again_head)->prev = psn;
	s->again_head = psn;
}

static void note(struct tx_news *news, struct tx_ring *ring, const struct tx_record *r,
		 const uint64_t *min_rtt_ns, uint64_t now_ns)
{
	struct tx_path_news *n = &news->path[r->path];
	struct tx_path *p = &ring->paths[r->path];

	news->packets++;
	if (r->copies > 1 && min_rtt_ns && min_rtt_ns[r->path] != UINT64_MAX &&
	    now_ns - r->tx_ns < min_rtt_ns[r->path] / 2) {
		news->spurious++; /* it was the copy before that arrived */
		if (!r->timed_out)
			news->late_paths |= 1u << r->path_before;
	}
	if (r->state != TX_FLYING)
		return;
	if (!(news->paths & 1u << r->path)) {
		news->paths |= 1u << r->path;
		*n = (struct tx_path_news){0};
	}
	n->bytes += r->bytes;
	n->packets++;
	if (r->copies == 1 && r->tx_ns > n->newest_tx_ns)
		n->newest_tx_ns = r->tx_ns;
	/* Of several copies the last one is meant, unless it cannot have been there and back (RFC 8985 6.2). */
	if (r->copies > 1 && (!min_rtt_ns || now_ns - r->tx_ns < min_rtt_ns[r->path]))
		return;
	n->sure++;
	if ((int32_t)(r->order + 1 - p->newest_order) > 0) {
		p->newest_order = r->order + 1;
		p->newest_tx_ns = r->tx_ns;
	}
}

void tx_space_ack_one(struct tx_space *s, uint32_t psn, const uint64_t *min_rtt_ns, uint64_t now_ns,
		      struct tx_news *news)
{
	struct tx_record *r = tx_record(s, psn);

	if (r->state == TX_ACKED)
		return;
	note(news, s->ring, r, min_rtt_ns, now_ns);
	leave(s, r);
	r->state = TX_ACKED;
}

void tx_space_ack_to(struct tx_space *s, struct pool *pool, uint32_t psn,
		     const uint64_t *min_rtt_ns, uint64_t now_ns, struct tx_news *news)
{
	uint32_t end = psn_add(psn, 1);

	for (; s->una != end; s->una = psn_add(s->una, 1))
		tx_space_ack_one(s, s->una, min_rtt_ns, now_ns, news);
	if (s->una == s->nxt)
		tx_space_drop(s, pool);
}
