/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where payload belongs before its packet is handed in (struct qp_ops, `place`), so that it can be put there without a
 * copy.
 *
 * Private to src/transport/veroce.
 */
#pragma once

#include <stdint.h>

struct qp;
struct rx;
struct rx_row;
struct transport;

/*
 * Knows it of packets of SENDs, WRITEs and READ responses that come in their turn, but for the last one of a message:
 * its bytes are written last of all.
 */
uint8_t *veroce_place_ahead(const struct transport *, const struct qp *, const struct rx *, struct rx_row *);
