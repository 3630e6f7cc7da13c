/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The table of pairs, what acknowledgements teach about paths, and the choice of one.
 *
 * A path goes down when PATH_SILENT_MAX packets in a row were lost on it and nothing that was sent on it
 * is acknowledged, while another path is up: random loss does not look like that. It comes up again when
 * probes on it are answered: a slow path is never shut, only a dead one (veRoCE 9.1).
 */
#include <assert.h>
#include <string.h>

#include "base/siphash.h"
#include "transport/veroce/pair.h"

enum {
	PATH_SILENT_MAX = 8,
	PATH_GOOD_PROBES = 3,
	SLOW_SIGNALS = 3,
	ROUND_BYTES_MIN = 16 * 1024,
	LOSS_HEAVY = 4, /* a fourth of a round */
	REO_ROUNDS = 256, /* round trips that a path is taken for one that reorders */
	RTO_UNKNOWN = 8, /* shortest timeouts, as long as no round trip was measured */
	REO_SHIFT = 3,  /* of the round trip, to begin with */
	WINDOW_STARTS = 4,
	FLOWLETS_A_WINDOW = 4,
	FLOWLET_MAX = 64,
	DETOUR = 4 /* a path may be longer than the shortest by a fourth of that one */
};

static const uint64_t speaks_ns = 60000000000ull;
static const uint64_t reo_ns_min = 20000000;
static const uint64_t slow_count_ns = 100000, slow_hold_ns = 200000;
static const uint64_t probe_ns_min = 1000000;
static const uint64_t drain_rtt_ns = 200000; /* a host reads a window in so long, at least */
static const uint64_t window_factor_max = 512;
static const uint64_t least_while_ns = 5000000000ull; /* as Swift's for a base RTT that it measures */

void pair_table_init(struct pair_table *t, const struct pair_config *c, const uint8_t secret[16])
{
	t->config = *c;
	memcpy(t->secret, secret, sizeof(t->secret));
	t->seed = siphash_u64(secret, 2);
	t->unused = 0;
	if (!t->config.paths || t->config.paths > TX_PATHS_MAX)
		t->config.paths = t->config.paths ? TX_PATHS_MAX : 1;
	t->grown = NULL;
	t->bucket_count = PAIR_BUCKETS_MIN;
	t->count = 0;
	for (int i = 0; i < PAIR_BUCKETS_MIN; i++)
		list_init(&t->few[i]);
}

/* The congestion control of a path that nothing was sent on: whatever happens is nothing to it. */
static const struct cc_ops no_ops;
#define UNUSED                                                         \
	{                                                              \
		.cc = {.ops = &no_ops, .deadline_ns = CC_NO_DEADLINE } \
	}
static const struct path unused_paths[TX_PATHS_MAX] = {UNUSED, UNUSED, UNUSED, UNUSED, UNUSED, UNUSED,
						       UNUSED, UNUSED, UNUSED, UNUSED, UNUSED, UNUSED,
						       UNUSED, UNUSED, UNUSED, UNUSED};
#undef UNUSED

static void pair_free(struct pair_table *t, struct pair *p)
{
	list_remove(&p->link);
	t->count--;
	if (p->begun)
		alloc_put(t->config.alloc, p->path, p->path_count * sizeof(*p->path));
	alloc_put(t->config.alloc, p, sizeof(*p));
}

static struct list *buckets(struct pair_table *t)
{
	return t->grown ? t->grown : t->few;
}

void pair_table_fini(struct pair_table *t)
{
	for (uint32_t i = 0; i < t->bucket_count; i++) {
		while (!list_empty(&buckets(t)[i]))
			pair_free(t, container_of(buckets(t)[i].next, struct pair, link));
	}
	alloc_put(t->config.alloc, t->grown, t->bucket_count * sizeof(*t->grown));
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
	return &buckets(t)[h & (t->bucket_count - 1)];
}

/* Four times as many buckets; each keeps its pairs from the oldest on. Without memory for it they get long. */
static void grow(struct pair_table *t)
{
	uint32_t count = t->bucket_count;
	struct list *old = buckets(t), *grown = alloc_get(t->config.alloc, 4 * count * sizeof(*grown));
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
		alloc_put(t->config.alloc, old, count * sizeof(*old));
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

/* What is known of strangers is bounded: the oldest one of some bucket makes room. */
static void make_room(struct pair_table *t)
{
	for (uint32_t i = 0; t->unused > PAIR_UNUSED_MAX && i < t->bucket_count; i++) {
		struct list *b = &buckets(t)[i];

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

/* Between processes of one host there is no network: what delays is the processor's scheduling. */
static enum cc_algorithm algorithm_of(const struct pair_config *c, bool local)
{
	if (local)
		return CC_NONE;
	return c->cc_params ? c->cc_params->algorithm : c->cc;
}

static void path_cc_init(const struct pair_config *c, const struct pair *p, struct cc *cc)
{
	enum cc_algorithm algorithm = algorithm_of(c, p->local);
	struct cc_config config = {
		.params = p->local ? NULL : c->cc_params,
		.mtu_bytes = p->mtu_bytes,
		.base_rtt_ns = c->base_rtt_ns,
		/* What the port lets through, all paths would share; a few may be dead or dull. */
		.line_rate_bps = p->path_count > 1 ? 2 * c->line_rate_bps / p->path_count
						   : c->line_rate_bps,
		.cwnd_bytes_start = c->window_bytes / WINDOW_STARTS / p->path_count,
		.cwnd_bytes_min = 2 * p->mtu_bytes,
		.cwnd_bytes_max = c->window_bytes * window_factor_max,
		.target_ns = c->target_ns,
		.loss_ignored = true,
	};

	if (algorithm == CC_NONE)
		config.cwnd_bytes_max = c->window_bytes;
	if (c->line_rate_bps && c->base_rtt_ns)
		config.cwnd_bytes_start = 0; /* a round trip of what the line takes */
	if (config.cwnd_bytes_start && config.cwnd_bytes_start < 4 * p->mtu_bytes)
		config.cwnd_bytes_start = 4 * p->mtu_bytes;
	cc_init(cc, algorithm, &config, p->made_ns);
}

const struct cc *pair_cc(const struct pair_table *t, const struct pair *p, uint32_t path, struct cc *fresh)
{
	if (p->begun)
		return &p->path[path].cc;
	path_cc_init(&t->config, p, fresh);
	return fresh;
}

bool pair_take_paths(struct pair_table *t, struct pair *p)
{
	struct path *path = alloc_get(t->config.alloc, p->path_count * sizeof(*path));

	if (!path)
		return false;
	for (uint32_t i = 0; i < p->path_count; i++)
		path_cc_init(&t->config, p, &path[i].cc);
	p->path = path;
	p->begun = true;
	return true;
}

struct pair *pair_get(struct pair_table *t, const uint8_t src[16], const uint8_t dst[16], bool local,
		      uint32_t mtu_bytes, uint64_t now_ns)
{
	const struct pair_config *c = &t->config;
	struct pair *p = c->one_user ? NULL : find(t, src, dst);
	bool controlled = algorithm_of(c, local) != CC_NONE;

	if (p) {
		t->unused -= !p->users++;
		return p;
	}
	p = alloc_get(c->alloc, sizeof(*p));
	if (!p)
		return NULL;
	memcpy(p->src, src, 16);
	memcpy(p->dst, dst, 16);
	list_init(&p->waiting);
	p->users = 1;
	p->local = local;
	p->mtu_bytes = mtu_bytes;
	p->made_ns = now_ns;
	p->path_count = local ? 1 : c->paths;
	p->path = (struct path *)(uintptr_t)unused_paths;
	p->window_bytes = p->buffer_bytes = c->window_bytes;
	p->cwnd_least_bytes = controlled ? 2 * mtu_bytes : 0;
	p->rto_ns = RTO_UNKNOWN * c->rto_min_ns;
	prng_init(&p->prng, t->seed++);
	p->cc_due_ns = CC_NO_DEADLINE;
	p->paced_ns = CC_NO_DEADLINE;
	p->blind_packets = controlled && p->path_count > 1 ? c->flowlet_packets : UINT32_MAX;
	for (uint32_t i = 0; i < TX_PATHS_MAX; i++)
		p->min_rtt_ns[i] = UINT64_MAX;
	if (t->count++ == 2 * t->bucket_count && t->bucket_count < PAIR_BUCKETS_MAX)
		grow(t);
	list_append(bucket_of(t, src, dst), &p->link);
	return p;
}

void pair_put(struct pair_table *t, struct pair *p)
{
	assert(p->users);
	if (--p->users)
		return;
	if (t->config.one_user) {
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

/* ---- the choice ------------------------------------------------------------------------------ */

static uint64_t path_flying(const struct path *p)
{
	return p->sent_bytes - p->gone_bytes;
}

static bool fits(const struct pair *pair, const struct path *p, uint32_t bytes)
{
	uint64_t flying = path_flying(p), most = p->cc.cwnd_bytes;

	if (!p->srtt_ns && most > (uint64_t)pair->blind_packets * bytes)
		most = (uint64_t)pair->blind_packets * bytes;
	return !flying || flying + bytes <= most;
}

/* How long until what is sent now arrives, roughly: half a round trip behind what is in the way. */
static uint64_t path_load(const struct path *p)
{
	return p->srtt_ns / 2 + path_flying(p) * (p->srtt_ns + 1) / (p->cc.cwnd_bytes + 1);
}

static bool up_and_fits(const struct pair *pair, uint32_t i, uint32_t bytes)
{
	const struct path *p = &pair->path[i];

	return (!p->down || pair->down_count == pair->path_count) &&
	       fits(pair, p, bytes);
}

static uint64_t paced_ns(const struct pair_config *c, const struct path *p)
{
	return pacer_due_ns(&p->pacer, p->cc.rate_bps, c->pace_slack_ns);
}

static bool usable(const struct pair *pair, const struct pair_config *c, uint32_t i, uint32_t bytes,
		   uint64_t now_ns)
{
	return up_and_fits(pair, i, bytes) && paced_ns(c, &pair->path[i]) <= now_ns;
}

uint64_t pair_paced_ns(const struct pair *pair, const struct pair_config *c, uint32_t bytes,
		       uint64_t now_ns)
{
	uint64_t first = CC_NO_DEADLINE;

	for (uint32_t i = 0; i < pair->path_count; i++) {
		uint64_t at = paced_ns(c, &pair->path[i]);

		if (at > now_ns && at < first && up_and_fits(pair, i, bytes))
			first = at;
	}
	return first;
}

static bool doubtful(const struct path *p)
{
	return !p->srtt_ns || p->silent;
}

static int pick_fastest(const struct pair *pair, const struct pair_config *c, uint32_t bytes,
			uint8_t avoid, uint64_t now_ns)
{
	int best = PAIR_NO_PATH;

	for (uint32_t i = 0; i < pair->path_count; i++) {
		const struct path *p = &pair->path[i], *q = &pair->path[best < 0 ? 0 : best];

		if (i == avoid || !usable(pair, c, i, bytes, now_ns))
			continue;
		/* One that nothing was heard of may be dead, which is for new packets to find out. */
		if (best < 0 || doubtful(p) < doubtful(q) ||
		    (doubtful(p) == doubtful(q) && path_load(p) < path_load(q)))
			best = (int)i;
	}
	if (best < 0 && avoid < pair->path_count && usable(pair, c, avoid, bytes, now_ns) &&
	    !doubtful(&pair->path[avoid]))
		best = avoid;
	return best;
}

/* Two at random, the better of them; where neither has room, the first that has. */
static int pick_new(struct pair *pair, const struct pair_config *c, uint32_t bytes, uint64_t now_ns)
{
	uint64_t draw = prng_next(&pair->prng);
	uint32_t a = (uint32_t)(draw & UINT32_MAX) % pair->path_count;
	uint32_t b = (uint32_t)(draw >> 32) % pair->path_count;
	bool a_fits = usable(pair, c, a, bytes, now_ns), b_fits = usable(pair, c, b, bytes, now_ns);

	if (a_fits && b_fits && pair->path[a].slow_until_ns > now_ns)
		return (int)b;
	if (a_fits && b_fits)
		return (int)(path_load(&pair->path[a]) <= path_load(&pair->path[b]) ? a : b);
	if (a_fits || b_fits)
		return (int)(a_fits ? a : b);
	for (uint32_t i = 0; i < pair->path_count; i++) {
		uint32_t k = (a + i) % pair->path_count;

		if (usable(pair, c, k, bytes, now_ns))
			return (int)k;
	}
	return PAIR_NO_PATH;
}

int pair_pick_any(struct pair *pair, uint8_t avoid)
{
	uint32_t from = (uint32_t)prng_below(&pair->prng, pair->path_count);

	for (uint32_t i = 0; i < pair->path_count; i++) {
		uint32_t k = (from + i) % pair->path_count;

		if (k != avoid && !pair->path[k].down)
			return (int)k;
	}
	return avoid < pair->path_count ? avoid : 0;
}

/* With a gap: the flowlet has not ended, nor has its path. */
static bool is_in_gap(const struct pair *pair, const struct pair_config *c, const struct flowlet *f,
		      uint64_t now_ns)
{
	return f->left && now_ns - f->sent_ns < c->flowlet_gap_ns &&
	       (!pair->path[f->path].down || pair->down_count == pair->path_count);
}

int pair_pick(struct pair *pair, const struct pair_config *c, struct flowlet *f, uint32_t bytes,
	      bool again, uint8_t avoid, uint64_t now_ns)
{
	uint64_t flying = pair->sent_bytes - pair->gone_bytes, packets;
	int i;

	if (flying && flying + bytes > pair->window_bytes)
		return PAIR_NO_PATH;
	if (pair->path_count == 1)
		return usable(pair, c, 0, bytes, now_ns) ? 0 : PAIR_NO_PATH;
	if (again)
		return pick_fastest(pair, c, bytes, avoid, now_ns);
	if (c->flowlet_gap_ns && is_in_gap(pair, c, f, now_ns)) {
		if (!usable(pair, c, f->path, bytes, now_ns))
			return PAIR_NO_PATH;
		f->sent_ns = now_ns;
		return f->path;
	}
	if (!c->flowlet_gap_ns && f->left && usable(pair, c, f->path, bytes, now_ns)) {
		f->left--;
		return f->path;
	}
	i = pick_new(pair, c, bytes, now_ns);
	if (i < 0)
		return i;
	/* Long trains where the window is wide, so that they cost as little as RoCEv2's. */
	packets = pair->path[i].cc.cwnd_bytes / FLOWLETS_A_WINDOW / bytes;
	if (packets < c->flowlet_packets)
		packets = c->flowlet_packets;
	f->path = (uint8_t)i;
	f->left = (uint16_t)((packets < FLOWLET_MAX ? packets : FLOWLET_MAX) - !c->flowlet_gap_ns);
	f->sent_ns = now_ns;
	return i;
}

uint32_t pair_run(const struct pair *pair, const struct flowlet *f, uint32_t path, uint32_t bytes,
		  uint32_t max)
{
	const struct path *p = &pair->path[path];
	uint64_t all = pair->sent_bytes - pair->gone_bytes, flying = path_flying(p), room;

	/* Under a pace each has a time of its own. */
	if (p->cc.rate_bps != CC_UNPACED || (p->down && pair->down_count != pair->path_count))
		return 1;
	if (pair->path_count > 1 && max > f->left + 1u)
		max = f->left + 1u;
	if (all >= pair->window_bytes || flying >= p->cc.cwnd_bytes)
		return 1;
	room = pair->window_bytes - all;
	if (room > p->cc.cwnd_bytes - flying)
		room = p->cc.cwnd_bytes - flying;
	if (max > room / bytes)
		max = (uint32_t)(room / bytes);
	return max ? max : 1;
}

/* ---- congestion control's time --------------------------------------------------------------------- */

static void note_deadline(struct pair *pair, const struct path *p)
{
	if (p->cc.deadline_ns < pair->cc_due_ns)
		pair->cc_due_ns = p->cc.deadline_ns;
}

void pair_expire(struct pair *pair, uint64_t now_ns)
{
	pair->cc_due_ns = CC_NO_DEADLINE;
	for (uint32_t i = 0; i < pair->path_count; i++) {
		if (pair->path[i].cc.deadline_ns <= now_ns)
			cc_on_timer(&pair->path[i].cc, now_ns);
		note_deadline(pair, &pair->path[i]);
	}
}

void pair_cnp(struct pair *pair, uint32_t path, uint64_t now_ns)
{
	for (uint32_t i = 0; i < pair->path_count; i++) {
		if (i != path && path < pair->path_count)
			continue;
		cc_on_cnp(&pair->path[i].cc, now_ns);
		note_deadline(pair, &pair->path[i]);
	}
}

/* ---- what happens to packets ------------------------------------------------------------------- */

void path_sent(const struct pair_config *c, struct pair *pair, uint32_t path, uint32_t bytes,
	       uint64_t now_ns)
{
	struct path *p = &pair->path[path];

	if (p->cc.rate_bps != CC_UNPACED)
		pacer_sent(&p->pacer, p->cc.rate_bps, bytes + c->wire_overhead_bytes, c->pace_slack_ns,
			   now_ns);

	cc_on_sent(&p->cc, now_ns, p->sent_bytes, bytes);
	p->sent_bytes += bytes;
	pair->sent_bytes += bytes;
}

static void up(struct pair *pair, struct path *p)
{
	if (p->down) {
		p->down = false;
		pair->down_count--;
	}
	p->silent = 0;
	p->good = 0;
}

static void leave(struct pair *pair, struct path *p, uint64_t bytes)
{
	p->gone_bytes += bytes;
	pair->gone_bytes += bytes;
}

/*
 * Random loss is not congestion, and one in twenty packets must not halve a window. A fourth of all
 * bytes of a round trip lost is more than any link does by itself: our choice.
 */
static void count_round(struct path *p, uint32_t lost_bytes, uint64_t now_ns)
{
	uint64_t round;

	p->round_lost_bytes += lost_bytes;
	if (p->gone_bytes < p->round_end)
		return;
	round = p->cc.cwnd_bytes < ROUND_BYTES_MIN ? ROUND_BYTES_MIN : p->cc.cwnd_bytes;
	if ((uint64_t)p->round_lost_bytes * LOSS_HEAVY > round && p->round_end)
		cc_on_loss(&p->cc, now_ns, CC_LOSS_TRIM);
	p->round_end = p->gone_bytes + round;
	p->round_lost_bytes = 0;
}

void path_lost(struct pair *pair, uint32_t path, uint32_t bytes, uint64_t now_ns)
{
	struct path *p = &pair->path[path];

	leave(pair, p, bytes);
	cc_on_loss(&p->cc, now_ns, CC_LOSS_SACK_HOLE);
	count_round(p, bytes, now_ns);
	note_deadline(pair, p);
}

void path_trimmed(struct pair *pair, uint32_t path, uint32_t bytes, uint64_t now_ns)
{
	struct path *p = &pair->path[path];

	p->heard_ns = now_ns;
	if (p->silent || p->down)
		up(pair, p);
	cc_on_loss(&p->cc, now_ns, CC_LOSS_TRIM);
	note_deadline(pair, p);
	trim_window_cut(pair, bytes, p->cc.cwnd_bytes <= pair->cwnd_least_bytes);
}

void path_forget(struct pair *pair, uint32_t path, uint32_t bytes)
{
	leave(pair, &pair->path[path], bytes);
}

uint64_t path_rto_ns(const struct pair_config *c, const struct path *p)
{
	uint64_t vary = 4 * p->rttvar_ns > 2 * p->srtt_ns ? 4 * p->rttvar_ns : 2 * p->srtt_ns;

	/* Where round trips vary little it still leaves time for a tail probe and its answer. */
	return p->srtt_ns + vary < c->rto_min_ns ? c->rto_min_ns : p->srtt_ns + vary;
}

/* RFC 6298, per path. */
static void sample(struct pair_table *t, struct pair *pair, uint32_t path, uint64_t rtt_ns)
{
	struct path *p = &pair->path[path];
	uint64_t least = UINT64_MAX, factor;

	if (!p->srtt_ns) {
		p->srtt_ns = rtt_ns;
		p->rttvar_ns = rtt_ns / 2;
		p->reo_ns = rtt_ns >> REO_SHIFT;
	} else {
		uint64_t off = rtt_ns > p->srtt_ns ? rtt_ns - p->srtt_ns : p->srtt_ns - rtt_ns;

		p->rttvar_ns = (3 * p->rttvar_ns + off) / 4;
		p->srtt_ns = (7 * p->srtt_ns + rtt_ns) / 8;
	}
	if (rtt_ns < pair->min_rtt_ns[path]) {
		pair->min_rtt_ns[path] = rtt_ns;
		for (uint32_t i = 0; i < pair->path_count; i++) {
			if (pair->min_rtt_ns[i] < least)
				least = pair->min_rtt_ns[i];
		}
		/* What the network itself holds comes on top of what the peer's buffer does. */
		factor = 1 + least / drain_rtt_ns;
		if (pair->window_bytes == pair->buffer_bytes)
			pair->window_bytes = UINT64_MAX;
		pair->buffer_bytes =
			t->config.window_bytes *
			(factor < window_factor_max ? factor : window_factor_max);
		if (t->config.cc == CC_NONE)
			pair->buffer_bytes = t->config.window_bytes;
		if (pair->window_bytes > pair->buffer_bytes)
			pair->window_bytes = pair->buffer_bytes;
	}
	pair->srtt_ns = pair->srtt_ns ? (7 * pair->srtt_ns + rtt_ns) / 8 : rtt_ns;
	pair->rto_ns = 0;
	for (uint32_t i = 0; i < pair->path_count; i++) {
		uint64_t rto = path_rto_ns(&t->config, &pair->path[i]);

		if (!pair->path[i].down && rto > pair->rto_ns)
			pair->rto_ns = rto;
	}
}

/*
 * What congestion control is told: once a round trip, the least that was measured in it. A queue that stands
 * delays every packet; a host that did not run for a while, ours or the peer's, only some. 0: not now.
 */
static uint64_t round_rtt(struct path *p, uint64_t rtt_ns, uint64_t now_ns)
{
	if (!p->cc_rtt_ns || rtt_ns < p->cc_rtt_ns)
		p->cc_rtt_ns = rtt_ns;
	if (now_ns < p->cc_round_ns)
		return 0;
	rtt_ns = p->cc_rtt_ns;
	p->cc_rtt_ns = 0;
	p->cc_round_ns = now_ns + p->srtt_ns;
	return rtt_ns;
}

static uint64_t least_ns(const struct path *p)
{
	bool older = p->least_ns[1] && p->least_ns[1] < p->least_ns[0];

	return p->least_ns[older];
}

/*
 * By how much a path is longer than the shortest of the pair. Where the base RTT is told, it is one for all
 * paths, and what a longer link takes would be a queue that never goes; so congestion control is told of round
 * trips without it (our choice). A queue that all paths share is in the least of each, and so in no detour. One
 * that a path has alone is taken for a detour for as long as it never drains: DETOUR bounds that. What was
 * least is forgotten after one to two whiles, as routes change.
 */
static uint64_t detour_ns(const struct pair *pair, struct path *p, uint64_t rtt_ns, uint64_t now_ns)
{
	uint32_t this_while = (uint32_t)(now_ns / least_while_ns);
	uint64_t own, least;

	if (this_while != p->least_while) {
		p->least_ns[1] = p->least_ns[0];
		p->least_ns[0] = 0;
		p->least_while = this_while;
	}
	if (!p->least_ns[0] || rtt_ns < p->least_ns[0])
		p->least_ns[0] = rtt_ns;
	least = own = least_ns(p);
	for (uint32_t i = 0; i < pair->path_count; i++) {
		uint64_t other = least_ns(&pair->path[i]);

		if (other && other < least)
			least = other;
	}
	return own - least < least / DETOUR ? own - least : least / DETOUR;
}

/* A path without congestion control, as between processes of one host: what timeouts go by is all. */
static void acked_uncontrolled(struct pair_table *t, struct pair *pair, uint32_t path,
			       const struct tx_path_news *n, const struct path_echo *echo,
			       uint64_t now_ns)
{
	struct path *p = &pair->path[path];
	bool told = echo->path == path;
	uint64_t rtt_ns = told ? echo->rtt_ns + echo->remote_ns : now_ns - n->newest_tx_ns;

	leave(pair, p, n->bytes);
	if (n->sure || told) {
		p->heard_ns = now_ns;
		if (p->silent || p->down)
			up(pair, p);
	}
	if (n->newest_tx_ns || told)
		sample(t, pair, path, rtt_ns ? rtt_ns : 1);
	if (p->reo_until_ns && p->reo_until_ns < now_ns) {
		p->reo_ns = p->srtt_ns >> REO_SHIFT;
		p->reo_until_ns = 0;
	}
}

static void acked_controlled(struct pair_table *t, struct pair *pair, uint32_t path,
			     const struct tx_path_news *n, const struct path_echo *echo, bool becn,
			     uint64_t now_ns)
{
	struct path *p = &pair->path[path];
	bool told = echo->path == path;
	struct cc_ack ack = {
		.acked_bytes = n->bytes,
		.acked_packets = n->packets,
		.snd_nxt = p->sent_bytes,
		.rtt_ns = told ? echo->rtt_ns + echo->remote_ns
			  : n->newest_tx_ns ? now_ns - n->newest_tx_ns : 0,
		.remote_ns = told ? echo->remote_ns : 0,
	};

	/* Counted by the peer, or at worst all that this acknowledgement covers. */
	if (told)
		ack.ecn_packets = echo->ce_packets < n->packets ? echo->ce_packets : n->packets;
	else if (becn && echo->path == TX_PATHS_MAX)
		ack.ecn_packets = n->packets;
	if (ack.ecn_packets && n->packets)
		ack.ecn_bytes = (uint64_t)n->bytes * ack.ecn_packets / n->packets;
	leave(pair, p, n->bytes);
	trim_window_grow(pair);
	ack.ack_seq = p->gone_bytes;
	if (n->sure || told) {
		p->heard_ns = now_ns;
		if (p->silent || p->down)
			up(pair, p);
	}
	if (n->newest_tx_ns || told) {
		sample(t, pair, path, ack.rtt_ns ? ack.rtt_ns : 1);
		ack.rtt_ns = round_rtt(p, ack.rtt_ns ? ack.rtt_ns : 1, now_ns);
		if (!ack.rtt_ns)
			ack.remote_ns = 0;
		else if (t->config.base_rtt_ns)
			ack.rtt_ns -= detour_ns(pair, p, ack.rtt_ns, now_ns);
	}
	if (p->reo_until_ns && p->reo_until_ns < now_ns) {
		p->reo_ns = p->srtt_ns >> REO_SHIFT;
		p->reo_until_ns = 0;
	}
	cc_on_ack(&p->cc, now_ns, &ack);
	/* Each acknowledgement is as good as a probe's answer. */
	if (p->cc.probe_wanted && ack.rtt_ns) {
		cc_on_probe(&p->cc, now_ns);
		cc_on_rtt(&p->cc, now_ns, ack.rtt_ns);
	}
	count_round(p, 0, now_ns);
	note_deadline(pair, p);
}

void path_acked(struct pair_table *t, struct pair *pair, uint32_t path,
		const struct tx_path_news *n, const struct path_echo *echo, bool becn,
		uint64_t now_ns)
{
	if (cc_heeds_acks(&pair->path[path].cc))
		acked_controlled(t, pair, path, n, echo, becn, now_ns);
	else
		acked_uncontrolled(t, pair, path, n, echo, now_ns);
}

void path_silent(struct pair *pair, uint32_t path, uint32_t packets, uint64_t now_ns)
{
	struct path *p = &pair->path[path];

	p->silent = (uint8_t)(p->silent + packets < UINT8_MAX ? p->silent + packets : UINT8_MAX);
	if (p->down || p->silent < PATH_SILENT_MAX || pair->down_count + 1 >= pair->path_count)
		return;
	p->down = true;
	p->good = 0;
	p->probe_ns = now_ns + probe_ns_min;
	p->probe_sent_ns = 0;
	pair->down_count++;
}

/*
 * A path that is known to be longer than the others is not slow, it is long: what is sent on it is as
 * late as it should be. Such signals are ignored (9.1, beyond base).
 */
void path_slow(struct pair *pair, uint32_t path, uint64_t now_ns)
{
	struct path *p = &pair->path[path];

	if (pair->min_rtt_ns[path] > pair->srtt_ns)
		return;
	if (now_ns - p->slow_first_ns > slow_count_ns) {
		p->slow_first_ns = now_ns;
		p->slow_signals = 0;
	}
	if (++p->slow_signals >= SLOW_SIGNALS)
		p->slow_until_ns = now_ns + slow_hold_ns;
}

void path_was_late(struct pair *pair, uint32_t path, uint64_t late_ns, uint64_t now_ns)
{
	struct path *p = &pair->path[path];

	p->reo_ns = p->reo_ns * 2 > late_ns ? p->reo_ns * 2 : late_ns;
	if (p->reo_ns > p->srtt_ns)
		p->reo_ns = p->srtt_ns;
	p->reo_until_ns = now_ns + (REO_ROUNDS * p->srtt_ns > reo_ns_min ? REO_ROUNDS * p->srtt_ns
									 : reo_ns_min);
}

void path_probe_answered(struct pair_table *t, struct pair *pair, uint32_t path, uint64_t now_ns)
{
	struct path *p = &pair->path[path];

	if (!p->probe_sent_ns)
		return;
	if (p->down && ++p->good >= PATH_GOOD_PROBES)
		up(pair, p);
	p->probe_sent_ns = 0;
	p->probe_ns = now_ns + probe_ns_min;
}
