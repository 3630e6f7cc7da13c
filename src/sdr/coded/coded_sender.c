/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Named packets wait in a ring of bounded size; one that finds it full is named again by the receiver. A packet that
 * was sent less than a round trip before it was named is on its way, and not sent again.
 */
#include "sdr/coded/coded_sender.h"

#include <assert.h>
#include <errno.h>

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

/* ---- rings -------------------------------------------------------------------------------------------- */

static int ring_init(struct coded_ring *r, uint32_t packets, const struct alloc *alloc)
{
	uint32_t room = RING_MIN;

	while (room < packets && room < RING_MAX)
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

int coded_sender_init(struct coded_sender *s, const struct coded_config *config, uint32_t packets,
		      const struct loss_estimate *estimate, uint64_t now_ns, const struct alloc *alloc)
{
	assert(packets > 0);
	assert(config->rtt_ns && config->packet_ns && config->timeout_ns);
	*s = (struct coded_sender){
		.config = *config,
		.estimate = *estimate,
		.start_ns = now_ns,
		.word_ns = now_ns,
		.say_ns = UINT64_MAX,
		.plan = {.packets = packets},
		.alloc = alloc,
	};
	s->sent_tick = alloc_get(alloc, packets * sizeof(*s->sent_tick));
	if (s->sent_tick && !ring_init(&s->due, packets, alloc) && !ring_init(&s->later, packets, alloc))
		return 0;
	coded_sender_free(s);
	return -ENOMEM;
}

void coded_sender_free(struct coded_sender *s)
{
	alloc_put(s->alloc, s->sent_tick, s->plan.packets * sizeof(*s->sent_tick));
	s->sent_tick = NULL;
	ring_free(&s->due, s->alloc);
	ring_free(&s->later, s->alloc);
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

/* Groups have no more parities than packets, but for the smallest of messages. */
uint32_t coded_parity_packets(const struct coded_config *c, uint32_t packets)
{
	return coded_plan_tail(packets, c->rtt_ns, c->packet_ns) + EC_PIECES_MAX;
}

bool coded_sender_all_sent(const struct coded_sender *s)
{
	return s->planned && s->block == coded_plan_blocks(&s->plan);
}

static void say_plan(struct coded_sender *s, uint64_t now_ns)
{
	s->sayings = PLAN_SAYINGS;
	s->say_ns = now_ns;
}

/* The tail begins with the packet that is next if it is no earlier than a plan made now would have it. */
static void plan(struct coded_sender *s, uint64_t now_ns)
{
	const struct coded_config *c = &s->config;
	const struct coded_link link = {
		.rtt_ns = c->rtt_ns > c->behind_ns ? c->rtt_ns - c->behind_ns : 0,
		.packet_ns = c->packet_ns,
		.loss = loss_of(s),
		.burst = c->loss > 0 ? 1 : loss_estimate_burst(&s->estimate),
		.feared = c->fill ? coded_plan_feared(loss_of(s)) : 0,
	};
	uint64_t room = c->parity_packets ? c->parity_packets : coded_parity_packets(c, s->plan.packets);

	coded_plan_make(&s->plan, s->plan.packets, &link);
	if (!link.rtt_ns)
		s->plan.parity = 0;
	while ((uint64_t)s->plan.groups * s->plan.parity > room)
		s->plan.parity--;
	s->unasked = s->plan.parity;
	if (link.rtt_ns && c->fill)
		s->fills_max = coded_plan_fill(&s->plan, &link, room);
	s->planned = true;
	say_plan(s, now_ns);
}

static bool tail_begins(const struct coded_sender *s)
{
	uint64_t left_ns = (s->plan.packets - s->unsent) * s->config.packet_ns;

	/* As coded_plan_make() reckons, or a little before. */
	return left_ns <= s->config.rtt_ns + s->config.rtt_ns / 16 + 128 * s->config.packet_ns;
}

/* ---- what to send ------------------------------------------------------------------------------------- */

/* Whether another round can still repair what is sent now: new packets go on for longer than that takes. */
static bool is_early(const struct coded_sender *s)
{
	uint64_t left = s->plan.packets - s->unsent + ring_count(&s->due);

	return left * s->config.packet_ns + s->config.behind_ns > s->config.rtt_ns + s->config.rtt_ns / 8;
}

/* Those that may be named in the last round trip. */
static uint32_t copies(const struct coded_sender *s)
{
	uint64_t packets = s->config.rtt_ns / s->config.packet_ns;
	double loss = loss_of(s);

	if (is_early(s))
		return 1;
	if (packets > s->plan.packets)
		packets = s->plan.packets;
	return coded_copies((double)packets * loss + 1, loss);
}

static void send_again(struct coded_sender *s, struct coded_ring *r, struct coded_send *out, uint64_t now_ns)
{
	struct coded_again a = r->entry[r->head++ & r->mask];

	if (!a.copies)
		a.copies = copies(s);
	*out = (struct coded_send){.resent = true, .packet = a.packet};
	s->sent_tick[a.packet] = tick(s, now_ns);
	s->resent++;
	a.copies--;
	/* Beyond a burst that took the one before. */
	a.at_ns = now_ns + s->config.rtt_ns / 256;
	if (a.copies)
		ring_push(&s->later, a);
}

/* Ends a block once its last parity was sent. */
static bool next_parity(struct coded_sender *s, struct coded_send *out, uint64_t now_ns)
{
	struct coded_block b = coded_plan_block_at(&s->plan, s->block);

	if (s->parity < s->unasked * b.count) {
		uint32_t i = s->parity / b.count, group = b.first + s->parity % b.count;

		*out = (struct coded_send){.parity = true, .packet = i * s->plan.groups + group};
		s->parity++;
		s->parities++;
		return true;
	}
	s->parity = 0;
	s->block++;
	if (coded_sender_all_sent(s))
		say_plan(s, now_ns);
	return false;
}

static bool block_is_sent(const struct coded_sender *s)
{
	struct coded_block b = coded_plan_block_at(&s->plan, s->block);

	return s->unsent == b.packet + b.packets;
}

bool coded_sender_next(struct coded_sender *s, struct coded_send *out, uint64_t now_ns)
{
	const struct coded_again *again = ring_first(&s->later);

	if (s->end != SR_RUNNING)
		return false;
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
	while (s->planned && !coded_sender_all_sent(s) && s->unsent > s->plan.tail && block_is_sent(s)) {
		if (next_parity(s, out, now_ns))
			return true;
	}
	if (s->unsent == s->plan.packets)
		return false;
	s->sent_tick[s->unsent] = tick(s, now_ns);
	*out = (struct coded_send){.packet = s->unsent++};
	return true;
}

/* Parities that no block has sent, one of each group in turn. */
bool coded_sender_fill(struct coded_sender *s, struct coded_send *out, uint64_t now_ns)
{
	const struct coded_again *again = ring_first(&s->later);

	if (now_ns < coded_sender_fill_deadline(s) || ring_count(&s->due) || (again && again->at_ns <= now_ns))
		return false;
	*out = (struct coded_send){.parity = true, .fill = true, .packet = s->unasked * s->plan.groups + s->fills++};
	s->fill_ns = now_ns + s->config.packet_ns;
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

		if (!r.count || r.first >= s->plan.packets || r.count > s->plan.packets - r.first)
			return false;
	}
	return true;
}

/* It was named half a round trip ago, by when what was sent a round trip ago had come. Namings of one loss come within
 * a small part of a round trip. */
static void name(struct coded_sender *s, uint32_t packet, uint64_t now_ns)
{
	if (packet >= s->unsent ||
	    (uint64_t)(tick(s, now_ns) - s->sent_tick[packet] + 1) << TICK_SHIFT < s->config.rtt_ns / 4 * 3)
		return;
	/* Not again before it has gone and come back. */
	s->sent_tick[packet] = tick(s, now_ns);
	ring_push(&s->due, (struct coded_again){.packet = packet});
}

bool coded_sender_named(struct coded_sender *s, const uint8_t *payload, uint64_t now_ns)
{
	if (!runs_valid(s, payload))
		return false;
	s->word_ns = now_ns;
	for (uint32_t i = 0; s->end == SR_RUNNING && i < sr_nack_count(payload); i++) {
		struct chunk_run r = sr_nack_run(payload, i);

		for (uint32_t k = 0; k < r.count; k++)
			name(s, r.first + k, now_ns);
	}
	return true;
}

bool coded_sender_state(struct coded_sender *s, const uint8_t *payload, uint64_t now_ns)
{
	struct coded_state t;

	if (!coded_state_decode(&t, payload) || t.seen > s->plan.packets)
		return false;
	if (t.whole && s->unsent < s->plan.tail)
		return false; /* it cannot have what was never sent */
	s->word_ns = now_ns;
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
	return coded_sender_all_sent(s) && silent_ns(s) < at_ns ? silent_ns(s) : at_ns;
}

void coded_sender_expire(struct coded_sender *s, uint64_t now_ns)
{
	if (now_ns >= s->start_ns + s->config.timeout_ns)
		coded_sender_finish(s, SR_TIMED_OUT);
	if (!coded_sender_all_sent(s) || now_ns < silent_ns(s))
		return;
	/* The receiver may have said its last word, and it was lost. */
	s->word_ns = now_ns;
	say_plan(s, now_ns);
}

bool coded_sender_tell(struct coded_sender *s, uint8_t *payload, uint64_t now_ns)
{
	if (s->end != SR_RUNNING || now_ns < s->say_ns)
		return false;
	coded_plan_encode(payload, &s->plan, coded_sender_all_sent(s));
	s->sayings--;
	/* The second soon, as a short message waits for it; the third beyond a burst. */
	s->say_ns = s->sayings == 2 ? now_ns + s->config.rtt_ns / 512
		    : s->sayings    ? now_ns + s->config.rtt_ns / 64
				    : UINT64_MAX;
	return true;
}
