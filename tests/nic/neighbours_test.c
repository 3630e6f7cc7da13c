/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Packets through memory of the host: without an ICRC, taken for the process that wrote them and for no other, and not
 * sent to a process that takes no more.
 */
#include <errno.h>

#include "duo/sim.h"

enum { LEN = 64, READ_LEN = MR_READ_COPIED_MAX + 4, LONG = MR_ALONE_COPIED_MAX + 4 };

/* A WRITE of A to B as it comes from the process with a slot, its ICRC wrong. */
static int inject(struct sim *s, unsigned neighbour)
{
	struct flow flow = duo_flow(s->duo, DUO_B, s->b->opt.gid);
	struct bth bth = {.opcode = OP_RC_WRITE_ONLY, .pkey = 0xffff, .dqpn = s->b->qpn, .psn = s->a->opt.psn[DUO_A]};
	uint8_t ext[RETH_LEN], payload[LEN], buf[DUO_PACKET_MAX];
	uint32_t len;

	memset(payload, 0x5a, LEN);
	reth_encode(ext, &(struct reth){.va = s->bbuf->iova, .rkey = s->bbuf->mr->key, .len = LEN});
	len = duo_build(s->duo, DUO_B, s->b->opt.gid, &bth, ext, sizeof(ext), payload, LEN, buf);
	buf[len - 1] ^= 0xff;
	flow.neighbour = (uint8_t)neighbour;
	return duo_inject(s->duo, DUO_B, &flow, buf, len);
}

TEST(only_the_peers_process_needs_no_icrc)
{
	struct sim s = sim_default();
	unsigned peer = 1 + (s.a->qpn >> NIC_QPN_BITS);
	uint8_t before = s.bbuf->p[0];

	assert_int_equal(inject(&s, 0), -EBADMSG);
	assert_int_equal(inject(&s, peer + 1), -EBADMSG);
	assert_int_equal(inject(&s, 127), -EBADMSG);
	assert_int_equal(s.bbuf->p[0], before);
	assert_int_equal(inject(&s, peer), 0);
	assert_int_equal(s.bbuf->p[0], 0x5a);
	duo_destroy(s.duo);
}

static void tweak(struct nic_config *c, enum duo_side side)
{
	c->qpn_slot = side == DUO_A ? 5 : 70;
	duo_same_host(c);
}

static struct sim start_within_host(enum qp_type type)
{
	struct duo_options o = duo_options();

	o.type = type;
	o.mtu = 4096;

	struct sim s = sim_on(duo_create(1, tweak), &o);

	duo_idle(s.duo);
	return s;
}

/* Whether A's ring to that slot is full. */
static void set_full(struct sim *s, uint32_t slot, bool full)
{
	nic_set_peer(s->a->host->nic, slot, &(struct nic_peer){.full = full});
}

static uint64_t sent(const struct sim *s)
{
	return nic_counters(s->a->host->nic)->tx_packets;
}

static void post(struct sim *s, uint64_t id)
{
	duo_must_post(s->a, duo_write_wr(id, s->abuf, 0, LEN, s->bbuf, 0));
}

TEST(what_goes_to_a_full_process_waits)
{
	static const enum qp_type types[] = {QPT_RC, QPT_UC};

	for (size_t i = 0; i < COUNT(types); i++) {
		struct sim s = start_within_host(types[i]);
		uint64_t before = sent(&s);

		for (uint32_t slot = 0; slot < NIC_SLOTS; slot++)
			set_full(&s, slot, slot != 70);
		post(&s, 1);
		duo_run_for(s.duo, 1000000);
		duo_expect(s.duo, &s.a->sent, 1, WC_SUCCESS);
		assert_int_equal(sent(&s), before + 1);
		set_full(&s, 70, true);
		post(&s, 2);
		post(&s, 3);
		duo_run_for(s.duo, 1000000);
		assert_int_equal(sent(&s), before + 1);
		/* It does not ask for turns meanwhile. */
		assert_int_not_equal(nic_deadline(s.a->host->nic), 0);
		/* Another one is not full any more. */
		set_full(&s, 1, false);
		duo_run_for(s.duo, 1000000);
		assert_int_equal(sent(&s), before + 1);
		set_full(&s, 70, false);
		duo_run_for(s.duo, 1000000);
		duo_expect(s.duo, &s.a->sent, 2, WC_SUCCESS);
		duo_expect(s.duo, &s.a->sent, 3, WC_SUCCESS);
		assert_int_equal(sent(&s), before + 3);
		sim_end(&s);
	}
}

/* A program that gives up gets its requests back at once. */
TEST_ON(what_waits_for_room_is_flushed, start_within_host(QPT_RC))
{
	struct qp_attr a = {.state = QPS_ERR};

	set_full(&s, 70, true);
	post(&s, 1);
	duo_run_for(s.duo, 1000);
	assert_int_equal(nic_qp_modify(s.a->host->nic, s.a->qp, &a, QPA_STATE, s.duo->now_ns), 0);
	duo_run_for(s.duo, 1000);
	duo_expect(s.duo, &s.a->sent, 1, WC_WR_FLUSH_ERR);
}

/* A's acknowledgement is the only one that there will be: its program, or its queue pair, ends. */
TEST(the_last_acknowledgement_goes_to_a_full_process_too)
{
	for (int ends = 0; ends < 2; ends++) {
		struct sim s = start_within_host(QPT_RC);
		struct duo_wr w = duo_write_wr(1, s.bbuf, 0, LEN, s.abuf, 0);
		uint64_t before = sent(&s);

		set_full(&s, 70, true);
		assert_true(duo_post(s.b, &w));
		duo_run_for(s.duo, 100000);
		assert_int_equal(sent(&s), before);
		if (ends)
			nic_take_last_turns(s.a->host->nic);
		else
			nic_qp_mute(s.a->host->nic, s.a->qp, true);
		duo_run_for(s.duo, 100000);
		assert_int_equal(sent(&s), before + 1);
		duo_expect(s.duo, &s.b->sent, 1, WC_SUCCESS);
		/* One turn, and no more. */
		w.wr_id = 2;
		assert_true(duo_post(s.b, &w));
		duo_run_for(s.duo, 100000);
		assert_int_equal(sent(&s), before + 1);
		set_full(&s, 70, false);
		duo_run_for(s.duo, 100000);
		duo_expect(s.duo, &s.b->sent, 2, WC_SUCCESS);
		sim_end(&s);
	}
}

/* A READ of A arrives at B, and B's next packet is its response. */
static struct pkt response(struct sim *s, uint32_t read, uint32_t read_len)
{
	struct flow flow = duo_flow(s->duo, DUO_B, s->b->opt.gid);
	struct bth bth = {
		.opcode = OP_RC_READ_REQUEST, .pkey = 0xffff, .dqpn = s->b->qpn, .psn = s->a->opt.psn[DUO_A] + read};
	uint8_t ext[RETH_LEN], buf[DUO_PACKET_MAX];
	struct pkt burst[2 * PKT_TRAIN_MAX];
	uint32_t len;

	reth_encode(ext, &(struct reth){.va = s->bbuf->iova, .rkey = s->bbuf->mr->key, .len = read_len});
	len = duo_build(s->duo, DUO_B, s->b->opt.gid, &bth, ext, sizeof(ext), NULL, 0, buf);
	assert_int_equal(duo_inject(s->duo, DUO_B, &flow, buf, len), 0);
	assert_int_equal(nic_output(s->b->host->nic, burst, COUNT(burst), s->duo->now_ns), 1);
	assert_int_equal(burst[0].data[0], OP_RC_READ_RESPONSE_ONLY);
	return burst[0];
}

/* A process that reads, without a back end between, and the two words that it shares with the lender. */
static _Atomic uint64_t told, given_back;
static struct loan loan = {.told = &told, .given_back = &given_back};

static void set_reader(struct nic *nic, uint32_t slot)
{
	told = given_back = loan.taken_back = 0;
	nic_set_peer(nic, slot, &(struct nic_peer){.near = true, .reads = true, .loan = &loan});
}

static uint64_t lot_of(const struct pkt *p)
{
	struct pkt_far far;

	memcpy(&far, p->data + p->far_at, sizeof(far));
	return far.lot;
}

/* What a response leaves out may be read until its region is closed, whatever becomes of others. */
TEST(a_response_that_is_lent_is_taken_back_with_its_region)
{
	struct sim s = start_within_host(QPT_RC);
	struct nic *nic = s.b->host->nic;
	struct duo_buf *other = duo_buf(s.b->host, 64, ALL_ACCESS);
	struct pkt_far far;
	struct pkt p;

	nic_set_peer(nic, 5, &(struct nic_peer){.near = true});
	assert_int_equal(response(&s, 0, READ_LEN).far_at, 0);
	assert_false(nic_lends(nic));
	set_reader(nic, 5);
	p = response(&s, 1, READ_LEN);
	assert_int_equal(p.far_bytes, READ_LEN);
	memcpy(&far, p.data + p.far_at, sizeof(far));
	assert_ptr_equal(far.from, s.bbuf->p);
	assert_true(nic_lends(nic));
	assert_int_equal(nic_mr_rereg(nic, other->mr, NULL, NULL, 0, MR_LOCAL_WRITE), 0);
	assert_true(nic_lends(nic));
	given_back = far.lot;
	assert_false(nic_lends(nic));
	p = response(&s, 2, READ_LEN);
	assert_int_equal(told, 0);
	assert_int_equal(nic_mr_rereg(nic, s.bbuf->mr, NULL, NULL, 0, MR_LOCAL_WRITE), 0);
	assert_int_equal(told, lot_of(&p));
	duo_destroy(s.duo);
}

/* A program that is told that its request failed may use the memory again. */
TEST(a_request_that_is_lent_is_taken_back_when_it_fails)
{
	static const enum qp_state states[] = {QPS_ERR, QPS_RESET};

	for (size_t i = 0; i < COUNT(states); i++) {
		struct sim s = start_within_host(QPT_RC);
		struct nic *nic = s.a->host->nic;
		struct qp_attr a = {.state = states[i]};
		struct pkt burst[2 * PKT_TRAIN_MAX];

		set_reader(nic, 70);
		duo_must_post(s.a, duo_write_wr(1, s.abuf, 0, LONG, s.bbuf, 0));
		assert_true(nic_output(nic, burst, COUNT(burst), s.duo->now_ns) > 0);
		assert_int_equal(burst[0].far_bytes, 4096);
		assert_false(nic_lends(nic));
		assert_int_equal(nic_qp_modify(nic, s.a->qp, &a, QPA_STATE, s.duo->now_ns), 0);
		assert_int_equal(told, lot_of(&burst[0]));
		duo_destroy(s.duo);
	}
}

/* Posts a WRITE of so many bytes; how many bytes of its first packet are left out. */
static uint32_t left_out(struct sim *s, uint32_t bytes)
{
	struct pkt burst[2 * PKT_TRAIN_MAX];

	duo_must_post(s->a, duo_write_wr(1, s->abuf, 0, bytes, s->bbuf, 0));
	assert_true(nic_output(s->a->host->nic, burst, COUNT(burst), s->duo->now_ns) > 0);
	return burst[0].far_bytes;
}

/* To read it would take longer than to copy it twice; of a stream of messages many are read together. */
TEST(a_short_message_is_copied_unless_another_is_under_way)
{
	for (uint32_t first = 0; first < 2; first++) {
		struct sim s = start_within_host(QPT_RC);

		set_reader(s.a->host->nic, 70);
		assert_int_equal(left_out(&s, MR_ALONE_COPIED_MAX + first), first ? 4096 : 0);
		assert_int_equal(left_out(&s, PKT_FAR_BYTES_MIN), PKT_FAR_BYTES_MIN);
		duo_destroy(s.duo);
	}
}

/* Also after a longer one, which was left out. */
TEST(a_short_read_is_copied)
{
	struct sim s = start_within_host(QPT_RC);

	set_reader(s.b->host->nic, 5);
	assert_int_equal(response(&s, 0, MR_READ_COPIED_MAX).far_bytes, 0);
	assert_int_equal(response(&s, 1, READ_LEN).far_bytes, READ_LEN);
	assert_int_equal(response(&s, 2, MR_READ_COPIED_MAX).far_bytes, 0);
	duo_destroy(s.duo);
}
