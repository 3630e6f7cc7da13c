/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A chunk's packets lie in one 64-bit word, because a chunk has a power of two of at most 64 of
 * them. So the worker whose bit fills the chunk knows it from one atomic OR, and it alone publishes
 * the chunk.
 */
#include <assert.h>
#include <string.h>

#include "sdr/message/slot.h"

enum { USERS_BITS = 16, NUMBER_SHIFT = 17, LINE_WORDS = 8 };
#define ACTIVE (UINT64_C(1) << USERS_BITS)
#define USERS  (ACTIVE - 1)

static size_t words_for(uint64_t bits)
{
	size_t words = (size_t)((bits + 63) / 64);

	return (words + LINE_WORDS - 1) / LINE_WORDS * LINE_WORDS;
}

size_t slot_packet_words(const struct shape *s)
{
	return words_for(shape_packets(s, s->message_bytes));
}

size_t slot_chunk_words(const struct shape *s)
{
	return words_for(shape_chunks(s, s->message_bytes));
}

static uint64_t ones(uint32_t n)
{
	return n >= 64 ? UINT64_MAX : (UINT64_C(1) << n) - 1;
}

/* Keeps the count of workers: one that was refused may not have left yet. */
static void activate(struct slot *slot, uint64_t number)
{
	uint64_t old = atomic_load_explicit(&slot->state, memory_order_relaxed);
	uint64_t new;

	do
		new = number << NUMBER_SHIFT | ACTIVE | (old & USERS);
	while (!atomic_compare_exchange_weak_explicit(&slot->state, &old, new, memory_order_release,
						      memory_order_relaxed));
}

void slot_open(struct slot *slot, const struct shape *shape, uint64_t number, uint64_t bytes)
{
	uint32_t per_chunk = shape_chunk_packets(shape);

	assert(bytes > 0 && bytes <= shape->message_bytes);
	slot->packets = shape_packets(shape, bytes);
	slot->chunks = shape_chunks(shape, bytes);
	slot->last_bytes = (uint32_t)(bytes - (uint64_t)(slot->packets - 1) * shape->mtu);
	slot->last_mask = ones(slot->packets - (slot->chunks - 1) * per_chunk);
	slot->open = true;
	activate(slot, number);
}

void slot_close(struct slot *slot)
{
	atomic_fetch_and_explicit(&slot->state, ~ACTIVE, memory_order_acq_rel);
}

bool slot_busy(const struct slot *slot)
{
	return atomic_load_explicit(&slot->state, memory_order_acquire) & USERS;
}

void slot_reset(struct slot *slot)
{
	for (uint32_t i = 0; i < (slot->packets + 63) / 64; i++)
		atomic_store_explicit(&slot->packet_bits[i], 0, memory_order_relaxed);
	for (uint32_t i = 0; i < (slot->chunks + 63) / 64; i++)
		atomic_store_explicit(&slot->chunk_bits[i], 0, memory_order_relaxed);
	atomic_store_explicit(&slot->imm, 0, memory_order_relaxed);
	atomic_store_explicit(&slot->touched, false, memory_order_relaxed);
	slot->open = false;
}

bool slot_holds(const struct slot *slot, uint64_t number)
{
	uint64_t state = atomic_load_explicit(&slot->state, memory_order_acquire);

	return state & ACTIVE && state >> NUMBER_SHIFT == (number << NUMBER_SHIFT) >> NUMBER_SHIFT;
}

bool slot_enter(struct slot *slot, const struct shape *shape, uint32_t generation)
{
	uint64_t state = atomic_fetch_add_explicit(&slot->state, 1, memory_order_acquire);

	if (state & ACTIVE && shape_generation(shape, state >> NUMBER_SHIFT) == generation)
		return true;
	slot_leave(slot);
	return false;
}

void slot_leave(struct slot *slot)
{
	atomic_fetch_sub_explicit(&slot->state, 1, memory_order_release);
}

static void take_fragment(struct slot *slot, struct imm_split split, struct imm imm)
{
	uint32_t place = imm.offset % imm_fragments(split);
	uint64_t seen = UINT64_C(1) << (32 + place);

	if (!(atomic_load_explicit(&slot->imm, memory_order_relaxed) & seen))
		atomic_fetch_or_explicit(&slot->imm, seen | imm.frag << place * split.frag_bits, memory_order_release);
}

static uint32_t expected_bytes(const struct slot *slot, const struct shape *shape, uint32_t offset)
{
	return offset == slot->packets - 1 ? slot->last_bytes : shape->mtu;
}

/* Sets the packet's bit. Returns the chunk's packets with this one, or 0 if this one was there. */
static uint64_t set_packet(struct slot *slot, const struct shape *shape, uint32_t offset)
{
	uint64_t bit = UINT64_C(1) << offset % 64;
	uint32_t n = shape_chunk_packets(shape);
	uint64_t old = atomic_fetch_or_explicit(&slot->packet_bits[offset / 64], bit, memory_order_acq_rel);

	return old & bit ? 0 : (old | bit) >> (offset % 64 & ~(n - 1)) & ones(n);
}

static void publish_chunk(struct slot *slot, uint32_t chunk)
{
	atomic_fetch_or_explicit(&slot->chunk_bits[chunk / 64], UINT64_C(1) << chunk % 64, memory_order_release);
}

/* A packet without payload is judged first: it may lie within the buffer too, when the message
 * itself is empty. */
enum sdr_verdict slot_note(struct slot *slot, const struct shape *shape, struct imm imm, uint32_t bytes)
{
	uint32_t chunk = imm.offset / shape_chunk_packets(shape);
	uint64_t have;

	if (!bytes && imm.offset >= imm_fragments(shape->split))
		return SDR_DROP_OFFSET;
	if (bytes && imm.offset >= slot->packets)
		return SDR_DROP_OFFSET;
	if (bytes && bytes != expected_bytes(slot, shape, imm.offset))
		return SDR_DROP_LEN;
	take_fragment(slot, shape->split, imm);
	if (!atomic_load_explicit(&slot->touched, memory_order_relaxed))
		atomic_store_explicit(&slot->touched, true, memory_order_relaxed);
	if (!bytes)
		return SDR_IMM_ONLY;
	have = set_packet(slot, shape, imm.offset);
	if (!have)
		return SDR_DUP;
	if (have != (chunk == slot->chunks - 1 ? slot->last_mask : ones(shape_chunk_packets(shape))))
		return SDR_TAKEN;
	publish_chunk(slot, chunk);
	return SDR_CHUNK;
}

bool slot_imm(const struct slot *slot, struct imm_split split, uint32_t *user)
{
	uint64_t imm = atomic_load_explicit(&slot->imm, memory_order_acquire);

	if (imm >> 32 != ones(imm_fragments(split)))
		return false;
	*user = (uint32_t)imm;
	return true;
}

uint64_t slot_chunk_mask(const struct slot *slot, const struct shape *shape, uint32_t chunk)
{
	uint32_t n = shape_chunk_packets(shape);
	uint32_t first = chunk * n;

	return atomic_load_explicit(&slot->packet_bits[first / 64], memory_order_acquire) >> first % 64 & ones(n);
}
