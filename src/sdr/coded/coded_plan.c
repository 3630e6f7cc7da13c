/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A group's losses are taken as Poisson many hits of geometrically many packets each: of a burst, a group that gets
 * every depth-th packet sees the next one lost with the chance that the burst lasts so long. For single losses that is
 * the binomial's tail, a little on the safe side.
 */
#include <assert.h>

#include "sdr/coded/coded_plan.h"

enum { COPIES_MAX = 8, SLACK_PIECES = 64 };

/* Of the loss that is reckoned with; but no more than the second. */
#define FEARED     10
#define FEARED_MAX 0.25

/* e^-a for a up to 512, without a library: the series for a / 256, squared eight times. */
static double exp_minus(double a)
{
	double x = a / 256, term = 1, sum = 1;

	for (int i = 1; i < 20; i++) {
		term *= -x / i;
		sum += term;
	}
	for (int i = 0; i < 8; i++)
		sum *= sum;
	return sum;
}

static double power(double x, uint32_t n)
{
	double y = 1;

	for (; n; n >>= 1, x *= x)
		y *= n & 1 ? x : 1;
	return y;
}

/* The chance that more than m packets of n are lost: hits come with rate n * loss * (1 - again) and are of j packets
 * with chance (1 - again) * again^(j - 1). Panjer's recursion. */
static double more_than(uint32_t m, uint32_t n, double loss, double again)
{
	double rate = n * loss * (1 - again), f[CODED_PARITY_MAX + 1], sum;

	f[0] = exp_minus(rate);
	sum = f[0];
	for (uint32_t k = 1; k <= m; k++) {
		double weight = 1 - again, all = 0;

		for (uint32_t j = 1; j <= k; j++, weight *= again)
			all += j * weight * f[k - j];
		f[k] = rate / k * all;
		sum += f[k];
	}
	return sum < 1 ? 1 - sum : 0;
}

static uint32_t least(uint64_t a, uint64_t b)
{
	return (uint32_t)(a < b ? a : b);
}

static uint32_t most(uint32_t a, uint32_t b)
{
	return a > b ? a : b;
}

static uint32_t ceil_div(uint32_t a, uint32_t b)
{
	return (a + b - 1) / b;
}

/* Blocks of about the same depth: a burst would take too much of the groups of a shallow one. */
static uint32_t depth_for(uint32_t groups)
{
	return ceil_div(groups, ceil_div(groups, CODED_DEPTH_MAX));
}

/* Whether so many parities do, for groups of `size`. In a wide one, as many as were lost do not in one case of 255. */
static bool does(const struct ec_layout *p, const struct coded_link *l, uint32_t coded)
{
	uint32_t groups = ceil_div(coded, p->data), n = p->data + p->parity;
	double again = l->burst > 1 ? power(1 - 1 / l->burst, depth_for(groups)) : 0;
	double fails = more_than(p->parity, n, l->loss, again);

	if (n > EC_PIECES_MAX && p->parity > 1)
		fails += more_than(p->parity - 1u, n, l->loss, again) / 128;
	return groups * fails <= CODED_FAIL;
}

/* As few groups as the loss allows that is feared: all of a group's parities do for that. */
static uint32_t fewest_groups(const struct coded_link *l, uint32_t coded)
{
	struct coded_link feared = {.loss = l->feared, .burst = l->burst};
	uint32_t least_size = 1, size = least(coded, EC_WIDE_DATA_MAX);

	while (l->feared > 0 && least_size < size) {
		uint32_t middle = (least_size + size + 1) / 2;
		struct ec_layout p = {.data = middle, .parity = coded_plan_parity_max(middle)};

		if (does(&p, &feared, coded))
			least_size = middle;
		else
			size = middle - 1;
	}
	return ceil_div(coded, size);
}

/* As few groups as do with so many parities each, but no more than there are, and not below least_groups. */
static void widen(struct ec_layout *p, const struct coded_link *l, uint32_t coded, uint32_t least_groups)
{
	uint32_t groups = ceil_div(coded, p->data);

	while (least_groups < groups) {
		uint32_t middle = (least_groups + groups) / 2;
		struct ec_layout q = *p;

		q.data = ceil_div(coded, middle);
		if (does(&q, l, coded)) {
			*p = q;
			groups = middle;
		} else {
			least_groups = middle + 1;
		}
	}
}

static uint64_t parities(const struct ec_layout *p, uint32_t coded)
{
	return (uint64_t)ceil_div(coded, p->data) * p->parity;
}

/* Larger groups need fewer parities in all, but more of each: these cost the coding of every packet, so another one has
 * to save a tenth of them all. */
static void choose_size(struct ec_layout *p, const struct coded_link *l, uint32_t coded, uint32_t least_groups)
{
	struct ec_layout more = *p;

	for (; more.parity && more.parity <= EC_WIDE_PARITY_MAX; more.parity++) {
		struct ec_layout q = more;

		widen(&q, l, coded, least_groups);
		if (more.parity > p->parity && parities(&q, coded) * 10 > parities(p, coded) * 9)
			return;
		*p = q;
	}
}

/* Words that name losses come up to an RTT / 32 after an RTT. */
uint32_t coded_plan_tail(uint32_t pieces, uint64_t rtt_ns, uint64_t piece_ns)
{
	return least((rtt_ns + rtt_ns / 32) / piece_ns + SLACK_PIECES, pieces);
}

void coded_plan_make(struct ec_layout *p, uint32_t pieces, const struct coded_link *l)
{
	uint32_t coded = coded_plan_tail(pieces, l->rtt_ns, l->piece_ns), groups = fewest_groups(l, coded);
	bool settled;

	assert(pieces && l->piece_ns);
	*p = (struct ec_layout){.pieces = pieces, .first = pieces - coded};
	for (;; p->parity++) {
		p->data = ceil_div(coded, most(groups, ceil_div(coded, EC_PIECES_MAX - p->parity)));
		if (p->parity == CODED_PARITY_MAX || does(p, l, coded))
			break;
	}
	choose_size(p, l, coded, groups);
	p->parity_max = p->parity;
	p->depth = depth_for(ceil_div(coded, p->data));
	settled = ec_layout_settle(p);
	assert(settled);
}

double coded_plan_feared(double loss)
{
	return FEARED * loss < FEARED_MAX ? FEARED * loss : FEARED_MAX;
}

uint32_t coded_plan_fill(struct ec_layout *p, const struct coded_link *l, uint64_t room)
{
	uint32_t parity = coded_plan_parity_max(p->data);

	while (parity > p->parity && (uint64_t)p->groups * parity > room)
		parity--;
	if (parity <= p->parity)
		return 0;
	p->parity_max = parity;
	return least(l->rtt_ns / l->piece_ns, (parity - p->parity) * p->groups);
}

uint32_t coded_copies(double count, double loss)
{
	uint32_t copies = 1;

	for (double left = count * loss; left > CODED_FAIL && copies < COPIES_MAX; left *= loss)
		copies++;
	return copies;
}
