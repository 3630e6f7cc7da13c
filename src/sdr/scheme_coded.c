/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Codes as a scheme. How a message is coded is the sender's choice. A receiver that does not know whether its pieces are
 * packets or chunks waits for the plan, and has them counted in the bitmaps meanwhile.
 */
#include "sdr/scheme.h"

/* ---- the sending end */

static void piece_of(struct scheme_piece *out, const struct coded_send *s)
{
	*out = (struct scheme_piece){
		.at = s->piece, .parity = s->parity, .fill = s->fill, .resent = s->resent, .made = s->made};
}

static bool next(struct scheme_tx *t, struct scheme_piece *out, uint64_t now_ns)
{
	struct coded_send s;

	if (!coded_sender_next(&t->coded, &s, now_ns))
		return false;
	piece_of(out, &s);
	return true;
}

/* coded_sender_next() has noted it. */
static void sent(struct scheme_tx *t, const struct scheme_piece *p, uint64_t now_ns)
{
}

static bool fill(struct scheme_tx *t, struct scheme_piece *out, uint64_t now_ns)
{
	struct coded_send s;

	if (!coded_sender_fill(&t->coded, &s, now_ns))
		return false;
	piece_of(out, &s);
	return true;
}

static uint64_t fill_deadline(const struct scheme_tx *t)
{
	return coded_sender_fill_deadline(&t->coded);
}

static bool tx_take(struct scheme_tx *t, enum control_type type, const uint8_t *payload, uint64_t now_ns)
{
	return coded_sender_take(&t->coded, type, payload, now_ns);
}

/* That all was sent is said once all has left. */
static int tx_tell(struct scheme_tx *t, uint8_t *payload, enum control_type *type, bool left, uint64_t now_ns)
{
	if (coded_sender_all_sent(&t->coded) && !left)
		return -1;
	return coded_sender_tell(&t->coded, payload, type, now_ns);
}

static uint64_t tx_deadline(const struct scheme_tx *t)
{
	return coded_sender_deadline(&t->coded);
}

static void tx_expire(struct scheme_tx *t, uint64_t now_ns)
{
	coded_sender_expire(&t->coded, now_ns);
}

static void finish(struct scheme_tx *t, enum sr_end end)
{
	coded_sender_finish(&t->coded, end);
}

static enum sr_end end(const struct scheme_tx *t)
{
	return t->coded.end;
}

static bool code_of(const struct coded_plan *p, struct scheme_code *out)
{
	*out = (struct scheme_code){
		.layout = p->layout,
		.kind = p->is_xor                       ? EC_XOR
			: ec_layout_is_wide(&p->layout) ? EC_WIDE
							: EC_CAUCHY,
		.chunks = p->chunks,
	};
	return p->layout.parity_max > 0;
}

static bool tx_code(const struct scheme_tx *t, struct scheme_code *out)
{
	return t->coded.planned && code_of(&t->coded.plan, out);
}

static void count(const struct scheme_tx *t, uint64_t *pieces, uint64_t *lost)
{
	*pieces += t->coded.told.seen;
	*lost += t->coded.told.lost;
}

static void tx_free(struct scheme_tx *t)
{
	coded_sender_free(&t->coded);
}

/* ---- the receiving end */

static const uint64_t *bits_of(const struct scheme_rx *r, const struct slot *slot)
{
	return (const uint64_t *)(r->coded.chunks ? (const void *)slot->chunk_bits : (const void *)slot->packet_bits);
}

static void came(struct scheme_rx *r, bool parity, uint32_t packet, bool chunk, uint64_t now_ns)
{
	if (!r->coded.made || (r->coded.chunks && !chunk))
		return;
	if (r->coded.chunks)
		packet /= shape_chunk_packets(r->coded.shape);
	coded_receiver_came(&r->coded.rx, parity, packet, now_ns);
}

static uint32_t look_at(struct scheme_rx *r, bool parity, uint64_t now_ns)
{
	struct coded_receiver *rx = &r->coded.rx;
	const uint64_t *known = parity ? rx->parity_bits : rx->bits, *bits = bits_of(r, parity ? r->parity : r->data);
	uint32_t pieces = parity ? rx->parity_pieces : rx->pieces, n = 0;

	for (uint32_t i = 0; i < (pieces + 63) / 64 && !rx->state.whole; i++) {
		uint64_t fresh = __atomic_load_n(&bits[i], __ATOMIC_ACQUIRE) & ~known[i];

		for (; fresh; fresh &= fresh - 1, n++)
			coded_receiver_came(rx, parity, i * 64 + (uint32_t)__builtin_ctzll(fresh), now_ns);
	}
	return n;
}

/* Of one that is whole no bit is looked at: the code recovers from what has been seen. */
static uint32_t look(struct scheme_rx *r, uint64_t now_ns)
{
	uint32_t n;

	if (!r->coded.made)
		return 0;
	n = look_at(r, false, now_ns) + look_at(r, true, now_ns);
	coded_receiver_expire(&r->coded.rx, now_ns);
	return n;
}

/* The first plan counts, by which the pieces are known. Without memory for it the plan is ignored; the sender repeats
 * it. */
static bool make(struct scheme_rx *r, const uint8_t *payload, uint64_t now_ns)
{
	struct coded_plan p;
	uint32_t piece, pieces;

	if (!coded_plan_decode(&p, payload) || !p.rtt_ns)
		return false;
	piece = p.chunks ? r->coded.shape->chunk_bytes : r->coded.shape->mtu;
	pieces = (uint32_t)((r->coded.bytes + piece - 1) / piece);
	if (p.rtt_ns < r->coded.rtt_ns_min)
		p.rtt_ns = r->coded.rtt_ns_min;
	if (coded_receiver_init(&r->coded.rx, p.rtt_ns, pieces, (uint32_t)(r->coded.room / piece), now_ns,
				r->coded.alloc))
		return true;
	if (!coded_receiver_take(&r->coded.rx, CONTROL_CODED_PLAN, payload, now_ns)) {
		coded_receiver_free(&r->coded.rx);
		return false;
	}
	r->coded.chunks = p.chunks;
	r->coded.made = true;
	look(r, now_ns);
	return true;
}

static bool rx_take(struct scheme_rx *r, enum control_type type, const uint8_t *payload, uint64_t now_ns)
{
	if (r->coded.made)
		return coded_receiver_take(&r->coded.rx, type, payload, now_ns);
	return type == CONTROL_PROBE || (type == CONTROL_CODED_PLAN && make(r, payload, now_ns));
}

static uint16_t rx_tell(struct scheme_rx *r, uint8_t *payload, size_t max, enum control_type *type, uint64_t now_ns)
{
	return r->coded.made ? coded_receiver_tell(&r->coded.rx, payload, max, type, now_ns) : 0;
}

static uint64_t rx_deadline(const struct scheme_rx *r)
{
	return r->coded.made ? coded_receiver_deadline(&r->coded.rx) : UINT64_MAX;
}

static void rx_expire(struct scheme_rx *r, uint64_t now_ns)
{
	if (r->coded.made)
		coded_receiver_expire(&r->coded.rx, now_ns);
}

static bool whole(const struct scheme_rx *r)
{
	return r->coded.made && coded_receiver_whole(&r->coded.rx);
}

static bool quiet(const struct scheme_rx *r)
{
	return r->coded.made && coded_receiver_quiet(&r->coded.rx);
}

static bool rx_code(const struct scheme_rx *r, struct scheme_code *out)
{
	bool is_code = r->coded.rx.have < r->coded.rx.pieces && code_of(&r->coded.rx.plan, out);

	out->chunks = r->coded.chunks; /* whatever the plan says of one that did not wait for it */
	return is_code;
}

static bool has(const struct scheme_rx *r, const struct ec_piece *p)
{
	return coded_receiver_has(&r->coded.rx, p);
}

static uint32_t has_of(const struct scheme_rx *r, uint32_t group)
{
	return r->coded.rx.group[group].data;
}

static uint16_t farewell(const struct scheme_rx *r, uint8_t *payload, enum control_type *type)
{
	*type = CONTROL_CODED_STATE;
	return coded_state_encode(payload, &r->coded.rx.state);
}

static void rx_free(struct scheme_rx *r)
{
	if (r->coded.made)
		coded_receiver_free(&r->coded.rx);
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

int scheme_tx_coded(struct scheme_tx *t, const struct coded_config *c, uint32_t pieces, const struct loss_estimate *e,
		    uint64_t now_ns, const struct alloc *alloc)
{
	t->scheme = &scheme_coded;
	return coded_sender_init(&t->coded, c, pieces, e, now_ns, alloc);
}

const struct loss_estimate *scheme_estimate(const struct scheme_tx *t)
{
	return t->scheme == &scheme_coded && !t->coded.plan.chunks ? &t->coded.estimate : NULL;
}

int scheme_rx_coded(struct scheme_rx *r, uint64_t rtt_ns, const struct slot *data, const struct slot *parity,
		    uint64_t now_ns, const struct alloc *alloc)
{
	int err;

	*r = (struct scheme_rx){.scheme = &scheme_coded, .data = data, .parity = parity};
	err = coded_receiver_init(&r->coded.rx, rtt_ns, data->packets, parity->packets, now_ns, alloc);
	r->coded.made = !err;
	return err;
}

void scheme_rx_coded_later(struct scheme_rx *r, const struct shape *shape, const struct slot *data,
			   const struct slot *parity, uint64_t bytes, uint64_t room, uint64_t rtt_ns_min,
			   const struct alloc *alloc)
{
	*r = (struct scheme_rx){
		.scheme = &scheme_coded,
		.data = data,
		.parity = parity,
		.coded = {.shape = shape, .bytes = bytes, .room = room, .rtt_ns_min = rtt_ns_min, .alloc = alloc},
	};
}

uint32_t scheme_rx_have(const struct scheme_rx *r)
{
	return r->coded.made ? r->coded.rx.have : 0;
}
