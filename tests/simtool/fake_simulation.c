/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Replaces the simulator in tests of `verbena sim`: results of every kind, derived from the seed
 * and the scenario's text. It simulates nothing.
 *
 * cc.algorithm = "refused" is refused; "broken" fails half way, "stuck" cannot go on from there; "slow" takes 20 ms a
 * slice.
 */
#include "sim/simulation.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "support/results_queue.h"

enum { FLOWS = 300, PORTS = 12, STEPS = 400 };

#define US UINT64_C(1000000)

struct simulation {
	const struct scenario *s;
	struct results *r;
	uint64_t x; /* of the generator */
	uint32_t step;
};

static double draw(struct simulation *m)
{
	m->x ^= m->x << 13;
	m->x ^= m->x >> 7;
	m->x ^= m->x << 17;
	return (double)(m->x >> 11) / 9007199254740992.0;
}

struct simulation *simulation_create(const struct scenario *s, struct results *r, char *why, size_t why_bytes)
{
	struct simulation *m;
	bool one_size = s->workload[0].kind == SCENARIO_INCAST;
	uint32_t flows = one_size ? 128 : FLOWS;

	if (!strcmp(s->cc.algorithm, "refused")) {
		snprintf(why, why_bytes, "cc.algorithm: 'refused': there are fake, broken, stuck and slow");
		return NULL;
	}
	m = calloc(1, sizeof(*m));
	m->s = s;
	m->r = r;
	m->x = s->run.seed * 0x9e3779b97f4a7c15ull + 1;
	for (int i = 0; i < 20; i++)
		draw(m);
	r->hosts = 128;
	r->switches = 80;
	r->links = 384;
	r->header_share_ppb = 950000000;
	r->host_rate_bps = r->host_rate_bps_min = UINT64_C(100000000000);
	r->receivers_bps = 128 * r->host_rate_bps;
	r->base_rtt_ps = UINT64_C(12240000);
	snprintf(r->cc, sizeof(r->cc), "%s", s->cc.algorithm);
	snprintf(r->transport, sizeof(r->transport), s->transport.protocol ? "RoCEv2" : "veRoCE");
	if (s->output.goodput_window_ps != SCENARIO_NONE)
		results_goodput_start(r, s->output.goodput_window_ps, (uint32_t)s->output.goodput_flows,
				      s->workload_count);
	results_series_init(&r->pfc.frames, 10 * US, RESULTS_SUM);
	for (uint32_t i = 0; i < flows; i++) {
		uint64_t bytes = one_size ? 1000000 : (uint64_t)exp(6 + 11 * draw(m));
		struct results_flow f = {
			.src = i % 128,
			.dst = one_size ? 0 : (i * 37 + 11) % 128,
			.workload = i % s->workload_count,
			.bytes = bytes,
			.start_ps = one_size ? 0 : i * 20 * US,
			.fct_ps = RESULTS_NOT_DONE,
			.ideal_ps = one_size ? 88 * US : 12 * US + bytes * 85,
		};

		results_flow_add(r, &f, NULL);
	}
	for (uint32_t i = 0; i < PORTS; i++) {
		struct results_port p = {
			.node = i < 2 ? i : 128 + i % 4,
			.to = i < 2 ? 128 : i - 2,
			.port = (uint16_t)i,
			.tier = i < 2 ? 0 : 1,
			.rate_bps = r->host_rate_bps,
		};

		results_series_init(&p.queue, US, RESULTS_MAX);
		results_port_add(r, &p, NULL);
	}
	return m;
}

static void step(struct simulation *m)
{
	struct results *r = m->r;
	bool one_size = r->flow_count == 128;
	uint64_t length = 28 * US, now = m->step * length;
	double t = m->step / (double)STEPS;

	for (uint32_t i = 0; i < r->flow_count; i++) {
		struct results_flow *f = &r->flows[i];
		uint64_t bytes;

		if (f->fct_ps != RESULTS_NOT_DONE || f->start_ps > now)
			continue;
		bytes = (uint64_t)(length / 1e12 * (one_size ? 0.76e9 : 8e9) / 8 *
				   (1 + 0.5 * (draw(m) - 0.5) * exp(-4 * t) + 0.1 * ((i * 7) % 11 / 11.0)));
		if (f->received_bytes + bytes >= f->bytes)
			bytes = f->bytes - f->received_bytes;
		results_goodput_add(r, i, now + (uint64_t)(draw(m) * (double)length), bytes);
		if (f->received_bytes == f->bytes)
			results_flow_done(r, i, now + length / 2 + f->ideal_ps);
		r->recovery.retransmitted_packets += draw(m) < 0.01;
	}
	for (uint32_t k = 0; k < 20; k++) {
		for (uint32_t i = 0; i < r->port_count; i++) {
			double q = 150e3 * exp(-5 * t) *
					   (i == 3   ? 3
					    : i == 4 ? 1.4
					    : i == 5 ? 0.8
						     : 0.1) +
				   8e3 * draw(m) - 3e3;

			results_queue_change(&r->ports[i], now + k * length / 20, q > 0 ? (uint64_t)q : 0);
		}
	}
	if (t < 0.3 && draw(m) < 0.5) {
		r->pfc.pause_frames += 3;
		r->pfc.resume_frames += 3;
		results_series_add(&r->pfc.frames, now, 3);
	}
	for (uint32_t i = 0; i < 4 && (m->s->output.cc_trace_all || m->s->output.cc_trace.count); i++)
		results_trace_add(r, &(struct results_trace){
					     now, i, 0, (uint64_t)(1e9 * (0.5 + 99 * exp(-30 * t) + 0.2 * draw(m))),
					     100000, 1, 0});
	m->step++;
	r->time_ps = now + length;
	r->events += 5000;
	r->packet_hops += 3100;
	r->packets += 620;
}

enum simulation_state simulation_run(struct simulation *m, uint64_t events)
{
	bool slow = !strcmp(m->s->cc.algorithm, "slow");

	if (slow)
		nanosleep(&(struct timespec){0, 20000000}, NULL);
	for (uint64_t i = 0; i < (slow ? 1 : 4) && m->step < STEPS; i++) {
		step(m);
		if (m->s->run.until_ps != SCENARIO_NONE && m->r->time_ps >= m->s->run.until_ps) {
			m->r->partial = m->r->flows_done < m->r->flow_count;
			snprintf(m->r->partial_why, sizeof(m->r->partial_why), "time is up, %u flows are open",
				 m->r->flow_count - m->r->flows_done);
			return SIMULATION_ENDED;
		}
	}
	if (m->step >= STEPS / 2 && !strcmp(m->s->cc.algorithm, "broken")) {
		m->r->partial = true;
		snprintf(m->r->partial_why, sizeof(m->r->partial_why), "an invariant does not hold");
		return SIMULATION_FAILED;
	}
	if (m->step >= STEPS / 2 && !strcmp(m->s->cc.algorithm, "stuck")) {
		m->r->partial = true;
		snprintf(m->r->partial_why, sizeof(m->r->partial_why), "it cannot go on");
		return SIMULATION_STUCK;
	}
	return m->step < STEPS ? SIMULATION_RUNS : SIMULATION_ENDED;
}

bool simulation_capture(struct simulation *m, simulation_frame frame, void *context, char *why, size_t why_bytes)
{
	return true;
}

void simulation_log(struct simulation *m, simulation_line line, void *context)
{
	line(context, "0 nothing\n", 10);
}

void simulation_progress(const struct simulation *m, struct simulation_progress *p)
{
	*p = (struct simulation_progress){m->r->time_ps, m->r->events, m->r->packet_hops, m->r->flows_done,
					  m->r->flow_count};
}

bool simulation_finish(struct simulation *m)
{
	struct results *r = m->r;

	for (uint32_t i = 0; i < r->port_count; i++)
		results_queue_change(&r->ports[i], r->time_ps, r->ports[i].queue_bytes);
	if (r->pfc.pause_frames) {
		r->pfc.longest_ps = 40 * US;
		r->pfc.depth_max = 2;
		r->pfc.hosts_paused = 5;
		r->pfc.paused_ps = 900 * US;
		r->ports[3].pause_tx = r->pfc.pause_frames;
	}
	results_drop_add(r, &(struct results_drop){RESULTS_AT_LINK, RESULTS_DROP_LOSS, 0, 128, 0, 3, 17, 70000});
	if (m->s->workload[0].kind == SCENARIO_RING_ALLREDUCE)
		results_collective_add(r, &(struct results_collective){
						  .hosts = 128,
						  .bytes = 128000000,
						  .time_ps = 11000 * US,
						  .ideal_ps = 10500 * US,
						  .possible_ps = 10780 * US,
						  .limit = {4, 24, UINT64_C(1400000000000)},
						  .algorithm_bps = UINT64_C(93000000000),
						  .bus_bps = UINT64_C(184000000000),
					  });
	r->order_hash = m->x;
	return true;
}

void simulation_destroy(struct simulation *m)
{
	free(m);
}
