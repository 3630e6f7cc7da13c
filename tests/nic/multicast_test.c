/* SPDX-License-Identifier: BSD-2-Clause */
/* Packets to a multicast group (IBTA 10.5.2, 9.6.1.2.3): which of them count, and which attached queue pair gets a
 * copy. */
#include <errno.h>

#include "duo/sim.h"
#include "wire/deth.h"

enum { QKEY = 0x11111111, BYTES = 100, GRH_BYTES = 40, SENDER = 0x4711 };

static const uint8_t group[16] = {[10] = 0xff, [11] = 0xff, [12] = 239, [13] = 1, [14] = 2, [15] = 3};
static const uint8_t other_group[16] = {[10] = 0xff, [11] = 0xff, [12] = 239, [13] = 1, [14] = 2, [15] = 4};

/* B has two UD queue pairs, attached and with a receive each. */
struct members {
	struct sim s;
	struct duo_qp *qp[2];
	struct nic *nic;
};

static struct members members_start(void)
{
	struct duo_options o = duo_options();
	struct members m;

	o.type = QPT_UD;
	o.qkey = QKEY;
	m.s = sim_start(&o);
	m.qp[0] = m.s.b;
	m.qp[1] = duo_connect(m.s.duo, &o).b;
	m.nic = m.s.b->host->nic;
	for (int i = 0; i < 2; i++) {
		assert_int_equal(nic_mcast_attach(m.nic, m.qp[i]->qp, group), 0);
		assert_true(duo_recv(m.qp[i], 50, m.s.bbuf, 1000 * (uint64_t)i, GRH_BYTES + BYTES));
	}
	return m;
}

struct datagram {
	const uint8_t *to; /* NULL: B's own address */
	uint32_t qpn;
	uint8_t opcode;
	uint16_t pkey;
	uint32_t qkey;
};

static const struct datagram good = {group, NIC_MCAST_QPN, OP_UD_SEND_ONLY, NIC_PKEY_DEFAULT, QKEY};

static void arrive(struct members *m, const struct datagram *d)
{
	uint8_t buf[DUO_PACKET_MAX], deth[DETH_LEN], payload[BYTES];
	struct bth bth = {.opcode = d->opcode, .migreq = true, .pkey = d->pkey, .dqpn = d->qpn};
	struct flow flow = duo_flow(m->s.duo, DUO_B, DUO_GID_IPV4);
	struct pkt pkt = {.data = buf, .flow = &flow, .train = 1};

	memset(payload, 0x5a, sizeof(payload));
	deth_encode(deth, &(struct deth){.qkey = d->qkey, .sqpn = SENDER});
	pkt.len = duo_build(m->s.duo, DUO_B, DUO_GID_IPV4, &bth, deth, DETH_LEN, payload, BYTES, buf);
	if (d->to)
		memcpy(flow.dst, d->to, sizeof(flow.dst));
	icrc_seal(NULL, &pkt, 0);
	duo_inject(m->s.duo, DUO_B, &flow, buf, pkt.len);
	duo_idle(m->s.duo);
}

static void expect_copy(struct members *m, int i)
{
	const struct cqe *e = duo_expect(m->s.duo, &m->qp[i]->received, 50, WC_SUCCESS);

	assert_int_equal(e->src_qp, SENDER);
	assert_int_equal(e->byte_len, GRH_BYTES + BYTES);
	/* The GRH says to which group. */
	assert_memory_equal(m->s.bbuf->p + 1000 * i + 36, group + 12, 4);
	assert_int_equal(m->s.bbuf->p[1000 * i + GRH_BYTES], 0x5a);
}

TEST(each_attached_qp_gets_a_copy)
{
	struct members m = members_start();

	assert_int_equal(nic_mcast_attach(m.nic, m.qp[0]->qp, group), 0); /* attached already: still one copy */
	assert_int_equal(nic_qp_groups(m.qp[0]->qp), 1);
	arrive(&m, &good);
	expect_copy(&m, 0);
	expect_copy(&m, 1);
	assert_int_equal(nic_counters(m.nic)->rx_multicast, 1);
	sim_end(&m.s);
}

TEST(what_is_not_for_the_group_reaches_nobody)
{
	static const struct datagram rows[] = {
		{NULL, NIC_MCAST_QPN, OP_UD_SEND_ONLY, NIC_PKEY_DEFAULT, QKEY},
		{other_group, NIC_MCAST_QPN, OP_UD_SEND_ONLY, NIC_PKEY_DEFAULT, QKEY},
		{group, NIC_MCAST_QPN - 1, OP_UD_SEND_ONLY, NIC_PKEY_DEFAULT, QKEY},
		{group, NIC_MCAST_QPN, OP_RC_SEND_ONLY, NIC_PKEY_DEFAULT, QKEY},
		{group, NIC_MCAST_QPN, OP_RC_SEND_ONLY + 0x20, NIC_PKEY_DEFAULT, QKEY},
		{group, NIC_MCAST_QPN, OP_UD_SEND_ONLY, 0x8001, QKEY},
		{group, NIC_MCAST_QPN, OP_UD_SEND_ONLY, NIC_PKEY_DEFAULT, QKEY ^ 1},
	};
	struct members m = members_start();

	for (size_t i = 0; i < COUNT(rows); i++) {
		arrive(&m, &rows[i]);
		assert_int_equal(m.qp[0]->received.n, 0);
		assert_int_equal(m.qp[1]->received.n, 0);
	}
	arrive(&m, &good);
	expect_copy(&m, 0);
	expect_copy(&m, 1);
	sim_end(&m.s);
}

/* What one lacks is no other's affair, and no error. */
TEST(a_member_that_cannot_take_it_misses_alone)
{
	enum { NO_RECEIVE, SHORT_RECEIVE, RESET, DETACHED, DESTROYED, KINDS };

	for (int kind = 0; kind < KINDS; kind++) {
		struct members m = members_start();

		if (kind == NO_RECEIVE || kind == SHORT_RECEIVE) {
			assert_int_equal(nic_mcast_detach(m.nic, m.qp[1]->qp, group), 0);
			arrive(&m, &good);
			expect_copy(&m, 0);
			assert_int_equal(nic_mcast_attach(m.nic, m.qp[1]->qp, group), 0);
			if (kind == SHORT_RECEIVE)
				assert_true(duo_recv(m.qp[0], 51, m.s.bbuf, 0, GRH_BYTES + BYTES - 1));
		} else if (kind == RESET) {
			assert_int_equal(duo_qp_to_state(m.qp[0], QPS_RESET), 0);
		} else if (kind == DETACHED) {
			assert_int_equal(nic_mcast_detach(m.nic, m.qp[0]->qp, group), 0);
			assert_int_equal(nic_mcast_detach(m.nic, m.qp[0]->qp, group), -EINVAL);
		} else {
			duo_qp_destroy(m.qp[0]);
		}
		arrive(&m, &good);
		expect_copy(&m, 1);
		if (kind != DESTROYED)
			assert_int_equal(m.qp[0]->received.taken, m.qp[0]->received.n);
		sim_end(&m.s);
	}
}

TEST(limits_are_kept)
{
	struct members m = members_start();
	uint8_t gid[16];

	memcpy(gid, other_group, sizeof(gid));
	for (uint8_t i = 1; i < NIC_MAX_MCAST_GROUPS; i++) {
		gid[15] = (uint8_t)(100 + i);
		assert_int_equal(nic_mcast_attach(m.nic, m.qp[0]->qp, gid), 0);
	}
	gid[15] = 99;
	assert_int_equal(nic_mcast_attach(m.nic, m.qp[0]->qp, gid), -ENOMEM);
	assert_false(nic_mcast_has(m.nic, gid));
	assert_true(nic_mcast_has(m.nic, group));
	assert_int_equal(nic_mcast_attach(m.nic, m.qp[0]->qp, m.s.b->host->gids[0].raw), -EINVAL);
	m.s.b->host->heap.gets_left = 0;
	assert_int_equal(nic_mcast_detach(m.nic, m.qp[0]->qp, group), 0);
	assert_int_equal(nic_mcast_attach(m.nic, m.qp[0]->qp, gid), -ENOMEM);
	m.s.b->host->heap.gets_left = -1;
	sim_end(&m.s);
}
