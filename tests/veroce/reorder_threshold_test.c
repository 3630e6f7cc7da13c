/* SPDX-License-Identifier: BSD-2-Clause */
/* T, the reordering that a receiver tolerates before it sends SACKs to a base peer (veRoCE 5.4;
 * out-of-order O2, O3, R17). */
#include "support/test.h"
#include "veroce/veroce.h"
#include "transport/veroce/work.h"

/* T starts at four a path: with sixteen the whole message may be upside down. */
TEST(reordering_within_the_threshold_is_not_answered_by_sack)
{
	static const enum veroce_loss losses[] = {LOSS_FAST, LOSS_BASE};
	struct veroce_options v = veroce_options();
	struct duo_options o = duo_options();

	v.base[DUO_A] = v.base[DUO_B] = true;
	v.paths = 16;
	for (unsigned i = 0; veroce_variant(&v, &o, i); i++) {
		v.loss = losses[i % COUNT(losses)];

		struct sim s = veroce_start_sim(&v, &o, 1);
		struct duo_buf *from = duo_buf(s.a->host, VEROCE_REVERSED * o.mtu, ALL_ACCESS);
		struct duo_buf *to = duo_buf(s.b->host, VEROCE_REVERSED * o.mtu, ALL_ACCESS);

		duo_fill(from, i);
		veroce_write_reversed(&s, from, to, o.psn[DUO_A]);
		DUO_CHECK(s.duo, !veroce_retransmits(s.duo));
		DUO_CHECK(s.duo, !nic_counters(s.b->host->nic)->sacks_sent);
		sim_end(&s);
	}
}

/*
 * out-of-order O3: reordering that was seen once causes no SACK again, also if the receiver sends
 * nothing.
 */
TEST(threshold_grows_to_the_reordering_seen)
{
	struct veroce_options v = veroce_options();
	struct duo_options o = duo_options();

	v.base[DUO_B] = true;
	for (unsigned i = 0; veroce_variant(&v, &o, i); i++) {
		v.loss = i & 1 ? LOSS_BASE : LOSS_FAST;

		struct sim s = veroce_start_sim(&v, &o, 1);
		struct duo_buf *from = duo_buf(s.a->host, VEROCE_REVERSED * o.mtu, ALL_ACCESS);
		struct duo_buf *to = duo_buf(s.b->host, VEROCE_REVERSED * o.mtu, ALL_ACCESS);
		const struct nic_counters *n = nic_counters(s.b->host->nic);
		uint64_t sacks, copies;

		duo_fill(from, i);
		veroce_write_reversed(&s, from, to, o.psn[DUO_A]);
		sacks = n->sacks_sent;
		copies = veroce_retransmits(s.duo);
		DUO_CHECK(s.duo, sacks);
		veroce_write_reversed(&s, from, to, psn_add(o.psn[DUO_A], VEROCE_REVERSED));
		DUO_CHECK(s.duo, n->sacks_sent == sacks);
		DUO_CHECK(s.duo, veroce_retransmits(s.duo) == copies);
		sim_end(&s);
	}
}

/* A WRITE of two packets that swap. */
static void swap_two(struct sim *s, const struct duo_buf *from, const struct duo_buf *to, uint32_t psn)
{
	static const uint8_t rank[] = {1, 0};
	struct veroce_order order = {.psn = psn, .count = 2, .rank = rank};

	veroce_set_order(s->duo, &order);
	duo_must_post(s->a, duo_write_wr(psn, from, 0, 2 * s->a->opt.mtu, to, 0));
	duo_run_for(s->duo, 2000000);
	s->duo->script = NULL;
	duo_expect(s->duo, &s->a->sent, psn, WC_SUCCESS);
}

/*
 * 5.4: an eighth less in 16 round trips, so that earlier states of the paths are forgotten; also if the
 * receiver rests in between, which one with a request of its own does not.
 */
VEROCE_VARIANTS_TEST(threshold_shrinks_when_little_is_reordered, v.base[DUO_B] = true)
{
	struct duo_buf *from = duo_buf(s.a->host, VEROCE_REVERSED * s.a->opt.mtu, ALL_ACCESS);
	struct duo_buf *to = duo_buf(s.b->host, VEROCE_REVERSED * s.a->opt.mtu, ALL_ACCESS);
	const struct nic_counters *n = nic_counters(s.b->host->nic);
	struct duo_wr waits = duo_send_wr(7, s.bbuf, 0, 1); /* for a receive */
	bool rests = i / 3 & 1;
	uint32_t psn = s.a->opt.psn[DUO_A];
	const struct veroce *vr;
	uint64_t sacks;

	duo_fill(from, i);
	veroce_write_reversed(&s, from, to, psn);
	assert_true(rests || duo_post(s.b, &waits));
	psn = psn_add(psn, VEROCE_REVERSED);
	for (int k = 0; k < 40; k++) {
		swap_two(&s, from, to, psn);
		psn = psn_add(psn, 2);
	}
	if (!rests) {
		assert_true(duo_recv(s.a, 8, s.abuf, 0, 1));
		duo_wait(s.duo, &s.b->sent, 1);
		duo_expect(s.duo, &s.b->sent, 7, WC_SUCCESS);
		duo_expect(s.duo, &s.a->received, 8, WC_SUCCESS);
	}
	/* By now it rests in any case, which makes it forget once; it has forgotten forty times. */
	vr = s.b->qp->veroce;
	DUO_CHECK(s.duo, (vr->w ? vr->w->q_in.ext : vr->quiet.q_ext) < VEROCE_REVERSED / 4);
	sacks = n->sacks_sent;
	veroce_write_reversed(&s, from, to, psn);
	DUO_CHECK(s.duo, n->sacks_sent > sacks);
}

/*
 * 5.3, 4: while nothing arrives, a lasting hole is reported to a base peer again, each time after
 * twice as long.
 */
VEROCE_VARIANTS_TEST(a_hole_that_stays_is_told_ever_later, v.base[DUO_B] = true)
{
	enum { SACKS = 1 + 8 };
	uint32_t hole = psn_add(s.a->opt.psn[DUO_A], 1);
	struct duo_rule *block = veroce_block(s.duo, &hole), *silence;
	const struct duo_packet *p;
	uint64_t at[SACKS];
	size_t n = 0;

	duo_must_post(s.a, duo_write_wr(1, s.abuf, 0, 3 * s.a->opt.mtu, s.bbuf, 0));
	duo_run_for(s.duo, 2 * DUO_LATENCY_NS);
	silence = duo_drop(s.duo, DUO_A, DUO_ANY, DUO_ANY);
	duo_run_for(s.duo, 100000000);
	assert_int_equal(nic_counters(s.b->host->nic)->sacks_sent, SACKS);
	for (size_t k = 0; (p = duo_packet(s.duo, DUO_B, OP_RC_SACK, k)); k++) {
		if (!n || p->sent_ns != at[n - 1]) /* not another block of the same */
			at[n++] = p->sent_ns;
	}
	assert_int_equal(n, SACKS);
	for (size_t k = 2; k < SACKS; k++)
		assert_int_equal(at[k] - at[k - 1], 2 * (at[k - 1] - at[k - 2]));
	block->off = silence->off = true;
	duo_finish(s.a, 1, WC_SUCCESS);
}

/*
 * T is at most half of the receive window: even if paths reorder a lot, a loss is reported while the sender can
 * still send, and not only when its window has closed and nothing arrives any more.
 */
TEST(threshold_leaves_half_the_window)
{
	enum { WINDOW = 128 };

	struct veroce_options v = veroce_options();
	struct duo_options o = duo_options();

	v.base[DUO_B] = true;
	v.rx_window = WINDOW;
	for (unsigned i = 0; veroce_variant(&v, &o, i); i++) {
		for (uint32_t packets = WINDOW / 2; packets <= WINDOW / 2 + 1; packets++) {
			struct sim s = veroce_start_sim(&v, &o, 1);
			struct duo_buf *from = duo_buf(s.a->host, packets * o.mtu, ALL_ACCESS);
			struct duo_buf *to = duo_buf(s.b->host, packets * o.mtu, ALL_ACCESS);
			const struct nic_counters *n = nic_counters(s.b->host->nic);
			uint32_t hole = psn_add(o.psn[DUO_A], VEROCE_REVERSED);
			struct duo_rule *block;
			uint64_t sacks;

			/* By what was seen T would be more. */
			duo_fill(from, i);
			veroce_write_reversed(&s, from, to, o.psn[DUO_A]);
			sacks = n->sacks_sent;
			block = veroce_block(s.duo, &hole);
			duo_must_post(s.a, duo_write_wr(1, from, 0, packets * o.mtu, to, 0));
			duo_run_for(s.duo, 3 * DUO_LATENCY_NS);
			DUO_CHECK(s.duo, n->sacks_sent - sacks == (packets > WINDOW / 2));
			block->off = true;
			duo_finish(s.a, 1, WC_SUCCESS);
			assert_memory_equal(to->p, from->p, packets * o.mtu);
			sim_end(&s);
		}
	}
}

static void patient_tweak(struct nic_config *c, enum duo_side side)
{
	veroce_tweak(c, side);
	c->transport.veroce.pto_ns_min = 2000000; /* as the engine has it */
	duo_same_host(c);
}

/*
 * 5.3, 4, between processes of one host, where an acknowledgement may wait for four times as long as a hole:
 * the hole is reported when its time has come.
 */
TEST(hole_is_told_before_the_acknowledgement_that_waits)
{
	enum { HOLE_NS = 25000, PACKETS = 4 };

	struct duo_options o = duo_options();
	/* The last one, which asks for an acknowledgement, is lost too. */
	struct veroce_order order = {.count = PACKETS, .step_ns = 1, .lost = 1 << 1 | 1 << 3};
	const struct duo_packet *sack;
	struct duo_buf *from, *to;
	struct duo_pair pair;
	struct duo_wr w;
	struct duo *d;
	uint64_t sent_ns;

	veroce_opt = veroce_options();
	veroce_opt.base[DUO_A] = veroce_opt.base[DUO_B] = true;
	d = duo_create(1, patient_tweak);
	pair = duo_connect(d, &o);
	from = duo_buf(&d->host[DUO_A], PACKETS * o.mtu, ALL_ACCESS);
	to = duo_buf(&d->host[DUO_B], PACKETS * o.mtu, ALL_ACCESS);
	duo_fill(from, 1);
	duo_idle(d);
	order.psn = o.psn[DUO_A];
	veroce_set_order(d, &order);
	w = duo_write_wr(1, from, 0, PACKETS * o.mtu, to, 0);
	sent_ns = d->now_ns;
	assert_true(duo_post(pair.a, &w));
	duo_idle(d);
	sack = duo_packet(d, DUO_B, OP_RC_SACK, 0);
	DUO_CHECK(d, sack && sack->sent_ns - sent_ns <= HOLE_NS + 2 * DUO_LATENCY_NS);
	duo_expect(d, &pair.a->sent, 1, WC_SUCCESS);
	assert_memory_equal(to->p, from->p, PACKETS * o.mtu);
	duo_destroy(d);
}
