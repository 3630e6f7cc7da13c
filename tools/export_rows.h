/* SPDX-License-Identifier: BSD-2-Clause */
/* The counters of a port by the names that the kernel's drivers, and exporters of them, have: one table for both. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "tally.h"

enum { EXPORT_SUMMED = 14 };

struct export_row {
	const char *file;                  /* below ports/1 of a device in sysfs; NULL: it has none */
	unsigned unit;                     /* the file counts so many at once */
	const char *metric;                /* of a Prometheus counter, behind its prefix */
	const char *help;                  /* a sentence without its full stop, as is the custom */
	const char *fields[EXPORT_SUMMED]; /* of `verbena stat`, of which this is the sum */
	const char *less;                  /* and less that one; NULL: none */
};

extern const struct export_row export_rows[];
extern const size_t export_row_count;

/* What the row counts, of a device or a program. */
uint64_t export_value(const struct tally *, const struct export_row *, const uint64_t *counted);
