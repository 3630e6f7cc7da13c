/* SPDX-License-Identifier: BSD-2-Clause */
/* The calls of codes over the tail. */
#include <errno.h>
#include <stdlib.h>

#include "sdr/verbs/objects.h"

enum { QUEUED_BYTES = 1 << 20, QUEUED_MAX = 1024, GUESSED_MBPS = 1000 };

#define HOUR_NS UINT64_C(3600000000000)

/* What both ends reckon with as a round trip: that of the path, and a quarter of it that is queued (send_room()). */
static uint64_t queued_rtt_ns(uint64_t rtt_ns)
{
	rtt_ns = rtt_ns > RTT_NS_MIN ? rtt_ns : RTT_NS_MIN;
	return rtt_ns + rtt_ns / 4;
}

void verbena_sdr_tail_attr_init(struct verbena_sdr_tail_attr *attr)
{
	*attr = (struct verbena_sdr_tail_attr){.rtt_ns = 1000000};
}

static int config_read(const struct verbena_sdr_qp *qp, const struct verbena_sdr_tail_attr *a, uint64_t parity_bytes,
		       struct coded_config *c)
{
	uint64_t limit_mbps = qp->rate_bps / 1000000, usual_mbps = limit_mbps ? limit_mbps : GUESSED_MBPS;
	uint64_t mbps = a->rate_mbps ? a->rate_mbps : usual_mbps;

	if (!a->rtt_ns || a->rtt_ns > HOUR_NS / 1000 || a->timeout_ns >= HOUR_NS || !(a->loss >= 0 && a->loss <= 0.5) ||
	    mbps > 100000000)
		return -EINVAL;
	*c = (struct coded_config){
		.rtt_ns = queued_rtt_ns(a->rtt_ns),
		.packet_ns = (uint64_t)qp->shape.mtu * 8000 / mbps + 1,
		.timeout_ns = a->timeout_ns ? a->timeout_ns : 100 * queued_rtt_ns(a->rtt_ns) + UINT64_C(10000000000),
		.loss = a->loss,
		.parity_packets = (uint32_t)(parity_bytes / qp->shape.mtu),
		.fill = qp->mine.fills,
	};
	c->behind_ns = (uint64_t)((double)a->behind * 8000 / (double)mbps);
	return 0;
}

/* Both of its numbers are granted and their slots free. */
static int open_send(struct verbena_sdr_qp *qp, const struct coded_config *c, const struct send_block *b,
		     uint64_t parity_bytes, struct reliable_send **out)
{
	uint32_t queued = QUEUED_BYTES / qp->shape.mtu;
	struct reliable_send *m = calloc(1, sizeof(*m));
	int err = m ? scheme_tx_coded(&m->tx, c, shape_packets(&qp->shape, b->bytes), &qp->reliable.estimate,
				      sdr_now_ns(), &sdr_heap)
		    : -ENOMEM;

	if (err) {
		free(m);
		return err;
	}
	m->parts = 2;
	m->rtt_ns = c->rtt_ns;
	m->queued = queued < QUEUED_MAX ? queued : QUEUED_MAX;
	*out = m;
	return reliable_send_open(qp, m, b, qp->shape.mtu, parity_bytes);
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
		err = config_read(qp, attr ? attr : &defaults, parity, &c);
	if (!err)
		err = open_send(qp, &c, &b, parity, &m);
	return reliable_send_settle(qp, err, m, sent);
}

static int open_receive(struct verbena_sdr_qp *qp, const struct verbena_sdr_recv_attr *attr, uint64_t rtt_ns,
			uint64_t *number)
{
	struct reliable_receive *m;
	int err = reliable_receive_post(qp, attr, &m);

	if (err)
		return err;
	*number = m->number;
	err = scheme_rx_coded(&m->rx, queued_rtt_ns(rtt_ns), receiver_slot(&qp->receiver, m->number),
			      receiver_slot(&qp->receiver, m->number + 1), sdr_now_ns(), &sdr_heap);
	if (err)
		reliable_receive_undo(qp, m);
	return err;
}

int verbena_sdr_tail_recv_post(struct verbena_sdr_qp *qp, const struct verbena_sdr_recv_attr *attr, uint64_t rtt_ns,
			       struct verbena_sdr_recv *recv)
{
	uint64_t number = 0;
	int err;

	if (!qp || !attr || !recv || rtt_ns > UINT64_C(3600000000))
		return sdr_fail(EINVAL);
	pthread_mutex_lock(&qp->lock);
	err = open_receive(qp, attr, rtt_ns, &number);
	return recv_settle(qp, err, number, recv);
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
