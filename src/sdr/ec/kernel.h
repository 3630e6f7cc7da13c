/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The bytes of erasure coding: every encoder and decoder is sums of pieces times field elements,
 * and this is the one loop that computes them, once for each family of vector instructions. All
 * kernels give the same bytes.
 */
#pragma once

#include <stddef.h>
#include <stdbool.h>
#include <stdint.h>

#include "sdr/ec/gf256.h"

/*
 * targets[t] ^= sum over s of e * sources[s], where the element e is rows[t][column + s] and
 * factors[e] multiplies by it. With `set` the targets become the sum, whatever they held, and there
 * is at least one source. All pieces have `length` bytes, at any alignment. No target may overlap a
 * source or another target. Borrows everything. No sources, no targets or no bytes: nothing
 * happens.
 */
struct ec_fold {
	const struct gf256_factor *factors; /* one for each of the 256 elements */
	const uint8_t *const *rows;
	unsigned column;
	uint8_t *const *targets;
	const uint8_t *const *sources;
	unsigned n_targets, n_sources;
	size_t length;
	bool set;
};

struct ec_kernel {
	const char *name;
	bool (*usable)(void); /* this processor has the instructions, and the system saves their
				 registers */
	void (*fold)(const struct ec_fold *);
	/* target ^= sources[0] ^ .. ^ sources[n - 1]; with `set` target becomes that, and n > 0.
	 * Otherwise as fold. */
	void (*add)(uint8_t *target, const uint8_t *const *sources, unsigned n, size_t length, bool set);
};

/* All kernels of this build, the plainest first, NULL at the end. The first is portable C and
 * always usable. */
extern const struct ec_kernel *const ec_kernels[];

/* The last usable one: the fastest. */
const struct ec_kernel *ec_kernel_best(void);
