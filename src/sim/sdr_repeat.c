/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Selective Repeat over a line: src/sdr's two ends, with NACKs or without. The receiver is asked to look at its bitmap
 * no more often than a few hundred times a round trip, as looking takes time in proportion to what is on its way.
 */
#include "sim/sdr_line_state.h"

enum { ACKS_A_RTT = 64, LOOKS_A_RTT = 512, ACK_NS_MIN = 20000, TIMEOUT_RTTS = 1000, TRIES_MAX = 255, REORDER = 2 };

static bool repeat_open(struct transfer *t, uint64_t now_ns)
{
	const struct sdr_line *l = t->line;
	uint32_t chunks = shape_chunks(&l->shape, t->part[0].bytes);
	uint64_t ack_ns = l->rtt_ns / ACKS_A_RTT;
	const struct sr_config tx = {
		.rtt_ns = l->rtt_ns,
		.rto_ns = l->config->rto_rtts * l->rtt_ns,
		.timeout_ns = TIMEOUT_RTTS * l->rtt_ns + t->part[0].bytes, /* more than 8 Gbit/s */
		.tries_max = TRIES_MAX,
	};
	const struct sr_receiver_config rx = {
		.rtt_ns = l->rtt_ns,
		.ack_ns = ack_ns > ACK_NS_MIN ? ack_ns : ACK_NS_MIN,
		.reorder = REORDER,
		.nack = l->config->scheme == SDR_SCHEME_NACK,
	};
	const struct slot *slot = receiver_slot(&l->receiver, t->part[0].number);

	if (sr_sender_init(&t->sr.tx, &tx, chunks, now_ns, &sdr_line_alloc))
		return false;
	if (!sr_receiver_init(&t->sr.rx, &rx, (const uint64_t *)slot->chunk_bits, chunks, now_ns, &sdr_line_alloc))
		return true;
	sr_sender_free(&t->sr.tx);
	return false;
}

static void repeat_close(struct transfer *t)
{
	if (t->sr.tx.chunk)
		sr_sender_free(&t->sr.tx);
	if (t->sr.rx.bits)
		sr_receiver_free(&t->sr.rx);
}

/* The timer of a chunk starts when its last packet has left. */
static bool repeat_next(struct transfer *t, uint32_t *part, struct send_block *b, uint64_t now_ns)
{
	const struct sdr_line *l = t->line;
	uint64_t chunk_bytes = l->shape.chunk_bytes, left;
	uint32_t chunk;

	if (!sr_sender_next(&t->sr.tx, &chunk))
		return false;
	left = t->part[0].bytes - chunk * chunk_bytes;
	*part = 0;
	*b = (struct send_block){
		.addr = host_memory(l->from).va,
		.bytes = left < chunk_bytes ? left : chunk_bytes,
		.offset = chunk * chunk_bytes,
	};
	if (t->sr.tx.chunk[chunk].tries)
		l->counts->resent_packets += shape_packets(&l->shape, b->bytes);
	sr_sender_sent(&t->sr.tx, chunk, now_ns + sdr_line_send_ns(l, b->bytes));
	return true;
}

/* Whole at once when the last chunk comes; otherwise now and then. */
static void repeat_came(struct transfer *t, uint32_t part, uint32_t packet, enum sdr_verdict v, uint64_t now_ns)
{
	struct sr_receiver *r = &t->sr.rx;

	(void)part;
	(void)packet;
	t->came += v == SDR_CHUNK;
	if (v == SDR_CHUNK && (t->came == r->chunks || now_ns - t->looked_ns >= t->line->rtt_ns / LOOKS_A_RTT)) {
		t->looked_ns = now_ns;
		sr_receiver_look(r, now_ns);
	}
}

static void repeat_heard(struct transfer *t, enum sdr_end end, const struct control *c, const uint8_t *payload,
			 uint64_t now_ns)
{
	if (end == SDR_RECEIVING && c->type == CONTROL_PROBE)
		sr_receiver_probed(&t->sr.rx, now_ns);
	if (end == SDR_SENDING && c->type == CONTROL_SR_NACK)
		sr_sender_nack(&t->sr.tx, payload, now_ns);
	if (end == SDR_SENDING && c->type == CONTROL_SR_ACK)
		sr_sender_ack(&t->sr.tx, payload, now_ns);
}

static int repeat_tell(struct transfer *t, enum sdr_end end, uint8_t *payload, enum control_type *type, uint64_t now_ns)
{
	uint16_t len;

	if (end == SDR_SENDING) {
		*type = CONTROL_PROBE;
		return sr_sender_take_probe(&t->sr.tx) ? 0 : -1;
	}
	len = sr_receiver_tell(&t->sr.rx, payload, SDR_WORD_BYTES_MAX, type, now_ns);
	return len ? len : -1;
}

/* With unread news the receiver looks again soon, so that the last chunks before a pause are acknowledged. */
static uint64_t repeat_deadline(const struct transfer *t, enum sdr_end end)
{
	uint64_t at_ns, look_ns = t->looked_ns + t->line->rtt_ns / LOOKS_A_RTT;

	if (end == SDR_SENDING)
		return sr_sender_deadline(&t->sr.tx);
	at_ns = sr_receiver_deadline(&t->sr.rx);
	return t->came > t->sr.rx.have && look_ns < at_ns ? look_ns : at_ns;
}

static void repeat_expire(struct transfer *t, enum sdr_end end, uint64_t now_ns)
{
	if (end == SDR_SENDING) {
		sr_sender_expire(&t->sr.tx, now_ns);
		return;
	}
	t->looked_ns = now_ns;
	sr_receiver_look(&t->sr.rx, now_ns);
}

static bool repeat_whole(const struct transfer *t)
{
	return sr_receiver_whole(&t->sr.rx);
}

static bool repeat_quiet(const struct transfer *t)
{
	return sr_receiver_whole(&t->sr.rx) && !t->sr.rx.finals;
}

static enum sr_end repeat_end(const struct transfer *t)
{
	return t->sr.tx.end;
}

static uint32_t repeat_have(const struct transfer *t)
{
	uint64_t packets = (uint64_t)t->came * shape_chunk_packets(&t->line->shape);

	return packets < t->packets ? (uint32_t)packets : t->packets;
}

const struct scheme scheme_repeat = {
	.open = repeat_open,
	.close = repeat_close,
	.next = repeat_next,
	.came = repeat_came,
	.heard = repeat_heard,
	.tell = repeat_tell,
	.deadline = repeat_deadline,
	.expire = repeat_expire,
	.whole = repeat_whole,
	.quiet = repeat_quiet,
	.end = repeat_end,
	.have = repeat_have,
};
