/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The terminal is opened once more, so that it can be written to without blocking: where its user has stopped the output
 * (^S), signals and keys still end the program, and others that share the terminal see no other flags.
 */
#include "top_screen.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <termios.h>
#include <unistd.h>

#include "io/clock.h"

/* The other screen, without a cursor and without wrapped lines; and back. */
#define ENTER "\033[?1049h\033[?25l\033[?7l\033[2J"
#define LEAVE "\033[?7h\033[?25h\033[?1049l"

static const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGWINCH};

struct screen {
	int tty;
	int signals;
	bool gone; /* nothing can be written */
	sigset_t before;
	struct termios modes;
};

/* True: it is over, by a signal or a key. */
static bool write_all(struct screen *s, const char *text, size_t len)
{
	while (len) {
		ssize_t n = write(s->tty, text, len);
		struct pollfd p[2] = {{.fd = s->tty, .events = POLLOUT}, {.fd = s->signals, .events = POLLIN}};

		if (n >= 0) {
			text += n;
			len -= (size_t)n;
		} else if (errno == EAGAIN) {
			poll(p, 2, -1);
			if (p[1].revents)
				return false;
		} else if (errno != EINTR) {
			s->gone = true;
			return false;
		}
	}
	return true;
}

static void enter(struct screen *s)
{
	struct termios raw = s->modes;

	/* Keys at once and unseen; signals of keys stay. */
	raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
	raw.c_cc[VMIN] = 0;
	raw.c_cc[VTIME] = 0;
	tcsetattr(s->tty, TCSANOW, &raw);
	write_all(s, ENTER, strlen(ENTER));
}

static void leave(struct screen *s)
{
	/* One try: a terminal that takes nothing shows nothing either. */
	if (write(s->tty, LEAVE, strlen(LEAVE)) < 0)
		s->gone = true;
	tcsetattr(s->tty, TCSANOW, &s->modes);
}

struct screen *screen_open(void)
{
	const char *kind = getenv("TERM"), *name = isatty(STDOUT_FILENO) ? ttyname(STDOUT_FILENO) : NULL;
	struct screen *s = name && kind && strcmp(kind, "dumb") ? calloc(1, sizeof(*s)) : NULL;
	sigset_t all;

	if (!s)
		return NULL;
	sigemptyset(&all);
	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
		sigaddset(&all, signals[i]);
	s->tty = open(name, O_RDWR | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	s->signals = signalfd(-1, &all, SFD_NONBLOCK | SFD_CLOEXEC);
	if (s->tty < 0 || s->signals < 0 || tcgetattr(s->tty, &s->modes) < 0) {
		if (s->tty >= 0)
			close(s->tty);
		if (s->signals >= 0)
			close(s->signals);
		free(s);
		return NULL;
	}
	sigprocmask(SIG_BLOCK, &all, &s->before);
	enter(s);
	return s;
}

void screen_close(struct screen *s)
{
	if (!s)
		return;
	leave(s);
	close(s->tty);
	close(s->signals);
	sigprocmask(SIG_SETMASK, &s->before, NULL);
	free(s);
}

void screen_size(const struct screen *s, unsigned *rows, unsigned *columns)
{
	struct winsize w = {0};
	bool known = !ioctl(s->tty, TIOCGWINSZ, &w) && w.ws_row && w.ws_col;

	*rows = known ? w.ws_row : 24;
	*columns = known ? w.ws_col : 80;
}

void screen_show(struct screen *s, const char *text, size_t len)
{
	char *out = NULL;
	size_t out_len = 0;
	FILE *f = open_memstream(&out, &out_len);

	if (!f)
		return;
	fputs("\033[H", f);
	while (len) {
		const char *end = memchr(text, '\n', len);
		size_t n = end ? (size_t)(end - text) : len;

		fwrite(text, 1, n, f);
		fputs(end && n + 1 < len ? "\033[K\r\n" : "\033[K",
		      f); /* no newline behind the last one: it would scroll */
		text += n + (end != NULL);
		len -= n + (end != NULL);
	}
	fputs("\033[J", f);
	if (!fclose(f))
		write_all(s, out, out_len);
	free(out);
}

/* What signals are for, as by their default actions. */
static bool take_signal(struct screen *s, enum screen_event *event)
{
	struct signalfd_siginfo i;

	if (read(s->signals, &i, sizeof(i)) != sizeof(i))
		return false;
	*event = SCREEN_QUIT;
	if (i.ssi_signo == SIGTSTP) {
		leave(s);
		raise(SIGSTOP);
		enter(s);
	}
	if (i.ssi_signo == SIGTSTP || i.ssi_signo == SIGWINCH)
		*event = SCREEN_RESIZED;
	return true;
}

static bool take_key(struct screen *s, enum screen_event *event)
{
	char keys[64];
	ssize_t n = read(s->tty, keys, sizeof(keys));

	*event = SCREEN_QUIT;
	return n > 0 && (memchr(keys, 'q', (size_t)n) || memchr(keys, 'Q', (size_t)n));
}

enum screen_event screen_wait(struct screen *s, uint64_t until_ms)
{
	enum screen_event event;
	uint64_t now_ms;

	while ((now_ms = clock_now_ms()) < until_ms) {
		struct pollfd p[2] = {{.fd = s->tty, .events = POLLIN}, {.fd = s->signals, .events = POLLIN}};

		poll(p, 2, (int)(until_ms - now_ms));
		if (s->gone || p[0].revents & (POLLHUP | POLLERR | POLLNVAL))
			return SCREEN_QUIT;
		if ((p[1].revents && take_signal(s, &event)) || (p[0].revents && take_key(s, &event)))
			return event;
	}
	return s->gone ? SCREEN_QUIT : SCREEN_TIME;
}
