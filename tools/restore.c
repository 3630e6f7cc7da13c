/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The program stays, stopped and with its devices frozen, until a copy of it runs there and the copy's devices have thawed.
 * Both have the same process id, so the copy is in a PID namespace of its own, whose first process is the keeper: it waits
 * for the copy and ends with it, and the kernel ends the copy with the keeper.
 */
#include "restore.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "criu.h"
#include "ends.h"
#include "luggage.h"
#include "tool.h"

/* Far longer than a move takes. The program's devices thaw by themselves then, should this process be killed. */
#define HOLD_NS UINT64_C(600000000000)

enum { PATH_BYTES = 64, LINE_BYTES = 256, TEXT_BYTES = 64, END_MS = 10000 };

struct move {
	const struct reached *f;
	pid_t pid;
	int pidfd, here, there;
	struct criu criu;
	struct luggage luggage;
	pid_t keeper;
	pid_t copy; /* as this process sees it */
};

/* ---- what cannot be done ---- */

static bool is_same_user_namespace(pid_t pid)
{
	char path[PATH_BYTES];
	struct stat a, b;

	snprintf(path, sizeof(path), "/proc/%d/ns/user", pid);
	return !stat(path, &a) && !stat("/proc/self/ns/user", &b) && a.st_ino == b.st_ino;
}

/* As its own PID namespace numbers it. */
static pid_t own_pid(pid_t pid)
{
	char path[PATH_BYTES], line[LINE_BYTES];
	pid_t own = pid;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f))
		if (!strncmp(line, "NSpid:", strlen("NSpid:")))
			own = atoi(strrchr(line, '\t') + 1);
	if (f)
		fclose(f);
	return own;
}

/* The first child of a process; 0: it has none. */
static pid_t child_of(pid_t pid)
{
	char path[PATH_BYTES];
	pid_t child = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/children", pid, pid);
	f = fopen(path, "re");
	if (f && fscanf(f, "%d", &child) != 1)
		child = 0;
	if (f)
		fclose(f);
	return child;
}

static bool is_in(int netns, pid_t pid)
{
	char path[PATH_BYTES];
	struct stat a, b;

	snprintf(path, sizeof(path), "/proc/%d/ns/net", pid);
	return !stat(path, &a) && !fstat(netns, &b) && a.st_ino == b.st_ino;
}

static int judge(const struct move *m)
{
	if (!is_same_user_namespace(m->pid))
		return complain(
			"process %d is in another user namespace: 'verbena move --restore' has to run in the one that it is in",
			m->pid);
	if (!is_in(m->here, m->pid))
		return complain(
			"process %d: its device is in another network namespace than the program: move the device back first",
			m->pid);
	if (is_in(m->there, m->pid))
		return complain("process %d is in that network namespace already", m->pid);
	if (child_of(m->pid))
		return complain("process %d has children, and only a program of one process can be restored elsewhere",
				m->pid);
	return EXIT_SUCCESS;
}

/* ---- frozen, and as it was ---- */

static int freeze(const struct move *m)
{
	char text[TEXT_BYTES];
	struct group_command c = {.kind = GROUP_COMMAND_FREEZE, .text = text, .wait_ms = REACH_WAIT_MS};
	int rc = EXIT_SUCCESS;

	snprintf(text, sizeof(text), "freeze %" PRIu64 " for", HOLD_NS);
	for (size_t i = 0; i < m->f->count && rc == EXIT_SUCCESS; i++)
		rc = reach_give(m->f, i, &c, NULL);
	return rc;
}

static int thaw(const struct reached *f)
{
	const struct group_command c = {.kind = GROUP_COMMAND_FREEZE, .text = "thaw", .wait_ms = REACH_WAIT_MS};
	int rc = EXIT_SUCCESS;

	for (size_t i = 0; i < f->count && rc == EXIT_SUCCESS; i++)
		rc = reach_give(f, i, &c, NULL);
	return rc;
}

/* A device that was not frozen says so, which concerns nobody. */
static void go_on_here(const struct move *m)
{
	char said[1024];
	bool all = true;

	ends_deafen(m->pid, m->pidfd, false);
	syscall(SYS_pidfd_send_signal, m->pidfd, SIGCONT, NULL, 0);
	for (size_t i = 0; i < m->f->count; i++) {
		int rc = reach_ask(m->f, i, "thaw", said, sizeof(said));

		if (!rc && (!said[0] || strstr(said, "not frozen")))
			continue;
		all = false;
		complain("process %d stays frozen: %s; 'verbena thaw' tries again", m->pid, rc ? strerror(-rc) : said);
	}
	if (all)
		complain("process %d goes on where it was", m->pid);
}

/* ---- the copy ---- */

/* Nothing of the tool's stays with it. */
static _Noreturn void keep(void)
{
	prctl(PR_SET_NAME, "verbena-keeper");
	closefrom(0);
	if (chdir("/"))
		_exit(EXIT_FAILURE);
	while (wait(NULL) > 0 || errno == EINTR) {
	}
	_exit(EXIT_SUCCESS);
}

/* The first process of the PID namespace. Mounts of the program's namespace go on appearing in the copy's. */
static _Noreturn void restore_and_keep(const struct move *m, int report)
{
	const int namespaces = m->criu.namespaces & ~CLONE_NEWPID;
	char done;

	setsid();
	if ((namespaces && setns(m->pidfd, namespaces) < 0) || unshare(CLONE_NEWNS) < 0 ||
	    mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL) < 0 ||
	    mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) < 0 ||
	    setns(m->there, CLONE_NEWNET) < 0)
		done = (char)errno;
	else
		done = criu_restore(&m->criu) ? 0 : -1;
	if (write(report, &done, sizeof(done)) != sizeof(done) || done)
		_exit(EXIT_FAILURE);
	keep();
}

static int explain_keeper(const struct move *m, ssize_t n, char done)
{
	if (n == sizeof(done) && done > 0)
		return complain("process %d goes on where it was: a PID namespace for it cannot be made: %s", m->pid,
				strerror(done));
	return criu_explain(&m->criu, CRIU_RESTORE, m->pid);
}

static void end_copy(struct move *m)
{
	if (m->keeper <= 0)
		return;
	kill(m->keeper, SIGKILL);
	waitpid(m->keeper, NULL, 0);
	m->keeper = 0;
}

static int restore(struct move *m)
{
	int report[2] = {-1, -1};
	char done = -1;
	ssize_t n = -1;

	if (pipe2(report, O_CLOEXEC) < 0)
		return complain("move: it has no descriptor left: %s", strerror(errno));
	m->keeper = (pid_t)syscall(SYS_clone, CLONE_NEWPID | SIGCHLD, NULL, NULL, NULL, 0UL);
	if (!m->keeper)
		restore_and_keep(m, report[1]);
	close(report[1]);
	if (m->keeper < 0)
		done = (char)errno;
	do
		n = m->keeper < 0 ? (ssize_t)sizeof(done) : read(report[0], &done, sizeof(done));
	while (n < 0 && errno == EINTR);
	close(report[0]);
	if (n == sizeof(done) && !done)
		return EXIT_SUCCESS;
	return explain_keeper(m, n, done);
}

static int thaw_copy(struct move *m)
{
	struct reached its;

	m->copy = child_of(m->keeper);
	if (!m->copy)
		return complain("criu restore of process %d has left no process", m->pid);
	if (setns(m->there, CLONE_NEWNET) < 0)
		return complain("move: it cannot enter that network namespace: %s", strerror(errno));
	if (!reach_here(&its, m->copy) || its.count != m->f->count)
		return complain("what was restored of process %d shows no device there", m->pid);
	/* The copy's first packets would be answered here. */
	luggage_announce(&m->luggage, true);
	return thaw(&its);
}

/* ---- all of it ---- */

static void end_program(const struct move *m)
{
	struct pollfd p = {.fd = m->pidfd, .events = POLLIN};

	syscall(SYS_pidfd_send_signal, m->pidfd, SIGKILL, NULL, 0);
	poll(&p, 1, END_MS);
}

static void let_hear(pid_t copy)
{
	int pidfd = (int)syscall(SYS_pidfd_open, copy, 0);

	ends_deafen(copy, pidfd, false);
	if (pidfd >= 0)
		close(pidfd);
}

static int go(struct move *m)
{
	int rc = freeze(m);

	if (rc == EXIT_SUCCESS && m->luggage.has_tcp && !ends_deafen(m->pid, m->pidfd, true))
		rc = complain("process %d: its TCP connections cannot be kept from taking what arrives: %s", m->pid,
			      strerror(errno));
	if (rc == EXIT_SUCCESS && !criu_dump(&m->criu, own_pid(m->pid)))
		rc = criu_explain(&m->criu, CRIU_DUMP, m->pid);
	if (rc == EXIT_SUCCESS)
		rc = luggage_give(&m->luggage);
	if (rc == EXIT_SUCCESS)
		rc = restore(m);
	if (rc == EXIT_SUCCESS)
		rc = thaw_copy(m);
	if (rc == EXIT_SUCCESS) {
		luggage_leave(&m->luggage);
		luggage_announce(&m->luggage, true);
		end_program(m);
		let_hear(m->copy);
		printf("process %d is process %d now\n", m->pid, m->copy);
		return rc;
	}
	/* So that peers hear nothing of the end of the copy's TCP connections. */
	luggage_take_back(&m->luggage);
	end_copy(m);
	setns(m->here, CLONE_NEWNET);
	luggage_announce(&m->luggage, false);
	go_on_here(m);
	return rc;
}

/* Who interrupts the command waits until it knows where the program is. */
static int go_uninterrupted(struct move *m)
{
	sigset_t all, before;
	int rc;

	sigemptyset(&all);
	sigaddset(&all, SIGINT);
	sigaddset(&all, SIGTERM);
	sigaddset(&all, SIGHUP);
	sigaddset(&all, SIGQUIT);
	sigaddset(&all, SIGPIPE);
	sigprocmask(SIG_BLOCK, &all, &before);
	rc = go(m);
	fflush(stdout);
	sigprocmask(SIG_SETMASK, &before, NULL);
	return rc;
}

int restore_move(const struct reached *f, int there, bool with_addresses)
{
	struct move m = {.f = f,
			 .pid = f->pid,
			 .pidfd = (int)syscall(SYS_pidfd_open, f->pid, 0),
			 .here = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC),
			 .there = there,
			 .luggage = {.here = -1, .there = -1},
			 .criu = {.fd = -1}};
	int rc;
	bool called = false;

	if (m.pidfd < 0 || m.here < 0)
		rc = complain("process %d cannot be looked at: %s", m.pid, strerror(errno));
	else
		rc = judge(&m);
	if (rc == EXIT_SUCCESS)
		rc = criu_find(&m.criu, m.pid, m.pidfd);
	if (rc == EXIT_SUCCESS)
		rc = luggage_pack(&m.luggage, f, m.pidfd, m.here, there, with_addresses);
	if (rc == EXIT_SUCCESS) {
		m.criu.tcp = m.luggage.has_tcp;
		called = true;
		rc = go_uninterrupted(&m);
	}
	criu_close(&m.criu, called && rc != EXIT_SUCCESS);
	luggage_close(&m.luggage);
	close(m.pidfd);
	close(m.here);
	return rc;
}
