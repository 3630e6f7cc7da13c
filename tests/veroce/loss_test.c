/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Lost packets, and the copies that they cost (veRoCE 6; out-of-order O22 to O24, O26, O28 to O30,
 * O37; R18), in requests and in responses.
 */
#include "support/test.h"
#include "veroce/transfer.h"

enum { MTU = 1024 };

static struct veroce_options options_of(enum veroce_loss loss)
{
	struct veroce_options v = veroce_options();

	v.loss = loss;
	return v;
}

/* ---- the worked example (veRoCE 6.1) -----------------------------------------------------------
 */

enum { EXAMPLE = 12, EXAMPLE_LATENCY_NS = 50000, WARM = 4 };

/* Which of the twelve arrive, by copy; of the peer's packets only those that the test makes arrive. */
struct example {
	struct transfer t;
	uint16_t arrives[3];
};

static bool play_example(void *ctx, const struct duo_packet *p, enum duo_fate *fate, uint64_t *n)
{
	struct example *e = ctx;
	uint32_t i = transfer_index(&e->t, p), copy = 0;

	*fate = DUO_PASS;
	if (!veroce_is_data(p)) {
		*fate = p->from == e->t.from ? DUO_PASS : DUO_DROP;
		return true;
	}
	if (!transfer_is_data(&e->t, p) || i >= EXAMPLE)
		return true;
	while (transfer_copy(&e->t, i, copy))
		copy++;
	if (copy >= COUNT(e->arrives) || !(e->arrives[copy] >> i & 1))
		*fate = DUO_DROP;
	return true;
}

static void expect_copies(const struct example *e, const uint8_t copies[EXAMPLE])
{
	for (uint32_t i = 0; i < EXAMPLE; i++)
		DUO_CHECK(e->t.duo, transfer_copies(&e->t, i) == copies[i]);
}

/* A round trip after the twelve were sent. psn + i is the example's PSN i + 1. */
static void start_example(struct example *e, enum veroce_loss loss, bool read, uint32_t psn)
{
	struct veroce_options v = options_of(loss);
	struct duo_options o = duo_options();
	struct transfer *t = &e->t;

	o.psn[DUO_A] = psn;
	v.base[DUO_A] = v.base[DUO_B] = true;
	transfer_start(t, &v, &o, 1, read, EXAMPLE * MTU, EXAMPLE_LATENCY_NS, WARM);
	duo_run_for(t->duo, 300000);
	t->duo->script = play_example;
	t->duo->script_ctx = e;
	transfer_post(t, 0, EXAMPLE * MTU);
	duo_run_for(t->duo, (read ? 3 : 2) * EXAMPLE_LATENCY_NS);
}

/* Lets everything through. */
static void finish_example(struct example *e)
{
	e->t.duo->script = NULL;
	duo_idle(e->t.duo);
	transfer_check(&e->t);
	transfer_end(&e->t);
}

/* out-of-order O22 */
TEST(base_sends_exactly_the_copies_of_the_example)
{
	static const uint32_t psns[] = {0, 0xfffff5, 0x3a91c7};

	for (unsigned i = 0; i < 2 * COUNT(psns); i++) {
		/* 1 to 4, 7 and 9; then 8, 10 and 11. 5 and 6 are lost twice, 12 is of no matter.
		 */
		struct example e = {.arrives = {0x14f, 0x680}};
		struct transfer *t = &e.t;
		uint32_t psn;

		start_example(&e, LOSS_BASE, i & 1, psns[i / 2]);
		psn = t->psn - 1; /* psn + n is the example's PSN n */
		expect_copies(&e, (uint8_t[EXAMPLE]){0});
		/* SACK 1: aPSN 4, 7 has arrived, 8 has not. */
		transfer_answer(t, psn + 4, WARM, psn + 5, 4, 4);
		duo_run_for(t->duo, 10000);
		expect_copies(&e, (uint8_t[EXAMPLE]){[4] = 1, [5] = 1, [7] = 1});
		/* SACK 2: 9 has, 10 and 11 have not. RxtPSN, 8, spares 5 to 8. */
		transfer_answer(t, psn + 4, WARM, psn + 5, 7, 4 | 16);
		duo_run_for(t->duo, 10000);
		expect_copies(&e, (uint8_t[EXAMPLE]){[4] = 1, [5] = 1, [7] = 1, [9] = 1, [10] = 1});
		/* It is 11 now. The same again changes nothing while that is younger than a round
		 * trip. */
		duo_run_for(t->duo, EXAMPLE_LATENCY_NS);
		transfer_answer(t, psn + 4, WARM, psn + 5, 7, 4 | 16);
		duo_run_for(t->duo, 10000);
		expect_copies(&e, (uint8_t[EXAMPLE]){[4] = 1, [5] = 1, [7] = 1, [9] = 1, [10] = 1});
		/* SACK 3: all but 5 and 6, which were lost again. */
		duo_run_for(t->duo, 2 * EXAMPLE_LATENCY_NS);
		transfer_answer(t, psn + 4, WARM, psn + 5, 7, 0x7c);
		duo_run_for(t->duo, 10000);
		expect_copies(&e, (uint8_t[EXAMPLE]){[4] = 2, [5] = 2, [7] = 1, [9] = 1, [10] = 1});
		DUO_CHECK(t->duo, !t->sender->timeouts);
		finish_example(&e);
	}
}

/* out-of-order O24: until the PSN that timed out is acknowledged. */
TEST(base_ignores_sacks_after_a_timeout)
{
	static const uint8_t once[EXAMPLE] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};

	for (int read = 0; read < 2; read++) {
		/* Of the copies 1 and 9 to 12. */
		struct example e = {.arrives = {0, 0xf01}};
		struct transfer *t = &e.t;
		uint32_t psn;

		start_example(&e, LOSS_BASE, read, 0xfffffa);
		psn = t->psn - 1;
		while (!t->sender->timeouts)
			duo_run_for(t->duo, 10000);
		duo_run_for(t->duo, 10000);
		expect_copies(&e, once);
		for (uint32_t i = 0; i < 5; i++) {
			transfer_answer(t, psn, WARM, psn + 1, 12, 0xf00);
			duo_run_for(t->duo, 50000);
		}
		DUO_CHECK(t->duo, t->sender->timeouts == 1);
		expect_copies(&e, once);
		/* Its una moves: SACKs count again. */
		transfer_answer(t, psn + 1, WARM, psn + 2, 11, 0x780);
		duo_run_for(t->duo, 10000);
		expect_copies(&e, (uint8_t[EXAMPLE]){1, 2, 2, 2, 2, 2, 2, 2, 1, 1, 1, 1});
		finish_example(&e);
	}
}

/* ---- the example with a peer that answers ------------------------------------------------------
 */

/* How many copies of a data packet are lost, by index. */
struct losses {
	struct transfer *t;
	uint8_t lost[4096];
	uint8_t seen[4096];
};

static bool lose(void *ctx, const struct duo_packet *p, enum duo_fate *fate, uint64_t *n)
{
	struct losses *l = ctx;
	bool mine = l->t->packet_ns && transfer_channel(l->t, p, fate, n);
	uint32_t i = transfer_index(l->t, p);

	if (!transfer_is_data(l->t, p) || i >= COUNT(l->lost) || l->seen[i] >= l->lost[i])
		return mine;
	l->seen[i]++;
	*fate = DUO_DROP;
	return true;
}

/* Where of 400 packets those of the example are lost: 5 and 6 twice. */
static void run_example(struct transfer *t, const struct veroce_options *v, bool read)
{
	static struct losses l;
	struct duo_options o = duo_options();

	transfer_start(t, v, &o, 1, read, 400 * MTU, EXAMPLE_LATENCY_NS, WARM);
	l = (struct losses){.t = t, .lost = {[4] = 2, [5] = 2, [7] = 1, [9] = 1, [10] = 1}};
	t->packet_ns = 1000;
	t->duo->script = lose;
	t->duo->script_ctx = &l;
	transfer_post(t, 0, 400 * MTU);
	duo_idle(t->duo);
	transfer_check(t);
	for (uint32_t i = 0; i < 400; i++)
		DUO_CHECK(t->duo, transfer_copies(t, i) >= l.lost[i]);
}

TEST(base_repairs_the_example_with_a_peer_that_answers)
{
	for (int i = 0; i < 8; i++) {
		struct veroce_options v = options_of(LOSS_BASE);
		struct transfer t;

		v.window_bytes = 110 * MTU;
		v.rx_window = 128;
		v.base[DUO_A] = i & 1;
		v.base[DUO_B] = i & 2;
		run_example(&t, &v, i & 4);
		/* RxtPSN may go back just before the answer to a copy comes. */
		DUO_CHECK(t.duo, t.sender->timeouts <= 1 && t.receiver->rx_duplicates <= 8);
		transfer_end(&t);
	}
}

/* out-of-order O23: a copy that is lost is found as its original was. */
TEST(fast_sends_second_copies_a_round_trip_later)
{
	for (int i = 0; i < 8; i++) {
		struct veroce_options v = options_of(LOSS_FAST);
		struct transfer t;
		/* The queue of a window's packets is part of the round trip. */
		uint64_t rtt_ns = 200000;

		v.window_bytes = 200 * MTU;
		v.base[DUO_A] = i & 1;
		v.base[DUO_B] = i & 2;
		run_example(&t, &v, i & 4);
		DUO_CHECK(t.duo, !t.sender->timeouts && !t.sender->tail_probes);
		DUO_CHECK(t.duo, !t.receiver->rx_duplicates);
		for (uint32_t k = 4; k <= 5; k++) {
			uint64_t wait_ns = transfer_copy(&t, k, 2)->sent_ns - transfer_copy(&t, k, 1)->sent_ns;

			DUO_CHECK(t.duo, wait_ns <= rtt_ns + rtt_ns / 8);
		}
		transfer_end(&t);
	}
}

/* ---- much is lost ------------------------------------------------------------------------------
 */

/* out-of-order O26 */
TEST(lost_window_is_sent_again)
{
	static const enum veroce_loss losses[] = {LOSS_FAST, LOSS_BASE, LOSS_IRN};

	for (unsigned i = 0; i < 4 * COUNT(losses); i++) {
		struct veroce_options v = options_of(losses[i / 4]);
		struct duo_options o = duo_options();
		struct transfer t;

		v.base[DUO_B] = i & 1;
		transfer_start(&t, &v, &o, 1, i & 2, 256 * MTU, 10000, WARM);
		transfer_post(&t, 0, 256 * MTU);
		/* All of the first burst. */
		duo_run_for(t.duo, t.read ? t.duo->latency_ns : 0);
		duo_ground(t.duo);
		duo_idle(t.duo);
		transfer_check(&t);
		/* One probe, whose answer reports everything, or one timeout. */
		DUO_CHECK(t.duo, t.sender->timeouts == (v.loss != LOSS_FAST));
		DUO_CHECK(t.duo, t.sender->tail_probes == (v.loss == LOSS_FAST));
		DUO_CHECK(t.duo, t.sender->retransmits == 256 && !t.receiver->rx_duplicates);
		transfer_end(&t);
	}
}

/* out-of-order O30: more than one block can report. */
TEST(spread_holes_are_repaired_in_one_round_trip)
{
	enum { PACKETS = 1024, EVERY = 16, LATENCY_NS = 50000 };
	static struct losses l;

	for (int i = 0; i < 4; i++) {
		struct veroce_options v = options_of(LOSS_FAST);
		struct duo_options o = duo_options();
		struct transfer t;
		uint64_t first_ns = UINT64_MAX, last_ns = 0;

		v.window_bytes = 4 << 20;
		v.rx_window = 4096;
		v.base[DUO_B] = i & 1;
		transfer_start(&t, &v, &o, 1, i & 2, PACKETS * MTU, LATENCY_NS, WARM);
		l = (struct losses){.t = &t};
		for (uint32_t k = 3; k < PACKETS - EVERY; k += EVERY)
			l.lost[k] = 1;
		t.duo->script = lose;
		t.duo->script_ctx = &l;
		transfer_post(&t, 0, PACKETS * MTU);
		duo_idle(t.duo);
		transfer_check(&t);
		for (uint32_t k = 0; k < PACKETS; k++)
			DUO_CHECK(t.duo, transfer_copies(&t, k) == l.lost[k]);
		for (uint32_t k = 3; k < PACKETS - EVERY; k += EVERY) {
			const struct duo_packet *p = transfer_copy(&t, k, 1);

			first_ns = p->sent_ns < first_ns ? p->sent_ns : first_ns;
			last_ns = p->sent_ns > last_ns ? p->sent_ns : last_ns;
		}
		/* They are found as soon as possible; a base peer reports in several packets what
		 * one cannot hold. */
		DUO_CHECK(t.duo, first_ns == transfer_copy(&t, 0, 0)->sent_ns + 2 * LATENCY_NS);
		DUO_CHECK(t.duo, last_ns - first_ns <= (i & 1 ? 4 * LATENCY_NS : 0));
		DUO_CHECK(t.duo, !t.sender->timeouts && !t.sender->tail_probes);
		transfer_end(&t);
	}
}

/* ---- random loss -------------------------------------------------------------------------------
 */

enum { BULK = 4 << 20, MESSAGE = 1 << 18 };

/* Returns how long it took. */
static uint64_t run_bulk(struct transfer *t)
{
	t->duo->script = transfer_channel;
	t->duo->script_ctx = t;
	for (uint64_t off = 0; off < BULK; off += MESSAGE)
		transfer_post(t, off, MESSAGE);
	duo_idle(t->duo);
	transfer_check(t);
	return t->s.a->sent.e[t->posted - 1].timestamp_ns - transfer_copy(t, 0, 0)->sent_ns;
}

/* The time of one run of `kind`: paths by its bit 0, READ by bit 1. */
static uint64_t lossy_bulk_ns(int kind, uint64_t seed, uint32_t percent)
{
	struct veroce_options v = options_of(LOSS_FAST);
	struct duo_options o = duo_options();
	struct transfer t;
	uint64_t took_ns;

	v.paths = kind & 1 ? 16 : 1;
	v.window_bytes = 400 * (MTU + 40);
	transfer_start(&t, &v, &o, seed, kind & 2, BULK, 25000, 64);
	for (uint32_t p = 0; p < v.paths; p++)
		t.duo->path_ns[p] = p * 1500;
	t.packet_ns = 500;
	t.drop_ppm = percent * 10000;
	t.duo->faults[!t.from].drop_ppm = t.drop_ppm;
	took_ns = run_bulk(&t);
	DUO_CHECK(t.duo, t.receiver->rx_duplicates * 100 <= BULK / MTU);
	DUO_CHECK(t.duo, t.sender->timeouts <= 1);
	transfer_end(&t);
	return took_ns;
}

/* out-of-order O28, with eight times 4 MB in place of 1 GB; acknowledgements are lost alike. */
TEST_MANY(random_loss_costs_little_more_than_what_was_lost)
{
	enum { RUNS = 8 };
	static const uint32_t percents[] = {0, 1, 2, 5, 10};
	/* In a run of 2 ms a slow end weighs more than with 1 GB: one probe costs a sixth. */
	static const double least[] = {1, 0.9, 0.9, 0.75, 0.6};

	for (int kind = 0; kind < 4; kind++) {
		uint64_t free_ns = 0;

		for (size_t k = 0; k < COUNT(percents); k++) {
			uint64_t took_ns = 0;

			for (uint64_t run = 0; run < RUNS; run++)
				took_ns += lossy_bulk_ns(kind, 7 + 10 * run + (uint64_t)kind, percents[k]);
			free_ns = k ? free_ns : took_ns;
			assert_true((double)free_ns >= least[k] * (double)took_ns);
		}
	}
}

/* out-of-order O29 */
TEST_MANY(lost_acknowledgements_cost_little)
{
	for (int i = 0; i < 4; i++) {
		uint64_t took_ns[2];

		for (int lossy = 0; lossy < 2; lossy++) {
			struct veroce_options v = options_of(LOSS_FAST);
			struct duo_options o = duo_options();
			struct transfer t;

			v.paths = i & 1 ? 4 : 1;
			v.window_bytes = 400 * (MTU + 40);
			transfer_start(&t, &v, &o, 3 + i, i & 2, BULK, 25000, 16);
			t.packet_ns = 500;
			/* All that the receiver sends, requests for READs included. */
			t.duo->faults[!t.from].drop_ppm = lossy ? 500000 : 0;
			took_ns[lossy] = run_bulk(&t);
			DUO_CHECK(t.duo, t.sender->retransmits <= (lossy ? 20 : 0));
			DUO_CHECK(t.duo, t.sender->timeouts <= (lossy ? 1 : 0));
			transfer_end(&t);
		}
		/* The last one may be lost too, which costs a probe, 350 us of 2 ms. */
		assert_true(took_ns[0] >= took_ns[1] * 0.8);
	}
}

/* out-of-order O37 */
TEST(corrupted_packets_are_lost_packets)
{
	for (int i = 0; i < 4; i++) {
		struct veroce_options v = options_of(LOSS_FAST);
		struct duo_options o = duo_options();
		struct transfer t;

		v.paths = i & 1 ? 4 : 1;
		v.window_bytes = 400 * (MTU + 40);
		transfer_start(&t, &v, &o, 5 + i, i & 2, BULK, 25000, 16);
		for (int side = 0; side < DUO_SIDES; side++)
			t.duo->faults[side].corrupt_ppm = 10000;
		for (uint64_t off = 0; off < BULK; off += MESSAGE)
			transfer_post(&t, off, MESSAGE);
		duo_idle(t.duo);
		transfer_check(&t);
		DUO_CHECK(t.duo, t.receiver->rx_icrc_errors > 20);
		DUO_CHECK(t.duo, t.sender->retransmits >= t.receiver->rx_icrc_errors);
		DUO_CHECK(t.duo, t.receiver->rx_duplicates * 100 <= BULK / MTU);
		DUO_CHECK(t.duo, t.sender->timeouts <= 1);
		transfer_end(&t);
	}
}
