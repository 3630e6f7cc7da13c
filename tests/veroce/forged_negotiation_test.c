/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Unproved packets decide nothing (veRoCE 13.1, src/transport/veroce/caps.c): strangers who know a peer's address
 * and the QPNs can confirm neither that it speaks veRoCE nor that it does not, unless they hit the one packet
 * that is due; connections to peers without veRoCE go on.
 */
#include "nic/state.h"
#include "support/test.h"
#include "veroce/veroce.h"
#include "veroce/caps.h"
#include "transport/veroce/caps.h"
#include "transport/veroce/veroce.h"

enum { MS = 1000000, MTU = 1024 };

static bool is_veroce(const struct duo_packet *p, const void *arg)
{
	return p->veroce;
}

/* B is a card without veRoCE: it receives and sends none of its packets. */
static struct sim with_a_card(const struct duo_options *o)
{
	struct duo *duo;

	veroce_opt = veroce_options();
	veroce_opt.protocol[DUO_A] = PROTOCOL_AUTO;
	veroce_opt.protocol[DUO_B] = PROTOCOL_ROCEV2;
	duo = duo_create(1, veroce_tweak);
	duo_rule(duo,
		 (struct duo_rule){
			 .from = DUO_ANY, .opcode = DUO_ANY, .nth = DUO_ANY, .match = is_veroce, .fate = DUO_DROP});

	struct sim s = sim_on(duo, o);

	duo_run_for(s.duo, 5 * MS);
	return s;
}

static const uint8_t junk[4096];

/* Every kind of veRoCE packet, with PSNs anywhere but where one is due. */
static void forge_each(struct sim *s, struct prng *r)
{
	for (uint32_t opcode = 0; opcode < 256; opcode++) {
		const struct opcode_info *info = veroce_opcode_info((uint8_t)opcode);
		uint8_t sack[SACKETH_LEN] = {0};
		struct veroce_packet p = {
			.bth = {.opcode = (uint8_t)opcode,
				.dqpn = s->a->qpn,
				.psn = psn_add(s->a->opt.psn[DUO_B], 1 + (uint32_t)prng_below(r, 0xfffffe))},
			.msn = 1,
			.aeth = {.syndrome = prng_below(r, 2) ? 0x1f : 0x60 + (uint8_t)prng_below(r, 5), .msn = 1},
			.reth = {.va = s->abuf->iova, .rkey = s->abuf->mr->key, .len = 8},
		};

		if (!info || opcode_is_caps((uint8_t)opcode))
			continue;
		if (info->flags & F_PAYLOAD)
			p.payload_len = info->flags & F_FULL ? MTU : 8;
		if (info->headers & H_SACKETH) {
			p.sack_count = 1;
			p.sacks = sack;
		}
		veroce_forge(s->duo, DUO_A, &p, junk);
	}
}

/* In both directions, without earlier traffic: asking takes 100 ms at most. */
static void expect_messages(struct sim *s, bool b_first)
{
	struct duo_wr w = duo_write_wr(1, s->abuf, 0, 5000, s->bbuf, 20000);
	struct duo_wr v = duo_write_wr(2, s->bbuf, 0, 5000, s->abuf, 20000);

	for (int i = 0; i < 2; i++) {
		assert_true(b_first == i ? duo_post(s->a, &w) : duo_post(s->b, &v));
		duo_idle(s->duo);
	}
	duo_expect(s->duo, &s->a->sent, 1, WC_SUCCESS);
	duo_expect(s->duo, &s->b->sent, 2, WC_SUCCESS);
	assert_memory_equal(s->bbuf->p + 20000, s->abuf->p, 5000);
	assert_memory_equal(s->abuf->p + 20000, s->bbuf->p, 5000);
}

TEST(packets_of_strangers_confirm_nothing)
{
	for (int i = 0; i < 16; i++) {
		struct duo_options o = duo_options();
		struct sim s = with_a_card(&o);
		struct prng r;
		bool ready = i & 2; /* it has sent, and fallen back */

		prng_init(&r, 1 + (uint64_t)i);
		if (ready)
			expect_messages(&s, i & 1);
		forge_each(&s, &r);
		duo_run_for(s.duo, i & 4 ? 300 * MS : 1);
		forge_each(&s, &r);
		assert_int_equal(pair_speaks(s.a->qp->veroce->pair, s.duo->now_ns) == PAIR_VEROCE, false);
		expect_messages(&s, i & 1);
		assert_int_equal(s.a->qp->ops == &rc_ops, true);
		sim_end(&s);
	}
}

/*
 * A request in the peer's name has both QPNs right: veRoCE is then tried, and given up if no answer
 * comes.
 */
TEST(a_question_of_a_stranger_costs_time_and_no_connection)
{
	static const uint8_t timeouts[] = {10, 14, 0};

	for (size_t i = 0; i < 2 * COUNT(timeouts); i++) {
		struct duo_options o = duo_options();
		struct sim s;
		struct veroce_packet p = {
			.bth = {.opcode = OP_CAPS_REQUEST},
			.caps = {.magic = CAPS_MAGIC,
				 .version = CAPS_VERSION,
				 .profile = 3,
				 .flags = VEROCE_CAPS_FLAGS | CAPS_SEAL,
				 .mtu_code = 3,
				 .paths = 1,
				 .nonce = 0x12345678},
		};

		o.timeout = timeouts[i / 2];
		s = with_a_card(&o);
		p.bth.dqpn = s.a->qpn;
		p.bth.psn = s.a->opt.psn[DUO_A];
		p.caps.source_qpn = s.b->qpn;
		veroce_forge(s.duo, DUO_A, &p, NULL);
		assert_false(veroce_is_confirmed(s.a->qp->veroce));
		assert_int_equal(pair_speaks(s.a->qp->veroce->pair, s.duo->now_ns), PAIR_UNKNOWN);
		expect_messages(&s, i & 1);
		assert_int_equal(nic_counters(s.a->host->nic)->fallbacks, 1);
		sim_end(&s);
	}
}

/*
 * RoCEv2 packets in the peer's name, to an end that has sent nothing yet: only the request that is
 * due proves the peer.
 */
TEST(packets_of_strangers_deny_nothing)
{
	static const uint8_t opcodes[] = {OP_RC_SEND_ONLY, OP_RC_ACK, OP_RC_SEND_MIDDLE, OP_RC_READ_RESPONSE_ONLY};

	for (size_t i = 0; i < 2 * COUNT(opcodes); i++) {
		bool known = i & 1; /* that the host speaks veRoCE */
		struct veroce_options v = veroce_options();
		struct duo_options o = duo_options();
		uint8_t aeth[4] = {0x1f, 0, 0, 1};
		uint8_t opcode = opcodes[i / 2];
		uint32_t fallbacks;
		struct duo_rule *wall;
		struct sim s;

		v.protocol[DUO_A] = v.protocol[DUO_B] = PROTOCOL_AUTO;
		s = veroce_start_sim(&v, &o, 1);
		if (!known)
			pair_learn(s.a->qp->veroce->pair, PAIR_UNKNOWN, s.duo->now_ns);
		wall = duo_rule(s.duo, (struct duo_rule){.from = DUO_ANY,
							 .opcode = DUO_ANY,
							 .nth = DUO_ANY,
							 .match = is_veroce,
							 .fate = DUO_DROP});
		struct duo_pair p = duo_connect(s.duo, &o);

		s.a = p.a;
		s.b = p.b;
		fallbacks = (uint32_t)nic_counters(s.a->host->nic)->fallbacks;
		for (uint32_t k = 0; k < 1000; k++) {
			struct bth bth = {
				.opcode = opcode,
				.pkey = 0xffff,
				.dqpn = s.a->qpn,
				.psn = psn_add(s.a->opt.psn[DUO_B], opcode == OP_RC_SEND_ONLY ? 1 + k * 7919 : k)};
			bool acks = opcode == OP_RC_ACK || opcode == OP_RC_READ_RESPONSE_ONLY;

			duo_forge(s.duo, DUO_A, DUO_GID_IPV4, &bth, aeth, acks ? 4 : 0, junk,
				  opcode == OP_RC_ACK           ? 0
				  : opcode == OP_RC_SEND_MIDDLE ? MTU
								: 8);
			if (opcode == OP_RC_SEND_MIDDLE && !k)
				break;
		}
		assert_int_equal(nic_counters(s.a->host->nic)->fallbacks, fallbacks);
		wall->off = true;
		expect_messages(&s, i & 2);
		assert_int_equal(nic_counters(s.a->host->nic)->fallbacks, fallbacks);
		assert_true(s.a->qp->ops == &veroce_ops && s.b->qp->ops == &veroce_ops);
		sim_end(&s);
	}
}
