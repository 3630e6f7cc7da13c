/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Finished folders as the runs of a sweep, wherever and whenever they were made: totals.csv has the
 * figures, summary.json the settings. The settings in which runs differ are their names.
 */
#include "sim.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "tool.h"

enum { COLLECTED_MAX = 65536, LABEL_BYTES = 512 };

struct collected {
	struct sweep_run *run;
	struct origin *origin; /* of each */
	size_t count, room;
};

/* A run's folder, and its description of itself. */
struct origin {
	char *folder;   /* *owned* */
	char *scenario; /* *owned*; NULL: not known */
	char *totals;   /* *owned*: its figures' names are in it */
	char **sets;    /* *owned*, "key=value", in order; the seed is the last */
	size_t set_count;
};

/* Reads the whole file; NULL: there is none. *Caller frees.* */
static char *file_text(const char *folder, const char *name)
{
	char *path = NULL, *text = NULL;
	size_t bytes = 0;
	FILE *f, *m;
	int c;

	if (asprintf(&path, "%s/%s", folder, name) < 0)
		return NULL;
	f = fopen(path, "re");
	free(path);
	if (!f)
		return NULL;
	m = open_memstream(&text, &bytes);
	while (m && (c = getc(f)) != EOF)
		putc(c, m);
	fclose(f);
	if (!m || fclose(m)) {
		free(text);
		return NULL;
	}
	return text;
}

/* ---- summary.json, as sim_json.c writes it
 * ---------------------------------------------------------- */

/* The text behind "name": at the start of a line; NULL: there is none. */
static const char *member(const char *json, const char *name)
{
	char begin[64];
	const char *p;

	snprintf(begin, sizeof(begin), "\n  \"%s\": ", name);
	p = strstr(json, begin);
	return p ? p + strlen(begin) : NULL;
}

/* The string that begins here; *end is behind it. NULL: there is none. *Caller frees.* */
static char *string_at(const char *p, const char **end)
{
	char *out, *q;

	if (!p || *p++ != '"')
		return NULL;
	out = q = malloc(strlen(p) + 1);
	if (!out)
		return NULL;
	for (; *p && *p != '"'; p++) {
		if (*p != '\\') {
			*q++ = *p;
		} else if (p[1] == 'u' && strlen(p) > 5) {
			char code[5] = {p[2], p[3], p[4], p[5]};

			*q++ = (char)strtoul(code, NULL, 16);
			p += 5;
		} else if (p[1]) {
			*q++ = *++p;
		}
	}
	*q = 0;
	*end = *p ? p + 1 : p;
	return out;
}

static bool add_set(struct origin *o, char *set)
{
	char **more = set ? reallocarray(o->sets, o->set_count + 1, sizeof(*more)) : NULL;

	if (!more) {
		free(set);
		return false;
	}
	o->sets = more;
	o->sets[o->set_count++] = set;
	return true;
}

/* False: no memory. */
static bool read_summary(struct origin *o, struct sweep_run *run, const char *json)
{
	const char *p = member(json, "set"), *seed = member(json, "seed"), *partial = member(json, "partial");
	char *own = NULL, *set;

	o->scenario = string_at(member(json, "scenario"), &(const char *){NULL});
	for (p = p && *p == '[' ? p + 1 : NULL; p && (set = string_at(p, &p));) {
		if (!strncmp(set, "run.seed=", 9))
			free(set);
		else if (!add_set(o, set))
			return false;
		p += strspn(p, ", ");
	}
	run->seed = seed ? strtoull(seed, NULL, 10) : 0;
	if (partial && !strncmp(partial, "true", 4))
		run->status = EXIT_INTERRUPTED;
	return asprintf(&own, "run.seed=%" PRIu64, run->seed) >= 0 && add_set(o, own);
}

/* ---- totals.csv
 * ------------------------------------------------------------------------------------- */

/* Rows "name,value,unit,label", which it cuts up. */
static void read_totals(struct figures *g, char *text)
{
	char *line, *rest = strchr(text, '\n');

	g->count = 0;
	while (rest && (line = strsep(&rest, "\n")) && g->count < FIGURES_MAX) {
		char *name = strsep(&line, ","), *value = strsep(&line, ","), *unit = strsep(&line, ",");
		struct figure f = {.name = name, .label = line};

		if (!unit || !line || !figure_of_unit(&f, unit))
			continue;
		if (line[0] == '"') {
			f.label = line + 1;
			line[strlen(line) - 1] = 0;
		}
		if (f.kind == FIGURE_RATIO || f.kind == FIGURE_SHARE)
			f.ratio = strtod(value, NULL);
		else
			f.value = strtoull(value, NULL, 10);
		g->f[g->count++] = f;
	}
}

/* ---- folders
 * ---------------------------------------------------------------------------------------- */

static bool has_file(const char *folder, const char *name)
{
	char path[2 * PATH_MAX];
	struct stat st;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	return !stat(path, &st) && S_ISREG(st.st_mode);
}

static bool is_run(const char *folder)
{
	return has_file(folder, "summary.json") || has_file(folder, "INCOMPLETE");
}

/* False: no memory, or there are too many. */
static bool add_run(struct collected *c, const char *folder)
{
	struct sweep_run *run;
	struct origin *o;
	char *json;
	bool good = true;

	if (c->count == c->room) {
		size_t room = c->room ? 2 * c->room : 64;
		struct sweep_run *runs = room > COLLECTED_MAX ? NULL : reallocarray(c->run, room, sizeof(*runs));
		struct origin *origins;

		if (!runs)
			return false;
		c->run = runs;
		origins = reallocarray(c->origin, room, sizeof(*origins));
		if (!origins)
			return false;
		c->origin = origins;
		c->room = room;
	}
	run = &c->run[c->count];
	o = &c->origin[c->count++];
	*run = (struct sweep_run){0};
	*o = (struct origin){.folder = strdup(folder)};
	json = file_text(folder, "summary.json");
	if (json)
		good = read_summary(o, run, json);
	free(json);
	o->totals = file_text(folder, "totals.csv");
	if (has_file(folder, "INCOMPLETE") || !o->totals)
		run->status = EXIT_OURS;
	else
		read_totals(&run->figures, o->totals);
	return good && o->folder;
}

static int visible(const struct dirent *e)
{
	return e->d_name[0] != '.';
}

/* The folder itself, or the runs in it. An exit status. */
static int add_folder(struct collected *c, const char *folder)
{
	struct dirent **names;
	size_t before = c->count;
	bool good = true;
	int n;

	if (is_run(folder) && !has_file(folder, "sweep.csv"))
		return add_run(c, folder) ? 0 : complain("--compare: out of memory");
	n = scandir(folder, &names, visible, alphasort);
	if (n < 0)
		return complain("--compare: %s: %s", folder, strerror(errno));
	for (int i = 0; i < n; i++) {
		char *path = NULL;

		good &= asprintf(&path, "%s/%s", folder, names[i]->d_name) >= 0;
		if (good && is_run(path))
			good = add_run(c, path);
		if (good)
			free(path);
		free(names[i]);
	}
	free(names);
	if (!good)
		return complain("--compare: out of memory");
	if (c->count == before)
		return complain("--compare: %s: neither it nor a folder in it has a summary.json", folder);
	return 0;
}

/* ---- how runs differ -------------------------------------------------------------------------- */

static size_t key_length(const char *set)
{
	return strcspn(set, "=");
}

/* The value that counts: the last one. NULL: it is not set. */
static const char *value_of(const struct origin *o, const char *set)
{
	size_t n = key_length(set);

	for (size_t i = o->set_count; i-- > 0;) {
		if (key_length(o->sets[i]) == n && !strncmp(o->sets[i], set, n))
			return o->sets[i] + n + 1;
	}
	return NULL;
}

static bool same(const char *a, const char *b)
{
	return a == b || (a && b && !strcmp(a, b));
}

static bool all_share(const struct collected *c, const char *set)
{
	for (size_t i = 1; i < c->count; i++) {
		if (!same(value_of(&c->origin[0], set), value_of(&c->origin[i], set)))
			return false;
	}
	return true;
}

static void append(char label[LABEL_BYTES], const char *set, const char *value)
{
	size_t used = strlen(label), n = key_length(set);
	const char *key = set + n;

	while (key > set && key[-1] != '.')
		key--;
	snprintf(label + used, LABEL_BYTES - used, "%s%.*s=%s", used ? " " : "", (int)(set + n - key), key, value);
}

/* The settings of the run in which runs differ, in the run's order. */
static void label_of(const struct collected *c, const struct origin *o, bool seed, bool scenario,
		     char label[LABEL_BYTES])
{
	label[0] = 0;
	if (scenario)
		snprintf(label, LABEL_BYTES, "%s", o->scenario ? o->scenario : "?");
	for (size_t i = 0; i < o->set_count; i++) {
		bool is_seed = !strncmp(o->sets[i], "run.seed=", 9);

		if ((is_seed && !seed) || all_share(c, o->sets[i]) ||
		    value_of(o, o->sets[i]) != o->sets[i] + key_length(o->sets[i]) + 1)
			continue;
		append(label, o->sets[i], value_of(o, o->sets[i]));
	}
}

static bool scenarios_differ(const struct collected *c)
{
	for (size_t i = 1; i < c->count; i++) {
		if (!same(c->origin[0].scenario, c->origin[i].scenario))
			return true;
	}
	return false;
}

/* Seeds are part of a name only if nothing else distinguishes two runs. False: no memory. */
static bool label_all(struct collected *c)
{
	bool differ = scenarios_differ(c), repeat;
	char label[LABEL_BYTES];
	bool good = true;

	for (size_t i = 0; i < c->count; i++) {
		label_of(c, &c->origin[i], false, differ, label);
		c->run[i].group = strdup(label);
		good &= c->run[i].group != NULL;
	}
	repeat = good && sim_groups_repeat(c->run, c->count);
	for (size_t i = 0; good && i < c->count; i++) {
		label_of(c, &c->origin[i], repeat, differ, label);
		c->run[i].label = strdup(label[0] ? label : c->origin[i].folder);
		good = c->run[i].label != NULL;
	}
	return good;
}

/* The folder's path from the report's folder; the path as given if that cannot be found. */
static char *path_from(const char *report, const char *folder)
{
	char from[PATH_MAX], to[PATH_MAX], *out = NULL;
	size_t common = 0, i;

	if (!report || !realpath(report, from) || !realpath(folder, to))
		return strdup(folder);
	strncat(from, "/", sizeof(from) - strlen(from) - 1);
	for (i = 0; from[i] && from[i] == to[i]; i++) {
		if (from[i] == '/')
			common = i + 1;
	}
	/* The report's folder may be the run's own parent, or above it. */
	if (!from[i])
		return strdup(to + i);
	out = calloc(1, 3 * strlen(from + common) + strlen(to + common) + 1);
	for (i = common; out && from[i]; i++) {
		if (from[i] == '/')
			strcat(out, "../");
	}
	return out ? strcat(out, to + common) : NULL;
}

static void collected_free(struct collected *c)
{
	for (size_t i = 0; i < c->count; i++) {
		free(c->run[i].label);
		free(c->run[i].group);
		free(c->run[i].folder);
		for (size_t k = 0; k < c->origin[i].set_count; k++)
			free(c->origin[i].sets[k]);
		free(c->origin[i].sets);
		free(c->origin[i].folder);
		free(c->origin[i].scenario);
		free(c->origin[i].totals);
	}
	free(c->run);
	free(c->origin);
}

int sim_collect(char *const *folders, size_t count, const char *report, bool quiet)
{
	struct collected c = {0};
	struct folder d;
	int rc = 0;

	for (size_t i = 0; i < count && !rc; i++)
		rc = add_folder(&c, folders[i]);
	/* The report's folder must exist, so that paths from it to the runs can be found. */
	if (!rc && report && (folder_open(&d, report) | folder_close(&d)))
		rc = EXIT_OURS;
	for (size_t i = 0; i < c.count && !rc; i++) {
		c.run[i].folder = path_from(report, c.origin[i].folder);
		if (!c.run[i].folder)
			rc = complain("out of memory");
	}
	if (!rc && !label_all(&c))
		rc = complain("out of memory");
	if (!rc && !quiet)
		sim_compare_print(stdout, c.run, c.count);
	if (!rc && report)
		rc = sim_compare_report(report, c.origin[0].scenario ? c.origin[0].scenario : "runs", c.run, c.count);
	if (!rc && report && !quiet)
		printf("report  %s/report.html\n", report);
	if (fflush(stdout) || ferror(stdout))
		rc = complain("cannot write: %s", strerror(errno));
	collected_free(&c);
	return rc;
}
