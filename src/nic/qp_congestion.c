/* SPDX-License-Identifier: BSD-2-Clause */
/* A look at congestion control from outside: changes nothing, and costs nothing while nobody looks. */
#include "nic/state.h"
#include "transport/congestion.h"
#include "transport/veroce/veroce.h"

static uint64_t ppb(uint64_t q32)
{
	return (uint64_t)((unsigned __int128)q32 * 1000000000 >> 32);
}

static void set_signal(struct nic_congestion *out, const char *name, uint64_t value)
{
	out->signal_name = name;
	out->signal = value;
}

static void set_target(struct nic_congestion *out, const char *name, uint64_t value)
{
	out->target_name = name;
	out->target = value;
}

static void look(const struct cc *c, enum cc_algorithm algorithm, struct nic_congestion *out)
{
	*out = (struct nic_congestion){.rate_bps = c->rate_bps, .cwnd_bytes = c->cwnd_bytes};
	switch (algorithm) {
	case CC_NONE:
	case CC_ALGORITHMS:
		break;
	case CC_SWIFT:
		set_signal(out, "rtt_ns", c->swift.rtt_ns);
		break;
	case CC_DCTCP:
		set_signal(out, "alpha_ppb", ppb(c->dctcp.alpha_q32));
		break;
	case CC_DCQCN:
		set_signal(out, "alpha_ppb", ppb(c->dcqcn.alpha_q32));
		set_target(out, "target_bps", c->dcqcn.target_bps);
		break;
	case CC_DCQCN_FW:
		set_signal(out, "alpha_ppb", ppb(c->dcqcn_fw.alpha_q32));
		set_target(out, "target_bps", c->dcqcn_fw.target_bps);
		break;
	case CC_HPCC:
		set_signal(out, "utilisation_ppb", ppb(c->hpcc.u_q32));
		set_target(out, "target_bytes", c->hpcc.reference_q16 >> 16);
		break;
	case CC_TIMELY:
	case CC_TIMELY_PATCHED:
		set_signal(out, "rtt_ns", c->timely.prev_ns);
		break;
	case CC_RTTCC:
		set_signal(out, "base_rtt_ns", c->rttcc.base_rtt_ns);
		set_target(out, "target_ns",
			   rttcc_target(c->rttcc.base_rtt_ns, c->rttcc.params->alpha_q32, c->rttcc.share_q32));
		break;
	}
}

static enum cc_algorithm algorithm_of(const struct cc_params *p, enum cc_algorithm otherwise)
{
	return p ? p->algorithm : otherwise;
}

bool nic_qp_congestion(const struct nic *nic, const struct qp *qp, uint32_t path, struct nic_congestion *out)
{
	const struct pair *pair = qp->veroce ? qp->veroce->pair : NULL;
	struct cc fresh;

	if (qp->gbn) { /* RoCEv2; such a QP may have a pair, too, of which it makes no use */
		const struct congestion *g = congestion_governing(qp);

		if (path || qp->type != QPT_RC)
			return false;
		if (g)
			look(&g->cc, algorithm_of(nic->tp.cc, CC_NONE), out);
		else
			*out = (struct nic_congestion){.rate_bps = CC_UNPACED,
						       .cwnd_bytes = qp->gbn->req.cc.window_bytes};
		return true;
	}
	if (!pair || path >= pair->path_count)
		return false;
	/* Between addresses of this host there is none. */
	look(pair_cc(&nic->tp.pairs, pair, path, &fresh),
	     qp->local ? CC_NONE : algorithm_of(nic->tp.pairs.config.cc_params, nic->tp.pairs.config.cc), out);
	return true;
}
