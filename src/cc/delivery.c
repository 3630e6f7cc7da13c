/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Time goes in epochs of a quarter of the least round trip, by when acknowledgements were caused: what was sent in one is
 * compared with what arrived of it. A rate is never higher than that of sending, so a peer that had to wait for a
 * processor and then counts everything at once does not look like a fast path; a rate of an epoch in which the sender
 * had less to send than it might is not a low one of the path. Of round trips the least of an epoch counts, as hosts
 * add to it and never take from it.
 *
 * All flows at a bottleneck see one queue. Each wants a share of it that is smaller, in time, the faster the flow is;
 * so the faster ones give way. They must agree about the least round trip for that, and none sees it while all keep a
 * queue. So a flow that has not seen the queue empty for a while, or sees much more of it than it wants, keeps less in
 * flight for a round trip; and since all see the same queue at the same time, they do so at about the same time.
 *
 * A newcomer takes the others' queue for a part of the least round trip, until they drain it. From then on it knows how
 * long that queue was, and so how fast each of those is that want such a queue. Until it has half of that it goes on as
 * in STARTUP, though there is a queue; the rest comes by itself.
 *
 * A short buffer loses packets before a queue can be seen. So loss beyond that of a path that is not full takes a half
 * of the share of the queue, which comes back slowly.
 */
#include "cc/delivery.h"

#include <string.h>

#include "cc/common.h"

enum {
	EPOCHS = 4,      /* a round trip */
	FULL_EPOCHS = 8, /* STARTUP ends after so many in a row in which the rate did not grow by a sixteenth */
	CALM_EPOCHS = 6, /* after so many without a queue the window grows faster */
	EMPTY_RTTS = 10, /* a queue that was not empty for so long is drained */
	TURN_RTTS = 16,  /* a least round trip counts for once or twice that */
	DRAINS_APART_RTTS = 8,
	JOIN_RTTS = 3,
	DRAIN_PERCENT = 50, /* of what the path holds is in flight */
	DRAIN_PERCENT_DEEP = 25,
	SILENT_RTTS = 4 /* an epoch that took longer says nothing */
};

#define SILENT_NS       UINT64_C(100000000)
#define RATE_BPS_LEAST  UINT64_C(64000)
#define RTT_NS_MAX      UINT64_C(100000000000)
#define START_RTT_NS    UINT64_C(100000000)
#define Q16_ONE         UINT64_C(65536)
#define LOSS_Q16_MAX    (Q16_ONE / 10)
#define LOSS_Q16_EXCESS (Q16_ONE / 25)
#define ROOM_Q16_MIN    (Q16_ONE / 16)

const struct delivery_params delivery_params_default = {
	.queue_q32 = Q32_RATIO(8, 100),
};

/* An acknowledgement, and when what caused it was sent and arrived. */
struct sample {
	const struct cc_ack *ack;
	uint64_t now_ns, sent_ns, peer_ns;
};

static uint64_t q16_mul(uint64_t a, uint64_t q16)
{
	return fx_muldiv(a, q16, Q16_ONE);
}

static uint64_t bytes_in(uint64_t bps, uint64_t ns)
{
	return fx_min(fx_muldiv(bps, ns, UINT64_C(8000000000)), CC_CWND_BYTES_LIMIT);
}

static uint64_t bps_of(uint64_t bytes, uint64_t ns)
{
	return fx_min(fx_muldiv(bytes, UINT64_C(8000000000), fx_max(ns, 1)), CC_RATE_BPS_LIMIT);
}

/* What arrives. */
static uint64_t arriving(const struct cc_delivery *d)
{
	return d->bps;
}

/* ... and has to be sent for it. */
static uint64_t leaving(const struct cc_delivery *d)
{
	return fx_muldiv(arriving(d), Q16_ONE, Q16_ONE - fx_min(d->own_loss_q16, LOSS_Q16_MAX));
}

/* How often a rate has to be doubled until it is some 16 Gbit/s, in 1/256; the fraction is interpolated. */
static int64_t octaves_q8(uint64_t bps)
{
	uint32_t top = 63 - (uint32_t)__builtin_clzll(bps | 256);

	return (34 << 8) - (int64_t)((uint64_t)top << 8 | (bps >> (top - 8) & 255));
}

/* The queue that a flow of this rate wants, in time. */
static uint64_t queue_of(const struct cc_delivery *d, uint64_t bps)
{
	int64_t octaves = octaves_q8(bps);
	uint64_t more_q32 = d->params->queue_q32 * (uint64_t)(octaves > 0 ? octaves : 0) >> 8;

	return fx_max(q32_mul(d->base_ns, fx_min(Q32_ONE / 20 + more_q32, Q32_ONE)), d->slack_ns);
}

static uint64_t queue_ns(const struct cc_delivery *d)
{
	return queue_of(d, arriving(d));
}

static void pace(struct cc *c, uint64_t bps)
{
	const struct cc_delivery *d = &c->delivery;

	c->rate_bps = fx_min(fx_max(bps, d->rate_bps_min), d->rate_bps_max);
}

static void allow(struct cc *c, uint64_t bytes)
{
	c->cwnd_bytes = fx_min(fx_max(bytes, c->cwnd_bytes_min), c->cwnd_bytes_max);
}

/* ---- the three states */

static void cruise(struct cc *c, uint64_t rtt_ns)
{
	struct cc_delivery *d = &c->delivery;
	uint64_t bps = leaving(d), window = bytes_in(bps, d->base_ns);

	if (d->calm >= CALM_EPOCHS)
		window += d->calm < 2 * CALM_EPOCHS ? window / 4 : window / 2;
	window = fx_add(window, q16_mul(bytes_in(bps, queue_ns(d)), d->room_q16));
	window = fx_max(window, c->cwnd_bytes_min);
	pace(c, bps_of(window + window / 16, fx_max(rtt_ns, d->base_ns)));
	allow(c, window + UINT64_C(4) * c->mtu_bytes);
}

static void start_up(struct cc *c, bool limited)
{
	const struct cc_delivery *d = &c->delivery;
	uint64_t bps = fx_max(2 * arriving(d), limited ? c->rate_bps : c->rate_bps / 2);

	pace(c, bps);
	allow(c, fx_max(9 * bytes_in(bps, d->base_ns) / 8, UINT64_C(16) * c->mtu_bytes));
}

static void drain(struct cc *c)
{
	const struct cc_delivery *d = &c->delivery;
	uint64_t bps = leaving(d);

	pace(c, bps);
	allow(c, q16_mul(bytes_in(bps, d->base_ns), Q16_ONE * (d->deep ? DRAIN_PERCENT_DEEP : DRAIN_PERCENT) / 100));
}

static void drain_begin(struct cc *c, uint64_t now_ns)
{
	struct cc_delivery *d = &c->delivery;

	d->deep |= d->state == DELIVERY_STARTUP;
	d->state = DELIVERY_DRAIN;
	d->drain_ns = now_ns;
	d->drained_ns = 0;
	d->measuring = false;
	d->calm = d->over = 0;
	drain(c);
}

/* What was sent while little was in flight has arrived: what is missing is the path's own loss. */
static void drain_end(struct cc *c, uint64_t now_ns, const struct cc_ack *ack)
{
	struct cc_delivery *d = &c->delivery;
	uint64_t sent = fx_sub(ack->ack_seq, d->seq);

	if (sent)
		d->own_loss_q16 = (uint32_t)fx_min(fx_muldiv(fx_sub(sent, d->bytes), Q16_ONE, sent), LOSS_Q16_MAX);
	d->loss_q16 = d->own_loss_q16;
	/* If there was a queue all the same, others kept it: the next time it takes more. */
	d->deep = fx_sub(d->rtt_ns, d->base_ns) > queue_ns(d) / 4;
	d->empty_ns = d->deep ? now_ns - fx_min(now_ns, EMPTY_RTTS / 2 * (d->base_ns + queue_ns(d))) : now_ns;
	d->state = DELIVERY_CRUISE;
	cruise(c, d->rtt_ns);
}

/* ---- epochs */

static void note_loss(struct cc_delivery *d, uint64_t sent)
{
	uint64_t got = fx_min(d->bytes, sent);
	uint32_t sample = (uint32_t)fx_muldiv(sent - got, Q16_ONE, sent);

	d->loss_q16 = d->loss_q16 - d->loss_q16 / 8 + sample / 8;
}

static void note_rate(struct cc_delivery *d, uint64_t bps, bool limited)
{
	if (limited && bps <= arriving(d))
		return;
	if (d->state == DELIVERY_STARTUP)
		d->bps = fx_max(bps, d->bps);
	else
		d->bps += bps / 4 - d->bps / 4;
}

/* The least of the rates that may have been in force when the packets of an epoch were sent. */
static uint64_t asked_bps(const struct cc_delivery *d)
{
	uint64_t least = UINT32_MAX;

	for (uint32_t i = 0; i < DELIVERY_ASKED; i++)
		least = fx_min(least, d->asked_kbps[i]);
	return least * 1000;
}

static void note_asked(struct cc_delivery *d, uint64_t bps)
{
	memmove(d->asked_kbps + 1, d->asked_kbps, sizeof(d->asked_kbps) - sizeof(d->asked_kbps[0]));
	d->asked_kbps[0] = (uint32_t)fx_min(bps / 1000, UINT32_MAX);
}

static uint8_t one_more(uint8_t n, bool again)
{
	return !again ? 0 : n < UINT8_MAX ? (uint8_t)(n + 1) : n;
}

/* The queue of others hid the least round trip until now. */
static bool others_found(struct cc_delivery *d)
{
	if (d->base_ns + d->base_ns / 16 + d->slack_ns >= d->least_ns[1])
		return false;
	d->others_us = (uint32_t)fx_min((d->least_ns[1] + d->queued_ns - d->base_ns) / 1000, UINT32_MAX);
	d->least_ns[1] = d->base_ns;
	return d->others_us;
}

/* Whether this flow has half of what each of the others has, or they have not given way for it. */
static bool has_share(const struct cc_delivery *d, uint64_t queued_ns)
{
	uint64_t others_ns = UINT64_C(1000) * d->others_us, wanted_ns = queue_of(d, 2 * arriving(d));

	return others_ns > wanted_ns || queued_ns > wanted_ns || queued_ns > others_ns + d->base_ns;
}

/* The least round trip is known, so there is nothing to be learned by a DRAIN. */
static void startup_end(struct cc *c, uint64_t now_ns)
{
	struct cc_delivery *d = &c->delivery;

	d->own_loss_q16 = (uint32_t)fx_min(d->loss_q16, LOSS_Q16_MAX);
	d->others_us = 0;
	d->drain_ns = d->empty_ns = now_ns;
	d->state = DELIVERY_CRUISE;
	cruise(c, d->rtt_ns);
}

static void judge_startup(struct cc *c, uint64_t now_ns, uint64_t best_bps, uint64_t queued_ns, bool limited)
{
	struct cc_delivery *d = &c->delivery;
	bool rises = queued_ns > fx_max(d->base_ns / 16, d->slack_ns) &&
		     fx_sub(queued_ns, d->queued_ns) > d->base_ns / EPOCHS / 8;
	bool others = others_found(d) || d->others_us, full;

	d->queued_ns = queued_ns;
	if (!limited)
		d->full = one_more(d->full, arriving(d) <= best_bps + best_bps / 16);
	full = d->full >= FULL_EPOCHS;
	if (others && (full || has_share(d, queued_ns)))
		startup_end(c, now_ns);
	else if (!others && (full || rises || queued_ns > queue_ns(d) / 2))
		drain_begin(c, now_ns);
	else
		start_up(c, limited);
}

static void judge_cruise(struct cc *c, uint64_t now_ns, uint64_t queued_ns, bool limited)
{
	struct cc_delivery *d = &c->delivery;
	uint64_t wanted_ns = queue_ns(d), trip_ns = d->base_ns + wanted_ns, since_ns = now_ns - d->drain_ns;
	bool losing = d->loss_q16 > d->own_loss_q16 + d->own_loss_q16 / 2 + LOSS_Q16_EXCESS && since_ns > 3 * trip_ns;
	/* Another flow keeps less in flight. */
	bool joins = queued_ns < d->queued_ns - d->queued_ns / 10 && d->queued_ns > wanted_ns / 2 &&
		     since_ns > JOIN_RTTS * trip_ns;

	if (others_found(d) && !has_share(d, queued_ns)) {
		d->state = DELIVERY_STARTUP;
		d->full = 0;
		start_up(c, limited);
		return;
	}
	d->others_us = 0;
	d->queued_ns += queued_ns / 4 - d->queued_ns / 4;
	d->calm = one_more(d->calm, queued_ns < fx_max(wanted_ns / 4, d->base_ns / 64) && !limited && !losing);
	d->over = one_more(d->over, queued_ns > wanted_ns + wanted_ns / 2);
	d->room_q16 = (uint32_t)fx_min(d->room_q16 + d->room_q16 / 128, Q16_ONE);
	if (losing)
		d->room_q16 = (uint32_t)fx_max(d->room_q16 / 2, ROOM_Q16_MIN);
	if (losing || joins || (d->over >= EPOCHS && since_ns > DRAINS_APART_RTTS * trip_ns) ||
	    now_ns - d->empty_ns > EMPTY_RTTS * trip_ns)
		drain_begin(c, now_ns);
	else
		cruise(c, d->rtt_ns);
}

static void epoch_begin(struct cc_delivery *d, const struct sample *s)
{
	d->seq = s->ack->ack_seq;
	d->peer_ns = s->peer_ns;
	d->sent_ns = s->sent_ns;
	d->bytes = 0;
	d->rtt_ns = UINT64_MAX;
}

static void epoch_end(struct cc *c, const struct sample *s)
{
	struct cc_delivery *d = &c->delivery;
	uint64_t sent_ns = s->sent_ns - d->sent_ns, sent = fx_min(fx_sub(s->ack->ack_seq, d->seq), CC_CWND_BYTES_LIMIT);
	uint64_t took_ns = fx_max(fx_sub(s->peer_ns, d->peer_ns), sent_ns), best_bps = arriving(d);
	uint64_t queued_ns = fx_sub(d->rtt_ns, d->base_ns), asked = asked_bps(d);
	bool limited = bps_of(sent, sent_ns) < asked - asked / 4;

	if (sent >= UINT64_C(8) * c->mtu_bytes)
		note_loss(d, sent);
	note_rate(d, bps_of(d->bytes, took_ns), limited);
	if (queued_ns < queue_ns(d) / 4)
		d->empty_ns = s->now_ns;
	if (d->state == DELIVERY_STARTUP)
		judge_startup(c, s->now_ns, best_bps, queued_ns, limited);
	else
		judge_cruise(c, s->now_ns, queued_ns, limited);
	note_asked(d, c->rate_bps);
	epoch_begin(d, s);
}

/* First in flight becomes little and stays so for a part of a round trip. Then more may be sent, while what was sent in
 * that part arrives. */
static void drain_on(struct cc *c, const struct sample *s)
{
	struct cc_delivery *d = &c->delivery;
	uint64_t hold_ns = d->base_ns / 2;

	if (!d->drained_ns) {
		drain(c);
		if (fx_sub(s->ack->snd_nxt, s->ack->ack_seq) <= c->cwnd_bytes + c->cwnd_bytes / 4 ||
		    s->now_ns - d->drain_ns > SILENT_RTTS * d->base_ns)
			d->drained_ns = s->now_ns;
		return;
	}
	if (s->now_ns >= d->drained_ns + hold_ns)
		cruise(c, d->base_ns);
	if (!d->measuring && s->sent_ns >= d->drained_ns) {
		epoch_begin(d, s);
		d->measuring = true;
	} else if (d->measuring && s->sent_ns >= d->drained_ns + hold_ns && d->rtt_ns != UINT64_MAX) {
		drain_end(c, s->now_ns, s->ack);
		epoch_begin(d, s);
	}
}

/* The least round trip of the last 16 to 32. */
static void note_trip(struct cc_delivery *d, uint64_t now_ns, uint64_t rtt_ns)
{
	if (!d->base_ns)
		d->least_ns[0] = d->least_ns[1] = rtt_ns;
	if (d->base_ns && now_ns - d->turn_ns > TURN_RTTS * (d->base_ns + queue_ns(d))) {
		d->least_ns[1] = d->least_ns[0];
		d->least_ns[0] = UINT64_MAX;
		d->turn_ns = now_ns;
	}
	d->least_ns[0] = fx_min(d->least_ns[0], rtt_ns);
	d->base_ns = fx_min(d->least_ns[0], d->least_ns[1]);
	d->rtt_ns = fx_min(d->rtt_ns, rtt_ns);
}

static void on_ack(struct cc *c, uint64_t now_ns, const struct cc_ack *ack)
{
	struct cc_delivery *d = &c->delivery;
	uint64_t rtt_ns = fx_min(fx_min(ack->rtt_ns, RTT_NS_MAX), now_ns);
	const struct sample s = {ack, now_ns, now_ns - rtt_ns, ack->peer_ns ? ack->peer_ns : now_ns};

	d->bytes = fx_min(d->bytes + cc_acked_bytes(ack), CC_CWND_BYTES_LIMIT);
	if (!rtt_ns)
		return;
	note_trip(d, now_ns, rtt_ns);
	if (d->state == DELIVERY_DRAIN)
		drain_on(c, &s);
	else if (!d->sent_ns || fx_sub(s.sent_ns, d->sent_ns) > fx_max(SILENT_RTTS * d->base_ns, SILENT_NS))
		epoch_begin(d, &s);
	else if (s.sent_ns >= d->sent_ns + fx_max(d->base_ns / EPOCHS, 1))
		epoch_end(c, &s);
}

/* Nothing came for long: the path may be another one. Other losses are the path's, unless the policy says what they
 * are. */
static void on_loss(struct cc *c, uint64_t now_ns, enum cc_loss loss)
{
	struct cc_delivery *d = &c->delivery;
	enum cc_loss_is is = cc_judge_loss(c, loss);

	if (is == CC_LOSS_IS_NOTHING || (is == CC_LOSS_IS_ITS_OWN && loss != CC_LOSS_RTO))
		return;
	d->bps /= 2;
	pace(c, c->rate_bps / 2);
	allow(c, c->cwnd_bytes / 2);
}

static const struct cc_ops delivery_ops = {
	.on_ack = on_ack,
	.on_loss = on_loss,
};

static void delivery_make(struct cc *c, const struct cc_config *config, uint64_t now_ns)
{
	const struct cc_params *p = config->params;
	struct cc_delivery *d = &c->delivery;

	cc_init_common(c, config, &delivery_ops);
	d->params = p ? &p->delivery : &delivery_params_default;
	d->rate_bps_max = config->line_rate_bps ? fx_min(config->line_rate_bps, CC_RATE_BPS_LIMIT) : CC_RATE_BPS_LIMIT;
	d->rate_bps_min = p && p->rate_min ? cc_rate_bps(p->rate_min, d->rate_bps_max) : RATE_BPS_LEAST;
	d->rate_bps_min = fx_min(fx_max(d->rate_bps_min, 1), d->rate_bps_max);
	d->slack_ns = fx_min(config->target_ns, RTT_NS_MAX);
	d->base_ns = d->least_ns[0] = d->least_ns[1] = fx_min(config->base_rtt_ns, RTT_NS_MAX);
	d->turn_ns = now_ns;
	d->rtt_ns = UINT64_MAX;
	d->room_q16 = Q16_ONE;
	d->drain_ns = d->empty_ns = now_ns;
	pace(c, bps_of(c->cwnd_bytes, config->base_rtt_ns ? config->base_rtt_ns : START_RTT_NS));
	for (uint32_t i = 0; i < DELIVERY_ASKED; i++)
		note_asked(d, c->rate_bps);
}

static void look(const struct cc *c, struct cc_look *l)
{
	const struct cc_delivery *d = &c->delivery;

	l->signal_name = "base_rtt_ns";
	l->signal = d->base_ns;
	l->target_name = "queue_ns";
	l->target = queue_ns(d);
}

static void archive(struct archive *a, struct cc *c)
{
	struct cc_delivery *d = &c->delivery;

	ARCHIVE(a, d, bps, queued_ns, base_ns, least_ns[0], least_ns[1], seq, bytes, rtt_ns, loss_q16, own_loss_q16,
		room_q16, others_us, state, full, calm, over, measuring, deep);
	for (uint32_t i = 0; i < DELIVERY_ASKED; i++)
		ARCHIVE(a, d, asked_kbps[i]);
	ARCHIVE_TIMES(a, d, turn_ns, empty_ns, peer_ns, sent_ns, drain_ns, drained_ns);
	archive_judge(a, d->state <= DELIVERY_CRUISE && d->own_loss_q16 <= LOSS_Q16_MAX);
}

const struct cc_kind cc_delivery_kind = {
	.init = delivery_make,
	.params = &delivery_params_default,
	.params_bytes = sizeof(delivery_params_default),
	.look = look,
	.archive = archive,
};
