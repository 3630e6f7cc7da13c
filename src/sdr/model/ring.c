/* SPDX-License-Identifier: BSD-2-Clause */
/* Message times are drawn by inverting their distribution: from a table, and exactly in the tail
 * beyond it. */
#include "sdr/model/ring.h"

#include <assert.h>
#include <math.h>
#include <stddef.h>

#include "base/prng.h"

enum { TABLE = 8192, NODES_MAX = 1024 };

struct draw {
	const struct model_ring *ring;
	struct prng prng;
	double table[TABLE]; /* quantile of i / TABLE */
};

static double quantile(const struct model_ring *r, double q)
{
	if (r->is_bound)
		return model_bound_quantile(&r->message, q);
	if (r->tail)
		return model_tail_quantile(&r->message, r->tail, q);
	return model_quantile(&r->message, r->code, r->rto_s, q);
}

static void draw_init(struct draw *d, const struct model_ring *r, uint64_t seed)
{
	d->ring = r;
	prng_init(&d->prng, seed);
	for (unsigned i = 0; i < TABLE; i++)
		d->table[i] = quantile(r, (double)i / TABLE);
}

static double uniform(struct prng *p)
{
	return (double)(prng_next(p) >> 11) * 0x1p-53;
}

static double message_time(struct draw *d)
{
	double u = uniform(&d->prng), at = u * TABLE;
	unsigned i = (unsigned)at;

	if (i == TABLE - 1)
		return quantile(d->ring, u);
	return d->table[i] + (at - i) * (d->table[i + 1] - d->table[i]);
}

static double all_reduce(struct draw *d)
{
	const struct model_ring *r = d->ring;
	double done[NODES_MAX] = {0}, slowest = 0, gate = r->receiver_gated ? r->message.rtt_s / 2 : 0;

	for (unsigned round = 0; round < 2 * r->nodes - 2; round++) {
		double neighbour = done[r->nodes - 1];

		for (unsigned i = 0; i < r->nodes; i++) {
			double own = done[i];

			done[i] = fmax(own, neighbour) + message_time(d) - gate;
			neighbour = own;
		}
	}
	for (unsigned i = 0; i < r->nodes; i++)
		slowest = fmax(slowest, done[i]);
	return slowest + gate;
}

static void sift_down(double *v, unsigned at, unsigned n)
{
	for (unsigned child; (child = 2 * at + 1) < n; at = child) {
		double swap = v[at];

		if (child + 1 < n && v[child + 1] > v[child])
			child++;
		if (v[child] <= v[at])
			return;
		v[at] = v[child];
		v[child] = swap;
	}
}

static void sort_ascending(double *v, unsigned n)
{
	for (unsigned i = n / 2; i-- > 0;)
		sift_down(v, i, n);
	for (unsigned end = n; end-- > 1;) {
		double swap = v[0];

		v[0] = v[end];
		v[end] = swap;
		sift_down(v, 0, end);
	}
}

void model_ring_run(const struct model_ring *r, uint64_t seed, double *times_s, unsigned trials)
{
	struct draw d;

	assert(r->nodes >= 2 && r->nodes <= NODES_MAX);
	draw_init(&d, r, seed);
	for (unsigned i = 0; i < trials; i++)
		times_s[i] = all_reduce(&d);
	sort_ascending(times_s, trials);
}

static double at_quantile(const double *times_s, unsigned trials, double q)
{
	return times_s[(unsigned)(q * (trials - 1))];
}

void model_time_of(const double *times_s, unsigned trials, struct model_time *t)
{
	double sum = 0;

	assert(trials > 0);
	for (unsigned i = 0; i < trials; i++)
		sum += times_s[i];
	*t = (struct model_time){
		.mean_s = sum / trials,
		.median_s = at_quantile(times_s, trials, 0.5),
		.p99_s = at_quantile(times_s, trials, 0.99),
		.p999_s = at_quantile(times_s, trials, 0.999),
	};
}
