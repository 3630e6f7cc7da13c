/* SPDX-License-Identifier: BSD-2-Clause */
/* veRoCE: packets that leave in one train, of one length but for the last, which may be shorter. */
#include "support/test.h"
#include "veroce/veroce.h"

enum { MTU = 1024, MESSAGES = 8 };

enum kind { WRITES, SENDS, READS, KINDS };

static void post(struct sim *s, enum kind kind, uint64_t i, uint32_t bytes)
{
	uint32_t off = (uint32_t)i * bytes;

	if (kind == SENDS)
		assert_true(duo_recv(s->b, i, s->bbuf, off, bytes));
	duo_must_post(s->a, kind == WRITES  ? duo_write_wr(i, s->abuf, off, bytes, s->bbuf, off)
			    : kind == SENDS ? duo_send_wr(i, s->abuf, off, bytes)
					    : duo_read_wr(i, s->abuf, off, bytes, s->bbuf, off));
}

/* All are posted before the first turn of output. */
static void run(struct sim *s, enum kind kind, uint32_t bytes)
{
	for (uint64_t i = 0; i < MESSAGES; i++)
		post(s, kind, i, bytes);
	duo_idle(s->duo);
	for (uint64_t i = 0; i < MESSAGES; i++) {
		duo_expect(s->duo, &s->a->sent, i, WC_SUCCESS);
		if (kind == SENDS)
			duo_expect(s->duo, &s->b->received, i, WC_SUCCESS);
	}
	assert_memory_equal(s->abuf->p, s->bbuf->p, MESSAGES * bytes);
}

/* Packets of full length that one side sent, and in *trains how many trains begin with one. */
static size_t data_packets(const struct duo *d, enum duo_side from, size_t *trains)
{
	size_t n = 0, left = 0;

	*trains = 0;
	for (size_t i = 0; i < d->wire_count; i++) {
		const struct duo_packet *p = &d->wire[i];

		if (p->from != from)
			continue;
		if (p->payload_len == MTU) {
			n++;
			*trains += !left;
		}
		left = left ? left - 1 : p->train - 1u;
	}
	return n;
}

/* veRoCE 3: a message of several packets starts with a packet as long as the others. */
TEST(messages_share_a_train)
{
	for (int kind = 0; kind < KINDS; kind++) {
		for (uint32_t packets = 2; packets <= 5; packets++) {
			struct sim s = veroce_default();
			enum duo_side from = kind == READS ? DUO_B : DUO_A;
			size_t trains;

			run(&s, kind, packets * MTU);
			assert_int_equal(data_packets(s.duo, from, &trains), MESSAGES * packets);
			assert_int_equal(trains, 1);
			sim_end(&s);
		}
	}
}

/* Whether any packet has the opcode itself, not one that stands for it. */
static bool was_sent(const struct duo *d, uint8_t opcode)
{
	for (size_t i = 0; i < d->wire_count; i++)
		if (d->wire[i].info && d->wire[i].bth.opcode == opcode)
			return true;
	return false;
}

TEST(a_base_peer_gets_first_packets)
{
	static const uint8_t first[KINDS] = {OP_RC_WRITE_FIRST, OP_RC_SEND_FIRST, OP_RC_READ_RESPONSE_FIRST};

	for (int base = 0; base < 2; base++) {
		for (int kind = 0; kind < KINDS; kind++) {
			struct sim s = VEROCE_SIM(v.base[DUO_B] = base);

			run(&s, kind, 3 * MTU);
			assert_int_equal(was_sent(s.duo, first[kind]), base);
			sim_end(&s);
		}
	}
}

/* Early, lost, doubled: the packet that starts a message is as good as any. */
TEST(a_first_packet_may_be_lost)
{
	static const enum duo_fate fates[] = {DUO_DROP, DUO_HOLD, DUO_DUPLICATE};

	for (int kind = 0; kind < KINDS; kind++) {
		for (size_t i = 0; i < COUNT(fates); i++) {
			for (int nth = 0; nth < MESSAGES; nth++) {
				static const int first[KINDS] = {OP_RC_WRITE_FIRST, OP_RC_SEND_FIRST,
								 OP_RC_READ_RESPONSE_FIRST};
				struct sim s = veroce_default();

				duo_rule(s.duo, (struct duo_rule){.from = DUO_ANY,
								  .opcode = first[kind],
								  .nth = nth,
								  .fate = fates[i],
								  .n = 3});
				run(&s, kind, 3 * MTU);
				sim_end(&s);
			}
		}
	}
}

static void send_bytes(struct sim *s, struct duo_qp *from, uint64_t i, uint32_t bytes)
{
	struct duo_buf *src = from == s->a ? s->abuf : s->bbuf, *dst = from == s->a ? s->bbuf : s->abuf;

	assert_true(duo_recv(from->peer, i, dst, 0, bytes));
	duo_must_post(from, duo_send_wr(i, src, 0, bytes));
	duo_wait(s->duo, &from->peer->received, i + 1);
}

/*
 * Between hosts an acknowledgement has time stamps and is longer than a message of 8 bytes: it leads the train, and
 * the message takes its path.
 */
TEST(a_ping_pong_is_one_train_a_message)
{
	static const uint32_t paths[] = {1, 16}, lens[] = {0, 4, 8, 12, 64, 1024};

	for (size_t k = 0; k < COUNT(paths) * COUNT(lens); k++) {
		struct veroce_options v = veroce_options();
		struct duo_options o = duo_options();
		struct sim s;
		size_t trains = 0;

		v.paths = paths[k % COUNT(paths)];
		s = veroce_start_sim(&v, &o, 1);
		nic_hold_acks(s.a->host->nic, true);
		nic_hold_acks(s.b->host->nic, true);
		for (uint64_t i = 0; i < 100; i++) {
			send_bytes(&s, s.a, i, lens[k / COUNT(paths)]);
			send_bytes(&s, s.b, i, lens[k / COUNT(paths)]);
		}
		for (size_t i = 0; i < s.duo->wire_count; i++)
			trains += s.duo->wire[i].train == 2;
		/* The first message has nothing to acknowledge; a flowlet of 64 may begin on a path that nobody knows.
		 */
		DUO_CHECK(s.duo, trains == 199 || (v.paths > 1 && trains >= 196));
		duo_idle(s.duo);
		for (uint64_t i = 0; i < 100; i++) {
			duo_expect(s.duo, &s.a->sent, i, WC_SUCCESS);
			duo_expect(s.duo, &s.b->received, i, WC_SUCCESS);
			duo_expect(s.duo, &s.b->sent, i, WC_SUCCESS);
			duo_expect(s.duo, &s.a->received, i, WC_SUCCESS);
		}
		sim_end(&s);
	}
}

/* The paths that the packets of a turn take, a bit each; 0: there are none. */
static uint32_t paths_of_turn(struct duo_host *h)
{
	struct pkt burst[2 * PKT_TRAIN_MAX + NIC_TX_ANSWERS];
	size_t n = nic_output(h->nic, burst, COUNT(burst), h->duo->now_ns);
	uint32_t used = 0;

	for (size_t i = 0; i < n; i++)
		used |= 1u << (burst[i].flow->sport - DUO_SPORT_IPV4);
	return used;
}

/* 9, 2: each path is a socket, and a call that sends. Several QPs and messages share it; turns spread over all paths.
 */
TEST(a_turn_takes_one_path)
{
	static const uint32_t lens[] = {64, 1000, 16 * 1024, 64 * 1024};

	for (size_t k = 0; k < COUNT(lens); k++) {
		struct veroce_options v = veroce_options();
		struct duo_options o = duo_options();
		struct duo_qp *qps[4];
		struct sim s;
		uint32_t all = 0, used;

		v.paths = 16;
		v.window_bytes = 8 << 20;
		o.cap.max_send_wr = 512;
		s = veroce_start_sim(&v, &o, 1 + k);
		qps[0] = s.a;
		for (size_t i = 1; i < COUNT(qps); i++)
			qps[i] = duo_connect(s.duo, &o).a;
		duo_idle(s.duo);
		for (uint64_t i = 0; i < (lens[k] < MTU ? 512 : 16) * COUNT(qps); i++)
			duo_must_post(qps[i % COUNT(qps)], duo_write_wr(i, s.abuf, 0, lens[k], s.bbuf, 0));
		while ((used = paths_of_turn(s.a->host))) {
			assert_int_equal(used & (used - 1), 0);
			all |= used;
		}
		assert_true(__builtin_popcount(all) > 3);
		duo_destroy(s.duo);
	}
}

/* 13.2: an acknowledgement names the path of what it answers, so it goes along with the data of a turn. */
TEST(an_acknowledgement_goes_along_with_data)
{
	struct sim s = VEROCE_SIM(v.paths = 16, o.cap.max_send_wr = 128);

	for (uint64_t i = 0; i < 100; i++) {
		struct duo_wr w = duo_write_wr(i, s.bbuf, 0, MTU, s.abuf, 0);
		struct pkt burst[2 * PKT_TRAIN_MAX + NIC_TX_ANSWERS];
		struct duo_host *a = s.a->host, *b = s.b->host;
		uint32_t used;
		size_t n;

		assert_true(duo_post(s.b, &w));
		n = nic_output(b->nic, burst, COUNT(burst), s.duo->now_ns);
		assert_int_equal(n, 1);
		assert_int_equal(nic_input(a->nic, burst, 1, s.duo->now_ns), 1);
		w = duo_write_wr(i, s.abuf, 0, 4 * MTU, s.bbuf, 0);
		assert_true(duo_post(s.a, &w));
		used = paths_of_turn(a);
		assert_true(used);
		assert_int_equal(used & (used - 1), 0);
	}
	duo_destroy(s.duo);
}

/*
 * One message a QP from b to a, and what a sends when all acknowledgements are due: `burst` has room for 64 packets.
 * Returns their number; *came: the paths that the messages took, a bit each.
 */
static size_t acknowledge(struct sim *s, struct duo_qp *const *qps, size_t count, struct pkt *burst, uint32_t *came)
{
	struct duo_host *a = s->a->host, *b = s->b->host;

	*came = 0;
	for (size_t i = 0; i < count; i++) {
		size_t n;

		duo_must_post(qps[i], duo_write_wr(i, s->bbuf, 0, MTU, s->abuf, 0));
		n = nic_output(b->nic, burst, 64, s->duo->now_ns);
		assert_int_equal(n, 1);
		*came |= 1u << (burst[0].flow->sport - DUO_SPORT_IPV4);
		assert_int_equal(nic_input(a->nic, burst, 1, s->duo->now_ns), 1);
	}
	nic_hold_acks(a->nic, false);
	s->duo->now_ns += 10000000; /* no acknowledgement waits for so long */
	return nic_output(a->nic, burst, 64, s->duo->now_ns);
}

/* 5.3, 5: one without time stamps goes where what it answers came from: a base peer knows the path by nothing else. */
TEST(acknowledgements_share_a_path_if_they_name_one)
{
	for (int base = 0; base < 2; base++) {
		struct veroce_options v = veroce_options();
		struct duo_options o = duo_options();
		struct pkt burst[64];
		struct duo_qp *qps[8];
		struct sim s;
		uint32_t came, used = 0;
		size_t n;

		v.paths = 16;
		v.base[DUO_A] = v.base[DUO_B] = base;
		s = veroce_start_sim(&v, &o, 1);
		qps[0] = s.b;
		for (size_t i = 1; i < COUNT(qps); i++)
			qps[i] = duo_connect(s.duo, &o).b;
		duo_idle(s.duo);
		n = acknowledge(&s, qps, COUNT(qps), burst, &came);
		assert_int_equal(n, COUNT(qps));
		for (size_t i = 0; i < n; i++)
			used |= 1u << (burst[i].flow->sport - DUO_SPORT_IPV4);
		assert_true(__builtin_popcount(came) > 2);
		assert_int_equal(__builtin_popcount(used), base ? __builtin_popcount(came) : 1);
		/* Each of them counts, whatever path it took. */
		assert_int_equal(nic_input(s.b->host->nic, burst, n, s.duo->now_ns), n);
		duo_idle(s.duo);
		for (size_t i = 0; i < COUNT(qps); i++)
			duo_expect(s.duo, &qps[i]->sent, i, WC_SUCCESS);
		sim_end(&s);
	}
}
