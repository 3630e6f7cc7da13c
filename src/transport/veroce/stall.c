/* SPDX-License-Identifier: BSD-2-Clause */
/* When a timer waits for a peer process that may not have run. */
#include "transport/veroce/stall.h"

#include "transport/veroce/work.h"

/* All in terms of the shortest tail probe timeout: 2 ms where there are processes. */
enum {
	LEAD_SHIFT = 1,     /* half of it: the peer is asked as long before a timer is due */
	ASKS_SHIFT_MAX = 4, /* doublings of the time between questions, which is half of it at first */
	DOUBTS = 6,         /* questions without an answer after which the peer may be dead */
	FORCE = 64,         /* after so many one QP acts without proof */
	ALL_FORCE = 512,    /* ... and after so many all QPs act at once, not one at a time */
};

bool stall_matters(const struct transport *tp, const struct qp *qp)
{
	return qp->peer->local && tp->config.patience_ns;
}

bool stall_is_over(const struct transport *tp, const struct qp *qp, uint64_t since_ns)
{
	return !stall_matters(tp, qp) || qp->veroce->pair->stall.ran_ns > since_ns;
}

uint64_t stall_deadline(const struct transport *tp, const struct qp *qp, uint64_t since_ns, uint64_t due_ns)
{
	uint64_t lead_ns = tp->config.veroce.pto_ns_min >> LEAD_SHIFT, ask_ns = qp->veroce->pair->stall.ask_ns;

	if (stall_is_over(tp, qp, since_ns))
		return due_ns;
	return ask_ns > due_ns - lead_ns ? ask_ns : due_ns - lead_ns;
}

static void ask(struct transport *tp, struct qp *qp, uint64_t now_ns)
{
	struct stall *st = &qp->veroce->pair->stall;
	uint8_t shift = st->asks < ASKS_SHIFT_MAX ? st->asks : ASKS_SHIFT_MAX;

	if (!st->asks)
		st->silent_ns = now_ns;
	if (st->asks < UINT8_MAX)
		st->asks++;
	if (st->asks >= DOUBTS)
		patience_doubt(tp, qp);
	st->ask_ns = now_ns + ((tp->config.veroce.pto_ns_min >> LEAD_SHIFT) << shift);
	qp->veroce->w->stall_ask = true;
	qp_activate(tp, qp);
}

bool stall_holds(struct transport *tp, struct qp *qp, uint64_t since_ns, uint64_t due_ns, uint64_t now_ns)
{
	struct stall *st = &qp->veroce->pair->stall;

	if (stall_is_over(tp, qp, since_ns) || patience_is_over(qp, now_ns))
		return now_ns < due_ns;
	if (now_ns >= stall_deadline(tp, qp, since_ns, due_ns))
		ask(tp, qp, now_ns);
	if (st->forced_ns > since_ns && now_ns - st->silent_ns < ALL_FORCE * tp->config.veroce.pto_ns_min)
		since_ns = st->forced_ns;
	if (now_ns < due_ns || now_ns - since_ns < FORCE * tp->config.veroce.pto_ns_min)
		return true;
	st->forced_ns = now_ns;
	return false;
}
