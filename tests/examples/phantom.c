/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Marks by a phantom queue (Alizadeh et al., NSDI 2012): a counter that fills with the bytes a port
 * sends and drains a little slower than the port could. It grows long while the real queue is still
 * empty, so senders that heed its marks leave a few percent of the link, and no queue.
 */
#include "policies.h"

enum { PPB = 1000000000 };

struct phantom_queue {
	uint64_t bytes;
	uint64_t drained_ps; /* up to when */
};

static bool marks(const void *parameters, void *state, const struct marking_question *q, const struct packet *p)
{
	const struct phantom *ph = parameters;
	struct phantom_queue *v = state;
	unsigned __int128 bytes_ps = (unsigned __int128)q->rate_bps * ph->drain_ppb / PPB / 8;
	uint64_t drained = (uint64_t)((q->now_ps - v->drained_ps) * bytes_ps / 1000000000000u);

	v->bytes = v->bytes > drained ? v->bytes - drained : 0;
	v->bytes += p->wire_bytes;
	v->drained_ps = q->now_ps;
	return v->bytes > ph->threshold_bytes;
}

struct marking_policy phantom_policy(const struct phantom *parameters)
{
	return (struct marking_policy){
		.port_bytes = sizeof(struct phantom_queue),
		.marks = marks,
		.parameters = parameters,
	};
}
