/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The rows of the scenario's table and how a value becomes a field. For scenario*.c only; tests may
 * look.
 *
 * Private to src/sim.
 */
#pragma once

#include "sim/scenario.h"

enum scenario_value_kind {
	SCENARIO_RATE,    /* uint64_t, bit/s */
	SCENARIO_TIME,    /* uint64_t, ps */
	SCENARIO_BYTES,   /* uint64_t */
	SCENARIO_COUNT,   /* uint64_t */
	SCENARIO_SHARE,   /* uint64_t, 10^-9 */
	SCENARIO_CHOICE,  /* unsigned */
	SCENARIO_SWITCH,  /* bool: off, on */
	SCENARIO_NAME,    /* char[SCENARIO_NAME_BYTES] */
	SCENARIO_TEXT,    /* char[SCENARIO_TEXT_BYTES] */
	SCENARIO_PATH,    /* struct scenario_file */
	SCENARIO_RANGES,  /* struct scenario_ranges */
	SCENARIO_FLOWS,   /* struct scenario_ranges, and a bool: the word all */
	SCENARIO_LOST,    /* struct scenario_link: lost_count and lost */
	SCENARIO_LINK,    /* uint32_t[2]: A-B */
	SCENARIO_SLOW,    /* struct scenario_host: slow_count and slow */
	SCENARIO_WEIGHTS, /* uint32_t[SCENARIO_CLASSES] */
	SCENARIO_PLACED,  /* struct scenario_placement_of */
	SCENARIO_ARRIVE,  /* uint64_t: the mean gap, ps */
	SCENARIO_CDF_NAME /* struct scenario_workload: cdf or cdf_file */
};

/* The struct that a row's offset counts from. */
enum scenario_base { SCENARIO_OF_ALL, SCENARIO_OF_WORKLOAD, SCENARIO_OF_JOB, SCENARIO_OF_FAILURE, SCENARIO_OF_PROGRAM };

struct scenario_row {
	const char *section;
	const char *name;
	enum scenario_value_kind kind;
	enum scenario_base base;
	size_t offset;
	uint64_t min, max;   /* of numbers */
	const char *word;    /* stands for UINT64_MAX; "a|b": and b for UINT64_MAX - 1; NULL: none does */
	const char *choices; /* "a|b|c": the values 0, 1, 2; or those of choice_values */
	const uint8_t *choice_values;
	const char *standard;
	const char *help;
	uint32_t kinds; /* of [topology] and [workload]: bits of the kinds that read it; 0: all */
	bool read_file; /* SCENARIO_PATH: the caller reads it */
};

/* All rows, in the order of the sections. */
const struct scenario_row *scenario_rows(size_t *count);

/* Sets the row's field within `base` from text. False, with a sentence in why; the field is as it
 * was. */
bool scenario_value_set(const struct scenario_row *, void *base, const char *text, char *why, size_t why_bytes);

/* "rate", "time or none", "a|b|c": what scenario_keys shows. */
const char *scenario_value_type(const struct scenario_row *);
