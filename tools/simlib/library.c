/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * libverbena-sim over the simulator: a scenario with a workload that is the program, and its calls. Invariant: the
 * program is stopped unless verbena_sim_run() runs, so nothing is called back, or sent, at another time.
 */
#include <verbena/sim.h>

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "io/clock.h"
#include "net/network.h"
#include "sim.h"
#include "sim/simulation.h"
#include "simlib/voice.h"
#include "tool.h"
#include "workload/workload.h"

struct verbena_sim {
	struct sim_input input;
	const char **sets;
	struct results *results;
	struct program *program;
	struct simulation *simulation;
	uint64_t began_ns, cpu_ns;
	bool runs, closing, reported;
	char why[RESULTS_WHY_BYTES + 256];
};

static_assert(VERBENA_SIM_BYTES_MAX == WORKLOAD_BYTES_MAX, "the header names the workload's bound");

__attribute__((format(printf, 3, 4))) static int fail(struct verbena_sim *s, int error, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(s->why, sizeof(s->why), fmt, ap);
	va_end(ap);
	errno = error;
	return -1;
}

/* ---- life ----------------------------------------------------------------------------------------------------- */

static void free_all(struct verbena_sim *s)
{
	simulation_destroy(s->simulation);
	program_free(s->program);
	if (s->results)
		results_free(s->results);
	free(s->results);
	sim_input_free(&s->input);
	for (size_t i = 0; s->sets && s->sets[i]; i++)
		free((void *)s->sets[i]);
	free(s->sets);
	free(s);
}

/* The caller's may be gone when the report is made. */
static bool copy_sets(struct verbena_sim *s, const char *const *settings, size_t *count)
{
	*count = 0;
	while (settings && settings[*count])
		++*count;
	s->sets = calloc(*count + 1, sizeof(*s->sets));
	for (size_t i = 0; s->sets && i < *count; i++) {
		s->sets[i] = strdup(settings[i]);
		if (!s->sets[i])
			return false;
	}
	return s->sets;
}

/* 0 or an errno; the sentence is what the voice said. */
static int start(struct verbena_sim *s, const char *scenario, const char *const *settings)
{
	char why[1024] = "";
	size_t count;

	s->results = malloc(sizeof(*s->results));
	if (s->results)
		results_init(s->results);
	s->program = program_create();
	if (!s->results || !s->program || !copy_sets(s, settings, &count)) {
		complain("out of memory");
		return ENOMEM;
	}
	if (sim_input_load_program(&s->input, scenario, s->sets, count))
		return EINVAL;
	/* An end of its own is for runs whose messages are known beforehand. */
	s->input.scenario->run.all_flows = true;
	s->simulation = simulation_create_for(s->input.scenario, s->program, s->results, why, sizeof(why));
	if (s->simulation && program_ranks(s->program))
		return 0;
	sim_input_refused(&s->input, s->simulation
					     ? "run.only: the workload of kind = program must be among those that run"
					     : why);
	return EINVAL;
}

struct verbena_sim *verbena_sim_open(const char *scenario, const char *const *settings, char *why, size_t why_bytes)
{
	struct verbena_sim *s = calloc(1, sizeof(*s));
	int error = ENOMEM;

	if (!scenario || !*scenario) {
		complain("a scenario is needed: a file, or the name of one that came with verbena");
		error = EINVAL;
	} else if (s) {
		s->began_ns = clock_now_ns();
		s->cpu_ns = clock_read_ns(CLOCK_PROCESS_CPUTIME_ID);
		error = start(s, scenario, settings);
	} else {
		complain("out of memory");
	}
	if (!error) {
		program_stop(s->program, true);
		return s;
	}
	if (s)
		free_all(s);
	if (why && why_bytes)
		snprintf(why, why_bytes, "%s", voice_said());
	errno = error;
	return NULL;
}

void verbena_sim_close(struct verbena_sim *s)
{
	if (!s)
		return;
	if (!s->runs) {
		free_all(s);
		return;
	}
	s->closing = true;
	verbena_sim_stop(s);
}

uint32_t verbena_sim_ranks(const struct verbena_sim *s)
{
	return program_ranks(s->program);
}

uint64_t verbena_sim_now(const struct verbena_sim *s)
{
	return simulation_now_ps(s->simulation);
}

const char *verbena_sim_why(const struct verbena_sim *s)
{
	return s->why;
}

/* ---- what ranks do ---------------------------------------------------------------------------------------------- */

static int refuse_ranks(struct verbena_sim *s, const char *what, uint32_t a, uint32_t b)
{
	uint32_t ranks = program_ranks(s->program);

	return fail(s, ERANGE, "%s: there is no rank %" PRIu32 ", only 0 to %" PRIu32, what, a < ranks ? b : a,
		    ranks - 1);
}

static int no_memory(struct verbena_sim *s)
{
	return fail(s, ENOMEM, "out of memory");
}

int verbena_sim_send(struct verbena_sim *s, uint32_t src, uint32_t dst, uint64_t bytes, uint64_t tag,
		     verbena_sim_callback done, void *context)
{
	switch (program_send(s->program, src, dst, bytes, tag, done, context)) {
	case 0: return 0;
	case -ERANGE: return refuse_ranks(s, "send", src, dst);
	case -EMSGSIZE:
		return fail(s, EMSGSIZE, "send: %" PRIu64 " bytes; allowed are 0 to %" PRIu64, bytes,
			    program_bytes_max(s->program));
	default: return no_memory(s);
	}
}

int verbena_sim_receive(struct verbena_sim *s, uint32_t rank, uint32_t from, uint64_t tag, verbena_sim_callback done,
			void *context)
{
	switch (program_receive(s->program, rank, from, tag, done, context)) {
	case 0: return 0;
	case -ERANGE: return refuse_ranks(s, "receive", rank, from);
	default: return no_memory(s);
	}
}

int verbena_sim_schedule(struct verbena_sim *s, uint64_t delay_ps, verbena_sim_callback due, void *context)
{
	uint64_t now_ps = verbena_sim_now(s);

	if (delay_ps > NETWORK_TIME_PS_MAX - now_ps)
		return fail(s, ERANGE,
			    "schedule: %" PRIu64 " ps from %" PRIu64 " on is after the end of time, %" PRIu64, delay_ps,
			    now_ps, NETWORK_TIME_PS_MAX);
	return program_schedule(s->program, now_ps + delay_ps, due, context) ? no_memory(s) : 0;
}

/* ---- time ------------------------------------------------------------------------------------------------------- */

/* Nothing will happen any more. */
static int waits(struct verbena_sim *s)
{
	struct program_wait w;
	uint64_t n = program_waits(s->program, &w);

	if (!n)
		return VERBENA_SIM_DONE;
	snprintf(s->why, sizeof(s->why),
		 "%" PRIu64 " receives wait for messages that nobody sends, the oldest is rank %" PRIu32
		 " from %" PRIu32 " tag %" PRIu64,
		 n, w.rank, w.from, w.tag);
	return VERBENA_SIM_STUCK;
}

static int end_of(struct verbena_sim *s, enum simulation_state state)
{
	const struct results *r = s->results;

	if (state != SIMULATION_FAILED && program_is_stopped(s->program))
		return VERBENA_SIM_STOPPED;
	snprintf(s->why, sizeof(s->why), "%s", r->partial ? r->partial_why : "");
	switch (state) {
	case SIMULATION_RUNS: return VERBENA_SIM_UNTIL;
	case SIMULATION_ENDED: return r->partial ? VERBENA_SIM_UNTIL : waits(s);
	case SIMULATION_STUCK: return VERBENA_SIM_STUCK;
	case SIMULATION_FAILED: break;
	}
	errno = strcmp(s->why, "out of memory") ? EIO : ENOMEM;
	return -1;
}

int verbena_sim_run(struct verbena_sim *s, uint64_t until_ps)
{
	enum simulation_state state;
	int end;

	if (s->runs)
		return fail(s, EBUSY, "run: called by a callback");
	if (s->reported)
		return fail(s, EINVAL, "run: the report has ended the simulation");
	s->why[0] = 0;
	s->results->partial = false;
	s->runs = true;
	program_stop(s->program, false);
	state = simulation_run_to(s->simulation, until_ps);
	s->runs = false;
	end = end_of(s, state);
	program_stop(s->program, true);
	if (!s->closing)
		return end;
	free_all(s);
	return VERBENA_SIM_CLOSED;
}

void verbena_sim_stop(struct verbena_sim *s)
{
	program_stop(s->program, true);
}

/* ---- results ------------------------------------------------------------------------------------------------------ */

/* The files of a report keep what they draw in variables of their own. */
static pthread_mutex_t one_report = PTHREAD_MUTEX_INITIALIZER;

/* What did not end is said in the report. */
static void finish(struct verbena_sim *s)
{
	struct results *r = s->results;
	struct simulation_progress p;
	struct rusage usage;

	simulation_progress(s->simulation, &p);
	if (!r->partial && p.flows_done < p.flows) {
		r->partial = true;
		snprintf(r->partial_why, sizeof(r->partial_why), "%" PRIu64 " messages were under way at the report",
			 p.flows - p.flows_done);
	} else if (!r->partial && waits(s) == VERBENA_SIM_STUCK) {
		r->partial = true;
		snprintf(r->partial_why, sizeof(r->partial_why), "%.*s", (int)sizeof(r->partial_why) - 1, s->why);
	}
	simulation_finish(s->simulation);
	getrusage(RUSAGE_SELF, &usage);
	r->simulator.wall_ns = clock_now_ns() - s->began_ns;
	r->simulator.cpu_ns = clock_read_ns(CLOCK_PROCESS_CPUTIME_ID) - s->cpu_ns;
	r->simulator.memory_bytes_peak = (uint64_t)usage.ru_maxrss * 1024;
	s->reported = true;
}

int verbena_sim_report(struct verbena_sim *s, const char *folder)
{
	struct figures *g;
	int rc;

	if (s->runs)
		return fail(s, EBUSY, "report: called by a callback");
	if (s->reported)
		return fail(s, EINVAL, "report: it has been made before");
	if (!folder || !*folder)
		return fail(s, EINVAL, "report: needs the name of a folder");
	s->why[0] = 0;
	finish(s);
	g = malloc(sizeof(*g));
	if (!g || figures_make(g, s->input.scenario, s->results)) {
		free(g);
		return no_memory(s);
	}
	pthread_mutex_lock(&one_report);
	rc = sim_report(folder, &s->input, s->results, g);
	pthread_mutex_unlock(&one_report);
	free(g);
	return rc ? fail(s, EIO, "%s", voice_said()) : 0;
}
