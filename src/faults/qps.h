/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The queue pairs that rules know, found by QPN, and by the peer's address and QPN, for a packet that leaves does not name
 * its sender. A record has an index, which is its own as long as the QP lives. Private to src/faults.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/alloc.h"
#include "faults/log.h"

enum { QPS_BUCKETS = 4096, NO_QP = -1 };

struct fault_qp {
	uint32_t number; /* 0: unused */
	uint32_t qpn, dest_qpn;
	uint8_t peer[16];
	int32_t next_by_qpn, next_by_peer; /* in a bucket; of an unused one, next_by_qpn is the next unused one */
	bool has_peer, hung;
	bool psn_known[2];
	uint32_t psn_high[2];
	uint32_t status; /* of its next request; 0: none */
	uint32_t status_rule;
	uint32_t counts[FAULT_RULES_MAX];
};

struct qps {
	struct fault_qp *at;
	uint32_t room;
	uint32_t used;  /* records that were ever used */
	int32_t unused; /* the first of them that is free; NO_QP: none */
	uint32_t live;
	int32_t by_qpn[QPS_BUCKETS], by_peer[QPS_BUCKETS];
};

/* Empty; and back to that, with the memory given back. */
void qps_init(struct qps *);
void qps_fini(struct qps *, const struct alloc *);

/* Each gives an index, or NO_QP. */
int32_t qps_find(const struct qps *, uint32_t qpn);
int32_t qps_find_peer(const struct qps *, const uint8_t peer[16], uint32_t dest_qpn);
int32_t qps_find_number(const struct qps *, uint32_t number);
int32_t qps_nth(const struct qps *, uint64_t n); /* of those that live, from 0 on */
int32_t qps_next(const struct qps *, int32_t i); /* the first one that lives, from that index on */
/* Without memory nothing is added. */
void qps_add(struct qps *, const struct alloc *, uint32_t number, uint32_t qpn);
void qps_set_peer(struct qps *, int32_t i, const uint8_t peer[16], uint32_t dest_qpn);
void qps_remove(struct qps *, int32_t i);
