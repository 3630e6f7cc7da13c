/* SPDX-License-Identifier: BSD-2-Clause */
/* RC READs and atomics on a bad network, and how many of them are under way (IBTA 9.7.3.1, 9.7.5). */
#include "duo/sim.h"
#include "wire/psn.h"
#include "wire/reth.h"

enum { MTU = 1024, READ_BYTES = 5 * MTU + 100, READ_PACKETS = 6 };

static const uint8_t response_ops[READ_PACKETS] = {
	OP_RC_READ_RESPONSE_FIRST,  OP_RC_READ_RESPONSE_MIDDLE, OP_RC_READ_RESPONSE_MIDDLE,
	OP_RC_READ_RESPONSE_MIDDLE, OP_RC_READ_RESPONSE_MIDDLE, OP_RC_READ_RESPONSE_LAST,
};

static bool is_response(const struct duo_packet *p, const void *arg)
{
	return p->info->flags & F_RESPONSE && p->info->flags & (F_READ | F_ATOMIC);
}

static struct duo_rule *drop_response(struct sim *s, int nth)
{
	return duo_rule(s->duo,
			(struct duo_rule){
				.from = DUO_B, .opcode = DUO_ANY, .nth = nth, .match = is_response, .fate = DUO_DROP});
}

SIM_TEST(responses_are_numbered_and_cut_right)
{
	uint32_t psn = s.a->opt.psn[DUO_A];

	duo_do(s.a, duo_read_wr(1, s.abuf, 0, READ_BYTES, s.bbuf, 77));
	const struct duo_packet *r = duo_packet(s.duo, DUO_A, OP_RC_READ_REQUEST, 0);

	assert_int_equal(r->bth.psn, psn);
	assert_true(r->reth.va == s.bbuf->iova + 77);
	assert_int_equal(r->reth.len, READ_BYTES);
	assert_int_equal(duo_count(s.duo, DUO_B, DUO_ANY), READ_PACKETS);
	for (uint32_t i = 0; i < READ_PACKETS; i++) {
		const struct duo_packet *p = duo_packet(s.duo, DUO_B, DUO_ANY, i);

		assert_int_equal(p->bth.opcode, response_ops[i]);
		assert_int_equal(p->bth.psn, psn_add(psn, i));
		assert_int_equal(p->payload_len, i < 5 ? MTU : 100);
		if (p->info->headers & H_AETH) {
			assert_int_equal(aeth_kind(p->aeth.syndrome), AETH_ACK);
			assert_int_equal(p->aeth.msn, 1);
		}
	}
}

/*
 * The k-th response is lost. Later responses show it, so the requester at once requests the
 * remainder, and only that: PSN, address and length start at the hole. Without later responses the
 * timer does it.
 */
static void lose_response(int k, bool followed)
{
	struct sim s = sim_default();
	struct duo_wr w[] = {duo_read_wr(1, s.abuf, 0, READ_BYTES, s.bbuf, 77),
			     duo_write_wr(2, s.abuf, 20000, 10, s.bbuf, 20000)};
	struct duo_rule *r = drop_response(&s, k);
	uint32_t hole = psn_add(s.a->opt.psn[DUO_A], (uint32_t)k);

	assert_true(duo_post_chain(s.a, w, followed ? 2 : 1));
	duo_idle(s.duo);
	assert_int_equal(r->hits, 1);
	duo_expect(s.duo, &s.a->sent, 1, WC_SUCCESS);
	if (followed)
		duo_expect(s.duo, &s.a->sent, 2, WC_SUCCESS);
	assert_memory_equal(s.abuf->p, s.bbuf->p + 77, READ_BYTES);
	assert_int_equal(duo_count(s.duo, DUO_A, OP_RC_READ_REQUEST), 2);
	const struct duo_packet *again = duo_packet(s.duo, DUO_A, OP_RC_READ_REQUEST, 1);

	assert_int_equal(again->bth.psn, hole);
	assert_true(again->reth.va == s.bbuf->iova + 77 + (uint64_t)k * MTU);
	assert_int_equal(again->reth.len, READ_BYTES - (uint32_t)k * MTU);
	assert_int_equal(nic_counters(s.a->host->nic)->timeouts, k == READ_PACKETS - 1 && !followed ? 1 : 0);
	if (k < READ_PACKETS - 1 || followed)
		assert_true(again->sent_ns < DUO_START_NS + 5 * DUO_LATENCY_NS);
	sim_end(&s);
}

TEST(lost_response_is_asked_for_again)
{
	for (int k = 0; k < READ_PACKETS; k++) {
		lose_response(k, false);
		lose_response(k, true);
	}
}

/*
 * PSNs have 24 bits, the one after the last response's too: otherwise the requester would wait for
 * responses that have arrived.
 */
SIM_TEST(read_that_ends_at_the_last_psn_leaves_nothing_to_wait_for, o.psn[DUO_A] = psn_add(0, -READ_PACKETS &PSN_MASK))
{
	const struct nic_counters *n = nic_counters(s.a->host->nic);

	duo_do(s.a, duo_read_wr(1, s.abuf, 0, READ_BYTES, s.bbuf, 77));
	assert_false(qp_in_flight(s.a->qp));
	assert_int_equal(n->timeouts + n->retransmits, 0);
	duo_do(s.a, duo_write_wr(2, s.abuf, 20000, 10, s.bbuf, 20000));
	assert_int_equal(n->timeouts + n->retransmits, 0);
	assert_int_equal(duo_packet(s.duo, DUO_A, OP_RC_WRITE_ONLY, 0)->bth.psn, 0);
}

TEST(lost_request_is_sent_again)
{
	for (int followed = 0; followed < 2; followed++) {
		struct sim s = sim_default();
		struct duo_wr w[] = {duo_read_wr(1, s.abuf, 0, READ_BYTES, s.bbuf, 0),
				     duo_read_wr(2, s.abuf, 20000, 50, s.bbuf, 20000)};

		duo_drop(s.duo, DUO_A, OP_RC_READ_REQUEST, 0);
		assert_true(duo_post_chain(s.a, w, followed ? 2 : 1));
		duo_finish(s.a, 1, WC_SUCCESS);
		if (followed)
			duo_expect(s.duo, &s.a->sent, 2, WC_SUCCESS);
		assert_memory_equal(s.abuf->p, s.bbuf->p, READ_BYTES);
		assert_int_equal(nic_counters(s.a->host->nic)->timeouts, !followed);
		assert_int_equal(duo_count_syndrome(s.duo, DUO_B, AETH_NAK | NAK_PSN_SEQUENCE), followed);
		sim_end(&s);
	}
}

/* Each response of several READs in a row is lost once, at every place. */
TEST(any_response_of_many_reads_may_be_lost)
{
	enum { READS = 5 };

	for (int k = 0; k < READS * READ_PACKETS; k++) {
		struct sim s = sim_default();
		struct duo_wr w[READS];

		for (uint64_t i = 0; i < READS; i++)
			w[i] = duo_read_wr(i, s.abuf, i * 8000, READ_BYTES, s.bbuf, i * 9000);
		struct duo_rule *r = drop_response(&s, k);

		assert_true(duo_post_chain(s.a, w, READS));
		duo_idle(s.duo);
		assert_int_equal(r->hits, 1);
		for (uint64_t i = 0; i < READS; i++) {
			duo_expect(s.duo, &s.a->sent, i, WC_SUCCESS);
			assert_memory_equal(s.abuf->p + i * 8000, s.bbuf->p + i * 9000, READ_BYTES);
		}
		sim_end(&s);
	}
}

/* The re-request's own answer may be lost, again and again. */
SIM_TEST(responses_lost_repeatedly)
{
	for (int i = 0; i < 6; i++)
		drop_response(&s, 1);
	duo_do(s.a, duo_read_wr(1, s.abuf, 0, READ_BYTES, s.bbuf, 0));
	assert_memory_equal(s.abuf->p, s.bbuf->p, READ_BYTES);
}

static bool is_response_at(const struct duo_packet *p, const void *psn)
{
	return is_response(p, NULL) && p->bth.psn == *(const uint32_t *)psn;
}

/*
 * The same response is lost three times. Those behind it show the first loss, and say no more of the second one, which
 * the timer notices; from then on they count again.
 */
SIM_TEST(a_loss_is_seen_again_after_a_timeout)
{
	uint32_t hole = psn_add(s.a->opt.psn[DUO_A], 1);

	for (int i = 0; i < 3; i++)
		duo_rule(s.duo, (struct duo_rule){.from = DUO_B,
						  .opcode = DUO_ANY,
						  .nth = 0,
						  .match = is_response_at,
						  .arg = &hole,
						  .fate = DUO_DROP});
	duo_do(s.a, duo_read_wr(1, s.abuf, 0, READ_BYTES, s.bbuf, 0));
	assert_memory_equal(s.abuf->p, s.bbuf->p, READ_BYTES);
	assert_int_equal(nic_counters(s.a->host->nic)->timeouts, 1);
}

/* A READ is not a snapshot: a repeated request reads memory as it is then. */
SIM_TEST(duplicate_read_reads_again)
{
	drop_response(&s, 0);
	duo_must_post(s.a, duo_read_wr(1, s.abuf, 0, 100, s.bbuf, 0));
	duo_run_for(s.duo, 10 * DUO_LATENCY_NS);
	duo_fill(s.bbuf, 99);
	duo_finish(s.a, 1, WC_SUCCESS);
	assert_memory_equal(s.abuf->p, s.bbuf->p, 100);
}

/* IBTA 9.7.4.5.2: a duplicate requests the range of the original, or its tail, or is ignored. */
SIM_TEST(duplicate_read_may_not_ask_for_anything_else)
{
	struct duo_wr w = duo_read_wr(1, s.abuf, 0, READ_BYTES, s.bbuf, 0);
	const struct {
		uint32_t psn, va, rkey, len;
		bool answered;
	} rows[] = {
		{0, 0, 0, READ_BYTES, true},  {1, 1024, 0, READ_BYTES - 1024, true},
		{0, 0, 0, 100, true},         {0, 0, 0, READ_BYTES + 1, false},
		{0, 0, 0, 40000, false},      {0, 8, 0, READ_BYTES - 8, false},
		{1, 0, 0, 100, false},        {1, 1024, 0, READ_BYTES, false},
		{0, 0, 1, READ_BYTES, false},
	};

	duo_do(s.a, w);
	for (size_t i = 0; i < COUNT(rows); i++) {
		size_t before = duo_count(s.duo, DUO_B, DUO_ANY);
		uint8_t ext[RETH_LEN];
		struct reth reth = {.va = w.remote_va + rows[i].va, .rkey = w.rkey + rows[i].rkey, .len = rows[i].len};
		struct bth bth = {.opcode = OP_RC_READ_REQUEST,
				  .pkey = 0xffff,
				  .dqpn = s.b->qpn,
				  .psn = psn_add(s.a->opt.psn[DUO_A], rows[i].psn)};

		reth_encode(ext, &reth);
		duo_forge(s.duo, DUO_B, DUO_GID_IPV4, &bth, ext, sizeof(ext), NULL, 0);
		duo_idle(s.duo);
		assert_int_equal(duo_count(s.duo, DUO_B, DUO_ANY) > before, rows[i].answered);
		assert_int_equal(qp_state(s.b->qp), QPS_RTS);
	}
}

static uint64_t word(const struct duo_buf *b, uint64_t off)
{
	uint64_t v;

	memcpy(&v, b->p + off, 8);
	return v;
}

static void set_word(struct duo_buf *b, uint64_t off, uint64_t v)
{
	memcpy(b->p + off, &v, 8);
}

/* IBTA 9.7.5.1.5: the first result is sent again, though memory has changed since. */
TEST(lost_atomic_response_is_replayed)
{
	for (int cas = 0; cas < 2; cas++) {
		struct sim s = sim_default();
		struct duo_rule *r = drop_response(&s, 0);

		set_word(s.bbuf, 0, 40);
		duo_must_post(s.a, cas ? duo_cmp_swap_wr(1, s.abuf, 0, s.bbuf, 0, 40, 50)
				       : duo_fetch_add_wr(1, s.abuf, 0, s.bbuf, 0, 10));
		duo_run_for(s.duo, 10 * DUO_LATENCY_NS);
		assert_int_equal(r->hits, 1);
		assert_int_equal(word(s.bbuf, 0), 50);
		set_word(s.bbuf, 0, 40); /* executed again it would be 50 once more */
		duo_finish(s.a, 1, WC_SUCCESS);
		assert_int_equal(word(s.abuf, 0), 40);
		assert_int_equal(word(s.bbuf, 0), 40);
		assert_int_equal(duo_count(s.duo, DUO_B, OP_RC_ATOMIC_ACK), 2);
		assert_int_equal(duo_packet(s.duo, DUO_B, OP_RC_ATOMIC_ACK, 0)->bth.psn,
				 duo_packet(s.duo, DUO_B, OP_RC_ATOMIC_ACK, 1)->bth.psn);
		sim_end(&s);
	}
}

/* 16 increments at once; whichever answer is lost, every one has its own result, in order. */
TEST(any_atomic_response_of_many_may_be_lost)
{
	for (int k = 0; k < 16; k++) {
		struct sim s = sim_default();

		set_word(s.bbuf, 0, 0);
		drop_response(&s, k);
		for (uint64_t i = 0; i < 16; i++)
			duo_must_post(s.a, duo_fetch_add_wr(i, s.abuf, 8 * i, s.bbuf, 0, 1));
		duo_idle(s.duo);
		for (uint64_t i = 0; i < 16; i++) {
			duo_expect(s.duo, &s.a->sent, i, WC_SUCCESS);
			assert_int_equal(word(s.abuf, 8 * i), i);
		}
		assert_int_equal(word(s.bbuf, 0), 16);
		sim_end(&s);
	}
}

/* READs, atomics and WRITEs mixed under random loss, duplication and delay: a counter never lies. */
TEST(atomics_are_executed_once_whatever_happens)
{
	for (uint64_t seed = 0; seed < 60; seed++) {
		struct duo *d = duo_create(seed, NULL);
		struct duo_options o = duo_options();

		o.timeout = 4;
		o.mtu = 256;
		o.max_rd_atomic = o.max_dest_rd_atomic = (uint8_t)(1 + seed * 13 % 128);
		struct duo_pair p = duo_connect(d, &o);
		struct duo_buf *a = duo_buf(&d->host[DUO_A], 8192, ALL_ACCESS);
		struct duo_buf *b = duo_buf(&d->host[DUO_B], 8192, ALL_ACCESS);

		for (int side = 0; side < DUO_SIDES; side++)
			d->faults[side] = (struct duo_faults){
				.drop_ppm = 40000, .duplicate_ppm = 40000, .delay_ppm = 40000, .delay_ns_max = 20000};
		for (uint64_t i = 0; i < 60; i++) {
			struct duo_wr add = duo_fetch_add_wr(i, a, 8 * i, b, 0, 1);
			struct duo_wr read = duo_read_wr(i, a, 4096, 1000, b, 0);

			assert_true(duo_post(p.a, i % 3 == 2 ? &read : &add));
		}
		duo_idle(d);
		for (uint64_t i = 0, n = 0; i < 60; i++) {
			duo_expect(d, &p.a->sent, i, WC_SUCCESS);
			if (i % 3 != 2)
				assert_int_equal(word(a, 8 * i), n++);
		}
		assert_int_equal(word(b, 0), 40);
		duo_destroy(d);
	}
}

/* The most READ and atomic requests under way at any time, as the requester sees it. */
static size_t most_outstanding(const struct sim *s)
{
	size_t most = 0;

	for (size_t i = 0; i < s->duo->wire_count; i++) {
		const struct duo_packet *p = &s->duo->wire[i];
		size_t requests = 0, answers = 0;

		if (p->from != DUO_A || !(p->info->flags & (F_READ | F_ATOMIC)))
			continue;
		for (size_t k = 0; k < s->duo->wire_count; k++) {
			const struct duo_packet *q = &s->duo->wire[k];

			if (!(q->info->flags & (F_READ | F_ATOMIC)))
				continue;
			if (q->from == DUO_A)
				requests += k <= i;
			else if (q->info->flags & F_END)
				answers += q->sent_ns + DUO_LATENCY_NS <= p->sent_ns;
		}
		if (requests - answers > most)
			most = requests - answers;
	}
	return most;
}

TEST(max_rd_atomic_bounds_what_is_under_way)
{
	static const uint8_t limits[] = {1, 2, 3, 8, 16, 127, 128};
	enum { REQUESTS = 200 };

	for (size_t i = 0; i < COUNT(limits); i++) {
		struct duo_options o = duo_options();

		o.max_rd_atomic = limits[i];
		o.max_dest_rd_atomic = limits[i];
		o.cap.max_send_wr = REQUESTS;
		o.mtu = 256; /* the first window's packets */

		struct sim s = sim_start(&o);

		for (uint64_t k = 0; k < REQUESTS; k++) {
			duo_must_post(s.a, k % 3 ? duo_read_wr(k, s.abuf, 0, 100 * (uint32_t)(k % 3), s.bbuf, 0)
						 : duo_fetch_add_wr(k, s.abuf, 0, s.bbuf, 0, 1));
		}
		duo_idle(s.duo);
		for (uint64_t k = 0; k < REQUESTS; k++)
			duo_expect(s.duo, &s.a->sent, k, WC_SUCCESS);
		assert_int_equal(most_outstanding(&s), limits[i]);
		sim_end(&s);
	}
}

/* A larger limit does not discard executed requests: their answers are sent again. */
SIM_TEST(a_higher_limit_forgets_nothing, o.max_rd_atomic = o.max_dest_rd_atomic = 3)
{
	struct qp_attr sqd = {.state = QPS_SQD}, more = {.max_dest_rd_atomic = 100};

	set_word(s.bbuf, 0, 0);
	for (uint64_t i = 0; i < 7; i++) {
		if (i == 6)
			drop_response(&s, 6);
		duo_must_post(s.a, duo_fetch_add_wr(i, s.abuf, 8 * i, s.bbuf, 0, 1));
	}
	duo_run_for(s.duo, 20 * DUO_LATENCY_NS);
	assert_int_equal(word(s.bbuf, 0), 7);
	assert_int_equal(nic_qp_modify(s.b->host->nic, s.b->qp, &sqd, QPA_STATE, s.duo->now_ns), 0);
	assert_int_equal(nic_qp_modify(s.b->host->nic, s.b->qp, &more, QPA_MAX_DEST_RD_ATOMIC, s.duo->now_ns), 0);
	duo_idle(s.duo);
	for (uint64_t i = 0; i < 7; i++) {
		duo_expect(s.duo, &s.a->sent, i, WC_SUCCESS);
		assert_int_equal(word(s.abuf, 8 * i), i);
	}
	assert_int_equal(word(s.bbuf, 0), 7);
}

/* A READ that waits for its turn does not let later requests overtake it. */
SIM_TEST(requests_keep_their_order_at_the_limit, o.max_rd_atomic = 1)
{
	struct duo_wr w[] = {duo_read_wr(1, s.abuf, 0, 3000, s.bbuf, 0), duo_read_wr(2, s.abuf, 4000, 3000, s.bbuf, 0),
			     duo_write_wr(3, s.abuf, 9000, 10, s.bbuf, 0)};

	assert_true(duo_post_chain(s.a, w, 3));
	duo_idle(s.duo);
	for (uint64_t i = 1; i <= 3; i++)
		duo_expect(s.duo, &s.a->sent, i, WC_SUCCESS);
	uint32_t last = 0;

	for (size_t i = 0; i < duo_count(s.duo, DUO_A, DUO_ANY); i++) {
		const struct duo_packet *p = duo_packet(s.duo, DUO_A, DUO_ANY, i);

		assert_true(i == 0 || psn_diff(p->bth.psn, last) > 0);
		last = p->bth.psn;
	}
}

TEST(long_read_is_whole_under_loss)
{
	enum { LONG = 1 << 20 };

	for (uint64_t seed = 0; seed < 6; seed++) {
		struct duo *d = duo_create(seed, NULL);
		struct duo_options o = duo_options();

		o.timeout = 5;
		o.mtu = 256u << seed % 5;
		o.psn[DUO_A] = 0xfffff0;
		struct duo_pair p = duo_connect(d, &o);
		struct duo_buf *a = duo_buf(&d->host[DUO_A], LONG, MR_LOCAL_WRITE);
		struct duo_buf *b = duo_buf(&d->host[DUO_B], LONG, ALL_ACCESS);

		duo_fill(b, seed);
		d->faults[DUO_A].drop_ppm = 10000;
		d->faults[DUO_B].drop_ppm = 10000;
		duo_must_post(p.a, duo_read_wr(1, a, 0, LONG, b, 0));
		duo_idle(d);
		duo_expect(d, &p.a->sent, 1, WC_SUCCESS);
		assert_memory_equal(a->p, b->p, LONG);
		duo_destroy(d);
	}
}

/* Responses without a request: wrong PSN, wrong kind. Nothing is written, nothing completes. */
SIM_TEST(ghost_responses_are_ignored)
{
	uint8_t before[BUF_BYTES], payload[1024] = {0};
	static const uint8_t ops[] = {OP_RC_READ_RESPONSE_FIRST, OP_RC_READ_RESPONSE_MIDDLE, OP_RC_READ_RESPONSE_LAST,
				      OP_RC_READ_RESPONSE_ONLY, OP_RC_ATOMIC_ACK};

	memcpy(before, s.abuf->p, BUF_BYTES);
	duo_drop(s.duo, DUO_A, DUO_ANY, 0);
	duo_must_post(s.a, duo_write_wr(1, s.abuf, 0, 10, s.bbuf, 0));
	duo_run_for(s.duo, 10);
	for (size_t i = 0; i < COUNT(ops); i++) {
		for (int32_t off = -3; off <= 3; off++) {
			uint8_t ext[12] = {AETH_ACK | AETH_CREDIT_INVALID};
			struct bth bth = {.opcode = ops[i],
					  .pkey = 0xffff,
					  .dqpn = s.a->qpn,
					  .psn = psn_add(s.a->opt.psn[DUO_A], (uint32_t)off)};
			uint32_t headers = opcode_header_len(ops[i]) - BTH_LEN;
			bool atomic = ops[i] == OP_RC_ATOMIC_ACK;

			duo_forge(s.duo, DUO_A, DUO_GID_IPV4, &bth, ext, headers, payload,
				  atomic ? 0 : sizeof(payload));
			duo_run_for(s.duo, 10);
		}
	}
	assert_memory_equal(before, s.abuf->p, BUF_BYTES);
	duo_finish(s.a, 1, WC_SUCCESS);
	assert_memory_equal(s.abuf->p, s.bbuf->p, 10);
}
