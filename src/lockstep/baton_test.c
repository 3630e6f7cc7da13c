/* SPDX-License-Identifier: BSD-2-Clause */
/* Threads that run one at a time. The library is a part of this program, so its calls come first here too. */
#include "lockstep/baton.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "lockstep/lockstep.h"
#include "support/test.h"

enum {
	THREADS = 4,
	MANY = 1100,
	LOOK_US = 50000,
	LIMIT_NS = 1000,
	NOW_NS = 5,
	READS = 10000,
	READS_FREE = 4096,
	STEPS = 30000000
};

static _Atomic unsigned wanting, running, may_end;
static _Atomic uintptr_t ran[THREADS];
static atomic_bool passed;
static _Atomic pid_t looked_at;
static _Atomic unsigned idles;
static volatile int changed;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

/* Before the library looks for the page. */
__attribute__((constructor(101))) static void make_page(void)
{
	int fd = memfd_create("page", 0);
	struct lockstep_page page = {.magic = LOCKSTEP_MAGIC, .now_ns = NOW_NS};
	char text[24];

	if (fd < 0 || write(fd, &page, sizeof(page)) != sizeof(page))
		_exit(1);
	snprintf(text, sizeof(text), "%d,%d", fd, fd);
	setenv(LOCKSTEP_VARIABLE, text, 1);
}

/* Past the library, which stands before libc's. */
static void sleep_us(long us)
{
	syscall(SYS_nanosleep, &(struct timespec){0, us * 1000}, NULL);
}

static void *nothing(void *arg)
{
	if (arg)
		pthread_exit(arg);
	return NULL;
}

TEST(threads_that_have_ended_make_room_for_others)
{
	pthread_t thread;

	for (int i = 0; i < MANY; i++) {
		assert_int_equal(pthread_create(&thread, NULL, nothing, i % 2 ? &thread : NULL), 0);
		assert_int_equal(pthread_join(thread, NULL), 0);
	}
}

static void wants(void *ctx)
{
	wanting++;
}

static void *run(void *number)
{
	ran[running++] = (uintptr_t)number;
	while (may_end < running)
		sleep_us(100);
	return NULL;
}

/* It runs as the engine's thread does: beside those that wait for the baton. */
static void *pass_baton(void *arg)
{
	pthread_t threads[THREADS];

	for (uintptr_t i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, run, (void *)i), 0);
	while (wanting < THREADS)
		sleep_us(100);
	assert_int_equal(running, 0);
	for (unsigned i = 0; i < THREADS; i++) {
		assert_true(verbena_baton.pass());
		while (running == i)
			sleep_us(100);
		sleep_us(LOOK_US);
		assert_int_equal(running, i + 1);
		assert_true(ran[i] == i);
		may_end = i + 1;
		pthread_join(threads[i], NULL);
	}
	assert_false(verbena_baton.pass());
	passed = true;
	return NULL;
}

static void as_engine(void *(*run_engine)(void *))
{
	pthread_t engine;

	passed = false;
	verbena_baton.wants = wants;
	verbena_baton.begin();
	assert_int_equal(pthread_create(&engine, NULL, run_engine, NULL), 0);
	while (!passed)
		sleep_us(100);
	verbena_baton.end();
}

TEST(the_baton_is_one_thread_s_at_a_time_in_the_order_of_creation)
{
	as_engine(pass_baton);
}

static void *wait_with_limit(void *result)
{
	struct timespec t = {.tv_nsec = LIMIT_NS + 5 * running++};

	pthread_mutex_lock(&mutex);
	*(int *)result = pthread_cond_timedwait(&condition, &mutex, &t);
	pthread_mutex_unlock(&mutex);
	return NULL;
}

/* The next that wants the baton gets it. */
static void pass_one(void)
{
	while (!verbena_baton.pass())
		sleep_us(100);
}

static void *limit_threads(void *arg)
{
	pthread_t threads[2];
	int results[2];

	running = 0;
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(pthread_create(&threads[i], NULL, wait_with_limit, &results[i]), 0);
		pass_one();
		while (verbena_baton.next_ns() == UINT64_MAX || running == i)
			sleep_us(100);
		sleep_us(LOOK_US);
	}
	assert_int_equal(verbena_baton.next_ns(), LIMIT_NS);
	pthread_cond_signal(&condition);
	pass_one();
	pthread_join(threads[0], NULL);
	assert_int_equal(results[0], 0);
	assert_int_equal(verbena_baton.next_ns(), LIMIT_NS + 5);
	verbena_baton.expire(LIMIT_NS + 4);
	sleep_us(LOOK_US);
	assert_false(verbena_baton.pass());
	verbena_baton.expire(LIMIT_NS + 5);
	pass_one();
	pthread_join(threads[1], NULL);
	assert_int_equal(results[1], ETIMEDOUT);
	assert_true(verbena_baton.next_ns() == UINT64_MAX);
	passed = true;
	return NULL;
}

TEST(a_limit_ends_a_wait_unless_what_it_waits_for_has_come)
{
	as_engine(limit_threads);
}

TEST(a_clock_that_is_read_on_and_on_goes_on)
{
	struct timespec t;
	long first_ns;

	clock_gettime(CLOCK_MONOTONIC, &t);
	first_ns = t.tv_nsec;
	for (int i = 0; i < READS; i++) {
		clock_gettime(CLOCK_MONOTONIC, &t);
		if (i < READS_FREE - 100)
			assert_int_equal(t.tv_nsec, first_ns);
	}
	assert_in_range(t.tv_nsec, first_ns + 20 * (READS - READS_FREE), first_ns + 100 * READS);
}

#ifdef __x86_64__

/* A thread that does not take part sees the page's time. */
static void *read_counter(void *out)
{
	*(uint64_t *)out = __builtin_ia32_rdtsc();
	return NULL;
}

TEST(the_processor_s_counter_is_simulated_time)
{
	uint64_t ns = 0;
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, read_counter, &ns), 0);
	pthread_join(thread, NULL);
	assert_int_equal(ns, NOW_NS);
}

static void is_idle(void *ctx)
{
	idles++;
	verbena_baton.take();
}

static void *read_memory(void *unused)
{
	looked_at = gettid();
	while (!changed)
		;
	return NULL;
}

static void *compute(void *result)
{
	uint64_t x = 1;

	looked_at = gettid();
	for (uint64_t i = 0; i < STEPS; i++)
		x = (x ^ i) * 0x5851f42d4c957f2d;
	*(uint64_t *)result = x;
	looked_at = 0;
	return NULL;
}

static void *look_at_threads(void *unused)
{
	pthread_t thread;
	uint64_t result;

	looked_at = 0;
	assert_int_equal(pthread_create(&thread, NULL, compute, &result), 0);
	pass_one();
	while (!looked_at)
		sleep_us(100);
	for (pid_t tid; (tid = looked_at); sleep_us(100))
		verbena_baton.look_at(tid);
	pthread_join(thread, NULL);
	assert_int_equal(idles, 0);

	assert_int_equal(pthread_create(&thread, NULL, read_memory, NULL), 0);
	pass_one();
	while (!looked_at)
		sleep_us(100);
	for (; !idles; sleep_us(100))
		verbena_baton.look_at(looked_at);
	changed = 1;
	pass_one();
	pthread_join(thread, NULL);
	passed = true;
	return NULL;
}

TEST(a_thread_that_reads_memory_until_that_changes_sleeps_and_one_that_computes_does_not)
{
	verbena_baton.idle = is_idle;
	as_engine(look_at_threads);
}

#endif

TEST_PROGRAM(NULL, NULL)
