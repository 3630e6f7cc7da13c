/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The life cycle of a QP (qp.h): which states follow which, and what holds in each between two events. A program's own
 * moves, and the attributes that they need, are the stricter table of nic/qp_state.c.
 */
#include <assert.h>
#include <stddef.h>

#include "transport/qp.h"
#include "transport/veroce/state.h"

#define TO(state) (1u << QPS_##state)

/* Facts about a QP, one bit each. */
enum fact {
	IN_FLIGHT = 1 << 0,     /* WQEs that have begun and are not complete */
	HAS_TIMER = 1 << 1,     /* a timer runs */
	HAS_HELD_ACK = 1 << 2,  /* an acknowledgement waits for company */
	HAS_FAILED = 1 << 3,    /* a WQE will fail once those before it are complete */
	IS_DRAINING = 1 << 4,   /* sq_draining */
	HAS_CONNECTION = 1 << 5 /* struct veroce */
};

/* clang-format off */
static const struct {
	uint8_t next; /* other than RESET and ERR, which may follow every state */
	uint8_t may;
} states[QPS_COUNT] = {
	[QPS_RESET] = { TO(INIT), 0 },
	[QPS_INIT]  = { TO(INIT) | TO(RTR), 0 },
	[QPS_RTR]   = { TO(RTS), HAS_TIMER | HAS_HELD_ACK | HAS_CONNECTION },
	[QPS_RTS]   = { TO(RTS) | TO(SQD) | TO(SQE),
			IN_FLIGHT | HAS_TIMER | HAS_HELD_ACK | HAS_FAILED | HAS_CONNECTION },
	[QPS_SQD]   = { TO(SQD) | TO(RTS) | TO(SQE),
			IN_FLIGHT | HAS_TIMER | HAS_HELD_ACK | HAS_FAILED | IS_DRAINING | HAS_CONNECTION },
	[QPS_SQE]   = { TO(RTS), HAS_HELD_ACK },
	[QPS_ERR]   = { 0, IS_DRAINING | HAS_CONNECTION },
};
/* clang-format on */

void qp_move(struct qp *qp, enum qp_state to)
{
	assert(to == QPS_RESET || to == QPS_ERR || states[qp_get_state(qp)].next >> to & 1);
	/* Posters read the state without a lock: one that sees the old state has posted early enough to be flushed. */
	atomic_store_explicit(&qp->state, (uint8_t)to, memory_order_seq_cst);
}

static unsigned facts(const struct qp *qp)
{
	return (qp->sq.una != qp->sq.next ? IN_FLIGHT : 0u) | (timer_is_set(&qp->timer) ? HAS_TIMER : 0u) |
	       (!list_empty(&qp->held) ? HAS_HELD_ACK : 0u) | (qp->failed ? HAS_FAILED : 0u) |
	       (qp->sq_draining ? IS_DRAINING : 0u) | (qp->veroce ? HAS_CONNECTION : 0u);
}

const char *qp_fault(const struct transport *tp, const struct qp *qp)
{
	enum qp_state state = qp_get_state(qp);
	uint32_t posted = sq_head(&qp->sq) - qp->sq.una;
	bool unconnected = state == QPS_RESET || state == QPS_INIT;

	MUST(state != QPS_SQE || qp->type == QPT_UC || qp->type == QPT_UD);
	MUST(!(facts(qp) & ~states[state].may));
	MUST(posted <= qp->sq.capacity);
	MUST(qp->sq.next - qp->sq.una <= posted);
	MUST(!qp->failed || qp->failed_wqe - qp->sq.una < posted);
	MUST(!qp->answering || !list_empty(&qp->active));
	/* A QP has the state of a connection from INIT to RTR on. */
	MUST(!unconnected || (!qp->gbn && !qp->veroce));
	MUST(unconnected || state == QPS_ERR || (qp->type == QPT_RC ? qp->veroce != NULL : qp->gbn != NULL));
	return qp->veroce && !qp->ops->stream ? veroce_fault(tp, qp) : NULL;
}

void qp_check(const struct transport *tp, const struct qp *qp)
{
	const char *fault = qp_fault(tp, qp);

	if (fault)
		__assert_fail(fault, __FILE__, __LINE__, __func__);
}
