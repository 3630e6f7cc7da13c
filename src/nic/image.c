/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A nic as bytes. The image is one row of records (base/archive.h), in the order of image_archive(), where an object
 * comes behind those that it names, and a CRC over all of it. Loading, each object is made as a program would make it;
 * then it gets its state. So a nic that was loaded in part can be destroyed like any other.
 */
#include <errno.h>
#include <string.h>

#include "nic/state.h"
#include "transport/archive.h"
#include "transport/xrc.h"
#include "wire/crc32.h"

enum record {
	RECORD_NIC = 1,
	RECORD_PD,
	RECORD_XRCD,
	RECORD_REGION,
	RECORD_CQ,
	RECORD_SRQ,
	RECORD_PAIR,
	RECORD_QP,
	RECORD_WINDOW,
	RECORD_COMPLETIONS,
	RECORD_GROUP,
	RECORD_MAD,
	RECORD_WAITING
};

/* Format 1, as a machine of the right byte order reads it. */
static const uint64_t mark = UINT64_C(0x01414e454252454e);

enum { CRC_BYTES = 4, BUILD_BYTES = 16 };

/* ---- objects ------------------------------------------------------------------------------------ */

static void pd_archive(struct archive *a, struct nic *nic, struct list *l)
{
	struct pd *pd = l ? &container_of(l, struct nic_pd, link)->pd : NULL;

	if (a->loads)
		archive_fail(a, nic_pd_alloc(nic, &pd));
	if (a->err)
		return;
	archive_define(a, pd, KIND_PD);
	ARCHIVE(a, pd, handle);
}

static void xrcd_archive(struct archive *a, struct nic *nic, struct list *l)
{
	struct xrcd *xrcd = l ? &container_of(l, struct nic_xrcd, link)->xrcd : NULL;

	if (a->loads)
		archive_fail(a, nic_xrcd_alloc(nic, &xrcd));
	if (!a->err)
		archive_define(a, xrcd, KIND_XRCD);
}

static void one_cq_archive(struct archive *a, struct nic *nic, struct list *l)
{
	struct cq *cq = l ? &container_of(l, struct nic_cq, link)->cq : NULL;
	uint32_t capacity = archive_count(a, cq ? cq->capacity : 0, NIC_MAX_CQE);

	if (a->loads && !a->err)
		archive_fail(a, nic_cq_create(nic, capacity, NULL, &cq));
	if (a->err)
		return;
	archive_define(a, cq, KIND_CQ);
	archive_define(a, &cq->event, KIND_EVENTS);
	cq_archive(a, cq);
}

/* The domain of an SRQ, if it has one. */
static void domain_archive(struct archive *a, struct nic *nic, struct srq *srq)
{
	struct xrcd *xrcd = archive_refer(a, srq->xrcd, KIND_XRCD);
	struct cq *cq = archive_refer(a, srq->cq, KIND_CQ);
	uint32_t number = archive_count(a, srq->number, 0xffffff);

	if (archive_judge(a, !xrcd ? !cq : cq && number && (!a->loads || !xrc_srq_find(&nic->tp, number))) &&
	    a->loads && xrcd)
		srq_join(nic, srq, xrcd, cq, number);
}

static void srq_archive(struct archive *a, struct nic *nic, struct list *l)
{
	struct srq *srq = l ? &container_of(l, struct nic_srq, link)->srq : NULL;
	struct pd *pd = archive_refer(a, srq ? srq->pd : NULL, KIND_PD);
	struct srq_init init = {.max_wr = srq ? srq->rq.capacity : 0, .max_sge = srq ? srq->rq.max_sge : 0};

	ARCHIVE(a, &init, max_wr, max_sge);
	if (!archive_judge(a, pd && init.max_sge))
		return;
	if (a->loads)
		archive_fail(a, nic_srq_create(nic, pd, &init, &srq));
	if (a->err)
		return;
	archive_define(a, srq, KIND_SRQ);
	archive_define(a, &srq->event, KIND_EVENTS);
	ARCHIVE(a, srq, limit);
	ARCHIVE(a, &srq->event, pending);
	archive_owner(a, &srq->event.owner);
	archive_judge(a, srq->limit <= srq->rq.capacity);
	rq_archive(a, &srq->rq);
	domain_archive(a, nic, srq);
}

/* The objects of a list that grows at its end. */
static void list_archive(struct archive *a, struct nic *nic, struct list *head, enum record type,
			 void (*archive)(struct archive *, struct nic *, struct list *))
{
	uint32_t count = 0;

	for (struct list *l = head->next; l != head; l = l->next)
		count++;
	count = archive_count(a, count, UINT32_MAX);
	for (struct list *l = head; count && !a->err; count--) {
		l = l->next;
		archive_begin(a, (uint16_t)type, 1);
		archive(a, nic, a->loads ? NULL : l);
		archive_end(a);
		l = a->loads ? head : l;
	}
}

/* ---- QPs ------------------------------------------------------------------------------------------- */

/* The parts that it is made of. */
static void init_archive(struct archive *a, struct qp_init *init)
{
	uint32_t type = init->type;

	archive_bytes(a, &type, sizeof(type));
	init->type = (enum qp_type)type;
	ARCHIVE(a, &init->cap, max_send_wr, max_recv_wr, max_send_sge, max_recv_sge, max_inline);
	ARCHIVE(a, init, sq_sig_all);
	ARCHIVE_REF(a, init->pd, KIND_PD);
	ARCHIVE_REF(a, init->send_cq, KIND_CQ);
	ARCHIVE_REF(a, init->recv_cq, KIND_CQ);
	ARCHIVE_REF(a, init->srq, KIND_SRQ);
	ARCHIVE_REF(a, init->xrcd, KIND_XRCD);
}

/* Loading, makes it. NULL after an error. */
static struct qp *made(struct archive *a, struct nic *nic, struct qp *qp)
{
	struct qp_init init = {0};
	struct qp_attr attr;
	uint32_t qpn = qp ? qp->qpn : 0;

	if (qp) {
		nic_qp_query(nic, qp, &attr, &init);
		if (qp->ops->borrows)
			init = (struct qp_init){.type = init.type, .xrcd = qp->xrcd, .sq_sig_all = init.sq_sig_all};
	}
	archive_bytes(a, &qpn, sizeof(qpn));
	init_archive(a, &init);
	if (a->loads && archive_judge(a, qp_may_make(nic, &init) && qpn_is_free(nic, qpn)))
		archive_fail(a, qp_make(nic, &init, qpn, &qp));
	return a->err ? NULL : qp;
}

/* An XRC_RECV QP may have taken on an SRQ. */
static void borrowed_archive(struct archive *a, struct nic *nic, struct qp *qp)
{
	struct srq *srq = archive_refer(a, qp->srq, KIND_SRQ);

	if (a->loads && srq && archive_judge(a, srq->xrcd == qp->xrcd))
		xrc_assign(&nic->tp, qp, srq);
}

/* Each value is one that a program may set. */
static bool attributes_are_legal(const struct nic *nic, const struct qp *qp)
{
	struct qp_attr attr;
	struct qp_init init;

	nic_qp_query(nic, qp, &attr, &init);
	attr.port = 1;
	return !qp_judge_values(nic, &attr, QPA_KNOWN & ~(uint32_t)(QPA_CAP | QPA_ALT_PATH)) &&
	       (qp->rq_psn | qp->sq_psn) <= 0xffffff;
}

static void one_qp_archive(struct archive *a, struct nic *nic, struct qp *qp)
{
	qp = made(a, nic, qp);
	if (!qp)
		return;
	if (!nic_engine_of(nic, qp->type)->archive) {
		archive_fail(a, -EOPNOTSUPP);
		return;
	}
	archive_define(a, qp, KIND_QP);
	archive_define(a, &qp->sq, KIND_SQ);
	archive_define(a, &qp->user, KIND_USER);
	archive_define(a, &qp->event, KIND_EVENTS);
	qp_archive(a, qp);
	if (qp_rq(qp))
		rq_archive(a, qp->rq);
	if (qp->ops->borrows)
		borrowed_archive(a, nic, qp);
	if (!archive_judge(a, !a->loads || attributes_are_legal(nic, qp))) {
		qp->mtu = NIC_MTU_BYTES_MAX;
		return;
	}
	if (a->loads)
		qp_find_peer(nic, qp);
	nic_engine_of(nic, qp->type)->archive(a, &nic->tp, qp);
}

/* The QP that was entered n-th of those of a bucket; NULL: there are not as many. */
static struct qp *entered(struct qp *newest, uint32_t n)
{
	uint32_t count = 0;

	for (const struct qp *qp = newest; qp; qp = qp->table_next)
		count++;
	for (; newest && count > n + 1; count--)
		newest = newest->table_next;
	return count == n + 1 ? newest : NULL;
}

static void qps_archive(struct archive *a, struct nic *nic)
{
	uint32_t count = archive_count(a, nic->qp_count, NIC_MAX_QP), buckets = nic->qps_mask + 1, bucket = 0, n = 0;

	archive_bytes(a, &buckets, sizeof(buckets));
	archive_judge(a, buckets <= 1u << NIC_QPN_BITS);
	while (a->loads && !a->err && nic->qps_mask + 1 < buckets) {
		uint32_t before = nic->qps_mask;

		qp_table_grow(nic);
		archive_fail(a, nic->qps_mask == before ? -ENOMEM : 0);
	}
	archive_judge(a, nic->qps_mask + 1 == buckets);
	while (count && !a->err) {
		struct qp *qp = a->loads ? NULL : entered(nic->qps[bucket], n++);

		if (!a->loads && !qp) {
			bucket++;
			n = 0;
			continue;
		}
		archive_begin(a, RECORD_QP, 1);
		one_qp_archive(a, nic, qp);
		archive_end(a);
		count--;
	}
}

/* ---- the whole ----------------------------------------------------------------------------------------- */

static void nic_archive(struct archive *a, struct nic *nic)
{
	char build[BUILD_BYTES] = VERBENA_VERSION;
	uint64_t m = mark;
	uint32_t slot = nic->qpn_base, protocol = nic->tp.config.protocol;
	uint8_t bits = (uint8_t)nic->qpn_bits;
	bool no_payload = nic->tp.mrs.no_payload;

	archive_bytes(a, &m, sizeof(m));
	archive_bytes(a, build, sizeof(build));
	archive_bytes(a, &slot, sizeof(slot));
	archive_bytes(a, &bits, sizeof(bits));
	archive_bytes(a, &protocol, sizeof(protocol));
	archive_flag(a, &no_payload, sizeof(no_payload));
	archive_judge(a, m == mark && slot == nic->qpn_base && bits == nic->qpn_bits &&
				 protocol == nic->tp.config.protocol && no_payload == nic->tp.mrs.no_payload);
	ARCHIVE(a, nic, qpn_serial, srqn_serial);
	ARCHIVE_ARRAYS(a, nic, qpn_secret);
	transport_archive(a, &nic->tp);
	mr_table_archive(a, &nic->tp.mrs);
}

/* Doorbells that were not heard, newest first. */
static void doorbells_archive(struct archive *a, struct nic *nic)
{
	struct qp *qp = atomic_load_explicit(&nic->rung, memory_order_relaxed), *last = NULL;
	uint32_t count = 0;

	for (struct qp *i = qp; i; i = i->rung_next)
		count++;
	for (count = archive_count(a, count, NIC_MAX_QP); count && !a->err; count--) {
		ARCHIVE_REF(a, qp, KIND_QP);
		if (!archive_judge(a, qp && (!a->loads || !atomic_load_explicit(&qp->rung, memory_order_relaxed))))
			return;
		if (!a->loads) {
			qp = qp->rung_next;
			continue;
		}
		atomic_store_explicit(&qp->rung, true, memory_order_relaxed);
		if (last)
			last->rung_next = qp;
		else
			atomic_store_explicit(&nic->rung, qp, memory_order_relaxed);
		last = qp;
		qp = NULL;
	}
}

/* Everything that may name any object. */
static void waiting_archive(struct archive *a, struct nic *nic)
{
	doorbells_archive(a, nic);
	ARCHIVE(a, nic, pd_serial);
	transport_archive_waiting(a, &nic->tp);
	/* Others than objects of the nic may use a PD. */
	for (struct list *l = nic->pds.next; l != &nic->pds; l = l->next) {
		struct pd *pd = &container_of(l, struct nic_pd, link)->pd;
		uint32_t users = pd->users;

		ARCHIVE(a, pd, users);
		if (!archive_judge(a, pd->users >= users))
			pd->users = users;
	}
}

static void completions_archive(struct archive *a, struct nic *nic)
{
	for (struct list *l = nic->cqs.next; l != &nic->cqs && !a->err; l = l->next) {
		archive_begin(a, RECORD_COMPLETIONS, 1);
		cq_archive_entries(a, &container_of(l, struct nic_cq, link)->cq, KIND_SQ);
		archive_end(a);
	}
}

static void image_archive(struct archive *a, struct nic *nic)
{
	uint32_t mrs, mws;

	archive_begin(a, RECORD_NIC, 1);
	nic_archive(a, nic);
	archive_end(a);
	list_archive(a, nic, &nic->pds, RECORD_PD, pd_archive);
	list_archive(a, nic, &nic->xrcds, RECORD_XRCD, xrcd_archive);
	mrs = mr_archive_regions(a, &nic->tp.mrs, RECORD_REGION, KIND_PD);
	list_archive(a, nic, &nic->cqs, RECORD_CQ, one_cq_archive);
	list_archive(a, nic, &nic->srqs, RECORD_SRQ, srq_archive);
	transport_archive_pairs(a, &nic->tp, RECORD_PAIR);
	qps_archive(a, nic);
	mws = mr_archive_windows(a, &nic->tp.mrs, RECORD_WINDOW, KIND_PD, KIND_USER);
	if (a->loads) {
		nic->tp.counters.mrs = mrs;
		nic->tp.counters.mws = mws;
	}
	completions_archive(a, nic);
	mcast_archive(a, nic, RECORD_GROUP);
	gsi_archive(a, nic, RECORD_MAD);
	archive_begin(a, RECORD_WAITING, 1);
	waiting_archive(a, nic);
	archive_end(a);
}

/* Whether a process of this host may still read what a request or a response left out. */
static bool lends(struct nic *nic)
{
	if (nic_lends(nic))
		return true;
	for (uint32_t i = 0; i <= nic->qps_mask; i++) {
		for (const struct qp *qp = nic->qps[i]; qp; qp = qp->table_next) {
			const struct loan *loan = qp->peer->borrower.loan;

			if (loan && loan_is_out(loan, qp->lot))
				return true;
		}
	}
	return false;
}

int nic_save(struct nic *nic, uint64_t now_ns, struct nic_image *out)
{
	struct archive a;
	uint32_t crc;
	int err;

	if (nic->tp.config.protocol == PROTOCOL_IWARP)
		return -EOPNOTSUPP;
	if (lends(nic))
		return -EBUSY;
	archive_save(&a, &nic->tp.alloc, now_ns);
	image_archive(&a, nic);
	crc = a.err ? 0 : crc32_ieee(0, a.bytes, a.at);
	archive_bytes(&a, &crc, CRC_BYTES);
	err = a.err;
	if (!err) {
		*out = (struct nic_image){.alloc = nic->tp.alloc,
					  .bytes = a.bytes,
					  .size = a.at,
					  .room = a.size,
					  .owners = a.owners,
					  .owner_count = a.owner_count,
					  .owner_room = a.owner_room};
		a.bytes = NULL;
		a.owners = NULL;
	}
	archive_fini(&a);
	return err;
}

void nic_image_free(struct nic_image *image)
{
	alloc_put(&image->alloc, image->bytes, image->room);
	alloc_put(&image->alloc, image->owners, image->owner_room * sizeof(*image->owners));
	*image = (struct nic_image){0};
}

/* Whether a nic may be left alone with all that was loaded. */
static bool is_sound(const struct nic *nic)
{
	for (uint32_t i = 0; i <= nic->qps_mask; i++) {
		for (const struct qp *qp = nic->qps[i]; qp; qp = qp->table_next) {
			if (qp_fault(&nic->tp, qp))
				return false;
		}
	}
	return true;
}

int nic_load(const struct nic_config *config, const struct nic_image *image, uint64_t now_ns, struct nic **out)
{
	struct archive a;
	struct nic *nic;
	uint32_t crc;
	int err;

	if (config->transport.protocol == PROTOCOL_IWARP)
		return -EOPNOTSUPP;
	if (image->size < CRC_BYTES)
		return -EINVAL;
	memcpy(&crc, image->bytes + image->size - CRC_BYTES, CRC_BYTES);
	if (crc != crc32_ieee(0, image->bytes, image->size - CRC_BYTES))
		return -EINVAL;
	nic = nic_create(config);
	if (!nic)
		return -ENOMEM;
	archive_load(&a, &nic->tp.alloc, image->bytes, image->size - CRC_BYTES, image->owners, image->owner_count,
		     now_ns);
	image_archive(&a, nic);
	archive_judge(&a, a.at == a.size && a.owner_count == image->owner_count && is_sound(nic));
	err = a.err;
	archive_fini(&a);
	if (err)
		nic_destroy(nic);
	else
		*out = nic;
	return err;
}

size_t nic_objects(const struct nic *nic, enum nic_object kind, void **out, size_t max)
{
	const struct list *const lists[] = {
		[NIC_PD] = &nic->pds, [NIC_XRCD] = &nic->xrcds, [NIC_CQ] = &nic->cqs, [NIC_SRQ] = &nic->srqs};
	static const size_t before[] = {[NIC_PD] = offsetof(struct nic_pd, link) - offsetof(struct nic_pd, pd),
					[NIC_XRCD] = offsetof(struct nic_xrcd, link) - offsetof(struct nic_xrcd, xrcd),
					[NIC_CQ] = offsetof(struct nic_cq, link) - offsetof(struct nic_cq, cq),
					[NIC_SRQ] = offsetof(struct nic_srq, link) - offsetof(struct nic_srq, srq)};
	size_t n = 0;

	if (kind == NIC_QP) {
		for (uint32_t i = 0; i <= nic->qps_mask; i++) {
			for (struct qp *qp = nic->qps[i]; qp && n < max; qp = qp->table_next)
				out[n++] = qp;
		}
	} else if (kind == NIC_MR || kind == NIC_MW) {
		n = mr_objects(&nic->tp.mrs, kind == NIC_MW, out, max);
	} else {
		for (struct list *l = lists[kind]->next; l != lists[kind] && n < max; l = l->next)
			out[n++] = (uint8_t *)l - before[kind];
	}
	return n;
}
