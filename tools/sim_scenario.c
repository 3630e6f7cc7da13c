/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Scenarios and the files they name, from disk to memory. A bare name is a scenario that came with
 * verbena, found from where the program lies: built or installed.
 */
#include "sim.h"

#include <dirent.h>
#include <errno.h>
#include <libgen.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tool.h"

#define SUFFIX ".ini"

enum { FILE_BYTES_MAX = 256 << 20, FILES_MAX = 2 * SCENARIO_WORKLOADS_MAX + 1 };

#ifndef VERBENA_DATADIR
#define VERBENA_DATADIR "share"
#endif

static const char *const places[] = {"share/verbena/scenarios", "../" VERBENA_DATADIR "/verbena/scenarios"};

/* The whole file, NUL-terminated; NULL with errno. */
static char *file_read(const char *path, size_t *bytes)
{
	FILE *f = fopen(path, "re");
	struct stat st;
	char *text = NULL;
	size_t n = 0, capacity = 0, got;

	if (!f)
		return NULL;
	if (!fstat(fileno(f), &st) && S_ISDIR(st.st_mode)) {
		errno = EISDIR;
		goto bad;
	}
	do {
		if (capacity - n < 2) {
			char *p = realloc(text, capacity = capacity ? 2 * capacity : 16384);

			if (!p)
				goto bad;
			text = p;
		}
		got = fread(text + n, 1, capacity - n - 1, f);
		n += got;
		if (n > FILE_BYTES_MAX) {
			errno = EFBIG;
			goto bad;
		}
	} while (got);
	if (ferror(f))
		goto bad;
	fclose(f);
	text[n] = 0;
	*bytes = n;
	return text;
bad:
	got = (size_t)errno;
	free(text);
	fclose(f);
	errno = (int)got;
	return NULL;
}

/* Folder i of those that may hold our scenarios. */
static bool place_path(size_t i, char path[PATH_MAX])
{
	char exe[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", exe, sizeof(exe) - 1);

	if (n < 0)
		return false;
	exe[n] = 0;
	return snprintf(path, PATH_MAX, "%s/%s", dirname(exe), places[i]) < PATH_MAX;
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

static int is_scenario(const struct dirent *d)
{
	size_t n = strlen(d->d_name);

	return n > strlen(SUFFIX) && !strcmp(d->d_name + n - strlen(SUFFIX), SUFFIX);
}

/* The text of the file's first comment line. */
static void print_line(FILE *f, const char *folder, const char *file)
{
	char path[2 * PATH_MAX], line[256] = "";
	FILE *in;

	snprintf(path, sizeof(path), "%s/%s", folder, file);
	in = fopen(path, "re");
	if (!in || !fgets(line, sizeof(line), in) || line[0] != '#')
		snprintf(line, sizeof(line), "# -");
	if (in)
		fclose(in);
	line[strcspn(line, "\n")] = 0;
	fprintf(f, "  %-20.*s %s\n", (int)(strlen(file) - strlen(SUFFIX)), file, line + 1 + strspn(line + 1, " "));
}

void sim_scenarios_list(FILE *f)
{
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		char path[PATH_MAX];
		struct dirent **found;
		int n = place_path(i, path) ? scandir(path, &found, is_scenario, by_name) : -1;

		for (int k = 0; k < n; k++) {
			print_line(f, path, found[k]->d_name);
			free(found[k]);
		}
		if (n >= 0)
			free(found);
		if (n > 0)
			return;
	}
	fprintf(f, "  (none is installed)\n");
}

/* The path of the scenario with that name. */
static int scenario_find(const char *name, char *path, size_t path_bytes)
{
	if (strlen(name) >= path_bytes)
		return complain("%.64s...: the name of a scenario has fewer than %zu characters", name, path_bytes);
	strcpy(path, name);
	if (strchr(name, '/') || !access(name, F_OK))
		return 0;
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		char folder[PATH_MAX];

		if (!place_path(i, folder))
			continue;
		if (snprintf(path, path_bytes, "%s/%s" SUFFIX, folder, name) < (int)path_bytes && !access(path, F_OK))
			return 0;
	}
	complain("%s: there is no such file, and no scenario of that name; there are", name);
	sim_scenarios_list(stderr);
	return EXIT_OURS;
}

static int complain_error(const struct scenario_error *e)
{
	char text[sizeof(*e) + 64];

	scenario_error_text(e, text, sizeof(text));
	return complain("%s", text);
}

int sim_input_refused(const struct sim_input *in, const char *why)
{
	struct scenario_error e = {0};
	const char *colon = strstr(why, ": ");
	char key[sizeof(e.key)];

	if (colon && (size_t)(colon - why) < sizeof(key)) {
		snprintf(key, sizeof(key), "%.*s", (int)(colon - why), why);
		if (scenario_source_where(in->source, key, &e)) {
			snprintf(e.what, sizeof(e.what), "%s", colon + 2);
			return complain_error(&e);
		}
	}
	return complain("%s: %s", in->path, why);
}

/* Reads the files that the scenario names, relative to its own folder. */
static int files_read(struct sim_input *in)
{
	struct scenario_wanted wanted[FILES_MAX];
	size_t n = scenario_files(in->scenario, wanted, FILES_MAX);
	char *copy, path[2 * PATH_MAX];
	const char *folder;

	in->file_text = calloc(n ? n : 1, sizeof(*in->file_text));
	copy = strdup(in->path);
	if (!in->file_text || !copy) {
		free(copy);
		return complain("out of memory");
	}
	folder = dirname(copy);
	for (size_t i = 0; i < n; i++) {
		struct scenario_file *f = wanted[i].file;

		if (f->path[0] == '/')
			snprintf(path, sizeof(path), "%s", f->path);
		else
			snprintf(path, sizeof(path), "%s/%s", folder, f->path);
		in->file_text[i] = file_read(path, &f->text_bytes);
		f->text = in->file_text[i];
		if (!f->text) {
			char why[2 * PATH_MAX + 128];
			int error = errno;

			free(copy);
			snprintf(why, sizeof(why), "%s: cannot read %s: %s", wanted[i].key, path, strerror(error));
			return sim_input_refused(in, why);
		}
		in->file_count = i + 1;
	}
	free(copy);
	return 0;
}

int sim_input_load(struct sim_input *in, const char *name, const char *const *sets, size_t set_count)
{
	struct scenario_error e = {0};
	size_t bytes;
	int rc;

	*in = (struct sim_input){.sets = sets, .set_count = set_count};
	if (scenario_find(name, in->path, sizeof(in->path)))
		return EXIT_OURS;
	in->text = file_read(in->path, &bytes);
	if (!in->text) {
		rc = complain("%s: cannot read it: %s", in->path, strerror(errno));
		goto bad;
	}
	if (strlen(in->text) != bytes) {
		rc = complain("%s: not a text: it contains a zero byte", in->path);
		goto bad;
	}
	in->source = scenario_source_create();
	in->scenario = calloc(1, sizeof(*in->scenario));
	if (!in->source || !in->scenario) {
		rc = complain("out of memory");
		goto bad;
	}
	rc = scenario_source_text(in->source, in->path, in->text, &e);
	for (size_t i = 0; i < set_count && !rc; i++)
		rc = scenario_source_set(in->source, sets[i], &e);
	if (!rc)
		rc = scenario_source_settle(in->source, in->scenario, &e);
	if (rc == -ENOMEM)
		rc = complain("out of memory");
	else if (rc)
		rc = complain_error(&e);
	else
		rc = files_read(in);
	if (!rc)
		return 0;
bad:
	sim_input_free(in);
	return rc;
}

void sim_input_free(struct sim_input *in)
{
	for (size_t i = 0; i < in->file_count; i++)
		free(in->file_text[i]);
	free(in->file_text);
	free(in->scenario);
	scenario_source_destroy(in->source);
	free(in->text);
	*in = (struct sim_input){0};
}
