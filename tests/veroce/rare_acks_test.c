/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Acknowledgements between hosts whose packets leave in trains (veRoCE 5.3, 12.2): half of the window for one of them,
 * unless the peer is a base peer, the sender's window is small or something is missing.
 */
#include "veroce/transfer.h"

#include "nic/state.h"
#include "support/test.h"
#include "transport/veroce/work.h"

enum {
	MIB = 1 << 20,
	WINDOW = MIB / 4,
	MTU = 1024,
	CALM = VEROCE_CALM_PACKETS * MTU / MIB,
	LATENCY_NS = 2000,
	PACKET_NS = 100
};

static void start_far(struct transfer *t, const struct veroce_options *v, uint64_t seed, bool read, uint64_t mibs,
		      uint64_t latency_ns)
{
	struct duo_options o = duo_options();

	o.psn[DUO_A] = o.psn[DUO_B] = 0; /* of those that ask, too */
	transfer_start(t, v, &o, seed, read, mibs * MIB, latency_ns, 1);
	t->packet_ns = PACKET_NS;
	t->duo->script = transfer_channel;
	t->duo->script_ctx = t;
	for (uint64_t i = 0; i < mibs; i++)
		transfer_post(t, i * MIB, MIB);
}

static void start(struct transfer *t, const struct veroce_options *v, uint64_t seed, bool read, uint64_t mibs)
{
	start_far(t, v, seed, read, mibs, LATENCY_NS);
}

static void finish(struct transfer *t)
{
	duo_wait(t->duo, &t->s.a->sent, t->posted);
	transfer_check(t);
	duo_idle(t->duo);
}

static enum duo_side taker(const struct transfer *t)
{
	return t->read ? DUO_A : DUO_B;
}

/* The acknowledgements of the data's receiver while the packets of the n-th MiB were sent. */
static size_t acks_of(const struct transfer *t, size_t n)
{
	size_t sent = 0, acks = 0;

	for (size_t i = 0; i < t->duo->wire_count; i++) {
		const struct duo_packet *p = &t->duo->wire[i];

		sent += transfer_is_data(t, p);
		acks += sent / (MIB / MTU) == n && p->from == taker(t) &&
			p->bth.opcode == (t->read ? OP_RC_ACK_RSP : OP_RC_ACK);
	}
	return acks;
}

TEST(half_of_the_window_is_acknowledged_at_once)
{
	struct veroce_options v = veroce_options();

	v.window_bytes = WINDOW;
	for (int read = 0; read < 2; read++) {
		struct transfer t;

		start(&t, &v, 1, read, CALM + 4);
		finish(&t);
		/* Not before enough packets have arrived without a loss; the first of a window's are acknowledged when
		 * all are sent. */
		for (size_t i = 1; i < CALM; i++)
			assert_in_range(acks_of(&t, i), MIB / MTU / VEROCE_ACKREQ_PACKETS - 1,
					MIB / MTU / VEROCE_ACK_PACKETS + 1);
		assert_in_range(acks_of(&t, CALM + 2), 8, 10);
		/* A queue pair that has rested goes on like that. */
		transfer_post(&t, 0, MIB);
		finish(&t);
		assert_in_range(acks_of(&t, CALM + 4), 8, 10);
		assert_int_equal(t.sender->tail_probes, 0);
		transfer_end(&t);
	}
}

/* Where the network holds more than half of the window, the sender would wait for acknowledgements that are rare. */
TEST(a_long_path_is_never_idle)
{
	struct veroce_options v = veroce_options();

	v.window_bytes = WINDOW;
	for (int i = 0; i < 16; i++) {
		/* Up to 0.8 of a window's time. */
		uint64_t latency_ns = 1000 + (uint64_t)(i / 2) * 1300, began_ns, took_ns;
		struct transfer t;

		start_far(&t, &v, 1, i & 1, 16, latency_ns);
		began_ns = t.duo->now_ns;
		duo_wait(t.duo, &t.s.a->sent, t.posted);
		took_ns = t.duo->now_ns - began_ns;
		finish(&t);
		/* Rates differ most where half of the window is just what the network holds. */
		assert_true(took_ns * 100 < 16ull * (MIB / MTU) * PACKET_NS * 108);
		transfer_end(&t);
	}
}

/*
 * The last packet of a message asks for an acknowledgement unless as many packets are posted behind it as one of which
 * asks anyway, and the next message does not wait for this one.
 */
TEST(messages_with_enough_behind_them_do_not_ask)
{
	enum { MESSAGES = 32, PACKETS = 16, LEN = PACKETS * MTU, APART = WINDOW / 2 / MTU, WAITS = 10 };
	enum { PLAIN, FENCED, READS, ROWS };

	for (int row = 0; row < ROWS; row++) {
		struct veroce_options v = veroce_options();
		struct transfer t;
		int sent = 0;
		size_t i;

		v.window_bytes = WINDOW;
		start(&t, &v, 1, false, CALM + 2);
		finish(&t);
		i = t.duo->wire_count;
		for (uint64_t n = 0; n < MESSAGES; n++) {
			struct duo_wr w = duo_write_wr(t.posted++, t.src, n * LEN, LEN, t.dst, n * LEN);

			if (n == WAITS && row == FENCED)
				w.flags |= WR_FENCE;
			if (n == WAITS && row == READS)
				w = duo_read_wr(w.wr_id, t.src, n * LEN, LEN, t.dst, n * LEN);
			assert_true(duo_post(t.s.a, &w));
		}
		finish(&t);
		for (; i < t.duo->wire_count; i++) {
			const struct duo_packet *p = &t.duo->wire[i];
			uint32_t behind;
			bool waited_for;

			if (p->from != DUO_A || !(p->info->flags & (F_LAST | F_ONLY)) || !veroce_is_data(p))
				continue;
			behind = (uint32_t)(MESSAGES - 1 - sent) * PACKETS;
			waited_for = row != PLAIN && sent + 1 == WAITS;
			sent++;
			if (p->info->flags & F_LAST)
				assert_int_equal(p->bth.ackreq,
						 behind < APART || waited_for || !(~p->bth.psn & (APART - 1)));
		}
		assert_int_equal(sent, MESSAGES);
		assert_int_equal(t.sender->tail_probes, 0);
		transfer_end(&t);
	}
}

/* Who has not answered CAPS may not ask before its window is full. */
TEST(a_base_peer_is_acknowledged_every_sixteenth_packet)
{
	struct duo_options o = duo_options();

	veroce_opt = veroce_options();
	for (int silent = 0; silent < 2; silent++) {
		struct duo *d = duo_create(1, veroce_tweak);
		struct duo_pair p;

		if (silent)
			duo_drop(d, DUO_A, OP_CAPS_RESPONSE, DUO_ANY);
		p = duo_connect(d, &o);
		duo_run_for(d, 10000);
		assert_int_equal(p.b->qp->veroce->acks_rarely, !silent);
		duo_destroy(d);
	}
}

/* Between hosts that know each other a message may leave before the answer has come. */
TEST(an_answer_that_comes_later_counts)
{
	struct veroce_options v = veroce_options();
	struct duo_options o = duo_options();
	struct transfer t;

	v.window_bytes = WINDOW;
	start(&t, &v, 1, false, CALM + 2);
	finish(&t);

	struct duo_pair p = duo_connect(t.duo, &o);

	t.s.a = p.a;
	t.posted = 0;
	for (uint64_t i = 0; i < CALM + 2; i++)
		transfer_post(&t, i * MIB, MIB);
	duo_wait(t.duo, &t.s.a->sent, CALM + 1);
	assert_int_equal(p.b->qp->veroce->w->q_in.ack_packets, WINDOW / 2 / MTU);
	assert_int_equal(p.a->qp->veroce->w->q.ackreq_now, WINDOW / 2 / MTU);
	finish(&t);
	transfer_end(&t);
}

/* Sixteen paths begin with a few packets each. */
TEST(a_small_window_is_asked_for_twice)
{
	enum { FIRST = 64, APART_MAX = 8 };
	struct veroce_options v = veroce_options();
	struct transfer t;
	size_t apart = 0;

	v.paths = 16;
	v.cc = VEROCE_CC_SWIFT;
	start(&t, &v, 1, false, 1);
	finish(&t);
	for (size_t i = 0, n = 0; n < FIRST; i++) {
		const struct duo_packet *p = &t.duo->wire[i];

		if (!transfer_is_data(&t, p))
			continue;
		n++;
		apart = p->bth.ackreq ? 0 : apart + 1;
		assert_true(apart <= APART_MAX);
	}
	transfer_end(&t);
}

/* Each acknowledgement tells of many packets, and may be lost as well. So they are frequent again, and rare when all is
 * calm. */
TEST(what_is_lost_makes_them_frequent)
{
	enum { DATA, ACKS, LOSSES, AT = CALM + 3 };

	for (int i = 0; i < 2 * LOSSES; i++) {
		struct veroce_options v = veroce_options();
		bool read = i & 1;
		struct transfer t;

		v.window_bytes = WINDOW;
		start(&t, &v, 1, read, AT + CALM + 5);
		duo_wait(t.duo, &t.s.a->sent, AT);
		*(i / 2 == DATA ? &t.drop_ppm : &t.duo->faults[taker(&t)].drop_ppm) = 1000000;
		for (uint64_t n = t.sender->tx_packets;
		     i / 2 == DATA ? t.sender->tx_packets == n : !t.sender->tail_probes;)
			duo_run_for(t.duo, PACKET_NS);
		t.drop_ppm = t.duo->faults[taker(&t)].drop_ppm = 0;
		finish(&t);
		assert_in_range(acks_of(&t, AT - 2), 8, 10);
		assert_true(acks_of(&t, AT + 2) >= MIB / MTU / VEROCE_ACKREQ_PACKETS - 1);
		assert_in_range(acks_of(&t, AT + CALM + 3), 8, 10);
		transfer_end(&t);
	}
}

/* So little is lost that acknowledgements are rare half of the time. */
TEST(seldom_losses_cost_little)
{
	enum { SEEDS = 4, MIBS = 24, PPM = 300 };
	uint64_t took_ns[2] = {0}, copies = 0, twice = 0;

	for (int i = 0; i < 2 * 2 * SEEDS; i++) {
		struct veroce_options v = veroce_options();
		bool lossy = i & 2;
		struct transfer t;
		uint64_t began_ns;

		v.window_bytes = WINDOW;
		start(&t, &v, (uint64_t)i / 4 + 1, i & 1, MIBS);
		began_ns = t.duo->now_ns;
		t.drop_ppm = t.duo->faults[taker(&t)].drop_ppm = lossy ? PPM : 0;
		duo_wait(t.duo, &t.s.a->sent, t.posted);
		took_ns[lossy] += t.duo->now_ns - began_ns;
		finish(&t);
		copies += t.sender->retransmits;
		twice += t.receiver->rx_duplicates;
		transfer_end(&t);
	}
	assert_true(took_ns[0] * 10 >= took_ns[1] * 9);
	assert_true(twice * 4 <= copies);
}

/*
 * The Last packet, which asks, is lost. What is missing before it is told with the sixteenth packet or after 20 us, and
 * if nothing is, all is acknowledged after 25.
 */
TEST(a_hole_is_reported_soon)
{
	static const struct {
		uint32_t packets;
		int lost; /* of the Middle packets; DUO_ANY: none */
		uint64_t wait_ns;
	} rows[] = {{60, 20, 0}, {10, 3, 20000}, {60, DUO_ANY, 25000}};

	for (size_t i = 0; i < 2 * sizeof(rows) / sizeof(rows[0]); i++) {
		uint32_t packets = rows[i / 2].packets;
		bool read = i & 1, hole = rows[i / 2].lost != DUO_ANY;
		enum duo_side from;
		struct veroce_options v = veroce_options();
		struct transfer t;
		uint64_t told_ns;
		size_t last, told;

		v.window_bytes = WINDOW;
		start(&t, &v, 1, read, CALM + 2);
		from = t.from;
		duo_wait(t.duo, &t.s.a->sent, t.posted);
		duo_run_for(t.duo, 50000); /* all is acknowledged */
		last = told = t.duo->wire_count;
		if (hole)
			duo_drop(t.duo, from, read ? OP_RC_READ_RESPONSE_MIDDLE : OP_RC_WRITE_MIDDLE, rows[i / 2].lost);
		duo_drop(t.duo, from, read ? OP_RC_READ_RESPONSE_LAST : OP_RC_WRITE_LAST, 0);
		t.duo->script = NULL;
		transfer_post(&t, 0, packets * MTU);
		finish(&t);
		while (!transfer_is_data(&t, &t.duo->wire[last]) || !(t.duo->wire[last].info->flags & F_LAST))
			last++;
		while (told < last || t.duo->wire[told].bth.opcode != (read   ? hole ? OP_RC_SACK_RSP : OP_RC_ACK_RSP
								       : hole ? OP_RC_SACK
									      : OP_RC_ACK))
			told++;
		told_ns = t.duo->wire[told].sent_ns - t.duo->wire[last].sent_ns - LATENCY_NS;
		assert_in_range(told_ns, rows[i / 2].wait_ns, rows[i / 2].wait_ns + 2 * DUO_LATENCY_NS);
		transfer_end(&t);
	}
}
