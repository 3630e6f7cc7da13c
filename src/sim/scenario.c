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

/* ---- Instances: [workload.NAME] and its like ---- */

#define MANY(name, base, max)                                                                                      \
	{                                                                                                          \
#name, base, max, offsetof(struct scenario_source, scenario.name##_count),                         \
			offsetof(struct scenario_source, scenario.name), sizeof(struct scenario_##name),           \
			offsetof(struct scenario_source, name##_line), offsetof(struct scenario_source, name##_at) \
	}

static const struct scenario_many many[] = {
	MANY(workload, SCENARIO_OF_WORKLOAD, SCENARIO_WORKLOADS_MAX),
	MANY(job, SCENARIO_OF_JOB, SCENARIO_JOBS_MAX),
	MANY(failure, SCENARIO_OF_FAILURE, SCENARIO_FAILURES_MAX),
	MANY(program, SCENARIO_OF_PROGRAM, SCENARIO_PROGRAMS_MAX),
};

enum { MANY = sizeof(many) / sizeof(many[0]) };

const struct scenario_many *scenario_many_of(const char *section)
{
	for (size_t i = 0; i < MANY; i++) {
		if (!strcmp(many[i].section, section))
			return &many[i];
	}
	return NULL;
}

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

uint32_t scenario_instances(const struct scenario_source *s, const struct scenario_many *m)
{
	return *(const uint32_t *)((const char *)s + m->count);
}

const char *scenario_instance_name(const struct scenario_source *s, const struct scenario_many *m, uint32_t i)
{
	return (const char *)s + m->first + i * m->bytes;
}

uint32_t scenario_instance_find(const struct scenario_source *s, const struct scenario_many *m, const char *name)
{
	uint32_t i;

	for (i = 0; i < scenario_instances(s, m); i++) {
		if (!strcmp(scenario_instance_name(s, m, i), name))
			break;
	}
	return i;
}

int scenario_instance_at(const struct scenario_source *s, const struct scenario_many *m, uint32_t i)
{
	return ((const int32_t *)((const char *)s + m->at))[i];
}

void scenario_instance_add(struct scenario_source *s, const struct scenario_many *m, const char *name, int line)
{
	uint32_t i = (*(uint32_t *)((char *)s + m->count))++;
	char *one = (char *)s + m->first + i * m->bytes;

	scenario_rows_default(m->base, one);
	memcpy(one, name, strlen(name) + 1);
	((int32_t *)((char *)s + m->at))[i] = line;
}

void scenario_row_place(struct scenario_source *s, const struct scenario_row *r, uint32_t instance, void **base,
			int32_t **line)
{
	const struct scenario_many *m = scenario_many_of(r->section);
	size_t n = scenario_row_number(r);

	*base = m ? (char *)s + m->first + instance * m->bytes : (void *)&s->scenario;
	*line = m ? (int32_t *)((char *)s + m->line) + instance * (size_t)SCENARIO_KEYS_MAX + n : &s->line[n];
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
		const struct scenario_many *m = scenario_many_of(section);

		snprintf(name, sizeof(name), "%.*s", (int)(last - dot - 1), dot + 1);
		if (!row || !m)
			return false;
		instance = scenario_instance_find(s, m, name);
		if (instance >= scenario_instances(s, m))
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

bool scenario_source_has(const struct scenario_source *s, enum scenario_workload_kind kind)
{
	for (uint32_t i = 0; i < s->scenario.workload_count; i++) {
		if (s->scenario.workload[i].kind == kind)
			return true;
	}
	return false;
}

/* Adds an instance, if the key names one. */
static void want(struct scenario_wanted *wanted, size_t *n, size_t max, struct scenario_file *file, const char *section,
		 const char *name, const char *key)
{
	if (!file->path[0] || (*n)++ >= max)
		return;
	wanted[*n - 1].file = file;
	wanted[*n - 1].ranks = false;
	snprintf(wanted[*n - 1].key, sizeof(wanted->key), "%s%s%s.%s", section, name ? "." : "", name ? name : "", key);
}

/* A graph's files, of which a job has one from its workload. */
static void want_graph(struct scenario_wanted *wanted, size_t *n, size_t max, struct scenario_workload *w)
{
	want(wanted, n, max, &w->file, "workload", w->of[0] ? w->of : w->name, "file");
	if (*n && *n <= max)
		wanted[*n - 1].ranks = true;
}

size_t scenario_files(struct scenario *s, struct scenario_wanted *wanted, size_t max)
{
	size_t n = 0;

	if (s->topology.kind == SCENARIO_TOPOLOGY_FILE || s->topology.kind == SCENARIO_TOPOLOGY_SUBNET)
		want(wanted, &n, max, &s->topology.file, "topology", NULL, "file");
	for (uint32_t i = 0; i < s->workload_count; i++) {
		struct scenario_workload *w = &s->workload[i];

		if (w->kind == SCENARIO_GRAPH)
			want_graph(wanted, &n, max, w);
		else if (w->kind == SCENARIO_FILE_FLOWS)
			want(wanted, &n, max, &w->file, "workload", w->name, "file");
		else if (w->kind == SCENARIO_CDF)
			want(wanted, &n, max, &w->cdf_file, "workload", w->name, "cdf");
		want(wanted, &n, max, &w->place.file, w->section, w->name, "place");
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
