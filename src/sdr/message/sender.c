/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A queue holds blocks of all messages in the order in which they were handed over. The layer
 * above decides what goes first: a retransmission that it hands over before new data, or as a repeat, goes before it.
 *
 * The user's immediate travels in fragments: the packet at offset o carries fragment o mod their
 * count. A block may have fewer packets than there are fragments. In a one-shot send, and for the
 * block that ends with the buffer, packets without payload then follow it with the other fragments.
 * In a streaming message, fragments that no block has carried follow at the end of the message.
 */
#include <assert.h>
#include <errno.h>

#include "sdr/message/sender.h"

int sender_init(struct sender *s, const struct shape *shape, const struct alloc *alloc)
{
	*s = (struct sender){.shape = *shape, .alloc = alloc};
	s->grants = alloc_get(alloc, shape->slots * sizeof(*s->grants));
	s->slots = alloc_get(alloc, shape->slots * sizeof(*s->slots));
	for (int i = 0; i < SENDER_QUEUES; i++)
		s->queues[i].blocks = alloc_get(alloc, SENDER_BLOCKS * sizeof(struct queued));
	if (s->grants && s->slots && s->queues[SENDER_REPEATS].blocks && s->queues[SENDER_NEW].blocks)
		return 0;
	sender_free(s);
	return -ENOMEM;
}

void sender_free(struct sender *s)
{
	alloc_put(s->alloc, s->grants, s->shape.slots * sizeof(*s->grants));
	alloc_put(s->alloc, s->slots, s->shape.slots * sizeof(*s->slots));
	s->grants = NULL;
	s->slots = NULL;
	for (int i = 0; i < SENDER_QUEUES; i++) {
		alloc_put(s->alloc, s->queues[i].blocks, SENDER_BLOCKS * sizeof(struct queued));
		s->queues[i].blocks = NULL;
	}
}

/* Grants are taken in order: one that is missing comes again. No more are kept than there are
 * slots. */
void sender_cts(struct sender *s, const struct cts *cts, const uint8_t *payload)
{
	uint64_t first = number_near(s->granted, cts->first);

	for (uint32_t i = 0; i < cts->count; i++) {
		struct grant g = cts_grant(payload, i);

		if (first + i != s->granted || s->granted - s->started >= s->shape.slots)
			continue;
		if (!g.bytes || g.bytes > s->shape.message_bytes)
			return;
		s->grants[shape_slot(&s->shape, s->granted++)] = g;
	}
}

static struct sending *sending_of(struct sender *s, uint64_t number)
{
	struct sending *m = &s->slots[shape_slot(&s->shape, number)];

	return m->taken && m->number == number ? m : NULL;
}

static bool can_start(const struct sender *s)
{
	return s->started < s->granted && !s->slots[shape_slot(&s->shape, s->started)].taken;
}

static bool is_full(const struct sender_queue *q)
{
	return q->tail - q->head >= SENDER_BLOCKS;
}

static struct queued *block_at(const struct sender_queue *q, uint32_t i)
{
	return &q->blocks[i % SENDER_BLOCKS];
}

bool sender_granted_ahead(const struct sender *s, uint32_t ahead, uint64_t *bytes)
{
	uint64_t number = s->started + ahead;
	uint32_t slot = shape_slot(&s->shape, number);

	if (number >= s->granted || s->slots[slot].taken)
		return false;
	*bytes = s->grants[slot].bytes;
	return true;
}

bool sender_granted(const struct sender *s, uint64_t *bytes)
{
	return sender_granted_ahead(s, 0, bytes);
}

int sender_start(struct sender *s, const uint32_t *imm, uint64_t *number)
{
	uint32_t slot = shape_slot(&s->shape, s->started);

	if (!can_start(s))
		return -EAGAIN;
	s->slots[slot] = (struct sending){
		.number = s->started,
		.grant = s->grants[slot],
		.imm = imm ? *imm : 0,
		.has_imm = imm,
		.taken = true,
	};
	*number = s->started++;
	return 0;
}

/* A block starts where a unit starts, and ends where one ends or at the end of the buffer. */
static bool block_fits(const struct grant *g, const struct send_block *b, uint32_t unit)
{
	if (b->offset % unit || b->offset > g->bytes || b->bytes > g->bytes - b->offset)
		return false;
	return b->bytes % unit == 0 || b->offset + b->bytes == g->bytes;
}

static uint32_t all_places(const struct sender *s)
{
	return (uint32_t)((UINT64_C(1) << imm_fragments(s->shape.split)) - 1);
}

/* The places of the fragments that packets of these offsets carry. */
static uint32_t places(const struct sender *s, uint64_t first, uint64_t count)
{
	uint32_t n = imm_fragments(s->shape.split), mask = 0;

	if (count >= n)
		return all_places(s);
	for (uint64_t i = 0; i < count; i++)
		mask |= 1u << (first + i) % n;
	return mask;
}

static void enqueue(struct sender *s, struct sender_queue *q, struct sending *m, const struct send_block *b, bool pad)
{
	uint32_t packets = shape_packets(&s->shape, b->bytes);
	uint32_t carried = places(s, b->offset / s->shape.mtu, packets);
	uint32_t pads = m->has_imm && pad ? all_places(s) & ~carried : 0;

	*block_at(q, q->tail++) = (struct queued){
		.block = *b,
		.slot = shape_slot(&s->shape, m->number),
		.packets = packets,
		.pads = pads,
	};
	m->frags |= carried | pads;
	m->blocks++;
	m->bytes += b->bytes;
}

static int add(struct sender *s, int queue, uint64_t number, const struct send_block *b, uint32_t unit)
{
	struct sender_queue *q = &s->queues[queue];
	struct sending *m = sending_of(s, number);

	if (!m || m->ended || !b->bytes || !block_fits(&m->grant, b, unit))
		return -EINVAL;
	if (is_full(q))
		return -EAGAIN;
	enqueue(s, q, m, b, b->offset + b->bytes == m->grant.bytes);
	return 0;
}

int sender_add(struct sender *s, uint64_t number, const struct send_block *b)
{
	return add(s, SENDER_NEW, number, b, s->shape.chunk_bytes);
}

int sender_repeat(struct sender *s, uint64_t number, const struct send_block *b)
{
	return add(s, SENDER_REPEATS, number, b, s->shape.chunk_bytes);
}

int sender_add_packets(struct sender *s, uint64_t number, const struct send_block *b)
{
	return add(s, SENDER_NEW, number, b, s->shape.mtu);
}

/* Queues the fragments that no block has carried: packets without payload, each at the offset that is
 * the fragment's place. */
static void enqueue_rest(struct sender *s, struct sending *m)
{
	struct sender_queue *q = &s->queues[SENDER_NEW];
	struct send_block none = {0};

	enqueue(s, q, m, &none, false);
	block_at(q, q->tail - 1)->pads = all_places(s) & ~m->frags;
	m->frags = all_places(s);
}

int sender_end(struct sender *s, uint64_t number)
{
	struct sending *m = sending_of(s, number);

	if (!m || m->ended)
		return -EINVAL;
	if (m->has_imm && m->frags != all_places(s)) {
		if (is_full(&s->queues[SENDER_NEW]))
			return -EAGAIN;
		enqueue_rest(s, m);
	}
	m->ended = true;
	return 0;
}

static void remove_slot(struct sender_queue *q, uint32_t slot)
{
	uint32_t kept = q->head;

	for (uint32_t i = q->head; i != q->tail; i++) {
		if (block_at(q, i)->slot != slot)
			*block_at(q, kept++) = *block_at(q, i);
	}
	q->tail = kept;
}

int sender_cancel(struct sender *s, uint64_t number)
{
	struct sending *m = sending_of(s, number);

	if (!m)
		return -EINVAL;
	for (int i = 0; i < SENDER_QUEUES; i++)
		remove_slot(&s->queues[i], shape_slot(&s->shape, number));
	m->blocks = 0;
	m->bytes = 0;
	m->ended = true;
	return 0;
}

int sender_post(struct sender *s, const uint32_t *imm, const struct send_block *b, uint64_t *number)
{
	struct sending *m;

	if (!b->bytes && !imm)
		return -EINVAL;
	if (!can_start(s) || is_full(&s->queues[SENDER_NEW]))
		return -EAGAIN;
	if (!block_fits(&s->grants[shape_slot(&s->shape, s->started)], b, s->shape.chunk_bytes))
		return -EINVAL;
	sender_start(s, imm, number);
	m = sending_of(s, *number);
	assert(m);
	enqueue(s, &s->queues[SENDER_NEW], m, b, true);
	m->ended = true;
	return 0;
}

int sender_done(struct sender *s, uint64_t number)
{
	struct sending *m = sending_of(s, number);

	if (!m)
		return -EINVAL;
	if (!m->ended || m->blocks || m->outstanding)
		return 0;
	m->taken = false;
	return 1;
}

bool sender_left(const struct sender *s, uint64_t number)
{
	const struct sending *m = &s->slots[shape_slot(&s->shape, number)];

	return !m->taken || m->number != number || (!m->blocks && !m->outstanding);
}

int sender_waiting(struct sender *s, uint64_t number, uint64_t *bytes)
{
	const struct sending *m = sending_of(s, number);

	if (!m)
		return -EINVAL;
	*bytes = m->bytes;
	return 0;
}

bool sender_idle(const struct sender *s)
{
	return !sender_queued(s);
}

/* The queue whose turn it is; NULL: nothing is queued. */
static const struct sender_queue *next_queue(const struct sender *s)
{
	for (int i = 0; i < SENDER_QUEUES; i++) {
		if (s->queues[i].head != s->queues[i].tail)
			return &s->queues[i];
	}
	return NULL;
}

static void data_packet(const struct sender *s, const struct queued *q, struct send_packet *p)
{
	uint64_t at = (uint64_t)q->packet * s->shape.mtu;
	uint64_t left = q->block.bytes - at;

	p->offset = q->block.offset + at;
	p->addr = q->block.addr + at;
	p->lkey = q->block.lkey;
	p->bytes = left < s->shape.mtu ? (uint32_t)left : s->shape.mtu;
}

bool sender_peek(const struct sender *s, struct send_packet *p)
{
	const struct sender_queue *from = next_queue(s);
	const struct queued *q;
	const struct sending *m;
	uint32_t index;

	if (!from)
		return false;
	q = block_at(from, from->head);
	m = &s->slots[q->slot];
	*p = (struct send_packet){.slot = q->slot, .rkey = m->grant.key};
	if (q->packet < q->packets)
		data_packet(s, q, p);
	else
		p->offset = (uint64_t)__builtin_ctz(q->pads) * s->shape.mtu;
	index = (uint32_t)(p->offset / s->shape.mtu);
	p->generation = shape_generation(&s->shape, m->number);
	p->channel = q->block.fill ? s->shape.channels : index % s->shape.channels;
	p->imm = imm_pack(s->shape.split,
			  (struct imm){.id = q->slot,
				       .offset = index,
				       .frag = m->has_imm ? imm_fragment(s->shape.split, m->imm, index) : 0});
	return true;
}

void sender_sent(struct sender *s)
{
	struct sender_queue *from = &s->queues[s->queues[SENDER_REPEATS].head == s->queues[SENDER_REPEATS].tail];
	struct queued *q = block_at(from, from->head);
	struct sending *m = &s->slots[q->slot];
	struct send_packet p;

	assert(from->head != from->tail);
	m->outstanding++;
	if (q->packet < q->packets) {
		data_packet(s, q, &p);
		m->bytes -= p.bytes;
		q->packet++;
	} else {
		q->pads &= q->pads - 1;
	}
	if (q->packet < q->packets || q->pads)
		return;
	m->blocks--;
	from->head++;
}

void sender_returned(struct sender *s, uint32_t slot, uint32_t count)
{
	assert(s->slots[slot].outstanding >= count);
	s->slots[slot].outstanding -= count;
}
