/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Erasure coding over a line: src/sdr's two ends, as the paper has it (groups of chunks, a parity message of its own,
 * the fall-back timer and Selective Repeat), or with parities on demand and an end marker. The receiver looks at its
 * bitmaps no more often than a few hundred times a round trip, and when enough has come to be whole.
 */
#include "sim/sdr_line_state.h"

enum {
	TIMEOUT_RTTS = 1000,
	TRIES_MAX = 255,
	LOOKS_A_RTT = 512,
	ACKS_A_RTT = 64,
	ACK_NS_MIN = 20000,
	REORDER = 2,
	NEARLY = 16 /* groups */
};

static struct ec_layout layout_of(const struct sdr_line *l, uint64_t bytes)
{
	const struct sdr_config *c = l->config;
	bool more = c->scheme == SDR_SCHEME_DEMAND;
	struct ec_layout layout = {
		.pieces = shape_chunks(&l->shape, bytes),
		.data = c->code_data,
		.early = c->code_parity,
		.parity = c->code_parity,
		.parity_max = more ? EC_PIECES_MAX - c->code_data : c->code_parity,
		.depth = 1,
	};

	if (layout.parity_max > 4 * c->code_parity)
		layout.parity_max = 4 * c->code_parity;
	ec_layout_settle(&layout);
	return layout;
}

static uint64_t code_parity_bytes(const struct sdr_line *l, uint64_t bytes)
{
	const struct ec_layout layout = layout_of(l, bytes);

	return (uint64_t)layout.groups * layout.parity_max * l->shape.chunk_bytes;
}

static struct ec_config config_of(const struct sdr_line *l, uint64_t bytes)
{
	const struct sdr_config *c = l->config;
	bool demand = c->scheme == SDR_SCHEME_DEMAND;
	struct ec_config ec = {
		.layout = layout_of(l, bytes),
		.kind = c->scheme == SDR_SCHEME_XOR ? EC_XOR : EC_CAUCHY,
		.fallback = demand ? EC_FALLBACK_PARITY : EC_FALLBACK_SR,
		.end_marker = demand,
		.reorder = REORDER,
		.tries_max = TRIES_MAX,
		.rtt_ns = l->rtt_ns,
		.rto_ns = c->rto_rtts * l->rtt_ns,
		.timeout_ns = TIMEOUT_RTTS * l->rtt_ns + bytes,
		.inject_ns = sdr_line_send_ns(l, l->shape.chunk_bytes),
		.guard_ns = l->rtt_ns / 256,
		.ack_ns = l->rtt_ns / ACKS_A_RTT > ACK_NS_MIN ? l->rtt_ns / ACKS_A_RTT : ACK_NS_MIN,
		.loss = c->assumed_loss > 0 ? c->assumed_loss : 1e-2,
	};

	ec.fallback_ns = ec_fallback_ns(&ec.layout, ec.inject_ns, ec.rtt_ns, ec.rto_ns);
	return ec;
}

static bool code_open(struct transfer *t, uint64_t now_ns)
{
	const struct sdr_line *l = t->line;
	const struct ec_config c = config_of(l, t->part[0].bytes);
	const struct slot *data = receiver_slot(&l->receiver, t->part[0].number);
	const struct slot *parity = receiver_slot(&l->receiver, t->part[1].number);

	if (!ec_config_valid(&c) || ec_sender_init(&t->ec.tx, &c, now_ns, &sdr_line_alloc))
		return false;
	if (!ec_receiver_init(&t->ec.rx, &c, (const uint64_t *)data->chunk_bits, (const uint64_t *)parity->chunk_bits,
			      now_ns, &sdr_line_alloc))
		return true;
	ec_sender_free(&t->ec.tx);
	return false;
}

static void code_close(struct transfer *t)
{
	if (t->ec.tx.group)
		ec_sender_free(&t->ec.tx);
	if (t->ec.rx.group)
		ec_receiver_free(&t->ec.rx);
}

/* A piece counts as sent when its last packet has left. */
static bool code_next(struct transfer *t, uint32_t *part, struct send_block *b, uint64_t now_ns)
{
	const struct sdr_line *l = t->line;
	uint64_t piece = l->shape.chunk_bytes, left;
	struct ec_piece p;

	if (!ec_sender_next(&t->ec.tx, &p))
		return false;
	*part = p.parity;
	left = t->part[*part].bytes - p.at * piece;
	*b = (struct send_block){
		.addr = host_memory(l->from).va,
		.bytes = left < piece ? left : piece,
		.offset = p.at * piece,
	};
	if (ec_sender_all_sent(&t->ec.tx))
		l->counts->resent_packets += shape_packets(&l->shape, b->bytes);
	ec_sender_sent(&t->ec.tx, now_ns + sdr_line_send_ns(l, b->bytes));
	return true;
}

static void look(struct transfer *t, uint64_t now_ns)
{
	t->looked_ns = now_ns;
	t->unseen = false;
	ec_receiver_look(&t->ec.rx, now_ns);
}

/* Nothing is whole with fewer pieces than there are of data. */
static void code_came(struct transfer *t, uint32_t part, uint32_t packet, enum sdr_verdict v, uint64_t now_ns)
{
	(void)packet;
	if (v != SDR_CHUNK || ec_receiver_whole(&t->ec.rx))
		return;
	t->came += !part;
	t->came_all++;
	t->unseen = true;
	/* Looking for the last missing piece at each packet is dear only where much is missing. */
	if (now_ns - t->looked_ns >= t->line->rtt_ns / LOOKS_A_RTT ||
	    (t->came_all >= t->ec.rx.config.layout.pieces &&
	     t->ec.rx.recovered + NEARLY >= t->ec.rx.config.layout.groups))
		look(t, now_ns);
}

static void code_heard(struct transfer *t, enum sdr_end end, const struct control *c, const uint8_t *payload,
		       uint64_t now_ns)
{
	if (end == SDR_RECEIVING)
		ec_receiver_take(&t->ec.rx, c->type, payload, now_ns);
	else
		ec_sender_take(&t->ec.tx, c->type, payload, now_ns);
}

/* The end marker waits until what was sent has left. */
static int code_tell(struct transfer *t, enum sdr_end end, uint8_t *payload, enum control_type *type, uint64_t now_ns)
{
	uint16_t len = 0;

	if (end == SDR_RECEIVING) {
		len = ec_receiver_tell(&t->ec.rx, payload, SDR_WORD_BYTES_MAX, type, now_ns);
		return len ? len : -1;
	}
	if (!sender_idle(&t->line->sender))
		return -1;
	return ec_sender_tell(&t->ec.tx, payload, &len, type, now_ns) ? len : -1;
}

static uint64_t code_deadline(const struct transfer *t, enum sdr_end end)
{
	uint64_t at_ns, look_ns = t->looked_ns + t->line->rtt_ns / LOOKS_A_RTT;

	if (end == SDR_SENDING)
		return ec_sender_deadline(&t->ec.tx);
	at_ns = ec_receiver_deadline(&t->ec.rx);
	return t->unseen && look_ns < at_ns ? look_ns : at_ns;
}

static void code_expire(struct transfer *t, enum sdr_end end, uint64_t now_ns)
{
	if (end == SDR_SENDING)
		ec_sender_expire(&t->ec.tx, now_ns);
	else
		look(t, now_ns);
}

static bool code_whole(const struct transfer *t)
{
	return ec_receiver_whole(&t->ec.rx);
}

static bool code_quiet(const struct transfer *t)
{
	return ec_receiver_whole(&t->ec.rx) && !t->ec.rx.finals;
}

static enum sr_end code_end(const struct transfer *t)
{
	return t->ec.tx.end;
}

static uint32_t code_have(const struct transfer *t)
{
	uint64_t packets = (uint64_t)t->came * shape_chunk_packets(&t->line->shape);

	return packets < t->packets && !ec_receiver_whole(&t->ec.rx) ? (uint32_t)packets : t->packets;
}

const struct scheme scheme_code = {
	.parity_bytes = code_parity_bytes,
	.open = code_open,
	.close = code_close,
	.next = code_next,
	.came = code_came,
	.heard = code_heard,
	.tell = code_tell,
	.deadline = code_deadline,
	.expire = code_expire,
	.whole = code_whole,
	.quiet = code_quiet,
	.end = code_end,
	.have = code_have,
};
