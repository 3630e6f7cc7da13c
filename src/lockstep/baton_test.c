/* SPDX-License-Identifier: BSD-2-Clause */
/* Threads that run one at a time. The library is a part of this program, so its calls come first here too. */
#include "lockstep/baton.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "lockstep/lockstep.h"
#include "support/test.h"

enum { THREADS = 4, MANY = 1100, LOOK_US = 50000 };

static _Atomic unsigned wanting, running, may_end;
static _Atomic uintptr_t ran[THREADS];

/* Before the library looks for the page. */
__attribute__((constructor(101))) static void make_page(void)
{
	int fd = memfd_create("page", 0);
	struct lockstep_page page = {.magic = LOCKSTEP_MAGIC, .now_ns = 5};
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

TEST(the_baton_is_one_thread_s_at_a_time_in_the_order_of_creation)
{
	pthread_t threads[THREADS];

	verbena_baton.wants = wants;
	verbena_baton.begin();
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
}

TEST_PROGRAM(NULL, NULL)
