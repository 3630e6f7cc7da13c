/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A pipeline of stages, each of which takes packets one after the other: the last packet is through
 * when the longest staircase from (first packet, first stage) to (last packet, last stage) is,
 * where a step is either the same packet at the next stage or the next packet at the same stage.
 * All packets but the first and the last are alike, so the staircase is known by the stages at
 * which the first and the last packet are met.
 */
#include "sim/ideal.h"

#include <assert.h>

enum { STAGES_MAX = IDEAL_LINKS_MAX + 1 }; /* and the receive buffer */

struct pipeline {
	uint32_t stages;
	/* The time of the stages before this one for the first, a full and the last packet. */
	uint64_t first[STAGES_MAX + 1], full[STAGES_MAX + 1], last[STAGES_MAX + 1];
};

static uint64_t takes_ps(uint64_t bytes, uint64_t rate_bps)
{
	return (uint64_t)((unsigned __int128)bytes * 8 * UINT64_C(1000000000000) / rate_bps);
}

static void add_stage(struct pipeline *p, const struct host_message *m, uint64_t rate_bps)
{
	uint32_t i = p->stages++;

	p->first[i + 1] = p->first[i] + takes_ps(m->first_bytes, rate_bps);
	p->full[i + 1] = p->full[i] + takes_ps(m->full_bytes, rate_bps);
	p->last[i + 1] = p->last[i] + takes_ps(m->last_bytes, rate_bps);
}

/* The time of `packets` packets, the first of which has the size `first`. */
static uint64_t through_ps(const struct pipeline *p, const uint64_t *first, uint64_t packets)
{
	uint32_t n = p->stages;
	uint64_t most = 0;

	if (packets == 1)
		return p->last[n];
	for (uint32_t a = 0; a < n; a++) {
		uint64_t slowest = 0;

		for (uint32_t b = a; b < n; b++) {
			uint64_t one = p->full[b + 1] - p->full[b], sum = first[a + 1] + p->last[n] - p->last[b];

			slowest = one > slowest ? one : slowest;
			if (packets > 2)
				sum += p->full[b + 1] - p->full[a] + (packets - 3) * slowest;
			else if (b > a)
				break;
			most = sum > most ? sum : most;
		}
	}
	return most;
}

/*
 * A packet is read while the one before it is sent, and is not sent before it is read. So reading
 * may set the pace of the first few packets, and the slowest later stage that of the rest. The
 * longest staircase has all but the packets at the ends on one of the two.
 */
static uint64_t through_after_reading_ps(const struct pipeline *p, uint64_t packets, uint64_t read_ps)
{
	const uint64_t read[] = {1, packets - 3, packets - 2, packets - 1};
	uint64_t most = through_ps(p, p->first, packets);

	for (unsigned i = 0; i < sizeof(read) / sizeof(read[0]); i++) {
		uint64_t ps;

		if (!read[i] || read[i] >= packets)
			continue;
		ps = read[i] * read_ps + through_ps(p, p->full, packets - read[i]);
		most = ps > most ? ps : most;
	}
	return most;
}

uint64_t ideal_answer_ps(const struct ideal_way *w, const struct host_message *m)
{
	uint64_t ps = w->delay_ps + (w->links - 1) * w->latency_ps;

	for (uint32_t i = 0; i < w->links; i++)
		ps += takes_ps(m->ack_bytes, w->rates_bps[i]);
	return ps;
}

uint64_t ideal_ps(const struct ideal_way *w, const struct host_message *m, uint32_t mtu_bytes)
{
	uint64_t ps = w->hosts_ps + w->delay_ps + (w->links - 1) * w->latency_ps + ideal_answer_ps(w, m);
	struct pipeline p = {0};

	assert(w->links && w->links <= IDEAL_LINKS_MAX);
	assert(m->packets);
	for (uint32_t i = 0; i < w->links; i++)
		add_stage(&p, m, w->rates_bps[i]);
	if (w->drain_bps)
		add_stage(&p, m, w->drain_bps);
	if (w->read_bps)
		return ps + through_after_reading_ps(&p, m->packets, takes_ps(mtu_bytes, w->read_bps));
	return ps + through_ps(&p, p.first, m->packets);
}
