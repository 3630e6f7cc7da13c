/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A library to preload: stands before libc in programs that run in simulated time. Clocks show that time, sleeps let it
 * pass, and threads run one at a time (baton.h). Without the variable that says so it leaves every call alone.
 *
 * A call that would not block is made at once, and its thread keeps running. No call of its own changes errno.
 */
#undef _FORTIFY_SOURCE /* the calls are defined here, not called */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lockstep/baton.h"
#include "lockstep/lockstep.h"
#include "lockstep/preload.h"

enum { THREADS_MAX = PRELOAD_THREADS_MAX };

enum turn { RUNS, WANTS, GRANTED };

struct thread {
	_Atomic uint32_t turn; /* enum turn; a futex */
	atomic_bool used;
	_Atomic pid_t tid; /* 0: it is not there yet */
	void *(*run)(void *);
	void *arg;
};

static struct thread threads[THREADS_MAX]; /* the first is the program's; a thread that ends leaves its place */
static unsigned last;
static _Thread_local struct thread *self; /* NULL: takes no part */
static _Thread_local bool makes_engine;   /* the next thread that this one makes is the engine's */
static atomic_bool begun;
const struct lockstep_page *preload_page;

/* ---- the baton ---- */

static void begin(void)
{
	makes_engine = true;
	atomic_store(&begun, true);
}

/* A child of fork has no engine either, so nobody passes the baton. */
static void end(void)
{
	makes_engine = false;
	atomic_store(&begun, false);
}

static bool pass(void)
{
	for (unsigned i = 1; i <= THREADS_MAX; i++) {
		struct thread *t = &threads[(last + i) % THREADS_MAX];
		uint32_t wants = WANTS;

		if (!atomic_compare_exchange_strong(&t->turn, &wants, GRANTED))
			continue;
		last = (last + i) % THREADS_MAX;
		syscall(SYS_futex, &t->turn, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, NULL, 0);
		return true;
	}
	return false;
}

static uint64_t next_ns(void)
{
	uint64_t wait_ns = waits_next_ns(), timer_ns = timers_next_ns();

	return wait_ns < timer_ns ? wait_ns : timer_ns;
}

static void expire(uint64_t now_ns)
{
	timers_expire(now_ns);
	waits_expire(now_ns);
}

static void look_at(pid_t tid)
{
	for (unsigned i = 0; i < THREADS_MAX; i++)
		if (threads[i].tid == tid)
			counter_look_at(tid);
}

OURS struct baton verbena_baton = {.begin = begin,
				   .end = end,
				   .pass = pass,
				   .take = preload_take,
				   .catch_up = clocks_catch_up,
				   .next_ns = next_ns,
				   .expire = expire,
				   .look_at = look_at};

void preload_take(void)
{
	struct thread *t = self;
	int saved = errno;

	if (!t || !atomic_load(&begun))
		return;
	atomic_store(&t->turn, WANTS);
	verbena_baton.wants(verbena_baton.ctx);
	while (atomic_load(&t->turn) == WANTS)
		syscall(SYS_futex, &t->turn, FUTEX_WAIT_PRIVATE, WANTS, NULL, NULL, 0);
	atomic_store(&t->turn, RUNS);
	errno = saved;
}

uint32_t preload_host(void)
{
	const char *text = getenv("VERBENA_HOST");

	return text ? (uint32_t)strtoul(text, NULL, 10) : 0;
}

__attribute__((constructor)) static void find_page(void)
{
	const char *text = getenv(LOCKSTEP_VARIABLE);
	int saved = errno, socket_fd, page_fd;
	const struct lockstep_page *p;

	if (text && lockstep_parse(text, &socket_fd, &page_fd)) {
		p = mmap(NULL, sizeof(*p), PROT_READ, MAP_SHARED, page_fd, 0);
		preload_page = p == MAP_FAILED || p->magic != LOCKSTEP_MAGIC ? NULL : p;
	}
	self = &threads[0];
	self->tid = gettid();
	if (preload_page) {
		pthread_atfork(NULL, NULL, end);
		counter_find();
	}
	errno = saved;
}

bool preload_takes_part(void)
{
	return self && atomic_load_explicit(&begun, memory_order_relaxed);
}

bool preload_runs(void)
{
	return preload_takes_part() && atomic_load(&self->turn) == RUNS;
}

bool preload_is_counted(void)
{
	return self;
}

unsigned preload_place(void)
{
	return (unsigned)(self - threads);
}

uint64_t preload_now_ns(void)
{
	return atomic_load(&preload_page->now_ns);
}

int preload_fd_away(int fd)
{
	int away = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, PRELOAD_FD_FIRST);

	if (away < 0)
		return fd;
	close(fd);
	return away;
}

/* ---- threads ---- */

static void leave(void *thread)
{
	struct thread *t = thread;

	waits_leave(preload_place());
	atomic_store(&t->tid, 0);
	self = NULL;
	atomic_store(&t->used, false);
}

static void *run_thread(void *thread)
{
	struct thread *t = thread;
	void *result;

	self = t;
	atomic_store(&t->tid, gettid());
	preload_take();
	pthread_cleanup_push(leave, t);
	result = t->run(t->arg);
	pthread_cleanup_pop(true);
	return result;
}

/* NULL: there are THREADS_MAX. */
static struct thread *find_place(void)
{
	for (unsigned i = 1; i < THREADS_MAX; i++)
		if (!atomic_exchange(&threads[i].used, true))
			return &threads[i];
	return NULL;
}

OURS int pthread_create(pthread_t *out, const pthread_attr_t *attr, void *(*run)(void *), void *arg)
{
	struct thread *t;
	int err;

	if (!preload_page || makes_engine) {
		makes_engine = false;
		return NEXT(pthread_create)(out, attr, run, arg);
	}
	t = find_place();
	if (!t)
		return EAGAIN;
	t->run = run;
	t->arg = arg;
	err = NEXT(pthread_create)(out, attr, run_thread, t);
	if (err)
		atomic_store(&t->used, false);
	return err;
}

OURS int pthread_join(pthread_t thread, void **result)
{
	if (!preload_takes_part())
		return NEXT(pthread_join)(thread, result);
	return SLEEPS(int, NEXT(pthread_join)(thread, result));
}

OURS int pthread_mutex_lock(pthread_mutex_t *m)
{
	int rc;

	if (!preload_takes_part())
		return NEXT(pthread_mutex_lock)(m);
	rc = pthread_mutex_trylock(m);
	return rc == EBUSY ? SLEEPS(int, NEXT(pthread_mutex_lock)(m)) : rc;
}

/* ---- chance ---- */

/* Programs make a seed of the time and their process's number, which differs from run to run. */
#define SEED(name, type)                                                    \
	OURS void name(type seed)                                           \
	{                                                                   \
		NEXT(name)(preload_page ? (type)preload_host() + 1 : seed); \
	}

SEED(srand, unsigned)
SEED(srandom, unsigned)
SEED(srand48, long)
