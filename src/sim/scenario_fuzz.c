/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A scenario's text, and overrides after a zero byte. Nothing crashes, an error has a text, and
 * accepted values are within their bounds.
 */
#include <stdlib.h>
#include <string.h>

#include "sim/scenario.h"
#include "support/fuzz_input.h"

/* Works also where asserts are compiled out. */
#define MUST(x)                  \
	do {                     \
		if (!(x))        \
			abort(); \
	} while (0)

static struct scenario out;

static void check(const struct scenario *s)
{
	struct scenario_wanted files[80];

	MUST(s->workload_count <= SCENARIO_WORKLOADS_MAX && s->program_count <= SCENARIO_PROGRAMS_MAX);
	MUST(!s->workload_count == (s->program_count || !strcmp(s->run.only, SCENARIO_NO_WORKLOAD)));
	MUST(s->failure_count <= SCENARIO_FAILURES_MAX);
	MUST(s->cc.param_count <= SCENARIO_CC_PARAMS_MAX);
	MUST(s->link.rate_bps >= 1000000 && s->link.rate_bps <= UINT64_C(8000000000000));
	MUST(s->link.loss_ppb <= SCENARIO_PPB);
	MUST(s->link.lost_count <= SCENARIO_RANGES_MAX);
	MUST(s->sw.kmin_bytes <= s->sw.kmax_bytes);
	MUST(s->topology.kind < SCENARIO_TOPOLOGY_KINDS);
	MUST(s->transport.loss <= SCENARIO_LOSS_GBN);
	for (uint32_t i = 0; i < s->workload_count; i++) {
		MUST(s->workload[i].kind < SCENARIO_WORKLOAD_KINDS);
		MUST(s->workload[i].hosts.count <= SCENARIO_RANGES_MAX);
		MUST(s->workload[i].section && s->workload[i].place.by <= SCENARIO_PLACE_FILE);
		MUST(strnlen(s->workload[i].name, SCENARIO_NAME_BYTES) < SCENARIO_NAME_BYTES);
	}
	for (uint32_t i = 0; i < s->program_count; i++)
		MUST(s->program[i].hosts.count && s->program[i].command[0]);
	for (uint32_t i = 1; i < s->failure_count; i++)
		MUST(s->failure[i - 1].time_ps <= s->failure[i].time_ps);
	MUST(scenario_files((struct scenario *)s, files, 80) <= 80);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct scenario_source *s = scenario_source_create();
	struct scenario_error e = {0};
	char *text = malloc(size + 2), line[4096];
	int rc;

	MUST(s && text);
	memcpy(text, data, size);
	text[size] = text[size + 1] = 0;
	rc = scenario_source_text(s, "fuzz.ini", text, &e);
	for (char *p = text + strlen(text) + 1; !rc && p < text + size; p += strlen(p) + 1) {
		rc = scenario_source_set(s, p, &e);
		scenario_source_where(s, p, &(struct scenario_error){0});
	}
	if (!rc)
		rc = scenario_source_settle(s, &out, &e);
	if (!rc) {
		check(&out);
	} else {
		MUST(e.what[0]);
		MUST(scenario_error_text(&e, line, sizeof(line)) > 0);
	}
	free(text);
	scenario_source_destroy(s);
	return 0;
}
