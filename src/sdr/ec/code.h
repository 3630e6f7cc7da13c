/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Systematic erasure codes: a group of k data pieces gets m parity pieces of the same length. Pure
 * functions: no clock, no thread, no state but what is passed. A code is only read once it is made,
 * so threads may share it.
 *
 * - EC_CAUCHY: any k of the k + m pieces give the others (a maximum distance separable code).
 * Parity i is the sum over data j of data[j] / ((k + i) ^ j) in GF(2^8), where addition is XOR and
 * k + i is the piece's number. The bytes are those of ISA-L's gf_gen_cauchy1_matrix().
 * - EC_XOR: parity i is the XOR of all data j with j mod m = i. One loss in each of these classes
 * can be repaired. m <= k.
 * - EC_WIDE: for larger groups, k <= 992 and m <= 32. Nearly any k pieces give the others
 * (ec/wide.h).
 *
 * k + m <= 255 for the others. Pieces are numbered data first: 0 .. k - 1 are data, k .. k + m - 1
 * parity.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/alloc.h"
#include "sdr/ec/gf256.h"
#include "sdr/ec/wide.h"

/* Pieces of a group: of all kinds but EC_WIDE; of any kind. */
enum { EC_PIECES_MAX = 255, EC_ANY_PIECES_MAX = EC_WIDE_DATA_MAX + EC_WIDE_PARITY_MAX };

enum ec_kind { EC_CAUCHY, EC_XOR, EC_WIDE };

struct ec_kernel;

struct ec_code {
	enum ec_kind kind;
	unsigned data, parity;
	const struct ec_kernel *kernel;
	/* All but EC_XOR: of parity i the elements that multiply the data, rows[i][j]; one factor
	 * for each element there is. */
	const uint8_t **rows;
	struct gf256_factor *factors;
	const struct alloc *alloc;
};

/*
 * Makes a code of `data` and `parity` pieces a group that computes with `kernel`, which is
 * ec_kernel_best() except in tests. Borrows kernel and alloc until ec_code_fini(). -EINVAL: a
 * number is 0 or beyond what the kind allows. -ENOMEM: there is no memory for 10 KiB and data *
 * parity bytes. On failure *code is as it was.
 */
int ec_code_init(struct ec_code *code, enum ec_kind kind, unsigned data, unsigned parity,
		 const struct ec_kernel *kernel, const struct alloc *alloc);
void ec_code_fini(struct ec_code *code);

/* Computes all parity pieces from all data pieces: `length` bytes each, none overlapping another.
 */
void ec_encode(const struct ec_code *code, const uint8_t *const *data, uint8_t *const *parity, size_t length);

/*
 * Some of the parities from some of the data: adds the data pieces column .. column + n_sources - 1
 * to the parities row .. row + n_targets - 1, or with `set` sets these to what the sources give.
 * Of EC_XOR all parities are wanted: row = 0, and n_targets is the code's parity.
 */
struct ec_portion {
	unsigned column, n_sources;
	const uint8_t *const *sources;
	unsigned row, n_targets;
	uint8_t *const *targets;
	size_t length;
	bool set;
};

void ec_encode_portion(const struct ec_code *code, const struct ec_portion *portion);

/*
 * The same in portions, as data becomes known: adds the data pieces first .. first + count - 1,
 * which are sources[0 .. count - 1], to all parity pieces. Parities begin as zeros; when every data
 * piece was added once, in any order, they are complete. Adding four or more pieces at a time is up
 * to twice as fast as adding one.
 */
void ec_encode_add(const struct ec_code *code, unsigned first, unsigned count, const uint8_t *const *sources,
		   uint8_t *const *parity, size_t length);
