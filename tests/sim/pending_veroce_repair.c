/* SPDX-License-Identifier: BSD-2-Clause */
/* veRoCE loss recovery: what the engine does not do yet; each test moves to where it belongs once
 * it passes. */
#include "sim/veroce_transfer.h"

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
 * longer than 130 us or so, the timeout comes before the probe's answer can. Moves to
 * veroce_probe_test.c.
 */
static void probe_is_answered_before_the_timeout_on_long_paths(void **state)
{
	for (int read = 0; read < 2; read++) {
		for (uint64_t latency_ns = 50000; latency_ns <= 800000; latency_ns *= 2) {
			struct veroce_options v = veroce_options();
			struct duo_options o = duo_options();
			struct tail l = {.from = PACKETS / 2};
			struct transfer *t = &l.t;

			transfer_start(t, &v, &o, 1, read, PACKETS * MTU, latency_ns, WARM);
			t->duo->script = lose_tail;
			t->duo->script_ctx = &l;
			transfer_post(t, 0, PACKETS * MTU);
			duo_idle(t->duo);
			transfer_check(t);
			DUO_CHECK(t->duo, t->sender->tail_probes == 1);
			DUO_CHECK(t->duo, t->sender->timeouts == 0);
			transfer_end(t);
		}
	}
}

/* ---- trimming ----------------------------------------------------------------------------------
 */

enum { TRIMMED = 100, TRIMMED_TOS = 9 << 2 | 2 };

struct trimming {
	struct transfer t;
	uint8_t data[TRIMMED][256];
	uint32_t len[TRIMMED];
	uint32_t count;
};

static bool choose(void *ctx, const struct duo_packet *p, enum duo_fate *fate, uint64_t *n)
{
	const struct trimming *m = ctx;

	*fate = DUO_DROP;
	return transfer_is_data(&m->t, p) && p->payload_len && !p->bth.retrans;
}

static void cut(void *ctx, const struct duo_packet *p, const uint8_t *data)
{
	struct trimming *m = ctx;

	if (p->fate != DUO_DROP)
		return;
	assert_true(m->count < TRIMMED);
	m->len[m->count] = p->len - p->payload_len - p->bth.pad;
	memcpy(m->data[m->count], data, m->len[m->count] - ICRC_LEN);
	m->count++;
}

/*
 * veRoCE 8: each trimmed packet is asked for at once. A receiver keeps eight NAKs a turn, and no
 * SACK tells of the others, as nothing came behind them: they are found one a round trip, until the
 * timeout. Moves to veroce_trim_test.c.
 */
static void whole_window_that_is_trimmed_waits_for_no_timeout(void **state)
{
	for (int read = 0; read < 2; read++) {
		struct veroce_options v = veroce_options();
		struct duo_options o = duo_options();
		struct trimming *m = calloc(1, sizeof(*m));
		struct transfer *t = &m->t;
		struct flow flow;

		v.trim = true;
		transfer_start(t, &v, &o, 1, read, TRIMMED * MTU, 50000, WARM);
		t->duo->script = choose;
		t->duo->script_ctx = m;
		t->duo->tap = cut;
		t->duo->tap_ctx = m;
		transfer_post(t, 0, TRIMMED * MTU);
		duo_run_for(t->duo, 50000 * (1 + read));
		assert_int_equal(m->count, TRIMMED);
		flow = duo_flow(t->duo, !t->from, DUO_GID_IPV4);
		flow.dport = VEROCE_UDP_PORT;
		flow.tos = TRIMMED_TOS;
		for (uint32_t i = 0; i < m->count; i++) {
			struct pkt pkt = {
				.data = m->data[i], .flow = &flow, .len = m->len[i], .train = 1};

			icrc_seal(&pkt);
			duo_inject(t->duo, !t->from, &flow, pkt.data, pkt.len);
		}
		duo_idle(t->duo);
		transfer_check(t);
		DUO_CHECK(t->duo, t->sender->retransmits == TRIMMED);
		DUO_CHECK(t->duo, t->sender->timeouts == 0);
		transfer_end(t);
		free(m);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(probe_is_answered_before_the_timeout_on_long_paths),
		cmocka_unit_test(whole_window_that_is_trimmed_waits_for_no_timeout),
	};

	duo_fail_hook = sim_fail;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
