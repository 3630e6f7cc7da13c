/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The scenario while it is read and afterwards: its source, where keys were given, which files it names,
 * and the list of keys. scenario_read.c reads, scenario_settle.c judges.
 */
#include "sim/scenario.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/scenario_source.h"

int scenario_fail(struct scenario_error *e, const char *file, int line, const char *key, const char *fmt, ...)
{
	va_list ap;

	snprintf(e->file, sizeof(e->file), "%s", line == LINE_SET ? "--set" : file);
	e->line = line > 0 ? (uint32_t)line : 0;
	snprintf(e->key, sizeof(e->key), "%s", key);
	va_start(ap, fmt);
	vsnprintf(e->what, sizeof(e->what), fmt, ap);
	va_end(ap);
	return -EINVAL;
}

int scenario_error_text(const struct scenario_error *e, char *buf, size_t bytes)
{
	char line[16] = "";

	if (e->line)
		snprintf(line, sizeof(line), ":%" PRIu32, e->line);
	return snprintf(buf, bytes, "%s%s%s%s%s%s", e->file, line, e->file[0] ? ": " : "", e->key,
			e->key[0] ? ": " : "", e->what);
}

/* ---- Instances: [workload.NAME], [failure.NAME] ---- */

void scenario_rows_default(enum scenario_base base, void *at)
{
	size_t count;
	const struct scenario_row *r = scenario_rows(&count);
	char why[256];

	for (size_t i = 0; i < count; i++) {
		bool set = r[i].base != base || !r[i].standard[0] ||
			   scenario_value_set(&r[i], at, r[i].standard, why, sizeof(why));

		assert(set);
		(void)set;
	}
}

uint32_t scenario_instances(const struct scenario_source *s, bool workload)
{
	return workload ? s->scenario.workload_count : s->scenario.failure_count;
}

const char *scenario_instance_name(const struct scenario_source *s, bool workload, uint32_t i)
{
	return workload ? s->scenario.workload[i].name : s->scenario.failure[i].name;
}

uint32_t scenario_instance_find(const struct scenario_source *s, bool workload, const char *name)
{
	uint32_t i;

	for (i = 0; i < scenario_instances(s, workload); i++) {
		if (!strcmp(scenario_instance_name(s, workload, i), name))
			break;
	}
	return i;
}

/* *base and *line of a row, in the given instance if the row belongs to instances. */
void scenario_row_place(struct scenario_source *s, const struct scenario_row *r, uint32_t instance, void **base,
			int32_t **line)
{
	size_t n = scenario_row_number(r);

	switch (r->base) {
	case SCENARIO_OF_ALL:
		*base = &s->scenario;
		*line = &s->line[n];
		break;
	case SCENARIO_OF_WORKLOAD:
		*base = &s->scenario.workload[instance];
		*line = &s->workload_line[instance][n];
		break;
	case SCENARIO_OF_FAILURE:
		*base = &s->scenario.failure[instance];
		*line = &s->failure_line[instance][n];
		break;
	}
}

/* ---- The source ---- */

struct scenario_source *scenario_source_create(void)
{
	struct scenario_source *s = calloc(1, sizeof(*s));
	size_t count;

	scenario_rows(&count);
	assert(count <= SCENARIO_KEYS_MAX);
	if (s)
		scenario_rows_default(SCENARIO_OF_ALL, &s->scenario);
	return s;
}

void scenario_source_destroy(struct scenario_source *s)
{
	free(s);
}

bool scenario_source_where(const struct scenario_source *s, const char *key, struct scenario_error *e)
{
	struct scenario_source *own = (struct scenario_source *)s; /* row_place only points */
	const char *dot = strchr(key, '.'), *last = strrchr(key, '.');
	char section[SCENARIO_NAME_BYTES], name[SCENARIO_NAME_BYTES];
	const struct scenario_row *row;
	uint32_t instance = 0;
	int32_t *line = NULL, given = 0;
	void *base;

	if (!dot || (size_t)(dot - key) >= sizeof(section) || last - dot > (ptrdiff_t)sizeof(name))
		return false;
	snprintf(section, sizeof(section), "%.*s", (int)(dot - key), key);
	row = scenario_row_find(section, last + 1);
	if (last != dot) {
		bool workload = !strcmp(section, "workload");

		snprintf(name, sizeof(name), "%.*s", (int)(last - dot - 1), dot + 1);
		instance = scenario_instance_find(s, workload, name);
		if (!row || row->base == SCENARIO_OF_ALL || instance >= scenario_instances(s, workload))
			return false;
	} else if (row && row->base != SCENARIO_OF_ALL) {
		return false;
	}
	if (row) {
		scenario_row_place(own, row, instance, &base, &line);
		given = *line;
	} else if (!strcmp(section, "cc")) {
		for (uint32_t i = 0; i < s->scenario.cc.param_count; i++) {
			if (!strcmp(s->scenario.cc.param[i].name, last + 1))
				given = s->param_line[i];
		}
	}
	if (!given)
		return false;
	scenario_fail(e, s->file, given, key, "%s", "");
	return true;
}

/* Adds an instance, if the key names one. */
static void want(struct scenario_wanted *wanted, size_t *n, size_t max, struct scenario_file *file,
		 const char *workload, const char *key, bool ranks)
{
	if (!file->path[0] || (*n)++ >= max)
		return;
	wanted[*n - 1].file = file;
	wanted[*n - 1].ranks = ranks;
	snprintf(wanted[*n - 1].key, sizeof(wanted->key), "%s%s.%s", workload ? "workload." : "topology",
		 workload ? workload : "", key);
}

size_t scenario_files(struct scenario *s, struct scenario_wanted *wanted, size_t max)
{
	size_t n = 0;

	if (s->topology.kind == SCENARIO_TOPOLOGY_FILE || s->topology.kind == SCENARIO_TOPOLOGY_SUBNET)
		want(wanted, &n, max, &s->topology.file, NULL, "file", false);
	for (uint32_t i = 0; i < s->workload_count; i++) {
		struct scenario_workload *w = &s->workload[i];

		if (w->kind == SCENARIO_FILE_FLOWS || w->kind == SCENARIO_GRAPH)
			want(wanted, &n, max, &w->file, w->name, "file", w->kind == SCENARIO_GRAPH);
		else if (w->kind == SCENARIO_CDF)
			want(wanted, &n, max, &w->cdf_file, w->name, "cdf", false);
	}
	return n;
}

const struct scenario_key *scenario_keys(size_t *count)
{
	static struct scenario_key keys[SCENARIO_KEYS_MAX + 1];
	static char types[SCENARIO_KEYS_MAX][160];
	const struct scenario_row *r = scenario_rows(count);
	size_t n = 0;

	for (size_t i = 0; i < *count; i++) {
		snprintf(types[i], sizeof(types[i]), "%s%s%s", scenario_value_type(&r[i]), r[i].word ? " or " : "",
			 r[i].word ? r[i].word : "");
		keys[n++] = (struct scenario_key){r[i].section, r[i].name, types[i], r[i].standard, r[i].help};
		if (!strcmp(r[i].section, "cc") && (i + 1 == *count || strcmp(r[i + 1].section, "cc")))
			keys[n++] = (struct scenario_key){"cc", "NAME", "value", "",
							  "any parameter of the algorithm, as g or target"};
	}
	*count = n;
	return keys;
}
