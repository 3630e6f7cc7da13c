/* SPDX-License-Identifier: BSD-2-Clause */
/* One namespace for all devices of the process: a second one would need a place in each of their back ends. */
#include "io/net.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <unistd.h>

#include "io/fd_away.h"

static atomic_int there = -1;          /* the namespace; -1: that of each thread */
static _Thread_local int entered = -1; /* the one that this thread has gone to */

int net_set(int fd)
{
	return atomic_exchange(&there, fd);
}

int net_enter(int fd)
{
	if (setns(fd, CLONE_NEWNET) < 0)
		return -errno;
	entered = fd;
	return 0;
}

void net_leave(int own)
{
	/* It could go there, so it can go back. */
	setns(own, CLONE_NEWNET);
	entered = -1;
}

int net_own(void)
{
	int fd = fd_away(open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC));

	return fd < 0 ? -errno : fd;
}

/* For a moment: the thread is the program's. */
static int socket_at(int fd, int domain, int type, int protocol)
{
	int own = net_own(), made = -1, err = own < 0 ? -own : 0;

	if (!err && setns(fd, CLONE_NEWNET) < 0)
		err = errno;
	if (!err) {
		made = socket(domain, type, protocol);
		err = errno;
		/* It could go there, so it can go back. */
		setns(own, CLONE_NEWNET);
	}
	if (own >= 0)
		close(own);
	errno = err;
	return made;
}

int net_socket(int domain, int type, int protocol)
{
	int fd = atomic_load_explicit(&there, memory_order_relaxed);

	return fd < 0 || fd == entered ? socket(domain, type, protocol) : socket_at(fd, domain, type, protocol);
}
