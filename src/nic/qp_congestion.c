/* SPDX-License-Identifier: BSD-2-Clause */
/* A look at congestion control from outside: changes nothing, and costs nothing while nobody looks. */
#include "nic/state.h"
#include "transport/rocev2/congestion.h"
#include "transport/veroce/veroce.h"

static void look(const struct cc *c, const struct cc_kind *kind, struct nic_congestion *out)
{
	struct cc_look l = {0};

	if (kind->look)
		kind->look(c, &l);
	*out = (struct nic_congestion){.rate_bps = c->rate_bps,
				       .cwnd_bytes = c->cwnd_bytes,
				       .signal_name = l.signal_name,
				       .target_name = l.target_name,
				       .signal = l.signal,
				       .target = l.target};
}

static const struct cc_kind *kind_of(const struct cc_params *p, enum cc_algorithm otherwise)
{
	return p ? cc_params_kind(p) : cc_kind_of(otherwise);
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
			look(&g->cc, kind_of(nic->tp.config.cc.params, CC_NONE), out);
		else
			*out = (struct nic_congestion){.rate_bps = CC_UNPACED,
						       .cwnd_bytes = qp->gbn->req.cc.window_bytes};
		return true;
	}
	if (!pair || path >= pair->path_count)
		return false;
	/* Between addresses of this host there is none. */
	look(pair_cc(&nic->tp.pairs, pair, path, &fresh),
	     kind_of(qp->local ? NULL : nic->tp.config.cc.params, pair_algorithm(&nic->tp.config, qp->local)), out);
	return true;
}
