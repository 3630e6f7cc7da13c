/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A trim is congestion, and cuts its path's window, once a round trip. That is enough where one path of many
 * is too full. Where all paths are trimmed, there are too many of them: if a hundred hosts send to one on
 * sixteen paths each, even the smallest windows hold more than the last queue. Once a fourth of all bytes has
 * been trimmed for a while, all paths together get a window. A trim on a path whose window is already the
 * smallest takes its bytes off that window, which after a round trip is as large as what arrived. It grows
 * slowly, as a hundred others grow too, until no such trim has happened for many rounds.
 */
#include "transport/paths/trim_window.h"

#include "transport/paths/pair.h"

enum {
	HEAVY = 4,       /* a fourth of a round, ... */
	ROUND_LEAST = 8, /* ... which is what is in flight and as many smallest windows of a path, ... */
	ROUNDS = 3,      /* ... and as many rounds in a row: a burst is over by then */
	GROWTH = 32,     /* it grows by 1/32 of a path's smallest window a round */
	CALM = 8,        /* calm rounds until it grows twice as fast */
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
	/* A whole round may have passed since in which nothing was trimmed. */
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
