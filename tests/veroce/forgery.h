/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * For tests of forged veRoCE packets: packets that the peer never sent, and checks that they had no
 * effect.
 */
#pragma once

#include "support/test.h"
#include "veroce/veroce.h"

/* PSNs of A's first request and of B's, which are due when a test begins. */
enum { A_PSN = 0x123456, B_PSN = 0x654321, MTU = 1024 };

static inline const struct nic_counters *count_a(const struct sim *s)
{
	return nic_counters(s->a->host->nic);
}

static inline const struct nic_counters *count_b(const struct sim *s)
{
	return nic_counters(s->b->host->nic);
}

/* The next message at B that A might have sent. */
static inline struct veroce_packet request(const struct sim *s, uint8_t opcode, uint32_t payload_len)
{
	return (struct veroce_packet){
		.bth = {.opcode = opcode, .dqpn = s->b->qpn, .psn = A_PSN},
		.msn = 1,
		.reth = {.va = s->bbuf->iova, .rkey = s->bbuf->mr->key, .len = payload_len},
		.payload_len = payload_len,
	};
}

/* An acknowledgement of A's requests. */
static inline struct veroce_packet answer(const struct sim *s, uint8_t opcode, uint32_t psn, uint8_t syndrome,
					  uint32_t msn)
{
	return (struct veroce_packet){
		.bth = {.opcode = opcode, .dqpn = s->a->qpn, .psn = psn},
		.aeth = {.syndrome = syndrome, .msn = msn},
		.po = POETH_NO_INFO,
	};
}

static const uint8_t junk[MTU] = {0xee, 0xee, 0xee, 0xee, 0xee, 0xee, 0xee, 0xee};

/* B's buffer is as sim_start() filled it. */
static inline void expect_untouched(const struct sim *s)
{
	for (uint64_t i = 0; i < s->bbuf->len; i++)
		assert_int_equal(s->bbuf->p[i], duo_filled(2, i));
	duo_check_canaries(s->duo);
}

/* A message that is really A's gets through as if nothing had been. */
static inline void expect_alive(struct sim *s, uint64_t wr_id)
{
	duo_do(s->a, duo_write_wr(wr_id, s->abuf, 0, 5000, s->bbuf, 20000));
	assert_memory_equal(s->bbuf->p + 20000, s->abuf->p, 5000);
}

/* What A sends is lost until rule->off. */
static inline struct duo_rule *mute(struct sim *s)
{
	return duo_drop(s->duo, DUO_A, DUO_ANY, DUO_ANY);
}

/* A waits for answers to a WRITE of four packets and a SEND; nothing of them arrives until
 * rule->off. */
static inline struct duo_rule *post_two(struct sim *s)
{
	struct duo_rule *lost = mute(s);

	assert_true(duo_recv(s->b, 11, s->bbuf, 10000, 200));
	duo_must_post(s->a, duo_write_wr(1, s->abuf, 0, 4 * MTU, s->bbuf, 0));
	duo_must_post(s->a, duo_send_wr(2, s->abuf, 100, 100));
	duo_run_for(s->duo, 10000);
	assert_int_equal(duo_count(s->duo, DUO_A, OP_RC_SEND_ONLY), 1);
	return lost;
}

static inline void expect_both(struct sim *s)
{
	duo_finish(s->a, 1, WC_SUCCESS);
	duo_expect(s->duo, &s->a->sent, 2, WC_SUCCESS);
	duo_expect(s->duo, &s->b->received, 11, WC_SUCCESS);
	assert_memory_equal(s->bbuf->p, s->abuf->p, 4 * MTU);
	assert_memory_equal(s->bbuf->p + 10000, s->abuf->p + 100, 100);
}

static inline struct veroce_packet result(const struct sim *s, uint8_t opcode, uint32_t payload_len)
{
	return (struct veroce_packet){
		.bth = {.opcode = opcode, .dqpn = s->a->qpn, .psn = A_PSN},
		.aeth = {.syndrome = 0x1f, .msn = 1},
		.msn = 1,
		.orig = 77,
		.payload_len = payload_len,
	};
}

static inline void expect_a_untouched(const struct sim *s)
{
	for (uint64_t i = 0; i < s->abuf->len; i++)
		assert_int_equal(s->abuf->p[i], duo_filled(1, i));
}
