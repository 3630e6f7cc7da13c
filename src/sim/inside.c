/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What happens next: a sender's link becomes free, a message has arrived, its sender knows. Of a message there is one of
 * these at a time, and of a host one, so there is room before anything is posted. Messages reach a receiver's link in the
 * order in which they leave, since all take as long to get there.
 */
#include "sim/inside.h"

#include <stdlib.h>

#include "workload/agenda.h"

enum what { LEFT /* subject: a link */, ARRIVED, KNOWN /* a message */ };

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
	struct agenda agenda;
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
	agenda_free(&n->agenda);
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

static void schedule(struct inside *n, uint64_t at_ps, enum what what, void *subject)
{
	agenda_add(&n->agenda, (struct agenda_item){at_ps, n->number++, subject, what});
}

static void leave(struct inside *n, struct inside_message *m, uint64_t now_ps)
{
	struct link *to = &n->links[m->dst];
	uint64_t there_ps = now_ps + n->delay_ps;

	if (there_ps < to->in_free_ps)
		there_ps = to->in_free_ps;
	to->in_free_ps = there_ps + bytes_ps(n, m->bytes);
	schedule(n, to->in_free_ps, ARRIVED, m);
	schedule(n, now_ps + bytes_ps(n, m->bytes), LEFT, &n->links[m->src]);
	n->links[m->src].busy = true;
}

bool inside_post(struct inside *n, struct inside_message *m, uint64_t now_ps)
{
	struct link *from = &n->links[m->src];

	if (!agenda_make_room(&n->agenda, n->hosts + (uint64_t)n->messages + 1))
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

static void left(struct inside *n, struct link *l, uint64_t now_ps)
{
	struct inside_message *m = l->first;

	l->busy = false;
	if (!m)
		return;
	l->first = m->next;
	leave(n, m, now_ps);
}

uint64_t inside_deadline(const struct inside *n)
{
	return n ? agenda_due(&n->agenda) : INSIDE_NEVER_PS;
}

struct inside_message *inside_report(struct inside *n, uint64_t now_ps, bool *sent)
{
	while (n && agenda_is_due(&n->agenda, now_ps)) {
		struct agenda_item due = agenda_take(&n->agenda);
		struct inside_message *m = due.subject;

		if (due.what == LEFT) {
			left(n, due.subject, due.at);
			continue;
		}
		*sent = due.what == KNOWN;
		if (due.what == ARRIVED && !m->quiet)
			schedule(n, due.at + n->delay_ps, KNOWN, m);
		else
			n->messages--;
		return m;
	}
	return NULL;
}
