/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A heap of what happens next: a sender's link becomes free, a message has arrived, its sender knows. Of a message there is
 * one event at a time, and of a host one, so the heap has room before anything is posted. Messages reach a receiver's link
 * in the order in which they leave, since all take as long to get there.
 */
#include "sim/inside.h"

#include <stdlib.h>

enum what { LEFT, ARRIVED, KNOWN };

struct event {
	uint64_t at_ps, number; /* the number orders those of one time */
	enum what what;
	uint32_t host;                  /* of LEFT */
	struct inside_message *message; /* of the others */
};

/* A host's link. */
struct link {
	struct inside_message *first, *last; /* that wait to leave */
	uint64_t in_free_ps;                 /* when all that came before has arrived */
	bool busy;                           /* a LEFT is pending */
};

struct inside {
	uint32_t hosts, per_node;
	uint64_t rate_bps, delay_ps;
	struct link *links;
	struct event *heap;
	uint32_t count, room;
	uint32_t messages; /* that are under way */
	uint64_t number;
};

struct inside *inside_create(uint32_t hosts, uint32_t per_node, uint64_t rate_bps, uint64_t delay_ps)
{
	struct inside *n = calloc(1, sizeof(*n));

	if (!n)
		return NULL;
	*n = (struct inside){.hosts = hosts, .per_node = per_node, .rate_bps = rate_bps, .delay_ps = delay_ps};
	n->links = calloc(hosts, sizeof(*n->links));
	if (!n->links) {
		free(n);
		return NULL;
	}
	return n;
}

void inside_free(struct inside *n)
{
	if (!n)
		return;
	free(n->links);
	free(n->heap);
	free(n);
}

bool inside_joins(const struct inside *n, uint32_t a, uint32_t b)
{
	return n && a / n->per_node == b / n->per_node;
}

uint32_t inside_relay(const struct inside *n, uint32_t a, uint32_t b)
{
	return a / n->per_node * n->per_node + b % n->per_node;
}

static uint64_t bytes_ps(const struct inside *n, uint64_t bytes)
{
	return (uint64_t)((unsigned __int128)bytes * 8 * 1000000000000u / n->rate_bps);
}

uint64_t inside_alone_ps(const struct inside *n, uint64_t bytes)
{
	return bytes_ps(n, bytes) + n->delay_ps;
}

uint64_t inside_delay_ps(const struct inside *n)
{
	return n->delay_ps;
}

/* ---- events ---- */

static bool is_before(const struct event *a, const struct event *b)
{
	return a->at_ps != b->at_ps ? a->at_ps < b->at_ps : a->number < b->number;
}

static void push(struct inside *n, struct event e)
{
	uint32_t i = n->count++;

	e.number = n->number++;
	for (; i && is_before(&e, &n->heap[(i - 1) / 2]); i = (i - 1) / 2)
		n->heap[i] = n->heap[(i - 1) / 2];
	n->heap[i] = e;
}

static struct event pop(struct inside *n)
{
	struct event top = n->heap[0], last = n->heap[--n->count];
	uint32_t i = 0, child;

	while ((child = 2 * i + 1) < n->count) {
		if (child + 1 < n->count && is_before(&n->heap[child + 1], &n->heap[child]))
			child++;
		if (!is_before(&n->heap[child], &last))
			break;
		n->heap[i] = n->heap[child];
		i = child;
	}
	n->heap[i] = last;
	return top;
}

static bool make_room(struct inside *n)
{
	uint64_t want = n->hosts + 2 * ((uint64_t)n->messages + 1);
	struct event *more;

	if (n->messages + (uint64_t)n->hosts + 1 <= n->room)
		return true;
	more = want < UINT32_MAX ? reallocarray(n->heap, want, sizeof(*more)) : NULL;
	if (!more)
		return false;
	n->heap = more;
	n->room = (uint32_t)want;
	return true;
}

/* ---- messages ---- */

static void leave(struct inside *n, struct inside_message *m, uint64_t now_ps)
{
	struct link *to = &n->links[m->dst];
	uint64_t there_ps = now_ps + n->delay_ps;

	if (there_ps < to->in_free_ps)
		there_ps = to->in_free_ps;
	to->in_free_ps = there_ps + bytes_ps(n, m->bytes);
	push(n, (struct event){.at_ps = to->in_free_ps, .what = ARRIVED, .message = m});
	push(n, (struct event){.at_ps = now_ps + bytes_ps(n, m->bytes), .what = LEFT, .host = m->src});
	n->links[m->src].busy = true;
}

bool inside_post(struct inside *n, struct inside_message *m, uint64_t now_ps)
{
	struct link *from = &n->links[m->src];

	if (!make_room(n))
		return false;
	n->messages++;
	m->next = NULL;
	if (!from->busy) {
		leave(n, m, now_ps);
	} else if (from->first) {
		from->last = from->last->next = m;
	} else {
		from->first = from->last = m;
	}
	return true;
}

static void left(struct inside *n, uint32_t host, uint64_t now_ps)
{
	struct link *l = &n->links[host];
	struct inside_message *m = l->first;

	l->busy = false;
	if (!m)
		return;
	l->first = m->next;
	leave(n, m, now_ps);
}

uint64_t inside_deadline(const struct inside *n)
{
	return n && n->count ? n->heap[0].at_ps : INSIDE_NEVER_PS;
}

struct inside_message *inside_report(struct inside *n, uint64_t now_ps, bool *sent)
{
	while (inside_deadline(n) <= now_ps) {
		struct event e = pop(n);

		if (e.what == LEFT) {
			left(n, e.host, e.at_ps);
			continue;
		}
		*sent = e.what == KNOWN;
		if (e.what == ARRIVED && !e.message->quiet)
			push(n, (struct event){.at_ps = e.at_ps + n->delay_ps, .what = KNOWN, .message = e.message});
		else
			n->messages--;
		return e.message;
	}
	return NULL;
}
