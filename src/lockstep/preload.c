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
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "lockstep/baton.h"
#include "lockstep/lockstep.h"
#include "lockstep/preload.h"

enum { THREADS_MAX = PRELOAD_THREADS_MAX };

enum turn { RUNS, WANTS, GRANTED };

struct thread {
	_Atomic uint32_t turn; /* enum turn; a futex */
	atomic_bool used;
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

OURS struct baton verbena_baton = {
	.begin = begin, .end = end, .pass = pass, .take = preload_take, .next_ns = next_ns, .expire = expire};

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
	if (preload_page)
		pthread_atfork(NULL, NULL, end);
	self = &threads[0];
	errno = saved;
}

bool preload_takes_part(void)
{
	return self && atomic_load_explicit(&begun, memory_order_relaxed);
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
	self = NULL;
	atomic_store(&t->used, false);
}

static void *run_thread(void *thread)
{
	struct thread *t = thread;
	void *result;

	self = t;
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

/* ---- time ---- */

static bool is_simulated(clockid_t clock)
{
	switch (clock) {
	case CLOCK_REALTIME:
	case CLOCK_REALTIME_COARSE:
	case CLOCK_MONOTONIC:
	case CLOCK_MONOTONIC_COARSE:
	case CLOCK_MONOTONIC_RAW:
	case CLOCK_BOOTTIME:
	case CLOCK_TAI: return preload_page;
	default: return false; /* processor time */
	}
}

static uint64_t read_ns(clockid_t clock)
{
	bool since_1970 = clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE || clock == CLOCK_TAI;

	return preload_now_ns() + (since_1970 ? LOCKSTEP_WALL_NS : 0);
}

OURS int clock_gettime(clockid_t clock, struct timespec *t)
{
	if (!is_simulated(clock))
		return NEXT(clock_gettime)(clock, t);
	*t = ns_timespec(read_ns(clock));
	return 0;
}

OURS int gettimeofday(struct timeval *restrict t, void *restrict zone)
{
	uint64_t ns;

	if (!preload_page || !t)
		return NEXT(gettimeofday)(t, zone);
	ns = read_ns(CLOCK_REALTIME);
	*t = (struct timeval){(time_t)(ns / BILLION), (suseconds_t)(ns % BILLION / 1000)};
	return 0;
}

OURS time_t time(time_t *out)
{
	time_t now;

	if (!preload_page)
		return NEXT(time)(out);
	now = (time_t)(read_ns(CLOCK_REALTIME) / BILLION);
	if (out)
		*out = now;
	return now;
}

OURS int clock_nanosleep(clockid_t clock, int flags, const struct timespec *t, struct timespec *left)
{
	uint64_t until_ns, now_ns;
	int saved = errno, rc;

	if (!is_simulated(clock) || !t || !timespec_is_valid(t))
		return NEXT(clock_nanosleep)(clock, flags, t, left);
	now_ns = preload_now_ns();
	until_ns = flags & TIMER_ABSTIME ? moment_ns(t) : later_ns(now_ns, timespec_ns(t));
	rc = waits_sleep(until_ns) ? EINTR : 0;
	errno = saved;
	now_ns = preload_now_ns();
	if (rc && left && !(flags & TIMER_ABSTIME))
		*left = ns_timespec(until_ns > now_ns ? until_ns - now_ns : 0);
	return rc;
}

OURS int nanosleep(const struct timespec *t, struct timespec *left)
{
	int err;

	if (!preload_page)
		return NEXT(nanosleep)(t, left);
	err = clock_nanosleep(CLOCK_MONOTONIC, 0, t, left);
	if (!err)
		return 0;
	errno = err;
	return -1;
}

OURS int usleep(useconds_t us)
{
	return preload_page ? waits_sleep(later_ns(preload_now_ns(), (uint64_t)us * 1000)) : NEXT(usleep)(us);
}

OURS unsigned sleep(unsigned seconds)
{
	struct timespec t = {.tv_sec = seconds}, left;

	if (!preload_page)
		return NEXT(sleep)(seconds);
	return nanosleep(&t, &left) ? (unsigned)left.tv_sec + (left.tv_nsec > 0) : 0;
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
