/* SPDX-License-Identifier: BSD-2-Clause */
/* Threads that sleep, run, and wake each other. */
#include "engine/asleep.h"

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "support/test.h"

enum { ROUNDS = 20000, LOOKS = 200 };

static struct asleep looks;
static sem_t go[2];
static atomic_bool runs;
static _Atomic unsigned round_now;

/* A sight of sleep may take a while to come: the thread is on its way there. */
static void until_asleep(void)
{
	while (!asleep_all(&looks))
		usleep(100);
}

static void *spin(void *unused)
{
	sem_wait(&go[0]);
	while (atomic_load(&runs))
		;
	sem_wait(&go[0]);
	return NULL;
}

TEST(one_thread_that_runs_is_enough)
{
	pthread_t thread;

	assert_int_equal(asleep_open(&looks), 0);
	assert_true(asleep_all(&looks)); /* there is none */
	runs = true;
	sem_init(&go[0], 0, 0);
	assert_int_equal(pthread_create(&thread, NULL, spin, NULL), 0);
	until_asleep();
	sem_post(&go[0]);
	for (int i = 0; i < LOOKS; i++)
		assert_false(asleep_all(&looks));
	runs = false;
	until_asleep();
	sem_post(&go[0]);
	pthread_join(thread, NULL);
	asleep_close(&looks);
}

static void *pass_on(void *which)
{
	unsigned i = which != NULL;

	while (round_now < ROUNDS) {
		sem_wait(&go[i]);
		round_now++;
		sem_post(&go[!i]);
	}
	sem_post(&go[!i]);
	return NULL;
}

/* Of two threads that wake each other in turns one is always awake, although at each sight of one it may sleep. */
TEST(threads_that_wake_each_other_are_never_all_asleep)
{
	pthread_t threads[2];

	assert_int_equal(asleep_open(&looks), 0);
	sem_init(&go[0], 0, 0);
	sem_init(&go[1], 0, 0);
	for (int i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, pass_on, i ? "b" : NULL), 0);
	until_asleep();
	assert_int_equal(round_now, 0);
	sem_post(&go[0]);
	while (round_now < ROUNDS)
		if (asleep_all(&looks))
			assert_true(round_now >= ROUNDS);
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	asleep_close(&looks);
}

TEST_PROGRAM(NULL, NULL)
