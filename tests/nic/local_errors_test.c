/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Work requests that fail locally: they never reach the wire, and complete in turn with the right
 * status (IBTA 10.8.5).
 */
#include "duo/sim.h"

/* A WRITE that succeeds, the bad one, one that is flushed. */
static void fail_locally(struct sim *s, const struct duo_wr *bad, enum wc_status status)
{
	uint8_t before[3000];

	memcpy(before, s->bbuf->p + 30000, 3000);
	duo_must_post(s->a, duo_write_wr(1, s->abuf, 0, 3000, s->bbuf, 0));
	assert_true(duo_post(s->a, bad));
	duo_must_post(s->a, duo_write_wr(3, s->abuf, 0, 3000, s->bbuf, 30000));
	duo_finish(s->a, 1, WC_SUCCESS);
	duo_expect(s->duo, &s->a->sent, bad->wr_id, status);
	duo_expect(s->duo, &s->a->sent, 3, WC_WR_FLUSH_ERR);
	assert_int_equal(duo_count(s->duo, DUO_A, DUO_ANY), 3); /* the first WRITE alone */
	assert_memory_equal(s->bbuf->p, s->abuf->p, 3000);
	assert_memory_equal(s->bbuf->p + 30000, before, 3000);
	assert_int_equal(qp_state(s->a->qp), QPS_ERR);
	assert_int_equal(qp_state(s->b->qp), QPS_RTS);
}

TEST(key_that_does_not_open_is_a_protection_error)
{
	static const enum wr_opcode ops[] = {WR_SEND, WR_WRITE, WR_READ, WR_FETCH_ADD};

	for (size_t i = 0; i < COUNT(ops); i++) {
		for (int which = 0; which < 5; which++) {
			struct sim s = sim_default();
			struct duo_wr w = duo_write_wr(2, s.abuf, 0, 8, s.bbuf, 0);
			struct pd *pd = NULL;
			struct mr *mr = NULL;
			uint8_t mem[8] = {0};

			w.opcode = ops[i];
			switch (which) {
			case 0: w.sge[0].lkey ^= 2; break;
			case 1: w.sge[0].addr = s.abuf->iova - 1; break;
			case 2: w.sge[0].addr = s.abuf->iova + BUF_BYTES - 7; break;
			case 3:
				if (ops[i] == WR_FETCH_ADD)
					break;
				w.sge[1] = w.sge[0];
				w.sge[1].lkey = 0;
				w.num_sge = 2;
				break;
			default:
				assert_int_equal(nic_pd_alloc(s.a->host->nic, &pd), 0);
				assert_int_equal(
					nic_mr_reg(s.a->host->nic, pd, (struct mr_range){mem, 8, 0}, ALL_ACCESS, &mr),
					0);
				w.sge[0].addr = 0;
				w.sge[0].lkey = mr->key;
			}
			if (which == 3 && ops[i] == WR_FETCH_ADD) {
				sim_end(&s);
				continue;
			}
			fail_locally(&s, &w, WC_LOC_PROT_ERR);
			if (mr) {
				nic_mr_dereg(s.a->host->nic, mr);
				assert_int_equal(nic_pd_free(s.a->host->nic, pd), 0);
			}
			sim_end(&s);
		}
	}
}

/* Results are written, so their memory needs local write; data to be sent is only read. */
TEST(local_write_is_needed_for_results_only)
{
	static const struct {
		enum wr_opcode op;
		bool needs;
	} rows[] = {{WR_SEND, false}, {WR_WRITE, false}, {WR_READ, true}, {WR_FETCH_ADD, true}, {WR_CMP_SWAP, true}};

	for (size_t i = 0; i < COUNT(rows); i++) {
		struct sim s = sim_default();
		struct duo_buf *ro = duo_buf(s.a->host, 64, 0);
		struct duo_wr w = duo_write_wr(2, ro, 0, 8, s.bbuf, 0);

		w.opcode = rows[i].op;
		if (rows[i].needs) {
			fail_locally(&s, &w, WC_LOC_PROT_ERR);
		} else {
			assert_true(duo_recv(s.b, 9, s.bbuf, 0, 100));
			duo_do(s.a, w);
			s.b->received.taken = s.b->received.n;
		}
		sim_end(&s);
	}
}

TEST(atomic_result_is_8_bytes)
{
	static const uint32_t lens[] = {0, 1, 4, 7, 9, 16};

	for (size_t i = 0; i < COUNT(lens); i++) {
		struct sim s = sim_default();
		struct duo_wr w = duo_fetch_add_wr(2, s.abuf, 0, s.bbuf, 0, 1);

		w.sge[0].len = lens[i];
		fail_locally(&s, &w, WC_LOC_LEN_ERR);
		sim_end(&s);
	}
}

SIM_TEST(read_needs_max_rd_atomic, o.max_rd_atomic = 0)
{
	struct duo_wr w = duo_read_wr(2, s.abuf, 0, 8, s.bbuf, 0);

	fail_locally(&s, &w, WC_LOC_QP_OP_ERR);
}

/* The memory goes away while the request is under way: a repeat, or a result, finds no key. */
TEST(region_gone_before_a_repeat_is_a_protection_error)
{
	for (int read = 0; read < 2; read++) {
		struct sim s = sim_default();
		struct duo_host *h = s.a->host;
		uint8_t *mem = calloc(1, 5000);
		struct mr *mr;
		struct duo_wr w =
			read ? duo_read_wr(2, s.abuf, 0, 5000, s.bbuf, 0) : duo_write_wr(2, s.abuf, 0, 5000, s.bbuf, 0);

		assert_int_equal(nic_mr_reg(h->nic, h->pd, (struct mr_range){mem, 5000, 0}, ALL_ACCESS, &mr), 0);
		w.sge[0] = (struct sge){.addr = 0, .len = 5000, .lkey = mr->key};
		duo_drop(s.duo, DUO_A, DUO_ANY, 0);
		assert_true(duo_post(s.a, &w));
		duo_run_for(s.duo, 1);
		nic_mr_dereg(h->nic, mr);
		free(mem);
		duo_finish(s.a, 2, WC_LOC_PROT_ERR);
		assert_int_equal(qp_state(s.a->qp), QPS_ERR);
		sim_end(&s);
	}
}

/* IBTA 10.3.1.6: UC and UD stop sending, in SQE, but go on receiving, and can be set going again. */
TEST(unreliable_qp_goes_to_sqe_and_back)
{
	static const enum qp_type types[] = {QPT_UC, QPT_UD};

	for (size_t i = 0; i < COUNT(types); i++) {
		struct sim s = SIM(o.type = types[i]);
		struct flow flow;
		uint32_t ip_mtu;
		struct duo_wr w[3];

		for (int k = 0; k < 3; k++) {
			struct duo_qp *from = k == 2 ? s.b : s.a, *to = k == 2 ? s.a : s.b;
			struct ah_attr av = duo_av(from->host, to->host, DUO_GID_IPV4);

			w[k] = duo_send_wr((uint64_t)k, k == 2 ? s.bbuf : s.abuf, 0, 100);
			if (types[i] != QPT_UD)
				continue;
			assert_int_equal(nic_resolve(from->host->nic, &av, &flow, &ip_mtu), 0);
			w[k].flow = memcpy(malloc(sizeof(flow)), &flow, sizeof(flow));
			w[k].dqpn = to->qpn;
			w[k].qkey = s.a->opt.qkey;
		}
		w[0].sge[0].lkey ^= 1;
		w[1].flags = 0; /* flushed all the same */
		assert_true(duo_recv(s.a, 20, s.abuf, 1000, 200));
		assert_true(duo_recv(s.b, 21, s.bbuf, 1000, 200));
		assert_true(duo_post_chain(s.a, w, 2));
		duo_finish(s.a, 0, WC_LOC_PROT_ERR);
		duo_expect(s.duo, &s.a->sent, 1, WC_WR_FLUSH_ERR);
		assert_int_equal(qp_state(s.a->qp), QPS_SQE);
		assert_int_equal(duo_count(s.duo, DUO_A, DUO_ANY), 0);
		assert_true(duo_post(s.a, &w[1])); /* as is what is posted now */
		duo_finish(s.a, 1, WC_WR_FLUSH_ERR);
		duo_do(s.b, w[2]);
		duo_expect(s.duo, &s.a->received, 20, WC_SUCCESS);
		assert_int_equal(duo_qp_to_state(s.a, QPS_RTS), 0);
		w[1].flags = WR_SIGNALED;
		duo_do(s.a, w[1]);
		duo_expect(s.duo, &s.b->received, 21, WC_SUCCESS);
		for (int k = 0; k < 3; k++)
			free((void *)w[k].flow);
		sim_end(&s);
	}
}

/*
 * Operations that a transport does not offer: WRs that verbs would refuse at post must do no harm
 * here.
 */
TEST(foreign_operations_are_operation_errors)
{
	static const struct {
		enum qp_type type;
		enum wr_opcode op;
	} rows[] = {{QPT_UC, WR_READ},     {QPT_UC, WR_FETCH_ADD}, {QPT_UC, WR_SEND_INV},
		    {QPT_UD, WR_READ},     {QPT_UD, WR_WRITE},     {QPT_UD, WR_CMP_SWAP},
		    {QPT_UD, WR_SEND_INV}, {QPT_UD, WR_BIND_MW},   {QPT_UD, WR_LOCAL_INV}};

	for (size_t i = 0; i < COUNT(rows); i++) {
		struct sim s = SIM(o.type = rows[i].type);
		struct duo_wr w = duo_write_wr(1, s.abuf, 0, 8, s.bbuf, 0);

		w.opcode = rows[i].op;
		assert_true(duo_post(s.a, &w));
		duo_finish(s.a, 1, WC_LOC_QP_OP_ERR);
		assert_int_equal(duo_count(s.duo, DUO_A, DUO_ANY), 0);
		sim_end(&s);
	}
}

/* A CQ with too little room: its event, its QP in error, and no crash (IBTA C11-39). */
SIM_TEST(full_cq_takes_its_qp_down, o.cqe = 4)
{
	s.a->manual = true;
	for (uint64_t i = 0; i < 20; i++)
		duo_must_post(s.a, duo_write_wr(i, s.abuf, 0, 10, s.bbuf, 0));
	duo_idle(s.duo);
	assert_true(duo_had_event(s.a->host, EVENT_CQ_ERR, s.a));
	assert_int_equal(qp_state(s.a->qp), QPS_ERR);
	assert_true(s.a->send_cq->overrun);
	assert_true(nic_counters(s.a->host->nic)->cq_overruns >= 1);
	for (uint32_t i = 0; i < s.a->send_cq->capacity; i++)
		assert_int_equal(cq_peek(s.a->send_cq, i)->wr_id, i);
}
