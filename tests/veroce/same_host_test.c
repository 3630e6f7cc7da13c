/* SPDX-License-Identifier: BSD-2-Clause */
/* veRoCE between processes of one host: no network lies between, and acknowledgements are few. */
#include "support/test.h"
#include "veroce/veroce.h"
#include "transport/veroce/veroce.h"

enum { MIB = 1 << 20 };

static struct sim start(bool same_host, uint32_t window_bytes)
{
	return VEROCE_SIM(v.same_host = same_host, v.window_bytes = window_bytes);
}

static void send_short(struct sim *s, struct duo_qp *from, uint64_t i)
{
	struct duo_buf *src = from == s->a ? s->abuf : s->bbuf, *dst = from == s->a ? s->bbuf : s->abuf;

	assert_true(duo_recv(from->peer, i, dst, 0, 8));
	duo_must_post(from, duo_send_wr(i, src, 0, 8));
	duo_wait(s->duo, &from->peer->received, i + 1);
}

/* The acknowledgement is shorter than the shortest message, and so the end of its train. */
TEST_ON(a_ping_pong_is_one_train_a_message, start(true, MIB))
{
	nic_hold_acks(s.a->host->nic, true);
	nic_hold_acks(s.b->host->nic, true);
	for (uint64_t i = 0; i < 10; i++) {
		send_short(&s, s.a, i);
		send_short(&s, s.b, i);
	}
	duo_idle(s.duo);
	for (size_t i = 0; i < 10; i++) {
		if (i)
			assert_int_equal(duo_packet(s.duo, DUO_A, OP_RC_SEND_ONLY, i)->train, 2);
		assert_int_equal(duo_packet(s.duo, DUO_B, OP_RC_SEND_ONLY, i)->train, 2);
		duo_expect(s.duo, &s.a->sent, i, WC_SUCCESS);
		duo_expect(s.duo, &s.b->received, i, WC_SUCCESS);
		duo_expect(s.duo, &s.b->sent, i, WC_SUCCESS);
		duo_expect(s.duo, &s.a->received, i, WC_SUCCESS);
	}
}

static size_t stamped(const struct duo *d)
{
	size_t n = 0;

	for (size_t i = 0; i < d->wire_count; i++)
		n += d->wire[i].veroce && d->wire[i].bth.ts;
	return n;
}

/* A WRITE or READ of 1 MiB, whose bytes arrive. */
static struct sim transfer(bool same_host, bool read, uint32_t drop_ppm)
{
	struct sim s = start(same_host, MIB / 4);
	struct duo_buf *a = duo_buf(s.a->host, MIB, ALL_ACCESS), *b = duo_buf(s.b->host, MIB, ALL_ACCESS);

	duo_fill(a, 3);
	duo_fill(b, 4);
	s.duo->faults[DUO_A].drop_ppm = drop_ppm;
	s.duo->faults[DUO_B].drop_ppm = drop_ppm;
	duo_must_post(s.a, read ? duo_read_wr(1, a, 0, MIB, b, 0) : duo_write_wr(1, a, 0, MIB, b, 0));
	duo_wait(s.duo, &s.a->sent, 1);
	duo_expect(s.duo, &s.a->sent, 1, WC_SUCCESS);
	assert_memory_equal(a->p, b->p, MIB);
	return s;
}

TEST(packets_have_stamps_only_where_a_network_is_between)
{
	for (int i = 0; i < 4; i++) {
		struct sim s = transfer(i & 1, i & 2, 0);

		assert_int_equal(stamped(s.duo) > 0, !(i & 1));
		sim_end(&s);
	}
}

/* 1024 packets, of which the window holds 256; the last packet asks by itself. */
TEST(half_of_the_window_is_acknowledged_at_once)
{
	for (int read = 0; read < 2; read++) {
		struct sim s = transfer(true, read, 0);
		size_t acks;

		duo_idle(s.duo);
		acks = read ? duo_count(s.duo, DUO_A, OP_RC_ACK_RSP) : duo_count(s.duo, DUO_B, OP_RC_ACK);
		assert_in_range(acks, 8, 10);
		assert_int_equal(nic_counters(s.a->host->nic)->tail_probes, 0);
		assert_int_equal(nic_counters(s.b->host->nic)->tail_probes, 0);
		sim_end(&s);
	}
}

/*
 * The last packet, which asks, is lost: the others are acknowledged by a timer after a quarter of the tail
 * probe's time, and not before.
 */
TEST(what_did_not_ask_is_acknowledged_after_a_while)
{
	enum { WAIT_NS = 25000 };

	for (int read = 0; read < 2; read++) {
		struct sim s = start(true, MIB / 4);
		struct duo_wr w =
			read ? duo_read_wr(1, s.abuf, 0, 4096, s.bbuf, 0) : duo_write_wr(1, s.abuf, 0, 4096, s.bbuf, 0);
		enum duo_side to = read ? DUO_A : DUO_B;
		int data = read ? OP_RC_READ_RESPONSE_FIRST : OP_RC_WRITE_FIRST;
		const struct duo_packet *ack;

		duo_drop(s.duo, !to, read ? OP_RC_READ_RESPONSE_LAST : OP_RC_WRITE_LAST, 0);
		assert_true(duo_post(s.a, &w));
		duo_run_for(s.duo, WAIT_NS + 10000);
		ack = duo_packet(s.duo, to, read ? OP_RC_ACK_RSP : OP_RC_ACK, 0);
		assert_non_null(ack);
		assert_int_equal(ack->sent_ns, duo_packet(s.duo, !to, data, 0)->sent_ns + DUO_LATENCY_NS + WAIT_NS);
		duo_finish(s.a, 1, WC_SUCCESS);
		sim_end(&s);
	}
}

TEST(what_is_lost_is_repaired_without_timeouts)
{
	for (int read = 0; read < 2; read++) {
		struct sim s = transfer(true, read, 20000);
		const struct nic_counters *n = nic_counters((read ? s.b : s.a)->host->nic);

		assert_in_range(n->retransmits, 5, 100);
		assert_int_equal(n->timeouts, 0);
		sim_end(&s);
	}
}

/* Each QP has fewer packets under way than its AckReq interval; all together fill a window. */
TEST_ON(queue_pairs_that_share_a_window_do_not_wait_for_a_probe, start(true, MIB / 4))
{
	struct duo_options o = duo_options();
	struct duo_pair p[15];

	for (size_t i = 0; i < COUNT(p); i++)
		p[i] = duo_connect(s.duo, &o);
	duo_idle(s.duo);
	for (uint64_t k = 0; k < 4; k++) {
		for (size_t i = 0; i < COUNT(p); i++)
			duo_must_post(p[i].a, duo_write_wr(k, s.abuf, 0, BUF_BYTES, s.bbuf, 0));
	}
	for (size_t i = 0; i < COUNT(p); i++) {
		duo_wait(s.duo, &p[i].a->sent, 4);
		for (uint64_t k = 0; k < 4; k++)
			duo_expect(s.duo, &p[i].a->sent, k, WC_SUCCESS);
	}
	assert_memory_equal(s.abuf->p, s.bbuf->p, BUF_BYTES);
	assert_int_equal(nic_counters(s.a->host->nic)->tail_probes, 0);
	assert_int_equal(nic_counters(s.a->host->nic)->retransmits, 0);
}

/* 10.2.2.3: from SQD on, of a queue pair that has just sent and so has its flow made. */
TEST_ON(a_new_address_vector_is_that_of_the_next_packet, start(true, MIB))
{
	enum { TRAFFIC_CLASS = 0xa0 };
	struct nic *nic = s.a->host->nic;
	struct qp_attr attr = {.state = QPS_SQD};
	struct pkt burst[8];

	send_short(&s, s.a, 0);
	assert_non_null(s.a->qp->veroce->w);
	assert_int_equal(nic_qp_modify(nic, s.a->qp, &attr, QPA_STATE, s.duo->now_ns), 0);
	attr.av = duo_av(s.a->host, s.b->host, DUO_GID_IPV4);
	attr.av.traffic_class = TRAFFIC_CLASS;
	assert_int_equal(nic_qp_modify(nic, s.a->qp, &attr, QPA_STATE | QPA_AV, s.duo->now_ns), 0);
	attr.state = QPS_RTS;
	assert_int_equal(nic_qp_modify(nic, s.a->qp, &attr, QPA_STATE, s.duo->now_ns), 0);
	assert_true(duo_recv(s.b, 1, s.bbuf, 0, 8));
	duo_must_post(s.a, duo_send_wr(1, s.abuf, 0, 8));
	assert_int_equal(nic_output(nic, burst, 8, s.duo->now_ns), 1);
	assert_int_equal(burst[0].flow->tos & ~3, TRAFFIC_CLASS);
	duo_idle(s.duo);
	for (uint64_t i = 0; i < 2; i++) {
		duo_expect(s.duo, &s.a->sent, i, WC_SUCCESS);
		duo_expect(s.duo, &s.b->received, i, WC_SUCCESS);
	}
}

/* Bytes that the nic of A makes packets of, without an answer. */
static uint64_t put_out(struct sim *s)
{
	struct pkt burst[128];
	uint64_t bytes = 0;
	size_t n;

	while ((n = nic_output(s->a->host->nic, burst, COUNT(burst), s->duo->now_ns))) {
		for (size_t i = 0; i < n; i++)
			bytes += burst[i].len;
	}
	return bytes;
}

/*
 * What goes through memory fills no receive buffer: it has a window of its own, and what goes to the same address by
 * sockets has all of its window meanwhile and afterwards.
 */
TEST(what_goes_through_memory_takes_nothing_of_the_window)
{
	enum { WINDOW = MIB / 16 };
	struct sim s = start(true, WINDOW);
	struct nic *nic = s.a->host->nic;
	struct duo_options o = duo_options();
	struct duo_pair other = duo_connect(s.duo, &o);
	struct duo_buf *a = duo_buf(s.a->host, MIB, ALL_ACCESS), *b = duo_buf(s.b->host, MIB, ALL_ACCESS);
	const struct nic_peer near = {.near = true}, far = {0};
	const uint32_t slot = s.b->host->slot;
	struct qp_attr error = {.state = QPS_ERR};
	struct duo_wr w = duo_write_wr(1, a, 0, MIB, b, 0);

	send_short(&s, s.a, 0);
	duo_idle(s.duo);
	nic_set_peer(nic, slot, &near);
	for (w.wr_id = 1; w.wr_id <= 2 * VEROCE_NEAR_BYTES / MIB; w.wr_id++)
		assert_true(duo_post(s.a, &w));
	assert_in_range(put_out(&s), VEROCE_NEAR_BYTES / 8 * 7, VEROCE_NEAR_BYTES);
	nic_set_peer(nic, slot, &far);
	assert_true(duo_post(other.a, &w));
	assert_in_range(put_out(&s), WINDOW / 8 * 7, WINDOW);
	/* A QP in ERR forgets its packets: each is taken off the count that it was in. */
	assert_int_equal(nic_qp_modify(nic, s.a->qp, &error, QPA_STATE, s.duo->now_ns), 0);
	assert_int_equal(put_out(&s), 0);
	assert_int_equal(nic_qp_modify(nic, other.a->qp, &error, QPA_STATE, s.duo->now_ns), 0);
	other = duo_connect(s.duo, &o);
	assert_true(duo_post(other.a, &w));
	assert_in_range(put_out(&s), WINDOW / 8 * 7, WINDOW);
	duo_destroy(s.duo);
}

struct passed {
	const struct duo *d;
	size_t pass, stay;
};

static void judge_passing(void *ctx, const struct duo_packet *p, const uint8_t *data)
{
	struct passed *n = ctx;
	const struct flow flow = {.dport = VEROCE_UDP_PORT};
	const struct pkt pkt = {.data = (uint8_t *)data, .flow = &flow, .len = p->len};
	bool acknowledges = p->bth.opcode == OP_RC_ACK || p->bth.opcode == OP_RC_SACK ||
			    p->bth.opcode == OP_RC_ACK_RSP || p->bth.opcode == OP_RC_SACK_RSP;
	uint8_t *spot = NULL;

	acknowledges &= aeth_kind(p->aeth.syndrome) == AETH_ACK;
	n->pass += acknowledges;
	n->stay += !acknowledges;
	assert_int_equal(nic_place(n->d->host[!p->from].nic, &pkt, 1, true, &spot), acknowledges);
	assert_null(spot);
}

/* Payload is asked for behind acknowledgements only: a NAK ends the queue pair or makes it wait, and other packets have
 * effects. */
TEST_ON(only_acknowledgements_pass, start(true, MIB / 4))
{
	struct duo_buf *a = duo_buf(s.a->host, MIB, ALL_ACCESS), *b = duo_buf(s.b->host, MIB, ALL_ACCESS);
	struct duo_wr w[] = {duo_write_wr(1, a, 0, MIB, b, 0), duo_read_wr(2, a, 0, MIB, b, 0), duo_send_wr(3, a, 0, 8),
			     duo_write_wr(4, a, 0, 8, b, MIB)};
	struct passed n = {.d = s.duo};

	s.duo->tap = judge_passing;
	s.duo->tap_ctx = &n;
	s.duo->faults[DUO_A].drop_ppm = 10000;
	s.duo->faults[DUO_B].drop_ppm = 10000;
	for (size_t i = 0; i < 2; i++)
		assert_true(duo_post(s.a, &w[i]));
	duo_wait(s.duo, &s.a->sent, 2);
	s.duo->faults[DUO_A].drop_ppm = 0;
	s.duo->faults[DUO_B].drop_ppm = 0;
	assert_true(duo_post(s.a, &w[2]));
	duo_run_for(s.duo, 1000000);
	assert_true(duo_recv(s.b, 3, b, 0, 8));
	duo_wait(s.duo, &s.a->sent, 3);
	/* Beyond the region: a NAK. */
	assert_true(duo_post(s.a, &w[3]));
	duo_wait(s.duo, &s.a->sent, 4);
	for (uint64_t i = 1; i <= 3; i++)
		duo_expect(s.duo, &s.a->sent, i, WC_SUCCESS);
	duo_expect(s.duo, &s.a->sent, 4, WC_REM_ACCESS_ERR);
	duo_expect(s.duo, &s.b->received, 3, WC_SUCCESS);
	assert_true(n.pass > 16 && n.stay > 2048);
	assert_true(duo_count(s.duo, DUO_B, OP_RC_SACK) + duo_count(s.duo, DUO_A, OP_RC_SACK_RSP) > 0);
	assert_true(duo_count_syndrome(s.duo, DUO_B, AETH_NAK | NAK_REMOTE_ACCESS) > 0);
}
