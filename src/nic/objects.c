/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Protection domains, memory regions, completion queues, shared receive queues: creation and
 * destruction.
 */
#include <errno.h>

#include "base/siphash.h"
#include "nic/state.h"
#include "transport/xrc.h"

int nic_pd_alloc(struct nic *nic, struct pd **out)
{
	struct nic_pd *p;

	if (nic->tp.counters.pds >= NIC_MAX_PD)
		return -ENOMEM;
	p = alloc_get(&nic->tp.alloc, sizeof(*p));
	if (!p)
		return -ENOMEM;
	p->pd.handle = nic->pd_serial++;
	list_append(&nic->pds, &p->link);
	nic->tp.counters.pds++;
	*out = &p->pd;
	return 0;
}

int nic_pd_free(struct nic *nic, struct pd *pd)
{
	struct nic_pd *p = container_of(pd, struct nic_pd, pd);

	if (pd->users)
		return -EBUSY;
	list_remove(&p->link);
	alloc_put(&nic->tp.alloc, p, sizeof(*p));
	nic->tp.counters.pds--;
	return 0;
}

static uint64_t bytes_of(const struct mr *mr)
{
	return mr->extent == MR_RANGE ? mr->length : 0;
}

int nic_mr_reg(struct nic *nic, struct pd *pd, struct mr_range range, uint32_t access, struct mr **out)
{
	int err;

	if (nic->tp.counters.mrs >= NIC_MAX_MR)
		return -ENOMEM;
	err = mr_create(&nic->tp.mrs, pd, range, access, out);
	if (err)
		return err;
	nic->tp.counters.mrs++;
	nic->tp.counters.mr_bytes += bytes_of(*out);
	return 0;
}

int nic_mr_reg_nothing(struct nic *nic, struct pd *pd, struct mr **out)
{
	int err = nic->tp.counters.mrs < NIC_MAX_MR ? mr_create_nothing(&nic->tp.mrs, pd, out) : -ENOMEM;

	if (!err)
		nic->tp.counters.mrs++;
	return err;
}

int nic_mr_rereg(struct nic *nic, struct mr *mr, struct pd *pd, void *addr, uint64_t length, int64_t access)
{
	uint8_t *new_addr = addr ? addr : mr->addr;
	uint64_t new_length = addr ? length : mr->length;
	uint32_t new_access = access >= 0 ? (uint32_t)access : mr->access;
	uint64_t new_iova = !addr ? mr->iova : new_access & MR_ZERO_BASED ? 0 : (uintptr_t)addr;
	bool moves = new_addr != mr->addr || new_length != mr->length || new_iova != mr->iova;
	int err = mr_validate(new_addr, new_length, new_iova, new_access);

	if (!err && nic->tp.mrs.no_payload && new_access & MR_REMOTE_ATOMIC)
		err = -EINVAL;
	/* One without bounds stays that. */
	if (!err && mr->extent != MR_RANGE && (addr || !(new_access & MR_ON_DEMAND)))
		err = -EINVAL;
	if (!err && mr->windows)
		err = -EBUSY;
	if (err)
		return err;
	mr_take_back(&nic->tp.mrs, mr);
	if (pd) {
		mr->pd->users--;
		pd->users++;
		mr->pd = pd;
	}
	nic->tp.counters.mr_bytes -= bytes_of(mr);
	mr->addr = new_addr;
	mr->length = new_length;
	nic->tp.counters.mr_bytes += bytes_of(mr);
	mr->iova = new_iova;
	mr->access = new_access;
	if (moves)
		mr_rekey(&nic->tp.mrs, mr);
	return 0;
}

int nic_mr_dereg(struct nic *nic, struct mr *mr)
{
	if (mr->windows)
		return -EBUSY;
	nic->tp.counters.mrs--;
	nic->tp.counters.mr_bytes -= bytes_of(mr);
	mr_destroy(&nic->tp.mrs, mr);
	return 0;
}

struct mr *nic_mr_find(const struct nic *nic, uint32_t key)
{
	struct mr *mr = mr_find(&nic->tp.mrs, key);

	return mr && mr->kind == MR_REGION ? mr : NULL;
}

uint8_t *nic_mr_reach(const struct nic *nic, const struct mr *mr, uint64_t va, uint64_t len)
{
	return mr_check(&nic->tp.mrs, mr->key, mr->pd, va, len, 0);
}

void nic_mr_unbind(struct nic *nic, struct mr *mr)
{
	mw_unbind_all(&nic->tp.mrs, mr);
}

int nic_mw_alloc(struct nic *nic, struct pd *pd, enum mw_type type, struct mw **out)
{
	int err;

	if (nic->tp.counters.mws >= NIC_MAX_MW)
		return -ENOMEM;
	err = mw_create(&nic->tp.mrs, pd, type, out);
	if (!err)
		nic->tp.counters.mws++;
	return err;
}

void nic_mw_free(struct nic *nic, struct mw *mw)
{
	nic->tp.counters.mws--;
	mw_destroy(&nic->tp.mrs, mw);
}

uint32_t nic_mw_draw_key(struct nic *nic)
{
	return mw_draw_key(&nic->tp.mrs);
}

int nic_cq_create(struct nic *nic, uint32_t cqe, void *owner, struct cq **out)
{
	struct nic_cq *c;
	int err;

	if (!cqe || cqe > NIC_MAX_CQE)
		return -EINVAL;
	if (nic->tp.counters.cqs >= NIC_MAX_CQ)
		return -ENOMEM;
	c = alloc_get(&nic->tp.alloc, sizeof(*c));
	if (!c)
		return -ENOMEM;
	err = cq_init(&c->cq, &nic->tp.alloc, cqe, owner);
	if (err) {
		alloc_put(&nic->tp.alloc, c, sizeof(*c));
		return err;
	}
	list_init(&c->cq.fired);
	list_init(&c->cq.event.link);
	c->cq.event.owner = owner;
	list_append(&nic->cqs, &c->link);
	nic->tp.counters.cqs++;
	*out = &c->cq;
	return 0;
}

int nic_cq_resize(struct nic *nic, struct cq *cq, uint32_t cqe)
{
	if (!cqe || cqe > NIC_MAX_CQE)
		return -EINVAL;
	return cq_resize(cq, &nic->tp.alloc, cqe);
}

int nic_cq_destroy(struct nic *nic, struct cq *cq)
{
	struct nic_cq *c = container_of(cq, struct nic_cq, cq);

	if (cq->users)
		return -EBUSY;
	list_remove(&cq->fired);
	list_remove(&cq->event.link);
	list_remove(&c->link);
	cq_fini(cq, &nic->tp.alloc);
	alloc_put(&nic->tp.alloc, c, sizeof(*c));
	nic->tp.counters.cqs--;
	return 0;
}

int nic_xrcd_alloc(struct nic *nic, struct xrcd **out)
{
	struct nic_xrcd *x = alloc_get(&nic->tp.alloc, sizeof(*x));

	if (!x)
		return -ENOMEM;
	list_append(&nic->xrcds, &x->link);
	*out = &x->xrcd;
	return 0;
}

int nic_xrcd_free(struct nic *nic, struct xrcd *xrcd)
{
	struct nic_xrcd *x = container_of(xrcd, struct nic_xrcd, xrcd);

	if (xrcd->users)
		return -EBUSY;
	list_remove(&x->link);
	alloc_put(&nic->tp.alloc, x, sizeof(*x));
	return 0;
}

void srq_join(struct nic *nic, struct srq *srq, struct xrcd *xrcd, struct cq *cq, uint32_t number)
{
	srq->number = number;
	srq->xrcd = xrcd;
	srq->cq = cq;
	xrcd->users++;
	cq->users++;
	xrc_srq_add(&nic->tp, srq);
}

/* Peers learn the number from the program alone, so it is not to be guessed. */
static void enter_domain(struct nic *nic, struct srq *srq, const struct srq_init *init)
{
	uint32_t number;

	do
		number = (uint32_t)siphash_u64(nic->qpn_secret, ~nic->srqn_serial++) & 0xffffff;
	while (!number || xrc_srq_find(&nic->tp, number));
	srq_join(nic, srq, init->xrcd, init->cq, number);
}

static void leave_domain(struct nic *nic, struct srq *srq)
{
	xrc_srq_remove(&nic->tp, srq);
	for (uint32_t i = 0; i <= nic->qps_mask; i++)
		for (struct qp *qp = nic->qps[i]; qp; qp = qp->table_next)
			xrc_let_go(&nic->tp, qp, srq);
	srq->xrcd->users--;
	srq->cq->users--;
}

int nic_srq_create(struct nic *nic, struct pd *pd, const struct srq_init *init, struct srq **out)
{
	struct nic_srq *s;
	int err;

	if (!init->max_wr || init->max_wr > NIC_MAX_SRQ_WR || init->max_sge > NIC_MAX_SGE || init->limit > init->max_wr)
		return -EINVAL;
	if (nic->tp.counters.srqs >= NIC_MAX_SRQ)
		return -ENOMEM;
	s = alloc_get(&nic->tp.alloc, sizeof(*s));
	if (!s)
		return -ENOMEM;
	err = rq_init(&s->srq.rq, &nic->tp.alloc, init->max_wr, init->max_sge ? init->max_sge : 1);
	if (err) {
		alloc_put(&nic->tp.alloc, s, sizeof(*s));
		return err;
	}
	s->srq.pd = pd;
	if (init->xrcd)
		enter_domain(nic, &s->srq, init);
	s->srq.limit = init->limit;
	list_init(&s->srq.event.link);
	s->srq.event.owner = init->owner;
	list_append(&nic->srqs, &s->link);
	pd->users++;
	nic->tp.counters.srqs++;
	*out = &s->srq;
	return 0;
}

int nic_srq_set_limit(struct nic *nic, struct srq *srq, uint32_t limit)
{
	if (limit > srq->rq.capacity)
		return -EINVAL;
	srq->limit = limit;
	if (limit && rq_posted(&srq->rq) < limit) {
		srq->limit = 0;
		event_raise(&nic->tp.events, &srq->event, EVENT_SRQ_LIMIT_REACHED);
	}
	return 0;
}

int nic_srq_resize(struct nic *nic, struct srq *srq, uint32_t max_wr, uint32_t limit)
{
	if (!max_wr || max_wr > NIC_MAX_SRQ_WR || max_wr < limit)
		return -EINVAL;
	return rq_resize(&srq->rq, &nic->tp.alloc, max_wr, &srq->before);
}

int nic_srq_destroy(struct nic *nic, struct srq *srq)
{
	struct nic_srq *s = container_of(srq, struct nic_srq, srq);

	if (srq->users)
		return -EBUSY;
	if (srq->xrcd)
		leave_domain(nic, srq);
	list_remove(&srq->event.link);
	list_remove(&s->link);
	srq->pd->users--;
	rq_fini(&srq->rq, &nic->tp.alloc);
	rq_slots_free(&srq->before, &nic->tp.alloc);
	alloc_put(&nic->tp.alloc, s, sizeof(*s));
	nic->tp.counters.srqs--;
	return 0;
}
