/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A responder's program may deregister a region as soon as the peer's program reports that its READ is
 * complete. That may be before the responder's nic knows, as the ACK_Rsp may have been lost. A retransmission
 * must then not read the region, and the connection has no reason to end (veRoCE 7.4, 7.7; our choice). If
 * the peer does miss packets, its READ fails.
 */
#include "support/test.h"
#include "veroce/veroce.h"

static bool is_ack_rsp(const struct duo_packet *p, const void *arg)
{
	return p->veroce && (p->bth.opcode == OP_RC_ACK_RSP || p->bth.opcode == OP_RC_SACK_RSP);
}

static bool is_response(const struct duo_packet *p, const void *arg)
{
	return veroce_is_data(p) && p->info->flags & F_RESPONSE;
}

static struct duo_rule *lose(struct duo *d, enum duo_side from, duo_match *match, int nth)
{
	return duo_rule(
		d, (struct duo_rule){.from = from, .opcode = DUO_ANY, .nth = nth, .match = match, .fate = DUO_DROP});
}

/* Payload bytes of the responses that were sent from the packet of that index on. */
static uint64_t told_since(const struct duo *d, size_t index)
{
	uint64_t bytes = 0;

	for (size_t i = index; i < d->wire_count; i++) {
		if (is_response(&d->wire[i], NULL))
			bytes += d->wire[i].payload_len;
	}
	return bytes;
}

/* With and without stamps in the packets, and with each way of detecting losses. */
enum { KINDS = 2 * 3 };

static void set_kind(struct veroce_options *v, int kind)
{
	v->base[DUO_A] = kind & 1;
	v->loss = (enum veroce_loss)(kind / 2);
}

static void acknowledgement_lost(const struct veroce_options *v, const struct duo_options *o)
{
	struct sim s = veroce_start_sim(v, o, 1);
	struct duo_buf *gone = duo_buf(s.b->host, 5 * o->mtu, ALL_ACCESS);
	struct duo_wr r = duo_read_wr(1, s.abuf, 0, 5 * o->mtu, gone, 0);
	struct duo_rule *silent = lose(s.duo, DUO_A, is_ack_rsp, DUO_ANY);
	size_t then;

	duo_fill(gone, 9);
	assert_true(duo_post(s.a, &r));
	duo_wait(s.duo, &s.a->sent, 1);
	duo_expect(s.duo, &s.a->sent, 1, WC_SUCCESS);
	assert_memory_equal(s.abuf->p, gone->p, 5 * o->mtu);
	duo_buf_free(gone);
	then = s.duo->wire_count;
	/* The first questions stay unanswered too. */
	duo_run_for(s.duo, 3000000);
	assert_true(silent->hits > 1);
	silent->off = true;
	duo_run_for(s.duo, 9000000);
	assert_int_equal(told_since(s.duo, then), 0);
	assert_int_equal(qp_state(s.b->qp), QPS_RTS);
	assert_int_equal(qp_state(s.a->qp), QPS_RTS);
	assert_int_equal(s.b->host->event_count, 0);
	duo_must_post(s.a, duo_read_wr(2, s.abuf, 0, 3 * o->mtu, s.bbuf, 0));
	duo_wait(s.duo, &s.a->sent, 2);
	duo_expect(s.duo, &s.a->sent, 2, WC_SUCCESS);
	assert_memory_equal(s.abuf->p, s.bbuf->p, 3 * o->mtu);
	/* The answer to one question does not answer the next. */
	gone = duo_buf(s.b->host, o->mtu, ALL_ACCESS);
	r = duo_read_wr(3, s.abuf, 0, o->mtu, gone, 0);
	lose(s.duo, DUO_B, is_response, 0);
	assert_true(duo_post(s.a, &r));
	for (then = told_since(s.duo, 0); told_since(s.duo, 0) == then;)
		duo_run_for(s.duo, 100);
	duo_buf_free(gone);
	duo_finish(s.a, 3, WC_REM_ACCESS_ERR);
	sim_end(&s);
}

TEST(a_complete_read_outlives_its_region)
{
	struct veroce_options v = veroce_options();
	struct duo_options o = duo_options();

	for (int kind = 0; kind < KINDS; kind++) {
		set_kind(&v, kind);
		for (unsigned i = 0; veroce_variant(&v, &o, i); i++)
			acknowledgement_lost(&v, &o);
	}
}

static bool is_first_response(const struct duo_packet *p, const void *arg)
{
	return is_response(p, arg) && !p->bth.retrans;
}

/* The region goes while the peer still misses the nth packet of five, or all of them. */
static void answer_lost(const struct veroce_options *v, const struct duo_options *o, int nth)
{
	struct sim s = veroce_start_sim(v, o, 1);
	struct duo_buf *gone = duo_buf(s.b->host, 5 * o->mtu, ALL_ACCESS);
	size_t then;

	lose(s.duo, DUO_B, is_first_response, nth);
	lose(s.duo, DUO_A, is_ack_rsp, DUO_ANY)->off = true;
	duo_must_post(s.a, duo_read_wr(1, s.abuf, 0, 5 * o->mtu, gone, 0));
	while (duo_count(s.duo, DUO_B, nth == 4 ? OP_RC_READ_RESPONSE_LAST : OP_RC_READ_RESPONSE_FIRST) < 1)
		duo_run_for(s.duo, 100);
	then = s.duo->wire_count;
	assert_int_equal(told_since(s.duo, 0), 5 * o->mtu);
	duo_buf_free(gone);
	duo_idle(s.duo);
	assert_int_equal(told_since(s.duo, then), 0);
	duo_expect(s.duo, &s.a->sent, 1, WC_REM_ACCESS_ERR);
	assert_int_equal(qp_state(s.a->qp), QPS_ERR);
	assert_int_equal(qp_state(s.b->qp), QPS_ERR);
	assert_true(duo_had_event(s.b->host, EVENT_QP_ACCESS_ERR, s.b));
	duo_must_post(s.a, duo_write_wr(2, s.abuf, 0, 100, s.bbuf, 0));
	duo_finish(s.a, 2, WC_WR_FLUSH_ERR);
	sim_end(&s);
}

TEST(a_read_that_misses_something_fails_with_its_region)
{
	struct veroce_options v = veroce_options();
	struct duo_options o = duo_options();

	for (int kind = 0; kind < KINDS; kind++) {
		set_kind(&v, kind);
		for (unsigned i = 0; veroce_variant(&v, &o, i); i++) {
			for (int nth = DUO_ANY; nth < 5; nth++)
				answer_lost(&v, &o, nth);
		}
	}
}

/*
 * An acknowledgement that left before the question came says nothing about later arrivals, even if it
 * arrives late.
 */
TEST(an_older_acknowledgement_is_no_answer)
{
	struct veroce_options v = veroce_options();
	struct duo_options o = duo_options();

	for (int base = 0; base < 2; base++) {
		v.base[DUO_A] = base;
		for (unsigned i = 0; veroce_variant(&v, &o, i); i++) {
			struct sim s = veroce_start_sim(&v, &o, 1);
			struct duo_buf *gone = duo_buf(s.b->host, 5 * o.mtu, ALL_ACCESS);
			/* As A sent it before anything had arrived. */
			struct veroce_packet old = {
				.bth = {.opcode = OP_RC_ACK_RSP,
					.dqpn = s.b->qpn,
					.psn = (o.psn[DUO_A] - 1) & PSN_MASK,
					.ts = !base},
				.aeth = {.syndrome = AETH_ACK | AETH_CREDIT_INVALID, .msn = v.sent.reads},
				.tse = {.tx1 = (uint32_t)s.duo->now_ns - 5},
			};
			size_t then;
			struct duo_rule *silent = lose(s.duo, DUO_A, is_ack_rsp, DUO_ANY);

			duo_must_post(s.a, duo_read_wr(1, s.abuf, 0, 5 * o.mtu, gone, 0));
			duo_wait(s.duo, &s.a->sent, 1);
			duo_expect(s.duo, &s.a->sent, 1, WC_SUCCESS);
			duo_buf_free(gone);
			then = s.duo->wire_count;
			while (s.duo->wire_count == then || s.duo->wire[s.duo->wire_count - 1].from != DUO_B)
				duo_run_for(s.duo, 100);
			veroce_forge(s.duo, DUO_B, &old, NULL);
			duo_run_for(s.duo, 100000);
			assert_int_equal(qp_state(s.b->qp), QPS_RTS);
			silent->off = true;
			duo_idle(s.duo);
			assert_int_equal(qp_state(s.b->qp), QPS_RTS);
			sim_end(&s);
		}
	}
}

/* ---- at random --------------------------------------------------------------------------------- */

/* The regions of response MSNs up to `freed` are gone. */
struct watch {
	uint32_t freed;
	uint32_t told; /* packets with bytes of a region that was gone */
};

static void watch(void *ctx, const struct duo_packet *p, const uint8_t *data)
{
	struct watch *w = ctx;

	w->told += is_response(p, NULL) && p->payload_len && psn_diff(p->msn, w->freed) <= 0;
}

/*
 * One region for each READ, freed when the peer reports its completion; WRITEs, atomics and invalidating
 * SENDs between them, and everything that a network does.
 */
TEST(regions_that_go_after_their_reads_cost_nothing)
{
	enum { ROUNDS = 150 };

	for (uint64_t seed = 1; seed <= 36; seed++) {
		struct veroce_options v = veroce_options();
		struct duo_options o = duo_options();
		struct watch watched;
		struct prng rnd;
		uint32_t adds = 0;

		veroce_variant(&v, &o, seed % VEROCE_VARIANTS);
		set_kind(&v, (int)(seed % KINDS));
		v.paths = v.loss == LOSS_FAST ? 1 + seed % 4 : 1;

		struct sim s = veroce_start_sim(&v, &o, seed);

		prng_init(&rnd, seed);
		memset(s.bbuf->p, 0, 8);
		watched = (struct watch){.freed = v.sent.reads};
		s.duo->tap = watch;
		s.duo->tap_ctx = &watched;
		for (int side = 0; side < DUO_SIDES; side++) {
			s.duo->faults[side].drop_ppm = side == DUO_A ? 200000 : 100000;
			s.duo->faults[side].duplicate_ppm = 50000;
			s.duo->faults[side].delay_ppm = 100000;
			s.duo->faults[side].delay_ns_max = 30000;
		}
		for (uint64_t k = 0; k < ROUNDS; k++) {
			uint32_t len = (uint32_t)(1 + prng_next(&rnd) % (6 * o.mtu));
			struct duo_buf *gone = duo_buf(s.b->host, len, ALL_ACCESS);
			struct duo_wr w = duo_read_wr(k, s.abuf, 4096, len, gone, 0);
			bool invalidate = prng_next(&rnd) & 1;

			duo_fill(gone, seed * 1000 + k);
			assert_true(duo_post(s.a, &w));
			duo_wait(s.duo, &s.a->sent, s.a->sent.taken + 1);
			duo_expect(s.duo, &s.a->sent, k, WC_SUCCESS);
			assert_memory_equal(s.abuf->p + 4096, gone->p, len);
			if (invalidate) {
				w = duo_send_wr(k, s.abuf, 0, 0);
				w.opcode = WR_SEND_INV;
				w.imm_or_key = gone->mr->key;
				assert_true(duo_recv(s.b, k, s.bbuf, 0, 0));
			} else {
				w = duo_fetch_add_wr(k, s.abuf, 0, s.bbuf, 0, 1);
				duo_buf_free(gone);
				watched.freed = psn_add(watched.freed, 2); /* the atomic too: it has no bytes */
				adds++;
			}
			assert_true(duo_post(s.a, &w));
			duo_wait(s.duo, &s.a->sent, s.a->sent.taken + 1);
			duo_expect(s.duo, &s.a->sent, k, WC_SUCCESS);
			if (!invalidate)
				continue;
			duo_wait(s.duo, &s.b->received, s.b->received.taken + 1);
			duo_expect(s.duo, &s.b->received, k, WC_SUCCESS);
			duo_buf_free(gone);
			watched.freed = psn_add(watched.freed, 1);
		}
		duo_idle(s.duo);
		assert_int_equal(watched.told, 0);
		assert_int_equal(*(uint64_t *)s.bbuf->p, adds);
		assert_int_equal(qp_state(s.a->qp), QPS_RTS);
		assert_int_equal(qp_state(s.b->qp), QPS_RTS);
		sim_end(&s);
	}
}
