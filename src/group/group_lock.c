/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Mostly one process joins at a time: the holder of the lock, a listening name that vanishes with its process. A
 * holder that lives is waited for: on a busy machine each of its steps may take a second. One that is stopped, by
 * Ctrl-Z or a debugger, would keep all others waiting. So there are several such names, and a process that sees that
 * the holder of one is stopped, or has waited PATIENCE_MS for it, tries the next.
 *
 * A holder that continues after another process has passed it harms no member: no member depends on the order in
 * which others come and go (group.h). But it would disturb the process that joins now, so a holder begins anew
 * when it finds that somebody who runs has one of the next names.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <unistd.h>

#include "group/group_join.h"

enum {
	PATIENCE_MS = 60000, /* with one that is frozen, or in another PID namespace, where nobody sees its state */
	STRANGER_MS = 700,   /* with another user's */
	TELL_MS = 5000,      /* until a line says for whom we wait */
	LOOK_MS = 10,
	STOPPED_MS = 50 /* how often to look whether it is stopped */
};

struct seen {
	bool busy;
	uint64_t since_ms;
	int link; /* connection to the holder, which closes it; -1: none */
	struct link_peer peer;
	int err; /* why there is none */
	bool told;
};

static void look_away(struct seen *s)
{
	if (s->link >= 0)
		close(s->link);
	s->link = -1;
	s->busy = false;
}

static void look(struct join *j, struct seen *s, unsigned level)
{
	int fd;

	if (s->link >= 0)
		return;
	fd = link_connect(&j->g->id, LINK_LOCK - (int)level, &s->peer);
	if (fd == -ECONNREFUSED) {
		s->busy = false;
		return;
	}
	if (!s->busy)
		s->since_ms = clock_now_ms();
	s->busy = true;
	s->link = fd < 0 ? -1 : fd;
	s->err = fd < 0 ? fd : 0;
}

static bool is_overdue(const struct seen *s)
{
	return clock_now_ms() >= s->since_ms + (s->err == -EPERM ? STRANGER_MS : PATIENCE_MS) ||
	       (s->link >= 0 && link_is_stopped(s->peer.pid));
}

/* Waits until a holder releases a lock, or it is time to check again. */
static void wait(struct join *j, struct seen *seen, unsigned level)
{
	struct pollfd p[LINK_LOCKS];
	uint64_t now = clock_now_ms(), until = now + LOOK_MS;

	for (unsigned i = 0; i < LINK_LOCKS; i++)
		p[i] = (struct pollfd){.fd = seen[i].link};
	if (seen[level].link >= 0)
		until = now + STOPPED_MS;
	if (until > j->lock_until_ms)
		until = j->lock_until_ms;
	if (poll(p, LINK_LOCKS, now < until ? (int)(until - now) : 0) <= 0)
		return;
	for (unsigned i = 0; i < LINK_LOCKS; i++)
		if (p[i].revents)
			look_away(&seen[i]);
}

/* Takes the first free lock, if all locks before it have been held for too long. */
static int try_locks(struct join *j, struct seen *seen, unsigned *level)
{
	for (*level = 0; *level < LINK_LOCKS; ++*level) {
		struct seen *s = &seen[*level];

		if (!s->busy) {
			int fd = link_listen(&j->g->id, LINK_LOCK - (int)*level);

			if (fd != -EADDRINUSE)
				return fd;
			look(j, s, *level);
		} else if (s->link < 0) {
			look(j, s, *level);
		}
		if (!s->busy || !is_overdue(s))
			return -EAGAIN;
	}
	*level = LINK_LOCKS - 1;
	return -EAGAIN;
}

static void tell(const struct join *j, struct seen *s)
{
	if (s->told || s->link < 0 || clock_now_ms() < s->since_ms + TELL_MS)
		return;
	s->told = true;
	fprintf(stderr, "verbena: waiting for process %ld, which joins the group on UDP port %u\n", (long)s->peer.pid,
		j->cfg->ports[0]);
}

static int explain_held(struct join *j, const struct seen *s)
{
	if (s->err == -EPERM)
		snprintf(j->why, j->why_bytes,
			 "process %ld of uid %u holds the lock of our group on UDP port %u: set "
			 "VERBENA_PORT to another port, at both ends, or run in a network "
			 "namespace of "
			 "your own",
			 (long)s->peer.pid, (unsigned)s->peer.uid, j->cfg->ports[0]);
	else
		snprintf(j->why, j->why_bytes, "process %ld has held the lock of the group on UDP port %u for too long",
			 (long)s->peer.pid, j->cfg->ports[0]);
	return -ETIMEDOUT;
}

int join_lock(struct join *j)
{
	struct seen seen[LINK_LOCKS];
	unsigned level = 0;
	int fd;

	for (unsigned i = 0; i < LINK_LOCKS; i++)
		seen[i] = (struct seen){.link = -1};
	while ((fd = try_locks(j, seen, &level)) == -EAGAIN) {
		if (clock_now_ms() >= (seen[level].err == -EPERM ? j->deadline_ms : j->lock_until_ms))
			break;
		/* The patience with all of them runs at the same time. */
		for (unsigned i = level; i < LINK_LOCKS; i++)
			look(j, &seen[i], i);
		tell(j, &seen[level]);
		wait(j, seen, level);
	}
	j->lock_level = level;
	for (unsigned i = 0; i < LINK_LOCKS; i++)
		if (seen[i].link >= 0)
			close(seen[i].link);
	if (fd == -EAGAIN)
		return explain_held(j, &seen[level]);
	return fd < 0 ? join_explain(j, fd, "take the lock") : fd;
}

bool join_lock_is_passed(const struct join *j)
{
	bool passed = false;

	for (unsigned i = j->lock_level + 1; i < LINK_LOCKS && !passed; i++) {
		struct link_peer peer;
		int fd = link_connect(&j->g->id, LINK_LOCK - (int)i, &peer);

		passed = fd >= 0 && !link_is_stopped(peer.pid);
		if (fd >= 0)
			close(fd);
	}
	return passed;
}
