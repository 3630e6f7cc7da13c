/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Service id resolution: which UD queue pair has a service (IBTA 12.11.1, 12.11.2). Offsets are from the byte behind
 * the MAD header; a row is four bytes, the first bit is the highest.
 *
 *      SIDR_REQ                                       SIDR_REP
 *   0 request id                                   0 request id
 *   4 P_Key:16 | reserved:16                       4 status:8 | info length:8 | vendor id, high two bytes:16
 *   8 service id (8 bytes)                         8 QPN:24 | vendor id, low byte:8
 *  16 private data (216 bytes)                    12 service id (8 bytes)
 *                                                 20 Q_Key
 *                                                 24 additional information (72 bytes)
 *                                                 96 private data (136 bytes)
 */
#pragma once

#include <stdint.h>

enum { CM_SIDR_REQ_DATA_LEN = 216, CM_SIDR_REP_DATA_LEN = 136, CM_SIDR_INFO_LEN = 72 };

enum cm_sidr_status {
	CM_SIDR_SUCCESS = 0,
	CM_SIDR_UNSUPPORTED = 1, /* no such service */
	CM_SIDR_REJECTED = 2,
	CM_SIDR_NO_QP = 3,
	CM_SIDR_REDIRECT = 4,
	CM_SIDR_VERSION = 5
};

struct cm_sidr_req {
	uint32_t request_id;
	uint16_t pkey;
	uint64_t service_id;
	uint8_t private_data[CM_SIDR_REQ_DATA_LEN];
};

struct cm_sidr_rep {
	uint32_t request_id;
	uint8_t status; /* enum cm_sidr_status */
	uint8_t info_len;
	uint32_t vendor_id; /* 24 bits */
	uint32_t qpn;       /* 24 bits */
	uint64_t service_id;
	uint32_t qkey;
	uint8_t info[CM_SIDR_INFO_LEN];
	uint8_t private_data[CM_SIDR_REP_DATA_LEN];
};

/* Of MAD_DATA_LEN bytes. Reserved bits are ignored and sent as 0; bits beyond a field's width are dropped. */
void cm_sidr_req_decode(struct cm_sidr_req *, const uint8_t *);
void cm_sidr_req_encode(uint8_t *, const struct cm_sidr_req *);
void cm_sidr_rep_decode(struct cm_sidr_rep *, const uint8_t *);
void cm_sidr_rep_encode(uint8_t *, const struct cm_sidr_rep *);
