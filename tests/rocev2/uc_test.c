/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * UC: like RC without answers; a message with a hole is dropped, the next one arrives (IBTA 9.8.2,
 * 9.8.3).
 */
#include "duo/sim.h"
#include "wire/psn.h"

static struct sim start(uint32_t mtu, uint32_t psn)
{
	return SIM(o.type = QPT_UC, o.mtu = mtu, o.psn[DUO_A] = psn);
}

TEST(every_size_arrives)
{
	static const uint32_t mtus[] = {256, 512, 1024, 2048, 4096};

	for (size_t m = 0; m < COUNT(mtus); m++) {
		struct sim s = start(mtus[m], 0xfffff0);
		const uint32_t sizes[] = {0, 1, mtus[m] - 1, mtus[m], mtus[m] + 1, 30000};

		for (size_t i = 0; i < COUNT(sizes); i++) {
			struct duo_wr w[] = {duo_send_wr(1, s.abuf, i, sizes[i]),
					     duo_write_wr(2, s.abuf, i, sizes[i], s.bbuf, 30000),
					     duo_write_wr(3, s.abuf, i, sizes[i], s.bbuf, 30000)};

			w[2].opcode = WR_WRITE_IMM;
			w[2].imm_or_key = 77;
			assert_true(duo_recv(s.b, 10, s.bbuf, 0, 30000));
			assert_true(duo_recv(s.b, 11, s.bbuf, 0, 0));
			assert_true(duo_post_chain(s.a, w, 3));
			duo_idle(s.duo);
			for (uint64_t k = 1; k <= 3; k++)
				duo_expect(s.duo, &s.a->sent, k, WC_SUCCESS);
			assert_int_equal(duo_expect(s.duo, &s.b->received, 10, WC_SUCCESS)->byte_len, sizes[i]);
			const struct cqe *e = duo_expect(s.duo, &s.b->received, 11, WC_SUCCESS);

			assert_int_equal(e->opcode, WC_RECV_RDMA_WITH_IMM);
			assert_int_equal(e->imm_or_key, 77);
			assert_memory_equal(s.abuf->p + i, s.bbuf->p, sizes[i]);
			assert_memory_equal(s.abuf->p + i, s.bbuf->p + 30000, sizes[i]);
		}
		assert_int_equal(duo_count(s.duo, DUO_B, DUO_ANY), 0); /* never an answer */
		sim_end(&s);
	}
}

/* Any packet of the middle one of three messages is lost: that message is lost, and no other. */
TEST(message_with_a_hole_vanishes_alone)
{
	static const enum wr_opcode ops[] = {WR_SEND, WR_SEND_IMM, WR_WRITE_IMM};

	for (size_t o = 0; o < COUNT(ops); o++) {
		for (int k = 4; k < 8; k++) {
			struct sim s = start(1024, 5);
			struct duo_rule *r = duo_drop(s.duo, DUO_A, DUO_ANY, k);

			for (uint64_t i = 0; i < 3; i++) {
				struct duo_wr w = duo_write_wr(i, s.abuf, i * 4096, 4096, s.bbuf, i * 4096);

				w.opcode = ops[o];
				assert_true(duo_recv(s.b, i, s.bbuf, 20000 + i * 4096, 4096));
				assert_true(duo_post(s.a, &w));
			}
			duo_idle(s.duo);
			assert_int_equal(r->hits, 1);
			for (uint64_t i = 0; i < 3; i++)
				duo_expect(s.duo, &s.a->sent, i, WC_SUCCESS); /* it never knows */
			duo_expect(s.duo, &s.b->received, 0, WC_SUCCESS);
			duo_expect(s.duo, &s.b->received, 1, WC_SUCCESS); /* the WQE serves the next */
			assert_int_equal(s.b->received.n, 2);
			if (ops[o] != WR_WRITE_IMM) {
				assert_memory_equal(s.bbuf->p + 20000, s.abuf->p, 4096);
				assert_memory_equal(s.bbuf->p + 24096, s.abuf->p + 8192, 4096);
			}
			assert_int_equal(duo_count(s.duo, DUO_A, DUO_ANY), 12);
			assert_int_equal(duo_count(s.duo, DUO_B, DUO_ANY), 0);
			assert_int_equal(qp_state(s.b->qp), QPS_RTS);
			sim_end(&s);
		}
	}
}

TEST_ON(message_without_a_receive_wqe_vanishes, start(1024, 5))
{
	struct duo_wr w = duo_send_wr(1, s.abuf, 0, 5000);

	duo_do(s.a, w);
	assert_true(nic_counters(s.b->host->nic)->rx_dropped >= 1);
	assert_true(duo_recv(s.b, 2, s.bbuf, 0, 5000));
	duo_do(s.a, w);
	duo_expect(s.duo, &s.b->received, 2, WC_SUCCESS);
	assert_memory_equal(s.abuf->p, s.bbuf->p, 5000);
}

/* A receive that is posted while a message without one still arrives is not used for its tail. */
TEST_ON(tail_of_a_lost_message_takes_no_wqe, start(1024, 5))
{
	duo_rule(s.duo,
		 (struct duo_rule){.from = DUO_A, .opcode = OP_UC_SEND_LAST, .nth = 0, .fate = DUO_DELAY, .n = 5000});
	duo_must_post(s.a, duo_send_wr(1, s.abuf, 0, 5000));
	duo_run_for(s.duo, 2 * DUO_LATENCY_NS);
	assert_true(duo_recv(s.b, 2, s.bbuf, 0, 5000));
	duo_finish(s.a, 1, WC_SUCCESS);
	assert_int_equal(s.b->received.n, 0);
}

/* With an immediate too: it takes no receive, which others may share. */
TEST(bad_write_is_dropped_in_silence)
{
	for (int i = 0; i < 8; i++) {
		struct duo_options o = duo_options();
		int which = i / 2;

		o.type = QPT_UC;
		if (which == 3)
			o.access = 0;

		struct sim s = sim_start(&o);
		struct duo_wr w = duo_write_wr(1, s.abuf, 0, 1000, s.bbuf, 0);
		uint8_t before[BUF_BYTES];

		memcpy(before, s.bbuf->p, BUF_BYTES);
		if (i % 2)
			w.opcode = WR_WRITE_IMM;
		if (which == 0)
			w.rkey ^= 1;
		if (which == 1)
			w.remote_va += BUF_BYTES - 999;
		if (which == 2)
			w.rkey = duo_buf(s.b->host, 10, MR_LOCAL_WRITE)->mr->key;
		assert_true(duo_recv(s.b, 2, s.bbuf, 0, 0));
		duo_do(s.a, w);
		assert_memory_equal(before, s.bbuf->p, BUF_BYTES);
		assert_int_equal(qp_state(s.b->qp), QPS_RTS);
		assert_true(nic_counters(s.b->host->nic)->rx_dropped >= 1);
		assert_int_equal(rq_posted(qp_rq(s.b->qp)), 1);
		sim_end(&s);
	}
}

TEST(late_and_doubled_packets_do_no_harm)
{
	for (uint64_t seed = 0; seed < 30; seed++) {
		struct duo *d = duo_create(seed, NULL);
		struct duo_options o = duo_options();

		o.type = QPT_UC;
		o.mtu = 256;
		struct duo_pair p = duo_connect(d, &o);
		struct duo_buf *a = duo_buf(&d->host[DUO_A], 64 * 1000, 0);
		struct duo_buf *b = duo_buf(&d->host[DUO_B], 64 * 1000, MR_LOCAL_WRITE);

		duo_fill(a, seed);
		d->faults[DUO_A] = (struct duo_faults){.drop_ppm = 10000,
						       .duplicate_ppm = 10000,
						       .delay_ppm = 10000,
						       .corrupt_ppm = 10000,
						       .delay_ns_max = 3000};
		for (uint64_t i = 0; i < 64; i++) {
			struct duo_wr w = duo_send_wr(i, a, i * 1000, 1000);

			w.opcode = WR_SEND_IMM;
			w.imm_or_key = (uint32_t)i;
			assert_true(duo_recv(p.b, i, b, i * 1000, 1000));
			assert_true(duo_post(p.a, &w));
		}
		duo_idle(d);
		/* Messages arrive whole. A message of a single packet may be late; ours have more. */
		assert_true(p.b->received.n > 10);
		for (size_t i = 0; i < p.b->received.n; i++) {
			const struct cqe *e = duo_expect(d, &p.b->received, i, WC_SUCCESS);

			assert_int_equal(e->byte_len, 1000);
			assert_memory_equal(b->p + i * 1000, a->p + e->imm_or_key * 1000, 1000);
		}
		duo_destroy(d);
	}
}

/* The length is the sender's choice: it costs the receiver neither a WQE nor the QP. */
TEST_ON(message_too_long_vanishes, start(1024, 5))
{
	static const uint32_t lens[] = {3000, 1, 5000, 2501, 2500};
	uint8_t before[BUF_BYTES];

	memcpy(before, s.bbuf->p, BUF_BYTES);
	for (size_t i = 0; i < COUNT(lens); i++) {
		bool fits = lens[i] <= 2500;

		if (i < 2)
			assert_true(duo_recv(s.b, 10 + i, s.bbuf, 0, 2500));
		duo_do(s.a, duo_send_wr(i, s.abuf, 0, lens[i]));
		assert_int_equal(qp_state(s.b->qp), QPS_RTS);
		if (fits)
			assert_int_equal(duo_expect(s.duo, &s.b->received, i == 1 ? 10 : 11, WC_SUCCESS)->byte_len,
					 lens[i]);
		assert_int_equal(s.b->received.n, s.b->received.taken);
		assert_memory_equal(before + 2500, s.bbuf->p + 2500, BUF_BYTES - 2500);
	}
	assert_int_equal(nic_counters(s.b->host->nic)->rx_too_long, 3);
}
