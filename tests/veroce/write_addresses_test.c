/* SPDX-License-Identifier: BSD-2-Clause */
/* Each packet of a WRITE carries its own address and length (veRoCE 3), and its bytes land there, in any order. */
#include "support/test.h"
#include "veroce/veroce.h"

/* The RETH of every WRITE packet of A, of a message of `len` bytes at va. Returns how many there were. */
static uint32_t check_reths(const struct sim *s, uint64_t va)
{
	uint32_t n = 0;

	for (size_t i = 0; i < s->duo->wire_count; i++) {
		const struct duo_packet *p = &s->duo->wire[i];

		if (p->from != DUO_A || !veroce_is_data(p) || !(p->info->flags & F_WRITE))
			continue;
		DUO_CHECK(s->duo, p->reth.va == va + (uint64_t)p->po * s->a->opt.mtu);
		DUO_CHECK(s->duo, p->reth.len == p->payload_len);
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

/* Last to first, and some of them lost besides: long enough for runs of Middle packets. */
VEROCE_VARIANTS_TEST(packets_that_come_in_any_order_get_to_their_places)
{
	enum { PACKETS = 40, BEFORE = 3000 };
	uint32_t len = PACKETS * s.a->opt.mtu - 5;
	struct duo_buf *from = duo_buf(s.a->host, len, ALL_ACCESS);
	struct duo_buf *to = duo_buf(s.b->host, len + 3 * PACKETS * s.a->opt.mtu, ALL_ACCESS);
	struct veroce_order order = {
		.psn = s.a->opt.psn[DUO_A], .count = PACKETS, .step_ns = 100, .lost = 0x8420100421};
	struct duo_wr w = duo_write_wr(1, from, 0, len, to, BEFORE);

	duo_fill(from, 5);
	duo_fill(to, 6);
	if (i & 1) {
		w.opcode = WR_WRITE_IMM;
		w.imm_or_key = i;
		assert_true(duo_recv(s.b, 7, s.bbuf, 0, 0));
	}
	veroce_set_order(s.duo, &order);
	duo_do(s.a, w);
	if (i & 1)
		assert_int_equal(duo_expect(s.duo, &s.b->received, 7, WC_SUCCESS)->byte_len, len);
	expect_written(s.duo, to, 6, from, BEFORE, len);
	assert_true(check_reths(&s, to->iova + BEFORE) > PACKETS);
}

VEROCE_VARIANTS_TEST(a_write_that_leaves_its_region_is_refused)
{
	duo_must_post(s.a, duo_write_wr(1, s.abuf, 0, 3 * s.a->opt.mtu, s.bbuf, BUF_BYTES - 3 * s.a->opt.mtu + 1));
	duo_finish(s.a, 1, WC_REM_ACCESS_ERR);
	/* Of the first packets the region holds all. */
	assert_memory_equal(s.bbuf->p + BUF_BYTES - 3 * s.a->opt.mtu + 1, s.abuf->p, 2 * s.a->opt.mtu);
}
