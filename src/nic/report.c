/* SPDX-License-Identifier: BSD-2-Clause */
/* What the QPs of a nic are, do and where they lead, for people to look at. Nothing here changes anything. */
#include <string.h>

#include "nic/state.h"
#include "transport/look.h"
#include "wire/psn.h"

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

enum nic_spoken nic_spoken(const struct nic *nic, const struct qp *qp, const struct pair *pair)
{
	if (qp->ops->stream)
		return qp->iwarp ? NIC_SPEAKS_IWARP : NIC_SPEAKS_NOTHING;
	if (nic->tp.config.protocol == PROTOCOL_ROCEV1)
		return NIC_SPEAKS_ROCEV1;
	return qp_is_rocev2(qp) ? NIC_SPEAKS_ROCEV2 : pair ? NIC_SPEAKS_VEROCE : NIC_SPEAKS_NOTHING;
}

static void look(const struct nic *nic, const struct qp *qp, struct nic_qp_look *l)
{
	struct nic_congestion c = {0};
	struct qp_psns psns = {0};

	*l = (struct nic_qp_look){.rx_words = qp->rx_words, .tx_words = qp->tx_words};
	report(nic, qp, &l->is);
	qp->ops->query(qp, &psns);
	l->rq_psn = psns.rq_psn;
	l->sq_psn = psns.sq_psn;
	l->in_flight = (psns.sq_psn - psns.una) & PSN_MASK;
	l->send_wqes = qp_send_wqes(qp);
	l->protocol = (uint8_t)nic_spoken(nic, qp, psns.pair);
	l->paths =
		(uint8_t)(psns.pair ? psns.pair->path_count : l->is.way != NIC_WAY_NONE && l->is.way != NIC_WAY_EACH);
	if (!psns.pair && nic_qp_congestion(nic, qp, 0, &c))
		l->window_bytes = c.cwnd_bytes;
}

size_t nic_look_qps(const struct nic *nic, uint32_t *at, struct nic_qp_look *out, size_t max)
{
	size_t n = 0;

	for (uint32_t i = *at; i <= nic->qps_mask; i++) {
		size_t here = 0;

		for (const struct qp *qp = nic->qps[i]; qp; qp = qp->table_next)
			here++;
		/* A bucket is written whole, if it ever fits. */
		if (n + here > max && n) {
			*at = i;
			return n;
		}
		for (const struct qp *qp = nic->qps[i]; qp && n < max; qp = qp->table_next)
			look(nic, qp, &out[n++]);
	}
	*at = 0;
	return n;
}

static void look_at_path(const struct pair *pair, uint32_t i, struct nic_path_look *l)
{
	const struct path *p = &pair->own[i];
	uint64_t least_ns = pair->min_rtt_ns[i];

	*l = (struct nic_path_look){.srtt_ns = p->srtt_ns,
				    .min_rtt_ns = least_ns == UINT64_MAX ? 0 : least_ns,
				    .cwnd_bytes = p->cc.cwnd_bytes,
				    .rate_bps = p->cc.rate_bps,
				    .in_flight_bytes = p->sent_bytes - p->gone_bytes,
				    .sent_bytes = p->sent_bytes,
				    .lost_bytes = p->lost_bytes,
				    .marks = p->ce_seen,
				    .path = i,
				    .down = p->down,
				    .qps = pair->users};
	memcpy(l->src, pair->src, sizeof(l->src));
	memcpy(l->dst, pair->dst, sizeof(l->dst));
}

size_t nic_look_paths(struct nic *nic, struct nic_path_look *out, size_t max)
{
	const struct pair *pair = NULL;
	uint32_t bucket = 0;
	size_t n = 0;

	while ((pair = transport_next_pair(&nic->tp, &bucket, pair)))
		for (uint32_t i = 0; pair->own && pair->users && i < pair->path_count && n < max; i++)
			if (pair->own[i].sent_bytes)
				look_at_path(pair, i, &out[n++]);
	return n;
}

uint64_t nic_qp_changes(const struct nic *nic)
{
	return nic->tp.qp_changes;
}
