/* SPDX-License-Identifier: BSD-2-Clause */
/* A program becomes `verbena run`, which prepares what the loader and libraries need, and then itself. */
#include "sim_process.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lockstep/lockstep.h"
#include "tool.h"

enum { FD_FIRST = 900, ENDS_MAX = 1000 };

void process_adopt(void)
{
	prctl(PR_SET_CHILD_SUBREAPER, 1);
}

/* Descriptors that programs do not close, as they would low ones; the limit may be lower. */
static int inherit(int fd)
{
	int high = fcntl(fd, F_DUPFD, FD_FIRST);

	return high >= 0 ? high : fcntl(fd, F_DUPFD, 3);
}

static void set_number(const char *name, unsigned long long n)
{
	char text[24];

	snprintf(text, sizeof(text), "%llu", n);
	setenv(name, text, 1);
}

static void set_environment(const struct turns_program *p, size_t rank, size_t ranks, int page_fd, int fd)
{
	char text[48];

	snprintf(text, sizeof(text), "%d,%d", inherit(fd), inherit(page_fd));
	setenv(LOCKSTEP_VARIABLE, text, 1);
	/* No time passes while the engine's thread looks for packets. */
	setenv("VERBENA_SPIN_US", "0", 1);
	set_number("VERBENA_HOST", p->host);
	set_number("VERBENA_RANK", rank);
	set_number("VERBENA_RANKS", ranks);
}

static char *const *command_of(const struct turns_program *p)
{
	static char run[] = "run", option[] = "--address", dashes[] = "--", name[] = "verbena", address[ADDRESS_BYTES];
	size_t n = 0, given = 0;
	char **words;
	uint8_t gid[16];

	while (p->words[given])
		given++;
	words = calloc(given + 6, sizeof(*words));
	if (!words)
		return NULL;
	lockstep_address(p->host, gid);
	snprintf(address, sizeof(address), "%u.%u.%u.%u", gid[12], gid[13], gid[14], gid[15]);
	words[n++] = name;
	words[n++] = run;
	words[n++] = option;
	words[n++] = address;
	words[n++] = dashes;
	memcpy(words + n, p->words, given * sizeof(*words));
	return words;
}

static _Noreturn void become(const struct turns_program *p, pid_t parent)
{
	char *const *words = command_of(p);
	int null = open("/dev/null", O_RDONLY);

	setpgid(0, 0);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(EXIT_OURS);
	signal(SIGINT, SIG_DFL);
	signal(SIGTERM, SIG_DFL);
	signal(SIGPIPE, SIG_DFL);
	/* Where things lie in memory may decide what a program does first. */
	personality(ADDR_NO_RANDOMIZE);
	dup2(null, 0);
	dup2(p->out_fd, 1);
	dup2(p->out_fd, 2);
	if (words)
		execv("/proc/self/exe", words);
	fprintf(stderr, "verbena: cannot run itself: %s\n", strerror(errno));
	_exit(EXIT_OURS);
}

pid_t process_start(const struct turns_program *p, size_t rank, size_t ranks, int page_fd, int *socket_fd)
{
	int ends[2], err;
	pid_t parent = getpid(), pid;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
		return -errno;
	pid = fork();
	if (!pid) {
		set_environment(p, rank, ranks, page_fd, ends[1]);
		become(p, parent);
	}
	err = errno;
	close(ends[1]);
	if (pid < 0) {
		close(ends[0]);
		return -err;
	}
	setpgid(pid, pid); /* whichever of the two is first */
	*socket_fd = ends[0];
	return pid;
}

/* Kills the children that this process has. False: it has none. */
static bool kill_children(void)
{
	char path[64];
	bool any = false;
	FILE *f;
	int pid;

	snprintf(path, sizeof(path), "/proc/self/task/%d/children", (int)getpid());
	f = fopen(path, "re");
	while (f && fscanf(f, "%d", &pid) == 1) {
		kill(pid, SIGKILL);
		any = true;
	}
	if (f)
		fclose(f);
	return any;
}

void process_end_all(const struct turns_program *p, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (p[i].pid > 0)
			kill(-p[i].pid, SIGKILL);
	/* Orphans come to us when their parents are gone, so there may be more after each round. */
	for (int i = 0; i < ENDS_MAX && kill_children(); i++)
		while (waitpid(-1, NULL, 0) > 0)
			;
}

/* ---- what threads wait for ---- */

static const char *call_name(long number)
{
	static const struct {
		long number;
		const char *name;
	} names[] = {
		{SYS_read, "read"},
		{SYS_write, "write"},
		{SYS_futex, "futex (a lock, a condition, the end of a thread, or an empty completion queue)"},
		{SYS_ppoll, "poll"},
		{SYS_pselect6, "select"},
		{SYS_epoll_pwait, "epoll_wait"},
		{SYS_accept, "accept"},
		{SYS_accept4, "accept"},
		{SYS_connect, "connect"},
		{SYS_recvfrom, "recv"},
		{SYS_recvmsg, "recvmsg"},
		{SYS_sendto, "send"},
		{SYS_nanosleep, "nanosleep"},
		{SYS_clock_nanosleep, "clock_nanosleep"},
		{SYS_wait4, "wait"},
		{SYS_waitid, "wait"},
		{SYS_rt_sigtimedwait, "sigwait"},
		{SYS_rt_sigsuspend, "sigsuspend"},
#ifdef SYS_poll
		{SYS_poll, "poll"},
		{SYS_select, "select"},
		{SYS_epoll_wait, "epoll_wait"},
		{SYS_pause, "pause"},
#endif
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (names[i].number == number)
			return names[i].name;
	return NULL;
}

static long call_of(pid_t pid, const char *tid)
{
	char path[64];
	long number = -1;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/task/%.16s/syscall", (int)pid, tid);
	f = fopen(path, "re");
	if (!f)
		return -1;
	if (fscanf(f, "%ld", &number) != 1)
		number = -1;
	fclose(f);
	return number;
}

void process_waits_text(pid_t pid, char *text, size_t bytes)
{
	char path[32];
	size_t n = 0;
	struct dirent *d;
	DIR *tasks;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	text[0] = 0;
	tasks = opendir(path);
	while (tasks && (d = readdir(tasks)) && n < bytes) {
		long number = d->d_name[0] == '.' ? -1 : call_of(pid, d->d_name);
		const char *name = call_name(number);

		if (d->d_name[0] == '.')
			continue;
		n += (size_t)snprintf(text + n, bytes - n, "%sthread %.16s waits", n ? ", " : "", d->d_name);
		if (name && n < bytes)
			n += (size_t)snprintf(text + n, bytes - n, " in %s", name);
		else if (number >= 0 && n < bytes)
			n += (size_t)snprintf(text + n, bytes - n, " in system call %ld", number);
	}
	if (tasks)
		closedir(tasks);
}
