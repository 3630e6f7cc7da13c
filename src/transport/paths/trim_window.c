/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A trim is congestion, and its path's window is cut for it, once a round trip. That does where one
 * path of many is too full. Where much is trimmed on all, it is the number of paths: of a hundred hosts
 * that send to one, sixteen paths each hold more in their least windows than the last queue. Once a
 * fourth of all is trimmed for a while all paths together get a window, which each trim that its path
 * cannot answer takes its bytes off, so that after a round trip it is what arrived; and which grows
 * slowly, as a hundred others grow too, until for many rounds nothing more is trimmed so.
 */
#include "transport/paths/trim_window.h"

#include "transport/paths/pair.h"

enum {
	HEAVY = 4, /* a fourth of a round, ... */
	ROUND_LEAST = 8, /* ... which is what is in flight and so many least windows of a path, ... */
	ROUNDS = 3, /* ... so often in a row: a burst is over by then */
	GROWTH = 32, /* of the least window of a path, a round */
	CALM = 8, /* rounds until it is twice as much */
	CALM_MAX = 12
};

static uint64_t round_bytes(const struct pair *pair)
{
	return pair->sent_bytes - pair->gone_bytes + (uint64_t)ROUND_LEAST * pair->cwnd_least_bytes;
}

static bool is_heavy(const struct trim_window *t)
{
	return t->trimmed_bytes * HEAVY >= t->round_bytes;
}

static void begin_round(struct pair *pair)
{
	struct trim_window *t = &pair->trims;
	/* A whole one may have gone since in which nothing was trimmed. */
	bool heavy = is_heavy(t) && pair->gone_bytes < t->round_end + t->round_bytes;

	t->heavy = heavy ? (uint8_t)(t->heavy + (t->heavy < ROUNDS)) : 0;
	t->round_bytes = round_bytes(pair);
	t->round_end = pair->gone_bytes + t->round_bytes;
	t->trimmed_bytes = 0;
}

void trim_window_cut(struct pair *pair, uint32_t bytes, bool path_is_least)
{
	struct trim_window *t = &pair->trims;
	uint64_t flying = pair->sent_bytes - pair->gone_bytes;
	bool is_there = pair->window_bytes < pair->buffer_bytes;

	if (!pair->cwnd_least_bytes)
		return;
	if (pair->gone_bytes >= t->round_end)
		begin_round(pair);
	t->trimmed_bytes += bytes;
	if (!is_heavy(t) && !(path_is_least && is_there))
		return;
	if (!is_there) {
		if (t->heavy < ROUNDS - 1)
			return;
		t->round_end = pair->sent_bytes;
	}
	if (pair->window_bytes > flying)
		pair->window_bytes = flying;
	pair->window_bytes -= bytes < pair->window_bytes ? bytes : pair->window_bytes - 1;
	t->calm = 0;
}

void trim_window_grow(struct pair *pair)
{
	struct trim_window *t = &pair->trims;

	if (pair->window_bytes >= pair->buffer_bytes || pair->gone_bytes < t->round_end)
		return;
	t->round_end = pair->sent_bytes;
	t->round_bytes = round_bytes(pair);
	t->trimmed_bytes = 0;
	if (t->calm < CALM * CALM_MAX)
		t->calm++;
	pair->window_bytes += (uint64_t)(pair->cwnd_least_bytes / GROWTH) << t->calm / CALM;
	if (pair->window_bytes > pair->buffer_bytes)
		pair->window_bytes = pair->buffer_bytes;
}
