/* SPDX-License-Identifier: BSD-2-Clause */
/* Queries of a QP, for struct qp_ops. They change nothing. */
#include "transport/veroce/roam.h"
#include "transport/veroce/veroce.h"

void veroce_query(const struct qp *qp, struct qp_psns *psns)
{
	const struct veroce *vr = qp->veroce;
	const struct veroce_work *w = vr->w;
	const struct roam *moved = veroce_roam(vr);

	*psns = (struct qp_psns){
		.rq_psn = w ? w->q_in.rx.epsn : vr->quiet.q_epsn,
		.rq_early = w ? rx_early(&w->q_in.rx) : 0,
		.sq_psn = vr->psn_new,
		.una = w ? w->q.tx.una : vr->psn_new,
		.pair = vr->pair,
		.peer_gid = moved ? moved->peer_gid : NULL,
	};
}

const struct cc *veroce_congestion(const struct transport *tp, const struct qp *qp, uint32_t path, struct cc *scratch,
				   const struct cc_kind **kind)
{
	const struct cc_params *p = tp->config.cc.params;
	const struct pair *pair = qp->veroce->pair;

	if (path >= pair->path_count)
		return NULL;
	*kind = p && !qp->peer->local ? cc_params_kind(p) : cc_kind_of(pair_algorithm(&tp->config, qp->peer->local));
	return pair_cc(&tp->pairs, pair, path, scratch);
}
