/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The receive WQE of a message when messages overtake each other, and the case that there is none
 * (veRoCE 4.4, 7.2, 7.3; out-of-order O5, O6, O9, O32, O33; R7, R10, R11).
 */
#include "support/test.h"
#include "veroce/veroce.h"
#include "transport/veroce/work.h"

/* SEND A of three packets, B of two, all of B before A. */
static const uint8_t b_before_a[] = {2, 3, 4, 0, 1};

static void post_a_and_b(struct sim *s, struct veroce_order *order)
{
	uint32_t mtu = s->a->opt.mtu;

	*order = (struct veroce_order){.psn = s->a->opt.psn[DUO_A], .count = 5, .rank = b_before_a, .step_ns = 100};
	veroce_set_order(s->duo, order);
	duo_must_post(s->a, duo_send_wr(1, s->abuf, 0, 3 * mtu - 1));
	duo_must_post(s->a, duo_send_wr(2, s->abuf, 3 * mtu, mtu + 1));
}

static void expect_a_and_b(struct sim *s)
{
	uint32_t mtu = s->a->opt.mtu;

	duo_expect(s->duo, &s->a->sent, 1, WC_SUCCESS);
	duo_expect(s->duo, &s->a->sent, 2, WC_SUCCESS);
	assert_int_equal(duo_expect(s->duo, &s->b->received, 10, WC_SUCCESS)->byte_len, 3 * mtu - 1);
	assert_int_equal(duo_expect(s->duo, &s->b->received, 11, WC_SUCCESS)->byte_len, mtu + 1);
	assert_memory_equal(s->bbuf->p, s->abuf->p, 3 * mtu - 1);
	assert_memory_equal(s->bbuf->p + 20000, s->abuf->p + 3 * mtu, mtu + 1);
}

VEROCE_VARIANTS_TEST(messages_use_receives_in_the_order_sent)
{
	struct veroce_order order;

	assert_true(duo_recv(s.b, 10, s.bbuf, 0, 20000));
	assert_true(duo_recv(s.b, 11, s.bbuf, 20000, 20000));
	post_a_and_b(&s, &order);
	duo_idle(s.duo);
	expect_a_and_b(&s);
	assert_int_equal(nic_counters(s.b->host->nic)->rx_dropped, 0);
}

/* out-of-order O6: B is ignored until A is complete; then it gets an RNR NAK. */
TEST(receive_that_is_missing_is_told_in_turn)
{
	struct veroce_options v = veroce_options();
	struct duo_options o = duo_options();

	for (unsigned i = 0; veroce_variant(&v, &o, i); i++) {
		struct sim s = veroce_start_sim(&v, &o, 1);
		uint32_t first = o.psn[DUO_A];
		struct duo_rule *block = veroce_block(s.duo, &first);
		struct veroce_order order;
		const struct nic_counters *n = nic_counters(s.b->host->nic);

		assert_true(duo_recv(s.b, 10, s.bbuf, 0, 20000));
		post_a_and_b(&s, &order);
		order.lost = 1;
		duo_run_for(s.duo, 100000);
		assert_int_equal(n->rnrs_sent, 0);
		assert_int_equal(s.b->received.n, 0);
		block->off = true;
		duo_run_for(s.duo, 500000);
		assert_true(n->rnrs_sent >= 1);
		assert_int_equal(s.b->received.n, 1);
		for (size_t k = 0; k < s.duo->wire_count; k++) {
			const struct duo_packet *p = &s.duo->wire[k];

			if (aeth_kind(p->aeth.syndrome) == AETH_RNR_NAK) {
				assert_int_equal(p->bth.psn, psn_add(first, 3));
				assert_int_equal(p->aeth.msn, psn_add(v.sent.messages, 1));
			}
		}
		assert_true(duo_recv(s.b, 11, s.bbuf, 20000, 20000));
		duo_idle(s.duo);
		expect_a_and_b(&s);
		assert_int_equal(n->naks_sent, 0);
		sim_end(&s);
	}
}

/*
 * out-of-order O9: the data has landed, but there is no completion. `early`: the packet before it
 * is also missing; `soon`: the receive comes while the requester still waits.
 */
static void immediate_without_receive(const struct veroce_options *v, const struct duo_options *o, bool early,
				      bool soon)
{
	struct sim s = veroce_start_sim(v, o, 1);
	uint32_t mtu = o->mtu, first = o->psn[DUO_A];
	struct duo_wr w = duo_write_wr(1, s.abuf, 0, 2 * mtu, s.bbuf, 0);
	static const uint8_t late_first[] = {1, 0, 2, 3, 4};
	struct veroce_order order = {.psn = first, .count = 5, .rank = late_first, .step_ns = 100};
	const struct duo_packet *ack;
	const struct cqe *e;

	if (early)
		veroce_set_order(s.duo, &order);
	w.opcode = WR_WRITE_IMM;
	w.imm_or_key = 1234;
	assert_true(duo_post(s.a, &w));
	duo_must_post(s.a, duo_write_wr(2, s.abuf, 3 * mtu, 3 * mtu, s.bbuf, 3 * mtu));
	duo_run_for(s.duo, 100000);
	assert_int_equal(nic_counters(s.b->host->nic)->rnrs_sent, 1);
	assert_int_equal(s.b->received.n, 0);
	assert_int_equal(s.a->sent.n, 0);
	assert_memory_equal(s.bbuf->p, s.abuf->p, 2 * mtu);
	/* A message that only waits for the receive is not placed again. */
	memset(s.bbuf->p, 0, 6 * mtu);
	ack = veroce_last(s.duo, DUO_B, OP_RC_ACK);
	assert_int_equal(ack->aeth.msn, v->sent.messages);
	assert_true(psn_diff(ack->bth.psn, psn_add(first, 1)) <= 0);
	if (!soon)
		duo_run_for(s.duo, 5000000);
	assert_int_equal(s.b->received.n, 0);
	assert_true(duo_recv(s.b, 10, s.bbuf, 0, 0));
	duo_finish(s.a, 1, WC_SUCCESS);
	duo_expect(s.duo, &s.a->sent, 2, WC_SUCCESS);
	e = duo_expect(s.duo, &s.b->received, 10, WC_SUCCESS);
	assert_int_equal(e->byte_len, 2 * mtu);
	assert_int_equal(e->imm_or_key, 1234);
	for (uint32_t i = 0; i < 2 * mtu; i++)
		assert_int_equal(s.bbuf->p[i], 0);
	sim_end(&s);
}

TEST(immediate_waits_for_a_receive_and_completes_once)
{
	struct veroce_options v = veroce_options();
	struct duo_options o = duo_options();

	for (unsigned i = 0; veroce_variant(&v, &o, i); i++) {
		for (int k = 0; k < 4; k++)
			immediate_without_receive(&v, &o, k & 1, k & 2);
	}
}

/* A peer that never gets a receive gives up after its rnr_retry. */
TEST(rnr_retries_are_counted)
{
	for (uint8_t retry = 0; retry < 7; retry += 3) {
		struct sim s = VEROCE_SIM(o.rnr_retry = retry);

		duo_must_post(s.a, duo_send_wr(1, s.abuf, 0, 10));
		duo_finish(s.a, 1, WC_RNR_RETRY_EXC_ERR);
		assert_int_equal(nic_counters(s.a->host->nic)->rnrs_received, retry + 1);
		sim_end(&s);
	}
}

/* Each message has all retries (IBTA 9.7.5.2.8): a completion resets the count. */
VEROCE_TEST(rnr_retries_are_counted_anew_for_each_message, o.rnr_retry = 1)
{
	for (uint64_t i = 1; i <= 3; i++)
		duo_must_post(s.a, duo_send_wr(i, s.abuf, 0, 10));
	for (uint64_t i = 1; i <= 3; i++) {
		while (nic_counters(s.a->host->nic)->rnrs_received < i)
			duo_run_for(s.duo, 100);
		assert_true(duo_recv(s.b, i, s.bbuf, 0, 10));
		duo_wait(s.duo, &s.a->sent, i);
		duo_expect(s.duo, &s.a->sent, i, WC_SUCCESS);
		duo_expect(s.duo, &s.b->received, i, WC_SUCCESS);
	}
}

/*
 * Many SENDs are under way when the receives come one by one, later than the RNR timer. A refused SEND is repeated
 * alone, a packet at a time while none is accepted, and not the whole run each time.
 */
TEST(slow_receives_do_not_have_everything_sent_again)
{
	enum { SENDS = 60, SEND_PACKETS = 3 };

	struct veroce_options v = veroce_options();
	struct duo_options o = duo_options();
	const struct nic_counters *n;
	uint32_t bytes;
	struct sim s;

	o.min_rnr_timer = 1; /* 10 us */
	s = veroce_start_sim(&v, &o, 1);
	n = nic_counters(s.a->host->nic);
	bytes = SEND_PACKETS * o.mtu;
	for (uint64_t i = 0; i < SENDS; i++)
		duo_must_post(s.a, duo_send_wr(i, s.abuf, i % 20 * bytes, bytes));
	for (uint64_t i = 0; i < SENDS; i++) {
		duo_run_for(s.duo, 2000000);
		assert_true(duo_recv(s.b, i, s.bbuf, i % 20 * bytes, bytes));
	}
	duo_idle(s.duo);
	for (uint64_t i = 0; i < SENDS; i++) {
		duo_expect(s.duo, &s.a->sent, i, WC_SUCCESS);
		duo_expect(s.duo, &s.b->received, i, WC_SUCCESS);
	}
	/* In each 2 ms a few, as waits grow to 1 ms, and the message itself and the one behind it. */
	assert_in_range(n->retransmits, SENDS, SENDS * (10 + 2 * SEND_PACKETS));
	assert_int_equal(n->timeouts, 0);
	sim_end(&s);
}

/*
 * All refused messages arrive a few round trips after the receives are posted, however many they
 * are.
 */
VEROCE_TEST(refused_run_is_taken_soon, o.min_rnr_timer = 1)
{
	enum { SENDS = 60, LATENCY_NS = 10000 };

	uint64_t t;

	s.duo->latency_ns = LATENCY_NS;
	for (uint64_t i = 0; i < SENDS; i++) {
		duo_must_post(s.a, i % 3 ? duo_send_wr(i, s.abuf, i * 1000, 1000)
					 : duo_write_wr(i, s.abuf, i * 1000, 1000, s.bbuf, i * 1000));
	}
	duo_run_for(s.duo, 20 * LATENCY_NS);
	for (uint64_t i = 0; i < SENDS; i++) {
		if (i % 3)
			assert_true(duo_recv(s.b, i, s.bbuf, i * 1000, 1000));
	}
	t = s.duo->now_ns;
	duo_wait(s.duo, &s.a->sent, SENDS);
	/* Up to twice what was waited before, and seven rounds. */
	assert_in_range(s.duo->now_ns - t, 0, (20 + 20 + 2 * 7) * LATENCY_NS);
	for (uint64_t i = 0; i < SENDS; i++) {
		duo_expect(s.duo, &s.a->sent, i, WC_SUCCESS);
		if (i % 3)
			duo_expect(s.duo, &s.b->received, i, WC_SUCCESS);
	}
	assert_memory_equal(s.bbuf->p, s.abuf->p, SENDS * 1000);
	/* WRITEs were never refused. */
	for (size_t i = 0; i < s.duo->wire_count; i++)
		assert_false(s.duo->wire[i].bth.opcode == OP_RC_WRITE_ONLY && s.duo->wire[i].bth.retrans);
}

/*
 * After an RNR NAK the named packet goes alone, and what was refused behind it waits for its acknowledgement. That one
 * is lost, before any round trip was measured and with a local ACK timeout of a fraction of the RTO: a timeout sends
 * the named packet again although others count as lost. `told`: meanwhile a SACK names it as arrived, which
 * acknowledges it selectively and no more; it is sent again all the same.
 */
static void rnr_nak_and_a_lost_ack(bool told)
{
	struct veroce_options v = veroce_options();
	struct duo_options o = duo_options();
	struct veroce_packet p = {.bth = {.opcode = OP_RC_SACK}};
	const struct nic_counters *n;
	uint8_t block[SACKETH_LEN];
	struct sim s;

	o.min_rnr_timer = 1; /* 10 us */
	o.timeout = 7;       /* 524 us */
	o.retry_cnt = 1;
	s = veroce_start_sim(&v, &o, 1);
	n = nic_counters(s.a->host->nic);
	for (uint64_t i = 0; i < 3; i++)
		duo_must_post(s.a, duo_send_wr(i, s.abuf, i * 100, 100));
	while (!n->rnrs_received)
		duo_run_for(s.duo, 100);
	for (uint64_t i = 0; i < 3; i++)
		assert_true(duo_recv(s.b, i, s.bbuf, i * 100, 100));
	duo_drop(s.duo, DUO_B, OP_RC_ACK, 0);
	duo_run_for(s.duo, 100000);
	assert_int_equal(s.b->received.n, 1);
	assert_int_equal(s.a->sent.n, 0);
	if (told) {
		p.bth.dqpn = s.a->qpn;
		p.bth.psn = (o.psn[DUO_A] - 1) & PSN_MASK;
		p.aeth = (struct aeth){.syndrome = AETH_ACK | AETH_CREDIT_INVALID, .msn = v.sent.messages};
		sacketh_encode(block, &(struct sacketh){.valid_len = 1, .start_psn = o.psn[DUO_A], .bits = {1}});
		p.sacks = block;
		p.sack_count = 1;
		veroce_forge(s.duo, DUO_A, &p, NULL);
		assert_int_equal(tx_record(&s.a->qp->veroce->w->q.tx, o.psn[DUO_A])->state, TX_ACKED);
	}
	duo_idle(s.duo);
	for (uint64_t i = 0; i < 3; i++) {
		duo_expect(s.duo, &s.a->sent, i, WC_SUCCESS);
		duo_expect(s.duo, &s.b->received, i, WC_SUCCESS);
	}
	assert_in_range(n->timeouts, 1, 2);
	sim_end(&s);
}

TEST(named_packet_whose_ack_was_lost_is_sent_again)
{
	rnr_nak_and_a_lost_ack(false);
}

TEST(named_packet_that_is_known_to_be_there_is_sent_again)
{
	rnr_nak_and_a_lost_ack(true);
}

/* ---- a shared receive queue (out-of-order O32, R7) ------------------------------------------- */

enum { QPS = 2, MESSAGES = 80, SLOTS = 24 };

struct shared {
	struct sim s;
	struct srq *srq;
	struct duo_pair pair[QPS];
	struct duo_buf *inbox;
	uint64_t given;     /* WQEs posted, and the next wr_id */
	uint32_t seen[QPS]; /* messages checked */
	uint64_t used[QPS * MESSAGES];
	uint32_t slot_bytes;
};

static void give(struct shared *x)
{
	struct sge sge = duo_sge(x->inbox, x->given * x->slot_bytes, x->slot_bytes);

	assert_true(duo_post_srq(x->srq, x->given++, &sge, 1));
}

/* Message k of QP q is as long, and begins with these words. */
static uint32_t length_of(const struct shared *x, uint32_t q, uint32_t k)
{
	return 8 + (k * 37 + q * 101) % (x->slot_bytes - 8);
}

static void post_message(struct shared *x, uint32_t q, uint32_t k)
{
	struct duo_wr w = duo_send_wr(k, x->s.abuf, 0, length_of(x, q, k));
	uint32_t words[2] = {q, k};

	w.sge[0].len = 8;
	w.sge[0].addr = x->s.abuf->iova + 8 * (q * MESSAGES + k);
	w.sge[1] = duo_sge(x->s.abuf, 32768, length_of(x, q, k) - 8);
	w.num_sge = 2;
	memcpy(x->s.abuf->p + 8 * (q * MESSAGES + k), words, 8);
	assert_true(duo_post(x->pair[q].a, &w));
}

static void check_messages(struct shared *x)
{
	for (uint32_t q = 0; q < QPS; q++) {
		struct cqe_log *log = &x->pair[q].b->received;

		while (log->taken < log->n) {
			const struct cqe *e = &log->e[log->taken++];
			const uint8_t *at = x->inbox->p + e->wr_id * x->slot_bytes;
			uint32_t words[2], k = x->seen[q]++;

			memcpy(words, at, 8);
			assert_int_equal(e->status, WC_SUCCESS);
			assert_int_equal(e->byte_len, length_of(x, q, k));
			assert_int_equal(words[0], q);
			assert_int_equal(words[1], k);
			assert_memory_equal(at + 8, x->s.abuf->p + 32768, e->byte_len - 8);
			assert_int_equal(x->used[e->wr_id]++, 0);
		}
	}
}

static void shared_queue(uint64_t seed)
{
	struct veroce_options v = veroce_options();
	struct duo_options o = duo_options();
	struct shared *x = calloc(1, sizeof(*x));
	uint32_t posted[QPS] = {0};

	veroce_variant(&v, &o, seed % VEROCE_VARIANTS);
	v.paths = 1 + seed % 4;
	x->s = veroce_start_sim(&v, &o, seed);
	x->slot_bytes = 3 * o.mtu;
	x->inbox = duo_buf(x->s.b->host, QPS * MESSAGES * x->slot_bytes, ALL_ACCESS);
	assert_int_equal(nic_srq_create(x->s.b->host->nic, x->s.b->host->pd,
					&(struct srq_init){.max_wr = SLOTS, .max_sge = 1, .owner = x}, &x->srq),
			 0);
	o.srq[DUO_B] = x->srq;
	for (int q = 0; q < QPS; q++)
		x->pair[q] = duo_connect(x->s.duo, &o);
	for (int side = 0; side < DUO_SIDES; side++) {
		x->s.duo->faults[side].drop_ppm = 20000;
		x->s.duo->faults[side].delay_ppm = 400000;
		x->s.duo->faults[side].delay_ns_max = 10000;
	}
	for (int i = 0; i < SLOTS / 2; i++)
		give(x);
	while (x->seen[0] + x->seen[1] < QPS * MESSAGES) {
		uint32_t q = (uint32_t)prng_below(&x->s.duo->prng, QPS);
		uint32_t done = x->seen[0] + x->seen[1];

		for (uint64_t n = prng_below(&x->s.duo->prng, 5);
		     n && posted[q] < MESSAGES && posted[q] - x->pair[q].a->sent.n < 60; n--)
			post_message(x, q, posted[q]++);
		duo_run_for(x->s.duo, prng_below(&x->s.duo->prng, 20000));
		check_messages(x);
		/* It runs dry now and then. */
		while (x->given < done + SLOTS && x->given < QPS * MESSAGES && prng_below(&x->s.duo->prng, 3))
			give(x);
		assert_true(x->s.duo->now_ns < 20000000000u);
	}
	duo_idle(x->s.duo);
	check_messages(x);
	assert_int_equal(x->given, QPS * MESSAGES);
	for (uint32_t q = 0; q < QPS; q++) {
		for (uint64_t k = 0; k < MESSAGES; k++)
			duo_expect(x->s.duo, &x->pair[q].a->sent, k, WC_SUCCESS);
	}
	sim_end(&x->s);
	free(x);
}

TEST(shared_queue_keeps_each_connection_in_order)
{
	for (uint64_t seed = 1; seed <= 12; seed++)
		shared_queue(seed);
}

/* ---- invalidation (out-of-order O33, problem J) ---------------------------------------------- */

VEROCE_VARIANTS_TEST(invalidation_waits_for_its_turn)
{
	static const uint8_t rank[] = {1, 2, 3, 0};
	struct duo_buf *key = duo_buf(s.b->host, 3 * s.a->opt.mtu, ALL_ACCESS);
	uint32_t hole = psn_add(s.a->opt.psn[DUO_A], 1);
	struct veroce_order order = {.psn = s.a->opt.psn[DUO_A], .count = 4, .rank = rank, .lost = 2};
	struct duo_rule *block = veroce_block(s.duo, &hole);
	struct duo_wr inv = duo_send_wr(2, s.abuf, 0, 30);
	const struct cqe *e;

	inv.opcode = WR_SEND_INV;
	inv.imm_or_key = key->mr->key;
	inv.flags |= WR_SOLICITED;
	assert_true(duo_recv(s.b, 10, s.bbuf, 0, 100));
	veroce_set_order(s.duo, &order);
	duo_must_post(s.a, duo_write_wr(1, s.abuf, 0, 3 * s.a->opt.mtu, key, 0));
	assert_true(duo_post(s.a, &inv));
	duo_run_for(s.duo, 100000);
	assert_int_not_equal(key->mr->access & MR_REMOTE_WRITE, 0);
	assert_int_equal(s.b->received.n, 0);
	block->off = true;
	duo_finish(s.a, 1, WC_SUCCESS);
	duo_expect(s.duo, &s.a->sent, 2, WC_SUCCESS);
	e = duo_expect(s.duo, &s.b->received, 10, WC_SUCCESS);
	assert_int_equal(e->flags, WC_WITH_INV);
	assert_int_equal(e->imm_or_key, key->mr->key);
	assert_true(e->solicited);
	assert_memory_equal(key->p, s.abuf->p, 3 * s.a->opt.mtu);
	assert_int_equal(key->mr->access & MR_REMOTE_WRITE, 0);
}

/* Messages of one length that leave together: flags, immediates, addresses and keys stay each message's own. */
VEROCE_VARIANTS_TEST(messages_alike_keep_what_is_their_own)
{
	enum { COUNT = 16, BYTES = 30, AREA = 1024 };
	struct duo_buf *other = duo_buf(s.b->host, AREA, ALL_ACCESS);

	for (uint32_t n = 0; n < COUNT; n++) {
		struct duo_wr send = duo_send_wr(n, s.abuf, n * BYTES, BYTES);

		send.flags |= n & 2 ? WR_SOLICITED : 0;
		send.opcode = n & 4 ? WR_SEND_IMM : WR_SEND;
		send.imm_or_key = 100 + n;
		assert_true(duo_recv(s.b, n, s.bbuf, n * BYTES, BYTES));
		assert_true(duo_post(s.a, &send));
	}
	for (uint32_t n = 0; n < COUNT; n++) {
		uint32_t to = (n * 7 % COUNT) * BYTES;

		duo_must_post(s.a, n & 1 ? duo_write_wr(COUNT + n, s.abuf, to, BYTES, other, to)
					 : duo_write_wr(COUNT + n, s.abuf, to, BYTES, s.bbuf, AREA + to));
	}
	duo_idle(s.duo);
	for (uint32_t n = 0; n < COUNT; n++) {
		const struct cqe *e = duo_expect(s.duo, &s.b->received, n, WC_SUCCESS);
		uint32_t at = (n * 7 % COUNT) * BYTES;

		assert_int_equal(e->solicited, !!(n & 2));
		assert_int_equal(e->flags & WC_WITH_IMM, n & 4 ? WC_WITH_IMM : 0);
		if (n & 4)
			assert_int_equal(e->imm_or_key, 100 + n);
		duo_expect(s.duo, &s.a->sent, n, WC_SUCCESS);
		assert_memory_equal((n & 1 ? other->p : s.bbuf->p + AREA) + at, s.abuf->p + at, BYTES);
	}
	for (uint32_t n = 0; n < COUNT; n++)
		duo_expect(s.duo, &s.a->sent, COUNT + n, WC_SUCCESS);
	assert_memory_equal(s.bbuf->p, s.abuf->p, COUNT * BYTES);
}
