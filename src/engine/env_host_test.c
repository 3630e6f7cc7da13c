/* SPDX-License-Identifier: BSD-2-Clause */
/* The environment of an engine on this host: what ends its waits, and what it says of threads. */
#include "engine/env.h"
#include "support/test.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { LOOKS = 20000, MS = 1000000, EVENTS = 4, STUCK_S = 600 };

static struct env_host host;
static struct engine_env *const env = &host.env;
static struct env_event events[EVENTS];

static int open_host(void **state)
{
	alarm(STUCK_S); /* a wait that nothing ends */
	return env_host_open(&host);
}

static int close_host(void **state)
{
	env->close(env);
	return 0;
}

TEST(a_wait_until_a_time_ends_no_sooner)
{
	uint64_t until_ns = env_now_ns(env) + 3 * MS;

	assert_int_equal(env->wait(env, until_ns, events, EVENTS), 0);
	assert_true(env_now_ns(env) >= until_ns);
	assert_int_equal(env->wait(env, 0, events, EVENTS), 0);
}

/* A deadline is as far away after the stop as it was before. */
TEST(time_that_stands_goes_on_from_there)
{
	uint64_t stood_at_ns, clock_ns, behind_ns;

	env_stop_time(env);
	stood_at_ns = env_now_ns(env);
	clock_ns = env->now_ns(env);
	while (env->now_ns(env) < clock_ns + 2 * MS)
		assert_true(env_now_ns(env) == stood_at_ns);
	env_let_time_go_on(env);
	assert_true(env_now_ns(env) >= stood_at_ns);
	behind_ns = env_clock_ns(env, stood_at_ns) - stood_at_ns;
	assert_true(behind_ns >= 2 * MS);
	assert_true(env->now_ns(env) - env_now_ns(env) <= behind_ns);
	assert_true(env_clock_ns(env, UINT64_MAX) == UINT64_MAX);
	/* A second time adds to the first. */
	env_stop_time(env);
	env_let_time_go_on(env);
	assert_true(env_clock_ns(env, 0) >= behind_ns);
	env->behind_ns = 0;
}

/* A descriptor that another process has too is watched until it is not wanted any more. */
TEST(an_unwatched_descriptor_ends_no_wait)
{
	int ends[2], other;

	assert_int_equal(pipe(ends), 0);
	other = dup(ends[0]);
	assert_int_equal(env->watch(env, ends[0], true), 0);
	assert_int_equal(write(ends[1], "x", 1), 1);
	assert_int_equal(env->wait(env, UINT64_MAX, events, EVENTS), 1);
	env->unwatch(env, ends[0]);
	close(ends[0]);
	assert_int_equal(env->wait(env, 0, events, EVENTS), 0);
	close(other);
	close(ends[1]);
}

/* The thread may be about to wait. */
TEST(a_wake_counts_before_the_wait_too_and_once)
{
	uint64_t until_ns;

	errno = ENOENT;
	env->wake(env);
	env->wake(env);
	assert_int_equal(errno, ENOENT);
	assert_int_equal(env->wait(env, UINT64_MAX, events, EVENTS), 0);
	until_ns = env_now_ns(env) + 3 * MS;
	assert_int_equal(env->wait(env, until_ns, events, EVENTS), 0);
	assert_true(env_now_ns(env) >= until_ns);
}

static void *wake_later(void *arg)
{
	env->pause(env, 3 * MS);
	env->wake(env);
	return NULL;
}

TEST(a_wake_ends_a_wait_that_lasts)
{
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, wake_later, NULL), 0);
	assert_int_equal(env->wait(env, UINT64_MAX, events, EVENTS), 0);
	pthread_join(thread, NULL);
}

/* What is watched only for its end has none while there is something to read. */
TEST(a_watched_descriptor_ends_a_wait)
{
	int read[2], hup[2];

	assert_int_equal(pipe(read) | pipe(hup), 0);
	assert_int_equal(env->watch(env, read[0], true), 0);
	assert_int_equal(env->watch(env, hup[0], false), 0);
	assert_int_equal(env->watch(env, -1, false), -EBADF);
	assert_int_equal(env->watch(env, hup[0], true) + env->watch(env, hup[0], false), 0);
	assert_int_equal(write(hup[1], "", 1), 1);
	assert_int_equal(env->wait(env, 0, events, EVENTS), 0);
	assert_int_equal(write(read[1], "", 1), 1);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(env->wait(env, UINT64_MAX, events, EVENTS), 1);
		assert_int_equal(events[0].fd, read[0]);
		assert_false(events[0].hung_up);
	}
	close(read[0]);
	close(hup[1]);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(env->wait(env, UINT64_MAX, events, EVENTS), 1);
		assert_int_equal(events[0].fd, hup[0]);
		assert_true(events[0].hung_up);
	}
	close(read[1]);
	close(hup[0]);
}

static _Atomic uint32_t word;

static void *change_word(void *arg)
{
	env->pause(env, 3 * MS);
	atomic_store(&word, 2);
	env->end_nap(env, &word);
	return NULL;
}

TEST(a_nap_ends_by_time_or_when_the_word_changes)
{
	uint64_t until_ns = env_now_ns(env) + 3 * MS;
	pthread_t thread;

	atomic_store(&word, 1);
	env->nap(env, &word, 0, UINT64_MAX);
	while (env_now_ns(env) < until_ns)
		env->nap(env, &word, 1, until_ns);
	assert_int_equal(pthread_create(&thread, NULL, change_word, NULL), 0);
	while (atomic_load(&word) == 1)
		env->nap(env, &word, 1, INT64_MAX);
	pthread_join(thread, NULL);
}

static _Atomic int64_t ahead_s; /* of this program's clock */

/* In place of libc's. */
int clock_gettime(clockid_t clock, struct timespec *t)
{
	int rc = (int)syscall(SYS_clock_gettime, clock, t);

	t->tv_sec += clock == CLOCK_MONOTONIC ? atomic_load(&ahead_s) : 0;
	return rc;
}

/* Libraries stand before libc that give it to a program. */
TEST(a_program_may_have_another_clock_than_the_kernel)
{
	atomic_store(&word, 1);
	atomic_store(&ahead_s, 24 * 3600); /* a wait until a time of that clock is one of a day */
	env->nap(env, &word, 1, env_now_ns(env) + 3 * MS);
	env->wait(env, env_now_ns(env) + 3 * MS, events, EVENTS);
	atomic_store(&ahead_s, 0);
}

/* ---- threads ---- */

struct worker {
	pthread_t thread;
	_Atomic pid_t tid;
	_Atomic bool end;
	int policy; /* -1: it sleeps */
	int cpu;
	int pipe[2];
};

static void *work(void *arg)
{
	struct worker *w = arg;
	cpu_set_t cpus;
	char c;

	CPU_ZERO(&cpus);
	CPU_SET(w->cpu, &cpus);
	sched_setaffinity(0, sizeof(cpus), &cpus);
	if (w->policy >= 0)
		sched_setscheduler(0, w->policy, &(struct sched_param){0});
	atomic_store(&w->tid, env_self());
	if (w->policy < 0)
		(void)!read(w->pipe[0], &c, 1);
	while (!atomic_load(&w->end))
		;
	return NULL;
}

static void begin(struct worker *w, int policy, int cpu)
{
	w->policy = policy;
	w->cpu = cpu;
	assert_int_equal(pipe(w->pipe), 0);
	assert_int_equal(pthread_create(&w->thread, NULL, work, w), 0);
	while (!atomic_load(&w->tid))
		usleep(100);
}

static void end(struct worker *w)
{
	atomic_store(&w->end, true);
	assert_int_equal(write(w->pipe[1], "", 1), 1);
	pthread_join(w->thread, NULL);
	close(w->pipe[0]);
	close(w->pipe[1]);
}

/* A processor that this process may run on. */
static int some_cpu(void)
{
	cpu_set_t cpus;
	int cpu = 0;

	assert_int_equal(sched_getaffinity(0, sizeof(cpus), &cpus), 0);
	while (!CPU_ISSET(cpu, &cpus))
		cpu++;
	return cpu;
}

TEST(a_thread_without_a_processor_is_ready_and_does_not_run)
{
	struct worker busy = {0}, idle = {0};
	int cpu = some_cpu();
	bool waits = false;

	begin(&idle, SCHED_IDLE, cpu);
	begin(&busy, SCHED_OTHER, cpu);
	for (int i = 0; i < LOOKS && !waits; i++) {
		uint64_t ran_ns = env->ran_ns(env, idle.tid);

		usleep(1000);
		waits = env->ran_ns(env, idle.tid) - ran_ns < MS / 4 && env->is_ready(env, idle.tid);
	}
	assert_true(waits);
	end(&busy);
	end(&idle);
}

TEST(a_thread_that_sleeps_is_not_ready)
{
	struct worker w = {0};
	uint64_t ran_ns;

	begin(&w, -1, some_cpu());
	usleep(20000); /* it is on its way */
	ran_ns = env->ran_ns(env, w.tid);
	for (int i = 0; i < 100; i++)
		assert_false(env->is_ready(env, w.tid));
	assert_int_equal(env->ran_ns(env, w.tid), ran_ns);
	end(&w);
}

TEST(a_thread_that_runs_is_ready_and_its_time_grows)
{
	uint64_t begun_ns = env->ran_ns(env, env_self());

	while (env->ran_ns(env, env_self()) - begun_ns < MS)
		;
	assert_true(env->is_ready(env, env_self()));
}

TEST(no_thread_has_run)
{
	assert_int_equal(env->ran_ns(env, 0), 0);
	assert_int_equal(env->ran_ns(env, 1 << 27), 0);
	assert_false(env->is_ready(env, 0));
	assert_false(env->is_ready(env, 1 << 27));
}

TEST(a_child_has_its_own_number)
{
	assert_int_equal(env_self(), getpid());
	env_forget_self();
	assert_int_equal(env_self(), getpid());
}

TEST_PROGRAM(open_host, close_host)
