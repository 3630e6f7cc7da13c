/* SPDX-License-Identifier: BSD-2-Clause */
/* Runs of single jobs, whose steps those among other jobs are compared with. */
#include "sim.h"

#include <stdlib.h>
#include <string.h>

#include "tool.h"

/* The mean step of a run that has one job; 0: it has none that is done. */
static uint64_t mean_step_ps(const struct results *r)
{
	struct results_job *jobs;
	uint32_t count;
	uint64_t ps = 0;

	if (results_jobs(r, &jobs, &count))
		return 0;
	if (count == 1)
		ps = jobs[0].time_ps;
	free(jobs);
	return ps;
}

static int run_one(const struct sim_task *task, const char *workload, uint64_t *step_ps)
{
	char only[SCENARIO_NAME_BYTES + 16];
	const char **sets = calloc(task->set_count + 3, sizeof(*sets));
	struct results *r = malloc(sizeof(*r));
	struct sim_input in;
	int rc;

	if (!sets || !r) {
		free(sets);
		free(r);
		return complain("out of memory");
	}
	snprintf(only, sizeof(only), "run.only=%s", workload);
	memcpy(sets, task->sets, task->set_count * sizeof(*sets));
	sets[task->set_count] = only;
	/* These would be written into a report, and this run has none. */
	sets[task->set_count + 1] = "output.event_log=off";
	sets[task->set_count + 2] = "output.pcap=";
	results_init(r);
	rc = sim_input_load(&in, task->name, sets, task->set_count + 3);
	if (!rc) {
		enum sim_outcome outcome = sim_run(&in, r, NULL, false);

		if (outcome == SIM_REFUSED || outcome == SIM_FAILED)
			rc = EXIT_OURS;
		else if (outcome == SIM_ENDED)
			*step_ps = mean_step_ps(r);
		sim_input_free(&in);
	}
	results_free(r);
	free(r);
	free(sets);
	return rc;
}

int sim_alone(const struct sim_task *task, const struct sim_input *in, struct results *r)
{
	const struct scenario *s = in->scenario;
	uint64_t *alone_ps = calloc(s->workload_count + (size_t)1, sizeof(*alone_ps));
	int rc = 0;

	if (!alone_ps)
		return complain("out of memory");
	for (uint32_t i = 0; i < s->workload_count && !rc && !sim_interrupted(); i++) {
		if (s->workload[i].kind != SCENARIO_GRAPH)
			continue;
		if (s->workload_count == 1)
			alone_ps[i] = mean_step_ps(r);
		else
			rc = run_one(task, s->workload[i].name, &alone_ps[i]);
	}
	free(r->alone_ps);
	r->alone_ps = alone_ps;
	r->alone_count = s->workload_count;
	return rc;
}
