/* SPDX-License-Identifier: BSD-2-Clause */
/* veRoCE: the blocks of SACKs when one packet cannot hold them all (veRoCE 5.5). */
#include "support/test.h"
#include "veroce/transfer.h"

enum { MTU = 256, GROUPS = 24, PACKETS = GROUPS * 128, FAR = 20 * 128 + 5 };

/* How often A sent that PSN. */
static uint32_t sent(const struct duo *d, uint32_t psn)
{
	uint32_t n = 0;

	for (size_t i = 0; i < d->wire_count; i++)
		n += d->wire[i].from == DUO_A && veroce_has_psn(&d->wire[i], &psn);
	return n;
}

/*
 * While the oldest hole stays, later SACKs repeat by turns the blocks of a lost one: the sender needs no
 * probe to learn what is missing in the middle.
 */
TEST(what_a_lost_sack_told_is_told_again_by_turns)
{
	struct veroce_options v = veroce_options();
	struct duo_options o = duo_options();
	struct duo_rule *oldest, *far, *sacks;
	uint32_t first, middle;
	struct duo_buf *from, *to;
	const struct nic_counters *n;
	struct duo_wr w;
	struct sim s;

	v.window_bytes = 4 << 20;
	v.rx_window = 2 * PACKETS;
	o.mtu = MTU;
	o.psn[DUO_A] = 0xfffff0;
	first = o.psn[DUO_A];
	middle = psn_add(first, FAR);
	s = veroce_start_sim(&v, &o, 1);
	n = nic_counters(s.a->host->nic);
	from = duo_buf(s.a->host, PACKETS * MTU, ALL_ACCESS);
	to = duo_buf(s.b->host, PACKETS * MTU, ALL_ACCESS);
	duo_fill(from, 3);
	oldest = veroce_block(s.duo, &first);
	far = veroce_block(s.duo, &middle);
	sacks = duo_drop(s.duo, DUO_B, OP_RC_SACK, DUO_ANY);
	w = duo_write_wr(0, from, 0, PACKETS * MTU, to, 0);
	assert_true(duo_post(s.a, &w));
	duo_run_for(s.duo, 10000);
	assert_true(sacks->hits);
	sacks->off = true;
	far->off = true;
	/*
	 * Each arrival now causes a SACK: of seven blocks beside the first, one has the new
	 * arrival.
	 */
	for (uint64_t i = 1; i <= GROUPS; i++) {
		w = duo_write_wr(i, s.abuf, 0, MTU, s.bbuf, 0);
		assert_true(duo_post(s.a, &w));
		duo_run_for(s.duo, 10000);
	}
	DUO_CHECK(s.duo, !n->tail_probes && !n->timeouts);
	DUO_CHECK(s.duo, sent(s.duo, middle) == 2);
	oldest->off = true;
	duo_idle(s.duo);
	for (uint64_t i = 0; i <= GROUPS; i++)
		duo_expect(s.duo, &s.a->sent, i, WC_SUCCESS);
	assert_memory_equal(to->p, from->p, PACKETS * MTU);
	sim_end(&s);
}

struct holes {
	struct transfer t;
	uint32_t every; /* first copies of data packets: every n-th is lost */
};

/* Until there was a probe no acknowledgement arrives. */
static bool lose_holes(void *ctx, const struct duo_packet *p, enum duo_fate *fate, uint64_t *n)
{
	const struct holes *h = ctx;

	*fate = DUO_DROP;
	if (transfer_is_data(&h->t, p))
		return !p->bth.retrans && transfer_index(&h->t, p) % h->every == 5;
	return p->from != h->t.from && p->info->flags & F_ACK && !h->t.sender->tail_probes;
}

/*
 * A probe asks for the complete state, which one packet cannot hold. It does so wherever the sender had to
 * stop, not only at the end of a message, where AckReq is set anyway.
 */
TEST(a_probe_is_told_all_that_is_known)
{
	for (int read = 0; read < 2; read++) {
		struct veroce_options v = veroce_options();
		struct duo_options o = duo_options();
		struct holes h = {.every = 128};
		struct transfer *t = &h.t;
		const struct duo_packet *first;
		uint32_t sacks = 0;

		v.window_bytes = GROUPS * 128 * (MTU + 40);
		v.rx_window = 2 * PACKETS;
		o.mtu = MTU;
		transfer_start(t, &v, &o, 1, read, 2 * PACKETS * MTU, 10000, 4);
		t->duo->script = lose_holes;
		t->duo->script_ctx = &h;
		transfer_post(t, 0, 2 * PACKETS * MTU);
		while (!t->sender->tail_probes)
			duo_run_for(t->duo, 1000);
		DUO_CHECK(t->duo, transfer_copy(t, PACKETS / 2, 0) && !transfer_copy(t, 2 * PACKETS - 1, 0));
		duo_run_for(t->duo, 15000);
		first = veroce_last(t->duo, !t->from, read ? OP_RC_SACK_RSP : OP_RC_SACK);
		for (size_t i = 0; i < t->duo->wire_count; i++) {
			const struct duo_packet *p = &t->duo->wire[i];

			sacks += p->from != t->from && p->sack_count && p->sent_ns == first->sent_ns;
		}
		DUO_CHECK(t->duo, sacks > 2);
		duo_idle(t->duo);
		transfer_check(t);
		DUO_CHECK(t->duo, t->sender->tail_probes == 1 && !t->sender->timeouts);
		transfer_end(t);
	}
}
