/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * REP, which answers REQ (IBTA 12.6.8), and RTU, which answers REP (IBTA 12.6.9). Offsets are from the byte behind
 * the MAD header; a row is four bytes, the first bit is the highest.
 *
 *      REP                                                      RTU
 *   0 local communication id                                 0 local communication id
 *   4 remote communication id                                4 remote communication id
 *   8 local Q_Key                                            8 private data (224 bytes)
 *  12 local QPN:24 | vendor id, high byte:8
 *  16 local EECN:24 | vendor id, middle byte:8
 *  20 starting PSN:24 | vendor id, low byte:8
 *  24 responder resources:8 | initiator depth:8 | target ACK delay:5 | failover accepted:2 |
 *     end-to-end flow control:1 | RNR retry count:3 | SRQ:1 | reserved:4
 *  28 local CA GUID (8 bytes)
 *  36 private data (196 bytes)
 *
 * "Local" is the sender's. The vendor id is that of the enhanced connection establishment.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum { CM_REP_DATA_LEN = 196, CM_RTU_DATA_LEN = 224 };

struct cm_rep {
	uint32_t local_comm_id;
	uint32_t remote_comm_id;
	uint32_t qkey;
	uint32_t qpn;       /* 24 bits */
	uint32_t vendor_id; /* 24 bits */
	uint32_t eecn;      /* 24 bits; of an XRC target the QPN */
	uint32_t psn;       /* 24 bits: of the first packet to REP's sender */
	uint8_t responder_resources;
	uint8_t initiator_depth;
	uint8_t target_ack_delay; /* 5 bits: 4.096 us << it */
	uint8_t failover;         /* 2 bits: 0 accepts the alternate path */
	bool flow_control;
	uint8_t rnr_retry_count; /* 3 bits */
	bool srq;
	uint64_t ca_guid;
	uint8_t private_data[CM_REP_DATA_LEN];
};

struct cm_rtu {
	uint32_t local_comm_id;
	uint32_t remote_comm_id;
	uint8_t private_data[CM_RTU_DATA_LEN];
};

/* Of MAD_DATA_LEN bytes. Reserved bits are ignored and sent as 0; bits beyond a field's width are dropped. */
void cm_rep_decode(struct cm_rep *, const uint8_t *);
void cm_rep_encode(uint8_t *, const struct cm_rep *);
void cm_rtu_decode(struct cm_rtu *, const uint8_t *);
void cm_rtu_encode(uint8_t *, const struct cm_rtu *);
