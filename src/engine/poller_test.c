/* SPDX-License-Identifier: BSD-2-Clause */
/* Which threads wait for a processor. */
#include "engine/poller.h"
#include "support/test.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <unistd.h>

enum { LOOKS = 20000, MS = 1000000 };

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
	atomic_store(&w->tid, poller_self());
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

TEST(a_thread_without_a_processor_waits)
{
	struct worker busy = {0}, idle = {0};
	int cpu = some_cpu();
	bool waits = false;

	begin(&idle, SCHED_IDLE, cpu);
	begin(&busy, SCHED_OTHER, cpu);
	for (int i = 0; i < LOOKS && !waits; i++) {
		uint64_t ran_ns = poller_ran_ns(idle.tid);

		usleep(1000);
		waits = poller_waits(idle.tid, ran_ns, MS);
	}
	assert_true(waits);
	end(&busy);
	end(&idle);
}

TEST(a_thread_that_sleeps_does_not)
{
	struct worker w = {0};

	begin(&w, -1, some_cpu());
	usleep(20000); /* it is on its way */
	for (int i = 0; i < 100; i++)
		assert_false(poller_waits(w.tid, poller_ran_ns(w.tid), MS));
	end(&w);
}

TEST(a_thread_that_runs_does_not)
{
	uint64_t begun_ns = poller_ran_ns(poller_self()), ran_ns;

	do {
		ran_ns = poller_ran_ns(poller_self()) - begun_ns;
	} while (ran_ns < MS);
	assert_false(poller_waits(poller_self(), begun_ns, MS));
	assert_true(poller_waits(poller_self(), begun_ns, (uint64_t)1000 * 1000 * MS));
}

TEST(no_thread_does_not)
{
	assert_int_equal(poller_ran_ns(0), 0);
	assert_int_equal(poller_ran_ns(1 << 27), 0);
	assert_false(poller_waits(0, 1, MS));
	assert_false(poller_waits(1 << 27, 1, MS));
}

TEST(a_child_has_its_own_number)
{
	assert_int_equal(poller_self(), getpid());
	poller_forget_self();
	assert_int_equal(poller_self(), getpid());
}
