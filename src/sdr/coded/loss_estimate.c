/* SPDX-License-Identifier: BSD-2-Clause */
/* What was seen halves whenever it reaches 2^22 packets, so a link that changes is followed within a few million. */
#include "sdr/coded/loss_estimate.h"

#define SEEN_MAX   4194304.0
#define FIRST_SEEN 300.0
#define LOSS_MIN   1e-5
#define LOSS_MAX   0.5

void loss_estimate_init(struct loss_estimate *e)
{
	*e = (struct loss_estimate){0};
}

void loss_estimate_add(struct loss_estimate *e, uint32_t seen, uint32_t lost, uint32_t bursts)
{
	e->seen += seen;
	e->lost += lost;
	e->bursts += bursts;
	if (e->seen < SEEN_MAX)
		return;
	e->seen /= 2;
	e->lost /= 2;
	e->bursts /= 2;
}

static double root(double x)
{
	double y = x > 1 ? x : 1;

	for (int i = 0; i < 64; i++)
		y = (y + x / y) / 2;
	return y;
}

double loss_estimate_burst(const struct loss_estimate *e)
{
	double burst = e->bursts >= 1 ? e->lost / e->bursts : 1;

	/* Single losses lie side by side now and then. */
	return burst < 1.5 ? 1 : burst;
}

/* Losses are Poisson many bursts, so the count's variance is about that of bursts of a geometric length. Above the
 * count by 2.33 deviations and 1.5; of few packets, by what stands for those never seen. */
double loss_estimate_high(const struct loss_estimate *e)
{
	double burst = loss_estimate_burst(e), lost = e->lost + 1.5 * burst;
	double high = (lost + 2.33 * root(lost * (2 * burst - 1))) / (e->seen + FIRST_SEEN);

	if (e->seen < FIRST_SEEN && high < 0.01)
		high = 0.01;
	return high < LOSS_MIN ? LOSS_MIN : high > LOSS_MAX ? LOSS_MAX : high;
}
