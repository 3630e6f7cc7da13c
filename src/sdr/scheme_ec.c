/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Erasure coding as a scheme. How a message is coded is the sender's choice: a receiver that waits for its plan only
 * has its pieces counted in the bitmaps.
 */
#include <string.h>

#include "base/byteorder.h"
#include "sdr/scheme.h"

enum { PLANS = 3 /* how often a plan is said when nothing is asked */, NEARLY = 16 /* groups */ };

/* ---- the sending end */

static bool next(struct scheme_tx *t, struct scheme_piece *out, uint64_t now_ns)
{
	struct ec_piece p;

	if (!ec_sender_next(&t->ec.tx, &p))
		return false;
	*out = (struct scheme_piece){
		.at = p.at,
		.parity = p.parity,
		.resent = ec_sender_all_sent(&t->ec.tx),
		.made = p.parity ? t->ec.tx.group[p.group].owed : 0,
	};
	return true;
}

static void sent(struct scheme_tx *t, const struct scheme_piece *p, uint64_t now_ns)
{
	ec_sender_sent(&t->ec.tx, now_ns);
}

static bool tx_take(struct scheme_tx *t, enum control_type type, const uint8_t *payload, uint64_t now_ns)
{
	return ec_sender_take(&t->ec.tx, type, payload, now_ns);
}

/* The first plan goes before the data; any may be lost, so one goes before each end marker, too. */
static int tx_tell(struct scheme_tx *t, uint8_t *payload, enum control_type *type, bool left, uint64_t now_ns)
{
	bool plan = t->ec.plans && now_ns >= t->ec.plan_ns;

	if (plan) {
		t->ec.plans--;
		t->ec.plan_ns = now_ns + t->ec.tx.config.rtt_ns / 8;
	} else if (!t->ec.end_waits) {
		if (!left || !ec_sender_tell(&t->ec.tx, t->ec.end, &t->ec.end_bytes, &t->ec.end_type, now_ns))
			return -1;
		t->ec.end_waits = true;
		plan = t->ec.says_plans;
	}
	if (plan) {
		*type = CONTROL_EC_PLAN;
		ec_plan_encode(payload, &t->ec.tx.config, t->ec.chunks);
		return EC_PLAN_LEN;
	}
	t->ec.end_waits = false;
	*type = t->ec.end_type;
	memcpy(payload, t->ec.end, t->ec.end_bytes);
	return t->ec.end_bytes;
}

static uint64_t tx_deadline(const struct scheme_tx *t)
{
	uint64_t at_ns = ec_sender_deadline(&t->ec.tx);

	return t->ec.plans && t->ec.plan_ns < at_ns ? t->ec.plan_ns : at_ns;
}

static void tx_expire(struct scheme_tx *t, uint64_t now_ns)
{
	ec_sender_expire(&t->ec.tx, now_ns);
}

static void finish(struct scheme_tx *t, enum sr_end end)
{
	ec_sender_finish(&t->ec.tx, end);
}

static enum sr_end end(const struct scheme_tx *t)
{
	return t->ec.tx.end;
}

static bool code_of(const struct ec_config *c, bool chunks, struct scheme_code *out)
{
	*out = (struct scheme_code){.layout = c->layout, .kind = c->kind, .chunks = chunks};
	return true;
}

static bool tx_code(const struct scheme_tx *t, struct scheme_code *out)
{
	return code_of(&t->ec.tx.config, t->ec.chunks, out);
}

static void count(const struct scheme_tx *t, uint64_t *pieces, uint64_t *lost)
{
	if (t->ec.tx.end != SR_DONE)
		return;
	*pieces += t->ec.tx.config.layout.pieces;
	*lost += t->ec.tx.lost;
}

static void tx_free(struct scheme_tx *t)
{
	ec_sender_free(&t->ec.tx);
}

/* ---- the receiving end */

static int plan(struct scheme_rx *r, const struct ec_config *c, bool chunks, uint64_t now_ns)
{
	int err = ec_receiver_init(
		&r->ec.rx, c, (const uint64_t *)(chunks ? r->data->chunk_bits : r->data->packet_bits),
		(const uint64_t *)(chunks ? r->parity->chunk_bits : r->parity->packet_bits), now_ns, r->ec.alloc);

	r->ec.planned = !err;
	r->ec.chunks = chunks;
	return err;
}

/* The first plan counts. Without memory for it the plan is ignored; the sender repeats it. */
static bool take_plan(struct scheme_rx *r, const uint8_t *payload, uint64_t now_ns)
{
	bool chunks = ec_plan_chunks(payload);
	uint32_t piece = chunks ? r->ec.shape->chunk_bytes : r->ec.shape->mtu;
	uint32_t pieces = (uint32_t)((r->ec.bytes + piece - 1) / piece);
	struct ec_config c;

	if (r->ec.planned)
		return true;
	if (!ec_plan_decode(&c, payload, pieces, r->ec.room / piece, r->ec.rtt_ns_min))
		return false;
	(void)plan(r, &c, chunks, now_ns);
	return true;
}

static uint32_t look(struct scheme_rx *r, uint64_t now_ns)
{
	return r->ec.planned && ec_receiver_look(&r->ec.rx, now_ns);
}

/* Looking for the last missing piece at each one is dear only where much is missing. */
static bool nearly(const struct scheme_rx *r, uint32_t pieces)
{
	const struct ec_layout *l = &r->ec.rx.config.layout;

	return pieces >= l->pieces && r->ec.rx.recovered + NEARLY >= l->groups;
}

static bool rx_take(struct scheme_rx *r, enum control_type type, const uint8_t *payload, uint64_t now_ns)
{
	if (type == CONTROL_EC_PLAN)
		return take_plan(r, payload, now_ns);
	return !r->ec.planned || ec_receiver_take(&r->ec.rx, type, payload, now_ns);
}

static uint16_t rx_tell(struct scheme_rx *r, uint8_t *payload, size_t max, enum control_type *type, uint64_t now_ns)
{
	return r->ec.planned ? ec_receiver_tell(&r->ec.rx, payload, max, type, now_ns) : 0;
}

static uint64_t rx_deadline(const struct scheme_rx *r)
{
	return r->ec.planned ? ec_receiver_deadline(&r->ec.rx) : UINT64_MAX;
}

static void rx_expire(struct scheme_rx *r, uint64_t now_ns)
{
	look(r, now_ns);
}

static bool whole(const struct scheme_rx *r)
{
	return r->ec.planned && ec_receiver_whole(&r->ec.rx);
}

static bool quiet(const struct scheme_rx *r)
{
	return whole(r) && !r->ec.rx.finals;
}

static bool rx_code(const struct scheme_rx *r, struct scheme_code *out)
{
	return r->ec.rx.came < r->ec.rx.config.layout.pieces && code_of(&r->ec.rx.config, r->ec.chunks, out);
}

static bool has(const struct scheme_rx *r, const struct ec_piece *p)
{
	return ec_receiver_has(&r->ec.rx, p);
}

static uint32_t has_of(const struct scheme_rx *r, uint32_t group)
{
	return r->ec.rx.group[group].data;
}

static uint16_t farewell(const struct scheme_rx *r, uint8_t *payload, enum control_type *type)
{
	*type = CONTROL_EC_ACK;
	put_be32(payload, r->ec.rx.config.layout.pieces - r->ec.rx.came);
	return EC_ACK_LEN;
}

static void rx_free(struct scheme_rx *r)
{
	if (r->ec.planned)
		ec_receiver_free(&r->ec.rx);
}

const struct scheme scheme_ec = {
	.next = next,
	.sent = sent,
	.tx_take = tx_take,
	.tx_tell = tx_tell,
	.tx_deadline = tx_deadline,
	.tx_expire = tx_expire,
	.finish = finish,
	.end = end,
	.tx_code = tx_code,
	.count = count,
	.tx_free = tx_free,
	.look = look,
	.nearly = nearly,
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

int scheme_tx_ec(struct scheme_tx *t, const struct ec_config *c, bool chunks, bool says_plans, uint64_t now_ns,
		 const struct alloc *alloc)
{
	*t = (struct scheme_tx){.scheme = &scheme_ec,
				.ec = {.plans = says_plans ? PLANS : 0, .chunks = chunks, .says_plans = says_plans}};
	return ec_sender_init(&t->ec.tx, c, now_ns, alloc);
}

int scheme_rx_ec(struct scheme_rx *r, const struct ec_config *c, const struct slot *data, const struct slot *parity,
		 uint64_t now_ns, const struct alloc *alloc)
{
	*r = (struct scheme_rx){.scheme = &scheme_ec, .data = data, .parity = parity, .ec = {.alloc = alloc}};
	return plan(r, c, true, now_ns);
}

void scheme_rx_ec_later(struct scheme_rx *r, const struct shape *shape, const struct slot *data,
			const struct slot *parity, uint64_t bytes, uint64_t room, uint64_t rtt_ns_min,
			const struct alloc *alloc)
{
	*r = (struct scheme_rx){
		.scheme = &scheme_ec,
		.data = data,
		.parity = parity,
		.ec = {.shape = shape, .bytes = bytes, .room = room, .rtt_ns_min = rtt_ns_min, .alloc = alloc},
	};
}
