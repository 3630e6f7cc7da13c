/* SPDX-License-Identifier: BSD-2-Clause */
/* What both ends of reliable messages share: the table of them, their memory, their codes, and whose a word is. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/byteorder.h"
#include "sdr/ec/kernel.h"
#include "sdr/verbs/objects.h"

int reliable_make(struct verbena_sdr_qp *qp)
{
	struct reliable *r = &qp->reliable;

	loss_estimate_init(&r->estimate);
	r->sends = calloc(qp->shape.slots, sizeof(struct reliable_send *));
	r->receives = calloc(qp->shape.slots, sizeof(struct reliable_receive *));
	r->finished = calloc(qp->shape.slots, sizeof(*r->finished));
	r->out = calloc(qp->shape.slots, sizeof(*r->out));
	r->in = calloc(qp->shape.slots, sizeof(*r->in));
	return r->sends && r->receives && r->finished && r->out && r->in ? 0 : -1;
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
static int scratch_take(struct verbena_sdr_qp *qp, struct scratch *s, size_t bytes)
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

void reliable_free(struct verbena_sdr_qp *qp)
{
	struct reliable *r = &qp->reliable;
	bool made = r->sends && r->receives && r->out && r->in;

	for (uint32_t i = 0; made && i < qp->shape.slots; i++) {
		if (r->sends[i])
			reliable_send_free(qp, r->sends[i]);
		if (r->receives[i])
			reliable_receive_free(qp, r->receives[i]);
		scratch_free(&r->out[i]);
		scratch_free(&r->in[i]);
	}
	free(r->sends);
	free(r->receives);
	free(r->finished);
	free(r->out);
	free(r->in);
}

struct reliable_send *reliable_send_of(const struct verbena_sdr_qp *qp, uint64_t number)
{
	struct reliable_send *m = qp->reliable.sends[shape_slot(&qp->shape, number)];

	return m && m->number == number ? m : NULL;
}

struct reliable_receive *reliable_receive_of(const struct verbena_sdr_qp *qp, uint64_t number)
{
	struct reliable_receive *m = qp->reliable.receives[shape_slot(&qp->shape, number)];

	return m && m->number == number ? m : NULL;
}

bool reliable_owns(const struct verbena_sdr_qp *qp, uint64_t number)
{
	const struct reliable_send *before = number ? reliable_send_of(qp, number - 1) : NULL;

	return reliable_send_of(qp, number) || (before && before->parts > 1);
}

bool reliable_is_second(const struct verbena_sdr_qp *qp, uint64_t number)
{
	const struct reliable_receive *before = number ? reliable_receive_of(qp, number - 1) : NULL;

	return before && before->parts > 1;
}

bool reliable_receives(const struct verbena_sdr_qp *qp, uint64_t number)
{
	return reliable_receive_of(qp, number) || reliable_is_second(qp, number);
}

uint64_t reliable_room(const struct shape *s, uint64_t bytes)
{
	uint64_t room = (uint64_t)shape_chunks(s, bytes / 2) * s->chunk_bytes;

	room += 16 * (uint64_t)s->mtu > s->chunk_bytes ? 16 * (uint64_t)s->mtu : s->chunk_bytes;
	return room < s->message_bytes ? room : s->message_bytes;
}

/* ---- codes */

int message_code_make(struct message_code *c, const struct message_bytes *m)
{
	const struct ec_layout *l = &c->plan.layout;
	int err = ec_code_init(&c->code, c->plan.kind, l->data, l->parity_max, ec_kernel_best(), &sdr_heap);

	if (err)
		return err;
	c->bytes = (struct ec_bytes){.layout = l,
				     .code = &c->code,
				     .data = m->data,
				     .bytes = m->bytes,
				     .parity = m->parity,
				     .piece = m->piece,
				     .spare = calloc(1, EC_BYTES_SPARE(m->piece))};
	if (!c->bytes.spare) {
		ec_code_fini(&c->code);
		return -ENOMEM;
	}
	c->made = true;
	return 0;
}

void message_code_free(struct message_code *c)
{
	if (!c->made)
		return;
	ec_code_fini(&c->code);
	free(c->bytes.spare);
	c->made = false;
}

/* ---- calls */

static bool may_be_two(const struct verbena_sdr_qp *qp)
{
	return qp->mine.transport != VERBENA_SDR_RC && qp->shape.slots >= 2;
}

int reliable_send_ready(const struct verbena_sdr_qp *qp, const struct verbena_sdr_block *block, uint32_t parts,
			struct send_block *b, uint64_t *parity_bytes)
{
	uint64_t granted;
	int err = send_ready(qp, block, b);

	if (err)
		return err;
	if (parts > 1 && !may_be_two(qp))
		return -EOPNOTSUPP;
	if (!sender_granted(&qp->sender, &granted) ||
	    (parts > 1 && !sender_granted_ahead(&qp->sender, 1, parity_bytes)))
		return -EAGAIN;
	return b->offset || b->bytes != granted ? -EINVAL : 0;
}

int reliable_code_ready(struct reliable_send *m)
{
	const struct scheme *scheme = m->tx.scheme;

	if (m->code.made || !scheme->tx_code || !scheme->tx_code(&m->tx, &m->code.plan))
		return 0;
	return message_code_make(&m->code, &m->bytes);
}

int reliable_send_open(struct verbena_sdr_qp *qp, struct reliable_send *m, const struct send_block *b, uint32_t piece,
		       size_t room)
{
	struct scratch *s = &qp->reliable.out[shape_slot(&qp->shape, qp->sender.started + 1)];
	int err = room ? scratch_take(qp, s, room) : 0;
	uint64_t second;

	m->bytes = (struct message_bytes){(uint8_t *)(uintptr_t)b->addr, s->memory, b->bytes, piece};
	if (!err)
		err = reliable_code_ready(m);
	if (err) {
		m->tx.scheme->tx_free(&m->tx);
		free(m);
		return err;
	}
	sender_start(&qp->sender, NULL, &m->number);
	if (m->parts > 1)
		sender_start(&qp->sender, NULL, &second);
	m->lkey = b->lkey;
	m->parity_lkey = s->lkey;
	qp->reliable.sends[shape_slot(&qp->shape, m->number)] = m;
	qp->reliable.open++;
	qp->reliable.two += m->parts > 1;
	return 0;
}

struct reliable_receive *reliable_receive_add(struct verbena_sdr_qp *qp, uint64_t number, uint32_t parts)
{
	struct reliable_receive *m = calloc(1, sizeof(*m));

	if (!m)
		return NULL;
	m->number = number;
	m->parts = parts;
	qp->reliable.receives[shape_slot(&qp->shape, number)] = m;
	qp->reliable.open++;
	qp->reliable.two += parts > 1;
	return m;
}

int reliable_receive_post(struct verbena_sdr_qp *qp, const struct verbena_sdr_recv_attr *attr,
			  struct reliable_receive **out)
{
	struct scratch *s = &qp->reliable.in[shape_slot(&qp->shape, qp->receiver.posted + 1)];
	struct verbena_sdr_recv_attr parity = {.max_length = reliable_room(&qp->shape, attr->max_length)};
	struct reliable_receive *m;
	uint64_t number, second;
	int err = recv_ready(qp, attr->max_length, 2);

	if (!err && !may_be_two(qp))
		err = -EOPNOTSUPP;
	if (!err)
		err = scratch_take(qp, s, parity.max_length);
	parity.address = s->memory;
	parity.lkey = s->lkey;
	if (!err)
		err = recv_open(qp, attr, &number);
	if (err)
		return err;
	err = recv_open(qp, &parity, &second);
	if (err) {
		recv_close(qp, number);
		return err;
	}
	m = reliable_receive_add(qp, number, 2);
	if (!m) {
		recv_close(qp, number);
		recv_close(qp, second);
		return -ENOMEM;
	}
	m->bytes = (struct message_bytes){attr->address, s->memory, attr->max_length, qp->shape.mtu};
	*out = m;
	return 0;
}

void reliable_receive_undo(struct verbena_sdr_qp *qp, struct reliable_receive *m)
{
	recv_close(qp, m->number);
	recv_close(qp, m->number + 1);
	reliable_receive_free(qp, m);
}

/* ---- serving */

/* The oldest message first: what it lacks is waited for the longest. */
uint32_t reliable_serve(struct verbena_sdr_qp *qp, uint64_t now_ns, uint64_t *due_ns)
{
	uint64_t sent = qp->sender.started, posted = qp->receiver.posted;
	uint32_t slots = qp->shape.slots, done = 0;

	if (!qp->reliable.open)
		return 0;
	for (uint64_t n = sent > slots ? sent - slots : 0; n < sent; n++) {
		if (reliable_send_of(qp, n))
			done += reliable_serve_send(qp, reliable_send_of(qp, n), now_ns, due_ns);
	}
	for (uint64_t n = posted > slots ? posted - slots : 0; n < posted; n++) {
		if (reliable_receive_of(qp, n))
			done += reliable_serve_receive(qp, reliable_receive_of(qp, n), now_ns, due_ns);
	}
	return done;
}

static void abort_send(struct verbena_sdr_qp *qp, uint64_t number)
{
	uint8_t *payload = control_buffer(qp);

	if (!payload)
		return;
	put_be16(payload, SR_ABORTED);
	control_post(qp, CONTROL_ABORT, (uint32_t)number, 2, 0);
}

/* Sends the last word about a receive that was completed. */
static void say_finished(struct verbena_sdr_qp *qp, const struct finished *f)
{
	uint8_t *payload = f->whole ? control_buffer(qp) : NULL;

	if (!f->whole)
		abort_send(qp, f->number);
	if (!payload)
		return;
	memcpy(payload, f->payload, f->length);
	control_post(qp, f->type, (uint32_t)f->number, f->length, 0);
}

/* What has come since the code was used may be all that was missing, but it was not recovered. */
bool reliable_completed(struct verbena_sdr_qp *qp, uint64_t number, uint64_t now_ns)
{
	struct finished *f = &qp->reliable.finished[shape_slot(&qp->shape, number)];
	struct reliable_receive *m = reliable_receive_of(qp, number);
	const struct scheme *scheme;
	bool two;

	if (!m)
		return false;
	scheme = m->rx.scheme;
	two = m->parts > 1;
	if (!two)
		scheme->look(&m->rx, now_ns);
	*f = (struct finished){.number = number, .known = true, .whole = two ? m->recovered : scheme->whole(&m->rx)};
	if (f->whole)
		f->length = scheme->farewell(&m->rx, f->payload, &f->type);
	reliable_receive_free(qp, m);
	say_finished(qp, f);
	return two;
}

/* ---- what the peer says */

/* The code says who gives up: a receiver says SR_ABORTED, a sender why. */
static void take_abort(struct reliable_send *send, struct reliable_receive *receive, const uint8_t *payload)
{
	bool by_receiver = get_be16(payload) == SR_ABORTED;

	if (by_receiver && send)
		send->tx.scheme->finish(&send->tx, SR_ABORTED);
	if (!by_receiver && receive)
		receive->aborted = true;
}

static bool take_from_receiver(struct verbena_sdr_qp *qp, struct reliable_send *m, enum control_type type,
			       const uint8_t *payload, uint64_t now_ns)
{
	if (!m)
		return true; /* it is over: a word that was late */
	if (!m->tx.scheme->tx_take(&m->tx, type, payload, now_ns))
		return false;
	if (scheme_estimate(&m->tx))
		qp->reliable.estimate = *scheme_estimate(&m->tx);
	return true;
}

/* The receive may have been completed, or was never a reliable one. */
static bool take_of_finished(struct verbena_sdr_qp *qp, uint64_t number)
{
	const struct finished *f = &qp->reliable.finished[shape_slot(&qp->shape, number)];

	if (f->known && f->number == number)
		say_finished(qp, f);
	else if (number < qp->receiver.posted && !receiver_slot(&qp->receiver, number))
		abort_send(qp, number);
	return number < qp->receiver.posted;
}

bool reliable_take(struct verbena_sdr_qp *qp, const struct control *c, const uint8_t *payload, uint64_t now_ns)
{
	uint64_t number = number_near(qp->receiver.posted, c->number);
	struct reliable_send *send = reliable_send_of(qp, number_near(qp->sender.started, c->number));
	struct reliable_receive *receive = reliable_receive_of(qp, number);

	switch (c->type) {
	case CONTROL_ABORT: take_abort(send, receive, payload); return true;
	case CONTROL_SR_ACK:
	case CONTROL_SR_NACK:
	case CONTROL_CODED_STATE: return take_from_receiver(qp, send, c->type, payload, now_ns);
	case CONTROL_PROBE:
	case CONTROL_CODED_PLAN:
		return receive ? receive->rx.scheme->rx_take(&receive->rx, c->type, payload, now_ns)
			       : take_of_finished(qp, number);
	default: return false;
	}
}
