/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A shell's standard input and output are one socket here. At the other end they are pipes, as a rule, and a process
 * copies between them and a socket, without either direction waiting for the other.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sdr/meet.h"
#include "sdr/remote.h"

enum { WORDS_MAX = 64 };

static pid_t shell_pid;

const char *remote_command(void)
{
	return getenv("VERBENA_SYSFS") ? "verbena run sdr_cp" : "sdr_cp";
}

static char *text_of(const char *from, size_t len)
{
	char *text = strndup(from, len);

	if (!text)
		die("no memory");
	return text;
}

/* The colon that is behind the host; NULL: there is none. */
static const char *colon_of(const char *text)
{
	const char *bracket = strchr(text, '['), *close = bracket ? strstr(bracket, "]:") : NULL;
	const char *colon = close ? close + 1 : strchr(text, ':'), *slash = strchr(text, '/');
	struct in6_addr address;

	if (!colon || colon == text || (slash && slash < colon) || inet_pton(AF_INET6, text, &address) == 1)
		return NULL;
	return colon;
}

/* user@[fe80::1] is user@fe80::1 to a shell. */
static void brackets_drop(char *host)
{
	char *open = strchr(host, '['), *close = strrchr(host, ']');

	if (!open || !close || close[1] || close < open)
		return;
	memmove(open, open + 1, strlen(open));
	close[-1] = 0;
}

enum remote_kind remote_split(const char *text, char **host, char **path)
{
	const char *colon = colon_of(text), *behind;

	if (!colon)
		return REMOTE_NONE;
	if (text[0] == '-')
		die("%s: a host's name does not begin with '-'", text);
	behind = colon + 1 + (colon[1] == ':');
	*host = text_of(text, (size_t)(colon - text));
	brackets_drop(*host);
	*path = text_of(behind[0] ? behind : ".", strlen(behind) + 1);
	return colon[1] == ':' ? REMOTE_SERVER : REMOTE_SHELL;
}

/* ---- the end that starts the other */

static void __attribute__((noreturn)) shell_become(char *shell, const char *host, const char *command, int fd)
{
	char *words[WORDS_MAX + 3], server[4096];
	size_t n = 0;

	for (char *word = strtok(shell, " "); word && n < WORDS_MAX; word = strtok(NULL, " "))
		words[n++] = word;
	snprintf(server, sizeof(server), "%s --server", command);
	words[n] = text_of(host, strlen(host));
	words[n + 1] = server;
	words[n + 2] = NULL;
	dup2(fd, 0);
	dup2(fd, 1);
	execvp(words[0], words);
	fprintf(stderr, "sdr_cp: %s: %s\n", words[0], strerror(errno));
	_exit(127);
}

static const char *shell_status(char text[64])
{
	int status;

	if (waitpid(shell_pid, &status, 0) != shell_pid)
		return "is gone";
	if (WIFSIGNALED(status))
		snprintf(text, 64, "ended by signal %d", WTERMSIG(status));
	else
		snprintf(text, 64, "ended with status %d", WEXITSTATUS(status));
	return text;
}

int remote_start(const char *shell, const char *host, const char *command)
{
	char *words = text_of(shell, strlen(shell)), status[64];
	int fd[2];

	if (!words[strspn(words, " ")])
		die("--rsh: a command is wanted");
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd))
		die("a socket for %s: %s", shell, strerror(errno));
	shell_pid = fork();
	if (shell_pid < 0)
		die("%s: %s", shell, strerror(errno));
	if (!shell_pid)
		shell_become(words, host, command, fd[1]);
	close(fd[1]);
	free(words);
	switch (meet_greet(fd[0])) {
	case MEET_KNOWN: return fd[0];
	case MEET_SILENT:
		die("%s: '%s' %s, and no sdr_cp has answered; --remote-path tells how it is run there", host, shell,
		    shell_status(status));
	default: die("%s: not sdr_cp has answered, but something else, which a shell's start-up file may print", host);
	}
}

void remote_end(int fd)
{
	close(fd);
	if (shell_pid > 0)
		waitpid(shell_pid, NULL, 0);
}

/* ---- the end that is started */

/* What goes one way: no more than a pipe that poll() calls writable takes without a wait. */
struct way {
	int from, to;
	size_t begun, bytes;
	char some[PIPE_BUF];
};

static struct pollfd way_wants(const struct way *w)
{
	return w->begun < w->bytes ? (struct pollfd){w->to, POLLOUT, 0} : (struct pollfd){w->from, POLLIN, 0};
}

/* False: no more goes that way. */
static bool way_step(struct way *w)
{
	bool writes = w->begun < w->bytes;
	ssize_t n = writes ? write(w->to, w->some + w->begun, w->bytes - w->begun)
			   : read(w->from, w->some, sizeof(w->some));

	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return true;
	if (n <= 0)
		return false;
	w->begun = writes ? w->begun + (size_t)n : 0;
	w->bytes = writes ? w->bytes : (size_t)n;
	return true;
}

/*
 * Copies between the pipes and the socket `here` until one end is gone. It is one process for both ways and the only one
 * that has the pipes, so whichever of the processes is killed, the others see it.
 */
static void __attribute__((noreturn)) copy(int here)
{
	struct way in = {.from = 0, .to = here}, out = {.from = here, .to = 1};

	for (;;) {
		struct pollfd fds[] = {way_wants(&out), way_wants(&in)};

		if (poll(fds, 2, -1) < 0)
			continue;
		if (fds[0].revents && !way_step(&out))
			_exit(0);
		if (fds[1].revents && !way_step(&in)) {
			shutdown(here, SHUT_WR);
			in.from = -1; /* poll() passes it over */
			in.begun = in.bytes = 0;
		}
	}
}

int remote_serve(void)
{
	int fd[2], nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
	pid_t pid;

	if (isatty(0) || nothing < 0)
		die("--server is for the end that another sdr_cp starts");
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd))
		die("a socket: %s", strerror(errno));
	signal(SIGPIPE, SIG_IGN);
	signal(SIGCHLD, SIG_IGN);
	pid = fork();
	if (pid < 0)
		die("no process that copies: %s", strerror(errno));
	if (!pid) {
		/* sshd waits until nobody has its pipes any more, and the ends of the socket see each other close. */
		close(2);
		close(fd[0]);
		copy(fd[1]);
	}
	close(fd[1]);
	dup2(nothing, 0);
	dup2(nothing, 1);
	if (!meet_answer(fd[0]))
		die("--server is for the end that another sdr_cp starts");
	return fd[0];
}

/* Word i of SSH_CONNECTION: the asking end's address and port, and this end's. */
static const char *connection_word(int i)
{
	static char words[256];
	const char *all = getenv("SSH_CONNECTION");
	char *word;

	if (!all || strlen(all) >= sizeof(words))
		return NULL;
	strcpy(words, all);
	for (word = strtok(words, " "); word && i; i--)
		word = strtok(NULL, " ");
	return word;
}

const char *remote_here(void)
{
	return connection_word(2);
}

const char *remote_there(void)
{
	return connection_word(0);
}
