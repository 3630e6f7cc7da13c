/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One probe at a time: probe_wanted is set when something was sent, and again with every answer, so
 * that a busy flow takes one sample a round trip and an idle one is silent. At one bottleneck all
 * flows measure the same RTT, and since the target falls as the rate rises, a flow with more rate
 * gives up more.
 *
 * A probe that is not back after max_delay counts as one that came back then, and again each
 * max_delay until it is given up. Otherwise flows that begin together would build a queue faster
 * than the probes return, since each probe takes longer than the one before.
 *
 * The base RTT is the configured one, or else the least ever seen. A minimum over a second would
 * include the queue that the flows keep standing, so the target would rise each second without end.
 */
#include "cc/rttcc.h"

#include "cc/common.h"

enum { BACKOFF_MAX = 4, SILENT_MAX = 3 };

#define RTT_NS_MAX UINT64_C(1000000000000)

const struct rttcc_params rttcc_params_default = {
	.alpha_q32 = Q32_RATIO(1, 10),
	.beta_q32 = Q32_RATIO(8, 10),
	.max_dec_q32 = Q32_RATIO(1, 2),
	.max_inc_q32 = Q32_RATIO(1, 2),
	.rate_ai = CC_LINE_PART(2000),
	.rate_hai = CC_LINE_PART(100),
	.max_delay_ns = 150000,
	.rate_first_q32 = Q32_ONE,
	.timeout_ns = 300000,
	.hai_period = 5,
	.probes = true,
};

uint64_t rttcc_target(uint64_t base_rtt, uint64_t alpha_q32, uint64_t share_q32)
{
	/* A root of 62 bits has the 31 that it takes to be right to 1e-6 at the least share. */
	uint64_t root_q31 = fx_isqrt(fx_min(share_q32, Q32_ONE) << 30);

	return fx_add(base_rtt, fx_muldiv(q32_mul(base_rtt, alpha_q32), UINT64_C(1) << 31, root_q31));
}

static void set_share(struct cc *c, uint64_t share_q32)
{
	struct cc_rttcc *r = &c->rttcc;

	r->share_q32 = fx_min(fx_max(share_q32, r->share_q32_min), Q32_ONE);
	cc_limiter_set(c, &r->limiter, q32_mul(r->limiter.line_bps, r->share_q32));
}

static void lower(struct cc *c, uint64_t by_q32)
{
	struct cc_rttcc *r = &c->rttcc;
	uint64_t to = r->share_q32 - q32_mul(r->share_q32, fx_min(by_q32, Q32_ONE));

	if (!r->congested)
		to = fx_min(to, r->params->rate_first_q32);
	r->congested = true;
	r->good = 0;
	set_share(c, to);
}

static void sample(struct cc *c, uint64_t rtt_ns)
{
	struct cc_rttcc *r = &c->rttcc;
	const struct rttcc_params *p = r->params;
	uint64_t rtt_q8, target_q8;

	rtt_ns = fx_min(rtt_ns, RTT_NS_MAX);
	if (r->measured && (!r->base_rtt_ns || rtt_ns < r->base_rtt_ns))
		r->base_rtt_ns = rtt_ns;
	/* whole nanoseconds would make the cuts inexact */
	rtt_q8 = rtt_ns << 8;
	target_q8 = rttcc_target(r->base_rtt_ns << 8, p->alpha_q32, r->share_q32);
	if (r->nak || rtt_ns >= p->max_delay_ns) {
		lower(c, p->max_dec_q32);
	} else if (rtt_q8 > target_q8) {
		lower(c, fx_min(p->max_dec_q32, q32_mul(p->beta_q32, q32_div(rtt_q8 - target_q8, rtt_q8))));
	} else if (r->cnp) {
		lower(c, p->max_dec_q32 / 4);
	} else {
		uint64_t step;

		if (r->good < UINT32_MAX)
			r->good++;
		step = r->good >= p->hai_period ? r->hai_q32 : r->ai_q32;
		set_share(c, r->share_q32 + fx_min(step, q32_mul(r->share_q32, p->max_inc_q32)));
	}
	r->nak = r->cnp = false;
}

static void on_sent(struct cc *c, uint64_t now_ns, uint64_t seq, uint32_t bytes)
{
	struct cc_rttcc *r = &c->rttcc;

	if (cc_limiter_is_idle(&r->limiter, now_ns)) {
		/* The state is too old to be of use; begin as a new flow would. */
		r->good = 0;
		r->nak = r->cnp = r->congested = false;
		set_share(c, Q32_ONE);
	}
	r->limiter.active_ns = now_ns;
	r->sent = true;
	if (!r->flying)
		c->probe_wanted = r->params->probes;
}

static void on_ack(struct cc *c, uint64_t now_ns, const struct cc_ack *ack)
{
	struct cc_rttcc *r = &c->rttcc;

	r->limiter.active_ns = now_ns;
	if (r->params->probes || !ack->rtt_ns || ack->ack_seq <= r->round_end)
		return;
	r->round_end = ack->snd_nxt;
	sample(c, ack->rtt_ns);
}

static void on_cnp(struct cc *c, uint64_t now_ns)
{
	c->rttcc.cnp = true;
}

static void on_probe(struct cc *c, uint64_t now_ns)
{
	struct cc_rttcc *r = &c->rttcc;
	unsigned int backoff = r->silent < BACKOFF_MAX ? r->silent : BACKOFF_MAX;

	c->probe_wanted = false;
	r->give_up_ns = fx_add(now_ns, r->params->timeout_ns << backoff);
	c->deadline_ns = fx_min(r->give_up_ns, fx_add(now_ns, r->params->max_delay_ns));
	r->flying = true;
	r->sent = false;
}

/* Asks for the next probe if there was traffic since the last one. */
static void landed(struct cc *c)
{
	c->rttcc.flying = false;
	c->deadline_ns = CC_NO_DEADLINE;
	c->probe_wanted = c->rttcc.sent && c->rttcc.params->probes;
}

static void on_rtt(struct cc *c, uint64_t now_ns, uint64_t rtt_ns)
{
	if (!rtt_ns)
		return;
	c->rttcc.silent = 0;
	landed(c);
	sample(c, rtt_ns);
}

static void on_timer(struct cc *c, uint64_t now_ns)
{
	struct cc_rttcc *r = &c->rttcc;

	if (now_ns < c->deadline_ns)
		return;
	if (now_ns < r->give_up_ns) {
		lower(c, r->params->max_dec_q32);
		c->deadline_ns = fx_min(r->give_up_ns, now_ns + r->params->max_delay_ns);
		return;
	}
	if (r->silent < UINT8_MAX)
		r->silent++;
	landed(c);
	if (r->silent % SILENT_MAX == 0)
		lower(c, Q32_ONE / 2);
}

static void on_loss(struct cc *c, uint64_t now_ns, enum cc_loss loss)
{
	struct cc_rttcc *r = &c->rttcc;

	switch (cc_limiter_judge_loss(c, &r->limiter, loss, now_ns)) {
	case CC_LOSS_IS_NOTHING: return;
	case CC_LOSS_IS_CNP: r->cnp = true; return;
	case CC_LOSS_IS_ITS_OWN:
		if (loss == CC_LOSS_RTO)
			break;
		r->nak = true;
		return;
	case CC_LOSS_IS_HALF: break;
	}
	lower(c, Q32_ONE / 2);
}

static const struct cc_ops rttcc_ops = {
	.on_sent = on_sent,
	.on_ack = on_ack,
	.on_cnp = on_cnp,
	.on_probe = on_probe,
	.on_rtt = on_rtt,
	.on_timer = on_timer,
	.on_loss = on_loss,
};

void rttcc_init(struct cc *c, const struct cc_config *config, const struct rttcc_params *params, uint64_t now_ns)
{
	struct cc_rttcc *r = &c->rttcc;
	uint64_t line;

	cc_init_common(c, config, &rttcc_ops);
	r->params = params;
	cc_limiter_init(c, &r->limiter, config, CC_LINE_PART(1 << 14), now_ns);
	line = r->limiter.line_bps;
	r->share_q32_min = fx_max(fx_min(q32_div(r->limiter.min_bps, line), Q32_ONE), 1);
	r->ai_q32 = fx_min(q32_div(cc_rate_bps(params->rate_ai, line), line), Q32_ONE);
	r->hai_q32 = fx_min(q32_div(cc_rate_bps(params->rate_hai, line), line), Q32_ONE);
	r->base_rtt_ns = fx_min(config->base_rtt_ns, RTT_NS_MAX);
	r->measured = !config->base_rtt_ns;
	set_share(c, Q32_ONE);
}

static void rttcc_make(struct cc *c, const struct cc_config *config, uint64_t now_ns)
{
	rttcc_init(c, config, config->params ? &config->params->rttcc : &rttcc_params_default, now_ns);
}

static void look(const struct cc *c, struct cc_look *l)
{
	const struct cc_rttcc *r = &c->rttcc;

	l->signal_name = "base_rtt_ns";
	l->signal = r->base_rtt_ns;
	l->target_name = "target_ns";
	l->target = rttcc_target(r->base_rtt_ns, r->params->alpha_q32, r->share_q32);
}

static void archive(struct archive *a, struct cc *c)
{
	struct cc_rttcc *r = &c->rttcc;

	cc_limiter_archive(a, &r->limiter);
	ARCHIVE(a, r, share_q32, base_rtt_ns, round_end, good, silent, flying, sent, cnp, nak, congested);
	ARCHIVE_TIMES(a, r, give_up_ns);
}

const struct cc_kind cc_rttcc_kind = {
	.init = rttcc_make,
	.params = &rttcc_params_default,
	.params_bytes = sizeof(rttcc_params_default),
	.look = look,
	.archive = archive,
};
