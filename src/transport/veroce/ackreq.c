/* SPDX-License-Identifier: BSD-2-Clause */
/* How often a sender asks for acknowledgements. */
#include "transport/veroce/ackreq.h"

#include "transport/request.h"

static const uint64_t asks_ns = 10000000;

/*
 * Many QPs that share the windows of a pair, or one with a small joint window, have few packets under way each, too few
 * for a receiver to acknowledge them without AckReq; and one QP waits for the acknowledgement of another. With AckReq in
 * every packet no QP waits any more, so the pair counts as full for a while longer (our choice).
 */
static bool is_full_and_scarce(const struct qp *qp, uint64_t now_ns)
{
	const struct pair *pair = qp->veroce->pair;

	return pair->scarce && !qp->peer->local && pair->full_ns && now_ns - pair->full_ns <= asks_ns;
}

/*
 * Whether the network itself holds more than half of what may be in flight: then the pair would wait for
 * acknowledgements that come for half of its window each. The network's part of the bytes in flight is the part that
 * the least round trip is of the present one, which has queues in it.
 */
static bool network_holds_half(const struct pair *pair, uint32_t path)
{
	uint64_t min_us = pair->min_rtt_ns[path] / 1000, us = pair->srtt_ns / 1000;

	return pair->min_rtt_ns[path] == UINT64_MAX || 2 * pair_flying(pair) * min_us > pair->window_bytes * us;
}

/*
 * A receiver that acknowledges rarely (work.h) waits for AckReq. The sender therefore sets it at least twice a window,
 * lest the path stand still meanwhile, and more often where an acknowledgement is waited for or was lost, as packets
 * were: a packet with AckReq is answered at once with all that has arrived.
 */
void ackreq_fit(const struct qp *qp, struct sender *s, int path, uint64_t now_ns)
{
	struct pair *pair = qp->veroce->pair;
	uint32_t n = s->ackreq_packets;

	pair->asks = is_full_and_scarce(qp, now_ns);
	if (path == PAIR_NO_PATH)
		return;
	if (n > VEROCE_ACKREQ_PACKETS) {
		if (s->calm < VEROCE_CALM_PACKETS || (!qp->peer->local && network_holds_half(pair, (uint32_t)path)))
			n = VEROCE_ACKREQ_PACKETS;
		while (n > 1 && 2ull * n * qp->veroce->mtu > pair->path[path].cc.cwnd_bytes)
			n /= 2;
	}
	s->ackreq_now = n;
}

bool ackreq_is_covered(const struct transport *tp, const struct qp *qp, uint32_t index)
{
	const struct send_wqe *w = sq_at(&qp->sq, index), *next = sq_at(&qp->sq, index + 1);
	uint32_t behind = sq_head(&qp->sq) - index - 1, apart = qp->veroce->w->q.ackreq_now;

	return apart > VEROCE_ACKREQ_PACKETS && behind && (uint64_t)behind * w->packets >= apart &&
	       !peer_is_near(qp->peer) && !(next->flags & WR_FENCE) && !request_is_local(next) &&
	       !request_has_response(next) && !tp->config.veroce.fence_indicator;
}
