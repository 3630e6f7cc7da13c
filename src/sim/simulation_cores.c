/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Cores meet after windows of a link's delay (net/cores.h). What reaches from one host to another in no time, or sees
 * all events in their order, runs on one core.
 */
#include "sim/simulation_cores.h"

/* The key that needs one core; NULL: none does. */
static const char *key_for_one(const struct scenario *s)
{
	const struct scenario_output *o = &s->output;

	if (s->sw.flow_control == SCENARIO_FLOW_CONTROL_CREDITS)
		return "switch.flow_control";
	if (s->transport.protocol == SCENARIO_SDR)
		return "transport.protocol";
	if (s->topology.inside_rate_bps != SCENARIO_NONE)
		return "topology.inside_rate";
	if (s->link.jitter_ps)
		return "link.jitter";
	if (s->link.lost_count)
		return "link.lost";
	if (s->host.qp_cache != SCENARIO_NONE)
		return "host.qp_cache";
	if (s->run.check)
		return "run.check";
	if (s->run.events != SCENARIO_NONE)
		return "run.events";
	if (o->event_log)
		return "output.event_log";
	if (o->pcap.path[0])
		return "output.pcap";
	if (o->cc_trace_all || o->cc_trace.count)
		return "output.cc_trace";
	return NULL;
}

static bool apart(void *simulation, uint64_t end_ps)
{
	const struct simulation *s = simulation;

	return flows_apart(s->flows, end_ps);
}

/*
 * A look-up of paths keeps what it has found. Congestion control asks for its base RTT on the cores, so all of it must
 * be known beforehand.
 */
static bool find_paths(struct simulation *s)
{
	struct topology_path way;
	uint32_t n = s->topology.host_count;

	for (uint32_t i = 0; i < n; i++) {
		if (n > 1 && topology_paths_get(s->paths, i, (i + 1) % n, &way))
			return false;
	}
	return true;
}

bool cores_divide(struct simulation *s, struct why why)
{
	const struct network_cores c = {.count = s->scenario->cores, .apart = apart, .ctx = s};
	const char *key = key_for_one(s->scenario);
	char error[NETWORK_ERROR_BYTES];

	if (key)
		return refuse(why, "%s: runs on one core only", key);
	if (!find_paths(s))
		return refuse(why, "out of memory");
	return !network_divide(s->network, &c, error) || refuse(why, "topology: %s", error);
}

bool cores_take(const struct simulation *s, struct why why)
{
	for (uint32_t i = 0; i < workload_parts(s->workload); i++) {
		const struct scenario_workload *w = &s->scenario->workload[s->origins[i].workload];
		struct workload_facts facts;

		workload_facts(s->workload, i, &facts);
		if (facts.waits)
			return refuse(why, "%s.%s: has messages that wait for others, and runs on one core only",
				      w->section, w->name);
	}
	return true;
}
