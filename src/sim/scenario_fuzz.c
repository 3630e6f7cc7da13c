/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A scenario's text, and overrides in what follows a zero byte. Whatever it is: no crash, an error
 * says something, and what is accepted obeys its bounds.
 */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "sim/scenario.h"

static struct scenario out;

static void check(const struct scenario *s)
{
	struct scenario_wanted files[80];

	assert(s->workload_count >= 1 && s->workload_count <= SCENARIO_WORKLOADS_MAX);
	assert(s->failure_count <= SCENARIO_FAILURES_MAX);
	assert(s->cc.param_count <= SCENARIO_CC_PARAMS_MAX);
	assert(s->link.rate_bps >= 1000000 && s->link.rate_bps <= UINT64_C(8000000000000));
	assert(s->link.loss_ppb <= SCENARIO_PPB);
	assert(s->link.lost_count <= SCENARIO_RANGES_MAX);
	assert(s->sw.kmin_bytes <= s->sw.kmax_bytes);
	assert(s->topology.kind < SCENARIO_TOPOLOGY_KINDS);
	assert(s->transport.loss <= SCENARIO_LOSS_GBN);
	for (uint32_t i = 0; i < s->workload_count; i++) {
		assert(s->workload[i].kind < SCENARIO_WORKLOAD_KINDS);
		assert(s->workload[i].hosts.count <= SCENARIO_RANGES_MAX);
		assert(strnlen(s->workload[i].name, SCENARIO_NAME_BYTES) < SCENARIO_NAME_BYTES);
	}
	for (uint32_t i = 1; i < s->failure_count; i++)
		assert(s->failure[i - 1].time_ps <= s->failure[i].time_ps);
	assert(scenario_files((struct scenario *)s, files, 80) <= 80);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct scenario_source *s = scenario_source_create();
	struct scenario_error e = {0};
	char *text = malloc(size + 2), line[4096];
	int rc;

	assert(s && text);
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
		assert(e.what[0]);
		assert(scenario_error_text(&e, line, sizeof(line)) > 0);
	}
	free(text);
	scenario_source_destroy(s);
	return 0;
}
