/* SPDX-License-Identifier: BSD-2-Clause */
/* The message table of a receiving end, and the worker's checks in their order. */
#include <errno.h>
#include <string.h>

#include "sdr/message/receiver.h"

static size_t slot_words(const struct shape *s)
{
	return slot_packet_words(s) + slot_chunk_words(s);
}

int receiver_init(struct receiver *r, const struct shape *shape, const struct alloc *alloc)
{
	size_t words = slot_words(shape);

	*r = (struct receiver){.shape = *shape, .alloc = alloc};
	r->slots = alloc_get(alloc, shape->slots * sizeof(*r->slots));
	r->words = alloc_get(alloc, shape->slots * words * sizeof(*r->words));
	if (!r->slots || !r->words) {
		receiver_free(r);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < shape->slots; i++) {
		r->slots[i].packet_bits = r->words + i * words;
		r->slots[i].chunk_bits = r->slots[i].packet_bits + slot_packet_words(shape);
	}
	return 0;
}

void receiver_free(struct receiver *r)
{
	alloc_put(r->alloc, r->slots, r->shape.slots * sizeof(*r->slots));
	alloc_put(r->alloc, r->words, r->shape.slots * slot_words(&r->shape) * sizeof(*r->words));
	r->slots = NULL;
	r->words = NULL;
}

static struct slot *slot_of(const struct receiver *r, uint64_t number)
{
	return &r->slots[shape_slot(&r->shape, number)];
}

bool receiver_can_post(const struct receiver *r, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		if (slot_of(r, r->posted + i)->open)
			return false;
	}
	return count <= r->shape.slots;
}

int receiver_post(struct receiver *r, uint64_t bytes, uint64_t *number)
{
	if (!bytes || bytes > r->shape.message_bytes)
		return -EINVAL;
	if (!receiver_can_post(r, 1))
		return -EAGAIN;
	slot_open(slot_of(r, r->posted), &r->shape, r->posted, bytes);
	*number = r->posted++;
	return 0;
}

struct slot *receiver_slot(const struct receiver *r, uint64_t number)
{
	struct slot *slot = slot_of(r, number);

	return number < r->posted && slot_holds(slot, number) ? slot : NULL;
}

struct slot *receiver_complete(struct receiver *r, uint64_t number)
{
	struct slot *slot = receiver_slot(r, number);

	if (slot)
		slot_close(slot);
	return slot;
}

uint64_t receiver_newest_touched(const struct receiver *r)
{
	for (uint64_t n = r->posted; n > 0 && r->posted - n < r->shape.slots; n--) {
		const struct slot *slot = slot_of(r, n - 1);

		if (slot->open && atomic_load_explicit(&slot->touched, memory_order_relaxed))
			return n;
	}
	return 0;
}

void worker_rest(struct worker *w)
{
	if (w->inside)
		slot_leave(w->inside);
	w->inside = NULL;
}

/* Enters the packet's slot. A worker stays inside it for the next packet, which mostly is of the same
 * message. */
static bool worker_enter(struct worker *w, const struct receiver *r, uint32_t generation, uint32_t id)
{
	if (w->inside && w->of == r && w->id == id && w->generation == generation)
		return true;
	worker_rest(w);
	if (!slot_enter(&r->slots[id], &r->shape, generation))
		return false;
	w->inside = &r->slots[id];
	w->of = r;
	w->id = id;
	w->generation = generation;
	return true;
}

static enum sdr_verdict judge(struct worker *w, struct receiver *r, uint32_t generation, struct imm imm, uint32_t bytes)
{
	if (imm.id >= r->shape.slots)
		return SDR_DROP_ID;
	if (!worker_enter(w, r, generation, imm.id))
		return SDR_DROP_LATE;
	return slot_note(w->inside, &r->shape, imm, bytes);
}

enum sdr_verdict worker_note(struct worker *w, struct receiver *r, uint32_t generation, uint32_t imm, uint32_t bytes)
{
	enum sdr_verdict v = judge(w, r, generation, imm_unpack(r->shape.split, imm), bytes);

	w->verdicts[v]++;
	__atomic_store_n(&w->bytes, w->bytes + bytes, __ATOMIC_RELAXED);
	return v;
}
