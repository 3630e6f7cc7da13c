/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Every algorithm in both engines delivers everything. A seed chooses loss, reordering, duplicates,
 * marks, how marks are reported, windows, line rates, slack, presets, and PFC pauses in between.
 *
 *     congestion_swarm_test [SEED [COUNT]]
 *
 * Each side writes to, reads from and sends to memory that no other operation touches. It prints
 * every seed before it runs it, so that the last one printed is the one to repeat.
 */
#define TEST_OWN_MAIN
#include "congestion/congestion.h"

enum { SEEDS = 36, OPS = 24, OP_MAX = 24 * 1024, SLOTS = OPS, PAUSES = 6 };

static uint64_t first_seed = 1, seeds = SEEDS;

static bool chance(struct prng *r, uint32_t percent)
{
	return prng_below(r, 100) < percent;
}

static void choose_faults(struct duo *d, struct prng *r)
{
	for (int side = 0; side < DUO_SIDES; side++) {
		struct duo_faults *f = &d->faults[side];
		uint32_t *rates[] = {&f->drop_ppm, &f->duplicate_ppm, &f->delay_ppm, &f->ce_ppm};

		for (size_t i = 0; i < COUNT(rates); i++)
			*rates[i] = chance(r, 50) ? (uint32_t)prng_below(r, 30000) : 0;
		if (chance(r, 20))
			f->ce_ppm = 500000;
		f->delay_ns_max = 1 + prng_below(r, 30000);
	}
	d->latency_ns = 1000 + prng_below(r, 20000);
}

static struct congestion_options choose_options(struct prng *r, uint64_t seed)
{
	static const uint64_t rates[] = {0, 100000000, 1000000000, 25000000000, 400000000000};
	/* All algorithms come in turn; the seed chooses everything else. */
	struct congestion_options c = congestion_options((enum cc_algorithm)(seed % CC_ALGORITHMS));
	size_t n;
	const struct cc_preset_info *presets = cc_presets_table(&n);

	for (; n--; presets++) {
		if (presets->algorithm == c.params.algorithm && chance(r, 30))
			assert_int_equal(cc_params_preset(&c.params, presets->name), 0);
	}
	c.params.loss = (enum cc_loss_policy)prng_below(r, CC_LOSS_POLICIES);
	c.params.window = chance(r, 30);
	c.protocol = seed / CC_ALGORITHMS % 2 ? PROTOCOL_VEROCE : PROTOCOL_ROCEV2;
	c.paths = c.protocol == PROTOCOL_VEROCE && chance(r, 50) ? 4 : 1;
	c.line_rate_bps = rates[prng_below(r, COUNT(rates))];
	c.base_rtt_ns = chance(r, 50) ? 1000 + prng_below(r, 50000) : 0;
	c.slack_ns = chance(r, 50) ? prng_below(r, 100000) : 0;
	c.overhead_bytes = chance(r, 50) ? 66 : 0;
	c.window_bytes = 4096u << prng_below(r, 8);
	c.cnp_interval_ns = chance(r, 50) ? 1 + prng_below(r, 100000) : 0;
	c.ce_echo = chance(r, 30);
	c.off[DUO_B] = chance(r, 20);
	return c;
}

/* One side's memory: the source of its WRITEs, the target of its READs, and the peer's target. */
struct end {
	struct duo_qp *q;
	struct duo_buf *own, *results, *target, *inbox;
	uint32_t len[OPS];
	enum wr_opcode opcode[OPS];
};

static void begin(struct duo *d, struct end *e, struct duo_qp *q, struct prng *r)
{
	e->q = q;
	e->own = duo_buf(q->host, SLOTS * OP_MAX, ALL_ACCESS);
	e->results = duo_buf(q->host, SLOTS * OP_MAX, ALL_ACCESS);
	e->target = duo_buf(q->host, SLOTS * OP_MAX, ALL_ACCESS);
	e->inbox = duo_buf(q->host, SLOTS * OP_MAX, ALL_ACCESS);
	duo_fill(e->own, prng_next(r));
	for (uint64_t i = 0; i < SLOTS; i++)
		assert_true(duo_recv(q, i, e->inbox, i * OP_MAX, OP_MAX));
}

static void post(struct end *e, const struct end *peer, uint64_t i, struct prng *r)
{
	uint64_t at = i * OP_MAX;
	struct duo_wr w;

	e->len[i] = (uint32_t)(1 + prng_below(r, OP_MAX));
	switch (prng_below(r, 3)) {
	case 0: w = duo_write_wr(i, e->own, at, e->len[i], peer->target, at); break;
	case 1: w = duo_read_wr(i, e->results, at, e->len[i], peer->own, at); break;
	default: w = duo_send_wr(i, e->own, at, e->len[i]);
	}
	e->opcode[i] = w.opcode;
	assert_true(duo_post(e->q, &w));
}

static void check(struct duo *d, struct end *e, struct end *peer)
{
	uint64_t message = 0;

	for (uint64_t i = 0; i < OPS; i++) {
		uint64_t at = i * OP_MAX;

		duo_expect(d, &e->q->sent, i, WC_SUCCESS);
		switch (e->opcode[i]) {
		case WR_WRITE: DUO_CHECK(d, !memcmp(peer->target->p + at, e->own->p + at, e->len[i])); break;
		case WR_READ: DUO_CHECK(d, !memcmp(e->results->p + at, peer->own->p + at, e->len[i])); break;
		default:
			DUO_CHECK(d, !memcmp(peer->inbox->p + message * OP_MAX, e->own->p + at, e->len[i]));
			DUO_CHECK(d, duo_expect(d, &peer->q->received, message, WC_SUCCESS)->byte_len == e->len[i]);
			message++;
		}
	}
}

static void run(uint64_t seed)
{
	struct duo_options o = duo_options();
	struct congestion_options c;
	struct end ends[DUO_SIDES];
	struct duo_pair pair;
	struct prng r;
	struct duo *d;

	prng_init(&r, seed);
	c = choose_options(&r, seed);
	o.mtu = 256u << prng_below(&r, 5);
	o.psn[DUO_A] = (uint32_t)prng_below(&r, 1 << 24);
	o.psn[DUO_B] = chance(&r, 50) ? 0xfffff0 : (uint32_t)prng_below(&r, 1 << 24);
	o.max_rd_atomic = (uint8_t)(1u << prng_below(&r, 5));
	/* 17 s a try: the least rate of an algorithm, a 2^14th of the slowest path's, takes 11 s a packet. */
	o.timeout = 22;
	printf("seed %ju: %s, %s\n", (uintmax_t)seed, cc_name(c.params.algorithm),
	       c.protocol == PROTOCOL_VEROCE ? "veroce" : "rocev2");
	fflush(stdout);
	congestion_opt = c;
	d = duo_create(seed, congestion_tweak);
	pair = duo_connect(d, &o);
	choose_faults(d, &r);
	begin(d, &ends[0], pair.a, &r);
	begin(d, &ends[1], pair.b, &r);
	for (uint64_t i = 0; i < OPS; i++) {
		post(&ends[0], &ends[1], i, &r);
		post(&ends[1], &ends[0], i, &r);
		if (chance(&r, 30))
			duo_run_for(d, prng_below(&r, 200000));
	}
	for (int i = 0; chance(&r, 80) && i < PAUSES; i++) {
		struct nic *nic = d->host[prng_below(&r, 2)].nic;

		nic_pause(nic, true);
		duo_run_for(d, prng_below(&r, 300000));
		nic_pause(nic, false);
		duo_run_for(d, prng_below(&r, 100000));
	}
	duo_idle(d);
	check(d, &ends[0], &ends[1]);
	check(d, &ends[1], &ends[0]);
	for (int i = 0; i < DUO_SIDES; i++)
		DUO_CHECK(d, ends[i].q->received.taken == ends[i].q->received.n);
	duo_destroy(d);
}

TEST(everything_is_delivered)
{
	for (uint64_t i = 0; i < seeds; i++)
		run(first_seed + i);
}

int main(int argc, char **argv)
{
	if (argc > 1) {
		first_seed = strtoull(argv[1], NULL, 10);
		seeds = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
	}
	return test_run(argc, argv);
}
