/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <pthread.h>

#include "base/prng.h"
#include "queue/rq.h"
#include "support/handover.h"
#include "support/heap.h"
#include "support/test.h"

static void post(struct rq *rq, uint64_t wr_id)
{
	struct recv_wqe *w = rq_slot(rq);

	assert_non_null(w);
	w->wr_id = wr_id;
	rq_post(rq, w);
}

HEAP_TEST(wqes_are_taken_in_the_order_posted)
{
	struct rq rq;

	assert_int_equal(rq_init(&rq, &a, 5, 2), 0);
	assert_null(rq_take(&rq));
	assert_null(rq_peek(&rq));
	for (uint64_t round = 0; round < 50; round++) {
		for (uint64_t i = 0; i < 5; i++)
			post(&rq, round * 5 + i);
		assert_null(rq_slot(&rq));
		assert_int_equal(rq_posted(&rq), 5);
		for (uint64_t i = 0; i < 5; i++) {
			const struct recv_wqe *next = rq_peek(&rq);
			struct recv_wqe *w = rq_take(&rq);

			assert_ptr_equal(w, next);
			assert_int_equal(w->wr_id, round * 5 + i);
			assert_null(rq_slot(&rq)); /* taken is not yet free */
			rq_release(&rq, w);
			assert_non_null(rq_slot(&rq));
			post(&rq, 0);
			assert_null(rq_slot(&rq));
		}
		for (int i = 0; i < 5; i++)
			rq_release(&rq, rq_take(&rq));
	}
	rq_fini(&rq, &a);
}

HEAP_TEST(unposted_slot_is_given_again)
{
	struct rq rq;

	assert_int_equal(rq_init(&rq, &a, 2, 1), 0);
	struct recv_wqe *w = rq_slot(&rq);

	assert_ptr_equal(rq_slot(&rq), w);
	rq_post(&rq, w);
	assert_ptr_not_equal(rq_slot(&rq), w);
	rq_fini(&rq, &a);
}

/* What is taken stays where it is, what is posted comes in its order, and no slot is lost or given out twice. */
TEST(resized_queue_keeps_what_is_in_it)
{
	enum { WQES_MAX = 40, STEPS = 20000 };
	struct heap heap = HEAP_INIT;
	struct alloc a = heap_alloc(&heap);
	struct recv_wqe *held[WQES_MAX];
	struct rq_slots before = {0};
	uint64_t posted = 0, taken = 0, ids[WQES_MAX];
	uint32_t n = 0, capacity = 10, resized = 0, busy = 0;
	struct prng r;
	struct rq rq;

	prng_init(&r, 5);
	assert_int_equal(rq_init(&rq, &a, capacity, 2), 0);
	for (int step = 0; step < STEPS; step++) {
		uint32_t want = 1 + prng_below(&r, WQES_MAX), used = (uint32_t)(posted - taken) + n;
		int err;

		switch (prng_below(&r, 8)) {
		case 0:
			err = rq_resize(&rq, &a, want, &before);
			if (!err)
				capacity = want;
			assert_int_equal(err == -EINVAL, want < used);
			assert_true(err != -EBUSY || n);
			resized += !err;
			busy += err == -EBUSY;
			break;
		case 1:
		case 2:
			assert_int_equal(rq_slot(&rq) != NULL, used < capacity);
			if (used < capacity)
				post(&rq, posted++);
			break;
		case 3:
		case 4:
			assert_int_equal(rq_peek(&rq) != NULL, posted != taken);
			if (posted == taken)
				break;
			held[n] = rq_take(&rq);
			ids[n++] = taken;
			assert_int_equal(held[n - 1]->wr_id, taken++);
			break;
		default:
			if (!n)
				break;
			want = prng_below(&r, n);
			assert_int_equal(held[want]->wr_id, ids[want]);
			rq_release(&rq, held[want]);
			held[want] = held[--n];
			ids[want] = ids[n];
		}
	}
	assert_true(resized > 100 && busy > 0);
	rq_fini(&rq, &a);
	rq_slots_free(&before, &a);
	assert_int_equal(heap.bytes, 0);
}

TEST(queue_that_cannot_be_resized_stays)
{
	struct heap heap = HEAP_INIT;
	struct alloc a = heap_alloc(&heap);
	struct rq_slots before = {0};
	struct rq rq;

	assert_int_equal(rq_init(&rq, &a, 4, 1), 0);
	post(&rq, 1);
	for (int64_t gets = 0; gets < 3; gets++) {
		heap.gets_left = gets;
		assert_int_equal(rq_resize(&rq, &a, 100, &before), -ENOMEM);
	}
	heap.gets_left = -1;
	assert_int_equal(rq.capacity, 4);
	assert_int_equal(rq_take(&rq)->wr_id, 1);
	rq_fini(&rq, &a);
	assert_int_equal(heap.bytes, 0);
}

/* The property an SRQ needs: WQEs come back in any order, and none is given out twice. */
HEAP_TEST(wqes_come_back_in_any_order)
{
	enum { WQES = 37, STEPS = 100000 };
	struct recv_wqe *held[WQES];
	uint64_t posted = 0, taken = 0;
	uint32_t n = 0;
	struct prng r;
	struct rq rq;

	prng_init(&r, 11);
	assert_int_equal(rq_init(&rq, &a, WQES, 3), 0);
	for (int i = 0; i < STEPS; i++) {
		switch (prng_below(&r, 3)) {
		case 0: {
			struct recv_wqe *w = rq_slot(&rq);

			assert_int_equal(!w, posted - taken + n == WQES);
			if (!w)
				break;
			for (uint32_t k = 0; k < n; k++)
				assert_ptr_not_equal(w, held[k]);
			w->wr_id = posted++;
			memset(w->sge, 0xa5, 3 * sizeof(w->sge[0]));
			rq_post(&rq, w);
			break;
		}
		case 1: {
			struct recv_wqe *w = rq_take(&rq);

			assert_int_equal(!w, posted == taken);
			if (!w)
				break;
			assert_int_equal(w->wr_id, taken++);
			held[n++] = w;
			break;
		}
		default:
			if (n) {
				uint32_t k = (uint32_t)prng_below(&r, n);

				rq_release(&rq, held[k]);
				held[k] = held[--n];
			}
		}
		assert_int_equal(rq_posted(&rq), posted - taken);
	}
	rq_fini(&rq, &a);
}

HEAP_TEST(reset_frees_every_slot)
{
	struct rq rq;

	assert_int_equal(rq_init(&rq, &a, 6, 1), 0);
	for (int round = 0; round < 3; round++) {
		for (uint64_t i = 0; i < 6; i++)
			post(&rq, i);
		rq_release(&rq, rq_take(&rq));
		rq_reset(&rq);
		assert_int_equal(rq_posted(&rq), 0);
		assert_null(rq_take(&rq));
	}
	rq_fini(&rq, &a);
}

HEAP_TEST(queue_of_0_is_always_full)
{
	struct rq rq;

	assert_int_equal(rq_init(&rq, &a, 0, 4), 0);
	assert_null(rq_slot(&rq));
	assert_null(rq_take(&rq));
	assert_int_equal(rq_posted(&rq), 0);
	rq_reset(&rq);
	assert_null(rq_slot(&rq));
	rq_fini(&rq, &a);
}

TEST(failed_init_gives_back_what_it_got)
{
	for (int gets = 0; gets < 2; gets++) {
		struct heap heap = {.gets_left = gets};
		struct alloc a = heap_alloc(&heap);
		struct rq rq;

		assert_int_not_equal(rq_init(&rq, &a, 6, 1), 0);
		assert_int_equal(heap.blocks, 0);
		assert_int_equal(heap.bytes, 0);
	}
}

enum { WRS = 100000, SLOTS = 64 };

static void *poster(void *arg)
{
	struct rq *rq = arg;
	unsigned looks = 0;

	for (uint64_t i = 0; i < WRS;) {
		struct recv_wqe *w = rq_slot(rq);

		if (!w) {
			let_the_other_run(&looks);
			continue;
		}
		w->wr_id = i;
		w->length = ~i;
		rq_post(rq, w);
		i++;
	}
	return NULL;
}

HEAP_TEST(poster_and_nic_need_no_lock)
{
	struct rq rq;
	unsigned looks = 0;
	pthread_t t;

	assert_int_equal(rq_init(&rq, &a, SLOTS, 1), 0);
	assert_int_equal(pthread_create(&t, NULL, poster, &rq), 0);
	for (uint64_t i = 0; i < WRS;) {
		struct recv_wqe *w = rq_take(&rq);

		if (!w) {
			let_the_other_run(&looks);
			continue;
		}
		assert_int_equal(w->wr_id, i);
		assert_true(w->length == ~i);
		rq_release(&rq, w);
		i++;
	}
	pthread_join(t, NULL);
	rq_fini(&rq, &a);
}
