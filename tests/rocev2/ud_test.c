/* SPDX-License-Identifier: BSD-2-Clause */
/* UD: a message is one packet, from any sender, behind 40 bytes with its source. */
#include "duo/sim.h"
#include "base/byteorder.h"
#include "wire/deth.h"

enum { GRH_BYTES = 40, QKEY = 0x11111111 };

struct ud {
	struct sim s;
	struct flow flow;
};

static struct ud start(uint8_t gid)
{
	struct duo_options o = duo_options();
	struct ud u;
	uint32_t ip_mtu;

	o.type = QPT_UD;
	o.gid = gid;
	o.qkey = QKEY;
	u.s = sim_start(&o);
	struct ah_attr av = duo_av(u.s.a->host, u.s.b->host, gid);

	av.traffic_class = 0x20;
	av.hop_limit = 33;
	assert_int_equal(nic_resolve(u.s.a->host->nic, &av, &u.flow, &ip_mtu), 0);
	assert_int_equal(ip_mtu, 9000);
	return u;
}

static struct duo_wr datagram(const struct ud *u, uint64_t id, uint32_t len)
{
	struct duo_wr w = duo_send_wr(id, u->s.abuf, 0, len);

	w.flow = &u->flow;
	w.dqpn = u->s.b->qpn;
	w.qkey = QKEY;
	return w;
}

static void check_grh(const struct ud *u, const uint8_t *p, uint8_t gid, uint32_t udp_payload)
{
	const struct duo_host *a = u->s.a->host, *b = u->s.b->host;

	if (gid == DUO_GID_IPV6) {
		assert_int_equal(p[0] >> 4, 6);
		assert_int_equal((p[0] & 15) << 4 | p[1] >> 4, 0x20);
		assert_int_equal(get_be16(p + 4), 8 + udp_payload);
		assert_int_equal(p[6], 17);
		assert_int_equal(p[7], 33);
		assert_memory_equal(p + 8, a->gids[gid].raw, 16);
		assert_memory_equal(p + 24, b->gids[gid].raw, 16);
		return;
	}
	/* IPv4 stands at the end; what is before it means nothing (IBTA A17.4.5.1). */
	p += 20;
	assert_int_equal(p[0], 0x45);
	assert_int_equal(p[1], 0x20);
	assert_int_equal(get_be16(p + 2), 28 + udp_payload);
	assert_int_equal(p[8], 33);
	assert_int_equal(p[9], 17);
	assert_memory_equal(p + 12, a->gids[gid].raw + 12, 4);
	assert_memory_equal(p + 16, b->gids[gid].raw + 12, 4);
}

TEST(datagrams_to_groups_are_counted)
{
	struct ud u = start(DUO_GID_IPV4);
	struct duo_wr w = datagram(&u, 1, 100);

	duo_do(u.s.a, w);
	w.wr_id = 2;
	w.dqpn = NIC_MCAST_QPN;
	duo_do(u.s.a, w);
	assert_int_equal(nic_counters(u.s.a->host->nic)->tx_packets, 2);
	assert_int_equal(nic_counters(u.s.a->host->nic)->tx_multicast, 1);
	assert_int_equal(nic_counters(u.s.b->host->nic)->rx_multicast, 0);
	sim_end(&u.s);
}

TEST(datagram_arrives_behind_its_grh)
{
	static const uint32_t sizes[] = {0, 1, 2, 3, 4, 100, 1023, 1024, 4096};

	for (uint8_t gid = 0; gid < DUO_GIDS; gid++) {
		for (int imm = 0; imm < 2; imm++) {
			struct ud u = start(gid);
			struct sim *s = &u.s;

			for (size_t i = 0; i < COUNT(sizes); i++) {
				struct duo_wr w = datagram(&u, i, sizes[i]);
				uint32_t padded = (sizes[i] + 3) / 4 * 4;

				w.opcode = imm ? WR_SEND_IMM : WR_SEND;
				w.imm_or_key = 99;
				memset(s->bbuf->p, 0xee, 5000);
				assert_true(duo_recv(s->b, i, s->bbuf, 0, GRH_BYTES + sizes[i]));
				assert_true(duo_post(s->a, &w));
				duo_idle(s->duo);
				assert_int_equal(duo_expect(s->duo, &s->a->sent, i, WC_SUCCESS)->opcode, WC_SEND);
				const struct cqe *e = duo_expect(s->duo, &s->b->received, i, WC_SUCCESS);

				assert_int_equal(e->byte_len, GRH_BYTES + sizes[i]);
				assert_int_equal(e->src_qp, s->a->qpn);
				assert_int_equal(e->flags, imm ? WC_GRH | WC_WITH_IMM : WC_GRH);
				assert_int_equal(e->opcode, WC_RECV);
				assert_int_equal(e->sl, gid == DUO_GID_IPV4 ? 10 : 9);
				if (imm)
					assert_int_equal(e->imm_or_key, 99);
				check_grh(&u, s->bbuf->p, gid, 12 + 8 + 4 * (uint32_t)imm + padded + 4);
				assert_memory_equal(s->bbuf->p + GRH_BYTES, s->abuf->p, sizes[i]);
				assert_int_equal(s->bbuf->p[GRH_BYTES + sizes[i]], 0xee);
			}
			assert_int_equal(duo_count(s->duo, DUO_B, DUO_ANY), 0);
			sim_end(s);
		}
	}
}

TEST(wrong_qkey_is_dropped)
{
	struct ud u = start(DUO_GID_IPV4);
	struct duo_wr w = datagram(&u, 1, 100);

	assert_true(duo_recv(u.s.b, 2, u.s.bbuf, 0, 200));
	w.qkey ^= 1;
	duo_do(u.s.a, w);
	assert_int_equal(u.s.b->received.n, 0);
	assert_int_equal(nic_counters(u.s.b->host->nic)->rx_wrong_source, 1);
	assert_int_equal(rq_posted(qp_rq(u.s.b->qp)), 1);
	sim_end(&u.s);
}

/* IBTA 10.2.5: with its high bit set, a WR's Q_Key stands for that of the QP. */
TEST(controlled_qkey_is_the_qps_own)
{
	struct ud u = start(DUO_GID_IPV4);
	struct duo_wr w = datagram(&u, 1, 100);

	assert_true(duo_recv(u.s.b, 2, u.s.bbuf, 0, 200));
	w.qkey = 0x80000000;
	duo_do(u.s.a, w);
	duo_expect(u.s.duo, &u.s.b->received, 2, WC_SUCCESS);
	sim_end(&u.s);
}

TEST(no_receive_wqe_is_a_silent_drop)
{
	struct ud u = start(DUO_GID_IPV4);

	duo_must_post(u.s.a, datagram(&u, 1, 100));
	duo_finish(u.s.a, 1, WC_SUCCESS);
	assert_int_equal(nic_counters(u.s.b->host->nic)->rx_dropped, 1);
	assert_int_equal(qp_state(u.s.b->qp), QPS_RTS);
	sim_end(&u.s);
}

/* Any sender with the Q_Key may send such a datagram: it takes no receive, and the QP lives on. */
TEST(datagram_longer_than_the_receive_is_dropped)
{
	static const uint32_t lens[] = {1000, 101, 4096, 100};

	for (int shared = 0; shared < 2; shared++) {
		struct duo_options o = duo_options();
		struct ud u = start(DUO_GID_IPV4);
		struct duo_qp *b = u.s.b;
		struct sge sge = duo_sge(u.s.bbuf, 0, GRH_BYTES + 100);
		uint8_t before[BUF_BYTES];
		struct srq *srq;

		if (shared) {
			assert_int_equal(nic_srq_create(b->host->nic, b->host->pd,
							&(struct srq_init){.max_wr = 4, .max_sge = 1}, &srq),
					 0);
			o.type = QPT_UD;
			o.srq[DUO_B] = srq;
			b = duo_connect(u.s.duo, &o).b;
			assert_true(duo_post_srq(srq, 2, &sge, 1));
		} else {
			assert_true(duo_post_recv(b, 2, &sge, 1));
		}
		memcpy(before, u.s.bbuf->p, BUF_BYTES);
		for (size_t i = 0; i < COUNT(lens); i++) {
			struct duo_wr w = datagram(&u, i, lens[i]);

			w.dqpn = b->qpn;
			duo_do(u.s.a, w);
			assert_int_equal(qp_state(b->qp), QPS_RTS);
			if (i + 1 == COUNT(lens))
				break;
			assert_int_equal(b->received.n, 0);
			assert_int_equal(nic_counters(b->host->nic)->rx_too_long, i + 1);
			assert_memory_equal(before, u.s.bbuf->p, BUF_BYTES);
		}
		/* The receive that they did not take serves the one that fits. */
		assert_int_equal(duo_expect(u.s.duo, &b->received, 2, WC_SUCCESS)->byte_len, GRH_BYTES + 100);
		assert_memory_equal(u.s.bbuf->p + GRH_BYTES, u.s.abuf->p, 100);
		assert_int_equal(nic_counters(b->host->nic)->rx_dropped, 0);
		sim_end(&u.s);
	}
}

/* 40 bytes short is a common mistake: nothing is touched. */
TEST(receive_without_room_for_the_grh_takes_nothing)
{
	static const uint32_t rooms[] = {0, 39, 40, 100, 139};

	for (size_t i = 0; i < COUNT(rooms); i++) {
		struct ud u = start(DUO_GID_IPV4);
		uint8_t before[BUF_BYTES];

		memcpy(before, u.s.bbuf->p, BUF_BYTES);
		assert_true(duo_recv(u.s.b, 2, u.s.bbuf, 0, rooms[i]));
		duo_must_post(u.s.a, datagram(&u, 1, 100));
		duo_finish(u.s.a, 1, WC_SUCCESS);
		assert_int_equal(nic_counters(u.s.b->host->nic)->rx_too_long, 1);
		assert_memory_equal(before, u.s.bbuf->p, BUF_BYTES);
		sim_end(&u.s);
	}
}

TEST(datagram_above_the_path_mtu_is_a_length_error)
{
	struct ud u = start(DUO_GID_IPV4);

	duo_must_post(u.s.a, datagram(&u, 1, 4097));
	duo_finish(u.s.a, 1, WC_LOC_LEN_ERR);
	assert_int_equal(duo_count(u.s.duo, DUO_A, DUO_ANY), 0);
	sim_end(&u.s);
}

/* One QP, many destinations, in the order posted; each has its own address. */
TEST(datagrams_to_many_qps_keep_their_order)
{
	struct ud u = start(DUO_GID_IPV4);
	struct duo_options o = u.s.b->opt;
	struct duo_qp *to[4] = {u.s.b};

	for (int i = 1; i < 4; i++) {
		to[i] = duo_qp_create(u.s.b->host, &o);
		assert_int_equal(duo_qp_to_init(to[i]), 0);
		assert_int_equal(duo_qp_to_rtr(to[i], NULL), 0);
	}
	for (uint64_t i = 0; i < 60; i++) {
		struct duo_wr w = datagram(&u, i, (uint32_t)i);

		w.dqpn = to[i % 4]->qpn;
		assert_true(duo_recv(to[i % 4], i, u.s.bbuf, 0, 200));
		assert_true(duo_post(u.s.a, &w));
	}
	duo_idle(u.s.duo);
	for (uint64_t i = 0; i < 60; i++) {
		duo_expect(u.s.duo, &u.s.a->sent, i, WC_SUCCESS);
		assert_int_equal(duo_expect(u.s.duo, &to[i % 4]->received, i, WC_SUCCESS)->byte_len, GRH_BYTES + i);
	}
	sim_end(&u.s);
}

/* The address handle's values at the post count, not later changes. */
TEST(address_is_copied_at_post)
{
	struct ud u = start(DUO_GID_IPV4);

	assert_true(duo_recv(u.s.b, 2, u.s.bbuf, 0, 200));
	duo_must_post(u.s.a, datagram(&u, 1, 100));
	memset(&u.flow, 0xff, sizeof(u.flow));
	duo_finish(u.s.a, 1, WC_SUCCESS);
	duo_expect(u.s.duo, &u.s.b->received, 2, WC_SUCCESS);
	sim_end(&u.s);
}

TEST(solicited_datagram_wakes)
{
	for (int solicited = 0; solicited < 2; solicited++) {
		struct ud u = start(DUO_GID_IPV4);
		struct duo_wr w = datagram(&u, 1, 100);

		w.flags |= solicited ? WR_SOLICITED : 0;
		cq_arm(u.s.b->recv_cq, true);
		assert_true(duo_recv(u.s.b, 2, u.s.bbuf, 0, 200));
		duo_do(u.s.a, w);
		duo_expect(u.s.duo, &u.s.b->received, 2, WC_SUCCESS);
		assert_int_equal(u.s.b->host->cq_event_count, solicited);
		sim_end(&u.s);
	}
}

/* Loss, duplication and disorder are the program's business; a corrupt datagram never arrives. */
TEST(what_arrives_is_whole)
{
	struct ud u = start(DUO_GID_IPV6);

	u.s.duo->faults[DUO_A] = (struct duo_faults){.drop_ppm = 100000,
						     .duplicate_ppm = 100000,
						     .delay_ppm = 100000,
						     .corrupt_ppm = 100000,
						     .delay_ns_max = 3000};
	for (uint64_t i = 0; i < 60; i++)
		assert_true(duo_recv(u.s.b, i, u.s.bbuf, i * 1000, 1000));
	for (uint64_t i = 0; i < 50; i++)
		duo_must_post(u.s.a, datagram(&u, i, 500));
	duo_idle(u.s.duo);
	for (uint64_t i = 0; i < 50; i++)
		duo_expect(u.s.duo, &u.s.a->sent, i, WC_SUCCESS);
	for (size_t i = 0; i < u.s.b->received.n; i++) {
		duo_expect(u.s.duo, &u.s.b->received, i, WC_SUCCESS);
		assert_memory_equal(u.s.bbuf->p + i * 1000 + GRH_BYTES, u.s.abuf->p, 500);
	}
	assert_true(u.s.b->received.n > 30 && u.s.b->received.n < 60);
	sim_end(&u.s);
}
