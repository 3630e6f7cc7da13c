/* SPDX-License-Identifier: BSD-2-Clause */
/* Tail coding over a line: src/sdr's two ends. What a link loses is remembered from one message to the next. */
#include "sim/sdr_line_state.h"

enum { TIMEOUT_RTTS = 1000 };

static struct tail_config config_of(const struct sdr_line *l, uint64_t bytes)
{
	return (struct tail_config){
		.rtt_ns = l->rtt_ns,
		.packet_ns = sdr_line_send_ns(l, l->shape.mtu),
		.timeout_ns = TIMEOUT_RTTS * l->rtt_ns + bytes, /* more than 8 Gbit/s */
		.loss = l->config->assumed_loss,
		.fill = l->config->fill_class,
	};
}

static uint64_t tail_parity_bytes(const struct sdr_line *l, uint64_t bytes)
{
	const struct tail_config c = config_of(l, bytes);
	uint64_t parity = (uint64_t)tail_parity_packets(&c, shape_packets(&l->shape, bytes)) * l->shape.mtu;

	return parity < l->shape.message_bytes ? parity : l->shape.message_bytes;
}

static bool tail_open(struct transfer *t, uint64_t now_ns)
{
	const struct tail_config c = config_of(t->line, t->part[0].bytes);
	uint32_t parity_packets = shape_packets(&t->line->shape, t->part[1].bytes);

	if (tail_sender_init(&t->tail.tx, &c, t->packets, t->line->estimate, now_ns, &sdr_line_alloc))
		return false;
	if (!tail_receiver_init(&t->tail.rx, t->line->rtt_ns, t->packets, parity_packets, now_ns, &sdr_line_alloc))
		return true;
	tail_sender_free(&t->tail.tx);
	return false;
}

static void tail_close(struct transfer *t)
{
	if (t->tail.tx.sent_tick)
		tail_sender_free(&t->tail.tx);
	if (t->tail.rx.bits)
		tail_receiver_free(&t->tail.rx);
}

static void tail_send(struct transfer *t, const struct tail_send *s, uint32_t *part, struct send_block *b)
{
	const struct sdr_line *l = t->line;
	uint64_t offset = (uint64_t)s->packet * l->shape.mtu, left;

	*part = s->parity;
	left = t->part[*part].bytes - offset;
	*b = (struct send_block){
		.addr = host_memory(l->from).va,
		.bytes = left < l->shape.mtu ? left : l->shape.mtu,
		.offset = offset,
		.fill = s->fill,
	};
	l->counts->resent_packets += s->resent;
	l->counts->fill_packets += s->fill;
}

static bool tail_next(struct transfer *t, uint32_t *part, struct send_block *b, uint64_t now_ns)
{
	struct tail_send s;

	if (!tail_sender_next(&t->tail.tx, &s, now_ns))
		return false;
	tail_send(t, &s, part, b);
	return true;
}

static bool tail_fill(struct transfer *t, uint32_t *part, struct send_block *b, uint64_t now_ns)
{
	struct tail_send s;

	if (!tail_sender_fill(&t->tail.tx, &s, now_ns))
		return false;
	tail_send(t, &s, part, b);
	return true;
}

static void tail_came(struct transfer *t, uint32_t part, uint32_t packet, enum sdr_verdict v, uint64_t now_ns)
{
	(void)v;
	tail_receiver_came(&t->tail.rx, part, packet, now_ns);
}

static void tail_heard(struct transfer *t, enum sdr_end end, const struct control *c, const uint8_t *payload,
		       uint64_t now_ns)
{
	if (end == SDR_RECEIVING && c->type == CONTROL_TAIL_PLAN)
		tail_receiver_plan(&t->tail.rx, payload, now_ns);
	if (end == SDR_SENDING && c->type == CONTROL_SR_NACK)
		tail_sender_named(&t->tail.tx, payload, now_ns);
	if (end == SDR_SENDING && c->type == CONTROL_TAIL_STATE) {
		tail_sender_state(&t->tail.tx, payload, now_ns);
		*t->line->estimate = t->tail.tx.estimate;
	}
}

static int tail_tell(struct transfer *t, enum sdr_end end, uint8_t *payload, enum control_type *type, uint64_t now_ns)
{
	uint16_t len;

	if (end == SDR_SENDING) {
		*type = CONTROL_TAIL_PLAN;
		return tail_sender_tell(&t->tail.tx, payload, now_ns) ? TAIL_PLAN_LEN : -1;
	}
	len = tail_receiver_tell(&t->tail.rx, payload, SDR_WORD_BYTES_MAX, type, now_ns);
	return len ? len : -1;
}

static uint64_t tail_deadline(const struct transfer *t, enum sdr_end end)
{
	return end == SDR_SENDING ? tail_sender_deadline(&t->tail.tx) : tail_receiver_deadline(&t->tail.rx);
}

static void tail_expire(struct transfer *t, enum sdr_end end, uint64_t now_ns)
{
	if (end == SDR_SENDING)
		tail_sender_expire(&t->tail.tx, now_ns);
	else
		tail_receiver_expire(&t->tail.rx, now_ns);
}

static bool tail_whole(const struct transfer *t)
{
	return tail_receiver_whole(&t->tail.rx);
}

static bool tail_quiet(const struct transfer *t)
{
	return tail_receiver_quiet(&t->tail.rx);
}

static enum sr_end tail_end(const struct transfer *t)
{
	return t->tail.tx.end;
}

static uint32_t tail_have(const struct transfer *t)
{
	return tail_receiver_whole(&t->tail.rx) ? t->packets : t->tail.rx.have;
}

const struct scheme scheme_tail = {
	.parity_bytes = tail_parity_bytes,
	.open = tail_open,
	.close = tail_close,
	.next = tail_next,
	.fill = tail_fill,
	.came = tail_came,
	.heard = tail_heard,
	.tell = tail_tell,
	.deadline = tail_deadline,
	.expire = tail_expire,
	.whole = tail_whole,
	.quiet = tail_quiet,
	.end = tail_end,
	.have = tail_have,
};
