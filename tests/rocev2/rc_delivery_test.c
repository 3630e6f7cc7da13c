/* SPDX-License-Identifier: BSD-2-Clause */
/* RC without loss: every operation, every size around a packet's edges, every path MTU, PSN wrap. */
#include "duo/sim.h"
#include "wire/psn.h"

enum { BIG = 1 << 20 };

static const uint32_t mtus[] = {256, 512, 1024, 2048, 4096};

static uint32_t packets(uint32_t len, uint32_t mtu)
{
	return len ? (len + mtu - 1) / mtu : 1;
}

/* One SEND, WRITE and READ of each size, back to back; the PSNs used are exactly those needed. */
static void deliver_sizes(uint32_t mtu, uint32_t psn, uint8_t gid)
{
	const uint32_t sizes[] = {0, 1, 3, mtu - 1, mtu, mtu + 1, 2 * mtu, 5 * mtu + 7, BIG};
	struct sim s = SIM(o.mtu = mtu, o.gid = gid, o.psn[DUO_A] = psn, o.psn[DUO_B] = psn_add(psn, 77));
	struct duo_buf *from = duo_buf(&s.duo->host[DUO_A], BIG, MR_LOCAL_WRITE);
	struct duo_buf *into = duo_buf(&s.duo->host[DUO_A], BIG, MR_LOCAL_WRITE);
	struct duo_buf *at_b = duo_buf(&s.duo->host[DUO_B], BIG, ALL_ACCESS);
	uint32_t next = psn;

	for (size_t i = 0; i < COUNT(sizes); i++) {
		uint32_t len = sizes[i], used = packets(len, mtu);
		struct duo_wr wr[] = {
			duo_send_wr(1, from, 0, len),
			duo_write_wr(2, from, 0, len, at_b, 0),
			duo_read_wr(3, into, 0, len, at_b, 0),
		};

		duo_fill(from, 3 * i);
		assert_true(duo_recv(s.b, 10, at_b, 0, BIG));
		assert_true(duo_post(s.a, &wr[0]));
		duo_wait(s.duo, &s.a->sent, s.a->sent.n + 1);
		duo_expect(s.duo, &s.a->sent, 1, WC_SUCCESS);
		const struct cqe *r = duo_expect(s.duo, &s.b->received, 10, WC_SUCCESS);

		assert_int_equal(r->byte_len, len);
		assert_int_equal(r->opcode, WC_RECV);
		assert_int_equal(r->flags, 0);
		assert_int_equal(r->src_qp, s.a->qpn);
		assert_memory_equal(at_b->p, from->p, len);

		duo_fill(from, 3 * i + 1);
		assert_true(duo_post(s.a, &wr[1]));
		duo_wait(s.duo, &s.a->sent, s.a->sent.n + 1);
		assert_int_equal(duo_expect(s.duo, &s.a->sent, 2, WC_SUCCESS)->opcode, WC_WRITE);
		assert_memory_equal(at_b->p, from->p, len);

		duo_fill(into, 3 * i + 2);
		assert_true(duo_post(s.a, &wr[2]));
		duo_wait(s.duo, &s.a->sent, s.a->sent.n + 1);
		r = duo_expect(s.duo, &s.a->sent, 3, WC_SUCCESS);
		assert_int_equal(r->opcode, WC_READ);
		assert_int_equal(r->byte_len, len);
		assert_memory_equal(into->p, at_b->p, len);
		next = psn_add(next, 3 * used);
	}
	duo_idle(s.duo);

	struct qp_attr attr;
	struct qp_init init;

	nic_qp_query(s.a->host->nic, s.a->qp, &attr, &init);
	assert_int_equal(attr.sq_psn, next);
	nic_qp_query(s.b->host->nic, s.b->qp, &attr, &init);
	assert_int_equal(attr.rq_psn, next);
	assert_int_equal(nic_counters(s.a->host->nic)->retransmits, 0);
	assert_int_equal(nic_counters(s.b->host->nic)->rx_duplicates, 0);
	assert_int_equal(duo_count_syndrome(s.duo, DUO_B, AETH_NAK | NAK_PSN_SEQUENCE), 0);
	sim_end(&s);
}

TEST(every_size_arrives_at_every_mtu)
{
	for (size_t i = 0; i < COUNT(mtus); i++)
		deliver_sizes(mtus[i], 0, DUO_GID_IPV4);
}

TEST(psn_wrap_is_invisible)
{
	for (size_t i = 0; i < COUNT(mtus); i++)
		deliver_sizes(mtus[i], 0xfffff0, DUO_GID_IPV4);
	deliver_sizes(256, 0xffffff, DUO_GID_IPV4);
	deliver_sizes(256, 0x7ffff0, DUO_GID_IPV4);
}

TEST(random_initial_psns_do)
{
	struct prng r;

	prng_init(&r, 1);
	for (int i = 0; i < 6; i++)
		deliver_sizes(mtus[prng_below(&r, 5)], (uint32_t)prng_next(&r) & PSN_MASK, DUO_GID_IPV4);
}

TEST(ipv6_carries_it_too)
{
	deliver_sizes(256, 0x123456, DUO_GID_IPV6);
	deliver_sizes(4096, 0xfffffe, DUO_GID_IPV6);
}

/* docs/rocev2.md, AckReq: no more than 16 packets go by without one, so that the window moves on. */
SIM_TEST(an_ack_is_asked_for_every_16_packets)
{
	size_t without = 0;

	duo_do(s.a, duo_write_wr(1, s.abuf, 0, 60 * 1024, s.bbuf, 0));
	for (size_t i = 0; i < duo_count(s.duo, DUO_A, DUO_ANY); i++) {
		without = duo_packet(s.duo, DUO_A, DUO_ANY, i)->bth.ackreq ? 0 : without + 1;
		assert_true(without < 16);
	}
}

/* IBTA 9.7.2: FIRST and MIDDLE are full, LAST has the rest, ONLY stands alone; ackreq at the end. */
SIM_TEST(messages_are_cut_as_the_spec_says)
{
	static const uint8_t write_ops[] = {OP_RC_WRITE_FIRST, OP_RC_WRITE_MIDDLE, OP_RC_WRITE_MIDDLE,
					    OP_RC_WRITE_LAST};
	static const uint8_t send_ops[] = {OP_RC_SEND_FIRST, OP_RC_SEND_MIDDLE, OP_RC_SEND_MIDDLE, OP_RC_SEND_LAST};
	struct duo_wr w[] = {duo_write_wr(1, s.abuf, 0, 3 * 1024 + 5, s.bbuf, 100), duo_send_wr(2, s.abuf, 0, 4096),
			     duo_send_wr(3, s.abuf, 0, 7)};

	assert_true(duo_recv(s.b, 10, s.bbuf, 8192, 8192));
	assert_true(duo_recv(s.b, 11, s.bbuf, 16384, 8192));
	assert_true(duo_post_chain(s.a, w, 3));
	duo_idle(s.duo);
	for (uint32_t i = 0; i < 9; i++) {
		const struct duo_packet *p = duo_packet(s.duo, DUO_A, DUO_ANY, i);
		uint8_t want = i < 4 ? write_ops[i] : i < 8 ? send_ops[i - 4] : OP_RC_SEND_ONLY;
		uint32_t len = i == 3 ? 5 : i == 8 ? 7 : 1024;

		assert_int_equal(p->bth.opcode, want);
		assert_int_equal(p->bth.psn, psn_add(s.a->opt.psn[DUO_A], i));
		assert_int_equal(p->bth.dqpn, s.b->qpn);
		assert_int_equal(p->bth.pkey, 0xffff);
		assert_int_equal(p->bth.tver, 0);
		assert_int_equal(p->payload_len, len);
		if (i == 0) {
			assert_true(p->reth.va == s.bbuf->iova + 100);
			assert_int_equal(p->reth.len, 3 * 1024 + 5);
			assert_int_equal(p->reth.rkey, s.bbuf->mr->key);
		}
		if (i == 8)
			assert_true(p->bth.ackreq);
	}
	assert_int_equal(duo_count(s.duo, DUO_A, DUO_ANY), 9);
	for (uint64_t i = 1; i <= 3; i++)
		duo_expect(s.duo, &s.a->sent, i, WC_SUCCESS);
	duo_expect(s.duo, &s.b->received, 10, WC_SUCCESS);
	duo_expect(s.duo, &s.b->received, 11, WC_SUCCESS);
}

/* MSN counts completed messages (IBTA 9.7.7.1), and every ACK carries it. */
SIM_TEST(msn_counts_messages)
{
	for (uint32_t i = 1; i <= 5; i++) {
		duo_must_post(s.a, i % 2 ? duo_write_wr(i, s.abuf, 0, 3000, s.bbuf, 0)
					 : duo_read_wr(i, s.abuf, 0, 3000, s.bbuf, 0));
		duo_finish(s.a, i, WC_SUCCESS);
		const struct duo_packet *last = duo_packet(s.duo, DUO_B, DUO_ANY, duo_count(s.duo, DUO_B, DUO_ANY) - 1);

		assert_int_equal(last->aeth.msn, i);
		assert_int_equal(aeth_kind(last->aeth.syndrome), AETH_ACK);
	}
}

SIM_TEST(gather_and_scatter_lists_meet)
{
	uint8_t want[3000];
	struct sge into[4] = {duo_sge(s.bbuf, 5000, 1), duo_sge(s.bbuf, 0, 0), duo_sge(s.bbuf, 7000, 1500),
			      duo_sge(s.bbuf, 100, 2000)};
	struct duo_wr w = duo_send_wr(1, s.abuf, 0, 0);

	w.num_sge = 4;
	w.sge[0] = duo_sge(s.abuf, 10, 999);
	w.sge[1] = duo_sge(s.abuf, 3000, 1);
	w.sge[2] = duo_sge(s.abuf, 0, 0);
	w.sge[3] = duo_sge(s.abuf, 5000, 2000);
	memcpy(want, s.abuf->p + 10, 999);
	memcpy(want + 999, s.abuf->p + 3000, 1);
	memcpy(want + 1000, s.abuf->p + 5000, 2000);
	assert_true(duo_post_recv(s.b, 2, into, 4));
	duo_do(s.a, w);
	assert_int_equal(duo_expect(s.duo, &s.b->received, 2, WC_SUCCESS)->byte_len, 3000);
	assert_memory_equal(s.bbuf->p + 5000, want, 1);
	assert_memory_equal(s.bbuf->p + 7000, want + 1, 1500);
	assert_memory_equal(s.bbuf->p + 100, want + 1501, 1499);

	/* A READ scatters at the requester. */
	w = duo_read_wr(3, s.abuf, 0, 0, s.bbuf, 20000);
	w.num_sge = 3;
	w.sge[0] = duo_sge(s.abuf, 30000, 1030);
	w.sge[1] = duo_sge(s.abuf, 40000, 3);
	w.sge[2] = duo_sge(s.abuf, 50000, 2000);
	duo_do(s.a, w);
	assert_memory_equal(s.abuf->p + 30000, s.bbuf->p + 20000, 1030);
	assert_memory_equal(s.abuf->p + 40000, s.bbuf->p + 21030, 3);
	assert_memory_equal(s.abuf->p + 50000, s.bbuf->p + 21033, 2000);
}

SIM_TEST(inline_data_is_taken_at_post)
{
	char text[] = "inline, gone after the post";
	struct duo_wr w = duo_write_wr(1, s.abuf, 0, 0, s.bbuf, 50);

	w.flags |= WR_INLINE;
	w.inline_data = text;
	w.inline_len = sizeof(text);
	assert_true(duo_post(s.a, &w));
	memset(text, 'x', sizeof(text));
	duo_drop(s.duo, DUO_A, OP_RC_WRITE_ONLY, 0); /* also when it is sent again */
	duo_finish(s.a, 1, WC_SUCCESS);
	assert_string_equal((char *)s.bbuf->p + 50, "inline, gone after the post");
}

SIM_TEST(atomics_return_the_old_value_and_leave_the_new)
{
	static const struct {
		bool cas;
		uint64_t before, compare_add, swap, after;
	} rows[] = {
		{false, 5, 7, 0, 12},
		{false, UINT64_MAX, 1, 0, 0},
		{false, 0x0123456789abcdef, 0, 0, 0x0123456789abcdef},
		{true, 5, 5, 9, 9},
		{true, 5, 6, 9, 5},
		{true, 0x0123456789abcdef, 0x0123456789abcdef, 0xfedcba9876543210, 0xfedcba9876543210},
	};

	for (size_t i = 0; i < COUNT(rows); i++) {
		struct duo_wr w =
			rows[i].cas ? duo_cmp_swap_wr(i, s.abuf, 24, s.bbuf, 16, rows[i].compare_add, rows[i].swap)
				    : duo_fetch_add_wr(i, s.abuf, 24, s.bbuf, 16, rows[i].compare_add);
		uint64_t got;

		memcpy(s.bbuf->p + 16, &rows[i].before, 8);
		assert_true(duo_post(s.a, &w));
		duo_idle(s.duo);
		const struct cqe *e = duo_expect(s.duo, &s.a->sent, i, WC_SUCCESS);

		assert_int_equal(e->opcode, rows[i].cas ? WC_CMP_SWAP : WC_FETCH_ADD);
		assert_int_equal(e->byte_len, 8);
		memcpy(&got, s.abuf->p + 24, 8);
		assert_true(got == rows[i].before);
		memcpy(&got, s.bbuf->p + 16, 8);
		assert_true(got == rows[i].after);
	}
}

/* Both ways at once, more than fits the send queue at a time. */
SIM_TEST(both_directions_at_once)
{
	enum { ROUNDS = 500 };
	uint64_t posted_a = 0, posted_b = 0, recvs_a = 0, recvs_b = 0;

	while (s.a->sent.n < ROUNDS || s.b->sent.n < ROUNDS || s.a->received.n < ROUNDS || s.b->received.n < ROUNDS) {
		struct duo_wr wa = duo_send_wr(posted_a, s.abuf, posted_a % 7, 2500);
		struct duo_wr wb = duo_send_wr(posted_b, s.bbuf, posted_b % 5, 700);

		while (recvs_a < ROUNDS && duo_recv(s.a, recvs_a, s.abuf, 40000, 4000))
			recvs_a++;
		while (recvs_b < ROUNDS && duo_recv(s.b, recvs_b, s.bbuf, 40000, 4000))
			recvs_b++;
		if (posted_a < ROUNDS && duo_post(s.a, &wa))
			posted_a++;
		if (posted_b < ROUNDS && duo_post(s.b, &wb))
			posted_b++;
		duo_run_for(s.duo, 300);
	}
	for (uint64_t i = 0; i < ROUNDS; i++) {
		duo_expect(s.duo, &s.a->sent, i, WC_SUCCESS);
		duo_expect(s.duo, &s.b->sent, i, WC_SUCCESS);
		assert_int_equal(duo_expect(s.duo, &s.a->received, i, WC_SUCCESS)->byte_len, 700);
		assert_int_equal(duo_expect(s.duo, &s.b->received, i, WC_SUCCESS)->byte_len, 2500);
	}
	assert_memory_equal(s.bbuf->p + 40000, s.abuf->p + (ROUNDS - 1) % 7, 2500);
}

/* A QP may be connected to itself, and two QPs of one nic to each other. */
SIM_TEST(loopback_works)
{
	struct duo_options o = duo_options();
	struct duo_host *h = &s.duo->host[DUO_A];
	struct duo_qp *q = duo_qp_create(h, &o), *r = duo_qp_create(h, &o);
	struct duo_qp *self = duo_qp_create(h, &o);
	struct duo_qp *each[] = {q, r, self}, *peers[] = {r, q, self};

	for (int i = 0; i < 3; i++)
		assert_int_equal(duo_qp_to_init(each[i]), 0);
	for (int i = 0; i < 3; i++)
		assert_int_equal(duo_qp_to_rtr(each[i], peers[i]), 0);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(duo_qp_to_rts(each[i]), 0);
		duo_fill(s.abuf, 50 + (uint64_t)i);
		duo_must_post(each[i], duo_write_wr(1, s.abuf, 0, 5000, s.abuf, 30000));
		duo_idle(s.duo);
		duo_expect(s.duo, &each[i]->sent, 1, WC_SUCCESS);
		assert_memory_equal(s.abuf->p + 30000, s.abuf->p, 5000);
	}
}

/* The number of packets that a caller takes at a time must not matter. */
TEST(any_burst_size_will_do)
{
	static const size_t bursts[] = {1, 2, 3, 17, 256};

	for (size_t i = 0; i < COUNT(bursts); i++) {
		struct sim s = sim_default();
		struct duo_wr w[] = {duo_write_wr(1, s.abuf, 0, 60000, s.bbuf, 0),
				     duo_read_wr(2, s.abuf, 0, 60000, s.bbuf, 0),
				     duo_fetch_add_wr(3, s.abuf, 0, s.bbuf, 0, 1)};

		s.duo->burst = bursts[i];
		s.duo->batch = bursts[i];
		assert_true(duo_post_chain(s.a, w, 3));
		duo_idle(s.duo);
		for (uint64_t k = 1; k <= 3; k++)
			duo_expect(s.duo, &s.a->sent, k, WC_SUCCESS);
		assert_memory_equal(s.abuf->p + 8, s.bbuf->p + 8, 59992);
		sim_end(&s);
	}
}
