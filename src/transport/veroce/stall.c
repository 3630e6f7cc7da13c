/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * When a peer process last ran, as far as its answers prove it. Its socket is a queue: a process that has read one
 * packet has read all that were sent before. It may lose the processor between reading and acknowledging, so one proof
 * is not enough. A second proof, of a packet that was sent a while after the first proof arrived, shows that it ran on.
 */
#include "transport/veroce/stall.h"

#include "transport/veroce/work.h"

/* All in terms of the shortest tail probe timeout: 2 ms where there are processes. */
enum {
	RUN_SHIFT = 2,      /* a fourth of it: the peer ran on for at least as long; acknowledgements wait for less */
	LEAD_SHIFT = 1,     /* half of it: the peer is asked as long before a timer is due */
	ASKS_SHIFT_MAX = 4, /* doublings of the time between questions, which is half of it at first */
	DOUBTS = 6,         /* questions without an answer after which the peer may be dead */
	FORCE = 64,         /* after so many one QP acts without proof */
	ALL_FORCE = 512,    /* ... and after so many all QPs act at once, not one at a time */
};

/* A later answer does not count: time stamps have 32 bits. */
enum { ANSWER_NS_MAX = 1 << 30 };

bool stall_matters(const struct transport *tp, const struct qp *qp)
{
	return qp->peer->local && tp->config.patience_ns;
}

void stall_read(const struct transport *tp, struct pair *pair, uint64_t tx_ns, uint64_t now_ns)
{
	struct stall *st = &pair->stall;
	uint64_t run_ns = tp->config.veroce.pto_ns_min >> RUN_SHIFT;

	st->asks = 0;
	if (st->ask_ns > now_ns + run_ns)
		st->ask_ns = now_ns + run_ns;
	if (tx_ns < st->told_ns + run_ns)
		return;
	st->ran_ns = st->read_ns;
	st->read_ns = tx_ns;
	st->told_ns = now_ns;
	st->ask_ns = now_ns + run_ns;
}

bool stall_answered(const struct transport *tp, struct pair *pair, uint32_t tx1, uint64_t now_ns)
{
	uint64_t asked_ns = pair->stall.asked_ns;
	uint32_t before_ns = (uint32_t)asked_ns - tx1;

	if (!asked_ns || before_ns > ANSWER_NS_MAX)
		return false;
	stall_read(tp, pair, asked_ns - before_ns, now_ns);
	return true;
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
