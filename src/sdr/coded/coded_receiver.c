/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A packet that is missed is in one stage's list, or, of the tail, in none. A stage's delay is the same for all in it,
 * so its list is in order of time. Packets that have come meanwhile stay in their lists until their time, and go then.
 */
#include "sdr/coded/coded_receiver.h"

#include <assert.h>
#include <errno.h>

#define NONE UINT32_MAX

enum { TICK_SHIFT = 10, FINALS = 4, NAMES_MAX = 512, MARGIN = 2, NAMINGS_A_RTT = 512 };

/* ---- time --------------------------------------------------------------------------------------------- */

/* A caller that looked at its clock before the receive was posted may bring the first packets. */
static uint32_t tick(const struct coded_receiver *r, uint64_t now_ns)
{
	return now_ns > r->start_ns ? (uint32_t)((now_ns - r->start_ns) >> TICK_SHIFT) : 0;
}

static uint64_t time_of(const struct coded_receiver *r, uint32_t t)
{
	return r->start_ns + ((uint64_t)t << TICK_SHIFT);
}

/* How long a packet stays in a stage. A little before the first naming, as it may only be late. */
static uint64_t delay_ns(const struct coded_receiver *r, uint32_t stage)
{
	return stage == 0 ? r->rtt_ns / 256 : stage < CODED_STAGES - 1 ? r->rtt_ns / 64 : r->rtt_ns + r->rtt_ns / 16;
}

/* ---- life --------------------------------------------------------------------------------------------- */

static size_t words(uint32_t packets)
{
	return (packets + 63) / 64;
}

int coded_receiver_init(struct coded_receiver *r, uint64_t rtt_ns, uint32_t packets, uint32_t parity_packets,
			uint64_t now_ns, const struct alloc *alloc)
{
	assert(packets && rtt_ns);
	*r = (struct coded_receiver){
		.rtt_ns = rtt_ns,
		.start_ns = now_ns,
		.packets = packets,
		.parity_packets = parity_packets,
		.came_ns = now_ns,
		.state_ns = UINT64_MAX,
		.judge_ns = UINT64_MAX,
		.alloc = alloc,
	};
	for (int i = 0; i < CODED_STAGES; i++)
		r->stage[i] = (struct coded_stage){NONE, NONE};
	r->missing = alloc_get(alloc, packets * sizeof(*r->missing));
	r->bits = alloc_get(alloc, words(packets) * sizeof(*r->bits));
	r->named = alloc_get(alloc, words(packets) * sizeof(*r->named));
	r->parity_bits = alloc_get(alloc, words(parity_packets) * sizeof(*r->parity_bits));
	if (r->missing && r->bits && r->named && r->parity_bits)
		return 0;
	coded_receiver_free(r);
	return -ENOMEM;
}

void coded_receiver_free(struct coded_receiver *r)
{
	alloc_put(r->alloc, r->missing, r->packets * sizeof(*r->missing));
	alloc_put(r->alloc, r->bits, words(r->packets) * sizeof(*r->bits));
	alloc_put(r->alloc, r->named, words(r->packets) * sizeof(*r->named));
	alloc_put(r->alloc, r->parity_bits, words(r->parity_packets) * sizeof(*r->parity_bits));
	alloc_put(r->alloc, r->group, r->plan.groups * sizeof(*r->group));
	r->missing = NULL;
	r->bits = NULL;
	r->named = NULL;
	r->parity_bits = NULL;
	r->group = NULL;
}

/* ---- stages ------------------------------------------------------------------------------------------- */

static bool there(const struct coded_receiver *r, uint32_t packet)
{
	return r->bits[packet / 64] >> packet % 64 & 1;
}

static bool was_named(const struct coded_receiver *r, uint32_t packet)
{
	return r->named[packet / 64] >> packet % 64 & 1;
}

static bool is_listed(const struct coded_receiver *r, uint32_t packet)
{
	return r->missing[packet].tick;
}

static void stage_put(struct coded_receiver *r, uint32_t stage, uint32_t packet, uint64_t now_ns)
{
	struct coded_stage *s = &r->stage[stage];

	/* Many packets share a word, and a tick of 0 is in no list. */
	uint32_t step = (uint32_t)(r->rtt_ns / NAMINGS_A_RTT >> TICK_SHIFT) + 1;

	r->missing[packet] = (struct coded_missing){NONE, (tick(r, now_ns + delay_ns(r, stage)) / step + 1) * step};
	if (s->first == NONE)
		s->first = packet;
	else
		r->missing[s->last].next = packet;
	s->last = packet;
}

static uint32_t stage_take(struct coded_receiver *r, uint32_t stage)
{
	struct coded_stage *s = &r->stage[stage];
	uint32_t packet = s->first;

	s->first = r->missing[packet].next;
	r->missing[packet].tick = 0;
	return packet;
}

static bool stage_is_due(const struct coded_receiver *r, uint32_t stage, uint64_t now_ns)
{
	uint32_t first = r->stage[stage].first;

	return first != NONE && time_of(r, r->missing[first].tick) <= now_ns;
}

/* ---- what came ---------------------------------------------------------------------------------------- */

static bool is_coded(const struct coded_receiver *r, uint32_t packet)
{
	return r->planned && packet >= r->plan.tail;
}

static void check_whole(struct coded_receiver *r, uint64_t now_ns)
{
	bool whole = r->have == r->packets ||
		     (r->planned && r->head_have == r->plan.tail && r->groups_done == r->plan.groups);

	if (!whole || r->state.whole)
		return;
	r->state.whole = true;
	r->finals = FINALS;
	r->state_ns = now_ns;
}

static bool parity_there(const struct coded_receiver *r, uint32_t packet)
{
	return r->parity_bits[packet / 64] >> packet % 64 & 1;
}

/* Whether a wide group's parities give the packets that it lacks, which are no more than these. */
static bool is_solvable(const struct coded_receiver *r, uint32_t g, uint32_t size)
{
	uint16_t lost[EC_WIDE_PARITY_MAX];
	uint8_t rows[EC_WIDE_PARITY_MAX];
	uint32_t n_lost = 0, n_rows = 0;

	for (uint32_t i = 0; i < r->plan.parity; i++) {
		if (parity_there(r, i * r->plan.groups + g))
			rows[n_rows++] = (uint8_t)i;
	}
	for (uint32_t i = 0; n_lost < size - r->group[g].data; i++) {
		if (!there(r, coded_plan_packet(&r->plan, g, i)))
			lost[n_lost++] = (uint16_t)i;
	}
	return ec_wide_solve(lost, n_lost, rows, n_rows, NULL, NULL);
}

static void check_group(struct coded_receiver *r, uint32_t g)
{
	struct coded_group *group = &r->group[g];
	uint32_t size = coded_plan_size(&r->plan, g);

	if (group->done || group->data + group->parity < size)
		return;
	if (coded_plan_is_wide(&r->plan) && group->data < size && !is_solvable(r, g, size))
		return;
	group->done = true;
	r->groups_done++;
}

/* Packets up to `end` were overtaken. */
static void miss(struct coded_receiver *r, uint32_t end, uint64_t now_ns)
{
	if (end > r->next) {
		r->state.lost += end - r->next;
		r->state.bursts++;
	}
	for (; r->next < end; r->next++) {
		if (!is_coded(r, r->next))
			stage_put(r, 0, r->next, now_ns);
	}
	r->state.seen = r->next;
}

/* It was only late. */
static void not_missed(struct coded_receiver *r)
{
	r->state.lost--;
	if (r->state.bursts > r->state.lost)
		r->state.bursts = r->state.lost;
}

/* A quarter of the next block is there: what is missing of those before it was lost. */
static void look_at_blocks(struct coded_receiver *r, uint32_t packet);
static void judge(struct coded_receiver *r, uint32_t blocks, uint64_t now_ns);

static void data_came(struct coded_receiver *r, uint32_t packet, uint64_t now_ns)
{
	if (packet >= r->packets || there(r, packet))
		return;
	r->bits[packet / 64] |= UINT64_C(1) << packet % 64;
	r->have++;
	if (packet >= r->next) {
		miss(r, packet, now_ns);
		r->next = packet + 1;
		r->state.seen = r->next;
	} else if (!was_named(r, packet) && r->state.lost) {
		not_missed(r);
	}
	if (!r->planned)
		return;
	if (packet < r->plan.tail) {
		r->head_have++;
		return;
	}
	r->group[coded_plan_group(&r->plan, packet)].data++;
	check_group(r, coded_plan_group(&r->plan, packet));
	look_at_blocks(r, packet);
}

static void parity_came(struct coded_receiver *r, uint32_t packet)
{
	if (packet >= r->parity_packets || parity_there(r, packet))
		return;
	r->parity_bits[packet / 64] |= UINT64_C(1) << packet % 64;
	if (!r->planned || packet / r->plan.groups >= r->plan.parity)
		return; /* counted when the plan comes, if it has a place then */
	r->group[packet % r->plan.groups].parity++;
	check_group(r, packet % r->plan.groups);
}

void coded_receiver_came(struct coded_receiver *r, bool parity, uint32_t packet, uint64_t now_ns)
{
	r->came_ns = now_ns;
	if (r->state_ns == UINT64_MAX)
		r->state_ns = now_ns + r->rtt_ns / 4;
	if (r->state.whole)
		return;
	if (parity)
		parity_came(r, packet);
	else
		data_came(r, packet, now_ns);
	if (r->planned && r->judged_blocks < r->look_blocks)
		judge(r, r->look_blocks, now_ns);
	check_whole(r, now_ns);
}

/* ---- the plan ----------------------------------------------------------------------------------------- */

/* What came before the plan did. */
static void count_again(struct coded_receiver *r)
{
	for (uint32_t i = 0; i < r->packets; i++) {
		if (!there(r, i))
			continue;
		if (i < r->plan.tail)
			r->head_have++;
		else
			r->group[coded_plan_group(&r->plan, i)].data++;
	}
	for (uint32_t i = 0; i < r->plan.groups * r->plan.parity; i++)
		r->group[i % r->plan.groups].parity += parity_there(r, i);
	for (uint32_t g = 0; g < r->plan.groups; g++)
		check_group(r, g);
}

static bool take_plan(struct coded_receiver *r, const struct coded_plan *p)
{
	struct coded_group *group;

	if (p->packets != r->packets || (uint64_t)p->groups * p->parity > r->parity_packets)
		return false;
	group = alloc_get(r->alloc, p->groups * sizeof(*group));
	if (!group)
		return false; /* the sender says it again */
	r->plan = *p;
	r->group = group;
	r->planned = true;
	count_again(r);
	return true;
}

static bool is_same(const struct coded_plan *a, const struct coded_plan *b)
{
	return a->packets == b->packets && a->tail == b->tail && a->size == b->size && a->depth == b->depth &&
	       a->parity == b->parity;
}

bool coded_receiver_plan(struct coded_receiver *r, const uint8_t *payload, uint64_t now_ns)
{
	struct coded_plan p;
	bool ended;

	if (!coded_plan_decode(&p, &ended, payload))
		return false;
	if (r->planned ? !is_same(&p, &r->plan) : !take_plan(r, &p))
		return false;
	check_whole(r, now_ns);
	if (r->state.whole && !r->finals) {
		r->finals = 1;
		r->state_ns = now_ns;
	}
	/* Packets on other paths may be later than the word. */
	if (ended && !r->ended && !r->state.whole)
		r->judge_ns = now_ns + r->rtt_ns / 256;
	r->ended |= ended;
	return true;
}

/* ---- short groups ------------------------------------------------------------------------------------- */

static void look_at_blocks(struct coded_receiver *r, uint32_t packet)
{
	uint32_t block = coded_plan_block(&r->plan, packet);
	struct coded_block b = coded_plan_block_at(&r->plan, block);

	if (block > r->look_blocks && packet - b.packet >= b.packets / 4)
		r->look_blocks = block;
}

static void name_group(struct coded_receiver *r, uint32_t g, uint64_t now_ns)
{
	uint32_t size = coded_plan_size(&r->plan, g);
	uint32_t have = r->group[g].data + r->group[g].parity, lacks = have < size ? size - have : 0;

	lacks += MARGIN + lacks / 4;
	for (uint32_t i = 0; i < size && lacks; i++) {
		uint32_t packet = coded_plan_packet(&r->plan, g, i);

		if (there(r, packet))
			continue;
		if (!is_listed(r, packet))
			stage_put(r, 0, packet, now_ns);
		lacks--;
	}
}

static void judge(struct coded_receiver *r, uint32_t blocks, uint64_t now_ns)
{
	for (; r->judged_blocks < blocks; r->judged_blocks++) {
		struct coded_block b = coded_plan_block_at(&r->plan, r->judged_blocks);

		for (uint32_t g = b.first; g < b.first + b.count; g++) {
			if (!r->group[g].done)
				name_group(r, g, now_ns);
		}
	}
}

/* ---- what to say -------------------------------------------------------------------------------------- */

static uint64_t silence_ns(const struct coded_receiver *r)
{
	bool all_judged = r->planned && r->judged_blocks == coded_plan_blocks(&r->plan) && r->next == r->packets;

	return r->state.whole || all_judged || !r->have ? UINT64_MAX : r->came_ns + r->rtt_ns / 4;
}

uint64_t coded_receiver_deadline(const struct coded_receiver *r)
{
	uint64_t at_ns = r->state_ns < r->judge_ns ? r->state_ns : r->judge_ns;

	/* What was to be judged is there. */
	if (r->state.whole)
		return r->state_ns;
	if (silence_ns(r) < at_ns)
		at_ns = silence_ns(r);
	for (uint32_t i = 0; i < CODED_STAGES; i++) {
		uint32_t first = r->stage[i].first;

		if (first != NONE && time_of(r, r->missing[first].tick) < at_ns)
			at_ns = time_of(r, r->missing[first].tick);
	}
	return at_ns;
}

/* All was sent, or will not come: what is not there is missed. */
void coded_receiver_expire(struct coded_receiver *r, uint64_t now_ns)
{
	if (r->state.whole || (now_ns < r->judge_ns && now_ns < silence_ns(r)))
		return;
	r->judge_ns = UINT64_MAX;
	r->came_ns = now_ns;
	if (!r->planned && r->next < r->packets && !r->ended) {
		/* The sender may only have paused: no more is missed than up to what came last. */
		return;
	}
	miss(r, r->packets, now_ns);
	if (r->planned)
		judge(r, coded_plan_blocks(&r->plan), now_ns);
}

static uint16_t tell_state(struct coded_receiver *r, uint8_t *p, uint64_t now_ns)
{
	static const uint32_t parts[FINALS + 1] = {0, 0, 8, 64, 256}; /* of a round trip, to the next one */

	r->finals -= r->finals > 0;
	if (r->finals)
		r->state_ns = now_ns + r->rtt_ns / parts[r->finals + 1];
	else
		r->state_ns = UINT64_MAX;
	return coded_state_encode(p, &r->state);
}

/* Whether a packet whose time has come is still wanted. */
static bool is_wanted(const struct coded_receiver *r, uint32_t packet)
{
	return !there(r, packet) && !(is_coded(r, packet) && r->group[coded_plan_group(&r->plan, packet)].done);
}

/* Adds a packet to the runs; false: there is no room. */
static bool add(struct chunk_run *runs, uint16_t *n, size_t room, uint32_t packet)
{
	if (*n && runs[*n - 1].first + runs[*n - 1].count == packet)
		runs[*n - 1].count++;
	else if (*n < room)
		runs[(*n)++] = (struct chunk_run){packet, 1};
	else
		return false;
	return true;
}

static uint16_t tell_names(struct coded_receiver *r, uint8_t *p, size_t max, uint64_t now_ns)
{
	size_t room = (max - SR_NACK_FIXED_LEN) / SR_NACK_RUN_LEN;
	struct chunk_run runs[NAMES_MAX];
	uint16_t n = 0;

	room = room < NAMES_MAX ? room : NAMES_MAX;
	for (uint32_t i = 0; i < CODED_STAGES; i++) {
		uint32_t next = i < CODED_STAGES - 1 ? i + 1 : 1;

		while (stage_is_due(r, i, now_ns)) {
			uint32_t packet = r->stage[i].first;

			if (is_wanted(r, packet) && !add(runs, &n, room, packet))
				return sr_nack_encode(p, runs, n);
			stage_take(r, i);
			r->named[packet / 64] |= UINT64_C(1) << packet % 64;
			if (is_wanted(r, packet))
				stage_put(r, next, packet, now_ns);
		}
	}
	return n ? sr_nack_encode(p, runs, n) : 0;
}

uint16_t coded_receiver_tell(struct coded_receiver *r, uint8_t *p, size_t max, enum control_type *type, uint64_t now_ns)
{
	if (now_ns >= r->state_ns) {
		*type = CONTROL_CODED_STATE;
		return tell_state(r, p, now_ns);
	}
	*type = CONTROL_SR_NACK;
	return r->state.whole ? 0 : tell_names(r, p, max, now_ns);
}
