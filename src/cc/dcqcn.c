/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * DCQCN, section 3 of the paper. The timer of alpha does not tick: only the next CNP uses alpha, so
 * the periods that passed are made up for then. Where the paper is silent QCN's rule holds: the
 * target is the base of an increase, and hyper increase grows with the rounds.
 *
 * Invariant: rate_bps <= target_bps <= line rate; the rate timer runs while either is below it.
 */
#include "cc/dcqcn.h"

#include "cc/common.h"

const struct dcqcn_params dcqcn_params_default = {
	.t_cnp_ns = 50000,
	.t_alpha_ns = 55000,
	.t_inc_ns = 55000,
	.bytes = 10000000,
	.g_q32 = Q32_RATIO(1, 256),
	.rate_ai = CC_LINE_PART(1000),
	.rate_hai = CC_LINE_PART(200),
	.rounds = 5,
};

static bool is_limited(const struct cc_dcqcn *d)
{
	return d->inc_ns != CC_NO_DEADLINE;
}

static void decay_alpha(struct cc_dcqcn *d, uint64_t now_ns)
{
	uint64_t periods = fx_sub(now_ns, d->alpha_ns) / d->params->t_alpha_ns;

	if (!periods)
		return;
	d->alpha_q32 = q32_mul(d->alpha_q32, q32_pow(Q32_ONE - d->params->g_q32, periods));
	d->alpha_ns += periods * d->params->t_alpha_ns;
}

static void set_free(struct cc *c)
{
	struct cc_dcqcn *d = &c->dcqcn;

	d->target_bps = d->limiter.line_bps;
	d->inc_ns = c->deadline_ns = CC_NO_DEADLINE;
	cc_limiter_set(c, &d->limiter, d->limiter.line_bps);
}

static void cut(struct cc *c, uint64_t now_ns, uint64_t share_q32)
{
	struct cc_dcqcn *d = &c->dcqcn;

	d->target_bps = c->rate_bps;
	cc_limiter_set(c, &d->limiter, c->rate_bps - q32_mul(c->rate_bps, share_q32));
	d->timer_rounds = d->byte_rounds = 0;
	d->bytes = 0;
	d->inc_ns = c->deadline_ns = fx_add(now_ns, d->params->t_inc_ns);
}

static void increase(struct cc *c)
{
	struct cc_dcqcn *d = &c->dcqcn;
	uint64_t most = fx_max(d->timer_rounds, d->byte_rounds);
	uint64_t least = fx_min(d->timer_rounds, d->byte_rounds);
	uint64_t step = 0;

	if (least > d->params->rounds)
		step = fx_muldiv(d->rate_hai_bps, least - d->params->rounds, 1);
	else if (most >= d->params->rounds)
		step = d->rate_ai_bps;
	if (d->params->ai_bounded)
		step = fx_min(step, c->rate_bps / 4);
	d->target_bps = fx_min(fx_add(d->target_bps, step), d->limiter.line_bps);
	cc_limiter_approach(c, &d->limiter, d->target_bps);
	if (c->rate_bps == d->limiter.line_bps)
		set_free(c);
}

static void on_sent(struct cc *c, uint64_t now_ns, uint64_t seq, uint32_t bytes)
{
	struct cc_dcqcn *d = &c->dcqcn;

	d->limiter.active_ns = now_ns;
	if (!is_limited(d) || !d->params->bytes)
		return;
	d->bytes += bytes;
	if (d->bytes < d->params->bytes)
		return;
	d->bytes %= d->params->bytes; /* one step for each packet of any size */
	if (d->byte_rounds < UINT32_MAX)
		d->byte_rounds++;
	increase(c);
}

static void on_ack(struct cc *c, uint64_t now_ns, const struct cc_ack *ack)
{
	c->dcqcn.limiter.active_ns = now_ns;
}

static void on_cnp(struct cc *c, uint64_t now_ns)
{
	struct cc_dcqcn *d = &c->dcqcn;

	d->limiter.active_ns = now_ns;
	decay_alpha(d, now_ns);
	cut(c, now_ns, d->alpha_q32 / 2); /* with the old alpha */
	d->alpha_q32 = q32_mul(d->alpha_q32, Q32_ONE - d->params->g_q32) + d->params->g_q32;
	d->alpha_ns = now_ns;
}

static void on_timer(struct cc *c, uint64_t now_ns)
{
	struct cc_dcqcn *d = &c->dcqcn;

	if (now_ns < d->inc_ns)
		return;
	if (cc_limiter_is_idle(&d->limiter, now_ns)) {
		/* Ours: the state is too old to be of use; begin as a new flow would. */
		set_free(c);
		return;
	}
	decay_alpha(d, now_ns);
	d->inc_ns = c->deadline_ns = cc_next_period_ns(d->inc_ns, d->params->t_inc_ns, now_ns);
	if (d->timer_rounds < UINT32_MAX)
		d->timer_rounds++;
	increase(c);
}

static void on_loss(struct cc *c, uint64_t now_ns, enum cc_loss loss)
{
	struct cc_dcqcn *d = &c->dcqcn;

	switch (cc_limiter_judge_loss(c, &d->limiter, loss, now_ns)) {
	case CC_LOSS_IS_NOTHING: return;
	case CC_LOSS_IS_HALF: break;
	default:
		if (loss == CC_LOSS_RTO)
			break;
		/* DCQCN is for networks that lose nothing; elsewhere a loss is a mark, and a
		 * receiver would not have sent more CNPs than this. */
		if (d->loss_ns != UINT64_MAX && fx_sub(now_ns, d->loss_ns) < d->params->t_cnp_ns)
			return;
		d->loss_ns = now_ns;
		on_cnp(c, now_ns);
		return;
	}
	cut(c, now_ns, Q32_ONE / 2);
}

static const struct cc_ops dcqcn_ops = {
	.on_sent = on_sent,
	.on_ack = on_ack,
	.on_cnp = on_cnp,
	.on_timer = on_timer,
	.on_loss = on_loss,
};

void dcqcn_init(struct cc *c, const struct cc_config *config, const struct dcqcn_params *params, uint64_t now_ns)
{
	struct cc_dcqcn *d = &c->dcqcn;

	cc_init_common(c, config, &dcqcn_ops);
	d->params = params;
	cc_limiter_init(c, &d->limiter, config, CC_LINE_PART(10000), now_ns);
	d->rate_ai_bps = cc_rate_bps(params->rate_ai, d->limiter.line_bps);
	d->rate_hai_bps = cc_rate_bps(params->rate_hai, d->limiter.line_bps);
	d->alpha_q32 = Q32_ONE;
	d->alpha_ns = now_ns;
	d->loss_ns = UINT64_MAX;
	set_free(c);
}

static void dcqcn_make(struct cc *c, const struct cc_config *config, uint64_t now_ns)
{
	dcqcn_init(c, config, config->params ? &config->params->dcqcn : &dcqcn_params_default, now_ns);
}

static void look(const struct cc *c, struct cc_look *l)
{
	l->signal_name = "alpha_ppb";
	l->signal = q32_ppb(c->dcqcn.alpha_q32);
	l->target_name = "target_bps";
	l->target = c->dcqcn.target_bps;
}

static uint64_t cnp_gap_ns(const struct cc_params *p)
{
	return p->dcqcn.t_cnp_ns;
}

static void archive(struct archive *a, struct cc *c)
{
	struct cc_dcqcn *d = &c->dcqcn;

	cc_limiter_archive(a, &d->limiter);
	ARCHIVE(a, d, target_bps, alpha_q32, bytes, timer_rounds, byte_rounds);
	ARCHIVE_TIMES(a, d, alpha_ns, inc_ns, loss_ns);
}

const struct cc_kind cc_dcqcn_kind = {
	.init = dcqcn_make,
	.params = &dcqcn_params_default,
	.params_bytes = sizeof(dcqcn_params_default),
	.needs = CC_NEEDS_ECN,
	.cnp_gap_ns = cnp_gap_ns,
	.look = look,
	.archive = archive,
};
