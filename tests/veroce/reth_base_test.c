/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which address a WRITE's packets carry: their own, or their message's (reth_base; veRoCE 3 leaves it
 * open). In both cases each packet's bytes land where they belong, in any order; ends with different
 * settings find out before one of them writes to the wrong place, or fail.
 */
#include "support/test.h"
#include "veroce/veroce.h"
#include "veroce/caps.h"
#include "transport/veroce/veroce.h"

enum { MS = 1000000, NAK_ACCESS = AETH_NAK | NAK_REMOTE_ACCESS, SILENT_MS = 256 };

static const enum veroce_reth_base both[] = {RETH_BASE_PACKET, RETH_BASE_MESSAGE};

static struct veroce_options options(enum veroce_reth_base a, enum veroce_reth_base b)
{
	struct veroce_options v = veroce_options();

	v.reth_base[DUO_A] = a;
	v.reth_base[DUO_B] = b;
	return v;
}

/* Every WRITE's packets of that side since then: what their RETHs say, of messages of `len` bytes at va. */
static uint32_t expect_reths(const struct sim *s, enum duo_side from, size_t since, enum veroce_reth_base base,
			     uint64_t va, uint32_t len)
{
	uint32_t mtu = s->a->opt.mtu, n = 0;

	for (size_t i = since; i < s->duo->wire_count; i++) {
		const struct duo_packet *p = &s->duo->wire[i];
		bool message = base == RETH_BASE_MESSAGE;

		if (p->from != from || !veroce_is_data(p) || !(p->info->flags & F_WRITE))
			continue;
		DUO_CHECK(s->duo, p->reth.va == va + (message ? 0 : (uint64_t)p->po * mtu));
		DUO_CHECK(s->duo, p->reth.len == (message ? len : p->payload_len));
		n++;
	}
	return n;
}

/* Only [off, off + len) of `to` is what is in `from`; all else is as duo_fill() left it. */
static void expect_written(struct duo *d, const struct duo_buf *to, uint64_t fill, const struct duo_buf *from,
			   uint64_t off, uint32_t len)
{
	for (uint64_t i = 0; i < to->len; i++) {
		bool written = i >= off && i < off + len;

		DUO_CHECK(d, to->p[i] == (written ? from->p[i - off] : duo_filled(fill, i)));
	}
}

/* ---- two ends that are set alike ------------------------------------------------------------- */

/* Last to first, and some of them lost besides: long enough for runs of Middle packets. */
TEST(packets_that_come_in_any_order_get_to_their_places)
{
	enum { PACKETS = 40, BEFORE = 3000 };
	struct duo_options o = duo_options();

	for (size_t k = 0; k < COUNT(both); k++) {
		struct veroce_options v = options(both[k], both[k]);

		for (unsigned i = 0; veroce_variant(&v, &o, i); i++) {
			struct sim s = veroce_start_sim(&v, &o, 1);
			uint32_t len = PACKETS * o.mtu - 5;
			struct duo_buf *from = duo_buf(s.a->host, len, ALL_ACCESS);
			struct duo_buf *to = duo_buf(s.b->host, len + 3 * PACKETS * o.mtu, ALL_ACCESS);
			struct veroce_order order = {
				.psn = o.psn[DUO_A], .count = PACKETS, .step_ns = 100, .lost = 0x8420100421};
			struct duo_wr w = duo_write_wr(1, from, 0, len, to, BEFORE);

			duo_fill(from, 5);
			duo_fill(to, 6);
			if (i & 1) {
				w.opcode = WR_WRITE_IMM;
				w.imm_or_key = i;
				assert_true(duo_recv(s.b, 7, s.bbuf, 0, 0));
			}
			veroce_set_order(s.duo, &order);
			assert_true(duo_post(s.a, &w));
			duo_idle(s.duo);
			duo_expect(s.duo, &s.a->sent, 1, WC_SUCCESS);
			if (i & 1)
				assert_int_equal(duo_expect(s.duo, &s.b->received, 7, WC_SUCCESS)->byte_len, len);
			expect_written(s.duo, to, 6, from, BEFORE, len);
			assert_true(expect_reths(&s, DUO_A, 0, both[k], to->iova + BEFORE, len) > PACKETS);
			sim_end(&s);
		}
	}
}

/* Memory in the order sent takes what was kept as it came. */
TEST(packets_that_were_kept_get_to_their_places)
{
	struct veroce_options v = options(RETH_BASE_MESSAGE, RETH_BASE_MESSAGE);
	struct duo_options o = duo_options();

	v.order = ORDER_STRONG;
	for (unsigned i = 0; veroce_variant(&v, &o, i); i++) {
		struct sim s = veroce_start_sim(&v, &o, 1);
		uint32_t len = 12 * o.mtu + 1;
		struct veroce_order order = {.psn = o.psn[DUO_A], .count = 13, .lost = 0x11};
		struct duo_wr w = duo_write_wr(1, s.abuf, 0, len, s.bbuf, 9);

		veroce_set_order(s.duo, &order);
		assert_true(duo_post(s.a, &w));
		duo_idle(s.duo);
		duo_expect(s.duo, &s.a->sent, 1, WC_SUCCESS);
		expect_written(s.duo, s.bbuf, 2, s.abuf, 9, len);
		sim_end(&s);
	}
}

/* ---- the written address is checked -------------------------------------------- */

TEST(a_write_that_leaves_its_region_is_refused)
{
	struct duo_options o = duo_options();

	for (size_t k = 0; k < COUNT(both); k++) {
		struct veroce_options v = options(both[k], both[k]);

		for (unsigned i = 0; veroce_variant(&v, &o, i); i++) {
			struct sim s = veroce_start_sim(&v, &o, 1);
			struct duo_wr w = duo_write_wr(1, s.abuf, 0, 3 * o.mtu, s.bbuf, BUF_BYTES - 3 * o.mtu + 1);

			assert_true(duo_post(s.a, &w));
			duo_idle(s.duo);
			duo_expect(s.duo, &s.a->sent, 1, WC_REM_ACCESS_ERR);
			/* Of the first packets the region holds all. */
			assert_memory_equal(s.bbuf->p + BUF_BYTES - 3 * o.mtu + 1, s.abuf->p, 2 * o.mtu);
			sim_end(&s);
		}
	}
}

/* A First packet at the region's first byte, and a Middle packet at `va`, in that order. */
static void forge_write(struct sim *s, uint32_t rkey, uint64_t first_va, uint64_t va)
{
	struct veroce_packet p = {
		.bth = {.opcode = OP_RC_WRITE_FIRST, .dqpn = s->b->qpn, .psn = s->a->opt.psn[DUO_A]},
		.msn = 1,
		.reth = {.va = first_va, .rkey = rkey, .len = s->a->opt.mtu * 3},
		.payload_len = s->a->opt.mtu,
	};

	veroce_forge(s->duo, DUO_B, &p, s->abuf->p);
	p.bth.opcode = OP_RC_WRITE_MIDDLE;
	p.bth.psn = psn_add(p.bth.psn, 1);
	p.po = 1;
	p.reth.va = va;
	veroce_forge(s->duo, DUO_B, &p, s->abuf->p);
}

/* A region that begins at address 0 lets see whether a sum beyond 2^64 is taken for a small address. */
TEST(the_sum_is_checked_and_does_not_wrap)
{
	static const uint32_t mtus[] = {256, 1024, 4096};

	for (size_t m = 0; m < COUNT(mtus); m++) {
		uint32_t mtu = mtus[m];
		const struct {
			uint64_t va;
			bool placed;
			uint64_t at;
		} rows[] = {
			{0, true, mtu},
			{mtu, true, 2 * mtu},
			{BUF_BYTES - 2 * mtu, true, BUF_BYTES - mtu},
			{BUF_BYTES - 2 * mtu + 1, false, 0},
			{BUF_BYTES - mtu, false, 0}, /* where it would belong if this were its own */
			{BUF_BYTES, false, 0},
			{-(uint64_t)mtu, false, 0},
			{UINT64_MAX, false, 0},
			{1ull << 63, false, 0},
		};

		for (size_t i = 0; i < COUNT(rows); i++) {
			struct veroce_options v = options(RETH_BASE_MESSAGE, RETH_BASE_MESSAGE);
			struct duo_options o = duo_options();
			struct sim s;
			struct mr *mr;
			size_t naks;

			o.mtu = mtu;
			s = veroce_start_sim(&v, &o, 1);
			assert_int_equal(nic_mr_reg(s.b->host->nic, s.b->host->pd,
						    (struct mr_range){s.bbuf->p, BUF_BYTES, 0}, ALL_ACCESS, &mr),
					 0);
			memset(s.bbuf->p, 0, BUF_BYTES);
			forge_write(&s, mr->key, 0, rows[i].va);
			duo_run_for(s.duo, 100000);
			naks = duo_count_syndrome(s.duo, DUO_B, NAK_ACCESS);
			assert_int_equal(naks, !rows[i].placed);
			assert_memory_equal(s.bbuf->p, s.abuf->p, mtu);
			for (uint64_t k = mtu; k < BUF_BYTES; k++) {
				bool written = rows[i].placed && k >= rows[i].at && k < rows[i].at + mtu;

				DUO_CHECK(s.duo, s.bbuf->p[k] == (written ? s.abuf->p[k - rows[i].at] : 0));
			}
			nic_mr_dereg(s.b->host->nic, mr);
			sim_end(&s);
		}
	}
}

/* ---- ends that are set differently ------------------------------------------------------------- */

static struct sim start_unconnected(const struct veroce_options *v)
{
	struct sim s;

	veroce_opt = *v;
	s = (struct sim){.duo = duo_create(1, veroce_tweak)};
	s.abuf = duo_buf(&s.duo->host[DUO_A], BUF_BYTES, ALL_ACCESS);
	s.bbuf = duo_buf(&s.duo->host[DUO_B], BUF_BYTES, ALL_ACCESS);
	duo_fill(s.abuf, 1);
	duo_fill(s.bbuf, 2);
	return s;
}

static void connect(struct sim *s, const struct duo_options *o)
{
	struct duo_pair p = duo_connect(s->duo, o);

	s->a = p.a;
	s->b = p.b;
}

/*
 * Both write before either knows the other's setting, with any of the CAPS lost: nothing lands where it
 * should not, and they agree on the setting of both, or on each packet's own address.
 */
TEST(what_both_want_is_agreed_on_before_it_matters)
{
	enum { LEN = 20000, OFF = 30000 };

	for (uint32_t set = 0; set < 4; set++) {
		for (uint64_t lost = 0; lost < 64; lost++) {
			struct veroce_options v = options(both[set & 1], both[set >> 1]);
			struct duo_options o = duo_options();
			struct sim s = start_unconnected(&v);
			uint64_t mask = lost;
			enum veroce_reth_base base = set == 3 ? RETH_BASE_MESSAGE : RETH_BASE_PACKET;
			struct duo_wr w;

			s.duo->script = lose_by_mask;
			s.duo->script_ctx = &mask;
			connect(&s, &o);
			w = duo_write_wr(1, s.abuf, 0, LEN, s.bbuf, OFF);
			assert_true(duo_post(s.a, &w));
			w = duo_write_wr(2, s.bbuf, 0, LEN, s.abuf, OFF);
			assert_true(duo_post(s.b, &w));
			duo_idle(s.duo);
			duo_expect(s.duo, &s.a->sent, 1, WC_SUCCESS);
			duo_expect(s.duo, &s.b->sent, 2, WC_SUCCESS);
			expect_written(s.duo, s.bbuf, 2, s.abuf, OFF, LEN);
			expect_written(s.duo, s.abuf, 1, s.bbuf, OFF, LEN);
			expect_reths(&s, DUO_A, 0, base, s.bbuf->iova + OFF, LEN);
			expect_reths(&s, DUO_B, 0, base, s.abuf->iova + OFF, LEN);
			sim_end(&s);
		}
	}
}

/* ---- a peer without CAPS ------------------------------------------------------------------ */

static struct duo_rule *lose_caps(struct duo *d)
{
	return duo_rule(
		d, (struct duo_rule){
			   .from = DUO_ANY, .opcode = DUO_ANY, .nth = DUO_ANY, .match = is_caps, .fate = DUO_DROP});
}

/* The setting is made for such a peer; but a peer that is silent for a moment may still answer. */
TEST(a_silent_peer_is_spoken_to_as_set)
{
	for (size_t k = 0; k < COUNT(both); k++) {
		struct veroce_options v = options(both[k], both[k]);
		struct duo_options o = duo_options();
		struct sim s = start_unconnected(&v);
		uint64_t began = s.duo->now_ns;
		const struct duo_packet *first;
		struct duo_wr w[2];

		lose_caps(s.duo);
		connect(&s, &o);
		w[0] = duo_write_wr(1, s.abuf, 0, o.mtu, s.bbuf, 0);
		w[1] = duo_write_wr(2, s.abuf, 0, 20000, s.bbuf, 30000);
		assert_true(duo_post_chain(s.a, w, 2));
		/* What fits a packet is the same either way. */
		duo_wait(s.duo, &s.a->sent, 1);
		assert_true(s.duo->now_ns - began < 10 * MS);
		duo_wait(s.duo, &s.a->sent, 2);
		first = duo_packet(s.duo, DUO_A, OP_RC_WRITE_FIRST, 0);
		if (both[k] == RETH_BASE_MESSAGE)
			assert_true(first->sent_ns - began >= SILENT_MS / 2 * MS);
		else
			assert_true(first->sent_ns - began < MS);
		assert_true(first->sent_ns - began < 2 * SILENT_MS * (uint64_t)MS);
		duo_expect(s.duo, &s.a->sent, 1, WC_SUCCESS);
		duo_expect(s.duo, &s.a->sent, 2, WC_SUCCESS);
		assert_memory_equal(s.bbuf->p + 30000, s.abuf->p, 20000);
		/* Once is enough. */
		began = s.duo->now_ns;
		assert_true(duo_post(s.a, &w[1]));
		duo_wait(s.duo, &s.a->sent, 3);
		assert_true(s.duo->now_ns - began < 10 * MS);
		duo_expect(s.duo, &s.a->sent, 2, WC_SUCCESS);
		sim_end(&s);
	}
}

/* CAPS as B, which never sent any, would send them. */
static void tell(struct sim *s, uint16_t flags)
{
	struct veroce_packet p = {
		.bth = {.opcode = OP_CAPS_RESPONSE, .dqpn = s->a->qpn, .psn = s->a->opt.psn[DUO_A]},
		.caps = {.magic = CAPS_MAGIC,
			 .version = CAPS_VERSION,
			 .profile = 3,
			 .flags = flags,
			 .mtu_code = 3,
			 .rx_window_q = 4096,
			 .rx_window_r = 4096,
			 .paths = 1,
			 .source_qpn = s->b->qpn,
			 .nonce = s->a->qp->veroce->nonce},
	};

	veroce_forge(s->duo, DUO_A, &p, NULL);
}

/*
 * A silent peer, for which the setting was assumed, sends CAPS after all: they must agree with the
 * assumption. If nothing depended on it yet, they may say either.
 */
TEST(a_peer_that_tells_too_late_must_agree)
{
	for (uint32_t i = 0; i < 8; i++) {
		bool agrees = i & 1, sent = i & 2, placed = i & 4;
		struct veroce_options v = options(RETH_BASE_MESSAGE, RETH_BASE_MESSAGE);
		struct duo_options o = duo_options();
		struct sim s = start_unconnected(&v);
		bool fails = !agrees && (sent || placed);
		struct duo_wr w;

		lose_caps(s.duo);
		connect(&s, &o);
		duo_run_for(s.duo, 2 * SILENT_MS * (uint64_t)MS);
		w = duo_write_wr(1, s.abuf, 0, 5000, s.bbuf, 30000);
		assert_true(!sent || duo_post(s.a, &w));
		w = duo_write_wr(2, s.bbuf, 0, 5000, s.abuf, 30000);
		assert_true(!placed || duo_post(s.b, &w));
		duo_idle(s.duo);
		if (sent)
			duo_expect(s.duo, &s.a->sent, 1, WC_SUCCESS);
		if (placed)
			duo_expect(s.duo, &s.b->sent, 2, WC_SUCCESS);
		tell(&s, agrees ? CAPS_RETH_MESSAGE : 0);
		duo_run_for(s.duo, MS);
		assert_int_equal(qp_state(s.a->qp), fails ? QPS_ERR : QPS_RTS);
		assert_int_equal(duo_had_event(s.a->host, EVENT_QP_FATAL, s.a), fails);
		/* Once it has answered it is not asked again. */
		if (!fails) {
			tell(&s, agrees ? 0 : CAPS_RETH_MESSAGE);
			assert_int_equal(nic_counters(s.a->host->nic)->rx_dropped > 0, true);
			assert_int_equal(qp_state(s.a->qp), QPS_RTS);
			assert_int_equal(veroce_va_step(s.a->qp), agrees ? 0 : o.mtu);
		}
		sim_end(&s);
	}
}

/* B begins a second after A, which is set to `message`; B is not. */
static struct sim start_late(uint64_t *mask, bool a_writes)
{
	struct veroce_options v = options(RETH_BASE_MESSAGE, RETH_BASE_PACKET);
	struct duo_options o = duo_options();
	struct sim s = start_unconnected(&v);
	struct duo_wr w = duo_write_wr(1, s.abuf, 0, 5000, s.bbuf, 30000);

	o.timeout = 18; /* 8 s */
	s.a = duo_qp_create(&s.duo->host[DUO_A], &o);
	s.b = duo_qp_create(&s.duo->host[DUO_B], &o);
	assert_int_equal(duo_qp_to_init(s.a) | duo_qp_to_init(s.b), 0);
	assert_int_equal(duo_qp_to_rtr(s.a, s.b) | duo_qp_to_rts(s.a), 0);
	assert_true(!a_writes || duo_post(s.a, &w));
	duo_run_for(s.duo, 1000 * (uint64_t)MS);
	s.duo->script = lose_by_mask;
	s.duo->script_ctx = mask;
	assert_int_equal(duo_qp_to_rtr(s.b, s.a) | duo_qp_to_rts(s.b), 0);
	return s;
}

/* A retransmission may reach B before B's CAPS reach A. A finds out, with any of the CAPS lost. */
TEST(a_peer_that_begins_late_and_differs_is_found_out)
{
	for (uint64_t lost = 0; lost < 64; lost++) {
		uint64_t mask = lost;
		struct sim s = start_late(&mask, true);

		duo_run_for(s.duo, 1000 * (uint64_t)MS);
		assert_int_equal(qp_state(s.a->qp), QPS_ERR);
		assert_true(duo_had_event(s.a->host, EVENT_QP_FATAL, s.a));
		/*
		 * If the CAPS to A were not lost, they came before the acknowledgement of the wrong
		 * WRITE.
		 */
		if (!lost)
			duo_expect(s.duo, &s.a->sent, 1, WC_WR_FLUSH_ERR);
		s.a->sent.taken = s.a->sent.n;
		sim_end(&s);
	}
}

/* What B sends waits until A knows how it is meant. */
TEST(a_peer_that_begins_late_is_asked_before_it_is_believed)
{
	for (uint64_t lost = 0; lost < 64; lost++) {
		uint64_t mask = lost;
		struct sim s = start_late(&mask, false);
		struct duo_wr w = duo_write_wr(2, s.bbuf, 0, 5000, s.abuf, 30000);

		assert_true(duo_post(s.b, &w));
		duo_idle(s.duo);
		duo_expect(s.duo, &s.b->sent, 2, WC_SUCCESS);
		expect_written(s.duo, s.abuf, 1, s.bbuf, 30000, 5000);
		assert_int_equal(qp_state(s.a->qp), QPS_RTS);
		sim_end(&s);
	}
}
