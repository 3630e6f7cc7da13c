/* SPDX-License-Identifier: BSD-2-Clause */
/* A count is accepted only if the text is long enough for the items that it announces. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "workload/workload_file.h"
#include "workload/workload_list.h"

enum { CLASS_MIN = 1, CLASS_MAX = 7, PORT_MAX = 65535 }; /* class 0 is for control packets */

struct reader {
	struct text text;
	struct text_error *err;
	const struct topology *topology; /* NULL: a node's number is its host */
	uint64_t nodes;                  /* numbers are below */
	struct list *list;
	uint32_t highest; /* host seen */
};

static int read_node(struct reader *r, struct word w, uint32_t *host)
{
	uint64_t number;

	if (!word_count(w, UINT32_MAX, &number) || number >= r->nodes)
		return text_fail(r->err, r->text.line, "'%w' for a host; allowed are 0 to %u", w, r->nodes - 1);
	if (!r->topology)
		*host = (uint32_t)number;
	else if (!topology_host(r->topology, (uint32_t)number, host))
		return text_fail(r->err, r->text.line, "the topology has no host %u", number);
	if (*host > r->highest)
		r->highest = *host;
	return 0;
}

static int read_pair(struct reader *r, struct word src, struct word dst, struct listed *item)
{
	int rc = read_node(r, src, &item->src);

	if (!rc)
		rc = read_node(r, dst, &item->dst);
	if (!rc && item->src == item->dst)
		rc = text_fail(r->err, r->text.line, "a flow from host %w to itself", src);
	return rc;
}

static int read_bytes(struct reader *r, struct word w, struct listed *item)
{
	if (!word_count(w, WORKLOAD_BYTES_MAX, &item->bytes) || !item->bytes)
		return text_fail(r->err, r->text.line, "'%w' for a size; allowed are 1 to %u bytes", w,
				 (uint64_t)WORKLOAD_BYTES_MAX);
	return 0;
}

static int read_start(struct reader *r, struct word w, int exponent, struct listed *item)
{
	if (!word_number(w, exponent, &item->start_ps) || item->start_ps > WORKLOAD_TIME_PS_MAX)
		return text_fail(r->err, r->text.line, "'%w' for a start; allowed are 0 to %u ps, here in %s", w,
				 (uint64_t)WORKLOAD_TIME_PS_MAX, exponent ? "seconds" : "ps");
	return 0;
}

static int read_number(struct reader *r, struct word w, const char *what, uint64_t min, uint64_t max, uint64_t *out)
{
	if (!word_count(w, max, out) || *out < min)
		return text_fail(r->err, r->text.line, "'%w' for %s; allowed are %u to %u", w, what, min, max);
	return 0;
}

/* Passes the list on, with times counted from start_ps, or frees it after a failure. */
static int finish(struct reader *r, int rc, uint64_t start_ps, struct workload_part **out)
{
	if (rc) {
		list_free(r->list);
		return rc;
	}
	for (uint32_t i = 0; i < list_count(r->list); i++) {
		struct listed *item = &list_items(r->list)[i];

		if (!item->waits)
			item->start_ps += start_ps;
	}
	rc = list_finish(r->list, out);
	if (!rc)
		(*out)->host_count = r->topology ? r->topology->host_count : (r->highest ? r->highest + 1 : 2);
	return rc;
}

/* hpcc-flows */

/* of: the class of all, or 0: as the text says */
static int read_flow(struct reader *r, uint8_t of)
{
	enum { SRC, DST, CLASS, DPORT, BYTES, START, WORDS };
	struct listed *item = list_add(r->list);
	struct word w[WORDS];
	uint64_t class, dport;
	int rc;

	for (int i = 0; i < WORDS; i++)
		if (!text_token(&r->text, &w[i]))
			return text_fail(r->err, r->text.line,
					 "the text ends within flow %u: src dst class dport bytes "
					 "start_s",
					 (uint64_t)list_count(r->list));
	rc = read_pair(r, w[SRC], w[DST], item);
	if (!rc)
		rc = read_number(r, w[CLASS], "a class", CLASS_MIN, CLASS_MAX, &class);
	if (!rc)
		rc = read_number(r, w[DPORT], "a port", 0, PORT_MAX, &dport);
	if (!rc)
		rc = read_bytes(r, w[BYTES], item);
	if (!rc)
		rc = read_start(r, w[START], 12, item);
	if (!rc)
		item->class = of ? of : (uint8_t) class;
	return rc;
}

int hpcc_flows_create(struct workload_part **out, const struct workload_part *c, const struct workload_params *p,
		      struct text_error *err)
{
	struct reader r = {.err = err, .topology = p->topology, .nodes = WORKLOAD_HOSTS_MAX};
	uint64_t count;
	struct word w;
	int rc;

	text_start(&r.text, p->text, p->text_bytes);
	if (!text_token(&r.text, &w))
		return text_fail(err, r.text.line, "the text ends where the number of flows should be");
	rc = read_number(&r, w, "the number of flows", 0, WORKLOAD_LIST_MAX, &count);
	/* A flow is six words. */
	if (!rc && count > p->text_bytes / 11)
		rc = text_fail(err, r.text.line, "%u flows in a text of %u bytes cannot be", count,
			       (uint64_t)p->text_bytes);
	if (rc)
		return rc;
	r.list = list_create(c, (uint32_t)count, 0, 0);
	if (!r.list)
		return -ENOMEM;
	for (uint64_t i = 0; i < count && !rc; i++)
		rc = read_flow(&r, c->class);
	return finish(&r, rc, c->start_ps, out);
}

/* htsim-matrix */

/* The triggers of a connection, by the file's ids; 0: none. */
struct ids {
	uint32_t id, waits, sent, received;
	uint32_t line;
};

struct named_trigger {
	uint32_t id;
	struct list_trigger trigger;
};

struct matrix {
	struct reader r;
	const struct workload_part *common;
	uint64_t bytes; /* of the text */
	uint64_t connections, triggers;
	bool has_nodes, has_connections;
	struct ids *ids;
	struct named_trigger *named;
	uint32_t named_count;
};

/* The header has announced the counts. */
static int begin_body(struct matrix *m)
{
	if (m->r.list)
		return 0;
	if (!m->has_nodes || !m->has_connections)
		return text_fail(m->r.err, m->r.text.line,
				 "Nodes and Connections must come before the first connection");
	if (m->connections > m->bytes / 4 || m->triggers > m->bytes / 4)
		return text_fail(m->r.err, m->r.text.line,
				 "%u connections and %u triggers in a text of %u bytes cannot be", m->connections,
				 m->triggers, m->bytes);
	m->ids = calloc(m->connections + 1, sizeof(*m->ids));
	m->named = calloc(m->triggers + 1, sizeof(*m->named));
	m->r.list = list_create(m->common, (uint32_t)m->connections, (uint32_t)m->triggers, (uint32_t)m->connections);
	return m->ids && m->named && m->r.list ? 0 : -ENOMEM;
}

static int next_number(struct matrix *m, const char *what, uint64_t min, uint64_t max, uint64_t *out)
{
	struct word w;

	if (!text_word(&m->r.text, &w))
		return text_fail(m->r.err, m->r.text.line, "the line ends where %s should be", what);
	return read_number(&m->r, w, what, min, max, out);
}

static int read_header(struct matrix *m, struct word key, bool *known)
{
	static const struct {
		const char *key;
		uint64_t min, max;
	} rows[] = {{"Nodes", 2, WORKLOAD_HOSTS_MAX},
		    {"Connections", 0, WORKLOAD_LIST_MAX},
		    {"Triggers", 0, WORKLOAD_LIST_MAX}};
	uint64_t value;

	for (int i = 0; i < 3; i++) {
		int rc;

		if (!word_is(key, rows[i].key))
			continue;
		*known = true;
		if (m->r.list)
			return text_fail(m->r.err, m->r.text.line, "%s after the first connection", rows[i].key);
		rc = next_number(m, rows[i].key, rows[i].min, rows[i].max, &value);
		if (rc)
			return rc;
		if (i == 0) {
			if (m->r.topology && value > m->r.topology->host_count)
				return text_fail(m->r.err, m->r.text.line, "Nodes %u; the topology has %u hosts", value,
						 (uint64_t)m->r.topology->host_count);
			m->r.nodes = value;
			m->has_nodes = true;
		} else if (i == 1) {
			m->connections = value;
			m->has_connections = true;
		} else {
			m->triggers = value;
		}
		return 0;
	}
	return 0;
}

static int read_id(struct matrix *m, const char *what, uint32_t *id)
{
	uint64_t value;
	int rc = next_number(m, what, 1, UINT32_MAX, &value);

	if (!rc)
		*id = (uint32_t)value;
	return rc;
}

/* One "key value" of a connection. */
static int read_attribute(struct matrix *m, struct word key, struct listed *item, struct ids *ids, bool *starts)
{
	struct word w;
	uint64_t ignored;

	if (word_is(key, "id"))
		return read_id(m, "an id", &ids->id);
	if (word_is(key, "trigger"))
		return read_id(m, "a trigger's id", &ids->waits);
	if (word_is(key, "send_done_trigger"))
		return read_id(m, "a trigger's id", &ids->sent);
	if (word_is(key, "recv_done_trigger"))
		return read_id(m, "a trigger's id", &ids->received);
	if (word_is(key, "prio"))
		return next_number(m, "a priority", 0, UINT32_MAX, &ignored);
	if (word_is(key, "start") || word_is(key, "size")) {
		if (!text_word(&m->r.text, &w))
			return text_fail(m->r.err, m->r.text.line, "the line ends where the value of '%w' should be",
					 key);
		if (word_is(key, "size"))
			return read_bytes(&m->r, w, item);
		*starts = true;
		return read_start(&m->r, w, 0, item);
	}
	return text_fail(m->r.err, m->r.text.line,
			 "'%w' in a connection; allowed are id, start, size, trigger, "
			 "send_done_trigger, recv_done_trigger, prio",
			 key);
}

static int read_connection(struct matrix *m, struct word src, struct word dst)
{
	struct text_error *err = m->r.err;
	struct listed *item;
	struct ids *ids;
	struct word key;
	bool starts = false;
	int rc = begin_body(m);

	if (rc)
		return rc;
	if (list_count(m->r.list) == m->connections)
		return text_fail(err, m->r.text.line, "more connections than the %u announced", m->connections);
	ids = &m->ids[list_count(m->r.list)];
	ids->line = m->r.text.line;
	item = list_add(m->r.list);
	rc = read_pair(&m->r, src, dst, item);
	while (!rc && text_word(&m->r.text, &key))
		rc = read_attribute(m, key, item, ids, &starts);
	if (rc)
		return rc;
	item->waits = ids->waits != 0;
	if (starts == item->waits)
		return text_fail(err, ids->line, "a connection has either a start or a trigger");
	if (!item->bytes)
		return text_fail(err, ids->line, "a connection without a size");
	return 0;
}

static int read_trigger(struct matrix *m)
{
	struct named_trigger *t;
	struct word key;
	bool typed = false;
	int rc = begin_body(m);

	if (rc)
		return rc;
	if (m->named_count == m->triggers)
		return text_fail(m->r.err, m->r.text.line, "more triggers than the %u announced", m->triggers);
	t = &m->named[m->named_count++];
	while (!rc && text_word(&m->r.text, &key)) {
		static const struct {
			const char *key;
			enum list_trigger_type type;
		} types[] = {{"oneshot", LIST_ONESHOT}, {"multishot", LIST_MULTISHOT}, {"barrier", LIST_BARRIER}};
		int i = 0;

		while (i < 3 && !word_is(key, types[i].key))
			i++;
		if (word_is(key, "id")) {
			rc = read_id(m, "a trigger's id", &t->id);
		} else if (word_is(key, "count")) {
			rc = next_number(m, "a count", 1, WORKLOAD_LIST_MAX, &t->trigger.count);
		} else if (i < 3 && !typed) {
			t->trigger.type = types[i].type;
			typed = true;
		} else {
			rc = text_fail(m->r.err, m->r.text.line,
				       "'%w' in a trigger; allowed are id, count and one of oneshot, "
				       "multishot, barrier",
				       key);
		}
	}
	if (!rc && (!t->id || !typed))
		rc = text_fail(m->r.err, m->r.text.line, "a trigger needs an id and a type");
	if (!rc && t->trigger.type == LIST_BARRIER && !t->trigger.count)
		rc = text_fail(m->r.err, m->r.text.line, "a barrier needs a count");
	return rc;
}

static int read_line(struct matrix *m)
{
	struct word w;
	bool header = false;
	int rc;

	text_word(&m->r.text, &w);
	rc = read_header(m, w, &header);
	if (rc || header)
		return rc;
	if (word_is(w, "trigger"))
		return read_trigger(m);
	for (size_t i = 0; i + 1 < w.len; i++)
		if (w.at[i] == '-' && w.at[i + 1] == '>')
			return read_connection(m, (struct word){w.at, i}, (struct word){w.at + i + 2, w.len - i - 2});
	return text_fail(m->r.err, m->r.text.line, "'%w'; allowed are Nodes, Connections, Triggers, a->b and trigger",
			 w);
}

static int compare_named(const void *a, const void *b)
{
	const struct named_trigger *x = a, *y = b;

	return x->id < y->id ? -1 : x->id > y->id;
}

static int find_trigger(const struct matrix *m, uint32_t id, uint32_t line, uint32_t *out)
{
	struct named_trigger key = {.id = id};
	const struct named_trigger *t = id ? bsearch(&key, m->named, m->named_count, sizeof(key), compare_named) : NULL;

	if (id && !t)
		return text_fail(m->r.err, line, "no line describes trigger %u", (uint64_t)id);
	*out = t ? (uint32_t)(t - m->named) : LIST_NO_TRIGGER;
	return 0;
}

static int compare_u32(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

static int check_ids(const struct matrix *m, uint32_t count)
{
	uint32_t *ids = malloc(((size_t)count + 1) * sizeof(*ids));
	int rc = 0;

	if (!ids)
		return -ENOMEM;
	for (uint32_t i = 0; i < count; i++)
		ids[i] = m->ids[i].id;
	qsort(ids, count, sizeof(*ids), compare_u32);
	for (uint32_t i = 1; i < count && !rc; i++)
		if (ids[i] && ids[i] == ids[i - 1])
			rc = text_fail(m->r.err, 0, "two connections have the id %u", (uint64_t)ids[i]);
	free(ids);
	return rc;
}

/* Turns ids into indices, and "waits for" into lists of targets. */
static int resolve(struct matrix *m, struct listed *items)
{
	uint32_t count = list_count(m->r.list), at = 0;
	struct list_trigger *triggers = list_triggers(m->r.list);
	uint32_t *targets = list_targets(m->r.list);
	int rc = check_ids(m, count);

	if (rc)
		return rc;
	qsort(m->named, m->named_count, sizeof(*m->named), compare_named);
	for (uint32_t i = 0; i < m->named_count; i++) {
		if (i && m->named[i].id == m->named[i - 1].id)
			return text_fail(m->r.err, 0, "two triggers have the id %u", (uint64_t)m->named[i].id);
		triggers[i] = m->named[i].trigger;
	}
	for (uint32_t i = 0; i < count; i++) {
		const struct ids *ids = &m->ids[i];
		uint32_t waits = 0;

		rc = find_trigger(m, ids->waits, ids->line, &waits);
		if (!rc)
			rc = find_trigger(m, ids->sent, ids->line, &items[i].sent_trigger);
		if (!rc)
			rc = find_trigger(m, ids->received, ids->line, &items[i].received_trigger);
		if (rc)
			return rc;
		m->ids[i].waits = waits;
		if (waits != LIST_NO_TRIGGER)
			triggers[waits].target_count++;
	}
	for (uint32_t t = 0; t < m->named_count; t++) {
		triggers[t].first = at;
		at += triggers[t].target_count;
		triggers[t].target_count = 0;
	}
	for (uint32_t i = 0; i < count; i++) {
		uint32_t waits = m->ids[i].waits;

		if (waits != LIST_NO_TRIGGER)
			targets[triggers[waits].first + triggers[waits].target_count++] = i;
	}
	return 0;
}

int htsim_matrix_create(struct workload_part **out, const struct workload_part *c, const struct workload_params *p,
			struct text_error *err)
{
	struct matrix m = {.r = {.err = err, .topology = p->topology}, .common = c, .bytes = p->text_bytes};
	int rc = 0;

	text_start(&m.r.text, p->text, p->text_bytes);
	while (!rc && text_next_line(&m.r.text))
		rc = read_line(&m);
	if (!rc)
		rc = begin_body(&m);
	if (!rc && list_count(m.r.list) != m.connections)
		rc = text_fail(err, m.r.text.line, "%u connections; %u were announced", (uint64_t)list_count(m.r.list),
			       m.connections);
	if (!rc && m.named_count != m.triggers)
		rc = text_fail(err, m.r.text.line, "%u triggers; %u were announced", (uint64_t)m.named_count,
			       m.triggers);
	if (!rc)
		rc = resolve(&m, list_items(m.r.list));
	free(m.ids);
	free(m.named);
	return finish(&m.r, rc, m.common->start_ps, out);
}
