/* SPDX-License-Identifier: BSD-2-Clause */
#include "sdr/model/completion.h"

#include <math.h>

#include "base/prng.h"
#include "sdr/model/binomial.h"
#include "support/test.h"

enum { KIB = 1024, MIB = 1024 * 1024, SEED = 5 };

static const double rtt_s = 25e-3, link_bps = 400e9;
static const struct model_code mds_32_8 = {.data = 32, .parity = 8, .wait_rtts = 1};
static const struct model_code xor_32_8 = {.parities_are_xor = true, .data = 32, .parity = 8, .wait_rtts = 1};

static struct model_message message(double bytes, double chunk_bytes, double loss)
{
	return (struct model_message){.chunks = ceil(bytes / chunk_bytes),
				      .inject_s = chunk_bytes * 8 / link_bps,
				      .rtt_s = rtt_s,
				      .chunk_loss = loss};
}

static void near(double got, double want, double part)
{
	if (!(fabs(got - want) <= part * fabs(want)))
		fail_msg("%.12g is not within %g of %.12g", got, part, want);
}

TEST(tails_are_those_summed_one_by_one)
{
	static const double chances[] = {1e-6, 1e-3, 0.03, 0.2, 0.5, 0.9};

	for (double n = 1; n <= 60; n += 7) {
		for (size_t c = 0; c < sizeof(chances) / sizeof(chances[0]); c++) {
			double above = 0;

			for (double k = n; k >= 0; k--) {
				near(binomial_above(n, k, chances[c]), above, 1e-9);
				above += binomial_is(n, k, chances[c]);
			}
			near(above, 1, 1e-9);
		}
	}
}

/* 1 - p for a group of (32, 8), computed with 60 decimal digits. */
TEST(tiny_tails_keep_their_digits)
{
	near(model_group_fails(&mds_32_8, 1e-3), 2.659e-19, 1e-3);
	near(model_group_fails(&mds_32_8, 1e-2), 2.067e-10, 1e-3);
	near(model_group_fails(&mds_32_8, 5e-2), 1.296e-4, 1e-3);
	near(model_group_fails(&mds_32_8, 1e-1), 1.550e-2, 1e-3);
	near(model_group_fails(&xor_32_8, 1e-3), 7.984e-5, 1e-3);
	near(model_group_fails(&xor_32_8, 1e-1), 0.4933, 1e-3);
}

TEST(a_message_falls_back_when_one_of_its_groups_fails)
{
	struct model_message small = message(128 * MIB, 64 * KIB, 1e-2), large = message(128 * MIB, 4 * KIB, 1e-3);

	near(model_falls_back(&small, &mds_32_8), 1.323e-8, 1e-3);
	near(model_falls_back(&small, &xor_32_8), 0.3947, 1e-3);
	near(model_falls_back(&large, &xor_32_8), 7.850e-2, 1e-3);
}

TEST(the_last_success_is_where_the_negative_binomial_has_it)
{
	/* One success: the chance of more than n losses before it is p^(n + 1). */
	assert_true(losses_before(1, 0.1, 0.5) == 0);
	assert_true(losses_before(1, 0.1, 0.95) == 1);
	assert_true(losses_before(1, 0.1, 0.995) == 2);
	/* Many: the normal distribution is near. K p / (1 - p) = 2648 and 3.09 roots of K p / (1 -
	 * p)^2. */
	near(losses_before(262144, 0.01, 0.999), 2648 + 3.09 * 51.7, 0.005);
	assert_true(losses_before(32768, 0, 0.999) == 0);
}

/* In ms, at 400 Gbit/s, 25 ms, a timer of three round trips and, last two, of one; from an
 * independent computation. */
static const struct {
	double mib, chunk_kib, loss, ideal, mean, median, p99, p999, nack_mean, nack_p999;
} golden[] = {
	{128, 4, 1e-5, 27.684, 48.286, 27.684, 102.606, 102.677, 34.315, 52.677},
	{128, 4, 1e-4, 27.684, 99.191, 102.118, 102.677, 102.684, 51.062, 52.684},
	{128, 4, 1e-3, 27.684, 104.982, 102.632, 176.863, 177.606, 53.369, 77.606},
	{128, 4, 1e-2, 27.684, 176.585, 177.141, 251.882, 252.632, 76.844, 102.630},
	{128, 64, 1e-5, 27.684, 29.178, 27.684, 101.369, 102.558, 28.164, 52.556},
	{128, 64, 1e-3, 27.684, 92.379, 101.782, 102.678, 176.378, 48.719, 76.378},
	{128, 64, 1e-2, 27.684, 116.384, 102.622, 177.586, 251.395, 57.021, 101.393},
	{1, 4, 1e-3, 25.021, 41.985, 25.021, 100.021, 100.025, 30.674, 50.022},
	{1024, 4, 1e-5, 46.475, 109.989, 115.797, 121.396, 121.467, 63.623, 71.467},
	{8192, 4, 1e-5, 196.799, 263.612, 266.125, 271.720, 271.795, 213.995, 221.791},
	{8192, 4, 1e-3, 196.799, 297.719, 290.095, 346.053, 346.795, 225.203, 246.743},
};

TEST(selective_repeat_has_its_known_times)
{
	for (size_t i = 0; i < sizeof(golden) / sizeof(golden[0]); i++) {
		struct model_message m = message(golden[i].mib * MIB, golden[i].chunk_kib * KIB, golden[i].loss);
		struct model_time sr, nack;

		model_sr(&m, 3 * rtt_s, &sr);
		model_sr(&m, rtt_s, &nack);
		near(model_ideal(&m) * 1e3, golden[i].ideal, 1e-4);
		near(sr.mean_s * 1e3, golden[i].mean, 2e-4);
		near(sr.median_s * 1e3, golden[i].median, 2e-4);
		near(sr.p99_s * 1e3, golden[i].p99, 2e-4);
		near(sr.p999_s * 1e3, golden[i].p999, 2e-4);
		near(nack.mean_s * 1e3, golden[i].nack_mean, 2e-4);
		near(nack.p999_s * 1e3, golden[i].nack_p999, 2e-4);
	}
}

/* Of one chunk it is known: the failed attempts are geometric. Where hardly any gets through there are a million of
 * them. */
TEST(heavy_losses_have_their_mean)
{
	static const double losses[] = {0.5, 0.9, 0.99, 0.9999, 0.999999};

	for (size_t i = 0; i < sizeof(losses) / sizeof(losses[0]); i++) {
		struct model_message m = message(64 * KIB, 64 * KIB, losses[i]);
		struct model_time t;

		model_sr(&m, rtt_s, &t);
		near(t.mean_s, model_ideal(&m) + losses[i] / (1 - losses[i]) * (rtt_s + m.inject_s), 2e-3);
	}
}

static double uniform(struct prng *p)
{
	return (double)(prng_next(p) >> 11) * 0x1p-53;
}

/* Attempts until one chunk arrives. */
static double attempts(struct prng *p, double loss)
{
	double n = 1;

	while (uniform(p) < loss)
		n++;
	return n;
}

static double sr_once(const struct model_message *m, double rto, struct prng *p)
{
	double last = 0;

	for (double i = 1; i <= m->chunks; i++)
		last = fmax(last, i * m->inject_s + (rto + m->inject_s) * (attempts(p, m->chunk_loss) - 1));
	return last + m->rtt_s;
}

TEST(selective_repeat_has_the_mean_of_a_thousand_runs)
{
	static const double losses[] = {1e-3, 1e-2, 1e-1};
	struct prng p;

	prng_init(&p, SEED);
	for (size_t l = 0; l < sizeof(losses) / sizeof(losses[0]); l++) {
		struct model_message m = message(16 * MIB, 16 * KIB, losses[l]);
		struct model_time t;
		double sum = 0;

		for (int i = 0; i < 1000; i++)
			sum += sr_once(&m, 3 * rtt_s, &p);
		model_sr(&m, 3 * rtt_s, &t);
		near(t.mean_s, sum / 1000, 0.05);
	}
}

static double ec_once(const struct model_message *m, const struct model_code *c, double rto, struct prng *p)
{
	double failed = 0, base = m->rtt_s + (m->chunks + ceil(m->chunks * c->parity / c->data)) * m->inject_s;
	struct model_message part = *m;

	for (double g = 0; g < ceil(m->chunks / c->data); g++) {
		double lost = 0;

		for (double i = 0; i < c->data + c->parity; i++)
			lost += uniform(p) < m->chunk_loss;
		failed += lost > c->parity;
	}
	part.chunks = failed * c->data;
	return failed == 0 ? base : base + c->wait_rtts * m->rtt_s + sr_once(&part, rto, p);
}

TEST(coding_has_the_mean_of_a_thousand_runs)
{
	static const double losses[] = {1e-2, 5e-2, 1e-1, 2e-1};
	struct prng p;

	prng_init(&p, SEED);
	for (size_t l = 0; l < sizeof(losses) / sizeof(losses[0]); l++) {
		struct model_message m = message(32 * MIB, 64 * KIB, losses[l]);
		struct model_time t;
		double sum = 0;

		for (int i = 0; i < 1000; i++)
			sum += ec_once(&m, &mds_32_8, 3 * rtt_s, &p);
		model_ec(&m, &mds_32_8, 3 * rtt_s, &t);
		near(t.mean_s, sum / 1000, 0.05);
	}
}

TEST(coding_costs_its_parity_while_no_group_fails)
{
	struct model_message m = message(128 * MIB, 4 * KIB, 1e-2);
	struct model_time t;

	model_ec(&m, &mds_32_8, 3 * rtt_s, &t);
	near(t.mean_s * 1e3, 28.355, 1e-4);
	near(t.p999_s * 1e3, 28.355, 1e-4);
	near(t.extra, 0.25, 1e-9);
	near(model_ec_formula(&m, &mds_32_8, 3 * rtt_s) * 1e3, 28.355, 1e-4);
	m.chunk_loss = 0.1;
	near(model_ec_formula(&m, &mds_32_8, 3 * rtt_s) / model_ideal(&m), 9.46, 1e-3);
}

TEST(nothing_is_faster_than_the_bound)
{
	for (double loss = 0; loss < 0.3; loss = loss * 3 + 1e-6) {
		struct model_message m = message(8 * MIB, 4 * KIB, loss);
		const struct model_tail code = {.coded = 1600, .groups = 50, .data = 32, .parity = 24};
		struct model_time bound, sr, tail;

		model_bound(&m, &bound);
		model_sr(&m, rtt_s, &sr);
		model_tail(&m, &code, &tail);
		assert_true(bound.mean_s <= sr.mean_s && bound.mean_s <= tail.mean_s);
		assert_true(bound.p999_s >= model_ideal(&m));
	}
}

TEST(a_chunk_is_lost_when_one_of_its_packets_is)
{
	near(model_chunk_loss(1e-3, 16), 1.588e-2, 1e-3);
	near(model_chunk_loss(1e-12, 16), 1.6e-11, 1e-9);
	assert_true(model_chunk_loss(0, 16) == 0);
}
