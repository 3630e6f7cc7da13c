/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Messages in order: `first` is the oldest that is not completed, `next` the one whose pieces are being
 * posted. wr_id of a piece is its length, as completions come in order.
 */
#include "sim/channel.h"

#include <stdlib.h>
#include <string.h>

enum { PSN_MASK = 0xffffff };

struct channel {
	struct host *from, *to;
	struct qp *sender, *receiver;
	struct message_post *first, *last;
	struct message_post *next; /* NULL: all is posted */
	void *owner;
	uint32_t piece_bytes;
	uint32_t posted;      /* work requests that are not completed */
	uint64_t late_bytes;  /* of those, complete at the nic and not yet reported */
	uint32_t psn;         /* of the next piece's first packet */
	uint64_t packet;      /* its number, from 0 */
	uint32_t arrived_psn; /* of the first packet that the receiver lacked, by the last query */
	uint64_t arrived;     /* its number */
};

static int modify(struct host *h, struct qp *qp, struct qp_attr attr, uint32_t mask)
{
	return nic_qp_modify(host_nic(h), qp, &attr, mask | QPA_STATE, host_now_ns(h));
}

static int connect_one(struct host *h, struct qp *qp, const struct host *peer, const struct qp *other, uint8_t class)
{
	const struct host_config *c = host_config(h);
	struct qp_attr rtr = {
		.state = QPS_RTR,
		.path_mtu_bytes = c->mtu_bytes,
		.dest_qpn = qp_number(other),
		.rq_psn = qp_number(other) & 0xffffff,
		.max_dest_rd_atomic = 1,
		.min_rnr_timer = 1,
		.av = {.hop_limit = 64, .port = 1, .is_global = 1, .sl = class},
	};
	int err;

	host_address(host_index(peer), rtr.av.dgid);
	err = modify(h, qp, (struct qp_attr){.state = QPS_INIT, .port = 1, .access = MR_REMOTE_WRITE},
		     QPA_PKEY_INDEX | QPA_PORT | QPA_ACCESS_FLAGS);
	if (!err)
		err = modify(h, qp, rtr,
			     QPA_AV | QPA_PATH_MTU | QPA_DEST_QPN | QPA_RQ_PSN | QPA_MAX_DEST_RD_ATOMIC |
				     QPA_MIN_RNR_TIMER);
	if (!err)
		err = modify(h, qp,
			     (struct qp_attr){.state = QPS_RTS,
					      .sq_psn = qp_number(qp) & 0xffffff,
					      .timeout = c->timeout,
					      .retry_cnt = 7,
					      .rnr_retry = 7,
					      .max_rd_atomic = 1},
			     QPA_SQ_PSN | QPA_TIMEOUT | QPA_RETRY_CNT | QPA_RNR_RETRY | QPA_MAX_RD_ATOMIC);
	return err;
}

struct channel *channel_open(struct host *from, struct host *to, uint32_t piece_bytes)
{
	return channel_open_in_class(from, to, piece_bytes, host_config(from)->data_class);
}

struct channel *channel_open_in_class(struct host *from, struct host *to, uint32_t piece_bytes, uint8_t class)
{
	struct channel *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->from = from;
	c->to = to;
	c->piece_bytes = piece_bytes;
	c->sender = host_qp_create(from, CHANNEL_WRS, c);
	if (!c->sender)
		goto free_channel;
	c->receiver = host_qp_create(to, 1, c);
	if (!c->receiver)
		goto destroy_sender;
	if (connect_one(from, c->sender, to, c->receiver, class) ||
	    connect_one(to, c->receiver, from, c->sender, class))
		goto destroy_receiver;
	host_connected(from, c->sender, host_index(to), qp_number(c->receiver));
	host_connected(to, c->receiver, host_index(from), qp_number(c->sender));
	c->psn = qp_number(c->sender) & PSN_MASK; /* as connect_one() has it */
	c->arrived_psn = c->psn;
	host_kick(from); /* the nic may have CAPS to send */
	return c;

destroy_receiver:
	host_qp_destroy(to, c->receiver);
destroy_sender:
	host_qp_destroy(from, c->sender);
free_channel:
	free(c);
	return NULL;
}

void channel_close(struct channel *c)
{
	if (!c)
		return;
	host_forget(c->from, c);
	host_qp_destroy(c->from, c->sender);
	host_qp_destroy(c->to, c->receiver);
	free(c);
}

void channel_set_owner(struct channel *c, void *owner)
{
	c->owner = owner;
}

void *channel_owner(const struct channel *c)
{
	return c->owner;
}

uint64_t channel_progress(const struct channel *c, const struct message_post **m)
{
	uint64_t bytes;

	*m = c->first;
	if (!c->first)
		return 0;
	/* The nic's oldest request may be the next message's already. */
	bytes = c->first->completed + c->late_bytes + nic_qp_progress(c->sender);
	return bytes < c->first->bytes ? bytes : c->first->bytes;
}

/* How many packets have arrived, those behind gaps included. */
static uint64_t arrived(struct channel *c)
{
	struct nic_received r = nic_qp_received(c->receiver);

	/* A caller that calls less than once in all PSNs gets too low a number. */
	c->arrived += (r.next - c->arrived_psn) & PSN_MASK;
	c->arrived_psn = r.next;
	return c->arrived + r.early;
}

uint64_t channel_missing(struct channel *c, const struct message_post *m)
{
	uint64_t have = arrived(c), packets = m->bytes / host_config(c->from)->mtu_bytes;

	if (!m->posted)
		return packets;
	return m->packet + packets > have ? m->packet + packets - have : 0;
}

const struct message_post *channel_received(struct channel *c, struct channel_cursor *at, uint64_t *bytes)
{
	const struct message_post *m;
	uint64_t packets;

	if (!at->begun) {
		uint64_t have = arrived(c);

		*at = (struct channel_cursor){.begun = true, .next = c->first};
		if (c->first && c->first->packets && have > c->first->packet)
			at->packets = have - c->first->packet;
	}
	m = at->next;
	if (!m || !at->packets)
		return NULL;
	packets = at->packets < m->packets ? at->packets : m->packets;
	at->packets -= packets;
	at->next = m->next;
	*bytes = packets * host_config(c->from)->mtu_bytes;
	if (*bytes > m->posted || packets == m->packets)
		*bytes = m->posted;
	return m;
}

bool channel_is_idle(const struct channel *c)
{
	return !c->first;
}

const struct message_post *channel_message(const struct channel *c, uint32_t psn)
{
	const struct message_post *m = c->first;

	while (m && ((psn - m->psn) & PSN_MASK) >= m->packets)
		m = m->next;
	return m;
}

uint32_t channel_sender_qpn(const struct channel *c)
{
	return qp_number(c->sender);
}

uint32_t channel_receiver_qpn(const struct channel *c)
{
	return qp_number(c->receiver);
}

const struct qp *channel_sender(const struct channel *c)
{
	return c->sender;
}

static void post_piece(struct channel *c, struct message_post *m)
{
	uint64_t left = m->bytes - m->posted;
	uint32_t bytes = left < c->piece_bytes ? (uint32_t)left : c->piece_bytes;
	struct host_memory here = host_memory(c->from), there = host_memory(c->to);
	struct sq *sq = qp_sq(c->sender);
	struct send_wqe *w = sq_slot(sq, 0);
	uint32_t mtu = host_config(c->from)->mtu_bytes, packets;
	bool last = bytes == left;

	w->wr_id = bytes;
	w->opcode = last && m->notify ? WR_WRITE_IMM : WR_WRITE;
	w->flags = WR_SIGNALED;
	w->num_sge = 1;
	w->length = bytes;
	w->imm_or_key = m->imm;
	w->rkey = there.key;
	w->remote_va = there.va;
	w->packets = 0;
	w->sge[0] = (struct wqe_sge){.addr = here.va, .len = bytes, .lkey = here.key};
	sq_post(sq, 1);
	c->posted++;
	m->posted += bytes;
	if (m->posted == bytes) {
		m->psn = c->psn;
		m->packet = c->packet;
	}
	packets = (bytes + mtu - 1) / mtu;
	m->packets += packets;
	c->psn = (c->psn + packets) & PSN_MASK;
	c->packet += packets;
	if (last)
		c->next = m->next;
}

static void post_what_fits(struct channel *c)
{
	uint64_t now_ps = host_now_ps(c->from);
	bool any = false;

	while (c->next && c->posted < CHANNEL_WRS && c->next->due_ps <= now_ps) {
		post_piece(c, c->next);
		any = true;
	}
	if (!any)
		return;
	nic_doorbell(host_nic(c->from), c->sender);
	host_kick(c->from);
}

void channel_post(struct channel *c, struct message_post *m)
{
	m->next = NULL;
	m->posted = 0;
	m->completed = 0;
	m->packets = 0;
	if (c->first)
		c->last->next = m;
	else
		c->first = m;
	c->last = m;
	if (!c->next)
		c->next = m;
	m->due_ps = host_post_ps(c->from, c);
	post_what_fits(c);
}

void channel_ring(struct channel *c)
{
	post_what_fits(c);
}

void channel_completes_late(struct channel *c, uint64_t wr_id)
{
	c->late_bytes += wr_id;
}

struct message_post *channel_completed(struct channel *c, uint64_t wr_id, uint64_t *bytes, bool *done)
{
	struct message_post *m = c->first;

	c->posted--;
	c->late_bytes -= wr_id < c->late_bytes ? wr_id : c->late_bytes;
	m->completed += wr_id;
	*bytes = wr_id;
	*done = m->completed == m->bytes && m->posted == m->bytes;
	if (*done)
		c->first = m->next;
	post_what_fits(c);
	return m;
}
