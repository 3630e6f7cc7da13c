/* SPDX-License-Identifier: BSD-2-Clause */
/* veRoCE: what leaves when the retransmission timer fires (veRoCE 6.3; docs/veroce.md, "after a timeout"). */
#include "support/test.h"
#include "veroce/veroce.h"

enum { PSN = 0xfffffd, PACKETS = 6, MTU = 1024 };

/* A Packet Drop NAK of that PSN. */
static void trim(struct sim *s, uint32_t psn)
{
	struct veroce_packet p = {
		.bth = {.opcode = OP_RC_ACK, .dqpn = s->a->qpn, .psn = psn},
		.aeth = {.syndrome = AETH_NAK | NAK_PSN_SEQUENCE},
		.po = POETH_NO_INFO,
	};

	veroce_forge(s->duo, DUO_A, &p, NULL);
}

/*
 * Only the oldest packet ends the stall, and only the end of the stall resets the count of timeouts. Packets
 * found lost before, which wait for room, come behind it.
 */
TEST(oldest_packet_is_the_one_that_leaves_without_room)
{
	static const enum veroce_loss losses[] = {LOSS_FAST, LOSS_BASE, LOSS_IRN};

	for (size_t i = 0; i < COUNT(losses); i++) {
		struct sim s = VEROCE_SIM(v.loss = losses[i], o.psn[DUO_A] = PSN);
		const struct nic_counters *n = nic_counters(s.a->host->nic);
		struct pair *pair = s.a->qp->veroce->pair;
		uint64_t window = pair->window_bytes;
		struct duo_rule *lost = duo_drop(s.duo, DUO_A, DUO_ANY, DUO_ANY);

		duo_must_post(s.a, duo_write_wr(1, s.abuf, 0, PACKETS * MTU, s.bbuf, 0));
		duo_run_for(s.duo, 10000);
		pair->window_bytes = 1; /* as after many trims */
		trim(&s, psn_add(PSN, 4));
		trim(&s, psn_add(PSN, 2));
		duo_run_for(s.duo, 100000);
		DUO_CHECK(s.duo, !n->retransmits);
		while (!n->timeouts)
			duo_run_for(s.duo, 10000);
		duo_run_for(s.duo, 10000);
		DUO_CHECK(s.duo, n->timeouts == 1 && n->retransmits == 1 && !n->tail_probes);
		DUO_CHECK(s.duo, veroce_last(s.duo, DUO_A, OP_RC_WRITE_FIRST)->bth.retrans);
		pair->window_bytes = window;
		lost->off = true;
		duo_finish(s.a, 1, WC_SUCCESS);
		assert_memory_equal(s.bbuf->p, s.abuf->p, PACKETS * MTU);
		sim_end(&s);
	}
}

/*
 * 6.3, 4: a program's timeout that is shorter than the round trips of the slowest path counts packets as lost later
 * than it fires. The oldest one goes with each timeout all the same: others, which are known to be lost, end no stall,
 * and are dropped by a peer that keeps packets until their turn and has no room for more.
 */
VEROCE_TEST(oldest_packet_goes_again_however_long_the_round_trip, o.psn[DUO_A] = PSN, o.timeout = 5)
{
	enum { TIMEOUTS = 6 };

	const struct nic_counters *n;
	struct duo_rule *lost;
	struct pair *pair;
	struct duo_wr w;
	size_t firsts;

	n = nic_counters(s.a->host->nic);
	pair = s.a->qp->veroce->pair;
	w = duo_write_wr(1, s.abuf, 0, PACKETS * MTU, s.bbuf, 0);
	lost = duo_drop(s.duo, DUO_A, DUO_ANY, DUO_ANY);
	assert_true(duo_post(s.a, &w));
	duo_run_for(s.duo, 10000);
	pair->window_bytes = 1;
	pair->rto_ns = 50000000;
	trim(&s, psn_add(PSN, 4));
	trim(&s, psn_add(PSN, 2));
	firsts = duo_count(s.duo, DUO_A, OP_RC_WRITE_FIRST);
	for (unsigned i = 1; i <= TIMEOUTS; i++) {
		while (n->timeouts < i)
			duo_run_for(s.duo, 10000);
		duo_run_for(s.duo, 10000);
		DUO_CHECK(s.duo, n->timeouts == i && n->retransmits == i);
		DUO_CHECK(s.duo, duo_count(s.duo, DUO_A, OP_RC_WRITE_FIRST) == firsts + i);
	}
	pair->window_bytes = 1 << 20;
	lost->off = true;
	duo_finish(s.a, 1, WC_SUCCESS);
	assert_memory_equal(s.bbuf->p, s.abuf->p, PACKETS * MTU);
}

/*
 * 6.2, on a path that reorders: only time shows that a packet is lost, and each packet has its own time. Of two
 * overtaken packets each is judged by itself, and the first does not wait for the second.
 */
VEROCE_TEST(earliest_of_two_late_packets_sets_the_timer)
{
	enum { WRITES = 4, LATENCY_NS = 100000, RTT_NS = 2 * LATENCY_NS, GAP_NS = 150000 };

	uint32_t psn = s.a->opt.psn[DUO_A];
	const struct duo_packet *again;
	struct path *path;
	struct duo_wr w[WRITES];
	uint64_t t;

	for (uint64_t i = 0; i < WRITES; i++)
		w[i] = duo_write_wr(i, s.abuf, i * MTU, MTU, s.bbuf, i * MTU);
	s.duo->latency_ns = LATENCY_NS;
	assert_true(duo_post(s.a, &w[0]));
	duo_idle(s.duo);
	path = &s.a->qp->veroce->pair->own[0];
	path->srtt_ns = RTT_NS;
	path->reo_ns = RTT_NS;
	path->reo_until_ns = UINT64_MAX;
	duo_drop(s.duo, DUO_A, OP_RC_WRITE_ONLY, 0);
	duo_drop(s.duo, DUO_A, OP_RC_WRITE_ONLY, 0); /* of those that the first rule lets pass */
	t = s.duo->now_ns;
	assert_true(duo_post(s.a, &w[1]));
	duo_run_for(s.duo, GAP_NS);
	assert_true(duo_post(s.a, &w[2]));
	assert_true(duo_post(s.a, &w[3]));
	/* The last one's acknowledgement comes first, and then the clock judges. */
	duo_run_until(s.duo, t + GAP_NS + RTT_NS + 10000);
	assert_int_equal(veroce_retransmits(s.duo), 0);
	duo_idle(s.duo);
	again = duo_packet(s.duo, DUO_A, OP_RC_WRITE_ONLY, WRITES);
	assert_int_equal(again->bth.psn, psn_add(psn, 1));
	assert_in_range(again->sent_ns - t, 2 * RTT_NS, 2 * RTT_NS + GAP_NS / 2);
	assert_int_equal(nic_counters(s.a->host->nic)->timeouts, 0);
	for (uint64_t i = 0; i < WRITES; i++)
		duo_expect(s.duo, &s.a->sent, i, WC_SUCCESS);
	assert_memory_equal(s.bbuf->p, s.abuf->p, WRITES * MTU);
}
