/* SPDX-License-Identifier: BSD-2-Clause */
/* `verbena sim --describe` and `--convert`: graphs in files, without a simulation. */
#include "sim.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tool.h"
#include "workload/goal.h"
#include "workload/graph_describe.h"
#include "workload/graph_lower.h"

/* A path, and the texts of its file or, with a '*', of its files. */
struct graph_input {
	const char *path;
	struct graph_file *files; /* *owned*, and their texts */
	uint32_t count;
	bool many;
};

static void input_free(struct graph_input *in)
{
	for (uint32_t i = 0; in->files && i < in->count; i++)
		free((char *)in->files[i].text);
	free(in->files);
}

static int input_read(struct graph_input *in)
{
	char path[4096];
	uint32_t last = 0;

	in->many = strchr(in->path, '*');
	if (in->many && !sim_files_last(in->path, &last))
		return complain("%s: there is no file with a number for the '*'", in->path);
	in->count = last + 1;
	in->files = calloc(in->count, sizeof(*in->files));
	if (!in->files)
		return complain("out of memory");
	for (uint32_t i = 0; i < in->count; i++) {
		const char *one = path;

		if (!in->many)
			one = in->path;
		else if (!sim_files_path(in->path, i, path, sizeof(path)))
			return complain("%s: the path is too long", in->path);
		in->files[i].text = sim_file_read(one, &in->files[i].bytes);
		if (!in->files[i].text && !(in->many && errno == ENOENT))
			return complain("%s: cannot read it: %s", one, strerror(errno));
	}
	return 0;
}

static int refuse(const struct graph_input *in, const struct graph_fault *fault)
{
	char path[4096], line[16] = "";

	if (!in->many || !sim_files_path(in->path, fault->file, path, sizeof(path)))
		snprintf(path, sizeof(path), "%s", in->path);
	if (fault->error.line)
		snprintf(line, sizeof(line), ":%" PRIu32, fault->error.line);
	return complain("%s%s: %s", path, line, fault->error.message);
}

/* 0 with *out, which the caller frees; or an exit status after an error message. */
static int graph_load(const char *path, struct graph **out)
{
	struct graph_input in = {.path = path};
	struct graph_fault fault = {0};
	int rc = input_read(&in);

	if (!rc) {
		rc = graph_read(in.files, in.count, out, &fault);
		if (rc == -EINVAL)
			rc = refuse(&in, &fault);
		else if (rc)
			rc = complain("out of memory");
	}
	input_free(&in);
	return rc;
}

static int print_uses(const struct graph *g)
{
	char bytes[SIM_TEXT_BYTES];
	struct graph_use *uses;
	uint32_t count;

	if (graph_uses(g, &uses, &count))
		return complain("out of memory");
	for (uint32_t i = 0; i < count; i++)
		printf("%-11s%" PRIu64 " %s of %" PRIu32 " ranks, %s\n", i ? "" : "collective", uses[i].count,
		       collective_kind_name((enum collective_kind)uses[i].kind), uses[i].members,
		       bytes_text(uses[i].bytes, bytes));
	free(uses);
	return 0;
}

static void print_nodes(const struct graph *g, const struct graph_description *d)
{
	char a[SIM_TEXT_BYTES], b[SIM_TEXT_BYTES];

	printf("ranks      %" PRIu32, g->rank_count);
	if (d->ranks_empty)
		printf(", %" PRIu32 " of them without a node", d->ranks_empty);
	printf("\nnodes      %" PRIu32 ", %" PRIu64 " edges\n", g->node_count, d->edges);
	printf("calcs      %" PRIu64 ", %s in all, %s of the rank that has most\n", d->nodes[GRAPH_CALC],
	       time_text(d->bytes[GRAPH_CALC], a), time_text(d->calc_ps_most, b));
	printf("sends      %" PRIu64 ", %s\n", d->nodes[GRAPH_SEND], bytes_text(d->bytes[GRAPH_SEND], a));
	printf("receives   %" PRIu64 ", %s\n", d->nodes[GRAPH_RECV], bytes_text(d->bytes[GRAPH_RECV], a));
}

int sim_describe(const char *path)
{
	char a[SIM_TEXT_BYTES];
	struct graph_description d;
	struct graph *g;
	int rc = graph_load(path, &g);

	if (rc)
		return rc;
	if (graph_describe(&(struct graph_run_config){.graph = g, .chunks = 1}, &d)) {
		graph_free(g);
		return complain("out of memory");
	}
	print_nodes(g, &d);
	rc = print_uses(g);
	printf("chain      %s, the longest one of calcs\n", time_text(d.chain_ps, a));
	printf("bound      %s, a step with a network in which messages take no time\n", time_text(d.bound_ps, a));
	if (g->skipped)
		printf("skipped    %" PRIu64 " fields and attributes that mean nothing here\n", g->skipped);
	if (d.left)
		printf("STUCK      %" PRIu32 " nodes never end: %s\n", d.left, d.why);
	graph_free(g);
	return rc ? rc : d.left ? EXIT_STUCK : EXIT_SUCCESS;
}

static bool write_piece(void *file, const char *text, size_t bytes)
{
	return fwrite(text, 1, bytes, file) == bytes;
}

static int write_goal(const struct graph *g, const char *path)
{
	bool screen = !strcmp(path, "-");
	FILE *f = screen ? stdout : fopen(path, "w");
	int rc, error;

	if (!f)
		return complain("%s: cannot write it: %s", path, strerror(errno));
	rc = goal_write(g, write_piece, f);
	error = errno;
	if (fflush(f) && !rc) {
		rc = -EIO;
		error = errno;
	}
	if (!screen && fclose(f) && !rc) {
		rc = -EIO;
		error = errno;
	}
	return rc ? complain("%s: cannot write it: %s", path, strerror(error)) : EXIT_SUCCESS;
}

int sim_convert(const char *from, const char *to)
{
	struct text_error err = {0};
	struct graph *g, *lowered;
	int rc = graph_load(from, &g);

	if (rc)
		return rc;
	rc = graph_lower(g, COLLECTIVE_AUTO, 1, &lowered, &err);
	graph_free(g);
	if (rc)
		return complain("%s: %s", from, rc == -ENOMEM ? "out of memory" : err.message);
	rc = write_goal(lowered, to);
	graph_free(lowered);
	return rc;
}
