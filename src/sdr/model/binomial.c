/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Both tails are the regularized incomplete beta function, by its continued fraction (NIST Digital
 * Library of Mathematical Functions, 8.17.22), evaluated from the front by Lentz's method.
 */
#include "sdr/model/binomial.h"

#include <math.h>
#include <stdbool.h>

static double coefficient(double a, double b, double x, int step)
{
	double m = step / 2;

	if (step % 2 == 0)
		return m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
	return -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
}

static double not_zero(double v)
{
	return fabs(v) < 1e-300 ? 1e-300 : v;
}

/* 1 / (1 + d1 / (1 + d2 / ..)): it converges in about the root of max(a, b) steps where x < (a + 1)
 * / (a + b + 2). */
static double continued_fraction(double a, double b, double x)
{
	enum { STEPS_MAX = 1000000 };
	double c = INFINITY, d = 1, fraction = 1;

	for (int step = 1; step < STEPS_MAX; step++) {
		double term = coefficient(a, b, x, step);

		d = 1 / not_zero(1 + term * d);
		c = not_zero(1 + term / c);
		fraction *= c * d;
		if (fabs(c * d - 1) < 1e-14)
			break;
	}
	return fraction;
}

static double log_beta_term(double a, double b, double x)
{
	return lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) + b * log1p(-x);
}

/* I_x(a, b), for a, b > 0. */
static double beta_regularized(double a, double b, double x)
{
	bool swapped = x > (a + 1) / (a + b + 2);
	double part;

	if (x <= 0 || x >= 1)
		return x <= 0 ? 0 : 1;
	if (swapped)
		part = exp(log_beta_term(a, b, x)) * continued_fraction(b, a, 1 - x) / b;
	else
		part = exp(log_beta_term(a, b, x)) * continued_fraction(a, b, x) / a;
	return swapped ? 1 - part : part;
}

double binomial_above(double n, double k, double p)
{
	if (k < 0)
		return 1;
	if (k >= n)
		return 0;
	return beta_regularized(k + 1, n - k, p);
}

double binomial_is(double n, double k, double p)
{
	if (k < 0 || k > n)
		return 0;
	if (p <= 0 || p >= 1)
		return (p <= 0 ? k == 0 : k == n) ? 1 : 0;
	return exp(lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1) + k * log(p) + (n - k) * log1p(-p));
}

/* k successes are among k + n trials when at most n of them are lost. */
static bool enough(double k, double p, double q, double n)
{
	return binomial_above(k + n, n, p) <= 1 - q;
}

double losses_before(double k, double p, double q)
{
	double low = -1, high = 1;

	while (!enough(k, p, q, high)) {
		low = high;
		high *= 2;
	}
	while (high - low > 1) {
		double middle = floor((low + high) / 2);

		if (enough(k, p, q, middle))
			high = middle;
		else
			low = middle;
	}
	return high;
}
