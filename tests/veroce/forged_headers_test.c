/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * veRoCE: packets that are not from the peer, not for the QP, or outside the PSN spaces, made by someone
 * who knows addresses and numbers. They are dropped and counted, and change no state.
 */
#include "support/test.h"
#include "veroce/forgery.h"
#include "transport/veroce/caps.h"
#include "transport/veroce/work.h"

TEST(what_a_stranger_sends_is_dropped)
{
	static const uint8_t opcodes[] = {OP_RC_WRITE_ONLY, OP_RC_READ_REQUEST,      OP_RC_ACK,
					  OP_CAPS_REQUEST,  OP_RTT_REQUEST,          OP_CNP,
					  OP_SLOW_PACKET,   OP_RC_READ_RESPONSE_ONLY};
	struct sim s = veroce_default();
	uint64_t sent = count_b(&s)->tx_packets;

	for (size_t i = 0; i < COUNT(opcodes); i++) {
		struct veroce_packet p = request(&s, opcodes[i], 0);
		struct flow flow = duo_flow(s.duo, DUO_B, DUO_GID_IPV4);
		uint8_t buf[DUO_PACKET_MAX];
		struct pkt pkt = {.data = buf, .flow = &flow, .train = 1};

		p.bth.pkey = 0xffff;
		p.caps = (struct capseth){
			.magic = CAPS_MAGIC, .version = CAPS_VERSION, .profile = 3, .source_qpn = s.a->qpn};
		p.bth.psn = opcodes[i] == OP_CAPS_REQUEST ? B_PSN : A_PSN;
		flow.dport = VEROCE_UDP_PORT;
		flow.src[15] ^= 0x80;
		pkt.len = veroce_encode_headers(buf, &p) + ICRC_LEN;
		duo_seal(s.duo, DUO_B, &pkt);
		duo_inject(s.duo, DUO_B, &flow, buf, pkt.len);
		assert_int_equal(count_b(&s)->rx_wrong_source, i + 1);
	}
	duo_idle(s.duo);
	assert_int_equal(count_b(&s)->tx_packets, sent);
	expect_untouched(&s);
	expect_alive(&s, 1);
	sim_end(&s);
}

TEST(headers_that_are_not_for_the_qp_are_dropped)
{
	enum wrong { QPN, PKEY, TVER, ICRC, OPCODE, LENGTH, WRONGS };
	struct sim s = veroce_default();

	for (enum wrong wrong = 0; wrong < WRONGS; wrong++) {
		struct veroce_packet p = request(&s, OP_RC_WRITE_ONLY, 4);
		struct flow flow = duo_flow(s.duo, DUO_B, DUO_GID_IPV4);
		struct nic_counters before = *count_b(&s);
		uint8_t buf[DUO_PACKET_MAX];
		struct pkt pkt = {.data = buf, .flow = &flow, .train = 1};

		flow.dport = VEROCE_UDP_PORT;
		p.bth.dqpn ^= wrong == QPN;
		p.bth.pkey = wrong == PKEY ? 0x1234 : 0xffff;
		p.bth.tver = wrong == TVER ? 6 : 0;
		pkt.len = veroce_encode_headers(buf, &p);
		memcpy(buf + pkt.len, junk, 4);
		pkt.len += 4 + ICRC_LEN - (wrong == LENGTH ? 1 : 0);
		if (wrong == OPCODE)
			buf[0] = 0x1f;
		duo_seal(s.duo, DUO_B, &pkt);
		buf[pkt.len - 1] ^= wrong == ICRC;
		duo_inject(s.duo, DUO_B, &flow, buf, pkt.len);
		assert_int_equal(count_b(&s)->rx_no_qp - before.rx_no_qp, wrong == QPN);
		assert_int_equal(count_b(&s)->rx_wrong_pkey - before.rx_wrong_pkey, wrong == PKEY);
		assert_int_equal(count_b(&s)->rx_icrc_errors - before.rx_icrc_errors, wrong == ICRC);
		assert_int_equal(count_b(&s)->rx_malformed - before.rx_malformed,
				 wrong == TVER || wrong == OPCODE || wrong == LENGTH);
	}
	expect_untouched(&s);
	expect_alive(&s, 1);
	sim_end(&s);
}

static struct veroce_packet caps(const struct sim *s, uint8_t opcode)
{
	return (struct veroce_packet){
		.bth = {.opcode = opcode, .dqpn = s->a->qpn, .psn = A_PSN},
		.caps = {.magic = CAPS_MAGIC,
			 .version = CAPS_VERSION,
			 .profile = 3,
			 .rx_window_q = 128,
			 .rx_window_r = 128,
			 .mtu_code = 3,
			 .paths = 1,
			 .source_qpn = s->b->qpn},
	};
}

TEST(capabilities_of_others_are_not_believed)
{
	enum wrong { MAGIC, VERSION, SOURCE, PSN, NONCE, WRONGS };
	struct sim s = veroce_default();
	size_t answers = duo_count(s.duo, DUO_A, OP_CAPS_RESPONSE);

	for (enum wrong wrong = 0; wrong < WRONGS; wrong++) {
		struct veroce_packet p = caps(&s, wrong == NONCE ? OP_CAPS_RESPONSE : OP_CAPS_REQUEST);
		uint64_t dropped = count_a(&s)->rx_dropped;

		p.caps.magic ^= wrong == MAGIC;
		p.caps.version += wrong == VERSION;
		p.caps.source_qpn ^= wrong == SOURCE;
		p.bth.psn -= wrong == PSN;
		p.caps.nonce = 0x12345678;
		veroce_forge(s.duo, DUO_A, &p, NULL);
		assert_int_equal(count_a(&s)->rx_dropped, dropped + 1);
	}
	duo_idle(s.duo);
	assert_int_equal(duo_count(s.duo, DUO_A, OP_CAPS_RESPONSE), answers);
	expect_alive(&s, 1);
	sim_end(&s);
}

/* 4.2: no peer's window is below the base window, and no more than ours is ever outstanding. */
TEST(windows_that_cannot_be_are_bounded)
{
	static const struct {
		uint32_t told, taken;
	} rows[] = {{0, 128}, {1, 128}, {127, 128}, {129, 129}, {65537, 65536}, {0xffffff, 65536}};

	for (size_t i = 0; i < 2 * COUNT(rows); i++) {
		struct sim s = veroce_default();
		const struct veroce *vr = s.a->qp->veroce;
		struct veroce_packet p = caps(&s, OP_CAPS_RESPONSE);
		struct duo_rule *lost = post_two(&s); /* some time, it comes in the middle of work */

		p.caps.nonce = vr->nonce;
		p.caps.flags = VEROCE_CAPS_FLAGS | CAPS_SEAL;
		p.caps.own_nonce = vr->peer_nonce;
		*(i & 1 ? &p.caps.rx_window_q : &p.caps.rx_window_r) = rows[i / 2].told;
		veroce_forge(s.duo, DUO_A, &p, NULL);
		assert_int_equal(i & 1 ? vr->q_window : vr->r_window, rows[i / 2].taken);
		assert_int_equal(i & 1 ? vr->r_window : vr->q_window, 128);
		assert_int_equal(vr->w->q.peer_window, vr->q_window);
		assert_int_equal(vr->w->r.peer_window, vr->r_window);
		lost->off = true;
		expect_both(&s);
		sim_end(&s);
	}
}

/* A QP's decision stays, but the next QP to that host asks again. */
TEST(a_peer_that_speaks_too_late_is_remembered)
{
	struct veroce_options v = veroce_options();
	struct duo_options o = duo_options();
	struct duo_rule *lost[2];
	struct veroce_packet p;
	struct sim s;

	veroce_opt = v;
	veroce_opt.protocol[DUO_A] = veroce_opt.protocol[DUO_B] = PROTOCOL_AUTO;
	s.duo = duo_create(1, veroce_tweak);
	lost[0] = duo_drop(s.duo, DUO_ANY, OP_CAPS_REQUEST, DUO_ANY);
	lost[1] = duo_drop(s.duo, DUO_ANY, OP_CAPS_RESPONSE, DUO_ANY);
	s.a = duo_qp_create(&s.duo->host[DUO_A], &o);
	s.b = duo_qp_create(&s.duo->host[DUO_B], &o);
	assert_int_equal(duo_qp_to_init(s.a) | duo_qp_to_init(s.b), 0);
	assert_int_equal(duo_qp_to_rtr(s.a, s.b) | duo_qp_to_rtr(s.b, s.a), 0);
	assert_int_equal(duo_qp_to_rts(s.a) | duo_qp_to_rts(s.b), 0);
	s.abuf = duo_buf(s.a->host, BUF_BYTES, ALL_ACCESS);
	s.bbuf = duo_buf(s.b->host, BUF_BYTES, ALL_ACCESS);
	expect_alive(&s, 1); /* after 100 ms, and with RoCEv2 */
	assert_int_equal(count_a(&s)->fallbacks, 1);
	assert_int_equal(pair_speaks(s.a->qp->veroce->pair, s.duo->now_ns), PAIR_ROCEV2);
	lost[0]->off = lost[1]->off = true;
	p = caps(&s, OP_CAPS_REQUEST);
	p.bth.psn = s.a->opt.psn[DUO_A];
	veroce_forge(s.duo, DUO_A, &p, NULL);
	assert_int_equal(pair_speaks(s.a->qp->veroce->pair, s.duo->now_ns), PAIR_UNKNOWN);
	expect_alive(&s, 2);
	sim_end(&s);
}

/* Once the peer has proved veRoCE, a forgery cannot claim another protocol. */
TEST(a_peer_that_is_known_cannot_be_talked_away)
{
	struct veroce_options v = veroce_options();
	struct duo_options o = duo_options();
	struct sim s;
	struct veroce_packet p;
	struct bth bth = {.opcode = OP_RC_SEND_ONLY, .pkey = 0xffff, .psn = B_PSN};

	v.protocol[DUO_A] = v.protocol[DUO_B] = PROTOCOL_AUTO;
	s = veroce_start_sim(&v, &o, 1);
	expect_alive(&s, 1);
	p = caps(&s, OP_CAPS_REQUEST);
	p.caps.profile = 0;
	veroce_forge(s.duo, DUO_A, &p, NULL);
	bth.dqpn = s.a->qpn;
	duo_forge(s.duo, DUO_A, DUO_GID_IPV4, &bth, NULL, 0, junk, 8);
	duo_idle(s.duo);
	assert_int_equal(count_a(&s)->fallbacks, 0);
	assert_int_equal(count_a(&s)->rx_wrong_source, 1);
	expect_alive(&s, 2);
	sim_end(&s);
}

TEST(control_packets_change_no_state)
{
	static const uint8_t opcodes[] = {OP_RTT_RESPONSE, OP_CNP, OP_SLOW_PACKET, OP_RTT_REQUEST};
	struct sim s = veroce_default();
	struct duo_rule *lost = post_two(&s);
	const struct duo_packet *reply;
	uint64_t dropped = count_a(&s)->rx_dropped;

	for (uint32_t i = 0; i < 400; i++) {
		struct veroce_packet p = {
			.bth = {.opcode = opcodes[i / 100], .dqpn = s.a->qpn, .psn = A_PSN + i % 100 - 10},
			.rtt = {.context = i, .tx1 = 7 * i},
			.payload_len = i % 2 && opcodes[i / 100] == OP_CNP ? CNP_RESV_LEN : 0,
		};

		veroce_forge(s.duo, DUO_A, &p, junk);
	}
	assert_int_equal(count_a(&s)->rx_dropped, dropped + 100); /* no probe was on its way */
	assert_int_equal(count_a(&s)->cnps_received, 100);
	assert_int_equal(count_a(&s)->slow_signals, 100);
	duo_run_for(s.duo, 1000);
	assert_int_equal(duo_count(s.duo, DUO_A, OP_RTT_RESPONSE), 1); /* of a burst the last */
	reply = veroce_last(s.duo, DUO_A, OP_RTT_RESPONSE);
	assert_int_equal(reply->from, DUO_A);
	assert_int_equal(s.a->sent.n, 0);
	lost->off = true;
	expect_both(&s);
	sim_end(&s);
}
