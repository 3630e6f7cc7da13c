/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A nic that will be silent: what its peers are asked, and how long those wait that nobody can ask. And one that goes on
 * under another address.
 */
#include <assert.h>
#include <string.h>

#include "nic/state.h"
#include "wire/holdeth.h"

static_assert((int)NIC_HOLD_MS_MAX == (int)HOLD_MS_MAX, "what the wire has room for");

static bool has_peer(const struct qp *qp)
{
	enum qp_state state = qp_get_state(qp);

	return state == QPS_RTR || state == QPS_RTS || state == QPS_SQD;
}

static void change(struct nic *nic, uint16_t ms, uint32_t expected_ms)
{
	struct transport *tp = &nic->tp;

	tp->hold_ms = ms;
	tp->hold_number++;
	if (!tp->hold_number)
		tp->hold_number++;
	tp->hold_awaited = 0;
	for (uint32_t i = 0; i <= nic->qps_mask; i++)
		for (struct qp *qp = nic->qps[i]; qp; qp = qp->table_next)
			if (qp->ops->hold && has_peer(qp))
				tp->hold_awaited += qp->ops->hold(tp, qp, expected_ms);
}

void nic_hold(struct nic *nic, uint32_t most_ms, uint32_t expected_ms)
{
	change(nic, (uint16_t)(most_ms < HOLD_MS_MAX ? most_ms : HOLD_MS_MAX), expected_ms);
}

uint32_t nic_hold_awaits(const struct nic *nic)
{
	return nic->tp.hold_awaited;
}

void nic_resume(struct nic *nic)
{
	change(nic, 0, 0);
}

/* ---- another address ---- */

static bool is_among(const uint8_t gid[16], const struct nic_gid *gids, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		if (!memcmp(gids[i].raw, gid, sizeof(gids[i].raw)))
			return true;
	return false;
}

bool nic_may_roam(const struct nic *nic, const uint8_t gid[16], const struct nic_gid *there, uint32_t there_count,
		  uint32_t *qpn)
{
	for (uint32_t i = 0; i <= nic->qps_mask; i++)
		for (const struct qp *qp = nic->qps[i]; qp; qp = qp->table_next) {
			if (qp->ops->datagram || !has_peer(qp) || memcmp(qp->flow.src, gid, sizeof(qp->flow.src)) ||
			    (qp->ops->may_roam && qp->ops->may_roam(qp) && !is_among(qp->flow.dst, there, there_count)))
				continue;
			*qpn = qp->qpn;
			return false;
		}
	return true;
}

void nic_roam(struct nic *nic, const uint8_t from[16], const uint8_t to[16], uint64_t now_ns)
{
	nic->tp.roam_number++;
	for (uint32_t i = 0; i <= nic->qps_mask; i++)
		for (struct qp *qp = nic->qps[i]; qp; qp = qp->table_next) {
			if (qp->ops->datagram || !has_peer(qp) || memcmp(qp->flow.src, from, sizeof(qp->flow.src)) ||
			    !qp->ops->may_roam || !qp->ops->may_roam(qp))
				continue;
			if (qp->ops->roam(&nic->tp, qp, to, now_ns)) {
				qp_raise(&nic->tp, qp, EVENT_QP_FATAL);
				qp_to_error(&nic->tp, qp, now_ns);
			}
			qp_find_peer(nic, qp);
			qp_checked(&nic->tp, qp);
		}
}

static uint64_t patience_ns(const struct qp *qp)
{
	uint64_t ns = qp_peer_patience_ns(qp);

	if (ns != UINT64_MAX && qp->ops->peer_waits && qp->ops->peer_waits(qp))
		ns += HOLD_MS_MAX * UINT64_C(1000000);
	return ns;
}

bool nic_patience(const struct nic *nic, struct nic_patience *out)
{
	const struct qp *least = NULL;
	struct qp_psns psns = {0};

	for (uint32_t i = 0; i <= nic->qps_mask; i++)
		for (const struct qp *qp = nic->qps[i]; qp; qp = qp->table_next)
			if (qp->ops->reliable && !qp->ops->stream && has_peer(qp) && !qp->peer->local &&
			    patience_ns(qp) < (least ? patience_ns(least) : UINT64_MAX))
				least = qp;
	if (!least)
		return false;
	least->ops->query(least, &psns);
	*out = (struct nic_patience){
		.ns = patience_ns(least), .qpn = least->qpn, .protocol = (uint8_t)nic_spoken(nic, least, psns.pair)};
	return true;
}
