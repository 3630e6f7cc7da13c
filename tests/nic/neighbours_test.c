/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Packets through memory of the host: without an ICRC, taken for the process that wrote them and for no other.
 */
#include <errno.h>

#include "duo/sim.h"

enum { LEN = 64 };

/* A WRITE of A to B as it comes from the process with a slot, its ICRC wrong. */
static int inject(struct sim *s, unsigned neighbour)
{
	struct flow flow = duo_flow(s->duo, DUO_B, s->b->opt.gid);
	struct bth bth = {.opcode = OP_RC_WRITE_ONLY, .pkey = 0xffff, .dqpn = s->b->qpn, .psn = s->a->opt.psn[DUO_A]};
	uint8_t ext[RETH_LEN], payload[LEN], buf[DUO_PACKET_MAX];
	uint32_t len;

	memset(payload, 0x5a, LEN);
	reth_encode(ext, &(struct reth){.va = s->bbuf->iova, .rkey = s->bbuf->mr->key, .len = LEN});
	len = duo_build(s->duo, DUO_B, s->b->opt.gid, &bth, ext, sizeof(ext), payload, LEN, buf);
	buf[len - 1] ^= 0xff;
	flow.neighbour = (uint8_t)neighbour;
	return duo_inject(s->duo, DUO_B, &flow, buf, len);
}

static void only_the_peers_process_needs_no_icrc(void **state)
{
	struct duo_options o = duo_options();
	struct sim s = sim_start(&o);
	unsigned peer = 1 + (s.a->qpn >> NIC_QPN_BITS);
	uint8_t before = s.bbuf->p[0];

	assert_int_equal(inject(&s, 0), -EBADMSG);
	assert_int_equal(inject(&s, peer + 1), -EBADMSG);
	assert_int_equal(inject(&s, 127), -EBADMSG);
	assert_int_equal(s.bbuf->p[0], before);
	assert_int_equal(inject(&s, peer), 0);
	assert_int_equal(s.bbuf->p[0], 0x5a);
	duo_destroy(s.duo);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(only_the_peers_process_needs_no_icrc),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
