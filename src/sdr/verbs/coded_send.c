/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The sending end of coded messages. Parities grow while the data is being sent: a few pieces at a
 * time are folded into those of their groups, so that no block ends with a pause. Parities that are
 * asked for are made from the whole group, as many at a time as are owed.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/byteorder.h"
#include "sdr/ec/kernel.h"
#include "sdr/ec_choice.h"
#include "sdr/ec_plan.h"
#include "sdr/verbs/coded.h"
#include "sdr/verbs/objects.h"

/* PLANS: how often a plan is sent when nothing is asked. FOLD: pieces of each group of a block. */
enum { QUEUED_BYTES = 1 << 20, QUEUED_MIN = 16, PLANS = 3, FOLD = 8 };

void coded_send_free(struct verbena_sdr_qp *qp, struct coded_send *m)
{
	qp->coded.sends[shape_slot(&qp->shape, m->number)] = NULL;
	qp->coded.open--;
	ec_sender_free(&m->ec);
	ec_code_fini(&m->code);
	free(m->bytes.spare);
	free(m);
}

/* ---- pieces */

/* The block that a piece belongs to has the data pieces from *from up to the returned one. */
static uint32_t block_end(const struct ec_layout *l, uint32_t block)
{
	uint64_t end = ((uint64_t)block + 1) * l->depth * l->data;

	return end < l->pieces ? (uint32_t)end : l->pieces;
}

/* Folds the pieces up to `end`, which are of one block, if they are many or the last of the block. */
static void fold(struct coded_send *m, uint32_t end, bool all)
{
	const struct ec_layout *l = m->bytes.layout;

	if (end <= m->folded || (!all && end - m->folded < FOLD * l->depth))
		return;
	ec_bytes_add(&m->bytes, m->folded, end - m->folded);
	m->folded = end;
}

/* A piece is folded when it is sent for the first time, and those come in order. */
static void prepare(struct coded_send *m, const struct ec_piece *p)
{
	const struct ec_layout *l = m->bytes.layout;
	uint32_t block = ec_layout_block(l, p->group), owed = m->ec.group[p->group].owed;

	if (!p->parity) {
		if (p->at >= m->folded)
			fold(m, p->at + 1, p->at + 1 == block_end(l, block));
		return;
	}
	if (!owed) {
		fold(m, block_end(l, block), true);
		return;
	}
	if (p->group == m->made_group && p->index < m->made_end)
		return;
	ec_bytes_make(&m->bytes, p->group, p->index, owed);
	m->made_group = p->group;
	m->made_end = p->index + owed;
}

static struct send_block piece_block(const struct verbena_sdr_qp *qp, const struct coded_send *m,
				     const struct ec_piece *p)
{
	const struct scratch *s = &qp->coded.out[shape_slot(&qp->shape, m->number + 1)];
	uint64_t at = (uint64_t)p->at * m->bytes.piece;
	uint64_t left = p->parity ? m->bytes.piece : m->bytes.bytes - at;

	return (struct send_block){
		.addr = (uintptr_t)(p->parity ? m->bytes.parity : m->bytes.data) + at,
		.bytes = left < m->bytes.piece ? left : m->bytes.piece,
		.offset = at,
		.lkey = p->parity ? s->lkey : m->lkey,
	};
}

static uint32_t feed(struct verbena_sdr_qp *qp, struct coded_send *m, uint64_t now_ns)
{
	uint32_t most = QUEUED_BYTES / m->bytes.piece, room, n = 0;
	struct ec_piece p;

	room = send_room(qp, m->bytes.piece, m->ec.config.rtt_ns, most > QUEUED_MIN ? most : QUEUED_MIN);
	while (sender_queued(&qp->sender) < room && ec_sender_next(&m->ec, &p)) {
		struct send_block b = piece_block(qp, m, &p);

		prepare(m, &p);
		if (sender_add_packets(&qp->sender, m->number + p.parity, &b))
			break;
		ec_sender_sent(&m->ec, now_ns);
		n++;
	}
	return n;
}

/* ---- control messages */

static void tell_plan(struct verbena_sdr_qp *qp, const struct coded_send *m)
{
	uint8_t *payload = control_buffer(qp);

	if (!payload)
		return;
	ec_plan_encode(payload, &m->ec.config, m->chunks);
	control_post(qp, CONTROL_EC_PLAN, (uint32_t)m->number, EC_PLAN_LEN, 0);
}

/* The first of these goes before the data; any may be lost, so the plan goes with each end marker
 * too. */
static void tell_plans(struct verbena_sdr_qp *qp, struct coded_send *m, uint64_t now_ns)
{
	if (!m->plans || now_ns < m->plan_ns)
		return;
	tell_plan(qp, m);
	m->plans--;
	m->plan_ns = now_ns + m->ec.config.rtt_ns / 8;
}

static void tell_end(struct verbena_sdr_qp *qp, struct coded_send *m, uint64_t now_ns)
{
	enum control_type type;
	uint8_t *payload;
	uint8_t end[EC_END_LEN];
	uint16_t len;

	if (!sender_left(&qp->sender, m->number) || !sender_left(&qp->sender, m->number + 1) ||
	    !ec_sender_tell(&m->ec, end, &len, &type, now_ns))
		return;
	tell_plan(qp, m);
	payload = control_buffer(qp);
	if (!payload)
		return;
	memcpy(payload, end, len);
	control_post(qp, type, (uint32_t)m->number, len, 0);
}

/* Ends both messages here and, if this end has given up, sends an ABORT to the peer. */
static void wind_up(struct verbena_sdr_qp *qp, struct coded_send *m)
{
	uint8_t *payload;

	if (m->ended)
		return;
	m->ended = true;
	sender_end(&qp->sender, m->number);
	sender_end(&qp->sender, m->number + 1);
	if (m->ec.end == SR_DONE) {
		qp->coded.pieces += m->ec.config.layout.pieces;
		qp->coded.lost += m->ec.lost;
	}
	payload = control_buffer(qp);
	if (m->ec.end == SR_DONE || m->ec.end == SR_ABORTED || !payload)
		return;
	put_be16(payload, m->ec.end);
	control_post(qp, CONTROL_ABORT, (uint32_t)m->number, 2, 0);
}

static void lower(uint64_t *due_ns, uint64_t at_ns)
{
	if (at_ns < *due_ns)
		*due_ns = at_ns;
}

uint32_t coded_serve_send(struct verbena_sdr_qp *qp, struct coded_send *m, uint64_t now_ns, uint64_t *due_ns)
{
	uint32_t done;

	ec_sender_expire(&m->ec, now_ns);
	if (m->ec.end != SR_RUNNING) {
		wind_up(qp, m);
		return 0;
	}
	tell_plans(qp, m, now_ns);
	done = feed(qp, m, now_ns);
	tell_end(qp, m, now_ns);
	if (m->plans)
		lower(due_ns, m->plan_ns);
	/* An end marker that is due waits until the pieces have left: a millisecond later is early enough to look. */
	if (ec_sender_deadline(&m->ec) > now_ns)
		lower(due_ns, ec_sender_deadline(&m->ec));
	else
		lower(due_ns, now_ns + 1000000);
	return done;
}

/* ---- calls */

void verbena_sdr_ec_attr_init(struct verbena_sdr_ec_attr *attr)
{
	*attr = (struct verbena_sdr_ec_attr){
		.code = VERBENA_SDR_MDS,
		.data = 32,
		.parity = 8,
		.parity_max = 16,
		.depth = 8,
		.fallback = VERBENA_SDR_FALLBACK_PARITY,
		.end_marker = true,
		.nack = true,
		.rtt_ns = 1000000,
		.tries_max = 64,
		.loss = 0.01,
	};
}

static bool times_read(const struct verbena_sdr_ec_attr *a, struct ec_config *c)
{
	const uint64_t longest_ns = UINT64_C(1) << 60;

	if (!a->rtt_ns || a->rtt_ns > longest_ns / 1000 || a->rto_ns > longest_ns || a->timeout_ns > longest_ns ||
	    !(a->loss >= 0 && a->loss <= 0.5))
		return false;
	c->rtt_ns = a->rtt_ns > RTT_NS_MIN ? a->rtt_ns : RTT_NS_MIN;
	c->rto_ns = a->rto_ns ? a->rto_ns : 3 * c->rtt_ns;
	c->timeout_ns = a->timeout_ns ? a->timeout_ns : 100 * c->rtt_ns + UINT64_C(10000000000);
	c->loss = a->loss;
	return true;
}

/* The message's config; the parity message has room for parity_bytes. */
static int config_read(const struct verbena_sdr_qp *qp, const struct verbena_sdr_ec_attr *a, uint64_t bytes,
		       uint64_t parity_bytes, struct ec_config *c)
{
	uint32_t piece = a->chunks ? qp->shape.chunk_bytes : qp->shape.mtu;
	uint64_t groups, room;

	if (!a->data || a->data > EC_PIECES_MAX || a->parity > EC_PIECES_MAX || a->parity_max > EC_PIECES_MAX ||
	    !a->depth || a->depth > UINT16_MAX || a->code > VERBENA_SDR_XOR || a->fallback > VERBENA_SDR_FALLBACK_SR)
		return -EINVAL;
	*c = (struct ec_config){
		.layout = {.pieces = (uint32_t)((bytes + piece - 1) / piece),
			   .data = a->data,
			   .parity = a->parity,
			   .parity_max = a->parity_max,
			   .depth = a->depth,
			   .coded_from = (uint32_t)(a->uncoded / piece / a->data / a->depth)},
		.kind = a->code == VERBENA_SDR_XOR ? EC_XOR : EC_CAUCHY,
		.fallback = a->fallback == VERBENA_SDR_FALLBACK_SR ? EC_FALLBACK_SR : EC_FALLBACK_PARITY,
		.end_marker = a->end_marker,
		.nack = a->nack,
		.reorder = 2,
		.tries_max = a->tries_max,
		.guard_ns = 1,
		.ack_ns = 1,
	};
	groups = (c->layout.pieces + a->data - 1) / a->data;
	room = parity_bytes / piece / groups;
	if (c->layout.parity_max > room)
		c->layout.parity_max = (uint32_t)room;
	c->inject_ns = a->rate_mbps ? (uint64_t)piece * 8000 / a->rate_mbps : 0;
	return times_read(a, c) && ec_layout_settle(&c->layout) && ec_config_valid(c) ? 0 : -EINVAL;
}

static int code_make(struct coded_send *m, const struct ec_config *c)
{
	int err = ec_code_init(&m->code, c->kind, c->layout.data, c->layout.parity_max, ec_kernel_best(), &sdr_heap);

	if (err)
		return err;
	err = ec_sender_init(&m->ec, c, sdr_now_ns(), &sdr_heap);
	m->bytes.spare = calloc(1, EC_BYTES_SPARE(m->bytes.piece));
	return err || m->bytes.spare ? err : -ENOMEM;
}

/* Both messages are granted and their slots free. */
static int open_send(struct verbena_sdr_qp *qp, const struct ec_config *c, bool chunks, const struct send_block *b,
		     uint64_t *number)
{
	struct scratch *s = &qp->coded.out[shape_slot(&qp->shape, qp->sender.started + 1)];
	uint32_t piece = chunks ? qp->shape.chunk_bytes : qp->shape.mtu;
	struct coded_send *m = calloc(1, sizeof(*m));
	uint64_t parities;
	int err;

	if (!m)
		return -ENOMEM;
	m->bytes = (struct ec_bytes){.layout = &m->ec.config.layout,
				     .code = &m->code,
				     .data = (uint8_t *)(uintptr_t)b->addr,
				     .bytes = b->bytes,
				     .piece = piece};
	err = code_make(m, c);
	if (!err)
		err = scratch_take(qp, s, (size_t)c->layout.groups * c->layout.parity_max * piece);
	if (err) {
		if (m->ec.group)
			ec_sender_free(&m->ec);
		if (m->code.alloc)
			ec_code_fini(&m->code);
		free(m->bytes.spare);
		free(m);
		return err;
	}
	sender_start(&qp->sender, NULL, &m->number);
	sender_start(&qp->sender, NULL, &parities);
	m->bytes.parity = s->memory;
	m->lkey = b->lkey;
	m->chunks = chunks;
	m->made_group = UINT32_MAX;
	m->plans = PLANS;
	qp->coded.sends[shape_slot(&qp->shape, m->number)] = m;
	qp->coded.open++;
	*number = m->number;
	return 0;
}

/* The lock is held. */
static int send(struct verbena_sdr_qp *qp, const struct verbena_sdr_block *block, const struct verbena_sdr_ec_attr *a,
		uint64_t *number)
{
	uint64_t parity, due_ns = UINT64_MAX;
	struct send_block b;
	struct ec_config c;
	int err = coded_send_ready(qp, block, &b, &parity);

	if (!err)
		err = config_read(qp, a, b.bytes, parity, &c);
	if (!err)
		err = open_send(qp, &c, a->chunks, &b, number);
	if (!err)
		coded_serve(qp, sdr_now_ns(), &due_ns);
	return err;
}

int verbena_sdr_ec_send(struct verbena_sdr_qp *qp, const struct verbena_sdr_block *block,
			const struct verbena_sdr_ec_attr *attr, struct verbena_sdr_send *sent)
{
	struct verbena_sdr_ec_attr defaults;
	uint64_t number = 0;
	int err;

	if (!qp || !sent)
		return sdr_fail(EINVAL);
	verbena_sdr_ec_attr_init(&defaults);
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
	struct coded_send *m = coded_send_of(qp, number);
	int r;

	if (!m)
		return -EINVAL;
	r = coded_outcome(qp, number, m->ec.end, m->ended);
	if (r && !qp->broken)
		coded_send_free(qp, m);
	return r;
}

int verbena_sdr_ec_poll(const struct verbena_sdr_send *send, bool *done)
{
	return send_poll_by(send, done, outcome);
}

static const char *reason_text(enum ec_reason reason)
{
	switch (reason) {
	case EC_NOTHING_EXPOSED: return "what is lost can be sent again while the rest is being sent";
	case EC_NOTHING_LOST: return "a message in ten thousand would lose a packet";
	case EC_TAIL_CODED: return "the last round trip's worth of data cannot wait for answers";
	default: return "all of it is sent within a round trip, so nothing can wait for answers";
	}
}

int verbena_sdr_ec_choose(const struct verbena_sdr_qp *qp, const struct verbena_sdr_link *link, size_t bytes,
			  uint64_t behind, struct verbena_sdr_ec_attr *attr, const char **reason)
{
	struct loss_counts seen;
	struct ec_link l;
	struct ec_layout layout;
	uint64_t pieces;
	enum ec_reason why;

	if (!qp || !link || !attr || !bytes || bytes > qp->shape.message_bytes || !link->rate_mbps || !link->rtt_ns ||
	    link->lost > link->sent)
		return sdr_fail(EINVAL);
	seen = (struct loss_counts){(double)link->sent, (double)link->lost};
	l = (struct ec_link){link->rate_mbps * 1000000, link->rtt_ns, loss_upper(&seen)};
	pieces = (bytes + qp->shape.mtu - 1) / qp->shape.mtu;
	why = ec_choose(&l, (uint32_t)pieces, qp->shape.mtu, behind, coded_room(&qp->shape, bytes) / qp->shape.mtu,
			&layout);
	verbena_sdr_ec_attr_init(attr);
	attr->data = layout.data;
	attr->parity = layout.parity;
	attr->parity_max = layout.parity_max;
	attr->depth = layout.depth;
	attr->uncoded = (size_t)layout.coded_from * layout.depth * layout.data * qp->shape.mtu;
	attr->rtt_ns = link->rtt_ns;
	attr->loss = l.loss;
	attr->rate_mbps = link->rate_mbps;
	if (reason)
		*reason = reason_text(why);
	return VERBENA_SDR_SUCCESS;
}
