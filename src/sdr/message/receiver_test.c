/* SPDX-License-Identifier: BSD-2-Clause */
/* Slots, their bitmaps and generations, and the worker's verdicts. */
#include <errno.h>

#include "sdr/message/receiver.h"
#include "support/heap.h"
#include "support/sdr_small.h"
#include "support/test.h"

struct fixture {
	struct heap heap;
	struct alloc alloc;
	struct receiver r;
	struct worker w;
};

static int make(void **state)
{
	static struct fixture f;

	f = (struct fixture){.heap = HEAP_INIT};
	f.alloc = heap_alloc(&f.heap);
	*state = &f;
	return receiver_init(&f.r, &small, &f.alloc);
}

static int unmake(void **state)
{
	struct fixture *f = *state;

	worker_rest(&f->w);
	receiver_free(&f->r);
	return (int)f->heap.blocks;
}

static uint64_t post(struct fixture *f, uint64_t bytes)
{
	uint64_t number = UINT64_MAX;

	assert_int_equal(receiver_post(&f->r, bytes, &number), 0);
	return number;
}

static void complete(struct fixture *f, uint64_t number)
{
	struct slot *slot = receiver_complete(&f->r, number);

	assert_non_null(slot);
	worker_rest(&f->w);
	assert_false(slot_busy(slot));
	slot_reset(slot);
}

static enum sdr_verdict note(struct fixture *f, uint64_t number, uint32_t offset, uint32_t bytes)
{
	struct imm imm = {.id = shape_slot(&small, number), .offset = offset, .frag = offset & 0xf};

	return worker_note(&f->w, &f->r, shape_generation(&small, number), imm_pack(small.split, imm), bytes);
}

static uint64_t chunk_word(struct fixture *f, uint64_t number)
{
	return receiver_slot(&f->r, number)->chunk_bits[0];
}

#define CASE(name) TEST_WITH(name, make, unmake)

CASE(receiver_publishes_a_chunk_with_its_last_packet)
{
	struct fixture *f = *state;
	uint64_t n = post(f, 1024);

	assert_int_equal(note(f, n, 7, 64), SDR_TAKEN);
	assert_int_equal(note(f, n, 4, 64), SDR_TAKEN);
	assert_int_equal(note(f, n, 6, 64), SDR_TAKEN);
	assert_int_equal(chunk_word(f, n), 0);
	assert_int_equal(slot_chunk_mask(receiver_slot(&f->r, n), &small, 1), 0xd);
	assert_int_equal(note(f, n, 5, 64), SDR_CHUNK);
	assert_int_equal(chunk_word(f, n), 2);
	assert_int_equal(slot_chunk_mask(receiver_slot(&f->r, n), &small, 0), 0);
}

CASE(receiver_short_last_chunk_has_its_own_mask)
{
	struct fixture *f = *state;
	uint64_t n = post(f, 256 + 64 + 1);

	assert_int_equal(note(f, n, 4, 64), SDR_TAKEN);
	assert_int_equal(note(f, n, 5, 64), SDR_DROP_LEN);
	assert_int_equal(note(f, n, 5, 1), SDR_CHUNK);
	assert_int_equal(chunk_word(f, n), 2);
	assert_int_equal(note(f, n, 6, 1), SDR_DROP_OFFSET);
}

CASE(receiver_counts_a_packet_once)
{
	struct fixture *f = *state;
	uint64_t n = post(f, 64);

	assert_int_equal(note(f, n, 0, 64), SDR_CHUNK);
	assert_int_equal(note(f, n, 0, 64), SDR_DUP);
	assert_int_equal(f->w.verdicts[SDR_CHUNK], 1);
	assert_int_equal(f->w.verdicts[SDR_DUP], 1);
}

CASE(receiver_refuses_what_cannot_be)
{
	struct fixture *f = *state;
	uint64_t number;

	assert_int_equal(receiver_post(&f->r, 0, &number), -EINVAL);
	assert_int_equal(receiver_post(&f->r, 16385, &number), -EINVAL);
	assert_int_equal(note(f, 0, 0, 64), SDR_DROP_LATE); /* nothing is posted */
	assert_int_equal(post(f, 16384), 0);
	assert_int_equal(note(f, 0, 256, 64), SDR_DROP_OFFSET);
	assert_int_equal(worker_note(&f->w, &f->r, 0, imm_pack(small.split, (struct imm){.id = 4}), 64), SDR_DROP_ID);
	assert_int_equal(chunk_word(f, 0), 0);
}

CASE(receiver_takes_slots_in_order_and_waits_for_them)
{
	struct fixture *f = *state;
	uint64_t number;

	for (uint64_t n = 0; n < 4; n++)
		assert_int_equal(post(f, 64), n);
	assert_int_equal(receiver_post(&f->r, 64, &number), -EAGAIN);
	complete(f, 2);
	assert_int_equal(receiver_post(&f->r, 64, &number), -EAGAIN);
	complete(f, 0);
	assert_int_equal(post(f, 64), 4);
}

/* The slot is posted again at once, and what the message before still had under way comes then. */
CASE(receiver_late_packets_of_another_generation_do_not_count)
{
	struct fixture *f = *state;
	uint64_t first = post(f, 64), again;

	for (uint64_t n = 1; n < 4; n++)
		post(f, 64);
	complete(f, first);
	assert_int_equal(note(f, first, 0, 64), SDR_DROP_LATE);
	again = post(f, 64);
	assert_int_equal(shape_slot(&small, again), shape_slot(&small, first));
	assert_int_equal(note(f, first, 0, 64), SDR_DROP_LATE);
	assert_int_equal(chunk_word(f, again), 0);
	assert_int_equal(note(f, again, 0, 64), SDR_CHUNK);
}

CASE(receiver_completes_once)
{
	struct fixture *f = *state;
	uint64_t n = post(f, 64);

	complete(f, n);
	assert_null(receiver_complete(&f->r, n));
	assert_null(receiver_complete(&f->r, n + 1));
	assert_null(receiver_slot(&f->r, n));
}

CASE(receiver_slot_is_busy_while_a_worker_is_inside)
{
	struct fixture *f = *state;
	uint64_t n = post(f, 128);
	struct slot *slot;

	note(f, n, 0, 64);
	slot = receiver_complete(&f->r, n);
	assert_true(slot_busy(slot));
	/* The batch goes on, and harms nobody. */
	assert_int_equal(note(f, n, 1, 64), SDR_CHUNK);
	worker_rest(&f->w);
	assert_false(slot_busy(slot));
	slot_reset(slot);
	assert_int_equal(note(f, n, 1, 64), SDR_DROP_LATE);
}

/* A worker may look at a slot, be refused, and leave when the slot has been posted again. */
CASE(slot_opens_while_a_refused_worker_has_not_left)
{
	struct fixture *f = *state;
	struct slot *slot = &f->r.slots[0];

	atomic_fetch_add(&slot->state, 1);
	assert_int_equal(post(f, 64), 0);
	slot_leave(slot);
	assert_false(slot_busy(slot));
	assert_int_equal(note(f, 0, 0, 64), SDR_CHUNK);
}

CASE(receiver_bitmaps_are_clean_when_a_slot_is_posted_again)
{
	struct fixture *f = *state;

	for (uint64_t n = 0; n < 8; n++) {
		assert_int_equal(post(f, 16384), n);
		assert_int_equal(chunk_word(f, n), 0);
		for (uint32_t o = 0; o < 256; o++)
			note(f, n, o, 64);
		assert_int_equal(chunk_word(f, n), UINT64_MAX);
		complete(f, n);
	}
}

CASE(receiver_puts_the_users_immediate_together)
{
	struct fixture *f = *state;
	uint64_t n = post(f, 256);
	uint32_t user = 0;

	for (uint32_t o = 0; o < 8; o++) {
		struct imm imm = {.offset = o, .frag = imm_fragment(small.split, 0xcafe1234, o)};

		assert_false(slot_imm(receiver_slot(&f->r, n), small.split, &user));
		assert_int_equal(worker_note(&f->w, &f->r, 0, imm_pack(small.split, imm), o < 2 ? 64 : 0),
				 o < 2 ? SDR_TAKEN : SDR_IMM_ONLY);
	}
	assert_true(slot_imm(receiver_slot(&f->r, n), small.split, &user));
	assert_int_equal(user, 0xcafe1234);
	assert_int_equal(note(f, n, 8, 0), SDR_DROP_OFFSET);
}

CASE(receiver_knows_the_newest_message_that_came)
{
	struct fixture *f = *state;

	assert_int_equal(receiver_newest_touched(&f->r), 0);
	for (int i = 0; i < 4; i++)
		post(f, 64);
	assert_int_equal(receiver_newest_touched(&f->r), 0);
	note(f, 2, 0, 64);
	assert_int_equal(receiver_newest_touched(&f->r), 3);
	note(f, 0, 0, 64);
	assert_int_equal(receiver_newest_touched(&f->r), 3);
}

TEST(receiver_without_memory_leaves_none_behind)
{
	for (int gets = 0; gets < 2; gets++) {
		struct heap heap = {.gets_left = gets};
		struct alloc alloc = heap_alloc(&heap);
		struct receiver r;

		assert_int_equal(receiver_init(&r, &small, &alloc), -ENOMEM);
		assert_int_equal(heap.blocks, 0);
	}
}
