/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Queries of congestion control, for observers. They change nothing, and cost nothing unless they
 * are called.
 */
#include "cc/cc.h"
#include "nic/state.h"

bool nic_qp_congestion(const struct nic *nic, const struct qp *qp, uint32_t path, struct nic_congestion *out)
{
	const struct cc_kind *kind;
	const struct cc *c = NULL;
	struct cc_look look = {0};
	struct cc scratch;

	if (qp->ops->congestion)
		c = qp->ops->congestion(&nic->tp, qp, path, &scratch, &kind);
	if (!c)
		return false;
	if (kind->look)
		kind->look(c, &look);
	*out = (struct nic_congestion){.rate_bps = c->rate_bps,
				       .cwnd_bytes = c->cwnd_bytes,
				       .signal_name = look.signal_name,
				       .target_name = look.target_name,
				       .signal = look.signal,
				       .target = look.target};
	return true;
}
