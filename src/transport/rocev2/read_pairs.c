/* SPDX-License-Identifier: BSD-2-Clause */
/* See read_pairs.h. */
#include "transport/rocev2/read_pairs.h"

enum {
	PACKETS_MIN = 3,  /* fewer are a pair anyway */
	PACKETS_MAX = 32, /* of more the Middles fill half a train */
	RD_ATOMIC_MIN = 8,
	ROUND_TRIPS = 16, /* the least of so many is judged */
	/* READs before pairs are tried again, and twice as many each time that they are too slow again. */
	WHOLE_READS_MIN = 1 << 10,
	WHOLE_READS_MAX = 64 << 10,
	READ_NS = 6000, /* what two datagrams take, those of a whole READ, besides its bytes */
	BYTES_A_NS = 4
};

static bool is_short(const struct send_wqe *w)
{
	return w->packets >= PACKETS_MIN && w->packets <= PACKETS_MAX;
}

bool read_pairs_suit(const struct transport *tp, const struct qp *qp, const struct send_wqe *w)
{
	return is_short(w) && w->length <= tp->config.rocev2.only_bytes && qp->max_rd_atomic >= RD_ATOMIC_MIN &&
	       !qp->gbn->req.pairs.whole_left;
}

void read_pairs_sent(struct qp *qp, const struct send_wqe *w, uint32_t psn, uint64_t now_ns)
{
	struct read_pairs *r = &qp->gbn->req.pairs;

	if (!is_short(w))
		return;
	if (r->whole_left) {
		r->whole_left--;
	} else if (!r->timed_ns) {
		r->timed_ns = now_ns;
		r->timed_psn = psn;
	}
}

void read_pairs_came(struct qp *qp, uint32_t psn, uint32_t bytes, uint64_t now_ns)
{
	struct read_pairs *r = &qp->gbn->req.pairs;

	if (!r->timed_ns || psn != r->timed_psn)
		return;
	if (!r->round_trips || now_ns - r->timed_ns < r->least_ns)
		r->least_ns = now_ns - r->timed_ns;
	r->timed_ns = 0;
	if (++r->round_trips < ROUND_TRIPS)
		return;
	r->round_trips = 0;
	/* A round trip brings max_rd_atomic pairs. Whole READs would bring as many bytes in less time. */
	if (r->least_ns * bytes > 2ull * qp->max_rd_atomic * qp->mtu * (READ_NS + bytes / BYTES_A_NS)) {
		r->whole_next = r->whole_next ? r->whole_next * 2 : WHOLE_READS_MIN;
		if (r->whole_next > WHOLE_READS_MAX)
			r->whole_next = WHOLE_READS_MAX;
		r->whole_left = r->whole_next;
	} else {
		r->whole_next = 0;
	}
}

void read_pairs_again(struct qp *qp)
{
	qp->gbn->req.pairs.timed_ns = 0;
}
