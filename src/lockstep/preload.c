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
#include <limits.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "lockstep/baton.h"
#include "lockstep/lockstep.h"
#include "lockstep/preload.h"

enum { THREADS_MAX = 1024, BILLION = 1000000000 };

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
static atomic_bool begun;
const struct lockstep_page *preload_page;

/* ---- the baton ---- */

static void begin(void)
{
	self = NULL;
	atomic_store(&begun, true);
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

OURS struct baton verbena_baton = {.begin = begin, .pass = pass, .take = preload_take};

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

/* A child of fork has no engine, so nobody passes the baton. */
static void begin_anew(void)
{
	atomic_store(&begun, false);
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
		pthread_atfork(NULL, NULL, begin_anew);
	self = &threads[0];
	errno = saved;
}

bool preload_takes_part(void)
{
	return self && atomic_load_explicit(&begun, memory_order_relaxed);
}

/* ---- threads ---- */

static void leave(void *thread)
{
	struct thread *t = thread;

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

	if (!preload_page)
		return NEXT(pthread_create)(out, attr, run, arg);
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

OURS int pthread_cond_wait(pthread_cond_t *c, pthread_mutex_t *m)
{
	if (!preload_takes_part())
		return NEXT(pthread_cond_wait)(c, m);
	return SLEEPS(int, NEXT(pthread_cond_wait)(c, m));
}

OURS int sem_wait(sem_t *s)
{
	if (!preload_takes_part())
		return NEXT(sem_wait)(s);
	return sem_trywait(s) ? SLEEPS(int, NEXT(sem_wait)(s)) : 0;
}

/* ---- descriptors ---- */

bool preload_is_ready(int fd, short events)
{
	struct pollfd p = {.fd = fd, .events = events};
	int saved = errno, n = NEXT(poll)(&p, 1, 0);

	errno = saved;
	return n != 0;
}

#define DESCRIPTOR(type, name, events, arguments, ...)                     \
	OURS type name arguments                                           \
	{                                                                  \
		if (!preload_takes_part() || preload_is_ready(fd, events)) \
			return NEXT(name)(__VA_ARGS__);                    \
		return SLEEPS(type, NEXT(name)(__VA_ARGS__));              \
	}

DESCRIPTOR(ssize_t, read, POLLIN, (int fd, void *to, size_t bytes), fd, to, bytes)
DESCRIPTOR(ssize_t, recv, POLLIN, (int fd, void *to, size_t bytes, int flags), fd, to, bytes, flags)
DESCRIPTOR(ssize_t, recvmsg, POLLIN, (int fd, struct msghdr *m, int flags), fd, m, flags)
DESCRIPTOR(ssize_t, recvfrom, POLLIN, (int fd, void *to, size_t bytes, int flags, __SOCKADDR_ARG from, socklen_t *len),
	   fd, to, bytes, flags, from, len)
DESCRIPTOR(ssize_t, write, POLLOUT, (int fd, const void *from, size_t bytes), fd, from, bytes)
DESCRIPTOR(ssize_t, send, POLLOUT, (int fd, const void *from, size_t bytes, int flags), fd, from, bytes, flags)
DESCRIPTOR(ssize_t, sendmsg, POLLOUT, (int fd, const struct msghdr *m, int flags), fd, m, flags)

OURS int poll(struct pollfd *fds, nfds_t count, int ms)
{
	int n;

	if (!preload_takes_part() || !ms)
		return NEXT(poll)(fds, count, ms);
	n = NEXT(poll)(fds, count, 0);
	return n ? n : SLEEPS(int, NEXT(poll)(fds, count, ms));
}

OURS int epoll_wait(int fd, struct epoll_event *events, int max, int ms)
{
	int n;

	if (!preload_takes_part() || !ms)
		return NEXT(epoll_wait)(fd, events, max, ms);
	n = NEXT(epoll_wait)(fd, events, max, 0);
	return n ? n : SLEEPS(int, NEXT(epoll_wait)(fd, events, max, ms));
}

OURS int select(int n, fd_set *in, fd_set *out, fd_set *except, struct timeval *t)
{
	if (!preload_takes_part() || (t && !t->tv_sec && !t->tv_usec))
		return NEXT(select)(n, in, out, except, t);
	return SLEEPS(int, NEXT(select)(n, in, out, except, t));
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

	return atomic_load(&preload_page->now_ns) + (since_1970 ? LOCKSTEP_WALL_NS : 0);
}

OURS int clock_gettime(clockid_t clock, struct timespec *t)
{
	uint64_t ns;

	if (!is_simulated(clock))
		return NEXT(clock_gettime)(clock, t);
	ns = read_ns(clock);
	*t = (struct timespec){(time_t)(ns / BILLION), (long)(ns % BILLION)};
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

/* Before the device is open no time passes, and a sleep ends at once. */
static void let_pass(uint64_t ns)
{
	int saved = errno;

	if (preload_takes_part())
		verbena_baton.pause(verbena_baton.ctx, ns);
	errno = saved;
}

OURS int clock_nanosleep(clockid_t clock, int flags, const struct timespec *t, struct timespec *left)
{
	uint64_t ns = 0, now_ns = 0;

	if (!is_simulated(clock) || !t || t->tv_sec < 0 || t->tv_nsec < 0 || t->tv_nsec >= BILLION)
		return NEXT(clock_nanosleep)(clock, flags, t, left);
	ns = (uint64_t)t->tv_sec * BILLION + (uint64_t)t->tv_nsec;
	if (flags & TIMER_ABSTIME)
		now_ns = read_ns(clock);
	if (ns > now_ns)
		let_pass(ns - now_ns);
	return 0;
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
	if (!preload_page)
		return NEXT(usleep)(us);
	let_pass((uint64_t)us * 1000);
	return 0;
}

OURS unsigned sleep(unsigned seconds)
{
	if (!preload_page)
		return NEXT(sleep)(seconds);
	let_pass((uint64_t)seconds * BILLION);
	return 0;
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
