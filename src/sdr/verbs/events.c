/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Waiting for a context by poll(2). With workers the descriptor is an eventfd that they write to, once each time that it is
 * armed; without, it is an epoll of what wakes a worker, and of a timer.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "sdr/verbs/objects.h"

void events_tell(struct verbena_sdr_context *ctx)
{
	uint64_t one = 1;

	if (atomic_load_explicit(&ctx->events.armed, memory_order_relaxed) &&
	    atomic_exchange(&ctx->events.armed, false))
		(void)!write(ctx->events.fd, &one, sizeof(one));
}

void events_close(struct verbena_sdr_context *ctx)
{
	if (ctx->events.timer_fd > 0)
		close(ctx->events.timer_fd);
	if (ctx->events.fd > 0)
		close(ctx->events.fd);
}

static bool watch(int epoll, int fd)
{
	struct epoll_event e = {.events = EPOLLIN};

	return !epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &e);
}

static int sources_open(struct verbena_sdr_context *ctx)
{
	struct sdr_worker *w = &ctx->workers[0];
	int fd = epoll_create1(EPOLL_CLOEXEC), timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);

	fcntl(w->channel->fd, F_SETFL, fcntl(w->channel->fd, F_GETFL) | O_NONBLOCK);
	if (fd >= 0 && timer >= 0 && watch(fd, w->channel->fd) && watch(fd, w->wake_fd) && watch(fd, timer)) {
		ctx->events.timer_fd = timer;
		return fd;
	}
	if (fd >= 0)
		close(fd);
	if (timer >= 0)
		close(timer);
	return -1;
}

static int open_once(struct verbena_sdr_context *ctx)
{
	int fd;

	gates_close(ctx);
	if (!ctx->events.fd) {
		fd = ctx->threads ? eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC) : sources_open(ctx);
		ctx->events.fd = fd > 0 ? fd : 0;
	}
	fd = ctx->events.fd;
	gates_open(ctx);
	return fd ? fd : -1;
}

int verbena_sdr_event_fd_get(struct verbena_sdr_context *ctx, int *fd)
{
	int opened;

	if (!ctx || !fd)
		return sdr_fail(EINVAL);
	opened = open_once(ctx);
	if (opened < 0)
		return VERBENA_SDR_ERROR;
	*fd = opened;
	return VERBENA_SDR_SUCCESS;
}

static void timer_set(int fd, uint64_t due_ns)
{
	struct itimerspec at = {.it_value = {(time_t)(due_ns / 1000000000u), (long)(due_ns % 1000000000u)}};

	timerfd_settime(fd, TFD_TIMER_ABSTIME, due_ns == UINT64_MAX ? &(struct itimerspec){0} : &at, NULL);
}

/* As a worker before it sleeps. */
static bool arm_sources(struct verbena_sdr_context *ctx)
{
	struct sdr_worker *w = &ctx->workers[0];
	uint64_t due_ns = UINT64_MAX;
	uint32_t done;

	pthread_mutex_lock(&w->gate);
	atomic_store(&w->asleep, true);
	worker_ask(w);
	done = worker_pass(w, &due_ns);
	timer_set(ctx->events.timer_fd, due_ns);
	pthread_mutex_unlock(&w->gate);
	return !done;
}

int verbena_sdr_event_arm(struct verbena_sdr_context *ctx)
{
	uint64_t n;

	if (!ctx)
		return sdr_fail(EINVAL);
	if (open_once(ctx) < 0)
		return VERBENA_SDR_ERROR;
	if (!ctx->threads)
		return arm_sources(ctx) ? VERBENA_SDR_SUCCESS : VERBENA_SDR_RETRY;
	(void)!read(ctx->events.fd, &n, sizeof(n));
	atomic_store(&ctx->events.armed, true);
	return VERBENA_SDR_SUCCESS;
}

/* True: an event has come before end_ns. */
static bool wait_until(struct verbena_sdr_context *ctx, uint64_t end_ns)
{
	struct pollfd fd = {.fd = ctx->events.fd, .events = POLLIN};
	uint64_t now_ns = sdr_now_ns(), left = end_ns > now_ns ? end_ns - now_ns : 0;
	struct timespec ts = {(time_t)(left / 1000000000u), (long)(left % 1000000000u)};

	return ppoll(&fd, 1, end_ns == UINT64_MAX ? NULL : &ts, NULL) > 0;
}

int verbena_sdr_recv_chunk_wait(const struct verbena_sdr_recv *recv, uint32_t chunk, int timeout_ms)
{
	uint64_t end_ns = timeout_ms < 0 ? UINT64_MAX : sdr_now_ns() + (uint64_t)timeout_ms * 1000000;
	const uint8_t *bitmap;
	size_t bytes;

	for (;;) {
		int armed;

		if (verbena_sdr_recv_bitmap_get(recv, &bitmap, &bytes))
			return VERBENA_SDR_ERROR;
		if (chunk / 8 >= bytes)
			return sdr_fail(EINVAL);
		if (verbena_sdr_chunk_arrived(bitmap, chunk))
			return VERBENA_SDR_SUCCESS;
		armed = verbena_sdr_event_arm(recv->qp->ctx);
		if (armed == VERBENA_SDR_ERROR)
			return VERBENA_SDR_ERROR;
		if (armed == VERBENA_SDR_RETRY || verbena_sdr_chunk_arrived(bitmap, chunk))
			continue;
		if (!wait_until(recv->qp->ctx, end_ns) && sdr_now_ns() >= end_ns)
			return VERBENA_SDR_RETRY;
	}
}
