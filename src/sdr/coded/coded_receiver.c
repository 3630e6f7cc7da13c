/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A piece that is missed is in one stage's list, or, of a group, in none. A stage's delay is the same for all in it, so
 * its list is in order of time. Pieces that have come meanwhile stay in their lists until their time, and go then.
 */
#include "sdr/coded/coded_receiver.h"

#include <assert.h>
#include <errno.h>

#include "sdr/ec/wide.h"

#define NONE UINT32_MAX

enum { REORDER = 16 /* pieces, on several channels */, ACK_NS_MIN = 20000 };
enum { TICK_SHIFT = 10, FINALS = 4, NAMES_MAX = 512, MARGIN = 2, NAMINGS_A_RTT = 512 };

/* ---- time --------------------------------------------------------------------------------------------- */

/* A caller that looked at its clock before the receive was posted may bring the first pieces. */
static uint32_t tick(const struct coded_receiver *r, uint64_t now_ns)
{
	return now_ns > r->start_ns ? (uint32_t)((now_ns - r->start_ns) >> TICK_SHIFT) : 0;
}

static uint64_t time_of(const struct coded_receiver *r, uint32_t t)
{
	return r->start_ns + ((uint64_t)t << TICK_SHIFT);
}

/* How long a piece stays in a stage. A little before the first naming, as it may only be late. */
static uint64_t delay_ns(const struct coded_receiver *r, uint32_t stage)
{
	return stage == 0 ? r->rtt_ns / 256 : stage < CODED_STAGES - 1 ? r->rtt_ns / 64 : r->rtt_ns + r->rtt_ns / 16;
}

/* ---- life --------------------------------------------------------------------------------------------- */

static size_t words(uint32_t pieces)
{
	return (pieces + 63) / 64;
}

static void no_stages(struct coded_receiver *r)
{
	for (int i = 0; i < CODED_STAGES; i++)
		r->stage[i] = (struct coded_stage){NONE, NONE};
}

int coded_receiver_init(struct coded_receiver *r, uint64_t rtt_ns, uint32_t pieces, uint32_t parity_pieces,
			uint64_t now_ns, const struct alloc *alloc)
{
	assert(pieces && rtt_ns);
	*r = (struct coded_receiver){
		.rtt_ns = rtt_ns,
		.start_ns = now_ns,
		.pieces = pieces,
		.parity_pieces = parity_pieces,
		.came_ns = now_ns,
		.state_ns = UINT64_MAX,
		.judge_ns = UINT64_MAX,
		.alloc = alloc,
	};
	no_stages(r);
	r->missing = alloc_get(alloc, pieces * sizeof(*r->missing));
	r->bits = alloc_get(alloc, words(pieces) * sizeof(*r->bits));
	r->named = alloc_get(alloc, words(pieces) * sizeof(*r->named));
	r->parity_bits = alloc_get(alloc, words(parity_pieces) * sizeof(*r->parity_bits));
	if (r->missing && r->bits && r->named && r->parity_bits)
		return 0;
	coded_receiver_free(r);
	return -ENOMEM;
}

void coded_receiver_free(struct coded_receiver *r)
{
	alloc_put(r->alloc, r->missing, r->pieces * sizeof(*r->missing));
	alloc_put(r->alloc, r->bits, words(r->pieces) * sizeof(*r->bits));
	alloc_put(r->alloc, r->named, words(r->pieces) * sizeof(*r->named));
	alloc_put(r->alloc, r->parity_bits, words(r->parity_pieces) * sizeof(*r->parity_bits));
	alloc_put(r->alloc, r->group, r->plan.layout.groups * sizeof(*r->group));
	alloc_put(r->alloc, r->good, words(r->pieces) * sizeof(*r->good));
	if (r->sr.alloc)
		sr_receiver_free(&r->sr);
	r->missing = NULL;
	r->bits = NULL;
	r->named = NULL;
	r->parity_bits = NULL;
	r->group = NULL;
	r->good = NULL;
	r->sr.alloc = NULL;
}

/* ---- stages ------------------------------------------------------------------------------------------- */

static bool is_set(const uint64_t *bits, uint32_t at)
{
	return bits[at / 64] >> at % 64 & 1;
}

static void set(uint64_t *bits, uint32_t at)
{
	bits[at / 64] |= UINT64_C(1) << at % 64;
}

static bool there(const struct coded_receiver *r, uint32_t piece)
{
	return is_set(r->bits, piece);
}

bool coded_receiver_has(const struct coded_receiver *r, const struct ec_piece *p)
{
	return is_set(p->parity ? r->parity_bits : r->bits, p->at);
}

static bool is_listed(const struct coded_receiver *r, uint32_t piece)
{
	return r->missing[piece].tick;
}

static void stage_put(struct coded_receiver *r, uint32_t stage, uint32_t piece, uint64_t now_ns)
{
	struct coded_stage *s = &r->stage[stage];

	/* Many pieces share a word, and a tick of 0 is in no list. */
	uint32_t step = (uint32_t)(r->rtt_ns / NAMINGS_A_RTT >> TICK_SHIFT) + 1;

	r->missing[piece] = (struct coded_missing){NONE, (tick(r, now_ns + delay_ns(r, stage)) / step + 1) * step};
	if (s->first == NONE)
		s->first = piece;
	else
		r->missing[s->last].next = piece;
	s->last = piece;
}

static uint32_t stage_take(struct coded_receiver *r, uint32_t stage)
{
	struct coded_stage *s = &r->stage[stage];
	uint32_t piece = s->first;

	s->first = r->missing[piece].next;
	r->missing[piece].tick = 0;
	return piece;
}

static bool stage_is_due(const struct coded_receiver *r, uint32_t stage, uint64_t now_ns)
{
	uint32_t first = r->stage[stage].first;

	return first != NONE && time_of(r, r->missing[first].tick) <= now_ns;
}

/* ---- what came ---------------------------------------------------------------------------------------- */

static bool is_coded(const struct coded_receiver *r, uint32_t piece)
{
	return r->planned && piece >= r->plan.layout.first;
}

static void check_whole(struct coded_receiver *r, uint64_t now_ns)
{
	bool whole = r->have == r->pieces ||
		     (r->planned && r->head_have == r->plan.layout.first && r->groups_done == r->plan.layout.groups);

	if (!whole || r->state.whole)
		return;
	r->state.whole = true;
	r->finals = FINALS;
	r->state_ns = now_ns;
}

static bool data_there(const struct coded_receiver *r, uint32_t g, uint32_t i)
{
	return there(r, ec_layout_data_of(&r->plan.layout, g, i).at);
}

static bool parity_there(const struct coded_receiver *r, uint32_t g, uint32_t i)
{
	return is_set(r->parity_bits, ec_layout_parity_of(&r->plan.layout, g, i).at);
}

/* Whether a wide group's parities give the pieces that it lacks, which are no more than these. */
static bool is_solvable(const struct coded_receiver *r, uint32_t g, uint32_t size)
{
	uint16_t lost[EC_WIDE_PARITY_MAX];
	uint8_t rows[EC_WIDE_PARITY_MAX];
	uint32_t n_lost = 0, n_rows = 0;

	for (uint32_t i = 0; i < r->plan.layout.parity_max; i++) {
		if (parity_there(r, g, i))
			rows[n_rows++] = (uint8_t)i;
	}
	for (uint32_t i = 0; n_lost < size - r->group[g].data; i++) {
		if (!data_there(r, g, i))
			lost[n_lost++] = (uint16_t)i;
	}
	return ec_wide_solve(lost, n_lost, rows, n_rows, NULL, NULL);
}

/* Parity i is of the data j with j mod parity = i: of all of these and itself one may be missing. */
static bool have_classes(const struct coded_receiver *r, uint32_t g, uint32_t size)
{
	uint32_t classes = r->plan.layout.parity_max;

	for (uint32_t i = 0; i < classes && i < size; i++) {
		uint32_t missing = !parity_there(r, g, i);

		for (uint32_t j = i; j < size; j += classes)
			missing += !data_there(r, g, j);
		if (missing > 1)
			return false;
	}
	return true;
}

static bool is_enough(const struct coded_receiver *r, uint32_t g)
{
	const struct coded_group *group = &r->group[g];
	uint32_t size = ec_layout_size(&r->plan.layout, g);

	if (group->data == size || group->data + group->parity < size)
		return group->data == size;
	if (r->plan.is_xor)
		return have_classes(r, g, size);
	return !ec_layout_is_wide(&r->plan.layout) || is_solvable(r, g, size);
}

static void check_group(struct coded_receiver *r, uint32_t g)
{
	if (r->group[g].done || !is_enough(r, g))
		return;
	r->group[g].done = true;
	r->groups_done++;
	for (uint32_t i = 0; r->good && i < ec_layout_size(&r->plan.layout, g); i++)
		set(r->good, ec_layout_data_of(&r->plan.layout, g, i).at);
}

/* Pieces up to `end` were overtaken. */
static void miss(struct coded_receiver *r, uint32_t end, uint64_t now_ns)
{
	if (end > r->next) {
		r->state.lost += end - r->next;
		r->state.bursts++;
	}
	for (; r->next < end; r->next++) {
		if (!is_coded(r, r->next) && !r->good)
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
static void look_at_blocks(struct coded_receiver *r, uint32_t piece);
static void judge(struct coded_receiver *r, uint32_t blocks, uint64_t now_ns);

static void data_came(struct coded_receiver *r, uint32_t piece, uint64_t now_ns)
{
	uint32_t g;

	if (piece >= r->pieces || there(r, piece))
		return;
	set(r->bits, piece);
	r->have++;
	if (piece >= r->next) {
		miss(r, piece, now_ns);
		r->next = piece + 1;
		r->state.seen = r->next;
	} else if (!is_set(r->named, piece) && r->state.lost) {
		not_missed(r);
	}
	if (!r->planned)
		return;
	if (r->good)
		set(r->good, piece);
	if (piece < r->plan.layout.first) {
		r->head_have++;
		return;
	}
	g = ec_layout_data(&r->plan.layout, piece).group;
	r->group[g].data++;
	check_group(r, g);
	look_at_blocks(r, piece);
}

static void parity_came(struct coded_receiver *r, uint32_t piece)
{
	const struct ec_layout *l = &r->plan.layout;

	if (piece >= r->parity_pieces || is_set(r->parity_bits, piece))
		return;
	set(r->parity_bits, piece);
	if (!r->planned || piece / l->groups >= l->parity_max)
		return; /* counted when the plan comes, if it has a place then */
	r->group[piece % l->groups].parity++;
	check_group(r, piece % l->groups);
}

/* From the plan on, which goes before the first piece, or from that. */
static void expect_end(struct coded_receiver *r, uint64_t now_ns)
{
	if (r->good && r->plan.wait_ns && !r->waits && !r->repeating) {
		r->waits = true;
		r->judge_ns = now_ns + r->plan.wait_ns;
	}
}

void coded_receiver_came(struct coded_receiver *r, bool parity, uint32_t piece, uint64_t now_ns)
{
	r->came_ns = now_ns;
	if (r->state_ns == UINT64_MAX)
		r->state_ns = now_ns + r->rtt_ns / 4;
	if (r->state.whole)
		return;
	expect_end(r, now_ns);
	if (parity)
		parity_came(r, piece);
	else
		data_came(r, piece, now_ns);
	if (r->planned && r->judged_blocks < r->look_blocks)
		judge(r, r->look_blocks, now_ns);
	if (r->repeating)
		sr_receiver_look(&r->sr, now_ns);
	check_whole(r, now_ns);
}

/* ---- the plan ----------------------------------------------------------------------------------------- */

/* What came before the plan did. */
static void count_again(struct coded_receiver *r)
{
	const struct ec_layout *l = &r->plan.layout;

	for (uint32_t i = 0; i < r->pieces; i++) {
		if (!there(r, i))
			continue;
		if (r->good)
			set(r->good, i);
		if (i < l->first)
			r->head_have++;
		else
			r->group[ec_layout_data(l, i).group].data++;
	}
	for (uint32_t i = 0; i < l->groups * l->parity_max; i++)
		r->group[i % l->groups].parity += is_set(r->parity_bits, i);
	for (uint32_t g = 0; g < l->groups; g++)
		check_group(r, g);
}

static bool repeat_init(struct coded_receiver *r, const struct coded_plan *p, uint64_t now_ns)
{
	const struct sr_receiver_config sr = {
		.rtt_ns = r->rtt_ns,
		.ack_ns = r->rtt_ns / 64 > ACK_NS_MIN ? r->rtt_ns / 64 : ACK_NS_MIN,
		.reorder = REORDER,
		.nack = true,
	};

	r->good = alloc_get(r->alloc, words(r->pieces) * sizeof(*r->good));
	if (r->good && !sr_receiver_init(&r->sr, &sr, r->good, r->pieces, now_ns, r->alloc)) {
		no_stages(r); /* what was missed before the plan came is the repeat's */
		return true;
	}
	alloc_put(r->alloc, r->good, words(r->pieces) * sizeof(*r->good));
	r->good = NULL;
	r->sr.alloc = NULL;
	return false;
}

static bool take_plan(struct coded_receiver *r, const struct coded_plan *p, uint64_t now_ns)
{
	const struct ec_layout *l = &p->layout;
	struct coded_group *group;

	if (l->pieces != r->pieces || (uint64_t)l->groups * l->parity_max > r->parity_pieces)
		return false;
	group = alloc_get(r->alloc, l->groups * sizeof(*group));
	if (!group || (p->repeats && !repeat_init(r, p, now_ns))) {
		alloc_put(r->alloc, group, l->groups * sizeof(*group));
		return false; /* the sender says it again */
	}
	r->plan = *p;
	r->group = group;
	r->planned = true;
	count_again(r);
	expect_end(r, now_ns);
	return true;
}

static bool is_same(const struct coded_plan *a, const struct coded_plan *b)
{
	return a->layout.first == b->layout.first && a->layout.data == b->layout.data &&
	       a->layout.depth == b->layout.depth && a->layout.parity_max == b->layout.parity_max &&
	       a->layout.pieces == b->layout.pieces && a->is_xor == b->is_xor && a->repeats == b->repeats;
}

static bool hear_plan(struct coded_receiver *r, const uint8_t *payload, uint64_t now_ns)
{
	struct coded_plan p;

	if (!coded_plan_decode(&p, payload))
		return false;
	if (r->planned ? !is_same(&p, &r->plan) : !take_plan(r, &p, now_ns))
		return false;
	check_whole(r, now_ns);
	/* Pieces on other paths may be later than the word. */
	if (p.ended && !r->ended && !r->state.whole)
		r->judge_ns = now_ns + r->rtt_ns / 256;
	r->ended |= p.ended;
	return true;
}

bool coded_receiver_take(struct coded_receiver *r, enum control_type type, const uint8_t *payload, uint64_t now_ns)
{
	if (type != CONTROL_PROBE && (type != CONTROL_CODED_PLAN || !hear_plan(r, payload, now_ns)))
		return false;
	if (type == CONTROL_PROBE && r->repeating)
		sr_receiver_probed(&r->sr, now_ns);
	if (r->state.whole && !r->finals) {
		r->finals = 1;
		r->state_ns = now_ns;
	}
	return true;
}

/* ---- short groups ------------------------------------------------------------------------------------- */

static void look_at_blocks(struct coded_receiver *r, uint32_t piece)
{
	uint32_t block = ec_layout_block_of(&r->plan.layout, piece);
	struct ec_block b = ec_layout_block(&r->plan.layout, block);

	if (block > r->look_blocks && piece - b.at >= b.pieces / 4)
		r->look_blocks = block;
}

static void name_group(struct coded_receiver *r, uint32_t g, uint64_t now_ns)
{
	uint32_t size = ec_layout_size(&r->plan.layout, g);
	uint32_t have = r->group[g].data + r->group[g].parity, lacks = have < size ? size - have : 0;

	lacks += MARGIN + lacks / 4;
	for (uint32_t i = 0; i < size && lacks; i++) {
		uint32_t piece = ec_layout_data_of(&r->plan.layout, g, i).at;

		if (there(r, piece))
			continue;
		if (!is_listed(r, piece))
			stage_put(r, 0, piece, now_ns);
		lacks--;
	}
}

static void judge(struct coded_receiver *r, uint32_t blocks, uint64_t now_ns)
{
	for (; r->judged_blocks < blocks && !r->good; r->judged_blocks++) {
		struct ec_block b = ec_layout_block(&r->plan.layout, r->judged_blocks);

		for (uint32_t g = b.group; g < b.group + b.groups; g++) {
			if (!r->group[g].done)
				name_group(r, g, now_ns);
		}
	}
}

/* ---- what to say -------------------------------------------------------------------------------------- */

static uint64_t silence_ns(const struct coded_receiver *r)
{
	bool all_judged = r->planned && r->judged_blocks == ec_layout_blocks(&r->plan.layout) && r->next == r->pieces;

	return r->state.whole || all_judged || r->good || !r->have ? UINT64_MAX : r->came_ns + r->rtt_ns / 4;
}

uint64_t coded_receiver_deadline(const struct coded_receiver *r)
{
	uint64_t at_ns = r->state_ns < r->judge_ns ? r->state_ns : r->judge_ns;

	/* What was to be judged is there. */
	if (r->state.whole)
		return r->state_ns;
	if (silence_ns(r) < at_ns)
		at_ns = silence_ns(r);
	if (r->repeating && sr_receiver_deadline(&r->sr) < at_ns)
		at_ns = sr_receiver_deadline(&r->sr);
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
	if (r->repeating)
		sr_receiver_look(&r->sr, now_ns);
	if (r->state.whole || (now_ns < r->judge_ns && now_ns < silence_ns(r)))
		return;
	r->judge_ns = UINT64_MAX;
	r->came_ns = now_ns;
	if (!r->planned && r->next < r->pieces && !r->ended) {
		/* The sender may only have paused: no more is missed than up to what came last. */
		return;
	}
	miss(r, r->pieces, now_ns);
	if (r->planned)
		judge(r, ec_layout_blocks(&r->plan.layout), now_ns);
	if (r->good) {
		r->repeating = true;
		sr_receiver_look(&r->sr, now_ns);
		sr_receiver_ended(&r->sr, now_ns);
	}
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

/* Whether a piece whose time has come is still wanted. */
static bool is_wanted(const struct coded_receiver *r, uint32_t piece)
{
	return !there(r, piece) && !(is_coded(r, piece) && r->group[ec_layout_data(&r->plan.layout, piece).group].done);
}

/* Adds a piece to the runs; false: there is no room. */
static bool add(struct chunk_run *runs, uint16_t *n, size_t room, uint32_t piece)
{
	if (*n && runs[*n - 1].first + runs[*n - 1].count == piece)
		runs[*n - 1].count++;
	else if (*n < room)
		runs[(*n)++] = (struct chunk_run){piece, 1};
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
			uint32_t piece = r->stage[i].first;

			if (is_wanted(r, piece) && !add(runs, &n, room, piece))
				return sr_nack_encode(p, runs, n);
			stage_take(r, i);
			set(r->named, piece);
			if (is_wanted(r, piece))
				stage_put(r, next, piece, now_ns);
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
	if (r->state.whole)
		return 0;
	if (r->repeating)
		return sr_receiver_tell(&r->sr, p, max, type, now_ns);
	*type = CONTROL_SR_NACK;
	return tell_names(r, p, max, now_ns);
}
