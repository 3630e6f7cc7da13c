/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The first byte is the width of a tick, then each eight are one operation: push an event some way
 * ahead (from no time at all to the end of time), or pop some. The model is an array that is
 * searched.
 */
#include <stdlib.h>
#include <string.h>

#include "net/event.h"
#include "support/fuzz_input.h"

enum { OPS_MAX = 600 };

struct model_event {
	uint64_t time_ps;
	unsigned class, kind;
	uint64_t number;
	void *object;
};

static bool before(const struct model_event *a, const struct model_event *b)
{
	if (a->time_ps != b->time_ps)
		return a->time_ps < b->time_ps;
	return a->class != b->class ? a->class < b->class : a->number < b->number;
}

static size_t model_next(const struct model_event *m, size_t count)
{
	size_t best = 0;

	for (size_t i = 1; i < count; i++) {
		if (before(&m[i], &m[best]))
			best = i;
	}
	return best;
}

static bool pop(struct event_queue *q, struct model_event *m, size_t *count, uint64_t until_ps, uint64_t *now_ps)
{
	size_t next = model_next(m, *count);
	const struct event *e = event_pop(q, until_ps);
	bool popped = e != NULL;

	must(popped == (*count && m[next].time_ps <= until_ps));
	if (!popped)
		return false;
	must(e->time_ps == m[next].time_ps);
	must(event_kind(e) == m[next].kind);
	must(e->object == m[next].object);
	*now_ps = e->time_ps;
	memmove(&m[next], &m[next + 1], (--*count - next) * sizeof(*m));
	return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct model_event model[OPS_MAX];
	struct event_queue *q = malloc(sizeof(*q));
	size_t count = 0;
	uint64_t now_ps = 0;

	if (!q || size < 1 || event_queue_init(q, data[0] % 48)) {
		free(q);
		return 0;
	}
	data++;
	size--;
	for (int op = 0; op < OPS_MAX && size >= 8; op++, data += 8, size -= 8) {
		uint64_t far = 0;

		for (int i = 2; i < 8; i++)
			far = far << 8 | data[i];
		far <<= 16;
		far >>= data[0] % 64;
		if (data[0] & 64) {
			for (int i = 0; i < data[1] % 8; i++)
				pop(q, model, &count, data[0] & 128 ? now_ps + far : UINT64_MAX, &now_ps);
		} else {
			struct model_event *m = &model[count++];

			m->time_ps = far > UINT64_MAX - now_ps ? UINT64_MAX : now_ps + far;
			m->class = data[1] & 15;
			m->kind = data[1] >> 4;
			m->number = (uint64_t)data[7] << 48 | (unsigned)op; /* no two are equal */
			m->object = &model[op];
			event_push(q, m->time_ps, m->class, m->kind, m->number, m->object);
		}
		must(q->pending == count);
	}
	while (pop(q, model, &count, UINT64_MAX, &now_ps))
		;
	must(q->pending == 0 && !q->out_of_memory);
	event_queue_fini(q);
	free(q);
	return 0;
}
