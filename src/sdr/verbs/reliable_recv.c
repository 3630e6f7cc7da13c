/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The receiving end of reliable messages. Before anything is recovered both keys are revoked, so that no late packet
 * writes into what is being computed.
 */
#include <errno.h>
#include <stdlib.h>

#include "sdr/verbs/objects.h"

void reliable_receive_free(struct verbena_sdr_qp *qp, struct reliable_receive *m)
{
	qp->reliable.receives[shape_slot(&qp->shape, m->number)] = NULL;
	qp->reliable.open--;
	qp->reliable.two -= m->parts > 1;
	if (m->rx.scheme)
		m->rx.scheme->rx_free(&m->rx);
	message_code_free(&m->code);
	free(m);
}

uint32_t reliable_serve_receive(struct verbena_sdr_qp *qp, struct reliable_receive *m, uint64_t now_ns,
				uint64_t *due_ns)
{
	const struct scheme *scheme = m->rx.scheme;
	uint32_t news = scheme->look(&m->rx, now_ns);
	enum control_type type;
	uint8_t *payload;
	uint16_t len = 1;

	while (len && (payload = control_buffer(qp))) {
		len = scheme->rx_tell(&m->rx, payload, control_room(qp), &type, now_ns);
		if (len)
			control_post(qp, type, (uint32_t)m->number, len, 0);
	}
	if (scheme->rx_deadline(&m->rx) < *due_ns)
		*due_ns = scheme->rx_deadline(&m->rx);
	return news;
}

static bool has(const void *of, const struct ec_piece *p)
{
	const struct scheme_rx *rx = of;

	return rx->scheme->has(rx, p);
}

/* Without the lock: workers look at no more bits of this message, so the handle's owner alone uses it. */
static int recover(struct reliable_receive *m, const struct shape *shape, uint64_t *pieces)
{
	const struct scheme *scheme = m->rx.scheme;
	const struct ec_layout *l = &m->code.plan.layout;
	const struct ec_presence presence = {has, &m->rx};
	int err;

	if (!scheme->rx_code(&m->rx, &m->code.plan))
		return 0;
	m->bytes.piece = m->code.plan.chunks ? shape->chunk_bytes : shape->mtu;
	err = m->code.made ? 0 : message_code_make(&m->code, &m->bytes);
	for (uint32_t g = 0; !err && g < l->groups; g++) {
		uint32_t size = ec_layout_size(l, g), came = scheme->has_of(&m->rx, g);

		if (came == size)
			continue;
		err = ec_bytes_recover(&m->code.bytes, &presence, g);
		*pieces += size - came;
	}
	return err;
}

/* 1: it is whole; 0: not yet; or an error. The lock is held, but not while bytes are computed. */
static int whole(struct verbena_sdr_qp *qp, uint64_t number)
{
	struct reliable_receive *m = reliable_receive_of(qp, number);
	uint64_t pieces = 0;
	int err;

	if (!m)
		return -EINVAL;
	if (m->recovered)
		return 1;
	if (!m->rx.scheme->whole(&m->rx))
		return m->aborted ? -ECONNABORTED : 0;
	if (m->parts < 2)
		return 1;
	recv_revoke(qp, m->number);
	recv_revoke(qp, m->number + 1);
	pthread_mutex_unlock(&qp->lock);
	err = recover(m, &qp->shape, &pieces);
	pthread_mutex_lock(&qp->lock);
	qp->reliable.recovered += pieces;
	m->recovered = !err;
	return err ? err : 1;
}

int verbena_sdr_sr_recv_poll(const struct verbena_sdr_recv *recv, bool *done)
{
	return recv_poll_by(recv, done, whole);
}

int verbena_sdr_ec_recv_poll(const struct verbena_sdr_recv *recv, bool *done)
{
	return recv_poll_by(recv, done, whole);
}

int verbena_sdr_tail_recv_poll(const struct verbena_sdr_recv *recv, bool *done)
{
	return recv_poll_by(recv, done, whole);
}
