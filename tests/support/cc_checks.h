/* SPDX-License-Identifier: BSD-2-Clause */
/* What tests of the congestion controls compare with: real numbers. */
#pragma once

#include "support/test.h"

#define Q32  4294967296.0
#define GBPS UINT64_C(1000000000)
#define US   UINT64_C(1000)
#define MS   UINT64_C(1000000)

/* Within a part in ten thousand. */
static inline void assert_close(double got, double want)
{
	double off = got > want ? got - want : want - got, size = want < 0 ? -want : want;

	if (!(off <= size * 1e-4 + 1e-9))
		fail_msg("%.9g is not %.9g", got, want);
}

/* Newton's, so that tests need no libm. */
static inline double root(double x)
{
	double r = x > 1 ? x : 1;

	for (int i = 0; i < 60; i++)
		r = (r + x / r) / 2;
	return r;
}
