/* SPDX-License-Identifier: BSD-2-Clause */
/* A piece counts once, when its bit is first seen; everything else is made from the counts. */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "base/byteorder.h"
#include "sdr/coded/ec_receiver.h"

enum { FINALS = 3, LACKS_MAX = 512 };

static uint32_t words_of(uint32_t bits)
{
	return (bits + 63) / 64;
}

static uint32_t parity_pieces(const struct ec_receiver *r)
{
	return r->config.layout.parity_max * r->config.layout.groups;
}

static bool memory_take(struct ec_receiver *r)
{
	const struct ec_layout *l = &r->config.layout;
	bool repeats = r->config.fallback == EC_FALLBACK_SR;

	r->group = alloc_get(r->alloc, l->groups * sizeof(*r->group));
	r->data_seen = alloc_get(r->alloc, words_of(l->pieces) * sizeof(uint64_t));
	r->parity_seen = alloc_get(r->alloc, words_of(parity_pieces(r)) * sizeof(uint64_t));
	if (repeats)
		r->good = alloc_get(r->alloc, words_of(l->pieces) * sizeof(uint64_t));
	return r->group && r->data_seen && r->parity_seen && (!repeats || r->good);
}

int ec_receiver_init(struct ec_receiver *r, const struct ec_config *config, const uint64_t *data_bits,
		     const uint64_t *parity_bits, uint64_t now_ns, const struct alloc *alloc)
{
	const struct sr_receiver_config sr = {
		.rtt_ns = config->rtt_ns, .ack_ns = config->ack_ns, .reorder = config->reorder, .nack = config->nack};

	assert(ec_config_valid(config));
	*r = (struct ec_receiver){
		.config = *config,
		.data_bits = data_bits,
		.parity_bits = parity_bits,
		.judge_ns = UINT64_MAX,
		.silent_ns = UINT64_MAX,
		.short_ns = UINT64_MAX,
		.fallback_ns = UINT64_MAX,
		.ack_ns = UINT64_MAX,
		.alloc = alloc,
	};
	if (!memory_take(r) ||
	    (r->good && sr_receiver_init(&r->sr, &sr, r->good, config->layout.pieces, now_ns, alloc))) {
		ec_receiver_free(r);
		return -ENOMEM;
	}
	return 0;
}

void ec_receiver_free(struct ec_receiver *r)
{
	const struct ec_layout *l = &r->config.layout;

	alloc_put(r->alloc, r->group, l->groups * sizeof(*r->group));
	alloc_put(r->alloc, r->data_seen, words_of(l->pieces) * sizeof(uint64_t));
	alloc_put(r->alloc, r->parity_seen, words_of(parity_pieces(r)) * sizeof(uint64_t));
	alloc_put(r->alloc, r->good, words_of(l->pieces) * sizeof(uint64_t));
	if (r->sr.alloc)
		sr_receiver_free(&r->sr);
	r->group = NULL;
	r->data_seen = r->parity_seen = r->good = NULL;
	r->sr.alloc = NULL;
}

/* ---- what has come */

static bool seen(const uint64_t *bits, uint32_t at)
{
	return bits[at / 64] >> at % 64 & 1;
}

static void set(uint64_t *bits, uint32_t at)
{
	bits[at / 64] |= UINT64_C(1) << at % 64;
}

bool ec_receiver_has(const struct ec_receiver *r, const struct ec_piece *p)
{
	return seen(p->parity ? r->parity_seen : r->data_seen, p->at);
}

static bool data_came(const struct ec_receiver *r, uint32_t g, uint32_t index)
{
	return seen(r->data_seen, ec_layout_data_of(&r->config.layout, g, index).at);
}

/* Parity i is of the data j with j mod parity = i: of all of these and itself one may be missing.
 */
static bool classes_enough(const struct ec_receiver *r, uint32_t g)
{
	const struct ec_layout *l = &r->config.layout;
	uint32_t size = ec_layout_size(l, g);

	for (uint32_t i = 0; i < l->parity && i < size; i++) {
		uint32_t missing = !seen(r->parity_seen, ec_layout_parity_of(l, g, i).at);

		for (uint32_t j = i; j < size; j += l->parity)
			missing += !data_came(r, g, j);
		if (missing > 1)
			return false;
	}
	return true;
}

static bool enough(const struct ec_receiver *r, uint32_t g)
{
	const struct ec_came_group *group = &r->group[g];
	uint32_t size = ec_layout_size(&r->config.layout, g);

	if (group->data == size)
		return true;
	if (group->data + group->parity < size)
		return false;
	return r->config.kind != EC_XOR || classes_enough(r, g);
}

static void group_enough(struct ec_receiver *r, uint32_t g)
{
	const struct ec_layout *l = &r->config.layout;

	r->group[g].enough = true;
	r->recovered++;
	for (uint32_t i = 0; r->good && i < ec_layout_size(l, g); i++)
		set(r->good, ec_layout_data_of(l, g, i).at);
	while (r->first_short < l->groups && r->group[r->first_short].enough)
		r->first_short++;
}

static void note(struct ec_receiver *r, const struct ec_piece *p)
{
	struct ec_came_group *group = &r->group[p->group];
	uint64_t turn;

	group->data += !p->parity;
	group->parity += p->parity;
	r->came += !p->parity;
	if (r->good && !p->parity)
		set(r->good, p->at);
	if (ec_layout_turn(&r->config.layout, p, &turn) && turn >= r->front)
		r->front = turn + 1;
	if (!group->enough && enough(r, p->group))
		group_enough(r, p->group);
}

/* Notes the pieces whose bits are new; whether there are any. */
static bool scan(struct ec_receiver *r, bool parity)
{
	const struct ec_layout *l = &r->config.layout;
	const uint64_t *bits = parity ? r->parity_bits : r->data_bits;
	uint64_t *old = parity ? r->parity_seen : r->data_seen;
	uint32_t *open = parity ? &r->parity_open : &r->data_open;
	uint32_t words = words_of(parity ? parity_pieces(r) : l->pieces);
	bool news = false;

	for (uint32_t w = *open; w < words; w++) {
		uint64_t new = __atomic_load_n(&bits[w], __ATOMIC_ACQUIRE) & ~old[w];

		news |= new != 0;
		old[w] |= new;
		for (; new; new &= new - 1) {
			uint32_t at = w * 64 + (uint32_t)__builtin_ctzll(new);
			struct ec_piece p = parity ? ec_layout_parity(l, at) : ec_layout_data(l, at);

			note(r, &p);
		}
	}
	while (*open < words && old[*open] == UINT64_MAX)
		++*open;
	return news;
}

/* Whether blocks have been overtaken whose groups may be short. */
static void see_overtaken(struct ec_receiver *r, uint64_t now_ns)
{
	const struct ec_layout *l = &r->config.layout;
	uint32_t before = r->overtaken;

	while (r->overtaken < ec_layout_blocks(l) &&
	       ec_layout_before(l, r->overtaken + 1) + r->config.reorder <= r->front)
		r->overtaken++;
	if (r->overtaken != before && r->first_short < ec_layout_block_group(l, r->overtaken))
		r->short_ns = now_ns;
}

static uint64_t silence_ns(const struct ec_receiver *r)
{
	uint64_t quarter = r->config.rtt_ns / 4, gap = 4 * r->config.inject_ns;

	return quarter > gap ? quarter : gap;
}

/* Pieces have come: sets what is due next, and when. */
static void see_news(struct ec_receiver *r, bool first, uint64_t now_ns)
{
	if (ec_receiver_whole(r)) {
		r->finals = FINALS;
		r->ack_ns = now_ns;
		return;
	}
	if (r->config.fallback == EC_FALLBACK_SR) {
		if (first && r->config.fallback_ns)
			r->fallback_ns = now_ns + r->config.fallback_ns;
		return;
	}
	r->silent = false;
	r->silent_ns = now_ns + silence_ns(r);
	see_overtaken(r, now_ns);
}

/* Both words of time: the guard behind an end marker, and the fall-back. From either on all groups
 * are judged. */
static void see_end(struct ec_receiver *r, uint64_t now_ns)
{
	if (now_ns >= r->judge_ns) {
		r->judge_ns = UINT64_MAX;
		r->judged = r->marker;
		r->ended = true;
		r->short_ns = now_ns;
	}
	if (now_ns >= r->fallback_ns) {
		r->fallback_ns = UINT64_MAX;
		r->ended = true;
		r->short_ns = now_ns;
	}
	if (now_ns >= r->silent_ns) {
		r->silent_ns = UINT64_MAX;
		r->silent = true;
		r->short_ns = now_ns;
	}
}

bool ec_receiver_look(struct ec_receiver *r, uint64_t now_ns)
{
	bool first = r->front == 0;
	bool news;

	if (ec_receiver_whole(r))
		return false;
	news = scan(r, false);
	if (r->parity_bits)
		news |= scan(r, true);
	if (news)
		see_news(r, first, now_ns);
	if (ec_receiver_whole(r))
		return true;
	see_end(r, now_ns);
	if (r->good && r->ended)
		sr_receiver_look(&r->sr, now_ns);
	return news;
}

bool ec_receiver_take(struct ec_receiver *r, enum control_type type, const uint8_t *payload, uint64_t now_ns)
{
	uint32_t marker;

	if (type != CONTROL_PROBE && (type != CONTROL_EC_END || !r->config.end_marker))
		return false;
	if (ec_receiver_whole(r)) {
		r->ack_ns = now_ns;
		return true;
	}
	if (type == CONTROL_PROBE) {
		if (r->good && r->ended)
			sr_receiver_probed(&r->sr, now_ns);
		return true;
	}
	marker = get_be32(payload);
	if (marker > r->marker) {
		r->marker = marker;
		r->judge_ns = now_ns + r->config.guard_ns;
	}
	return true;
}

/* ---- what to say */

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

uint64_t ec_receiver_deadline(const struct ec_receiver *r)
{
	uint64_t due_ns = r->ack_ns;

	if (ec_receiver_whole(r))
		return due_ns;
	due_ns = least(due_ns, least(r->short_ns, r->judge_ns));
	due_ns = least(due_ns, least(r->silent_ns, r->fallback_ns));
	if (r->good && r->ended)
		due_ns = least(due_ns, sr_receiver_deadline(&r->sr));
	return due_ns;
}

static uint16_t tell_whole(struct ec_receiver *r, uint8_t *p, uint64_t now_ns)
{
	if (r->finals)
		r->finals--;
	r->ack_ns = r->finals ? now_ns + r->config.rtt_ns / 8 : UINT64_MAX;
	put_be32(p, r->config.layout.pieces - r->came);
	return EC_ACK_LEN;
}

/* The end of the groups that may be short. */
static uint32_t judged_end(const struct ec_receiver *r)
{
	if (r->ended || r->silent)
		return r->config.layout.groups;
	return ec_layout_block_group(&r->config.layout, r->overtaken);
}

static bool may_name(const struct ec_receiver *r, uint32_t g, uint64_t now_ns)
{
	const struct ec_came_group *group = &r->group[g];

	return !group->enough && (!group->named || r->judged > group->named_marker ||
				  now_ns - group->named_ns >= r->config.rtt_ns + r->config.rtt_ns / 4);
}

/* Collects groups that may be named, and marks them. Returns how many, at most room; *all: no more
 * are left. */
static uint16_t name(struct ec_receiver *r, uint32_t *groups, size_t room, bool *all, uint64_t now_ns)
{
	uint32_t end = judged_end(r), g;
	uint16_t n = 0;

	for (g = r->first_short; g < end && n < room; g++) {
		if (!may_name(r, g, now_ns))
			continue;
		r->group[g].named = true;
		r->group[g].named_marker = r->judged;
		r->group[g].named_ns = now_ns;
		groups[n++] = g;
	}
	*all = g >= end;
	return n;
}

static uint16_t lack_of(const struct ec_receiver *r, uint32_t g)
{
	const struct ec_came_group *group = &r->group[g];
	uint32_t lack = ec_layout_size(&r->config.layout, g) - group->data - group->parity;

	return (uint16_t)(lack < UINT16_MAX ? lack : UINT16_MAX);
}

static uint16_t encode_short(const struct ec_receiver *r, uint8_t *p, const uint32_t *groups, uint16_t count)
{
	struct ec_short said = {.marker = r->judged, .groups = r->first_short, .count = count};
	struct ec_lack lacks[LACKS_MAX];

	for (uint16_t i = 0; i < count; i++)
		lacks[i] = (struct ec_lack){groups[i], lack_of(r, groups[i])};
	return ec_short_encode(p, &said, lacks);
}

static uint16_t tell_short(struct ec_receiver *r, uint8_t *p, size_t max, enum control_type *type, uint64_t now_ns)
{
	bool parity = r->config.fallback == EC_FALLBACK_PARITY, all;
	size_t room = parity ? (max - EC_SHORT_FIXED_LEN) / EC_SHORT_GROUP_LEN
			     : (max - EC_NACK_FIXED_LEN) / EC_NACK_GROUP_LEN;
	uint32_t groups[LACKS_MAX];
	uint16_t n = name(r, groups, room < LACKS_MAX ? room : LACKS_MAX, &all, now_ns);

	/* What did not fit is said in the next message, at once; what is still short then, in a
	 * while. */
	if (all)
		r->short_ns = now_ns + r->config.rtt_ns / 4;
	if (!n)
		return 0;
	*type = parity ? CONTROL_EC_SHORT : CONTROL_EC_NACK;
	return parity ? encode_short(r, p, groups, n) : ec_nack_encode(p, groups, n);
}

uint16_t ec_receiver_tell(struct ec_receiver *r, uint8_t *p, size_t max, enum control_type *type, uint64_t now_ns)
{
	uint16_t len;

	if (ec_receiver_whole(r)) {
		*type = CONTROL_EC_ACK;
		return now_ns >= r->ack_ns ? tell_whole(r, p, now_ns) : 0;
	}
	if (now_ns >= r->short_ns) {
		len = tell_short(r, p, max, type, now_ns);
		if (len)
			return len;
	}
	if (r->good && r->ended)
		return sr_receiver_tell(&r->sr, p, max, type, now_ns);
	return 0;
}
