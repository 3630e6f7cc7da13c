/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The last packets are lost, and no later packet shows it: tail probes repair that without a
 * timeout (veRoCE 6.2; out-of-order O25, R18), in requests and in responses.
 */
#include "support/test.h"
#include "veroce/transfer.h"

enum { MTU = 1024, LATENCY_NS = 50000, WARM = 16, PACKETS = 20, RTO_NS_MIN = 500000 };

/* Loses the first `copies` copies of data packets from `from` on. */
struct tail {
	struct transfer t;
	uint32_t from;
	uint32_t copies;
	bool acks;  /* instead: the first `copies` acknowledgements of them */
	bool first; /* nothing was sent before, so no round trip was measured */
};

static bool is_ack(const struct transfer *t, const struct duo_packet *p)
{
	return p->from != t->from && p->veroce && p->info->flags & F_ACK && !(p->info->flags & F_PAYLOAD);
}

static bool lose_tail(void *ctx, const struct duo_packet *p, enum duo_fate *fate, uint64_t *n)
{
	struct tail *l = ctx;
	uint32_t i = transfer_index(&l->t, p);

	*fate = DUO_DROP;
	if (l->acks)
		return is_ack(&l->t, p) && l->copies && l->copies--;
	return transfer_is_data(&l->t, p) && i >= l->from && i < PACKETS && !transfer_copy(&l->t, i, l->copies - 1);
}

static void run(struct tail *l, bool read, bool base, uint32_t count)
{
	struct veroce_options v = veroce_options();
	struct duo_options o = duo_options();
	struct transfer *t = &l->t;

	v.base[DUO_A] = v.base[DUO_B] = base;
	transfer_start(t, &v, &o, 1, read, PACKETS * MTU, LATENCY_NS, l->first ? 0 : WARM);
	memcpy(t->dst->p, t->src->p, PACKETS * MTU);
	memset(t->dst->p, 0, count * MTU);
	t->duo->script = lose_tail;
	t->duo->script_ctx = l;
	transfer_post(t, 0, count * MTU);
	duo_idle(t->duo);
	transfer_check(t);
}

/* How long after packet i was first sent the transfer was complete. */
static uint64_t repaired_ns(const struct tail *l, uint32_t i)
{
	const struct transfer *t = &l->t;
	uint64_t end_ns = t->s.a->sent.e[t->posted - 1].timestamp_ns;

	return end_ns - transfer_copy(t, i, 0)->sent_ns;
}

TEST(lost_last_packet_is_repaired_by_a_probe)
{
	for (int i = 0; i < 4; i++) {
		for (uint32_t count = 1; count <= PACKETS; count += count < 3 ? 1 : 17) {
			struct tail l = {.from = count - 1, .copies = 1};

			run(&l, i & 1, i & 2, count);
			DUO_CHECK(l.t.duo, l.t.sender->timeouts == 0);
			DUO_CHECK(l.t.duo, l.t.sender->tail_probes == 1);
			DUO_CHECK(l.t.duo, transfer_copies(&l.t, count - 1) == 1);
			DUO_CHECK(l.t.duo, l.t.sender->retransmits == 1);
			DUO_CHECK(l.t.duo, l.t.receiver->rx_duplicates == 0);
			/* A round trip till the others are answered, PTO, and another one. */
			DUO_CHECK(l.t.duo, repaired_ns(&l, count - 1) <= 4 * 2 * LATENCY_NS);
			transfer_end(&l.t);
		}
	}
}

TEST(lost_end_of_many_packets_is_repaired_by_a_probe)
{
	for (int i = 0; i < 4; i++) {
		for (uint32_t from = 0; from < PACKETS - 1; from += 6) {
			struct tail l = {.from = from, .copies = 1};

			run(&l, i & 1, i & 2, PACKETS);
			DUO_CHECK(l.t.duo, l.t.sender->timeouts == 0);
			DUO_CHECK(l.t.duo, l.t.receiver->rx_duplicates == 0);
			for (uint32_t k = 0; k < PACKETS; k++)
				DUO_CHECK(l.t.duo, transfer_copies(&l.t, k) == (k >= from));
			DUO_CHECK(l.t.duo, repaired_ns(&l, from) <= 5 * 2 * LATENCY_NS);
			transfer_end(&l.t);
		}
	}
}

/* Each probe is answered at once, so the next one need not wait for a delayed acknowledgement. */
TEST(lost_probes_are_followed_by_others)
{
	for (int i = 0; i < 4; i++) {
		for (uint32_t copies = 2; copies <= 3; copies++) {
			struct tail l = {.from = PACKETS - 1, .copies = copies};

			run(&l, i & 1, i & 2, PACKETS);
			DUO_CHECK(l.t.duo, transfer_copies(&l.t, PACKETS - 1) == copies);
			DUO_CHECK(l.t.duo, l.t.sender->timeouts == 0 && l.t.sender->tail_probes == copies);
			DUO_CHECK(l.t.duo, l.t.receiver->rx_duplicates == 0);
			for (uint32_t k = 2; k <= copies; k++) {
				uint64_t wait_ns = transfer_copy(&l.t, PACKETS - 1, k)->sent_ns -
						   transfer_copy(&l.t, PACKETS - 1, k - 1)->sent_ns;

				DUO_CHECK(l.t.duo, wait_ns > 3 * LATENCY_NS);
				DUO_CHECK(l.t.duo, wait_ns <= 4 * LATENCY_NS + LATENCY_NS / 5);
			}
			transfer_end(&l.t);
		}
	}
}

/* A duplicate is answered at once (veRoCE 5.3). */
TEST(lost_last_acknowledgement_is_repaired_by_a_probe)
{
	for (int i = 0; i < 4; i++) {
		struct tail l = {.acks = true, .copies = 1};

		run(&l, i & 1, i & 2, 1);
		DUO_CHECK(l.t.duo, l.t.sender->timeouts == 0 && l.t.sender->tail_probes == 1);
		DUO_CHECK(l.t.duo, l.t.receiver->rx_duplicates == 1);
		transfer_end(&l.t);
	}
}

/* The answer to the CAPS request tells how long a round trip takes at least; without it the probe waits for eight
 * RTO_min (6.3). */
TEST(lost_acknowledgement_of_the_first_packets_is_repaired_after_one_timeout)
{
	for (uint32_t count = 1; count <= PACKETS; count += PACKETS - 1) {
		struct tail l = {.acks = true, .copies = 1, .first = true};

		run(&l, false, false, count);
		DUO_CHECK(l.t.duo, l.t.sender->timeouts == 0 && l.t.sender->tail_probes > 0);
		DUO_CHECK(l.t.duo, l.t.sender->retransmits <= 2); /* the first and the last one */
		DUO_CHECK(l.t.duo, repaired_ns(&l, 0) >= RTO_NS_MIN);
		DUO_CHECK(l.t.duo, repaired_ns(&l, 0) <= RTO_NS_MIN + 3 * 2 * LATENCY_NS);
		transfer_end(&l.t);
	}
}
