/* SPDX-License-Identifier: BSD-2-Clause */
/* A count is accepted only if the text is long enough for the items that it announces. */
#include <errno.h>
#include <stdlib.h>

#include "net/topology/topology_hpcc.h"

struct reader {
	struct text text;
	struct text_error *err;
	struct topology t;
	uint32_t *index; /* index of a node's number; NONE: a switch without one yet */
	uint32_t nodes;
};

static int read_count(struct reader *r, const char *what, uint64_t max, uint64_t *out)
{
	struct word w;

	if (!text_token(&r->text, &w))
		return text_fail(r->err, r->text.line, "the text ends where %s should be", what);
	if (!word_count(w, max, out))
		return text_fail(r->err, r->text.line, "'%w' for %s; allowed are 0 to %u", w, what, max);
	return 0;
}

static int read_switches(struct reader *r, uint64_t switches)
{
	enum { HOST = 0, SWITCH = 1 };
	uint32_t next_host = 0, next_switch;

	for (uint64_t i = 0; i < switches; i++) {
		uint64_t number;
		int rc = read_count(r, "a switch's number", r->nodes - 1, &number);

		if (rc)
			return rc;
		if (r->index[number] == SWITCH)
			return text_fail(r->err, r->text.line, "switch %u is named twice", number);
		r->index[number] = SWITCH;
	}
	next_switch = r->t.host_count;
	for (uint32_t n = 0; n < r->nodes; n++) {
		uint32_t at = r->index[n] == SWITCH ? next_switch++ : next_host++;

		r->index[n] = at;
		r->t.nodes[at].number = n;
	}
	return 0;
}

static int read_end(struct reader *r, uint32_t *node)
{
	uint64_t number;
	int rc = read_count(r, "a link's end", r->nodes - 1, &number);

	if (!rc)
		*node = r->index[number];
	return rc;
}

static int read_link(struct reader *r, struct topology_link *l)
{
	struct word rate, delay, loss;
	uint64_t ppb;
	int rc = read_end(r, &l->a);

	if (!rc)
		rc = read_end(r, &l->b);
	if (rc)
		return rc;
	if (l->a == l->b)
		return text_fail(r->err, r->text.line, "a link from node %u to itself",
				 (uint64_t)r->t.nodes[l->a].number);
	if (!text_token(&r->text, &rate) || !text_token(&r->text, &delay) || !text_token(&r->text, &loss))
		return text_fail(r->err, r->text.line, "the text ends within a link: a b rate delay error");
	if (!word_rate_bps(rate, &l->rate_bps) || l->rate_bps < TOPOLOGY_RATE_BPS_MIN ||
	    l->rate_bps > TOPOLOGY_RATE_BPS_MAX)
		return text_fail(r->err, r->text.line, "'%w' for a rate; allowed are 1Mbps to 8Tbps, as in 100Gbps",
				 rate);
	if (!word_time_ps(delay, &l->delay_ps) || l->delay_ps > TOPOLOGY_DELAY_PS_MAX)
		return text_fail(r->err, r->text.line, "'%w' for a delay; allowed are 0 to 1s, as in 1000ns", delay);
	if (!word_number(loss, 9, &ppb) || ppb > TOPOLOGY_LOSS_PPB_MAX)
		return text_fail(r->err, r->text.line, "'%w' for an error rate; allowed are 0 to 1, as in 0.001", loss);
	l->loss_ppb = (uint32_t)ppb;
	return 0;
}

static int read_all(struct reader *r)
{
	uint64_t nodes, switches, links;
	uint64_t bytes = (uint64_t)(r->text.end - r->text.at);
	int rc = read_count(r, "the number of nodes", TOPOLOGY_NODES_MAX, &nodes);

	if (!rc)
		rc = read_count(r, "the number of switches", nodes, &switches);
	if (!rc)
		rc = read_count(r, "the number of links", TOPOLOGY_LINKS_MAX, &links);
	if (rc)
		return rc;
	/* A link is five words; a connected network has at least one link less than nodes. */
	if (nodes < 2 || links + 1 < nodes || links > bytes / 9)
		return text_fail(r->err, r->text.line, "%u nodes with %u links in a text of %u bytes cannot be", nodes,
				 links, bytes);
	r->nodes = (uint32_t)nodes;
	r->t.node_count = (uint32_t)nodes;
	r->t.host_count = (uint32_t)(nodes - switches);
	r->t.link_count = (uint32_t)links;
	r->t.nodes = calloc(nodes, sizeof(*r->t.nodes));
	r->t.links = calloc(links, sizeof(*r->t.links));
	r->index = calloc(nodes, sizeof(*r->index));
	if (!r->t.nodes || !r->t.links || !r->index)
		return -ENOMEM;
	rc = read_switches(r, switches);
	for (uint32_t i = 0; i < r->t.link_count && !rc; i++)
		rc = read_link(r, &r->t.links[i]);
	if (!rc)
		rc = topology_check(&r->t, r->err);
	if (!rc)
		rc = topology_set_tiers(&r->t);
	return rc;
}

int topology_read_hpcc(struct topology *t, const char *text, size_t bytes, struct text_error *err)
{
	struct reader r = {.err = err};
	int rc;

	text_start(&r.text, text, bytes);
	rc = read_all(&r);
	free(r.index);
	if (rc)
		topology_free(&r.t);
	else
		*t = r.t;
	return rc;
}
