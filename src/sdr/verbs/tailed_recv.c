/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The receiving end of messages with codes over their tails. A look at the
 * bitmaps tells which packets came since the look before. Before anything is recovered both keys are revoked, so that
 * no late packet overwrites what is being computed.
 */
#include <errno.h>
#include <stdlib.h>

#include "sdr/verbs/objects.h"

void tailed_receive_free(struct verbena_sdr_qp *qp, struct tailed_receive *m)
{
	qp->tailed.receives[shape_slot(&qp->shape, m->number)] = NULL;
	qp->tailed.open--;
	tail_receiver_free(&m->tail);
	tailed_code_free(&m->code);
	free(m);
}

/* ---- what has come */

/* `packets`: how many the state machine has bits for. */
static uint32_t look_at(struct tailed_receive *m, bool parity, const struct slot *slot, uint32_t packets,
			uint64_t now_ns)
{
	const uint64_t *known = parity ? m->tail.parity_bits : m->tail.bits;
	uint32_t n = 0;

	packets = packets < slot->packets ? packets : slot->packets;
	for (uint32_t i = 0; i < (packets + 63) / 64; i++) {
		uint64_t fresh = atomic_load_explicit(&slot->packet_bits[i], memory_order_acquire) & ~known[i];

		for (; fresh; fresh &= fresh - 1, n++)
			tail_receiver_came(&m->tail, parity, i * 64 + (uint32_t)__builtin_ctzll(fresh), now_ns);
		if (m->tail.state.whole)
			break;
	}
	return n;
}

static uint32_t look(struct verbena_sdr_qp *qp, struct tailed_receive *m, uint64_t now_ns)
{
	const struct slot *data = receiver_slot(&qp->receiver, m->number);
	const struct slot *parity = receiver_slot(&qp->receiver, m->number + 1);

	/* Then no bit is looked at any more: the code recovers from what has been seen. */
	if (m->tail.state.whole || !data || !parity)
		return 0;
	return look_at(m, false, data, m->tail.packets, now_ns) +
	       look_at(m, true, parity, m->tail.parity_packets, now_ns);
}

uint32_t tailed_serve_receive(struct verbena_sdr_qp *qp, struct tailed_receive *m, uint64_t now_ns, uint64_t *due_ns)
{
	uint32_t news = look(qp, m, now_ns);
	enum control_type type;
	uint8_t *payload;
	uint16_t len = 1;

	tail_receiver_expire(&m->tail, now_ns);
	while (len && (payload = control_buffer(qp))) {
		len = tail_receiver_tell(&m->tail, payload, control_room(qp), &type, now_ns);
		if (len)
			control_post(qp, type, (uint32_t)m->number, len, 0);
	}
	if (tail_receiver_deadline(&m->tail) < *due_ns)
		*due_ns = tail_receiver_deadline(&m->tail);
	return news;
}

bool tailed_completed(struct verbena_sdr_qp *qp, uint64_t number, uint64_t now_ns)
{
	struct tailed_receive *m = tailed_receive_of(qp, number);
	struct finished f = {.number = number, .known = true, .tailed = true};

	if (!m)
		return false;
	/* What has come since may be all that was missing, but it was not recovered. */
	f.whole = m->recovered;
	f.state = m->tail.state;
	tailed_receive_free(qp, m);
	repeat_finish(qp, &f);
	return true;
}

/* ---- calls */

static int post(struct verbena_sdr_qp *qp, const struct verbena_sdr_recv_attr *attr, uint64_t rtt_ns, uint64_t *number)
{
	uint32_t packets = shape_packets(&qp->shape, attr->max_length);
	uint32_t parities = shape_packets(&qp->shape, coded_room(&qp->shape, attr->max_length));
	struct tailed_receive *m = calloc(1, sizeof(*m));
	int err = m ? tail_receiver_init(&m->tail, tailed_rtt_ns(rtt_ns), packets, parities, sdr_now_ns(), &sdr_heap)
		    : -ENOMEM;

	if (err) {
		free(m);
		return err;
	}
	err = coded_recv_open(qp, attr, &m->number);
	if (err) {
		tail_receiver_free(&m->tail);
		free(m);
		return err;
	}
	m->data = attr->address;
	m->bytes = attr->max_length;
	qp->tailed.receives[shape_slot(&qp->shape, m->number)] = m;
	qp->tailed.open++;
	*number = m->number;
	return 0;
}

int verbena_sdr_tail_recv_post(struct verbena_sdr_qp *qp, const struct verbena_sdr_recv_attr *attr, uint64_t rtt_ns,
			       struct verbena_sdr_recv *recv)
{
	uint64_t number = 0;
	int err;

	if (!qp || !attr || !recv || rtt_ns > UINT64_C(3600000000))
		return sdr_fail(EINVAL);
	pthread_mutex_lock(&qp->lock);
	err = coded_recv_ready(qp, attr->max_length);
	if (!err)
		err = post(qp, attr, rtt_ns, &number);
	return recv_settle(qp, err, number, recv);
}

static bool has(const void *of, const struct ec_piece *p)
{
	const struct tailed_receive *m = of;
	uint32_t i = p->parity ? p->at : p->at + m->tail.plan.tail;
	const uint64_t *bits = p->parity ? m->tail.parity_bits : m->tail.bits;

	return bits[i / 64] >> i % 64 & 1;
}

/* Without the lock: workers look at no more bits of this message, so the handle's owner alone uses it. */
static int recover(struct tailed_receive *m, uint32_t mtu, uint8_t *parity, uint64_t *pieces)
{
	const struct ec_presence presence = {has, m};
	const struct tail_plan *p = &m->tail.plan;
	const struct ec_bytes all = {.data = m->data, .bytes = m->bytes, .parity = parity, .piece = mtu};
	int err = 0;

	if (m->tail.have == m->tail.packets)
		return 0;
	if (!m->code.made)
		err = tailed_code_make(&m->code, p, p->parity, &all);
	for (uint32_t g = 0; !err && g < p->groups; g++) {
		uint32_t size = tail_plan_size(p, g);

		if (m->tail.group[g].data == size)
			continue;
		err = ec_bytes_recover(&m->code.bytes, &presence, g);
		*pieces += size - m->tail.group[g].data;
	}
	return err;
}

/* 1: it is whole; 0: not yet; or an error. The lock is held, but not while bytes are computed. */
static int whole(struct verbena_sdr_qp *qp, uint64_t number)
{
	uint8_t *parity = qp->coded.in[shape_slot(&qp->shape, number + 1)].memory;
	struct tailed_receive *m = tailed_receive_of(qp, number);
	uint64_t pieces = 0;
	int err;

	if (!m)
		return -EINVAL;
	if (m->recovered)
		return 1;
	if (!tail_receiver_whole(&m->tail))
		return m->aborted ? -ECONNABORTED : 0;
	recv_revoke(qp, m->number);
	recv_revoke(qp, m->number + 1);
	pthread_mutex_unlock(&qp->lock);
	err = recover(m, qp->shape.mtu, parity, &pieces);
	pthread_mutex_lock(&qp->lock);
	qp->coded.recovered += pieces;
	m->recovered = !err;
	return err ? err : 1;
}

int verbena_sdr_tail_recv_poll(const struct verbena_sdr_recv *recv, bool *done)
{
	return recv_poll_by(recv, done, whole);
}
