/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A shell's standard input and output are one socket here. At the other end they are pipes, as a rule, and two processes
 * copy between them and a socket: one for each direction, so that neither waits for the other.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
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

static bool write_all(int to, const char *p, size_t bytes)
{
	while (bytes) {
		ssize_t n = write(to, p, bytes);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		p += n;
		bytes -= (size_t)n;
	}
	return true;
}

/* In a process of its own, until one of them is closed. `fd` are the two ends of the socket, `other` is the pipe of the
 * other direction. */
static void copy_start(int from, int to, const int fd[2], int other)
{
	pid_t pid = fork();
	char some[16384];
	ssize_t n;

	if (pid < 0)
		die("no process that copies: %s", strerror(errno));
	if (pid)
		return;
	/* sshd waits until nobody has its pipes any more, and the ends of the socket see each other close. */
	close(other);
	close(2);
	close(fd[0]);
	while (((n = read(from, some, sizeof(some))) > 0 && write_all(to, some, (size_t)n)) ||
	       (n < 0 && errno == EINTR))
		;
	shutdown(to, SHUT_WR);
	_exit(0);
}

int remote_serve(void)
{
	int fd[2], nothing = open("/dev/null", O_RDWR | O_CLOEXEC);

	if (isatty(0) || nothing < 0)
		die("--server is for the end that another sdr_cp starts");
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd))
		die("a socket: %s", strerror(errno));
	signal(SIGPIPE, SIG_IGN);
	signal(SIGCHLD, SIG_IGN);
	copy_start(0, fd[1], fd, 1);
	copy_start(fd[1], 1, fd, 0);
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
