/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * HPCC, Algorithm 1 of the paper in bytes. Every acknowledgement with a stack recomputes the window
 * from the same reference, so the answer is quick and nothing is counted twice; the reference moves
 * once a round trip. Only differences between two stacks of one path mean anything, so the first
 * after a change of path, or after a silence in which the counters may have wrapped, is only kept.
 *
 * Invariant: both windows are between window_q16_min and window_q16_max. The upper bound is what
 * keeps the window of an idle path, where U is next to nothing, from growing without end.
 */
#include "cc/hpcc.h"

#include "cc/common.h"

const struct hpcc_params hpcc_params_default = {
	.eta_q32 = Q32_RATIO(95, 100),
	.max_stage = 5,
	.flows = 100,
	.t = CC_RTTS(104, 100),
};

uint64_t hpcc_hop_q32(const struct int_hop *later, const struct int_hop *earlier, uint64_t t_ns, uint64_t *dt_ns)
{
	uint64_t dt = int_ts_diff_ns(later, earlier), queued_bps, sent_bps;

	*dt_ns = UINT64_MAX;
	/* More than half of the field is a step back: this stack was overtaken. */
	if (!dt || dt >= INT_WRAP_NS / 2 || !later->rate_bps)
		return 0;
	*dt_ns = dt;
	queued_bps = fx_muldiv(fx_min(later->qlen_bytes, earlier->qlen_bytes), UINT64_C(8000000000), fx_max(t_ns, 1));
	sent_bps = fx_muldiv(int_tx_diff_bytes(later, earlier), UINT64_C(8000000000), dt);
	return q32_div(fx_add(queued_bps, sent_bps), later->rate_bps);
}

uint64_t hpcc_average_q32(uint64_t average_q32, uint64_t u_q32, uint64_t dt_ns, uint64_t t_ns)
{
	uint64_t gain_q32 = dt_ns >= t_ns ? Q32_ONE : q32_div(dt_ns, t_ns);

	return fx_add(q32_mul(average_q32, Q32_ONE - gain_q32), q32_mul(u_q32, gain_q32));
}

static void store(struct cc_hpcc *h, const struct int_stack *s, uint64_t now_ns)
{
	for (unsigned int i = 0; i < s->hops; i++)
		h->hop[i] = s->hop[i];
	h->hops = s->hops;
	h->path_id = s->path_id;
	h->heard = true;
	h->heard_ns = now_ns;
}

/* The paper's MeasureInflight. False: this stack has nothing new. */
static bool measure(struct cc_hpcc *h, const struct int_stack *s)
{
	uint64_t u = 0, dt_ns, of_u_ns = UINT64_MAX;

	for (unsigned int i = 0; i < s->hops; i++) {
		struct int_hop later = int_hop_unpack(s->hop[i]);
		struct int_hop earlier = int_hop_unpack(h->hop[i]);
		uint64_t of_hop = hpcc_hop_q32(&later, &earlier, h->t_ns, &dt_ns);

		if (dt_ns != UINT64_MAX && (of_hop > u || of_u_ns == UINT64_MAX)) {
			u = of_hop;
			of_u_ns = dt_ns;
		}
	}
	if (of_u_ns == UINT64_MAX)
		return false;
	h->u_q32 = hpcc_average_q32(h->u_q32, u, of_u_ns, h->t_ns);
	return true;
}

static void set_window(struct cc *c, uint64_t window_q16)
{
	struct cc_hpcc *h = &c->hpcc;

	h->window_q16 = fx_min(fx_max(window_q16, h->window_q16_min), h->window_q16_max);
	c->cwnd_bytes = h->window_q16 >> 16;
	c->rate_bps = cc_pace_bps(h->window_q16, h->t_ns);
}

/* The paper's ComputeWind. */
static void compute(struct cc *c, bool round_ended)
{
	struct cc_hpcc *h = &c->hpcc;
	const struct hpcc_params *p = h->params;
	bool multiply = h->u_q32 >= p->eta_q32 || h->stage >= p->max_stage;
	uint64_t to = h->reference_q16;

	if (multiply)
		to = fx_muldiv(to, p->eta_q32, h->u_q32);
	set_window(c, fx_add(to, h->w_ai_q16));
	if (!round_ended)
		return;
	h->stage = multiply ? 0 : h->stage + 1;
	h->reference_q16 = h->window_q16;
}

static void on_ack(struct cc *c, uint64_t now_ns, const struct cc_ack *ack)
{
	const struct int_stack *s = ack->int_stack;
	struct cc_hpcc *h = &c->hpcc;
	bool round_ended = ack->ack_seq > h->round_end;

	if (!s || !s->hops || s->hops > INT_HOPS_MAX)
		return;
	if (!h->heard || s->path_id != h->path_id || s->hops != h->hops ||
	    fx_sub(now_ns, h->heard_ns) >= INT_WRAP_NS / 2) {
		store(h, s, now_ns);
		h->round_end = ack->snd_nxt;
		return;
	}
	if (!measure(h, s))
		return;
	store(h, s, now_ns);
	compute(c, round_ended);
	if (round_ended)
		h->round_end = ack->snd_nxt;
}

static void on_loss(struct cc *c, uint64_t now_ns, enum cc_loss loss)
{
	struct cc_hpcc *h = &c->hpcc;

	switch (cc_judge_loss(c, loss)) {
	case CC_LOSS_IS_NOTHING: return;
	case CC_LOSS_IS_ITS_OWN:
		if (loss != CC_LOSS_RTO)
			return; /* ours; the paper has none, as telemetry shows the queue anyway */
		break;
	case CC_LOSS_IS_CNP: /* HPCC ignores it */
	case CC_LOSS_IS_HALF:
		if (h->halved_ns != UINT64_MAX && fx_sub(now_ns, h->halved_ns) < h->t_ns)
			return;
	}
	h->halved_ns = now_ns;
	/* A window that is already smaller than an MTU must not grow by this. */
	set_window(c, fx_max(h->window_q16 / 2, fx_min(h->window_q16, (uint64_t)c->mtu_bytes << 16)));
	h->reference_q16 = h->window_q16;
}

static const struct cc_ops hpcc_ops = {
	.on_ack = on_ack,
	.on_loss = on_loss,
};

/* The additive parts of all flows together must fit into what eta leaves. */
static uint64_t w_ai_q16(const struct cc_hpcc *h, uint64_t line_bps)
{
	const struct hpcc_params *p = h->params;
	uint64_t ai_bps = cc_rate_bps(p->rate_ai, line_bps);

	if (p->w_ai_bytes)
		return fx_min(p->w_ai_bytes, CC_CWND_BYTES_LIMIT) << 16;
	if (ai_bps)
		return fx_muldiv(fx_min(ai_bps, UINT64_C(1) << 47) << 16, h->t_ns, UINT64_C(8000000000));
	return q32_mul(h->window_q16_max, fx_sub(Q32_ONE, p->eta_q32)) / fx_max(p->flows, 1);
}

void hpcc_init(struct cc *c, const struct cc_config *config, const struct hpcc_params *params, uint64_t now_ns)
{
	const struct cc_params *common = config->params;
	struct cc_hpcc *h = &c->hpcc;
	struct cc_config known = *config;
	uint64_t min_bps;

	if (!known.line_rate_bps)
		known.line_rate_bps = CC_LINE_RATE_BPS_UNKNOWN;
	known.base_rtt_ns = cc_time_ns(params->t, known.base_rtt_ns ? known.base_rtt_ns : CC_BASE_RTT_NS_UNKNOWN);
	known.base_rtt_ns = fx_max(known.base_rtt_ns, 1);
	cc_init_common(c, &known, &hpcc_ops);
	h->params = params;
	h->t_ns = known.base_rtt_ns;
	min_bps = cc_rate_bps(common && common->rate_min ? common->rate_min : CC_LINE_PART(10000), known.line_rate_bps);
	h->window_q16_max = c->cwnd_bytes << 16;
	h->window_q16_min = fx_muldiv(fx_min(min_bps, UINT64_C(1) << 47) << 16, h->t_ns, UINT64_C(8000000000));
	h->window_q16_min = fx_min(fx_max(h->window_q16_min, c->cwnd_bytes_min << 16), h->window_q16_max);
	h->w_ai_q16 = w_ai_q16(h, known.line_rate_bps);
	h->u_q32 = Q32_ONE;
	h->halved_ns = UINT64_MAX;
	set_window(c, h->window_q16_max);
	h->reference_q16 = h->window_q16;
}

static void hpcc_make(struct cc *c, const struct cc_config *config, uint64_t now_ns)
{
	hpcc_init(c, config, config->params ? &config->params->hpcc : &hpcc_params_default, now_ns);
}

static void look(const struct cc *c, struct cc_look *l)
{
	l->signal_name = "utilisation_ppb";
	l->signal = q32_ppb(c->hpcc.u_q32);
	l->target_name = "target_bytes";
	l->target = c->hpcc.reference_q16 >> 16;
}

static void archive(struct archive *a, struct cc *c)
{
	struct cc_hpcc *h = &c->hpcc;

	ARCHIVE(a, h, window_q16, reference_q16, u_q32, round_end, path_id, hops, heard, stage);
	ARCHIVE_ARRAYS(a, h, hop);
	ARCHIVE_TIMES(a, h, heard_ns, halved_ns);
	archive_judge(a, h->hops <= INT_HOPS_MAX);
}

const struct cc_kind cc_hpcc_kind = {
	.init = hpcc_make,
	.needs = CC_NEEDS_INT,
	.params = &hpcc_params_default,
	.params_bytes = sizeof(hpcc_params_default),
	.look = look,
	.archive = archive,
};
