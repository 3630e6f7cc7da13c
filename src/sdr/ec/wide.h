/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The numbers of EC_WIDE: a code for groups of more pieces than the field has elements. Columns are
 * those of a Cauchy matrix over and over, and each time row i is multiplied by 2^i once more:
 *
 *      element (i, j) = 2^(i * (j / 224)) / ((224 + i) ^ (j mod 224))
 *
 * so it does not depend on how many pieces a group has. No element is 0. As many parities as pieces
 * were lost do not give these back for about one pattern of losses in 255, and one parity more does
 * not for one in 65,000; losses among 224 columns in a row are always made good. Whether the
 * parities there do is what ec_wide_solve() says.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum { EC_WIDE_DATA_MAX = 992, EC_WIDE_PARITY_MAX = 32 };

/* All elements of the first `data` columns of row i. */
void ec_wide_row(uint8_t *row, unsigned i, unsigned data);

/*
 * Whether the parities rows[0 .. n_rows - 1] give the data pieces lost[0 .. n_lost - 1]; all
 * differ, n_lost <= EC_WIDE_PARITY_MAX. Then used[k] is the number of the parity that takes part as
 * the k-th of n_lost, and the lost piece j is the sum over k of inverse[j * n_lost + k] times that
 * parity, once the data that is there was taken out of it. `used` and `inverse` may both be NULL.
 */
bool ec_wide_solve(const uint16_t *lost, unsigned n_lost, const uint8_t *rows, unsigned n_rows, uint8_t *used,
		   uint8_t *inverse);
