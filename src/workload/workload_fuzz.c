/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * With any accepted parameters the workload can be run: its hosts exist and differ, times never go
 * back, no message is released before its cause, and the messages are as many as announced if it
 * ends.
 */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/fuzz_input.h"
#include "workload/workload.h"

enum { STEPS_MAX = 3000, QUEUE_MAX = 1 << 17 };

/* Sizes that need memory are kept small; the other parameters may be anything. */
static struct workload_params take_params(struct input *in, const struct cdf *cdf)
{
	static struct workload_pair pairs[2];
	struct workload_params p = {0};

	p.seed = next_number(in, 1);
	p.host_count = (uint32_t)next_number(in, 1);
	p.start_ps = next_number(in, 8);
	p.tag = (uint16_t)next_number(in, 2);
	p.bytes = next_number(in, 6);
	p.senders = (uint32_t)next_number(in, 2);
	p.target = (uint32_t)next_number(in, 2);
	p.stride = (uint32_t)next_number(in, 2);
	p.jitter_ps = next_number(in, 8);
	p.order = (enum workload_order)next_number(in, 1);
	p.active_max = (uint32_t)next_number(in, 2);
	p.rings = (uint32_t)next_number(in, 2);
	p.chunks = (uint32_t)next_number(in, 2);
	p.zipf_milli = (uint32_t)next_number(in, 2);
	p.combine = next_number(in, 1) & 1;
	p.step_gap_ps = next_number(in, 8);
	p.rate_bps = next_number(in, 6);
	p.load_ppm = (uint32_t)next_number(in, 4);
	p.end_ps = next_number(in, 8);
	p.count_max = next_number(in, 2);
	p.victim_src = (uint32_t)next_number(in, 1);
	p.victim_dst = (uint32_t)next_number(in, 1);
	p.victim_bytes = next_number(in, 6);
	p.interval_ps = next_number(in, 8);
	p.connections = (uint32_t)next_number(in, 2);
	p.idle = (uint32_t)next_number(in, 2);
	p.cdf = cdf;
	pairs[0] = (struct workload_pair){p.victim_src, p.victim_dst};
	pairs[1] = (struct workload_pair){p.target, p.stride};
	p.pairs = pairs;
	p.pair_count = p.connections % 3;
	return p;
}

static void check(const struct message *m, const uint32_t *hosts, uint32_t parts)
{
	assert(m->part < parts);
	assert(m->src != m->dst && m->src < hosts[m->part] && m->dst < hosts[m->part]);
	assert(m->bytes <= WORKLOAD_BYTES_MAX);
}

/* Every message is sent and received as soon as it can be; time stands still while none starts. */
static void run(struct workload *w, const uint32_t *hosts)
{
	static struct message queue[QUEUE_MAX];
	uint32_t head = 0, tail = 0, parts = workload_parts(w);
	uint64_t now_ps = 0, steps = 0;
	struct message m;
	bool more = true;

	while (steps++ < STEPS_MAX) {
		if (head == tail) {
			more = more && workload_next(w, &m);
			if (!more)
				return;
			check(&m, hosts, parts);
			if (m.start_ps > now_ps)
				now_ps = m.start_ps;
			if (!m.bytes)
				continue;
			queue[tail++ % QUEUE_MAX] = m;
		}

		struct message done = queue[head++ % QUEUE_MAX];

		for (int i = 0; i < 2; i++) {
			if (i)
				workload_received(w, &done, now_ps);
			else
				workload_sent(w, &done, now_ps);
			while (workload_released(w, &m)) {
				assert(m.start_ps >= now_ps);
				check(&m, hosts, parts);
				assert(tail - head < QUEUE_MAX);
				queue[tail++ % QUEUE_MAX] = m;
			}
		}
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = {data, size};
	uint32_t hosts[WORKLOAD_PARTS_MAX], kinds = 0;
	struct workload *w = workload_create();
	struct text_error none;
	struct cdf cdf;
	char sizes[32];

	/* All of one size. */
	snprintf(sizes, sizeof(sizes), "%u 100\n", (unsigned)next_number(&in, 2) + 1);
	assert(w && cdf_read(&cdf, sizes, strlen(sizes), &none) == 0);
	while (workload_kind(kinds))
		kinds++;
	while (in.size && workload_parts(w) < 3) {
		const char *kind = workload_kind(next_number(&in, 1) % kinds);
		struct workload_params p = take_params(&in, &cdf);
		struct text_error err = {0};

		hosts[workload_parts(w)] = p.host_count;
		if (workload_add(w, kind, &p, &err))
			assert(err.message[0]);
	}
	run(w, hosts);
	workload_free(w);
	cdf_free(&cdf);
	return 0;
}
