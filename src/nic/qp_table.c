/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * QPNs. The low 17 bits run through a keyed permutation, so that a number comes back as late as can
 * be and tells nothing about the next one; the high 7 are the process's slot on this host.
 */
#include <errno.h>

#include "base/siphash.h"
#include "nic/state.h"

enum { QPN_MASK = (1 << NIC_QPN_BITS) - 1, QPN_GSI = 1, QPN_MULTICAST = 0xffffff };

struct qp *qp_table_find(const struct nic *nic, uint32_t qpn)
{
	return (qpn & ~(uint32_t)QPN_MASK) == nic->qpn_base ? nic->qps[qpn & QPN_MASK] : NULL;
}

int qp_table_add(struct nic *nic, struct qp *qp)
{
	for (uint32_t tries = 0; tries <= QPN_MASK; tries++) {
		uint32_t low = permute(nic->qpn_secret, NIC_QPN_BITS, nic->qpn_serial++ & QPN_MASK);
		uint32_t qpn = nic->qpn_base | low;

		if (nic->qps[low] || qpn <= QPN_GSI || qpn == QPN_MULTICAST)
			continue;
		nic->qps[low] = qp;
		qp->qpn = qpn;
		return 0;
	}
	return -ENOMEM;
}

void qp_table_remove(struct nic *nic, struct qp *qp)
{
	nic->qps[qp->qpn & QPN_MASK] = NULL;
}
