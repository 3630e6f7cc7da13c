/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Packets that are not for a QP, or not from its peer, or not whole: counted, dropped, without any
 * effect and without an answer (IBTA 9.6.1, A17.4).
 */
#include <errno.h>

#include "base/byteorder.h"
#include "duo/sim.h"
#include "wire/deth.h"

enum { LEN = 64 };

/* A packet that B would take: a WRITE for RC and UC, a datagram for UD. */
struct good {
	struct sim s;
	struct flow flow;
	struct bth bth;
	uint8_t ext[32];
	uint32_t ext_len;
	uint8_t payload[LEN];
	uint8_t before[BUF_BYTES];
};

static struct good start(enum qp_type type, uint8_t gid)
{
	struct duo_options o = duo_options();
	struct good g = {.ext_len = RETH_LEN};

	o.type = type;
	o.gid = gid;
	g.s = sim_start(&o);
	g.flow = duo_flow(g.s.duo, DUO_B, gid);
	g.bth = (struct bth){
		.opcode = type == QPT_RC   ? OP_RC_WRITE_ONLY
			  : type == QPT_UC ? OP_UC_WRITE_ONLY
					   : OP_UD_SEND_ONLY,
		.pkey = 0xffff,
		.ackreq = true,
		.dqpn = g.s.b->qpn,
		.psn = o.psn[DUO_A],
	};
	if (type == QPT_UD) {
		g.ext_len = DETH_LEN;
		deth_encode(g.ext, &(struct deth){.qkey = o.qkey, .sqpn = g.s.a->qpn});
	} else {
		reth_encode(g.ext, &(struct reth){.va = g.s.bbuf->iova, .rkey = g.s.bbuf->mr->key, .len = LEN});
	}
	memset(g.payload, 0x5a, LEN);
	assert_true(duo_recv(g.s.b, 1, g.s.bbuf, 0, 200));
	memcpy(g.before, g.s.bbuf->p, BUF_BYTES);
	return g;
}

static uint32_t build(struct good *g, uint8_t buf[DUO_PACKET_MAX])
{
	uint8_t gid = g->s.b->opt.gid;

	return duo_build(g->s.duo, DUO_B, gid, &g->bth, g->ext, g->ext_len, g->payload, LEN, buf);
}

static bool had_effect(struct good *g)
{
	duo_run_for(g->s.duo, 1000);
	return memcmp(g->before, g->s.bbuf->p, BUF_BYTES) != 0 || g->s.b->received.n ||
	       duo_count(g->s.duo, DUO_B, DUO_ANY) || qp_state(g->s.b->qp) != QPS_RTS;
}

/*
 * Delivers a good packet, which shows that the others were dropped for their own reason; ends the
 * test.
 */
static void take(struct good *g)
{
	uint8_t buf[DUO_PACKET_MAX];
	uint32_t len = build(g, buf);

	assert_int_equal(duo_inject(g->s.duo, DUO_B, &g->flow, buf, len), 0);
	assert_true(had_effect(g));
	g->s.b->received.taken = g->s.b->received.n;
	sim_end(&g->s);
}

static const struct {
	enum qp_type type;
	uint8_t gid;
} kinds[] = {
	{QPT_RC, DUO_GID_IPV4}, {QPT_UC, DUO_GID_IPV4}, {QPT_UD, DUO_GID_IPV4},
	{QPT_RC, DUO_GID_IPV6}, {QPT_UC, DUO_GID_IPV6}, {QPT_UD, DUO_GID_IPV6},
};

static uint64_t counter(const struct good *g, size_t offset)
{
	uint64_t v;

	memcpy(&v, (const char *)nic_counters(g->s.b->host->nic) + offset, sizeof(v));
	return v;
}

#define COUNTER(name) offsetof(struct nic_counters, name)

static void expect_drop(struct good *g, const uint8_t *data, uint32_t len, const struct flow *flow, int result,
			size_t which)
{
	uint64_t n = counter(g, which);

	assert_int_equal(duo_inject(g->s.duo, DUO_B, flow, data, len), result);
	assert_false(had_effect(g));
	assert_int_equal(counter(g, which), n + 1);
}

TEST(partition_key_must_match)
{
	static const uint16_t bad[] = {0x0000, 0x8000, 0xfffe, 0x7ffe, 0x1234, 0x9234};

	for (size_t k = 0; k < COUNT(kinds); k++) {
		struct good g = start(kinds[k].type, kinds[k].gid);
		uint8_t buf[DUO_PACKET_MAX];

		for (size_t i = 0; i < COUNT(bad); i++) {
			g.bth.pkey = bad[i];
			uint32_t len = build(&g, buf);

			expect_drop(&g, buf, len, &g.flow, 0, COUNTER(rx_wrong_pkey));
		}
		g.bth.pkey = 0x7fff; /* a limited member may talk to a full one (IBTA 10.9.3) */
		take(&g);
	}
}

TEST(connected_qp_hears_its_peer_alone)
{
	static const enum qp_type connected[] = {QPT_RC, QPT_UC};

	for (size_t t = 0; t < COUNT(connected); t++) {
		for (uint8_t gid = 0; gid < DUO_GIDS; gid++) {
			struct good g = start(connected[t], gid);

			for (int which = 0; which < 4; which++) {
				struct flow flow = g.flow;
				uint8_t buf[DUO_PACKET_MAX];
				struct pkt pkt = {.data = buf, .flow = &flow, .train = 1};

				if (which == 0)
					flow.src[15] ^= 1;
				if (which == 1)
					flow.dst[15] ^= 0x40;
				if (which == 2)
					memcpy(&flow, &(struct flow){.sport = 1, .dport = 4791}, sizeof(flow));
				if (which == 3) /* both ends right, but of the other family */
					flow = duo_flow(g.s.duo, DUO_B, !gid);
				pkt.len = build(&g, buf);
				icrc_seal(NULL, &pkt, 0);
				expect_drop(&g, buf, pkt.len, &flow, 0, COUNTER(rx_wrong_source));
			}
			take(&g);
		}
	}
}

TEST(source_port_does_not_matter)
{
	for (size_t k = 0; k < COUNT(kinds); k++) {
		struct good g = start(kinds[k].type, kinds[k].gid);
		uint8_t buf[DUO_PACKET_MAX];
		struct pkt pkt = {.data = buf, .flow = &g.flow, .train = 1};

		g.flow.sport = 12345;
		g.flow.tos = 0x55;
		g.flow.ttl = 3;
		pkt.len = build(&g, buf);
		icrc_seal(NULL, &pkt, 0);
		assert_int_equal(duo_inject(g.s.duo, DUO_B, &g.flow, buf, pkt.len), 0);
		assert_true(had_effect(&g));
		g.s.b->received.taken = g.s.b->received.n;
		sim_end(&g.s);
	}
}

TEST(unknown_qp_is_nobody)
{
	for (size_t k = 0; k < COUNT(kinds); k++) {
		struct good g = start(kinds[k].type, kinds[k].gid);
		uint32_t qpn = g.s.b->qpn;
		const uint32_t bad[] = {0, 1, qpn ^ 1, qpn ^ 0x20000, qpn ^ 0x800000, 0xffffff, g.s.a->qpn};

		for (size_t i = 0; i < COUNT(bad); i++) {
			uint8_t buf[DUO_PACKET_MAX];

			g.bth.dqpn = bad[i];
			uint32_t len = build(&g, buf);

			expect_drop(&g, buf, len, &g.flow, 0, COUNTER(rx_no_qp));
		}
		g.bth.dqpn = qpn;
		take(&g);
	}
}

TEST(service_must_be_the_qps)
{
	for (size_t k = 0; k < COUNT(kinds); k++) {
		struct good g = start(kinds[k].type, kinds[k].gid);
		uint8_t own = g.bth.opcode;
		static const uint8_t ops[] = {OP_RC_WRITE_ONLY, OP_UC_WRITE_ONLY, OP_RC_SEND_ONLY, OP_UC_SEND_ONLY};

		for (size_t i = 0; i < COUNT(ops); i++) {
			uint8_t buf[DUO_PACKET_MAX];

			if (ops[i] >> 5 == own >> 5)
				continue;
			g.bth.opcode = ops[i];
			uint32_t len = build(&g, buf);

			expect_drop(&g, buf, len, &g.flow, 0, COUNTER(rx_wrong_source));
		}
		g.bth.opcode = own;
		take(&g);
	}
}

/* Any single bit wrong, anywhere: IPv6 has no identification to guess, so none passes. */
TEST(broken_icrc_is_dropped)
{
	for (size_t k = 0; k < COUNT(kinds); k++) {
		struct good g = start(kinds[k].type, kinds[k].gid);
		uint8_t buf[DUO_PACKET_MAX];
		uint32_t len = build(&g, buf);

		if (kinds[k].gid == DUO_GID_IPV4) {
			sim_end(&g.s);
			continue;
		}
		for (uint32_t bit = 0; bit < len * 8; bit++) {
			/* The ICRC does not cover the bits that a router may change: BTH's F, B and
			 * reserved. */
			if (bit / 8 == 4)
				continue;
			buf[bit / 8] ^= (uint8_t)(1 << bit % 8);
			assert_int_equal(duo_inject(g.s.duo, DUO_B, &g.flow, buf, len), -EBADMSG);
			buf[bit / 8] ^= (uint8_t)(1 << bit % 8);
		}
		assert_false(had_effect(&g));
		assert_true(counter(&g, COUNTER(rx_icrc_errors)) > 300);
		take(&g);
	}
}

TEST(truncated_packet_is_malformed)
{
	for (size_t k = 0; k < COUNT(kinds); k++) {
		struct good g = start(kinds[k].type, kinds[k].gid);
		uint8_t buf[DUO_PACKET_MAX];
		uint32_t len = build(&g, buf);
		struct pkt pkt = {.data = buf, .flow = &g.flow, .train = 1};

		for (uint32_t n = 0; n < len; n++)
			assert_int_equal(duo_inject(g.s.duo, DUO_B, &g.flow, buf, n), -EBADMSG);
		assert_false(had_effect(&g));
		/* With a good ICRC, too, when the headers do not fit. */
		for (pkt.len = BTH_LEN + ICRC_LEN; pkt.len < BTH_LEN + g.ext_len + ICRC_LEN; pkt.len++) {
			len = build(&g, buf);
			icrc_seal(NULL, &pkt, 0);
			expect_drop(&g, buf, pkt.len, &g.flow, -EBADMSG, COUNTER(rx_malformed));
		}
		take(&g);
	}
}

TEST(unknown_version_is_malformed)
{
	for (size_t k = 0; k < COUNT(kinds); k++) {
		struct good g = start(kinds[k].type, kinds[k].gid);
		uint8_t buf[DUO_PACKET_MAX];

		for (uint8_t v = 1; v < 16; v++) {
			g.bth.tver = v;
			uint32_t len = build(&g, buf);

			expect_drop(&g, buf, len, &g.flow, -EBADMSG, COUNTER(rx_malformed));
		}
		g.bth.tver = 0;
		take(&g);
	}
}

/* Before RTR and in ERR a QP receives nothing (IBTA 10.3.1). */
TEST(states_in_which_a_qp_is_deaf)
{
	for (size_t k = 0; k < COUNT(kinds); k++) {
		static const enum qp_state deaf[] = {QPS_ERR, QPS_RESET, QPS_INIT};
		struct good g = start(kinds[k].type, kinds[k].gid);

		for (size_t i = 0; i < COUNT(deaf); i++) {
			uint8_t buf[DUO_PACKET_MAX];
			uint32_t len = build(&g, buf);
			uint64_t n = counter(&g, COUNTER(rx_no_qp));

			if (deaf[i] == QPS_INIT)
				assert_int_equal(duo_qp_to_init(g.s.b), 0);
			else
				assert_int_equal(duo_qp_to_state(g.s.b, deaf[i]), 0);
			duo_run_for(g.s.duo, 1);
			assert_int_equal(duo_inject(g.s.duo, DUO_B, &g.flow, buf, len), 0);
			duo_run_for(g.s.duo, 1000);
			assert_memory_equal(g.before, g.s.bbuf->p, BUF_BYTES);
			assert_int_equal(duo_count(g.s.duo, DUO_B, DUO_ANY), 0);
			assert_int_equal(counter(&g, COUNTER(rx_no_qp)), n + 1);
		}
		g.s.b->received.taken = g.s.b->received.n;
		sim_end(&g.s);
	}
}

TEST(destroyed_qp_is_gone)
{
	struct good g = start(QPT_RC, DUO_GID_IPV4);
	uint8_t buf[DUO_PACKET_MAX];
	uint32_t len = build(&g, buf);
	struct duo_qp *extra = duo_qp_create(g.s.b->host, &g.s.b->opt);
	uint32_t qpn = extra->qpn;

	assert_int_equal(duo_qp_to_init(extra), 0);
	assert_int_equal(duo_qp_to_rtr(extra, g.s.a), 0);
	assert_int_equal(nic_counters(g.s.b->host->nic)->qps, 2);
	nic_qp_destroy(g.s.b->host->nic, extra->qp);
	assert_int_equal(nic_counters(g.s.b->host->nic)->qps, 1);
	g.bth.dqpn = qpn;
	len = build(&g, buf);
	assert_int_equal(duo_inject(g.s.duo, DUO_B, &g.flow, buf, len), 0);
	/* The duo still knows it; give it one to destroy. */
	struct qp_init init = {.type = QPT_RC,
			       .pd = g.s.b->host->pd,
			       .send_cq = extra->send_cq,
			       .recv_cq = extra->recv_cq,
			       .cap = g.s.b->opt.cap,
			       .owner = extra};

	assert_int_equal(nic_qp_create(g.s.b->host->nic, &init, &extra->qp), 0);
	extra->qpn = qp_number(extra->qp);
	assert_int_not_equal(extra->qpn, qpn); /* a number is not used again at once */
	g.bth.dqpn = g.s.b->qpn;
	take(&g);
}
