/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The control path of a connection: a UC queue pair of its own. Nothing here waits or repeats: the
 * layer that sent a message sends it again if it was lost, and a message for which there is no room
 * counts as lost.
 */
#include <errno.h>
#include <string.h>

#include "base/byteorder.h"
#include "sdr/verbs/objects.h"

static uint32_t path_bytes(enum ibv_mtu mtu)
{
	return 128u << mtu;
}

size_t control_room(const struct verbena_sdr_qp *qp)
{
	return path_bytes(qp->path_mtu) - CONTROL_HEADER_LEN;
}

static uint8_t *message_at(const struct verbena_sdr_qp *qp)
{
	return qp->control_memory + (size_t)(qp->control_next % CONTROL_SENDS) * CONTROL_BYTES;
}

uint8_t *control_buffer(struct verbena_sdr_qp *qp)
{
	return qp->control_out < CONTROL_SENDS ? message_at(qp) + CONTROL_HEADER_LEN : NULL;
}

/* Sends complete in the order in which they were posted, so buffers are free again in that order. */
void control_post(struct verbena_sdr_qp *qp, enum control_type type, uint32_t number, uint16_t length, uint16_t flags)
{
	struct control c = {.type = type, .tag = qp->peer.tag, .number = number, .flags = flags, .length = length};
	struct ibv_sge sge = {
		.addr = (uintptr_t)message_at(qp),
		.length = CONTROL_HEADER_LEN + (uint32_t)length,
		.lkey = qp->control_mr->lkey,
	};
	struct ibv_send_wr *bad, wr = {
					 .wr_id = WR_CONTROL,
					 .sg_list = &sge,
					 .num_sge = 1,
					 .opcode = IBV_WR_SEND,
					 .send_flags = IBV_SEND_SIGNALED,
				 };

	control_encode(message_at(qp), &c);
	if (ibv_post_send(qp->control, &wr, &bad))
		return;
	qp->control_next++;
	qp->control_out++;
	qp->unreturned++;
}

void control_returned(struct verbena_sdr_qp *qp)
{
	qp->control_out--;
}

void control_tell_grants(struct verbena_sdr_qp *qp, uint64_t now_ns)
{
	uint8_t *payload;
	uint16_t flags, len;

	grants_confirm(&qp->grants, receiver_newest_touched(&qp->receiver));
	for (;;) {
		payload = control_buffer(qp);
		len = payload ? grants_tell(&qp->grants, payload, control_room(qp), &flags, now_ns) : 0;
		if (!len)
			return;
		control_post(qp, CONTROL_CTS, 0, len, flags);
	}
}

static void tell_known(struct verbena_sdr_qp *qp)
{
	uint8_t *payload = control_buffer(qp);

	if (!payload)
		return;
	put_be32(payload, (uint32_t)qp->sender.granted);
	control_post(qp, CONTROL_CTS_KNOWN, 0, 4, 0);
}

static void take_cts(struct verbena_sdr_qp *qp, const struct control *c, const uint8_t *payload)
{
	struct cts cts;

	cts_decode(&cts, payload);
	sender_cts(&qp->sender, &cts, payload);
	if (c->flags & CONTROL_ANSWER)
		tell_known(qp);
}

static uint64_t bytes_come(const struct verbena_sdr_qp *qp)
{
	uint64_t bytes = 0;

	for (uint32_t w = 0; w < qp->ctx->worker_count; w++)
		bytes += __atomic_load_n(&qp->counts[w].bytes, __ATOMIC_RELAXED);
	return bytes;
}

static void answer_ping(struct verbena_sdr_qp *qp, const uint8_t *stamp, bool count)
{
	uint8_t *payload = control_buffer(qp);

	if (!payload)
		return;
	if (count)
		count_encode(payload, &(struct count){get_be64(stamp), bytes_come(qp), sdr_now_ns()});
	else
		memcpy(payload, stamp, PING_LEN);
	control_post(qp, count ? CONTROL_COUNT : CONTROL_PONG, 0, count ? COUNT_LEN : PING_LEN, 0);
}

/* The time is that of now: the pass of a worker may have begun before the answer came, and waited for a processor
 * since. */
static bool take_count(struct verbena_sdr_qp *qp, const uint8_t *payload)
{
	struct count c;

	count_decode(&c, payload);
	if (!auto_rate_count(&qp->rate, c.stamp, c.bytes, c.time_ns, sdr_now_ns()))
		return false;
	qp->rate_bps = auto_rate_bps(&qp->rate);
	return true;
}

static bool take_pong(struct verbena_sdr_qp *qp, const uint8_t *payload)
{
	bool found_itself = qp->rate.on;

	if (!auto_rate_pong(&qp->rate, get_be64(payload), sdr_now_ns()))
		return false;
	if (found_itself)
		qp->rate_bps = auto_rate_bps(&qp->rate);
	return true;
}

bool control_ping(struct verbena_sdr_qp *qp, uint64_t now_ns)
{
	uint8_t *payload = control_buffer(qp);

	if (!payload)
		return false;
	put_be64(payload, auto_rate_ping(&qp->rate, now_ns));
	control_post(qp, CONTROL_PING, 0, PING_LEN, qp->rate.on ? CONTROL_WANTS_COUNT : 0);
	return true;
}

int verbena_sdr_ping(struct verbena_sdr_qp *qp)
{
	bool sent = false;
	int err = 0;

	if (!qp)
		return sdr_fail(EINVAL);
	pthread_mutex_lock(&qp->lock);
	if (!qp->connected)
		err = ENOTCONN;
	else
		sent = control_ping(qp, sdr_now_ns());
	pthread_mutex_unlock(&qp->lock);
	if (err)
		return sdr_fail(err);
	return sent ? VERBENA_SDR_SUCCESS : VERBENA_SDR_RETRY;
}

int verbena_sdr_rtt_get(struct verbena_sdr_qp *qp, uint64_t *least_ns, uint64_t *mean_ns)
{
	uint64_t least, mean;

	if (!qp || !least_ns || !mean_ns)
		return sdr_fail(EINVAL);
	pthread_mutex_lock(&qp->lock);
	least = qp->rate.rtt_ns_least;
	mean = qp->rate.rtt_ns_mean;
	pthread_mutex_unlock(&qp->lock);
	if (!least)
		return VERBENA_SDR_RETRY;
	*least_ns = least;
	*mean_ns = mean;
	return VERBENA_SDR_SUCCESS;
}

/* Takes a message if it is one for this end: a sender or a receiver. */
static bool take(struct verbena_sdr_qp *qp, const struct control *c, const uint8_t *payload, uint64_t now_ns)
{
	switch (c->type) {
	case CONTROL_CTS:
		if (!(qp->mine.roles & INFO_SENDS))
			return false;
		take_cts(qp, c, payload);
		return true;
	case CONTROL_CTS_KNOWN:
		if (!(qp->mine.roles & INFO_RECEIVES))
			return false;
		grants_confirm(&qp->grants, number_near(qp->grants.known, get_be32(payload)));
		return true;
	case CONTROL_PING: answer_ping(qp, payload, c->flags & CONTROL_WANTS_COUNT); return true;
	case CONTROL_PONG: return take_pong(qp, payload);
	case CONTROL_COUNT: return take_count(qp, payload);
	default: return reliable_take(qp, c, payload, now_ns);
	}
}

void control_take(struct verbena_sdr_qp *qp, const uint8_t *message, size_t len, uint64_t now_ns)
{
	struct control c;

	pthread_mutex_lock(&qp->lock);
	if (!qp->connected || !control_decode(&c, message, len, qp->mine.tag) ||
	    !take(qp, &c, message + CONTROL_HEADER_LEN, now_ns))
		qp->dropped_control++;
	pthread_mutex_unlock(&qp->lock);
}
