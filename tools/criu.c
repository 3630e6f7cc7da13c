/* SPDX-License-Identifier: BSD-2-Clause */
/* CRIU writes what it does to standard error, which is a file of the folder. Images have the program's memory, so the folder
 * is its user's alone. */
#include "criu.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "program.h"
#include "tool.h"

enum { LINE_BYTES = 512, TAIL_WORDS = 5, WORDS_MAX = 16 + 2 * ENDS_PIPES_MAX };

static const char *const words_of[] = {[CRIU_CHECK] = "check", [CRIU_DUMP] = "dump", [CRIU_RESTORE] = "restore"};

static void log_name(enum criu_call call, char *name, size_t bytes)
{
	snprintf(name, bytes, "%s.log", words_of[call]);
}

static int wait_for(pid_t child)
{
	int status = -1;

	while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR) {
	}
	return status;
}

/* Only a child of who enters a PID namespace is in it. Of another namespace than that of its network CRIU makes an image, too. */
static void enter(const struct criu *c)
{
	pid_t child;

	if (c->namespaces && setns(c->pidfd, c->namespaces) < 0) {
		fprintf(stderr, "it cannot enter the program's namespaces: %s\n", strerror(errno));
		_exit(EXIT_OURS);
	}
	child = fork();
	if (child)
		_exit(wait_for(child) ? EXIT_OURS : EXIT_SUCCESS);
}

/* In a child. The folder is not the same path in another mount namespace. */
static _Noreturn void become(const struct criu *c, enum criu_call call, char **argv)
{
	char name[32];
	int log;

	log_name(call, name, sizeof(name));
	log = openat(c->fd, name, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	if (log < 0 || dup2(log, STDOUT_FILENO) < 0 || dup2(log, STDERR_FILENO) < 0)
		_exit(EXIT_OURS);
	if (call != CRIU_RESTORE)
		enter(c);
	if (!fchdir(c->fd))
		execvp(argv[0], argv);
	fprintf(stderr, "%s: %s\n", argv[0], strerror(errno));
	_exit(EXIT_OURS);
}

/* `more` ends with NULL. */
static bool call_it(const struct criu *c, enum criu_call call, const char *const *more)
{
	char *argv[WORDS_MAX] = {"criu", (char *)(uintptr_t)words_of[call]};
	size_t n = 2;
	pid_t child;

	while (*more && n < WORDS_MAX - TAIL_WORDS)
		argv[n++] = (char *)(uintptr_t)*more++;
	if (c->unprivileged)
		argv[n++] = "--unprivileged";
	/* Nothing arrives, which is what a lock would be for. */
	if (c->tcp && call != CRIU_CHECK) {
		argv[n++] = "--tcp-established";
		argv[n++] = "--network-lock";
		argv[n++] = "skip";
	}
	child = fork();
	if (!child)
		become(c, call, argv);
	return !wait_for(child);
}

#define COMMON "--images-dir", ".", "--shell-job", "--file-locks"

bool criu_dump(const struct criu *c, pid_t pid)
{
	char text[16];

	snprintf(text, sizeof(text), "%d", pid);
	return call_it(c, CRIU_DUMP, (const char *const[]){"--tree", text, "--leave-stopped", COMMON, NULL});
}

bool criu_restore(const struct criu *c)
{
	const char *words[WORDS_MAX] = {COMMON, "--restore-detached"};
	char text[ENDS_PIPES_MAX][64];
	size_t n = 0;

	while (words[n])
		n++;
	for (size_t i = 0; i < c->pipe_count; i++) {
		snprintf(text[i], sizeof(text[i]), "fd[%d]:pipe:[%lu]", c->pipes[i].fd, c->pipes[i].inode);
		fcntl(c->pipes[i].fd, F_SETFD, 0);
		words[n++] = "--inherit-fd";
		words[n++] = text[i];
	}
	return call_it(c, CRIU_RESTORE, words);
}

/* ---- what it says ---- */

/* The first error, of which others are consequences, or else the last line. That it may not have many files is none. */
static void read_words(const struct criu *c, enum criu_call call, char *text, size_t bytes)
{
	char name[32], line[LINE_BYTES];
	bool has_error = false;
	FILE *f;
	int fd;

	snprintf(text, bytes, "it says nothing");
	log_name(call, name, sizeof(name));
	fd = openat(c->fd, name, O_RDONLY | O_CLOEXEC);
	f = fd < 0 ? NULL : fdopen(fd, "r");
	while (f && !has_error && fgets(line, sizeof(line), f)) {
		has_error = strstr(line, "Error") && !strstr(line, "rlimit:");
		if (line[0] != '\n')
			printable(text, bytes, line, strcspn(line, "\n"));
	}
	if (f)
		fclose(f);
}

int criu_explain(const struct criu *c, enum criu_call call, pid_t pid)
{
	char text[LINE_BYTES];

	read_words(c, call, text, sizeof(text));
	return complain("criu %s of process %d failed: %s (all of it is in %s/%s.log)", words_of[call], pid, text,
			c->folder, words_of[call]);
}

/* ---- found and tried ---- */

static bool is_root_everywhere(void)
{
	unsigned long first = 0, outside = 0, count = 0;
	FILE *f = fopen("/proc/self/uid_map", "re");
	bool everywhere = f && fscanf(f, "%lu %lu %lu", &first, &outside, &count) == 3 && count == UINT32_MAX;

	if (f)
		fclose(f);
	return everywhere;
}

/* But for that of its network, which the caller is in, and its users', which has to be the same. */
static int others_of(pid_t pid)
{
	static const struct {
		const char *name;
		int flag;
	} kinds[] = {{"pid", CLONE_NEWPID},
		     {"mnt", CLONE_NEWNS},
		     {"ipc", CLONE_NEWIPC},
		     {"uts", CLONE_NEWUTS},
		     {"cgroup", CLONE_NEWCGROUP}};
	char its[64], ours[64];
	struct stat a, b;
	int others = 0;

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		snprintf(its, sizeof(its), "/proc/%d/ns/%s", pid, kinds[i].name);
		snprintf(ours, sizeof(ours), "/proc/self/ns/%s", kinds[i].name);
		if (!stat(its, &a) && !stat(ours, &b) && a.st_ino != b.st_ino)
			others |= kinds[i].flag;
	}
	return others;
}

static bool make_folder(struct criu *c)
{
	const char *where = getenv("TMPDIR");
	int n = snprintf(c->folder, sizeof(c->folder), "%s/verbena-move-XXXXXX",
			 where && where[0] == '/' ? where : "/tmp");

	if (n < 0 || (size_t)n >= sizeof(c->folder) || !mkdtemp(c->folder)) {
		c->folder[0] = 0;
		return false;
	}
	c->fd = open(c->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return c->fd >= 0;
}

int criu_find(struct criu *c, pid_t pid, int pidfd)
{
	struct program p;
	char text[LINE_BYTES];

	*c = (struct criu){
		.fd = -1, .pidfd = pidfd, .namespaces = others_of(pid), .unprivileged = !is_root_everywhere()};
	if (!program_look("criu", &p))
		return complain(
			"move: --restore needs criu, and there is none in PATH; the device alone moves without --restore");
	if (!make_folder(c))
		return complain("move: --restore: no folder for the images can be made in %s: %s",
				getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp", strerror(errno));
	c->pipe_count = ends_pipes(pid, pidfd, c->pipes);
	if (call_it(c, CRIU_CHECK, (const char *const[]){NULL}))
		return EXIT_SUCCESS;
	read_words(c, CRIU_CHECK, text, sizeof(text));
	return complain("move: --restore: 'criu check%s' says that it cannot be done here: %s",
			c->unprivileged ? " --unprivileged" : "", text);
}

void criu_close(struct criu *c, bool keep_words)
{
	DIR *d = c->fd < 0 ? NULL : fdopendir(c->fd);
	struct dirent *e;

	while (d && (e = readdir(d))) {
		const char *end = strrchr(e->d_name, '.');

		if (!keep_words || !end || strcmp(end, ".log") != 0)
			unlinkat(dirfd(d), e->d_name, 0);
	}
	if (d)
		closedir(d);
	while (c->pipe_count)
		close(c->pipes[--c->pipe_count].fd);
	if (c->folder[0] && !keep_words)
		rmdir(c->folder);
}
