/* SPDX-License-Identifier: BSD-2-Clause */
/* See look.h. */
#include "transport/look.h"

bool qp_is_rocev2(const struct qp *qp)
{
	return qp->gbn || qp->ops->datagram;
}

uint32_t qp_send_wqes(const struct qp *qp)
{
	return qp->type == QPT_XRC_RECV ? 0 : sq_head(&qp->sq) - qp->sq.una;
}

const struct pair *transport_next_pair(struct transport *tp, uint32_t *bucket, const struct pair *last)
{
	struct list *buckets = pair_table_buckets(&tp->pairs);
	const struct list *next = last ? last->link.next : buckets[*bucket].next;

	while (next == &buckets[*bucket]) {
		if (++*bucket >= tp->pairs.bucket_count)
			return NULL;
		next = buckets[*bucket].next;
	}
	return container_of(next, const struct pair, link);
}
