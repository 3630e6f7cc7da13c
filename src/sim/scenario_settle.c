/* SPDX-License-Identifier: BSD-2-Clause */
/* Checks that depend on several keys, once all of them are read. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/scenario_source.h"
#include "sim/sdr_line.h"

static const char *choice_name(const char *section, unsigned value, char buf[SCENARIO_NAME_BYTES])
{
	const char *p = scenario_row_find(section, "kind")->choices;

	for (; value && *p; value--) {
		p += strcspn(p, "|");
		p += *p == '|';
	}
	snprintf(buf, SCENARIO_NAME_BYTES, "%.*s", (int)strcspn(p, "|"), p);
	return buf;
}

/* The kinds in a mask, for a message. */
static void kinds_list(const char *section, uint32_t kinds, unsigned count, char *buf, size_t bytes)
{
	char name[SCENARIO_NAME_BYTES];

	buf[0] = 0;
	for (unsigned i = 0; i < count; i++) {
		if (kinds & 1u << i)
			scenario_append(buf, bytes, "%s%s", buf[0] ? ", " : "", choice_name(section, i, name));
	}
}

/* A key that the chosen kind does not read is an error. */
static int kinds_check(const struct scenario_source *s, const char *section, unsigned kind, unsigned kind_count,
		       const int32_t *lines, const char *prefix, struct scenario_error *e)
{
	size_t count;
	const struct scenario_row *r = scenario_rows(&count);
	char list[512], name[SCENARIO_NAME_BYTES], key[2 * SCENARIO_NAME_BYTES + 16];

	for (size_t i = 0; i < count; i++) {
		if (!scenario_section_is(&r[i], section) || !lines[i] || !r[i].kinds || r[i].kinds & 1u << kind)
			continue;
		snprintf(key, sizeof(key), "%s.%s", prefix, r[i].name);
		kinds_list(section, r[i].kinds, kind_count, list, sizeof(list));
		return scenario_fail(e, s->file, lines[i], key, "means nothing with kind = %s; it is for %s",
				     choice_name(section, kind, name), list);
	}
	return 0;
}

static int32_t line_of(const struct scenario_source *s, const char *section, const char *name)
{
	return s->line[scenario_row_number(scenario_row_find(section, name))];
}

/* An error in a key; if that key was not given, in the other one. */
static int fail_key(const struct scenario_source *s, struct scenario_error *e, const char *section, const char *name,
		    const char *what)
{
	char key[2 * SCENARIO_NAME_BYTES];

	snprintf(key, sizeof(key), "%s.%s", section, name);
	return scenario_fail(e, s->file, line_of(s, section, name), key, "%s", what);
}

static bool is_power_of_two(uint64_t v)
{
	return v && !(v & (v - 1));
}

/* Keys of nodes mean nothing where there are none. */
static int nodes_settle(const struct scenario_source *s, const struct scenario_topology *t, struct scenario_error *e)
{
	static const char *const keys[] = {"inside_delay", "pxn", "nics"};

	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]) && t->inside_rate_bps == SCENARIO_NONE; i++) {
		bool rail = t->kind == SCENARIO_TOPOLOGY_RAIL && !strcmp(keys[i], "nics");

		if (line_of(s, "topology", keys[i]) && !rail)
			return fail_key(s, e, "topology", keys[i],
					strcmp(keys[i], "nics")
						? "means nothing without inside_rate"
						: "means nothing without inside_rate, but for kind = rail");
	}
	return 0;
}

static int dragonfly_settle(const struct scenario_source *s, const struct scenario *out, struct scenario_error *e)
{
	const struct scenario_topology *t = &out->topology;
	bool dragonfly = t->kind == SCENARIO_TOPOLOGY_DRAGONFLY;
	uint64_t most = t->routers * t->globals + 1;

	if (dragonfly && t->groups != SCENARIO_AUTO && t->groups > most)
		return scenario_fail(e, s->file, line_of(s, "topology", "groups"), "topology.groups",
				     "%llu groups; allowed are 2 to routers x globals + 1, %llu",
				     (unsigned long long)t->groups, (unsigned long long)most);
	if (out->sw.routing < SCENARIO_ROUTING_VALIANT)
		return 0;
	if (!dragonfly)
		return fail_key(s, e, "switch", "routing", "valiant and ugal are for kind = dragonfly");
	if (out->sw.flow_control == SCENARIO_FLOW_CONTROL_CREDITS)
		return fail_key(s, e, "switch", "routing",
				"valiant and ugal are not simulated with flow_control = credits");
	return 0;
}

static int topology_settle(const struct scenario_source *s, struct scenario *out, struct scenario_error *e)
{
	struct scenario_topology *t = &out->topology;
	struct scenario_link *l = &out->link;
	bool hpcc = t->kind == SCENARIO_TOPOLOGY_HPCC ||
		    (t->kind == SCENARIO_TOPOLOGY_TWO_DC && t->site_kind == SCENARIO_TOPOLOGY_HPCC);

	if (kinds_check(s, "topology", t->kind, SCENARIO_TOPOLOGY_KINDS, s->line, "topology", e))
		return -EINVAL;
	if ((t->kind == SCENARIO_TOPOLOGY_FILE || t->kind == SCENARIO_TOPOLOGY_SUBNET) && !t->file.path[0])
		return fail_key(s, e, "topology", "file", "this kind needs the path of one");
	if (t->k % 2)
		return scenario_fail(e, s->file, line_of(s, "topology", "k"), "topology.k",
				     "%u is odd; use an even number", (unsigned)t->k);
	if (nodes_settle(s, t, e) || dragonfly_settle(s, out, e))
		return -EINVAL;
	if (l->fabric_rate_bps == SCENARIO_AUTO)
		l->fabric_rate_bps = hpcc ? 4 * l->rate_bps : l->rate_bps;
	if (l->border_rate_bps == SCENARIO_AUTO)
		l->border_rate_bps = l->fabric_rate_bps;
	if (l->long_rate_bps == SCENARIO_AUTO)
		l->long_rate_bps = l->fabric_rate_bps;
	if (l->fabric_delay_ps == SCENARIO_AUTO)
		l->fabric_delay_ps = l->delay_ps;
	if (l->ge_bad_ppb && !l->ge_good_ppb)
		return fail_key(s, e, "link", "ge_good", "0 with ge_bad above 0: it would stay bad for ever");
	return 0;
}

static int kmin_fail(const struct scenario_source *s, const struct scenario_switch *w, struct scenario_error *e)
{
	int32_t line = line_of(s, "switch", "kmin");

	return scenario_fail(e, s->file, line ? line : line_of(s, "switch", "kmax"),
			     line ? "switch.kmin" : "switch.kmax", "kmin, %llu bytes, is above kmax, %llu",
			     (unsigned long long)w->kmin_bytes, (unsigned long long)w->kmax_bytes);
}

static int switch_settle(const struct scenario_source *s, struct scenario *out, struct scenario_error *e)
{
	struct scenario_switch *w = &out->sw;
	uint64_t alpha64 = w->pfc_alpha_ppb * 64;

	if (w->border_buffer_bytes == SCENARIO_AUTO)
		w->border_buffer_bytes = w->buffer_bytes;
	if (w->kmin_bytes > w->kmax_bytes)
		return kmin_fail(s, w, e);
	if (alpha64 % SCENARIO_PPB || !is_power_of_two(alpha64 / SCENARIO_PPB))
		return scenario_fail(e, s->file, line_of(s, "switch", "pfc_alpha"), "switch.pfc_alpha",
				     "%g is not allowed; use a power of two from 1/64 to 8",
				     (double)w->pfc_alpha_ppb / SCENARIO_PPB);
	return 0;
}

/* What has no meaning on links with credits. */
static int credits_settle(const struct scenario_source *s, struct scenario *out, struct scenario_error *e)
{
	struct scenario_switch *w = &out->sw;

	if (w->flow_control != SCENARIO_FLOW_CONTROL_CREDITS)
		return 0;
	if (w->pfc != SCENARIO_PFC_OFF)
		return fail_key(s, e, "switch", "pfc", "off with flow_control = credits: a link has one or the other");
	if (w->ecn && line_of(s, "switch", "ecn"))
		return fail_key(s, e, "switch", "ecn",
				"off with flow_control = credits: InfiniBand's packets have no ECN");
	if (w->trim)
		return fail_key(s, e, "switch", "trim", "off with flow_control = credits: no queue is ever full");
	if (w->int_on)
		return fail_key(s, e, "switch", "int", "off with flow_control = credits");
	if (w->border_buffer_bytes != w->buffer_bytes)
		return fail_key(s, e, "switch", "border_buffer",
				"auto with flow_control = credits: buffers are lane_buffer");
	if (out->link.jitter_ps)
		return fail_key(s, e, "link", "jitter", "0 with flow_control = credits: such links keep the order");
	if (out->host.rx_drain_bps != SCENARIO_NONE)
		return fail_key(s, e, "host", "rx_drain", "none with flow_control = credits: hosts take what comes");
	if (out->transport.protocol != SCENARIO_ROCEV2)
		return fail_key(s, e, "transport", "protocol",
				"rocev2 with flow_control = credits: its transport is InfiniBand's");
	w->ecn = false;
	return 0;
}

static int transport_settle(const struct scenario_source *s, struct scenario *out, struct scenario_error *e)
{
	struct scenario_transport *t = &out->transport;
	/* The row's choices are auto and then enum scenario_loss. */
	unsigned loss = t->loss;
	bool rocev2 = t->protocol != SCENARIO_VEROCE;

	if (!loss)
		loss = 1 + (rocev2 ? SCENARIO_LOSS_GBN : SCENARIO_LOSS_FAST);
	if ((loss - 1 == SCENARIO_LOSS_GBN) != rocev2)
		return fail_key(s, e, "transport", "loss",
				rocev2 ? "fast, base and irn are veroce's; rocev2 does gbn (go-back-N) only"
				       : "gbn is rocev2's; veroce does fast, base or irn");
	t->loss = loss - 1;
	if (!is_power_of_two(t->rx_window))
		return scenario_fail(e, s->file, line_of(s, "transport", "rx_window"), "transport.rx_window",
				     "%llu is not allowed; use a power of two from 64 to 65536",
				     (unsigned long long)t->rx_window);
	return 0;
}

static int sdr_settle(const struct scenario_source *s, struct scenario *out, struct scenario_error *e)
{
	const struct scenario_transport *t = &out->transport;
	uint64_t packets = out->sdr.chunk_bytes / t->payload_bytes;

	if (t->protocol != SCENARIO_SDR)
		return 0;
	if (!is_power_of_two(t->payload_bytes))
		return fail_key(s, e, "transport", "payload", "with protocol = sdr a power of two");
	if (out->sdr.chunk_bytes % t->payload_bytes || !is_power_of_two(packets) || packets > 64)
		return fail_key(s, e, "sdr", "chunk", "1, 2, 4, .. or 64 times transport.payload");
	if (out->sdr.code_data + out->sdr.code_parity > 255)
		return fail_key(s, e, "sdr", "data", "with parity at most 255 chunks");
	if (out->sdr.scheme == SDR_SCHEME_XOR && out->sdr.code_parity > out->sdr.code_data)
		return fail_key(s, e, "sdr", "parity", "of xor no more than data");
	return 0;
}

/* A placement by a file says which hosts take part. */
static int place_settle(const struct scenario_source *s, const struct scenario_workload *w, int line,
			struct scenario_error *e)
{
	char key[2 * SCENARIO_NAME_BYTES + 16];

	if (w->place.by != SCENARIO_PLACE_FILE || !w->hosts.count)
		return 0;
	snprintf(key, sizeof(key), "%s.%s.hosts", w->section, w->name);
	return scenario_fail(e, s->file, line, key, "not with place = %s, whose hosts take part", w->place.file.path);
}

static int workload_settle(const struct scenario_source *s, struct scenario *out, uint32_t i, struct scenario_error *e)
{
	struct scenario_workload *w = &out->workload[i];
	char prefix[2 * SCENARIO_NAME_BYTES], key[2 * SCENARIO_NAME_BYTES + 16];

	snprintf(prefix, sizeof(prefix), "workload.%s", w->name);
	if (kinds_check(s, "workload", w->kind, SCENARIO_WORKLOAD_KINDS, s->workload_line[i], prefix, e))
		return -EINVAL;
	if ((w->kind == SCENARIO_FILE_FLOWS || w->kind == SCENARIO_GRAPH) && !w->file.path[0]) {
		snprintf(key, sizeof(key), "%s.file", prefix);
		return scenario_fail(e, s->file, s->workload_at[i], key, "kind = %s needs the path of one",
				     w->kind == SCENARIO_GRAPH ? "graph" : "file");
	}
	for (uint32_t k = 0; k < i && w->kind == SCENARIO_PROGRAM; k++) {
		if (out->workload[k].kind != SCENARIO_PROGRAM)
			continue;
		snprintf(key, sizeof(key), "%s.kind", prefix);
		return scenario_fail(e, s->file, s->workload_at[i], key, "there is one program at most");
	}
	if (w->kind == SCENARIO_STAIRCASE && !w->interval_ps) {
		snprintf(key, sizeof(key), "%s.interval", prefix);
		return scenario_fail(e, s->file, s->workload_at[i], key,
				     "a staircase needs the time between its steps");
	}
	if ((w->kind == SCENARIO_CDF || w->kind == SCENARIO_INCAST_POISSON) && w->stop_ps == SCENARIO_NEVER &&
	    w->flows == SCENARIO_NONE && out->run.until_ps == SCENARIO_NONE && out->run.events == SCENARIO_NONE) {
		snprintf(key, sizeof(key), "%s.stop", prefix);
		return scenario_fail(e, s->file, s->workload_at[i], key,
				     "it would never end: give stop or flows, or run.until or run.events");
	}
	w->section = "workload";
	if (place_settle(s, w, s->workload_at[i], e))
		return -EINVAL;
	if (w->traffic_class == SCENARIO_AUTO && w->kind != SCENARIO_FILE_FLOWS)
		w->traffic_class = out->transport.data_class;
	return 0;
}

static int failures_settle(const struct scenario_source *s, struct scenario *out, struct scenario_error *e)
{
	for (uint32_t i = 0; i < out->failure_count; i++) {
		struct scenario_failure *f = &out->failure[i];
		char key[2 * SCENARIO_NAME_BYTES];

		if (f->link_a == f->link_b) {
			snprintf(key, sizeof(key), "failure.%s.link", f->name);
			return scenario_fail(e, s->file, s->failure_at[i], key, "say which, as A-B");
		}
		if (f->action == SCENARIO_LINK_RATE && f->rate_bps == SCENARIO_NONE) {
			snprintf(key, sizeof(key), "failure.%s.rate", f->name);
			return scenario_fail(e, s->file, s->failure_at[i], key, "action = rate needs the new rate");
		}
	}
	/* By time, and as written where times are equal; there are few. */
	for (uint32_t i = 1; i < out->failure_count; i++) {
		struct scenario_failure f = out->failure[i];
		uint32_t k;

		for (k = i; k && out->failure[k - 1].time_ps > f.time_ps; k--)
			out->failure[k] = out->failure[k - 1];
		out->failure[k] = f;
	}
	return 0;
}

static bool given(const struct scenario_source *s, uint32_t job, const char *name)
{
	return s->job_line[job][scenario_row_number(scenario_row_find("job", name))];
}

/* The workload that a job is: another one with what its own keys say. */
static void job_apply(const struct scenario_source *s, uint32_t i, const struct scenario_job *j,
		      struct scenario_workload *w)
{
	memcpy(w->of, w->name, sizeof(w->of));
	memcpy(w->name, j->name, sizeof(w->name));
	w->section = "job";
	if (given(s, i, "hosts"))
		w->hosts = j->hosts;
	if (given(s, i, "place"))
		w->place = j->place;
	if (w->place.by == SCENARIO_PLACE_FILE && !given(s, i, "hosts"))
		w->hosts.count = 0;
	if (given(s, i, "start"))
		w->start_ps = j->start_ps;
	if (given(s, i, "repeat"))
		w->repeat = j->repeat;
	w->arrive_gap_ps = j->arrive_gap_ps;
}

static int job_settle(const struct scenario_source *s, const struct scenario *c, uint32_t i, uint32_t *of,
		      struct scenario_error *e)
{
	const struct scenario_job *j = &c->job[i];
	char key[2 * SCENARIO_NAME_BYTES];

	snprintf(key, sizeof(key), "job.%s.workload", j->name);
	for (*of = 0; *of < c->workload_count; ++*of) {
		if (!strcmp(c->workload[*of].name, j->workload))
			break;
	}
	if (*of == c->workload_count)
		return scenario_fail(e, s->file, s->job_at[i], key,
				     "'%s': there is no [workload.%s]; say the name of one of kind = graph",
				     j->workload, j->workload);
	if (c->workload[*of].kind != SCENARIO_GRAPH)
		return scenario_fail(e, s->file, s->job_at[i], key, "[workload.%s] is not of kind = graph",
				     j->workload);
	return 0;
}

/* Jobs become workloads, behind those that no job names. */
static int jobs_settle(const struct scenario_source *s, struct scenario *c, struct scenario_error *e)
{
	struct scenario_workload *all = c->job_count ? calloc(SCENARIO_WORKLOADS_MAX, sizeof(*all)) : NULL;
	uint32_t of[SCENARIO_JOBS_MAX], count = 0;
	bool named[SCENARIO_WORKLOADS_MAX] = {false};
	int rc = 0;

	if (!c->job_count)
		return 0;
	if (!all)
		return -ENOMEM;
	for (uint32_t i = 0; i < c->job_count && !rc; i++) {
		rc = job_settle(s, c, i, &of[i], e);
		if (!rc)
			named[of[i]] = true;
	}
	for (uint32_t i = 0; i < c->workload_count && !rc; i++) {
		if (!named[i])
			all[count++] = c->workload[i];
	}
	for (uint32_t i = 0; i < c->job_count && !rc; i++) {
		for (uint32_t k = 0; k < count && !rc; k++) {
			if (!strcmp(all[k].name, c->job[i].name))
				rc = scenario_fail(e, s->file, s->job_at[i], "",
						   "[job.%s]: there is a workload of that name, too", all[k].name);
		}
		if (!rc && count == SCENARIO_WORKLOADS_MAX)
			rc = scenario_fail(e, s->file, s->job_at[i], "",
					   "[job.%s]: jobs and workloads together may be %d", c->job[i].name,
					   SCENARIO_WORKLOADS_MAX);
		if (rc)
			break;
		all[count] = c->workload[of[i]];
		job_apply(s, i, &c->job[i], &all[count]);
		rc = place_settle(s, &all[count++], s->job_at[i], e);
	}
	if (!rc) {
		memcpy(c->workload, all, sizeof(c->workload));
		c->workload_count = count;
		c->job_count = 0;
	}
	free(all);
	return rc;
}

static int programs_settle(const struct scenario_source *s, struct scenario *out, struct scenario_error *e)
{
	for (uint32_t i = 0; i < out->program_count; i++) {
		const struct scenario_program *p = &out->program[i];
		char key[2 * SCENARIO_NAME_BYTES];

		if (p->hosts.count && p->command[0])
			continue;
		snprintf(key, sizeof(key), "program.%s.%s", p->name, p->command[0] ? "hosts" : "command");
		return scenario_fail(e, s->file, s->program_at[i], key,
				     p->command[0] ? "say which hosts run it, as 0-7,12" : "say what they run");
	}
	return 0;
}

/* All but one workload are left out. */
static int only_settle(const struct scenario_source *s, struct scenario *out, struct scenario_error *e)
{
	const char *only = out->run.only;

	if (!strcmp(only, "all") && out->program_count)
		return scenario_fail(
			e, s->file, line_of(s, "run", "only"), "run.only",
			"'all': workloads do not run beside programs; allowed is none, or a workload's name");
	if (!strcmp(only, SCENARIO_NO_WORKLOAD) || (!only[0] && out->program_count)) {
		out->workload_count = 0;
		return 0;
	}
	if (!only[0] || !strcmp(only, "all"))
		return 0;
	out->program_count = 0;
	for (uint32_t i = 0; i < out->workload_count; i++) {
		if (strcmp(out->workload[i].name, only) != 0)
			continue;
		out->workload[0] = out->workload[i];
		out->workload_count = 1;
		return 0;
	}
	return scenario_fail(e, s->file, line_of(s, "run", "only"), "run.only", "there is no [workload.%s] or [job.%s]",
			     only, only);
}

int scenario_source_settle(const struct scenario_source *s, struct scenario *out, struct scenario_error *e)
{
	int rc = -EINVAL;
	struct scenario *c = malloc(sizeof(*c));

	if (!c)
		return -ENOMEM;
	*c = s->scenario;
	if (topology_settle(s, c, e) || switch_settle(s, c, e) || transport_settle(s, c, e) ||
	    credits_settle(s, c, e) || sdr_settle(s, c, e) || failures_settle(s, c, e))
		goto out;
	if (!c->workload_count && !c->program_count && strcmp(c->run.only, SCENARIO_NO_WORKLOAD) != 0) {
		scenario_fail(e, s->file, 0, "",
			      "there is no [workload.NAME] and no [program.NAME]: nothing would happen");
		goto out;
	}
	for (uint32_t i = 0; i < c->workload_count; i++) {
		if (workload_settle(s, c, i, e))
			goto out;
	}
	if (jobs_settle(s, c, e) || programs_settle(s, c, e) || only_settle(s, c, e))
		goto out;
	if (!c->run.all_flows && c->run.until_ps == SCENARIO_NONE && c->run.events == SCENARIO_NONE) {
		fail_key(s, e, "run", "all_flows", "off, and neither until nor events: it would never end");
		goto out;
	}
	*out = *c;
	rc = 0;
out:
	free(c);
	return rc;
}
