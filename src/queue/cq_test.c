/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <time.h>

#include "base/prng.h"
#include "queue/cq.h"
#include "support/heap.h"
#include "support/test.h"

static bool push(struct cq *cq, uint64_t wr_id)
{
	bool fire = false;

	return cq_push(cq, &(struct cqe){.wr_id = wr_id}, &fire);
}

/* The next completion has that index. */
static void start_at(struct cq *cq, uint32_t index)
{
	atomic_store(&cq->state, (uint64_t)index << CQ_HEAD_SHIFT);
	atomic_store(&cq->tail, index);
	atomic_store(&cq->solicited_end, index);
}

TEST(capacity_is_at_least_what_was_asked)
{
	static const uint32_t asked[] = {1, 2, 3, 4, 5, 100, 128, 129};

	for (size_t i = 0; i < sizeof(asked) / sizeof(asked[0]); i++) {
		struct heap heap = HEAP_INIT;
		struct alloc a = heap_alloc(&heap);
		struct cq cq;

		assert_int_equal(cq_init(&cq, &a, asked[i], &heap), 0);
		assert_true(cq.capacity >= asked[i]);
		assert_ptr_equal(cq.owner, &heap);
		assert_true(list_empty(&cq.fired) && list_empty(&cq.event.link));
		for (uint32_t n = 0; n < cq.capacity; n++) {
			assert_int_equal(cq_depth(&cq), n);
			assert_true(push(&cq, n));
		}
		cq_fini(&cq, &a);
		assert_int_equal(heap.bytes, 0);
	}
}

HEAP_TEST(completions_are_polled_in_order_across_the_wrap)
{
	uint64_t in = 0, out = 0;
	struct cq cq;

	assert_int_equal(cq_init(&cq, &a, 4, NULL), 0);
	start_at(&cq, UINT32_MAX - 5);
	for (uint32_t round = 0; round < 20; round++) {
		uint32_t burst = 1 + round % 4;

		for (uint32_t i = 0; i < burst; i++)
			assert_true(push(&cq, in++));
		for (uint32_t i = 0; i < burst; i++)
			assert_int_equal(cq_peek(&cq, i)->wr_id, out++);
		assert_null(cq_peek(&cq, burst));
		cq_consume(&cq, burst);
		assert_null(cq_peek(&cq, 0));
	}
	cq_fini(&cq, &a);
}

HEAP_TEST(overrun_kills_the_queue)
{
	struct cq cq;

	assert_int_equal(cq_init(&cq, &a, 2, NULL), 0);
	for (uint32_t i = 0; i < cq.capacity; i++)
		assert_true(push(&cq, i));
	assert_false(cq.overrun);
	assert_false(push(&cq, 99));
	assert_true(cq.overrun);
	assert_int_equal(cq_peek(&cq, 0)->wr_id, 0); /* what was there can still be read */
	assert_int_equal(cq_peek(&cq, 1)->wr_id, 1);
	cq_consume(&cq, 2);
	assert_false(push(&cq, 100)); /* never a completion after a lost one */
	assert_null(cq_peek(&cq, 0));
	cq_fini(&cq, &a);
}

HEAP_TEST(consuming_hands_back_send_slots)
{
	struct sq sq1, sq2;
	struct cq cq;
	bool fire;

	assert_int_equal(cq_init(&cq, &a, 4, NULL), 0);
	assert_int_equal(sq_init(&sq1, &a, 4, 1, 0), 0);
	assert_int_equal(sq_init(&sq2, &a, 4, 1, 0), 0);
	assert_true(cq_push(&cq, &(struct cqe){.sq = &sq1, .sq_end = 2}, &fire));
	assert_true(cq_push(&cq, &(struct cqe){.sq = &sq2, .sq_end = 1}, &fire));
	assert_true(cq_push(&cq, &(struct cqe){.sq = NULL, .sq_end = 3}, &fire));
	assert_true(cq_push(&cq, &(struct cqe){.sq = &sq1, .sq_end = 4}, &fire));
	cq_consume(&cq, 3);
	assert_int_equal(atomic_load(&sq1.released), 2);
	assert_int_equal(atomic_load(&sq2.released), 1);
	cq_consume(&cq, 1);
	assert_int_equal(atomic_load(&sq1.released), 4);
	sq_fini(&sq1, &a);
	sq_fini(&sq2, &a);
	cq_fini(&cq, &a);
}

TEST(event_fires_once_for_what_was_asked)
{
	enum { NOT = -1, ANY = 0, SOLICITED = 1 };
	static const struct {
		int arm[2]; /* two requests in a row */
		uint32_t status;
		uint8_t solicited;
		bool fires;
	} rows[] = {
		{{NOT, NOT}, WC_SUCCESS, 1, false},      {{NOT, ANY}, WC_SUCCESS, 0, true},
		{{NOT, ANY}, WC_SUCCESS, 1, true},       {{NOT, SOLICITED}, WC_SUCCESS, 0, false},
		{{NOT, SOLICITED}, WC_SUCCESS, 1, true}, {{NOT, SOLICITED}, WC_WR_FLUSH_ERR, 0, true},
		{{ANY, SOLICITED}, WC_SUCCESS, 0, true}, /* IBTA 11.4.2.2: the stronger one stands */
		{{SOLICITED, ANY}, WC_SUCCESS, 0, true}, {{SOLICITED, SOLICITED}, WC_SUCCESS, 0, false},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct heap heap = HEAP_INIT;
		struct alloc a = heap_alloc(&heap);
		struct cqe e = {.status = rows[i].status, .solicited = rows[i].solicited};
		struct cq cq;
		bool fire = false;

		assert_int_equal(cq_init(&cq, &a, 8, NULL), 0);
		for (int k = 0; k < 2; k++) {
			if (rows[i].arm[k] != NOT)
				assert_false(cq_arm(&cq, rows[i].arm[k] == SOLICITED));
		}
		assert_true(cq_push(&cq, &e, &fire));
		assert_int_equal(fire, rows[i].fires);
		if (fire) {
			e.solicited = 1;
			fire = false;
			assert_true(cq_push(&cq, &e, &fire));
			assert_false(fire);
		}
		cq_fini(&cq, &a);
	}
}

static void story_step(struct cq *cq, const char *story, char step)
{
	struct cqe e = {.solicited = step == 's' || step == 'S',
			.status = step == 'e' || step == 'E' ? WC_WR_FLUSH_ERR : WC_SUCCESS};
	bool fire = false;

	switch (step) {
	case 't': cq_consume(cq, 1); break;
	case 'a':
	case 'A':
	case 'o':
	case 'O': fire = cq_arm(cq, step == 'o' || step == 'O'); break;
	default: assert_true(cq_push(cq, &e, &fire));
	}
	if (fire != (step < 'a'))
		fail_msg("%s: at %c", story, step);
}

/*
 * Arming beside completions. Each letter of a story is something that happens: p, s and e push a completion, a
 * solicited one, one in error; t takes the oldest; a arms, o arms for solicited ones alone. What a capital letter does
 * raises an event.
 */
TEST(arming_raises_an_event_for_what_waits)
{
	/* clang-format off */
	static const char *const stories[] = {
		"pA", "ppA", "pta", "pApp", "aPpA",
		/* A completion that is alone raises one event, whether it came to an armed CQ or was there. */
		"aPa", "pAa", "aPatP", "pAaP", "aPptAa", "aPatPatP",
		/* Several raise one whenever the CQ is armed. */
		"pAaPA", "aPpAA", "aPaPA", "aPaPtA",
		/* Only solicited ones and errors count, if others do not interest. */
		"po", "poS", "sO", "eO", "spO", "psO", "spsO",
		"sto", "spto", "spstO", "spsttO", "spsttto", "spOpO",
		"oSo", "oSpO", "oSpto", "pAoS",
		/* The stronger of two requests stands. */
		"aoP", "oaP", "oopS",
	};
	/* clang-format on */

	for (size_t i = 0; i < sizeof(stories) / sizeof(stories[0]); i++) {
		for (uint32_t from = 0; from < 4; from++) {
			struct heap heap = HEAP_INIT;
			struct alloc a = heap_alloc(&heap);
			struct cq cq;

			assert_int_equal(cq_init(&cq, &a, 8, NULL), 0);
			start_at(&cq, 0u - from);
			for (const char *c = stories[i]; *c; c++)
				story_step(&cq, stories[i], *c);
			cq_fini(&cq, &a);
		}
	}
}

/* fire is one flag for a burst: a completion that does not count leaves it as it is. */
HEAP_TEST(fire_is_only_ever_set)
{
	struct cq cq;
	bool fire = true;

	assert_int_equal(cq_init(&cq, &a, 8, NULL), 0);
	assert_true(cq_push(&cq, &(struct cqe){0}, &fire));
	assert_true(fire);
	cq_fini(&cq, &a);
}

HEAP_TEST(purge_drops_one_qp_and_keeps_the_order)
{
	int qp[2];
	struct cq cq;
	bool fire;

	assert_int_equal(cq_init(&cq, &a, 8, NULL), 0);
	start_at(&cq, 6);
	for (uint64_t i = 0; i < 8; i++)
		assert_true(cq_push(&cq, &(struct cqe){.wr_id = i, .qp_owner = &qp[i % 3 == 0]}, &fire));
	cq_purge(&cq, &qp[1]);
	assert_int_equal(cq_depth(&cq), 5);
	static const uint64_t left[] = {1, 2, 4, 5, 7};

	for (uint32_t i = 0; i < 5; i++)
		assert_int_equal(cq_peek(&cq, i)->wr_id, left[i]);
	assert_true(push(&cq, 8));
	cq_purge(&cq, &qp[0]);
	assert_int_equal(cq_depth(&cq), 1);
	assert_int_equal(cq_peek(&cq, 0)->wr_id, 8);
	cq_fini(&cq, &a);
}

HEAP_TEST(purge_leaves_no_trace_of_solicited_ones)
{
	int qp[2];
	struct cq cq;
	bool fire = false;

	assert_int_equal(cq_init(&cq, &a, 8, NULL), 0);
	start_at(&cq, UINT32_MAX - 1);
	for (uint64_t i = 0; i < 6; i++) /* of the first one the second and the fifth, of the other the third */
		assert_true(cq_push(
			&cq, &(struct cqe){.qp_owner = &qp[i == 2 || i == 5], .solicited = i == 1 || i == 2 || i == 4},
			&fire));
	cq_purge(&cq, &qp[0]);
	assert_true(cq_arm(&cq, true));
	cq_consume(&cq, 1);
	assert_false(cq_arm(&cq, true));
	cq_purge(&cq, &qp[1]);
	assert_false(cq_arm(&cq, false));
	/* What a completion that is gone has raised is no event of the one that is left. */
	assert_true(cq_push(&cq, &(struct cqe){.qp_owner = &qp[0]}, &fire));
	assert_true(fire);
	assert_true(cq_push(&cq, &(struct cqe){.qp_owner = &qp[1]}, &fire));
	cq_purge(&cq, &qp[0]);
	assert_true(cq_arm(&cq, false));
	cq_fini(&cq, &a);
}

TEST(resize_keeps_what_was_not_polled)
{
	static const uint32_t sizes[] = {8, 64, 16, 5, 300, 8};
	struct heap heap = HEAP_INIT;
	struct alloc a = heap_alloc(&heap);
	struct cq cq;

	assert_int_equal(cq_init(&cq, &a, 8, NULL), 0);
	start_at(&cq, UINT32_MAX - 1);
	for (uint64_t i = 0; i < 5; i++)
		assert_true(push(&cq, i));
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		assert_int_equal(cq_resize(&cq, &a, sizes[i]), 0);
		assert_true(cq.capacity >= sizes[i]);
		for (uint32_t k = 0; k < 5; k++)
			assert_int_equal(cq_peek(&cq, k)->wr_id, k);
		assert_null(cq_peek(&cq, 5));
	}
	assert_int_equal(cq_resize(&cq, &a, 4), -EINVAL);
	heap.gets_left = 0;
	assert_int_equal(cq_resize(&cq, &a, 100), -ENOMEM);
	assert_int_equal(cq_depth(&cq), 5);
	cq_fini(&cq, &a);
	assert_int_equal(heap.bytes, 0);
}

/*
 * A program that empties the queue, asks for an event and sleeps, without another look, beside a nic that
 * pushes one completion at a time at odd moments: a lost event would leave the program asleep with a
 * completion in the queue.
 */
enum { EVENTS = 10000, TAKEN = 50000 };

struct channel {
	struct cq cq;
	sem_t wake;
	_Atomic uint32_t polled;
	_Atomic bool over;
	bool solicited_only;
	uint32_t idle_events; /* that found no completion */
};

static void dawdle(struct prng *r)
{
	for (uint64_t n = prng_below(r, 200); n; n--)
		__asm__ volatile("" ::: "memory");
}

static uint32_t drain(struct channel *c)
{
	uint32_t n = 0;

	while (cq_peek(&c->cq, n))
		n++;
	cq_consume(&c->cq, n);
	atomic_store(&c->polled, atomic_load(&c->polled) + n);
	return n;
}

/* False: for ever. */
static bool sleeps_well(struct channel *c)
{
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += 10;
	return !sem_timedwait(&c->wake, &until);
}

static void *program(void *arg)
{
	struct channel *c = arg;
	struct prng r;

	prng_init(&r, 1);
	while (atomic_load(&c->polled) < EVENTS) {
		if (drain(c))
			dawdle(&r);
		if (atomic_load(&c->polled) < EVENTS && !cq_arm(&c->cq, c->solicited_only) && !sleeps_well(c))
			break;
	}
	atomic_store(&c->over, true);
	return NULL;
}

HEAP_TEST(no_event_is_lost_between_arm_and_poll)
{
	struct prng r;

	prng_init(&r, 2);
	for (int solicited = 0; solicited < 2; solicited++) {
		struct channel c = {.solicited_only = solicited};
		pthread_t t;

		assert_int_equal(cq_init(&c.cq, &a, 16, NULL), 0);
		assert_int_equal(sem_init(&c.wake, 0, 0), 0);
		assert_int_equal(pthread_create(&t, NULL, program, &c), 0);
		for (uint32_t i = 0; i < EVENTS && !atomic_load(&c.over); i++) {
			struct cqe e = {.wr_id = i, .solicited = 1};
			bool fire = false;

			assert_true(cq_push(&c.cq, &e, &fire));
			if (fire)
				sem_post(&c.wake);
			while (atomic_load(&c.polled) <= i && !atomic_load(&c.over))
				;
			dawdle(&r);
		}
		pthread_join(t, NULL);
		assert_int_equal(atomic_load(&c.polled), EVENTS);
		sem_destroy(&c.wake);
		cq_fini(&c.cq, &a);
	}
}

/*
 * A program that takes an event, asks for the next and polls one completion, as perftest's latency tests do:
 * no event may find the queue empty.
 */
static void *taker(void *arg)
{
	struct channel *c = arg;
	struct prng r;

	prng_init(&r, 3);
	while (atomic_load(&c->polled) < TAKEN) {
		if (!sleeps_well(c))
			break;
		if (cq_arm(&c->cq, false))
			sem_post(&c->wake);
		if (!cq_peek(&c->cq, 0)) {
			c->idle_events++;
			continue;
		}
		cq_consume(&c->cq, 1);
		atomic_store(&c->polled, atomic_load(&c->polled) + 1);
		dawdle(&r);
	}
	atomic_store(&c->over, true);
	return NULL;
}

HEAP_TEST(a_completion_raises_one_event)
{
	struct channel c = {};
	struct prng r;
	pthread_t t;

	prng_init(&r, 4);
	assert_int_equal(cq_init(&c.cq, &a, 16, NULL), 0);
	assert_int_equal(sem_init(&c.wake, 0, 0), 0);
	assert_false(cq_arm(&c.cq, false));
	assert_int_equal(pthread_create(&t, NULL, taker, &c), 0);
	for (uint32_t i = 0; i < TAKEN && !atomic_load(&c.over); i++) {
		bool fire = false;

		assert_true(cq_push(&c.cq, &(struct cqe){.wr_id = i}, &fire));
		if (fire)
			sem_post(&c.wake);
		while (atomic_load(&c.polled) <= i && !atomic_load(&c.over))
			;
		dawdle(&r);
	}
	pthread_join(t, NULL);
	assert_int_equal(atomic_load(&c.polled), TAKEN);
	assert_int_equal(c.idle_events, 0);
	sem_destroy(&c.wake);
	cq_fini(&c.cq, &a);
}
