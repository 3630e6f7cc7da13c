/* SPDX-License-Identifier: BSD-2-Clause */
/* The attributes with which a QP is created and modified (IBTA 11.2.5). */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct pd;
struct cq;
struct srq;
struct xrcd;

/* The numbers of enum ibv_qp_type, _state and _attr_mask. */
enum qp_type { QPT_RC = 2, QPT_UC = 3, QPT_UD = 4, QPT_XRC_SEND = 9, QPT_XRC_RECV = 10, QPT_COUNT };

enum qp_state { QPS_RESET, QPS_INIT, QPS_RTR, QPS_RTS, QPS_SQD, QPS_SQE, QPS_ERR, QPS_COUNT };

enum qp_attr_mask {
	QPA_STATE = 1 << 0,
	QPA_CUR_STATE = 1 << 1,
	QPA_EN_SQD_ASYNC_NOTIFY = 1 << 2,
	QPA_ACCESS_FLAGS = 1 << 3,
	QPA_PKEY_INDEX = 1 << 4,
	QPA_PORT = 1 << 5,
	QPA_QKEY = 1 << 6,
	QPA_AV = 1 << 7,
	QPA_PATH_MTU = 1 << 8,
	QPA_TIMEOUT = 1 << 9,
	QPA_RETRY_CNT = 1 << 10,
	QPA_RNR_RETRY = 1 << 11,
	QPA_RQ_PSN = 1 << 12,
	QPA_MAX_RD_ATOMIC = 1 << 13,
	QPA_ALT_PATH = 1 << 14,
	QPA_MIN_RNR_TIMER = 1 << 15,
	QPA_SQ_PSN = 1 << 16,
	QPA_MAX_DEST_RD_ATOMIC = 1 << 17,
	QPA_PATH_MIG_STATE = 1 << 18,
	QPA_CAP = 1 << 19,
	QPA_DEST_QPN = 1 << 20,
	QPA_KNOWN = (1 << 21) - 1
};

/* An address vector. RoCE has no LIDs: the GRH is always there (IBTA A17.4.5). */
struct ah_attr {
	uint8_t dgid[16];
	uint32_t flow_label;
	uint8_t sgid_index;
	uint8_t hop_limit;
	uint8_t traffic_class;
	uint8_t sl;
	uint8_t port;
	uint8_t is_global;
	uint8_t static_rate;
	uint8_t src_path_bits;
	uint16_t dlid;
};

struct qp_attr {
	enum qp_state state;
	enum qp_state cur_state;
	uint32_t path_mtu_bytes; /* 256, 512, 1024, 2048 or 4096 */
	uint32_t qkey;
	uint32_t rq_psn; /* 24 bits */
	uint32_t sq_psn;
	uint32_t dest_qpn;
	uint32_t access; /* enum mr_access */
	struct ah_attr av;
	uint16_t pkey_index;
	uint8_t sq_draining;
	uint8_t en_sqd_async_notify;
	uint8_t max_rd_atomic;
	uint8_t max_dest_rd_atomic;
	uint8_t min_rnr_timer; /* code, 0 to 31 */
	uint8_t port;
	uint8_t timeout; /* local ACK timeout is 4.096 us * 2^timeout; 0: none */
	uint8_t retry_cnt;
	uint8_t rnr_retry;      /* 7: without end */
	uint8_t path_mig_state; /* only 0, migrated, is supported */
};

struct qp_cap {
	uint32_t max_send_wr;
	uint32_t max_recv_wr;
	uint32_t max_send_sge;
	uint32_t max_recv_sge;
	uint32_t max_inline;
};

struct qp_init {
	enum qp_type type;
	struct pd *pd; /* this and the CQs: NULL of XRC_RECV */
	struct cq *send_cq;
	struct cq *recv_cq; /* NULL of XRC_SEND too */
	struct srq *srq;    /* or NULL */
	struct xrcd *xrcd;  /* of XRC_RECV, else NULL */
	struct qp_cap cap;  /* requested; the granted number is written back, never less */
	bool sq_sig_all;
	void *owner; /* returned in completions and events */
};
