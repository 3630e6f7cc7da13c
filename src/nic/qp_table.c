/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * QPNs. The low bits, 17 unless the nic is made for fewer QPs, run through a keyed permutation, so that a number comes back as late as can
 * be and tells nothing about the next one; the high 7 are the process's slot on this host.
 */
#include <errno.h>

#include "base/siphash.h"
#include "nic/state.h"

enum { QPN_GSI = 1, QPN_MULTICAST = 0xffffff };

static uint32_t low_mask(const struct nic *nic)
{
	return (1u << nic->qpn_bits) - 1;
}

struct qp *qp_table_find(const struct nic *nic, uint32_t qpn)
{
	return (qpn & ~low_mask(nic)) == nic->qpn_base ? nic->qps[qpn & low_mask(nic)] : NULL;
}

int qp_table_add(struct nic *nic, struct qp *qp)
{
	for (uint32_t tries = 0; tries <= low_mask(nic); tries++) {
		uint32_t low = permute(nic->qpn_secret, nic->qpn_bits,
				       nic->qpn_serial++ & low_mask(nic));
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
	nic->qps[qp->qpn & low_mask(nic)] = NULL;
}
