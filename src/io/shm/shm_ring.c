/* SPDX-License-Identifier: BSD-2-Clause */
/* See shm_ring.h. */
#include "io/shm/shm_ring.h"

#include <assert.h>
#include <string.h>

#define MAGIC UINT64_C(0x766272696e67000a)

enum { KIND_NONE, KIND_WRAP = 1, KIND_TRAIN = 2, KIND_FAR = 4, KIND_FLOW = 1, RECORD_BYTES = 8 };

enum { AHEAD_BYTES_MAX = 2048 }; /* see ask_for_lines() */

enum { ACCEPTED = 1, ACCEPTED_READS = 2 };

static_assert(sizeof(struct shm_memory) <= SHM_HEADER_BYTES, "the records have their own pages");
static_assert(SHM_ROOM_BYTES % SHM_UNIT_BYTES == 0, "units fill it");
static_assert(PKT_TRAIN_BYTES_MAX <= UINT16_MAX, "a packet's length has 16 bits");

struct record {
	uint32_t len;
	uint16_t segment;
	uint8_t kind;
	uint8_t first;
};

static_assert(sizeof(struct record) == RECORD_BYTES, "one word, read at once");

static uint8_t *place(struct shm_memory *m, uint32_t at)
{
	return (uint8_t *)m + SHM_HEADER_BYTES + at;
}

/* The first word of a record. */
static _Atomic uint64_t *word_at(struct shm_memory *m, uint32_t at)
{
	return (_Atomic uint64_t *)place(m, at);
}

static struct record record_of(uint64_t word)
{
	struct record r;

	memcpy(&r, &word, sizeof(r));
	return r;
}

static uint32_t units(uint32_t bytes)
{
	return (bytes + SHM_UNIT_BYTES - 1) & ~(uint32_t)(SHM_UNIT_BYTES - 1);
}

static bool is_position(uint32_t at)
{
	return at < SHM_ROOM_BYTES && at % SHM_UNIT_BYTES == 0;
}

void shm_memory_init(struct shm_memory *m)
{
	atomic_store_explicit(&m->magic, MAGIC, memory_order_release);
}

bool shm_memory_is_known(const struct shm_memory *m)
{
	return atomic_load_explicit(&m->magic, memory_order_acquire) == MAGIC;
}

/* ---- the end that puts ---- */

void shm_putter_init(struct shm_putter *p, struct shm_memory *m)
{
	*p = (struct shm_putter){.memory = m};
}

bool shm_is_accepted(const struct shm_putter *p)
{
	return atomic_load_explicit(&p->memory->accepted, memory_order_acquire) != 0;
}

bool shm_is_read(const struct shm_putter *p)
{
	return atomic_load_explicit(&p->memory->accepted, memory_order_acquire) == ACCEPTED_READS;
}

void shm_take_all_back(struct shm_putter *p)
{
	atomic_store_explicit(&p->memory->taken_back, UINT64_MAX, memory_order_seq_cst);
	atomic_thread_fence(memory_order_seq_cst);
}

/* Whether `need` bytes fit at *at, which is set to 0 if only there they do. */
static bool fits(uint32_t head, uint32_t tail, uint32_t need, uint32_t *at)
{
	*at = tail;
	if (head > tail)
		return need < head - tail;
	if (need < SHM_ROOM_BYTES - tail || (need == SHM_ROOM_BYTES - tail && head))
		return true;
	*at = 0;
	return need < head;
}

/* At most a unit, as two moves that may overlap: a loop over its bytes takes longer than the rest of a short record. */
static inline void copy_into_unit(uint8_t *to, const uint8_t *from, uint32_t len)
{
	if (len >= 32) {
		memcpy(to, from, 32);
		memcpy(to + len - 32, from + len - 32, 32);
	} else if (len >= 16) {
		memcpy(to, from, 16);
		memcpy(to + len - 16, from + len - 16, 16);
	} else {
		for (uint32_t i = 0; i < len; i++)
			to[i] = from[i];
	}
}

/*
 * Writes bytes of the record at `at`, from its byte `from` on. The other end looks again and again at the line where
 * the next record will begin, and takes it from this processor after each store. So that line is prepared in p->first,
 * and stored at once when it is published.
 */
static void write_record(struct shm_putter *p, uint32_t at, uint32_t from, const void *bytes, uint32_t len)
{
	const uint8_t *b = bytes;

	if (at == p->published && from < SHM_UNIT_BYTES) {
		uint32_t kept = len < SHM_UNIT_BYTES - from ? len : SHM_UNIT_BYTES - from;

		copy_into_unit(p->first + from, b, kept);
		from += kept;
		b += kept;
		len -= kept;
		if (!len)
			return;
	}
	memcpy(place(p->memory, at) + from, b, len);
}

/* Nothing more follows in the ring's end. */
static __attribute__((cold)) void wrap(struct shm_putter *p)
{
	write_record(p, p->tail, 0, &(struct record){.kind = KIND_WRAP}, RECORD_BYTES);
}

static __attribute__((cold)) void put_flow(struct shm_putter *p, uint32_t at, const struct flow *flow)
{
	write_record(p, at, RECORD_BYTES, flow, sizeof(*flow));
	p->flow = *flow;
	p->has_flow = true;
}

enum shm_verdict shm_put(struct shm_putter *p, const struct flow *flow, const uint8_t *data,
			 const struct shm_train *train)
{
	bool with_flow = !p->has_flow || memcmp(&p->flow, flow, sizeof(*flow));
	uint32_t skip = RECORD_BYTES + (with_flow ? (uint32_t)sizeof(*flow) : 0);
	uint32_t len = train->len, need = units(skip + len), at;
	struct record r;

	assert(len && len <= PKT_TRAIN_BYTES_MAX && train->segment && (train->far || train->segment <= len));
	if (!fits(p->head, p->tail, need, &at)) {
		uint32_t head = atomic_load_explicit(&p->memory->head, memory_order_acquire);

		if (!is_position(head))
			return SHM_BAD;
		p->head = head;
		if (!fits(p->head, p->tail, need, &at))
			return SHM_NO_ROOM;
	}
	if (at != p->tail)
		wrap(p);
	r = (struct record){.len = len,
			    .segment = (uint16_t)train->segment,
			    .kind = (uint8_t)((train->far ? KIND_FAR : KIND_TRAIN) | (with_flow ? KIND_FLOW : 0)),
			    .first = train->first};
	write_record(p, at, 0, &r, RECORD_BYTES);
	if (with_flow)
		put_flow(p, at, flow);
	write_record(p, at, skip, data, len);
	p->tail = (at + need) % SHM_ROOM_BYTES;
	return SHM_DONE;
}

bool shm_is_half_free(struct shm_putter *p)
{
	uint32_t head = atomic_load_explicit(&p->memory->head, memory_order_acquire);

	return (p->tail + SHM_ROOM_BYTES - head) % SHM_ROOM_BYTES <= SHM_ROOM_BYTES / 2;
}

uint32_t shm_taken_up_to(const struct shm_putter *p)
{
	return atomic_load_explicit(&p->memory->head, memory_order_acquire);
}

bool shm_is_empty(const struct shm_putter *p)
{
	return shm_taken_up_to(p) == p->tail;
}

/*
 * Asks for the lines of the coming records, which the other processor has read: a store into them waits until they are
 * back, and all later stores wait with it. Asks for as many bytes as were put last, up to AHEAD_BYTES_MAX.
 */
#ifdef __x86_64__
__attribute__((target("prfchw"))) /* a hint: where it is unknown it does nothing */
#endif
static void
ask_for_lines(struct shm_putter *p, uint32_t bytes)
{
	uint32_t end = p->tail + (bytes < AHEAD_BYTES_MAX ? bytes : AHEAD_BYTES_MAX);

	for (uint32_t at = p->tail + SHM_UNIT_BYTES; at <= end && at < SHM_ROOM_BYTES; at += SHM_UNIT_BYTES)
		__builtin_prefetch(place(p->memory, at), 1);
}

bool shm_publish(struct shm_putter *p)
{
	uint32_t bytes = (p->tail + SHM_ROOM_BYTES - p->published) % SHM_ROOM_BYTES;
	uint64_t word;

	if (!bytes)
		return false;
	atomic_store_explicit(&p->memory->tail, p->tail, memory_order_relaxed);
	atomic_store_explicit(word_at(p->memory, p->tail), 0, memory_order_relaxed); /* KIND_NONE */
	memcpy(place(p->memory, p->published) + sizeof(word), p->first + sizeof(word), SHM_UNIT_BYTES - sizeof(word));
	memcpy(&word, p->first, sizeof(word));
	atomic_store_explicit(word_at(p->memory, p->published), word, memory_order_release);
	p->published = p->tail;
	ask_for_lines(p, bytes);
	/* Either the sleeper sees the record after it has said that it sleeps, or that is seen here. */
	atomic_thread_fence(memory_order_seq_cst);
	return atomic_load_explicit(&p->memory->asleep, memory_order_relaxed) != 0;
}

bool shm_wakes(struct shm_putter *p)
{
	return !shm_is_empty(p) && atomic_exchange_explicit(&p->memory->asleep, 0, memory_order_seq_cst) != 0;
}

/* ---- the end that takes ---- */

void shm_taker_init(struct shm_taker *t, struct shm_memory *m)
{
	*t = (struct shm_taker){.memory = m};
}

void shm_accept(struct shm_taker *t, bool reads)
{
	atomic_store_explicit(&t->memory->accepted, reads ? ACCEPTED_READS : ACCEPTED, memory_order_release);
}

static struct record next_record(const struct shm_taker *t, memory_order order)
{
	return record_of(atomic_load_explicit(word_at(t->memory, t->head), order));
}

bool shm_has_some(const struct shm_taker *t)
{
	return next_record(t, memory_order_relaxed).kind != KIND_NONE;
}

uint32_t shm_unread(const struct shm_taker *t)
{
	uint32_t tail = atomic_load_explicit(&t->memory->tail, memory_order_relaxed);

	return (tail + SHM_ROOM_BYTES - t->head) % SHM_ROOM_BYTES;
}

static bool is_train(const struct record *r, uint32_t piece, bool has_flow)
{
	bool with_flow = r->kind & KIND_FLOW, far = (r->kind & ~KIND_FLOW) == KIND_FAR;

	if ((!far && (r->kind & ~KIND_FLOW) != KIND_TRAIN) || (!with_flow && !has_flow))
		return false;
	if (!r->len || r->len > PKT_TRAIN_BYTES_MAX || !r->segment || r->first >= PKT_TRAIN_MAX)
		return false;
	if (!far && (r->segment > r->len || r->len > (uint32_t)r->segment * PKT_TRAIN_MAX))
		return false;
	return RECORD_BYTES + (with_flow ? sizeof(struct flow) : 0) + r->len <= piece;
}

bool shm_next_is_far(const struct shm_taker *t)
{
	struct record r = next_record(t, memory_order_relaxed);

	if (r.kind == KIND_WRAP)
		r = record_of(atomic_load_explicit(word_at(t->memory, 0), memory_order_relaxed));
	return (r.kind & ~KIND_FLOW) == KIND_FAR;
}

enum shm_verdict shm_take(struct shm_taker *t, uint8_t *to, uint32_t room, struct shm_train *train)
{
	struct record r = next_record(t, memory_order_acquire);
	const uint8_t *from;

	if (r.kind == KIND_NONE)
		return SHM_NONE;
	/* Behind it the records go on at the start; there is no second one there. */
	if (r.kind == KIND_WRAP) {
		t->head = 0;
		r = next_record(t, memory_order_relaxed);
	}
	if (!is_train(&r, SHM_ROOM_BYTES - t->head, t->has_flow))
		return SHM_BAD;
	if (r.len > room)
		return SHM_NO_ROOM;
	from = place(t->memory, t->head) + RECORD_BYTES;
	train->far = (r.kind & ~KIND_FLOW) == KIND_FAR;
	train->new_flow = r.kind & KIND_FLOW;
	if (train->new_flow) {
		memcpy(&t->flow, from, sizeof(t->flow));
		t->has_flow = true;
		from += sizeof(t->flow);
	}
	memcpy(to, from, r.len);
	/* From here on the copies are read, and not once more what the peer may have changed. */
	atomic_signal_fence(memory_order_seq_cst);
	train->len = r.len;
	train->segment = r.segment;
	train->first = r.first;
	t->head = (t->head + units((uint32_t)(from - place(t->memory, t->head)) + r.len)) % SHM_ROOM_BYTES;
	return SHM_DONE;
}

void shm_release(struct shm_taker *t)
{
	if (t->head == t->released)
		return;
	t->released = t->head;
	atomic_store_explicit(&t->memory->head, t->head, memory_order_release);
}

uint64_t shm_taken_back(const struct shm_taker *t)
{
	/* Neither before what was read until now nor behind what will be. */
	atomic_thread_fence(memory_order_seq_cst);
	return atomic_load_explicit(&t->memory->taken_back, memory_order_seq_cst);
}

void shm_give_back(struct shm_taker *t, uint64_t lot)
{
	atomic_store_explicit(&t->memory->given_back, lot, memory_order_release);
}

void shm_sleep(struct shm_taker *t)
{
	atomic_store_explicit(&t->memory->asleep, 1, memory_order_seq_cst);
	atomic_thread_fence(memory_order_seq_cst);
}
