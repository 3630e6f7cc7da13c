/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Random draws that are the same on every machine and compiler: integers only, and a generator for
 * each object, so that one object's draws do not depend on how many others there are.
 */
#pragma once

#include <stdint.h>

#include "base/prng.h"

/* A seed for the object `id`, derived from `seed`. */
uint64_t draw_seed(uint64_t seed, uint64_t id);

static inline void draw_init(struct prng *r, uint64_t seed, uint64_t id)
{
	prng_init(r, draw_seed(seed, id));
}

/* -ln((u + 1) / 2^64) in units of 2^-32: exponential with mean 1 for a uniform u. */
uint64_t draw_exponential_q32(uint64_t u);

/* An exponential time; its mean is in 2^-16 ps. Takes one number from the generator. */
uint64_t draw_gap_ps(struct prng *, uint64_t mean_q16);

/* r^(-milli/1000) in units of 2^-60; r >= 1, milli <= 8000. */
uint64_t draw_zipf_weight_q60(uint32_t r, uint32_t milli);

/* A random order of 0 .. n-1, all orders equally likely. */
void draw_shuffle(struct prng *, uint32_t *items, uint32_t n);
