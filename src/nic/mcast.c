/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Multicast groups (IBTA 10.5): which UD QPs are attached to which, and the copies that each gets of a packet. The
 * groups are few and a packet to one is rare, so a list does. How the host comes to hear a group is the caller's
 * business.
 *
 * Invariant: a group has an attachment; a QP counts its attachments.
 */
#include <errno.h>
#include <string.h>

#include "base/ipudp.h"
#include "nic/state.h"
#include "transport/archive.h"

struct attachment {
	struct list link; /* in mcast_group.attached */
	struct qp *qp;
};

struct mcast_group {
	struct list link; /* in nic.groups */
	uint8_t gid[16];
	struct list attached;
	uint32_t count;
};

static struct mcast_group *find(const struct nic *nic, const uint8_t gid[16])
{
	for (struct list *l = nic->groups.next; l != &nic->groups; l = l->next) {
		struct mcast_group *g = container_of(l, struct mcast_group, link);

		if (!memcmp(g->gid, gid, sizeof(g->gid)))
			return g;
	}
	return NULL;
}

static struct attachment *attachment_of(const struct mcast_group *g, const struct qp *qp)
{
	for (struct list *l = g->attached.next; l != &g->attached; l = l->next) {
		struct attachment *a = container_of(l, struct attachment, link);

		if (a->qp == qp)
			return a;
	}
	return NULL;
}

static struct mcast_group *group_make(struct nic *nic, const uint8_t gid[16])
{
	struct mcast_group *g = nic->group_count < NIC_MAX_MCAST_GROUPS ? alloc_get(&nic->tp.alloc, sizeof(*g)) : NULL;

	if (!g)
		return NULL;
	memcpy(g->gid, gid, sizeof(g->gid));
	list_init(&g->attached);
	g->count = 0;
	list_append(&nic->groups, &g->link);
	nic->group_count++;
	return g;
}

static void group_free_if_empty(struct nic *nic, struct mcast_group *g)
{
	if (g->count)
		return;
	list_remove(&g->link);
	nic->group_count--;
	alloc_put(&nic->tp.alloc, g, sizeof(*g));
}

int nic_mcast_attach(struct nic *nic, struct qp *qp, const uint8_t gid[16])
{
	struct mcast_group *g;
	struct attachment *a;

	if (!qp->ops->datagram || !gid_is_multicast(gid))
		return -EINVAL;
	g = find(nic, gid);
	if (g && attachment_of(g, qp))
		return 0;
	if (!g)
		g = group_make(nic, gid);
	if (!g)
		return -ENOMEM;
	a = g->count < NIC_MAX_MCAST_QPS ? alloc_get(&nic->tp.alloc, sizeof(*a)) : NULL;
	if (!a) {
		group_free_if_empty(nic, g);
		return -ENOMEM;
	}
	a->qp = qp;
	list_append(&g->attached, &a->link);
	g->count++;
	qp->groups++;
	return 0;
}

static void detach(struct nic *nic, struct mcast_group *g, struct attachment *a)
{
	list_remove(&a->link);
	a->qp->groups--;
	g->count--;
	alloc_put(&nic->tp.alloc, a, sizeof(*a));
	group_free_if_empty(nic, g);
}

int nic_mcast_detach(struct nic *nic, struct qp *qp, const uint8_t gid[16])
{
	struct mcast_group *g = find(nic, gid);
	struct attachment *a = g ? attachment_of(g, qp) : NULL;

	if (!a)
		return -EINVAL;
	detach(nic, g, a);
	return 0;
}

void mcast_detach_all(struct nic *nic, struct qp *qp)
{
	for (struct list *l = nic->groups.next, *next; qp->groups && l != &nic->groups; l = next) {
		struct mcast_group *g = container_of(l, struct mcast_group, link);
		struct attachment *a = attachment_of(g, qp);

		next = l->next;
		if (a)
			detach(nic, g, a);
	}
}

struct nic_mcast_use nic_mcast_use(const struct nic *nic, const uint8_t gid[16])
{
	const struct mcast_group *g = find(nic, gid);
	struct nic_mcast_use use = {.groups = nic->group_count, .attached = g ? g->count : 0};

	for (const struct list *l = nic->groups.next; l != &nic->groups; l = l->next)
		use.total += container_of(l, const struct mcast_group, link)->count;
	return use;
}

bool nic_mcast_has(const struct nic *nic, const uint8_t gid[16])
{
	return find(nic, gid);
}

bool nic_mcast_group(const struct nic *nic, uint32_t n, uint8_t gid[16])
{
	struct list *l = nic->groups.next;

	while (n-- && l != &nic->groups)
		l = l->next;
	if (l == &nic->groups)
		return false;
	memcpy(gid, container_of(l, struct mcast_group, link)->gid, sizeof(((struct mcast_group *)0)->gid));
	return true;
}

/*
 * IBTA 10.5.2.1: each attached QP judges for itself, as with a packet to it alone, and what one lacks is no other's
 * affair. A QPN of a multicast comes to a group's address only (IBTA 9.6.1.2.3).
 */
void mcast_input(struct nic *nic, struct rx *rx)
{
	const struct mcast_group *g = rx->service == SVC_UD ? find(nic, rx->pkt->flow->dst) : NULL;

	if (!g) {
		nic->tp.counters.rx_no_qp++;
		return;
	}
	nic->tp.counters.rx_multicast++;
	for (struct list *l = g->attached.next; l != &g->attached; l = l->next) {
		struct qp *qp = container_of(l, struct attachment, link)->qp;

		nic_deliver(nic, qp, rx);
	}
}

/* Loading, the QPs join again, in the same order. */
static void group_archive(struct archive *a, struct nic *nic, struct mcast_group *g)
{
	struct list *l = &g->attached;
	uint32_t count = archive_count(a, g->count, NIC_MAX_MCAST_QPS);

	ARCHIVE_ARRAYS(a, g, gid);
	for (uint32_t i = 0; i < count && !a->err; i++) {
		struct qp *qp = NULL;

		if (!a->loads) {
			l = l->next;
			qp = container_of(l, struct attachment, link)->qp;
		}
		ARCHIVE_REF(a, qp, KIND_QP);
		archive_judge(a, qp && (!a->loads || !nic_mcast_attach(nic, qp, g->gid)));
	}
}

void mcast_archive(struct archive *a, struct nic *nic, uint16_t type)
{
	struct list *l = &nic->groups;
	uint32_t count = archive_count(a, nic->group_count, NIC_MAX_MCAST_GROUPS);

	for (uint32_t i = 0; i < count && !a->err; i++) {
		struct mcast_group new = {0};

		l = a->loads ? l : l->next;
		archive_begin(a, type, 1);
		group_archive(a, nic, a->loads ? &new : container_of(l, struct mcast_group, link));
		archive_end(a);
	}
}
