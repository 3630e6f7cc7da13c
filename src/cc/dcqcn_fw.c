/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * DCQCN in the form of NIC firmware, as far as its public parameters describe it, and as in the
 * simulator of the HPCC evaluation. The checks of alpha and of the rate are periodic from the first
 * CNP on, but no timer here ticks: alpha is brought up to date when it is needed, and a check of
 * the rate is armed only when a CNP came, for the end of the period.
 *
 * Invariant: rate_bps <= target_bps <= line rate. Increases are armed while either is below it.
 */
#include "cc/dcqcn_fw.h"

#include "cc/common.h"

const struct dcqcn_fw_params dcqcn_fw_params_default = {
	.t_alpha_ns = 1000,
	.t_dec_ns = 4000,
	.t_inc_ns = 300000,
	.g_q32 = Q32_RATIO(1, 256),
	.alpha_start_q32 = Q32_ONE,
	.rate_ai = CC_LINE_PART(5000),
	.rate_hai = CC_LINE_PART(500),
	.rate_first_q32 = Q32_ONE,
	.rounds = 1,
};

static void arm(struct cc *c)
{
	const struct cc_dcqcn_fw *d = &c->dcqcn_fw;

	c->deadline_ns = d->cnp_cut ? fx_min(d->inc_ns, d->look_ns) : d->inc_ns;
}

/* Accounts for all periods that ended by now; a CNP counts for the first of them. */
static void update_alpha(struct cc_dcqcn_fw *d, uint64_t now_ns)
{
	const struct dcqcn_fw_params *p = d->params;
	uint64_t periods = fx_sub(now_ns, d->alpha_ns) / p->t_alpha_ns;
	uint64_t keep_q32 = Q32_ONE - p->g_q32;

	if (!d->started || !periods)
		return;
	if (d->cnp_alpha)
		d->alpha_q32 = q32_mul(d->alpha_q32, keep_q32) + p->g_q32;
	else
		d->alpha_q32 = q32_mul(d->alpha_q32, keep_q32);
	d->cnp_alpha = false;
	d->alpha_q32 = q32_mul(d->alpha_q32, q32_pow(keep_q32, periods - 1));
	d->alpha_ns += periods * p->t_alpha_ns;
}

/*
 * The checks come at whole periods after the first CNP, and a nanosecond later, so that alpha is
 * updated first.
 */
static uint64_t next_look_ns(const struct cc_dcqcn_fw *d, uint64_t now_ns)
{
	uint64_t since = fx_sub(now_ns, d->first_ns), periods = 1;

	if (since > 1)
		periods = (since - 1 + d->params->t_dec_ns - 1) / d->params->t_dec_ns;
	return fx_add(d->first_ns + 1, periods * d->params->t_dec_ns);
}

static void cut(struct cc *c, uint64_t now_ns, uint64_t share_q32)
{
	struct cc_dcqcn_fw *d = &c->dcqcn_fw;

	if (d->params->clamp || d->rounds)
		d->target_bps = c->rate_bps;
	cc_limiter_set(c, &d->limiter, c->rate_bps - q32_mul(c->rate_bps, share_q32));
	d->rounds = 0;
	d->inc_ns = fx_add(now_ns, d->params->t_inc_ns);
}

static void increase(struct cc *c)
{
	struct cc_dcqcn_fw *d = &c->dcqcn_fw;

	if (d->rounds >= d->params->rounds)
		d->target_bps += d->rounds == d->params->rounds ? d->rate_ai_bps : d->rate_hai_bps;
	d->target_bps = fx_min(d->target_bps, d->limiter.line_bps);
	cc_limiter_approach(c, &d->limiter, d->target_bps);
	if (d->rounds < UINT32_MAX)
		d->rounds++;
}

static void set_free(struct cc *c)
{
	struct cc_dcqcn_fw *d = &c->dcqcn_fw;

	d->target_bps = d->limiter.line_bps;
	d->inc_ns = CC_NO_DEADLINE;
	d->cnp_cut = false;
	cc_limiter_set(c, &d->limiter, d->limiter.line_bps);
}

static void on_sent(struct cc *c, uint64_t now_ns, uint64_t seq, uint32_t bytes)
{
	c->dcqcn_fw.limiter.active_ns = now_ns;
}

static void on_ack(struct cc *c, uint64_t now_ns, const struct cc_ack *ack)
{
	c->dcqcn_fw.limiter.active_ns = now_ns;
}

static void on_cnp(struct cc *c, uint64_t now_ns)
{
	struct cc_dcqcn_fw *d = &c->dcqcn_fw;

	d->limiter.active_ns = now_ns;
	if (!d->started) {
		d->started = true;
		d->first_ns = d->alpha_ns = now_ns;
		d->alpha_q32 = d->params->alpha_start_q32;
		cc_limiter_set(c, &d->limiter, q32_mul(c->rate_bps, d->params->rate_first_q32));
		d->target_bps = c->rate_bps;
		/* Without this a flow that is cut here, and gets no check, would never recover. */
		if (c->rate_bps < d->limiter.line_bps)
			d->inc_ns = fx_add(now_ns, d->params->t_inc_ns);
	} else {
		update_alpha(d, now_ns);
		d->cnp_alpha = true;
	}
	if (!d->cnp_cut) {
		d->cnp_cut = true;
		d->look_ns = next_look_ns(d, now_ns);
	}
	arm(c);
}

static void on_timer(struct cc *c, uint64_t now_ns)
{
	struct cc_dcqcn_fw *d = &c->dcqcn_fw;

	if (now_ns < c->deadline_ns)
		return;
	if (cc_limiter_is_idle(&d->limiter, now_ns)) {
		/* Ours: the state is too old to be of use; begin as a new flow would. */
		set_free(c);
	} else if (d->cnp_cut && d->look_ns <= now_ns && d->look_ns <= d->inc_ns) {
		update_alpha(d, now_ns);
		d->cnp_cut = false;
		cut(c, now_ns, d->alpha_q32 / 2);
	} else if (d->inc_ns <= now_ns) {
		increase(c);
		d->inc_ns = cc_next_period_ns(d->inc_ns, d->params->t_inc_ns, now_ns);
		if (c->rate_bps == d->limiter.line_bps)
			d->inc_ns = CC_NO_DEADLINE;
	}
	arm(c);
}

static void on_loss(struct cc *c, uint64_t now_ns, enum cc_loss loss)
{
	struct cc_dcqcn_fw *d = &c->dcqcn_fw;

	switch (cc_limiter_judge_loss(c, &d->limiter, loss, now_ns)) {
	case CC_LOSS_IS_NOTHING: return;
	case CC_LOSS_IS_HALF: break;
	default:
		if (loss != CC_LOSS_RTO) {
			/* DCQCN is for networks that lose nothing; elsewhere a loss is a mark. */
			on_cnp(c, now_ns);
			return;
		}
	}
	d->target_bps = c->rate_bps;
	cut(c, now_ns, Q32_ONE / 2);
	arm(c);
}

static const struct cc_ops dcqcn_fw_ops = {
	.on_sent = on_sent,
	.on_ack = on_ack,
	.on_cnp = on_cnp,
	.on_timer = on_timer,
	.on_loss = on_loss,
};

void dcqcn_fw_init(struct cc *c, const struct cc_config *config, const struct dcqcn_fw_params *params, uint64_t now_ns)
{
	struct cc_dcqcn_fw *d = &c->dcqcn_fw;

	cc_init_common(c, config, &dcqcn_fw_ops);
	d->params = params;
	cc_limiter_init(c, &d->limiter, config, CC_LINE_PART(10000), now_ns);
	d->rate_ai_bps = cc_rate_bps(params->rate_ai, d->limiter.line_bps);
	d->rate_hai_bps = cc_rate_bps(params->rate_hai, d->limiter.line_bps);
	d->target_bps = c->rate_bps;
	d->alpha_q32 = params->alpha_start_q32;
	d->inc_ns = CC_NO_DEADLINE;
}

static void dcqcn_fw_make(struct cc *c, const struct cc_config *config, uint64_t now_ns)
{
	dcqcn_fw_init(c, config, config->params ? &config->params->dcqcn_fw : &dcqcn_fw_params_default, now_ns);
}

static void look(const struct cc *c, struct cc_look *l)
{
	l->signal_name = "alpha_ppb";
	l->signal = q32_ppb(c->dcqcn_fw.alpha_q32);
	l->target_name = "target_bps";
	l->target = c->dcqcn_fw.target_bps;
}

static uint64_t cnp_gap_ns(const struct cc_params *p)
{
	return p->dcqcn_fw.t_cnp_ns;
}

static void archive(struct archive *a, struct cc *c)
{
	struct cc_dcqcn_fw *d = &c->dcqcn_fw;

	cc_limiter_archive(a, &d->limiter);
	ARCHIVE(a, d, target_bps, alpha_q32, rounds, started, cnp_alpha, cnp_cut);
	ARCHIVE_TIMES(a, d, first_ns, alpha_ns, look_ns, inc_ns);
}

const struct cc_kind cc_dcqcn_fw_kind = {
	.init = dcqcn_fw_make,
	.params = &dcqcn_fw_params_default,
	.params_bytes = sizeof(dcqcn_fw_params_default),
	.needs = CC_NEEDS_ECN,
	.cnp_gap_ns = cnp_gap_ns,
	.look = look,
	.archive = archive,
};
