/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The choice of a path. New packets leave in flowlets, on the better of two random paths; a copy leaves on the path
 * where it arrives first. A path that is down, or whose window or pace allows no packet, is not chosen.
 */
#include "transport/paths/path_choice.h"

#include "base/pkt.h"

enum {
	FLOWLETS_A_WINDOW = 4,
	FLOWLET_MAX = 64, /* packets, where each is a datagram of its own */
	FLOWLET_TRAINS_MAX = 2 * PKT_TRAIN_MAX
};

static uint64_t path_flying(const struct path *p)
{
	return p->sent_bytes - p->gone_bytes - p->idle_bytes;
}

static bool fits(const struct pair *pair, const struct path *p, uint32_t bytes)
{
	/* A peer on this host has one path. */
	uint64_t flying = path_flying(p) - pair->near_bytes, most = p->cc.cwnd_bytes;

	if (!p->srtt_ns && most > (uint64_t)pair->blind_packets * bytes)
		most = (uint64_t)pair->blind_packets * bytes;
	return !flying || flying + bytes <= most;
}

/* Roughly when a packet sent now arrives: half a round trip after the queue ahead of it. */
static uint64_t path_load(const struct path *p)
{
	return p->srtt_ns / 2 + path_flying(p) * (p->srtt_ns + 1) / (p->cc.cwnd_bytes + 1);
}

static bool up_and_fits(const struct pair *pair, uint32_t i, uint32_t bytes)
{
	const struct path *p = &pair->path[i];

	return (!p->down || pair->down_count == pair->path_count) && fits(pair, p, bytes);
}

static uint64_t paced_ns(const struct transport_config *c, const struct path *p)
{
	return pacer_due_ns(&p->pacer, p->cc.rate_bps, c->cc.pace_slack_ns);
}

static bool usable(const struct pair *pair, const struct transport_config *c, uint32_t i, uint32_t bytes,
		   uint64_t now_ns)
{
	return up_and_fits(pair, i, bytes) && paced_ns(c, &pair->path[i]) <= now_ns;
}

uint64_t pair_paced_ns(const struct pair *pair, const struct transport_config *c, uint32_t bytes, uint64_t now_ns)
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

static int pick_fastest(const struct pair *pair, const struct transport_config *c, uint32_t bytes, uint8_t avoid,
			uint64_t now_ns)
{
	int best = PAIR_NO_PATH;

	for (uint32_t i = 0; i < pair->path_count; i++) {
		const struct path *p = &pair->path[i], *q = &pair->path[best < 0 ? 0 : best];

		if (i == avoid || !usable(pair, c, i, bytes, now_ns))
			continue;
		/* A path without any acknowledgement so far may be dead: new packets try it, not copies. */
		if (best < 0 || doubtful(p) < doubtful(q) ||
		    (doubtful(p) == doubtful(q) && path_load(p) < path_load(q)))
			best = (int)i;
	}
	if (best < 0 && avoid < pair->path_count && usable(pair, c, avoid, bytes, now_ns) &&
	    !doubtful(&pair->path[avoid]))
		best = avoid;
	return best;
}

/* Packets of a full train; 1: there are no trains. */
static uint32_t train_packets(const struct transport_config *c, uint32_t bytes)
{
	uint32_t most = PKT_TRAIN_BYTES_MAX / bytes;

	return most < c->train_max ? most : c->train_max;
}

/*
 * Long where the window is wide, but whole trains: what is left over costs as much as a train. Two full trains to one
 * path leave by one system call.
 */
static uint32_t flowlet_packets(const struct transport_config *c, const struct path *p, uint32_t bytes)
{
	uint64_t packets = p->cc.cwnd_bytes / FLOWLETS_A_WINDOW / bytes;
	uint32_t train = train_packets(c, bytes), most = FLOWLET_MAX;

	if (train > 1) {
		most = FLOWLET_TRAINS_MAX;
		most -= most % train;
	}
	if (packets < c->veroce.flowlet_packets)
		packets = c->veroce.flowlet_packets;
	return packets < most ? (uint32_t)packets : most;
}

/* The better of two paths, `along` and a random one or two random ones; if neither has room, the first that has. */
static int pick_new(struct pair *pair, const struct transport_config *c, uint32_t bytes, int along, uint64_t now_ns)
{
	uint64_t draw = prng_next(&pair->prng);
	uint32_t a = along == PAIR_NO_PATH ? (uint32_t)(draw & UINT32_MAX) % pair->path_count : (uint32_t)along;
	uint32_t b = (uint32_t)(draw >> 32) % pair->path_count;
	bool a_fits = usable(pair, c, a, bytes, now_ns), b_fits = usable(pair, c, b, bytes, now_ns);

	if (a_fits && b_fits && pair->path[a].slow_until_ns > now_ns)
		return (int)b;
	if (a_fits && b_fits) {
		uint64_t load = path_load(&pair->path[a]);

		load -= along == PAIR_NO_PATH ? 0 : load / 2;
		return (int)(load <= path_load(&pair->path[b]) ? a : b);
	}
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
	if (avoid >= pair->path_count)
		return 0;
	/* The last path that is up stays so, whatever is lost on it: then one that is down is as good. */
	if (pair->path_count > 1 && doubtful(&pair->path[avoid]))
		return (int)((from + (from == avoid)) % pair->path_count);
	return avoid;
}

/* With a gap: the flowlet has not ended, nor has its path. */
static bool is_in_gap(const struct pair *pair, const struct transport_config *c, const struct flowlet *f,
		      uint64_t now_ns)
{
	return f->left && now_ns - f->sent_ns < c->veroce.flowlet_gap_ns &&
	       (!pair->path[f->path].down || pair->down_count == pair->path_count);
}

/* Whether the window of all paths together has room for `bytes`; it has if nothing is in flight. */
static inline bool pair_has_room(const struct pair *pair, uint32_t bytes)
{
	uint64_t flying = pair_flying(pair);

	return !flying || flying + bytes <= pair->window_bytes;
}

int pair_pick_again(struct pair *pair, const struct transport_config *c, uint32_t bytes, uint8_t avoid, uint64_t now_ns)
{
	if (!pair_has_room(pair, bytes))
		return PAIR_NO_PATH;
	if (pair->path_count == 1)
		return usable(pair, c, 0, bytes, now_ns) ? 0 : PAIR_NO_PATH;
	return pick_fastest(pair, c, bytes, avoid, now_ns);
}

/* Without gaps. */
static bool goes_on(const struct flowlet *f, int along)
{
	return f->open || (f->left && (along == PAIR_NO_PATH || along == f->path));
}

int pair_pick(struct pair *pair, const struct transport_config *c, struct flowlet *f, uint32_t bytes, int along,
	      uint64_t now_ns)
{
	uint32_t packets;
	int i;

	if (!pair_has_room(pair, bytes))
		return PAIR_NO_PATH;
	if (pair->path_count == 1)
		return usable(pair, c, 0, bytes, now_ns) ? 0 : PAIR_NO_PATH;
	if (c->veroce.flowlet_gap_ns && is_in_gap(pair, c, f, now_ns)) {
		if (!usable(pair, c, f->path, bytes, now_ns))
			return PAIR_NO_PATH;
		f->sent_ns = now_ns;
		f->left = UINT16_MAX;
		return f->path;
	}
	if (!c->veroce.flowlet_gap_ns && goes_on(f, along) && usable(pair, c, f->path, bytes, now_ns)) {
		f->left = (uint16_t)(f->left ? f->left - 1 : 0);
		return f->path;
	}
	i = pick_new(pair, c, bytes, along, now_ns);
	if (i < 0)
		return i;
	f->path = (uint8_t)i;
	f->open = 0;
	packets = flowlet_packets(c, &pair->path[i], bytes);
	/* What goes along with others is no flowlet: the next turn chooses again. */
	f->left = c->veroce.flowlet_gap_ns ? UINT16_MAX : i == along ? 0 : (uint16_t)(packets - 1);
	f->train_max = c->train_max;
	if (f->train_max > packets && !pair->path[i].srtt_ns)
		f->train_max = (uint16_t)packets;
	f->sent_ns = now_ns;
	return i;
}

/* How many packets of that length may leave as one train, or join the open one, whatever is left of the flowlet. */
static uint32_t train_room(const struct flowlet *f, uint32_t len)
{
	uint32_t most = PKT_TRAIN_BYTES_MAX / len;

	if (most > f->train_max)
		most = f->train_max;
	return most > f->open ? most - f->open : 0;
}

uint32_t pair_run(const struct pair *pair, const struct flowlet *f, uint32_t path, uint32_t bytes, uint32_t len,
		  uint32_t max)
{
	const struct path *p = &pair->path[path];
	uint64_t all = pair_flying(pair), flying = path_flying(p) - pair->near_bytes, room;

	/* Under a pace each packet has a time of its own. */
	if (p->cc.rate_bps != CC_UNPACED || (p->down && pair->down_count != pair->path_count))
		return 1;
	if (pair->path_count > 1 && max > f->left + 1u) {
		uint32_t train = train_room(f, len), left = f->left + 1u;

		if (max > train)
			max = left > train ? left : train;
	}
	if (all >= pair->window_bytes || flying >= p->cc.cwnd_bytes)
		return 1;
	room = pair->window_bytes - all;
	if (room > p->cc.cwnd_bytes - flying)
		room = p->cc.cwnd_bytes - flying;
	if (max > room / bytes)
		max = (uint32_t)(room / bytes);
	return max ? max : 1;
}
