/* SPDX-License-Identifier: BSD-2-Clause */
/* What a device does when it is told to fail: by the same ways as when it fails by itself. */
#include "nic/state.h"
#include "transport/request.h"

bool nic_qp_fail(struct nic *nic, struct qp *qp, enum wc_status status, uint64_t now_ns)
{
	if (qp->sq.una == sq_head(&qp->sq) || qp_get_state(qp) == QPS_ERR)
		return false;
	request_fail_in_turn(&nic->tp, qp, qp->sq.una, status, now_ns);
	return true;
}

void nic_qp_break(struct nic *nic, struct qp *qp, uint64_t now_ns)
{
	if (qp_get_state(qp) == QPS_ERR)
		return;
	qp_raise(&nic->tp, qp, EVENT_QP_FATAL);
	qp_to_error(&nic->tp, qp, now_ns);
}

void nic_break_all(struct nic *nic, uint64_t now_ns)
{
	for (uint32_t i = 0; i <= nic->qps_mask; i++)
		for (struct qp *qp = nic->qps[i]; qp; qp = qp->table_next)
			qp_to_error(&nic->tp, qp, now_ns);
}

bool nic_qp_overflow(struct nic *nic, struct qp *qp)
{
	struct cq *cq = qp->send_cq;

	if (!cq || cq->overrun)
		return false;
	cq->overrun = true;
	event_raise(&nic->tp.events, &cq->event, EVENT_CQ_ERR);
	return true;
}

/* Its timer goes round in nic_expire() meanwhile; then it finds what became due. */
void nic_qp_hang(struct nic *nic, struct qp *qp, bool hang, uint64_t now_ns)
{
	qp->hangs = hang;
	nic_qp_mute(nic, qp, hang);
	if (!hang && timer_is_set(&qp->timer))
		timer_set(&nic->tp.timers, &qp->timer, now_ns);
}

void nic_set_train_max(struct nic *nic, uint16_t train_max)
{
	nic->tp.tx.train_max = train_max;
}
