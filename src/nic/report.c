/* SPDX-License-Identifier: BSD-2-Clause */
/* What the QPs of a nic are and where they lead, for people to look at. Nothing here changes anything. */
#include <string.h>

#include "nic/state.h"

static enum nic_way way_of(const struct nic *nic, const struct qp *qp)
{
	enum qp_state state = qp_get_state(qp);

	if (qp->ops->stream)
		return qp->iwarp ? NIC_WAY_STREAM : NIC_WAY_NONE;
	if (qp->ops->datagram)
		return NIC_WAY_EACH;
	if (state == QPS_RESET || state == QPS_INIT || !qp->av.is_global)
		return NIC_WAY_NONE;
	return peer_is_near(qp->peer) ? NIC_WAY_MEMORY : NIC_WAY_PACKETS;
}

static void report(const struct nic *nic, const struct qp *qp, struct nic_qp_report *r)
{
	enum nic_way way = way_of(nic, qp);

	*r = (struct nic_qp_report){
		.qpn = qp->qpn, .type = qp->type, .state = (uint8_t)qp_get_state(qp), .way = (uint8_t)way};
	if (way == NIC_WAY_NONE || qp->ops->datagram)
		return;
	memcpy(r->peer, qp->flow.dst, sizeof(r->peer));
	r->dest_qpn = way == NIC_WAY_STREAM ? 0 : qp->dest_qpn;
}

size_t nic_report_qps(const struct nic *nic, struct nic_qp_report *out, size_t max)
{
	size_t n = 0;

	for (uint32_t i = 0; i <= nic->qps_mask && n < max; i++)
		for (const struct qp *qp = nic->qps[i]; qp && n < max; qp = qp->table_next)
			report(nic, qp, &out[n++]);
	return n;
}

uint64_t nic_qp_changes(const struct nic *nic)
{
	return nic->tp.qp_changes;
}
