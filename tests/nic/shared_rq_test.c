/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared receive queues: one pool for many QPs, the limit event, the last WQE (IBTA 10.2.9, 10.2.9.2). */
#include <errno.h>

#include "duo/sim.h"

enum { PAIRS = 3, ROOM = 16 };

struct shared {
	struct duo *duo;
	struct srq *srq;
	struct duo_pair pair[PAIRS];
	struct duo_buf *abuf, *bbuf;
	int owner;
};

static struct shared *start(enum qp_type type)
{
	struct shared *x = calloc(1, sizeof(*x));
	struct duo_options o = duo_options();

	x->duo = duo_create(3, NULL);
	assert_int_equal(nic_srq_create(x->duo->host[DUO_B].nic, x->duo->host[DUO_B].pd,
					&(struct srq_init){.max_wr = ROOM, .max_sge = 2, .owner = &x->owner}, &x->srq),
			 0);
	o.type = type;
	o.srq[DUO_B] = x->srq;
	for (int i = 0; i < PAIRS; i++)
		x->pair[i] = duo_connect(x->duo, &o);
	x->abuf = duo_buf(&x->duo->host[DUO_A], 8192, ALL_ACCESS);
	x->bbuf = duo_buf(&x->duo->host[DUO_B], 8192, ALL_ACCESS);
	duo_fill(x->abuf, 1);
	return x;
}

static void stop(struct shared *x)
{
	duo_idle(x->duo);
	duo_destroy(x->duo);
	free(x);
}

static bool give(struct shared *x, uint64_t wr_id)
{
	struct sge sge = duo_sge(x->bbuf, wr_id % 8 * 1000, 1000);

	return duo_post_srq(x->srq, wr_id, &sge, 1);
}

static void send(struct shared *x, int pair, uint64_t wr_id)
{
	duo_must_post(x->pair[pair].a, duo_send_wr(wr_id, x->abuf, wr_id, 700));
}

static bool limit_event(const struct shared *x)
{
	return duo_had_event(&x->duo->host[DUO_B], EVENT_SRQ_LIMIT_REACHED, (void *)&x->owner);
}

TEST(wqes_go_to_whoever_comes_first)
{
	static const enum qp_type types[] = {QPT_RC, QPT_UC};

	for (size_t t = 0; t < COUNT(types); t++) {
		struct shared *x = start(types[t]);

		assert_null(qp_rq(x->pair[0].b->qp));
		for (uint64_t round = 0; round < 10; round++) {
			for (uint64_t i = 0; i < 6; i++)
				assert_true(give(x, i));
			for (uint64_t i = 0; i < 6; i++) {
				send(x, (int)(i * 5 % PAIRS), i);
				duo_idle(x->duo);
				struct duo_pair *p = &x->pair[i * 5 % PAIRS];

				duo_expect(x->duo, &p->a->sent, i, WC_SUCCESS);
				assert_int_equal(duo_expect(x->duo, &p->b->received, i, WC_SUCCESS)->qpn, p->b->qpn);
				assert_memory_equal(x->bbuf->p + i % 8 * 1000, x->abuf->p + i, 700);
			}
		}
		stop(x);
	}
}

TEST(full_queue_takes_no_more)
{
	struct shared *x = start(QPT_RC);

	for (uint64_t i = 0; i < ROOM; i++)
		assert_true(give(x, i));
	assert_false(give(x, 0));
	send(x, 0, 0);
	duo_idle(x->duo);
	assert_true(give(x, 0));
	assert_false(give(x, 0));
	stop(x);
}

TEST(empty_queue_is_not_ready)
{
	struct shared *x = start(QPT_RC);

	send(x, 1, 1);
	duo_run_for(x->duo, 10 * DUO_LATENCY_NS);
	assert_int_equal(nic_counters(x->duo->host[DUO_B].nic)->rnrs_sent, 1);
	assert_true(give(x, 5));
	duo_idle(x->duo);
	duo_expect(x->duo, &x->pair[1].a->sent, 1, WC_SUCCESS);
	duo_expect(x->duo, &x->pair[1].b->received, 5, WC_SUCCESS);
	stop(x);
}

/* Armed once: it fires when fewer than the limit are left, and not again until armed again. */
TEST(limit_fires_once_when_crossed)
{
	struct shared *x = start(QPT_RC);
	struct nic *nic = x->duo->host[DUO_B].nic;

	for (uint64_t i = 0; i < 10; i++)
		assert_true(give(x, i));
	assert_int_equal(nic_srq_set_limit(nic, x->srq, ROOM + 1), -EINVAL);
	assert_int_equal(nic_srq_set_limit(nic, x->srq, 8), 0);
	duo_idle(x->duo);
	assert_false(limit_event(x));
	for (uint64_t i = 0; i < 2; i++) {
		send(x, 0, i);
		duo_idle(x->duo);
		assert_false(limit_event(x)); /* 9, 8 left */
	}
	send(x, 0, 2);
	duo_idle(x->duo);
	assert_true(limit_event(x));
	x->duo->host[DUO_B].event_count = 0;
	for (uint64_t i = 3; i < 6; i++)
		send(x, 0, i);
	duo_idle(x->duo);
	assert_false(limit_event(x));
	assert_int_equal(nic_srq_set_limit(nic, x->srq, 5), 0); /* 4 left: at once */
	duo_idle(x->duo);
	assert_true(limit_event(x));
	stop(x);
}

/* Of an SRQ only the WQEs that the QP holds are flushed; the rest stays for the others. */
TEST(error_of_one_qp_leaves_the_queue_to_the_others)
{
	struct shared *x = start(QPT_RC);
	struct duo_wr w = duo_send_wr(1, x->abuf, 0, 700);

	for (uint64_t i = 0; i < 4; i++)
		assert_true(give(x, i));
	w.sge[0].len = 1500; /* too long, but its first packet takes a WQE */
	assert_true(duo_post(x->pair[0].a, &w));
	duo_idle(x->duo);
	duo_expect(x->duo, &x->pair[0].a->sent, 1, WC_REM_INV_REQ_ERR);
	duo_expect(x->duo, &x->pair[0].b->received, 0, WC_LOC_LEN_ERR);
	assert_int_equal(x->pair[0].b->received.n, 1);
	assert_true(duo_had_event(&x->duo->host[DUO_B], EVENT_QP_LAST_WQE_REACHED, x->pair[0].b));
	assert_int_equal(rq_posted(&x->srq->rq), 3);
	send(x, 1, 2);
	duo_idle(x->duo);
	duo_expect(x->duo, &x->pair[1].a->sent, 2, WC_SUCCESS);
	duo_expect(x->duo, &x->pair[1].b->received, 1, WC_SUCCESS);
	stop(x);
}

/* IBTA 11.6.3: every way into the error state ends with that event, after the last completion. */
TEST(last_wqe_event_comes_with_the_error_state)
{
	struct shared *x = start(QPT_RC);

	assert_true(give(x, 1));
	assert_int_equal(duo_qp_to_state(x->pair[2].b, QPS_ERR), 0);
	duo_idle(x->duo);
	assert_true(duo_had_event(&x->duo->host[DUO_B], EVENT_QP_LAST_WQE_REACHED, x->pair[2].b));
	assert_false(duo_had_event(&x->duo->host[DUO_B], EVENT_QP_LAST_WQE_REACHED, x->pair[1].b));
	assert_int_equal(x->pair[2].b->received.n, 0);
	assert_int_equal(rq_posted(&x->srq->rq), 1);
	stop(x);
}

/* A WQE that a half received message holds comes back when its QP is reset. */
TEST(reset_gives_back_what_it_held)
{
	struct shared *x = start(QPT_RC);
	struct sge sge = duo_sge(x->bbuf, 0, 4000);

	for (uint64_t i = 0; i < ROOM; i++)
		assert_true(duo_post_srq(x->srq, i, &sge, 1));
	duo_rule(x->duo, (struct duo_rule){.from = DUO_A, .opcode = OP_RC_SEND_LAST, .nth = DUO_ANY, .fate = DUO_DROP});
	duo_must_post(x->pair[0].a, duo_send_wr(1, x->abuf, 0, 3000));
	duo_run_for(x->duo, 10 * DUO_LATENCY_NS);
	assert_int_equal(rq_posted(&x->srq->rq), ROOM - 1);
	assert_false(duo_post_srq(x->srq, 0, &sge, 1));
	assert_int_equal(duo_qp_to_state(x->pair[0].b, QPS_RESET), 0);
	assert_true(duo_post_srq(x->srq, 0, &sge, 1) || rq_posted(&x->srq->rq) == ROOM);
	stop(x);
}

TEST(queue_in_use_cannot_be_destroyed)
{
	struct shared *x = start(QPT_RC);
	struct nic *nic = x->duo->host[DUO_B].nic;
	struct srq *own;

	assert_int_equal(nic_srq_destroy(nic, x->srq), -EBUSY);
	assert_int_equal(
		nic_srq_create(nic, x->duo->host[DUO_B].pd, &(struct srq_init){.max_wr = 4, .max_sge = 1}, &own), 0);
	assert_int_equal(nic_srq_destroy(nic, own), 0);
	assert_int_equal(nic_srq_create(nic, x->duo->host[DUO_B].pd,
					&(struct srq_init){.max_wr = NIC_MAX_SRQ_WR + 1, .max_sge = 1}, &own),
			 -EINVAL);
	assert_int_equal(nic_srq_create(nic, x->duo->host[DUO_B].pd,
					&(struct srq_init){.max_wr = 4, .max_sge = NIC_MAX_SGE + 1}, &own),
			 -EINVAL);
	stop(x);
}

/* ---- memory of the SRQ's protection domain, not of the QP's ---------- */

enum { CARRIERS = 4, GRH_BYTES = 40, QKEY = 0x11111111 };

static void speak_veroce(struct nic_config *c, enum duo_side side)
{
	c->transport.protocol = PROTOCOL_VEROCE;
}

static const struct carrier {
	enum qp_type type;
	void (*tweak)(struct nic_config *, enum duo_side);
	uint32_t ahead; /* bytes before the payload */
} carriers[CARRIERS] = {
	{QPT_RC, NULL, 0},
	{QPT_RC, speak_veroce, 0},
	{QPT_UC, NULL, 0},
	{QPT_UD, NULL, GRH_BYTES},
};

struct foreign {
	struct duo *duo;
	struct pd *pd; /* the SRQ's; QPs have the host's */
	struct srq *srq;
	struct duo_pair pair;
	struct duo_buf *from;
	struct mr *mr;
	uint8_t *to;
	struct flow flow;
};

enum { FOREIGN_BYTES = 3000, FOREIGN_ROOM = 4096 };

static void foreign_start(struct foreign *f, const struct carrier *c, bool of_srq)
{
	struct duo_options o = duo_options();
	struct duo_host *b;

	*f = (struct foreign){.duo = duo_create(5, c->tweak), .to = calloc(1, FOREIGN_ROOM)};
	b = &f->duo->host[DUO_B];
	assert_int_equal(nic_pd_alloc(b->nic, &f->pd), 0);
	assert_int_equal(nic_srq_create(b->nic, f->pd, &(struct srq_init){.max_wr = ROOM, .max_sge = 2}, &f->srq), 0);
	o.type = c->type;
	o.qkey = QKEY;
	o.srq[DUO_B] = f->srq;
	f->pair = duo_connect(f->duo, &o);
	f->from = duo_buf(&f->duo->host[DUO_A], FOREIGN_BYTES, ALL_ACCESS);
	duo_fill(f->from, 1);
	assert_int_equal(nic_mr_reg(b->nic, of_srq ? f->pd : b->pd, (struct mr_range){f->to, FOREIGN_ROOM, 0x1000},
				    MR_LOCAL_WRITE, &f->mr),
			 0);
}

static void foreign_send(struct foreign *f, const struct carrier *c)
{
	struct sge sge = {.addr = 0x1000, .len = FOREIGN_ROOM, .lkey = f->mr->key};
	struct duo_wr w = duo_send_wr(1, f->from, 0, FOREIGN_BYTES);
	struct ah_attr av = duo_av(f->pair.a->host, f->pair.b->host, DUO_GID_IPV4);
	uint32_t ip_mtu;

	assert_int_equal(nic_resolve(f->pair.a->host->nic, &av, &f->flow, &ip_mtu), 0);
	if (c->type == QPT_UD) {
		w.flow = &f->flow;
		w.dqpn = f->pair.b->qpn;
		w.qkey = QKEY;
	}
	assert_true(duo_post_srq(f->srq, 7, &sge, 1));
	assert_true(duo_post(f->pair.a, &w));
	duo_idle(f->duo);
}

static void foreign_stop(struct foreign *f)
{
	struct nic *nic = f->pair.b->host->nic;

	duo_qp_destroy(f->pair.b);
	nic_mr_dereg(nic, f->mr);
	assert_int_equal(nic_srq_destroy(nic, f->srq), 0);
	assert_int_equal(nic_pd_free(nic, f->pd), 0);
	duo_destroy(f->duo);
	free(f->to);
}

TEST(receives_go_to_memory_of_the_queues_domain)
{
	for (size_t i = 0; i < CARRIERS; i++) {
		struct foreign f;

		foreign_start(&f, &carriers[i], true);
		foreign_send(&f, &carriers[i]);
		duo_expect(f.duo, &f.pair.b->received, 7, WC_SUCCESS);
		assert_memory_equal(f.to + carriers[i].ahead, f.from->p, FOREIGN_BYTES);
		foreign_stop(&f);
	}
}

TEST(memory_of_the_qps_domain_is_not_the_queues)
{
	static const uint8_t untouched[FOREIGN_ROOM];

	for (size_t i = 0; i < CARRIERS; i++) {
		struct foreign f;

		foreign_start(&f, &carriers[i], false);
		foreign_send(&f, &carriers[i]);
		duo_expect(f.duo, &f.pair.b->received, 7, WC_LOC_PROT_ERR);
		assert_memory_equal(f.to, untouched, FOREIGN_ROOM);
		foreign_stop(&f);
	}
}
