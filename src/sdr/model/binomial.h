/* SPDX-License-Identifier: BSD-2-Clause */
/* Tails of the binomial and the negative binomial distribution, exact also where they are tiny. */
#pragma once

/*
 * The chance that of n independent trials more than k succeed, each with chance p in [0, 1]. n and
 * k are whole numbers, 0 <= n; the relative error is below 1e-9, down to results of 1e-300.
 */
double binomial_above(double n, double k, double p);

/* The chance of exactly k. */
double binomial_is(double n, double k, double p);

/*
 * How many losses at most precede the k-th success, with probability q: the least n for which k
 * successes are among the first k + n trials with at least that chance. Each trial is lost with
 * chance p < 1; k >= 1; 0 <= q < 1.
 */
double losses_before(double k, double p, double q);
