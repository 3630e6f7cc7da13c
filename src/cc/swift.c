/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Swift, after section 3 of the paper (Kumar et al., SIGCOMM 2020), in bytes instead of packets.
 * Delay below target adds a packet a round trip, delay above it takes a share, and no share is
 * taken twice within a round trip. Comments mark with "ours" what is not in the paper:
 *
 *   - the base RTT may be measured, as the least fabric delay of the last seconds. Because a Swift
 *     flow keeps a queue standing for as long as it lives, a plain windowed minimum would take that
 *     queue for the base, aim above it, and so on without end. So before a measured base rises by
 *     much, the window shrinks for two round trips until its own queue is gone, and the delay seen
 *     then is the new base. Buckets end at whole multiples of the clock, so that the flows of one
 *     host drain together and see the path without each other's queues (BBR's ProbeRTT has the same
 *     purpose);
 *   - the window begins by doubling, and grows by a share of itself where delay stays low, because
 *     a path of 10 ms at 4 Gbit/s takes minutes to fill at a packet a round trip;
 *   - CE marks and CNPs count, for the fabric's window alone;
 *   - queues on the way back may not count: they are others' congestion;
 *   - the window grows only while it is used.
 *
 * Invariant: both windows are between the bounds, cwnd_bytes is the smaller (smaller still while
 * draining). They grow apart, but a cut starts from the one in use, so that the other takes effect
 * at once when it becomes the smaller.
 */
#include "cc/swift.h"

#include "cc/common.h"

#define NEVER UINT64_MAX

enum { DRAIN_ROUNDS = 2 };

const struct swift_params swift_params_default = {
	.ai_q16 = 1 << 16,
	.beta_q32 = Q32_RATIO(4, 5),
	.max_mdf_q32 = Q32_RATIO(1, 2),
	.base_slack_ns = 3000,
	.hop_ns = 1500,
	.fs_range_q32 = 2 * Q32_ONE,
	.fs_min_q32 = Q32_RATIO(1, 10),
	.fs_max_q32 = 100 * Q32_ONE,
	.retx_reset = 5,
	.host_target_ns = 100000,
	.doubling = true,
	.hyper_rounds = 5,
	.hyper_shift = 3,
	.cnp_mdf_q32 = Q32_RATIO(1, 8),
	.rtt_unknown_ns = 1000000,
	.base_bucket_ns = UINT64_C(5000000000),
};

/* 1/sqrt(packets) in 26 fraction bits; at least 1/1024 of a packet. */
static uint64_t inverse_sqrt_q26(uint64_t packets_q32)
{
	return fx_isqrt(fx_muldiv(UINT64_C(1) << 52, Q32_ONE, fx_max(packets_q32, Q32_ONE >> 10)));
}

static uint64_t flow_scaling(const struct swift_params *p, uint64_t isqrt_max, uint64_t isqrt_span, uint64_t range_ns,
			     uint64_t cwnd_q32)
{
	if (cwnd_q32 >= p->fs_max_q32)
		return 0;
	if (cwnd_q32 <= p->fs_min_q32)
		return range_ns;
	return fx_min(range_ns, fx_muldiv(range_ns, fx_sub(inverse_sqrt_q26(cwnd_q32), isqrt_max), isqrt_span));
}

uint64_t swift_flow_scaling(const struct swift_params *p, uint64_t range_ns, uint64_t cwnd_q32)
{
	uint64_t isqrt_max = inverse_sqrt_q26(p->fs_max_q32);

	return flow_scaling(p, isqrt_max, fx_sub(inverse_sqrt_q26(p->fs_min_q32), isqrt_max), range_ns, cwnd_q32);
}

/* The target fabric delay. */
static uint64_t fabric_target_ns(const struct cc *c, uint8_t hops)
{
	const struct cc_swift *s = &c->swift;
	const struct swift_params *p = s->params;
	uint64_t base, range;

	if (s->target_ns) {
		/* Ours: the caller has chosen a queue; scaling may double it. */
		range = s->target_ns;
		if (s->target_rtt_part)
			range = fx_max(range, s->base_rtt_ns / s->target_rtt_part);
		base = fx_add(s->base_rtt_ns, range);
	} else {
		base = p->base_ns ? p->base_ns : fx_add(s->base_rtt_ns, p->base_slack_ns);
		range = p->fs_range_ns ? p->fs_range_ns : q32_mul(base, p->fs_range_q32);
		if (p->base_ns || !s->base_measured)
			base = fx_add(base, fx_muldiv(p->hop_ns, hops, 1));
	}
	return fx_add(base, flow_scaling(p, s->fs_isqrt_max_q26, s->fs_isqrt_span_q26, range,
					 fx_muldiv(s->fabric.cwnd_q16, 1 << 16, c->mtu_bytes)));
}

static uint64_t window_in_use_q16(const struct cc_swift *s)
{
	return fx_min(s->fabric.cwnd_q16, s->host.cwnd_q16);
}

static void publish(struct cc *c)
{
	struct cc_swift *s = &c->swift;
	uint64_t cwnd_q16 = window_in_use_q16(s);

	c->cwnd_bytes = cwnd_q16 >> 16;
	if (s->drain_rounds)
		c->cwnd_bytes = fx_min(c->cwnd_bytes, s->drain_bytes);
	s->round_cwnd = fx_min(s->round_cwnd, c->cwnd_bytes); /* more would be of no use */
	c->rate_bps = CC_UNPACED;
	if (s->rtt_ns && c->cwnd_bytes < c->mtu_bytes)
		c->rate_bps = fx_max(fx_muldiv(cwnd_q16, UINT64_C(8000000000), s->rtt_ns) >> 16, 1);
}

/* Ends doubling and the growth by shares. */
static void disturb(struct swift_window *w)
{
	w->doubling = false;
	w->disturbed = true;
	w->calm_rounds = 0;
}

static void cut(struct cc *c, struct swift_window *w, uint64_t now_ns, uint64_t share_q32)
{
	const struct cc_swift *s = &c->swift;
	uint64_t rtt_ns = s->rtt_ns ? s->rtt_ns : s->params->rtt_unknown_ns;
	uint64_t from = window_in_use_q16(s), to;

	if (!share_q32 || (w->last_cut_ns != NEVER && fx_sub(now_ns, w->last_cut_ns) < rtt_ns))
		return;
	to = cc_clamp_q16(c, from - q32_mul(from, fx_min(share_q32, s->params->max_mdf_q32)));
	if (to < w->cwnd_q16) {
		w->cwnd_q16 = to;
		w->last_cut_ns = now_ns;
	}
}

static void grow(struct cc *c, struct swift_window *w, uint64_t bytes)
{
	const struct swift_params *p = c->swift.params;
	uint64_t more = cc_additive_q16(c, w->cwnd_q16, p->ai_q16, bytes);

	if (w->doubling)
		more = fx_max(more, bytes << 16);
	else if (p->hyper_rounds && w->calm_rounds >= p->hyper_rounds)
		more = fx_max(more, (bytes << 16) >> p->hyper_shift);
	w->cwnd_q16 = cc_clamp_q16(c, fx_add(w->cwnd_q16, more));
}

/* The paper's Algorithm 1 for one window and one delay; `floor_ns` is the delay without queues. */
static void judge(struct cc *c, struct swift_window *w, uint64_t now_ns, uint64_t delay_ns, uint64_t floor_ns,
		  uint64_t target_ns, uint64_t bytes)
{
	w->sampled = true;
	if (delay_ns > fx_add(fx_min(floor_ns, target_ns), fx_sub(target_ns, floor_ns) / 2))
		disturb(w);
	if (delay_ns < target_ns)
		grow(c, w, bytes);
	else
		cut(c, w, now_ns, q32_mul(q32_div(delay_ns - target_ns, delay_ns), c->swift.params->beta_q32));
}

static void start_draining(struct cc *c, uint64_t delay_ns)
{
	struct cc_swift *s = &c->swift;

	/* What fits without a queue, less a quarter. */
	s->drain_bytes = fx_muldiv(c->cwnd_bytes, s->base_rtt_ns, fx_max(delay_ns, s->base_rtt_ns));
	s->drain_bytes = fx_max(s->drain_bytes - s->drain_bytes / 4, c->cwnd_bytes_min);
	s->drain_rounds = DRAIN_ROUNDS;
	s->drain_end = s->snd_nxt;
}

/* Ours: the least delay of this bucket and the last is taken for the base RTT. */
static void measure_base(struct cc *c, uint64_t now_ns, uint64_t delay_ns)
{
	struct cc_swift *s = &c->swift;
	uint32_t bucket = (uint32_t)(now_ns / s->params->base_bucket_ns);
	bool fresh = s->base_rtt_ns == 0;
	uint64_t least;

	if (bucket != s->bucket) {
		/*
		 * Silence says nothing about the path: the value from before it lives one bucket
		 * longer.
		 */
		s->bucket_ns[1] = bucket == s->bucket + 1 ? s->bucket_ns[0] : s->base_rtt_ns;
		if (!s->bucket_ns[1])
			s->bucket_ns[1] = UINT64_MAX;
		s->bucket_ns[0] = UINT64_MAX;
		s->bucket = bucket;
		least = fx_min(s->bucket_ns[1], delay_ns);
		if (!fresh && !s->drain_rounds &&
		    fx_sub(least, s->base_rtt_ns) > fx_sub(fabric_target_ns(c, 0), s->base_rtt_ns) / 8) {
			/* Forgets the delays that were seen while the queue was standing. */
			s->bucket_ns[1] = UINT64_MAX;
			start_draining(c, delay_ns);
		}
	}
	if (s->drain_rounds == DRAIN_ROUNDS && delay_ns > s->base_rtt_ns)
		return; /* sent before the queue was gone */
	s->bucket_ns[0] = fx_min(s->bucket_ns[0], delay_ns);
	least = fx_min(s->bucket_ns[0], s->bucket_ns[1]);
	if (!s->drain_rounds || least < s->base_rtt_ns)
		s->base_rtt_ns = least;
}

/*
 * A delay decides whether the window grows for the bytes that were acknowledged up to it, a window
 * of them at most. Hosts that report no delay are taken to be quick.
 */
static void sample(struct cc *c, uint64_t now_ns, uint64_t rtt_ns, uint64_t host_ns, uint64_t back_ns, uint8_t hops)
{
	struct cc_swift *s = &c->swift;
	uint64_t delay_ns, target_ns, bytes = 0;

	if (fx_add(host_ns, back_ns) >= rtt_ns)
		host_ns = back_ns = 0; /* impossible: ignored */
	delay_ns = rtt_ns - host_ns - back_ns;
	s->rtt_ns = rtt_ns;
	if (s->base_measured)
		measure_base(c, now_ns, delay_ns);
	target_ns = fabric_target_ns(c, hops);

	if (s->used || cc_round_used(s->acked_bytes, s->round_cwnd)) {
		bytes = s->drain_rounds ? 0 : s->pending_bytes;
		s->pending_bytes = 0;
	} else if (delay_ns >= target_ns) {
		s->pending_bytes = 0;
	}
	/* Ours: bytes of a round with a mark are as bytes over target. */
	judge(c, &s->fabric, now_ns, delay_ns, s->base_rtt_ns, target_ns, s->marked_bytes ? 0 : bytes);
	judge(c, &s->host, now_ns, host_ns, 0,
	      fx_max(fx_max(s->params->host_target_ns, s->target_ns), s->base_rtt_ns / 2), bytes);
}

static void window_end_round(struct swift_window *w)
{
	if (w->sampled && !w->disturbed && w->calm_rounds < UINT8_MAX)
		w->calm_rounds++;
	w->sampled = false;
	w->disturbed = false;
}

static void end_round(struct cc *c, uint64_t now_ns)
{
	struct cc_swift *s = &c->swift;

	/* Ours: DCTCP's cut (RFC 8257 s3.3) with the share of this round alone. */
	if (s->marked_bytes)
		cut(c, &s->fabric, now_ns, q32_mul(q32_div(s->marked_bytes, s->acked_bytes), s->params->max_mdf_q32));
	window_end_round(&s->fabric);
	window_end_round(&s->host);
	s->used = cc_round_used(s->acked_bytes, s->round_cwnd);
	if (!s->used)
		s->pending_bytes = 0;
	s->acked_bytes = 0;
	s->marked_bytes = 0;
	s->round_end = s->snd_nxt;
}

static void on_sent(struct cc *c, uint64_t now_ns, uint64_t seq, uint32_t bytes)
{
	c->swift.snd_nxt = fx_max(c->swift.snd_nxt, seq + bytes);
}

static void on_ack(struct cc *c, uint64_t now_ns, const struct cc_ack *ack)
{
	struct cc_swift *s = &c->swift;
	uint64_t acked = cc_acked_bytes(ack), marked = cc_marked_bytes(ack);
	bool round_ended;

	s->timeouts = 0;
	s->snd_nxt = fx_max(s->snd_nxt, ack->snd_nxt);
	if (!s->round_open) {
		s->round_open = true;
		s->round_end = s->snd_nxt;
	}
	s->acked_bytes = fx_min(s->acked_bytes + acked, CC_CWND_BYTES_LIMIT);
	s->marked_bytes = fx_min(s->marked_bytes + marked, s->acked_bytes);
	s->pending_bytes = fx_min(s->pending_bytes + acked, fx_max(c->cwnd_bytes, c->mtu_bytes));
	if (marked)
		disturb(&s->fabric);
	if (s->drain_rounds && ack->ack_seq > s->drain_end) {
		s->drain_rounds--;
		s->drain_end = s->snd_nxt;
	}
	if (ack->rtt_ns)
		sample(c, now_ns, ack->rtt_ns, fx_add(ack->remote_ns, ack->local_ns), ack->back_ns, ack->hops);
	round_ended = ack->ack_seq > s->round_end;
	if (round_ended)
		end_round(c, now_ns);
	publish(c);
	if (round_ended)
		s->round_cwnd = c->cwnd_bytes;
}

static void on_rtt(struct cc *c, uint64_t now_ns, uint64_t rtt_ns)
{
	if (!rtt_ns)
		return;
	sample(c, now_ns, rtt_ns, 0, 0, 0);
	publish(c);
}

static void on_cnp(struct cc *c, uint64_t now_ns)
{
	disturb(&c->swift.fabric);
	cut(c, &c->swift.fabric, now_ns, c->swift.params->cnp_mdf_q32);
	publish(c);
}

static void on_loss(struct cc *c, uint64_t now_ns, enum cc_loss loss)
{
	struct cc_swift *s = &c->swift;

	switch (cc_judge_loss(c, loss)) {
	case CC_LOSS_IS_NOTHING: return;
	case CC_LOSS_IS_CNP: on_cnp(c, now_ns); return;
	case CC_LOSS_IS_HALF: /* what a cut takes at most, if the parameters leave that */
	case CC_LOSS_IS_ITS_OWN: break;
	}
	disturb(&s->fabric);
	if (loss != CC_LOSS_RTO)
		s->timeouts = 0;
	else if (s->timeouts < UINT8_MAX)
		s->timeouts++;
	if (loss == CC_LOSS_RTO && s->timeouts >= s->params->retx_reset) {
		s->fabric.cwnd_q16 = c->cwnd_bytes_min << 16;
		s->fabric.last_cut_ns = now_ns;
	} else {
		cut(c, &s->fabric, now_ns, s->params->max_mdf_q32);
	}
	publish(c);
}

static const struct cc_ops swift_ops = {
	.on_sent = on_sent,
	.on_ack = on_ack,
	.on_cnp = on_cnp,
	.on_rtt = on_rtt,
	.on_loss = on_loss,
};

void swift_init(struct cc *c, const struct cc_config *config, const struct swift_params *params, uint64_t now_ns)
{
	struct cc_swift *s = &c->swift;

	cc_init_common(c, config, &swift_ops);
	s->params = params;
	s->fabric = (struct swift_window){
		.cwnd_q16 = c->cwnd_bytes << 16,
		.last_cut_ns = NEVER,
		.doubling = params->doubling,
	};
	s->host = s->fabric;
	s->target_ns = config->target_ns;
	s->target_rtt_part = config->target_rtt_part;
	s->base_rtt_ns = config->base_rtt_ns;
	s->base_measured = !config->base_rtt_ns;
	s->bucket = (uint32_t)(now_ns / params->base_bucket_ns);
	s->bucket_ns[0] = s->bucket_ns[1] = UINT64_MAX;
	s->round_cwnd = c->cwnd_bytes;
	s->fs_isqrt_max_q26 = inverse_sqrt_q26(params->fs_max_q32);
	s->fs_isqrt_span_q26 = fx_sub(inverse_sqrt_q26(params->fs_min_q32), s->fs_isqrt_max_q26);
	publish(c);
}

static void swift_make(struct cc *c, const struct cc_config *config, uint64_t now_ns)
{
	swift_init(c, config, config->params ? &config->params->swift : &swift_params_default, now_ns);
}

static void look(const struct cc *c, struct cc_look *l)
{
	l->signal_name = "rtt_ns";
	l->signal = c->swift.rtt_ns;
}

static void window_archive(struct archive *a, struct swift_window *w)
{
	ARCHIVE(a, w, cwnd_q16, doubling, disturbed, sampled, calm_rounds);
	ARCHIVE_TIMES(a, w, last_cut_ns);
}

static void archive(struct archive *a, struct cc *c)
{
	struct cc_swift *s = &c->swift;

	window_archive(a, &s->fabric);
	window_archive(a, &s->host);
	ARCHIVE(a, s, base_rtt_ns, base_measured, used, round_open, drain_rounds, timeouts, rtt_ns, snd_nxt, round_end,
		acked_bytes, marked_bytes, round_cwnd, pending_bytes, drain_end, drain_bytes);
	ARCHIVE_ARRAYS(a, s, bucket_ns);
	archive_period(a, &s->bucket, s->params->base_bucket_ns);
}

const struct cc_kind cc_swift_kind = {
	.init = swift_make,
	.params = &swift_params_default,
	.params_bytes = sizeof(swift_params_default),
	.look = look,
	.archive = archive,
};
