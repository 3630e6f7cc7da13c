/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Named pieces wait in a ring of bounded size; one that finds it full is named again by the receiver. A piece that was
 * sent less than a round trip before it was named is on its way, and not sent again.
 */
#include "sdr/coded/coded_sender.h"

#include <assert.h>
#include <errno.h>

#include "sdr/coded/coded_plan.h"

enum {
	RING_MIN = 256,
	RING_MAX = 1 << 18,
	TICK_SHIFT = 10, /* of 1.024 us: 73 minutes fit 32 bits */
	PLAN_SAYINGS = 3,
	SILENCE_RTTS = 3,
};

static uint32_t tick(const struct coded_sender *s, uint64_t now_ns)
{
	return (uint32_t)((now_ns - s->start_ns) >> TICK_SHIFT);
}

/* It was named half a round trip ago, by when what was sent a round trip ago had come. Namings of one loss come within
 * a small part of a round trip. */
static bool is_recent(const struct coded_sender *s, uint32_t then, uint64_t now_ns)
{
	return (uint64_t)(tick(s, now_ns) - then + 1) << TICK_SHIFT < s->config.rtt_ns / 4 * 3;
}

/* ---- rings -------------------------------------------------------------------------------------------- */

static int ring_init(struct coded_ring *r, uint32_t pieces, const struct alloc *alloc)
{
	uint32_t room = RING_MIN;

	while (room < pieces && room < RING_MAX)
		room *= 2;
	r->mask = room - 1;
	r->entry = alloc_get(alloc, room * sizeof(*r->entry));
	return r->entry ? 0 : -ENOMEM;
}

static void ring_free(struct coded_ring *r, const struct alloc *alloc)
{
	alloc_put(alloc, r->entry, (r->mask + 1) * sizeof(*r->entry));
	r->entry = NULL;
}

static uint32_t ring_count(const struct coded_ring *r)
{
	return r->tail - r->head;
}

static void ring_push(struct coded_ring *r, struct coded_again a)
{
	if (ring_count(r) <= r->mask)
		r->entry[r->tail++ & r->mask] = a;
}

static const struct coded_again *ring_first(const struct coded_ring *r)
{
	return r->head == r->tail ? NULL : &r->entry[r->head & r->mask];
}

/* ---- life --------------------------------------------------------------------------------------------- */

static void say_plan(struct coded_sender *s, uint64_t now_ns)
{
	s->sayings = PLAN_SAYINGS;
	s->say_ns = now_ns;
}

/* The owner's code. */
static int take_plan(struct coded_sender *s, uint64_t now_ns)
{
	const struct coded_config *c = &s->config;
	const struct sr_config sr = {c->rtt_ns, c->rto_ns, c->timeout_ns, c->tries_max};
	const struct ec_layout *l = &c->plan.layout;

	assert(l->pieces == s->pieces);
	s->plan = c->plan;
	s->planned = true;
	say_plan(s, now_ns);
	if (c->plan.repeats) {
		if (sr_sender_init(&s->sr, &sr, s->pieces, now_ns, s->alloc))
			return -ENOMEM;
		sr_sender_hold(&s->sr);
	}
	if (!c->fresh)
		return 0;
	s->answered = alloc_get(s->alloc, l->groups * sizeof(*s->answered));
	for (uint32_t g = 0; s->answered && g < l->groups; g++)
		s->answered[g].parities = (uint8_t)l->parity;
	return s->answered ? 0 : -ENOMEM;
}

int coded_sender_init(struct coded_sender *s, const struct coded_config *config, uint32_t pieces,
		      const struct loss_estimate *estimate, uint64_t now_ns, const struct alloc *alloc)
{
	assert(pieces > 0);
	assert(config->rtt_ns && config->piece_ns && config->timeout_ns);
	*s = (struct coded_sender){
		.config = *config,
		.estimate = *estimate,
		.start_ns = now_ns,
		.word_ns = now_ns,
		.say_ns = UINT64_MAX,
		.pieces = pieces,
		.alloc = alloc,
	};
	s->sent_tick = alloc_get(alloc, pieces * sizeof(*s->sent_tick));
	if (s->sent_tick && !ring_init(&s->due, pieces, alloc) && !ring_init(&s->later, pieces, alloc) &&
	    (!config->plan.layout.groups || !take_plan(s, now_ns)))
		return 0;
	coded_sender_free(s);
	return -ENOMEM;
}

void coded_sender_free(struct coded_sender *s)
{
	alloc_put(s->alloc, s->sent_tick, s->pieces * sizeof(*s->sent_tick));
	s->sent_tick = NULL;
	ring_free(&s->due, s->alloc);
	ring_free(&s->later, s->alloc);
	alloc_put(s->alloc, s->answered, s->plan.layout.groups * sizeof(*s->answered));
	s->answered = NULL;
	if (s->sr.alloc)
		sr_sender_free(&s->sr);
	s->sr.alloc = NULL;
}

void coded_sender_finish(struct coded_sender *s, enum sr_end end)
{
	if (s->end == SR_RUNNING)
		s->end = end;
}

static double loss_of(const struct coded_sender *s)
{
	return s->config.loss > 0 ? s->config.loss : loss_estimate_high(&s->estimate);
}

/* Groups have no more parities than pieces, but for the smallest of messages. */
uint32_t coded_parity_pieces(const struct coded_config *c, uint32_t pieces)
{
	return coded_plan_tail(pieces, c->rtt_ns, c->piece_ns) + EC_PIECES_MAX;
}

bool coded_sender_all_sent(const struct coded_sender *s)
{
	return s->planned && s->block == ec_layout_blocks(&s->plan.layout);
}

/* The tail begins with the piece that is next if it is no earlier than a plan made now would have it. */
static void plan(struct coded_sender *s, uint64_t now_ns)
{
	const struct coded_config *c = &s->config;
	const struct coded_link link = {
		.rtt_ns = c->rtt_ns > c->behind_ns ? c->rtt_ns - c->behind_ns : 0,
		.piece_ns = c->piece_ns,
		.loss = loss_of(s),
		.burst = c->loss > 0 ? 1 : loss_estimate_burst(&s->estimate),
		.feared = c->fill ? coded_plan_feared(loss_of(s)) : 0,
	};
	uint64_t room = c->parity_pieces ? c->parity_pieces : coded_parity_pieces(c, s->pieces);
	struct ec_layout *l = &s->plan.layout;

	coded_plan_make(l, s->pieces, &link);
	if (!link.rtt_ns)
		l->parity = 0;
	while ((uint64_t)l->groups * l->parity > room)
		l->parity--;
	l->parity_max = l->parity;
	if (link.rtt_ns && c->fill)
		s->fills_max = coded_plan_fill(l, &link, room);
	s->planned = true;
	say_plan(s, now_ns);
}

static bool tail_begins(const struct coded_sender *s)
{
	uint64_t left_ns = (s->pieces - s->unsent) * s->config.piece_ns;

	/* As coded_plan_make() reckons, or a little before. */
	return left_ns <= s->config.rtt_ns + s->config.rtt_ns / 16 + 128 * s->config.piece_ns;
}

/* ---- what to send ------------------------------------------------------------------------------------- */

/* Whether another round can still repair what is sent now: new packets go on for longer than that takes. */
static bool is_early(const struct coded_sender *s)
{
	uint64_t left = s->pieces - s->unsent + ring_count(&s->due);

	return left * s->config.piece_ns + s->config.behind_ns > s->config.rtt_ns + s->config.rtt_ns / 8;
}

/* Those that may be named in the last round trip. */
static uint32_t copies(const struct coded_sender *s)
{
	uint64_t pieces = s->config.rtt_ns / s->config.piece_ns;
	double loss = loss_of(s);

	if (is_early(s))
		return 1;
	if (pieces > s->pieces)
		pieces = s->pieces;
	return coded_copies((double)pieces * loss + 1, loss);
}

static struct coded_send answer(struct coded_sender *s, uint32_t piece)
{
	const struct ec_layout *l = &s->plan.layout;
	struct coded_answered *a = NULL;
	uint32_t group = 0;

	if (s->answered && piece >= l->first) {
		group = ec_layout_data(l, piece).group;
		a = &s->answered[group];
	}
	if (!a || a->parities == l->parity_max)
		return (struct coded_send){.resent = true, .piece = piece};
	return (struct coded_send){
		.parity = true, .resent = true, .made = true, .piece = ec_layout_parity_of(l, group, a->parities++).at};
}

static void send_again(struct coded_sender *s, struct coded_ring *r, struct coded_send *out, uint64_t now_ns)
{
	struct coded_again a = r->entry[r->head++ & r->mask];

	if (!a.copies)
		a.copies = copies(s);
	*out = answer(s, a.piece);
	s->sent_tick[a.piece] = tick(s, now_ns);
	s->resent++;
	a.copies--;
	/* Beyond a burst that took the one before. */
	a.at_ns = now_ns + s->config.rtt_ns / 256;
	if (a.copies)
		ring_push(&s->later, a);
}

static void next_parity(struct coded_sender *s, struct coded_send *out)
{
	const struct ec_layout *l = &s->plan.layout;
	struct ec_block b = ec_layout_block(l, s->block);
	uint32_t group = b.group + s->parity % b.groups;

	*out = (struct coded_send){.parity = true, .piece = ec_layout_parity_of(l, group, s->parity / b.groups).at};
	s->parity++;
	s->parities++;
}

/* Whether the pieces of this block were sent, so that its parities follow. */
static bool block_is_sent(const struct coded_sender *s)
{
	struct ec_block b = ec_layout_block(&s->plan.layout, s->block);

	return s->unsent == b.at + b.pieces;
}

/* Ends a block with its last piece, so that nobody has to ask for another one before it shows that all was sent. */
static void end_block(struct coded_sender *s, uint64_t now_ns)
{
	const struct ec_layout *l = &s->plan.layout;

	if (!s->planned || !block_is_sent(s) || s->parity < l->parity * ec_layout_block(l, s->block).groups)
		return;
	s->parity = 0;
	s->block++;
	if (coded_sender_all_sent(s) && !s->config.silent)
		say_plan(s, now_ns);
}

bool coded_sender_next(struct coded_sender *s, struct coded_send *out, uint64_t now_ns)
{
	const struct coded_again *again = ring_first(&s->later);
	uint32_t at;

	if (s->end != SR_RUNNING)
		return false;
	if (s->plan.repeats && sr_sender_next(&s->sr, &at)) {
		sr_sender_sent(&s->sr, at, now_ns + s->config.piece_ns);
		s->resent++;
		*out = (struct coded_send){.resent = true, .piece = at};
		return true;
	}
	if (ring_count(&s->due)) {
		send_again(s, &s->due, out, now_ns);
		return true;
	}
	if (again && again->at_ns <= now_ns) {
		send_again(s, &s->later, out, now_ns);
		return true;
	}
	if (!s->planned && tail_begins(s))
		plan(s, now_ns);
	if (coded_sender_all_sent(s))
		return false;
	if (s->planned && block_is_sent(s)) {
		next_parity(s, out);
	} else {
		s->sent_tick[s->unsent] = tick(s, now_ns);
		*out = (struct coded_send){.piece = s->unsent++};
	}
	end_block(s, now_ns);
	return true;
}

/* Parities that no block has sent, one of each group in turn. */
bool coded_sender_fill(struct coded_sender *s, struct coded_send *out, uint64_t now_ns)
{
	const struct coded_again *again = ring_first(&s->later);

	if (now_ns < coded_sender_fill_deadline(s) || ring_count(&s->due) || (again && again->at_ns <= now_ns))
		return false;
	*out = (struct coded_send){.parity = true,
				   .fill = true,
				   .made = true,
				   .piece = s->plan.layout.parity * s->plan.layout.groups + s->fills++};
	s->fill_ns = now_ns + s->config.piece_ns;
	return true;
}

uint64_t coded_sender_fill_deadline(const struct coded_sender *s)
{
	if (s->end != SR_RUNNING || !coded_sender_all_sent(s) || s->fills == s->fills_max)
		return UINT64_MAX;
	return s->fill_ns;
}

/* ---- what the receiver says --------------------------------------------------------------------------- */

static bool runs_valid(const struct coded_sender *s, const uint8_t *payload)
{
	for (uint32_t i = 0; i < sr_nack_count(payload); i++) {
		struct chunk_run r = sr_nack_run(payload, i);

		if (!r.count || r.first >= s->pieces || r.count > s->pieces - r.first)
			return false;
	}
	return true;
}

/* A group's namings of one round are one try. */
static bool may_answer(struct coded_sender *s, uint32_t piece, uint64_t now_ns)
{
	struct coded_answered *a;

	if (!s->answered || piece < s->plan.layout.first)
		return true;
	a = &s->answered[ec_layout_data(&s->plan.layout, piece).group];
	if (a->tries && is_recent(s, a->tick, now_ns))
		return true;
	if (a->tries == s->config.tries_max) {
		coded_sender_finish(s, SR_TRIED_TOO_OFTEN);
		return false;
	}
	a->tries++;
	a->tick = tick(s, now_ns);
	return true;
}

static void name(struct coded_sender *s, uint32_t piece, uint64_t now_ns)
{
	if (piece >= s->unsent)
		return;
	if (s->plan.repeats) {
		sr_sender_want(&s->sr, piece);
		return;
	}
	if (is_recent(s, s->sent_tick[piece], now_ns) || !may_answer(s, piece, now_ns))
		return;
	/* Not again before it has gone and come back. */
	s->sent_tick[piece] = tick(s, now_ns);
	ring_push(&s->due, (struct coded_again){.piece = piece});
}

static bool take_names(struct coded_sender *s, const uint8_t *payload, uint64_t now_ns)
{
	if (!runs_valid(s, payload) || (s->plan.nack && !sr_sender_nack(&s->sr, payload, now_ns)))
		return false;
	for (uint32_t i = 0; s->end == SR_RUNNING && i < sr_nack_count(payload); i++) {
		struct chunk_run r = sr_nack_run(payload, i);

		for (uint32_t k = 0; k < r.count; k++)
			name(s, r.first + k, now_ns);
	}
	return true;
}

static bool take_state(struct coded_sender *s, const uint8_t *payload)
{
	struct coded_state t;

	if (!coded_state_decode(&t, payload) || t.seen > s->pieces)
		return false;
	if (t.whole && s->unsent < s->plan.layout.first)
		return false; /* it cannot have what was never sent */
	if (t.seen >= s->told.seen && t.lost >= s->told.lost && t.bursts >= s->told.bursts &&
	    t.lost - s->told.lost <= t.seen - s->told.seen) {
		loss_estimate_add(&s->estimate, t.seen - s->told.seen, t.lost - s->told.lost,
				  t.bursts - s->told.bursts);
		s->told = t;
	}
	if (t.whole)
		coded_sender_finish(s, SR_DONE);
	return true;
}

bool coded_sender_take(struct coded_sender *s, enum control_type type, const uint8_t *payload, uint64_t now_ns)
{
	bool good = type == CONTROL_SR_NACK ? take_names(s, payload, now_ns)
		    : type == CONTROL_CODED_STATE
			    ? take_state(s, payload)
			    : type == CONTROL_SR_ACK && s->plan.repeats && sr_sender_ack(&s->sr, payload, now_ns);

	if (good)
		s->word_ns = now_ns;
	return good;
}

/* ---- time --------------------------------------------------------------------------------------------- */

static uint64_t silent_ns(const struct coded_sender *s)
{
	return s->word_ns + SILENCE_RTTS * s->config.rtt_ns;
}

uint64_t coded_sender_deadline(const struct coded_sender *s)
{
	const struct coded_again *again = ring_first(&s->later);
	uint64_t at_ns = s->start_ns + s->config.timeout_ns;

	if (s->end != SR_RUNNING)
		return UINT64_MAX;
	if (again && again->at_ns < at_ns)
		at_ns = again->at_ns;
	if (s->say_ns < at_ns)
		at_ns = s->say_ns;
	if (s->plan.repeats && sr_sender_deadline(&s->sr) < at_ns)
		at_ns = sr_sender_deadline(&s->sr);
	return coded_sender_all_sent(s) && silent_ns(s) < at_ns ? silent_ns(s) : at_ns;
}

void coded_sender_expire(struct coded_sender *s, uint64_t now_ns)
{
	if (now_ns >= s->start_ns + s->config.timeout_ns)
		coded_sender_finish(s, SR_TIMED_OUT);
	if (s->plan.repeats)
		sr_sender_expire(&s->sr, now_ns);
	if (s->plan.repeats && s->sr.end > SR_DONE)
		coded_sender_finish(s, s->sr.end);
	if (!coded_sender_all_sent(s) || now_ns < silent_ns(s))
		return;
	/* The receiver may have said its last word, and it was lost. */
	s->word_ns = now_ns;
	say_plan(s, now_ns);
}

int coded_sender_tell(struct coded_sender *s, uint8_t payload[CODED_PLAN_LEN_MAX], enum control_type *type,
		      uint64_t now_ns)
{
	if (s->end != SR_RUNNING)
		return -1;
	*type = CONTROL_PROBE;
	if (s->plan.repeats && sr_sender_take_probe(&s->sr))
		return 0;
	if (now_ns < s->say_ns)
		return -1;
	*type = CONTROL_CODED_PLAN;
	s->plan.ended = coded_sender_all_sent(s) && !s->config.silent;
	s->sayings--;
	/* The second soon, as a short message waits for it; the third beyond a burst. */
	s->say_ns = s->sayings == 2 ? now_ns + s->config.rtt_ns / 512
		    : s->sayings    ? now_ns + s->config.rtt_ns / 64
				    : UINT64_MAX;
	return coded_plan_encode(payload, &s->plan);
}
