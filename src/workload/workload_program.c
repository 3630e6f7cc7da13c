/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A program as a part of a workload. Rank i is host i of the part, and all messages from one rank to another go by one
 * connection, which stays. What callbacks cause at once is done before a report ends, as in a graph; what the program
 * asks for between two runs is due at once.
 */
#include <errno.h>
#include <stdlib.h>

#include "workload/program_state.h"
#include "workload/workload_part.h"

struct program_part {
	struct workload_part part;
	struct program *program;
};

static struct program *of(const struct workload_part *p)
{
	return ((const struct program_part *)p)->program;
}

/* All messages are released by reports. */
static bool program_next(struct workload_part *p, struct message *out)
{
	(void)p;
	(void)out;
	return false;
}

/* Calls what is due, and what becomes due by that. */
static void call_back(struct program *p)
{
	uint32_t i;

	while (!p->stopped && (i = program_take(p, &p->due)) != PROGRAM_NONE) {
		const struct program_op op = p->ops[i];

		p->ops[i].due = false;
		program_let_go(p, i);
		if (op.done)
			op.done(op.context);
	}
}

static bool program_released(struct workload_part *p, struct message *out)
{
	struct program *g = of(p);
	uint32_t i = g->stopped ? PROGRAM_NONE : program_take(g, &g->out);

	if (i == PROGRAM_NONE)
		return false;
	*out = part_message(p);
	out->start_ps = 0;
	out->src = g->ops[i].src;
	out->dst = g->ops[i].dst;
	out->bytes = g->ops[i].bytes ? g->ops[i].bytes : 1;
	out->number = i;
	out->connection = (uint64_t)out->src * p->host_count + out->dst;
	out->last = false;
	return true;
}

static void program_sent(struct workload_part *p, const struct message *m, uint64_t now_ps)
{
	struct program *g = of(p);
	uint32_t i = (uint32_t)m->number;

	(void)now_ps;
	g->ops[i].reports--;
	g->ops[i].due = true;
	program_append(g, &g->due, i);
	call_back(g);
}

static void program_received(struct workload_part *p, const struct message *m, uint64_t now_ps)
{
	struct program *g = of(p);
	uint32_t i = (uint32_t)m->number;

	(void)now_ps;
	program_arrive(g, i);
	g->ops[i].reports--;
	program_let_go(g, i);
	call_back(g);
}

static uint64_t program_deadline(const struct workload_part *p)
{
	const struct program *g = of(p);

	if (g->stopped || g->failed)
		return WORKLOAD_NEVER_PS;
	if (g->out.first != PROGRAM_NONE || g->due.first != PROGRAM_NONE)
		return 0;
	return agenda_due(&g->timers);
}

static void program_expire(struct workload_part *p, uint64_t now_ps)
{
	struct program *g = of(p);

	call_back(g);
	while (!g->stopped && agenda_is_due(&g->timers, now_ps)) {
		uint32_t i = agenda_take(&g->timers).what;
		struct program_op op = g->ops[i];

		program_let_go(g, i);
		if (op.done)
			op.done(op.context);
		call_back(g);
	}
}

static bool program_is_done(const struct workload_part *p)
{
	(void)p;
	return false;
}

static bool program_failed(const struct workload_part *p)
{
	return of(p)->failed;
}

static void program_part_free(struct workload_part *p)
{
	free(p);
}

static const struct workload_part_ops program_ops = {.next = program_next,
						     .sent = program_sent,
						     .received = program_received,
						     .released = program_released,
						     .deadline = program_deadline,
						     .expire = program_expire,
						     .is_done = program_is_done,
						     .failed = program_failed,
						     .free = program_part_free};

int program_part_create(struct workload_part **out, const struct workload_part *c, const struct workload_params *p,
			struct text_error *err)
{
	struct program_part *g;

	if (!p->program)
		return text_fail(err, 0,
				 "a program sends its messages, by the calls of libverbena-sim; see verbena_sim(3)");
	g = part_alloc(c, sizeof(*g));
	if (!g)
		return -ENOMEM;
	g->part.ops = &program_ops;
	g->part.facts.arrivals = true;
	g->program = p->program;
	g->program->ranks = c->host_count;
	*out = &g->part;
	return 0;
}
