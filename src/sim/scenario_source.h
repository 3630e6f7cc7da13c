/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A scenario while it is read: its values so far, and where each key was given, so that a later error
 * can name the line. For scenario*.c only.
 */
#pragma once

#include "sim/scenario_row.h"

enum { LINE_SET = -1 };

struct scenario_source {
	struct scenario scenario;
	char file[SCENARIO_PATH_BYTES];
	/* Lines where keys were given; 0: not given; LINE_SET: by an override. */
	int32_t line[SCENARIO_KEYS_MAX];
	int32_t workload_line[SCENARIO_WORKLOADS_MAX][SCENARIO_KEYS_MAX];
	int32_t job_line[SCENARIO_JOBS_MAX][SCENARIO_KEYS_MAX];
	int32_t failure_line[SCENARIO_FAILURES_MAX][SCENARIO_KEYS_MAX];
	int32_t program_line[SCENARIO_PROGRAMS_MAX][SCENARIO_KEYS_MAX];
	int32_t param_line[SCENARIO_CC_PARAMS_MAX];
	int32_t workload_at[SCENARIO_WORKLOADS_MAX]; /* its section's line */
	int32_t job_at[SCENARIO_JOBS_MAX];
	int32_t failure_at[SCENARIO_FAILURES_MAX];
	int32_t program_at[SCENARIO_PROGRAMS_MAX];
};

/* Fills in *e and returns -EINVAL. `line` is 0: none, or LINE_SET: an override. */
int scenario_fail(struct scenario_error *e, const char *file, int line, const char *key, const char *fmt, ...)
	__attribute__((format(printf, 5, 6)));

/* ---- scenario_names.c: rows and sections by name ---- */

/* Whether the row is of that section; and whether there is such a section. */
bool scenario_section_is(const struct scenario_row *, const char *section);
bool scenario_section_exists(const char *section);
/* NULL: there is none. */
const struct scenario_row *scenario_row_find(const char *section, const char *name);
size_t scenario_row_number(const struct scenario_row *);
/* "[topology], [link], ..." */
void scenario_sections_list(char *buf, size_t bytes);
/* The likely key, and the list of keys; follows "there is no such key". */
void scenario_keys_suggest(const char *section, const char *name, char *buf, size_t bytes);
/* Appends to a text; what does not fit is cut. */
void scenario_append(char *buf, size_t bytes, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* ---- scenario.c: instances, as [workload.NAME] ---- */

/* A section of which there may be some; offsets are those of struct scenario_source. */
struct scenario_many {
	const char *section;
	enum scenario_base base;
	uint32_t max;
	size_t count, first, bytes; /* how many; the first one, whose first member is its name, and its size */
	size_t line, at;            /* lines of its keys, and of the section */
};

/* NULL: there may be one. */
const struct scenario_many *scenario_many_of(const char *section);

/* Every row of that base has its default in *at. */
void scenario_rows_default(enum scenario_base, void *at);
uint32_t scenario_instances(const struct scenario_source *, const struct scenario_many *);
const char *scenario_instance_name(const struct scenario_source *, const struct scenario_many *, uint32_t i);
/* How many there are, if none has the name. */
uint32_t scenario_instance_find(const struct scenario_source *, const struct scenario_many *, const char *name);
/* One more, with defaults; the caller knows that there is room. */
void scenario_instance_add(struct scenario_source *, const struct scenario_many *, const char *name, int line);
/* Its section's line. */
int scenario_instance_at(const struct scenario_source *, const struct scenario_many *, uint32_t i);
/* *base and *line of a row, in the given instance if the row belongs to instances. */
void scenario_row_place(struct scenario_source *, const struct scenario_row *, uint32_t instance, void **base,
			int32_t **line);
