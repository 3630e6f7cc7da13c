/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Pieces come from three places: the repeat, when there is one; groups that are owed pieces, in the
 * order in which they were asked for; and the order of the layout.
 *
 * A receiver's word may be older than the last answer. An answer is followed by an end marker, so a
 * word that knows this marker speaks of what the answer left open; any other counts only when a
 * round trip has passed since the answer.
 */
#include <assert.h>
#include <errno.h>
#include <math.h>

#include "base/byteorder.h"
#include "sdr/coded/ec_sender.h"

#define NONE UINT32_MAX

enum { TELLS = 3 };

enum source { FROM_NOWHERE, FROM_REPEAT, FROM_DUE, FROM_LAYOUT };

static uint32_t turns_of(const struct ec_layout *l, uint32_t block)
{
	return (uint32_t)(ec_layout_before(l, block + 1) - ec_layout_before(l, block));
}

int ec_sender_init(struct ec_sender *s, const struct ec_config *config, uint64_t now_ns, const struct alloc *alloc)
{
	const struct sr_config sr = {.rtt_ns = config->rtt_ns,
				     .rto_ns = config->rto_ns,
				     .timeout_ns = config->timeout_ns,
				     .tries_max = config->tries_max};

	assert(ec_config_valid(config));
	*s = (struct ec_sender){
		.config = *config,
		.due = {NONE, NONE},
		.block_turns = turns_of(&config->layout, 0),
		.end_ns = now_ns + config->timeout_ns,
		.tell_ns = UINT64_MAX,
		.alloc = alloc,
	};
	s->group = alloc_get(alloc, config->layout.groups * sizeof(*s->group));
	if (!s->group)
		return -ENOMEM;
	for (uint32_t g = 0; g < config->layout.groups; g++)
		s->group[g].parities = ec_layout_unasked(&config->layout, g);
	if (config->fallback != EC_FALLBACK_SR)
		return 0;
	if (sr_sender_init(&s->sr, &sr, config->layout.pieces, now_ns, alloc)) {
		ec_sender_free(s);
		return -ENOMEM;
	}
	sr_sender_hold(&s->sr);
	return 0;
}

void ec_sender_free(struct ec_sender *s)
{
	alloc_put(s->alloc, s->group, s->config.layout.groups * sizeof(*s->group));
	if (s->config.fallback == EC_FALLBACK_SR && s->sr.alloc)
		sr_sender_free(&s->sr);
	s->group = NULL;
}

/* ---- what to send */

bool ec_sender_all_sent(const struct ec_sender *s)
{
	return s->block == ec_layout_blocks(&s->config.layout);
}

static struct ec_piece answer_of(const struct ec_sender *s, uint32_t g)
{
	const struct ec_sent_group *group = &s->group[g];

	if (group->parities < s->config.layout.parity_max)
		return ec_layout_parity_of(&s->config.layout, g, group->parities);
	return ec_layout_data_of(&s->config.layout, g, group->again);
}

static enum source source_of(const struct ec_sender *s, struct ec_piece *piece)
{
	uint32_t at;

	if (s->end != SR_RUNNING)
		return FROM_NOWHERE;
	if (s->config.fallback == EC_FALLBACK_SR && sr_sender_next(&s->sr, &at)) {
		*piece = ec_layout_data(&s->config.layout, at);
		return FROM_REPEAT;
	}
	if (s->due.first != NONE) {
		*piece = answer_of(s, s->due.first);
		return FROM_DUE;
	}
	if (ec_sender_all_sent(s))
		return FROM_NOWHERE;
	*piece = ec_layout_in_turn(&s->config.layout, s->block, s->turn);
	return FROM_LAYOUT;
}

bool ec_sender_next(const struct ec_sender *s, struct ec_piece *piece)
{
	return source_of(s, piece) != FROM_NOWHERE;
}

static void sent_answer(struct ec_sender *s, const struct ec_piece *piece, uint64_t now_ns)
{
	struct ec_sent_group *group = &s->group[piece->group];

	if (piece->parity)
		group->parities++;
	else if (++group->again == ec_layout_size(&s->config.layout, piece->group))
		group->again = 0;
	group->answered_ns = now_ns;
	group->marker = s->marker + 1;
	s->answered++;
	if (--group->owed)
		return;
	s->due.first = group->next;
	if (s->due.first == NONE)
		s->due.last = NONE;
}

static void sent_in_turn(struct ec_sender *s, const struct ec_piece *piece)
{
	s->sent_data += !piece->parity;
	s->sent_parity += piece->parity;
	if (++s->turn < s->block_turns)
		return;
	s->turn = 0;
	if (++s->block < ec_layout_blocks(&s->config.layout))
		s->block_turns = turns_of(&s->config.layout, s->block);
}

void ec_sender_sent(struct ec_sender *s, uint64_t now_ns)
{
	struct ec_piece piece;
	enum source source = source_of(s, &piece);

	assert(source != FROM_NOWHERE);
	if (source == FROM_REPEAT) {
		sr_sender_sent(&s->sr, piece.at, now_ns);
		s->answered++;
	} else if (source == FROM_DUE) {
		sent_answer(s, &piece, now_ns);
	} else {
		sent_in_turn(s, &piece);
	}
	if (ec_sender_next(s, &piece))
		return;
	s->marker++;
	s->tells = TELLS;
	s->tell_ns = s->config.end_marker ? now_ns : now_ns + s->config.rto_ns;
}

/* ---- what the receiver says */

/* Nothing is said of a group before all of its pieces were sent. */
static bool was_sent(const struct ec_sender *s, uint32_t g)
{
	return ec_layout_block(&s->config.layout, g) < s->block;
}

/* Whether the rest of the message takes less than a round trip: then a second answer would be
 * waited for. */
static bool urgent(const struct ec_sender *s)
{
	const struct ec_layout *l = &s->config.layout;
	uint64_t left = ec_layout_all(l) - ec_layout_before(l, s->block) - s->turn;

	return left * s->config.inject_ns < s->config.rtt_ns;
}

/* How many pieces to send so that `lack` of them arrive: on average, or with three deviations to
 * spare and two where a second answer would be waited for. */
static uint32_t answer_size(const struct ec_sender *s, uint32_t lack)
{
	double sent = lack / (1 - s->config.loss);

	if (!urgent(s))
		return (uint32_t)fmax(lack, floor(sent + 0.5));
	return (uint32_t)ceil(sent + 3 * sqrt(sent * s->config.loss)) + 2;
}

static void owe(struct ec_sender *s, uint32_t g, uint32_t lack)
{
	struct ec_sent_group *group = &s->group[g];
	uint32_t fresh = s->config.layout.parity_max - group->parities;
	uint32_t wanted = answer_size(s, lack);

	/* Of pieces that were sent before, few are those that are missing: the group goes anew. */
	if (!fresh)
		wanted = ec_layout_size(&s->config.layout, g);
	group->owed = fresh && wanted > fresh ? fresh : wanted;
	group->again = 0;
	group->next = NONE;
	if (s->due.last == NONE)
		s->due.first = g;
	else
		s->group[s->due.last].next = g;
	s->due.last = g;
	s->tell_ns = UINT64_MAX;
}

static void take_lack(struct ec_sender *s, struct ec_lack lack, uint32_t marker, uint64_t now_ns)
{
	struct ec_sent_group *group = &s->group[lack.group];
	bool early = group->marker && marker < group->marker && now_ns - group->answered_ns < s->config.rtt_ns;

	if (!was_sent(s, lack.group) || group->owed || early || s->end != SR_RUNNING) {
		s->suppressed++;
		return;
	}
	if (group->tries == s->config.tries_max) {
		ec_sender_finish(s, SR_TRIED_TOO_OFTEN);
		return;
	}
	group->tries++;
	owe(s, lack.group, lack.pieces);
}

static bool short_valid(const struct ec_sender *s, const struct ec_short *said, const uint8_t *payload)
{
	uint32_t from = 0;

	if (said->groups > s->config.layout.groups)
		return false;
	for (uint32_t i = 0; i < said->count; i++) {
		struct ec_lack lack = ec_short_lack(payload, i);

		if (lack.group < from || lack.group >= s->config.layout.groups || !lack.pieces ||
		    lack.pieces > ec_layout_size(&s->config.layout, lack.group))
			return false;
		from = lack.group + 1;
	}
	return true;
}

static bool take_short(struct ec_sender *s, const uint8_t *payload, uint64_t now_ns)
{
	struct ec_short said;

	ec_short_decode(&said, payload);
	if (s->config.fallback != EC_FALLBACK_PARITY || !short_valid(s, &said, payload))
		return false;
	for (uint32_t i = 0; i < said.count; i++)
		take_lack(s, ec_short_lack(payload, i), said.marker, now_ns);
	return true;
}

/* A group is repeated once: then the repeat knows better what is missing. */
static void repeat_group(struct ec_sender *s, uint32_t g)
{
	struct ec_sent_group *group = &s->group[g];

	if (!was_sent(s, g) || group->tries) {
		s->suppressed++;
		return;
	}
	group->tries = 1;
	for (uint32_t i = 0; i < ec_layout_size(&s->config.layout, g); i++)
		sr_sender_want(&s->sr, ec_layout_data_of(&s->config.layout, g, i).at);
	s->tell_ns = UINT64_MAX;
}

static bool take_nack(struct ec_sender *s, const uint8_t *payload)
{
	uint32_t count = ec_nack_count(payload);

	if (s->config.fallback != EC_FALLBACK_SR)
		return false;
	for (uint32_t i = 0; i < count; i++) {
		if (ec_nack_group(payload, i) >= s->config.layout.groups)
			return false;
	}
	for (uint32_t i = 0; i < count; i++)
		repeat_group(s, ec_nack_group(payload, i));
	return true;
}

static bool take_ack(struct ec_sender *s, const uint8_t *payload)
{
	uint32_t lost = get_be32(payload);

	if (lost > s->config.layout.pieces)
		return false;
	if (s->end == SR_RUNNING)
		s->lost = lost;
	ec_sender_finish(s, SR_DONE);
	return true;
}

bool ec_sender_take(struct ec_sender *s, enum control_type type, const uint8_t *payload, uint64_t now_ns)
{
	switch (type) {
	case CONTROL_EC_ACK: return take_ack(s, payload);
	case CONTROL_EC_SHORT: return take_short(s, payload, now_ns);
	case CONTROL_EC_NACK: return take_nack(s, payload);
	case CONTROL_SR_ACK: return s->config.fallback == EC_FALLBACK_SR && sr_sender_ack(&s->sr, payload, now_ns);
	case CONTROL_SR_NACK: return s->config.fallback == EC_FALLBACK_SR && sr_sender_nack(&s->sr, payload, now_ns);
	default: return false;
	}
}

void ec_sender_finish(struct ec_sender *s, enum sr_end end)
{
	if (s->end == SR_RUNNING)
		s->end = end;
}

/* ---- time */

uint64_t ec_sender_deadline(const struct ec_sender *s)
{
	uint64_t due_ns = s->end_ns;

	if (s->end != SR_RUNNING)
		return UINT64_MAX;
	if (s->tell_ns < due_ns)
		due_ns = s->tell_ns;
	if (s->config.fallback == EC_FALLBACK_SR && sr_sender_deadline(&s->sr) < due_ns)
		due_ns = sr_sender_deadline(&s->sr);
	return due_ns;
}

void ec_sender_expire(struct ec_sender *s, uint64_t now_ns)
{
	if (now_ns >= s->end_ns)
		ec_sender_finish(s, SR_TIMED_OUT);
	if (s->end != SR_RUNNING || s->config.fallback != EC_FALLBACK_SR)
		return;
	sr_sender_expire(&s->sr, now_ns);
	if (s->sr.end != SR_RUNNING && s->sr.end != SR_DONE)
		ec_sender_finish(s, s->sr.end);
}

bool ec_sender_tell(struct ec_sender *s, uint8_t payload[EC_END_LEN], uint16_t *length, enum control_type *type,
		    uint64_t now_ns)
{
	bool probe = s->config.fallback == EC_FALLBACK_SR && sr_sender_take_probe(&s->sr);

	if (s->end != SR_RUNNING || (!probe && now_ns < s->tell_ns))
		return false;
	*type = s->config.end_marker ? CONTROL_EC_END : CONTROL_PROBE;
	*length = s->config.end_marker ? EC_END_LEN : 0;
	put_be32(payload, s->marker);
	if (now_ns < s->tell_ns)
		return true;
	if (s->tells)
		s->tells--;
	s->tell_ns = now_ns + (s->config.end_marker && s->tells ? s->config.rtt_ns / 8 : s->config.rto_ns);
	return true;
}
