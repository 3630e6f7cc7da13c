/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A distribution of message sizes: points of a cumulative curve, straight lines between them. All
 * arithmetic is in integers, so that a draw is the same on every machine.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "net/text.h"

enum { CDF_POINTS_MAX = 4096 };

/* One, as a cumulative share: a percent is 10^10. */
#define CDF_ONE       1000000000000ull
#define CDF_BYTES_MAX (1ull << 40)

struct cdf_point {
	uint64_t bytes;
	uint64_t share; /* share of messages of this size or less, of CDF_ONE */
};

struct cdf {
	struct cdf_point *points;
	uint32_t count;
};

/*
 * Reads lines of "bytes percent"; lines that begin with '#' and blank lines are skipped. Bytes and
 * percent never fall, the last percent is 100; two points with the same bytes are a step. Messages
 * below the first point's percent have its size. 0, -EINVAL with *err, -ENOMEM; the caller frees
 * with cdf_free.
 */
int cdf_read(struct cdf *, const char *text, size_t bytes, struct text_error *err);

/*
 * The distributions that come with the simulator, as share/cdf has them; names ended by NULL. The
 * text lasts for ever; NULL: no such name. Case does not matter, and - equals _.
 */
extern const char *const cdf_names[];
const char *cdf_text(const char *name);

/* cdf_text and cdf_read in one. */
int cdf_builtin(struct cdf *, const char *name, struct text_error *err);

void cdf_free(struct cdf *);

/* The mean of the curve, in thousandths of a byte, rounded. */
uint64_t cdf_mean_millibytes(const struct cdf *);

/* The size for a number drawn uniformly from all of 64 bits: rounded down, 1 at least. */
uint64_t cdf_bytes(const struct cdf *, uint64_t uniform);
