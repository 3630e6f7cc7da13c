/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Lists in the values of a scenario: each call reads all of text into its field, or returns false with a sentence in
 * `why`, and the field is as it was.
 *
 * Private to src/sim.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sim/scenario.h"

/* Numbers and ranges, "0-7,12"; "": an empty list. */
bool scenario_ranges_set(struct scenario_ranges *, const char *text, char *why, size_t why_bytes);
/* Lost packets, "FLOW:N,FLOW:N". */
bool scenario_lost_set(struct scenario_link *, const char *text, char *why, size_t why_bytes);
/* The weights of all classes. */
bool scenario_weights_set(uint32_t field[SCENARIO_CLASSES], const char *text, char *why, size_t why_bytes);
/* Stragglers, "HOST:FACTOR,HOST:FACTOR@FROM-TO". */
bool scenario_slow_set(struct scenario_host *, const char *text, char *why, size_t why_bytes);
/* Arrivals, "poisson N": so many a second, as the mean time between two. */
bool scenario_arrive_set(uint64_t *gap_ps, const char *text, char *why, size_t why_bytes);
/* The two nodes of a link, "A-B". */
bool scenario_link_set(uint32_t ends[2], const char *text, char *why, size_t why_bytes);

/* Writes a sentence; returns false. */
bool scenario_refuse(char *why, size_t why_bytes, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
