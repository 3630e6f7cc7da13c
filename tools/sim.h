/* SPDX-License-Identifier: BSD-2-Clause */
/* The parts of `verbena sim`. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "sim/results.h"
#include "sim/scenario.h"
#include "workload/graph_read.h"

enum { SIM_TEXT_BYTES = 48, EXIT_STUCK = 3, EXIT_INTERRUPTED = 130 };

/* ---- sim_scenario.c: a scenario and its files, in memory ---- */

struct sim_input {
	char path[4096];                /* of the file that was found */
	char *text;                     /* *owned*, NUL-terminated */
	struct scenario_source *source; /* *owned* */
	struct scenario *scenario;      /* *owned*, settled, its files' text read */
	char **file_text;               /* *owned* */
	size_t file_count, file_room;
	struct graph_file *ranks[SCENARIO_WORKLOADS_MAX]; /* *owned*: of paths with a '*' */
	size_t ranks_count;
	const char *const *sets; /* *borrowed*: the overrides, in order */
	size_t set_count;
};

/*
 * Finds NAME (a path, or the bare name of a scenario that came with verbena), reads it, applies the
 * overrides and reads the files it names. 0, or an exit status after an error message.
 */
int sim_input_load(struct sim_input *, const char *name, const char *const *sets, size_t set_count);
/* The same for a program that sends messages: where no workload is that, one is added, and is the only one that runs. */
int sim_input_load_program(struct sim_input *, const char *name, const char *const *sets, size_t set_count);
void sim_input_free(struct sim_input *);
/* Whether it has programs, which run then, and no workload. 0, or an exit status after an error message. */
int sim_has_programs(const char *name, const char *const *sets, size_t set_count, bool *has);

/*
 * The whole file, NUL-terminated, which the caller frees, and its length. NULL with errno: EFBIG beyond what a
 * scenario's file may have.
 */
char *sim_file_read(const char *path, size_t *bytes);
/*
 * The highest number that stands for the '*' of a path in the name of a file there; the rest of the name is as it is.
 * False: there is none.
 */
bool sim_files_last(const char *path, uint32_t *last);
/* The path with a number for its '*'. False: it is too long. */
bool sim_files_path(const char *path, uint32_t number, char *out, size_t bytes);

/* Prints a simulation's error, with file and line if it names a key. Returns EXIT_OURS. */
int sim_input_refused(const struct sim_input *, const char *why);

/* The path of whatever this is a part of, program or library, beside which scenarios are found. False: not known. */
bool sim_own_path(char *path, size_t bytes);

/* The scenarios that came with verbena: one line each, to f. */
void sim_scenarios_list(FILE *f);

/* ---- sim_run.c ---- */

enum sim_outcome { SIM_ENDED, SIM_STUCK, SIM_INTERRUPTED, SIM_FAILED, SIM_REFUSED };

/* From here on SIGINT and SIGTERM set a flag; a second signal ends the process. */
void sim_signals_catch(void);
bool sim_interrupted(void);

/*
 * Runs to the end or the first signal, and fills in the results; prints an error if the scenario is
 * refused. A capture that the scenario configures is written into the report's folder; NULL: there is
 * no folder.
 */
enum sim_outcome sim_run(const struct sim_input *, struct results *, const char *report, bool progress);

/* ---- sim_programs.c ---- */

enum { SIM_RUNS_MAX = 256, SIM_PATIENCE_S = 60 };

/* What --run and its kin say; *borrowed*. */
struct sim_runs {
	const char *runs[SIM_RUNS_MAX]; /* "host 0: COMMAND" */
	size_t count;
	const char *name; /* of the scenario */
	const char *const *sets;
	size_t set_count;
	const char *report; /* NULL: none */
	uint64_t patience_s;
	bool quiet;
};

/* Runs programs on the network of a scenario. Returns the exit status. */
int sim_programs(const struct sim_runs *);

/* ---- sim_pcap.c ---- */

struct sim_pcap;

/*
 * Opens a file in the folder, which exists, or elsewhere if its name begins with /. fill: frames are
 * completed by frame_fill(). NULL after an error message.
 */
struct sim_pcap *sim_pcap_open(const char *folder, const char *name, bool fill, bool infiniband);
/* A simulation_frame; the context is the capture. */
void sim_pcap_frame(void *capture, const uint8_t *frame, size_t bytes, uint32_t length, uint64_t time_ps);
/* 0, or EXIT_OURS after an error message. Harmless on NULL. */
int sim_pcap_close(struct sim_pcap *);

/* ---- sim_text.c: numbers for people ---- */

const char *time_text(uint64_t ps, char buf[SIM_TEXT_BYTES]);
const char *rate_text(uint64_t bps, char buf[SIM_TEXT_BYTES]);
const char *bytes_text(uint64_t bytes, char buf[SIM_TEXT_BYTES]);
const char *count_text(uint64_t n, char buf[SIM_TEXT_BYTES]); /* 1 234 567 */

/* The algorithm that ran: from the results, else from the scenario. */
const char *transport_text(const struct scenario *, const struct results *);
const char *cc_text(const struct scenario *, const struct results *, char buf[SIM_TEXT_BYTES]);
/* What decides what the figures mean: base RTT, window, acknowledgements, and the ideal. */
enum { SETTINGS_TEXT_BYTES = 320 };
const char *settings_text(const struct scenario *, const struct results *, char buf[SETTINGS_TEXT_BYTES]);

/* ---- sim_figures.c: a run in a few numbers ---- */

enum { FIGURES_MAX = 64 };

struct figure {
	const char *name;  /* "slowdown_p99": of totals.csv and summary.json */
	const char *label; /* "slowdown, p99" */
	enum { FIGURE_COUNT, FIGURE_TIME, FIGURE_RATE, FIGURE_BYTES, FIGURE_RATIO, FIGURE_SHARE } kind;
	uint64_t value; /* COUNT, TIME in ps, RATE in bit/s, BYTES */
	double ratio;   /* RATIO, SHARE */
};

struct figures {
	size_t count;
	struct figure f[FIGURES_MAX];
};

/* 0 or -ENOMEM. */
int figures_make(struct figures *, const struct scenario *, const struct results *);
const struct figure *figure_find(const struct figures *, const char *name);
const char *figure_text(const struct figure *, char buf[SIM_TEXT_BYTES]);
void figure_number(FILE *, const struct figure *); /* for machines: in its unit */
/* "ps", "bit/s", "bytes"; a count, a ratio and a share have words of their own. */
const char *figure_unit(const struct figure *);
/* Sets the figure's kind from its unit. False: there is no such unit. */
bool figure_of_unit(struct figure *, const char *unit);

/* ---- sim_summary.c ---- */

void sim_summary(FILE *, const struct sim_input *, const struct results *, const struct figures *);

/* ---- sim_files.c: a folder of files, marked while it is not complete ---- */

struct folder {
	char path[4096];
	FILE *open;      /* the file being written */
	char name[256];  /* its */
	int error;       /* errno of the first error */
	char where[512]; /* ... and the failed step */
};

/* Makes the folder and its parents, and the file INCOMPLETE in it. 0, or the error is recorded. */
int folder_open(struct folder *, const char *path);

/*
 * Opens a file in it for writing; after an error one that discards everything. Closes the file
 * before.
 */
FILE *folder_file(struct folder *, const char *name);

/* Closes the last file and, if there was no error, removes INCOMPLETE. Returns 0, or EXIT_OURS
 * after an error message. */
int folder_close(struct folder *);

/* ---- sim_csv.c, sim_json.c ---- */

void sim_csv_write(struct folder *, const struct sim_input *, const struct results *, const struct figures *);
void sim_json_write(struct folder *, const struct sim_input *, const struct results *, const struct figures *);

/* Goodput windows for a point of fairness over time: enough that the grain of goodput does not
 * matter. */
uint32_t sim_fairness_windows(const struct results *);

/* A word of a shell. */
void shell_word(FILE *, const char *);

/* The line that repeats the run. */
void sim_command_write(FILE *, const struct sim_input *);

/* A field of CSV that may contain any character. */
void csv_field(FILE *, const char *);

/* ---- sim_drawings.c: cards of a run's page ---- */

/* Steps of a series with at most `points` of them, as rows "time_ms value x scale". Returns their
 * window. */
uint64_t plot_series(FILE *, const struct results_series *, unsigned points, double scale);

/* "host 3", "switch 131" */
const char *node_text(const struct results *, uint32_t node, char buf[SIM_TEXT_BYTES]);

/* Switch ports by their longest queue, *n of them; *caller frees*. */
const struct results_port **ports_by_queue(const struct results *, size_t *n);

void draw_slowdown(FILE *, const struct results *);
void draw_goodput(FILE *, const struct sim_input *, const struct results *);
void draw_flows(FILE *, const struct results *);
void draw_fairness(FILE *, const struct results *);
void draw_queues(FILE *, const struct results *);
void draw_queue_shares(FILE *, const struct results *);
void draw_pfc(FILE *, const struct results *);

/* ---- sim_trace.c: likewise ---- */

void draw_trace(FILE *, const struct results *);

/* ---- sim_steps.c: graphs that ran ---- */

void jobs_print(FILE *, const struct sim_input *, const struct results *);
void jobs_csv(FILE *, const struct sim_input *, const struct results *);
void jobs_table(FILE *, const struct sim_input *, const struct results *);
void steps_print(FILE *, const struct sim_input *, const struct results *);
void steps_csv(FILE *, const struct sim_input *, const struct results *);
void ranks_csv(FILE *, const struct sim_input *, const struct results *);
/* trace.json; and the card of the page. */
void steps_trace(FILE *, const struct sim_input *, const struct results *);
void steps_table(FILE *, const struct sim_input *, const struct results *);
/* The collectives of graphs: all of them, and those of the first step that is done. */
void kinds_csv(FILE *, const struct sim_input *, const struct results *);
void kinds_table(FILE *, const struct sim_input *, const struct results *);
void draw_timeline(FILE *, const struct results *);

/* ---- sim_graph.c: graphs in files; the exit status ---- */

int sim_describe(const char *path);
/* As GOAL text; to "-": to the standard output. */
int sim_convert(const char *from, const char *to);

/* ---- sim_report.c ---- */

/* Writes all files of a run to `path`. 0, or EXIT_OURS after an error message. */
int sim_report(const char *path, const struct sim_input *, const struct results *, const struct figures *);

/* ---- sim.c ---- */

struct sim_task {
	const char *name;        /* the scenario, as given */
	const char *const *sets; /* overrides */
	size_t set_count;
	const char *report; /* folder, or NULL */
	unsigned cores;     /* of the run */
	bool quiet;
	bool alone; /* each workload with a graph runs once more, alone */
};

/* One run with its reports. Returns the exit status; *g is filled in if that is 0 or
 * EXIT_INTERRUPTED. */
int sim_one(const struct sim_task *, struct figures *g);

/* ---- sim_alone.c ---- */

/*
 * Runs each workload that has steps in the results alone, with its overrides, and fills in alone_ps of the results. 0, or
 * an exit status after an error message.
 */
int sim_alone(const struct sim_task *, const struct sim_input *, struct results *);

/* ---- sim_sweep.c, sim_means.c, sim_compare.c, sim_collect.c ---- */

struct sweep_options {
	const char *name;        /* the scenario, as given */
	const char *const *sets; /* overrides common to all */
	size_t set_count;
	const char *const *sweeps; /* key=v1,v2,... */
	size_t sweep_count;
	const char *report; /* folder, or NULL */
	unsigned jobs;
	unsigned cores; /* of each run */
	bool seed_pinned;
	bool quiet;
	bool alone;          /* of struct sim_task */
	bool print_commands; /* print a command for each run instead of running it */
};

struct sweep_run {
	char *label; /* "algorithm=hpcc load=30% seed=2" */
	char *group; /* the same without the seed: runs of one group repeat each other */
	uint64_t seed;
	char *folder;      /* "run-1-algorithm=hpcc-load=30%" */
	const char **sets; /* common ones and its own */
	char **own;        /* the last own_count of them: *owned* */
	size_t set_count, own_count;
	int status; /* -1: not begun; else as the process ended */
	struct figures figures;
};

/* The mean of a figure over the complete runs of a group; in its unit, shares of 1. */
struct mean {
	struct figure figure; /* its name, label and kind */
	size_t runs;
	double mean, half_95; /* half width of the 95 % confidence interval */
	double deviation, min, max;
};

/* False: no run has the figure. */
bool sim_mean(const struct sweep_run *, size_t count, const char *group, const char *name, struct mean *);
/* "11.3 ms" and "20.1 us"; the second is empty if there is one run only. */
void mean_text(const struct mean *, char mean[SIM_TEXT_BYTES], char half[SIM_TEXT_BYTES]);
/* Whether no run before this one is of its group; whether any group has two. */
bool sim_group_begins(const struct sweep_run *, size_t i);
bool sim_groups_repeat(const struct sweep_run *, size_t count);
void sim_means_csv(FILE *, const struct sweep_run *, size_t count);

/* Compares the runs: a table to f; CSV and a page in the folder. */
void sim_compare_print(FILE *f, const struct sweep_run *, size_t count);
int sim_compare_report(const char *path, const char *name, const struct sweep_run *, size_t count);

/* The exit status. */
int sim_sweep(const struct sweep_options *);

/*
 * The same for finished runs: each folder is a run's, or has runs in it. `report`: the folder for the
 * comparison, or NULL. Returns the exit status.
 */
int sim_collect(char *const *folders, size_t count, const char *report, bool quiet);
