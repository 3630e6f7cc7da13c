/* SPDX-License-Identifier: BSD-2-Clause */
/* Codes over the tail as a scheme: a piece is a packet. */
#include "sdr/scheme.h"

/* ---- the sending end */

static struct scheme_piece piece_of(const struct coded_send *s)
{
	return (struct scheme_piece){
		.at = s->packet, .parity = s->parity, .fill = s->fill, .resent = s->resent, .made = s->fill};
}

static bool next(struct scheme_tx *t, struct scheme_piece *out, uint64_t now_ns)
{
	struct coded_send s;

	if (!coded_sender_next(&t->tail, &s, now_ns))
		return false;
	*out = piece_of(&s);
	return true;
}

/* coded_sender_next() has noted it. */
static void sent(struct scheme_tx *t, const struct scheme_piece *p, uint64_t now_ns)
{
}

static bool fill(struct scheme_tx *t, struct scheme_piece *out, uint64_t now_ns)
{
	struct coded_send s;

	if (!coded_sender_fill(&t->tail, &s, now_ns))
		return false;
	*out = piece_of(&s);
	return true;
}

static uint64_t fill_deadline(const struct scheme_tx *t)
{
	return coded_sender_fill_deadline(&t->tail);
}

static bool tx_take(struct scheme_tx *t, enum control_type type, const uint8_t *payload, uint64_t now_ns)
{
	if (type == CONTROL_SR_NACK)
		return coded_sender_named(&t->tail, payload, now_ns);
	return type == CONTROL_CODED_STATE && coded_sender_state(&t->tail, payload, now_ns);
}

/* That all was sent is said once all has left. */
static int tx_tell(struct scheme_tx *t, uint8_t *payload, enum control_type *type, bool left, uint64_t now_ns)
{
	*type = CONTROL_CODED_PLAN;
	if (coded_sender_all_sent(&t->tail) && !left)
		return -1;
	return coded_sender_tell(&t->tail, payload, now_ns) ? CODED_PLAN_LEN : -1;
}

static uint64_t tx_deadline(const struct scheme_tx *t)
{
	return coded_sender_deadline(&t->tail);
}

static void tx_expire(struct scheme_tx *t, uint64_t now_ns)
{
	coded_sender_expire(&t->tail, now_ns);
}

static void finish(struct scheme_tx *t, enum sr_end end)
{
	coded_sender_finish(&t->tail, end);
}

static enum sr_end end(const struct scheme_tx *t)
{
	return t->tail.end;
}

/* Both count groups and their packets alike (coded_plan.h, ec_layout.h). */
static bool code_of(const struct coded_plan *p, uint32_t unasked, struct scheme_code *out)
{
	*out = (struct scheme_code){
		.layout = {.pieces = p->packets - p->tail,
			   .data = p->size,
			   .parity = unasked,
			   .parity_max = p->parity,
			   .depth = p->depth},
		.kind = coded_plan_is_wide(p) ? EC_WIDE : EC_CAUCHY,
		.first = p->tail,
	};
	return ec_layout_settle(&out->layout);
}

static bool tx_code(const struct scheme_tx *t, struct scheme_code *out)
{
	return t->tail.planned && t->tail.plan.parity && code_of(&t->tail.plan, t->tail.unasked, out);
}

static void count(const struct scheme_tx *t, uint64_t *pieces, uint64_t *lost)
{
	*pieces += t->tail.told.seen;
	*lost += t->tail.told.lost;
}

static void tx_free(struct scheme_tx *t)
{
	coded_sender_free(&t->tail);
}

/* ---- the receiving end */

static void came(struct scheme_rx *r, bool parity, uint32_t packet, uint64_t now_ns)
{
	coded_receiver_came(&r->tail, parity, packet, now_ns);
}

static uint32_t look_at(struct scheme_rx *r, bool parity, uint64_t now_ns)
{
	const uint64_t *known = parity ? r->tail.parity_bits : r->tail.bits;
	const struct slot *slot = parity ? r->parity : r->data;
	uint32_t n = 0;

	for (uint32_t i = 0; i < (slot->packets + 63) / 64 && !r->tail.state.whole; i++) {
		uint64_t fresh = atomic_load_explicit(&slot->packet_bits[i], memory_order_acquire) & ~known[i];

		for (; fresh; fresh &= fresh - 1, n++)
			coded_receiver_came(&r->tail, parity, i * 64 + (uint32_t)__builtin_ctzll(fresh), now_ns);
	}
	return n;
}

/* Of one that is whole no bit is looked at: the code recovers from what has been seen. */
static uint32_t look(struct scheme_rx *r, uint64_t now_ns)
{
	uint32_t n = look_at(r, false, now_ns) + look_at(r, true, now_ns);

	coded_receiver_expire(&r->tail, now_ns);
	return n;
}

static bool rx_take(struct scheme_rx *r, enum control_type type, const uint8_t *payload, uint64_t now_ns)
{
	return type == CONTROL_CODED_PLAN && coded_receiver_plan(&r->tail, payload, now_ns);
}

static uint16_t rx_tell(struct scheme_rx *r, uint8_t *payload, size_t max, enum control_type *type, uint64_t now_ns)
{
	return coded_receiver_tell(&r->tail, payload, max, type, now_ns);
}

static uint64_t rx_deadline(const struct scheme_rx *r)
{
	return coded_receiver_deadline(&r->tail);
}

static void rx_expire(struct scheme_rx *r, uint64_t now_ns)
{
	coded_receiver_expire(&r->tail, now_ns);
}

static bool whole(const struct scheme_rx *r)
{
	return coded_receiver_whole(&r->tail);
}

static bool quiet(const struct scheme_rx *r)
{
	return coded_receiver_quiet(&r->tail);
}

static bool rx_code(const struct scheme_rx *r, struct scheme_code *out)
{
	return r->tail.have < r->tail.packets && code_of(&r->tail.plan, r->tail.plan.parity, out);
}

static bool has(const struct scheme_rx *r, const struct ec_piece *p)
{
	uint32_t i = p->parity ? p->at : p->at + r->tail.plan.tail;
	const uint64_t *bits = p->parity ? r->tail.parity_bits : r->tail.bits;

	return bits[i / 64] >> i % 64 & 1;
}

static uint32_t has_of(const struct scheme_rx *r, uint32_t group)
{
	return r->tail.group[group].data;
}

static uint16_t farewell(const struct scheme_rx *r, uint8_t *payload, enum control_type *type)
{
	*type = CONTROL_CODED_STATE;
	return coded_state_encode(payload, &r->tail.state);
}

static void rx_free(struct scheme_rx *r)
{
	coded_receiver_free(&r->tail);
}

const struct scheme scheme_coded = {
	.next = next,
	.sent = sent,
	.fill = fill,
	.fill_deadline = fill_deadline,
	.tx_take = tx_take,
	.tx_tell = tx_tell,
	.tx_deadline = tx_deadline,
	.tx_expire = tx_expire,
	.finish = finish,
	.end = end,
	.tx_code = tx_code,
	.count = count,
	.tx_free = tx_free,
	.came = came,
	.look = look,
	.rx_take = rx_take,
	.rx_tell = rx_tell,
	.rx_deadline = rx_deadline,
	.rx_expire = rx_expire,
	.whole = whole,
	.quiet = quiet,
	.rx_code = rx_code,
	.has = has,
	.has_of = has_of,
	.farewell = farewell,
	.rx_free = rx_free,
};

int scheme_tx_coded(struct scheme_tx *t, const struct coded_config *c, uint32_t packets, const struct loss_estimate *e,
		    uint64_t now_ns, const struct alloc *alloc)
{
	t->scheme = &scheme_coded;
	return coded_sender_init(&t->tail, c, packets, e, now_ns, alloc);
}

const struct loss_estimate *scheme_estimate(const struct scheme_tx *t)
{
	return t->scheme == &scheme_coded ? &t->tail.estimate : NULL;
}

int scheme_rx_coded(struct scheme_rx *r, uint64_t rtt_ns, const struct slot *data, const struct slot *parity,
		    uint64_t now_ns, const struct alloc *alloc)
{
	*r = (struct scheme_rx){.scheme = &scheme_coded, .data = data, .parity = parity};
	return coded_receiver_init(&r->tail, rtt_ns, data->packets, parity->packets, now_ns, alloc);
}
