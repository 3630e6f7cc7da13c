/* SPDX-License-Identifier: BSD-2-Clause */
#include "sdr/model/completion.h"

#include <math.h>
#include <stddef.h>

#include "sdr/model/binomial.h"

double model_chunk_loss(double packet_loss, double packets)
{
	return -expm1(packets * log1p(-packet_loss));
}

double model_ideal(const struct model_message *m)
{
	return m->chunks * m->inject_s + m->rtt_s;
}

/* A distribution function of times: the chance that it is done within t_s. */
struct done {
	double (*within)(const struct done *, double t_s);
	const struct model_message *message;
	const struct model_code *code;
	double rto_s;
};

/* The least time within which it is done with probability q, to a part in 10^9 of a round trip if a number has so many
 * digits. */
static double quantile(const struct done *d, double q)
{
	double low = model_ideal(d->message), high = low;

	for (double step = d->message->rtt_s; d->within(d, high) < q; step *= 2) {
		low = high;
		high += step;
	}
	while (high - low > d->message->rtt_s * 1e-9) {
		double middle = (low + high) / 2;

		/* There is no number between them. */
		if (middle <= low || middle >= high)
			break;
		if (d->within(d, middle) < q)
			low = middle;
		else
			high = middle;
	}
	return high;
}

/*
 * The chance that all chunks have arrived `slack` after the last one was injected. Chunk j before
 * the last had a slack of slack + j * inject, and r = ceil(that / cycle) attempts have failed if it
 * is still missing: all with the same r count together. Attempts begin `cycle` apart.
 */
static double all_arrived(const struct model_message *m, double cycle, double slack)
{
	double log_chance = 0, counted = 0, failed;

	if (m->chunk_loss <= 0)
		return 1;
	failed = pow(m->chunk_loss, ceil(slack / cycle));
	for (double r = ceil(slack / cycle); counted < m->chunks; r++, failed *= m->chunk_loss) {
		double until = floor((r * cycle - slack) / m->inject_s) + 1;

		if (failed * (m->chunks - counted) < 1e-17)
			break;
		until = fmin(until, m->chunks);
		log_chance += (until - counted) * log1p(-failed);
		/* Smaller than any number that is told from none. */
		if (log_chance < -40)
			return 0;
		counted = until;
	}
	return exp(log_chance);
}

double model_sr_done(const struct model_message *m, double rto_s, double t_s)
{
	double slack = t_s - model_ideal(m), cycle = rto_s + m->inject_s;

	if (slack < 0)
		return 0;
	/* At the very end of injection every chunk has had its first attempt. */
	return all_arrived(m, cycle, fmax(slack, cycle * 1e-12));
}

static double sr_within(const struct done *d, double t_s)
{
	return model_sr_done(d->message, d->rto_s, t_s);
}

/* The chance not to be done yet, on average of `cycles` cycles from cycle n on. */
static double late_on_average(const struct model_message *m, double cycle, double n, double cycles, unsigned points)
{
	double sum = 0;

	if (all_arrived(m, cycle, (n + cycles) * cycle) <= 0)
		return 1;
	for (unsigned i = 0; i < points; i++)
		sum += 1 - all_arrived(m, cycle, (n + (i + 0.5) / points * cycles) * cycle);
	return sum / points;
}

/*
 * The mean: the chance not to be done yet, integrated from the ideal time on, cycle by cycle, and behind the first
 * ones, where it changes little from one to the next, by ever more of them: with heavy losses there may be a million.
 */
static double sr_mean(const struct model_message *m, double rto_s)
{
	enum { POINTS = 4000, SINGLE = 32, POINTS_LATER = 500 };
	double cycle = rto_s + m->inject_s, area = 0, n = 0, cycles = 1, late;

	do {
		late = late_on_average(m, cycle, n, cycles, n < SINGLE ? POINTS : POINTS_LATER);
		area += late * cycles * cycle;
		n += cycles;
		cycles = n < SINGLE ? 1 : floor(n / 8);
	} while (late >= 1e-9);
	return model_ideal(m) + area;
}

static void quantiles(const struct done *d, struct model_time *t)
{
	t->median_s = quantile(d, 0.5);
	t->p99_s = quantile(d, 0.99);
	t->p999_s = quantile(d, 0.999);
}

void model_sr(const struct model_message *m, double rto_s, struct model_time *t)
{
	struct done d = {.within = sr_within, .message = m, .rto_s = rto_s};

	*t = (struct model_time){.mean_s = sr_mean(m, rto_s)};
	quantiles(&d, t);
}

/* A class of n pieces bears one loss. */
static double xor_class_fails(double n, double loss)
{
	return binomial_above(n, 1, loss);
}

double model_group_fails(const struct model_code *c, double chunk_loss)
{
	if (!c->parities_are_xor)
		return binomial_above(c->data + c->parity, c->parity, chunk_loss);
	return -expm1(c->parity * log1p(-xor_class_fails(c->data / c->parity + 1, chunk_loss)));
}

static double groups(const struct model_message *m, const struct model_code *c)
{
	return ceil(m->chunks / c->data);
}

double model_falls_back(const struct model_message *m, const struct model_code *c)
{
	return -expm1(groups(m, c) * log1p(-model_group_fails(c, m->chunk_loss)));
}

static double parity_chunks(const struct model_message *m, const struct model_code *c)
{
	return ceil(m->chunks * c->parity / c->data);
}

/* All data and parity injected, and a round trip. */
static double ec_base(const struct model_message *m, const struct model_code *c)
{
	return model_ideal(m) + parity_chunks(m, c) * m->inject_s;
}

/* The numbers of failed groups that matter, as nodes of equal distance; the last node's weight
 * covers what follows. */
enum { NODES_MAX = 64 };

struct failures {
	unsigned n;
	double none; /* the chance that no group fails */
	double groups[NODES_MAX], chance[NODES_MAX];
};

static void failures_of(const struct model_message *m, const struct model_code *c, struct failures *f)
{
	double n = groups(m, c), fails = model_group_fails(c, m->chunk_loss);
	double mean = n * fails, spread = 8 * sqrt(mean * (1 - fails)) + 8;
	double low = fmax(1, floor(mean - spread)), high = fmin(n, ceil(mean + spread));
	double step = ceil((high - low + 1) / NODES_MAX), above = binomial_above(n, low - 1, fails);

	*f = (struct failures){.none = 1 - above};
	if (low > 1)
		f->none = binomial_is(n, 0, fails);
	for (double first = low; first <= high && f->n < NODES_MAX; first += step) {
		double above_next = binomial_above(n, first + step - 1, fails);

		f->groups[f->n] = fmin(first + floor(step / 2), n);
		f->chance[f->n++] = above - above_next;
		above = above_next;
	}
}

static struct model_message failed_part(const struct model_message *m, const struct model_code *c, double failed)
{
	struct model_message part = *m;

	part.chunks = failed * c->data;
	return part;
}

double model_ec_done(const struct model_message *m, const struct model_code *c, double rto_s, double t_s)
{
	double base = ec_base(m, c), chance;
	struct failures f;

	if (t_s < base)
		return 0;
	failures_of(m, c, &f);
	chance = f.none;
	for (unsigned i = 0; i < f.n; i++) {
		struct model_message part = failed_part(m, c, f.groups[i]);

		chance += f.chance[i] * model_sr_done(&part, rto_s, t_s - base - c->wait_rtts * m->rtt_s);
	}
	return fmin(chance, 1);
}

static double ec_within(const struct done *d, double t_s)
{
	return model_ec_done(d->message, d->code, d->rto_s, t_s);
}

double model_quantile(const struct model_message *m, const struct model_code *code, double rto_s, double q)
{
	struct done d = {.within = code ? ec_within : sr_within, .message = m, .code = code, .rto_s = rto_s};

	return quantile(&d, q);
}

void model_ec(const struct model_message *m, const struct model_code *c, double rto_s, struct model_time *t)
{
	struct done d = {.within = ec_within, .message = m, .code = c, .rto_s = rto_s};
	struct failures f;

	*t = (struct model_time){.mean_s = ec_base(m, c), .extra = parity_chunks(m, c) / m->chunks};
	failures_of(m, c, &f);
	for (unsigned i = 0; i < f.n; i++) {
		struct model_message part = failed_part(m, c, f.groups[i]);

		if (f.chance[i] > 1e-12)
			t->mean_s += f.chance[i] * (c->wait_rtts * m->rtt_s + sr_mean(&part, rto_s));
	}
	quantiles(&d, t);
}

double model_ec_formula(const struct model_message *m, const struct model_code *c, double rto_s)
{
	double failed = groups(m, c) * model_group_fails(c, m->chunk_loss);
	struct model_message part = failed_part(m, c, failed);
	double wait = model_falls_back(m, c) * (1 + c->wait_rtts) * m->rtt_s, repeat = m->rtt_s;

	part.chunks = ceil(part.chunks);
	if (failed * c->data >= 1)
		repeat = sr_mean(&part, rto_s);
	return ec_base(m, c) - m->rtt_s + wait + repeat;
}

static double bound_at(const struct model_message *m, double losses)
{
	return (m->chunks + losses) * m->inject_s + m->rtt_s;
}

void model_bound(const struct model_message *m, struct model_time *t)
{
	double p = m->chunk_loss;

	*t = (struct model_time){
		.mean_s = bound_at(m, m->chunks * p / (1 - p)),
		.median_s = model_bound_quantile(m, 0.5),
		.p99_s = model_bound_quantile(m, 0.99),
		.p999_s = model_bound_quantile(m, 0.999),
	};
}

double model_bound_quantile(const struct model_message *m, double q)
{
	return bound_at(m, losses_before(m->chunks, m->chunk_loss, q));
}

static double short_of(const struct model_tail *c, double parity, double loss)
{
	double n = c->data + parity, fails = binomial_above(n, parity, loss);

	/* As many as are needed have come, and one less than needed of them helps. */
	if (c->is_wide && parity > 0)
		fails += (binomial_above(n, parity - 1, loss) - fails) / 255;
	return fmin(1, c->groups * fails);
}

/* When a message is done that needs no more than was sent unasked, one that needs what follows, and one that needs a
 * second round; and the chances that it needs at least the second and the third. */
struct tail_ends {
	double base, filled, late;
	double needs_more, fails;
};

static struct tail_ends ends_of(const struct model_message *m, const struct model_tail *c)
{
	double loss = m->chunk_loss, early = (m->chunks - c->coded) / (1 - loss), parities = c->groups * c->parity;
	struct tail_ends e = {.base = (early + c->coded + parities) * m->inject_s + m->rtt_s,
			      .fails = short_of(c, c->parity + c->fill, loss)};

	e.filled = e.base + c->groups * c->fill * m->inject_s;
	e.late = e.base + 1.1 * m->rtt_s;
	e.needs_more = fmax(e.fails, short_of(c, c->parity, loss));
	return e;
}

static double end_at(const struct tail_ends *e, double q)
{
	return e->fails > 1 - q ? e->late : e->needs_more > 1 - q ? e->filled : e->base;
}

double model_tail(const struct model_message *m, const struct model_tail *c, struct model_time *t)
{
	struct tail_ends e = ends_of(m, c);

	*t = (struct model_time){
		.mean_s = e.base + (e.needs_more - e.fails) * (e.filled - e.base) + e.fails * (e.late - e.base),
		.median_s = end_at(&e, 0.5),
		.p99_s = end_at(&e, 0.99),
		.p999_s = end_at(&e, 0.999),
		.extra = c->groups * (c->parity + c->fill) / m->chunks,
	};
	return e.fails;
}

double model_tail_quantile(const struct model_message *m, const struct model_tail *c, double q)
{
	struct tail_ends e = ends_of(m, c);

	return end_at(&e, q);
}
