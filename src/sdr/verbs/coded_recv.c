/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The receiving end of coded messages. How a message is coded is the sender's choice: until its plan
 * has come, pieces are only counted. Before anything is recovered both keys are revoked, so that no
 * late packet writes into what is being computed.
 */
#include <errno.h>
#include <stdlib.h>

#include "sdr/ec/kernel.h"
#include "sdr/ec_plan.h"
#include "sdr/verbs/coded.h"
#include "sdr/verbs/objects.h"

static void plan_free(struct coded_receive *m)
{
	if (!m->planned)
		return;
	ec_receiver_free(&m->ec);
	ec_code_fini(&m->code);
	free(m->bytes.spare);
	m->planned = false;
}

void coded_receive_free(struct verbena_sdr_qp *qp, struct coded_receive *m)
{
	qp->coded.receives[shape_slot(&qp->shape, m->number)] = NULL;
	qp->coded.open--;
	plan_free(m);
	free(m);
}

uint64_t coded_room(const struct shape *s, uint64_t bytes)
{
	uint64_t room = (uint64_t)shape_chunks(s, bytes / 2) * s->chunk_bytes;

	room += 16 * (uint64_t)s->mtu > s->chunk_bytes ? 16 * (uint64_t)s->mtu : s->chunk_bytes;
	return room < s->message_bytes ? room : s->message_bytes;
}

/* ---- plans */

static int plan_open(struct verbena_sdr_qp *qp, struct coded_receive *m, const struct ec_config *c, bool chunks,
		     uint64_t now_ns)
{
	const struct slot *data = receiver_slot(&qp->receiver, m->number);
	const struct slot *parity = receiver_slot(&qp->receiver, m->number + 1);
	int err = ec_code_init(&m->code, c->kind, c->layout.data, c->layout.parity_max, ec_kernel_best(), &sdr_heap);

	if (err)
		return err;
	m->bytes.spare = calloc(1, EC_BYTES_SPARE(m->bytes.piece));
	if (m->bytes.spare)
		err = ec_receiver_init(&m->ec, c, (const uint64_t *)(chunks ? data->chunk_bits : data->packet_bits),
				       (const uint64_t *)(chunks ? parity->chunk_bits : parity->packet_bits), now_ns,
				       &sdr_heap);
	if (m->bytes.spare && !err) {
		m->bytes.layout = &m->ec.config.layout;
		m->planned = true;
		return 0;
	}
	ec_code_fini(&m->code);
	free(m->bytes.spare);
	return -ENOMEM;
}

/* The first plan counts. Without memory for it the plan is ignored; the sender repeats it. */
static bool take_plan(struct verbena_sdr_qp *qp, struct coded_receive *m, const uint8_t *payload, uint64_t now_ns)
{
	bool chunks = ec_plan_chunks(payload);
	uint32_t piece = chunks ? qp->shape.chunk_bytes : qp->shape.mtu;
	uint64_t room = coded_room(&qp->shape, m->bytes.bytes) / piece;
	uint32_t pieces = (uint32_t)((m->bytes.bytes + piece - 1) / piece);
	struct ec_config c;

	if (m->planned)
		return true;
	if (!ec_plan_decode(&c, payload, pieces, room, RTT_NS_MIN))
		return false;
	m->bytes.piece = piece;
	plan_open(qp, m, &c, chunks, now_ns);
	return true;
}

bool coded_receive_take(struct verbena_sdr_qp *qp, struct coded_receive *m, const struct control *c,
			const uint8_t *payload, uint64_t now_ns)
{
	switch (c->type) {
	case CONTROL_EC_PLAN: return take_plan(qp, m, payload, now_ns);
	case CONTROL_ABORT: m->aborted = true; return true;
	default: return !m->planned || ec_receiver_take(&m->ec, c->type, payload, now_ns);
	}
}

uint32_t coded_serve_receive(struct verbena_sdr_qp *qp, struct coded_receive *m, uint64_t now_ns, uint64_t *due_ns)
{
	enum control_type type;
	uint8_t *payload;
	uint16_t len = 1;
	bool news;

	if (!m->planned)
		return 0;
	news = ec_receiver_look(&m->ec, now_ns);
	while (len && (payload = control_buffer(qp))) {
		len = ec_receiver_tell(&m->ec, payload, control_room(qp), &type, now_ns);
		if (len)
			control_post(qp, type, (uint32_t)m->number, len, 0);
	}
	if (ec_receiver_deadline(&m->ec) < *due_ns)
		*due_ns = ec_receiver_deadline(&m->ec);
	return news;
}

bool coded_completed(struct verbena_sdr_qp *qp, uint64_t number, uint64_t now_ns)
{
	struct coded_receive *m = coded_receive_of(qp, number);
	struct finished f = {.number = number, .known = true, .coded = true};

	if (!m)
		return false;
	if (m->planned) {
		/* What has come since may be all that was missing, but it was not recovered. */
		f.whole = m->recovered;
		f.chunks = m->ec.config.layout.pieces - m->ec.came;
	}
	coded_receive_free(qp, m);
	repeat_finish(qp, &f);
	return true;
}

/* ---- calls */

static int post(struct verbena_sdr_qp *qp, const struct verbena_sdr_recv_attr *attr, uint64_t *number)
{
	struct coded_receive *m = calloc(1, sizeof(*m));
	int err = m ? coded_recv_open(qp, attr, number) : -ENOMEM;

	if (err) {
		free(m);
		return err;
	}
	m->number = *number;
	m->bytes = (struct ec_bytes){.code = &m->code,
				     .data = attr->address,
				     .bytes = attr->max_length,
				     .parity = qp->coded.in[shape_slot(&qp->shape, *number + 1)].memory};
	qp->coded.receives[shape_slot(&qp->shape, *number)] = m;
	qp->coded.open++;
	return 0;
}

int verbena_sdr_ec_recv_post(struct verbena_sdr_qp *qp, const struct verbena_sdr_recv_attr *attr,
			     struct verbena_sdr_recv *recv)
{
	uint64_t number = 0;
	int err;

	if (!qp || !attr || !recv)
		return sdr_fail(EINVAL);
	pthread_mutex_lock(&qp->lock);
	err = coded_recv_ready(qp, attr->max_length);
	if (!err)
		err = post(qp, attr, &number);
	return recv_settle(qp, err, number, recv);
}

static bool has(const void *of, const struct ec_piece *p)
{
	return ec_receiver_has(of, p);
}

/* Without the lock: workers look at no more bits of this message, so the handle's owner alone uses it. */
static int recover(struct coded_receive *m, uint64_t *pieces)
{
	const struct ec_presence presence = {has, &m->ec};
	const struct ec_layout *l = m->bytes.layout;
	int err = 0;

	for (uint32_t g = 0; !err && g < l->groups; g++) {
		uint32_t size = ec_layout_size(l, g);

		if (m->ec.group[g].data == size)
			continue;
		err = ec_bytes_recover(&m->bytes, &presence, g);
		*pieces += size - m->ec.group[g].data;
	}
	return err;
}

/* 1: it is whole; 0: not yet; or an error. The lock is held, but not while bytes are computed. */
static int whole(struct verbena_sdr_qp *qp, uint64_t number)
{
	struct coded_receive *m = coded_receive_of(qp, number);
	uint64_t pieces = 0;
	int err;

	if (!m)
		return -EINVAL;
	if (m->recovered)
		return 1;
	if (!m->planned || !ec_receiver_whole(&m->ec))
		return m->aborted ? -ECONNABORTED : 0;
	recv_revoke(qp, m->number);
	recv_revoke(qp, m->number + 1);
	pthread_mutex_unlock(&qp->lock);
	err = recover(m, &pieces);
	pthread_mutex_lock(&qp->lock);
	qp->coded.recovered += pieces;
	m->recovered = !err;
	return err ? err : 1;
}

int verbena_sdr_ec_recv_poll(const struct verbena_sdr_recv *recv, bool *done)
{
	return recv_poll_by(recv, done, whole);
}
