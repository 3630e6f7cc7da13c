/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An accepted list of flows can be run to its end: times are in order, each message comes once, and
 * as many as announced, unless some wait for triggers that never fire. The first byte chooses the
 * format.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "support/fuzz_input.h"
#include "workload/workload.h"

static void run(struct workload *w, uint64_t promised)
{
	struct message *queue = calloc(promised + 1, sizeof(*queue));
	uint8_t *seen = calloc(promised + 1, 1);
	uint64_t head = 0, tail = 0, last = 0;
	struct message m;

	while (workload_next(w, &m)) {
		assert(m.start_ps >= last && tail < promised);
		last = m.start_ps;
		queue[tail++] = m;
	}
	for (; head < tail; head++) {
		m = queue[head];
		assert(m.number < promised && !seen[m.number] && m.src != m.dst && m.bytes);
		seen[m.number] = 1;
		workload_sent(w, &queue[head], last);
		while (workload_released(w, &m)) {
			assert(m.start_ps >= last && tail < promised);
			queue[tail++] = m;
		}
		workload_received(w, &queue[head], last);
		while (workload_released(w, &m)) {
			assert(m.start_ps >= last && tail < promised);
			queue[tail++] = m;
		}
	}
	free(queue);
	free(seen);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct workload_params p = {0};
	struct text_error err = {0};
	struct workload_facts facts;
	struct workload *w;

	if (!size)
		return 0;
	p.text = (const char *)data + 1;
	p.text_bytes = size - 1;
	w = workload_create();
	assert(w);
	if (workload_add(w, data[0] == 'h' ? "htsim-matrix" : "hpcc-flows", &p, &err)) {
		assert(err.message[0] && strlen(err.message) < sizeof(err.message));
	} else {
		workload_facts(w, 0, &facts);
		run(w, facts.message_count);
	}
	workload_free(w);
	return 0;
}
