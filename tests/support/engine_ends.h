/* SPDX-License-Identifier: BSD-2-Clause */
/* For tests of a running engine: queue pairs of one process that talk to each other, through the loopback address. */
#pragma once

#include <stdatomic.h>

#include "engine/engine.h"
#include "engine/state.h"
#include "support/test.h"

enum { DEPTH = 64, BYTES = 64 };

struct end {
	struct qp *qp;
	struct cq *cq;
};

struct pair {
	struct end a, b;
};

static struct engine *engine;
static struct nic *nic;
static struct pd *pd;
static struct mr *mr;
static uint8_t memory[2 * DEPTH * BYTES];
static uint32_t loopback_gid;
static _Atomic uint32_t cq_events;

static inline void on_cq(void *owner)
{
	atomic_fetch_add((_Atomic uint32_t *)owner, 1);
}

static inline void on_async(const struct async_event *ev)
{
}

static inline void on_port(struct engine *e, enum event_type type)
{
}

static inline void on_change(struct engine *e)
{
}

static const struct engine_sink sink = {
	.cq_event = on_cq, .async_event = on_async, .port_event = on_port, .port_changed = on_change};

static inline void connect_end(struct end *e, const struct end *peer)
{
	struct qp_attr attr = {
		.state = QPS_INIT,
		.port = 1,
		.access = MR_LOCAL_WRITE | MR_REMOTE_WRITE | MR_REMOTE_READ,
		.path_mtu_bytes = 1024,
		.dest_qpn = qp_number(peer->qp),
		.rq_psn = 7,
		.sq_psn = 7,
		.max_rd_atomic = 4,
		.max_dest_rd_atomic = 4,
		.min_rnr_timer = 12,
		.timeout = 14,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.av = {.is_global = 1, .port = 1, .hop_limit = 64, .sgid_index = (uint8_t)loopback_gid},
	};
	struct nic_gid gid;

	assert_int_equal(nic_gid(nic, loopback_gid, &gid), 0);
	memcpy(attr.av.dgid, gid.raw, sizeof(gid.raw));
	assert_int_equal(nic_qp_modify(nic, e->qp, &attr, QPA_STATE | QPA_PKEY_INDEX | QPA_PORT | QPA_ACCESS_FLAGS,
				       engine_now_ns(engine)),
			 0);
	attr.state = QPS_RTR;
	assert_int_equal(nic_qp_modify(nic, e->qp, &attr,
				       QPA_STATE | QPA_AV | QPA_PATH_MTU | QPA_DEST_QPN | QPA_RQ_PSN |
					       QPA_MAX_DEST_RD_ATOMIC | QPA_MIN_RNR_TIMER,
				       engine_now_ns(engine)),
			 0);
	attr.state = QPS_RTS;
	assert_int_equal(
		nic_qp_modify(nic, e->qp, &attr,
			      QPA_STATE | QPA_TIMEOUT | QPA_RETRY_CNT | QPA_RNR_RETRY | QPA_SQ_PSN | QPA_MAX_RD_ATOMIC,
			      engine_now_ns(engine)),
		0);
}

static inline void end_open(struct end *e)
{
	struct qp_init init = {
		.type = QPT_RC,
		.pd = pd,
		.cap = {.max_send_wr = DEPTH, .max_recv_wr = DEPTH, .max_send_sge = 1, .max_recv_sge = 1},
	};

	assert_int_equal(nic_cq_create(nic, 4 * DEPTH, (void *)&cq_events, &e->cq), 0);
	init.send_cq = init.recv_cq = e->cq;
	assert_int_equal(nic_qp_create(nic, &init, &e->qp), 0);
}

static inline void pair_open(struct pair *p)
{
	engine_lock(engine);
	end_open(&p->a);
	end_open(&p->b);
	connect_end(&p->a, &p->b);
	connect_end(&p->b, &p->a);
	engine_unlock(engine);
}

static inline void pair_close(struct pair *p)
{
	engine_lock(engine);
	nic_qp_destroy(nic, p->a.qp);
	nic_qp_destroy(nic, p->b.qp);
	assert_int_equal(nic_cq_destroy(nic, p->a.cq), 0);
	assert_int_equal(nic_cq_destroy(nic, p->b.cq), 0);
	engine_unlock(engine);
}

static inline void post_recv(struct end *e)
{
	struct recv_wqe *w = rq_slot(qp_rq(e->qp));

	assert_non_null(w);
	w->wr_id = 1;
	w->num_sge = 1;
	w->length = BYTES;
	w->sge[0] = (struct wqe_sge){(uintptr_t)memory, BYTES, mr->key};
	rq_post(qp_rq(e->qp), w);
}

/* False when the queue is full. */
static inline bool post_send(struct end *e, enum wr_opcode opcode)
{
	struct sq *sq = qp_sq(e->qp);
	struct send_wqe *w = sq_slot(sq, 0);

	if (!w)
		return false;
	memset(w, 0, sizeof(*w));
	w->wr_id = 2;
	w->opcode = opcode;
	w->flags = WR_SIGNALED;
	w->num_sge = 1;
	w->length = BYTES;
	w->rkey = mr->key;
	w->remote_va = (uintptr_t)memory + DEPTH * BYTES;
	w->sge[0] = (struct wqe_sge){(uintptr_t)memory, BYTES, mr->key};
	sq_post(sq, 1);
	engine_kick(engine, e->qp);
	return true;
}

static inline uint32_t reap(struct end *e)
{
	uint32_t n = cq_depth(e->cq);

	for (uint32_t i = 0; i < n; i++)
		assert_int_equal(cq_peek(e->cq, i)->status, WC_SUCCESS);
	cq_consume(e->cq, n);
	return n;
}

/* Starts the engine, whose settings and environment the test has chosen. 0 or -1. */
static inline int engine_ends_start(void)
{
	char why[512];
	struct engine_interface i;
	struct nic_gid gid;

	engine = engine_get(0, &sink, why, sizeof(why));
	if (!engine) {
		print_error("%s\n", why);
		return -1;
	}
	assert_ptr_equal(engine_get(0, &sink, why, sizeof(why)), engine);
	nic = engine_nic(engine);
	while (!engine_gid_interface(engine, loopback_gid, &i) &&
	       (nic_gid(nic, loopback_gid, &gid) || gid.raw[12] != 127))
		loopback_gid++;
	engine_lock(engine);
	assert_int_equal(nic_pd_alloc(nic, &pd), 0);
	assert_int_equal(nic_mr_reg(nic, pd, (struct mr_range){memory, sizeof(memory), (uintptr_t)memory},
				    MR_LOCAL_WRITE | MR_REMOTE_WRITE | MR_REMOTE_READ, &mr),
			 0);
	engine_unlock(engine);
	return 0;
}
