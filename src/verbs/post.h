/* SPDX-License-Identifier: BSD-2-Clause */
/* What ibv_post_send() and the builder of post_ex.c share. Return 0 or an errno value. Private to src/verbs. */
#pragma once

#include "verbs/objects.h"

#define SEND_FLAGS_KNOWN (IBV_SEND_FENCE | IBV_SEND_SIGNALED | IBV_SEND_SOLICITED | IBV_SEND_INLINE)

/* What may be posted to a send queue of that type of queue pair of that device. */
uint32_t post_ops(struct ibv_context *, enum ibv_qp_type);
bool qp_may_send(const struct abi_qp *);
int send_wqe_sges(struct send_wqe *, const struct sq *, const struct ibv_sge *, size_t count);
int send_wqe_address(struct send_wqe *, const struct abi_qp *, struct ibv_ah *, uint32_t qpn, uint32_t qkey);

/* A request that is described becomes one that completes with that status, when all before it are complete. */
static inline void send_wqe_fail(struct send_wqe *w, uint32_t status)
{
	w->opcode = WR_LOCAL_INV;
	w->flags = WR_FAILS | WR_SIGNALED;
	w->rkey = status;
	w->num_sge = 0;
}

/* mw.c: the part of a BIND_MW request that is its own. The window's public struct has the new R_Key from then on. */
struct bind {
	enum ibv_mw_type type; /* that the window must be of */
	struct ibv_mw *mw;
	uint32_t rkey;
	const struct ibv_mw_bind_info *info;
};

/* Makes a WQE that binds a memory window. 0 or an errno. */
int send_wqe_bind(struct send_wqe *, const struct abi_qp *, const struct bind *);
/* post.c: ibv_post_send() of one BIND_MW request, for a window of type 1. */
int post_bind(struct ibv_qp *, const struct ibv_send_wr *);
