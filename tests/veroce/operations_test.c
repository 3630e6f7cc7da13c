/* SPDX-License-Identifier: BSD-2-Clause */
/* Every kind of message on a network that loses nothing (veRoCE 7), and what is on the wire. */
#include "support/test.h"
#include "veroce/veroce.h"

TEST(every_operation_arrives_and_completes)
{
	static const uint32_t lengths[] = {0, 1, 4, 1023, 1024, 1025, 4096, 20000};

	for (size_t i = 0; i < COUNT(lengths); i++) {
		struct sim s = veroce_default();
		uint32_t len = lengths[i];

		duo_must_post(s.a, duo_write_wr(1, s.abuf, 0, len, s.bbuf, 0));
		duo_must_post(s.a, duo_read_wr(2, s.abuf, 32768, len, s.bbuf, 32768));
		assert_true(duo_recv(s.b, 11, s.bbuf, 40, len + 7));
		duo_idle(s.duo);
		assert_memory_equal(s.bbuf->p, s.abuf->p, len);
		assert_memory_equal(s.bbuf->p + 32768, s.abuf->p + 32768, len);
		duo_expect(s.duo, &s.a->sent, 1, WC_SUCCESS);
		duo_expect(s.duo, &s.a->sent, 2, WC_SUCCESS);
		duo_do(s.a, duo_send_wr(3, s.abuf, 100, len));
		assert_int_equal(duo_expect(s.duo, &s.b->received, 11, WC_SUCCESS)->byte_len, len);
		assert_memory_equal(s.bbuf->p + 40, s.abuf->p + 100, len);
		assert_int_equal(nic_counters(s.a->host->nic)->retransmits, 0);
		assert_int_equal(nic_counters(s.b->host->nic)->retransmits, 0);
		sim_end(&s);
	}
}

VEROCE_TEST(immediate_and_invalidate_arrive)
{
	struct duo_wr w = duo_write_wr(1, s.abuf, 0, 5000, s.bbuf, 0);
	struct duo_wr x = duo_send_wr(2, s.abuf, 0, 3000), inv = duo_send_wr(3, s.abuf, 0, 30);
	struct duo_buf *key = duo_buf(&s.duo->host[DUO_B], 100, ALL_ACCESS);
	const struct cqe *e;

	w.opcode = WR_WRITE_IMM;
	w.imm_or_key = 0xdeadbeef;
	x.opcode = WR_SEND_IMM;
	x.imm_or_key = 77;
	inv.opcode = WR_SEND_INV;
	inv.imm_or_key = key->mr->key;
	for (uint64_t i = 0; i < 3; i++)
		assert_true(duo_recv(s.b, 10 + i, s.bbuf, 20000, 4000));
	assert_true(duo_post(s.a, &w));
	assert_true(duo_post(s.a, &x));
	assert_true(duo_post(s.a, &inv));
	duo_idle(s.duo);
	for (uint64_t i = 1; i <= 3; i++)
		duo_expect(s.duo, &s.a->sent, i, WC_SUCCESS);
	e = duo_expect(s.duo, &s.b->received, 10, WC_SUCCESS);
	assert_int_equal(e->opcode, WC_RECV_RDMA_WITH_IMM);
	assert_int_equal(e->byte_len, 5000);
	assert_int_equal(e->imm_or_key, 0xdeadbeef);
	e = duo_expect(s.duo, &s.b->received, 11, WC_SUCCESS);
	assert_int_equal(e->imm_or_key, 77);
	assert_int_equal(e->flags, WC_WITH_IMM);
	e = duo_expect(s.duo, &s.b->received, 12, WC_SUCCESS);
	assert_int_equal(e->flags, WC_WITH_INV);
	assert_int_equal(e->imm_or_key, key->mr->key);
	assert_int_equal(key->mr->access & MR_REMOTE_WRITE, 0);
}

VEROCE_TEST(atomics_execute_once_and_answer)
{
	uint64_t *word = (uint64_t *)s.bbuf->p, *found = (uint64_t *)s.abuf->p;

	*word = 100;
	duo_must_post(s.a, duo_fetch_add_wr(1, s.abuf, 0, s.bbuf, 0, 5));
	duo_must_post(s.a, duo_cmp_swap_wr(2, s.abuf, 8, s.bbuf, 0, 105, 7));
	duo_must_post(s.a, duo_cmp_swap_wr(3, s.abuf, 16, s.bbuf, 0, 105, 9));
	duo_idle(s.duo);
	for (uint64_t i = 1; i <= 3; i++)
		duo_expect(s.duo, &s.a->sent, i, WC_SUCCESS);
	assert_int_equal(*word, 7);
	assert_int_equal(found[0], 100);
	assert_int_equal(found[1], 105);
	assert_int_equal(found[2], 7);
}

/*
 * The source ports of the other IP version belong to another socket, or to none; the channel
 * checks.
 */
TEST(every_path_of_either_ip_version_is_used)
{
	static const uint8_t gids[] = {DUO_GID_IPV4, DUO_GID_IPV6};

	for (size_t i = 0; i < COUNT(gids); i++) {
		struct veroce_options v = veroce_options();
		struct duo_options o = duo_options();
		uint32_t paths[DUO_SIDES] = {0};
		struct sim s;

		v.paths = 4;
		v.window_bytes = 8 * 1024; /* so that flowlets are short */
		o.gid = gids[i];
		s = veroce_start_sim(&v, &o, 1);
		for (uint64_t k = 0; k < 8; k++) {
			duo_must_post(s.a, duo_write_wr(2 * k, s.abuf, 0, 30000, s.bbuf, 0));
			duo_must_post(s.a, duo_read_wr(2 * k + 1, s.abuf, 30000, 30000, s.bbuf, 30000));
			duo_finish(s.a, 2 * k, WC_SUCCESS);
			duo_expect(s.duo, &s.a->sent, 2 * k + 1, WC_SUCCESS);
		}
		assert_memory_equal(s.abuf->p, s.bbuf->p, 60000);
		for (size_t k = 0; k < s.duo->wire_count; k++) {
			const struct duo_packet *p = &s.duo->wire[k];

			if (veroce_is_data(p))
				paths[p->from] |= 1u << p->path;
		}
		assert_int_equal(paths[DUO_A], 0xf);
		assert_int_equal(paths[DUO_B], 0xf);
		sim_end(&s);
	}
}

static void send_some(struct sim *s)
{
	struct duo_qp *both[] = {s->a, s->b};

	for (uint64_t i = 0; i < 20; i++) {
		struct duo_qp *q = both[i & 1];
		struct duo_buf *from = i & 1 ? s->bbuf : s->abuf, *to = i & 1 ? s->abuf : s->bbuf;
		struct duo_wr w = duo_write_wr(i, from, 0, 3000, to, 0);

		if (i / 2 % 3 == 0)
			w = duo_read_wr(i, from, 0, 3000, to, 0);
		else if (i / 2 % 3 == 1)
			w = duo_send_wr(i, from, 0, 30);
		if (w.opcode == WR_SEND)
			assert_true(duo_recv(q->peer, i, to, 0, 100));
		assert_true(duo_post(q, &w));
	}
	duo_idle(s->duo);
	for (uint64_t i = 0; i < 20; i++) {
		duo_expect(s->duo, &both[i & 1]->sent, i, WC_SUCCESS);
		if (i / 2 % 3 == 1)
			duo_expect(s->duo, &both[i & 1]->peer->received, i, WC_SUCCESS);
	}
}

/* veroce_set_sent() is right: the state that it makes equals that after as many messages. */
TEST(numbers_set_are_those_of_messages_sent)
{
	struct veroce_options v = veroce_options();
	struct duo_options o = duo_options();
	struct sim real = veroce_start_sim(&v, &o, 1), made;

	send_some(&real);
	v.sent = (struct veroce_sent){.messages = 10, .recvs = 3, .reads = 4};
	made = veroce_start_sim(&v, &o, 1);
	for (int side = 0; side < DUO_SIDES; side++) {
		const struct veroce *r = (side ? real.b : real.a)->qp->veroce;
		const struct veroce *m = (side ? made.b : made.a)->qp->veroce;

		assert_int_equal(m->msn, r->msn);
		assert_int_equal(m->acked_msn, r->acked_msn);
		assert_int_equal(m->rqmsn, r->rqmsn);
		assert_int_equal(m->reads, r->reads);
		assert_int_equal(m->rq_done, r->rq_done);
		assert_int_equal(m->executed, r->executed);
		assert_int_equal(m->quiet.q_amsn, r->quiet.q_amsn);
		assert_int_equal(m->quiet.r_amsn, r->quiet.r_amsn);
	}
	sim_end(&real);
	sim_end(&made);
}
