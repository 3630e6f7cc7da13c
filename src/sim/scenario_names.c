/* SPDX-License-Identifier: BSD-2-Clause */
/* The table's rows and sections by name, and the message for a name that is none of them. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "sim/scenario_source.h"

enum { NEAR_MAX = 3 };

/* How many letters to insert, drop or change; limit + 1 if it is more than `limit`. */
static unsigned name_distance(const char *a, const char *b, unsigned limit)
{
	unsigned row[SCENARIO_NAME_BYTES + 1];
	size_t n = strlen(b);

	if (n > SCENARIO_NAME_BYTES || strlen(a) > SCENARIO_NAME_BYTES)
		return limit + 1;
	for (unsigned j = 0; j <= n; j++)
		row[j] = j;
	for (unsigned i = 1; a[i - 1]; i++) {
		unsigned diagonal = row[0];

		row[0] = i;
		for (size_t j = 1; j <= n; j++) {
			unsigned up = row[j], best = diagonal + (a[i - 1] != b[j - 1]);

			if (up + 1 < best)
				best = up + 1;
			if (row[j - 1] + 1 < best)
				best = row[j - 1] + 1;
			diagonal = up;
			row[j] = best;
		}
	}
	return row[n] > limit ? limit + 1 : row[n];
}

bool scenario_section_is(const struct scenario_row *r, const char *section)
{
	return !strcmp(r->section, section);
}

const struct scenario_row *scenario_row_find(const char *section, const char *name)
{
	size_t count;
	const struct scenario_row *r = scenario_rows(&count);

	for (size_t i = 0; i < count; i++) {
		if (scenario_section_is(&r[i], section) && !strcmp(r[i].name, name))
			return &r[i];
	}
	return NULL;
}

size_t scenario_row_number(const struct scenario_row *r)
{
	size_t count;

	return (size_t)(r - scenario_rows(&count));
}

bool scenario_section_exists(const char *section)
{
	size_t count;
	const struct scenario_row *r = scenario_rows(&count);

	for (size_t i = 0; i < count; i++) {
		if (scenario_section_is(&r[i], section))
			return true;
	}
	return false;
}

void scenario_append(char *buf, size_t bytes, const char *fmt, ...)
{
	size_t used = strlen(buf);
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(buf + used, bytes - used, fmt, ap);
	va_end(ap);
}

/* "no such section; there are [topology], ..." */
void scenario_sections_list(char *buf, size_t bytes)
{
	size_t count;
	const struct scenario_row *r = scenario_rows(&count);

	buf[0] = 0;
	for (size_t i = 0; i < count; i++) {
		if (i && scenario_section_is(&r[i], r[i - 1].section))
			continue;
		scenario_append(buf, bytes, "%s[%s%s]", i ? ", " : "", r[i].section,
				r[i].base == SCENARIO_OF_ALL ? "" : ".NAME");
	}
}

/* The likely name, and the list of names. */
void scenario_keys_suggest(const char *section, const char *name, char *buf, size_t bytes)
{
	size_t count;
	const struct scenario_row *r = scenario_rows(&count), *best = NULL;
	unsigned best_distance = (unsigned)strlen(name) / 3 + 1;
	bool first = true;

	if (best_distance > NEAR_MAX)
		best_distance = NEAR_MAX;
	buf[0] = 0;
	for (size_t i = 0; i < count; i++) {
		unsigned d;

		if (!scenario_section_is(&r[i], section) && strcmp(r[i].name, name))
			continue;
		d = name_distance(name, r[i].name, best_distance);
		if (d < best_distance || (!best && d == best_distance)) {
			best = &r[i];
			best_distance = d;
		}
	}
	if (best && scenario_section_is(best, section))
		scenario_append(buf, bytes, "; did you mean %s?", best->name);
	else if (best)
		scenario_append(buf, bytes, "; it is a key of [%s]", best->section);
	scenario_append(buf, bytes, "; [%s] has ", section);
	for (size_t i = 0; i < count; i++) {
		if (!scenario_section_is(&r[i], section))
			continue;
		scenario_append(buf, bytes, "%s%s", first ? "" : ", ", r[i].name);
		first = false;
	}
}
