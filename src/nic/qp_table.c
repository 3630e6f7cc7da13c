/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * QPNs, and the table of QPs by QPN. The low bits, 17 unless the nic is created for fewer QPs, run through a
 * keyed permutation, so that a number is reused as late as possible and reveals nothing about the next
 * one; the high 7 bits are the process's slot on this host. Since the permutation spreads them, the lowest
 * bits serve as the hash.
 */
#include <errno.h>

#include "base/siphash.h"
#include "nic/state.h"

enum { QPN_GSI = 1, QPN_MULTICAST = 0xffffff };

static uint32_t low_mask(const struct nic *nic)
{
	return (1u << nic->qpn_bits) - 1;
}

void qp_table_init(struct nic *nic)
{
	nic->qps = nic->few_qps;
	nic->qps_mask = NIC_FEW_QPS - 1;
}

void qp_table_fini(struct nic *nic)
{
	for (uint32_t i = 0; i <= nic->qps_mask; i++) {
		while (nic->qps[i])
			nic_qp_destroy(nic, nic->qps[i]);
	}
	if (nic->qps != nic->few_qps)
		alloc_put(&nic->tp.alloc, nic->qps, (nic->qps_mask + 1ull) * sizeof(*nic->qps));
	qp_table_init(nic);
}

uint32_t nic_rd_atomic_of_others(const struct nic *nic, const struct qp *but)
{
	uint32_t sum = 0;

	for (uint32_t i = 0; i <= nic->qps_mask; i++) {
		for (const struct qp *qp = nic->qps[i]; qp; qp = qp->table_next) {
			if (qp != but && qp_get_state(qp) > QPS_INIT)
				sum += qp->max_dest_rd_atomic;
		}
	}
	return sum;
}

struct qp *qp_table_find(const struct nic *nic, uint32_t qpn)
{
	struct qp *qp = nic->qps[qpn & nic->qps_mask];

	while (qp && qp->qpn != qpn)
		qp = qp->table_next;
	return qp;
}

static void enter(struct nic *nic, struct qp *qp)
{
	struct qp **bucket = &nic->qps[qp->qpn & nic->qps_mask];

	qp->table_next = *bucket;
	*bucket = qp;
}

void qp_table_grow(struct nic *nic)
{
	size_t count = nic->qps_mask + 1ull;
	struct qp **old = nic->qps, **more = alloc_get(&nic->tp.alloc, 2 * count * sizeof(*more));

	if (!more)
		return;
	nic->qps = more;
	nic->qps_mask = (uint32_t)(2 * count - 1);
	for (size_t i = 0; i < count; i++) {
		while (old[i]) {
			struct qp *qp = old[i];

			old[i] = qp->table_next;
			enter(nic, qp);
		}
	}
	if (old != nic->few_qps)
		alloc_put(&nic->tp.alloc, old, count * sizeof(*old));
}

bool qpn_is_free(const struct nic *nic, uint32_t qpn)
{
	return (qpn & ~low_mask(nic)) == nic->qpn_base && qpn > QPN_GSI && qpn != QPN_MULTICAST &&
	       !qp_table_find(nic, qpn);
}

/* The next one of the permutation that nobody has; 0: there is none. */
static uint32_t draw(struct nic *nic)
{
	for (uint32_t tries = 0; tries <= low_mask(nic); tries++) {
		uint32_t low = permute(nic->qpn_secret, nic->qpn_bits, nic->qpn_serial++ & low_mask(nic));

		if (qpn_is_free(nic, nic->qpn_base | low))
			return nic->qpn_base | low;
	}
	return 0;
}

int qp_table_add(struct nic *nic, struct qp *qp, uint32_t qpn)
{
	if (nic->qp_count >= NIC_MAX_QP)
		return -ENOMEM;
	qp->qpn = qpn ? qpn : draw(nic);
	if (!qp->qpn)
		return -ENOMEM;
	if (nic->qp_count++ > nic->qps_mask)
		qp_table_grow(nic);
	enter(nic, qp);
	nic->tp.qp_changes++;
	return 0;
}

void qp_table_remove(struct nic *nic, struct qp *qp)
{
	struct qp **at = &nic->qps[qp->qpn & nic->qps_mask];

	while (*at != qp)
		at = &(*at)->table_next;
	*at = qp->table_next;
	nic->qp_count--;
	nic->tp.qp_changes++;
}
