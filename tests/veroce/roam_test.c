/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An end goes on under another address, its peer follows, and nobody else can move it (veRoCE 13.5). B is the one that
 * moves, but where both do.
 */
#include "base/siphash.h"
#include "nic/state.h"
#include "transport/veroce/roam.h"
#include "veroce/forgery.h"

enum { LEN = 20 * MTU, HOME = 2, AWAY = 9, STRANGER = 66 };

static const uint64_t MS = 1000000;

#define ROAMING (v.roam[DUO_A] = ROAM_UNSAFE, v.roam[DUO_B] = ROAM_UNSAFE)

static void write_some(struct sim *s, uint64_t id)
{
	duo_must_post(s->a, duo_write_wr(id, s->abuf, 0, LEN, s->bbuf, 0));
}

static void expect_written(struct sim *s, uint64_t id)
{
	duo_finish(s->a, id, WC_SUCCESS);
	assert_memory_equal(s->abuf->p, s->bbuf->p, LEN);
}

static bool is_at(const struct duo_qp *q, uint8_t last)
{
	return q->qp->flow.dst[15] == last;
}

/* ROAM packets as they were sent. */
struct seen {
	const struct duo *duo;
	uint8_t bytes[32][64];
	struct flow flow[32];
	uint32_t len[32];
	size_t count;
};

static void record(void *ctx, const struct duo_packet *p, const uint8_t *data)
{
	struct seen *seen = ctx;

	if (p->bth.opcode != OP_ROAM || seen->count == COUNT(seen->len))
		return;
	memcpy(seen->bytes[seen->count], data, p->len);
	seen->len[seen->count] = p->len;
	seen->flow[seen->count] = duo_flow(seen->duo, !p->from, DUO_GID_IPV4);
	seen->flow[seen->count++].dport = VEROCE_UDP_PORT;
}

static void watch(struct sim *s, struct seen *seen)
{
	seen->duo = s->duo;
	seen->count = 0;
	s->duo->tap = record;
	s->duo->tap_ctx = seen;
}

static size_t count_steps(const struct seen *seen, uint8_t step)
{
	size_t n = 0;

	for (size_t i = 0; i < seen->count; i++)
		n += seen->bytes[i][BTH_LEN] == step;
	return n;
}

/* ---- a move ------------------------------------------------------------------------------------------ */

VEROCE_TEST(peer_follows_in_two_round_trips, ROAMING)
{
	uint64_t began_ns = s.duo->now_ns;

	duo_move(s.b->host, DUO_GID_IPV4, AWAY);
	duo_run_for(s.duo, 4 * DUO_LATENCY_NS + 1);
	assert_true(is_at(s.a, AWAY));
	assert_false(s.b->qp->veroce->roams);
	assert_int_equal(duo_count(s.duo, DUO_B, OP_ROAM), 2);
	assert_int_equal(duo_count(s.duo, DUO_A, OP_ROAM), 2);
	assert_int_equal(count_a(&s)->peers_moved, 1);
	write_some(&s, 1);
	expect_written(&s, 1);
	duo_do(s.b, duo_write_wr(2, s.bbuf, 0, LEN, s.abuf, 0));
	assert_true(s.duo->now_ns - began_ns < 100 * MS);
}

/* In either direction, with what is outstanding then sent again, and back again. */
static void move_under_load(struct sim *s, uint8_t gid)
{
	static const uint8_t addresses[] = {AWAY, HOME, 77, AWAY, HOME};
	uint64_t sum = 0, *counter = (uint64_t *)(s->abuf->p + 60000), *found = (uint64_t *)(s->bbuf->p + 61000);
	size_t from_a = 0, from_b = 0;

	*counter = 0;
	for (size_t i = 0; i < COUNT(addresses); i++) {
		for (int k = 0; k < 3; k++) {
			assert_true(duo_recv(s->a, from_b, s->abuf, 40000, 3000));
			duo_must_post(s->a, duo_write_wr(from_a++, s->abuf, 0, LEN, s->bbuf, 0));
			duo_must_post(s->a, duo_read_wr(from_a++, s->abuf, 20480, 12000, s->bbuf, 20480));
			duo_must_post(s->b, duo_send_wr(from_b++, s->bbuf, 32768, 3000));
			duo_must_post(s->b, duo_fetch_add_wr(from_b++, s->bbuf, 61000, s->abuf, 60000, 3));
			sum += 3;
			duo_run_for(s->duo, (uint64_t)k * 700 * i);
		}
		duo_move(s->b->host, gid, addresses[i]);
		duo_run_for(s->duo, i == 2 ? 0 : 3 * MS);
	}
	duo_idle(s->duo);
	for (size_t i = 0; i < from_a; i++)
		duo_expect(s->duo, &s->a->sent, i, WC_SUCCESS);
	for (size_t i = 0; i < from_b; i++)
		duo_expect(s->duo, &s->b->sent, i, WC_SUCCESS);
	for (size_t i = 0; i < from_b; i += 2)
		duo_expect(s->duo, &s->a->received, i, WC_SUCCESS);
	assert_int_equal(*counter, sum);
	assert_int_equal(*found, sum - 3);
	assert_memory_equal(s->abuf->p, s->bbuf->p, LEN);
	assert_memory_equal(s->abuf->p + 20480, s->bbuf->p + 20480, 12000);
	assert_memory_equal(s->abuf->p + 40000, s->bbuf->p + 32768, 3000);
	assert_true(is_at(s->a, HOME));
}

VEROCE_VARIANTS_TEST(moves_under_load, ROAMING, v.paths = 4, o.max_rd_atomic = o.max_dest_rd_atomic = 4)
{
	move_under_load(&s, DUO_GID_IPV4);
}

TEST(moves_under_loss)
{
	for (uint64_t seed = 1; seed <= 12; seed++) {
		struct sim s = VEROCE_SIM(
			ROAMING, v.paths = 1 + seed % 3, v.cc = seed & 1 ? VEROCE_CC_SWIFT : VEROCE_CC_NONE,
			v.loss = seed % 3 ? LOSS_FAST : LOSS_IRN, o.gid = seed & 2 ? DUO_GID_IPV6 : DUO_GID_IPV4,
			v.seal = seed & 4 ? SEAL_OFF : SEAL_ON);

		prng_init(&s.duo->prng, seed);
		for (int side = 0; side < DUO_SIDES; side++)
			s.duo->faults[side] = (struct duo_faults){
				.drop_ppm = 50000, .duplicate_ppm = 20000, .delay_ppm = 50000, .delay_ns_max = 20000};
		move_under_load(&s, seed & 2 ? DUO_GID_IPV6 : DUO_GID_IPV4);
		sim_end(&s);
	}
}

/* Each of both nics is saved, destroyed and loaded on the way. */
VEROCE_TEST(moves_while_nics_are_reloaded, ROAMING, v.paths = 2)
{
	s.duo->reload_of = 7;
	s.duo->faults[DUO_A].drop_ppm = s.duo->faults[DUO_B].drop_ppm = 20000;
	move_under_load(&s, DUO_GID_IPV4);
	assert_true(s.duo->reloads > 50);
}

/* Whichever packet of the four is lost. */
TEST(each_step_is_repeated)
{
	for (int lost = 0; lost < 4; lost++) {
		struct sim s = VEROCE_SIM(ROAMING);

		duo_drop(s.duo, lost & 1 ? DUO_A : DUO_B, OP_ROAM, lost / 2);
		write_some(&s, 1);
		duo_move(s.b->host, DUO_GID_IPV4, AWAY);
		expect_written(&s, 1);
		assert_true(is_at(s.a, AWAY));
		assert_int_equal(count_a(&s)->peers_moved, 1);
		sim_end(&s);
	}
}

VEROCE_TEST(nothing_else_is_sent_before_the_peer_has_followed, ROAMING)
{
	struct duo_rule *lost = duo_drop(s.duo, DUO_A, OP_ROAM, DUO_ANY);
	size_t from = s.duo->wire_count;
	struct seen seen;

	watch(&s, &seen);
	duo_move(s.b->host, DUO_GID_IPV4, AWAY);
	duo_must_post(s.b, duo_write_wr(1, s.bbuf, 0, LEN, s.abuf, 0));
	duo_run_for(s.duo, 500 * MS);
	for (; from < s.duo->wire_count; from++)
		assert_int_equal(s.duo->wire[from].bth.opcode, OP_ROAM);
	assert_true(count_steps(&seen, ROAM_MOVED) < 20);
	assert_int_equal(count_b(&s)->timeouts, 0);
	lost->off = true;
	duo_finish(s.b, 1, WC_SUCCESS);
}

/* A peer's retries may be over in a few milliseconds, and a network that is down for long needs no packet each millisecond. */
VEROCE_TEST(questions_follow_each_other_quickly_and_then_rarely, ROAMING)
{
	static const struct {
		uint64_t until_us;
		size_t questions;
	} by[] = {{500, 1}, {5500, 6}, {6500, 6}, {7500, 7}, {10500, 7}, {11500, 8}, {18500, 8}, {19500, 9}};
	uint64_t began_ns = s.duo->now_ns;
	struct seen seen;

	watch(&s, &seen);
	duo_drop(s.duo, DUO_A, OP_ROAM, DUO_ANY);
	duo_move(s.b->host, DUO_GID_IPV4, AWAY);
	for (size_t i = 0; i < COUNT(by); i++) {
		duo_run_for(s.duo, began_ns + by[i].until_us * 1000 - s.duo->now_ns);
		assert_int_equal(count_steps(&seen, ROAM_MOVED), by[i].questions);
	}
	s.duo->tap = NULL;
}

/* It was asked to wait first, as by a program that is frozen. */
VEROCE_TEST(a_peer_that_waits_goes_on_when_it_has_followed, ROAMING, o.timeout = 14)
{
	nic_hold(s.b->host->nic, 10000, 0);
	duo_run_for(s.duo, 4 * DUO_LATENCY_NS);
	assert_true(s.a->qp->veroce->held);
	write_some(&s, 1);
	duo_run_for(s.duo, 2000 * MS);
	duo_move(s.b->host, DUO_GID_IPV4, AWAY);
	nic_resume(s.b->host->nic);
	expect_written(&s, 1);
	assert_false(s.a->qp->veroce->held);
	assert_int_equal(count_a(&s)->timeouts, 0);
}

VEROCE_TEST(a_peer_that_is_gone_fails_the_queue_pair_by_the_usual_rules, ROAMING, o.timeout = 14)
{
	uint64_t began_ns = s.duo->now_ns;

	duo_drop(s.duo, DUO_A, DUO_ANY, DUO_ANY);
	duo_move(s.b->host, DUO_GID_IPV4, AWAY);
	duo_must_post(s.b, duo_write_wr(1, s.bbuf, 0, LEN, s.abuf, 0));
	duo_finish(s.b, 1, WC_RETRY_EXC_ERR);
	assert_true(s.duo->now_ns - began_ns > 10000 * MS);
	assert_true(s.duo->now_ns - began_ns < 13000 * MS);
	assert_int_equal(duo_qp_to_state(s.a, QPS_ERR), 0);
}

VEROCE_TEST(programs_see_the_address_that_they_connected_to, ROAMING)
{
	struct qp_attr before, now;
	struct qp_init init;

	nic_qp_query(s.a->host->nic, s.a->qp, &before, &init);
	duo_move(s.b->host, DUO_GID_IPV4, AWAY);
	duo_idle(s.duo);
	assert_true(is_at(s.a, AWAY));
	nic_qp_query(s.a->host->nic, s.a->qp, &now, &init);
	assert_memory_equal(now.av.dgid, before.av.dgid, 16);
	/* One that writes back what it has read has not moved the peer. */
	assert_int_equal(duo_qp_to_state(s.a, QPS_SQD), 0);
	duo_idle(s.duo);
	now.state = QPS_SQD;
	assert_int_equal(nic_qp_modify(s.a->host->nic, s.a->qp, &now, QPA_STATE | QPA_AV, duo_now(s.a->host)), 0);
	assert_int_equal(duo_qp_to_state(s.a, QPS_RTS), 0);
	write_some(&s, 1);
	expect_written(&s, 1);
	assert_true(is_at(s.a, AWAY));
	s.a->host->event_count = 0;
}

/* ---- who agrees ---------------------------------------------------------------------------------------- */

TEST(rocev2_is_not_left)
{
	struct sim s = VEROCE_SIM(ROAMING, v.protocol[DUO_A] = PROTOCOL_ROCEV2, v.protocol[DUO_B] = PROTOCOL_AUTO);
	uint32_t qpn = 0;

	assert_false(nic_may_roam(s.b->host->nic, s.b->host->gids[DUO_GID_IPV4].raw, NULL, 0, &qpn));
	assert_int_equal(qpn, s.b->qpn);
	sim_end(&s);
}

/* ---- strangers ------------------------------------------------------------------------------------------- */

/* As the page has it. */
static uint64_t mac(uint32_t to_nonce, uint32_t from_nonce, const struct veroce_packet *p, const struct flow *f)
{
	uint8_t key[16] = {0, 0, 0, 0, 0, 0, 0, 0, 'V', 'R', 'X', '1', 'R', 'O', 'A', 'M'};
	uint64_t words[7] = {(uint64_t)p->roam.step << 48 | (uint64_t)p->roam.source_qpn << 24 | p->bth.dqpn,
			     p->roam.number, p->roam.challenge};

	put_be32(key, to_nonce);
	put_be32(key + 4, from_nonce);
	for (int i = 0; i < 2; i++) {
		words[3 + i] = get_be64(f->src + 8 * i);
		words[5 + i] = get_be64(f->dst + 8 * i);
	}
	return siphash_words(key, words, 7);
}

/* To A, in B's name, from 10.0.0.`from`. */
static void hand_over(struct sim *s, struct veroce_packet *p, uint8_t from)
{
	uint8_t buf[DUO_PACKET_MAX];
	struct flow flow = duo_flow(s->duo, DUO_A, DUO_GID_IPV4);
	struct pkt pkt = {.data = buf, .flow = &flow, .train = 1};

	flow.dport = VEROCE_UDP_PORT;
	flow.src[15] = from;
	p->bth.pkey = 0xffff;
	pkt.len = veroce_encode_headers(buf, p) + ICRC_LEN;
	duo_seal(s->duo, DUO_A, &pkt);
	duo_inject(s->duo, DUO_A, &flow, buf, pkt.len);
	duo_run_for(s->duo, 4 * DUO_LATENCY_NS);
}

/* With the proof that only B can make, for a packet from there. */
static struct veroce_packet proved(const struct sim *s, uint8_t step, uint32_t number, uint64_t challenge, uint8_t from)
{
	struct flow flow = duo_flow(s->duo, DUO_A, DUO_GID_IPV4);
	struct veroce_packet p = {
		.bth = {.opcode = OP_ROAM, .dqpn = s->a->qpn},
		.roam = {.step = step, .source_qpn = s->b->qpn, .number = number, .challenge = challenge}};

	flow.src[15] = from;
	p.roam.mac = mac(s->a->qp->veroce->nonce, s->a->qp->veroce->peer_nonce, &p, &flow);
	return p;
}

/* Both ends have to be set so, and to answer CAPS: one that knows nothing of it ignores the flag. */
TEST(a_peer_that_did_not_agree_is_not_left)
{
	for (int kind = 0; kind < 5; kind++) {
		struct sim s = VEROCE_SIM(v.roam[DUO_A] = kind != 0, v.roam[DUO_B] = kind != 1,
					  v.base[DUO_A] = kind == 2, v.base[DUO_B] = kind == 3);
		uint32_t qpn = 0;
		struct veroce_packet p;

		assert_int_equal(nic_may_roam(s.b->host->nic, s.b->host->gids[DUO_GID_IPV4].raw, NULL, 0, &qpn),
				 kind == 4);
		assert_int_equal(qpn, kind == 4 ? 0 : s.b->qpn);
		/* Nobody uses it. */
		assert_true(nic_may_roam(s.b->host->nic, s.b->host->gids[DUO_GID_IPV6].raw, NULL, 0, &qpn));
		assert_int_equal(s.b->qp->veroce->caps & CAPS_ROAM, kind == 4 ? CAPS_ROAM : 0);
		p = proved(&s, ROAM_MOVED, 1, 0, STRANGER);
		hand_over(&s, &p, STRANGER);
		assert_int_equal(duo_count(s.duo, DUO_A, OP_ROAM), kind == 4);
		write_some(&s, 1);
		expect_written(&s, 1);
		sim_end(&s);
	}
}

/* Two ends of one host know each other by their slots, and take no ROAM. */
VEROCE_TEST(nobody_goes_where_its_peer_is, ROAMING)
{
	struct nic_gid there[2] = {s.b->host->gids[DUO_GID_IPV4], s.a->host->gids[DUO_GID_IPV4]};
	uint32_t qpn = 0;

	assert_true(nic_may_roam(s.b->host->nic, s.b->host->gids[DUO_GID_IPV4].raw, there, 1, &qpn));
	assert_false(nic_may_roam(s.b->host->nic, s.b->host->gids[DUO_GID_IPV4].raw, there, 2, &qpn));
	assert_int_equal(qpn, s.b->qpn);
}

/* All is right but one thing. The last one is asked to prove that it is there, and no more. */
TEST(a_forged_question_is_dropped_unanswered)
{
	enum { MAC, SOURCE_QPN, NUMBER, ELSEWHERE, CHALLENGE, STEP, BACKWARDS, WRONG_KEY, RIGHT, ROWS };

	for (int wrong = 0; wrong < ROWS; wrong++) {
		struct sim s = VEROCE_SIM(ROAMING);
		struct veroce_packet p = proved(&s, ROAM_MOVED, 1, 0, STRANGER);
		uint64_t dropped = count_a(&s)->rx_dropped;

		p.roam.mac ^= wrong == MAC ? 1ull << 63 : 0;
		p.roam.source_qpn ^= wrong == SOURCE_QPN;
		p.roam.number -= wrong == NUMBER;
		p.roam.challenge += wrong == CHALLENGE;
		p.roam.step += wrong == STEP;
		if (wrong == SOURCE_QPN || wrong == NUMBER) { /* which B has proved */
			struct flow flow = duo_flow(s.duo, DUO_A, DUO_GID_IPV4);

			flow.src[15] = STRANGER;
			p.roam.mac = mac(s.a->qp->veroce->nonce, s.a->qp->veroce->peer_nonce, &p, &flow);
		}
		if (wrong == BACKWARDS) /* what A itself would have sent */
			p.roam.mac = mac(s.a->qp->veroce->peer_nonce, s.a->qp->veroce->nonce, &p,
					 &(struct flow){.src = {[15] = STRANGER}});
		if (wrong == WRONG_KEY) {
			struct flow flow = duo_flow(s.duo, DUO_A, DUO_GID_IPV4);

			flow.src[15] = STRANGER;
			p.roam.mac = mac(s.a->qp->veroce->nonce ^ 1, s.a->qp->veroce->peer_nonce, &p, &flow);
		}
		hand_over(&s, &p, wrong == ELSEWHERE ? STRANGER + 1 : STRANGER);
		assert_int_equal(duo_count(s.duo, DUO_A, OP_ROAM), wrong == RIGHT);
		assert_int_equal(count_a(&s)->rx_dropped, dropped + (wrong != RIGHT));
		assert_true(is_at(s.a, HOME));
		write_some(&s, 1);
		expect_written(&s, 1);
		sim_end(&s);
	}
}

/* Even B's own proof moves nothing without what A has sent to that address, for that number. */
VEROCE_TEST(an_echo_must_have_the_challenge, ROAMING)
{
	struct roameth h;
	struct seen seen;
	struct veroce_packet p = proved(&s, ROAM_MOVED, 1, 0, STRANGER);

	watch(&s, &seen);
	hand_over(&s, &p, STRANGER);
	roameth_decode(&h, seen.bytes[0] + BTH_LEN);
	assert_int_equal(h.step, ROAM_CHALLENGE);
	for (int wrong = 0; wrong < 4; wrong++) {
		p = proved(&s, ROAM_ECHO, 1 + (wrong == 0), h.challenge ^ (wrong == 1 ? 2 : 0),
			   STRANGER + (wrong == 2));
		hand_over(&s, &p, STRANGER + (wrong == 2));
		assert_int_equal(is_at(s.a, STRANGER), wrong == 3);
	}
	assert_int_equal(count_a(&s)->peers_moved, 1);
	duo_move(s.b->host, DUO_GID_IPV4, AWAY); /* the peer itself has a higher number */
	s.b->host->nic->tp.roam_number = 1;
	duo_move(s.b->host, DUO_GID_IPV4, HOME);
	duo_idle(s.duo);
	assert_true(is_at(s.a, HOME));
}

/* All packets of a move, sent again later to either end, in any order and twice, from where they came or from elsewhere. */
VEROCE_TEST(replayed_packets_change_nothing, ROAMING)
{
	struct seen seen;
	uint64_t moved;

	watch(&s, &seen);
	duo_move(s.b->host, DUO_GID_IPV4, AWAY);
	duo_idle(s.duo);
	assert_int_equal(seen.count, 4);
	duo_move(s.b->host, DUO_GID_IPV4, HOME);
	duo_idle(s.duo);
	assert_int_equal(seen.count, 8);
	s.duo->tap = NULL;
	assert_true(is_at(s.a, HOME));
	moved = count_a(&s)->peers_moved;
	for (int round = 0; round < 4; round++) {
		for (size_t i = 0; i < 8; i++) {
			size_t k = round & 1 ? 7 - i : i;
			struct flow flow = seen.flow[k];
			enum duo_side to = seen.flow[k].dst[15] == 1 ? DUO_A : DUO_B;

			if (round & 2)
				flow.src[15] = STRANGER;
			duo_inject(s.duo, to, &flow, seen.bytes[k], seen.len[k]);
			duo_run_for(s.duo, 100);
			assert_true(is_at(s.a, HOME));
			assert_true(is_at(s.b, 1));
			assert_false(s.b->qp->veroce->roams);
		}
	}
	assert_int_equal(count_a(&s)->peers_moved, moved);
	write_some(&s, 1);
	expect_written(&s, 1);
}

/* A question that never arrived is sent by somebody after the next move: its number is older. */
VEROCE_TEST(an_older_move_is_not_followed, ROAMING)
{
	struct seen seen;
	struct duo_rule *lost = duo_drop(s.duo, DUO_B, DUO_ANY, DUO_ANY);

	watch(&s, &seen);
	duo_move(s.b->host, DUO_GID_IPV4, STRANGER);
	duo_run_for(s.duo, DUO_LATENCY_NS);
	lost->off = true;
	duo_move(s.b->host, DUO_GID_IPV4, AWAY);
	duo_idle(s.duo);
	assert_true(is_at(s.a, AWAY));
	duo_inject(s.duo, DUO_A, &seen.flow[0], seen.bytes[0], seen.len[0]);
	duo_run_for(s.duo, 2 * DUO_LATENCY_NS);
	assert_true(is_at(s.a, AWAY));
	assert_int_equal(count_steps(&seen, ROAM_CHALLENGE), 1);
}

/* Nor is an end that has moved made to believe that its peer has followed. */
VEROCE_TEST(a_forged_answer_is_dropped, ROAMING)
{
	struct duo_rule *lost = duo_drop(s.duo, DUO_A, OP_ROAM, DUO_ANY);
	struct flow flow;

	duo_move(s.b->host, DUO_GID_IPV4, AWAY);
	duo_run_for(s.duo, DUO_LATENCY_NS);
	flow = duo_flow(s.duo, DUO_B, DUO_GID_IPV4);
	for (int wrong = 0; wrong < 4; wrong++) {
		const struct veroce *vr = s.b->qp->veroce;
		struct veroce_packet p = {.bth = {.opcode = OP_ROAM, .dqpn = s.b->qpn},
					  .roam = {.step = wrong == 3 ? ROAM_CHALLENGE : ROAM_DONE,
						   .source_qpn = s.a->qpn,
						   .number = wrong == 1 ? 2 : 1,
						   .challenge = wrong == 2 ? 5 : 0}};

		p.roam.mac = mac(vr->nonce, vr->peer_nonce, &p, &flow) ^ (wrong == 0 || wrong == 3);
		veroce_forge(s.duo, DUO_B, &p, NULL);
		assert_true(vr->roams);
		assert_int_equal(vr->roam->challenge, 0);
	}
	lost->off = true;
	duo_idle(s.duo);
	assert_true(is_at(s.a, AWAY));
}
