/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One statement at a time. Labels of a rank are in a hash table that the next rank empties; edges are kept until the
 * rank's end, as their labels may come later.
 */
#include "workload/goal.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "net/grown.h"

enum { CPU_MAX = GRAPH_STREAMS_MAX - 1, NIC_MAX = 255, NS_PS = 1000 };

struct label {
	struct word word;
	uint32_t node;
	uint32_t next; /* label + 1 */
};

struct need { /* an edge whose labels are not known yet */
	struct word node, needs;
	uint32_t line;
	bool start;
};

struct reader {
	const char *at, *end;
	uint32_t line;
	struct text_error *err;
	struct graph *graph;
	uint32_t rank; /* of the block; UINT32_MAX: outside */
	struct label *labels;
	uint32_t label_count, label_room;
	uint32_t *buckets; /* label + 1 */
	uint32_t bucket_count;
	struct need *needs;
	uint32_t need_count, need_room;
};

/* ---- words ------------------------------------------------------------------------------------------------- */

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool is_letter(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* To the end of the comment that begins here. */
static void skip_comment(struct reader *r)
{
	if (r->at[1] == '/') {
		while (r->at < r->end && *r->at != '\n')
			r->at++;
		return;
	}
	for (r->at += 2; r->at < r->end; r->at++) {
		r->line += *r->at == '\n';
		if (*r->at == '*' && r->end - r->at > 1 && r->at[1] == '/') {
			r->at += 2;
			return;
		}
	}
}

/* Blanks and comments; with `lines`, also the ends of lines. */
static void skip(struct reader *r, bool lines)
{
	while (r->at < r->end) {
		char c = *r->at;

		if (c == '/' && r->end - r->at > 1 && (r->at[1] == '/' || r->at[1] == '*')) {
			skip_comment(r);
		} else if (c == ' ' || c == '\t' || c == '\r' || (lines && c == '\n')) {
			r->line += c == '\n';
			r->at++;
		} else {
			return;
		}
	}
}

/*
 * The next word of the line: a name, a number, or one other character; digits end where letters begin, as in "8b".
 * Empty: the line has ended.
 */
static struct word next_word(struct reader *r)
{
	const char *from;

	skip(r, false);
	from = r->at;
	if (r->at == r->end || *r->at == '\n')
		return (struct word){from, 0};
	if (is_digit(*r->at)) {
		while (r->at < r->end && is_digit(*r->at))
			r->at++;
	} else if (is_letter(*r->at) || *r->at == '_') {
		while (r->at < r->end && (is_letter(*r->at) || is_digit(*r->at) || *r->at == '_'))
			r->at++;
	} else {
		r->at++;
	}
	return (struct word){from, (size_t)(r->at - from)};
}

static int fail_word(struct reader *r, struct word w, const char *wanted)
{
	if (!w.len)
		return text_fail(r->err, r->line, "the line ends where %s should be", wanted);
	return text_fail(r->err, r->line, "'%w'; here should be %s", w, wanted);
}

static int expect(struct reader *r, const char *word)
{
	struct word w = next_word(r);

	return word_is(w, word) ? 0 : fail_word(r, w, word);
}

static int read_number(struct reader *r, const char *what, uint64_t max, uint64_t *out)
{
	struct word w = next_word(r);

	if (w.len && word_count(w, max, out))
		return 0;
	if (!w.len)
		return fail_word(r, w, what);
	if (word_is(w, "-"))
		return text_fail(r->err, r->line, "'-' for %s; a source or a tag of any (-1) is not simulated", what);
	return text_fail(r->err, r->line, "'%w' for %s; allowed are 0 to %u", w, what, max);
}

static int end_line(struct reader *r)
{
	struct word w = next_word(r);

	return w.len ? fail_word(r, w, "the end of the line") : 0;
}

/* ---- labels ------------------------------------------------------------------------------------------------- */

static uint32_t hash_of(struct word w)
{
	uint32_t h = 2166136261u;

	for (size_t i = 0; i < w.len; i++)
		h = (h ^ (uint8_t)w.at[i]) * 16777619u;
	return h;
}

static const struct label *find_label(const struct reader *r, struct word w)
{
	if (!r->bucket_count)
		return NULL;
	for (uint32_t i = r->buckets[hash_of(w) & (r->bucket_count - 1)]; i; i = r->labels[i - 1].next) {
		const struct label *l = &r->labels[i - 1];

		if (l->word.len == w.len && !memcmp(l->word.at, w.at, w.len))
			return l;
	}
	return NULL;
}

static bool widen(struct reader *r)
{
	uint32_t count = r->bucket_count ? 2 * r->bucket_count : 256;
	uint32_t *more = calloc(count, sizeof(*more));

	if (!more)
		return false;
	free(r->buckets);
	r->buckets = more;
	r->bucket_count = count;
	for (uint32_t i = 0; i < r->label_count; i++) {
		uint32_t *at = &more[hash_of(r->labels[i].word) & (count - 1)];

		r->labels[i].next = *at;
		*at = i + 1;
	}
	return true;
}

static int add_label(struct reader *r, struct word w, uint32_t node)
{
	struct label *more;
	uint32_t *at;

	if (find_label(r, w))
		return text_fail(r->err, r->line, "a second '%w' in rank %u", w, (uint64_t)r->rank);
	more = grown(r->labels, r->label_count, &r->label_room, sizeof(*more));
	if (!more)
		return -ENOMEM;
	r->labels = more;
	if (r->label_count >= r->bucket_count && !widen(r))
		return -ENOMEM;
	at = &r->buckets[hash_of(w) & (r->bucket_count - 1)];
	r->labels[r->label_count] = (struct label){w, node, *at};
	*at = ++r->label_count;
	return 0;
}

static int add_need(struct reader *r, struct word node, bool start)
{
	struct word needs = next_word(r);
	struct need *more;

	if (!needs.len || !is_letter(*needs.at))
		return fail_word(r, needs, "a label");
	more = grown(r->needs, r->need_count, &r->need_room, sizeof(*more));
	if (!more)
		return -ENOMEM;
	r->needs = more;
	r->needs[r->need_count++] = (struct need){node, needs, r->line, start};
	return end_line(r);
}

/* ---- statements --------------------------------------------------------------------------------------------- */

static int limit(struct reader *r, int rc)
{
	if (rc != -E2BIG)
		return rc;
	return text_fail(r->err, r->line, "too many statements; allowed are %u in all", (uint64_t)GRAPH_NODES_MAX);
}

static int add_node(struct reader *r, struct graph_node *n, struct word label)
{
	uint32_t number;
	int rc;

	n->rank = r->rank;
	n->source = r->line;
	rc = limit(r, graph_add(r->graph, n, &number));
	return !rc && label.len ? add_label(r, label, number) : rc;
}

/* "cpu 1", "nic 0", "tag 5" behind a statement, in any order. */
static int read_options(struct reader *r, struct graph_node *n)
{
	bool moves = n->kind != GRAPH_CALC;
	uint64_t value;
	int rc = 0;

	while (!rc) {
		struct word w = next_word(r);

		if (!w.len)
			return 0;
		if (moves && word_is(w, "tag")) {
			rc = read_number(r, "a tag", UINT32_MAX, &value);
			if (!rc)
				n->tag = (uint32_t)value;
		} else if (word_is(w, "cpu")) {
			rc = read_number(r, "a cpu", CPU_MAX, &value);
			if (!rc && !moves)
				n->stream = (uint8_t)value;
		} else if (moves && word_is(w, "nic")) {
			rc = read_number(r, "a nic", NIC_MAX, &value);
		} else {
			return fail_word(r, w, moves ? "tag, cpu or nic" : "cpu");
		}
	}
	return rc;
}

static int read_calc(struct reader *r, struct word label)
{
	struct graph_node n = {.kind = GRAPH_CALC};
	uint64_t ns;
	int rc = read_number(r, "a time in ns", GRAPH_CALC_PS_MAX / NS_PS, &ns);

	if (!rc)
		rc = read_options(r, &n);
	if (rc)
		return rc;
	n.amount = ns * NS_PS;
	return add_node(r, &n, label);
}

static int read_transfer(struct reader *r, struct word label, bool send)
{
	struct graph_node n = {.kind = send ? GRAPH_SEND : GRAPH_RECV, .stream = GRAPH_NO_STREAM};
	uint64_t peer;
	int rc = read_number(r, "a size", GRAPH_BYTES_MAX, &n.amount);

	if (!rc)
		rc = expect(r, "b");
	if (!rc)
		rc = expect(r, send ? "to" : "from");
	if (!rc)
		rc = read_number(r, "a rank", r->graph->rank_count - 1, &peer);
	if (rc)
		return rc;
	n.peer = (uint32_t)peer;
	rc = read_options(r, &n);
	return rc ? rc : add_node(r, &n, label);
}

static int read_operation(struct reader *r, struct word label, struct word w)
{
	if (word_is(w, "calc"))
		return read_calc(r, label);
	if (word_is(w, "send") || word_is(w, "recv"))
		return read_transfer(r, label, word_is(w, "send"));
	return fail_word(r, w, "calc, send or recv");
}

/* The edges of the rank that ends. */
static int resolve(struct reader *r)
{
	for (uint32_t i = 0; i < r->need_count; i++) {
		const struct need *e = &r->needs[i];
		const struct label *node = find_label(r, e->node), *needs = find_label(r, e->needs);
		int rc;

		if (!node || !needs)
			return text_fail(r->err, e->line, "rank %u has no '%w'", (uint64_t)r->rank,
					 node ? e->needs : e->node);
		rc = limit(r, graph_require(r->graph, node->node, needs->node, e->start));
		if (rc)
			return rc;
	}
	return 0;
}

static int end_rank(struct reader *r)
{
	int rc = resolve(r);

	r->rank = UINT32_MAX;
	for (uint32_t i = 0; i < r->label_count; i++)
		r->buckets[hash_of(r->labels[i].word) & (r->bucket_count - 1)] = 0;
	r->need_count = r->label_count = 0;
	return rc ? rc : end_line(r);
}

static int read_statement(struct reader *r)
{
	struct word w = next_word(r), next;

	if (word_is(w, "}"))
		return end_rank(r);
	if (word_is(w, "calc") || word_is(w, "send") || word_is(w, "recv"))
		return read_operation(r, (struct word){w.at, 0}, w);
	if (!is_letter(*w.at))
		return fail_word(r, w, "a label, calc, send, recv or }");
	next = next_word(r);
	if (word_is(next, ":"))
		return read_operation(r, w, next_word(r));
	if (word_is(next, "requires") || word_is(next, "irequires"))
		return add_need(r, w, word_is(next, "irequires"));
	return fail_word(r, next, "':', requires or irequires");
}

static int read_rank(struct reader *r)
{
	uint64_t rank;
	int rc = expect(r, "rank");

	if (!rc)
		rc = read_number(r, "a rank", r->graph->rank_count - 1, &rank);
	if (!rc && r->graph->nodes_of[rank])
		return text_fail(r->err, r->line, "a second block of rank %u", rank);
	if (!rc)
		rc = expect(r, "{");
	if (!rc)
		r->rank = (uint32_t)rank;
	return rc;
}

static int read_all(struct reader *r)
{
	uint64_t ranks;
	int rc;

	skip(r, true);
	rc = expect(r, "num_ranks");
	if (!rc)
		rc = read_number(r, "a number of ranks", GRAPH_RANKS_MAX, &ranks);
	if (!rc && !ranks)
		return text_fail(r->err, r->line, "0 ranks; allowed are 1 to %u", (uint64_t)GRAPH_RANKS_MAX);
	if (rc)
		return rc;
	r->graph = graph_create((uint32_t)ranks);
	if (!r->graph)
		return -ENOMEM;
	for (skip(r, true); r->at < r->end && !rc; skip(r, true))
		rc = r->rank == UINT32_MAX ? read_rank(r) : read_statement(r);
	if (!rc && r->rank != UINT32_MAX)
		return text_fail(r->err, r->line, "the text ends within rank %u", (uint64_t)r->rank);
	return rc ? rc : graph_finish(r->graph, r->err);
}

int goal_read(const char *text, size_t bytes, struct graph **out, struct text_error *err)
{
	struct reader r = {.at = text, .end = bytes ? text + bytes : text, .line = 1, .err = err, .rank = UINT32_MAX};
	int rc = read_all(&r);

	free(r.labels);
	free(r.buckets);
	free(r.needs);
	if (rc)
		graph_free(r.graph);
	else
		*out = r.graph;
	return rc;
}

/* ---- writing ------------------------------------------------------------------------------------------------- */

struct sink {
	goal_sink write;
	void *ctx;
	char line[160];
	size_t len;
	bool refused;
};

static void put(struct sink *s, const char *text)
{
	for (; *text; text++) {
		assert(s->len < sizeof(s->line));
		s->line[s->len++] = *text;
	}
}

static void put_number(struct sink *s, uint64_t n)
{
	char digits[21];
	size_t i = sizeof(digits) - 1;

	digits[i] = '\0';
	do
		digits[--i] = (char)('0' + n % 10);
	while (n /= 10);
	put(s, digits + i);
}

static void end_of_line(struct sink *s)
{
	put(s, "\n");
	s->refused |= !s->write(s->ctx, s->line, s->len);
	s->len = 0;
}

static void put_label(struct sink *s, const struct graph *g, uint32_t node)
{
	put(s, "l");
	put_number(s, graph_number(g, node));
}

static void write_node(struct sink *s, const struct graph *g, uint32_t node)
{
	const struct graph_node *n = &g->nodes[node];

	assert(n->kind != GRAPH_COLLECTIVE);
	put_label(s, g, node);
	if (n->kind == GRAPH_CALC) {
		put(s, ": calc ");
		put_number(s, (n->amount + NS_PS / 2) / NS_PS);
		if (n->stream) {
			put(s, " cpu ");
			put_number(s, n->stream);
		}
	} else {
		put(s, n->kind == GRAPH_SEND ? ": send " : ": recv ");
		put_number(s, n->amount);
		put(s, n->kind == GRAPH_SEND ? "b to " : "b from ");
		put_number(s, n->peer);
		put(s, " tag ");
		put_number(s, n->tag);
	}
	end_of_line(s);
}

static void write_needs(struct sink *s, const struct graph *g, uint32_t node)
{
	for (uint32_t i = g->first_edge[node]; i < g->first_edge[node + 1]; i++) {
		put_label(s, g, g->edges[i].node);
		put(s, g->edges[i].start ? " irequires " : " requires ");
		put_label(s, g, node);
		end_of_line(s);
	}
}

int goal_write(const struct graph *g, goal_sink write, void *ctx)
{
	struct sink s = {.write = write, .ctx = ctx};

	put(&s, "num_ranks ");
	put_number(&s, g->rank_count);
	end_of_line(&s);
	for (uint32_t rank = 0; rank < g->rank_count && !s.refused; rank++) {
		uint32_t first = g->first_node[rank], end = first + g->nodes_of[rank];

		put(&s, "\nrank ");
		put_number(&s, rank);
		put(&s, " {");
		end_of_line(&s);
		for (uint32_t i = first; i < end; i++)
			write_node(&s, g, i);
		for (uint32_t i = first; i < end; i++)
			write_needs(&s, g, i);
		put(&s, "}");
		end_of_line(&s);
	}
	return s.refused ? -EIO : 0;
}
