/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Waits with a limit, timers and alarms, once a device is open. Each line is a call, what it returned, and the
 * nanoseconds that it took by the clock:
 *
 *     limits
 *
 * A second thread sleeps, and then makes happen what the first waits for.
 */
#include <errno.h>
#include <infiniband/verbs.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

enum { US = 1000, MS = 1000 * US, WAITERS = 3 };

static int ends[2]; /* of a pipe */
static sem_t semaphore;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static bool said;
static volatile sig_atomic_t alarms;

static long now_ns(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return t.tv_sec * 1000000000 + t.tv_nsec;
}

static struct timespec as_timespec(long ns)
{
	return (struct timespec){ns / 1000000000, ns % 1000000000};
}

static struct timespec in(clockid_t clock, long ns)
{
	return as_timespec(now_ns(clock) + ns);
}

#define SHOW(what, call)                                                                            \
	do {                                                                                        \
		long begun_ns = now_ns(CLOCK_MONOTONIC), result = (call);                           \
		printf("%s: %ld after %ld ns\n", what, result, now_ns(CLOCK_MONOTONIC) - begun_ns); \
	} while (0)

static void *give_byte(void *us)
{
	usleep((useconds_t)(uintptr_t)us);
	return write(ends[1], "x", 1) == 1 ? NULL : us;
}

static void *give_signal(void *us)
{
	usleep((useconds_t)(uintptr_t)us);
	pthread_mutex_lock(&mutex);
	said = true;
	pthread_cond_signal(&condition);
	pthread_mutex_unlock(&mutex);
	return NULL;
}

static void *give_post(void *us)
{
	usleep((useconds_t)(uintptr_t)us);
	sem_post(&semaphore);
	return NULL;
}

static pthread_t start(void *(*run)(void *), uintptr_t arg)
{
	pthread_t t;

	if (pthread_create(&t, NULL, run, (void *)arg))
		exit(1);
	return t;
}

static void take_byte(void)
{
	char c;

	if (read(ends[0], &c, 1) != 1)
		exit(1);
}

static int select_for(long us)
{
	struct timeval t = {0, us};
	fd_set set;

	FD_ZERO(&set);
	FD_SET(ends[0], &set);
	return select(ends[0] + 1, &set, NULL, NULL, &t);
}

static int pselect_for(long ns)
{
	struct timespec t = as_timespec(ns);
	fd_set set;

	FD_ZERO(&set);
	FD_SET(ends[0], &set);
	return pselect(ends[0] + 1, &set, NULL, NULL, &t, NULL);
}

static void descriptors(void)
{
	struct pollfd p = {.fd = ends[0], .events = POLLIN};
	struct epoll_event e = {.events = EPOLLIN};
	struct timespec t = as_timespec(2500 * US);
	int fd = epoll_create1(0);
	pthread_t thread;

	epoll_ctl(fd, EPOLL_CTL_ADD, ends[0], &e);
	SHOW("poll", poll(&p, 1, 5));
	SHOW("ppoll", ppoll(&p, 1, &t, NULL));
	SHOW("select", select_for(1500));
	SHOW("pselect", pselect_for(30 * MS));
	SHOW("epoll_wait", epoll_wait(fd, &e, 1, 4));
	SHOW("epoll_pwait", epoll_pwait(fd, &e, 1, 40, NULL));
	thread = start(give_byte, 2000);
	SHOW("poll for a byte", poll(&p, 1, 5));
	SHOW("select for a byte", select_for(1500));
	SHOW("epoll_wait for a byte", epoll_wait(fd, &e, 1, -1));
	pthread_join(thread, NULL);
	take_byte();
	close(fd);
}

static int wait_until_said(clockid_t clock, long ns)
{
	struct timespec t = in(clock, ns);
	int rc = 0;

	pthread_mutex_lock(&mutex);
	while (!said && !rc)
		rc = clock == CLOCK_REALTIME ? pthread_cond_timedwait(&condition, &mutex, &t)
					     : pthread_cond_clockwait(&condition, &mutex, clock, &t);
	said = false;
	pthread_mutex_unlock(&mutex);
	return rc == ETIMEDOUT ? -1 : rc;
}

static int take_post(clockid_t clock, long ns)
{
	struct timespec t = in(clock, ns);

	return clock == CLOCK_REALTIME ? sem_timedwait(&semaphore, &t) : sem_clockwait(&semaphore, clock, &t);
}

static void objects(void)
{
	pthread_t thread;

	SHOW("pthread_cond_timedwait", wait_until_said(CLOCK_REALTIME, 3 * MS));
	SHOW("pthread_cond_clockwait", wait_until_said(CLOCK_MONOTONIC, 50 * MS));
	thread = start(give_signal, 700);
	SHOW("pthread_cond_timedwait for a signal", wait_until_said(CLOCK_REALTIME, MS));
	pthread_join(thread, NULL);
	SHOW("sem_timedwait", take_post(CLOCK_REALTIME, 6 * MS));
	SHOW("sem_clockwait", take_post(CLOCK_MONOTONIC, 0));
	thread = start(give_post, 800);
	SHOW("sem_timedwait for a post", take_post(CLOCK_REALTIME, MS));
	pthread_join(thread, NULL);
}

static void *wait_in_row(void *number)
{
	pthread_mutex_lock(&mutex);
	pthread_cond_wait(&condition, &mutex);
	printf("thread %d was woken\n", (int)(uintptr_t)number);
	pthread_mutex_unlock(&mutex);
	return NULL;
}

static void row(void)
{
	pthread_t threads[WAITERS];

	for (uintptr_t i = 0; i < WAITERS; i++) {
		threads[i] = start(wait_in_row, WAITERS - i);
		usleep(1);
	}
	pthread_cond_signal(&condition);
	usleep(1);
	pthread_cond_broadcast(&condition);
	for (int i = 0; i < WAITERS; i++)
		pthread_join(threads[i], NULL);
}

static long expirations(int fd)
{
	uint64_t n = 0;

	return read(fd, &n, sizeof(n)) == sizeof(n) ? (long)n : -1;
}

static void timers(void)
{
	struct itimerspec t = {{0, 3 * MS}, {0, 2 * MS}}, off = {0}, now;
	int fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
	struct pollfd p = {.fd = fd, .events = POLLIN};

	timerfd_settime(fd, 0, &t, NULL);
	SHOW("timerfd", expirations(fd));
	SHOW("timerfd again", poll(&p, 1, 100));
	usleep(6500);
	SHOW("timerfd, late", expirations(fd));
	timerfd_gettime(fd, &now);
	printf("%ld ns are left of %ld\n", now.it_value.tv_nsec, now.it_interval.tv_nsec);
	timerfd_settime(fd, 0, &off, NULL);
	SHOW("timerfd, off", poll(&p, 1, 100));
	close(fd);
}

static void note_alarm(int number)
{
	alarms += number == SIGALRM;
}

static void signals(void)
{
	struct itimerval t = {{0, 0}, {0, 2500}};
	struct timespec long_time = {0, 10 * MS}, left = {0};

	signal(SIGALRM, note_alarm);
	setitimer(ITIMER_REAL, &t, NULL);
	SHOW("nanosleep until an alarm", nanosleep(&long_time, &left));
	printf("%d alarms, %ld ns are left\n", (int)alarms, left.tv_nsec);
	SHOW("alarm", alarm(2));
	SHOW("sleep until an alarm", sleep(5));
	printf("%d alarms\n", (int)alarms);
}

int main(void)
{
	struct ibv_device **devices = ibv_get_device_list(NULL);
	struct ibv_context *context = devices && devices[0] ? ibv_open_device(devices[0]) : NULL;

	if (!context || pipe(ends) || sem_init(&semaphore, 0, 0))
		return 1;
	SHOW("usleep", usleep(1234));
	descriptors();
	objects();
	row();
	timers();
	signals();
	return 0;
}
