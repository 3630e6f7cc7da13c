/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The heir: a process that `verbena run` leaves behind, outside the program's family, so that no wait() finds it and no
 * signal tells of its end. Programs of rdma_cm connect to it and give it the memory that the processes of a group
 * share, with their last wills (docs/rdmacm.md 7.6). It sleeps until a connection ends that has not said good-bye: then
 * it starts an engine with that memory, in a child, which is a member of the group like any other. If nobody else is
 * left, that one is the registrar and carries out the wills; else it has nothing to do. The heir ends with the program
 * and the last connection.
 */
#include "heir.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cm/cm.h"
#include "engine/engine.h"

enum {
	LINKS_MAX = 1024,
	LISTENER = 0, /* places of descriptors that are polled; links follow */
	PROGRAM,
	EXECUTOR,
	LINKS,
	BACKLOG = 128,
	KEPT = 3, /* behind the standard ones the heir has two descriptors under these numbers */
	HIGH_FDS = KEPT + 2,
	/* The registrar looks again a second later for processes that were not wholly gone (engine/registrar.c). */
	STAY_MS_MIN = 1500,
	STAY_MS_MAX = 60000,
	LOOK_MS = 100
};

struct heir {
	struct pollfd fds[LINKS + LINKS_MAX];
	nfds_t count;
	int page; /* the last one that was given; -1: none */
	bool due; /* somebody has ended, and no executor has been started since */
};

/* ---- the executor: a member of the group ------------------------------------------------------- */

static bool has_wills(struct engine *e)
{
	bool has;

	engine_lock(e);
	has = cm_has_wills(engine_cm(e));
	engine_unlock(e);
	return has;
}

/* Settings that spoil or capture packets are for the program's own. */
static _Noreturn void execute_wills(int page)
{
	static const struct engine_sink no_objects;
	static const struct engine_cm_sink no_channels;
	struct engine *e;
	char why[512];

	unsetenv("VERBENA_HEIR");
	setenv("VERBENA_PCAP", "", 1);
	setenv("VERBENA_IMPAIR", "", 1);
	engine_inherit(page);
	e = engine_get(0, &no_objects, why, sizeof(why));
	if (!e)
		_exit(EXIT_FAILURE);
	engine_lock(e);
	engine_set_cm_sink(e, &no_channels);
	engine_unlock(e);
	for (unsigned ms = 0; ms < STAY_MS_MAX && (ms < STAY_MS_MIN || has_wills(e)); ms += LOOK_MS)
		poll(NULL, 0, LOOK_MS);
	exit(EXIT_SUCCESS);
}

/* One at a time: it finds the wills of all that have ended. */
static void executor_start(struct heir *h)
{
	pid_t child = fork();

	if (!child) {
		for (nfds_t i = 0; i < h->count; i++)
			close(h->fds[i].fd);
		execute_wills(h->page);
	}
	h->due = false;
	h->fds[EXECUTOR].fd = child < 0 ? -1 : (int)syscall(SYS_pidfd_open, child, 0);
}

static void executor_ended(struct heir *h)
{
	close(h->fds[EXECUTOR].fd);
	h->fds[EXECUTOR].fd = -1;
}

/* ---- the heir ---------------------------------------------------------------------------------- */

static bool is_same_user(int fd)
{
	struct ucred who;
	socklen_t len = sizeof(who);

	return !getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &len) && who.uid == geteuid();
}

static void link_accept(struct heir *h)
{
	int fd = accept4(h->fds[LISTENER].fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	if (fd < 0 && (errno == EAGAIN || errno == EINTR || errno == ECONNABORTED))
		return;
	/* Without a descriptor for it the connection would stay where it is, and wake us for ever. */
	if (fd < 0) {
		close(h->fds[LISTENER].fd);
		h->fds[LISTENER].fd = -1;
		return;
	}
	if (h->count == LINKS + LINKS_MAX || !is_same_user(fd))
		close(fd);
	else
		h->fds[h->count++] = (struct pollfd){.fd = fd, .events = POLLIN};
}

static void link_close(struct heir *h, nfds_t i)
{
	close(h->fds[i].fd);
	h->fds[i] = h->fds[--h->count];
}

/* The first record brings the memory; another one, without, is the good-bye. */
static void link_read(struct heir *h, nfds_t i)
{
	_Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(int))];
	char byte;
	struct iovec iov = {&byte, sizeof(byte)};
	struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof(control)};
	ssize_t n = recvmsg(h->fds[i].fd, &m, MSG_CMSG_CLOEXEC);
	struct cmsghdr *c = n > 0 ? CMSG_FIRSTHDR(&m) : NULL;

	if (n < 0 && errno == EAGAIN)
		return;
	if (n <= 0) {
		h->due |= h->page >= 0;
		link_close(h, i);
	} else if (c && c->cmsg_type == SCM_RIGHTS && c->cmsg_len == CMSG_LEN(sizeof(int))) {
		if (h->page >= 0)
			close(h->page);
		memcpy(&h->page, CMSG_DATA(c), sizeof(h->page));
	} else {
		link_close(h, i);
	}
}

static bool is_needed(const struct heir *h)
{
	return h->fds[PROGRAM].fd >= 0 || h->fds[EXECUTOR].fd >= 0 || h->count > LINKS || h->due;
}

static void wait_and_serve(struct heir *h)
{
	if (poll(h->fds, h->count, -1) < 0)
		return;
	if (h->fds[PROGRAM].revents) {
		close(h->fds[PROGRAM].fd);
		h->fds[PROGRAM].fd = -1;
	}
	if (h->fds[EXECUTOR].revents)
		executor_ended(h);
	/* From the last one on, whose place one takes that was looked at. */
	for (nfds_t i = h->count; i-- > LINKS;) {
		if (h->fds[i].revents)
			link_read(h, i);
	}
	if (h->fds[LISTENER].revents)
		link_accept(h);
	if (h->due && h->fds[EXECUTOR].fd < 0)
		executor_start(h);
}

/* Keeps nothing of the program's: no session, folder or descriptor, of a pipe for example that somebody reads to its
 * end. */
static void step_aside(const int kept[2])
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	for (int fd = 0; fd < KEPT; fd++) {
		if (dup2(null, fd) < 0)
			close(fd);
	}
	dup2(kept[0], KEPT);
	dup2(kept[1], KEPT + 1);
	closefrom(KEPT + 2);
	setsid();
	signal(SIGCHLD, SIG_IGN);
	prctl(PR_SET_NAME, "verbena-heir");
	if (chdir("/"))
		_exit(EXIT_FAILURE);
}

static _Noreturn void inherit(int listener, int program)
{
	static struct heir h = {.count = LINKS, .page = -1};

	step_aside((int[2]){listener, program});
	h.fds[LISTENER] = (struct pollfd){.fd = KEPT, .events = POLLIN};
	h.fds[PROGRAM] = (struct pollfd){.fd = KEPT + 1, .events = POLLIN};
	h.fds[EXECUTOR] = (struct pollfd){.fd = -1, .events = POLLIN};
	while (is_needed(&h))
		wait_and_serve(&h);
	_exit(EXIT_SUCCESS);
}

/* Takes fd. The same file at HIGH_FDS or above; or -1. */
static int to_high(int fd)
{
	int high = fcntl(fd, F_DUPFD_CLOEXEC, HIGH_FDS);

	if (fd >= 0)
		close(fd);
	return high;
}

/* A socket with a name that nobody guesses, at HIGH_FDS or above; or -1. */
static int listen_as(char *name, size_t bytes)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	int fd = to_high(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
	uint64_t drawn;

	if (fd < 0)
		return fd;
	if (getrandom(&drawn, sizeof(drawn), 0) != sizeof(drawn))
		goto close_it;
	snprintf(name, bytes, "verbena.heir.%016llx", (unsigned long long)drawn);
	strcpy(a.sun_path + 1, name);
	if (!bind(fd, (struct sockaddr *)&a, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(name))) &&
	    !listen(fd, BACKLOG))
		return fd;
close_it:
	close(fd);
	return -1;
}

/*
 * Where the program is to be the process that adopts orphans, as a container's first one is, it would find the heir
 * among its children. Below another `verbena run` there is an heir already.
 */
static bool is_possible(void)
{
	int adopts = 0;

	prctl(PR_GET_CHILD_SUBREAPER, &adopts, 0, 0, 0);
	return getpid() != 1 && !adopts && !getenv("VERBENA_HEIR");
}

void heir_leave(void)
{
	char name[64];
	int listener, program;
	pid_t between;

	if (!is_possible())
		return;
	listener = listen_as(name, sizeof(name));
	if (listener < 0)
		return;
	program = to_high((int)syscall(SYS_pidfd_open, getpid(), 0));
	between = program < 0 ? -1 : fork();
	if (!between) {
		if (!fork())
			inherit(listener, program);
		_exit(EXIT_SUCCESS);
	}
	if (between > 0) {
		waitpid(between, NULL, 0);
		setenv("VERBENA_HEIR", name, 1);
	}
	close(listener);
	if (program >= 0)
		close(program);
}
