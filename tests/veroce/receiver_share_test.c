/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Shares of a receiver's port (veRoCE 13.2, RXSHARE): carried by acknowledgements if both ends agreed,
 * and kept by senders; no value that a peer may send stops a QP.
 */
#include "cc/params.h"
#include "support/test.h"
#include "veroce/veroce.h"

enum { MTU = 4096, BYTES = 16 * MTU, QPS = 3, US = 1000, MS = 1000000 };
enum { ACK_BYTES = BTH_LEN + TSEETH_LEN + AETH_LEN + POETH_LEN + ICRC_LEN };

#define LINE_BPS UINT64_C(10000000000)

static struct cc_params params[DUO_SIDES];

static void tweak(struct nic_config *c, enum duo_side side)
{
	veroce_tweak(c, side);
	c->transport.cc.params = &params[side];
	c->transport.cc.line_rate_bps = LINE_BPS;
}

/* The windows let through more than the line could take. */
static struct sim start_with(enum cc_shares a, enum cc_shares b)
{
	struct duo_options o = duo_options();
	struct sim s;

	veroce_opt = veroce_options();
	veroce_opt.window_bytes = 2 * BYTES;
	for (int side = 0; side < DUO_SIDES; side++)
		cc_params_default(&params[side], CC_NONE);
	params[DUO_A].rxshare = a;
	params[DUO_B].rxshare = b;
	o.mtu = MTU;
	o.cap.max_send_wr = 4;
	s = (struct sim){.duo = duo_create(1, tweak)};
	s.duo->latency_ns = 8 * US;
	for (int i = 0; i < QPS; i++) {
		struct duo_pair p = duo_connect(s.duo, &o);

		s.a = p.a;
		s.b = p.b;
	}
	s.abuf = duo_buf(&s.duo->host[DUO_A], BUF_BYTES, ALL_ACCESS);
	s.bbuf = duo_buf(&s.duo->host[DUO_B], BUF_BYTES, ALL_ACCESS);
	duo_idle(s.duo);
	return s;
}

static struct sim start(bool a, bool b)
{
	return start_with(a ? CC_SHARES_ON : CC_SHARES_OFF, b ? CC_SHARES_ON : CC_SHARES_OFF);
}

/* All QPs of A are busy for so long. */
static void be_busy(struct sim *s, bool reads, uint64_t ns)
{
	uint64_t end_ns = s->duo->now_ns + ns;
	struct duo_wr w =
		reads ? duo_read_wr(0, s->abuf, 0, BYTES, s->bbuf, 0) : duo_write_wr(0, s->abuf, 0, BYTES, s->bbuf, 0);

	while (s->duo->now_ns < end_ns) {
		for (struct duo_qp *q = s->duo->qps; q; q = q->next) {
			while (q->host->side == DUO_A && duo_post(q, &w)) {
			}
		}
		duo_run_for(s->duo, 100 * US);
	}
	duo_idle(s->duo);
	for (struct duo_qp *q = s->duo->qps; q; q = q->next) {
		for (size_t i = 0; i < q->sent.n; i++)
			assert_int_equal(q->sent.e[i].status, WC_SUCCESS);
		q->sent.taken = q->sent.n;
	}
}

/* Packets with payload for the QP, in [from, to). */
static uint32_t data_for(const struct duo *d, const struct duo_qp *q, uint64_t from_ns, uint64_t to_ns)
{
	uint32_t n = 0;

	for (size_t i = 0; i < d->wire_count; i++) {
		const struct duo_packet *p = &d->wire[i];

		n += p->bth.dqpn == q->qpn && p->payload_len && p->sent_ns >= from_ns && p->sent_ns < to_ns;
	}
	return n;
}

/* How many acknowledgements have the word that RXSHARE adds. */
static uint32_t words(const struct duo *d, uint32_t *acks)
{
	uint32_t n = 0;

	*acks = 0;
	for (size_t i = 0; i < d->wire_count; i++) {
		const struct duo_packet *p = &d->wire[i];
		uint32_t blocks = p->sack_count * SACKETH_LEN;

		if (!p->veroce || !(p->info->flags & F_ACK))
			continue;
		++*acks;
		n += p->len == ACK_BYTES + blocks + TSEETH_SHARE_LEN;
		assert_true(p->len == ACK_BYTES + blocks || p->len == ACK_BYTES + blocks + TSEETH_SHARE_LEN);
	}
	return n;
}

static void check_even(bool reads)
{
	struct sim s = start(true, true);
	enum duo_side to = reads ? DUO_A : DUO_B;
	uint64_t from_ns = s.duo->now_ns + 25 * MS, to_ns = from_ns + 5 * MS;
	uint32_t least = UINT32_MAX, most = 0, sum = 0, told, acks;

	be_busy(&s, reads, 31 * MS);
	for (struct duo_qp *q = s.duo->qps; q; q = q->next) {
		uint32_t n = data_for(s.duo, q, from_ns, to_ns);

		if (q->host->side != to)
			continue;
		least = n < least ? n : least;
		most = n > most ? n : most;
		sum += n;
	}
	DUO_CHECK(s.duo, most - least <= 1);
	assert_in_range(sum, LINE_BPS / 200 / 8 / MTU * 9 / 10, LINE_BPS / 200 / 8 / MTU);
	told = words(s.duo, &acks);
	assert_int_equal(told, acks);
	assert_true(acks);
	sim_end(&s);
}

TEST(writers_get_the_same_of_the_line)
{
	check_even(false);
}

/* Their responses come from the QPs of the other end. */
TEST(readers_get_the_same_of_the_line)
{
	check_even(true);
}

TEST(one_end_alone_changes_nothing)
{
	uint64_t trace[3];

	for (int i = 0; i < 3; i++) {
		struct sim s = start(i == 1, i == 2);
		uint32_t acks;

		be_busy(&s, false, 5 * MS);
		assert_int_equal(words(s.duo, &acks), 0);
		assert_true(acks);
		trace[i] = s.duo->wire_count;
		sim_end(&s);
	}
	assert_int_equal(trace[0], trace[1]);
	assert_int_equal(trace[0], trace[2]);
}

/*
 * Where no crowd is, the default costs no byte and no packet: nor against a peer that does not offer shares, as all did
 * that were not set to it.
 */
TEST(without_a_crowd_nothing_is_told)
{
	static const enum cc_shares ends[][2] = {{CC_SHARES_OFF, CC_SHARES_OFF},
						 {CC_SHARES_CROWD, CC_SHARES_CROWD},
						 {CC_SHARES_CROWD, CC_SHARES_OFF},
						 {CC_SHARES_OFF, CC_SHARES_CROWD}};
	size_t packets[COUNT(ends)];

	for (size_t i = 0; i < COUNT(ends); i++) {
		struct sim s = start_with(ends[i][DUO_A], ends[i][DUO_B]);
		uint32_t acks;

		be_busy(&s, false, 5 * MS);
		assert_int_equal(words(s.duo, &acks), 0);
		packets[i] = s.duo->wire_count;
		assert_int_equal(packets[i], packets[0]);
		sim_end(&s);
	}
}

/* A peer that gives shares to all is obeyed, and each of its acknowledgements tells one, as before there were crowds. */
TEST(share_of_a_peer_that_tells_it_to_all_is_kept)
{
	struct sim s = start_with(CC_SHARES_CROWD, CC_SHARES_ON);
	uint64_t from_ns = s.duo->now_ns + 25 * MS;
	uint32_t told, acks, most = 0, least = UINT32_MAX;

	be_busy(&s, false, 31 * MS);
	told = words(s.duo, &acks);
	assert_int_equal(told, acks);
	for (struct duo_qp *q = s.duo->qps; q; q = q->next) {
		uint32_t n = data_for(s.duo, q, from_ns, from_ns + 5 * MS);

		if (q->host->side != DUO_B)
			continue;
		least = n < least ? n : least;
		most = n > most ? n : most;
	}
	assert_true(most - least <= 1);
	sim_end(&s);
}

/*
 * At a share of which a packet comes in 10 us, one that waits 20 us for an acknowledgement would gather one more:
 * each packet is acknowledged at once, and each acknowledgement carries the share.
 */
TEST_ON(packets_that_come_apart_are_acknowledged_at_once, start(true, true))
{
	uint64_t from_ns = s.duo->now_ns + 25 * MS, to_ns = from_ns + 5 * MS;
	uint32_t data = 0, acks = 0;

	be_busy(&s, false, 31 * MS);
	for (struct duo_qp *q = s.duo->qps; q; q = q->next)
		data += q->host->side == DUO_B ? data_for(s.duo, q, from_ns, to_ns) : 0;
	for (size_t i = 0; i < s.duo->wire_count; i++) {
		const struct duo_packet *p = &s.duo->wire[i];

		acks += p->from == DUO_B && p->sent_ns >= from_ns && p->sent_ns < to_ns;
	}
	assert_true(data > 1000);
	assert_in_range(acks, data - QPS, data + QPS);
}

/* An acknowledgement of nothing new, with what a peer may make up. */
static void tell(struct sim *s, uint32_t share_kbps)
{
	struct veroce_packet p = {
		.bth = {.opcode = OP_RC_ACK,
			.ts = true,
			.dqpn = s->a->qpn,
			.psn = psn_add(s->a->opt.psn[DUO_A], 0xffffff)},
		.tse = {.has_share = true, .share_kbps = share_kbps, .path_id = PATHS_MAX},
		.aeth = {.syndrome = AETH_ACK | AETH_CREDIT_INVALID},
	};

	veroce_forge(s->duo, DUO_A, &p, NULL);
}

TEST(no_share_that_is_told_stops_a_qp)
{
	static const uint32_t shares[] = {0, 1, 999, 100000, UINT32_MAX};

	for (size_t i = 0; i < COUNT(shares); i++) {
		struct sim s = start(true, true);
		uint64_t began_ns = s.duo->now_ns;
		uint32_t n;

		tell(&s, shares[i]);
		duo_must_post(s.a, duo_write_wr(1, s.abuf, 0, BYTES, s.bbuf, 0));
		duo_wait(s.duo, &s.a->sent, 1);
		assert_true(s.duo->now_ns - began_ns < 200 * MS);
		n = data_for(s.duo, s.b, began_ns, began_ns + US);
		assert_int_equal(n == BYTES / MTU, !shares[i] || shares[i] == UINT32_MAX);
		duo_expect(s.duo, &s.a->sent, 1, WC_SUCCESS);
		sim_end(&s);
	}
}

/* A share in a forged or stale acknowledgement has no effect on a QP that did not agree. */
TEST_ON(share_that_was_not_agreed_on_is_not_heard, start(true, false))
{
	uint64_t began_ns = s.duo->now_ns;

	tell(&s, 1);
	duo_must_post(s.a, duo_write_wr(1, s.abuf, 0, BYTES, s.bbuf, 0));
	duo_wait(s.duo, &s.a->sent, 1);
	assert_int_equal(data_for(s.duo, s.b, began_ns, began_ns + US), BYTES / MTU);
	duo_expect(s.duo, &s.a->sent, 1, WC_SUCCESS);
}
