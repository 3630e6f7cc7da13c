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
	pool_put(pool, s->kept, ring_bytes(TX_RING_MIN));
	tx_space_init(s, s->nxt);
}

static const struct tx_path unused_path = {.head = TX_NIL, .tail = TX_NIL};

/* Nothing is outstanding any more. A ring that is kept is as good as new: few paths were used, mostly. */
static void empty(struct tx_space *s, struct pool *pool)
{
	struct tx_ring *ring = s->ring;

	if (!s->kept && s->size == TX_RING_MIN) {
		for (; ring->used; ring->used &= ring->used - 1)
			ring->paths[__builtin_ctz(ring->used)] = unused_path;
		s->kept = ring;
	} else {
		pool_put(pool, ring, ring_bytes(s->size));
	}
	s->ring = NULL;
	s->size = 0;
}

static struct tx_ring *ring_get(struct tx_space *s, struct pool *pool, uint32_t size)
{
	struct tx_ring *ring;

	if (size == TX_RING_MIN && s->kept) {
		ring = s->kept;
		s->kept = NULL;
		return ring;
	}
	ring = pool_get(pool, ring_bytes(size));
	if (!ring)
		return NULL;
	ring->used = 0;
	for (int i = 0; i < TX_PATHS_MAX; i++)
		ring->paths[i] = unused_path;
	return ring;
}

bool tx_space_grow(struct tx_space *s, struct pool *pool)
{
	struct tx_ring *ring;
	uint32_t size = s->ring ? s->size * TX_RING_GROWTH : TX_RING_MIN;

	if (s->ring && s->size == TX_WINDOW_MAX)
		return false;
	if (size > TX_WINDOW_MAX)
		size = TX_WINDOW_MAX;
	ring = ring_get(s, pool, size);
	if (!ring)
		return false;
	if (s->ring) {
		memcpy(ring->paths, s->ring->paths, sizeof(ring->paths));
		ring->used = s->ring->used;
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
	s->ring->used |= 1u << path;
	r->state = TX_FLYING;
	p->flying++;
	s->flying++;
	append(s, &p->head, &p->tail, psn);
}

void tx_space_sent(struct tx_space *s, uint32_t item, uint32_t step, uint8_t path, uint16_t bytes,
		   uint32_t count, uint64_t now_ns)
{
	struct tx_path *p = &s->ring->paths[path];
	uint32_t psn = s->nxt, last = psn_add(psn, count - 1), prev = p->tail;

	assert(tx_outstanding(s) + count <= s->size);
	if (prev == TX_NIL)
		p->head = psn;
	else
		tx_record(s, prev)->next = psn;
	for (uint32_t i = 0; i < count; i++) {
		uint32_t next = psn_add(psn, 1);

		*tx_record(s, psn) = (struct tx_record){
			.tx_ns = now_ns,
			.item = item + i * step,
			.order = p->sent + i,
			.prev = prev,
			.next = psn == last ? TX_NIL : next,
			.bytes = bytes,
			.path = path,
			.copies = 1,
			.state = TX_FLYING,
		};
		prev = psn;
		psn = next;
	}
	p->tail = last;
	s->ring->used |= 1u << path;
	p->sent += count;
	p->flying += count;
	s->flying += count;
	s->nxt = psn;
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

/*
 * What tx_space_ack_one() does, for packets that follow each other on one path, all flying and sent once:
 * what comes in when nothing is lost. Returns the first PSN that is not of this kind, or end.
 */
static uint32_t ack_run(struct tx_space *s, uint32_t psn, uint32_t end, struct tx_news *news)
{
	const struct tx_record *r = tx_record(s, psn), *last = NULL;
	uint8_t path = r->path;
	struct tx_path_news *n = &news->path[path];
	struct tx_path *p = &s->ring->paths[path];
	uint32_t bytes = 0, packets = 0, oldest = p->head;

	while (psn != end && psn == oldest && r->state == TX_FLYING && r->copies == 1) {
		bytes += r->bytes;
		packets++;
		oldest = r->next;
		last = r;
		psn = psn_add(psn, 1);
		r = tx_record(s, psn);
	}
	if (!last)
		return psn;
	if (!(news->paths & 1u << path)) {
		news->paths |= 1u << path;
		*n = (struct tx_path_news){0};
	}
	news->packets += packets;
	n->bytes += bytes;
	n->packets += packets;
	n->sure += packets;
	if (last->tx_ns > n->newest_tx_ns)
		n->newest_tx_ns = last->tx_ns;
	if ((int32_t)(last->order + 1 - p->newest_order) > 0) {
		p->newest_order = last->order + 1;
		p->newest_tx_ns = last->tx_ns;
	}
	p->flying -= packets;
	s->flying -= packets;
	p->head = oldest;
	if (oldest == TX_NIL)
		p->tail = TX_NIL;
	else
		tx_record(s, oldest)->prev = TX_NIL;
	return psn;
}

/*
 * What ack_run() does, for the only packet outstanding: a message by itself. Of what its path knows
 * nothing is kept when the space is empty. False: it was sent again, or is not the first thing
 * told.
 */
static bool ack_only(struct tx_space *s, struct tx_news *news)
{
	const struct tx_record *r = tx_record(s, s->una);

	if (r->state != TX_FLYING || r->copies != 1 || news->paths)
		return false;
	news->paths = 1u << r->path;
	news->packets++;
	news->path[r->path] = (struct tx_path_news){
		.bytes = r->bytes, .packets = 1, .sure = 1, .newest_tx_ns = r->tx_ns};
	s->flying = 0;
	s->una = s->nxt;
	return true;
}

void tx_space_ack_to(struct tx_space *s, struct pool *pool, uint32_t psn,
		     const uint64_t *min_rtt_ns, uint64_t now_ns, struct tx_news *news)
{
	uint32_t end = psn_add(psn, 1);

	if (psn == s->una && end == s->nxt && ack_only(s, news)) {
		empty(s, pool);
		return;
	}
	while (s->una != end) {
		uint32_t una = ack_run(s, s->una, end, news);

		if (una == s->una) {
			tx_space_ack_one(s, una, min_rtt_ns, now_ns, news);
			una = psn_add(una, 1);
		}
		s->una = una;
	}
	if (s->una == s->nxt)
		empty(s, pool);
}
