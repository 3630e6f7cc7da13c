/* SPDX-License-Identifier: BSD-2-Clause */
/* Counts are accepted only if the text is long enough for what they announce. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "net/topology/topology_subnet.h"

struct reader {
	struct text text;
	struct text_error *err;
	const struct subnet_links *links;
	struct subnet s;
	uint32_t *port_link; /* [node][port]: SUBNET_NONE */
	uint32_t link_room, lane_room, arbitration_room;
};

static int read_number(struct reader *r, const char *what, uint64_t max, uint64_t *out)
{
	struct word w;

	if (!text_word(&r->text, &w))
		return text_fail(r->err, r->text.line, "the line ends where %s should be", what);
	if (!word_count(w, max, out))
		return text_fail(r->err, r->text.line, "'%w' for %s; allowed are 0 to %u", w, what, max);
	return 0;
}

/* Room for one more of `count` things in *items. False: no memory. */
static bool more(void **items, uint32_t count, uint32_t *room, size_t size)
{
	void *p;

	if (count < *room)
		return true;
	*room = *room ? 2 * *room : 64;
	p = realloc(*items, *room * size);
	if (p)
		*items = p;
	return p;
}

static int read_subnet(struct reader *r, size_t bytes)
{
	struct topology *t = &r->s.topology;
	uint64_t hosts, switches;
	size_t nodes;
	int rc = read_number(r, "the number of hosts", SUBNET_NODES_MAX, &hosts);

	if (!rc)
		rc = read_number(r, "the number of switches", SUBNET_NODES_MAX - hosts, &switches);
	if (rc)
		return rc;
	nodes = (size_t)(hosts + switches);
	if (!hosts || nodes < 2 || hosts * (hosts + switches) > bytes)
		return text_fail(r->err, r->text.line, "%u hosts and %u switches in a text of %u bytes cannot be",
				 hosts, switches, (uint64_t)bytes);
	t->host_count = (uint32_t)hosts;
	t->node_count = (uint32_t)nodes;
	t->nodes = calloc(nodes, sizeof(*t->nodes));
	r->s.forwarding = malloc((size_t)(hosts * switches + 1) * sizeof(*r->s.forwarding));
	r->s.levels = calloc((size_t)(hosts * hosts), 1);
	r->port_link = malloc(nodes * SUBNET_PORTS_MAX * sizeof(*r->port_link));
	if (!t->nodes || !r->s.forwarding || !r->s.levels || !r->port_link)
		return -ENOMEM;
	for (uint32_t i = 0; i < nodes; i++)
		t->nodes[i].number = i;
	memset(r->s.forwarding, 0xff, (size_t)(hosts * switches) * sizeof(*r->s.forwarding));
	memset(r->port_link, 0xff, nodes * SUBNET_PORTS_MAX * sizeof(*r->port_link));
	return 0;
}

static int read_end(struct reader *r, uint32_t *node)
{
	struct topology *t = &r->s.topology;
	uint64_t number, port;
	uint32_t *link;
	int rc = read_number(r, "a node", t->node_count - 1, &number);

	if (!rc)
		rc = read_number(r, "a port", SUBNET_PORTS_MAX - 1, &port);
	if (rc)
		return rc;
	link = &r->port_link[number * SUBNET_PORTS_MAX + port];
	if (*link != SUBNET_NONE)
		return text_fail(r->err, r->text.line, "port %u of node %u has a link already", port, number);
	*link = t->link_count;
	*node = (uint32_t)number;
	return 0;
}

static int read_link(struct reader *r)
{
	struct topology *t = &r->s.topology;
	struct topology_link l = {0};
	bool host;
	int rc = read_end(r, &l.a);

	if (!rc)
		rc = read_end(r, &l.b);
	if (rc)
		return rc;
	if (l.a == l.b)
		return text_fail(r->err, r->text.line, "a link from node %u to itself", (uint64_t)l.a);
	host = l.a < t->host_count || l.b < t->host_count;
	l.rate_bps = host ? r->links->host_rate_bps : r->links->fabric_rate_bps;
	l.delay_ps = host ? r->links->host_delay_ps : r->links->fabric_delay_ps;
	if (!more((void **)&t->links, t->link_count, &r->link_room, sizeof(*t->links)))
		return -ENOMEM;
	t->links[t->link_count++] = l;
	return 0;
}

static int link_at(struct reader *r, uint64_t node, uint64_t port, uint32_t *link)
{
	*link = r->port_link[node * SUBNET_PORTS_MAX + port];
	if (*link == SUBNET_NONE)
		return text_fail(r->err, r->text.line, "port %u of node %u has no link", port, node);
	return 0;
}

static int read_switch(struct reader *r, uint64_t *node)
{
	const struct topology *t = &r->s.topology;
	int rc = read_number(r, "a switch", t->node_count - 1, node);

	if (!rc && *node < t->host_count)
		return text_fail(r->err, r->text.line, "node %u is a host", *node);
	return rc;
}

static int read_forward(struct reader *r)
{
	const struct topology *t = &r->s.topology;
	uint64_t node, port;
	uint32_t *row;
	struct word w;
	int rc = read_switch(r, &node);

	if (rc)
		return rc;
	row = &r->s.forwarding[(node - t->host_count) * t->host_count];
	for (uint32_t h = 0; h < t->host_count && !rc; h++) {
		if (!text_word(&r->text, &w))
			return text_fail(r->err, r->text.line, "ports towards %u of %u hosts", (uint64_t)h,
					 (uint64_t)t->host_count);
		if (word_is(w, "-"))
			continue;
		if (!word_count(w, SUBNET_PORTS_MAX - 1, &port))
			return text_fail(r->err, r->text.line, "'%w' for a port", w);
		rc = link_at(r, node, port, &row[h]);
	}
	return rc;
}

static int read_lanes(struct reader *r)
{
	const struct topology *t = &r->s.topology;
	struct subnet_lanes *l;
	uint64_t node, in, out;
	int rc = read_number(r, "a node", t->node_count - 1, &node);

	if (!rc)
		rc = read_number(r, "a port", SUBNET_PORTS_MAX - 1, &in);
	if (!rc)
		rc = read_number(r, "a port", SUBNET_PORTS_MAX - 1, &out);
	if (rc)
		return rc;
	if (!more((void **)&r->s.lanes, r->s.lane_count, &r->lane_room, sizeof(*r->s.lanes)))
		return -ENOMEM;
	l = &r->s.lanes[r->s.lane_count++];
	*l = (struct subnet_lanes){(uint32_t)node, SUBNET_NONE, SUBNET_NONE, {0}};
	if (node >= t->host_count)
		rc = link_at(r, node, in, &l->in_link);
	if (node >= t->host_count && !rc)
		rc = link_at(r, node, out, &l->out_link);
	for (unsigned sl = 0; sl < SUBNET_LEVELS && !rc; sl++) {
		uint64_t vl = 0;

		rc = read_number(r, "a lane", SUBNET_LANE_DROPS, &vl);
		if (!rc && vl >= SUBNET_LANES && vl != SUBNET_LANE_DROPS)
			rc = text_fail(r->err, r->text.line, "lane %u; simulated are 0 to 7, and 15, which drops", vl);
		l->vl[sl] = (uint8_t)vl;
	}
	return rc;
}

static int read_entries(struct reader *r, struct vl_entry *entries, uint8_t *count)
{
	uint64_t n, vl, weight = 0;
	int rc = read_number(r, "a number of entries", VL_ENTRIES_MAX, &n);

	for (unsigned i = 0; !rc && i < n; i++) {
		rc = read_number(r, "a lane", SUBNET_LANES - 1, &vl);
		if (!rc)
			rc = read_number(r, "a weight", UINT8_MAX, &weight);
		if (!rc)
			entries[i] = (struct vl_entry){(uint8_t)vl, (uint8_t)weight};
	}
	if (!rc)
		*count = (uint8_t)n;
	return rc;
}

static int read_arbitration(struct reader *r)
{
	const struct topology *t = &r->s.topology;
	struct subnet_arbitration *a;
	uint64_t node, port, limit;
	int rc = read_number(r, "a node", t->node_count - 1, &node);

	if (!rc)
		rc = read_number(r, "a port", SUBNET_PORTS_MAX - 1, &port);
	if (!rc)
		rc = read_number(r, "a limit", UINT8_MAX, &limit);
	if (rc)
		return rc;
	if (!more((void **)&r->s.arbitrations, r->s.arbitration_count, &r->arbitration_room, sizeof(*a)))
		return -ENOMEM;
	a = &r->s.arbitrations[r->s.arbitration_count++];
	*a = (struct subnet_arbitration){(uint32_t)node, SUBNET_NONE, {.high_limit = (uint8_t)limit}};
	if (node >= t->host_count)
		rc = link_at(r, node, port, &a->link);
	if (!rc)
		rc = read_entries(r, a->tables.high, &a->tables.high_count);
	if (!rc)
		rc = read_entries(r, a->tables.low, &a->tables.low_count);
	return rc;
}

static int read_levels(struct reader *r)
{
	const struct topology *t = &r->s.topology;
	uint64_t src, sl = 0;
	int rc = read_number(r, "a host", t->host_count - 1, &src);

	for (uint32_t dst = 0; dst < t->host_count && !rc; dst++) {
		rc = read_number(r, "a service level", SUBNET_LEVELS - 1, &sl);
		if (!rc)
			r->s.levels[src * t->host_count + dst] = (uint8_t)sl;
	}
	return rc;
}

static int read_line(struct reader *r)
{
	struct word w = {0};

	text_word(&r->text, &w);
	if (word_is(w, "link"))
		return read_link(r);
	if (word_is(w, "forward"))
		return read_forward(r);
	if (word_is(w, "lanes"))
		return read_lanes(r);
	if (word_is(w, "levels"))
		return read_levels(r);
	if (word_is(w, "arbitrate"))
		return read_arbitration(r);
	return text_fail(r->err, r->text.line, "'%w' is none of link, forward, lanes, levels, arbitrate", w);
}

static int read_all(struct reader *r, size_t bytes)
{
	struct word w;
	int rc;

	if (!text_next_line(&r->text) || !text_word(&r->text, &w) || !word_is(w, "subnet"))
		return text_fail(r->err, r->text.line,
				 "it does not begin with 'subnet HOSTS SWITCHES'; verbena fabric --save writes it");
	rc = read_subnet(r, bytes);
	while (!rc && text_next_line(&r->text)) {
		rc = read_line(r);
		if (!rc && text_word(&r->text, &w))
			rc = text_fail(r->err, r->text.line, "'%w' is too much", w);
	}
	if (!rc)
		rc = topology_check(&r->s.topology, r->err);
	if (!rc)
		rc = topology_set_tiers(&r->s.topology);
	return rc;
}

int subnet_read(struct subnet *s, const struct subnet_links *links, const char *text, size_t bytes,
		struct text_error *err)
{
	struct reader r = {.err = err, .links = links};
	int rc;

	text_start(&r.text, text, bytes);
	rc = read_all(&r, bytes);
	free(r.port_link);
	if (rc)
		subnet_free(&r.s);
	else
		*s = r.s;
	return rc;
}

void subnet_free(struct subnet *s)
{
	topology_free(&s->topology);
	free(s->forwarding);
	free(s->levels);
	free(s->lanes);
	free(s->arbitrations);
	*s = (struct subnet){0};
}
