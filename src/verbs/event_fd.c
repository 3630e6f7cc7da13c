/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The descriptor is an eventfd in semaphore mode: every event adds one to it, which is a new edge
 * for epoll, and one read takes one away. The read happens outside the lock, so that it blocks,
 * restarts after a signal or fails with EAGAIN just as a read of the kernel's descriptor would; a
 * reader with a token then takes the first event of the list.
 *
 * With the lock held, tokens + readers on their way to the lock >= events in the list. It is more
 * only after an event was withdrawn whose token a reader had, or where the kernel cannot take
 * tokens without blocking: then a reader finds an empty list and reads again.
 */
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "verbs/objects.h"

int event_fd_init(struct event_fd *q)
{
	q->fd = eventfd(0, EFD_SEMAPHORE | EFD_CLOEXEC);
	if (q->fd < 0)
		return errno;
	pthread_mutex_init(&q->lock, NULL);
	list_init(&q->pending);
	atomic_init(&q->count, 0);
	return 0;
}

void event_fd_fini(struct event_fd *q)
{
	pthread_mutex_destroy(&q->lock);
	close(q->fd);
}

void event_fd_added(struct event_fd *q)
{
	const uint64_t one = 1;
	int saved = errno;

	atomic_fetch_add_explicit(&q->count, 1, memory_order_relaxed);
	/* libc's write() is a cancellation point, and the lock is held. */
	if (syscall(SYS_write, q->fd, &one, sizeof(one)) < 0) {
		/* A count of 2^64 - 2 is out of reach; a program that closed the descriptor gets
		 * nothing.
		 */
	}
	errno = saved;
}

void event_fd_withdrawn(struct event_fd *q, uint32_t count)
{
	int saved = errno, cancel;
	uint64_t token;
	struct iovec iov = {&token, sizeof(token)};

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel); /* as above */
	atomic_fetch_sub_explicit(&q->count, count, memory_order_relaxed);
	while (count-- > 0 && preadv2(q->fd, &iov, 1, -1, RWF_NOWAIT) > 0)
		;
	pthread_setcancelstate(cancel, NULL);
	errno = saved;
}

bool event_fd_is_empty(struct event_fd *q)
{
	return !atomic_load_explicit(&q->count, memory_order_relaxed);
}

int event_fd_take(struct event_fd *q)
{
	uint64_t token;

	if (read(q->fd, &token, sizeof(token)) != sizeof(token))
		return -1;
	pthread_mutex_lock(&q->lock);
	if (!list_empty(&q->pending))
		atomic_fetch_sub_explicit(&q->count, 1, memory_order_relaxed);
	return 0;
}
