/* SPDX-License-Identifier: BSD-2-Clause */
/* What both ends of coded messages share: the table of them, their memory, whose a message is; and what all messages
 * that are two have in common (tailed.h). */
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "sdr/verbs/coded.h"
#include "sdr/verbs/objects.h"

int coded_make(struct verbena_sdr_qp *qp)
{
	struct coded *c = &qp->coded;

	c->sends = calloc(qp->shape.slots, sizeof(struct coded_send *));
	c->receives = calloc(qp->shape.slots, sizeof(struct coded_receive *));
	c->out = calloc(qp->shape.slots, sizeof(*c->out));
	c->in = calloc(qp->shape.slots, sizeof(*c->in));
	return c->sends && c->receives && c->out && c->in ? 0 : -1;
}

static void scratch_free(struct scratch *s)
{
	if (s->mr)
		verbena_sdr_mr_dereg(s->mr);
	if (s->memory)
		munmap(s->memory, s->bytes);
	*s = (struct scratch){0};
}

/* Pages that are never written cost nothing. */
int scratch_take(struct verbena_sdr_qp *qp, struct scratch *s, size_t bytes)
{
	if (s->bytes >= bytes)
		return 0;
	scratch_free(s);
	s->memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (s->memory == MAP_FAILED) {
		s->memory = NULL;
		return -ENOMEM;
	}
	s->bytes = bytes;
	s->mr = verbena_sdr_mr_reg(qp->ctx, s->memory, bytes, VERBENA_SDR_REMOTE_WRITE);
	if (s->mr && !verbena_sdr_mr_lkey_get(s->mr, &s->lkey))
		return 0;
	scratch_free(s);
	return -ENOMEM;
}

void coded_free(struct verbena_sdr_qp *qp)
{
	struct coded *c = &qp->coded;
	bool made = c->sends && c->receives && c->out && c->in;

	for (uint32_t i = 0; made && i < qp->shape.slots; i++) {
		if (c->sends[i])
			coded_send_free(qp, c->sends[i]);
		if (c->receives[i])
			coded_receive_free(qp, c->receives[i]);
		scratch_free(&c->out[i]);
		scratch_free(&c->in[i]);
	}
	free(c->sends);
	free(c->receives);
	free(c->out);
	free(c->in);
}

struct coded_send *coded_send_of(const struct verbena_sdr_qp *qp, uint64_t number)
{
	struct coded_send *m = qp->coded.sends[shape_slot(&qp->shape, number)];

	return m && m->number == number ? m : NULL;
}

struct coded_receive *coded_receive_of(const struct verbena_sdr_qp *qp, uint64_t number)
{
	struct coded_receive *m = qp->coded.receives[shape_slot(&qp->shape, number)];

	return m && m->number == number ? m : NULL;
}

bool coded_owns(const struct verbena_sdr_qp *qp, uint64_t number)
{
	return coded_send_of(qp, number) || (number && coded_send_of(qp, number - 1));
}

bool coded_receives(const struct verbena_sdr_qp *qp, uint64_t number)
{
	return coded_receive_of(qp, number) || (number && coded_receive_of(qp, number - 1));
}

/* ---- messages that are two */

static bool may_be_two(const struct verbena_sdr_qp *qp)
{
	return qp->mine.transport != VERBENA_SDR_RC && qp->shape.slots >= 2;
}

int coded_send_ready(const struct verbena_sdr_qp *qp, const struct verbena_sdr_block *block, struct send_block *b,
		     uint64_t *parity_bytes)
{
	uint64_t granted;
	int err = send_ready(qp, block, b);

	if (err)
		return err;
	if (!may_be_two(qp))
		return -EOPNOTSUPP;
	if (!sender_granted(&qp->sender, &granted) || !sender_granted_ahead(&qp->sender, 1, parity_bytes))
		return -EAGAIN;
	return b->offset || b->bytes != granted ? -EINVAL : 0;
}

int coded_recv_ready(const struct verbena_sdr_qp *qp, size_t length)
{
	int err = recv_ready(qp, length, 2);

	return !err && !may_be_two(qp) ? -EOPNOTSUPP : err;
}

int coded_recv_open(struct verbena_sdr_qp *qp, const struct verbena_sdr_recv_attr *attr, uint64_t *number)
{
	struct scratch *s = &qp->coded.in[shape_slot(&qp->shape, qp->receiver.posted + 1)];
	struct verbena_sdr_recv_attr parity = {.max_length = coded_room(&qp->shape, attr->max_length)};
	uint64_t second;
	int err = scratch_take(qp, s, parity.max_length);

	parity.address = s->memory;
	parity.lkey = s->lkey;
	if (!err)
		err = recv_open(qp, attr, number);
	if (err)
		return err;
	err = recv_open(qp, &parity, &second);
	if (err)
		recv_close(qp, *number);
	return err;
}

int coded_outcome(struct verbena_sdr_qp *qp, uint64_t number, enum sr_end end, bool ended)
{
	if (qp->broken)
		return -EIO;
	if (end == SR_RUNNING || !ended || !sender_left(&qp->sender, number) || !sender_left(&qp->sender, number + 1))
		return 0;
	sender_done(&qp->sender, number);
	sender_done(&qp->sender, number + 1);
	return end == SR_DONE ? 1 : end == SR_ABORTED ? -ECONNABORTED : -ETIMEDOUT;
}

/* The oldest message first: what it lacks is waited for the longest. */
uint32_t coded_serve(struct verbena_sdr_qp *qp, uint64_t now_ns, uint64_t *due_ns)
{
	uint32_t slots = qp->shape.slots, done = 0;
	uint64_t sent = qp->sender.started, posted = qp->receiver.posted;

	if (!qp->coded.open)
		return 0;
	for (uint64_t n = sent > slots ? sent - slots : 0; n < sent; n++) {
		struct coded_send *m = coded_send_of(qp, n);

		if (m)
			done += coded_serve_send(qp, m, now_ns, due_ns);
	}
	for (uint64_t n = posted > slots ? posted - slots : 0; n < posted; n++) {
		struct coded_receive *m = coded_receive_of(qp, n);

		if (m)
			done += coded_serve_receive(qp, m, now_ns, due_ns);
	}
	return done;
}

/* Takes what the receiver says. The ABORT of a sender has another code and is not among it. */
static bool send_take(struct coded_send *m, const struct control *c, const uint8_t *payload, uint64_t now_ns)
{
	if (c->type != CONTROL_ABORT)
		return ec_sender_take(&m->ec, c->type, payload, now_ns);
	ec_sender_finish(&m->ec, SR_ABORTED);
	return true;
}

static bool to_sender(const struct control *c, const uint8_t *payload)
{
	switch (c->type) {
	case CONTROL_EC_ACK:
	case CONTROL_EC_NACK:
	case CONTROL_EC_SHORT:
	case CONTROL_SR_ACK:
	case CONTROL_SR_NACK: return true;
	case CONTROL_ABORT: return payload[0] == 0 && payload[1] == SR_ABORTED;
	default: return false;
	}
}

bool coded_take(struct verbena_sdr_qp *qp, const struct control *c, const uint8_t *payload, uint64_t now_ns)
{
	if (to_sender(c, payload)) {
		struct coded_send *m = coded_send_of(qp, number_near(qp->sender.started, c->number));

		if (m)
			return send_take(m, c, payload, now_ns);
		/* The message is over, or Selective Repeat has it. */
		return c->type == CONTROL_EC_ACK || c->type == CONTROL_EC_NACK || c->type == CONTROL_EC_SHORT ||
		       repeat_take(qp, c, payload, now_ns);
	} else {
		struct coded_receive *m = coded_receive_of(qp, number_near(qp->receiver.posted, c->number));

		if (m)
			return coded_receive_take(qp, m, c, payload, now_ns);
	}
	return repeat_take(qp, c, payload, now_ns);
}
