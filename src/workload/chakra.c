/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Files are decoded twice: for the groups, which need all ranks, and for the nodes. Both times a file's nodes are in an
 * array that the next file takes over.
 */
#include "workload/chakra.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "workload/protobuf.h"
#include "net/grown.h"

enum chakra_type {
	CHAKRA_INVALID,
	CHAKRA_METADATA,
	CHAKRA_LOAD,
	CHAKRA_STORE,
	CHAKRA_COMPUTE,
	CHAKRA_SEND,
	CHAKRA_RECV,
	CHAKRA_COLLECTIVE
};

enum { STREAM_COMPUTE, STREAM_COMM, STREAM_CPU, STREAM_MEMORY, STREAM_NONE, US_PS = 1000000 };

/* Attributes that count; bit i of record.given: it was there. */
enum attribute { COMM_TYPE, COMM_SIZE, COMM_SRC, COMM_DST, COMM_TAG, IS_CPU_OP, RUNTIME, PG_NAME, ATTRIBUTES };

static const char *const attribute_names[ATTRIBUTES] = {"comm_type", "comm_size", "comm_src", "comm_dst",
							"comm_tag",  "is_cpu_op", "runtime",  "pg_name"};

static const char version[] = "0.0.4";

struct record {
	uint64_t id, type, micros;
	uint64_t value[ATTRIBUTES];
	uint32_t given;
	uint32_t message; /* its number in the file */
	uint32_t node;    /* in the graph */
	uint32_t first_dep, dep_count;
	struct word name, group;
};

/* A rank and a group that it is in. */
struct membership {
	struct word name;
	uint32_t rank;
	uint32_t group; /* in the graph, once it has one */
};

struct reader {
	const struct graph_file *files;
	uint32_t count, file, message;
	struct text_error *err;
	struct graph *graph;
	struct record *records;
	uint32_t record_count, record_room;
	uint64_t *deps;
	uint32_t dep_count, dep_room;
	struct membership *members;
	uint32_t member_count, member_room;
	uint64_t skipped;
};

/* ---- messages ------------------------------------------------------------------------------------------------- */

static int fail(struct reader *r, const char *what)
{
	return text_fail(r->err, r->message, "%s", what);
}

static struct word word_of(const struct protobuf *p)
{
	return (struct word){(const char *)p->at, (size_t)(p->end - p->at)};
}

/* The whole numbers among the values of an attribute. */
static bool number_of(const struct protobuf_field *f, uint64_t *out)
{
	switch (f->number) {
	case 7:  /* int32 */
	case 9:  /* int64 */
	case 11: /* uint32 */
	case 13: /* uint64 */
	case 27: /* bool */ *out = f->value; return f->wire == PROTOBUF_VARINT;
	case 15: /* sint32 */
	case 17: /* sint64 */ *out = f->value >> 1 ^ -(f->value & 1); return f->wire == PROTOBUF_VARINT;
	case 19: /* fixed32 */
	case 23: /* sfixed32 */ *out = f->value; return f->wire == PROTOBUF_FIXED32;
	case 21: /* fixed64 */
	case 25: /* sfixed64 */ *out = f->value; return f->wire == PROTOBUF_FIXED64;
	default: return false;
	}
}

static void set_attribute(struct reader *r, struct record *n, struct word name, const struct protobuf_field *value)
{
	for (int i = 0; i < ATTRIBUTES; i++) {
		if (!word_is(name, attribute_names[i]))
			continue;
		if (i == PG_NAME && value->number == 29 && value->wire == PROTOBUF_BYTES) {
			n->group = word_of(&value->bytes);
			n->given |= 1u << i;
			return;
		}
		if (number_of(value, &n->value[i])) {
			n->given |= 1u << i;
			return;
		}
	}
	r->skipped++;
}

static int read_attribute(struct reader *r, struct record *n, struct protobuf p)
{
	struct protobuf_field f, value = {0};
	struct word name = {0};
	enum protobuf_result got;

	while ((got = protobuf_next(&p, &f)) == PROTOBUF_FIELD) {
		if (f.number == 1 && f.wire == PROTOBUF_BYTES)
			name = word_of(&f.bytes);
		else if (f.number >= 3)
			value = f;
	}
	if (got == PROTOBUF_BAD)
		return fail(r, "an attribute is not protobuf");
	set_attribute(r, n, name, &value);
	return 0;
}

static int add_dep(struct reader *r, struct record *n, uint64_t id)
{
	uint64_t *more = grown(r->deps, r->dep_count, &r->dep_room, sizeof(*more));

	if (!more)
		return -ENOMEM;
	r->deps = more;
	r->deps[r->dep_count++] = id;
	n->dep_count++;
	return 0;
}

/* Packed, or one at a time. */
static int read_deps(struct reader *r, struct record *n, const struct protobuf_field *f)
{
	struct protobuf p = f->bytes;
	uint64_t id;
	int rc = 0;

	if (f->wire == PROTOBUF_VARINT)
		return add_dep(r, n, f->value);
	if (f->wire != PROTOBUF_BYTES)
		return fail(r, "dependencies of a node are not numbers");
	while (p.at < p.end && !rc)
		rc = protobuf_varint(&p, &id) ? add_dep(r, n, id)
					      : fail(r, "dependencies of a node end within a number");
	return rc;
}

static int read_field(struct reader *r, struct record *n, const struct protobuf_field *f)
{
	bool varint = f->wire == PROTOBUF_VARINT, bytes = f->wire == PROTOBUF_BYTES;

	if (f->number == 1 && varint)
		n->id = f->value;
	else if (f->number == 2 && bytes)
		n->name = word_of(&f->bytes);
	else if (f->number == 3 && varint)
		n->type = f->value;
	else if (f->number == 4 || f->number == 5)
		return read_deps(r, n, f);
	else if (f->number == 7 && varint)
		n->micros = f->value;
	else if (f->number == 10 && bytes)
		return read_attribute(r, n, f->bytes);
	else
		r->skipped++;
	return 0;
}

static int read_node(struct reader *r, struct protobuf p)
{
	struct record n = {.message = r->message, .first_dep = r->dep_count}, *more;
	struct protobuf_field f;
	enum protobuf_result got;
	int rc = 0;

	while (!rc && (got = protobuf_next(&p, &f)) == PROTOBUF_FIELD)
		rc = read_field(r, &n, &f);
	if (!rc && got == PROTOBUF_BAD)
		rc = fail(r, "a node is not protobuf");
	if (rc)
		return rc;
	more = grown(r->records, r->record_count, &r->record_room, sizeof(*more));
	if (!more)
		return -ENOMEM;
	r->records = more;
	r->records[r->record_count++] = n;
	return 0;
}

static int read_metadata(struct reader *r, struct protobuf p)
{
	struct protobuf_field f;
	enum protobuf_result got;
	struct word w = {"", 0};

	while ((got = protobuf_next(&p, &f)) == PROTOBUF_FIELD) {
		if (f.number == 1 && f.wire == PROTOBUF_BYTES)
			w = word_of(&f.bytes);
		else
			r->skipped++;
	}
	if (got == PROTOBUF_BAD)
		return fail(r, "the first message is not GlobalMetadata of a Chakra trace");
	if (!word_is(w, version))
		return text_fail(r->err, r->message, "schema version '%w'; allowed is %s", w, version);
	return 0;
}

/* The next message of the file. */
static int next_message(struct reader *r, struct protobuf *at, struct protobuf *out)
{
	uint64_t length;

	r->message++;
	if (!protobuf_varint(at, &length) || length > (size_t)(at->end - at->at))
		return fail(r, "the file ends within a message");
	*out = (struct protobuf){at->at, at->at + length};
	at->at += length;
	return 0;
}

static int compare_ids(const void *a, const void *b)
{
	const struct record *x = a, *y = b;

	return x->id < y->id ? -1 : x->id > y->id;
}

/* All records of a file, in order of their ids. */
static int read_file(struct reader *r, uint32_t file)
{
	struct protobuf at = {(const uint8_t *)r->files[file].text, NULL}, message;
	int rc;

	at.end = at.at + r->files[file].bytes;
	r->file = file;
	r->message = r->record_count = r->dep_count = 0;
	rc = next_message(r, &at, &message);
	if (!rc)
		rc = read_metadata(r, message);
	while (!rc && at.at < at.end) {
		rc = next_message(r, &at, &message);
		if (!rc)
			rc = read_node(r, message);
	}
	if (!rc && r->record_count)
		qsort(r->records, r->record_count, sizeof(*r->records), compare_ids);
	for (uint32_t i = 1; i < r->record_count && !rc; i++) {
		r->message = r->records[i].message;
		if (r->records[i].id == r->records[i - 1].id)
			rc = text_fail(r->err, r->message, "two nodes have the id %u", r->records[i].id);
	}
	return rc;
}

/* ---- groups ---------------------------------------------------------------------------------------------------- */

static int compare_words(struct word a, struct word b)
{
	int by = memcmp(a.at ? a.at : "", b.at ? b.at : "", a.len < b.len ? a.len : b.len);

	return by ? by : a.len < b.len ? -1 : a.len > b.len;
}

static int compare_members(const void *a, const void *b)
{
	const struct membership *x = a, *y = b;
	int by = compare_words(x->name, y->name);

	return by ? by : x->rank < y->rank ? -1 : x->rank > y->rank;
}

/* The groups that the rank's collectives name, each once. */
static int note_groups(struct reader *r, uint32_t rank)
{
	uint32_t first = r->member_count;

	for (uint32_t i = 0; i < r->record_count; i++) {
		const struct record *n = &r->records[i];
		struct membership *more;
		uint32_t k = first;

		if (n->type != CHAKRA_COLLECTIVE || !n->group.len)
			continue;
		while (k < r->member_count && compare_words(r->members[k].name, n->group))
			k++;
		if (k < r->member_count)
			continue;
		more = grown(r->members, r->member_count, &r->member_room, sizeof(*more));
		if (!more)
			return -ENOMEM;
		r->members = more;
		r->members[r->member_count++] = (struct membership){n->group, rank, 0};
	}
	return 0;
}

static int add_group(struct reader *r, struct membership *m, uint32_t count, uint32_t *ranks)
{
	uint32_t group;
	int rc;

	for (uint32_t i = 0; i < count; i++)
		ranks[i] = m ? m[i].rank : i;
	rc = graph_group(r->graph, ranks, count, &group);
	for (uint32_t i = 0; m && i < count; i++)
		m[i].group = group;
	return rc;
}

/* Group 0 is all ranks; the others follow in order of their names. */
static int make_groups(struct reader *r)
{
	uint32_t *ranks = malloc(r->count * sizeof(*ranks));
	int rc = ranks ? add_group(r, NULL, r->count, ranks) : -ENOMEM;

	if (r->member_count)
		qsort(r->members, r->member_count, sizeof(*r->members), compare_members);
	for (uint32_t i = 0, end; i < r->member_count && !rc; i = end) {
		for (end = i + 1; end < r->member_count; end++) {
			if (compare_words(r->members[end].name, r->members[i].name))
				break;
		}
		rc = add_group(r, &r->members[i], end - i, ranks);
	}
	free(ranks);
	return rc;
}

static uint32_t group_of(const struct reader *r, const struct record *n, uint32_t rank)
{
	struct membership key = {n->group, rank, 0};
	const struct membership *m;

	if (!n->group.len)
		return 0;
	m = bsearch(&key, r->members, r->member_count, sizeof(key), compare_members);
	return m->group;
}

/* ---- nodes ------------------------------------------------------------------------------------------------------ */

static bool has(const struct record *n, enum attribute a)
{
	return n->given >> a & 1;
}

/* The attribute, from 0 to max; without it `otherwise`, or with UINT64_MAX a failure. */
static int get(struct reader *r, const struct record *n, enum attribute a, uint64_t max, uint64_t otherwise,
	       uint64_t *out)
{
	*out = has(n, a) ? n->value[a] : otherwise;
	if (!has(n, a) && otherwise == UINT64_MAX)
		return text_fail(r->err, n->message, "node %u has no attribute %s", n->id, attribute_names[a]);
	if (*out > max)
		return text_fail(r->err, n->message, "%s of node %u is %u; allowed are 0 to %u", attribute_names[a],
				 n->id, *out, max);
	return 0;
}

static int set_time(struct reader *r, const struct record *n, struct graph_node *out)
{
	uint64_t micros = has(n, RUNTIME) ? n->value[RUNTIME] : n->micros;

	if (micros > GRAPH_CALC_PS_MAX / US_PS)
		return text_fail(r->err, n->message, "node %u takes %u us; allowed are 0 to %u", n->id, micros,
				 (uint64_t)GRAPH_CALC_PS_MAX / US_PS);
	out->amount = micros * US_PS;
	return 0;
}

static int set_transfer(struct reader *r, const struct record *n, struct graph_node *out)
{
	bool send = n->type == CHAKRA_SEND;
	uint64_t peer, tag;
	int rc = get(r, n, COMM_SIZE, GRAPH_BYTES_MAX, UINT64_MAX, &out->amount);

	if (!rc)
		rc = get(r, n, send ? COMM_DST : COMM_SRC, r->count - 1, UINT64_MAX, &peer);
	if (!rc)
		rc = get(r, n, COMM_TAG, UINT32_MAX, 0, &tag);
	if (rc)
		return rc;
	out->kind = send ? GRAPH_SEND : GRAPH_RECV;
	out->stream = send ? STREAM_COMM : GRAPH_NO_STREAM;
	out->peer = (uint32_t)peer;
	out->tag = (uint32_t)tag;
	return 0;
}

static int set_collective(struct reader *r, const struct record *n, struct graph_node *out)
{
	static const uint8_t kinds[] = {COLLECTIVE_ALL_REDUCE, COLLECTIVE_REDUCE,         COLLECTIVE_ALL_GATHER,
					COLLECTIVE_GATHER,     COLLECTIVE_SCATTER,        COLLECTIVE_BROADCAST,
					COLLECTIVE_ALL_TO_ALL, COLLECTIVE_REDUCE_SCATTER, COLLECTIVE_REDUCE_SCATTER,
					COLLECTIVE_BARRIER};
	uint64_t type, root;
	uint32_t members;
	int rc = get(r, n, COMM_TYPE, sizeof(kinds) - 1, UINT64_MAX, &type);

	if (rc)
		return rc;
	out->kind = GRAPH_COLLECTIVE;
	out->collective = kinds[type];
	out->stream = STREAM_COMM;
	out->peer = group_of(r, n, out->rank);
	members = r->graph->groups[out->peer].count;
	rc = get(r, n, COMM_SIZE, GRAPH_BYTES_MAX, kinds[type] == COLLECTIVE_BARRIER ? 0 : UINT64_MAX, &out->amount);
	if (!rc && (kinds[type] == COLLECTIVE_ALL_GATHER || kinds[type] == COLLECTIVE_GATHER)) {
		if (out->amount > GRAPH_BYTES_MAX / members)
			return text_fail(r->err, n->message, "comm_size of node %u is %u; %u ranks may have %u in all",
					 n->id, out->amount, (uint64_t)members, (uint64_t)GRAPH_BYTES_MAX);
		out->amount *= members;
	}
	if (rc || !has(n, COMM_SRC))
		return rc;
	rc = get(r, n, COMM_SRC, r->count - 1, 0, &root);
	if (rc)
		return rc;
	out->root = graph_position(r->graph, out->peer, (uint32_t)root);
	if (out->root == members)
		rc = text_fail(r->err, n->message, "the root of node %u, rank %u, is not in its group", n->id, root);
	return rc;
}

static int set_node(struct reader *r, const struct record *n, struct graph_node *out)
{
	switch (n->type) {
	case CHAKRA_COMPUTE:
		out->stream = has(n, IS_CPU_OP) && n->value[IS_CPU_OP] ? STREAM_CPU : STREAM_COMPUTE;
		return set_time(r, n, out);
	case CHAKRA_LOAD:
	case CHAKRA_STORE: out->stream = STREAM_MEMORY; return set_time(r, n, out);
	case CHAKRA_SEND:
	case CHAKRA_RECV: return set_transfer(r, n, out);
	case CHAKRA_COLLECTIVE: return set_collective(r, n, out);
	default: out->stream = STREAM_NONE; return 0;
	}
}

static int limit(struct reader *r, int rc)
{
	return rc == -E2BIG ? fail(r, "too many nodes or dependencies") : rc;
}

static int add_node(struct reader *r, struct record *n, uint32_t rank)
{
	struct graph_node node = {.kind = GRAPH_CALC, .rank = rank, .source = n->message};
	int rc = set_node(r, n, &node);

	if (!rc && n->name.len)
		rc = graph_name(r->graph, n->name.at, n->name.len, &node.name);
	return rc ? rc : limit(r, graph_add(r->graph, &node, &n->node));
}

static int add_deps(struct reader *r, const struct record *n)
{
	for (uint32_t i = 0; i < n->dep_count; i++) {
		struct record key = {.id = r->deps[n->first_dep + i]};
		const struct record *needs = bsearch(&key, r->records, r->record_count, sizeof(key), compare_ids);
		int rc;

		if (!needs)
			return text_fail(r->err, n->message, "node %u waits for node %u, which the file has not", n->id,
					 key.id);
		rc = limit(r, graph_require(r->graph, n->node, needs->node, false));
		if (rc)
			return rc;
	}
	return 0;
}

static int add_rank(struct reader *r, uint32_t rank)
{
	int rc = read_file(r, rank);

	for (uint32_t i = 0; i < r->record_count && !rc; i++)
		rc = add_node(r, &r->records[i], rank);
	for (uint32_t i = 0; i < r->record_count && !rc; i++)
		rc = add_deps(r, &r->records[i]);
	return rc;
}

static int read_all(struct reader *r)
{
	int rc = 0;

	r->graph = graph_create(r->count);
	if (!r->graph)
		return -ENOMEM;
	r->graph->source_word = "message";
	for (uint32_t i = 0; i < r->count && !rc; i++) {
		rc = read_file(r, i);
		if (!rc)
			rc = note_groups(r, i);
	}
	if (!rc)
		rc = make_groups(r);
	r->skipped = 0;
	for (uint32_t i = 0; i < r->count && !rc; i++)
		rc = add_rank(r, i);
	r->graph->skipped = r->skipped;
	return rc ? rc : graph_finish(r->graph, r->err);
}

bool chakra_is(const struct graph_file *f)
{
	struct protobuf p = {(const uint8_t *)f->text, (const uint8_t *)f->text + f->bytes};
	uint64_t length;

	/* The first message begins with a field of bytes: the version, or an attribute in older schemas. */
	return protobuf_varint(&p, &length) && length >= 2 && length <= (size_t)(p.end - p.at) &&
	       p.at[0] == (1 << 3 | 2) && p.at[1] <= length - 2;
}

int chakra_read(const struct graph_file *files, uint32_t count, struct graph **out, struct graph_fault *fault)
{
	struct reader r = {.files = files, .count = count, .err = &fault->error};
	int rc;

	if (!count || count > GRAPH_RANKS_MAX)
		return text_fail(&fault->error, 0, "%u ranks; allowed are 1 to %u", (uint64_t)count,
				 (uint64_t)GRAPH_RANKS_MAX);
	rc = read_all(&r);
	fault->file = r.file;
	free(r.records);
	free(r.deps);
	free(r.members);
	if (rc)
		graph_free(r.graph);
	else
		*out = r.graph;
	return rc;
}
