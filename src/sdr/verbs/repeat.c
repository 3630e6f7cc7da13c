/* SPDX-License-Identifier: BSD-2-Clause */
/* The calls of Selective Repeat. */
#include <errno.h>
#include <stdlib.h>

#include "sdr/verbs/objects.h"

enum { QUEUED_CHUNKS = 16 };

void verbena_sdr_sr_attr_init(struct verbena_sdr_sr_attr *attr)
{
	*attr = (struct verbena_sdr_sr_attr){
		.rtt_ns = 1000000,
		.rto_ns = 0,
		.timeout_ns = 0,
		.tries_max = 64,
		.reorder = 2,
		.nack = true,
	};
}

static int attr_read(const struct verbena_sdr_sr_attr *from, struct verbena_sdr_sr_attr *to)
{
	const uint64_t longest_ns = UINT64_C(1) << 60;

	if (from)
		*to = *from;
	else
		verbena_sdr_sr_attr_init(to);
	if (!to->rtt_ns || to->rtt_ns > longest_ns / 1000 || to->rto_ns > longest_ns || to->timeout_ns > longest_ns ||
	    to->tries_max < 1 || to->tries_max > 255)
		return -EINVAL;
	if (to->rtt_ns < RTT_NS_MIN)
		to->rtt_ns = RTT_NS_MIN;
	if (!to->rto_ns)
		to->rto_ns = 3 * to->rtt_ns;
	if (!to->timeout_ns)
		to->timeout_ns = 100 * to->rtt_ns + UINT64_C(10000000000);
	return 0;
}

/* Its number is granted and its slot free. */
static int open_send(struct verbena_sdr_qp *qp, const struct verbena_sdr_sr_attr *a, const struct send_block *b,
		     struct reliable_send **out)
{
	const struct sr_config config = {a->rtt_ns, a->rto_ns, a->timeout_ns, a->tries_max};
	struct reliable_send *m = calloc(1, sizeof(*m));
	int err = m ? scheme_tx_repeat(&m->tx, &config, shape_chunks(&qp->shape, b->bytes), sdr_now_ns(), &sdr_heap)
		    : -ENOMEM;

	if (err) {
		free(m);
		return err;
	}
	m->parts = 1;
	m->rtt_ns = a->rtt_ns;
	m->queued = QUEUED_CHUNKS;
	*out = m;
	return reliable_send_open(qp, m, b, qp->shape.chunk_bytes, 0);
}

int verbena_sdr_sr_send(struct verbena_sdr_qp *qp, const struct verbena_sdr_block *block,
			const struct verbena_sdr_sr_attr *attr, struct verbena_sdr_send *send)
{
	struct reliable_send *m = NULL;
	struct verbena_sdr_sr_attr a;
	struct send_block b;
	int err;

	if (!qp || !send || attr_read(attr, &a))
		return sdr_fail(EINVAL);
	pthread_mutex_lock(&qp->lock);
	err = reliable_send_ready(qp, block, 1, &b, NULL);
	if (!err)
		err = open_send(qp, &a, &b, &m);
	return reliable_send_settle(qp, err, m, send);
}

/* The receive is open. */
static int open_receive(struct verbena_sdr_qp *qp, const struct verbena_sdr_sr_attr *a, const struct slot *slot,
			uint64_t number)
{
	const struct sr_receiver_config config = {
		.rtt_ns = a->rtt_ns,
		.ack_ns = a->rtt_ns / 64 > 20000 ? a->rtt_ns / 64 : 20000,
		.reorder = a->reorder,
		.nack = a->nack,
	};
	struct reliable_receive *m = reliable_receive_add(qp, number, 1);
	int err = m ? scheme_rx_repeat(&m->rx, &config, slot, sdr_now_ns(), &sdr_heap) : -ENOMEM;

	if (m && err)
		reliable_receive_free(qp, m);
	return err;
}

int verbena_sdr_sr_recv(const struct verbena_sdr_recv *recv, const struct verbena_sdr_sr_attr *attr)
{
	struct verbena_sdr_sr_attr a;
	const struct slot *slot;
	int err = -EINVAL;

	if (!recv || !recv->qp || attr_read(attr, &a))
		return sdr_fail(EINVAL);
	pthread_mutex_lock(&recv->qp->lock);
	slot = receiver_slot(&recv->qp->receiver, recv->number);
	if (slot && !reliable_receives(recv->qp, recv->number))
		err = open_receive(recv->qp, &a, slot, recv->number);
	pthread_mutex_unlock(&recv->qp->lock);
	if (err)
		return sdr_fail(-err);
	worker_wake(recv->qp->owner);
	return VERBENA_SDR_SUCCESS;
}
