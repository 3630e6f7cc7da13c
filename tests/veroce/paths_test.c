/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Several paths, of which one is long or dies (veRoCE 9; out-of-order O27): all are used, a dead
 * one costs little and is used again when it lives, in requests and in responses.
 */
#include "support/test.h"
#include "veroce/transfer.h"

enum { MTU = 1024, BULK = 4 << 20, MESSAGE = 1 << 18, LATENCY_NS = 2000 };

/* Data packets that were sent from `from_ns` on, by path. */
static void count_paths(const struct transfer *t, uint64_t from_ns, uint32_t count[PATHS_MAX])
{
	memset(count, 0, PATHS_MAX * sizeof(count[0]));
	for (size_t i = 0; i < t->duo->wire_count; i++) {
		const struct duo_packet *p = &t->duo->wire[i];

		if (transfer_is_data(t, p) && p->sent_ns >= from_ns)
			count[p->path]++;
	}
}

static void post_bulk(struct transfer *t)
{
	for (uint64_t off = 0; off < BULK; off += MESSAGE)
		transfer_post(t, off, MESSAGE);
}

/*
 * out-of-order O27, with 4 MB in place of 10. The number of copies that it costs to learn the paths
 * depends on which packets take which path; for a long stream it is small.
 */
TEST(paths_of_different_length_are_all_used)
{
	static const uint64_t skew_ns[] = {10000, 20000, 200000};
	static const uint16_t flowlets[] = {1, 8};

	for (unsigned i = 0; i < 8; i++) {
		struct veroce_options v = veroce_options();
		struct duo_options o = duo_options();
		uint32_t count[PATHS_MAX];
		struct transfer t;

		v.paths = COUNT(skew_ns);
		v.flowlet = flowlets[i / 4];
		v.window_bytes = 600 * MTU;
		v.base[DUO_B] = i & 2;
		transfer_start(&t, &v, &o, 1 + i, i & 1, BULK, LATENCY_NS, 0);
		memcpy(t.duo->path_ns, skew_ns, sizeof(skew_ns));
		t.packet_ns = 500;
		t.duo->script = transfer_channel;
		t.duo->script_ctx = &t;
		post_bulk(&t);
		duo_idle(t.duo);
		transfer_check(&t);
		count_paths(&t, 0, count);
		DUO_CHECK(t.duo, t.sender->retransmits * 25 <= BULK / MTU);
		DUO_CHECK(t.duo, t.sender->timeouts <= 1);
		for (uint32_t k = 0; k < COUNT(skew_ns); k++)
			DUO_CHECK(t.duo, count[k] > BULK / MTU / 10);
		transfer_end(&t);
	}
}

/* When the first packet of data left on path 1 from `from_ns` on, or from_ns. */
static uint64_t next_use_ns(const struct transfer *t, uint64_t from_ns)
{
	for (size_t i = 0; i < t->duo->wire_count; i++) {
		const struct duo_packet *p = &t->duo->wire[i];

		if (transfer_is_data(t, p) && p->sent_ns >= from_ns && p->path == 1)
			return p->sent_ns;
	}
	return from_ns;
}

/* When a packet was last sent again, of those sent before until_ns. */
static uint64_t last_repair_ns(const struct transfer *t, uint64_t until_ns)
{
	uint64_t last_ns = 0;

	for (size_t i = 0; i < t->duo->wire_count && t->duo->wire[i].sent_ns < until_ns; i++) {
		const struct duo_packet *p = &t->duo->wire[i];

		if (transfer_is_data(t, p) && p->bth.retrans)
			last_ns = p->sent_ns;
	}
	return last_ns;
}

/* One WRITE or READ after the other, for so long. */
static void stream(struct transfer *t, uint64_t ns)
{
	uint64_t until_ns = t->duo->now_ns + ns;

	while (t->duo->now_ns < until_ns) {
		while (t->posted - t->s.a->sent.n < 2)
			transfer_post(t, t->posted % (BULK / MESSAGE) * MESSAGE, MESSAGE);
		duo_run_for(t->duo, 10000);
		while (t->s.a->sent.taken < t->s.a->sent.n)
			duo_expect(t->duo, &t->s.a->sent, t->s.a->sent.taken, WC_SUCCESS);
	}
}

static void start_stream(struct transfer *t, uint32_t paths, bool read, uint64_t seed)
{
	struct veroce_options v = veroce_options();
	struct duo_options o = duo_options();

	v.paths = paths;
	v.window_bytes = 200 * MTU;
	transfer_start(t, &v, &o, seed, read, BULK, 20000, 0);
	memcpy(t->dst->p, t->src->p, BULK);
	t->packet_ns = 2000;
	t->duo->script = transfer_channel;
	t->duo->script_ctx = t;
	stream(t, 5000000);
}

TEST_MANY(dead_path_is_left_and_used_again)
{
	static const uint64_t dead_ns[] = {3000000, 25000000};
	/*
	 * A round trip is 0.4 ms, with what waits for the channel. After three of them nothing leaves on the path that
	 * died. If all that is in flight was sent there, a tail probe finds it out, 2 ms after the last
	 * acknowledgement, and the copies leave in the round trip after that.
	 */
	static const uint64_t left_ns_max = 1200000, found_ns_max = 2900000;

	for (unsigned i = 0; i < 16; i++) {
		uint32_t before[PATHS_MAX], dead[PATHS_MAX], after[PATHS_MAX];
		uint64_t died_ns, lost_ns, returned_ns, done;
		struct transfer t;
		uint32_t paths = i & 2 ? 4 : 2;

		start_stream(&t, paths, i & 1, 52 + i);
		count_paths(&t, 0, before);
		DUO_CHECK(t.duo, before[1] > 100);
		died_ns = t.duo->now_ns;
		done = t.s.a->sent.n;
		t.duo->path_ns[1] = UINT64_MAX;
		stream(&t, dead_ns[i / 4 % 2]);
		done = t.s.a->sent.n - done;
		lost_ns = next_use_ns(&t, died_ns);
		count_paths(&t, lost_ns + left_ns_max, dead);
		returned_ns = t.duo->now_ns;
		t.duo->path_ns[1] = 0;
		stream(&t, 40000000);
		duo_idle(t.duo);
		transfer_check(&t);
		count_paths(&t, returned_ns, after);
		/* A message takes 512 us of the channel. What the tail probe below takes does not count. */
		DUO_CHECK(t.duo, done * 512000 >= (dead_ns[i / 4 % 2] - found_ns_max) / 2);
		DUO_CHECK(t.duo, dead[1] <= dead[0] / 20);
		DUO_CHECK(t.duo, t.sender->path_probes > 0);
		DUO_CHECK(t.duo, after[1] > 1000);
		/* The other path's acknowledgements show it, or those of a tail probe. */
		DUO_CHECK(t.duo, t.sender->timeouts == 0);
		DUO_CHECK(t.duo, last_repair_ns(&t, returned_ns) < lost_ns + found_ns_max);
		/* No more than the path's part of a window was lost, by either death. */
		DUO_CHECK(t.duo, t.sender->retransmits <= 400 && t.receiver->rx_duplicates <= 4);
		transfer_end(&t);
	}
}

/* All paths are dead for a while, but shorter than the program's timeout. */
TEST(all_paths_may_be_dead_for_a_while)
{
	for (unsigned i = 0; i < 4; i++) {
		uint32_t after[PATHS_MAX];
		uint64_t returned_ns;
		struct transfer t;
		uint32_t paths = i & 2 ? 4 : 1;

		start_stream(&t, paths, i & 1, 1 + i);
		for (uint32_t k = 0; k < paths; k++)
			t.duo->path_ns[k] = UINT64_MAX;
		duo_run_for(t.duo, 100000000);
		for (uint32_t k = 0; k < paths; k++)
			t.duo->path_ns[k] = 0;
		returned_ns = t.duo->now_ns;
		duo_idle(t.duo);
		stream(&t, 40000000);
		duo_idle(t.duo);
		transfer_check(&t);
		count_paths(&t, returned_ns, after);
		for (uint32_t k = 0; k < paths; k++)
			DUO_CHECK(t.duo, after[k] > 500);
		transfer_end(&t);
	}
}

/* A path that never worked is found out without harm. */
TEST(path_that_is_dead_from_the_start_is_done_without)
{
	for (unsigned i = 0; i < 4; i++) {
		struct veroce_options v = veroce_options();
		struct duo_options o = duo_options();
		struct transfer t;
		uint64_t took_ns;

		v.paths = 4;
		v.window_bytes = 200 * MTU;
		transfer_start(&t, &v, &o, 1 + i, i & 1, BULK, 20000, 0);
		t.duo->path_ns[i & 2 ? 0 : 3] = UINT64_MAX;
		t.packet_ns = 500;
		t.duo->script = transfer_channel;
		t.duo->script_ctx = &t;
		post_bulk(&t);
		duo_idle(t.duo);
		transfer_check(&t);
		took_ns = t.s.a->sent.e[t.posted - 1].timestamp_ns - transfer_copy(&t, 0, 0)->sent_ns;
		/* 2 ms on the wire. */
		DUO_CHECK(t.duo, took_ns < 10000000);
		transfer_end(&t);
	}
}

/*
 * Loss detection that takes a hole for a loss has no evidence by path: there only timeouts show that a
 * path is dead.
 */
TEST(timeouts_tell_of_a_dead_path)
{
	static const enum veroce_loss losses[] = {LOSS_BASE, LOSS_IRN, LOSS_FAST};

	for (unsigned i = 0; i < 2 * COUNT(losses); i++) {
		struct veroce_options v = veroce_options();
		struct duo_options o = duo_options();
		struct transfer t;

		v.paths = 2;
		v.loss = losses[i / 2];
		transfer_start(&t, &v, &o, 1 + i, i & 1, MTU, 20000, 20);
		t.duo->path_ns[1] = UINT64_MAX;
		for (unsigned k = 0; k < 100; k++) {
			transfer_post(&t, 0, MTU);
			duo_wait(t.duo, &t.s.a->sent, t.posted);
		}
		DUO_CHECK(t.duo, t.sender->timeouts <= 3);
		transfer_check(&t);
		transfer_end(&t);
	}
}
