/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Keeps the records, the paths' lists and the retransmit queue consistent; decides nothing. Invariant: where
 * there is a ring, its chunks are those from una's to the one that `end` lies in, or that ends there.
 */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "base/archive.h"
#include "transport/paths/tx_space.h"

static_assert(sizeof(struct tx_record) * TX_CHUNK == 1024 &&
		      sizeof(struct tx_ring) + TX_RING_MIN / TX_CHUNK * sizeof(struct tx_record *) == 1024,
	      "a chunk and the smallest ring fill a piece of the pool each");
static_assert(TX_RING_MIN * TX_RING_GROWTH * TX_RING_GROWTH * TX_RING_GROWTH >= TX_WINDOW_MAX + TX_CHUNK,
	      "a ring of the largest window has a place for a chunk more");

enum { AHEAD_SHARE = 2 }; /* the part of what is outstanding for which room is made at once, TX_AHEAD at most */

void tx_space_init(struct tx_space *s, uint32_t psn)
{
	*s = (struct tx_space){.una = psn, .nxt = psn, .end = psn, .again_head = TX_NIL, .again_tail = TX_NIL};
}

static size_t ring_bytes(uint32_t size)
{
	return sizeof(struct tx_ring) + size / TX_CHUNK * sizeof(struct tx_record *);
}

static size_t chunk_bytes(void)
{
	return TX_CHUNK * sizeof(struct tx_record);
}

/* The place of the chunk that PSN lies in. */
static struct tx_record **chunk_of(const struct tx_space *s, uint32_t psn)
{
	return &s->ring->chunks[(psn & (s->size - 1)) / TX_CHUNK];
}

static uint32_t chunk_start(uint32_t psn)
{
	return psn & ~(uint32_t)(TX_CHUNK - 1);
}

/* One behind the last record; `end` is less at the largest window. */
static uint32_t chunks_end(const struct tx_space *s)
{
	return (s->end + TX_CHUNK - 1) & PSN_MASK & ~(uint32_t)(TX_CHUNK - 1);
}

void tx_space_drop(struct tx_space *s, struct pool *pool)
{
	uint32_t end = chunks_end(s);

	if (s->ring) {
		for (uint32_t psn = chunk_start(s->una); psn != end; psn = psn_add(psn, TX_CHUNK))
			pool_put(pool, *chunk_of(s, psn), chunk_bytes());
		pool_put(pool, s->ring, ring_bytes(s->size));
	}
	tx_space_init(s, s->nxt);
}

static const struct tx_path unused_path = {.head = TX_NIL, .tail = TX_NIL};

/* Makes the ring and its first chunk, that of nxt. */
static bool begin(struct tx_space *s, struct pool *pool)
{
	struct tx_ring *ring = pool_get(pool, ring_bytes(TX_RING_MIN));
	struct tx_record *chunk = pool_get(pool, chunk_bytes());

	if (!ring || !chunk) {
		pool_put(pool, ring, ring_bytes(TX_RING_MIN));
		pool_put(pool, chunk, chunk_bytes());
		return false;
	}
	for (uint32_t i = 0; i < PATHS_MAX; i++)
		ring->paths[i] = unused_path;
	s->ring = ring;
	s->size = TX_RING_MIN;
	*chunk_of(s, s->nxt) = chunk;
	s->end = psn_add(chunk_start(s->nxt), TX_CHUNK);
	return true;
}

/* Moves the chunks into a larger ring. */
static bool widen(struct tx_space *s, struct pool *pool)
{
	uint32_t size = s->size * TX_RING_GROWTH;
	struct tx_ring *ring = pool_get(pool, ring_bytes(size));

	if (!ring)
		return false;
	memcpy(ring->paths, s->ring->paths, sizeof(ring->paths));
	for (uint32_t psn = chunk_start(s->una); psn != s->end; psn = psn_add(psn, TX_CHUNK))
		ring->chunks[(psn & (size - 1)) / TX_CHUNK] = *chunk_of(s, psn);
	pool_put(pool, s->ring, ring_bytes(s->size));
	s->ring = ring;
	s->size = size;
	return true;
}

/* There are records up to that PSN. Those within the largest window may be used. */
static void set_end(struct tx_space *s, uint32_t end)
{
	s->end = ((end - s->una) & PSN_MASK) > TX_WINDOW_MAX ? psn_add(s->una, TX_WINDOW_MAX) : end;
}

/* Whether one more chunk at the end would be used soon. */
static bool wants_chunk(const struct tx_space *s, uint32_t room)
{
	return tx_space_room(s) < room && s->end % TX_CHUNK == 0 && ((s->end - s->una) & PSN_MASK) < TX_WINDOW_MAX;
}

/* The ring has a place for it. */
static void append_chunk(struct tx_space *s, struct tx_record *chunk)
{
	*chunk_of(s, s->end) = chunk;
	set_end(s, psn_add(s->end, TX_CHUNK));
}

/* Makes room for a chunk's records. False: no memory. */
static bool add_chunk(struct tx_space *s, struct pool *pool)
{
	struct tx_record *chunk;

	if (((s->end - chunk_start(s->una)) & PSN_MASK) == s->size && !widen(s, pool))
		return false;
	chunk = pool_get(pool, chunk_bytes());
	if (chunk)
		append_chunk(s, chunk);
	return chunk;
}

bool tx_space_grow(struct tx_space *s, struct pool *pool)
{
	uint32_t room = 1 + tx_outstanding(s) / AHEAD_SHARE;

	if (!s->ring)
		return begin(s, pool);
	/* The largest window ended within a chunk, and una has moved since. */
	if (s->end % TX_CHUNK)
		set_end(s, chunks_end(s));
	while (wants_chunk(s, room < TX_AHEAD ? room : TX_AHEAD) && add_chunk(s, pool))
		;
	return s->nxt != s->end;
}

/* una has moved on from `from`. The chunks that it left move to the end, or back to the pool. */
static void leave_chunks(struct tx_space *s, struct pool *pool, uint32_t from)
{
	uint32_t start = chunk_start(s->una);

	for (uint32_t psn = chunk_start(from); psn != start; psn = psn_add(psn, TX_CHUNK)) {
		struct tx_record *chunk = *chunk_of(s, psn);

		if (wants_chunk(s, TX_AHEAD))
			append_chunk(s, chunk);
		else
			pool_put(pool, chunk, chunk_bytes());
	}
}

/* Nothing is outstanding any more: resets the state of the paths that were used, which are few. */
static void empty(struct tx_space *s, struct pool *pool)
{
	uint32_t first_end = psn_add(chunk_start(s->una), TX_CHUNK);

	if (s->size > TX_RING_MIN) {
		tx_space_drop(s, pool);
		return;
	}
	for (; s->used; s->used &= s->used - 1)
		s->ring->paths[__builtin_ctz(s->used)] = unused_path;
	for (; s->end != first_end; s->end = (s->end - TX_CHUNK) & PSN_MASK)
		pool_put(pool, *chunk_of(s, s->end - TX_CHUNK), chunk_bytes());
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

static void unlink_record(struct tx_space *s, uint32_t *head, uint32_t *tail, const struct tx_record *r)
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
	s->used |= 1u << path;
	r->state = TX_FLYING;
	p->flying++;
	s->flying++;
	append(s, &p->head, &p->tail, psn);
}

void tx_space_sent(struct tx_space *s, const struct tx_run *run, uint64_t now_ns)
{
	struct tx_path *p = &s->ring->paths[run->path];
	uint32_t psn = s->nxt, last = psn_add(psn, run->count - 1), prev = p->tail;
	struct tx_record *r = tx_record(s, psn);

	assert(run->count <= tx_space_room(s));
	if (prev == TX_NIL)
		p->head = psn;
	else
		tx_record(s, prev)->next = psn;
	for (uint32_t i = 0; i < run->count; i++, r++) {
		uint32_t next = psn_add(psn, 1);

		if (psn % TX_CHUNK == 0)
			r = tx_record(s, psn);
		*r = (struct tx_record){
			.tx_ns = now_ns,
			.item = run->item + i * run->step,
			.order = p->sent + i,
			.prev = prev,
			.next = psn == last ? TX_NIL : next,
			.bytes = run->bytes,
			.path = run->path,
			.copies = 1,
			.state = TX_FLYING,
		};
		prev = psn;
		psn = next;
	}
	p->tail = last;
	s->used |= 1u << run->path;
	p->sent += run->count;
	p->flying += run->count;
	s->flying += run->count;
	s->nxt = psn;
}

/* Removes the record from the list of its state. */
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

static void note(struct tx_news *news, struct tx_ring *ring, const struct tx_record *r, const uint64_t *min_rtt_ns,
		 uint64_t now_ns)
{
	struct tx_path_news *n = &news->path[r->path];
	struct tx_path *p = &ring->paths[r->path];

	news->packets++;
	if (r->copies > 1 && min_rtt_ns && min_rtt_ns[r->path] != UINT64_MAX &&
	    now_ns - r->tx_ns < min_rtt_ns[r->path] / 2) {
		news->spurious++; /* the copy before this one arrived */
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
	/* Of several copies the last one arrived, unless it left less than a round trip ago (RFC 8985 6.2). */
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
 * tx_space_ack_one() for consecutive packets of one path that are all flying and were sent once, as
 * they are when nothing is lost. Returns the first PSN that is not of this kind, or end.
 */
static uint32_t ack_run(struct tx_space *s, uint32_t psn, uint32_t end, struct tx_news *news)
{
	const struct tx_record *r = tx_record(s, psn), *last = NULL;
	uint8_t path = r->path;
	struct tx_path_news *n = &news->path[path];
	struct tx_path *p = &s->ring->paths[path];
	uint32_t bytes = 0, packets = 0, oldest = p->head;

	while (psn != end && psn == oldest) {
		if (psn % TX_CHUNK == 0)
			r = tx_record(s, psn);
		if (r->state != TX_FLYING || r->copies != 1)
			break;
		bytes += r->bytes;
		packets++;
		oldest = r->next;
		psn = psn_add(psn, 1);
		last = r++;
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
 * ack_run() for the only packet outstanding. The space is empty then, so its path's state need not be updated
 * first. Not for a packet that was sent again, nor if `news` has reported anything before.
 */
static void ack_only(struct tx_space *s, struct tx_news *news)
{
	const struct tx_record *r = tx_record(s, s->una);

	if (r->state != TX_FLYING || r->copies != 1 || news->paths)
		return;
	news->paths = 1u << r->path;
	news->packets++;
	news->path[r->path] =
		(struct tx_path_news){.bytes = r->bytes, .packets = 1, .sure = 1, .newest_tx_ns = r->tx_ns};
	s->flying = 0;
	s->una = s->nxt;
}

void tx_space_ack_to(struct tx_space *s, struct pool *pool, uint32_t psn, const uint64_t *min_rtt_ns, uint64_t now_ns,
		     struct tx_news *news)
{
	uint32_t end = psn_add(psn, 1), from = s->una;

	if (psn == s->una && end == s->nxt)
		ack_only(s, news);
	while (s->una != end) {
		uint32_t una = ack_run(s, s->una, end, news);

		if (una == s->una) {
			tx_space_ack_one(s, una, min_rtt_ns, now_ns, news);
			una = psn_add(una, 1);
		}
		s->una = una;
	}
	if ((s->una ^ from) >= TX_CHUNK)
		leave_chunks(s, pool, from);
	if (s->una == s->nxt)
		empty(s, pool);
}

/* ---- as bytes --------------------------------------------------------------------------------------- */

/* Whether such a ring has places for all chunks from una's to the end, and the numbers are in order. */
static bool is_possible(const struct tx_space *s)
{
	uint32_t chunks = (chunks_end(s) - chunk_start(s->una)) & PSN_MASK, room = (s->end - s->una) & PSN_MASK;
	uint32_t size = TX_RING_MIN;

	while (size < s->size && size < TX_WINDOW_MAX + TX_CHUNK)
		size *= TX_RING_GROWTH;
	return size == s->size && chunks && chunks <= size && room <= TX_WINDOW_MAX && tx_outstanding(s) <= room &&
	       (s->una | s->nxt | s->end) <= PSN_MASK;
}

/* A ring of s->size, with chunks up to s->end. False: no memory, and s has none. */
static bool make_ring(struct tx_space *s, struct pool *pool)
{
	uint32_t end = s->end;

	s->end = chunk_start(s->una);
	s->ring = pool_get(pool, ring_bytes(s->size));
	for (uint32_t i = 0; s->ring && i < PATHS_MAX; i++)
		s->ring->paths[i] = unused_path;
	while (s->ring && s->end != ((end + TX_CHUNK - 1) & PSN_MASK & ~(uint32_t)(TX_CHUNK - 1))) {
		struct tx_record *chunk = pool_get(pool, chunk_bytes());

		if (!chunk) {
			tx_space_drop(s, pool);
			break;
		}
		*chunk_of(s, s->end) = chunk;
		s->end = psn_add(s->end, TX_CHUNK);
	}
	if (s->ring)
		s->end = end;
	else
		tx_space_init(s, s->nxt);
	return s->ring;
}

static void record_archive(struct archive *a, struct tx_record *r, uint32_t path_count)
{
	if (a->loads)
		*r = (struct tx_record){.prev = TX_NIL, .next = TX_NIL, .state = TX_ACKED};
	ARCHIVE_TIMES(a, r, tx_ns);
	ARCHIVE(a, r, item, order, bytes, path, path_before, copies, state, probe, timed_out);
	if (!archive_judge(a, r->path < path_count && r->path_before < path_count && r->state <= TX_ACKED))
		r->state = TX_ACKED; /* in no list, and on no path */
}

/* The PSNs of a list, each once; their records have that state, and that path unless it is PATHS_MAX. */
static void list_archive(struct archive *a, struct tx_space *s, uint32_t *head, uint32_t *tail, enum tx_state state,
			 uint32_t path)
{
	uint32_t psn = *head, count = 0;

	for (uint32_t i = psn; !a->loads && i != TX_NIL; i = tx_record(s, i)->next)
		count++;
	for (count = archive_count(a, count, TX_WINDOW_MAX); count && !a->err; count--) {
		archive_bytes(a, &psn, sizeof(psn));
		if (!archive_judge(a, psn <= PSN_MASK && tx_is_outstanding(s, psn)))
			return;

		const struct tx_record *r = tx_record(s, psn);

		if (!a->loads)
			psn = r->next;
		else if (archive_judge(a, r->state == state && (path == PATHS_MAX || r->path == path) &&
						  r->prev == TX_NIL && r->next == TX_NIL && psn != *head))
			append(s, head, tail, psn);
	}
}

/* Counts the records of each state. Loading, all that must be are in their lists. */
static void count_records(struct archive *a, struct tx_space *s)
{
	uint32_t listed = 0;

	for (uint32_t psn = s->una; psn != s->nxt; psn = psn_add(psn, 1)) {
		const struct tx_record *r = tx_record(s, psn);

		s->lost += r->state == TX_LOST;
		if (r->state == TX_FLYING) {
			s->flying++;
			s->ring->paths[r->path].flying++;
		}
	}
	for (uint32_t i = 0; i < PATHS_MAX; i++) {
		for (uint32_t psn = s->ring->paths[i].head; psn != TX_NIL; psn = tx_record(s, psn)->next)
			listed++;
	}
	archive_judge(a, listed == s->flying);
	for (uint32_t psn = s->again_head; psn != TX_NIL; psn = tx_record(s, psn)->next)
		listed++;
	archive_judge(a, listed == s->flying + s->lost);
}

static void path_archive_lists(struct archive *a, struct tx_space *s)
{
	for (uint32_t i = 0; i < PATHS_MAX; i++) {
		struct tx_path *p = &s->ring->paths[i];

		if (!(s->used >> i & 1))
			continue;
		ARCHIVE_TIMES(a, p, newest_tx_ns);
		ARCHIVE(a, p, newest_order, sent);
		list_archive(a, s, &p->head, &p->tail, TX_FLYING, i);
	}
	list_archive(a, s, &s->again_head, &s->again_tail, TX_LOST, PATHS_MAX);
}

void tx_space_archive(struct archive *a, struct tx_space *s, struct pool *pool, uint32_t path_count)
{
	struct tx_space all = *s;
	bool has_ring = s->ring;

	archive_flag(a, &has_ring, sizeof(has_ring));
	ARCHIVE(a, &all, size, una, nxt, end, used);
	if (!archive_judge(a, has_ring ? is_possible(&all) : all.una <= PSN_MASK && all.una == all.nxt))
		return;
	if (a->loads) {
		tx_space_init(s, all.nxt);
		if (!has_ring)
			return;
		s->size = all.size;
		s->una = all.una;
		s->end = all.end;
		if (!make_ring(s, pool)) {
			archive_fail(a, -ENOMEM);
			return;
		}
		s->used = all.used & ((1u << path_count) - 1);
	}
	for (uint32_t psn = s->una; has_ring && psn != s->nxt; psn = psn_add(psn, 1))
		record_archive(a, tx_record(s, psn), path_count);
	if (has_ring && !a->err)
		path_archive_lists(a, s);
	if (a->loads && !a->err)
		count_records(a, s);
}
