/* SPDX-License-Identifier: BSD-2-Clause */
/* Which kernels there are, and the portable one, which the others must equal. */
#include "sdr/ec/kernel.h"

#include <string.h>

#include "sdr/ec/kernel_x86.h"

static bool always(void)
{
	return true;
}

static void scalar_fold_one(const struct gf256_factor *f, uint8_t *target, const uint8_t *source, size_t length)
{
	for (size_t i = 0; i < length; i++)
		target[i] ^= f->low[source[i] & 15] ^ f->high[source[i] >> 4];
}

static void scalar_fold(const struct ec_fold *f)
{
	for (unsigned t = 0; t < f->n_targets; t++) {
		if (f->set)
			memset(f->targets[t], 0, f->length);
		for (unsigned s = 0; s < f->n_sources; s++)
			scalar_fold_one(&f->factors[f->rows[t][f->column + s]], f->targets[t], f->sources[s],
					f->length);
	}
}

static void scalar_add(uint8_t *target, const uint8_t *const *sources, unsigned n, size_t length, bool set)
{
	if (set)
		memset(target, 0, length);
	for (unsigned s = 0; s < n; s++) {
		for (size_t i = 0; i < length; i++)
			target[i] ^= sources[s][i];
	}
}

static const struct ec_kernel ec_kernel_scalar = {"scalar", always, scalar_fold, scalar_add};

const struct ec_kernel *const ec_kernels[] = {
	&ec_kernel_scalar,
#ifdef __x86_64__
	&ec_kernel_ssse3,
	&ec_kernel_avx2,
	&ec_kernel_avx512,
	&ec_kernel_gfni,
#endif
	NULL,
};

const struct ec_kernel *ec_kernel_best(void)
{
	const struct ec_kernel *best = ec_kernels[0];

	for (const struct ec_kernel *const *k = ec_kernels; *k != NULL; k++) {
		if ((*k)->usable())
			best = *k;
	}
	return best;
}
