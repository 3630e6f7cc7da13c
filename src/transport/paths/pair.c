/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The table of pairs, by address. A pair without users is kept for a while, with what it has measured.
 */
#include <assert.h>
#include <string.h>

#include "base/siphash.h"
#include "transport/paths/pair.h"
#include "transport/paths/path_rtt.h"

enum {
	RTO_UNKNOWN = 8, /* shortest timeouts, before a round trip was measured */
	WINDOW_STARTS = 4
};

static const uint64_t speaks_ns = 60000000000ull;

void pair_table_init(struct pair_table *t, const struct transport_config *c, const struct alloc *alloc,
		     const uint8_t secret[16])
{
	t->config = c;
	t->alloc = alloc;
	memcpy(t->secret, secret, sizeof(t->secret));
	t->seed = siphash_u64(secret, 2);
	t->unused = 0;
	t->grown = NULL;
	t->bucket_count = PAIR_BUCKETS_MIN;
	t->count = 0;
	for (int i = 0; i < PAIR_BUCKETS_MIN; i++)
		list_init(&t->few[i]);
}

/* The congestion control of a path that nothing was sent on: it reacts to nothing. */
static const struct cc_ops no_ops;
#define UNUSED                                                         \
	{                                                              \
		.cc = {.ops = &no_ops, .deadline_ns = CC_NO_DEADLINE } \
	}
static const struct path unused_paths[PATHS_MAX] = {UNUSED, UNUSED, UNUSED, UNUSED, UNUSED, UNUSED, UNUSED, UNUSED,
						    UNUSED, UNUSED, UNUSED, UNUSED, UNUSED, UNUSED, UNUSED, UNUSED};
#undef UNUSED

static void pair_free(struct pair_table *t, struct pair *p)
{
	list_remove(&p->link);
	t->count--;
	if (p->own)
		alloc_put(t->alloc, p->own, p->path_count * sizeof(*p->own));
	joint_free(t, p);
	alloc_put(t->alloc, p, sizeof(*p));
}

struct list *pair_table_buckets(struct pair_table *t)
{
	return t->grown ? t->grown : t->few;
}

void pair_table_fini(struct pair_table *t)
{
	for (uint32_t i = 0; i < t->bucket_count; i++) {
		while (!list_empty(&pair_table_buckets(t)[i]))
			pair_free(t, container_of(pair_table_buckets(t)[i].next, struct pair, link));
	}
	alloc_put(t->alloc, t->grown, t->bucket_count * sizeof(*t->grown));
	t->grown = NULL;
	t->bucket_count = PAIR_BUCKETS_MIN;
}

static struct list *bucket_of(struct pair_table *t, const uint8_t src[16], const uint8_t dst[16])
{
	uint64_t words[4], h = 0;

	memcpy(words, src, 16);
	memcpy(words + 2, dst, 16);
	for (int i = 0; i < 4; i++)
		h = siphash_u64(t->secret, h ^ words[i]);
	return &pair_table_buckets(t)[h & (t->bucket_count - 1)];
}

void pair_table_grow(struct pair_table *t)
{
	uint32_t count = t->bucket_count;
	struct list *old = pair_table_buckets(t), *grown = alloc_get(t->alloc, 4 * count * sizeof(*grown));
	bool had_grown = t->grown;

	if (!grown)
		return;
	for (uint32_t i = 0; i < 4 * count; i++)
		list_init(&grown[i]);
	t->grown = grown;
	t->bucket_count = 4 * count;
	for (uint32_t i = 0; i < count; i++) {
		while (!list_empty(&old[i])) {
			struct pair *p = container_of(old[i].next, struct pair, link);

			list_remove(&p->link);
			list_append(bucket_of(t, p->src, p->dst), &p->link);
		}
	}
	if (had_grown)
		alloc_put(t->alloc, old, count * sizeof(*old));
}

static struct pair *find(struct pair_table *t, const uint8_t src[16], const uint8_t dst[16])
{
	struct list *b = bucket_of(t, src, dst);

	for (struct list *l = b->next; l != b; l = l->next) {
		struct pair *p = container_of(l, struct pair, link);

		if (!memcmp(p->src, src, 16) && !memcmp(p->dst, dst, 16))
			return p;
	}
	return NULL;
}

/* The number of pairs without users is bounded: the oldest one of some bucket is freed. */
static void make_room(struct pair_table *t)
{
	for (uint32_t i = 0; t->unused > PAIR_UNUSED_MAX && i < t->bucket_count; i++) {
		struct list *b = &pair_table_buckets(t)[i];

		for (struct list *l = b->next; l != b; l = l->next) {
			struct pair *p = container_of(l, struct pair, link);

			if (p->users)
				continue;
			pair_free(t, p);
			t->unused--;
			break;
		}
	}
}

enum cc_algorithm pair_algorithm(const struct transport_config *c, bool local)
{
	static const enum cc_algorithm defaults[] = {
		[VEROCE_CC_SWIFT] = CC_SWIFT, [VEROCE_CC_DCTCP] = CC_DCTCP, [VEROCE_CC_NONE] = CC_NONE};

	if (local)
		return CC_NONE;
	return c->cc.params ? c->cc.params->algorithm : defaults[c->veroce.cc];
}

bool pair_is_controlled(const struct transport_config *c, bool local)
{
	if (c->cc.params && !local)
		return cc_params_heed(c->cc.params);
	return pair_algorithm(c, local) != CC_NONE;
}

/* Whether the pair is of one QP, whose paths have one congestion control together. */
static bool is_joint(const struct transport_config *c, const struct pair *p)
{
	return c->veroce.scope == SCOPE_QP && p->path_count > 1 && pair_is_controlled(c, p->local);
}

/* What the congestion control of a path, or the joint one, is configured with. */
static struct cc_config cc_config_of(const struct transport_config *c, const struct pair *p)
{
	uint32_t controls = is_joint(c, p) ? 1 : p->path_count;
	struct cc_config config = {
		.params = p->local ? NULL : c->cc.params,
		.mtu_bytes = p->mtu_bytes,
		.base_rtt_ns = cc_link_base_rtt_ns(&c->cc, p->dst),
		/* All paths share the port's rate; each may have twice its part, as some may be dead or slow. */
		.line_rate_bps = controls > 1 ? 2 * c->cc.line_rate_bps / controls : c->cc.line_rate_bps,
		.cwnd_bytes_start = c->window_bytes / WINDOW_STARTS / controls,
		.cwnd_bytes_min = 2 * p->mtu_bytes,
		.cwnd_bytes_max = c->window_bytes * PAIR_WINDOW_FACTOR_MAX,
		.target_ns = c->cc.target_ns,
		.target_rtt_part = c->cc.target_rtt_part,
		.loss_ignored = true,
	};

	if (!pair_is_controlled(c, p->local))
		config.cwnd_bytes_max = c->window_bytes;
	if (c->cc.line_rate_bps && c->cc.base_rtt_ns)
		config.cwnd_bytes_start = 0; /* one round trip at line rate */
	if (config.cwnd_bytes_start && config.cwnd_bytes_start < 4 * p->mtu_bytes)
		config.cwnd_bytes_start = 4 * p->mtu_bytes;
	return config;
}

const struct cc *pair_cc(const struct pair_table *t, const struct pair *p, uint32_t path, struct cc *fresh)
{
	struct cc_config config;

	if (p->own)
		return p->joint ? &p->joint->cc : &p->path[path].cc;
	config = cc_config_of(t->config, p);
	cc_init(fresh, pair_algorithm(t->config, p->local), &config, p->made_ns);
	return fresh;
}

bool pair_take_paths(struct pair_table *t, struct pair *p)
{
	struct path *path = alloc_get(t->alloc, p->path_count * sizeof(*path));
	struct cc_config config = cc_config_of(t->config, p);

	if (!path)
		return false;
	p->own = path;
	p->one_way.wanted = config.params && cc_params_one_way(config.params);
	if (is_joint(t->config, p) && !joint_begin(t, p, &config)) {
		alloc_put(t->alloc, path, p->path_count * sizeof(*path));
		p->own = NULL;
		return false;
	}
	for (uint32_t i = 0; !p->joint && i < p->path_count; i++)
		cc_init(&path[i].cc, pair_algorithm(t->config, p->local), &config, p->made_ns);
	p->path = path;
	return true;
}

struct pair *pair_make(struct pair_table *t, const uint8_t src[16], const uint8_t dst[16])
{
	struct pair *p = alloc_get(t->alloc, sizeof(*p));

	if (!p)
		return NULL;
	memcpy(p->src, src, 16);
	memcpy(p->dst, dst, 16);
	list_init(&p->waiting);
	p->path = unused_paths;
	t->unused++;
	if (t->count++ == 2 * t->bucket_count && t->bucket_count < PAIR_BUCKETS_MAX)
		pair_table_grow(t);
	list_append(bucket_of(t, src, dst), &p->link);
	return p;
}

/* What a new pair begins with. */
static void begin(struct pair_table *t, struct pair *p, bool local, uint32_t mtu_bytes, uint64_t now_ns)
{
	const struct transport_config *c = t->config;
	bool controlled = pair_is_controlled(c, local);

	p->local = local;
	p->mtu_bytes = mtu_bytes;
	p->made_ns = now_ns;
	p->path_count = local ? 1 : c->paths;
	p->window_bytes = p->buffer_bytes = c->window_bytes;
	p->cwnd_least_bytes = controlled ? 2 * mtu_bytes : 0;
	p->rto_ns = RTO_UNKNOWN * c->veroce.rto_ns_min;
	prng_init(&p->prng, t->seed++);
	p->cc_due_ns = CC_NO_DEADLINE;
	p->paced_ns = CC_NO_DEADLINE;
	p->blind_packets = controlled && p->path_count > 1 ? c->veroce.flowlet_packets : UINT32_MAX;
	if (path_rtt_is_long(cc_link_base_rtt_ns(&c->cc, p->dst)))
		p->blind_packets = UINT32_MAX;
	for (uint32_t i = 0; i < PATHS_MAX; i++)
		p->min_rtt_ns[i] = UINT64_MAX;
}

/* Whether each QP has a pair of its own. Within a host there is no network to control, and one pair. */
static bool is_of_a_qp(const struct transport_config *c, bool local)
{
	return c->veroce.scope != SCOPE_HOSTS && !local;
}

/* What does not depend on a QP's congestion control. */
static void learn_from(struct pair *p, const struct pair *known)
{
	p->speaks = known->speaks;
	p->speaks_until_ns = known->speaks_until_ns;
}

struct pair *pair_get(struct pair_table *t, const uint8_t src[16], const uint8_t dst[16], bool local,
		      uint32_t mtu_bytes, uint64_t now_ns)
{
	struct pair *known = find(t, src, dst), *p = is_of_a_qp(t->config, local) ? NULL : known;

	if (!p) {
		p = pair_make(t, src, dst);
		if (p)
			begin(t, p, local, mtu_bytes, now_ns);
		if (p && known)
			learn_from(p, known);
	}
	if (p)
		pair_hold(t, p);
	return p;
}

void pair_put(struct pair_table *t, struct pair *p)
{
	assert(p->users);
	if (--p->users) {
		p->scarce = p->users > 1;
		return;
	}
	if (is_of_a_qp(t->config, p->local)) {
		pair_free(t, p);
		return;
	}
	t->unused++;
	make_room(t);
}

void pair_learn(struct pair *p, enum pair_speaks speaks, uint64_t now_ns)
{
	p->speaks = speaks;
	p->speaks_until_ns = now_ns + speaks_ns;
}

enum pair_speaks pair_speaks(const struct pair *p, uint64_t now_ns)
{
	return p->speaks_until_ns > now_ns ? p->speaks : PAIR_UNKNOWN;
}
