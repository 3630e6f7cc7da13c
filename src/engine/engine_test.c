/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The running engine, alone in its process: queue pairs talk to each other through 127.0.0.1 and
 * real sockets. The tests check that the work is done: by pollers, posters or the thread. When each of them does it
 * is the subject of engine_time_test.c and waiting_test.c.
 */
#include <dirent.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "support/engine_ends.h"

enum { PAIRS = 3, MANY = 20000, WAIT_MS = 30000, STUCK_S = 60 };

static void sleep_us(long us)
{
	nanosleep(&(struct timespec){us / 1000000, us % 1000000 * 1000}, NULL);
}

/* Without polling. */
static bool wait_depth(struct end *e, uint32_t depth)
{
	for (int i = 0; i < WAIT_MS && cq_depth(e->cq) < depth; i++)
		sleep_us(1000);
	return cq_depth(e->cq) >= depth;
}

static void poll_for_us(uint64_t us)
{
	uint64_t end_ns = engine_now_ns(engine) + us * 1000;

	while (engine_now_ns(engine) < end_ns)
		engine_poll(engine);
}

static uint64_t cpu_us(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return (uint64_t)ts.tv_sec * 1000000 + (uint64_t)ts.tv_nsec / 1000;
}

/* How often any thread of this process went to sleep. */
static uint64_t sleeps(void)
{
	DIR *d = opendir("/proc/self/task");
	struct dirent *e;
	uint64_t total = 0;

	assert_non_null(d);
	while ((e = readdir(d))) {
		char path[300], line[100];
		unsigned long n;
		FILE *f;

		snprintf(path, sizeof(path), "/proc/self/task/%s/status", e->d_name);
		f = e->d_name[0] == '.' ? NULL : fopen(path, "r");
		while (f && fgets(line, sizeof(line), f)) {
			if (sscanf(line, "voluntary_ctxt_switches: %lu", &n) == 1)
				total += n;
		}
		if (f)
			fclose(f);
	}
	closedir(d);
	return total;
}

TEST(a_message_arrives_though_nobody_polls)
{
	struct pair p;

	pair_open(&p);
	post_recv(&p.b);
	assert_true(post_send(&p.a, WR_SEND));
	assert_true(wait_depth(&p.b, 1));
	assert_true(wait_depth(&p.a, 1));
	reap(&p.a);
	reap(&p.b);
	pair_close(&p);
}

/* The first is sent at once and makes the QP busy; those after it may be left to a poll. */
TEST(what_was_posted_goes_out_though_polling_stops)
{
	struct pair p;

	pair_open(&p);
	for (int round = 0; round < 20; round++) {
		/* Long enough for the thread to stand back, at every phase of its naps. */
		poll_for_us(300 + (uint64_t)round * 17);
		for (int i = 0; i < 5; i++)
			assert_true(post_send(&p.a, WR_WRITE));
		assert_true(wait_depth(&p.a, 5));
		reap(&p.a);
	}
	pair_close(&p);
}

TEST(an_armed_cq_raises_its_event_without_polls)
{
	struct pair p;

	pair_open(&p);
	for (int round = 0; round < 50; round++) {
		uint32_t before = atomic_load(&cq_events);

		if (round % 2)
			poll_for_us(200);
		post_recv(&p.b);
		cq_arm(p.b.cq, false);
		engine_hand_over(engine);
		assert_true(post_send(&p.a, WR_SEND));
		for (int i = 0; i < WAIT_MS && atomic_load(&cq_events) == before; i++)
			sleep_us(1000);
		assert_int_equal(atomic_load(&cq_events), before + 1);
		assert_true(wait_depth(&p.a, 1));
		reap(&p.a);
		reap(&p.b);
	}
	pair_close(&p);
}

/* It is cancelled, as by a program that ends a thread which waits for completions. */
struct cancelled {
	struct pair *pair;
	int passed;
};

static void *cancelled(void *out)
{
	struct cancelled *c = out;
	struct pair *p = c->pair;

	pthread_cancel(pthread_self());
	for (int i = 0; i < 2 * DEPTH; i++) {
		post_recv(&p->b);
		assert_true(post_send(&p->a, WR_SEND));
		while (!cq_depth(p->a.cq) || !cq_depth(p->b.cq))
			engine_poll(engine);
		reap(&p->a);
		reap(&p->b);
	}
	c->passed++;
	engine_hand_over(engine);
	c->passed++;
	engine_lock(engine);
	engine_unlock(engine);
	c->passed++;
	pthread_testcancel();
	c->passed++;
	return NULL;
}

TEST(a_cancelled_thread_leaves_no_lock_held)
{
	struct pair p;
	struct cancelled c = {.pair = &p};
	pthread_t thread;

	alarm(STUCK_S); /* what waits for the lock waits for ever */
	pair_open(&p);
	assert_int_equal(pthread_create(&thread, NULL, cancelled, &c), 0);
	pthread_join(thread, NULL);
	assert_int_equal(c.passed, 3);
	post_recv(&p.b);
	assert_true(post_send(&p.a, WR_SEND));
	assert_true(wait_depth(&p.a, 1));
	assert_true(wait_depth(&p.b, 1));
	reap(&p.a);
	reap(&p.b);
	pair_close(&p);
	alarm(0);
}

/* This thread does once, and may wait for a lock or two of the kernel's. */
enum { SLEEPS_MAX = 4 };

/* It neither wakes nor spins. */
TEST(an_idle_engine_sleeps)
{
	uint64_t before, before_us, slept = SLEEPS_MAX + 1;
	struct pair p;

	pair_open(&p);
	post_recv(&p.b);
	assert_true(post_send(&p.a, WR_SEND));
	poll_for_us(1000);
	assert_true(wait_depth(&p.b, 1));
	/* The heartbeats after traffic end, on a busy machine later. */
	for (int i = 0; i < 5 && slept > SLEEPS_MAX; i++) {
		sleep_us(300000);
		before = sleeps();
		before_us = cpu_us();
		sleep_us(300000);
		assert_true(cpu_us() - before_us < 50000);
		slept = sleeps() - before;
	}
	assert_in_range(slept, 1, SLEEPS_MAX);
	reap(&p.a);
	reap(&p.b);
	pair_close(&p);
}

static _Atomic int stop;

struct stream {
	struct pair pair;
	pthread_t poster, poller;
	_Atomic uint32_t sent, done;
	bool polls;
};

/* Writes without end in sight; every third stream never polls, so the thread must do its work. */
static void *stream_poster(void *arg)
{
	struct stream *s = arg;

	while (s->sent < MANY && !atomic_load(&stop)) {
		if (post_send(&s->pair.a, WR_WRITE))
			s->sent++;
		else
			sched_yield();
	}
	return NULL;
}

static void *stream_poller(void *arg)
{
	struct stream *s = arg;

	while (atomic_load(&s->done) < MANY && !atomic_load(&stop)) {
		if (s->polls)
			engine_poll(engine);
		else
			sleep_us(100);
		atomic_fetch_add(&s->done, reap(&s->pair.a));
	}
	return NULL;
}

TEST(all_kinds_of_threads_at_once_lose_nothing)
{
	static struct stream s[PAIRS];
	struct mr *other;
	int i, rounds = 0;

	for (i = 0; i < PAIRS; i++) {
		pair_open(&s[i].pair);
		s[i].polls = i % 3 != 2;
		assert_int_equal(pthread_create(&s[i].poster, NULL, stream_poster, &s[i]), 0);
		assert_int_equal(pthread_create(&s[i].poller, NULL, stream_poller, &s[i]), 0);
	}
	/* The control path beside them. */
	for (i = 0; i < PAIRS; i++) {
		uint64_t end_ns = engine_now_ns(engine) + 60000000000;

		while (atomic_load(&s[i].done) < MANY && engine_now_ns(engine) < end_ns) {
			engine_lock(engine);
			assert_int_equal(nic_mr_reg(nic, pd, (struct mr_range){memory, BYTES, 0}, 0, &other), 0);
			nic_mr_dereg(nic, other);
			engine_unlock(engine);
			rounds++;
			sleep_us(200);
		}
	}
	atomic_store(&stop, 1);
	for (i = 0; i < PAIRS; i++) {
		pthread_join(s[i].poster, NULL);
		pthread_join(s[i].poller, NULL);
		assert_int_equal(s[i].sent, MANY);
		assert_int_equal(s[i].done, MANY);
		pair_close(&s[i].pair);
	}
	assert_true(rounds > 0);
}

/* The thread naps beside a poller, and writes nothing. */
TEST(a_queue_pair_is_in_the_page_when_the_verb_returns)
{
	struct nic_qp_report rows[STATS_QPS_MAX];
	struct pair p;

	pair_open(&p);
	assert_int_equal(stats_read_qps(engine->loop.page, rows), 2);
	pair_close(&p);
	poll_for_us(20000);
	for (int i = 0; i < 100; i++) {
		engine_poll(engine);
		pair_open(&p);
		assert_int_equal(stats_read_qps(engine->loop.page, rows), 2);
		assert_int_equal(rows[0].state, QPS_RTS);
		pair_close(&p);
		assert_int_equal(stats_read_qps(engine->loop.page, rows), 0);
	}
}

TEST(a_child_gets_an_engine_of_its_own)
{
	struct pair p;
	int status;
	pid_t pid;

	pair_open(&p);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		struct engine *parents = engine;
		char why[512];
		int rc = 0;

		/* Of no effect, but harmless. */
		engine_poll(parents);
		engine_lock(parents);
		engine_unlock(parents);
		engine_hand_over(parents);
		engine = engine_get(0, &sink, why, sizeof(why));
		if (!engine || engine == parents)
			rc = 1;
		else if (nic_counters(engine_nic(engine))->qps)
			rc = 2;
		_exit(rc);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);

	/* The parent's goes on. */
	post_recv(&p.b);
	assert_true(post_send(&p.a, WR_SEND));
	assert_true(wait_depth(&p.b, 1));
	assert_true(wait_depth(&p.a, 1));
	reap(&p.a);
	reap(&p.b);
	pair_close(&p);
}

/* A thread that ends at this moment may still have the C library's note of its last dlsym(). The sanitizer's library
 * must find this function. */
__attribute__((visibility("default"))) const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
	return "leak:_dlerror_run";
}

static int start(void **state)
{
	setenv("VERBENA_INTERFACES", "lo", 1);
	return engine_ends_start();
}

TEST_PROGRAM(start, NULL)
