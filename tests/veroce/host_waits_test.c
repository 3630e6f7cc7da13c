/* SPDX-License-Identifier: BSD-2-Clause */
/* What packets wait at either host before they are read is no part of the network's round trip (veRoCE 13.2). */
#include "veroce/transfer.h"

#include "support/test.h"
#include "transport/paths/pair.h"

enum { NETWORK_NS = 30000, WAIT_NS = 2000000, MTU = 1024 };

TEST(a_wait_at_a_host_is_no_queue_in_the_network)
{
	for (int i = 0; i < 8; i++) {
		struct veroce_options v = veroce_options();
		struct duo_options o = duo_options();
		struct transfer t;
		const struct pair *pair;

		v.cc = i & 1 ? VEROCE_CC_SWIFT : VEROCE_CC_NONE;
		transfer_start(&t, &v, &o, 1, i & 2, 64 * MTU, NETWORK_NS + WAIT_NS, 0);
		for (int side = 0; side < DUO_SIDES; side++)
			t.duo->host[side].waits_ns = i & 4 ? WAIT_NS : 0;
		for (int n = 0; n < 20; n++) {
			transfer_post(&t, 0, 64 * MTU);
			duo_wait(t.duo, &t.s.a->sent, t.posted);
		}
		duo_idle(t.duo);
		transfer_check(&t);
		pair = (t.read ? t.s.b : t.s.a)->qp->veroce->pair;
		assert_in_range(pair->srtt_ns, 2 * (NETWORK_NS + WAIT_NS) * 9ull / 10,
				2 * (NETWORK_NS + WAIT_NS) * 11ull / 10);
		assert_in_range(pair->min_rtt_ns[0], 2 * (NETWORK_NS + (i & 4 ? 0 : WAIT_NS)) - 1,
				2 * (NETWORK_NS + (i & 4 ? 0 : WAIT_NS)));
		transfer_end(&t);
	}
}

/* Nothing queues anywhere: the window only grows. */
TEST(a_wait_for_a_processor_does_not_cut_the_window)
{
	for (int read = 0; read < 2; read++) {
		struct veroce_options v = veroce_options();
		struct duo_options o = duo_options();
		uint64_t first, before = 0;
		struct transfer t;

		v.cc = VEROCE_CC_SWIFT;
		/* Timeouts know the round trip. */
		transfer_start(&t, &v, &o, 1, read, 64 * MTU, NETWORK_NS + WAIT_NS, 2);
		for (int side = 0; side < DUO_SIDES; side++)
			t.duo->host[side].waits_ns = WAIT_NS;
		for (int n = 0; n < 20; n++) {
			uint64_t cwnd;

			transfer_post(&t, 0, 64 * MTU);
			duo_wait(t.duo, &t.s.a->sent, t.posted);
			cwnd = (read ? t.s.b : t.s.a)->qp->veroce->pair->path[0].cc.cwnd_bytes;
			assert_true(cwnd >= before);
			if (!n)
				first = cwnd;
			before = cwnd;
		}
		assert_true(before > first);
		transfer_check(&t);
		transfer_end(&t);
	}
}

/*
 * A message leaves at once, and each of its packets takes a microsecond of the link. Its acknowledgement comes for all
 * of them, and tells of the first one where they were read together.
 */
TEST(a_burst_that_waited_is_no_queue)
{
	enum { PACKETS = 16, PACKET_NS = 1000 };

	for (int waits = 0; waits < 2; waits++) {
		struct veroce_options v = veroce_options();
		struct duo_options o = duo_options();
		uint64_t least = 2 * NETWORK_NS + PACKET_NS;
		struct transfer t;

		v.cc = VEROCE_CC_SWIFT;
		transfer_start(&t, &v, &o, 1, false, PACKETS * MTU, NETWORK_NS + (waits ? WAIT_NS : 0), 0);
		t.packet_ns = PACKET_NS;
		t.duo->script = transfer_channel;
		t.duo->script_ctx = &t;
		for (int side = 0; side < DUO_SIDES; side++)
			t.duo->host[side].waits_ns = waits ? WAIT_NS : 0;
		for (int n = 0; n < 20; n++) {
			transfer_post(&t, 0, PACKETS * MTU);
			duo_wait(t.duo, &t.s.a->sent, t.posted);
		}
		transfer_check(&t);
		assert_int_equal(t.s.a->qp->veroce->pair->min_rtt_ns[0] <= least, waits);
		transfer_end(&t);
	}
}
