/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One message by coding over a link in numbers alone: a queue of packets that each take packet_ns to leave, half a
 * round trip of way, losses of packets and of words, alike, in runs if asked for. Packets and words under way stand in
 * two queues in order of time, so a packet costs some tens of nanoseconds of a processor. For the tests of src/sdr and
 * for bench.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/prng.h"
#include "sdr/coded/coded_receiver.h"
#include "sdr/coded/coded_sender.h"
#include "support/heap.h"

enum {
	CODED_LINK_WORD_BYTES = 1024,
	CODED_LINK_WORDS = 4096 /* under way each way at a time, at most; a power of two */
};

struct coded_link_wish {
	uint32_t packets;
	uint64_t rtt_ns, packet_ns;
	double loss;         /* of packets and of words */
	double burst;        /* lost in a row, on average; 0: single losses */
	double word_loss;    /* instead of `loss` for words; negative: the same */
	double assumed;      /* struct coded_config's loss */
	bool fill;           /* likewise */
	uint64_t timeout_ns; /* 0: long */
	uint64_t seed;
	/* A code of all of the message, by the members of this from `plan` on; NULL: one over the tail. */
	const struct coded_config *code;
	double twice;                                /* the chance that a packet comes twice */
	uint64_t jitter_ns;                          /* packets are late by up to this */
	uint32_t lose_first, lose_wholes, lose_ends; /* so many packets, words that all is there, that all was sent */
};

struct coded_link_result {
	uint64_t done_ns;  /* the sender knows; UINT64_MAX: it gave up */
	uint64_t whole_ns; /* the receiver has all, or can compute it */
	uint64_t packets, parities, resent, words;
	uint64_t fills;
	uint64_t have;  /* packets that came */
	uint32_t names; /* words that name packets */
	enum sr_end end;
	uint32_t most_sent_again; /* of a packet: how often it went */
};

struct coded_link_packet {
	uint64_t at_ns;
	uint32_t packet; /* parities from 2^31 on */
};

struct coded_link_word {
	uint64_t at_ns;
	enum control_type type;
	uint8_t bytes[CODED_LINK_WORD_BYTES];
};

struct coded_link_run {
	struct coded_link_wish w;
	struct coded_sender s;
	struct coded_receiver r;
	struct coded_link_packet *way; /* packets under way: a ring */
	uint32_t way_mask, way_head, way_tail;
	struct coded_link_word *words[2]; /* to the receiver, to the sender */
	uint32_t word_head[2], word_tail[2];
	struct prng rng;
	bool bad;
	double bad_to_good, good_to_bad;
	uint64_t now_ns, free_ns;
	uint8_t *times;
	struct coded_link_result out;
};

static inline bool coded_link_drawn(struct coded_link_run *t, double chance)
{
	return (double)(prng_next(&t->rng) >> 11) * 0x1p-53 < chance;
}

static inline bool coded_link_lost(struct coded_link_run *t)
{
	if (!t->w.burst)
		return coded_link_drawn(t, t->w.loss);
	t->bad = coded_link_drawn(t, t->bad ? 1 - t->bad_to_good : t->good_to_bad);
	return t->bad;
}

/* Whether the word is one of the first of its kind. */
static inline bool coded_link_spoils(struct coded_link_run *t, enum control_type type, const uint8_t *bytes)
{
	uint32_t *left = type == CONTROL_CODED_PLAN && bytes[15] & 1 ? &t->w.lose_ends
			 : type == CONTROL_CODED_STATE && bytes[15]  ? &t->w.lose_wholes
								     : NULL;

	return left && *left && (*left)--;
}

static inline void coded_link_say(struct coded_link_run *t, int way, enum control_type type, const uint8_t *bytes)
{
	struct coded_link_word *w = &t->words[way][t->word_tail[way] & (CODED_LINK_WORDS - 1)];

	t->out.words++;
	t->out.names += type == CONTROL_SR_NACK;
	if (coded_link_spoils(t, type, bytes))
		return;
	if (t->w.word_loss >= 0 ? coded_link_drawn(t, t->w.word_loss) : coded_link_drawn(t, t->w.loss))
		return;
	assert(t->word_tail[way] - t->word_head[way] < CODED_LINK_WORDS);
	/* Behind the packet that is leaving. */
	w->at_ns = (way || t->free_ns < t->now_ns ? t->now_ns : t->free_ns) + t->w.rtt_ns / 2;
	w->type = type;
	memcpy(w->bytes, bytes, CODED_LINK_WORD_BYTES);
	t->word_tail[way]++;
}

static inline void coded_link_speak(struct coded_link_run *t)
{
	uint8_t bytes[CODED_LINK_WORD_BYTES];
	enum control_type type;

	while (coded_sender_tell(&t->s, bytes, &type, t->now_ns) >= 0)
		coded_link_say(t, 0, type, bytes);
	while (coded_receiver_tell(&t->r, bytes, sizeof(bytes), &type, t->now_ns))
		coded_link_say(t, 1, type, bytes);
}

/* In order of time. */
static inline void coded_link_push(struct coded_link_run *t, uint32_t packet)
{
	uint64_t late_ns = t->w.jitter_ns ? prng_below(&t->rng, t->w.jitter_ns) : 0;
	struct coded_link_packet p = {t->free_ns + t->w.rtt_ns / 2 + late_ns, packet};
	uint32_t at = t->way_tail++;

	assert(at - t->way_head <= t->way_mask);
	for (; at != t->way_head && t->way[(at - 1) & t->way_mask].at_ns > p.at_ns; at--)
		t->way[at & t->way_mask] = t->way[(at - 1) & t->way_mask];
	t->way[at & t->way_mask] = p;
}

static inline void coded_link_send(struct coded_link_run *t)
{
	struct coded_send p;

	while (t->free_ns <= t->now_ns &&
	       (coded_sender_next(&t->s, &p, t->now_ns) || coded_sender_fill(&t->s, &p, t->now_ns))) {
		t->free_ns = t->now_ns + t->w.packet_ns;
		t->out.packets++;
		if (t->times && !p.parity && ++t->times[p.piece] > t->out.most_sent_again)
			t->out.most_sent_again = t->times[p.piece];
		if (t->out.packets <= t->w.lose_first || coded_link_lost(t))
			continue;
		coded_link_push(t, p.piece | (uint32_t)p.parity << 31);
		if (t->w.twice > 0 && coded_link_drawn(t, t->w.twice))
			coded_link_push(t, p.piece | (uint32_t)p.parity << 31);
	}
}

static inline void coded_link_hear(struct coded_link_run *t, int way)
{
	const struct coded_link_word *w = &t->words[way][t->word_head[way]++ & (CODED_LINK_WORDS - 1)];

	if (way)
		coded_sender_take(&t->s, w->type, w->bytes, t->now_ns);
	else
		coded_receiver_take(&t->r, w->type, w->bytes, t->now_ns);
}

/* A packet that was there is not reported again, as a worker does not. */
static inline void coded_link_arrive(struct coded_link_run *t)
{
	uint32_t p = t->way[t->way_head++ & t->way_mask].packet;
	uint32_t before = t->r.have;

	coded_receiver_came(&t->r, p >> 31, p & INT32_MAX, t->now_ns);
	t->out.have += t->r.have - before;
}

static inline void coded_link_step(struct coded_link_run *t)
{
	uint64_t next = UINT64_MAX, at[5];

	at[0] = coded_sender_deadline(&t->s);
	at[0] = at[0] <= t->now_ns ? UINT64_MAX : at[0];
	at[1] = coded_receiver_deadline(&t->r);
	at[2] = t->way_head == t->way_tail ? UINT64_MAX : t->way[t->way_head & t->way_mask].at_ns;
	for (int i = 0; i < 2; i++)
		at[3 + i] = t->word_head[i] == t->word_tail[i]
				    ? UINT64_MAX
				    : t->words[i][t->word_head[i] & (CODED_LINK_WORDS - 1)].at_ns;
	for (int i = 0; i < 5; i++)
		next = at[i] < next ? at[i] : next;
	if (t->free_ns > t->now_ns && t->free_ns < next)
		next = t->free_ns;
	assert(next != UINT64_MAX);
	t->now_ns = next > t->now_ns ? next : t->now_ns;
	if (at[2] <= t->now_ns)
		coded_link_arrive(t);
	for (int i = 0; i < 2; i++) {
		if (at[3 + i] <= t->now_ns)
			coded_link_hear(t, i);
	}
	if (at[0] <= t->now_ns)
		coded_sender_expire(&t->s, t->now_ns);
	if (at[1] <= t->now_ns)
		coded_receiver_expire(&t->r, t->now_ns);
	if (t->r.state.whole && t->out.whole_ns == UINT64_MAX)
		t->out.whole_ns = t->now_ns;
	coded_link_send(t);
	coded_link_speak(t);
}

static inline uint32_t coded_link_room(uint64_t n)
{
	uint32_t room = 64;

	while (room < n)
		room *= 2;
	return room;
}

/*
 * The rings of the run before, if they are long enough: a sanitizer marks every byte of them at each malloc() and
 * free(), which took longer than the runs. So one run at a time.
 */
static inline void coded_link_rings(struct coded_link_run *t, uint32_t room)
{
	static struct coded_link_packet *way;
	static struct coded_link_word *words[2];
	static uint32_t longest;

	if (room > longest) {
		free(way);
		way = malloc(room * sizeof(*way));
		longest = room;
	}
	for (int i = 0; i < 2; i++) {
		if (!words[i])
			words[i] = malloc(CODED_LINK_WORDS * sizeof(*words[i]));
		t->words[i] = words[i];
	}
	t->way = way;
	t->way_mask = room - 1;
}

/* The estimate is read and brought up to date. */
static inline struct coded_link_result coded_link_run(const struct coded_link_wish *w, struct loss_estimate *estimate)
{
	struct heap heap = HEAP_INIT;
	const struct alloc alloc = heap_alloc(&heap);
	struct coded_config config = w->code ? *w->code : (struct coded_config){0};
	struct coded_link_run t = {.w = *w, .out = {.whole_ns = UINT64_MAX, .done_ns = UINT64_MAX}};
	const struct ec_layout *l = &config.plan.layout;
	uint32_t room = coded_link_room((w->rtt_ns + w->jitter_ns) / w->packet_ns * 2 + 64), parities;

	config.rtt_ns = w->rtt_ns;
	config.piece_ns = w->packet_ns;
	config.timeout_ns = w->timeout_ns ? w->timeout_ns : 1000 * w->rtt_ns;
	config.loss = w->assumed;
	config.fill = w->fill;
	parities = w->code ? l->groups * l->parity_max : coded_parity_pieces(&config, w->packets);
	prng_init(&t.rng, w->seed);
	t.bad_to_good = w->burst ? 1 / w->burst : 0;
	t.good_to_bad = w->burst ? w->loss / (1 - w->loss) * t.bad_to_good : 0;
	coded_link_rings(&t, room);
	if (w->packets <= 65536)
		t.times = calloc(w->packets, 1);
	if (coded_sender_init(&t.s, &config, w->packets, estimate, 0, &alloc) ||
	    coded_receiver_init(&t.r, w->rtt_ns, w->packets, parities, 0, &alloc))
		abort();
	coded_link_send(&t);
	coded_link_speak(&t);
	while (t.s.end == SR_RUNNING)
		coded_link_step(&t);
	t.out.end = t.s.end;
	t.out.done_ns = t.s.end == SR_DONE ? t.now_ns : UINT64_MAX;
	t.out.parities = t.s.parities;
	t.out.resent = t.s.resent;
	t.out.fills = t.s.fills;
	*estimate = t.s.estimate;
	coded_sender_free(&t.s);
	coded_receiver_free(&t.r);
	assert(!heap.blocks);
	free(t.times);
	return t.out;
}
