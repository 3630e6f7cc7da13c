/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Seeded pseudo-random numbers for faults, jitter and tests: fast, repeatable, not secret
 * (xoshiro256**, Blackman and Vigna 2018). Numbers that a peer must not guess come from siphash.h.
 */
#pragma once

#include <stdint.h>

struct prng {
	uint64_t s[4];
};

/* Any seed will do, 0 included. The same seed gives the same numbers on every machine. */
void prng_init(struct prng *, uint64_t seed);
uint64_t prng_next(struct prng *);

/* Uniform in [0, n); n > 0. */
uint64_t prng_below(struct prng *, uint64_t n);
