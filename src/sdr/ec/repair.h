/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Repair of lost data pieces. A plan is made from the pieces that are there, costs microseconds,
 * touches no piece, and serves every group of the code that lost the same ones: keep it where
 * losses repeat.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sdr/ec/code.h"

struct ec_repair {
	const struct ec_code *code;
	unsigned lost; /* data pieces that will be repaired */
	uint16_t lost_piece[EC_PIECES_MAX];
	uint8_t parity_used[EC_PIECES_MAX]; /* parity i of the code, one for each lost piece */
	uint8_t *inverse;                   /* all but EC_XOR: lost rows of lost elements: from parities to pieces */
};

/* Whether the pieces there give all data of a group: present[0 .. data + parity - 1]. */
bool ec_repairable(const struct ec_code *code, const bool *present);

/*
 * Plans the repair of all data pieces that are not present. Borrows the code until
 * ec_repair_fini(). 0: *repair is made, with lost = 0 where nothing is missing. -ENODATA: too few
 * pieces, of the wrong classes, or of EC_WIDE that do not suffice. -ENOMEM. On failure *repair is
 * as it was.
 */
int ec_repair_init(struct ec_repair *repair, const struct ec_code *code, const bool *present);
void ec_repair_fini(struct ec_repair *repair);

/*
 * Writes the lost data pieces of one group. pieces[0 .. data + parity - 1] have `length` bytes each
 * and do not overlap. Lost pieces are overwritten, data that is present is only read. The parity
 * pieces of repair->parity_used are undefined afterwards; other parity pieces are not looked at and
 * may be NULL.
 */
void ec_repair_run(const struct ec_repair *repair, uint8_t *const *pieces, size_t length);
