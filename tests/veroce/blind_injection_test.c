/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Blind injection (docs/veroce.md, "What a stranger can do"): someone who knows addresses, ports and QPNs, and
 * even keys, but has seen no packet, sends arbitrary packets with random PSNs. Between ends that have agreed to
 * seal they have no effect: no byte lands, no connection is lost, and nothing is delayed. With the argument "many": a
 * million.
 */
#include "nic/state.h"
#include "support/test.h"
#include "veroce/veroce.h"
#include "transport/veroce/work.h"

enum { MTU = 1024, FEW = 100000, MANY = 1000000, KINDS = 8 };
enum { DATA = 20 * MTU, SEND_OFF = 24 * 1024, READ_OFF = 32 * 1024 };

struct blind {
	struct sim s;
	struct prng prng;
	uint8_t gid;
	enum duo_side victim;
	uint64_t left; /* of the forgeries */
	uint64_t told; /* WRs posted */
};

static const uint8_t junk[MTU] = {0xee, 0xee, 0xee, 0xee, 0xee, 0xee, 0xee, 0xee};

static uint32_t random_bits(struct blind *b, uint32_t bits)
{
	return (uint32_t)prng_next(&b->prng) & ((1u << bits) - 1);
}

/* Any well-formed packet, with small numbers where those of a connection begin small. */
static struct veroce_packet any_packet(struct blind *b, const uint8_t *sacks)
{
	const struct duo_qp *q = b->victim == DUO_A ? b->s.a : b->s.b;
	const struct duo_buf *own = b->victim == DUO_A ? b->s.abuf : b->s.bbuf;
	const struct opcode_info *info;
	struct veroce_packet p = {.payload_len = 0};
	uint8_t opcode;

	do {
		opcode = (uint8_t)random_bits(b, 8);
		info = veroce_opcode_info(opcode);
	} while (!info);
	p.bth = (struct bth){.opcode = opcode,
			     .pkey = 0xffff,
			     .migreq = true,
			     .ackreq = random_bits(b, 1),
			     .retrans = random_bits(b, 1),
			     .dqpn = q->qpn,
			     .psn = random_bits(b, 24)};
	p.msn = random_bits(b, 8);
	p.rqmsn = random_bits(b, 4);
	p.po = 1 + random_bits(b, 3);
	p.aeth = (struct aeth){.syndrome = (uint8_t)random_bits(b, 7), .msn = random_bits(b, 8)};
	p.reth = (struct reth){.va = own->iova + random_bits(b, 10), .rkey = own->mr->key, .len = MTU};
	p.atomic = (struct atomiceth){.va = own->iova + 8 * random_bits(b, 10), .rkey = own->mr->key, .swap_add = 1};
	p.caps = (struct capseth){.magic = CAPS_MAGIC,
				  .version = CAPS_VERSION,
				  .profile = (uint8_t)(random_bits(b, 1) * 3),
				  .state = CAPS_SEALS,
				  .mtu_code = 3,
				  .source_qpn = q->peer->qpn,
				  .nonce = (uint32_t)prng_next(&b->prng),
				  .own_nonce = (uint32_t)prng_next(&b->prng)};
	if (info->flags & F_PAYLOAD)
		p.payload_len = info->flags & F_FULL ? MTU : 8;
	if (info->headers & H_SACKETH) {
		p.sack_count = 1;
		p.sacks = sacks;
	}
	return p;
}

/* The ICRC plain or with a guess of the secret, and any identification. */
static void forge(struct blind *b)
{
	uint8_t buf[DUO_PACKET_MAX], sacks[SACKETH_LEN];
	struct flow flow = duo_flow(b->s.duo, b->victim, b->gid);
	struct pkt pkt = {.data = buf, .flow = &flow, .train = 1};
	struct veroce_packet p;
	uint32_t guess;

	sacketh_encode(sacks,
		       &(struct sacketh){.valid_len = 128, .start_psn = random_bits(b, 24), .bits = {~0ull, ~0ull}});
	p = any_packet(b, sacks);
	guess = random_bits(b, 1) ? (uint32_t)prng_next(&b->prng) : 0;
	flow.dport = VEROCE_UDP_PORT;
	pkt.len = veroce_encode_headers(buf, &p);
	memcpy(buf + pkt.len, junk, p.payload_len);
	pkt.len += p.payload_len + ICRC_LEN;
	icrc_seal(NULL, &pkt, 0);
	for (uint32_t i = 0; i < ICRC_LEN; i++)
		buf[pkt.len - ICRC_LEN + i] ^= (uint8_t)(guess >> 8 * i);
	duo_inject(b->s.duo, b->victim, &flow, buf, pkt.len);
}

static void some_forgeries(struct blind *b, uint64_t n)
{
	for (; n && b->left; n--, b->left--)
		forge(b);
}

static struct blind start(uint8_t gid, enum duo_side victim, uint64_t seed)
{
	struct veroce_options v = veroce_options();
	struct duo_options o = duo_options();
	struct blind b = {.gid = gid, .victim = victim};

	o.gid = gid;
	o.mtu = MTU;
	b.s = veroce_start_sim(&v, &o, seed);
	prng_init(&b.prng, seed);
	return b;
}

/* Runs a WRITE, a SEND and a READ to their ends, with so many forgeries each half of a microsecond. */
static void work(struct blind *b, uint64_t at_once)
{
	struct sim *s = &b->s;
	struct duo_wr wr[] = {
		duo_write_wr(b->told, s->abuf, 0, DATA, s->bbuf, 0),
		duo_send_wr(b->told + 1, s->abuf, 5, 1500),
		duo_read_wr(b->told + 2, s->abuf, READ_OFF, DATA, s->bbuf, READ_OFF),
	};

	assert_true(duo_recv(s->b, b->told, s->bbuf, SEND_OFF, 1500));
	assert_true(duo_post_chain(s->a, wr, COUNT(wr)));
	while (s->a->sent.n < b->told + COUNT(wr)) {
		some_forgeries(b, at_once);
		duo_run_for(s->duo, 500);
	}
	for (size_t i = 0; i < COUNT(wr); i++)
		duo_expect(s->duo, &s->a->sent, b->told + i, WC_SUCCESS);
	duo_expect(s->duo, &s->b->received, b->told, WC_SUCCESS);
	b->told += COUNT(wr);
}

/* Memory has the bytes of the true packets, and the connection goes on. */
static void expect_nothing_lost(struct blind *b)
{
	struct sim *s = &b->s;

	work(b, 0);
	duo_idle(s->duo);
	assert_int_equal(qp_state(s->a->qp), QPS_RTS);
	assert_int_equal(qp_state(s->b->qp), QPS_RTS);
	for (uint32_t i = 0; i < BUF_BYTES; i++) {
		if (i < DATA)
			assert_int_equal(s->bbuf->p[i], s->abuf->p[i]);
		else if (i >= SEND_OFF && i < SEND_OFF + 1500)
			assert_int_equal(s->bbuf->p[i], s->abuf->p[i - SEND_OFF + 5]);
		else
			assert_int_equal(s->bbuf->p[i], duo_filled(2, i));
	}
	for (uint32_t i = 0; i < BUF_BYTES; i++)
		assert_int_equal(s->abuf->p[i],
				 i >= READ_OFF && i < READ_OFF + DATA ? s->bbuf->p[i] : duo_filled(1, i));
	duo_check_canaries(s->duo);
}

TEST_ALWAYS(an_idle_connection_is_not_touched)
{
	for (int i = 0; i < KINDS / 2; i++) {
		struct blind b = start(i & 1 ? DUO_GID_IPV6 : DUO_GID_IPV4, i & 2 ? DUO_A : DUO_B, 1 + (uint64_t)i);

		b.left = (test_many ? MANY : FEW) / KINDS;
		while (b.left) {
			some_forgeries(&b, 1000);
			duo_run_for(b.s.duo, 1000);
		}
		expect_nothing_lost(&b);
		sim_end(&b.s);
	}
}

static uint64_t rounds_ns(struct blind *b, uint32_t rounds, uint64_t at_once)
{
	uint64_t began_ns = b->s.duo->now_ns;

	for (uint32_t i = 0; i < rounds; i++)
		work(b, at_once);
	return b->s.duo->now_ns - began_ns;
}

TEST_ALWAYS(a_busy_connection_is_not_touched)
{
	uint32_t rounds = (uint32_t)((test_many ? MANY : FEW) * 300 / MANY);

	for (int i = 0; i < KINDS / 2; i++) {
		uint64_t seed = 101 + (uint64_t)i, alone_ns;
		uint8_t gid = i & 1 ? DUO_GID_IPV6 : DUO_GID_IPV4;
		enum duo_side victim = i & 2 ? DUO_A : DUO_B;
		struct blind b = start(gid, victim, seed);

		alone_ns = rounds_ns(&b, rounds, 0);
		sim_end(&b.s);
		b = start(gid, victim, seed);
		b.left = (test_many ? MANY : FEW) / KINDS;
		assert_true(rounds_ns(&b, rounds, 100) * 95 <= alone_ns * 100);
		while (b.left)
			work(&b, 1000);
		expect_nothing_lost(&b);
		sim_end(&b.s);
	}
}

/* ---- peers of the base protocol ---------------------------------------------------------------------- */

static struct sim with_base_peers(bool told)
{
	struct veroce_options v = veroce_options();
	struct duo_options o = duo_options();
	struct duo *duo;

	v.base[DUO_A] = v.base[DUO_B] = true;
	if (told)
		return veroce_start_sim(&v, &o, 1);
	veroce_opt = v;
	duo = duo_create(1, veroce_tweak);
	duo_drop(duo, DUO_ANY, OP_CAPS_REQUEST, DUO_ANY);
	duo_drop(duo, DUO_ANY, OP_CAPS_RESPONSE, DUO_ANY);

	struct sim s = sim_on(duo, &o);

	duo_run_for(duo, 1000000);
	return s;
}

static struct veroce_packet early(const struct sim *s, uint8_t opcode, uint32_t ahead)
{
	return (struct veroce_packet){
		.bth = {.opcode = opcode, .dqpn = s->b->qpn, .psn = psn_add(s->a->opt.psn[DUO_A], ahead)},
		.msn = 1 + ahead,
		.rqmsn = ahead,
		.reth = {.va = s->bbuf->iova, .rkey = s->bbuf->mr->key ^ 1, .len = 8},
		.atomic = {.va = s->bbuf->iova, .rkey = s->bbuf->mr->key ^ 1, .swap_add = 1},
	};
}

static void expect_eight_messages(struct sim *s)
{
	for (uint64_t i = 0; i < 8; i++) {
		if (i & 1)
			assert_true(duo_recv(s->b, i, s->bbuf, 1000 * i, 100));
		duo_must_post(s->a, i & 1 ? duo_send_wr(i, s->abuf, 100 * i, 100)
					  : duo_write_wr(i, s->abuf, 1000 * i, 100, s->bbuf, 1000 * i));
	}
	duo_idle(s->duo);
	for (uint64_t i = 0; i < 8; i++) {
		duo_expect(s->duo, &s->a->sent, i, WC_SUCCESS);
		if (i & 1)
			duo_expect(s->duo, &s->b->received, i, WC_SUCCESS);
		assert_memory_equal(s->bbuf->p + 1000 * i, s->abuf->p + (i & 1 ? 100 : 1000) * i, 100);
	}
}

/*
 * A PSN proves little, so everything possible is judged at once, and a record can turn out to be
 * false.
 */
TEST(what_a_stranger_gets_recorded_is_replaced_by_the_truth)
{
	static const uint8_t opcodes[] = {OP_RC_READ_REQUEST, OP_RC_FETCH_ADD, OP_RC_WRITE_ONLY};

	for (uint32_t i = 0; i < 8 * COUNT(opcodes); i++) {
		struct sim s = with_base_peers(true);
		struct veroce_packet p = early(&s, opcodes[i / 8], 1 + i % 4);
		bool records = p.bth.opcode == OP_RC_WRITE_ONLY;
		uint64_t dropped = nic_counters(s.b->host->nic)->rx_dropped;

		if (i & 4)
			p.msn += 7;
		veroce_forge(s.duo, DUO_B, &p, NULL); /* a WRITE of no bytes needs no key */
		assert_int_equal(nic_counters(s.b->host->nic)->rx_dropped, dropped + !records);
		assert_int_equal(rx_has_holes(&s.b->qp->veroce->w->q_in.rx), records);
		if (!records || i & 4)
			expect_eight_messages(&s);
		else
			duo_idle(s.duo); /* it may be true; nothing shows otherwise */
		assert_int_equal(qp_state(s.b->qp), QPS_RTS);
		sim_end(&s);
	}
}

/* A peer that does not know our window has no more than the base protocol's in flight. */
TEST(no_packet_is_taken_from_further_ahead_than_the_peer_can_send)
{
	for (uint32_t i = 0; i < 4; i++) {
		struct sim s = with_base_peers(i & 1);
		struct veroce_packet p = early(&s, OP_RC_WRITE_ONLY, i & 2 ? 128 : 127);

		/* The first one shows that the peer speaks veRoCE. */
		expect_eight_messages(&s);
		p.bth.psn = psn_add(p.bth.psn, 8);
		veroce_forge(s.duo, DUO_B, &p, NULL);
		assert_int_equal(nic_counters(s.b->host->nic)->rx_beyond_window, i == 2);
		duo_destroy(s.duo);
	}
}
