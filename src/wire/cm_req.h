/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * REQ, the connection management message that asks for a connection (IBTA 12.6.5). Offsets are from the byte
 * behind the MAD header; a row is four bytes, the first bit is the highest.
 *
 *   0 local communication id
 *   4 reserved:8 | vendor id:24
 *   8 service id (8 bytes)
 *  16 local CA GUID (8 bytes)
 *  24 reserved
 *  28 local Q_Key
 *  32 local QPN:24 | responder resources:8
 *  36 local EECN:24 | initiator depth:8
 *  40 remote EECN:24 | remote CM response timeout:5 | transport:2 | end-to-end flow control:1
 *  44 starting PSN:24 | local CM response timeout:5 | retry count:3
 *  48 P_Key:16 | path MTU:4 | RDC exists:1 | RNR retry count:3 | max CM retries:4 | SRQ:1 | extended transport:3
 *  52 primary path (44 bytes)
 *  96 alternate path (44 bytes)
 * 140 private data (92 bytes)
 *
 * A path is
 *
 *   0 local LID:16 | remote LID:16
 *   4 local GID (16 bytes)
 *  20 remote GID (16 bytes)
 *  36 flow label:20 | reserved:6 | rate:6
 *  40 traffic class:8 | hop limit:8 | SL:4 | subnet local:1 | reserved:3 | local ACK timeout:5 | reserved:3
 *
 * The vendor id is that of the enhanced connection establishment, which IBTA 1.3 and older texts call reserved.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum { CM_REQ_DATA_LEN = 92 };

enum cm_transport { CM_TRANSPORT_RC = 0, CM_TRANSPORT_UC = 1, CM_TRANSPORT_RD = 2, CM_TRANSPORT_EXTENDED = 3 };
enum cm_extended { CM_EXTENDED_XRC = 1 };

struct cm_path {
	uint16_t local_lid;
	uint16_t remote_lid;
	uint8_t local_gid[16]; /* of REQ's sender */
	uint8_t remote_gid[16];
	uint32_t flow_label; /* 20 bits */
	uint8_t rate;        /* 6 bits */
	uint8_t traffic_class;
	uint8_t hop_limit;
	uint8_t sl; /* 4 bits */
	bool subnet_local;
	uint8_t ack_timeout; /* 5 bits: 4.096 us << it */
};

struct cm_req {
	uint32_t local_comm_id;
	uint32_t vendor_id; /* 24 bits */
	uint64_t service_id;
	uint64_t ca_guid;
	uint32_t qkey;
	uint32_t qpn; /* 24 bits */
	uint8_t responder_resources;
	uint32_t local_eecn; /* 24 bits */
	uint8_t initiator_depth;
	uint32_t remote_eecn;      /* 24 bits */
	uint8_t remote_cm_timeout; /* 5 bits: 4.096 us << it */
	uint8_t transport;         /* 2 bits, enum cm_transport */
	bool flow_control;
	uint32_t psn;             /* 24 bits: of the first packet to REQ's sender */
	uint8_t local_cm_timeout; /* 5 bits */
	uint8_t retry_count;      /* 3 bits */
	uint16_t pkey;
	uint8_t mtu; /* 4 bits: 1 to 5 are 256 to 4096 */
	bool rdc_exists;
	uint8_t rnr_retry_count; /* 3 bits */
	uint8_t max_cm_retries;  /* 4 bits */
	bool srq;
	uint8_t extended_transport; /* 3 bits, enum cm_extended; of CM_TRANSPORT_EXTENDED */
	struct cm_path primary, alternate;
	uint8_t private_data[CM_REQ_DATA_LEN];
};

/*
 * Of MAD_DATA_LEN bytes. On decode reserved bits are ignored; on encode they are 0, and bits beyond
 * a field's width are dropped.
 */
void cm_req_decode(struct cm_req *, const uint8_t *);
void cm_req_encode(uint8_t *, const struct cm_req *);
