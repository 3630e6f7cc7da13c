/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The sending end of messages with codes over their tails. Parities grow while the tail is being sent, a few packets
 * of each group of a block at a time. Those of idle fill are made from the whole group, one when its turn comes: up to
 * 4 MiB are read for it.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/byteorder.h"
#include "sdr/verbs/objects.h"

enum { QUEUED_BYTES = 1 << 20, QUEUED_MAX = 1024, FOLD = 8, GUESSED_MBPS = 1000, LOOK_AGAIN_NS = 1000000 };

#define HOUR_NS UINT64_C(3600000000000)

void tailed_send_free(struct verbena_sdr_qp *qp, struct tailed_send *m)
{
	qp->tailed.sends[shape_slot(&qp->shape, m->number)] = NULL;
	qp->tailed.open--;
	tail_sender_free(&m->tail);
	tailed_code_free(&m->code);
	free(m);
}

/* ---- packets */

/* Folds the pieces of the tail up to `end`, which are of one block, if they are many or the last of the block. */
static void fold(struct tailed_send *m, uint32_t end)
{
	const struct ec_layout *l = &m->code.layout;
	uint32_t full = l->depth * l->data;

	while (m->folded < end) {
		uint32_t block_end = (m->folded / full + 1) * full, to;

		block_end = block_end < l->pieces ? block_end : l->pieces;
		to = end < block_end ? end : block_end;
		if (to < block_end && to - m->folded < FOLD * l->depth)
			return;
		ec_bytes_add(&m->code.bytes, m->folded, to - m->folded);
		m->folded = to;
	}
}

/* Without memory for the code the message fails. */
static bool code_ready(struct verbena_sdr_qp *qp, struct tailed_send *m)
{
	struct scratch *s = &qp->coded.out[shape_slot(&qp->shape, m->number + 1)];
	const struct ec_bytes all = {.data = m->data, .bytes = m->bytes, .parity = s->memory, .piece = qp->shape.mtu};

	if (!m->tail.planned || !m->tail.plan.parity || m->code.made)
		return true;
	return !tailed_code_make(&m->code, &m->tail.plan, m->tail.unasked, &all);
}

static void queue(struct verbena_sdr_qp *qp, struct tailed_send *m, const struct tail_send *t)
{
	const struct scratch *s = &qp->coded.out[shape_slot(&qp->shape, m->number + 1)];
	uint64_t at = (uint64_t)t->packet * qp->shape.mtu;
	uint64_t left = t->parity ? qp->shape.mtu : m->bytes - at;
	const struct send_block b = {
		.addr = (uintptr_t)(t->parity ? s->memory : m->data) + at,
		.bytes = left < qp->shape.mtu ? left : qp->shape.mtu,
		.offset = at,
		.lkey = t->parity ? s->lkey : m->lkey,
		.fill = t->fill,
	};

	if (!t->parity && m->code.made && t->packet >= m->tail.plan.tail)
		fold(m, t->packet - m->tail.plan.tail + 1);
	sender_add_packets(&qp->sender, m->number + t->parity, &b);
}

/* The queue has more room than this takes, so that no packet is taken from the tail's sender in vain. */
static uint32_t feed(struct verbena_sdr_qp *qp, struct tailed_send *m, uint64_t now_ns)
{
	uint32_t most = QUEUED_BYTES / qp->shape.mtu, room, n = 0;
	struct tail_send t;

	room = send_room(qp, qp->shape.mtu, m->tail.config.rtt_ns, most < QUEUED_MAX ? most : QUEUED_MAX);
	while (sender_queued(&qp->sender) < room && tail_sender_next(&m->tail, &t, now_ns)) {
		if (!code_ready(qp, m)) {
			tail_sender_finish(&m->tail, SR_TRIED_TOO_OFTEN);
			break;
		}
		queue(qp, m, &t);
		n++;
	}
	return n;
}

/* One parity of the oldest message that has any to give. */
static uint32_t fill_one(struct verbena_sdr_qp *qp, uint64_t now_ns, uint64_t *due_ns)
{
	uint64_t sent = qp->sender.started;

	for (uint64_t n = sent > qp->shape.slots ? sent - qp->shape.slots : 0; n < sent; n++) {
		struct tailed_send *m = tailed_send_of(qp, n);
		struct tail_send t;

		if (!m)
			continue;
		if (tail_sender_fill(&m->tail, &t, now_ns)) {
			ec_bytes_make(&m->code.bytes, t.packet % m->tail.plan.groups, t.packet / m->tail.plan.groups,
				      1);
			queue(qp, m, &t);
			qp->tailed.fills++;
			return 1;
		}
		if (tail_sender_fill_deadline(&m->tail) < *due_ns)
			*due_ns = tail_sender_fill_deadline(&m->tail);
	}
	return 0;
}

uint32_t tailed_fill(struct verbena_sdr_qp *qp, uint64_t now_ns, uint64_t *due_ns)
{
	uint64_t due = UINT64_MAX;
	uint32_t n = 0;

	if (!qp->mine.fills || !qp->tailed.open || qp->broken)
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

static void tell_plan(struct verbena_sdr_qp *qp, struct tailed_send *m, uint64_t now_ns)
{
	uint8_t *payload = control_buffer(qp);

	if (!payload)
		return;
	/* That all was sent is said once all has left. */
	if (tail_sender_all_sent(&m->tail) &&
	    (!sender_left(&qp->sender, m->number) || !sender_left(&qp->sender, m->number + 1)))
		return;
	if (tail_sender_tell(&m->tail, payload, now_ns))
		control_post(qp, CONTROL_TAIL_PLAN, (uint32_t)m->number, TAIL_PLAN_LEN, 0);
}

/* Ends both messages here and, if this end has given up, sends an ABORT to the peer. */
static void wind_up(struct verbena_sdr_qp *qp, struct tailed_send *m)
{
	uint8_t *payload;

	if (m->ended)
		return;
	m->ended = true;
	sender_end(&qp->sender, m->number);
	sender_end(&qp->sender, m->number + 1);
	qp->coded.pieces += m->tail.told.seen;
	qp->coded.lost += m->tail.told.lost;
	payload = control_buffer(qp);
	if (m->tail.end == SR_DONE || m->tail.end == SR_ABORTED || !payload)
		return;
	put_be16(payload, m->tail.end);
	control_post(qp, CONTROL_ABORT, (uint32_t)m->number, 2, 0);
}

uint32_t tailed_serve_send(struct verbena_sdr_qp *qp, struct tailed_send *m, uint64_t now_ns, uint64_t *due_ns)
{
	uint32_t done = 0;
	uint64_t at_ns;

	tail_sender_expire(&m->tail, now_ns);
	if (m->tail.end == SR_RUNNING) {
		done = feed(qp, m, now_ns);
		tell_plan(qp, m, now_ns);
	}
	if (m->tail.end != SR_RUNNING) {
		wind_up(qp, m);
		return done;
	}
	/* The word that all was sent waits until the packets have left: a millisecond later is early enough to look. */
	at_ns = tail_sender_deadline(&m->tail);
	if (at_ns <= now_ns)
		at_ns = now_ns + 1000000;
	if (at_ns < *due_ns)
		*due_ns = at_ns;
	return done;
}

/* ---- calls */

void verbena_sdr_tail_attr_init(struct verbena_sdr_tail_attr *attr)
{
	*attr = (struct verbena_sdr_tail_attr){.rtt_ns = 1000000};
}

static int config_read(const struct verbena_sdr_qp *qp, const struct verbena_sdr_tail_attr *a, uint64_t parity_bytes,
		       struct tail_config *c)
{
	uint64_t limit_mbps = qp->rate_bps / 1000000, usual_mbps = limit_mbps ? limit_mbps : GUESSED_MBPS;
	uint64_t mbps = a->rate_mbps ? a->rate_mbps : usual_mbps;

	if (!a->rtt_ns || a->rtt_ns > HOUR_NS / 1000 || a->timeout_ns >= HOUR_NS || !(a->loss >= 0 && a->loss <= 0.5) ||
	    mbps > 100000000)
		return -EINVAL;
	*c = (struct tail_config){
		.rtt_ns = tailed_rtt_ns(a->rtt_ns),
		.packet_ns = (uint64_t)qp->shape.mtu * 8000 / mbps + 1,
		.timeout_ns = a->timeout_ns ? a->timeout_ns : 100 * tailed_rtt_ns(a->rtt_ns) + UINT64_C(10000000000),
		.loss = a->loss,
		.parity_packets = (uint32_t)(parity_bytes / qp->shape.mtu),
		.fill = qp->mine.fills,
	};
	c->behind_ns = (uint64_t)((double)a->behind * 8000 / (double)mbps);
	return 0;
}

/* Both messages are granted and their slots free. */
static int open_send(struct verbena_sdr_qp *qp, const struct tail_config *c, const struct send_block *b,
		     uint64_t parity_bytes, uint64_t *number)
{
	struct scratch *s = &qp->coded.out[shape_slot(&qp->shape, qp->sender.started + 1)];
	struct tailed_send *m = calloc(1, sizeof(*m));
	uint64_t parities;
	int err = m ? scratch_take(qp, s, parity_bytes) : -ENOMEM;

	if (!err)
		err = tail_sender_init(&m->tail, c, shape_packets(&qp->shape, b->bytes), &qp->tailed.estimate,
				       sdr_now_ns(), &sdr_heap);
	if (err) {
		free(m);
		return err;
	}
	sender_start(&qp->sender, NULL, &m->number);
	sender_start(&qp->sender, NULL, &parities);
	m->data = (uint8_t *)(uintptr_t)b->addr;
	m->bytes = b->bytes;
	m->lkey = b->lkey;
	qp->tailed.sends[shape_slot(&qp->shape, m->number)] = m;
	qp->tailed.open++;
	*number = m->number;
	return 0;
}

/* The lock is held. */
static int send(struct verbena_sdr_qp *qp, const struct verbena_sdr_block *block, const struct verbena_sdr_tail_attr *a,
		uint64_t *number)
{
	uint64_t parity, due_ns = UINT64_MAX;
	struct tail_config c;
	struct send_block b;
	int err = coded_send_ready(qp, block, &b, &parity);

	if (!err)
		err = config_read(qp, a, parity, &c);
	if (!err)
		err = open_send(qp, &c, &b, parity, number);
	if (!err)
		tailed_serve(qp, sdr_now_ns(), &due_ns);
	return err;
}

int verbena_sdr_tail_send(struct verbena_sdr_qp *qp, const struct verbena_sdr_block *block,
			  const struct verbena_sdr_tail_attr *attr, struct verbena_sdr_send *sent)
{
	struct verbena_sdr_tail_attr defaults;
	uint64_t number = 0;
	int err;

	if (!qp || !sent)
		return sdr_fail(EINVAL);
	verbena_sdr_tail_attr_init(&defaults);
	pthread_mutex_lock(&qp->lock);
	err = send(qp, block, attr ? attr : &defaults, &number);
	if (!err)
		*sent = (struct verbena_sdr_send){qp, number};
	err = send_settle(qp, err);
	if (err == VERBENA_SDR_SUCCESS)
		worker_wake(qp->owner);
	return err;
}

/* 1: the peer has it; 0: not yet; or why it never will. */
static int outcome(struct verbena_sdr_qp *qp, uint64_t number)
{
	struct tailed_send *m = tailed_send_of(qp, number);
	int r;

	if (!m)
		return -EINVAL;
	r = coded_outcome(qp, number, m->tail.end, m->ended);
	if (r && !qp->broken)
		tailed_send_free(qp, m);
	return r;
}

int verbena_sdr_tail_poll(const struct verbena_sdr_send *sent, bool *done)
{
	return send_poll_by(sent, done, outcome);
}

int verbena_sdr_tail_loss_get(struct verbena_sdr_qp *qp, double *loss)
{
	if (!qp || !loss)
		return sdr_fail(EINVAL);
	pthread_mutex_lock(&qp->lock);
	*loss = loss_estimate_high(&qp->tailed.estimate);
	pthread_mutex_unlock(&qp->lock);
	return VERBENA_SDR_SUCCESS;
}
