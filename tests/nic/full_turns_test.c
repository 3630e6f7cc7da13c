/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Data that fill every turn of output do not hold an acknowledgement back: their sender may go on for as long as its
 * peer acknowledges, and the peer, whose window is full, has nothing else to wait for.
 */
#include "support/test.h"
#include "veroce/veroce.h"

enum { BURST = 2 * PKT_TRAIN_MAX + NIC_TX_ANSWERS, LEN_MAX = 32 * 1024, WARM_UP = 64 };

struct turn {
	size_t packets, acks;
};

static struct turn take_turn(struct duo_host *h)
{
	struct pkt burst[BURST];
	struct turn t = {.packets = nic_output(h->nic, burst, BURST, h->duo->now_ns)};

	for (size_t i = 0; i < t.packets; i++) {
		struct bth bth;

		bth_decode(&bth, burst[i].data);
		t.acks += bth.opcode == OP_RC_ACK;
		assert_int_equal(burst[i].far_bytes, 0);
	}
	return t;
}

/* What one host sends in a turn reaches the other at once. */
static void carry(struct duo_host *from, struct duo_host *to)
{
	struct pkt burst[BURST];
	size_t n = nic_output(from->nic, burst, BURST, from->duo->now_ns);

	assert_true(n > 0);
	assert_int_equal(nic_input(to->nic, burst, n, to->duo->now_ns), n);
}

static void post_write(struct sim *s, struct duo_qp *from, uint64_t id, uint32_t len)
{
	struct duo_buf *src = from == s->a ? s->abuf : s->bbuf, *dst = from == s->a ? s->bbuf : s->abuf;

	duo_must_post(from, duo_write_wr(id, src, 0, len, dst, 0));
}

/* A pair whose windows hold more than three turns. */
static struct sim start(enum protocol protocol, uint32_t mtu, uint32_t paths)
{
	struct sim s = VEROCE_SIM(v.protocol[DUO_A] = v.protocol[DUO_B] = protocol, v.paths = paths,
				  v.window_bytes = 16 << 20, o.mtu = mtu, o.cap.max_send_wr = 1024);

	for (uint64_t i = 0; i < WARM_UP; i++) {
		post_write(&s, s.a, i, LEN_MAX);
		duo_finish(s.a, i, WC_SUCCESS);
	}
	return s;
}

static void check(struct sim *s, uint32_t len)
{
	struct duo_host *a = s->a->host, *b = s->b->host;
	uint32_t messages = len < LEN_MAX ? 3 * BURST : 16;
	struct turn turn;

	post_write(s, s->b, 0, 64);
	carry(b, a);
	for (uint64_t i = 0; i < messages; i++)
		post_write(s, s->a, WARM_UP + i, len);
	turn = take_turn(a);
	assert_int_equal(turn.acks, 1);
	assert_true(turn.packets > 1);
	/* The turn was full. */
	turn = take_turn(a);
	assert_int_equal(turn.acks, 0);
	assert_true(turn.packets > 0);
}

TEST(an_acknowledgement_leaves_with_data_that_fill_the_turn)
{
	static const enum protocol protocols[] = {PROTOCOL_VEROCE, PROTOCOL_ROCEV2};
	static const uint32_t mtus[] = {256, 1024, 4096}, lens[] = {64, LEN_MAX}, paths[] = {1, 16};

	for (unsigned i = 0; i < 48; i++) {
		struct sim s = start(protocols[i & 1], mtus[i / 16], paths[i >> 1 & 1]);

		nic_hold_acks(s.a->host->nic, i & 4);
		check(&s, lens[i >> 3 & 1]);
		duo_destroy(s.duo);
	}
}
