/* SPDX-License-Identifier: BSD-2-Clause */
/* Rows are read first; then each rank gets its nodes from them. */
#include "workload/aicb.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS_MAX = 1 << 20, NS_PS = 1000, NO_KIND = UINT8_MAX };
enum { STREAM_COMPUTE, STREAM_COMM, STREAM_WEIGHTS };
enum group_type { GROUP_TP, GROUP_DP, GROUP_EP, GROUP_DP_EP, GROUP_TYPES };
enum phase { FORWARD, INPUT, WEIGHT, PHASES };

struct work {
	uint64_t ns, bytes;
	uint8_t kind; /* enum collective_kind, or NO_KIND */
	uint8_t group;
};

struct row {
	struct work work[PHASES];
	uint64_t update_ns;
	uint32_t line, name;
	bool checkpoint, initiates;
};

struct reader {
	struct text text;
	struct text_error *err;
	uint64_t tp, ep, pp, ranks, pp_bytes;
	uint64_t dp;
	struct row *rows;
	uint32_t row_count;
	uint32_t *checkpoints, *initiates; /* row numbers of the header */
	uint32_t checkpoint_count, initiate_count;
	struct graph *graph;
	uint32_t *groups[GROUP_TYPES]; /* of each rank; number + 1, 0: not made yet */
	uint32_t rank;
	uint32_t wait[2]; /* what the rank's next node waits for; GRAPH_NO_NODE */
};

/* ---- the text --------------------------------------------------------------------------------------------------- */

static bool is_policy(struct word w)
{
	return word_is(w, "HYBRID_TRANSFORMER_FWD_IN_BCKWD") || word_is(w, "HYBRID_TRANSFORMER");
}

bool aicb_is(const char *text, size_t bytes)
{
	static const char *const policies[] = {"DATA", "MODEL", "HYBRID_", "MICRO", "DISTRIBUTED_INFERENCE"};
	struct text t;
	struct word w;

	text_start(&t, text, bytes);
	if (!text_token(&t, &w))
		return false;
	for (size_t i = 0; i < sizeof(policies) / sizeof(policies[0]); i++) {
		size_t n = strlen(policies[i]);

		if (w.len >= n && !memcmp(w.at, policies[i], n))
			return true;
	}
	return false;
}

static int read_number(struct reader *r, const char *what, uint64_t max, uint64_t *out)
{
	struct word w;

	if (!text_word(&r->text, &w))
		return text_fail(r->err, r->text.line, "the line ends where %s should be", what);
	if (!word_count(w, max, out))
		return text_fail(r->err, r->text.line, "'%w' for %s; allowed are 0 to %u", w, what, max);
	return 0;
}

/* "checkpoints: 2 5 9": how many, and which. */
static int read_list(struct reader *r, const char *what, uint32_t **rows, uint32_t *count)
{
	uint64_t n, row;
	int rc = read_number(r, what, ROWS_MAX, &n);

	free(*rows);
	*rows = NULL;
	*count = 0;
	/* A number is two bytes at least. */
	if (!rc && n > (uint64_t)(r->text.end - r->text.at) / 2)
		return text_fail(r->err, r->text.line, "%u rows of %s cannot be in this text", n, what);
	if (rc || !n)
		return rc;
	*rows = calloc(n, sizeof(**rows));
	if (!*rows)
		return -ENOMEM;
	while (*count < n && !rc) {
		rc = read_number(r, what, ROWS_MAX, &row);
		if (!rc)
			(*rows)[(*count)++] = (uint32_t)row;
	}
	return rc;
}

static int read_pair(struct reader *r, struct word key)
{
	uint64_t ignored;

	if (word_is(key, "model_parallel_NPU_group:"))
		return read_number(r, "model_parallel_NPU_group", GRAPH_RANKS_MAX, &r->tp);
	if (word_is(key, "ep:"))
		return read_number(r, "ep", GRAPH_RANKS_MAX, &r->ep);
	if (word_is(key, "pp:"))
		return read_number(r, "pp", GRAPH_RANKS_MAX, &r->pp);
	if (word_is(key, "all_gpus:"))
		return read_number(r, "all_gpus", GRAPH_RANKS_MAX, &r->ranks);
	if (word_is(key, "pp_comm:") || word_is(key, "pp_comm"))
		return read_number(r, "pp_comm", GRAPH_BYTES_MAX, &r->pp_bytes);
	if (word_is(key, "vpp:") || word_is(key, "ga:"))
		return read_number(r, "vpp or ga", UINT32_MAX, &ignored);
	if (word_is(key, "checkpoints:"))
		return read_list(r, "checkpoints", &r->checkpoints, &r->checkpoint_count);
	if (word_is(key, "checkpoint_initiates:"))
		return read_list(r, "checkpoint_initiates", &r->initiates, &r->initiate_count);
	return text_fail(r->err, r->text.line,
			 "'%w' in the header; allowed are model_parallel_NPU_group:, ep:, pp:, vpp:, ga:, all_gpus:, "
			 "pp_comm:, checkpoints: and checkpoint_initiates:",
			 key);
}

static int judge_header(struct reader *r)
{
	if (!r->tp || !r->pp || !r->ranks || r->ranks % (r->tp * r->pp))
		return text_fail(r->err, r->text.line,
				 "all_gpus %u is no multiple of model_parallel_NPU_group %u x pp %u, of which none may "
				 "be 0",
				 r->ranks, r->tp, r->pp);
	r->dp = r->ranks / (r->tp * r->pp);
	if (!r->ep || r->dp % r->ep)
		return text_fail(r->err, r->text.line, "ep %u does not divide the %u ranks of a data parallel group",
				 r->ep, r->dp);
	return 0;
}

static int read_header(struct reader *r)
{
	struct word w;
	int rc = 0;

	if (!text_next_line(&r->text) || !text_word(&r->text, &w))
		return text_fail(r->err, r->text.line, "the text has no header");
	if (!is_policy(w))
		return text_fail(r->err, r->text.line,
				 "'%w'; of AICB's workloads HYBRID_TRANSFORMER_FWD_IN_BCKWD and HYBRID_TRANSFORMER are "
				 "simulated",
				 w);
	while (!rc && text_word(&r->text, &w))
		rc = read_pair(r, w);
	return rc ? rc : judge_header(r);
}

/* "ALLREDUCE_DP_EP": a collective and its group. */
static int read_collective(struct reader *r, struct word w, enum phase phase, struct work *out)
{
	static const struct {
		const char *name;
		enum collective_kind kind;
	} kinds[] = {{"ALLREDUCE", COLLECTIVE_ALL_REDUCE},
		     {"ALLGATHER", COLLECTIVE_ALL_GATHER},
		     {"REDUCESCATTER", COLLECTIVE_REDUCE_SCATTER},
		     {"ALLTOALL", COLLECTIVE_ALL_TO_ALL}};

	out->kind = NO_KIND;
	if (word_is(w, "NONE"))
		return 0;
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		size_t n = strlen(kinds[i].name);
		struct word suffix;

		if (w.len < n || memcmp(w.at, kinds[i].name, n) != 0)
			continue;
		suffix = (struct word){w.at + n, w.len - n};
		out->kind = (uint8_t)kinds[i].kind;
		out->group = phase == WEIGHT ? GROUP_DP : GROUP_TP;
		if (word_is(suffix, "_EP"))
			out->group = GROUP_EP;
		else if (word_is(suffix, "_DP_EP"))
			out->group = GROUP_DP_EP;
		else if (suffix.len)
			break;
		return 0;
	}
	return text_fail(
		r->err, r->text.line,
		"'%w' for a collective; allowed are NONE, ALLREDUCE, ALLGATHER, REDUCESCATTER and ALLTOALL, also "
		"with _EP or _DP_EP",
		w);
}

static int read_work(struct reader *r, enum phase phase, struct work *out)
{
	struct word w;
	int rc = read_number(r, "a compute time in ns", GRAPH_CALC_PS_MAX / NS_PS, &out->ns);

	if (rc)
		return rc;
	if (!text_word(&r->text, &w))
		return text_fail(r->err, r->text.line, "the line ends where a collective should be");
	rc = read_collective(r, w, phase, out);
	if (!rc)
		rc = read_number(r, "a size in bytes", GRAPH_BYTES_MAX, &out->bytes);
	if (!rc && !out->bytes)
		out->kind = NO_KIND;
	return rc;
}

static int read_row(struct reader *r)
{
	struct row *row = &r->rows[r->row_count++];
	struct word w;
	int rc;

	if (!text_next_line(&r->text))
		return text_fail(r->err, r->text.line, "the text ends behind %u rows", (uint64_t)r->row_count - 1);
	row->line = r->text.line;
	text_word(&r->text, &w);
	rc = graph_name(r->graph, w.at, w.len, &row->name);
	if (!rc && !text_word(&r->text, &w)) /* a dependency that nobody reads */
		rc = text_fail(r->err, r->text.line, "the line ends where a dependency should be");
	for (int phase = 0; phase < PHASES && !rc; phase++)
		rc = read_work(r, (enum phase)phase, &row->work[phase]);
	if (!rc)
		rc = read_number(r, "an update time in ns", GRAPH_CALC_PS_MAX / NS_PS, &row->update_ns);
	if (!rc && text_word(&r->text, &w))
		rc = text_fail(r->err, r->text.line, "'%w' behind the update time", w);
	return rc;
}

static int mark_rows(struct reader *r)
{
	for (uint32_t i = 0; i < r->checkpoint_count; i++) {
		if (r->checkpoints[i] >= r->row_count)
			return text_fail(r->err, 1, "checkpoint %u; there are %u rows, from 0",
					 (uint64_t)r->checkpoints[i], (uint64_t)r->row_count);
		r->rows[r->checkpoints[i]].checkpoint = true;
	}
	for (uint32_t i = 0; i < r->initiate_count; i++) {
		if (r->initiates[i] >= r->row_count)
			return text_fail(r->err, 1, "checkpoint_initiates %u; there are %u rows, from 0",
					 (uint64_t)r->initiates[i], (uint64_t)r->row_count);
		r->rows[r->initiates[i]].initiates = true;
	}
	return 0;
}

static int read_rows(struct reader *r)
{
	uint64_t count;
	int rc;

	if (!text_next_line(&r->text))
		return text_fail(r->err, r->text.line, "the text ends where the number of rows should be");
	rc = read_number(r, "the number of rows", ROWS_MAX, &count);
	/* A row has twelve words. */
	if (!rc && count > (uint64_t)(r->text.end - r->text.at) / 23)
		return text_fail(r->err, r->text.line, "%u rows cannot be in this text", count);
	if (rc)
		return rc;
	r->rows = calloc(count + 1, sizeof(*r->rows));
	if (!r->rows)
		return -ENOMEM;
	while (r->row_count < count && !rc)
		rc = read_row(r);
	if (!rc && text_next_line(&r->text))
		return text_fail(r->err, r->text.line, "more rows than the %u announced", count);
	return rc ? rc : mark_rows(r);
}

/* ---- groups ------------------------------------------------------------------------------------------------------- */

/* The ranks of the group differ by `stride`, from `first` on. */
static void shape(const struct reader *r, enum group_type type, uint64_t rank, uint64_t *first, uint64_t *count,
		  uint64_t *stride)
{
	uint64_t dp = rank / r->tp % r->dp, stage0 = rank - dp * r->tp;

	*stride = r->tp;
	*count = r->dp;
	*first = stage0;
	switch (type) {
	case GROUP_TP:
		*stride = 1;
		*count = r->tp;
		*first = rank - rank % r->tp;
		break;
	case GROUP_EP:
		*count = r->ep;
		*first = stage0 + dp / r->ep * r->ep * r->tp;
		break;
	case GROUP_DP_EP:
		*count = r->dp / r->ep;
		*stride = r->ep * r->tp;
		*first = stage0 + dp % r->ep * r->tp;
		break;
	default: break;
	}
}

/* The group of the reader's rank, which is made if need be. */
static int group_of(struct reader *r, enum group_type type, uint32_t *group)
{
	uint64_t first, count, stride;
	uint32_t *ranks;
	int rc;

	if (!r->groups[type])
		r->groups[type] = calloc(r->ranks, sizeof(*r->groups[type]));
	if (!r->groups[type])
		return -ENOMEM;
	*group = r->groups[type][r->rank] - 1;
	if (r->groups[type][r->rank])
		return 0;
	shape(r, type, r->rank, &first, &count, &stride);
	ranks = calloc(count, sizeof(*ranks));
	if (!ranks)
		return -ENOMEM;
	for (uint64_t i = 0; i < count; i++)
		ranks[i] = (uint32_t)(first + i * stride);
	rc = graph_group(r->graph, ranks, (uint32_t)count, group);
	for (uint64_t i = 0; i < count && !rc; i++)
		r->groups[type][ranks[i]] = *group + 1;
	free(ranks);
	return rc;
}

/* ---- nodes -------------------------------------------------------------------------------------------------------- */

static int add(struct reader *r, const struct graph_node *n, uint32_t a, uint32_t b, uint32_t *number)
{
	int rc = graph_add(r->graph, n, number);

	if (!rc && a != GRAPH_NO_NODE)
		rc = graph_require(r->graph, *number, a, false);
	if (!rc && b != GRAPH_NO_NODE)
		rc = graph_require(r->graph, *number, b, false);
	if (rc == -E2BIG)
		return text_fail(r->err, n->source, "too many nodes: rows x ranks; allowed are %u",
				 (uint64_t)GRAPH_NODES_MAX);
	return rc;
}

static int add_calc(struct reader *r, const struct row *row, uint64_t ns, uint32_t a, uint32_t b, uint32_t *number)
{
	return add(r,
		   &(struct graph_node){.kind = GRAPH_CALC,
					.rank = r->rank,
					.amount = ns * NS_PS,
					.stream = STREAM_COMPUTE,
					.source = row->line,
					.name = row->name},
		   a, b, number);
}

/* *number stays as it is where the work has no collective. */
static int add_collective(struct reader *r, const struct row *row, const struct work *w, uint8_t stream, uint32_t needs,
			  uint32_t *number)
{
	uint32_t group = 0;
	int rc = w->kind == NO_KIND ? 0 : group_of(r, w->group, &group);

	if (rc || w->kind == NO_KIND)
		return rc;
	return add(r,
		   &(struct graph_node){.kind = GRAPH_COLLECTIVE,
					.rank = r->rank,
					.amount = w->bytes,
					.peer = group,
					.collective = w->kind,
					.stream = stream,
					.source = row->line,
					.name = row->name},
		   needs, GRAPH_NO_NODE, number);
}

/* With the stage before, or behind; *wait moves to it. */
static int add_transfer(struct reader *r, bool send, bool behind)
{
	uint64_t far = r->tp * r->dp, peer = behind ? r->rank + far : r->rank - far;
	struct graph_node n = {.kind = send ? GRAPH_SEND : GRAPH_RECV,
			       .rank = r->rank,
			       .amount = r->pp_bytes,
			       .peer = (uint32_t)peer,
			       .stream = GRAPH_NO_STREAM,
			       .source = 1};
	uint32_t number;
	int rc;

	if (behind ? peer >= r->ranks : r->rank < far)
		return 0;
	rc = add(r, &n, r->wait[0], r->wait[1], &number);
	if (rc || send)
		return rc;
	r->wait[0] = number;
	r->wait[1] = GRAPH_NO_NODE;
	return 0;
}

static int add_forward(struct reader *r, const struct row *row)
{
	int rc = add_calc(r, row, row->work[FORWARD].ns, r->wait[0], r->wait[1], &r->wait[0]);

	r->wait[1] = GRAPH_NO_NODE;
	return rc ? rc : add_collective(r, row, &row->work[FORWARD], STREAM_COMM, r->wait[0], &r->wait[0]);
}

/* The forward rows since the last checkpoint. */
static int add_again(struct reader *r, uint32_t i)
{
	uint32_t first = i;
	int rc = 0;

	while (first && !r->rows[first].checkpoint)
		first--;
	for (; first < i && !rc; first++)
		rc = add_forward(r, &r->rows[first]);
	return rc;
}

static int add_backward(struct reader *r, const struct row *row)
{
	uint32_t input, weight, update;
	int rc = add_calc(r, row, row->work[INPUT].ns, r->wait[0], r->wait[1], &input);

	r->wait[0] = input;
	if (!rc)
		rc = add_collective(r, row, &row->work[INPUT], STREAM_COMM, input, &r->wait[0]);
	if (!rc)
		rc = add_calc(r, row, row->work[WEIGHT].ns, input, GRAPH_NO_NODE, &weight);
	if (rc)
		return rc;
	r->wait[1] = weight;
	update = weight;
	rc = add_collective(r, row, &row->work[WEIGHT], STREAM_WEIGHTS, weight, &update);
	return rc ? rc : add_calc(r, row, row->update_ns, update, GRAPH_NO_NODE, &update);
}

static int add_rank(struct reader *r)
{
	int rc;

	r->wait[0] = r->wait[1] = GRAPH_NO_NODE;
	rc = add_transfer(r, false, false);
	for (uint32_t i = 0; i < r->row_count && !rc; i++)
		rc = add_forward(r, &r->rows[i]);
	if (!rc)
		rc = add_transfer(r, true, true);
	if (!rc)
		rc = add_transfer(r, false, true);
	for (uint32_t i = r->row_count; i-- > 0 && !rc;) {
		rc = r->rows[i].initiates ? add_again(r, i) : 0;
		if (!rc)
			rc = add_backward(r, &r->rows[i]);
	}
	return rc ? rc : add_transfer(r, true, false);
}

static int read_all(struct reader *r)
{
	int rc = read_header(r);

	if (rc)
		return rc;
	r->graph = graph_create((uint32_t)r->ranks);
	if (!r->graph)
		return -ENOMEM;
	rc = read_rows(r);
	for (; r->rank < r->ranks && !rc; r->rank++)
		rc = add_rank(r);
	return rc ? rc : graph_finish(r->graph, r->err);
}

int aicb_read(const char *text, size_t bytes, struct graph **out, struct text_error *err)
{
	struct reader r = {.err = err, .ep = 1, .pp = 1};
	int rc;

	text_start(&r.text, text, bytes);
	rc = read_all(&r);
	free(r.rows);
	free(r.checkpoints);
	free(r.initiates);
	for (int i = 0; i < GROUP_TYPES; i++)
		free(r.groups[i]);
	if (rc)
		graph_free(r.graph);
	else
		*out = r.graph;
	return rc;
}
