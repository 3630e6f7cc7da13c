/* SPDX-License-Identifier: BSD-2-Clause */
/* veRoCE loss recovery, where time and other paths are the only evidence (veRoCE 6.2). */
#include "support/test.h"
#include "veroce/transfer.h"

enum { MTU = 1024, WARM = 16, PACKETS = 20 };

/* Loses the first copies of data packets [from, PACKETS). */
struct tail {
	struct transfer t;
	uint32_t from;
};

static bool lose_tail(void *ctx, const struct duo_packet *p, enum duo_fate *fate, uint64_t *n)
{
	struct tail *l = ctx;
	uint32_t i = transfer_index(&l->t, p);

	*fate = DUO_DROP;
	return transfer_is_data(&l->t, p) && i >= l->from && i < PACKETS && !p->bth.retrans;
}

/*
 * out-of-order O25: the probe waits from the last acknowledgement on, the timeout from when the
 * oldest packet was sent. Where the first part of a burst is acknowledged and a round trip is
 * longer than 130 us or so, the timeout must leave time for the probe's answer.
 */
TEST(probe_is_answered_before_the_timeout_on_long_paths)
{
	for (int read = 0; read < 2; read++) {
		for (uint64_t latency_ns = 50000; latency_ns <= 800000; latency_ns *= 2) {
			struct veroce_options v = veroce_options();
			struct duo_options o = duo_options();
			struct tail l = {.from = PACKETS / 2};
			struct transfer *t = &l.t;
			uint64_t before;

			transfer_start(t, &v, &o, 1, read, PACKETS * MTU, latency_ns, WARM);
			/* The first packet's round trip is longer than that of the CAPS packets before. */
			before = t->sender->tail_probes;
			t->duo->script = lose_tail;
			t->duo->script_ctx = &l;
			transfer_post(t, 0, PACKETS * MTU);
			duo_idle(t->duo);
			transfer_check(t);
			DUO_CHECK(t->duo, t->sender->tail_probes - before == 1);
			DUO_CHECK(t->duo, t->sender->timeouts == 0);
			transfer_end(t);
		}
	}
}

/* Loses the first two copies of the first packet. */
static bool lose_first_twice(void *ctx, const struct duo_packet *p, enum duo_fate *fate, uint64_t *n)
{
	struct transfer *t = ctx;

	if (transfer_is_data(t, p) && !transfer_index(t, p) && !transfer_copy(t, 0, 1)) {
		*fate = DUO_DROP;
		return true;
	}
	return transfer_channel(ctx, p, fate, n);
}

/*
 * If only one third copy were sent and lost, the window would close: each round takes as many packets of it as the
 * sender's own window has, and the answer to a fourth copy would come two rounds later. Each of the two counts. Where
 * the window has room for these rounds one copy goes.
 */
TEST(third_copy_goes_twice_and_counts_twice)
{
	static const uint32_t windows[] = {50, 36, 25};

	for (size_t i = 0; i < 2 * COUNT(windows); i++) {
		int read = i & 1, twice = i / 2 < 2;
		struct veroce_options v = veroce_options();
		struct duo_options o = duo_options();
		struct transfer t;

		v.rx_window = 128;
		v.window_bytes = windows[i / 2] * MTU;
		transfer_start(&t, &v, &o, 1, read, 300 * MTU, 20000, WARM);
		t.packet_ns = 1000;
		t.duo->script = lose_first_twice;
		t.duo->script_ctx = &t;
		transfer_post(&t, 0, 300 * MTU);
		duo_idle(t.duo);
		transfer_check(&t);
		DUO_CHECK(t.duo, transfer_copies(&t, 0) == (size_t)(2 + twice));
		if (twice)
			DUO_CHECK(t.duo, transfer_copy(&t, 0, 2)->sent_ns == transfer_copy(&t, 0, 3)->sent_ns);
		DUO_CHECK(t.duo, t.sender->retransmits == (uint64_t)(2 + twice) &&
					 t.receiver->rx_duplicates == (uint64_t)twice);
		DUO_CHECK(t.duo, !t.sender->timeouts);
		transfer_end(&t);
	}
}

/* ---- paths -------------------------------------------------------------------------------------
 */

/*
 * out-of-order O27, R17, veRoCE 6.2: no loss, and a first window that makes a queue of 300 us in
 * front of paths of 10, 20 and 200 us. The long path's round trip was measured before the queue
 * grew; packets of other paths that were sent later and acknowledged do not prove that its packets
 * are lost. Of all runs' packets: a single wrong verdict takes a whole train.
 */
TEST_MANY(growing_queue_is_no_evidence_against_a_long_path)
{
	enum { BULK = 4 << 20, MESSAGE = 1 << 18, RUNS = 64 };
	uint64_t retransmits = 0;

	for (unsigned i = 0; i < RUNS; i++) {
		struct veroce_options v = veroce_options();
		struct duo_options o = duo_options();
		struct transfer t;

		v.paths = 3;
		v.flowlet = i & 2 ? 8 : 1;
		v.window_bytes = 600 * MTU;
		transfer_start(&t, &v, &o, 51 + i, i & 1, BULK, 2000, 0);
		memcpy(t.duo->path_ns, (uint64_t[]){10000, 20000, 200000}, 3 * sizeof(uint64_t));
		t.packet_ns = 500;
		t.duo->script = transfer_channel;
		t.duo->script_ctx = &t;
		for (uint64_t off = 0; off < BULK; off += MESSAGE)
			transfer_post(&t, off, MESSAGE);
		duo_idle(t.duo);
		transfer_check(&t);
		retransmits += t.sender->retransmits;
		transfer_end(&t);
	}
	assert_true(retransmits * 5000 <= (uint64_t)RUNS * BULK / MTU);
}
