/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * TIMELY, Algorithm 1 of the paper, and the patched form of "ECN or Delay" (CoNEXT 2016, Algorithm
 * 2), which replaces the middle range: between additive increase and a decrease towards T_low it
 * changes smoothly with the gradient.
 *
 * A base RTT that is not configured is the least round trip seen. There is no timer, so a flow that
 * was idle begins anew at the line rate with its next packet.
 */
#include "cc/timely.h"

#include "cc/common.h"

enum { HAI_FACTOR = 5 };

#define RTT_NS_MAX UINT64_C(1000000000000)

const struct timely_params timely_params_default = {
	.a_q32 = Q32_RATIO(2, 100),
	.beta_q32 = Q32_RATIO(8, 10),
	.beta_patched_q32 = Q32_RATIO(8, 1000),
	.rate_ai = CC_LINE_PART(1000),
	.t_low = CC_RTTS(5, 4),
	.t_high = CC_RTTS(5, 1),
	.min_rtt = CC_RTTS(1, 1),
	.hai_after = 5,
	.sample = TIMELY_EVERY_ACK,
	.scaled = true,
};

static uint64_t min_rtt_ns(const struct cc_timely *t)
{
	return fx_max(cc_time_ns(t->params->min_rtt, t->base_rtt_ns), 1);
}

/* The running difference over the least round trip. */
static int64_t gradient_q32(const struct cc_timely *t)
{
	__int128 wide = (__int128)t->diff_q16 * 65536 / (__int128)min_rtt_ns(t);
	__int128 most = INT64_C(1) << 48;

	return (int64_t)(wide > most ? most : wide < -most ? -most : wide);
}

static void differ(struct cc_timely *t, uint64_t rtt_ns)
{
	int64_t d_q16 = ((int64_t)rtt_ns - (int64_t)t->prev_ns) * 65536;

	t->prev_ns = rtt_ns;
	t->diff_q16 += (int64_t)((__int128)(d_q16 - t->diff_q16) * (__int128)t->params->a_q32 / (__int128)Q32_ONE);
}

static uint64_t lower(uint64_t rate_bps, uint64_t beta_q32, uint64_t by_q32)
{
	uint64_t share_q32 = q32_mul(beta_q32, by_q32);

	return rate_bps - q32_mul(rate_bps, fx_min(share_q32, Q32_ONE));
}

/* w of the patched form: the share of a decrease that this gradient causes. */
static uint64_t weight_q32(int64_t grad_q32)
{
	int64_t w = 2 * grad_q32 + (int64_t)(Q32_ONE / 2);

	return w < 0 ? 0 : fx_min((uint64_t)w, Q32_ONE);
}

static uint64_t next_step(struct cc_timely *t, uint64_t step_bps)
{
	if (t->steps < UINT32_MAX)
		t->steps++;
	return t->steps >= t->params->hai_after ? HAI_FACTOR * step_bps : step_bps;
}

static void judge(struct cc *c, uint64_t rtt_ns, uint64_t part_q32)
{
	struct cc_timely *t = &c->timely;
	const struct timely_params *p = t->params;
	uint64_t low_ns = cc_time_ns(p->t_low, t->base_rtt_ns);
	uint64_t high_ns = cc_time_ns(p->t_high, t->base_rtt_ns);
	uint64_t step = q32_mul(t->rate_ai_bps, part_q32), rate = c->rate_bps;
	uint64_t beta_q32 = q32_mul(p->beta_q32, part_q32);
	int64_t grad_q32 = gradient_q32(t);

	if (rtt_ns < low_ns) {
		rate = fx_add(rate, p->hai_counts == TIMELY_HAI_ANY ? next_step(t, step) : step);
	} else if (rtt_ns > high_ns) {
		rate = lower(rate, beta_q32, q32_div(rtt_ns - high_ns, rtt_ns));
		t->steps = 0;
	} else if (t->patched) {
		uint64_t w_q32 = weight_q32(grad_q32);
		uint64_t error_q32 = q32_div(rtt_ns - low_ns, fx_max(low_ns, 1));

		rate = lower(rate, q32_mul(p->beta_patched_q32, part_q32), q32_mul(w_q32, error_q32));
		rate = fx_add(rate, q32_mul(step, Q32_ONE - w_q32));
	} else if (grad_q32 <= 0) {
		rate = fx_add(rate, next_step(t, step));
	} else {
		rate = lower(rate, beta_q32, (uint64_t)grad_q32);
		t->steps = 0;
	}
	cc_limiter_set(c, &t->limiter, rate);
}

static void sample(struct cc *c, uint64_t now_ns, uint64_t rtt_ns)
{
	struct cc_timely *t = &c->timely;
	uint64_t part_q32 = Q32_ONE, since_ns = fx_sub(now_ns, t->sample_ns);

	rtt_ns = fx_min(rtt_ns, RTT_NS_MAX);
	if (t->measured && (!t->base_rtt_ns || rtt_ns < t->base_rtt_ns))
		t->base_rtt_ns = rtt_ns;
	if (t->prev_ns) {
		differ(t, rtt_ns);
		if (t->params->scaled && since_ns < min_rtt_ns(t))
			part_q32 = q32_div(since_ns, min_rtt_ns(t));
		judge(c, rtt_ns, part_q32);
	}
	t->prev_ns = rtt_ns;
	t->sample_ns = now_ns;
}

static void on_sent(struct cc *c, uint64_t now_ns, uint64_t seq, uint32_t bytes)
{
	struct cc_timely *t = &c->timely;

	if (cc_limiter_is_idle(&t->limiter, now_ns)) {
		t->prev_ns = 0;
		t->diff_q16 = 0;
		t->steps = 0;
		cc_limiter_set(c, &t->limiter, t->limiter.line_bps);
	}
	t->limiter.active_ns = now_ns;
}

static void on_ack(struct cc *c, uint64_t now_ns, const struct cc_ack *ack)
{
	struct cc_timely *t = &c->timely;

	t->limiter.active_ns = now_ns;
	if (!ack->rtt_ns)
		return;
	if (t->params->sample == TIMELY_EVERY_RTT) {
		if (ack->ack_seq <= t->round_end)
			return;
		t->round_end = ack->snd_nxt;
	}
	sample(c, now_ns, ack->rtt_ns);
}

static void on_rtt(struct cc *c, uint64_t now_ns, uint64_t rtt_ns)
{
	if (rtt_ns)
		sample(c, now_ns, rtt_ns);
}

static void on_loss(struct cc *c, uint64_t now_ns, enum cc_loss loss)
{
	struct cc_timely *t = &c->timely;

	switch (cc_judge_loss(c, loss)) {
	case CC_LOSS_IS_NOTHING: return;
	case CC_LOSS_IS_ITS_OWN:
		if (loss != CC_LOSS_RTO)
			return; /* ours; the paper has none */
		break;
	case CC_LOSS_IS_CNP: /* TIMELY ignores it */
	case CC_LOSS_IS_HALF:
		if (!cc_limiter_may_halve(&t->limiter, now_ns))
			return;
	}
	cc_limiter_set(c, &t->limiter, c->rate_bps / 2);
}

static const struct cc_ops timely_ops = {
	.on_sent = on_sent,
	.on_ack = on_ack,
	.on_rtt = on_rtt,
	.on_loss = on_loss,
};

void timely_init(struct cc *c, const struct cc_config *config, const struct timely_params *params, bool patched,
		 uint64_t now_ns)
{
	struct cc_timely *t = &c->timely;

	cc_init_common(c, config, &timely_ops);
	t->params = params;
	cc_limiter_init(c, &t->limiter, config, CC_LINE_PART(10000), now_ns);
	t->rate_ai_bps = cc_rate_bps(params->rate_ai, t->limiter.line_bps);
	t->patched = patched;
	t->base_rtt_ns = config->base_rtt_ns;
	t->measured = !config->base_rtt_ns;
	t->sample_ns = now_ns;
}

static void init(struct cc *c, const struct cc_config *config, bool patched, uint64_t now_ns)
{
	timely_init(c, config, config->params ? &config->params->timely : &timely_params_default, patched, now_ns);
}

static void timely_make(struct cc *c, const struct cc_config *config, uint64_t now_ns)
{
	init(c, config, false, now_ns);
}

static void timely_patched_make(struct cc *c, const struct cc_config *config, uint64_t now_ns)
{
	init(c, config, true, now_ns);
}

static void look(const struct cc *c, struct cc_look *l)
{
	l->signal_name = "rtt_ns";
	l->signal = c->timely.prev_ns;
}

static void archive(struct archive *a, struct cc *c)
{
	struct cc_timely *t = &c->timely;

	cc_limiter_archive(a, &t->limiter);
	ARCHIVE(a, t, base_rtt_ns, prev_ns, diff_q16, round_end, steps);
	ARCHIVE_TIMES(a, t, sample_ns);
}

const struct cc_kind cc_timely_kind = {
	.init = timely_make,
	.params = &timely_params_default,
	.params_bytes = sizeof(timely_params_default),
	.look = look,
	.archive = archive,
};

const struct cc_kind cc_timely_patched_kind = {
	.init = timely_patched_make,
	.params = &timely_params_default,
	.params_bytes = sizeof(timely_params_default),
	.look = look,
	.archive = archive,
};
