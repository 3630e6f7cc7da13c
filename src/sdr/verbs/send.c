/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The sending end: packets of the sender's queue go into lanes, one for each channel. A lane is posted
 * as one list when it is full or the next packet is of another message. The last packet of a list is
 * signalled; its wr_id holds the message, the channel and the number of packets in the list.
 */
#include <arpa/inet.h>
#include <errno.h>

#include "sdr/verbs/objects.h"

enum {
	WR_COUNT_SHIFT = 16,
	WR_CHANNEL_SHIFT = 32,
	PACE_BURST_NS = 4000000,
	PACE_BURST_NS_MAX = 20000000,
	PACE_BURST_BYTES = 65536
};

static uint64_t wr_id_of(const struct lane *l, uint32_t channel)
{
	return l->slot | (uint64_t)l->count << WR_COUNT_SHIFT | (uint64_t)channel << WR_CHANNEL_SHIFT;
}

static void returned(struct verbena_sdr_qp *qp, uint64_t wr_id)
{
	uint32_t count = wr_id >> WR_COUNT_SHIFT & 0xffff;

	sender_returned(&qp->sender, wr_id & 0xffff, count);
	qp->lanes[wr_id >> WR_CHANNEL_SHIFT & 0xff].in_flight -= count;
	qp->in_flight -= count;
}

/* A list that the device refuses breaks the connection; the sender gets its packets back. */
static void lane_post(struct verbena_sdr_qp *qp, uint32_t channel)
{
	struct lane *l = &qp->lanes[channel];
	struct ibv_qp *to = qp->data[info_qp(&qp->mine, l->generation, channel)];
	struct ibv_send_wr *bad, *last = &l->wr[l->count - 1];

	last->next = NULL;
	last->send_flags = IBV_SEND_SIGNALED;
	last->wr_id = wr_id_of(l, channel);
	l->in_flight += l->count;
	qp->in_flight += l->count;
	if (ibv_post_send(to, l->wr, &bad)) {
		qp->broken = true;
		returned(qp, last->wr_id);
	} else {
		qp->unreturned++;
		qp->sent += l->count;
	}
	l->count = 0;
}

static void lanes_post(struct verbena_sdr_qp *qp)
{
	for (uint32_t c = 0; qp->lanes && c < qp->shape.channels + qp->mine.fills; c++) {
		if (qp->lanes[c].count)
			lane_post(qp, c);
	}
}

static void lane_add(struct verbena_sdr_qp *qp, const struct send_packet *p)
{
	struct lane *l = &qp->lanes[p->channel];
	struct ibv_send_wr *wr;

	if (l->count && l->slot != p->slot)
		lane_post(qp, p->channel);
	wr = &l->wr[l->count];
	l->sge[l->count] = (struct ibv_sge){.addr = p->addr, .length = p->bytes, .lkey = p->lkey};
	*wr = (struct ibv_send_wr){
		.next = wr + 1,
		.sg_list = &l->sge[l->count],
		.num_sge = p->bytes ? 1 : 0,
		.opcode = IBV_WR_RDMA_WRITE_WITH_IMM,
		.imm_data = htonl(p->imm),
		.wr.rdma = {.remote_addr = p->bytes ? p->offset : 0, .rkey = p->rkey},
	};
	l->slot = p->slot;
	l->generation = p->generation;
	if (++l->count == qp->batch)
		lane_post(qp, p->channel);
}

/* Time in which nothing was sent counts for a burst at most: at low rates for longer, as a process may wait for a
 * processor for much longer than packets take. */
static uint64_t burst_ns(const struct verbena_sdr_qp *qp)
{
	uint64_t bytes_ns = PACE_BURST_BYTES * UINT64_C(8000000000) / qp->rate_bps;

	bytes_ns = bytes_ns < PACE_BURST_NS_MAX ? bytes_ns : PACE_BURST_NS_MAX;
	return bytes_ns > PACE_BURST_NS ? bytes_ns : PACE_BURST_NS;
}

/* Whether the rate allows a packet now. */
static bool pace(struct verbena_sdr_qp *qp, uint32_t bytes, uint64_t now_ns)
{
	if (!qp->rate_bps)
		return true;
	if (now_ns < qp->pace_ns)
		return false;
	if (qp->pace_ns + burst_ns(qp) < now_ns)
		qp->pace_ns = now_ns - burst_ns(qp);
	qp->pace_ns += (uint64_t)bytes * 8 * 1000000000u / qp->rate_bps;
	return true;
}

uint32_t send_room(const struct verbena_sdr_qp *qp, uint64_t bytes, uint64_t rtt_ns, uint32_t most)
{
	double blocks = (double)qp->rate_bps / 8e9 * ((double)rtt_ns / 4) / (double)bytes;

	if (!qp->rate_bps || blocks > most)
		return most;
	return blocks > 2 ? (uint32_t)blocks : 2;
}

static void note_sending(struct verbena_sdr_qp *qp)
{
	atomic_store_explicit(&qp->sending, !sender_idle(&qp->sender) || qp->in_flight, memory_order_relaxed);
}

bool send_others(const struct verbena_sdr_qp *qp)
{
	for (uint32_t i = 0; i < qp->ctx->qp_count; i++) {
		const struct verbena_sdr_qp *other = qp->ctx->qps[i];

		if (other != qp && atomic_load_explicit(&other->sending, memory_order_relaxed))
			return true;
	}
	return false;
}

uint32_t send_pump(struct verbena_sdr_qp *qp, uint64_t now_ns)
{
	struct send_packet p;
	uint32_t n = 0;

	while (!qp->broken && sender_peek(&qp->sender, &p)) {
		const struct lane *l = &qp->lanes[p.channel];

		if (l->in_flight + l->count >= CHANNEL_DEPTH || qp->in_flight >= QP_DEPTH ||
		    !auto_rate_may_send(&qp->rate, p.bytes, now_ns) || !pace(qp, p.bytes, now_ns))
			break;
		auto_rate_sent(&qp->rate, p.bytes);
		sender_sent(&qp->sender);
		lane_add(qp, &p);
		n++;
	}
	lanes_post(qp);
	note_sending(qp);
	return n;
}

uint32_t send_collect(struct verbena_sdr_qp *qp)
{
	struct ibv_wc wc[POLL_BATCH];
	int n = ibv_poll_cq(qp->send_cq, POLL_BATCH, wc);

	for (int i = 0; i < n; i++) {
		qp->unreturned--;
		if (wc[i].wr_id == WR_CONTROL)
			control_returned(qp);
		else
			returned(qp, wc[i].wr_id);
		if (wc[i].status != IBV_WC_SUCCESS)
			qp->broken = true;
	}
	note_sending(qp);
	return n > 0 ? (uint32_t)n : 0;
}

/* ---- calls */

/* 0, or why nothing can be sent. The lock is held. */
static int ready(const struct verbena_sdr_qp *qp)
{
	if (!(qp->mine.roles & INFO_SENDS))
		return EOPNOTSUPP;
	if (!qp->connected)
		return ENOTCONN;
	return qp->broken ? EIO : 0;
}

/* Takes the block if its memory is registered here. */
static int block_read(const struct verbena_sdr_qp *qp, const struct verbena_sdr_block *from, struct send_block *to)
{
	if (!from || (from->length && !memory_find(qp->ctx, from->lkey, from->address, from->length, 0, false)))
		return EINVAL;
	*to = (struct send_block){
		.addr = (uintptr_t)from->address,
		.bytes = from->length,
		.offset = (uint64_t)from->remote_offset * qp->shape.chunk_bytes,
		.lkey = from->lkey,
	};
	return 0;
}

int send_ready(const struct verbena_sdr_qp *qp, const struct verbena_sdr_block *block, struct send_block *b)
{
	int err = ready(qp);

	return err ? -err : -block_read(qp, block, b);
}

/* Sends what is queued, or passes it to the worker. */
int send_settle(struct verbena_sdr_qp *qp, int err)
{
	bool left;

	if (err == -EAGAIN)
		qp->retries++;
	if (!err) {
		if (qp->unreturned)
			send_collect(qp);
		send_pump(qp, sdr_now_ns());
	}
	left = !sender_idle(&qp->sender);
	pthread_mutex_unlock(&qp->lock);
	if (err == -EAGAIN)
		return VERBENA_SDR_RETRY;
	if (err)
		return sdr_fail(-err);
	if (left)
		worker_wake(qp->owner);
	return VERBENA_SDR_SUCCESS;
}

int verbena_sdr_send_post(struct verbena_sdr_qp *qp, const struct verbena_sdr_block *block, const uint32_t *imm,
			  struct verbena_sdr_send *send)
{
	struct send_block b;
	uint64_t number = 0;
	int err;

	if (!qp || !send)
		return sdr_fail(EINVAL);
	pthread_mutex_lock(&qp->lock);
	err = send_ready(qp, block, &b);
	if (!err)
		err = sender_post(&qp->sender, imm, &b, &number);
	if (!err)
		*send = (struct verbena_sdr_send){qp, number};
	return send_settle(qp, err);
}

int verbena_sdr_send_stream_start(struct verbena_sdr_qp *qp, const uint32_t *imm, struct verbena_sdr_send *send)
{
	uint64_t number = 0;
	int err;

	if (!qp || !send)
		return sdr_fail(EINVAL);
	pthread_mutex_lock(&qp->lock);
	err = -ready(qp);
	if (!err)
		err = sender_start(&qp->sender, imm, &number);
	if (!err)
		*send = (struct verbena_sdr_send){qp, number};
	return send_settle(qp, err);
}

/* Whether the send is a reliability layer's. */
static bool owned(const struct verbena_sdr_send *send)
{
	return reliable_owns(send->qp, send->number);
}

static int add_by(int (*add)(struct sender *, uint64_t, const struct send_block *), const struct verbena_sdr_send *send,
		  const struct verbena_sdr_block *block)
{
	struct send_block b;
	int err;

	if (!send || !send->qp)
		return sdr_fail(EINVAL);
	pthread_mutex_lock(&send->qp->lock);
	err = send_ready(send->qp, block, &b);
	if (!err && owned(send))
		err = -EINVAL;
	if (!err)
		err = add(&send->qp->sender, send->number, &b);
	return send_settle(send->qp, err);
}

int verbena_sdr_send_stream_continue(const struct verbena_sdr_send *send, const struct verbena_sdr_block *block)
{
	return add_by(sender_add, send, block);
}

int verbena_sdr_send_stream_repeat(const struct verbena_sdr_send *send, const struct verbena_sdr_block *block)
{
	return add_by(sender_repeat, send, block);
}

static int end_by(int (*end)(struct sender *, uint64_t), const struct verbena_sdr_send *send)
{
	int err;

	if (!send || !send->qp)
		return sdr_fail(EINVAL);
	pthread_mutex_lock(&send->qp->lock);
	err = -ready(send->qp);
	if (!err && owned(send))
		err = -EINVAL;
	if (!err)
		err = end(&send->qp->sender, send->number);
	return send_settle(send->qp, err);
}

int verbena_sdr_send_stream_end(const struct verbena_sdr_send *send)
{
	return end_by(sender_end, send);
}

int verbena_sdr_send_cancel(const struct verbena_sdr_send *send)
{
	return end_by(sender_cancel, send);
}

int verbena_sdr_send_queued_get(const struct verbena_sdr_send *send, uint64_t *bytes)
{
	int err;

	if (!send || !send->qp || !bytes)
		return sdr_fail(EINVAL);
	pthread_mutex_lock(&send->qp->lock);
	err = -ready(send->qp);
	if (!err && owned(send))
		err = -EINVAL;
	if (!err)
		err = sender_waiting(&send->qp->sender, send->number, bytes);
	pthread_mutex_unlock(&send->qp->lock);
	return err ? sdr_fail(-err) : VERBENA_SDR_SUCCESS;
}

int send_poll_by(const struct verbena_sdr_send *send, bool *done, message_outcome *outcome)
{
	int r;

	if (!send || !send->qp || !done)
		return sdr_fail(EINVAL);
	pthread_mutex_lock(&send->qp->lock);
	if (send->qp->unreturned)
		send_collect(send->qp);
	r = outcome(send->qp, send->number);
	pthread_mutex_unlock(&send->qp->lock);
	if (r < 0)
		return sdr_fail(-r);
	*done = r;
	return VERBENA_SDR_SUCCESS;
}

int verbena_sdr_send_poll(const struct verbena_sdr_send *send, bool *done)
{
	struct verbena_sdr_qp *qp;
	int r;

	if (!send || !send->qp || !done || !(send->qp->mine.roles & INFO_SENDS))
		return sdr_fail(EINVAL);
	qp = send->qp;
	pthread_mutex_lock(&qp->lock);
	if (qp->unreturned)
		send_collect(qp);
	if (qp->broken)
		r = -EIO;
	else
		r = owned(send) ? -EINVAL : sender_done(&qp->sender, send->number);
	pthread_mutex_unlock(&qp->lock);
	if (r < 0)
		return sdr_fail(-r);
	*done = r;
	return VERBENA_SDR_SUCCESS;
}
