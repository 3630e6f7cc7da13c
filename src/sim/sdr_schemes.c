/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How a line's messages are sent: the settings of src/sdr's schemes, and the calls of both ends. Coded ones are as the
 * paper has them (groups of chunks, a parity message of its own, the fall-back timer and Selective Repeat), or with
 * parities on demand and an end marker, or codes over the tail, by which what a link loses is remembered from one
 * message to the next.
 */
#include <stdlib.h>
#include <string.h>

#include "sdr/coded/coded_plan.h"
#include "sim/sdr_line_state.h"

enum {
	WORD_ALIGN = 64,
	LOOKS_A_RTT = 512,
	ACKS_A_RTT = 64,
	ACK_NS_MIN = 20000,
	TIMEOUT_RTTS = 1000,
	TRIES_MAX = 255,
	REORDER = 2
};

/* ---- memory ------------------------------------------------------------------------------------------- */

static void *get(void *ctx, size_t bytes)
{
	size_t room = (bytes + WORD_ALIGN - 1) / WORD_ALIGN * WORD_ALIGN;
	void *p = aligned_alloc(WORD_ALIGN, room ? room : WORD_ALIGN);

	(void)ctx;
	return p ? memset(p, 0, room) : NULL;
}

static void put(void *ctx, void *p, size_t bytes)
{
	(void)ctx;
	(void)bytes;
	free(p);
}

const struct alloc sdr_line_alloc = {.get = get, .put = put};

/* ---- settings ------------------------------------------------------------------------------------------ */

static uint64_t ack_ns(const struct sdr_line *l)
{
	return l->rtt_ns / ACKS_A_RTT > ACK_NS_MIN ? l->rtt_ns / ACKS_A_RTT : ACK_NS_MIN;
}

/* At 8 Gbit/s, half of the rate that is set, or 1 Mbit/s where none is known; an hour at most. */
static uint64_t timeout_ns(const struct sdr_line *l, uint64_t bytes)
{
	uint64_t bps = l->config->rate_bps ? l->config->rate_bps / 2 : UINT64_C(8000000000);
	double ns = (double)bytes * 8e9 / (double)(l->config->rate_auto ? UINT64_C(1000000) : bps);

	ns += (double)(TIMEOUT_RTTS * l->rtt_ns);
	return ns < 3.5e12 ? (uint64_t)ns : UINT64_C(3500000000000);
}

/* ---- Selective Repeat --------------------------------------------------------------------------------- */

static bool repeat_open(struct transfer *t, uint64_t now_ns)
{
	const struct sdr_line *l = t->line;
	const struct slot *slot = receiver_slot(&l->receiver, t->part[0].number);
	const struct sr_config tx = {
		.rtt_ns = l->rtt_ns,
		.rto_ns = l->config->rto_rtts * l->rtt_ns,
		.timeout_ns = timeout_ns(l, t->part[0].bytes),
		.tries_max = TRIES_MAX,
	};
	const struct sr_receiver_config rx = {
		.rtt_ns = l->rtt_ns,
		.ack_ns = ack_ns(l),
		.reorder = REORDER,
		.nack = l->config->scheme == SDR_SCHEME_NACK,
	};

	return !scheme_tx_repeat(&t->tx, &tx, slot->chunks, now_ns, &sdr_line_alloc) &&
	       !scheme_rx_repeat(&t->rx, &rx, slot, now_ns, &sdr_line_alloc);
}

/* ---- codes -------------------------------------------------------------------------------------------- */

static bool is_tail(const struct sdr_line *l)
{
	return l->config->scheme == SDR_SCHEME_TAIL;
}

static struct ec_layout layout_of(const struct sdr_line *l, uint64_t bytes)
{
	const struct sdr_config *c = l->config;
	bool more = c->scheme == SDR_SCHEME_DEMAND;
	struct ec_layout layout = {
		.pieces = shape_chunks(&l->shape, bytes),
		.data = c->code_data,
		.parity = c->code_parity,
		.parity_max = more ? EC_PIECES_MAX - c->code_data : c->code_parity,
		.depth = 1,
	};

	if (layout.parity_max > 4 * c->code_parity)
		layout.parity_max = 4 * c->code_parity;
	ec_layout_settle(&layout);
	return layout;
}

static struct coded_config coded_config(const struct sdr_line *l, uint64_t bytes)
{
	const struct sdr_config *c = l->config;
	struct coded_config coded = {
		.rtt_ns = l->rtt_ns,
		.piece_ns = sdr_line_send_ns(l, l->shape.chunk_bytes),
		.timeout_ns = timeout_ns(l, bytes),
		.loss = c->assumed_loss,
	};
	struct coded_plan *p = &coded.plan;

	if (is_tail(l)) {
		coded.fill = c->fill_class;
		return coded;
	}
	*p = (struct coded_plan){
		.layout = layout_of(l, bytes),
		.chunks = true,
		.is_xor = c->scheme == SDR_SCHEME_XOR,
		.repeats = c->scheme != SDR_SCHEME_DEMAND,
		.rtt_ns = l->rtt_ns,
	};
	if (coded.loss <= 0)
		coded.loss = 1e-2;
	coded.fresh = !p->repeats;
	coded.silent = p->repeats;
	coded.rto_ns = c->rto_rtts * l->rtt_ns;
	coded.tries_max = TRIES_MAX;
	p->wait_ns = coded_wait_ns(&p->layout, coded.piece_ns, coded.rtt_ns, coded.rto_ns);
	return coded;
}

static bool coded_open(struct transfer *t, uint64_t now_ns)
{
	const struct sdr_line *l = t->line;
	const struct coded_config c = coded_config(l, t->part[0].bytes);
	const struct slot *data = receiver_slot(&l->receiver, t->part[0].number);
	const struct slot *parity = receiver_slot(&l->receiver, t->part[1].number);

	if ((!is_tail(l) && !c.plan.layout.groups) ||
	    scheme_tx_coded(&t->tx, &c, data->chunks, l->estimate, now_ns, &sdr_line_alloc))
		return false;
	if (is_tail(l))
		return !scheme_rx_coded(&t->rx, l->rtt_ns, data, parity, now_ns, &sdr_line_alloc);
	scheme_rx_coded_later(&t->rx, &l->shape, data, parity, t->part[0].bytes, t->part[1].bytes, 0, &sdr_line_alloc);
	return true;
}

/* ---- any ---------------------------------------------------------------------------------------------- */

static bool repeats(const struct sdr_line *l)
{
	return l->config->scheme == SDR_SCHEME_SR || l->config->scheme == SDR_SCHEME_NACK;
}

uint64_t sdr_parity_bytes(const struct sdr_line *l, uint64_t bytes)
{
	struct coded_config c;
	uint64_t pieces;

	if (repeats(l))
		return 0;
	c = coded_config(l, bytes);
	if (!is_tail(l))
		return (uint64_t)c.plan.layout.groups * c.plan.layout.parity_max * l->shape.chunk_bytes;
	pieces = coded_parity_pieces(&c, shape_packets(&l->shape, bytes)) * (uint64_t)l->shape.mtu;
	return pieces < l->shape.message_bytes ? pieces : l->shape.message_bytes;
}

bool sdr_scheme_open(struct transfer *t, uint64_t now_ns)
{
	return repeats(t->line) ? repeat_open(t, now_ns) : coded_open(t, now_ns);
}

/*
 * A receiver that looks at bitmaps does so no more often than a few hundred times a round trip, as looking takes time
 * in proportion to what is on its way, and when enough has come to be whole; with unread news it looks again soon, so
 * that the last chunks before a pause are acknowledged.
 */
static uint64_t look_ns(const struct transfer *t)
{
	return t->looked_ns + t->line->rtt_ns / LOOKS_A_RTT;
}

uint64_t sdr_end_deadline(const struct transfer *t, enum sdr_end end)
{
	uint64_t at_ns = end == SDR_SENDING ? t->tx.scheme->tx_deadline(&t->tx) : t->rx.scheme->rx_deadline(&t->rx);

	return end == SDR_RECEIVING && t->unseen && look_ns(t) < at_ns ? look_ns(t) : at_ns;
}

void sdr_end_expire(struct transfer *t, enum sdr_end end, uint64_t now_ns)
{
	if (end == SDR_SENDING) {
		t->tx.scheme->tx_expire(&t->tx, now_ns);
		return;
	}
	t->looked_ns = now_ns;
	t->unseen = false;
	t->rx.scheme->rx_expire(&t->rx, now_ns);
}

void sdr_came(struct transfer *t, uint32_t part, uint32_t packet, enum sdr_verdict v, uint64_t now_ns)
{
	const struct scheme *scheme = t->rx.scheme;

	if (scheme->came) {
		scheme->came(&t->rx, part, packet, v == SDR_CHUNK, now_ns);
		return;
	}
	if (v != SDR_CHUNK || scheme->whole(&t->rx))
		return;
	t->came += !part;
	t->came_all++;
	t->unseen = true;
	if (now_ns >= look_ns(t) || scheme->nearly(&t->rx, t->came_all))
		sdr_end_expire(t, SDR_RECEIVING, now_ns);
}

void sdr_end_hear(struct transfer *t, enum sdr_end end, const struct control *c, const uint8_t *payload,
		  uint64_t now_ns)
{
	if (end == SDR_RECEIVING) {
		t->rx.scheme->rx_take(&t->rx, c->type, payload, now_ns);
		return;
	}
	t->tx.scheme->tx_take(&t->tx, c->type, payload, now_ns);
	if (scheme_estimate(&t->tx))
		*t->line->estimate = *scheme_estimate(&t->tx);
}

int sdr_end_tell(struct transfer *t, enum sdr_end end, uint8_t *payload, enum control_type *type, uint64_t now_ns)
{
	uint16_t len;

	if (end == SDR_SENDING)
		return t->tx.scheme->tx_tell(&t->tx, payload, type, sender_idle(&t->line->sender), now_ns);
	len = t->rx.scheme->rx_tell(&t->rx, payload, SDR_WORD_BYTES_MAX, type, now_ns);
	return len ? len : -1;
}

uint64_t sdr_have(const struct transfer *t)
{
	uint64_t pieces = t->rx.scheme->came ? scheme_rx_have(&t->rx) : t->came;
	uint64_t packets = pieces * shape_chunk_packets(&t->line->shape);

	return packets < t->packets && !t->rx.scheme->whole(&t->rx) ? packets : t->packets;
}
