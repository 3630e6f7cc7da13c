/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A record is in both tables, or in that of QPNs alone while it has no peer, or it is free and in a list by next_by_qpn.
 */
#include "faults/qps.h"

#include <string.h>

#include "base/byteorder.h"

enum { QPS_MIN = 64 };

void qps_init(struct qps *q)
{
	q->unused = NO_QP;
	for (unsigned i = 0; i < QPS_BUCKETS; i++)
		q->by_qpn[i] = q->by_peer[i] = NO_QP;
}

void qps_fini(struct qps *q, const struct alloc *alloc)
{
	alloc_put(alloc, q->at, sizeof(*q->at) * q->room);
}

static uint32_t bucket_of_qpn(uint32_t qpn)
{
	return (qpn * 2654435761u) >> 20;
}

static uint32_t bucket_of_peer(const uint8_t peer[16], uint32_t qpn)
{
	return ((qpn ^ get_be32(peer + 12)) * 2654435761u) >> 20;
}

int32_t qps_find(const struct qps *q, uint32_t qpn)
{
	int32_t i = q->by_qpn[bucket_of_qpn(qpn)];

	while (i != NO_QP && q->at[i].qpn != qpn)
		i = q->at[i].next_by_qpn;
	return i;
}

int32_t qps_find_peer(const struct qps *q, const uint8_t peer[16], uint32_t dest_qpn)
{
	int32_t i = q->by_peer[bucket_of_peer(peer, dest_qpn)];

	while (i != NO_QP && (q->at[i].dest_qpn != dest_qpn || memcmp(q->at[i].peer, peer, sizeof(q->at[i].peer)) != 0))
		i = q->at[i].next_by_peer;
	return i;
}

int32_t qps_find_number(const struct qps *q, uint32_t number)
{
	for (uint32_t i = 0; i < q->used; i++)
		if (q->at[i].number == number)
			return (int32_t)i;
	return NO_QP;
}

int32_t qps_nth(const struct qps *q, uint64_t n)
{
	for (uint32_t i = 0; i < q->used; i++)
		if (q->at[i].number && !n--)
			return (int32_t)i;
	return NO_QP;
}

int32_t qps_next(const struct qps *q, int32_t i)
{
	while (i != NO_QP && (uint32_t)i < q->used && !q->at[i].number)
		i++;
	return i == NO_QP || (uint32_t)i >= q->used ? NO_QP : i;
}

/* A free record; NO_QP: no memory. */
static int32_t get(struct qps *q, const struct alloc *alloc)
{
	uint32_t room = q->room ? 2 * q->room : QPS_MIN;
	int32_t i = q->unused;
	struct fault_qp *more;

	if (i != NO_QP) {
		q->unused = q->at[i].next_by_qpn;
		return i;
	}
	if (q->used == q->room) {
		more = alloc_get(alloc, sizeof(*more) * room);
		if (!more)
			return NO_QP;
		if (q->at)
			memcpy(more, q->at, sizeof(*more) * q->used);
		alloc_put(alloc, q->at, sizeof(*more) * q->room);
		q->at = more;
		q->room = room;
	}
	return (int32_t)q->used++;
}

void qps_add(struct qps *q, const struct alloc *alloc, uint32_t number, uint32_t qpn)
{
	int32_t i = get(q, alloc), *head = &q->by_qpn[bucket_of_qpn(qpn)];

	if (i == NO_QP)
		return;
	q->at[i] = (struct fault_qp){.number = number, .qpn = qpn, .next_by_qpn = *head, .next_by_peer = NO_QP};
	*head = i;
	q->live++;
}

static void leave_peer(struct qps *q, int32_t i)
{
	struct fault_qp *qp = &q->at[i];
	int32_t *at = &q->by_peer[bucket_of_peer(qp->peer, qp->dest_qpn)];

	if (!qp->has_peer)
		return;
	while (*at != i)
		at = &q->at[*at].next_by_peer;
	*at = qp->next_by_peer;
	qp->has_peer = false;
}

void qps_set_peer(struct qps *q, int32_t i, const uint8_t peer[16], uint32_t dest_qpn)
{
	int32_t *head = &q->by_peer[bucket_of_peer(peer, dest_qpn)];
	struct fault_qp *qp = &q->at[i];

	leave_peer(q, i);
	memcpy(qp->peer, peer, sizeof(qp->peer));
	qp->dest_qpn = dest_qpn;
	qp->next_by_peer = *head;
	qp->has_peer = true;
	qp->psn_known[0] = qp->psn_known[1] = false;
	*head = i;
}

void qps_remove(struct qps *q, int32_t i)
{
	int32_t *at = &q->by_qpn[bucket_of_qpn(q->at[i].qpn)];

	leave_peer(q, i);
	while (*at != i)
		at = &q->at[*at].next_by_qpn;
	*at = q->at[i].next_by_qpn;
	q->at[i] = (struct fault_qp){.next_by_qpn = q->unused};
	q->unused = i;
	q->live--;
}
