/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Packets that come too late, too early or to a later life of their QP: they change nothing (veRoCE
 * 4.1, 7.7; out-of-order O21, O36; R12, R21). And a peer that knows the base protocol alone (O38).
 */
#include "support/test.h"
#include "veroce/veroce.h"

/* ---- out-of-order O21 ------------------------------------------------------------------------ */

enum { WINDOW = 256 };

/* A WRITE of four bytes to the start of B's buffer, as A would send it. */
static void forge_write(struct sim *s, uint32_t psn, uint32_t msn)
{
	struct veroce_packet p = {
		.bth = {.opcode = OP_RC_WRITE_ONLY, .dqpn = s->b->qpn, .psn = psn, .ackreq = true},
		.msn = msn,
		.reth = {.va = s->bbuf->iova, .rkey = s->bbuf->mr->key, .len = 4},
		.payload_len = 4,
	};

	veroce_forge(s->duo, DUO_B, &p, "late");
}

TEST(packets_outside_the_window_change_nothing)
{
	struct veroce_options v = veroce_options();
	struct duo_options o = duo_options();

	v.rx_window = WINDOW;
	v.order = ORDER_WEAK; /* an accepted packet shows at once */
	for (unsigned i = 0; veroce_variant(&v, &o, i); i++) {
		struct sim s = veroce_start_sim(&v, &o, 1);
		const struct nic_counters *n = nic_counters(s.b->host->nic);
		uint32_t apsn = psn_add(o.psn[DUO_A], 1);
		uint32_t old[] = {apsn, psn_add(apsn, 0xffffff), psn_add(apsn, 1 + (1 << 23)),
				  psn_add(apsn, 2 + (1 << 23))};
		uint32_t beyond[] = {psn_add(apsn, WINDOW + 1), psn_add(apsn, 100000), psn_add(apsn, 1 << 23)};

		duo_do(s.a, duo_write_wr(1, s.abuf, 0, 2 * o.mtu, s.bbuf, 0));
		for (size_t k = 0; k < COUNT(old); k++) {
			uint64_t dups = n->rx_duplicates, acks = n->acks_sent;

			forge_write(&s, old[k], psn_add(v.sent.messages, 2));
			duo_idle(s.duo);
			assert_int_equal(n->rx_duplicates, dups + 1);
			/* A sender that repeats it did not get the acknowledgement (7.7). */
			assert_int_equal(n->acks_sent, acks + 1);
		}
		for (size_t k = 0; k < COUNT(beyond); k++) {
			uint64_t acks = n->acks_sent + n->sacks_sent;

			forge_write(&s, beyond[k], psn_add(v.sent.messages, 2));
			duo_idle(s.duo);
			assert_int_equal(n->rx_beyond_window, k + 1);
			assert_int_equal(n->acks_sent + n->sacks_sent, acks);
		}
		assert_memory_equal(s.bbuf->p, s.abuf->p, 2 * o.mtu);
		/* The last PSN of the window is taken, and only once. */
		forge_write(&s, psn_add(apsn, WINDOW), psn_add(v.sent.messages, WINDOW + 1));
		assert_memory_equal(s.bbuf->p, "late", 4);
		memset(s.bbuf->p, 0, 4);
		forge_write(&s, psn_add(apsn, WINDOW), psn_add(v.sent.messages, WINDOW + 1));
		assert_memory_equal(s.bbuf->p, "\0\0\0", 4);
		duo_idle(s.duo);
		assert_int_equal(veroce_last(s.duo, DUO_B, OP_RC_SACK)->bth.psn, apsn);
		sim_end(&s);
	}
}

/* ---- another life (out-of-order O36) --------------------------------------------------------- */

enum { KEPT = 600 };

struct kept {
	uint32_t count;
	struct {
		enum duo_side to;
		struct flow flow;
		uint32_t len;
		uint8_t *data;
	} packet[KEPT];
	struct duo *duo;
};

static void keep(void *ctx, const struct duo_packet *p, const uint8_t *data)
{
	struct kept *k = ctx;

	assert_true(k->count < KEPT);
	k->packet[k->count].to = !p->from;
	k->packet[k->count].flow = duo_flow(k->duo, !p->from, DUO_GID_IPV4);
	k->packet[k->count].flow.dport = VEROCE_UDP_PORT;
	k->packet[k->count].len = p->len;
	k->packet[k->count].data = malloc(p->len);
	memcpy(k->packet[k->count++].data, data, p->len);
}

static void play(const struct kept *k)
{
	for (uint32_t i = 0; i < k->count; i++)
		duo_inject(k->duo, k->packet[i].to, &k->packet[i].flow, k->packet[i].data, k->packet[i].len);
}

/* All kinds of messages both ways, with losses, so that there are SACKs too. */
static void live(struct sim *s, uint64_t count)
{
	for (uint64_t i = 0; i < count; i++) {
		struct duo_qp *q = i & 1 ? s->a : s->b;
		struct duo_buf *from = i & 1 ? s->abuf : s->bbuf, *to = i & 1 ? s->bbuf : s->abuf;
		struct duo_wr w = duo_write_wr(i, from, 0, 3000, to, 10000);

		if (i / 2 % 4 == 1)
			w = duo_read_wr(i, from, 20000, 3000, to, 10000);
		else if (i / 2 % 4 == 2)
			w = duo_fetch_add_wr(i, from, 30000, to, 30008, 1);
		else if (i / 2 % 4 == 3)
			w = duo_send_wr(i, from, 0, 2500);
		if (w.opcode == WR_SEND)
			assert_true(duo_recv(q->peer, i, to, 40000, 3000));
		assert_true(duo_post(q, &w));
		duo_run_for(s->duo, 2000);
	}
	duo_idle(s->duo);
	for (uint64_t i = 0; i < count; i++)
		duo_expect(s->duo, i & 1 ? &s->a->sent : &s->b->sent, i, WC_SUCCESS);
	s->a->received.taken = s->a->received.n;
	s->b->received.taken = s->b->received.n;
}

/* `back`: the new life begins with PSNs from which the old ones look old; else they look far ahead.
 */
static void reborn(bool back, enum protocol protocol)
{
	struct veroce_options v = veroce_options();
	struct duo_options o = duo_options();
	struct kept *k = calloc(1, sizeof(*k));
	uint32_t move = back ? 0x400000 : 0xc00000;

	v.protocol[DUO_A] = v.protocol[DUO_B] = protocol;

	struct sim s = veroce_start_sim(&v, &o, 7);
	uint8_t *a = malloc(BUF_BYTES), *b = malloc(BUF_BYTES);
	struct duo_qp *both[] = {s.a, s.b};

	k->duo = s.duo;
	s.duo->tap = keep;
	s.duo->tap_ctx = k;
	s.duo->faults[0].drop_ppm = s.duo->faults[1].drop_ppm = 50000;
	live(&s, 24);
	s.duo->faults[0].drop_ppm = s.duo->faults[1].drop_ppm = 0;
	s.duo->tap = NULL;
	for (int i = 0; i < 2; i++) {
		assert_int_equal(duo_qp_to_state(both[i], QPS_RESET), 0);
		for (int side = 0; side < 2; side++)
			both[i]->opt.psn[side] = psn_add(both[i]->opt.psn[side], move);
	}
	duo_fill(s.abuf, 11);
	duo_fill(s.bbuf, 12);
	memcpy(a, s.abuf->p, BUF_BYTES);
	memcpy(b, s.bbuf->p, BUF_BYTES);
	play(k);
	for (int i = 0; i < 2; i++)
		assert_int_equal(duo_qp_to_init(both[i]), 0);
	play(k);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(duo_qp_to_rtr(both[i], both[!i]), 0);
		assert_int_equal(duo_qp_to_rts(both[i]), 0);
	}
	play(k);
	duo_idle(s.duo);
	play(k);
	duo_idle(s.duo);
	assert_memory_equal(a, s.abuf->p, BUF_BYTES);
	assert_memory_equal(b, s.bbuf->p, BUF_BYTES);
	assert_int_equal(s.a->sent.taken, s.a->sent.n);
	/* It works, and does while they come. */
	for (int i = 0; i < 4; i++) {
		play(k);
		live(&s, 16);
	}
	assert_int_equal(qp_state(s.a->qp), QPS_RTS);
	assert_int_equal(qp_state(s.b->qp), QPS_RTS);
	assert_int_equal(nic_counters(s.a->host->nic)->fallbacks, 0);
	for (uint32_t i = 0; i < k->count; i++)
		free(k->packet[i].data);
	free(a);
	free(b);
	free(k);
	sim_end(&s);
}

TEST(packets_of_another_life_have_no_effect)
{
	for (int i = 0; i < 4; i++)
		reborn(i & 1, i & 2 ? PROTOCOL_AUTO : PROTOCOL_VEROCE);
}

/*
 * out-of-order R21: packets that wait for their turn are dropped with the connection, receives are
 * flushed in order.
 */
TEST(what_is_parked_goes_with_the_connection)
{
	struct veroce_options v = veroce_options();
	struct duo_options o = duo_options();

	for (unsigned i = 0; veroce_variant(&v, &o, i); i++) {
		for (int k = 0; k < 2; k++) {
			int end = k ? QPS_ERR : QPS_RESET;
			struct sim s = veroce_start_sim(&v, &o, 1);
			uint32_t first = o.psn[DUO_A];
			struct duo_rule *block = veroce_block(s.duo, &first);
			struct duo_wr w[] = {
				duo_send_wr(1, s.abuf, 0, 2 * o.mtu),
				duo_write_wr(2, s.abuf, 0, 1, s.bbuf, 20000),
				duo_read_wr(3, s.abuf, 0, 10, s.bbuf, 0),
				duo_fetch_add_wr(4, s.abuf, 0, s.bbuf, 0, 1),
				duo_send_wr(5, s.abuf, 0, 10),
			};
			uint64_t word = *(uint64_t *)s.bbuf->p;

			w[1].opcode = WR_WRITE_IMM;
			for (uint64_t r = 0; r < 4; r++)
				assert_true(duo_recv(s.b, 10 + r, s.bbuf, 30000, 2 * o.mtu));
			assert_true(duo_post_chain(s.a, w, COUNT(w)));
			duo_run_for(s.duo, 20000);
			assert_int_equal(s.b->received.n, 0);
			assert_int_equal(duo_qp_to_state(s.b, (enum qp_state)end), 0);
			block->off = true;
			duo_idle(s.duo);
			for (uint64_t r = 0; end == QPS_ERR && r < 4; r++)
				duo_expect(s.duo, &s.b->received, 10 + r, WC_WR_FLUSH_ERR);
			assert_int_equal(s.b->received.n, end == QPS_ERR ? 4 : 0);
			assert_int_equal(*(uint64_t *)s.bbuf->p, word);
			duo_expect(s.duo, &s.a->sent, 1, WC_RETRY_EXC_ERR);
			for (uint64_t id = 2; id <= 5; id++)
				duo_expect(s.duo, &s.a->sent, id, WC_WR_FLUSH_ERR);
			sim_end(&s);
		}
	}
}

/* ---- a base peer (out-of-order O38) ---------------------------------------------------------- */

/* PSNs of A's requests outstanding, by what has reached A when a packet is sent. */
struct span {
	struct duo *duo;
	uint32_t psn; /* the first; una and top count from it */
	uint32_t una, top, max;
	size_t read; /* of d->wire */
};

static void measure(void *ctx, const struct duo_packet *p, const uint8_t *data)
{
	struct span *s = ctx;
	const struct duo *d = s->duo;

	assert_false(p->bth.ts);
	assert_true(p->sack_count <= 1);
	for (; d->wire[s->read].sent_ns + d->latency_ns <= d->now_ns; s->read++) {
		const struct duo_packet *ack = &d->wire[s->read];
		uint32_t una = (ack->bth.psn + 1 - s->psn) & PSN_MASK;

		if (ack->from == DUO_B && ack->bth.opcode == OP_RC_ACK && una < 1 << 23 && una > s->una)
			s->una = una;
	}
	if (p->from == DUO_A && veroce_is_data(p) && !p->bth.retrans) {
		s->top = (p->bth.psn + 1 - s->psn) & PSN_MASK;
		s->max = s->top - s->una > s->max ? s->top - s->una : s->max;
	}
}

/* A base peer: it answers CAPS without extensions, or not at all; `heard`: but it has acknowledged a packet. */
enum base_peer { ANSWERS, IS_MUTE, IS_MUTE_AND_HEARD };

static void base_peer(const struct veroce_options *v, const struct duo_options *o, enum base_peer peer)
{
	uint32_t first = psn_add(o->psn[DUO_A], peer == IS_MUTE_AND_HEARD);
	struct span span = {.psn = first};

	veroce_opt = *v;

	struct sim s = {.duo = duo_create(1, veroce_tweak)};
	struct duo_pair p;
	struct duo_buf *from = duo_buf(&s.duo->host[DUO_A], 400 * o->mtu, ALL_ACCESS);
	struct duo_buf *to = duo_buf(&s.duo->host[DUO_B], 400 * o->mtu, ALL_ACCESS);
	struct duo_wr w;
	uint32_t hole = psn_add(first, 501);
	uint64_t sacks, began;
	struct duo_rule *block;

	if (peer != ANSWERS) {
		duo_drop(s.duo, DUO_ANY, OP_CAPS_REQUEST, DUO_ANY);
		duo_drop(s.duo, DUO_ANY, OP_CAPS_RESPONSE, DUO_ANY);
	}
	p = duo_connect(s.duo, o);
	s.a = p.a;
	s.b = p.b;
	duo_idle(s.duo);
	veroce_set_sent(s.a, &v->sent);
	if (peer == IS_MUTE_AND_HEARD)
		duo_do(s.a, duo_write_wr(0, from, 0, 4, to, 0));
	span.duo = s.duo;
	span.read = s.duo->wire_count;
	s.duo->tap = measure;
	s.duo->tap_ctx = &span;
	duo_fill(from, 3);
	w = duo_write_wr(1, from, 0, 400 * o->mtu, to, 0);
	duo_do(s.a, w);
	assert_memory_equal(to->p, from->p, 400 * o->mtu);
	/* As many as the peer announced, or as any peer can record; of a peer that may still announce more, a guess (4.2). */
	assert_true(peer == IS_MUTE_AND_HEARD ? span.max == 128 : span.max > 128);
	assert_int_equal(veroce_retransmits(s.duo), 0);
	/* A hole smaller than T causes no SACK at first, and then one now and then (5.3). */
	w = duo_write_wr(2, from, 0, 101 * o->mtu, to, 0);
	duo_do(s.a, w);
	sacks = nic_counters(s.b->host->nic)->sacks_sent;
	assert_int_equal(sacks, 0);
	block = veroce_block(s.duo, &hole);
	w = duo_write_wr(3, from, 0, 3 * o->mtu, to, 0);
	assert_true(duo_post(s.a, &w));
	began = s.duo->now_ns;
	duo_run_for(s.duo, 20000);
	assert_int_equal(nic_counters(s.b->host->nic)->sacks_sent, sacks);
	duo_run_until(s.duo, began + 60000);
	assert_true(nic_counters(s.b->host->nic)->sacks_sent > sacks);
	block->off = true;
	duo_finish(s.a, 3, WC_SUCCESS);
	sim_end(&s);
}

TEST(base_peers_are_spoken_to_plainly)
{
	struct veroce_options v = veroce_options();
	struct duo_options o = duo_options();

	v.base[DUO_B] = true;
	for (unsigned i = 0; veroce_variant(&v, &o, i); i++) {
		base_peer(&v, &o, ANSWERS);
		base_peer(&v, &o, IS_MUTE);
		base_peer(&v, &o, IS_MUTE_AND_HEARD);
	}
}
