/* SPDX-License-Identifier: BSD-2-Clause */
/* What packets wait at either host before they are read is no part of the network's round trip (veRoCE 13.2). */
#include "veroce/transfer.h"

#include "transport/paths/pair.h"

enum { NETWORK_NS = 30000, WAIT_NS = 2000000, MTU = 1024 };

static void a_wait_at_a_host_is_no_queue_in_the_network(void **state)
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
		assert_in_range(pair->srtt_ns, 2 * (NETWORK_NS + WAIT_NS) * 9ull / 10, 2 * (NETWORK_NS + WAIT_NS) * 11ull / 10);
		assert_in_range(pair->min_rtt_ns[0], 2 * (NETWORK_NS + (i & 4 ? 0 : WAIT_NS)) - 1,
				2 * (NETWORK_NS + (i & 4 ? 0 : WAIT_NS)));
		transfer_end(&t);
	}
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(a_wait_at_a_host_is_no_queue_in_the_network),
};

SIM_MAIN(tests)
