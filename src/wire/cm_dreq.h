/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * DREQ, which ends a connection (IBTA 12.6.10), and DREP, which answers it (IBTA 12.6.11). Offsets are from the byte
 * behind the MAD header.
 *
 *      DREQ                                           DREP
 *   0 local communication id                       0 local communication id
 *   4 remote communication id                      4 remote communication id
 *   8 remote QPN:24 | reserved:8                   8 private data (224 bytes)
 *  12 private data (220 bytes)
 */
#pragma once

#include <stdint.h>

enum { CM_DREQ_DATA_LEN = 220, CM_DREP_DATA_LEN = 224 };

struct cm_dreq {
	uint32_t local_comm_id;
	uint32_t remote_comm_id;
	uint32_t remote_qpn; /* 24 bits: the receiver's */
	uint8_t private_data[CM_DREQ_DATA_LEN];
};

struct cm_drep {
	uint32_t local_comm_id;
	uint32_t remote_comm_id;
	uint8_t private_data[CM_DREP_DATA_LEN];
};

/* Of MAD_DATA_LEN bytes. Reserved bits are ignored and sent as 0; bits beyond a field's width are dropped. */
void cm_dreq_decode(struct cm_dreq *, const uint8_t *);
void cm_dreq_encode(uint8_t *, const struct cm_dreq *);
void cm_drep_decode(struct cm_drep *, const uint8_t *);
void cm_drep_encode(uint8_t *, const struct cm_drep *);
