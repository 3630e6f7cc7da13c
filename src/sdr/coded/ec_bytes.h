/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The bytes of a message's pieces and parities: making parities at the sender, and what was lost at
 * the receiver. A last data piece that is not whole counts as filled up with zeros.
 */
#pragma once

#include "sdr/ec/code.h"
#include "sdr/coded/ec_layout.h"

/* Everything is borrowed. */
struct ec_bytes {
	const struct ec_layout *layout;
	const struct ec_code *code; /* of layout->data and layout->parity_max pieces */
	uint8_t *data;              /* the message; the sender's is only read */
	uint64_t bytes;             /* of it: layout->pieces pieces, the last one at least a byte */
	uint8_t *parity;            /* parity_max * groups whole pieces */
	uint32_t piece;             /* bytes of one */
	uint8_t *spare;             /* EC_BYTES_SPARE(piece), zeros at first */
};

#define EC_BYTES_SPARE(piece) (2 * (size_t)(piece))

/* Adds coded pieces to the parities that their groups send unasked: the pieces from `at` on, `count`
 * of one block. Once every piece of a block was added, in its order, the block's parities are
 * complete. Many at a time are faster than few. With EC_XOR layout->parity is parity_max. */
void ec_bytes_add(const struct ec_bytes *, uint32_t at, uint32_t count);

/* Makes some parities of a group from all of its data. With EC_XOR it makes all. */
void ec_bytes_make(const struct ec_bytes *, uint32_t group, uint32_t parity, uint32_t count);

/* Which pieces are there. */
struct ec_presence {
	bool (*has)(const void *of, const struct ec_piece *);
	const void *of;
};

/* Writes the data that a group lacks, and overwrites the parity pieces that it uses. Nothing else may
 * write either of them meanwhile.
 * -ENODATA: the group has not enough pieces; -ENOMEM. */
int ec_bytes_recover(const struct ec_bytes *, const struct ec_presence *, uint32_t group);
