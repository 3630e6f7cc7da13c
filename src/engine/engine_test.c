/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The running engine, alone in its process: queue pairs talk to each other through 127.0.0.1 and
 * real sockets. The tests check who does the work when: pollers, posters, the thread, or nobody.
 */
#include "engine/engine.h"

#include <dirent.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "engine/state.h"
#include "support/test.h"

enum { PAIRS = 3, DEPTH = 64, BYTES = 64, MANY = 20000, WAIT_MS = 30000, STUCK_S = 60 };

struct end {
	struct qp *qp;
	struct cq *cq;
};

struct pair {
	struct end a, b;
};

static struct engine *engine;
static struct nic *nic;
static struct pd *pd;
static struct mr *mr;
static uint8_t memory[2 * DEPTH * BYTES];
static uint32_t loopback_gid;
static _Atomic uint32_t cq_events;

static void on_cq(void *owner)
{
	atomic_fetch_add((_Atomic uint32_t *)owner, 1);
}

static void on_async(const struct async_event *ev)
{
}

static void on_port(struct engine *e, enum event_type type)
{
}

static void on_change(struct engine *e)
{
}

static const struct engine_sink sink = {
	.cq_event = on_cq, .async_event = on_async, .port_event = on_port, .port_changed = on_change};

static void connect_end(struct end *e, const struct end *peer)
{
	struct qp_attr attr = {
		.state = QPS_INIT,
		.port = 1,
		.access = MR_LOCAL_WRITE | MR_REMOTE_WRITE | MR_REMOTE_READ,
		.path_mtu_bytes = 1024,
		.dest_qpn = qp_number(peer->qp),
		.rq_psn = 7,
		.sq_psn = 7,
		.max_rd_atomic = 4,
		.max_dest_rd_atomic = 4,
		.min_rnr_timer = 12,
		.timeout = 14,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.av = {.is_global = 1, .port = 1, .hop_limit = 64, .sgid_index = (uint8_t)loopback_gid},
	};
	struct nic_gid gid;

	assert_int_equal(nic_gid(nic, loopback_gid, &gid), 0);
	memcpy(attr.av.dgid, gid.raw, sizeof(gid.raw));
	assert_int_equal(nic_qp_modify(nic, e->qp, &attr, QPA_STATE | QPA_PKEY_INDEX | QPA_PORT | QPA_ACCESS_FLAGS,
				       engine_now_ns(engine)),
			 0);
	attr.state = QPS_RTR;
	assert_int_equal(nic_qp_modify(nic, e->qp, &attr,
				       QPA_STATE | QPA_AV | QPA_PATH_MTU | QPA_DEST_QPN | QPA_RQ_PSN |
					       QPA_MAX_DEST_RD_ATOMIC | QPA_MIN_RNR_TIMER,
				       engine_now_ns(engine)),
			 0);
	attr.state = QPS_RTS;
	assert_int_equal(
		nic_qp_modify(nic, e->qp, &attr,
			      QPA_STATE | QPA_TIMEOUT | QPA_RETRY_CNT | QPA_RNR_RETRY | QPA_SQ_PSN | QPA_MAX_RD_ATOMIC,
			      engine_now_ns(engine)),
		0);
}

static void end_open(struct end *e)
{
	struct qp_init init = {
		.type = QPT_RC,
		.pd = pd,
		.cap = {.max_send_wr = DEPTH, .max_recv_wr = DEPTH, .max_send_sge = 1, .max_recv_sge = 1},
	};

	assert_int_equal(nic_cq_create(nic, 4 * DEPTH, (void *)&cq_events, &e->cq), 0);
	init.send_cq = init.recv_cq = e->cq;
	assert_int_equal(nic_qp_create(nic, &init, &e->qp), 0);
}

static void pair_open(struct pair *p)
{
	engine_lock(engine);
	end_open(&p->a);
	end_open(&p->b);
	connect_end(&p->a, &p->b);
	connect_end(&p->b, &p->a);
	engine_unlock(engine);
}

static void pair_close(struct pair *p)
{
	engine_lock(engine);
	nic_qp_destroy(nic, p->a.qp);
	nic_qp_destroy(nic, p->b.qp);
	assert_int_equal(nic_cq_destroy(nic, p->a.cq), 0);
	assert_int_equal(nic_cq_destroy(nic, p->b.cq), 0);
	engine_unlock(engine);
}

static void post_recv(struct end *e)
{
	struct recv_wqe *w = rq_slot(qp_rq(e->qp));

	assert_non_null(w);
	w->wr_id = 1;
	w->num_sge = 1;
	w->length = BYTES;
	w->sge[0] = (struct wqe_sge){(uintptr_t)memory, BYTES, mr->key};
	rq_post(qp_rq(e->qp), w);
}

/* False when the queue is full. */
static bool post_send(struct end *e, enum wr_opcode opcode)
{
	struct sq *sq = qp_sq(e->qp);
	struct send_wqe *w = sq_slot(sq, 0);

	if (!w)
		return false;
	memset(w, 0, sizeof(*w));
	w->wr_id = 2;
	w->opcode = opcode;
	w->flags = WR_SIGNALED;
	w->num_sge = 1;
	w->length = BYTES;
	w->rkey = mr->key;
	w->remote_va = (uintptr_t)memory + DEPTH * BYTES;
	w->sge[0] = (struct wqe_sge){(uintptr_t)memory, BYTES, mr->key};
	sq_post(sq, 1);
	engine_kick(engine, e->qp);
	return true;
}

static uint32_t reap(struct end *e)
{
	uint32_t n = cq_depth(e->cq);

	for (uint32_t i = 0; i < n; i++)
		assert_int_equal(cq_peek(e->cq, i)->status, WC_SUCCESS);
	cq_consume(e->cq, n);
	return n;
}

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

/* How long it takes on average until the thread does what nobody polls for. */
static uint64_t taken_over_us(struct pair *p)
{
	uint64_t sum_us = 0;

	for (int round = 0; round < 20; round++) {
		uint64_t start_ns;

		poll_for_us(1000);
		start_ns = engine_now_ns(engine);
		post_recv(&p->b);
		post_send(&p->a, WR_SEND);
		while (!cq_depth(p->b.cq) && engine_now_ns(engine) - start_ns < 1000000000)
			sleep_us(10);
		sum_us += (engine_now_ns(engine) - start_ns) / 1000;
		wait_depth(&p->a, 1);
		reap(&p->a);
		reap(&p->b);
	}
	return sum_us / 20;
}

/* A loaded machine is slow for a while; a lost wake-up takes for ever, each time. */
TEST(the_thread_takes_over_soon_after_the_last_poll)
{
	struct pair p;

	pair_open(&p);
	for (int tries = 1; taken_over_us(&p) >= 20000; tries++)
		assert_true(tries < 5);
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

static _Thread_local bool counts_yields;
static _Atomic uint32_t yields;

/* In place of libc's. */
int sched_yield(void)
{
	if (counts_yields)
		atomic_fetch_add(&yields, 1);
	return (int)syscall(SYS_sched_yield);
}

static void *poll_in_vain(void *arg)
{
	counts_yields = true;
	for (int i = 0; i < 2000; i++)
		engine_poll(engine);
	return NULL;
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

/* The holder may be waiting for a processor that the polling threads have. */
TEST(polls_that_find_the_lock_held_give_the_processor_away)
{
	pthread_t poller;

	atomic_store(&yields, 0);
	engine_lock(engine);
	assert_int_equal(pthread_create(&poller, NULL, poll_in_vain, NULL), 0);
	pthread_join(poller, NULL);
	engine_unlock(engine);
	/* Now and then: one that finds it held for a moment loses no time. */
	assert_in_range(yields, 10, 200);
}

/*
 * A thread that waited for the lock would be woken at the end of each of the poller's turns, and mostly come too late.
 * Here a poll goes on for longer than the thread ever left the group alone.
 */
TEST(who_polls_serves_the_group_instead_of_the_thread)
{
	uint64_t long_ns = engine_now_ns(engine) + 60000000000;
	bool served = false;

	poll_for_us(1000);
	/* A poll with packets, so that the thread naps; it may be asleep, or take over just now, as this one had no
	 * processor. */
	atomic_store(&engine->polls.polled_ns, long_ns);
	atomic_store(&engine->moved_ns, long_ns);
	engine->env->wake(engine->env);
	for (int i = 0; i < WAIT_MS && atomic_load(&engine->state) != THREAD_NAP; i++)
		sleep_us(1000);
	engine_lock(engine);
	for (int i = 0; i < 60 || (i < WAIT_MS && !atomic_load(&engine->serve_wanted)); i++) {
		assert_false(lock_is_wanted(&engine->lock));
		sleep_us(1000);
	}
	assert_true(atomic_load(&engine->serve_wanted));
	atomic_store(&engine->moved_ns, engine_now_ns(engine));
	engine_unlock(engine);
	/* The thread may have the lock for a moment, or want something again. */
	for (int i = 0; i < 20 && !served; i++) {
		atomic_store(&engine->polls.polled_ns, long_ns);
		while (atomic_load(&engine->polls.polled_ns) == long_ns)
			engine_poll(engine);
		served = !atomic_load(&engine->serve_wanted);
	}
	assert_true(served);
}

/* Its sends may take longer than the thread waits for the next poll. */
TEST(the_turn_of_a_post_is_no_time_without_polls)
{
	bool seen = false;
	struct pair p;

	pair_open(&p);
	for (int i = 0; i < 100 && !seen; i++) {
		uint64_t start_ns, took_ns;

		poll_for_us(1000);
		assert_int_equal(atomic_load(&engine->polls.post_turns_ns), 0);
		start_ns = engine_now_ns(engine);
		sleep_us(10); /* longer than KICK_STREAM_NS: the only message does not wait for a poll */
		assert_true(post_send(&p.a, WR_WRITE));
		took_ns = atomic_load(&engine->polls.post_turns_ns);
		assert_in_range(took_ns, 0, engine_now_ns(engine) - start_ns);
		/* Or this thread had no processor for so long that the other one had the lock. */
		seen = took_ns > 0;
		assert_true(wait_depth(&p.a, 1));
		reap(&p.a);
	}
	assert_true(seen);

	/* The last poll was long ago, but posts took that long: the thread naps, as there were packets. */
	engine_lock(engine);
	atomic_store(&engine->polls.post_turns_ns, 60000000000);
	atomic_store(&engine->polls.polled_ns, engine_now_ns(engine) - 1000000000);
	atomic_store(&engine->moved_ns, engine_now_ns(engine) + 60000000000);
	engine->env->wake(engine->env);
	engine_unlock(engine);
	for (int i = 0; i < WAIT_MS && atomic_load(&engine->state) != THREAD_NAP; i++)
		sleep_us(100);
	assert_int_equal(atomic_load(&engine->state), THREAD_NAP);
	atomic_store(&engine->moved_ns, engine_now_ns(engine));
	poll_for_us(1000);

	/* Who handed over polls no more, whatever it posts. */
	engine_hand_over(engine);
	sleep_us(10);
	assert_true(post_send(&p.a, WR_WRITE));
	assert_int_equal(atomic_load(&engine->polls.polled_ns), 0);
	assert_true(wait_depth(&p.a, 1));
	reap(&p.a);
	pair_close(&p);
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

/* A thread that ends at this moment may still have the C library's note of its last dlopen(), which pthread_cancel()
 * needs. */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
	return "leak:_dlerror_run";
}

static int start(void **state)
{
	char why[512];
	struct engine_interface i;
	struct nic_gid gid;

	setenv("VERBENA_INTERFACES", "lo", 1);
	engine = engine_get(0, &sink, why, sizeof(why));
	if (!engine) {
		print_error("%s\n", why);
		return -1;
	}
	assert_ptr_equal(engine_get(0, &sink, why, sizeof(why)), engine);
	nic = engine_nic(engine);
	while (!engine_gid_interface(engine, loopback_gid, &i) &&
	       (nic_gid(nic, loopback_gid, &gid) || gid.raw[12] != 127))
		loopback_gid++;
	engine_lock(engine);
	assert_int_equal(nic_pd_alloc(nic, &pd), 0);
	assert_int_equal(nic_mr_reg(nic, pd, (struct mr_range){memory, sizeof(memory), (uintptr_t)memory},
				    MR_LOCAL_WRITE | MR_REMOTE_WRITE | MR_REMOTE_READ, &mr),
			 0);
	engine_unlock(engine);
	return 0;
}

TEST_PROGRAM(start, NULL)
