/* SPDX-License-Identifier: BSD-2-Clause */
/* veRoCE: what leaves when the retransmission timer fires (veRoCE 6.3; docs/veroce.md, "after a timeout"). */
#include "sim/veroce.h"

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
 * Only that one ends the stall, and only the end of the stall forgets the timeouts that retry_cnt counts. What
 * was found lost before it, and waits for room that there is none of, comes behind it.
 */
static void oldest_packet_is_the_one_that_leaves_without_room(void **state)
{
	static const enum nic_loss losses[] = {NIC_LOSS_FAST, NIC_LOSS_BASE, NIC_LOSS_IRN};

	for (size_t i = 0; i < COUNT(losses); i++) {
		struct veroce_options v = veroce_options();
		struct duo_options o = duo_options();
		struct duo_wr w;
		struct duo_rule *lost;
		const struct nic_counters *n;
		struct pair *pair;
		uint64_t window;
		struct sim s;

		v.loss = losses[i];
		o.psn[DUO_A] = PSN;
		s = veroce_start_sim(&v, &o, 1);
		n = nic_counters(s.a->host->nic);
		pair = s.a->qp->veroce->pair;
		window = pair->window_bytes;
		w = duo_write_wr(1, s.abuf, 0, PACKETS * MTU, s.bbuf, 0);
		lost = duo_drop(s.duo, DUO_A, DUO_ANY, DUO_ANY);
		assert_true(duo_post(s.a, &w));
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
		duo_idle(s.duo);
		duo_expect(s.duo, &s.a->sent, 1, WC_SUCCESS);
		assert_memory_equal(s.bbuf->p, s.abuf->p, PACKETS * MTU);
		sim_end(&s);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(oldest_packet_is_the_one_that_leaves_without_room),
	};

	duo_fail_hook = sim_fail;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
