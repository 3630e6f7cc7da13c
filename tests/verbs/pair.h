/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two queue pairs of one process, connected over the loopback address, for tests that see only the
 * public API. A step that must not fail fails the test.
 */
#pragma once

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include <infiniband/verbs.h>

enum { A, B, SIDES, PORT = 1, QKEY = 0x11111111, GRH_BYTES = 40, BUF_BYTES = 1 << 20 };

/* Of rdma-core 45 and later. */
enum { ACCESS_FLUSH_GLOBAL = 1 << 8, ACCESS_FLUSH_PERSISTENT = 1 << 9, QP_EX_WITH_FLUSH = 1 << 11, WC_FLUSH = 8 };
enum { FLUSH_GLOBAL = 1 << 0, FLUSH_PERSISTENT = 1 << 1, FLUSH_RANGE = 0, FLUSH_MR = 1 };

enum {
	ACCESS_ALL = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
		     IBV_ACCESS_REMOTE_ATOMIC | ACCESS_FLUSH_GLOBAL
};

/* ibv_wr_flush(): its pointer lies behind those that older headers have. */
static inline void wr_flush(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t remote_addr, size_t len, uint8_t type,
			    uint8_t level)
{
	void (*call)(struct ibv_qp_ex *, uint32_t, uint64_t, size_t, uint8_t, uint8_t);

	memcpy(&call, (uint8_t *)qp + 352, sizeof(call));
	call(qp, rkey, remote_addr, len, type, level);
}

/* How a pair differs from the default: RC, 64 WRs, 4 SGEs, 256 inline bytes, MTU 1024. */
struct wishes {
	enum ibv_qp_type type;
	bool all_signaled;
	bool with_channel;
	bool with_srq;    /* B receives from an SRQ */
	bool extended;    /* CQs and QPs by the extended verbs */
	bool unconnected; /* leave the QPs in RESET */
	uint32_t max_wr;
	uint32_t cqe;
	uint32_t qp_access; /* of B; 0: everything */
	uint32_t psn;
	enum ibv_mtu mtu;
	uint8_t retry_cnt_given, retry_cnt;
	uint8_t rnr_retry_given, rnr_retry;
	uint8_t timeout;
};

struct side {
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	struct ibv_cq_ex *cq_ex;
	struct ibv_qp *qp;
	struct ibv_qp_ex *qp_ex;
	struct ibv_srq *srq;
	struct ibv_mr *mr;
	uint8_t *buf;
	struct ibv_ah *ah; /* UD: to the other side */
};

struct pair {
	struct wishes wish;
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	int gid_index;
	union ibv_gid gid;
	struct side side[SIDES];
};

struct ibv_context *device_open(void);
/* The index of ::ffff:127.0.0.1, or of the first GID. */
int gid_pick(struct ibv_context *, union ibv_gid *);

/* Returns it. */
struct pair *pair_make(struct pair *, struct wishes);
void pair_connect(struct pair *);
void pair_destroy(struct pair *);

/* A test (support/test.h) of `p`, a pair with those wishes. */
#define PAIR_TEST(name, ...) \
	TEST_OF(name, struct pair *, p, pair_make(&(struct pair){0}, (struct wishes){__VA_ARGS__}), pair_destroy(p))

struct ibv_ah_attr pair_ah_attr(const struct pair *);
/* One step of a QP towards RTS; the errno value. */
int step_init(struct pair *, int side);
int step_rtr(struct pair *, int side);
int step_rts(struct pair *, int side);
int state_set(struct ibv_qp *, enum ibv_qp_state);

/* An SGE inside the side's registered buffer. */
struct ibv_sge sge_at(const struct pair *, int side, size_t offset, uint32_t length);
/* Posts one receive of the whole range; wr_id as given. */
void recv_post(struct pair *, int side, uint64_t wr_id, size_t offset, uint32_t length);
/* The next completion within five seconds. */
struct ibv_wc wc_await(struct ibv_cq *);
/* None comes within some milliseconds. */
void wc_none(struct ibv_cq *, int ms);
/* The buffer's byte at offset i, for side and seed. */
void pattern_fill(uint8_t *, size_t len, unsigned int seed);
void pattern_check(const uint8_t *, size_t len, unsigned int seed);
