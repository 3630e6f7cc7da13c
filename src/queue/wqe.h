/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The send and receive work queue element, common to every engine: what verbs writes at post time,
 * and the few fields in which a requester keeps its place.
 */
#pragma once

#include <stdint.h>

#include "base/pkt.h"

/* The numbers of enum ibv_wr_opcode. */
enum wr_opcode {
	WR_WRITE = 0,
	WR_WRITE_IMM = 1,
	WR_SEND = 2,
	WR_SEND_IMM = 3,
	WR_READ = 4,
	WR_CMP_SWAP = 5,
	WR_FETCH_ADD = 6,
	WR_LOCAL_INV = 7,
	WR_BIND_MW = 8,
	WR_SEND_INV = 9,
	WR_FLUSH = 14,
	WR_ATOMIC_WRITE = 15,
	WR_OPCODE_COUNT = 16
};

/* The numbers of enum ibv_send_flags. */
enum wr_flags {
	WR_FENCE = 1 << 0,
	WR_SIGNALED = 1 << 1,
	WR_SOLICITED = 1 << 2,
	WR_INLINE = 1 << 3,
	WR_FAILS = 1 << 7, /* ours: of a local request that completes with the status in rkey (faults on command) */
};

/* Same layout as struct sge of mem/ and struct ibv_sge; queue/ does not look inside. */
struct wqe_sge {
	uint64_t addr;
	uint32_t len;
	uint32_t lkey;
};

enum { ATOMIC_WRITE_BYTES = 8 };

struct send_wqe {
	/* written at post */
	uint64_t wr_id;
	uint8_t opcode; /* enum wr_opcode */
	uint8_t flags;  /* enum wr_flags; WR_SIGNALED is set here for sq_sig_all QPs too */
	uint16_t num_sge;
	uint32_t length;     /* message bytes: the SGEs' sum or the inline bytes */
	uint32_t imm_or_key; /* immediate as the 32 bits the program gave, host order of the wire's big-endian value; or
				the R_Key to invalidate */
	uint32_t rkey;
	uint64_t remote_va;
	union {
		struct {
			union {
				struct {
					uint64_t compare_add;
					uint64_t swap;
				} atomic;
				struct {
					uint32_t bytes;                 /* `length` is 0: none of them travels */
					uint8_t placement, selectivity; /* as in the FETH */
				} flush;
			};
			uint32_t srqn; /* XRC: the peer's SRQ, in any request */
		};
		struct {
			struct flow flow; /* copied from the address handle */
			uint32_t dqpn;
			uint32_t qkey; /* the WR's; bit 31 set: use the QP's (IBTA 10.2.5) */
		} ud;
		struct wqe_bind {
			uint64_t addr;
			uint64_t length;
			uint32_t handle;
			uint32_t lkey;
			uint32_t access;
		} bind; /* BIND_MW: as struct mw_binding, whose rkey is the WQE's */
	};

	/* requester's own, meaningless before the WQE is first sent */
	uint32_t psn_first;
	uint32_t psn_last;
	uint32_t packets; /* 0: not yet started */
	uint32_t msn;     /* veRoCE */
	uint32_t number;  /* veRoCE: RQMSN of a SEND, response MSN of a READ or atomic */
	uint8_t done; /* READ, atomic and others with a response: all of it is in memory; BIND_MW, LOCAL_INV: it is done */

	/* num_sge elements, or `length` inline bytes; there is room for ATOMIC_WRITE_BYTES in any queue */
	struct wqe_sge sge[];
};

static inline uint8_t *send_wqe_inline(struct send_wqe *w)
{
	return (uint8_t *)w->sge;
}

struct recv_wqe {
	uint64_t wr_id;
	uint32_t num_sge;
	uint32_t index;  /* the slot's own number, for rq_release() */
	uint64_t length; /* sum of the SGEs */
	struct wqe_sge sge[];
};
