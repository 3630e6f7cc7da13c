/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Routing: a flow keeps its port until another one's queue is shorter by a margin, and goes there.
 * Flows are distinguished by their hash, so two may share an entry, and then move together.
 */
#include "policies.h"

enum { ENTRIES = 1024 };

struct table {
	uint32_t port_and_1[ENTRIES]; /* 0: not seen yet */
};

static uint32_t choose(const void *parameters, void *state, const struct routing_question *q, const struct packet *p)
{
	const struct sticky *s = parameters;
	uint32_t *entry = &((struct table *)state)->port_and_1[q->hash % ENTRIES];
	uint32_t port = *entry ? (*entry - 1) % q->count : (uint32_t)((uint64_t)q->hash * q->count >> 32);
	uint32_t best = port;

	for (uint32_t i = 0; i < q->count; i++) {
		if (routing_load_bytes(q, i) < routing_load_bytes(q, best))
			best = i;
	}
	if (routing_load_bytes(q, best) + s->margin_bytes < routing_load_bytes(q, port))
		port = best;
	*entry = port + 1;
	return port;
}

struct routing_policy sticky_policy(const struct sticky *parameters)
{
	return (struct routing_policy){
		.switch_bytes = sizeof(struct table),
		.choose = choose,
		.parameters = parameters,
	};
}
