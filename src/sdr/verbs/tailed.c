/* SPDX-License-Identifier: BSD-2-Clause */
/* What both ends of messages with codes over their tails share. */
#include <errno.h>
#include <stdlib.h>

#include "base/byteorder.h"
#include "sdr/ec/kernel.h"
#include "sdr/verbs/objects.h"

int tailed_make(struct verbena_sdr_qp *qp)
{
	struct tailed *t = &qp->tailed;

	loss_estimate_init(&t->estimate);
	t->sends = calloc(qp->shape.slots, sizeof(struct tailed_send *));
	t->receives = calloc(qp->shape.slots, sizeof(struct tailed_receive *));
	return t->sends && t->receives ? 0 : -1;
}

void tailed_free(struct verbena_sdr_qp *qp)
{
	struct tailed *t = &qp->tailed;

	for (uint32_t i = 0; t->sends && t->receives && i < qp->shape.slots; i++) {
		if (t->sends[i])
			tailed_send_free(qp, t->sends[i]);
		if (t->receives[i])
			tailed_receive_free(qp, t->receives[i]);
	}
	free(t->sends);
	free(t->receives);
}

struct tailed_send *tailed_send_of(const struct verbena_sdr_qp *qp, uint64_t number)
{
	struct tailed_send *m = qp->tailed.sends[shape_slot(&qp->shape, number)];

	return m && m->number == number ? m : NULL;
}

struct tailed_receive *tailed_receive_of(const struct verbena_sdr_qp *qp, uint64_t number)
{
	struct tailed_receive *m = qp->tailed.receives[shape_slot(&qp->shape, number)];

	return m && m->number == number ? m : NULL;
}

bool tailed_owns(const struct verbena_sdr_qp *qp, uint64_t number)
{
	return tailed_send_of(qp, number) || (number && tailed_send_of(qp, number - 1));
}

bool tailed_receives(const struct verbena_sdr_qp *qp, uint64_t number)
{
	return tailed_receive_of(qp, number) || (number && tailed_receive_of(qp, number - 1));
}

/* A quarter of a round trip is queued (send_room()). */
uint64_t tailed_rtt_ns(uint64_t rtt_ns)
{
	rtt_ns = rtt_ns > RTT_NS_MIN ? rtt_ns : RTT_NS_MIN;
	return rtt_ns + rtt_ns / 4;
}

/* ---- the code */

/* Both count groups and their packets alike (tail_plan.h, ec_layout.h). */
int tailed_code_make(struct tailed_code *c, const struct tail_plan *p, uint32_t unasked, const struct ec_bytes *all)
{
	uint64_t at = (uint64_t)p->tail * all->piece;
	int err;

	c->layout = (struct ec_layout){.pieces = p->packets - p->tail,
				       .data = p->size,
				       .parity = unasked,
				       .parity_max = p->parity,
				       .depth = p->depth};
	if (!ec_layout_settle(&c->layout))
		return -EINVAL;
	err = ec_code_init(&c->code, tail_plan_is_wide(p) ? EC_WIDE : EC_CAUCHY, p->size, p->parity, ec_kernel_best(),
			   &sdr_heap);
	if (err)
		return err;
	c->bytes = (struct ec_bytes){.layout = &c->layout,
				     .code = &c->code,
				     .data = all->data + at,
				     .bytes = all->bytes - at,
				     .parity = all->parity,
				     .piece = all->piece,
				     .spare = calloc(1, EC_BYTES_SPARE(all->piece))};
	if (!c->bytes.spare) {
		ec_code_fini(&c->code);
		return -ENOMEM;
	}
	c->made = true;
	return 0;
}

void tailed_code_free(struct tailed_code *c)
{
	if (!c->made)
		return;
	ec_code_fini(&c->code);
	free(c->bytes.spare);
	c->made = false;
}

/* ---- serving */

/* The oldest message first: what it lacks is waited for the longest. */
uint32_t tailed_serve(struct verbena_sdr_qp *qp, uint64_t now_ns, uint64_t *due_ns)
{
	uint64_t sent = qp->sender.started, posted = qp->receiver.posted;
	uint32_t slots = qp->shape.slots, done = 0;

	if (!qp->tailed.open)
		return 0;
	for (uint64_t n = sent > slots ? sent - slots : 0; n < sent; n++) {
		if (tailed_send_of(qp, n))
			done += tailed_serve_send(qp, tailed_send_of(qp, n), now_ns, due_ns);
	}
	for (uint64_t n = posted > slots ? posted - slots : 0; n < posted; n++) {
		if (tailed_receive_of(qp, n))
			done += tailed_serve_receive(qp, tailed_receive_of(qp, n), now_ns, due_ns);
	}
	return done;
}

/* ---- what the peer says */

static bool take_state(struct verbena_sdr_qp *qp, struct tailed_send *m, const uint8_t *payload, uint64_t now_ns)
{
	if (!m)
		return true; /* it is over: a word that was late */
	if (!tail_sender_state(&m->tail, payload, now_ns))
		return false;
	qp->tailed.estimate = m->tail.estimate;
	return true;
}

/* The code says who gives up. */
static bool take_abort(struct tailed_send *send, struct tailed_receive *receive, const uint8_t *payload)
{
	bool by_receiver = get_be16(payload) == SR_ABORTED;

	if (by_receiver && send)
		tail_sender_finish(&send->tail, SR_ABORTED);
	if (!by_receiver && receive)
		receive->aborted = true;
	return by_receiver ? send != NULL : receive != NULL;
}

bool tailed_take(struct verbena_sdr_qp *qp, const struct control *c, const uint8_t *payload, uint64_t now_ns)
{
	struct tailed_send *send = tailed_send_of(qp, number_near(qp->sender.started, c->number));
	struct tailed_receive *receive = tailed_receive_of(qp, number_near(qp->receiver.posted, c->number));

	if (c->type == CONTROL_TAIL_STATE)
		return take_state(qp, send, payload, now_ns);
	if (c->type == CONTROL_SR_NACK && send)
		return tail_sender_named(&send->tail, payload, now_ns);
	if (c->type == CONTROL_TAIL_PLAN && receive)
		return tail_receiver_plan(&receive->tail, payload, now_ns);
	if (c->type == CONTROL_ABORT && take_abort(send, receive, payload))
		return true;
	return coded_take(qp, c, payload, now_ns);
}
