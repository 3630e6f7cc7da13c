/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Chunks go to the sender's queue a few at a time, so that their timers start about when they
 * leave, and one that is due again does not stand behind many new ones.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/byteorder.h"
#include "sdr/verbs/objects.h"

enum { QUEUED_CHUNKS = 16 };

int repeat_make(struct verbena_sdr_qp *qp)
{
	struct repeat *r = &qp->repeat;

	r->sends = calloc(qp->shape.slots, sizeof(struct repeated *));
	r->receives = calloc(qp->shape.slots, sizeof(struct acknowledged *));
	r->finished = calloc(qp->shape.slots, sizeof(*r->finished));
	return r->sends && r->receives && r->finished ? 0 : -1;
}

static void send_free(struct verbena_sdr_qp *qp, uint32_t slot)
{
	struct repeated *m = qp->repeat.sends[slot];

	if (!m)
		return;
	sr_sender_free(&m->sr);
	free(m);
	qp->repeat.sends[slot] = NULL;
	qp->repeat.open--;
}

static void receive_free(struct verbena_sdr_qp *qp, uint32_t slot)
{
	struct acknowledged *m = qp->repeat.receives[slot];

	if (!m)
		return;
	sr_receiver_free(&m->sr);
	free(m);
	qp->repeat.receives[slot] = NULL;
	qp->repeat.open--;
}

void repeat_free(struct verbena_sdr_qp *qp)
{
	struct repeat *r = &qp->repeat;

	for (uint32_t i = 0; r->sends && r->receives && i < qp->shape.slots; i++) {
		send_free(qp, i);
		receive_free(qp, i);
	}
	free(r->sends);
	free(r->receives);
	free(r->finished);
}

static struct repeated *send_of(const struct verbena_sdr_qp *qp, uint64_t number)
{
	struct repeated *m = qp->repeat.sends[shape_slot(&qp->shape, number)];

	return m && m->number == number ? m : NULL;
}

bool repeat_owns(const struct verbena_sdr_qp *qp, uint64_t number)
{
	return send_of(qp, number);
}

static struct acknowledged *receive_of(const struct verbena_sdr_qp *qp, uint64_t number)
{
	struct acknowledged *m = qp->repeat.receives[shape_slot(&qp->shape, number)];

	return m && m->number == number ? m : NULL;
}

/* ---- sending */

static struct send_block chunk_block(const struct verbena_sdr_qp *qp, const struct repeated *m, uint32_t chunk)
{
	uint64_t at = (uint64_t)chunk * qp->shape.chunk_bytes, left = m->bytes - at;

	return (struct send_block){
		.addr = m->addr + at,
		.bytes = left < qp->shape.chunk_bytes ? left : qp->shape.chunk_bytes,
		.offset = at,
		.lkey = m->lkey,
	};
}

static uint32_t feed(struct verbena_sdr_qp *qp, struct repeated *m, uint64_t now_ns)
{
	uint32_t room = send_room(qp, qp->shape.chunk_bytes, m->sr.config.rtt_ns, QUEUED_CHUNKS);
	uint32_t chunk, n = 0;

	while (sender_queued(&qp->sender) < room && sr_sender_next(&m->sr, &chunk)) {
		struct send_block b = chunk_block(qp, m, chunk);

		if (sender_add(&qp->sender, m->number, &b))
			break;
		sr_sender_sent(&m->sr, chunk, now_ns);
		n++;
	}
	return n;
}

/* Ends the message here and, if this end has given it up, sends an ABORT to the peer. */
static void wind_up(struct verbena_sdr_qp *qp, struct repeated *m)
{
	uint8_t *payload;

	if (m->ended)
		return;
	m->ended = !sender_end(&qp->sender, m->number);
	payload = control_buffer(qp);
	if (m->sr.end == SR_DONE || m->sr.end == SR_ABORTED || !payload)
		return;
	put_be16(payload, m->sr.end);
	control_post(qp, CONTROL_ABORT, (uint32_t)m->number, 2, 0);
}

static uint32_t serve_send(struct verbena_sdr_qp *qp, struct repeated *m, uint64_t now_ns, uint64_t *due_ns)
{
	uint32_t done;

	sr_sender_expire(&m->sr, now_ns);
	done = feed(qp, m, now_ns);
	if (control_buffer(qp) && sr_sender_take_probe(&m->sr))
		control_post(qp, CONTROL_PROBE, (uint32_t)m->number, 0, 0);
	if (m->sr.end != SR_RUNNING)
		wind_up(qp, m);
	if (sr_sender_deadline(&m->sr) < *due_ns)
		*due_ns = sr_sender_deadline(&m->sr);
	return done;
}

/* ---- receiving */

static uint32_t packets_there(const struct slot *slot)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < (slot->packets + 63) / 64; i++)
		n += (uint32_t)__builtin_popcountll(atomic_load_explicit(&slot->packet_bits[i], memory_order_relaxed));
	return n;
}

/* At a low rate a chunk takes longer to come than the receiver waits for one. */
static void look_at_packets(const struct verbena_sdr_qp *qp, struct acknowledged *m, uint64_t now_ns)
{
	const struct slot *slot = receiver_slot(&qp->receiver, m->number);
	uint32_t packets;

	if (!slot || now_ns < m->sr.nack_ns || !sr_receiver_silent(&m->sr, now_ns))
		return;
	packets = packets_there(slot);
	if (packets != m->packets)
		sr_receiver_alive(&m->sr, now_ns);
	m->packets = packets;
}

static uint32_t serve_receive(struct verbena_sdr_qp *qp, struct acknowledged *m, uint64_t now_ns, uint64_t *due_ns)
{
	bool news = sr_receiver_look(&m->sr, now_ns);
	enum control_type type;
	uint8_t *payload;
	uint16_t len = 1;

	look_at_packets(qp, m, now_ns);
	while (len && (payload = control_buffer(qp))) {
		len = sr_receiver_tell(&m->sr, payload, control_room(qp), &type, now_ns);
		if (len)
			control_post(qp, type, (uint32_t)m->number, len, 0);
	}
	if (sr_receiver_deadline(&m->sr) < *due_ns)
		*due_ns = sr_receiver_deadline(&m->sr);
	return news;
}

/* The oldest message first: what it lacks is waited for the longest. */
uint32_t repeat_serve(struct verbena_sdr_qp *qp, uint64_t now_ns, uint64_t *due_ns)
{
	uint64_t sent = qp->sender.started, posted = qp->receiver.posted;
	uint32_t slots = qp->shape.slots, done = 0;

	if (!qp->repeat.open)
		return 0;
	for (uint64_t n = sent > slots ? sent - slots : 0; n < sent; n++) {
		if (send_of(qp, n))
			done += serve_send(qp, send_of(qp, n), now_ns, due_ns);
	}
	for (uint64_t n = posted > slots ? posted - slots : 0; n < posted; n++) {
		if (receive_of(qp, n))
			done += serve_receive(qp, receive_of(qp, n), now_ns, due_ns);
	}
	return done;
}

static void acknowledge_all(struct verbena_sdr_qp *qp, uint64_t number, uint32_t chunks)
{
	uint8_t *payload = control_buffer(qp);
	uint16_t len;

	if (!payload)
		return;
	len = sr_ack_encode(payload, &(struct sr_ack){.cum = chunks}, NULL);
	control_post(qp, CONTROL_SR_ACK, (uint32_t)number, len, 0);
}

static void abort_send(struct verbena_sdr_qp *qp, uint64_t number)
{
	uint8_t *payload = control_buffer(qp);

	if (!payload)
		return;
	put_be16(payload, SR_ABORTED);
	control_post(qp, CONTROL_ABORT, (uint32_t)number, 2, 0);
}

static void acknowledge_coded(struct verbena_sdr_qp *qp, uint64_t number, uint32_t lost)
{
	uint8_t *payload = control_buffer(qp);

	if (!payload)
		return;
	put_be32(payload, lost);
	control_post(qp, CONTROL_EC_ACK, (uint32_t)number, EC_ACK_LEN, 0);
}

static void acknowledge_tailed(struct verbena_sdr_qp *qp, uint64_t number, const struct tail_state *s)
{
	uint8_t *payload = control_buffer(qp);

	if (payload)
		control_post(qp, CONTROL_TAIL_STATE, (uint32_t)number, tail_state_encode(payload, s), 0);
}

/* Sends the last message about a receive that was completed. */
static void say_finished(struct verbena_sdr_qp *qp, const struct finished *f)
{
	if (f->whole && f->tailed)
		acknowledge_tailed(qp, f->number, &f->state);
	else if (f->whole && f->coded)
		acknowledge_coded(qp, f->number, f->chunks);
	else if (f->whole)
		acknowledge_all(qp, f->number, f->chunks);
	else
		abort_send(qp, f->number);
}

void repeat_finish(struct verbena_sdr_qp *qp, const struct finished *f)
{
	qp->repeat.finished[shape_slot(&qp->shape, f->number)] = *f;
	say_finished(qp, f);
}

void repeat_completed(struct verbena_sdr_qp *qp, uint64_t number, uint64_t now_ns)
{
	uint32_t slot = shape_slot(&qp->shape, number);
	struct acknowledged *m = receive_of(qp, number);
	struct finished f = {.number = number, .known = true};

	if (!m)
		return;
	sr_receiver_look(&m->sr, now_ns);
	f.chunks = m->sr.chunks;
	f.whole = sr_receiver_whole(&m->sr);
	receive_free(qp, slot);
	repeat_finish(qp, &f);
}

/* ---- what the peer says */

static bool take_ack(struct verbena_sdr_qp *qp, const struct control *c, const uint8_t *payload, uint64_t now_ns)
{
	struct repeated *m = send_of(qp, number_near(qp->sender.started, c->number));

	return !m || sr_sender_ack(&m->sr, payload, now_ns); /* of one that is over: a word that was late */
}

static bool take_nack(struct verbena_sdr_qp *qp, const struct control *c, const uint8_t *payload, uint64_t now_ns)
{
	struct repeated *m = send_of(qp, number_near(qp->sender.started, c->number));

	return !m || sr_sender_nack(&m->sr, payload, now_ns);
}

/* The PROBE may be of a receive that is open, that was completed, or that was never acknowledged. */
static bool take_probe(struct verbena_sdr_qp *qp, const struct control *c, uint64_t now_ns)
{
	uint64_t number = number_near(qp->receiver.posted, c->number);
	const struct finished *f = &qp->repeat.finished[shape_slot(&qp->shape, number)];
	struct acknowledged *m = receive_of(qp, number);

	if (m)
		sr_receiver_probed(&m->sr, now_ns);
	else if (f->known && f->number == number)
		say_finished(qp, f);
	else if (number < qp->receiver.posted && !receiver_slot(&qp->receiver, number))
		abort_send(qp, number);
	return number < qp->receiver.posted;
}

/* The code says who gives up: a receiver says SR_ABORTED, a sender why. */
static bool take_abort(struct verbena_sdr_qp *qp, const struct control *c, const uint8_t *payload)
{
	struct acknowledged *receive = receive_of(qp, number_near(qp->receiver.posted, c->number));
	struct repeated *send = send_of(qp, number_near(qp->sender.started, c->number));
	bool by_receiver = get_be16(payload) == SR_ABORTED;

	if (by_receiver && send)
		sr_sender_finish(&send->sr, SR_ABORTED);
	if (!by_receiver && receive)
		receive->aborted = true;
	return true;
}

bool repeat_take(struct verbena_sdr_qp *qp, const struct control *c, const uint8_t *payload, uint64_t now_ns)
{
	switch (c->type) {
	case CONTROL_SR_ACK: return take_ack(qp, c, payload, now_ns);
	case CONTROL_SR_NACK: return take_nack(qp, c, payload, now_ns);
	case CONTROL_PROBE:
	case CONTROL_EC_PLAN:
	case CONTROL_EC_END:
	case CONTROL_TAIL_PLAN: return take_probe(qp, c, now_ns);
	case CONTROL_ABORT: return take_abort(qp, c, payload);
	default: return false;
	}
}

/* ---- calls */

void verbena_sdr_sr_attr_init(struct verbena_sdr_sr_attr *attr)
{
	*attr = (struct verbena_sdr_sr_attr){
		.rtt_ns = 1000000,
		.rto_ns = 0,
		.timeout_ns = 0,
		.tries_max = 64,
		.reorder = 2,
		.nack = true,
	};
}

static int attr_read(const struct verbena_sdr_sr_attr *from, struct verbena_sdr_sr_attr *to)
{
	const uint64_t longest_ns = UINT64_C(1) << 60;

	if (from)
		*to = *from;
	else
		verbena_sdr_sr_attr_init(to);
	if (!to->rtt_ns || to->rtt_ns > longest_ns / 1000 || to->rto_ns > longest_ns || to->timeout_ns > longest_ns ||
	    to->tries_max < 1 || to->tries_max > 255)
		return -EINVAL;
	if (to->rtt_ns < RTT_NS_MIN)
		to->rtt_ns = RTT_NS_MIN;
	if (!to->rto_ns)
		to->rto_ns = 3 * to->rtt_ns;
	if (!to->timeout_ns)
		to->timeout_ns = 100 * to->rtt_ns + UINT64_C(10000000000);
	return 0;
}

/* The message was started, and is this one. */
static int open_send(struct verbena_sdr_qp *qp, const struct verbena_sdr_sr_attr *a, const struct send_block *b,
		     uint64_t *number)
{
	const struct sr_config config = {a->rtt_ns, a->rto_ns, a->timeout_ns, a->tries_max};
	struct repeated *m = calloc(1, sizeof(*m));
	int err;

	if (!m)
		return -ENOMEM;
	err = sr_sender_init(&m->sr, &config, shape_chunks(&qp->shape, b->bytes), sdr_now_ns(), &sdr_heap);
	if (!err)
		err = sender_start(&qp->sender, NULL, number);
	if (err) {
		sr_sender_free(&m->sr);
		free(m);
		return err;
	}
	m->number = *number;
	m->addr = b->addr;
	m->bytes = b->bytes;
	m->lkey = b->lkey;
	qp->repeat.sends[shape_slot(&qp->shape, *number)] = m;
	qp->repeat.open++;
	return 0;
}

int verbena_sdr_sr_send(struct verbena_sdr_qp *qp, const struct verbena_sdr_block *block,
			const struct verbena_sdr_sr_attr *attr, struct verbena_sdr_send *send)
{
	struct verbena_sdr_sr_attr a;
	uint64_t number = 0, granted;
	struct send_block b;
	int err;

	if (!qp || !send || attr_read(attr, &a))
		return sdr_fail(EINVAL);
	pthread_mutex_lock(&qp->lock);
	err = send_ready(qp, block, &b);
	if (!err && !sender_granted(&qp->sender, &granted))
		err = -EAGAIN;
	if (!err && (b.offset || b.bytes != granted))
		err = -EINVAL;
	if (!err)
		err = open_send(qp, &a, &b, &number);
	if (!err) {
		uint64_t due_ns = UINT64_MAX;

		repeat_serve(qp, sdr_now_ns(), &due_ns);
		*send = (struct verbena_sdr_send){qp, number};
	}
	err = send_settle(qp, err);
	if (err == VERBENA_SDR_SUCCESS)
		worker_wake(qp->owner);
	return err;
}

/* 1: the peer has it; 0: not yet; or why it never will. */
static int outcome(struct verbena_sdr_qp *qp, uint64_t number)
{
	struct repeated *m = send_of(qp, number);
	int done;

	if (!m)
		return -EINVAL;
	if (qp->broken)
		return -EIO;
	if (m->sr.end == SR_RUNNING || !m->ended)
		return 0;
	done = sender_done(&qp->sender, number);
	if (done != 1)
		return done;
	done = m->sr.end == SR_DONE ? 1 : m->sr.end == SR_ABORTED ? -ECONNABORTED : -ETIMEDOUT;
	send_free(qp, shape_slot(&qp->shape, number));
	return done;
}

int verbena_sdr_sr_poll(const struct verbena_sdr_send *send, bool *done)
{
	return send_poll_by(send, done, outcome);
}

/* The receive is open. */
static int open_receive(struct verbena_sdr_qp *qp, const struct verbena_sdr_sr_attr *a, const struct slot *slot,
			uint64_t number)
{
	const struct sr_receiver_config config = {
		.rtt_ns = a->rtt_ns,
		.ack_ns = a->rtt_ns / 64 > 20000 ? a->rtt_ns / 64 : 20000,
		.reorder = a->reorder,
		.nack = a->nack,
	};
	struct acknowledged *m = calloc(1, sizeof(*m));

	if (!m)
		return -ENOMEM;
	m->number = number;
	if (sr_receiver_init(&m->sr, &config, (const uint64_t *)slot->chunk_bits, slot->chunks, sdr_now_ns(),
			     &sdr_heap)) {
		free(m);
		return -ENOMEM;
	}
	qp->repeat.receives[shape_slot(&qp->shape, number)] = m;
	qp->repeat.open++;
	return 0;
}

int verbena_sdr_sr_recv(const struct verbena_sdr_recv *recv, const struct verbena_sdr_sr_attr *attr)
{
	struct verbena_sdr_sr_attr a;
	const struct slot *slot;
	int err = -EINVAL;

	if (!recv || !recv->qp || attr_read(attr, &a))
		return sdr_fail(EINVAL);
	pthread_mutex_lock(&recv->qp->lock);
	slot = receiver_slot(&recv->qp->receiver, recv->number);
	if (slot && !receive_of(recv->qp, recv->number) && !coded_receives(recv->qp, recv->number) &&
	    !tailed_receives(recv->qp, recv->number))
		err = open_receive(recv->qp, &a, slot, recv->number);
	pthread_mutex_unlock(&recv->qp->lock);
	if (err)
		return sdr_fail(-err);
	worker_wake(recv->qp->owner);
	return VERBENA_SDR_SUCCESS;
}

int verbena_sdr_sr_recv_poll(const struct verbena_sdr_recv *recv, bool *done)
{
	const struct acknowledged *m;
	bool whole = false, aborted = false;

	if (!recv || !recv->qp || !done)
		return sdr_fail(EINVAL);
	pthread_mutex_lock(&recv->qp->lock);
	m = receive_of(recv->qp, recv->number);
	if (m) {
		whole = sr_receiver_whole(&m->sr);
		aborted = m->aborted;
	}
	pthread_mutex_unlock(&recv->qp->lock);
	if (!m || (aborted && !whole))
		return sdr_fail(m ? ECONNABORTED : EINVAL);
	*done = whole;
	return VERBENA_SDR_SUCCESS;
}
