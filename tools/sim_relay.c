/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A connection has two sides, each a socket whose other end a program has. What one side gave comes to the other by an
 * event; since the delay is the same for all, events are in the order of their time. What a program does not read yet is
 * kept, and from one whose peer does not read nothing more is taken, so that it waits as with a window that is closed.
 */
#include "sim_relay.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lockstep/lockstep.h"

enum { WINDOW_BYTES = 1 << 20, READ_BYTES = 65536, CALLS_MAX = 256 };

enum kind { CALL, ANSWER, BYTES, END };

struct side {
	int fd;     /* -1: none yet, or not any more */
	bool ended; /* its program sends no more */
	bool ends;  /* nor shall it be sent more than `kept` */
	size_t coming;
	uint8_t *kept; /* what it has no room for */
	size_t kept_bytes;
};

struct connection {
	struct connection *next;
	struct lockstep_end client, listener;
	struct side sides[2]; /* the client's, the listener's */
};

struct event {
	struct event *next;
	uint64_t at_ns;
	enum kind kind;
	struct connection *connection;
	unsigned to; /* a side */
	size_t bytes;
	uint8_t data[]; /* of ANSWER, BYTES */
};

struct relay {
	const struct relay_sink *sink;
	uint64_t run, delay_ns;
	int switch_fd;
	struct connection *first, **last; /* by age */
	struct event *next_event, **last_event;
};

static uint32_t host_of(const struct connection *c, unsigned side)
{
	return side ? c->listener.host : c->client.host;
}

static bool add(struct relay *r, uint64_t now_ns, enum kind kind, struct connection *c, unsigned to, const void *data,
		size_t bytes)
{
	struct event *e = malloc(sizeof(*e) + bytes);

	if (!e)
		return false;
	*e = (struct event){NULL, now_ns + r->delay_ns, kind, c, to, bytes};
	if (bytes)
		memcpy(e->data, data, bytes);
	c->sides[to].coming += bytes;
	*r->last_event = e;
	r->last_event = &e->next;
	return true;
}

/* ---- calls ---- */

static int by_client(const void *a, const void *b)
{
	const struct connection *x = *(struct connection *const *)a, *y = *(struct connection *const *)b;

	if (x->client.host != y->client.host)
		return x->client.host < y->client.host ? -1 : 1;
	return (x->client.port > y->client.port) - (x->client.port < y->client.port);
}

static bool is_of_our_user(int fd)
{
	struct ucred u;
	socklen_t bytes = sizeof(u);

	return !getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &u, &bytes) && u.uid == geteuid();
}

/* NULL: it is no program's, or there is no memory. */
static struct connection *greet(int fd, const struct sockaddr_un *from, socklen_t bytes)
{
	struct connection *c = calloc(1, sizeof(*c));
	enum lockstep_socket kind;

	if (c && is_of_our_user(fd) && lockstep_name_read(from, bytes, &kind, &c->client, &c->listener) &&
	    kind == LOCKSTEP_CLIENT) {
		c->sides[0].fd = fd;
		c->sides[1].fd = -1;
		return c;
	}
	close(fd);
	free(c);
	return NULL;
}

static bool collect_calls(struct relay *r, uint64_t now_ns)
{
	struct connection *calls[CALLS_MAX];
	size_t n = 0;

	while (n < CALLS_MAX) {
		struct sockaddr_un from;
		socklen_t bytes = sizeof(from);
		int fd = accept4(r->switch_fd, (struct sockaddr *)&from, &bytes, SOCK_CLOEXEC | SOCK_NONBLOCK);

		if (fd < 0)
			break;
		calls[n] = greet(fd, &from, bytes);
		n += calls[n] != NULL;
	}
	qsort(calls, n, sizeof(calls[0]), by_client);
	for (size_t i = 0; i < n; i++) {
		*r->last = calls[i];
		r->last = &calls[i]->next;
		if (!add(r, now_ns, CALL, calls[i], 1, NULL, 0))
			return false;
	}
	return true;
}

static int dial(const struct relay *r, const struct connection *c)
{
	struct sockaddr_un own, to;
	socklen_t own_bytes = lockstep_name(&own, r->run, LOCKSTEP_CALL, c->client, c->listener);
	socklen_t to_bytes = lockstep_name(&to, r->run, LOCKSTEP_LISTENER, c->listener, (struct lockstep_end){0});
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), err;

	if (fd < 0)
		return -errno;
	if (!bind(fd, (struct sockaddr *)&own, own_bytes) && !connect(fd, (struct sockaddr *)&to, to_bytes))
		return fd;
	err = errno;
	close(fd);
	return -err;
}

/* A listener whose queue is full is called again. */
static bool deliver_call(struct relay *r, struct connection *c, uint64_t now_ns)
{
	int fd = dial(r, c);
	uint8_t answer = fd >= 0 ? LOCKSTEP_ACCEPTED : LOCKSTEP_REFUSED;

	if (fd == -EAGAIN)
		return add(r, now_ns, CALL, c, 1, NULL, 0);
	c->sides[1].fd = fd >= 0 ? fd : -1;
	c->sides[1].ended = c->sides[1].ends = fd < 0;
	c->sides[0].ends = fd < 0;
	if (fd >= 0)
		r->sink->woken(r->sink->ctx, c->listener.host);
	return add(r, now_ns, ANSWER, c, 0, &answer, 1);
}

/* ---- bytes ---- */

/* Gives the program what there is room for. */
static void flush(struct relay *r, struct connection *c, unsigned side)
{
	struct side *s = &c->sides[side];
	ssize_t n = 0;

	if (s->fd < 0)
		s->kept_bytes = 0;
	if (s->kept_bytes) {
		n = send(s->fd, s->kept, s->kept_bytes, MSG_DONTWAIT | MSG_NOSIGNAL);
		if (n < 0 && errno != EAGAIN)
			n = (ssize_t)s->kept_bytes; /* it has closed its end */
		if (n > 0) {
			s->kept_bytes -= (size_t)n;
			memmove(s->kept, s->kept + n, s->kept_bytes);
			r->sink->woken(r->sink->ctx, host_of(c, side));
		}
	}
	if (s->ends && !s->kept_bytes && s->fd >= 0) {
		shutdown(s->fd, SHUT_WR);
		r->sink->woken(r->sink->ctx, host_of(c, side));
		if (s->ended) {
			close(s->fd);
			s->fd = -1;
		}
	}
}

static bool keep(struct side *s, const struct event *e)
{
	uint8_t *more = realloc(s->kept, s->kept_bytes + e->bytes);

	if (!more)
		return false;
	s->kept = more;
	memcpy(s->kept + s->kept_bytes, e->data, e->bytes);
	s->kept_bytes += e->bytes;
	s->coming -= e->bytes;
	return true;
}

static bool collect_bytes(struct relay *r, struct connection *c, unsigned side, uint64_t now_ns)
{
	struct side *s = &c->sides[side], *other = &c->sides[!side];
	uint8_t bytes[READ_BYTES];

	while (s->fd >= 0 && !s->ended && other->coming + other->kept_bytes < WINDOW_BYTES) {
		ssize_t n = recv(s->fd, bytes, sizeof(bytes), MSG_DONTWAIT);

		if (n < 0 && errno == EAGAIN)
			return true;
		r->sink->woken(r->sink->ctx, host_of(c, side)); /* it may have waited for room */
		if (n > 0) {
			if (!add(r, now_ns, BYTES, c, !side, bytes, (size_t)n))
				return false;
			continue;
		}
		s->ended = true;
		if (!add(r, now_ns, END, c, !side, NULL, 0))
			return false;
	}
	return true;
}

/* ---- rounds ---- */

bool relay_collect(struct relay *r, uint64_t now_ns)
{
	if (!collect_calls(r, now_ns))
		return false;
	for (struct connection *c = r->first; c; c = c->next)
		for (unsigned side = 0; side < 2; side++) {
			if (c->sides[side].kept_bytes)
				flush(r, c, side);
			/* Before its answer a client has nothing to say. */
			if (c->sides[1].fd >= 0 && !collect_bytes(r, c, side, now_ns))
				return false;
		}
	return true;
}

static bool deliver(struct relay *r, const struct event *e, uint64_t now_ns)
{
	struct connection *c = e->connection;
	struct side *s = &c->sides[e->to];

	switch (e->kind) {
	case CALL: return deliver_call(r, c, now_ns);
	case ANSWER:
	case BYTES:
		if (!keep(s, e))
			return false;
		break;
	case END: s->ends = true;
	}
	flush(r, c, e->to);
	return true;
}

bool relay_deliver(struct relay *r, uint64_t now_ns)
{
	while (r->next_event && r->next_event->at_ns <= now_ns) {
		struct event *e = r->next_event;
		bool done = deliver(r, e, now_ns);

		r->next_event = e->next;
		if (!e->next)
			r->last_event = &r->next_event;
		free(e);
		if (!done)
			return false;
	}
	return true;
}

uint64_t relay_next_ns(const struct relay *r, uint32_t *host)
{
	if (!r->next_event)
		return UINT64_MAX;
	/* The host that is called may have no program. */
	*host = host_of(r->next_event->connection, r->next_event->kind == CALL ? 0 : r->next_event->to);
	return r->next_event->at_ns;
}

/* ---- life ---- */

struct relay *relay_open(uint64_t run, uint64_t delay_ns, const struct relay_sink *sink)
{
	struct relay *r = calloc(1, sizeof(*r));
	struct lockstep_end none = {0};
	struct sockaddr_un own;
	socklen_t bytes = lockstep_name(&own, run, LOCKSTEP_SWITCH, none, none);

	if (!r)
		return NULL;
	*r = (struct relay){
		.sink = sink, .run = run, .delay_ns = delay_ns, .last = &r->first, .last_event = &r->next_event};
	r->switch_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (r->switch_fd >= 0 && !bind(r->switch_fd, (struct sockaddr *)&own, bytes) &&
	    !listen(r->switch_fd, SOMAXCONN))
		return r;
	relay_close(r);
	return NULL;
}

void relay_close(struct relay *r)
{
	if (!r)
		return;
	for (struct event *e; (e = r->next_event); free(e))
		r->next_event = e->next;
	for (struct connection *c; (c = r->first); free(c)) {
		r->first = c->next;
		for (unsigned side = 0; side < 2; side++) {
			if (c->sides[side].fd >= 0)
				close(c->sides[side].fd);
			free(c->sides[side].kept);
		}
	}
	if (r->switch_fd >= 0)
		close(r->switch_fd);
	free(r);
}
