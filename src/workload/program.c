/* SPDX-License-Identifier: BSD-2-Clause */
/* A program's calls. An op is named by its index, since a callback may make the array grow. */
#include "workload/program.h"

#include <errno.h>
#include <stdlib.h>

#include "workload/program_state.h"

struct program *program_create(void)
{
	struct program *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	p->bytes_max = WORKLOAD_BYTES_MAX;
	p->op_free = PROGRAM_NONE;
	p->out = p->due = (struct program_list){PROGRAM_NONE, PROGRAM_NONE};
	return p;
}

void program_free(struct program *p)
{
	if (!p)
		return;
	match_free(&p->match);
	free(p->ops);
	agenda_free(&p->timers);
	free(p);
}

uint32_t program_ranks(const struct program *p)
{
	return p->ranks;
}

void program_limit(struct program *p, uint64_t bytes_max)
{
	p->bytes_max = bytes_max;
}

uint64_t program_bytes_max(const struct program *p)
{
	return p->bytes_max;
}

void program_stop(struct program *p, bool stopped)
{
	p->stopped = stopped;
}

bool program_is_stopped(const struct program *p)
{
	return p->stopped;
}

/* ---- ops ------------------------------------------------------------------------------------------------------- */

void program_append(struct program *p, struct program_list *l, uint32_t op)
{
	p->ops[op].next = PROGRAM_NONE;
	if (l->first == PROGRAM_NONE)
		l->first = op;
	else
		p->ops[l->last].next = op;
	l->last = op;
}

uint32_t program_take(struct program *p, struct program_list *l)
{
	uint32_t op = l->first;

	if (op != PROGRAM_NONE)
		l->first = p->ops[op].next;
	return op;
}

static void set_due(struct program *p, uint32_t op)
{
	p->ops[op].due = true;
	program_append(p, &p->due, op);
}

/* PROGRAM_NONE: no memory. */
static uint32_t add_op(struct program *p, const struct program_op *op)
{
	uint32_t i = p->op_free;

	if (i == PROGRAM_NONE && p->op_count == p->op_room) {
		uint32_t room = p->op_room ? 2 * p->op_room : 256;
		struct program_op *more = room > p->op_room ? reallocarray(p->ops, room, sizeof(*more)) : NULL;

		if (!more)
			return PROGRAM_NONE;
		p->ops = more;
		p->op_room = room;
	}
	if (i == PROGRAM_NONE)
		i = p->op_count++;
	else
		p->op_free = p->ops[i].next;
	p->ops[i] = *op;
	return i;
}

void program_let_go(struct program *p, uint32_t op)
{
	if (p->ops[op].reports || p->ops[op].due)
		return;
	p->ops[op].next = p->op_free;
	p->op_free = op;
}

static struct match_key program_key(const struct program_op *op)
{
	return (struct match_key){.context = op->tag, .src = op->src, .dst = op->dst};
}

/* False: no memory, and nothing has changed. */
static bool meet(struct program *p, uint32_t op)
{
	struct match_key key = program_key(&p->ops[op]);
	uint64_t recv;
	bool found;

	if (!match_arrive(&p->match, &key, &found, &recv))
		return false;
	if (!found)
		return true;
	p->ops[recv].waits = false;
	p->waiting--;
	set_due(p, (uint32_t)recv);
	return true;
}

void program_arrive(struct program *p, uint32_t op)
{
	p->failed |= !meet(p, op);
}

int program_send(struct program *p, uint32_t src, uint32_t dst, uint64_t bytes, uint64_t tag, program_callback done,
		 void *context)
{
	const struct program_op op = {done, context, bytes, tag, .src = src, .dst = dst};
	uint32_t i;

	if (src >= p->ranks || dst >= p->ranks)
		return -ERANGE;
	if (bytes > p->bytes_max)
		return -EMSGSIZE;
	i = add_op(p, &op);
	if (i == PROGRAM_NONE)
		return -ENOMEM;
	if (src != dst) {
		p->ops[i].reports = 2;
		program_append(p, &p->out, i);
		return 0;
	}
	if (!meet(p, i)) {
		program_let_go(p, i);
		return -ENOMEM;
	}
	set_due(p, i);
	return 0;
}

int program_receive(struct program *p, uint32_t rank, uint32_t from, uint64_t tag, program_callback done, void *context)
{
	const struct program_op op = {done, context, 0, tag, ++p->order, .src = from, .dst = rank, .waits = true};
	const struct match_key key = program_key(&op);
	uint32_t i;
	bool found;

	if (rank >= p->ranks || from >= p->ranks)
		return -ERANGE;
	i = add_op(p, &op);
	if (i == PROGRAM_NONE)
		return -ENOMEM;
	if (!match_receive(&p->match, &key, i, &found)) {
		p->ops[i].waits = false;
		program_let_go(p, i);
		return -ENOMEM;
	}
	p->ops[i].waits = !found;
	p->waiting += !found;
	if (found)
		set_due(p, i);
	return 0;
}

uint64_t program_waits(const struct program *p, struct program_wait *first)
{
	const struct program_op *oldest = NULL;

	for (uint32_t i = 0; p->waiting && i < p->op_count; i++) {
		if (p->ops[i].waits && (!oldest || p->ops[i].order < oldest->order))
			oldest = &p->ops[i];
	}
	if (oldest)
		*first = (struct program_wait){oldest->dst, oldest->src, oldest->tag};
	return p->waiting;
}

int program_schedule(struct program *p, uint64_t at_ps, program_callback due, void *context)
{
	const struct program_op op = {.done = due, .context = context};
	uint32_t i;

	if (!agenda_make_room(&p->timers, (uint64_t)p->timers.count + 1) || (i = add_op(p, &op)) == PROGRAM_NONE)
		return -ENOMEM;
	agenda_add(&p->timers, (struct agenda_item){at_ps, ++p->order, .what = i});
	return 0;
}
