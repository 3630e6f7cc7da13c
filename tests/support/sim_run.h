/* SPDX-License-Identifier: BSD-2-Clause */
/* Runs a scenario's text, for tests of whole simulations. */
#pragma once

#include "sim/simulation.h"
#include "support/test.h"

struct sim_run {
	struct scenario *scenario;
	struct results results;
	struct simulation *simulation; /* NULL: refused; the reason is in why */
	char why[512];
};

/* The text, with overrides "section.key=value" that a NULL ends; the texts of files are not read. */
static inline void sim_run_read(struct sim_run *run, const char *text, const char *const *sets)
{
	struct scenario_source *source = scenario_source_create();
	struct scenario_error e = {0};
	int rc;

	memset(run, 0, sizeof(*run));
	run->scenario = malloc(sizeof(*run->scenario));
	if (!source || !run->scenario)
		abort();
	rc = scenario_source_text(source, "test.ini", text, &e);
	for (; !rc && sets && *sets; sets++)
		rc = scenario_source_set(source, *sets, &e);
	if (!rc)
		rc = scenario_source_settle(source, run->scenario, &e);
	scenario_source_destroy(source);
	if (rc)
		fail_msg("%s: %s", e.key, e.what);
}

/* A simulation of the scenario, which has not begun. */
static inline void sim_run_create(struct sim_run *run)
{
	results_init(&run->results);
	run->simulation = simulation_create(run->scenario, &run->results, run->why, sizeof(run->why));
}

/* Both, of a scenario that names no files. */
static inline void sim_run_start(struct sim_run *run, const char *text, const char *const *sets)
{
	sim_run_read(run, text, sets);
	sim_run_create(run);
}

/* Runs to the end; no invariant may break. */
static inline void sim_run_end(struct sim_run *run)
{
	enum simulation_state state;

	if (!run->simulation)
		fail_msg("refused: %s", run->why);
	while ((state = simulation_run(run->simulation, 1000000)) == SIMULATION_RUNS)
		;
	if (!simulation_finish(run->simulation))
		fail_msg("%s", run->results.partial_why);
	if (state == SIMULATION_FAILED)
		fail_msg("failed: %s", run->results.partial_why);
}

static inline void sim_run_free(struct sim_run *run)
{
	simulation_destroy(run->simulation);
	results_free(&run->results);
	free(run->scenario);
}

static inline void sim_run_do(struct sim_run *run, const char *text, const char *const *sets)
{
	sim_run_start(run, text, sets);
	sim_run_end(run);
}

static inline uint64_t sim_dropped(const struct sim_run *run)
{
	uint64_t packets = 0;

	for (uint32_t i = 0; i < run->results.drop_count; i++)
		packets += run->results.drops[i].reason == RESULTS_TRIMMED ? 0 : run->results.drops[i].packets;
	return packets;
}

static inline void sim_mix(uint64_t *hash, uint64_t v)
{
	for (int i = 0; i < 8; i++, v >>= 8)
		*hash = (*hash ^ (v & 0xff)) * UINT64_C(0x100000001b3);
}

/* Those of all ports together, by reason. */
static inline void sim_mix_drops(uint64_t *h, const struct results *r, uint8_t class)
{
	static const enum results_reason order[] = {
		RESULTS_DROP_BUFFER,  RESULTS_DROP_CONTROL_FULL, RESULTS_DROP_HEADROOM, RESULTS_DROP_LOSS,
		RESULTS_DROP_CORRUPT, RESULTS_DROP_DOWN,         RESULTS_DROP_NO_ROUTE, RESULTS_DROP_STALE};

	for (size_t k = 0; k < sizeof(order) / sizeof(order[0]); k++) {
		uint64_t packets = 0, bytes = 0, place = 0;

		for (uint32_t i = 0; i < r->drop_count; i++) {
			if (r->drops[i].reason != order[k] || r->drops[i].class != class)
				continue;
			place = r->drops[i].place;
			packets += r->drops[i].packets;
			bytes += r->drops[i].bytes;
		}
		if (!packets)
			continue;
		sim_mix(h, place << 32 | order[k]);
		sim_mix(h, packets);
		sim_mix(h, bytes);
	}
}

/* A hash of all whole numbers that do not depend on the machine. */
static inline uint64_t sim_hash(const struct results *r)
{
	uint64_t h = UINT64_C(0xcbf29ce484222325);

	sim_mix(&h, r->partial);
	sim_mix(&h, r->time_ps);
	sim_mix(&h, r->events);
	sim_mix(&h, r->packet_hops);
	sim_mix(&h, r->packets);
	for (uint32_t i = 0; i < r->flow_count; i++) {
		const struct results_flow *f = &r->flows[i];

		sim_mix(&h, (uint64_t)f->src << 32 | f->dst);
		sim_mix(&h, f->bytes);
		sim_mix(&h, f->start_ps);
		sim_mix(&h, f->fct_ps);
		sim_mix(&h, f->ideal_ps);
		sim_mix(&h, f->received_bytes);
	}
	for (uint32_t i = 0; i < r->port_count; i++) {
		const struct results_port *p = &r->ports[i];

		if (!p->tier)
			continue;
		sim_mix(&h, p->tx_packets);
		sim_mix(&h, p->tx_bytes);
		sim_mix(&h, p->ce_packets);
		sim_mix(&h, p->trimmed_packets);
		sim_mix(&h, p->queue_bytes_max);
		for (uint32_t b = 0; b < p->queue_bins; b++)
			sim_mix(&h, p->queue_time_ps[b]);
		for (uint32_t b = 0; b < p->sample_bins; b++)
			sim_mix(&h, p->sample_count[b]);
	}
	for (uint8_t class = 0; class < RESULTS_CLASSES; class ++)
		sim_mix_drops(&h, r, class);
	sim_mix(&h, r->pfc.pause_frames);
	sim_mix(&h, r->pfc.paused_ps);
	sim_mix(&h, r->recovery.retransmitted_packets);
	sim_mix(&h, r->recovery.spurious_packets);
	sim_mix(&h, r->recovery.timeouts);
	sim_mix(&h, r->recovery.naks);
	sim_mix(&h, r->recovery.cnps);
	return h;
}
