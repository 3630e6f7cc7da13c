/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Who guesses R_Keys of a live region, and knows everything else of a connection: no request is executed, each is counted, and
 * no byte is changed or told.
 */
#include <errno.h>

#include "duo/sim.h"
#include "wire/atomiceth.h"
#include "wire/psn.h"

enum { GUESSES = 4000, GUESSES_MANY = 1000000, BY_A = 200, BY_A_MANY = 20000, LEN = 64 };

static struct sim start(enum qp_type type, void (*tweak)(struct nic_config *, enum duo_side))
{
	struct duo_options o = duo_options();

	o.type = type;
	return sim_on(duo_create(1, tweak), &o);
}

static uint32_t guess(struct prng *r, const struct sim *s)
{
	uint32_t key;

	do
		key = (uint32_t)prng_next(r);
	while (key == s->bbuf->mr->key);
	return key;
}

static void connect_again(struct duo_qp *q)
{
	assert_int_equal(duo_qp_to_state(q, QPS_RESET), 0);
	assert_int_equal(duo_qp_to_init(q), 0);
	assert_int_equal(duo_qp_to_rtr(q, q->peer), 0);
	assert_int_equal(duo_qp_to_rts(q), 0);
}

/* A request that B would execute if the key was right. */
static void ask(struct sim *s, uint8_t opcode, uint32_t psn, uint32_t key)
{
	struct bth bth = {.opcode = opcode, .pkey = 0xffff, .ackreq = true, .dqpn = s->b->qpn, .psn = psn};
	bool atomic = opcode == OP_RC_FETCH_ADD, writes = opcode == OP_RC_WRITE_ONLY || opcode == OP_UC_WRITE_ONLY;
	struct flow flow = duo_flow(s->duo, DUO_B, DUO_GID_IPV4);
	uint8_t buf[DUO_PACKET_MAX], ext[ATOMICETH_LEN], payload[LEN] = {0};
	uint32_t len;

	if (atomic)
		atomiceth_encode(ext, &(struct atomiceth){.va = s->bbuf->iova, .rkey = key, .swap_add = 1});
	else
		reth_encode(ext, &(struct reth){.va = s->bbuf->iova, .rkey = key, .len = LEN});
	len = duo_build(s->duo, DUO_B, DUO_GID_IPV4, &bth, ext, atomic ? ATOMICETH_LEN : RETH_LEN, payload,
			writes ? LEN : 0, buf);
	duo_inject(s->duo, DUO_B, &flow, buf, len);
}

static uint64_t executed(const struct nic_counters *n)
{
	return n->rx_write_requests + n->rx_read_requests + n->rx_atomic_requests;
}

static void guess_many(enum qp_type type, uint8_t opcode, uint32_t guesses)
{
	struct sim s = start(type, NULL);
	const struct nic_counters *n = nic_counters(s.b->host->nic);
	uint8_t before[BUF_BYTES];
	uint32_t psn = s.a->opt.psn[DUO_A];
	struct async_event e;
	struct prng r;

	prng_init(&r, opcode);
	memcpy(before, s.bbuf->p, BUF_BYTES);
	for (uint32_t i = 0; i < guesses; i++) {
		ask(&s, opcode, psn, guess(&r, &s));
		assert_int_equal(n->rx_access_refused, i + 1);
		if (type == QPT_UC) {
			psn = psn_add(psn, 1);
			continue;
		}
		duo_idle(s.duo); /* A, which has asked nothing, heeds no NAK */
		assert_int_equal(qp_state(s.b->qp), QPS_ERR);
		while (nic_next_async_event(s.b->host->nic, &e)) {
		}
		connect_again(s.b);
	}
	assert_int_equal(executed(n), 0);
	assert_memory_equal(before, s.bbuf->p, BUF_BYTES);
	/* The right one is let in: the others were refused for their keys. */
	ask(&s, opcode, psn, s.bbuf->mr->key);
	assert_int_equal(executed(n), 1);
	assert_int_equal(n->rx_access_refused, guesses);
	assert_int_equal(duo_qp_to_state(s.b, QPS_RESET), 0);
	sim_end(&s);
}

static void guess_all(uint32_t guesses)
{
	guess_many(QPT_RC, OP_RC_WRITE_ONLY, guesses);
	guess_many(QPT_RC, OP_RC_READ_REQUEST, guesses);
	guess_many(QPT_RC, OP_RC_FETCH_ADD, guesses);
	guess_many(QPT_UC, OP_UC_WRITE_ONLY, guesses);
}

TEST(no_guess_is_let_in)
{
	guess_all(GUESSES);
}

TEST_MANY(no_guess_of_a_million_is_let_in)
{
	guess_all(GUESSES_MANY);
}

static void speak_veroce(struct nic_config *c, enum duo_side side)
{
	(void)side;
	c->transport.protocol = PROTOCOL_VEROCE;
}

/* Over veRoCE, whose packets prove their sender, the peer itself guesses. */
static void guess_by_peer(uint32_t guesses)
{
	struct sim s = start(QPT_RC, speak_veroce);
	const struct nic_counters *n = nic_counters(s.b->host->nic);
	uint8_t before[BUF_BYTES];
	struct prng r;

	prng_init(&r, 3);
	memcpy(before, s.bbuf->p, BUF_BYTES);
	for (uint32_t i = 0; i < guesses; i++) {
		struct duo_wr w =
			i & 1 ? duo_read_wr(1, s.abuf, 0, LEN, s.bbuf, 0) : duo_write_wr(1, s.abuf, 0, LEN, s.bbuf, 0);

		w.rkey = guess(&r, &s);
		duo_must_post(s.a, w);
		duo_idle(s.duo);
		duo_expect(s.duo, &s.a->sent, 1, WC_REM_ACCESS_ERR);
		assert_int_equal(n->rx_access_refused, i + 1);
		connect_again(s.a);
		connect_again(s.b);
	}
	assert_int_equal(executed(n), 0);
	assert_memory_equal(before, s.bbuf->p, BUF_BYTES);
	sim_end(&s);
}

TEST(no_guess_of_the_peer_is_let_in)
{
	guess_by_peer(BY_A);
}

TEST_MANY(no_guess_of_many_of_the_peer_is_let_in)
{
	guess_by_peer(BY_A_MANY);
}

/* Two devices, each with regions of its own: a key opens nothing on the other. */
TEST(a_key_of_another_device_is_refused)
{
	struct sim s = start(QPT_UC, NULL);
	const struct nic_counters *n = nic_counters(s.b->host->nic);
	uint8_t before[BUF_BYTES];
	uint32_t psn = s.a->opt.psn[DUO_A];
	struct duo_buf *theirs;

	memcpy(before, s.bbuf->p, BUF_BYTES);
	for (uint32_t i = 0; i < 1000; i++) {
		theirs = duo_buf(s.a->host, LEN, ALL_ACCESS);
		ask(&s, OP_UC_WRITE_ONLY, psn_add(psn, i), theirs->mr->key);
		assert_int_equal(n->rx_access_refused, i + 1);
	}
	assert_int_equal(executed(n), 0);
	assert_memory_equal(before, s.bbuf->p, BUF_BYTES);
	sim_end(&s);
}
