/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Scenarios and the files they name, from disk to memory. A bare name is a scenario that came with
 * verbena, found from where the program or library lies: built or installed.
 */
#include "sim.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
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
#ifndef VERBENA_BUILT
#define VERBENA_BUILT     "share"
#define VERBENA_INSTALLED "../" VERBENA_DATADIR
#endif

/* From the folder of sim_own_path(). */
static const char *const places[] = {VERBENA_BUILT "/verbena/scenarios", VERBENA_INSTALLED "/verbena/scenarios"};

/* For programs. */
static const char program_section[] = "\n[workload.program]\nkind = program\n";
static const char program_only[] = "run.only=program";

char *sim_file_read(const char *path, size_t *bytes)
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
	char own[PATH_MAX];

	return sim_own_path(own, sizeof(own)) && snprintf(path, PATH_MAX, "%s/%s", dirname(own), places[i]) < PATH_MAX;
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

/* With the names that there are. */
static void complain_of_name(const char *name)
{
	char *list = NULL;
	size_t bytes = 0;
	FILE *f = open_memstream(&list, &bytes);

	if (f) {
		sim_scenarios_list(f);
		fclose(f);
	}
	complain("%s: there is no such file, and no scenario of that name; there are\n%.*s", name,
		 bytes ? (int)bytes - 1 : 0, list ? list : "");
	free(list);
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
	complain_of_name(name);
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

bool sim_files_path(const char *path, uint32_t number, char *out, size_t bytes)
{
	const char *star = strrchr(path, '*');

	return (size_t)snprintf(out, bytes, "%.*s%" PRIu32 "%s", (int)(star - path), path, number, star + 1) < bytes;
}

bool sim_files_last(const char *path, uint32_t *last)
{
	const char *star = strrchr(path, '*'), *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	char folder[2 * PATH_MAX];
	struct dirent *e;
	bool found = false;
	DIR *d;

	if (star < name)
		return false;
	snprintf(folder, sizeof(folder), "%.*s", slash ? (int)(slash - path) + 1 : 2, slash ? path : "./");
	d = opendir(folder);
	while (d && (e = readdir(d))) {
		size_t before = (size_t)(star - name), digits;
		uint64_t number;

		if (strncmp(e->d_name, name, before) != 0)
			continue;
		digits = strspn(e->d_name + before, "0123456789");
		if (!digits || digits > 7 || strcmp(e->d_name + before + digits, star + 1) != 0)
			continue;
		number = strtoul(e->d_name + before, NULL, 10);
		if (!found || number > *last)
			*last = (uint32_t)number;
		found = true;
	}
	if (d)
		closedir(d);
	return found;
}

/* The text is the scenario's to free. */
static bool keep_text(struct sim_input *in, char *text)
{
	if (in->file_count == in->file_room) {
		size_t room = in->file_room ? 2 * in->file_room : 64;
		char **more = realloc(in->file_text, room * sizeof(*more));

		if (!more) {
			free(text);
			return false;
		}
		in->file_text = more;
		in->file_room = room;
	}
	in->file_text[in->file_count++] = text;
	return true;
}

static int refuse_file(const struct sim_input *in, const struct scenario_wanted *w, const char *path)
{
	char why[2 * PATH_MAX + 128];
	int error = errno;

	snprintf(why, sizeof(why), "%s: cannot read %s: %s", w->key, path, strerror(error));
	return sim_input_refused(in, why);
}

static int read_one(struct sim_input *in, const struct scenario_wanted *w, const char *path)
{
	char *text = sim_file_read(path, &w->file->text_bytes);

	if (!text)
		return refuse_file(in, w, path);
	if (!keep_text(in, text))
		return complain("out of memory");
	w->file->text = text;
	return 0;
}

/* A file for each rank. One that is not there has no text; whoever reads the others says so. */
static int read_ranks(struct sim_input *in, const struct scenario_wanted *w, const char *path)
{
	char one[2 * PATH_MAX];
	struct graph_file *files;
	uint32_t last;

	if (!sim_files_last(path, &last)) {
		errno = ENOENT;
		return refuse_file(in, w, path);
	}
	files = calloc(last + (size_t)1, sizeof(*files));
	if (!files)
		return complain("out of memory");
	in->ranks[in->ranks_count++] = files;
	w->file->ranks = files;
	w->file->rank_count = last + 1;
	for (uint32_t i = 0; i <= last; i++) {
		char *text = NULL;

		if (sim_files_path(path, i, one, sizeof(one)))
			text = sim_file_read(one, &files[i].bytes);
		if (!text && errno != ENOENT)
			return refuse_file(in, w, one);
		if (text && !keep_text(in, text))
			return complain("out of memory");
		files[i].text = text;
	}
	return 0;
}

/* Jobs of one workload share its file. */
static bool is_known(struct scenario_wanted *wanted, size_t i)
{
	struct scenario_file *f = wanted[i].file;

	for (size_t k = 0; k < i; k++) {
		if (strcmp(wanted[k].key, wanted[i].key) != 0)
			continue;
		*f = *wanted[k].file;
		return true;
	}
	return false;
}

/* Reads the files that the scenario names, relative to its own folder. */
static int files_read(struct sim_input *in)
{
	struct scenario_wanted wanted[FILES_MAX];
	size_t n = scenario_files(in->scenario, wanted, FILES_MAX);
	char *copy = strdup(in->path), path[2 * PATH_MAX];
	const char *folder;
	int rc = 0;

	if (!copy)
		return complain("out of memory");
	folder = dirname(copy);
	for (size_t i = 0; i < n && !rc; i++) {
		const char *name = wanted[i].file->path;

		if (is_known(wanted, i))
			continue;
		if (name[0] == '/')
			snprintf(path, sizeof(path), "%s", name);
		else
			snprintf(path, sizeof(path), "%s/%s", folder, name);
		rc = wanted[i].ranks && strchr(name, '*') ? read_ranks(in, &wanted[i], path)
							  : read_one(in, &wanted[i], path);
	}
	free(copy);
	return rc;
}

/* The text, with a setting of ours, if there is one, before the caller's. */
static int read_text(struct sim_input *in, const char *ours, struct scenario_error *e)
{
	int rc;

	scenario_source_destroy(in->source);
	in->source = scenario_source_create();
	if (!in->source)
		return -ENOMEM;
	rc = scenario_source_text(in->source, in->path, in->text, e);
	if (!rc && ours)
		rc = scenario_source_set(in->source, ours, e);
	for (size_t i = 0; i < in->set_count && !rc; i++)
		rc = scenario_source_set(in->source, in->sets[i], e);
	return rc;
}

/* Behind a text that has no program. */
static int add_program(struct sim_input *in, size_t bytes, struct scenario_error *e)
{
	char *more = realloc(in->text, bytes + sizeof(program_section));

	if (!more)
		return -ENOMEM;
	in->text = more;
	memcpy(more + bytes, program_section, sizeof(program_section));
	return read_text(in, program_only, e);
}

/* All but the files that it names. */
static int load_text(struct sim_input *in, const char *name, const char *const *sets, size_t set_count, bool program)
{
	struct scenario_error e = {0};
	size_t bytes;
	int rc;

	*in = (struct sim_input){.sets = sets, .set_count = set_count};
	if (scenario_find(name, in->path, sizeof(in->path)))
		return EXIT_OURS;
	in->text = sim_file_read(in->path, &bytes);
	if (!in->text) {
		rc = complain("%s: cannot read it: %s", in->path, strerror(errno));
		goto bad;
	}
	if (strlen(in->text) != bytes) {
		rc = complain("%s: not a text: it contains a zero byte", in->path);
		goto bad;
	}
	in->scenario = calloc(1, sizeof(*in->scenario));
	rc = in->scenario ? read_text(in, NULL, &e) : -ENOMEM;
	if (!rc && program && !scenario_source_has(in->source, SCENARIO_PROGRAM))
		rc = add_program(in, bytes, &e);
	if (!rc)
		rc = scenario_source_settle(in->source, in->scenario, &e);
	if (rc == -ENOMEM)
		rc = complain("out of memory");
	else if (rc)
		rc = complain_error(&e);
	if (!rc)
		return 0;
bad:
	sim_input_free(in);
	return rc;
}

static int load(struct sim_input *in, const char *name, const char *const *sets, size_t set_count, bool program)
{
	int rc = load_text(in, name, sets, set_count, program);

	if (!rc)
		rc = files_read(in);
	if (rc)
		sim_input_free(in);
	return rc;
}

int sim_has_programs(const char *name, const char *const *sets, size_t set_count, bool *has)
{
	struct sim_input in;
	int rc = load_text(&in, name, sets, set_count, false);

	if (!rc) {
		*has = in.scenario->program_count;
		sim_input_free(&in);
	}
	return rc;
}

int sim_input_load(struct sim_input *in, const char *name, const char *const *sets, size_t set_count)
{
	return load(in, name, sets, set_count, false);
}

int sim_input_load_program(struct sim_input *in, const char *name, const char *const *sets, size_t set_count)
{
	return load(in, name, sets, set_count, true);
}

void sim_input_free(struct sim_input *in)
{
	for (size_t i = 0; i < in->file_count; i++)
		free(in->file_text[i]);
	free(in->file_text);
	for (size_t i = 0; i < in->ranks_count; i++)
		free(in->ranks[i]);
	free(in->scenario);
	scenario_source_destroy(in->source);
	free(in->text);
	*in = (struct sim_input){0};
}
