/* SPDX-License-Identifier: BSD-2-Clause */
#include <assert.h>
#include <math.h>

#include "sdr/coded/ec_choice.h"
#include "sdr/ec/code.h"
#include "sdr/model/binomial.h"

/* A message in so many may be short; groups that a burst is dealt out to; answers that may follow. */
#define SHORT_MAX 1e-4
enum { DEPTH = 8, ANSWERS = 8, DATA_MAX = 223 };

void loss_note(struct loss_counts *e, uint64_t sent, uint64_t lost)
{
	const double memory = 1e6; /* pieces */

	if (e->sent > memory) {
		e->lost *= memory / e->sent;
		e->sent = memory;
	}
	e->sent += (double)sent;
	e->lost += (double)lost;
}

/* Wilson's score interval, one-sided. */
double loss_upper(const struct loss_counts *e)
{
	const double z = 2.326, floor = 1e-5;
	double n = e->sent, p, upper;

	if (n < 64)
		return 0.01;
	p = e->lost / n;
	upper = (p + z * z / (2 * n) + z * sqrt(p * (1 - p) / n + z * z / (4 * n * n))) / (1 + z * z / n);
	return fmin(fmax(upper, floor), 0.5);
}

/* The chance that some group of `pieces` has more losses than parities. */
static double fails(double pieces, uint32_t data, uint32_t parity, double loss)
{
	return ceil(pieces / data) * binomial_above(data + parity, parity, loss);
}

/* The largest group that so many parities protect well enough; 0: none. */
static uint32_t group_for(double pieces, uint32_t parity, double loss)
{
	uint32_t low = 0, high = DATA_MAX;

	while (low < high) {
		uint32_t mid = (low + high + 1) / 2;

		if (fails(pieces, mid, parity, loss) <= SHORT_MAX)
			low = mid;
		else
			high = mid - 1;
	}
	return low;
}

/* The code that costs the fewest parities; of equal ones the one that is computed fastest. */
static void code_for(struct ec_layout *l, double pieces, double loss)
{
	double best = INFINITY;

	l->data = 32;
	l->parity = 16;
	for (uint32_t parity = 1; parity <= 24; parity++) {
		uint32_t data = group_for(pieces, parity, loss);
		/* A piece's share of each group's parities, and a hundredth of that for the work. */
		double cost = data ? ceil(pieces / data) * parity + 0.01 * parity * pieces / data : INFINITY;

		if (cost < best) {
			best = cost;
			l->data = data;
			l->parity = parity;
		}
	}
}

static uint32_t least(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

/* Parities that may be asked for, as far as there is room and the field has elements. */
static void settle(struct ec_layout *l, uint64_t parity_room)
{
	uint32_t groups, most;

	if (l->data * parity_room < l->pieces)
		l->data = (uint32_t)((l->pieces + parity_room - 1) / parity_room);
	l->data = least(l->data, l->pieces);
	groups = (l->pieces + l->data - 1) / l->data;
	most = (uint32_t)(parity_room / groups < EC_PIECES_MAX ? parity_room / groups : EC_PIECES_MAX);
	assert(most > 0 && l->data < EC_PIECES_MAX);
	l->parity_max = least(least(2 * l->parity + ANSWERS, EC_PIECES_MAX - l->data), most);
	l->parity = least(l->parity, l->parity_max);
	l->depth = least(DEPTH, groups);
	ec_layout_settle(l);
}

enum ec_reason ec_choose(const struct ec_link *link, uint32_t pieces, uint32_t piece_bytes, uint64_t behind,
			 uint64_t parity_room, struct ec_layout *l)
{
	double exposed = (double)link->rate_bps / 8e9 * (double)link->rtt_ns - (double)behind;
	double tail = fmin(exposed / piece_bytes, pieces);
	uint32_t block;

	*l = (struct ec_layout){.pieces = pieces, .data = 64};
	if (tail < 1 || tail * link->loss < SHORT_MAX) {
		settle(l, parity_room);
		return tail < 1 ? EC_NOTHING_EXPOSED : EC_NOTHING_LOST;
	}
	code_for(l, tail, link->loss);
	settle(l, parity_room);
	block = l->depth * l->data;
	if (tail >= pieces)
		return EC_ALL_CODED;
	l->coded_from = (uint32_t)((pieces - tail) / block);
	return EC_TAIL_CODED;
}
