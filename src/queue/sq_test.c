/* SPDX-License-Identifier: BSD-2-Clause */
#include <pthread.h>

#include "queue/sq.h"
#include "support/handover.h"
#include "support/heap.h"
#include "support/test.h"

TEST(slot_holds_the_larger_of_sges_and_inline_bytes)
{
	static const struct {
		uint32_t max_wr, max_sge, max_inline;
	} rows[] = {{1, 0, 0}, {1, 1, 0}, {3, 4, 0}, {4, 1, 100}, {5, 32, 1024}, {1000, 7, 112}};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct heap heap = HEAP_INIT;
		struct alloc a = heap_alloc(&heap);
		uint32_t room = rows[i].max_sge * 16;
		struct sq sq;

		if (room < rows[i].max_inline)
			room = rows[i].max_inline;
		assert_int_equal(sq_init(&sq, &a, rows[i].max_wr, rows[i].max_sge, rows[i].max_inline), 0);
		assert_true(sq.stride >= sizeof(struct send_wqe) + room);
		for (uint32_t n = 0; n < rows[i].max_wr; n++) {
			struct send_wqe *w = sq_slot(&sq, n);

			assert_non_null(w);
			assert_int_equal((uintptr_t)w % 64, 0);
			memset(w, 0xa5, sizeof(*w) + room); /* the sanitizer watches the end */
		}
		assert_null(sq_slot(&sq, rows[i].max_wr));
		sq_fini(&sq, &a);
		assert_int_equal(heap.bytes, 0);
	}
}

HEAP_TEST(full_queue_gives_no_slot_until_completions_are_polled)
{
	struct sq sq;

	assert_int_equal(sq_init(&sq, &a, 3, 1, 0), 0);
	for (uint32_t round = 0; round < 20; round++) {
		for (uint32_t n = 0; n < 3; n++)
			sq_slot(&sq, n)->wr_id = round * 3 + n;
		assert_int_equal(sq_head(&sq), round * 3); /* a chain becomes visible at once */
		sq_post(&sq, 3);
		assert_int_equal(sq_head(&sq), round * 3 + 3);
		assert_null(sq_slot(&sq, 0));
		for (uint32_t n = 0; n < 3; n++)
			assert_int_equal(sq_at(&sq, round * 3 + n)->wr_id, round * 3 + n);
		sq.una = sq.next = sq_head(&sq);
		assert_null(sq_slot(&sq, 0)); /* completed, but not polled */
		atomic_store(&sq.released, sq_head(&sq));
	}
	sq_reset(&sq);
	assert_int_equal(sq_head(&sq), 0);
	assert_non_null(sq_slot(&sq, 2));
	sq_fini(&sq, &a);
}

HEAP_TEST(indices_wrap_at_32_bits)
{
	struct sq sq;

	assert_int_equal(sq_init(&sq, &a, 4, 1, 0), 0);
	atomic_store(&sq.head, UINT32_MAX - 1);
	atomic_store(&sq.released, UINT32_MAX - 1);
	for (uint32_t n = 0; n < 4; n++)
		assert_ptr_equal(sq_slot(&sq, n), sq_at(&sq, UINT32_MAX - 1 + n));
	assert_null(sq_slot(&sq, 4));
	sq_post(&sq, 4);
	assert_int_equal(sq_head(&sq), 2);
	assert_null(sq_slot(&sq, 0));
	sq_fini(&sq, &a);
}

HEAP_TEST(queue_of_0_is_always_full)
{
	struct sq sq;

	assert_int_equal(sq_init(&sq, &a, 0, 4, 64), 0);
	assert_null(sq_slot(&sq, 0));
	sq_reset(&sq);
	assert_null(sq_slot(&sq, 0));
	assert_int_equal(sq_head(&sq), 0);
	sq_fini(&sq, &a);
}

TEST(no_memory_is_reported)
{
	struct heap heap = {.gets_left = 0};
	struct alloc a = heap_alloc(&heap);
	struct sq sq;

	assert_int_not_equal(sq_init(&sq, &a, 4, 1, 0), 0);
	assert_int_not_equal(sq_init(&sq, &a, UINT32_MAX, 1, 0), 0);
}

/* A poster and a nic that completes and polls at once; what is posted arrives whole and in order. */
enum { WRS = 100000, SLOTS = 64 };

static void *poster(void *arg)
{
	struct sq *sq = arg;
	unsigned looks = 0;

	for (uint64_t i = 0; i < WRS;) {
		struct send_wqe *w = sq_slot(sq, 0);

		if (!w) {
			let_the_other_run(&looks);
			continue;
		}
		w->wr_id = i;
		w->length = (uint32_t)~i;
		sq_post(sq, 1);
		i++;
	}
	return NULL;
}

HEAP_TEST(poster_and_nic_need_no_lock)
{
	struct sq sq;
	unsigned looks = 0;
	pthread_t t;

	assert_int_equal(sq_init(&sq, &a, SLOTS, 1, 0), 0);
	assert_int_equal(pthread_create(&t, NULL, poster, &sq), 0);
	for (uint64_t i = 0; i < WRS;) {
		if (sq_head(&sq) == sq.next) {
			let_the_other_run(&looks);
			continue;
		}

		struct send_wqe *w = sq_at(&sq, sq.next++);

		assert_int_equal(w->wr_id, i);
		assert_int_equal(w->length, (uint32_t)~i);
		atomic_store_explicit(&sq.released, sq.next, memory_order_release);
		i++;
	}
	pthread_join(t, NULL);
	sq_fini(&sq, &a);
}
