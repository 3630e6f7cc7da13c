/* SPDX-License-Identifier: BSD-2-Clause */
/* See read_onlys.h. */
#include "transport/rocev2/read_onlys.h"

enum {
	BYTES_MAX = 16 << 10,
	PACKETS_MIN = 3,        /* a First and a Last are of one length */
	RD_ATOMIC_MIN = 16,
	ROUND_TRIPS = 16,       /* the least of so many is judged */
	WHOLE_READS = 64 << 10, /* before it is tried again */
	READ_NS = 8000, /* what two datagrams take, those of a whole READ, besides its bytes */
	BYTES_A_NS = 4
};

static bool is_short(const struct send_wqe *w)
{
	return w->length <= BYTES_MAX && w->packets >= PACKETS_MIN;
}

bool read_onlys_suit(const struct transport *tp, const struct qp *qp, const struct send_wqe *w)
{
	return is_short(w) && w->length <= tp->config.rocev2.only_bytes && qp->max_rd_atomic >= RD_ATOMIC_MIN &&
	       !qp->gbn->req.onlys.whole_left;
}

void read_onlys_sent(struct qp *qp, const struct send_wqe *w, uint32_t psn, uint64_t now_ns)
{
	struct read_onlys *r = &qp->gbn->req.onlys;

	if (!is_short(w))
		return;
	if (r->whole_left) {
		r->whole_left--;
	} else if (!r->timed_ns) {
		r->timed_ns = now_ns;
		r->timed_psn = psn;
	}
}

void read_onlys_came(struct qp *qp, uint32_t psn, uint32_t bytes, uint64_t now_ns)
{
	struct read_onlys *r = &qp->gbn->req.onlys;

	if (!r->timed_ns || psn != r->timed_psn)
		return;
	if (!r->round_trips || now_ns - r->timed_ns < r->least_ns)
		r->least_ns = now_ns - r->timed_ns;
	r->timed_ns = 0;
	if (++r->round_trips < ROUND_TRIPS)
		return;
	r->round_trips = 0;
	/* A round trip brings max_rd_atomic packets. Whole READs would bring as many bytes in less time. */
	if (r->least_ns * bytes > (uint64_t)qp->max_rd_atomic * qp->mtu * (READ_NS + bytes / BYTES_A_NS))
		r->whole_left = WHOLE_READS;
}

void read_onlys_again(struct qp *qp)
{
	qp->gbn->req.onlys.timed_ns = 0;
}
