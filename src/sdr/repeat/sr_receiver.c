/* SPDX-License-Identifier: BSD-2-Clause */
/* Each message is made from the bitmap as it is at that moment; only the times of messages are kept. */
#include <assert.h>
#include <errno.h>

#include "sdr/repeat/sr_receiver.h"

enum { FINALS = 3, ACK_RUNS_MAX = 1024, NACK_RUNS_MAX = 128 };

int sr_receiver_init(struct sr_receiver *r, const struct sr_receiver_config *config, const uint64_t *bits,
		     uint32_t chunks, uint64_t now_ns, const struct alloc *alloc)
{
	assert(chunks > 0);
	assert(config->rtt_ns && config->ack_ns);
	*r = (struct sr_receiver){
		.config = *config,
		.chunks = chunks,
		.came_ns = now_ns,
		.ack_ns = UINT64_MAX,
		.nack_ns = UINT64_MAX,
		.bits = bits,
		.alloc = alloc,
	};
	if (!config->nack)
		return 0;
	r->named_ns = alloc_get(alloc, chunks * sizeof(*r->named_ns));
	return r->named_ns ? 0 : -ENOMEM;
}

void sr_receiver_free(struct sr_receiver *r)
{
	alloc_put(r->alloc, r->named_ns, r->chunks * sizeof(*r->named_ns));
	r->named_ns = NULL;
}

static uint64_t word(const struct sr_receiver *r, uint32_t i)
{
	return __atomic_load_n(&r->bits[i], __ATOMIC_ACQUIRE);
}

static bool there(const struct sr_receiver *r, uint32_t chunk)
{
	return word(r, chunk / 64) >> chunk % 64 & 1;
}

/* Counts the chunks again, from the word with the first hole on; the words before it are full. */
static uint32_t count(struct sr_receiver *r)
{
	uint32_t first = r->cum / 64, have = first * 64;

	for (uint32_t i = first; i < (r->chunks + 63) / 64; i++) {
		uint64_t w = word(r, i);

		have += (uint32_t)__builtin_popcountll(w);
		if (w)
			r->highest = i * 64 + 64 - (uint32_t)__builtin_clzll(w);
	}
	while (r->cum < r->chunks && there(r, r->cum))
		r->cum++;
	return have;
}

static uint64_t later(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

bool sr_receiver_look(struct sr_receiver *r, uint64_t now_ns)
{
	bool was_whole = sr_receiver_whole(r);
	uint32_t have = was_whole ? r->have : count(r);

	if (have == r->have)
		return false;
	r->have = have;
	r->came_ns = now_ns;
	if (sr_receiver_whole(r) && !was_whole) {
		r->finals = FINALS;
		r->ack_ns = now_ns;
		r->nack_ns = UINT64_MAX;
		return true;
	}
	if (r->ack_ns == UINT64_MAX)
		r->ack_ns = r->last_ack_ns ? later(now_ns, r->last_ack_ns + r->config.ack_ns) : now_ns;
	if (r->config.nack)
		r->nack_ns = now_ns;
	return true;
}

bool sr_receiver_silent(const struct sr_receiver *r, uint64_t now_ns)
{
	return now_ns - r->came_ns >= r->config.rtt_ns / 4;
}

void sr_receiver_alive(struct sr_receiver *r, uint64_t now_ns)
{
	r->came_ns = now_ns;
}

void sr_receiver_ended(struct sr_receiver *r, uint64_t now_ns)
{
	r->ended = true;
	r->nack_ns = now_ns;
}

void sr_receiver_probed(struct sr_receiver *r, uint64_t now_ns)
{
	r->ack_ns = now_ns;
}

uint64_t sr_receiver_deadline(const struct sr_receiver *r)
{
	return r->ack_ns < r->nack_ns ? r->ack_ns : r->nack_ns;
}

/* Schedules the next acknowledgement. When all is there, two more follow the first, an eighth and a quarter of an RTT
 * later; otherwise others follow until all is shown, and once more after a pause, in case one is lost. */
static void schedule_ack(struct sr_receiver *r, uint64_t now_ns)
{
	r->last_ack_ns = now_ns;
	if (r->finals)
		r->finals--;
	if (r->finals)
		r->ack_ns = now_ns + r->config.rtt_ns / 8;
	else if (!sr_receiver_whole(r) && (r->news || r->shown || r->told != r->have))
		r->ack_ns = now_ns + r->config.ack_ns;
	else
		r->ack_ns = UINT64_MAX;
}

/* How many chunks from one on and before `end` are there, or are not; no more than a run can say. */
static uint16_t run_length(const struct sr_receiver *r, uint32_t at, uint32_t end, bool are_there)
{
	uint32_t i = at;

	while (i < end) {
		uint64_t w = word(r, i / 64), others = (are_there ? ~w : w) >> i % 64;

		if (others) {
			i += (uint32_t)__builtin_ctzll(others);
			break;
		}
		i += 64 - i % 64;
	}
	i = i < end ? i : end;
	return (uint16_t)(i - at < UINT16_MAX ? i - at : UINT16_MAX);
}

/* Shows the chunks behind those that the acknowledgement before has shown, or begins again. */
static uint16_t tell_ack(struct sr_receiver *r, uint8_t *p, size_t max, uint64_t now_ns)
{
	size_t room = (max - SR_ACK_FIXED_LEN) / SR_ACK_RUN_LEN;
	struct ack_run runs[ACK_RUNS_MAX];
	struct sr_ack ack = {.cum = r->cum, .from = r->shown};
	uint32_t at;

	if (r->shown <= r->cum) {
		ack.from = r->cum;
		r->news = r->told != r->have;
		r->told = r->have;
	}
	room = room < ACK_RUNS_MAX ? room : ACK_RUNS_MAX;
	for (at = ack.from; at < r->highest && ack.count < room; ack.count++) {
		struct ack_run *run = &runs[ack.count];

		run->there = run_length(r, at, r->highest, true);
		at += run->there;
		run->missing = run_length(r, at, r->highest, false);
		at += run->missing;
	}
	r->shown = at < r->highest ? at : 0;
	schedule_ack(r, now_ns);
	return sr_ack_encode(p, &ack, runs);
}

/* The end of the chunks that may be named missing: all of them after a silence, otherwise those that
 * were overtaken. */
static uint32_t overdue_end(const struct sr_receiver *r, uint64_t now_ns)
{
	if (r->ended || sr_receiver_silent(r, now_ns))
		return r->chunks;
	return r->highest > r->config.reorder ? r->highest - r->config.reorder : 0;
}

static bool may_name(const struct sr_receiver *r, uint32_t chunk, uint64_t now_ns)
{
	return !there(r, chunk) && (!r->named_ns[chunk] || now_ns - r->named_ns[chunk] >= r->config.rtt_ns);
}

/* Adds a chunk to the runs; false if it needs one more than there is room for. */
static bool name(struct chunk_run *runs, uint16_t *n, size_t room, uint32_t chunk)
{
	if (*n && runs[*n - 1].first + runs[*n - 1].count == chunk)
		runs[*n - 1].count++;
	else if (*n < room && *n < NACK_RUNS_MAX)
		runs[(*n)++] = (struct chunk_run){chunk, 1};
	else
		return false;
	return true;
}

static uint16_t tell_nack(struct sr_receiver *r, uint8_t *p, size_t max, uint64_t now_ns)
{
	uint32_t end = overdue_end(r, now_ns);
	size_t room = (max - SR_NACK_FIXED_LEN) / SR_NACK_RUN_LEN;
	struct chunk_run runs[NACK_RUNS_MAX];
	uint16_t n = 0;
	uint32_t i;

	for (i = r->cum; i < end; i++) {
		if (i % 64 == 0 && word(r, i / 64) == UINT64_MAX) {
			i += 63;
			continue;
		}
		if (!may_name(r, i, now_ns))
			continue;
		if (!name(runs, &n, room, i))
			break;
		r->named_ns[i] = now_ns;
	}
	/* Chunks that did not fit are named in the next message, at once; those that are lost again
	 * or were not overtaken yet, in a while. */
	if (i >= end)
		r->nack_ns = now_ns + r->config.rtt_ns / 4;
	return n ? sr_nack_encode(p, runs, n) : 0;
}

/* Names nothing missing before the first chunk has come, unless all was sent: the sender may not have begun. */
uint16_t sr_receiver_tell(struct sr_receiver *r, uint8_t *p, size_t max, enum control_type *type, uint64_t now_ns)
{
	if (now_ns >= r->ack_ns) {
		*type = CONTROL_SR_ACK;
		return tell_ack(r, p, max, now_ns);
	}
	if (r->config.nack && (r->have || r->ended) && now_ns >= r->nack_ns && !sr_receiver_whole(r)) {
		*type = CONTROL_SR_NACK;
		return tell_nack(r, p, max, now_ns);
	}
	return 0;
}
