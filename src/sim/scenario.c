/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reading a scenario: INI text and overrides, both by way of scenario_value_set; then what depends
 * on several keys. Where each key was given is kept to the end, so that whatever is found wrong
 * later can be laid at a line.
 */
#include "sim/scenario.h"

#include <assert.h>
#include <errno.h>
#include <ini.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/scenario_row.h"

enum { LINE_SET = -1, NEAR_MAX = 3 };

struct scenario_source {
	struct scenario scenario;
	char file[SCENARIO_PATH_BYTES];
	/* Lines where keys were given; 0: not; LINE_SET: by an override. */
	int32_t line[SCENARIO_KEYS_MAX];
	int32_t workload_line[SCENARIO_WORKLOADS_MAX][SCENARIO_KEYS_MAX];
	int32_t failure_line[SCENARIO_FAILURES_MAX][SCENARIO_KEYS_MAX];
	int32_t param_line[SCENARIO_CC_PARAMS_MAX];
	int32_t workload_at[SCENARIO_WORKLOADS_MAX]; /* its section's line */
	int32_t failure_at[SCENARIO_FAILURES_MAX];
};

/* Where values go while text is read. */
struct reading {
	struct scenario_source *src;
	struct scenario_error *error;
	const char *rest; /* of the text */
	int line;         /* being read */
	bool failed;
	char section[SCENARIO_NAME_BYTES]; /* "workload" of [workload.NAME] */
	uint32_t instance;                 /* its index */
};

static int fail(struct scenario_error *e, const char *file, int line, const char *key,
		const char *fmt, ...) __attribute__((format(printf, 5, 6)));

static int fail(struct scenario_error *e, const char *file, int line, const char *key,
		const char *fmt, ...)
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

/* ---- Names ---- */

/* How many letters to insert, drop or change; more than `limit` is told as limit + 1. */
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

static bool section_is(const struct scenario_row *r, const char *section)
{
	return !strcmp(r->section, section);
}

static const struct scenario_row *row_find(const char *section, const char *name)
{
	size_t count;
	const struct scenario_row *r = scenario_rows(&count);

	for (size_t i = 0; i < count; i++) {
		if (section_is(&r[i], section) && !strcmp(r[i].name, name))
			return &r[i];
	}
	return NULL;
}

static size_t row_number(const struct scenario_row *r)
{
	size_t count;

	return (size_t)(r - scenario_rows(&count));
}

static bool section_exists(const char *section)
{
	size_t count;
	const struct scenario_row *r = scenario_rows(&count);

	for (size_t i = 0; i < count; i++) {
		if (section_is(&r[i], section))
			return true;
	}
	return false;
}

static void append(char *buf, size_t bytes, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

static void append(char *buf, size_t bytes, const char *fmt, ...)
{
	size_t used = strlen(buf);
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(buf + used, bytes - used, fmt, ap);
	va_end(ap);
}

/* "no such section; there are [topology], ..." */
static void sections_list(char *buf, size_t bytes)
{
	size_t count;
	const struct scenario_row *r = scenario_rows(&count);

	buf[0] = 0;
	for (size_t i = 0; i < count; i++) {
		if (i && section_is(&r[i], r[i - 1].section))
			continue;
		append(buf, bytes, "%s[%s%s]", i ? ", " : "", r[i].section,
		       r[i].base == SCENARIO_OF_ALL ? "" : ".NAME");
	}
}

/* What was perhaps meant, and what there is. */
static void keys_suggest(const char *section, const char *name, char *buf, size_t bytes)
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

		if (!section_is(&r[i], section) && strcmp(r[i].name, name))
			continue;
		d = name_distance(name, r[i].name, best_distance);
		if (d < best_distance || (!best && d == best_distance)) {
			best = &r[i];
			best_distance = d;
		}
	}
	if (best && section_is(best, section))
		append(buf, bytes, "; did you mean %s?", best->name);
	else if (best)
		append(buf, bytes, "; it is a key of [%s]", best->section);
	append(buf, bytes, "; [%s] has ", section);
	for (size_t i = 0; i < count; i++) {
		if (!section_is(&r[i], section))
			continue;
		append(buf, bytes, "%s%s", first ? "" : ", ", r[i].name);
		first = false;
	}
}

static bool is_param_name(const char *name)
{
	size_t n = strlen(name);

	return n && n < SCENARIO_NAME_BYTES &&
	       strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_") == n;
}

/* ---- Instances: [workload.NAME], [failure.NAME] ---- */

static bool is_instance_name(const char *name)
{
	size_t n = strlen(name);

	return n && n < SCENARIO_NAME_BYTES &&
	       strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") ==
		       n;
}

static void rows_default(enum scenario_base base, void *at)
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

static uint32_t instances(const struct scenario_source *s, bool workload)
{
	return workload ? s->scenario.workload_count : s->scenario.failure_count;
}

static const char *instance_name(const struct scenario_source *s, bool workload, uint32_t i)
{
	return workload ? s->scenario.workload[i].name : s->scenario.failure[i].name;
}

static uint32_t instance_find(const struct scenario_source *s, bool workload, const char *name)
{
	uint32_t i;

	for (i = 0; i < instances(s, workload); i++) {
		if (!strcmp(instance_name(s, workload, i), name))
			break;
	}
	return i;
}

/* *base and *line of a row, in the given instance if it is one's. */
static void row_place(struct scenario_source *s, const struct scenario_row *r, uint32_t instance,
		      void **base, int32_t **line)
{
	size_t n = row_number(r);

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

/* ---- Text ---- */

static int reading_fail(struct reading *r, const char *key, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

static int reading_fail(struct reading *r, const char *key, const char *fmt, ...)
{
	char what[sizeof(r->error->what)];
	va_list ap;

	if (r->failed)
		return 0;
	va_start(ap, fmt);
	vsnprintf(what, sizeof(what), fmt, ap);
	va_end(ap);
	fail(r->error, r->src->file, r->line, key, "%s", what);
	r->failed = true;
	return 0;
}

/* "[name]" begins: only here can an empty section be seen, for inih tells of keys alone. */
static void section_enter(struct reading *r, const char *name)
{
	struct scenario_source *s = r->src;
	const char *dot = strchr(name, '.');
	size_t n = dot ? (size_t)(dot - name) : strlen(name);
	char section[SCENARIO_NAME_BYTES], list[512];
	bool workload;

	snprintf(section, sizeof(section), "%.*s", (int)n, name);
	workload = !strcmp(section, "workload");
	if (n >= sizeof(section) || !section_exists(section) ||
	    (dot && !workload && strcmp(section, "failure"))) {
		sections_list(list, sizeof(list));
		reading_fail(r, "", "[%.64s]: there is no such section; there are %s", name, list);
		return;
	}
	memcpy(r->section, section, sizeof(section));
	if (!workload && strcmp(section, "failure"))
		return;
	name = dot ? dot + 1 : section; /* a lone [workload] is one of that name */
	if (!is_instance_name(name)) {
		reading_fail(
			r, "",
			"[%s.%.64s]: the name may have letters, digits, '-' and '_', at most %d",
			section, name, SCENARIO_NAME_BYTES - 1);
		return;
	}
	r->instance = instance_find(s, workload, name);
	if (r->instance < instances(s, workload)) {
		reading_fail(r, "", "[%s.%s]: begun before, in line %" PRId32 "; names differ",
			     section, name,
			     workload ? s->workload_at[r->instance] : s->failure_at[r->instance]);
	} else if (workload && r->instance < SCENARIO_WORKLOADS_MAX) {
		struct scenario_workload *w = &s->scenario.workload[s->scenario.workload_count++];

		rows_default(SCENARIO_OF_WORKLOAD, w);
		memcpy(w->name, name, strlen(name) + 1);
		s->workload_at[r->instance] = r->line;
	} else if (!workload && r->instance < SCENARIO_FAILURES_MAX) {
		struct scenario_failure *f = &s->scenario.failure[s->scenario.failure_count++];

		rows_default(SCENARIO_OF_FAILURE, f);
		memcpy(f->name, name, strlen(name) + 1);
		s->failure_at[r->instance] = r->line;
	} else {
		reading_fail(r, "", "[%s.%s]: there may be %d of them", section, name,
			     workload ? SCENARIO_WORKLOADS_MAX : SCENARIO_FAILURES_MAX);
	}
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
	/* inih takes an indented line for more of the one before; nobody means that here. */
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
	bool workload = !strcmp(r->section, "workload");

	if (workload || !strcmp(r->section, "failure"))
		snprintf(buf, bytes, "%s.%s.%.47s", r->section,
			 instance_name(r->src, workload, r->instance), name);
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
		return reading_fail(r, key, "given before, in line %" PRId32,
				    r->src->param_line[i]);
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
	row = row_find(r->section, name);
	if (!row && !strcmp(r->section, "cc") && is_param_name(name))
		return param_set(r, key, name, value);
	if (!row) {
		keys_suggest(r->section, name, why, sizeof(why));
		return reading_fail(r, key, "there is no such key%s", why);
	}
	row_place(r->src, row, r->instance, &base, &line);
	if (*line && r->line != LINE_SET)
		return reading_fail(r, key, "given before, in line %" PRId32, *line);
	if (!scenario_value_set(row, base, value, why, sizeof(why)))
		return reading_fail(r, key, "%s", why);
	*line = r->line;
	return 1;
}

/* The file's name without folder and suffix; what is no name character becomes '-'. */
static void name_from_file(char name[SCENARIO_NAME_BYTES], const char *file)
{
	const char *slash = strrchr(file, '/');
	const char *base = slash ? slash + 1 : file;
	size_t n = strcspn(base, ".");

	snprintf(name, SCENARIO_NAME_BYTES, "%.*s",
		 (int)(n < SCENARIO_NAME_BYTES ? n : SCENARIO_NAME_BYTES - 1), base);
	for (char *p = name; *p; p++) {
		if ((unsigned char)*p < 0x20 || (unsigned char)*p > 0x7e)
			*p = '-';
	}
	if (!name[0])
		snprintf(name, SCENARIO_NAME_BYTES, "scenario");
}

struct scenario_source *scenario_source_create(void)
{
	struct scenario_source *s = calloc(1, sizeof(*s));
	size_t count;

	scenario_rows(&count);
	assert(count <= SCENARIO_KEYS_MAX);
	if (s)
		rows_default(SCENARIO_OF_ALL, &s->scenario);
	return s;
}

void scenario_source_destroy(struct scenario_source *s)
{
	free(s);
}

int scenario_source_text(struct scenario_source *s, const char *file, const char *text,
			 struct scenario_error *e)
{
	struct reading r = {.src = s, .error = e, .rest = text};
	int line;

	snprintf(s->file, sizeof(s->file), "%s", file);
	name_from_file(s->scenario.name, file);
	line = ini_parse_stream(text_line, &r, entry, &r);
	/* inih goes on after an error, and tells the first. */
	if (line > 0 && (!r.failed || line < (int)e->line))
		return fail(e, s->file, line, "", "not of the form key = value");
	if (r.failed)
		return -EINVAL;
	return line ? -ENOMEM : 0;
}

int scenario_source_set(struct scenario_source *s, const char *assignment, struct scenario_error *e)
{
	struct reading r = {.src = s, .error = e, .line = LINE_SET};
	const char *equals = strchr(assignment, '=');
	const char *dot = strchr(assignment, '.');
	char name[2 * SCENARIO_NAME_BYTES + 2], list[512];
	size_t n;

	if (!equals || !dot || dot > equals || dot == assignment)
		return fail(e, s->file, LINE_SET, "",
			    "'%.64s' is not of the form section.key=value", assignment);
	n = (size_t)(dot - assignment);
	snprintf(r.section, sizeof(r.section), "%.*s", (int)n, assignment);
	if (n >= sizeof(r.section) || !section_exists(r.section)) {
		sections_list(list, sizeof(list));
		return fail(e, s->file, LINE_SET, "",
			    "'%.64s': there is no such section; there are %s", assignment, list);
	}
	n = (size_t)(equals - dot - 1);
	if (n >= sizeof(name))
		return fail(e, s->file, LINE_SET, "", "'%.64s...': there is no so long a key",
			    assignment);
	memcpy(name, dot + 1, n);
	name[n] = 0;
	if (!strcmp(r.section, "workload") || !strcmp(r.section, "failure")) {
		bool workload = r.section[0] == 'w';
		char *key = strchr(name, '.');

		if (key) {
			*key++ = 0;
			r.instance = instance_find(s, workload, name);
		} else {
			key = name;
			r.instance = instances(s, workload) == 1 ? 0 : UINT32_MAX;
		}
		if (r.instance >= instances(s, workload)) {
			list[0] = 0;
			for (uint32_t i = 0; i < instances(s, workload); i++)
				append(list, sizeof(list), "%s%s.%s", i ? ", " : "", r.section,
				       instance_name(s, workload, i));
			return fail(e, s->file, LINE_SET, "", "'%.64s': say which %s; there is %s",
				    assignment, r.section, list[0] ? list : "none");
		}
		memmove(name, key, strlen(key) + 1);
	}
	return entry(&r, r.section, name, equals + 1) ? 0 : -EINVAL;
}

/* ---- What depends on several keys ---- */

static const char *choice_name(const char *section, unsigned value, char buf[SCENARIO_NAME_BYTES])
{
	const char *p = row_find(section, "kind")->choices;

	for (; value && *p; value--) {
		p += strcspn(p, "|");
		p += *p == '|';
	}
	snprintf(buf, SCENARIO_NAME_BYTES, "%.*s", (int)strcspn(p, "|"), p);
	return buf;
}

/* The kinds in a mask, for a message. */
static void kinds_list(const char *section, uint32_t kinds, unsigned count, char *buf, size_t bytes)
{
	char name[SCENARIO_NAME_BYTES];

	buf[0] = 0;
	for (unsigned i = 0; i < count; i++) {
		if (kinds & 1u << i)
			append(buf, bytes, "%s%s", buf[0] ? ", " : "",
			       choice_name(section, i, name));
	}
}

/* Keys that the kind at hand does not read were given for nothing: an error. */
static int kinds_check(const struct scenario_source *s, const char *section, unsigned kind,
		       unsigned kind_count, const int32_t *lines, const char *prefix,
		       struct scenario_error *e)
{
	size_t count;
	const struct scenario_row *r = scenario_rows(&count);
	char list[512], name[SCENARIO_NAME_BYTES], key[2 * SCENARIO_NAME_BYTES + 16];

	for (size_t i = 0; i < count; i++) {
		if (!section_is(&r[i], section) || !lines[i] || !r[i].kinds ||
		    r[i].kinds & 1u << kind)
			continue;
		snprintf(key, sizeof(key), "%s.%s", prefix, r[i].name);
		kinds_list(section, r[i].kinds, kind_count, list, sizeof(list));
		return fail(e, s->file, lines[i], key, "means nothing with kind = %s; it is for %s",
			    choice_name(section, kind, name), list);
	}
	return 0;
}

static int32_t line_of(const struct scenario_source *s, const char *section, const char *name)
{
	return s->line[row_number(row_find(section, name))];
}

/* An error in an ordinary key; if it was not given, in the other. */
static int fail_key(const struct scenario_source *s, struct scenario_error *e, const char *section,
		    const char *name, const char *what)
{
	char key[2 * SCENARIO_NAME_BYTES];

	snprintf(key, sizeof(key), "%s.%s", section, name);
	return fail(e, s->file, line_of(s, section, name), key, "%s", what);
}

static bool is_power_of_two(uint64_t v)
{
	return v && !(v & (v - 1));
}

static int topology_settle(const struct scenario_source *s, struct scenario *out,
			   struct scenario_error *e)
{
	struct scenario_topology *t = &out->topology;
	struct scenario_link *l = &out->link;
	bool hpcc = t->kind == SCENARIO_TOPOLOGY_HPCC ||
		    (t->kind == SCENARIO_TOPOLOGY_TWO_DC && t->site_kind == SCENARIO_TOPOLOGY_HPCC);

	if (kinds_check(s, "topology", t->kind, SCENARIO_TOPOLOGY_KINDS, s->line, "topology", e))
		return -EINVAL;
	if (t->kind == SCENARIO_TOPOLOGY_FILE && !t->file.path[0])
		return fail_key(s, e, "topology", "file", "kind = file needs the path of one");
	if (t->k % 2)
		return fail_key(s, e, "topology", "k", "allowed are even numbers");
	if (l->fabric_rate_bps == SCENARIO_AUTO)
		l->fabric_rate_bps = hpcc ? 4 * l->rate_bps : l->rate_bps;
	if (l->border_rate_bps == SCENARIO_AUTO)
		l->border_rate_bps = l->fabric_rate_bps;
	if (l->long_rate_bps == SCENARIO_AUTO)
		l->long_rate_bps = l->fabric_rate_bps;
	if (l->fabric_delay_ps == SCENARIO_AUTO)
		l->fabric_delay_ps = l->delay_ps;
	if (l->ge_bad_ppb && !l->ge_good_ppb)
		return fail_key(s, e, "link", "ge_good",
				"0 with ge_bad above 0: it would stay bad for ever");
	return 0;
}

static int switch_settle(const struct scenario_source *s, struct scenario *out,
			 struct scenario_error *e)
{
	struct scenario_switch *w = &out->sw;
	uint64_t alpha64 = w->pfc_alpha_ppb * 64;

	if (w->border_buffer_bytes == SCENARIO_AUTO)
		w->border_buffer_bytes = w->buffer_bytes;
	if (w->kmin_bytes > w->kmax_bytes)
		return fail_key(s, e, "switch", line_of(s, "switch", "kmin") ? "kmin" : "kmax",
				"kmin is above kmax");
	if (alpha64 % SCENARIO_PPB || !is_power_of_two(alpha64 / SCENARIO_PPB))
		return fail_key(s, e, "switch", "pfc_alpha",
				"allowed are powers of two from 1/64 to 8");
	return 0;
}

static int transport_settle(const struct scenario_source *s, struct scenario *out,
			    struct scenario_error *e)
{
	struct scenario_transport *t = &out->transport;
	/* The row's choices are auto and then enum scenario_loss. */
	unsigned loss = t->loss;
	bool rocev2 = t->protocol == SCENARIO_ROCEV2;

	if (!loss)
		loss = 1 + (rocev2 ? SCENARIO_LOSS_GBN : SCENARIO_LOSS_FAST);
	if ((loss - 1 == SCENARIO_LOSS_GBN) != rocev2)
		return fail_key(s, e, "transport", "loss",
				rocev2 ? "rocev2 does gbn (go-back-N) only"
				       : "veroce does fast, base or irn; gbn is rocev2's");
	t->loss = loss - 1;
	if (!is_power_of_two(t->rx_window))
		return fail_key(s, e, "transport", "rx_window",
				"allowed are powers of two from 64 to 65536");
	return 0;
}

static int workload_settle(const struct scenario_source *s, struct scenario *out, uint32_t i,
			   struct scenario_error *e)
{
	struct scenario_workload *w = &out->workload[i];
	char prefix[2 * SCENARIO_NAME_BYTES], key[2 * SCENARIO_NAME_BYTES + 16];

	snprintf(prefix, sizeof(prefix), "workload.%s", w->name);
	if (kinds_check(s, "workload", w->kind, SCENARIO_WORKLOAD_KINDS, s->workload_line[i],
			prefix, e))
		return -EINVAL;
	if (w->kind == SCENARIO_FILE_FLOWS && !w->file.path[0]) {
		snprintf(key, sizeof(key), "%s.file", prefix);
		return fail(e, s->file, s->workload_at[i], key,
			    "kind = file needs the path of one");
	}
	if (w->kind == SCENARIO_STAIRCASE && !w->interval_ps) {
		snprintf(key, sizeof(key), "%s.interval", prefix);
		return fail(e, s->file, s->workload_at[i], key,
			    "a staircase needs the time between its steps");
	}
	if ((w->kind == SCENARIO_CDF || w->kind == SCENARIO_INCAST_POISSON) &&
	    w->stop_ps == SCENARIO_NEVER && w->flows == SCENARIO_NONE &&
	    out->run.until_ps == SCENARIO_NONE && out->run.events == SCENARIO_NONE) {
		snprintf(key, sizeof(key), "%s.stop", prefix);
		return fail(e, s->file, s->workload_at[i], key,
			    "it would never end: give stop or flows, or run.until or run.events");
	}
	if (w->traffic_class == SCENARIO_AUTO)
		w->traffic_class = out->transport.data_class;
	return 0;
}

static int failures_settle(const struct scenario_source *s, struct scenario *out,
			   struct scenario_error *e)
{
	for (uint32_t i = 0; i < out->failure_count; i++) {
		struct scenario_failure *f = &out->failure[i];
		char key[2 * SCENARIO_NAME_BYTES];

		if (f->link_a == f->link_b) {
			snprintf(key, sizeof(key), "failure.%s.link", f->name);
			return fail(e, s->file, s->failure_at[i], key, "say which, as A-B");
		}
		if (f->action == SCENARIO_LINK_RATE && f->rate_bps == SCENARIO_NONE) {
			snprintf(key, sizeof(key), "failure.%s.rate", f->name);
			return fail(e, s->file, s->failure_at[i], key,
				    "action = rate needs the new rate");
		}
	}
	/* By time, and as written where times are equal; there are few. */
	for (uint32_t i = 1; i < out->failure_count; i++) {
		struct scenario_failure f = out->failure[i];
		uint32_t k;

		for (k = i; k && out->failure[k - 1].time_ps > f.time_ps; k--)
			out->failure[k] = out->failure[k - 1];
		out->failure[k] = f;
	}
	return 0;
}

int scenario_source_settle(const struct scenario_source *s, struct scenario *out,
			   struct scenario_error *e)
{
	int rc = -EINVAL;
	struct scenario *c = malloc(sizeof(*c));

	if (!c)
		return -ENOMEM;
	*c = s->scenario;
	if (topology_settle(s, c, e) || switch_settle(s, c, e) || transport_settle(s, c, e) ||
	    failures_settle(s, c, e))
		goto out;
	if (!c->workload_count) {
		fail(e, s->file, 0, "", "there is no [workload.NAME]: nothing would happen");
		goto out;
	}
	for (uint32_t i = 0; i < c->workload_count; i++) {
		if (workload_settle(s, c, i, e))
			goto out;
	}
	if (!c->run.all_flows && c->run.until_ps == SCENARIO_NONE &&
	    c->run.events == SCENARIO_NONE) {
		fail_key(s, e, "run", "all_flows",
			 "off, and neither until nor events: it would never end");
		goto out;
	}
	*out = *c;
	rc = 0;
out:
	free(c);
	return rc;
}

bool scenario_source_where(const struct scenario_source *s, const char *key,
			   struct scenario_error *e)
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
	row = row_find(section, last + 1);
	if (last != dot) {
		bool workload = !strcmp(section, "workload");

		snprintf(name, sizeof(name), "%.*s", (int)(last - dot - 1), dot + 1);
		instance = instance_find(s, workload, name);
		if (!row || row->base == SCENARIO_OF_ALL || instance >= instances(s, workload))
			return false;
	} else if (row && row->base != SCENARIO_OF_ALL) {
		return false;
	}
	if (row) {
		row_place(own, row, instance, &base, &line);
		given = *line;
	} else if (!strcmp(section, "cc")) {
		for (uint32_t i = 0; i < s->scenario.cc.param_count; i++) {
			if (!strcmp(s->scenario.cc.param[i].name, last + 1))
				given = s->param_line[i];
		}
	}
	if (!given)
		return false;
	fail(e, s->file, given, key, "%s", "");
	return true;
}

/* One more, if the key names one. */
static void want(struct scenario_wanted *wanted, size_t *n, size_t max, struct scenario_file *file,
		 const char *workload, const char *key)
{
	if (!file->path[0] || (*n)++ >= max)
		return;
	wanted[*n - 1].file = file;
	snprintf(wanted[*n - 1].key, sizeof(wanted->key), "%s%s.%s",
		 workload ? "workload." : "topology", workload ? workload : "", key);
}

size_t scenario_files(struct scenario *s, struct scenario_wanted *wanted, size_t max)
{
	size_t n = 0;

	if (s->topology.kind == SCENARIO_TOPOLOGY_FILE)
		want(wanted, &n, max, &s->topology.file, NULL, "file");
	for (uint32_t i = 0; i < s->workload_count; i++) {
		struct scenario_workload *w = &s->workload[i];

		if (w->kind == SCENARIO_FILE_FLOWS)
			want(wanted, &n, max, &w->file, w->name, "file");
		else if (w->kind == SCENARIO_CDF)
			want(wanted, &n, max, &w->cdf_file, w->name, "cdf");
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
		snprintf(types[i], sizeof(types[i]), "%s%s%s", scenario_value_type(&r[i]),
			 r[i].word ? " or " : "", r[i].word ? r[i].word : "");
		keys[n++] = (struct scenario_key){r[i].section, r[i].name, types[i], r[i].standard,
						  r[i].help};
		if (!strcmp(r[i].section, "cc") &&
		    (i + 1 == *count || strcmp(r[i + 1].section, "cc")))
			keys[n++] = (struct scenario_key){
				"cc", "NAME", "value", "",
				"any parameter of the algorithm, as g or target"};
	}
	*count = n;
	return keys;
}
