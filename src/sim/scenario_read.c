/* SPDX-License-Identifier: BSD-2-Clause */
/* Reading a scenario: INI text and overrides, both by way of scenario_value_set. */
#include <errno.h>
#include <ini.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "sim/scenario_source.h"

/* The state while text is read. */
struct reading {
	struct scenario_source *src;
	struct scenario_error *error;
	const char *rest; /* of the text */
	int line;         /* being read */
	bool failed;
	char section[SCENARIO_NAME_BYTES]; /* "workload" of [workload.NAME] */
	uint32_t instance;                 /* its index */
};

/* ---- Names ---- */

static bool is_param_name(const char *name)
{
	size_t n = strlen(name);

	return n && n < SCENARIO_NAME_BYTES && strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_") == n;
}

static bool is_instance_name(const char *name)
{
	size_t n = strlen(name);

	return n && n < SCENARIO_NAME_BYTES &&
	       strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") == n;
}

/* ---- Text ---- */

static int reading_fail(struct reading *r, const char *key, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

static int reading_fail(struct reading *r, const char *key, const char *fmt, ...)
{
	char what[sizeof(r->error->what)];
	va_list ap;

	if (r->failed)
		return 0;
	va_start(ap, fmt);
	vsnprintf(what, sizeof(what), fmt, ap);
	va_end(ap);
	scenario_fail(r->error, r->src->file, r->line, key, "%s", what);
	r->failed = true;
	return 0;
}

/* "[name]" begins: only here an empty section can be seen, because inih reports keys only. */
static void section_enter(struct reading *r, const char *name)
{
	struct scenario_source *s = r->src;
	const char *dot = strchr(name, '.');
	size_t n = dot ? (size_t)(dot - name) : strlen(name);
	char section[SCENARIO_NAME_BYTES], list[512];
	const struct scenario_many *m;

	snprintf(section, sizeof(section), "%.*s", (int)n, name);
	m = scenario_many_of(section);
	if (n >= sizeof(section) || !scenario_section_exists(section) || (dot && !m)) {
		scenario_sections_list(list, sizeof(list));
		reading_fail(r, "", "[%.64s]: there is no such section; there are %s", name, list);
		return;
	}
	memcpy(r->section, section, sizeof(section));
	if (!m)
		return;
	name = dot ? dot + 1 : section; /* a lone [workload] is one of that name */
	if (!is_instance_name(name)) {
		reading_fail(r, "", "[%s.%.64s]: the name may have letters, digits, '-' and '_', at most %d", section,
			     name, SCENARIO_NAME_BYTES - 1);
		return;
	}
	r->instance = scenario_instance_find(s, m, name);
	if (r->instance < scenario_instances(s, m))
		reading_fail(r, "", "[%s.%s]: begun before, in line %d; names differ", section, name,
			     scenario_instance_at(s, m, r->instance));
	else if (r->instance == m->max)
		reading_fail(r, "", "[%s.%s]: there may be %" PRIu32 " of them", section, name, m->max);
	else
		scenario_instance_add(s, m, name, r->line);
}

/* inih's source of lines: fgets() on memory, which ends the text after an error. */
static char *text_line(char *buf, int bytes, void *arg)
{
	struct reading *r = arg;
	size_t n = strcspn(r->rest, "\n");
	const char *line = r->rest;

	if (r->failed || !*r->rest)
		return NULL;
	r->line++;
	if (n + 2 > (size_t)bytes) {
		reading_fail(r, "", "the line is longer than %d characters", bytes - 2);
		return NULL;
	}
	r->rest += n + (line[n] == '\n');
	memcpy(buf, line, n);
	buf[n] = '\n';
	buf[n + 1] = 0;
	if (r->line == 1 && !strncmp(buf, "\xef\xbb\xbf", 3))
		line += 3;
	/*
	 * inih takes an indented line for a continuation of the one before, which is never meant
	 * here.
	 */
	if ((*line == ' ' || *line == '\t') && !strchr(";#\r\n", line[strspn(line, " \t")]) &&
	    line[strspn(line, " \t")]) {
		reading_fail(r, "", "the line begins with a blank; keys begin their line");
		return NULL;
	}
	if (*line == '[') {
		char name[128];
		size_t k = strcspn(line + 1, "]\n");

		if (line[1 + k] != ']' || k >= sizeof(name))
			reading_fail(r, "", "not of the form [section]");
		else {
			snprintf(name, sizeof(name), "%.*s", (int)k, line + 1);
			section_enter(r, name);
		}
		if (r->failed)
			return NULL;
	}
	return buf;
}

/* "switch.kmin", "workload.NAME.size" */
static void key_text(const struct reading *r, const char *name, char *buf, size_t bytes)
{
	const struct scenario_many *m = scenario_many_of(r->section);

	if (m)
		snprintf(buf, bytes, "%s.%s.%.47s", r->section, scenario_instance_name(r->src, m, r->instance), name);
	else
		snprintf(buf, bytes, "%s.%.47s", r->section, name);
}

static int param_set(struct reading *r, const char *key, const char *name, const char *value)
{
	struct scenario_cc *cc = &r->src->scenario.cc;
	uint32_t i;

	for (i = 0; i < cc->param_count && strcmp(cc->param[i].name, name); i++)
		;
	if (i < cc->param_count && r->line != LINE_SET)
		return reading_fail(r, key, "given before, in line %" PRId32, r->src->param_line[i]);
	if (i == SCENARIO_CC_PARAMS_MAX)
		return reading_fail(r, key, "there may be %d parameters", SCENARIO_CC_PARAMS_MAX);
	if (strlen(value) >= sizeof(cc->param[i].value) || !*value)
		return reading_fail(r, key, "'%.64s': allowed are 1 to %zu characters", value,
				    sizeof(cc->param[i].value) - 1);
	memset(&cc->param[i], 0, sizeof(cc->param[i]));
	memcpy(cc->param[i].name, name, strlen(name) + 1);
	memcpy(cc->param[i].value, value, strlen(value) + 1);
	r->src->param_line[i] = r->line;
	cc->param_count += i == cc->param_count;
	return 1;
}

/* inih's callback: 1 to go on, 0 for an error. */
static int entry(void *arg, const char *section, const char *name, const char *value)
{
	struct reading *r = arg;
	const struct scenario_row *row;
	char key[2 * SCENARIO_NAME_BYTES + 16], why[sizeof(r->error->what)];
	int32_t *line = NULL;
	void *base = NULL;

	if (r->failed)
		return 0;
	if (!r->section[0])
		return reading_fail(r, "", "%.48s: stands before the first [section]", name);
	key_text(r, name, key, sizeof(key));
	row = scenario_row_find(r->section, name);
	if (!row && !strcmp(r->section, "cc") && is_param_name(name))
		return param_set(r, key, name, value);
	if (!row) {
		scenario_keys_suggest(r->section, name, why, sizeof(why));
		return reading_fail(r, key, "there is no such key%s", why);
	}
	scenario_row_place(r->src, row, r->instance, &base, &line);
	if (*line && r->line != LINE_SET)
		return reading_fail(r, key, "given before, in line %" PRId32, *line);
	if (!scenario_value_set(row, base, value, why, sizeof(why)))
		return reading_fail(r, key, "%s", why);
	*line = r->line;
	return 1;
}

/* The file's name without folder and suffix; other characters than those of names become '-'. */
static void name_from_file(char name[SCENARIO_NAME_BYTES], const char *file)
{
	const char *slash = strrchr(file, '/');
	const char *base = slash ? slash + 1 : file;
	size_t n = strcspn(base, ".");

	snprintf(name, SCENARIO_NAME_BYTES, "%.*s", (int)(n < SCENARIO_NAME_BYTES ? n : SCENARIO_NAME_BYTES - 1), base);
	for (char *p = name; *p; p++) {
		if ((unsigned char)*p < 0x20 || (unsigned char)*p > 0x7e)
			*p = '-';
	}
	if (!name[0])
		snprintf(name, SCENARIO_NAME_BYTES, "scenario");
}

int scenario_source_text(struct scenario_source *s, const char *file, const char *text, struct scenario_error *e)
{
	struct reading r = {.src = s, .error = e, .rest = text};
	int line;

	snprintf(s->file, sizeof(s->file), "%s", file);
	name_from_file(s->scenario.name, file);
	line = ini_parse_stream(text_line, &r, entry, &r);
	/* inih continues after an error, and reports the first. */
	if (line > 0 && (!r.failed || line < (int)e->line))
		return scenario_fail(e, s->file, line, "", "not of the form key = value");
	if (r.failed)
		return -EINVAL;
	return line ? -ENOMEM : 0;
}

int scenario_source_set(struct scenario_source *s, const char *assignment, struct scenario_error *e)
{
	struct reading r = {.src = s, .error = e, .line = LINE_SET};
	const char *equals = strchr(assignment, '=');
	const char *dot = strchr(assignment, '.');
	const struct scenario_many *m;
	char name[2 * SCENARIO_NAME_BYTES + 2], list[512];
	size_t n;

	if (!equals || !dot || dot > equals || dot == assignment)
		return scenario_fail(e, s->file, LINE_SET, "", "'%.64s' is not of the form section.key=value",
				     assignment);
	n = (size_t)(dot - assignment);
	snprintf(r.section, sizeof(r.section), "%.*s", (int)n, assignment);
	if (n >= sizeof(r.section) || !scenario_section_exists(r.section)) {
		scenario_sections_list(list, sizeof(list));
		return scenario_fail(e, s->file, LINE_SET, "", "'%.64s': there is no such section; there are %s",
				     assignment, list);
	}
	n = (size_t)(equals - dot - 1);
	if (n >= sizeof(name))
		return scenario_fail(e, s->file, LINE_SET, "", "'%.64s...': there is no so long a key", assignment);
	memcpy(name, dot + 1, n);
	name[n] = 0;
	m = scenario_many_of(r.section);
	if (m) {
		char *key = strchr(name, '.');

		if (key) {
			*key++ = 0;
			r.instance = scenario_instance_find(s, m, name);
		} else {
			key = name;
			r.instance = scenario_instances(s, m) == 1 ? 0 : UINT32_MAX;
		}
		if (r.instance >= scenario_instances(s, m)) {
			list[0] = 0;
			for (uint32_t i = 0; i < scenario_instances(s, m); i++)
				scenario_append(list, sizeof(list), "%s%s.%s", i ? ", " : "", r.section,
						scenario_instance_name(s, m, i));
			return scenario_fail(e, s->file, LINE_SET, "", "'%.64s': say which %s; there is %s", assignment,
					     r.section, list[0] ? list : "none");
		}
		memmove(name, key, strlen(key) + 1);
	}
	return entry(&r, r.section, name, equals + 1) ? 0 : -EINVAL;
}
