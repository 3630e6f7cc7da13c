/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * DCTCP, RFC 8257 s3.3 to s3.5 with the losses of RFC 5681. alpha moves once a round, at the first
 * acknowledgement of what was sent after the last one; the window shrinks at most once for what was
 * in flight at the last cut.
 */
#include "cc/dctcp.h"

#include "cc/common.h"

const struct dctcp_params dctcp_params_default = {
	.g_q32 = Q32_RATIO(1, 16), /* RFC 8257 s4.2 */
	.alpha_start_q32 = Q32_ONE,
	.doubling = true,
};

static uint64_t mtu_q16(const struct cc *c)
{
	return (uint64_t)c->mtu_bytes << 16;
}

static void set_cwnd(struct cc *c, uint64_t cwnd_q16)
{
	c->dctcp.cwnd_q16 = cc_clamp_q16(c, cwnd_q16);
	c->cwnd_bytes = c->dctcp.cwnd_q16 >> 16;
	if (c->dctcp.pace_ns)
		c->rate_bps = cc_pace_bps(c->dctcp.cwnd_q16, c->dctcp.pace_ns);
	/* more would be of no use */
	c->dctcp.round_cwnd = fx_min(c->dctcp.round_cwnd, c->cwnd_bytes);
}

/* Whether the window was already cut for what carried this byte. */
static bool in_cwr(const struct cc_dctcp *d, uint64_t ack_seq)
{
	return d->cwr && ack_seq <= d->cwr_end;
}

static void cut(struct cc *c, uint64_t share_q32)
{
	struct cc_dctcp *d = &c->dctcp;
	uint64_t cwnd = d->cwnd_q16 - q32_mul(d->cwnd_q16, share_q32);

	set_cwnd(c, fx_max(cwnd, mtu_q16(c)));
	d->ssthresh_q16 = d->cwnd_q16;
	d->cwr = true;
	d->cwr_end = d->snd_nxt;
}

static void grow(struct cc *c, uint64_t bytes)
{
	struct cc_dctcp *d = &c->dctcp;

	if (d->cwnd_q16 < d->ssthresh_q16)
		set_cwnd(c, fx_min(d->cwnd_q16 + (bytes << 16), d->ssthresh_q16));
	else
		set_cwnd(c, fx_add(d->cwnd_q16, fx_muldiv(d->ai_q16, bytes << 16, fx_max(d->cwnd_q16, mtu_q16(c)))));
}

static void end_round(struct cc *c)
{
	struct cc_dctcp *d = &c->dctcp;

	if (d->acked_bytes) {
		/* A CNP (RoCEv2's, not the RFC's) reports no share of marks, so it counts for the
		 * whole round, as in DCQCN. */
		uint64_t m_q32 = d->cnp ? Q32_ONE : q32_div(d->marked_bytes, d->acked_bytes);

		d->alpha_q32 += q32_mul(m_q32, d->params->g_q32) - q32_mul(d->alpha_q32, d->params->g_q32);
	}
	d->used = cc_round_used(d->acked_bytes, d->round_cwnd);
	d->acked_bytes = 0;
	d->marked_bytes = 0;
	d->cnp = false;
	d->round_end = d->snd_nxt;
}

static void on_sent(struct cc *c, uint64_t now_ns, uint64_t seq, uint32_t bytes)
{
	c->dctcp.snd_nxt = fx_max(c->dctcp.snd_nxt, seq + bytes);
}

static void on_ack(struct cc *c, uint64_t now_ns, const struct cc_ack *ack)
{
	struct cc_dctcp *d = &c->dctcp;
	uint64_t acked = cc_acked_bytes(ack), marked = cc_marked_bytes(ack);
	bool round_ended;

	d->snd_nxt = fx_max(d->snd_nxt, ack->snd_nxt);
	d->ack_seq = fx_max(d->ack_seq, ack->ack_seq);
	d->timeout = false;
	d->acked_bytes = fx_min(d->acked_bytes + acked, CC_CWND_BYTES_LIMIT);
	d->marked_bytes = fx_min(d->marked_bytes + marked, d->acked_bytes);

	/* An application that sends little does not show what the path can carry (RFC 7661). */
	if (!d->used) {
		d->used = cc_round_used(d->acked_bytes, d->round_cwnd);
		acked = d->used ? d->acked_bytes : 0;
	}
	round_ended = ack->ack_seq > d->round_end;
	if (round_ended)
		end_round(c);
	if (marked && !in_cwr(d, ack->ack_seq))
		cut(c, d->alpha_q32 / 2);
	else if (!in_cwr(d, ack->ack_seq))
		grow(c, acked);
	if (round_ended)
		d->round_cwnd = c->cwnd_bytes;
}

static void on_cnp(struct cc *c, uint64_t now_ns)
{
	c->dctcp.cnp = true;
	if (!in_cwr(&c->dctcp, c->dctcp.ack_seq))
		cut(c, c->dctcp.alpha_q32 / 2);
}

static void on_loss(struct cc *c, uint64_t now_ns, enum cc_loss loss)
{
	struct cc_dctcp *d = &c->dctcp;

	switch (cc_judge_loss(c, loss)) {
	case CC_LOSS_IS_NOTHING: return;
	case CC_LOSS_IS_CNP: on_cnp(c, now_ns); return;
	case CC_LOSS_IS_HALF:
	case CC_LOSS_IS_ITS_OWN: break;
	}
	if (loss != CC_LOSS_RTO) {
		/* RFC 8257 s3.5: as without ECN, by half and not by alpha. */
		if (!in_cwr(d, d->ack_seq))
			cut(c, Q32_ONE / 2);
		return;
	}
	/* RFC 5681 s3.1: one segment, then slow start to half of what it was at the first timeout.
	 */
	if (!d->timeout)
		d->ssthresh_q16 = fx_max(d->cwnd_q16 / 2, 2 * mtu_q16(c));
	d->timeout = true;
	d->cwr = false;
	set_cwnd(c, mtu_q16(c));
}

static const struct cc_ops dctcp_ops = {
	.on_sent = on_sent,
	.on_ack = on_ack,
	.on_cnp = on_cnp,
	.on_loss = on_loss,
};

void dctcp_init(struct cc *c, const struct cc_config *config, const struct dctcp_params *params, uint64_t now_ns)
{
	uint64_t ai_bps = cc_rate_bps(params->rate_ai, config->line_rate_bps);

	cc_init_common(c, config, &dctcp_ops);
	c->dctcp.params = params;
	c->dctcp.ai_q16 = mtu_q16(c);
	if (config->base_rtt_ns && ai_bps)
		c->dctcp.ai_q16 = fx_max(
			fx_muldiv(fx_min(ai_bps, UINT64_C(1) << 47) << 16, config->base_rtt_ns, UINT64_C(8000000000)),
			1);
	c->dctcp.pace_ns = params->paced ? config->base_rtt_ns : 0;
	if (params->bounded)
		c->cwnd_bytes_max = c->cwnd_bytes;
	c->dctcp.alpha_q32 = params->alpha_start_q32;
	c->dctcp.ssthresh_q16 = params->doubling ? UINT64_MAX : 0;
	c->dctcp.round_cwnd = c->cwnd_bytes;
	set_cwnd(c, c->cwnd_bytes << 16);
}

static void dctcp_make(struct cc *c, const struct cc_config *config, uint64_t now_ns)
{
	dctcp_init(c, config, config->params ? &config->params->dctcp : &dctcp_params_default, now_ns);
}

static void look(const struct cc *c, struct cc_look *l)
{
	l->signal_name = "alpha_ppb";
	l->signal = q32_ppb(c->dctcp.alpha_q32);
}

static void archive(struct archive *a, struct cc *c)
{
	ARCHIVE(a, &c->dctcp, cwnd_q16, ssthresh_q16, alpha_q32, snd_nxt, ack_seq, round_end, round_cwnd, acked_bytes,
		marked_bytes, cwr_end, cwr, cnp, timeout, used);
}

const struct cc_kind cc_dctcp_kind = {
	.init = dctcp_make,
	.needs = CC_NEEDS_MARKS | CC_NEEDS_ECN,
	.params = &dctcp_params_default,
	.params_bytes = sizeof(dctcp_params_default),
	.look = look,
	.archive = archive,
};
