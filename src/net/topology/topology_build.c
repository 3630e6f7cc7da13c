/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A kind is a row of a table: what it requires of its parameters, and a function that adds its
 * nodes and links. Sizes are judged in 64 bits before anything is allocated, so builders cannot
 * overflow.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "net/topology/topology_build.h"
#include "net/topology/topology_hpcc.h"

struct size {
	uint64_t hosts, switches, links;
};

/* The site that a builder adds to: hosts and switches, each from a first index of its own. */
struct site {
	struct topology *t;
	const struct topology_params *p;
	uint32_t host0, switch0;
	uint8_t number;
};

struct kind {
	const char *name;
	/* Checks the parameters and computes the sizes. */
	int (*size)(const struct topology_params *, struct size *, struct text_error *);
	void (*build)(struct site *);
};

static const struct kind *find_kind(const char *name, struct text_error *err);

struct topology_params topology_params_default(void)
{
	return (struct topology_params){.delay_ps = TOPOLOGY_DELAY_DEFAULT, .fabric_delay_ps = TOPOLOGY_DELAY_DEFAULT};
}

static void link_nodes(struct topology *t, uint32_t a, uint32_t b, uint64_t rate_bps, uint64_t delay_ps,
		       uint32_t loss_ppb)
{
	t->links[t->link_count++] = (struct topology_link){
		.a = a, .b = b, .rate_bps = rate_bps, .delay_ps = delay_ps, .loss_ppb = loss_ppb};
}

static void link_host(struct site *s, uint32_t host, uint32_t sw)
{
	link_nodes(s->t, s->host0 + host, s->switch0 + sw, s->p->rate_bps, s->p->delay_ps, s->p->loss_ppb);
}

static void link_fabric(struct site *s, uint32_t a, uint32_t b)
{
	link_nodes(s->t, s->switch0 + a, s->switch0 + b, s->p->fabric_rate_bps, s->p->fabric_delay_ps, s->p->loss_ppb);
}

static void add_nodes(struct site *s, uint32_t first, uint32_t count, uint8_t tier)
{
	for (uint32_t i = 0; i < count; i++)
		s->t->nodes[first + i] = (struct topology_node){.number = first + i, .tier = tier, .site = s->number};
}

static void add_hosts(struct site *s, uint32_t count)
{
	add_nodes(s, s->host0, count, 0);
}

static void add_switches(struct site *s, uint32_t first, uint32_t count, uint8_t tier)
{
	add_nodes(s, s->switch0 + first, count, tier);
}

/* A parameter that must be given. */
static int need(const char *name, uint32_t value, uint32_t min, uint32_t max, struct text_error *err)
{
	if (value >= min && value <= max)
		return 0;
	return text_fail(err, 0, "%s is %u; allowed are %u to %u", name, (uint64_t)value, (uint64_t)min, (uint64_t)max);
}

/* star */

static int star_size(const struct topology_params *p, struct size *s, struct text_error *err)
{
	*s = (struct size){p->hosts, 1, p->hosts};
	return need("hosts", p->hosts, 2, TOPOLOGY_NODES_MAX - 1, err);
}

static void star_build(struct site *s)
{
	add_hosts(s, s->p->hosts);
	add_switches(s, 0, 1, 1);
	for (uint32_t h = 0; h < s->p->hosts; h++)
		link_host(s, h, 0);
}

/* dumbbell */

static int dumbbell_size(const struct topology_params *p, struct size *s, struct text_error *err)
{
	*s = (struct size){2 * (uint64_t)p->hosts, 2, 2 * (uint64_t)p->hosts + 1};
	return need("hosts (of each side)", p->hosts, 1, TOPOLOGY_NODES_MAX / 2 - 1, err);
}

static void dumbbell_build(struct site *s)
{
	uint32_t n = s->p->hosts;

	add_hosts(s, 2 * n);
	add_switches(s, 0, 2, 1);
	for (uint32_t h = 0; h < 2 * n; h++)
		link_host(s, h, h / n);
	link_fabric(s, 0, 1);
}

/* parking-lot */

static int parking_lot_size(const struct topology_params *p, struct size *s, struct text_error *err)
{
	uint64_t m = p->bottlenecks;

	*s = (struct size){2 * m + 2, m + 1, 3 * m + 2};
	return need("bottlenecks", p->bottlenecks, 1, TOPOLOGY_NODES_MAX / 4, err);
}

static void parking_lot_build(struct site *s)
{
	uint32_t m = s->p->bottlenecks;

	add_hosts(s, 2 * m + 2);
	add_switches(s, 0, m + 1, 1);
	link_host(s, 0, 0);
	link_host(s, 1, m);
	for (uint32_t i = 0; i < m; i++) {
		link_host(s, 2 + 2 * i, i);
		link_host(s, 3 + 2 * i, i + 1);
	}
	for (uint32_t i = 0; i < m; i++)
		link_fabric(s, i, i + 1);
}

/* leaf-spine */

static uint32_t uplinks_of(const struct topology_params *p)
{
	return p->uplinks ? p->uplinks : p->spines;
}

static int leaf_spine_size(const struct topology_params *p, struct size *s, struct text_error *err)
{
	uint64_t leaves = p->leaves;
	int rc = need("leaves", p->leaves, 1, TOPOLOGY_NODES_MAX, err);

	if (!rc)
		rc = need("hosts per leaf", p->hosts_per_leaf, 1, TOPOLOGY_NODES_MAX, err);
	if (!rc)
		rc = need("spines", p->spines, 1, TOPOLOGY_NODES_MAX, err);
	if (!rc)
		rc = need("uplinks (of each leaf)", uplinks_of(p), 1, TOPOLOGY_LINKS_MAX, err);
	*s = (struct size){leaves * p->hosts_per_leaf, leaves + p->spines,
			   leaves * p->hosts_per_leaf + leaves * uplinks_of(p)};
	return rc;
}

static void leaf_spine_build(struct site *s)
{
	const struct topology_params *p = s->p;
	uint32_t hosts = p->leaves * p->hosts_per_leaf, up = uplinks_of(p);

	add_hosts(s, hosts);
	add_switches(s, 0, p->leaves, 1);
	add_switches(s, p->leaves, p->spines, 2);
	for (uint32_t h = 0; h < hosts; h++)
		link_host(s, h, h / p->hosts_per_leaf);
	/* With fewer uplinks than spines, neighbouring leaves share spines, so that all are
	 * connected. */
	for (uint32_t l = 0; l < p->leaves; l++)
		for (uint32_t i = 0; i < up; i++)
			link_fabric(s, l, p->leaves + (l + i) % p->spines);
}

/* fat-tree */

static int fat_tree_size(const struct topology_params *p, struct size *s, struct text_error *err)
{
	uint64_t k = p->k, half = k / 2;
	int rc = need("k", p->k, 2, 128, err);

	if (!rc && k % 2)
		rc = text_fail(err, 0, "k is %u; allowed are even numbers from 2 to 128", k);
	*s = (struct size){k * half * half, k * k + half * half, 3 * k * half * half};
	return rc;
}

static void fat_tree_build(struct site *s)
{
	uint32_t k = s->p->k, half = k / 2, hosts = k * half * half;
	uint32_t agg0 = k * half, core0 = 2 * agg0;

	add_hosts(s, hosts);
	add_switches(s, 0, agg0, 1);
	add_switches(s, agg0, agg0, 2);
	add_switches(s, core0, half * half, 3);
	for (uint32_t h = 0; h < hosts; h++)
		link_host(s, h, h / half);
	for (uint32_t e = 0; e < agg0; e++)
		for (uint32_t i = 0; i < half; i++)
			link_fabric(s, e, agg0 + e / half * half + i);
	for (uint32_t a = 0; a < agg0; a++)
		for (uint32_t i = 0; i < half; i++)
			link_fabric(s, agg0 + a, core0 + a % half * half + i);
}

/* hpcc */

enum { HPCC_TORS = 20, HPCC_AGGS = 20, HPCC_CORES = 16, HPCC_POD = 4, HPCC_HOSTS_PER_TOR = 16 };

static int hpcc_size(const struct topology_params *p, struct size *s, struct text_error *err)
{
	uint32_t hosts = HPCC_TORS * HPCC_HOSTS_PER_TOR;

	*s = (struct size){hosts, HPCC_TORS + HPCC_AGGS + HPCC_CORES,
			   hosts + HPCC_TORS * HPCC_POD + HPCC_AGGS * HPCC_POD};
	return 0;
}

static void hpcc_build(struct site *s)
{
	uint32_t agg0 = HPCC_TORS, core0 = agg0 + HPCC_AGGS;

	add_hosts(s, HPCC_TORS * HPCC_HOSTS_PER_TOR);
	add_switches(s, 0, HPCC_TORS, 1);
	add_switches(s, agg0, HPCC_AGGS, 2);
	add_switches(s, core0, HPCC_CORES, 3);
	for (uint32_t h = 0; h < HPCC_TORS * HPCC_HOSTS_PER_TOR; h++)
		link_host(s, h, h / HPCC_HOSTS_PER_TOR);
	for (uint32_t t = 0; t < HPCC_TORS; t++)
		for (uint32_t i = 0; i < HPCC_POD; i++)
			link_fabric(s, t, agg0 + t / HPCC_POD * HPCC_POD + i);
	for (uint32_t a = 0; a < HPCC_AGGS; a++)
		for (uint32_t i = 0; i < HPCC_POD; i++)
			link_fabric(s, agg0 + a, core0 + a % HPCC_POD * HPCC_POD + i);
}

/* rail */

static uint32_t rail_groups(const struct topology_params *p)
{
	uint32_t per_leaf = p->hosts_per_leaf ? p->hosts_per_leaf : p->hosts;

	return per_leaf ? (p->hosts - 1) / per_leaf + 1 : 0;
}

static int rail_size(const struct topology_params *p, struct size *s, struct text_error *err)
{
	int rc = need("hosts (nodes)", p->hosts, 2, TOPOLOGY_NODES_MAX, err);
	uint64_t leaves = (uint64_t)rail_groups(p) * p->nics;

	if (!rc)
		rc = need("nics (of each node)", p->nics, 1, 256, err);
	if (!rc)
		rc = need("spines", p->spines, 1, TOPOLOGY_NODES_MAX, err);
	*s = (struct size){(uint64_t)p->hosts * p->nics, leaves + p->spines,
			   (uint64_t)p->hosts * p->nics + leaves * p->spines};
	return rc;
}

static void rail_build(struct site *s)
{
	const struct topology_params *p = s->p;
	uint32_t leaves = rail_groups(p) * p->nics;
	uint32_t per_leaf = p->hosts_per_leaf ? p->hosts_per_leaf : p->hosts;

	add_hosts(s, p->hosts * p->nics);
	add_switches(s, 0, leaves, 1);
	add_switches(s, leaves, p->spines, 2);
	for (uint32_t node = 0; node < p->hosts; node++)
		for (uint32_t rail = 0; rail < p->nics; rail++)
			link_host(s, node * p->nics + rail, node / per_leaf * p->nics + rail);
	for (uint32_t l = 0; l < leaves; l++)
		for (uint32_t i = 0; i < p->spines; i++)
			link_fabric(s, l, leaves + i);
}

/* dragonfly */

static uint32_t groups_of(const struct topology_params *p)
{
	return p->groups ? p->groups : p->leaves * p->uplinks + 1;
}

/* Links between each two groups. */
static uint32_t joins_of(const struct topology_params *p)
{
	return p->leaves * p->uplinks / (groups_of(p) - 1);
}

static int dragonfly_size(const struct topology_params *p, struct size *s, struct text_error *err)
{
	uint64_t g, a = p->leaves;
	int rc = need("routers (of each group)", p->leaves, 1, 1024, err);

	if (!rc)
		rc = need("hosts (of each router)", p->hosts_per_leaf, 1, 1024, err);
	if (!rc)
		rc = need("global links (of each router)", p->uplinks, 1, 1024, err);
	if (!rc)
		rc = need("groups", groups_of(p), 2, p->leaves * p->uplinks + 1, err);
	if (rc)
		return rc;
	g = groups_of(p);
	*s = (struct size){g * a * p->hosts_per_leaf, g * a,
			   g * a * p->hosts_per_leaf + g * a * (a - 1) / 2 + g * (g - 1) / 2 * joins_of(p)};
	return 0;
}

/* The switch of group g that has the l-th of its links to group `to`. */
static uint32_t gateway(const struct topology_params *p, uint32_t g, uint32_t to, uint32_t l)
{
	uint32_t number = l * (groups_of(p) - 1) + (to > g ? to - 1 : to);

	return g * p->leaves + number / p->uplinks;
}

static void dragonfly_build(struct site *s)
{
	const struct topology_params *p = s->p;
	uint32_t groups = groups_of(p), switches = groups * p->leaves;

	s->t->group_switches = p->leaves;
	add_hosts(s, switches * p->hosts_per_leaf);
	add_switches(s, 0, switches, 1);
	for (uint32_t h = 0; h < switches * p->hosts_per_leaf; h++)
		link_host(s, h, h / p->hosts_per_leaf);
	for (uint32_t a = 0; a < switches; a++)
		for (uint32_t b = a + 1; b < switches && b / p->leaves == a / p->leaves; b++)
			link_fabric(s, a, b);
	for (uint32_t g = 0; g < groups; g++)
		for (uint32_t to = g + 1; to < groups; to++)
			for (uint32_t l = 0; l < joins_of(p); l++)
				link_fabric(s, gateway(p, g, to, l), gateway(p, to, g, l));
}

/* two-dc */

static const struct kind *site_kind(const struct topology_params *p, struct text_error *err)
{
	const char *name = p->site_kind ? p->site_kind : "leaf-spine";
	const struct kind *k = find_kind(name, err);

	if (k && (!k->build || k->build == dragonfly_build)) {
		text_fail(err, 0, "'%s' cannot be the kind of a site of two-dc", name);
		return NULL;
	}
	return k;
}

static uint32_t borders_of(const struct topology_params *p)
{
	return p->borders ? p->borders : 1;
}

static int two_dc_size(const struct topology_params *p, struct size *s, struct text_error *err)
{
	const struct kind *k = site_kind(p, err);
	struct size one;
	int rc;

	if (!k)
		return -EINVAL;
	rc = k->size(p, &one, err);
	if (!rc)
		rc = need("long links", p->long_link_count, 1, 4096, err);
	if (!rc)
		rc = need("borders", borders_of(p), 1, p->long_link_count, err);
	if (rc)
		return rc;
	/* Border links: at most one to each switch. */
	*s = (struct size){2 * one.hosts, 2 * (one.switches + borders_of(p)),
			   2 * (one.links + one.switches * borders_of(p)) + p->long_link_count};
	return 0;
}

static int two_dc_build(struct topology *t, const struct topology_params *p, struct text_error *err)
{
	const struct kind *k = site_kind(p, err);
	uint32_t borders = borders_of(p), border0[2];
	struct size one;
	int rc = k ? k->size(p, &one, err) : -EINVAL;

	if (rc)
		return rc;
	for (uint8_t i = 0; i < 2; i++) {
		struct site s = {.t = t,
				 .p = p,
				 .host0 = i * (uint32_t)one.hosts,
				 .switch0 = (uint32_t)(2 * one.hosts + i * (one.switches + borders)),
				 .number = i};
		uint32_t switches = (uint32_t)one.switches;
		uint8_t top = 0;

		k->build(&s);
		for (uint32_t n = 0; n < switches; n++)
			if (t->nodes[s.switch0 + n].tier > top)
				top = t->nodes[s.switch0 + n].tier;
		add_switches(&s, switches, borders, (uint8_t)(top + 1));
		border0[i] = s.switch0 + switches;
		for (uint32_t b = 0; b < borders; b++)
			for (uint32_t n = 0; n < switches; n++)
				if (t->nodes[s.switch0 + n].tier == top)
					link_nodes(t, s.switch0 + n, border0[i] + b,
						   p->border_rate_bps ? p->border_rate_bps : p->fabric_rate_bps,
						   p->fabric_delay_ps, p->loss_ppb);
	}
	for (uint32_t i = 0; i < p->long_link_count; i++) {
		const struct topology_long_link *l = &p->long_links[i];

		link_nodes(t, border0[0] + i % borders, border0[1] + i % borders,
			   l->rate_bps ? l->rate_bps : p->fabric_rate_bps, l->delay_ps, l->loss_ppb);
	}
	return 0;
}

/* All kinds. two-dc is built of others, and a file has no parameters. */

static const struct kind kinds[] = {
	{"star", star_size, star_build},
	{"dumbbell", dumbbell_size, dumbbell_build},
	{"parking-lot", parking_lot_size, parking_lot_build},
	{"leaf-spine", leaf_spine_size, leaf_spine_build},
	{"fat-tree", fat_tree_size, fat_tree_build},
	{"hpcc", hpcc_size, hpcc_build},
	{"rail", rail_size, rail_build},
	{"dragonfly", dragonfly_size, dragonfly_build},
	{"two-dc", two_dc_size, NULL},
	{"file", NULL, NULL},
};

enum { KINDS = sizeof(kinds) / sizeof(kinds[0]) };

const char *const topology_kinds[] = {"star", "dumbbell",  "parking-lot", "leaf-spine", "fat-tree", "hpcc",
				      "rail", "dragonfly", "two-dc",      "file",       NULL};

static const struct kind *find_kind(const char *name, struct text_error *err)
{
	for (int i = 0; i < KINDS; i++)
		if (strcmp(kinds[i].name, name) == 0)
			return &kinds[i];
	text_fail(err, 0,
		  "no topology is called '%s'; allowed are star, dumbbell, parking-lot, leaf-spine, "
		  "fat-tree, hpcc, rail, dragonfly, two-dc, file",
		  name);
	return NULL;
}

static void resolve(const struct kind *k, struct topology_params *p)
{
	bool hpcc =
		k->build == hpcc_build || (p->site_kind && strcmp(p->site_kind, "hpcc") == 0 && k->size == two_dc_size);

	if (!p->fabric_rate_bps)
		p->fabric_rate_bps = hpcc ? (p->rate_bps ? 4 * p->rate_bps : 400000000000) : p->rate_bps;
	if (!p->rate_bps)
		p->rate_bps = 100000000000;
	if (!p->fabric_rate_bps)
		p->fabric_rate_bps = p->rate_bps;
	if (p->delay_ps == TOPOLOGY_DELAY_DEFAULT)
		p->delay_ps = 1000000;
	if (p->fabric_delay_ps == TOPOLOGY_DELAY_DEFAULT)
		p->fabric_delay_ps = p->delay_ps;
}

int topology_build(struct topology *out, const char *kind, const struct topology_params *params, struct text_error *err)
{
	const struct kind *k = find_kind(kind, err);
	struct topology_params p = *params;
	struct topology t = {0};
	struct size size;
	int rc;

	if (!k)
		return -EINVAL;
	if (!k->size)
		return topology_read_hpcc(out, p.text, p.text_bytes, err);
	resolve(k, &p);
	rc = k->size(&p, &size, err);
	if (rc)
		return rc;
	if (size.hosts + size.switches > TOPOLOGY_NODES_MAX || size.links > TOPOLOGY_LINKS_MAX)
		return text_fail(err, 0, "%u nodes and %u links; allowed are up to %u and %u",
				 size.hosts + size.switches, size.links, (uint64_t)TOPOLOGY_NODES_MAX,
				 (uint64_t)TOPOLOGY_LINKS_MAX);
	t.host_count = (uint32_t)size.hosts;
	t.node_count = (uint32_t)(size.hosts + size.switches);
	t.nodes = calloc(t.node_count, sizeof(*t.nodes));
	t.links = calloc(size.links, sizeof(*t.links));
	if (!t.nodes || !t.links) {
		rc = -ENOMEM;
	} else if (k->build) {
		k->build(&(struct site){.t = &t, .p = &p, .switch0 = t.host_count});
	} else {
		rc = two_dc_build(&t, &p, err);
	}
	if (!rc)
		rc = topology_check(&t, err);
	if (rc)
		topology_free(&t);
	else
		*out = t;
	return rc;
}
