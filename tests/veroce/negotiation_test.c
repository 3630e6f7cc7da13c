/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two ends that negotiate their protocol on the wire (veRoCE 13.1, src/transport/veroce/caps.c):
 * with any packet lost, late or forged, they end up with the same protocol, and no message is
 * executed twice.
 */
#include "support/test.h"
#include "veroce/veroce.h"
#include "veroce/caps.h"

enum { MS = 1000000 };

static bool is_veroce(const struct duo_packet *p, const void *arg)
{
	return p->veroce;
}

static struct duo_rule *lose(struct duo *d, int from, duo_match *match)
{
	return duo_rule(d, (struct duo_rule){
				   .from = from, .opcode = DUO_ANY, .nth = DUO_ANY, .match = match, .fate = DUO_DROP});
}

/* Packets of `from` that belong to messages or acknowledge them, of one protocol. */
static uint32_t spoken(const struct duo *d, int from, bool veroce, size_t since)
{
	uint32_t n = 0;

	for (size_t i = since; i < d->wire_count; i++) {
		const struct duo_packet *p = &d->wire[i];

		n += (from == DUO_ANY || (int)p->from == from) && p->veroce == veroce && p->info &&
		     p->info->flags & (F_REQUEST | F_RESPONSE);
	}
	return n;
}

/* Hosts and buffers; the QPs are not connected yet. */
static struct sim start(enum protocol a, enum protocol b, uint64_t seed)
{
	veroce_opt = veroce_options();
	veroce_opt.protocol[DUO_A] = a;
	veroce_opt.protocol[DUO_B] = b;

	struct sim s = {.duo = duo_create(seed, veroce_tweak)};

	s.abuf = duo_buf(&s.duo->host[DUO_A], BUF_BYTES, ALL_ACCESS);
	s.bbuf = duo_buf(&s.duo->host[DUO_B], BUF_BYTES, ALL_ACCESS);
	duo_fill(s.abuf, 1);
	duo_fill(s.bbuf, 2);
	memset(s.abuf->p, 0, 8);
	memset(s.bbuf->p, 0, 8);
	return s;
}

static void connect(struct sim *s)
{
	struct duo_options o = duo_options();
	struct duo_pair p = duo_connect(s->duo, &o);

	s->a = p.a;
	s->b = p.b;
}

/* A SEND and a FETCH_ADD; the latter would show a second execution. */
static void post_pair(struct sim *s, enum duo_side side, uint64_t id)
{
	struct duo_qp *q = side == DUO_A ? s->a : s->b;
	struct duo_buf *from = side == DUO_A ? s->abuf : s->bbuf;
	struct duo_buf *to = side == DUO_A ? s->bbuf : s->abuf;

	assert_true(duo_recv(q->peer, id, to, 8000, 3000));
	duo_must_post(q, duo_send_wr(id, from, 1000, 3000));
	duo_must_post(q, duo_fetch_add_wr(id + 1, from, 16, to, 0, 1));
}

static void expect_pairs(struct sim *s, enum duo_side side, uint64_t count)
{
	struct duo_qp *q = side == DUO_A ? s->a : s->b;
	struct duo_buf *to = side == DUO_A ? s->bbuf : s->abuf;

	for (uint64_t i = 0; i < count; i++) {
		duo_expect(s->duo, &q->sent, 2 * i, WC_SUCCESS);
		duo_expect(s->duo, &q->sent, 2 * i + 1, WC_SUCCESS);
		duo_expect(s->duo, &q->peer->received, 2 * i, WC_SUCCESS);
	}
	DUO_CHECK(s->duo, *(uint64_t *)to->p == count);
}

/* `who` posts first: bit 0 for A, bit 1 for B. */
static void post_by(struct sim *s, int who)
{
	for (int side = 0; side < DUO_SIDES; side++) {
		if (who & 1 << side)
			post_pair(s, (enum duo_side)side, 0);
	}
}

static void expect_by(struct sim *s, int who)
{
	for (int side = 0; side < DUO_SIDES; side++)
		expect_pairs(s, (enum duo_side)side, who >> side & 1);
}

TEST(two_that_can_speak_veroce)
{
	static const enum protocol both[][2] = {
		{PROTOCOL_AUTO, PROTOCOL_AUTO},
		{PROTOCOL_AUTO, PROTOCOL_VEROCE},
		{PROTOCOL_VEROCE, PROTOCOL_AUTO},
	};

	for (size_t i = 0; i < COUNT(both); i++) {
		for (int who = 1; who < 4; who++) {
			struct sim s = start(both[i][0], both[i][1], 1);

			connect(&s);
			post_by(&s, who);
			duo_idle(s.duo);
			expect_by(&s, who);
			assert_int_equal(spoken(s.duo, DUO_ANY, false, 0), 0);
			assert_int_equal(nic_counters(s.a->host->nic)->fallbacks, 0);
			sim_end(&s);
		}
	}
}

/* When either end sent its n-th CAPS request; UINT64_MAX: it did not. */
static uint64_t asked_ns(const struct duo *d, uint32_t n)
{
	for (size_t i = 0; i < d->wire_count; i++) {
		const struct duo_packet *p = &d->wire[i];

		if (p->veroce && p->bth.opcode == OP_CAPS_REQUEST && !n--)
			return p->sent_ns;
	}
	return UINT64_MAX;
}

/* It would else wait for a millisecond, with no more in flight than a base peer takes. */
TEST_ON(a_question_that_was_lost_is_asked_again_once_the_peer_is_heard, start(PROTOCOL_VEROCE, PROTOCOL_VEROCE, 1))
{
	uint64_t mask = 3; /* that of either */

	s.duo->script = lose_by_mask;
	s.duo->script_ctx = &mask;
	connect(&s);
	for (uint64_t i = 0; i < 4; i++) {
		post_pair(&s, DUO_A, 2 * i);
		duo_run_for(s.duo, 50000);
	}
	duo_idle(s.duo);
	expect_pairs(&s, DUO_A, 4);
	DUO_CHECK(s.duo, asked_ns(s.duo, 2) - asked_ns(s.duo, 0) < MS / 4);
	DUO_CHECK(s.duo, asked_ns(s.duo, 3) == UINT64_MAX); /* an answered end responds, to say that it seals */
}

TEST(a_peer_held_to_rocev2_is_spoken_to_in_rocev2)
{
	for (int pinned = 0; pinned < DUO_SIDES; pinned++) {
		for (uint64_t lost = 0; lost < 64 + 2; lost++) {
			for (int who = 1; who < 4; who++) {
				uint64_t mask = lost < 64 ? lost : lost == 64 ? UINT64_MAX : 0xfff;
				enum protocol p[2] = {PROTOCOL_AUTO, PROTOCOL_AUTO};

				p[pinned] = PROTOCOL_ROCEV2;

				struct sim s = start(p[0], p[1], 1);

				s.duo->script = lose_by_mask;
				s.duo->script_ctx = &mask;
				connect(&s);
				post_by(&s, who);
				duo_idle(s.duo);
				expect_by(&s, who);
				assert_int_equal(spoken(s.duo, DUO_ANY, true, 0), 0);
				sim_end(&s);
			}
		}
	}
}

/*
 * A path that lets nothing through to veRoCE's port costs the first message 100 ms, the host's next
 * QP none.
 */
TEST_ON(a_peer_that_is_silent_costs_a_tenth_of_a_second_once, start(PROTOCOL_AUTO, PROTOCOL_AUTO, 1))
{
	uint64_t began;

	lose(s.duo, DUO_ANY, is_veroce);
	connect(&s);
	duo_run_for(s.duo, 40 * MS);
	began = s.duo->now_ns;
	post_by(&s, 1);
	duo_wait(s.duo, &s.a->sent, 2);
	assert_true(s.duo->now_ns - began <= 101 * MS);
	assert_true(s.duo->now_ns - began >= 50 * MS);
	expect_by(&s, 1);
	assert_int_equal(spoken(s.duo, DUO_ANY, true, 0), 0);
	memset(s.bbuf->p, 0, 8);
	connect(&s);
	began = s.duo->now_ns;
	post_by(&s, 1);
	duo_wait(s.duo, &s.a->sent, 2);
	assert_true(s.duo->now_ns - began <= MS);
	expect_by(&s, 1);
}

/* ---- forgeries ------------------------------------------------------------------------------- */

/* The nonce of A's last request. */
static void take_nonce(void *ctx, const struct duo_packet *p, const uint8_t *data)
{
	struct veroce_packet v;

	if (p->from == DUO_A && p->bth.opcode == OP_CAPS_REQUEST && veroce_decode(&v, data, p->len))
		*(uint32_t *)ctx = v.caps.nonce;
}

struct forgery {
	const char *what;
	uint8_t opcode;
	uint8_t profile;
	uint32_t nonce_xor, psn_add, qpn_xor, magic_xor;
	uint8_t version_xor;
	bool stranger;
};

static const struct forgery forgeries[] = {
	{"wrong nonce", OP_CAPS_RESPONSE, 3, .nonce_xor = 1},
	{"wrong nonce, RoCEv2", OP_CAPS_RESPONSE, 0, .nonce_xor = 0x80000000},
	{"stranger", OP_CAPS_RESPONSE, 3, .stranger = true},
	{"stranger, RoCEv2", OP_CAPS_RESPONSE, 0, .stranger = true},
	{"stranger asks", OP_CAPS_REQUEST, 3, .stranger = true},
	{"stranger asks, RoCEv2", OP_CAPS_REQUEST, 0, .stranger = true},
	{"another life", OP_CAPS_RESPONSE, 3, .psn_add = 1},
	{"another life, RoCEv2", OP_CAPS_RESPONSE, 0, .psn_add = 0x800000},
	{"another life asks", OP_CAPS_REQUEST, 3, .psn_add = 77},
	{"another life asks, RoCEv2", OP_CAPS_REQUEST, 0, .psn_add = 0xffffff},
	{"another QP", OP_CAPS_RESPONSE, 3, .qpn_xor = 1},
	{"another QP asks", OP_CAPS_REQUEST, 0, .qpn_xor = 1},
	{"no magic", OP_CAPS_RESPONSE, 3, .magic_xor = 1},
	{"unknown version", OP_CAPS_RESPONSE, 0, .version_xor = 3},
};

static void forge(struct sim *s, const struct forgery *f, uint32_t nonce)
{
	struct veroce_packet p = {
		.bth = {.opcode = f->opcode, .dqpn = s->a->qpn, .psn = psn_add(s->a->opt.psn[DUO_A], f->psn_add)},
		.caps = {.magic = CAPS_MAGIC ^ f->magic_xor,
			 .version = CAPS_VERSION ^ f->version_xor,
			 .profile = f->profile,
			 .mtu_code = 3,
			 .rx_window_q = 4096,
			 .rx_window_r = 4096,
			 .paths = 1,
			 .source_qpn = s->b->qpn ^ f->qpn_xor,
			 .nonce = nonce ^ f->nonce_xor},
	};
	struct nic_gid truth = s->duo->host[DUO_B].gids[DUO_GID_IPV4];

	if (f->stranger)
		s->duo->host[DUO_B].gids[DUO_GID_IPV4].raw[15] ^= 0x40;
	veroce_forge(s->duo, DUO_A, &p, NULL);
	s->duo->host[DUO_B].gids[DUO_GID_IPV4] = truth;
}

/* Whether A, which receives nothing from B, has chosen veRoCE; it would then have sent its message. */
static bool chose_veroce(struct sim *s)
{
	size_t since = s->duo->wire_count;

	post_by(s, 1);
	duo_run_for(s->duo, 10 * MS);
	return spoken(s->duo, DUO_A, true, since);
}

TEST(forged_answers_change_nothing)
{
	for (size_t i = 0; i < COUNT(forgeries); i++) {
		struct sim s = start(PROTOCOL_AUTO, PROTOCOL_AUTO, 1);
		uint32_t nonce = 0;
		size_t since;
		struct duo_rule *wall;

		s.duo->tap = take_nonce;
		s.duo->tap_ctx = &nonce;
		wall = lose(s.duo, DUO_ANY, is_veroce);
		connect(&s);
		duo_run_for(s.duo, 5 * MS);
		forge(&s, &forgeries[i], nonce);
		duo_run_for(s.duo, MS);
		since = s.duo->wire_count;
		DUO_CHECK(s.duo, !chose_veroce(&s));
		/* It did not choose RoCEv2 either. */
		DUO_CHECK(s.duo, !spoken(s.duo, DUO_A, false, since));
		DUO_CHECK(s.duo, !nic_counters(s.a->host->nic)->fallbacks);
		wall->off = true;
		duo_idle(s.duo);
		expect_by(&s, 1);
		DUO_CHECK(s.duo, !spoken(s.duo, DUO_ANY, false, 0));
		sim_end(&s);
	}
}

/* The test above would see an accepted forgery. A request that claims RoCEv2 is not accepted. */
TEST(true_answers_are_believed)
{
	for (int i = 0; i < 4; i++) {
		struct forgery truth = {.opcode = i & 1 ? OP_CAPS_RESPONSE : OP_CAPS_REQUEST, .profile = i & 2 ? 3 : 0};
		struct sim s = start(PROTOCOL_AUTO, PROTOCOL_AUTO, 1);
		uint32_t nonce = 0;
		struct duo_rule *wall;

		s.duo->tap = take_nonce;
		s.duo->tap_ctx = &nonce;
		wall = lose(s.duo, DUO_ANY, is_veroce);
		connect(&s);
		duo_run_for(s.duo, 5 * MS);
		forge(&s, &truth, nonce);
		assert_int_equal(chose_veroce(&s), i >> 1);
		assert_int_equal(nic_counters(s.a->host->nic)->fallbacks, i == 1);
		wall->off = true;
		duo_idle(s.duo);
		expect_by(&s, 1);
		sim_end(&s);
	}
}

/* Once an end has used veRoCE, no forgery makes it leave. */
TEST(forgeries_do_not_reach_a_running_connection)
{
	for (size_t i = 0; i < COUNT(forgeries); i++) {
		struct sim s = start(PROTOCOL_AUTO, PROTOCOL_AUTO, 1);
		uint32_t nonce = 0;

		s.duo->tap = take_nonce;
		s.duo->tap_ctx = &nonce;
		connect(&s);
		post_pair(&s, DUO_A, 0);
		duo_idle(s.duo);
		forge(&s, &forgeries[i], nonce);
		post_pair(&s, DUO_A, 2);
		post_pair(&s, DUO_B, 0);
		duo_idle(s.duo);
		expect_pairs(&s, DUO_A, 2);
		expect_pairs(&s, DUO_B, 1);
		DUO_CHECK(s.duo, !spoken(s.duo, DUO_ANY, false, 0));
		sim_end(&s);
	}
}

/* ---- any loss, any time ---------------------------------------------------------------------- */

struct chance {
	struct prng prng;
	uint32_t ppm;
	uint64_t until_ns;
};

static bool lose_caps_by_chance(void *ctx, const struct duo_packet *p, enum duo_fate *fate, uint64_t *n)
{
	struct chance *c = ctx;

	if (!is_caps(p, NULL) || p->sent_ns >= c->until_ns)
		return false;
	*fate = prng_below(&c->prng, 1000000) < c->ppm ? DUO_DROP : DUO_DELAY;
	*n = prng_below(&c->prng, 3 * MS);
	return true;
}

/*
 * The QPs of two hosts, one after the other, each end ready at its own time and with work or
 * without.
 */
static void negotiate(uint64_t seed)
{
	static const enum protocol choice[] = {PROTOCOL_AUTO, PROTOCOL_AUTO, PROTOCOL_AUTO, PROTOCOL_ROCEV2};
	struct chance c = {.until_ns = UINT64_MAX};
	struct duo_options o = duo_options();

	prng_init(&c.prng, seed);
	c.ppm = (uint32_t)prng_below(&c.prng, 600001);

	struct sim s = start(choice[prng_below(&c.prng, 4)], choice[prng_below(&c.prng, 4)], seed);

	s.duo->script = lose_caps_by_chance;
	s.duo->script_ctx = &c;
	for (int round = 0; round < 3; round++) {
		uint64_t ready_ns[2], rts_ns[2], post_ns[2], posted[2] = {0, 0};
		size_t since;

		s.a = duo_qp_create(&s.duo->host[DUO_A], &o);
		s.b = duo_qp_create(&s.duo->host[DUO_B], &o);
		s.a->peer = s.b;
		s.b->peer = s.a;
		memset(s.abuf->p, 0, 8);
		memset(s.bbuf->p, 0, 8);
		assert_int_equal(duo_qp_to_init(s.a) | duo_qp_to_init(s.b), 0);
		for (int i = 0; i < 2; i++) {
			ready_ns[i] = s.duo->now_ns + prng_below(&c.prng, 150 * MS);
			rts_ns[i] = ready_ns[i] + prng_below(&c.prng, 50 * MS);
			post_ns[i] = rts_ns[i] + prng_below(&c.prng, 200 * MS);
		}
		/* A program posts only what its peer is ready for. */
		for (int i = 0; i < 2; i++)
			post_ns[i] = post_ns[i] > ready_ns[!i] ? post_ns[i] : ready_ns[!i];
		for (int done = 0; done < 6; done++) {
			uint64_t *all[] = {&ready_ns[0], &ready_ns[1], &rts_ns[0],
					   &rts_ns[1],   &post_ns[0],  &post_ns[1]};
			int first = 0;

			for (int k = 1; k < 6; k++) {
				if (*all[k] < *all[first])
					first = k;
			}
			duo_run_until(s.duo, *all[first]);
			*all[first] = UINT64_MAX;
			struct duo_qp *q = first & 1 ? s.b : s.a;

			if (first < 2)
				assert_int_equal(duo_qp_to_rtr(q, q->peer), 0);
			else if (first < 4)
				assert_int_equal(duo_qp_to_rts(q), 0);
			else if (prng_below(&c.prng, 3))
				post_pair(&s, first & 1, 2 * posted[first & 1]++);
		}
		duo_idle(s.duo);
		for (int i = 0; i < 2; i++) {
			for (int k = 0; k < 2; k++)
				post_pair(&s, (enum duo_side)i, 2 * posted[i]++);
		}
		duo_idle(s.duo);
		expect_pairs(&s, DUO_A, posted[0]);
		expect_pairs(&s, DUO_B, posted[1]);
		/* The last packets of both ends use the same protocol. */
		since = s.duo->wire_count;
		post_pair(&s, DUO_A, 2 * posted[0]++);
		duo_idle(s.duo);
		post_pair(&s, DUO_B, 2 * posted[1]++);
		duo_idle(s.duo);
		DUO_CHECK(s.duo, !spoken(s.duo, DUO_ANY, false, since) != !spoken(s.duo, DUO_ANY, true, since));
		s.a->sent.taken = s.a->sent.n;
		s.b->sent.taken = s.b->sent.n;
		s.a->received.taken = s.a->received.n;
		s.b->received.taken = s.b->received.n;
		DUO_CHECK(s.duo, s.a->sent.n == 2 * posted[0] && s.b->sent.n == 2 * posted[1]);
	}
	sim_end(&s);
}

TEST(both_ends_always_decide_alike)
{
	const char *env = getenv("VERBENA_SEED");
	uint64_t first = env ? strtoull(env, NULL, 0) : 1;

	for (uint64_t seed = first; seed < first + (env ? 1 : 120); seed++)
		negotiate(seed);
}
