/* SPDX-License-Identifier: BSD-2-Clause */
/* Selective Repeat as a scheme: a piece is a chunk. */
#include "sdr/scheme.h"

static bool next(struct scheme_tx *t, struct scheme_piece *p, uint64_t now_ns)
{
	*p = (struct scheme_piece){0};
	if (!sr_sender_next(&t->sr, &p->at))
		return false;
	p->resent = t->sr.chunk[p->at].tries;
	return true;
}

static void sent(struct scheme_tx *t, const struct scheme_piece *p, uint64_t now_ns)
{
	sr_sender_sent(&t->sr, p->at, now_ns);
}

static bool tx_take(struct scheme_tx *t, enum control_type type, const uint8_t *payload, uint64_t now_ns)
{
	if (type == CONTROL_SR_ACK)
		return sr_sender_ack(&t->sr, payload, now_ns);
	return type == CONTROL_SR_NACK && sr_sender_nack(&t->sr, payload, now_ns);
}

static int tx_tell(struct scheme_tx *t, uint8_t *payload, enum control_type *type, bool left, uint64_t now_ns)
{
	*type = CONTROL_PROBE;
	return sr_sender_take_probe(&t->sr) ? 0 : -1;
}

static uint64_t tx_deadline(const struct scheme_tx *t)
{
	return sr_sender_deadline(&t->sr);
}

static void tx_expire(struct scheme_tx *t, uint64_t now_ns)
{
	sr_sender_expire(&t->sr, now_ns);
}

static void finish(struct scheme_tx *t, enum sr_end end)
{
	sr_sender_finish(&t->sr, end);
}

static enum sr_end end(const struct scheme_tx *t)
{
	return t->sr.end;
}

static void tx_free(struct scheme_tx *t)
{
	sr_sender_free(&t->sr);
}

static uint32_t packets_there(const struct slot *slot)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < (slot->packets + 63) / 64; i++)
		n += (uint32_t)__builtin_popcountll(atomic_load_explicit(&slot->packet_bits[i], memory_order_relaxed));
	return n;
}

/* At a low rate a chunk takes longer to come than the receiver waits for one. */
static uint32_t look(struct scheme_rx *r, uint64_t now_ns)
{
	bool news = sr_receiver_look(&r->sr, now_ns);
	uint32_t packets;

	if (now_ns < r->sr.nack_ns || !sr_receiver_silent(&r->sr, now_ns))
		return news;
	packets = packets_there(r->data);
	if (packets != r->packets)
		sr_receiver_alive(&r->sr, now_ns);
	r->packets = packets;
	return news;
}

static bool nearly(const struct scheme_rx *r, uint32_t pieces)
{
	return pieces == r->sr.chunks;
}

static bool rx_take(struct scheme_rx *r, enum control_type type, const uint8_t *payload, uint64_t now_ns)
{
	if (type != CONTROL_PROBE)
		return false;
	sr_receiver_probed(&r->sr, now_ns);
	return true;
}

static uint16_t rx_tell(struct scheme_rx *r, uint8_t *payload, size_t max, enum control_type *type, uint64_t now_ns)
{
	return sr_receiver_tell(&r->sr, payload, max, type, now_ns);
}

static uint64_t rx_deadline(const struct scheme_rx *r)
{
	return sr_receiver_deadline(&r->sr);
}

static void rx_expire(struct scheme_rx *r, uint64_t now_ns)
{
	sr_receiver_look(&r->sr, now_ns);
}

static bool whole(const struct scheme_rx *r)
{
	return sr_receiver_whole(&r->sr);
}

static bool quiet(const struct scheme_rx *r)
{
	return sr_receiver_whole(&r->sr) && !r->sr.finals;
}

static uint16_t farewell(const struct scheme_rx *r, uint8_t *payload, enum control_type *type)
{
	*type = CONTROL_SR_ACK;
	return sr_ack_encode(payload, &(struct sr_ack){.cum = r->sr.chunks}, NULL);
}

static void rx_free(struct scheme_rx *r)
{
	sr_receiver_free(&r->sr);
}

const struct scheme scheme_repeat = {
	.next = next,
	.sent = sent,
	.tx_take = tx_take,
	.tx_tell = tx_tell,
	.tx_deadline = tx_deadline,
	.tx_expire = tx_expire,
	.finish = finish,
	.end = end,
	.tx_free = tx_free,
	.look = look,
	.nearly = nearly,
	.rx_take = rx_take,
	.rx_tell = rx_tell,
	.rx_deadline = rx_deadline,
	.rx_expire = rx_expire,
	.whole = whole,
	.quiet = quiet,
	.farewell = farewell,
	.rx_free = rx_free,
};

int scheme_tx_repeat(struct scheme_tx *t, const struct sr_config *c, uint32_t chunks, uint64_t now_ns,
		     const struct alloc *alloc)
{
	t->scheme = &scheme_repeat;
	return sr_sender_init(&t->sr, c, chunks, now_ns, alloc);
}

int scheme_rx_repeat(struct scheme_rx *r, const struct sr_receiver_config *c, const struct slot *slot, uint64_t now_ns,
		     const struct alloc *alloc)
{
	*r = (struct scheme_rx){.scheme = &scheme_repeat, .data = slot};
	return sr_receiver_init(&r->sr, c, (const uint64_t *)slot->chunk_bits, slot->chunks, now_ns, alloc);
}
