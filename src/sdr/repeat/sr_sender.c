/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two lists run through the chunks: those that were sent and not acknowledged, by the time of their
 * last sending, so that the first is the next to time out; and those that are due again, in the
 * order in which they became so. The RTO is the same for all, so time never has to be sorted.
 *
 * An end that waits for a processor, or a queue that nobody knows of, makes acknowledgements late. An
 * RTO that is shorter than they take would repeat everything; so it is twice what they took, of chunks
 * that were sent once, and doubles while nothing is heard (RFC 6298 2 and 5.5).
 */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "sdr/repeat/sr_sender.h"

#define SR_NONE UINT32_MAX

enum { RTO_TIMES_MAX = 8 }; /* of the config's */

static uint32_t words(uint32_t chunks)
{
	return (chunks + 63) / 64;
}

int sr_sender_init(struct sr_sender *s, const struct sr_config *config, uint32_t chunks, uint64_t now_ns,
		   const struct alloc *alloc)
{
	assert(chunks > 0);
	assert(config->rtt_ns && config->rto_ns && config->timeout_ns);
	assert(config->tries_max > 0 && config->tries_max < 256);
	*s = (struct sr_sender){
		.config = *config,
		.chunks = chunks,
		.sent = {SR_NONE, SR_NONE},
		.due = {SR_NONE, SR_NONE},
		.end_ns = now_ns + config->timeout_ns,
		.rto_ns = config->rto_ns,
		.word_ns = now_ns,
		.alloc = alloc,
	};
	s->chunk = alloc_get(alloc, chunks * sizeof(*s->chunk));
	s->known = alloc_get(alloc, words(chunks) * sizeof(*s->known));
	if (s->chunk && s->known)
		return 0;
	sr_sender_free(s);
	return -ENOMEM;
}

void sr_sender_free(struct sr_sender *s)
{
	alloc_put(s->alloc, s->chunk, s->chunks * sizeof(*s->chunk));
	alloc_put(s->alloc, s->known, words(s->chunks) * sizeof(*s->known));
	s->chunk = NULL;
	s->known = NULL;
}

static struct sr_list *list_of(struct sr_sender *s, enum sr_state state)
{
	return state == SR_SENT ? &s->sent : state == SR_DUE ? &s->due : NULL;
}

static void leave_list(struct sr_sender *s, uint32_t i)
{
	struct sr_chunk *c = &s->chunk[i];
	struct sr_list *l = list_of(s, c->state);

	if (!l)
		return;
	if (c->prev == SR_NONE)
		l->first = c->next;
	else
		s->chunk[c->prev].next = c->next;
	if (c->next == SR_NONE)
		l->last = c->prev;
	else
		s->chunk[c->next].prev = c->prev;
}

static void enter_list(struct sr_sender *s, uint32_t i)
{
	struct sr_chunk *c = &s->chunk[i];
	struct sr_list *l = list_of(s, c->state);

	if (!l)
		return;
	c->next = SR_NONE;
	c->prev = l->last;
	if (l->last == SR_NONE)
		l->first = i;
	else
		s->chunk[l->last].next = i;
	l->last = i;
}

/* The only way from one state to another. */
static void chunk_move(struct sr_sender *s, uint32_t i, enum sr_state state)
{
	leave_list(s, i);
	s->chunk[i].state = (uint8_t)state;
	enter_list(s, i);
}

void sr_sender_hold(struct sr_sender *s)
{
	for (uint32_t i = 0; i < s->chunks; i++)
		s->chunk[i].state = SR_ACKED;
	memset(s->known, 0xff, words(s->chunks) * sizeof(*s->known));
	s->acked = s->unsent = s->chunks;
	s->end = SR_DONE;
}

void sr_sender_want(struct sr_sender *s, uint32_t i)
{
	if (s->chunk[i].state != SR_ACKED || s->end > SR_DONE)
		return;
	s->acked--;
	s->end = SR_RUNNING;
	s->known[i / 64] &= ~(UINT64_C(1) << i % 64);
	chunk_move(s, i, SR_DUE);
}

bool sr_sender_next(const struct sr_sender *s, uint32_t *chunk)
{
	if (s->end != SR_RUNNING || (s->due.first == SR_NONE && s->unsent == s->chunks))
		return false;
	*chunk = s->due.first != SR_NONE ? s->due.first : s->unsent;
	return true;
}

void sr_sender_sent(struct sr_sender *s, uint32_t i, uint64_t now_ns)
{
	struct sr_chunk *c = &s->chunk[i];

	assert(c->state == SR_DUE || i == s->unsent);
	s->resent += c->state == SR_DUE;
	if (i == s->unsent) {
		s->unsent++;
		/* A receiver may acknowledge a chunk that was never sent: it knows the data
		 * otherwise. */
		while (s->unsent < s->chunks && s->chunk[s->unsent].state == SR_ACKED)
			s->unsent++;
	}
	c->sent_ns = now_ns;
	c->tries++;
	chunk_move(s, i, SR_SENT);
}

static void rto_set(struct sr_sender *s, uint64_t rto_ns)
{
	uint64_t most_ns = RTO_TIMES_MAX * s->config.rto_ns;

	if (rto_ns < s->config.rto_ns)
		rto_ns = s->config.rto_ns;
	s->rto_ns = rto_ns < most_ns ? rto_ns : most_ns;
}

/*
 * Up at once, down slowly. A chunk that was sent twice does not say which of the two was acknowledged, and one that is
 * acknowledged before it was sent (a code repaired it, or its packets are still in the queue) says nothing.
 */
static void took(struct sr_sender *s, const struct sr_chunk *c, uint64_t now_ns)
{
	uint64_t twice_ns = 2 * (now_ns - c->sent_ns);

	if (c->tries == 1 && now_ns >= c->sent_ns)
		rto_set(s, twice_ns > s->rto_ns ? twice_ns : s->rto_ns - (s->rto_ns - twice_ns) / 64);
}

static void acknowledge(struct sr_sender *s, uint32_t i, uint64_t now_ns)
{
	took(s, &s->chunk[i], now_ns);
	chunk_move(s, i, SR_ACKED);
	s->known[i / 64] |= UINT64_C(1) << i % 64;
	s->acked++;
	while (s->unsent < s->chunks && s->chunk[s->unsent].state == SR_ACKED)
		s->unsent++;
	if (s->acked == s->chunks)
		sr_sender_finish(s, SR_DONE);
}

/* Most of what an acknowledgement shows is known: 64 chunks at a time. */
static void acknowledge_run(struct sr_sender *s, uint32_t i, uint32_t end, uint64_t now_ns)
{
	while (i < end) {
		uint64_t others = ~s->known[i / 64] >> i % 64;

		i += others ? (uint32_t)__builtin_ctzll(others) : 64 - i % 64;
		if (others && i < end)
			acknowledge(s, i++, now_ns);
	}
}

static bool ack_valid(const struct sr_sender *s, const struct sr_ack *ack, const uint8_t *payload)
{
	uint64_t end = ack->from;

	for (uint32_t i = 0; i < ack->count; i++) {
		struct ack_run r = sr_ack_run(payload, i);

		end += r.there + r.missing;
	}
	return ack->cum <= s->chunks && end <= s->chunks;
}

bool sr_sender_ack(struct sr_sender *s, const uint8_t *payload, uint64_t now_ns)
{
	struct sr_ack ack;
	uint32_t at;

	sr_ack_decode(&ack, payload);
	if (!ack_valid(s, &ack, payload))
		return false;
	if (s->end != SR_RUNNING)
		return true;
	s->word_ns = now_ns;
	acknowledge_run(s, s->cum, ack.cum, now_ns);
	s->cum = ack.cum > s->cum ? ack.cum : s->cum;
	at = ack.from;
	for (uint32_t i = 0; i < ack.count; i++) {
		struct ack_run r = sr_ack_run(payload, i);

		acknowledge_run(s, at, at + r.there, now_ns);
		at += r.there + r.missing;
	}
	return true;
}

static bool runs_valid(const struct sr_sender *s, const uint8_t *payload)
{
	uint32_t end = 0;

	for (uint32_t i = 0; i < sr_nack_count(payload); i++) {
		struct chunk_run r = sr_nack_run(payload, i);

		if (r.first < end || r.first >= s->chunks || !r.count || r.count > s->chunks - r.first)
			return false;
		end = r.first + r.count;
	}
	return true;
}

/* The receiver may name a chunk again before the one sent again can have arrived. */
static void ask_again(struct sr_sender *s, uint32_t i, uint64_t now_ns)
{
	const struct sr_chunk *c = &s->chunk[i];
	bool answered = c->tries > 1 && now_ns - c->sent_ns < s->config.rtt_ns;

	if (c->state != SR_SENT || answered || c->tries >= s->config.tries_max) {
		s->suppressed++;
		return;
	}
	chunk_move(s, i, SR_DUE);
}

bool sr_sender_nack(struct sr_sender *s, const uint8_t *payload, uint64_t now_ns)
{
	if (!runs_valid(s, payload))
		return false;
	if (s->end != SR_RUNNING)
		return true;
	s->word_ns = now_ns;
	for (uint32_t i = 0; i < sr_nack_count(payload); i++) {
		struct chunk_run r = sr_nack_run(payload, i);

		for (uint32_t c = r.first; c < r.first + r.count; c++)
			ask_again(s, c, now_ns);
	}
	return true;
}

void sr_sender_finish(struct sr_sender *s, enum sr_end end)
{
	if (s->end == SR_RUNNING)
		s->end = end;
}

uint64_t sr_sender_deadline(const struct sr_sender *s)
{
	uint64_t due_ns = s->end_ns;

	if (s->end != SR_RUNNING)
		return UINT64_MAX;
	if (s->sent.first != SR_NONE && s->chunk[s->sent.first].sent_ns + s->rto_ns < due_ns)
		due_ns = s->chunk[s->sent.first].sent_ns + s->rto_ns;
	return due_ns;
}

/* When nothing has come from the receiver for an RTO, its acknowledgement may be lost and the chunk
 * there: a PROBE asks. */
static void time_out(struct sr_sender *s, uint32_t i, uint64_t now_ns)
{
	if (s->chunk[i].tries >= s->config.tries_max) {
		sr_sender_finish(s, SR_TRIED_TOO_OFTEN);
		return;
	}
	if (now_ns - s->word_ns >= s->rto_ns) {
		s->probe = true;
		s->word_ns = now_ns;
		rto_set(s, 2 * s->rto_ns);
	}
	chunk_move(s, i, SR_DUE);
}

void sr_sender_expire(struct sr_sender *s, uint64_t now_ns)
{
	if (s->end == SR_RUNNING && now_ns >= s->end_ns)
		sr_sender_finish(s, SR_TIMED_OUT);
	while (s->end == SR_RUNNING && s->sent.first != SR_NONE &&
	       s->chunk[s->sent.first].sent_ns + s->rto_ns <= now_ns)
		time_out(s, s->sent.first, now_ns);
}

bool sr_sender_take_probe(struct sr_sender *s)
{
	bool probe = s->probe && s->end == SR_RUNNING;

	s->probe = false;
	return probe;
}
