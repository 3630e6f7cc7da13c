/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * MRA, which asks for more time (IBTA 12.6.6), and REJ, which refuses (IBTA 12.6.7). Offsets are from the byte
 * behind the MAD header; a row is four bytes, the first bit is the highest.
 *
 *      MRA                                            REJ
 *   0 local communication id                       0 local communication id
 *   4 remote communication id                      4 remote communication id
 *   8 message:2 | reserved:6 |                     8 message:2 | reserved:6 | info length:7 | reserved:1 |
 *     service timeout:5 | reserved:3                 reason:16
 *  10 private data (222 bytes)                    12 additional reject information (72 bytes)
 *                                                 84 private data (148 bytes)
 */
#pragma once

#include <stdint.h>

enum { CM_MRA_DATA_LEN = 222, CM_REJ_DATA_LEN = 148, CM_REJ_INFO_LEN = 72 };

/* Which message is answered. MRA has 2 for LAP, REJ for any other. */
enum cm_answered { CM_ANSWERED_REQ = 0, CM_ANSWERED_REP = 1, CM_ANSWERED_OTHER = 2 };

/* IBTA 12.6.7.2: every reason, by its number and the name that tools show. */
/* clang-format off */
#define CM_REJ_REASONS(X) \
	X(1, no_qp) X(2, no_eec) X(3, no_resources) X(4, timeout) X(5, unsupported) \
	X(6, comm_id) X(7, comm_instance) X(8, no_listener) X(9, transport) X(10, stale) \
	X(11, no_rdc) X(12, gid) X(13, lid) X(14, sl) X(15, traffic_class) X(16, hop_limit) \
	X(17, packet_rate) X(18, alternate_gid) X(19, alternate_lid) X(20, alternate_sl) \
	X(21, alternate_traffic_class) X(22, alternate_hop_limit) X(23, alternate_packet_rate) \
	X(24, cm_redirect) X(25, port_redirect) X(26, mtu) X(27, responder_resources) \
	X(28, program) X(29, rnr_retry) X(30, duplicate_comm_id) X(31, class_version) \
	X(32, flow_label) X(33, alternate_flow_label) X(35, vendor_option)
/* clang-format on */

/* IBTA 12.6.7.2: the reasons that this project sends or distinguishes. */
enum cm_rej_reason {
	CM_REJ_TIMEOUT = 4,
	CM_REJ_UNSUPPORTED = 5,
	CM_REJ_SERVICE_ID = 8,
	CM_REJ_TRANSPORT = 9,
	CM_REJ_STALE = 10,
	CM_REJ_GID = 12,
	CM_REJ_MTU = 26,
	CM_REJ_CONSUMER = 28,
	CM_REJ_DUPLICATE_COMM_ID = 30,
	CM_REJ_CLASS_VERSION = 31,
	CM_REJ_VENDOR_OPTION = 35
};

struct cm_mra {
	uint32_t local_comm_id;
	uint32_t remote_comm_id;
	uint8_t answered;        /* 2 bits, enum cm_answered */
	uint8_t service_timeout; /* 5 bits: 4.096 us << it */
	uint8_t private_data[CM_MRA_DATA_LEN];
};

struct cm_rej {
	uint32_t local_comm_id; /* 0: the sender has none, or none any more */
	uint32_t remote_comm_id;
	uint8_t answered; /* 2 bits, enum cm_answered */
	uint8_t info_len; /* 7 bits: bytes used of `info`; a peer may overstate it */
	uint16_t reason;
	uint8_t info[CM_REJ_INFO_LEN];
	uint8_t private_data[CM_REJ_DATA_LEN];
};

/* Of MAD_DATA_LEN bytes. Reserved bits are ignored and sent as 0; bits beyond a field's width are dropped. */
void cm_mra_decode(struct cm_mra *, const uint8_t *);
void cm_mra_encode(uint8_t *, const struct cm_mra *);
void cm_rej_decode(struct cm_rej *, const uint8_t *);
void cm_rej_encode(uint8_t *, const struct cm_rej *);
