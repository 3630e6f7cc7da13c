/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The receiving end. Each posted buffer is registered on its own, from address 0 on, and its key
 * goes to the peer with the grant; completing a receive deregisters it. So a packet that comes late
 * carries a key that opens nothing, whatever has been posted since, and no packet can name memory
 * outside its own receive.
 */
#include <errno.h>
#include <sched.h>

#include "sdr/verbs/objects.h"

static int ready(const struct verbena_sdr_qp *qp)
{
	if (!(qp->mine.roles & INFO_RECEIVES))
		return -EOPNOTSUPP;
	return qp->connected ? 0 : -ENOTCONN;
}

/* Registers the buffer; -EINVAL if it is not in a region that may be written. */
static int memory_open(struct verbena_sdr_qp *qp, const struct verbena_sdr_recv_attr *attr, struct recv_memory *m)
{
	m->region = memory_find(qp->ctx, attr->lkey, attr->address, attr->max_length, VERBENA_SDR_REMOTE_WRITE, true);
	if (!m->region)
		return -EINVAL;
	m->window = ibv_reg_mr_iova(qp->ctx->pd, attr->address, attr->max_length, 0,
				    IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	if (m->window)
		return 0;
	memory_release(m->region);
	return -errno;
}

static void memory_close(struct recv_memory *m)
{
	if (!m->window)
		return;
	ibv_dereg_mr(m->window);
	memory_release(m->region);
	*m = (struct recv_memory){0};
}

int recv_open(struct verbena_sdr_qp *qp, const struct verbena_sdr_recv_attr *attr, uint64_t *number)
{
	struct recv_memory *m = &qp->memory[shape_slot(&qp->shape, qp->receiver.posted)];
	uint64_t now_ns = sdr_now_ns();
	int err = memory_open(qp, attr, m);

	if (err)
		return err;
	err = receiver_post(&qp->receiver, attr->max_length, number);
	if (err) {
		memory_close(m);
		return err;
	}
	grants_add(&qp->grants, (struct grant){attr->max_length, m->window->rkey}, now_ns);
	control_tell_grants(qp, now_ns);
	return 0;
}

int recv_ready(const struct verbena_sdr_qp *qp, size_t length, uint32_t count)
{
	int err = ready(qp);

	if (!err && (!length || length > qp->shape.message_bytes))
		err = -EINVAL;
	if (!err && (!receiver_can_post(&qp->receiver, count) || !grants_room(&qp->grants, count)))
		err = -EAGAIN;
	return err;
}

int recv_settle(struct verbena_sdr_qp *qp, int err, uint64_t number, struct verbena_sdr_recv *recv)
{
	qp->retries += err == -EAGAIN;
	pthread_mutex_unlock(&qp->lock);
	if (err == -EAGAIN)
		return VERBENA_SDR_RETRY;
	if (err)
		return sdr_fail(-err);
	*recv = (struct verbena_sdr_recv){qp, number};
	worker_wake(qp->owner); /* the grant may have to be sent again */
	return VERBENA_SDR_SUCCESS;
}

int recv_poll_by(const struct verbena_sdr_recv *recv, bool *done, message_outcome *outcome)
{
	int r;

	if (!recv || !recv->qp || !done)
		return sdr_fail(EINVAL);
	pthread_mutex_lock(&recv->qp->lock);
	r = outcome(recv->qp, recv->number);
	pthread_mutex_unlock(&recv->qp->lock);
	if (r < 0)
		return sdr_fail(-r);
	*done = r;
	return VERBENA_SDR_SUCCESS;
}

int verbena_sdr_recv_post(struct verbena_sdr_qp *qp, const struct verbena_sdr_recv_attr *attr,
			  struct verbena_sdr_recv *recv)
{
	uint64_t number = 0;
	int err;

	if (!qp || !attr || !recv)
		return sdr_fail(EINVAL);
	pthread_mutex_lock(&qp->lock);
	err = recv_ready(qp, attr->max_length, 1);
	if (!err)
		err = recv_open(qp, attr, &number);
	return recv_settle(qp, err, number, recv);
}

/* The slot of a receive that is posted. */
static struct slot *slot_of(const struct verbena_sdr_recv *recv)
{
	if (!recv || !recv->qp || !(recv->qp->mine.roles & INFO_RECEIVES))
		return NULL;
	return receiver_slot(&recv->qp->receiver, recv->number);
}

int verbena_sdr_recv_bitmap_get(const struct verbena_sdr_recv *recv, const uint8_t **bitmap, size_t *bytes)
{
	struct slot *slot = slot_of(recv);

	if (!slot || !bitmap || !bytes)
		return sdr_fail(EINVAL);
	*bitmap = (const uint8_t *)slot->chunk_bits;
	*bytes = (slot->chunks + 7) / 8;
	return VERBENA_SDR_SUCCESS;
}

int verbena_sdr_recv_imm_get(const struct verbena_sdr_recv *recv, uint32_t *imm)
{
	struct slot *slot = slot_of(recv);

	if (!slot || !imm)
		return sdr_fail(EINVAL);
	return slot_imm(slot, recv->qp->shape.split, imm) ? VERBENA_SDR_SUCCESS : VERBENA_SDR_RETRY;
}

int verbena_sdr_recv_bitmap_chunk_expand(const struct verbena_sdr_recv *recv, uint32_t chunk, uint64_t *mask)
{
	struct slot *slot = slot_of(recv);

	if (!slot || !mask || chunk >= slot->chunks)
		return sdr_fail(EINVAL);
	*mask = slot_chunk_mask(slot, &recv->qp->shape, chunk);
	return VERBENA_SDR_SUCCESS;
}

static void wait_for_workers(const struct slot *slot)
{
	while (slot_busy(slot))
		sched_yield();
}

/* Revokes the key first, so that nothing more is written, then waits for the workers that are inside.
 * They do not wait for the lock while they are inside. */
static void close_slot(struct verbena_sdr_qp *qp, struct slot *slot, uint64_t number)
{
	memory_close(&qp->memory[shape_slot(&qp->shape, number)]);
	wait_for_workers(slot);
	if (slot->touched)
		grants_confirm(&qp->grants, number + 1);
	slot_reset(slot);
}

void recv_revoke(struct verbena_sdr_qp *qp, uint64_t number)
{
	memory_close(&qp->memory[shape_slot(&qp->shape, number)]);
}

bool recv_close(struct verbena_sdr_qp *qp, uint64_t number)
{
	struct slot *slot = receiver_complete(&qp->receiver, number);

	if (slot)
		close_slot(qp, slot, number);
	return slot;
}

int verbena_sdr_recv_complete(const struct verbena_sdr_recv *recv)
{
	uint64_t now_ns = sdr_now_ns();
	struct verbena_sdr_qp *qp;
	struct slot *slot;

	if (!slot_of(recv))
		return sdr_fail(EINVAL);
	qp = recv->qp;
	pthread_mutex_lock(&qp->lock);
	/* The parities of a coded message go with it. */
	slot = reliable_is_second(qp, recv->number) ? NULL : receiver_complete(&qp->receiver, recv->number);
	if (slot) {
		recv_revoke(qp, recv->number);
		wait_for_workers(slot);
		if (reliable_completed(qp, recv->number, now_ns))
			recv_close(qp, recv->number + 1);
		close_slot(qp, slot, recv->number);
	}
	pthread_mutex_unlock(&qp->lock);
	return slot ? VERBENA_SDR_SUCCESS : sdr_fail(EINVAL);
}
