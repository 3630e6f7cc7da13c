/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * System calls while a lock is held. libc makes most calls of sockets and files cancellation points
 * (POSIX.1-2017 2.9.5): a thread that the program cancels ends there, with the lock. A packet's calls are made without
 * libc's detour, which is cheaper; rare calls turn cancellation off around libc's.
 */
#pragma once

#include <pthread.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The state that cancel_restore() brings back. Pairs may be nested. */
static inline int cancel_off(void)
{
	int state;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	return state;
}

static inline void cancel_restore(int state)
{
	pthread_setcancelstate(state, NULL);
}

/* ---- as libc's functions of these names, errno too ---- */

static inline int uncancelled_sendmmsg(int fd, struct mmsghdr *messages, unsigned count, int flags)
{
	return (int)syscall(SYS_sendmmsg, fd, messages, count, flags);
}

static inline ssize_t uncancelled_sendmsg(int fd, const struct msghdr *message, int flags)
{
	return syscall(SYS_sendmsg, fd, message, flags);
}

/* Without a time limit. */
static inline int uncancelled_recvmmsg(int fd, struct mmsghdr *messages, unsigned count, int flags)
{
	return (int)syscall(SYS_recvmmsg, fd, messages, count, flags, NULL);
}

static inline ssize_t uncancelled_recvmsg(int fd, struct msghdr *message, int flags)
{
	return syscall(SYS_recvmsg, fd, message, flags);
}

static inline ssize_t uncancelled_write(int fd, const void *buf, size_t len)
{
	return syscall(SYS_write, fd, buf, len);
}

static inline int uncancelled_close(int fd)
{
	return (int)syscall(SYS_close, fd);
}
