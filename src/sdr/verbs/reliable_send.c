/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The sending end of reliable messages. Pieces go to the sender's queue a few at a time, so that timers start about
 * when they leave, and one that goes again does not stand behind many new ones.
 *
 * Parities grow while what they are of is being sent: a few pieces of each group of a block are added at a time, so
 * that no block ends with a pause. Parities that are asked for, and those of idle fill, are made from the whole group,
 * of which up to 4 MiB are read.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/byteorder.h"
#include "sdr/verbs/objects.h"

/* FOLD: pieces of each group of a block. */
enum { FOLD = 8, LOOK_AGAIN_NS = 1000000 };

void reliable_send_free(struct verbena_sdr_qp *qp, struct reliable_send *m)
{
	qp->reliable.sends[shape_slot(&qp->shape, m->number)] = NULL;
	qp->reliable.open--;
	qp->reliable.two -= m->parts > 1;
	m->tx.scheme->tx_free(&m->tx);
	message_code_free(&m->code);
	free(m);
}

/* ---- pieces */

/* Adds the coded pieces up to `end` to their parities, of each block if they are many or the last of it. A piece
 * is added when it is sent for the first time, and those come in order. */
static void fold(struct reliable_send *m, uint32_t end)
{
	const struct ec_layout *l = m->code.bytes.layout;

	if (m->folded < l->first)
		m->folded = l->first;
	while (m->folded < end) {
		struct ec_block b = ec_layout_block(l, ec_layout_block_of(l, m->folded));
		uint32_t block_end = b.at + b.pieces, to = end < block_end ? end : block_end;

		if (to < block_end && to - m->folded < FOLD * l->depth)
			return;
		ec_bytes_add(&m->code.bytes, m->folded, to - m->folded);
		m->folded = to;
	}
}

/* Its bytes are final when this returns. */
static void prepare(struct reliable_send *m, const struct scheme_piece *p)
{
	struct ec_piece parity;

	if (p->made) {
		parity = ec_layout_parity(m->code.bytes.layout, p->at);
		ec_bytes_make(&m->code.bytes, parity.group, parity.index, 1);
	} else if (m->code.made && !p->parity) {
		fold(m, p->at + 1);
	}
}

static void queue(struct verbena_sdr_qp *qp, struct reliable_send *m, const struct scheme_piece *p)
{
	const struct message_bytes *of = &m->bytes;
	uint64_t at = (uint64_t)p->at * of->piece, left = p->parity ? of->piece : of->bytes - at;
	const struct send_block b = {
		.addr = (uintptr_t)(p->parity ? of->parity : of->data) + at,
		.bytes = left < of->piece ? left : of->piece,
		.offset = at,
		.lkey = p->parity ? m->parity_lkey : m->lkey,
		.fill = p->fill,
	};

	qp->reliable.resent += p->resent ? shape_packets(&qp->shape, b.bytes) : 0;
	prepare(m, p);
	sender_add_packets(&qp->sender, m->number + p->parity, &b);
}

/* The queue has more room than this takes, so that no piece is taken from a scheme in vain. Without memory for its code
 * a message fails. */
static uint32_t feed(struct verbena_sdr_qp *qp, struct reliable_send *m, uint64_t now_ns)
{
	uint32_t room = send_room(qp, m->bytes.piece, m->rtt_ns, m->queued), n = 0;
	struct scheme_piece p;

	for (; sender_queued(&qp->sender) < room && m->tx.scheme->next(&m->tx, &p, now_ns); n++) {
		if (reliable_code_ready(m)) {
			m->tx.scheme->finish(&m->tx, SR_TRIED_TOO_OFTEN);
			break;
		}
		queue(qp, m, &p);
		m->tx.scheme->sent(&m->tx, &p, now_ns);
	}
	return n;
}

/* One parity of the oldest message that has any to give. */
static uint32_t fill_one(struct verbena_sdr_qp *qp, uint64_t now_ns, uint64_t *due_ns)
{
	uint64_t sent = qp->sender.started;

	for (uint64_t n = sent > qp->shape.slots ? sent - qp->shape.slots : 0; n < sent; n++) {
		struct reliable_send *m = reliable_send_of(qp, n);
		struct scheme_piece p;

		if (!m || !m->tx.scheme->fill)
			continue;
		if (m->tx.scheme->fill(&m->tx, &p, now_ns)) {
			queue(qp, m, &p);
			qp->reliable.fills++;
			return 1;
		}
		if (m->tx.scheme->fill_deadline(&m->tx) < *due_ns)
			*due_ns = m->tx.scheme->fill_deadline(&m->tx);
	}
	return 0;
}

uint32_t reliable_fill(struct verbena_sdr_qp *qp, uint64_t now_ns, uint64_t *due_ns)
{
	uint64_t due = UINT64_MAX;
	uint32_t n = 0;

	if (!qp->mine.fills || !qp->reliable.open || qp->broken)
		return 0;
	if (sender_idle(&qp->sender) && !qp->in_flight && !send_others(qp))
		n = fill_one(qp, now_ns, &due);
	else
		due = now_ns + LOOK_AGAIN_NS;
	if (due < *due_ns)
		*due_ns = due;
	return n;
}

/* ---- control messages */

static bool has_left(const struct verbena_sdr_qp *qp, const struct reliable_send *m)
{
	return sender_left(&qp->sender, m->number) && (m->parts < 2 || sender_left(&qp->sender, m->number + 1));
}

static void tell(struct verbena_sdr_qp *qp, struct reliable_send *m, uint64_t now_ns)
{
	enum control_type type;
	uint8_t *payload;

	while ((payload = control_buffer(qp))) {
		int len = m->tx.scheme->tx_tell(&m->tx, payload, &type, has_left(qp, m), now_ns);

		if (len < 0)
			return;
		control_post(qp, type, (uint32_t)m->number, (uint16_t)len, 0);
	}
}

/* Ends the message here and, if this end has given up, sends an ABORT to the peer. */
static void wind_up(struct verbena_sdr_qp *qp, struct reliable_send *m)
{
	enum sr_end end = m->tx.scheme->end(&m->tx);
	uint8_t *payload;

	if (m->ended)
		return;
	m->ended = true;
	for (uint32_t i = 0; i < m->parts; i++)
		sender_end(&qp->sender, m->number + i);
	if (m->tx.scheme->count)
		m->tx.scheme->count(&m->tx, &qp->reliable.pieces, &qp->reliable.lost);
	payload = control_buffer(qp);
	if (end == SR_DONE || end == SR_ABORTED || !payload)
		return;
	put_be16(payload, end);
	control_post(qp, CONTROL_ABORT, (uint32_t)m->number, 2, 0);
}

uint32_t reliable_serve_send(struct verbena_sdr_qp *qp, struct reliable_send *m, uint64_t now_ns, uint64_t *due_ns)
{
	const struct scheme *scheme = m->tx.scheme;
	uint32_t done = 0;
	uint64_t at_ns;

	scheme->tx_expire(&m->tx, now_ns);
	if (scheme->end(&m->tx) == SR_RUNNING) {
		done = feed(qp, m, now_ns);
		tell(qp, m, now_ns);
	}
	if (scheme->end(&m->tx) != SR_RUNNING) {
		wind_up(qp, m);
		return done;
	}
	/* A word that all was sent waits until it has left: a millisecond later is early enough to look. */
	at_ns = scheme->tx_deadline(&m->tx);
	if (at_ns <= now_ns)
		at_ns = now_ns + LOOK_AGAIN_NS;
	if (at_ns < *due_ns)
		*due_ns = at_ns;
	return done;
}

/* ---- calls */

int reliable_send_settle(struct verbena_sdr_qp *qp, int err, const struct reliable_send *m,
			 struct verbena_sdr_send *sent)
{
	uint64_t due_ns = UINT64_MAX;

	if (!err) {
		*sent = (struct verbena_sdr_send){qp, m->number};
		reliable_serve(qp, sdr_now_ns(), &due_ns);
	}
	err = send_settle(qp, err);
	if (err == VERBENA_SDR_SUCCESS)
		worker_wake(qp->owner);
	return err;
}

/* 1: the peer has it; 0: not yet; or why it never will. Once all has left, its numbers are free. */
static int outcome(struct verbena_sdr_qp *qp, uint64_t number)
{
	struct reliable_send *m = reliable_send_of(qp, number);
	enum sr_end end;

	if (!m)
		return -EINVAL;
	if (qp->broken)
		return -EIO;
	end = m->tx.scheme->end(&m->tx);
	if (end == SR_RUNNING || !m->ended || !has_left(qp, m))
		return 0;
	for (uint32_t i = 0; i < m->parts; i++)
		sender_done(&qp->sender, number + i);
	reliable_send_free(qp, m);
	return end == SR_DONE ? 1 : end == SR_ABORTED ? -ECONNABORTED : -ETIMEDOUT;
}

int verbena_sdr_sr_poll(const struct verbena_sdr_send *send, bool *done)
{
	return send_poll_by(send, done, outcome);
}

int verbena_sdr_ec_poll(const struct verbena_sdr_send *send, bool *done)
{
	return send_poll_by(send, done, outcome);
}

int verbena_sdr_tail_poll(const struct verbena_sdr_send *send, bool *done)
{
	return send_poll_by(send, done, outcome);
}
