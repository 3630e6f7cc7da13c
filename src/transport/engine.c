/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The engine that a QP begins with. RC's only waits for a peer: the protocol is chosen when the QP has one.
 */
#include "transport/archive.h"
#include "transport/qp.h"
#include "transport/xrc.h"
#include "transport/veroce/engine.h"

static void start(struct transport *tp, struct qp *qp, uint64_t now_ns)
{
}

static void reset(struct transport *tp, struct qp *qp)
{
}

static void input(struct transport *tp, struct qp *qp, const struct rx *rx)
{
	tp->counters.rx_wrong_source++;
}

static bool output(struct transport *tp, struct qp *qp, uint64_t now_ns)
{
	if (qp_get_state(qp) == QPS_ERR)
		qp_flush(tp, qp, now_ns);
	return false;
}

static void query(const struct qp *qp, struct qp_psns *psns)
{
	*psns = (struct qp_psns){.rq_psn = qp->rq_psn, .sq_psn = qp->sq_psn, .una = qp->sq_psn};
}

static const struct qp_ops rc_alone_ops = {
	.service = SVC_RC,
	.reliable = true,
	.multipath = true,
	.connect = veroce_connect,
	.start = start,
	.reset = reset,
	.seal = &seal_icrc,
	.input = input,
	.output = output,
	.expire = start,
	.query = query,
	.archive = veroce_archive,
};

const struct qp_ops *qp_engine(enum qp_type type)
{
	static const struct qp_ops *const engines[] = {[QPT_RC] = &rc_alone_ops,
						       [QPT_UC] = &uc_ops,
						       [QPT_UD] = &ud_ops,
						       [QPT_XRC_SEND] = &xrc_send_ops,
						       [QPT_XRC_RECV] = &xrc_recv_ops};

	return (unsigned)type < sizeof(engines) / sizeof(*engines) ? engines[type] : NULL;
}
