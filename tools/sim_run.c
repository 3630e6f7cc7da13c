/* SPDX-License-Identifier: BSD-2-Clause */
/* The run itself: slices of about 50 ms, with a progress line and a check for signals between them. */
#include "sim.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "io/clock.h"
#include "sim/simulation.h"
#include "tool.h"

#define SLICE_NS  UINT64_C(50000000)
#define REDRAW_NS UINT64_C(200000000)

enum { SLICE_EVENTS_FIRST = 10000, SLICE_EVENTS_MIN = 1000, SLICE_EVENTS_MAX = 50000000 };

static volatile sig_atomic_t interrupted;

static void on_signal(int number)
{
	interrupted = 1;
}

void sim_signals_catch(void)
{
	struct sigaction a = {.sa_handler = on_signal, .sa_flags = (int)SA_RESETHAND};

	sigemptyset(&a.sa_mask);
	sigaction(SIGINT, &a, NULL);
	sigaction(SIGTERM, &a, NULL);
	signal(SIGPIPE, SIG_IGN);
}

bool sim_interrupted(void)
{
	return interrupted;
}

/* The progress, 0 .. 1, towards the end that will come first. */
static double share_done(const struct scenario *s, const struct simulation_progress *p)
{
	double done = 0;

	if (s->run.until_ps != SCENARIO_NONE)
		done = (double)p->time_ps / (double)s->run.until_ps;
	if (s->run.events != SCENARIO_NONE && (double)p->events / (double)s->run.events > done)
		done = (double)p->events / (double)s->run.events;
	if (s->run.all_flows && p->flows && (double)p->flows_done / (double)p->flows > done)
		done = (double)p->flows_done / (double)p->flows;
	return done < 1 ? done : 1;
}

static void draw(const struct scenario *s, const struct simulation_progress *p, uint64_t spent_ns)
{
	char t[SIM_TEXT_BYTES], eta[32] = "-";
	double done = share_done(s, p), left;

	if (done > 0.001 && spent_ns > 1000000000) {
		left = (double)spent_ns / 1e9 * (1 - done) / done;
		if (left < 3600)
			snprintf(eta, sizeof(eta), "%d:%02d", (int)left / 60, (int)left % 60);
		else
			snprintf(eta, sizeof(eta), "%.1f h", left / 3600);
	}
	fprintf(stderr, "\r\033[K%3.0f %%  %s simulated  %" PRIu64 " of %" PRIu64 " flows  %.2f M events/s  %s left",
		100 * done, time_text(p->time_ps, t), p->flows_done, p->flows,
		spent_ns ? (double)p->events * 1e3 / (double)spent_ns : 0, eta);
	fflush(stderr);
}

static void partial(struct results *r, const char *why)
{
	if (!r->partial)
		snprintf(r->partial_why, sizeof(r->partial_why), "%s", why);
	r->partial = true;
}

static bool start_capture(struct simulation *sim, const struct sim_input *in, const char *report, struct sim_pcap **out)
{
	struct folder folder;
	char why[256];

	if (!report) {
		sim_input_refused(in, "output.pcap: is written into the report's folder: name one with --report");
		return false;
	}
	if (folder_open(&folder, report)) {
		folder_close(&folder);
		return false;
	}
	*out = sim_pcap_open(report, in->scenario->output.pcap.path, in->scenario->output.pcap_payload,
			     in->scenario->sw.flow_control == SCENARIO_FLOW_CONTROL_CREDITS);
	if (!*out)
		return false;
	if (simulation_capture(sim, sim_pcap_frame, *out, why, sizeof(why)))
		return true;
	sim_input_refused(in, why);
	sim_pcap_close(*out);
	return false;
}

static void write_line(void *file, const char *line, size_t bytes)
{
	fwrite(line, 1, bytes, file);
}

static FILE *start_log(struct simulation *sim, const struct sim_input *in, const char *report)
{
	struct folder folder;
	char path[4096 + 16];
	FILE *f;

	if (!report) {
		sim_input_refused(in, "output.event_log: is written into the report's folder: name one with --report");
		return NULL;
	}
	if (folder_open(&folder, report)) {
		folder_close(&folder);
		return NULL;
	}
	snprintf(path, sizeof(path), "%s/events.txt", report);
	f = fopen(path, "w");
	if (f)
		simulation_log(sim, write_line, f);
	else
		complain("output.event_log: cannot write %.512s: %s", path, strerror(errno));
	return f;
}

/* 0, or -1 after an error message: the log is not complete. */
static int end_log(FILE *log)
{
	bool bad = log && ferror(log);

	if (!log || (!fclose(log) && !bad))
		return 0;
	complain("output.event_log: cannot write events.txt: %s", strerror(errno ? errno : EIO));
	return -1;
}

enum sim_outcome sim_run(const struct sim_input *in, struct results *r, const char *report, bool progress)
{
	uint64_t began_ns = clock_now_ns(), cpu_ns = clock_read_ns(CLOCK_PROCESS_CPUTIME_ID);
	uint64_t drawn_ns = 0, now_ns = began_ns, events = SLICE_EVENTS_FIRST;
	enum simulation_state state = SIMULATION_RUNS;
	struct simulation_progress p;
	struct sim_pcap *capture = NULL;
	FILE *log = NULL;
	struct simulation *sim;
	struct rusage usage;
	char why[1024] = "";

	sim = simulation_create(in->scenario, r, why, sizeof(why));
	if (!sim) {
		sim_input_refused(in, why);
		return SIM_REFUSED;
	}
	if (in->scenario->output.pcap.path[0] && !start_capture(sim, in, report, &capture)) {
		simulation_destroy(sim);
		return SIM_REFUSED;
	}
	if (in->scenario->output.event_log) {
		log = start_log(sim, in, report);
		if (!log) {
			simulation_destroy(sim);
			sim_pcap_close(capture);
			return SIM_REFUSED;
		}
	}
	while (state == SIMULATION_RUNS && !interrupted) {
		uint64_t before_ns = now_ns, took_ns;

		state = simulation_run(sim, events);
		now_ns = clock_now_ns();
		took_ns = now_ns - before_ns;
		if (took_ns < SLICE_NS / 2 && events < SLICE_EVENTS_MAX)
			events *= 2;
		else if (took_ns > 2 * SLICE_NS && events > SLICE_EVENTS_MIN)
			events /= 2;
		if (progress && now_ns - drawn_ns >= REDRAW_NS) {
			simulation_progress(sim, &p);
			draw(in->scenario, &p, now_ns - began_ns);
			drawn_ns = now_ns;
		}
	}
	if (progress)
		fprintf(stderr, "\r\033[K");
	if (!simulation_finish(sim))
		state = SIMULATION_FAILED;
	simulation_destroy(sim);
	if (sim_pcap_close(capture))
		partial(r, "the capture is not whole");
	if (end_log(log))
		partial(r, "the event log is not whole");
	if (state == SIMULATION_RUNS)
		partial(r, "interrupted");
	else if (state == SIMULATION_FAILED)
		partial(r, "the simulation failed");
	getrusage(RUSAGE_SELF, &usage);
	r->simulator.wall_ns = clock_now_ns() - began_ns;
	r->simulator.cpu_ns = clock_read_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu_ns;
	r->simulator.memory_bytes_peak = (uint64_t)usage.ru_maxrss * 1024;
	return state == SIMULATION_RUNS     ? SIM_INTERRUPTED
	       : state == SIMULATION_FAILED ? SIM_FAILED
	       : state == SIMULATION_STUCK  ? SIM_STUCK
					    : SIM_ENDED;
}
