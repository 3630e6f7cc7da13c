/* SPDX-License-Identifier: BSD-2-Clause */
/* The calls of erasure coding. */
#include <errno.h>
#include <stdlib.h>

#include "sdr/coded/ec_choice.h"
#include "sdr/verbs/objects.h"

enum { QUEUED_BYTES = 1 << 20, QUEUED_MIN = 16, QUEUED_MAX = 1024 };

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

static bool times_read(const struct verbena_sdr_ec_attr *a, struct ec_config *c)
{
	const uint64_t longest_ns = UINT64_C(1) << 60;

	if (!a->rtt_ns || a->rtt_ns > longest_ns / 1000 || a->rto_ns > longest_ns || a->timeout_ns > longest_ns ||
	    !(a->loss >= 0 && a->loss <= 0.5))
		return false;
	c->rtt_ns = a->rtt_ns > RTT_NS_MIN ? a->rtt_ns : RTT_NS_MIN;
	c->rto_ns = a->rto_ns ? a->rto_ns : 3 * c->rtt_ns;
	c->timeout_ns = a->timeout_ns ? a->timeout_ns : 100 * c->rtt_ns + UINT64_C(10000000000);
	c->loss = a->loss;
	return true;
}

/* The message's config; the parity message has room for parity_bytes. */
static int config_read(const struct verbena_sdr_qp *qp, const struct verbena_sdr_ec_attr *a, uint64_t bytes,
		       uint64_t parity_bytes, struct ec_config *c)
{
	uint32_t piece = a->chunks ? qp->shape.chunk_bytes : qp->shape.mtu;
	uint64_t groups, room;

	if (!a->data || a->data > EC_PIECES_MAX || a->parity > EC_PIECES_MAX || a->parity_max > EC_PIECES_MAX ||
	    !a->depth || a->depth > UINT16_MAX || a->code > VERBENA_SDR_XOR || a->fallback > VERBENA_SDR_FALLBACK_SR)
		return -EINVAL;
	*c = (struct ec_config){
		.layout = {.pieces = (uint32_t)((bytes + piece - 1) / piece),
			   .data = a->data,
			   .parity = a->parity,
			   .parity_max = a->parity_max,
			   .depth = a->depth,
			   .coded_from = (uint32_t)(a->uncoded / piece / a->data / a->depth)},
		.kind = a->code == VERBENA_SDR_XOR ? EC_XOR : EC_CAUCHY,
		.fallback = a->fallback == VERBENA_SDR_FALLBACK_SR ? EC_FALLBACK_SR : EC_FALLBACK_PARITY,
		.end_marker = a->end_marker,
		.nack = a->nack,
		.reorder = 2,
		.tries_max = a->tries_max,
		.guard_ns = 1,
		.ack_ns = 1,
	};
	groups = (c->layout.pieces + a->data - 1) / a->data;
	room = parity_bytes / piece / groups;
	if (c->layout.parity_max > room)
		c->layout.parity_max = (uint32_t)room;
	c->inject_ns = a->rate_mbps ? (uint64_t)piece * 8000 / a->rate_mbps : 0;
	return times_read(a, c) && ec_layout_settle(&c->layout) && ec_config_valid(c) ? 0 : -EINVAL;
}

/* Both of its numbers are granted and their slots free. */
static int open_send(struct verbena_sdr_qp *qp, const struct ec_config *c, bool chunks, const struct send_block *b,
		     struct reliable_send **out)
{
	uint32_t piece = chunks ? qp->shape.chunk_bytes : qp->shape.mtu, queued = QUEUED_BYTES / piece;
	struct reliable_send *m = calloc(1, sizeof(*m));
	int err = m ? scheme_tx_ec(&m->tx, c, chunks, true, sdr_now_ns(), &sdr_heap) : -ENOMEM;

	if (err) {
		free(m);
		return err;
	}
	m->parts = 2;
	m->rtt_ns = c->rtt_ns;
	m->queued = queued < QUEUED_MIN ? QUEUED_MIN : queued < QUEUED_MAX ? queued : QUEUED_MAX;
	*out = m;
	return reliable_send_open(qp, m, b, piece, (size_t)c->layout.groups * c->layout.parity_max * piece);
}

int verbena_sdr_ec_send(struct verbena_sdr_qp *qp, const struct verbena_sdr_block *block,
			const struct verbena_sdr_ec_attr *attr, struct verbena_sdr_send *sent)
{
	struct verbena_sdr_ec_attr defaults;
	struct reliable_send *m = NULL;
	struct send_block b;
	struct ec_config c;
	uint64_t parity;
	int err;

	if (!qp || !sent)
		return sdr_fail(EINVAL);
	verbena_sdr_ec_attr_init(&defaults);
	attr = attr ? attr : &defaults;
	pthread_mutex_lock(&qp->lock);
	err = reliable_send_ready(qp, block, 2, &b, &parity);
	if (!err)
		err = config_read(qp, attr, b.bytes, parity, &c);
	if (!err)
		err = open_send(qp, &c, attr->chunks, &b, &m);
	return reliable_send_settle(qp, err, m, sent);
}

int verbena_sdr_ec_recv_post(struct verbena_sdr_qp *qp, const struct verbena_sdr_recv_attr *attr,
			     struct verbena_sdr_recv *recv)
{
	struct reliable_receive *m;
	uint64_t number = 0;
	int err;

	if (!qp || !attr || !recv)
		return sdr_fail(EINVAL);
	pthread_mutex_lock(&qp->lock);
	err = reliable_receive_post(qp, attr, &m);
	if (!err) {
		number = m->number;
		scheme_rx_ec_later(&m->rx, &qp->shape, receiver_slot(&qp->receiver, number),
				   receiver_slot(&qp->receiver, number + 1), attr->max_length,
				   reliable_room(&qp->shape, attr->max_length), RTT_NS_MIN, &sdr_heap);
	}
	return recv_settle(qp, err, number, recv);
}

static const char *reason_text(enum ec_reason reason)
{
	switch (reason) {
	case EC_NOTHING_EXPOSED: return "what is lost can be sent again while the rest is being sent";
	case EC_NOTHING_LOST: return "a message in ten thousand would lose a packet";
	case EC_TAIL_CODED: return "the last round trip's worth of data cannot wait for answers";
	default: return "all of it is sent within a round trip, so nothing can wait for answers";
	}
}

int verbena_sdr_ec_choose(const struct verbena_sdr_qp *qp, const struct verbena_sdr_link *link, size_t bytes,
			  uint64_t behind, struct verbena_sdr_ec_attr *attr, const char **reason)
{
	struct loss_counts seen;
	struct ec_link l;
	struct ec_layout layout;
	uint64_t pieces;
	enum ec_reason why;

	if (!qp || !link || !attr || !bytes || bytes > qp->shape.message_bytes || !link->rate_mbps || !link->rtt_ns ||
	    link->lost > link->sent)
		return sdr_fail(EINVAL);
	seen = (struct loss_counts){(double)link->sent, (double)link->lost};
	l = (struct ec_link){link->rate_mbps * 1000000, link->rtt_ns, loss_upper(&seen)};
	pieces = (bytes + qp->shape.mtu - 1) / qp->shape.mtu;
	why = ec_choose(&l, (uint32_t)pieces, qp->shape.mtu, behind, reliable_room(&qp->shape, bytes) / qp->shape.mtu,
			&layout);
	verbena_sdr_ec_attr_init(attr);
	attr->data = layout.data;
	attr->parity = layout.parity;
	attr->parity_max = layout.parity_max;
	attr->depth = layout.depth;
	attr->uncoded = (size_t)layout.coded_from * layout.depth * layout.data * qp->shape.mtu;
	attr->rtt_ns = link->rtt_ns;
	attr->loss = l.loss;
	attr->rate_mbps = link->rate_mbps;
	if (reason)
		*reason = reason_text(why);
	return VERBENA_SDR_SUCCESS;
}
