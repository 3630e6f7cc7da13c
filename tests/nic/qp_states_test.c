/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The QP life cycle: the legal moves, what each requires and forbids (IBTA 10.3.1, 11.2.5.2), and
 * draining.
 */
#include "duo/sim.h"

static const enum qp_type types[] = {QPT_RC, QPT_UC, QPT_UD};

/* The spec's table once more, written from its text and not from the code. */
struct move {
	enum qp_type type;
	enum qp_state from, to;
	uint32_t required, optional;
};

static const struct move moves[] = {
	{QPT_RC, QPS_RESET, QPS_INIT, QPA_PKEY_INDEX | QPA_PORT | QPA_ACCESS_FLAGS, 0},
	{QPT_UC, QPS_RESET, QPS_INIT, QPA_PKEY_INDEX | QPA_PORT | QPA_ACCESS_FLAGS, 0},
	{QPT_UD, QPS_RESET, QPS_INIT, QPA_PKEY_INDEX | QPA_PORT | QPA_QKEY, 0},
	{QPT_RC, QPS_INIT, QPS_INIT, 0, QPA_PKEY_INDEX | QPA_PORT | QPA_ACCESS_FLAGS},
	{QPT_UC, QPS_INIT, QPS_INIT, 0, QPA_PKEY_INDEX | QPA_PORT | QPA_ACCESS_FLAGS},
	{QPT_UD, QPS_INIT, QPS_INIT, 0, QPA_PKEY_INDEX | QPA_PORT | QPA_QKEY},
	{QPT_RC, QPS_INIT, QPS_RTR,
	 QPA_AV | QPA_PATH_MTU | QPA_DEST_QPN | QPA_RQ_PSN | QPA_MAX_DEST_RD_ATOMIC | QPA_MIN_RNR_TIMER,
	 QPA_ALT_PATH | QPA_ACCESS_FLAGS | QPA_PKEY_INDEX},
	{QPT_UC, QPS_INIT, QPS_RTR, QPA_AV | QPA_PATH_MTU | QPA_DEST_QPN | QPA_RQ_PSN,
	 QPA_ALT_PATH | QPA_ACCESS_FLAGS | QPA_PKEY_INDEX},
	{QPT_UD, QPS_INIT, QPS_RTR, 0, QPA_PKEY_INDEX | QPA_QKEY},
	{QPT_RC, QPS_RTR, QPS_RTS, QPA_SQ_PSN | QPA_TIMEOUT | QPA_RETRY_CNT | QPA_RNR_RETRY | QPA_MAX_RD_ATOMIC,
	 QPA_CUR_STATE | QPA_ALT_PATH | QPA_ACCESS_FLAGS | QPA_MIN_RNR_TIMER | QPA_PATH_MIG_STATE},
	{QPT_UC, QPS_RTR, QPS_RTS, QPA_SQ_PSN, QPA_CUR_STATE | QPA_ALT_PATH | QPA_ACCESS_FLAGS | QPA_PATH_MIG_STATE},
	{QPT_UD, QPS_RTR, QPS_RTS, QPA_SQ_PSN, QPA_CUR_STATE | QPA_QKEY},
	{QPT_RC, QPS_RTS, QPS_RTS, 0,
	 QPA_CUR_STATE | QPA_ALT_PATH | QPA_ACCESS_FLAGS | QPA_MIN_RNR_TIMER | QPA_PATH_MIG_STATE},
	{QPT_UC, QPS_RTS, QPS_RTS, 0, QPA_CUR_STATE | QPA_ALT_PATH | QPA_ACCESS_FLAGS | QPA_PATH_MIG_STATE},
	{QPT_UD, QPS_RTS, QPS_RTS, 0, QPA_CUR_STATE | QPA_QKEY},
	{QPT_RC, QPS_RTS, QPS_SQD, 0, QPA_EN_SQD_ASYNC_NOTIFY},
	{QPT_UC, QPS_RTS, QPS_SQD, 0, QPA_EN_SQD_ASYNC_NOTIFY},
	{QPT_UD, QPS_RTS, QPS_SQD, 0, QPA_EN_SQD_ASYNC_NOTIFY},
	{QPT_RC, QPS_SQD, QPS_RTS, 0,
	 QPA_CUR_STATE | QPA_ALT_PATH | QPA_ACCESS_FLAGS | QPA_MIN_RNR_TIMER | QPA_PATH_MIG_STATE},
	{QPT_UC, QPS_SQD, QPS_RTS, 0, QPA_CUR_STATE | QPA_ALT_PATH | QPA_ACCESS_FLAGS | QPA_PATH_MIG_STATE},
	{QPT_UD, QPS_SQD, QPS_RTS, 0, QPA_CUR_STATE | QPA_QKEY},
	{QPT_RC, QPS_SQD, QPS_SQD, 0,
	 QPA_AV | QPA_ALT_PATH | QPA_ACCESS_FLAGS | QPA_PKEY_INDEX | QPA_PATH_MIG_STATE | QPA_PORT | QPA_TIMEOUT |
		 QPA_RETRY_CNT | QPA_RNR_RETRY | QPA_MAX_RD_ATOMIC | QPA_MAX_DEST_RD_ATOMIC | QPA_MIN_RNR_TIMER},
	{QPT_UC, QPS_SQD, QPS_SQD, 0, QPA_AV | QPA_ALT_PATH | QPA_ACCESS_FLAGS | QPA_PKEY_INDEX | QPA_PATH_MIG_STATE},
	{QPT_UD, QPS_SQD, QPS_SQD, 0, QPA_PKEY_INDEX | QPA_QKEY},
	{QPT_UC, QPS_SQE, QPS_RTS, 0, QPA_CUR_STATE | QPA_ACCESS_FLAGS},
	{QPT_UD, QPS_SQE, QPS_RTS, 0, QPA_CUR_STATE | QPA_QKEY},
};

static const struct move *find_move(enum qp_type type, enum qp_state from, enum qp_state to)
{
	for (size_t i = 0; i < COUNT(moves); i++) {
		if (moves[i].type == type && moves[i].from == from && moves[i].to == to)
			return &moves[i];
	}
	return NULL;
}

struct lone {
	struct sim s;
	struct duo_qp *qp;
};

/* A QP led into that state by the shortest way; false: its type has no such state. */
static bool lead(struct lone *l, enum qp_type type, enum qp_state state)
{
	struct duo_options o = duo_options();

	if (state == QPS_SQE && type == QPT_RC)
		return false;
	o.type = type;
	l->s = sim_start(&o);
	l->qp = l->s.a;
	if (state == QPS_SQD || state == QPS_ERR || state == QPS_RESET) {
		assert_int_equal(duo_qp_to_state(l->qp, state), 0);
	} else if (state == QPS_SQE) {
		struct duo_wr w = duo_send_wr(1, l->s.abuf, 0, 10);

		w.sge[0].lkey = 0;
		assert_true(duo_post(l->qp, &w));
		duo_run_for(l->s.duo, 10);
		l->qp->sent.taken = 1;
	} else if (state != QPS_RTS) {
		assert_int_equal(duo_qp_to_state(l->qp, QPS_RESET), 0);
		assert_int_equal(duo_qp_to_init(l->qp), 0);
		if (state == QPS_RTR)
			assert_int_equal(duo_qp_to_rtr(l->qp, l->s.b), 0);
	}
	assert_int_equal(qp_state(l->qp->qp), state);
	return true;
}

/* Every attribute with a value that is right. */
static struct qp_attr right(const struct lone *l, enum qp_state from, enum qp_state to)
{
	return (struct qp_attr){
		.state = to,
		.cur_state = from,
		.path_mtu_bytes = 1024,
		.qkey = 5,
		.rq_psn = 7,
		.sq_psn = 8,
		.dest_qpn = l->s.b->qpn,
		.access = MR_REMOTE_READ,
		.av = duo_av(l->s.a->host, l->s.b->host, DUO_GID_IPV4),
		.max_rd_atomic = 3,
		.max_dest_rd_atomic = 4,
		.min_rnr_timer = 9,
		.port = 1,
		.timeout = 11,
		.retry_cnt = 5,
		.rnr_retry = 6,
	};
}

static int modify(struct lone *l, const struct qp_attr *a, uint32_t mask)
{
	return nic_qp_modify(l->qp->host->nic, l->qp->qp, a, mask, l->s.duo->now_ns);
}

static int try_move(enum qp_type type, enum qp_state from, enum qp_state to, uint32_t mask)
{
	struct lone l;

	if (!lead(&l, type, from))
		return 1;
	struct qp_attr a = right(&l, from, to);
	int err = modify(&l, &a, QPA_STATE | mask);

	assert_int_equal(qp_state(l.qp->qp), err ? from : to);
	duo_idle(l.s.duo);
	l.qp->received.taken = l.qp->received.n;
	sim_end(&l.s);
	return err;
}

TEST(legal_moves_are_those_of_the_spec)
{
	for (size_t t = 0; t < COUNT(types); t++) {
		for (int from = QPS_RESET; from < QPS_COUNT; from++) {
			for (int to = QPS_RESET; to < QPS_COUNT; to++) {
				const struct move *m = find_move(types[t], from, to);
				bool legal = m || to == QPS_RESET || to == QPS_ERR;
				int err = try_move(types[t], from, to, m ? m->required : 0);

				if (err != 1 && !err != legal)
					fail_msg("type %d from %d to %d: %d", types[t], from, to, err);
			}
		}
	}
}

TEST(every_required_attribute_is_required)
{
	for (size_t i = 0; i < COUNT(moves); i++) {
		const struct move *m = &moves[i];

		for (uint32_t bit = 1; bit < QPA_KNOWN; bit <<= 1) {
			if (m->required & bit)
				assert_true(try_move(m->type, m->from, m->to, m->required & ~bit) < 0);
		}
	}
}

/* ALT_PATH and a migration that is not there are legal by the table but not offered. */
TEST(only_optional_attributes_may_be_added)
{
	for (size_t i = 0; i < COUNT(moves); i++) {
		const struct move *m = &moves[i];

		for (uint32_t bit = 2; bit <= QPA_KNOWN + 1u; bit <<= 1) {
			int err = try_move(m->type, m->from, m->to, m->required | bit);
			bool allowed = (m->required | m->optional) & bit;

			if (bit != QPA_ALT_PATH && !err != allowed)
				fail_msg("type %d from %d to %d attribute %#x: %d", m->type, m->from, m->to, bit, err);
		}
	}
}

/* With one wrong value the modify changes nothing. */
TEST(wrong_values_change_nothing)
{
	struct lone l;

	for (int which = 0; which < 14; which++) {
		assert_true(lead(&l, QPT_RC, QPS_INIT));
		struct qp_attr a = right(&l, QPS_INIT, QPS_RTR), before, after;
		struct qp_init init;
		uint32_t mask = find_move(QPT_RC, QPS_INIT, QPS_RTR)->required | QPA_STATE;

		switch (which) {
		case 0: a.path_mtu_bytes = 0; break;
		case 1: a.path_mtu_bytes = 1500; break;
		case 2: a.path_mtu_bytes = 8192; break;
		case 3: a.max_dest_rd_atomic = NIC_MAX_RD_ATOM + 1; break;
		case 4: a.min_rnr_timer = 32; break;
		case 5: a.av.port = 2; break;
		case 6: a.av.sgid_index = DUO_GIDS; break;
		case 7: a.av.is_global = 0; break;
		case 8:
			a.pkey_index = 1;
			mask |= QPA_PKEY_INDEX;
			break;
		case 9: a.dest_qpn = 1 << 24; break;
		case 10:
			a.cur_state = QPS_RTR;
			mask |= QPA_CUR_STATE;
			break;
		case 11: mask |= QPA_KNOWN + 1; break;
		case 12: a.state = QPS_COUNT; break;
		default: a.state = (enum qp_state) - 1;
		}
		nic_qp_query(l.qp->host->nic, l.qp->qp, &before, &init);
		if (!modify(&l, &a, mask))
			fail_msg("row %d", which);
		nic_qp_query(l.qp->host->nic, l.qp->qp, &after, &init);
		assert_memory_equal(&before, &after, sizeof(before));
		sim_end(&l.s);
	}
}

static void tweak_mtu(struct nic_config *c, enum duo_side side)
{
	c->gids[DUO_GID_IPV4].ip_mtu = 1500;
}

/* A path MTU that does not fit the interface would black-hole every full packet. */
TEST(path_mtu_must_fit_the_interface)
{
	static const struct {
		uint32_t mtu;
		bool fits;
	} rows[] = {{256, true}, {1024, true}, {2048, false}, {4096, false}};

	for (size_t i = 0; i < COUNT(rows); i++) {
		struct duo *d = duo_create(1, tweak_mtu);
		struct duo_options o = duo_options();
		struct duo_qp *q, *peer;

		o.mtu = rows[i].mtu;
		q = duo_qp_create(&d->host[DUO_A], &o);
		peer = duo_qp_create(&d->host[DUO_B], &o);
		assert_int_equal(duo_qp_to_init(q), 0);
		assert_int_equal(!duo_qp_to_rtr(q, peer), rows[i].fits);
		duo_destroy(d);
	}
	assert_int_equal(nic_path_mtu(1500), 1024);
	assert_int_equal(nic_path_mtu(9000), 4096);
	assert_int_equal(nic_path_mtu(4200), 4096);
	assert_int_equal(nic_path_mtu(4096), 2048);
}

TEST(query_tells_what_was_set)
{
	struct lone l;

	assert_true(lead(&l, QPT_RC, QPS_INIT));
	struct qp_attr a = right(&l, QPS_INIT, QPS_RTR), got;
	struct qp_init init;

	a.av.flow_label = 0xabcde;
	a.av.hop_limit = 0; /* the device's own choice, which a query returns */
	a.av.traffic_class = 0x68;
	a.av.sl = 3;
	a.av.static_rate = 5;
	a.av.src_path_bits = 6;
	a.av.dlid = 0x1234;
	assert_int_equal(modify(&l, &a, find_move(QPT_RC, QPS_INIT, QPS_RTR)->required | QPA_STATE), 0);
	a.state = QPS_RTS;
	assert_int_equal(modify(&l, &a, find_move(QPT_RC, QPS_RTR, QPS_RTS)->required | QPA_STATE), 0);
	nic_qp_query(l.qp->host->nic, l.qp->qp, &got, &init);
	assert_int_equal(got.state, QPS_RTS);
	assert_int_equal(got.path_mtu_bytes, 1024);
	assert_int_equal(got.rq_psn, 7);
	assert_int_equal(got.sq_psn, 8);
	assert_int_equal(got.dest_qpn, l.s.b->qpn);
	assert_int_equal(got.max_rd_atomic, 3);
	assert_int_equal(got.max_dest_rd_atomic, 4);
	assert_int_equal(got.min_rnr_timer, 9);
	assert_int_equal(got.timeout, 11);
	assert_int_equal(got.retry_cnt, 5);
	assert_int_equal(got.rnr_retry, 6);
	assert_memory_equal(got.av.dgid, a.av.dgid, 16);
	assert_int_equal(got.av.flow_label, 0xabcde);
	assert_int_equal(got.av.sgid_index, a.av.sgid_index);
	assert_int_equal(got.av.hop_limit, 0);
	assert_int_equal(got.av.traffic_class, 0x68);
	assert_int_equal(got.av.sl, 3);
	assert_int_equal(got.av.port, 1);
	assert_int_equal(got.av.is_global, 1);
	assert_int_equal(got.av.static_rate, 5);
	assert_int_equal(got.av.src_path_bits, 6);
	assert_int_equal(got.av.dlid, 0x1234);
	assert_int_equal(init.type, QPT_RC);
	assert_ptr_equal(init.owner, l.qp);
	assert_true(init.cap.max_send_wr >= 64 && init.cap.max_inline >= 64);
	sim_end(&l.s);
}

SIM_TEST(query_tells_the_capacities_granted)
{
	static const struct qp_cap wanted[] = {
		{0},
		{.max_send_wr = 1, .max_recv_wr = 1},
		{.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1, .max_inline = 1},
		{.max_send_wr = 100, .max_recv_wr = 33, .max_send_sge = 3, .max_recv_sge = 32, .max_inline = 77},
		{.max_send_wr = NIC_MAX_QP_WR, .max_send_sge = 0, .max_recv_sge = 5},
	};
	struct nic *nic = s.a->host->nic;

	for (size_t i = 0; i < COUNT(wanted); i++) {
		struct qp_init init = {.type = QPT_RC,
				       .pd = s.a->host->pd,
				       .send_cq = s.a->send_cq,
				       .recv_cq = s.a->recv_cq,
				       .cap = wanted[i]},
			       got;
		struct qp_attr attr;
		struct qp *qp;

		assert_int_equal(nic_qp_create(nic, &init, &qp), 0);
		nic_qp_query(nic, qp, &attr, &got);
		assert_memory_equal(&got.cap, &init.cap, sizeof(got.cap));
		nic_qp_destroy(nic, qp);
	}
}

TEST(modify_without_a_state_keeps_it)
{
	struct lone l;
	struct qp_attr got;
	struct qp_init init;

	assert_true(lead(&l, QPT_RC, QPS_RTS));
	struct qp_attr a = {.access = MR_REMOTE_READ, .min_rnr_timer = 3};

	assert_int_equal(modify(&l, &a, QPA_ACCESS_FLAGS | QPA_MIN_RNR_TIMER), 0);
	nic_qp_query(l.qp->host->nic, l.qp->qp, &got, &init);
	assert_int_equal(got.state, QPS_RTS);
	assert_int_equal(got.access, MR_REMOTE_READ);
	assert_int_equal(got.min_rnr_timer, 3);
	assert_true(modify(&l, &a, QPA_TIMEOUT) < 0);
	sim_end(&l.s);
}

/* ---- SQD ------------------------------------------------------------------------------------ */

static int drain(struct sim *s, bool notify)
{
	struct qp_attr a = {.state = QPS_SQD, .en_sqd_async_notify = notify};

	return nic_qp_modify(s->a->host->nic, s->a->qp, &a, QPA_STATE | QPA_EN_SQD_ASYNC_NOTIFY, s->duo->now_ns);
}

static bool draining(const struct sim *s)
{
	struct qp_attr a;
	struct qp_init init;

	nic_qp_query(s->a->host->nic, s->a->qp, &a, &init);
	return a.sq_draining;
}

/*
 * IBTA 10.3.1.5: messages that were begun are finished, the others wait; then comes the event; RTS
 * continues.
 */
TEST(drained_queue_finishes_what_it_began)
{
	for (int notify = 0; notify < 2; notify++) {
		struct sim s = sim_default();
		struct duo_wr w[] = {duo_write_wr(1, s.abuf, 0, 5000, s.bbuf, 0),
				     duo_read_wr(2, s.abuf, 10000, 5000, s.bbuf, 10000)};

		assert_true(duo_post_chain(s.a, w, 2));
		duo_run_for(s.duo, 10);
		assert_int_equal(drain(&s, notify), 0);
		assert_true(draining(&s));
		duo_must_post(s.a, duo_write_wr(3, s.abuf, 0, 100, s.bbuf, 40000));
		assert_false(duo_had_event(s.a->host, EVENT_SQ_DRAINED, s.a));
		duo_drop(s.duo, DUO_B, DUO_ANY, 0); /* it even repeats what was lost */
		duo_finish(s.a, 1, WC_SUCCESS);
		duo_expect(s.duo, &s.a->sent, 2, WC_SUCCESS);
		assert_int_equal(s.a->sent.n, 2);
		assert_false(draining(&s));
		assert_int_equal(duo_had_event(s.a->host, EVENT_SQ_DRAINED, s.a), notify);
		assert_int_equal(duo_qp_to_state(s.a, QPS_RTS), 0);
		duo_finish(s.a, 3, WC_SUCCESS);
		sim_end(&s);
	}
}

/* Back in RTS before that: it is not draining any more, and of the end of what was begun there is no event. */
SIM_TEST(queue_that_goes_on_is_not_draining)
{
	duo_must_post(s.a, duo_write_wr(1, s.abuf, 0, 5000, s.bbuf, 0));
	duo_run_for(s.duo, 10);
	assert_int_equal(drain(&s, true), 0);
	assert_true(draining(&s));
	assert_int_equal(duo_qp_to_state(s.a, QPS_RTS), 0);
	assert_false(draining(&s));
	duo_finish(s.a, 1, WC_SUCCESS);
	assert_false(duo_had_event(s.a->host, EVENT_SQ_DRAINED, s.a));
}

TEST(idle_queue_is_drained_at_once)
{
	static const enum qp_type all[] = {QPT_RC, QPT_UC, QPT_UD};

	for (size_t i = 0; i < COUNT(all); i++) {
		struct sim s = SIM(o.type = all[i]);

		assert_int_equal(drain(&s, true), 0);
		duo_idle(s.duo);
		assert_true(duo_had_event(s.a->host, EVENT_SQ_DRAINED, s.a));
		assert_false(draining(&s));
		sim_end(&s);
	}
}

SIM_TEST(drained_qp_still_answers)
{
	assert_int_equal(drain(&s, true), 0);
	duo_do(s.b, duo_read_wr(1, s.bbuf, 0, 5000, s.abuf, 0));
	assert_memory_equal(s.abuf->p, s.bbuf->p, 5000);
}

/* ---- RTR ------------------------------------------------------------------------------------ */

/* In RTR a QP receives and answers; the program gets an event for the first packet, once. */
TEST(rtr_receives_and_tells_so)
{
	struct lone l;

	assert_true(lead(&l, QPT_RC, QPS_RTR));
	struct sim *s = &l.s;

	assert_true(duo_recv(s->a, 2, s->abuf, 0, 4000));
	duo_do(s->b, duo_send_wr(1, s->bbuf, 0, 3000));
	duo_expect(s->duo, &s->a->received, 2, WC_SUCCESS);
	assert_true(duo_had_event(s->a->host, EVENT_COMM_EST, s->a));
	assert_int_equal(s->a->host->event_count, 1);
	sim_end(s);
}

TEST(receives_may_be_posted_in_init)
{
	struct lone l;

	assert_true(lead(&l, QPT_RC, QPS_INIT));
	struct sim *s = &l.s;

	assert_true(duo_recv(s->a, 2, s->abuf, 0, 4000));
	assert_int_equal(duo_qp_to_rtr(s->a, s->b), 0);
	duo_do(s->b, duo_send_wr(1, s->bbuf, 0, 3000));
	duo_expect(s->duo, &s->a->received, 2, WC_SUCCESS);
	sim_end(s);
}

SIM_TEST(limits_are_checked_at_creation)
{
	struct duo_host *h = s.a->host;
	static const struct qp_cap caps[] = {
		{.max_send_wr = NIC_MAX_QP_WR + 1},
		{.max_recv_wr = NIC_MAX_QP_WR + 1},
		{.max_send_wr = 1, .max_send_sge = NIC_MAX_SGE + 1},
		{.max_recv_wr = 1, .max_recv_sge = NIC_MAX_SGE + 1},
		{.max_send_wr = 1, .max_inline = NIC_MAX_INLINE + 1},
	};
	struct qp *qp;

	for (size_t i = 0; i < COUNT(caps); i++) {
		struct qp_init init = {
			.type = QPT_RC, .pd = h->pd, .send_cq = s.a->send_cq, .recv_cq = s.a->recv_cq, .cap = caps[i]};

		assert_true(nic_qp_create(h->nic, &init, &qp) < 0);
	}
	struct qp_init none = {.type = QPT_RC, .pd = h->pd, .send_cq = s.a->send_cq, .recv_cq = s.a->recv_cq};

	assert_int_equal(nic_qp_create(h->nic, &none, &qp), 0); /* queues of no size are legal */
	assert_null(sq_slot(qp_sq(qp), 0));
	assert_null(rq_slot(qp_rq(qp)));
	nic_qp_destroy(h->nic, qp);
}

/* Nothing of its send queue leaves, but it still acknowledges what it receives. */
TEST(muted_qp_answers_and_sends_nothing)
{
	for (size_t t = 0; t < COUNT(types); t++) {
		struct flow flow;
		struct ah_attr av;
		uint32_t ip_mtu;
		struct sim s = SIM(o.type = types[t], o.qkey = 7);
		struct duo_wr w = duo_send_wr(1, s.abuf, 0, 100);

		if (s.a->opt.type == QPT_UD) {
			av = duo_av(s.a->host, s.b->host, 0);
			assert_int_equal(nic_resolve(s.a->host->nic, &av, &flow, &ip_mtu), 0);
			w.flow = &flow;
			w.dqpn = s.b->qpn;
			w.qkey = s.a->opt.qkey;
		}
		assert_true(duo_recv(s.a, 3, s.abuf, 1000, 1000));
		assert_true(duo_recv(s.b, 4, s.bbuf, 1000, 1000));
		nic_qp_mute(s.a->host->nic, s.a->qp, true);
		assert_true(duo_post(s.a, &w));
		if (s.a->opt.type == QPT_RC) {
			duo_must_post(s.b, duo_send_wr(2, s.bbuf, 200, 100));
			duo_wait(s.duo, &s.b->sent, 1);
			duo_expect(s.duo, &s.b->sent, 2, WC_SUCCESS);
			duo_expect(s.duo, &s.a->received, 3, WC_SUCCESS);
		}
		duo_run_for(s.duo, 1000000);
		assert_int_equal(duo_count(s.duo, DUO_A, DUO_ANY), s.a->opt.type == QPT_RC);
		nic_qp_mute(s.a->host->nic, s.a->qp, false);
		duo_wait(s.duo, &s.a->sent, 1);
		duo_expect(s.duo, &s.a->sent, 1, WC_SUCCESS);
		duo_wait(s.duo, &s.b->received, 1);
		duo_expect(s.duo, &s.b->received, 4, WC_SUCCESS);
		sim_end(&s);
	}
}
