/* SPDX-License-Identifier: BSD-2-Clause */
/* The same engines under RoCEv1's headers: only the addressing and the ICRC differ. */
#include "duo/sim.h"
#include "base/byteorder.h"
#include "wire/encap.h"
#include "wire/grh.h"

enum { QKEY = 0x11111111, TCLASS_LIKE_CE = 0x23 };

static void rocev1(struct nic_config *c, enum duo_side side)
{
	c->transport.protocol = PROTOCOL_ROCEV1;
	c->transport.train_max = 1;
}

static struct sim start(const struct duo_options *o)
{
	return sim_on(duo_create(3, rocev1), o);
}

TEST(rc_moves_every_byte_and_repeats_what_is_lost)
{
	for (uint8_t gid = 0; gid < DUO_GIDS; gid++) {
		struct duo_options o = duo_options();

		o.gid = gid;
		struct sim s = start(&o);
		struct duo_wr w[] = {duo_send_wr(1, s.abuf, 0, 10000), duo_write_wr(2, s.abuf, 3, 20000, s.bbuf, 20000),
				     duo_read_wr(3, s.abuf, 40000, 20000, s.bbuf, 40000)};

		duo_drop(s.duo, DUO_A, OP_RC_WRITE_MIDDLE, 1);
		duo_drop(s.duo, DUO_B, OP_RC_READ_RESPONSE_MIDDLE, 2);
		assert_true(duo_recv(s.b, 10, s.bbuf, 0, 10000));
		assert_true(duo_post_chain(s.a, w, 3));
		duo_idle(s.duo);
		for (uint64_t k = 1; k <= 3; k++)
			duo_expect(s.duo, &s.a->sent, k, WC_SUCCESS);
		duo_expect(s.duo, &s.b->received, 10, WC_SUCCESS);
		assert_memory_equal(s.abuf->p, s.bbuf->p, 10000);
		assert_memory_equal(s.abuf->p + 3, s.bbuf->p + 20000, 20000);
		assert_memory_equal(s.abuf->p + 40000, s.bbuf->p + 40000, 20000);
		sim_end(&s);
	}
}

/* The GRH that arrives is the packet's own (IBTA 8.3), IPv4 or not, and a TClass that looks like ECN's mark is none. */
TEST(a_datagram_arrives_behind_its_own_grh)
{
	for (uint8_t gid = 0; gid < DUO_GIDS; gid++) {
		struct duo_options o = duo_options();
		struct flow flow;
		struct grh grh;

		o.type = QPT_UD;
		o.gid = gid;
		o.qkey = QKEY;
		struct sim s = start(&o);
		struct ah_attr av = duo_av(s.a->host, s.b->host, gid);

		av.traffic_class = TCLASS_LIKE_CE;
		av.hop_limit = 33;
		av.flow_label = 0x54321;
		assert_int_equal(nic_resolve(s.a->host->nic, &av, &flow, NULL), 0);
		assert_ptr_equal(encap_of(&flow), &encaps[ENCAP_ROCEV1]);
		struct duo_wr w = duo_send_wr(1, s.abuf, 0, 1000);

		w.flow = &flow;
		w.dqpn = s.b->qpn;
		w.qkey = QKEY;
		assert_true(duo_recv(s.b, 2, s.bbuf, 0, GRH_LEN + 1000));
		duo_do(s.a, w);
		const struct cqe *e = duo_expect(s.duo, &s.b->received, 2, WC_SUCCESS);

		assert_int_equal(e->flags, WC_GRH);
		assert_int_equal(e->sl, 0);
		grh_decode(&grh, s.bbuf->p);
		assert_int_equal(s.bbuf->p[0] >> 4, GRH_IPVER);
		assert_int_equal(grh.nexthdr, GRH_NEXTHDR_IBA);
		assert_int_equal(grh.paylen, 12 + 8 + 1000 + 4);
		assert_int_equal(grh.tclass, TCLASS_LIKE_CE);
		assert_int_equal(grh.flow_label, 0x54321);
		assert_int_equal(grh.hop_limit, 33);
		assert_memory_equal(grh.sgid, s.a->host->gids[gid].raw, 16);
		assert_memory_equal(grh.dgid, s.b->host->gids[gid].raw, 16);
		assert_memory_equal(s.bbuf->p + GRH_LEN, s.abuf->p, 1000);
		sim_end(&s);
	}
}

/* Without IP there is no ECN (RFC 3168), so no CNP answers a TClass that ends in two ones. */
TEST(no_cnp_answers_a_traffic_class)
{
	struct duo_options o = duo_options();
	struct sim s = start(&o);

	duo_rule(s.duo, (struct duo_rule){.from = DUO_A, .opcode = DUO_ANY, .nth = DUO_ANY, .fate = DUO_MARK_CE});
	duo_do(s.a, duo_write_wr(1, s.abuf, 0, 50000, s.bbuf, 0));
	assert_int_equal(duo_count(s.duo, DUO_B, OP_CNP), 0);
	assert_memory_equal(s.abuf->p, s.bbuf->p, 50000);
	sim_end(&s);
}
