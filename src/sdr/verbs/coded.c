/* SPDX-License-Identifier: BSD-2-Clause */
/* The calls of codes: over all of a message as the program has it, and over the tail as losses call for it. */
#include <errno.h>
#include <stdlib.h>

#include "sdr/coded/coded_plan.h"
#include "sdr/verbs/objects.h"

enum { QUEUED_BYTES = 1 << 20, QUEUED_MIN = 16, QUEUED_MAX = 1024, GUESSED_MBPS = 1000, ANSWERS = 8 };

#define HOUR_NS UINT64_C(3600000000000)

/* What both ends reckon with as a round trip: that of the path, and a quarter of it that is queued (send_room()). */
static uint64_t queued_rtt_ns(uint64_t rtt_ns)
{
	rtt_ns = rtt_ns > RTT_NS_MIN ? rtt_ns : RTT_NS_MIN;
	return rtt_ns + rtt_ns / 4;
}

static uint64_t piece_ns(uint32_t piece, uint64_t mbps)
{
	return (uint64_t)piece * 8000 / mbps + 1;
}

void verbena_sdr_ec_attr_init(struct verbena_sdr_ec_attr *attr)
{
	*attr = (struct verbena_sdr_ec_attr){
		.code = VERBENA_SDR_MDS,
		.data = 32,
		.parity = 8,
		.parity_max = 16,
		.depth = 8,
		.fallback = VERBENA_SDR_FALLBACK_PARITY,
		.end_marker = true,
		.nack = true,
		.rtt_ns = 1000000,
		.tries_max = 64,
		.loss = 0.01,
	};
}

void verbena_sdr_tail_attr_init(struct verbena_sdr_tail_attr *attr)
{
	*attr = (struct verbena_sdr_tail_attr){.rtt_ns = 1000000};
}

/* Of a message whose pieces have so many bytes. What both kinds of attributes have. */
static int config_read(const struct verbena_sdr_qp *qp, const struct verbena_sdr_tail_attr *a, uint32_t piece,
		       uint64_t parity_bytes, struct coded_config *c)
{
	uint64_t limit_mbps = qp->rate.on ? 0 : qp->rate_bps / 1000000,
		 usual_mbps = limit_mbps ? limit_mbps : GUESSED_MBPS;
	uint64_t mbps = a->rate_mbps ? a->rate_mbps : usual_mbps;

	if (!a->rtt_ns || a->rtt_ns > HOUR_NS / 1000 || a->timeout_ns >= HOUR_NS || !(a->loss >= 0 && a->loss <= 0.5) ||
	    mbps > 100000000)
		return -EINVAL;
	*c = (struct coded_config){
		.rtt_ns = queued_rtt_ns(a->rtt_ns),
		.piece_ns = piece_ns(piece, mbps),
		.timeout_ns = a->timeout_ns ? a->timeout_ns : 100 * queued_rtt_ns(a->rtt_ns) + UINT64_C(10000000000),
		.loss = a->loss,
		.parity_pieces = (uint32_t)(parity_bytes / piece),
		.behind_ns = (uint64_t)((double)a->behind * 8000 / (double)mbps),
	};
	return 0;
}

/* The groups of a message of `pieces`, whose parities have room for so many. */
static int layout_read(const struct verbena_sdr_ec_attr *a, uint32_t piece, uint32_t pieces, uint64_t room,
		       struct ec_layout *l)
{
	bool some = a->uncoded / piece < pieces;

	if (!a->data || !a->depth || a->depth > UINT16_MAX)
		return -EINVAL;
	*l = (struct ec_layout){
		.pieces = pieces,
		.first = some ? (uint32_t)(a->uncoded / piece) : 0,
		.data = a->data,
		.parity = some ? a->parity : 0,
		.parity_max = a->parity_max,
		.depth = a->depth,
	};
	room /= (l->pieces - l->first + (uint64_t)a->data - 1) / a->data;
	if (l->parity_max > room)
		l->parity_max = (uint32_t)room;
	if (!ec_layout_settle(l))
		return -EINVAL;
	if (a->code == VERBENA_SDR_XOR &&
	    (ec_layout_is_wide(l) || l->parity_max > l->data || a->parity != l->parity_max))
		return -EINVAL;
	return 0;
}

/* The message's config; the parity message has room for parity_bytes. */
static int code_read(const struct verbena_sdr_qp *qp, const struct verbena_sdr_ec_attr *a, uint64_t bytes,
		     uint64_t parity_bytes, struct coded_config *c)
{
	const struct verbena_sdr_tail_attr common = {
		.rtt_ns = a->rtt_ns, .timeout_ns = a->timeout_ns, .rate_mbps = a->rate_mbps, .loss = a->loss};
	uint32_t piece = a->chunks ? qp->shape.chunk_bytes : qp->shape.mtu;
	struct coded_plan *p = &c->plan;

	if (config_read(qp, &common, piece, parity_bytes, c) || a->code > VERBENA_SDR_XOR ||
	    a->fallback > VERBENA_SDR_FALLBACK_SR || a->rto_ns >= HOUR_NS || a->tries_max < 1 || a->tries_max > 255 ||
	    (a->code == VERBENA_SDR_XOR && a->fallback != VERBENA_SDR_FALLBACK_SR))
		return -EINVAL;
	p->chunks = a->chunks;
	p->is_xor = a->code == VERBENA_SDR_XOR;
	p->repeats = a->fallback == VERBENA_SDR_FALLBACK_SR;
	p->nack = p->repeats && a->nack;
	p->rtt_ns = c->rtt_ns;
	c->fresh = !p->repeats;
	c->silent = !a->end_marker;
	c->rto_ns = a->rto_ns ? a->rto_ns : 3 * c->rtt_ns;
	c->tries_max = a->tries_max;
	if (layout_read(a, piece, (uint32_t)((bytes + piece - 1) / piece), c->parity_pieces, &p->layout))
		return -EINVAL;
	p->wait_ns = coded_wait_ns(&p->layout, c->piece_ns, c->rtt_ns, c->rto_ns);
	return 0;
}

/* Both of its numbers are granted and their slots free; the parities have so many bytes at most. */
static int open_send(struct verbena_sdr_qp *qp, const struct coded_config *c, const struct send_block *b,
		     uint64_t parity_bytes, struct reliable_send **out)
{
	uint32_t piece = c->plan.chunks ? qp->shape.chunk_bytes : qp->shape.mtu, queued = QUEUED_BYTES / piece;
	struct reliable_send *m = calloc(1, sizeof(*m));
	int err = m ? scheme_tx_coded(&m->tx, c, (uint32_t)((b->bytes + piece - 1) / piece), &qp->reliable.estimate,
				      sdr_now_ns(), &sdr_heap)
		    : -ENOMEM;

	if (err) {
		free(m);
		return err;
	}
	m->parts = 2;
	m->rtt_ns = c->rtt_ns;
	m->queued = queued < QUEUED_MIN ? QUEUED_MIN : queued < QUEUED_MAX ? queued : QUEUED_MAX;
	*out = m;
	return reliable_send_open(qp, m, b, piece, parity_bytes);
}

int verbena_sdr_ec_send(struct verbena_sdr_qp *qp, const struct verbena_sdr_block *block,
			const struct verbena_sdr_ec_attr *attr, struct verbena_sdr_send *sent)
{
	struct verbena_sdr_ec_attr defaults;
	struct reliable_send *m = NULL;
	struct coded_config c;
	struct send_block b;
	uint64_t parity;
	int err;

	if (!qp || !sent)
		return sdr_fail(EINVAL);
	verbena_sdr_ec_attr_init(&defaults);
	pthread_mutex_lock(&qp->lock);
	err = reliable_send_ready(qp, block, 2, &b, &parity);
	if (!err)
		err = code_read(qp, attr ? attr : &defaults, b.bytes, parity, &c);
	if (!err)
		err = open_send(qp, &c, &b, parity, &m);
	return reliable_send_settle(qp, err, m, sent);
}

int verbena_sdr_tail_send(struct verbena_sdr_qp *qp, const struct verbena_sdr_block *block,
			  const struct verbena_sdr_tail_attr *attr, struct verbena_sdr_send *sent)
{
	struct verbena_sdr_tail_attr defaults;
	struct reliable_send *m = NULL;
	struct coded_config c;
	struct send_block b;
	uint64_t parity;
	int err;

	if (!qp || !sent)
		return sdr_fail(EINVAL);
	verbena_sdr_tail_attr_init(&defaults);
	pthread_mutex_lock(&qp->lock);
	err = reliable_send_ready(qp, block, 2, &b, &parity);
	if (!err)
		err = config_read(qp, attr ? attr : &defaults, qp->shape.mtu, parity, &c);
	if (!err) {
		c.fill = qp->mine.fills;
		err = open_send(qp, &c, &b, parity, &m);
	}
	return reliable_send_settle(qp, err, m, sent);
}

/* rtt_ns NULL: the sender's plan says it. */
static int recv_coded(struct verbena_sdr_qp *qp, const struct verbena_sdr_recv_attr *attr, const uint64_t *rtt_ns,
		      struct verbena_sdr_recv *recv)
{
	const struct slot *data, *parity;
	struct reliable_receive *m;
	uint64_t number = 0;
	int err;

	if (!qp || !attr || !recv || (rtt_ns && *rtt_ns > HOUR_NS / 1000))
		return sdr_fail(EINVAL);
	pthread_mutex_lock(&qp->lock);
	err = reliable_receive_post(qp, attr, &m);
	if (err)
		return recv_settle(qp, err, number, recv);
	number = m->number;
	data = receiver_slot(&qp->receiver, number);
	parity = receiver_slot(&qp->receiver, number + 1);
	if (rtt_ns)
		err = scheme_rx_coded(&m->rx, queued_rtt_ns(*rtt_ns), data, parity, sdr_now_ns(), &sdr_heap);
	else
		scheme_rx_coded_later(&m->rx, &qp->shape, data, parity, attr->max_length,
				      reliable_room(&qp->shape, attr->max_length), queued_rtt_ns(0), &sdr_heap);
	if (err)
		reliable_receive_undo(qp, m);
	return recv_settle(qp, err, number, recv);
}

int verbena_sdr_ec_recv_post(struct verbena_sdr_qp *qp, const struct verbena_sdr_recv_attr *attr,
			     struct verbena_sdr_recv *recv)
{
	return recv_coded(qp, attr, NULL, recv);
}

int verbena_sdr_tail_recv_post(struct verbena_sdr_qp *qp, const struct verbena_sdr_recv_attr *attr, uint64_t rtt_ns,
			       struct verbena_sdr_recv *recv)
{
	return recv_coded(qp, attr, &rtt_ns, recv);
}

/* Groups that have parities beside those that go unasked, as far as there is room: for answers. */
static const char *choose(const struct coded_link *link, uint32_t pieces, uint64_t room, struct ec_layout *l)
{
	uint32_t most;

	coded_plan_make(l, pieces, link);
	if (!link->rtt_ns)
		l->parity = 0;
	most = coded_plan_parity_max(l->data);
	most = room / l->groups < most ? (uint32_t)(room / l->groups) : most;
	l->parity = l->parity < most ? l->parity : most;
	l->parity_max = 2 * l->parity + ANSWERS < most ? 2 * l->parity + ANSWERS : most;
	if (!link->rtt_ns)
		return "what is lost can be sent again while the rest is being sent";
	if (!l->parity)
		return "a message in three thousand would lose a packet";
	return l->first ? "the last round trip's worth of data cannot wait for answers"
			: "all of it is sent within a round trip, so nothing can wait for answers";
}

int verbena_sdr_ec_choose(const struct verbena_sdr_qp *qp, const struct verbena_sdr_link *link, size_t bytes,
			  uint64_t behind, struct verbena_sdr_ec_attr *attr, const char **reason)
{
	struct loss_estimate seen;
	struct coded_link l = {.burst = 1};
	struct ec_layout layout;
	double behind_ns;
	const char *why;

	if (!qp || !link || !attr || !bytes || bytes > qp->shape.message_bytes || !link->rate_mbps || !link->rtt_ns ||
	    link->lost > link->sent)
		return sdr_fail(EINVAL);
	seen = (struct loss_estimate){(double)link->sent, (double)link->lost, (double)link->lost};
	behind_ns = (double)behind * 8000 / (double)link->rate_mbps;
	l.loss = loss_estimate_high(&seen);
	l.piece_ns = piece_ns(qp->shape.mtu, link->rate_mbps);
	l.rtt_ns = (double)link->rtt_ns > behind_ns ? link->rtt_ns - (uint64_t)behind_ns : 0;
	why = choose(&l, shape_packets(&qp->shape, bytes), reliable_room(&qp->shape, bytes) / qp->shape.mtu, &layout);
	verbena_sdr_ec_attr_init(attr);
	attr->data = layout.data;
	attr->parity = layout.parity;
	attr->parity_max = layout.parity_max;
	attr->depth = layout.depth;
	attr->uncoded = (size_t)layout.first * qp->shape.mtu;
	attr->rtt_ns = link->rtt_ns;
	attr->loss = l.loss;
	attr->rate_mbps = link->rate_mbps;
	if (reason)
		*reason = why;
	return VERBENA_SDR_SUCCESS;
}

int verbena_sdr_tail_loss_get(struct verbena_sdr_qp *qp, double *loss)
{
	if (!qp || !loss)
		return sdr_fail(EINVAL);
	pthread_mutex_lock(&qp->lock);
	*loss = loss_estimate_high(&qp->reliable.estimate);
	pthread_mutex_unlock(&qp->lock);
	return VERBENA_SDR_SUCCESS;
}
