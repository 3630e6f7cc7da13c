/* SPDX-License-Identifier: BSD-2-Clause */
/* RC requests and acknowledgements on a bad network: go-back-N (IBTA 9.7.5.2, 9.7.6.1, 9.9.2). */
#include "duo/sim.h"
#include "wire/psn.h"

static uint64_t timeout_ns(const struct duo_qp *q)
{
	return 4096ull << q->opt.timeout;
}

static uint32_t psn_of(const struct sim *s, uint32_t n)
{
	return psn_add(s->a->opt.psn[DUO_A], n);
}

static bool has_psn(const struct duo_packet *p, const void *arg)
{
	return p->info->flags & F_REQUEST && p->bth.psn == *(const uint32_t *)arg;
}

/* Loses the nth packet with that PSN sent by A. */
static struct duo_rule *drop_psn(struct sim *s, const uint32_t *psn, int nth)
{
	return duo_rule(
		s->duo,
		(struct duo_rule){
			.from = DUO_A, .opcode = DUO_ANY, .nth = nth, .match = has_psn, .arg = psn, .fate = DUO_DROP});
}

static size_t sent_with_psn(const struct sim *s, uint32_t psn)
{
	size_t n = 0;

	for (size_t i = 0; i < s->duo->wire_count; i++) {
		const struct duo_packet *p = &s->duo->wire[i];

		n += p->from == DUO_A && p->bth.psn == psn && p->info->flags & F_REQUEST;
	}
	return n;
}

enum { NAK_SEQUENCE = AETH_NAK | NAK_PSN_SEQUENCE };

static struct duo_wr make(const struct sim *s, enum wr_opcode op, uint64_t id, uint32_t len)
{
	struct duo_wr w = duo_write_wr(id, s->abuf, 0, len, s->bbuf, 0);

	w.opcode = op;
	return w;
}

/*
 * A message of 4 packets and one of 2 behind it; the k-th packet of the 6 is lost. If packets
 * follow the gap, the responder sends one NAK with the PSN that it expects, and the requester goes
 * back there at once; otherwise the timer does it.
 */
static void lose_one_of_six(enum wr_opcode op, uint32_t k)
{
	struct sim s = sim_default();
	uint32_t lost = psn_of(&s, k);
	struct duo_rule *r = drop_psn(&s, &lost, 0);
	struct duo_wr w[] = {make(&s, op, 1, 4096), make(&s, op, 2, 1030)};

	w[1].sge[0].addr += 10000;
	w[1].remote_va += 10000;
	if (op == WR_SEND) {
		assert_true(duo_recv(s.b, 11, s.bbuf, 0, 5000));
		assert_true(duo_recv(s.b, 12, s.bbuf, 10000, 5000));
	}
	assert_true(duo_post_chain(s.a, w, 2));
	duo_idle(s.duo);
	assert_int_equal(r->hits, 1);
	assert_memory_equal(s.bbuf->p, s.abuf->p, 4096);
	assert_memory_equal(s.bbuf->p + 10000, s.abuf->p + 10000, 1030);
	const struct cqe *done = duo_expect(s.duo, &s.a->sent, 1, WC_SUCCESS);

	done = duo_expect(s.duo, &s.a->sent, 2, WC_SUCCESS);
	if (op == WR_SEND) {
		assert_int_equal(duo_expect(s.duo, &s.b->received, 11, WC_SUCCESS)->byte_len, 4096);
		assert_int_equal(duo_expect(s.duo, &s.b->received, 12, WC_SUCCESS)->byte_len, 1030);
	}
	assert_int_equal(sent_with_psn(&s, lost), 2);
	for (uint32_t i = 0; i < k; i++)
		assert_int_equal(sent_with_psn(&s, psn_of(&s, i)), 1); /* no further than needed */
	if (k < 5) {
		assert_int_equal(duo_count_syndrome(s.duo, DUO_B, NAK_SEQUENCE), 1);
		assert_int_equal(nic_counters(s.a->host->nic)->timeouts, 0);
		assert_true(done->timestamp_ns < DUO_START_NS + 10 * DUO_LATENCY_NS);
		for (size_t i = 0; i < s.duo->wire_count; i++) {
			const struct duo_packet *p = &s.duo->wire[i];

			if (p->from == DUO_B && p->aeth.syndrome == NAK_SEQUENCE)
				assert_int_equal(p->bth.psn, lost);
		}
	} else {
		assert_int_equal(duo_count_syndrome(s.duo, DUO_B, NAK_SEQUENCE), 0);
		assert_int_equal(nic_counters(s.a->host->nic)->timeouts, 1);
		assert_true(done->timestamp_ns >= DUO_START_NS + timeout_ns(s.a));
	}
	assert_int_equal(nic_counters(s.a->host->nic)->retransmits, 6 - k);
	sim_end(&s);
}

TEST(lost_packet_is_named_once_and_sent_again)
{
	for (uint32_t k = 0; k < 6; k++) {
		lose_one_of_six(WR_WRITE, k);
		lose_one_of_six(WR_SEND, k);
	}
}

/* IBTA 9.7.6.1.3: not before the timeout, and not later than four times it. */
TEST(timer_fires_between_one_and_four_timeouts)
{
	static const uint8_t timeouts[] = {1, 5, 8, 14, 20};

	for (size_t i = 0; i < COUNT(timeouts); i++) {
		struct sim s = SIM(o.timeout = timeouts[i]);

		duo_drop(s.duo, DUO_A, DUO_ANY, 0);
		duo_must_post(s.a, make(&s, WR_WRITE, 1, 10));
		duo_finish(s.a, 1, WC_SUCCESS);
		uint64_t waited = duo_packet(s.duo, DUO_A, DUO_ANY, 1)->sent_ns - DUO_START_NS;

		assert_true(waited >= timeout_ns(s.a));
		assert_true(waited <= 4 * timeout_ns(s.a));
		sim_end(&s);
	}
}

/* A peer that is a process may have to wait for a processor: docs/rocev2.md, local ACK timeout. */
TEST(short_timers_take_the_long_end)
{
	static const uint8_t timeouts[] = {1, 8, 9, 10, 11, 12};

	for (size_t i = 0; i < COUNT(timeouts); i++) {
		struct sim s = SIM(o.timeout = timeouts[i]);
		uint64_t four = 4 * timeout_ns(s.a);

		duo_drop(s.duo, DUO_A, DUO_ANY, 0);
		duo_must_post(s.a, make(&s, WR_WRITE, 1, 10));
		duo_finish(s.a, 1, WC_SUCCESS);
		uint64_t waited = duo_packet(s.duo, DUO_A, DUO_ANY, 1)->sent_ns - DUO_START_NS;

		assert_true(waited >= (four < 16000000 ? four : 16000000));
		sim_end(&s);
	}
}

/* IBTA 9.7.5.2.8: a gap is reported once, even if more packets arrive behind it. */
SIM_TEST(one_gap_is_one_nak)
{
	uint32_t lost = psn_of(&s, 2);
	struct duo_wr w = make(&s, WR_WRITE, 1, 40 * 1024);

	s.duo->batch = 1; /* each packet has its chance to be answered */
	drop_psn(&s, &lost, 0);
	duo_do(s.a, w);
	assert_memory_equal(s.bbuf->p, s.abuf->p, 40 * 1024);
	assert_int_equal(duo_count_syndrome(s.duo, DUO_B, NAK_SEQUENCE), 1);
	assert_true(nic_counters(s.b->host->nic)->rx_out_of_sequence >= 10);
}

SIM_TEST(two_gaps_are_two_naks)
{
	uint32_t lost[2] = {psn_of(&s, 2), psn_of(&s, 9)};

	drop_psn(&s, &lost[0], 0);
	drop_psn(&s, &lost[1], 1); /* of the second round */
	duo_must_post(s.a, make(&s, WR_WRITE, 1, 20 * 1024));
	duo_finish(s.a, 1, WC_SUCCESS);
	assert_memory_equal(s.bbuf->p, s.abuf->p, 20 * 1024);
	assert_int_equal(duo_count_syndrome(s.duo, DUO_B, NAK_SEQUENCE), 2);
	assert_int_equal(nic_counters(s.a->host->nic)->timeouts, 0);
}

/* A retransmission may be lost again; the same gap is not reported twice, so the timer repairs it. */
SIM_TEST(retransmission_lost_too)
{
	uint32_t lost = psn_of(&s, 1);

	drop_psn(&s, &lost, 0);
	drop_psn(&s, &lost, 0); /* rules count by themselves: this sees the second one */
	drop_psn(&s, &lost, 0);
	duo_must_post(s.a, make(&s, WR_WRITE, 1, 4096));
	duo_finish(s.a, 1, WC_SUCCESS);
	assert_memory_equal(s.bbuf->p, s.abuf->p, 4096);
	assert_int_equal(sent_with_psn(&s, lost), 4);
	assert_true(nic_counters(s.a->host->nic)->timeouts >= 1);
}

SIM_TEST(lost_nak_is_made_up_by_the_timer)
{
	uint32_t lost = psn_of(&s, 1);
	struct duo_rule *nak;

	drop_psn(&s, &lost, 0);
	nak = duo_drop(s.duo, DUO_B, OP_RC_ACK, 0);
	duo_must_post(s.a, make(&s, WR_WRITE, 1, 4096));
	duo_finish(s.a, 1, WC_SUCCESS);
	assert_int_equal(nak->hits, 1);
	assert_memory_equal(s.bbuf->p, s.abuf->p, 4096);
	assert_int_equal(nic_counters(s.a->host->nic)->timeouts, 1);
}

/*
 * The ACK of a message that was executed is lost. The duplicate is acknowledged again and not
 * executed again (IBTA C9-105): memory that has changed since stays as it is.
 */
TEST(duplicate_is_acknowledged_and_not_executed)
{
	static const enum wr_opcode ops[] = {WR_WRITE, WR_WRITE_IMM, WR_SEND, WR_SEND_IMM};

	for (size_t i = 0; i < COUNT(ops); i++) {
		struct sim s = sim_default();
		struct duo_rule *ack = duo_drop(s.duo, DUO_B, OP_RC_ACK, 0);

		for (uint64_t k = 0; k < 3; k++)
			assert_true(duo_recv(s.b, 10 + k, s.bbuf, 0, 4000));
		duo_must_post(s.a, make(&s, ops[i], 1, 2500));
		duo_run_for(s.duo, timeout_ns(s.a) / 2);
		assert_int_equal(ack->hits, 1);
		assert_memory_equal(s.bbuf->p, s.abuf->p, 2500);
		assert_int_equal(s.a->sent.n, 0);
		memset(s.bbuf->p, 0xee, 2500);
		duo_finish(s.a, 1, WC_SUCCESS);
		for (int k = 0; k < 2500; k++)
			assert_int_equal(s.bbuf->p[k], 0xee);
		if (ops[i] != WR_WRITE)
			duo_expect(s.duo, &s.b->received, 10, WC_SUCCESS);
		assert_int_equal(rq_posted(qp_rq(s.b->qp)), ops[i] == WR_WRITE ? 3 : 2);
		assert_int_equal(nic_counters(s.b->host->nic)->rx_duplicates, 3);

		const struct duo_packet *last =
			duo_packet(s.duo, DUO_B, OP_RC_ACK, duo_count(s.duo, DUO_B, OP_RC_ACK) - 1);

		assert_int_equal(last->bth.psn, psn_of(&s, 2)); /* the newest executed */
		sim_end(&s);
	}
}

SIM_TEST(later_ack_covers_a_lost_one)
{
	struct duo_wr w[] = {make(&s, WR_WRITE, 1, 10), make(&s, WR_WRITE, 2, 10)};

	duo_drop(s.duo, DUO_B, OP_RC_ACK, 0);
	assert_true(duo_post(s.a, &w[0]));
	duo_run_for(s.duo, 10 * DUO_LATENCY_NS);
	assert_int_equal(s.a->sent.n, 0);
	assert_true(duo_post(s.a, &w[1]));
	duo_finish(s.a, 1, WC_SUCCESS);
	duo_expect(s.duo, &s.a->sent, 2, WC_SUCCESS);
	assert_int_equal(nic_counters(s.a->host->nic)->timeouts, 0);
	assert_int_equal(nic_counters(s.a->host->nic)->retransmits, 0);
}

/* IBTA 9.7.5.1.2: a NAK acknowledges everything before the PSN it names. */
SIM_TEST(nak_acknowledges_what_is_before_it)
{
	uint32_t lost = psn_of(&s, 1);
	struct duo_wr w[] = {make(&s, WR_WRITE, 1, 10), make(&s, WR_WRITE, 2, 10), make(&s, WR_WRITE, 3, 10)};

	drop_psn(&s, &lost, 0);
	duo_drop(s.duo, DUO_B, OP_RC_ACK, 1); /* the ACK after the repair */
	assert_true(duo_post_chain(s.a, w, 3));
	duo_run_for(s.duo, timeout_ns(s.a) / 2);
	assert_int_equal(duo_count_syndrome(s.duo, DUO_B, 0), 1);
	duo_expect(s.duo, &s.a->sent, 1, WC_SUCCESS);
	assert_int_equal(s.a->sent.n, 1);
	duo_finish(s.a, 2, WC_SUCCESS);
	duo_expect(s.duo, &s.a->sent, 3, WC_SUCCESS);
}

TEST(late_packet_does_no_harm)
{
	for (uint64_t behind = 1; behind < 12; behind++) {
		struct sim s = sim_default();
		uint32_t late = psn_of(&s, 3);
		struct duo_wr w = make(&s, WR_SEND, 1, 10 * 1024);

		assert_true(duo_recv(s.b, 2, s.bbuf, 0, 20000));
		assert_true(duo_recv(s.b, 3, s.bbuf, 20000, 20000));
		duo_rule(s.duo, (struct duo_rule){.from = DUO_A,
						  .opcode = DUO_ANY,
						  .match = has_psn,
						  .arg = &late,
						  .fate = DUO_HOLD,
						  .n = behind});
		s.duo->batch = 1;
		duo_do(s.a, w);
		assert_int_equal(duo_expect(s.duo, &s.b->received, 2, WC_SUCCESS)->byte_len, 10240);
		assert_memory_equal(s.bbuf->p, s.abuf->p, 10240);
		assert_int_equal(rq_posted(qp_rq(s.b->qp)), 1);
		sim_end(&s);
	}
}

/* Every packet of both sides arrives twice, the copy at once or much later. */
TEST(everything_twice_is_executed_once)
{
	static const uint64_t gaps_ns[] = {0, 1, 500, 3000, 1000000};

	for (size_t i = 0; i < COUNT(gaps_ns); i++) {
		struct sim s = sim_default();
		uint64_t sum = 0;

		duo_rule(s.duo, (struct duo_rule){.from = DUO_ANY,
						  .opcode = DUO_ANY,
						  .nth = DUO_ANY,
						  .fate = DUO_DUPLICATE,
						  .n = gaps_ns[i]});
		memcpy(s.bbuf->p + 40000, &sum, 8);
		for (uint64_t k = 0; k < 10; k++) {
			struct duo_wr w[] = {make(&s, WR_SEND, 3 * k, 3000),
					     duo_fetch_add_wr(3 * k + 1, s.abuf, 40000, s.bbuf, 40000, 3),
					     duo_read_wr(3 * k + 2, s.abuf, 50000, 3000, s.bbuf, 8192)};

			assert_true(duo_recv(s.b, k, s.bbuf, 0, 4000));
			assert_true(duo_post_chain(s.a, w, 3));
		}
		duo_idle(s.duo);
		for (uint64_t k = 0; k < 30; k++)
			duo_expect(s.duo, &s.a->sent, k, WC_SUCCESS);
		for (uint64_t k = 0; k < 10; k++)
			duo_expect(s.duo, &s.b->received, k, WC_SUCCESS);
		memcpy(&sum, s.bbuf->p + 40000, 8);
		assert_int_equal(sum, 30);
		assert_memory_equal(s.abuf->p + 50000, s.bbuf->p + 8192, 3000);
		sim_end(&s);
	}
}

SIM_TEST(corrupt_packet_is_a_lost_packet)
{
	for (uint64_t i = 0; i < 10; i++)
		duo_rule(s.duo, (struct duo_rule){.from = DUO_A,
						  .opcode = DUO_ANY,
						  .nth = (int)(7 * i),
						  .fate = DUO_CORRUPT,
						  .n = i * 1237});
	duo_must_post(s.a, make(&s, WR_WRITE, 1, 10 * 1024));
	duo_finish(s.a, 1, WC_SUCCESS);
	assert_memory_equal(s.bbuf->p, s.abuf->p, 10 * 1024);
	const struct nic_counters *n = nic_counters(s.b->host->nic);

	assert_true(n->rx_icrc_errors + n->rx_malformed >= 2);
}

/* ECN marks are outside the ICRC's reach. */
TEST(ce_mark_does_not_break_a_packet)
{
	for (uint8_t gid = 0; gid < DUO_GIDS; gid++) {
		struct sim s = SIM(o.gid = gid);

		duo_rule(s.duo,
			 (struct duo_rule){.from = DUO_ANY, .opcode = DUO_ANY, .nth = DUO_ANY, .fate = DUO_MARK_CE});
		duo_must_post(s.a, make(&s, WR_WRITE, 1, 10 * 1024));
		duo_finish(s.a, 1, WC_SUCCESS);
		assert_int_equal(nic_counters(s.a->host->nic)->retransmits, 0);
		sim_end(&s);
	}
}

/*
 * IBTA 9.7.5.1.4: an ACK for a PSN that was never sent, or was acknowledged long ago, has no
 * effect.
 */
SIM_TEST(ghost_acks_are_ignored)
{
	static const int32_t ghosts[] = {1, 2, 100, 0x7ffffe, -1, -100, -0x7fffff};
	static const uint8_t syndromes[] = {AETH_ACK | AETH_CREDIT_INVALID, NAK_SEQUENCE, AETH_NAK | NAK_REMOTE_ACCESS,
					    AETH_RNR_NAK | 1};

	duo_must_post(s.a, make(&s, WR_WRITE, 1, 10));
	duo_drop(s.duo, DUO_A, DUO_ANY, 0);
	duo_run_for(s.duo, 10);
	for (size_t i = 0; i < COUNT(ghosts); i++) {
		for (size_t k = 0; k < COUNT(syndromes); k++) {
			uint8_t ext[AETH_LEN];
			struct bth bth = {.opcode = OP_RC_ACK,
					  .pkey = 0xffff,
					  .dqpn = s.a->qpn,
					  .psn = psn_of(&s, (uint32_t)ghosts[i])};

			aeth_encode(ext, &(struct aeth){.syndrome = syndromes[k], .msn = 1});
			assert_int_equal(duo_forge(s.duo, DUO_A, DUO_GID_IPV4, &bth, ext, sizeof(ext), NULL, 0), 0);
			duo_run_for(s.duo, 10);
			assert_int_equal(s.a->sent.n, 0);
			assert_int_equal(qp_state(s.a->qp), QPS_RTS);
		}
	}
	duo_finish(s.a, 1, WC_SUCCESS);
	assert_memory_equal(s.bbuf->p, s.abuf->p, 10);
}

/* Loss in both directions at rates no network has; progress restores the retry counter. */
TEST(heavy_loss_is_survived)
{
	for (uint64_t seed = 0; seed < 20; seed++) {
		struct duo *d = duo_create(seed, NULL);
		struct duo_options o = duo_options();

		o.timeout = 5;
		struct duo_pair p = duo_connect(d, &o);
		struct duo_buf *from = duo_buf(&d->host[DUO_A], 50000, 0);
		struct duo_buf *to = duo_buf(&d->host[DUO_B], 50000, ALL_ACCESS);

		duo_fill(from, seed);
		d->faults[DUO_A].drop_ppm = d->faults[DUO_B].drop_ppm = 150000;
		for (uint64_t i = 0; i < 50; i++)
			duo_must_post(p.a, duo_write_wr(i, from, i * 1000, 1000, to, i * 1000));
		duo_idle(d);
		for (uint64_t i = 0; i < 50; i++)
			duo_expect(d, &p.a->sent, i, WC_SUCCESS);
		assert_memory_equal(from->p, to->p, 50000);
		duo_destroy(d);
	}
}
