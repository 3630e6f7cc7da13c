/* SPDX-License-Identifier: BSD-2-Clause */
/* Threads of all three kinds use one lock; no two hold it at once and no work is lost. */
#include "engine/lock.h"
#include "support/test.h"

#include <pthread.h>
#include <sched.h>

enum { POSTERS = 3, POSTS = 60000, WAITS = 3000 };

static struct lock lock;
static _Atomic uint64_t posted; /* work left behind */
static uint64_t done;           /* under the lock */
static int inside;              /* under the lock */
static _Atomic int errors;
static _Atomic int stop;

static void work(void)
{
	if (inside++)
		atomic_fetch_add(&errors, 1);
	done = atomic_load(&posted);
	if (--inside)
		atomic_fetch_add(&errors, 1);
}

static void leave(void)
{
	do {
		work();
	} while (!lock_release(&lock));
}

static void *poster(void *arg)
{
	for (int i = 0; i < POSTS; i++) {
		atomic_fetch_add(&posted, 1);
		if (lock_take_or_pend(&lock))
			leave();
		if (i % 64 == 0)
			sched_yield();
	}
	return NULL;
}

static void *poller(void *arg)
{
	for (unsigned int bounces = 0; !atomic_load(&stop);) {
		if (lock_try(&lock) || (++bounces % 64 == 0 && lock_pass(&lock)))
			leave();
	}
	return NULL;
}

static void *waiter(void *arg)
{
	for (int i = 0; i < WAITS; i++) {
		lock_wait(&lock);
		work();
		if (i % 16 == 0)
			sched_yield(); /* let others queue up behind a holder that is not running */
		while (!lock_release(&lock))
			work();
	}
	return NULL;
}

TEST(no_work_is_lost_and_waiters_do_not_starve)
{
	pthread_t p[POSTERS], w[2], poll;

	lock_init(&lock);
	atomic_store(&posted, 0);
	pthread_create(&poll, NULL, poller, NULL);
	for (int i = 0; i < POSTERS; i++)
		pthread_create(&p[i], NULL, poster, NULL);
	for (int i = 0; i < 2; i++)
		pthread_create(&w[i], NULL, waiter, NULL);
	for (int i = 0; i < POSTERS; i++)
		pthread_join(p[i], NULL);
	for (int i = 0; i < 2; i++)
		pthread_join(w[i], NULL);
	atomic_store(&stop, 1);
	pthread_join(poll, NULL);

	assert_int_equal(errors, 0);
	assert_int_equal(lock.word, 0);
	/* The poller may have done it; without the poller the work would still be done. */
	assert_int_equal(done, (uint64_t)POSTERS * POSTS);
}

TEST(work_left_without_a_poller_is_done_by_the_holder)
{
	pthread_t p[POSTERS];

	lock_init(&lock);
	atomic_store(&posted, 0);
	for (int i = 0; i < POSTERS; i++)
		pthread_create(&p[i], NULL, poster, NULL);
	for (int i = 0; i < POSTERS; i++)
		pthread_join(p[i], NULL);
	assert_int_equal(errors, 0);
	assert_int_equal(done, (uint64_t)POSTERS * POSTS);
}

TEST(takers_give_way_to_a_waiter)
{
	lock_init(&lock);
	atomic_store(&lock.word, LOCK_WAITER);
	assert_false(lock_try(&lock));
	assert_false(lock_take_or_pend(&lock));
	assert_int_equal(lock.word, LOCK_WAITER | LOCK_PENDING);
	assert_true(lock_is_wanted(&lock));
}

/* The waiter sleeps and has no processor to wake up on; it gets the lock when it has one. */
TEST(waiter_that_does_not_come_is_passed)
{
	lock_init(&lock);
	atomic_store(&lock.word, LOCK_WAITER);
	assert_false(lock_take_or_pend(&lock)); /* with work left for it */
	assert_true(lock_pass(&lock));
	assert_false(lock_pass(&lock));
	assert_int_equal(lock.word, LOCK_WAITER | LOCK_PENDING | LOCK_HELD);
	assert_false(lock_release(&lock));
	assert_true(lock_release(&lock));
	assert_int_equal(lock.word, LOCK_WAITER);
	atomic_store(&lock.word, 0);
	assert_true(lock_pass(&lock));
	assert_true(lock_release(&lock));
}

TEST(release_keeps_the_lock_while_work_is_pending)
{
	lock_init(&lock);
	assert_true(lock_try(&lock));
	assert_false(lock_try(&lock));
	assert_false(lock_take_or_pend(&lock));
	assert_false(lock_release(&lock));
	assert_int_equal(lock.word, LOCK_HELD);
	assert_true(lock_release(&lock));
	assert_true(lock_take_or_pend(&lock));
	assert_true(lock_release(&lock));
}
