/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * veRoCE on a network that changes the order of packets: every packet is placed by itself, completions
 * wait for their turn (out-of-order O1, O3, O7, O8, O18 to O20; R3 to R5, R15). When memory shows what is
 * nic_memory_order_test's.
 */
#include "support/test.h"
#include "veroce/veroce.h"

TEST(neighbours_that_swap_cost_nothing)
{
	static const uint8_t rank[] = {1, 0, 2, 3};
	struct veroce_options v = veroce_options();
	struct duo_options o = duo_options();

	for (unsigned i = 0; veroce_variant(&v, &o, i); i++) {
		struct sim s = veroce_start_sim(&v, &o, 1);
		struct veroce_order order = {.psn = o.psn[DUO_A], .count = 4, .rank = rank};
		const struct duo_packet *ack;

		veroce_set_order(s.duo, &order);
		duo_do(s.a, duo_write_wr(1, s.abuf, 0, 4 * o.mtu, s.bbuf, 0));
		assert_memory_equal(s.bbuf->p, s.abuf->p, 4 * o.mtu);
		assert_int_equal(veroce_retransmits(s.duo), 0);
		assert_int_equal(nic_counters(s.b->host->nic)->rx_out_of_sequence, 1);
		ack = veroce_last(s.duo, DUO_B, OP_RC_ACK);
		assert_int_equal(ack->bth.psn, psn_add(o.psn[DUO_A], 3));
		assert_int_equal(ack->aeth.msn, psn_add(v.sent.messages, 1));
		sim_end(&s);
	}
}

/* No PSN of A was sent more than twice. */
static void expect_one_copy_each(const struct duo *d, uint32_t psn)
{
	uint8_t copies[VEROCE_REVERSED] = {0};

	for (size_t i = 0; i < d->wire_count; i++) {
		const struct duo_packet *p = &d->wire[i];
		uint32_t at = (p->bth.psn - psn) & PSN_MASK;

		if (p->from == DUO_A && veroce_is_data(p) && p->bth.retrans && at < VEROCE_REVERSED)
			assert_int_equal(copies[at]++, 0);
	}
}

/* Two messages upside down: the first costs one copy of each packet at most, the second none. */
static void reverse_twice(const struct veroce_options *v, const struct duo_options *o)
{
	struct sim s = veroce_start_sim(v, o, 1);
	struct duo_buf *from = duo_buf(s.a->host, VEROCE_REVERSED * o->mtu, ALL_ACCESS);
	struct duo_buf *to = duo_buf(s.b->host, VEROCE_REVERSED * o->mtu, ALL_ACCESS);
	const struct nic_counters *n = nic_counters(s.b->host->nic);
	uint64_t copies;

	duo_fill(from, o->mtu);
	veroce_write_reversed(&s, from, to, o->psn[DUO_A]);
	copies = veroce_retransmits(s.duo);
	assert_true(n->sacks_sent > 0);
	assert_int_equal(n->rx_duplicates, copies);
	expect_one_copy_each(s.duo, o->psn[DUO_A]);
	veroce_write_reversed(&s, from, to, psn_add(o->psn[DUO_A], VEROCE_REVERSED));
	assert_int_equal(veroce_retransmits(s.duo), copies);
	assert_int_equal(nic_counters(s.a->host->nic)->timeouts, 0);
	sim_end(&s);
}

/* out-of-order O3, R17: the sender learns to wait, whether SACKs are for information or not. */
TEST(reordering_is_paid_for_once)
{
	struct veroce_options v = veroce_options();
	struct duo_options o = duo_options();

	for (unsigned i = 0; veroce_variant(&v, &o, i); i++) {
		for (int base = 0; base < 2; base++) {
			v.base[DUO_B] = base;
			reverse_twice(&v, &o);
		}
	}
}

/* out-of-order O7 */
TEST(receive_completion_waits_for_earlier_messages)
{
	struct veroce_options v = veroce_options();
	struct duo_options o = duo_options();

	v.order = ORDER_WEAK; /* the bytes of what does not complete are there */
	for (unsigned i = 0; veroce_variant(&v, &o, i); i++) {
		struct sim s = veroce_start_sim(&v, &o, 1);
		uint32_t mtu = o.mtu, hole = psn_add(o.psn[DUO_A], 2);
		struct duo_wr w3 = duo_write_wr(3, s.abuf, 4 * mtu, 2 * mtu - 3, s.bbuf, 4 * mtu);
		struct duo_rule *block = veroce_block(s.duo, &hole);
		const struct cqe *e;

		w3.opcode = WR_WRITE_IMM;
		w3.imm_or_key = 0xabcd0000 + i;
		w3.flags |= WR_SOLICITED;
		assert_true(duo_recv(s.b, 7, s.bbuf, 0, 0));
		duo_must_post(s.a, duo_write_wr(1, s.abuf, 0, 1, s.bbuf, 0));
		duo_must_post(s.a, duo_write_wr(2, s.abuf, mtu, 3 * mtu, s.bbuf, mtu));
		assert_true(duo_post(s.a, &w3));
		duo_run_for(s.duo, 100000);
		assert_memory_equal(s.bbuf->p + 4 * mtu, s.abuf->p + 4 * mtu, 2 * mtu - 3);
		assert_int_equal(s.b->received.n, 0);
		assert_int_equal(s.a->sent.n, 1);
		block->off = true;
		duo_idle(s.duo);
		for (uint64_t k = 1; k <= 3; k++)
			duo_expect(s.duo, &s.a->sent, k, WC_SUCCESS);
		e = duo_expect(s.duo, &s.b->received, 7, WC_SUCCESS);
		assert_int_equal(e->imm_or_key, 0xabcd0000 + i);
		assert_int_equal(e->byte_len, 2 * mtu - 3);
		assert_int_equal(e->opcode, WC_RECV_RDMA_WITH_IMM);
		assert_true(e->solicited);
		assert_memory_equal(s.bbuf->p + mtu, s.abuf->p + mtu, 3 * mtu);
		sim_end(&s);
	}
}

/* out-of-order O8: the values of the last packet are kept until the first one comes. */
VEROCE_VARIANTS_TEST(immediate_that_comes_first_waits_for_the_straggler)
{
	static const uint8_t rank[] = {3, 1, 2, 0};
	uint32_t first = s.a->opt.psn[DUO_A], len = 3 * s.a->opt.mtu + 1;
	struct veroce_order order = {.psn = first, .count = 4, .rank = rank};
	struct duo_wr w = duo_write_wr(1, s.abuf, 0, len, s.bbuf, 0);
	struct duo_rule *block = veroce_block(s.duo, &first);
	const struct cqe *e;

	order.lost = 1;
	w.opcode = WR_WRITE_IMM;
	w.imm_or_key = 99;
	assert_true(duo_recv(s.b, 7, s.bbuf, 0, 0));
	veroce_set_order(s.duo, &order);
	assert_true(duo_post(s.a, &w));
	duo_run_for(s.duo, 100000);
	assert_int_equal(s.b->received.n, 0);
	block->off = true;
	duo_finish(s.a, 1, WC_SUCCESS);
	e = duo_expect(s.duo, &s.b->received, 7, WC_SUCCESS);
	assert_int_equal(e->imm_or_key, 99);
	assert_int_equal(e->byte_len, len);
	assert_memory_equal(s.bbuf->p, s.abuf->p, len);
}

/* out-of-order O18, problem E */
VEROCE_VARIANTS_TEST(late_copy_does_not_overwrite_what_came_after)
{
	struct duo_rule twice = {.from = DUO_A, .opcode = DUO_ANY, .nth = DUO_ANY, .fate = DUO_DUPLICATE, .n = 1000000};
	struct duo_rule *r = duo_rule(s.duo, twice);

	duo_must_post(s.a, duo_write_wr(1, s.abuf, 0, 3 * s.a->opt.mtu, s.bbuf, 0));
	duo_run_for(s.duo, 100000);
	duo_expect(s.duo, &s.a->sent, 1, WC_SUCCESS);
	r->off = true;
	duo_must_post(s.a, duo_write_wr(2, s.abuf, 4 * s.a->opt.mtu, 3 * s.a->opt.mtu, s.bbuf, 0));
	duo_run_for(s.duo, 100000);
	duo_expect(s.duo, &s.a->sent, 2, WC_SUCCESS);
	duo_idle(s.duo);
	assert_int_equal(nic_counters(s.b->host->nic)->rx_duplicates, 3);
	assert_memory_equal(s.bbuf->p, s.abuf->p + 4 * s.a->opt.mtu, 3 * s.a->opt.mtu);
}

/* Two WRITEs to one place, the packets of the first late by more than any timeout. */
static void overlap(struct sim *s, bool fence)
{
	uint32_t mtu = s->a->opt.mtu;
	struct veroce_order order = {.psn = s->a->opt.psn[DUO_A], .count = 3, .step_ns = 1000000};
	struct duo_wr w2 = duo_write_wr(2, s->abuf, 4 * mtu, 3 * mtu, s->bbuf, 0);

	if (fence)
		w2.flags |= WR_FENCE;
	veroce_set_order(s->duo, &order);
	duo_must_post(s->a, duo_write_wr(1, s->abuf, 0, 3 * mtu, s->bbuf, 0));
	assert_true(duo_post(s->a, &w2));
	duo_finish(s->a, 1, WC_SUCCESS);
	duo_expect(s->duo, &s->a->sent, 2, WC_SUCCESS);
}

/* out-of-order O19: the bytes of either message, in any mix of packets, and nothing else. */
VEROCE_VARIANTS_TEST(unfenced_overlap_ends_with_either, v.order = ORDER_WEAK)
{
	overlap(&s, false);
	for (uint32_t p = 0; p < 3; p++) {
		const uint8_t *got = s.bbuf->p + p * s.a->opt.mtu, *sent = s.abuf->p + p * s.a->opt.mtu;

		assert_true(!memcmp(got, sent, s.a->opt.mtu) || !memcmp(got, sent + 4 * s.a->opt.mtu, s.a->opt.mtu));
	}
}

/* out-of-order O20 */
VEROCE_VARIANTS_TEST(fenced_overlap_ends_with_the_second, v.order = ORDER_WEAK)
{
	overlap(&s, true);
	assert_memory_equal(s.bbuf->p, s.abuf->p + 4 * s.a->opt.mtu, 3 * s.a->opt.mtu);
}

/* out-of-order R15: no packet of a fenced WR leaves while any WR before it is not complete. */
TEST(fence_waits_for_all_before_it)
{
	for (uint64_t seed = 1; seed <= 60; seed++) {
		struct veroce_options v = veroce_options();
		struct duo_options o = duo_options();
		uint64_t done_ns = 0;
		uint32_t fenced = 0, nth;

		veroce_variant(&v, &o, seed % VEROCE_VARIANTS);
		v.paths = 1 + seed % 4;

		struct sim s = veroce_start_sim(&v, &o, seed);

		for (int side = 0; side < DUO_SIDES; side++) {
			s.duo->faults[side].drop_ppm = 100000;
			s.duo->faults[side].delay_ppm = 200000;
			s.duo->faults[side].delay_ns_max = 20000;
		}
		for (uint64_t i = 0; i < 8; i++) {
			struct duo_wr w = duo_write_wr(i, s.abuf, 0, 2 * o.mtu, s.bbuf, 32768);

			if (i % 3 == 1)
				w = duo_read_wr(i, s.abuf, 0, 2 * o.mtu + 5, s.bbuf, 0);
			else if (i % 3 == 2)
				w = duo_fetch_add_wr(i, s.abuf, 0, s.bbuf, 0, 1);
			if (i == 4 || i == 7)
				w.flags |= WR_FENCE;
			assert_true(duo_post(s.a, &w));
		}
		duo_idle(s.duo);
		for (uint64_t i = 0; i < 8; i++)
			duo_expect(s.duo, &s.a->sent, i, WC_SUCCESS);
		for (size_t k = 0; k < s.duo->wire_count; k++) {
			const struct duo_packet *p = &s.duo->wire[k];

			if (p->from != DUO_A || !veroce_is_data(p) || p->bth.retrans || p->info->flags & F_RESPONSE)
				continue;
			nth = (p->msn - v.sent.messages) & PSN_MASK;
			if (nth == 5 || nth == 8) {
				done_ns = s.a->sent.e[nth - 2].timestamp_ns;
				assert_true(p->sent_ns >= done_ns);
				fenced++;
			}
		}
		assert_true(fenced >= 2);
		sim_end(&s);
	}
}

/* ---- acknowledgements never cover what has not arrived (out-of-order R4) ------------------- */

enum { WATCHED = 4096 };

/* One direction and space, as an ideal receiver would see it. Arrivals are known when it is sent.
 */
struct watched {
	uint32_t psn;                 /* of the first packet */
	uint32_t msn;                 /* of the last message before it; others are counted from it */
	uint64_t arrival_ns[WATCHED]; /* 0: not yet on its way */
	uint32_t end_msn[WATCHED];    /* of the message that ends there; 0: none does */
	uint32_t apsn, amsn;          /* as last acknowledged */
	uint32_t acks;
};

struct watch {
	struct duo *duo;
	struct watched space[DUO_SIDES][2]; /* by sender; [1]: responses */
};

static void note_sent(struct watch *w, const struct duo_packet *p)
{
	struct watched *s = &w->space[p->from][!!(p->info->flags & F_RESPONSE)];
	uint32_t i = (p->bth.psn - s->psn) & PSN_MASK;
	uint64_t at = p->sent_ns + w->duo->latency_ns + w->duo->path_ns[p->path];

	assert_true(i < WATCHED);
	if (p->info->flags & F_END)
		s->end_msn[i] = (p->msn - s->msn) & PSN_MASK;
	if (p->fate != DUO_DROP && (!s->arrival_ns[i] || s->arrival_ns[i] > at))
		s->arrival_ns[i] = at;
}

static void check_ack(struct watch *w, const struct duo_packet *p, struct watched *s)
{
	uint32_t upto = (p->bth.psn + 1 - s->psn) & PSN_MASK, amsn = 0;

	assert_true(upto <= WATCHED);
	for (uint32_t i = 0; i < upto; i++) {
		DUO_CHECK(w->duo, s->arrival_ns[i] && s->arrival_ns[i] <= p->sent_ns);
		if (s->end_msn[i])
			amsn = s->end_msn[i];
	}
	DUO_CHECK(w->duo, p->aeth.msn == psn_add(s->msn, amsn));
	DUO_CHECK(w->duo, upto >= s->apsn && amsn >= s->amsn);
	s->apsn = upto;
	s->amsn = amsn;
	s->acks++;
	for (uint32_t i = 0; p->sack_count && i < p->sack.valid_len; i++) {
		uint32_t at = (p->sack.start_psn + i - s->psn) & PSN_MASK;

		if (p->sack.bits[i / 64] >> i % 64 & 1)
			DUO_CHECK(w->duo, s->arrival_ns[at] && s->arrival_ns[at] <= p->sent_ns);
	}
}

static void watch(void *ctx, const struct duo_packet *p, const uint8_t *data)
{
	struct watch *w = ctx;

	if (veroce_is_data(p))
		note_sent(w, p);
	else if (p->bth.opcode == OP_RC_ACK || p->bth.opcode == OP_RC_SACK)
		check_ack(w, p, &w->space[!p->from][0]);
	else if (p->bth.opcode == OP_RC_ACK_RSP || p->bth.opcode == OP_RC_SACK_RSP)
		check_ack(w, p, &w->space[!p->from][1]);
}

TEST(acknowledgements_cover_no_hole)
{
	static const uint64_t skew_ns[] = {0, 3000, 20000, 45000};

	for (uint64_t seed = 1; seed <= 24; seed++) {
		struct veroce_options v = veroce_options();
		struct duo_options o = duo_options();
		struct watch *w = calloc(1, sizeof(*w));

		veroce_variant(&v, &o, seed % VEROCE_VARIANTS);
		v.paths = COUNT(skew_ns);
		v.flowlet = 1 + seed % 8;
		v.loss = seed % 3;
		v.base[DUO_B] = seed & 1;

		struct sim s = veroce_start_sim(&v, &o, seed);

		w->duo = s.duo;
		for (int side = 0; side < DUO_SIDES; side++) {
			w->space[side][0].psn = o.psn[side];
			/* Responses begin with the requester's first PSN (veRoCE 4.1). */
			w->space[side][1].psn = o.psn[!side];
			w->space[side][0].msn = v.sent.messages;
			w->space[side][1].msn = v.sent.reads;
			s.duo->faults[side].drop_ppm = 30000;
		}
		memcpy(s.duo->path_ns, skew_ns, sizeof(skew_ns));
		s.duo->tap = watch;
		s.duo->tap_ctx = w;
		for (uint64_t i = 0; i < 120; i++) {
			struct duo_qp *q = i & 1 ? s.a : s.b;
			struct duo_buf *from = i & 1 ? s.abuf : s.bbuf, *to = i & 1 ? s.bbuf : s.abuf;
			uint32_t len = (uint32_t)prng_below(&s.duo->prng, 5 * o.mtu);
			struct duo_wr x = duo_write_wr(i, from, 0, len, to, 32768);

			switch (prng_below(&s.duo->prng, 4)) {
			case 0: x = duo_read_wr(i, from, 0, len, to, 32768); break;
			case 1: x = duo_fetch_add_wr(i, from, 32760, to, 32760, 1); break;
			case 2:
				assert_true(duo_recv(q->peer, i, to, 32768, 5 * o.mtu));
				x = duo_send_wr(i, from, 0, len);
				break;
			default: break;
			}
			assert_true(duo_post(q, &x));
			duo_run_for(s.duo, prng_below(&s.duo->prng, 30000));
		}
		duo_idle(s.duo);
		for (uint64_t i = 0; i < 120; i++)
			duo_expect(s.duo, i & 1 ? &s.a->sent : &s.b->sent, i, WC_SUCCESS);
		s.a->received.taken = s.a->received.n;
		s.b->received.taken = s.b->received.n;
		for (int side = 0; side < DUO_SIDES; side++)
			assert_true(w->space[side][0].acks && w->space[side][1].acks);
		sim_end(&s);
		free(w);
	}
}

/* ---- placed once (out-of-order R3) ----------------------------------------------------------- */

/* Memory of a completed message belongs to the program: a late copy does not write there. */
TEST(copies_write_nothing_after_completion)
{
	for (uint64_t seed = 1; seed <= 24; seed++) {
		struct veroce_options v = veroce_options();
		struct duo_options o = duo_options();
		uint8_t *zero = calloc(1, BUF_BYTES);

		veroce_variant(&v, &o, seed % VEROCE_VARIANTS);
		v.paths = 1 + seed % 3;

		struct sim s = veroce_start_sim(&v, &o, seed);
		uint32_t len = 4 * o.mtu - 1;

		for (int side = 0; side < DUO_SIDES; side++) {
			s.duo->faults[side].drop_ppm = 50000;
			s.duo->faults[side].duplicate_ppm = 500000;
			s.duo->faults[side].delay_ppm = 200000;
			s.duo->faults[side].delay_ns_max = 300000;
		}
		for (uint64_t i = 0; i < 10; i++) {
			assert_true(duo_recv(s.b, i, s.bbuf, 16384, len));
			duo_must_post(s.a, duo_write_wr(i, s.abuf, 0, len, s.bbuf, 0));
			duo_must_post(s.a, duo_send_wr(100 + i, s.abuf, 0, len));
			duo_must_post(s.a, duo_read_wr(200 + i, s.abuf, 32768, len, s.bbuf, 32768));
			duo_wait(s.duo, &s.a->sent, 3 * i + 3);
			assert_memory_equal(s.bbuf->p, s.abuf->p, len);
			assert_memory_equal(s.bbuf->p + 16384, s.abuf->p, len);
			assert_memory_equal(s.abuf->p + 32768, s.bbuf->p + 32768, len);
			duo_expect(s.duo, &s.a->sent, i, WC_SUCCESS);
			duo_expect(s.duo, &s.a->sent, 100 + i, WC_SUCCESS);
			duo_expect(s.duo, &s.a->sent, 200 + i, WC_SUCCESS);
			duo_expect(s.duo, &s.b->received, i, WC_SUCCESS);
			memset(s.bbuf->p, 0, 32768);
			memset(s.abuf->p + 32768, 0, len);
			duo_run_for(s.duo, prng_below(&s.duo->prng, 400000));
			assert_memory_equal(s.bbuf->p, zero, 32768);
			assert_memory_equal(s.abuf->p + 32768, zero, len);
		}
		duo_idle(s.duo);
		assert_memory_equal(s.bbuf->p, zero, 32768);
		assert_memory_equal(s.abuf->p + 32768, zero, len);
		sim_end(&s);
		free(zero);
	}
}
