/* SPDX-License-Identifier: BSD-2-Clause */
/* Members of groups know their processes, so each group of this network namespace is asked, and then those elsewhere. */
#include "reach.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/config.h"
#include "tool.h"

enum { QUERY_MS = 2000, GROUPS_MAX = 64 };

bool reach_pid_parse(const char *text, pid_t *out)
{
	char *end;
	long v;

	errno = 0;
	v = strtol(text, &end, 10);
	*out = (pid_t)v;
	return !errno && end != text && !*end && v > 0 && v <= INT_MAX;
}

static void look_at_group(struct reached *f, const struct group_id *id)
{
	struct group_member m[GROUP_SLOTS];
	ssize_t n = group_query(id, GROUP_ALL_SLOTS, QUERY_MS, m, GROUP_SLOTS);

	for (ssize_t i = 0; i < n; i++) {
		if (m[i].stat_fd >= 0)
			close(m[i].stat_fd);
		if (m[i].pid != f->pid || f->count == REACH_DEVICES_MAX)
			continue;
		f->devices[f->count].id = *id;
		f->devices[f->count++].member = m[i];
	}
}

static void look_at_port(struct reached *f, uint16_t port)
{
	struct group_id ids[GROUPS_MAX];
	size_t groups = group_list(geteuid(), port, ids, GROUPS_MAX);

	for (size_t i = 0; i < groups; i++)
		if (geteuid() == 0 || ids[i].uid == geteuid())
			look_at_group(f, &ids[i]);
}

static void look_here(struct reached *f, const struct config *c)
{
	look_at_port(f, c->transport.rocev2.port);
	if (!f->count)
		look_at_port(f, config_rocev1_port(c));
	if (!f->count)
		look_at_port(f, GROUP_PORT_NONE);
}

/* The device of a program that was moved is where one of its threads is. False: there is no such place, or no leave. */
static bool enter_thread(int task, const char *tid, ino_t *last)
{
	char path[PATH_MAX];
	struct stat st;
	int fd;
	bool entered;

	snprintf(path, sizeof(path), "%s/ns/net", tid);
	fd = openat(task, path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) || st.st_ino == *last) {
		if (fd >= 0)
			close(fd);
		return false;
	}
	*last = st.st_ino;
	entered = !setns(fd, CLONE_NEWNET);
	close(fd);
	return entered;
}

static void look_everywhere(struct reached *f, const struct config *c)
{
	char path[48];
	struct stat here = {0};
	struct dirent *d;
	DIR *task;

	look_here(f, c);
	snprintf(path, sizeof(path), "/proc/%d/task", f->pid);
	task = f->count ? NULL : opendir(path);
	if (!task)
		return;
	stat("/proc/thread-self/ns/net", &here);
	while (!f->count && (d = readdir(task)))
		if (d->d_name[0] != '.' && enter_thread(dirfd(task), d->d_name, &here.st_ino))
			look_here(f, c);
	closedir(task);
}

int reach_find(struct reached *f, const char *command, const char *pid)
{
	struct config c;
	char why[1024];

	if (!reach_pid_parse(pid, &f->pid))
		return complain("%s: '%s': allowed is a process id", command, pid);
	if (config_load(&c, why, sizeof(why)))
		return complain("%s", why);
	look_everywhere(f, &c);
	return f->count ? EXIT_SUCCESS : complain("process %d does not run on Verbena, or is another user's", f->pid);
}

bool reach_here(struct reached *f, pid_t pid)
{
	struct config c;
	char why[1024];

	*f = (struct reached){.pid = pid};
	if (!config_load(&c, why, sizeof(why)))
		look_here(f, &c);
	return f->count;
}

int reach_give(const struct reached *f, size_t i, const struct group_command *c, int *link)
{
	char said[1024] = "";
	int rc = group_command(&f->devices[i].id, &f->devices[i].member, c, said, sizeof(said));

	if (rc == -ESRCH)
		return complain("process %d has ended", f->pid);
	if (rc == -EPROTO)
		return complain("process %d has another version of verbena, which cannot be frozen", f->pid);
	if (rc < 0)
		return complain("process %d does not answer: %s", f->pid, strerror(-rc));
	if (said[0] && c->stays)
		close(rc);
	if (said[0])
		return complain("process %d: %s", f->pid, said);
	if (c->stays)
		*link = rc;
	return EXIT_SUCCESS;
}

int reach_ask(const struct reached *f, size_t i, const char *command, char *said, size_t said_bytes)
{
	const struct group_command c = {.kind = GROUP_COMMAND_FREEZE, .text = command, .wait_ms = REACH_WAIT_MS};

	return group_command(&f->devices[i].id, &f->devices[i].member, &c, said, said_bytes);
}

bool reach_options(int argc, char **argv, const char *command, const struct option *options, const char *usage,
		   const char **value, int *rc)
{
	int opt;

	while ((opt = getopt_long(argc, argv, "h", options, NULL)) != -1) {
		if (opt == 'v')
			*value = optarg;
		if (opt == 'v' || !opt)
			continue;
		*rc = opt == 'h' ? EXIT_SUCCESS : usage_error(command);
		if (opt == 'h')
			fputs(usage, stdout);
		return false;
	}
	if (argc - optind == 1)
		return true;
	complain("%s: allowed is one process id", command);
	*rc = usage_error(command);
	return false;
}
